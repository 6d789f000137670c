# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Points in files: query points from text, and clouds in four formats.

The formats are PLY, PCD (both binary, little-endian), NumPy and text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, read_regular

MAX_BYTES = 100_000_000
MAX_POINTS = 1_000_000
CLOUD_ENDINGS = (".ply", ".pcd", ".npy", ".xyz")
_SEPARATORS = re.compile(r"[,;\s]+")


def write_cloud(points: NDArray[np.float32], path: StrPath) -> None:
    """Write (rows, columns, 3) float32 points, metres; the ending of `path` is the format.

    PCD stores the order as an organised cloud (HEIGHT rows, WIDTH columns), .npy the array. PLY and
    .xyz (a line `x y z` for each point, to 0.1 mm) list the points row by row. Raises ConfigError
    for another ending.
    """
    if points.ndim != 3 or points.shape[2] != 3:
        raise ValueError(f"points: shape {points.shape}, expected (rows, columns, 3)")

    path = Path(path)
    ending = path.suffix.lower()
    cloud = np.ascontiguousarray(points, "<f4")
    if ending == ".ply":
        _write_with_header(path, _ply_header(cloud), cloud)
    elif ending == ".pcd":
        _write_with_header(path, _pcd_header(cloud), cloud)
    elif ending == ".npy":
        with path.open("wb") as file:  # np.save by name would add an ending
            np.save(file, points)
    elif ending == ".xyz":
        np.savetxt(path, cloud.reshape(-1, 3), fmt="%.4f")
    else:
        raise ConfigError(
            f"{path}: clouds are written as {', '.join(CLOUD_ENDINGS)}, "
            f"not {ending or 'without ending'!r}"
        )


def _write_with_header(path: Path, header: str, cloud: NDArray[Any]) -> None:
    """Write a header, then the numbers."""
    with path.open("wb") as file:
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


def read_points(source: Path | TextIO) -> Floats:
    """Return x and y, (n, 2), from lines of two numbers, separated by comma, semicolon or blanks.

    Further columns, empty lines, lines that begin with # and one heading are skipped. Raises
    ConfigError with file and line.
    """
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
    if len(text) > MAX_BYTES or text.count("\n") > MAX_POINTS:
        raise ConfigError(
            f"{where}: more than {MAX_POINTS:,} lines or {MAX_BYTES:,} characters; read it in parts"
        )

    # lines with content, and their numbers
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if lines and not _is_number(_SEPARATORS.split(lines[0][1])[0]):
        lines = lines[1:]
    if not lines:
        raise ConfigError(f"{where}: no points, expected lines of x,y in metres")

    first = lines[0][1]
    delimiter = next((mark for mark in (",", ";") if mark in first), None)
    try:
        points = np.loadtxt(
            [line for _, line in lines], delimiter=delimiter, usecols=(0, 1), ndmin=2, comments=None
        )
        wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    except ValueError:
        is_wrong = [not _is_point(line, delimiter) for _, line in lines]
        wrong = np.array([is_wrong.index(True) if True in is_wrong else 0])
    if wrong.size:
        number, line = lines[int(wrong[0])]
        raise ConfigError(f"{where}, line {number}: {line[:60]!r}, expected x,y in finite metres")
    return points


def _is_point(line: str, delimiter: str | None) -> bool:
    """Return whether a line begins with two numbers."""
    values = line.split(delimiter)
    return len(values) >= 2 and all(_is_number(value) for value in values[:2])


def _is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
