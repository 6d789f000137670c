# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Progress and completion of the current mission item, from the vehicle's pose.

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
"""Distance, m, at which the vehicle is at a point; also the least tolerance of a circle."""
ORBIT_SHARE = 0.1
"""Tolerance of a circle, as a share of its radius."""
TOUCHDOWN_HEIGHT = 0.3
"""Height above the touchdown point, m, at which the vehicle has landed."""
YAW_TOLERANCE = math.radians(5.0)
"""Difference, rad, at which a yaw is reached."""
ANGLE_ROUNDING = 1e-9
"""Angle that a full turn may lack, rad."""

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
