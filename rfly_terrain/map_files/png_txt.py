# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim map files: NAME.png holds height counts, NAME.txt the calibration."""

from __future__ import annotations

import hashlib
import struct
import time
import zlib
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainFormatError
from rfly_common.files import StrPath, open_regular
from rfly_common.frames import up_to_down
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.map_files.calibration import (
    MAX_TXT_BYTES,
    Calibration,
    CalibrationPoints,
    ThirdPixelRule,
    TxtRule,
    calibrate,
    heights_up,
    parse_calibration,
)
from rfly_terrain.map_files.png_header import (
    MAX_PNG_BYTES,
    PngHeader,
    picture_chunks,
    read_png_header,
)
from rfly_terrain.map_files.search import MapFiles

_ATTEMPTS = 5
_PAUSE_S = 0.02
"""Pause before another attempt, s; longer each time. Replacing two files takes microseconds."""
_AFTER_HEADER = 33
"""Bytes of a png up to the end of its header."""


@dataclass(frozen=True, eq=False)
class RflySimMap:
    """A map from its files.

    Rows run along y (east), columns along x (north), and the first pixel is at the left-bottom
    point.
    """

    files: MapFiles
    calibration: Calibration
    heights_up: NDArray[np.float32]
    """Heights, (rows, columns), m, z up; read-only."""

    @property
    def heights_ned(self) -> NDArray[np.float32]:
        """RflySim's own numbers, `binmap`: (rows, columns), m, z down. A new array at each call."""
        return up_to_down(self.heights_up)


def read_map(
    files: MapFiles, third_pixel: ThirdPixelRule = "truncate", *, txt_rule: TxtRule = "python"
) -> RflySimMap:
    """Return a map from its two files.

    `third_pixel` and `txt_rule` choose between the rules of RflySim's Python and MATLAB tools.
    Raises TerrainFormatError (file, line or field, value, what would be right) and
    TerrainFileNotFound.
    """
    points, pixels = read_pair(files, txt_rule)
    calibration = calibrate(points, pixels, str(files.txt), third_pixel)
    heights = heights_up(calibration, pixels)
    heights.flags.writeable = False
    return RflySimMap(files, calibration, heights)


def read_pair(files: MapFiles, rule: TxtRule) -> tuple[CalibrationPoints, NDArray[Any]]:
    """Return the numbers of a map's txt, and the pixels of the png that belongs to it.

    A writer replaces the png first (see `superseded_chunk`). While it does, or after it was killed
    between the two files, the txt is older than the png. Reads again while a writer is at work, and
    raises TerrainFormatError if the files still do not belong together.
    """
    for attempt in range(_ATTEMPTS):
        txt = read_start(files.txt, MAX_TXT_BYTES)
        png = _read_whole(files.png)
        superseded = superseded_chunk(txt)
        is_superseded = png[_AFTER_HEADER:][: len(superseded)].tobytes() == superseded
        if not is_superseded and read_start(files.txt, MAX_TXT_BYTES) == txt:
            return parse_calibration(txt, str(files.txt), rule), grey_pixels(png, str(files.png))
        time.sleep(_PAUSE_S * attempt)
    raise TerrainFormatError(
        f"{files.txt}: is older than {files.png.name}, whose import was interrupted before it "
        "wrote both files; import the map again"
    )


def read_header(png: StrPath) -> PngHeader:
    """Return size and pixel format of a map's png; the picture is not read."""
    return read_png_header(read_start(png, 64), str(png))


def grey_pixels(data: NDArray[np.uint8], file: str) -> NDArray[Any]:
    """Return the pixels of a grey png, (rows, columns) uint8 or uint16.

    Row 0 is the first row of the file. Colour is accepted if all channels are equal. Alpha is
    ignored, as in RflySim's Python tool. Grey of less than 8 bits and palettes are spread over 0 …
    255 by OpenCV.
    """
    header, data = picture_chunks(data, file)
    with reader_errors(
        lambda text: TerrainFormatError(f"{file}: the png cannot be decoded: {text}")
    ):
        pixels = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    del data

    if pixels is None:
        raise TerrainFormatError(
            f"{file}: the png cannot be decoded: its compressed data are damaged; "
            "copy or scan it again"
        )

    is_integer = pixels.dtype in (np.uint8, np.uint16)
    if pixels.shape[:2] != (header.height, header.width) or not is_integer:
        raise TerrainFormatError(
            f"{file}: decoded to {pixels.shape} {pixels.dtype}, but its header says "
            f"{header.height} rows x {header.width} columns, {header.colour_name}"
        )

    return pixels if pixels.ndim == 2 else _grey(pixels, file)


def superseded_chunk(txt: bytes) -> bytes:
    """Return the png chunk (tEXt) that says that this content of the txt belongs to an older png.

    A writer puts it behind the header of a png that replaces another one. A txt that is edited
    later is not the one that it names, and other programs ignore it.
    """
    digest = hashlib.sha256(txt[:MAX_TXT_BYTES]).hexdigest()
    content = b"tEXtReplaces map with txt\0sha256 " + digest.encode("ascii")
    return struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))


def with_superseded(png: bytes, txt: bytes) -> bytes:
    """Return a png that does not belong to a txt of this content."""
    return png[:_AFTER_HEADER] + superseded_chunk(txt) + png[_AFTER_HEADER:]


def _grey(pixels: NDArray[Any], file: str) -> NDArray[Any]:
    """Return the one value of each pixel of (rows, columns, 3 or 4) BGR(A)."""
    blue = np.ascontiguousarray(pixels[..., 0])
    for channel in (1, 2):
        differs = blue != pixels[..., channel]
        if differs.any():
            row, column = np.unravel_index(int(np.argmax(differs)), differs.shape)
            b, g, r = (int(v) for v in pixels[row, column, :3])
            raise TerrainFormatError(
                f"{file}: a colour picture: pixel row {row}, column {column} is red {r}, green "
                f"{g}, blue {b}, expected grey (equal channels), because a height is one number"
            )
    return blue


def _read_whole(path: StrPath) -> NDArray[np.uint8]:
    """Return the bytes of a file."""
    with terrain_file_errors(path), open_regular(path, MAX_PNG_BYTES) as file:
        return np.fromfile(file, np.uint8)  # cv2.imread cannot open every Windows path


def read_start(path: StrPath, size: int) -> bytes:
    """Return the first bytes of a file."""
    with terrain_file_errors(path), open_regular(path) as file:
        return file.read(size)
