"""Replay of a recording with its original timing.

Datagram n leaves at start + (t_n - t_0) / speed of one steady clock, so that lateness never adds
up. To meet that time within microseconds the last stretch is waited out in a busy loop (`SPIN_NS`),
the rest asleep. A recording whose clock went back sends what seems to be earlier at once.
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
from rfly_ue_bridge.recording.datagrams import RecordedDatagram
from rfly_ue_bridge.sockets.udp_sender import UdpSender

SPIN_NS = 2_000_000 if sys.platform == "win32" else 200_000
"""waited in a busy loop before each datagram: a sleep may end so much later than asked"""
MAX_SLEEP_NS = 100_000_000
"""so long a wait may go on before Ctrl-C is seen, and the progress told"""
WINDOWS = 64
"""ports from 20010 that count as RflySim3D windows unless told otherwise"""

MIN_SPEED = 1e-3
MAX_SPEED = 1e6
"""a minute lasts 17 hours, a year half a minute: beyond it nobody could tell from standing still or
from 0
"""
MAX_PAUSE_S = 86_400.0

_LATENESS_LIMIT_US = 100_000


class Clock:
    """The system's steady clock."""

    def now_ns(self) -> int:
        """Nanoseconds since some time in the past."""
        return time.perf_counter_ns()

    def sleep(self, ns: int) -> None:
        """Give the processor away for about that time."""
        time.sleep(ns * 1e-9)


class Lateness:
    """How late datagrams left, to the microsecond, in bounded memory."""

    def __init__(self) -> None:
        self._counts = np.zeros(_LATENESS_LIMIT_US + 1, np.int64)
        self.worst_ns = 0

    def add(self, ns: int) -> None:
        self.worst_ns = max(self.worst_ns, ns)
        self._counts[min(max(ns, 0) // 1000, _LATENESS_LIMIT_US)] += 1

    def percentile_us(self, percent: float) -> int:
        """So many percent left at most that many whole microseconds late; 100,000 stands for that
        or more.
        """
        total = int(self._counts.sum())
        if total == 0:
            return 0
        return int(np.searchsorted(np.cumsum(self._counts), percent / 100.0 * total))

    def text(self, percent: float) -> str:
        """The percentile with its unit."""
        late_us = self.percentile_us(percent)
        return f"{late_us} µs" + (" or more" if late_us == _LATENESS_LIMIT_US else "")


@dataclass
class ReplayReport:
    """What became of a replay."""

    sent: int = 0
    payload_bytes: int = 0
    passes: int = 0
    duration_ns: int = 0
    """from the first datagram to the last, over all passes"""
    lateness: Lateness = field(default_factory=Lateness)
    other_ports: Counter[int] = field(default_factory=Counter)
    """datagrams left out because they went to ports that were not chosen"""
    truncated: str = ""
    """where the recording ends within a record, if it does"""


@dataclass(frozen=True)
class Target:
    """Which ports of the recording are replayed, and where: the first of them goes to `port` of
    `host`.
    """

    recorded: range = range(WINDOW_PORT, WINDOW_PORT + WINDOWS)
    host: str = DEFAULT_HOST
    port: int | None = None
    """None: the same port"""

    def __post_init__(self) -> None:
        if not self.recorded or self.recorded[0] < 1 or self.recorded[-1] > 65535:
            text = f"{self.recorded.start} to {self.recorded.stop - 1}"
            raise ConfigError(
                f"ports {text} of the recording: expected 1 port or more, within 1 to 65535"
            )
        last = self.first_port + len(self.recorded) - 1
        if self.first_port < 1 or last > 65535:
            raise ConfigError(
                f"ports {self.first_port} to {last} for {len(self.recorded)} ports: expected 1 to 65535"
            )

    @property
    def first_port(self) -> int:
        return self.recorded[0] if self.port is None else self.port


class Destinations:
    """A sender for each port of the target, made when its first datagram is due."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._senders: dict[int, UdpSender] = {}

    def send(self, port: int, payload: bytes | memoryview) -> None:
        """Send what went to that port of the recording."""
        sender = self._senders.get(port)
        if sender is None:
            new_port = port - self._target.recorded[0] + self._target.first_port
            sender = self._senders[port] = UdpSender(self._target.host, new_port)
        sender.send(payload)

    def error_texts(self) -> list[str]:
        """One line for each port that refused something or could not be sent to."""
        texts = []
        for sender in self._senders.values():
            for window in sender.windows:
                if window.errors:
                    where = f"{window.address[0]}:{window.address[1]}"
                    texts.append(
                        f"{where}: {window.last_error} ({sum(window.errors.values())} times)"
                    )
            texts += [
                f"{self._target.host}:{port}: nobody listens there"
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
    clock: Clock | None = None,
    progress: Callable[[ReplayReport, int], None] | None = None,
    report: ReplayReport | None = None,
) -> ReplayReport:
    """Call `send(port, payload)` for every datagram to one of `ports` at its time; returns what was
    done.

    `recording` is gone through `passes` times (0: until the caller raises), `pause_s` between the
    last datagram of one pass and the first of the next. `speed` 2 is twice as quick, 0 means at
    once, without waiting. `tables`: see `single_datagrams`. `progress(report, ns to the next
    datagram)` is called while there is time, now and then. `report`, where given, is the one
    filled, so that it can be read when `send` or `progress` raises. Raises ConfigError for a
    recording without a datagram to these ports, CaptureError as `RecordingReader`; of a recording
    that ends within a record, the whole ones are sent and the report says so.
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
        for datagram in _whole(recording, report):
            port = datagram.destination[1]
            if port not in ports:
                if report.passes == 0:
                    report.other_ports[port] += 1
                continue
            if first_ns is None:
                first_ns = datagram.time_ns
            if speed:
                due_ns = max(due_ns, base_ns + round((datagram.time_ns - first_ns) / speed))
            if start_ns is None:
                start_ns = clock.now_ns() - due_ns
            if speed:
                report.lateness.add(_wait_until(start_ns + due_ns, clock, report, progress))
            elif progress is not None:
                progress(report, 0)
            for payload in single_datagrams(datagram.payload, tables):
                send(port, payload)
                report.sent += 1
                report.payload_bytes += len(payload)
            report.duration_ns = clock.now_ns() - start_ns
        if first_ns is None:
            raise ConfigError(_nothing_to_send(ports, report))
        report.passes += 1
    return report


def single_datagrams(payload: bytes, tables: Sequence[PacketTable]) -> Iterable[bytes | memoryview]:
    """The datagrams in a payload: one, or several packets of one type that a capture shows as one.

    Linux hands datagrams that were sent in one call (UDP_SEGMENT, as our bridge does on loopback)
    to tcpdump before it cuts them apart. Such a payload is no packet of the tables, but nothing but
    packets of one size.
    """
    if not any(_recognised(payload, table) for table in tables):
        for table in tables:
            for size in sorted(
                {packet_type.size for packet_type in table if packet_type.size < len(payload)}
            ):
                if len(payload) % size == 0:
                    view = memoryview(payload)
                    pieces = [view[start : start + size] for start in range(0, len(payload), size)]
                    if all(_recognised(piece, table) for piece in pieces):
                        return pieces
    return (payload,)


def _recognised(datagram: bytes | memoryview, table: PacketTable) -> bool:
    try:
        table.find(datagram)
    except PacketError:
        return False
    return True


def _whole(
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
    """Wait, and return by how much the time has passed, ns."""
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
    wanted = f"{ports[0]} to {ports[-1]}" if len(ports) > 1 else f"{ports[0]}"
    if not report.other_ports:
        return f"the recording holds no UDP datagram at all{f' ({report.truncated})' if report.truncated else ''}"
    found = ", ".join(f"{port} ({count})" for port, count in report.other_ports.most_common(8))
    return f"the recording holds no datagram to port {wanted}; it holds some to {found}"
