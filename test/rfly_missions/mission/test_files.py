# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission files against a table of commands worked by hand; refusals by name; there and back."""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rfly_common.errors import MissionFileError
from rfly_common.geodesy import ned_to_geodetic
from rfly_missions.mission.files import Mission, read_mission, write_mission
from rfly_missions.mission.geofence import FenceCircle, FencePolygon, Geofence
from rfly_missions.mission.items import MissionItem, MissionMode

HOME = (47.0, 8.0, 500.0)
NAN = math.nan
INF = math.inf


def simple(command, frame, params, **more):
    """Return a SimpleItem of a .plan."""
    return {"type": "SimpleItem", "command": command, "frame": frame, "params": params, **more}


def plan(*items, **changes):
    """Return a .plan of items, with changes of its keys."""
    mission = {"plannedHomePosition": list(HOME), "items": list(items), "version": 2}
    return {
        "fileType": "Plan",
        "version": 1,
        "groundStation": "QGroundControl",
        "mission": mission,
        **changes,
    }


@pytest.fixture
def read(tmp_path):
    def read(content, **options):
        path = tmp_path / "some.plan"
        path.write_text(
            content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
        )
        return read_mission(path, **options)

    return read


TAKEOFF = simple(22, 3, [15, 0, 0, None, 47.0, 8.0, 20])
FAR = simple(16, 3, [5, 3, 0, 90, 47.001, 8.0, 30])
WORKED = {
    "takeoff": ([TAKEOFF], "TAKEOFF", (0, 0, -20), (15, 0, 0, NAN)),
    "waypoint": ([FAR], "WAYPOINT", (111.1708, 0, -30), (math.pi / 2, 3, 5, 0)),
    "absolute altitude": (
        [simple(16, 0, [0, 0, 0, 270, 47.0, 8.001, 530])],
        "WAYPOINT",
        (0.0005, 76.0560, -30),
        (-math.pi / 2, 2, 0, 0),
    ),
    "turns, counter-clockwise": (
        [simple(18, 3, [2, 0, -40, 1, 47.0, 8.0, 30])],
        "ORBIT",
        (0, 0, -30),
        (40, -1, 2, 1),
    ),
    "return": ([simple(20, 2, [0] * 7)], "RTL", (0, 0, 0), (0, 0, 0, 0)),
    "speed, at the waypoint before it": (
        [FAR, simple(178, 2, [1, 7, -1, 0, 0, 0, 0])],
        "CUSTOM",
        (111.1708, 0, -30),
        (1, 7, -1, 0),
        178,
    ),
    "orbit": (
        [simple(34, 3, [60, 5, 0, 9.42477796, 47.0, 8.0, 40])],
        "ORBIT",
        (0, 0, -40),
        (60, 1, 1.5, 5),
    ),
    "endless, local ENU": (
        [simple(17, 4, [0, 0, 0, 0, 12, 34, 56])],
        "ORBIT",
        (34, 12, -56),
        (25, 0, INF, 0),
    ),
    "local NED": (
        [simple(16, 1, [0, 0, 0, 0, 12, 34, -56])],
        "WAYPOINT",
        (12, 34, -56),
        (0, 2, 0, 0),
    ),
    "vertical take-off": (
        [simple(84, 6, [0, 0, 0, 180, 47.0, 8.0, 9])],
        "TAKEOFF",
        (0, 0, -9),
        (0, 0, 0, math.pi),
    ),
    "land": (
        [simple(21, 3, [1, 2, 3, -90, 47.0, 8.001, 0])],
        "LAND",
        (0.0005, 76.056, 0),
        (1, 2, 3, -math.pi / 2),
    ),
    "vertical land": (
        [simple(85, 5, [0, 0, 0, None, 47.0, 8.0, 501])],
        "LAND",
        (0, 0, -1),
        (0, 0, 0, NAN),
    ),
    "spline": (
        [simple(82, 3, [4, 0, 6, 90, 47.0, 8.0, 5])],
        "WAYPOINT",
        (0, 0, -5),
        (NAN, 2, 4, 6),
    ),
    "orbit without turns": (
        [simple(34, 3, [-60, 5, 0, 0, 47.0, 8.0, 40])],
        "ORBIT",
        (0, 0, -40),
        (60, -1, INF, 5),
    ),
    "take-off here": (
        [FAR, simple(22, 3, [0, 0, 0, 0, 0, 0, 20])],
        "TAKEOFF",
        (111.1708, 0, -20),
        (0, 0, 0, 0),
    ),
    "waypoint here": (
        [FAR, simple(16, 3, [0, 0, 0, 0, 0, 0, 50])],
        "WAYPOINT",
        (111.1708, 0, -50),
        (0, 2, 0, 0),
    ),
    "turns here": (
        [FAR, simple(18, 3, [1, 0, 5, 0, None, None, 0])],
        "ORBIT",
        (111.1708, 0, -30),
        (5, 1, 1, 0),
    ),
    "land here": (
        [FAR, simple(21, 3, [0, 0, 0, 0, None, None, None])],
        "LAND",
        (111.1708, 0, 0),
        (0, 0, 0, 0),
    ),
    "loiter, a command with a place": (
        [FAR, simple(19, 3, [30, 0, 10, 0, 47.0, 8.0, 12])],
        "CUSTOM",
        (0, 0, -12),
        (30, 0, 10, 0),
        19,
    ),
    "servo with zeros for a place": (
        [FAR, simple(183, 3, [9, 1100, 0, 0, 0, 0, 0])],
        "CUSTOM",
        (111.1708, 0, -30),
        (9, 1100, 0, 0),
        183,
    ),
    "what a camera looks at, where no vehicle is": (
        [FAR, simple(201, 3, [0, 0, 0, 0, 47.0, 8.002, 0]), simple(16, 3, [0, 0, 0, 0, 0, 0, 0])],
        "WAYPOINT",
        (111.1708, 0, -30),
        (0, 2, 0, 0),
    ),
    "a speed, with the place of the item before it": (
        [FAR, simple(201, 3, [0, 0, 0, 0, 47.0, 8.001, 0]), simple(178, 2, [1, 7, 0, 0, 0, 0, 0])],
        "CUSTOM",
        (0.0005, 76.056, 0),
        (1, 7, 0, 0),
        178,
    ),
    "above sea, known when it was planned": (
        [
            simple(
                16,
                0,
                [0, 0, 0, 0, 47.0, 8.0, None],
                AltitudeMode=3,
                Altitude=80,
                AMSLAltAboveTerrain=590,
            )
        ],
        "WAYPOINT",
        (0, 0, -90),
        (0, 2, 0, 0),
    ),
    "as QGroundControl 3.2 wrote it": (
        [simple(16, 3, [5, 3, 0, None], coordinate=[47.001, 8.0, 30])],
        "WAYPOINT",
        (111.1708, 0, -30),
        (NAN, 3, 5, 0),
    ),
    "climb, a condition with an altitude": (
        [FAR, simple(113, 3, [2, 0, 0, 0, 0, 0, 80])],
        "CUSTOM",
        (111.1708, 0, -80),
        (2, 0, 0, 0),
        113,
    ),
}


@pytest.mark.parametrize("worked", WORKED.values(), ids=WORKED)
def test_worked_items(read, worked):
    items, mode, position, params, *command = worked
    item = read(plan(*items)).items[-1]
    assert item.mode.name == mode
    assert item.command == sum(command)  # 0 without one
    np.testing.assert_allclose(item.position, position, atol=1e-4)
    np.testing.assert_allclose(item.params, params, atol=1e-8)


def test_altitudes_above_terrain_need_a_terrain(read):
    """The ground counts under the item; its altitude is above sea."""
    places = []

    def terrain(latitude, longitude):
        places.append((latitude, longitude))
        return 620.0

    file = plan(simple(16, 10, [0, 0, 0, 0, 47.001, 8.001, 15]))
    item = read(file, terrain=terrain).items[0]
    np.testing.assert_allclose(item.position, [111.1713, 76.0546, 500 - 635], atol=1e-4)
    np.testing.assert_allclose(places, [(47.001, 8.001)], atol=1e-9)

    with pytest.raises(MissionFileError, match=r"item 1 .*frame: 10, expected .*map"):
        read(file)

    # an altitude that QGroundControl computes
    computed = plan(
        simple(
            16,
            0,
            [0, 0, 0, 0, 47.0, 8.0, None],
            AltitudeMode=3,
            Altitude=80,
            AMSLAltAboveTerrain=None,
        )
    )
    assert read(computed, terrain=terrain).items[0].position[2] == 500 - 620 - 80
    with pytest.raises(MissionFileError, match=r"item 1 \(AltitudeMode 3\).*expected .*map"):
        read(computed)


SURVEY = {
    "type": "ComplexItem",
    "complexItemType": "survey",
    "TransectStyleComplexItem": {
        "Items": [
            simple(16, 3, [0, 0, 0, None, 47.001, 8.0, 30], doJumpId=2),
            simple(206, 2, [25, 0, 1, 0, 0, 0, 0], doJumpId=3),
            simple(16, 3, [0, 0, 0, None, 47.001, 8.001, 30], doJumpId=4),
            simple(206, 2, [0, 0, 1, 0, 0, 0, 0], doJumpId=5),
        ]
    },
}


def test_a_survey_is_its_simple_items_and_every_custom_is_listed(read):
    mission = read(
        plan({**TAKEOFF, "doJumpId": 1}, SURVEY, simple(177, 2, [2, 3, 0, 0, 0, 0, 0], doJumpId=6))
    )

    assert [item.mode.name for item in mission.items] == [
        "TAKEOFF",
        "WAYPOINT",
        "CUSTOM",
        "WAYPOINT",
        "CUSTOM",
        "CUSTOM",
    ]

    assert mission.custom == ((2, 206), (4, 206), (5, 177))
    assert mission.numbers == (1, 2, 3, 4, 5, 6)
    assert mission.home == HOME


def test_what_has_no_place_is_listed(read):
    spline = simple(82, 3, [0, 0, 0, 45, 47.0, 8.0, 9])
    items = [
        simple(203, 2, [0, 0, 0, 0, 1, 0, 0]),
        simple(18, 3, [1, 1, 9, 0, 47.0, 8.0, 9]),
        spline,
    ]

    rest = [
        SURVEY,
        *(simple(command, 3, [0, 0, 0, None, 47.0, 8.0, 9]) for command in (84, 85, 34)),
    ]
    mission = read(plan(*items, *rest))

    assert mission.lost[0] == "item 4 (survey): read as its 4 simple items, and written as these"
    assert [text.split(":")[0] for text in mission.lost[5:]] == [
        f"item {n} (command {c})" for n, c in ((5, 84), (6, 85), (7, 34))
    ]
    assert mission.lost[1:5] == (
        "item 1 (command 203): params[4] = 1 has no place in CUSTOM",
        "item 2 (command 18): params[1] = 1 has no place in ORBIT",
        "item 3 (command 82): the spline is flown straight",
        "item 3 (command 82): params[3] = 45 has no place in WAYPOINT",
    )


def test_about_another_place(read):
    """Home's own place about the map's origin is added to all items but RTL."""
    mission = read(plan(FAR, simple(20, 2, [0] * 7))).about((46.999, 8.0, 480.0))
    np.testing.assert_allclose(mission.items[0].position, [222.3416, 0, -50], atol=1e-3)
    assert mission.items[1].position.tolist() == [0, 0, 0]


FENCE = {
    "polygons": [
        {"inclusion": True, "polygon": [[46.99, 7.99], [46.99, 8.01], [47.01, 8.01], [47.01, 7.99]]}
    ],
    "circles": [{"inclusion": False, "circle": {"center": [47.001, 8.0], "radius": 50}}],
    "version": 2,
}


def test_the_fence_is_read(read):
    fence = read(plan(TAKEOFF, geoFence=FENCE)).fence
    assert fence.breach(0, 0) == ""
    assert fence.breach(1200, 0) == "area 1 of the fence (inclusion polygon)"
    assert fence.breach(100, 0) == "area 2 of the fence (exclusion circle)"

    assert fence.breach_of_line((0, 0), (0, 700)) == ""
    assert fence.breach_of_line((0, 0), (0, 800)) == "area 1 of the fence (inclusion polygon)"
    assert fence.breach_of_line((0, 0), (200, 0)) == "area 2 of the fence (exclusion circle)"
    assert fence.breach_of_line((0, 60), (200, 60)) == ""
    assert fence.moved((1000, 0)).breach(1000, 0) == ""


def test_a_line_through_a_notch_of_a_polygon_breaches_it():
    """Both ends lie inside of a U."""
    u = FencePolygon(
        np.array([[0, 0], [10, 0], [10, 3], [2, 3], [2, 7], [10, 7], [10, 10], [0, 10]], float)
    )

    fence = Geofence((u,))
    assert fence.breach_of_line((9, 1), (9, 9)) == "area 1 of the fence (inclusion polygon)"
    assert fence.breach_of_line((1, 1), (1, 9)) == ""
    assert Geofence((FenceCircle((0, 0), 5.0),)).breach_of_line((0, -4.9), (0, 4.9)) == ""


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


def test_rally_points_and_the_place_after_a_breach_there_and_back(read, tmp_path):
    """Both places lie relative to home: 0.001° north is 111.1708 m."""
    fence = {
        "circles": [{"circle": {"center": [47, 8], "radius": 900}}],
        "breachReturn": [47.001, 8.0, 60],
    }
    rally = {"points": [[47.001, 8.001, 50], [47.0, 8.0, None]], "version": 2}
    mission = read(plan(FAR, geoFence=fence, rallyPoints=rally))
    np.testing.assert_allclose(mission.rally, [(111.1713, 76.0546, -50), (0, 0, 0)], atol=1e-4)
    np.testing.assert_allclose(mission.fence.breach_return, (111.1708, 0, -60), atol=1e-4)

    moved = mission.moved((1.0, 2.0, 3.0))
    np.testing.assert_allclose(moved.rally[0], (112.1713, 78.0546, -47), atol=1e-4)
    np.testing.assert_allclose(moved.fence.breach_return, (112.1708, 2, -57), atol=1e-4)

    assert write_mission(tmp_path / "back.plan", mission) == ()
    again = read_mission(tmp_path / "back.plan")
    np.testing.assert_allclose(again.rally, mission.rally, atol=1e-6)
    np.testing.assert_allclose(again.fence.breach_return, mission.fence.breach_return, atol=1e-6)
    lost = write_mission(tmp_path / "back.waypoints", mission)
    assert "rallyPoints: a .waypoints" in " ".join(lost)


def test_a_fence_of_version_1_is_one_polygon_to_stay_in(read):
    fence = read(
        plan(geoFence={"polygon": [[47, 8], [47.001, 8], [47.001, 8.001]], "version": 1})
    ).fence
    assert [type(area).__name__ for area in fence.areas] == ["FencePolygon"]
    assert fence.breach(60.0, 20.0) == ""
    assert fence.breach(20.0, 60.0)


LANDING = {
    "type": "ComplexItem",
    "complexItemType": "fwLandingPattern",
    "altitudesAreRelative": True,
    "landCoordinate": [47.0, 8.0, 0],
    "landingApproachCoordinate": [47.001, 8.0, 40],
    "loiterRadius": 75,
    "loiterClockwise": False,
    "stopTakingPhotos": True,
    "stopVideoPhotos": True,
    "useLoiterToAlt": True,
    "version": 2,
}


@pytest.mark.parametrize(
    ("changes", "commands", "approach"),
    [
        (
            {"useDoChangeSpeed": True, "finalApproachSpeed": 14.9},
            [189, 178, 206, 2001, 2501, 31, 21],
            (1, -75, 0, 1),
        ),
        (
            {"useDoChangeSpeed": False, "finalApproachSpeed": 14},
            [189, 206, 2001, 2501, 31, 21],
            (1, -75, 0, 1),
        ),
        ({}, [189, 206, 2001, 2501, 31, 21], (1, -75, 0, 1)),
        ({"useLoiterToAlt": False, "stopTakingPhotos": False}, [189, 2501, 16, 21], (NAN, 2, 0, 0)),
        (
            {"complexItemType": "vtolLandingPattern", "loiterClockwise": True},
            [189, 206, 2001, 2501, 31, 21],
            (1, 75, 0, 1),
        ),
        (
            {
                "altitudesAreRelative": False,
                "landCoordinate": [47.0, 8.0, 500],
                "landingApproachCoordinate": [47.001, 8, 540],
            },
            [189, 206, 2001, 2501, 31, 21],
            (1, -75, 0, 1),
        ),
    ],
)
def test_a_landing_pattern_is_its_items(read, changes, commands, approach):
    """The circle lies at the approach 111.17 m north and 40 m up, the landing at home."""
    items = read(plan(TAKEOFF, LANDING | changes)).items[1:]
    kinds = {"LAND": 21, "WAYPOINT": 16}
    assert [kinds.get(item.mode.name, item.command) for item in items] == commands
    np.testing.assert_allclose(items[-2].position, (111.1708, 0, -40), atol=1e-4)
    np.testing.assert_allclose(items[-2].params, approach)
    np.testing.assert_allclose(items[-1].position, (0, 0, 0), atol=1e-6)
    speeds = [item.params.tolist() for item in items if item.command == 178]
    assert speeds == ([[0, 14, -1, 0]] if 178 in commands else [])  # an int in QGroundControl


@pytest.mark.parametrize(("number", "mode"), [(4, "CUSTOM"), (5, "WAYPOINT"), (6, "LAND")])
def test_jumps_into_a_landing_pattern_with_a_speed(read, number, mode):
    """QGroundControl's numbers: 3 land start, 4 speed, 5 approach, 6 landing."""
    pattern = LANDING | {"complexItemType": "vtolLandingPattern", "useLoiterToAlt": False}
    pattern |= {"stopTakingPhotos": False, "stopVideoPhotos": False}
    pattern |= {"useDoChangeSpeed": True, "finalApproachSpeed": 7}
    jump = simple(177, 2, [number, 1, 0, 0, 0, 0, 0], doJumpId=7)
    mission = read(
        plan({**TAKEOFF, "doJumpId": 1}, {**FAR, "doJumpId": 2}, pattern, jump)
    ).with_plain_jumps()
    assert mission.items[int(mission.items[-1].params[0]) - 1].mode.name == mode


def test_a_landing_pattern_of_version_1(read):
    old = {
        key: value
        for key, value in LANDING.items()
        if key not in ("altitudesAreRelative", "landingApproachCoordinate")
    }
    old |= {"version": 1, "loiterCoordinate": [47.001, 8.0, 540], "loiterAltitudeRelative": False}
    old |= {"landCoordinate": [47.0, 8.0, 500], "landAltitudeRelative": False}

    np.testing.assert_allclose(read(plan(old)).items[-2].position, (111.1708, 0, -40), atol=1e-4)
    with pytest.raises(
        MissionFileError, match="landAltitudeRelative: expected the value of loiterAltitudeRelative"
    ):
        read(plan(old | {"landAltitudeRelative": True}))


@pytest.mark.parametrize("clockwise", [True, False])
def test_a_structure_scan_goes_round_once_for_each_layer(read, clockwise):
    """A square of 40 m is scanned from 10 m away: the way's corners lie 10 m outside."""
    # north, east: clockwise from above
    corners = [(0.0, 0.0), (40.0, 0.0), (40.0, 40.0), (0.0, 40.0)]
    if not clockwise:
        corners = corners[:1] + corners[:0:-1]

    scan = {
        "type": "ComplexItem",
        "complexItemType": "StructureScan",
        "CameraCalc": {
            "AdjustedFootprintFrontal": 8,
            "AdjustedFootprintSide": 5,
            "DistanceToSurface": 10,
        },
        "EntranceAltitude": 60,
        "Layers": 2,
        "ScanBottomAlt": 4,
        "StructureHeight": 20,
        "StartFromTop": False,
        "polygon": [ned_to_geodetic((*corner, 0.0), HOME)[:2].tolist() for corner in corners],
        "version": 3,
    }

    way = [item.position for item in read(plan(scan)).items if item.mode is MissionMode.WAYPOINT]
    outside = [
        (n + math.copysign(10, n - 20), e + math.copysign(10, e - 20))
        for n, e in [*corners, corners[0]]
    ]
    expected = [
        (*outside[0], -60),
        *[(*c, -8) for c in outside],
        *[(*c, -16) for c in outside],
        (*outside[0], -60),
    ]
    np.testing.assert_allclose(way, expected, atol=1e-3)

    # from the top
    down = [item.position[2] for item in read(plan(scan | {"StartFromTop": True})).items[2:12:5]]
    np.testing.assert_allclose(down, [-16, -16], atol=1e-6)

    # the camera
    triggers = [item.params[0] for item in read(plan(scan)).items if item.command == 206]
    assert triggers == [5, 0, 5, 0]


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
    """There is never another error, and the items that are read have finite positions."""
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
    """As many as MAVLink's index of 16 bits can name."""
    rows = ["QGC WPL 110", "0 1 0 16 0 0 0 0 47 8 500 1"] + ["1 0 2 20 0 0 0 0 0 0 0 1"] * 65_536
    with pytest.raises(MissionFileError, match="65535 items"):
        read("\n".join(rows))
    assert len(read("\n".join(rows[:-1])).items) == 65_535


WPL = """# a remark
QGC WPL 110
0\t1\t0\t16\t0\t0\t0\t0\t47.0\t8.0\t500.0\t1
1   0  3 22 15 0 0 nan 47.0 8.0 20 1
# another
2\t0\t3\t16\t5\t3\t0\t90\t47.001\t8.0\t30\t1
3\t0\t2\t177\t2\t1\t0\t0\t0\t0\t0\t1
"""


def test_waypoints_with_home_in_the_first_row(read):
    mission = read(WPL)
    assert mission.home == HOME
    assert [item.mode.name for item in mission.items] == ["TAKEOFF", "WAYPOINT", "CUSTOM"]
    assert math.isnan(mission.items[0].params[3])
    np.testing.assert_allclose(mission.items[1].position, [111.1708, 0, -30], atol=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("500.0\t1", "500.0\t0", ()),
        ("WPL 110", "WPL 120", ()),
        (
            "30\t1",
            "30\t0",
            ("item 2, line 6: autocontinue 0 is not kept, the mission goes on",),
        ),
    ],
)
def test_files_of_other_tools_are_read(read, old, new, lost):
    mission = read(WPL.replace(old, new))
    same(mission.items, read(WPL).items)
    assert mission.lost == lost


def test_a_yaw_of_0_is_an_order_only_where_its_writer_could_have_left_it_out(read, tmp_path):
    """ArduPilot's stations write 0 for each unused column; QGroundControl writes null for PX4."""
    rows = "".join(f"{n} 0 3 {c} 0 0 0 0 47 8 9 1\n" for n, c in enumerate((22, 16, 21), 1))
    planner = read("QGC WPL 110\n0 1 0 16 0 0 0 0 47 8 500 1\n" + rows)
    items = [simple(c, 3, [0, 0, 0, 0, 47.0, 8.0, 9]) for c in (22, 16, 21)]
    mission = {"plannedHomePosition": list(HOME), "items": items, "version": 2}

    def yaws(mission):
        return [item.params[0 if item.mode.name == "WAYPOINT" else 3] for item in mission.items]

    assert np.isnan(yaws(planner)).all()
    assert np.isnan(yaws(read(plan(mission=mission | {"firmwareType": 3})))).all()
    north = read(plan(mission=mission | {"firmwareType": 12}))
    assert yaws(north) == [0, 0, 0]

    # there and back, and no word that Mission Planner cannot read
    for before in (planner, north):
        write_mission(tmp_path / "y.waypoints", before)
        np.testing.assert_array_equal(yaws(read_mission(tmp_path / "y.waypoints")), yaws(before))
        assert "nan" not in (tmp_path / "y.waypoints").read_text()


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


def test_waypoints_whose_first_row_is_an_item(read):
    mission = read(WPL, first_row_is_home=False, home=(47.0, 8.0, 480.0))
    assert len(mission.items) == 4
    assert mission.items[0].position.tolist() == [0, 0, -20]
    assert mission.numbers == (0, 1, 2, 3)
    with pytest.raises(MissionFileError, match="home: not given"):
        read(WPL, first_row_is_home=False)


def same(actual, expected):
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert (a.mode, a.command, a.here) == (b.mode, b.command, b.here)
        np.testing.assert_allclose(a.position, b.position, atol=1e-6)
        np.testing.assert_allclose(a.params, b.params, atol=1e-9)


coordinate = st.floats(-5000, 5000).map(lambda v: round(v, 3))
number = st.floats(-1000, 1000, allow_nan=False) | st.just(NAN)
places = st.tuples(coordinate, coordinate, coordinate)
yaws = st.floats(-3.14, 3.14) | st.just(NAN)
mission_items = st.one_of(
    st.builds(
        lambda p, a, b, c, y: MissionItem.takeoff(p, (a, b, c, y)),
        places,
        number,
        number,
        number,
        yaws,
    ),
    st.builds(
        lambda p, a, b, c, y: MissionItem.land(p, (a, b, c, y)),
        places,
        number,
        number,
        number,
        yaws,
    ),
    st.builds(MissionItem.waypoint, places, yaws, st.floats(0.1, 500), number, number),
    st.builds(
        MissionItem.orbit,
        places,
        st.floats(1, 500),
        st.sampled_from([-1, 1]),
        st.floats(0, 99) | st.just(INF),
        st.floats(0, 9),
    ),
    st.builds(MissionItem.orbit, places, st.just(25.0), st.just(0), st.floats(0, 9), number),
    st.just(MissionItem.return_to_launch()),
    st.builds(
        lambda p, c, *params: MissionItem.mavlink(c, p, params),
        places,
        st.sampled_from([19, 31, 206, 201, 2000]),
        number,
        number,
        number,
        number,
    ),
    st.builds(
        lambda p, a: MissionItem.mavlink(93, p, (a, NAN, NAN, NAN)),
        places,
        st.floats(0, 1000) | st.just(NAN),
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(mission_items, max_size=12), st.sampled_from([".plan", ".waypoints"]))
def test_any_mission_there_and_back(tmp_path_factory, items, extension):
    path = tmp_path_factory.mktemp("missions") / f"m{extension}"
    assert write_mission(path, Mission(tuple(items), HOME)) == ()
    again = read_mission(path)
    same(again.items, items)
    np.testing.assert_allclose(again.home, HOME)


@pytest.mark.parametrize("extension", [".plan", ".waypoints"])
def test_a_take_off_here_there_and_back(read, tmp_path, extension):
    """It stays without a place, and stands where the item before has led."""
    for nowhere in ([0, 0], [None, None]):
        up = [simple(22, 3, [0, 0, 0, None, *nowhere, 20])]
        mission = read(plan(*up, FAR, simple(20, 2, [0] * 7), *up, FAR, *up))
        assert [item.here for item in mission.items] == [True, False, False, True, False, True]
        norths = [item.position[0] for item in mission.items if item.here]
        np.testing.assert_allclose(norths, [0, 0, 111.1708], atol=1e-4)

        path = tmp_path / f"m{extension}"
        assert write_mission(path, mission) == ()
        same(read_mission(path).items, mission.items)


def test_jumps_and_fence_there_and_back(read, tmp_path):
    """Rows get new numbers; the jump still leads to the same item, and the fence stays."""
    mission = read(
        plan(
            {**TAKEOFF, "doJumpId": 10},
            {**FAR, "doJumpId": 20},
            simple(177, 2, [20, 2, 0, 0, 0, 0, 0], doJumpId=30),
            geoFence=FENCE,
        )
    )

    assert write_mission(tmp_path / "again.plan", mission) == ()
    again = read_mission(tmp_path / "again.plan")
    assert again.items[2] == MissionItem.mavlink(177, again.items[1].position, (2, 2, 0, 0))
    same(again.items[:2], mission.items[:2])
    np.testing.assert_allclose(
        again.fence.areas[0].vertices, mission.fence.areas[0].vertices, atol=1e-6
    )

    assert [area.inclusion for area in again.fence.areas] == [True, False]
    assert write_mission(tmp_path / "again.waypoints", mission) == (
        "geoFence: a .waypoints file has no place for it",
    )


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (
            MissionItem.custom((0, 0, 0), (206, 0, 0, 0)),
            r"item 1 \(CUSTOM\): command: 0, expected the number of a MAVLink command",
        ),
        (
            MissionItem.mavlink(177, (0, 0, 0), (5, 0, 0, 0)),
            r"item 1 \(DO_JUMP\): params\[0\]: 5.0",
        ),
        (
            MissionItem.mavlink(93, (0, 0, 0), (-1, NAN, NAN, NAN)),
            r"item 1 \(command 93\): params\[0\]: -1.0, expected sec",
        ),
        (
            MissionItem.mavlink(5001, (0, 0, 0)),
            r"item 1 \(command 5001\): command: 5001, expected a mission",
        ),
        (MissionItem(MissionMode.HOLD, (0, 0, 0)), "item 1: mode: HOLD is the manager's own"),
    ],
)
def test_what_mavlink_cannot_express_is_refused(tmp_path, item, text):
    with pytest.raises(MissionFileError, match=text):
        write_mission(tmp_path / "m.plan", Mission((item,), HOME))
    with pytest.raises(
        MissionFileError, match=r"extension '\.txt', expected \.plan or \.waypoints"
    ):
        write_mission(tmp_path / "m.txt", Mission((), HOME))


def test_changes_on_writing_are_listed(tmp_path):
    items = (MissionItem.orbit((0, 0, -9), 40.0), MissionItem.waypoint((0, 0, -9)))
    assert write_mission(tmp_path / "m.plan", Mission(items, HOME)) == (
        "item 1 (ORBIT): its direction, the follower's choice, is written as clockwise",
        "item 2 (WAYPOINT): a radius of 0 is read as the reader's default",
    )


def test_tags_and_a_survey_there_and_back(read, tmp_path):
    """A tag is written as it is.

    A survey's simple items stay, its settings don't.
    """
    tag = simple(600, 2, [7] + [0] * 6, doJumpId=6)
    jump = simple(601, 2, [7, 3] + [0] * 5, doJumpId=7)
    mission = read(plan({**TAKEOFF, "doJumpId": 1}, SURVEY, tag, jump))

    for extension in (".plan", ".waypoints"):
        assert write_mission(tmp_path / f"m{extension}", mission) == ()
        same(read_mission(tmp_path / f"m{extension}").items, mission.items)

    # landing
    landing = read(plan(FAR, simple(189, 2, [0] * 7), simple(189, 3, [0, 0, 0, 0, 47.0, 8.0, 20])))
    assert write_mission(tmp_path / "l.plan", landing) == ()
    places = [
        row["params"][4]
        for row in json.loads((tmp_path / "l.plan").read_text())["mission"]["items"]
    ]
    assert places == pytest.approx([47.001, 0.0, 47.0])
    same(read_mission(tmp_path / "l.plan").items, landing.items)

    # survey
    written = json.loads((tmp_path / "m.plan").read_text(encoding="utf-8"))
    assert [item["command"] for item in written["mission"]["items"]] == [
        22,
        16,
        206,
        16,
        206,
        600,
        601,
    ]

    # kinds of vehicles
    for uav_type, number in (("fixed-wing", 1), ("ground", 10), ("land-air", 20)):
        write_mission(tmp_path / "m.plan", mission, uav_type=uav_type)
        content = json.loads((tmp_path / "m.plan").read_text(encoding="utf-8"))
        assert content["mission"]["vehicleType"] == number

    with pytest.raises(ValueError, match="uav_type: 'boat', expected one of multirotor"):
        write_mission(tmp_path / "m.plan", mission, uav_type="boat")
