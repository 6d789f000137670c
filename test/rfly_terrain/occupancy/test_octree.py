# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Octrees in OctoMap's binary form: bytes worked out by hand, the writer, and OctoMap itself."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain.occupancy import octree
from rfly_terrain.occupancy.octree import read_octree


def test_bytes_by_hand():
    """The bytes hold one occupied and one free leaf.

    The root's eighth child (x, y, z positive) leads down 13 levels along the lowest corner to a
    node of the 14th. Its first child is 4³ occupied voxels at the origin. Its last child is free
    and begins 0.8 m from the origin.
    """
    data = bytes((0, 0b11000000)) + bytes((0b11, 0)) * 12 + bytes((0b10, 0b01000000))
    leaves = read_octree(data, 0.2)
    assert leaves.occupied.tolist() == [True, False]
    assert leaves.low == pytest.approx(np.array([[0.0, 0.0, 0.0], [0.8, 0.8, 0.8]]))
    assert leaves.side == pytest.approx([0.8, 0.8])


def test_children_count_x_then_y_then_z():
    """Second child east, third north, fifth up: eighths of the cube of 65536 voxels of 1 m."""
    leaves = read_octree(bytes((0b00101000, 0b00000010)), 1.0)
    assert leaves.low.tolist() == [[0, -32768, -32768], [-32768, 0, -32768], [-32768, -32768, 0]]
    assert leaves.side.tolist() == [32768.0] * 3
    assert leaves.occupied.all()


def test_nothing_is_known_of_an_empty_tree():
    assert not len(read_octree(b"", 0.2).side)
    assert not len(read_octree(bytes(2), 0.2).side)


@pytest.mark.parametrize(
    ("data", "resolution", "expected"),
    [
        (b"\1", 0.2, "1 bytes, expected an even number"),
        (b"\3\0", 0.2, "2 bytes are not the nodes of one octree of 16 levels"),
        (b"\1\0\1\0", 0.2, "4 bytes are not the nodes of one octree"),
        (b"\3\0" * 17, 0.2, "34 bytes are not the nodes of one octree"),
        (b"", 0.0, "resolution 0 m, allowed: 0.001 … 1000"),
        (b"", float("nan"), "resolution nan m"),
    ],
)
def test_an_invalid_octree_is_refused(data, resolution, expected):
    with pytest.raises(ConfigError, match=expected):
        read_octree(data, resolution)


def test_random_bytes_are_read_or_refused():
    rng = np.random.default_rng(5)
    for _ in range(300):
        data = rng.integers(0, 256, 2 * int(rng.integers(1, 40)), np.uint8)
        try:
            leaves = read_octree(data, 0.5)
        except ConfigError:
            continue
        assert np.isfinite(leaves.low).all()


@pytest.mark.needs("pyoctomap")
def test_octomap_reads_the_same():
    """Every leaf of a map of OctoMap's own, with its side and what it is."""
    import pyoctomap

    rng = np.random.default_rng(8)
    tree = pyoctomap.OcTree(0.1)
    for x, y, z in rng.uniform(-2.0, 2.0, (300, 3)):
        tree.updateNode([x, y, z], bool(rng.random() < 0.5))
    for cell in np.ndindex(4, 4, 4):
        tree.updateNode([0.05 + 0.1 * (8 + k) for k in cell], True)
    head, _, data = bytes(tree.writeBinary()).partition(b"\ndata\n")
    assert head.startswith(b"# Octomap")
    leaves = read_octree(data, 0.1)
    expected = {}
    for node in tree.begin_leafs():
        middle = np.array(node.getCoordinate())
        side = node.getSize()
        expected[tuple(np.round((middle - side / 2) / 0.1).astype(int))] = (
            round(side / 0.1),
            tree.isNodeOccupied(node),
        )
    got = zip(
        np.round(leaves.low / 0.1).astype(int).tolist(), leaves.side, leaves.occupied, strict=True
    )
    assert {
        tuple(low): (round(side / 0.1), bool(is_occupied)) for low, side, is_occupied in got
    } == expected
    assert max(side for side, _ in expected.values()) == 4


def test_more_leaves_than_are_taken_are_refused_before_they_are_read(monkeypatch):
    monkeypatch.setattr(octree, "MOST_LEAVES", 7)
    with pytest.raises(ConfigError, match="octomap: 8 leaves, at most 7 are taken"):
        read_octree(b"\x55\x55", 0.2)
