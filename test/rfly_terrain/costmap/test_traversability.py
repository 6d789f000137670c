# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Traversability, compared with a slow implementation, and with planes, steps and peaks.

The slow one handles one cell after the other. It fits each plane by `lstsq` over the cells of the
disc, found by their distances. It checks each pair of neighbours in the disc, and grows forbidden
cells by measuring every distance.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap
from rfly_terrain.costmap.traversability import TraversabilityLimits, traversability
from rfly_terrain.world.solids import ObjectBoxes

ONLY_SLOPE = {"max_roughness": math.inf, "max_step": math.inf, "vehicle_radius": 0.0}


def slow_costs(heights, side, limits, under=()):
    """Return costs, (rows along north, columns along east), of heights in that order.

    `under`: cells below objects.
    """
    rows, columns = heights.shape
    radius = max(limits.half_wheelbase, side) + 1e-9

    # from each disc alone
    cost = np.full(heights.shape, -1)
    for i in range(rows):
        for j in range(columns):
            reach = range(-math.floor(radius / side), math.floor(radius / side) + 1)
            disc = [
                (i + a, j + b) for a in reach for b in reach if math.hypot(a, b) * side <= radius
            ]
            if all(0 <= a < rows and 0 <= b < columns for a, b in disc):
                cost[i, j] = cost_of_disc(disc, heights, side, limits)
            if limits.water_level is not None and heights[i, j] < limits.water_level:
                cost[i, j] = 100

    # grown by the radius
    for i, j in under:
        cost[i, j] = 100
    lethal = np.argwhere(cost == 100)
    for i in range(rows):
        for j in range(columns):
            if any(
                math.hypot(*(cell - (i, j))) * side <= limits.vehicle_radius + 1e-9
                for cell in lethal
            ):
                cost[i, j] = 100

    return cost


def cost_of_disc(disc, heights, side, limits):
    places = np.array([(1.0, j * side, i * side) for i, j in disc])
    z = np.array([heights[cell] for cell in disc])
    plane, *_ = np.linalg.lstsq(places - places[0] * (0, 1, 1), z, rcond=None)
    slope = math.degrees(math.atan(math.hypot(plane[1], plane[2])))
    roughness = math.sqrt(np.mean((z - (places - places[0] * (0, 1, 1)) @ plane) ** 2))
    pairs = [(a, b) for a in disc for b in disc if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    step = max(abs(heights[a] - heights[b]) for a, b in pairs)
    worst = max(
        slope / limits.max_slope_deg, roughness / limits.max_roughness, step / limits.max_step
    )
    return 100 if worst >= 1 else round(99 * worst)


def north_up(terrain):
    """Heights (rows along north, columns along east) by the definition of the map's axes."""
    x = terrain.origin_x + terrain.step_x * np.arange(terrain.rows)
    y = terrain.origin_y + terrain.step_y * np.arange(terrain.columns)
    return terrain.heights.astype(float)[np.argsort(x)][:, np.argsort(y)].T


def some_map(seed, shape=(17, 23), step=(0.5, 0.5), level=0.0):
    """Smoother in one corner than in the other, so that costs of all sizes occur."""
    rng = np.random.default_rng(seed)
    smooth = rng.normal(0, 0.03, shape).cumsum(axis=0).cumsum(axis=1)
    rough = 0.25 * np.linspace(0, 1, shape[0])[:, None] * np.linspace(0, 1, shape[1])
    heights = smooth + rng.normal(0, 1, shape) * rough**1.5 + level
    return HeightMap(heights, origin_x=-3.0, origin_y=40.0, step_x=step[0], step_y=step[1])


@pytest.mark.parametrize(
    ("half_wheelbase", "steps"),
    [
        (0.1, (0.5, 0.5)),
        (0.5, (-0.5, 0.5)),
        (0.75, (0.5, -0.5)),
        (1.3, (-0.5, -0.5)),
        (3.2, (0.5, 0.5)),
    ],
)
def test_equals_the_slow_implementation(half_wheelbase, steps):
    """The samples run in all directions; discs span from one cell to more than half of the map."""
    terrain = some_map(round(half_wheelbase * 10), step=steps)
    limits = TraversabilityLimits(
        25.0, 0.12, 0.3, vehicle_radius=0.8, half_wheelbase=half_wheelbase
    )
    grid = traversability(terrain, limits)
    expected = slow_costs(north_up(terrain), 0.5, limits)
    assert (expected == -1).any()
    assert (expected == 100).any()
    np.testing.assert_array_equal(grid.cost, expected)
    assert grid.share_free == pytest.approx(np.mean((expected >= 0) & (expected < 100)))
    assert grid.share_free + grid.share_lethal + grid.share_unknown == pytest.approx(1)


def test_costs_between_free_and_forbidden_are_compared_too():
    terrain = some_map(5)
    limits = TraversabilityLimits(60.0, 0.5, 1.0, vehicle_radius=0.0, half_wheelbase=1.0)
    grid = traversability(terrain, limits)
    assert len(np.unique(grid.cost)) > 15
    np.testing.assert_array_equal(grid.cost, slow_costs(north_up(terrain), 0.5, limits))


@pytest.mark.parametrize("tile", [4, 7])
def test_tiles_leave_no_seams(tile, monkeypatch):
    monkeypatch.setattr("rfly_terrain.costmap.traversability._TILE", tile)
    terrain = some_map(6)
    limits = TraversabilityLimits(40.0, 0.3, 0.6, vehicle_radius=0.0, half_wheelbase=1.0)
    np.testing.assert_array_equal(
        traversability(terrain, limits).cost, slow_costs(north_up(terrain), 0.5, limits)
    )


def plane(slope_deg, towards_deg=0.0, level=0.0, shape=(30, 40), step=0.5, seed=None):
    x, y = np.meshgrid(np.arange(shape[0]) * step, np.arange(shape[1]) * step, indexing="ij")
    towards = math.radians(towards_deg)
    heights = (
        math.tan(math.radians(slope_deg)) * (x * math.cos(towards) + y * math.sin(towards)) + level
    )
    if seed is not None:
        heights += np.random.default_rng(seed).normal(0, 0.05, shape)
    return HeightMap(heights, origin_x=0, origin_y=0, step_x=step, step_y=step)


@pytest.mark.parametrize("towards_deg", [0.0, 30.0, 90.0, 225.0])
def test_a_plane_costs_its_share_of_the_limit(towards_deg):
    limits = TraversabilityLimits(25.0, half_wheelbase=1.2, **ONLY_SLOPE)
    for slope, cost in [(0.0, 0), (5.0, 20), (12.5, 50), (24.9, 99), (25.1, 100)]:
        known = traversability(plane(slope, towards_deg), limits).cost[2:-2, 2:-2]
        np.testing.assert_array_equal(known, cost if slope != 12.5 else np.clip(known, 49, 50))


def test_altitudes_of_thousands_of_metres_lose_nothing():
    """Noise of 5 cm on a slope at 8,000 m costs what it costs at 0 m.

    The costs differ only by the part of the heights that float32 cannot hold.
    """
    limits = TraversabilityLimits(60.0, 0.1, math.inf, vehicle_radius=0.0, half_wheelbase=2.0)
    low, high = (
        traversability(plane(20, 50, level, (60, 60), seed=1), limits).cost
        for level in (0.0, 8000.0)
    )
    assert np.abs(low.astype(int) - high).max() <= 1
    flat = plane(0, 0, 8848.0, (60, 60))
    assert traversability(flat, limits).cost[4:-4, 4:-4].max() == 0


def test_a_step_forbids_what_has_it_in_its_disc():
    """A kerb of 0.31 m between x = 4.5 and x = 5: cells whose disc of 1 m spans it."""
    heights = np.zeros((20, 12))
    heights[10:] = 0.31
    terrain = HeightMap(heights, origin_x=0, origin_y=0, step_x=0.5, step_y=0.5)
    limits = TraversabilityLimits(89.0, math.inf, 0.3, vehicle_radius=0.0, half_wheelbase=1.0)
    (row,) = {tuple(row) for row in traversability(terrain, limits).cost[2:-2].tolist()}
    assert [j for j, cost in enumerate(row) if cost == 100] == [8, 9, 10, 11]
    for max_step, forbidden in (
        (0.32, False),
        (float(terrain.heights[10, 0]), True),
    ):  # at the limit is too much
        limits = TraversabilityLimits(
            89.0, math.inf, max_step, vehicle_radius=0.0, half_wheelbase=1.0
        )
        assert (traversability(terrain, limits).share_lethal > 0) == forbidden


def test_one_peak_off_the_diagonal_lies_where_the_map_says():
    """A peak at x_east 7, y_north -12 is neither mirrored nor turned.

    The map's samples run from north to south.
    """
    heights = np.zeros((21, 33))  # x 0 … 20, y 0 … -32
    heights[7, 12] = 5.0
    terrain = HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=-1.0)
    grid = traversability(terrain, TraversabilityLimits(vehicle_radius=0.0, half_wheelbase=0.0))
    assert (grid.cost.shape, grid.resolution, grid.origin) == ((33, 21), 1.0, (-0.5, -32.5))

    rows, columns = np.nonzero(grid.cost == 100)
    x = grid.origin[0] + (columns + 0.5) * grid.resolution
    y = grid.origin[1] + (rows + 0.5) * grid.resolution
    assert set(zip(x, y, strict=True)) == {(7, -12), (6, -12), (8, -12), (7, -11), (7, -13)}

    occupied = grid.occupancy_map(unknown=False)
    assert occupied.get_occupancy([[7, -12], [8, -12], [12, -7], [7, -20]]).tolist() == [
        True,
        True,
        False,
        False,
    ]


def test_water_is_forbidden_also_at_the_edge():
    terrain = plane(10, shape=(10, 10))  # rises to the east
    heights = north_up(terrain)
    limits = TraversabilityLimits(water_level=0.3, vehicle_radius=0.0, half_wheelbase=0.5)
    np.testing.assert_array_equal((traversability(terrain, limits).cost == 100), heights < 0.3)
    exact = TraversabilityLimits(
        water_level=float(heights[0, 3]), vehicle_radius=0.0, half_wheelbase=0.5
    )
    assert traversability(terrain, exact).cost[5, 3] < 100, "at the water's level is not below it"


def test_cells_whose_disc_leaves_the_map_are_unknown():
    limits = TraversabilityLimits(vehicle_radius=0.0, half_wheelbase=1.6)  # 3 cells of 0.5 m
    expected = np.full((12, 10), -1)
    expected[3:-3, 3:-3] = 0
    np.testing.assert_array_equal(traversability(plane(0, shape=(10, 12)), limits).cost, expected)


@pytest.mark.parametrize("half_wheelbase", [2.0, 1e9])
def test_a_disc_wider_than_the_map_leaves_it_everywhere(half_wheelbase):
    heights = np.zeros((4, 7))
    heights[1, 2] = -3.0  # x 1, y 2
    limits = TraversabilityLimits(
        water_level=-1.0, vehicle_radius=0.0, half_wheelbase=half_wheelbase
    )
    grid = traversability(HeightMap(heights, origin_x=0, origin_y=0, step_x=1, step_y=1), limits)
    expected = np.full((7, 4), -1)
    expected[2, 1] = 100  # water needs no disc
    assert grid.cost.tolist() == expected.tolist()


def test_growth_by_the_radius_reaches_unknown_cells_too():
    terrain = plane(0, shape=(9, 9), step=1.0)
    box = ObjectBoxes([(2.0, 3.0, 0.0)], [(0.2, 0.2, 1.0)])
    grid = traversability(
        terrain, TraversabilityLimits(vehicle_radius=2.3, half_wheelbase=1.0), box
    )
    expected = slow_costs(
        np.zeros((9, 9)),
        1.0,
        TraversabilityLimits(25, 1, 1, vehicle_radius=2.3, half_wheelbase=1.0),
        [(3, 2)],
    )
    np.testing.assert_array_equal(grid.cost, expected)
    assert (expected[3, 0], expected[1, 0]) == (100, -1)


def shares_area(corners, side, row, column):
    """Return whether a convex outline and a cell share area, by 41 x 41 points within the cell."""
    inner = (np.arange(41) + 0.5) / 41 - 0.5
    x, y = np.meshgrid((column + inner) * side, (row + inner) * side)
    a = corners
    b = np.roll(corners, -1, axis=0)
    left = [
        (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]) > 0
        for p, q in zip(a, b, strict=True)
    ]
    return np.all(left, axis=0).any()


def test_turned_boxes_forbid_the_cells_that_they_cover():
    # samples along east, along north
    side = 0.5
    shape = (30, 26)
    terrain = plane(0, shape=shape, step=side)
    yaws = np.radians([0.0, 30.0, 45.0, 200.0])
    centres = np.array([(3.1, 2.7, 0.0), (9.0, 4.0, 1.0), (4.0, 9.0, 0.0), (13.9, 11.8, 0.0)])
    halves = np.array([(1.0, 0.6, 0.5), (2.0, 0.15, 1.0), (0.9, 0.9, 0.1), (1.0, 2.0, 1.0)])
    turned = np.stack((0 * yaws, 0 * yaws, np.sin(yaws / 2), np.cos(yaws / 2)), axis=1)
    limits = TraversabilityLimits(vehicle_radius=0.0, half_wheelbase=0.5)
    grid = traversability(terrain, limits, ObjectBoxes(centres, halves, turned))

    # cells that share area with an outline
    expected = np.zeros(grid.cost.shape, bool)
    for (x, y, _), (a, b, _), yaw in zip(centres, halves, yaws, strict=True):
        along = np.array((math.cos(yaw), math.sin(yaw)))
        across = np.array((-math.sin(yaw), math.cos(yaw)))
        corners = [
            (x, y) + p * a * along + q * b * across for p, q in ((1, -1), (1, 1), (-1, 1), (-1, -1))
        ]
        for row in range(shape[1]):
            for column in range(shape[0]):
                expected[row, column] |= shares_area(np.array(corners), side, row, column)

    wrong = np.argwhere((grid.cost == 100) != expected)
    assert len(wrong) <= 1, wrong  # a sliver between the sampled points
    assert expected.sum() > 60


def test_a_box_on_its_side_has_its_outline_from_above():
    """A mast of 6 m along its own z axis, laid towards the east: 6 m long on the ground."""
    terrain = plane(0, shape=(20, 20), step=1.0)
    lying = ObjectBoxes(
        [(10.0, 8.0, 0.0)], [(0.1, 0.1, 3.0)], [(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))]
    )
    grid = traversability(
        terrain, TraversabilityLimits(vehicle_radius=0.0, half_wheelbase=1.0), lying
    )
    assert np.argwhere(grid.cost == 100).tolist() == [[8, column] for column in range(7, 14)]


def test_objects_without_size_and_off_the_map():
    terrain = plane(0, shape=(10, 10), step=1.0)
    limits = TraversabilityLimits(vehicle_radius=0.0, half_wheelbase=1.0)
    points = ObjectBoxes([(3.2, 5.0, 0.0), (99.0, 5.0, 0.0), (-1e200, 0, 0)], np.zeros((3, 3)))
    assert np.argwhere(traversability(terrain, limits, points).cost == 100).tolist() == [[5, 3]]
    on_corner = ObjectBoxes([(3.5, 5.5, 0.0)], np.zeros((1, 3)))
    found = np.argwhere(traversability(terrain, limits, on_corner).cost == 100).tolist()
    assert found == [[5, 3], [5, 4], [6, 3], [6, 4]], (
        "it stands in none of them for sure, so in all"
    )
    no_objects = ObjectBoxes(np.empty((0, 3)), np.empty((0, 3)))
    assert traversability(terrain, limits, no_objects).share_lethal == 0


def test_unequal_steps_become_square_cells_of_the_smaller_one():
    """Samples every 2 m to the east, 0.5 m to the north: between them heights are bilinear."""
    terrain = some_map(3, shape=(7, 25), step=(2.0, -0.5))
    grid = traversability(
        terrain,
        limits := TraversabilityLimits(30, 0.2, 0.4, vehicle_radius=0.6, half_wheelbase=1.0),
    )
    assert (grid.resolution, grid.cost.shape, grid.origin) == (0.5, (25, 25), (-3.25, 27.75))
    y, x = np.meshgrid(28.0 + 0.5 * np.arange(25), -3.0 + 0.5 * np.arange(25), indexing="ij")
    np.testing.assert_array_equal(grid.cost, slow_costs(terrain.altitude(x, y), 0.5, limits))


def test_finer_cells_are_bilinear():
    terrain = some_map(4, shape=(9, 8), step=(1.0, 1.0))
    limits = TraversabilityLimits(30, 0.2, 0.2, vehicle_radius=0.3, half_wheelbase=0.9)
    grid = traversability(terrain, limits, resolution=0.4)
    assert (grid.cost.shape, grid.origin) == ((18, 21), (pytest.approx(-3.2), pytest.approx(39.8)))
    y, x = np.meshgrid(40.0 + 0.4 * np.arange(18), -3.0 + 0.4 * np.arange(21), indexing="ij")
    np.testing.assert_array_equal(grid.cost, slow_costs(terrain.altitude(x, y), 0.4, limits))


def test_coarser_cells_keep_what_is_narrower_than_they_are():
    """One post between the centres of cells of 3 m; the cells hold 3 x 3 of the map's."""
    heights = np.zeros((31, 28))
    heights[13, 17] = 2.0  # x = 13, y = 17: in the cell around x = 12, y = 18
    terrain = HeightMap(heights, origin_x=0, origin_y=0, step_x=1, step_y=1)
    limits = TraversabilityLimits(vehicle_radius=0.0, half_wheelbase=0.0)
    grid = traversability(terrain, limits, resolution=3.0)
    assert (grid.resolution, grid.cost.shape, grid.origin) == (3.0, (10, 11), (-1.5, -1.5))

    # the worst of each 3 x 3 cells
    fine = traversability(terrain, limits).cost
    for row in range(10):
        for column in range(11):
            y = 3 * row
            x = 3 * column
            block = [
                fine[i, j] if 0 <= i < 28 and 0 <= j < 31 else -1
                for i in (y - 1, y, y + 1)
                for j in (x - 1, x, x + 1)
            ]
            expected = 100 if 100 in block else -1 if -1 in block else max(block)
            assert grid.cost[row, column] == expected

    assert grid.cost[6, 4] == 100


def test_default_limits_of_step_and_roughness_follow_the_slope_on_large_cells():
    """A slope of 20° on cells of 20 m is a step of 7.3 m; that alone does not forbid it."""
    assert TraversabilityLimits().step_limit(0.1) == 0.3
    assert TraversabilityLimits().step_limit(20.0) == pytest.approx(20 * math.tan(math.radians(25)))
    assert TraversabilityLimits(max_step=0.3).step_limit(20.0) == 0.3
    assert TraversabilityLimits().roughness_limit(0.1) == 0.2
    assert TraversabilityLimits().roughness_limit(20.0) == pytest.approx(
        2 * math.tan(math.radians(25))
    )
    known = traversability(plane(20, 30, shape=(12, 12), step=20.0)).cost[1:-1, 1:-1]
    assert set(known.ravel().tolist()) == {79}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_slope_deg": 0.0}, "max_slope_deg"),
        ({"max_slope_deg": 91.0}, "max_slope_deg"),
        ({"max_step": -1.0}, "max_step"),
        ({"max_roughness": math.nan}, "max_roughness"),
        ({"vehicle_radius": -0.1}, "vehicle_radius"),
        ({"half_wheelbase": math.inf}, "half_wheelbase"),
        ({"water_level": math.nan}, "water_level"),
    ],
)
def test_limits_that_make_no_sense_are_named(fields, named):
    with pytest.raises(ConfigError, match=named):
        TraversabilityLimits(**fields)


def test_the_smallest_map_is_unknown():
    terrain = HeightMap([[0, 1], [2, 3]], origin_x=0, origin_y=0, step_x=1, step_y=2)
    assert traversability(terrain).cost.tolist() == [[-1, -1]] * 3


@pytest.mark.parametrize("resolution", [0.0, -1.0, math.nan, math.inf, 1e-4, 15.0])
def test_resolutions_that_make_no_sense_are_refused(resolution):
    with pytest.raises(ConfigError, match="resolution"):
        traversability(plane(0), resolution=resolution)


def test_boxes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"centre\[0, 1\]"):
        ObjectBoxes([(0, math.nan, 0)], [(1, 1, 1)])
    with pytest.raises(ValueError, match="half_extent"):
        ObjectBoxes([(0, 0, 0)], [(1, -1, 1)])
    with pytest.raises(ValueError, match="orientation"):
        ObjectBoxes([(0, 0, 0)], [(1, 1, 1)], [(0, 0, 0, 1), (0, 0, 0, 1)])


def test_whoever_asks_can_stop_it():
    asked = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 1

    with pytest.raises(InterruptedError):
        traversability(plane(0, shape=(600, 600)), stop=stop)
    assert traversability(plane(0), stop=lambda: False).share_free > 0


def test_the_result_cannot_be_changed():
    grid = traversability(plane(0))
    with pytest.raises(ValueError, match="read-only"):
        grid.cost[0, 0] = 5


def test_map_servers_files_bring_all_costs_back(tmp_path):
    """The mode is raw; map_server's own reader treats these numbers like `image_to_cells`."""
    from rfly_terrain.occupancy.files import load_map

    terrain = some_map(8)
    limits = TraversabilityLimits(40.0, 0.5, 1.0, vehicle_radius=0.0, half_wheelbase=0.5)
    grid = traversability(terrain, limits)
    for image_format in ("png", "pgm"):
        grid.save(tmp_path / "costs.yaml", image_format)
        loaded = load_map(tmp_path / "costs.yaml")
        np.testing.assert_array_equal(loaded.cells[::-1], grid.cost)
        assert (loaded.resolution, loaded.origin) == (2.0, grid.origin)


def test_the_picture_shows_each_cost_in_its_place():
    from matplotlib.figure import Figure

    from rfly_terrain.plots.overlays import draw_traversability

    heights = np.zeros((9, 14))
    heights[2, 10] = 9.0  # x = 2, y = 10
    terrain = HeightMap(heights, origin_x=0, origin_y=0, step_x=1, step_y=1)
    grid = traversability(terrain, TraversabilityLimits(vehicle_radius=0.0))
    axes = Figure().add_subplot()
    draw_traversability(axes, terrain, grid)
    image = axes.images[-1]
    red = np.asarray(image.get_array())[..., 0] > 0.6
    red &= np.asarray(image.get_array())[..., 1] < 0.1
    rows, columns = np.nonzero(red)
    left, right, bottom, top = image.get_extent()
    assert image.origin == "lower"
    x = left + (columns + 0.5) * (right - left) / red.shape[1]
    y = bottom + (rows + 0.5) * (top - bottom) / red.shape[0]
    assert set(zip(x.tolist(), y.tolist(), strict=True)) == {
        (2, 10),
        (1, 10),
        (3, 10),
        (2, 9),
        (2, 11),
    }


def test_a_picture_of_many_cells_keeps_the_single_forbidden_one(monkeypatch):
    from rfly_terrain.plots.overlays import _thinned

    monkeypatch.setattr("rfly_terrain.plots.overlays._PIXELS", 5)
    cost = np.zeros((11, 7), np.int8)
    cost[10, 4] = 100
    thin, covered = _thinned(cost)
    assert (thin.shape, covered) == ((4, 3), (12, 9))
    assert np.argwhere(thin == 100).tolist() == [[3, 1]]
