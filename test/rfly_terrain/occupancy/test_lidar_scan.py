# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scans by hand: Cartesian points, invalid readings, another frame; maps from .mat files."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.io import savemat

from rfly_common.errors import TerrainFileNotFound, TerrainFormatError
from rfly_terrain import BinaryOccupancyMap, LidarScan, load_mat_maps
from rfly_terrain.sdk import matlab_mapping

NAN = math.nan
INF = math.inf


def test_ranges_and_angles_are_points_and_back():
    scan = matlab_mapping.lidarScan([1.0, 2.0, 3.0], [0.0, math.pi / 2, math.pi])
    np.testing.assert_allclose(scan.Cartesian, [[1, 0], [0, 2], [-3, 0]], atol=1e-12)
    back = LidarScan(scan.cartesian)
    np.testing.assert_allclose(back.Ranges, [1, 2, 3])
    np.testing.assert_allclose(np.abs(back.Angles), [0, math.pi / 2, math.pi], atol=1e-12)
    assert (scan.Count, back.count) == (3, 3)


def test_invalid_readings_stay_until_they_are_removed():
    scan = LidarScan([0.5, NAN, 2.0, INF, 3.0, 9.0], [-1.0, 0.0, 0.5, 0.6, 0.7, 0.8])

    assert scan.count == 6
    assert scan.removeInvalidData().ranges.tolist() == [0.5, 2.0, 3.0, 9.0]
    assert scan.removeInvalidData(RangeLimits=[0.5, 3.0]).ranges.tolist() == [0.5, 2.0, 3.0]
    assert matlab_mapping.removeInvalidData(scan, "AngleLimits", [0.5, 0.7]).angles.tolist() == [
        0.5,
        0.7,
    ]
    assert scan.remove_invalid_data(range_limits=(1, 5), angle_limits=(0, 0.6)).ranges.tolist() == [
        2.0
    ]


def test_wrong_limits_and_readings_are_refused():
    scan = LidarScan([0.5, 2.0], [-1.0, 0.5])

    with pytest.raises(ValueError, match=r"range_limits: .*the least and the greatest"):
        scan.remove_invalid_data(range_limits=(5, 1))
    with pytest.raises(ValueError, match="2 ranges for 1 angles"):
        LidarScan([1, 2], [0])
    with pytest.raises(ValueError, match="ranges: -1"):
        LidarScan([-1], [0])


def test_another_frame():
    """The sensor stands at (2, 1) and looks along y: what is 1 m ahead of it lies at (2, 2)."""
    scan = LidarScan([1.0, 1.0, INF], [0.0, math.pi / 2, 0.3])
    moved = matlab_mapping.transformScan(scan, [2, 1, math.pi / 2])
    np.testing.assert_allclose(moved.cartesian[:2], [[2, 2], [1, 1]], atol=1e-12)
    assert moved.ranges[2] == INF
    assert moved.angles[2] == pytest.approx(0.3 + math.pi / 2)
    ranges, angles = matlab_mapping.transformScan(scan.ranges, scan.angles, [2, 1, math.pi / 2])
    assert np.array_equal(ranges, moved.ranges)
    assert np.array_equal(angles, moved.angles)


def test_a_scan_goes_into_a_map():
    """The document's example: half a circle of 3 m around (5, 5) of a map with 20 cells/m."""
    occupancy = BinaryOccupancyMap(10, 10, 20)
    scan = LidarScan(3 * np.ones(100), np.linspace(-math.pi / 2, math.pi / 2, 100))
    matlab_mapping.insertRay(occupancy, [5, 5, 0], scan, 20)
    assert matlab_mapping.getOccupancy(occupancy, [[8, 5], [6, 5]]).tolist() == [True, False]


def test_maps_of_a_mat_file(tmp_path):
    """Logical, double and integer matrices; vectors, texts, structures and cells are left out."""
    walls = np.eye(3, 4)
    file = tmp_path / "maps.mat"
    others = {
        "text": "hello",
        "number": 3.0,
        "struct": {"a": np.eye(2)},
        "cell": np.array([1, "b"], object),
    }
    savemat(
        file,
        {"walls": walls, "flags": walls > 0, "bytes": walls.astype(np.uint8), **others},
        do_compression=True,
    )
    maps = load_mat_maps(file)

    assert set(maps) == {"walls", "flags", "bytes"}

    (tmp_path / "maps.v2.mat").write_bytes(file.read_bytes())
    assert set(load_mat_maps(tmp_path / "maps.v2")) == set(maps)

    occupancy = BinaryOccupancyMap(matlab_mapping.load(tmp_path / "maps").flags, 2)
    assert np.array_equal(occupancy.occupancy_matrix(), walls > 0)


@pytest.mark.needs("matplotlib")
def test_plot_takes_matlabs_pairs():
    from matplotlib.figure import Figure

    scan = matlab_mapping.lidarScan([1.0, np.nan, 2.0], [0.0, 1.0, np.pi / 2])
    for call in (
        lambda axes: matlab_mapping.plot(scan, "Parent", axes, "MaximumRange", 8),
        lambda axes: scan.plot(axes, maximum_range=8),
    ):
        axes = Figure().add_subplot()
        assert np.allclose(call(axes).get_xydata(), [[1.0, 0.0], [0.0, 2.0]])
        assert (axes.get_xlim(), axes.get_ylim()) == ((-8.0, 8.0), (-8.0, 8.0))
    with pytest.raises(ValueError, match="maximum_range: inf"):
        scan.plot(Figure().add_subplot(), maximum_range=np.inf)


def test_mat_files_that_are_none(tmp_path, monkeypatch):
    with pytest.raises(TerrainFileNotFound, match=r"nothing.mat: no such file"):
        load_mat_maps(tmp_path / "nothing.mat")

    (tmp_path / "odd.mat").write_bytes(b"MATLAB 5.0" + bytes(200))
    with pytest.raises(TerrainFormatError, match=r"odd.mat: cannot be read as a .mat file"):
        load_mat_maps(tmp_path / "odd.mat")

    savemat(tmp_path / "text.mat", {"text": "hello"})
    with pytest.raises(TerrainFormatError, match=r"text.mat: holds no matrix"):
        load_mat_maps(tmp_path / "text.mat")

    monkeypatch.setattr("rfly_terrain.occupancy.random_maps.MAX_CELLS", 8)
    savemat(tmp_path / "large.mat", {"large": np.ones((3, 3))})
    with pytest.raises(TerrainFormatError, match=r"1 matrices of 9 numbers|larger than"):
        load_mat_maps(tmp_path / "large.mat")


def test_example_maps_of_our_own_where_matlabs_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    maps = matlab_mapping.load("exampleMaps.mat")
    sizes = {name: cells.shape for name, cells in vars(maps).items()}
    assert sizes == {
        "emptyMap": (26, 27),
        "simpleMap": (26, 27),
        "complexMap": (41, 52),
        "ternaryMap": (501, 501),
    }
    assert not maps.emptyMap.any()
    assert set(np.unique(maps.ternaryMap)) == {0.0, 0.5, 1.0}

    occupancy = matlab_mapping.binaryOccupancyMap(maps.simpleMap)
    assert occupancy.get_occupancy([[2.5, 20.5]]).tolist() == [False]

    savemat("exampleMaps.mat", {"complexMap": np.eye(5)})
    assert matlab_mapping.load("exampleMaps.mat").complexMap.shape == (5, 5)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("complexMap", [(5, 2), (8, 2), (8, 8), (30, 8)]),
        ("ternaryMap", [(100, 100), (100, 250), (200, 250), (300, 250)]),
    ],
)
def test_the_ways_of_matlabs_examples_are_free_of_walls(tmp_path, monkeypatch, name, way):
    """No touched cell of the way that MATLAB's example of `move` drives is occupied."""
    monkeypatch.chdir(tmp_path)
    cells = getattr(matlab_mapping.load("exampleMaps.mat"), name)
    occupancy = matlab_mapping.binaryOccupancyMap(cells > 0.5)
    for start, end in pairwise(way):
        touched = np.concatenate(occupancy.raycast(start, end))
        assert not occupancy.get_occupancy(touched, frame="grid").any()
    assert occupancy.occupancy_matrix().any()


@pytest.mark.parametrize(
    ("name", "resolution", "start", "goal"),
    [("simpleMap", 2, (2, 1), (12, 10)), ("complexMap", 1, (3, 3), (45, 35))],
)
def test_matlabs_planning_examples_find_a_way(tmp_path, monkeypatch, name, resolution, start, goal):
    """Start and goal of the page on planning, with walls inflated by its robot's 0.2 m."""
    from scipy.ndimage import label

    monkeypatch.chdir(tmp_path)
    cells = getattr(matlab_mapping.load("exampleMaps.mat"), name)
    occupancy = matlab_mapping.binaryOccupancyMap(cells, resolution)
    occupancy.inflate(0.2)
    rooms, _ = label(~occupancy.occupancy_matrix())
    (first, last) = (rooms[tuple(cell)] for cell in occupancy.world2grid([start, goal]))
    assert first == last > 0


def test_the_outer_walls_of_the_maze_are_closed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    walls = matlab_mapping.load("exampleMaps.mat").complexMap
    assert walls[[0, -1]].all()
    assert walls[:, [0, -1]].all()
