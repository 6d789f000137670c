# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Progress and completion of the current mission item: from pose, reports, mode and time.

Distances are taken to the item as it is flown; NED metres, radians, seconds.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.config.checks import finite_number
from rfly_missions.execution.flown_items import distance_to
from rfly_missions.followers.vehicle_kinds import GROUND_MODES
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.items import (
    MissionItem,
    MissionMode,
    Ned,
    check_uav_type,
    finite_numbers,
)
from rfly_missions.mission.mavlink_items import ROI_COMMANDS

TOLERANCE = 1.0
"""Distance, m, at which the vehicle is at a point; also the least tolerance of a circle."""
ORBIT_SHARE = 0.1
"""Tolerance of a circle, as a share of its radius."""
TOUCHDOWN_HEIGHT = 0.3
"""Height above the touchdown point, m, at which the vehicle has landed."""
YAW_TOLERANCE = math.radians(5.0)
"""Difference, rad, at which a yaw is reached."""
ANGLE_ROUNDING = 1e-9
"""Angle that a full turn may lack, rad."""

LANDED_TIME = 3.0
"""Time, s, after which a landing vehicle that sinks no further has landed; see `has_landed`."""
LANDED_STEP = 0.2
"""Change of height, m, that counts as sinking."""
LANDED_LAG = 1.0
"""Height, m, of such a vehicle above the guide that leads it down."""
RETURN_REACH = 2.0
"""Height above home, m, within which it has come down: its body or a roof may lie between."""

CustomDone = Callable[[Sequence[float], MissionItem], bool]
"""Decides from x, y, z, course and the CUSTOM item whether it has been carried out."""

_logger = logging.getLogger(__name__)


class CompletionMonitor:
    """Watch over one vehicle, which starts afresh when the current item changes, and at `reset`.

    `uav_type`: a "fixed-wing" aircraft is at a way-point when it passes the plane through it,
    normal to the line from the previous item (`pass_plane` sets that for either type), and has
    returned within `loiter_radius` of home. `custom` decides about CUSTOM items. Without it,
    MAVLink's conditions 112 to 115 are done when they hold, other commands that are no navigation
    at once, with one log line each, and nothing else, such as the user's own items, ever. `clock`
    returns seconds. ValueError for a tolerance that is not positive.
    """

    def __init__(
        self,
        uav_type: Literal["multirotor", "fixed-wing"] = "multirotor",
        *,
        takeoff_tolerance: float = TOLERANCE,
        waypoint_tolerance: float = TOLERANCE,
        orbit_tolerance: float | None = None,
        loiter_radius: float = 25.0,
        pass_plane: bool | None = None,
        custom: CustomDone | None = None,
        clock: Callable[[], float] = time.monotonic,
        log: Callable[[str], None] = _logger.info,
    ) -> None:
        check_uav_type(uav_type)
        numbers = {
            "takeoff_tolerance": takeoff_tolerance,
            "waypoint_tolerance": waypoint_tolerance,
            "loiter_radius": loiter_radius,
        }
        if orbit_tolerance is not None:
            numbers["orbit_tolerance"] = orbit_tolerance
        for name, value in numbers.items():
            finite_number(name, value, "m", above=0.0, error=ValueError)

        fixed_wing = uav_type == "fixed-wing"
        self._takeoff_tolerance = takeoff_tolerance
        self._waypoint_tolerance = waypoint_tolerance
        self._orbit_tolerance = orbit_tolerance
        self._home_tolerance = loiter_radius if fixed_wing else TOLERANCE
        self._pass_plane = fixed_wing if pass_plane is None else pass_plane
        self._fixed_wing = fixed_wing
        self._custom = custom
        self._clock = clock
        self._log = log
        self.reset()

    def reset(self) -> None:
        """Start afresh: the same item is flown once more, in a new repetition of the mission."""
        self._item: MissionItem | None = None

    @property
    def turned(self) -> float:
        """Angle of the present orbit in its farther sense, rad; 0 for anything else."""
        orbits = self._item is not None and self._item.mode is MissionMode.ORBIT
        return max(self._turned) if orbits else 0.0

    def update(
        self,
        pose: ArrayLike,
        current: MissionItem,
        home: ArrayLike = (0.0, 0.0, 0.0),
        *,
        previous: MissionItem | None = None,
        next_position: ArrayLike | None = None,
    ) -> bool:
        """Return whether `current` has been carried out.

        `pose`: x, y, z, course. `previous`: the item before, at which the line to a way-point
        begins (else where the item was first seen). `next_position`: position of the item after
        (for CONDITION_DISTANCE). Call it at least eight times per turn of an orbit. ValueError
        names an input that is not finite.
        """
        x, y, z, course = finite_numbers(pose, 4, "pose").tolist()
        home_x, home_y, _ = finite_numbers(home, 3, "home").tolist()
        if current is not self._item and current != self._item:
            self._begin(current, (x, y, z), previous)

        mode = current.mode
        north, east, down = current.position.tolist()
        if mode is MissionMode.TAKEOFF:
            return math.dist((x, y, z), (north, east, down)) <= self._takeoff_tolerance
        if mode is MissionMode.WAYPOINT:
            return self._at_waypoint((x, y, z), current)
        if mode is MissionMode.ORBIT:
            return self._orbited((x, y, z), current)
        if mode is MissionMode.LAND:
            return down - z <= TOUCHDOWN_HEIGHT and math.hypot(x - north, y - east) <= TOLERANCE
        if mode is MissionMode.RTL:
            return math.hypot(x - home_x, y - home_y) <= self._home_tolerance
        if mode is MissionMode.CUSTOM:
            return self._custom_done((x, y, z, course), current, next_position)
        return False

    def _begin(
        self, item: MissionItem, position: tuple[float, float, float], previous: MissionItem | None
    ) -> None:
        self._item = item
        self._begun = self._clock()
        start = position if previous is None else tuple(previous.position.tolist())
        self._line = tuple(b - a for a, b in zip(start, item.position.tolist(), strict=True))
        self._bearing: float | None = None
        self._turned = [0.0, 0.0]  # clockwise, counter-clockwise
        self._logged = False

    def _at_waypoint(self, position: tuple[float, float, float], item: MissionItem) -> bool:
        """Return whether a way-point is reached, or the plane through it is passed."""
        target = item.position.tolist()
        radius = float(item.params[1])
        reach = max(radius if math.isfinite(radius) else 0.0, self._waypoint_tolerance, TOLERANCE)
        if math.dist(position, target) <= reach:
            return True

        # the plane through the way-point, normal to the line
        has_direction = self._line[0] != 0.0 or self._line[1] != 0.0
        if not self._pass_plane or not has_direction:
            return False
        return sum((p - t) * d for p, t, d in zip(position, target, self._line, strict=True)) >= 0.0

    def _orbited(self, position: tuple[float, float, float], item: MissionItem) -> bool:
        """Return whether the turns of an orbit are flown.

        The angle in each sense counts from the arrival at the circle; going back reduces it, but
        never below zero.
        """
        radius, direction, turns = item.params[:3].tolist()
        north, east, down = (p - c for p, c in zip(position, item.position.tolist(), strict=True))

        bearing = math.atan2(east, north)
        if self._bearing is None:
            tolerance = self._orbit_tolerance or max(TOLERANCE, ORBIT_SHARE * radius)
            if math.hypot(math.hypot(north, east) - radius, down) > tolerance:
                return False
        else:
            step = math.remainder(bearing - self._bearing, 2 * math.pi)
            self._turned = [max(0.0, self._turned[0] + step), max(0.0, self._turned[1] - step)]
        self._bearing = bearing

        counted = max(self._turned)
        if direction != 0:
            counted = self._turned[0 if direction > 0 else 1]
        return counted >= 2 * math.pi * turns - ANGLE_ROUNDING

    def _custom_done(
        self,
        pose: tuple[float, float, float, float],
        item: MissionItem,
        next_position: ArrayLike | None,
    ) -> bool:
        """Return whether a CUSTOM item is done: by the user's function, or by MAVLink's rules."""
        if self._custom is not None:
            return bool(self._custom(pose, item))
        command = item.command
        if command <= mavlink.LAST_NAVIGATION:
            return False

        # MAVLink's conditions
        value = float(item.params[0])
        if command == mavlink.CONDITION_DELAY:
            return self._clock() - self._begun >= value
        if command == mavlink.CONDITION_CHANGE_ALT:
            return abs(pose[2] - float(item.position[2])) <= TOLERANCE
        if command == mavlink.CONDITION_DISTANCE and next_position is not None:
            north, east = finite_numbers(next_position, 3, "next_position")[:2].tolist()
            return math.hypot(pose[0] - north, pose[1] - east) <= value
        if command == mavlink.CONDITION_YAW and not self._fixed_wing and math.isfinite(value):
            return abs(math.remainder(pose[3] - math.radians(value), 2 * math.pi)) <= YAW_TOLERANCE

        # any other command
        if not self._logged:
            self._logged = True
            values = item.params.tolist()
            self._log(f"command {command} {values} is not carried out here: done at once")
        return True


class ItemProgress:
    """Share of an item that is carried out, 0 … 1; it never falls, whatever interrupts the item."""

    def __init__(self) -> None:
        self.share = 0.0
        self._item: tuple[int, int] | None = None
        self._longest = 0.0

    def update(
        self, item: tuple[int, int], flown: MissionItem, distance: float, turned: float
    ) -> float:
        """Return the share after a step.

        `item`: repetition and index, which identify the item; `distance` (m) to the target of the
        flown item; `turned` (rad) along an orbit. An orbit counts by its turns. A CUSTOM item and
        an endless orbit stay at 0. Anything else counts by its distance as a share of the longest
        yet.
        """
        if item != self._item:
            self._item = item
            self.share = 0.0
            self._longest = 0.0

        if flown.mode is MissionMode.ORBIT:
            turns = float(flown.params[2])
            share = turned / (2 * math.pi * turns) if turns > 0.0 else 0.0
        elif flown.mode in (MissionMode.CUSTOM, MissionMode.HOLD) or not math.isfinite(distance):
            share = 0.0
        else:
            self._longest = max(self._longest, distance)
            share = 1.0 - distance / self._longest if self._longest else 0.0

        self.share = min(1.0, max(self.share, share))
        return self.share


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
