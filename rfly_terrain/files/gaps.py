"""Filling of cells without data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_DIRECT = 200_000
"""unknown cells that are solved for at once; more are approached step by step from a first guess"""


def fill_gaps(heights: NDArray[np.float32]) -> None:
    """Fill the cells of (rows, columns) that are not finite, in place, as a membrane that hangs from their rims.

    Each filled cell becomes the mean of its four neighbours, those beyond the edge of the map left out: the discrete
    Laplace equation, with the heights around a gap given. At least one cell must be finite.
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
    pairs = [(np.s_[1:, :], np.s_[:-1, :]), (np.s_[:, 1:], np.s_[:, :-1])]
    diagonal, right = np.zeros(count), np.zeros(count)
    rows, columns = [], []
    for one, other in [*pairs, *((b, a) for a, b in pairs)]:
        here = gap[one]
        own, beside, known = number[one][here], number[other][here], heights[other][here].astype(float)
        diagonal += np.bincount(own, minlength=count)
        inner = beside >= 0
        rows.append(own[inner])
        columns.append(beside[inner])
        right += np.bincount(own[~inner], known[~inner], minlength=count)
    row, column = np.concatenate(rows), np.concatenate(columns)
    matrix = sparse.csc_matrix((np.full(len(row), -1.0), (row, column)), (count, count)) + sparse.diags(diagonal)
    matrix = sparse.csc_matrix(matrix)
    if count <= _DIRECT:
        heights[gap] = linalg.spsolve(matrix, right)
        return
    nearest = distance_transform_edt(gap, return_distances=False, return_indices=True)
    guess = heights[tuple(nearest)][gap].astype(float)
    offset = float(guess.mean())  # the tolerance, 1e-5, is then relative to the heights' differences
    rim = matrix @ np.full(count, offset)
    scale = sparse.diags(1.0 / diagonal)
    found, _ = linalg.cg(matrix, right - rim, guess - offset, maxiter=20 * max(heights.shape), M=scale)
    heights[gap] = found + offset
