# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fences and rally points of ground stations: up, down, and in flight."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from mavlink_station import NAN, Station, of_type
from optional_parts import late_module

from rfly_missions.mission.geofence import FenceCircle, FlightAreaPlan, Geofence

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

FENCE = 1
RALLY = 2
ARM = 400
TAKEOFF = 22
REPOSITION = 192
RETURN = 20
NORTH_DEG = 1.0 / 111_170.9
"""Degrees of latitude in a metre at 47°, by WGS 84."""
EAST_DEG = 1.0 / 76_056.1


@pytest.fixture
def station():
    return Station()


def place(north, east):
    """Return latitude and longitude of a place about the map's origin, 1e-7 degrees."""
    return round(1e7 * (47.0 + north * NORTH_DEG)), round(1e7 * (8.0 + east * EAST_DEG))


def circle(radius, north=0.0, east=0.0, inclusion=True):
    return (0, 5003 if inclusion else 5004, radius, *place(north, east), 0.0)


def corner(north, east, count=4.0, inclusion=True):
    return (0, 5001 if inclusion else 5002, count, *place(north, east), 0.0)


def rally_point(north, east, height=0.0):
    return (3, 5100, 0.0, *place(north, east), height)


def upload(station, mission_type, rows):
    """Upload rows; return the name of the result."""
    answers = station.send(common.MAVLink_mission_count_message(1, 1, len(rows), mission_type))
    for seq, (frame, command, first, x, y, z) in enumerate(rows):
        (asked,) = of_type("MISSION_REQUEST_INT", answers)
        assert (asked.seq, asked.mission_type) == (seq, mission_type)
        fields = (1, 1, seq, frame, command, 0, 1, first, 0.0, 0.0, 0.0, x, y, z, mission_type)
        answers = station.send(common.MAVLink_mission_item_int_message(*fields))
    (ack,) = of_type("MISSION_ACK", answers)
    assert ack.mission_type == mission_type
    return common.enums["MAV_MISSION_RESULT"][ack.type].name.removeprefix("MAV_MISSION_")


def downloaded(station, mission_type):
    """Return the rows that a vehicle sends back."""
    request = common.MAVLink_mission_request_list_message(1, 1, mission_type)
    (announced,) = station.send(request)
    assert announced.mission_type == mission_type
    rows = []
    for seq in range(announced.count):
        request = common.MAVLink_mission_request_int_message(1, 1, seq, mission_type)
        (row,) = station.send(request)
        assert (row.seq, row.mission_type) == (seq, mission_type)
        rows.append((row.frame, row.command, row.param1, row.x, row.y, row.z))
    return rows


def fly_to(station, north, east, height=10.0):
    """Take off, and go to a place; return the name of the result."""
    station.command(ARM, 1.0)
    station.command(TAKEOFF, 0.0, 0.0, 0.0, NAN, NAN, NAN, 500.0 + height)
    station.run(8.0)
    return reposition(station, north, east, height)


def reposition(station, north, east, height=10.0):
    x, y = place(north, east)
    return station.command(REPOSITION, -1.0, 1.0, 0.0, NAN, x * 1e-7, y * 1e-7, 500.0 + height)


SQUARE = [corner(-50, -50), corner(50, -50), corner(50, 50), corner(-50, 50)]


def test_come_down_as_they_went_up(station):
    fence = [*SQUARE, circle(5.5, 20, 10, inclusion=False), (0, 5000, 0.0, *place(1, 2), 520.0)]
    rally = [rally_point(10, 10, 30.0), rally_point(-20, 30)]
    assert upload(station, FENCE, fence) == "ACCEPTED"
    assert upload(station, RALLY, rally) == "ACCEPTED"
    assert downloaded(station, FENCE) == fence
    assert downloaded(station, RALLY) == rally
    assert downloaded(station, 0) == []

    # what mission_node gets
    area = station.pilot.areas[-1]
    square, hole = area.fence.areas
    expected = np.array([[-50, -50], [50, -50], [50, 50], [-50, 50]])
    assert square.vertices == pytest.approx(expected, abs=0.02)
    assert (square.inclusion, hole.inclusion, hole.radius) == (True, False, 5.5)
    assert area.fence.breach_return == pytest.approx((1.0, 2.0, -20.0), abs=0.02)
    assert np.array(area.rally) == pytest.approx(np.array([[10, 10, -30], [-20, 30, 0]]), abs=0.02)


def test_each_plan_has_an_id_of_its_own_and_is_cleared_alone(station):
    def ids():
        station.run(1.1)
        payload = bytes(station.last("MISSION_CURRENT").get_msgbuf())[10:-2]
        return struct.unpack("<III", payload.ljust(18, b"\0")[6:])

    assert ids() == (0, 0, 0)
    upload(station, FENCE, SQUARE)
    upload(station, RALLY, [rally_point(0, 0)])
    mission_id, fence_id, rally_id = ids()
    assert mission_id == 0
    assert len({0, fence_id, rally_id}) == 3

    station.send(common.MAVLink_mission_clear_all_message(1, 1, FENCE))
    assert ids() == (0, 0, rally_id)
    (ack,) = station.send(common.MAVLink_mission_clear_all_message(1, 1, 255))
    assert (ack.type, ack.mission_type) == (common.MAV_MISSION_ACCEPTED, 255)
    assert ids() == (0, 0, 0)
    assert station.pilot.areas[-1].rally == ()


def test_refused_rows_change_nothing(station):
    assert upload(station, FENCE, SQUARE) == "ACCEPTED"
    assert upload(station, FENCE, SQUARE[:3]) == "INVALID"
    assert "Fence refused: item 2: corner 3 of 4" in station.texts[-1]
    assert upload(station, RALLY, [rally_point(80, 0)]) == "INVALID"
    assert "breaches area 1 of the fence" in station.texts[-1]
    beyond = (0, 5000, 0.0, *place(70, 0), 510.0)
    assert upload(station, FENCE, [*SQUARE, beyond]) == "INVALID"
    assert "the place to return to after a breach breaches" in station.texts[-1]
    assert downloaded(station, FENCE) == SQUARE
    assert downloaded(station, RALLY) == []


def test_what_leaves_the_fence_is_denied(station):
    upload(station, FENCE, [circle(40.0)])
    assert fly_to(station, 60.0, 0.0) == "DENIED"
    assert "breaches area 1 of the fence (inclusion circle)" in station.texts[-1]
    assert reposition(station, 30.0, 0.0) == "ACCEPTED"
    station.run(10.0)
    assert station.pilot.follower.position[0] == pytest.approx(30.0, abs=0.5)


def test_it_is_not_armed_outside(station):
    upload(station, FENCE, [circle(20.0, 40.0, 0.0)])
    assert station.command(ARM, 1.0) == "TEMPORARILY_REJECTED"
    assert "the vehicle breaches area 1" in station.texts[-1]


def test_a_fence_that_is_uploaded_in_flight_is_watched(station):
    def health():
        """Return whether SYS_STATUS shows a fence, uses it, and keeps to it."""
        status = station.last("SYS_STATUS")
        kinds = ("present", "enabled", "health")
        sensors = [getattr(status, f"onboard_control_sensors_{kind}") for kind in kinds]
        return [bool(each & common.MAV_SYS_STATUS_GEOFENCE) for each in sensors]

    assert fly_to(station, 80.0, 0.0) == "ACCEPTED"
    station.run(3.0)
    assert health() == [True, False, True]
    upload(station, FENCE, [circle(60.0)])
    station.run(1.1)
    assert health() == [True, True, True]
    status = station.last("FENCE_STATUS")
    assert (status.breach_status, status.breach_count, status.breach_type) == (0, 0, 0)

    while station.vehicle.flight.area.breach == "":
        station.run(0.2)
    station.run(1.1)
    status = station.last("FENCE_STATUS")
    assert (status.breach_status, status.breach_count) == (1, 1)
    assert health() == [True, True, False]
    assert status.breach_type == common.FENCE_BREACH_BOUNDARY
    assert status.breach_time == pytest.approx(1000.0 * station.now, abs=2500)

    # it holds, then it returns home
    station.run(40.0)
    assert station.pilot.follower.position[:2] == pytest.approx((0.0, 0.0), abs=1.0)
    assert station.last("FENCE_STATUS").breach_status == 0


def test_a_return_leads_to_the_nearest_rally_point(station):
    upload(station, RALLY, [rally_point(45, 5), rally_point(-90, 0)])
    fly_to(station, 60.0, 0.0)
    station.run(15.0)
    assert station.command(RETURN) == "ACCEPTED"
    station.run(40.0)
    north, east, down = station.pilot.follower.position
    assert (north, east) == pytest.approx((45.0, 5.0), abs=1.0)
    assert down > -1.0  # landed there


def test_a_landing_is_never_denied_for_the_fence(station):
    """Home lies outside of a fence that is uploaded in flight."""
    fly_to(station, 60.0, 0.0)
    station.run(15.0)
    upload(station, FENCE, [circle(30.0, 60.0, 0.0)])
    assert reposition(station, 70.0, 0.0) == "DENIED"  # home breaches it
    assert station.command(21, *[NAN] * 7) == "ACCEPTED"
    station.run(20.0)
    assert station.pilot.follower.position == pytest.approx((60.0, 0.0, 0.0), abs=0.7)


def test_what_mission_node_watches_is_shown(station):
    """The fence of a mission file, and an upload that mission_node confirms."""
    upload(station, FENCE, SQUARE)
    confirmed = station.pilot.areas[-1]
    area = station.vehicle.flight.area

    hole = FenceCircle((20.0, 10.0), 5.0, False)
    area.take_reported(
        FlightAreaPlan(Geofence((*confirmed.fence.areas, hole)), ((10.0, 0.0, -5.0),))
    )
    rows = downloaded(station, FENCE)
    assert [row[1] for row in rows] == [5001, 5001, 5001, 5001, 5004]
    assert rows[4][2:5] == pytest.approx((5.0, *place(20, 10)), abs=2)
    ((frame, command, _, x, y, height),) = downloaded(station, RALLY)
    assert (frame, command, height) == (6, 5100, 5.0)
    assert (x, y) == pytest.approx(place(10, 0), abs=2)

    area.take_reported(confirmed)
    assert downloaded(station, FENCE) == SQUARE
