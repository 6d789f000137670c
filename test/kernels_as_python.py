# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels run as Python, where an index beyond an array is an error.

Compiled code reads on in silence.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest


def as_python(kernel: Any, *callees: Any) -> Callable[..., Any]:
    """Return a function that runs a kernel's source, and the kernels of modules `callees` too."""
    modules = (sys.modules[kernel.py_func.__module__], *callees)
    inner = {
        value for module in callees for value in vars(module).values() if hasattr(value, "py_func")
    }

    def run(*arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            for module in modules:
                for name, value in list(vars(module).items()):
                    if hasattr(value, "py_func") and value in inner:
                        patch.setattr(module, name, value.py_func)
            return kernel.py_func(*arguments)

    return run
