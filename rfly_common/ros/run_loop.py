# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run loop of a node with its clean shutdown, and work in a parallel thread.

Theory of operation. `run_all` installs the handlers of `startup` before anything else, so that a
signal at any time ends the process quietly. It then passes through three phases:

1. Making: the nodes are made and join the executor one by one. A ConfigError here ends the process
   with exit code 2.
2. Spinning: the executor waits at most 0.2 s at a time, so that a signal or a shut-down context is
   seen soon. An error in a callback is logged and counted, and the loop continues.
3. Closing, from any phase: the nodes leave the executor and are destroyed in reverse order, then
   the executor and the context are shut down.

`in_thread` takes long work out of the loop. Its result returns to the loop as a task of the
executor, so that only the loop's thread ever touches a node.
"""

from __future__ import annotations

import gc
import logging
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

import rclpy
from rclpy.context import Context
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from rfly_common import startup
from rfly_common.errors import ConfigError, RflyError, WorkError, shortened
from rfly_common.ros.arguments import refusals_in_one_line
from rfly_common.ros.callback_errors import guard_callbacks, report_error
from rfly_common.threads.loop_thread import LoopThread

Result = TypeVar("Result")

MOST_AT_ONCE = 200
"""Number of items of the longest mission that is worked on at once, in some 10 ms."""


async def in_thread(node: Node, work: Callable[[], Result]) -> Result:
    """Return the result of `work()`, which runs in a thread, for `async` services.

    The node keeps running meanwhile, and `work` must not touch it. Raises the RflyError that `work`
    raises, and WorkError if it raises another.
    """
    done: Future = Future(executor=node.executor)

    def run_work() -> None:
        outcome: tuple[Callable[[Any], None], Any]
        try:
            outcome = done.set_result, work()
        except RflyError as error:
            outcome = done.set_exception, error
        except Exception as error:  # noqa: BLE001  logged, counted, and the caller is answered
            outcome = done.set_exception, WorkError(f"broke off by {report_error(node, error)}")

        # a node that ends waits for nothing, and its executor, shut down, would raise here
        if node.executor is not None and node.context.ok() and not startup.stop_requested():
            node.executor.create_task(*outcome)

    threading.Thread(target=run_work, daemon=True).start()
    return await done


def run(make_node: Callable[[], Node], *, often: bool = False) -> None:
    """Run one node until a signal (`startup`) or a shut-down context.

    The exit code is 0, within two seconds and without a trace. A ConfigError while the node is made
    is logged in one line and ends the process with exit code 2. `often` is for a node that wakes
    hundreds of times a second: with rclpy's executor of events a wake-up costs a tenth, but it
    knows no guard conditions.

    An error in a callback or a thread does not end it: see `callback_errors`, `loop_thread`.
    """
    run_all([make_node], often=often)


def run_all(make_nodes: Sequence[Callable[[], Node]], *, often: bool = False) -> None:
    """Run several nodes in one executor: a callback of one waits for those of the others."""
    startup.install_handlers()
    try:
        with refusals_in_one_line():
            rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except ConfigError as error:
        _refuse(error)
    warnings.showwarning = _log_warning
    _shorten_logs()
    kernels = logging.getLogger("rfly_common.kernels")
    kernels.setLevel(logging.INFO)
    kernels.handlers[:] = [_RosLog()]

    # before the nodes: a half-made executor prints a trace
    executor = events_executor() if often else LoneExecutor()
    nodes: list[Node] = []
    try:
        for make_node in make_nodes:
            with refusals_in_one_line():
                nodes.append(make_node())
            guard_callbacks(nodes[-1])
            LoopThread.report = partial(report_error, nodes[0])
            executor.add_node(nodes[-1])

        # objects of imports and nodes stay: later collections need not walk through them
        gc.freeze()

        startup.spinning()
        while rclpy.ok() and not startup.stop_requested():
            try:
                executor.spin_once(timeout_sec=0.2)
            except ExternalShutdownException:
                break
            except Exception as error:  # noqa: BLE001  of a callback; logged and counted
                report_error(nodes[0], error)
    except ExternalShutdownException:
        pass
    except ConfigError as error:
        _refuse(error)
    finally:
        for node in reversed(nodes):
            executor.remove_node(node)  # one that still held it could use it while it goes
            node.destroy_node()
        executor.shutdown(timeout_sec=0.5)
        rclpy.try_shutdown()


def _refuse(error: ConfigError) -> NoReturn:
    """End the process with exit code 2 after one line in the log."""
    rclpy.logging.get_logger("rfly").fatal(str(error))
    raise SystemExit(2) from None


def _shorten_logs() -> None:
    """Have ROS's log shorten its texts, which may quote a peer."""
    log = rclpy_implementation.rclpy_logging_rcutils_log

    def log_shortly(severity: Any, name: Any, message: str, *place: Any) -> None:
        log(severity, name, shortened(message), *place)

    rclpy_implementation.rclpy_logging_rcutils_log = log_shortly


class _RosLog(logging.Handler):
    """A handler that passes the libraries' log to ROS's log."""

    def emit(self, record: logging.LogRecord) -> None:
        rclpy.logging.get_logger("rfly").info(record.getMessage())


def _log_warning(message: Warning | str, *_place: Any, **_more: Any) -> None:
    """Log Python's warnings.

    A client that has gone before its answer is only a debug message.
    """
    text = " ".join(str(message).split())
    logger = rclpy.logging.get_logger("rfly")
    if "failed to send response" in text:
        logger.debug(text)
    else:
        logger.warning(text)


class LoneExecutor(SingleThreadedExecutor):
    """Executor that builds its wait set once for a callback.

    rclpy triggers an executor's guard after each callback, so that another thread that waits builds
    its wait set anew. Here no other thread waits: the trigger only wakes the loop that did the
    work, which then finds nothing and builds its wait set a second time.
    """

    def __init__(self, *, context: Context | None = None) -> None:
        super().__init__(context=context)
        self._guard.destroy()
        self._guard = _OwnGuard(self, self._context)
        self._loop = threading.get_ident()

    def needs_waking(self) -> bool:
        """Return whether the loop may wait although there is work.

        The work is of another thread, or a task that has become ready after its turn.
        """
        return threading.get_ident() != self._loop or any(
            not task.executing() and not task.done() for task, _, _ in list(self._tasks)
        )


class _OwnGuard(GuardCondition):
    """The guard condition of a LoneExecutor."""

    def __init__(self, executor: LoneExecutor, context: Context) -> None:
        super().__init__(None, None, context=context)
        self._needed = executor.needs_waking

    def trigger(self) -> None:
        """Wake the loop if it needs that."""
        if self._needed():
            super().trigger()


def events_executor(context: Context | None = None) -> Executor:
    """Return rclpy's executor of events, with a tenth of the work of a wake-up, if it has one.

    It knows no guard conditions.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:  # before Jazzy
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)


class NewestWork:
    """Work on missions whose newest result alone counts.

    Long ones would stop a node for seconds: that work is done in a thread.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._number = 0

    def start(self, items: int, work: Callable[[], Any], take: Callable[[Any], None]) -> None:
        """Pass the result of `work` on a mission of some items to `take`, at once or later."""
        self._number += 1
        executor = self._node.executor
        if items <= MOST_AT_ONCE or executor is None:
            take(work())
        else:
            executor.create_task(self._finish(work, take, self._number))

    async def _finish(
        self, work: Callable[[], Any], take: Callable[[Any], None], number: int
    ) -> None:
        result = await in_thread(self._node, work)
        if number == self._number:
            take(result)
