"""Lazy public names of a package (PEP 562), listed once: in its stub `__init__.pyi`, as with lazy_loader (SPEC 1)."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package: the names that the stub beside its `__init__.py` imports.

    `import rfly_terrain` thus loads nothing, a name's module is imported when the name is first used, and type checkers
    read the same list. Names may be modules too.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    home = {alias.name: f"{node.module}" for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(home[name])
        value = getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{home[name]}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(home), sorted(home)
