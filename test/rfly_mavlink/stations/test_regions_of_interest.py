# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Regions of interest by commands and by missions: where the nose and the gimbal look."""

from __future__ import annotations

import math

import pytest
from mavlink_station import NAN, ORIGIN, SimulatedPilot, Station

from rfly_mavlink.stations.mission_rows import MissionRow

pytestmark = pytest.mark.needs("pymavlink")

ARM = 400
TAKEOFF = 22
LOCATION = 195
NONE = 197
OLD = 201
PITCHYAW = 1000
PAUSE = 193
START = 300
EAST = ORIGIN[1] + 30.0 / 76_056.1
"""Longitude 30 m east of the vehicle: WGS 84's radius at 47°."""


@pytest.fixture
def station():
    station_in_the_air = Station()
    station_in_the_air.pilot.gimbal = 0.0
    assert station_in_the_air.command(ARM, 1.0) == "ACCEPTED"
    station_in_the_air.command(TAKEOFF, 0, 0, 0, NAN, NAN, NAN, ORIGIN[2] + 30.0)
    station_in_the_air.run(20.0)
    return station_in_the_air


def heading(station):
    return math.degrees(station.pilot.follower.euler[2])


def pitch(station):
    return math.degrees(station.pilot.gimbal)


@pytest.mark.parametrize("command", [(LOCATION, 0.0), (OLD, 3.0)])
def test_nose_and_gimbal_turn_to_a_place_and_back(station, command):
    """30 m east and 30 m below: 90°, and 45° down; and 20 m below the vehicle: 33.7° down."""
    assert station.command(*command, 0, 0, 0, ORIGIN[0], EAST, ORIGIN[2]) == "ACCEPTED"
    station.run(5.0)
    assert heading(station) == pytest.approx(90.0, abs=0.5)
    assert pitch(station) == pytest.approx(-45.0, abs=0.5)

    assert station.command(*command, 0, 0, 0, ORIGIN[0], EAST, ORIGIN[2] + 10.0) == "ACCEPTED"
    station.run(5.0)
    assert pitch(station) == pytest.approx(-33.69, abs=0.5)

    sent = len(station.pilot.requests)
    station.run(2.0)
    assert len(station.pilot.requests) == sent  # at rest nothing is sent

    assert station.command(NONE) == "ACCEPTED"
    station.run(1.0)
    assert pitch(station) == 0.0


def test_a_place_without_an_altitude_lies_on_the_ground(station):
    station.vehicle.flight.situation.altitude = lambda latitude, longitude: 510.0
    assert station.command(LOCATION, 0, 0, 0, 0, ORIGIN[0], EAST, NAN) == "ACCEPTED"
    station.run(5.0)
    assert pitch(station) == pytest.approx(-33.69, abs=0.5)


def test_an_angle_that_is_requested_for_the_gimbal_counts_until_the_next_region(station):
    station.command(LOCATION, 0, 0, 0, 0, ORIGIN[0], EAST, ORIGIN[2])
    station.run(2.0)
    assert station.command(PITCHYAW, -10.0) == "ACCEPTED"
    station.run(2.0)
    assert pitch(station) == pytest.approx(-10.0, abs=1e-6)
    assert heading(station) == pytest.approx(90.0, abs=0.5)

    station.command(NONE)
    station.run(0.5)
    assert pitch(station) == pytest.approx(-10.0, abs=1e-6)
    station.command(LOCATION, 0, 0, 0, 0, ORIGIN[0], EAST, ORIGIN[2])
    station.run(2.0)
    assert pitch(station) == pytest.approx(-45.0, abs=0.5)


def test_a_mission_looks_at_its_places_and_a_held_one_at_the_stations(station):
    """East of the way to the north, until an item ends it."""
    rows = [
        MissionRow(0, LOCATION, 1, (0.0, 0.0, 0.0, 0.0), 470_000_000, round(EAST * 1e7), 500.0),
        MissionRow(0, 16, 1, (0.0, 1.0, 0.0, NAN), 470_017_990, 80_000_000, 530.0),  # 200 m
        MissionRow(2, NONE, 1, (0.0, 0.0, 0.0, 0.0), 0, 0, 0.0),
        MissionRow(0, 16, 1, (0.0, 1.0, 0.0, NAN), 470_035_980, 80_000_000, 530.0),
    ]
    station.vehicle.flight.take_mission(rows)
    assert station.command(START, 0.0) == "ACCEPTED"
    station.run(5.0)
    north = station.pilot.follower.position[0]
    assert heading(station) == pytest.approx(90.0 + math.degrees(math.atan2(north, 30.0)), abs=1.0)
    assert pitch(station) == pytest.approx(
        -math.degrees(math.atan2(30, math.hypot(north, 30))), abs=1.0
    )

    # held: another place, straight ahead
    assert station.command(PAUSE, 0.0) == "ACCEPTED"
    station.run(5.0)
    assert station.command(LOCATION, 0, 0, 0, 0, ORIGIN[0] + 0.01, ORIGIN[1], 530.0) == "ACCEPTED"
    station.run(5.0)
    assert heading(station) == pytest.approx(0.0, abs=0.5)
    assert math.hypot(*station.pilot.follower.velocity) < 0.01

    # the station's place counts until the mission's item ends it
    assert station.command(PAUSE, 1.0) == "ACCEPTED"
    station.run(5.0)
    assert station.vehicle.flight.roi == pytest.approx((1111.5, 0.0, -30.0), abs=0.3)
    station.run(60.0)
    assert station.vehicle.flight.mission.finished
    assert station.vehicle.flight.roi is None
    assert pitch(station) == 0.0


def test_what_is_no_region_is_refused(station):
    assert station.command(OLD, 1.0) == "UNSUPPORTED"  # the next way-point
    assert station.command(LOCATION, 0, 0, 0, 0, 0.0, 0.0, 500.0) == "DENIED"
    assert station.command(LOCATION, 0, 0, 0, 0, 57.0, 8.0, 500.0) == "DENIED"

    station.endpoint.add(3, "fixed-wing", SimulatedPilot((0.0, 0.0, 0.0), 0.0))
    assert station.command(NONE, system=3) == "UNSUPPORTED"
    station.vehicle.flight.situation.silence = 5.0
    assert station.command(NONE) == "TEMPORARILY_REJECTED"


def test_on_the_ground_only_the_gimbal_turns_and_disarming_forgets_the_place():
    station = Station()
    station.pilot.gimbal = 0.0
    station.vehicle.flight.situation.origin = ORIGIN
    assert station.command(LOCATION, 0, 0, 0, 0, ORIGIN[0] + 0.001, ORIGIN[1], 600.0) == "ACCEPTED"
    station.run(1.0)
    assert pitch(station) == pytest.approx(30.0)  # its limit; 42° lead there
    assert [r for r in station.pilot.requests if not isinstance(r, float)] == []

    station.command(ARM, 1.0)
    station.command(ARM, 0.0)
    assert station.vehicle.flight.roi is None
