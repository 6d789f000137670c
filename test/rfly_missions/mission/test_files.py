# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission files against a table of commands worked by hand."""

import math

import numpy as np
import pytest
from mission_plans import (
    FAR,
    FENCE,
    HOME,
    LANDING,
    SURVEY,
    TAKEOFF,
    WPL,
    plan,
    reader_in,
    same,
    simple,
)

from rfly_common.errors import MissionFileError
from rfly_common.geodesy import geodetic_to_ned, ned_to_geodetic
from rfly_missions.mission.files import read_mission, write_mission
from rfly_missions.mission.geofence import FenceCircle, FencePolygon, Geofence
from rfly_missions.mission.items import MissionMode

NAN = math.nan
INF = math.inf


@pytest.fixture
def read(tmp_path):
    return reader_in(tmp_path)


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


def test_about_an_origin_on_another_meridian(read):
    """All places keep their degrees: 47.001, 8.0 of FAR, a fence's circle and a rally point."""
    origin = (46.9, 7.0, 480.0)
    content = plan(
        FAR,
        geoFence={"circles": [{"circle": {"center": [47.001, 8.0], "radius": 9.0}}]},
        rallyPoints={"points": [[47.001, 8.0, 10.0]], "version": 2},
    )
    read_in_place = read(content)
    mission = read_in_place.about(origin)
    place = geodetic_to_ned((47.001, 8.0, 530.0), origin)

    np.testing.assert_allclose(mission.items[0].position, place, atol=1e-5)
    np.testing.assert_allclose(mission.fence.areas[0].center, place[:2], atol=1e-5)
    np.testing.assert_allclose(mission.rally[0][:2], place[:2], atol=1e-5)
    back = mission.about(mission.home, origin)
    np.testing.assert_allclose(back.items[0].position, read_in_place.items[0].position, atol=1e-5)


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
    """The ends lie inside of a U."""
    u = FencePolygon(
        np.array([[0, 0], [10, 0], [10, 3], [2, 3], [2, 7], [10, 7], [10, 10], [0, 10]], float)
    )

    fence = Geofence((u,))
    assert fence.breach_of_line((9, 1), (9, 9)) == "area 1 of the fence (inclusion polygon)"
    assert fence.breach_of_line((1, 1), (1, 9)) == ""
    assert Geofence((FenceCircle((0, 0), 5.0),)).breach_of_line((0, -4.9), (0, 4.9)) == ""


def test_a_fence_of_version_1_is_one_polygon_to_stay_in(read):
    fence = read(
        plan(geoFence={"polygon": [[47, 8], [47.001, 8], [47.001, 8.001]], "version": 1})
    ).fence
    assert [type(area).__name__ for area in fence.areas] == ["FencePolygon"]
    assert fence.breach(60.0, 20.0) == ""
    assert fence.breach(20.0, 60.0)


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


def test_waypoints_whose_first_row_is_an_item(read):
    mission = read(WPL, first_row_is_home=False, home=(47.0, 8.0, 480.0))
    assert len(mission.items) == 4
    assert mission.items[0].position.tolist() == [0, 0, -20]
    assert mission.numbers == (0, 1, 2, 3)
    with pytest.raises(MissionFileError, match="home: not given"):
        read(WPL, first_row_is_home=False)
