# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Planning again and again among obstacles that come in sight on the way."""

from __future__ import annotations

import math

import numpy as np

from rfly_common.arrays import Bools, Floats
from rfly_terrain.planning.plan import DRIVE, Plan, PlanPose, parts_of
from rfly_terrain.planning.planner import Planner
from rfly_terrain.planning.seen_space import SeenSpace
from rfly_terrain.planning.vehicle_classes import VehicleClass

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
