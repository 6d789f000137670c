"""Capture and replay of RflySim3D's datagrams with progress and a summary. For `rfly record` and
`rfly replay`.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from rfly_bringup.cli.options import needs_ros
from rfly_bringup.recording.mcap_file import McapReader
from rfly_bringup.recording.topics import RecordLimits, TopicChoice
from rfly_common.errors import ConfigError
from rfly_common.startup import interrupt, stop_by_signal
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D
from rfly_ue_bridge.recording.pcap import PcapWriter, RecordingReader
from rfly_ue_bridge.recording.recorder import Recorder
from rfly_ue_bridge.recording.replay import Destinations, ReplayReport, Target, replay

_POLL_S = 0.1
_DRAIN_S = 0.5
"""so long what the system holds is fetched after a signal, should more and more arrive"""
_SHOW_NS = 500_000_000
_MAX_RECORD = 16 + 65535
_CALM_NS = 10_000_000
"""the bar is drawn in gaps at least so long, since drawing takes about a millisecond"""
_OVERDUE_NS = 5_000_000_000


def record_to(
    out: str,
    bind: str,
    ports: range,
    forward_to: tuple[str, int] | None,
    limits: RecordLimits,
    *,
    overwrite: bool,
) -> None:
    """Record until a limit, Ctrl-C, SIGTERM or SIGHUP; what has arrived by then is in the file.

    Raises ConfigError for ports that cannot be had or a file that exists.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    start = time.monotonic()
    with (
        stop_by_signal() as stopped,
        Recorder(bind, ports, forward_to=forward_to) as recorder,
        _output(out, overwrite) as file,
    ):
        writer = PcapWriter(file)
        try:
            writer.flush()
            where = ", ".join(f"{bind}:{port}" for port in recorder.ports)
            console.print(f"recording {where} to {out}; Ctrl-C ends", style="dim")
            _record(recorder, writer, limits, console, start, stopped)
            writer.flush()
        except BrokenPipeError:  # the reader of a pipe, such as Wireshark, has gone
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), file.fileno()
            )  # the interpreter flushes once more at its end
        _print_summary(recorder, writer, time.monotonic() - start, console)


def _record(
    recorder: Recorder,
    writer: PcapWriter,
    limits: RecordLimits,
    console: Console,
    start: float,
    stopped: Callable[[], bool],
) -> None:
    drained_by = math.inf
    with console.status("waiting for the first datagram") as status:
        shown_ns = 0
        while True:
            rooms = []  # datagrams that surely may be taken still
            if limits.number:
                rooms.append(limits.number - recorder.datagrams)
            if limits.bytes:
                rooms.append(int((limits.bytes - writer.bytes) // _MAX_RECORD))
            if min(rooms, default=1) < 1:
                return
            stopping = stopped()
            if stopping:
                drained_by = min(drained_by, time.monotonic() + _DRAIN_S)
            taken = recorder.poll(writer, 0.0 if stopping else _POLL_S, min(rooms, default=None))
            if stopping and (not taken or time.monotonic() > drained_by):
                return
            elapsed = time.monotonic() - start
            if 0 < limits.seconds <= elapsed:
                return
            now_ns = time.monotonic_ns()
            if recorder.datagrams and now_ns - shown_ns > _SHOW_NS:
                shown_ns = now_ns
                status.update(
                    f"{recorder.datagrams:,} datagrams, {writer.bytes / 1e6:.1f} MB, "
                    f"{elapsed:.0f} s"
                )


def _print_summary(
    recorder: Recorder, writer: PcapWriter, seconds: float, console: Console
) -> None:
    console.print(f"{recorder.datagrams} datagrams, {writer.bytes} bytes in {seconds:.1f} s")
    if recorder.dropped:
        console.print(
            f"the system dropped {recorder.dropped} more: they came too quickly",
            style="yellow",
        )
    if recorder.forward is not None:
        console.print(f"passed on: {recorder.forward.sent}")
        for window in recorder.forward.windows:
            if window.errors:
                console.print(f"{window}: {window.last_error}", style="yellow")


@contextmanager
def _output(out: str, overwrite: bool) -> Iterator[BinaryIO]:
    if out == "-":
        yield sys.stdout.buffer
        return
    try:
        file = open(out, "wb" if overwrite else "xb")  # noqa: SIM115  closed below
    except FileExistsError:
        raise ConfigError(
            f"{out} exists; choose another name, or --force to write over it"
        ) from None
    with file:
        yield file


def replay_from(path: Path, target: Target, *, speed: float, passes: int, pause_s: float) -> None:
    """Replay until the end or Ctrl-C, and print what was sent and how timely. Errors as `replay`."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    destinations = Destinations(target)
    report = ReplayReport()
    try:
        with (
            RecordingReader(path) as reader,
            _progress_bar(reader, passes, console) as show,
            suppress(KeyboardInterrupt),
            stop_by_signal(interrupt),
        ):
            replay(
                reader,
                destinations.send,
                ports=target.recorded,
                speed=speed,
                passes=passes,
                pause_s=pause_s,
                tables=(TO_RFLYSIM3D, FROM_RFLYSIM3D),
                progress=show,
                report=report,
            )
        error_texts = destinations.error_texts()
    finally:
        destinations.close()
    print(_report_text(report, target, timed=speed > 0))
    for text in (*_notes(report, reader), *error_texts):
        console.print(text, style="yellow", markup=False)


def play_from(
    path: Path, choice: TopicChoice, *, speed: float, passes: int, pause_s: float
) -> None:
    """Publish the messages of an MCAP file until its end or Ctrl-C, and print what was done."""
    with needs_ros("replaying topics"):
        from rfly_bringup.cli.ros.play_topics import play_topics
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with (
        McapReader(path) as reader,
        _progress_bar(reader, passes, console, "messages") as show,
    ):
        done, *notes = play_topics(
            reader, choice, speed=speed, passes=passes, pause_s=pause_s, progress=show
        )
    print(done)
    for text in notes:
        console.print(text, style="yellow", markup=False)


@contextmanager
def _progress_bar(
    reader: RecordingReader | McapReader, passes: int, console: Console, things: str = "datagrams"
) -> Iterator[Callable[[ReplayReport, int], None]]:
    """The progress bar, drawn only where the next datagram is some way off."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        auto_refresh=False,  # a thread that draws would hold the interpreter when a datagram is due
        transient=True,
    )
    task = bar.add_task("replaying", total=max(reader.size, 1))
    shown_ns = time.monotonic_ns()

    def show(report: ReplayReport, to_next_ns: int) -> None:
        nonlocal shown_ns
        since_ns = time.monotonic_ns() - shown_ns
        if (
            not bar.live.is_started
            or since_ns < _SHOW_NS
            or (to_next_ns < _CALM_NS and since_ns < _OVERDUE_NS)
        ):
            return
        shown_ns += since_ns
        of = "" if passes == 1 else f" pass {report.passes + 1}" + (f"/{passes}" if passes else "")
        bar.update(
            task,
            completed=reader.position,
            description=f"{report.sent:,} {things}{of}",
            refresh=True,
        )

    with bar if console.is_terminal else nullcontext():
        yield show


def _report_text(report: ReplayReport, target: Target, *, timed: bool) -> str:
    first = target.first_port
    where = f"{target.host}:{first}" + (
        f"-{first + len(target.recorded) - 1}" if len(target.recorded) > 1 else ""
    )
    text = f"sent {report.sent} datagrams, {report.payload_bytes} bytes to {where} in {report.duration_ns / 1e9:.3f} s"
    if timed and report.sent:
        late = report.lateness
        text += f"; late by {late.text(50)} (median), {late.text(99)} (99 %), {late.worst_ns / 1000:.0f} µs (worst)"
    return text


def _notes(report: ReplayReport, reader: RecordingReader) -> Iterator[str]:
    if report.truncated:
        yield f"{report.truncated}; what comes before it was sent"
    if report.other_ports:
        ports = ", ".join(f"{port} ({count})" for port, count in report.other_ports.most_common(8))
        yield f"left out, to other ports: {ports}"
    if reader.skipped:
        yield "left out: " + ", ".join(
            f"{reason} {count}" for reason, count in reader.skipped.most_common()
        )
