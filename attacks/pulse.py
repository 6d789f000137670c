# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A peer in a ROS graph that keeps asking nodes for a parameter, and measures their stalls."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from rfly_common.files import Closing

ASK_EVERY_S = 0.05
LOST_AFTER_S = 30.0
"""Time after which a missing answer is given up and the next is requested, s."""
ASK_AGAIN_S = 1.0
"""The same for a node that has not answered yet: a request may precede its subscription, s."""


class Pulse(Closing):
    """A thread that asks each node of `watch` for its `use_sim_time` again and again.

    It measures how long a node's executor was busy with something else. `diagnostics` has the
    newest status of each task.
    """

    def __init__(self, environment: Mapping[str, str], *nodes: str, name: str = "pulse") -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.executors import SingleThreadedExecutor

        # a node of its own in this graph
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = environment["ROS_AUTOMATIC_DISCOVERY_RANGE"]
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=int(environment["ROS_DOMAIN_ID"]))
        self.node = rclpy.create_node(name, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

        # what it has heard
        self.diagnostics: dict[str, tuple[str, str, dict[str, str]]] = {}
        """Level, message and values by the status' name, which is `/node: task`."""
        self.stamps: dict[str, float] = {}
        """Stamps of the same statuses, s."""
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 100)

        # questions and answers by node
        self._longest: dict[str, float] = {}
        self._answers: dict[str, int] = {}
        self._asked: dict[str, tuple[float, Any]] = {}
        self._clients: dict[str, Any] = {}
        self._fresh: set[str] = set()
        """Nodes that have not answered yet; they may not be running or subscribed."""

        # the thread
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.watch(*nodes)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def watch(self, *nodes: str) -> None:
        """Start to ask these nodes too, once they exist."""
        from rcl_interfaces.srv import GetParameters

        with self._lock:
            for name in nodes:
                if name not in self._clients:
                    self._clients[name] = self.node.create_client(
                        GetParameters, f"{name}/get_parameters"
                    )
                    self._answers[name] = 0
                    self._fresh.add(name)

    def renew(self, name: str) -> None:
        """Reset a node that was killed and may come back.

        Its missing answers do not count, and nothing is due until it answers again.
        """
        with self._lock:
            self._fresh.add(name)
            self._drop(name)

    def answers(self, name: str) -> int:
        """Return the number of answers of a node."""
        return self._answers[name]

    def longest_stall(self, *names: str) -> float | None:
        """Return the longest wait for an answer of these nodes, s, including present waits.

        None if none has answered. Without names: of all nodes.
        """
        now = time.monotonic()
        with self._lock:
            waits = {
                name: now - asked
                for name, (asked, _) in self._asked.items()
                if name not in self._fresh
            }

            answered = [name for name in names or self._clients if name in self._longest]
            return max(
                (max(self._longest[name], waits.get(name, 0.0)) for name in answered), default=None
            )

    def close(self) -> None:
        import rclpy

        self._done.set()
        self._thread.join()
        self._executor.remove_node(self.node)
        self._executor.shutdown(timeout_sec=0.5)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def _hear(self, message: Any) -> None:
        """Keep the newest status of each task."""
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            self.stamps[status.name] = (
                message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
            )
            self.diagnostics[status.name] = (
                str(int.from_bytes(status.level, "big")),
                status.message,
                values,
            )

    def _run(self) -> None:
        """Ask all nodes in turn until closed."""
        next_ask = 0.0
        while not self._done.is_set():
            self._executor.spin_once(timeout_sec=0.01)
            if time.monotonic() < next_ask:
                continue
            next_ask = time.monotonic() + ASK_EVERY_S
            with self._lock:
                for name, client in self._clients.items():
                    self._ask(name, client)

    def _ask(self, name: str, client: Any) -> None:
        """Send a node the next request, unless it still owes an answer."""
        now = time.monotonic()

        # a missing answer
        if name in self._asked:
            waited = now - self._asked[name][0]
            if waited < (ASK_AGAIN_S if name in self._fresh else LOST_AFTER_S):
                return
            if name not in self._fresh:
                self._longest[name] = max(self._longest.get(name, 0.0), waited)
            self._drop(name)

        # the next request
        if client.service_is_ready():
            future = client.call_async(client.srv_type.Request(names=["use_sim_time"]))
            self._asked[name] = now, future
            future.add_done_callback(lambda _: self._answered(name, now))

    def _drop(self, name: str) -> None:
        """Forget the request that a node has not answered."""
        if name in self._asked:
            self._clients[name].remove_pending_request(self._asked.pop(name)[1])

    def _answered(self, name: str, asked: float) -> None:
        """Count an answer, and how long it took."""
        with self._lock:
            if self._asked.get(name, (math.nan,))[0] != asked:
                return  # of a request that was given up
            del self._asked[name]
            self._answers[name] += 1
            waited = 0.0 if name in self._fresh else time.monotonic() - asked
            self._fresh.discard(name)
            self._longest[name] = max(self._longest.get(name, 0.0), waited)
