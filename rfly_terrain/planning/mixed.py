"""Least-energy plans that drive and fly: a coarse graph of both, refined piece by piece.

The graph has two layers over one lattice: on the ground, with edges that lead over cells that can
be driven on, and in the air, at the minimum height above the highest ground of each block. Between
the layers lead take-offs and landings, straight up and down, on ground less steep than
`max_takeoff_slope_deg`. Beside the cheapest path through the graph the plan that only drives and
the one that only flies are worked out; of those that can be done the cheapest is taken.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import PlanError
from rfly_terrain.costmap.traversability import LETHAL
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.planning.fly import highest_objects, plan_fly
from rfly_terrain.planning.plan import FLY, Plan, join_plans, off_the_map
from rfly_terrain.planning.plan_pose import PlanPose
from rfly_terrain.planning.planner import Planner, name_nearest_free
from rfly_terrain.planning.vehicle_classes import Driving, Flying, VehicleClass

LATTICE = 160
"""points on a side, at most"""
ON_GROUND = 1.0
"""m above the ground up to which a place counts as on it"""
_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))
_SAMPLES_PER_CELL = 2
_Edges = tuple[Any, Any, Any]
"""from and to nodes, J"""


def plan_mixed(planner: Planner, vehicle: VehicleClass, start: PlanPose, goal: PlanPose) -> Plan:
    """The plan of least energy that drives, flies, or does one after the other.

    A place no more than ON_GROUND above the ground is on it. From one place in the air to another
    it stays in the air. Raises PlanError where none of the ways can be done; its reason is that of
    driving.
    """
    if vehicle.drive is None or vehicle.fly is None or vehicle.fly.hover_power is None:
        raise PlanError("cannot_mix", vehicle.cannot("both drive and take off", "land_air"))
    mixed = _MixedPlanner(planner, vehicle, vehicle.drive, vehicle.fly, start, goal)
    plans: list[Plan] = []
    why: list[PlanError] = []
    for make in mixed.ways():
        try:
            plans.append(make())
        except PlanError as error:
            why.append(error)
    if not plans:
        raise PlanError(why[0].reason, "; ".join(dict.fromkeys(str(error) for error in why)))
    return min(plans, key=lambda plan: plan.energy)


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
        self._starts_low, self._ends_low = (
            self._on_ground("start", start),
            self._on_ground("goal", goal),
        )
        self._landing = planner.landing_grid(vehicle)

    def ways(self) -> Iterator[Callable[[], Plan]]:
        """What can be tried: to drive, to fly, to do both."""
        if self._starts_low and self._ends_low:
            yield lambda: self._planner.drive(self._vehicle, self._start, self._goal)
        yield lambda: self._flight(self._start, self._goal, self._starts_low, self._ends_low)
        if self._starts_low or self._ends_low:
            yield self._through_graph

    def _on_ground(self, name: str, pose: PlanPose) -> bool:
        terrain = self._planner.terrain
        if not terrain.inside(pose.x, pose.y):
            raise off_the_map(name, pose.x, pose.y, terrain.bounds)
        return pose.z is None or pose.z <= float(terrain.altitude(pose.x, pose.y)) + ON_GROUND

    def _can_land(self, x: Any, y: Any) -> Any:
        landing = self._landing
        row, column = (
            np.clip(np.floor((np.asarray(v) - o) / landing.resolution).astype(int), 0, n - 1)
            for v, o, n in zip((y, x), landing.origin[::-1], landing.cost.shape, strict=True)
        )
        cost = landing.cost[row, column]
        return (cost >= 0) & (cost < LETHAL)

    def _flight(self, start: PlanPose, goal: PlanPose, takes_off: bool, lands: bool) -> Plan:
        """From place to place in the air, with take-off and landing where these are on the ground."""
        planner = self._planner
        landing = self._landing
        for pose, needed, what in ((start, takes_off, "take off from"), (goal, lands, "land on")):
            if needed and not self._can_land(pose.x, pose.y):
                free = (landing.cost >= 0) & (landing.cost < LETHAL)
                there = name_nearest_free(free, landing.origin, landing.resolution, pose, None)
                limit = f"above {self._fly.max_takeoff_slope_deg:g}°{there}"
                raise PlanError(
                    "no_landing", f"({pose.x:g}, {pose.y:g}): too steep or rough to {what}, {limit}"
                )
        ground = [float(planner.terrain.altitude(pose.x, pose.y)) for pose in (start, goal)]
        up = dataclasses.replace(start, z=ground[0]) if takes_off else start
        to = dataclasses.replace(goal, z=None) if lands else goal
        flown = plan_fly(
            planner.terrain, self._vehicle, up, to, hold_altitude=True, obstacles=planner.obstacles
        )
        if not lands:
            return flown
        return join_plans(
            [flown, self._upright(flown.position[-1], ground[1], float(flown.heading[-1]))]
        )

    def _upright(self, position: Floats, altitude: float, heading: float) -> Plan:
        """Straight up or down from a place (3,) to an altitude."""
        way = np.array([position, [*position[:2], altitude]])
        climb = altitude - float(position[2])
        energy = self._fly.energy(self._vehicle.mass, 0.0, climb)
        duration = self._fly.duration(0.0, climb)
        return Plan(
            way, np.full(2, heading), np.array([FLY], np.uint8), float(energy), float(duration)
        )

    def _through_graph(self) -> Plan:
        """The cheapest path over the graph, its runs on the ground and in the air planned finely."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra

        points, edges = self._graph()
        count = len(points)
        from_, to, energy = (np.concatenate(part) for part in zip(*edges, strict=True))
        graph = coo_array(
            (energy, (from_.astype(np.int32), to.astype(np.int32))), shape=(2 * count, 2 * count)
        ).tocsr()
        first = count - 2 + (0 if self._starts_low else count)
        last = count - 1 + (0 if self._ends_low else count)
        cost, before = dijkstra(graph, indices=first, return_predecessors=True)
        if not math.isfinite(cost[last]):
            raise PlanError("unreachable", "no way leads there, be it driven or flown")
        path = [last]
        while path[-1] != first:
            path.append(int(before[path[-1]]))
        runs = [
            (flies, list(nodes))
            for flies, nodes in itertools.groupby(path[::-1], key=lambda node: node >= count)
        ]
        return self._planned_runs(points, runs)

    def _planned_runs(self, points: Floats, runs: list[tuple[bool, list[int]]]) -> Plan:
        """Runs over nodes (of which n and more fly) as plans; one that begins or ends in the air
        above a run on the ground is a way straight down or up.
        """
        count = len(points)
        start = self._start
        goal = self._goal
        plans: list[Plan] = []
        for index, (flies, nodes) in enumerate(runs):
            ends = [points[node % count] for node in (nodes[0], nodes[-1])]
            a = start if index == 0 else PlanPose(*ends[0].tolist())
            b = goal if index == len(runs) - 1 else PlanPose(*ends[1].tolist())
            if math.hypot(b.x - a.x, b.y - a.y) < 1e-6:
                # it takes off where it is, or lands where it shall be: below, or with the run
                # beside it
                continue
            if index == 1 and not plans:
                a = dataclasses.replace(a, heading=start.heading)  # it has come straight down
            if index == len(runs) - 2 and not self._ends_low and _in_place(points, runs[-1][1]):
                b = dataclasses.replace(b, heading=goal.heading)  # it goes straight up
            if plans and not flies and a.heading is None:
                a = dataclasses.replace(a, heading=float(plans[-1].heading[-1]))  # as it has landed
            if flies:
                takes_off = index > 0 or self._starts_low
                lands = index < len(runs) - 1 or self._ends_low
                plans.append(self._flight(a, b, takes_off, lands))
            else:
                plans.append(self._planner.drive(self._vehicle, a, b))
        if not plans:
            raise PlanError(
                "same_place",
                f"the goal ({goal.x:g}, {goal.y:g}) lies straight above or below the start",
            )
        if not self._starts_low and _in_place(points, runs[0][1]):
            place = plans[0].position[0]
            heading = float(plans[0].heading[0])
            assert start.z is not None
            plans.insert(
                0, self._upright(np.array([*place[:2], start.z]), float(place[2]), heading)
            )
        if not self._ends_low and _in_place(points, runs[-1][1]):
            assert goal.z is not None
            plans.append(
                self._upright(plans[-1].position[-1], goal.z, float(plans[-1].heading[-1]))
            )
        return join_plans(plans)

    def _graph(self) -> tuple[Floats, list[_Edges]]:
        """(n, 2) places: the lattice, start and goal; and edges between nodes, n and more of which
        fly.
        """
        planner = self._planner
        radius = self._vehicle.radius
        rows, columns = self._landing.cost.shape
        stride = max(1, math.ceil(max(rows, columns) / LATTICE))
        side = stride * self._landing.resolution
        row, column = (np.arange(stride // 2, n, stride) for n in (rows, columns))
        y, x = (
            o + (k + 0.5) * self._landing.resolution
            for o, k in zip(self._landing.origin[::-1], (row, column), strict=True)
        )
        lattice = np.stack(np.broadcast_arrays(x[None, :], y[:, None]), axis=-1).reshape(-1, 2)
        points = np.concatenate(
            [lattice, [[self._start.x, self._start.y], [self._goal.x, self._goal.y]]]
        )
        number = np.arange(len(lattice)).reshape(len(row), len(column))
        pairs = []
        for d_row, d_column in _STEPS:
            here = (
                slice(0, len(row) - d_row),
                slice(max(-d_column, 0), len(column) - max(d_column, 0)),
            )
            there = slice(d_row, len(row)), slice(max(d_column, 0), len(column) - max(-d_column, 0))
            pairs.append(np.stack([number[here].ravel(), number[there].ravel()], axis=1))
        for end in (
            len(points) - 2,
            len(points) - 1,
        ):  # start and goal with the lattice points about them
            near = np.flatnonzero(
                np.abs(lattice - points[end]).max(axis=1) <= 1.5 * stride * self._landing.resolution
            )
            pairs.append(np.stack([np.full(len(near), end), near], axis=1))
        a, b = np.concatenate(pairs).T
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
        return points, [
            *self._driven(points, a, b),
            *self._flown(points, altitude, a, b),
            *self._taken_off(points, altitude - ground),
        ]

    def _driven(self, points: Floats, a: NDArray[Any], b: NDArray[Any]) -> list[_Edges]:
        """On the ground, both ways: where all cells on the straight line are free, with the energy
        along it.
        """
        mass = self._vehicle.mass
        grid, weight = self._planner.driving_grid(self._vehicle)
        leg = points[b] - points[a]
        samples = max(
            2, math.ceil(float(np.hypot(*leg.T).max()) / grid.resolution * _SAMPLES_PER_CELL) + 1
        )
        share = np.linspace(0.0, 1.0, samples)[:, None]
        free = np.ones(len(a), bool)
        there = np.zeros(len(a))
        back = np.zeros(len(a))
        z_before = np.zeros(0)
        part = np.hypot(*leg.T) / (samples - 1)
        for k in range(samples):
            at = points[a] + share[k] * leg
            column, row = np.floor((at - grid.origin) / grid.resolution).astype(int).T
            on_map = (
                (row >= 0) & (column >= 0) & (row < weight.shape[0]) & (column < weight.shape[1])
            )
            free &= on_map
            free[on_map] &= weight[row[on_map], column[on_map]] > 0
            z = np.asarray(self._planner.terrain.altitude(at[:, 0], at[:, 1]))
            if k:
                there += self._drive.energy(mass, part, z - z_before)
                back += self._drive.energy(mass, part, z_before - z)
            z_before = z
        least = 1e-6 * part  # downhill costs nothing, but no edge of a graph may
        return [(a[free], b[free], (there + least)[free]), (b[free], a[free], (back + least)[free])]

    def _flown(
        self, points: Floats, altitude: Floats, a: NDArray[Any], b: NDArray[Any]
    ) -> list[_Edges]:
        distance = np.hypot(*(points[b] - points[a]).T)
        edges = []
        up, down = self._fly.steepest
        for from_, to in ((a, b), (b, a)):
            rise = altitude[to] - altitude[from_]
            longer = np.maximum(distance, np.maximum(rise / up, -rise / down))
            energy = self._fly.energy(self._vehicle.mass, longer, rise)
            edges.append((from_ + len(points), to + len(points), energy))
        return edges

    def _taken_off(self, points: Floats, height: Floats) -> list[_Edges]:
        node = np.flatnonzero(self._can_land(points[:, 0], points[:, 1]))
        still = np.zeros(len(node))
        up, down = (
            self._fly.energy(self._vehicle.mass, still, sign * height[node]) for sign in (1.0, -1.0)
        )
        return [(node, node + len(points), up), (node + len(points), node, down)]


def _in_place(points: Floats, nodes: list[int]) -> bool:
    a, b = (points[node % len(points)] for node in (nodes[0], nodes[-1]))
    return bool(np.hypot(*(b - a)) < 1e-6)


def _highest_about(planner: Planner, points: Floats, side: float, radius: float) -> Floats:
    """(n,) the highest sample in a square of that side about points, and within the radius around
    it.
    """
    from scipy.ndimage import maximum_filter

    terrain = planner.terrain
    wide = [
        2 * math.ceil((0.5 * side + radius) / abs(step)) + 1
        for step in (terrain.step_x, terrain.step_y)
    ]
    high = maximum_filter(terrain.heights, wide, mode="nearest")
    row, column = (
        np.clip(
            np.rint((points[:, k] - origin) / step).astype(int), 0, terrain.heights.shape[k] - 1
        )
        for k, (origin, step) in enumerate(
            ((terrain.origin_x, terrain.step_x), (terrain.origin_y, terrain.step_y))
        )
    )
    return high[row, column].astype(float)
