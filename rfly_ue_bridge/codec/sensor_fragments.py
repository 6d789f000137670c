# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fragments in which RflySim3D sends the data of its cameras and lidars.

A frame is cut into datagrams of at most 60,000 bytes, each behind a header of 24 bytes (frames are
told apart by their time) or of 32 bytes (with a frame number). The first number tells which. The
datagrams do not say which sensor they are from: the port is the only identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.packets import Field, PacketType

MAX_FRAGMENT_BYTES = 60_000
"""Largest part of a frame that RflySim3D puts into one datagram, bytes."""
MAX_FRAGMENTS = 1_000
"""Most fragments of a frame that are accepted: 60 MB."""

_CHECKSUM = Field("checksum", "i")
_PLACE = (
    Field("length", "i", "bytes of this datagram with its header"),
    Field("index", "i", "0-based"),
    Field("count", "i", "fragments of the frame"),
)
_TIME = Field("time", "d", "s of simulation")

SENSOR_FRAGMENT_OLD = PacketType(
    "SensorFragment (old)", 24, (1234567890,), (_CHECKSUM, *_PLACE, _TIME)
)
"""Header of 24 bytes: fragments with the same time make a frame."""
SENSOR_FRAGMENT = PacketType(
    "SensorFragment",
    32,
    (1234567893,),
    (_CHECKSUM, *_PLACE, Field("frame", "i"), Field("reserved", "i", "0"), _TIME),
)
"""Header of 32 bytes: fragments with the same frame number and time make a frame."""

_HEADERS = {header.checksums[0]: header for header in (SENSOR_FRAGMENT_OLD, SENSOR_FRAGMENT)}


@dataclass(frozen=True)
class Fragment:
    """One datagram of a sensor's data."""

    length: int
    """Length that the header states, bytes."""
    index: int
    count: int
    frame: int | None
    """Number of the frame, None behind a header of 24 bytes."""
    time: float
    """Time of the frame, s of simulation."""
    payload: bytes


def read_fragment(datagram: bytes) -> Fragment:
    """Return the fragment in a datagram, whatever length its header states.

    PacketError: `length` of a datagram without room for a header, `checksum`, or `header` of an
    impossible place or time.
    """
    if len(datagram) < SENSOR_FRAGMENT_OLD.size:
        raise PacketError("length", f"{len(datagram)} bytes, a fragment has at least 24")
    checksum = SENSOR_FRAGMENT_OLD.checksum_struct.unpack_from(datagram)[0]
    header = _HEADERS.get(checksum)
    if header is None:
        expected = " or ".join(map(str, _HEADERS))
        raise PacketError("checksum", f"checksum {checksum}, a fragment has {expected}")
    if len(datagram) < header.size:
        raise PacketError("length", f"{len(datagram)} bytes, the header has {header.size}")

    _, length, index, count, *numbers = header.struct.unpack_from(datagram)
    time = numbers[-1]
    frame = numbers[0] if header is SENSOR_FRAGMENT else None
    if not (0 <= index < count <= MAX_FRAGMENTS and math.isfinite(time)):
        raise PacketError(
            "header",
            f"fragment {index} of {count} at {time} s, expected 0 to {MAX_FRAGMENTS - 1} "
            "and a finite time",
        )
    return Fragment(length, index, count, frame, time, datagram[header.size :])


def encode_fragments(payload: bytes, time: float, frame: int | None = None) -> list[bytes]:
    """Return the datagrams of a frame at a time, s of simulation.

    With a frame number (int32) they bear the header of 32 bytes, else that of 24.
    """
    header = SENSOR_FRAGMENT_OLD if frame is None else SENSOR_FRAGMENT
    numbers = (time,) if frame is None else (frame, 0, time)
    starts = range(0, max(len(payload), 1), MAX_FRAGMENT_BYTES)

    datagrams = []
    for index, start in enumerate(starts):
        part = payload[start : start + MAX_FRAGMENT_BYTES]
        place = (header.size + len(part), index, len(starts))
        datagrams.append(header.pack_flat(*place, *numbers) + part)
    return datagrams
