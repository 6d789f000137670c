# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The compiled look-up at a single point, which takes a memory address instead of arrays.

numba unpacks each array that Python hands to a kernel, which takes longer than the look-up itself.
Passing one address instead makes `altitude` of a single point 1.4 times as quick as passing the
heights and the grid as two arrays: 290 instead of 400 ns for a call, about a quarter of the rows
"altitude, one point" of `make bench`. No other module does so.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from rfly_common.kernels.jit import kernel
from rfly_terrain.height_map.bilinear import clamp, interpolate
from rfly_terrain.height_map.ground import GroundGrid

if TYPE_CHECKING:
    from rfly_terrain.height_map.scalar import Altitude


def compiled_altitude(ground: GroundGrid) -> Altitude:
    """Return the compiled look-up, which keeps alive the memory that it reads."""
    numbers = np.zeros(7)
    numbers[:4] = ground.origin_x, ground.origin_y, ground.step_x, ground.step_y
    numbers.view(np.int64)[4:] = ground.rows, ground.columns, ground.heights.ctypes.data
    look_up = functools.partial(altitude_at, numbers.ctypes.data)
    look_up.memory = numbers, ground.heights  # type: ignore[attr-defined]  # a partial has a __dict__
    return look_up


def _pointer_intrinsic(element: Any) -> Any:
    """Return an intrinsic that makes an address (int64) a pointer to elements of a numba type."""

    @intrinsic
    def pointer(_typing: Any, _address: Any) -> Any:
        signature = types.CPointer(element)(types.int64)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return signature, generate

    return pointer


_float64_at = _pointer_intrinsic(types.float64)
_int64_at = _pointer_intrinsic(types.int64)
_float32_at = _pointer_intrinsic(types.float32)


@kernel
def altitude_at(address: int, x: float, y: float) -> float:
    """Return the bilinear height at one point, NaN where x or y is not finite.

    At `address` lie eight bytes each: origin_x, origin_y, step_x, step_y (float64); rows, columns
    and the address of the heights (int64).
    """
    numbers = carray(_float64_at(address), 4)
    integers = carray(_int64_at(address), 7)
    rows = integers[4]
    columns = integers[5]
    if not ((abs(x) < np.inf) & (abs(y) < np.inf)):
        return np.nan

    # the cell, and where in it the point lies
    u = clamp((x - numbers[0]) / numbers[2], rows - 1.0)
    v = clamp((y - numbers[1]) / numbers[3], columns - 1.0)
    i = min(int(u), rows - 2)
    j = min(int(v), columns - 2)
    a = u - i
    b = v - j

    heights = carray(_float32_at(integers[6]), rows * columns)
    k = np.uint64(i * columns + j)
    right = np.uint64(1)
    below = np.uint64(columns)
    return interpolate(
        heights[k], heights[k + right], heights[k + below], heights[k + below + right], a, b
    )
