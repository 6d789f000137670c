# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Obstacles above the known ground, and places not seen yet, for a planner, from an octomap."""

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
"""Height above the terrain up to which occupied voxels count as the ground, m."""
KNOWN_HEIGHT = 2.0
"""Height above the terrain below which a place must have been seen to be driven on, m."""


@dataclass(frozen=True, eq=False)
class SeenSpace:
    """Obstacles and known places, ENU."""

    obstacles: ObjectBoxes
    """Boxes around rows of occupied voxels along x, from their lowest to their highest ones."""
    known: Floats
    """Lowest corner x, y and side (m) of squares with known voxels near the ground, (k, 3)."""

    def on(
        self, grid: TraversabilityGrid, clearance: float, unknown_cost: int
    ) -> TraversabilityGrid:
        """Return the costs with obstacles and unknown places.

        Cells with any part within `clearance` (m) of an obstacle are forbidden. Cells without a
        known square cost at least `unknown_cost`.
        """
        cost = grid.cost.copy()
        rows, columns = cost.shape
        cells = Grid(rows, columns, grid.resolution, grid.resolution, *grid.origin)
        if unknown_cost > 0:
            unknown = ~self._known_cells(cells) & (cost >= 0)
            cost[unknown] = np.maximum(cost[unknown], unknown_cost)

        row, column, _ = self.obstacles.outlines.grown(clearance).cells_under(cells)
        cost[row, column] = LETHAL

        return TraversabilityGrid(cost, grid.resolution, grid.origin)

    def _known_cells(self, cells: Grid) -> Bools:
        """Return a mask (rows, columns) of the known cells.

        A cell is known if it holds the centre of a known square, or lies in a larger one.
        """
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

        # number of squares that cover each cell, from its changes at their corners
        steps = np.zeros((cells.rows + 1, cells.columns + 1), np.int64)
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
    """Return obstacles and known places of the leaves of an octomap in ENU.

    Voxels that begin less than `ground_margin` (m) above the terrain count as the ground. Where the
    space above an obstacle is unknown, it is taken to be `unknown_height` (m) taller.
    """
    low = leaves.low
    side = leaves.side
    ground = terrain.altitude(low[:, 0] + side / 2, low[:, 1] + side / 2)
    above = low[:, 2] - np.asarray(ground, float)

    stands = leaves.occupied & (above >= ground_margin)
    near_ground = (above < KNOWN_HEIGHT) & (above + side > 0.0)
    known = np.column_stack([low[near_ground, :2], side[near_ground]])
    top = low[stands, 2] + side[stands]
    if unknown_height > 0.0 and len(top):
        middles = low[stands] + side[stands, None] * (0.5, 0.5, 1.0)
        top = top + unknown_height * ~_is_known(leaves, middles)
    return SeenSpace(_boxes(low[stands], side[stands], top), known)


def _is_known(leaves: Leaves, places: Floats) -> Bools:
    """Return whether a leaf contains each of the places (n, 3), m, its bottom included, (n,)."""
    known = np.zeros(len(places), bool)
    for side in np.unique(leaves.side).tolist():
        leaf = _packed(np.floor(leaves.low[leaves.side == side] / side + 0.5).astype(np.int64))
        packed_places = _packed(np.floor(places / side + 1e-6).astype(np.int64))
        cells, which = np.unique(packed_places, return_inverse=True)
        # search the leaves among the places: there are many leaves and few places
        index = np.minimum(np.searchsorted(cells, leaf), len(cells) - 1)
        is_leaf = np.zeros(len(cells), bool)
        is_leaf[index[cells[index] == leaf]] = True
        known |= is_leaf[which]
    return known


def _packed(cells: Ints) -> Ints:
    """Return x, y, z of cells (n, 3) in one number, (n,)."""
    return ((cells[:, 0] + HALF) << 32) | ((cells[:, 1] + HALF) << 16) | (cells[:, 2] + HALF)


def _boxes(low: Floats, side: Floats, top: Floats) -> ObjectBoxes:
    """Return a box around each unbroken row of voxel columns along x."""
    if not len(low):
        return ObjectBoxes(np.empty((0, 3)), np.empty((0, 3)))

    order = np.lexsort((low[:, 0], low[:, 1], side))
    low = low[order]
    side = side[order]
    top = top[order]

    # rows begin where a voxel does not follow the one before
    row = np.rint(low[:, :2] / side[:, None]).astype(np.int64)
    follows = (np.diff(side) == 0.0) & (np.diff(row[:, 1]) == 0) & (np.diff(row[:, 0]) <= 1)
    first = np.flatnonzero(np.concatenate([[True], ~follows]))

    least = np.minimum.reduceat(low, first)
    most = np.maximum.reduceat(np.column_stack([low[:, :2] + side[:, None], top]), first)
    return ObjectBoxes(0.5 * (least + most), 0.5 * (most - least))
