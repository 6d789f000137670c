# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of .mat files that SciPy leaves out: unpacked size, and types that crash its reader.

MATLAB, "MAT-File Format", level 5: data elements of a type, a length and the data; type 15 is
packed by zlib.
"""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

_HEAD = 128
"""Bytes of the file's header."""
_MATRIX = 14
"""Type of an element that holds a matrix."""
_PACKED = 15
"""Type of an element that zlib has packed."""
_PIECE = 1 << 20
"""Bytes that are read or unpacked in one step."""
_NUMBERS = frozenset((*range(1, 8), 9, 12, 13))
"""Types of numeric data."""
_TYPES_OF_CLASS = {4: _NUMBERS | {16, 17, 18}} | dict.fromkeys(range(6, 16), _NUMBERS)
"""Types of a matrix' data, by its class: 4 text, 6 to 15 numbers."""


def check_unpacked_size(file: BinaryIO, max_bytes: int) -> None:
    """Raise ValueError if packed elements unpack to more than max_bytes.

    Numbers without a valid type are an error too. The file is left at its start.
    """
    file.seek(0)
    mark = file.read(_HEAD)[-2:]
    order = ">" if mark == b"MI" else "<"
    left = max_bytes

    # files before level 5 have no mark, and pack nothing
    while mark in (b"IM", b"MI") and len(tag := file.read(8)) == 8:
        kind, length = struct.unpack(f"{order}II", tag)
        end = file.tell() + length
        if kind == _MATRIX:
            _check_types(file.read(min(_PIECE, length)), order)
        elif kind == _PACKED:
            unpacker = zlib.decompressobj()
            is_first = True
            while not unpacker.eof and (piece := file.read(min(_PIECE, end - file.tell()))):
                while piece and left >= 0:
                    data = unpacker.decompress(piece, _PIECE)
                    piece = unpacker.unconsumed_tail
                    if is_first:
                        _check_types(data[8:], order)
                    left -= len(data)
                    is_first = False
            if left < 0:
                raise ValueError(f"its packed data become more than {max_bytes:,} bytes")
        file.seek(end)
    file.seek(0)


def _check_types(matrix: bytes, order: str) -> None:
    """Check the types of flags, dimensions, name and data.

    `matrix` is the beginning of a matrix element without its tag.
    """
    offset = 0
    allowed = _NUMBERS
    for part in range(4):
        if offset + 12 > len(matrix):
            return
        kind, length = struct.unpack_from(f"{order}II", matrix, offset)
        if kind >> 16:  # a small element: up to four bytes stand in the tag itself
            kind = kind & 0xFFFF
            length = 0

        if part == 0:
            (flags,) = struct.unpack_from(f"{order}I", matrix, offset + 8)
            if flags & 0x0800:
                raise ValueError("it holds complex numbers")
        if part == 3:
            allowed = _TYPES_OF_CLASS.get(flags & 0xFF, frozenset(range(1, 19)))

        if kind not in allowed:
            raise ValueError(f"it holds data of the type {kind}, which there is not")
        offset += 8 + (length + 7) // 8 * 8
