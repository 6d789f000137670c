# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mean wind at a place: less near the ground, and less behind objects. Eq. 3.7, 3.8."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.dynamics.wind import Wind
from rfly_common.arrays import Floats

REFERENCE_HEIGHT = 10.0
"""Height above the ground for which the mean wind is stated, m (WMO)."""
LOWEST = 0.1
"""Height above the ground below which the wind is as there, m."""
HIGHEST = 100.0
"""Height above which the wind does not change any more, m: the surface layer's top."""
SMOOTH = 0.03
"""Roughness length by which wakes spread where the wind has no profile, m: grassland."""
WAKE_LENGTH = 50.0
"""Length of a wake, relative to the larger of the object's height and width."""


def profile(height: float, roughness: float) -> float:
    """Return the mean wind at a height above the ground, m, relative to 10 m. Eq. 3.7."""
    if roughness == 0.0:
        return 1.0
    z = min(max(height, LOWEST), HIGHEST)
    return math.log1p(z / roughness) / math.log1p(REFERENCE_HEIGHT / roughness)


class WindField:
    """Mean wind around one vehicle's ground and objects."""

    def __init__(self, model: AmphibiousModel, wind: Wind) -> None:
        self._model = model
        self._wind = wind
        self._mean = np.array(wind.mean, float)
        self._solids: object = None
        self._speed = math.hypot(self._mean[0], self._mean[1])
        """Speed across the ground, m/s."""
        self._is_uniform = wind.roughness == 0.0 and not (wind.lee and self._speed > 0.0)

    def change(self, position: Floats) -> Floats:
        """Return what the mean wind at a position (3,), m, has more than the stated one, m/s."""
        if self._is_uniform:
            return np.zeros(3)
        x, y, z = position.tolist()
        terrain = self._model.terrain
        ground = 0.0 if terrain is None else float(terrain.altitude(x, y))
        factor = profile(z - ground, self._wind.roughness)
        if self._wind.lee and self._speed > 0.0:
            factor *= 1.0 - self._deficit(x, y, z)
        change = (factor - 1.0) * self._mean
        change[2] = 0.0
        return np.asarray(change)

    def _deficit(self, x: float, y: float, z: float) -> float:
        """Return the share of the wind that the wakes of all objects take at a place. Eq. 3.8."""
        solids = self._model.solids
        if solids is None or not len(solids):
            return 0.0
        if solids is not self._solids:
            self._solids = solids
            self._measure()

        behind = (x * self._mean[0] + y * self._mean[1]) / self._speed - self._end
        aside = (y * self._mean[0] - x * self._mean[1]) / self._speed - self._middle
        spread = self._growth * np.maximum(behind, 0.0)
        half = self._half_width + spread
        tall = self._height + spread
        share = self._half_width * self._height / np.maximum(half * tall, 1e-9)

        # the edge of a wake is as thick as the wake has grown
        thick = np.maximum(spread, 0.1 * self._height)
        inside = np.clip(0.5 + (half - np.abs(aside)) / (2.0 * thick), 0.0, 1.0)
        inside *= np.clip(0.5 + (self._bottom + tall - z) / (2.0 * thick), 0.0, 1.0)
        inside *= (behind > 0.0) & (behind < self._reach)
        return min(1.0, float(np.sqrt(((share * inside) ** 2).sum())))

    def _measure(self) -> None:
        """Find the solids' sizes along and across the wind."""
        outlines = self._model.solids.outlines  # type: ignore[union-attr]  # `_deficit` has asked
        starts = outlines.first[:-1]
        along = outlines.corners @ self._mean[:2] / self._speed
        across = outlines.corners @ (-self._mean[1], self._mean[0]) / self._speed
        left = np.maximum.reduceat(across, starts)
        right = np.minimum.reduceat(across, starts)
        self._end = np.maximum.reduceat(along, starts)
        self._middle = 0.5 * (left + right)
        self._half_width = 0.5 * (left - right)
        self._bottom = outlines.bottom
        self._height = outlines.top - outlines.bottom

        # Jensen's wakes grow by this much for each metre
        size = np.maximum(self._height, 2.0 * self._half_width)
        roughness = self._wind.roughness or SMOOTH
        self._growth = 0.5 / np.log1p(np.maximum(self._height, 1.0) / roughness)
        self._reach = WAKE_LENGTH * size
