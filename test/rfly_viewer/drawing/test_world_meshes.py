# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Triangles of a world's objects, and which boxes of the bridge's they are."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.models import Model, box_part, cylinder_part, part_triangles, placed_part
from rfly_terrain.world.world import World, WorldObject
from rfly_terrain.world.world_file import load_world
from rfly_ue_bridge.objects.placement import place, world_to_placed
from rfly_viewer.drawing.world_meshes import SHARED, SameObjects, world_meshes

POST = Model("post", (box_part(1.0, 2.0, 3.0),), color=(10, 20, 30))
CAR = Model("car", (box_part(4.0, 2.0, 1.5),), vehicle_type=50)
SLOPE = HeightMap(
    [[0.0, 0.0], [100.0, 100.0]], origin_x=0, origin_y=0, step_x=100, step_y=100
)  # 1 m up a metre east


def volume(triangles):
    """Signed: above 0 where the fronts are outside. Gauss's theorem."""
    return float(
        np.einsum("ij,ij->i", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])).sum() / 6
    )


@pytest.mark.parametrize(
    ("part", "enclosed"),
    [
        (box_part(1.0, 2.0, 3.0), 6.0),
        (placed_part(box_part(2.0, 2.0, 2.0), (40.0, -30.0, 5.0), 0.7), 8.0),
        # the prism of 16 sides around a circle of 1 m: 16 tan(11.25 degrees)
        (cylinder_part(1.0, 2.0), 2.0 * 16 * np.tan(np.pi / 16)),
    ],
)
def test_triangles_enclose_the_part_with_their_fronts_outside(part, enclosed):
    assert volume(part_triangles(part)) == pytest.approx(enclosed)


def corners_of(mesh):
    """(n, 3) all corners where they are drawn."""
    c = np.cos(mesh.yaw)
    s = np.sin(mesh.yaw)
    x, y, z = (mesh.scale[:, None] * mesh.vertices[:, axis] for axis in range(3))
    at = np.stack([c[:, None] * x - s[:, None] * y, s[:, None] * x + c[:, None] * y, z], axis=-1)
    return (at + mesh.positions[:, None]).reshape(-1, 3)


def test_single_objects_are_drawn_in_their_place_turn_and_size():
    """2 m x 4 m x 6 m at twice its size, a quarter turned, on the slope at x = 50: 50 m up."""
    [mesh] = world_meshes(
        World(objects=(WorldObject(POST, 50, 20, np.pi / 2, scale=2.0),)).on(SLOPE)
    )
    assert mesh.color == (10, 20, 30)
    corners = corners_of(mesh)
    assert corners.min(axis=0) == pytest.approx([48, 19, 50])
    assert corners.max(axis=0) == pytest.approx([52, 21, 56])


def test_many_of_one_model_are_sent_once_and_typed_ones_not_at_all():
    posts = tuple(WorldObject(POST, 5.0 * i, 9.0, 0.1 * i, scale=1 + i) for i in range(SHARED))
    [mesh] = world_meshes(World(objects=(*posts, WorldObject(CAR, 1, 1))).on(SLOPE))
    assert len(mesh.faces) == 12
    expected = [5.0 * i for i in range(SHARED)]
    assert mesh.positions[:, 2] == pytest.approx(expected)
    expected = [0.1 * i for i in range(SHARED)]
    assert mesh.yaw == pytest.approx(expected)
    expected = [1 + i for i in range(SHARED)]
    assert mesh.scale == pytest.approx(expected)


@pytest.mark.parametrize("name", ["forest", "village", "pillars"])
def test_what_the_bridge_sends_for_a_world_is_known_again(name):
    """Each box of the datagrams is one of the world's objects.

     The same box a metre higher, or of another type, is none. Moving objects are not among them:
    the window shows people and cars by their datagrams.
    """
    world = load_world(name)
    terrain = HeightMap.load(world.map)
    placement = place(world_to_placed(world), terrain)
    same = SameObjects(world.on(terrain))
    moving = placement.select(placement.moves).to_ned_states()
    assert not same.of(moving.position_ned, moving.vehicle_type).any()
    states = placement.select(~placement.moves).to_ned_states()
    position = states.position_ned
    assert same.of(position, states.vehicle_type).all()
    assert not same.of(position - (0.0, 0.0, 1.0), states.vehicle_type).all()
    assert not same.of(position, states.vehicle_type + 50).any()
    assert not SameObjects(World()).of(position, states.vehicle_type).any()


def test_each_colour_of_a_models_parts_is_a_mesh():
    """A post with a cap: two boxes of 12 triangles, the cap on top; one such post and many."""
    parts = (box_part(1.0, 1.0, 3.0), placed_part(box_part(2.0, 2.0, 1.0), (0.0, 0.0, 3.0), 0.0))
    capped = Model("capped", parts, color=(1, 2, 3), part_colors=((90, 60, 30), (20, 80, 20)))
    for count in (1, SHARED):
        post, cap = world_meshes(World(objects=(WorldObject(capped, 5.0, 5.0, z=0.0),) * count))
        assert (post.color, cap.color) == ((90, 60, 30), (20, 80, 20))
        assert (len(post.faces), len(cap.faces)) == (12, 12)
        assert corners_of(post)[:, 2].max() == corners_of(cap)[:, 2].min() == 3.0


def test_few_meshes_for_many_triangles():
    """The forest's 400 objects make a handful of messages.

    Their triangles are a hundredth of those that are drawn.
    """
    world = load_world("forest")
    meshes = world_meshes(world.on(HeightMap.load(world.map)))
    sent = sum(len(mesh.faces) for mesh in meshes)
    drawn = sum(len(mesh.faces) * len(mesh.yaw) for mesh in meshes)
    assert len(meshes) <= 10
    assert sent * 50 < drawn
