# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A fleet whose vehicles leave their tracks where they have to, and come back to them.

Each vehicle has its own time, which is behind the fleet's by its delay. On its track it is exactly
where its plan has it at its own time. Off the track its own time waits for it, and its wish is to
be where the plan has it LOOK_AHEAD later.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.vehicle_states import VehicleStates
from rfly_trajectory.avoidance.avoidance import (
    CLIMB,
    COURSE,
    SPEED,
    STEP,
    TURN,
    Avoidance,
    AvoidanceAction,
    abilities,
    upright_cylinders,
)
from rfly_trajectory.fleet.fleet import KINDS, Fleet, MovedVehicles, Vehicle
from rfly_trajectory.fleet.follow_path import DEFAULT_ACCELERATION, MIN_RADIUS
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, AbilityTable

if TYPE_CHECKING:
    from rfly_collision.shapes.vehicle_shapes import VehicleShapes
    from rfly_terrain.world.solids import Solids

LOOK_AHEAD = 1.5
"""Time by which the place that a vehicle off its track goes for is ahead of its own, s."""
ON_TRACK = 0.05
"""Distance from its place on the track at which a vehicle is back on it, m."""
ON_SPEED = 0.3
"""Difference from the planned velocity at which a vehicle is back on its track, m/s."""
NEAR_END = 3.0
"""Distance from its end, m, at which a ground vehicle stops whose end is not ahead."""
AHEAD = 0.2
"""Sine of the largest angle between a ground vehicle's course and an end that is ahead."""
MOST_STEPS = 1200
"""Steps that are made up for at once; after a longer jump of time the fleet is put on its tracks.
"""
MOST_BACK = 1.0
"""Step of time back, s, up to which vehicles stand where they are; after a longer one the fleet is
put on its tracks."""
STEERING = math.radians(35.0)
"""Largest angle of the front wheels; with the wheelbase it gives the turning radius."""

# typical of a kind, where a vehicle has no limit of its own: m/s²
BRAKING = {"ground": 5.0, "multirotor": 5.0, "fixed_wing": 2.0}
LATERAL = {"ground": 5.0, "multirotor": 5.0, "fixed_wing": 9.81}
CLIMBING = {"ground": 0.0, "multirotor": 3.0, "fixed_wing": 3.0}
"""Vertical speed, m/s."""
SLOWEST = 0.7
"""Least speed of a fixed wing, as a share of its cruising speed."""


def fleet_abilities(fleet: Fleet, shapes: VehicleShapes | None = None) -> AbilityTable:
    """Return bodies and abilities of a fleet: its limits, or those typical of each kind.

    `shapes` are those of `load_shapes`, unless others are given.
    """
    vehicles = fleet.vehicles
    limits = [vehicle.limits.or_typical(vehicle.kind) for vehicle in vehicles]
    own = [vehicle.limits for vehicle in vehicles]

    shapes = shapes or load_shapes()
    body = upright_cylinders(
        shapes,
        [vehicle.vehicle_type for vehicle in vehicles],
        np.array([vehicle.scale for vehicle in vehicles], float).reshape(-1, 3),
    )
    cruise = np.array([max(vehicle.profile.cruise, 1e-3) for vehicle in vehicles])
    wing = np.array([vehicle.kind == "fixed_wing" for vehicle in vehicles], bool)
    steepest = [math.tan(math.radians(limit.max_slope_deg or 45.0)) for limit in limits]
    return abilities(
        np.array([KINDS[vehicle.kind] for vehicle in vehicles], np.uint8),
        radius=body.radius,
        below=body.below,
        height=body.height,
        most=cruise,
        least=np.where(wing, SLOWEST * cruise, 0.0),
        gain=[vehicle.profile.acceleration or DEFAULT_ACCELERATION for vehicle in vehicles],
        brake=[
            each.acceleration or BRAKING[vehicle.kind]
            for each, vehicle in zip(own, vehicles, strict=True)
        ],
        lateral=[
            each.lateral_acceleration or LATERAL[vehicle.kind]
            for each, vehicle in zip(own, vehicles, strict=True)
        ],
        turn_radius=[_turn_radius(vehicle) for vehicle in vehicles],
        climb=[
            each.climb_speed or CLIMBING[vehicle.kind]
            for each, vehicle in zip(own, vehicles, strict=True)
        ],
        steepest=np.maximum(steepest, 1e-3),
    )


def _turn_radius(vehicle: Vehicle) -> float:
    """Return the smallest radius of a vehicle's bends, m; 0 where only its speed limits them."""
    if vehicle.kind != "ground":
        return 0.0
    if vehicle.limits.turn_radius is not None:
        return max(vehicle.limits.turn_radius, MIN_RADIUS)
    return max((vehicle.wheelbase or 0.0) / math.tan(STEERING), MIN_RADIUS)


class Instant(NamedTuple):
    """A fleet at an instant."""

    state: Floats
    """States, (n, 7)."""
    late: Floats
    """Time by which each vehicle is behind its plan, (n,), s."""
    on_track: Bools
    """True for vehicles that are exactly on their plan, (n,)."""

    def changed(
        self, rows: Ints | Bools, state: Floats, late: Floats | float, on_track: Bools | bool
    ) -> Instant:
        """Return it with other values of some vehicles."""
        new = Instant(self.state.copy(), self.late.copy(), self.on_track.copy())
        new.state[rows] = state
        new.late[rows] = late
        new.on_track[rows] = on_track
        return new


class FleetAvoidance:
    """Vehicles of a fleet that keep clear of each other, in steps of STEP of fleet time."""

    def __init__(self, fleet: Fleet, time: float, solids: Solids | None = None) -> None:
        self.fleet = fleet
        self.solids = solids
        self._shapes = load_shapes()
        self._avoidance: Avoidance
        self._rows: Ints
        """Numbers of the vehicles that are moved here, (k,), rising."""
        self._mine: Bools
        """True for vehicles that are nobody else's, (n,)."""
        self._put_on_tracks(time)

    def _put_on_tracks(self, time: float) -> None:
        self._place_on_tracks(time)
        self._renew()

    def _place_on_tracks(self, time: float) -> None:
        n = len(self.fleet)
        self._time = time
        self._able = fleet_abilities(self.fleet, self._shapes)
        self._rows = np.arange(n)
        self._mine = np.ones(n, bool)
        state = self._planned(self._rows, np.full(n, time), np.ones(n))
        self._now = Instant(state, np.zeros(n), np.ones(n, bool))
        self._before = self._now

    def _renew(self, kept: Ints | None = None) -> None:
        """Begin anew with the present states of the vehicles that are moved.

        `kept` says for each its earlier number in `_avoidance`, where it keeps what it has chosen
        and how long it has waited; -1 for others.
        """
        able = AbilityTable._make(column[self._rows] for column in self._able)
        state = self._now.state[self._rows]
        renewed = Avoidance(able, state, terrain=self.fleet.terrain, solids=self.solids)
        if kept is not None:
            renewed.remember(self._avoidance, kept)
        self._avoidance = renewed

    def _places_of(self, rows: Ints) -> Ints:
        """Return the numbers in `_avoidance` of vehicles of the fleet; -1: they are not moved."""
        places = np.full(len(self._mine), -1)
        places[self._rows] = np.arange(len(self._rows))
        return places[rows]

    @property
    def off_track(self) -> list[str]:
        """Names of the vehicles that are off their tracks."""
        rows = np.flatnonzero(self._mine & ~self._now.on_track)
        return [self.fleet.vehicles[row].name for row in rows.tolist()]

    @property
    def acceleration(self) -> Floats:
        """Accelerations in the present step, (n, 3), m/s²."""
        return (velocity_of(self._now.state) - velocity_of(self._before.state)) / STEP

    @property
    def late(self) -> float:
        """Delay of the last vehicle against its plan, s."""
        return float(self._now.late[self._mine].max(initial=0.0))

    @property
    def waited(self) -> Floats:
        """Time for which each vehicle has been waiting without progress, (n,), s."""
        return self._avoidance.waited

    @property
    def fallen_back(self) -> int:
        """Number of vehicles that brake or circle because nothing else is safe."""
        fell_back = self._avoidance.action == AvoidanceAction.FELL_BACK
        return int(np.count_nonzero(fell_back & self._mine[self._rows]))

    def use(self, fleet: Fleet, solids: Solids | None, placed: Collection[str] = ()) -> None:
        """Go on with other vehicles, paths, ground or objects.

        Vehicles stay where they are, but for those that were `placed` elsewhere, by name. On
        another ground all are put on their tracks.
        """
        rows = {vehicle.name: row for row, vehicle in enumerate(self.fleet.vehicles)}
        known = np.array([rows.get(vehicle.name, -1) for vehicle in fleet.vehicles], np.int64)
        known[[vehicle.name in placed for vehicle in fleet.vehicles]] = -1
        same = np.array(
            [
                row >= 0 and self.fleet.vehicles[row] is vehicle
                for row, vehicle in zip(known.tolist(), fleet.vehicles, strict=True)
            ],
            bool,
        )
        new_ground = fleet.terrain is not self.fleet.terrain
        old = (self._before, self._now)
        stays = known >= 0
        kept = known.copy()
        kept[stays] = self._places_of(known[stays])
        self.fleet = fleet
        self.solids = solids
        self._place_on_tracks(self._time)
        self._rows = np.flatnonzero(self._mine | (kept >= 0))
        if new_ground:
            self._renew()
            return

        # those that were here
        new = []
        for each in old:
            state = self._now.state.copy()
            late = self._now.late.copy()
            on_track = ~stays
            state[stays] = each.state[known[stays]]
            late[same] = each.late[known[same]]
            on_track[same] = each.on_track[known[same]]
            new.append(Instant(state, late, on_track))
        self._before, self._now = new
        self._renew(kept[self._rows])

    def advance(self, time: float) -> None:
        """Move the fleet to a fleet time, s; to the end of the step in which it is.

        A small step back, as a wall clock does it, changes nothing.
        Raise ValueError for a time that is not finite.
        """
        finite_number("time", time, "s", error=ValueError)
        if not self._time - MOST_BACK <= time <= self._time + MOST_STEPS * STEP:
            self._put_on_tracks(time)
        while self._time < time:
            self._step()

    def sample(
        self, time: float, *, source: str = "", stamp_ns: int = 0, rows: Ints | None = None
    ) -> VehicleStates:
        """Return the states at a fleet time, s, to which the fleet is moved first.

        `rows` (k,) are the numbers of the vehicles that are wanted, by default all.
        """
        self.advance(time)
        before, now = self._before, self._now
        share = min(max((time - self._time) / STEP + 1.0, 0.0), 1.0)
        on_track = before.on_track & now.on_track
        own = time - (before.late + share * (now.late - before.late))

        # off their tracks: between two steps
        wanted = np.arange(len(on_track)) if rows is None else rows
        places = np.flatnonzero(~on_track[wanted])
        begin = before.state[wanted[places]]
        end = now.state[wanted[places]]
        state = begin + share * (end - begin)
        turned = (end[:, COURSE] - begin[:, COURSE] + math.pi) % (2.0 * math.pi) - math.pi
        course = begin[:, COURSE] + share * turned
        moved = np.maximum(np.abs(state[:, SPEED]) * STEP, 1e-3)
        curvature = np.where(state[:, SPEED] < 0.0, -1.0, 1.0) * turned / moved
        points = np.column_stack(
            [state[:, :2], np.cos(course), np.sin(course), curvature, 0.0 * course]
        )
        gain = (end[:, SPEED] - begin[:, SPEED]) / STEP
        progress = np.column_stack([0.0 * course, state[:, SPEED], gain, 0.0 * course])
        away = MovedVehicles(places, points, progress, state[:, 2], state[:, CLIMB])
        return self.fleet.sample_apart(
            own[wanted], away, source=source, stamp_ns=stamp_ns, rows=rows
        )

    def _planned(self, rows: Ints, own: Floats, side: Floats) -> Floats:
        """Return the planned states (k, 7) of vehicles (k,) at their own times (k,), s.

        `side` (k,) is that to which a fixed wing circles that flies straight.
        """
        motion = self.fleet.sample_vehicles(rows, np.maximum(own, 0.0))
        points = motion.points
        state = np.empty((len(rows), 7))
        state[:, :3] = motion.position
        state[:, COURSE] = np.arctan2(points[:, 3], points[:, 2])
        state[:, SPEED] = motion.progress[:, 1]
        state[:, CLIMB] = motion.slope * motion.progress[:, 1]
        state[:, TURN] = points[:, 4]

        kind = self._able.kind[rows]
        state[kind == GROUND, CLIMB] = 0.0
        back = (kind != GROUND) & (state[:, SPEED] < 0.0)
        state[back, COURSE] += math.pi
        state[back, SPEED] *= -1.0
        straight = np.abs(points[:, 4]) < 1e-9
        wings = kind == FIXED_WING
        state[wings, TURN] = np.where(straight, side, np.sign(points[:, 4]))[wings]
        return state

    def _step(self) -> None:
        """Move all vehicles by a step."""
        rows = self._rows
        now = self._now
        state = now.state[rows]
        late = now.late[rows]
        side = np.where(state[:, TURN] < 0.0, -1.0, 1.0)
        own = self._time - late
        here = self._planned(rows, own, side)
        there = self._planned(rows, own + STEP, side)

        # near enough to the track: exactly on it
        error = state[:, :3] - here[:, :3]
        velocity = velocity_of(state) - velocity_of(here)
        exact = now.on_track[rows] | (
            (np.linalg.norm(error, axis=1) <= ON_TRACK)
            & (np.linalg.norm(velocity, axis=1) <= ON_SPEED)
        )
        wish = np.column_stack([there[:, COURSE : CLIMB + 1], np.zeros(len(state))])
        cars = self._avoidance.able.kind == GROUND
        wish[cars, 3] = (there[:, TURN] * there[:, SPEED])[cars]
        back = np.flatnonzero(~exact)
        wishes_back, is_behind = self._wishes_back(state, own, side, here)
        wish[back] = wishes_back[back]

        self._avoidance.step(wish, there, exact)
        after = self._avoidance.state.copy()
        on_track = exact & (np.abs(after - there) <= 1e-9).all(axis=1)

        # a vehicle's own time waits while it is behind
        along = (error[:, :2] * velocity_of(here)[:, :2]).sum(axis=1)
        speed = np.abs(here[:, SPEED])
        ahead = np.divide(along, speed**2, out=np.zeros(len(state)), where=speed > 0.1)
        slowest = np.where(is_behind, 0.0, 1.0)
        pace = np.where(exact, 1.0, np.clip(1.0 + ahead, slowest, 1.5))
        late = np.maximum(late + STEP * (1.0 - pace), 0.0)
        self._before = now
        self._now = now.changed(rows, after, late, on_track)
        self._time += STEP

    def _wishes_back(
        self, state: Floats, own: Floats, side: Floats, here: Floats
    ) -> tuple[Floats, Bools]:
        """Return the wishes (n, 4) with which vehicles come back to their tracks.

        Also return which of them have farther to go than from where their plans have them, (n,):
        not those that stop near their ends, or are where their tracks will turn back to.
        """
        able = self._avoidance.able
        aim = self._planned(self._rows, own + LOOK_AHEAD, side)
        away = aim[:, :3] - state[:, :3]
        distance = np.hypot(away[:, 0], away[:, 1])
        speed = np.clip(distance / LOOK_AHEAD, able.least, able.most)

        # an end that is not ahead is near enough
        ends = (able.kind == GROUND) & (aim[:, SPEED] == 0.0) & (distance < NEAR_END)
        forward = np.column_stack([np.cos(state[:, COURSE]), np.sin(state[:, COURSE])])
        along = (away[:, :2] * forward).sum(axis=1)
        stops = ends & (along < math.sqrt(1.0 - AHEAD**2) * distance)
        speed[stops] = 0.0

        course = np.arctan2(away[:, 1], away[:, 0])
        course = np.where(distance < ON_TRACK, aim[:, COURSE], course)
        reverse = (able.kind == GROUND) & (aim[:, SPEED] < 0.0)
        course[reverse] += math.pi
        speed[reverse] *= -1.0
        climb = np.clip(away[:, 2] / LOOK_AHEAD, -able.climb, able.climb)
        left = np.linalg.norm(away, axis=1)
        is_behind = ~stops & (left > np.linalg.norm(aim[:, :3] - here[:, :3], axis=1))
        return np.column_stack([course, speed, climb, np.zeros(len(state))]), is_behind


def velocity_of(state: Floats) -> Floats:
    """Return the velocities (n, 3) of states (n, 7), m/s."""
    speed = state[:, SPEED]
    course = state[:, COURSE]
    return np.stack([speed * np.cos(course), speed * np.sin(course), state[:, CLIMB]], -1)
