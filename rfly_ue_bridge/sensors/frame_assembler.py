# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames of one sensor from its fragments.

Theory of operation. UDP loses, doubles and reorders datagrams, and nothing protects a frame but its
header, so a frame counts only if every fragment of it has arrived and nothing contradicts:

- Fragments belong together if frame number, time and number of fragments agree exactly.
- Two different fragments for one place contradict: the whole frame is given up.
- The header states a length. RflySim's SDK and its manual read it differently: as that of the
  datagram, of the fragment's payload, or of the whole frame. Fragments with different readings do
  not belong together.
- A frame is given up when a later one is complete, or `MAX_AGE_S` after its first fragment.
- A frame that comes again is dropped: RflySim3D repeats the last one if it has rendered no new one.

Time may jump back when the simulation restarts. A frame that is up to `LATE_S` older than the last
one counts as late; an older one, or one after a pause, begins a new run.

Behind headers of 24 bytes the time is all that tells frames apart. If it stands still (a vehicle
that only pose packets move may have no time), fragments of a repeated time are taken only in
order, from the first one on, and without a pause of more than `ORDERED_GAP_S`.

`FrameQueue` lies between the thread that joins frames and the one that decodes them.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.sensor_payloads import Fragment, decode_payload, read_fragment
from rfly_ue_bridge.codec.sensor_requests import VisionSensor

MAX_AGE_S = 0.5
"""Time after which an incomplete frame is given up, and a jump back is no longer late, s."""
LATE_S = 1.0
"""Frames that are older than the last by at most this are late, s."""
ORDERED_GAP_S = 0.02
"""Longest pause between fragments whose time does not tell frames apart, s."""
MAX_PENDING = 8
"""Incomplete frames that are kept; beyond that the oldest is given up."""
MAX_PENDING_BYTES = 64_000_000
"""Bytes of all incomplete frames, a little more than the largest frame; beyond that the oldest is
given up.
"""

COUNTERS = (
    "datagrams",
    "bytes",
    "frames",
    "length",
    "checksum",
    "header",
    "duplicates",
    "late",
    "contradictions",
    "incomplete",
    "undecodable",
    "unexpected_size",
    "repeated_time",
    "impossible_time",
    "not_in_time",
)
"""Names of the counters.

- datagrams, bytes: all that were added
- frames: complete frames
- length, checksum, header: datagrams that are no fragment
- duplicates: fragments that came again, and parts of frames that did
- late: fragments that are older than the last frame
- contradictions: frames with two different fragments in one place
- incomplete: frames that were given up
- undecodable: complete frames that are nothing that the sensor sends
- unexpected_size: pictures of another size than requested
- repeated_time: frames with the time of the one before
- impossible_time: frames whose time no stamp can hold; counted by who makes the stamps
- not_in_time: complete frames dropped before they were decoded; counted by who queues them
"""


class JoinedFrame(NamedTuple):
    """A complete frame, not decoded yet."""

    payload: bytes
    time: float
    """Time, s of simulation."""
    arrival: float
    """Arrival of its last fragment, s, by the clock of the caller."""


@dataclass(frozen=True)
class SensorFrame:
    """A complete frame of a sensor."""

    seq_id: int
    type_id: int
    time: float
    """Time, s of simulation."""
    arrival: float
    """Arrival of its last fragment, s, by the clock of the caller."""
    data: NDArray[Any]
    """Content, see `SensorData`."""
    form: str
    """jpeg, png or raw for pictures, 0, A or B for clouds (their generation), else record."""
    payload: bytes = field(repr=False)
    pose: NDArray[np.float32] | None = None
    """Pose of a cloud's sensor, (6,): x y z in m, roll pitch yaw in rad."""


class _Key(NamedTuple):
    """What all fragments of a frame have in common."""

    frame: int | None
    time: float
    parts: int
    """Number of its fragments."""
    length: str | int
    """What the header's length counts: the datagram, the payload, or the frame's bytes."""


class _Pending:
    """Fragments of an incomplete frame."""

    def __init__(self, arrival: float) -> None:
        self.start = arrival
        self.newest = arrival
        self.size = 0
        """Bytes so far."""
        self.parts: dict[int, bytes] = {}


class FrameAssembler:
    """Assembler of one sensor's frames; `add` takes its datagrams, whatever they hold."""

    def __init__(self, sensor: VisionSensor) -> None:
        self.sensor = sensor
        self.counters: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
        """Counts since the start, by `COUNTERS`."""
        self._pending: dict[_Key, _Pending] = {}
        self._last: tuple[_Key, JoinedFrame] | None = None
        self._ordered: _Key | None = None
        self._refused: _Key | None = None

    def add(self, datagram: bytes, arrival: float) -> list[SensorFrame]:
        """Return the frames that a datagram completes: one, or none.

        `arrival` is in s, by any steady clock.
        """
        joined = self.join(datagram, arrival)
        frame = None if joined is None else self.decode(joined)
        return [] if frame is None else [frame]

    def join(self, datagram: bytes, arrival: float) -> JoinedFrame | None:
        """Return the frame that a datagram completes, not decoded, or None."""
        self.counters["datagrams"] += 1
        self.counters["bytes"] += len(datagram)
        try:
            fragment = read_fragment(datagram)
            length = _meaning_of_length(fragment, len(datagram))
        except PacketError as error:
            self.counters[error.reason] += 1
            return None

        self.give_up_old(arrival)
        key = _Key(fragment.frame, fragment.time, fragment.count, length)
        if not self._is_wanted(key, arrival):
            return None
        if key == self._ordered and not self._is_next(key, fragment.index, arrival):
            return None

        pending = self._place(key, fragment, arrival)
        if pending is None or len(pending.parts) < fragment.count:
            return None
        return self._complete(key, pending, arrival)

    def give_up_old(self, now: float) -> None:
        """Forget the incomplete frames that have waited for too long, by the caller's clock."""
        for key in [k for k, p in self._pending.items() if now - p.start > MAX_AGE_S]:
            self._give_up(key)

    def decode(self, joined: JoinedFrame) -> SensorFrame | None:
        """Return a joined frame with its content, or None, counted, if it is undecodable."""
        sensor = self.sensor
        try:
            content = decode_payload(sensor, joined.payload)
        except PacketError as error:
            self.counters[error.reason] += 1
            return None

        is_file = content.form in ("jpeg", "png")
        if is_file and content.data.shape[:2] != (sensor.height, sensor.width):
            self.counters["unexpected_size"] += 1
        return SensorFrame(
            sensor.seq_id,
            sensor.type_id,
            joined.time,
            joined.arrival,
            content.data,
            content.form,
            joined.payload,
            content.pose,
        )

    def _is_wanted(self, key: _Key, arrival: float) -> bool:
        """Return whether a fragment may belong to a frame that is still to come."""
        if key == self._refused:
            return False
        if self._last is None:
            return True

        last_key, last = self._last
        if key.frame is not None and key.frame == last_key.frame and key.time >= last.time:
            self.counters["duplicates"] += 1
            return False
        if 0.0 < last.time - key.time <= LATE_S and arrival - last.arrival < MAX_AGE_S:
            self.counters["late"] += 1
            return False
        return True

    def _is_next(self, key: _Key, index: int, arrival: float) -> bool:
        """Return whether a fragment of a repeated time is the next one, or begins a frame."""
        pending = self._pending.get(key)
        if pending is not None:
            in_time = arrival - pending.newest <= ORDERED_GAP_S
            if in_time and index == len(pending.parts):
                return True
            self._give_up(key)

        if index:
            self.counters["duplicates"] += 1
        return index == 0

    def _place(self, key: _Key, fragment: Fragment, arrival: float) -> _Pending | None:
        """Put a fragment in its place; return its frame, None if the fragment is refused."""
        pending = self._pending.get(key)
        if pending is None:
            if len(self._pending) >= MAX_PENDING:
                self._give_up(next(iter(self._pending)))
            pending = self._pending[key] = _Pending(arrival)

        known = pending.parts.get(fragment.index)
        if known is None:
            pending.parts[fragment.index] = fragment.payload
            pending.size += len(fragment.payload)
            pending.newest = arrival
            while sum(each.size for each in self._pending.values()) > MAX_PENDING_BYTES:
                self._give_up(next(iter(self._pending)))
            return pending if key in self._pending else None
        if known == fragment.payload:
            self.counters["duplicates"] += 1
            return None

        # which of the two is right cannot be known
        self.counters["contradictions"] += 1
        del self._pending[key]
        if key.frame is None:
            self._ordered = key
        else:
            self._refused = key
        return None

    def _complete(self, key: _Key, pending: _Pending, arrival: float) -> JoinedFrame | None:
        """Return the frame of complete fragments, None for one that came before."""
        del self._pending[key]
        payload = b"".join(pending.parts[index] for index in range(key.parts))
        if isinstance(key.length, int) and key.length != len(payload):
            self.counters["length"] += key.parts
            return None
        if self._last is not None and key == self._last[0]:
            if payload == self._last[1].payload:
                self.counters["duplicates"] += key.parts
                return None
            self.counters["repeated_time"] += 1

        frame = JoinedFrame(payload, key.time, arrival)
        self._last = (key, frame)
        self._ordered = key if key.frame is None else None
        for other in [other for other in self._pending if other.time < frame.time]:
            self._give_up(other)
        self.counters["frames"] += 1
        return frame

    def _give_up(self, key: _Key) -> None:
        """Forget an incomplete frame and count it, or the repetition of the last one."""
        parts = self._pending.pop(key).parts
        if self._last is not None and key == self._last[0]:
            self.counters["duplicates"] += len(parts)
        else:
            self.counters["incomplete"] += 1


def _meaning_of_length(fragment: Fragment, size: int) -> str | int:
    """Return what a fragment's length counts: the datagram, the payload, or the frame's bytes.

    PacketError: `length` if it is none of them.
    """
    part = len(fragment.payload)
    if fragment.length == size:
        return "datagram"
    if fragment.length == part:
        return "payload"
    if fragment.count > 1 and fragment.length > part:
        return fragment.length
    raise PacketError("length", f"length {fragment.length} in a datagram of {size} bytes")


Item = TypeVar("Item")
MAX_BYTES = 64_000_000
"""Bytes that wait at most, a little more than the largest frame."""


class FrameQueue(Generic[Item]):
    """Bounded queue, which drops the oldest items: a newer frame is worth more."""

    def __init__(self, max_items: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._items: deque[tuple[Item, int]] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: Item, size: int) -> list[Item]:
        """Append an item of `size` bytes, and return those that were dropped for it."""
        dropped = []
        with self._changed:
            self._items.append((item, size))
            self._size += size
            while len(self._items) > 1 and (
                len(self._items) > self._max_items or self._size > self._max_bytes
            ):
                dropped.append(self._pop())
            self._changed.notify()
        return dropped

    def get(self, timeout_s: float | None = None) -> Item | None:
        """Wait for the oldest item and return it; None after the time-out, or when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed, timeout_s)
            return None if self._closed or not self._items else self._pop()

    def close(self) -> None:
        """Drop the frames that wait, and return None to all readers that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _pop(self) -> Item:
        item, size = self._items.popleft()
        self._size -= size
        return item
