# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Check of Arc/Info ASCII grids, whose numbers GDAL reads without a word about what is none.

A grid is a heading of names and numbers, then `nrows` x `ncols` numbers in any lines (Esri ASCII
raster format). GDAL takes `abc` as 0, `1.2.3` as 1.2, and a missing number as 0.
"""

from __future__ import annotations

import re

from rfly_common.errors import TerrainFormatError
from rfly_common.files import StrPath, open_regular

_NUMBER = re.compile(rb"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?nan", re.IGNORECASE)
_TOKEN = re.compile(rb"\S+")
_LONGEST_LINE = 64 << 20
"""Bytes of a line, at most: a row of ten million numbers is shorter."""
_COUNTS = ("ncols", "nrows")
_LENGTHS = ("cellsize", "dx", "dy")
_CORNERS = ({"xllcorner", "yllcorner"}, {"xllcenter", "yllcenter"})
"""Names that place a grid; GDAL takes 0, 0 for an incomplete pair."""


def check_ascii_grid(path: StrPath) -> None:
    """Raise TerrainFormatError, with the place, for a grid that is not what its heading says."""
    heading: dict[str, float] = {}
    count = 0
    expected = 0
    with open_regular(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
            words = line.split()
            if not count and words and words[0][:1].isalpha() and not _NUMBER.fullmatch(words[0]):
                _read_heading(path, number, words, heading)
                continue

            expected = round(heading.get("ncols", 0) * heading.get("nrows", 0))
            wrong = next((k for k, word in enumerate(words) if not _NUMBER.fullmatch(word)), None)
            if wrong is not None:
                raise _fault(path, number, line, wrong, "is no number")
            if count + len(words) > expected:
                raise _fault(
                    path,
                    number,
                    line,
                    expected - count,
                    f"is one number too many: expected {expected:,} for {heading.get('ncols'):g} "
                    f"columns x {heading.get('nrows'):g} rows",
                )
            count += len(words)

    if count != expected or not count:
        raise TerrainFormatError(
            f"{path}: ends after {count:,} numbers, expected {expected:,} for "
            f"{heading.get('ncols', 0):g} columns x {heading.get('nrows', 0):g} rows"
        )
    if not any(pair <= heading.keys() for pair in _CORNERS):
        raise TerrainFormatError(
            f"{path}: does not say where it lies; expected xllcorner and yllcorner, or xllcenter "
            "and yllcenter"
        )


def _read_heading(
    path: StrPath, number: int, words: list[bytes], heading: dict[str, float]
) -> None:
    """Add a line of the heading to it."""
    name = words[0].decode("ascii", "replace").lower()
    if len(words) != 2 or not _NUMBER.fullmatch(words[1]):
        text = b" ".join(words)[:60].decode("utf-8", "replace")
        raise TerrainFormatError(f"{path}, line {number}: {text!r}, expected a name and a number")
    value = float(words[1].replace(b",", b"."))
    if name in _LENGTHS and not value > 0:
        raise TerrainFormatError(
            f"{path}, line {number}: {name} {value:g}, expected a length above 0; the first row "
            "is the northern one"
        )
    if name in _COUNTS and not value.is_integer():
        raise TerrainFormatError(f"{path}, line {number}: {name} {value:g}, expected no fraction")
    if name in heading:
        raise TerrainFormatError(f"{path}, line {number}: {name} a second time")
    heading[name] = value


def _fault(path: StrPath, number: int, line: bytes, word: int, text: str) -> TerrainFormatError:
    """Return the error about a word of a line, the first is 0."""
    match = list(_TOKEN.finditer(line))[word]
    shown = match.group()[:40].decode("utf-8", "replace")
    return TerrainFormatError(
        f"{path}, line {number}, column {match.start() + 1}: {shown!r} {text}"
    )
