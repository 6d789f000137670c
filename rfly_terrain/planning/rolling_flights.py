# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Planned flights that take off and land on rolling wheels, where that saves energy.

A plan drives along the track of a take-off up to the place where the vehicle is at height. From
there it flies, as from a stand: a follower that rolls lifts off before that place. In the same way
the track of a landing begins below the place where the glide begins. docs/model, section 9.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import PlanError
from rfly_terrain.planning.drive import are_free
from rfly_terrain.planning.fly import upright_flight
from rfly_terrain.planning.plan import DRIVE, FLY, Plan, PlanPose, join_plans, steps_between
from rfly_terrain.planning.rolling_tracks import (
    EARLY_TIME,
    MOST_BEND,
    height_of_slant,
    rolls_at,
    slant_problem,
    track_problem,
)
from rfly_terrain.planning.vehicle_classes import Driving, Flying, Rolling, VehicleClass

if TYPE_CHECKING:
    from rfly_terrain.planning.planner import Planner

SLACK = 0.5
"""Length by which a track is longer than needed, m: a follower measures it by the plan's poses."""

MOST_TURN = math.radians(8.0)
"""Angle to its track at which a vehicle that stands begins a take-off or ends a landing, rad."""

TRIES = 4
"""Number of flights that are tried until their heights and the tracks' lengths agree."""

SPACING = 2.0
"""Distance of the poses of a track, at most, m."""


class Flight(NamedTuple):
    """Flight between two places, and what is before and after it."""

    start: PlanPose
    goal: PlanPose
    takes_off: bool
    """True if it begins on the ground."""
    lands: bool
    """True if it ends on the ground."""
    drives_before: bool
    """True if the vehicle drives to its start."""
    drives_after: bool
    """True if the vehicle drives on from its goal."""


class _Flown(NamedTuple):
    """Flight between its tracks, each (2, 2), m; None: straight up or down."""

    plan: Plan
    heights: tuple[float, float]
    """Heights of its ends above the ground, m."""
    take_off: Floats | None
    landing: Floats | None


class RollingFlights:
    """Flights of one class that rolls, over one terrain."""

    def __init__(
        self,
        planner: Planner,
        vehicle: VehicleClass,
        rolling: Rolling,
        aloft: Callable[[PlanPose, PlanPose, bool, bool], Plan],
    ) -> None:
        """`aloft(start, goal, takes_off, lands)` plans a flight, with the way up but not down."""
        assert vehicle.drive is not None
        assert vehicle.fly is not None
        self._planner = planner
        self._vehicle = vehicle
        self._drive: Driving = vehicle.drive
        self._fly: Flying = vehicle.fly
        self._rolling = rolling
        self._aloft = aloft

    # --- energy

    def hoped(self, height: Floats) -> tuple[Floats, Floats]:
        """Return the energies, J, that take-offs to heights (m) and landings save if they roll.

        They are 0 where these do not roll, whatever the ground.
        """
        up = np.where(self._rolls_off(height), self.saved_by_take_off(height), 0.0)
        down = np.where(self._rolls_out(height), self.saved_by_landing(height), 0.0)
        return up, down

    def saved_by_take_off(self, height: Any) -> Any:
        """Return the energy, J, that a rolling take-off to a height (m) saves; below 0: costs."""
        fly = self._fly
        standing = fly.takeoff_energy + fly.energy(self._vehicle.mass, 0.0, height)
        gained = self._gained_by(self._rolling.takeoff_speed)
        return standing + gained - self._take_off_energy(height)

    def saved_by_landing(self, height: Any) -> Any:
        """Return the energy, J, that a rolling landing from a height (m) saves; below 0: costs."""
        fly = self._fly
        standing = fly.landing_energy + fly.energy(self._vehicle.mass, 0.0, -np.asarray(height))
        gained = self._gained_by(self._rolling.landing_speed)
        return standing + gained - self._landing_energy(height)

    def _take_off_energy(self, height: Any) -> Any:
        """Return the energy of a take-off, J, beyond that of a drive along its track."""
        rolling = self._rolling
        climb = rolling.lift_off_energy + rolling.climb_power * height / rolling.climb_rate
        return climb - self._drive.energy(self._vehicle.mass, rolling.climb_way(height), 0.0)

    def _landing_energy(self, height: Any) -> Any:
        """Return the energy of a landing, J, beyond that of a drive along its track."""
        rolling = self._rolling
        glide = rolling.flare_energy + rolling.sink_power * height / rolling.sink_rate
        return glide - self._drive.energy(self._vehicle.mass, rolling.glide_way(height), 0.0)

    def _rolls_off(self, height: Any) -> Any:
        """Return whether take-offs to heights, m, roll."""
        return rolls_at(height, self._rolling.highest_takeoff)

    def _rolls_out(self, height: Any) -> Any:
        """Return whether landings from heights, m, roll."""
        return rolls_at(height, self._rolling.highest_landing)

    def _gained_by(self, speed: float) -> float:
        """Return the energy, J, that a flight saves which begins or ends at a speed, m/s."""
        fly = self._fly
        if fly.acceleration is None:
            return 0.0
        left = max(fly.speed - speed, 0.0)
        later = (fly.speed**2 - left**2) / (2.0 * fly.acceleration * fly.speed)
        return later * 0.5 * (fly.power + (fly.hover_power or fly.power))

    # --- plans

    def plan(self, flight: Flight, off: bool = True, down: bool = True) -> Plan | None:
        """Return the plan of a flight that rolls off or out; None if it can't, or saves nothing.

        `off`, `down`: whether it may take off, and land, so.
        """
        flown = self._between_tracks(flight, off and flight.takes_off, down and flight.lands)
        if flown is None:
            if not (off and down):
                return None
            return self.plan(flight, down=False) or self.plan(flight, off=False)
        if flown.take_off is not None and self._is_bad_take_off(flight, flown):
            return self.plan(flight, off=False, down=down)
        if flown.landing is not None and self._is_bad_landing(flight, flown):
            return self.plan(flight, off=off, down=False)
        if flown.take_off is None and flown.landing is None:
            return None
        return self._joined(flight, flown)

    def _between_tracks(self, flight: Flight, off: bool, down: bool) -> _Flown | None:
        """Return a flight with tracks that are long enough for its heights; None without one.

        A track leads along the flight: where the vehicle drives anyway outside it, else inside.
        """
        ways = [0.0, 0.0]
        start = flight.start
        goal = flight.goal
        for _ in range(TRIES):
            try:
                plan = self._aloft(start, goal, flight.takes_off, flight.lands)
            except PlanError:
                if ways == [0.0, 0.0]:
                    raise
                return None  # it can't begin or end there
            heights = self._heights(plan)
            up, to = heights
            rolls_off = off and self._rolls_off(up)
            rolls_out = down and self._rolls_out(to)
            needed = (
                rolls_off * (self._rolling.takeoff_way(up) + SLACK),
                rolls_out * (self._rolling.glide_way(to) + self._rolling.roll_out + SLACK),
            )
            first, last = _courses(plan.position)
            if needed[0] <= ways[0] and needed[1] <= ways[1]:
                return self._with_tracks(flight, plan, heights, ways, first, last)

            ways = [max(way, most) for way, most in zip(ways, needed, strict=True)]
            if not flight.drives_before:
                start = _moved(flight.start, first, ways[0])
            if not flight.drives_after:
                goal = _moved(flight.goal, last, -ways[1])
            way = np.array((goal.x - start.x, goal.y - start.y))
            if way @ (flight.goal.x - flight.start.x, flight.goal.y - flight.start.y) <= 0.0:
                return None
        return None

    @staticmethod
    def _with_tracks(
        flight: Flight,
        plan: Plan,
        heights: tuple[float, float],
        ways: list[float],
        first: Floats,
        last: Floats,
    ) -> _Flown:
        """Return a flight and its tracks of the lengths `ways`, m; 0: none."""
        up = plan.position[0, :2]
        to = plan.position[-1, :2]
        begin = up - ways[0] * first
        end = to + ways[1] * last
        if not flight.drives_before:
            begin = np.array((flight.start.x, flight.start.y))
        if not flight.drives_after:
            end = np.array((flight.goal.x, flight.goal.y))
        take_off = np.array([begin, up]) if ways[0] else None
        landing = np.array([to, end]) if ways[1] else None
        return _Flown(plan, heights, take_off, landing)

    def _heights(self, plan: Plan) -> tuple[float, float]:
        """Return the heights of a climb and a glide at a flight's ends, m."""
        position = plan.position
        terrain = self._planner.terrain
        rises = np.hypot(*(position[1, :2] - position[0, :2])) < 1e-9
        first, last = _courses(position)
        x, y, top = position[1 if rises else 0].tolist()
        take_off = height_of_slant(
            terrain, np.array((x, y)), -first, top, self._rolling.takeoff_way
        )
        x, y, top = position[-1].tolist()
        landing = height_of_slant(terrain, np.array((x, y)), last, top, self._rolling.glide_way)
        return take_off, landing

    def _is_bad_take_off(self, flight: Flight, flown: _Flown) -> bool:
        """Return whether anything is against a rolling take-off on its track."""
        track = flown.take_off
        assert track is not None
        if not self._rolls_off(flown.heights[0]):  # other heights at another place
            return True
        if not flight.drives_before and _is_turned(flight.start, track):
            return True
        climbs = track[0] + self._rolling.run_up * _direction(track)
        slant = np.array([climbs, track[1]])
        return self._is_bad(track, track) or bool(
            slant_problem(self._planner.terrain, track[0], slant, flown.heights[0])
        )

    def _is_bad_landing(self, flight: Flight, flown: _Flown) -> bool:
        """Return whether anything is against a rolling landing on its track."""
        track = flown.landing
        assert track is not None
        if not self._rolls_out(flown.heights[1]):
            return True
        if not flight.drives_after and _is_turned(flight.goal, track):
            return True
        direction = _direction(track)
        _, last = _courses(flown.plan.position)
        if float(last @ direction) < math.cos(MOST_BEND):
            return True
        glide = self._rolling.glide_way(flown.heights[1])
        touch = track[0] + glide * direction
        early = touch - EARLY_TIME * self._rolling.landing_speed * direction
        return self._is_bad(track, np.array([early, track[1]])) or bool(
            slant_problem(
                self._planner.terrain, touch, np.array([touch, track[0]]), flown.heights[1]
            )
        )

    def _is_bad(self, track: Floats, rolled: Floats) -> bool:
        """Return whether a track is not free, or its rolled part steep or rough."""
        grid, weight = self._planner.driving_grid(self._vehicle)
        length = float(np.hypot(*(track[1] - track[0])))
        count = max(2, math.ceil(2.0 * length / grid.resolution) + 1)
        if not are_free(np.linspace(track[0], track[1], count), grid, weight).all():
            return True
        return bool(
            track_problem(
                self._planner.terrain,
                rolled,
                width=self._rolling.track,
                wheelbase=2.0 * self._drive.limits.half_wheelbase,
                most_roughness=self._rolling.max_roughness,
            )
        )

    def _joined(self, flight: Flight, flown: _Flown) -> Plan:
        """Return the plan of a flight with its tracks."""
        fly = self._fly
        rolls_off = flown.take_off is not None
        rolls_out = flown.landing is not None
        position = flown.plan.position
        energy, duration = fly.path(
            self._vehicle.mass,
            position[1:] if rolls_off else position,
            min(self._rolling.takeoff_speed, fly.speed) * rolls_off,
            min(self._rolling.landing_speed, fly.speed) * rolls_out,
        )
        plans = []
        notes = []
        if flown.take_off is not None:
            energy += float(self._take_off_energy(flown.heights[0]))
            saved = self.saved_by_take_off(flown.heights[0])
            notes.append(_note("take-off", flown.take_off[0], saved))
            plans.append(self._along(flown.take_off, starts=not flight.drives_before))
        elif flight.takes_off:
            energy += fly.takeoff_energy

        heading = flown.plan.heading
        down = []
        if flight.lands:
            ground = float(self._planner.terrain.altitude(*position[-1, :2].tolist()))
            straight = upright_flight(self._vehicle, position[-1], ground, float(heading[-1]))
            if flown.landing is None:
                energy += fly.landing_energy + straight.energy
                duration += straight.duration
            else:
                energy += float(self._landing_energy(flown.heights[1]))
                saved = self.saved_by_landing(flown.heights[1])
                notes.append(_note("landing", flown.landing[1], saved))
                down = [self._along(flown.landing, starts=not flight.drives_after)]
            position = np.concatenate([position, straight.position[1:]])
            heading = np.append(heading, heading[-1])
        mode = np.full(len(position) - 1, FLY, np.uint8)
        plans.append(Plan(position, heading, mode, energy, duration, tuple(notes)))
        return join_plans([*plans, *down])

    def _along(self, track: Floats, starts: bool) -> Plan:
        """Return the drive along a track; `starts`: it is a drive of its own, from rest to rest."""
        drive = self._drive
        count = max(2, math.ceil(float(np.hypot(*(track[1] - track[0]))) / SPACING) + 1)
        xy = np.linspace(track[0], track[1], count)
        position = np.column_stack([xy, self._planner.terrain.altitude(xy[:, 0], xy[:, 1])])
        distance, climb = steps_between(position)
        energy = float(drive.energy(self._vehicle.mass, distance, climb).sum())
        direction = _direction(track)
        heading = np.full(count, math.atan2(direction[1], direction[0]))
        return Plan(
            position,
            heading,
            np.full(count - 1, DRIVE, np.uint8),
            energy + drive.start_energy * starts,
            float(np.hypot(distance, climb).sum()) / drive.speed,
        )


def _note(what: str, place: Floats, saved: float) -> str:
    x, y = place.tolist()
    return f"rolling {what} at ({x:.0f}, {y:.0f}): it saves {saved / 1e3:.1f} kJ"


def _direction(track: Floats) -> Floats:
    """Return the unit vector along a track, (2,)."""
    way = track[1] - track[0]
    return np.asarray(way / np.hypot(*way))


def _courses(position: Floats) -> tuple[Floats, Floats]:
    """Return the unit vectors over ground of the first and last steps of a flight, (2,) each."""
    steps = np.diff(position[:, :2], axis=0)
    length = np.hypot(*steps.T)
    steps = steps[length > 1e-6] / length[length > 1e-6, None]
    return steps[0], steps[-1]


def _moved(pose: PlanPose, direction: Floats, way: float) -> PlanPose:
    """Return a pose at a distance along a direction, m; 0: the pose itself."""
    if way == 0.0:
        return pose
    x, y = ((pose.x, pose.y) + way * direction).tolist()
    return PlanPose(x, y)


def _is_turned(pose: PlanPose, track: Floats) -> bool:
    """Return whether a vehicle that stands at a pose points away from a track."""
    if pose.heading is None:
        return False
    direction = _direction(track)
    off = math.remainder(pose.heading - math.atan2(direction[1], direction[0]), math.tau)
    return abs(off) > MOST_TURN
