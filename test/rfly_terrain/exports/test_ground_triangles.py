# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Triangles of the ground: where they lie, that they leave no gap, and that brighter is higher."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rfly_terrain.costmap.traversability import TraversabilityGrid
from rfly_terrain.exports.ground_triangles import (
    COST_TINTS,
    HEIGHT_TINTS,
    LIFT,
    terrain_triangles,
    traversability_triangles,
)
from rfly_terrain.height_map.height_map import HeightMap

MANY = 1_000_000


def ground(heights, step_x=10.0, step_y=10.0, origin=(0.0, 0.0)) -> HeightMap:
    return HeightMap(
        np.asarray(heights, float),
        origin_x=origin[0],
        origin_y=origin[1],
        step_x=step_x,
        step_y=step_y,
    )


def lightness(colour):
    """CIE L* of sRGB 0 … 1 (IEC 61966-2-1; CIE 15)."""
    colour = np.asarray(colour, float)
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return np.where(
        luminance > (6 / 29) ** 3, 116 * np.cbrt(luminance) - 16, luminance * (29 / 3) ** 3
    )


def tint(text):
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def normals(points):
    across = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    return across / np.linalg.norm(across, axis=1, keepdims=True)


def test_four_samples_are_two_triangles():
    """The quad is divided along its lower diagonal: 3 + 2 < 1 + 5, but 4 + 3 > 1 + 5.

    heights[r, c] lies at x = 100 + 10 r, y = 200 + 20 c.
    """
    south_west = (100, 200, 1)
    north_east = (110, 220, 5)

    for east, north, parts in ((3, 2, "sw se nw, se ne nw"), (4, 3, "sw se ne, sw ne nw")):
        points, colours = terrain_triangles(
            ground([[1, north], [east, 5]], 10, 20, (100, 200)), MANY
        )
        named = {
            "sw": south_west,
            "ne": north_east,
            "se": (110, 200, east),
            "nw": (100, 220, north),
        }
        assert points.tolist() == [
            [list(named[corner]) for corner in part.split()] for part in parts.split(", ")
        ]

    assert (colours.shape, colours.dtype) == ((2, 3, 4), np.float32)
    assert (colours[..., 3] == 1.0).all()


@pytest.mark.parametrize(("step_x", "step_y"), [(10, 20), (-10, 20), (10, -20), (-10, -20)])
def test_normals_point_up_whichever_way_the_samples_run(step_x, step_y):
    """A plane that rises 0.5 m a metre eastwards: its normal is (-0.5, 0, 1) / sqrt(1.25)."""
    heights = 0.5 * step_x * np.arange(6)[:, None] + np.zeros((6, 4))
    points, _ = terrain_triangles(ground(heights, step_x, step_y), MANY)
    np.testing.assert_allclose(
        normals(points), np.tile([-0.4472135955, 0.0, 0.894427191], (30, 1)), atol=1e-6
    )


@pytest.mark.parametrize("limit", [2, 3, 7, 24, 60, 999, MANY])
def test_the_map_is_covered_without_gaps_at_any_limit(limit):
    """Every edge belongs to two triangles, or lies on the map's edge.

    Seen from above the triangles make up the map's area.
    """
    rng = np.random.default_rng(1)
    points, _ = terrain_triangles(ground(rng.uniform(0, 50, (23, 31)), 10, -5, (-40, 70)), limit)
    assert 1 <= len(points) <= limit

    # edges
    edges = Counter(
        frozenset((tuple(t[i]), tuple(t[i - 1]))) for t in points.tolist() for i in range(3)
    )
    for edge, count in edges.items():
        (xa, ya, _), (xb, yb, _) = edge
        on_rim = (xa == xb and xa in (-40, 180)) or (ya == yb and ya in (-80, 70))
        assert count == (1 if on_rim else 2), edge

    # areas
    flat = points[..., :2]
    u = flat[:, 1] - flat[:, 0]
    v = flat[:, 2] - flat[:, 0]
    areas = (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]) / 2
    assert (areas > 0).all(), "counter-clockwise from above"
    assert areas.sum() == pytest.approx(220 * 150)


def test_all_samples_are_corners_where_the_limit_allows():
    rng = np.random.default_rng(2)
    terrain = ground(rng.uniform(0, 50, (7, 9)))
    points, _ = terrain_triangles(terrain, 2 * 6 * 8)
    expected = {
        (10.0 * r, 10.0 * c, float(terrain.heights[r, c])) for r in range(7) for c in range(9)
    }
    assert {tuple(corner) for corner in points.reshape(-1, 3).tolist()} == expected


def test_corners_of_a_thinned_map_lie_on_the_ground():
    """z = x y is bilinear between any samples: so is what the map says there."""
    x, y = np.meshgrid(np.arange(41.0), np.arange(31.0), indexing="ij")
    points, _ = terrain_triangles(ground(x * y, 1.0, 1.0), 100)
    assert len(points) <= 100
    np.testing.assert_allclose(points[..., 2], points[..., 0] * points[..., 1], atol=1e-3)


def test_no_triangle_hides_the_ground():
    """The middles of the three sides and the centre are compared with the map's own altitude."""
    terrain = ground(np.random.default_rng(3).uniform(0, 50, (12, 9)))
    points, _ = terrain_triangles(terrain, MANY)
    for weights in ((0.5, 0.5, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (1 / 3, 1 / 3, 1 / 3)):
        x, y, z = np.einsum("tki,k->it", points, weights)
        assert (terrain.altitude(x, y) > z - 1e-4).all()


def test_tints_rise_in_lightness_in_even_steps():
    steps = np.diff(lightness([tint(each) for each in HEIGHT_TINTS]))
    assert (steps > 8.5).all()
    assert (steps < 11).all()
    assert (np.diff(lightness([tint(each) for each in COST_TINTS])) < -10).all(), "harder is darker"


def test_low_is_dark_and_blue_high_is_light():
    """Lightness rises with the height, and only with it.

    The light is the same everywhere on a plane.
    """
    heights = np.repeat(np.linspace(-20, 60, 81)[:, None], 5, axis=1)
    points, colours = terrain_triangles(ground(heights), MANY)
    order = np.argsort(points[..., 2].ravel(), kind="stable")
    z = points[..., 2].ravel()[order]
    rgb = colours[..., :3].reshape(-1, 3)[order]
    light = lightness(rgb)
    assert (np.diff(light)[np.diff(z) > 0] > 0).all()
    assert light[-1] - light[0] > 55
    red, _, blue = rgb[0]
    assert blue > 2 * red


def test_level_ground_has_the_lowest_tint():
    _, colours = terrain_triangles(ground(np.full((4, 4), 7.0)), MANY)
    np.testing.assert_allclose(
        colours[..., :3], np.broadcast_to(tint("#243e62"), colours[..., :3].shape), atol=1e-6
    )


def test_slopes_are_lit_from_the_north_west():
    """A cone: its north-western side is brighter than the south-eastern one at the same height."""
    x, y = np.meshgrid(np.arange(-20.0, 21.0), np.arange(-20.0, 21.0), indexing="ij")
    points, colours = terrain_triangles(ground(-np.hypot(x, y), 1.0, 1.0, (-20, -20)), MANY)
    light = {
        (corner[0], corner[1]): float(lightness(colour[:3]))
        for corner, colour in zip(
            points.reshape(-1, 3).tolist(), colours.reshape(-1, 4), strict=True
        )
    }
    assert light[-8, 8] > light[8, -8] + 20
    assert light[-8, -8] == pytest.approx(light[8, 8], abs=15)


def costs(cost, resolution=10.0, origin=(-5.0, -5.0)) -> TraversabilityGrid:
    return TraversabilityGrid(np.array(cost, np.int8), resolution, origin)


def corner_colours(triangles):
    return {
        (x, y): tuple(np.round(colour.astype(float), 4).tolist())
        for (x, y, _), colour in zip(
            triangles.points.reshape(-1, 3).tolist(), triangles.colours.reshape(-1, 4), strict=True
        )
    }


def test_costs_lie_above_the_corners_of_the_ground():
    """A cell for each sample, row by row from the south: 0, 99, 100 and -1."""
    terrain = ground([[1, 2], [3, 5]])
    costed = traversability_triangles(terrain, costs([[0, 99], [100, -1]]), MANY)
    np.testing.assert_allclose(
        costed.points - terrain_triangles(terrain, MANY).points, (0, 0, LIFT) * np.ones((2, 3, 1))
    )
    assert corner_colours(costed) == {
        (0, 0): (1.0, 0.9529, 0.6902, 0.25),  # #fff3b0
        (10, 0): (0.4784, 0.0863, 0.3765, 0.85),  # #7a1660
        (0, 10): (0.1647, 0.0392, 0.1804, 0.85),  # #2a0a2e
        (10, 10): (0.549, 0.549, 0.549, 0.5),  # #8c8c8c
    }


def test_a_forbidden_cell_outlasts_thinning():
    """Each corner shows the worst of what is nearest to it.

    5 x 5 samples become 3 x 3 corners, 20 m apart.
    """
    cost = np.zeros((5, 5), np.int8)
    cost[1, 3] = (
        100  # y 10, x 30: in the middle between corners, counts for the one to the north-east
    )
    cost[4, 0] = 99
    costed = corner_colours(traversability_triangles(ground(np.zeros((5, 5))), costs(cost), 8))

    assert set(costed) == {(x, y) for x in (0, 20, 40) for y in (0, 20, 40)}
    forbidden = [
        place for place, colour in costed.items() if colour[:3] == (0.1647, 0.0392, 0.1804)
    ]
    hard = [place for place, colour in costed.items() if colour[:3] == (0.4784, 0.0863, 0.3765)]
    assert (forbidden, hard) == ([(40, 20)], [(0, 40)])
    assert all(
        colour[3] == 0.25 for place, colour in costed.items() if place not in (*forbidden, *hard)
    )


def test_coarse_cells_colour_all_corners_within_them():
    """Two cells of 40 m over a map with samples every 10 m."""
    costed = corner_colours(
        traversability_triangles(ground(np.zeros((9, 5))), costs([[0, 100]], 40.0, (0, 0)), MANY)
    )
    dark = {place for place, colour in costed.items() if colour[0] < 0.2}
    assert dark == {(x, y) for x in (50, 60, 70, 80) for y in (0, 10, 20, 30, 40)}
