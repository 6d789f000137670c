# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node that lives for one command: it calls services and waits for conditions."""

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
from rfly_common.ros.arguments import refusals_in_one_line
from rfly_common.ros.run_loop import events_executor

TIMEOUT_S = 10.0
"""Longest wait for a server or its answer, s."""
Self = TypeVar("Self", bound="CommandClient")
AnyNode = TypeVar("AnyNode", bound=Node)


def check_name(check: Callable[[str], object], what: str, name: str) -> None:
    """Raise ConfigError for a name that `check`, one of rclpy's functions, refuses."""
    try:
        check(name)
    except NameValidationException as error:
        raise ConfigError(f"{what} {name!r}: {str(error).splitlines()[0].rstrip(':')}") from None
    except TypeError:  # half of a surrogate pair
        raise ConfigError(f"{what} {name!r}: not a text") from None


def check_namespace(what: str, name: str) -> None:
    """Raise ConfigError for a namespace that is not valid.

    The slash at its beginning is optional; "" is the root.
    """
    check_name(lambda text: validate_namespace(f"/{text.removeprefix('/')}"), what, name)


@contextmanager
def command_session(
    make_node: Callable[[], AnyNode], make_executor: Callable[[], Executor] = events_executor
) -> Iterator[tuple[AnyNode, Executor]]:
    """Yield a node and the executor to spin; destroy both at the end, after errors too."""
    os.environ.update(node_environment())
    with refusals_in_one_line():  # such as a folder for logs that can't be made
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
    """Client of the services of a node.

    `server` names that node; `error` is raised if it does not answer or refuses.
    """

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
        """Call a service and return its answer; raise `error` if its `success` is false."""
        client = self.node.create_client(kind, name)
        full_name = self.node.resolve_service_name(name)
        try:
            self.wait_for(client.service_is_ready, lambda: self.missing_server(full_name))
            future = client.call_async(request)
            self.wait_for(future.done, f"{full_name} does not answer")
        finally:
            self.node.destroy_client(client)

        answer = future.result()
        if not answer.success:
            raise self._error(answer.message)
        return answer

    def missing_server(self, full_name: str) -> str:
        """Return the message for a service or an action that no node offers."""
        services = [
            name.removesuffix("/_action/send_goal")
            for name, _ in self.node.get_service_names_and_types()
            if self.node.count_services(name)  # the list has names of clients too
        ]
        last = full_name.rpartition("/")[2]
        others = sorted(name for name in services if name.endswith(f"/{last}"))
        if others:
            return f"no {self._server} offers {full_name}, but there is {', '.join(others)}"
        return (
            f"no {self._server} offers {full_name}: is `rfly up` running, with this ROS_DOMAIN_ID?"
        )

    def wait_for(self, ready: Callable[[], Any], problem: str | Callable[[], str]) -> None:
        """Spin until `ready()`; raise `error` with the problem after TIMEOUT_S."""
        if not self.spin(ready, TIMEOUT_S):
            text = problem if isinstance(problem, str) else problem()
            raise self._error(f"{text} (waited {TIMEOUT_S:.0f} s)")

    def spin(self, ready: Callable[[], Any], timeout_s: float = float("inf")) -> bool:
        """Spin until `ready()`, and return True, or until the time is over, and return False."""
        deadline = time.monotonic() + timeout_s
        while not ready():
            if time.monotonic() > deadline:
                return False
            self._executor.spin_once(timeout_sec=0.05)
        return True
