# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The datagrams of Betaflight's simulator target, byte by byte, its MSP answers, and the sticks.

No firmware is needed.
"""

from __future__ import annotations

import importlib.util
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_amphibious import SensorParameters, VehicleParameters
from rfly_amphibious.autopilots.betaflight_attitude import (
    BetaflightAttitudeLoop,
    BetaflightSticks,
    tilt_to,
)
from rfly_amphibious.autopilots.betaflight_cli import (
    BetaflightSerial,
    _frames,
    attitude_of,
    status_of,
)
from rfly_amphibious.autopilots.betaflight_packets import (
    motor_outputs,
    radio_packet,
    state_packet,
    stick,
)
from rfly_amphibious.autopilots.betaflight_session import find_firmware, shipped_settings
from rfly_amphibious.control.attitude_controller import Mixer
from rfly_amphibious.sensors.samples import BarometerSamples, ImuSamples, SensorSamples
from rfly_common.errors import AutopilotError, ConfigError, PacketError


def test_state_of_a_vehicle_that_rolls_left_and_heads_north():
    # FLU -> ENU, heading north: 90° about z; then FRD -> NED is level and heads north: the identity
    north = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    data = state_packet(
        1.5, (0.1, 0.2, 0.3), (1.0, 2.0, 9.0), north, (4.0, 5.0, 6.0), (47.0, 8.0, 500.0), 95000.0
    )
    assert len(data) == 144
    numbers = np.array(struct.unpack("<18d", data))
    assert numbers[0] == 1.5
    assert numbers[1:4].tolist() == [0.1, -0.2, -0.3]
    assert numbers[4:7].tolist() == [-1.0, -2.0, -9.0]
    assert np.abs(numbers[7:11]) == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=1e-12)
    assert numbers[11:14].tolist() == [4.0, 5.0, 6.0]
    assert numbers[14:17].tolist() == [8.0, 47.0, 500.0]  # longitude comes first
    assert numbers[17] == 95000.0


def test_state_that_is_not_finite_is_no_packet():
    with pytest.raises(PacketError, match="finite"):
        state_packet(
            0.0,
            (0.0, math.nan, 0.0),
            (0.0, 0.0, 9.8),
            (0.0, 0.0, 0.0, 1.0),
        )


def test_radio_is_rounded_held_and_filled_up():
    data = radio_packet(2.0, [1500.4, 1500.6, 400, 3000])
    assert (
        data
        == struct.pack("<d", 2.0)
        + bytes.fromhex("dc05 dd05 e803 d007")
        + bytes.fromhex("e803") * 12
    )
    assert stick(0.25) == 1625.0
    assert stick(-7.0) == 1000.0
    with pytest.raises(PacketError, match="17 channels"):
        radio_packet(0.0, [1500] * 17)


def test_motors_come_in_the_order_of_the_rotors():
    # on the wire: front right, rear left, front left, rear right
    data = bytes.fromhex("0000003e 0000803e 0000c03e 0000003f")  # 0.125, 0.25, 0.375, 0.5
    assert motor_outputs(data).tolist() == [0.125, 0.375, 0.25, 0.5]
    assert motor_outputs(struct.pack("<4f", -1.0, 2.0, 0.5, 0.5)).tolist() == [0.0, 0.5, 1.0, 0.5]


@pytest.mark.parametrize(
    "data", [b"", b"x" * 15, b"x" * 17, struct.pack("<4f", 0.1, math.nan, 0.1, 0.1)]
)
def test_garbage_is_no_motors(data):
    with pytest.raises(PacketError):
        motor_outputs(data)


def test_answers_are_found_between_garbage_and_in_pieces():
    answer = b"$M>\x06\x6c" + struct.pack("<3h", 12, -34, 90)
    answer += bytes((np.bitwise_xor.reduce(np.frombuffer(answer[3:], np.uint8)),))
    spoilt = answer[:-1] + bytes((answer[-1] ^ 1,))
    buffer = bytearray(b"noise$M" + spoilt + answer + answer[:7])
    assert [code for code, _ in _frames(buffer)] == [108]
    buffer += answer[7:]
    ((code, payload),) = _frames(buffer)
    assert code == 108
    # 1.2° roll, 3.4° nose up, heading east
    assert np.degrees(attitude_of(payload)) == pytest.approx([1.2, -3.4, -0.5], abs=1e-9)


@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.just(b"$M>"), st.just(b"$M>\x00\x01\x01")), max_size=8
    )
)
def test_no_bytes_break_the_reader_of_answers(pieces):
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        for code, payload in _frames(buffer):
            assert 0 <= code < 256
            assert len(payload) < 256
    assert len(buffer) < 3 + 262 + 40


def test_firmware_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AutopilotError, match=r"the program \S+ is not installed.*gcc and make"):
        find_firmware()


def test_status_tells_what_hinders_arming():
    flags = 1 << 2 | 1 << 12 | 1 << 30
    head = struct.pack("<HHHIBHBB", 125, 0, 35, 0b11, 0, 0, 4, 4)
    for more in (0, 3):  # bytes for more modes
        status = status_of(
            head + bytes((more,)) + bytes(more) + bytes((29,)) + struct.pack("<I", flags)
        )
        assert status == (True, ("no radio", "calibrating", "bit 30"), pytest.approx(125e-6))
    with pytest.raises(AutopilotError, match="bytes"):
        status_of(head)


def test_tilt_to_an_axis():
    # Rz(0.7) Ry(0.2) Rx(-0.1) z, written out
    c = math.cos(0.7)
    s = math.sin(0.7)
    forward = math.sin(0.2) * math.cos(0.1)
    left = math.sin(0.1)
    up = math.cos(0.2) * math.cos(0.1)
    axis = np.array((c * forward - s * left, s * forward + c * left, up))
    assert tilt_to(axis, 0.7) == pytest.approx((-0.1, 0.2))


def test_throttle_that_carries_the_weight():
    params = VehicleParameters.load("scale_quad")
    sticks = BetaflightSticks(params)
    # 30 kg on four rotors: 247.6 of 350 rad/s; a motor idles at 2 %
    share = math.sqrt(30.0 * 9.80665 / (4 * 0.0012)) / 350.0
    assert sticks.throttle(30.0 * 9.80665) == pytest.approx((share - 0.02) / 0.98)
    assert sticks.throttle(-1.0) == 0.0
    assert sticks.throttle(1e6) == 1.0
    assert sticks.channels(None, None, None)[:5] == [
        1500,
        1500,
        1000,
        1500,
        1000,
    ]  # disarmed, throttle low


@pytest.mark.parametrize("name", ["scale", "full"])
def test_only_the_quad_can_be_flown(name):
    with pytest.raises(ConfigError, match="scale_quad"):
        BetaflightSticks(VehicleParameters.load(name))


def test_settings_fit_the_sticks():
    """The shipped settings and the module that moves the sticks hold the same numbers."""
    lines = [line.split("#")[0].split() for line in shipped_settings("scale_quad")]
    values = {
        words[1]: int(words[3]) for words in lines if words[:1] == ["set"] and words[3].isdigit()
    }
    assert values["angle_limit"] == 30
    assert values["yaw_rc_rate"] * 10 == values["yaw_srate"] * 10 == 60
    assert values["motor_idle"] == 200  # hundredths of a percent
    assert ["aux", "0", "0", "0", "1700", "2100", "0", "0"] in lines
    with pytest.raises(AutopilotError, match="there are: scale_quad"):
        shipped_settings("scale")


def test_rotors_that_have_all_failed_are_asked_for_nothing():
    mixer = Mixer(VehicleParameters.load("scale_quad"), range(4))
    assert mixer.rotor_speeds((294.0, 1.0, 1.0, 0.1)).tolist() == [0.0] * 4


def test_a_connection_that_floods_does_not_hold_the_loop():
    """Each read ends, and the answers in it come out."""
    good = bytes.fromhex("244d3e 00 6c 6c")  # an empty answer to 108: its check is 0 XOR 0x6c

    class Flood:
        reads = 0

        def setblocking(self, _):
            pass

        def recv(self, size):
            self.reads += 1
            assert self.reads < 1000, "it never ends"
            return good * (size // len(good))

    serial = BetaflightSerial.__new__(BetaflightSerial)
    serial._socket = Flood()
    serial._buffer = bytearray()
    answers = serial.answers()
    assert set(answers) == {(108, b"")}
    assert len(answers) > 100


def test_a_sample_is_sent_as_soon_as_it_is_there_and_again_by_a_step_without_a_newer_one():
    """The firmware answers while other parts still estimate.

    If it is stopped, each repeated step asks it again.
    """

    class Firmware:
        why_ended = ""
        status = None
        motors_time = 0.0
        sent = ()

        def send_state(self, rates, *_, pressure):
            self.sent = *self.sent, (rates[0], pressure)

        def motors(self, _):
            return np.full(4, 0.5)

        send_radio = poll_telemetry = lambda *_: None

    params = VehicleParameters.load("scale_quad")
    loop = BetaflightAttitudeLoop(Firmware(), params, SensorParameters.load("scale_quad"))

    imu = ImuSamples(
        np.zeros(2),
        np.zeros((2, 3)),
        np.array(((1.0, 0, 0), (2.0, 0, 0))),
        np.tile((0, 0, 0, 1.0), (2, 1)),
    )

    loop.sense(SensorSamples(imu=imu, barometer=BarometerSamples(np.zeros(1), np.array((9e4,)))))
    assert loop.session.sent == ((2.0, 9e4),)
    assert loop.rotor_speeds(None, None) == pytest.approx(0.5 * params.max_rotor_speed)
    assert len(loop.session.sent) == 1
    loop.rotor_speeds(None, None)
    assert loop.session.sent == ((2.0, 9e4),) * 2
