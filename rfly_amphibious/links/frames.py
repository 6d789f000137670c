"""Frames of the link to controllers outside: one a datagram, or a stream on TCP. docs/model,
section 12.2.

Little-endian, packed: header `LAV1`, type u8, flags u8, payload length u16, sequence u64, time f64
(s of the simulation); the payload; CRC-32 (zlib's) of all before it.
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

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_common.errors import LinkFrameError

MAGIC = b"LAV1"
HEADER = struct.Struct("<4sBBHQd")
CHECK = struct.Struct("<I")
MAX_PAYLOAD = 1024
MAX_FRAME = HEADER.size + MAX_PAYLOAD + CHECK.size
LOCK_STEP = 1
"""flags bit 0: the platform waits for the answers to this frame"""
SUPPLIES_ROTORS = 1
SUPPLIES_CHASSIS = 2
"""status bits of a controller's heartbeat"""


class FrameType(enum.IntEnum):
    """What a frame carries: state and GPS to the controller, commands to the platform, heartbeats
    both ways.
    """

    STATE = 1
    GPS = 2
    ROTORS = 3
    CHASSIS = 4
    HEARTBEAT = 5


class StateReport(NamedTuple):
    """Type 1. World axes ENU, body axes FLU, wheels front left, front right, rear left, rear right.
    NaN: not known.
    """

    time: float
    specific_force: ArrayLike
    """(3,) m/s², of the IMU: (0, 0, 9.80665) at rest"""
    rates: ArrayLike
    """(3,) rad/s, of the IMU"""
    quat_wxyz: ArrayLike
    """(4,) body -> world"""
    position: ArrayLike
    """(3,) m, of base_link in the world"""
    velocity: ArrayLike
    """(3,) m/s, world"""
    wheel_rate: ArrayLike
    """(4,) rad/s, relative to the body, positive rolls forward"""
    steering: ArrayLike
    """(2,) rad, front left and front right, positive = left"""
    wheel_load: ArrayLike
    """(4,) N"""
    rotor_speed: ArrayLike
    """(rotors,) rad/s, ≥ 0"""
    pressure: float
    """Pa"""
    magnetic_field: ArrayLike
    """(3,) T, in the IMU's axes"""


class GpsReport(NamedTuple):
    """Type 2. `time` is that of the measurement."""

    time: float
    latitude: float
    """deg"""
    longitude: float
    """deg"""
    altitude: float
    """m"""
    velocity: ArrayLike
    """(3,) m/s, ENU"""
    horizontal_accuracy: float
    """m, 1 σ"""
    vertical_accuracy: float
    """m, 1 σ"""


class Heartbeat(NamedTuple):
    """Type 5. A controller's says what it supplies: `SUPPLIES_ROTORS`, `SUPPLIES_CHASSIS`; the
    platform's: 0.
    """

    time: float
    status: int


Message = StateReport | GpsReport | RotorCommand | WheelCommand | Heartbeat


class Frame(NamedTuple):
    """One that has come in whole."""

    type: FrameType
    flags: int
    sequence: int
    message: Any
    """a StateReport, GpsReport, RotorCommand, WheelCommand or Heartbeat, by the type"""


class _Doubles:
    """A payload of doubles only: how many each field has, in order; 0: as many as are left."""

    def __init__(self, make: Callable[..., Any], **counts: int) -> None:
        self.make = make
        self._counts = counts
        self._fixed = sum(counts.values())
        self._open = 0 in counts.values()

    def pack(self, message: Any) -> bytes:
        values: list[float] = []
        for name, count in self._counts.items():
            given = np.asarray(getattr(message, name), float).ravel()
            if count and given.size != count:
                raise ValueError(f"{name}: {given.size} numbers, expected {count}")
            values += given.tolist()
        return _doubles(len(values)).pack(*values)

    def unpack(self, time: float, payload: bytes) -> Any:
        count, odd = divmod(len(payload), 8)
        if odd or count < self._fixed or (count > self._fixed and not self._open):
            raise _wrong_length(
                len(payload), f"{8 * self._fixed}{' or more' if self._open else ''}"
            )
        values = np.frombuffer(payload, "<f8").astype(float)
        at = 0
        fields: list[Any] = []
        for wanted in self._counts.values():
            size = wanted or count - self._fixed
            fields.append(float(values[at]) if wanted == 1 else values[at : at + size])
            at += size
        return self.make(time, *fields)


class _Rotors:
    """Mode u8, count u8, six bytes of nothing, as many doubles as count says."""

    make = RotorCommand
    _HEAD = struct.Struct("<BB6x")

    def pack(self, message: RotorCommand) -> bytes:
        values = np.asarray(message.value, float).ravel().tolist()
        return self._HEAD.pack(int(message.torques), len(values)) + _doubles(len(values)).pack(
            *values
        )

    def unpack(self, time: float, payload: bytes) -> RotorCommand:
        if len(payload) < self._HEAD.size:
            raise _wrong_length(len(payload), f"{self._HEAD.size} or more")
        mode, count = self._HEAD.unpack_from(payload)
        if mode > 1:
            raise LinkFrameError("mode", f"mode {mode}, expected 0 (speeds) or 1 (torques)")
        if len(payload) != self._HEAD.size + 8 * count:
            raise _wrong_length(len(payload), f"{self._HEAD.size + 8 * count} for {count} rotors")
        return RotorCommand(
            time, np.frombuffer(payload, "<f8", count, self._HEAD.size).astype(float), bool(mode)
        )


class _Status:
    """u32."""

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
    """The frame that carries a message. ValueError where a field has the wrong size or the payload
    is too long.
    """
    kind = _TYPE_OF[type(message)]
    payload = _PAYLOADS[kind].pack(message)
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(
            f"a payload of {len(payload)} bytes, at most {MAX_PAYLOAD} fit into a frame"
        )
    body = HEADER.pack(MAGIC, kind, flags, len(payload), sequence, message.time) + payload
    return body + CHECK.pack(zlib.crc32(body))


def decode(data: bytes) -> Frame:
    """The frame of one datagram. LinkFrameError says what is wrong: magic, length, crc, type, time
    or mode.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise LinkFrameError(
            "magic",
            f"begins with {data[:4].hex(' ') or 'nothing'}, expected {MAGIC.hex(' ')} (LAV1)",
        )
    if len(data) < HEADER.size + CHECK.size:
        raise _wrong_length(len(data), f"{HEADER.size + CHECK.size} or more for a whole frame")
    _, kind, flags, length, sequence, time = HEADER.unpack_from(data)
    end = HEADER.size + length
    if length > MAX_PAYLOAD or len(data) != end + CHECK.size:
        raise LinkFrameError(
            "length", f"{len(data)} bytes, and its header tells of a payload of {length}"
        )
    found = CHECK.unpack_from(data, end)[0]
    if found != zlib.crc32(data[:end]):
        raise LinkFrameError(
            "crc", f"CRC-32 {found:08x}, the content has {zlib.crc32(data[:end]):08x}"
        )
    if kind not in _PAYLOADS:
        raise LinkFrameError("type", f"type {kind}, expected 1 to {max(_PAYLOADS):d}")
    if not math.isfinite(time):
        raise LinkFrameError("time", f"time {time}, expected a finite number of seconds")
    frame_type = FrameType(kind)
    return Frame(
        frame_type, flags, sequence, _PAYLOADS[frame_type].unpack(time, data[HEADER.size : end])
    )


REASONS = ("magic", "length", "crc", "type", "time", "mode")
"""for which a frame is refused; on a stream `magic` counts the places where something else stood,
not its bytes
"""


class FrameReader:
    """Takes a stream's bytes as they come and finds the frames in them; after anything else at the
    next magic.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._lost = False
        self.counters = dict.fromkeys(REASONS, 0)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole now. Keeps less than `MAX_FRAME` bytes."""
        data = self._rest + data
        at = 0
        found = list[Frame]()
        while True:
            start = data.find(MAGIC, at)
            if start < 0:
                start = len(data) - _beginning_at_the_end(data[at:])
            if start > at and not self._lost:
                self.counters["magic"] += 1
                self._lost = True
            at = start
            if len(data) - at < HEADER.size:
                break
            length = HEADER.unpack_from(data, at)[3]
            end = at + HEADER.size + length + CHECK.size
            if length <= MAX_PAYLOAD and end > len(data):
                break
            try:
                if length > MAX_PAYLOAD:
                    raise LinkFrameError(
                        "length", f"a payload of {length} bytes, at most {MAX_PAYLOAD}"
                    )
                found.append(decode(data[at:end]))
                at = end
                self._lost = False
            except LinkFrameError as error:
                self.counters[error.reason] += 1
                # a wrong length or check may hide the next frame within this one; what has both
                # right is one
                whole = error.reason not in ("length", "crc") or (
                    length <= MAX_PAYLOAD
                    and CHECK.unpack_from(data, end - 4)[0] == zlib.crc32(data[at : end - 4])
                )
                at, self._lost = (end, False) if whole else (at + len(MAGIC), True)
        self._rest = data[at:]
        return found


def _beginning_at_the_end(data: bytes) -> int:
    """How many of the last bytes could begin a magic."""
    return next((k for k in (3, 2, 1) if data.endswith(MAGIC[:k])), 0)


def _wrong_length(found: int, expected: str) -> LinkFrameError:
    return LinkFrameError("length", f"{found} bytes, expected {expected}")


@functools.lru_cache(maxsize=64)
def _doubles(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}d")
