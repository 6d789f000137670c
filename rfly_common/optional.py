"""Optional libraries: imported where a feature needs them, and what to install where they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from rfly_common.errors import ConfigError

_EXTRAS = {
    "distributed": "sweep",
    "matplotlib": "plot",
    "mcap": "log",
    "mcap_ros2": "log",
    "pyarrow": "log",
    "pymavlink": "mavlink",
    "rasterio": "geo",
    "viser": "view",
}
"""of pyproject.toml, by module"""
_DISTRIBUTIONS = {"mcap_ros2": "mcap-ros2-support"}


def how_to_install(extra: str) -> str:
    """The command that adds an extra, from the checkout: the package is on no index."""
    return f'in the folder of rfly_suite: pip install ".[{extra}]"'


def require(module: str, what: str) -> ModuleType:
    """An optional module, imported. Raises ConfigError that says what needs it and how to install it."""
    top = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != top:
            raise  # it is there, and broken
        name = _DISTRIBUTIONS.get(top, top)
        raise ConfigError(f"{what} needs {name}; {how_to_install(_EXTRAS[top])}") from None
