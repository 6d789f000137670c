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
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools
from rfly_common.config.documents import check_schema, load_schema, parse_mapping
from rfly_common.config.marked_yaml import Document, dump_yaml
from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import (
    MAX_CELLS,
    StrPath,
    encoded_picture,
    read_regular,
    with_ending,
    write_text,
    write_whole,
)
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.map_files.png_header import SIGNATURE, TRANSPARENCY, PngHeader, picture_chunks
from rfly_terrain.map_files.search import existing_file, names_image
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

    Pixels are (rows, columns), or have 3 colour channels, whose mean counts, or 2 or 4 channels,
    the last one alpha. The mode "trinary" knows 0, 100 and −1; alpha counts as a fourth colour, as
    in map_server of ROS 2 Humble. "scale" also knows what lies between, and −1 where the image is
    transparent. "raw" takes grey levels to 100 as they are. `negate` 1: white is occupied. Raises
    ValueError for thresholds that are not 0 ≤ free_thresh < occupied_thresh ≤ 1, and for other
    shapes and modes.
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
    if alpha is not None and mode == "trinary":
        grey = (3.0 * grey + alpha) / 4.0

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
    cells = values.reshape(rows, columns)[::-1]
    return occupied(cells, number(threshold, "threshold"), unknown), resolution, (x, y)


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
    pixels, white = _read_image(file.parent / values["image"])

    # cells, some rows at a time
    try:
        check_yaw(yaw)
        resolution = resolution_of(values["resolution"], "resolution")
        cells = np.empty(pixels.shape[:2], np.int8)
        for start in range(0, len(cells), _ROWS_AT_ONCE):
            rows = pixels[start : start + _ROWS_AT_ONCE]
            cells[start : start + _ROWS_AT_ONCE] = image_to_cells(
                rows if white == 255 else rows * 255.0 / white,
                values.get("negate", 0) in (1, "yes", "on"),
                values.get("occupied_thresh", OCCUPIED_THRESH),
                values.get("free_thresh", FREE_THRESH),
                values.get("mode", "trinary"),
            )
    except ValueError as error:
        raise TerrainFormatError(f"{file}: {error}") from None
    return MapImage(cells, resolution, (float(x), float(y)))


def image_beside(path: StrPath, image_format: str) -> Path:
    """Return the path of a map's image: "a.png" for a.yaml, "a.yml.png" for a.yml."""
    file = Path(path)
    return file.with_name(f"{file.name.removesuffix('.yaml')}.{image_format}")


def save_map(
    path: StrPath, cells: Bools, cell_size: float, origin: Sequence[float], image_format: str
) -> None:
    """Write map_server's yaml and its image next to it; `cell_size` in metres.

    A `path` with neither .yaml nor .yml gets .yaml. Raises ConfigError for other kinds of files,
    and where the image would take the place of a terrain's.
    """
    image = cells_to_image(cells * np.int8(100))
    _save(path, image, "trinary", cell_size, origin, image_format)


def save_costs(
    path: StrPath,
    costs: NDArray[np.int8],
    cell_size: float,
    origin: Sequence[float],
    image_format: str = "png",
) -> None:
    """Write costs −1 … 100, top row first, in the mode "raw", which map_server reads unchanged.

    Grey levels are costs, 255 is unknown. `path` as in `save_map`.
    """
    image = np.where(costs < 0, np.uint8(255), costs).astype(np.uint8)
    _save(path, image, "raw", cell_size, origin, image_format)


def _save(
    path: StrPath,
    image: NDArray[np.uint8],
    mode: str,
    cell_size: float,
    origin: Sequence[float],
    image_format: str,
) -> None:
    if image_format not in ("pgm", "png"):
        raise ValueError(f"image_format: {image_format!r}, expected 'pgm' or 'png'")
    file = with_ending(path, ".yaml", ".yml")

    picture = image_beside(file, image_format)
    txt = existing_file(picture.with_suffix(""), ".txt")
    is_own = names_image(file, picture.name)
    if image_format == "png" and txt is not None and picture.exists() and not is_own:
        raise ConfigError(
            f"{file}: its image {picture.name} would replace the heights of {txt.name}; choose "
            "another name"
        )
    encoded = encoded_picture(image_format, image)

    # no yaml, rather than an old one, until the new image is there
    file.unlink(missing_ok=True)
    write_whole(picture, encoded)
    keys = {
        "image": picture.name,
        "mode": mode,
        "resolution": cell_size,
        "origin": [float(origin[0]), float(origin[1]), 0.0],
        "negate": 0,
        "occupied_thresh": OCCUPIED_THRESH,
        "free_thresh": FREE_THRESH,
    }
    write_text(file, dump_yaml(keys))


def _parse(data: bytes, file: str) -> Document:
    try:
        document = parse_mapping(data, file, "image, resolution and origin")
        check_schema(document, load_schema("rfly_terrain", "map_server"))
    except ConfigError as error:
        raise TerrainFormatError(str(error)) from None
    return document


def _read_image(file: Path) -> tuple[NDArray[Any], int]:
    """Return grey levels, with or without channels, and the level of white."""
    with terrain_file_errors(file):
        data = read_regular(file, MAX_IMAGE_BYTES)
    if not data.startswith(SIGNATURE):
        return _read_pgm(data, str(file))

    encoded = np.frombuffer(data, np.uint8)
    header, encoded = picture_chunks(encoded, str(file), (TRANSPARENCY,))
    with reader_errors(
        lambda text: TerrainFormatError(f"{file}: the image cannot be decoded: {text}")
    ):
        pixels = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.shape[:2] != (header.height, header.width):
        raise TerrainFormatError(
            f"{file}: the image cannot be decoded: its data are damaged or cut off"
        )
    white = 65535 if pixels.dtype == np.uint16 else 255
    key = _transparent_grey(encoded, header)
    if key is not None and pixels.ndim == 2:  # OpenCV does not apply it
        alpha = np.where(pixels == key, 0, white).astype(pixels.dtype)
        pixels = np.stack([pixels, alpha], axis=2)
    return pixels, white


def _transparent_grey(encoded: NDArray[np.uint8], header: PngHeader) -> int | None:
    """Return the decoded grey level that a png of grey names as transparent, or None."""
    chunk = encoded[37:43].tobytes()  # the first one after IHDR, as the others are left out
    if header.colour_type != 0 or not chunk.startswith(TRANSPARENCY):
        return None
    key = int.from_bytes(chunk[-2:], "big")
    largest = 2**header.bit_depth - 1
    return key if largest >= 255 else key * 255 // largest


def _read_pgm(data: bytes, file: str) -> tuple[NDArray[Any], int]:
    """Return the pixels (rows, columns) of a pgm, P5 or P2, and its level of white."""
    header = _PGM_START.match(data[:_PGM_HEADER_BYTES])
    if header is None:
        raise TerrainFormatError(
            f"{file}: begins with {data[:8]!r}, expected a pgm (P5 or P2) or a png"
        )

    columns, rows, white = (int(header[group]) for group in (3, 5, 7))
    if not 1 <= rows * columns <= MAX_CELLS or not 1 <= white <= 65535:
        raise TerrainFormatError(
            f"{file}: the header says {columns} columns x {rows} rows of 0 … {white}, "
            "expected at least 1 x 1, at "
            f"most {MAX_CELLS:,} pixels of 0 … 65535; it was not decoded"
        )

    # binary pixels, or text with comments
    if header[1] == b"5":
        depth = np.dtype(">u2" if white > 255 else "u1")
        needed = rows * columns * depth.itemsize
        if len(data) - header.end() < needed:
            raise TerrainFormatError(
                f"{file}: cut off: {len(data) - header.end():,} bytes of pixels, "
                f"expected {needed:,}"
            )
        pixels = np.frombuffer(data, depth, rows * columns, header.end())
    else:
        text = re.sub(rb"#[^\n]*", b"", data[header.end() :])
        wrong = re.search(rb"[^0-9\s]", text)
        if wrong is not None:
            raise TerrainFormatError(
                f"{file}: {wrong[0]!r} among the pixels, expected whole numbers of 0 … {white}"
            )
        pixels = np.fromstring(text, np.int64, sep=" ")
        if pixels.size != rows * columns:
            raise TerrainFormatError(
                f"{file}: {pixels.size:,} pixels for {columns} columns x {rows} rows, "
                f"expected {rows * columns:,}"
            )

    brightest = int(pixels.max())
    if brightest > white:
        raise TerrainFormatError(
            f"{file}: a pixel of {brightest}, but the header says 0 … {white} (maxval)"
        )
    return pixels.reshape(rows, columns), white
