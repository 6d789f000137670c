# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Points in files: query points from text, and clouds in four formats.

The formats are PLY, PCD (both binary, little-endian), NumPy and text.
"""

from __future__ import annotations

import csv
import enum
import io
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import check_unmasked
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, open_whole, read_regular, write_array

MAX_BYTES = 100_000_000
MAX_POINTS = 1_000_000
CLOUD_ENDINGS = (".ply", ".pcd", ".npy", ".xyz")
_DECIMAL_COMMA = re.compile(r"^([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)$")


def write_cloud(points: NDArray[np.float32], path: StrPath) -> None:
    """Write (rows, columns, 3) float32 points, metres; the ending of `path` is the format.

    PCD stores the order as an organised cloud (HEIGHT rows, WIDTH columns), .npy the array. PLY and
    .xyz (a line `x y z` for each point, to 0.1 mm) list the points row by row. Raises ConfigError
    for another ending.
    """
    if points.ndim != 3 or points.shape[2] != 3:
        raise ValueError(f"points: shape {points.shape}, expected (rows, columns, 3)")

    check_unmasked("points", points)

    path = Path(path)
    ending = path.suffix.lower()
    cloud = np.ascontiguousarray(points, "<f4")
    if ending == ".ply":
        _write_with_header(path, _ply_header(cloud), cloud)
    elif ending == ".pcd":
        _write_with_header(path, _pcd_header(cloud), cloud)
    elif ending == ".npy":
        write_array(path, points)
    elif ending == ".xyz":
        with open_whole(path) as file:
            np.savetxt(file, cloud.reshape(-1, 3), fmt="%.4f")
    else:
        raise ConfigError(
            f"{path}: clouds are written as {', '.join(CLOUD_ENDINGS)}, "
            f"not {ending or 'without ending'!r}"
        )


def _write_with_header(path: Path, header: str, cloud: NDArray[Any]) -> None:
    """Write a header, then the numbers."""
    with open_whole(path) as file:
        file.write(header.encode("ascii"))
        file.write(cloud.data)


def _ply_header(cloud: NDArray[Any]) -> str:
    """Return the header of a PLY file, http://paulbourke.net/dataformats/ply/."""
    return (
        "ply\nformat binary_little_endian 1.0\n"
        f"element vertex {cloud.size // 3}\n"
        "property float x\nproperty float y\nproperty float z\nend_header\n"
    )


def _pcd_header(cloud: NDArray[Any]) -> str:
    """Return the header of a PCD file, v0.7, Point Cloud Library."""
    rows, columns, _ = cloud.shape
    return (
        "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n"
        "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {columns}\nHEIGHT {rows}\nVIEWPOINT 0 0 0 1 0 0 0\n"
        f"POINTS {rows * columns}\nDATA binary\n"
    )


class Columns(enum.Enum):
    """Meaning of the two columns of a table of points."""

    FIRST_TWO = "the first two columns"
    X_Y = "x and y"
    EAST_NORTH = "east and north"
    LATITUDE_LONGITUDE = "lat and lon"


_NAMES = {
    Columns.X_Y: (("x",), ("y",)),
    Columns.EAST_NORTH: (("east", "easting"), ("north", "northing")),
    Columns.LATITUDE_LONGITUDE: (("lat", "latitude"), ("lon", "lng", "long", "longitude")),
}
"""Names of the first and of the second column of a pair, in lower case."""
_HEIGHT_NAMES = ("z", "up", "alt", "altitude", "ele", "elevation", "height")
_UNIT = re.compile(r"(\s*[\[(](m|°|deg|degrees?)[\])]|[_\s](m|deg))$")
"""Unit at the end of a column's name, which says nothing new."""
_MOST_NAMED = 8
"""Columns that a note names."""


class PointTable(NamedTuple):
    """Points of a text with columns."""

    points: Floats
    """Numbers (n, 2), or (n, 3) with heights."""
    columns: Columns
    notes: tuple[str, ...]
    """Sentences about columns that are not used."""


def read_points(source: Path | TextIO, *, geodetic: bool = False) -> PointTable:
    """Return the points of a text file; see `parse_points`. Raises ConfigError."""
    where = str(source) if isinstance(source, Path) else "stdin"
    try:
        if isinstance(source, Path):
            text = read_regular(source, MAX_BYTES).decode("utf-8-sig")
        else:
            text = source.read(MAX_BYTES + 1)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{where}: is no text ({error.reason} at byte {error.start}), expected lines of x,y"
        ) from None
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: more than {MAX_BYTES:,} characters; read it in parts")
    return parse_points(text, where, geodetic=geodetic)


def parse_points(
    text: str,
    name: str,
    *,
    heights: bool = False,
    geodetic: bool = False,
    most: int = MAX_POINTS,
) -> PointTable:
    """Return the points of a text with columns.

    Columns are separated by commas, semicolons, tabs or blanks; with the latter three a number may
    have a decimal comma. A heading, also one behind #, names them. If it names several pairs, x and
    y count, or latitude and longitude if `geodetic`. Without a heading the first two columns count,
    and there are no heights. Empty lines and comments (#) are skipped. Errors begin with `name`.
    Raises ConfigError with file and line.
    """
    rows = _rows(text.removeprefix("\ufeff"), name)
    comment: list[str] = []
    heading: list[str] = []
    chosen = Columns.FIRST_TWO
    indices = [0, 1]
    width = 0
    points: list[list[float]] = []

    for line, cells in rows:
        if cells[0].startswith("#"):
            comment = [cells[0].removeprefix("#").strip(), *cells[1:]]
            comment = comment if comment[0] else comment[1:]
            continue

        # a heading, or a comment that is one
        if not width:
            is_heading = _number(cells[0]) is None
            names = _column_names(cells if is_heading else comment)
            pair = _named_pair(names, geodetic)
            if is_heading and pair is None:
                raise ConfigError(
                    f"{name}:{line}: expected the columns x and y, or lat and lon, "
                    f"not {', '.join(cells)[:60]!r}"
                )
            if pair is not None and (is_heading or len(names) == len(cells)):
                chosen, indices = pair
                heading = names
                height = next((names.index(word) for word in _HEIGHT_NAMES if word in names), None)
                if heights and height is not None:
                    indices = [*indices, height]
            width = len(cells)
            if is_heading:
                continue

        points.append(_values(cells, indices, width, f"{name}:{line}"))
        if chosen is Columns.LATITUDE_LONGITUDE and abs(points[-1][0]) > 90.0:
            raise ConfigError(f"{name}:{line}: {cells[indices[0]]} is no latitude in degrees")
        if chosen is Columns.LATITUDE_LONGITUDE and abs(points[-1][1]) > 360.0:
            raise ConfigError(f"{name}:{line}: {cells[indices[1]]} is no longitude in degrees")
        if len(points) > most:
            raise ConfigError(f"{name}: more than {most:,} points")

    if not points:
        raise ConfigError(f"{name}: no points, expected lines of x,y in metres")
    labels = heading or [""] * width
    unused = [
        label or f"number {index + 1}" for index, label in enumerate(labels) if index not in indices
    ]
    return PointTable(np.array(points, float), chosen, _notes(name, unused))


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that has any."""
    content = re.search(r"^[^\S\n]*[^\s#].*", text, re.MULTILINE)
    first = content[0] if content else ""
    delimiter = next((mark for mark in ";\t," if mark in first), " ")
    if delimiter == " ":
        text = text.replace("\t", " ")
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        skipinitialspace=delimiter != "\t",
        strict=True,
    )
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            while cells and not cells[-1]:
                cells.pop()
            if not cells:
                continue
            if delimiter != "," and not cells[0].startswith("#"):
                cells = [_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells]
            yield reader.line_num, cells
    except csv.Error as error:
        raise ConfigError(f"{name}:{reader.line_num}: {error}") from None


def _column_names(cells: Sequence[str]) -> list[str]:
    """Return the names of columns in lower case, without units."""
    names = [cell.strip("'\" ").lower() for cell in cells]
    return [_UNIT.sub("", name) for name in names]


def _named_pair(names: list[str], geodetic: bool) -> tuple[Columns, list[int]] | None:
    """Return the pair of columns that counts, and where its two are; None without one."""
    first = Columns.LATITUDE_LONGITUDE
    for columns in sorted(_NAMES, key=lambda each: geodetic and each is not first):
        places = [
            [index for index, name in enumerate(names) if name in words]
            for words in _NAMES[columns]
        ]
        if all(len(place) == 1 for place in places):
            return columns, [place[0] for place in places]
    return None


def _values(cells: list[str], indices: list[int], width: int, where: str) -> list[float]:
    """Return the numbers of a line."""
    if len(cells) > width:
        raise ConfigError(f"{where}: {len(cells)} columns, expected {width} as in the first line")
    values = [_number(cells[index]) if index < len(cells) else None for index in indices]
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    if len(numbers) < len(indices):
        count = "three" if len(indices) == 3 else "two"
        raise ConfigError(f"{where}: {','.join(cells)[:60]!r} holds no {count} finite numbers")
    return numbers


def _number(text: str) -> float | None:
    """Return a number, or None."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _notes(name: str, unused: list[str]) -> tuple[str, ...]:
    """Return a sentence that names the columns that are not used."""
    if not unused:
        return ()
    names = ", ".join(unused[:_MOST_NAMED]) + (", …" if len(unused) > _MOST_NAMED else "")
    several = len(unused) > 1
    return (f"{name}: the column{'s' * several} {names} {'are' if several else 'is'} not used",)
