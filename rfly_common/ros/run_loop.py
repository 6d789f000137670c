"""The run loop of a node with its clean shutdown, and work in a thread beside it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from rfly_common import startup
from rfly_common.errors import ConfigError, WorkError
from rfly_common.ros.callback_errors import guard_callbacks, tell_error

Result = TypeVar("Result")


async def in_thread(node: Node, work: Callable[[], Result]) -> Result:
    """The result of work(), from a thread of its own; the node goes on meanwhile. For `async` services.

    `work` touches nothing of the node, and gives errors as part of its result. Raises WorkError where it raises one.
    """
    done: Future = Future(executor=node.executor)

    def run_there() -> None:
        end: tuple[Callable[[Any], None], Any]
        try:
            end = done.set_result, work()
        except Exception as error:  # noqa: BLE001  told, counted, and whoever waits is answered
            end = done.set_exception, WorkError(f"broke off by {tell_error(node, error)}")
        if node.executor is not None:
            node.executor.create_task(*end)

    threading.Thread(target=run_there, daemon=True).start()
    result: Result = await done
    return result


def run(make_node: Callable[[], Node], *, often: bool = False) -> None:
    """Run one node until SIGINT, SIGTERM or a shut-down context; exit code 0 within two seconds, without a trace.

    A ConfigError while the node is made is logged in one line and ends the process with exit code 2. `often`: for a
    node that wakes hundreds of times a second; where rclpy has its executor of events, a wake-up then costs a tenth.
    It knows no guard conditions.

    What a callback raises does not end the node: see `callback_errors`.
    """
    startup.install_handlers()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    # before the node: a half-made executor prints a trace
    executor = _events_executor() if often else SingleThreadedExecutor()
    node: Node | None = None
    try:
        node = make_node()
        guard_callbacks(node)
        executor.add_node(node)
        gc.freeze()  # what the imports and the node have made stays; no later collection needs to walk through it
        startup.spinning()
        while rclpy.ok() and not startup.stop_requested():
            try:
                executor.spin_once(timeout_sec=0.2)
            except ExternalShutdownException:
                break
            except Exception as error:  # noqa: BLE001  of a callback; told and counted
                tell_error(node, error)
    except ExternalShutdownException:
        pass
    except ConfigError as error:
        rclpy.logging.get_logger("rfly").fatal(str(error))
        raise SystemExit(2) from None
    finally:
        if node is not None:
            executor.remove_node(node)  # one that still held it could use it while it goes
            node.destroy_node()
        executor.shutdown(timeout_sec=0.5)
        rclpy.try_shutdown()


def _events_executor() -> Executor:
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:  # before Jazzy
        return SingleThreadedExecutor()
    return EventsExecutor()
