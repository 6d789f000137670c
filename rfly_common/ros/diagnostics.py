# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A node's status on /diagnostics, and the watch on a simulated clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from rfly_common.diagnostic_reasons import Notice, Reason, RecentFaults, reason_values
from rfly_common.errors import shortened
from rfly_common.ros.arguments import GivenParameters
from rfly_common.ros.callback_errors import COUNTER, errors_of
from rfly_common.ros.endpoints import publisher, steady_timer, unmatched_peers
from rfly_common.ros.qos import STATE_OUT

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR
STALE = DiagnosticStatus.STALE

Message = str | Notice | Sequence[str | Notice]
"""One or several sentences; a plain string has the reason `other`."""
Row = tuple[object, bytes, Message | Callable[[], Message] | None]
"""Condition (any truth value), level, and message or its function; None if the condition fails."""

CHECK_PEERS_EVERY = 4
"""Time between two checks of the peers of a node's topics, s."""


class Diagnostics:
    """One status of a node on /diagnostics, at 1 Hz and whenever its level changes.

    `refresh` is called before every timed publication and may call `set`. If a node has several
    tasks, only one needs to check the peers of its topics.
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
        self._level = OK
        self._notices = [Notice("starting")]
        self._values: dict[str, Any] = {}

        self._refresh = refresh
        self._faults = RecentFaults()
        self._given = GivenParameters(node)
        self.unmatched: list[Notice] = []
        """Peers that share a topic, but neither type nor QoS."""

        self._checks_peers = check_peers
        self._ticks = 0

        self._publisher = publisher(node, DiagnosticArray, "/diagnostics", STATE_OUT)
        # steady, so that a paused simulation clock does not silence the diagnostics
        self._timer = steady_timer(node, 1.0, self.publish)

    def count(self, reason: str, number: int = 1) -> None:
        """Add to the counter of a reason."""
        self.counters[reason] = self.counters.get(reason, 0) + number

    def drop(self, reason: str, number: int, what: str, *, subject: str = "") -> bool:
        """Count dropped input under its reason, and report it with the sentence `what`.

        `reason` is the value of a `Reason`; its documentation describes `subject`. Returns True if
        this subject had no such fault recently.
        """
        notice = Notice(f"dropped, {reason}: {what}", Reason(reason), subject)
        return self._tell(reason, notice, number)

    def refuse(self, counter: str, text: str, *, subject: str = "", number: int = 1) -> bool:
        """Count refused input, and report it: in the log once, here as long as it goes on.

        `counter` names the kind of the fault, `subject` its source.
        """
        return self._tell(counter, Notice(text, Reason.OTHER, subject), number)

    def refuse_message(self, topic: str, why: object) -> None:
        """Refuse a message of a topic, counted as `refused_<topic>`."""
        self.refuse(f"refused_{topic.replace('/', '_')}", f"{topic} refused: {why}")

    def warn(self, kind: str, text: str) -> bool:
        """Report a fault of this kind without counting. Return True if there was none recently."""
        return self._faults.begin(kind, Notice(text))

    def _tell(self, kind: str, notice: Notice, number: int) -> bool:
        self.count(kind, number)
        is_new = self._faults.begin(kind, notice)
        if is_new:
            self._node.get_logger().warning(" ".join(notice.text.split()))
        return is_new

    def set_back(self, source: str, seconds: float) -> None:
        """Count a source whose stamps went back (`StampFilter`), and warn here and in the log."""
        notice = Notice(
            f"{source}: its stamps went back by {seconds:.3f} s, as if its clock was set or a "
            "recording began again; its newest states are used",
            Reason.CLOCK_SET_BACK,
            source,
        )
        self._tell("clocks_set_back", notice, 1)

    def set(self, level: bytes, message: Message, /, **values: Any) -> None:
        """Set level, message with its reasons, and values; publish at once if the level changes.

        The faults that go on are added to every message.
        """
        changed = level != self._level
        self._level = level
        parts = [message] if isinstance(message, str | Notice) else message
        self._notices = [_notice(part) for part in parts]
        self._values = values
        if changed:
            self._send()

    def set_first(self, rows: Iterable[Row], /, **values: Any) -> None:
        """Set level and message of the first row whose condition holds; the last row's must."""
        level, message = next((level, message) for condition, level, message in rows if condition)
        self.set(level, message() if callable(message) else message or "", **values)

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
        for notice in unmatched:
            if notice not in self.unmatched:
                self._node.get_logger().warning(notice.text)
        self.unmatched = unmatched

    def _send(self) -> None:
        level, notices = self._report()
        status = DiagnosticStatus(
            level=level,
            name=self._name,
            message="; ".join(notice.text for notice in notices),
            hardware_id=self.hardware_id,
        )

        pairs = {**self._values, **self.counters}
        errors = errors_of(self._node)
        if errors:
            pairs[COUNTER] = errors
        if self.unmatched:
            pairs["unmatched_peers"] = "; ".join(notice.text for notice in self.unmatched)
        if self._checks_peers and self._ticks:
            pairs |= self._given.values()
        if level == OK:
            notices = [notice for notice in notices if notice.reason != Reason.OTHER]
        pairs |= reason_values(notices)
        status.values = [KeyValue(key=key, value=str(value)) for key, value in pairs.items()]

        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

    def _report(self) -> tuple[bytes, list[Notice]]:
        """Return level and notices with the faults that go on, which hide no other problem."""
        faults = self._faults.notices()
        # before the first tick the node is still being made, and declares more
        if self._checks_peers and self._ticks:
            faults += self._given.unknown()
        if not faults:
            return self._level, self._notices
        if self._level == OK:
            return WARN, faults
        return self._level, [*self._notices, *faults]


def _notice(message: str | Notice) -> Notice:
    notice = message if isinstance(message, Notice) else Notice(message)
    return notice._replace(text=shortened(notice.text), subject=shortened(notice.subject))


class ClockWatch:
    """A watch on a simulated clock that a node asks about once a second."""

    _SILENCE_S = 5.0
    """Time without a tick after which the clock counts as stopped, s."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._seen_ns = -1
        self._seen_at = time.monotonic()

    @property
    def problem(self) -> Notice | None:
        """Notice that the clock has stopped; None while it runs."""
        now_ns = self._node.get_clock().now().nanoseconds
        steady = time.monotonic()
        if now_ns != self._seen_ns:
            self._seen_ns = now_ns
            self._seen_at = steady
        silence = steady - self._seen_at
        if silence <= self._SILENCE_S:
            return None
        seconds = f"{silence:.0f}"
        return Notice(f"/clock has not moved for {seconds} s", Reason.CLOCK_STOPPED, seconds)
