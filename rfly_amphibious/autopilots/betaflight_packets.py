"""Datagrams of Betaflight's SITL target: state and RC channels to the firmware, motors from it.
Little-endian.

Layouts as in the firmware's `target.h` for SITL (`fdm_packet`, `rc_packet`, `servo_packet`,
`servo_packet_raw`).
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

RAW_PORT = 9001
MOTOR_PORT = 9002
STATE_PORT = 9003
RADIO_PORT = 9004
SERIAL_PORT = 5761
"""fixed in the firmware: UDP 9001 and 9002 from it, 9003 and 9004 to it; TCP 5761 its first serial
port
"""

STATE = struct.Struct("<18d")
RADIO = struct.Struct("<d16H")
MOTORS = struct.Struct("<4f")

CHANNELS = 16
ROLL, PITCH, THROTTLE, YAW, ARM, ANGLE = range(6)
"""channels of `radio_packet`: the sticks in the firmware's order, then its switches AUX1 and AUX2
"""
LOW = 1000
MIDDLE = 1500
HIGH = 2000
"""µs"""

ROTOR_OF_MOTOR = (0, 2, 1, 3)
"""rotors of a vehicle with front right, front left, rear left, rear right -> places in the packet
of motors, which has front right, rear left, front left, rear right
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
    """144 bytes. Body axes FLU, world ENU; SI.

    `time` (s) must not fall from packet to packet: older ones are ignored. `rates` (3,) rad/s,
    `specific_force` (3,) m/s², `orientation` (4,) x y z w, body -> world, `velocity` (3,) m/s,
    `geodetic` (3,): latitude and longitude in degrees, altitude in m. On the wire the attitude is
    FRD -> NED, w x y z, and rates are FRD, while the acceleration is FLU, the specific force's
    negative, and the velocity ENU. Raises PacketError where a number is not finite.
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
    """40 bytes: up to 16 channels in µs, rounded and held within 1000 … 2000; those that are left
    out are low.
    """
    if len(channels) > CHANNELS:
        raise PacketError("channels", f"{len(channels)} channels, expected at most {CHANNELS}")
    held = [round(min(max(value, LOW), HIGH)) for value in channels]
    return RADIO.pack(time, *held, *[LOW] * (CHANNELS - len(held)))


def stick(value: float) -> float:
    """µs of a stick at −1 … 1; beyond, at its stop."""
    return MIDDLE + (HIGH - MIDDLE) * min(max(value, -1.0), 1.0)


def motor_outputs(datagram: bytes) -> Floats:
    """(4,) 0 … 1 in the order of the rotors: front right, front left, rear left, rear right.

    Raises PacketError for anything but four finite numbers; numbers beyond 0 … 1 are held within.
    """
    if len(datagram) != MOTORS.size:
        raise PacketError("length", f"{len(datagram)} bytes, expected {MOTORS.size}: four motors")
    motors = np.array(MOTORS.unpack(datagram))
    if not np.isfinite(motors).all():
        raise PacketError("finite", f"motors {motors.tolist()}, expected finite numbers")
    return np.asarray(np.clip(motors, 0.0, 1.0)[list(ROTOR_OF_MOTOR)], np.float64)
