# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions, fences and rally points as rows, over the wire and back."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optional_parts import late_module

from rfly_common.geodesy import geodetic_to_ned, ned_to_geodetic
from rfly_mavlink.stations.mission_rows import MissionRow, Refused, plan_of
from rfly_mavlink.stations.plan_rows import (
    fence_of_rows,
    plan_id,
    rally_of_rows,
    rows_of_fence,
    rows_of_mission,
    rows_of_rally,
    with_ids,
)
from rfly_missions.mission.geofence import FenceCircle, FencePolygon, Geofence
from rfly_missions.mission.items import FlownMission, MissionItem
from rfly_missions.mission.mavlink_items import ImportSettings

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

ORIGIN = (47.0, 8.0, 500.0)
HOME = (40.0, -25.0, -12.0)
"""NED, m."""
HOME_PLACE = (47.0 + 40.0 / 111_170.9, 8.0 - 25.0 / 76_056.1, 512.0)
SETTINGS = ImportSettings(default_radius=2.0, loiter_radius=25.0)

metres = st.floats(-2000.0, 2000.0)
places = st.tuples(metres, metres, st.floats(-300.0, 300.0))
angles = st.one_of(st.just(math.nan), st.floats(-3.1, 3.1))
radii = st.floats(0.5, 500.0)
items_anywhere = st.one_of(
    st.builds(MissionItem.takeoff, places),
    st.builds(MissionItem.waypoint, places, angles, radii),
    st.builds(
        MissionItem.orbit,
        places,
        radii,
        st.sampled_from([-1, 1]),
        st.one_of(st.floats(0.0, 40.0), st.just(math.inf)),
    ),
    st.builds(MissionItem.land, places),
    st.just(MissionItem.return_to_launch()),
    st.builds(lambda v: MissionItem.mavlink(178, (0, 0, 0), (1.0, v, 0.0, 0.0)), radii),
    st.builds(lambda p, s: MissionItem.mavlink(19, p, (s, 0.0, 30.0, 0.0)), places, radii),
)


def over_the_wire(rows):
    """Return rows as they come out of MISSION_ITEM_INT messages that were packed and parsed."""
    packer = common.MAVLink(None, 1, 1)
    parser = common.MAVLink(None)
    back = []
    for seq, row in enumerate(rows):
        fields = (row.frame, row.command, 0, row.autocontinue, *row.params, row.x, row.y, row.z, 0)
        message = common.MAVLink_mission_item_int_message(1, 1, seq, *fields)
        back += map(MissionRow.of_message, parser.parse_buffer(message.pack(packer)))
    return back


def same(item, expected):
    assert (item.mode, item.command) == (expected.mode, expected.command)
    assert item.params == pytest.approx(expected.params, rel=1e-6, abs=1e-6, nan_ok=True)
    if expected.command != 178:  # it leads nowhere: it stands where the item before it does
        assert item.position == pytest.approx(expected.position, abs=0.02)


@settings(deadline=None)
@given(st.lists(items_anywhere, min_size=1, max_size=12))
def test_any_mission_comes_back_as_it_is_flown(items):
    """Positions are rounded to 1.1 cm on the way, other numbers to single precision."""
    shown = rows_of_mission(FlownMission(tuple(items), HOME), ORIGIN, 25.0, "multirotor")
    back = plan_of(over_the_wire(shown.rows), HOME_PLACE, ORIGIN, SETTINGS, "multirotor")

    assert len(back.items) == len(items)
    for item, expected in zip(back.items, items, strict=True):
        same(item, expected)
    assert shown.plan.items == tuple(items)


def test_rows_by_hand():
    """Latitude and longitude by the radii of WGS 84 at 47°; the jump to item 2 leads to row 1."""
    items = (
        MissionItem.takeoff((40.0, -25.0, -32.0)),
        MissionItem.waypoint((140.0, -25.0, -42.0), math.pi / 2, 3.0, p3=7.0),
        MissionItem.orbit((140.0, 75.0, -42.0), 30.0, -1, 2.5),
        MissionItem.mavlink(177, (140.0, 75.0, -42.0), (2.0, 3.0, 0.0, 0.0)),
        MissionItem.return_to_launch(),
    )
    mission = FlownMission(items, HOME, hold_at_waypoints=True)
    rows = rows_of_mission(mission, ORIGIN, 25.0, "multirotor").rows

    assert [(row.frame, row.command) for row in rows] == [
        (6, 22),
        (6, 16),
        (6, 18),
        (2, 177),
        (2, 20),
    ]
    assert (rows[1].x, rows[1].y) == pytest.approx(
        (470000000 + 1e7 * 140.0 / 111_170.9, 80000000 - 1e7 * 25.0 / 76_056.1), abs=3.0
    )
    assert [row.z for row in rows[:3]] == pytest.approx([20.0, 30.0, 30.0])  # above home
    assert rows[1].params == pytest.approx((7.0, 3.0, 0.0, 90.0))
    assert rows[2].params == pytest.approx((2.5, 0.0, -30.0, 0.0))
    assert rows[3].params == (1.0, 3.0, 0.0, 0.0)


def test_a_way_point_lies_at_its_degrees_whatever_the_home():
    """Home lies 5 km east of the map's origin: its north is 5000 / 6.389e6 · tan 47° off the map's.

    That is 2.52 m at the way-point, 3 km north of home. The map is tested against PROJ.
    """
    home = tuple(ned_to_geodetic((0.0, 5000.0, 0.0), ORIGIN).tolist())
    row = MissionRow(6, 16, 1, (0.0, 2.0, 0.0, math.nan), 470_269_840, round(home[1] * 1e7), 30.0)
    plan = plan_of([row], home, ORIGIN, SETTINGS, "multirotor")

    north, east, _ = geodetic_to_ned((47.026984, row.y * 1e-7, 500.0), ORIGIN).tolist()
    assert plan.items[0].position == pytest.approx((north, east, -30.0), abs=1e-3)
    assert east == pytest.approx(5000.0 - 2.52, abs=0.02)

    # over the wire and back
    mission = FlownMission(plan.items, (0.0, 5000.0, 0.0))
    (back,) = rows_of_mission(mission, ORIGIN, 25.0, "multirotor").rows
    assert (back.x, back.y) == pytest.approx((row.x, row.y), abs=1)


def test_a_stay_is_flown_as_a_delay_and_jumps_still_lead_to_their_items():
    items = (
        MissionItem.waypoint((0.0, 0.0, -10.0), p3=4.0),
        MissionItem.waypoint((9.0, 0.0, -10.0)),
        MissionItem.mavlink(177, (9.0, 0.0, -10.0), (2.0, 1.0, 0.0, 0.0)),
    )
    mission = FlownMission(items, HOME, hold_at_waypoints=True)
    plan = rows_of_mission(mission, ORIGIN, 25.0, "multirotor").plan
    assert [item.command for item in plan.items] == [0, 93, 0, 177]
    assert plan.items[3].params[0] == 3.0
    assert plan.seqs == (0, 0, 1, 2)


def test_what_rows_cannot_hold_is_told():
    items = (
        MissionItem.custom((10.0, 20.0, -5.0), (1.0, 2.0, 3.0, 4.0)),
        MissionItem.waypoint((0.0, 0.0, -10.0), p3=4.0),
    )
    shown = rows_of_mission(FlownMission(items, HOME, repeat=True), ORIGIN, 25.0, "multirotor")
    assert (shown.rows[0].command, shown.rows[0].params) == (31_000, (1.0, 2.0, 3.0, 4.0))
    assert shown.rows[1].params[0] == 0.0  # no stay
    assert [note.split(":")[0] for note in shown.notes[:3]] == [
        "it begins again after its last item",
        "item 1",
        "item 2 (WAYPOINT)",
    ]


@pytest.mark.parametrize(
    "item",
    [
        MissionItem.takeoff((1e12, 0.0, -5.0)),
        MissionItem.waypoint((0.0, 0.0, -5.0), 0.0, 1e4, 1e300),
        MissionItem.mavlink(5001, (0.0, 0.0, 0.0), (3.0, 0.0, 0.0, 0.0)),
        MissionItem.mavlink(178, (0.0, 0.0, 0.0), (1.0, 1e39, 0.0, 0.0)),
    ],
)
def test_missions_without_rows_are_refused(item):
    mission = FlownMission((item,), HOME, hold_at_waypoints=True)
    with pytest.raises(Refused) as refusal:
        rows_of_mission(mission, ORIGIN, 25.0, "multirotor")
    assert "item 1" in str(refusal.value)


# --- fences and rally points

corners = st.lists(st.tuples(metres, metres), min_size=3, max_size=8)
areas = st.one_of(
    st.builds(lambda c, i: FencePolygon(np.array(c), i), corners, st.booleans()),
    st.builds(FenceCircle, st.tuples(metres, metres), radii, st.booleans()),
)


@settings(deadline=None)
@given(st.lists(areas, max_size=5), st.one_of(st.none(), places), st.lists(places, max_size=5))
def test_any_fence_and_rally_points_come_back(fence_areas, breach_return, rally):
    fence = Geofence(tuple(fence_areas), breach_return)
    rows = over_the_wire(rows_of_fence(fence, ORIGIN))
    back = fence_of_rows(rows, ORIGIN, HOME_PLACE)

    assert [area.inclusion for area in back.areas] == [area.inclusion for area in fence.areas]
    for area, expected in zip(back.areas, fence.areas, strict=True):
        assert type(area) is type(expected)
        if isinstance(expected, FenceCircle):
            assert area.center == pytest.approx(expected.center, abs=0.02)
            assert area.radius == pytest.approx(expected.radius, rel=1e-6)
        else:
            assert area.vertices == pytest.approx(expected.vertices, abs=0.02)
    if breach_return is not None:
        assert back.breach_return == pytest.approx(breach_return, abs=0.02)

    points = rally_of_rows(
        over_the_wire(rows_of_rally(rally, ORIGIN, HOME_PLACE)), ORIGIN, HOME_PLACE
    )
    assert np.array(points) == pytest.approx(np.array(rally), abs=0.02)


def row(command, first=0.0, frame=0, x=470000000, y=80000000, z=0.0):
    return MissionRow(frame, command, 1, (first, 0.0, 0.0, 0.0), x, y, z)


@pytest.mark.parametrize(
    ("rows", "result", "text"),
    [
        ([row(5001, 3.0)] * 2, "INVALID", "corner 2 of 3"),
        ([row(5001, 3.0), row(5001, 4.0)], "INVALID", "item 1: expected corner 2 of 3"),
        ([row(5001, 3.0), row(5003, 9.0)], "INVALID", "item 1: expected corner 2"),
        ([row(5002, 2.0)] * 2, "INVALID", "item 0: 2 corners"),
        ([row(5001, math.nan)] * 3, "INVALID", "item 0: nan corners"),
        ([row(5003, 0.0)], "INVALID", "item 0: radius 0"),
        ([row(5004, math.inf)], "INVALID", "item 0: radius inf"),
        ([row(16)], "UNSUPPORTED", "item 0: command 16"),
        ([row(5003, 9.0, x=910000000)], "INVALID", "item 0: no such place"),
        ([row(5003, 9.0, x=2**31 - 1)], "INVALID", "item 0: no such place"),
        ([row(5003, 9.0, frame=1)], "UNSUPPORTED_FRAME", "item 0: frame 1"),
        ([row(5000, z=math.inf)], "INVALID", "item 0: altitude inf"),
    ],
)
def test_what_is_no_fence_is_refused(rows, result, text):
    with pytest.raises(Refused) as refusal:
        fence_of_rows(rows, ORIGIN, HOME_PLACE)
    assert refusal.value.result == f"MAV_MISSION_{result}"
    assert text in str(refusal.value)


def test_what_is_no_rally_point_is_refused():
    with pytest.raises(Refused, match="item 1: command 5003"):
        rally_of_rows([row(5100), row(5003, 9.0)], ORIGIN, HOME_PLACE)


# --- ids


def test_ids_differ_whenever_rows_do():
    rows = [row(16, x=470000000 + k) for k in range(200)]
    ids = {plan_id(rows[:k]) for k in range(201)}
    assert len(ids) == 201
    assert plan_id(()) == 0
    assert plan_id(rows) == plan_id(list(rows))


def test_ids_are_on_the_wire_where_common_xml_has_them():
    """MISSION_CURRENT: 6 bytes as before, then three numbers of 32 bits; readers skip them."""
    message = common.MAVLink_mission_current_message(3, 5, 2, 1)
    message = with_ids(message, mission_id=0x01020304, fence_id=7, rally_points_id=0xFFFFFFFF)
    data = message.pack(common.MAVLink(None, 1, 1))
    payload = bytes(data)[10:-2]
    assert struct.unpack("<HHBBIII", payload) == (3, 5, 2, 1, 0x01020304, 7, 0xFFFFFFFF)

    (read,) = common.MAVLink(None).parse_buffer(data)
    assert (read.seq, read.total, read.mission_state) == (3, 5, 2)
