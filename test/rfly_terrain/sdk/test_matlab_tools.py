# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""LoadPngData and getTerrainAltData against the documented behaviour of the MATLAB tools."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.io import loadmat, savemat

from rfly_common.errors import TerrainFileNotFound, TerrainFormatError, TerrainNotLoaded
from rfly_terrain import LoadPngData, getTerrainAltData
from rfly_terrain.sdk.matlab_tools import clear_terrain

E_COUNTS = [[0, 100, 200, 300], [50, 150, 250, 350], [100, 200, 300, 500]]
E_TXT = "300,200,1600,-300,-200,600,100,0,1100"


def write_map_e(folder: Path, name: str = "MountainTerrain", txt: str = E_TXT) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(folder / f"{name}.png"), (np.array(E_COUNTS) + 32768).astype(np.uint16))
    (folder / f"{name}.txt").write_text(txt)


@pytest.fixture(autouse=True)
def work_folder(tmp_path, monkeypatch):
    """An empty current folder two levels deep, no installation, nothing kept from another test."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PSP_PATH", str(tmp_path / "psp"))
    clear_terrain()
    yield folder
    clear_terrain()


def test_the_five_variables(work_folder):
    """MapHeightData.mat is in the current folder.

    It holds binmap in double, NED metres; offsets and scales are in cm.
    """
    write_map_e(work_folder / "map")
    LoadPngData()
    data = loadmat(work_folder / "MapHeightData.mat")
    names = {name for name in data if not name.startswith("__")}
    assert names == {"binmap", "PosOffsetX", "PosScaleX", "PosOffsetY", "PosScaleY"}
    assert data["binmap"].dtype == np.float64
    np.testing.assert_allclose(data["binmap"], -(np.array(E_COUNTS) * 2 + 600) / 100, rtol=1e-15)
    assert [data[n].item() for n in ("PosOffsetX", "PosScaleX", "PosOffsetY", "PosScaleY")] == [
        -300,
        200,
        -200,
        200,
    ]


def test_heights_are_double(work_folder):
    """A scale that float32 cannot hold: MATLAB's heights are exact to double precision."""
    write_map_e(work_folder / "map", txt="300,200,0,-300,-200,0,-100,0,123.456")
    # third pixel row 1, column 1: k 150; kL 0, kR 500, so the right-top pair: (0 - 123.456) / (500
    # - 150)
    LoadPngData("MountainTerrain")
    binmap = loadmat("MapHeightData.mat")["binmap"]
    assert binmap[0, 1] == pytest.approx(100 * 123.456 / 350 / 100, rel=1e-15)


@pytest.mark.parametrize(
    ("x", "y", "z"),
    [
        *(
            (-3, -2, -6),
            (3, -2, -12),
            (-3, 2, -8),
            (3, 2, -16),
            (0, 0, -10),
            (-2, -1, -7.5),
            (2.5, 1.5, -14.375),
        ),
        *((100, 0, -13), (0, -50, -9), (-1000, 1000, -8), (-2, 50, -9)),
    ],
)
def test_altitudes(work_folder, x, y, z):
    """Examples 2 to 4, in double precision."""
    write_map_e(work_folder / "map")
    LoadPngData()
    altitude = getTerrainAltData(x, y)
    assert type(altitude) is float
    assert altitude == pytest.approx(z, abs=1e-12)


def test_third_point_is_rounded(work_folder):
    """Example 8 by MATLAB's rule."""
    write_map_e(work_folder / "map", txt="300,200,1600,-300,-200,600,80,0,1100")
    LoadPngData()
    assert getTerrainAltData(3, 2) == pytest.approx(-16, abs=1e-12)


def test_txt_with_more_or_other_separators(work_folder):
    """The first nine numbers count, whatever follows."""
    write_map_e(work_folder / "map", txt="300,200,1600\n-300 -200 600,100,0,1100,7,text")
    LoadPngData()
    assert getTerrainAltData(0, 0) == pytest.approx(-10)
    write_map_e(work_folder / "map", txt="300,200,1600,-300,-200,600,100,0")
    with pytest.raises(TerrainFormatError, match="8 numbers, expected at least 9"):
        LoadPngData()


def test_arrays(work_folder):
    """Arrays broadcast, element by element as the scalars."""
    write_map_e(work_folder / "map")
    LoadPngData()
    x = np.array([-3.0, 0.0, 2.5, 100.0])
    y = np.array([[-2.0], [1.5]])
    z = getTerrainAltData(x, y)
    assert z.shape == (2, 4)
    assert z.tolist() == [[getTerrainAltData(a, b) for a in x.tolist()] for b in y.ravel().tolist()]


def test_the_file_is_read_once_until_cleared(work_folder, caplog):
    """A new map is seen only after clearing, as with MATLAB's persistent variable."""
    write_map_e(work_folder / "map")
    LoadPngData()
    assert getTerrainAltData(-3, -2) == -6
    LoadPngData()
    assert not caplog.messages
    write_map_e(work_folder / "map", "Other", "300,200,2600,-300,-200,1600,100,0,2100")
    LoadPngData("Other")
    (told,) = caplog.messages
    assert re.search(
        r"still answers .* rfly_terrain\.clear_terrain\(\) makes it read .*Other\.png", told
    )
    assert getTerrainAltData(-3, -2) == -6
    clear_terrain()
    assert getTerrainAltData(-3, -2) == -16


def test_search_order(work_folder, tmp_path):
    """map, ../../CopterSim/external/map, the installation: MATLAB's places, and none besides.

    With search_further the others follow, such as the current folder.
    """
    write_map_e(work_folder, txt="300,200,1600,-300,-200,900,100,0,1400")
    with pytest.raises(TerrainFileNotFound, match=r"no MountainTerrain\.png in .*search_further"):
        LoadPngData()
    assert not Path("MapHeightData.mat").exists()
    LoadPngData(search_further=True)
    assert getTerrainAltData(-3, -2) == pytest.approx(-9)

    places = [
        tmp_path / "psp" / "CopterSim" / "external" / "map",
        tmp_path / "CopterSim" / "external" / "map",
        work_folder / "map",
    ]
    for n, place in enumerate(places):
        write_map_e(place, txt=f"300,200,1600,-300,-200,{100 * n},100,0,{100 * n + 500}")
        LoadPngData(pngMapName="MountainTerrain")
        clear_terrain()
        assert getTerrainAltData(-3, -2) == pytest.approx(-n)


def test_it_fails_where_matlabs_tool_fails(work_folder, tmp_path):
    """The first png counts, its txt lies next to it, a name is no path, and colour is refused."""
    write_map_e(tmp_path / "CopterSim" / "external" / "map")
    LoadPngData()

    # a png without a txt in an earlier place
    (work_folder / "map").mkdir()
    cv2.imwrite("map/MountainTerrain.png", np.zeros((3, 4), np.uint16))
    with pytest.raises(TerrainFileNotFound, match="the png is there, the txt next to it is mis"):
        LoadPngData()
    LoadPngData(search_further=True)

    # names
    write_map_e(work_folder / "map")
    whole_path = str(work_folder / "map" / "MountainTerrain")
    for name in ("MountainTerrain.png", "MountainTerrain.txt", whole_path, ""):
        with pytest.raises(TerrainFileNotFound, match="expected a name without folder and ext"):
            LoadPngData(name)
    LoadPngData("MountainTerrain.png", search_further=True)
    LoadPngData(whole_path, search_further=True)

    # colour: three equal channels are grey for search_further only
    grey = np.array([[0, 50, 90, 99]] * 3, np.uint8)
    cv2.imwrite("map/MountainTerrain.png", np.dstack([grey] * 3))
    with pytest.raises(TerrainFormatError, match=r"MountainTerrain\.png: a colour picture"):
        LoadPngData()
    LoadPngData(search_further=True)


def test_both_spellings_of_the_manual_are_the_same_function(work_folder):
    from rfly_terrain import GetTerrainAltData

    write_map_e(work_folder / "map")
    LoadPngData()
    assert GetTerrainAltData(0, 0) == getTerrainAltData(0, 0) == pytest.approx(-10)


def test_faults(work_folder):
    """Errors name the missing or broken thing together with the next step."""
    # no files, and files of another kind
    with pytest.raises(
        TerrainNotLoaded, match=r"MapHeightData\.mat: no such file; call LoadPngData"
    ):
        getTerrainAltData(0, 0)
    with pytest.raises(TerrainFileNotFound, match="MountainTerrains"):
        LoadPngData("MountainTerrains")
    for content in (b"", b"no mat file at all" * 20):
        Path("MapHeightData.mat").write_bytes(content)
        with pytest.raises(TerrainFormatError, match="MapHeightData"):
            getTerrainAltData(0, 0)

    # broken variables
    good = {
        "binmap": np.zeros((2, 2)),
        "PosOffsetX": 0.0,
        "PosScaleX": 1.0,
        "PosOffsetY": 0.0,
        "PosScaleY": 1.0,
    }
    for change in (
        {"binmap": np.zeros((1, 5))},
        {"PosScaleX": 0.0},
        {"PosOffsetY": np.nan},
        {"PosScaleY": [1.0, 2.0]},
    ):
        savemat("MapHeightData.mat", {**good, **change})
        with pytest.raises(TerrainFormatError):
            getTerrainAltData(0, 0)

    # broken arguments
    savemat("MapHeightData.mat", good)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="expected finite"):
            getTerrainAltData(bad, 0)
