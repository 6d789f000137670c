# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contacts of two bodies.

Random pairs are compared with the hull of their differences; others have a known answer.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from collision_reference import bodies_of, overlap, solid
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rfly_collision import Bodies, Box, Capsule, ConvexHull, Scene, Sphere

DIAGONAL = math.sqrt(0.5)
ABOUT_Z_45 = (0.0, 0.0, math.sin(math.pi / 8), math.cos(math.pi / 8))
ABOUT_Z_90 = (0.0, 0.0, DIAGONAL, DIAGONAL)
ABOUT_Y_45 = (0.0, math.sin(math.pi / 8), 0.0, math.cos(math.pi / 8))
ABOUT_Y_90 = (0.0, DIAGONAL, 0.0, DIAGONAL)
KINDS = 4


def random_quat(rng):
    quat = rng.normal(size=4)
    return quat / np.linalg.norm(quat)


def random_shape(rng, kind):
    offset = tuple(rng.normal(0, 0.3, 3)) if rng.random() < 0.5 else (0, 0, 0)
    if kind == 0:
        return Sphere(rng.uniform(0.2, 1), offset)
    if kind == 1:
        return Capsule(rng.uniform(0.1, 0.6), rng.uniform(0.3, 3), offset)
    if kind == 2:
        return Box(tuple(rng.uniform(0.3, 3, 3)), offset)
    return ConvexHull(rng.normal(size=(rng.integers(5, 30), 3)) * rng.uniform(0.3, 1.2, 3), offset)


def compare_scenes(seed, count):
    """Compare scenes of two bodies, all in one call; return the number that touch."""
    rng = np.random.default_rng(seed)
    rows = []

    # one pair in each place, 100 m apart
    for scene in range(count):
        at = np.array([100.0 * scene, 0, 0])
        first = scene % KINDS
        second = (scene // KINDS) % KINDS
        rows.append((random_shape(rng, first), at, random_quat(rng)))
        away = at + rng.normal(size=3) * rng.uniform(0.4, 1.8)
        rows.append((random_shape(rng, second), away, random_quat(rng)))

    contacts = Scene().contacts(bodies_of(rows))
    assert (contacts.b == contacts.a + 1).all()
    assert (contacts.a % 2 == 0).all()
    row_of = {int(a) // 2: row for row, a in enumerate(contacts.a)}

    # each answer against the hull of differences
    for scene in range(count):
        a = solid(*rows[2 * scene])
        b = solid(*rows[2 * scene + 1])
        expected = overlap(a, b)
        row = row_of.get(scene)

        if row is None:
            assert expected.depth < 1e-6, f"scene {scene} missed"
            continue

        assert expected.depth > -1e-6, f"scene {scene} invented"
        assert contacts.depth[row] == pytest.approx(expected.depth, abs=1e-6)
        assert (expected.normals @ contacts.normal[row]).max() > math.cos(math.radians(0.5)), scene
        point = contacts.position[row]
        assert max(a.outside(point), b.outside(point)) < 1e-3, scene

    return len(row_of)


def test_random_pairs_of_all_kinds():
    assert 80 < compare_scenes(1, 240) < 200


@pytest.mark.slow
def test_a_thousand_random_pairs():
    assert 350 < compare_scenes(2, 1_000) < 700


def both_ways(a, b):
    """Return the contact of two rows, after a check that the swapped one is its mirror image."""
    there, back = (Scene().contacts(bodies_of(rows)) for rows in ((a, b), (b, a)))
    assert len(there) == len(back) <= 1
    if len(there):
        assert back.depth == pytest.approx(there.depth, abs=1e-9)
        assert back.position == pytest.approx(there.position, abs=1e-9)
        assert back.normal == pytest.approx(-there.normal, abs=1e-9)
    return there


def only(contacts):
    assert len(contacts) == 1
    return contacts.position[0], contacts.normal[0], float(contacts.depth[0])


KNOWN = {
    "spheres": (
        (Sphere(1), (0, 0, 0)),
        (Sphere(0.5), (1.2, 0, 0)),
        (0.85, 0, 0),
        (-1, 0, 0),
        0.3,
    ),
    "sphere on a box": (
        (Sphere(1), (0.3, 0.2, 1.4)),
        (Box((2, 2, 1)), (0, 0, 0)),
        (0.3, 0.2, 0.45),
        (0, 0, 1),
        0.1,
    ),
    "sphere in a box": (
        (Sphere(0.1), (0, 0, 0.3)),
        (Box((4, 4, 1)), (0, 0, 0)),
        (0, 0, 0.35),
        (0, 0, 1),
        0.3,
    ),
    "sphere at a box's edge": (
        (Sphere(1), (1 + DIAGONAL, 0, 1 + DIAGONAL - 0.1)),
        (Box((2, 4, 2)), (0, 0, 0)),
        None,
        np.array([DIAGONAL, 0, DIAGONAL - 0.1]) / math.hypot(DIAGONAL, DIAGONAL - 0.1),
        1 - math.hypot(DIAGONAL, DIAGONAL - 0.1),
    ),
    "box flat on a box": (
        (Box((2, 2, 1)), (1.5, 0, 0.9)),
        (Box((2, 2, 1)), (0, 0, 0)),
        (0.75, 0, 0.45),
        (0, 0, 1),
        0.1,
    ),
    "box's edge on a face": (
        (Box((1, 1, 1)), (0, 0, 0.5 + DIAGONAL - 0.05), ABOUT_Y_45),
        (Box((3, 3, 1)), (0, 0, 0)),
        (0, 0, 0.475),
        (0, 0, 1),
        0.05,
    ),
    "two edges across": (
        (
            Box((4, 1, 1)),
            (0, 0, 2 * DIAGONAL - 0.02),
            (math.sin(math.pi / 8), 0, 0, math.cos(math.pi / 8)),
        ),
        (Box((1, 4, 1)), (0, 0, 0), ABOUT_Y_45),
        (0, 0, DIAGONAL - 0.01),
        (0, 0, 1),
        0.02,
    ),
    "capsules crossing": (
        (Capsule(0.3, 4), (0.5, 0, 0.5)),
        (Capsule(0.3, 4), (0, 0.7, 0), ABOUT_Z_90),
        (0, 0, 0.25),
        (0, 0, 1),
        0.1,
    ),
    "capsules whose axes meet": (
        (Capsule(0.3, 4), (0, 0, 0)),
        (Capsule(0.2, 4), (0, 0, 0), ABOUT_Z_90),
        None,
        (0, 0, None),
        0.5,
    ),
    "capsule lying on a box": (
        (Capsule(0.5, 2), (1.5, 0, 0.9)),
        (Box((3, 3, 1)), (0, 0, 0)),
        (1, 0, 0.45),
        (0, 0, 1),
        0.1,
    ),
    "capsule's axis through a box": (
        (Capsule(0.1, 10), (0, 0, 0.2), ABOUT_Z_45),
        (Box((2, 2, 1)), (0, 0, 0)),
        (0, 0, 0.3),
        (0, 0, 1),
        0.4,
    ),
    "tip of a hull": (
        (
            ConvexHull(
                [
                    (0, 0, 0),
                    (1, 0, 1),
                    (-1, 0, 1),
                    (0, 1, 1),
                    (0, -1, 1),
                ]
            ),
            (0.2, 0.1, 0.4),
        ),
        (Box((2, 2, 1)), (0, 0, 0)),
        (0.2, 0.1, 0.45),
        (0, 0, 1),
        0.1,
    ),
    "box inside a box": (
        (Box((1, 1, 1)), (0.1, 0, 0)),
        (Box((5, 9, 9)), (0, 0, 0)),
        None,
        (1, 0, 0),
        2.9,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_contacts_with_known_answers(name):
    a, b, position, normal, depth = KNOWN[name]
    found_position, found_normal, found_depth = only(both_ways_or_one(name, a, b))
    assert found_depth == pytest.approx(depth, abs=1e-9)
    if position is not None:
        assert found_position == pytest.approx(position, abs=1e-9)
    if normal[2] is None:
        assert abs(found_normal[2]) == pytest.approx(1, abs=1e-9)
    else:
        assert found_normal == pytest.approx(normal, abs=1e-9)


def both_ways_or_one(name, a, b):
    """Up and down are equally good where the axes meet, and so is either order."""
    return (
        Scene().contacts(bodies_of((a, b)))
        if name == "capsules whose axes meet"
        else both_ways(a, b)
    )


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("side", [-1, 1])
def test_a_corner_on_every_face_of_a_box(axis, side):
    """A cube on its tip, turned about it, is 5 cm deep in each face; as boxes and as hulls."""
    size = np.array([4.0, 2.0, 1.5])
    outwards = side * np.eye(3)[axis]
    tip, _ = Rotation.align_vectors([-outwards], [np.ones(3) / math.sqrt(3)])
    quat = (Rotation.from_rotvec(0.3 * outwards) * tip).as_quat()
    corner = outwards * (size[axis] / 2 - 0.05) + (np.array([0.3, 0.2, 0.1]) * (outwards == 0))
    middle = corner + outwards * math.sqrt(0.75)
    unit = np.array(np.meshgrid(*[(-0.5, 0.5)] * 3)).T.reshape(-1, 3)
    for cube in (Box((1, 1, 1)), ConvexHull(unit)):
        for box in (Box(tuple(size)), ConvexHull(unit * size)):
            position, normal, depth = only(both_ways((cube, middle, quat), (box, (0, 0, 0))))
            assert depth == pytest.approx(0.05, abs=1e-9)
            assert normal == pytest.approx(outwards, abs=1e-9)
            assert position == pytest.approx(corner + 0.025 * outwards, abs=1e-9)


def test_random_contacts_are_symmetric():
    rng = np.random.default_rng(5)
    found = 0
    for k in range(64):
        a, b = (
            (
                random_shape(rng, kind),
                rng.normal(0, 0.6, 3),
                random_quat(rng),
            )
            for kind in (k % KINDS, k // KINDS % KINDS)
        )
        found += len(both_ways(a, b))
    assert found > 20


@pytest.mark.parametrize("kind", range(KINDS))
def test_bodies_that_just_touch_and_just_do_not(kind):
    shape = [
        Sphere(0.5),
        Capsule(0.5, 1),
        Box((1, 1, 1)),
        ConvexHull(np.array(np.meshgrid(*[(-0.5, 0.5)] * 3)).T.reshape(-1, 3)),
    ]
    for height, touches in ((1.0, True), (1.0 + 1e-5, False), (1.0 - 1e-5, True)):
        for other in shape:
            contacts = both_ways((shape[kind], (0, 0, height)), (other, (0, 0, 0)))
            assert len(contacts) == touches, (other, height)
            if touches:
                assert contacts.depth[0] == pytest.approx(1.0 - height, abs=1e-9)


def test_equal_boxes_at_one_place():
    """The shortest side is the least way out, in either direction."""
    contacts = Scene().contacts(bodies_of([(Box((4, 2, 1)), (1, 2, 3))] * 2))
    assert contacts.depth[0] == pytest.approx(1)
    assert abs(contacts.normal[0]) == pytest.approx((0, 0, 1))


def test_no_bodies_and_lonely_ones():
    assert len(Scene().contacts(Bodies((), [], np.empty((0, 3)), np.empty((0, 4))))) == 0
    assert len(Scene().contacts(bodies_of([(Sphere(1), (0, 0, 0))]), 0.1)) == 0


def test_far_from_the_origin():
    """Coordinates of 1e6 m cost some of the last digits, not the contact."""
    at = np.array([1e6, -2e6, 5e3])
    a = (Box((4, 2, 1.5)), at, ABOUT_Z_45)
    b = (Sphere(1.0), at + np.array((0, 0, 1.65)))
    assert both_ways(a, b).depth == pytest.approx([0.1], abs=1e-6)


def slender_shape(rng, kind):
    """Return a shape with sides from 2 cm to 20 m in any combination."""

    def size():
        return float(np.exp(rng.uniform(np.log(0.02), np.log(20))))

    if kind == 0:
        return Sphere(size())
    if kind == 1:
        return Capsule(size(), size())
    if kind == 2:
        return Box((size(), size(), size()))
    return ConvexHull(rng.normal(size=(rng.integers(5, 30), 3)) * (size(), size(), size()))


@example(0)
@given(st.integers(0, 2**32 - 1))
def test_the_point_is_in_both_bodies(seed):
    """Pairs of all kinds, at any depth, with sides that differ a thousandfold."""
    rng = np.random.default_rng(seed)
    rows = []
    for first in range(KINDS):
        for second in range(KINDS):
            place = np.array([1_000.0 * len(rows), 0.0, 0.0])
            rows.append((slender_shape(rng, first), place, random_quat(rng)))
            rows.append((slender_shape(rng, second), place + rng.normal(size=3), random_quat(rng)))

    contacts = Scene().contacts(bodies_of(rows))
    assert len(contacts)
    for a, b, point, depth in zip(
        contacts.a, contacts.b, contacts.position, contacts.depth, strict=True
    ):
        outside = max(solid(*rows[a]).outside(point), solid(*rows[b]).outside(point))
        assert outside < (1e-9 if depth > 0 else 1e-7), (rows[a], rows[b])


def test_octahedra_with_faces_in_one_plane_far_apart():
    """The planes of two faces coincide to rounding, another pair is 2 m apart."""
    octahedron = ConvexHull(np.kron(np.eye(3), [[1], [-1]]))
    there = (octahedron, (2.25, -1.75, 1.5), (0.5, 0.5, 0.5, 0.5))
    assert len(both_ways((octahedron, (0, 0, 0)), there)) == 0
