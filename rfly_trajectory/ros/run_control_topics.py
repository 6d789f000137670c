# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run control of a fleet: start, pause, reset, time scale, and a common start by `fleet_start`.

Part of trajectory_node.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from rfly_common.errors import ConfigError
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_trajectory.fleet.run_clock import (
    SECOND,
    RunClock,
    agreed_start,
    check_time_scale,
    is_near,
    next_start,
    run_number,
    start_at_time,
)
from rfly_trajectory.ros.node_parameters import RunControlParameters

LISTEN_S = 1.0
"""Time that a node which is ready listens for the start of a running fleet, s.

Its terrain_map has come, so it has met the other nodes.
"""
LISTEN_TO_KNOWN_S = 2.0
"""The same, s, where another node's `fleet_start` is seen but has not come yet."""
JUMP_NS = SECOND // 10
"""Limit of a clock's jump back, ns: a smaller one is followed, a larger one restarts the fleet."""


class RunControl:
    """Fleet time of a node.

    Declares `start_time` and `time_scale`; serves `~/start`, `~/pause` and `~/reset`.

    Every node publishes the start that all agree on as its own latched sample of `fleet_start`: a
    node that joins late or again gets it as long as one of them runs. `restarted()` is called
    whenever fleet time goes back to 0. `start_topic` is the name of that topic.

    Nodes that exchange their clocks share the pace too (`share`).
    """

    def __init__(
        self,
        node: Node,
        restarted: Callable[[], None],
        changed: Callable[[], None],
        start_topic: str = "fleet_start",
    ) -> None:
        self._node = node
        self._restarted = restarted
        self._changed = changed
        self._start_topic = start_topic
        given = declare_parameters(node, RunControlParameters)
        self._given_ns = start_at_time(given.start_time) if given.start_time else None
        self._scale = given.time_scale

        # state of the run
        self._heard_ns: int | None = None
        self._clock: RunClock | None = None
        self._offered: tuple[RunClock, int] | None = None
        """Clock that another node told, and its number of changes, before the start is known."""
        self.changes = 0
        """Number of changes of the pace: pauses, starts, steps, other scales."""
        self.paused = False
        self.stopped = False
        """True if it was reset when it was paused; a start ends that."""
        self.last_ns = 0
        """Node time of the last `tick`, ns."""
        self._listening_since: float | None = None
        self.jumps = 0
        """Number of times that the clock jumped back."""
        self._publisher: Any = None
        """Made with the first start: subscribers may wait for a sample of a publisher."""

        subscription(node, Time, start_topic, self._on_fleet_start, LATCHED)
        node.create_service(Trigger, "~/start", self._start)
        node.create_service(Trigger, "~/pause", self._pause)
        node.create_service(Trigger, "~/reset", self._reset)
        node.add_on_set_parameters_callback(self._check_parameters)
        node.add_post_set_parameters_callback(self._on_parameters_set)

    @property
    def clock(self) -> RunClock | None:
        """Fleet time over node time; None before the start is known."""
        return self._clock

    @property
    def start_ns(self) -> int | None:
        """Agreed start, ns; None before."""
        return None if self._clock is None else self._clock.start_ns

    @property
    def state(self) -> str:
        """State in a word: listening, waiting, paused or running."""
        if self._clock is None:
            return "listening"
        if self.paused:
            return "paused"
        return "waiting" if self.last_ns < self._clock.start_ns else "running"

    @property
    def fleet_time(self) -> float | None:
        """Fleet time of the last `tick`, s; None before the start is known."""
        return None if self._clock is None else self._clock.fleet_time(self.last_ns)

    @property
    def pace(self) -> float:
        """Fleet seconds per second at the last `tick`."""
        return 0.0 if self._clock is None else self._clock.pace(self.last_ns)

    def tick(self, now_ns: int) -> float | None:
        """Return the fleet time now; None while the node listens for a running fleet.

        The node calls it once it is ready to drive.
        """
        if self._clock is None:
            if self._listening_since is None:
                self._listening_since = time.monotonic()
            if not self._has_listened():
                return None
            self.last_ns = now_ns
            self._set_start(self._first_start(now_ns))
        elif now_ns < self.last_ns - JUMP_NS:
            self._node.get_logger().warning("the clock went back: the fleet starts anew")
            self.jumps += 1
            self.last_ns = now_ns
            # the start of a node that saw the jump before us, or one near it
            if is_near(self._clock.start_ns, now_ns):
                self._clock = self._clock.restarted(self._clock.start_ns)
                self._restarted()
            else:
                self.restart()

        self.last_ns = now_ns
        return self.fleet_time

    def restart(self) -> None:
        """Start the fleet at the next whole second, or at a later `start_time`.

        All nodes that share `fleet_start` do the same.
        """
        if self._clock is None:
            return
        self._set_start(next_start(self._now(), self._clock.start_ns, self._given_ns))

    def start(self) -> None:
        """Drive on."""
        self.paused = self.stopped = False
        if self._clock is not None:
            self._change(self._clock.started(self._now()))
        self._changed()

    def pause(self) -> None:
        """Stand still."""
        self.paused = True
        if self._clock is not None:
            self._change(self._clock.paused(self._now()))
        self._changed()

    def advance(self, seconds: float) -> None:
        """Advance the fleet time while paused."""
        if self._clock is not None:
            self._change(self._clock.advanced(self._now(), seconds))

    def share(self, clock: RunClock, changes: int) -> None:
        """Take the pace of another node in the same run, if it was changed more often.

        Of two that were changed as often, all nodes choose the same one.
        """
        mine = self._clock
        if mine is None:
            self._offered = (clock, changes)
            return
        is_newer = (changes, clock.order) > (self.changes, mine.order)
        if clock.start_ns != mine.start_ns or not is_newer:
            return

        self._clock = clock
        self.changes = changes
        self.paused = not clock.running
        self.stopped = self.stopped and self.paused
        if clock.time_scale != self._scale:
            self._scale = clock.time_scale
            parameter = Parameter("time_scale", Parameter.Type.DOUBLE, clock.time_scale)
            self._node.set_parameters([parameter])
        self._changed()

    def _change(self, clock: RunClock) -> None:
        if clock != self._clock:
            self._clock = clock
            self.changes += 1

    def _now(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)

    def _has_listened(self) -> bool:
        if self._heard_ns is not None or self._listening_since is None:
            return True
        others = self._node.count_publishers(self._node.resolve_topic_name(self._start_topic))
        return time.monotonic() - self._listening_since >= (
            LISTEN_TO_KNOWN_S if others else LISTEN_S
        )

    def _first_start(self, now_ns: int) -> int:
        if self._given_ns is None:
            return next_start(now_ns) if self._heard_ns is None else self._heard_ns
        start_ns = (
            self._given_ns
            if self._heard_ns is None
            else agreed_start(self._given_ns, self._heard_ns)
        )
        if start_ns != self._given_ns:
            self._node.get_logger().warning(
                f"start_time {self._given_ns * 1e-9:.6f} s is not used: a fleet runs already that "
                "started at "
                f"{start_ns * 1e-9:.6f} s (fleet_start)"
            )
        return start_ns

    def _on_fleet_start(self, message: Any) -> None:
        """Take the start of another node, or our own one back again."""
        start_ns = stamp_to_ns(message)
        if self._clock is None:
            self._heard_ns = (
                start_ns if self._heard_ns is None else agreed_start(self._heard_ns, start_ns)
            )
        elif agreed_start(start_ns, self._clock.start_ns) != self._clock.start_ns:
            self._set_start(start_ns)
        elif start_ns != self._clock.start_ns:
            self._publisher.publish(
                ns_to_stamp(self._clock.start_ns)
            )  # who said that may have missed ours

    def _set_start(self, start_ns: int) -> None:
        first = self._clock is None

        self._clock = RunClock(start_ns, self._scale, not self.paused)
        if self._offered is not None:
            self.share(*self._offered)
            self._offered = None
        if self._publisher is None:
            self._publisher = publisher(self._node, Time, self._start_topic, LATCHED)
        self._publisher.publish(ns_to_stamp(start_ns))

        again = "" if first else f", run {run_number(start_ns)}"
        self._node.get_logger().info(f"the fleet starts at {start_ns * 1e-9:.6f} s{again}")
        if not first:
            self._restarted()
        self._changed()

    def _start(self, _request: Any, response: Any) -> Any:
        self.start()
        return self._done(response, "drives on from")

    def _pause(self, _request: Any, response: Any) -> Any:
        self.pause()
        return self._done(response, "stands still at")

    def _reset(self, _request: Any, response: Any) -> Any:
        self.restart()
        if self._clock is None:
            return self._done(response, "")
        response.success = True
        response.message = f"starts anew at {self._clock.start_ns * 1e-9:.6f} s"
        if self.paused:
            response.message = "is at its beginning and paused: call start"
        return response

    def _done(self, response: Any, what: str) -> Any:
        response.success = True
        response.message = "has not started yet"
        if self._clock is not None:
            response.message = f"{what} fleet time {self._clock.fleet_time(self._now()):.2f} s"
        return response

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        try:
            for parameter in parameters:
                if parameter.name == "time_scale" and parameter.type_ == Parameter.Type.DOUBLE:
                    check_time_scale(parameter.value)
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _on_parameters_set(self, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            if parameter.name == "time_scale" and float(parameter.value) != self._scale:
                self._scale = float(parameter.value)
                if self._clock is not None:
                    self._change(self._clock.scaled(self._now(), self._scale))
                self._changed()
