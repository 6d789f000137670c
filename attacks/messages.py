# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Odd messages and requests for every subscription and service of every node, before and after
sensible ones.

The graph says what a node takes, the interface definitions what can be odd about it. After each
burst of a few messages a topic the node has to answer a service as often; it may not end, print a
trace or swell.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from claims import domain as domain_of_its_own

from attacks.odd_messages import OddMessages
from attacks.table import Result, largest
from rfly_lab import shipped_policy

TRIES = 10_000
SHORT_TRIES = 150
PATIENCE_S = 10.0
"""Longest wait for an answer, s; then a node counts as stalled."""
MOST_GROWTH_MB = 400.0
"""Largest growth of resident memory since before the first message, 10^6 bytes."""
MOST_FAILURES = 5
"""Failures of one node after which it is left alone."""
LONGEST_LINE = 3_000
"""Characters of a node's longest line, and of an answer's text, which may quote what was sent."""
LONG_TEXT = "[\x1b" + "long " * 20_000
CALL_EVERY = 20
"""Rounds after which each service of the node is called too."""
DAMAGED_EVERY = 40
"""Rounds after which messages have the right type's name but damaged content."""
BURST = 8
"""Messages per topic between two waits for the node.

An executor takes one message of each topic, and one request, at a time. A service's queue has ten
requests; the topics' queues get DEPTH.
"""
DEPTH = 2 * BURST

NOBODYS_PORT = "29010"
"""Port of ue_bridge_node's datagrams, where nothing listens."""

NODES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "terrain_node": ("terrain_node", {}),
    "ue_bridge_node": (
        "ue_bridge_node",
        {
            "port": NOBODYS_PORT,
            "feedback_port": "0",
            "vehicles": "[a, b, c]",
            "a.id": "801",
            "b.id": "802",
            "b.message": "odometry",
            "c.id": "803",
            "c.message": "vehicle_state",
        },
    ),
    "ue_sensors_node": (
        "ue_sensors_node",
        {"sensors": "[camera]", "port": NOBODYS_PORT, "camera.data_port": "29012"},
    ),
    "coptersim_node": (
        "coptersim_node",
        {
            "offboard": "true",
            "truth_port": "29014",
            "state_port": "29015",
            "offboard_port": "29016",
        },
    ),
    "trajectory_node": ("trajectory_node", {}),
    "avoidance_node": (
        "avoidance_node",
        {"robots": "[a, b]", "others": "[c]", "b.message": "pose", "c.message": "tf"},
    ),
    "mission_node": ("mission_node", {"vehicles": "[uav]"}),
    "mission_node of a real vehicle": (
        "mission_node",
        {"vehicles": "[uav]", "simulate": "false"},
    ),
    "mavlink_node": (
        "mavlink_node",
        {"vehicles": "[uav]", "port": "0", "targets": "['127.0.0.1:29011']"},
    ),
    "planner_node": (
        "planner_node",
        {"vehicles": "[uav]", "uav.id": "1", "goal_vehicle": "uav"},
    ),
    "collision_node": ("collision_node", {}),
    "teleop_node": ("teleop_node", {}),
    "guidance_node": ("guidance_node", {}),
    "policy_node": ("policy_node", {"policy": str(shipped_policy("hover"))}),
    "amphibious_sim_node": ("amphibious_sim_node", {}),
    "amphibious_sim_node in lock-step": ("amphibious_sim_node", {"lock_step": "true"}),
    "link_node": ("link_node", {"port": "0"}),
    "mavlink_hil_node": ("mavlink_hil_node", {"port": "0"}),
    "state_estimator_node": ("state_estimator_node", {}),
    "state_estimator_node in lock-step": (
        "state_estimator_node",
        {"lock_step": "true"},
    ),
    "flight_control_node": ("flight_control_node", {}),
    "flight_control_node in lock-step": ("flight_control_node", {"lock_step": "true"}),
    "chassis_control_node": ("chassis_control_node", {}),
    "mapping_node": ("mapping_node", {}),
    "motor_output_node": ("motor_output_node", {}),
    "spawner_node": ("spawner_node", {}),
}
"""Attacked nodes: an executable and its parameters."""


class Target:
    """A running node, its subscriptions and services, and a peer that sends to it.

    `topics` are those whose queues have to be long enough for a burst.
    """

    def __init__(
        self,
        stack: ExitStack,
        executable: str,
        parameters: Mapping[str, str],
        domain: int,
        topics: Iterable[str] = (),
    ) -> None:
        from node_harness import NodeProcess, Peer
        from rcl_interfaces.srv import GetParameters
        from rclpy.qos import DurabilityPolicy, QoSProfile

        queue = {"depth": str(DEPTH), "reliability": "reliable"}
        deep = {
            f"qos_overrides.{t}.subscription.{key}": value
            for t in topics
            for key, value in queue.items()
        }

        # the node and the peer
        self.process = stack.enter_context(NodeProcess(executable, domain, {**parameters, **deep}))
        self.peer = Peer(domain)
        stack.callback(self.peer.close)
        node = self.peer.node
        self.peer.spin_until(lambda: self._names() or self.process.process.poll() is not None, 60.0)
        if self.process.process.poll() is not None:
            raise RuntimeError(f"{executable} does not start: {self.process.output[-500:]}")

        ((self._name, self._namespace),) = self._names()

        # a service that shows whether it lives
        self.clients: dict[str, tuple[Any, Any]] = {}
        self.publishers: dict[str, tuple[Any, Any]] = {}
        self._ping_type = GetParameters
        self._ping = node.create_client(
            GetParameters, f"{self._namespace.rstrip('/')}/{self._name}/get_parameters"
        )
        self.peer.spin_until(self._ping.service_is_ready, 60.0)

        self._qos = QoSProfile(depth=DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)

        # wait until its start is over
        self.longest_stall_s = 0.0
        self.answers(60.0)

        # clients of its services
        for name, (kind,) in node.get_service_names_and_types_by_node(self._name, self._namespace):
            if name.endswith("/get_result"):
                continue  # service_type an action: answers when a goal has ended
            service_type = interface(kind)
            self.clients[name] = (service_type, node.create_client(service_type, name))
            self.peer.spin_until(self.clients[name][1].service_is_ready, 60.0)

        self.find_topics()
        self.longest_stall_s, self.first_mb = 0.0, self.memory_mb()

    def published(self) -> list[tuple[str, list[str]]]:
        """Return the topics on which the node publishes, each with its types."""
        topics = self.peer.node.get_publisher_names_and_types_by_node(self._name, self._namespace)
        return [each for each in topics if each[0] not in ("/rosout", "/parameter_events")]

    def find_topics(self) -> None:
        """Publish on all topics that the node subscribes to by now."""
        for name, (kind,) in self.peer.node.get_subscriber_names_and_types_by_node(
            self._name, self._namespace
        ):
            if name not in self.publishers and name not in (
                "/clock",
                "/parameter_events",
            ):
                message_type = interface(kind)
                publisher = self.peer.node.create_publisher(message_type, name, self._qos)
                self.publishers[name] = (message_type, publisher)
                self.peer.spin_until(
                    lambda publisher=publisher: publisher.get_subscription_count(), 60.0
                )

    def answers(self, patience_s: float = PATIENCE_S) -> bool:
        """Return whether the node answers a service in time."""
        return self.wait_for([self.ask()], patience_s)

    def ask(self) -> Any:
        """Return the future of an answer."""
        return self._ping.call_async(self._ping_type.Request())

    def wait_for(self, futures: Sequence[Any], patience_s: float = PATIENCE_S) -> bool:
        """Return whether all these answers come, each in time after the one before."""
        ended = self.process.process.poll
        last = time.monotonic()
        for future in futures:
            while not future.done() and ended() is None and time.monotonic() - last < patience_s:
                self.peer.spin_for(0.0005)
            now = time.monotonic()
            self.longest_stall_s = max(self.longest_stall_s, now - last)
            last = now
        return all(future.done() for future in futures)

    def call(self, client: Any, request: Any) -> bool:
        """Return whether the node answers this request in time."""
        return self.wait_for([client.call_async(request)])

    def memory_mb(self) -> float:
        """Return the largest resident memory since the node began, 10^6 bytes."""
        try:
            status = Path(f"/proc/{self.process.process.pid}/status").read_text(
                encoding="ascii", errors="replace"
            )
        except OSError:
            return 0.0
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(peak[1]) * 1024e-6 if peak else 0.0

    def problem(self) -> str:
        """Return what is wrong with the node; "" if nothing is."""
        lines = self.process.output.splitlines()
        if any("Traceback (most recent call last)" in line for line in lines):
            return f"printed a trace: {lines[-1][:300]}"

        broken = next(
            (line for line in lines if "dropped, by an error in" in line and "rclpy/" not in line),
            "",
        )
        if broken:
            return f"an error that nobody foresaw: {broken[:300]}"

        code = self.process.process.poll()
        if code is not None:
            return f"ended with code {code}: {lines[-1][:300] if lines else ''}"

        endless = max(lines, key=len, default="")
        if len(endless) > LONGEST_LINE:
            return f"logged a line of {len(endless):,} characters: {endless[:200]}"

        growth = self.memory_mb() - self.first_mb
        return f"grew by {growth:.0f} MB" if growth > MOST_GROWTH_MB else ""

    def _names(self) -> list[tuple[str, str]]:
        """Return the names and namespaces of the attacked node: all but the peer's."""
        names = self.peer.node.get_node_names_and_namespaces()
        return [each for each in names if each[0] != "peer" and not each[0].startswith("_")]


def attack(
    executable: str,
    parameters: Mapping[str, str],
    name: str,
    rng: random.Random,
    tries: int,
) -> Result:
    """Send odd messages to each topic, half of them before any sensible one."""
    tried = 0
    failures = list[str]()
    memory = list[float]()
    stalls = list[float]()
    messages = OddMessages(rng, sensible_makers())

    # find the topics
    with ExitStack() as stack:
        topics = list(
            Target(
                stack, executable, parameters, stack.enter_context(domain_of_its_own())
            ).publishers
        )

    # odd messages at first, then after sensible ones
    for sensible_first in (False, True):
        left = tries // 2
        while left > 0 and len(failures) < MOST_FAILURES:
            with ExitStack() as stack:
                domain = stack.enter_context(domain_of_its_own())
                target = Target(stack, executable, parameters, domain, topics)
                done, failure = _rounds(target, messages, left, sensible_first)
                tried += done * len(target.publishers)
                left -= done
                memory.append(target.memory_mb())
                stalls.append(target.longest_stall_s)
                if failure:
                    failures.append(
                        f"{'after sensible messages' if sensible_first else 'at first'}: {failure}"
                    )

    return Result(name, tried, len(failures), largest(memory), largest(stalls), tuple(failures))


def _rounds(
    target: Target, messages: OddMessages, rounds: int, sensible_first: bool
) -> tuple[int, str]:
    """Return the number of finished rounds, and what went wrong in the last one."""
    from rclpy._rclpy_pybind11 import RCLError

    waited_for = list[Any]()
    sent = list[tuple[str, type, bytes]]()
    for number in range(1, rounds + 1):
        # a message to each topic
        sensible = sensible_first and (number < 10 or number % 3 == 0)
        for topic, (kind, publisher) in target.publishers.items():
            if sensible:
                publisher.publish(messages.sensible(kind))
            data = messages.damaged(kind) if number % DAMAGED_EVERY == 0 else messages.packed(kind)
            with suppress(RCLError):  # DDS does not take all that is damaged
                publisher.publish(data)
            sent.append((topic, kind, data))
        waited_for += [target.ask() for _ in range(1 + sensible)]

        # go on until a burst is complete
        if len(waited_for) < BURST and number < rounds and number % CALL_EVERY:
            continue

        # the node answers, and nothing is wrong with it
        answered = target.wait_for(waited_for)
        problem = target.problem() or ("" if answered else f"no answer in {PATIENCE_S:g} s")
        if problem:
            return number, f"round {number}: {problem}; after {'; '.join(map(_text, sent))}"
        waited_for = []
        sent = []

        # each service
        if number % CALL_EVERY == 0:
            for service, (kind, client) in target.clients.items():
                request = (
                    messages.odd(kind.Request) if number % 3 else messages.sensible(kind.Request)
                )
                if not target.call(client, request):
                    return (
                        number,
                        f"round {number}: {service} {str(request)[:1000]}: "
                        f"{target.problem() or 'no answer'}",
                    )
            target.find_topics()

    return rounds, ""


def long_texts(
    executable: str, parameters: Mapping[str, str], name: str, rng: random.Random, tries: int
) -> Result:
    """Send texts of 100,000 characters in all places; answers and logs quote them shortly."""
    messages = OddMessages(rng, sensible_makers())
    tried = 0
    failures = list[str]()
    with ExitStack() as stack:
        domain = stack.enter_context(domain_of_its_own())
        target = Target(stack, executable, parameters, domain)
        for _ in range(max(1, tries // SHORT_TRIES)):
            for kind, publisher in target.publishers.values():
                publisher.publish(with_long_texts(messages.sensible(kind)))
                tried += 1
            for service, (kind, client) in target.clients.items():
                if service.endswith("/get_type_description"):
                    continue  # rcl's own, which logs what it cannot parse
                future = client.call_async(with_long_texts(messages.sensible(kind.Request)))
                tried += 1
                if not target.wait_for([future]):
                    failures.append(f"{service}: no answer; {target.problem()}")
                elif (length := longest_text(future.result())) > LONGEST_LINE:
                    failures.append(f"{service} answers with a text of {length:,} characters")
        if not target.answers():
            failures.append("no answer afterwards")
        failures += filter(None, [target.problem()])
        return Result(
            f"long texts to {name}",
            tried,
            len(failures),
            target.memory_mb(),
            target.longest_stall_s,
            tuple(failures),
        )


def with_long_texts(message: Any) -> Any:
    """Return the message with a long text in each of its places for one."""
    for field, kind in message.get_fields_and_field_types().items():
        value = getattr(message, field)
        if kind == "string":
            setattr(message, field, LONG_TEXT)
        elif kind in ("sequence<string>", "sequence<string, 100>"):
            setattr(message, field, [LONG_TEXT])
        elif hasattr(value, "get_fields_and_field_types"):
            with_long_texts(value)
    return message


def longest_text(message: Any) -> int:
    """Return the length of the longest text in a message."""
    lengths = [0]
    for field in message.get_fields_and_field_types():
        value = getattr(message, field)
        if isinstance(value, str):
            lengths.append(len(value))
        elif hasattr(value, "get_fields_and_field_types"):
            lengths.append(longest_text(value))
    return max(lengths)


def _text(sent: tuple[str, type, bytes]) -> str:
    """Return the text of a topic and of what was sent there."""
    from rclpy._rclpy_pybind11 import RCLError
    from rclpy.serialization import deserialize_message

    topic, kind, data = sent
    try:
        return f"{topic} {str(deserialize_message(data, kind))[:1000]}"
    except RCLError:
        return f"{topic} {data[:300]!r}"


def interface(name: str) -> Any:
    """Return the type of a name such as std_msgs/msg/String."""
    package, folder, kind = name.split("/")

    # a part of an action, such as the service ExecuteMission_SendGoal
    if folder == "action" and "_" in kind:
        action, _, part = kind.partition("_")
        parts = interface(f"{package}/action/{action}").Impl
        if part == "FeedbackMessage":
            return parts.FeedbackMessage
        return getattr(parts, f"{part}Service")

    return getattr(__import__(f"{package}.{folder}", fromlist=[kind]), kind)


def sensible_makers() -> dict[str, Callable[[], Any]]:
    """Return messages that nodes can use, by the names of their types."""
    import numpy as np
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path as PathMessage
    from rfly_suite.msg import PlacedObjectArray, RotorCommand, TerrainMap, WheelLoads
    from sensor_msgs.msg import JointState, PointCloud2, PointField

    from rfly_amphibious.sensors.sensor_suite import joint_names
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_common.ros.stamps import ns_to_stamp
    from rfly_common.ros.vehicle_msgs import states_to_msg
    from rfly_common.vehicle_states import VehicleStates

    vehicle = VehicleParameters.load("scale")
    joints = joint_names(vehicle)

    def states() -> Any:
        position = np.array([[0.0, 0.0, 5.0], [3.0, 1.0, 5.0], [20.0, 0.0, 6.0]])
        vehicles = VehicleStates(
            id=np.array([1, 2, 3]),
            vehicle_type=np.array([3, 3, 100]),
            position=position,
            orientation=np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)),
            source="/attack",
            stamp_ns=time.time_ns(),
        )
        return states_to_msg(vehicles)

    def terrain() -> Any:
        hill = TerrainMap(
            name="hill",
            rows=21,
            columns=31,
            origin_x=-50.0,
            origin_y=-75.0,
            step_x=5.0,
            step_y=5.0,
        )
        hill.header.frame_id = "map"
        hill.geo_origin = [47.0, 8.0, 500.0]
        hill.height = [float(i % 7) for i in range(21 * 31)]
        return hill

    def objects() -> Any:
        placed = PlacedObjectArray(
            id=[11, 12], vehicle_type=[3, 3], position=[5.0, 5.0, 1.0, -5.0, 5.0, 1.0]
        )
        placed.header.frame_id = "map"
        placed.orientation = [0.0, 0.0, 0.0, 1.0] * 2
        placed.box_origin = placed.position
        placed.box_half_extent = [1.0] * 6
        placed.offset = [0.0] * 2
        placed.scale = [1.0] * 6
        placed.use_ground_packet = [0] * 2
        return placed

    def cloud() -> Any:
        points = PointCloud2(height=1, width=50, point_step=12, row_step=600, is_dense=True)
        points.header.frame_id = "base_link"
        points.header.stamp = ns_to_stamp(time.time_ns())
        points.fields = [
            PointField(name=axis, offset=4 * i, datatype=7, count=1) for i, axis in enumerate("xyz")
        ]
        points.data = (np.arange(150, dtype=np.float32) % 17).tobytes()
        return points

    def path() -> Any:
        way = PathMessage()
        way.header.frame_id = "map"
        for x in (0.0, 20.0, 40.0):
            pose = PoseStamped()
            pose.header.frame_id = "map"
            pose.pose.position.x = x
            pose.pose.orientation.w = 1.0
            way.poses.append(pose)
        return way

    def joint_state() -> Any:
        zeros = [0.0] * len(joints)
        positions = JointState(name=joints, position=zeros, velocity=zeros)
        positions.header.stamp = ns_to_stamp(time.time_ns())
        return positions

    def loads() -> Any:
        measured = WheelLoads(load=[10.0] * 4)
        measured.header.stamp = ns_to_stamp(time.time_ns())
        return measured

    return {
        "rfly_suite/VehicleStateArray": states,
        "rfly_suite/TerrainMap": terrain,
        "rfly_suite/PlacedObjectArray": objects,
        "rfly_suite/RotorCommand": lambda: RotorCommand(value=[1.0] * vehicle.rotors),
        "sensor_msgs/PointCloud2": cloud,
        "sensor_msgs/JointState": joint_state,
        "nav_msgs/Path": path,
        "rfly_suite/WheelLoads": loads,
    }


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    f"odd messages to {name}": partial(attack, executable, parameters, f"odd messages to {name}")
    for name, (executable, parameters) in NODES.items()
} | {
    f"long texts to {name}": partial(long_texts, executable, parameters, name)
    for name, (executable, parameters) in NODES.items()
}
