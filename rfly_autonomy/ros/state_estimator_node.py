# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""state_estimator_node: odometry from sensor topics, a thin shell around StateEstimator."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from tf2_msgs.msg import TFMessage

from rfly_amphibious.description.footprint import footprint
from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_amphibious.ros.sensor_topics import (
    SENSOR_TOPICS,
    subscribe_sensors,
    subscribe_ticks,
)
from rfly_amphibious.sensors.sample_messages import UNKNOWN, WENT_BACK_S, SampleReader, frame_of
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.estimator import StateEstimator, warm_up
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_autonomy.estimation.odometry_frame import OdometryFrame
from rfly_autonomy.estimation.trust import EstimateTrust, Trust
from rfly_autonomy.ros.estimate_msgs import estimate_to_odometry, unknown_odometry
from rfly_autonomy.ros.node_parameters import EstimatorNodeParameters, TrustParameters
from rfly_common.arrays import Floats
from rfly_common.errors import SensorMessageError
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import transform_to_msg
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import STATE_OUT, TF
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.transform_buffer import WORLD, Transform
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import LatestTerrain

SILENCE_S = 1.0
"""Time without imu/data after which diagnostics report it, s."""
MOST_HELD = 50_000
"""Most readings kept for a terrain_map that comes before the first estimate."""
HEARD = (
    "wheel_loads",
    "joint_states",
    "gps/fix",
    "gps/vel",
    "imu/mag",
    "baro",
    "height_above_ground",
    "imu/data",
)
"""Sensor topics; the IMU is last, so that all readings of its time come before it."""
WAITED_FOR = {"imu": "imu/data", "gps": "gps/fix"}
"""Topic of each sensor without which there is no first estimate."""
DOUBTED = 0.5
"""Share of rejected readings between two updates above which diagnostics name a sensor."""

TF_RATE = 50
"""Rate of /tf, Hz."""


class EstimateTopics:
    """Publishers of one vehicle's estimates.

    The estimate is published in `map` and, if subscribed, in the vehicle's `odom`, where it never
    jumps. With `tf` its transforms are published too. The last messages are kept for repetition.
    """

    def __init__(self, node: Node, vehicle: str, *, tf: bool) -> None:
        self._vehicle = vehicle
        self._answer: list[tuple[Publisher, Odometry]] = []
        self._transformed_ns = -1
        self._odom = frame_of(vehicle, "odom")
        self._filtered = publisher(node, Odometry, "odometry/filtered", STATE_OUT)
        self._global = publisher(node, Odometry, "odometry/global", STATE_OUT)
        self._tf = publisher(node, TFMessage, "/tf", TF) if tf else None
        self._odometry_frame = OdometryFrame()

    def reset(self) -> None:
        """Forget the past, as the time went back."""
        self._transformed_ns = -1
        self._odometry_frame.reset()

    def publish(
        self,
        estimate: Estimate | None,
        stamp_ns: int,
        terrain: HeightMap | None,
        rates: Floats,
    ) -> None:
        """Publish an estimate, None if nothing is known yet; `terrain` is for base_footprint.

        `rates` (3, 3): covariance of the estimate's rates, body axes, (rad/s)². The one in `map`
        comes first: in lock-step the controllers, and so the simulation, wait for it.
        """
        self._answer = []
        self._publish(self._global, estimate, stamp_ns, WORLD, rates)

        if estimate is not None:
            self._odometry_frame.update(estimate)
        if self._filtered.get_subscription_count():
            self._publish(
                self._filtered,
                None if estimate is None else self._odometry_frame.local(),
                stamp_ns,
                self._odom,
                rates,
            )

        # transforms
        due = stamp_ns - self._transformed_ns >= 1e9 / TF_RATE - 1000
        if self._tf is not None and estimate is not None and due:
            self._transformed_ns = stamp_ns
            place, odom = self._odometry_frame.transforms()
            ground = Transform(
                *map(np.array, footprint(estimate.position, estimate.orientation, terrain))
            )
            below = odom.inverse() @ ground
            transforms = [
                (WORLD, "odom", odom),
                ("odom", "base_link", place),
                ("odom", "base_footprint", below),
            ]
            self._tf.publish(
                TFMessage(transforms=[self._transform(stamp_ns, *frames) for frames in transforms])
            )

    def publish_again(self) -> None:
        """Publish the last messages again."""
        for output, message in self._answer:
            output.publish(message)

    def _publish(
        self,
        output: Publisher,
        estimate: Estimate | None,
        stamp_ns: int,
        frame: str,
        rates: Floats,
    ) -> None:
        vehicle = self._vehicle
        message = (
            unknown_odometry(vehicle, frame)
            if estimate is None
            else estimate_to_odometry(estimate, vehicle, frame, rates=rates)
        )

        message.header.stamp = ns_to_stamp(stamp_ns)
        output.publish(message)
        self._answer.append((output, message))

    def _transform(
        self, stamp_ns: int, parent: str, child: str, pose: Transform
    ) -> TransformStamped:
        parent = parent if parent == WORLD else frame_of(self._vehicle, parent)
        return transform_to_msg(
            parent, frame_of(self._vehicle, child), pose.translation, pose.quat_xyzw, stamp_ns
        )


class StateEstimatorNode(Node):
    """Node that publishes `odometry/filtered`, `odometry/global` and, by default, /tf."""

    def __init__(self) -> None:
        super().__init__("state_estimator_node")
        self._vehicle = declare_vehicle_name(self)
        settings = declare_parameters(self, EstimatorNodeParameters)

        self._lock_step = settings.lock_step
        self._params = VehicleParameters.load(settings.vehicle)
        own = self._params.name
        self._sensors = SensorParameters.for_vehicle(self._params.name, settings.sensors)
        self._rates = self._sensors.rates_covariance
        self._weights = EstimatorParameters.for_vehicle(own, settings.estimator)
        if settings.without_gps > 0.0:
            self._weights = self._weights.replace(align_without_gps=settings.without_gps)
        self._period_ns = round(1e9 / settings.publish_rate) if settings.publish_rate else 0

        self._geo_origin = DEFAULT_GEO_ORIGIN
        self._estimator = StateEstimator(
            self._weights, self._sensors, self._params, self._geo_origin
        )

        self._trust = EstimateTrust(declare_parameters(self, TrustParameters).limits)

        self._held: list[tuple[str, Any]] = []
        self._waiting: list[tuple[str, Any]] = []
        self._imu_time = -math.inf
        self._heard_at = -math.inf
        self._published_ns = -1
        self._gps_refused = False
        self._faults: dict[str, str] = {}
        self._seen = (self._estimator.accepted, self._estimator.rejected)

        self._diagnostics = Diagnostics(self, "estimation", self._vehicle, self._update_diagnostics)
        self._topics = EstimateTopics(self, self._vehicle, tf=settings.tf_source == "estimate")
        self._ground = LatestTerrain(self, self._on_terrain_map)

        self.get_logger().info(
            f"{self._vehicle}: vehicle {own!r}, sensors {', '.join(self._sensors.sensors())}"
            f"{', in lock-step' if self._lock_step else ''}"
        )

        warm_up()  # before a node waits for an answer, after the first words to the user
        self._read = SampleReader(self._params)
        fitted = self._sensors.sensors()
        topics = [topic for topic in HEARD if SENSOR_TOPICS[topic].sensor in fitted]
        self._gate: TickGate | None = None
        if self._lock_step:
            self._gate = TickGate(
                {SENSOR_TOPICS[topic].tick_index for topic in topics},
                self._answer_tick,
                again=lambda _: self._topics.publish_again(),
                reset=self._reset,
            )
        subscribe_sensors(self, topics, self._on_sensor, lock_step=self._lock_step)
        if self._gate is not None:
            subscribe_ticks(self, self._gate)

        self._ground.start(self._diagnostics)
        self._update_diagnostics()

    # --- subscriptions

    def _on_sensor(self, topic: str, message: Any) -> None:
        kind, _, index, _ = SENSOR_TOPICS[topic]
        try:
            samples = self._read(topic, message)
        except SensorMessageError as error:
            self._diagnostics.refuse("refused_messages", str(error), subject=topic)
        else:
            if samples is None:  # the other half has not come yet
                return
            if kind == "imu":
                self._heard_at = time.monotonic()
            if self._gate is not None:
                self._waiting.append((kind, samples))
            else:
                self._use(kind, samples)
        if self._gate is not None:
            self._gate.heard(index)

    def _use(self, kind: str, samples: Any) -> None:
        if kind == "imu":
            if self._is_of_new_run(samples):
                self._reset()
                for early in self._waiting:
                    self._feed(*early)
            self._waiting.clear()
            self._imu_time = float(samples.time[-1])
        elif self._is_of_new_run(samples) and len(self._waiting) < MOST_HELD:
            self._waiting.append((kind, samples))

        self._feed(kind, samples)

        # without the IMU the estimate goes on by the other readings
        if kind != "imu" and not self._estimator.coasting:
            return
        estimate = self._estimator.estimate
        stamp_ns = round(self._imu_time * 1e9)
        if kind != "imu" and estimate is not None:
            stamp_ns = round(estimate.time * 1e9)
        if stamp_ns - self._published_ns >= self._period_ns - 1000 or self._published_ns < 0:
            self._publish(estimate, stamp_ns)

    def _feed(self, kind: str, samples: Any) -> None:
        getattr(self._estimator, kind)(samples)
        if self._estimator.initialised:
            self._held.clear()
        elif len(self._held) < MOST_HELD:
            self._held.append((kind, samples))

    def _is_of_new_run(self, samples: Any) -> bool:
        """Return whether the time went back before these samples."""
        return float(samples.time[-1]) < self._imu_time - WENT_BACK_S

    def _reset(self) -> None:
        """Start afresh, with readings of the new run that have come before it was noticed."""
        self._diagnostics.count("clock_jumps_back")
        self.get_logger().info("the time went back: starting afresh")
        self._estimator.reset()
        self._held.clear()
        self._waiting = [each for each in self._waiting if self._is_of_new_run(each[1])]
        self._imu_time = -math.inf
        self._published_ns = -1
        self._topics.reset()
        self._trust.reset()
        self._seen = (self._estimator.accepted, self._estimator.rejected)

    def _on_terrain_map(self, terrain: HeightMap, geo_origin: tuple[float, float, float]) -> None:
        """Use a new map, and look again at the readings before the first estimate."""
        moved = geo_origin != self._geo_origin
        self._geo_origin = geo_origin

        if self._estimator.initialised and not moved:
            self._estimator.set_terrain(terrain)
        else:
            self._estimator = StateEstimator(
                self._weights, self._sensors, self._params, geo_origin, terrain
            )
            self._seen = (self._estimator.accepted, self._estimator.rejected)
            held = self._held
            self._held = []
            for kind, samples in held:
                self._feed(kind, samples)

        self.get_logger().info(f"on the ground of {terrain.name!r}")
        self._update_diagnostics()

    # --- lock-step

    def _answer_tick(self, stamp_ns: int) -> None:
        waiting = self._waiting
        self._waiting = []
        # the IMU last, after all readings of its time
        for kind, samples in sorted(waiting, key=lambda item: item[0] == "imu"):
            self._feed(kind, samples)

        self._imu_time = stamp_ns * 1e-9
        self._publish(self._estimator.estimate, stamp_ns)

    # --- publishing

    def _publish(self, estimate: Estimate | None, stamp_ns: int) -> None:
        """Publish an estimate; in lock-step publish an answer even if nothing is known yet."""
        if estimate is not None or self._lock_step:
            self._published_ns = stamp_ns
            rates = self._rates
            if self._estimator.coasting:  # without the gyroscope
                rates = UNKNOWN * np.eye(3)
            self._topics.publish(estimate, stamp_ns, self._ground.terrain, rates)

    def _log_gps(self) -> str:
        """Log that the GPS is refused, or used again; return the reason, "" while it is used."""
        estimator = self._estimator
        refused = (
            f"GPS refused: it is {estimator.gps_off:.1f} m off; goes on without it"
            if estimator.gps_refused
            else ""
        )
        if refused and not self._gps_refused:
            self.get_logger().warning(refused)
        elif self._gps_refused and not refused:
            self.get_logger().warning("GPS used again")
        self._gps_refused = bool(refused)
        return refused

    def _log_faults(self) -> str:
        """Log which sensors are at fault from now on, or sound again; return all of the former."""
        faults = self._estimator.faults
        for part in faults.keys() - self._faults.keys():
            self.get_logger().warning(f"{part} {faults[part]}")
        for part in self._faults.keys() - faults.keys():
            self.get_logger().warning(f"{part} is sound again")
        self._faults = faults
        return ", ".join(f"{part} {reason}" for part, reason in faults.items())

    def _update_diagnostics(self) -> None:
        estimator = self._estimator
        values: dict[str, Any] = {
            "initialised": estimator.initialised,
            "coasting": estimator.coasting,
            "gps_refused": estimator.gps_refused,
            "gps_resets": estimator.gps_resets,
        }
        refused = self._log_gps()
        lying = self._log_faults()
        if lying:
            values["faults"] = lying

        # readings that do not fit
        accepted = estimator.accepted
        rejected = estimator.rejected
        before = self._seen
        self._seen = (accepted, rejected)
        doubted = []
        for name, number in rejected.items():
            new_rejected = number - before[1][name]
            fitting = accepted[name] - before[0][name]
            if new_rejected > DOUBTED * (new_rejected + fitting) and new_rejected >= 5:
                doubted.append(name)
            values[f"rejected_{name}"] = number
        for name, nis in estimator.innovation.items():
            if accepted[name] or rejected[name]:
                values[f"innovation_{name}"] = f"{nis:.2f}"

        late = {name: number for name, number in estimator.late.items() if number}
        if late:
            values["late"] = ", ".join(f"{name} {number}" for name, number in late.items())
        invalid = sum(estimator.invalid.values())
        if invalid:
            values["not_finite"] = invalid
        if estimator.diverged:
            values["diverged"] = estimator.diverged

        # uncertainty
        trust = self._trust
        estimate = estimator.estimate
        if estimate is not None:
            trust.update(estimate)
            values["uncertain_position"] = f"{trust.position_sigma:.2f}"
            values["uncertain_speed"] = f"{trust.speed_sigma:.2f}"

        silence = time.monotonic() - self._heard_at
        topic = WAITED_FOR.get(estimator.waits_for)
        waits = f": no {topic} yet" if topic else ""
        problem = self._ground.problem or (estimator.coasting and "goes on without the IMU")
        ground = "by the map" if estimator.terrain is not None else "without a map of the ground"

        self._diagnostics.set_first(
            [
                (not estimator.initialised, STALE, f"not aligned yet{waits}"),
                (silence > SILENCE_S, STALE, f"no imu/data for {silence:.0f} s"),
                (trust.level is Trust.LOST, ERROR, f"the estimate is {trust.text}"),
                (refused, WARN, refused),
                (lying, WARN, lying),
                (trust.level, WARN, f"the estimate is {trust.text}"),
                (doubted, WARN, f"readings do not fit: {', '.join(doubted)}"),
                (problem, WARN, str(problem)),
                (True, OK, f"estimates {ground}"),
            ],
            **values,
        )
