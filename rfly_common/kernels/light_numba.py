# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""numba without SciPy's linear algebra, which makes nodes with kernels start a third sooner.

numba imports the whole of `scipy.linalg` with its array functions, only to know whether there is a
BLAS. That takes 0.3 s and 15 MB. Without it the rows "first message" of `make bench` are 1.4 times
as quick for nodes with kernels, such as 0.8 instead of 1.1 s for `trajectory_node`. So
`ensure_blas`, which asks, does nothing during that one import. A function that needs a BLAS, such
as `numpy.dot` in a kernel, asks again when it is compiled.
"""

from __future__ import annotations

import importlib

import numba
import numba.np.linalg

_ensure_blas = numba.np.linalg.ensure_blas
numba.np.linalg.ensure_blas = lambda: None
try:
    importlib.import_module("numba.np.arraymath")
finally:
    numba.np.linalg.ensure_blas = _ensure_blas

__all__ = ["numba"]
