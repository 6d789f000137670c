# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly record --mcap` and `rfly view --foxglove`: topics to a file or to Foxglove."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.node import Node
from rich.console import Console

from rfly_bringup.ros.command_client import command_session
from rfly_bringup.ros.recorder_node import RecorderNode
from rfly_bringup.ros.topic_taps import TopicTaps
from rfly_bringup.topic_recording.topics import RecordLimits, TopicChoice
from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_common.startup import stop_by_signal

_LAST_S = 0.3
"""Time after a signal in which messages that are under way are still recorded, s."""
_REFRESH_S = 0.3
"""Time between two looks for topics to serve, s."""
_REPORT_S = 1.0
"""Time between two reports on clients, s."""


def record_topics(
    out: str,
    topics: Sequence[str],
    exclude: Sequence[str],
    limits: RecordLimits,
    *,
    overwrite: bool,
) -> None:
    """Record until a limit, Ctrl-C, SIGTERM or SIGHUP, and print what was recorded.

    Raise ConfigError for a file that exists or an expression that is wrong, and if the disk is
    full.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    settings: dict[str, Any] = {
        "file": out,
        "overwrite": overwrite,
        "topics": list(topics),
        "exclude": list(exclude),
    }
    overrides = [
        rclpy.Parameter(name, value=value) for name, value in settings.items() if value != []
    ]

    start = time.monotonic()
    with stop_by_signal() as stopped:
        make_node = lambda: RecorderNode(parameter_overrides=overrides, use_global_arguments=False)  # noqa: E731
        with (
            command_session(make_node) as (node, executor),
            console.status("waiting for the first message") as status,
        ):
            writer = node.writer
            console.print(f"recording to {writer.path}; Ctrl-C ends", style="dim")
            shown = start
            end = math.inf
            while not node.ended and time.monotonic() <= end:
                executor.spin_once(timeout_sec=0.05)
                now = time.monotonic()
                if 0 < limits.number <= writer.messages or 0 < limits.bytes <= writer.size:
                    break
                if 0 < limits.seconds <= now - start:
                    break
                if stopped():
                    end = min(end, now + _LAST_S)

                if writer.messages and now - shown > 0.5:
                    shown = now
                    size = f"{writer.size / 1e6:.1f} MB, {now - start:.0f} s"
                    status.update(f"{writer.messages:,} messages on {writer.topics} topics, {size}")

            # printed before the node is taken down, which may take longer than a stop may
            node.close()
            seconds = time.monotonic() - start
            if not node.ended:
                console.print(
                    f"{writer.messages} messages on {writer.topics} topics, {writer.size} bytes in "
                    f"{seconds:.1f} s"
                )

    for reason in node.left_out:
        console.print(f"left out: {reason}", style="yellow", markup=False)
    if node.ended:
        raise ConfigError(
            f"the recording has ended: {node.ended}; rfly record --recover makes a whole file of "
            "what it holds"
        )


def serve_foxglove(host: str, port: int, choice: TopicChoice, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP; `say` gets the address.

    Clients that are cut off or refused are counted on the error output, once a second at most.

    Raise ConfigError for an address in use.
    """
    require("websockets", "rfly view --foxglove")
    from rfly_bringup.topic_recording.foxglove_server import FoxgloveServer

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    reported = Counter[str]()
    next_report = 0.0
    with stop_by_signal() as stopped:
        server = FoxgloveServer(host, port)
        try:
            make_node = lambda: Node("rfly_foxglove", use_global_arguments=False)  # noqa: E731
            with command_session(make_node) as (node, executor):
                taps = TopicTaps(node, server, choice)
                node.create_timer(_REFRESH_S, taps.refresh)
                say(server.address)
                while not stopped():
                    executor.spin_once(timeout_sec=0.1)
                    now = time.monotonic()
                    if now < next_report:
                        continue

                    next_report = now + _REPORT_S
                    counts = server.turned_away()
                    for text, count in (counts - reported).items():
                        console.print(f"{count} client(s) {text}", style="yellow", markup=False)
                    reported = counts
        finally:
            server.close()
