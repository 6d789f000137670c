# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mutations of maps, of NumPy arrays, of GeoTIFF rasters and of captured datagrams."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from fuzz.fuzz_terrain import (
    GOOD_TXT,
    chunk,
    good_png,
    mutate_bytes,
    mutated_png,
    mutated_txt,
)

from attacks.text_mutators import Files, Maker, mutated_text

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


# --- maps


def map_files(rng: random.Random) -> Files:
    """Return a png and its txt, one of them mutated.

    The png has zTXt, iCCP and other chunks that unpack.
    """
    txt = mutated_txt(rng) if rng.random() < 0.5 else GOOD_TXT[rng.randrange(2)]

    # one more chunk that unpacks, or damage
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
        chunks = (
            chunk(b"IHDR", head),
            chunk(b"IDAT", data),
            chunk(b"IEND", b""),
        )
        png = b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
        return {".png": png, ".txt": GOOD_TXT[0]}

    return make


def occupancy_files(rng: random.Random) -> Files:
    """Return map_server's yaml and a pgm, with either mutated."""
    text = b"image: a.pgm\nmode: trinary\nresolution: 0.05\norigin: [1.0, -2.0, 0.0]\n"
    text += b"negate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.25\n"

    # binary or text
    pgm = b"P5\n# by map_saver\n7 5\n255\n" + rng.randbytes(35)
    if rng.random() < 0.4:
        numbers = b" ".join(str(rng.randrange(256)).encode() for _ in range(35))
        pgm = b"P2\n7 5\n255\n" + numbers

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
        version = bytes((rng.choice((1, 1, 1, 2, 3, 9)), 0))
        data = b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + bytes(96)

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
    packed = bytearray(file.getvalue())

    # say that it is encrypted
    if rng.random() < 0.1:
        packed[6] |= 1
        packed[packed.index(b"PK\1\2") + 8] |= 1

    return mutate_bytes(rng, bytes(packed)) if rng.random() < 0.4 else bytes(packed)


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
                text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000, 10000)}"
                header = text.ljust(117) + b"\n"
                member.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
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
    (directory,) = struct.unpack_from("<I", data, 4)
    (entries,) = struct.unpack_from("<H", data, directory)

    for _ in range(rng.randrange(4)):
        entry = directory + 2 + 12 * rng.randrange(entries)
        match rng.randrange(4):
            case 0:
                tag = rng.choice((256, 257, 258, 259, 273, 277, 278, 322, 339, 34736, 65535))
                struct.pack_into("<H", data, entry, tag)
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

        ending = ".pcapng" if ng else ".pcap"
        damaged = rng.random() < 0.3
        return {ending: mutate_bytes(rng, bytes(data)) if damaged else bytes(data)}

    return make


def _packet(rng: random.Random) -> bytes:
    """Return an IPv4 packet with a UDP datagram, whole or a fragment."""
    payload = rng.randbytes(rng.choice((0, 8, 64)))
    udp = struct.pack(">HHHH", 5000, 20010, 8 + len(payload), 0) + payload
    fragment = rng.choice((0x4000, 0x4000, 0x2000, 1, 0x1FFF))

    header = struct.pack(
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

    return header + udp


def _pcap(rng: random.Random) -> bytes:
    """Return a capture with nanoseconds, of packets without a link layer."""
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    for number in range(rng.randrange(6)):
        packet = _packet(rng)
        out += struct.pack("<IIII", 1000, number, len(packet), len(packet)) + packet
    return out + bytes(-len(out) % 4)


def _pcapng(rng: random.Random) -> bytes:
    """Return a section and an interface with an odd offset of its clock, then packets."""
    # section
    out = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)

    # interface
    offset = rng.choice((0, 1, 2**62))
    interface = struct.pack("<IIHHIHHqHHI", 1, 40, 101, 0, 0, 14, 8, offset, 0, 0, 40)
    out += interface[:36] + struct.pack("<I", 40)

    for number in range(rng.randrange(6)):
        packet = _packet(rng)
        head = struct.pack("<IIIII", 0, 0, number, len(packet), len(packet))
        body = head + packet + bytes(-len(packet) % 4)
        size = struct.pack("<I", len(body) + 12)
        out += struct.pack("<I", 6) + size + body + size

    return out
