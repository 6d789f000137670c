"""The folders `attacks` and `benchmarks` as packages. They are not installed, and the root on the path would bring
`launch/` with it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

for name in ("attacks", "benchmarks"):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / name / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
