# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Capture and replay of RflySim3D's datagrams with progress and a summary.

It serves `rfly record` and `rfly replay`.
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
from rfly_bringup.topic_recording.topics import IdMap, RecordLimits, TopicChoice
from rfly_common.errors import ConfigError
from rfly_common.startup import interrupt, stop_by_signal
from rfly_common.untrusted_files.bag_reader import Bag, open_bag
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter, RecordingReader
from rfly_ue_bridge.datagram_recording.recorder import Recorder
from rfly_ue_bridge.datagram_recording.replay import Destinations, ReplayReport, Target, replay

_POLL_S = 0.1
_DRAIN_S = 0.5
"""Longest time after a signal to fetch what the system still holds, if datagrams keep coming, s."""
_MAX_RECORD = 16 + 65535
"""Largest record of a pcap file, bytes."""

_SHOW_NS = 500_000_000
"""Time between updates of the progress, ns."""
_CALM_NS = 10_000_000
"""Shortest gap in which the bar is drawn, ns: drawing takes about a millisecond."""
_OVERDUE_NS = 5_000_000_000
"""Time after which the bar is drawn without a gap too, ns."""


def record_to(
    out: str,
    bind: str,
    ports: range,
    forward_to: tuple[str, int] | None,
    limits: RecordLimits,
    *,
    overwrite: bool,
) -> None:
    """Record until a limit, Ctrl-C, SIGTERM or SIGHUP; the file then holds all that has arrived.

    Raise ConfigError for ports that are in use or a file that exists.
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
            # the interpreter flushes once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
        _print_summary(recorder, writer, time.monotonic() - start, console)


def _record(
    recorder: Recorder,
    writer: PcapWriter,
    limits: RecordLimits,
    console: Console,
    start: float,
    stopped: Callable[[], bool],
) -> None:
    """Record until a limit or `stopped`, then empty the sockets, within _DRAIN_S."""
    drained_by = math.inf
    with console.status("waiting for the first datagram") as status:
        shown_ns = 0
        while True:
            # datagrams that fit into each limit
            rooms = []
            if limits.number:
                rooms.append(limits.number - recorder.datagrams)
            if limits.bytes:
                rooms.append(int((limits.bytes - writer.bytes) // _MAX_RECORD))
            if min(rooms, default=1) < 1:
                return

            stopping = stopped()
            if stopping:
                drained_by = min(drained_by, time.monotonic() + _DRAIN_S)
            recorded = recorder.poll(writer, 0.0 if stopping else _POLL_S, min(rooms, default=None))
            if stopping and (not recorded or time.monotonic() > drained_by):
                return
            elapsed = time.monotonic() - start
            if 0 < limits.seconds <= elapsed:
                return

            # progress
            now_ns = time.monotonic_ns()
            if recorder.datagrams and now_ns - shown_ns > _SHOW_NS:
                shown_ns = now_ns
                megabytes = writer.bytes / 1e6
                status.update(
                    f"{recorder.datagrams:,} datagrams, {megabytes:.1f} MB, {elapsed:.0f} s"
                )


def _print_summary(
    recorder: Recorder, writer: PcapWriter, seconds: float, console: Console
) -> None:
    """Print what was recorded, dropped and passed on."""
    console.print(f"{recorder.datagrams} datagrams, {writer.bytes} bytes in {seconds:.1f} s")
    if recorder.dropped:
        console.print(
            f"the system dropped {recorder.dropped} more: they came too fast",
            style="yellow",
        )
    if recorder.forward is not None:
        console.print(f"passed on: {recorder.forward.sent}")
        for window in recorder.forward.windows:
            if window.errors:
                console.print(f"{window}: {window.last_error}", style="yellow")


@contextmanager
def _output(out: str, overwrite: bool) -> Iterator[BinaryIO]:
    """Open the file to write, or standard output for "-".

    Raise ConfigError for a file that exists, or that the system writes no further.
    """
    if out == "-":
        yield sys.stdout.buffer
        return
    try:
        file = open(out, "wb" if overwrite else "xb")  # noqa: SIM115  closed below
    except FileExistsError:
        raise ConfigError(f"{out} exists; choose another name or add --overwrite") from None
    try:
        with file:
            yield file
    except OSError as error:
        raise ConfigError(
            f"{out}: {error.strerror}: the recording has ended; what it holds can be replayed"
        ) from error


def replay_from(
    path: Path, target: Target, ids: IdMap, *, speed: float, passes: int, pause_s: float
) -> None:
    """Replay until the end or Ctrl-C, and print what was sent and how timely.

    Raise the errors of `replay`.
    """
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
            try:
                replay(
                    reader,
                    destinations.send,
                    ports=target.recorded,
                    speed=speed,
                    passes=passes,
                    pause_s=pause_s,
                    tables=(TO_RFLYSIM3D, FROM_RFLYSIM3D),
                    new_ids=ids.of if ids else None,
                    progress=show,
                    report=report,
                )
            except ConfigError as error:
                if not reader.skipped:
                    raise
                raise ConfigError(f"{error}; {reader.skipped.text()}") from error
        error_texts = destinations.error_texts()
    finally:
        destinations.close()

    print(_report_text(report, target, timed=speed > 0))
    for text in (*_notes(report, reader), *ids.notes(), *error_texts):
        console.print(text, style="yellow", markup=False)


def play_from(
    path: Path,
    choice: TopicChoice,
    names: dict[str, str],
    ids: IdMap,
    *,
    speed: float,
    passes: int,
    pause_s: float,
) -> None:
    """Publish the messages of a recording until its end or Ctrl-C, and print a report.

    `names`: new names of topics by those of the recording.
    """
    with needs_ros("replaying topics"):
        from rfly_bringup.ros.play_topics import play_topics

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with (
        open_bag(path) as reader,
        _progress_bar(reader, passes, console, "messages") as show,
    ):
        report, *notes = play_topics(
            reader,
            choice,
            names,
            ids,
            speed=speed,
            passes=passes,
            pause_s=pause_s,
            progress=show,
        )
    print(report)
    for text in notes:
        console.print(text, style="yellow", markup=False)


def recover_mcap(source: Path, out: str, *, overwrite: bool) -> None:
    """Write a whole MCAP file from one that was cut off, and print what it holds."""
    from rfly_bringup.topic_recording.mcap_file import recover

    recovery = recover(source, Path(out), overwrite=overwrite)
    print(
        f"{out}: {recovery.messages} messages on {recovery.topics} topics, {recovery.seconds:.1f} s"
    )
    if recovery.left_out:
        print(f"rfly: {source}: {recovery.left_out.text()}", file=sys.stderr)


@contextmanager
def _progress_bar(
    reader: RecordingReader | Bag, passes: int, console: Console, things: str = "datagrams"
) -> Iterator[Callable[[ReplayReport, int], None]]:
    """Show a progress bar, drawn only while the next datagram is not due."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        auto_refresh=False,  # a drawing thread would block the interpreter when a datagram is due
        transient=True,
    )
    task = bar.add_task("replaying", total=max(reader.size, 1))

    shown_ns = time.monotonic_ns()

    def show(report: ReplayReport, to_next_ns: int) -> None:
        nonlocal shown_ns
        since_ns = time.monotonic_ns() - shown_ns
        if not bar.live.is_started or since_ns < _SHOW_NS:
            return
        if to_next_ns < _CALM_NS and since_ns < _OVERDUE_NS:
            return

        shown_ns += since_ns
        description = f"{report.sent:,} {things}"
        if passes != 1:
            description += f" pass {report.passes + 1}"
        if passes > 1:
            description += f"/{passes}"
        bar.update(task, completed=reader.position, description=description, refresh=True)

    with bar if console.is_terminal else nullcontext():
        yield show


def _report_text(report: ReplayReport, target: Target, *, timed: bool) -> str:
    """Return the line that says what was sent where, and how timely."""
    first = target.first_port
    where = f"{target.host}:{first}"
    if len(target.recorded) > 1:
        where += f"-{first + len(target.recorded) - 1}"
    seconds = report.duration_ns / 1e9
    size = f"{report.sent} datagrams, {report.payload_bytes} bytes"
    text = f"sent {size} to {where} in {seconds:.3f} s"

    if timed and report.sent:
        late = report.lateness
        worst = f"{late.worst_ns / 1000:.0f} µs (worst)"
        text += f"; late by {late.text(50)} (median), {late.text(99)} (99 %), {worst}"
    return text


def _notes(report: ReplayReport, reader: RecordingReader) -> Iterator[str]:
    """Yield a line for each reason for which something was not sent."""
    if report.truncated:
        yield f"{report.truncated}; what comes before it was sent"
    if report.other_ports:
        ports = ", ".join(f"{port} ({count})" for port, count in report.other_ports.most_common(8))
        yield f"left out, to other ports: {ports}"
    if reader.skipped:
        yield reader.skipped.text()
