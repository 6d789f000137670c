"""Vehicle states to RflySim3D: checked, converted to NED, sent or held back. Part of
ue_bridge_node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rclpy.clock import Clock, ClockType, JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.timer import Timer
from rfly_suite.msg import VehicleStateArray

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import FrameError, VehicleStatesError
from rfly_common.ros.diagnostics import WARNING_SHOWN_NS, Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import FLEET_IN
from rfly_common.ros.vehicle_msgs import msg_to_states
from rfly_common.state_sources import Claim, Conflict, IdOwners, StampFilter
from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.ned_states import NedStates, states_to_ned
from rfly_ue_bridge.codec.state_datagrams import encode_states, goes_in_fleet
from rfly_ue_bridge.ros.node_parameters import BridgeParameters
from rfly_ue_bridge.sockets.rate_limiter import RateLimiter
from rfly_ue_bridge.sockets.udp_sender import UdpSender

REMOVALS_SENT = 3
"""times, a second apart"""
LATE_NS = 300_000_000
"""states that come so long after a removal are of a vehicle that has got the id"""
COUNTERS = (
    "not_finite",
    "bad_quaternion",
    "unknown_frame",
    "inconsistent",
    "stale",
    "too_old",
    "configured",
    "other_source",
    "wrong_id",
    "refused_commands",
)
"""Why states were dropped, counted by vehicle (a message that is inconsistent in itself counts as
one).
"""


MOST_TOLD = 20
"""at one time: names that a peer makes up do not fill the log"""


class ProblemLog:
    """By key: a warning for a new problem, a line of information for one that has gone."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._told: dict[object, str] = {}

    def begin(self, key: object, text: str) -> None:
        """There is this problem now."""
        if key not in self._told and len(self._told) < MOST_TOLD:
            self._told[key] = text
            self._logger.warning(text)

    def update(self, problems: Mapping[object, str]) -> None:
        """These are all that there are now."""
        for key, text in problems.items():
            self.begin(key, text)
        for key in self._told.keys() - problems.keys():
            self._logger.info(f"over: {self._told.pop(key)}")


class _Leaving(NamedTuple):
    """Vehicles that were removed."""

    states: NedStates
    """out of sight"""
    since_ns: int
    left: int
    """how often they are still to be sent: a datagram may be lost"""


class StateTopics:
    """Takes `vehicle_states`, and what other parts of the node `send`; counts on the diagnostics
    what it drops.

    `configured` names the sources of ids that parameters give away; `changed()` is called when
    something is dropped after a while without.
    """

    def __init__(
        self,
        node: Node,
        given: BridgeParameters,
        frames: Frames,
        own_frame: str,
        configured: Mapping[int, str],
        sender: UdpSender,
        diagnostics: Diagnostics,
        changed: Callable[[], None],
    ) -> None:
        self._node = node
        self._packets = given.packets
        self.frames = frames
        self.own_frame = own_frame
        self.sender = sender
        self._diagnostics = diagnostics
        self._changed = changed
        diagnostics.counters = dict.fromkeys(COUNTERS, 0)
        self.stamps = StampFilter(given.max_age)
        self.owners = IdOwners(given.stale_after, configured)
        self.outbox = RateLimiter(given.rate_limit)
        self.heard_ns: int | None = None
        """when the last state came, None before; steady clock, as all below"""
        self._conflicts: dict[tuple[str, str], tuple[int, Conflict]] = {}
        self._problems = ProblemLog(node.get_logger())
        self._flush_timer: Timer | None = None  # made when something has to wait for the first time
        back = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        )
        self._jumps = node.get_clock().create_jump_callback(back, post_callback=self._on_clock_jump)
        self._leaving: list[_Leaving] = []
        subscription(node, VehicleStateArray, "vehicle_states", self._on_vehicle_states, FLEET_IN)
        subscription(
            node, VehicleStateArray, "removed_vehicles", self._on_removed_vehicles, FLEET_IN
        )

    def _on_vehicle_states(self, message: VehicleStateArray) -> None:
        self.heard_ns = steady_ns = time.monotonic_ns()
        try:
            states = msg_to_states(message)
        except VehicleStatesError as error:
            what = f"vehicle_states of {message.source!r}: {error}"
            self.drop("inconsistent", 1, what, subject="vehicle_states")
            return
        if len(states) == 0 or not self.in_time(states, f"vehicle_states of {states.source!r}"):
            return
        in_fleet = goes_in_fleet(len(states), self._packets)
        claim = self.owners.claim(states.id, states.source, steady_ns)
        if claim.conflicts:
            self._note_conflicts(claim, steady_ns)
            states = states.select(claim.accepted)
        self.send(states, "vehicle_states", in_fleet=in_fleet)

    def _on_removed_vehicles(self, message: VehicleStateArray) -> None:
        """Take them out of sight; what of them is still on its way here shows them again, hence
        some times.
        """
        topic = f"removed_vehicles of {message.source!r}"
        try:
            states = msg_to_states(message)
        except VehicleStatesError as error:
            what = f"{topic}: {error}"
            self.drop("inconsistent", 1, what, subject="removed_vehicles")
            return
        steady_ns = time.monotonic_ns()
        claim = self.owners.claim(states.id, states.source, steady_ns)  # no other source's
        ned = self._to_ned(states.select(claim.accepted), topic)
        if ned is not None:
            self._leaving.append(_Leaving(ned.to_removal(), steady_ns, REMOVALS_SENT))
            self.send_removals()

    def send_removals(self) -> None:
        """Once more those that were removed lately, but for ids that live again."""
        for each in self._leaving:
            gone = ~self.owners.heard(each.states.id, each.since_ns + LATE_NS)
            self.send_now(each.states.select(gone))
        self._leaving = [
            each._replace(left=each.left - 1) for each in self._leaving if each.left > 1
        ]

    def in_time(self, states: VehicleStates, source: str) -> bool:
        """Whether the states are newer than the last of their source, and young enough; if not,
        that is counted.
        """
        now_ns = self._node.get_clock().now().nanoseconds
        reason = self.stamps.rejection_reason(source, states.stamp_ns, now_ns, time.monotonic_ns())
        if reason is not None:
            self.drop(reason, len(states), source, subject=source)
        return reason is None

    def send(self, states: VehicleStates, topic: str, *, in_fleet: bool) -> None:
        """Convert states of any frame to NED and send them."""
        ned = self._to_ned(states, topic)
        if ned is not None:
            self.send_now(ned, in_fleet=in_fleet)

    def _to_ned(self, states: VehicleStates, topic: str) -> NedStates | None:
        try:
            frame = self.frames.resolve(states.frame_id or self.own_frame, states.stamp_ns)
        except FrameError as error:
            self.drop("unknown_frame", len(states), f"{topic}: {error}", subject=topic)
            return None
        moved = (
            (None, None)
            if frame.is_world
            else (frame.transform.translation, frame.transform.quat_xyzw)
        )
        ned, dropped = states_to_ned(states, frame.axes, *moved)
        for reason, count in dropped.items():
            self.drop(reason, count, topic, subject=topic)
        return ned

    def send_now(self, ned: NedStates, *, in_fleet: bool = False) -> None:
        """Send now, or when a rate limit or a map change lets it."""
        now_out = self.outbox.offer(ned, time.monotonic_ns())
        self.sender.send_runs(encode_states(now_out, in_fleet=in_fleet))
        if len(now_out) < len(ned):
            self._arm_flush()

    def _arm_flush(self) -> None:
        next_ns = self.outbox.next_due_ns()
        if next_ns is None:
            if self._flush_timer is not None:
                self._flush_timer.cancel()
            return
        wait_ns = max(next_ns - time.monotonic_ns(), 100_000)
        if self._flush_timer is None:
            steady = Clock(clock_type=ClockType.STEADY_TIME)
            self._flush_timer = self._node.create_timer(wait_ns / 1e9, self._flush, clock=steady)
        self._flush_timer.timer_period_ns = wait_ns
        self._flush_timer.reset()

    def _flush(self) -> None:
        states = self.outbox.due(time.monotonic_ns())
        if states is not None:
            self.sender.send_runs(
                encode_states(states, in_fleet=goes_in_fleet(len(states), self._packets))
            )
        self._arm_flush()

    # --- what went wrong

    def drop(self, reason: str, count: int, what: str, *, subject: str) -> None:
        """Count states that are not sent, as `Diagnostics.drop` does, and report a new warning."""
        if self._diagnostics.drop(reason, count, what, subject=subject):
            if reason not in (
                "configured",
                "other_source",
            ):  # `_note_conflicts` has said more of these
                self._node.get_logger().warning(str(self._diagnostics.recent_warning))
            self._changed()

    def _note_conflicts(self, claim: Claim, steady_ns: int) -> None:
        for conflict in claim.conflicts:
            self._conflicts[conflict.first, conflict.second] = (steady_ns, conflict)
            self._problems.begin((conflict.first, conflict.second), str(conflict))
        if claim.configured:
            first = claim.conflicts[0]
            self.drop("configured", claim.configured, str(first), subject=str(first.vehicle_id))
        if claim.others:
            last = claim.conflicts[-1]
            self.drop("other_source", claim.others, str(last), subject=str(last.vehicle_id))

    def warnings(self) -> list[Notice]:
        """What has gone wrong lately, the most helpful first."""
        since_ns = time.monotonic_ns() - WARNING_SHOWN_NS
        self._conflicts = {
            pair: seen for pair, seen in self._conflicts.items() if seen[0] > since_ns
        }
        found = [
            Notice(str(conflict), Reason.OTHER_SOURCE, str(conflict.vehicle_id))
            for _, conflict in self._conflicts.values()
        ]
        recent = self._diagnostics.recent_warning
        if recent and not self._conflicts:
            found.append(recent)
        return found + [
            window.notice()
            for window in self.sender.windows
            if window.last_error and window.last_error_ns > since_ns
        ]

    def tell_problems(self) -> None:
        """Say once of each window that nothing reaches, and of each source of others' vehicles;
        once more when over.
        """
        now_ns = time.monotonic_ns()
        found: dict[object, str] = {
            pair: str(conflict)
            for pair, (seen_ns, conflict) in self._conflicts.items()
            if now_ns - seen_ns <= WARNING_SHOWN_NS
        }
        for window in self.sender.windows:
            if error := window.problem(now_ns, WARNING_SHOWN_NS):
                found[window.index] = f"{window}: {error}"
        self._problems.update(found)

    def drop_stale(self) -> None:
        """Let go of what is known of sources that have fallen silent."""
        steady_ns = time.monotonic_ns()
        for memory in (self.stamps, self.owners, self.outbox):
            memory.drop_stale(steady_ns)

    def _on_clock_jump(self, _jump: Any) -> None:
        self.stamps.reset()
        self.frames.clear()
