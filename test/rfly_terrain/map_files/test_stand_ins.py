# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Our maps in place of RflySim's MountainTerrain and Grasslands.

They are the ground of its experiments, come last in the order, and cause one warning.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_terrain import HeightMap, LoadPngData, find_map, getTerrainAltData, package_maps
from rfly_terrain.map_files import search
from rfly_terrain.sdk.matlab_tools import clear_terrain

SCRIPT = Path(__file__).parents[3] / "examples" / "make_formula_maps.py"


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch, tmp_path):
    """Provide a folder without maps, no installation, and a process without a warning so far."""
    monkeypatch.chdir(tmp_path)
    for variable in ("PSP_PATH", "HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    search._warn_of_stand_in.cache_clear()
    clear_terrain()
    yield
    search._warn_of_stand_in.cache_clear()
    clear_terrain()


@pytest.fixture
def warnings(monkeypatch):
    """Return the texts of the warnings.

    caplog does not see them: `launch`, where it is installed, replaces the root logger.
    """
    texts = []
    monkeypatch.setattr(
        search._logger, "warning", lambda text, *values: texts.append(text % values)
    )
    return texts


def test_the_experiments_stand_on_their_ground():
    """The objects of the experiments stand on their ground.

    Experiment 3: the person at z -177.181. Experiments 1 and 2: click point z -10.465 below the
    targets.
    """
    mountain = HeightMap.load("MountainTerrain")
    grass = HeightMap.load("Grasslands")
    assert mountain.altitude_ned(-16.479, 1.45) == pytest.approx(-177.181, abs=0.01)
    for north, east in ((43.943, 1.620), (72.946, -4.388)):
        assert grass.altitude_ned(north, east) == pytest.approx(-10.465, abs=0.01)
    assert mountain.z_max - mountain.z_min > 300.0
    assert grass.z_max - grass.z_min < 12.0


def test_load_png_data_without_a_name(warnings):
    LoadPngData(search_further=True)
    LoadPngData(search_further=True)
    assert getTerrainAltData(-16.479, 1.45) == pytest.approx(-177.181, abs=0.01)
    (text,) = warnings
    assert text.startswith("map 'MountainTerrain': our stand-in")


def test_rflysims_own_comes_first_without_a_warning(tmp_path, monkeypatch, warnings):
    folder = tmp_path / "psp" / "CopterSim" / "external" / "map"
    folder.mkdir(parents=True)
    for ending in ("png", "txt"):
        (folder / f"Grasslands.{ending}").write_bytes(
            (package_maps() / f"RollingHills.{ending}").read_bytes()
        )
    monkeypatch.setenv("PSP_PATH", str(tmp_path / "psp"))
    assert find_map("Grasslands").png.parent == folder
    assert find_map("RollingHills").png.parent == package_maps()
    assert not warnings
    find_map("MountainTerrain")
    assert len(warnings) == 1


def test_a_script_sees_the_warning(tmp_path):
    code = "from rfly_terrain import UEMapServe; UEMapServe('Grasslands'); UEMapServe('Grasslands')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("stand-in")) == (0, "", 1)


def test_the_script_makes_what_is_shipped(tmp_path):
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    for name in ("RollingHills", "MountainTerrain", "Grasslands"):
        made = HeightMap.load(tmp_path / f"{name}.png")
        shipped = HeightMap.load(package_maps() / f"{name}.png")
        np.testing.assert_allclose(made.heights, shipped.heights, atol=0.01)
        assert (made.bounds, made.geo_origin) == (shipped.bounds, shipped.geo_origin)
