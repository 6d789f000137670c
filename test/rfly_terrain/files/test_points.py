# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Points in text files: headings, separators, columns that are not used, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain.files.points import Columns, parse_points, write_cloud

POINTS = [[100.0, 200.0], [-1.5, 20.0]]


@pytest.mark.parametrize(
    ("text", "columns", "unused"),
    [
        ("100,200\n-1.5,2e1\n", Columns.FIRST_TWO, ""),
        ("100 200\n\n  -1.5\t20\n", Columns.FIRST_TWO, ""),
        ("100;200\r\n-1,5;20\r\n", Columns.FIRST_TWO, ""),
        ("100\t200\r-1,5\t20\r", Columns.FIRST_TWO, ""),
        ("100,200,7\n-1.5,20\n", Columns.FIRST_TWO, "column number 3 is"),
        ("# a survey\n100,200\n# gap\n-1.5,20\n", Columns.FIRST_TWO, ""),
        ("id,x,y,z\n1,100,200,5\n2,-1.5,20,5\n", Columns.X_Y, "columns id, z are"),
        ("\ufeffY,X\n200,100\n20,-1.5\n", Columns.X_Y, ""),
        ('"x","y"\n"100","200"\n"-1.5","20"\n', Columns.X_Y, ""),
        (",x,y\n0,100,200\n1,-1.5,20\n", Columns.X_Y, "column number 1 is"),
        ("x [m];y [m];t\n100;200;0\n-1,5;20;1\n", Columns.X_Y, "column t is"),
        ("# y x\n200 100\n20 -1.5\n", Columns.X_Y, ""),
        ("# y of x\n100 200\n-1.5 20\n", Columns.FIRST_TWO, ""),
        ("t,x_m,y_m\n0,100,200\n1,-1.5,20,\n", Columns.X_Y, "column t is"),
        ("north,east\n200,100\n20,-1.5\n", Columns.EAST_NORTH, ""),
        ("Northing (m)\tEasting (m)\n200\t100\n20\t-1.5\n", Columns.EAST_NORTH, ""),
        ("lat,lon,x,y\n46,8,100,200\n46,8,-1.5,20\n", Columns.X_Y, "columns lat, lon are"),
    ],
)
def test_columns(text, columns, unused):
    table = parse_points(text, "p.csv")
    assert (table.points.tolist(), table.columns) == (POINTS, columns)
    assert list(table.notes) == ([f"p.csv: the {unused} not used"] if unused else [])


@pytest.mark.parametrize(
    "text",
    [
        "lon,lat\n8.03,46.01\n",
        "latitude;longitude\n46,01;8,03\n",
        "name, Lat (°), Lng (°)\nsummit, 46.01, 8.03\n",
        "x,y,lat,lon\n1,2,46.01,8.03\n",
        "lat_deg lon_deg\n46.01 8.03\n",
    ],
)
def test_latitudes_come_first(text):
    table = parse_points(text, "p.csv", geodetic=True)
    assert (table.points.tolist(), table.columns) == ([[46.01, 8.03]], Columns.LATITUDE_LONGITUDE)


def test_heights_are_those_of_the_heading():
    text = "z,t,y,x\n5,0,200,100\n"
    assert parse_points(text, "p.csv", heights=True).points.tolist() == [[100, 200, 5]]
    assert parse_points("1,2,3\n", "p.csv", heights=True).points.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.csv: no points, expected lines of x,y in metres"),
        ("x,y\n# none\n", "p.csv: no points, expected lines of x,y in metres"),
        ("a,b\n1,2\n", "p.csv:1: expected the columns x and y, or lat and lon, not 'a, b'"),
        ("x [ft],y [ft]\n1,2\n", "p.csv:1: expected the columns x and y, or lat and lon, not 'x"),
        ("x,y,x\n1,2,3\n", "p.csv:1: expected the columns x and y, or lat and lon, not 'x, y, x'"),
        ("lat,east\n1,2\n", "p.csv:1: expected the columns x and y"),
        ("x,y\n1,2\n3\n", "p.csv:3: '3' holds no two finite numbers"),
        ("x,y\n1,nan\n", "p.csv:2: '1,nan' holds no two finite numbers"),
        ("x,y\n1,1_0\n", "p.csv:2: '1,1_0' holds no two finite numbers"),
        ("1,2\nthree,4\n", "p.csv:2: 'three,4' holds no two finite numbers"),
        ("x,y\n1,5,2,5\n", "p.csv:2: 4 columns, expected 2 as in the first line"),
        ("1,2\n3,4,5\n", "p.csv:2: 3 columns, expected 2 as in the first line"),
        ("lat,lon\n46,8\n108,20\n", "p.csv:3: 108 is no latitude in degrees"),
        ("lat,lon\n46,8\n46,400\n", "p.csv:3: 400 is no longitude in degrees"),
        ('x,y\n1,"2\n', "p.csv:2: unexpected end of data"),
    ],
)
def test_refused_with_file_line_and_reason(text, message):
    with pytest.raises(ConfigError) as refused:
        parse_points(text, "p.csv")
    assert str(refused.value).startswith(message)


def test_masked_points_make_no_cloud(tmp_path):
    points = np.ma.masked_less(np.zeros((2, 3, 3), np.float32), 1.0)
    with pytest.raises(ValueError, match="points: 18 masked"):
        write_cloud(points, tmp_path / "a.ply")
    assert not list(tmp_path.iterdir())


def test_more_points_than_wanted():
    with pytest.raises(ConfigError, match=r"^p\.csv: more than 2 points"):
        parse_points("1,2\n" * 3, "p.csv", most=2)
