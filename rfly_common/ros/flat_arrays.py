# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""NumPy arrays as `array.array`, which rclpy copies into a message without checking elements."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def flat(code: str, values: ArrayLike) -> array[Any]:
    """Return values in row-major order as array.array of a type code.

    Codes: `d` float64, `f` float32, `i` int32, `B` uint8.
    """
    out = array(code)
    contiguous = np.ascontiguousarray(values, np.dtype(code))
    if contiguous.size:
        out.frombytes(contiguous.reshape(-1).view(np.uint8).data)
    return out
