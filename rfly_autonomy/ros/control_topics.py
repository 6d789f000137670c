# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of flight_control_node and chassis_control_node: setpoints, estimates, samples, ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from rfly_suite.msg import SimulationTick

from rfly_amphibious.ros.message_parts import WENT_BACK_S, time_of
from rfly_amphibious.ros.sensor_topics import GUIDANCE_TOPICS, SENSOR_TOPICS, SampleReader
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.ros.estimate_msgs import is_unknown, odometry_to_estimate
from rfly_autonomy.ros.node_parameters import MotionCommandParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError, RflyError, SensorMessageError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
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
        self._velocity = velocity
        self._pose = pose

        stamped = declare_parameters(node, MotionCommandParameters).stamped_cmd_vel
        self._frames = Frames(node, listen=False)
        self._motion = TargetMotion()

        VelocityCommands(
            node,
            "cmd_vel",
            f"{vehicle}/base_link",
            self._frames,
            stamped=stamped,
            take=self._on_cmd_vel,
            refuse=partial(self.refuse, "cmd_vel"),
        )
        loop.subscribe(PoseStamped, "cmd/pose", self._on_cmd_pose)

    def refuse(self, topic: str, why: object) -> None:
        """Count and log a refused command."""
        self._diagnostics.refuse(f"refused_{topic.replace('/', '_')}", f"{topic} refused: {why}")

    def _on_cmd_vel(self, message: Twist) -> None:
        linear = message.linear
        try:
            self._velocity((linear.x, linear.y, linear.z), message.angular.z)
        except CommandError as error:
            self.refuse("cmd_vel", error)

    def _on_cmd_pose(self, message: PoseStamped) -> None:
        frame_id = message.header.frame_id or "map"
        try:
            if self._frames.axes(frame_id) is None:
                self._frames.listen()
            frame = self._frames.resolve(frame_id, stamp_to_ns(message.header.stamp))

            wanted = pose_to_plan_pose(message.pose, frame, "pose")
            place = (wanted.x, wanted.y, wanted.z or 0.0)
            time = time_of(message) or self._node.get_clock().now().nanoseconds * 1e-9
            self._pose(place, self._motion.update(np.array(place), time), wanted.heading)
        except RflyError as error:
            self.refuse("cmd/pose", error)


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
    ) -> None:
        """Subscribe.

        `step(estimate, dt)` returns the command as a message. `before_tick` is called for a new
        tick. `guided_by`: topics of guidance_node in the lock-step; `answers`: topics of other
        nodes whose answers to a tick come before this one (`answered`).
        """
        self._node = node
        self._diagnostics = diagnostics
        self._controller = controller
        self._step = step
        self._commands = commands
        self._reset_text = reset_text
        self._before_tick = before_tick

        self._read = SampleReader(params, lambda: controller.time)
        self._first_ns = -1
        """Newest stamp of the first sensor."""
        self._others_since_ns = -1
        """First stamp of another topic."""
        self._last_ns = -1
        """Newest stamp that was answered."""
        self._tick_ns = -1
        self._answered_ns = -1
        self._answer: Any = None
        self.answers = 0
        """Number of commands."""
        self.estimate: Estimate | None = None
        """Newest estimate."""

        # subscriptions
        watched = [SENSOR_TOPICS[topic].tick_index for topic in sensors]
        self._gate: TickGate | None = None
        self._guidance: TickGate | None = None
        self._waiting_commands: list[tuple[int, Callable[[], None]]] = []
        """Commands of guidance_node for the present tick, with their topics' indices."""

        before = ["odometry/global", *answers]
        if lock_step and guided_by:
            indices = [GUIDANCE_TOPICS[topic] for topic in guided_by]
            self._guidance = TickGate(indices, lambda ns: self.answered("guidance_tick", ns))
            before.append("guidance_tick")
        if lock_step:
            self._gate = TickGate(watched, self._answer_tick, before)
        qos = sensor_qos(lock_step)
        for topic in sensors:
            callback = self._sensor_callback(topic, is_clock=topic == sensors[0])
            subscription(node, SENSOR_TOPICS[topic].msg_type, topic, callback, qos)

        if lock_step:  # last: once its ticks reach this node, so do the samples
            subscription(
                node,
                SimulationTick,
                "simulation_tick",
                self._on_simulation_tick,
                STATE_OUT,
            )

        subscription(
            node,
            Odometry,
            "odometry/global",
            self._on_odometry,
            qos if lock_step else STATE_IN,
        )
        if self._guidance is not None:
            subscription(node, SimulationTick, "guidance_tick", self._on_guidance_tick, STATE_OUT)

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

    def answered(self, topic: str, stamp_ns: int) -> None:
        """Note the answer of another node to a tick, in lock-step."""
        if self._gate is not None:
            self._gate.answered(topic, stamp_ns)

    def sense(self, topic: str, read: Callable[[], SensorSamples]) -> None:
        """Pass a message's samples to the controller; refuse, count and log unreadable ones."""
        try:
            self._controller.sense(read())
        except SensorMessageError as error:
            counter = f"refused_{topic.replace('/', '_')}"
            self._diagnostics.refuse(counter, f"{topic} refused: {error}")

    def _sensor_callback(self, topic: str, *, is_clock: bool) -> Callable[[Any], None]:
        kind, _, index, _ = SENSOR_TOPICS[topic]

        def on_message(message: Any) -> None:
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
            elif hasattr(message, "header"):
                self._answer_other(stamp_to_ns(message.header.stamp))

        return on_message

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
        last = self._last_ns
        if stamp_ns > last:
            self._last_ns = stamp_ns
            dt = 0.0 if last < 0 else min((stamp_ns - last) * 1e-9, LONGEST_STEP)
            self._compute(stamp_ns, dt)

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

    def _on_simulation_tick(self, message: SimulationTick) -> None:
        """Take a tick; the first after a simulation's reset comes before any sample."""
        assert self._gate is not None
        stamp_ns = stamp_to_ns(message.header.stamp)
        if stamp_ns < self._tick_ns:
            self._answered_ns = -1
            self._reset()
        if stamp_ns != self._tick_ns:
            self._before_tick()
        self._tick_ns = stamp_ns
        self._gate.tick(stamp_ns, message.count)

    def _on_guidance_tick(self, message: SimulationTick) -> None:
        assert self._guidance is not None
        self._guidance.tick(stamp_to_ns(message.header.stamp), message.count)

    def _answer_tick(self, stamp_ns: int) -> None:
        """Answer a tick whose messages have arrived; answer a repeated tick as before."""
        last = self._answered_ns
        if stamp_ns == last:
            self._send()
            return
        self._answered_ns = stamp_ns
        self._compute(stamp_ns, 0.0 if last < 0 else max(stamp_ns - last, 0) * 1e-9)

    def _reset(self) -> None:
        self._node.get_logger().warning(self._reset_text)
        self._diagnostics.count("clock_jumps_back")
        self._controller.reset()
        self.estimate = None
        self._first_ns = -1
        self._others_since_ns = -1
        self._last_ns = -1

    def _compute(self, stamp_ns: int, dt: float) -> None:
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
