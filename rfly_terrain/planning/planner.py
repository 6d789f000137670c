# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Planner of driven, flown or mixed paths over a terrain for a vehicle class.

`Replanner` plans again among obstacles that come in sight on the way.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import PlanError
from rfly_terrain.costmap.traversability import (
    LETHAL,
    TraversabilityGrid,
    TraversabilityLimits,
    traversability,
)
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.planning.drive import Weights, plan_drive, weights
from rfly_terrain.planning.fly import SPACING_NEAR_OBJECTS, FlyObstacles, plan_fly
from rfly_terrain.planning.mixed import plan_mixed
from rfly_terrain.planning.nearest_free import name_nearest_free
from rfly_terrain.planning.plan import DRIVE, FLY, MIXED, Plan, PlanPose, parts_of, steps_between
from rfly_terrain.planning.seen_space import SeenSpace
from rfly_terrain.planning.vehicle_classes import Driving, VehicleClass, load_vehicle_classes
from rfly_terrain.world.solids import Solids, joined

if TYPE_CHECKING:
    from rfly_terrain.planning.seen_space import SeenSpace


MOST_POSES = 4_000
"""Poses of a driven path, at most, without those in its bends."""
MOST_TURN = math.radians(10.0)
"""Turn from one pose to the next, at most, rad: bends stay smooth when the poses are joined."""
MARGIN = 0.5
"""Distance that plans keep from objects beyond the vehicle's radius, m."""
SPARE_CELLS = 1.6
"""Distance from a start to the farthest corner of the cells that must be free, in cells: √2 (1 +
kernels.MARGIN).
"""


class Planner:
    """Planner over one terrain and the objects on it.

    The costs for the limits of each class are computed once. `water_level` (m, z up): ground below
    it is not driven on, and no vehicle lands there; None: no water. `resolution` (m): side of the
    cells, by default the smaller step of the map. `margin` (m): distance that plans keep from
    objects beyond the vehicle's radius. Several threads may plan at the same time.
    """

    def __init__(
        self,
        terrain: HeightMap,
        objects: Solids | None = None,
        *,
        water_level: float | None = None,
        resolution: float | None = None,
        margin: float = MARGIN,
    ) -> None:
        """Take the terrain and the objects on it.

        Raises ConfigError for a margin that is negative or not finite.
        """
        finite_number("margin", margin, "m", at_least=0.0)
        self.terrain = terrain
        self.objects = objects
        self._water_level = water_level
        self._resolution = resolution
        self._margin = float(margin)

        self._bare: Planner = self
        self._seen: SeenSpace | None = None
        self._unknown_cost = 0
        self._grids: dict[TraversabilityLimits, tuple[TraversabilityGrid, Weights]] = {}
        self._lock = threading.Lock()

    def amid(
        self, seen: SeenSpace, vehicle: VehicleClass, start: PlanPose, unknown_cost: int = 0
    ) -> Planner:
        """Return a planner for one start of a class, among seen obstacles and the known objects.

        If the start is nearer to an obstacle than radius and margin, because a hidden obstacle has
        come in sight, the margin is reduced so that the vehicle can leave. Driving over unseen
        ground costs at least `unknown_cost`, 0 … 100 (never).
        """
        outlines = seen.obstacles.outlines
        if start.z is not None:
            outlines = outlines.select(outlines.top > start.z)

        side = self._resolution or min(abs(self.terrain.step_x), abs(self.terrain.step_y))
        # room for any part of the cells around a driven start, or the next sample of a flight
        spare = SPARE_CELLS * side if vehicle.drive is not None else SPACING_NEAR_OBJECTS
        room = outlines.clearance(start.x, start.y) - vehicle.radius - spare - 1e-3

        planner = copy.copy(self)
        planner._margin = max(min(self._margin, room), -vehicle.radius)
        planner.objects = (
            seen.obstacles if self.objects is None else joined([self.objects, seen.obstacles])
        )
        planner._bare = self
        planner._seen = seen
        planner._unknown_cost = unknown_cost
        planner._grids = {}
        planner._lock = threading.Lock()
        return planner

    def plan(
        self, vehicle: VehicleClass, start: PlanPose, goal: PlanPose, mode: int = DRIVE
    ) -> Plan:
        """Return a path from start to goal. Raises PlanError with the reason if there is none."""
        planners: Mapping[int, Callable[[VehicleClass, PlanPose, PlanPose], Plan]] = {
            DRIVE: self.drive,
            FLY: self.fly,
            MIXED: self.mixed,
        }
        if mode not in planners:
            raise PlanError(
                "unknown_mode",
                f"mode {mode}: expected {DRIVE} (drive), {FLY} (fly) or {MIXED} (mixed)",
            )
        return planners[mode](vehicle, start, goal)

    def drive(self, vehicle: VehicleClass, start: PlanPose, goal: PlanPose) -> Plan:
        """Return a driven path; heights of start and goal do not count. See `plan_drive`."""
        driving = _driving(vehicle)
        grid, weight = self.driving_grid(vehicle)
        try:
            path = plan_drive(
                grid,
                start,
                goal,
                float(driving.turning_radius),
                backward_cost=driving.reverse_cost if driving.reverse else math.inf,
                cusp_cost=driving.cusp_cost,
                weight=weight,
            )
        except PlanError as error:
            if not error.reason.endswith("_blocked"):
                raise
            pose = start if error.reason == "start_blocked" else goal
            why = self.why_blocked(vehicle, pose.x, pose.y)
            nearest = name_nearest_free(weight > 0, grid.origin, grid.resolution, pose, start)
            raise PlanError(error.reason, f"{error}: {why}{nearest}") from None

        # poses on the ground
        poses = path.poses(max(grid.resolution, path.length / MOST_POSES), MOST_TURN)
        z = self.terrain.altitude(poses[:, 0], poses[:, 1])
        position = np.column_stack([poses[:, :2], z])
        # energy: the ground rises and falls between the poses too
        fine = path.poses(grid.resolution / 4)
        ground = self.terrain.altitude(fine[:, 0], fine[:, 1])
        over_ground, climb = steps_between(np.column_stack([fine[:, :2], ground]))
        energy = driving.trip(vehicle.mass, over_ground, climb)
        duration = float(np.hypot(over_ground, climb).sum()) / driving.speed

        return Plan(
            position,
            poses[:, 2].copy(),
            np.full(len(position) - 1, DRIVE, np.uint8),
            energy,
            duration,
        )

    def fly(self, vehicle: VehicleClass, start: PlanPose, goal: PlanPose) -> Plan:
        """Return a path in the air. See `plan_fly`."""
        return plan_fly(self.terrain, vehicle, start, goal, obstacles=self.obstacles)

    def mixed(self, vehicle: VehicleClass, start: PlanPose, goal: PlanPose) -> Plan:
        """Return a path of least energy, driven and flown. See `plan_mixed`."""
        return plan_mixed(self, vehicle, start, goal)

    @property
    def margin(self) -> float:
        """Distance that plans keep from objects beyond the vehicle's radius, m."""
        return self._margin

    @property
    def obstacles(self) -> FlyObstacles | None:
        """Obstacles of flights; None if there are no objects on the terrain."""
        return FlyObstacles(self.objects, self._margin) if self.objects else None

    def grid(self, vehicle: VehicleClass) -> TraversabilityGrid:
        """Return the costs of driving for a class."""
        return self.driving_grid(vehicle)[0]

    def driving_grid(self, vehicle: VehicleClass) -> tuple[TraversabilityGrid, Weights]:
        """Return the costs of driving for a class, and their `drive.weights`."""
        return self._grid(self._limits(_driving(vehicle)))

    def landing_grid(self, vehicle: VehicleClass) -> TraversabilityGrid:
        """Return the costs for a class with the slope limited as for take-off and landing."""
        limits = self._limits(_driving(vehicle))
        slope = limits.max_slope_deg
        if vehicle.fly is not None:
            slope = min(slope, vehicle.fly.max_takeoff_slope_deg)
        return self._grid(dataclasses.replace(limits, max_slope_deg=slope))[0]

    def why_blocked(self, vehicle: VehicleClass, x: float, y: float) -> str:
        """Return why a class may not drive at a place.

        The reasons are the limits exceeded there, or within the vehicle's radius.
        """
        limits = self._limits(_driving(vehicle))
        reach = limits.vehicle_radius + limits.half_wheelbase
        side = self._resolution or min(abs(self.terrain.step_x), abs(self.terrain.step_y))
        ground = _around(self.terrain, x, y, reach)

        # each limit alone
        free = TraversabilityLimits(math.inf, math.inf, math.inf, None, 0.0, limits.half_wheelbase)
        alone = {
            f"slopes of {limits.max_slope_deg:g}° and more": dataclasses.replace(
                free, max_slope_deg=limits.max_slope_deg
            ),
            "ground that is too rough": dataclasses.replace(
                free, max_roughness=limits.roughness_limit(side)
            ),
            "steps that are too high": dataclasses.replace(free, max_step=limits.step_limit(side)),
            "water": dataclasses.replace(free, water_level=limits.water_level),
        }
        reasons = [
            text
            for text, limit in alone.items()
            if (traversability(ground, limit).cost == LETHAL).any()
        ]

        if self.objects:
            clearance = limits.vehicle_radius + self._margin + math.sqrt(2.0) * side
            if len(self.objects.outlines.near(np.array([[x, y]]), clearance)[0]):
                reasons.append("an object")
        if not reasons:
            return "the edge of the map is too near"
        return f"{' and '.join(reasons)} within {reach:g} m and a cell"

    def _limits(self, driving: Driving) -> TraversabilityLimits:
        """Return the limits of a class, with the planner's water level."""
        if self._water_level is None:
            return driving.limits
        return dataclasses.replace(driving.limits, water_level=self._water_level)

    def _grid(self, limits: TraversabilityLimits) -> tuple[TraversabilityGrid, Weights]:
        """Return the costs for limits and their weights, computed once."""
        with self._lock:
            if limits not in self._grids:
                clearance = limits.vehicle_radius + self._margin
                if self._seen is not None:
                    grid = self._seen.on(self._bare._grid(limits)[0], clearance, self._unknown_cost)
                else:
                    grid = traversability(
                        self.terrain, limits, self.objects, self._resolution, clearance=clearance
                    )
                self._grids[limits] = grid, weights(grid)
            return self._grids[limits]


def _driving(vehicle: VehicleClass) -> Driving:
    """Return how a class drives; raise PlanError if it cannot."""
    if vehicle.drive is None:
        raise PlanError("cannot_drive", vehicle.cannot("drive", "ground or land_air"))
    return vehicle.drive


def _around(terrain: HeightMap, x: float, y: float, reach: float) -> HeightMap:
    """Return the samples within `reach` (m) of a point, and two cells more."""
    u = (x - terrain.origin_x) / terrain.step_x
    v = (y - terrain.origin_y) / terrain.step_y
    first = []
    last = []
    for index, step, count in (
        (u, terrain.step_x, terrain.rows),
        (v, terrain.step_y, terrain.columns),
    ):
        reach_cells = reach / abs(step) + 2
        first.append(max(0, min(math.floor(index - reach_cells), count - 2)))
        last.append(min(count, max(math.ceil(index + reach_cells) + 1, first[-1] + 2)))

    return HeightMap(
        terrain.heights[first[0] : last[0], first[1] : last[1]],
        origin_x=terrain.origin_x + first[0] * terrain.step_x,
        origin_y=terrain.origin_y + first[1] * terrain.step_y,
        step_x=terrain.step_x,
        step_y=terrain.step_y,
    )


def warm_up() -> None:
    """Run every kernel once with the planner's argument types.

    Several threads may call it at once.
    """
    flat = HeightMap(
        np.zeros((20, 20), np.float32), origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0
    )
    rover = load_vehicle_classes()["rover"]
    Planner(flat).drive(rover, PlanPose(5.2, 5.4, 0.3), PlanPose(12.1, 12.3, 0.1))


SPACING = 0.5
"""Distance between the places of a plan that are checked, m."""


class Replanner:
    """The way of one vehicle to one goal.

    A plan holds until an obstacle too near to it has been seen. Plans keep the planner's margin.
    Half of it is enough for a plan to hold, so that not every new voxel causes another plan.
    """

    def __init__(
        self,
        planner: Planner,
        vehicle: VehicleClass,
        goal: PlanPose,
        mode: int = DRIVE,
        unknown_cost: int = 0,
    ) -> None:
        self.planner = planner
        self.vehicle = vehicle
        self.goal = goal
        self.mode = mode
        self.unknown_cost = unknown_cost
        self.plan: Plan | None = None
        """Plan that holds."""

    def update(self, seen: SeenSpace | None, here: PlanPose) -> Plan | None:
        """Return another plan from here among the seen obstacles, if one is necessary.

        Returns None if the current plan holds or the goal is within the vehicle's radius. Raises
        PlanError if there is no way; the next call tries again.
        """
        away = math.hypot(self.goal.x - here.x, self.goal.y - here.y)
        if self.plan is not None:
            arrived = away <= self.vehicle.radius
            if seen is None or arrived or not self.blocked(self.plan, seen, here):
                return None

        self.plan = None
        planner = self.planner
        if seen is not None:
            planner = planner.amid(seen, self.vehicle, here, self.unknown_cost)
        self.plan = planner.plan(self.vehicle, here, self.goal, self.mode)
        return self.plan

    def blocked(self, plan: Plan, seen: SeenSpace, here: PlanPose) -> bool:
        """Return whether a seen obstacle is too near to the rest of a plan."""
        places, flown = _rest(plan, here)
        outlines = seen.obstacles.outlines
        reach = self.vehicle.radius + 0.5 * self.planner.margin
        point, which = outlines.near(places[:, :2], reach)
        height = 0.0 if self.vehicle.fly is None else 0.5 * self.vehicle.fly.min_height

        too_near = ~flown[point] | (outlines.top[which] > places[point, 2] - height)
        # the vehicle can only move away from what is next to it already
        distance = np.hypot(*(places[point, :2] - (here.x, here.y)).T)
        return bool((too_near & (distance > reach)).any())


def _rest(plan: Plan, here: PlanPose) -> tuple[Floats, Bools]:
    """Return the places, (n, 3), of a plan from the one nearest to here to its end.

    They are SPACING apart. The second result is a mask of the flown ones, (n,).
    """
    steps = np.linalg.norm(np.diff(plan.position, axis=0), axis=1)
    counts = np.maximum(1, np.ceil(steps / SPACING)).astype(int)
    segment, share = parts_of(counts)
    start = plan.position[segment]
    places = start + share[:, None] * (plan.position[segment + 1] - start)
    places = np.concatenate([places, plan.position[-1:]])
    flown = np.append(plan.mode[segment], plan.mode[-1]) != DRIVE

    # the nearest one, in height too if it is known
    position = (here.x, here.y) if here.z is None else (here.x, here.y, here.z)
    nearest = int(np.linalg.norm(places[:, : len(position)] - position, axis=1).argmin())
    return places[nearest:], flown[nearest:]
