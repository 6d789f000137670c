# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Array files that lie: headers are checked first, and only requested arrays are unpacked."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_common.untrusted_files.numpy_files import NpzReader, read_npy
from rfly_common.untrusted_files.reader_errors import reader_errors


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def headed(header, data=b""):
    """A .npy of version 1.0 with any text as its header."""
    text = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def read(data, most=1000):
    return read_npy(io.BytesIO(data), np.float64, most)


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<i2", ">u4", "u1", "<i8", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_kind_of_number_as_float64(kind, order):
    array = np.asarray(np.arange(12).reshape(3, 4), kind, order=order)
    values = read(npy(array))
    assert values.dtype == np.float64
    expected = [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
    ]
    assert values.tolist() == expected
    assert read(npy(np.float64(7.5))).item() == 7.5


@pytest.mark.parametrize(
    "data",
    [
        npy(np.zeros(1001)),
        npy(np.zeros(10))[:-1],
        npy(np.zeros(10, bool)),
        npy(np.zeros(10, complex)),
        npy(np.array(["text"])),
        npy(np.array([{}], object)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (10**99,)}"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 300 + ",)}"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2)}", bytes(16)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (0, " + "9" * 30 + ")}"),
        headed("{'descr': 'nonsense', 'fortran_order': 3, 'shape': 5}"),
        headed("{" * 5000),
        headed("(" * 9000 + ")" * 9000),
        headed(""),
        b"\x93NUMPY\x03\x00",
        b"\x93NUMPY",
        b"",
    ],
)
def test_what_is_no_array_of_numbers_is_a_typed_error(data):
    """And nothing as large as announced is ever made room for."""
    with (
        pytest.raises(ConfigError, match=r"a.npy: ."),
        reader_errors(lambda text: ConfigError(f"a.npy: {text}")),
    ):
        read(data)


def packed(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file


def test_only_the_wanted_array_is_unpacked():
    """The other one, of 80 GB by its header, and a text are passed over."""
    huge = headed("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}")
    archive = NpzReader(
        packed(
            {
                "a.npy": npy(np.arange(3)),
                "huge.npy": huge,
                "readme.txt": b"no array",
            }
        )
    )
    assert set(archive.headers) == {"a", "huge"}
    assert archive.read("a", np.float32, 3).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="at most 3 numbers"):
        archive.read("huge", np.float32, 3)


def damaged():
    good = bytearray(packed({"a.npy": npy(np.arange(5000))}).getvalue())
    good[200:260] = b"\xff" * 60
    return good


def encrypted():
    """The flag that says so, in both places where it stands."""
    data = bytearray(packed({"a.npy": npy(np.arange(3))}).getvalue())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return data


@pytest.mark.parametrize(
    "data",
    [
        packed({"a.npy": npy(np.arange(3))}, zipfile.ZIP_LZMA).getvalue(),
        packed({"a.npy": npy(np.arange(3))}, zipfile.ZIP_BZIP2).getvalue(),
        packed({f"{n}.npy": b"" for n in range(101)}).getvalue(),
        packed({"a.npy": b"no array"}).getvalue(),
        packed({"b.npy": npy(np.arange(3))}).getvalue(),
        damaged(),
        encrypted(),
        b"PK\3\4 junk",
        b"",
    ],
    ids=[
        "lzma",
        "bzip2",
        "many",
        "no array",
        "another name",
        "damaged",
        "encrypted",
        "junk",
        "empty",
    ],
)
def test_what_is_no_npz_is_a_typed_error(data):
    with (
        pytest.raises(ConfigError, match=r"a.npz: ."),
        reader_errors(lambda text: ConfigError(f"a.npz: {text}")),
    ):
        NpzReader(io.BytesIO(data)).read("a", np.float64, 10_000)


def test_one_line_of_limited_length_and_the_cause():
    with pytest.raises(ConfigError) as caught, reader_errors(ConfigError):
        raise RuntimeError("two\nlines " + "x" * 1000)
    assert str(caught.value).startswith("two lines xxx")
    assert len(str(caught.value)) == 200
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ConfigError, match="not enough memory"), reader_errors(ConfigError):
        raise MemoryError
    with (
        pytest.raises(ConfigError, match="its own"),
        reader_errors(lambda text: ConfigError("another")),
    ):
        raise ConfigError("its own")
