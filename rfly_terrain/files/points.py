"""Query points from text: lines of x,y."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TextIO

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.files import read_regular

MAX_BYTES, MAX_POINTS = 100_000_000, 1_000_000
_SEPARATORS = re.compile(r"[,;\s]+")


def read_points(source: Path | TextIO) -> Floats:
    """(n, 2) x and y from lines of two numbers, separated by comma, semicolon or blanks; further columns are skipped.

    Empty lines, lines that begin with # and one heading are skipped too. Raises ConfigError that names file and line.
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
        raise ConfigError(f"{where}: more than {MAX_POINTS:,} lines or {MAX_BYTES:,} characters; read it in parts")
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if lines and not _is_number(_SEPARATORS.split(lines[0][1])[0]):
        lines = lines[1:]
    if not lines:
        raise ConfigError(f"{where}: no points, expected lines of x,y in metres")
    first = lines[0][1]
    delimiter = "," if "," in first else ";" if ";" in first else None
    try:
        points = np.loadtxt([line for _, line in lines], delimiter=delimiter, usecols=(0, 1), ndmin=2, comments=None)
        wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    except ValueError:
        wrong = np.array([next((i for i, (_, line) in enumerate(lines) if not _is_point(line, delimiter)), 0)])
    if wrong.size:
        number, line = lines[int(wrong[0])]
        raise ConfigError(f"{where}, line {number}: {line[:60]!r}, expected x,y in finite metres")
    return points


def _is_point(line: str, delimiter: str | None) -> bool:
    values = line.split(delimiter)
    return len(values) >= 2 and all(_is_number(value) for value in values[:2])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
