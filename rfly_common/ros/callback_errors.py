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
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from rfly_common.errors import shortened
from rfly_common.threads.loop_thread import describe_error

COUNTER = "errors_in_callbacks"
"""Key of the counter on /diagnostics."""
_GUARDED = "rfly_guarded"
_counts: Counter[str] = Counter()
"""Number of errors by the node's name."""


def errors_of(node: Node) -> int:
    """Return the number of errors in the node's callbacks."""
    return _counts[node.get_fully_qualified_name()]


def report_error(node: Node, error: BaseException) -> str:
    """Log and count an unexpected error; return one line about it."""
    report = describe_error(error)
    _counts[node.get_fully_qualified_name()] += 1
    if report.is_due:
        node.get_logger().error(
            f"what came is dropped, by an error in {report.place}: {report.text}"
        )
        node.get_logger().debug("".join(traceback.format_exception(error)))
    return f"an error in {report.place}, logged by the node"


def guard_callbacks(node: Node) -> None:
    """Guard the callbacks that a node has now, including rclpy's own.

    Services answer even if their callback raises: with `success` false and `message`, if they have
    these fields.
    """
    arrivals: list[Any] = [*node.subscriptions, *node.timers]
    for each in arrivals:
        each.callback = guarded(node, each.callback)
    for service in node.services:
        service.callback = _in_short(guarded(node, service.callback, _no_success))


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


def _in_short(serve: Callable[..., Any]) -> Callable[..., Any]:
    """Return a service's callback with the text of its answers, which may quote, `shortened`."""
    if inspect.iscoroutinefunction(serve):

        @functools.wraps(serve)
        async def serve_and_wait(request: Any, response: Any) -> Any:
            return _with_short_text(await serve(request, response))

        return serve_and_wait

    @functools.wraps(serve)
    def serve_shortly(request: Any, response: Any) -> Any:
        return _with_short_text(serve(request, response))

    return serve_shortly


def _with_short_text(response: Any) -> Any:
    if isinstance(getattr(response, "message", None), str):
        response.message = shortened(response.message)
    return response


def _no_success(text: str, _request: Any, response: Any) -> Any:
    answer = type(response)()
    if hasattr(answer, "success") and hasattr(answer, "message"):
        answer.message = text
    return answer
