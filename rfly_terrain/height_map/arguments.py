# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arguments of the height map's queries: checks, broadcasting, and threads for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.config.checks import check_unmasked
from rfly_common.kernels.parallel import in_chunks
from rfly_terrain.height_map.ground import GroundGrid

CHUNK = 32_768
"""Points that a thread takes at once, about 0.1 ms of work.

Fewer than two chunks stay in the caller's thread.
"""

_TAKE_FLOAT32 = {"altitudes"}
"""Kernels worth compiling a second time, to read float32 coordinates as they are.

The arithmetic is float64 in any case.
"""


def flat_arrays(
    names: Sequence[str], values: Sequence[ArrayLike], keep_float32: bool = False
) -> tuple[tuple[int, ...], list[NDArray[Any]]]:
    """Return the common shape of real numbers that broadcast, and each of them flat.

    They are float64, or remain float32 where all are and `keep_float32` is set.
    """
    arrays = [real_array(name, value) for name, value in zip(names, values, strict=True)]
    dtype = (
        np.float32
        if keep_float32 and all(array.dtype == np.float32 for array in arrays)
        else np.float64
    )
    shape = arrays[0].shape
    if any(array.shape != shape for array in arrays):
        shape = common_shape(names, arrays, [array.shape for array in arrays])
        arrays = [np.broadcast_to(array, shape) for array in arrays]
    return shape, [for_kernels(array, dtype, (-1,)) for array in arrays]


def real_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return the value as an array. Raise TypeError where it holds anything but real numbers.

    Raise ValueError where some are masked.
    """
    check_unmasked(name, value)
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected real numbers, got {array.dtype}")
    return array


def for_kernels(array: NDArray[Any], dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a contiguous, read-only array.

    numba compiles anew for each kind of array, and a caller's may be writable or not.
    """
    whole = np.ascontiguousarray(array, dtype).reshape(shape)
    whole = whole.view() if whole.flags.aligned else whole.copy()
    whole.flags.writeable = False
    return whole


def common_shape(
    names: Sequence[str], arrays: Sequence[NDArray[Any]], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the common shape of shapes, which are those of the arrays or a part of them."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(
            f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True)
        )
        raise ValueError(f"shapes do not broadcast: {listed}") from None


def check_finite(names: Sequence[str], arrays: Sequence[NDArray[Any]]) -> None:
    """Raise ValueError for the first coordinate that is NaN or infinite, as a kernel met one."""
    for name, array in zip(names, arrays, strict=True):
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            raise ValueError(
                f"{element(name, bad[0])} is {array[tuple(bad[0])]}: coordinates must be finite"
            )


def element(name: str, index: NDArray[Any]) -> str:
    """Return `name[1, 2]`, or the name alone for a single number."""
    return f"{name}{index.tolist()}" if index.size else name


def run(
    kernel: str,
    ground: GroundGrid,
    names: Sequence[str],
    values: Sequence[ArrayLike],
    outputs: Sequence[tuple[tuple[int, ...], type]],
    *options: Any,
) -> list[NDArray[Any]]:
    """Run a kernel over all points and return its results.

    `outputs` are trailing shape, after the broadcast shape, and dtype of each result. Raises
    ValueError that names argument and index of the first NaN or infinite coordinate.
    """
    from rfly_terrain.height_map import altitude_kernels as kernels

    shape, arrays = flat_arrays(names, values, keep_float32=kernel in _TAKE_FLOAT32)
    count = arrays[0].size
    results: list[NDArray[Any]] = [
        np.empty((count, *trailing), dtype) for trailing, dtype in outputs
    ]
    function = getattr(kernels, kernel)

    def work(start: int, stop: int) -> bool:
        inputs, outputs = ([array[start:stop] for array in group] for group in (arrays, results))
        return bool(function(ground, *inputs, *options, *outputs))

    if count >= 2 * CHUNK:
        finite = all_in_chunks(work, count, CHUNK)
    else:
        finite = function(ground, *arrays, *options, *results)
    if not finite:
        check_finite(names, [array.reshape(shape) for array in arrays])
    return [result.reshape(shape + result.shape[1:]) for result in results]


def all_in_chunks(work: Callable[[int, int], bool], count: int, chunk: int) -> bool:
    """Run the work `in_chunks`, and return whether all pieces returned True."""
    answers: list[bool] = []
    in_chunks(lambda start, stop: answers.append(work(start, stop)), count, chunk)
    return all(answers)
