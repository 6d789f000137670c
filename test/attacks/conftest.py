"""The folder `attacks` as a package. It is not installed, and the root on the path would bring `launch/` with it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "attacks"

spec = importlib.util.spec_from_file_location("attacks", FOLDER / "__init__.py")
assert spec is not None
assert spec.loader is not None
sys.modules["attacks"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
