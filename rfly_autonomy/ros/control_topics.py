# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of flight_control_node and chassis_control_node: setpoints, estimates, samples, ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from rfly_suite.msg import SimulationTick
from std_msgs.msg import String

from rfly_amphibious.ros.sensor_topics import (
    GUIDANCE_TOPICS,
    SENSOR_TOPICS,
    subscribe_sensors,
    subscribe_ticks,
)
from rfly_amphibious.sensors.sample_messages import WENT_BACK_S, SampleReader, time_of
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.axle_lift import ASSIST_WORDS, Assist
from rfly_autonomy.control.command_stream import CommandStream
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.ros.estimate_msgs import is_unknown, odometry_to_estimate
from rfly_autonomy.ros.node_parameters import MotionCommandParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError, RflyError, SensorMessageError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, STATE_IN, STATE_OUT, sensor_qos
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_common.ros.velocity_commands import VelocityCommands
from rfly_terrain.ros.plan_msgs import pose_to_plan_pose

if TYPE_CHECKING:
    from rfly_autonomy.control.chassis_controller import ChassisController
    from rfly_autonomy.control.flight_controller import FlightController

LONGEST_STEP = 0.1
"""Longest time step of a controller, s."""

SILENT_NS = 50_000_000
"""Time without a message of the first sensor after which others are answered, ns."""

MOST_AHEAD_NS = 10_000_000_000
"""Time by which a message may be ahead of the last one, ns; more is of another clock."""

FASTEST = 40.0
"""Speed beyond which a target has jumped, m/s."""
SILENCE = 0.5
"""Time between two poses after which a target is a new one, s."""


class TargetMotion:
    """Velocity of a target (n,) from its last three places.

    By component it is the smaller of both velocities, if they agree in sign. A target that jumps
    has no velocity, and neither has one that starts moving, at first.
    """

    def __init__(self) -> None:
        self._place = np.zeros(0)
        self._time = -math.inf
        self._last_difference: Floats | None = None
        self._velocity = np.zeros(0)

    def update(self, place: Floats, time: float) -> Floats:
        """Return the velocity, (n,), m/s, with a place (n,), m, at a time, s."""
        dt = time - self._time
        if dt == 0.0:
            return self._velocity

        last_velocity = self._last_difference
        new_velocity = (place - self._place) / dt if 0.0 < dt <= SILENCE else None

        self._place = place
        self._time = time
        self._last_difference = new_velocity
        self._velocity = np.zeros(len(place))

        if (
            new_velocity is not None
            and last_velocity is not None
            and np.linalg.norm(new_velocity) <= FASTEST
        ):
            smaller = np.minimum(np.abs(new_velocity), np.abs(last_velocity))
            self._velocity = np.where(
                new_velocity * last_velocity > 0.0, np.copysign(smaller, new_velocity), 0.0
            )
        return self._velocity


class MotionCommands:
    """`cmd_vel` and `cmd/pose`, decoded; unusable commands are refused, counted and logged."""

    def __init__(
        self,
        node: Node,
        diagnostics: Diagnostics,
        vehicle: str,
        *,
        velocity: Callable[[tuple[float, float, float], float], None],
        pose: Callable[[tuple[float, float, float], Any, float | None], None],
        loop: ControlLoop,
    ) -> None:
        """Subscribe.

        `velocity` gets forward, left, up (m/s) and yaw rate; `pose` gets position, velocity (3,),
        world, and yaw. `loop` puts the poses of guidance_node in order.
        """
        self._node = node
        self._diagnostics = diagnostics
        self._loop = loop
        self._velocity = velocity
        self._pose = pose

        stamped = declare_parameters(node, MotionCommandParameters).stamped_cmd_vel
        self._frames = Frames(node, listen=False)
        self._motion = TargetMotion()
        self._streams: dict[str, CommandStream] = {}
        """Streams of stamped commands, by topic."""

        VelocityCommands(
            node,
            "cmd_vel",
            f"{vehicle}/base_link",
            self._frames,
            stamped=stamped,
            take=self._on_cmd_vel,
            hear=partial(self.hear, "cmd_vel"),
            refuse=partial(diagnostics.refuse_message, "cmd_vel"),
        )
        loop.subscribe(PoseStamped, "cmd/pose", self._on_cmd_pose)

    def hear(self, topic: str, message: Any) -> None:
        """Take note of a command's stamp, unless it is 0: gaps between stamps show lost ones."""
        stamp = time_of(message)
        if not stamp:
            return
        before = self.loss
        stream = self._streams.setdefault(topic, CommandStream(timeout=self._loop.command_timeout))
        stream.hear(stamp, self._loop.stamp_ns * 1e-9)
        if self.loss and self.loss != before:
            self._node.get_logger().warning(self.loss)

    @property
    def loss(self) -> str:
        """Topics most of whose commands are lost, in words; empty: none."""
        now = self._loop.stamp_ns * 1e-9
        topics = [topic for topic, stream in self._streams.items() if stream.loses_most(now)]
        return f"most commands on {', '.join(topics)} are lost" if topics else ""

    def subscribe_assist(self, take: Callable[[Assist | None], None]) -> None:
        """Subscribe to `cmd/assist`; `take` gets the order to the rotors."""

        def on_cmd_assist(message: String) -> None:
            if message.data in ASSIST_WORDS:
                take(ASSIST_WORDS[message.data])
            else:
                words = ", ".join(ASSIST_WORDS)
                self._diagnostics.refuse_message(
                    "cmd/assist", f"{message.data!r}, expected one of {words}"
                )

        self._loop.subscribe(String, "cmd/assist", on_cmd_assist)

    def _on_cmd_vel(self, message: Twist) -> None:
        linear = message.linear
        try:
            self._velocity((linear.x, linear.y, linear.z), message.angular.z)
        except CommandError as error:
            self._diagnostics.refuse_message("cmd_vel", error)

    def _on_cmd_pose(self, message: PoseStamped) -> None:
        self.hear("cmd/pose", message)
        frame_id = message.header.frame_id or "map"
        try:
            frame = self._frames.resolve(frame_id, stamp_to_ns(message.header.stamp))

            wanted = pose_to_plan_pose(message.pose, frame, "pose")
            place = (wanted.x, wanted.y, wanted.z or 0.0)
            time = time_of(message) or self._node.get_clock().now().nanoseconds * 1e-9
            self._pose(place, self._motion.update(np.array(place), time), wanted.heading)
        except RflyError as error:
            self._diagnostics.refuse_message("cmd/pose", error)


class GuidanceOutputs:
    """Commands of a node that guides the controllers, and its answers to ticks, which count them.

    It answers in lock-step only.
    """

    def __init__(self, node: Node, kinds: Mapping[str, Any], lock_step: bool) -> None:
        """Publish the topics of `kinds`, messages' types by topic."""
        self._commands = {
            topic: publisher(node, kind, topic, COMMANDS) for topic, kind in kinds.items()
        }
        self._tick = SimulationTick()
        """Answer to the present tick, with the number of commands until now."""
        self._ticks = (
            publisher(node, SimulationTick, "guidance_tick", STATE_OUT) if lock_step else None
        )

    def send(self, topic: str, message: Any) -> None:
        """Publish a command, and count it."""
        self._commands[topic].publish(message)
        if self._ticks is not None:  # else they would never be counted anew
            self._tick.count[GUIDANCE_TOPICS[topic]] += 1

    def answer(self, stamp: Any) -> None:
        """Answer the tick of a stamp."""
        if self._ticks is not None:
            self._tick.header.stamp = stamp
            self._ticks.publish(self._tick)
            self._tick = SimulationTick()


class ControlLoop:
    """Loop from sensor samples to a controller's commands.

    It computes a command for each message of the first sensor topic, or in lock-step for each tick
    of the simulation. While that topic is silent, it answers the other sensors and the estimates,
    so that the controller can react. The command has the stamp of what it answers.

    With guidance_node in the lock-step, its commands wait until the tick that they belong to is
    answered, so that it doesn't matter when they arrive.
    """

    def __init__(
        self,
        node: Node,
        diagnostics: Diagnostics,
        controller: FlightController | ChassisController,
        step: Callable[[Estimate | None, float], Any],
        commands: Publisher,
        params: VehicleParameters,
        *,
        sensors: Sequence[str],
        lock_step: bool,
        guided_by: Sequence[str] = (),
        answers: Sequence[str] = (),
        reset_text: str,
        before_tick: Callable[[], None] = lambda: None,
        after_reset: Callable[[], None] = lambda: None,
    ) -> None:
        """Subscribe.

        `step(estimate, dt)` returns the command as a message. `before_tick` is called for a new
        tick, `after_reset` when the time went back. `guided_by`: topics of guidance_node in the
        lock-step; `answers`: topics of other nodes whose answers to a tick come before this one
        (`answered`).
        """
        self._node = node
        self._diagnostics = diagnostics
        self._controller = controller
        self._step = step
        self._commands = commands
        self._reset_text = reset_text
        self._after_reset = after_reset

        self._read = SampleReader(params)
        self._clock_topic = sensors[0]
        self._first_ns = -1
        """Newest stamp of the first sensor."""
        self._others_since_ns = -1
        """First stamp of another topic."""
        self._last_ns = -1
        """Newest stamp that was answered."""
        self._answer: Any = None
        self.answers = 0
        """Number of commands."""
        self.estimate: Estimate | None = None
        """Newest estimate."""
        self._waiting_commands: list[tuple[int, Callable[[], None]]] = []
        """Commands of guidance_node for the present tick, with their topics' indices."""

        # gates
        self._gate: TickGate | None = None
        self._guidance: TickGate | None = None
        if lock_step:
            before = ["odometry/global", *answers]
            if guided_by:
                indices = [GUIDANCE_TOPICS[topic] for topic in guided_by]
                self._guidance = TickGate(indices, partial(self.answered, "guidance_tick"))
                before.append("guidance_tick")
            self._gate = TickGate(
                [SENSOR_TOPICS[topic].tick_index for topic in sensors],
                self._compute,
                before,
                again=lambda _: self._send(),
                begin=before_tick,
                reset=self._reset,
            )

        # subscriptions
        subscribe_sensors(node, sensors, self._on_sensor, lock_step=lock_step)
        if self._gate is not None:
            subscribe_ticks(node, self._gate)
        odometry_qos = sensor_qos(True) if lock_step else STATE_IN
        subscription(node, Odometry, "odometry/global", self._on_odometry, odometry_qos)
        if self._guidance is not None:
            subscribe_ticks(node, self._guidance, "guidance_tick")

    def subscribe(self, msg_type: Any, topic: str, callback: Callable[[Any], None]) -> None:
        """Subscribe to a command of guidance_node; in lock-step with it, the command waits."""
        guidance = self._guidance
        if guidance is None:
            subscription(self._node, msg_type, topic, callback, COMMANDS)
            return
        index = GUIDANCE_TOPICS[topic]

        def on_command(message: Any) -> None:
            self._waiting_commands.append((index, partial(callback, message)))
            guidance.heard(index)

        subscription(self._node, msg_type, topic, on_command, COMMANDS)

    @property
    def command_timeout(self) -> float:
        """Time after which the controller takes a command for lost, s."""
        return self._controller.command_timeout

    @property
    def stamp_ns(self) -> int:
        """Newest stamp that was answered, ns; 0 before the first."""
        return max(self._last_ns, 0)

    def answered(self, topic: str, stamp_ns: int) -> None:
        """Note the answer of another node to a tick, in lock-step."""
        if self._gate is not None:
            self._gate.answered(topic, stamp_ns)

    def sense(self, topic: str, read: Callable[[], SensorSamples]) -> None:
        """Pass a message's samples to the controller; refuse, count and log unreadable ones."""
        try:
            self._controller.sense(read())
        except SensorMessageError as error:
            self._diagnostics.refuse_message(topic, error)

    def _on_sensor(self, topic: str, message: Any) -> None:
        kind, _, index, _ = SENSOR_TOPICS[topic]
        is_clock = topic == self._clock_topic
        if is_clock:
            stamp_ns = stamp_to_ns(message.header.stamp)
            if stamp_ns < self._first_ns - round(WENT_BACK_S * 1e9):
                self._reset()
            self._first_ns = max(self._first_ns, stamp_ns)

        self.sense(topic, lambda: SensorSamples(**{kind: self._read(topic, message)}))

        if self._gate is not None:
            self._gate.heard(index)
        elif is_clock:
            self._answer_stamp(stamp_to_ns(message.header.stamp))
        else:
            self._answer_other(stamp_to_ns(message.header.stamp))

    def _answer_other(self, stamp_ns: int) -> None:
        """Answer a message of another topic if the first sensor is silent."""
        if self._others_since_ns < 0:
            self._others_since_ns = stamp_ns
        since = self._first_ns if self._first_ns >= 0 else self._others_since_ns
        begin = max(since, self._last_ns)
        if stamp_ns - since > SILENT_NS and stamp_ns - begin < MOST_AHEAD_NS:
            self._answer_stamp(stamp_ns)

    def _answer_stamp(self, stamp_ns: int) -> None:
        """Answer a message unless a newer one has been answered."""
        if stamp_ns > self._last_ns:
            self._compute(stamp_ns, LONGEST_STEP)

    def _on_odometry(self, message: Odometry) -> None:
        try:
            if not is_unknown(message):
                self.estimate = odometry_to_estimate(message)
        except RflyError as error:
            self._diagnostics.refuse("refused_odometry", f"odometry/global: {error}")
        stamp_ns = stamp_to_ns(message.header.stamp)
        if self._gate is not None:
            self._gate.answered("odometry/global", stamp_ns)
        else:
            self._answer_other(stamp_ns)

    def _reset(self) -> None:
        self._node.get_logger().warning(self._reset_text)
        self._diagnostics.count("clock_jumps_back")
        self._controller.reset()
        self.estimate = None
        self._first_ns = -1
        self._others_since_ns = -1
        self._last_ns = -1
        self._after_reset()

    def _compute(self, stamp_ns: int, longest: float = math.inf) -> None:
        """Answer a stamp; the time step since the last one is at most `longest`, s."""
        last = self._last_ns
        self._last_ns = stamp_ns
        dt = 0.0 if last < 0 else min((stamp_ns - last) * 1e-9, longest)

        self._controller.advance_clock(stamp_ns * 1e-9)
        self._run_commands()
        command = self._step(self.estimate, dt)
        command.header.stamp = ns_to_stamp(stamp_ns)
        self._answer = command
        self.answers += 1
        self._send()

    def _run_commands(self) -> None:
        """Run the commands of guidance_node for this tick, in the order of their topics."""
        waiting = sorted(self._waiting_commands, key=lambda item: item[0])
        self._waiting_commands = []
        for _, command in waiting:
            command()

    def _send(self) -> None:
        self._commands.publish(self._answer)
