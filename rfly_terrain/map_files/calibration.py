# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Calibration of a map, NAME.txt: three points that fix pixel positions and height scale.

The points are in centimetres. Axes: x north, y east, z up, all in cm. Columns run along x, rows
along y, and the first pixel is the left-bottom point. Every formula is evaluated in the order of
RflySim's own tools, so that a quotient of 6.999… reads the same pixel here.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainFormatError
from rfly_common.geodesy import GeoPoint, fits_geo_point
from rfly_common.kernels.parallel import in_chunks

KERNELS = "numba"
"""Module whose import means that this process computes compiled anyway."""

ThirdPixelRule = Literal["truncate", "round"]
"""Rule by which the third point's quotient becomes a pixel: the Python tool truncates, MATLAB
rounds (a tie away from zero).
"""
TxtRule = Literal["python", "matlab"]
"""Rule for the content of the txt: Python reads line 1 with exactly 9 or 12 values, MATLAB the
first nine numbers.
"""

MAX_TXT_BYTES = 65_536
"""Size of the part that is read, at most; nine numbers need about a hundred bytes."""
MIN_COUNT_DIFFERENCE = 10
"""Counts between two pixels, below or at which no z scale is computed from them."""

Point = tuple[float, float, float]
"""Coordinates x, y, z, cm."""

_FIELDS = (
    *("x1 of the right-top point", "y1 of the right-top point", "z1 of the right-top point"),
    *("x2 of the left-bottom point", "y2 of the left-bottom point", "z2 of the left-bottom point"),
    *("x3 of the third point", "y3 of the third point", "z3 of the third point"),
    *("latitude", "longitude", "altitude"),
)
_MATLAB_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?", re.ASCII)
_BLOCK = 16_384
"""Pixels that are looked up at once."""
_CHUNK = 262_144
"""Pixels that a thread handles at once."""
_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class CalibrationPoints:
    """Numbers of a txt, in cm, x north, y east, z up."""

    right_top_cm: Point
    left_bottom_cm: Point
    third_cm: Point
    gps: Point | None = None
    """Latitude and longitude of the map's origin, deg, and its altitude, m.

    None if the txt has nine numbers only.
    """

    @property
    def geo_origin(self) -> GeoPoint | None:
        """GPS values if they fit latitude, longitude (degrees) and altitude (m), else None."""
        return self.gps if self.gps is not None and fits_geo_point(self.gps) else None


@dataclass(frozen=True)
class Calibration:
    """Meaning of a txt for the pixels of its png.

    Names are those of RflySim's tools; cm, and cm a pixel or a count.
    """

    points: CalibrationPoints
    rows: int
    columns: int
    pos_offset_x_cm: float
    pos_scale_x_cm: float
    """Step of a column, cm; may be negative, never 0."""
    pos_offset_y_cm: float
    pos_scale_y_cm: float
    z_offset_cm: float
    """Height of the first pixel, z2, cm."""
    z_scale_cm: float
    """Height of a count, cm; may be negative or 0."""
    z_scale_from: Literal["left-bottom", "right-top", "default"]
    """Corner that calibrates the z scale with the third point; default: no more than 10 counts
    apart, so 1 cm.
    """
    count_left_bottom: int
    third_row: int
    third_column: int

    @property
    def x_max_m(self) -> float:
        """Absolute x1, m: position of the right-top point, not half the size."""
        return abs(self.points.right_top_cm[0]) / 100

    @property
    def y_max_m(self) -> float:
        """Absolute y1, m: position of the right-top point, not half the size."""
        return abs(self.points.right_top_cm[1]) / 100


def parse_calibration(data: bytes, file: str, rule: TxtRule = "python") -> CalibrationPoints:
    """Return the numbers of a txt. Raises TerrainFormatError with line, value and field."""
    if data[:3] == b"\xef\xbb\xbf" or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TerrainFormatError(
            f"{file}, line 1: begins with a byte order mark ({data[:3].hex(' ')}), which "
            "RflySim's tools cannot read; save it as plain ASCII or as UTF-8 without BOM"
        )
    if not data.strip():
        raise TerrainFormatError(
            f"{file}: is empty, expected 9 or 12 numbers in cm, separated by commas, on line 1"
        )
    return _parse_first_line(data, file) if rule == "python" else _parse_first_nine(data, file)


def _parse_first_line(data: bytes, file: str) -> CalibrationPoints:
    """Return the points of line 1, as the Python tool reads them."""
    line = re.split(rb"[\r\n]", data, maxsplit=1)[0]
    if len(line) >= MAX_TXT_BYTES:
        raise TerrainFormatError(
            f"{file}, line 1: longer than {MAX_TXT_BYTES} bytes, expected 9 or 12 numbers"
        )
    try:
        fields = line.decode("utf-8").split(",")
    except UnicodeDecodeError as error:
        raise TerrainFormatError(
            f"{file}, line 1: byte {error.start + 1} ({line[error.start]:#04x}) is no text, "
            "expected numbers separated by commas"
        ) from None
    if len(fields) not in (9, 12):
        hint = ""
        if len(fields) > 1 and not fields[-1].strip():
            hint = "; a trailing comma counts as one value more"
        count = _count(len(fields), "value")
        raise TerrainFormatError(
            f"{file}, line 1: {count}, expected 9 or 12 separated by commas{hint}"
        )

    values = []
    for index, text in enumerate(fields):
        try:
            values.append(float(text))
        except ValueError:
            raise _not_a_number(file, "line 1, ", index, text) from None
    return _points(values, fields, file, "line 1, ")


def _parse_first_nine(data: bytes, file: str) -> CalibrationPoints:
    """Return the points of the first nine numbers, as the MATLAB tool reads them."""
    texts = re.split(r"\s*,\s*|\s+", data.decode("latin-1").strip(), maxsplit=9, flags=re.ASCII)[:9]
    values = []
    for index, text in enumerate(texts):
        if not _MATLAB_NUMBER.fullmatch(text) and text.lstrip("+-").lower() not in ("nan", "inf"):
            raise _not_a_number(file, "", index, text)
        values.append(float(text.replace("d", "e").replace("D", "e")))
    if len(values) < 9:
        raise TerrainFormatError(f"{file}: {_count(len(values), 'number')}, expected at least 9")
    return _points(values, texts, file, "")


def _points(values: list[float], texts: list[str], file: str, line: str) -> CalibrationPoints:
    """Return the points with these values; raise TerrainFormatError if one is not finite."""
    for index, value in enumerate(values):
        if not math.isfinite(value):
            raise TerrainFormatError(
                f"{file}, {line}value {index + 1} ({_FIELDS[index]}): {_short(texts[index])} "
                "is not finite, expected a number in cm"
            )
    x1, y1, z1, x2, y2, z2, x3, y3, z3 = values[:9]
    gps = (values[9], values[10], values[11]) if len(values) == 12 else None
    return CalibrationPoints((x1, y1, z1), (x2, y2, z2), (x3, y3, z3), gps)


def calibrate(
    points: CalibrationPoints,
    pixels: NDArray[Any],
    file: str,
    third_pixel: ThirdPixelRule = "truncate",
) -> Calibration:
    """Return the calibration of `pixels` (rows, columns), unsigned integers.

    Raises TerrainFormatError if the points contradict the pixels.
    """
    rows, columns = pixels.shape
    if rows < 2 or columns < 2:
        raise TerrainFormatError(
            f"{file}: the png has {_count(rows, 'row')} and {_count(columns, 'column')}, "
            "expected at least 2 of each"
        )
    x1, y1, z1 = points.right_top_cm
    x2, y2, z2 = points.left_bottom_cm
    x3, y3, z3 = points.third_cm
    scale_x = _scale(file, "x", x1, x2, columns)
    scale_y = _scale(file, "y", y1, y2, rows)

    third_column = _third_index(file, "x3", "column", x3, (x3 - x2) / scale_x, columns, third_pixel)
    third_row = _third_index(file, "y3", "row", y3, (y3 - y2) / scale_y, rows, third_pixel)

    # the corner whose count differs more from the third point's
    left_bottom = int(pixels[0, 0])
    right_top = int(pixels[rows - 1, columns - 1])
    third = int(pixels[third_row, third_column])
    corner: Literal["left-bottom", "right-top", "default"]
    if abs(third - right_top) <= abs(third - left_bottom):
        corner = "left-bottom"
        corner_z = z2
        difference = left_bottom - third
    else:
        corner = "right-top"
        corner_z = z1
        difference = right_top - third

    if abs(difference) > MIN_COUNT_DIFFERENCE:
        z_scale = (corner_z - z3) / difference
    else:
        corner = "default"
        z_scale = 1.0

    extreme = abs(z2) + 65_535 * abs(z_scale)
    if not extreme / 100 <= _FLOAT32_MAX:  # also refuses a scale that overflowed to infinity
        raise TerrainFormatError(
            f"{file}: heights of up to {extreme / 100:.3g} m, more than float32 can hold; "
            "z1, z2, z3 are in cm"
        )

    return Calibration(
        points=points,
        rows=rows,
        columns=columns,
        pos_offset_x_cm=x2,
        pos_scale_x_cm=scale_x,
        pos_offset_y_cm=y2,
        pos_scale_y_cm=scale_y,
        z_offset_cm=z2,
        z_scale_cm=z_scale,
        z_scale_from=corner,
        count_left_bottom=left_bottom - 32_768,
        third_row=third_row,
        third_column=third_column,
    )


def heights_up(
    calibration: Calibration, pixels: NDArray[Any], dtype: type[np.floating[Any]] = np.float32
) -> NDArray[Any]:
    """Return heights in metres, z up, of pixels of any shape.

    A height is (z2 + (k − kL)·sz) / 100, computed in float64 and rounded once.
    """
    heights = np.empty(pixels.shape, dtype)
    flat_pixels = np.ascontiguousarray(pixels).reshape(-1)
    flat_heights = heights.reshape(-1)
    flat_pixels.flags.writeable = False  # numba compiles once for one kind of array

    fill: Callable[[NDArray[Any], NDArray[Any]], None]
    if KERNELS in sys.modules and dtype is np.float32 and pixels.dtype in (np.uint8, np.uint16):
        from rfly_terrain.map_files.pixel_kernel import heights_from_pixels

        first = float(calibration.count_left_bottom + 32_768)
        fill = functools.partial(
            heights_from_pixels, first, calibration.z_offset_cm, calibration.z_scale_cm
        )
    else:
        fill = functools.partial(_look_up, _height_of_pixel(calibration, pixels.dtype, dtype))

    def work(start: int, stop: int) -> None:
        fill(flat_pixels[start:stop], flat_heights[start:stop])

    in_chunks(work, flat_pixels.size, _CHUNK)
    return heights


def _height_of_pixel(
    calibration: Calibration, pixels: np.dtype[Any], dtype: type[np.floating[Any]]
) -> NDArray[Any]:
    """Return the height of each value that a pixel can have."""
    counts = np.arange(1 << (8 * pixels.itemsize)) - (calibration.count_left_bottom + 32_768)
    return ((calibration.z_offset_cm + counts * calibration.z_scale_cm) / 100).astype(dtype)


def _look_up(table: NDArray[Any], pixels: NDArray[Any], heights: NDArray[Any]) -> None:
    """Fill in heights from the table.

    It works in blocks, because np.take widens its indices to 8 bytes each.
    """
    for start in range(0, pixels.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        # no pixel is ever clipped; "raise" is slower
        np.take(table, pixels[block], out=heights[block], mode="clip")


def _scale(file: str, axis: str, high: float, low: float, pixels: int) -> float:
    """Return cm a pixel along an axis; raise TerrainFormatError if there is no usable scale."""
    scale = (high - low) / (pixels - 1)
    step_m = abs(scale) / 100
    if high == low or step_m == 0:
        raise TerrainFormatError(
            f"{file}: no extent along {axis}: {axis}1 = {high:.17g} and {axis}2 = {low:.17g} cm "
            "must differ"
        )
    if not (math.isfinite(scale) and math.isfinite(1 / step_m)):
        raise TerrainFormatError(
            f"{file}: the extent along {axis} from {low:.17g} to {high:.17g} cm cannot be divided "
            f"into {pixels} pixels"
        )
    return scale


def _third_index(
    file: str, name: str, what: str, value: float, quotient: float, size: int, rule: ThirdPixelRule
) -> int:
    """Return the row or column of the third point; raise TerrainFormatError outside the map."""
    index = _cut(quotient, rule) if math.isfinite(quotient) else -1
    if not 0 <= index < size:
        raise TerrainFormatError(
            f"{file}: the third point lies outside the map: {name} = {value:.17g} cm is {what} "
            f"{quotient:.6g}, expected 0 … {size - 1}"
        )
    return index


def _cut(quotient: float, rule: ThirdPixelRule) -> int:
    """Return the pixel of a quotient by a rule."""
    whole = int(quotient)
    if rule == "round" and abs(quotient - whole) >= 0.5:
        return whole + (1 if quotient > 0 else -1)
    return whole


def _not_a_number(file: str, line: str, index: int, text: str) -> TerrainFormatError:
    """Return an error: a value is no number."""
    return TerrainFormatError(
        f"{file}, {line}value {index + 1} ({_FIELDS[index]}): {_short(text)} is not a number, "
        "expected one in cm such as -12500 or 1.5e3"
    )


def _short(text: str) -> str:
    """Return a text in quotes, at most 40 characters."""
    shown = repr(text.strip())
    return shown if len(shown) <= 40 else shown[:39] + "…"


def _count(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural if needed."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
