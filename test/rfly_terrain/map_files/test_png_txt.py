# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Map files against values worked out by hand.

They cover calibration, every refusal, the png formats and the search order.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.io import savemat

from rfly_common.errors import TerrainFileNotFound, TerrainFormatError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.map_files.calibration import parse_calibration
from rfly_terrain.map_files.png_header import read_png_header
from rfly_terrain.map_files.png_txt import read_header, read_map
from rfly_terrain.map_files.search import FIRMWARE_VERSION_FILE, MapFiles, find_map

E_COUNTS = [[0, 100, 200, 300], [50, 150, 250, 350], [100, 200, 300, 500]]
E_TXT = "300,200,1600,-300,-200,600,100,0,1100"


def write_files(
    folder: Path, counts, txt: str | bytes, name: str = "E", bits: int = 16
) -> MapFiles:
    """A map from counts of height (16 bit) or from pixel values (8 bit)."""
    folder.mkdir(parents=True, exist_ok=True)
    values = np.asarray(counts)
    pixels = (values + 32768).astype(np.uint16) if bits == 16 else values.astype(np.uint8)
    (folder / f"{name}.png").write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    (folder / f"{name}.txt").write_bytes(txt if isinstance(txt, bytes) else txt.encode())
    return MapFiles(folder / f"{name}.png", folder / f"{name}.txt")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    columns: int,
    rows: int,
    bits: int,
    colour: int,
    raw: bytes,
    extra: bytes = b"",
    interlace: int = 0,
) -> bytes:
    """A png spelled out chunk by chunk; `raw` holds the filter byte of each row."""
    header = struct.pack(">IIBBBBB", columns, rows, bits, colour, 0, 0, interlace)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            extra,
            chunk(b"IDAT", zlib.compress(raw)),
            chunk(b"IEND", b""),
        ]
    )


def write_png(folder: Path, data: bytes, txt: str = "100,100,0,-100,-100,0,0,0,0") -> MapFiles:
    (folder / "P.png").write_bytes(data)
    (folder / "P.txt").write_text(txt)
    return MapFiles(folder / "P.png", folder / "P.txt")


def altitude(files: MapFiles, x_north: float, y_east: float, third_pixel="truncate") -> float:
    """NED z of the map by the formula of the format, cell by cell, in float64."""
    rfly_map = read_map(files, third_pixel)
    c = rfly_map.calibration
    z = rfly_map.heights_ned.astype(float)
    u = min(max((100 * x_north - c.pos_offset_x_cm) / c.pos_scale_x_cm, 0.0), c.columns - 1.0)
    v = min(max((100 * y_east - c.pos_offset_y_cm) / c.pos_scale_y_cm, 0.0), c.rows - 1.0)
    j = min(int(u), c.columns - 2)
    i = min(int(v), c.rows - 2)
    a = u - j
    b = v - i
    near = z[i, j] * (1 - a) + z[i, j + 1] * a
    return near * (1 - b) + (z[i + 1, j] * (1 - a) + z[i + 1, j + 1] * a) * b


def test_example_1_attributes(tmp_path):
    """Offset, scale, extent and the third pixel of map E.

    In a tie between the corners the left-bottom one is used.
    """
    rfly_map = read_map(write_files(tmp_path, E_COUNTS, E_TXT))
    c = rfly_map.calibration
    assert (c.pos_offset_x_cm, c.pos_offset_y_cm, c.pos_scale_x_cm, c.pos_scale_y_cm) == (
        -300,
        -200,
        200,
        200,
    )
    assert (c.x_max_m, c.y_max_m, c.points.gps, c.rows, c.columns) == (3, 2, None, 3, 4)
    assert (c.third_row, c.third_column, c.z_scale_cm, c.z_scale_from) == (1, 2, 2, "left-bottom")
    assert rfly_map.heights_ned.dtype == np.float32
    np.testing.assert_array_equal(rfly_map.heights_ned, -(np.array(E_COUNTS) * 2 + 600) / 100)


@pytest.mark.parametrize(
    ("x", "y", "z"),
    [
        *((-3, -2, -6), (3, -2, -12), (-3, 2, -8), (3, 2, -16)),  # example 2: corners
        *((0, 0, -10), (-2, -1, -7.5), (2.5, 1.5, -14.375)),  # example 3: inside
        *((100, 0, -13), (0, -50, -9), (-1000, 1000, -8), (-2, 50, -9)),  # example 4: outside
    ],
)
def test_examples_2_to_4_altitudes(tmp_path, x, y, z):
    """Altitudes of map E at corners, inside and outside, through the height map too."""
    files = write_files(tmp_path, E_COUNTS, E_TXT)
    assert altitude(files, x, y) == pytest.approx(z, abs=1e-4)
    assert HeightMap.of_map(read_map(files)).altitude_ned(float(x), float(y)) == pytest.approx(
        z, abs=1e-4
    )


@pytest.mark.parametrize(("x", "y", "z"), [(-3, -2, -6), (-1, 0, -10.5), (3, 2, -21)])
def test_example_5_right_top_pair(tmp_path, x, y, z):
    """The third point is paired with the corner that differs more.

    Only the left-bottom height is kept.
    """
    files = write_files(tmp_path, E_COUNTS, "300,200,1600,-300,-200,600,-100,0,550")
    assert read_map(files).calibration.z_scale_from == "right-top"
    assert altitude(files, x, y) == pytest.approx(z, abs=1e-4)


@pytest.mark.parametrize(
    ("last", "scale", "corner", "centre"),
    [(10, 1, -0.1, -0.04), (11, 500 / 11, -5, -1.931818)],
    ids=["ten", "eleven"],
)
def test_examples_6_and_7_more_than_ten_counts(tmp_path, last, scale, corner, centre):
    """Ten counts of difference give 1 cm a count, eleven are computed."""
    files = write_files(tmp_path, [[0, 2], [4, last]], "100,100,500,-100,-100,0,100,100,500")
    c = read_map(files).calibration
    assert c.z_scale_cm == pytest.approx(scale, rel=1e-15)
    assert c.z_scale_from == ("default" if last == 10 else "left-bottom")
    assert altitude(files, 1, 1) == pytest.approx(corner, abs=1e-4)
    assert altitude(files, 0, 0) == pytest.approx(centre, abs=1e-4)


@pytest.mark.parametrize(("last", "scale"), [(210, 1), (211, 150 / 11)], ids=["ten", "eleven"])
def test_ten_and_eleven_counts_of_the_right_top_pair(tmp_path, last, scale):
    """The threshold holds for the other corner too.

    kL 0, kT 200 is nearer to neither; kR decides by one count.
    """
    # kT = 200 at row 0, column 1; kL = 195 (5 away), kR = 210 or 211 (10 or 11 away): the right-top
    # pair
    files = write_files(tmp_path, [[195, 200], [0, last]], "100,100,250,-100,-100,0,100,-100,100")
    c = read_map(files).calibration
    assert c.z_scale_cm == pytest.approx(scale, rel=1e-15)
    assert c.z_scale_from == ("default" if last == 210 else "right-top")


@pytest.mark.parametrize(
    ("rule", "column", "corner", "z"),
    [("truncate", 1, "right-top", -13.142857), ("round", 2, "left-bottom", -16)],
)
def test_example_8_python_truncates_matlab_rounds(tmp_path, rule, column, corner, z):
    """A third point at column 1.9 is column 1 for the Python tool, column 2 for MATLAB."""
    files = write_files(tmp_path, E_COUNTS, "300,200,1600,-300,-200,600,80,0,1100")
    c = read_map(files, rule).calibration
    assert (c.third_column, c.z_scale_from) == (column, corner)
    assert altitude(files, 3, 2, rule) == pytest.approx(z, abs=1e-4)


@pytest.mark.parametrize(
    ("rule", "z"), [((), -13.142857), (("truncate",), -13.142857), (("round",), -16)]
)
def test_example_8_a_height_map_follows_the_python_tool_unless_told(tmp_path, rule, z):
    files = write_files(tmp_path, E_COUNTS, "300,200,1600,-300,-200,600,80,0,1100")
    assert HeightMap.load(files.png, (), *rule).altitude_ned(3.0, 2.0) == pytest.approx(z, abs=1e-4)


@pytest.mark.parametrize(
    ("rule", "column", "scale", "z"), [("truncate", 6, 10, -20), ("round", 7, 5, -10)]
)
def test_example_9_quotient_below_seven(tmp_path, rule, column, scale, z):
    """The quotient of the right edge comes out as 6.999….

    Truncation reads one pixel too early, as the SDK does.
    """
    counts = [[0, 0, 0, 0, 0, 0, 100, 200], [0] * 8]
    files = write_files(tmp_path, counts, "900,100,0,-900,-100,0,900,-100,1000")
    assert (900 + 900) / ((900 + 900) / 7) < 7
    c = read_map(files, rule).calibration
    assert (c.third_column, c.z_scale_cm) == (column, scale)
    assert altitude(files, 9, -1, rule) == pytest.approx(z, abs=1e-4)


def test_example_10_eight_bit(tmp_path):
    """8-bit pixels are read with their own values, nothing is scaled up."""
    files = write_files(
        tmp_path, [[0, 50], [100, 255]], "100,50,2550,-100,-50,0,100,50,2550", bits=8
    )
    assert read_map(files).calibration.z_scale_cm == 10
    assert read_map(files).calibration.count_left_bottom == -32768
    assert altitude(files, 0, 0) == pytest.approx(-10.125, abs=1e-4)
    assert altitude(files, 1, 0.5) == pytest.approx(-25.5, abs=1e-4)


def test_example_11_gps_and_an_origin_off_the_centre(tmp_path):
    """Twelve values: GPS in file order; xMax comes from the right-top point alone."""
    files = write_files(
        tmp_path, E_COUNTS, "500,300,1600,-100,-100,600,300,100,1100,30.5,120.25,50"
    )
    rfly_map = read_map(files)
    assert rfly_map.calibration.points.gps == (30.5, 120.25, 50)
    assert (rfly_map.calibration.x_max_m, rfly_map.calibration.y_max_m) == (5, 3)
    assert altitude(files, 2, 1) == pytest.approx(-10, abs=1e-4)
    assert altitude(files, 0, 0) == pytest.approx(-7.5, abs=1e-4)
    terrain = HeightMap.of_map(rfly_map)
    assert terrain.bounds == (-1, 3, -1, 5)  # x east from the rows, y north from the columns
    assert terrain.geo_origin == (30.5, 120.25, 50)


def test_gps_that_fits_no_place_is_kept_but_is_no_origin(tmp_path):
    """120.25, 30.5, 50 are no latitude, longitude and altitude: a latitude ends at 90°."""
    files = write_files(tmp_path, E_COUNTS, E_TXT + ",120.25,30.5,50")
    rfly_map = read_map(files)
    assert rfly_map.calibration.points.gps == (120.25, 30.5, 50)
    assert HeightMap.of_map(rfly_map).geo_origin is None


def test_exchanged_points_give_negative_steps(tmp_path):
    """x1 < x2 gives a negative scale and still works: the first pixel lies at x2."""
    files = write_files(tmp_path, E_COUNTS, "-300,-200,1600,300,200,600,-100,0,1100")
    c = read_map(files).calibration
    assert (c.pos_scale_x_cm, c.pos_scale_y_cm) == (-200, -200)
    assert altitude(files, 3, 2) == pytest.approx(-6)
    assert altitude(files, -3, -2) == pytest.approx(-16)


@pytest.mark.parametrize(("z3", "scale"), [(100, -2), (600, 0)], ids=["negative", "zero"])
def test_z_scale_may_be_negative_or_zero(tmp_path, z3, scale):
    """More counts may mean lower ground, or nothing."""
    files = write_files(tmp_path, E_COUNTS, f"300,200,1600,-300,-200,600,100,0,{z3}")
    assert read_map(files).calibration.z_scale_cm == scale
    assert altitude(files, 3, 2) == pytest.approx(-(600 + 500 * scale) / 100)


@pytest.mark.parametrize(
    ("x3", "rule", "column"),
    [
        (-499, "truncate", 0),  # quotient -0.995: up to one pixel below the map counts as column 0
        (-500, "truncate", None),
        (499, "truncate", 3),  # 3.995: up to one pixel beyond the edge counts as the last
        (500, "truncate", None),
        (-399, "round", 0),
        (-400, "round", None),  # -0.5, a tie, goes away from zero
        (399, "round", 3),
        (400, "round", None),
        (0, "round", 2),  # 1.5, a tie
        (-200, "round", 1),  # 0.5, a tie
        (1e300, "truncate", None),
    ],
)
def test_third_point_on_and_off_the_map(tmp_path, x3, rule, column):
    """The index counts after the façade's rule.

    An index outside is refused, never wrapped to the opposite edge.
    """
    files = write_files(tmp_path, E_COUNTS, f"300,200,1600,-300,-200,600,{x3},0,1100")
    if column is not None:
        assert read_map(files, rule).calibration.third_column == column
        return
    with pytest.raises(
        TerrainFormatError,
        match=r"E\.txt: the third point lies outside the map: x3 = .* expected 0 … 3",
    ):
        read_map(files, rule)


@pytest.mark.parametrize(
    "line",
    [
        " 300 ,\t200, 1600,-300 ,-200,+600,1e2, -0 ,11.0E+2\r\n",
        "300,200,1600,-300,-200,600,100,0,1100\nthe second line, is not read: \u6d77\n",
        "300,200,1600,-300,-200,600,100,0,1100\rold line end",
    ],
)
def test_txt_that_the_python_tool_reads(tmp_path, line):
    """Blanks, signs, exponents, CR LF and further lines are fine."""
    assert (
        read_map(write_files(tmp_path, E_COUNTS, line.encode("gb18030"))).calibration.z_scale_cm
        == 2
    )


@pytest.mark.parametrize(
    ("txt", "text"),
    [
        (b"", "is empty"),
        (b" \r\n\n", "is empty"),
        (b"\n300,200,1600,-300,-200,600,100,0,1100", "line 1: 1 value, expected 9 or 12"),
        (b"1,2,3,4,5,6,7,8", "line 1: 8 values, expected 9 or 12"),
        (E_TXT.encode() + b",", "10 values.*a trailing comma counts as one value more"),
        (b"1,2,3,4,5,6,7,8,9,10,11,12,13", "13 values"),
        (b"1 2 3 4 5 6 7 8 9", "line 1: 1 value, expected 9 or 12 separated by commas"),
        (
            b"300,200,1600,-300,-200m,600,100,0,1100",
            r"value 5 \(y2 of the left-bottom point\): '-200m' is not a number",
        ),
        (
            b"300,200,,-300,-200,600,100,0,1100",
            r"value 3 \(z1 of the right-top point\): '' is not a number",
        ),
        (
            b"300,200,1600,-300,-200,600,100,0,nan",
            r"value 9 \(z3 of the third point\): 'nan' is not finite",
        ),
        (
            b"inf,200,1600,-300,-200,600,100,0,1100",
            r"value 1 \(x1 of the right-top point\): 'inf' is not finite",
        ),
        (b"1e999,200,1600,-300,-200,600,100,0,1100", "not finite"),
        (E_TXT.encode() + b",30,120,-Infinity", r"value 12 \(altitude\)"),
        (b"\xef\xbb\xbf" + E_TXT.encode(), "byte order mark"),
        (E_TXT.encode("utf-16"), "byte order mark"),
        (b"300,200,1600,-300,\xff200,600,100,0,1100", "line 1: byte 19 .0xff. is no text"),
        (b"300,200,1600,-300,\x00200,600,100,0,1100", "not a number"),
        (b"1" * 70_000, "longer than 65536 bytes"),
    ],
)
def test_txt_that_is_refused(tmp_path, txt, text):
    """The error names file, line, field and value."""
    files = write_files(tmp_path, E_COUNTS, txt)
    with pytest.raises(TerrainFormatError, match=text) as caught:
        read_map(files)
    assert str(files.txt) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("txt", "text"),
    [
        ("300,200,1600,300,-200,600,100,0,1100", "no extent along x"),
        ("300,200,1600,-300,200,600,100,0,1100", "no extent along y"),
        ("1e308,200,0,-1e308,-200,0,0,0,0", "extent along x"),
        ("5e-324,200,0,0,-200,0,0,0,0", "no extent along x"),
        ("1e-306,200,0,0,-200,0,0,0,0", "cannot be divided"),
        ("300,200,0,-300,-200,0,100,0,1e300", "more than float32"),
        ("300,200,0,-300,-200,1e41,100,0,1e41", "more than float32"),
    ],
)
def test_points_that_are_refused(tmp_path, txt, text):
    """No extent, and numbers that only look like centimetres."""
    with pytest.raises(TerrainFormatError, match=text):
        read_map(write_files(tmp_path, E_COUNTS, txt))


@pytest.mark.parametrize(
    "counts", [[[0, 100, 200]], [[0], [100], [200]], [[7]]], ids=["row", "column", "pixel"]
)
def test_one_row_or_one_column_is_refused(tmp_path, counts):
    with pytest.raises(TerrainFormatError, match="expected at least 2 of each"):
        read_map(write_files(tmp_path, counts, E_TXT))


def test_matlab_reads_the_first_nine_numbers():
    """MATLAB takes nine numbers from any form and ignores the rest.

    Python's own spellings of numbers are none.
    """
    nine = parse_calibration(
        b"300, 200 1600\n-300,-200,600,1.0e2,0,1100, -1, text, 3", "t", "matlab"
    )
    assert nine == parse_calibration(E_TXT.encode(), "t")
    for txt in (
        b"1,2,3,4,5,6,7,8",
        b"1,2,3,,4,5,6,7,8,9",
        b"1_0,2,3,4,5,6,7,8,9",
        b"1,2,3,4,nan,6,7,8,9",
    ):
        with pytest.raises(TerrainFormatError):
            parse_calibration(txt, "t", "matlab")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(2, 2, 8, 2, b"\0\1\1\1\2\2\2\0\3\3\3\4\4\4"), [[1, 2], [3, 4]]),
        (
            png(2, 2, 16, 2, b"\0" + b"\1\1" * 3 + b"\2\2" * 3 + b"\0" + b"\3\3" * 6),
            [[257, 514], [771, 771]],
        ),
        (png(2, 2, 8, 4, b"\0\1\xff\2\x80\0\3\0\4\x01"), [[1, 2], [3, 4]]),
        (png(2, 2, 8, 6, b"\0\1\1\1\0\2\2\2\0\0\3\3\3\0\4\4\4\0"), [[1, 2], [3, 4]]),
        (png(2, 2, 16, 4, b"\0\0\1\0\0\0\2\0\0\0\0\3\0\0\0\4\0\0"), [[1, 2], [3, 4]]),
        (
            png(2, 2, 8, 3, b"\0\1\0\0\0\1", chunk(b"PLTE", bytes([5, 5, 5, 9, 9, 9]))),
            [[9, 5], [5, 9]],
        ),
        (
            png(2, 2, 8, 0, b"\0\1\2\0\3\4", chunk(b"gAMA", struct.pack(">I", 45455))),
            [[1, 2], [3, 4]],
        ),
        (
            png(
                2,
                2,
                8,
                0,
                b"\0\1\2\0\3\4",
                chunk(b"tRNS", b"\0\2") + chunk(b"iCCP", b"x\0\0broken"),
            ),
            [[1, 2], [3, 4]],
        ),
        (png(2, 2, 8, 0, b"\0\1\0\2\0\3\4", interlace=1), [[1, 2], [3, 4]]),
    ],
    ids=[
        "rgb8",
        "rgb16",
        "grey alpha",
        "rgba",
        "grey16 alpha",
        "palette",
        "gamma",
        "ancillary",
        "interlaced",
    ],
)
def test_every_grey_picture_keeps_its_values(tmp_path, capfd, data, expected):
    """Gamma and transparency change nothing, and the decoder stays silent.

    The pictures have equal channels, ignored alpha, or palettes.
    """
    rfly_map = read_map(write_png(tmp_path, data))
    expected_cm = np.array(expected) - expected[0][0]
    np.testing.assert_allclose(
        rfly_map.heights_ned, -expected_cm * rfly_map.calibration.z_scale_cm / 100, atol=1e-6
    )
    assert capfd.readouterr().err == ""


def test_colour_that_differs_is_refused(tmp_path):
    """The first pixel whose channels differ is named."""
    data = png(2, 2, 8, 2, b"\0\1\1\1\2\2\2\0\3\7\x09\4\4\4")
    with pytest.raises(TerrainFormatError, match="pixel row 1, column 0 is red 3, green 7, blue 9"):
        read_map(write_png(tmp_path, data))


GOOD = png(2, 2, 8, 0, b"\0\1\2\0\3\4")
BOMB = png(60_000, 60_000, 16, 0, b"\0" * 50_000)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "is empty, expected a png"),
        (b"GIF89a" + GOOD, "begins with b'GIF89a"),
        (GOOD[:20], "header .* cut off"),
        (GOOD[:-18], "cut off in chunk IDAT"),
        (GOOD[:-12], "cut off at byte .* before the end chunk"),
        (GOOD[:45] + b"\0" + GOOD[46:], "chunk IDAT at byte 33 is damaged"),
        (GOOD[:33] + chunk(b"WXYZ", b"") + GOOD[33:], "unknown critical chunk WXYZ"),
        (
            BOMB,
            "60000 columns x 60000 rows, expected .* at most 100,000,000 pixels; "
            "it was not decoded",
        ),
        (png(9000, 9000, 16, 0, b"\0" * 100), "cannot hold the 9000 columns x 9000 rows"),
        (png(0, 2, 8, 0, b"\0"), "0 columns x 2 rows"),
        (png(2, 2, 8, 5, b"\0\1\2\0\3\4"), "colour type 5"),
        (png(2, 2, 32, 0, b"\0\1\2\0\3\4"), "bit depth 32"),
        (png(2, 2, 8, 0, b"\0\1\2\0"), "cannot be decoded"),
    ],
    ids=[
        *(
            "empty",
            "gif",
            "header",
            "data",
            "end",
            "checksum",
            "critical",
            "bomb",
            "too little data",
            "no columns",
        ),
        *("colour type", "bit depth", "too few rows"),
    ],
)
def test_png_that_is_refused(tmp_path, data, text):
    """The error names the file and what is wrong with it."""
    files = write_png(tmp_path, data)
    with pytest.raises(TerrainFormatError, match=text) as caught:
        read_map(files)
    assert str(files.png) in str(caught.value)


def test_a_bomb_takes_no_memory(tmp_path):
    """A picture that would unpack to 7.2 GB is refused from its header."""
    files = write_png(tmp_path, BOMB)
    tracemalloc.start()
    with pytest.raises(TerrainFormatError):
        read_map(files)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize(
    ("colour", "depth", "refused"),
    [(0, 16, False), (0, 8, False), (3, 1, True), (2, 8, True), (4, 16, True), (6, 8, True)],
)
def test_decoded_bytes_are_what_is_limited(colour, depth, refused):
    """10,000 x 10,000 pixels are accepted as grey, 200 MB.

    In colour, from a palette or with alpha they would be 300 MB or more.
    """
    head = struct.pack(">IIBBBBB", 10_000, 10_000, depth, colour, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head + bytes(4)
    with (
        pytest.raises(TerrainFormatError, match="Save it as grey")
        if refused
        else contextlib.nullcontext()
    ):
        assert read_png_header(data, "a.png").width == 10_000


def test_the_header_alone(tmp_path):
    """Size and pixel format without decoding."""
    header = read_header(write_files(tmp_path, E_COUNTS, E_TXT).png)
    assert (header.width, header.height, header.bit_depth, header.colour_name) == (
        4,
        3,
        16,
        "16-bit grey",
    )


@pytest.fixture
def clean_places(tmp_path, monkeypatch):
    """Every place of the search order below tmp_path, in order, that of Windows among them."""
    cwd = tmp_path / "a" / "b"
    cwd.mkdir(parents=True)
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("PSP_PATH", str(tmp_path / "psp"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "script"), *sys.path[1:]])
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))

    # MATLAB's toolbox
    version_file = tmp_path / "home" / "Documents" / "MATLAB" / FIRMWARE_VERSION_FILE
    version_file.parent.mkdir(parents=True)
    savemat(
        version_file, {"RflyPSP_Px4_Base_Dir": str(tmp_path / "toolbox"), "FirmwareVersion": "1.12"}
    )

    monkeypatch.setattr("rfly_terrain.map_files.search.DEFAULT_PSP_PATH", str(tmp_path / "default"))
    monkeypatch.setattr("rfly_terrain.map_files.search.package_maps", lambda: tmp_path / "package")

    return [
        tmp_path / "extra",
        cwd / "map",
        tmp_path / "script",
        cwd,
        tmp_path / "CopterSim" / "external" / "map",
        tmp_path / "psp" / "CopterSim" / "external" / "map",
        tmp_path / "toolbox" / "CopterSim" / "external" / "map",
        tmp_path / "default" / "CopterSim" / "external" / "map",
        tmp_path / "package",
    ]


def test_the_first_place_with_both_files_wins(clean_places, tmp_path):
    """Filled from the last place to the first, each new one wins; half a map counts nowhere."""
    found = Path()
    for place in reversed(clean_places):
        place.mkdir(parents=True, exist_ok=True)
        (place / "E.png").write_bytes(b"half a map")
        if place is not clean_places[-1]:
            assert find_map("E", [tmp_path / "extra"]).png.parent == found
        write_files(place, E_COUNTS, E_TXT)
        found = find_map("E", [tmp_path / "extra"]).png.parent
        assert found == place
        assert find_map("E", ["../../extra"]).txt == place / "E.txt"


def test_not_found_lists_places_and_the_next_step(clean_places):
    """Every place is named, half a map is pointed out, and the message is one line."""
    clean_places[1].mkdir()
    (clean_places[1] / "E.png").write_bytes(b"")
    with pytest.raises(TerrainFileNotFound) as caught:
        find_map("E", [clean_places[0]])
    text = caught.value.whole_text()  # long temporary paths are shortened in the middle
    for place in clean_places:
        assert str(place) in text
    assert f"{clean_places[1]} (the png is there, the txt next to it is missing)" in text
    assert "PSP_PATH" in text
    assert "\n" not in text
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"MATLAB 5.0" + bytes(200),
        {"RflyPSP_Px4_Base_Dir": 7.0},
        {"RflyPSP_Px4_Base_Dir": {"a": "b"}},
        {},
    ],
)
def test_a_toolbox_without_its_installation_is_no_place(clean_places, tmp_path, content):
    version_file = tmp_path / "home" / "Documents" / "MATLAB" / FIRMWARE_VERSION_FILE
    if isinstance(content, bytes):
        version_file.write_bytes(content)
    else:
        savemat(version_file, {"FirmwareVersion": "1.12", **content})
    with pytest.raises(TerrainFileNotFound) as caught:
        find_map("E")
    assert str(tmp_path / "toolbox") not in str(caught.value)
    assert str(tmp_path / "default") in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="Windows has such a folder")
def test_outside_windows_no_drive_is_searched(monkeypatch):
    monkeypatch.delenv("PSP_PATH", raising=False)
    with pytest.raises(TerrainFileNotFound) as caught:
        find_map("NoSuchMap")
    assert "C:" not in str(caught.value)


def test_a_near_miss_is_suggested(clean_places):
    write_files(clean_places[1], E_COUNTS, E_TXT, name="MountainTerrain")
    with pytest.raises(TerrainFileNotFound, match="Did you mean 'MountainTerrain'"):
        find_map("mountainterrain")


@pytest.mark.parametrize(
    "name", ["E", "E.png", "E.txt", "E.PNG", "./E", "../b/E.png", "{cwd}/E", "{cwd}/E.txt"]
)
def test_names_and_paths_with_or_without_extension(clean_places, name):
    """Names, relative and absolute paths, with and without extension, lead to the same files."""
    write_files(clean_places[3], E_COUNTS, E_TXT)
    files = find_map(name.format(cwd=clean_places[3]))
    assert (files.png, files.txt, files.name) == (
        clean_places[3] / "E.png",
        clean_places[3] / "E.txt",
        "E",
    )


def test_a_given_path_beats_the_places(clean_places):
    """./E and E.png are paths; the bare name takes ./map first."""
    write_files(clean_places[1], E_COUNTS, E_TXT)
    write_files(clean_places[3], E_COUNTS, E_TXT)
    assert find_map("E").png.parent == clean_places[1]
    assert find_map("./E").png.parent == clean_places[3]
    assert find_map("E.png").png.parent == clean_places[3]


def test_a_name_with_folders_is_looked_up_in_every_place(clean_places):
    write_files(clean_places[5] / "alps", E_COUNTS, E_TXT)
    assert find_map("alps/E").png.parent == clean_places[5] / "alps"


@pytest.mark.parametrize("name", ["山 地 ü.v2", "two words", "UPPER"])
def test_unusual_names(clean_places, name):
    """Spaces, dots and letters of any script work, and so do upper-case extensions."""
    files = write_files(clean_places[1], E_COUNTS, E_TXT, name=name)
    if name == "UPPER":
        files.png.rename(files.png.with_suffix(".PNG"))
        files.txt.rename(files.txt.with_suffix(".TXT"))
    assert read_map(find_map(name)).calibration.z_scale_cm == 2


@pytest.mark.parametrize("name", ["", ".png", "folder/", "a\0b", "x" * 5000])
def test_names_that_no_file_can_have(clean_places, name):
    with pytest.raises(TerrainFileNotFound):
        find_map(name)


def test_files_that_vanish_or_are_folders(tmp_path):
    """Typed errors where files change between search and reading."""
    (tmp_path / "D.txt").write_text(E_TXT)
    (tmp_path / "D.png").mkdir()
    with pytest.raises(TerrainFileNotFound):
        find_map(tmp_path / "D")
    with pytest.raises(TerrainFormatError, match="cannot be read"):
        read_map(MapFiles(tmp_path / "D.png", tmp_path / "D.txt"))
    with pytest.raises(TerrainFileNotFound, match="no such file"):
        read_map(MapFiles(tmp_path / "D.png", tmp_path / "gone.txt"))


def test_peak_memory_is_below_three_times_the_heights(tmp_path):
    """Loading a map never holds more than three times its float32 heights."""
    counts = np.random.default_rng(1).integers(-32768, 32767, (1500, 1500))
    files = write_files(tmp_path, counts, "75000,75000,0,-75000,-75000,0,0,0,1000")
    tracemalloc.start()
    heights = read_map(files).heights_up
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        peak + 2 * heights.size < 3 * heights.nbytes
    )  # OpenCV's own 16-bit picture is not seen by tracemalloc
