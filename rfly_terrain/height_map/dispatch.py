"""Argument checks, broadcasting and threads in front of the height map's kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.kernels.jit import KernelModule
from rfly_common.kernels.parallel import in_chunks
from rfly_terrain.height_map.ground import Ground

KERNELS = KernelModule("rfly_terrain.height_map.kernels", numpy_first=100_000)
"""Work is counted in points. A script with a handful of look-ups never imports numba."""

CHUNK = 32_768
"""Points a thread takes at once, about 0.1 ms of work; fewer than two chunks stay in the caller's thread."""

_TAKE_FLOAT32 = {"altitudes"}
"""kernels worth compiling a second time, to read float32 coordinates as they are.

The arithmetic is float64 in any case
"""


def flat_arrays(
    names: Sequence[str], values: Sequence[ArrayLike], keep_float32: bool = False
) -> tuple[tuple[int, ...], list[NDArray[Any]]]:
    """The common shape of real numbers that broadcast, and each as a one-dimensional array of float64 or kept float32.

    Read-only: numba compiles once for one kind of array, and a caller's may be writable or not.
    """
    arrays = [np.asarray(value) for value in values]
    for name, array in zip(names, arrays, strict=True):
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{name}: expected real numbers, got {array.dtype}")
    dtype = np.float32 if keep_float32 and all(array.dtype == np.float32 for array in arrays) else np.float64
    shape = arrays[0].shape
    if any(array.shape != shape for array in arrays):
        shape = _common_shape(names, arrays)
        arrays = [np.broadcast_to(array, shape) for array in arrays]
    flat = []
    for array in arrays:
        whole = np.ascontiguousarray(array, dtype).reshape(-1)
        if not whole.flags.aligned:
            whole = whole.copy()
        whole = whole.view()
        whole.flags.writeable = False
        flat.append(whole)
    return shape, flat


def _common_shape(names: Sequence[str], arrays: Sequence[NDArray[Any]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True))
        raise ValueError(f"shapes do not broadcast: {shapes}") from None


def check_finite(names: Sequence[str], shape: tuple[int, ...], arrays: Sequence[NDArray[Any]]) -> None:
    """ValueError that names the first coordinate that is NaN or infinite; called only when a kernel met one."""
    for name, array in zip(names, arrays, strict=True):
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            where = ", ".join(str(int(index)) for index in np.unravel_index(bad[0], shape))
            place = f"{name}[{where}]" if shape else name
            raise ValueError(f"{place} is {array[bad[0]]}: coordinates must be finite")


def run(
    kernel: str,
    ground: Ground,
    names: Sequence[str],
    values: Sequence[ArrayLike],
    outputs: Sequence[tuple[tuple[int, ...], type]],
    *options: Any,
) -> list[NDArray[Any]]:
    """Runs a kernel over all points. `outputs`: trailing shape, after the broadcast shape, and dtype of each result.

    Raises ValueError that names argument and index of the first NaN or infinite coordinate.
    """
    shape, arrays = flat_arrays(names, values, keep_float32=kernel in _TAKE_FLOAT32)
    count = arrays[0].size
    results: list[NDArray[Any]] = [np.empty((count, *trailing), dtype) for trailing, dtype in outputs]
    function = getattr(KERNELS.choose(count), kernel)
    if count < 2 * CHUNK:
        finite = function(ground, *arrays, *options, *results)
    else:
        finite = _run_in_chunks(function, ground, arrays, options, results, count)
    if not finite:
        check_finite(names, shape, arrays)
    return [result.reshape(shape + result.shape[1:]) for result in results]


def _run_in_chunks(
    function: Callable[..., bool],
    ground: Ground,
    arrays: Sequence[NDArray[Any]],
    options: Sequence[Any],
    results: Sequence[NDArray[Any]],
    count: int,
) -> bool:
    all_finite = True

    def work(start: int, stop: int) -> None:
        nonlocal all_finite
        inputs, outputs = ([array[start:stop] for array in group] for group in (arrays, results))
        if not function(ground, *inputs, *options, *outputs):
            all_finite = False

    in_chunks(work, count, CHUNK)
    return all_finite
