# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contacts over a step: nothing passes through anything, and the time of the first touch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from collision_reference import bodies_of, body, overlap, solid
from scipy.spatial.transform import Rotation

from rfly_collision import Box, Capsule, ConvexHull, Scene, Sphere
from rfly_common.errors import BodiesError
from rfly_terrain import HeightMap

LEVEL = (0.0, 0.0, 0.0, 1.0)
DART = ConvexHull(
    [
        (0.05, 0, 0),
        (-0.05, 0.01, 0),
        (-0.05, -0.01, 0.01),
        (-0.05, 0, -0.01),
    ]
)


def ridge(outside="extend"):
    """Return a wall along y at x = 0, 5 m high and one cell wide on each side."""
    heights = np.zeros((41, 41))
    heights[20] = 5.0
    return Scene(HeightMap(heights, origin_x=-20, origin_y=-20, step_x=1, step_y=1), outside)


BULLETS = {
    # the front end of the body at height 1 meets the wall, x = -0.8 there; a sphere somewhat before
    "sphere": (Sphere(0.02), -0.8 - 0.02 * math.hypot(5, 1) / 5),
    "capsule": (Capsule(0.02, 0.06), -0.83 - 0.02 * math.hypot(5, 1) / 5),
    "box": (Box((0.1, 0.02, 0.02)), -0.8 - 0.05 - 0.002),
    "hull": (DART, -0.85),
}


@pytest.mark.parametrize("kind", BULLETS)
@pytest.mark.parametrize("outside", ["extend", "void"])
def test_a_bullet_does_not_pass_through_a_thin_ridge(kind, outside):
    """A bullet at 800 m/s starts the step 11 m before the wall and ends it 5 m behind."""
    shape, x_touch = BULLETS[kind]
    bullet = body(shape, (5.0, 0.3, 1.0), LEVEL, (800.0, 0, 0))
    scene = ridge(outside)
    assert not len(scene.contacts(bullet))
    contacts = scene.contacts(bullet, 0.02)
    assert contacts.b.tolist() == [-1]
    expected = [0.02 - (5.0 - x_touch) / 800.0]
    assert contacts.time == pytest.approx(expected, abs=1e-6)
    expected = np.array([-5, 0, 1]) / math.hypot(5, 1)
    assert contacts.normal[0] == pytest.approx(expected, abs=1e-3)
    assert contacts.depth.tolist() == [0.0]
    assert contacts.position[0] == pytest.approx((-0.8, 0.3, 1.0), abs=0.02)


def test_a_bullet_passes_over_the_ridge():
    shape = Box((0.1, 0.02, 0.02))
    scene = ridge()
    assert not len(scene.contacts(body(shape, (5.0, 0.3, 5.011), LEVEL, (800.0, 0, 0)), 0.02))
    assert len(scene.contacts(body(shape, (5.0, 0.3, 5.009), LEVEL, (800.0, 0, 0)), 0.02)) == 1


@pytest.mark.parametrize("first", BULLETS)
@pytest.mark.parametrize("second", BULLETS)
def test_two_bullets_that_cross(first, second):
    """Two bullets pass (0, 0, 0) in the middle of the step, 10 m away from it at its ends."""
    one = BULLETS[first][0]
    other = BULLETS[second][0]
    across = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    rows = [
        (one, (10.0, 0, 0), LEVEL, (1000.0, 0, 0)),
        (other, (0, 10.0, 0), across, (0, 1000.0, 0)),
    ]
    contacts = Scene().contacts(bodies_of(rows), 0.02)
    assert (contacts.a.tolist(), contacts.b.tolist()) == ([0], [1])
    # the first touch: not farther from the middle than both are long
    assert 0.01 - 0.2 / 1000 < contacts.time[0] < 0.01
    assert np.abs(contacts.position[0]).max() < 0.1
    # 1 cm later at the crossing than the lengths allow
    late = [rows[0], (other, (0, 9.6, 0), across, (0, 1000.0, 0))]
    assert not len(Scene().contacts(bodies_of(late), 0.02))


def test_spheres_that_meet_head_on():
    rows = [
        (
            Sphere(0.5),
            (3.0, 0.6, 0),
            LEVEL,
            (100.0, 0, 0),
        ),
        (
            Sphere(0.5),
            (-3.0, 0, 0),
            LEVEL,
            (-100.0, 0, 0),
        ),
    ]
    contacts = Scene().contacts(bodies_of(rows), 0.06)
    gap = 0.8  # along x, where their middles are 1 m apart
    expected = [0.06 - (6.0 + gap) / 200]

    assert contacts.time == pytest.approx(expected, abs=1e-6)
    assert contacts.normal[0] == pytest.approx((-gap, 0.6, 0), abs=1e-5)


def test_a_spinning_blade_hits_what_it_was_not_near_at_either_end():
    """A bar of 10 m that makes half a turn within the step hits a sphere on its way."""
    bar = Box((10, 0.1, 0.1))
    spin = (0.0, 0.0, math.pi / 0.1)
    rows = [(bar, (0, 0, 0), LEVEL, (0, 0, 0), spin), (Sphere(0.2), (0, 4.0, 0))]
    assert not len(Scene().contacts(bodies_of(rows)))
    contacts = Scene().contacts(bodies_of(rows), 0.1)
    assert len(contacts) == 1
    # the bar's side is 0.05 from its axis, the sphere's 0.2
    touch = math.pi / 2 - math.asin(0.25 / 4)
    assert contacts.time == pytest.approx([0.1 * touch / math.pi], abs=1e-5)


def test_at_rest_and_after_a_touch():
    ground = HeightMap(np.zeros((9, 9)), origin_x=-4, origin_y=-4, step_x=1, step_y=1)
    scene = Scene(ground)
    rows = [
        (Box((1, 1, 1)), (0, 0, 0.5)),
        (Box((1, 1, 1)), (0, 0, 1.5)),
        (Sphere(0.5), (2, 0, 0.5)),
    ]
    for dt in (0.0, 0.02):
        contacts = scene.contacts(bodies_of(rows), dt)
        expected = [
            (0, -1),
            (0, 1),
            (2, -1),
        ]
        assert list(zip(contacts.a.tolist(), contacts.b.tolist(), strict=True)) == expected
        assert contacts.depth == pytest.approx([0, 0, 0], abs=1e-9)
        assert contacts.time.tolist() == [0, 0, 0]
    # gliding 1 mm above the ground is no contact, however far
    for shape in (
        Box((1, 1, 1)),
        Sphere(0.5),
        Capsule(0.5, 1),
    ):
        assert not len(scene.contacts(body(shape, (3, 0, 0.501), LEVEL, (200.0, 0, 0)), 0.02))
        # and it has not touched on its way from below the map's other end
        assert len(scene.contacts(body(shape, (3, 0, 0.499), LEVEL, (200.0, 0, 0)), 0.02)) == 1
    # falling 1 m/s, 1 cm deep now
    falling = scene.contacts(body(Box((1, 1, 1)), (0, 0, 0.49), LEVEL, (0, 0, -1.0)), 0.05)
    assert falling.depth == pytest.approx([0.01])
    assert falling.time == pytest.approx([0.04], abs=1e-5)


def test_onto_a_map_with_a_void_from_the_side():
    """The rim of the map stops what comes in below it, but not what comes in above."""
    heights = np.ones((9, 9))
    scene = Scene(HeightMap(heights, origin_x=-4, origin_y=-4, step_x=1, step_y=1), "void")
    for shape in (Box((0.2, 0.2, 0.2)), Sphere(0.1)):
        flying = body(shape, (21.3, 0, 0.85), LEVEL, (1000.0, 0, 0))  # now beyond the other side
        contacts = scene.contacts(flying, 0.04)
        assert len(contacts) == 1
        assert contacts.time[0] == pytest.approx(0.04 - (21.3 + 4.1) / 1000, abs=2e-4)
        assert not len(scene.contacts(body(shape, (21.3, 0, 1.101), LEVEL, (1000.0, 0, 0)), 0.04))


def random_shape(rng, kind):
    if kind == 0:
        return Sphere(rng.uniform(0.2, 0.6))
    if kind == 1:
        return Capsule(rng.uniform(0.1, 0.3), rng.uniform(0.3, 2))
    if kind == 2:
        return Box(tuple(rng.uniform(0.2, 2, 3)))
    return ConvexHull(rng.normal(size=(12, 3)) * rng.uniform(0.2, 0.7, 3))


def moved_back(row, before):
    shape, position, quat, velocity, turn = row
    turned = Rotation.from_quat(quat) * Rotation.from_rotvec(-np.array(turn) * before)
    return shape, np.array(position) - before * np.array(velocity), turned.as_quat()


def random_motion(rng, middle, speed, dt):
    """Return position, quaternion, velocity and angular velocity of a body in motion.

    The body is at `middle` in the middle of the step.
    """
    quat = rng.normal(size=4)
    velocity = rng.normal(0, speed, 3)
    return (
        middle + velocity * dt / 2,
        quat / np.linalg.norm(quat),
        velocity,
        rng.normal(0, 5, 3),
    )


def earliest(touching_at, moments):
    """Return the first moment at which each pair touches, infinity for pairs that never do.

    `contacts` are those of all moments, with the moment's index.
    """
    return moments[touching_at.min()] if touching_at.size else math.inf


def test_times_of_random_pairs_beside_many_moments():
    """The first of 200 moments at which the bodies touch brackets the time.

    Each moment is tested for itself.
    """
    rng = np.random.default_rng(7)
    dt = 0.2
    count = 200
    moments = np.linspace(0, dt, count + 1)
    hits = 0
    for k in range(32):
        kinds = (k % 4, k // 4 % 4)
        rows = [
            (
                random_shape(rng, kind),
                *random_motion(rng, rng.normal(0, 0.5, 3), 15, dt),
            )
            for kind in kinds
        ]
        contacts = Scene().contacts(bodies_of(rows), dt)
        still = [moved_back(row, dt - moment) for moment in moments for row in rows]
        # pairs of one moment each, every pair in a place of its own
        apart = [
            (shape, at + np.array((0, 0, 50.0 * (n // 2))), quat)
            for n, (shape, at, quat) in enumerate(still)
        ]
        expected = earliest(Scene().contacts(bodies_of(apart)).a // 2, moments)
        if len(contacts):
            hits += 1
            slack = dt / count + 1e-5
            assert expected - slack <= contacts.time[0] <= expected + 1e-9 or grazing(
                rows, contacts, dt
            ), k
        else:
            assert expected == math.inf, f"{k} missed"
    assert 10 < hits < 31


def grazing(rows, contacts, dt):
    """Bodies that touched only between two moments do touch at the reported time.

    The tolerance is 10 µm.
    """
    a, b = (solid(*moved_back(row, dt - contacts.time[0])) for row in rows)
    return overlap(a, b).depth > -1e-5


def test_times_of_random_bodies_over_rough_ground_beside_many_moments():
    rng = np.random.default_rng(8)
    dt = 0.2
    count = 200
    moments = np.linspace(0, dt, count + 1)
    ground = HeightMap(
        rng.normal(0, 1, (60, 60)), origin_x=-20, origin_y=-20, step_x=0.7, step_y=0.7
    )
    hits = 0
    for k in range(30):
        scene = Scene(ground, "void" if k % 5 == 0 else "extend")
        at = (*rng.uniform(-12, 12, 2), rng.uniform(1.5, 4.0))
        row = (random_shape(rng, k % 4), *random_motion(rng, np.array(at), 12, dt))
        contacts = scene.contacts(body(*row), dt)
        still = [moved_back(row, dt - moment) for moment in moments]
        together = bodies_of(still, group=np.zeros(count + 1, int))
        touching = scene.contacts(together)
        expected = earliest(touching.a, moments)
        if len(contacts):
            hits += 1
            slack = dt / count + 1e-5
            if not expected - slack <= contacts.time[0] <= expected + 1e-9:
                # a touch between two of the moments: at the reported time, sunk by 0.01 mm
                shape, at, quat = moved_back(row, dt - contacts.time[0])
                assert len(scene.contacts(body(shape, at - np.array((0, 0, 1e-5)), quat))), k
        else:
            assert expected == math.inf, f"{k} missed"
    assert 8 < hits < 28


@pytest.mark.parametrize("dt", [-0.1, math.nan, math.inf])
def test_steps_that_are_none(dt):
    with pytest.raises(BodiesError, match="dt: "):
        Scene().contacts(body(Sphere(1), (0, 0, 0)), dt)
