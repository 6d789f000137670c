# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shapes: the values they refuse and the part of a hull that remains.

Faces and edges are those that the narrow phase uses.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_collision import Bodies, Box, Capsule, ConvexHull, Sphere
from rfly_collision.shapes.shape import core_of, table_of
from rfly_common.errors import BodiesError, ShapeError

CUBE = [(x, y, z) for x in (0, 2) for y in (0, 2) for z in (0, 2)]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Sphere(0.0), "Sphere.radius is 0.0"),
        (lambda: Sphere(-1), "Sphere.radius is -1.0"),
        (lambda: Sphere(math.nan), "Sphere.radius is nan"),
        (lambda: Sphere("1"), "Sphere.radius is '1'"),
        (lambda: Sphere(1, (0, 0, math.inf)), r"Sphere.offset\[2\] is inf"),
        (lambda: Capsule(1, math.inf), "Capsule.length is inf"),
        (lambda: Capsule(-1, 1), "Capsule.radius is -1.0"),
        (lambda: Capsule(1, 1, (0, 0)), "Capsule.offset is"),
        (lambda: Box((1, -1, 1)), r"Box.size\[1\] is -1.0"),
        (lambda: Box((1, 1, math.nan)), r"Box.size\[2\] is nan"),
        (lambda: Box(1), "Box.size is 1"),
        (lambda: ConvexHull(CUBE[:3]), "3 points enclose no volume"),
        (lambda: ConvexHull([(x, y, 0) for x, y, _ in CUBE]), "lie in one plane"),
        (lambda: ConvexHull([(1, 1, 1)] * 5), "lie in one plane"),
        (lambda: ConvexHull([*CUBE[:7], (0, 0, math.nan)]), r"vertices\[7, 2\] is nan"),
        (lambda: ConvexHull([(1, 2)] * 5), r"expected shape \(n, 3\)"),
    ],
)
def test_what_is_no_solid_is_refused_by_name(make, named):
    with pytest.raises(ShapeError, match=named):
        make()


def test_a_hull_with_too_many_corners_is_refused():
    points = np.random.default_rng(0).normal(size=(2000, 3))
    with pytest.raises(ShapeError, match="2000 corners, expected at most 256"):
        ConvexHull(points / np.linalg.norm(points, axis=1, keepdims=True))


def test_a_hull_keeps_its_corners_only():
    hull = ConvexHull(
        [
            *CUBE,
            (1, 1, 1),
            (1, 0, 0),
            (1, 1, 2),
            (0.5, 0.5, 0.5),
        ]
    )
    assert sorted(map(tuple, hull.vertices.tolist())) == sorted(CUBE)
    with pytest.raises(ValueError, match="read-only"):
        hull.vertices[0, 0] = 9


@pytest.mark.parametrize("offset", [(0, 0, 0), (1.0, -2.0, 3.0)])
def test_a_box_has_six_faces_and_twelve_edges(offset):
    core = core_of(Box((4, 2, 1), offset))
    assert core.vertices.mean(axis=0) == pytest.approx(offset)
    assert np.ptp(core.vertices, axis=0).tolist() == [4, 2, 1]
    assert (
        len(core.planes),
        len(core.edges),
        len(core.triangles),
    ) == (6, 12, 12)

    for x, y, z, distance in core.planes:
        normal = np.array((x, y, z))
        assert sorted(np.abs(normal)) == pytest.approx([0, 0, 1])
        expected = normal @ offset + np.abs(normal) @ (2, 1, 0.5)
        assert distance == pytest.approx(expected)
    for one, other, left, right in core.edges:
        ends = core.vertices[[one, other]]
        for face in (left, right):
            assert ends @ core.planes[face, :3] == pytest.approx(core.planes[face, 3])


def test_coplanar_triangles_are_one_face():
    """A prism over a 12-gon has 14 faces and 36 edges, however Qhull cuts it."""
    angle = np.linspace(0, 2 * np.pi, 13)[:-1]
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    core = core_of(ConvexHull([(x, y, z) for z in (0, 1) for x, y in ring]))
    assert (len(core.planes), len(core.edges)) == (14, 36)


def test_the_table_keeps_shapes_apart():
    table = table_of(
        (
            Sphere(1),
            Capsule(0.5, 2),
            Box((1, 1, 1)),
            ConvexHull(CUBE),
        )
    )
    assert table.kind.tolist() == [0, 0, 1, 2]
    assert np.diff(table.first[:, 0]).tolist() == [1, 2, 8, 8]

    expected = [0, 1, math.sqrt(0.75), math.sqrt(12)]
    assert table.reach == pytest.approx(expected)

    first = table.first[3, 0]
    assert table.edges[table.first[3, 2] :, :2].min() == first
    assert table.triangles[table.first[3, 3] :].min() == first


def bodies(**changed):
    given = {
        "shapes": (Sphere(1.0),),
        "shape_index": [0, 0],
        "position": [(0, 0, 0), (5, 0, 0)],
        "orientation": [(0, 0, 0, 1)] * 2,
    }
    return Bodies(**{**given, **changed})


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"shape_index": [0, 1]}, r"shape_index\[1\] is 1"),
        ({"shape_index": [0, -1]}, r"shape_index\[1\] is -1"),
        ({"shape_index": [0]}, r"shape_index: expected shape \(2,\)"),
        ({"shape_index": [0.0, 0.0]}, "shape_index: expected int64"),
        ({"shapes": ("box",)}, r"shapes\[0\] is 'box'"),
        ({"position": [(0, 0, 0), (math.nan, 0, 0)]}, r"position\[1, 0\]: nan"),
        ({"orientation": [(0, 0, 0, 1), (0, 0, 0, 0)]}, r"orientation\[1\] has length 0"),
        ({"orientation": [(0, 0, 0, 1), (0, 0, 0, math.inf)]}, r"orientation\[1, 3\]: inf"),
        ({"velocity": [(0, 0, 0)]}, r"velocity: expected shape \(2, 3\)"),
        ({"angular_velocity": [(0, 0, 0), (0, 0, math.nan)]}, r"angular_velocity\[1, 2\]: nan"),
        ({"static": [True]}, r"static: expected shape \(2,\)"),
        ({"group": [1]}, r"group: expected shape \(2,\)"),
        ({"ignore": [(0, 2)]}, r"ignore\[0, 1\] is 2"),
        ({"ignore": [(0, -2)]}, r"ignore\[0, 1\] is -2"),
        ({"ignore": [0, 1]}, r"ignore: expected shape \(k, 2\)"),
    ],
)
def test_bodies_that_contradict_themselves_are_refused_by_name(changed, named):
    with pytest.raises(BodiesError, match=named):
        bodies(**changed)


def test_what_is_left_out_is_nothing():
    made = bodies()
    assert len(made) == 2
    for array in (made.velocity, made.angular_velocity, made.static):
        assert not array.any()
    assert made.group.tolist() == [-1, -1]
    assert made.ignore.shape == (0, 2)
    assert len(Bodies((), [], np.empty((0, 3)), np.empty((0, 4)))) == 0
