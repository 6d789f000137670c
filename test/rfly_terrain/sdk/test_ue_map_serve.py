# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UEMapServe against the SDK's documented attributes, numbers and faults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from rfly_common.errors import TerrainFileNotFound, TerrainFormatError, TerrainNotLoaded
from rfly_terrain import UEMapServe

E_COUNTS = [[0, 100, 200, 300], [50, 150, 250, 350], [100, 200, 300, 500]]
E_TXT = "300,200,1600,-300,-200,600,100,0,1100"


def write_map_e(folder: Path, name: str = "E", txt: str = E_TXT) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(folder / f"{name}.png"), (np.array(E_COUNTS) + 32768).astype(np.uint16))
    (folder / f"{name}.txt").write_text(txt)
    return str(folder / name)


def test_before_loading():
    """The object has zeros, an empty list, no rows or columns; look-ups say what to call."""
    serve = UEMapServe()
    assert (
        serve.PosOffsetX,
        serve.PosOffsetY,
        serve.PosScaleX,
        serve.PosScaleY,
        serve.xMax,
        serve.yMax,
    ) == (0,) * 6

    assert serve.binmap == []
    assert serve.GPS is None
    assert not hasattr(serve, "rows")
    assert not hasattr(serve, "columns")

    with pytest.raises(TerrainNotLoaded, match="call LoadPngData"):
        serve.getTerrainAltData(0, 0)
    with pytest.raises(TerrainNotLoaded):
        serve.outTerrainPoint()


def test_attributes_of_example_1(tmp_path):
    serve = UEMapServe(write_map_e(tmp_path))
    assert (serve.PosOffsetX, serve.PosOffsetY, serve.PosScaleX, serve.PosScaleY) == (
        -300,
        -200,
        200,
        200,
    )
    assert (serve.xMax, serve.yMax, serve.GPS, serve.rows, serve.columns) == (3, 2, None, 3, 4)
    assert serve.binmap.dtype == np.float32
    np.testing.assert_array_equal(serve.binmap, -(np.array(E_COUNTS) * 2 + 600) / 100)


@pytest.mark.parametrize(
    ("x", "y", "z"),
    [
        *((-3, -2, -6), (3, -2, -12), (-3, 2, -8), (3, 2, -16)),
        *((0, 0, -10), (-2, -1, -7.5), (2.5, 1.5, -14.375)),
        *((100, 0, -13), (0, -50, -9), (-1000, 1000, -8), (-2, 50, -9), (1e308, -1e308, -12)),
    ],
)
def test_altitudes_of_examples_2_to_4(tmp_path, x, y, z):
    """Corners, inside and outside; ints and NumPy scalars too; always a float."""
    serve = UEMapServe(write_map_e(tmp_path))
    for kind in (float, np.float64, np.float32, int if x == int(x) and y == int(y) else float):
        if abs(x) < 1e30 or kind is float:
            altitude = serve.getTerrainAltData(xin=kind(x), yin=kind(y))
            assert type(altitude) is float
            assert altitude == pytest.approx(z, abs=1e-4)


def test_third_point_is_truncated(tmp_path):
    """Example 8 by the Python tool's rule."""
    serve = UEMapServe(write_map_e(tmp_path, txt="300,200,1600,-300,-200,600,80,0,1100"))
    assert serve.getTerrainAltData(3, 2) == pytest.approx(-13.142857, abs=1e-4)


def test_example_11_gps(tmp_path):
    serve = UEMapServe()
    serve.LoadPngData(
        name=write_map_e(tmp_path, txt="500,300,1600,-100,-100,600,300,100,1100,30.5,120.25,50")
    )
    assert serve.GPS == [30.5, 120.25, 50]
    assert (serve.xMax, serve.yMax) == (5, 3)
    assert serve.getTerrainAltData(2, 1) == pytest.approx(-10, abs=1e-4)
    assert serve.getTerrainAltData(0, 0) == pytest.approx(-7.5, abs=1e-4)


def test_example_12_out_terrain_point(tmp_path):
    """12 tuples of Python floats: rows outside, columns inside; x north, y east, z down."""
    points = UEMapServe(write_map_e(tmp_path)).outTerrainPoint()
    assert type(points) is list
    assert len(points) == 12
    for index, point in {0: (-3, -2, -6), 1: (-1, -2, -8), 4: (-3, 0, -7), 11: (3, 2, -16)}.items():
        assert points[index] == pytest.approx(point, abs=1e-4)
    assert {type(value) for point in points for value in point} == {float}
    assert {type(point) for point in points} == {tuple}


def test_loading_again_replaces_everything_and_a_failure_nothing(tmp_path):
    serve = UEMapServe(write_map_e(tmp_path, "first", E_TXT + ",1,2,3"))
    write_map_e(tmp_path, "bad", "300,200,1600,300,-200,600,100,0,1100")
    with pytest.raises(TerrainFormatError, match="no extent"):
        serve.LoadPngData(str(tmp_path / "bad"))
    with pytest.raises(TerrainFileNotFound):
        serve.LoadPngData(str(tmp_path / "missing"))
    assert (serve.GPS, serve.getTerrainAltData(-3.0, -2.0)) == ([1, 2, 3], pytest.approx(-6))
    serve.LoadPngData(write_map_e(tmp_path, "second", "300,200,1600,-300,-200,1600,100,0,2100"))
    assert serve.GPS is None
    assert serve.getTerrainAltData(-3.0, -2.0) == pytest.approx(-16)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_coordinates_that_are_no_numbers_are_errors(tmp_path, bad):
    serve = UEMapServe(write_map_e(tmp_path))
    for x, y in ((bad, 0.0), (0.0, bad)):
        with pytest.raises(ValueError, match="expected finite"):
            serve.getTerrainAltData(x, y)


@pytest.mark.parametrize("bad", [[1.0], [1.0, 2.0], np.array([1.0]), np.zeros((2, 2))])
def test_arrays_are_errors(tmp_path, bad):
    with pytest.raises(TypeError, match="one x and one y"):
        UEMapServe(write_map_e(tmp_path)).getTerrainAltData(bad, 0.0)


@pytest.mark.parametrize("bad", ["1", b"1", None])
def test_texts_are_errors_as_in_the_sdks_arithmetic(tmp_path, bad):
    serve = UEMapServe(write_map_e(tmp_path))
    for x, y in ((bad, 0.0), (0.0, bad)):
        with pytest.raises(TypeError):
            serve.getTerrainAltData(x, y)


def test_the_sdks_places_come_first(tmp_path, monkeypatch):
    """The script's folder comes first, then CopterSim's map folder.

    Only then comes ./map, which the SDK does not know.
    """
    script = tmp_path / "script"
    psp = tmp_path / "psp"
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("PSP_PATH", str(psp))
    monkeypatch.setattr(sys, "path", [str(script), *sys.path[1:]])
    places = [(cwd / "map", 5), (psp / "CopterSim" / "external" / "map", 4), (script, 3)]
    for folder, last in places:  # from the last place to the first
        write_map_e(folder, txt=E_TXT + f",0,0,{last}")
        assert [0, 0, last] == UEMapServe("E").GPS


def test_a_script_written_for_the_sdk_runs(tmp_path):
    """A script written for the SDK runs after a change of its import line.

    The map lies next to it, in another folder than the current one.
    """
    write_map_e(tmp_path / "folder with spaces", "Insel ü")
    script = tmp_path / "folder with spaces" / "fly.py"
    script.write_text(
        "from rfly_terrain import UEMapServe\n"
        "map = UEMapServe()\n"
        "map.LoadPngData('Insel ü')\n"
        "zz = map.getTerrainAltData(2.5, 1.5)\n"
        "print('%.3f %d %d %d' % (zz, map.rows, map.columns, len(map.outTerrainPoint())))\n",
        encoding="utf-8",
    )

    root = str(Path(__file__).resolve().parents[3])
    result = subprocess.run(
        [sys.executable, str(script)],
        cwd="/",
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "-14.375 3 4 12\n"), result.stderr
