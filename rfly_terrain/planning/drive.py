# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hybrid A* over a cost grid for a vehicle with a turning radius, then short cuts.

The costs are those of `traversability`: a metre in a cell of cost c counts 1 + COST_WEIGHT · c /
99; cells of 100 and of -1 are never entered. Paths consist of straight lines and arcs of the
turning radius, driven forwards, or both ways by a vehicle that reverses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import PlanError
from rfly_common.kernels.interruptible import check_memory
from rfly_terrain.planning import cost_kernels as kernels
from rfly_terrain.planning import search_kernels as searching
from rfly_terrain.planning.cost_kernels import Steering
from rfly_terrain.planning.plan import PlanPose, cell_at, off_the_map, parts_of

if TYPE_CHECKING:
    from rfly_terrain.costmap.traversability import TraversabilityGrid

COST_WEIGHT = 2.0
"""Extra cost of a metre on the worst ground that can be driven, against one on the best."""
MOST_NODES = 1 << 20
"""Poses that a search stores before it gives up, after some seconds."""
LEAST_RADIUS = 1e-3
"""Turning radius in cells, at least."""
MOST_RADIUS = 1e6
"""Turning radius in diagonals of the map, at most: an arc is as good as straight long before."""
_BYTES_PER_CELL = 24
"""Memory of a plan: weights, costs to go, marks and buckets."""
ROUNDS = 3
"""Rounds of short cuts, at most."""
_JOINTS = 300
"""Places between which short cuts are tried."""
_START_HEADINGS = 72
"""Number of headings with which a search begins where the start's is free."""

Weights = NDArray[np.float32]
"""Cost of a metre in each cell, (rows, columns); 0 where a vehicle may not be."""
_Layout = tuple[float, float, float]
"""Position x, y of a grid's south-west corner, and side of its cells, m."""


@dataclass(frozen=True, eq=False)
class DrivePath:
    """A path of lines and arcs."""

    joints: Floats
    """Pose x, y (m), heading (rad) at the start of each piece and at the end, (n + 1, 3)."""
    pieces: Floats
    """Length (m, negative: backwards) and curvature (1/m, steered left positive), (n, 2)."""
    cost: float
    """Cost as a length on the best ground, m."""

    @property
    def length(self) -> float:
        """Length in the plane, m."""
        return float(np.abs(self.pieces[:, 0]).sum())

    def poses(self, spacing: float, turn: float = math.inf) -> Floats:
        """Return poses x, y, heading along the path, (m, 3).

        All joints are among them. Between two poses there is at most `spacing` (m) and `turn`
        (rad).
        """
        # parts of each piece
        lengths = np.abs(self.pieces[:, 0])
        least = np.maximum(lengths / spacing, lengths * np.abs(self.pieces[:, 1]) / turn)
        counts = np.maximum(1, np.ceil(least - 1e-9)).astype(int)
        piece, share = parts_of(counts)

        # the pose at the start of each part
        length = self.pieces[piece, 0] * share
        curvature = self.pieces[piece, 1]
        half = 0.5 * curvature * length
        chord = length * np.sinc(half / np.pi)
        x, y, heading = self.joints[piece].T
        x = x + chord * np.cos(heading + half)
        y = y + chord * np.sin(heading + half)
        poses = np.stack([x, y, heading + 2 * half], axis=1)

        return np.concatenate([poses, self.joints[-1:]])


def weights(grid: TraversabilityGrid) -> Weights:
    """Return the weights of a grid's costs."""
    table = np.zeros(256, np.float32)  # by the cost as a byte: -1 is 255
    table[:100] = 1.0 + COST_WEIGHT * np.arange(100) / 99.0
    return table[grid.cost.view(np.uint8)]


def are_free(points: Floats, grid: TraversabilityGrid, weight: Weights) -> Bools:
    """Return whether points, (n, 2), m, are in cells of a grid that may be entered, (n,)."""
    column, row = np.floor((points - grid.origin) / grid.resolution).astype(int).T
    rows, columns = weight.shape
    free = np.asarray((row >= 0) & (column >= 0) & (row < rows) & (column < columns))
    free[free] = weight[row[free], column[free]] > 0.0
    return free


def plan_drive(
    grid: TraversabilityGrid,
    start: PlanPose,
    goal: PlanPose,
    turning_radius: float,
    *,
    backward_cost: float = math.inf,
    cusp_cost: float = 0.0,
    weight: Weights | None = None,
) -> DrivePath:
    """Return a path from start to goal over free cells.

    Its turning radius is at least `turning_radius` (m). A metre backwards counts `backward_cost` ≥
    1, inf: the vehicle drives forwards only. A change of direction counts `cusp_cost` metres.
    `weight` is the result of `weights` for the grid, which saves time where several paths are
    planned on it. The path is not the optimum, but no short cut makes it better. On free ground of
    equal cost it is Dubins' path, or the cheapest of Reeds' and Shepp's.

    Raises PlanError; its `reason` is outside, start_blocked, goal_blocked, same_place, unreachable,
    too_tight (a path exists, but none with that radius), gave_up or too_large (for the memory).
    """
    _check_radius(turning_radius, grid)
    check_memory("a plan", grid.cost.size, _BYTES_PER_CELL)
    if weight is None:
        weight = weights(grid)
    layout = (float(grid.origin[0]), float(grid.origin[1]), float(grid.resolution))
    for name, pose in (("start", start), ("goal", goal)):
        _check_place(weight, layout, name, pose)
    if math.hypot(goal.x - start.x, goal.y - start.y) < 1e-6 and _same_heading(start, goal):
        raise PlanError("same_place", f"the goal ({goal.x:g}, {goal.y:g}) is where the start is")

    # the least cost from each cell to the goal
    spare = 60.0 + 16.0 * turning_radius / layout[2]  # for detours that headings require
    start_cell = cell_at(*layout, start.x, start.y)
    to_go = kernels.cost_to_go(weight, cell_at(*layout, goal.x, goal.y), start_cell, spare)
    if not np.isfinite(to_go[start_cell]):
        reachable = float(np.isfinite(to_go).mean())
        raise PlanError(
            "unreachable",
            f"no way leads from ({start.x:g}, {start.y:g}) to ({goal.x:g}, {goal.y:g}): forbidden "
            "ground lies all around one of them; the goal can be reached from "
            f"{100 * reachable:.1f} % of the map",
        )

    # the path between poses
    steering = Steering(float(turning_radius), float(backward_cost), float(cusp_cost))
    target = np.array([goal.x, goal.y, goal.heading or 0.0])
    free_goal = goal.heading is None
    costs = searching.Costs(weight, layout, to_go)
    end = searching.Goal(target, free_goal)
    status, joints, pieces = searching.search(
        costs, _starts(start, goal), end, steering, MOST_NODES
    )
    if status == searching.UNREACHABLE:
        ways = "forwards" if backward_cost == math.inf else "forwards and backwards"
        raise PlanError(
            "too_tight",
            f"a way leads from ({start.x:g}, {start.y:g}) to ({goal.x:g}, {goal.y:g}), but none "
            f"that a vehicle with a turning radius of {turning_radius:g} m can drive {ways} with "
            "these headings",
        )
    if status == searching.GAVE_UP:
        raise PlanError(
            "gave_up", f"no way was found among {MOST_NODES:,} poses between start and goal"
        )
    return _shortened(weight, layout, joints, pieces, (start.heading is None, free_goal), steering)


def check_drive(path: DrivePath, grid: TraversabilityGrid) -> bool:
    """Return whether all cells that a path's lines and arcs cross may be entered."""
    weight = weights(grid)
    layout = (float(grid.origin[0]), float(grid.origin[1]), float(grid.resolution))
    cost = _cost_of(weight, layout, path.joints, path.pieces, Steering(1.0, 1.0))
    return cost != kernels.BLOCKED


def _same_heading(start: PlanPose, goal: PlanPose) -> bool:
    """Return whether two poses have the same heading; a free one is the same as any."""
    if start.heading is None or goal.heading is None:
        return True
    return abs(math.remainder(goal.heading - start.heading, 2 * math.pi)) < 1e-9


def _check_radius(turning_radius: float, grid: TraversabilityGrid) -> None:
    """Raise PlanError ("bad_radius") for a radius whose arcs rounding would spoil on this grid."""
    least = LEAST_RADIUS * grid.resolution
    most = MOST_RADIUS * grid.resolution * math.hypot(*grid.cost.shape)
    finite_number(
        "turning_radius",
        turning_radius,
        "m",
        at_least=least,
        at_most=most,
        error=partial(PlanError, "bad_radius"),
    )


def _check_place(weight: Weights, layout: _Layout, name: str, pose: PlanPose) -> None:
    """Raise PlanError if a pose lies off the map or where the vehicle may not be."""
    row, column = cell_at(*layout, pose.x, pose.y)
    rows, columns = weight.shape
    if not (0 <= row < rows and 0 <= column < columns):
        x_min, y_min, side = layout
        bounds = (x_min, x_min + columns * side, y_min, y_min + rows * side)
        raise off_the_map(name, pose.x, pose.y, bounds)
    if kernels.weight_at(weight, layout, float(pose.x), float(pose.y)) == 0.0:
        touches = "lies on" if weight[row, column] == 0.0 else "touches"
        raise PlanError(
            f"{name}_blocked",
            f"the {name} ({pose.x:g}, {pose.y:g}) {touches} ground that may not be driven on",
        )


def _starts(start: PlanPose, goal: PlanPose) -> Floats:
    """Return the poses (s, 3) with which the search begins; a free heading gives one a sector."""
    if start.heading is not None:
        return np.array([[start.x, start.y, start.heading % (2.0 * math.pi)]])

    # the middles of the sectors, and straight towards the goal
    sector = 2.0 * math.pi / _START_HEADINGS
    headings = (np.arange(_START_HEADINGS) + 0.5) * sector
    towards = math.atan2(goal.y - start.y, goal.x - start.x) % (2.0 * math.pi)
    headings[int(towards / sector) % _START_HEADINGS] = towards

    return np.stack(
        [np.full(len(headings), start.x), np.full(len(headings), start.y), headings], axis=1
    )


def _shortened(
    weight: Weights,
    layout: _Layout,
    joints: Floats,
    pieces: Floats,
    free_ends: tuple[bool, bool],
    steering: Steering,
) -> DrivePath:
    """Return the path after short cuts."""
    cost = math.inf
    for _ in range(ROUNDS):
        spacing = max(float(np.abs(pieces[:, 0]).sum()) / _JOINTS, layout[2])
        joints, pieces = _split(joints, pieces, spacing)
        joints, pieces, shortened_cost = searching.shorten(
            weight, layout, joints, pieces, *free_ends, steering
        )
        if shortened_cost > 0.999 * cost:
            break
        cost = shortened_cost

    # the samples of a joined piece lie elsewhere: where one is too near a corner, the shorter
    # pieces remain
    for path in (_joined(joints, pieces), (joints, pieces)):
        cost = _cost_of(weight, layout, *path, steering)
        if cost != kernels.BLOCKED:
            return DrivePath(*path, cost)
    raise PlanError("gave_up", "the path does not pass the check against the grid")


def _joined(joints: Floats, pieces: Floats) -> tuple[Floats, Floats]:
    """Return the path with neighbouring pieces of the same curvature and direction joined."""
    bends = np.diff(pieces[:, 1]) != 0.0
    turns_back = np.diff(np.sign(pieces[:, 0])) != 0.0
    first = np.concatenate([[True], bends | turns_back])
    lengths = np.add.reduceat(pieces[:, 0], np.flatnonzero(first))
    joined = np.concatenate([joints[:-1][first], joints[-1:]])
    return joined, np.stack([lengths, pieces[first, 1]], axis=1)


def _split(joints: Floats, pieces: Floats, spacing: float) -> tuple[Floats, Floats]:
    """Return the path in pieces of at most `spacing` (m)."""
    path = DrivePath(joints, pieces, 0.0)
    counts = np.maximum(1, np.ceil(np.abs(pieces[:, 0]) / spacing - 1e-9)).astype(int)
    parts = np.repeat(pieces / np.stack([counts, np.ones(len(counts))], axis=1), counts, axis=0)
    return path.poses(spacing), parts


def _cost_of(
    weight: Weights, layout: _Layout, joints: Floats, pieces: Floats, steering: Steering
) -> float:
    """Return the cost of a path, BLOCKED where it leaves the free cells."""
    cost = steering.cusp_cost * float((np.diff(np.sign(pieces[:, 0])) != 0.0).sum())
    for (x, y, heading), (length, curvature) in zip(joints.tolist(), pieces.tolist(), strict=False):
        part = kernels.piece_cost(weight, layout, x, y, heading, length, curvature, math.inf)
        if part == kernels.BLOCKED:
            return kernels.BLOCKED
        cost += part if length > 0.0 else steering.backward_cost * part
    return cost
