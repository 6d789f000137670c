# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Least squares over rows of a log, with prior knowledge, and the certainty of the result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Bools, Floats
from rfly_lab.identification.vehicle_log import RATE, low_pass

FIT_BAND = 6.0
"""Band in which the forces of a log are compared, Hz."""
PRIOR = 1.0
"""Standard deviation of the given value, as a share of it."""
UNKNOWN_SHARE = 0.3
"""Share of PRIOR above which a parameter's uncertainty shows that it was not excited."""


class Estimated(NamedTuple):
    """A parameter that was identified."""

    name: str
    unit: str
    value: float
    sigma: float
    """Standard deviation."""
    given: float
    """Value before."""
    key: str = ""
    """Key in the vehicle's file. "": it follows from others, or the file has none."""

    @property
    def excited(self) -> bool:
        """True if the log has improved the knowledge of the parameter."""
        return self.sigma < UNKNOWN_SHARE * PRIOR * max(abs(self.given), 1e-12)


def comparable(rows: Floats) -> Floats:
    """Return rows, along the first axis, without what is faster than FIT_BAND.

    There are only as many rows as have independent errors.
    """
    return low_pass(rows, FIT_BAND)[:: _every()]


def inside(mask: Bools, margin: float) -> Bools:
    """Return the `comparable` rows within the mask (k,) and `margin` (s) from its ends."""
    from scipy.ndimage import binary_erosion

    return binary_erosion(mask, iterations=round(margin * RATE), border_value=0)[:: _every()]


def _every() -> int:
    return max(1, int(RATE / (2.0 * FIT_BAND)))


def linear_fit(columns: Floats, right: Floats, given: Floats) -> tuple[Floats, Floats]:
    """Return values (p,) and covariance (p, p) of columns (k, r, p) · values = right (k, r).

    Each of the r equations is weighted by its own scatter, and `given` (p,) by PRIOR. The
    covariance has each equation's own `redundancy`.
    """
    scale = np.where(given == 0.0, 1.0, np.abs(given))
    weight = 1.0 / np.maximum(right.std(axis=0), 1e-12)
    before = np.eye(given.size) / PRIOR

    for _ in range(4):
        rows = (columns * scale * weight[:, None]).reshape(-1, given.size)
        matrix = np.vstack([rows, before])
        goal = np.concatenate([(right * weight).ravel(), before @ (given / scale)])
        share = np.linalg.lstsq(matrix, goal, rcond=None)[0]
        left = right - columns @ (share * scale)
        weight = 1.0 / np.maximum(left.std(axis=0), 1e-9 * np.abs(right).max())

    count = np.sqrt(redundancy(left))[:, None]
    alike = rows.reshape(columns.shape) * count
    spread = np.einsum("kri,krj->ij", alike, alike) + before @ before
    inverse = np.linalg.inv(matrix.T @ matrix)
    return share * scale, inverse @ spread @ inverse * np.outer(scale, scale)


def redundancy(left: Floats) -> Floats:
    """Return how many rows (k, r) of residuals have the information of one, ≥ 1, (r,).

    It follows from the correlation of neighbours.
    """
    centred = left - left.mean(axis=0)
    products = (centred[1:] * centred[:-1]).mean(axis=0)
    correlation = np.clip(products / np.maximum(centred.var(axis=0), 1e-300), 0.0, 0.9)
    return np.asarray((1.0 + correlation) / (1.0 - correlation))
