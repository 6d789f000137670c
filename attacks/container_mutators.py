# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Records with lengths: mutated MCAP recordings, .mat matrices, and meshes as .glb and .obj.

Each maker returns the bytes of files by their endings; `attacks.mutators` lists them.
"""

from __future__ import annotations

import io
import json
import math
import random
import struct
import zlib
from functools import cache
from typing import Any

import numpy as np
from fuzz.fuzz_terrain import mutate_bytes

from attacks.text_mutators import Files, mutated_text, mutated_tree

ODD_LENGTHS = (0, 1, 3, 8, 255, 65536, 2**24, 2**31 - 1, 2**32 - 1)
_WORLD = b"version: 1\nobjects:\n  - {mesh: a.%s, x: 1, y: 2}\n"


def _mutated(rng: random.Random, data: bytes) -> bytes:
    """Return the data whole, with odd numbers in it, or with damaged bytes."""
    kind = rng.randrange(6)
    if kind == 0:
        return data
    if kind < 4:
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            code = rng.choice(("<I", "<Q", ">I"))
            offset = rng.randrange(max(1, len(damaged) - 8))
            if rng.random() < 0.5:
                offset &= ~3
            struct.pack_into(code, damaged, offset, rng.choice(ODD_LENGTHS))
        return bytes(damaged)

    return mutate_bytes(rng, data)


# --- MCAP


def recording(rng: random.Random) -> Files:
    """Return two topics with a few messages: odd names, types and definitions; cut or damaged."""
    import mcap.writer as mcap

    file = io.BytesIO()
    packing = rng.choice(list(mcap.CompressionType))
    writer = mcap.Writer(
        file,
        compression=packing,
        use_chunking=rng.random() < 0.8,
        chunk_size=rng.choice((10, 10**6)),
    )
    writer.start(profile="ros2")

    # odd types, and odd qualities of service
    types = (
        "std_msgs/msg/String",
        "x",
        "",
        "a/b/c/d",
        "antigravity/msg/X",
        "../msg/X",
        "std_msgs/msg/__doc__",
        "é/msg/É",
    )
    texts = (
        "",
        "[",
        "- durability: 1\n  reliability: 1",
        "{" * 3000,
        "5",
        "a: *b",
        "!!int ''",
        "2001-99-99",
        "- 1",
        "x",
    )

    # one topic with a good name, one without
    odd_name = rng.choice(("/b", "", "no slash", "/a b", "/\x1b[2J", "/ä", "/" + "x" * 5000))
    for name in ("/a", odd_name):
        kind = rng.choice((types[0], rng.choice(types)))
        language = rng.choice(("ros2msg", "ros2msg", "ros1msg"))
        schema = writer.register_schema(kind, language, b"string data")
        encoding = rng.choice(("cdr", "cdr", "json"))
        profiles = {"offered_qos_profiles": rng.choice(texts)}
        channel = writer.register_channel(name, encoding, schema, profiles)
        for number in range(rng.randrange(5)):
            stamp = rng.choice((number, 2**63, 2**64 - 1))
            writer.add_message(channel, stamp, b"\0\1\0\0\1\0\0\0\0", number, number)
    writer.finish()

    # cut, or damaged
    data = file.getvalue()
    if rng.random() < 0.2:
        return {".mcap": data[: rng.randrange(len(data))]}
    return {".mcap": _mutated(rng, data)}


def recording_bomb(_: random.Random) -> Files:
    """Return a chunk of a few megabytes that unpacks to four gigabytes: zstd frames in a row."""
    import zstandard

    piece = zstandard.compress(bytes(100_000_000))
    packed = piece * 40

    chunk = struct.pack("<QQQI", 0, 1, 4_000_000_000, 0)
    chunk += struct.pack("<I", 4) + b"zstd"
    chunk += struct.pack("<Q", len(packed))

    head = b"\x89MCAP0\r\n" + _record(1, _text("ros2") + _text("attack"))
    tail = _record(15, bytes(4)) + _record(2, bytes(20)) + head[:8]
    return {".mcap": head + _record(6, chunk + packed) + tail}


_IMU = ("orientation", "angular_velocity", "linear_acceleration")


def fit_log(rng: random.Random) -> Files:
    """Return a recording for `rfly sim fit`: 12 s of a vehicle at rest.

    It has odd stamps, numbers, lists and topics, or damaged bytes.
    """
    from mcap_ros2.writer import Writer

    from rfly_amphibious.sensors.samples import joint_names
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_lab.runs.mcap_log import TOPICS, message_definition

    # odd numbers, and a topic that is missing
    names = joint_names(VehicleParameters.load("scale"))
    kinds = {**TOPICS, "/ground_truth/odom": "nav_msgs/Odometry"}
    share = rng.choice((0.0, 0.0, 0.001, 0.02, 1.0))
    odd = (math.nan, math.inf, 1e308, -1e308, 0.0, 1e-320, 1e6)
    gone = rng.choice(("", "", "", *kinds))

    def number(value: float) -> float:
        return rng.choice(odd) if rng.random() < share else value

    def xyz(*values: float) -> dict[str, float]:
        return {axis: number(value) for axis, value in zip("xyz", values, strict=True)}

    def listed(values: list[Any]) -> list[Any]:
        return values[: rng.randrange(len(values))] if rng.random() < 0.1 * share else values

    file = io.BytesIO()
    with Writer(file) as writer:
        schemas = {
            kind: writer.register_msgdef(kind.replace("/", "/msg/"), message_definition(kind))
            for kind in kinds.values()
        }

        # twelve seconds at rest
        for tick in range(120):
            sec = rng.choice((0, -(2**31), 2**31 - 1, 5)) if rng.random() < share else tick // 10
            header = {
                "stamp": {"sec": sec, "nanosec": tick % 10 * 100_000_000},
                "frame_id": rng.choice(("a/base_link", "imu")),
            }

            turn = {**xyz(0.0, 0.0, 0.0), "w": number(1.0)}
            zeros = [number(0.0) for _ in names]
            messages: dict[str, Any] = {
                "/imu/data": {
                    "header": header,
                    "orientation": turn,
                    "angular_velocity": xyz(0.0, 0.0, 0.0),
                    "linear_acceleration": xyz(0.0, 0.0, number(9.8)),
                    **{f"{of}_covariance": [0.0] * 9 for of in _IMU},
                },
                "/joint_states": {
                    "header": header,
                    "name": listed(names),
                    "position": listed(zeros),
                    "velocity": listed(zeros),
                    "effort": [],
                },
                "/wheel_loads": {
                    "header": header,
                    "load": listed([number(77.0) for _ in range(4)]),
                },
                "/ground_truth/odom": {
                    "header": header,
                    "child_frame_id": "a",
                    "pose": {
                        "pose": {"position": xyz(0.0, 0.0, 0.4), "orientation": turn},
                        "covariance": [0.0] * 36,
                    },
                    "twist": {
                        "twist": {
                            "linear": xyz(0.0, 0.0, 0.0),
                            "angular": xyz(0.0, 0.0, 0.0),
                        },
                        "covariance": [0.0] * 36,
                    },
                },
            }

            for topic, message in messages.items():
                if topic != gone:
                    writer.write_message(topic, schemas[kinds[topic]], message, tick * 100_000_000)

    return {".mcap": _mutated(rng, file.getvalue()) if rng.random() < 0.4 else file.getvalue()}


def _record(kind: int, data: bytes) -> bytes:
    """Return a record of an MCAP file."""
    return struct.pack("<BQ", kind, len(data)) + data


def _text(text: str) -> bytes:
    """Return a text with its length."""
    return struct.pack("<I", len(text)) + text.encode()


# --- MATLAB


@cache
def _mat(version: str, packed: bool) -> bytes:
    """Return a good .mat file."""
    from scipy.io import savemat

    file = io.BytesIO()
    content: dict[str, Any] = {
        "simpleMap": np.eye(4),
        "other": np.arange(12, dtype=np.uint8).reshape(3, 4),
    }

    # more kinds of values
    if version == "5":
        content |= {
            "cell": np.array([1, "a"], object),
            "text": "RflySim",
            "flags": np.ones((2, 2), bool),
        }

    savemat(file, content, format=version, do_compression=packed)
    return file.getvalue()


def mat_file(rng: random.Random) -> Files:
    """Return versions 4 and 5, packed or not; damaged, also within what is packed."""
    data = _mat(rng.choice("455"), rng.random() < 0.5)

    # damage within the packed part
    if rng.random() < 0.3:
        inner = _mutated(rng, _mat("5", False)[128:])
        packed = zlib.compress(inner)
        return {".mat": _mat("5", False)[:128] + struct.pack("<II", 15, len(packed)) + packed}

    return {".mat": _mutated(rng, data)}


def mat_bomb(_: random.Random) -> Files:
    """Return a packed matrix of 2 x 2 numbers whose data claim to be, and are, two gigabytes."""
    size = 2_000_000_000
    head = struct.pack("<IIIIII", 14, size + 64, 6, 8, 6, 0) + struct.pack("<IIii", 5, 8, 2, 2)
    head += struct.pack("<II", 1, 1) + b"a" + bytes(7) + struct.pack("<II", 9, size)

    # pack two gigabytes of zeros
    packer = zlib.compressobj(1)
    packed = packer.compress(head)
    for _piece in range(200):
        packed += packer.compress(bytes(10_000_000))
    packed += packer.flush()
    return {".mat": _mat("5", False)[:128] + struct.pack("<II", 15, len(packed)) + packed}


# --- meshes of worlds

_CUBE = [(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
_FACES = [
    (0, 1, 3),
    (0, 3, 2),
    (4, 6, 7),
    (4, 7, 5),
    (0, 4, 5),
    (0, 5, 1),
    (2, 3, 7),
    (2, 7, 6),
    (0, 2, 6),
    (0, 6, 4),
]


def _gltf() -> tuple[dict[str, Any], bytes]:
    """Return a glTF tree of a cube that two nodes use, and its binary data."""
    points = np.array(_CUBE, np.float32).tobytes()
    corners = np.array(_FACES, np.uint32).tobytes()
    views = [
        {"buffer": 0, "byteOffset": 0, "byteLength": 96},
        {"buffer": 0, "byteOffset": 96, "byteLength": 120},
    ]

    accessors: list[dict[str, Any]] = [
        {
            "bufferView": 0,
            "componentType": 5126,
            "count": 8,
            "type": "VEC3",
            "min": [0, 0, 0],
            "max": [1, 1, 1],
        },
        {"bufferView": 1, "componentType": 5125, "count": 30, "type": "SCALAR"},
    ]

    tree = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [
            {"mesh": 0, "translation": [0, 0, 0], "children": [1]},
            {"mesh": 0, "scale": [2, 2, 2]},
        ],
        "meshes": [
            {
                "primitives": [
                    {
                        "attributes": {"POSITION": 0},
                        "indices": 1,
                        "material": 0,
                        "mode": 4,
                    }
                ]
            }
        ],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": [1, 0, 0, 1]}}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": 216}],
    }

    return tree, points + corners


def _glb(tree: bytes, data: bytes) -> bytes:
    """Return a binary glTF file of a JSON text and of data."""
    tree += b" " * (-len(tree) % 4)
    json_chunk = struct.pack("<II", len(tree), 0x4E4F534A) + tree
    data_chunk = struct.pack("<II", len(data), 0x004E4942) + data
    size = 12 + len(json_chunk) + len(data_chunk)
    return struct.pack("<III", 0x46546C67, 2, size) + json_chunk + data_chunk


def glb(rng: random.Random) -> Files:
    """Return a world of one .glb; its tree, its lengths or its bytes are odd."""
    tree, data = _gltf()
    odd_tree = mutated_tree(rng, tree) if rng.random() < 0.7 else tree
    text = json.dumps(odd_tree).encode("utf-8", "surrogatepass")
    mesh = _glb(text, data)
    if rng.random() < 0.4:
        mesh = _mutated(rng, mesh)

    return {".yaml": _WORLD % b"glb", "a.glb": mesh}


def _tree_bomb(**changes: Any) -> Files:
    """Return a world of one .glb with these changes to its tree."""
    tree, data = _gltf()
    return {
        ".yaml": _WORLD % b"glb",
        "a.glb": _glb(json.dumps({**tree, **changes}).encode(), data),
    }


def instances_bomb(_: random.Random) -> Files:
    """Return nodes that each have the next one twice: 2²⁶ cubes."""
    nodes: list[dict[str, Any]] = [
        {"children": [2 * n + 2, 2 * n + 3]} for n in range(26) for _twice in range(2)
    ]
    return _tree_bomb(nodes=[*nodes, {"mesh": 0}, {"mesh": 0}])


def many_nodes_bomb(_: random.Random) -> Files:
    """Return a cube two hundred thousand times."""
    return _tree_bomb(nodes=[{"mesh": 0}] * 200_000, scenes=[{"nodes": list(range(200_000))}])


def accessor_bomb(_: random.Random) -> Files:
    """Return an accessor without data, which is zeros: a billion of them."""
    tree, _data = _gltf()
    empty = [
        {"componentType": 5126, "count": 10**9, "type": "VEC3"},
        {"componentType": 5125, "count": 3 * 10**9, "type": "SCALAR"},
    ]
    return _tree_bomb(accessors=empty, bufferViews=tree["bufferViews"])


def deep_tree_bomb(_: random.Random) -> Files:
    """Return lists in lists."""
    return {".yaml": _WORLD % b"glb", "a.glb": _glb(b"[" * 5_000_000, b"")}


OBJ = "mtllib ../../etc/passwd\no a\n" + "".join(f"v {x:g} {y:g} {z:g}\n" for x, y, z in _CUBE)
OBJ += "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in _FACES)


def obj(rng: random.Random) -> Files:
    """Return a world of one .obj with odd words."""
    text = OBJ.replace("f 1 ", rng.choice(("f 1 ", "f 1//1 ", "f 1/1/1 ", "f -8 "))).encode()
    return {
        ".yaml": _WORLD % b"obj",
        "a.obj": text if rng.random() < 0.1 else mutated_text(rng, text),
    }


def obj_bomb(_: random.Random) -> Files:
    """Return twenty megabytes of triangles that all hang together."""
    strip = "".join(f"v {n} {n % 2} {n % 3}\n" for n in range(500_000))
    return {
        ".yaml": _WORLD % b"obj",
        "a.obj": (strip + "f 1 2 3\n" * 1_300_000).encode()[:19_999_000] + b"\n",
    }
