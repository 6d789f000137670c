"""Hybrid A* over a cost grid for a vehicle with a turn radius, then short cuts.

The costs are those of `traversability`: a metre in a cell of cost c counts 1 + COST_WEIGHT · c /
99, cells of 100 and of -1 are never entered. What is found consists of straight lines and arcs of
the turning radius, driven forwards, or both ways by a vehicle that reverses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import PlanError
from rfly_terrain.planning import kernels
from rfly_terrain.planning import search_kernels as searching
from rfly_terrain.planning.kernels import Steering
from rfly_terrain.planning.plan import off_the_map
from rfly_terrain.planning.plan_pose import PlanPose

if TYPE_CHECKING:
    from rfly_terrain.costmap.traversability import TraversabilityGrid

COST_WEIGHT = 2.0
"""by which a metre of the worst ground that can be driven exceeds one of the best"""
MOST_NODES = 1 << 20
"""poses that a search keeps before it gives up: some seconds"""
ROUNDS = 3
"""of short cuts, at most"""
_JOINTS = 300
"""places between which short cuts are looked for"""
_START_HEADINGS = 72


Weights = NDArray[np.float32]
"""(rows, columns) what a metre costs in each cell, 0 where nobody may be: what the kernels read"""
_Place = tuple[float, float, float]
"""x, y of a grid's south-west corner, and the side of its cells, m"""


@dataclass(frozen=True, eq=False)
class DrivePath:
    """Lines and arcs, one after the other."""

    joints: Floats
    """(n + 1, 3) x, y (m), heading (rad) where pieces begin, and of the end"""
    pieces: Floats
    """(n, 2) length (m, negative: backwards), curvature (1/m, steered left positive)"""
    cost: float
    """m of the best ground that cost as much"""

    @property
    def length(self) -> float:
        """m, in the plane"""
        return float(np.abs(self.pieces[:, 0]).sum())

    def poses(self, spacing: float, turn: float = math.inf) -> Floats:
        """(m, 3) x, y, heading along the path: all joints, and between them no two farther apart
        than `spacing` (m) or `turn` (rad).
        """
        lengths = np.abs(self.pieces[:, 0])
        least = np.maximum(lengths / spacing, lengths * np.abs(self.pieces[:, 1]) / turn)
        counts = np.maximum(1, np.ceil(least - 1e-9)).astype(int)
        piece = np.repeat(np.arange(len(counts)), counts)
        share = (np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[
            piece
        ]
        length = self.pieces[piece, 0] * share
        curvature = self.pieces[piece, 1]
        half = 0.5 * curvature * length
        chord = length * np.sinc(half / np.pi)
        x, y, heading = self.joints[piece].T
        poses = np.stack(
            [
                x + chord * np.cos(heading + half),
                y + chord * np.sin(heading + half),
                heading + 2 * half,
            ],
            1,
        )
        return np.concatenate([poses, self.joints[-1:]])


def weights(grid: TraversabilityGrid) -> Weights:
    """Of a grid's costs."""
    table = np.zeros(256, np.float32)  # by the cost's byte: -1 is 255
    table[:100] = 1.0 + COST_WEIGHT * np.arange(100) / 99.0
    return table[grid.cost.view(np.uint8)]


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
    """A path from start to goal that enters no forbidden or unknown cell and turns with
    `turning_radius` (m) at least.

    A metre backwards counts `backward_cost` ≥ 1, inf: it drives forwards only; a change of
    direction counts `cusp_cost` metres. `weight` is what `weights` has made of the grid before,
    where several paths are planned on one. The path is not the best there is, but no short cut
    makes it better; where nothing is in the way and all ground is alike, it is Dubins', or the
    cheapest of Reeds' and Shepp's.

    Raises PlanError; its `reason` is outside, start_blocked, goal_blocked, same_place, unreachable,
    too_tight (a path leads there, but none with that radius) or gave_up.
    """
    finite_number(
        "turning_radius", turning_radius, "m", above=0.0, error=partial(PlanError, "bad_radius")
    )
    if weight is None:
        weight = weights(grid)
    place = (float(grid.origin[0]), float(grid.origin[1]), float(grid.resolution))
    for name, pose in (("start", start), ("goal", goal)):
        _check_place(weight, place, name, pose)
    if math.hypot(goal.x - start.x, goal.y - start.y) < 1e-6 and _same_heading(start, goal):
        raise PlanError("same_place", f"the goal ({goal.x:g}, {goal.y:g}) is where the start is")
    to_go = _cost_to_go(weight, place, goal, start, turning_radius)
    cell = _cell(place, start)
    if not np.isfinite(to_go[cell]):
        reachable = float(np.isfinite(to_go).mean())
        raise PlanError(
            "unreachable",
            f"no way leads from ({start.x:g}, {start.y:g}) to ({goal.x:g}, {goal.y:g}): forbidden ground lies all "
            f"around one of them; the goal can be reached from {100 * reachable:.1f} % of the map",
        )
    steering = Steering(float(turning_radius), float(backward_cost), float(cusp_cost))
    target = np.array([goal.x, goal.y, goal.heading or 0.0])
    free_goal = goal.heading is None
    costs = searching.Costs(weight, place, to_go)
    end = searching.Goal(target, free_goal)
    status, joints, pieces = searching.search(
        costs, _starts(start, goal), end, steering, MOST_NODES
    )
    if status == searching.UNREACHABLE:
        ways = "forwards" if backward_cost == math.inf else "forwards and backwards"
        raise PlanError(
            "too_tight",
            f"a way leads from ({start.x:g}, {start.y:g}) to ({goal.x:g}, {goal.y:g}), but none that a vehicle with a "
            f"turning radius of {turning_radius:g} m can drive {ways} with these headings",
        )
    if status == searching.GAVE_UP:
        raise PlanError(
            "gave_up", f"no way was found among {MOST_NODES:,} poses between start and goal"
        )
    return _shortened(weight, place, joints, pieces, (start.heading is None, free_goal), steering)


def check_drive(path: DrivePath, grid: TraversabilityGrid) -> bool:
    """Whether a path stays on cells that may be entered: all that its lines and arcs cross."""
    weight = weights(grid)
    place = (float(grid.origin[0]), float(grid.origin[1]), float(grid.resolution))
    return _cost_of(weight, place, path.joints, path.pieces, Steering(1.0, 1.0)) != kernels.BLOCKED


def _same_heading(start: PlanPose, goal: PlanPose) -> bool:
    if start.heading is None or goal.heading is None:
        return True
    return abs(math.remainder(goal.heading - start.heading, 2 * math.pi)) < 1e-9


def _cell(place: _Place, pose: PlanPose) -> tuple[int, int]:
    return math.floor((pose.y - place[1]) / place[2]), math.floor((pose.x - place[0]) / place[2])


def _check_place(weight: Weights, place: _Place, name: str, pose: PlanPose) -> None:
    row, column = _cell(place, pose)
    rows, columns = weight.shape
    if not (0 <= row < rows and 0 <= column < columns):
        bounds = (place[0], place[0] + columns * place[2], place[1], place[1] + rows * place[2])
        raise off_the_map(name, pose.x, pose.y, bounds)
    if kernels.weight_at(weight, place, float(pose.x), float(pose.y)) == 0.0:
        touches = "lies on" if weight[row, column] == 0.0 else "touches"
        raise PlanError(
            f"{name}_blocked",
            f"the {name} ({pose.x:g}, {pose.y:g}) {touches} ground that may not be driven on",
        )


def _cost_to_go(
    weight: Weights, place: _Place, goal: PlanPose, start: PlanPose, radius: float
) -> NDArray[np.float32]:
    goal_cell = _cell(place, goal)
    start_cell = _cell(place, start)
    spare = 60.0 + 16.0 * radius / place[2]  # for the way round that headings ask for
    return kernels.cost_to_go(weight, goal_cell, start_cell, spare)


def _starts(start: PlanPose, goal: PlanPose) -> Floats:
    if start.heading is not None:
        return np.array([[start.x, start.y, start.heading % (2.0 * math.pi)]])
    sector = 2.0 * math.pi / _START_HEADINGS
    headings = (np.arange(_START_HEADINGS) + 0.5) * sector
    towards = math.atan2(goal.y - start.y, goal.x - start.x) % (2.0 * math.pi)
    headings[int(towards / sector) % _START_HEADINGS] = towards
    return np.stack(
        [np.full(len(headings), start.x), np.full(len(headings), start.y), headings], axis=1
    )


def _shortened(
    weight: Weights,
    place: _Place,
    joints: Floats,
    pieces: Floats,
    free_ends: tuple[bool, bool],
    steering: Steering,
) -> DrivePath:
    cost = math.inf
    for _ in range(ROUNDS):
        joints, pieces = _split(
            joints, pieces, max(float(np.abs(pieces[:, 0]).sum()) / _JOINTS, place[2])
        )
        joints, pieces, now = searching.shorten(weight, place, joints, pieces, *free_ends, steering)
        if now > 0.999 * cost:
            break
        cost = now
    # the samples of a longer piece lie elsewhere: where one of them is too near to a corner, the
    # shorter ones stay
    for path in (_joined(joints, pieces), (joints, pieces)):
        cost = _cost_of(weight, place, *path, steering)
        if cost != kernels.BLOCKED:
            return DrivePath(*path, cost)
    raise PlanError("gave_up", "the way that was found does not stand the check against the grid")


def _joined(joints: Floats, pieces: Floats) -> tuple[Floats, Floats]:
    """The same path with neighbouring pieces of the same curvature and direction as one."""
    first = np.concatenate(
        [[True], (np.diff(pieces[:, 1]) != 0.0) | (np.diff(np.sign(pieces[:, 0])) != 0.0)]
    )
    lengths = np.add.reduceat(pieces[:, 0], np.flatnonzero(first))
    kept = np.concatenate([joints[:-1][first], joints[-1:]])
    return kept, np.stack([lengths, pieces[first, 1]], axis=1)


def _split(joints: Floats, pieces: Floats, spacing: float) -> tuple[Floats, Floats]:
    """The same path in pieces of at most `spacing` (m)."""
    path = DrivePath(joints, pieces, 0.0)
    counts = np.maximum(1, np.ceil(np.abs(pieces[:, 0]) / spacing - 1e-9)).astype(int)
    parts = np.repeat(pieces / np.stack([counts, np.ones(len(counts))], axis=1), counts, axis=0)
    return path.poses(spacing), parts


def _cost_of(
    weight: Weights, place: _Place, joints: Floats, pieces: Floats, steering: Steering
) -> float:
    cost = steering.cusp_cost * float((np.diff(np.sign(pieces[:, 0])) != 0.0).sum())
    for (x, y, heading), (length, curvature) in zip(joints.tolist(), pieces.tolist(), strict=False):
        part = kernels.piece_cost(weight, place, x, y, heading, length, curvature, math.inf)
        if part == kernels.BLOCKED:
            return kernels.BLOCKED
        cost += part if length > 0.0 else steering.backward_cost * part
    return cost
