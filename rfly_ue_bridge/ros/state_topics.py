# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicle states to RflySim3D: checked, converted to NED, sent or held back.

Part of ue_bridge_node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.timer import Timer
from rfly_suite.msg import VehicleStateArray

from rfly_common.diagnostic_reasons import SHOWN_S, Notice, Reason
from rfly_common.errors import FrameError, VehicleStatesError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import steady_timer, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import FLEET_IN
from rfly_common.state_sources import Claim, Conflict, IdOwners, StampFilter
from rfly_common.vehicle_states import FARTHEST, VehicleStates, msg_to_states, usable_states
from rfly_ue_bridge.codec.commands import delete_vehicles_by_parts, encode_command
from rfly_ue_bridge.codec.ned_states import NedStates, states_to_ned
from rfly_ue_bridge.codec.state_datagrams import encode_states, goes_in_fleet
from rfly_ue_bridge.ros.node_parameters import BridgeParameters
from rfly_ue_bridge.sockets.rate_limiter import RateLimiter
from rfly_ue_bridge.sockets.udp_sender import UdpSender

REMOVALS_SENT = 3
"""Number of times a removal is sent, as one datagram may be lost on a network."""
LATE_NS = 300_000_000
"""Delay after a removal from which states belong to a new vehicle with that id, ns."""

# reasons of dropped states, counted by vehicle; a message that is inconsistent counts as one
COUNTERS = (
    "not_finite",
    "too_far",
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

WARNING_SHOWN_NS = round(SHOWN_S * 1e9)
"""Time that a conflict or a window's error lasts after it was last seen, ns."""
MOST_LOGGED = 20
"""Problems that are logged at one time: names that a peer makes up do not fill the log."""


class ProblemLog:
    """Log of problems by key: a warning for a new one, a line of information when it is over."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._logged: dict[object, str] = {}

    def begin(self, key: object, text: str) -> None:
        """Log a problem that exists now, if it is new."""
        if key not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged[key] = text
            self._logger.warning(text)

    def update(self, problems: Mapping[object, str]) -> None:
        """Log the changes to these problems, which are all that exist now."""
        for key, text in problems.items():
            self.begin(key, text)
        for key in self._logged.keys() - problems.keys():
            self._logger.info(f"over: {self._logged.pop(key)}")


def _placed(states: VehicleStates) -> VehicleStates:
    """Return states that all have a place, the origin if need be.

    A vehicle is removed wherever it was.
    """
    usable, _ = usable_states(states)
    near = (usable & (np.abs(states.position) <= FARTHEST).all(axis=1))[:, None]
    return VehicleStates(
        id=states.id,
        vehicle_type=states.vehicle_type,
        position=np.where(near, states.position, 0.0),
        orientation=np.where(near, states.orientation, (0.0, 0.0, 0.0, 1.0)),
        scale=np.where(near, states.scale, 1.0),
        frame_id=states.frame_id,
        source=states.source,
        stamp_ns=states.stamp_ns,
    )


class _Leaving(NamedTuple):
    """Removed vehicles."""

    states: NedStates
    """Their last states."""
    since_ns: int
    left: int
    """Number of times they are still to be sent: a datagram may be lost."""


class StateTopics:
    """Topics of vehicle states, and the way to RflySim3D for other parts of the node (`send`).

    The diagnostics count what is dropped. `configured` names the sources of ids that parameters
    fix; `changed()` is called when something is dropped after a while without.
    """

    def __init__(
        self,
        node: Node,
        params: BridgeParameters,
        frames: Frames,
        own_frame: str,
        configured: Mapping[int, str],
        sender: UdpSender,
        diagnostics: Diagnostics,
        changed: Callable[[], None],
    ) -> None:
        self._node = node
        self._packets = params.packets
        self._deletes = params.removal == "delete"
        self.frames = frames
        self.own_frame = own_frame
        self.sender = sender
        self._diagnostics = diagnostics
        self._changed = changed

        diagnostics.counters = dict.fromkeys(COUNTERS, 0)
        self.stamps = StampFilter(params.max_age, self._on_set_back)
        self.owners = IdOwners(params.stale_after, configured)
        self.outbox = RateLimiter(params.rate_limit)
        self.heard_ns: int | None = None
        """Time of the last state, None before it; steady clock, as all below."""

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
        """Take removed vehicles out of RflySim3D.

        States that are still in flight would show them again, so it is repeated.
        """
        topic = f"removed_vehicles of {message.source!r}"
        try:
            states = msg_to_states(message)
        except VehicleStatesError as error:
            what = f"{topic}: {error}"
            self.drop("inconsistent", 1, what, subject="removed_vehicles")
            return

        steady_ns = time.monotonic_ns()
        claim = self.owners.claim(states.id, states.source, steady_ns)  # no other source's vehicles
        ned = self._to_ned(_placed(states.select(claim.accepted)), topic)
        if ned is not None:
            self._leaving.append(_Leaving(ned, steady_ns, REMOVALS_SENT))
            self.send_removals()

    def send_removals(self) -> None:
        """Send recent removals again, except for ids that are in use again."""
        for each in self._leaving:
            gone = ~self.owners.heard(each.states.id, each.since_ns + LATE_NS)
            self.take_away(each.states.select(gone))
        self._leaving = [
            each._replace(left=each.left - 1) for each in self._leaving if each.left > 1
        ]

    def in_time(self, states: VehicleStates, source: str) -> bool:
        """Return whether the states are newer than the last of their source, and young enough.

        If not, they are counted.
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
        ned, dropped = states_to_ned(states, frame.axes, *frame.motion)
        for reason, count in dropped.items():
            self.drop(reason, count, topic, subject=topic)
        return ned

    def send_now(self, ned: NedStates, *, in_fleet: bool = False) -> None:
        """Send states now, or later if a rate limit or a map change holds them back."""
        sendable = self.outbox.offer(ned, time.monotonic_ns())
        self.sender.send_runs(encode_states(sendable, in_fleet=in_fleet))
        if len(sendable) < len(ned):
            self._arm_flush()

    def take_away(self, ned: NedStates) -> None:
        """Delete vehicles in RflySim3D, or lower them out of sight, as `removal` says."""
        if not self._deletes:
            self.send_now(ned.to_removal())
            return
        self.outbox.forget(ned.id)  # a waiting state would create its vehicle again
        for text in delete_vehicles_by_parts(ned.id.tolist()):
            self.sender.send(encode_command(text))

    def _arm_flush(self) -> None:
        next_ns = self.outbox.next_due_ns()
        if next_ns is None:
            if self._flush_timer is not None:
                self._flush_timer.cancel()
            return

        wait_ns = max(next_ns - time.monotonic_ns(), 100_000)
        if self._flush_timer is None:
            self._flush_timer = steady_timer(self._node, wait_ns / 1e9, self._flush)
        self._flush_timer.timer_period_ns = wait_ns
        self._flush_timer.reset()

    def _flush(self) -> None:
        states = self.outbox.due(time.monotonic_ns())
        if states is not None:
            in_fleet = goes_in_fleet(len(states), self._packets)
            self.sender.send_runs(encode_states(states, in_fleet=in_fleet))
        self._arm_flush()

    # --- what went wrong

    def drop(self, reason: str, count: int, what: str, *, subject: str) -> None:
        """Count states that are not sent, as `Diagnostics.drop` does, and report a new fault."""
        if self._diagnostics.drop(reason, count, what, subject=subject):
            self._changed()

    def _on_set_back(self, source: str, seconds: float) -> None:
        self._diagnostics.set_back(source, seconds)
        self._changed()

    def _note_conflicts(self, claim: Claim, steady_ns: int) -> None:
        self._diagnostics.count("configured", claim.configured)
        self._diagnostics.count("other_source", claim.others)
        for conflict in claim.conflicts:
            pair = (conflict.first, conflict.second)
            is_new = pair not in self._conflicts
            self._conflicts[pair] = (steady_ns, conflict)
            self._problems.begin(pair, str(conflict))
            if is_new:
                self._changed()

    def warnings(self) -> list[Notice]:
        """Return the recent problems, the most helpful first."""
        since_ns = time.monotonic_ns() - WARNING_SHOWN_NS
        self._conflicts = {
            pair: seen for pair, seen in self._conflicts.items() if seen[0] > since_ns
        }
        found = [
            Notice(str(conflict), Reason.OTHER_SOURCE, str(conflict.vehicle_id))
            for _, conflict in self._conflicts.values()
        ]
        return found + [
            window.notice()
            for window in self.sender.windows
            if window.last_error and window.last_error_ns > since_ns
        ]

    def log_problems(self) -> None:
        """Log each window that no datagram reaches, and each source of vehicles of another source.

        Each is logged once, and once more when it is over.
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
        """Forget sources that have fallen silent."""
        steady_ns = time.monotonic_ns()
        for memory in (self.stamps, self.owners, self.outbox):
            memory.drop_stale(steady_ns)

    def _on_clock_jump(self, _jump: Any) -> None:
        self.stamps.reset()
        self.frames.clear()
