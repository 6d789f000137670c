"""Sensor topics of a vehicle as a Perception: shared by the nodes for controllers outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rfly_suite.msg import SimulationTick
from sensor_msgs.msg import NavSatFix

from rfly_amphibious.links.perception import Perception
from rfly_amphibious.ros import amphibious_msgs as convert
from rfly_amphibious.ros.node_parameters import PerceptionParameters
from rfly_amphibious.ros.sensor_topics import SENSOR_TOPICS, SampleReader
from rfly_amphibious.sensors.samples import GpsSamples
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_common.errors import SensorMessageError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.qos import COMMANDS, sensor_qos
from rfly_common.ros.stamps import stamp_to_ns

ODOMETRY = {"filtered": "odometry/global", "truth": "ground_truth/odom"}
TAKEN_BY: dict[str, Callable[[Perception, Any], None]] = {
    "imu/data": Perception.take_imu,
    "joint_states": Perception.take_joints,
    "wheel_loads": Perception.take_wheel_loads,
    "baro": Perception.take_barometer,
    "imu/mag": Perception.take_magnetometer,
    "height_above_ground": Perception.take_height,
    "environment/wind": Perception.take_wind,
}
HEARD = ("imu/data", "joint_states", "wheel_loads", "baro", "imu/mag")


class PerceptionTopics:
    """Subscribes, and calls `on_state(stamp_ns)` when there is something to answer.

    Free-running that is each imu/data; with the parameter `lock_step` each tick, once all of it has come, and again
    where the tick is told again. `on_gps(samples, fix)` is called for each pair of gps/fix and gps/vel; in a tick
    before `on_state`; without it nobody listens to them. `heard`: topics of `TAKEN_BY`.
    """

    def __init__(
        self,
        node: Node,
        perception: Perception,
        diagnostics: Diagnostics,
        given: PerceptionParameters,
        on_state: Callable[[int], None],
        on_gps: Callable[[GpsSamples, NavSatFix], None] | None = None,
        heard: Sequence[str] = HEARD,
    ) -> None:
        self._node, self._perception, self._diagnostics = node, perception, diagnostics
        self.lock_step = given.lock_step
        self._filtered = given.odometry == "filtered"
        self.odometry = ODOMETRY[given.odometry]
        self._on_state, self._on_gps = on_state, on_gps
        self._read, self._fix = SampleReader(perception.params), NavSatFix()
        self._stamp_ns = -1
        watched = [SENSOR_TOPICS[topic].tick_index for topic in heard]
        watched += [SimulationTick.GPS] if on_gps is not None else []
        watched += [] if self._filtered else [SimulationTick.GROUND_TRUTH]
        self._gate = TickGate(watched, self._tick, answers=self._filtered)
        qos = sensor_qos(self.lock_step)
        for topic in heard:
            self._listen(topic, partial(TAKEN_BY[topic], perception), qos)
        if on_gps is not None:
            subscription(node, NavSatFix, "gps/fix", self._on_gps_fix, qos)
            subscription(node, TwistStamped, "gps/vel", self._on_gps_vel, qos)
        subscription(node, Odometry, self.odometry, self._on_odometry, qos)
        if self.lock_step:
            subscription(
                node,
                SimulationTick,
                "simulation_tick",
                lambda m: self._gate.tick(stamp_to_ns(m.header.stamp), m.count),
                COMMANDS,
            )

    @property
    def repeated(self) -> int:
        """Ticks that were told again before all of them had come."""
        return self._gate.repeated

    def _listen(self, topic: str, take: Callable[[Any], None], qos: Any) -> None:
        _, _, index, msg_type = SENSOR_TOPICS[topic]

        def heard(message: Any) -> None:
            if index == SimulationTick.IMU and not self.lock_step:
                self._forget_if_back(stamp_to_ns(message.header.stamp))
            self._guarded(topic, lambda m: take(self._read(topic, m)), message)
            if self.lock_step:
                self._gate.heard(index)
            elif index == SimulationTick.IMU:
                self._new(stamp_to_ns(message.header.stamp))

        subscription(self._node, msg_type, topic, heard, qos)

    def _guarded(self, topic: str, take: Callable[[Any], None], message: Any) -> bool:
        """Whether it could be taken."""
        try:
            take(message)
        except SensorMessageError as error:
            self._diagnostics.count(f"refused_{topic.replace('/', '_')}")
            self._node.get_logger().warning(f"{topic}: {error}", throttle_duration_sec=5.0)
            return False
        return True

    def _on_odometry(self, message: Odometry) -> None:
        if not convert.is_unknown(message):
            self._guarded("odometry", lambda m: self._perception.take_pose(convert.odometry_to_estimate(m)), message)
        if not self.lock_step:
            return
        if self._filtered:
            self._gate.answered(stamp_to_ns(message.header.stamp))
        else:
            self._gate.heard(SimulationTick.GROUND_TRUTH)

    def _on_gps_fix(self, message: NavSatFix) -> None:
        self._fix = message
        self._gps_heard(self._guarded("gps/fix", lambda m: self._use_gps(self._read("gps/fix", m)), message))

    def _on_gps_vel(self, message: TwistStamped) -> None:
        self._gps_heard(self._guarded("gps/vel", lambda m: self._use_gps(self._read("gps/vel", m)), message))

    def _use_gps(self, pair: GpsSamples | None) -> None:
        if pair is None or self._on_gps is None:
            return
        self._on_gps(pair, self._fix)
        if self.lock_step:
            self._gate.heard(SimulationTick.GPS)

    def _gps_heard(self, taken: bool) -> None:
        """A pair that could not be taken has come all the same: a tick does not wait for it."""
        if not taken and self.lock_step:
            self._gate.heard(SimulationTick.GPS)

    def _tick(self, stamp_ns: int) -> None:
        self._forget_if_back(stamp_ns)
        self._new(stamp_ns)

    def _forget_if_back(self, stamp_ns: int) -> None:
        """The simulation was reset: a tick of its own, without samples, says so before any sample does."""
        if stamp_ns < self._stamp_ns:
            self._perception.reset()

    def _new(self, stamp_ns: int) -> None:
        self._stamp_ns = stamp_ns
        self._on_state(stamp_ns)
