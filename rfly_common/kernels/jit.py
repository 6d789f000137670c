# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Decorators of the compiled kernels: numba with the options that the whole suite shares.

A kernel is compiled by its first call with each combination of argument types, and kept on disk
(`cache`). Importing this module imports numba, about half a second and 100 MB, so packages,
commands and nodes that may never need a kernel import the modules of kernels where they call one.

All kernels release the GIL and divide as NumPy does: by 0 to inf or NaN. A compiler may order sums
and fuse operations as it likes, so results agree with the same arithmetic in NumPy to 1e-12 of the
largest number that goes in, not bit by bit. The oracles in `test/oracles` hold kernels to that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.core import event
from numba.extending import register_jitable

import rfly_common.kernels.lane_types  # noqa: F401  registers `Lanes` with numba
from rfly_common.kernels import compiling
from rfly_common.kernels.cache import KernelCache
from rfly_common.kernels.light_numba import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function that Python calls, cached on disk."""
    return _cached(function)


def pasted_kernel(function: F) -> F:
    """Compile a `kernel` that numba pastes into the kernels that call it, before it infers types.

    For small ones with arrays in or out: no call is left, and no counting of the arrays'
    references.
    """
    return _cached(function, inline="always")


def inner_kernel(function: F) -> F:
    """Compile a function for other kernels only, into each of its callers and without a file."""
    return _compiled(function, **_WITHOUT_WRAPPERS)


def inlined_kernel(function: F) -> F:
    """Compile an `inner_kernel` that becomes part of its callers' machine code.

    For the parts of one long computation: worth it where many arguments are passed and few places
    call. Small functions are inlined anyway.
    """
    return _compiled(function, forceinline=True, **_WITHOUT_WRAPPERS)


def callable_in_kernels(function: F) -> F:
    """Let kernels call a plain function, and return it as it is.

    For functions of modules that must not import numba: a kernel that calls one compiles it.
    """
    register_jitable(error_model="numpy", forceinline=True)(function)
    return function


_WITHOUT_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options that leave out the entry points for calls from Python and from C."""


def _compiled(function: F, **options: Any) -> F:
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    return cast("F", dispatcher)


def _cached(function: F, **options: Any) -> F:
    dispatcher: Any = _compiled(function, **options)
    dispatcher._cache = KernelCache(function)
    return cast("F", dispatcher)


class _Notice(event.Listener):
    """Listener to numba that tells `compiling` of each kernel of the suite, inner ones included."""

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("rfly_"):
            compiling.tell(function.__name__)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Notice())
