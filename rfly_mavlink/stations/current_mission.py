# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""CurrentMission: the mission that a vehicle's ground station shows, and its progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from rfly_mavlink.stations.mission_rows import FlightPlan, MissionRow
from rfly_mavlink.stations.plan_rows import plan_id


@dataclass
class CurrentMission:
    """The mission that a ground station has uploaded or another client flies, and its progress."""

    rows: tuple[MissionRow, ...] = ()
    plan: FlightPlan | None = None
    """The plan of another client's mission, which is flown exactly; None: that of the rows."""
    seq: int = 0
    """The current row."""
    finished: bool = False
    """True once it has been flown to its end."""
    is_new: bool = False
    """True until another client's mission shows its progress."""
    reached: list[int] = field(default_factory=list)
    """Rows that were carried out and have not been reported yet."""

    @cached_property
    def id(self) -> int:
        """Number that is another one for other rows."""
        return plan_id(self.rows)

    def begin_at(self, seq: int) -> None:
        """Make a row the current one of a mission that is to be flown from there."""
        self.seq = seq
        self.finished = False

    def go_to(self, seq: int) -> None:
        """Make a row the current one; the one before is reached."""
        if seq != self.seq:
            self.reached.append(self.seq)
            self.seq = seq

    def follow_to(self, index: int) -> None:
        """Follow another client's mission to an item; the first one seen reaches no row."""
        row = min(index, max(0, len(self.rows) - 1))
        if self.is_new:
            self.seq = row
            self.is_new = False
        self.go_to(row)

    def finish(self) -> None:
        """End the mission; its current row is reached."""
        self.reached.append(self.seq)
        self.finished = True
