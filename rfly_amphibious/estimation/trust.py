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

from rfly_amphibious.estimation.estimate import Estimate
from rfly_common.errors import ConfigError

CAREFUL_SPEED = 1.5
"""Largest speed with an uncertain estimate, driving and flying, m/s."""

VERTICAL_WEIGHT = 2.0
"""Factor on the vertical speed's standard deviation: a landing depends on it."""

RETURN_SHARE = 0.8
"""Share of a limit below which the uncertainty has to fall until the level is better again."""


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
    """Trust in the newest estimate; it comes back only well below the limits."""

    def __init__(self, limits: TrustLimits | None = None) -> None:
        self.limits = limits or TrustLimits()
        self.reset()

    def reset(self) -> None:
        """Forget all estimates."""
        self.level = Trust.GOOD
        self.position_sigma = 0.0
        """Standard deviation of the position across the ground, worst direction, m."""

        self.speed_sigma = 0.0
        """Standard deviation of the velocity, worst direction, m/s; the vertical counts twice."""

    def update(self, estimate: Estimate) -> Trust:
        """Return the level with a new estimate; one without covariance is trusted."""
        covariance = estimate.covariance
        if covariance is None:
            self.reset()
            return self.level
        self.position_sigma = _largest_sigma(covariance[:2, :2])
        self.speed_sigma = _largest_sigma(_WEIGHTS @ covariance[3:6, 3:6] @ _WEIGHTS)

        # worse at once, better below a share of the limits
        worse = self._level(1.0)
        better = self._level(RETURN_SHARE)
        self.level = max(worse, min(self.level, better))
        return self.level

    def _level(self, share: float) -> Trust:
        """Return the level by a share of the limits."""
        limits = self.limits
        position = sum(self.position_sigma >= share * limit for limit in limits.position)
        speed = sum(self.speed_sigma >= share * limit for limit in limits.speed)
        return Trust(max(position, speed))

    @property
    def text(self) -> str:
        """How uncertain the estimate is, in words."""
        return f"uncertain by {self.position_sigma:.1f} m and {self.speed_sigma:.1f} m/s"


_WEIGHTS = np.diag((1.0, 1.0, VERTICAL_WEIGHT))


def _largest_sigma(covariance: np.ndarray) -> float:
    """Return the standard deviation of a covariance (n, n) in its worst direction."""
    return math.sqrt(max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0))
