# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground's file for a browser, taken apart by the rules of glTF 2.0, section 4.4."""

from __future__ import annotations

import contextlib
import json
import struct
import types

import numpy as np
import pytest
from node_harness import wait_until

from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.drawing.terrain_mesh import region_mesh, terrain_mesh
from rfly_viewer.scene.scene_state import flat_ground

pytestmark = pytest.mark.needs("viser")


@pytest.mark.parametrize("lit", [True, False])
def test_binary_gltf(lit):
    """The file has 4 triangles around the middle, one material and its picture.

     Without light it says so and has no more. The level ground is 2,000 m wide: a tile of 9 m comes
    222.2 times along each side, one of 83 m 24.1 times.
    """
    from rfly_viewer.drawing.terrain_mesh import terrain_glb

    data = terrain_glb(terrain_mesh(flat_ground()), lit)
    magic, version, total, json_bytes, kind = struct.unpack_from("<4s3I4s", data)
    expected = (b"glTF", 2, len(data), 0, b"JSON")
    assert (magic, version, total, json_bytes % 4, kind) == expected
    document = json.loads(data[20 : 20 + json_bytes])
    binary_bytes, kind = struct.unpack_from("<I4s", data, 20 + json_bytes)
    assert (kind, 28 + json_bytes + binary_bytes) == (b"BIN\0", len(data))
    [primitive] = document["meshes"][0]["primitives"]
    assert document["accessors"][primitive["indices"]]["count"] == 12
    assert {"POSITION", "NORMAL", "TEXCOORD_0"} <= set(primitive["attributes"])
    assert {image["mimeType"] for image in document["images"]} == {"image/jpeg"}
    [material] = document["materials"]
    assert ("KHR_materials_unlit" in material.get("extensions", {})) is not lit
    used = ["KHR_texture_transform"] if lit else ["KHR_materials_unlit"]
    assert document["extensionsUsed"] == used
    repeats = {
        name: material[name]["extensions"]["KHR_texture_transform"]["scale"]
        for name in ("normalTexture", "occlusionTexture")
        if name in material
    }
    wanted = {"normalTexture": [2000 / 9] * 2, "occlusionTexture": [2000 / 83] * 2} if lit else {}
    assert repeats.keys() == wanted.keys()
    assert all(repeats[name] == pytest.approx(scale) for name, scale in wanted.items())
    pictures = {material[name]["index"] for name in repeats} | {
        material["pbrMetallicRoughness"]["baseColorTexture"]["index"]
    }
    assert pictures == set(range(3 if lit else 1)) == set(range(len(document["textures"])))


def test_normals_outweigh_those_that_the_page_works_out():
    """The morph target's normals are those of the mesh, in a view of their own; it moves nothing.

    On a hillside of 45 degrees, 1,000 times the right normal and one that is 90 degrees off are
    0.06 degrees off.
    """
    from rfly_viewer.drawing.terrain_mesh import terrain_glb

    hillside = HeightMap(
        np.arange(5.0)[:, None] + np.zeros(5), origin_x=0, origin_y=0, step_x=1, step_y=1
    )
    mesh = terrain_mesh(hillside)
    data = terrain_glb(mesh, is_photo=True)
    json_bytes = int.from_bytes(data[12:16], "little")
    document = json.loads(data[20 : 20 + json_bytes])
    [primitive] = document["meshes"][0]["primitives"]
    [target] = primitive["targets"]
    still, normals = (document["accessors"][target[name]] for name in ("POSITION", "NORMAL"))
    assert "bufferView" not in still
    assert still["count"] == normals["count"] == len(mesh.vertices)
    own = document["accessors"][primitive["attributes"]["NORMAL"]]
    assert normals["bufferView"] != own["bufferView"]

    view = document["bufferViews"][normals["bufferView"]]
    begin = 28 + json_bytes + view["byteOffset"] + normals.get("byteOffset", 0)
    array = np.frombuffer(data, np.float32, 3 * normals["count"], begin).reshape(-1, 3)
    [weight] = document["meshes"][0]["weights"]
    shown = weight * array + np.roll(array, 1, axis=1) * [[-1.0, 1.0, 1.0]]
    shown /= np.linalg.norm(shown, axis=1, keepdims=True)
    assert (shown * mesh.normals).sum(axis=1).min() > np.cos(np.radians(0.1))
    assert "targets" not in str(terrain_glb(mesh, lit=False))


def test_a_mesh_with_a_colour_at_each_vertex():
    """It needs no picture, no normals and no light. Colours are linear, 50 % of sRGB is 22 %.

    The picture is red in the north and half grey in the south.
    """
    from rfly_viewer.drawing.terrain_mesh import coloured_glb

    ground = HeightMap(np.zeros((33, 33)), origin_x=0, origin_y=0, step_x=1, step_y=1)
    picture = np.full((200, 200, 3), 128, np.uint8)
    picture[:100] = (255, 0, 0)
    mesh = region_mesh(ground, ground.bounds, 8, 8, picture)
    data = coloured_glb(mesh, 0.25)

    json_bytes = int.from_bytes(data[12:16], "little")
    document = json.loads(data[20 : 20 + json_bytes])
    assert not {"images", "textures"} & set(document)
    [material] = document["materials"]
    assert material["extensions"] == {"KHR_materials_unlit": {}}
    assert material["pbrMetallicRoughness"]["baseColorFactor"] == [0.25, 0.25, 0.25, 1.0]
    [primitive] = document["meshes"][0]["primitives"]
    assert primitive["material"] == 0
    assert set(primitive["attributes"]) == {"POSITION", "COLOR_0"}

    accessor = document["accessors"][primitive["attributes"]["COLOR_0"]]
    view = document["bufferViews"][accessor["bufferView"]]
    begin = 28 + json_bytes + view["byteOffset"] + accessor.get("byteOffset", 0)
    colours = np.frombuffer(data, np.uint8, 4 * accessor["count"], begin).reshape(-1, 4)
    north = mesh.vertices[:, 1] > 20.0
    south = mesh.vertices[:, 1] < 12.0
    assert (colours[north] == (255, 0, 0, 255)).all()
    assert np.abs(colours[south, :3] - 0.22 * 255).max() < 1.0


def test_tiles_have_no_seams():
    """Tiles have no seams, and their normals are a unit long and point out.

    They change over the edge of a tile no more than inside it.
    """
    from rfly_viewer.drawing.terrain_mesh import detail_tiles

    for tile in detail_tiles().values():
        steps = np.abs(np.diff(tile.astype(float), axis=0)).mean()
        assert np.abs(tile[0].astype(float) - tile[-1]).mean() < 1.5 * steps
        assert np.abs(tile[:, 0].astype(float) - tile[:, -1]).mean() < 1.5 * steps
    normals = detail_tiles()["normalTexture"] / 127.5 - 1
    np.testing.assert_allclose(np.linalg.norm(normals, axis=2), 1.0, atol=0.01)
    assert normals[..., 2].min() > 0.2


class Scene:
    """The part of viser's scene that the ground needs: what it holds, and what is visible."""

    def __init__(self):
        self.nodes = {}

    def add_glb(self, name, data, visible, **options):
        self.nodes[name] = types.SimpleNamespace(
            data=data, visible=visible, remove=lambda: self.nodes.pop(name)
        )
        return self.nodes[name]

    def configure_fog(self, near, far, color):
        pass

    def seen(self):
        return [name for name, node in self.nodes.items() if node.visible]


def test_each_browser_sees_a_coarse_ground_first_and_always_one():
    """The fine one comes unseen, and takes its place when the browser has had time to read it."""
    from rfly_viewer.drawing.terrain_layer import FINE_HIDDEN_S, TerrainLayer

    clients = {}
    server = types.SimpleNamespace(scene=Scene(), get_clients=lambda: clients)
    layer = TerrainLayer(server, 400_000, lit=False)
    ground = HeightMap(
        np.random.default_rng(1).normal(size=(120, 120)), origin_x=0, origin_y=0, step_x=1, step_y=1
    )
    layer.show(ground)
    clients[1] = types.SimpleNamespace(scene=Scene(), atomic=contextlib.nullcontext)
    layer.update(0.0, ground)
    first = clients[1].scene
    assert first.seen() == ["/terrain/coarse"]
    wait_until(lambda: layer.update(1.0, ground) or len(first.nodes) == 2, "the fine ground")
    assert len(first.nodes["/terrain/fine"].data) > 3 * len(first.nodes["/terrain/coarse"].data)
    assert first.seen() == ["/terrain/coarse"]
    clients[2] = types.SimpleNamespace(scene=Scene(), atomic=contextlib.nullcontext)
    layer.update(1.0 + FINE_HIDDEN_S, ground)
    assert first.seen() == ["/terrain/fine"]
    assert clients[2].scene.seen() == ["/terrain/coarse"]
    layer.show(flat_ground())
    assert first.nodes == {}
    layer.update(9.0, ground)
    assert first.seen() == ["/terrain/coarse"]
