# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Each of MATLAB's call forms against its Python form, as methods and as functions."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_terrain import BinaryOccupancyMap, LidarScan, map_clutter, map_maze
from rfly_terrain.occupancy.call_forms import CALL_FORMS, arguments
from rfly_terrain.sdk import matlab_mapping

MATRIX = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]], bool)
SCAN = LidarScan([1.5, np.nan, np.inf, 2.0], [0.0, 0.1, 0.2, np.pi / 2])


def made():
    """Three rows of four cells of half a metre, local and world frame apart."""
    return BinaryOccupancyMap.from_matrix(
        MATRIX, 2, grid_origin_in_local=(-1, -2), local_origin_in_world=(10, 20)
    )


def other():
    return BinaryOccupancyMap.from_matrix(np.ones((6, 6)), 2, local_origin_in_world=(9, 18))


XY = [[9.2, 19.2], [10.4, 18.1]]
LOCAL = [[-0.8, -0.8], [0.4, -1.9]]
IJ = [[0, 0], [2, 3]]
READING = [
    # MATLAB's name, MATLAB's form, the Python form: method, arguments, keywords
    (name, form, (python, arguments, keywords))
    for name, python in (("getOccupancy", "get_occupancy"), ("checkOccupancy", "check_occupancy"))
    for form, (arguments, keywords) in [
        (((), {}), ((), {})),
        (((XY,), {}), ((XY,), {})),
        (((XY, "world"), {}), ((XY,), {"frame": "world"})),
        (((LOCAL, "local"), {}), ((LOCAL,), {"frame": "local"})),
        (((IJ, "grid"), {}), ((IJ,), {"frame": "grid"})),
        (((IJ, "GRID"), {}), ((IJ,), {"frame": "grid"})),
        (((IJ,), {"Frame": "grid"}), ((IJ,), {"frame": "grid"})),
        ((((9.5, 18.5), (1, 0.5)), {}), (((9.5, 18.5), (1, 0.5)), {})),
        ((((9.5, 18.5), (1, 0.5), "world"), {}), (((9.5, 18.5), (1, 0.5)), {})),
        ((((-0.5, -1.5), (1, 0.5), "local"), {}), (((-0.5, -1.5), (1, 0.5)), {"frame": "local"})),
        ((((0, 1), (2, 2), "grid"), {}), (((0, 1), (2, 2)), {"frame": "grid"})),
    ]
]
WRITING = [
    ("setOccupancy", ((XY, 1), {}), ("set_occupancy", (XY, 1), {})),
    (
        "setOccupancy",
        ((XY, [0, 1], "world"), {}),
        ("set_occupancy", (XY, [0, 1]), {"frame": "world"}),
    ),
    (
        "setOccupancy",
        ((LOCAL, [[0], [1]], "local"), {}),
        ("set_occupancy", (LOCAL, [[0], [1]]), {"frame": "local"}),
    ),
    (
        "setOccupancy",
        ((IJ, [0, 0], "grid"), {}),
        ("set_occupancy", (IJ, [0, 0]), {"frame": "grid"}),
    ),
    ("setOccupancy", (((9.5, 18.5), [[1, 1]]), {}), ("set_occupancy", ((9.5, 18.5), [[1, 1]]), {})),
    (
        "setOccupancy",
        (((-0.5, -1.5), [[1, 1]], "local"), {}),
        ("set_occupancy", ((-0.5, -1.5), [[1, 1]]), {"frame": "local"}),
    ),
    (
        "setOccupancy",
        (((0, 1), [[1, 1]], "grid"), {}),
        ("set_occupancy", ((0, 1), [[1, 1]]), {"frame": "grid"}),
    ),
    ("inflate", ((0.5,), {}), ("inflate", (0.5,), {})),
    ("inflate", ((0.5, "world"), {}), ("inflate", (0.5,), {"frame": "world"})),
    ("inflate", ((1, "grid"), {}), ("inflate", (1,), {"frame": "grid"})),
    ("move", (([11, 20],), {}), ("move", ([11, 20],), {})),
    (
        "move",
        (([11, 20],), {"MoveType": "Absolute"}),
        ("move", ([11, 20],), {"move_type": "absolute"}),
    ),
    ("move", (([1, 0],), {"MoveType": "Relative"}), ("move", ([1, 0],), {"move_type": "relative"})),
    (
        "move",
        (([1, 0], "MoveType", "Relative"), {}),
        ("move", ([1, 0],), {"move_type": "relative"}),
    ),
    ("move", (([11, 20],), {"FillValue": 1}), ("move", ([11, 20],), {"fill_value": 1})),
    ("move", (([11, 20],), {"SyncWith": other()}), ("move", ([11, 20],), {"sync_with": other()})),
    (
        "move",
        (([1, 1], "FillValue", 1, "MoveType", "relative"), {"SyncWith": other()}),
        ("move", ([1, 1],), {"fill_value": 1, "move_type": "relative", "sync_with": other()}),
    ),
    ("syncWith", ((other(),), {}), ("sync_with", (other(),), {})),
    (
        "insertRay",
        (([10, 18.5, 0], SCAN, 1.8), {}),
        ("insert_ray", ([10, 18.5, 0], SCAN.ranges, SCAN.angles, 1.8), {}),
    ),
    (
        "insertRay",
        (([10, 18.5, 0], [1.0], [0.5], 3), {}),
        ("insert_ray", ([10, 18.5, 0], [1.0], [0.5], 3), {}),
    ),
    (
        "insertRay",
        (([9.2, 18.2], [[10.4, 19.2]]), {}),
        ("insert_ray", ([9.2, 18.2], [[10.4, 19.2]]), {}),
    ),
]
ASKING = [
    ("occupancyMatrix", ((), {}), ("occupancy_matrix", (), {})),
    ("raycast", (([9.2, 18.2], [10.4, 19.2]), {}), ("raycast", ([9.2, 18.2], [10.4, 19.2]), {})),
    ("raycast", (([9.2, 18.2, 0.1], 1.5, 0.2), {}), ("raycast", ([9.2, 18.2, 0.1], 1.5, 0.2), {})),
    (
        "rayIntersection",
        (([9.2, 18.2, 0], [0.1, 0.5], 4), {}),
        ("ray_intersection", ([9.2, 18.2, 0], [0.1, 0.5], 4), {}),
    ),
    ("grid2local", ((IJ,), {}), ("grid2local", (IJ,), {})),
    ("grid2world", ((IJ,), {}), ("grid2world", (IJ,), {})),
    ("local2grid", ((LOCAL,), {}), ("local2grid", (LOCAL,), {})),
    ("local2world", ((LOCAL,), {}), ("local2world", (LOCAL,), {})),
    ("world2grid", ((XY,), {}), ("world2grid", (XY,), {})),
    ("world2local", ((XY,), {}), ("world2local", (XY,), {})),
]
FORMS = [*READING, *WRITING, *ASKING]


def state(occupancy):
    limits = (occupancy.x_world_limits, occupancy.y_world_limits, occupancy.grid_origin_in_local)
    return occupancy.occupancy_matrix().tolist(), [limit.tolist() for limit in limits]


def called(how, occupancy, arguments, keywords):
    result = how(occupancy)(*arguments, **keywords)
    parts = result if isinstance(result, tuple) else (result,)
    return [None if part is None else np.asarray(part).tolist() for part in parts], state(occupancy)


@pytest.mark.parametrize(
    ("name", "form", "python"), FORMS, ids=[f"{name}{form[0]}" for name, form, _ in FORMS]
)
def test_matlabs_form_does_what_pythons_does(name, form, python):
    """MATLAB's form works as a method by either name, and as a function of the map."""
    method, arguments, keywords = python
    expected = called(lambda m: getattr(m, method), made(), arguments, keywords)
    assert called(lambda m: getattr(m, name), made(), *form) == expected
    assert called(lambda m: getattr(m, method), made(), *form) == expected
    function = getattr(matlab_mapping, name)
    assert called(lambda m: lambda *a, **k: function(m, *a, **k), made(), *form) == expected


PROPERTIES = {
    "grid_origin_in_local": (-1, -2),
    "local_origin_in_world": (10, 20),
    "default_value": True,
}
MATLAB_PROPERTIES = {
    "GridOriginInLocal": (-1, -2),
    "LocalOriginInWorld": (10, 20),
    "DefaultValue": True,
}
CONSTRUCTORS = [
    ((), {}, BinaryOccupancyMap()),
    ((4, 3), {}, BinaryOccupancyMap(4, 3)),
    ((4, 3, 2), {}, BinaryOccupancyMap(4, 3, 2)),
    ((4, 3), {"Resolution": 2}, BinaryOccupancyMap(4, 3, 2)),
    ((4, 3, 2), MATLAB_PROPERTIES, BinaryOccupancyMap(4, 3, 2, **PROPERTIES)),
    ((4, 3, 2, "DefaultValue", 1), {}, BinaryOccupancyMap(4, 3, 2, default_value=1)),
    ((3, 4, 2, "grid"), {}, BinaryOccupancyMap.from_grid_size(3, 4, 2)),
    (
        (3, 4, 2, "grid"),
        MATLAB_PROPERTIES,
        BinaryOccupancyMap.from_grid_size(3, 4, 2, **PROPERTIES),
    ),
    ((MATRIX,), {}, BinaryOccupancyMap.from_matrix(MATRIX)),
    ((MATRIX.tolist(), 2), {}, BinaryOccupancyMap.from_matrix(MATRIX, 2)),
    ((MATRIX,), {"resolution": 2}, BinaryOccupancyMap.from_matrix(MATRIX, 2)),
    ((MATRIX,), {"Resolution": 2}, BinaryOccupancyMap.from_matrix(MATRIX, 2)),
    ((MATRIX, 2), MATLAB_PROPERTIES, BinaryOccupancyMap.from_matrix(MATRIX, 2, **PROPERTIES)),
    (
        (MATRIX,),
        {"GridLocationInWorld": (5, 6)},
        BinaryOccupancyMap.from_matrix(MATRIX, local_origin_in_world=(5, 6)),
    ),
    ((made(),), {}, BinaryOccupancyMap.from_map(made())),
    ((made(), 4), {}, BinaryOccupancyMap.from_map(made(), 4)),
]


@pytest.mark.parametrize(("arguments", "keywords", "expected"), CONSTRUCTORS)
def test_constructors(arguments, keywords, expected):
    got = matlab_mapping.binaryOccupancyMap(*arguments, **keywords)
    assert state(got) == state(expected)
    assert (got.resolution, got.default_value) == (expected.resolution, expected.default_value)


def test_properties_that_only_the_constructor_sets():
    assert BinaryOccupancyMap(1, 1, LayerName="obstacles").LayerName == "obstacles"
    assert BinaryOccupancyMap(1, 1).LayerName == "binaryLayer"
    assert BinaryOccupancyMap(1, 1).copy().DataType == "logical"


@pytest.mark.parametrize(
    ("form", "keywords", "frame", "ax"),
    [
        ((), {}, "world", None),
        (("local",), {}, "local", None),
        (("grid",), {}, "grid", None),
        ((), {"Parent": "axes"}, "world", "axes"),
        (("local", "Parent", "axes", "FastUpdate", True), {}, "local", "axes"),
        (("world",), {"FastUpdate": True}, "world", None),
    ],
)
def test_show_takes_frame_and_pairs(monkeypatch, form, keywords, frame, ax):
    seen = []
    monkeypatch.setattr("rfly_terrain.occupancy.plot.draw", lambda *given: seen.append(given))
    fast = keywords.get("FastUpdate", "FastUpdate" in form)
    occupancy = made()
    matlab_mapping.show(occupancy, *form, **keywords)
    assert seen == [(occupancy, frame, ax, fast)]


WRONG = [
    (lambda m: m.getOccupancy(XY, "map"), "'map', expected 'world' or 'local' or 'grid'"),
    (lambda m: m.setOccupancy(XY, 1, "row"), "'row', expected 'world' or 'local' or 'grid'"),
    (lambda m: m.inflate(1, "local"), "'local', expected 'world' or 'grid'"),
    (
        lambda m: m.move((1, 1), MoveType="Relative", move_type="relative"),
        "move_type and MoveType are the same option",
    ),
    (
        lambda m: m.move((1, 1), "FillValue", 1, fill_value=1),
        "fill_value and FillValue are the same option",
    ),
    (lambda m: m.getOccupancy(XY, "local", frame="local"), "frame and Frame are the same option"),
    (
        lambda m: m.move((1, 1), "up"),
        "'up', expected the name of an option and its value: MoveType, FillValue, Sync",
    ),
    (
        lambda m: m.move((1, 1), "MoveType"),
        "'MoveType', expected the name of an option and its value",
    ),
    (lambda m: m.move((1, 1), MoveType="up"), "move_type: 'up', expected 'absolute' or 'relative'"),
    (lambda m: m.move("FillValue", 1, (1, 1)), "after an option"),
    (
        lambda m: BinaryOccupancyMap(MATRIX, 2, Resolution=3),
        "expected \\(matrix\\), \\(matrix, resolution\\)",
    ),
    (lambda m: BinaryOccupancyMap(3, 4, 1, "local"), "'local', expected 'world' or 'grid'"),
    (
        lambda m: BinaryOccupancyMap(1, 1, GridLocationInWorld=(0, 0), LocalOriginInWorld=(0, 0)),
        "expected one",
    ),
    (lambda m: BinaryOccupancyMap([1, 0]), "width: expected one number"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_a_call_that_fits_no_form_is_a_value_error(call, text):
    occupancy = made()
    with pytest.raises(ValueError, match=text):
        call(occupancy)
    assert state(occupancy) == state(made())


def test_the_table_knows_both_spellings_of_every_option():
    """Every option works by keyword and as a pair; Python's name is the one in a signature."""
    for name, form in CALL_FORMS.items():
        for option, matlab in form.options.matlab.items():
            value = "x" if option in form.words else 7
            for spelt in (option, matlab):
                assert arguments(name, form, (1,), {spelt: value}) == ([1], {option: value})
                assert arguments(name, form, (1, spelt, value), {}) == ([1], {option: value})


def connected(free):
    from scipy.ndimage import label

    return label(free)[1]


@pytest.mark.parametrize(
    ("passage", "wall", "size", "resolution"),
    [(2, 1, (10, 10), 1), (5, 2, (50, 30), 5), (1, 1, (3, 3), 1)],
)
def test_mazes_are_closed_and_connected(passage, wall, size, resolution):
    maze = matlab_mapping.mapMaze(passage, wall, MapSize=size, MapResolution=resolution, seed=4)
    cells = maze.occupancy_matrix()
    assert cells.shape == (size[1] * resolution, size[0] * resolution)
    assert all(edge.all() for edge in (cells[0], cells[-1], cells[:, 0], cells[:, -1]))
    assert connected(~cells) == 1

    rooms = [(side - wall) // (passage + wall) for side in cells.shape]
    doors = rooms[0] * rooms[1] - 1  # of a tree: one way between any two places
    assert (~cells).sum() == rooms[0] * rooms[1] * passage**2 + doors * passage * wall

    again = map_maze(passage, map_size=size, map_resolution=resolution, wall_thickness=wall, seed=4)
    assert np.array_equal(cells, again.occupancy_matrix())

    if min(rooms) > 1:
        other_maze = map_maze(passage, wall, map_size=size, map_resolution=resolution, seed=5)
        assert not np.array_equal(cells, other_maze.occupancy_matrix())


def test_a_maze_as_matlab_makes_it_by_default():
    maze = map_maze()
    assert (maze.grid_size, maze.resolution) == ((250, 250), 5.0)
    with pytest.raises(ValueError, match="map_size: 10 x 2 cells, expected at least 4 each way"):
        map_maze(2, map_size=(10, 2), map_resolution=1)


@pytest.mark.parametrize("shapes", ["Box", "Circle", ["Box", "Circle"]])
def test_clutter_has_the_number_of_separate_obstacles(shapes):
    from scipy.ndimage import label

    clutter = matlab_mapping.mapClutter(
        15, shapes, MapSize=(40, 30), MapResolution=4, CollisionFree=True, seed=1
    )
    cells = clutter.occupancy_matrix()
    assert cells.shape == (120, 160)
    assert label(cells, np.ones((3, 3)))[1] == 15
    assert np.array_equal(
        cells,
        map_clutter(15, shapes, map_size=(40, 30), map_resolution=4, seed=1).occupancy_matrix(),
    )


def test_clutter_without_room_is_refused():
    with pytest.raises(ValueError, match="number_of_obstacles: 9999, there is room for"):
        map_clutter(9999, map_size=(10, 10), map_resolution=1)
    with pytest.raises(ValueError, match=r"shapes: .*expected 'Box', 'Circle' or both"):
        map_clutter(1, "Star")
    assert (
        map_clutter(300, map_size=(10, 10), map_resolution=1, collision_free=False)
        .occupancy_matrix()
        .any()
    )


@pytest.mark.parametrize("resolution", [10, 20, 3])
def test_points_in_single_and_double_lie_in_the_same_cells(resolution):
    """Points on edges agree too: in float32, 1.2 m is a little more than twelve cells of 0.1 m."""
    occupancy = BinaryOccupancyMap(10, 10, resolution, LocalOriginInWorld=(0.5, 0.25))
    xy = np.arange(1, 9 * resolution)[:, None] / resolution + (0.0, 1.0)
    single = xy.astype(np.float32)

    for convert in (occupancy.world2grid, occupancy.local2grid):
        assert np.array_equal(convert(single), convert(xy))

    occupancy.setOccupancy(single[::2], 1)
    twin = BinaryOccupancyMap(10, 10, resolution, LocalOriginInWorld=(0.5, 0.25))
    twin.setOccupancy(xy[::2], 1)

    assert np.array_equal(occupancy.occupancyMatrix(), twin.occupancyMatrix())
    assert np.array_equal(occupancy.getOccupancy(single), twin.getOccupancy(xy))
    assert np.array_equal(
        occupancy.checkOccupancy(single, "local"), twin.checkOccupancy(xy, "local")
    )


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    grid = BinaryOccupancyMap(10, 10)
    with pytest.raises(TypeError, match="inflate: no option frmae, expected one of Frame"):
        grid.inflate(1.0, frmae="grid")
    with pytest.raises(
        TypeError, match="no option fill, expected one of MoveType, FillValue, SyncWith"
    ):
        grid.move((1.0, 1.0), fill=1)
