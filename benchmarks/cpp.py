# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""C++ sources of this folder as libraries: compiled when asked for, called through ctypes on
NumPy's arrays.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfly_terrain import HeightMap

OPTIONS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")
PEER = "C++, -O3 -march=native"


class CppGround(ctypes.Structure):
    """A height map as `plain_good.cpp` takes it."""

    _fields_ = (
        ("z", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("origin_x", "origin_y", "step_x", "step_y")),
    )


def cpp_ground(terrain: HeightMap) -> CppGround:
    """Return our map as C++ takes it, without a copy."""
    g = terrain.ground
    return CppGround(
        g.heights.ctypes.data,
        g.rows,
        g.columns,
        g.origin_x,
        g.origin_y,
        g.step_x,
        g.step_y,
    )


@functools.cache
def cpp_library() -> ctypes.CDLL | None:
    """Return `plain_good.cpp`; None, with a line on stderr, if there is no g++."""
    if shutil.which("g++") is None:
        print("no rows with C++ (no g++)", file=sys.stderr)
        return None
    library = compiled("plain_good")
    library.overlaps.restype = ctypes.c_int64
    return library


def compiled(name: str, header: str = "", options: Sequence[str] = ()) -> ctypes.CDLL:
    """Build `NAME.cpp` of this folder as a library; it may include `NAME.h` with the given text.

    `options`: further ones of g++, after the source.
    """
    source = Path(__file__).with_name(f"{name}.cpp")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{name}.so"
        target.with_suffix(".h").write_text(header, encoding="utf-8")
        command = ["g++", *OPTIONS, "-I", folder, "-o", str(target), str(source), *options]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(target))


def cpp_struct(name: str, dtype: np.dtype[Any]) -> str:
    """Return the text of a structure with the fields of a record of 64-bit numbers."""
    fields = []
    for field in dtype.names or ():
        base = dtype[field].base
        shape = dtype[field].shape
        number = {"f": "double", "i": "int64_t"}[base.kind]
        fields.append(f"  {number} {field}{''.join(f'[{size}]' for size in shape)};\n")
    return f"struct {name} {{\n{''.join(fields)}}};\n"


def cpp_call(function: Any, *arguments: Any) -> Callable[[], Any]:
    """Return a call of the function with arrays (by address), integers, floats and structures."""
    as_c: dict[type, Callable[[Any], Any]] = {
        int: ctypes.c_int64,
        float: ctypes.c_double,
        np.ndarray: lambda array: ctypes.c_void_p(array.ctypes.data),
    }
    converted = [as_c.get(type(each), ctypes.byref)(each) for each in arguments]

    def call(_referenced: Any = arguments) -> Any:
        return function(*converted)

    return call
