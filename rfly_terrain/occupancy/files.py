# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Occupancy map files: YAML and image of ROS's map_server, and the data of an OccupancyGrid.

Files come from anywhere: sizes are checked before anything is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats
from rfly_common.config.documents import check_schema, load_schema, parse_mapping
from rfly_common.config.marked_yaml import Document
from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath, read_regular
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.files.png_header import SIGNATURE, picture_chunks
from rfly_terrain.occupancy.cell_grid import checked_size, number, numbers, resolution_of

MAX_YAML_BYTES = 100_000
MAX_IMAGE_BYTES = 256 << 20
_ROWS_AT_ONCE = 256
LARGEST_YAW = 1e-6
"""Largest turn of a grid that can be a map, whose axes are those of the world, rad."""

_PGM_START = re.compile(
    rb"P([25])((?:\s|#[^\n]*\n)+)(\d{1,9})((?:\s|#[^\n]*\n)+)(\d{1,9})((?:\s|#[^\n]*\n)+)(\d{1,5})\s"
)
_PGM_HEADER_BYTES = 10_000


FREE_THRESH = 0.25
OCCUPIED_THRESH = 0.65
MODES = ("trinary", "scale", "raw")
_OCCUPIED = 0
_FREE = 254
_UNKNOWN = 205
"""Grey levels of a saved map."""


def image_to_cells(
    pixels: ArrayLike,
    negate: Any = 0,
    occupied_thresh: float = OCCUPIED_THRESH,
    free_thresh: float = FREE_THRESH,
    mode: str = "trinary",
) -> NDArray[np.int8]:
    """Convert (rows, columns) of an image 0 … 255, black is occupied, to int8 0 … 100, −1 unknown.

    Pixels (rows, columns), or with 3 colour channels, whose mean counts, or with 2 or 4, the last
    of which is alpha. The mode "trinary" knows 0, 100 and −1, "scale" also what lies between (and
    −1 where the image is transparent), "raw" takes grey levels to 100 as they are. `negate` 1:
    white is occupied. Raises ValueError for thresholds that are not 0 ≤ free_thresh <
    occupied_thresh ≤ 1, and for other shapes and modes.
    """
    image = numbers(pixels, "pixels")
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 2, 3, 4)):
        raise ValueError(
            f"pixels: the shape {image.shape}, "
            "expected (rows, columns) or that with 1 to 4 channels"
        )
    if image.size and (image.min() < 0 or image.max() > 255):
        raise ValueError(f"pixels: {image.min():g} … {image.max():g}, expected 0 … 255")

    occupied = number(occupied_thresh, "occupied_thresh", at_least=0.0)
    free = number(free_thresh, "free_thresh", at_least=0.0)
    if not free < occupied <= 1:
        raise ValueError(
            f"free_thresh {free:g}, occupied_thresh {occupied:g}: expected 0 ≤ free < occupied ≤ 1"
        )

    if mode not in MODES:
        raise ValueError(f"mode: {mode!r}, expected {', '.join(MODES)}")
    if negate not in (0, 1):
        raise ValueError(f"negate: {negate!r}, expected 0 or 1")

    # grey levels
    alpha = image[..., -1] if image.ndim == 3 and image.shape[2] in (2, 4) else None
    grey = image
    if image.ndim == 3:
        grey = image[..., : image.shape[2] - (alpha is not None)].mean(axis=2)

    if mode == "raw":
        return np.where(grey < 100.5, np.floor(grey + 0.5), -1).astype(np.int8)

    # costs
    p = grey / 255.0 if negate else (255.0 - grey) / 255.0
    if mode == "scale":
        between = np.floor(100.0 * (p - free) / (occupied - free) + 0.5)
        if alpha is not None:
            p = np.where(alpha < 255, np.nan, p)
            between = np.where(alpha < 255, -1, between)
    else:
        between = np.full(p.shape, -1.0)
    return np.where(p > occupied, 100, np.where(p < free, 0, between)).astype(np.int8)


def cells_to_image(cells: ArrayLike) -> NDArray[np.uint8]:
    """Convert costs −1 … 100 to uint8: occupied (≥ 65) 0, free (0 … 25) 254, unknown 205."""
    values = numbers(cells, "cells")
    if values.ndim != 2:
        raise ValueError(f"cells: the shape {values.shape}, expected (rows, columns)")
    free = (values >= 0) & (values <= 25)
    return np.where(values >= 65, _OCCUPIED, np.where(free, _FREE, _UNKNOWN)).astype(np.uint8)


class MapImage(NamedTuple):
    """Contents of a map's files."""

    cells: NDArray[np.int8]
    """Costs, (rows, columns), 0 … 100, −1 unknown; top row first."""
    resolution: float
    """Cells per metre."""
    origin: tuple[float, float]
    """Bottom-left corner, m."""


def occupied(cells: NDArray[Any], threshold: float, unknown: bool) -> Bools:
    """Convert costs to cells: occupied from the threshold up; negative ones become `unknown`."""
    return np.where(cells < 0, unknown, cells >= threshold)


def from_message(
    info: Mapping[str, Any], data: ArrayLike, threshold: float, unknown: bool
) -> tuple[Bools, float, tuple[float, float]]:
    """Return (cells, cells per metre, bottom-left corner) of a nav_msgs/OccupancyGrid."""
    values, resolution, origin = values_of_message(info, data)
    return occupied(values, number(threshold, "threshold"), unknown), resolution, origin


def values_of_message(
    info: Mapping[str, Any], data: ArrayLike
) -> tuple[Floats, float, tuple[float, float]]:
    """Return (values, top row first, cells per metre, bottom-left corner) of an OccupancyGrid."""
    rows, columns = checked_size(info["height"], info["width"])
    values = numbers(data, "data").reshape(-1)
    if values.size != rows * columns:
        raise ValueError(
            f"data: {values.size} values for {rows} rows x {columns} columns, "
            f"expected {rows * columns}"
        )

    x, y, yaw = numbers(info["origin"], "origin").reshape(-1).tolist()
    check_yaw(yaw)
    resolution = resolution_of(info["resolution"], "resolution")
    return values.reshape(rows, columns)[::-1], resolution, (x, y)


def check_yaw(yaw: float) -> None:
    if not abs(yaw) <= LARGEST_YAW:
        raise ValueError(
            f"origin: the grid is turned by {yaw:g} rad, "
            "expected 0: a map's axes are those of the world"
        )


def load_map(path: StrPath) -> MapImage:
    """Read a map from its yaml and the image that this names.

    Raises TerrainFileNotFound, and TerrainFormatError that names file, line and key.
    """
    file = Path(path)
    with terrain_file_errors(file):
        data = read_regular(file, MAX_YAML_BYTES)
    document = _parse(data, str(file))
    values = document.value
    x, y, yaw = [*values["origin"], 0.0][:3]
    pixels = _read_image(file.parent / values["image"])

    # cells, some rows at a time
    try:
        check_yaw(yaw)
        resolution = resolution_of(values["resolution"], "resolution")
        cells = np.empty(pixels.shape[:2], np.int8)
        for start in range(0, len(cells), _ROWS_AT_ONCE):
            rows = pixels[start : start + _ROWS_AT_ONCE]
            cells[start : start + _ROWS_AT_ONCE] = image_to_cells(
                rows / 257.0 if rows.dtype == np.uint16 else rows,
                values.get("negate", 0),
                values.get("occupied_thresh", OCCUPIED_THRESH),
                values.get("free_thresh", FREE_THRESH),
                values.get("mode", "trinary"),
            )
    except ValueError as error:
        raise TerrainFormatError(f"{file}: {error}") from None
    return MapImage(cells, resolution, (float(x), float(y)))


def save_map(
    path: StrPath, cells: Bools, cell_size: float, origin: Sequence[float], image_format: str
) -> None:
    """Write `path` with the ending .yaml and its image next to it; `cell_size` in metres."""
    image = cells_to_image(cells * np.int8(100))
    _save(Path(path).with_suffix(".yaml"), image, "trinary", cell_size, origin, image_format)


def save_costs(
    path: StrPath,
    costs: NDArray[np.int8],
    cell_size: float,
    origin: Sequence[float],
    image_format: str = "png",
) -> None:
    """Write costs −1 … 100, top row first, in the mode "raw", which map_server reads unchanged.

    Grey levels are costs, 255 is unknown. The yaml keeps the ending of `path` where it is .yml.
    """
    file = Path(path) if Path(path).suffix == ".yml" else Path(path).with_suffix(".yaml")
    image = np.where(costs < 0, 255, costs).astype(np.uint8)
    _save(file, image, "raw", cell_size, origin, image_format)


def _save(
    file: Path,
    image: NDArray[np.uint8],
    mode: str,
    cell_size: float,
    origin: Sequence[float],
    image_format: str,
) -> None:
    if image_format not in ("pgm", "png"):
        raise ValueError(f"image_format: {image_format!r}, expected 'pgm' or 'png'")

    # the image
    if image_format == "pgm":
        encoded = b"P5\n%d %d\n255\n" % image.shape[::-1] + image.tobytes()
    else:
        encoded = cv2.imencode(".png", image)[1].tobytes()
    file.with_suffix(f".{image_format}").write_bytes(encoded)

    # the yaml
    keys = {
        "image": f"{file.stem}.{image_format}",
        "mode": mode,
        "resolution": cell_size,
        "origin": [float(origin[0]), float(origin[1]), 0.0],
        "negate": 0,
        "occupied_thresh": OCCUPIED_THRESH,
        "free_thresh": FREE_THRESH,
    }
    file.write_text(yaml.safe_dump(keys, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _parse(data: bytes, file: str) -> Document:
    try:
        document = parse_mapping(data, file, "image, resolution and origin")
        check_schema(document, load_schema("rfly_terrain", "map_server"))
    except ConfigError as error:
        raise TerrainFormatError(str(error)) from None
    return document


def _read_image(file: Path) -> NDArray[Any]:
    """Read grey levels 0 … 255, or 0 … 65535 as uint16, with or without channels."""
    with terrain_file_errors(file):
        data = read_regular(file, MAX_IMAGE_BYTES)
    encoded = np.frombuffer(data, np.uint8)
    if data.startswith(SIGNATURE):
        header, encoded = picture_chunks(encoded, str(file))
        size = header.height, header.width
    else:
        size = _pgm_size(data, str(file))

    with reader_errors(
        lambda text: TerrainFormatError(f"{file}: the image cannot be decoded: {text}")
    ):
        pixels = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.shape[:2] != size:
        raise TerrainFormatError(
            f"{file}: the image cannot be decoded: its data are damaged or cut off"
        )
    return pixels


def _pgm_size(data: bytes, file: str) -> tuple[int, int]:
    """Return (rows, columns) of a pgm that is complete."""
    found = _PGM_START.match(data[:_PGM_HEADER_BYTES])
    if found is None:
        raise TerrainFormatError(
            f"{file}: begins with {data[:8]!r}, expected a pgm (P5 or P2) or a png"
        )

    columns, rows, largest = (int(found[group]) for group in (3, 5, 7))
    if not 1 <= rows * columns <= MAX_CELLS or not 1 <= largest <= 65535:
        raise TerrainFormatError(
            f"{file}: the header says {columns} columns x {rows} rows of 0 … {largest}, "
            "expected at least 1 x 1, at "
            f"most {MAX_CELLS:,} pixels of 0 … 65535; it was not decoded"
        )

    if found[1] == b"5":  # binary
        needed = rows * columns * (2 if largest > 255 else 1)
    else:  # text: a digit and a space for each pixel
        needed = 2 * rows * columns - 1
    if len(data) - found.end() < needed:
        raise TerrainFormatError(
            f"{file}: cut off: {len(data) - found.end():,} bytes of pixels, expected {needed:,}"
        )
    return rows, columns
