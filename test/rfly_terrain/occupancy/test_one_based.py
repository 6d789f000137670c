# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows and columns that count from 1: every index is one more than in the worked examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rfly_terrain import BinaryOccupancyMap, matlab_mapping

nav = matlab_mapping.one_based


def test_points_have_matlabs_indices():
    """Corners of a map of 10 x 10 m and 1 cell/m: row 1 on top, column 1 on the left."""
    m = BinaryOccupancyMap(10, 10, 1, one_based=True)
    corners = [[0, 0], [10, 10], [0, 10], [10, 0]]
    assert m.world2grid(corners).tolist() == [[10, 1], [1, 10], [1, 1], [10, 10]]
    assert m.local2grid([[0.5, 0.5]]).tolist() == [[10, 1]]
    assert m.grid2world([[1, 1], [10, 10]]).tolist() == [[0.5, 9.5], [9.5, 0.5]]
    assert m.grid2local([[4, 7]]).tolist() == [[6.5, 6.5]]
    assert m.world2grid([[-0.3, 5.5], [5.5, 11.5]]).tolist() == [[5, 0], [-1, 6]]

    cells = np.indices((10, 10)).reshape(2, -1).T + 1
    assert m.world2grid(m.grid2world(cells)).tolist() == cells.tolist()


def test_values_and_blocks_are_found_by_matlabs_indices():
    """MATLAB's documentation: setOccupancy(map, [1:3; 1:3]', ones(3, 1)) is a diagonal."""
    diagonal = [[1, 1], [2, 2], [3, 3]]
    m = nav.binaryOccupancyMap(np.zeros((4, 4)))
    assert nav.setOccupancy(m, diagonal, np.ones((3, 1)), "grid").tolist() == [True] * 3
    assert m.occupancy_matrix().tolist() == np.diag([1, 1, 1, 0]).astype(bool).tolist()
    assert nav.getOccupancy(m, [[1, 1], [1, 2], [3, 3]], "grid").tolist() == [True, False, True]
    assert nav.checkOccupancy(m, [[0, 1], [4, 4], [5, 4]], "grid").tolist() == [-1, 0, -1]

    # blocks: from the second row and column, and one that hangs over
    assert nav.getOccupancy(m, [2, 2], [2, 2], "grid").tolist() == [[1, 0], [0, 1]]
    assert nav.checkOccupancy(m, [3, 4], [2, 2], "grid").tolist() == [[0, -1], [0, -1]]
    nav.setOccupancy(m, [1, 3], [[1, 1]], "grid")
    assert m.occupancy_matrix()[0].tolist() == [True, False, True, True]

    # metres are the same
    assert nav.getOccupancy(m, [[0.5, 3.5]]).tolist() == [True]
    assert nav.getOccupancy(m, [0, 2], [1, 2]).tolist() == [[True], [False]]


def test_rays_return_matlabs_indices():
    zero, one = (BinaryOccupancyMap(10, 10, 1, one_based=first) for first in (False, True))
    for arguments in (([2, 3], [8.5, 8]), ([1.5, 1.5, 0], 2, np.pi / 2)):
        for a, b in zip(zero.raycast(*arguments), one.raycast(*arguments), strict=True):
            assert (b - a == 1).all()
    assert one.raycast([0.5, 0.5], [3.5, 0.5])[0].tolist() == [[10, 4]]

    many = [m.raycast_many([[2, 3], [0, 0]], [[8.5, 8], [3, 3]]) for m in (zero, one)]
    assert (many[1].cells - many[0].cells == 1).all()
    assert many[1].cells.dtype == many[0].cells.dtype


def test_it_is_a_property_that_copies_keep():
    m = BinaryOccupancyMap(3, 2, OneBased=True)
    assert m.one_based
    for other in (m.copy(), BinaryOccupancyMap(m), BinaryOccupancyMap.from_map(m, 2)):
        assert other.one_based
    assert not BinaryOccupancyMap(3, 2).one_based
    m.one_based = False
    assert m.world2grid([0, 0]).tolist() == [[1, 0]]
    with pytest.raises(ValueError, match="one_based: 2, expected 0 or 1"):
        m.one_based = 2


def test_a_translated_script_is_right_in_the_namespace_one_based():
    maze = nav.mapMaze(2, MapSize=[10, 10], MapResolution=1)
    clutter = nav.mapClutter(2, MapSize=[10, 10], MapResolution=2)
    assert maze.one_based
    assert nav.copy(clutter).one_based
    assert nav.world2grid(maze, [0.5, 9.5]).tolist() == [[1, 1]]
    assert set(vars(nav)) == set(matlab_mapping.__all__) - {"one_based"}
    assert not matlab_mapping.mapMaze(2, MapSize=[10, 10], MapResolution=1).one_based


@pytest.mark.needs("matplotlib")
def test_the_axes_of_the_grid_count_from_one():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    image = BinaryOccupancyMap(4, 3, one_based=True).show("grid", ax=ax)
    assert list(image.get_extent()) == [0.5, 4.5, 3.5, 0.5]
    plt.close()


def test_what_is_no_map_is_refused_with_words():
    m = BinaryOccupancyMap(3, 3)
    for value in (3, np.zeros((3, 3)), "map"):
        with pytest.raises(ValueError, match=r"(?s)sync_with: .*, expected a BinaryOccupancyMap"):
            m.move([1, 1], SyncWith=value)
    with pytest.raises(ValueError, match="source: int, expected a BinaryOccupancyMap"):
        m.sync_with(3)
    assert m.local_origin_in_world.tolist() == [0, 0]


@pytest.mark.needs("matplotlib")
def test_the_table_of_the_page_runs_line_by_line(tmp_path, monkeypatch):
    """The values are those that MATLAB's rules give by hand for the lines on the left."""
    import matplotlib as mpl

    mpl.use("Agg")
    page = Path(__file__).parents[3] / "docs" / "howto" / "occupancy-map.md"
    rows = page.read_text().split("| MATLAB | Python |\n| --- | --- |\n")[1].splitlines()
    lines = [row.split("` | `") for row in rows if row.startswith("| `")]
    assert len(lines) > 20
    assert any(left == "| `mapInflated = copy(map);" for left, _ in lines)

    monkeypatch.chdir(tmp_path)
    names = {"np": np, "nav": nav}
    for _, python in lines:
        exec(python.removesuffix("` |"), names)

    assert names["occ"].tolist() == [True]
    assert names["block"].tolist() == [[1, 0], [0, 1]]
    assert names["ij"].tolist() == [[40, 5]]  # 41 rows; (5, 2) lies on the corner of row 40
    assert names["xy"].tolist() == [[0.5, 40.5]]
    assert [41 - 2, 9] in names["endpoints"].tolist()
    assert names["rows"] == 41
    assert names["mat"].shape == (41, 52)
    assert names["corner"]
    assert names["mapInflated"].occupancy_matrix().sum() > names["mat"].sum()
    assert names["mapLocal"].LocalOriginInWorld.tolist() == [1, 0]
    assert names["map2"].one_based
