# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly world` and `rfly plan --world`: what they write, print and refuse."""

from __future__ import annotations

import re
import sys

import cv2
import pytest

from rfly_bringup.cli.main import main
from rfly_terrain import load_world


def rfly(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["rfly", *words])
    with pytest.raises(SystemExit) as end:
        main()
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def test_made_by_its_seed(monkeypatch, capsys, tmp_path):
    files = [tmp_path / f"{name}.yaml" for name in "abc"]
    for file, seed in zip(files, ("5", "5", "6"), strict=True):
        words = [
            "world",
            "make",
            "pillars",
            "--seed",
            seed,
            "--density",
            "10",
            "--out",
            str(file),
        ]
        code, out, err = rfly(monkeypatch, capsys, *words)
        assert (code, err) == (0, "")
        assert re.search(r" 40 objects on RollingHills", out)
    texts = [file.read_bytes() for file in files]
    assert texts[0] == texts[1] != texts[2]
    assert load_world(files[0]).map == "RollingHills"

    code, _, err = rfly(monkeypatch, capsys, "world", "make", "pillars", "--out", str(files[0]))
    assert (code, "add --overwrite" in err) == (2, True)


def test_an_area_beyond_the_map(monkeypatch, capsys, tmp_path):
    words = [
        "world",
        "make",
        "forest",
        "--region",
        "0",
        "999",
        "0",
        "9",
        "--out",
        str(tmp_path / "f.yaml"),
    ]
    code, _, err = rfly(monkeypatch, capsys, *words)

    assert code == 2
    assert "area: reaches beyond the map, x -192 … 192" in err
    assert not (tmp_path / "f.yaml").exists()


@pytest.mark.needs("osmium", "shapely")
def test_imported_from_openstreetmap(monkeypatch, capsys, tmp_path):
    """A 10 m square at the geo origin of RollingHills, 40° N 116.3° E, and one far away."""
    nodes = [
        (40.0, 116.3),
        (40.0, 116.30012),
        (40.00009, 116.30012),
        (40.00009, 116.3),
        (41.0, 116.3),
    ]
    lines = [f'<node id="{k}" lat="{lat}" lon="{lon}"/>' for k, (lat, lon) in enumerate(nodes)]
    for number, ids in ((1, (0, 1, 2, 3, 0)), (2, (4, 0, 1, 4))):
        refs = "".join(f'<nd ref="{each}"/>' for each in ids)
        lines.append(f'<way id="{number}">{refs}<tag k="building" v="yes"/></way>')
    lines.append('<way id="3"><nd ref="0"/><nd ref="1"/><tag k="highway" v="service"/></way>')
    lines.append('<way id="4"><nd ref="0"/><tag k="building" v="razed"/></way>')
    lines[5] = lines[5].replace("</way>", '<tag k="height" v="high"/></way>')
    (tmp_path / "city.osm").write_text("<osm>" + "".join(lines) + "</osm>", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, out, err = rfly(
        monkeypatch,
        capsys,
        "world",
        "import",
        "city.osm",
        "--map",
        "RollingHills",
        "--height",
        "20",
    )
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "city.yaml  1 buildings on RollingHills",
        "left out: 1 abandoned, demolished, proposed or under construction",
        "left out: 1 outside the area",
        "tags not understood: 1, the first of way_1: height=high",
        "without a height, taken as 20 m: 1",
        "not imported: 1 roads and paths",
    ]

    (house,) = load_world("city.yaml").objects
    assert (house.x, house.y) == pytest.approx((5.1, 5.0), abs=0.1)

    code, _, err = rfly(monkeypatch, capsys, "world", "import", "no.osm", "--map", "RollingHills")
    assert (code, err.count("\n"), "'no.osm': No such file" in err) == (2, 1, True)


def test_told(monkeypatch, capsys):
    code, out, _ = rfly(monkeypatch, capsys, "world", "info", "village")
    assert code == 0
    assert re.search(r"^map +RollingHills$", out, re.MULTILINE)
    assert re.search(r"^building +\d+$", out, re.MULTILINE)
    assert len(load_world("village").moving) == 12
    assert re.search(r"^moving +12: 8 person, 4 vehicle$", out, re.MULTILINE)
    code, _, err = rfly(monkeypatch, capsys, "world", "info", "nowhere")
    assert code == 2
    assert "no shipped world of this name (forest, pillars, village)" in err


def test_objects_off_the_map_are_counted(monkeypatch, capsys, tmp_path):
    """The map spans ±192 m; degrees in units of 1e-3 lie far off it."""
    world = tmp_path / "far.yaml"
    text = (
        "version: 1\nmap: {}\nmodels: {{box: {{class: building, parts: [{{box: [4, 4, 4]}}]}}}}\n"
        "objects: [{{model: box, x: 1, y: 2}}, {{model: box, x: 116391, y: 39906}}]\n"
    )
    world.write_text(text.format("RollingHills"), encoding="utf-8")
    code, out, _ = rfly(monkeypatch, capsys, "world", "info", str(world))
    assert code == 0
    assert "off map    1, the first at x 116391, y 39906; the map spans x -192 … 192" in out
    world.write_text(text.format("Nowhere"), encoding="utf-8")
    code, out, _ = rfly(monkeypatch, capsys, "world", "info", str(world))
    assert (code, "map      Nowhere (not found here)" in out, "off map" in out) == (0, True, False)


@pytest.mark.needs("matplotlib")
def test_drawn(monkeypatch, capsys, tmp_path):
    picture = tmp_path / "forest.png"
    code, _, err = rfly(monkeypatch, capsys, "world", "plot", "forest", "--out", str(picture))
    assert (code, err) == (0, "")

    pixels = cv2.imread(str(picture))[..., ::-1].reshape(-1, 3)
    assert (pixels == load_world("forest").objects[0].model.color).all(axis=1).sum() > 500

    free = tmp_path / "free.yaml"
    free.write_text("version: 1\nobjects: []\n", encoding="utf-8")
    code, _, err = rfly(
        monkeypatch,
        capsys,
        "world",
        "plot",
        str(free),
        "--out",
        str(tmp_path / "free.png"),
    )
    assert (code, "it is made for no map; choose one with --map" in err) == (2, True)


def test_a_plan_around_it(monkeypatch, capsys, tmp_path):
    """A wall of 100 m on the demo map, by a file that names no map: 40 m straight on, or round its
    end.
    """
    wall = tmp_path / "wall.yaml"
    wall.write_text(
        "version: 1\nobjects:\n  - {box: [1, 100, 90], x: 120, y: 50}\n",
        encoding="utf-8",
    )
    ends = ("100,50", "140,50", "--vehicle-class", "rover", "--resolution", "2")
    lengths = []
    for words in ((), ("--world", str(wall)), ("--world", str(wall), "--margin", "10")):
        code, out, err = rfly(monkeypatch, capsys, "plan", *ends, *words)
        assert (code, err) == (0, "")
        lengths.append(float(re.search(r"^length +([0-9.]+)", out, re.MULTILINE)[1]))
    assert lengths[0] < 60 < 100 < lengths[1] < lengths[2]
