# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly terrain` as a user meets it: what it prints, what it writes, and one line with exit code 2
for each mistake.
"""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from rfly_bringup.cli.main import main
from rfly_terrain.files.writer import write_height_map
from rfly_terrain.height_map.height_map import HeightMap

ROOT = Path(__file__).resolve().parents[3]
E_COUNTS = [[0, 100, 200, 300], [50, 150, 250, 350], [100, 200, 300, 500]]
E_TXT = "300,200,1600,-300,-200,600,100,0,1100"


@pytest.fixture(autouse=True)
def work_folder(tmp_path, monkeypatch):
    """A current folder with map E of the format's worked examples."""
    monkeypatch.chdir(tmp_path)
    cv2.imwrite("E.png", (np.array(E_COUNTS) + 32768).astype(np.uint16))
    Path("E.txt").write_text(E_TXT)
    return tmp_path


@pytest.fixture
def rfly(monkeypatch, capsys):
    """Runs the command; (exit code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rfly", "terrain", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_info_in_words(rfly):
    code, out, _ = rfly("info", "E")
    assert code == 0
    for text in (
        "16-bit grey",
        "3 rows (east) x 4 columns (north)",
        "-2 … 2 m  (4 m)",
        "-3 … 3 m  (6 m)",
        "6.000 … 16.000",
    ):
        assert text in out
    assert "2 cm a count (third point and left-bottom corner)" in out


def test_info_for_programs(rfly):
    facts = json.loads(rfly("info", "E", "--json")[1])
    assert facts["bounds_enu_m"] == [-2, 2, -3, 3]
    assert (
        facts["rows"],
        facts["columns"],
        facts["z_scale_cm"],
        facts["third_pixel"],
    ) == (
        3,
        4,
        2,
        [1, 2],
    )
    assert (facts["pos_offset_cm"], facts["pos_scale_cm"], facts["gps"]) == (
        [-300, -200],
        [200, 200],
        None,
    )
    assert facts["sha256"] == HeightMap.load("E").sha256


def test_info_of_the_demo_map_is_the_default(rfly):
    _, out, _ = rfly("info")
    assert "JacksboroFault" in out
    assert "read as latitude, longitude, altitude" in out


def test_the_third_pixels_rule_is_a_choice(rfly):
    """Example 8: another pixel, another z scale."""
    Path("E.txt").write_text("300,200,1600,-300,-200,600,80,0,1100")
    scales = [
        json.loads(rfly("info", "E", "--json", "--third-pixel", rule)[1])["z_scale_cm"]
        for rule in ("truncate", "round")
    ]
    assert scales == [pytest.approx(10 / 7), 2]


def test_query_one_point(rfly):
    """x east, y north, z up; negative numbers are numbers, not options."""
    assert rfly("query", "--map", "E", "1.5", "2.5") == (
        0,
        "altitude  14.3750 m (z up, frame map)\ninside    yes\n",
        "",
    )
    assert rfly("query", "--map", "E", "-1", "-2")[1].startswith(
        "altitude  7.5000 m (z up, frame map)"
    )
    assert (
        "inside    no: the altitude is that of the map's edge"
        in rfly("query", "--map", "E", "-50", "0")[1]
    )


def placed_plane():
    """Write the map P: z = 0.1 x up to the east, its origin at 47° north, 8° east, 500 m."""
    x, _ = np.mgrid[-1000.0:1001.0:10.0, -1000.0:1001.0:10.0]
    plane = HeightMap(
        0.1 * x,
        origin_x=-1000.0,
        origin_y=-1000.0,
        step_x=10.0,
        step_y=10.0,
        geo_origin=(47.0, 8.0, 500.0),
    )
    write_height_map(plane, "P")


def test_query_by_latitude_and_longitude(rfly):
    """0.001° of longitude at 47° are 76.056 m, so the ground is 7.606 m higher."""
    placed_plane()
    code, out, _ = rfly("query", "--map", "P", "--latlon", "47", "8.001")
    assert code == 0
    assert "(above the map's datum)\ninside    yes" in out
    half_a_count = 0.002
    assert float(out.split()[1]) == pytest.approx(507.6056, abs=half_a_count)

    Path("p.csv").write_text("lon,lat\n8,47\n8.001,47\n")
    lines = rfly("query", "--map", "P", "--latlon", "--points", "p.csv")[1].splitlines()
    assert lines[0] == "latitude,longitude,altitude,inside"
    altitudes = [float(line.split(",")[2]) for line in lines[1:]]
    assert altitudes == [
        pytest.approx(500.0, abs=half_a_count),
        pytest.approx(507.6056, abs=half_a_count),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "--map", "P", "--latlon", "8", "47"], "latitude comes first"),
        (["query", "--map", "P", "--latlon", "95", "8"], "latitude is 95, expected degrees"),
        (["query", "--map", "E", "--latlon", "47", "8"], "names no latitude and longitude"),
        (["query", "--map", "P", "--latlon", "--frame", "map_ned", "47", "8"], "exclude"),
        (["profile", "0", "0", "0", "0", "P"], "the same place"),
        (["profile", "0", "0", "nan", "0", "P"], "must be finite"),
    ],
)
def test_wrong_places_are_refused_in_a_line(rfly, arguments, message):
    placed_plane()
    code, _, error = rfly(*arguments)
    assert code == 2
    assert message in error


def test_profile(rfly):
    """500 m to the east on a plane that rises by 0.1: 50 m up, 5.7°."""
    placed_plane()
    code, out, _ = rfly(
        *["profile", "-100", "0", "400", "0", "P", "-n", "6", "--out", "p.png", "--save", "p.csv"]
    )

    assert code == 0
    assert out.splitlines() == [
        "length    500.0 m, 6 points",
        "z up      -10.00 … 40.00 m",
        "climb     50.0 m up, 0.0 m down",
        "steepest  5.7°",
        "p.png",
        "p.csv",
    ]
    assert Path("p.png").stat().st_size > 5000
    assert Path("p.csv").read_text().splitlines()[2].startswith("100.0000,0.0000,0.0000,")
    assert "off map   50%" in rfly("profile", "0", "0", "2000", "0", "P", "-n", "4")[1]


def test_query_in_ned(rfly):
    """RflySim's own numbers: x north, y east, z down; the normal points out of the ground."""
    code, out, _ = rfly("query", "--map", "E", "--frame", "map_ned", "--normal", "2.5", "1.5")
    assert code == 0
    assert "altitude  -14.3750 m (z down, frame map_ned)" in out
    normal = [float(v) for v in out.splitlines()[2].split()[1:]]
    # 2.5, 1.5 lies three quarters up both sides of its cell, whose four heights give the slopes
    z = np.array(
        [[11.0, 13.0], [12.0, 16.0]]
    )  # z up at rows 1, 2 (east 0, 2) and columns 2, 3 (north 1, 3)
    north = ((z[0, 1] - z[0, 0]) * 0.25 + (z[1, 1] - z[1, 0]) * 0.75) / 2
    east = ((z[1, 0] - z[0, 0]) * 0.25 + (z[1, 1] - z[0, 1]) * 0.75) / 2
    np.testing.assert_allclose(
        normal,
        np.array([-north, -east, -1]) / np.sqrt(north**2 + east**2 + 1),
        atol=1e-6,
    )


def test_the_map_by_position_and_by_option(rfly, tmp_path):
    """Every command takes both; two that differ are refused."""
    for command in (
        ["query", "1.5", "2.5"],
        ["info"],
        ["plot", "--out", str(tmp_path / "a.png"), "--overwrite"],
    ):
        by_position = rfly(*command, "RollingHills")
        assert by_position[0] == 0
        assert rfly(*command, "--map", "RollingHills") == by_position
    assert rfly("query", "1.5", "2.5") != rfly("query", "1.5", "2.5", "RollingHills")
    code, _, err = rfly("info", "RollingHills", "--map", "Other")
    assert code == 2
    assert "two maps, RollingHills and --map Other" in err
    code, _, err = rfly("info", "JacksboroFault", "--map", "RollingHills")
    assert code == 2
    assert "two maps, JacksboroFault and --map RollingHills" in err


def test_an_empty_name_is_not_the_default_map(capsys, monkeypatch):
    """`--map "$MAP"` of a script whose variable is empty."""
    for command in (
        ("terrain", "query", "1.5", "2.5"),
        ("plan", "0,0", "10,0"),
        ("objects", "place", "151", "120", "-35"),
        ("world", "plot", "village", "--out", "village.png"),
    ):
        monkeypatch.setattr(sys, "argv", ["rfly", *command, "--map", ""])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert "map '': expected a name such as MountainTerrain" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("x,y\n1.5,2.5\n-1,-2\n100,0\n", ""),
        ("1.5;2.5\n-1;-2\n\n100;0", ""),
        ("# path\n1.5 2.5\n-1\t-2\n100 0\n", ""),
        ("1.5,2.5,9\n-1,-2,9\n100,0,9", "column number 3 is"),
        ("id,north,east\n1,2.5,1.5\n2,-2,-1\n3,0,100", "column id is"),
    ],
)
def test_query_many_points(rfly, monkeypatch, text, note):
    """CSV with or without heading, from a file or stdin, leaves as CSV."""
    expected = "x,y,altitude,inside\n1.5,2.5,14.3750,1\n-1,-2,7.5000,1\n100,0,11.0000,0\n"
    Path("p.csv").write_text(text)
    notes = f"note: p.csv: the {note} not used\n" if note else ""
    assert rfly("query", "--map", "E", "--points", "p.csv") == (0, expected, notes)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert rfly("query", "--map", "E", "--points", "-")[1] == expected
    with_normals = rfly("query", "--map", "E", "--points", "p.csv", "--normal")[1].splitlines()
    assert with_normals[0] == "x,y,altitude,inside,nx,ny,nz"
    assert len(with_normals[1].split(",")) == 7


def read_ply(path: Path) -> np.ndarray:
    head, _, body = path.read_bytes().partition(b"end_header\n")
    count = int(head.split(b"element vertex ")[1].split()[0])
    assert head.startswith(b"ply\nformat binary_little_endian 1.0\n")
    return np.frombuffer(body, "<f4").reshape(count, 3)


def test_cloud_formats_hold_the_same_points(rfly):
    """12 points, first and last as the worked example has them, here in ENU."""
    clouds = {}
    for ending in ("ply", "pcd", "npy", "xyz"):
        code, out, _ = rfly("cloud", "E", "--out", f"c.{ending}")
        assert (code, out) == (0, f"c.{ending}: 3 x 4 points, frame map\n")
    clouds["ply"] = read_ply(Path("c.ply"))
    head, _, body = Path("c.pcd").read_bytes().partition(b"DATA binary\n")
    assert b"WIDTH 4\nHEIGHT 3\n" in head

    clouds["pcd"] = np.frombuffer(body, "<f4").reshape(-1, 3)
    clouds["npy"] = np.load("c.npy").reshape(-1, 3)
    clouds["xyz"] = np.loadtxt("c.xyz")
    for points in clouds.values():
        np.testing.assert_allclose(points, clouds["npy"], atol=1e-4)
        np.testing.assert_allclose(
            points[[0, 1, 4, 11]],
            [(-2, -3, 6), (-2, -1, 8), (0, -3, 7), (2, 3, 16)],
            atol=1e-4,
        )


def test_cloud_with_stride_region_and_frame(rfly):
    rfly("cloud", "E", "-o", "a.npy", "--stride", "2")
    assert np.load("a.npy").shape == (2, 2, 3)

    rfly(
        "cloud",
        "E",
        "-o",
        "b.npy",
        "--region",
        "-0.5",
        "2",
        "-3",
        "-0.5",
        "--frame",
        "map_ned",
    )
    np.testing.assert_allclose(
        np.load("b.npy").reshape(-1, 3),
        [(-3, 0, -7), (-1, 0, -9), (-3, 2, -8), (-1, 2, -10)],
        atol=1e-4,
    )


def test_traversable_prints_the_share_draws_and_saves(rfly, work_folder):
    """The two inner samples of map E, 3 x 4 samples, have a disc of one cell on the map.

    By hand: both rise 100 counts of 2 cm over 4 m to the east and 200 to the north, 0.5 and 1.0:
    48.19°. Five samples have fewer than 175 counts, 9.5 m.
    """
    arguments = [
        "traversable",
        "E",
        "--max-slope",
        "60",
        "--water-level",
        "9.5",
        "--vehicle-radius",
        "0",
    ]
    code, out, _ = rfly(*arguments, "--save", "costs.yaml")
    assert code == 0

    rfly(*arguments, "--overwrite", "--save", "COSTS.YML")
    keys = Path("costs.yaml").read_text()
    assert Path("COSTS.YML").read_text() == keys.replace("costs", "COSTS.YML")
    Path("sub").mkdir()
    for name in ("a.png", "sub/../a.png"):
        code, _, error = rfly(*arguments, "--overwrite", "--out", name, "--save", "a.yaml")
        told = f"--save a.yaml: its image would be {name}" in " ".join(error.split())
        assert (code, told) == (2, True)
    assert not Path("a.png").exists()
    first, picture, saved = out.splitlines()
    assert (
        first
        == "E: 8.3% traversable, 41.7% forbidden, 50.0% unknown (3 x 4 cells of 2 m, east x north)"
    )
    assert (picture, saved) == ("E-traversable.png", "costs.yaml")
    assert cv2.imread("E-traversable.png").shape[2] == 3

    costs = cv2.imread("costs.png", cv2.IMREAD_UNCHANGED)
    assert costs.tolist() == [
        [255] * 3,
        [255, 80, 255],
        [100, 100, 255],
        [100] * 3,
    ]  # 99 · 48.19 / 60
    assert "mode: raw" in Path("costs.yaml").read_text()


def test_traversable_as_json_replaces_a_picture_that_may_be_overwritten(rfly):
    for slope, free in (("60", 2 / 12), ("20", 0.0)):
        words = ["traversable", "E", "--max-slope", slope, "--vehicle-radius", "0", "--json"]
        code, out, _ = rfly(*words, "--overwrite")
        assert code == 0
        assert json.loads(out)["share_free"] == pytest.approx(free)
    assert rfly("traversable", "E")[0] == 2
    assert rfly("traversable", "E", "--out", "mine.png")[0] == 0
    assert rfly("traversable", "E", "--out", "mine.png")[0] == 2
    assert rfly("traversable", "E", "--out", "mine.png", "--overwrite")[0] == 0


@pytest.mark.needs("rasterio")
def test_a_plane_is_all_in_sight_and_files_are_written(rfly):
    placed_plane()
    words = ["viewshed", "0", "-100", "P", "--height", "10", "--waves", "straight"]
    code, out, _ = rfly(*words, "--save", "seen.tif")
    assert (code, out.splitlines()[0].startswith("in sight  100.0% of the map, ")) == (0, True)
    assert out.splitlines()[1:] == ["P-viewshed.png", "seen.tif"]
    assert Path("seen.tif").stat().st_size > 100

    # 100 m around it: the samples of a circle
    code, out, _ = rfly(*words, "--max-range", "100", "--out", "near.png", "--json")
    facts = json.loads(out)
    assert facts["observer_m"] == pytest.approx([0.0, -100.0, 10.0], abs=0.002)  # half a count
    assert facts["area_in_sight_m2"] == pytest.approx(math.pi * 100.0**2, rel=0.05)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["9999", "0"], "9999, 0 is off the map: see `rfly terrain info`"),
        (["0", "0", "--save", "seen.png"], "--save seen.png: expected a name that ends in .tif"),
        (["0", "0", "--height", "-1"], "'--height': '-1': Input should be greater than or "),
        (["0", "0", "--max-range", "0"], "max_range is 0.0, expected more than 0 m"),
    ],
)
def test_a_viewshed_that_can_not_be_ends_with_one_line(rfly, words, expected):
    code, out, err = rfly("viewshed", *words)
    assert (code, out, expected in err) == (2, "", True), err
    assert err.count("\n") == 1


def test_plot_writes_a_picture(rfly):
    assert rfly("plot", "JacksboroFault", "--out", "relief.png", "--title", "Ground")[:2] == (
        0,
        "relief.png\n",
    )
    picture = cv2.imread("relief.png")
    assert min(picture.shape[:2]) > 800
    assert len(np.unique(picture.astype(int) @ (1, 256, 65536))) > 5000  # colours
    assert rfly("plot", "E", "--out", "part.pdf", "--region", "-2", "2", "-1", "3")[0] == 0


def test_import_an_array_and_read_it_back(rfly):
    """Row 0 of the array is the north: its first number lies in the north-west."""
    np.save("h.npy", np.array([[10.0, 20.0, 30.0], [0.0, 5.0, 10.0]]))
    code, out, _ = rfly(
        "import",
        "h.npy",
        "--out",
        "New",
        "--cell-size",
        "4",
        "6",
        "--geo-origin",
        "46",
        "8",
        "500",
    )
    assert code == 0
    assert "3 x 2 cells (east x north) of 4 x 6 m, x -4 … 4, y -3 … 3, z 0.00 … 30.00 m" in out

    terrain = HeightMap.load("New")
    assert terrain.geo_origin == (46, 8, 500)

    for x, y, z in ((-4, 3, 10), (4, 3, 30), (-4, -3, 0), (4, -3, 10), (0, 3, 20)):
        assert terrain.altitude(float(x), float(y)) == pytest.approx(z, abs=30 / 65535)


@pytest.mark.needs("rasterio", "pyproj")
@pytest.mark.parametrize(
    ("crs", "corner", "number", "options", "line"),
    [
        ("EPSG:2436", (503_700, 4_097_300), 500, (), "the datum Beijing 1954 was taken as WGS 84"),
        ("EPSG:2264", (2_000_000, 600_000), 500, (), "in US survey foot, and nothing names the"),
        ("EPSG:32632", (5e5, 5e6), -9999, ("--fill-nodata",), "1 of 64 cells held no data and"),
        ("EPSG:32632", (5e5, 5e6), 0, (), "0 counts as a height (cells: 1), though far from all"),
        ("EPSG:32632", (5e5, 5e6), 0, ("--nodata", "0", "--fill-nodata"), "1 of 64 cells held no"),
        ("EPSG:32632", (5e5, 5e6), -9999, ("--nodata", "none"), "z -9999.00 … 500.00 m"),
        ("EPSG:32632", (5e5, 5e6), 500, ("--unit", "US survey feet"), "of 0.3048006 m became m"),
    ],
)
def test_an_import_tells_what_it_took_a_raster_for(rfly, crs, corner, number, options, line):
    import rasterio
    from rasterio.transform import from_origin

    raster = np.full((8, 8), 500, np.int16)
    raster[3, 4] = number
    shape = {"width": 8, "height": 8, "count": 1, "dtype": "int16", "driver": "GTiff"}
    place = {"crs": crs, "transform": from_origin(*corner, 10, 10)}
    with rasterio.open("r.tif", "w", **shape, **place) as dataset:
        dataset.write(raster, 1)

    code, out, err = rfly("import", "r.tif", "--out", "R", *options)
    assert (code, "Warning" in err) == (0, False)
    assert line in out


def test_options_of_rasters_are_refused_for_arrays(rfly):
    np.save("h.npy", np.eye(4))
    code, _, err = rfly(
        "import", "h.npy", "--out", "R", "--cell-size", "1", "1", "--size", "2", "2"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "--size: for an array it has no meaning" in err


def test_an_origin_that_is_no_place_is_refused(rfly):
    heights = np.zeros((3, 3))
    np.save("h.npy", heights)
    swapped = ("--geo-origin", "116.3", "39.9", "50")
    code, _, err = rfly("import", "h.npy", "--out", "New", "--cell-size", "4", "6", *swapped)
    assert (code, err.count("\n")) == (2, 1)
    assert "geo_origin: [116.3, 39.9, 50.0] is no place: latitude within ±90°" in err

    axis = np.arange(3.0)
    place = np.array([116.3, 39.9, 50.0])
    np.savez("h.npz", heights_up=heights, x_east=axis, y_north=axis, geo_origin=place)
    code, _, err = rfly("import", "h.npz", "--out", "New")
    assert (code, "h.npz: geo_origin: [116.3, 39.9, 50.0] is no place" in err) == (2, True)


@pytest.mark.parametrize(
    "ending", ["npz", "npy", pytest.param("tif", marks=pytest.mark.needs("rasterio"))]
)
def test_export_and_import_of_every_kind(rfly, ending):
    """The demo map leaves as GeoTIFF, .npy and .npz and comes back as the same ground."""
    demo = HeightMap.load("JacksboroFault")
    x, y = np.meshgrid(np.linspace(-2900, 2900, 41), np.linspace(-2900, 2900, 43))
    options = {
        "npz": (),
        "npy": ("--cell-size", "20", "20"),
        "tif": (
            "--center",
            "36.6033",
            "-84.2217",
            "--origin-altitude",
            str(demo.geo_origin[2]),
        ),
    }
    assert rfly("export", "--out", f"j.{ending}")[:2] == (0, f"j.{ending}\n")
    assert rfly("import", f"j.{ending}", "--out", f"from_{ending}", *options[ending])[0] == 0

    back = HeightMap.load(f"from_{ending}")
    assert (back.rows, back.columns) == (301, 301)
    np.testing.assert_allclose(back.altitude(x, y), demo.altitude(x, y), atol=0.01)


def test_export_for_gazebo_and_a_file_at_once(rfly):
    code, out, err = rfly(
        "export",
        "E",
        "--sdf",
        "world",
        "--out",
        "e.npy",
        "--geo-origin",
        "47",
        "8",
        "400",
    )
    assert (code, err) == (0, "")

    npy, world, note = out.splitlines()
    assert (npy, Path(world)) == ("e.npy", Path("world/world.sdf"))
    assert note.startswith("129 x 129 samples, at most 0.")
    assert "<latitude_deg>47.0</latitude_deg>" in Path(world).read_text(encoding="utf-8")
    assert rfly("export", "E", "--sdf", "world")[0] == 2
    assert rfly("export", "E", "--sdf", "world", "--sdf-samples", "257", "--overwrite")[
        1
    ].startswith("world")


def test_export_for_gazebo_with_what_stands_there(rfly):
    """The objects stand on the world's map, unless another one is named."""
    for words, ground in (((), "RollingHills"), (("E",), "E"), (("--map", "E"), "E")):
        code, _, err = rfly("export", *words, "--sdf", "w.sdf", "--world", "pillars", "--overwrite")
        assert (code, err) == (0, "")
        text = Path("w.sdf/world.sdf").read_text(encoding="utf-8")
        assert f'<model name="{ground}_objects">' in text
        assert text.count("<cylinder>") > 200


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["info", "Mountain"], "map 'Mountain' not found"),
        (["info", "broken"], "broken.txt, line 1: 1 value, expected 9 or 12"),
        (["query", "1"], "give one point"),
        (["query", "1", "2", "--points", "p.csv"], "give one point"),
        (["query", "nan", "2"], "'nan': expected a finite number of metres"),
        (["query", "1", "two"], "'two': expected a finite number of metres"),
        (["query", "1", "2", "--frame", "world"], "world"),
        (
            ["query", "--points", "missing.csv"],
            "missing.csv: No such file or directory",
        ),
        (
            ["query", "--points", "words.csv"],
            "words.csv:2: 'here,there' holds no two finite numbers",
        ),
        (
            ["query", "--points", "nan.csv"],
            "nan.csv:2: '3,nan' holds no two finite numbers",
        ),
        (["query", "--points", "one.csv"], "one.csv:4: '3' holds no two finite numbers"),
        (["query", "--points", "comma.csv"], "comma.csv: no points"),
        (["query", "--points", "places.csv"], "the heading names lat and lon, expected without"),
        (["query", "--latlon", "--points", "xy.csv"], "the heading names x and y, expected --lat"),
        (["query", "--points", "E.png"], "E.png: is no text"),
        (
            ["query", "--points", "empty.csv"],
            "empty.csv: no points, expected lines of x,y",
        ),
        (["cloud", "E"], "--out"),
        (
            ["cloud", "E", "--out", "c.las"],
            "c.las: clouds are written as .ply, .pcd, .npy, .xyz",
        ),
        (["cloud", "E", "--out", "c.ply", "--stride", "0"], "stride"),
        (["cloud", "E", "--out", "c.ply", "--region", "50", "60", "0", "1"], "region"),
        (
            ["cloud", "E", "--out", "no/such/c.ply"],
            "no/such/c.ply: there is no folder ",
        ),
        (
            ["cloud", "E", "--out", "E.txt"],
            "E.txt exists; choose another name or add --overwrite",
        ),
        (["traversable", "E", "--max-slope", "95"], "max_slope_deg: 95"),
        (["viewshed", "nan", "0", "E"], "expected a finite number of metres"),
        (["viewshed", "0", "inf", "E"], "expected a finite number of metres"),
        (["traversable", "E", "--resolution", "0"], "resolution: 0"),
        (["traversable", "E", "--save", "costs.png"], "ends in .yaml"),
        (["traversable", "E", "--out", "E.txt"], "E.txt exists"),
        (["plot", "E", "--out", "picture.xyz"], "pictures can be written as"),
        (
            ["export", "E", "--out", "e.las"],
            "heights are written as .tif, .npy or .npz",
        ),
        (["export", "E"], "give --out FILE, --sdf FOLDER or both"),
        (
            ["export", "E", "--out", "e.npy", "--sdf-samples", "257"],
            "--sdf-samples is for --sdf",
        ),
        (
            ["export", "E", "--out", "e.npy", "--world", "forest"],
            "--world is for --sdf",
        ),
        (
            ["export", "E", "--sdf", "world", "--sdf-samples", "256"],
            "Gazebo takes 2ⁿ + 1",
        ),
        (
            ["export", "E", "--out", "e.npz", "--geo-origin", "95", "0", "0"],
            "--geo-origin",
        ),
        pytest.param(
            ["import", "missing.tif", "--out", "M"],
            "missing.tif: no such file",
            marks=pytest.mark.needs("rasterio"),
        ),
        (["import", "h.npy", "--out", "M"], "--cell-size"),
        (["import", "h.npy", "--out", "E", "--cell-size", "1", "1"], "E.png exists"),
        (["import", "not_read_before.tif", "--out", "E"], "E.png exists"),
        (["import", "dem.tif", "--out", "M", "--cell-size", "1", "1"], "--resolution"),
        (
            ["import", "dem.tif", "--out", "M", "--origin-altitude", "sea"],
            "expected a number or the word ground",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(rfly, arguments, text):
    Path("broken.png").write_bytes(Path("E.png").read_bytes())
    Path("broken.txt").write_text("no numbers")
    Path("words.csv").write_text("1,2\nhere,there\n")
    Path("nan.csv").write_text("1,2\n3,nan\n")
    Path("empty.csv").write_text("x,y\n\n")
    Path("one.csv").write_text("x,y\n1,2\n\n3\n")
    Path("comma.csv").write_text(",,\n")
    Path("places.csv").write_text("lon,lat\n8.03,46.01\n")
    Path("xy.csv").write_text("x,y\n8.03,46.01\n")
    np.save("h.npy", np.eye(3))
    code, out, err = rfly(*arguments)

    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def run_process(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, **options
    )


START = "from rfly_bringup.cli.main import main; main()"


def test_a_query_needs_no_heavy_import():
    """Neither numba nor matplotlib, SciPy or rasterio: one altitude comes within a second and a
    half of work.
    """
    script = (
        "import sys; sys.argv = ['rfly', 'terrain', 'query', '10', '-3.5']\n"
        "from rfly_bringup.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'matplotlib', 'scipy', 'rasterio', 'rclpy') if m in "
        "sys.modules])"
    )
    result = run_process("-c", script)
    assert result.stdout.splitlines()[-1] == "[]"

    before = os.times()
    assert run_process("-c", START, "terrain", "query", "10", "-3.5").returncode == 0

    after = os.times()  # the child's own time, because other programs run on this machine too
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    assert used < 1.5


def test_every_command_shows_examples(rfly):
    for command in ("info", "query", "cloud", "plot", "import", "export", "traversable"):
        code, out, _ = rfly(command, "--help")
        assert code == 0
        assert f"rfly terrain {command}" in out


def test_the_shell_completes_commands_and_names_of_what_is_shipped(work_folder):
    """A program's word, a shipped map, scenario or policy, and a map of ./map are completed.

    The test asks as bash does after `rfly --install-completion`.
    """
    Path("map").mkdir()
    for ending in ("png", "txt"):
        Path(f"map/Jacaranda.{ending}").touch()

    def complete(line: str) -> list[str]:
        words = {
            "_RFLY_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        environment = {**os.environ, **words, "PYTHONPATH": str(ROOT)}
        script = "import sys; sys.argv = ['rfly']; " + START
        command = [sys.executable, "-c", script]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, check=True
        ).stdout.split()

    assert complete("rfly terrain tra") == ["traversable"]
    assert complete("rfly terrain plot Ja") == ["Jacaranda", "JacksboroFault"]
    assert complete("rfly terrain query --map Jack") == ["JacksboroFault"]
    assert complete("rfly sim run ho") == ["hop"]
    assert complete("rfly up amphibious --policy hov") == ["hover", "hover_by_sensors"]
    assert complete("rfly fleet check mixed_") == ["mixed_fleet"]


def test_a_closed_pipe_is_no_crash(work_folder):
    """`rfly terrain query --points … | head -1`."""
    Path("p.csv").write_text("1,2\n" * 50_000)
    with subprocess.Popen(
        [sys.executable, "-c", START, "terrain", "query", "--points", "p.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"x,y,altitude,inside\n"
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.needs("rasterio", "pyproj")
def test_tiles_of_a_map(rfly, monkeypatch):
    """A map that was exported becomes tiles; a second run refuses to write over them."""
    assert rfly("export", "E", "--out", "E.tif", "--geo-origin", "46", "8", "0")[0] == 0
    code, out, _ = rfly("tile", "E.tif", "--out", "tiles", "--side", "32", "--jobs", "1")
    assert code == 0
    assert out.splitlines()[0] == "tiles"
    assert "3 x 4 cells (east x north) of 2 x 2 m" in out
    assert "elevations 6.00 … 16.00 m" in out
    assert sorted(path.name for path in Path("tiles").iterdir()) == ["terrain.json", "tiles"]

    for command in (("query", "1.5", "-0.25"), ("profile", "-2", "-3", "2", "3")):
        assert rfly(*command, "--map", "tiles")[1] == rfly(*command, "--map", "E")[1]
    code, out, _ = rfly("info", "tiles", "--json")
    assert json.loads(out)["rows"] == 3
    assert json.loads(out)["bounds_enu_m"] == [-2.0, 2.0, -3.0, 3.0]

    costs = [
        json.loads(rfly("traversable", name, "--max-slope", "60", "--json")[1])
        for name in ("tiles", "E")
    ]
    for share in ("share_free", "share_forbidden", "share_unknown"):
        assert costs[0][share] == costs[1][share]
    monkeypatch.setattr("rfly_terrain.tiles.open_terrain.MAX_CELLS", 11)
    code, _, err = rfly("plot", "tiles", "--out", "none.png")
    assert (code, "has 12 samples, expected at most 11 here" in err) == (2, True), err

    code, _, err = rfly("tile", "E.tif", "--out", "tiles", "--side", "32")
    assert code == 2
    assert "--overwrite" in err

    code, _, err = rfly("tile", "none.tif", "--out", "other")
    assert code == 2
    assert "none.tif" in err
