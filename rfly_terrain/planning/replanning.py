"""Plans again and again amid what comes in sight on the way."""

from __future__ import annotations

import math

import numpy as np

from rfly_common.arrays import Bools, Floats
from rfly_terrain.planning.plan import DRIVE, Plan
from rfly_terrain.planning.plan_pose import PlanPose
from rfly_terrain.planning.planner import Planner
from rfly_terrain.planning.seen_space import SeenSpace
from rfly_terrain.planning.vehicle_classes import VehicleClass

SPACING = 0.5
"""m between places of a plan that are looked at"""


class Replanner:
    """The way of one vehicle to one goal: a plan holds until something has been seen that is too
    near to it.

    Plans keep the planner's margin; half of it is enough for one to hold, lest each new voxel asks
    for another.
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
        """that holds"""

    def update(self, seen: SeenSpace | None, here: PlanPose) -> Plan | None:
        """Another plan from here, amid what has been seen; None: the one before holds, or the goal
        is within the vehicle's radius.

        Raises PlanError where there is no way; the next call tries again.
        """
        away = math.hypot(self.goal.x - here.x, self.goal.y - here.y)
        if self.plan is not None and (
            seen is None or away <= self.vehicle.radius or not self.blocked(self.plan, seen, here)
        ):
            return None
        self.plan = None
        amid = self.planner
        if seen is not None:
            amid = amid.amid(seen, self.vehicle, here, self.unknown_cost)
        self.plan = amid.plan(self.vehicle, here, self.goal, self.mode)
        return self.plan

    def blocked(self, plan: Plan, seen: SeenSpace, here: PlanPose) -> bool:
        """Whether what has been seen is too near to the rest of a plan."""
        places, flown = _rest(plan, here)
        outlines = seen.obstacles.outlines
        reach = self.vehicle.radius + 0.5 * self.planner.margin
        point, which = outlines.near(places[:, :2], reach)
        height = 0.0 if self.vehicle.fly is None else 0.5 * self.vehicle.fly.min_height
        too_near = ~flown[point] | (outlines.top[which] > places[point, 2] - height)
        # what it is beside already it can only leave
        start = np.hypot(*(places[point, :2] - (here.x, here.y)).T)
        return bool((too_near & (start > reach)).any())


def _rest(plan: Plan, here: PlanPose) -> tuple[Floats, Bools]:
    """(n, 3) places of a plan from the nearest one to here on, SPACING apart; (n,) which are flown."""
    steps = np.linalg.norm(np.diff(plan.position, axis=0), axis=1)
    counts = np.maximum(1, np.ceil(steps / SPACING)).astype(int)
    segment = np.repeat(np.arange(len(steps)), counts)
    share = (np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[
        segment
    ]
    places = plan.position[segment] + share[:, None] * (
        plan.position[segment + 1] - plan.position[segment]
    )
    places = np.concatenate([places, plan.position[-1:]])
    flown = np.append(plan.mode[segment], plan.mode[-1]) != DRIVE
    me = (here.x, here.y) if here.z is None else (here.x, here.y, here.z)
    nearest = int(np.linalg.norm(places[:, : len(me)] - me, axis=1).argmin())
    return places[nearest:], flown[nearest:]
