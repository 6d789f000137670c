"""Velocity estimate of a moving target from its poses."""

from __future__ import annotations

import numpy as np

from rfly_common.arrays import Floats

FASTEST = 40.0
"""m/s: beyond it a target has jumped"""
SILENCE = 0.5
"""s between two poses, after which a target is a new one"""


class TargetMotion:
    """The velocity of a target (n,) from its last three places: the smaller of both, where they agree in sign.

    A target that jumps has no velocity, nor has one that goes on from where it stood, at first.
    """

    def __init__(self) -> None:
        self._place: Floats | None = None
        self._time = 0.0
        self._moved: Floats | None = None
        self._velocity: Floats | None = None

    def update(self, place: Floats, time: float) -> Floats:
        """(n,) m/s with a place (n,) m at a time, s."""
        still = np.zeros(len(place))
        before, dt = self._place, time - self._time
        if dt == 0.0 and before is not None and self._velocity is not None:
            return self._velocity
        self._place, self._time = place, time
        if before is None or not 0.0 < dt <= SILENCE:
            self._moved, self._velocity = None, still
            return still
        moved = (place - before) / dt
        last, self._moved = self._moved, moved
        if last is None or np.linalg.norm(moved) > FASTEST:
            self._velocity = still
        else:
            smaller = np.minimum(np.abs(moved), np.abs(last))
            self._velocity = np.where(moved * last > 0.0, np.copysign(smaller, moved), 0.0)
        return self._velocity
