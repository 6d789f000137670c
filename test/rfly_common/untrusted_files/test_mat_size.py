# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The unpacked size of a .mat file is checked before SciPy unpacks it."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import TerrainFormatError
from rfly_common.untrusted_files.mat_size import check_unpacked_size

pytestmark = pytest.mark.needs("scipy")
scipy_io = late_module("scipy.io")


def saved(**options):
    file = io.BytesIO()
    scipy_io.savemat(file, {"a": np.zeros((100, 100)), "b": np.eye(3)}, **options)
    return file


@pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}])
def test_a_file_is_left_at_its_start(options):
    file = saved(**options)
    check_unpacked_size(file, 100_000)
    assert sorted(scipy_io.loadmat(file))[-2:] == ["a", "b"]


def test_packed_data_count_as_what_they_become():
    check_unpacked_size(saved(), 1000)  # nothing is packed: the file's own size is the limit
    with pytest.raises(ValueError, match="more than 80,000 bytes"):
        check_unpacked_size(saved(do_compression=True), 80_000)


def test_four_numbers_that_say_they_are_a_gigabyte_are_refused(tmp_path):
    """The matrix is 2 x 2, as `whosmat` says; its packed data go on for a gigabyte."""
    from rfly_terrain.occupancy.random_maps import load_mat_maps

    size = 1_000_000_000
    head = struct.pack("<IIIIIIIIii", 14, size + 56, 6, 8, 6, 0, 5, 8, 2, 2)
    head += struct.pack("<II", 1, 1) + b"a" + bytes(7) + struct.pack("<II", 9, size)
    packer = zlib.compressobj(1)
    packed = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    # a block that refers to nothing before it may be repeated
    packed += (packer.compress(bytes(10_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)) * 100
    path = tmp_path / "a.mat"
    path.write_bytes(saved().getvalue()[:128] + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(
        TerrainFormatError, match="its packed data become more than 400,000,000 bytes"
    ):
        load_mat_maps(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", [0, 8, 14, 19, 5000])
def test_numbers_of_no_type_are_refused(kind, packed):
    """SciPy looks the type up in a table of pointers, and crashes."""
    file = io.BytesIO()
    scipy_io.savemat(file, {"simpleMap": np.eye(4)})
    data = bytearray(file.getvalue())
    place = data.index(struct.pack("<II", 9, 128))
    struct.pack_into("<I", data, place, kind)
    if packed:
        inner = zlib.compress(bytes(data[128:]))
        data = data[:128] + struct.pack("<II", 15, len(inner)) + inner
    with pytest.raises(ValueError, match=f"data of the type {kind}, which there is not"):
        check_unpacked_size(io.BytesIO(data), 10_000)
