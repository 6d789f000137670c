"""A node's status on /diagnostics, and the watch on a simulated clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from rfly_common.ros.callback_errors import COUNTER, errors_of
from rfly_common.ros.endpoints import publisher, unmatched_peers
from rfly_common.ros.qos import STATE_OUT

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR
STALE = DiagnosticStatus.STALE

Row = tuple[object, bytes, str | Callable[[], str]]
"""condition, level, text (or what makes it); the condition is taken as true or false"""

WARNING_SHOWN_NS = 5_000_000_000
"""a warning lasts for so long after the last of its kind"""
CHECK_PEERS_EVERY = 4
"""seconds between two looks at the peers of a node's topics"""


class Diagnostics:
    """One status of a node on /diagnostics: at 1 Hz, and at once when the level changes.

    `refresh`, where given, is called before every timed publication and may call `set`. Of several
    tasks of one node only one needs to check the peers of its topics.
    """

    def __init__(
        self,
        node: Node,
        task: str,
        hardware_id: str,
        refresh: Callable[[], None] | None = None,
        *,
        check_peers: bool = True,
    ) -> None:
        self._node = node
        self._name = f"{node.get_fully_qualified_name()}: {task}"
        self.hardware_id = hardware_id
        self.counters: dict[str, int] = {}
        self._level, self._message, self._values = OK, "starting", dict[str, Any]()
        self._refresh = refresh
        self._warning = ""
        self._warning_ns = 0
        self.unmatched: list[str] = []
        """peers that share a topic, but neither type nor QoS"""
        self._checks_peers = check_peers
        self._ticks = 0
        self._publisher = publisher(node, DiagnosticArray, "/diagnostics", STATE_OUT)
        # steady, so that a paused simulation clock does not silence the diagnostics
        self._timer = node.create_timer(
            1.0, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def count(self, reason: str, number: int = 1) -> None:
        """Add to the counter of a reason."""
        self.counters[reason] = self.counters.get(reason, 0) + number

    def drop(self, reason: str, number: int, what: str) -> bool:
        """Count what is dropped, by reason, and warn of it; `what` tells whose."""
        self.count(reason, number)
        return self.warn(f"dropped, {reason}: {what}")

    def warn(self, text: str) -> bool:
        """Keep this as `recent_warning`. True where there was none."""
        news = not self.recent_warning
        self._warning = text
        self._warning_ns = time.monotonic_ns()
        return news

    @property
    def recent_warning(self) -> str:
        """The last warning, for some seconds; then ""."""
        return self._warning if time.monotonic_ns() - self._warning_ns < WARNING_SHOWN_NS else ""

    def set(self, level: bytes, message: str, /, **values: Any) -> None:
        """State the present level; published at once if it differs from the last."""
        changed = level != self._level
        self._level = level
        self._message = message
        self._values = values
        if changed:
            self._send()

    def set_first(self, rows: Iterable[Row], /, **values: Any) -> None:
        """State the level and text of the first row whose condition holds; the last row's always
        does.
        """
        level, text = next((level, text) for condition, level, text in rows if condition)
        self.set(level, text() if callable(text) else text, **values)

    def publish(self) -> None:
        """Refresh and publish now."""
        self._ticks += 1
        if self._checks_peers and self._ticks % CHECK_PEERS_EVERY == 0:
            self._check_peers()
        if self._refresh is not None:
            self._refresh()
        self._send()

    def _check_peers(self) -> None:
        unmatched = unmatched_peers(self._node)
        for text in unmatched:
            if text not in self.unmatched:
                self._node.get_logger().warning(text)
        self.unmatched = unmatched

    def _send(self) -> None:
        status = DiagnosticStatus(
            level=self._level, name=self._name, message=self._message, hardware_id=self.hardware_id
        )
        pairs = {**self._values, **self.counters}
        errors = errors_of(self._node)
        if errors:
            pairs[COUNTER] = errors
        if self.unmatched:
            pairs["unmatched_peers"] = "; ".join(self.unmatched)
        status.values = [KeyValue(key=key, value=str(value)) for key, value in pairs.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)


class ClockWatch:
    """Tells when a simulated clock stands still; a diagnostic asks it every second or so."""

    _SILENCE_S = 5.0

    def __init__(self, node: Node) -> None:
        self._node = node
        self._seen_ns = -1
        self._seen_at = time.monotonic()

    @property
    def problem(self) -> str:
        """That the clock stands still, and for how long; "" while time goes on."""
        now_ns = self._node.get_clock().now().nanoseconds
        steady = time.monotonic()
        if now_ns != self._seen_ns:
            self._seen_ns = now_ns
            self._seen_at = steady
        silence = steady - self._seen_at
        return f"/clock has not moved for {silence:.0f} s" if silence > self._SILENCE_S else ""
