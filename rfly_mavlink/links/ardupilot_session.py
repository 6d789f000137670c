# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Session with one ArduPilot SITL by its JSON interface over UDP: servo outputs in, states out.

Layouts as in `libraries/SITL/examples/JSON/readme.md` of ArduPilot. World axes NED, body axes FRD.
"""

from __future__ import annotations

import dataclasses
import json
import math
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import PacketError
from rfly_common.frames import enu_to_ned, flu_to_frd, quat_enu_flu_to_ned_frd
from rfly_mavlink.links.controller_session import ControllerSession
from rfly_mavlink.links.mavlink_hil import ControlMapping
from rfly_mavlink.links.perception import Perception
from rfly_mavlink.links.transport import UdpTransport

_SERVOS = {18458: struct.Struct("<HHI16H"), 29569: struct.Struct("<HHI32H")}
"""Layouts by their magic number, which comes first: magic, frame rate, frame count, pulses."""

_MAGIC = struct.Struct("<H")
"""Magic number of a datagram."""

LOW = 1000
"""Pulse width of off, or full backwards, µs."""

MIDDLE = 1500
"""Pulse width of neutral, µs."""

HIGH = 2000
"""Pulse width of full, µs."""

DRAG_BRAKE = 0.25
"""Share of the largest brake torque with which a neutral drive brakes."""


class ServoFrame(NamedTuple):
    """One frame of ArduPilot's outputs."""

    rate: int
    """Wanted frame rate, Hz."""

    number: int
    """Count since ArduPilot's start, from 0; a frame that is sent again keeps it."""

    pulses: tuple[int, ...]
    """Pulse widths, (16,) or (32,), µs; 0: the output is off."""


def decode_servos(datagram: bytes) -> ServoFrame:
    """Return the frame of a datagram. Raise PacketError for anything else."""
    magic = _MAGIC.unpack_from(datagram)[0] if len(datagram) >= _MAGIC.size else -1

    layout = _SERVOS.get(magic)
    if layout is None:
        raise PacketError(
            "magic", f"begins with {magic}, expected {' or '.join(map(str, _SERVOS))}"
        )

    if len(datagram) != layout.size:
        raise PacketError(
            "length", f"{len(datagram)} bytes after magic {magic}, expected {layout.size}"
        )

    _, rate, count, *pulses = layout.unpack(datagram)
    return ServoFrame(rate, count, tuple(pulses))


def encode_state(time: float, seen: Perception) -> bytes:
    """Return a state as one line of JSON.

    `time`: of the simulation, s. IMU and pose have to be known, and the IMU's axes have to be the
    body's; wind and height are included if they are known.
    """
    imu = seen.imu
    pose = seen.pose
    assert imu is not None
    assert pose is not None

    state: dict[str, Any] = {
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
        state |= {
            "velocity_wind": enu_to_ned(seen.wind).tolist(),
            "airspeed": max(seen.airspeed, 0.0),
        }

    if math.isfinite(seen.height):
        state["rng_1"] = seen.height

    return f"\n{json.dumps(state, separators=(',', ':'), allow_nan=False)}\n".encode("ascii")


def servo_commands(
    time: float, pulses: Sequence[int], mapping: ControlMapping, params: VehicleParameters
) -> tuple[RotorCommand, WheelCommand]:
    """Return rotor and wheel commands for pulse widths.

    Rotors and brake rest at 1000 µs and below, steering and drive at 1500 µs. An output of 0 µs is
    off: with drive and brake off, as next to ArduCopter and by a disarmed Rover, the mapping brakes
    the wheels. If only the brake is off, a drive that is neutral to the microsecond brakes by
    DRAG_BRAKE, as speed controllers of cars do: Rover's HOLD sends nothing else.
    """
    shares = [(pulse - LOW) / (HIGH - LOW) if pulse else math.nan for pulse in pulses]
    sides = [2.0 * share - 1.0 for share in shares]

    if mapping.brake >= 0:
        sides[mapping.brake] = shares[mapping.brake]
    wheels = mapping.wheel_command(time, sides, params)

    no_brake = mapping.brake < 0 or math.isnan(shares[mapping.brake])
    if no_brake and mapping.drive >= 0 and pulses[mapping.drive] == MIDDLE:
        drag = np.full(len(params.wheels), DRAG_BRAKE * params.max_brake_torque)
        wheels = dataclasses.replace(wheels, brake_torque=drag)
    return mapping.rotor_command(time, shares, params), wheels


class DriveInterlock:
    """Interlock that keeps drive and brake off until the drive has been off or neutral once.

    A car's speed controller does the same. Until Rover has assigned its outputs they stand at 1000
    µs, which is full reverse for a drive.
    """

    def __init__(self, mapping: ControlMapping) -> None:
        self._drive = mapping.drive
        self._held = {mapping.drive, mapping.brake}
        self._last = -1
        self._released = False

    def pulses(self, frame: ServoFrame) -> tuple[int, ...]:
        """Return the frame's pulses, with drive and brake off while they are held.

        ArduPilot's next start holds them again.
        """
        if frame.number < self._last:
            self._released = False
        self._last = frame.number

        if self._drive < 0 or frame.pulses[self._drive] in (0, MIDDLE):
            self._released = True

        if self._released:
            return frame.pulses
        return tuple(
            0 if output in self._held else pulse for output, pulse in enumerate(frame.pulses)
        )


PORT = 9002
"""Port of ArduPilot; its instance n sends to 10 n more."""

LATE_FRAMES = 100
"""Largest step back of the count for a frame that comes late; a larger one means a new start."""

REPEAT_AFTER_S = 0.5
"""Shortest time until ArduPilot sends a frame again, s: earlier ones are doubled datagrams."""

COUNTERS = ("frames", "no_frame", "late", "doubled", "replies_sent_again", "starts", "overflow")
"""Counters of a session.

- frames: new frames
- no_frame: other datagrams
- late: frames older than the newest
- doubled: frames equal to the newest
- replies_sent_again: replies that ArduPilot asked for once more
- starts: starts of ArduPilot
- overflow: the oldest frames of a full queue
"""


class _Reply(NamedTuple):
    """Last reply: the frame's number, the wall time of sending, s, and the state."""

    number: int
    sent_at: float
    state: bytes


class ArdupilotSession(ControllerSession[ServoFrame]):
    """Session that takes servo frames, each once and in order; each is answered once, with a state.

    A lost reply is sent again when ArduPilot sends its frame again.
    """

    def __init__(
        self, bind: str, port: int, host: str, wake: Callable[[], None] | None = None
    ) -> None:
        super().__init__(lambda handler: UdpTransport(bind, port, host, 0, handler), wake, COUNTERS)
        self._lock = threading.Lock()
        self._newest = -1
        self._reply: _Reply | None = None

    def reply(self, frame: ServoFrame, state: bytes) -> None:
        """Answer a frame without waiting."""
        with self._lock:
            self._reply = _Reply(frame.number, time.monotonic(), state)
        self._transport.send(state)

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """Take note of ArduPilot's start, or of another one."""
        self._begin(-1)

    def parse(self, data: bytes) -> list[ServoFrame]:
        """Return the frame in a datagram, if it is one."""
        try:
            return [decode_servos(data)]
        except PacketError:
            self._counts["no_frame"] += 1
            return []

    def take(self, items: list[ServoFrame]) -> bool:
        """Take the frames; return whether one was the newest or a newer one."""
        alive = False
        for frame in items:
            if frame.number == self._newest:
                self._repeat(frame.number)
            elif frame.number and 0 < self._newest - frame.number < LATE_FRAMES:
                self._counts["late"] += 1
                continue
            else:
                if frame.number < self._newest:
                    self._begin(frame.number)
                self._newest = frame.number
                self._counts["frames"] += 1
                self._queue_command(frame)
                self._wake_up()
            alive = True
        return alive

    def _begin(self, count: int) -> None:
        """Take note of a start of ArduPilot, which counts from `count`."""
        self._counts["starts"] += 1
        self._newest = count
        with self._lock:
            self._reply = None

    def _repeat(self, count: int) -> None:
        """Send a lost reply once more.

        A second reply to a doubled frame would leave ArduPilot a frame behind for ever.
        """
        self._counts["doubled"] += 1
        now = time.monotonic()
        with self._lock:
            reply = self._reply
            if reply is None or reply.number != count or now - reply.sent_at < REPEAT_AFTER_S:
                return
            self._reply = reply._replace(sent_at=now)
        self._counts["replies_sent_again"] += 1
        self._transport.send(reply.state)

    def _send_heartbeat(self) -> None:
        """Do nothing: ArduPilot always speaks first."""
