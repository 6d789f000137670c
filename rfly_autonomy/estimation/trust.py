# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Trust in an estimate by its covariance, and what follows from it. docs/model, section 9.2.

Flight controller, chassis controller, guidance and diagnostics share the levels and their limits.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import ConfigError

CAREFUL_SPEED = 1.5
"""Largest speed with an uncertain estimate, driving and flying, m/s."""

VERTICAL_WEIGHT = 2.0
"""Factor on the vertical speed's standard deviation: a landing depends on it."""

RETURN_SHARE = 0.8
"""Share of a limit below which the uncertainty has to fall until the level is better again."""

RETURN_TIME = 1.0
"""Time for which it has to stay there, s: without an IMU each fix of the GPS corrects a lot."""


class Trust(enum.IntEnum):
    """Level of trust in an estimate."""

    GOOD = 0
    """As usual."""

    WARN = 1
    """Diagnostics warn."""

    SLOW = 2
    """No take-off, and no faster than CAREFUL_SPEED."""

    STOP = 3
    """Stop on the ground, land in the air."""

    LOST = 4
    """Abort: stop or land, and start only after `arm`."""


@dataclass(frozen=True)
class TrustLimits:
    """Standard deviations from which on the levels WARN, SLOW, STOP and LOST apply."""

    position: tuple[float, ...] = (5.0, 15.0, 40.0, 100.0)
    """Of the position across the ground, in the worst direction, m."""

    speed: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    """Of the velocity, in the worst direction, m/s; the vertical one counts twice."""

    def __post_init__(self) -> None:
        for name in ("position", "speed"):
            limits = getattr(self, name)
            rising = all(a <= b for a, b in zip((0.0, *limits), limits, strict=False))
            if len(limits) != 4 or not rising or not all(map(math.isfinite, limits)):
                raise ConfigError(
                    f"uncertain_{name}: {list(limits)}, expected four numbers that rise: "
                    "warn, slow, stop, abort"
                )


class EstimateTrust:
    """Trust in the newest estimate; it comes back only well below the limits, after a while."""

    def __init__(self, limits: TrustLimits | None = None) -> None:
        self.limits = limits or TrustLimits()
        self.reset()

    def reset(self) -> None:
        """Forget all estimates."""
        self.level = Trust.GOOD
        self._needed_at = -math.inf
        """Time of the last estimate that was no better than the level, s."""

        self._position = np.zeros((2, 2))
        """Covariance of the position across the ground, m²."""

        self._velocity = np.zeros((3, 3))
        """Covariance of the velocity, (m/s)²."""

    @property
    def position_sigma(self) -> float:
        """Standard deviation of the position across the ground, worst direction, m."""
        return _largest_sigma(self._position)

    @property
    def speed_sigma(self) -> float:
        """Standard deviation of the velocity, worst direction, m/s; the vertical counts twice."""
        return _largest_sigma(_WEIGHTS @ self._velocity @ _WEIGHTS)

    def update(self, estimate: Estimate) -> Trust:
        """Return the level with a new estimate; one without covariance is trusted."""
        covariance = estimate.covariance
        if covariance is None:
            self.reset()
            return self.level
        self._position = covariance[:2, :2]
        self._velocity = covariance[3:6, 3:6]

        # worse at once, better below a share of the limits
        level = Trust.GOOD
        if not self._is_clearly_good(covariance.diagonal().tolist()):
            sigmas = self.position_sigma, self.speed_sigma
            worse = self._level(1.0, *sigmas)
            better = self._level(RETURN_SHARE, *sigmas)
            level = max(worse, min(self.level, better))

        # each fix makes it better for a moment
        if level >= self.level:
            self._needed_at = estimate.time
        elif 0.0 <= estimate.time - self._needed_at < RETURN_TIME:
            return self.level
        self.level = level
        return self.level

    def _is_clearly_good(self, variances: list[float]) -> bool:
        """Return whether the sums of the variances already are below all limits.

        No direction's variance exceeds the sum, which is quicker to find.
        """
        x, y, _, vx, vy, vz, *_ = variances
        position = RETURN_SHARE * self.limits.position[0]
        speed = RETURN_SHARE * self.limits.speed[0]
        return x + y < position**2 and vx + vy + VERTICAL_WEIGHT**2 * vz < speed**2

    def _level(self, share: float, position_sigma: float, speed_sigma: float) -> Trust:
        """Return the level by a share of the limits."""
        limits = self.limits
        position = sum(position_sigma >= share * limit for limit in limits.position)
        speed = sum(speed_sigma >= share * limit for limit in limits.speed)
        return Trust(max(position, speed))

    @property
    def text(self) -> str:
        """How uncertain the estimate is, in words."""
        return f"uncertain by {self.position_sigma:.1f} m and {self.speed_sigma:.1f} m/s"


_WEIGHTS = np.diag((1.0, 1.0, VERTICAL_WEIGHT))


def _largest_sigma(covariance: np.ndarray) -> float:
    """Return the standard deviation of a covariance (n, n) in its worst direction."""
    return math.sqrt(max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0))
