"""Completion monitor: progress and `is_mode_done` of the current mission item from the vehicle's
pose.

Distances are taken to the item as it is flown; NED metres, radians, seconds.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Literal

from numpy.typing import ArrayLike

from rfly_common.config.checks import finite_number
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.items import MissionItem, MissionMode, check_uav_type, finite_numbers

TOLERANCE = 1.0
"""m: arrived at a point, and the least tolerance of a circle"""
ORBIT_SHARE = 0.1
"""of the radius: on the circle"""
TOUCHDOWN_HEIGHT = 0.3
"""m above the touchdown point: landed"""
YAW_TOLERANCE = math.radians(5.0)

Pose = Sequence[float]
CustomDone = Callable[[Pose, MissionItem], bool]
"""(pose x, y, z, course; the CUSTOM item) -> whether it has been carried out"""

_logger = logging.getLogger(__name__)


class CompletionMonitor:
    """Watches one vehicle. It starts afresh when the current item changes, and at `reset`.

    `uav_type`: a "fixed-wing" counts as at a waypoint when it passes the plane through it, normal
    to the line from the previous item (`pass_plane` sets that for either type), and as returned
    within `loiter_radius` of home. `custom` decides about CUSTOM items. Without it those imported
    from MAVLink's conditions 112 to 115 are done when their condition holds, other commands that
    are no navigation at once, with one log line each, and nothing else ever. `clock`: seconds.
    ValueError for a tolerance that is not positive.
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
        """Start afresh: the same item is to be flown once more (a new repetition of the mission)."""
        self._item: MissionItem | None = None

    @property
    def turned(self) -> float:
        """rad of the present orbit, in the sense that has come farther; 0 for anything else."""
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
        """Whether `current` has been carried out.

        `pose`: x, y, z, course. `previous`: the item before, at which the line to a waypoint begins
        (else where the item was first seen). `next_position`: of the item after (for
        CONDITION_DISTANCE). To be called at least eight times per turn of an orbit. ValueError
        names an input that is not finite.
        """
        x, y, z, course = finite_numbers(pose, 4, "pose").tolist()
        home_x, home_y, _ = finite_numbers(home, 3, "home").tolist()
        if current is not self._item and current != self._item:
            self._begin(current, (x, y, z), previous)
        mode = current.mode
        tx, ty, tz = current.position.tolist()
        if mode is MissionMode.TAKEOFF:
            return math.dist((x, y, z), (tx, ty, tz)) <= self._takeoff_tolerance
        if mode is MissionMode.WAYPOINT:
            return self._at_waypoint((x, y, z), current)
        if mode is MissionMode.ORBIT:
            return self._orbited((x, y, z), current)
        if mode is MissionMode.LAND:
            return tz - z <= TOUCHDOWN_HEIGHT and math.hypot(x - tx, y - ty) <= TOLERANCE
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
        target = item.position.tolist()
        radius = float(item.params[1])
        reach = max(radius if math.isfinite(radius) else 0.0, self._waypoint_tolerance, TOLERANCE)
        if math.dist(position, target) <= reach:
            return True
        if not self._pass_plane or (self._line[0] == 0.0 and self._line[1] == 0.0):
            return False
        return sum((p - t) * d for p, t, d in zip(position, target, self._line, strict=True)) >= 0.0

    def _orbited(self, position: tuple[float, float, float], item: MissionItem) -> bool:
        """The angle turned in each sense since the circle was reached; going back takes off, but
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
        counted = max(self._turned) if direction == 0 else self._turned[0 if direction > 0 else 1]
        return counted >= 2 * math.pi * turns - 1e-9

    def _custom_done(
        self,
        pose: tuple[float, float, float, float],
        item: MissionItem,
        next_position: ArrayLike | None,
    ) -> bool:
        if self._custom is not None:
            return bool(self._custom(pose, item))
        command = mavlink.mavlink_command(item)
        if command is None or command <= mavlink.LAST_NAVIGATION:
            return False
        value = float(item.params[1])
        if command == mavlink.CONDITION_DELAY:
            return self._clock() - self._begun >= value
        if command == mavlink.CONDITION_CHANGE_ALT:
            return abs(pose[2] - float(item.position[2])) <= TOLERANCE
        if command == mavlink.CONDITION_DISTANCE and next_position is not None:
            north, east = finite_numbers(next_position, 3, "next_position")[:2].tolist()
            return math.hypot(pose[0] - north, pose[1] - east) <= value
        if command == mavlink.CONDITION_YAW and not self._fixed_wing and math.isfinite(value):
            return abs(math.remainder(pose[3] - math.radians(value), 2 * math.pi)) <= YAW_TOLERANCE
        if not self._logged:
            self._logged = True
            self._log(
                f"command {command} {item.params[1:].tolist()} is not carried out here: done at once"
            )
        return True


class ItemProgress:
    """A share, 0 … 1, that never goes back while the item stays the same, whatever interrupts it."""

    def __init__(self) -> None:
        self.share = 0.0
        self._item: tuple[int, int] | None = None
        self._longest = 0.0

    def update(
        self, item: tuple[int, int], flown: MissionItem, distance: float, turned: float
    ) -> float:
        """The share after a step.

        `item`: repetition and index, which tell items apart; `distance` (m) to the target of what
        is flown; `turned` (rad) along an orbit. An orbit counts by its turns, a CUSTOM and an
        endless orbit not at all, the rest by the distance that is left of the longest there was.
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
