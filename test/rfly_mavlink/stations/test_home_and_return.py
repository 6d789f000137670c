# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""DO_SET_HOME and RTL_RETURN_ALT against a ground station of pymavlink."""

from __future__ import annotations

import math

import pytest
from mavlink_station import NAN, ORIGIN, Station
from optional_parts import late_module

from rfly_mavlink.stations.mission_rows import MissionRow
from rfly_mavlink.stations.plan_rows import return_way
from rfly_missions.mission.items import MissionMode

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

ARM = 400
TAKEOFF = 22
RETURN = 20
REPOSITION = 192
SET_HOME = 179
HERE = 1.0
PAUSE = 193
"""DO_PAUSE_CONTINUE."""
START = 300
RELATIVE = 3
"""MAV_FRAME_GLOBAL_RELATIVE_ALT."""


@pytest.fixture
def station():
    return Station()


def in_the_air(station, height):
    assert station.command(ARM, 1.0) == "ACCEPTED"
    assert station.command(TAKEOFF, 0, 0, 0, NAN, NAN, NAN, ORIGIN[2] + height) == "ACCEPTED"
    station.run(15.0)


def set_home(station, north, east, altitude):
    """A metre north at 47° is 1/111170.9 of a degree, one east 1/76056.1 (WGS 84's radii)."""
    place = ORIGIN[0] + north / 111_170.9, ORIGIN[1] + east / 76_056.1
    return station.command(SET_HOME, 0.0, 0, 0, NAN, *place, altitude)


def run_until(station, ready):
    """Let time pass until `ready()`, three minutes at most."""
    for _ in range(1800):
        if ready():
            return
        station.run(0.1)
    raise AssertionError(f"in vain; {station.pilot.follower.position}, {station.texts}")


def relative_altitude(station):
    station.run(0.2)
    return station.last("GLOBAL_POSITION_INT").relative_alt / 1000.0


def test_a_home_that_was_set_outlives_arming_until_it_is_the_vehicles_again(station):
    assert set_home(station, 40.0, -30.0, 490.0) == "ACCEPTED"
    assert relative_altitude(station) == pytest.approx(10.0)

    assert station.command(ARM, 1.0) == "ACCEPTED"
    assert station.vehicle.flight.home == pytest.approx((40.0, -30.0, 10.0), abs=0.3)
    assert not station.vehicle.flight.in_air  # ten metres above that home, and on the ground

    assert station.command(SET_HOME, HERE) == "ACCEPTED"
    assert station.vehicle.flight.home == (0.0, 0.0, 0.0)
    assert relative_altitude(station) == 0.0


def test_a_home_without_an_altitude_lies_on_the_ground(station):
    station.vehicle.flight.situation.altitude = lambda latitude, longitude: 507.0
    assert set_home(station, 40.0, -30.0, NAN) == "ACCEPTED"
    assert station.vehicle.flight.home == pytest.approx((40.0, -30.0, -7.0), abs=0.3)

    station.vehicle.flight.situation.altitude = lambda latitude, longitude: NAN  # off the map
    assert set_home(station, 40.0, -30.0, NAN) == "DENIED"


@pytest.mark.parametrize(
    ("params", "result"),
    [
        ((0.5,), "DENIED"),
        ((0.0, 0, 0, NAN, 0.0, 0.0, 500.0), "DENIED"),
        ((0.0, 0, 0, NAN, NAN, NAN, 500.0), "DENIED"),
        ((0.0, 0, 0, NAN, 91.0, 8.0, 500.0), "DENIED"),
        ((0.0, 0, 0, NAN, 57.0, 8.0, 500.0), "DENIED"),
        ((0.0, 0, 0, NAN, 47.0, 8.0, 1e6), "DENIED"),
    ],
)
def test_what_is_no_home_changes_nothing(station, params, result):
    assert station.command(SET_HOME, *params) == result
    assert station.vehicle.flight.home is None
    assert station.texts[-1]


def test_without_a_position_there_is_no_home(station):
    station.vehicle.flight.situation.silence = 5.0
    assert station.command(SET_HOME, HERE) == "TEMPORARILY_REJECTED"


@pytest.mark.exhaustive
def test_a_return_under_way_turns_to_the_new_home(station):
    in_the_air(station, 20.0)
    station.command(REPOSITION, -1.0, 1.0, 0.0, NAN, ORIGIN[0] + 0.001, ORIGIN[1], 520.0)
    station.run(25.0)
    assert station.command(RETURN) == "ACCEPTED"
    station.run(3.0)
    assert set_home(station, 60.0, 50.0, 500.0) == "ACCEPTED"
    station.run(60.0)
    assert station.pilot.follower.position == pytest.approx((60.0, 50.0, 0.0), abs=0.35)
    assert not station.vehicle.flight.armed


@pytest.mark.parametrize("paused", [False, True])
def test_a_mission_goes_on_with_the_new_home(station, paused):
    """The return leads there at the parameter's height; heights are relative to the new home."""
    up = (RELATIVE, 22, 1, (0.0, 0.0, 0.0, NAN), 0, 0, 20.0)
    way = (RELATIVE, 16, 1, (0.0, 1.0, 0.0, NAN), 470_008_995, 80_000_000, 20.0)  # 100 m north
    back = (2, 20, 1, (0.0, 0.0, 0.0, 0.0), 0, 0, 0.0)
    station.vehicle.flight.take_mission([MissionRow(*up), MissionRow(*way), MissionRow(*back)])
    station.vehicle.values.return_altitude = 50.0
    station.command(ARM, 1.0)
    assert station.command(START, 0.0) == "ACCEPTED"
    station.run(10.0)

    if paused:
        assert station.command(PAUSE, 0.0) == "ACCEPTED"
    assert set_home(station, 0.0, 80.0, 510.0) == "ACCEPTED"
    if paused:
        station.run(5.0)
        assert station.command(PAUSE, 1.0) == "ACCEPTED"
    follower = station.pilot.follower
    # before the return begins
    run_until(station, lambda: follower.position[2] < -29.5 and follower.position[0] > 95.0)
    assert follower.position[:2] == pytest.approx((100.0, 0.0), abs=5.0)

    heights = []
    run_until(
        station,
        lambda: heights.append(-follower.position[2]) or station.vehicle.flight.mission.finished,
    )
    assert max(heights) == pytest.approx(60.0, abs=0.3)
    station.run(10.0)
    assert follower.position[:2] == pytest.approx((0.0, 80.0), abs=0.35)


def test_a_take_off_without_a_place_begins_where_the_vehicle_is(station):
    set_home(station, 40.0, -30.0, 500.0)
    station.vehicle.flight.take_mission([MissionRow(3, 22, 1, (0.0, 0.0, 0.0, NAN), 0, 0, 20.0)])
    station.command(ARM, 1.0)
    station.command(START, 0.0)
    station.run(15.0)
    assert station.pilot.follower.position == pytest.approx((0.0, 0.0, -20.0), abs=1.05)


@pytest.mark.parametrize(
    ("start", "uav_type", "kinds"),
    [
        ((100.0, 0.0, -40.0), "multirotor", []),  # high enough
        ((1.0, 0.0, -5.0), "multirotor", []),  # over home
        ((100.0, 0.0, -5.0), "ground", []),
        ((100.0, 0.0, -5.0), "multirotor", [MissionMode.WAYPOINT, MissionMode.WAYPOINT]),
        ((100.0, 0.0, -5.0), "fixed-wing", [MissionMode.CUSTOM, MissionMode.WAYPOINT]),
    ],
)
def test_the_way_before_a_return(start, uav_type, kinds):
    items = return_way(start, (0.0, 0.0, -1.0), 30.0, uav_type)
    assert [item.mode for item in items] == kinds
    if items:
        assert items[0].position.tolist() == [100.0, 0.0, -31.0]
        assert items[1].position.tolist() == [0.0, 0.0, -31.0]
        assert math.isnan(items[1].params[0])


def test_the_way_before_a_return_leads_to_the_nearest_rally_point():
    """The point has the height above home; a point above home would make home the nearest."""
    rally = [(90.0, 10.0, -2.0), (-50.0, 0.0, 0.0)]
    _, above = return_way((100.0, 0.0, -5.0), (0.0, 0.0, -1.0), 30.0, "multirotor", rally)
    assert above.position.tolist() == [90.0, 10.0, -31.0]
