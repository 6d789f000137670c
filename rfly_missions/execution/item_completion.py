# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Completion of the current item: by report, by vehicle mode, by time, or by pose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rfly_missions.execution.completion_monitor import (
    ORBIT_SHARE,
    TOLERANCE,
    TOUCHDOWN_HEIGHT,
    CompletionMonitor,
    CustomDone,
)
from rfly_missions.execution.flown_items import distance_to
from rfly_missions.followers.vehicle_kinds import GROUND_MODES
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.items import MissionItem, MissionMode, Ned
from rfly_missions.mission.mavlink_items import ROI_COMMANDS

LANDED_TIME = 3.0
"""Time, s, after which a landing vehicle that sinks no further has landed; see `has_landed`."""
LANDED_STEP = 0.2
"""Change of height, m, that counts as sinking."""
LANDED_LAG = 1.0
"""Height, m, of such a vehicle above the guide that leads it down."""
RETURN_REACH = 2.0
"""Height above home, m, within which it has come down: its body or a roof may lie between."""


class ItemSituation(NamedTuple):
    """The vehicle on its way to the current item."""

    pose: tuple[float, ...]
    """x, y, z (NED, m), course angle (rad)."""
    item: MissionItem
    """The current item, as it stands in the mission."""
    flown: MissionItem
    """The current item, as it is flown."""
    previous: MissionItem
    """The item before, at the start of the line."""
    next_position: np.ndarray | None
    """Target of the next item, NED, m."""
    return_to: Ned
    """Target of a return, NED, m."""
    driven: bool
    """True if the item is driven: heights don't count."""
    vehicle_mode: str | None
    """Mode of a land-air vehicle, None for any other."""
    lag: float | None
    """Height above the guide over assumed level ground, m; None in any other case."""


@dataclass
class ItemStart:
    """The begin of the current item, and the vehicle's progress since."""

    time: float
    """Time at which it became current, s."""
    position: Ned
    """The vehicle's NED position then, m."""
    arrived: float | None = None
    """Time of arrival at its place, s."""
    sunk: float = 0.0
    """Time at which the vehicle last changed its height, or did not lag, s."""
    sunk_to: float = 0.0
    """NED z at that time, m."""


class ItemCompletion:
    """Decides whether the current item of one vehicle has been carried out."""

    def __init__(
        self,
        fixed_wing: bool,
        loiter_radius: float,
        custom: CustomDone | None,
        log: Callable[[str], None],
    ) -> None:
        self._fixed_wing = fixed_wing
        self._now = 0.0
        self._start = ItemStart(0.0, (0.0, 0.0, 0.0))
        self._monitor = CompletionMonitor(
            "fixed-wing" if fixed_wing else "multirotor",
            loiter_radius=loiter_radius,
            custom=custom,
            clock=lambda: self._now,
            log=log,
        )

    @property
    def now(self) -> float:
        """Time since the first step, s."""
        return self._now

    @property
    def begun_at(self) -> Ned:
        """The vehicle's position when the item became current, NED, m."""
        return self._start.position

    @property
    def turned(self) -> float:
        """Angle of the present orbit, rad; 0 for anything else."""
        return self._monitor.turned

    def advance(self, dt: float) -> None:
        """Let time pass."""
        self._now += dt

    def begin(self, position: Ned) -> None:
        """Start afresh: another item has become current."""
        self._monitor.reset()
        self._start = ItemStart(self._now, position, sunk=self._now, sunk_to=position[2])

    def has_returned(
        self, pose: Sequence[float], flown: MissionItem, return_to: Ned, mode: str | None
    ) -> bool:
        """Return whether a return, commanded or an item, has come home and down.

        `mode`: that of a land-air vehicle, None for any other.
        """
        is_home = self._monitor.update(pose, flown, return_to)
        height = float(flown.position[2]) - pose[2]
        rests = self._has_sunk(pose[2], may_rest=is_home and height <= RETURN_REACH)
        if mode is not None:
            return is_home and mode in GROUND_MODES
        return is_home and (self._fixed_wing or height <= TOUCHDOWN_HEIGHT or rests)

    def is_done(self, now: ItemSituation, reported: bool | None, holds_at_waypoints: bool) -> bool:
        """Return whether the current item has been carried out.

        `reported`: an external report about it, or None. `holds_at_waypoints`: p3 of a way-point is
        a time to stay there, s.
        """
        item = now.item
        if item.command == mavlink.DO_CHANGE_SPEED or item.command in ROI_COMMANDS:
            return True
        if reported is not None:
            return reported
        if now.vehicle_mode is not None and item.mode in (MissionMode.TAKEOFF, MissionMode.LAND):
            takes_off = item.mode is MissionMode.TAKEOFF
            return now.vehicle_mode == ("FLIGHT" if takes_off else "DRIVE")
        begun_above = self._start.position[2] < float(now.flown.position[2])
        if item.mode is MissionMode.TAKEOFF and begun_above:
            return True  # there is nothing to climb, and a take-off does not descend

        # by pose and time; a driven item is looked at from above
        pose = now.pose
        if now.driven:
            pose = (*pose[:2], float(now.flown.position[2]), pose[3])
        if item.command in mavlink.TIMED_COMMANDS:
            return self._timed_done(item, now.flown, pose)
        if item.mode is MissionMode.LAND and self.has_landed(pose[2], now.lag):
            return True
        if item.mode is MissionMode.RTL:
            return self.has_returned(pose, now.flown, now.return_to, now.vehicle_mode)
        if not self._monitor.update(
            pose,
            _watched(item, now.flown),
            now.return_to,
            previous=now.previous,
            next_position=now.next_position,
        ):
            return False

        stays = holds_at_waypoints and not self._fixed_wing
        if stays and item.mode is MissionMode.WAYPOINT and item.params[2] > 0.0:
            return self._has_stayed(float(item.params[2]))
        return True

    def has_landed(self, down: float, lag: float | None) -> bool:
        """Return whether a vehicle that a guide leads down stands on ground higher than assumed."""
        return self._has_sunk(down, may_rest=lag is not None and lag >= LANDED_LAG)

    def _has_sunk(self, down: float, *, may_rest: bool) -> bool:
        """Return whether a vehicle that may rest at a height has not changed it for a while."""
        if not may_rest or abs(down - self._start.sunk_to) > LANDED_STEP:
            self._start.sunk = self._now
            self._start.sunk_to = down
        return self._now - self._start.sunk >= LANDED_TIME

    def _timed_done(self, item: MissionItem, flown: MissionItem, pose: Sequence[float]) -> bool:
        """Return whether a DELAY, LOITER_TIME or LOITER_TO_ALTITUDE has been carried out."""
        if item.command == mavlink.DELAY:
            return self._now - self._start.time >= float(item.params[0])

        # on the way to the place
        reach = TOLERANCE
        if flown.mode is MissionMode.ORBIT:
            reach = max(TOLERANCE, ORBIT_SHARE * float(flown.params[0]))
        if distance_to(flown, pose) > reach and self._start.arrived is None:
            return False

        if item.command == mavlink.LOITER_TO_ALTITUDE:
            return abs(pose[2] - float(flown.position[2])) <= TOLERANCE
        return self._has_stayed(float(item.params[0]))

    def _has_stayed(self, seconds: float) -> bool:
        """Return whether the vehicle arrived that long ago; the first call is the arrival."""
        if self._start.arrived is None:
            self._start.arrived = self._now
        return self._now - self._start.arrived >= seconds


def _watched(item: MissionItem, flown: MissionItem) -> MissionItem:
    """Return the item for the completion monitor, which wants a CUSTOM item's own parameters."""
    if item.mode is not MissionMode.CUSTOM:
        return flown
    if item.command == mavlink.CONDITION_CHANGE_ALT:
        return replace(item, position=flown.position)
    return item
