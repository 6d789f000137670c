# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames of the link to external controllers: one per datagram, or a stream on TCP.

docs/model, section 12.2. Little-endian, packed: header `LAV1`, type u8, flags u8, payload length
u16, sequence u64, time f64 (s of the simulation); the payload; CRC-32 (zlib's) of all before it.
"""

from __future__ import annotations

import enum
import functools
import math
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_common.errors import LinkFrameError

MAGIC = b"LAV1"
"""First bytes of a frame."""

HEADER = struct.Struct("<4sBBHQd")
"""Magic, type, flags, payload length, sequence and time."""

CHECK = struct.Struct("<I")
"""CRC-32 at the end of a frame."""

MAX_PAYLOAD = 1024
"""Largest payload, bytes."""

MAX_FRAME = HEADER.size + MAX_PAYLOAD + CHECK.size
"""Largest frame, bytes."""

LOCK_STEP = 1
"""Bit of the flags: the platform waits for the answers to this frame."""

SUPPLIES_ROTORS = 1
"""Status bit of a controller's heartbeat: it commands the rotors."""

SUPPLIES_CHASSIS = 2
"""Status bit of a controller's heartbeat: it commands the chassis."""


class FrameType(enum.IntEnum):
    """Content of a frame.

    STATE and GPS go to the controller, ROTORS and CHASSIS to the platform, HEARTBEAT both ways.
    """

    STATE = 1
    GPS = 2
    ROTORS = 3
    CHASSIS = 4
    HEARTBEAT = 5


class StateReport(NamedTuple):
    """State of the vehicle, type 1.

    World axes ENU, body axes FLU, wheels front left, front right, rear left, rear right. NaN:
    unknown.
    """

    time: float
    """Time of the simulation, s."""

    specific_force: ArrayLike
    """Specific force of the IMU, (3,), m/s²: (0, 0, 9.80665) at rest."""

    rates: ArrayLike
    """Angular rates of the IMU, (3,), rad/s."""

    quat_wxyz: ArrayLike
    """Attitude, (4,), body -> world."""

    position: ArrayLike
    """Position of base_link, (3,), world axes, m."""

    velocity: ArrayLike
    """Velocity, (3,), world axes, m/s."""

    wheel_rate: ArrayLike
    """Spins of the wheels relative to the body, (4,), rad/s, positive forward."""

    steering: ArrayLike
    """Steering angles front left and front right, (2,), rad, positive to the left."""

    wheel_load: ArrayLike
    """Loads of the wheels, (4,), N."""

    rotor_speed: ArrayLike
    """Speeds of the rotors, (rotors,), rad/s, ≥ 0."""

    pressure: float
    """Air pressure, Pa."""

    magnetic_field: ArrayLike
    """Magnetic field in the IMU's axes, (3,), T."""


class GpsReport(NamedTuple):
    """GPS fix, type 2."""

    time: float
    """Time of the measurement, s."""

    latitude: float
    """Latitude, deg."""

    longitude: float
    """Longitude, deg."""

    altitude: float
    """Altitude, m."""

    velocity: ArrayLike
    """Velocity, (3,), ENU, m/s."""

    horizontal_accuracy: float
    """Horizontal accuracy, m, 1 σ."""

    vertical_accuracy: float
    """Vertical accuracy, m, 1 σ."""


class Heartbeat(NamedTuple):
    """Heartbeat, type 5."""

    time: float
    """Time of the simulation, s."""

    status: int
    """Commands that a controller supplies, `SUPPLIES_…`; 0 from the platform."""


Message = StateReport | GpsReport | RotorCommand | WheelCommand | Heartbeat


class LinkFrame(NamedTuple):
    """Frame that has come in complete."""

    type: FrameType
    """Type of the frame."""

    flags: int
    """Flags, `LOCK_STEP`."""

    sequence: int
    """Sequence number of the sender."""

    message: Any
    """Content by the type: StateReport, GpsReport, RotorCommand, WheelCommand or Heartbeat."""


class _Doubles:
    """Payload of doubles: the count of each field, in order; 0: as many as are left."""

    def __init__(self, make: Callable[..., Any], **counts: int) -> None:
        self.make = make
        self._counts = counts
        self._fixed = sum(counts.values())
        self._open = 0 in counts.values()

    def pack(self, message: Any) -> bytes:
        values: list[float] = []
        for name, count in self._counts.items():
            numbers = np.asarray(getattr(message, name), float).ravel()
            if count and numbers.size != count:
                raise ValueError(f"{name}: {numbers.size} numbers, expected {count}")
            values += numbers.tolist()
        return _doubles(len(values)).pack(*values)

    def unpack(self, time: float, payload: bytes) -> Any:
        count, odd = divmod(len(payload), 8)
        if odd or count < self._fixed or (count > self._fixed and not self._open):
            expected = f"{8 * self._fixed}{' or more' if self._open else ''}"
            raise _wrong_length(len(payload), expected)

        values = np.frombuffer(payload, "<f8").astype(float)
        begin = 0
        fields: list[Any] = []
        for wanted in self._counts.values():
            size = wanted or count - self._fixed
            field = float(values[begin]) if wanted == 1 else values[begin : begin + size]
            fields.append(field)
            begin += size
        return self.make(time, *fields)


class _Rotors:
    """Payload of rotor commands: mode u8, count u8, six empty bytes, `count` doubles."""

    make = RotorCommand
    _HEAD = struct.Struct("<BB6x")

    def pack(self, message: RotorCommand) -> bytes:
        values = np.asarray(message.value, float).ravel().tolist()
        head = self._HEAD.pack(int(message.torques), len(values))
        return head + _doubles(len(values)).pack(*values)

    def unpack(self, time: float, payload: bytes) -> RotorCommand:
        if len(payload) < self._HEAD.size:
            raise _wrong_length(len(payload), f"{self._HEAD.size} or more")

        mode, count = self._HEAD.unpack_from(payload)
        if mode > 1:
            raise LinkFrameError("mode", f"mode {mode}, expected 0 (speeds) or 1 (torques)")
        expected = self._HEAD.size + 8 * count
        if len(payload) != expected:
            raise _wrong_length(len(payload), f"{expected} for {count} rotors")

        values = np.frombuffer(payload, "<f8", count, self._HEAD.size).astype(float)
        return RotorCommand(time, values, bool(mode))


class _Status:
    """Payload of a heartbeat: status u32."""

    make = Heartbeat
    _WHOLE = struct.Struct("<I")

    def pack(self, message: Heartbeat) -> bytes:
        return self._WHOLE.pack(message.status)

    def unpack(self, time: float, payload: bytes) -> Heartbeat:
        if len(payload) != self._WHOLE.size:
            raise _wrong_length(len(payload), str(self._WHOLE.size))
        return Heartbeat(time, *self._WHOLE.unpack(payload))


_PAYLOADS: dict[FrameType, Any] = {
    FrameType.STATE: _Doubles(
        StateReport,
        specific_force=3,
        rates=3,
        quat_wxyz=4,
        position=3,
        velocity=3,
        wheel_rate=4,
        steering=2,
        wheel_load=4,
        rotor_speed=0,
        pressure=1,
        magnetic_field=3,
    ),
    FrameType.GPS: _Doubles(
        GpsReport,
        latitude=1,
        longitude=1,
        altitude=1,
        velocity=3,
        horizontal_accuracy=1,
        vertical_accuracy=1,
    ),
    FrameType.ROTORS: _Rotors(),
    FrameType.CHASSIS: _Doubles(WheelCommand, steering_angle=1, drive_torque=4, brake_torque=4),
    FrameType.HEARTBEAT: _Status(),
}
_TYPE_OF = {payload.make: kind for kind, payload in _PAYLOADS.items()}


def encode(message: Message, sequence: int, flags: int = 0) -> bytes:
    """Return the frame that carries a message.

    Raise ValueError if a field has the wrong size or the payload is too long.
    """
    kind = _TYPE_OF[type(message)]
    payload = _PAYLOADS[kind].pack(message)
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(
            f"a payload of {len(payload)} bytes, at most {MAX_PAYLOAD} fit into a frame"
        )
    body = HEADER.pack(MAGIC, kind, flags, len(payload), sequence, message.time) + payload
    return body + CHECK.pack(zlib.crc32(body))


def decode(data: bytes) -> LinkFrame:
    """Return the frame of one datagram.

    Raise LinkFrameError with its reason: magic, length, crc, type, time or mode.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise LinkFrameError(
            "magic",
            f"begins with {data[:4].hex(' ') or 'nothing'}, expected {MAGIC.hex(' ')} (LAV1)",
        )

    # length
    if len(data) < HEADER.size + CHECK.size:
        raise _wrong_length(len(data), f"{HEADER.size + CHECK.size} or more for a whole frame")
    _, kind, flags, length, sequence, time = HEADER.unpack_from(data)
    end = HEADER.size + length
    if length > MAX_PAYLOAD or len(data) != end + CHECK.size:
        raise LinkFrameError(
            "length", f"{len(data)} bytes, and its header announces a payload of {length}"
        )

    # content
    check = CHECK.unpack_from(data, end)[0]
    if check != zlib.crc32(data[:end]):
        raise LinkFrameError(
            "crc", f"CRC-32 {check:08x}, the content has {zlib.crc32(data[:end]):08x}"
        )
    if kind not in _PAYLOADS:
        raise LinkFrameError("type", f"type {kind}, expected 1 to {max(_PAYLOADS):d}")
    if not math.isfinite(time):
        raise LinkFrameError("time", f"time {time}, expected a finite number of seconds")

    frame_type = FrameType(kind)
    message = _PAYLOADS[frame_type].unpack(time, data[HEADER.size : end])
    return LinkFrame(frame_type, flags, sequence, message)


REASONS = ("magic", "length", "crc", "type", "time", "mode")
"""Reasons for refusing a frame.

On a stream, `magic` counts the places that held something else, not its bytes.
"""


class FrameReader:
    """Reader of a stream, which finds the frames in its bytes.

    It skips anything else up to the next magic.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._lost = False
        self.counters = dict.fromkeys(REASONS, 0)

    def feed(self, data: bytes) -> list[LinkFrame]:
        """Return the frames that are complete now. Less than `MAX_FRAME` bytes are kept."""
        data = self._rest + data
        begin = 0
        frames = list[LinkFrame]()
        while True:
            # to the next magic, or to what may become one
            start = data.find(MAGIC, begin)
            if start < 0:
                start = len(data) - _beginning_at_the_end(data[begin:])
            if start > begin and not self._lost:
                self.counters["magic"] += 1
                self._lost = True
            begin = start

            # a frame that is not complete yet
            if len(data) - begin < HEADER.size:
                break
            length = HEADER.unpack_from(data, begin)[3]
            end = begin + HEADER.size + length + CHECK.size
            if length <= MAX_PAYLOAD and end > len(data):
                break

            try:
                if length > MAX_PAYLOAD:
                    raise LinkFrameError(
                        "length", f"a payload of {length} bytes, at most {MAX_PAYLOAD}"
                    )
                frames.append(decode(data[begin:end]))
                begin = end
                self._lost = False
            except LinkFrameError as error:
                self.counters[error.reason] += 1
                # a frame with right length and check is skipped; otherwise the next frame may
                # begin within this one
                if error.reason not in ("length", "crc") or _is_intact(data[begin:end], length):
                    begin = end
                    self._lost = False
                else:
                    begin += len(MAGIC)
                    self._lost = True
        self._rest = data[begin:]
        return frames


def _is_intact(frame: bytes, length: int) -> bool:
    """Return whether a frame with this length of its payload has the right check."""
    if length > MAX_PAYLOAD:
        return False
    content = frame[: -CHECK.size]
    return bool(CHECK.unpack_from(frame, len(content))[0] == zlib.crc32(content))


def _beginning_at_the_end(data: bytes) -> int:
    """Return how many of the last bytes could begin a magic."""
    return next((k for k in (3, 2, 1) if data.endswith(MAGIC[:k])), 0)


def _wrong_length(size: int, expected: str) -> LinkFrameError:
    """Return the error for a payload or frame of a wrong length, bytes."""
    return LinkFrameError("length", f"{size} bytes, expected {expected}")


@functools.lru_cache(maxsize=64)
def _doubles(count: int) -> struct.Struct:
    """Return the layout of some doubles."""
    return struct.Struct(f"<{count}d")
