"""What an octomap tells a planner: obstacles above the known ground, and where nothing has been
seen yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Bools, Floats, Ints
from rfly_terrain.costmap.traversability import LETHAL, TraversabilityGrid
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.occupancy.octree import HALF, Leaves
from rfly_terrain.world.solids import ObjectBoxes

GROUND_MARGIN = 0.5
"""m above the terrain up to which occupied voxels are taken for the ground"""
KNOWN_HEIGHT = 2.0
"""m above the terrain below which something has to be known of a place that is driven on"""


@dataclass(frozen=True, eq=False)
class SeenSpace:
    """Obstacles and known places, ENU."""

    obstacles: ObjectBoxes
    """rows of occupied voxels along x, with all that is between their lowest and their highest ones
    """
    known: Floats
    """(k, 3) x, y of the lowest corners and sides (m) of squares of which something near the ground
    is known
    """

    def on(
        self, grid: TraversabilityGrid, clearance: float, unknown_cost: int
    ) -> TraversabilityGrid:
        """The costs with cells forbidden of which any part lies within `clearance` (m) of an
        obstacle, and those of which nothing is known at least at `unknown_cost`.
        """
        cost = grid.cost.copy()
        rows, columns = cost.shape
        cells = Grid(rows, columns, grid.resolution, grid.resolution, *grid.origin)
        if unknown_cost > 0:
            dear = ~self._known_cells(cells) & (cost >= 0)
            cost[dear] = np.maximum(cost[dear], unknown_cost)
        row, column, _ = self.obstacles.outlines.grown(clearance).cells_under(cells)
        cost[row, column] = LETHAL
        return TraversabilityGrid(cost, grid.resolution, grid.origin)

    def _known_cells(self, cells: Grid) -> Bools:
        """(rows, columns) those that hold the middle of a known square, or a part of a larger one."""
        side = self.known[:, 2]
        inset = 0.5 * side / np.ceil(side / cells.step_x)
        columns, rows = (
            (
                np.clip(np.floor((low + inset - corner) / cells.step_x), 0, count).astype(np.int64),
                np.clip(
                    np.floor((low + side - inset - corner) / cells.step_x) + 1, 0, count
                ).astype(np.int64),
            )
            for low, corner, count in (
                (self.known[:, 0], cells.x_corner, cells.columns),
                (self.known[:, 1], cells.y_corner, cells.rows),
            )
        )
        steps = np.zeros(
            (cells.rows + 1, cells.columns + 1), np.int64
        )  # of how many squares cover each cell
        for row in (0, 1):
            for column in (0, 1):
                np.add.at(steps, (rows[row], columns[column]), 1 if row == column else -1)
        return steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0


def seen_space(
    leaves: Leaves,
    terrain: HeightMap,
    *,
    ground_margin: float = GROUND_MARGIN,
    unknown_height: float = 0.0,
) -> SeenSpace:
    """What leaves of an octomap in ENU say; voxels that begin less than `ground_margin` (m) above
    the terrain count as the ground. Where nothing is known of what is above an obstacle, it is
    taken to be `unknown_height` (m) taller.
    """
    low = leaves.low
    side = leaves.side
    above = low[:, 2] - np.asarray(
        terrain.altitude(low[:, 0] + side / 2, low[:, 1] + side / 2), float
    )
    stands = leaves.occupied & (above >= ground_margin)
    near_ground = (above < KNOWN_HEIGHT) & (above + side > 0.0)
    known = np.column_stack([low[near_ground, :2], side[near_ground]])
    top = low[stands, 2] + side[stands]
    if unknown_height > 0.0 and len(top):
        top = top + unknown_height * ~_is_known(
            leaves, low[stands] + side[stands, None] * (0.5, 0.5, 1.0)
        )
    return SeenSpace(_boxes(low[stands], side[stands], top), known)


def _is_known(leaves: Leaves, places: Floats) -> Bools:
    """(n,) whether a leaf begins at or below each of the places (n, 3) m, and ends above it."""
    known = np.zeros(len(places), bool)
    for side in np.unique(leaves.side).tolist():
        there = _packed(np.floor(leaves.low[leaves.side == side] / side + 0.5).astype(np.int64))
        cells, which = np.unique(
            _packed(np.floor(places / side + 1e-6).astype(np.int64)), return_inverse=True
        )
        at = np.minimum(
            np.searchsorted(cells, there), len(cells) - 1
        )  # there are many leaves and few places
        met = np.zeros(len(cells), bool)
        met[at[cells[at] == there]] = True
        known |= met[which]
    return known


def _packed(cells: Ints) -> Ints:
    return ((cells[:, 0] + HALF) << 32) | ((cells[:, 1] + HALF) << 16) | (cells[:, 2] + HALF)


def _boxes(low: Floats, side: Floats, top: Floats) -> ObjectBoxes:
    """A box around each unbroken row of voxel columns along x."""
    if not len(low):
        return ObjectBoxes(np.empty((0, 3)), np.empty((0, 3)))
    order = np.lexsort((low[:, 0], low[:, 1], side))
    low = low[order]
    side = side[order]
    top = top[order]
    row = np.rint(low[:, :2] / side[:, None]).astype(np.int64)
    follows = (np.diff(side) == 0.0) & (np.diff(row[:, 1]) == 0) & (np.diff(row[:, 0]) <= 1)
    first = np.flatnonzero(np.concatenate([[True], ~follows]))
    least = np.minimum.reduceat(low, first)
    most = np.maximum.reduceat(np.column_stack([low[:, :2] + side[:, None], top]), first)
    return ObjectBoxes(0.5 * (least + most), 0.5 * (most - least))
