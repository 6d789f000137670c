"""The choice between compiled kernels and plain ones, made here for the whole suite.

numba is the extra `fast`, and everything runs without it: where it is not installed, and in a
process that ends before the import of numba, half a second, would pay. Kernels come in two forms:

- a loop over numbers, written once, with `@kernel`, `@pasted_kernel`, `@inner_kernel` or
`@inlined_kernel`. Where numba
  is not used it is the same function in plain Python.
- a module of loops over arrays, of which a `KernelModule` knows the NumPy twin: `NAME_numpy` beside
`NAME`, with the
  same functions.

Promise: with and without numba, results are equal to 1e-12 relative to the largest number that goes
into them. They need not be equal bit by bit, since a compiler may order sums and fuse operations as
it likes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def plain_because() -> str:
    """Why kernels are not compiled, and what to do about it; "" where they are.

    The environment variable RFLY_DISABLE_NUMBA=1 asks for plain kernels.
    """
    if os.environ.get("RFLY_DISABLE_NUMBA", "0") not in ("", "0"):
        return "RFLY_DISABLE_NUMBA is set: kernels are not compiled, the results are the same, but slower"
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed: the results are the same, but slower (pip install numba)"
    return ""


def use_numba() -> bool:
    """Whether kernels are compiled."""
    return not plain_because()


def kernel(function: F) -> F:
    """A decorator: compiled by numba, cached on disk, or the function itself where numba is not
    used.

    A kernel releases the GIL and divides as NumPy does: by 0 to inf or NaN.
    """
    return _lazily(function, cached=True)


def pasted_kernel(function: F) -> F:
    """A `kernel` that numba pastes into the kernels which call it before it infers types.

    For small ones with arrays in or out: no call is left, and no counting of the arrays'
    references.
    """
    return _lazily(function, cached=True, inline="always")


def inner_kernel(function: F) -> F:
    """`kernel` for what only other kernels call: compiled into those, not cached and not to be
    called from Python.
    """
    return _lazily(function, cached=False, **_UNWRAPPED)


def inlined_kernel(function: F) -> F:
    """An `inner_kernel` that becomes part of its callers' machine code: for the parts of one long
    computation.

    Worth it where many arguments are passed and few places call; small functions are inlined
    anyway.
    """
    return _lazily(function, cached=False, forceinline=True, **_UNWRAPPED)


_UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _lazily(function: F, *, cached: bool, **options: Any) -> F:
    if not use_numba():
        return function
    lazy = LazyKernel(function, options, cached)
    with _lock:
        if LazyKernel.waiting is not None:
            LazyKernel.waiting.append(lazy)
            return cast("F", lazy)  # stands for the function
    return lazy.dispatcher


_lock = threading.RLock()


class LazyKernel:
    """A kernel before numba is imported: 100 MB, and a second, which a process that uses no kernel
    goes without.

    The first use of any kernel imports it, and puts numba's own objects in the place of all these.
    """

    waiting: ClassVar[list[LazyKernel] | None] = []
    """those there are; None once numba's own are used"""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], cached: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._options = options
        self._is_cached = cached

    @functools.cached_property
    def dispatcher(self) -> Any:
        """numba's."""
        numba = _import_numba()
        dispatcher = numba.njit(nogil=True, error_model="numpy", **self._options)(self.py_func)
        if self._is_cached:
            from rfly_common.kernels.cache import KernelCache

            dispatcher._cache = KernelCache(self.py_func)
        return dispatcher

    def __call__(self, *arguments: Any) -> Any:
        return _in_place(self)(*arguments)

    def __getattr__(self, name: str) -> Any:
        """As numba's own: its type too, by which a kernel compiled by name calls one that was kept
        elsewhere.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_in_place(self), name)


@functools.cache
def _import_numba() -> Any:
    """numba without SciPy: it imports the whole of scipy.linalg, 0.4 s and 35 MB, only to know
    whether there is a BLAS.

    A function that does need one, such as `numpy.dot` in a kernel, asks again when it is compiled.
    """
    import numba
    import numba.np.linalg

    asks = numba.np.linalg.ensure_blas
    numba.np.linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        numba.np.linalg.ensure_blas = asks
    import rfly_common.kernels.lane_types  # noqa: F401  # an import statement, so that all kernels depend on it

    return numba


def _in_place(kernel: LazyKernel) -> Any:
    with _lock:
        if LazyKernel.waiting is not None:
            made = {lazy: lazy.dispatcher for lazy in LazyKernel.waiting}
            LazyKernel.waiting = None
            for name, module in list(sys.modules.items()):
                if name.startswith("rfly_"):
                    for key, value in list(vars(module).items()):
                        if isinstance(value, LazyKernel):
                            setattr(module, key, made[value])
        return kernel.dispatcher


class KernelModule:
    """A module of compiled kernels and its NumPy twin, imported as needed.

    `numpy_first`: work (in a unit of the caller's) that a process hands to the twin before it
    imports numba; about as much as the twin does in the time that the import takes.
    """

    def __init__(self, name: str, numpy_first: int = 0) -> None:
        self._name = name
        self._numpy_first = numpy_first
        self._work = 0
        self._compiled: ModuleType | None = None

    @property
    def compiled(self) -> ModuleType | None:
        """The compiled module where this process has loaded it, else None."""
        return self._compiled

    def load(self) -> None:
        """From now on this process uses the compiled module, where numba is used at all."""
        if self._compiled is None and use_numba():
            self._compiled = importlib.import_module(self._name)

    def choose(self, work: int = 0) -> ModuleType:
        """The module that is the quicker choice for so much work: the compiled one or its twin."""
        if self._compiled is None:
            self._work += work  # two threads may lose a sum; numba is then imported a little later
            if self._work >= self._numpy_first:
                self.load()
        return self._compiled or importlib.import_module(f"{self._name}_numpy")
