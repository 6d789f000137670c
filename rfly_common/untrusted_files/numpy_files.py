# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arrays of numbers from .npy and .npz files of unknown origin.

A file states the size of an array before its numbers; it is checked first. Only requested arrays
are unpacked, piece by piece, into the requested type. Nothing is unpickled. Layout: NumPy
enhancement proposal 1 (.npy), and a zip file of such members, stored or deflated (.npz).

Raises ValueError and whatever zipfile and NumPy raise: the caller puts `reader_errors` around.
"""

from __future__ import annotations

import math
import struct
import zipfile
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_MEMBERS = 100
"""Members of a zip file."""
_MAX_DIRECTORY_BYTES = 65_536
_MAX_HEADER_BYTES = 10_000
_PIECE_BYTES = 1 << 20
_END_OF_DIRECTORY = struct.Struct("<4s4H2LH")
"""Record at the end of a zip file (PKWARE APPNOTE, 4.3.16)."""
_NPY = ".npy"


class ArrayHeader(NamedTuple):
    """Shape, order and type of an array, which are known before its numbers."""

    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype}{self.shape}"

    @property
    def numbers(self) -> bool:
        """True if the array holds real numbers."""
        return self.dtype.kind in "fiu"


def read_npy_header(file: BinaryIO) -> ArrayHeader:
    """Read the header of a .npy file from its beginning; the numbers follow."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version[0]}.{version[1]} of the format, expected 1.0 or 2.0")

    header = ArrayHeader(*readers[version](file, max_header_size=_MAX_HEADER_BYTES))
    if header.dtype.hasobject:
        raise ValueError("holds Python objects, expected numbers")
    if any(isinstance(size, bool) or size < 0 for size in header.shape):
        raise ValueError(f"an array of the shape {header.shape}")
    return header


def read_npy_values(
    file: BinaryIO, header: ArrayHeader, dtype: type[np.number[Any]], max_values: int
) -> NDArray[Any]:
    """Read the numbers after a header, as `dtype`.

    Raises ValueError if they are no numbers, too many or cut off.
    """
    count = math.prod(header.shape)
    if not header.numbers or count > max_values:
        raise ValueError(f"{header}, expected at most {max_values:,} numbers")

    values = np.empty(count, dtype)
    step = max(1, _PIECE_BYTES // header.dtype.itemsize)
    for start in range(0, count, step):
        wanted = min(step, count - start)
        piece = file.read(wanted * header.dtype.itemsize)
        if len(piece) < wanted * header.dtype.itemsize:
            read = start + len(piece) // header.dtype.itemsize
            raise ValueError(f"cut off after {read:,} of {count:,} numbers")

        # numbers that the type cannot hold become infinite
        with np.errstate(over="ignore", invalid="ignore"):
            values[start : start + wanted] = np.frombuffer(piece, header.dtype)

    return values.reshape(header.shape, order="F" if header.column_major else "C")


def read_npy(file: BinaryIO, dtype: type[np.number[Any]], max_values: int) -> NDArray[Any]:
    """Return the array of a .npy file."""
    return read_npy_values(file, read_npy_header(file), dtype, max_values)


class NpzReader:
    """The arrays of an .npz file by name: headers at once, numbers when requested."""

    def __init__(self, file: BinaryIO) -> None:
        _check_directory(file)
        self._archive = zipfile.ZipFile(file)
        self.headers: dict[str, ArrayHeader] = {}
        for member in self._archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(
                    f"packed by method {member.compress_type}, expected 0 (stored) or 8 (deflated)"
                )
            if member.filename.endswith(_NPY):
                with self._archive.open(member) as opened:
                    self.headers[member.filename[: -len(_NPY)]] = read_npy_header(opened)  # type: ignore[arg-type]

    def read(self, name: str, dtype: type[np.number[Any]], max_values: int) -> NDArray[Any]:
        """Return one array, as `dtype`."""
        with self._archive.open(name + _NPY) as opened:
            return read_npy(opened, dtype, max_values)  # type: ignore[arg-type]


def _check_directory(file: BinaryIO) -> None:
    """Raise ValueError for a zip file with too long a list of members.

    zipfile reads the whole list at once, and NumPy's lists are short.
    """
    size = file.seek(0, 2)
    tail_size = min(size, _END_OF_DIRECTORY.size + 65_535)
    file.seek(size - tail_size)
    tail = file.read(tail_size)

    position = tail.rfind(b"PK\5\6")
    if position < 0 or len(tail) - position < _END_OF_DIRECTORY.size:
        raise ValueError("is no zip file, or cut off")

    *_, members, directory_bytes, _, _ = _END_OF_DIRECTORY.unpack_from(tail, position)
    if members > MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise ValueError(f"a zip of {members} members, expected at most {MAX_MEMBERS}")
    file.seek(0)
