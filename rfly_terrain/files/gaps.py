# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cells of a raster without a height: numbers that stand for none, and filling them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_DIRECT = 200_000
"""Unknown cells that are solved for at once; more are approached iteratively from a first guess."""
VOIDS = (-9999.0, -32767.0, -32768.0, -99999.0)
"""Numbers that producers of elevation models write where they know no height."""
MAX_HEIGHT = 100_000.0
"""Largest height, m, above and below 0; a larger number stands for none. Olympus Mons has 22 km."""


def void_values(heights: NDArray[np.float32]) -> set[float]:
    """Return the finite numbers of an array that are no heights."""
    none = np.isin(heights, VOIDS) | (np.abs(heights) > MAX_HEIGHT)
    return set(np.unique(heights[none & np.isfinite(heights)]).tolist())


def fill_gaps(heights: NDArray[np.float32]) -> None:
    """Fill the cells of (rows, columns) that are not finite, in place, like a membrane.

    The membrane hangs from the rims of the gaps: each filled cell becomes the mean of its four
    neighbours, without those beyond the edge of the map. This is the discrete Laplace equation,
    with the heights around a gap given. At least one cell must be finite.
    """
    from scipy import sparse
    from scipy.ndimage import distance_transform_edt
    from scipy.sparse import linalg

    gap = ~np.isfinite(heights)
    count = int(np.count_nonzero(gap))
    if count == 0:
        return
    number = np.full(heights.shape, -1)
    number[gap] = np.arange(count)

    # the matrix: one row for each filled cell, one entry for each neighbour
    pairs = [(np.s_[1:, :], np.s_[:-1, :]), (np.s_[:, 1:], np.s_[:, :-1])]
    diagonal = np.zeros(count)
    right = np.zeros(count)
    rows = []
    columns = []
    for cells, neighbours in [*pairs, *((b, a) for a, b in pairs)]:
        here = gap[cells]
        own = number[cells][here]
        neighbour = number[neighbours][here]
        known = heights[neighbours][here].astype(float)
        diagonal += np.bincount(own, minlength=count)
        inner = neighbour >= 0
        rows.append(own[inner])
        columns.append(neighbour[inner])
        right += np.bincount(own[~inner], known[~inner], minlength=count)
    row = np.concatenate(rows)
    column = np.concatenate(columns)
    off_diagonal = sparse.csc_matrix((np.full(len(row), -1.0), (row, column)), (count, count))
    matrix = sparse.csc_matrix(off_diagonal + sparse.diags(diagonal))
    if count <= _DIRECT:
        heights[gap] = linalg.spsolve(matrix, right)
        return

    # about the mean: the tolerance, 1e-5, is then relative to the heights' differences
    nearest = distance_transform_edt(gap, return_distances=False, return_indices=True)
    guess = heights[tuple(nearest)][gap].astype(float)
    offset = float(guess.mean())
    rim = matrix @ np.full(count, offset)
    scale = sparse.diags(1.0 / diagonal)
    solution, _ = linalg.cg(
        matrix, right - rim, guess - offset, maxiter=20 * max(heights.shape), M=scale
    )
    heights[gap] = solution + offset
