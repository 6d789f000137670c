"""How much a .mat file unpacks to, before anything is unpacked in memory.

MATLAB, "MAT-File Format", level 5: data elements of a type, a length and the data; type 15 is packed by zlib.
"""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

_HEAD, _PACKED, _PIECE = 128, 15, 1 << 20


def check_unpacked_size(file: BinaryIO, max_bytes: int) -> None:
    """Raises ValueError where the packed elements of a file become more than so many bytes; leaves it at its start."""
    file.seek(0)
    order = ">" if file.read(_HEAD)[-2:] == b"MI" else "<"
    left = max_bytes
    while len(tag := file.read(8)) == 8:
        kind, length = struct.unpack(f"{order}II", tag)
        if kind != _PACKED:
            file.seek(length, 1)
            continue
        unpacker, end = zlib.decompressobj(), file.tell() + length
        while not unpacker.eof and (piece := file.read(min(_PIECE, end - file.tell()))):
            while piece and left >= 0:
                left -= len(unpacker.decompress(piece, _PIECE))
                piece = unpacker.unconsumed_tail
        if left < 0:
            raise ValueError(f"its packed data become more than {max_bytes:,} bytes")
        file.seek(end)
    file.seek(0)
