# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contacts with the ground.

Random ones are compared with samples of the bilinear surface; others have a known answer.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from collision_reference import (
    bilinear,
    bodies_of,
    body,
    deepest_in_ground,
    deepest_on_line,
    distance_to_ground,
    lower_side,
    solid,
)

from rfly_collision import Box, Capsule, ConvexHull, Scene, Sphere
from rfly_terrain import HeightMap

HALF_DEGREE = math.radians(0.5)
ABOUT_Y_45 = (0.0, math.sin(math.pi / 8), 0.0, math.cos(math.pi / 8))


def terrain(heights, step_x=1.0, step_y=1.0, origin_x=None, origin_y=None):
    """Return a terrain centred about 0 unless an origin is given."""
    heights = np.asarray(heights, float)
    origin_x = -step_x * (heights.shape[0] - 1) / 2 if origin_x is None else origin_x
    origin_y = -step_y * (heights.shape[1] - 1) / 2 if origin_y is None else origin_y
    return HeightMap(heights, origin_x=origin_x, origin_y=origin_y, step_x=step_x, step_y=step_y)


FLAT = terrain(np.zeros((9, 9)))


def slope(degrees):
    return terrain(np.tile(np.tan(np.radians(degrees)) * (np.arange(41.0) - 20)[:, None], (1, 41)))


def ridge(height=5.0):
    """Return a wall along y at x = 0, one cell wide on each side."""
    heights = np.zeros((41, 41))
    heights[20] = height
    return terrain(heights)


def random_shape(rng, kind):
    offset = tuple(rng.normal(0, 0.3, 3)) if rng.random() < 0.5 else (0, 0, 0)
    if kind == 0:
        return Sphere(rng.uniform(0.2, 1.5), offset)
    if kind == 1:
        return Capsule(rng.uniform(0.1, 0.6), rng.uniform(0.3, 3), offset)
    if kind == 2:
        return Box(tuple(rng.uniform(0.3, 3, 3)), offset)
    return ConvexHull(rng.normal(size=(rng.integers(5, 20), 3)) * rng.uniform(0.3, 1.2, 3), offset)


def random_scene(rng, kind):
    """Return (terrain, shape, position, quaternion) of rough ground and a body about to touch.

    Steps have either sign. Some bodies are outside of the map, some lie on grid lines and samples.
    """
    roughness = rng.choice([0.1, 0.5, 2.0])
    steps = (rng.choice([1.0, -0.7, 0.8]), rng.choice([1.0, -0.9, 0.6]))
    ground = terrain(rng.normal(0, roughness, (14, 15)), *steps, *rng.normal(size=2))

    # inside the map, or up to a metre outside
    x_min, x_max, y_min, y_max = ground.bounds
    margin = -1.0 if rng.random() < 0.3 else 2.5
    x = rng.uniform(x_min + margin, x_max - margin)
    y = rng.uniform(y_min + margin, y_max - margin)

    # some on grid lines and samples
    where = rng.integers(0, 6)
    if where in (0, 1):
        x = ground.origin_x + round((x - ground.origin_x) / ground.step_x) * ground.step_x
    if where in (1, 2):
        y = ground.origin_y + round((y - ground.origin_y) / ground.step_y) * ground.step_y

    quat = rng.normal(size=4)
    position = (x, y, float(ground.altitude(x, y)) + rng.normal(0.4, 0.7))
    return ground, random_shape(rng, kind), position, quat / np.linalg.norm(quat)


def compare(ground, shape, position, quat, void):
    """Compare the answer with the reference; return whether the body touches."""
    contacts = Scene(ground, "void" if void else "extend").contacts(body(shape, position, quat))
    reference = solid(shape, position, quat)
    if len(reference.points) > 2:
        return compare_polyhedron(ground, reference, contacts, void)
    return compare_round(ground, reference, contacts, void)


def compare_polyhedron(ground, reference, contacts, void):
    """Compare a polyhedron's contact with the reference; return whether it touches.

    To first order around the deepest point along the normal, the plane there has the ground below
    it and the body above it.
    """
    expected, _ = deepest_in_ground(ground, reference, void)
    if not len(contacts):
        assert expected < 1e-6, "missed"
        return False

    normal = contacts.normal[0]
    depth = contacts.depth[0]
    assert np.linalg.norm(normal) == pytest.approx(1)

    # the deepest point, straight down
    deepest = contacts.position[0] - normal * depth / 2
    assert reference.outside(deepest) < 1e-6, "invented"
    x, y = edge_clamped(ground, deepest) if void else deepest[:2]
    straight_down = float(bilinear(ground, x, y, void)) - deepest[2]
    assert depth == pytest.approx(straight_down * normal[2], abs=1e-6)
    assert straight_down * normal[2] > expected * normal[2] - 1e-3, "not the deepest"

    # the plane separates a small circle around it
    angle = np.linspace(0, 2 * np.pi, 33)[:-1]
    dx = 1e-5 * np.cos(angle)
    dy = 1e-5 * np.sin(angle)
    plane = -(normal[0] * dx + normal[1] * dy) / normal[2]
    rise = bilinear(ground, x + dx, y + dy, void) - bilinear(ground, x, y, void) - plane
    fall = lower_side(reference, deepest[0] + dx, deepest[1] + dy) - deepest[2] - plane
    assert max(rise.max(), -fall.min()) * normal[2] < 1e-5 * HALF_DEGREE

    return True


def edge_clamped(ground, point):
    """Return x, y of a point that rounding may have moved off the map."""
    x_min, x_max, y_min, y_max = ground.bounds
    assert x_min - 1e-9 < point[0] < x_max + 1e-9
    assert y_min - 1e-9 < point[1] < y_max + 1e-9
    return np.clip(point[0], x_min, x_max), np.clip(point[1], y_min, y_max)


def compare_round(ground, reference, contacts, void):
    core = reference.points[[0, -1]]
    below = deepest_on_line(ground, core, void)

    # the axis is below the ground
    if below >= 0:
        assert len(contacts) == 1
        normal = contacts.normal[0]
        depth = contacts.depth[0]
        assert (depth - reference.radius) == pytest.approx(below * normal[2], abs=1e-3)
        return True

    # the surface alone may touch
    distance, point = distance_to_ground(ground, core, reference.radius + 0.3, void)
    if not len(contacts):
        assert distance > reference.radius - 1e-6, "missed"
        return False

    assert distance < reference.radius + 1e-6, "invented"
    assert contacts.depth[0] == pytest.approx(reference.radius - distance, abs=1e-3)

    # the normal leads from the ground to the axis
    along = core[1] - core[0]
    share = np.clip((point - core[0]) @ along / max(along @ along, 1e-300), 0, 1)
    towards = core[0] + share * along - point
    cosine = towards @ contacts.normal[0] / np.linalg.norm(towards)
    assert cosine > math.cos(HALF_DEGREE) or distance < 1e-3

    return True


def compare_scenes(seed, count):
    rng = np.random.default_rng(seed)
    return sum(compare(*random_scene(rng, k % 4), void=k % 3 == 0) for k in range(count))


def test_random_bodies_on_rough_ground():
    assert 50 < compare_scenes(1, 90) < 85


@pytest.mark.exhaustive
@pytest.mark.slow
def test_hundreds_of_random_bodies_on_rough_ground():
    assert 170 < compare_scenes(10, 250) < 240


def only(contacts):
    assert len(contacts) == 1
    assert contacts.a.tolist() == [0]
    assert contacts.b.tolist() == [-1]
    return contacts.position[0], contacts.normal[0], float(contacts.depth[0])


@pytest.mark.parametrize("degrees", [0, 20, 60])
@pytest.mark.parametrize("depth", [0.9, 0.1, 1e-6])
def test_sphere_on_a_slope(degrees, depth):
    angle = math.radians(degrees)
    normal = np.array([-math.sin(angle), 0, math.cos(angle)])
    foot = np.array([0.3 * math.cos(angle), 0.2, 0.3 * math.sin(angle)])
    scene = Scene(slope(degrees))
    position, found, found_depth = only(
        scene.contacts(body(Sphere(1), foot + (1 - depth) * normal))
    )
    # heights are float32: some 1e-7 m a cell
    assert found_depth == pytest.approx(depth, abs=1e-6)
    assert found == pytest.approx(normal, abs=1e-6)
    assert position == pytest.approx(foot - depth / 2 * normal, abs=1e-6)
    assert not len(scene.contacts(body(Sphere(1), foot + 1.00001 * normal)))


def test_a_buried_sphere_is_pushed_out_along_the_slope():
    angle = math.radians(30)
    normal = np.array([-math.sin(angle), 0, math.cos(angle)])
    _, found, depth = only(Scene(slope(30)).contacts(body(Sphere(1), -2.5 * normal)))
    assert depth == pytest.approx(3.5, abs=1e-5)
    assert found == pytest.approx(normal, abs=1e-6)


@pytest.mark.parametrize("degrees", [0, 30])
def test_box_lying_on_a_slope_touches_in_its_middle(degrees):
    half = math.radians(degrees) / 2
    quat = (0, -math.sin(half), 0, math.cos(half))
    normal = np.array([-math.sin(2 * half), 0, math.cos(2 * half)])
    for depth in (0.0, 0.25):
        position, found, found_depth = only(
            Scene(slope(degrees)).contacts(body(Box((3, 2, 1)), (0.5 - depth) * normal, quat))
        )
        assert found_depth == pytest.approx(depth, abs=1e-6)
        assert found == pytest.approx(normal, abs=1e-6)
        assert position == pytest.approx(-depth / 2 * normal, abs=1e-6)


def test_capsule_lying_on_the_ground_touches_in_its_middle():
    position, normal, depth = only(Scene(FLAT).contacts(body(Capsule(0.5, 2), (0.3, 0.1, 0.4))))
    assert (*position, *normal, depth) == pytest.approx((0.3, 0.1, -0.05, 0, 0, 1, 0.1), abs=1e-9)


def test_capsule_across_a_ridge():
    """A capsule's axis passes 0.2 m above the crest of a wall.

    Its ends are high above the ground on the two sides of the wall.
    """
    position, normal, depth = only(Scene(ridge()).contacts(body(Capsule(0.3, 6), (0.4, 0.25, 5.2))))
    assert (*position, *normal, depth) == pytest.approx((0, 0.25, 4.95, 0, 0, 1, 0.1), abs=1e-6)


def test_box_edge_across_a_ridge_and_face_on_a_peak():
    """A feature without a normal takes the other's.

    Two edges give the direction across them; a peak takes the normal of the face.
    """
    box = Box((2, 6, 2))
    half = math.radians(10) / 2
    tilted = (0.0, math.sin(half), 0.0, math.cos(half))
    face = np.array([math.sin(2 * half), 0, math.cos(2 * half)])
    _, normal, depth = only(
        Scene(ridge()).contacts(body(box, np.array([0, 0, 5]) + 0.9 * face, tilted))
    )
    assert normal == pytest.approx(face, abs=1e-6)
    assert depth == pytest.approx(0.1, abs=1e-6)
    heights = np.zeros((9, 9))
    heights[4, 4] = 3.0
    position, normal, depth = only(
        Scene(terrain(heights)).contacts(body(box, np.array([0, 0, 3]) + 0.9 * face, tilted))
    )
    assert normal == pytest.approx(face, abs=1e-6)
    assert depth == pytest.approx(0.1, abs=1e-6)
    # half-way between the peak and the face
    assert (position - (0, 0, 3)) @ face == pytest.approx(-0.05, abs=1e-6)
    assert position == pytest.approx((0, 0, 3 - 0.05), abs=0.02)


@pytest.mark.parametrize(
    "corner",
    [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ],
)
def test_the_surface_is_bilinear_and_no_triangles(corner):
    """A cell with one corner 1 m high is 0.25 m high in the middle.

    Triangles would give 0 or 0.5 m.
    """
    heights = np.zeros((2, 2))
    heights[corner] = 1.0
    scene = Scene(terrain(heights))
    tip = ConvexHull(
        [
            (0, 0, 0),
            (0.1, 0, 2),
            (-0.1, 0.1, 2),
            (-0.1, -0.1, 2),
        ]
    )
    assert not len(scene.contacts(body(tip, (0, 0, 0.2501))))
    _, normal, depth = only(scene.contacts(body(tip, (0, 0, 0.2499))))
    slope_x, slope_y = (0.5 if side else -0.5 for side in corner)
    expected = np.array([-slope_x, -slope_y, 1]) / math.sqrt(1.5)
    assert normal == pytest.approx(expected, abs=1e-9)
    assert depth == pytest.approx(1e-4 / math.sqrt(1.5), abs=1e-9)
    # along the diagonal through the high corner it is a parabola below the straight line, and an
    # edge sees its top
    for along, top in (((1, 1), 0.25), ((1, -1), 0.25)):
        angle = math.atan2(along[1], along[0])
        quat = (0, 0, math.sin(angle / 2), math.cos(angle / 2))
        keel = ConvexHull(
            [
                (-0.6, 0, 0),
                (0.6, 0, 0),
                (-0.6, 0.1, 2),
                (-0.6, -0.1, 2),
                (0.6, 0.1, 2),
                (0.6, -0.1, 2),
            ]
        )
        high = corner in ((0, 0), (1, 1))
        if (along == (1, 1)) == high:
            continue  # that one rises to the high corner
        assert not len(scene.contacts(body(keel, (0, 0, top + 1e-4), quat)))
        assert only(scene.contacts(body(keel, (0, 0, top - 1e-4), quat)))[2] == pytest.approx(
            1e-4 / math.sqrt(1.5), abs=1e-7
        )


@pytest.mark.parametrize("x", [-4, -3.5, 0, 4])
@pytest.mark.parametrize("y", [-4, 0.5, 4])
def test_points_on_grid_lines_samples_and_the_edge(x, y):
    """A flat map has the same answer everywhere."""
    for shape, height in (
        (Sphere(1), 0.75),
        (Box((0.5, 0.5, 2)), 0.75),
        (Capsule(0.75, 0.5), 0.5),
    ):
        for outside in ("extend", "void"):
            _, normal, depth = only(Scene(FLAT, outside).contacts(body(shape, (x, y, height))))
            assert depth == 0.25
            assert normal == pytest.approx((0, 0, 1), abs=1e-8)


def test_outside_of_the_map():
    """Outside of the map, extended ground continues the edge and its slope along the edge.

    Void ground touches only bodies that are over the map.
    """
    heights = np.tile(0.5 * np.arange(5.0), (5, 1))  # rises along y: 0 … 2 over y = -2 … 2
    ground = terrain(heights)
    extend = Scene(ground)
    void = Scene(ground, "void")
    beside_x = (9, 0, 1.2)
    beyond_y = (0, 9, 2.2)
    corner = (9, -9, 0.2)
    for place, normal in (
        (beside_x, (0, -1 / math.sqrt(5), 2 / math.sqrt(5))),
        (beyond_y, (0, 0, 1)),
        (corner, (0, 0, 1)),
    ):
        for shape in (
            Sphere(0.5),
            Box((0.1, 0.1, 1)),
            Capsule(0.4, 0.2),
        ):
            assert only(extend.contacts(body(shape, place)))[1] == pytest.approx(normal, abs=1e-8)
            assert not len(void.contacts(body(shape, place)))
    # half over the edge: the part over the map alone counts
    assert only(void.contacts(body(Box((1, 1, 1)), (2.4, -1.5, 0.3))))[2] > 0
    assert not len(void.contacts(body(Box((1, 1, 1)), (2.6, -1.5, 0.3))))
    # a sphere next to the edge meets the rim
    _, normal, depth = only(void.contacts(body(Sphere(0.5), (2.4, 0, 1.0))))
    assert depth == pytest.approx(0.1)
    assert normal == pytest.approx((1, 0, 0), abs=1e-9)


def test_static_and_ignored_bodies_do_not_count():
    rows = [(Sphere(1), (x, 0, 0.5)) for x in (-3, 0, 3)]
    scene = Scene(FLAT)
    assert scene.contacts(bodies_of(rows)).a.tolist() == [0, 1, 2]
    assert scene.contacts(bodies_of(rows, static=np.array([True, False, False]))).a.tolist() == [
        1,
        2,
    ]
    assert scene.contacts(bodies_of(rows, ignore=[(1, -1), (-1, 2)])).a.tolist() == [0]


def test_contacts_come_in_order():
    """Contacts are sorted by body, with the terrain before other bodies."""
    rows = [(Sphere(1), (0.1 * x, 0, 0.5)) for x in range(3)]
    contacts = Scene(FLAT).contacts(bodies_of(rows))
    pairs = list(zip(contacts.a.tolist(), contacts.b.tolist(), strict=True))
    expected = [
        (0, -1),
        (0, 1),
        (0, 2),
        (1, -1),
        (1, 2),
        (2, -1),
    ]
    assert pairs == expected


def test_a_body_much_larger_than_the_cells():
    """A ball of 20 m in a bowl of 1 m cells touches where the bowl is narrower.

    It does not reach the bottom.
    """
    at = np.arange(-30.0, 31.0)
    bowl = terrain(np.hypot(at[:, None], at) ** 2 / 30)  # radius of curvature 15 m at the bottom
    distance, _ = distance_to_ground(bowl, np.array([[0.2, 0.1, 23.0]] * 2), 25.0)
    for radius, touches in ((distance + 0.05, True), (distance - 0.001, False)):
        contacts = Scene(bowl).contacts(body(Sphere(radius), (0.2, 0.1, 23.0)))
        assert len(contacts) == touches
    assert Scene(bowl).contacts(
        body(Sphere(distance + 0.05), (0.2, 0.1, 23.0))
    ).depth == pytest.approx([0.05], abs=1e-3)


def test_a_wrong_word_for_outside():
    with pytest.raises(ValueError, match="outside is 'wrap', expected 'extend' or 'void'"):
        Scene(FLAT, "wrap")
