# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The endpoint against a ground station of pymavlink: reports, actions, and refusals."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pytest
from mavlink_station import NAN, ORIGIN, Station, of_type
from optional_parts import late_module

from rfly_mavlink.dialect.wire import Reader, Writer, signing_key
from rfly_mavlink.stations.flight_modes import FlightMode
from rfly_missions.mission.items import MissionItem, MissionMode

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

ARM = 400
TAKEOFF = 22
LAND = 21
RETURN = 20
REPOSITION = 192
SET_MODE = 176
CUSTOM = 1
"""MAV_MODE_FLAG_CUSTOM_MODE_ENABLED."""


@pytest.fixture
def station():
    return Station()


def test_what_a_vehicle_reports():
    """A metre north at 47° is 1/111170.9 of a degree, one east 1/76056.1 (WGS 84's radii)."""
    station = Station(at=(100.0, 200.0, -3.5), yaw=math.pi / 2)
    station.run(2.0)

    # position
    position = station.last("GLOBAL_POSITION_INT")
    assert position.lat == pytest.approx(470000000 + 1e7 * 100.0 / 111_170.9, abs=1)
    assert position.lon == pytest.approx(80000000 + 1e7 * 200.0 / 76_056.1, abs=1)
    assert (position.alt, position.relative_alt) == (503_500, 3_500)
    assert position.hdg == 9000

    local = station.last("LOCAL_POSITION_NED")
    assert (local.x, local.y) == pytest.approx((100.0, 200.0), abs=0.01)

    assert station.last("ATTITUDE").yaw == pytest.approx(math.pi / 2, abs=1e-6)
    assert station.last("GPS_RAW_INT").fix_type == 3
    assert station.last("EXTENDED_SYS_STATE").landed_state == common.MAV_LANDED_STATE_IN_AIR
    assert station.last("VFR_HUD").alt == pytest.approx(503.5, abs=0.3)

    home = station.last("HOME_POSITION")
    assert home.altitude == 500_000  # it was discovered in the air: home is the ground below

    heartbeat = station.last("HEARTBEAT")
    assert heartbeat.type == common.MAV_TYPE_QUADROTOR
    assert heartbeat.base_mode & common.MAV_MODE_FLAG_SAFETY_ARMED
    assert len(of_type("ATTITUDE", station.heard)) == pytest.approx(41, abs=3)  # 20 Hz

    # battery: 4 · 4.2 V less R I
    status = station.last("SYS_STATUS")
    assert status.voltage_battery == pytest.approx(16_800 - 200 / 16.8 * 20, rel=0.01)
    battery = station.last("BATTERY_STATUS")
    assert battery.current_battery == pytest.approx(205 / 16.5 * 100, rel=0.02)


def test_armed_taken_off_sent_somewhere_and_landed(station):
    reposition = (REPOSITION, -1.0, 1.0, 0.0, NAN, 47.0001, 8.0, 510.0)
    assert station.command(*reposition) == "TEMPORARILY_REJECTED"

    # up
    assert station.command(ARM, 1.0) == "ACCEPTED"
    assert station.command(TAKEOFF, 0.0, 0.0, 0.0, NAN, NAN, NAN, 512.0) == "ACCEPTED"
    assert station.vehicle.flight.shown_mode is FlightMode.TAKEOFF
    station.run(15.0)
    assert station.last("GLOBAL_POSITION_INT").relative_alt == pytest.approx(12_000, abs=300)
    assert station.last("HEARTBEAT").custom_mode == 4 << 16 | 3 << 24  # PX4's hold

    # no force disarms it: it would fall
    assert station.command(ARM, 0.0, 21196.0) == "TEMPORARILY_REJECTED"

    # to a place
    assert station.command(*reposition) == "ACCEPTED"
    station.run(15.0)
    assert station.pilot.follower.position == pytest.approx((11.117, 0.0, -10.0), abs=0.3)

    # down
    assert station.command(LAND) == "ACCEPTED"
    assert station.vehicle.flight.shown_mode is FlightMode.LAND
    station.run(25.0)
    assert station.pilot.follower.position[2] == pytest.approx(0.0, abs=0.01)
    assert not station.last("HEARTBEAT").base_mode & common.MAV_MODE_FLAG_SAFETY_ARMED
    assert station.texts[-1].startswith("Disarmed")


def test_a_take_off_that_was_chosen_before_begins_with_arming(station):
    assert station.command(TAKEOFF) == "ACCEPTED"
    station.run(1.0)
    assert station.pilot.requests == []
    assert station.command(ARM, 1.0) == "ACCEPTED"
    station.run(10.0)
    takeoff_altitude = 10.0  # MIS_TAKEOFF_ALT's default
    assert station.pilot.follower.position[2] == pytest.approx(-takeoff_altitude, abs=0.3)


@pytest.mark.parametrize(
    ("between", "height"),
    [
        ((RETURN,), 25.0),  # denied: the take-off stays chosen
        ((SET_MODE, CUSTOM, 4.0, 2.0), 10.0),  # the mode TAKEOFF has no altitude of its own
        ((TAKEOFF, 0.0, 0.0, 0.0, NAN, NAN, NAN, 518.0), 18.0),
        ((TAKEOFF, 0.0, 0.0, 0.0, NAN, NAN, NAN, 15.0), 10.0),  # 485 m below: MIS_TAKEOFF_ALT
    ],
)
def test_the_altitude_that_was_chosen_last_before_arming_counts(station, between, height):
    station.command(TAKEOFF, -1.0, 0.0, 0.0, NAN, NAN, NAN, 525.0)
    station.command(*between)
    station.command(ARM, 1.0)
    station.run(15.0)
    assert station.pilot.follower.position[2] == pytest.approx(-height, abs=0.05)


def test_a_vehicle_that_is_armed_and_stays_down_is_disarmed(station):
    station.command(ARM, 1.0)
    station.run(9.0)
    assert station.vehicle.flight.armed
    station.run(1.5)
    assert not station.vehicle.flight.armed


def test_a_vehicle_that_reports_its_mode_is_armed_if_its_controller_is(station):
    flight = station.vehicle.flight
    flight.situation.mode = "DISARMED"
    station.command(ARM, 1.0)
    station.run(2.5)
    assert station.pilot.requests == ["arm"] * 3  # the first may have been lost

    flight.situation.mode = "DRIVE"
    station.run(20.0)
    assert flight.armed  # it drives, and is not disarmed because it stays down
    assert len(station.pilot.requests) == 3

    flight.situation.mode = "DISARMED"  # by another client
    station.run(0.1)
    assert not flight.armed
    flight.situation.mode = "DRIVE"
    station.run(2.1)
    assert flight.armed

    assert station.command(ARM, 0.0) == "ACCEPTED"
    assert station.pilot.requests[-1] == "disarm"


def test_a_fail_safe_of_the_controllers_is_told_once_and_shown_while_it_lasts(station):
    flight = station.vehicle.flight
    flight.situation.mode = "DRIVE"
    station.command(ARM, 1.0)
    modes = ("TAKEOFF", "ABORT", "DRIVE", "ABORT", "")
    for mode, state, told in zip(modes, (4, 5, 4, 5, 4), (0, 1, 1, 2, 2), strict=True):
        flight.situation.mode = mode
        station.run(2.1)
        heartbeats = [m for m in station.heard if m.get_type() == "HEARTBEAT"]
        assert heartbeats[-1].system_status == state  # MAV_STATE_ACTIVE, MAV_STATE_CRITICAL
        assert sum(text.startswith("ABORT: ") for text in station.texts) == told


@pytest.mark.parametrize(("mode", "shown"), [("LAND", FlightMode.LAND), ("DRIVE", FlightMode.HOLD)])
def test_a_landing_is_shown_until_the_controller_has_ended_it(station, mode, shown):
    """The vehicle may still roll on its wheels, or its estimate may wander."""
    flight = station.vehicle.flight
    flight.situation.mode = "DRIVE"
    station.command(ARM, 1.0)
    station.run(1.0)
    flight.situation.shown = MissionMode.LAND
    flight.situation.mode = mode
    flight.pose.velocity[:] = (0.4, 0.0, 0.0)
    assert flight.shown_mode is shown


def test_a_refusal_to_arm_names_what_the_position_waits_for(station):
    """A cause comes before its effect: without mission_node or a map no pose may come."""
    flight = station.vehicle.flight
    situation = flight.situation
    origin = situation.origin
    pose = flight.pose
    flight.pose = type(pose)()
    situation.origin = None
    situation.silence = math.inf
    station.pilot.refusal = "mission_node does not answer"

    def reason():
        assert station.command(ARM, 1.0) == "TEMPORARILY_REJECTED"
        return station.texts[-1].removeprefix("Preflight Fail: ")

    assert reason() == "mission_node does not answer"
    station.pilot.refusal = ""
    assert reason() == "no map, so no latitude and longitude"
    situation.origin = origin
    assert reason() == "no position: no pose has come yet"
    flight.pose = pose
    situation.silence = 5.0
    assert reason() == "no position: no pose for 5 s"
    situation.silence = 0.0
    assert station.command(ARM, 1.0) == "ACCEPTED"


def test_what_is_not_supported_says_so(station):
    # flight termination, servo, a gimbal, commands of others
    for number in (185, 183, 205, 1000, 42600, 65535):
        assert station.command(number, 1.0) == "UNSUPPORTED"

    assert station.command(512, 24.0) == "ACCEPTED"
    assert station.heard[-2].get_type() == "GPS_RAW_INT"
    assert station.command(512, 1e9) == "UNSUPPORTED"

    assert station.command(SET_MODE, CUSTOM, 1.0, 0.0) == "UNSUPPORTED"  # manual
    assert station.command(ARM, 0.5) == "DENIED"


def test_rates_can_be_changed(station):
    assert station.command(511, 30.0, -1.0) == "ACCEPTED"  # no ATTITUDE any more
    station.heard.clear()
    station.run(1.0)
    assert not of_type("ATTITUDE", station.heard)

    assert station.command(511, 30.0, 100_000.0) == "ACCEPTED"
    station.heard.clear()
    station.run(2.0)
    assert len(of_type("ATTITUDE", station.heard)) == pytest.approx(20, abs=2)

    assert station.command(511, 0.0, -1.0) == "DENIED"  # a vehicle without it would be lost
    assert station.command(510, 30.0) == "ACCEPTED"
    assert station.last("MESSAGE_INTERVAL").interval_us == 100_000


def test_set_points_in_offboard_and_without_them(station):
    def setpoint(mask=0xDF8, north=5.0):  # x, y, z alone
        fields = (0, 1, 1, 1, mask, north, -3.0, -8.0, 0, 0, 0, 0, 0, 0, 0.0, 0.0)
        station.send(common.MAVLink_set_position_target_local_ned_message(*fields))

    station.command(ARM, 1.0)
    station.command(TAKEOFF)
    station.run(10.0)

    setpoint(0xC3F)  # an acceleration: not flown here
    setpoint(north=1e30)
    assert station.command(SET_MODE, CUSTOM, 6.0, 0.0) == "TEMPORARILY_REJECTED"

    setpoint()
    assert station.command(SET_MODE, CUSTOM, 6.0, 0.0) == "ACCEPTED"
    for _ in range(80):
        setpoint()
        station.run(0.1)
    assert station.pilot.follower.position == pytest.approx((5.0, -3.0, -8.0), abs=0.3)
    assert station.last("HEARTBEAT").custom_mode == 6 << 16

    station.run(1.5)
    assert station.texts[-1] == "No set-points: OFFBOARD ends, holding"
    assert station.vehicle.flight.mode is FlightMode.HOLD


def test_velocities_in_offboard(station):
    """3 m/s east and 1 m/s down for 8 s, then 2 m/s to the right of its heading, then none."""

    def setpoint(vx, vy, vz, frame=1):
        fields = (0, 1, 1, frame, 0xDC7, 0, 0, 0, vx, vy, vz, 0, 0, 0, 0.0, 0.0)
        station.send(common.MAVLink_set_position_target_local_ned_message(*fields))

    def fly(seconds, *velocity, frame=1):
        for _ in range(round(10 * seconds)):
            setpoint(*velocity, frame=frame)
            station.run(0.1)

    station.command(ARM, 1.0)
    station.command(TAKEOFF, 0.0, 0.0, 0.0, NAN, NAN, NAN, 30.0 + ORIGIN[2])
    station.run(20.0)

    follower = station.pilot.follower
    setpoint(0.0, 3.0, 1.0)
    assert station.command(SET_MODE, CUSTOM, 6.0, 0.0) == "ACCEPTED"
    fly(3.0, 0.0, 3.0, 1.0)
    begin = np.array(follower.position)
    fly(5.0, 0.0, 3.0, 1.0)
    assert np.array(follower.position) - begin == pytest.approx((0.0, 15.0, 5.0), abs=0.5)
    assert follower.velocity == pytest.approx((0.0, 3.0, 1.0), abs=0.05)
    assert follower.euler[2] == pytest.approx(math.pi / 2, abs=0.01)  # its nose turns along its way

    setpoint(0.0, 2.0, 0.0, frame=8)
    station.run(0.3)
    fly(0.5, 0.0, 2.0, 0.0, frame=8)  # to the right: southwards, as long as it has not turned
    assert follower.velocity[0] < -1.0

    # it holds
    fly(3.0, 0.0, 0.0, 0.0)
    assert follower.velocity == pytest.approx((0.0, 0.0, 0.0), abs=0.1)

    fly(1.0, 0.0, 3.0, 0.0)
    station.run(1.5)
    assert station.texts[-1] == "No set-points: OFFBOARD ends, holding"
    station.run(4.0)
    assert follower.velocity == pytest.approx((0.0, 0.0, 0.0), abs=0.1)

    station.command(REPOSITION, -1.0, 1.0, 0.0, NAN, ORIGIN[0] + 0.002, ORIGIN[1], ORIGIN[2] + 30.0)
    station.run(8.0)
    assert math.hypot(*follower.velocity[:2]) == pytest.approx(8.0, abs=0.2)  # its own speed again


def test_attitudes_in_offboard(station):
    """Attitudes go to the flight controller; after the last one it holds where it is then."""
    nose_down = (math.cos(0.1), 0.0, math.sin(0.1), 0.0)

    def setpoint(mask=7, thrust=0.4, q=nose_down):
        station.send(
            common.MAVLink_set_attitude_target_message(0, 1, 1, mask, q, 0.0, 0.0, 0.0, thrust)
        )

    def offboard():
        return station.command(SET_MODE, CUSTOM, 6.0, 0.0)

    station.command(ARM, 1.0)
    station.command(TAKEOFF)
    station.run(10.0)

    setpoint()
    assert offboard() == "TEMPORARILY_REJECTED"  # no controller flies attitudes here

    station.pilot.turns = True
    setpoint(mask=7 | 128)  # rates alone
    setpoint(mask=7 | 64)  # without a thrust
    setpoint(thrust=1.5)
    setpoint(q=(0.0, 0.0, 0.0, 0.0))
    setpoint(thrust=NAN)
    assert offboard() == "TEMPORARILY_REJECTED"

    setpoint()
    assert offboard() == "ACCEPTED"
    station.run(0.5)
    x = pytest.approx(math.sin(0.1))
    w = pytest.approx(math.cos(0.1))
    assert station.pilot.requests[-9:] == [((0.0, x, 0.0, w), pytest.approx(0.4))] * 9

    # the end
    station.pilot.follower.position = (30.0, 0.0, -12.0)  # its place after them
    station.run(1.0)
    assert station.texts[-1] == "No set-points: OFFBOARD ends, holding"
    assert station.vehicle.flight.mode is FlightMode.HOLD
    hold = station.pilot.requests[-1].items[0]
    assert hold.position == pytest.approx((30.0, 0.0, -12.0), abs=0.8)  # less its way since

    version = station.d.MAVLINK_MSG_ID_AUTOPILOT_VERSION
    assert station.command(512, float(version)) == "ACCEPTED"
    capable = common.MAV_PROTOCOL_CAPABILITY_SET_ATTITUDE_TARGET
    assert station.last("AUTOPILOT_VERSION").capabilities & capable


def test_the_sense_of_an_orbit_that_leaves_it_free_is_that_of_the_motion(station):
    """East of the centre and to the south is clockwise; places that are none are not sent."""
    flight = station.vehicle.flight
    station.command(ARM, 1.0)
    station.command(TAKEOFF)
    station.run(10.0)
    flight.situation.item = MissionItem.orbit((0.0, -20.0, -10.0), 20.0)
    message = station.d.MAVLINK_MSG_ID_ORBIT_EXECUTION_STATUS
    for v_north, radius in ((-5.0, 20.0), (5.0, -20.0)):
        flight.pose.velocity = np.array((v_north, 0.0, 0.0))
        assert station.command(512, float(message)) == "ACCEPTED"
        assert station.last("ORBIT_EXECUTION_STATUS").radius == radius

    for north, radius in ((1e12, 20.0), (0.0, 1e30)):
        flight.situation.item = MissionItem.orbit((north, 0.0, -10.0), radius)
        assert station.command(512, float(message)) == "TEMPORARILY_REJECTED"


def test_time_that_goes_back_makes_set_points_old(station):
    fields = (0, 1, 1, 1, 0xDF8, 5.0, -3.0, -8.0, 0, 0, 0, 0, 0, 0, 0.0, 0.0)
    station.send(common.MAVLink_set_position_target_local_ned_message(*fields))
    station.endpoint.tick(station.now, station.now - 50.0)  # the simulation was reset
    assert station.command(SET_MODE, CUSTOM, 6.0, 0.0) == "TEMPORARILY_REJECTED"
    assert station.texts[-1] == "OFFBOARD denied: no set-point for a second"


def test_several_vehicles_by_their_system_ids():
    station = Station(systems=(1, 7))
    assert station.command(ARM, 1.0, system=7) == "ACCEPTED"
    station.run(2.0)
    armed = {m.get_srcSystem(): m.base_mode & 128 for m in of_type("HEARTBEAT", station.heard)}
    assert armed == {1: 0, 7: 128}

    assert not station.send(common.MAVLink_command_long_message(3, 1, ARM, 0, 1.0, *[0.0] * 6))
    answers = station.send(common.MAVLink_param_request_list_message(0, 0))
    assert {m.get_srcSystem() for m in answers} == {1, 7}


def test_gains_of_the_controller_are_parameters_as_long_as_it_reports_them(station):
    gains = station.vehicle.gains
    requests = []

    def set_gain(name, value, done):
        requests.append((name, value))
        gains.values[name] = value if value < 3.0 else gains.values[name]
        done("" if value < 3.0 else "not this one")

    def written(value):
        return station.send(common.MAVLink_param_set_message(1, 1, b"RFLY_POS_GAIN", value, 9))

    assert written(2.0)[-1].error == common.MAV_PARAM_ERROR_DOES_NOT_EXIST
    gains.values["RFLY_POS_GAIN"] = 1.5
    gains.ranges["RFLY_POS_GAIN"] = (0.5, 4.0)
    (refused, same) = written(2.0)[-2:]  # no controller sets it yet
    assert (refused.get_type(), same.param_value) == ("PARAM_ERROR", 1.5)

    gains.ask = set_gain
    listed = of_type("PARAM_VALUE", station.send(common.MAVLink_param_request_list_message(1, 1)))
    assert [m.param_index for m in listed] == list(range(listed[0].param_count))
    assert (listed[-1].param_id, listed[-1].param_value) == ("RFLY_POS_GAIN", 1.5)

    assert written(2.0)[-1].param_value == 2.0
    assert written(0.25)[-1].param_value == 2.0  # out of its range: not requests for
    assert requests == [("RFLY_POS_GAIN", 2.0)]
    (*_, error, answer) = written(3.5)
    assert (error.get_type(), answer.param_value) == ("PARAM_ERROR", 2.0)
    assert station.texts[-1] == "RFLY_POS_GAIN refused: not this one"

    gains.forget()
    assert written(2.0)[-1].get_type() == "PARAM_ERROR"


def test_parameters(station):
    listed = of_type("PARAM_VALUE", station.send(common.MAVLink_param_request_list_message(1, 1)))
    assert [m.param_index for m in listed] == list(range(listed[0].param_count))
    values = {m.param_id: m.param_value for m in listed}
    assert values["MIS_TAKEOFF_ALT"] == 10.0

    def written(name, value, kind=9):
        return station.send(common.MAVLink_param_set_message(1, 1, name, value, kind))

    assert written(b"MIS_TAKEOFF_ALT", 20.0)[-1].param_value == 20.0
    *_, error, answer = written(b"MIS_TAKEOFF_ALT", 1e6)
    assert (error.get_type(), error.error) == (
        "PARAM_ERROR",
        common.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE,
    )
    assert answer.param_value == 20.0
    assert "0.5 to 1000" in station.texts[-1]
    assert written(b"MIS_TAKEOFF_ALT", NAN)[-1].param_value == 20.0
    assert written(b"MIS_TAKEOFF_ALT", 5.0, 6)[-1].param_value == 20.0  # as an integer

    assert written(b"NOBODYS", 1.0)[-1].error == common.MAV_PARAM_ERROR_DOES_NOT_EXIST
    (read,) = station.send(common.MAVLink_param_request_read_message(1, 1, b"", 0))
    assert (read.param_id, read.param_value) == ("MIS_TAKEOFF_ALT", 20.0)
    (none,) = station.send(common.MAVLink_param_request_read_message(1, 1, b"MIS_TAKEOFF_ALT", 999))
    assert none.get_type() == "PARAM_ERROR"

    station.command(ARM, 1.0)
    station.command(TAKEOFF)
    station.run(15.0)
    assert station.pilot.follower.position[2] == pytest.approx(-20.0, abs=0.3)


def test_only_stations_with_the_key_are_heard():
    key = signing_key("a passphrase")
    station = Station(key)
    station.run(1.0)
    assert station.last("HEARTBEAT").get_signed()

    arm = common.MAVLink_command_long_message(1, 1, ARM, 0, 1.0, *[0.0] * 6)
    for other in (None, signing_key("another one")):
        stranger = common.MAVLink(None, 245, 190)
        if other is not None:
            stranger.signing.secret_key = other
            stranger.signing.sign_outgoing = True
            stranger.signing.timestamp = 2**47  # does not make the right one's messages old
        station.endpoint.receive(bytes(arm.pack(stranger)), ("127.0.0.1", 1), station.now)

    assert not station.vehicle.flight.armed
    assert station.endpoint.peers == []
    assert station.endpoint.bad_data == 2

    right = common.MAVLink(None, 245, 190)
    right.signing.secret_key = key
    right.signing.sign_outgoing = True
    right.signing.timestamp = station.packer.signing.timestamp = 10**14
    once = bytes(arm.pack(right))
    station.endpoint.receive(once, ("127.0.0.1", 1), station.now)
    assert station.vehicle.flight.armed

    received = station.endpoint.received
    station.endpoint.receive(once, ("127.0.0.1", 1), station.now)  # recorded, and sent again
    assert station.endpoint.received == received


def test_the_first_signed_message_of_a_stream_may_be_a_minute_old():
    """MAVLink's rule for a stream that was not heard before, such as after a node's start."""
    now = 1.8e9
    key = signing_key("a passphrase")
    heartbeat = common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3)
    for age, taken in ((59.0, 1), (61.0, 0)):
        datagram = Writer(245, key, clock=lambda age=age: now - age).write(heartbeat)
        assert len(Reader(key, clock=lambda: now).read(datagram)) == taken


def test_a_station_that_speaks_gets_messages_until_it_is_silent(station):
    heartbeat = bytes(common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3).pack(station.packer))
    for port in range(1, 31):
        station.endpoint.receive(heartbeat, ("127.0.0.1", port), station.now)
    assert len(station.endpoint.peers) == 16

    station.endpoint.tick(station.now + 1.0, station.now)
    assert {address for address, _ in station.endpoint.datagrams()} >= {
        ("127.0.0.1", 1),
        ("127.0.0.1", 14550),
    }
    station.endpoint.tick(station.now + 16.0, station.now)
    assert station.endpoint.peers == []


def test_a_station_is_served_within_two_seconds_after_a_flood_from_many_addresses(station):
    heartbeat = bytes(common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3).pack(station.packer))
    endpoint = station.endpoint
    old = ("127.0.0.1", 1)
    new = ("127.0.0.2", 1)
    start = station.now

    def tick(now):
        endpoint.tick(now, now)
        return {address for address, _ in endpoint.datagrams()}

    # a station was there before the flood, another one comes during it; both speak every second
    endpoint.receive(heartbeat, old, start)
    for step in range(1, 501):
        now = start + 0.01 * step
        for port in range(1000, 1060):
            endpoint.receive(heartbeat, ("127.0.0.1", port), now)
        if step % 100 == 0:
            endpoint.receive(heartbeat, old, now)
        if step % 100 == 50:
            endpoint.receive(heartbeat, new, now)
        tick(now)
        assert old in endpoint.peers
    assert new not in endpoint.peers

    # the flood is over
    served = []
    for step in range(501, 701):
        now = start + 0.01 * step
        for station_address, phase in ((old, 0), (new, 50)):
            if step % 100 == phase:
                endpoint.receive(heartbeat, station_address, now)
        if new in tick(now):
            served.append(step)
    assert served
    assert served[0] <= 700
    assert {old, new} <= set(endpoint.peers)
    assert len(endpoint.peers) <= 16


def test_whatever_comes_nothing_dies_and_nothing_flies_without_arming(station):
    """Messages of every kind but arming with any content and a right check, and garbage."""
    from pymavlink.generator import mavcrc as crc

    rng = random.Random(5)
    kinds = list(common.mavlink_map.items())
    likely = [
        common.mavlink_map[number]
        for number in (4, 11, 39, 41, 43, 44, 45, 47, 51, 73, 75, 76, 84, 86, 20, 21, 23, 110, 111)
    ]
    for k in range(6000):
        number, kind = rng.choice(kinds)
        if k % 2:
            kind = rng.choice(likely)
            number = kind.id

        payload = bytearray(
            rng.randbytes(rng.choice((min(kind.unpacker.size, 255), rng.randrange(256))))
        )
        for name in ("target_system", "target_component"):
            if name in kind.ordered_fieldnames:  # for this vehicle
                position = struct.calcsize(
                    "<" + kind.native_format.decode()[1 : 1 + kind.ordered_fieldnames.index(name)]
                )
                payload[position : position + 1] = b"\1"

        if number in (75, 76):
            payload[28:30] = struct.pack("<H", rng.choice([c for c in range(3000) if c != ARM]))

        head = struct.pack(
            "<BBBBBBBHB", 0xFD, len(payload), 0, 0, k & 255, 245, 190, number & 0xFFFF, number >> 16
        )
        check = crc.x25crc(head[1:] + bytes(payload) + bytes((kind.crc_extra,))).crc
        data = head + bytes(payload) + struct.pack("<H", check)

        data = data[: rng.randrange(len(data))] if rng.random() < 0.05 else data
        data = rng.randbytes(rng.randrange(300)) if rng.random() < 0.05 else data
        station.endpoint.receive(data, ("127.0.0.1", rng.randrange(1, 10)), station.now)
        if k % 50 == 0:
            station.run(0.05)

    assert station.endpoint.received > 4000
    assert station.pilot.requests == []
    assert not station.vehicle.flight.armed

    station.run(1.0)
    assert station.command(ARM, 1.0) == "ACCEPTED"


ODD_COMMANDS = [TAKEOFF, LAND, RETURN, REPOSITION, SET_MODE, 34, 178, 193, 300, 224, 511, 510, 512]
ODD_COMMANDS += [17, 410]


def test_armed_too_nothing_dies_of_odd_commands(station):
    rng = random.Random(6)
    odd = (NAN, math.inf, -math.inf, 0.0, 1.0, -1.0, 3e38, 1e-30, 47.0, 8.0, 510.0, 2.0**31)
    station.command(ARM, 1.0)
    station.command(TAKEOFF)
    for _ in range(1500):
        number = rng.choice(ODD_COMMANDS)
        station.command(number, *(rng.choice(odd) for _ in range(7)))

        frame = rng.randrange(12)
        x = rng.choice((0, 470000000, 2**31 - 1, -(2**31)))
        y = rng.choice((0, 80000000, 2**31 - 1))
        params = [rng.choice(odd) for _ in range(4)]

        message = common.MAVLink_command_int_message(
            1, 1, frame, number, 0, 0, *params, x, y, rng.choice(odd)
        )
        assert of_type("COMMAND_ACK", station.send(message))
        station.run(0.05)

    assert all(map(math.isfinite, station.pilot.follower.position))
    assert station.vehicle.flight.situation.origin == ORIGIN


@pytest.mark.parametrize(
    "home", [(1e300, 0.0, 0.0), (0.0, 0.0, -1e300), (NAN, 0.0, 0.0), (math.inf, math.inf, 0.0)]
)
def test_a_home_of_nowhere_does_not_stop_telemetry(station, home):
    """Odd maps and poses make such a home: a float ends at 3.4e38, an integer has no NaN."""
    station.vehicle.flight.home = home
    station.heard.clear()
    station.run(1.5)
    assert of_type("ATTITUDE", station.heard)
    assert of_type("GLOBAL_POSITION_INT", station.heard)

    station.vehicle.flight.home = (0.0, 0.0, 0.0)
    station.run(1.5)
    assert station.last("HOME_POSITION").altitude == 500_000


def test_a_velocity_of_nan_does_not_stop_telemetry(station):
    """The velocity between places 1e308 m apart is infinite less infinite."""
    station.run(0.5)
    flight = station.vehicle.flight
    telemetry = station.vehicle._telemetry

    flight.pose.velocity[:] = NAN
    assert telemetry.message("GPS_RAW_INT").cog == 0
    for name in ("GLOBAL_POSITION_INT", "LOCAL_POSITION_NED", "VFR_HUD"):
        assert telemetry.message(name).pack(station.packer)
