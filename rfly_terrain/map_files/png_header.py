# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Png header, read and checked before anything is decoded.

A decoder gets only files whose size is sane, whose chunks are complete and whose compressed data
can hold the picture that the header promises. It gets the chunks that make the picture and no
others, so that no gamma, orientation, animation or transparency can change the numbers.

Layout: W3C Portable Network Graphics (Third Edition), sections 5 and 11.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainFormatError
from rfly_common.files import MAX_CELLS

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MAX_PNG_BYTES = 256 << 20
MAX_DECODED_BYTES = 2 * MAX_CELLS
"""Size of decoded pixels, at most: enough for grey of 16 bits. Colour takes several times as much
for the same heights.
"""
MAX_CHUNKS = 1_000_000
MAX_DEFLATE_RATIO = 1032
"""Bytes that one byte of deflate data can become, at most (zlib, technical details)."""

_COLOUR_TYPES = {
    0: ("grey", 1, 1, (1, 2, 4, 8, 16)),
    2: ("colour", 3, 3, (8, 16)),
    3: ("palette", 1, 3, (1, 2, 4, 8)),
    4: ("grey with alpha", 2, 4, (8, 16)),
    6: ("colour with alpha", 4, 4, (8, 16)),
}
"""Name, channels in the file, channels as decoded by OpenCV (palettes are colours, and alpha comes
with three of them), bits a channel.
"""
_PICTURE_CHUNKS = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
TRANSPARENCY = b"tRNS"
"""Chunk that names a transparent grey level or colour, or has an alpha for each of a palette."""


@dataclass(frozen=True)
class PngHeader:
    """IHDR: size in pixels, bits per channel and kind of the channels."""

    width: int
    height: int
    bit_depth: int
    colour_type: int
    interlaced: bool

    @property
    def channels(self) -> int:
        """Number of channels in the file."""
        return _COLOUR_TYPES[self.colour_type][1]

    @property
    def is_grey(self) -> bool:
        """True for one value a pixel, with or without alpha."""
        return self.colour_type in (0, 4)

    @property
    def colour_name(self) -> str:
        """Bits and name of the colour type, for messages."""
        return f"{self.bit_depth}-bit {_COLOUR_TYPES[self.colour_type][0]}"

    @property
    def packed_bytes(self) -> int:
        """Size of the pixels in the file, before compression."""
        return self.width * self.height * self.channels * self.bit_depth // 8

    @property
    def decoded_bytes(self) -> int:
        """Size of the pixels as decoded by OpenCV: at least 8 bits a channel."""
        channels = _COLOUR_TYPES[self.colour_type][2]
        return self.width * self.height * channels * max(1, self.bit_depth // 8)


def read_png_header(data: bytes | memoryview, file: str) -> PngHeader:
    """Return the header of a png from its first 33 bytes.

    Raises TerrainFormatError that begins with `file`.
    """
    if bytes(data[:8]) != SIGNATURE:
        what = "is empty" if len(data) == 0 else f"begins with {bytes(data[:8])!r}"
        raise TerrainFormatError(
            f"{file}: {what}, expected a png file, which begins with {SIGNATURE!r}"
        )
    if len(data) < 33 or bytes(data[8:16]) != b"\0\0\0\rIHDR":
        raise TerrainFormatError(
            f"{file}: the png header (IHDR, 25 bytes at byte 8) is missing or cut off"
        )

    width, height, bit_depth, colour_type, compression, filtering, interlace = struct.unpack_from(
        ">IIBBBBB", data, 16
    )
    depths = _COLOUR_TYPES[colour_type][3] if colour_type in _COLOUR_TYPES else ()
    if bit_depth not in depths or compression or filtering or interlace > 1:
        raise TerrainFormatError(
            f"{file}: no valid png header (bit depth {bit_depth}, colour type {colour_type}, "
            f"compression {compression}, filter {filtering}, interlace {interlace}), expected "
            "8 or 16 bit, 0 (grey), 0, 0, 0 or 1"
        )
    if width == 0 or height == 0 or width * height > MAX_CELLS:
        raise TerrainFormatError(
            f"{file}: the header says {width} columns x {height} rows, expected at least 2 x 2 and "
            f"at most {MAX_CELLS:,} pixels; it was not decoded. `rfly terrain tile` makes larger "
            "maps, from elevation models"
        )

    header = PngHeader(width, height, bit_depth, colour_type, bool(interlace))
    if header.decoded_bytes > MAX_DECODED_BYTES:
        raise TerrainFormatError(
            f"{file}: {width} columns x {height} rows of {header.colour_name} are "
            f"{header.decoded_bytes:,} bytes, expected at most {MAX_DECODED_BYTES:,}; it was not "
            "decoded. Save it as grey: a height is one number"
        )
    return header


def picture_chunks(
    data: NDArray[np.uint8], file: str, also: tuple[bytes, ...] = ()
) -> tuple[PngHeader, NDArray[np.uint8]]:
    """Return the header, and the file without the chunks that are not part of the picture.

    `also` names further kinds of chunks to keep. The file is the same array if there is nothing to
    leave out. Raises TerrainFormatError for chunks that are cut off, damaged, unknown but critical,
    or too short for the picture.
    """
    view = data.data if data.size else memoryview(b"")
    header = read_png_header(view, file)
    kept: list[tuple[int, int]] = []
    position = 8
    idat_bytes = 0
    kind = b""
    last_kept = 8

    for _ in range(MAX_CHUNKS):
        if position + 12 > len(view):
            raise TerrainFormatError(
                f"{file}: cut off at byte {len(view)}, before the end chunk (IEND); "
                "copy or scan it again"
            )
        (length,) = struct.unpack_from(">I", view, position)
        kind = bytes(view[position + 4 : position + 8])
        end = position + 12 + length
        if end > len(view):
            raise TerrainFormatError(
                f"{file}: cut off in chunk {_printable(kind)} at byte {position}: {length} bytes "
                f"are announced, {max(len(view) - position - 12, 0)} are there; "
                "copy or scan it again"
            )

        if kind in _PICTURE_CHUNKS or kind in also:
            (checksum,) = struct.unpack_from(">I", view, end - 4)
            if zlib.crc32(view[position + 4 : end - 4]) != checksum:
                raise TerrainFormatError(
                    f"{file}: chunk {_printable(kind)} at byte {position} is damaged "
                    "(wrong checksum)"
                )
            kept.append((position, end))
            idat_bytes += length if kind == b"IDAT" else 0
            last_kept = end
        elif not kind[0] & 0x20:
            raise TerrainFormatError(
                f"{file}: unknown critical chunk {_printable(kind)} at byte {position}"
            )

        position = end
        if kind == b"IEND":
            break
    else:
        raise TerrainFormatError(f"{file}: more than {MAX_CHUNKS:,} chunks")

    if idat_bytes * MAX_DEFLATE_RATIO < header.packed_bytes:
        raise TerrainFormatError(
            f"{file}: {idat_bytes} bytes of picture data cannot hold the {header.width} columns x "
            f"{header.height} rows ({header.colour_name}) of the header; it was not decoded"
        )

    if last_kept - 8 == sum(end - start for start, end in kept):
        return header, data
    return header, np.concatenate([data[:8], *(data[start:end] for start, end in kept)])


def _printable(kind: bytes) -> str:
    """Return the name of a chunk for a message."""
    return kind.decode("ascii") if kind.isalnum() else repr(kind)[1:]
