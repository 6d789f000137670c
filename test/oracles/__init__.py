# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Slow, obvious implementations of compiled kernels, which tests compare the kernels with."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from types import ModuleType
from unittest.mock import patch


def in_place_of(kernels: ModuleType, oracle: ModuleType) -> AbstractContextManager[object]:
    """Return a context in which an oracle's functions stand for the kernels of the same names."""
    functions = {
        name: function
        for name, function in vars(oracle).items()
        if inspect.isfunction(function)
        and function.__module__ == oracle.__name__
        and hasattr(kernels, name)
    }
    return patch.multiple(kernels, **functions)
