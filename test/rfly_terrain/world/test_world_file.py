# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""World files: every shape by hand, errors with file and line, meshes, and back to YAML."""

from __future__ import annotations

import dataclasses
import math
import struct

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, World, load_world, shipped_worlds
from rfly_terrain.world.models import CLASSES, cylinder_part
from rfly_terrain.world.world import WorldObject
from rfly_terrain.world.world_file import parse_world, world_to_yaml, write_world

EVERYTHING = b"""\
version: 1
map: RollingHills
models:
  pine:
    class: vegetation
    color: [34, 85, 43]
    parts:
      - {cylinder: {radius: 0.2, height: 3}}
      - {cylinder: {radius: 2, height: 6, top_radius: 0}, x: 1, z: 3}
objects:
  - {model: pine, x: 10, y: 4, yaw_deg: 90, scale: 2}
  - {box: [4, 2, 150], x: -5, y: 6, z: 7, yaw_deg: 30, class: building, color: [1, 2, 3], type: 40}
  - {hull: [[0, 0, 0], [3, 0, 0], [0, 3, 0], [0, 0, 3], [0.5, 0.5, 0.5]], x: 0, y: 0}
"""


def slope():
    """z = x / 10 over 100 m x 100 m."""
    at = np.arange(51) * 2.0 - 50.0
    return HeightMap(
        0.1 * at[:, None] + 0.0 * at, origin_x=-50.0, origin_y=-50.0, step_x=2.0, step_y=2.0
    )


def parts_of(world):
    made = world.solids
    return [made.vertices[a:b] for a, b in zip(made.first[:-1], made.first[1:], strict=True)]


def test_every_shape_where_it_says():
    world = parse_world(EVERYTHING, "w.yaml", "w")
    assert (world.name, world.map, len(world.objects), world.version) == ("w", "RollingHills", 3, 0)
    placed = world.on(slope())
    assert (placed.version, world.terrain) == (1, None)

    trunk, crown, tower, hull = parts_of(placed)
    assert trunk[:, 2].min() == pytest.approx(1.0)  # on the ground at x = 10
    assert trunk[:, 2].max() == pytest.approx(7.0)  # twice 3 m
    assert np.hypot(trunk[:, 0] - 10, trunk[:, 1] - 4).max() == pytest.approx(
        0.4 / math.cos(math.pi / 16)
    )
    assert crown[crown[:, 2].argmax()] == pytest.approx(
        [10.0, 6.0, 19.0]
    )  # its 1 m ahead is 2 m north

    # a tower, turned by 30°
    corner = np.array([(2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0)])
    c = math.cos(math.radians(30))
    s = math.sin(math.radians(30))
    for x, y in corner @ np.array([[c, s], [-s, c]]) + (-5, 6):
        assert np.hypot(*(tower[:, :2] - (x, y)).T).min() < 1e-9
    assert (tower[:, 2].min(), tower[:, 2].max()) == (7.0, 157.0)

    assert len(hull) == 4  # the fifth point is inside

    # classes, colours and types
    first, second, third = world.objects
    assert (CLASSES[first.model.class_id], first.model.color) == ("vegetation", (34, 85, 43))
    assert (CLASSES[second.model.class_id], second.model.vehicle_type) == ("building", 40)
    assert (CLASSES[third.model.class_id], second.model.is_box, third.model.is_box) == (
        "unknown",
        True,
        False,
    )
    assert parts_of(world)[0][:, 2].min() == 0.0  # no terrain yet: level ground


TREE = """version: 1
models:
  tree:
    color: [34, 85, 43]
    parts:
      - {cylinder: {radius: 0.2, height: 3}, color: [90, 60, 30]}
      - {box: [2, 2, 2], z: 3}
objects:
  - {model: tree, x: 0, y: 0}
"""


def test_parts_have_colours_of_their_own(tmp_path):
    tree = parse_world(TREE.encode(), "w.yaml", "w").objects[0].model
    assert (tree.color, tree.part_colors) == ((34, 85, 43), ((90, 60, 30), (34, 85, 43)))

    # written and read again
    again = (
        parse_world(
            world_to_yaml(World(objects=(WorldObject(tree, 0.0, 0.0),))).encode(), "w.yaml", "w"
        )
        .objects[0]
        .model
    )
    assert again.part_colors == tree.part_colors

    # all parts alike
    alike = (
        parse_world(TREE.replace("[90, 60, 30]", "[34, 85, 43]").encode(), "w.yaml", "w")
        .objects[0]
        .model
    )
    assert alike.part_colors == ()
    assert alike.colors == ((34, 85, 43),) * 2

    # faults
    with pytest.raises(ConfigError, match=r"w.yaml:6: models.tree.parts\[0\].color\[0\]: 256"):
        parse_world(TREE.replace("[90,", "[256,").encode(), "w.yaml", "w")
    with pytest.raises(ValueError, match="tree: 1 part_colors for 2 parts"):
        dataclasses.replace(tree, part_colors=((1, 2, 3),))

    # a mesh
    mesh = "{mesh: wedge.obj, color: [1, 2, 3]}"
    (tmp_path / "wedge.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    (tmp_path / "w.yaml").write_text(TREE.replace("{box: [2, 2, 2], z: 3}", mesh))
    with pytest.raises(ConfigError, match=r"w.yaml:6: .*color: a model with a mesh has one color"):
        load_world(tmp_path / "w.yaml")


def test_a_cylinder_lies_within_its_prism():
    prism = cylinder_part(2.0, 5.0)[:16, :2]
    angle = np.linspace(0, 2 * math.pi, 1000)
    rim = 2.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    side = np.roll(prism, -1, axis=0) - prism
    away = rim[:, None] - prism
    assert (side[:, 0] * away[..., 1] - side[:, 1] * away[..., 0] >= -1e-12).all()
    assert np.hypot(*prism.T).max() < 2.0 * 1.02


def test_a_snapshot_does_not_change():
    world = parse_world(EVERYTHING, "w.yaml").on(slope())
    before = world.solids.vertices.copy()
    fewer = world.with_objects(world.objects[:1])
    assert (fewer.version, len(fewer.objects), len(world.objects)) == (2, 1, 3)
    assert fewer.terrain is world.terrain
    with pytest.raises(dataclasses.FrozenInstanceError):
        world.objects = ()
    with pytest.raises(ValueError, match="read-only"):
        world.solids.vertices[0, 0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        world.objects[0].model.parts[0][0, 0] = 9.0
    assert (world.solids.vertices == before).all()


def test_written_and_read_again(tmp_path):
    world = parse_world(EVERYTHING, "w.yaml").on(slope())
    write_world(world, tmp_path / "again.yaml")
    again = load_world(tmp_path / "again.yaml")
    assert (again.name, again.map, again.folder) == ("again", world.map, str(tmp_path))
    assert world_to_yaml(again) == world_to_yaml(world)
    for old, new in zip(parts_of(world), parts_of(again.on(slope())), strict=True):
        assert np.sort(new, axis=0) == pytest.approx(np.sort(old, axis=0), abs=0.011)
    assert world_to_yaml(World()) == "version: 1\nobjects: []\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"model: pine", b"model: oak", r"w.yaml:11: objects\[0\].model: 'oak': there are pine"),
        (b"scale: 2}", b"class: pole}", r"w.yaml:11: objects\[0\].class: is the model's"),
        (b"box: [4, 2, 150]", b"box: [4, 2]", r"w.yaml:12: objects\[1\].box: .*3"),
        (b"box: [4, 2, 150]", b"box: [4, 0, 150]", r"objects\[1\].box\[1\]: 0"),
        (b"class: building", b"class: castle", "castle"),
        (b"{box: [4, 2, 150], x", b"{box: [4, 2, 150], mesh: a.glb, x", r"w.yaml:12: objects\[1\]"),
        (b"x: -5, y: 6", b"x: -5", r"objects\[1\].*y"),
        (b"x: -5", b"x: 1.0e+9", r"w.yaml:12: objects\[1\].x: 1000000000"),
        (
            b"{hull: ",
            b"{mesh: a.stl, x: 0, y: 0, z: 0}\n  - {hull: ",
            "expected a file that ends in .glb or .obj",
        ),
        (
            b"{hull: ",
            b"{mesh: ../a.glb, x: 0, y: 0, z: 0}\n  - {hull: ",
            "in the folder of the world's file",
        ),
        (b"version: 1", b"version: 2", "version: 2"),
    ],
)
def test_what_is_wrong_is_named(old, new, words, tmp_path):
    assert EVERYTHING.count(old) == 1
    with pytest.raises(ConfigError, match=words):
        parse_world(EVERYTHING.replace(old, new), "w.yaml", folder=str(tmp_path))


def test_a_flat_hull_and_one_of_too_many_corners():
    flat = (
        b"version: 1\nobjects:\n"
        b"  - {hull: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], x: 0, y: 0}\n"
    )
    with pytest.raises(
        ConfigError, match=r"f.yaml:3: objects\[0\].hull: 4 points .* enclose no volume"
    ):
        parse_world(flat, "f.yaml")
    ball = np.random.default_rng(0).normal(size=(400, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    text = f"version: 1\nobjects:\n  - {{hull: {np.round(ball, 4).tolist()}, x: 0, y: 0}}\n"
    with pytest.raises(ConfigError, match="corners, expected at most 256"):
        parse_world(text.encode(), "b.yaml")


def test_an_unknown_world_names_the_shipped_ones():
    with pytest.raises(ConfigError, match=r"no shipped world of this name .*forest.*village"):
        load_world("atlantis")
    assert shipped_worlds() == ["forest", "pillars", "village"]


OBJ = """mtllib /etc/passwd
v 0 0 0\nv 2 0 0\nv 0 2 0\nv 0 0 2
v 5 0 0\nv 6 0 0\nv 5 1 0\nv 5 0 1
v 9 9 9\nv 10 9 9\nv 9 10 9
f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4
f 5 7 6\nf 5 6 8\nf 5 8 7\nf 6 7 8
f 9 10 11
"""
"""two tetrahedra, and a triangle that has no volume"""


@pytest.mark.needs("trimesh")
def test_a_mesh_counts_as_the_hulls_of_its_pieces(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "two.obj").write_text(OBJ)
    (tmp_path / "w.yaml").write_text(
        "version: 1\nobjects:\n  - {mesh: meshes/two.obj, x: 10, y: 0, scale: 2}\n"
    )
    one, other = sorted(
        parts_of(load_world(tmp_path / "w.yaml")), key=lambda part: part[:, 0].min()
    )
    assert sorted(map(tuple, one.tolist())) == [(10, 0, 0), (10, 0, 4), (10, 4, 0), (14, 0, 0)]
    assert sorted(map(tuple, other.tolist())) == [(20, 0, 0), (20, 0, 2), (20, 2, 0), (22, 0, 0)]


@pytest.mark.needs("trimesh")
def test_rays_meet_all_triangles_of_a_mesh(tmp_path):
    """Rays meet pieces without a volume, and a box by its twelve triangles.

    This is in the object's size, moved and turned.
    """
    (tmp_path / "two.obj").write_text(OBJ)
    parts = "{mesh: two.obj, x: 1, yaw_deg: 90}, {box: [2, 2, 2], y: -50}"
    text = (
        f"version: 1\nmodels: {{a: {{parts: [{parts}]}}}}\n"
        "objects: [{model: a, x: 0, y: 0, scale: 2}]\n"
    )
    world = parse_world(text.encode(), "w.yaml", "w", str(tmp_path))

    surface = world.objects[0].scaled_model.surface
    assert surface.shape == (9 + 12, 3, 3)
    assert surface[8].tolist() == pytest.approx(
        np.array([(-16, 18, 18), (-16, 20, 18), (-18, 18, 18)])
    )

    box = surface[9:]
    area = np.linalg.norm(np.cross(box[:, 1] - box[:, 0], box[:, 2] - box[:, 0]), axis=1).sum() / 2
    assert area == pytest.approx(6 * 4.0**2)
    assert (box.min(axis=(0, 1)), box.max(axis=(0, 1))) == (
        pytest.approx([-2, -102, 0]),
        pytest.approx([2, -98, 4]),
    )

    # a world without meshes
    assert (
        parse_world(b"version: 1\nobjects: [{box: [1, 1, 1], x: 0, y: 0}]\n", "w")
        .objects[0]
        .model.surface
        is None
    )


@pytest.mark.needs("trimesh")
def test_surfaces_in_too_many_sizes(tmp_path):
    """A mesh of 2,000 triangles is kept once in one size; 500 sizes are three million corners."""
    line = "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "m.obj").write_text("v 0 0 0\nv 2 0 0\nv 0 2 0\nv 0 0 2\n" + 500 * line)

    def objects(sizes):
        many = ",".join(f"{{model: a, x: 0, y: 0, scale: {scale}}}" for scale in sizes)
        text = f"version: 1\nmodels: {{a: {{parts: [{{mesh: m.obj}}]}}}}\nobjects: [{many}]\n"
        return parse_world(text.encode(), "w.yaml", "w", str(tmp_path)).objects

    assert len(objects([1.5] * 500)) == 500
    with pytest.raises(ConfigError, match="the objects have more than 2,000,000 corners"):
        objects([1 + k / 1000 for k in range(500)])


def test_aliases_of_parts_are_counted_before_they_are_checked():
    """A file of 9 kB; to check 30,000 parts takes ten seconds."""
    parts = "".join("      - {box: [1, 1, 1]}\n" for _ in range(100))
    models = f"  a:\n    parts: &p\n{parts}" + "".join(
        f"  b{k}: {{parts: *p}}\n" for k in range(299)
    )
    with pytest.raises(
        ConfigError, match=r"w.yaml:2: models: 30,000 parts, allowed: at most 20,000"
    ):
        parse_world(f"version: 1\nmodels:\n{models}objects: []\n".encode(), "w.yaml")


@pytest.mark.needs("trimesh")
def test_a_mesh_in_too_many_models(tmp_path):
    """Unused models count too: 400 copies of 2,000 triangles have 2.4 million corners."""
    line = "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "m.obj").write_text("v 0 0 0\nv 2 0 0\nv 0 2 0\nv 0 0 2\n" + 500 * line)
    models = "".join(f"  m{k}: {{parts: [{{mesh: m.obj}}]}}\n" for k in range(400))
    with pytest.raises(
        ConfigError, match=r"w.yaml:\d+: models.m\d+.*the models have more than 2,000,000 corners"
    ):
        parse_world(
            f"version: 1\nmodels:\n{models}objects: []\n".encode(), "w.yaml", "w", str(tmp_path)
        )


def glb(vertices, triangles):
    """A binary glTF 2.0 file of one mesh, by its specification."""
    import json

    points = np.asarray(vertices, "<f4")
    corners = np.asarray(triangles, "<u4")
    data = points.tobytes() + corners.tobytes()
    content = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "translation": [0.0, 1.0, 0.0]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": len(points), "type": "VEC3",
             "min": points.min(axis=0).tolist(), "max": points.max(axis=0).tolist()},
            {"bufferView": 1, "componentType": 5125, "count": corners.size, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": points.nbytes},
            {"buffer": 0, "byteOffset": points.nbytes, "byteLength": corners.nbytes},
        ],
        "buffers": [{"byteLength": len(data)}],
    }  # fmt: skip
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    body = (
        struct.pack("<II", len(text), 0x4E4F534A)
        + text
        + struct.pack("<II", len(data), 0x004E4942)
        + data
    )
    return struct.pack("<III", 0x46546C67, 2, 12 + len(body)) + body


@pytest.mark.needs("trimesh")
def test_the_axes_of_gltf(tmp_path):
    """The y axis of glTF is up, its z forward, its x left; a node's translation counts: 1 m up."""
    vertices = [(0, 0, 0), (2, 0, 0), (0, 3, 0), (0, 0, 4)]
    (tmp_path / "t.glb").write_bytes(glb(vertices, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]))
    (tmp_path / "w.yaml").write_text("version: 1\nobjects:\n  - {mesh: t.glb, x: 0, y: 0}\n")
    (part,) = parts_of(load_world(tmp_path / "w.yaml"))
    assert sorted(map(tuple, part.tolist())) == [(0, 0, 1), (0, 0, 4), (0, 2, 1), (4, 0, 1)]


@pytest.mark.needs("trimesh")
@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.glb", b"glTF nonsense", "cannot be read as .glb"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "0 pieces with a volume"),
        ("a.obj", b"v 0 0 0\n", "no triangles|cannot be read"),
        (
            "a.obj",
            b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n",
            "within 1,000 km|cannot be read",
        ),
        ("b.obj", None, "No such file"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99999999999999999999\n", "cannot be read"),
        ("a.obj", b"v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n", "no triangles|cannot be read"),
    ],
)
def test_meshes_that_cannot_be_used(name, data, words, tmp_path):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(
        ConfigError, match=rf"w.yaml:3: objects\[0\].mesh: mesh '{name}': .*({words})"
    ):
        parse_world(
            f"version: 1\nobjects:\n  - {{mesh: {name}, x: 0, y: 0}}\n".encode(),
            "w.yaml",
            "w",
            str(tmp_path),
        )


@pytest.mark.needs("trimesh")
@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (
            b'{"accessors": [{"componentType": 5126, "count": 1000000000, "type": "VEC3"}]}',
            "600,000 numbers",
        ),
        (b'{"nodes": [' + b'{"mesh": 0},' * 2000 + b'{"mesh": 0}]}', "1,000 nodes"),
        (
            b'{"accessors": [{"count": 3000}], "nodes": ['
            + b",".join([b'{"mesh": 0}'] * 900)
            + b'], "meshes": '
            b'[{"primitives": [{"attributes": {"POSITION": 0}}]}]}',
            "600,000 numbers",
        ),
        (
            b'{"nodes": [{"translation": [' + b"0," * 30_000 + b"0]}]}",
            "a node's translation of 30001 numbers, expected 3",
        ),
        (b'{"nodes": [{"scale": [NaN, 1, 1]}]}', "a node's scale .*: expected numbers up to 1e"),
        (b'{"nodes": [{"matrix": [1e999' + b", 0" * 15 + b"]}]}", "a node's matrix"),
        (b'{"buffers": [{"uri": "mesh.bin", "byteLength": 8}]}', "needs another file, 'mesh.bin'"),
        (b"[" * 5_000_000, "nested too deeply"),
        (b"[]", "cannot be read as .glb"),
    ],
)
def test_a_glb_that_becomes_far_more_than_it_is(tree, words, tmp_path):
    tree += b" " * (-len(tree) % 4)
    head = struct.pack("<IIIII", 0x46546C67, 2, 20 + len(tree), len(tree), 0x4E4F534A)
    (tmp_path / "a.glb").write_bytes(head + tree)
    with pytest.raises(
        ConfigError, match=f"mesh 'a.glb': cannot be read as .glb: .*{words}|{words}"
    ):
        parse_world(
            b"version: 1\nobjects:\n  - {mesh: a.glb, x: 0, y: 0}\n", "w.yaml", "w", str(tmp_path)
        )


@pytest.mark.needs("trimesh")
def test_a_link_out_of_the_folder_is_no_way(tmp_path):
    inside = tmp_path / "inside"
    outside = tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "t.obj").write_text(OBJ)
    (inside / "t.obj").symlink_to(outside / "t.obj")
    (inside / "w.yaml").write_text("version: 1\nobjects:\n  - {mesh: t.obj, x: 0, y: 0}\n")
    with pytest.raises(ConfigError, match="in the folder of the world's file, or below it"):
        load_world(inside / "w.yaml")


@pytest.mark.parametrize(
    ("point", "reach", "time", "expected"),
    [
        ((1.0, 0.0, 1.0), 1.0, 0.0, "tower (building) at x 4.0, y 0.0 m"),  # its face is at x = 2
        ((1.0, 0.0, 1.0), 0.9, 0.0, ""),
        ((4.0, 0.0, 5.5), 2.0, 0.0, "tower (building) at x 4.0, y 0.0 m"),  # above its roof, 4 m up
        ((20.0, 0.0, 0.5), 3.0, 0.0, ""),
        ((20.0, 0.0, 0.5), 3.0, 10.0, "moving 0 at x 20.0, y 0.0 m"),  # 10 s at 1 m/s from x = 10
    ],
)
def test_the_nearest_object_is_named_with_its_place(tmp_path, point, reach, time, expected):
    (tmp_path / "w.yaml").write_text(
        "version: 1\n"
        "models: {tower: {class: building, parts: [{box: [4, 4, 4]}]}}\n"
        "objects: [{model: tower, x: 4, y: 0}]\n"
        "moving: [{box: [1, 1, 1], speed: 1, path: [[10, 0], [50, 0]]}]\n"
    )
    world = load_world(tmp_path / "w.yaml")
    assert world.nearest(np.array(point), reach, time) == expected
