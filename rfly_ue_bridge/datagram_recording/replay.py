# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Replay of a recording with its original timing.

Datagram n leaves at start + (t_n - t_0) / speed of one steady clock, so that delays never add up.
To meet that time within microseconds the last stretch is waited out in a busy loop (`SPIN_NS`), the
rest asleep. If the recording's clock went back, datagrams that seem to be earlier leave at once.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rfly_common.errors import ConfigError, PacketError, TruncatedCaptureError
from rfly_ue_bridge.codec.addresses import DEFAULT_HOST, WINDOW_PORT
from rfly_ue_bridge.codec.packets import PacketTable
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.sockets.udp_sender import UdpSender

SPIN_NS = 2_000_000 if sys.platform == "win32" else 200_000
"""Time before each datagram that is waited in a busy loop, ns: a sleep may end this late."""
MAX_SLEEP_NS = 100_000_000
"""Longest sleep, ns, before Ctrl-C is seen and the progress reported."""
WINDOWS = 64
"""Number of ports from 20010 that count as RflySim3D windows by default."""

MIN_SPEED = 1e-3
"""Slowest replay: a minute lasts 17 hours, which looks like standing still."""
MAX_SPEED = 1e6
"""Fastest replay: a year lasts half a minute, which looks like no waiting at all."""
MAX_PAUSE_S = 86_400.0
"""Longest pause between two passes, s."""

_LATENESS_LIMIT_US = 100_000
_ID_FIELDS = {"copterID", "CopterIDs"}
"""Fields of packets that hold ids of vehicles."""


class Clock:
    """The system's steady clock."""

    def now_ns(self) -> int:
        """Return nanoseconds since some time in the past."""
        return time.perf_counter_ns()

    def sleep(self, ns: int) -> None:
        """Sleep for about that time."""
        time.sleep(ns * 1e-9)


class Lateness:
    """Histogram of how late datagrams left, to the microsecond, in bounded memory."""

    def __init__(self) -> None:
        self._counts = np.zeros(_LATENESS_LIMIT_US + 1, np.int64)
        self.worst_ns = 0

    def add(self, ns: int) -> None:
        self.worst_ns = max(self.worst_ns, ns)
        self._counts[min(max(ns, 0) // 1000, _LATENESS_LIMIT_US)] += 1

    def percentile_us(self, percent: float) -> int:
        """Return the lateness, whole µs, that `percent` of the datagrams stay within.

        100,000 stands for that or more.
        """
        total = int(self._counts.sum())
        if total == 0:
            return 0
        return int(np.searchsorted(np.cumsum(self._counts), percent / 100.0 * total))

    def text(self, percent: float) -> str:
        """Return the percentile with its unit."""
        late_us = self.percentile_us(percent)
        return f"{late_us} µs" + (" or more" if late_us == _LATENESS_LIMIT_US else "")


@dataclass
class ReplayReport:
    """Result of a replay."""

    sent: int = 0
    payload_bytes: int = 0
    passes: int = 0
    duration_ns: int = 0
    """Time from the first datagram to the last, over all passes, ns."""
    lateness: Lateness = field(default_factory=Lateness)
    other_ports: Counter[int] = field(default_factory=Counter)
    """Datagrams left out because they went to ports that were not chosen, by port."""
    truncated: str = ""
    """Error message of a recording that ends within a record; empty if it does not."""


@dataclass(frozen=True)
class Target:
    """Ports of the recording that are replayed, and their destination.

    The first of them goes to `port` of `host`.
    """

    recorded: range = range(WINDOW_PORT, WINDOW_PORT + WINDOWS)
    host: str = DEFAULT_HOST
    port: int | None = None
    """First port of the destination; None: the recorded one."""

    def __post_init__(self) -> None:
        if not self.recorded or self.recorded[0] < 1 or self.recorded[-1] > 65535:
            text = f"{self.recorded.start} to {self.recorded.stop - 1}"
            raise ConfigError(
                f"ports {text} of the recording: expected 1 port or more, within 1 to 65535"
            )
        last = self.first_port + len(self.recorded) - 1
        if self.first_port < 1 or last > 65535:
            raise ConfigError(
                f"ports {self.first_port} to {last} for {len(self.recorded)} ports: "
                "expected 1 to 65535"
            )

    @property
    def first_port(self) -> int:
        return self.recorded[0] if self.port is None else self.port


class Destinations:
    """Senders for the ports of the target, each made when its first datagram is due."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._senders: dict[int, UdpSender] = {}

    def send(self, port: int, payload: bytes | memoryview) -> None:
        """Send a datagram that went to that port of the recording."""
        sender = self._senders.get(port)
        if sender is None:
            new_port = port - self._target.recorded[0] + self._target.first_port
            sender = self._senders[port] = UdpSender(self._target.host, new_port)
        sender.send(payload)

    def error_texts(self) -> list[str]:
        """Return one line for each port that refused something or could not be reached."""
        texts = []
        for sender in self._senders.values():
            for window in sender.windows:
                if window.errors:
                    host, port = window.address
                    count = sum(window.errors.values())
                    texts.append(f"{host}:{port}: {window.last_error} ({count} times)")
            texts += [
                f"{self._target.host}:{port}: nothing listens there"
                for port in sender.closed_ports()
            ]
        return texts

    def close(self) -> None:
        """Close all sockets."""
        for sender in self._senders.values():
            sender.close()


def replay(
    recording: Iterable[RecordedDatagram],
    send: Callable[[int, bytes | memoryview], None],
    *,
    ports: range,
    speed: float = 1.0,
    passes: int = 1,
    pause_s: float = 0.02,
    tables: Sequence[PacketTable] = (),
    new_ids: Callable[[Iterable[int]], list[int]] | None = None,
    clock: Clock | None = None,
    progress: Callable[[ReplayReport, int], None] | None = None,
    report: ReplayReport | None = None,
) -> ReplayReport:
    """Call `send(port, payload)` for every datagram to one of `ports` at its time; return a report.

    `recording` is read `passes` times (0: until the caller raises), with `pause_s` between the last
    datagram of one pass and the first of the next. `speed` 2 is twice as quick; 0 does not wait at
    all. `tables`: see `single_datagrams`. `new_ids`: see `with_new_ids`. `progress` is called now
    and then, while there is time, with the report and the ns to the next datagram. A given `report`
    is filled, so that it can be read if `send` or `progress` raises. Raises ConfigError for a
    recording without a datagram to these ports, CaptureError as `RecordingReader`; if a recording
    ends within a record, the whole records are sent and the report says so.
    """
    if not (speed == 0 or MIN_SPEED <= speed <= MAX_SPEED):
        raise ConfigError(
            f"speed {speed:g}: expected {MIN_SPEED:g} to {MAX_SPEED:g}, or 0 for without waiting"
        )
    if not 0 < pause_s <= MAX_PAUSE_S:
        raise ConfigError(f"pause {pause_s:g} s: expected more than 0 and at most {MAX_PAUSE_S:g}")

    report = ReplayReport() if report is None else report
    clock = Clock() if clock is None else clock
    start_ns: int | None = None
    due_ns = 0

    while passes == 0 or report.passes < passes:
        first_ns: int | None = None
        base_ns = due_ns + round(pause_s * 1e9) if report.passes else 0

        for datagram in _whole_records(recording, report):
            port = datagram.destination[1]
            if port not in ports:
                if report.passes == 0:
                    report.other_ports[port] += 1
                continue
            if first_ns is None:
                first_ns = datagram.time_ns

            # wait for its time
            if speed:
                due_ns = max(due_ns, base_ns + round((datagram.time_ns - first_ns) / speed))
            if start_ns is None:
                start_ns = clock.now_ns() - due_ns
            if speed:
                report.lateness.add(_wait_until(start_ns + due_ns, clock, report, progress))
            elif progress is not None:
                progress(report, 0)

            for payload in single_datagrams(datagram.payload, tables):
                sent = payload if new_ids is None else with_new_ids(payload, tables, new_ids)
                send(port, sent)
                report.sent += 1
                report.payload_bytes += len(sent)
            report.duration_ns = clock.now_ns() - start_ns

        if first_ns is None:
            raise ConfigError(_nothing_to_send(ports, report))
        report.passes += 1
    return report


def single_datagrams(payload: bytes, tables: Sequence[PacketTable]) -> Iterable[bytes | memoryview]:
    """Return the datagrams in a payload: one, or several packets of one type.

    Linux hands datagrams that were sent in one call (UDP_SEGMENT, as our bridge does on loopback)
    to tcpdump before it cuts them apart. Such a payload is no packet of the tables, and consists of
    packets of one size.
    """
    if any(_recognised(payload, table) for table in tables):
        return (payload,)
    view = memoryview(payload)
    for table in tables:
        for size in sorted({packet_type.size for packet_type in table}):
            if size >= len(payload) or len(payload) % size:
                continue
            pieces = [view[start : start + size] for start in range(0, len(payload), size)]
            if all(_recognised(piece, table) for piece in pieces):
                return pieces
    return (payload,)


def with_new_ids(
    payload: bytes | memoryview,
    tables: Sequence[PacketTable],
    new_ids: Callable[[Iterable[int]], list[int]],
) -> bytes | memoryview:
    """Return a datagram of the tables with other vehicle ids; any other as it is.

    Ids within the text of console commands stay.
    """
    for table in tables:
        if _recognised(payload, table):
            changed = bytearray(payload)
            (record,) = np.frombuffer(changed, table.find(payload).dtype)
            for name in _ID_FIELDS & set(record.dtype.names):
                ids = np.atleast_1d(record[name])
                record[name] = np.reshape(new_ids(ids.tolist()), np.shape(record[name]))
            return bytes(changed)
    return payload


def _recognised(datagram: bytes | memoryview, table: PacketTable) -> bool:
    try:
        table.find(datagram)
    except PacketError:
        return False
    return True


def _whole_records(
    recording: Iterable[RecordedDatagram], report: ReplayReport
) -> Iterator[RecordedDatagram]:
    try:
        yield from recording
    except TruncatedCaptureError as error:
        report.truncated = str(error)


def _wait_until(
    due_ns: int,
    clock: Clock,
    report: ReplayReport,
    progress: Callable[[ReplayReport, int], None] | None,
) -> int:
    """Wait until a time, and return how late it is then, ns."""
    left = due_ns - clock.now_ns()
    if progress is not None:
        progress(report, left)
        left = due_ns - clock.now_ns()
    while left > 0:
        if left > SPIN_NS:
            clock.sleep(min(left - SPIN_NS, MAX_SLEEP_NS))
            if progress is not None and left > MAX_SLEEP_NS:
                progress(report, due_ns - clock.now_ns())
        left = due_ns - clock.now_ns()
    return -left


def _nothing_to_send(ports: range, report: ReplayReport) -> str:
    if not report.other_ports:
        reason = f" ({report.truncated})" if report.truncated else ""
        return f"the recording holds no UDP datagram at all{reason}"
    wanted = f"{ports[0]} to {ports[-1]}" if len(ports) > 1 else f"{ports[0]}"
    found = ", ".join(f"{port} ({count})" for port, count in report.other_ports.most_common(8))
    return f"the recording holds no datagram to port {wanted}; it holds some to {found}"
