# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Times of RflySim3D's frames as times since 1970.

Frames bear s of CopterSim's clock, which is 0 at its start. Its heart-beat RflyTimeStmp tells when
that was. Without one the start is estimated from the frames that took least time to arrive.
"""

from __future__ import annotations

import math

from rfly_ue_bridge.codec.coptersim import RFLY_TIME_STMP

WINDOW_S = 5.0
"""The estimate of the start is the least of the last one to two windows, s."""
JUMP_BACK_S = 0.5
"""A time that falls by more than this begins a new run, s."""
SAME_CLOCK_S = 1.0
"""A heart-beat whose clock differs by less comes from a machine with the right time, s."""
LATEST_S = 2.0**31
"""Time that no stamp of ROS can hold, s."""


class SimulationStarts:
    """Start of the simulation of each vehicle, from heart-beats."""

    def __init__(self) -> None:
        self._start_s: dict[int, float] = {}

    def hear(self, datagram: bytes, now_s: float) -> bool:
        """Take a heart-beat that arrived at a time since 1970; return False if it is none.

        If the clock of its machine is wrong, only the time since the start counts. A start before
        1970, or after the heart-beat, is none.
        """
        head = RFLY_TIME_STMP.checksum_struct.pack(RFLY_TIME_STMP.checksums[0])
        if len(datagram) != RFLY_TIME_STMP.size or not datagram.startswith(head):
            return False
        values = RFLY_TIME_STMP.unpack(datagram)
        start_s = values["SysStartTime"] / 1000.0
        current_s = values["SysCurrentTime"] / 1000.0
        if abs(now_s - current_s) > SAME_CLOCK_S:
            start_s += now_s - current_s
        if not 0.0 <= start_s <= now_s + SAME_CLOCK_S:
            return False
        self._start_s[values["copterID"]] = start_s
        return True

    def of(self, copter_id: int) -> float | None:
        """Return the start for a vehicle, s since 1970; for an unknown one that of any other."""
        return self._start_s.get(copter_id, next(iter(self._start_s.values()), None))


class FrameTimes:
    """Times since 1970 of one sensor's frames."""

    def __init__(self) -> None:
        self._last_s = math.nan
        self._least = [math.inf, math.inf]
        """Least start by a frame, of this window and the one before."""
        self._window_from_s = -math.inf
        self.stands_still = False
        """True if the frames' time does not advance, so that the arrival counts."""

    def stamp(self, time_s: float, arrival_s: float, start_s: float | None) -> float:
        """Return the time of a frame since 1970, s.

        `arrival_s` is since 1970, too; `start_s` as `SimulationStarts.of`.
        """
        jumped = time_s < self._last_s - JUMP_BACK_S
        self.stands_still = time_s == self._last_s or time_s < 0.0
        self._last_s = time_s
        if self.stands_still:
            return arrival_s
        if start_s is not None:
            return start_s + time_s

        if jumped:
            self._least = [math.inf, math.inf]
            self._window_from_s = arrival_s
        elif arrival_s - self._window_from_s > WINDOW_S:
            self._least = [math.inf, self._least[0]]
            self._window_from_s = arrival_s
        self._least[0] = min(self._least[0], arrival_s - time_s)
        return time_s + min(self._least)
