"""Node for the time of one command: calls services, waits for conditions, and says what does not
come.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import rclpy
from rclpy.exceptions import NameValidationException
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.validate_namespace import validate_namespace

from rfly_bringup.runner.supervisor import node_environment
from rfly_common.errors import ConfigError, RflyError
from rfly_common.ros.run_loop import events_executor

TIMEOUT_S = 10.0
Self = TypeVar("Self", bound="CommandClient")
AnyNode = TypeVar("AnyNode", bound=Node)


def check_name(check: Callable[[str], object], what: str, given: str) -> None:
    """`check` is one of rclpy's. Raises ConfigError for a name that ROS does not take."""
    try:
        check(given)
    except NameValidationException as error:
        raise ConfigError(f"{what} {given!r}: {str(error).splitlines()[0].rstrip(':')}") from None
    except TypeError:  # half a character
        raise ConfigError(f"{what} {given!r}: not a text") from None


def check_namespace(what: str, given: str) -> None:
    """As `check_name`; with or without a slash at its beginning, and "" is the one above all."""
    check_name(lambda name: validate_namespace(f"/{name.removeprefix('/')}"), what, given)


@contextmanager
def command_session(
    make_node: Callable[[], AnyNode], make_executor: Callable[[], Executor] = events_executor
) -> Iterator[tuple[AnyNode, Executor]]:
    """The node and the executor that is to be spun; it is destroyed at the end, whatever comes."""
    os.environ.update(node_environment())
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        executor = make_executor()
        node = make_node()
        executor.add_node(node)
        try:
            yield node, executor
        finally:
            executor.remove_node(node)
            node.destroy_node()
            executor.shutdown(timeout_sec=0.5)
    finally:
        rclpy.try_shutdown()


class CommandClient:
    """`error` is what is raised where nobody answers; `server` names the node that should."""

    def __init__(self, name: str, namespace: str, server: str, error: type[RflyError]) -> None:
        check_namespace("--namespace", namespace)
        self._session = command_session(
            lambda: Node(name, namespace=namespace or None), SingleThreadedExecutor
        )
        self.node, self._executor = self._session.__enter__()
        self._server = server
        self._error = error

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._session.__exit__(*error)

    def call(self, kind: Any, name: str, request: Any) -> Any:
        """The answer of a service; raises where its `success` is false."""
        client = self.node.create_client(kind, name)
        full_name = self.node.resolve_service_name(name)
        try:
            self.wait_for(client.service_is_ready, self.nobody(full_name))
            future = client.call_async(request)
            self.wait_for(future.done, f"{full_name} does not answer")
        finally:
            self.node.destroy_client(client)
        answer = future.result()
        if not answer.success:
            raise self._error(answer.message)
        return answer

    def nobody(self, full_name: str) -> str:
        """That nobody offers a service or an action."""
        return (
            f"no {self._server} offers {full_name}: is `rfly up` running, with this ROS_DOMAIN_ID?"
        )

    def wait_for(self, ready: Callable[[], Any], problem: str) -> None:
        """Spin until `ready()`; raises `problem` where that takes too long."""
        if not self.spin(ready, TIMEOUT_S):
            raise self._error(f"{problem} (waited {TIMEOUT_S:.0f} s)")

    def spin(self, ready: Callable[[], Any], timeout_s: float = float("inf")) -> bool:
        """Spin until `ready()`, or the time is over; says which."""
        deadline = time.monotonic() + timeout_s
        while not ready():
            if time.monotonic() > deadline:
                return False
            self._executor.spin_once(timeout_sec=0.05)
        return True
