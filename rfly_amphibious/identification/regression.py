"""Least squares over rows of a log, with what was known before, and how certain the result is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rfly_amphibious.identification.vehicle_log import RATE, low_pass
from rfly_common.arrays import Bools, Floats

FIT_BAND = 6.0
"""Hz: forces of a log are compared up to here"""
PRIOR = 1.0
"""standard deviation of what was given, as a share of it"""
UNKNOWN_SHARE = 0.3
"""of PRIOR: a parameter less certain than this was not excited"""


class Estimated(NamedTuple):
    """A parameter that was found."""

    name: str
    unit: str
    value: float
    sigma: float
    """standard deviation"""
    given: float
    """before"""
    key: str = ""
    """in the vehicle's file; "": it follows from others, or the file has none"""

    @property
    def excited(self) -> bool:
        """Whether the log says more of it than was known before."""
        return self.sigma < UNKNOWN_SHARE * PRIOR * max(abs(self.given), 1e-12)


def comparable(rows: Floats) -> Floats:
    """Rows along the first axis without what is quicker than FIT_BAND, so few that their errors are
    independent.
    """
    return low_pass(rows, FIT_BAND)[:: _every()]


def inside(mask: Bools, margin: float) -> Bools:
    """Which of the `comparable` rows lie within the mask (k,) and `margin` (s) away from its ends."""
    from scipy.ndimage import binary_erosion

    return binary_erosion(mask, iterations=round(margin * RATE), border_value=0)[:: _every()]


def _every() -> int:
    return max(1, int(RATE / (2.0 * FIT_BAND)))


def linear_fit(columns: Floats, right: Floats, given: Floats) -> tuple[Floats, Floats]:
    """(values (p,), covariance (p, p)) of columns (k, r, p) · values = right (k, r).

    Each of the r equations counts by its own scatter; `given` (p,) counts with PRIOR.
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
    covariance = np.linalg.inv(matrix.T @ matrix) * np.outer(scale, scale) * redundancy(left)
    return share * scale, covariance


def redundancy(left: Floats) -> float:
    """How many rows (k, r) of what is left over say the same as one, ≥ 1, by how alike neighbours
    are.
    """
    centred = left - left.mean(axis=0)
    alike = float(
        np.max((centred[1:] * centred[:-1]).mean(axis=0) / np.maximum(centred.var(axis=0), 1e-300))
    )
    alike = min(max(alike, 0.0), 0.9)
    return (1.0 + alike) / (1.0 - alike)
