# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parts that a test may need beyond `package.xml`: found without an import, and imported late.

    pytestmark = pytest.mark.needs("rasterio")  # or on one test; conftest.py skips it
    rasterio = late_module("rasterio")  # not imported before its first use

A test file imports nothing optional and skips nothing while it is imported: launch_testing and
`colcon test` collect it on machines that have ROS and nothing else. `test_test_files.py` holds
that.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import Any


class _LateModule(ModuleType):
    """Stand-in for a module, which the first attribute imports.

    Names with underscores do not import it, because test collectors look for them.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def late_module(name: str) -> Any:
    """The module of this name, imported when it is first used."""
    return _LateModule(name)


@functools.cache
def missing(name: str) -> str | None:
    """Return why a test that needs this part is skipped, or None where the part is installed.

    A part is a top-level module; `make env` is the `.venv` which that makes.
    """
    if name == "make env":
        return (
            None
            if importlib.util.find_spec("rfly_suite_environment")
            else "not the environment of make env"
        )
    return None if importlib.util.find_spec(name) else f"the package {name} is not installed"
