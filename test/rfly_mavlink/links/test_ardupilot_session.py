# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ArduPilot's frames as bytes written by hand, and its session through a real socket."""

from __future__ import annotations

import struct

import pytest
from ardupilot_double import ArdupilotDouble
from node_harness import wait_until

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import PacketError
from rfly_mavlink.links.ardupilot_session import (
    ArdupilotSession,
    DriveInterlock,
    ServoFrame,
    decode_servos,
    servo_commands,
)
from rfly_mavlink.links.mavlink_hil import ControlMapping

QUAD = VehicleParameters.load("scale_quad")
SIXTEEN = bytes.fromhex("1a48 9001 02000000".replace(" ", "")) + struct.pack(
    "<16H", *range(1000, 1016)
)


def test_frames_of_16_and_32_outputs():
    assert decode_servos(SIXTEEN) == ServoFrame(400, 2, tuple(range(1000, 1016)))
    wide = struct.pack("<HHI32H", 29569, 250, 7, *[1500] * 32)
    assert decode_servos(wide) == ServoFrame(250, 7, (1500,) * 32)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "magic"),
        (b"\x1a", "magic"),
        (struct.pack("<4f", 0.1, 0.2, 0.3, 0.4), "magic"),  # four floats, as other firmware sends
        (SIXTEEN[:-1], "length"),
        (SIXTEEN + bytes(1), "length"),
        (struct.pack("<H", 29569) + SIXTEEN[2:], "length"),
    ],
)
def test_anything_else_is_no_frame(data, reason):
    with pytest.raises(PacketError) as error:
        decode_servos(data)
    assert error.value.reason == reason


def test_pulses_become_commands():
    pulses = [1000, 1500, 2000, 2100, 0, 0, 0, 0, 1250, 1750, 1500, 0, 0, 0, 0, 0]
    rotors, wheels = servo_commands(2.0, pulses, ControlMapping.default(4), QUAD)
    assert rotors.value.tolist() == [0.0, 175.0, 350.0, 350.0]
    assert wheels.steering_angle == pytest.approx(-0.25)  # of 0.5 rad
    assert wheels.drive_torque.tolist() == [6.0] * 4  # of 12 N m
    assert wheels.brake_torque.tolist() == [7.5] * 4  # of 15 N m

    # another mapping, without drive and brake
    other = ControlMapping((3, 2, 1, 0), steering=-1, drive=-1, brake=-1)
    rotors, wheels = servo_commands(2.0, pulses, other, QUAD)
    assert rotors.value.tolist() == [350.0, 350.0, 175.0, 0.0]
    assert wheels.brake_torque.tolist() == [15.0] * 4  # no drive: braked

    # a disarmed Rover goes on to steer
    mapping = ControlMapping.default(4)
    _, wheels = servo_commands(2.0, [0] * 8 + [1750, 0] + [0] * 6, mapping, QUAD)
    assert wheels.brake_torque.tolist() == [15.0] * 4

    # armed and neutral: a quarter, as by a car's speed controller
    _, wheels = servo_commands(2.0, [0] * 8 + [1750, 1500] + [0] * 6, mapping, QUAD)
    assert wheels.brake_torque.tolist() == [3.75] * 4

    # driven, or braked by another output
    for drive, brake in ((1501, 0), (1500, 1000)):
        pulses = [0] * 8 + [1750, drive, brake] + [0] * 5
        _, wheels = servo_commands(2.0, pulses, mapping, QUAD)
        assert wheels.brake_torque.tolist() == [0.0] * 4


def test_a_drive_that_was_never_neutral_is_kept_off():
    """Rover's outputs are at 1000 µs, full reverse, before it has assigned them."""
    interlock = DriveInterlock(ControlMapping.default(4))

    def torques(number, drive):
        pulses = interlock.pulses(
            ServoFrame(400, number, (0,) * 8 + (1500, drive, 1000) + (0,) * 5)
        )
        wheels = servo_commands(2.0, pulses, ControlMapping.default(4), QUAD)[1]
        return wheels.drive_torque[0], wheels.brake_torque[0]

    held = (0.0, 15.0)
    assert [
        torques(0, 1000),
        torques(1, 1000),
        torques(2, 1700),
    ] == [held] * 3
    assert torques(3, 1500) == (0.0, 0.0)
    assert torques(4, 1000) == (-12.0, 0.0)
    assert torques(0, 1000) == held  # another start
    assert torques(1, 0) == (0.0, 0.0)  # disarmed: off
    assert torques(2, 2000) == (12.0, 0.0)


def test_starts_of_ardupilot_are_told_from_late_frames(monkeypatch):
    monkeypatch.setattr("rfly_mavlink.links.transport.PEER_SILENCE_S", 0.3)
    frames = []
    with ArdupilotSession("127.0.0.1", 0, "127.0.0.1") as session:
        one, other = (ArdupilotDouble(session.port, lambda _: []) for _ in range(2))

        def taken(double, number):
            double.send(double.datagram(number, [1000] * 16))

            def arrived():
                frames.extend(session.commands())
                return frames and frames[-1].number == number

            wait_until(arrived)

        try:
            taken(one, 500)
            one.send(one.datagram(401, [1000] * 16))  # late
            taken(one, 501)
            taken(one, 3)  # frames 0 to 2 of a new start were lost
            taken(one, 0)  # and once more

            assert [frame.number for frame in frames] == [500, 501, 3, 0]
            assert session.counters.items() >= {"late": 1, "starts": 3, "stranger": 0}.items()

            other.send(other.datagram(1, [1000] * 16))
            wait_until(lambda: session.counters["stranger"] == 1)
            assert session.rival.startswith("127.0.0.1:")
            assert session.rival != session.peer
            wait_until(lambda: session.gap > 0.4)

            # the first one is silent: the new start from another port is ArduPilot now
            taken(other, 7)
            session.reply(frames[-1], b"\n{}\n")
            assert other.receive(5.0) == {}
            assert session.counters["starts"] == 4
            assert session.counters["replaced_peers"] == 1
        finally:
            one.close()
            other.close()
