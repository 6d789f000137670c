"""Numba where it is installed: kernels cached on disk, and the choice to use them."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_logger = logging.getLogger(__name__)


@functools.lru_cache(maxsize=1)
def use_numba() -> bool:
    """True where compiled kernels are to be used; else the NumPy path with the same results, said once in the log.

    The environment variable RFLY_DISABLE_NUMBA=1 asks for the NumPy path.
    """
    if os.environ.get("RFLY_DISABLE_NUMBA", "0") not in ("", "0"):
        _logger.info("RFLY_DISABLE_NUMBA is set: using the NumPy path")
        return False
    if importlib.util.find_spec("numba") is None:
        _logger.warning("numba is not installed: using the NumPy path, same results, slower (pip install numba)")
        return False
    return True


def kernel(**options: Any) -> Callable[[F], F]:
    """`numba.njit(**options)` with the suite's cache on disk. Import modules with kernels only where `use_numba()`."""
    import numba

    from rfly_common.kernels.cache import KernelCache

    def compile_lazily(function: F) -> F:
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = KernelCache(function)
        return dispatcher

    return compile_lazily


def kernel_or_plain(**options: Any) -> Callable[[F], F]:
    """`kernel` where `use_numba()` is true; else the function stays plain Python: the same results, much slower."""
    return kernel(**options) if use_numba() else lambda function: function


def inner_kernel(function: F) -> F:
    """For what only other kernels call: compiled into those, with no cache and no entry from Python of its own.

    Releases the GIL and divides as NumPy does, as its callers have to. Plain Python where `use_numba()` is not true.
    """
    return _inner(function)


def inlined_kernel(function: F) -> F:
    """An `inner_kernel` that becomes part of its callers' machine code: for the parts of one long computation.

    Worth it where many arguments are passed and few places call; small functions are inlined anyway.
    """
    return _inner(function, forceinline=True)


def _inner(function: F, **options: Any) -> F:
    if not use_numba():
        return function
    import numba

    options |= {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: F = numba.njit(**options)(function)
    return compiled
