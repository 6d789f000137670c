# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Newest poses of vehicles that others move, and how they move. No clock and no ROS."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import all_finite
from rfly_common.errors import VehicleStatesError

NEVER = -1
"""Time of a pose that has never come."""
SPAN_S = 0.1
"""Least time between two poses whose difference gives a velocity, s."""
LONGEST_SPAN_S = 1.0
"""Longest such time, s: after a longer gap a vehicle counts as standing at first."""
FARTHEST = 1e6
"""Largest coordinate of a pose, m."""
FASTEST = 500.0
"""Largest speed of a vehicle, m/s."""
FASTEST_TURN = 100.0
"""Largest yaw rate of a vehicle, rad/s."""


class PoseTracks:
    """Newest poses and velocities of n vehicles, ENU.

    A pose that comes with a velocity keeps it. Otherwise its difference from an earlier pose gives
    one. Times are those of one clock, ns.
    """

    def __init__(self, n: int) -> None:
        self.position: Floats = np.zeros((n, 3))
        """Positions, (n, 3), m."""
        self.yaw: Floats = np.zeros(n)
        """Yaw angles, (n,), rad."""
        self.velocity: Floats = np.zeros((n, 3))
        """Velocities, (n, 3), m/s."""
        self.yaw_rate: Floats = np.zeros(n)
        """Rates of the yaw angles, (n,), rad/s."""
        self._stamp_ns: Ints = np.full(n, NEVER, np.int64)
        self._heard_ns: Ints = np.full(n, NEVER, np.int64)

        # earlier poses, from which velocities are taken
        self._since_ns: Ints = np.full(n, NEVER, np.int64)
        self._from: Floats = np.zeros((n, 3))
        self._from_yaw: Floats = np.zeros(n)

    def __len__(self) -> int:
        return len(self.yaw)

    @property
    def heard(self) -> Bools:
        """True for vehicles whose pose has come, (n,)."""
        return self._stamp_ns != NEVER

    def age(self, now_ns: int) -> Floats:
        """Return the ages of the poses, (n,), s; infinite where none has come.

        A pose is at least as old as the time since its arrival, whatever its stamp says.
        """
        since = np.minimum(self._stamp_ns, self._heard_ns)
        return np.where(self.heard, np.maximum(now_ns - since, 0) * 1e-9, math.inf)

    def clear(self) -> None:
        """Forget all poses."""
        self._stamp_ns[:] = NEVER
        self._since_ns[:] = NEVER

    def see(
        self,
        row: int,
        now_ns: int,
        stamp_ns: int,
        position: ArrayLike,
        yaw: float,
        velocity: ArrayLike | None = None,
        yaw_rate: float = 0.0,
    ) -> None:
        """Take a pose with its stamp; 0 means now.

        One that comes again with the same stamp grows no younger. Raises VehicleStatesError for
        impossible numbers.
        """
        place = np.asarray(position, float)
        speeds = np.zeros(3) if velocity is None else np.asarray(velocity, float)
        if not all_finite(np.array([*place, yaw, *speeds, yaw_rate])):
            raise VehicleStatesError("the pose or the velocity is not finite")
        if np.abs(place).max() > FARTHEST or np.abs(speeds).max() > FASTEST:
            raise VehicleStatesError(
                f"it is at {place.tolist()} with {speeds.tolist()} m/s; at most {FARTHEST:g} m and "
                f"{FASTEST:g} m/s are taken"
            )
        if abs(yaw_rate) > FASTEST_TURN:
            raise VehicleStatesError(
                f"it turns by {yaw_rate:g} rad/s; at most {FASTEST_TURN:g} rad/s are taken"
            )

        stamp = stamp_ns or now_ns
        if velocity is None:
            self._estimate(row, stamp, place, yaw)
        else:
            self.velocity[row] = speeds
            self.yaw_rate[row] = yaw_rate
        self.position[row] = place
        self.yaw[row] = yaw
        if stamp != self._stamp_ns[row]:
            self._stamp_ns[row] = stamp
            self._heard_ns[row] = now_ns

    def _estimate(self, row: int, stamp_ns: int, place: Floats, yaw: float) -> None:
        """Take the velocity from the difference of a pose and an earlier one."""
        span = (stamp_ns - int(self._since_ns[row])) * 1e-9
        known = self._since_ns[row] != NEVER and 0.0 <= span <= LONGEST_SPAN_S
        if known and span < SPAN_S:
            return

        # velocity and yaw rate since the earlier pose
        if known:
            velocity = (place - self._from[row]) / span
            turned = math.remainder(yaw - float(self._from_yaw[row]), 2.0 * math.pi)
            self.velocity[row] = np.clip(velocity, -FASTEST, FASTEST)
            self.yaw_rate[row] = turned / span
        else:
            self.velocity[row] = 0.0
            self.yaw_rate[row] = 0.0

        # the next difference begins here
        self._since_ns[row] = stamp_ns
        self._from[row] = place
        self._from_yaw[row] = yaw
