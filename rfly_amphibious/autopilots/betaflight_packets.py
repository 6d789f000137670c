# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams of Betaflight's SITL target: state and radio to the firmware, motors from it.

Little-endian. Layouts as in the firmware's `target.h` for SITL (`fdm_packet`, `rc_packet`,
`servo_packet`, `servo_packet_raw`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import PacketError
from rfly_common.frames import flu_to_frd, quat_enu_flu_to_ned_frd
from rfly_common.physics import SEA_LEVEL_PRESSURE

# fixed in the firmware
RAW_PORT = 9001
"""UDP port to which the firmware sends servos."""

MOTOR_PORT = 9002
"""UDP port to which the firmware sends motors."""

STATE_PORT = 9003
"""UDP port of the firmware for states."""

RADIO_PORT = 9004
"""UDP port of the firmware for the radio."""

SERIAL_PORT = 5761
"""TCP port of the firmware's first serial port."""

STATE = struct.Struct("<18d")
RADIO = struct.Struct("<d16H")
MOTORS = struct.Struct("<4f")

CHANNELS = 16
"""Number of channels in `radio_packet`."""

# channels: the sticks in the firmware's order, then its switches AUX1 and AUX2
ROLL = 0
PITCH = 1
THROTTLE = 2
YAW = 3
ARM = 4
ANGLE = 5

LOW = 1000
"""Least pulse of a channel, µs."""

MIDDLE = 1500
"""Pulse of a centred stick, µs."""

HIGH = 2000
"""Largest pulse of a channel, µs."""

ROTOR_OF_MOTOR = (0, 2, 1, 3)
"""Place of each rotor in the packet of motors.

Rotors: front right, front left, rear left, rear right. Motors: front right, rear left, front left,
rear right.
"""


def state_packet(
    time: float,
    rates: ArrayLike,
    specific_force: ArrayLike,
    orientation: ArrayLike,
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    geodetic: ArrayLike = (0.0, 0.0, 0.0),
    pressure: float = SEA_LEVEL_PRESSURE,
) -> bytes:
    """Return the 144 bytes of a state. Body axes FLU, world ENU; SI.

    `time` (s): must not fall from packet to packet, because older packets are ignored. `rates`:
    (3,), rad/s; `specific_force`: (3,), m/s²; `orientation`: (4,), x y z w, body -> world;
    `velocity`: (3,), m/s; `geodetic`: (3,), latitude and longitude in degrees, altitude in m. In
    the packet the attitude is FRD -> NED, w x y z, and the rates are FRD; the acceleration is FLU,
    the negative specific force, and the velocity ENU. Raise PacketError if a number is not finite.
    """
    latitude, longitude, altitude = np.asarray(geodetic, float).tolist()
    x, y, z, w = quat_enu_flu_to_ned_frd(orientation).tolist()
    turning = flu_to_frd(rates).tolist()
    speed = np.asarray(velocity, float).tolist()
    pull = (-np.asarray(specific_force, float)).tolist()

    numbers = (time, *turning, *pull, w, x, y, z, *speed, longitude, latitude, altitude, pressure)
    if not all(map(math.isfinite, numbers)):
        raise PacketError("finite", f"state of the vehicle: {numbers}, expected finite numbers")
    return STATE.pack(*numbers)


def radio_packet(time: float, channels: Sequence[float]) -> bytes:
    """Return the 40 bytes of the radio.

    Up to 16 channels in µs, rounded and limited to 1000 … 2000; missing ones are low.
    """
    if len(channels) > CHANNELS:
        raise PacketError("channels", f"{len(channels)} channels, expected at most {CHANNELS}")
    pulses = [round(min(max(value, LOW), HIGH)) for value in channels]
    return RADIO.pack(time, *pulses, *[LOW] * (CHANNELS - len(pulses)))


def stick(value: float) -> float:
    """Return the pulse of a stick at −1 … 1, µs; beyond, at its stop."""
    return MIDDLE + (HIGH - MIDDLE) * min(max(value, -1.0), 1.0)


def motor_outputs(datagram: bytes) -> Floats:
    """Return the motors of a datagram, (4,), 0 … 1: front right, front left, rear left, rear right.

    Numbers beyond 0 … 1 are limited. Raise PacketError for anything but four finite numbers.
    """
    if len(datagram) != MOTORS.size:
        raise PacketError("length", f"{len(datagram)} bytes, expected {MOTORS.size}: four motors")
    motors = np.array(MOTORS.unpack(datagram))
    if not np.isfinite(motors).all():
        raise PacketError("finite", f"motors {motors.tolist()}, expected finite numbers")
    return np.asarray(np.clip(motors, 0.0, 1.0)[list(ROTOR_OF_MOTOR)], np.float64)
