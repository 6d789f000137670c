"""ArduPilot's JSON interface to simulators: servo outputs from it, the vehicle's state to it.

Layouts as in `libraries/SITL/examples/JSON/readme.md` of ArduPilot. World axes NED, body axes FRD.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_amphibious.links.mavlink_hil import ControlMapping
from rfly_amphibious.links.perception import Perception
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import PacketError
from rfly_common.frames import enu_to_ned, flu_to_frd, quat_enu_flu_to_ned_frd

_SERVOS = {18458: struct.Struct("<HHI16H"), 29569: struct.Struct("<HHI32H")}
"""by their magic number, which comes first: frame rate, frame count, pulses"""
_MAGIC = struct.Struct("<H")
LOW, MIDDLE, HIGH = 1000, 1500, 2000
"""µs"""


class ServoFrame(NamedTuple):
    """One frame of ArduPilot's outputs."""

    rate: int
    """frames a second that it would like"""
    number: int
    """from 0 on at each start of ArduPilot; a frame that is sent again keeps it"""
    pulses: tuple[int, ...]
    """(16,) or (32,) µs; 0: the output is off"""


def decode_servos(datagram: bytes) -> ServoFrame:
    """Raises PacketError for anything else."""
    magic = _MAGIC.unpack_from(datagram)[0] if len(datagram) >= _MAGIC.size else -1
    layout = _SERVOS.get(magic)
    if layout is None:
        raise PacketError("magic", f"begins with {magic}, expected {' or '.join(map(str, _SERVOS))}")
    if len(datagram) != layout.size:
        raise PacketError("length", f"{len(datagram)} bytes after magic {magic}, expected {layout.size}")
    _, rate, count, *pulses = layout.unpack(datagram)
    return ServoFrame(rate, count, tuple(pulses))


def encode_state(time: float, seen: Perception) -> bytes:
    """One line of JSON. `time`: s of the simulation. Needs IMU and pose; wind and height are told where known.

    IMU axes have to be the body's.
    """
    imu, pose = seen.imu, seen.pose
    assert imu is not None
    assert pose is not None
    told: dict[str, Any] = {
        "timestamp": time,
        "imu": {
            "gyro": flu_to_frd(imu.rates[-1]).tolist(),
            "accel_body": flu_to_frd(imu.specific_force[-1]).tolist(),
        },
        "position": enu_to_ned(pose.position).tolist(),
        "quaternion": np.roll(quat_enu_flu_to_ned_frd(pose.orientation), 1).tolist(),
        "velocity": enu_to_ned(pose.velocity).tolist(),
    }
    if np.isfinite(seen.wind).all():
        told |= {"velocity_wind": enu_to_ned(seen.wind).tolist(), "airspeed": max(seen.airspeed, 0.0)}
    if math.isfinite(seen.height):
        told["rng_1"] = seen.height
    return f"\n{json.dumps(told, separators=(',', ':'), allow_nan=False)}\n".encode("ascii")


def servo_commands(
    time: float, pulses: Sequence[int], mapping: ControlMapping, params: VehicleParameters
) -> tuple[RotorCommand, WheelCommand]:
    """Rotors and brake rest at 1000 µs and below, steering and drive at 1500 µs; wheels without outputs are braked."""
    shares = [(pulse - LOW) / (HIGH - LOW) if pulse else math.nan for pulse in pulses]
    sides = [2.0 * share - 1.0 for share in shares]
    if mapping.brake >= 0:
        sides[mapping.brake] = shares[mapping.brake]
    wheels = mapping.wheel_command(time, sides, params)
    of_wheels = (mapping.steering, mapping.drive, mapping.brake)
    if all(math.isnan(shares[k]) for k in of_wheels if k >= 0):
        wheels = WheelCommand(time, brake_torque=np.full(4, params.max_brake_torque))
    return mapping.rotor_command(time, shares, params), wheels
