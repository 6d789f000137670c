# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Late imports: public names of a package at their first use, optional libraries when needed."""

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
    """Return `__getattr__`, `__dir__` and `__all__` for the names that a package's stub imports.

    The stub is next to `__init__.py`. As in lazy_loader (SPEC 1, PEP 562), `import rfly_terrain`
    loads nothing, a name's module is imported at its first use, and type checkers read the same
    list. Unlike there, names may come from other packages of the suite, and may be modules of
    rooms.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    module_of = {alias.name: f"{node.module}" for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(module_of[name])
        if hasattr(module, name):
            value = getattr(module, name)
        else:
            value = importlib.import_module(f"{module_of[name]}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(module_of), sorted(module_of)


_EXTRAS = {
    "distributed": "sweep",
    "gymnasium": "learn",
    "mapbox_earcut": "mesh",
    "matplotlib": "plot",
    "mcap": "log",
    "mcap_ros2": "log",
    "onnx": "learn",
    "onnxruntime": "learn",
    "onnxscript": "train",
    "osmium": "osm",
    "pettingzoo": "learn",
    "pymavlink": "mavlink",
    "pyproj": "geo",
    "rasterio": "geo",
    "rosbags": "bags",
    "shapely": "osm",
    "stable_baselines3": "train",
    "torch": "train",
    "trimesh": "mesh",
    "viser": "view",
    "websockets": "foxglove",
}
"""Extras of pyproject.toml, by module."""
_DISTRIBUTIONS = {"mcap_ros2": "mcap-ros2-support"}
"""Names of distributions that differ from their module's."""


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra, from the checkout: the package is on no index."""
    # the .venv of make; make demo gives it no extras, and none of them trains
    if extra != "train" and (Path(sys.prefix) / "rfly_suite.json").is_file():
        return "in the folder of rfly_suite: make env"
    return f'in the folder of rfly_suite: pip install ".[{extra}]"'


def require(module: str, what: str) -> ModuleType:
    """Import an optional module.

    Raises ConfigError that says what needs it and how to install it.
    """
    top = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != top:
            raise  # the library is installed, and broken
        name = _DISTRIBUTIONS.get(top, top)
        raise ConfigError(f"{what} needs {name}; {how_to_install(_EXTRAS[top])}") from None
