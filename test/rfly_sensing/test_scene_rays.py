# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays against still and moving triangle meshes, compared with NumPy over all triangles."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull as QuickHull

from rfly_collision.shapes.shape import Box, ConvexHull, TriangleMesh
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_sensing.box_tree import DEPTH, box_tree
from rfly_sensing.neighbours import world_bodies
from rfly_sensing.scene_rays import PIECE, SceneBodies, SceneRays, joined
from rfly_terrain.world.models import Model, box_part, cylinder_part, part_faces, placed_part
from rfly_terrain.world.world import World, WorldObject

HIGH = 1e4
"""Height of all bodies, from which the level ground at 0 is out of reach, m."""


def scene(shapes, index, position, rpy, velocity=None, time=0.0):
    count = len(index)
    return SceneBodies(
        tuple(shapes),
        np.asarray(index),
        np.asarray(position, float) + np.array((0.0, 0.0, HIGH)),
        np.asarray(euler_to_quat(np.asarray(rpy, float)), float),
        np.zeros((count, 3)) if velocity is None else np.asarray(velocity, float),
        np.full(count, time),
        np.arange(count),
    )


def rays(rng, count, spread=30.0):
    """Return origins within the spread (m), and directions to somewhere near the middle.

    Some are along an axis.
    """
    origins = rng.uniform(-spread, spread, (count, 3))
    directions = rng.uniform(-0.4 * spread, 0.4 * spread, (count, 3)) - origins
    directions[: count // 8, :2] = 0.0
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return origins + np.array((0.0, 0.0, HIGH)), directions


def soup(rng, count, extent, size):
    """Return triangles (count, 3, 3) of a size (m) anywhere within the extent."""
    return rng.uniform(-extent, extent, (count, 1, 3)) + rng.uniform(-size, size, (count, 3, 3))


def nearest_of_all(triangles, origins, directions):
    """Return ranges (n,), inf without a hit, and triangles (n,).

    Each triangle is tested by its plane's range, then by the sides of its three edges.
    """
    best = np.full(len(origins), np.inf)
    which = np.full(len(origins), -1)
    for number, (a, b, c) in enumerate(triangles):
        normal = np.cross(b - a, c - a)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = ((a - origins) @ normal) / (directions @ normal)
            points = origins + at[:, None] * directions
            inside = at >= 0.0
            for begin, end in ((a, b), (b, c), (c, a)):
                inside &= np.cross(end - begin, points - begin) @ normal >= 0.0
        nearer = inside & (at < best)
        best = np.where(nearer, at, best)
        which = np.where(nearer, number, which)

    return best, which


def test_meshes_as_every_triangle_asked():
    """Two meshes, one of several pieces, are hit as five bodies in any attitude."""
    rng = np.random.default_rng(3)
    meshes = [
        TriangleMesh(soup(rng, 2 * PIECE + 9, 6.0, 1.5)),
        TriangleMesh(soup(rng, 40, 3.0, 2.0)),
    ]
    index = [0, 1, 0, 1, 1]
    rpy = rng.uniform(-3, 3, (5, 3))
    place = rng.uniform(-12, 12, (5, 3))
    bodies = scene(meshes, index, place, rpy)
    turned = rotation_matrix(bodies.orientation)
    world = [meshes[k].triangles @ turned[n].T + bodies.position[n] for n, k in enumerate(index)]
    owner = np.repeat(np.arange(5), [len(each) for each in world])
    triangles = np.concatenate(world)
    origins, directions = rays(rng, 400, 20.0)
    exact, which = nearest_of_all(triangles, origins, directions)
    hits = SceneRays(None, bodies).cast(origins, directions, 1e3)

    assert np.isfinite(exact).sum() > 100

    np.testing.assert_allclose(hits.ranges, exact, rtol=1e-9)  # ten kilometres up
    hit = np.isfinite(exact)
    np.testing.assert_array_equal(hits.body[hit], owner[which[hit]])
    corners = triangles[which[hit]]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    cosine = np.einsum("ij,ij->i", normals, hits.normals[hit])
    np.testing.assert_allclose(np.abs(cosine), 1.0, atol=1e-9)

    assert (np.einsum("ij,ij->i", directions[hit], hits.normals[hit]) < 0.0).all()

    short = SceneRays(None, bodies).cast(origins, directions, 10.0).ranges
    expected = np.where(hits.ranges <= 10.0, hits.ranges, np.inf)
    np.testing.assert_array_equal(short, expected)


def test_a_hull_is_the_mesh_of_its_faces():
    """Walls seen from outside are the same for a hull and the mesh of its faces.

    From within, a hull begins at 0, and a mesh is seen from behind.
    """
    rng = np.random.default_rng(4)
    corners = rng.normal(size=(30, 3))
    mesh = TriangleMesh(corners[QuickHull(corners).simplices])
    origins, directions = rays(rng, 2000, 4.0)
    place = [(0.3, -0.2, 0.1)]
    rpy = [(0.4, 1.0, -2.0)]
    solid, surface = (
        SceneRays(None, scene([shape], [0], place, rpy)).cast(origins, directions, 1e3)
        for shape in (ConvexHull(corners), mesh)
    )
    outside = solid.ranges > 0.0

    assert np.isfinite(solid.ranges[outside]).sum() > 100
    assert (~outside).sum() > 20

    np.testing.assert_allclose(surface.ranges[outside], solid.ranges[outside], rtol=1e-9, atol=1e-6)
    assert (surface.ranges[~outside] > 0.0).all()
    assert np.isfinite(surface.ranges[~outside]).all()


def test_a_hollow_is_seen_into():
    """A ray through the gate of an arch goes on, which the hull of its three slabs would stop."""
    unit = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.0, 1.0)])
    slabs = [
        unit * size + at
        for size, at in (
            ((1, 1, 4), (0, -3, 0)),
            ((1, 1, 4), (0, 3, 0)),
            ((1, 7, 1), (0, 0, 4)),
        )
    ]
    arch = TriangleMesh(np.concatenate([slab[QuickHull(slab).simplices] for slab in slabs]))
    bodies = scene([arch], [0], [(10.0, 0.0, -HIGH)], [(0.0, 0.0, 0.0)])
    origins = np.array(
        [
            (0.0, 0.0, 2.0),
            (0.0, 3.0, 2.0),
            (0.0, 0.0, 4.5),
            (10.0, 0.0, 2.0),
        ]
    )
    directions = np.array(
        [
            (1.0, 0, 0),
            (1.0, 0, 0),
            (1.0, 0, 0),
            (0, 0, 1.0),
        ]
    )
    hits = SceneRays(None, bodies).cast(origins, directions, 50.0)

    np.testing.assert_allclose(hits.ranges, [math.inf, 9.5, 9.5, 2.0])
    expected = [
        (-1, 0, 0),
        (-1, 0, 0),
        (0, 0, -1),
    ]
    np.testing.assert_allclose(hits.normals[1:], expected, atol=1e-12)


def test_a_moving_object_is_hit_where_it_is_when_the_ray_is_sent():
    """A mesh flies east at 20 m/s, and its state is of 1 s.

    It is joined to one scene with a wall that stands.
    """
    rng = np.random.default_rng(5)
    mesh = TriangleMesh(soup(rng, 30, 2.0, 1.5))
    moving = scene(
        [mesh],
        [0],
        [(0.0, 0.0, 0.0)],
        [(0.1, 0.2, 0.3)],
        [(20.0, 0.0, 0.0)],
        time=1.0,
    )
    wall = scene(
        [Box((1.0, 100.0, 100.0))],
        [0],
        [(60.0, 0.0, 0.0)],
        [(0.0, 0.0, 0.0)],
    )
    both = SceneRays(None, joined([moving, wall]))
    origins, directions = rays(rng, 300, 5.0)
    times = rng.uniform(0.0, 2.0, 300)
    told = both.cast(origins, directions, 100.0, times)
    for k in range(300):
        there = scene([mesh], [0], [(20.0 * (times[k] - 1.0), 0.0, 0.0)], [(0.1, 0.2, 0.3)])
        one = SceneRays(None, joined([there, wall])).cast(
            origins[k : k + 1], directions[k : k + 1], 100.0
        )
        assert told.ranges[k] == pytest.approx(one.ranges[0], abs=1e-8)
        assert told.body[k] == one.body[0]

    assert 5 < (told.body == 0).sum() < 200
    assert (told.body == 1).sum() > 20


def test_trees_hold_each_box_once_whatever_lies_in_one_place():
    """Boxes have one middle, or lie on one line, or measure millimetres to kilometres.

    No tree is too deep.
    """
    rng = np.random.default_rng(6)
    same = np.tile([1.0, 2.0, 3.0], (500, 1))
    steps = np.column_stack([2.0 ** -np.arange(500.0), np.zeros((500, 2))])
    sizes = rng.normal(size=(500, 3)) * 10.0 ** rng.uniform(-3, 3, (500, 1))

    for middles in (same, steps, sizes, same[:1]):
        half = rng.uniform(0.0, 1.0, middles.shape)
        tree = box_tree(middles - half, middles + half, 3)
        expected = list(range(len(middles)))
        assert sorted(tree.items.tolist()) == expected
        deepest = 0
        held = []
        waiting = [(0, 1)]
        while waiting:
            node, depth = waiting.pop()
            deepest = max(deepest, depth)
            if tree.held[node]:
                inside = tree.items[tree.link[node] : tree.link[node] + tree.held[node]]
                assert len(inside) <= 3
                held += inside.tolist()
                assert (tree.boxes[node, :3] <= (middles - half)[inside]).all()
                assert (tree.boxes[node, 3:] >= (middles + half)[inside]).all()
                continue
            for child in (tree.link[node], tree.link[node] + 1):
                assert (tree.boxes[child, :3] >= tree.boxes[node, :3]).all()
                assert (tree.boxes[child, 3:] <= tree.boxes[node, 3:]).all()
                waiting.append((child, depth + 1))
        assert sorted(held) == list(range(len(middles)))
        assert deepest <= DEPTH


def test_a_world_is_seen_part_by_part_or_by_its_surface():
    """A pillar 10 m to the north, and a gate that stands askew 20 m to the east, are seen."""
    slab = box_part(1.0, 1.0, 4.0)
    posts = [placed_part(slab, (0.0, y, 0.0), 0.0) for y in (-3.0, 3.0)]
    pillar = Model("pillar", (cylinder_part(0.5, 4.0), placed_part(slab, (0.0, 0.0, 4.0), 0.0)), 5)
    pillar = dataclasses.replace(pillar, part_colors=((255, 0, 51), (51, 102, 153)))
    gate = Model(
        "gate",
        (box_part(1.0, 7.0, 4.0),),
        4,
        surface=np.concatenate([part_faces(post) for post in posts]),
    )
    world = World(
        "w",
        (
            WorldObject(pillar, 0.0, 10.0, z=0.0),
            WorldObject(gate, 20.0, 0.0, 0.1, z=0.0, scale=2.0),
        ),
    )
    seen = world_bodies(world)

    assert seen.id.tolist() == [1, 1, 2]
    assert seen.class_id.tolist() == [5, 5, 4]
    assert seen.color[:2].tolist() == [[1.0, 0.0, 0.2], [0.2, 0.4, 0.6]]
    assert seen.color[2].tolist() == pytest.approx([150 / 255] * 3)

    origins = np.array(
        [
            (0.0, 0.0, 1.0),
            (0.0, 0.0, 6.0),
            (0.0, 0.0, 1.0),
            (20.0, 0.0, 1.0),
        ]
    )
    directions = np.array(
        [
            (0, 1.0, 0),
            (0, 1.0, 0),
            (1.0, 0, 0),
            (-math.sin(0.1), math.cos(0.1), 0),
        ]
    )
    hits = SceneRays(None, seen).cast(origins, directions, 50.0)
    # a side of the prism around the cylinder looks south, as far as the cylinder itself
    assert hits.ranges == pytest.approx([9.5, 9.5, math.inf, 5.0])
    assert hits.body.tolist() == [0, 1, -2, 2]
