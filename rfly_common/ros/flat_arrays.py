"""NumPy arrays as `array.array`, the one sequence that rclpy copies into a message without a look
at each element.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def flat(code: str, values: ArrayLike) -> array[Any]:
    """Values in row-major order as array.array of a type code (`d` float64, `f` float32, `i` int32,
    `B` uint8).
    """
    out = array(code)
    contiguous = np.ascontiguousarray(values, np.dtype(code))
    if contiguous.size:
        out.frombytes(contiguous.reshape(-1).view(np.uint8).data)
    return out
