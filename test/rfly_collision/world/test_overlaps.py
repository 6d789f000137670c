# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Overlapping boxes, compared with all pairs.

Sizes span many orders of magnitude. Filters drop the pairs that they should.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles import broad_phase as oracle

from rfly_collision import Bodies, Box, Scene, Sphere
from rfly_collision.narrow_phase.bodies import PlacedShapes
from rfly_collision.shapes.shape import table_of
from rfly_collision.world import overlap_kernels as kernels
from rfly_collision.world.scene import motion_of, place

NONE = np.empty(0, np.int64)
NO_LIMITS = np.array([10**9, 10**12])


def all_pairs(low, high):
    """Return sorted keys a·n + b of the boxes that overlap, from all pairs."""
    touch = ((low[:, None] <= high) & (high[:, None] >= low)).all(axis=2)
    a, b = np.nonzero(np.triu(touch, 1))
    return a * len(low) + b


def found(module, low, high, static=None, group=None, ignored=NONE):
    n = len(low)
    static = np.zeros(n, bool) if static is None else static
    group = np.full(n, -1) if group is None else group
    keys = np.empty(n * n, np.int64)
    return np.sort(keys[: module.overlaps(low, high, static, group, ignored, NO_LIMITS, keys)])


SCENES = {
    "equal": lambda rng, n: rng.uniform(2, 2.1, (n, 3)),
    "all sizes": lambda rng, n: 10.0 ** rng.uniform(-4, 2, (n, 1)) * rng.uniform(0.1, 1, (n, 3)),
    "needles": lambda rng, n: rng.permuted(np.tile((50.0, 0.1, 0.1), (n, 1)), axis=1),
    "one giant": lambda rng, n: np.vstack([np.full((1, 3), 1e4), rng.uniform(0.1, 1, (n - 1, 3))]),
    "points": lambda rng, n: np.zeros((n, 3)),
}


@pytest.mark.parametrize("name", SCENES)
def test_all_overlaps_once(name):
    rng = np.random.default_rng(3)
    for n, width in ((2, 1), (40, 3), (600, 60)):
        # on a raster of 1/4: many sides meet exactly
        middle = np.round(4 * rng.uniform(-width, width, (n, 3))) / 4
        half = SCENES[name](rng, n) / 2
        low = middle - half
        high = middle + half
        assert found(kernels, low, high).tolist() == all_pairs(low, high).tolist()
        assert found(oracle, low, high).tolist() == all_pairs(low, high).tolist()


def test_a_list_that_is_too_short_is_reported():
    low = np.zeros((50, 3))
    keys = np.empty(7, np.int64)
    for module in (kernels, oracle):
        found_here = module.overlaps(
            low, low + 1, np.zeros(50, bool), np.full(50, -1), NONE, NO_LIMITS, keys
        )
        assert found_here == 50 * 49 // 2


@pytest.mark.parametrize("module", [kernels, oracle])
def test_filters(module):
    """Filters drop static 0-1, one group 2-3, ignored 4-5 and 0-5 of 15 pairs in one place."""
    low = np.zeros((6, 3))
    static = np.array([1, 1, 0, 0, 0, 0], bool)
    group = np.array([-1, -1, 7, 7, 8, -1])
    keys = found(module, low, low + 1, static, group, np.array([5, 4 * 6 + 5]))
    dropped = {
        (0, 1),
        (2, 3),
        (4, 5),
        (0, 5),
    }
    expected = [a * 6 + b for a in range(6) for b in range(a + 1, 6) if (a, b) not in dropped]
    assert keys.tolist() == expected


def test_filters_of_a_scene():
    """The filters act on bodies, too, with ignored pairs in any order."""
    bodies = Bodies(
        (Sphere(1.0),),
        np.zeros(6, int),
        np.random.default_rng(0).normal(0, 0.1, (6, 3)),
        np.tile((0.0, 0, 0, 1), (6, 1)),
        static=np.array([1, 1, 0, 0, 0, 0], bool),
        group=[-1, -1, 7, 7, 8, -1],
        ignore=[(5, 4), (0, 5), (2, -1)],
    )
    contacts = Scene().contacts(bodies)
    pairs = list(zip(contacts.a.tolist(), contacts.b.tolist(), strict=True))
    dropped = {
        (0, 1),
        (2, 3),
        (4, 5),
        (0, 5),
    }
    expected = [(a, b) for a in range(6) for b in range(a + 1, 6) if (a, b) not in dropped]

    assert pairs == expected


@pytest.mark.parametrize("dt", [0.0, 0.3])
def test_boxes_hold_bodies_at_every_moment(dt):
    """Boxes contain the corners of tumbling boxes at 50 moments of the step.

    The reference's boxes and the compiled ones are the same.
    """
    rng = np.random.default_rng(1)
    n = 50
    size = (4.0, 2.0, 1.5)
    quat = rng.normal(size=(n, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    bodies = Bodies(
        (Box(size, (0.5, 0, 0)), Sphere(0.5, (1, 0, 0))),
        np.arange(n) % 2,
        rng.uniform(-100, 100, (n, 3)),
        quat,
        rng.normal(0, 20, (n, 3)),
        rng.normal(0, 5, (n, 3)),
    )
    table = table_of(bodies.shapes)
    placed = place(table, motion_of(bodies), dt)
    plain = PlacedShapes(*(np.empty_like(part) for part in placed))
    oracle.swept_boxes(table, motion_of(bodies), dt, plain)
    for one, other in zip(placed, plain, strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    from scipy.spatial.transform import Rotation

    corners = np.array(np.meshgrid(*[(-0.5, 0.5)] * 3)).T.reshape(-1, 3) * size + (0.5, 0, 0)
    for moment in np.linspace(0, dt, 50):
        turned = Rotation.from_quat(quat) * Rotation.from_rotvec(
            bodies.angular_velocity * (moment - dt)
        )
        middle = bodies.position + bodies.velocity * (moment - dt)
        for index in range(n):
            points = corners if index % 2 == 0 else np.array([(1.0, 0, 0)])
            world = turned[index].apply(points) + middle[index]
            radius = 0.0 if index % 2 == 0 else 0.5
            assert (world.min(axis=0) - radius >= placed.low[index] - 1e-9).all()
            assert (world.max(axis=0) + radius <= placed.high[index] + 1e-9).all()
    if dt == 0.0:
        assert np.ptp(corners, axis=0) == pytest.approx(size)
