# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions written to files and read again; what MAVLink cannot express is refused."""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mission_plans import (
    FAR,
    FENCE,
    HOME,
    SURVEY,
    TAKEOFF,
    plan,
    reader_in,
    same,
    simple,
)

from rfly_common.errors import MissionFileError
from rfly_missions.mission.files import Mission, read_mission, write_mission
from rfly_missions.mission.items import MissionItem, MissionMode

NAN = math.nan
INF = math.inf

coordinate = st.floats(-5000, 5000).map(lambda v: round(v, 3))
number = st.floats(-1000, 1000, allow_nan=False) | st.just(NAN)
places = st.tuples(coordinate, coordinate, coordinate)
yaws = st.floats(-3.14, 3.14) | st.just(NAN)


@pytest.fixture
def read(tmp_path):
    return reader_in(tmp_path)


def test_rally_points_and_the_place_after_a_breach_there_and_back(read, tmp_path):
    """The places lie relative to home: 0.001° north is 111.1708 m."""
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
    for uav_type, vehicle in (("fixed-wing", 1), ("ground", 10), ("land-air", 20)):
        write_mission(tmp_path / "m.plan", mission, uav_type=uav_type)
        content = json.loads((tmp_path / "m.plan").read_text(encoding="utf-8"))
        assert content["mission"]["vehicleType"] == vehicle

    with pytest.raises(ValueError, match="uav_type: 'boat', expected one of multirotor"):
        write_mission(tmp_path / "m.plan", mission, uav_type="boat")
