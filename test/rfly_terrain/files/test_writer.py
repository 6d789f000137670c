# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Written maps read back within one quantisation step, by both of RflySim's third-pixel rules."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_terrain import HeightMap
from rfly_terrain.files.writer import write_map
from rfly_terrain.map_files import png_txt
from rfly_terrain.map_files.png_txt import read_map

PLACE = {"origin_x": -20.0, "origin_y": -30.0, "step_x": 2.0, "step_y": 3.0}


def slow_write_and_read(tmp_path, heights, **place):
    """Return both readings of a written map, in file order.

    That is rows by rising east, columns by rising north.
    """
    files = write_map(heights, tmp_path / "W", overwrite=True, **{**PLACE, **place})
    return (
        read_map(files, "truncate"),
        read_map(files, "round"),
        read_map(files, "round", txt_rule="matlab"),
    )


def assert_same_ground(readings, heights, place):
    """Check heights within half a count (and float32's own step), corners and steps."""
    heights = np.asarray(heights, np.float32).astype(float)
    if place["step_x"] < 0:
        heights = heights[::-1]
    if place["step_y"] < 0:
        heights = heights[:, ::-1]

    step = (heights.max() - heights.min()) / 65535
    tolerance = 0.5 * step * (1 + 1e-6) + np.spacing(np.float32(np.abs(heights).max()))

    east = sorted((place["origin_x"], place["origin_x"] + (heights.shape[0] - 1) * place["step_x"]))
    north = sorted(
        (place["origin_y"], place["origin_y"] + (heights.shape[1] - 1) * place["step_y"])
    )

    for reading in readings:
        assert np.abs(reading.heights_up.astype(float) - heights).max() <= tolerance
        c = reading.calibration
        assert c.pos_offset_x_cm / 100 == pytest.approx(north[0], rel=1e-12)
        assert c.pos_offset_y_cm / 100 == pytest.approx(east[0], rel=1e-12)
        assert (c.pos_offset_x_cm + (c.columns - 1) * c.pos_scale_x_cm) / 100 == pytest.approx(
            north[1], rel=1e-9, abs=1e-6
        )
        assert (c.pos_offset_y_cm + (c.rows - 1) * c.pos_scale_y_cm) / 100 == pytest.approx(
            east[1], rel=1e-9, abs=1e-6
        )


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    heights=npst.arrays(
        np.float32,
        npst.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=9),
        elements=st.floats(-9000, 9000, width=32),
    ),
    origin=st.tuples(*[st.floats(-1e5, 1e5)] * 2),
    steps=st.tuples(*[st.floats(0.01, 1e3) | st.floats(-1e3, -0.01)] * 2),
)
def test_any_heights_come_back_within_half_a_count(tmp_path, heights, origin, steps):
    """Whatever the numbers, shape and place: both rules read the written heights."""
    place = dict(zip(PLACE, (*origin, *steps), strict=True))
    assert_same_ground(slow_write_and_read(tmp_path, heights, **place), heights, place)


@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(columns=st.integers(2, 400), extent=st.integers(1, 10**7), peak=st.integers(0, 399))
def test_awkward_extents_find_the_third_pixel(tmp_path, columns, extent, peak):
    """Extents whose quotient comes out as 6.999… are no trap for a written map.

    The peak is on the edge or inside.
    """
    heights = np.zeros((2, columns))
    heights[0, peak % columns] = 100.0
    step = extent / 100 / (columns - 1)
    place = {"origin_x": 0.0, "origin_y": -extent / 200, "step_x": 1.0, "step_y": step}
    assert_same_ground(slow_write_and_read(tmp_path, heights, **place), heights, place)


@pytest.mark.parametrize("height", [0.0, -12.25, 8848.86, 1e-3])
def test_level_ground(tmp_path, height):
    """Level ground has no count to calibrate with: one pixel value, its height in the txt."""
    for reading in slow_write_and_read(tmp_path, np.full((3, 4), height)):
        assert reading.calibration.z_scale_from == "default"
        np.testing.assert_array_equal(reading.heights_up, np.float32(height))


def test_all_counts_are_used(tmp_path):
    """Lowest and highest cell take the ends of 16 bits; half a metre of relief resolves to 8 µm."""
    heights = np.linspace(100, 100.5, 24).reshape(4, 6)
    files = write_map(heights, tmp_path / "full.png", **PLACE)
    pixels = cv2.imread(str(files.png), cv2.IMREAD_UNCHANGED)
    assert (pixels.dtype, pixels.min(), pixels.max()) == (np.uint16, 0, 65535)


def test_the_txt_of_a_small_map(tmp_path):
    """The txt of 3 rows (east) x 4 columns (north) is spelled out.

    The lowest is 1 m, the highest 656.35 m, so one count is 1 cm.
    """
    heights = np.full((3, 4), 1.0)
    heights[1, 2] = 656.35
    heights[2, 3] = 101.0
    files = write_map(heights, tmp_path / "T", **PLACE, gps=(36.6, -84.2, 300))
    # x2 = -30 m, x1 = -30 + 3·3 = -21 m; y2 = -20, y1 = -16; third at x -24, y -18; heights in cm
    # to float32
    numbers = [float(v) for v in files.txt.read_text().split(",")]
    assert numbers == pytest.approx(
        [-2100, -1600, 10100, -3000, -2000, 100, -2400, -1800, 65635, 36.6, -84.2, 300], abs=0.01
    )
    assert "e" not in files.txt.read_text()
    assert read_map(files).calibration.points.geo_origin == (36.6, -84.2, 300)


@pytest.mark.parametrize(
    ("heights", "change", "text"),
    [
        ([[1.0, np.nan], [0.0, 0.0]], {}, "row 0, column 1 is nan"),
        ([[1.0, 2.0], [-np.inf, 0.0]], {}, "row 1, column 0 is -inf"),
        ([[1.0, 1e39], [0.0, 0.0]], {}, "row 0, column 1 is inf"),
        (np.ma.masked_less([[1.0, -9e3], [0.0, 0.0]], -500), {}, "heights_up: 1 masked"),
        ([[1.0, 2.0]], {}, r"shape \(1, 2\), expected 2 x 2"),
        ([1.0, 2.0], {}, r"shape \(2,\)"),
        ([[1.0, 2.0], [3.0, 4.0]], {"step_x": 0.0}, "steps other than 0"),
        ([[1.0, 2.0], [3.0, 4.0]], {"origin_x": np.inf}, "expected finite numbers"),
        (np.eye(9), {"origin_y": 1e15, "step_y": 1e-3}, "too small beside an origin|no extent"),
    ],
)
def test_what_no_map_can_hold_is_refused(tmp_path, heights, change, text):
    with pytest.raises(TerrainFormatError, match=text):
        write_map(heights, tmp_path / "bad", **{**PLACE, **change})
    assert list(tmp_path.iterdir()) == []


def test_files_are_not_overwritten_unasked(tmp_path):
    """An existing map stays whole until the caller asks."""
    files = write_map(np.eye(3), tmp_path / "M", **PLACE)
    before = files.png.read_bytes()
    with pytest.raises(FileExistsError, match=r"M\.png exists"):
        write_map(np.ones((5, 5)), tmp_path / "M.txt", **PLACE)
    assert files.png.read_bytes() == before
    with pytest.raises(ConfigError, match="there is no folder"):
        write_map(np.eye(3), tmp_path / "missing" / "M", **PLACE)
    write_map(np.ones((5, 5)), tmp_path / "M", **PLACE, overwrite=True)
    assert read_map(files).calibration.rows == 5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["M.png", "M.txt"]


def test_a_kill_between_the_two_files_is_told_and_mended(tmp_path, monkeypatch):
    """The new png with the old txt would be a plausible third map."""
    old = np.linspace(0.0, 20.0, 30).reshape(5, 6)
    new = np.linspace(1000.0, 1200.0, 30).reshape(5, 6)
    files = write_map(old, tmp_path / "hill", **PLACE)

    class Killed(BaseException):
        pass

    real_replace = os.replace

    def replace_png_only(source, target):
        if str(target).endswith(".txt"):
            raise Killed
        real_replace(source, target)

    monkeypatch.setattr(png_txt.time, "sleep", lambda _: None)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_png_only)
        with pytest.raises(Killed):
            write_map(new, tmp_path / "hill", overwrite=True, **PLACE)
    with pytest.raises(TerrainFormatError, match=r"hill\.txt: is older than hill\.png"):
        read_map(files)

    # a txt that somebody wrote since then belongs to the png, and so does that of the next import
    written = files.txt.read_bytes()
    files.txt.write_bytes(written.replace(b"\n", b" \n"))
    assert read_map(files).heights_up.shape == (5, 6)
    for heights in (old, new, new, old):
        write_map(heights, tmp_path / "hill", overwrite=True, **PLACE)
        assert np.allclose(read_map(files).heights_up, heights, atol=0.01)


def test_a_reader_never_mixes_two_maps(tmp_path, monkeypatch):
    """Between its two files a reader meets one import, two imports, and half of one."""
    maps = [np.full((4, 4), base) + np.arange(4.0) for base in (0.0, 500.0, 1000.0)]
    files = write_map(maps[0], tmp_path / "hill", **PLACE)
    read_png = png_txt._read_whole
    after = [[1], [1, 2], [0]]

    def read_after_imports(path):
        for index in after.pop(0) if after else ():
            write_map(maps[index], tmp_path / "hill", overwrite=True, **PLACE)
        return read_png(path)

    monkeypatch.setattr(png_txt.time, "sleep", lambda _: None)
    monkeypatch.setattr(png_txt, "_read_whole", read_after_imports)
    assert np.allclose(read_map(files).heights_up, maps[0], atol=0.01)
    assert after == []


@pytest.mark.parametrize("round_", range(2))
def test_writers_take_turns(tmp_path, round_):
    """Several processes' worth of writers leave one whole map."""
    maps = [np.full((40, 40), 100.0 * base) + np.arange(40.0) for base in range(4)]
    write_map(maps[0], tmp_path / "hill", **PLACE)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            list(
                pool.map(
                    lambda heights: write_map(heights, tmp_path / "hill", overwrite=True, **PLACE),
                    maps,
                )
            )
    heights = HeightMap.load(tmp_path / "hill.png").heights
    assert any(np.allclose(heights, each, atol=0.01) for each in maps)
