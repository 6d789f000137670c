# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Buildings of an OpenStreetMap file, by hand.

At 0° N, 0° E a degree is 110,574.28 m north and 111,319.49 m east.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, import_osm, load_world
from rfly_terrain.world import osm
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.populate import Area
from rfly_terrain.world.world_file import write_world

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

    world, left_out = import_osm(city.file(tmp_path), ground())
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
    world, _ = import_osm(city.file(tmp_path), ground(), default_height=8.0)
    z = world.solids.vertices[:, 2]
    assert (z.min() - 5.0, z.max() - 5.0) == pytest.approx(span, abs=0.006)


def test_on_a_slope_it_counts_from_the_lowest_ground(tmp_path):
    """1:10 up to the east, x 100 … 140: the lowest ground is 5 + 10 = 15 m, the top 15 + 9."""
    city = Osm()
    city.box(1, 100.0, 0.0, 40.0, 10.0, building="yes", height="9")
    world, _ = import_osm(city.file(tmp_path), ground(slope=0.1))
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

    world, left_out = import_osm(city.file(tmp_path), ground())
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
    city.box(11, 70.0, 0.0, 10.0, 10.0, building="yes")
    world, left_out = import_osm(city.file(tmp_path), ground())
    # a relation that lacks its courtyard is not a building without one
    assert [o.model.name for o in world.objects] == ["way_11"]
    assert left_out == {
        "incomplete in the file": 3,
        "outside the area": 1,
        "too thin or too detailed": 1,
    }
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<gpx/>", r"a.osm:1: the first element is 'gpx', expected 'osm'"),
        (
            "<osm>\n<node id='1' lat='91' lon='0'/></osm>",
            r"a.osm:2: node: lat '91', expected degrees within ±90",
        ),
        ("<osm><node id='1' lat='nan' lon='0'/></osm>", r"lat 'nan'"),
        ("<osm><node id='1' lat='0'/></osm>", r"lon '', expected degrees within ±180"),
        ("<osm><node id='x' lat='0' lon='0'/></osm>", r"node: id 'x', expected a whole number"),
        ("<osm><way id='1'><nd/></way></osm>", r"nd: ref '', expected a whole number"),
        ("<osm>\n<way", r"a.osm:2: not valid XML"),
        (
            "<!DOCTYPE o [<!ENTITY a 'b'>]><osm>&a;</osm>",
            "document types and entities are not taken",
        ),
        ("<osm>" + "<a>" * 200, "nested more than 100 elements deep"),
        (
            "<osm>" + "<node id='1' lat='0' lon='0'/>" * 20 + "</osm>",
            "no building within .* none at all",
        ),
        (
            "".join(["<osm>", *(f"<node id='{k}' lat='0' lon='0'/>" for k in range(60)), "</osm>"]),
            "more than 50 nodes",
        ),
        ("<osm>" + "<tag/>" * 600 + "</osm>", "more than 500 elements"),
        (
            f"<osm><node id='1' lat='0' lon='0'/><way id='1'>{NODE * 30}</way><relation id='1'>"
            "<tag k='building' v='yes'/><tag k='type' v='multipolygon'/>"
            f"{MEMBER * 20}</relation></osm>",
            "multipolygons of more than 500 corners",
        ),
    ],
)
def test_files_that_are_none(tmp_path, monkeypatch, text, words):
    monkeypatch.setattr(osm, "MAX_NODES", 50)
    monkeypatch.setattr(osm, "MAX_ELEMENTS", 500)
    file = tmp_path / "a.osm"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=words):
        import_osm(file, ground())


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        import_osm(tmp_path / "b.osm", ground())
