# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Buildings of an OpenStreetMap file, by hand.

At 0° N, 0° E a degree is 110,574.28 m north and 111,319.49 m east.
"""

from __future__ import annotations

import bz2
import gzip
import math

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, import_osm, load_world
from rfly_terrain.world import osm
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.osm_tags import LEVEL, absence, length
from rfly_terrain.world.populate import Area
from rfly_terrain.world.world_file import write_world

osmium = late_module("osmium")
pytestmark = pytest.mark.needs("osmium", "shapely")

NORTH = 110_574.2758
EAST = 111_319.4908
"""m a degree: WGS 84's radii of curvature at the equator, 6,335,439.33 and 6,378,137 m"""
AT = np.arange(101) * 20.0 - 1000.0


def ground(slope=0.0, geo_origin=(0.0, 0.0, 30.0)):
    return HeightMap(
        5.0 + slope * AT[:, None] + 0.0 * AT, origin_x=-1000, origin_y=-1000, step_x=20, step_y=20,
        geo_origin=geo_origin, name="level",
    )  # fmt: skip


NODE = "<nd ref='1'/>"
MEMBER = "<member type='way' ref='1' role='outer'/>"


class Osm:
    """A file, element by element."""

    def __init__(self):
        self.lines = []
        self.last = 0

    def nodes(self, places):
        """Ids of nodes at x, y (m)."""
        ids = []
        for x, y in places:
            self.last += 1
            self.lines.append(
                f'<node id="{self.last}" lat="{y / NORTH:.9f}" lon="{x / EAST:.9f}"/>'
            )
            ids.append(self.last)
        return ids

    def element(self, kind, number, inner, **tags):
        spelled = "".join(f'<tag k="{key}" v="{value}"/>' for key, value in tags.items())
        self.lines.append(f'<{kind} id="{number}">{inner}{spelled}</{kind}>')

    def way(self, number, ids, **tags):
        self.element("way", number, "".join(f'<nd ref="{each}"/>' for each in ids), **tags)

    def relation(self, number, members, **tags):
        inner = "".join(f'<member type="way" ref="{way}" role="{role}"/>' for way, role in members)
        self.element("relation", number, inner, type="multipolygon", **tags)

    def box(self, number, x, y, length, width, **tags):
        ids = self.nodes([(x, y), (x + length, y), (x + length, y + width), (x, y + width)])
        self.way(number, [*ids, ids[0]], **tags)

    def file(self, folder, tail="</osm>"):
        path = folder / "city.osm"
        path.write_text(
            "\n".join(["<?xml version='1.0'?>", '<osm version="0.6">', *self.lines, tail]), "utf-8"
        )
        return path


def covers(world, x, y):
    """Return the height of the highest solid over a place; None if there is none."""
    outlines = world.solids.outlines
    _, which = outlines.near(np.array([[x, y]]), 1e-3)
    return max(outlines.top[which].tolist(), default=None)


def test_where_and_how_high(tmp_path):
    """The ground is at 5 m: 0.001° east is 111.32 m, 0.0005° north 55.29 m."""
    city = Osm()
    city.lines += [
        f'<node id="{k}" lat="{lat}" lon="{lon}"/>'
        for k, lat, lon in (
            (1, 0.0005, 0.001),
            (2, 0.0005, 0.0012),
            (3, 0.0006, 0.0012),
            (4, 0.0006, 0.001),
        )
    ]
    city.way(77, [1, 2, 3, 4, 1], building="house", height="12.5")
    city.last = 4
    city.box(78, -200.0, -50.0, 30.0, 10.0, building="yes", **{"building:levels": "4"})
    city.box(79, 0.0, 0.0, 9.0, 9.0, highway="yes")

    world, left_out, *_ = import_osm(city.file(tmp_path), ground())
    assert (len(world.objects), left_out, world.map, world.name) == (2, {}, "level", "city")
    first, second = world.objects
    assert (first.x, first.y) == pytest.approx((0.0011 * EAST, 0.00055 * NORTH), abs=0.03)
    assert {CLASSES[o.model.class_id] for o in world.objects} == {"building"}
    assert first.model.is_box

    # places and heights
    vertices = world.solids.vertices
    assert vertices[:8].min(axis=0) == pytest.approx((111.32, 55.29, 4.5), abs=0.06)
    assert vertices[:8].max(axis=0) == pytest.approx((133.58, 66.34, 17.5), abs=0.06)
    assert vertices[8:].min(axis=0) == pytest.approx((-200.0, -50.0, 4.5), abs=0.06)
    assert vertices[8:].max(axis=0) == pytest.approx((-170.0, -40.0, 17.0), abs=0.06)
    assert (second.model.name, first.model.name) == ("way_78", "way_77")


def test_turned_by_30_degrees_it_is_a_box_still(tmp_path):
    c = math.cos(math.radians(30))
    s = math.sin(math.radians(30))

    city = Osm()
    ids = city.nodes(
        [(40 + c * a - s * b, 60 + s * a + c * b) for a, b in ((-9, -4), (9, -4), (9, 4), (-9, 4))]
    )
    city.way(1, [*ids, ids[0]], building="yes")

    (made,) = import_osm(city.file(tmp_path), ground()).world.objects
    assert made.model.is_box
    assert math.degrees(made.yaw) == pytest.approx(30.0, abs=0.3)
    assert (made.x, made.y) == pytest.approx((40.0, 60.0), abs=0.02)
    low, high = made.model.bounds
    assert (high - low).tolist() == pytest.approx(
        [18.0, 8.0, 6.5], abs=0.06
    )  # 6 m where nothing is said


@pytest.mark.parametrize(
    ("tags", "span"),
    [
        ({"height": "12 m"}, (-0.5, 12.0)),
        ({"height": "30'"}, (-0.5, 9.144)),
        ({"height": "6'6\""}, (-0.5, 1.9812)),
        ({"height": "high", "building:levels": "2.5"}, (-0.5, 7.5)),
        ({"height": "1e9", "building:levels": "-1"}, (-0.5, 8.0)),
        ({"height": "20", "min_height": "14"}, (14.0, 20.0)),
        ({"building:levels": "5", "building:min_level": "3"}, (9.0, 15.0)),
        ({"height": "4", "min_height": "9"}, (-0.5, 4.0)),
        ({"height": "12", "roof:height": "4", "roof:levels": "2"}, (-0.5, 12.0)),
        ({"building:levels": "2", "roof:height": "4"}, (-0.5, 10.0)),
        ({"building:levels": "2", "roof:levels": "1"}, (-0.5, 9.0)),
        ({"building:levels": "0", "roof:levels": "1"}, (-0.5, 3.0)),
        ({"height": "12", "min_height": "-3"}, (-0.5, 12.0)),
    ],
)
def test_heights_as_they_are_written(tmp_path, tags, span):
    city = Osm()
    city.box(
        1,
        0.0,
        0.0,
        10.0,
        10.0,
        building="yes",
        **{k: v.replace('"', "&quot;") for k, v in tags.items()},
    )
    world, *_ = import_osm(city.file(tmp_path), ground(), default_height=8.0)
    z = world.solids.vertices[:, 2]
    assert (z.min() - 5.0, z.max() - 5.0) == pytest.approx(span, abs=0.006)


def test_on_a_slope_it_counts_from_the_lowest_ground(tmp_path):
    """1:10 up to the east, x 100 … 140: the lowest ground is 5 + 10 = 15 m, the top 15 + 9."""
    city = Osm()
    city.box(1, 100.0, 0.0, 40.0, 10.0, building="yes", height="9")
    world, *_ = import_osm(city.file(tmp_path), ground(slope=0.1))
    z = world.solids.vertices[:, 2]
    assert (z.min(), z.max()) == pytest.approx((14.5, 24.0), abs=0.02)


def test_a_multipolygon_with_a_courtyard(tmp_path):
    """An outer ring of two ways makes one building, with its yard free.

    The second way runs backwards; both have the tag too.
    """
    city = Osm()
    a, b, c, d = city.nodes([(0, 0), (60, 0), (60, 40), (0, 40)])
    yard = city.nodes([(20, 10), (40, 10), (40, 30), (20, 30)])
    city.way(1, [a, b, c], building="yes")
    city.way(2, [a, d, c], building="yes")
    city.way(3, [*yard, yard[0]])
    city.relation(9, [(1, "outer"), (3, "inner"), (2, "outer")], building="school", height="10")

    world, left_out, *_ = import_osm(city.file(tmp_path), ground())
    assert ([o.model.name for o in world.objects], left_out) == (["relation_9"], {})
    assert covers(world, 30.0, 20.0) is None
    for x, y in ((10, 20), (50, 20), (30, 5), (30, 35), (1, 1), (59, 39)):
        assert covers(world, x, y) == pytest.approx(15.0)
    assert covers(world, 61.0, 20.0) is None

    # written and read again
    write_world(world, tmp_path / "w.yaml")
    again = load_world(tmp_path / "w.yaml").on(ground())
    assert np.sort(again.solids.vertices, axis=0) == pytest.approx(
        np.sort(world.solids.vertices, axis=0), abs=0.02
    )


def test_what_is_left_out_is_counted(tmp_path):
    city = Osm()
    city.box(1, 0.0, 0.0, 10.0, 10.0, building="yes")
    city.box(2, 2000.0, 0.0, 10.0, 10.0, building="yes")
    city.way(3, [1, 2, 99, 1], building="yes")
    city.way(4, [1, 2, 3], building="yes")
    city.relation(5, [(1, "outer"), (98, "inner")], building="yes")
    city.box(6, 30.0, 0.0, 10.0, 0.01, building="yes")
    city.box(7, 50.0, 0.0, 10.0, 10.0, building="no")
    city.box(8, 50.0, 0.0, 10.0, 10.0, building="yes", location="underground")
    city.lines.append('<way id="10" visible="false"><nd ref="1"/><tag k="building" v="yes"/></way>')
    city.lines.append(
        "<way id='12' action='delete'><nd ref='1'/><nd ref='2'/><nd ref='3'/><nd ref='1'/>"
        "<tag k='building' v='yes'/></way>"
    )
    bow_tie = city.nodes([(60, 60), (70, 70), (60, 70), (70, 60)])
    city.way(13, [*bow_tie, bow_tie[0]], building="yes")
    city.box(14, 50.0, 0.0, 10.0, 10.0, highway="service")
    city.lines.append('<node id="900" lat="0" lon="0"><tag k="natural" v="tree"/></node>')
    city.box(11, 70.0, 0.0, 10.0, 10.0, building="yes")
    world, left_out, _, _, others = import_osm(city.file(tmp_path), ground())
    # a relation that lacks its courtyard is not a building without one
    assert [o.model.name for o in world.objects] == ["way_11"]
    assert left_out == {
        "incomplete in the file, or with an outline that crosses itself": 4,
        "outside the area": 1,
        "too thin or too detailed": 1,
        "underground": 1,
    }
    assert others == {"roads and paths": 1, "trees and other natural features": 1}
    with pytest.raises(
        ConfigError, match=r"no building within x 400 … 500, .*the first one at x 2005, y 5 m"
    ):
        import_osm(city.file(tmp_path), ground(), area=Area(400, 500, 0, 9))


def test_another_geo_origin(tmp_path):
    city = Osm()
    city.box(1, 300.0, 0.0, 10.0, 10.0, building="yes")
    (made,) = import_osm(city.file(tmp_path), ground(), geo_origin=(0.0, 0.002, 0.0)).world.objects
    assert (made.x, made.y) == pytest.approx((305.0 - 0.002 * EAST, 5.0), abs=0.03)
    with pytest.raises(
        ConfigError, match="'level' does not say where on Earth it lies: give its geo origin"
    ):
        import_osm(city.file(tmp_path), ground(geo_origin=None))


FOOT = 0.3048
INCH = 0.0254


@pytest.mark.parametrize(
    ("unit", "texts"),
    [
        (
            1.0,
            {
                12.0: ["12", "12.", "12 m", "12M", "12 metres", "ca. 12 m", "１２", "0.012 km"],
                3.5: ["3,5 m", "3.5", "3 m 50 cm", "350cm"],
                0.5: [".5", ",5", "<0.5"],
                14.0: ["+14", "~14", "about 14 m"],
                20.0: ["15-20", "15 – 20 m", "15 to 20", "20;15;", "12 / 20", "15..20", "1, 20"],
                40 * FOOT: ["40 ft", "40ft.", "40 feet", "40'", "40’", "40′", "40 ´"],
                12 * FOOT + 6 * INCH: [
                    "12'6\"", "12′6″", "12’ 6”", "12' 6''", "12 ft 6 in", "12'-6\"", "12'6",
                ],
                20 * FOOT: ["15-20 ft", "15'-20'", "15'-20", "20';15'"],
                # thousands or a fraction, two numbers, no unit, no number
                None: ["1,250 ft", "1 200 cm", "1.2e1", "-5", "high", "", "12 x", "15-", "4+1",
                       "12'13\"", "1.5.2", "9" * 300, "II"],
            },
        ),
        (
            LEVEL,
            {
                7.5: ["2.5", "2,5"],
                9.0: ["2-3", "2;3", "1;2;3", "~3"],
                15.0: ["4+1", " 5 "],
                0.0: ["0"],
                None: ["-1", "4+D", "III"],
            },
        ),
    ],
)  # fmt: skip
def test_spellings_of_lengths(unit, texts):
    for metres, spellings in texts.items():
        expected = [metres if metres is None else pytest.approx(metres)] * len(spellings)
        assert [length(text, unit) for text in spellings] == expected


@pytest.mark.parametrize(
    ("tags", "stands"),
    [
        ({"building": "yes", "layer": "-1"}, True),
        ({"building": "yes", "tunnel": "building_passage"}, True),
        ({"building": "ruins"}, True),
        ({"building": "yes", "level": "-1;0"}, True),
        ({"building": "yes", "building:levels": "0", "roof:levels": "1"}, True),
        ({"building": "yes", "demolished:building": "barn"}, True),
        ({"building": "yes", "building:levels": "0", "building:levels:underground": "3"}, False),
        ({"building": "parking", "parking": "underground"}, False),
        ({"building": "yes", "location": "underground"}, False),
        ({"building": "yes", "level": "-2; -1"}, False),
        ({"building": "demolished"}, False),
        ({"building": "proposed"}, False),
        ({"building": "construction", "construction": "yes"}, False),
        ({"building": "yes", "razed": "yes"}, False),
        ({"building:part": "demolished"}, False),
        ({"removed:building": "yes"}, False),
    ],
)
def test_what_stands(tags, stands):
    assert (absence(tags) == "") == stands


def test_tags_that_are_not_understood_are_told(tmp_path):
    city = Osm()
    city.box(1, 0.0, 0.0, 10.0, 10.0, building="yes", height="high")
    city.box(2, 20.0, 0.0, 10.0, 10.0, building="yes", height="0")
    city.box(3, 40.0, 0.0, 10.0, 10.0, building="yes")
    city.box(4, 60.0, 0.0, 10.0, 10.0, building="yes", height="9", min_height="low")
    found = import_osm(city.file(tmp_path), ground())
    assert found.default_heights == 3
    assert found.not_understood == (
        "way_1: height=high",
        "way_2: height=0",
        "way_4: min_height=low",
    )


def areas_by_height(world):
    """Square metres of the base of the world's prisms, by the height of their top."""
    areas = {}
    for thing in world.objects:
        for part in thing.model.parts:
            top = part[:, 2].max()
            base = part[part[:, 2] == part[:, 2].min()][:, :2]
            middle = base.mean(axis=0)
            ring = base[np.argsort(np.arctan2(*(base - middle).T))]
            x, y = (ring - middle).T
            area = abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2
            areas[round(top, 1)] = areas.get(round(top, 1), 0.0) + area
    return areas


def test_an_inner_ring_that_is_a_building(tmp_path):
    """A court of 20 x 20 m in 60 x 60 m, with a tower in it; two outer rings keep their heights."""
    city = Osm()
    city.box(1, 0.0, 0.0, 60.0, 60.0)
    city.box(2, 20.0, 20.0, 20.0, 20.0, building="yes", height="30")
    city.relation(9, [(1, "outer"), (2, "inner")], building="yes", height="10")
    city.box(3, 100.0, 0.0, 10.0, 10.0, building="yes", height="15")
    city.box(4, 120.0, 0.0, 10.0, 20.0, building="yes")
    city.box(5, 122.0, 2.0, 5.0, 10.0)
    city.relation(
        10, [(3, "outer"), (4, "outer"), (5, "inner")], building="yes", **{"building:levels": "8"}
    )
    found = import_osm(city.file(tmp_path), ground())

    assert found.left_out == {}
    assert areas_by_height(found.world) == pytest.approx(
        {10.0: 3200.0, 30.0: 400.0, 15.0: 100.0, 24.0: 150.0}, rel=0.01
    )


def test_rings_that_touch(tmp_path):
    """A court that shares two corners with the outline, and two houses that share a wall."""
    city = Osm()
    ring = city.nodes([(0, 0), (40, 0), (40, 10), (40, 20), (40, 40), (0, 40)])
    court = city.nodes([(30, 10), (30, 20)])
    city.way(1, [*ring, ring[0]])
    city.way(2, [ring[2], ring[3], court[1], court[0], ring[2]])
    city.relation(9, [(1, "outer"), (2, "inner")], building="yes", height="10")
    city.box(3, 100.0, 0.0, 10.0, 10.0)
    city.way(4, [*city.nodes([(110, 0), (120, 0), (120, 10), (110, 10), (110, 0)])])
    city.relation(10, [(3, "outer"), (4, "outer")], building="yes", height="12")
    found = import_osm(city.file(tmp_path), ground())
    assert found.left_out == {}
    assert areas_by_height(found.world) == pytest.approx({10.0: 1500.0, 12.0: 200.0}, rel=0.01)


def test_parts_replace_the_outline(tmp_path):
    """Parts fill a church of 60 x 20 m. They cover half of a hall, whose rest stays."""
    city = Osm()
    city.box(1, 0.0, 0.0, 60.0, 20.0, building="church", height="50")
    city.box(2, 0.0, 0.0, 20.0, 20.0, **{"building:part": "yes", "height": "50"})
    city.box(3, 20.0, 0.0, 40.0, 20.0, **{"building:part": "yes", "building:levels": "3"})
    city.box(4, 0.0, 100.0, 40.0, 20.0, building="yes", height="18")
    city.box(5, 0.0, 100.0, 20.0, 20.0, **{"building:part": "yes", "min_height": "4"})
    city.box(6, 0.0, 200.0, 10.0, 10.0, **{"building:part": "yes", "height": "7"})
    world = import_osm(city.file(tmp_path), ground()).world
    assert areas_by_height(world) == pytest.approx(
        {50.0: 400.0, 9.0: 800.0, 18.0: 800.0, 7.0: 100.0}, rel=0.01
    )
    assert covers(world, 10.0, 110.0) == pytest.approx(23.0)
    low = {o.model.name: o.model.bounds[0][2] for o in world.objects}
    assert (low["way_5"], low["way_4"]) == pytest.approx((4.0, -0.5))


OUT_GEOM = """<?xml version="1.0" encoding="UTF-8"?>
<osm version="0.6" generator="Overpass API"><note>n</note><meta osm_base="2026-01-01T00:00:00Z"/>
  <relation id="5"><bounds minlat="0" minlon="0" maxlat="1" maxlon="1"/>
    <member type="way" ref="9" role="outer">
      <nd lat="0" lon="0"/><nd lat="0" lon="0.0005"/><nd lat="0.0005" lon="0.0005"/>
    </member>
    <member type="node" ref="77" role="entrance" lat="0" lon="0"/>
    <member type="way" ref="8" role="outer">
      <nd lat="0.0005" lon="0.0005"/><nd lat="0.0005" lon="0"/><nd lat="0" lon="0"/>
    </member>
    <tag k="type" v="multipolygon"/><tag k="building" v="yes"/><tag k="height" v="10"/>
  </relation>
  <way id="4"><bounds minlat="0" minlon="0.001" maxlat="1" maxlon="1"/>
    <nd ref="1" lat="0" lon="0.001"/><nd ref="2" lat="0" lon="0.0015"/>
    <nd ref="3" lat="0.0005" lon="0.0015"/><nd ref="1" lat="0" lon="0.001"/>
    <tag k="building" v="yes"/><tag k="height" v="20"/></way>
</osm>
"""


@pytest.mark.parametrize("packed", ["no", "gz", "bz2", "pbf", "ways first", "out geom"])
def test_kinds_of_files(tmp_path, packed):
    """A square of 0.0005° with 10 m, and half of such a square with 20 m."""
    city = Osm()
    side = 0.0005
    square = city.nodes([(0, 0), (side * EAST, 0), (side * EAST, side * NORTH), (0, side * NORTH)])
    half = city.nodes([(2 * side * EAST, 0), (3 * side * EAST, 0), (3 * side * EAST, side * NORTH)])
    city.way(8, [square[0], square[3], square[2]])
    city.way(9, square[:3])
    city.way(4, [*half, half[0]], building="yes", height="20")
    city.relation(5, [(8, "outer"), (9, "outer")], building="yes", height="10")
    if packed == "ways first":
        city.lines.reverse()
    path = city.file(tmp_path)
    text = path.read_bytes()
    if packed == "gz":
        path = tmp_path / "city.osm.gz"
        path.write_bytes(gzip.compress(text))
    elif packed == "bz2":
        path = tmp_path / "city.osm.bz2"
        path.write_bytes(bz2.compress(text))
    elif packed == "pbf":
        path = tmp_path / "city.osm.pbf"
        with osmium.SimpleWriter(str(path)) as writer:
            for item in osmium.FileProcessor(osmium.io.FileBuffer(text, "osm")):
                writer.add(item)
    elif packed == "out geom":
        path.write_text(OUT_GEOM)

    found = import_osm(path, ground())
    area = (side * NORTH) * (side * EAST)
    assert (found.left_out, found.world.name) == ({}, "city")
    assert areas_by_height(found.world) == pytest.approx({10.0: area, 20.0: area / 2}, rel=0.01)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<gpx/>", "a.osm: cannot be read: Unknown top-level element: gpx"),
        ("<osm><node id='1' lat='nan' lon='0'/></osm>", "a.osm: cannot be read: .* 'nan'"),
        ("<osm><node id='x' lat='0' lon='0'/></osm>", "illegal id: 'x'"),
        ("<osm>\n<way", "a.osm: cannot be read: XML parsing error at line 2"),
        ("<!DOCTYPE o [<!ENTITY a 'b'>]><osm>&a;</osm>", "XML entities are not supported"),
        ("<osm>" + "<a>" * 200, "xml file nested too deep"),
        ('{"version": 0.6}', r"a.osm: this is JSON; ask Overpass for XML: \[out:xml\]"),
        (b"\x1f\x8b\x08 and so on", "a.osm: cannot be unpacked"),
        (
            gzip.compress(b"<osm>" + b" " * 3000, mtime=0),
            "a.osm: larger than 2,000 bytes when it is unp",
        ),
        (b"", "a.osm: cannot be read: "),
        (
            "<osm><remark> runtime error: Query timed out after 25 seconds. </remark></osm>",
            "a.osm: incomplete, Overpass broke off: runtime error: Query timed out after 25 s",
        ),
        (
            "<osm>" + "<node id='1' lat='0' lon='0'/>" * 20 + "</osm>",
            "no building within .* none at all",
        ),
        (
            "<osm><way id='1' version='1'/><way id='1' version='2'/></osm>",
            "way 1 is there in several versions, expected one",
        ),
        (
            f"<osm><way id='1'>{NODE * 60}<tag k='building' v='yes'/></way></osm>",
            "buildings of more than 50 corners",
        ),
        (
            f"<osm><way id='1'>{NODE * 30}</way><relation id='1'>"
            "<tag k='building' v='yes'/><tag k='type' v='multipolygon'/>"
            f"{MEMBER * 20}</relation></osm>",
            "buildings of more than 50 corners",
        ),
    ],
)
def test_files_that_are_none(tmp_path, monkeypatch, text, words):
    monkeypatch.setattr(osm, "MAX_NODES", 50)
    monkeypatch.setattr(osm, "MAX_UNPACKED_BYTES", 2000)
    file = tmp_path / "a.osm"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=words):
        import_osm(file, ground())


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        import_osm(tmp_path / "b.osm", ground())
