"""What every node shares: QoS profiles, parameters, diagnostics, frame look-up, and the run loop with its clean end."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy,
    QoSProfile,
    ReliabilityPolicy,
    qos_profile_sensor_data,
)
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from rclpy.task import Future
from tf2_msgs.msg import TFMessage

from rfly_common import startup
from rfly_common.errors import ConfigError, FrameError, WorkError
from rfly_common.transform_buffer import IDENTITY, Transform, TransformBuffer

OK, WARN, ERROR, STALE = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE

_RELIABLE, _BEST_EFFORT, _KEPT = (
    ReliabilityPolicy.RELIABLE,
    ReliabilityPolicy.BEST_EFFORT,
    DurabilityPolicy.TRANSIENT_LOCAL,
)

LATCHED = QoSProfile(depth=1, reliability=_RELIABLE, durability=_KEPT)
"""maps, clouds, planned paths: a late subscriber gets the last one; both ends need it"""
STATE_OUT = QoSProfile(depth=10, reliability=_RELIABLE)
"""poses and odometry that we publish: RViz's displays ask for reliable"""
STATE_IN = QoSProfile(depth=1, reliability=_BEST_EFFORT)
"""poses and odometry of foreign robots: best effort matches any publisher"""
FLEET_OUT = QoSProfile(depth=10, reliability=_RELIABLE)
FLEET_IN = QoSProfile(depth=100, reliability=_RELIABLE)
"""`vehicle_states`: our own type, many publishers, partial updates"""
COMMANDS = QoSProfile(depth=10, reliability=_RELIABLE)
"""losing one matters; never latched"""
FEEDBACK_OUT = QoSProfile(depth=100, reliability=_RELIABLE)
"""what RflySim3D says: it comes in bursts, one message for each vehicle"""
CONTACTS_OUT = QoSProfile(depth=100, reliability=_RELIABLE)
"""begin and end of contacts: losing one matters"""
SENSORS = qos_profile_sensor_data
TF = QoSProfile(depth=100, reliability=_RELIABLE)
TF_STATIC_OUT = QoSProfile(depth=1, reliability=_RELIABLE, durability=_KEPT)
TF_STATIC_IN = QoSProfile(depth=100, reliability=_RELIABLE, durability=_KEPT)
CLOCK = QoSProfile(depth=1, reliability=_BEST_EFFORT)


def sensor_qos(lock_step: bool) -> QoSProfile:
    """Of sensor topics, for both ends: with lock-step nothing may be lost, else the newest counts."""
    return QoSProfile(depth=10, reliability=_RELIABLE) if lock_step else SENSORS


# rclpy's own warning of an incompatible peer is an event of each endpoint, which Python looks at after every wake-up:
# a third of a pose's way through a node. `unmatched_peers` says the same, and names the peer.
_NO_PUBLISHER_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)
_NO_SUBSCRIPTION_EVENTS = SubscriptionEventCallbacks(use_default_callbacks=False)


def publisher(node: Node, msg_type: Any, topic: str, qos: QoSProfile) -> Publisher:
    """A publisher whose QoS a user can override by parameter (`qos_overrides.<topic>.publisher.…`)."""
    return node.create_publisher(
        msg_type,
        topic,
        qos,
        event_callbacks=_NO_PUBLISHER_EVENTS,
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
    )


def subscription(
    node: Node, msg_type: Any, topic: str, callback: Callable[[Any], Any], qos: QoSProfile
) -> Subscription:
    """A subscription whose QoS a user can override by parameter (`qos_overrides.<topic>.subscription.…`)."""
    return node.create_subscription(
        msg_type,
        topic,
        callback,
        qos,
        event_callbacks=_NO_SUBSCRIPTION_EVENTS,
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
    )


def unmatched_peers(node: Node) -> list[str]:
    """Publishers and subscriptions of other nodes that share a topic with this node, but neither type nor QoS."""
    found = []
    ends_of_ours: list[tuple[Any, str]] = [(s, "from") for s in node.subscriptions]
    ends_of_ours += [(p, "to") for p in node.publishers]
    for ours, direction in ends_of_ours:
        topic = ours.topic_name
        our_type = f"{ours.msg_type.__module__.split('.')[0]}/msg/{ours.msg_type.__name__}"
        infos = node.get_publishers_info_by_topic if direction == "from" else node.get_subscriptions_info_by_topic
        for peer in infos(topic):
            name = f"{peer.node_namespace.rstrip('/')}/{peer.node_name}"
            ends = (peer.qos_profile, ours.qos_profile) if direction == "from" else (ours.qos_profile, peer.qos_profile)
            reason = f"its type is {peer.topic_type}" if peer.topic_type != our_type else _qos_conflict(*ends)
            if reason:
                found.append(f"{topic}: nothing gets {direction} {name}: {reason}")
    return found


def _qos_conflict(offered: QoSProfile, requested: QoSProfile) -> str:
    """What a publisher offers less of than a subscription requests; "" if nothing (we set no other policy)."""
    if requested.reliability == _RELIABLE and offered.reliability == _BEST_EFFORT:
        return "the publisher is best effort, the subscription reliable"
    if requested.durability == _KEPT and offered.durability == DurabilityPolicy.VOLATILE:
        return "the publisher is volatile, the subscription transient local"
    return ""


def declare(
    node: Node,
    name: str,
    default: Any,
    description: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] | None = None,
    read_only: bool = True,
) -> Any:
    """Declare a parameter typed by its default and return its value.

    A float parameter takes an integer too (`-p rate:=50`). An empty list as default declares string[]
    (`declare_floats` is for optional numbers). Raises ConfigError that names the parameter and what it takes.
    """
    descriptor = ParameterDescriptor(description=description, read_only=read_only)
    if choices is not None:
        descriptor.additional_constraints = "one of: " + ", ".join(choices)
    floating = isinstance(default, float)
    if floating and (low is not None or high is not None):
        descriptor.floating_point_range = [
            FloatingPointRange(
                from_value=-math.inf if low is None else float(low), to_value=math.inf if high is None else float(high)
            )
        ]
    if isinstance(default, int) and not isinstance(default, bool) and (low is not None or high is not None):
        descriptor.integer_range = [
            IntegerRange(
                from_value=-(2**63) if low is None else int(low),
                to_value=2**63 - 1 if high is None else int(high),
                step=1,
            )
        ]
    if floating:
        _integer_override_to_float(node, name)
    kind = rclpy.Parameter.Type.STRING_ARRAY if default == [] else rclpy.Parameter.Type.from_parameter_value(default)
    try:
        value = node.declare_parameter(name, default if default != [] else kind, descriptor).value
    except InvalidParameterTypeException as error:
        raise ConfigError(f"parameter {name}: expected {kind.name.lower()}, {error}") from error
    except InvalidParameterValueException as error:
        limits = f"{'-inf' if low is None else low} … {'inf' if high is None else high}"
        raise ConfigError(f"parameter {name}: {error}; allowed: {limits}") from error
    if value is None:
        value = default
    if floating and not math.isfinite(value):
        raise ConfigError(f"parameter {name}: {value} is not a finite number")
    if choices is not None and value not in choices:
        raise ConfigError(f"parameter {name}: {value!r}, expected one of {', '.join(choices)}")
    return value


def declare_floats(node: Node, name: str, description: str) -> list[float]:
    """Declare an optional float array, empty where nobody sets it."""
    descriptor = ParameterDescriptor(description=description, read_only=True)
    try:
        value = node.declare_parameter(name, rclpy.Parameter.Type.DOUBLE_ARRAY, descriptor).value
    except InvalidParameterTypeException as error:
        raise ConfigError(
            f"parameter {name}: expected a list of numbers such as [47.4, 8.5, 488.0], {error}"
        ) from error
    return [] if value is None else list(value)


def _integer_override_to_float(node: Node, name: str) -> None:
    """rclpy refuses `50` for a double parameter, which every user types at some time: read it as 50.0."""
    given = node._parameter_overrides.get(name)  # no public way before the declaration
    if given is not None and given.type_ == rclpy.Parameter.Type.INTEGER:
        node._parameter_overrides[name] = rclpy.Parameter(name, rclpy.Parameter.Type.DOUBLE, float(given.value))


Result = TypeVar("Result")


async def in_thread(node: Node, work: Callable[[], Result]) -> Result:
    """The result of work(), from a thread of its own; the node goes on meanwhile. For `async` services.

    `work` touches nothing of the node, and gives errors as part of its result. Raises WorkError where it raises one.
    """
    done: Future = Future(executor=node.executor)

    def run_there() -> None:
        end: tuple[Callable[[Any], None], Any] = done.set_exception, WorkError("broke off; the node's log tells why")
        try:
            end = done.set_result, work()
        finally:  # whoever waits is answered; the trace is the thread's own
            if node.executor is not None:
                node.executor.create_task(*end)

    threading.Thread(target=run_there, daemon=True).start()
    result: Result = await done
    return result


CHECK_PEERS_EVERY = 4
"""seconds between two looks at the peers of a node's topics"""


def stamp_to_ns(stamp: Any) -> int:
    """builtin_interfaces/Time -> nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def ns_to_stamp(nanoseconds: int) -> Any:
    """Nanoseconds -> builtin_interfaces/Time."""
    seconds, rest = divmod(int(nanoseconds), 1_000_000_000)  # rclpy's Time raises where a message's is negative
    return Time(sec=seconds, nanosec=rest)


class Diagnostics:
    """One status of a node on /diagnostics: at 1 Hz, and at once when the level changes.

    `refresh`, where given, is called before every timed publication and may call `set`. Of several tasks of one node
    only one needs to check the peers of its topics.
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
        self.unmatched: list[str] = []
        """peers that share a topic, but neither type nor QoS"""
        self._checks_peers = check_peers
        self._ticks = 0
        self._publisher = publisher(node, DiagnosticArray, "/diagnostics", STATE_OUT)
        # steady, so that a paused simulation clock does not silence the diagnostics
        self._timer = node.create_timer(1.0, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def count(self, reason: str, number: int = 1) -> None:
        """Add to the counter of a reason."""
        self.counters[reason] = self.counters.get(reason, 0) + number

    def set(self, level: bytes, message: str, **values: Any) -> None:
        """State the present level; published at once if it differs from the last."""
        changed = level != self._level
        self._level, self._message, self._values = level, message, values
        if changed:
            self._send()

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
        self._seen_ns, self._seen_at = -1, time.monotonic()

    @property
    def trouble(self) -> str:
        """What to say of it, "" while time goes on."""
        now_ns, steady = self._node.get_clock().now().nanoseconds, time.monotonic()
        if now_ns != self._seen_ns:
            self._seen_ns, self._seen_at = now_ns, steady
        silence = steady - self._seen_at
        return f"/clock has not moved for {silence:.0f} s" if silence > self._SILENCE_S else ""


@dataclass(frozen=True, eq=False)
class FrameToWorld:
    """How coordinates given in a frame become world coordinates: `transform`, then `axes` (enu or ned)."""

    axes: str
    transform: Transform
    is_world: bool
    """True where the frame is a world frame itself and `transform` changes nothing"""


class Frames:
    """Which frame ids are world frames, and how the others are connected to one through /tf and /tf_static."""

    def __init__(self, node: Node, *, listen: bool = True) -> None:
        """With `listen` false transforms are heard only after `listen()`, which a node calls that seldom needs one."""
        self.enu_frames: list[str] = declare(
            node, "enu_frames", ["map"], "frame ids that are the ENU world frame itself"
        )
        self.ned_frames: list[str] = declare(
            node, "ned_frames", ["map_ned"], "frame ids that are the NED world frame itself"
        )
        both = set(self.enu_frames) & set(self.ned_frames)
        if both:
            raise ConfigError(f"parameters enu_frames and ned_frames: {sorted(both)[0]!r} is in both")
        self._worlds = dict.fromkeys(self.enu_frames, "enu") | dict.fromkeys(self.ned_frames, "ned")
        self._ready = {frame: FrameToWorld(axes, IDENTITY, True) for frame, axes in self._worlds.items()}
        self._buffer = TransformBuffer()
        self._node, self._log = node, node.get_logger()
        self._listens = False
        if listen:
            self.listen()

    def listen(self) -> None:
        """Take transforms from now on."""
        if not self._listens:
            self._listens = True
            subscription(self._node, TFMessage, "/tf", self._take, TF)
            subscription(self._node, TFMessage, "/tf_static", lambda msg: self._take(msg, static=True), TF_STATIC_IN)

    def axes(self, frame_id: str) -> str | None:
        """enu or ned for a world frame, None for any other."""
        return self._worlds.get(frame_id)

    def resolve(self, frame_id: str, stamp_ns: int = 0) -> FrameToWorld:
        """The way from a frame to the world at a time (0 = newest). Raises FrameError that names the frame."""
        ready = self._ready.get(frame_id)
        if ready is not None:
            return ready
        reason: FrameError | None = None
        for world, axes in self._worlds.items():
            try:
                return FrameToWorld(axes, self._buffer.lookup(world, frame_id, stamp_ns), False)
            except FrameError as error:
                reason = reason or error
        raise reason or FrameError(f"frame {frame_id!r}: no world frame is set (parameters enu_frames, ned_frames)")

    def between(self, target: str, source: str, stamp_ns: int = 0) -> Transform:
        """Coordinates given in `source` -> those of `target`, world frame or not. Raises FrameError."""
        return IDENTITY if source == target else self._buffer.lookup(target, source, stamp_ns)

    def clear(self) -> None:
        """Forget moving transforms (the clock jumped back)."""
        self._buffer.clear()

    def _take(self, message: TFMessage, static: bool = False) -> None:
        for t in message.transforms:
            p, q = t.transform.translation, t.transform.rotation
            try:
                self._buffer.add(
                    t.header.frame_id.lstrip("/"),
                    t.child_frame_id.lstrip("/"),
                    stamp_to_ns(t.header.stamp),
                    (p.x, p.y, p.z),
                    (q.x, q.y, q.z, q.w),
                    static=static,
                )
            except FrameError as error:
                self._log.warning(f"transform ignored: {error}", throttle_duration_sec=5.0)


def run(make_node: Callable[[], Node], *, often: bool = False) -> None:
    """Run one node until SIGINT, SIGTERM or a shut-down context; exit code 0 within two seconds, without a trace.

    A ConfigError while the node is made is logged in one line and ends the process with exit code 2. `often`: for a
    node that wakes hundreds of times a second; where rclpy has its executor of events, a wake-up then costs a tenth.
    It knows no guard conditions.
    """
    startup.install_handlers()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    # before the node: a half-made executor prints a trace
    executor = _events_executor() if often else SingleThreadedExecutor()
    node: Node | None = None
    try:
        node = make_node()
        executor.add_node(node)
        gc.freeze()  # what the imports and the node have made stays; no later collection needs to walk through it
        startup.spinning()
        while rclpy.ok() and not startup.stop_requested():
            executor.spin_once(timeout_sec=0.2)
    except ExternalShutdownException:
        pass
    except ConfigError as error:
        rclpy.logging.get_logger("rfly").fatal(str(error))
        raise SystemExit(2) from None
    finally:
        if node is not None:
            executor.remove_node(node)  # one that still held it could use it while it goes
            node.destroy_node()
        executor.shutdown(timeout_sec=0.5)
        rclpy.try_shutdown()


def _events_executor() -> Executor:
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:  # before Jazzy
        return SingleThreadedExecutor()
    return EventsExecutor()
