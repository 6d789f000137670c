"""A node for the time of one command, in a context of its own process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import rclpy
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from rfly_bringup.runner.supervisor import node_environment
from rfly_common.ros.run_loop import events_executor

AnyNode = TypeVar("AnyNode", bound=Node)


@contextmanager
def command_session(make_node: Callable[[], AnyNode]) -> Iterator[tuple[AnyNode, Executor]]:
    """The node and the executor that is to be spun; it is destroyed at the end, whatever comes."""
    os.environ.update(node_environment())
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        executor = events_executor()
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
