# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Texts of coordinate reference systems: the usual forms pass, none makes GDAL open a file."""

from __future__ import annotations

import pytest
from optional_parts import late_module

from rfly_common.errors import ConfigError
from rfly_terrain.files.raster_file import LONGEST_CRS, checked_crs

crs_module = late_module("rasterio.crs")
pytestmark = pytest.mark.needs("rasterio")

NAMED = {
    "EPSG:4326": 4326,
    "epsg:32632": 32632,
    " EPSG:4326\n": 4326,
    "WGS84": 4326,
    "urn:ogc:def:crs:EPSG::4326": 4326,
    "+proj=utm +zone=32": 32632,
    "+proj=utm +zone=32 +ellps=GRS80": 25832,
    "ESRI:102003": None,
    "IGNF:LAMB93": None,
    "OGC:CRS84": None,
    "EPSG:4326+5773": None,
}


@pytest.mark.parametrize("text", NAMED)
def test_the_usual_forms(text):
    found = crs_module.CRS.from_user_input(checked_crs(text))
    assert found.to_wkt()
    if NAMED[text]:
        assert found.to_epsg() == NAMED[text]


@pytest.mark.parametrize("version", ["WKT1_GDAL", "WKT1_ESRI", "WKT2_2019"])
@pytest.mark.parametrize("code", [4326, 3857, 32632, 2056, 25832])
def test_wkt(code, version):
    """That of 3857 names a grid, `@null`, which is no file."""
    text = crs_module.CRS.from_epsg(code).to_wkt(version=version)
    assert crs_module.CRS.from_user_input(checked_crs(text)).to_epsg() == code


@pytest.mark.parametrize(
    "text",
    [
        "a.prj", " a.prj", "./a.prj", "{folder}/a.prj", "ESRI::a.prj", "ESRI::{folder}/a.prj",
        "dict:a.prj,NAME", "DICT:a.prj", "+init=./a:x", "+proj=utm +zone=32 +init={folder}/a:x",
        "+init=epsg:4326", "+proj=longlat +nadgrids=./a.prj", "+proj=longlat +nadgrids=a.prj",
        "+proj=longlat +geoidgrids=@a.prj", "file:a.prj", "http://127.0.0.1/a", "/vsizip/a.zip",
        'GEOGCS["x",EXTENSION["PROJ4","+proj=longlat +nadgrids=a.prj"]]',
        'BOUNDCRS[SOURCECRS[],ABRIDGEDTRANSFORMATION["x",PARAMETERFILE["f","/etc/passwd"]]]',
        "", "-", "EPSG", "x" * 100_000, "EPSG:" + "1" * LONGEST_CRS,
    ],
)  # fmt: skip
def test_what_could_open_a_file_or_is_none_is_refused_in_a_short_line(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.prj").write_text("NAME,+proj=longlat\n")
    with pytest.raises(ConfigError, match="expected such as EPSG:4326") as caught:
        checked_crs(text.replace("{folder}", str(tmp_path)))
    assert len(str(caught.value)) <= 1000
