# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Throws mutated txt and png files at the map reader: a finite map or a typed error must come out,
and nothing else.

    python test/fuzz/fuzz_terrain.py [count] [--seed N]

The same count and seed make the same files. A case that fails is printed with its number and left
in the folder named.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rfly_common.errors import TerrainFileNotFound, TerrainFormatError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.map_files.png_txt import read_map
from rfly_terrain.map_files.search import MapFiles

SLOW_S = 5.0
GOOD_TXT = (
    b"300,200,1600,-300,-200,600,100,0,1100\n",
    b"500,300,1600,-100,-100,600,300,100,1100,30.5,120.25,50\r\n",
    b" -3e4 ,1.5E+4, 0,3e4,-15000,+600.25,0.0,-0,1e3",
)
TOKENS = [
    *(
        b"nan",
        b"inf",
        b"-Infinity",
        b"1e999",
        b"-1e308",
        b"5e-324",
        b"0",
        b"-0",
        b"",
        b" ",
        b"1_000",
        b"0x10",
        b"1e",
        b"--1",
    ),
    *(
        "٣٤".encode(),
        "１２".encode(),
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\0",
        b"9" * 400,
        b"\xa0",
        b"\r",
        b"\n",
        b",,",
        b"1.5d2",
    ),
]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def good_png(rng: random.Random) -> list[tuple[bytes, bytes]]:
    """The chunks of a small valid png of any colour type."""
    colour, bits, channels = rng.choice(
        [
            (0, 16, 1),
            (0, 16, 1),
            (0, 8, 1),
            (2, 8, 3),
            (4, 16, 2),
            (6, 8, 4),
            (3, 8, 1),
            (0, 4, 1),
        ]
    )
    columns = rng.randint(2, 12)
    rows = rng.randint(2, 12)
    row_bytes = (columns * channels * bits + 7) // 8
    value = bytes([rng.randrange(3)])
    raw = b"".join(
        b"\0" + (rng.randbytes(row_bytes) if colour in (0, 4) else value * row_bytes)
        for _ in range(rows)
    )
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", columns, rows, bits, colour, 0, 0, 0))]
    if colour == 3:
        chunks.append((b"PLTE", bytes(v for n in range(3) for v in (n, n, n))))

    if rng.random() < 0.3:
        chunks.append(
            (
                rng.choice([b"tEXt", b"gAMA", b"eXIf", b"tRNS", b"acTL", b"iCCP"]),
                rng.randbytes(rng.randint(0, 20)),
            )
        )

    data = zlib.compress(raw)
    cut = rng.randint(0, len(data))

    return [
        *chunks,
        (b"IDAT", data[:cut]),
        (b"IDAT", data[cut:]),
        (b"IEND", b""),
    ]


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        where = rng.randint(0, len(out))
        match rng.randrange(6):
            case 0 if out:
                out[where % len(out)] ^= 1 << rng.randrange(8)
            case 1 if out:
                out[where % len(out)] = rng.randrange(256)
            case 2:
                del out[where : where + rng.randint(1, 8)]
            case 3:
                out[where:where] = rng.randbytes(rng.randint(1, 8))
            case 4:
                del out[where:]
            case 5:
                out[where:where] = out[: rng.randint(0, len(out))]

    return bytes(out)


def mutated_txt(rng: random.Random) -> bytes:
    data = rng.choice(GOOD_TXT)
    if rng.random() < 0.6:
        fields = data.split(b",")
        for _ in range(rng.randint(1, 3)):
            where = rng.randrange(len(fields))
            match rng.randrange(4):
                case 0:
                    fields[where] = rng.choice(TOKENS)
                case 1:
                    fields[where] = str(
                        rng.choice(
                            [
                                rng.randint(-1000, 1000),
                                rng.gauss(0, 1e5),
                                math.ldexp(1, rng.randint(-1070, 1020)),
                            ]
                        )
                    ).encode()
                case 2:
                    del fields[where]
                case 3:
                    fields.insert(where, rng.choice(fields))
            fields = fields or [b""]
        data = b",".join(fields)

    return mutate_bytes(rng, data) if rng.random() < 0.4 else data


def mutated_png(rng: random.Random) -> bytes:
    chunks = good_png(rng)
    for _ in range(rng.randint(1, 3)):
        where = rng.randrange(len(chunks))
        kind, data = chunks[where]
        match rng.randrange(6):
            case 0 if kind == b"IHDR":  # sizes and types that are wrong but well formed
                sizes = [0, 1, 2, 7, 255, 10_000, 60_000, 2**31 - 1, 2**32 - 1]
                chunks[where] = (
                    kind,
                    struct.pack(">II", rng.choice(sizes), rng.choice(sizes)) + data[8:],
                )
            case 1 if data:  # damaged content with a right checksum
                chunks[where] = (kind, mutate_bytes(rng, data))
            case 2:
                chunks.insert(rng.randrange(len(chunks) + 1), chunks[where])
            case 3 if len(chunks) > 1:
                del chunks[where]
            case 4:
                chunks[where] = (
                    rng.choice([b"IDAT", b"PLTE", b"IEND", b"zzZz", b"ABCD", rng.randbytes(4)]),
                    data,
                )
            case 5:
                rng.shuffle(chunks)

    file = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in chunks)
    return mutate_bytes(rng, file) if rng.random() < 0.4 else file


def check(files: MapFiles, rng: random.Random) -> str:
    """Reads one map. Returns what came out; raises what must not."""
    try:
        rfly_map = read_map(
            files,
            rng.choice(["truncate", "round"]),
            txt_rule=rng.choice(["python", "matlab"]),
        )
        terrain = HeightMap.of_map(rfly_map)
    except (TerrainFormatError, TerrainFileNotFound) as error:
        text = str(error)
        if "\n" in text or len(text) > 1000:
            raise AssertionError(
                f"a message of {len(text)} characters or several lines: {text[:200]!r}"
            ) from error
        return type(error).__name__

    if not (np.isfinite(terrain.heights).all() and math.isfinite(terrain.altitude(0.0, 0.0))):
        raise AssertionError("a map whose heights are not finite")
    return "map"


def run(count: int, seed: int, folder: Path) -> Counter[str]:
    """Return the outcomes of `count` cases.

    Raises AssertionError that names the first case that misbehaves.
    """
    outcomes: Counter[str] = Counter()
    files = MapFiles(folder / "f.png", folder / "f.txt")
    make: list[Callable[[random.Random], tuple[bytes, bytes]]] = [
        lambda rng: (plain_png(rng), mutated_txt(rng)),
        lambda rng: (mutated_png(rng), GOOD_TXT[rng.randrange(2)]),
        lambda rng: (mutated_png(rng), mutated_txt(rng)),
    ]

    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        png, txt = make[number % len(make)](rng)
        for file, data in ((files.png, png), (files.txt, txt)):
            file.unlink(
                missing_ok=True
            )  # writing over a file makes some file systems wait for the disk
            file.write_bytes(data)
        start = time.perf_counter()
        try:
            outcomes[check(files, rng)] += 1
        except Exception as error:  # no other error may come out
            raise AssertionError(
                f"case {number} of seed {seed}: {type(error).__name__}: {error}"
            ) from error
        if time.perf_counter() - start > SLOW_S:
            raise AssertionError(f"case {number} of seed {seed} took more than {SLOW_S} s")

    return outcomes


def plain_png(rng: random.Random) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in good_png(rng))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libpng reports every broken stream there
    folder = tempfile.mkdtemp(prefix="fuzz_terrain_")

    try:
        outcomes = run(options.count, options.seed, Path(folder))
    except AssertionError as error:
        print(f"{error}\nits files are in {folder}")
        return 1

    for file in Path(folder).iterdir():
        file.unlink()
    Path(folder).rmdir()
    print(
        f"{options.count} cases of seed {options.seed}: "
        + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items()))
    )

    return 0


if __name__ == "__main__":
    sys.exit(main())
