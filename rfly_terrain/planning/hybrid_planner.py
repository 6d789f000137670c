# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PlannerHybridAStar: paths of lines and arcs on an occupancy map, driven both ways.

It is MATLAB's `plannerHybridAStar` on the search of `drive`, which chooses its own motions: the
properties that set their number and when the goal is tried directly don't exist here.

Source of properties, defaults and outputs: MathWorks, Navigation Toolbox, reference pages of
`plannerHybridAStar` and of its `plan`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.config.matlab_properties import matlab_properties
from rfly_common.errors import PlanError
from rfly_terrain.costmap.traversability import LETHAL, TraversabilityGrid
from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap
from rfly_terrain.planning.grid_planner import Map, map_of
from rfly_terrain.planning.plan import PlanPose

MOST_STATES = 10_000_000
"""States of a path, at most."""
NO_PATH = ("unreachable", "too_tight", "gave_up")
"""Reasons for which there is no path; all others are errors in the arguments."""


def _length(name: str, value: Any) -> float:
    """Return a length; NaN stands for the default."""
    if value is None or math.isnan(value):
        return math.nan
    return finite_number(name, value, "m", above=0.0, error=ValueError)


_above_zero = partial(finite_number, above=0.0, error=ValueError)


@matlab_properties({})
@dataclass(frozen=True)
class HybridPlanInfo:
    """Details of a plan of `PlannerHybridAStar`."""

    is_path_found: bool
    """True if there is a path."""
    path_cost: float
    """Length of the path, with the costs of both ways and of changes; infinite without one."""
    reason: str
    """Reason why there is no path: unreachable, too_tight or gave_up; "" if there is one."""


@matlab_properties(
    {
        "map": map_of,
        "min_turning_radius": _length,
        "motion_primitive_length": _length,
        "forward_cost": _above_zero,
        "reverse_cost": _above_zero,
        "direction_switching_cost": partial(finite_number, at_least=0.0, error=ValueError),
        "interpolation_distance": _above_zero,
    }
)
@dataclass(eq=False)
class PlannerHybridAStar:
    """Hybrid A* on an occupancy map, MATLAB's `plannerHybridAStar`.

    A path may enter cells that `check_occupancy` says are free, and keeps at least a tenth of a
    cell from all others. It consists of lines and arcs of the turning radius, shortened where a
    short cut is cheaper. MATLAB's planner takes the map in a validator, this one the map itself.

    >>> planner = PlannerHybridAStar(BinaryOccupancyMap(10, 10), min_turning_radius=1)
    >>> path, directions, info = planner.plan([2, 2, 0], [8, 2, 0])
    >>> path[[0, -1]].tolist(), round(info.path_cost, 6)
    ([[2.0, 2.0, 0.0], [8.0, 2.0, 0.0]], 6.0)
    """

    map: Map = field(default_factory=BinaryOccupancyMap)
    """Map that is searched, by default 10 m x 10 m and empty."""
    min_turning_radius: float = math.nan
    """Turning radius, m; NaN: 2 motion_primitive_length / π."""
    motion_primitive_length: float = math.nan
    """Length from which the default radius follows, m; NaN: √2 cells, rounded up to whole metres.

    It may not exceed a quarter of the circle of the turning radius.
    """
    forward_cost: float = 1.0
    """Cost of a metre forwards."""
    reverse_cost: float = 3.0
    """Cost of a metre backwards, at least that of one forwards."""
    direction_switching_cost: float = 0.0
    """Cost of a change between forwards and backwards."""
    interpolation_distance: float = 1.0
    """Largest distance between two states of a path, m."""
    _shown: Floats | None = field(default=None, init=False, repr=False)
    """States of the last path, (n, 3)."""

    def turning_radius(self) -> float:
        """Return the turning radius that a plan uses, m."""
        length = self.motion_primitive_length
        if math.isnan(length):
            cell = 1.0 / self.map.resolution
            length = float(math.ceil(math.sqrt(2.0) * cell - 1e-9))
        if math.isnan(self.min_turning_radius):
            return 2.0 * length / math.pi

        if not math.isnan(self.motion_primitive_length):
            quarter = 0.5 * math.pi * self.min_turning_radius
            if length > quarter + 1e-9:
                raise ValueError(
                    f"motion_primitive_length: {length:g} m, expected at most a quarter of the "
                    f"turning circle, {quarter:g} m"
                )
        return self.min_turning_radius

    def plan(self, start: ArrayLike, goal: ArrayLike) -> tuple[Floats, Ints, HybridPlanInfo]:
        """Return a path between two poses, its directions, and details.

        Poses and the path's states (n, 3) are x, y (m), theta (rad). Directions, (n,): 1 where the
        vehicle drives forwards from a state on, −1 backwards. Without a path both are empty; from a
        pose to itself the path is that pose. ValueError for poses off the map or in cells that are
        not free, PlanError ("too_large") if the memory does not suffice.
        """
        from rfly_terrain.planning.drive import plan_drive

        first = self._pose("start", start)
        last = self._pose("goal", goal)
        if self.reverse_cost < self.forward_cost:
            raise ValueError(
                f"reverse_cost: {self.reverse_cost:g}, expected at least the forward_cost, "
                f"{self.forward_cost:g}"
            )

        try:
            drive = plan_drive(
                self._costs(),
                PlanPose(*first.tolist()),
                PlanPose(*last.tolist()),
                self.turning_radius(),
                backward_cost=self.reverse_cost / self.forward_cost,
                cusp_cost=self.direction_switching_cost / self.forward_cost,
            )
        except PlanError as error:
            if error.reason == "same_place":
                self._shown = last[None]
                return self._shown, np.ones(1, np.int64), HybridPlanInfo(True, 0.0, "")
            if error.reason in NO_PATH:
                self._shown = np.empty((0, 3))
                info = HybridPlanInfo(False, math.inf, error.reason)
                return self._shown, np.empty(0, np.int64), info
            if error.reason == "too_large":
                raise
            raise ValueError(str(error)) from None

        if drive.length > MOST_STATES * self.interpolation_distance:
            raise ValueError(
                f"interpolation_distance: {self.interpolation_distance:g} m, expected at least "
                f"{drive.length / MOST_STATES:.1g} m, for at most {MOST_STATES:,} states"
            )
        poses = drive.poses(self.interpolation_distance)
        directions = _directions(poses)
        poses[:, 2] = np.remainder(poses[:, 2] + math.pi, 2 * math.pi) - math.pi
        poses[-1] = last
        self._shown = poses
        return poses, directions, HybridPlanInfo(True, drive.cost * self.forward_cost, "")

    def show(self, ax: Any = None) -> Any:
        """Draw the map and the last path; return the axes.

        Without axes they are Matplotlib's current ones. ValueError if nothing has been planned.
        """
        from rfly_terrain.occupancy.plot import draw_plan

        if self._shown is None:
            raise ValueError("show: nothing has been planned, expected a call of plan before it")
        return draw_plan(self.map, self._shown[:, :2], np.empty((0, 2)), ax)

    def _pose(self, name: str, pose: ArrayLike) -> Floats:
        """Return a pose x, y, theta, (3,), checked."""
        array = finite_array(name, pose, (3,), error=ValueError)
        if self.map.check_occupancy(array[None, :2])[0] != 0:
            raise ValueError(f"{name}: {array.tolist()} is not in a free cell of the map")
        return array

    def _costs(self) -> TraversabilityGrid:
        """Return the map as costs: 0 where a path may go, LETHAL elsewhere."""
        west, south = self.map.grid_location_in_world.tolist()
        cost = np.where(self.map.check_occupancy() == 0, np.int8(0), np.int8(LETHAL))[::-1]
        return TraversabilityGrid(
            np.ascontiguousarray(cost), 1.0 / self.map.resolution, (west, south)
        )


def _directions(poses: Floats) -> Ints:
    """Return 1 where the way to the next pose leads forwards, −1 backwards, (n,)."""
    steps = np.diff(poses, axis=0)
    middle = poses[:-1, 2] + 0.5 * steps[:, 2]
    ahead = steps[:, 0] * np.cos(middle) + steps[:, 1] * np.sin(middle)
    directions = np.where(ahead >= 0.0, 1, -1)
    return np.append(directions, directions[-1:])
