# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages to an autopilot, decoded by pymavlink and compared with numbers worked out by hand."""

from __future__ import annotations

import math
import os
import pty
import random
import re
import socket
import struct
import sys
import time

import numpy as np
import pytest
from node_harness import PATIENCE, wait_until
from optional_parts import late_module

from rfly_amphibious import VehicleParameters
from rfly_amphibious.sensors.samples import (
    BarometerSamples,
    GpsSamples,
    ImuSamples,
    MagnetometerSamples,
    SensorSamples,
    WindSamples,
)
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import ConfigError
from rfly_common.imports import how_to_install
from rfly_mavlink.dialect.wire import load_dialect
from rfly_mavlink.links.mavlink_hil import ControlMapping, HilMessages, HilSession, accuracies
from rfly_mavlink.links.perception import Perception
from rfly_mavlink.links.transport import SerialTransport, TcpTransport

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

SCALE = VehicleParameters.load("scale")
ORIGIN = (47.0, 8.0, 488.0)


@pytest.fixture
def messages():
    return HilMessages(ORIGIN)


def decoded(message):
    """Return a message as an autopilot gets it."""
    return common.MAVLink(None).decode(bytearray(message.pack(common.MAVLink(None, 1, 51))))


def perception(orientation=(0, 0, 0, 1.0), position=(0.0, 0, 0), velocity=(0.0, 0, 0)):
    seen = Perception(SCALE)
    force = np.array([[1.0, 2, 9.80665]])
    rates = np.array([[0.1, 0.2, 0.3]])
    seen.sense(SensorSamples(imu=ImuSamples(np.zeros(1), force, rates, np.array([[0, 0, 0, 1.0]]))))
    rates = np.array((0.4, 0.5, 0.6))
    seen.pose = Estimate(
        0.0,
        np.array(position),
        np.array(orientation),
        np.array(velocity),
        rates,
    )
    return seen


def test_sensors_are_forward_right_down_in_mavlinks_units(messages):
    seen = perception()
    seen.sense(
        SensorSamples(
            magnetometer=MagnetometerSamples(np.zeros(1), np.array([[21.5e-6, 1e-6, -42.5e-6]]))
        )
    )
    pressure = 89_874.57  # standard atmosphere at 1000 m
    seen.sense(SensorSamples(barometer=BarometerSamples(np.zeros(1), np.array([pressure]))))

    got = decoded(messages.sensors(4000, seen))
    assert got.time_usec == 4000

    assert (got.xacc, got.yacc, got.zacc) == pytest.approx((1.0, -2.0, -9.80665), rel=1e-6)
    assert (got.xgyro, got.ygyro, got.zgyro) == pytest.approx((0.1, -0.2, -0.3), rel=1e-6)
    assert (got.xmag, got.ymag, got.zmag) == pytest.approx((0.215, -0.01, 0.425), rel=1e-6)

    assert got.abs_pressure == pytest.approx(898.7457, rel=1e-6)
    assert got.pressure_alt == pytest.approx(1000.0, abs=0.05)
    assert got.temperature == pytest.approx(8.5, abs=0.001)
    assert got.diff_pressure == 0.0
    assert got.fields_updated == 0x7 | 0x38 | 0x1C0 | 0x200 | 0x800 | 0x1000


def test_fields_updated_tells_of_what_is_new(messages):
    seen = perception()
    assert decoded(messages.sensors(0, seen, reset=True)).fields_updated == 0x8000003F
    seen.fresh = {"imu", "barometer"}
    got = decoded(messages.sensors(0, seen))
    assert got.fields_updated == 0x3F | 0x1A00
    assert (got.xmag, got.abs_pressure) == (0.0, 0.0)  # never measured; no NaN goes out
    seen.fresh = {"magnetometer"}
    assert decoded(messages.sensors(0, seen)).fields_updated == 0x1C0


def test_differential_pressure_of_the_wind_along_the_body(messages):
    """The differential pressure is that of the airspeed, negative from behind.

    To the north at 12 m/s, 3 m/s of wind from the south: ρ/2 V² = 0.6125 · 81 Pa.
    """
    north = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    seen = perception(north, velocity=(0.0, 12.0, 0.0))
    seen.sense(SensorSamples(wind=WindSamples(np.zeros(1), np.array([[5.0, 3.0, 1.0]]))))
    got = decoded(messages.sensors(0, seen))
    assert got.diff_pressure == pytest.approx(0.6125 * 81.0 / 100.0, rel=1e-5)
    assert got.fields_updated == 0x43F
    seen.pose = perception(north, velocity=(0.0, -6.0, 0.0)).pose
    seen.fresh.clear()
    got = decoded(messages.sensors(0, seen))
    assert got.diff_pressure == pytest.approx(-0.6125 * 81.0 / 100.0, rel=1e-5)
    assert got.fields_updated == 0


def test_gps_in_whole_units(messages):
    fixes = GpsSamples(
        np.zeros(1), np.array([[47.397742, -8.545594, 488.1234]]), np.array([[-3.0, 4.0, 0.5]])
    )
    got = decoded(messages.gps(100_000, fixes, 1.53, 3.06))
    assert (got.lat, got.lon, got.alt) == (473977420, -85455940, 488123)
    assert (got.eph, got.epv, got.vel) == (153, 306, 500)
    assert (got.vn, got.ve, got.vd) == (400, -300, -50)
    assert got.cog == 32313  # 323.13°: 4 north, 3 west
    assert (got.fix_type, got.satellites_visible, got.time_usec) == (3, 10, 100_000)


def test_what_does_not_fit_is_at_its_limit(messages):
    fixes = GpsSamples(
        np.zeros(1),
        np.array([[0.0, 0.0, 0.0]]),
        np.array([[1000.0, -1000.0, 0.0]]),
    )
    got = decoded(messages.gps(0, fixes, 1e6, 1e6))
    assert (got.vn, got.ve, got.eph, got.vel) == (-32768, 32767, 65534, 65534)

    far = decoded(
        messages.gps(0, fixes._replace(geodetic=np.array([[0.0, 1e3, -1e9]])), math.nan, math.inf)
    )
    expected = (2**31 - 1, -(2**31), 65535, 65535)
    assert (far.lon, far.alt, far.eph, far.epv) == expected
    assert decoded(messages.state(0, perception(position=(0.0, 0.0, 1e9)))).alt == 2**31 - 1

    seen = perception()
    seen.sense(SensorSamples(barometer=BarometerSamples(np.zeros(1), np.array([1e300]))))
    assert decoded(messages.sensors(0, seen)).abs_pressure == pytest.approx(3.4e38, rel=0.01)


@pytest.mark.parametrize(
    ("yaw_enu_deg", "expected"),
    [
        (90.0, (1.0, 0.0, 0.0, 0.0)),  # to the north: no turn at all
        (
            0.0,
            (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)),
        ),  # to the east: a quarter turn to the right
    ],
)
def test_attitude_north_east_down(messages, yaw_enu_deg, expected):
    half = math.radians(yaw_enu_deg) / 2
    seen = perception((0.0, 0.0, math.sin(half), math.cos(half)))
    q = np.array(decoded(messages.state(0, seen)).attitude_quaternion)
    assert abs(q @ expected) == pytest.approx(1.0, abs=1e-6)


def test_state_in_whole_units(messages):
    """A metre to the north at 47° is 1/111170.9 of a degree, one to the east 1/76056.1.

    WGS 84 has these radii there.
    """
    seen = perception(position=(200.0, 100.0, 3.5), velocity=(1.0, 2.0, 3.0))
    got = decoded(messages.state(8000, seen))
    assert got.lat == pytest.approx(470000000 + 1e7 * 100.0 / 111_170.9, abs=1)
    assert got.lon == pytest.approx(80000000 + 1e7 * 200.0 / 76_056.1, abs=1)
    assert got.alt == 491_500
    assert (got.vx, got.vy, got.vz) == (200, 100, -300)
    assert (got.rollspeed, got.pitchspeed, got.yawspeed) == pytest.approx(
        (0.4, -0.5, -0.6), rel=1e-6
    )
    assert (got.xacc, got.yacc, got.zacc) == (102, -204, -1000)


def test_controls_become_commands():
    mapping = ControlMapping.default(6)
    mapping.check(SCALE)

    controls = [0.0, 0.5, 1.0, 1.5, -1.0, math.nan, 9.0, 9.0, -0.5, 0.25, 1.0, *[9.0] * 5]
    rotors = mapping.rotor_command(0.5, controls, SCALE)
    wheels = mapping.wheel_command(0.5, controls, SCALE)

    assert rotors.value.tolist() == [0.0, 175.0, 350.0, 350.0, 0.0, 0.0]
    assert wheels.steering_angle == -0.25
    assert wheels.drive_torque.tolist() == [3.0] * 4
    assert wheels.brake_torque.tolist() == [15.0] * 4
    assert rotors.time == wheels.time == 0.5

    # another mapping
    other = ControlMapping((5, 4, 3, 2, 1, 0), steering=-1, drive=11, brake=-1)
    other.check(SCALE)
    assert other.rotor_command(0.0, controls, SCALE).value.tolist() == [
        0.0,
        0.0,
        350.0,
        350.0,
        175.0,
        0.0,
    ]
    assert other.wheel_command(0.0, controls, SCALE).steering_angle == 0.0
    assert other.wheel_command(0.0, [-1.0] * 16, SCALE).drive_torque.tolist() == [-12.0] * 4

    six = VehicleParameters.load("scale_six")
    assert other.wheel_command(0.0, [-1.0] * 16, six).drive_torque.tolist() == [-10.0] * 6


NEITHER = ControlMapping(range(6), drive=-1, brake=-1)
DRIVE_ONLY = ControlMapping(range(6), brake=-1)


@pytest.mark.parametrize(
    ("mapping", "drive", "brake", "armed", "drive_torque", "brake_torque"),
    [
        (ControlMapping.default(6), 0.0, 0.0, False, 0.0, 15.0),  # PX4 disarmed: zeros
        (ControlMapping.default(6), 0.5, 0.0, False, 0.0, 15.0),
        (ControlMapping.default(6), 0.0, 0.0, True, 0.0, 0.0),  # armed, and it coasts
        (ControlMapping.default(6), math.nan, math.nan, True, 0.0, 15.0),
        (ControlMapping.default(6), 0.5, math.nan, True, 6.0, 0.0),
        (ControlMapping.default(6), math.nan, 0.2, True, 0.0, 3.0),
        (NEITHER, 0.5, 0.0, True, 0.0, 15.0),  # a multicopter: nothing for the wheels
        (DRIVE_ONLY, 0.5, 0.0, True, 6.0, 0.0),
        (DRIVE_ONLY, math.nan, 0.0, True, 0.0, 15.0),
    ],
)
def test_wheels_are_braked_by_a_disarmed_autopilot_and_without_outputs(
    mapping, drive, brake, armed, drive_torque, brake_torque
):
    controls = [0.0] * 8 + [0.0, drive, brake] + [0.0] * 5
    wheels = mapping.wheel_command(0.5, controls, SCALE, armed)
    assert wheels.drive_torque.tolist() == [drive_torque] * 4
    assert wheels.brake_torque.tolist() == pytest.approx([brake_torque] * 4)
    assert wheels.time == 0.5


@pytest.mark.parametrize(("mode", "armed"), [(0, False), (1, False), (127, False), (129, True)])
def test_bit_128_of_the_mode_says_that_it_is_armed(messages, mode, armed):
    session = HilSession(messages, by_tcp)
    message = common.MAVLink_hil_actuator_controls_message(1, [0.0] * 16, mode, 1)
    session.take(session.parse(bytes(message.pack(common.MAVLink(None, 1, 1)))))
    assert [controls.armed for controls in session.commands()] == [armed]


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        (ControlMapping((0, 1, 2, 3)), "4 given, expected one for each of 6"),
        (ControlMapping((0, 1, 2, 3, 4, 8)), "control 8: two actuators"),
        (ControlMapping((0, 1, 2, 3, 4, 16)), "control 16: expected 0 to 15"),
    ],
)
def test_a_mapping_that_does_not_fit_is_named(mapping, text):
    with pytest.raises(ConfigError, match=text):
        mapping.check(SCALE)


def test_accuracies_of_a_covariance():
    assert accuracies([4.0, 0, 0, 0, 2.25, 0, 0, 0, 9.0]) == (2.0, 3.0)
    assert accuracies(np.zeros(9)) == (0.0, 0.0)
    assert np.isnan(accuracies([math.nan, 0, 0, 0, 1.0, 0, 0, 0, math.inf])).all()


def test_without_pymavlink_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymavlink.dialects.v20.common", None)
    with pytest.raises(
        ConfigError, match=rf"MAVLink needs pymavlink; {re.escape(how_to_install('mavlink'))}$"
    ):
        load_dialect()


def by_tcp(handler):
    return TcpTransport("127.0.0.1", 0, handler)


def controls_message(time_usec):
    return common.MAVLink_hil_actuator_controls_message(time_usec, [0.5] * 16, 128, 1)


def test_the_session_with_an_autopilot_that_sends_garbage_too(messages):
    rng = random.Random(3)
    with HilSession(messages, by_tcp) as session:
        assert not session.booting
        with socket.create_connection(("127.0.0.1", session.port), PATIENCE) as autopilot:
            wait_until(lambda: session.peer)
            packer = common.MAVLink(None, 1, 1)
            autopilot.sendall(messages.heartbeat().pack(packer))
            wait_until(lambda: session.booting)
            assert not session.up

            # garbage before each message
            for number in range(100):
                # the markers begin a message of their own, which may swallow the next one, but not
                # here
                garbage = bytes(
                    b for b in rng.randbytes(rng.randrange(300)) if b not in (0xFD, 0xFE)
                )
                autopilot.sendall(garbage + controls_message(number).pack(packer))

            commands = []
            wait_until(lambda: (commands.extend(session.commands()), len(commands) == 100)[1])
            assert [controls.time_usec for controls in commands] == list(range(100))
            assert commands[0].controls == (0.5,) * 16
            assert session.up
            assert session.counters["bad_data"] > 50

            # random bytes
            autopilot.sendall(rng.randbytes(20_000) + bytes(300))
            autopilot.sendall(controls_message(7).pack(packer))
            wait_until(lambda: any(controls.time_usec == 7 for controls in session.commands()))

            # messages to the autopilot
            session.send(messages.heartbeat())
            autopilot.settimeout(PATIENCE)
            reader = common.MAVLink(None)
            heard = []
            while len(heard) < 2:
                heard += reader.parse_buffer(autopilot.recv(4096)) or []

            assert {message.get_type() for message in heard} == {"HEARTBEAT"}
            assert heard[0].autopilot == common.MAV_AUTOPILOT_INVALID
            assert (heard[0].get_srcSystem(), heard[1].get_seq()) == (1, 1)

        wait_until(lambda: not session.peer)
        assert not session.up


def test_an_autopilots_board_at_a_serial_line(messages):
    """Each byte passes both ways; the test holds the other end of a pseudo-terminal."""
    board, line = pty.openpty()
    with HilSession(
        messages, lambda handler: SerialTransport(os.ttyname(line), 921_600, handler)
    ) as session:
        packer = common.MAVLink(None, 1, 1)
        os.write(board, controls_message(0x0D0A1113).pack(packer))
        (controls,) = wait_until(session.commands)
        assert controls.time_usec == 0x0D0A1113
        assert session.peer == os.ttyname(line)

        reader = common.MAVLink(None)
        heard = []
        while not heard:
            heard += reader.parse_buffer(os.read(board, 4096)) or []
        assert heard[0].get_type() == "HEARTBEAT"

    os.close(line)
    os.close(board)


def test_an_autopilot_that_says_nothing_is_not_waited_for_after_a_second(messages, monkeypatch):
    monkeypatch.setattr("rfly_mavlink.links.mavlink_hil.FIRST_WORD_S", 0.2)
    start = time.monotonic()
    with (
        HilSession(messages, by_tcp) as session,
        socket.create_connection(("127.0.0.1", session.port), PATIENCE),
    ):
        wait_until(lambda: session.booting)
        assert time.monotonic() - start > 0.15


def test_whatever_has_a_right_check_the_reader_lives_on(messages):
    """Any messages, signed or not, complete or not, are survived; then one that counts is taken."""
    from pymavlink.generator import mavcrc as crc

    rng = random.Random(11)
    session = HilSession(messages, by_tcp)

    # any message, complete or not
    for _ in range(3000):
        number, kind = rng.choice(list(common.mavlink_map.items()))
        payload = rng.randbytes(rng.choice((rng.randrange(256), min(kind.unpacker.size, 255), 0)))
        flags = rng.choice((0, 0, 1, 2))
        head = struct.pack(
            "<BBBBBBBHB", 0xFD, len(payload), flags, 0, 0, 1, 1, number & 0xFFFF, number >> 16
        )
        check = crc.x25crc(head[1:] + payload + bytes((kind.crc_extra,))).crc
        data = head + payload + struct.pack("<H", check) + bytes(13 * (flags == 1))
        session.take(
            session.parse(data[: rng.randrange(len(data))] if rng.random() < 0.05 else data)
        )

    session.take(session.parse(bytes(600)))
    session.commands()
    session.take(session.parse(bytes(controls_message(99).pack(common.MAVLink(None)))))
    assert [controls.time_usec for controls in session.commands()] == [99]
    assert session.counters["received"] > 1000
