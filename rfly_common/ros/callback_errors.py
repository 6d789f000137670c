# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Errors in callbacks: each is logged and counted on /diagnostics, and the node continues.

No message may end a node, not even through rclpy's own callbacks: its time source raises if /clock
is negative, its parameter services if a type is unknown (docs/support.md). An error of this suite
that arrives here is a bug: its trace is logged at level debug.
"""

from __future__ import annotations

import functools
import inspect
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rclpy.node import Node

COUNTER = "errors_in_callbacks"
"""Key of the counter on /diagnostics."""
LOG_EVERY_S = 10.0
"""Least time between two logs of an error at the same place, s."""
LONGEST_TEXT = 300
"""Characters of an error's own text: contents of messages or files must not fill the log."""

_GUARDED = "rfly_guarded"
_logged_at: dict[str, float] = {}
"""Time of the last log by place, on the steady clock, s."""
_counts: Counter[str] = Counter()
"""Number of errors by the node's name."""


def errors_of(node: Node) -> int:
    """Return the number of errors in the node's callbacks."""
    return _counts[node.get_fully_qualified_name()]


def report_error(node: Node, error: BaseException) -> str:
    """Log and count an unexpected error; return one line about it."""
    place = _place(error)
    text = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_TEXT]
    _counts[node.get_fully_qualified_name()] += 1

    now = time.monotonic()
    if now - _logged_at.get(place, -LOG_EVERY_S) >= LOG_EVERY_S:
        _logged_at[place] = now
        node.get_logger().error(f"what came is dropped, by an error in {place}: {text}")
        node.get_logger().debug("".join(traceback.format_exception(error)))

    return f"an error in {place}, logged by the node"


def guard_callbacks(node: Node) -> None:
    """Guard the callbacks that a node has now, including rclpy's own.

    Services answer even if their callback raises: with `success` false and `message`, if they have
    these fields.
    """
    arrivals: list[Any] = [*node.subscriptions, *node.timers]
    for each in arrivals:
        each.callback = guarded(node, each.callback)
    for service in node.services:
        service.callback = guarded(node, service.callback, _no_success)


def guarded(
    node: Node,
    callback: Callable[..., Any],
    failed: Callable[..., Any] = lambda _text, *_arguments: None,
) -> Callable[..., Any]:
    """Return the callback or coroutine so that it raises nothing.

    After an error it returns `failed(text, *arguments)`.
    """
    if getattr(callback, _GUARDED, False):
        return callback
    if inspect.iscoroutinefunction(callback):

        @functools.wraps(callback)
        async def call_and_wait(*arguments: Any) -> Any:
            try:
                return await callback(*arguments)
            except Exception as error:  # noqa: BLE001  logged and counted
                return failed(report_error(node, error), *arguments)

        setattr(call_and_wait, _GUARDED, True)
        return call_and_wait

    @functools.wraps(callback)
    def call(*arguments: Any) -> Any:
        try:
            return callback(*arguments)
        except Exception as error:  # noqa: BLE001  logged and counted
            return failed(report_error(node, error), *arguments)

    setattr(call, _GUARDED, True)
    return call


def _no_success(text: str, _request: Any, response: Any) -> Any:
    answer = type(response)()
    if hasattr(answer, "success") and hasattr(answer, "message"):
        answer.message = text
    return answer


def _place(error: BaseException) -> str:
    """Return file and line of the innermost code of the suite that the error came through.

    If there is none, the place is that of rclpy's innermost code, else of the innermost code.
    """
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__
    ]
    ours = [
        frame
        for frame in frames
        if any(part.startswith("rfly_") for part in Path(frame.filename).parts[-4:-1])
    ]
    ours = [frame for frame in ours if Path(frame.filename).name != "run_loop.py"]
    theirs = [frame for frame in frames if Path(frame.filename).parent.name == "rclpy"]
    frame = (ours or theirs or frames)[-1]
    return f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno}"
