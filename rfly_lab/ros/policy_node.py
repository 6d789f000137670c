# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""policy_node: flies a land-air vehicle by a trained policy, in the place of guidance_node.

It is a thin shell around PolicyPilot. It knows odometry/global, the sensors and the mode, and
answers estimates with cmd/wrench while the vehicle is in FLIGHT, and in TAKEOFF where the task
begins on the ground. A policy that was trained by sensors hears IMU, GPS and barometer, too, and
the origin of terrain_map. flight_control_node keeps the mode and its guards: once no wrench comes
any more, it hovers and lands.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from nav_msgs.msg import Odometry, Path
from rclpy.node import Node
from rfly_suite.msg import VehicleMode
from std_msgs.msg import String

from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_amphibious.ros.sensor_topics import SENSOR_TOPICS, subscribe_sensors, subscribe_ticks
from rfly_amphibious.sensors.sample_messages import SampleReader, frame_of
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.ros.control_topics import GuidanceOutputs
from rfly_autonomy.ros.estimate_msgs import is_unknown, odometry_to_estimate
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError, ConfigError, RflyError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_IN, sensor_qos
from rfly_common.ros.stamps import fill_header, ns_to_stamp, stamp_to_ns
from rfly_lab.learning.policy_pilot import PolicyPilot
from rfly_lab.learning.tasks import Ending
from rfly_lab.ros.node_parameters import PolicyParameters
from rfly_missions.followers.land_air import ModeRequests
from rfly_terrain.ros.plan_msgs import path_to_points
from rfly_terrain.ros.terrain_topics import LatestTerrain

SILENCE_S = 1.0
"""Wall time without an estimate after which diagnostics tell of it, s."""
SENSORS = ("joint_states", "height_above_ground", "wheel_loads")
"""Sensors that an observation needs in addition to the estimate."""
SEEN = (*SENSORS, "gps/fix", "gps/vel", "baro", "imu/data")
"""Sensors of a policy that sees by them."""
HOVER_HEIGHT = 3.0
"""Height above its place to which a vehicle flies first that has no other target, m."""
BEGIN = {Mode.DISARMED: "arm", Mode.DRIVE: "takeoff"}
"""Requests that bring a vehicle into the air."""


class PolicyNode(Node):
    """Node that publishes `cmd/wrench` from estimates and samples by a policy.

    Where a task has ended it stays by `cmd/pose`, or lands by `cmd/mode` if it stands there. With
    `autostart` it asks for the modes on the way into the air, too.
    """

    def __init__(self) -> None:
        super().__init__("policy_node")
        settings = declare_parameters(self, PolicyParameters)
        self._name = declare_vehicle_name(self)
        if not settings.policy:
            raise ConfigError("parameter policy: expected an ONNX file")
        self._pilot = PolicyPilot.load(settings.policy, settings.vehicle, settings.sensors)
        policy = self._pilot.policy
        topics: tuple[str, ...] = SENSORS
        if self._pilot.sees_samples:
            fitted = self._pilot.sensors.sensors()
            topics = tuple(topic for topic in SEEN if SENSOR_TOPICS[topic].sensor in fitted)
        self._autostart = settings.autostart
        self._starts = settings.autostart
        """True until it flies: what has landed takes off again only for new targets."""
        self._held: PoseStamped | None = None
        """Where it stays after the end of its task."""

        # what is known
        self._read = SampleReader(policy.params)
        self._mode: Mode | None = None
        self._estimate: Estimate | None = None
        self._odometry: Odometry | None = None
        self._last_ns = -1
        self._heard_at = time.monotonic()
        self._ending = Ending.RUNNING
        self._mode_requests = ModeRequests()

        # outputs
        self._diagnostics = Diagnostics(self, "policy", self._name, self._update_diagnostics)
        kinds = {"cmd/pose": PoseStamped, "cmd/mode": String, "cmd/wrench": WrenchStamped}
        self._outputs = GuidanceOutputs(self, kinds, settings.lock_step)
        self.wrenches = 0
        """Number of wrenches."""
        self._gate: TickGate | None = None
        if settings.lock_step:
            watched = {SENSOR_TOPICS[topic].tick_index for topic in topics}
            self._gate = TickGate(
                watched, self._answer, ["odometry/global"], again=self._answer_again
            )

        # inputs
        self._frames = Frames(self, listen=False)
        try:
            self._set_targets(np.array(settings.goal, float))
        except CommandError as error:
            raise ConfigError(f"parameter goal: {error}") from None
        subscription(self, PoseStamped, "goal_pose", self._on_goal_pose, COMMANDS)
        subscription(self, Path, "follow_path", self._on_follow_path, LATCHED)
        subscription(self, VehicleMode, "mode", self._on_mode, LATCHED)
        subscribe_sensors(self, topics, self._on_sensor, lock_step=settings.lock_step)
        if self._gate is not None:
            subscribe_ticks(self, self._gate)
        odometry_qos = sensor_qos(True) if settings.lock_step else STATE_IN
        subscription(self, Odometry, "odometry/global", self._on_odometry, odometry_qos)
        ground = LatestTerrain(self, lambda _, origin: self._pilot.set_origin(origin))
        if self._pilot.sees_samples:
            ground.start(self._diagnostics)
        self._update_diagnostics()
        facts = policy.facts
        self.get_logger().info(f"{self._name}: flies {facts.task!r} by {settings.policy}")
        if policy.differs:
            others = ", ".join(policy.differs)
            self.get_logger().warning(f"the policy was trained with other numbers of: {others}")

    # --- targets and mode

    def _set_targets(self, numbers: Floats) -> None:
        """Fly to targets, (3 n,), world; refuse those that the task does not have."""
        most = self._pilot.policy.task.targets
        if len(numbers) % 3:
            raise CommandError(f"{len(numbers)} numbers, expected three for each target")
        if len(numbers) > 3 and most == 1:
            task = self._pilot.policy.facts.task
            raise CommandError(f"{len(numbers) // 3} targets, {task!r} has one")
        self._pilot.set_targets(numbers)
        self._ending = Ending.RUNNING
        self._held = None
        self._starts = self._autostart
        self._mode_requests.forget()

    def _on_goal_pose(self, message: PoseStamped) -> None:
        self._on_path("goal_pose", Path(header=message.header, poses=[message]))

    def _on_follow_path(self, message: Path) -> None:
        """Fly along poses; none means: stop."""
        self._on_path("follow_path", message)

    def _on_path(self, topic: str, message: Path) -> None:
        try:
            frame_id = message.header.frame_id or "map"
            frame = self._frames.resolve(frame_id, stamp_to_ns(message.header.stamp))
            points, _ = path_to_points(message, frame)
            self._set_targets(points.ravel())
            self._starts = self._starts and len(points) > 0
        except RflyError as error:
            self._diagnostics.refuse_message(topic, error)
        self._update_diagnostics()

    def _on_mode(self, message: VehicleMode) -> None:
        before = self._mode
        try:
            self._mode = Mode(message.mode)
            if before is Mode.DRIVE and self._mode is Mode.DISARMED:
                self._starts = False  # somebody else's wish: it waits for new targets
        except ValueError:
            text = f"mode: {message.mode!r} is none of the vehicle's"
            self._diagnostics.refuse("unknown_modes", text, subject=message.mode)

    # --- samples and estimates

    def _on_sensor(self, topic: str, message: Any) -> None:
        kind, _, index, _ = SENSOR_TOPICS[topic]
        try:
            samples = self._read(topic, message)
        except RflyError as error:
            self._diagnostics.refuse_message(topic, error)
        else:
            if samples is None:  # the other half has not come yet
                return
            self._pilot.sense(SensorSamples(**{kind: samples}))
        if self._gate is not None:
            self._gate.heard(index)

    def _on_odometry(self, message: Odometry) -> None:
        self._heard_at = time.monotonic()
        self._odometry = message
        stamp_ns = stamp_to_ns(message.header.stamp)
        if self._gate is not None:
            self._gate.answered("odometry/global", stamp_ns)
        else:
            self._answer(stamp_ns)

    def _answer(self, stamp_ns: int) -> None:
        """Step with the newest estimate; in lock-step send the controllers their number."""
        if stamp_ns < self._last_ns:
            self._diagnostics.count("clock_jumps_back")
            self.get_logger().warning("the time went back: its targets are given up")
            self._pilot.reset()
            self._held = None
            self._starts = self._autostart
            self._mode_requests.forget()
        if stamp_ns != self._last_ns:
            self._last_ns = stamp_ns
            self._step()
        self._answer_again(stamp_ns)

    def _answer_again(self, stamp_ns: int) -> None:
        if self._mode is not None:
            self._outputs.answer(ns_to_stamp(stamp_ns))

    def _step(self) -> None:
        message = self._odometry
        if message is None or is_unknown(message):
            return
        try:
            now = odometry_to_estimate(message)
        except RflyError as error:
            self._diagnostics.refuse("refused_odometry", f"odometry/global: {error}")
            return
        self._estimate = now
        pilot = self._pilot

        # act in the modes that it may
        if self._mode in pilot.modes:
            self._starts = False
            wrench = pilot.step(now)
            if wrench is not None:
                self._send_wrench(now, wrench)
            elif pilot.has_landed:
                self._request("land", now)
            elif pilot.has_ended:
                self._hold(now)
        else:
            self._begin(now)

        # log an ending once
        if pilot.ending is not self._ending:
            self._ending = pilot.ending
            if pilot.ending is not Ending.RUNNING:
                self.get_logger().info(f"{pilot.policy.facts.task}: {pilot.ending.name}")
            self._update_diagnostics()

    def _begin(self, now: Estimate) -> None:
        """Ask for the modes on the way into the air, if that is wanted."""
        if not self._starts or self._mode is None:
            return
        pilot = self._pilot
        if pilot.takes_off:
            # it stays where it is for a target that it stands at, or that is too far away
            pilot.step(now)
            judge = pilot.judge
            if not judge.has_targets or judge.stays or pilot.ending is not Ending.RUNNING:
                return
            if pilot.missing(now.time):
                return
        elif not pilot.judge.has_targets and self._mode in BEGIN:
            pilot.set_targets(np.add(now.position, (0.0, 0.0, HOVER_HEIGHT)))
        self._request(BEGIN.get(self._mode, ""), now)

    def _request(self, word: str, now: Estimate) -> None:
        """Request a mode, again and again until it comes; "": none."""
        if self._mode_requests.is_due(word, now.time):
            self._outputs.send("cmd/mode", String(data=word))

    def _send_wrench(self, now: Estimate, wrench: Floats) -> None:
        message = WrenchStamped()
        fill_header(message, round(now.time * 1e9), frame_of(self._name, "base_link"))
        message.wrench.force.z = float(wrench[0])
        torque = message.wrench.torque
        torque.x, torque.y, torque.z = wrench[1:].tolist()
        self._outputs.send("cmd/wrench", message)
        self.wrenches += 1

    def _hold(self, now: Estimate) -> None:
        """Stay at the last target, with the heading that it had when the task ended."""
        if self._held is None:
            self._held = PoseStamped()
            self._held.header.frame_id = "map"
            place = self._held.pose.position
            place.x, place.y, place.z = self._pilot.judge.episode.targets[0, -1].tolist()
            q = self._held.pose.orientation
            q.x, q.y, q.z, q.w = np.asarray(now.orientation).tolist()
        self._held.header.stamp = ns_to_stamp(round(now.time * 1e9))
        self._outputs.send("cmd/pose", self._held)

    # --- diagnostics

    def _update_diagnostics(self) -> None:
        pilot = self._pilot
        judge = pilot.judge
        task = pilot.policy.facts.task
        mode = "" if self._mode is None else self._mode.value
        heard = {"odometry/global": self._estimate is not None, "mode": self._mode is not None}
        unknown = [topic for topic, is_known in heard.items() if not is_known]
        values: dict[str, Any] = {
            "task": task,
            "mode": mode,
            "ending": pilot.ending.name,
            "wrenches": self.wrenches,
        }
        if judge.has_targets:
            values["target"] = f"{judge.target + 1} of {judge.episode.targets.shape[1]}"
            values["distance_m"] = f"{judge.distance:.2f}"

        silence = time.monotonic() - self._heard_at
        missing = [] if self._estimate is None else pilot.missing(self._estimate.time)
        ended = pilot.ending not in (Ending.RUNNING, Ending.SUCCESS)
        what = pilot.ending.name.lower().replace("_", " ")
        self._diagnostics.set_first(
            [
                (unknown, STALE, f"not known yet: {', '.join(unknown)}"),
                (silence > SILENCE_S, STALE, f"no odometry/global for {silence:.0f} s"),
                (missing, WARN, f"not known: {', '.join(missing)}: it commands nothing"),
                (ended, ERROR, f"{task}: {what}: it commands nothing until there is a new target"),
                (not judge.has_targets, OK, "waits for goal_pose or follow_path"),
                (pilot.has_landed, OK, f"{task}: success, it waits for a new target"),
                (
                    self._mode not in pilot.modes,
                    OK,
                    f"waits for {pilot.modes[0].value}, it is in {mode}",
                ),
                (True, OK, f"{task}: {what}"),
            ],
            **values,
        )
