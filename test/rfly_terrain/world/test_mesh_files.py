# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Meshes of .obj and .glb files as their formats define them, or refused.

Expected sizes are worked out by hand from the numbers in the files.
"""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain.world.mesh_files import mesh_parts

pytestmark = pytest.mark.needs("mapbox_earcut", "trimesh")

CUBE = [(x, y, z) for z in (0, 2) for y in (0, 2) for x in (0, 2)]
QUADS = [(1, 3, 4, 2), (5, 6, 8, 7), (1, 2, 6, 5), (3, 7, 8, 4), (1, 5, 7, 3), (2, 4, 8, 6)]


def obj(vertices=CUBE, faces=QUADS, between=" ", tail=""):
    """Text of an .obj."""
    lines = [("v", *vertex) for vertex in vertices] + [("f", *face) for face in faces]
    return "".join(between.join(map(str, line)) + f"{tail}\n" for line in lines)


def prism(outline, height):
    """Vertices and polygons of a prism over an outline."""
    n = len(outline)
    vertices = [(*corner, z) for z in (0, height) for corner in outline]
    walls = [(k + 1, (k + 1) % n + 1, (k + 1) % n + n + 1, k + n + 1) for k in range(n)]
    return vertices, [tuple(range(n, 0, -1)), tuple(range(n + 1, 2 * n + 1)), *walls]


def measures(folder, name, data):
    """Area of all triangles, lowest and highest corner; x forward, y left, z up."""
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    _, triangles = mesh_parts(name, str(folder))
    sides = triangles[:, 1:] - triangles[:, :1]
    area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1).sum() / 2
    return area, triangles.min(axis=(0, 1)).tolist(), triangles.max(axis=(0, 1)).tolist()


U_SHAPE = [(12, 0), (12, 10), (8, 10), (8, 4), (4, 4), (4, 10), (0, 10), (0, 0)]
ARROW = [(0, 0), (4, 0), (1, 1), (0, 4)]
RELATIVE = [tuple(corner - 9 for corner in face) for face in QUADS]
FAR_CUBE = [(x + 10, y, 3 * z) for x, y, z in CUBE]


@pytest.mark.parametrize(
    ("text", "area", "high"),
    [
        (obj(between="\t"), 24.0, (2, 2, 2)),
        (obj(between="  ", tail="  # a corner"), 24.0, (2, 2, 2)),
        (obj(between=" \\\n"), 24.0, (2, 2, 2)),
        (obj(between=" \\\r\n", tail="\r\n\r"), 24.0, (2, 2, 2)),
        (obj(tail=" 0.5 0.5 0.5", faces=[]) + obj([]), 24.0, (2, 2, 2)),
        (obj(faces=[[f"{c}/1/7" for c in face] for face in QUADS]), 24.0, (2, 2, 2)),
        (obj(faces=[[f"{c}//7" for c in face] for face in QUADS]), 24.0, (2, 2, 2)),
        (obj([]) + obj(CUBE, []), 24.0, (2, 2, 2)),
        # the second one has walls of 4 x 12 m², floor and roof of 2 x 4 m²
        (obj(faces=RELATIVE) + obj(FAR_CUBE, RELATIVE), 24.0 + 56.0, (12, 2, 6)),
        # 96 m² below and above; walls of 56 m round the U, 5 m high
        (obj(*prism(U_SHAPE, 5)), 192.0 + 280.0, (12, 10, 5)),
        # 4 m² below and above; walls of 8 + 2 √10 m, 1 m high
        (obj(*prism(ARROW, 1)), 8.0 + 8.0 + 2 * 10**0.5, (4, 4, 1)),
        # lying on its side: x, z, y
        (
            obj([(x, z, y) for x, y, z in prism(U_SHAPE, 5)[0]], prism(U_SHAPE, 5)[1]),
            472.0,
            (12, 5, 10),
        ),
    ],
)
def test_spellings_of_obj(tmp_path, text, area, high):
    measured = measures(tmp_path, "a.obj", text)
    assert measured[0] == pytest.approx(area)
    assert measured[1:] == ([0, 0, 0], list(high))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("v 0 0 0\nv 0 zero 0\n", "line 2: 'zero', expected a number"),
        ("v 0,5 0 0\n", "line 1: '0,5', expected a number"),
        ("v 0 0\n", "line 1: 2 numbers, expected x, y and z"),
        (obj(faces=[(0, 1, 2)]), "line 9: expected a face of 3 … 3,000 corners from 1"),
        (obj(faces=[(1, 2)]), "line 9: expected a face"),
        (obj(faces=[(1, 2, 9)]), "a face has a vertex that does not exist"),
        (obj(faces=[(-1, -2, -9)]), "a face has a vertex that does not exist"),
        (obj() + "surf 0 1 0 1 1 2 3 4\n", "line 15: surf: only faces are read"),
        (obj(faces=[]) + "f 1 2 3\n" * 200_001, "line 200009: more than 200,000 triangles"),
    ],
)
def test_obj_that_is_refused(tmp_path, text, words):
    with pytest.raises(ConfigError, match=f"mesh 'a.obj': cannot be read as .obj: {words}"):
        measures(tmp_path, "a.obj", text)


TETRAHEDRON = np.array([(0, 0, 0), (2, 0, 0), (0, 3, 0), (0, 0, 4)], float)
AREA = (2 * 3 + 3 * 4 + 2 * 4 + 244**0.5) / 2
"""Three right-angled triangles, and (2, 3, 4)'s own: half of |(12, 8, 6)|."""


def glb(points=None, position=(), primitive=(), **tree):
    """A .glb of a tetrahedron: glTF 2.0, section 4.4, with other keys of its tree."""
    points = TETRAHEDRON.astype("<f4") if points is None else points
    corners = np.array([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3], "<u2").tobytes()
    width = -(-points.itemsize * 3 // 4) * 4
    rows = b"".join(row.tobytes().ljust(width, b"\0") for row in points)
    types = {"f4": 5126, "i1": 5120, "u1": 5121, "i2": 5122, "u2": 5123}
    content = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [
            {"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, **dict(primitive)}]}
        ],
        "accessors": [
            {"bufferView": 0, "componentType": types[points.dtype.str[1:]], "count": 4,
             "type": "VEC3", **dict(position)},
            {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": len(rows), "byteStride": width},
            {"buffer": 0, "byteOffset": len(rows), "byteLength": len(corners)},
        ],
        "buffers": [{"byteLength": len(rows + corners)}],
        **tree,
    }  # fmt: skip
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text
    body += struct.pack("<II", len(rows + corners), 0x004E4942) + rows + corners
    return struct.pack("<III", 0x46546C67, 2, 12 + len(body)) + body


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2"])
@pytest.mark.parametrize("normalized", [False, True])
def test_quantized_positions(tmp_path, kind, normalized):
    """Whole numbers of 1/25 m, or of 4 m / largest; the mesh twice, once 10 m to the left.

    glTF's x, y, z are left, up and forward.
    """
    largest = np.iinfo(kind).max
    scale = 4.0 if normalized else 1 / 25
    step = scale / largest if normalized else scale

    data = glb(
        np.round(TETRAHEDRON / step).astype(f"<{kind}"),
        {"normalized": normalized},
        nodes=[
            {"mesh": 0, "scale": [scale] * 3},
            {"mesh": 0, "scale": [scale] * 3, "translation": [10.0, 0.0, 0.0]},
        ],
        scenes=[{"nodes": [0, 1]}],
        extensionsRequired=["KHR_mesh_quantization", "KHR_materials_unlit"],
    )
    area, low, high = measures(tmp_path, "a.glb", data)
    assert area == pytest.approx(2 * AREA, rel=step)
    assert low == pytest.approx([0, 0, 0], abs=step)
    assert high == pytest.approx([4, 12, 3], abs=step)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"extensionsRequired": ["VENDOR_shape"]}, "needs the extension 'VENDOR_shape', which"),
        ({"extensionsRequired": ["KHR_draco_mesh_compression"]}, "'KHR_draco_mesh_compression'"),
        ({"extensionsRequired": ["EXT_meshopt_compression"]}, "'EXT_meshopt_compression'"),
        ({"position": {"sparse": {"count": 1}}}, "has sparse accessors, which are not read"),
        ({"position": {"bufferView": 0, "sparse": {}}}, "has sparse accessors"),
        ({"primitive": {"mode": 6}}, "has triangle fans"),
        ({"nodes": [{"mesh": 0, "skin": 0}]}, "has skins"),
        ({"nodes": [{"mesh": 0, "weights": [0.0, 0.5]}]}, "has morph targets with a weight"),
        (
            {"nodes": [{"mesh": 0, "extensions": {"EXT_mesh_gpu_instancing": {}}}]},
            r"has instances \(EXT_mesh_gpu_instancing\)",
        ),
        ({"accessors": [{"count": 4}, {"count": 12}]}, "has accessors without data"),
        ({"asset": {"version": "1.0"}}, "needs glTF '1.0', expected 2.0"),
        ({"asset": {"version": "2.0", "minVersion": "2.1"}}, "needs glTF '2.1', expected 2.0"),
        ({"scenes": []}, "it has no scene"),
    ],
)
def test_glb_that_is_refused(tmp_path, changes, words):
    with pytest.raises(ConfigError, match=f"mesh 'a.glb': cannot be read as .glb: .*{words}"):
        measures(tmp_path, "a.glb", glb(**changes))


@pytest.mark.parametrize("data", [b"", b"glTF", b'{"asset": {}}' + bytes(20)])
def test_what_is_no_glb(tmp_path, data):
    with pytest.raises(ConfigError, match="expected a binary glTF of two chunks"):
        measures(tmp_path, "a.glb", data)


def test_neither_pictures_nor_packed_copies_are_decoded(tmp_path, monkeypatch, caplog):
    import PIL.Image

    monkeypatch.setattr(PIL.Image, "open", lambda *_, **__: pytest.fail("a picture was opened"))
    draco = {"KHR_draco_mesh_compression": {"bufferView": 0, "attributes": {"POSITION": 0}}}
    data = glb(
        primitive={"material": 0, "extensions": draco},
        images=[{"bufferView": 0, "mimeType": "image/png"}],
        textures=[{"source": 0}],
        materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        extensionsUsed=list(draco),
    )
    assert measures(tmp_path, "a.glb", data)[0] == pytest.approx(AREA)
    assert not caplog.records
