# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinematic fixed-wing aircraft on a mission. NED metres, radians, seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rfly_common.physics import GRAVITY
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.multirotor import RETURN_HEIGHT, SteeredVehicle, check_limits, clip
from rfly_missions.mission.items import MissionItem, MissionMode, Ned

TURN_MARGIN = 1.15
"""Share of the tightest turn within which a target can't be hit: it is flown away from first."""
CLIMB_OUT = 10.0
"""Height above lift-off, m, up to which it flies straight ahead."""
CLIMB_SHARE = 0.75
"""Share of the climb that the way over the ground counts on."""
CLEARANCE = 1.0
"""Height above the lowest height allowed, m, for the time in which a climb begins."""
GLIDE = 0.12
"""Slope of the final approach."""
MAX_GLIDE = 0.27
"""Slope of the final approach after approaches that had too much ground in the way."""
LOOK_AHEAD = (0.25, 0.5, 0.75, 1.0, 1.25)
"""Times ahead, s, at which the height over the ground is checked."""
MAX_APPROACHES = 6
"""Number of failed approaches after which a landing is given up."""
APPROACH_TIME = 120.0
"""Time, s, that an approach may take besides twice the straight way to its begin."""
APPROACH_HEIGHT = 20.0
"""Least height above the touchdown point, m, at which the final approach begins."""
ENTRY_HEIGHT_ERROR = 4.0
"""Difference of height, m, with which the final approach may begin."""
TOUCHDOWN_OFFSET = 0.7
"""Largest distance from the approach line at touchdown, m."""


@dataclass(frozen=True)
class FixedWingLimits:
    """Limits of a fixed-wing aircraft."""

    speed: float = 14.0
    """Cruise speed, m/s."""
    min_speed: float = 10.0
    """Lowest speed in the air, m/s."""
    max_speed: float = 22.0
    """Highest speed, m/s."""
    climb: float = 3.0
    """Climb, m/s."""
    descent: float = 3.0
    """Descent, m/s."""
    acceleration: float = 3.0
    """Acceleration along the way, m/s²."""
    vertical_acceleration: float = 4.0
    """Vertical acceleration, m/s²."""
    bank: float = math.radians(45.0)
    """Steepest bank, rad."""


class FixedWing(SteeredVehicle):
    """An aircraft with a band of speeds and a limited bank, which circles instead of hovering.

    It takes off from a roll along its heading, flies through points and along lines, lands on a
    straight approach whose direction it chooses by the ground, and goes around when it misses.
    """

    def __init__(
        self,
        position: Ned = (0.0, 0.0, 0.0),
        yaw: float = 0.0,
        *,
        limits: FixedWingLimits | None = None,
        ground: Ground | None = None,
        loiter_radius: float = 25.0,
        airborne: bool = False,
    ) -> None:
        self.limits = limits or FixedWingLimits()
        check_limits(self.limits)
        if not self.limits.min_speed <= self.limits.speed <= self.limits.max_speed:
            raise ValueError(
                f"speed: {self.limits.speed!r}, expected one from min_speed to max_speed"
            )
        if self.limits.bank >= math.pi / 2:
            raise ValueError(f"bank: {self.limits.bank!r} rad, expected less than a right angle")

        super().__init__(position, yaw, self.limits.speed if airborne else 0.0, ground)
        self.loiter_radius = loiter_radius
        self.airborne = airborne
        self._rate = 0.0
        self._cruise = self.limits.speed
        self._climb = self.limits.climb
        self._descent = self.limits.descent

        # climb-out and return
        self._lift_off: float | None = None
        self._cruise_down = position[2]
        self._final = False
        self._arrived = False
        self._spiral = False

        # landing
        self._approach: tuple[float, float, float] | None = None
        self._go_arounds = 0
        self._approach_left = 0.0

        # the last orbit over the ground
        self._circle_key: tuple[object, ...] = ()
        self._circle_down = 0.0

    @property
    def euler(self) -> Ned:
        """Bank from the turn rate, pitch from the flight path, yaw = course; rad."""
        bank = math.atan(self._speed * self._rate / GRAVITY)
        pitch = math.atan2(-self._sink, max(self._speed, 1e-3)) if self.airborne else 0.0
        return bank, pitch, self._course

    @property
    def lead(self) -> float:
        """Largest distance ahead of a vehicle that follows it, m."""
        return 1.5 * self.limits.speed

    def turn_radius(self, speed: float) -> float:
        """Return the radius of the tightest turn at a speed, m."""
        return speed * speed / (GRAVITY * math.tan(self.limits.bank))

    def flown(self, item: MissionItem) -> MissionItem:
        """Return the item with an orbit no tighter than the slowest turn.

        Items with a height of their own are raised to where the aircraft can fly on.
        """
        if item.mode not in (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT):
            return item
        min_radius = TURN_MARGIN * self.turn_radius(self.limits.min_speed)
        params = item.params
        north, east, down = item.position.tolist()

        if item.mode is MissionMode.ORBIT:
            if item.params[0] < min_radius:
                params = np.array([min_radius, *item.params[1:]])
            key = north, east, float(params[0]), self._slope, self.ground
            if self._circle_key != key:
                lowest = self.ground.envelope_around(north, east, float(params[0]), self._slope)
                self._circle_key = key
                self._circle_down = lowest - CLEARANCE
            down = min(down, self._circle_down)
        else:
            down = min(down, self.ground.envelope_down(north, east, self._slope) - CLEARANCE)

        if down == item.position[2] and params is item.params:
            return item
        return replace(item, position=np.array([north, east, down]), params=params)

    @property
    def _slope(self) -> float:
        """Slope of the climb that it counts on over the ground, m/m."""
        return CLIMB_SHARE * self._climb / self._cruise

    def change_speed(self, kind: int, value: float) -> bool:
        """Change a speed (see Follower), within the band of speeds.

        -1 changes nothing, -2 restores the default.
        """
        if kind not in (0, 1, 2, 3) or not (value > 0.0 or value in (-1.0, -2.0)):
            return False

        limits = self.limits
        if value != -1.0:
            restores = value == -2.0
            if kind < 2:
                within = clip(value, limits.min_speed, limits.max_speed)
                self._cruise = limits.speed if restores else within
            elif kind == 2:
                self._climb = limits.climb if restores else value
            else:
                self._descent = limits.descent if restores else value
        return True

    def begin(self, item: MissionItem, previous: MissionItem, driven: bool = False) -> None:
        """Begin another item: forget what belonged to the one before.

        The direction of a circle that leaves it free is chosen now.
        """
        self._final = False
        self._arrived = False
        self._approach = None
        self._spiral = False
        self._go_arounds = 0
        self.problem = ""
        self._cruise_down = self.position[2]

        # direction of a circle
        self._turn = 1.0 if item.mode is MissionMode.RTL else self._free_turn(item.position)
        if item.mode in (MissionMode.ORBIT, MissionMode.HOLD):
            direction = float(item.params[1])
            if direction in (-1.0, 1.0):
                self._turn = direction

    def step(self, item: MissionItem, previous: MissionItem, home: Ned, dt: float) -> None:
        """Move for dt seconds."""
        mode = item.mode
        if not self.airborne:
            self._roll(mode not in (MissionMode.LAND, MissionMode.HOLD, MissionMode.ARMED), dt)
            return

        # climb-out
        if self._lift_off is not None:
            if self._lift_off - self.position[2] < CLIMB_OUT:
                self._fly(0.0, -self._climb, self._cruise, dt)
                return
            self._lift_off = None

        target: Ned = tuple(item.position.tolist())
        if mode is MissionMode.LAND:
            self._land(target, dt)
        elif mode is MissionMode.RTL:
            self._return(home, dt)
        elif mode in (MissionMode.ORBIT, MissionMode.HOLD):
            radius = float(item.params[0])
            self._circle(target, radius if radius > 0.0 else self.loiter_radius, dt)
        elif mode is MissionMode.WAYPOINT:
            self._line(tuple(previous.position.tolist()), target, dt)
        else:
            self._fly_to(target, dt)

    def _roll(self, go: bool, dt: float) -> None:
        """Accelerate on the ground until lift-off, or brake to a stop."""
        setpoint = self.limits.min_speed if go else 0.0
        change = self.limits.acceleration * dt
        old = self._speed
        self._speed += clip(setpoint - old, -change, change)

        # along the heading, on the ground
        self._rate = 0.0
        self._sink = 0.0
        self._advance(0.5 * (old + self._speed) * dt, self._course)
        floor = self.ground.down(self.position[0], self.position[1])
        if math.isfinite(floor):
            self.position = (self.position[0], self.position[1], floor)

        if go and self._speed >= self.limits.min_speed:
            self.airborne = True
            self._lift_off = self.position[2]

    def _fly_to(self, target: Ned, dt: float) -> None:
        """Fly to a point and on, again and again until another item begins."""
        course = self._course_to_point(target, TURN_MARGIN * self.turn_radius(self._speed))
        self._steer(course, target[2], self._cruise, dt)

    def _line(self, start: Ned, end: Ned, dt: float) -> None:
        """Fly along a line, and beyond its end to the end, again and again."""
        north = end[0] - start[0]
        east = end[1] - start[1]
        length = math.hypot(north, east)
        from_north = self.position[0] - start[0]
        from_east = self.position[1] - start[1]
        along = (from_north * north + from_east * east) / max(length, 1e-9)
        if length < 1.0 or along > length:
            self._fly_to(end, dt)
            return

        # climbs at once where it can: the next item may begin higher
        down = start[2] + (end[2] - start[2]) * clip(along / length, 0.0, 1.0)
        if start[2] - end[2] > 0.0:
            down = end[2]
        course = self._course_on_line(start, math.atan2(east, north), self._line_reach)
        self._steer(course, down, self._cruise, dt)

    @property
    def _line_reach(self) -> float:
        """Distance from a line, m, at which it flies to the line at 45°."""
        return max(20.0, 1.2 * self.turn_radius(self._speed))

    def _circle(self, center: Ned, radius: float, dt: float) -> None:
        """Fly around a place, as fast as the radius allows, or wider than that if it must."""
        turning = GRAVITY * math.tan(self.limits.bank)
        fastest = math.sqrt(radius / TURN_MARGIN * turning)
        speed = clip(fastest, self.limits.min_speed, self._cruise)
        radius = max(radius, TURN_MARGIN * speed * speed / turning)
        course, curvature = self._course_around(center, radius)
        self._steer(course, center[2], speed, dt, rate=self._speed * curvature)

    def _return(self, home: Ned, dt: float) -> None:
        """Fly home at the present height or above, and circle there."""
        down = min(self._cruise_down, home[2] - RETURN_HEIGHT)
        point = (home[0], home[1], down)
        if not self._arrived:
            away = math.hypot(home[0] - self.position[0], home[1] - self.position[1])
            self._arrived = away <= 0.5 * self.loiter_radius
            self._fly_to(point, dt)
        else:
            self._circle(point, self.loiter_radius, dt)

    def _land(self, touchdown: Ned, dt: float) -> None:
        """Fly to the begin of an approach, down along it, and touch down or go around."""
        radius = self.turn_radius(self._cruise)

        # choose an approach
        if self._approach is None:
            self._approach = self._choose_approach(touchdown)
            self._approach_left = 0.0
        course, length, down = self._approach
        back = length + 3.0 * radius
        entry = touchdown[0] - back * math.cos(course), touchdown[1] - back * math.sin(course)
        away = math.hypot(entry[0] - self.position[0], entry[1] - self.position[1])

        # limit its time
        if self._approach_left == 0.0:
            way = back + away
            vertical = abs(self.position[2] - down) / min(self._climb, self._descent)
            self._approach_left = APPROACH_TIME + 2.0 * (way / self._cruise + vertical)
        self._approach_left -= dt
        if self._approach_left <= 0.0:
            self._go_around(touchdown)
            return

        # to its begin
        if not self._final:
            is_ahead = abs(math.remainder(self._course - course, 2 * math.pi)) < math.pi / 2
            is_at_height = abs(self.position[2] - down) < ENTRY_HEIGHT_ERROR
            self._final = away <= radius and is_ahead and is_at_height
            self._fly_to((*entry, down), dt)
            return

        # touchdown, or a miss
        north = touchdown[0] - self.position[0]
        east = touchdown[1] - self.position[1]
        left = north * math.cos(course) + east * math.sin(course)
        cross_track = math.cos(course) * east - math.sin(course) * north
        slope = (touchdown[2] - down) / length
        glide = max(touchdown[2] - slope * max(left, 0.0), down)
        if left < 0.5 * self._speed * dt:
            if abs(cross_track) <= TOUCHDOWN_OFFSET and touchdown[2] - self.position[2] <= 0.5:
                self.airborne = False
                self._sink = 0.0
                floor = self.ground.down(*self.position[:2])
                self.position = (self.position[0], self.position[1], min(touchdown[2], floor))
                return
            self._go_around(touchdown)

        # along the glide path
        on_line = self._course_on_line(touchdown, course, self._line_reach)
        share = clip(left / length, 0.0, 0.99)
        sink = slope * self._speed if left < length else 0.0
        self._steer(
            on_line,
            glide,
            self.limits.min_speed,
            dt,
            look_ahead=max(left, 1.0),
            sink=sink,
            clearance=share,
        )

    def _go_around(self, touchdown: Ned) -> None:
        """Try another approach; after many the landing is a problem."""
        self._final = False
        self._approach = None
        self._go_arounds += 1
        if self._go_arounds >= MAX_APPROACHES:
            place = f"{touchdown[0]:.0f}, {touchdown[1]:.0f}"
            self.problem = (
                f"no way to land at {place} (north, east m): {self._go_arounds} approaches came to "
                "nothing, as the ground is in the way of each"
            )

    def _choose_approach(self, touchdown: Ned) -> tuple[float, float, float]:
        """Return course, length and first z of a final approach that can be reached.

        It is the free one whose direction is nearest to the present one, and the shortest. If none
        is free, it is the one with the least ground in its way. After failed approaches it is the
        next best.
        """
        high = max(APPROACH_HEIGHT, self.ground.min_height + 10.0)
        setpoint = math.atan2(touchdown[1] - self.position[1], touchdown[0] - self.position[0])
        ranked = []
        for rank, turn in enumerate((0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8)):
            course = setpoint + turn * math.pi / 8
            for stretch in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0):
                length = stretch * high / GLIDE
                obstruction, down = self._approach_obstruction(touchdown, course, length, high)
                ranked.append((max(obstruction, 0.5), rank, stretch, (course, length, down)))
                if obstruction <= 0.5 or self.ground.terrain is None:
                    break

        return sorted(ranked)[self._go_arounds % len(ranked)][3]

    def _approach_obstruction(
        self, touchdown: Ned, course: float, length: float, high: float
    ) -> tuple[float, float]:
        """Return how far the ground, or the height of its begin, is in the way of an approach, m.

        The second value is the z of that height.
        """
        back = length + 3.0 * self.turn_radius(self._cruise)
        entry = touchdown[0] - back * math.cos(course), touchdown[1] - back * math.sin(course)
        down = min(touchdown[2] - high, self.ground.envelope_down(*entry, self._slope) - CLEARANCE)

        distance, allowed = self.ground.profile(touchdown[0], touchdown[1], course + math.pi, back)
        surface = allowed + self.ground.min_height
        path = np.maximum(touchdown[2] - (touchdown[2] - down) / length * distance, down)
        margin = 0.5 * high * np.minimum(distance / length, 1.0)
        into_ground = float(np.max(path + margin - surface))
        too_steep = (touchdown[2] - down) - MAX_GLIDE * length
        return max(into_ground, too_steep), down

    def _steer(
        self,
        course: float,
        down: float,
        speed: float,
        dt: float,
        *,
        look_ahead: float = 0.0,
        rate: float = 0.0,
        sink: float = 0.0,
        clearance: float = 1.0,
    ) -> None:
        """Steer toward a course and a height.

        Over the ground it stays above the height from which it can climb (see
        Ground.envelope_down), in a spiral while it is lower; `clearance` < 1: on the final
        approach, over the ground of the next `look_ahead` m with that share of the minimum height.
        """
        max_sink = math.inf

        # the ground
        if self.ground.terrain is not None and clearance < 1.0:
            self._spiral = False
            distance, allowed = self.ground.profile(
                self.position[0], self.position[1], self._course, look_ahead
            )
            allowed = allowed + (1.0 - clearance) * self.ground.min_height
            slope = 0.8 * self._climb / max(self._speed, 1.0)
            down = min(down, float(np.min(allowed + slope * distance)))
        elif self.ground.terrain is not None:
            here, max_sink = self._over_ground()
            margin = -CLEARANCE if self._spiral else 3.0
            self._spiral = self.position[2] > here + margin

        # sink and turn
        wanted_sink = min(sink + 0.8 * (down - self.position[2]), max_sink)
        sink = clip(wanted_sink, -self._climb, self._descent)
        course_error = math.remainder(course - self._course, 2 * math.pi)
        max_rate = GRAVITY * math.tan(self.limits.bank) / max(self._speed, 1.0)
        turn = clip(rate + 2.0 * course_error, -max_rate, max_rate)
        if self._spiral:
            turn = self._turn * max_rate
            sink = -self._climb
        self._fly(turn, sink, speed, dt)

    def _over_ground(self) -> tuple[float, float]:
        """Return the z of the envelope here, and the fastest sink that keeps above it.

        The way of the next moments counts.
        """
        north, east, down = self.position
        here = self.ground.envelope_down(north, east, self._slope)

        sink = (here - CLEARANCE - down) / LOOK_AHEAD[1]
        for time in LOOK_AHEAD:
            course = self._course + 0.5 * self._rate * time
            distance = self._speed * time
            ahead = self.ground.envelope_down(
                north + distance * math.cos(course), east + distance * math.sin(course), self._slope
            )
            sink = min(sink, (ahead - CLEARANCE - down) / time)
        return here, sink

    def _fly(self, rate: float, sink: float, speed: float, dt: float) -> None:
        """Turn at a rate, and change sink and speed within limits, for dt seconds."""
        old_speed = self._speed
        old_sink = self._sink
        speed_change = self.limits.acceleration * dt
        sink_change = self.limits.vertical_acceleration * dt
        self._speed += clip(speed - old_speed, -speed_change, speed_change)
        self._sink += clip(sink - old_sink, -sink_change, sink_change)
        self._rate = rate

        # along the chord of the turn
        self._course = math.remainder(self._course + 0.5 * rate * dt, 2 * math.pi)
        self._advance(0.5 * (old_speed + self._speed) * dt, self._course)
        self._course = math.remainder(self._course + 0.5 * rate * dt, 2 * math.pi)

        # no deeper than the ground
        down = self.position[2] + 0.5 * (old_sink + self._sink) * dt
        floor = self.ground.down(self.position[0], self.position[1])
        if down > floor:
            down = floor
            self._sink = min(0.0, self._sink)
        self.position = (self.position[0], self.position[1], down)
