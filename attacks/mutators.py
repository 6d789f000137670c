"""Makers of files for `attacks.files`: each returns the bytes of a file by its ending, the one that
is read first.

MAKERS mutate a good file of their kind; BOMBS are files that become far more than they are, or take
long.
"""

from __future__ import annotations

import copy
import io
import json
import math
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from fuzz.fuzz_terrain import (
    GOOD_TXT,
    chunk,
    good_png,
    mutate_bytes,
    mutated_png,
    mutated_txt,
)

from attacks import container_mutators as containers
from rfly_amphibious.vehicle.state_layout import MEMORY

Files = dict[str, bytes]
Maker = Callable[[random.Random], Files]

ROOT = Path(__file__).parents[1]
ODD_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        5,
        2**31,
        -(2**63),
        2**64,
        10**30,
        0.5,
        -0.0,
        1e308,
        -1e308,
        5e-324,
    ),
    *(
        "",
        "x",
        "é",
        "\0",
        "a\nb",
        "x" * 5000,
        "../../etc/passwd",
        "/dev/zero",
        "1e400",
        "nan",
        "٣",
        "１２",
        "0x10",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"": 1},
        {"file": "/etc/passwd"},
        [1, 2, 3],
        [1e308] * 3,
        ["a"] * 3,
        list(range(2000)),
    ),
)
TOKENS = tuple(
    token if isinstance(token, bytes) else token.encode("utf-8", "surrogatepass")
    for token in (
        *(
            "\ufeff",
            "٣",
            "１２",
            "1e400",
            "-1e400",
            "nan",
            ".inf",
            "-.inf",
            "9" * 5000,
            "\0",
            b"\xff\xfe",
            "\u2028",
            "\x85",
        ),
        *(
            "{" * 3000,
            "[" * 3000,
            "- " * 3000,
            "&a [*a, *a]",
            "*a",
            "&a",
            "<<: *a",
            "!!int ''",
            "!!float _",
            "!!binary x",
        ),
        *(
            "!!timestamp 2001-01-01T99:00:00Z",
            "2001-01-01T99:00:00Z",
            "!!python/object:os.system x",
            "? ",
            "---\n",
            "...\n",
        ),
        *(
            "1:99:99",
            "0b",
            "0o8",
            "0x",
            "1_",
            "_",
            "=",
            "~",
            "|\n",
            ">\n",
            "\t",
            "'",
            '"',
            "\\",
            "#",
            ",,,",
            ";",
            "\r",
        ),
        *(
            "<a>" * 2000,
            "<![CDATA[",
            "<!DOCTYPE r [<!ENTITY a 'b'>]>",
            "&a;",
            "&#0;",
            "<?xml encoding='utf-7'?>",
            "]]>",
        ),
        *(
            "\ud800",
            "1e",
            "--1",
            "+",
            ".",
            "0" * 400 + "1",
            "1" + "0" * 400,
            "true",
            "null",
            "\n",
            " " * 3000,
            "",
        ),
    )
)
ODD_NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    255,
    256,
    65535,
    65536,
    2**24,
    2**31 - 1,
    2**31,
    2**32 - 2,
    2**32 - 1,
)


# --- texts and trees


def mutated_text(rng: random.Random, text: bytes) -> bytes:
    """Return odd tokens in place of words and between them, and damaged bytes."""
    for _ in range(rng.randint(1, 3)):
        places = [match.span() for match in re.finditer(rb"[^\s,:;<>\[\]{}\"]+", text)] or [(0, 0)]
        start, end = rng.choice(places)
        text = text[:start] + rng.choice(TOKENS) + text[end if rng.random() < 0.7 else start :]
    return mutate_bytes(rng, text) if rng.random() < 0.3 else text


def mutated_tree(rng: random.Random, tree: Any) -> Any:
    """Return a copy in which a few values are odd, gone, moved or there twice."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.randint(1, 3)):
        holders = list(_holders(tree))
        holder, key = rng.choice(holders) if holders else ([tree], 0)
        match rng.randrange(5):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(("", "version", "file", "x" * 300, "٣"))] = holder.pop(key)
            case 2:
                _, other = rng.choice(holders) if holders else ([tree], 0)
                holder[key] = str(other)
            case 3 if isinstance(holder, list):
                holder *= rng.choice((0, 2, 100))
            case _:
                holder[key] = copy.deepcopy(
                    rng.choice(ODD_VALUES)
                )  # else a later turn could put a list into itself

    return tree


def _holders(tree: Any) -> Any:
    """(container, key or index) of every value in a tree."""
    pairs = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in list(pairs):
        yield tree, key
        yield from _holders(value)


@cache
def shipped(path: str) -> bytes:
    """Return a file of the project."""
    return (ROOT / path).read_bytes()


@cache
def shipped_tree(path: str) -> Any:
    """Return a YAML file of the project, as JSON has it."""
    return json.loads(json.dumps(yaml.safe_load(shipped(path)), default=str))


def yaml_of(path: str) -> Maker:
    """Return mutations of a shipped YAML file.

    They are of its text, or of its tree, written as JSON, which is YAML too.
    """

    def make(rng: random.Random) -> Files:
        kind = rng.randrange(10)
        if kind == 0:
            return {".yaml": shipped(path)}
        if kind < 5:
            return {".yaml": mutated_text(rng, shipped(path))}
        return {
            ".yaml": json.dumps(
                mutated_tree(rng, shipped_tree(path)), ensure_ascii=rng.random() < 0.5
            ).encode("utf-8", "surrogatepass")
        }

    return make


def text_of(ending: str, *texts: str) -> Maker:
    """Return mutations of one of these texts."""

    def make(rng: random.Random) -> Files:
        text = rng.choice(texts).encode()
        return {ending: text if rng.random() < 0.1 else mutated_text(rng, text)}

    return make


# --- maps


def map_files(rng: random.Random) -> Files:
    """Return a png and its txt, one of them mutated.

    The png has zTXt, iCCP and other chunks that unpack.
    """
    txt = mutated_txt(rng) if rng.random() < 0.5 else GOOD_TXT[rng.randrange(2)]
    if rng.random() < 0.3:
        chunks = good_png(rng)
        packed = zlib.compress(bytes(rng.choice((10, 100_000, 10_000_000))))
        extra = rng.choice(
            (
                (b"zTXt", b"key\0\0" + packed),
                (b"iCCP", b"name\0\0" + packed),
                (b"iTXt", b"k\0\1\0\0\0" + packed),
            )
        )
        chunks.insert(rng.randrange(1, len(chunks)), extra)
        png = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in chunks)
    else:
        png = mutated_png(rng)

    return {".png": png, ".txt": txt}


def png_bomb(width: int, height: int, colour: int, depth: int) -> Callable[[random.Random], Files]:
    """Return a legal png of zeros."""

    def make(_: random.Random) -> Files:
        channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
        row = b"\0" + bytes(width * channels * depth // 8)
        packer = zlib.compressobj(9)
        data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
        head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
        png = (
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
        )
        return {".png": png, ".txt": GOOD_TXT[0]}

    return make


def occupancy_files(rng: random.Random) -> Files:
    """Return map_server's yaml and a pgm, with either mutated."""
    text = b"image: a.pgm\nmode: trinary\nresolution: 0.05\norigin: [1.0, -2.0, 0.0]\n"
    text += b"negate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.25\n"
    pgm = b"P5\n# by map_saver\n7 5\n255\n" + rng.randbytes(35)
    if rng.random() < 0.4:
        pgm = b"P2\n7 5\n255\n" + b" ".join(str(rng.randrange(256)).encode() for _ in range(35))
    text = mutated_text(rng, text) if rng.random() < 0.5 else text
    pgm = mutated_text(rng, pgm) if rng.random() < 0.5 else pgm
    return {".yaml": text, "a.pgm": pgm}


# --- NumPy

HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3)}",
    "{'descr': '>i2', 'fortran_order': True, 'shape': (4, 3)}",
    "{'descr': '|b1', 'fortran_order': False, 'shape': (4, 3)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (4, 3)}",
    "{'descr': [('a', '<f8'), ('b', '<i4')], 'fortran_order': False, 'shape': (4, 3)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 3)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -3)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3)}",
    "{'descr': '<U9999999', 'fortran_order': False, 'shape': (4, 3)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000)}",
    "{" * 4000,
)


def npy(rng: random.Random) -> bytes:
    """Return an array, a lying header, or damage."""
    if rng.random() < 0.5:
        file = io.BytesIO()
        kind = rng.choice(("<f8", "<f4", ">i2", "<i8", "|u1", "|b1", "<c8", "<U3", "<f2"))
        array = np.zeros(rng.choice(((4, 3), (3,), (), (0, 3), (2, 2, 2), (2, 2))), kind)
        np.save(file, array)
        data = file.getvalue()
    else:
        text = mutated_text(rng, rng.choice(HEADERS).encode("latin-1"))[:65_000]
        data = (
            b"\x93NUMPY"
            + bytes((rng.choice((1, 1, 1, 2, 3, 9)), 0))
            + struct.pack("<H", len(text))
            + text
            + bytes(96)
        )

    return mutate_bytes(rng, data) if rng.random() < 0.4 else data


def zipped(rng: random.Random, members: dict[str, bytes]) -> bytes:
    """Return a zip, at times packed by other methods, encrypted by its flags, or damaged."""
    file = io.BytesIO()
    method = rng.choice(
        (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
    )
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    data = bytearray(file.getvalue())
    if rng.random() < 0.1:
        data[6] |= 1
        data[data.index(b"PK\1\2") + 8] |= 1
    return mutate_bytes(rng, bytes(data)) if rng.random() < 0.4 else bytes(data)


def saved(**arrays: Any) -> dict[str, bytes]:
    """Return the members of an .npz."""
    members = {}
    for name, array in arrays.items():
        file = io.BytesIO()
        np.save(file, array)
        members[f"{name}.npy"] = file.getvalue()
    return members


def npz_of(**arrays: Any) -> Maker:
    """Return mutations of an .npz: members that are other arrays, none, or missing."""

    def make(rng: random.Random) -> Files:
        members = saved(**arrays)
        for _ in range(rng.randrange(3)):
            name = rng.choice(sorted(members) or ["a.npy"])
            match rng.randrange(4):
                case 0:
                    members.pop(name, None)
                case 1:
                    members[rng.choice(("readme.txt", "a.npy", "../x.npy", "é.npy"))] = b"text"
                case _:
                    members[name] = npy(rng)
        return {".npz": zipped(rng, members)}

    return make


def npz_bomb(_: random.Random) -> Files:
    """Return four times 800 MB of zeros in some megabytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in "abcd":
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                text = (
                    b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000, 10000)}".ljust(117)
                    + b"\n"
                )
                member.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text)
                for _piece in range(800):
                    member.write(bytes(1_000_000))
    return {".npz": file.getvalue()}


# --- rasters and captures


@cache
def geotiff() -> bytes:
    """Return a small GeoTIFF in UTM."""
    import rasterio

    with rasterio.MemoryFile() as memory:
        transform = rasterio.transform.from_origin(5e5, 5.2e6, 10, 10)
        shape = {"width": 5, "height": 4, "count": 1, "dtype": "float32"}
        with memory.open(driver="GTiff", crs="EPSG:32632", transform=transform, **shape) as dataset:
            dataset.write(np.arange(20, dtype=np.float32).reshape(4, 5), 1)
        return bytes(memory.getbuffer())


def mutated_tiff(rng: random.Random) -> Files:
    """Return entries of its directory with other types, counts and values."""
    data = bytearray(geotiff())
    (at,) = struct.unpack_from("<I", data, 4)
    (entries,) = struct.unpack_from("<H", data, at)

    for _ in range(rng.randrange(4)):
        entry = at + 2 + 12 * rng.randrange(entries)
        match rng.randrange(4):
            case 0:
                struct.pack_into(
                    "<H",
                    data,
                    entry,
                    rng.choice((256, 257, 258, 259, 273, 277, 278, 322, 339, 34736, 65535)),
                )
            case 1:
                struct.pack_into("<H", data, entry + 2, rng.randrange(20))
            case 2:
                struct.pack_into("<I", data, entry + 4, rng.choice(ODD_NUMBERS))
            case 3:
                struct.pack_into("<I", data, entry + 8, rng.choice(ODD_NUMBERS))

    return {".tif": mutate_bytes(rng, bytes(data)) if rng.random() < 0.4 else bytes(data)}


def capture(ng: bool) -> Maker:
    """Return records of UDP datagrams, whole and in fragments, with odd numbers in them."""

    def make(rng: random.Random) -> Files:
        data = bytearray(_pcapng(rng) if ng else _pcap(rng))
        for _ in range(rng.randrange(4)):
            struct.pack_into("<I", data, 4 * rng.randrange(len(data) // 4), rng.choice(ODD_NUMBERS))
        return {
            ".pcapng" if ng else ".pcap": mutate_bytes(rng, bytes(data))
            if rng.random() < 0.3
            else bytes(data)
        }

    return make


def _packet(rng: random.Random) -> bytes:
    payload = rng.randbytes(rng.choice((0, 8, 64)))
    udp = struct.pack(">HHHH", 5000, 20010, 8 + len(payload), 0) + payload
    fragment = rng.choice((0x4000, 0x4000, 0x2000, 1, 0x1FFF))

    return (
        struct.pack(
            ">BBHHHBBH4s4s",
            0x45,
            0,
            20 + len(udp),
            7,
            fragment,
            64,
            17,
            0,
            b"\x7f\0\0\1",
            b"\x7f\0\0\1",
        )
        + udp
    )


def _pcap(rng: random.Random) -> bytes:
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    for number in range(rng.randrange(6)):
        packet = _packet(rng)
        out += struct.pack("<IIII", 1000, number, len(packet), len(packet)) + packet
    return out + bytes(-len(out) % 4)


def _pcapng(rng: random.Random) -> bytes:
    out = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    out += struct.pack(
        "<IIHHIHHqHHI", 1, 40, 101, 0, 0, 14, 8, rng.choice((0, 1, 2**62)), 0, 0, 40
    )[:36] + struct.pack("<I", 40)
    for number in range(rng.randrange(6)):
        packet = _packet(rng)
        body = (
            struct.pack("<IIIII", 0, 0, number, len(packet), len(packet))
            + packet
            + bytes(-len(packet) % 4)
        )
        out += struct.pack("<II", 6, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    return out


# --- missions


def _simple(command: int, frame: int, *params: float | None) -> dict[str, Any]:
    return {
        "type": "SimpleItem",
        "command": command,
        "frame": frame,
        "params": list(params),
        "autoContinue": True,
    }


_POINT = _simple(16, 3, 0, 0, 0, None, 47.001, 8.0, 20)
_SCAN = {
    "type": "ComplexItem",
    "complexItemType": "StructureScan",
    "version": 3,
    "Altitude": 20,
    "EntranceAltitude": 20,
    "StructureHeight": 25,
    "Layers": 2,
    "ScanBottomAlt": 5,
    "StartFromTop": False,
    "GimbalPitch": 0,
    "CameraCalc": {
        "AdjustedFootprintFrontal": 10,
        "AdjustedFootprintSide": 5,
        "DistanceToSurface": 10,
    },
    "polygon": [[47.0, 8.0], [47.001, 8.0], [47.0, 8.001]],
}
_LANDING = {
    "type": "ComplexItem",
    "complexItemType": "vtolLandingPattern",
    "version": 1,
    "altitudesAreRelative": True,
    "landCoordinate": [47.0, 8.0, 0],
    "landingApproachCoordinate": [47.01, 8.0, 40],
    "loiterRadius": 50,
    "loiterClockwise": False,
    "useLoiterToAlt": True,
    "stopTakingPhotos": True,
    "stopVideoPhotos": True,
}
PLAN: dict[str, Any] = {
    "fileType": "Plan",
    "version": 1,
    "groundStation": "QGroundControl",
    "geoFence": {
        "circles": [
            {
                "circle": {"center": [47.0, 8.0], "radius": 500},
                "inclusion": True,
                "version": 1,
            }
        ],
        "polygons": [
            {
                "polygon": [[47.0, 8.0], [47.1, 8.0], [47.0, 8.1]],
                "inclusion": True,
                "version": 1,
            }
        ],
        "version": 2,
    },
    "mission": {
        "version": 2,
        "plannedHomePosition": [47.0, 8.0, 500.0],
        "items": [
            {**_simple(22, 3, 0, 0, 0, None, 47.0, 8.0, 20), "doJumpId": 1},
            {**_POINT, "doJumpId": 2},
            {**_simple(177, 2, 2, 3, 0, 0, 0, 0, 0), "doJumpId": 3},
            {
                "type": "ComplexItem",
                "complexItemType": "survey",
                "TransectStyleComplexItem": {"Items": [_POINT]},
            },
            _SCAN,
            _LANDING,
        ],
    },
    "rallyPoints": {"points": [[47.0, 8.0, 50]], "version": 2},
}
WAYPOINTS = (
    "QGC WPL 110\n0\t1\t0\t16\t0\t0\t0\t0\t47\t8\t500\t1\n"
    "1\t0\t3\t22\t0\t0\t0\t0\t47\t8\t20\t1\n2\t0\t3\t16\t1\t2\t0\t0\t47.001\t8\t20\t1\n"
)


def plan(rng: random.Random) -> Files:
    """Return a mutation of its tree or of its text."""
    if rng.random() < 0.7:
        return {".plan": json.dumps(mutated_tree(rng, PLAN)).encode("utf-8", "surrogatepass")}
    return {".plan": mutated_text(rng, json.dumps(PLAN).encode())}


GPX = (
    '<?xml version="1.0"?><gpx version="1.1" '
    'xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>'
    '<trkpt lat="47.0" lon="8.0"><ele>500</ele></trkpt><trkpt lat="47.001" '
    'lon="8.001"><ele>510</ele></trkpt>'
    "</trkseg></trk></gpx>"
)
OSM = '<osm version="0.6">\n' + "".join(
    f'<node id="{n}" lat="{47.0 + lat}" lon="{8.0 + lon}"/>\n'
    for n, (lat, lon) in enumerate(
        (
            (0.0, 0.0),
            (0.0, 0.001),
            (0.001, 0.001),
            (0.001, 0.0),
            (2e-4, 2e-4),
            (2e-4, 4e-4),
            (4e-4, 3e-4),
        )
    )
)
OSM += (
    '<way id="8"><nd ref="0"/><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="0"/><tag '
    'k="building" v="yes"/>'
    '<tag k="height" v="12 m"/><tag k="building:levels" v="3"/></way>\n'
    '<way id="9"><nd ref="4"/><nd ref="5"/><nd ref="6"/><nd ref="4"/></way>\n'
    '<relation id="10"><member type="way" ref="8" role="outer"/><member type="way" ref="9" '
    'role="inner"/>'
    '<tag k="type" v="multipolygon"/><tag k="building" v="yes"/></relation>\n</osm>\n'
)
VEHICLE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<vehicle>\n  <ClassID>3</ClassID><Name>quad</Name>\n '
    " <body>\n"
    "    <ModelType>0</ModelType><CenterHeightAboveGroundCm>12.5</CenterHeightAboveGroundCm>\n  "
    "</body>\n</vehicle>\n"
)
PATH = (
    "header:\n  frame_id: map\nposes:\n- header: {frame_id: map}\n  pose:\n    position: {x: 1.0, "
    "y: 2.0, z: 3.0}\n"
    "    orientation: {x: 0.0, y: 0.0, z: 0.0, w: 1.0}\n- header: {frame_id: map}\n  pose:\n"
    "    position: {x: 10.0, y: 2.0, z: 3.0}\n    orientation: {x: 0.0, y: 0.0, z: 0.0, w: "
    "1.0}\n---\n"
)
PARAMETERS = (
    "/**:\n  ros__parameters:\n    rate: 50.0\n    vehicles: [a, b]\n"
    "terrain_node:\n  ros__parameters: {map: x}\n"
)
GRID = (
    "ncols 4\nnrows 3\nxllcorner 8.0\nyllcorner 47.0\ncellsize 0.001\nNODATA_value -9999\n"
    + "1 2 3 4\n" * 3
)

MAKERS: dict[str, Maker] = {
    "map": map_files,
    "npy": lambda rng: {".npy": npy(rng)},
    "npz": npz_of(
        heights_up=np.eye(3),
        x_east=np.arange(3.0),
        y_north=np.arange(3.0),
        geo_origin=np.zeros(3),
    ),
    "saved state": npz_of(x=np.zeros(44), memory=np.zeros(MEMORY), time=np.float64(1.0)),
    "geotiff": mutated_tiff,
    "ascii grid": text_of(".asc", GRID),
    "occupancy map": occupancy_files,
    "points": text_of(".csv", "x,y\n1,2\n3,4\n", "1 2\n3 4\n", "1;2;7\n"),
    "waypoints csv": text_of(
        ".csv", "x,y,z\n1,2,3\n4,5,6\n", "lat,lon,alt\n47,8,500\n47.1,8.1,510\n"
    ),
    "waypoints npy": lambda rng: {".npy": npy(rng)},
    "gpx": text_of(".gpx", GPX),
    "path yaml": text_of(".yaml", PATH),
    "plan": plan,
    "waypoints mission": text_of(".waypoints", WAYPOINTS),
    "pcap": capture(ng=False),
    "pcapng": capture(ng=True),
    "vehicle xml": text_of(".xml", VEHICLE),
    "parameter file": text_of(".yaml", PARAMETERS),
    "fleet": yaml_of("rfly_trajectory/data/fleets/demo_convoy.yaml"),
    "placements": yaml_of("rfly_ue_bridge/data/placements/grasslands_targets.yaml"),
    "placements csv": text_of(
        ".csv",
        "id,type,x,y,z,yaw_deg,offset,ground_packet,scale,size\n"
        "1,3,1,2,3,90,,true,1 1 1,\n2,3,1,2,,0,0.5,false,1 1 1,\n",
    ),
    "shapes": yaml_of("rfly_collision/data/shapes/rflysim3d.yaml"),
    "vehicle classes": yaml_of("rfly_terrain/data/vehicle_classes.yaml"),
    "scenario": yaml_of("rfly_amphibious/data/scenarios/hop.yaml"),
    "vehicle": yaml_of("rfly_amphibious/data/vehicles/scale.yaml"),
    "sensors": yaml_of("rfly_amphibious/data/sensors/scale.yaml"),
    "estimator": yaml_of("rfly_amphibious/data/estimators/scale.yaml"),
    "world": yaml_of("rfly_terrain/data/worlds/pillars.yaml"),
    "osm": text_of(".osm", OSM),
    "mesh glb": containers.glb,
    "mesh obj": containers.obj,
    "mat maps": containers.mat_file,
    "mcap": containers.recording,
    "fit log": containers.fit_log,
}

LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
YAML_BOMBS: dict[str, Maker] = {
    "aliases that multiply": lambda _: {".yaml": LAUGHS.encode()},
    "an alias of itself": lambda _: {".yaml": b"version: 1\nvehicles: &a [*a, *a]\n"},
    "a merge of itself": lambda _: {".yaml": b"a: &a\n  <<: *a\n"},
    "deep braces": lambda _: {".yaml": b"{" * 500_000},
    "deep lists": lambda _: {".yaml": b"- " * 400_000},
    "a list of a million": lambda _: {
        ".yaml": b"version: 1\nvehicles: [" + b"1," * 490_000 + b"1]\n"
    },
    "a key of a megabyte": lambda _: {".yaml": b"x" * 990_000 + b": 1\n"},
    "a whole number of 5000 digits": lambda _: {".yaml": b"version: " + b"9" * 5000 + b"\n"},
}
_SPIRAL = b",".join(b"[%d,%d,%d]" % (n, n * n % 997, n * n * n % 991) for n in range(60_000))
_LARGEST_PGM = b"P5\n10000 10000\n255\n"
_LARGEST_YAML = b"image: a.pgm\nresolution: 1\norigin: [0, 0, 0]\n"
_LARGE_RECORD = struct.pack("<IHHiIIIIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101, 0, 0, 2**32 - 1, 0)
_LONG_WAY = (
    b'<osm><way id="1"><tag k="building" v="yes"/>' + b'<nd ref="1"/>' * 1_000_000 + b"</way></osm>"
)
_PLAN_START = b'{"fileType":"Plan","version":1,"mission":['


def _scan_bomb() -> bytes:
    """Return a thousand layers around a structure of a thousand corners."""
    corners = [
        [47.0 + 0.01 * math.cos(n), 8.0 + 0.01 * math.sin(n)]
        for n in (math.tau * k / 1000 for k in range(1000))
    ]
    scan = {**_SCAN, "Layers": 1000, "polygon": corners}
    return json.dumps({**PLAN, "mission": {**PLAN["mission"], "items": [scan] * 10}}).encode()


BOMBS: dict[str, dict[str, Maker]] = {
    "map": {
        "colour with alpha": png_bomb(10_000, 10_000, 6, 8),
        "as large as can be": png_bomb(10_000, 10_000, 0, 16),
    },
    "npz": {"four times 800 MB": npz_bomb},
    "gpx": {
        "millions of elements": lambda _: {".gpx": b"<gpx>" + b"<a/>" * 2_400_000 + b"</gpx>"},
        "millions deep": lambda _: {".gpx": b"<a>" * 3_000_000},
        "entities": lambda _: {".gpx": b'<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">]><gpx>&a;</gpx>'},
    },
    "plan": {
        "deep lists": lambda _: {".plan": b'{"a":' + b"[" * 5_000_000},
        "a list of millions": lambda _: {".plan": _PLAN_START + b"1," * 5_000_000 + b"1]}"},
        "a scan of a million items": lambda _: {".plan": _scan_bomb()},
    },
    "waypoints csv": {
        "10 MB of digits": lambda _: {".csv": b"9" * 9_900_000},
        "10 MB of commas": lambda _: {".csv": b"," * 9_900_000},
    },
    "points": {"100 MB of points": lambda _: {".csv": b"1,2\n" * 25_000_000}},
    "occupancy map": {
        "as large as can be": lambda _: {
            ".yaml": _LARGEST_YAML,
            "a.pgm": _LARGEST_PGM + bytes(10**8),
        }
    },
    "osm": {
        "millions of elements": lambda _: {".osm": b"<osm>" + b"<tag/>" * 3_000_000 + b"</osm>"},
        "deep": lambda _: {".osm": b"<osm>" * 1_000_000},
        "a way of a million corners": lambda _: {".osm": _LONG_WAY},
    },
    "pcap": {"one record of 4 GB": lambda _: {".pcap": _LARGE_RECORD}},
    "vehicle xml": {"deep": lambda _: {".xml": b"<vehicle>" * 100_000}},
    **dict.fromkeys(
        (
            "fleet",
            "placements",
            "shapes",
            "vehicle classes",
            "scenario",
            "vehicle",
            "sensors",
            "estimator",
        ),
        YAML_BOMBS,
    ),
    "parameter file": YAML_BOMBS,
    "path yaml": YAML_BOMBS,
    "world": {
        **YAML_BOMBS,
        "four megabytes of boxes": lambda _: {
            ".yaml": b"version: 1\nobjects:\n" + b"- {box: [1, 1, 1], x: 0, y: 0}\n" * 120_000
        },
        "a hull of many": lambda _: {
            ".yaml": b"version: 1\nobjects: [{x: 0, y: 0, hull: [" + _SPIRAL + b"]}]\n"
        },
        "a mesh in a pipe's place": lambda _: {
            ".yaml": b"version: 1\nobjects: [{mesh: /dev/stdin, x: 0, y: 0}]\n"
        },
    },
    "mesh glb": {
        "instances of instances": containers.instances_bomb,
        "many instances": containers.many_nodes_bomb,
        "accessors without data": containers.accessor_bomb,
        "deep lists": containers.deep_tree_bomb,
    },
    "mesh obj": {"20 MB of triangles": containers.obj_bomb},
    "mat maps": {"2 GB for four numbers": containers.mat_bomb},
    "mcap": {"a chunk of 4 GB": containers.recording_bomb},
    "fit log": {"a chunk of 4 GB": containers.recording_bomb},
}
