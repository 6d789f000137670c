"""The file that a browser gets for the ground, taken apart by the rules of glTF 2.0, section 4.4."""

from __future__ import annotations

import json
import struct

import pytest

from rfly_ue_bridge.viewer.scene_state import flat_ground
from rfly_ue_bridge.viewer.terrain_mesh import terrain_mesh

pytestmark = pytest.mark.needs("viser")


@pytest.mark.parametrize("lit", [True, False])
def test_binary_gltf(lit):
    """4 triangles around the middle, one picture, one material; without light it says so."""
    from rfly_ue_bridge.viewer.drawing import terrain_glb

    data = terrain_glb(terrain_mesh(flat_ground()), lit)
    magic, version, total, json_bytes, kind = struct.unpack_from("<4s3I4s", data)
    assert (magic, version, total, json_bytes % 4, kind) == (b"glTF", 2, len(data), 0, b"JSON")
    document = json.loads(data[20 : 20 + json_bytes])
    binary_bytes, kind = struct.unpack_from("<I4s", data, 20 + json_bytes)
    assert (kind, 28 + json_bytes + binary_bytes) == (b"BIN\0", len(data))
    [primitive] = document["meshes"][0]["primitives"]
    assert document["accessors"][primitive["indices"]]["count"] == 12
    assert {"POSITION", "NORMAL", "TEXCOORD_0"} <= set(primitive["attributes"])
    assert document["images"][0]["mimeType"] == "image/jpeg"
    assert ("KHR_materials_unlit" in document["materials"][0].get("extensions", {})) is not lit
    assert ("KHR_materials_unlit" in document.get("extensionsUsed", [])) is not lit
