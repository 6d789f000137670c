"""Types of the arrays and tuples of numbers that the whole suite passes around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Triple = tuple[float, float, float]
