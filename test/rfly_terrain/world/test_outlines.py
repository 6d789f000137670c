# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Outlines from above, against shares of dense points and hulls by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_terrain.height_map.grid import Grid
from rfly_terrain.world.solids import ObjectBoxes, Solids, joined

TETRAHEDRON = np.array([(0.0, 0.0, 1.0), (4.0, 0.0, 1.0), (0.0, 3.0, 1.0), (1.0, 1.0, 6.0)])


def solids(*groups):
    return Solids(np.concatenate(groups), np.cumsum([0, *map(len, groups)]))


def random_solids(seed, count=12):
    rng = np.random.default_rng(seed)
    return solids(
        *(
            rng.uniform(0, 20, 3) + rng.normal(size=(int(rng.integers(4, 30)), 3)) * 1.5
            for _ in range(count)
        )
    )


def corners_of(outlines, row):
    return outlines.corners[outlines.first[row] : outlines.first[row + 1]]


def within(corners, points):
    """(n,) whether points lie in a polygon whose corners go counter-clockwise."""
    side = np.roll(corners, -1, axis=0) - corners
    away = points[:, None] - corners
    return (side[:, 0] * away[..., 1] - side[:, 1] * away[..., 0] >= 0.0).all(axis=1)


def distances(corners, points):
    """(n,) from points to a polygon, side by side; 0 within."""
    away = np.full(len(points), np.inf)
    for (ax, ay), (bx, by) in zip(
        corners.tolist(), np.roll(corners, -1, axis=0).tolist(), strict=True
    ):
        length = math.hypot(bx - ax, by - ay)
        along = ((points[:, 0] - ax) * (bx - ax) + (points[:, 1] - ay) * (by - ay)) / length
        at = np.clip(along, 0.0, length) / length
        away = np.minimum(
            away, np.hypot(points[:, 0] - ax - at * (bx - ax), points[:, 1] - ay - at * (by - ay))
        )
    return np.where(within(corners, points), 0.0, away)


def test_an_outline_by_hand():
    outlines = solids(TETRAHEDRON).outlines
    assert sorted(map(tuple, corners_of(outlines, 0).tolist())) == [
        (0.0, 0.0),
        (0.0, 3.0),
        (4.0, 0.0),
    ]
    assert (outlines.bottom.tolist(), outlines.top.tolist()) == ([1.0], [6.0])


@pytest.mark.parametrize("seed", range(4))
def test_corners_go_round_all_vertices(seed):
    made = random_solids(seed)
    for row in range(len(made)):
        corners = corners_of(made.outlines, row)
        vertices = made.vertices[made.first[row] : made.first[row + 1], :2]
        middle = vertices.mean(axis=0)
        assert within(corners, middle + (vertices - middle) * (1 - 1e-6)).all()
        assert {tuple(corner) for corner in corners.tolist()} <= {
            tuple(vertex) for vertex in vertices.tolist()
        }


@pytest.mark.parametrize("seed", range(3))
def test_which_points_are_near(seed):
    made = random_solids(seed)
    points = np.random.default_rng(seed).uniform(-3, 23, (400, 2))
    for distance in (0.0, 0.7, 2.5):
        point, which = made.outlines.near(points, distance)
        found = np.zeros((len(points), len(made)), bool)
        found[point, which] = True
        expected = np.stack(
            [distances(corners_of(made.outlines, k), points) for k in range(len(made))], axis=1
        )
        assert (expected[found] <= distance + 1e-3).all()
        assert (expected[~found] > distance - 1e-9).all()


@pytest.mark.parametrize("grow", [0.0, 0.8])
def test_which_cells_lie_under_them(grow):
    """Each cell by 9 x 9 points in it; a disc about the outline may count up to 2 % larger."""
    made = random_solids(7)
    grid = Grid(30, 17, 0.7, -0.8, 2.0, 21.0)
    row, column, which = made.outlines.grown(grow).cells_under(grid)
    assert len(set(zip(row.tolist(), column.tolist(), which.tolist(), strict=True))) == len(row)
    found = np.zeros((grid.rows, grid.columns, len(made)), bool)
    found[row, column, which] = True

    # distances of the points in each cell
    inner = np.linspace(0.001, 0.999, 9)
    v, u = (
        np.add.outer(np.arange(n), inner) for n in (grid.rows, grid.columns)
    )  # (rows, 9), (columns, 9)
    x, y = grid.positions(u[None, :, None, :], v[:, None, :, None])
    points = np.stack(np.broadcast_arrays(x, y), axis=-1).reshape(-1, 2)
    for k in range(len(made)):
        nearest = (
            distances(corners_of(made.outlines, k), points)
            .reshape(grid.rows, grid.columns, 81)
            .min(axis=2)
        )
        assert found[nearest < grow, k].all() if grow else found[nearest == 0.0, k].all()
        assert not found[nearest > 1.02 * grow + 0.06, k].any()

    assert found.sum() > 100


def test_some_of_them_and_none():
    made = random_solids(1)
    some = made.outlines.select(np.array([3, 5]))
    assert corners_of(some, 1).tolist() == corners_of(made.outlines, 5).tolist()
    assert some.top.tolist() == made.outlines.top[[3, 5]].tolist()
    none = Solids(np.empty((0, 3)), np.zeros(1, int))
    assert len(none.outlines) == 0
    assert len(none.outlines.near(np.zeros((1, 2)), 1e9)[0]) == 0
    assert len(none.outlines.grown(1.0).cells_under(Grid(3, 3, 1.0, 1.0, 0.0, 0.0))[0]) == 0


def test_boxes_are_solids_too():
    turned = ObjectBoxes(
        [(10.0, 0.0, 2.0)], [(2.0, 1.0, 2.0)], [(0.0, 0.0, math.sin(0.2), math.cos(0.2))]
    )
    both = joined([turned, solids(TETRAHEDRON)])
    assert len(both) == 2
    low, high = both.outlines.bounds
    reach = 2 * math.cos(0.4) + math.sin(0.4)
    assert (low[0, 0], high[0, 0]) == (pytest.approx(10 - reach), pytest.approx(10 + reach))
    assert both.outlines.top.tolist() == [4.0, 6.0]


@pytest.mark.parametrize(
    ("vertices", "first", "words"),
    [
        (np.zeros((4, 3)), [0, 3], "from 0 to 4"),
        (np.zeros((4, 3)), [0, 4, 4], "each solid has a vertex"),
        (np.zeros((4, 2)), [0, 4], r"shape \(n, 3\)"),
        (np.full((4, 3), np.nan), [0, 4], "expected a finite number"),
    ],
)
def test_solids_that_contradict_themselves(vertices, first, words):
    with pytest.raises(ValueError, match=words):
        Solids(vertices, np.array(first))
    assert not solids(TETRAHEDRON).vertices.flags.writeable
