# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission files that are wrong, too large or at another place: named, noted, or refused."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mission_plans import (
    FAR,
    FENCE,
    LANDING,
    SURVEY,
    TAKEOFF,
    WPL,
    plan,
    reader_in,
    simple,
)

from rfly_common.errors import MissionFileError
from rfly_missions.mission.files import read_mission


@pytest.fixture
def read(tmp_path):
    return reader_in(tmp_path)


REFUSED = {
    "fileType": (plan(fileType="Mission"), "fileType: 'Mission', expected 'Plan'"),
    "no fileType": ({"version": "1.0", "items": []}, "fileType: missing, expected 'Plan'"),
    "version": (plan(version=2), "version: 2, expected 1"),
    "no items": (
        {"fileType": "Plan", "version": 1, "mission": {"plannedHomePosition": [1, 2, 3]}},
        "items: missing",
    ),
    "home": (
        plan(mission={"plannedHomePosition": [97, 8, 0], "items": []}),
        "plannedHomePosition: .*latitude",
    ),
    "rally": (
        plan(rallyPoints={"points": [[97, 8, 50]]}),
        r"rallyPoints.points\[0\]: \[97, 8\], expected latitude",
    ),
    "rally too high": (
        plan(rallyPoints={"points": [[47, 8, 1e9]]}),
        r"rallyPoints.points\[0\]: altitude 1e\+09",
    ),
    "rally of 5": (plan(rallyPoints={"points": 5}), "rallyPoints.points: 5, expected a list"),
    "complex": (
        plan(TAKEOFF, {"type": "ComplexItem", "complexItemType": "Odd"}),
        "item 2: complexItemType: 'Odd'",
    ),
    "half a landing pattern": (
        plan(TAKEOFF, {"type": "ComplexItem", "complexItemType": "fwLandingPattern"}),
        r"item 2 \(fwLandingPattern\): loiterCoordinate: missing",
    ),
    "half a structure scan": (
        plan(
            {
                "type": "ComplexItem",
                "complexItemType": "StructureScan",
                "CameraCalc": {"DistanceToSurface": "far"},
            }
        ),
        r"item 1 \(StructureScan\): StructureHeight: None, expected a number",
    ),
    "a scan of a million way-points": (
        plan(
            {
                "type": "ComplexItem",
                "complexItemType": "StructureScan",
                "CameraCalc": {
                    "AdjustedFootprintFrontal": 8,
                    "AdjustedFootprintSide": 5,
                    "DistanceToSurface": 10,
                },
                "StructureHeight": 20,
                "Layers": 1000,
                "polygon": [
                    [47 + math.cos(math.tau * n / 1000), 8 + math.sin(math.tau * n / 1000)]
                    for n in range(1000)
                ],
            }
        ),
        r"item 1 \(StructureScan\): 1000 layers of 1000 corners, allowed: 60,000 in all",
    ),
    "a type of 6000 characters": (
        plan({"type": "x" * 6000}),
        "item 1: type: 'x{56}…, expected 'SimpleItem'",
    ),
    "an impossible altitude": (
        plan(simple(16, 3, [0, 0, 0, 0, 47, 8, 1e300])),
        r"params\[6\]: 1e\+300, expected an alt",
    ),
    "an impossible place": (
        plan(simple(16, 1, [0, 0, 0, 0, 1e9, 8, 1])),
        r"params\[4\], params\[5\]: .*of home",
    ),
    "a radius below 0": (
        plan(simple(16, 3, [0, -1, 0, 0, 47, 8, 9])),
        r"params\[1\]: -1.0, expected a radius of 0 to",
    ),
    "an impossible circle": (
        plan(simple(18, 3, [1, 0, 1e9, 0, 47, 8, 9])),
        r"params\[2\]: 1000000000.0, expected a rad",
    ),
    "type": (plan({"type": "Odd"}), "item 1: type: 'Odd', expected 'SimpleItem' or 'ComplexItem'"),
    "frame": (
        plan(TAKEOFF, simple(16, 8, [0] * 7)),
        r"item 2 \(command 16\): frame: 8, expected one of 0, 1, 2, 3",
    ),
    "six params": (plan(simple(16, 3, [0] * 6)), "item 1: params: 6 values, expected 7"),
    "a word": (
        plan(simple(16, 3, [0, "x", 0, 0, 47, 8, 1])),
        r"item 1: params\[1\]: 'x', expected a number",
    ),
    "a bool": (
        plan(simple(16, 3, [0, True, 0, 0, 47, 8, 1])),
        r"item 1: params\[1\]: True, expected a number",
    ),
    "latitude": (
        plan(simple(16, 3, [0, 0, 0, 0, 91, 8, 1])),
        r"params\[4\]: 91.0, expected a latitude",
    ),
    "longitude": (
        plan(simple(16, 3, [0, 0, 0, 0, 1, 181, 1])),
        r"params\[5\]: 181.0, expected a longitude",
    ),
    "half a place": (plan(simple(16, 3, [0, 0, 0, 0, 1, None, 1])), r"params\[4\], params\[5\]"),
    "command": (plan(simple("go", 3, [0] * 7)), "item 1: command: 'go', expected a whole number"),
    "take-off to nowhere": (
        plan(simple(22, 3, [0, 0, 0, 0, 47, 8, None])),
        r"params\[6\]: nan, expected an altitude",
    ),
    "turns": (
        plan(simple(18, 3, [-1, 0, 0, 0, 47, 8, 1])),
        r"params\[0\]: -1.0, expected turns of at least 0",
    ),
    "jump": (
        plan(simple(177, 2, [7, 1, 0, 0, 0, 0, 0])),
        r"params\[0\]: 7.0, expected the number of an item",
    ),
    "a number too large": ('{"fileType": "Plan", "version": 1e999}', "version: inf, expected 1"),
    "a command too large": (
        json.dumps(plan(simple(16, 3, [0] * 7))).replace('"command": 16', '"command": 1e999'),
        "item 1: command: inf, expected a whole number",
    ),
    "two of a number": (
        plan(
            TAKEOFF | {"doJumpId": 4},
            FAR | {"doJumpId": 4},
            simple(177, 2, [4, 1, 0, 0, 0, 0, 0], doJumpId=5),
        ),
        "doJumpId: 4 is that of several items",
    ),
    "an unknown tag": (
        plan(simple(601, 2, [7, 1, 0, 0, 0, 0, 0])),
        r"params\[0\]: 7.0, expected the tag of one item",
    ),
    "a tag of two": (
        plan(
            simple(600, 2, [7] + [0] * 6),
            simple(600, 2, [7] + [0] * 6),
            simple(601, 2, [7] + [0] * 6),
        ),
        "item 3 .*the tag of one item",
    ),
    "a time of day": (
        plan(simple(93, 2, [-1, 12, 30, 0, 0, 0, 0])),
        r"params\[0\]: -1.0, expected seconds",
    ),
    "a turn from the yaw of now": (
        plan(simple(115, 2, [90, 9, 1, 1, 0, 0, 0])),
        r"params\[3\]: 1.0, expected 0",
    ),
    "a corner of a fence": (
        plan(simple(5001, 0, [4, 0, 0, 0, 47, 8, 0])),
        "command: 5001, expected a mission item",
    ),
    "a rally point": (
        plan(simple(5100, 3, [0, 0, 0, 0, 47, 8, 50])),
        "command: 5100, expected a mission item",
    ),
    "a pause that is none": (
        plan(simple(16, 3, [0] * 7, autoContinue=0)),
        "item 1: autoContinue: 0, expected true or false",
    ),
    "a place in a frame without places": (
        plan(TAKEOFF, simple(16, 2, [0, 0, 0, 0, 47.001, 8.0, 30])),
        r"item 2 \(command 16\): frame: 2, expected 3 \(above home\)",
    ),
    "fence of old": (
        plan(geoFence={"polygon": [[1, 2]], "version": 1}),
        r"geoFence.polygons\[0\]: 1 corners",
    ),
    "corners of a fence": (
        "#saved by a ground station\n47.0 8.0\n47.1 8.0\n47.1 8.1\n47.0 8.0\n",
        r"line 2: '47.0 8.0': the corners of a geofence \(.fen\), no mission",
    ),
    "rally points in a file": (
        "RALLY\t47.0\t8.0\t100\t40\t0\t0\n",
        r"line 1: 'RALLY 47.0 .*: rally points \(.ral\), no mission",
    ),
    "two corners": (
        plan(geoFence={"polygons": [{"polygon": [[1, 2], [3, 4]]}]}),
        r"polygons\[0\]: 2 corners",
    ),
    "no radius": (
        plan(geoFence={"circles": [{"circle": {"center": [1, 2], "radius": 0}}]}),
        r"circle.radius: 0.0",
    ),
    "rolling in the file": (
        plan(rolling=True),
        r"the file: rolling: only the mission of a scenario has it, such as .*rolling: true",
    ),
    "rolling in the mission": (
        plan(mission={**plan(TAKEOFF)["mission"], "rolling": True}),
        "mission: rolling: only the mission of a scenario",
    ),
    "rolling in a take-off": (plan(TAKEOFF | {"rolling": False}), "item 1: rolling: only the"),
    "rotors that help": (plan(TAKEOFF | {"thrust_assist": True}), "item 1: thrust_assist: only"),
    "rolling in a survey": (
        plan({"type": "ComplexItem", "TransectStyleComplexItem": {"rolling": True, "Items": []}}),
        "item 1: TransectStyleComplexItem: rolling: only the",
    ),
    "NaN": ('{"fileType": NaN}', "NaN is no JSON number"),
    "half a file": ('{"fileType": "Plan",', "no JSON"),
    "a list in a list in …": ('{"a":' + "[" * 200_000, "no JSON"),
    "something else": ("hello", "line 1: 'hello', expected 'QGC WPL 110' or the JSON"),
    "an older header": ("QGC WPL 100\n", "line 1: 'QGC WPL 100'"),
    "columns": ("QGC WPL 110\n0 1 0 16 0 0 0 0 47 8 500\n", "line 2: 11 columns, expected 12"),
    "no home": ("QGC WPL 110\n", "no rows, expected home"),
    "wrong number": (
        "QGC WPL 110\n0 1 0 16 0 0 0 0 47 8 500 1\n1 0 3 16 0 0 a 0 47 8 9 1\n",
        r"item 1, line 3: params\[2\]: 'a'",
    ),
    "infinite": (
        "QGC WPL 110\n0 1 0 16 0 0 0 0 47 8 500 1\n1 0 3 16 0 0 inf 0 47 8 9 1\n",
        "'inf', expected a finite",
    ),
}


@pytest.mark.parametrize(("content", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_named_with_its_file(read, content, text):
    with pytest.raises(MissionFileError, match=text) as caught:
        read(content)
    assert "some.plan: " in str(caught.value)


def test_a_first_row_that_is_not_home_is_noted(read):
    home = "0 1 0 16 0 0 0 0 47 8 500 1\n"
    takeoff = "0 1 3 22 0 0 0 0 47 8 20 1\n"
    assert read("QGC WPL 110\n" + home + takeoff).lost == ()
    mission = read("QGC WPL 110\n" + takeoff + home)
    assert (
        "item 0, line 2 (command 22, frame 3): the first row is home and is not flown"
        in mission.lost[0]
    )
    assert len(mission.items) == 1


def test_a_home_without_an_altitude_is_read_with_a_note(read):
    """Altitudes above sea then count from sea level, or from the map's ground."""
    above_sea = simple(16, 0, [0, 0, 0, 0, 47.0, 8.0, 530])
    file = plan(
        above_sea,
        mission={"plannedHomePosition": [47.0, 8.0, None], "items": [above_sea], "version": 2},
    )

    mission = read(file)
    assert (mission.home, mission.items[0].position[2]) == ((47.0, 8.0, 0.0), -530.0)
    assert mission.lost[0].startswith(
        "mission.plannedHomePosition: no altitude, taken as 0 m (sea level"
    )

    mission = read(file, terrain=lambda latitude, longitude: 512.0)
    assert (mission.home[2], mission.items[0].position[2]) == (512.0, -18.0)
    assert "512 m (the map's ground)" in mission.lost[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
places_in_a_plan = st.sampled_from(
    [
        ("fileType",),
        ("version",),
        ("mission",),
        ("geoFence",),
        ("rallyPoints",),
        ("mission", "items"),
        ("mission", "plannedHomePosition"),
        *(
            ("mission", "items", 1, key)
            for key in ("type", "command", "frame", "params", "doJumpId", "autoContinue")
        ),
        *(("mission", "items", 1, "params", index) for index in range(7)),
        ("mission", "items", 2, "TransectStyleComplexItem"),
        ("mission", "items", 2, "TransectStyleComplexItem", "Items", 0),
        ("mission", "items", 3, "landCoordinate"),
        ("mission", "items", 3, "loiterRadius"),
        ("rallyPoints", "points", 0),
        ("geoFence", "polygons"),
        ("geoFence", "polygons", 0, "polygon", 1),
        ("geoFence", "circles", 0, "circle"),
        ("geoFence", "circles", 0, "circle", "radius"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(places_in_a_plan, json_values)
def test_anything_anywhere_is_read_or_refused(tmp_path_factory, place, value):
    """No other error is raised, and the items that are read have finite positions."""
    content = json.loads(
        json.dumps(
            plan(
                TAKEOFF, FAR, SURVEY, LANDING, geoFence=FENCE, rallyPoints={"points": [[47, 8, 50]]}
            )
        )
    )

    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value

    path = tmp_path_factory.getbasetemp() / "any.plan"
    path.write_text(json.dumps(content), encoding="utf-8")
    try:
        mission = read_mission(path)
    except MissionFileError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017  whether it is raised depends on the value
    else:
        assert all(np.isfinite(item.position).all() for item in mission.items)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 40),
    st.sampled_from(["nan", "-1", "1e400", "x", "", "65536", "0x1", "1e9", "16 17", "\x00", "½"]),
)
def test_any_word_in_any_column_is_read_or_refused(tmp_path_factory, place, word):
    words = WPL.split(" ")
    cells = [cell for part in words for cell in part.replace("\t", "\t ").split(" ")]
    cells[place % len(cells)] = word
    path = tmp_path_factory.getbasetemp() / "any.waypoints"

    path.write_text(" ".join(cells), encoding="utf-8")
    try:
        mission = read_mission(path)
    except MissionFileError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017  whether it is raised depends on the word
    else:
        assert all(np.isfinite(item.position).all() for item in mission.items)


def test_size_limits(read, tmp_path):
    with pytest.raises(OSError, match="larger than 10,485,760 bytes"):
        read(" " * (10 * 1024 * 1024 + 1))

    (tmp_path / "b.plan").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MissionFileError, match="no UTF-8 text"):
        read_mission(tmp_path / "b.plan")


@pytest.mark.exhaustive
def test_most_items(read):
    """The most items are those that MAVLink's index of 16 bits can name."""
    rows = ["QGC WPL 110", "0 1 0 16 0 0 0 0 47 8 500 1"] + ["1 0 2 20 0 0 0 0 0 0 0 1"] * 65_536
    with pytest.raises(MissionFileError, match="65535 items"):
        read("\n".join(rows))
    assert len(read("\n".join(rows[:-1])).items) == 65_535


@pytest.mark.parametrize(
    ("items", "notes"),
    [
        ([simple(179, 2, [1, 0, 0, 0, 0, 0, 0])], ["item 1 (command 179): not carried out, ret"]),
        ([simple(3000, 2, [4, 0, 0, 0, 0, 0, 0])], ["item 1 (command 3000): not carried out, th"]),
        (
            [simple(17, 3, [0, 0, 0, 0, 47, 8, 9]), FAR],
            ["item 1 (command 17): it has no end, nothing follows it"],
        ),
        ([FAR, simple(17, 3, [0, 0, 0, 0, 47, 8, 9])], []),
        (
            [simple(16, 3, [0, 0, 0, 0, 47.9, 8, 9]), simple(16, 3, [0, 0, 0, 0, 47.8, 8, 9])],
            ["item 1 (command 16): 100.1 km from home; the same of 1 more"],
        ),
        ([simple(16, 2, [0, 0, 0, 0, 0, 0, 9])], ["item 1 (command 16): params[6] = 9 has no pl"]),
        ([simple(20, 3, [0, 0, 0, 0, -47, 8, 9])], ["item 1 (command 20): params[4] = -47 has"]),
    ],
)
def test_what_a_mission_does_not_do_is_noted(read, items, notes):
    """0.9° of latitude are 100.06 km (a minute of arc is 1,853 m there)."""
    lost = read(plan(*items)).lost
    assert [text[: len(note)] for text, note in zip(lost, notes, strict=False)] == notes
    assert bool(lost) == bool(notes)


@pytest.mark.parametrize(
    ("home", "place", "kilometres", "reason"),
    [
        ((47.0, 8.0, 500), (8.0, 47.0), (6_000, 6_300), "latitude and longitude look exchanged"),
        ((47.0, 8.0, 500), (-47.0, -172.0), (19_950, 20_050), None),
        ((0, 0, 0), (47.0, 8.0), (5_200, 5_300), "home is 0, 0, which ground stations write"),
    ],
)
def test_places_on_other_continents_are_noted(read, home, place, kilometres, reason):
    """Half the way round the Earth is 20,004 km over a pole."""
    item = simple(16, 3, [0, 0, 0, 0, *place, 30])
    mission = {"plannedHomePosition": list(home), "items": [item, item], "version": 2}
    note = read(plan(mission=mission)).lost[-1]
    away = float(note.split(": ")[1].split(" km")[0].replace(",", ""))
    assert kilometres[0] < away < kilometres[1]
    assert note.endswith("; the same of 1 more")
    assert (reason or "km from home; the same") in note


def test_latitude_and_longitude_exchanged_near_the_diagonal_are_noted(read):
    mission = {"plannedHomePosition": [46.0, 46.2, 0], "version": 2}
    items = [simple(16, 3, [0, 0, 0, 0, 46.2, 46.001, 9])]
    assert read(plan(mission=mission | {"items": items})).lost == (
        "item 1 (command 16): 27.0 km from home; latitude and longitude look exchanged",
    )
