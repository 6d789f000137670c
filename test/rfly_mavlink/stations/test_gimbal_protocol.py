# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The gimbal of a vehicle against a ground station of pymavlink: signs, limits, rates, control."""

from __future__ import annotations

import math
import random

import pytest
from mavlink_station import NAN, Station, of_type
from optional_parts import late_module

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

PITCHYAW = 1000
CONFIGURE = 1001
MOUNT = 205
REQUEST = 512
TARGETING = 2
"""MAV_MOUNT_MODE_MAVLINK_TARGETING."""
INF = math.inf


@pytest.fixture
def station():
    station_with_gimbal = Station()
    station_with_gimbal.pilot.gimbal = 0.0
    return station_with_gimbal


def quaternion(roll, pitch, yaw):
    """Return w x y z of angles in degrees, by three rotations one after the other."""

    def times(a, b):
        w, x, y, z = a
        p, q, r, s = b
        return (
            w * p - x * q - y * r - z * s,
            w * q + x * p + y * s - z * r,
            w * r - x * s + y * p + z * q,
            w * s + x * r - y * q + z * p,
        )

    halves = [math.radians(angle) / 2 for angle in (roll, pitch, yaw)]
    c = [math.cos(half) for half in halves]
    s = [math.sin(half) for half in halves]
    return times(times((c[2], 0, 0, s[2]), (c[1], 0, s[1], 0)), (c[0], s[0], 0, 0))


def set_attitude(q, *rates, flags=12, device=1):
    return common.MAVLink_gimbal_manager_set_attitude_message(1, 1, flags, device, q, *rates)


def test_without_a_gimbal_none_is_reported():
    station = Station()
    for command in (
        (PITCHYAW, -45.0),
        (CONFIGURE, 245.0, 190.0),
        (MOUNT, -45.0),
        (REQUEST, 280.0),
        (REQUEST, 283.0),
    ):
        assert station.command(*command) == "UNSUPPORTED"

    assert station.command(511, 281.0, 100_000.0) == "UNSUPPORTED"  # no interval either

    station.send(set_attitude(quaternion(0, -45, 0), NAN, NAN, NAN))
    station.run(1.0)
    assert not [message for message in station.heard if message.get_type().startswith("GIMBAL")]
    assert station.pilot.requests == []


def test_what_the_manager_reports(station):
    assert station.command(REQUEST, 280.0) == "ACCEPTED"
    information = station.last("GIMBAL_MANAGER_INFORMATION")
    assert information.gimbal_device_id == 1
    # it pitches, its pitch follows the vehicle, and it looks at places
    assert information.cap_flags == 32 + 64 + 131_072
    limits = (
        information.roll_min,
        information.roll_max,
        information.pitch_min,
        information.pitch_max,
        information.yaw_min,
        information.yaw_max,
    )
    assert limits == pytest.approx((0.0, 0.0, -1.570796, 0.523599, 0.0, 0.0), abs=1e-6)

    assert station.command(REQUEST, 283.0) == "ACCEPTED"
    device = station.last("GIMBAL_DEVICE_INFORMATION")
    assert (device.gimbal_device_id, device.cap_flags) == (1, 96)

    station.heard.clear()
    station.run(1.0)
    assert len(of_type("GIMBAL_MANAGER_STATUS", station.heard)) == pytest.approx(5, abs=1)


@pytest.mark.parametrize(
    ("params", "pitch"),
    [((-45.0,), -0.785398), ((20.0, 0.0), 0.349066), ((-120.0,), -1.570796), ((3e38,), 0.523599)],
)
def test_an_angle_is_clipped_and_up_is_positive(station, params, pitch):
    assert station.command(PITCHYAW, *params) == "ACCEPTED"
    assert station.pilot.requests == [pytest.approx(pitch, abs=1e-6)]


def test_the_attitude_is_that_of_the_joint_on_the_tilted_vehicle():
    """10° nose up and 45° down against the body is 35° below the horizon; yaw is reported apart."""
    station = Station(yaw=math.pi / 2)
    station.pilot.gimbal = math.radians(-45.0)
    station.pilot.follower.euler = (0.0, math.radians(10.0), math.pi / 2)
    station.vehicle.flight.pose.take(
        station.now + 0.01, (0.0, 0.0, 0.0), (0.0, math.radians(10.0), math.pi / 2)
    )

    assert station.command(REQUEST, 285.0) == "ACCEPTED"
    status = station.last("GIMBAL_DEVICE_ATTITUDE_STATUS")
    assert status.q == pytest.approx(quaternion(0, -35, 0), abs=1e-6)
    assert status.delta_yaw == pytest.approx(math.pi / 2)
    assert (status.flags, status.gimbal_device_id) == (32, 1)  # yaw in the vehicle's frame, no lock
    assert math.isnan(status.angular_velocity_y)


def test_rates_are_integrated_to_the_limit_and_stopped(station):
    assert station.command(PITCHYAW, NAN, NAN, -10.0, 0.0) == "ACCEPTED"
    station.run(3.0)
    assert station.pilot.gimbal == pytest.approx(math.radians(-30.0), abs=math.radians(0.6))

    assert station.command(PITCHYAW, NAN, NAN, 0.0) == "ACCEPTED"
    rests = station.pilot.gimbal
    station.run(1.0)
    assert station.pilot.gimbal == rests

    assert station.command(PITCHYAW, NAN, NAN, 3e38) == "ACCEPTED"
    station.run(0.2)
    assert station.pilot.gimbal == pytest.approx(math.radians(30.0))

    # to an angle at a rate of either sign, from where another client has turned it
    station.pilot.gimbal = 0.0
    assert station.command(PITCHYAW, -20.0, NAN, 10.0) == "ACCEPTED"
    station.run(1.0)
    assert station.pilot.gimbal == pytest.approx(math.radians(-10.0), abs=math.radians(0.6))
    station.run(2.0)
    assert station.pilot.gimbal == pytest.approx(math.radians(-20.0))

    sent = len(station.pilot.requests)
    station.run(1.0)
    assert len(station.pilot.requests) == sent  # at rest nothing is sent


@pytest.mark.parametrize(
    "params",
    [
        (-45.0, 10.0),
        (-45.0, INF),
        (NAN, NAN, NAN, 5.0),
        (INF,),
        (NAN, NAN, -INF),
        (-45.0, 0.0, NAN, NAN, 16.0),  # north is where yaw is locked
        (NAN, NAN, NAN, NAN, 1.0),  # retract
        (-45.0, NAN, NAN, NAN, 0.0, NAN, 2.0),
    ],
)
def test_what_it_cannot_do_is_denied_with_a_text(station, params):
    assert station.command(PITCHYAW, *params) == "DENIED"
    assert "gimbal" in station.texts[-1] or "pitch" in station.texts[-1]
    station.run(1.0)
    assert station.pilot.requests == []


def test_streams_by_messages(station):
    def joint_after(message):
        assert of_type("COMMAND_ACK", station.send(message)) == []
        return station.pilot.gimbal

    assert joint_after(set_attitude(quaternion(0, -45, 0), NAN, NAN, NAN)) == pytest.approx(
        -0.785398, abs=1e-5
    )
    assert joint_after(set_attitude(quaternion(0, -90, 0), NAN, NAN, NAN)) == pytest.approx(
        -1.570796, abs=1e-5
    )

    negated = tuple(-part for part in quaternion(0, -30, 0))  # the same attitude
    assert joint_after(set_attitude(negated, NAN, NAN, NAN)) == pytest.approx(
        math.radians(-30.0), abs=1e-5
    )

    pitch_yaw = common.MAVLink_gimbal_manager_set_pitchyaw_message
    assert joint_after(pitch_yaw(1, 1, 0, 1, 0.25, NAN, NAN, NAN)) == pytest.approx(0.25)
    hostile = [
        pitch_yaw(1, 1, 0, 1, 0.1, 0.5, NAN, NAN),
        pitch_yaw(1, 1, 0, 1, INF, NAN, NAN, NAN),
        pitch_yaw(1, 1, 0, 9, 0.1, NAN, NAN, NAN),
        set_attitude(quaternion(0, -45, 20), NAN, NAN, NAN),
        set_attitude(quaternion(20, -45, 0), NAN, NAN, NAN),
        set_attitude((0.0, 0.0, 0.0, 0.0), NAN, NAN, NAN),
        set_attitude((INF, 0.0, INF, 0.0), NAN, NAN, NAN),
        set_attitude((1.0, NAN, 0.0, 0.0), NAN, NAN, INF),
    ]

    assert [joint_after(message) for message in hostile] == [pytest.approx(0.25)] * len(hostile)

    station.send(set_attitude((NAN,) * 4, 0.0, -0.5, 0.0))
    station.run(1.0)
    assert station.pilot.gimbal == pytest.approx(-0.25, abs=0.03)


def test_rates_by_command_int_as_mavsdk_sends_them(station):
    """Flags are the command's x and the device its z: they are no place."""
    rates = (NAN, NAN, -10.0, 0.0)
    message = common.MAVLink_command_int_message(1, 1, 3, PITCHYAW, 0, 0, *rates, 12, 0, 1.0)
    assert of_type("COMMAND_ACK", station.send(message))[-1].result == common.MAV_RESULT_ACCEPTED

    message = common.MAVLink_command_int_message(1, 1, 3, PITCHYAW, 0, 0, *rates, 16, 0, 1.0)
    assert of_type("COMMAND_ACK", station.send(message))[-1].result == common.MAV_RESULT_DENIED


def test_the_old_mount_command(station):
    assert station.command(MOUNT, -45.0, 0.0, 0.0, 0.0, 0.0, 0.0, TARGETING) == "ACCEPTED"
    assert station.pilot.requests == [pytest.approx(-0.785398, abs=1e-6)]

    assert station.command(MOUNT, -45.0, 0.0, 90.0, 0.0, 0.0, 0.0, TARGETING) == "DENIED"
    assert station.command(MOUNT, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0) == "DENIED"  # neutral
    assert len(station.pilot.requests) == 1


def test_who_is_in_control(station):
    """The station that asks is 245/190."""

    def control():
        assert station.command(REQUEST, 281.0) == "ACCEPTED"
        status = station.last("GIMBAL_MANAGER_STATUS")
        ids = status.primary_control_sysid, status.primary_control_compid
        return *ids, status.secondary_control_sysid, status.secondary_control_compid

    assert control() == (0, 0, 0, 0)
    assert station.command(CONFIGURE, 245.0, 190.0, -1.0, -1.0, NAN, NAN, 1.0) == "ACCEPTED"
    assert control() == (245, 190, 0, 0)

    assert station.command(PITCHYAW, -10.0) == "ACCEPTED"
    assert station.command(CONFIGURE, 12.0, 34.0, 0.0, 0.0) == "ACCEPTED"
    assert control() == (12, 34, 0, 0)
    assert station.command(PITCHYAW, -45.0) == "DENIED"
    assert station.texts[-1] == "Gimbal denied: another station controls it"

    assert station.command(CONFIGURE, -3.0, -3.0, -2.0, -2.0) == "ACCEPTED"  # not ours to give back
    assert control() == (12, 34, 245, 190)
    assert station.command(PITCHYAW, -20.0) == "ACCEPTED"

    assert station.command(CONFIGURE, 300.0, 1.0) == "DENIED"
    assert station.command(CONFIGURE, 1.0, INF) == "DENIED"
    assert station.command(CONFIGURE, 245.0, 190.0, 0.0, 0.0, 0.0, 0.0, 7.0) == "DENIED"

    assert station.command(CONFIGURE, -2.0, -2.0, -3.0, -3.0) == "ACCEPTED"
    assert control() == (245, 190, 0, 0)
    assert station.command(CONFIGURE, -3.0, -3.0) == "ACCEPTED"
    assert control() == (0, 0, 0, 0)


def test_no_request_makes_a_pitch_beyond_the_limits(station):
    rng = random.Random(7)
    odd = (NAN, INF, -INF, 0.0, 1.0, -1.0, -80.0, 3e38, -3e38, 1e-30)
    accepted = 0
    for k in range(400):
        rate = rng.choice(odd)
        few = (NAN, 0.0, rng.choice(odd))
        params = (
            rng.choice(odd),
            rng.choice(few),
            rate,
            rng.choice(few),
            rng.choice((NAN, 0.0, 12.0, 2.0**31, -INF)),
        )

        accepted += station.command(PITCHYAW, *params) == "ACCEPTED"
        station.send(
            set_attitude([rng.choice(odd) for _ in range(4)], *(rng.choice(odd) for _ in range(3)))
        )
        if k % 10 == 0:
            station.run(0.1)

    assert accepted > 50
    assert len(set(station.pilot.requests)) > 10
    assert all(-math.pi / 2 <= pitch <= math.pi / 6 for pitch in station.pilot.requests)
