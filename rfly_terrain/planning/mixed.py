# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Least-energy plans that drive and fly: a coarse graph of both, refined piece by piece.

The graph has two layers over one lattice. Edges on the ground lead over cells that can be driven
on. Edges in the air lead at the minimum height above the highest ground of each block. Take-offs
and landings connect the layers straight up and down, on ground less steep than
`max_takeoff_slope_deg`. The cheapest path through the graph competes with the plan that only drives
and the one that only flies; of those that are possible the cheapest is taken.

A class that rolls has each of them a second time. In the graph take-offs and landings have the
energy of rolling ones then, at the heights at which it rolls. In the plan those roll that save
energy and have a straight track: along the flight, before or beyond the place where the vehicle
leaves its way on the ground or comes back to it, or at the ends of a flight that nothing is driven
before or after.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import PlanError
from rfly_terrain.costmap.traversability import LETHAL
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.height_map.lattice import EIGHT, Edges, cheapest_path, neighbours
from rfly_terrain.planning.drive import are_free
from rfly_terrain.planning.fly import highest_objects, plan_fly, upright_flight
from rfly_terrain.planning.nearest_free import name_nearest_free
from rfly_terrain.planning.plan import FLY, Plan, PlanPose, join_plans, off_the_map
from rfly_terrain.planning.rolling_flights import Flight, RollingFlights
from rfly_terrain.planning.vehicle_classes import Driving, Flying, VehicleClass

if TYPE_CHECKING:
    from rfly_terrain.planning.planner import Planner

LATTICE = 160
"""Points on a side of the lattice, at most."""
ON_GROUND = 1.0
"""Height above the ground up to which a place counts as on it, m."""
_SAMPLES_PER_CELL = 2
LEAST_ENERGY = 1.0
"""Energy of a take-off or a landing in the graph, at least, J."""


def plan_mixed(planner: Planner, vehicle: VehicleClass, start: PlanPose, goal: PlanPose) -> Plan:
    """Return the plan of least energy that drives, flies, or does one after the other.

    A place no more than ON_GROUND above the ground is on it. Between two places in the air the
    vehicle stays in the air. Raises PlanError if no kind of plan is possible, with the reason of
    the first.
    """
    if vehicle.drive is None or vehicle.fly is None or vehicle.fly.hover_power is None:
        raise PlanError("cannot_mix", vehicle.cannot("both drive and take off", "land_air"))
    mixed = _MixedPlanner(planner, vehicle, vehicle.drive, vehicle.fly, start, goal)

    plans: list[Plan] = []
    errors: list[PlanError] = []
    for make in mixed.ways():
        try:
            plans.append(make())
        except PlanError as error:
            errors.append(error)

    if not plans:
        raise PlanError(errors[0].reason, "; ".join(dict.fromkeys(str(error) for error in errors)))
    return min(plans, key=lambda plan: plan.energy)


class _Run(NamedTuple):
    """Part of a path that is driven, or flown."""

    flies: bool
    begin: PlanPose
    end: PlanPose


class _MixedPlanner:
    """Plans of one vehicle from one start to one goal."""

    def __init__(
        self,
        planner: Planner,
        vehicle: VehicleClass,
        drive: Driving,
        fly: Flying,
        start: PlanPose,
        goal: PlanPose,
    ) -> None:
        self._planner = planner
        self._vehicle = vehicle
        self._drive = drive
        self._fly = fly
        self._start = start
        self._goal = goal
        self._starts_low = self._on_ground("start", start)
        self._ends_low = self._on_ground("goal", goal)
        self._landing = planner.landing_grid(vehicle)
        self._rolling: RollingFlights | None = None
        if vehicle.rolling is not None:
            self._rolling = RollingFlights(planner, vehicle, vehicle.rolling, self._aloft)

    def ways(self) -> Iterator[Callable[[], Plan]]:
        """Yield the functions that may make a plan: by driving, flying, and both."""
        if self._starts_low and self._ends_low:
            yield lambda: self._planner.drive(self._vehicle, self._start, self._goal)
        flight = [_Run(True, self._start, self._goal)]
        for rolls in (False, True) if self._rolling is not None else (False,):
            yield partial(self._planned, flight, rolls)
            if self._starts_low or self._ends_low:
                yield partial(self._through_graph, rolls, rolls)
        if self._rolling is not None and (self._starts_low or self._ends_low):
            # where the ground forbids what the graph hoped for
            yield partial(self._through_graph, False, True)

    def _on_ground(self, name: str, pose: PlanPose) -> bool:
        """Return whether a pose is on the ground; raise PlanError where it lies off the map."""
        terrain = self._planner.terrain
        if not terrain.inside(pose.x, pose.y):
            raise off_the_map(name, pose.x, pose.y, terrain.bounds)
        return pose.z is None or pose.z <= float(terrain.altitude(pose.x, pose.y)) + ON_GROUND

    def _can_land(self, x: Any, y: Any) -> Any:
        """Return whether the vehicle can land at places x, y, m."""
        landing = self._landing
        row, column = (
            np.clip(np.floor((np.asarray(v) - o) / landing.resolution).astype(int), 0, n - 1)
            for v, o, n in zip((y, x), landing.origin[::-1], landing.cost.shape, strict=True)
        )
        cost = landing.cost[row, column]
        return (cost >= 0) & (cost < LETHAL)

    def _check_landing(self, pose: PlanPose, what: str) -> None:
        """Raise PlanError for a place where the vehicle can't take off or land; `what`: which."""
        if self._can_land(pose.x, pose.y):
            return
        landing = self._landing
        free = (landing.cost >= 0) & (landing.cost < LETHAL)
        nearest = name_nearest_free(free, landing.origin, landing.resolution, pose, None)
        limit = f"above {self._fly.max_takeoff_slope_deg:g}°{nearest}"
        raise PlanError(
            "no_landing", f"({pose.x:g}, {pose.y:g}): too steep or rough to {what}, {limit}"
        )

    def _aloft(self, start: PlanPose, goal: PlanPose, takes_off: bool, lands: bool) -> Plan:
        """Return a flight between places; from one on the ground it rises, at the end it stays."""
        planner = self._planner
        if takes_off:
            start = dataclasses.replace(start, z=self._ground(start))
        if lands:
            goal = dataclasses.replace(goal, z=None)
        return plan_fly(
            planner.terrain,
            self._vehicle,
            start,
            goal,
            hold_altitude=True,
            obstacles=planner.obstacles,
        )

    def _ground(self, pose: PlanPose) -> float:
        """Return the height of the ground at a pose, m."""
        return float(self._planner.terrain.altitude(pose.x, pose.y))

    def _flight(self, flight: Flight, rolls: bool) -> Plan:
        """Return a plan from place to place in the air.

        It has a take-off and a landing at places on the ground; `rolls`: it may roll off and out.
        """
        start, goal, takes_off, lands, *_ = flight
        if takes_off:
            self._check_landing(start, "take off from")
        if lands:
            self._check_landing(goal, "land on")
        if rolls and self._rolling is not None:
            rolled = self._rolling.plan(flight)
            if rolled is not None:
                return rolled
        flown = self._aloft(start, goal, takes_off, lands)

        fly = self._fly
        once = fly.takeoff_energy * takes_off + fly.landing_energy * lands
        flown = dataclasses.replace(flown, energy=flown.energy + once)
        if not lands:
            return flown
        heading = float(flown.heading[-1])
        return join_plans(
            [flown, upright_flight(self._vehicle, flown.position[-1], self._ground(goal), heading)]
        )

    def _through_graph(self, hopes: bool, rolls: bool) -> Plan:
        """Return the cheapest path over the graph; its runs are planned finely.

        `hopes`: rolling take-offs and landings count in the graph as if all ground allowed them.
        `rolls`: in the plan they roll where the ground allows it.
        """
        points, edges, heights = self._graph
        edges = [*edges, *self._taken_off(points, heights, hopes)]
        count = len(points)
        first = count - 2 + (0 if self._starts_low else count)
        last = count - 1 + (0 if self._ends_low else count)
        path = cheapest_path(edges, 2 * count, first, [last])
        if not path:
            raise PlanError("unreachable", "no path leads there, driving or flying")

        # runs of nodes on one layer
        runs = [
            (flies, list(nodes))
            for flies, nodes in itertools.groupby(path, key=lambda node: node >= count)
        ]
        return self._through_runs(points, runs, rolls)

    def _through_runs(
        self, points: Floats, runs: list[tuple[bool, list[int]]], rolls: bool
    ) -> Plan:
        """Return a plan for runs over nodes; nodes of numbers n and more fly.

        A plan that begins or ends in the air above a run on the ground does so straight down or up.
        """
        count = len(points)
        start = self._start
        goal = self._goal
        moves: list[_Run] = []
        for index, (flies, nodes) in enumerate(runs):
            places = [points[node % count] for node in (nodes[0], nodes[-1])]
            begin = start if index == 0 else PlanPose(*places[0].tolist())
            end = goal if index == len(runs) - 1 else PlanPose(*places[1].tolist())
            if math.hypot(end.x - begin.x, end.y - begin.y) < 1e-6:
                # it takes off or lands in place: below, or with the neighbouring run
                continue

            # headings where it has come straight down, goes straight up, or has landed
            if index == 1 and not moves:
                begin = dataclasses.replace(begin, heading=start.heading)
            if index == len(runs) - 2 and _in_place(points, runs[-1][1]):
                end = dataclasses.replace(end, heading=goal.heading)
            moves.append(_Run(flies, begin, end))
        if not moves:
            raise PlanError(
                "same_place",
                f"the goal ({goal.x:g}, {goal.y:g}) lies straight above or below the start",
            )

        # straight down at the start, and straight up at the goal
        plan = self._planned(moves, rolls)
        if not self._starts_low and _in_place(points, runs[0][1]):
            assert start.z is not None
            place = plan.position[0]
            above = np.array([*place[:2], start.z])
            heading = float(plan.heading[0])
            plan = join_plans(
                [upright_flight(self._vehicle, above, float(place[2]), heading), plan]
            )
        if not self._ends_low and _in_place(points, runs[-1][1]):
            assert goal.z is not None
            heading = float(plan.heading[-1])
            up = upright_flight(self._vehicle, plan.position[-1], goal.z, heading)
            plan = join_plans([plan, up])
        return plan

    def _planned(self, runs: Sequence[_Run], rolls: bool) -> Plan:
        """Return a plan for runs that drive and fly in turn; `rolls`: where that saves energy."""
        flights = {}
        for index, run in enumerate(runs):
            if run.flies:
                takes_off = index > 0 or self._starts_low
                lands = index < len(runs) - 1 or self._ends_low
                after = index < len(runs) - 1
                flight = Flight(run.begin, run.end, takes_off, lands, index > 0, after)
                flights[index] = self._flight(flight, rolls)

        # drives lead from flight to flight, by the tracks of those that roll
        plans: list[Plan] = []
        for index, run in enumerate(runs):
            if run.flies:
                plans.append(flights[index])
                continue
            following = flights.get(index + 1)
            rolls_off = following is not None and following.mode[0] != FLY
            begin = _end_of(plans[-1], -1) if plans else run.begin
            end = _end_of(following, 0) if following is not None and rolls_off else run.end
            plans.append(self._planner.drive(self._vehicle, begin, end))
        return join_plans(plans)

    @functools.cached_property
    def _graph(self) -> tuple[Floats, list[Edges], Floats]:
        """Places, (n, 2), edges on the ground and in the air, and the flights' heights, (n,), m.

        Places are the lattice, then start and goal. Nodes of numbers n and more fly.
        """
        planner = self._planner
        radius = self._vehicle.radius
        resolution = self._landing.resolution
        rows, columns = self._landing.cost.shape
        stride = max(1, math.ceil(max(rows, columns) / LATTICE))
        side = stride * resolution
        row = np.arange(stride // 2, rows, stride)
        column = np.arange(stride // 2, columns, stride)
        x = self._landing.origin[0] + (column + 0.5) * resolution
        y = self._landing.origin[1] + (row + 0.5) * resolution
        lattice = np.stack(np.broadcast_arrays(x[None, :], y[:, None]), axis=-1).reshape(-1, 2)
        ends = [[self._start.x, self._start.y], [self._goal.x, self._goal.y]]
        points = np.concatenate([lattice, ends])

        # pairs of neighbours; start and goal with the lattice points around them
        lattice_size = (len(row), len(column))
        pairs = [np.stack([a, b], axis=1) for _, a, b in neighbours(lattice_size, EIGHT)]
        for end in (len(points) - 2, len(points) - 1):
            distance = np.abs(lattice - points[end]).max(axis=1)
            near = np.flatnonzero(distance <= 1.5 * stride * resolution)
            pairs.append(np.stack([np.full(len(near), end), near], axis=1))
        a, b = np.concatenate(pairs).T

        # flights over the highest ground and objects around each point
        ground = np.asarray(planner.terrain.altitude(points[:, 0], points[:, 1]))
        high = _highest_about(planner, points, side, radius)
        if planner.obstacles is not None:
            cells = Grid(
                len(row), len(column), side, side, float(x[0]) - side / 2, float(y[0]) - side / 2
            )
            objects = highest_objects(planner.obstacles, radius, cells)
            at_row, at_column = cells.cells(*points.T)
            high = np.maximum(
                high,
                objects[np.clip(at_row, 0, len(row) - 1), np.clip(at_column, 0, len(column) - 1)],
            )

        altitude = high + self._fly.min_height
        edges = [*self._driven(points, a, b), *self._flown(points, altitude, a, b)]
        return points, edges, altitude - ground

    def _driven(self, points: Floats, a: NDArray[Any], b: NDArray[Any]) -> list[Edges]:
        """Return edges on the ground, both ways, with the energy along them.

        There is an edge if all cells on the straight line between its ends are free.
        """
        mass = self._vehicle.mass
        grid, weight = self._planner.driving_grid(self._vehicle)
        leg = points[b] - points[a]
        longest = float(np.hypot(*leg.T).max())
        samples = max(2, math.ceil(longest / grid.resolution * _SAMPLES_PER_CELL) + 1)
        share = np.linspace(0.0, 1.0, samples)[:, None]

        free = np.ones(len(a), bool)
        forth = np.zeros(len(a))
        back = np.zeros(len(a))
        previous_z = np.zeros(0)
        part = np.hypot(*leg.T) / (samples - 1)
        for k in range(samples):
            point = points[a] + share[k] * leg
            free &= are_free(point, grid, weight)

            # energy since the sample before
            z = np.asarray(self._planner.terrain.altitude(point[:, 0], point[:, 1]))
            if k:
                forth += self._drive.energy(mass, part, z - previous_z)
                back += self._drive.energy(mass, part, previous_z - z)
            previous_z = z

        least = 1e-6 * part  # downhill costs nothing, but no edge of a graph may
        return [
            (a[free], b[free], (np.maximum(forth, 0.0) + least)[free]),
            (b[free], a[free], (np.maximum(back, 0.0) + least)[free]),
        ]

    def _flown(
        self, points: Floats, altitude: Floats, a: NDArray[Any], b: NDArray[Any]
    ) -> list[Edges]:
        """Return edges in the air, both ways."""
        distance = np.hypot(*(points[b] - points[a]).T)
        edges = []
        for from_, to in ((a, b), (b, a)):
            rise = altitude[to] - altitude[from_]
            energy = self._fly.energy_between(self._vehicle.mass, distance, rise)
            edges.append((from_ + len(points), to + len(points), energy))
        return edges

    def _taken_off(self, points: Floats, height: Floats, rolls: bool) -> list[Edges]:
        """Return edges up and down where the vehicle can land, to a height, (n,), m.

        With `rolls` their energy is that of rolling at heights at which it rolls, as if all ground
        allowed it.
        """
        node = np.flatnonzero(self._can_land(points[:, 0], points[:, 1]))
        still = np.zeros(len(node))
        up, down = (
            self._fly.energy(self._vehicle.mass, still, sign * height[node]) for sign in (1.0, -1.0)
        )
        up = up + self._fly.takeoff_energy
        down = down + self._fly.landing_energy + self._drive.start_energy
        if rolls and self._rolling is not None:
            saved_up, saved_down = self._rolling.hoped(height[node])
            up = np.maximum(up - saved_up, LEAST_ENERGY)
            down = np.maximum(down - saved_down, LEAST_ENERGY)
        return [(node, node + len(points), up), (node + len(points), node, down)]


def _end_of(plan: Plan, index: int) -> PlanPose:
    """Return the pose on the ground at the begin (0) or end (-1) of a plan."""
    x, y, _ = plan.position[index].tolist()
    return PlanPose(x, y, float(plan.heading[index]))


def _in_place(points: Floats, nodes: list[int]) -> bool:
    """Return whether a run of nodes begins and ends at the same place."""
    a, b = (points[node % len(points)] for node in (nodes[0], nodes[-1]))
    return bool(np.hypot(*(b - a)) < 1e-6)


def _highest_about(planner: Planner, points: Floats, side: float, radius: float) -> Floats:
    """Return the highest sample around each point, (n,).

    It lies in a square of that side around the point, or within the radius around the square.
    """
    from scipy.ndimage import maximum_filter

    terrain = planner.terrain
    samples = []
    indices = []
    for k, (origin, step) in enumerate(
        ((terrain.origin_x, terrain.step_x), (terrain.origin_y, terrain.step_y))
    ):
        samples.append(2 * math.ceil((0.5 * side + radius) / abs(step)) + 1)
        nearest = np.rint((points[:, k] - origin) / step).astype(int)
        indices.append(np.clip(nearest, 0, terrain.heights.shape[k] - 1))
    high = maximum_filter(terrain.heights, samples, mode="nearest")
    return high[indices[0], indices[1]].astype(float)
