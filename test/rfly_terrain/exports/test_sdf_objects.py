# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Objects of a world in Gazebo's file, read back as XML and STL by rules of SDF 1.9.

The solids lie where ours do.
"""

from __future__ import annotations

import math
import struct

import defusedxml.ElementTree
import numpy as np
import pytest

from rfly_terrain import HeightMap, load_world, write_gazebo_world
from rfly_terrain.exports import sdf
from rfly_terrain.world.models import Model, box_part, cylinder_part, hull_part, placed_part
from rfly_terrain.world.world import World, WorldObject

SLOPE = HeightMap(
    [[0.0, 0.0], [50.0, 50.0]], origin_x=0, origin_y=0, step_x=100, step_y=100, name="slope"
)
WEDGE = Model("wedge", (hull_part([(0, 0, 0), (4, 0, 0), (0, 3, 0), (0, 0, 2)]),))
TREE = Model(
    "tree",
    (cylinder_part(0.3, 4.0), placed_part(cylinder_part(2.0, 6.0, 0.0), (0, 0, 3.5), 0.0)),
    color=(51, 102, 0),
)


@pytest.fixture(autouse=True)
def small_textures(monkeypatch):
    monkeypatch.setattr(sdf, "_TEXTURE_PIXELS", 256)


def numbers(element, tag):
    return [float(word) for word in element.find(tag).text.split()]


def stl(file):
    """(t, 3) normals and (t, 3, 3) corners of a binary STL."""
    data = file.read_bytes()
    (count,) = struct.unpack_from("<I", data, 80)
    assert len(data) == 84 + 50 * count
    rows = np.array([struct.unpack_from("<12f", data, 84 + 50 * k) for k in range(count)])
    return rows[:, :3], rows[:, 3:].reshape(-1, 3, 3)


def corners_in_gazebo(folder, link, shape):
    """Return the (n, 3) world positions of a shape's corners.

    Those of a cylinder are the corners of the square around its circles.
    """
    x, y, z, roll, pitch, yaw = numbers(link, "pose")
    assert (roll, pitch) == (0.0, 0.0)

    # corners in the axes of the link
    geometry = shape.find("geometry")
    if geometry.find("mesh") is not None:
        _, triangles = stl(folder / geometry.find("mesh/uri").text)
        local = triangles.reshape(-1, 3) * numbers(geometry, "mesh/scale")
        assert shape.find("pose") is None
    else:
        if geometry.find("box") is not None:
            half = np.array(numbers(geometry, "box/size")) / 2
        else:
            (radius,), (length,) = (
                numbers(geometry, "cylinder/radius"),
                numbers(geometry, "cylinder/length"),
            )
            half = np.array([radius, radius, length / 2])
        signs = np.array([(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
        local = signs * half + numbers(shape, "pose")[:3]

    # in the world
    c = math.cos(yaw)
    s = math.sin(yaw)
    return local @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + (x, y, z)


def objects(folder):
    root = defusedxml.ElementTree.parse(folder / "world.sdf").getroot()
    ground, placed = root.findall("world/model")
    assert ground.find("link/visual/geometry/heightmap") is not None
    assert placed.find("static").text == "true"
    return placed


def test_by_hand(tmp_path):
    """The ground rises by 0.5 to the east: 10 m up at x 20. A box turned by 90°, twice as large."""
    box = Model(
        "box", (placed_part(box_part(4.0, 2.0, 3.0), (1.0, 0.0, -0.5), 0.0),), color=(255, 0, 51)
    )
    world = World(
        objects=(
            WorldObject(box, 20, 30, math.pi / 2, scale=2.0),
            WorldObject(WEDGE, 60, 10, z=7.0),
        )
    )
    write_gazebo_world(SLOPE, tmp_path / "w", world=world)

    # a box, turned and larger
    placed = objects(tmp_path / "w")
    first, second = placed.findall("link")
    assert numbers(first, "pose") == pytest.approx([20, 30, 10, 0, 0, math.pi / 2])
    for kind in ("visual", "collision"):
        corners = corners_in_gazebo(tmp_path / "w", first, first.find(kind))
        assert corners.min(axis=0) == pytest.approx([18, 28, 9])
        assert corners.max(axis=0) == pytest.approx([22, 36, 15])
    assert numbers(first, "visual/material/diffuse") == pytest.approx([1, 0, 0.2, 1])

    # colours of parts
    two = Model(
        "two",
        (box.parts[0], box_part(1.0, 1.0, 9.0)),
        color=(9, 9, 9),
        part_colors=((255, 0, 51), (51, 0, 0)),
    )
    write_gazebo_world(SLOPE, tmp_path / "two", world=World(objects=(WorldObject(two, 0, 0),)))
    diffuse = [
        visual.find("material/diffuse").text
        for visual in objects(tmp_path / "two").findall("link/visual")
    ]
    assert [float(text.split()[0]) for text in diffuse] == pytest.approx([1.0, 0.2])

    # a mesh
    corners = corners_in_gazebo(tmp_path / "w", second, second.find("collision"))
    assert {tuple(row) for row in np.round(corners, 6).tolist()} == {
        (60, 10, 7),
        (64, 10, 7),
        (60, 13, 7),
        (60, 10, 9),
    }


def test_round_things_are_round_and_others_are_meshes_once(tmp_path):
    world = World(
        objects=tuple(WorldObject(TREE, 10.0 * k, 50, scale=1 + 0.5 * k) for k in range(1, 4))
    )
    write_gazebo_world(SLOPE, tmp_path / "w", world=world)
    links = objects(tmp_path / "w").findall("link")

    # a cylinder
    trunk = links[1].findall("collision")[0]
    assert numbers(trunk, "geometry/cylinder/radius") == pytest.approx([0.6])
    assert numbers(trunk, "geometry/cylinder/length") == pytest.approx([8.0])
    assert numbers(trunk, "pose") == pytest.approx([0, 0, 4, 0, 0, 0], abs=1e-6)

    # a mesh, used three times
    (mesh,) = (tmp_path / "w" / "meshes").iterdir()
    normals, triangles = stl(mesh)
    across = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    assert (np.einsum("ij,ij->i", across, normals) > 0).all()
    outwards = triangles.mean(axis=1) - triangles.reshape(-1, 3).mean(axis=0)
    assert (np.einsum("ij,ij->i", normals, outwards) > 0).all()


@pytest.mark.parametrize("name", ["forest", "village", "pillars"])
def test_the_shipped_worlds_lie_where_their_solids_do(tmp_path, name):
    world = load_world(name).on(HeightMap.load("RollingHills"))
    write_gazebo_world(world.terrain, tmp_path / "w", world=world)
    links = objects(tmp_path / "w").findall("link")
    assert len(links) == len(world.objects)
    assert len({link.get("name") for link in links}) == len(links)

    # the corners of each shape
    kinds = set()
    row = 0
    for each, link in zip(world.objects, links, strict=True):
        shapes = link.findall("collision")
        assert len(shapes) == len(each.model.parts) == len(link.findall("visual"))
        for shape in shapes:
            ours = world.solids.vertices[world.solids.first[row] : world.solids.first[row + 1]]
            theirs = corners_in_gazebo(tmp_path / "w", link, shape)
            round_ = shape.find("geometry/cylinder") is not None
            for axis in range(3):
                spread = (
                    0.03 * float(np.ptp(ours[:, axis]))
                    if round_ and axis < 2 and each.yaw == 0
                    else 0.002
                )
                if (
                    round_ and axis < 2 and each.yaw
                ):  # of a square turned about the circle nothing is known
                    continue
                assert theirs[:, axis].min() == pytest.approx(ours[:, axis].min(), abs=spread)
                assert theirs[:, axis].max() == pytest.approx(ours[:, axis].max(), abs=spread)
            kinds.add(shape.find("geometry")[0].tag)
            row += 1

    assert row == len(world.solids)
    assert kinds == {"forest": {"cylinder", "mesh"}, "pillars": {"cylinder"}}.get(
        name, {"box", "cylinder", "mesh"}
    )
