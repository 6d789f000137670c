# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time that an autopilot is given: that of the simulation, but it never goes back."""

from __future__ import annotations

FIRST_STEP_USEC = 4000
"""Step after a reset if the autopilot has had one state only, µs: PX4 wants 250 Hz."""


class AutopilotClock:
    """Clock of one connected autopilot.

    PX4 in lock-step takes its clock from the simulator. If that goes back, its threads wait until
    the old time is reached again. After a reset of simulated time this clock therefore goes on
    with the next step.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with an autopilot that has just connected: it gets the simulation's time."""
        self._offset = 0
        self._last = -1
        self._step = FIRST_STEP_USEC

    def advance(self, stamp_ns: int) -> int:
        """Return the time of a new state, µs, which is later than that of the state before."""
        usec = max(stamp_ns, 0) // 1000 + self._offset
        if usec <= self._last:
            self._offset += self._last + self._step - usec
            usec = self._last + self._step
        elif self._last >= 0:
            self._step = usec - self._last
        self._last = usec
        return usec

    def of_sample(self, time_s: float) -> int:
        """Return the time of a sample since the last reset, µs."""
        return max(round(time_s * 1e6) + self._offset, 0)
