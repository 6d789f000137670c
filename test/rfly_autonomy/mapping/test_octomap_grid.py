# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Voxels against a slow obvious walk, log-odds by hand and by OctoMap, .bt files for its tools."""

from __future__ import annotations

import itertools
import math
import shutil
import subprocess

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_autonomy.mapping.octomap_grid import MAX_RAYS, OctomapGrid
from rfly_autonomy.mapping.octomap_parameters import OctomapParameters
from rfly_common.errors import ConfigError

SIDE = 0.2


def cell(point):
    return tuple(math.floor(value / SIDE) for value in point)


def slow_walk(origin, end, max_range=40.0):
    """Return the cells that a ray passes without its last, and the cell that it hits, or None.

    The ray is cut at every border that it crosses; each piece lies in the cell of its middle.
    """
    origin = np.array(origin, float)
    end = np.array(end, float)
    length = np.linalg.norm(end - origin)
    hit = cell(end) if length <= max_range else None
    if hit is None:
        end = origin + (end - origin) * max_range / length
    cuts = {0.0, 1.0}

    for a, b in zip(origin, end, strict=True):
        low, high = sorted((a, b))
        for border in range(math.ceil(low / SIDE), math.floor(high / SIDE) + 1):
            if b != a and 0.0 <= (border * SIDE - a) / (b - a) <= 1.0:
                cuts.add((border * SIDE - a) / (b - a))

    shares = sorted(cuts)
    pieces = [
        cell(origin + 0.5 * (s + t) * (end - origin))
        for s, t in itertools.pairwise(shares)
        if t > s
    ]

    return set(pieces) - {cell(end)}, hit


def cells(points):
    return {cell(point) for point in points}


def random_rays(rng, number, reach):
    origins = rng.uniform(-3.0, 3.0, (number, 3))
    return origins, origins + rng.normal(0.0, reach, (number, 3))


def test_voxels_are_those_of_a_slow_walk():
    origins, ends = random_rays(np.random.default_rng(4), 150, 4.0)
    grid = OctomapGrid(OctomapParameters(max_range=6.0))
    done = grid.insert(origins, ends)
    passed = set()
    hit = set()
    for origin, end in zip(origins, ends, strict=True):
        free, end_cell = slow_walk(origin, end, 6.0)
        passed |= free
        hit |= {end_cell} - {None}

    assert len(hit) < 150, "some reach farther than 6 m"
    assert cells(grid.voxels()) == hit
    assert cells(grid.voxels(occupied=False)) == passed - hit
    expected = (len(hit), len(passed - hit), 0)
    assert (done.occupied, done.free, done.left_out) == expected
    assert len(grid) == len(hit | passed)


def test_one_place_for_all_rays_is_the_same_as_one_each():
    _, ends = random_rays(np.random.default_rng(1), 40, 5.0)
    together = OctomapGrid()
    singly = OctomapGrid()
    together.insert((0.1, 0.2, 0.3), ends)
    singly.insert(np.tile((0.1, 0.2, 0.3), (40, 1)), ends)
    assert together.binary_file() == singly.binary_file()


def test_log_odds_by_hand():
    """A wall at x = 1.1 is seen twice, and then is gone: 0.85, 1.70, then less 0.41 a look.

    The bounds are -2 and 3.5.
    """
    grid = OctomapGrid()
    wall = (1.1, 0.1, 0.1)
    before = (0.5, 0.1, 0.1)
    beyond = (2.5, 0.1, 0.1)

    def known():
        return grid.log_odds([wall, before, beyond])

    assert np.isnan(known()).all()

    grid.insert((0.1, 0.1, 0.1), [wall])
    assert known() == pytest.approx([0.85, -0.41, np.nan], abs=1e-6, nan_ok=True)

    grid.insert((0.1, 0.1, 0.1), [wall, wall, wall])
    assert known()[:2] == pytest.approx([1.70, -0.82], abs=1e-6), "once a cloud, however many rays"

    for seen in (1.29, 0.88, 0.47, 0.06, -0.35):
        assert cell(wall) in cells(grid.voxels())
        grid.insert((0.1, 0.1, 0.1), [(5.0, 0.1, 0.1), beyond])
        assert known()[0] == pytest.approx(seen, abs=1e-6)
    assert cells(grid.voxels()) == {cell((5.0, 0.1, 0.1)), cell(beyond)}, (
        "hit wins over passed within a cloud"
    )

    for _ in range(20):
        grid.insert((0.1, 0.1, 0.1), [wall])
    assert known()[:2] == pytest.approx([3.5, -2.0])

    grid.clear()
    assert (
        len(grid),
        grid.binary_data(),
        grid.voxels().shape,
    ) == (0, b"", (0, 3))


def test_invalid_rays_are_left_out_and_counted():
    grid = OctomapGrid()
    ends = [
        (np.nan, 0, 0),
        (np.inf, 0, 0),
        (1e7, 0, 0),
        (0.5, 0.1, 0.1),
        (0.1, 0.1, 0.1),
        (0, 0, 7000.0),
    ]
    done = grid.insert((0.1, 0.1, 0.1), ends)
    assert done.left_out == 2
    assert cells(grid.voxels()) == {cell((0.5, 0.1, 0.1)), cell((0.1, 0.1, 0.1))}

    done = OctomapGrid().insert(
        [
            (0, 0, np.nan),
            (6553.5, 0, 0),
            (7000, 0, 0),
        ],
        [(1, 0, 0), (6555, 0, 0), (7001, 0, 0)],
    )
    assert done == (0, 0, 3, 0)


def test_where_a_map_is_full_the_farthest_voxels_make_room():
    """Ten voxels along x and ten far above are known, and nine are new.

    Of nine tenths of twenty the nine nearest stay.
    """
    grid = OctomapGrid(OctomapParameters(max_voxels=20, max_range=100.0))
    assert grid.insert((0.1, 0.1, 0.1), [(1.9, 0.1, 0.1)]) == (1, 9, 0, 0)
    assert grid.insert((0.1, 0.1, 10.1), [(1.9, 0.1, 10.1)]) == (1, 9, 0, 0)

    odds = grid.log_odds([(1.9, 0.1, 0.1)]).item()
    done = grid.insert((0.1, 0.1, 0.3), [(1.7, 0.1, 0.3)])  # 9 new ones
    assert done == (1, 8, 0, 11)
    assert len(grid) == 18

    near = [(0.1 + 0.2 * k, 0.1, 0.1) for k in range(9)]
    assert np.isfinite(grid.log_odds(near)).all()

    gone = [(1.9, 0.1, 0.1), *((0.1 + 0.2 * k, 0.1, 10.1) for k in range(10))]
    assert np.isnan(grid.log_odds(gone)).all()
    assert grid.insert((1.7, 0.1, 0.1), [(1.9, 0.1, 0.1)]).dropped == 0
    assert grid.log_odds([(1.9, 0.1, 0.1)]).item() == odds


def test_memory_stays_along_a_way_without_an_end():
    """No more than half of the 2¹⁸ places of 12 bytes are taken.

    Voxels that lie behind are forgotten.
    """
    grid = OctomapGrid(OctomapParameters(max_voxels=100_000))
    rng = np.random.default_rng(5)
    dropped = 0
    for x in range(0, 100, 5):
        place = np.array((float(x), 0.0, 1.0))
        rays = rng.normal(size=(600, 3))
        dropped += grid.insert(
            place, place + 10.0 * rays / np.linalg.norm(rays, axis=1)[:, None]
        ).dropped
        assert grid.size_bytes <= 12 << 18

    assert dropped > 100_000
    assert len(grid) <= 100_000
    assert np.isfinite(grid.log_odds([(95.0, 0.0, 1.0)])).all()
    assert np.isnan(grid.log_odds([(0.0, 0.0, 1.0)])).all()


def test_one_cloud_does_not_go_far_beyond_the_limit():
    """Hits come first.

    With room for one voxel more the first ray's 9 free ones go in, but no other ray's.
    """
    ends = [(1.9, 0.1 + 0.2 * k, 0.1) for k in range(100)]
    done = OctomapGrid(OctomapParameters(max_voxels=4)).insert((0.1, 0.1, 0.1), ends)
    assert done[:3] == (4, 0, 100)
    done = OctomapGrid(OctomapParameters(max_voxels=101)).insert((0.1, 0.1, 0.1), ends)
    assert done[:3] == (100, 9, 99)


@pytest.mark.parametrize(
    ("origins", "ends", "expected"),
    [
        ((0, 0, 0), [1, 2, 3], r"rays end at an array \(3,\), expected \(n, 3\)"),
        (
            np.zeros((2, 3)),
            np.zeros((3, 3)),
            r"rays start at an array \(2, 3\), expected \(3,\) or \(3, 3\)",
        ),
        ((0, 0, 0), np.zeros((MAX_RAYS + 1, 3), np.float32), r"with up to 2000000 rays"),
    ],
)
def test_other_shapes_are_refused(origins, ends, expected):
    with pytest.raises(ConfigError, match=expected):
        OctomapGrid().insert(origins, ends)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"resolution": 0.0}, "resolution is 0.0, allowed: 0.01 … 10"),
        ({"hit": -1.0}, "hit is -1.0, allowed: 0.01 … 20"),
        ({"miss": 0.4}, "miss is 0.4, allowed: -20 … -0.01"),
        ({"clamp_max": math.nan}, "clamp_max is nan, allowed: 0.01 … 20"),
        ({"max_range": 0.1}, "max_range is 0.1, allowed: 0.2 … 10000"),
    ],
)
def test_parameters_that_can_not_be(changes, expected):
    with pytest.raises(ConfigError) as error:
        OctomapParameters(**changes)
    assert str(error.value) == expected


def block(low, high):
    """Return ends of rays, one in every voxel of a box."""
    indices = [np.arange(a, b) for a, b in zip(low, high, strict=True)]
    return (np.stack(np.meshgrid(*indices, indexing="ij"), axis=-1).reshape(-1, 3) + 0.5) * SIDE


def test_equal_voxels_are_one_node_of_the_file(tmp_path):
    """A cube of 4 x 4 x 4 occupied voxels at a corner of the tree's cells is one node.

    It is on the 14th level below 14 others.
    """
    grid = OctomapGrid()
    grid.insert(block((0, 0, 0), (4, 4, 4)), block((0, 0, 0), (4, 4, 4)))
    head, _, data = grid.binary_file().partition(b"\ndata\n")

    assert head.decode().splitlines() == [
        "# Octomap OcTree binary file",
        "id OcTree",
        "size 15",
        "res 0.2",
    ]
    assert len(data) == 2 * 14
    # the root's eighth child is where x, y, z are positive; below it all is at the lowest corner
    assert data[:2] == bytes((0, 0b11000000))
    assert data[2:] == bytes((0b11, 0)) * 12 + bytes((0b10, 0))


@pytest.fixture
def mapped():
    """Return a grid after two clouds of a moving sensor, with a block that is merged."""
    rng = np.random.default_rng(7)
    grid = OctomapGrid()
    for place in (
        (0.0, 0.0, 1.0),
        (2.0, -1.0, 1.5),
        (2.0, -1.0, 1.5),
    ):
        grid.insert(place, place + rng.normal(0.0, 3.0, (400, 3)))
    grid.insert(block((40, 40, 40), (48, 48, 48)), block((40, 40, 40), (48, 48, 48)))
    return grid


def leaf_cells(tree):
    """Return (occupied, free) voxels of a pyoctomap octree, with large leaves cut into voxels."""
    found = [set(), set()]
    for leaf in tree.begin_leafs():
        side = round(leaf.getSize() / SIDE)
        first = np.round(np.array(leaf.getCoordinate()) / SIDE - 0.5 * side).astype(int)
        inside = (tuple((first + at).tolist()) for at in np.ndindex(side, side, side))
        found[0 if tree.isNodeOccupied(leaf) else 1].update(inside)
    return found


@pytest.mark.needs("pyoctomap")
def test_octomap_reads_the_file(mapped, tmp_path):
    import pyoctomap

    mapped.save(tmp_path / "map.bt")
    tree = pyoctomap.OcTree(0.05)
    assert tree.readBinary(str(tmp_path / "map.bt"))
    assert tree.getResolution() == pytest.approx(SIDE)
    assert f"\nsize {tree.size()}\n".encode() in (tmp_path / "map.bt").read_bytes()
    assert leaf_cells(tree) == [cells(mapped.voxels()), cells(mapped.voxels(occupied=False))]
    assert len(mapped.voxels()) > 1000
    # and as it would have been written by OctoMap: the same bytes behind the head
    assert tree.writeBinary().partition(b"\ndata\n")[2] == mapped.binary_data()


@pytest.mark.needs("pyoctomap")
def test_log_odds_are_those_of_octomap():
    import pyoctomap

    ours = OctomapGrid()
    tree = pyoctomap.OcTree(SIDE)
    for put, value in (
        (tree.setProbHit, 0.85),
        (tree.setProbMiss, -0.41),
        (tree.setClampingThresMin, -2.0),
        (tree.setClampingThresMax, 3.5),
    ):
        put(1.0 / (1.0 + math.exp(-value)))
    rng = np.random.default_rng(3)
    for _ in range(6):
        ends = rng.normal(0.0, 2.0, (300, 3))
        ours.insert((0.1, 0.1, 0.1), ends)
        tree.insertPointCloud(ends, np.array((0.1, 0.1, 0.1)), 40.0)
    both = np.concatenate([ours.voxels(), ours.voxels(occupied=False)])
    theirs = [tree.search(point).getLogOdds() for point in both]

    assert leaf_cells(tree) == [cells(ours.voxels()), cells(ours.voxels(occupied=False))]
    assert ours.log_odds(both) == pytest.approx(theirs, abs=1e-4)


def test_debians_octomap_tools_read_the_file(mapped, tmp_path):
    """Debian's bt2vrml writes one place for an occupied leaf.

    convert_octree writes the whole tree, with as many nodes.
    """
    if shutil.which("bt2vrml") is None or shutil.which("convert_octree") is None:
        pytest.skip("the program bt2vrml is not installed")
    mapped.save(tmp_path / "map.bt")
    subprocess.run(
        ["bt2vrml", "map.bt"], cwd=tmp_path, check=True, timeout=PATIENCE, capture_output=True
    )
    text = (tmp_path / "map.bt.wrl").read_text(encoding="utf-8")
    boxes = text.count("Transform") if "Transform" in text else text.count("Box")
    merged = len(mapped.voxels()) - 512 + 1

    assert boxes == merged, "8³ voxels at a corner of the tree's cells are one"

    told = subprocess.run(
        ["convert_octree", "map.bt", "map.ot"],
        cwd=tmp_path,
        check=True,
        timeout=PATIENCE,
        capture_output=True,
    )
    assert b"ERROR" not in told.stderr

    size = (tmp_path / "map.bt").read_bytes().split(b"\nsize ")[1].split()[0]
    assert b"\nsize " + size in (tmp_path / "map.ot").read_bytes()


def test_a_file_is_there_at_once_or_not_at_all(mapped, tmp_path):
    with pytest.raises(ConfigError, match=r"map\.ply: maps are written as \.bt, not '\.ply'"):
        mapped.save(tmp_path / "map.ply")
    with pytest.raises(FileNotFoundError):
        mapped.save(tmp_path / "no" / "map.bt")
    (tmp_path / "map.bt").mkdir()
    with pytest.raises(OSError, match=r"map\.bt"):
        mapped.save(tmp_path / "map.bt")
    assert [path.name for path in tmp_path.iterdir()] == ["map.bt"]


def test_a_full_map_is_still_found_voxel_by_voxel():
    """The voxels that remain after room was made are those of a dictionary.

    Each still has its log-odds.
    """
    rng = np.random.default_rng(8)
    grid = OctomapGrid(OctomapParameters(max_voxels=60_000))
    for x in range(0, 60, 6):
        place = np.array((float(x), 0.0, 1.0))
        rays = rng.normal(size=(500, 3))
        dropped = grid.insert(
            place, place + 9.0 * rays / np.linalg.norm(rays, axis=1)[:, None]
        ).dropped
    centres = np.concatenate([grid.voxels(), grid.voxels(occupied=False)])

    assert dropped > 0
    assert len(centres) == len(grid) <= 60_000
    assert np.isfinite(grid.log_odds(centres)).all()
    # of what is left nothing lies farther than what a whole cloud around the last place may reach,
    # in whole shells
    distance = np.linalg.norm(centres - place, axis=1)
    assert distance.max() < 40.0

    before = len(grid)
    grid.insert((math.nan, 0.0, 0.0), [(1.0, 1.0, 1.0)])
    assert len(grid) == before, "a ray from nowhere drops nothing"


def person_crossing(grid, sees_background):
    """Return occupied voxels at x < 7 m after each of ten clouds a second, for 5 s.

    A person, 0.5 m wide and 1.8 m high, walks at 1.4 m/s along y, 6 m before a lidar, and is out of
    sight after 3 s. Without a background, rays that miss the person return nothing, and far away
    the ground does not either.
    """
    azimuth, elevation = np.meshgrid(
        np.radians(np.arange(-25, 25, 0.5)), np.radians(np.arange(-16, 16, 1.0))
    )
    rays = np.stack(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ],
        -1,
    )
    rays = rays.reshape(-1, 3) / (rays[..., :1].reshape(-1, 1))  # to the plane x = 1
    eye = np.array([0.05, 0.05, 1.05])
    seen = []
    for number in range(50):
        y = -2.1 + 0.14 * number if number < 30 else math.inf
        at_person = eye + 6.0 * rays
        hits = (
            (np.abs(at_person[:, 1] - y) < 0.25) & (at_person[:, 2] > 0.0) & (at_person[:, 2] < 1.8)
        )
        ends = np.where(hits[:, None], at_person, eye + 12.0 * rays)
        # the vehicle drives on, so that other voxels lie between the rays
        step = np.array([0.013 * number, 0.007 * number, 0.0])
        grid.age(0.1)
        grid.insert(
            eye + step, (ends if sees_background else np.concatenate([ends[hits], ends[:1]])) + step
        )
        seen.append(int((grid.voxels()[:, 0] < 7.0).sum()))
    return seen


def test_a_person_who_crossed_leaves_no_voxels():
    """Rays to a wall behind clear most voxels, but not those between the rays of later clouds."""
    seen = person_crossing(OctomapGrid(OctomapParameters(forget_after=2.0)), sees_background=True)
    assert min(seen[5:29]) > 5
    assert seen[49] == 0, "2 s later"
    seen = person_crossing(OctomapGrid(OctomapParameters(forget_after=2.0)), sees_background=False)
    assert min(seen[5:29]) > 5
    assert seen[49] == 0, "in front of the sky, too"
    assert person_crossing(OctomapGrid(), sees_background=False)[49] > 100, (
        "by default a map keeps what it has seen"
    )


def test_voxels_hit_again_are_not_forgotten_and_free_ones_stay():
    """Log-odds fall from 3.5 to below 0 in 2 s, 0.175 in each tenth; hits of 0.85 keep up."""
    grid = OctomapGrid(OctomapParameters(forget_after=2.0))
    ends = [(4.1, 0.1, 0.1), (4.1, 2.1, 0.1)]
    for _ in range(10):
        grid.insert((0.1, 0.1, 0.1), ends)

    assert grid.log_odds(ends) == pytest.approx([3.5, 3.5])

    known = len(grid)
    for _ in range(19):
        assert grid.age(0.1) == 0
        grid.insert((0.1, 0.1, 0.1), ends[:1])
    assert grid.log_odds(ends) == pytest.approx([3.5, 3.5 - 19 * 0.175], abs=1e-5)
    assert grid.age(0.2) == 1
    assert np.isnan(grid.log_odds(ends)).tolist() == [False, True]
    assert len(grid) == known - 1
    assert grid.log_odds([(2.1, 0.1, 0.1)])[0] < 0.0, "rays passed it"
    assert grid.age(-5.0) == grid.age(math.nan) == 0, "a clock that jumps back"

    for _ in range(5):
        grid.insert((0.1, 0.1, 0.1), ends)
    assert grid.age(1e9) == 2
    assert not len(grid.voxels())


def test_forgetting_loses_no_other_voxel():
    """Half of a crowded hash is forgotten, and every other voxel is found where it was."""
    grid = OctomapGrid(OctomapParameters(forget_after=1.0, max_range=1e4))
    rng = np.random.default_rng(3)
    first, second = np.unique(rng.integers(-60, 60, (2, 20_000, 3)), axis=1) * SIDE + SIDE / 2
    grid.insert(first, first)
    grid.age(0.2)
    grid.insert(second, second)
    expected = cells(second)
    assert grid.age(0.05) > 10_000
    assert cells(grid.voxels()) == expected
    assert np.isfinite(grid.log_odds(second)).all()
    assert len(grid) == len(expected)
