"""Choice of the array functions: compiled kernels, or NumPy with the same results."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from rfly_common.kernels.jit import use_numba


@functools.lru_cache(maxsize=1)
def functions() -> ModuleType:
    """The module with `path_points`, `progress`, `poses` and what `wheels` calls: `compiled` where numba is to be used,
    else `numpy_functions`."""
    return importlib.import_module(
        "rfly_trajectory.kernels.compiled" if use_numba() else "rfly_trajectory.kernels.numpy_functions"
    )
