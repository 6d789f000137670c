# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensor topics of a vehicle: types, indices in SimulationTick, and their messages as samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from geometry_msgs.msg import TwistStamped, Vector3Stamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rfly_suite.msg import SimulationTick
from sensor_msgs.msg import FluidPressure, Imu, JointState, MagneticField, NavSatFix, Range
from std_msgs.msg import Float64MultiArray

from rfly_amphibious.ros import amphibious_msgs as convert
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.qos import STATE_OUT, sensor_qos
from rfly_common.ros.stamps import stamp_to_ns


class SensorTopic(NamedTuple):
    """Description of a sensor topic."""

    kind: str
    """Kind of samples: a field of SensorSamples."""
    sensor: str
    """Sensor that makes them: a field of SensorParameters."""
    tick_index: int
    """Index in SimulationTick.count."""
    msg_type: Any


SENSOR_TOPICS = MappingProxyType(
    {
        "imu/data": SensorTopic("imu", "imu", SimulationTick.IMU, Imu),
        "gps/fix": SensorTopic("gps", "gps", SimulationTick.GPS, NavSatFix),
        "gps/vel": SensorTopic("gps", "gps", SimulationTick.GPS, TwistStamped),
        "imu/mag": SensorTopic(
            "magnetometer", "magnetometer", SimulationTick.MAGNETOMETER, MagneticField
        ),
        "baro": SensorTopic("barometer", "barometer", SimulationTick.BAROMETER, FluidPressure),
        "joint_states": SensorTopic("joints", "encoders", SimulationTick.JOINTS, JointState),
        "wheel/odom": SensorTopic(
            "wheel_odometry", "encoders", SimulationTick.WHEEL_ODOMETRY, Odometry
        ),
        "height_above_ground": SensorTopic("height", "height", SimulationTick.HEIGHT, Range),
        "wheel_loads": SensorTopic(
            "wheel_loads", "wheel_loads", SimulationTick.WHEEL_LOADS, Float64MultiArray
        ),
        "environment/wind": SensorTopic("wind", "wind", SimulationTick.WIND, Vector3Stamped),
        "ground_truth/odom": SensorTopic(
            "ground_truth", "ground_truth", SimulationTick.GROUND_TRUTH, Odometry
        ),
    }
)
"""Sensor topics, in the order in which a tick's messages are published."""


GUIDANCE_TOPICS = MappingProxyType({"cmd/ackermann": 0, "cmd/pose": 1, "cmd/mode": 2})
"""Commands of guidance_node, and their indices in the count of `guidance_tick`."""


def subscribe_sensors(
    node: Node, topics: Iterable[str], take: Callable[[str, Any], None], *, lock_step: bool
) -> None:
    """Subscribe to sensor topics; `take(topic, message)` is called for each message."""
    qos = sensor_qos(lock_step)
    for topic in topics:
        subscription(node, SENSOR_TOPICS[topic].msg_type, topic, partial(take, topic), qos)


def subscribe_ticks(node: Node, gate: TickGate, topic: str = "simulation_tick") -> None:
    """Announce the ticks of a topic to a gate.

    Subscribe to it after the topics that are counted: once ticks arrive, so do their messages.
    """

    def on_tick(message: SimulationTick) -> None:
        gate.tick(stamp_to_ns(message.header.stamp), message.count)

    subscription(node, SimulationTick, topic, on_tick, STATE_OUT)


class SampleReader:
    """Samples from the messages of the topics that estimators and controllers subscribe to.

    `load_time()` returns the time (s) of wheel_loads, which has no stamp. A GPS's samples come with
    the second of its two messages; the first gives None. Raise SensorMessageError.
    """

    def __init__(
        self, params: VehicleParameters, load_time: Callable[[], float] = lambda: 0.0
    ) -> None:
        pairs = convert.GpsPairs()
        self._readers: dict[str, Callable[[Any], Any]] = {
            "imu/data": convert.imu_samples,
            "gps/fix": pairs,
            "gps/vel": pairs,
            "imu/mag": convert.magnetometer_samples,
            "baro": convert.barometer_samples,
            "joint_states": convert.JointReader(params),
            "height_above_ground": convert.height_samples,
            "environment/wind": convert.wind_samples,
            "wheel_loads": lambda message: convert.wheel_load_samples(
                message, load_time(), len(params.wheels)
            ),
        }

    def __call__(self, topic: str, message: Any) -> Any:
        return self._readers[topic](message)
