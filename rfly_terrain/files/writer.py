# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writer of RflySim maps: heights to a png and a txt.

RflySim's Python and MATLAB tools read them alike.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.config.checks import check_unmasked
from rfly_common.errors import TerrainFileNotFound, TerrainFormatError
from rfly_common.files import (
    MAX_CELLS,
    StrPath,
    check_ending,
    check_folder,
    encoded_picture,
    sole_writer,
    write_whole,
)
from rfly_terrain.map_files.calibration import (
    MAX_TXT_BYTES,
    ThirdPixelRule,
    calibrate,
    parse_calibration,
)
from rfly_terrain.map_files.png_txt import read_start, with_superseded
from rfly_terrain.map_files.search import MapFiles, names_image

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

_COUNTS = 65_535
"""Largest value of a pixel."""
_ROWS_AT_ONCE = 64
_NUDGES_PIXELS = (0.0, 1e-6, 1e-3, 0.25)
"""Distances by which the third point is moved into its pixel until both rules, truncating and
rounding, read that pixel.
"""


def write_map(
    heights_up: ArrayLike,
    path: StrPath,
    *,
    origin_x: float,
    origin_y: float,
    step_x: float,
    step_y: float,
    gps: Sequence[float] | None = None,
    overwrite: bool = False,
    compression: int = 6,
) -> MapFiles:
    """Write NAME.png and NAME.txt and return their absolute paths.

    `path`: NAME, with or without extension. heights_up: (rows, columns) m, z up, at least 2 x 2;
    heights_up[r, c] lies at x_east = origin_x + r·step_x, y_north = origin_y + c·step_y (m; heights
    with a negative step are reversed, so that the map's steps are positive). The 65,536 counts of
    the png span the heights exactly; each height is off by at most half a count. gps: latitude,
    longitude (degrees) and altitude (m) of the map's origin, the last three numbers of the txt.
    compression: of the png, 0 … 9.

    Raises TerrainFormatError for heights that no map can hold, ConfigError for more rows or columns
    than a png can, FileExistsError unless `overwrite`.
    """
    heights = _checked(heights_up, step_x, step_y, origin_x, origin_y)
    if step_x < 0:
        origin_x += (heights.shape[0] - 1) * step_x
        step_x = -step_x
        heights = heights[::-1]
    if step_y < 0:
        origin_y += (heights.shape[1] - 1) * step_y
        step_y = -step_y
        heights = heights[:, ::-1]
    files = new_files(path, overwrite)

    lowest_cm = float(heights.min()) * 100
    count_cm = (float(heights.max()) * 100 - lowest_cm) / _COUNTS
    pixels = _pixels(heights, lowest_cm, count_cm)
    txt = _txt(
        pixels,
        lowest_cm,
        count_cm,
        (origin_y * 100, step_y * 100),
        (origin_x * 100, step_x * 100),
        gps,
        files.txt,
    )

    png = encoded_picture("png", pixels, [cv2.IMWRITE_PNG_COMPRESSION, compression])
    _replace_pair(files, png, txt.encode("ascii"))
    return files


def write_height_map(
    height_map: HeightMap, path: StrPath, *, overwrite: bool = False, compression: int = 6
) -> MapFiles:
    """Write a HeightMap with its geodetic origin; see `write_map`."""
    return write_map(
        height_map.heights,
        path,
        origin_x=height_map.origin_x,
        origin_y=height_map.origin_y,
        step_x=height_map.step_x,
        step_y=height_map.step_y,
        gps=height_map.geo_origin,
        overwrite=overwrite,
        compression=compression,
    )


def _checked(heights_up: ArrayLike, *numbers: float) -> NDArray[np.float32]:
    """Return the heights as float32; raise TerrainFormatError if no map can hold them."""
    check_unmasked("heights_up", heights_up, TerrainFormatError)
    heights = np.asarray(heights_up)
    if heights.ndim != 2 or min(heights.shape) < 2 or heights.size > MAX_CELLS:
        raise TerrainFormatError(
            f"heights: shape {heights.shape}, expected 2 x 2 to {MAX_CELLS:,} cells"
        )
    if not np.all(np.isfinite(numbers)) or numbers[0] == 0 or numbers[1] == 0:
        raise TerrainFormatError(
            f"steps {numbers[:2]} and origin {numbers[2:]} m: expected finite numbers, steps "
            "other than 0"
        )
    with np.errstate(over="ignore"):
        heights = heights.astype(np.float32, copy=False)
    # a NaN anywhere makes the minimum NaN
    if not np.isfinite(heights.min()) or not np.isfinite(heights.max()):
        row, column = np.argwhere(~np.isfinite(heights))[0]
        raise TerrainFormatError(
            f"heights: row {row}, column {column} is {heights[row, column]}, expected a finite "
            "height; fill the gaps first"
        )
    return heights


def new_files(path: StrPath, overwrite: bool) -> MapFiles:
    """Return the paths of a map's files, which may be written.

    Raises ConfigError for the ending of another kind of file and for a folder that is missing or
    may not be written, FileExistsError for a file that is there, also for a png that is the image
    of an occupancy map.
    """
    check_ending(path, ".png", ".txt")
    text = os.path.abspath(os.path.expanduser(os.fspath(path)))
    stem = Path(text[:-4] if text[-4:].lower() in (".png", ".txt") else text)
    files = MapFiles(stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".txt"))
    for file in (files.png, files.txt):
        check_folder(file)
        if not overwrite and file.exists():
            raise FileExistsError(
                f"{file} exists; choose another name or add --overwrite (in Python: overwrite=True)"
            )
    costs = stem.with_name(stem.name + ".yaml")
    is_image = files.png.exists() and names_image(costs, files.png.name)
    if is_image and not files.txt.exists():
        raise FileExistsError(
            f"{files.png} is the image of the occupancy map {costs.name}; choose another name"
        )
    return files


def _pixels(heights: NDArray[np.float32], lowest_cm: float, count_cm: float) -> NDArray[np.uint16]:
    """Return heights as 0 … 65535 from the lowest to the highest.

    Level ground is 32768, with a count of 0.
    """
    pixels = np.full(heights.shape, 32_768, np.uint16)
    if count_cm > 0:
        for start in range(0, heights.shape[0], _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            counts = (heights[rows].astype(np.float64) * 100 - lowest_cm) / count_cm
            pixels[rows] = np.clip(np.rint(counts), 0, _COUNTS)
    return pixels


def _txt(
    pixels: NDArray[np.uint16],
    lowest_cm: float,
    count_cm: float,
    x: tuple[float, float],
    y: tuple[float, float],
    gps: Sequence[float] | None,
    file: Path,
) -> str:
    """Return line 1 of the txt; x and y are (offset, scale) in cm.

    All three points lie on the quantised ground.
    """
    rows, columns = pixels.shape
    i3, j3 = _third_pixel(pixels)

    def z_cm(row: int, column: int) -> float:
        return lowest_cm + (int(pixels[row, column]) * count_cm if count_cm > 0 else 0.0)

    for nudge in _NUDGES_PIXELS:
        values = [
            *(x[0] + (columns - 1) * x[1], y[0] + (rows - 1) * y[1], z_cm(rows - 1, columns - 1)),
            *(x[0], y[0], z_cm(0, 0)),
            *(x[0] + (j3 + nudge) * x[1], y[0] + (i3 + nudge) * y[1], z_cm(i3, j3)),
            *([] if gps is None else gps),
        ]
        line = ",".join(np.format_float_positional(value, trim="-") for value in values) + "\n"
        points = parse_calibration(line.encode("ascii"), str(file))
        reads = (calibrate(points, pixels, str(file), rule) for rule in get_args(ThirdPixelRule))
        if all((read.third_row, read.third_column) == (i3, j3) for read in reads):
            return line

    raise TerrainFormatError(
        f"{file}: steps of {x[1] / 100:g} x {y[1] / 100:g} m are too small for "
        f"an origin of {x[0] / 100:g}, {y[0] / 100:g} m"
    )


def _third_pixel(pixels: NDArray[np.uint16]) -> tuple[int, int]:
    """Return the pixel that calibrates the z scale best.

    It is the farthest from a corner, or one off the edge that is nearly as far.
    """
    best = _farthest(pixels, pixels, 0)
    if min(pixels.shape) > 2:
        inner = _farthest(pixels, pixels[1:-1, 1:-1], 1)
        if 2 * inner[0] >= best[0]:
            best = inner
    return best[1], best[2]


def _farthest(
    pixels: NDArray[np.uint16], among: NDArray[np.uint16], margin: int
) -> tuple[int, int, int]:
    """Return (counts to the farther corner, row, column) of the lowest or highest pixel of `among`.

    `among` starts at margin.
    """
    corners = int(pixels[0, 0]), int(pixels[-1, -1])
    extremes = []
    for flat_index in (int(among.argmin()), int(among.argmax())):
        row, column = divmod(flat_index, among.shape[1])
        count = int(among[row, column])
        difference = max(abs(count - corner) for corner in corners)
        extremes.append((difference, row + margin, column + margin))
    return max(extremes)


def _replace_pair(files: MapFiles, png: bytes, txt: bytes) -> None:
    """Write both files so that a reader at any time finds the old map, the new one or an error.

    The png comes first and names the txt that it does not belong to. Writers take turns.
    """
    with sole_writer(files.png.parent, waits=True):
        try:
            old_txt = read_start(files.txt, MAX_TXT_BYTES)
        except (TerrainFileNotFound, TerrainFormatError):
            old_txt = txt
        write_whole(files.png, png if old_txt == txt else with_superseded(png, old_txt))
        write_whole(files.txt, txt)
