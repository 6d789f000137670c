# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Geofence of a mission in flight: a breach overrides the command until the vehicle obeys again.

Within the fence the user's command counts. After a breach the vehicle holds for `BREACH_HOLD`
seconds, then returns. A command that is given within the fence ends that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rfly_missions.mission.geofence import Geofence
from rfly_missions.mission.items import MissionCommand

BREACH_HOLD = 2.0
"""Time of HOLD after leaving the fence, s; then RTL."""


class Breach(NamedTuple):
    """A breach that no command has ended yet."""

    area: str
    """The area of the fence that was left or entered."""
    since: float
    """Time of the breach, s."""


class FenceWatch:
    """The fence of the loaded mission, and its breach."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._position: tuple[float, float] | None = None
        self.fence = Geofence()
        self.breach: Breach | None = None

    @property
    def area(self) -> str:
        """The breached area; "" for none."""
        return self.breach.area if self.breach is not None else ""

    def replace(self, fence: Geofence) -> None:
        """Watch another fence, of a new mission."""
        self.fence = fence
        self.breach = None

    def forgive(self) -> None:
        """End the breach if the vehicle is within the fence: a command has been given."""
        if self.breach is None or self._position is None:
            return
        if not self.fence.breach(*self._position):
            self.breach = None

    def command(
        self, requested: MissionCommand, position: tuple[float, float], now: float
    ) -> MissionCommand:
        """Return the command that counts for a vehicle at `position` (north, east, m)."""
        self._position = position
        if self.fence and self.breach is None:
            area = self.fence.breach(*position)
            if area:
                self.breach = Breach(area, now)
                self._log(f"{area} is breached: holding, then returning")

        if self.breach is None:
            return requested
        holds = now - self.breach.since < BREACH_HOLD
        return MissionCommand.HOLD if holds else MissionCommand.RTL
