"""Imports that come late: a package's public names when they are used, optional libraries where one
is needed.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from rfly_common.errors import ConfigError


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package: the names that the stub beside its
    `__init__.py` imports.

    PEP 562, as with lazy_loader (SPEC 1): `import rfly_terrain` loads nothing, a name's module is
    imported when it is first used, and type checkers read the same list. Names may be modules too.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    home = {alias.name: f"{node.module}" for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(home[name])
        value = (
            getattr(module, name)
            if hasattr(module, name)
            else importlib.import_module(f"{home[name]}.{name}")
        )
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(home), sorted(home)


_EXTRAS = {
    "distributed": "sweep",
    "foxglove": "foxglove",
    "matplotlib": "plot",
    "mcap": "log",
    "mcap_ros2": "log",
    "pymavlink": "mavlink",
    "rasterio": "geo",
    "trimesh": "mesh",
    "viser": "view",
}
"""of pyproject.toml, by module"""
_DISTRIBUTIONS = {"foxglove": "foxglove-sdk", "mcap_ros2": "mcap-ros2-support"}


def how_to_install(extra: str) -> str:
    """The command that adds an extra, from the checkout: the package is on no index."""
    if (
        Path(sys.prefix) / "rfly_suite.json"
    ).is_file():  # the .venv of make, to which make demo gave no extras
        return "in the folder of rfly_suite: make env"
    return f'in the folder of rfly_suite: pip install ".[{extra}]"'


def require(module: str, what: str) -> ModuleType:
    """An optional module, imported. Raises ConfigError that says what needs it and how to install
    it.
    """
    top = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != top:
            raise  # it is there, and broken
        name = _DISTRIBUTIONS.get(top, top)
        raise ConfigError(f"{what} needs {name}; {how_to_install(_EXTRAS[top])}") from None
