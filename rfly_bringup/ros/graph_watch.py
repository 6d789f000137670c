# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Observation of a running graph for `rfly doctor` and `rfly status`; it publishes nothing."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.exceptions import InvalidTopicNameException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from rfly_suite.msg import VehicleState, VehicleStateArray
from tf2_msgs.msg import TFMessage

from rfly_bringup.doctor.findings import BRIDGE, STATES_TYPE
from rfly_bringup.doctor.machine import ask, look_at_machine, router_to
from rfly_bringup.doctor.snapshot import (
    Destination,
    DiagnosticReport,
    Endpoint,
    Machine,
    Mismatch,
    Robot,
    Snapshot,
    Source,
)
from rfly_bringup.ros.command_client import command_session
from rfly_common.diagnostic_reasons import Notice, RecentFaults
from rfly_common.errors import ConfigError, FrameError
from rfly_common.files import Closing
from rfly_common.ros.callback_errors import guarded
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.transform_buffer import TransformBuffer
from rfly_ue_bridge.sockets.udp_sender import resolve

LOOK_EVERY_S = 0.5
"""Time between two looks at nodes and topics, s."""
MOST_STATUSES = 1000
"""Reports of a graph that are remembered."""
MOST_FRAMES = 10_000
"""Frames of a graph that are remembered."""
LEAST_REPEATS = 3
"""Messages out of a publisher's order that mean a second one: a restart gives one."""
MOST_WINDOWS = 64
"""Windows of a bridge that are asked."""
_ANYONE = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
"""QoS that matches every publisher."""
_KEPT = QoSProfile(
    depth=100, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
_BRIDGE_PARAMETERS = ("host", "port", "windows", "enu_frames", "ned_frames")
_ROBOT_PARAMETERS = ("id", "topic", "message")
_ROBOT_MESSAGES = {"pose": PoseStamped, "odometry": Odometry, "vehicle_state": VehicleState}
LEAST_RATE_PERIOD_S = 0.5
"""Time between two reports from which a rate of datagrams is computed, s."""
MOST_DIGITS = 19
"""Digits of a counter."""
RATE_OVER_S = 2.0
"""Time over which the rate of messages is measured, s."""


@dataclass
class _Heard:
    frame_id: str = ""
    ids: set[int] = field(default_factory=set)
    not_finite: set[int] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    """Arrival times, steady clock, s."""
    last_ids: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))


class HeardSources:
    """Sources of vehicles that have been heard, by topic and name."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], _Heard] = {}

    def hear_states(self, topic: str, message: Any) -> None:
        """Record a VehicleStateArray.

        The ids of a fleet usually stay the same, so they are compared first.
        """
        heard = self._arrived(topic, message.source, message.header.frame_id)
        ids = np.asarray(message.id)
        if not np.array_equal(ids, heard.last_ids):
            heard.last_ids = ids.copy()
            heard.ids.update(ids.tolist())

        position = np.asarray(message.position)
        orientation = np.asarray(message.orientation)
        if len(position) == 3 * len(ids) and len(orientation) == 4 * len(ids):
            finite = np.isfinite(position.reshape(-1, 3)).all(axis=1)
            finite &= np.isfinite(orientation.reshape(-1, 4)).all(axis=1)
            heard.not_finite.update(ids[~finite].tolist())

    def hear_robot(self, topic: str, name: str, vehicle_id: int, message: Any) -> None:
        """Record a PoseStamped, Odometry or VehicleState of another robot."""
        heard = self._arrived(topic, name, message.header.frame_id)
        heard.ids.add(vehicle_id)

        if hasattr(message, "pose"):
            pose = getattr(message.pose, "pose", message.pose)
            p = pose.position
            q = pose.orientation
            numbers = [p.x, p.y, p.z, q.x, q.y, q.z, q.w]
        else:
            numbers = [*message.position, *message.orientation]

        if not np.isfinite(numbers).all():
            heard.not_finite.add(vehicle_id)

    def sources(self, now: float) -> tuple[Source, ...]:
        """Return all sources; `now` is on the steady clock, s."""
        found = []
        for (topic, name), heard in sorted(self._heard.items()):
            recent = [arrival for arrival in heard.times if arrival > now - RATE_OVER_S]
            if len(recent) > 1:
                rate = (len(recent) - 1) / (recent[-1] - recent[0])
            else:
                rate = len(recent) / RATE_OVER_S

            found.append(
                Source(
                    topic,
                    name,
                    frozenset(heard.ids),
                    rate,
                    age=now - heard.times[-1],
                    frame_id=heard.frame_id,
                    not_finite=frozenset(heard.not_finite),
                )
            )
        return tuple(found)

    def frames(self) -> list[tuple[str, str]]:
        """Return topic and frame id of each source."""
        return [(topic, heard.frame_id) for (topic, _), heard in sorted(self._heard.items())]

    def _arrived(self, topic: str, name: str, frame_id: str) -> _Heard:
        heard = self._heard.setdefault((topic, name), _Heard())
        now = time.monotonic()
        heard.frame_id = frame_id
        recent = [time_s for time_s in heard.times[-1000:] if time_s > now - RATE_OVER_S]
        heard.times = [*recent, now]
        return heard


class HeardFrames:
    """Frames heard on /tf and /tf_static, and those that do not come from one publisher alone."""

    def __init__(self) -> None:
        self._parents: dict[str, set[str]] = {}
        self._topics: dict[str, set[str]] = {}
        self._numbers: dict[str, int] = {}
        self._repeats: Counter[str] = Counter()

    def hear(self, topic: str, message: Any, number: int) -> None:
        """Record the transforms of a message; `number` is that of its publisher's messages."""
        for edge in message.transforms:
            child = edge.child_frame_id.lstrip("/")
            if child not in self._parents and len(self._parents) >= MOST_FRAMES:
                continue
            self._parents.setdefault(child, set()).add(edge.header.frame_id.lstrip("/"))
            self._topics.setdefault(child, set()).add(topic)

            # one publisher's numbers rise; those of /tf_static come once each
            if topic == "/tf":
                self._repeats[child] += number <= self._numbers.get(child, -1)
                self._numbers[child] = number

    def conflicts(self) -> dict[str, str]:
        """Return by frame why it is in two places."""
        found = {}
        for child, parents in sorted(self._parents.items()):
            if len(parents) > 1:
                found[child] = f"two parents, {' and '.join(sorted(parents)[:2])}"
            elif len(self._topics[child]) > 1:
                found[child] = "a publisher on /tf and one on /tf_static"
            elif self._repeats[child] >= LEAST_REPEATS:
                found[child] = "two publishers on /tf"
        return found


class GraphWatch(Closing):
    """An observer that listens from its creation: `watch` for a while, then `snapshot`."""

    def __init__(self) -> None:
        self._session = command_session(
            lambda: Node("_rfly_doctor", start_parameter_services=False, enable_rosout=False),
            SingleThreadedExecutor,
        )
        self._node, self._executor = self._session.__enter__()

        self._statuses: dict[tuple[str, str], tuple[float, DiagnosticReport]] = {}
        self.heard = HeardSources()
        self._transforms = TransformBuffer()
        self.frames = HeardFrames()
        self._bad_transforms = RecentFaults()
        self._subscribed: set[str] = set()

        self._clients: dict[str, AsyncParameterClient] = {}
        self._parameters: dict[str, dict[str, Any]] = {}
        self._asked_bridges: set[str] = set()
        self._answers: dict[tuple[str, int], Any] = {}
        self._looked = 0.0

        self._subscribe(DiagnosticArray, "/diagnostics", self._on_diagnostics)
        for topic, qos in (("/tf", _ANYONE), ("/tf_static", _KEPT)):
            self._subscribe(TFMessage, topic, partial(self._on_tf, topic), qos)

    def close(self) -> None:
        """Leave the graph."""
        self._session.__exit__(None, None, None)

    def watch(self, seconds: float, stopped: Callable[[], bool] = lambda: False) -> None:
        """Listen, and look regularly for nodes and topics to listen to."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end and not stopped():
            if now - self._looked > LOOK_EVERY_S:
                self._looked = now
                self._look()
            self._executor.spin_once(timeout_sec=min(0.05, end - now))

    def snapshot(self, machine: Machine | None = None) -> Snapshot:
        """Return what is known now; this machine is examined unless `machine` is given."""
        now = time.monotonic()
        endpoints, mismatches = self._ends()

        return Snapshot(
            domain_id=self._node.context.get_domain_id(),
            discovery_range=_discovery_range(),
            nodes=tuple(sorted(self._node_names())),
            endpoints=endpoints,
            mismatches=mismatches,
            statuses=tuple(self._status(name, now) for name in sorted(self._statuses)),
            sources=self.heard.sources(now),
            robots=tuple(self._robots()),
            lost_frames=self._lost_frames(),
            frame_conflicts=self.frames.conflicts(),
            bad_transforms=tuple(notice.text for notice in self._bad_transforms.notices()),
            destinations=tuple(self._destinations()),
            machine=machine or look_at_machine(self._node.context.get_domain_id()),
        )

    def _subscribe(
        self, kind: Any, topic: str, callback: Callable[..., None], qos: QoSProfile = _ANYONE
    ) -> None:
        if topic not in self._subscribed:
            self._subscribed.add(topic)
            with suppress(InvalidTopicNameException):
                self._node.create_subscription(kind, topic, guarded(self._node, callback), qos)

    # --- the graph

    def _node_names(self) -> list[str]:
        """Return the names of nodes except hidden ones, such as this command: they begin with _."""
        found = self._node.get_node_names_and_namespaces()
        return [
            _full_name(namespace, name) for name, namespace in found if not name.startswith("_")
        ]

    def _look(self) -> None:
        for topic, types in self._node.get_topic_names_and_types():
            if STATES_TYPE in types:
                self._subscribe(VehicleStateArray, topic, partial(self.heard.hear_states, topic))

        # bridges, whatever their name
        for name in self._node_names():
            is_bridge = name.endswith(BRIDGE) or (name, "bridge") in self._statuses
            if is_bridge and name not in self._parameters:
                self._ask_parameters(name)

        for robot in self._robots():
            kind = next(each for each in _ROBOT_MESSAGES.values() if _type_name(each) == robot.type)
            self._subscribe(
                kind, robot.topic, partial(self.heard.hear_robot, robot.topic, robot.name, robot.id)
            )

    def _ends(self) -> tuple[tuple[Endpoint, ...], tuple[Mismatch, ...]]:
        endpoints = []
        mismatches = []
        for topic, _ in self._node.get_topic_names_and_types():
            publishers = self._of_others(self._node.get_publishers_info_by_topic(topic))
            subscriptions = self._of_others(self._node.get_subscriptions_info_by_topic(topic))
            endpoints += [Endpoint(topic, info.topic_type, name, True) for name, info in publishers]
            endpoints += [
                Endpoint(topic, info.topic_type, name, False) for name, info in subscriptions
            ]

            for publisher, out in publishers:
                for subscription, taken in subscriptions:
                    why = _why_nothing_flows(out, taken)
                    if why:
                        types_differ = out.topic_type != taken.topic_type
                        pair = (topic, publisher, subscription)
                        mismatches.append(Mismatch(*pair, why, types_differ))
        return tuple(endpoints), tuple(dict.fromkeys(mismatches))

    def _of_others(self, infos: Iterable[Any]) -> list[tuple[str, Any]]:
        return [
            (_full_name(info.node_namespace, info.node_name), info)
            for info in infos
            if not info.node_name.startswith("_")
        ]

    # --- the bridges' parameters

    def _ask_parameters(self, bridge: str) -> None:
        """Request the parameters of a bridge, then those of its robots.

        A bridge whose services are not ready is asked at the next look.
        """
        client = self._clients.get(bridge)
        if client is None:
            client = self._clients[bridge] = AsyncParameterClient(self._node, bridge)
        if not client.services_are_ready() or bridge in self._asked_bridges:
            return

        self._asked_bridges.add(bridge)

        values_by_name: dict[str, Any] = {}

        def ask_next(steps: list[Callable[[], list[str]]]) -> None:
            names = steps[0]() if steps else []
            if names:
                client.get_parameters(names, lambda future: take(names, future, steps[1:]))
            else:
                self._take(bridge, values_by_name)

        def take(names: list[str], future: Any, steps: list[Callable[[], list[str]]]) -> None:
            values = [] if future.result() is None else future.result().values
            values_by_name.update(
                {name: _value(value) for name, value in zip(names, values, strict=False)}
            )
            ask_next(steps)

        def robots() -> list[str]:
            return [
                f"{name}.{each}"
                for name in _robot_names(values_by_name)
                for each in _ROBOT_PARAMETERS
            ]

        ask_next([lambda: [*_BRIDGE_PARAMETERS, "vehicles"], robots])

    def _take(self, bridge: str, values_by_name: dict[str, Any]) -> None:
        """Record a bridge's parameters, and ask its destinations.

        Answers may take seconds, so that each is awaited in a thread.
        """
        self._parameters[bridge] = values_by_name
        for host, port in _addresses(values_by_name):
            if (host, port) not in self._answers:
                self._answers[host, port] = "silent"
                threading.Thread(target=self._ask, args=(host, port), daemon=True).start()

    def _ask(self, host: str, port: int) -> None:
        self._answers[host, port] = ask(host, port)

    def _robots(self) -> list[Robot]:
        robots = []
        for bridge, values in self._parameters.items():
            namespace = bridge.rpartition("/")[0]
            for name in _robot_names(values):
                number, topic, message = (values.get(f"{name}.{key}") for key in _ROBOT_PARAMETERS)
                if not isinstance(number, int) or not isinstance(topic, str):
                    continue
                if topic and message in _ROBOT_MESSAGES:
                    topic = topic if topic.startswith("/") else f"{namespace}/{topic}"
                    kind = _type_name(_ROBOT_MESSAGES[message])
                    robots.append(Robot(bridge, name, number, topic, kind))
        return robots

    def _destinations(self) -> list[Destination]:
        found = []
        for bridge, values in self._parameters.items():
            feedback = self._statuses.get((bridge, "feedback"))
            heard = feedback is not None and "last_heard_s" in feedback[1].values

            for host, port in _addresses(values):
                try:
                    address = resolve(host)
                except ConfigError:
                    address = ""
                answer = self._answers.get((host, port), "silent")
                found.append(
                    Destination(bridge, host, port, address, answer, router_to(host), heard)
                )
        return found

    # --- messages

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        now = time.monotonic()
        for status in message.status:
            node, _, task = status.name.partition(": ")
            values = {pair.key: pair.value for pair in status.values}
            before = self._statuses.get((node, task))
            if before is None and len(self._statuses) >= MOST_STATUSES:
                continue

            rate = _rate(before, values, now) if "sent_datagrams" in values else None
            level = int.from_bytes(status.level, "big")
            seen = DiagnosticReport(
                node, task, level, status.message, status.hardware_id, values, 0.0, rate
            )
            self._statuses[node, task] = now, seen

    def _status(self, name: tuple[str, str], now: float) -> DiagnosticReport:
        heard, status = self._statuses[name]
        return DiagnosticReport(**{**vars(status), "age": now - heard})

    def _on_tf(self, topic: str, message: TFMessage, info: Mapping[str, Any]) -> None:
        self.frames.hear(topic, message, info["publication_sequence_number"])
        for edge in message.transforms:
            t = edge.transform.translation
            q = edge.transform.rotation
            parent = edge.header.frame_id.lstrip("/")
            child = edge.child_frame_id.lstrip("/")

            try:
                self._transforms.add(
                    parent,
                    child,
                    stamp_to_ns(edge.header.stamp),
                    (t.x, t.y, t.z),
                    (q.x, q.y, q.z, q.w),
                    static=topic == "/tf_static",
                )
            except FrameError as error:
                self._bad_transforms.begin("transform", Notice(str(error), subject=child))

    def _lost_frames(self) -> dict[str, str]:
        """Return by topic why a vehicle's frame is not connected to a bridge's world frame."""
        worlds = {"": None, "map": None, "map_ned": None}
        for values in self._parameters.values():
            enu_frames = values.get("enu_frames") or ()
            ned_frames = values.get("ned_frames") or ()
            worlds |= dict.fromkeys([*enu_frames, *ned_frames])

        lost = {}
        for topic, frame in self.heard.frames():
            if frame in worlds:
                continue
            why = ""
            for world in filter(None, worlds):
                try:
                    self._transforms.lookup(world, frame)
                    break
                except FrameError as error:
                    why = why or str(error)
            else:
                lost[topic] = why
        return lost


def _rate(
    before: tuple[float, DiagnosticReport] | None, values: dict[str, str], now: float
) -> float | None:
    """Return datagrams per second since the report before.

    If the two reports are too close together, the rate before is kept.
    """
    new_text = values["sent_datagrams"]
    if before is None:
        return None
    seen_s, report = before
    old_text = report.values.get("sent_datagrams", "")
    are_numbers = old_text.isdecimal() and new_text.isdecimal()
    if not are_numbers or max(len(old_text), len(new_text)) > MOST_DIGITS:
        return None

    if now - seen_s < LEAST_RATE_PERIOD_S:
        return report.datagram_rate
    return (int(new_text) - int(old_text)) / (now - seen_s)


def _addresses(values: dict[str, Any]) -> list[tuple[str, int]]:
    host = values.get("host")
    port = values.get("port")
    windows = values.get("windows")
    if not (isinstance(host, str) and host and isinstance(port, int) and isinstance(windows, int)):
        return []
    last = min(port + min(windows, MOST_WINDOWS), 65536)
    return [(host, window_port) for window_port in range(port, last) if window_port > 0]


def _robot_names(values: dict[str, Any]) -> list[str]:
    names = values.get("vehicles")
    if not isinstance(names, list | tuple):
        return []
    return [name for name in names if isinstance(name, str)]


def _why_nothing_flows(offered: Any, wanted: Any) -> str:
    if offered.topic_type != wanted.topic_type:
        return (
            f"the publisher's type is {offered.topic_type}, the subscription's {wanted.topic_type}"
        )
    compatibility, reason = qos_check_compatible(offered.qos_profile, wanted.qos_profile)
    if compatibility != QoSCompatibility.ERROR:
        return ""

    parts = [part.removeprefix("ERROR: ") for part in reason.split(";") if part.strip()]
    return "; ".join(parts).lower()


def _type_name(kind: Any) -> str:
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"


def _full_name(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('/')}/{name}"


def _discovery_range() -> str:
    if os.environ.get("ROS_LOCALHOST_ONLY") == "1":
        return "LOCALHOST"

    return os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET").upper()


def _value(value: Any) -> Any:
    """Return the value of a rcl_interfaces/ParameterValue of the types that a bridge has."""
    by_type = {
        1: "bool_value",
        2: "integer_value",
        3: "double_value",
        4: "string_value",
        9: "string_array_value",
    }
    name = by_type.get(value.type)
    return None if name is None else getattr(value, name)
