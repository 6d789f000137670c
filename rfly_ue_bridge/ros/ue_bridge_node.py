"""ue_bridge_node: vehicle states, and poses of foreign robots, to RflySim3D by UDP. A thin shell around the library."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType, JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.timer import Timer
from rfly_suite.msg import VehicleState, VehicleStateArray
from rfly_suite.srv import SendUeCommand
from std_msgs.msg import String

from rfly_common.errors import CommandError, ConfigError, FrameError, VehicleStatesError
from rfly_common.frames import pose_enu_to_ned_euler, pose_ned_to_ned_euler
from rfly_common.ros.diagnostics import OK, STALE, WARN, ClockWatch, Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare
from rfly_common.ros.qos import COMMANDS, FLEET_IN, STATE_IN
from rfly_common.ros.run_loop import run
from rfly_common.ros.vehicle_msgs import msg_to_states, state_msg_to_states
from rfly_common.state_sources import Claim, Conflict, IdOwners, StampFilter
from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.commands import MAP_CHANGE_SECONDS, changes_map, encode_command
from rfly_ue_bridge.codec.ned_states import NedStates, states_to_ned
from rfly_ue_bridge.codec.state_datagrams import encode_pose, encode_states, goes_in_fleet
from rfly_ue_bridge.ros.feedback_topics import FeedbackTopics
from rfly_ue_bridge.ros.object_topics import PlacedObjects
from rfly_ue_bridge.ros.pose_msgs import odometry_to_states, pose_to_states
from rfly_ue_bridge.sockets.rate_limiter import RateLimiter
from rfly_ue_bridge.sockets.udp_sender import DEFAULT_HOST, DEFAULT_PORT, UdpSender

TROUBLE_SHOWN_NS = 5_000_000_000
"""The diagnostic stays at WARN for so long after the last dropped message or failed datagram."""
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
"""Why states were dropped, counted by vehicle (a message that is inconsistent in itself counts as one)."""

LEAST_NORM_2, GREATEST_NORM_2 = 0.9981, 1.0019
"""Squared norms of quaternions that are beyond doubt; those closer to the limits are measured exactly."""


@dataclass(frozen=True)
class Vehicle:
    """A foreign robot, as the parameters describe it."""

    name: str
    id: int
    type: int
    topic: str
    message: str
    fit_ground: bool


_MESSAGES = {"pose": PoseStamped, "odometry": Odometry, "vehicle_state": VehicleState}
_DEFAULT_TOPICS = {"pose": "pose", "odometry": "odom", "vehicle_state": "state"}


class UeBridgeNode(Node):
    """Sends in the callback of the message; a timer sends only what a rate limit or a map change held back."""

    def __init__(self) -> None:
        super().__init__("ue_bridge_node")
        self._sender = self._make_sender()
        rate_limit = declare(
            self,
            "rate_limit",
            0.0,
            "most datagrams of one vehicle a second, Hz; the newest state is sent when its turn comes; 0 = no limit",
            low=0.0,
            high=10_000.0,
        )
        max_age = declare(
            self,
            "max_age",
            0.0,
            "states whose stamp is older than this by the node's clock are dropped, s; 0 = off",
            low=0.0,
            high=1e6,
        )
        stale_after = declare(
            self,
            "stale_after",
            1.0,
            "a vehicle id that is silent for so long may be taken over by another source, s; "
            "silence of all of them for so long is reported",
            low=0.01,
            high=3600.0,
        )
        self._packets = declare(
            self,
            "packets",
            "auto",
            "how the vehicles of a VehicleStateArray leave: one by one, as fleet packets, or auto: fleet packets if "
            "they are more than 20",
            choices=("auto", "single", "batch"),
        )
        self._vehicles = self._declare_vehicles()
        self._frames = Frames(self)
        worlds = self._frames.enu_frames + self._frames.ned_frames
        if not worlds:
            raise ConfigError("parameters enu_frames and ned_frames: both are empty, expected one world frame or more")
        self._own_frame: str = declare(
            self,
            "frame_id",
            worlds[0],
            "the node's own world frame: that of RflySim3D's answers, and of states whose frame_id is empty",
            choices=worlds,
        )
        self._stamps = StampFilter(max_age)
        configured = {vehicle.id: f"topic {vehicle.topic} (parameter vehicles)" for vehicle in self._vehicles}
        self._owners = IdOwners(stale_after, configured)
        self._outbox = RateLimiter(rate_limit)

        self._stale_after_ns = round(stale_after * 1e9)
        self._heard_ns: int | None = None  # steady clock, as all below
        self._trouble = ""
        self._trouble_ns = 0
        self._conflicts: dict[tuple[str, str], tuple[int, Conflict]] = {}
        self._clock_watch = ClockWatch(self)

        first, last = self._sender.windows[0].address, self._sender.windows[-1].address
        where = f"{first[0]}:{first[1]}" + (f"-{last[1]}" if last != first else "")
        self._diagnostics = Diagnostics(self, "bridge", where, self._each_second)
        self._diagnostics.counters = dict.fromkeys(COUNTERS, 0)
        back = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False)
        self._jumps = self.get_clock().create_jump_callback(back, post_callback=self._clock_jumped)
        self._flush_timer: Timer | None = None  # made when something has to wait for the first time

        subscription(self, VehicleStateArray, "vehicle_states", self._take_fleet, FLEET_IN)
        for vehicle in self._vehicles:
            take = self._pose_callback(vehicle) if vehicle.message == "pose" else self._state_callback(vehicle)
            subscription(self, _MESSAGES[vehicle.message], vehicle.topic, take, STATE_IN)
        subscription(self, String, "ue_command", self._take_command, COMMANDS)
        self.create_service(SendUeCommand, "send_ue_command", self._serve_command)
        axes = self._frames.axes(self._own_frame) or "enu"
        self._feedback = FeedbackTopics(self, self._host, self._own_frame, axes, self._command)
        self._objects = PlacedObjects(self, self._frames, self._own_frame, self._owners, self._send_now)
        self.get_logger().info(f"sending to {where} ({len(self._sender.windows)} windows)")

    def _make_sender(self) -> UdpSender:
        self._host: str = declare(self, "host", DEFAULT_HOST, "name or IPv4 address of the machine that runs RflySim3D")
        port = declare(self, "port", DEFAULT_PORT, "UDP port of window 0; window k has port + k", low=1, high=65535)
        windows = declare(self, "windows", 1, "number of RflySim3D windows at the host", low=1, high=64)
        broadcast = declare(self, "broadcast", False, "allow a broadcast address as host")
        ttl = declare(
            self, "multicast_ttl", 1, "networks that a datagram to a multicast host may cross", low=0, high=255
        )
        interface = declare(
            self, "multicast_interface", "", "IPv4 address of the interface for a multicast host; empty = the system's"
        )
        return UdpSender(
            self._host, port, windows, broadcast=broadcast, multicast_ttl=ttl, multicast_interface=interface
        )

    def _declare_vehicles(self) -> list[Vehicle]:
        names = declare(self, "vehicles", [], "names of foreign robots to show; each has the parameters <name>.id …")
        vehicles: list[Vehicle] = []
        for name in names:
            message = declare(self, f"{name}.message", "pose", "what its topic carries", choices=tuple(_MESSAGES))
            vehicle = Vehicle(
                name=name,
                id=declare(self, f"{name}.id", 0, "its CopterID, which must be set", low=0, high=2**31 - 1),
                type=declare(
                    self,
                    f"{name}.type",
                    3,
                    "its vehicleType (a vehicle_state brings its own)",
                    low=-(2**31),
                    high=2**31 - 1,
                ),
                topic=declare(
                    self,
                    f"{name}.topic",
                    f"{name}/{_DEFAULT_TOPICS[message]}",
                    "where its PoseStamped, Odometry or VehicleState comes from",
                ),
                message=message,
                fit_ground=declare(
                    self,
                    f"{name}.fit_ground",
                    False,
                    "RflySim3D keeps it on the ground (a vehicle_state says so itself)",
                ),
            )
            if vehicle.id == 0:
                raise ConfigError(f"parameter {name}.id: not set; expected the CopterID of the vehicle, 1 or more")
            same = next((other.name for other in vehicles if other.id == vehicle.id), None)
            if same is not None:
                raise ConfigError(f"parameter {name}.id: {vehicle.id} is the id of {same} already")
            vehicles.append(vehicle)
        return vehicles

    # --- what comes in

    def _pose_callback(self, vehicle: Vehicle) -> Callable[[PoseStamped], None]:
        """The quick way for a pose in a world frame that may go at once: plain floats, one datagram, books kept later.

        Whatever is unusual about a pose is left to the slow way, which gives the reasons. Between two poses the
        processor's caches forget us, so that each function called before `send` costs microseconds.
        """
        topic, vehicle_id, vehicle_type = vehicle.topic, vehicle.id, vehicle.type
        clock, steady_ns = self.get_clock(), time.monotonic_ns
        stamps, outbox, send = self._stamps, self._outbox, self._sender.send
        ways = dict.fromkeys(self._frames.enu_frames, pose_enu_to_ned_euler)
        ways |= dict.fromkeys(self._frames.ned_frames, pose_ned_to_ned_euler)
        ways[""] = ways[self._own_frame]
        slowly = self._state_callback(vehicle)

        def take(message: PoseStamped) -> None:
            header, pose = message.header, message.pose
            stamp, p, q = header.stamp, pose.position, pose.orientation
            x, y, z, qx, qy, qz, qw = p.x, p.y, p.z, q.x, q.y, q.z, q.w
            to_ned = ways.get(header.frame_id)
            if (
                to_ned is None
                or not outbox.idle
                or not LEAST_NORM_2 < qx * qx + qy * qy + qz * qz + qw * qw < GREATEST_NORM_2
                or not x - x == y - y == z - z == 0.0  # false for NaN and infinity
            ):
                slowly(message)
                return
            stamp_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
            certain = stamps.is_newer(topic, stamp_ns)
            if not certain:
                reason = stamps.rejection_reason(topic, stamp_ns, clock.now().nanoseconds, steady_ns())
                if reason is not None:
                    self._heard_ns = steady_ns()
                    self._drop(reason, 1, topic)
                    return
            send(encode_pose(vehicle_id, vehicle_type, *to_ned(x, y, z, qx, qy, qz, qw)))
            self._heard_ns = steady_ns()
            if certain:
                stamps.rejection_reason(topic, stamp_ns, clock.now().nanoseconds, self._heard_ns)

        return slowly if vehicle.fit_ground else take

    def _state_callback(self, vehicle: Vehicle) -> Callable[[Any], None]:
        """The way for everything else, as a fleet of one."""

        def to_states(message: Any) -> VehicleStates | None:
            if vehicle.message == "pose":
                return pose_to_states(message, vehicle.id, vehicle.type, vehicle.fit_ground)
            if vehicle.message == "odometry":
                return odometry_to_states(message, vehicle.id, vehicle.type, vehicle.fit_ground)
            if message.id != vehicle.id:
                self._drop("wrong_id", 1, f"{vehicle.topic}: id {message.id}, expected {vehicle.id}")
                return None
            return state_msg_to_states(message)

        def take(message: Any) -> None:
            self._heard_ns = time.monotonic_ns()
            try:
                states = to_states(message)
            except VehicleStatesError as error:
                self._drop("inconsistent", 1, f"{vehicle.topic}: {error}")
                return
            if states is not None and self._in_time(states, vehicle.topic):
                self._send_states(states, vehicle.topic, in_fleet=False)

        return take

    def _take_fleet(self, message: VehicleStateArray) -> None:
        self._heard_ns = steady_ns = time.monotonic_ns()
        try:
            states = msg_to_states(message)
        except VehicleStatesError as error:
            self._drop("inconsistent", 1, f"vehicle_states of {message.source!r}: {error}")
            return
        if len(states) == 0 or not self._in_time(states, f"vehicle_states of {states.source!r}"):
            return
        in_fleet = goes_in_fleet(len(states), self._packets)
        claim = self._owners.claim(states.id, states.source, steady_ns)
        if claim.conflicts:
            self._note_conflicts(claim, steady_ns)
            states = states.select(claim.accepted)
        self._send_states(states, "vehicle_states", in_fleet=in_fleet)

    def _in_time(self, states: VehicleStates, source: str) -> bool:
        now_ns = self.get_clock().now().nanoseconds
        reason = self._stamps.rejection_reason(source, states.stamp_ns, now_ns, time.monotonic_ns())
        if reason is not None:
            self._drop(reason, len(states), source)
        return reason is None

    def _send_states(self, states: VehicleStates, topic: str, *, in_fleet: bool) -> None:
        try:
            frame = self._frames.resolve(states.frame_id or self._own_frame, states.stamp_ns)
        except FrameError as error:
            self._drop("unknown_frame", len(states), f"{topic}: {error}")
            return
        moved = (None, None) if frame.is_world else (frame.transform.translation, frame.transform.quat_xyzw)
        ned, dropped = states_to_ned(states, frame.axes, *moved)
        for reason, count in dropped.items():
            self._drop(reason, count, topic)
        self._send_now(ned, in_fleet=in_fleet)

    def _send_now(self, ned: NedStates, *, in_fleet: bool = False) -> None:
        """Now, or when a rate limit or a map change lets it."""
        now_out = self._outbox.offer(ned, time.monotonic_ns())
        self._sender.send_runs(encode_states(now_out, in_fleet=in_fleet))
        if len(now_out) < len(ned):
            self._arm_flush()

    # --- what had to wait

    def _arm_flush(self) -> None:
        next_ns = self._outbox.next_due_ns()
        if next_ns is None:
            if self._flush_timer is not None:
                self._flush_timer.cancel()
            return
        wait_ns = max(next_ns - time.monotonic_ns(), 100_000)
        if self._flush_timer is None:
            steady = Clock(clock_type=ClockType.STEADY_TIME)
            self._flush_timer = self.create_timer(wait_ns / 1e9, self._flush, clock=steady)
        self._flush_timer.timer_period_ns = wait_ns
        self._flush_timer.reset()

    def _flush(self) -> None:
        states = self._outbox.due(time.monotonic_ns())
        if states is not None:
            self._sender.send_runs(encode_states(states, in_fleet=goes_in_fleet(len(states), self._packets)))
        self._arm_flush()

    # --- console commands

    def _take_command(self, message: String) -> None:
        wrong = self._command(message.data, -1)
        if wrong:
            self.get_logger().warning(f"ue_command: {wrong}")

    def _serve_command(self, request: Any, response: Any) -> Any:
        response.message = self._command(request.command, request.window)
        response.success = not response.message
        return response

    def _command(self, text: str, window: int) -> str:
        """Send a console command: "" or what was wrong."""
        try:
            datagram = encode_command(text)
        except CommandError as error:
            self._diagnostics.count("refused_commands")
            return str(error)
        wrong = self._sender.send_to(window, datagram)
        if not wrong and changes_map(text):
            self._outbox.hold(time.monotonic_ns() + round(MAP_CHANGE_SECONDS * 1e9))
        return wrong

    # --- what is to be told

    def _drop(self, reason: str, count: int, what: str) -> None:
        steady_ns = time.monotonic_ns()
        news = steady_ns - self._trouble_ns > TROUBLE_SHOWN_NS
        self._diagnostics.count(reason, count)
        self._trouble, self._trouble_ns = f"{reason}: {what}", steady_ns
        if news:
            self.get_logger().warning(f"dropped, {self._trouble}")
            self._say()

    def _note_conflicts(self, claim: Claim, steady_ns: int) -> None:
        for conflict in claim.conflicts:
            self._conflicts[conflict.first, conflict.second] = (steady_ns, conflict)
        if claim.configured:
            self._drop("configured", claim.configured, _conflict_text(claim.conflicts[0]))
        if claim.others:
            self._drop("other_source", claim.others, _conflict_text(claim.conflicts[-1]))

    def _say(self) -> None:
        steady_ns = time.monotonic_ns()
        level, message = OK, "sending"
        troubles = self._present_troubles(steady_ns)
        if troubles:
            level, message = WARN, "; ".join(troubles)
        if self._heard_ns is None or steady_ns - self._heard_ns > self._stale_after_ns:
            since = "yet" if self._heard_ns is None else f"for {(steady_ns - self._heard_ns) / 1e9:.1f} s"
            level, message = STALE, "; ".join([f"no states {since}", *troubles])
        values: dict[str, Any] = {
            "sent_datagrams": self._sender.sent,
            "superseded_states": self._outbox.superseded,
            "fleet_vehicles": len(self._owners),
        }
        for window in self._sender.windows:
            for name, count in window.errors.items():
                values[f"window_{window.index}_{name}"] = count
        self._diagnostics.set(level, message, **values)

    def _present_troubles(self, steady_ns: int) -> list[str]:
        """What has gone wrong lately, the most helpful first."""
        since_ns = steady_ns - TROUBLE_SHOWN_NS
        self._conflicts = {pair: seen for pair, seen in self._conflicts.items() if seen[0] > since_ns}
        troubles = [_conflict_text(conflict) for _, conflict in self._conflicts.values()]
        if self._trouble_ns > since_ns and self._trouble and not self._conflicts:
            troubles.append(f"dropped, {self._trouble}")
        troubles += [
            f"{window}: {window.last_error}"
            for window in self._sender.windows
            if window.last_error and window.last_error_ns > since_ns
        ]
        troubles += self._diagnostics.unmatched
        if self._clock_watch.trouble:
            troubles.append(self._clock_watch.trouble)
        return troubles

    def _each_second(self) -> None:
        steady_ns = time.monotonic_ns()
        for memory in (self._stamps, self._owners, self._outbox):
            memory.drop_stale(steady_ns)
        self._say()

    def _clock_jumped(self, _jump: Any) -> None:
        self._stamps.reset()
        self._frames.clear()

    def destroy_node(self) -> None:
        """Close the sockets too."""
        self._feedback.close()
        self._sender.close()
        super().destroy_node()


def _conflict_text(conflict: Conflict) -> str:
    second = conflict.second or "a source without a name"
    return f"vehicle {conflict.vehicle_id} comes from {conflict.first}; what {second} says of it is dropped"


def main() -> None:
    """Entry point of the executable `ue_bridge_node`."""
    run(UeBridgeNode)
