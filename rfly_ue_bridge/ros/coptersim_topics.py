# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of one vehicle that CopterSim simulates. Part of coptersim_node.

Datagrams are decoded and published in the receiver's thread.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rfly_suite.msg import UeCrash
from sensor_msgs.msg import JointState, NavSatFix, NavSatStatus

from rfly_common.errors import PacketError
from rfly_common.frames import Numbers, vector_ned_to_enu
from rfly_common.geodesy import GeoPoint, geodetic_to_ned
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import frame_prefix
from rfly_common.ros.qos import FEEDBACK_OUT, STATE_OUT
from rfly_common.ros.stamps import fill_header
from rfly_common.transform_buffer import WORLD
from rfly_ue_bridge.codec.coptersim import (
    ESTIMATE,
    STATE_FRAME,
    TRUTH,
    UE4_CMD_GPS,
    CopterMotion,
    estimated_motion,
    has_estimate,
    hit_vehicle,
    home_of,
    is_ready,
    origin_of,
    place_of,
    truth_motion,
)
from rfly_ue_bridge.codec.from_rflysim3d import COPTER_SIM_CRASH
from rfly_ue_bridge.codec.packets import Packet, PacketTable
from rfly_ue_bridge.ros.simulation_stamps import SimulationStamps
from rfly_ue_bridge.sensors.frame_times import FrameTimes

UNKNOWN_VARIANCE = 1e6
"""Variance of rates that a packet does not have, (rad/s)^2."""
_RPM = 2.0 * math.pi / 60.0
"""Revolution per minute, rad/s."""
_MAVLINK = (b"\xfd", b"\xfe")
"""First byte of MAVLink 2 and 1."""
_NO_TIME = -1.0


class StateStream:
    """Packets of one port: when they came, and how many were refused for which reason."""

    def __init__(self, copter_id: int, port: int, table: PacketTable) -> None:
        self.port = port
        self.heard_s = -math.inf
        """Arrival of the last packet, s on the steady clock."""
        self.received = 0
        self.refused: Counter[str] = Counter()
        """Counts by reason."""
        self.times = FrameTimes()
        self._copter_id = copter_id
        self._table = table

    def decode(self, datagram: bytes, arrival_s: float) -> Packet | None:
        """Return the vehicle's packet; count what is none."""
        try:
            packet = self._table.decode(datagram)
        except PacketError as error:
            is_mavlink = datagram[:1] in _MAVLINK and error.reason == "length"
            self.refused["mavlink" if is_mavlink else error.reason] += 1
            return None
        if packet.values.get("copterID", self._copter_id) != self._copter_id:
            self.refused["wrong_id"] += 1
            return None
        self.heard_s = arrival_s
        self.received += 1
        return packet


class CopterSimTopics:
    """Truth and estimate of one vehicle.

    - `on_time`: called with the time of each true state, s.
    - `on_pose`: called with frame, position, quaternion and stamp of each true state.
    - `on_start`: called when the start point has moved.
    """

    def __init__(
        self,
        node: Node,
        copter_id: int,
        name: str,
        ports: tuple[int, int],
        stamps: SimulationStamps,
        origin: GeoPoint | None,
        *,
        on_time: Callable[[float], None],
        on_pose: Callable[[str, Numbers, Numbers, int], None],
        on_start: Callable[[], None],
    ) -> None:
        self.copter_id = copter_id
        self.name = name
        self.base_frame = f"{frame_prefix(node)}{name}/base_link"
        self.start_frame = f"{frame_prefix(node)}{name}/odom"
        """Frame of the estimate, in the axes of the map at the vehicle's start point."""
        self.truth = StateStream(copter_id, ports[0], TRUTH)
        self.estimate = StateStream(copter_id, ports[1], ESTIMATE)
        self.ready = False
        """True once the estimator has a 3-D position."""
        self.last_hit: int | None = None
        """Id of the vehicle that was hit last."""
        self.hits = 0
        self.start: Numbers | None = None
        """Start point in the map, ENU, m; None while it is unknown."""

        self._stamps = stamps
        self._given_origin = origin is not None
        self._origin = origin
        self._home: GeoPoint | None = None
        self._on_time = on_time
        self._on_pose = on_pose
        self._on_start = on_start

        self._odometry = publisher(node, Odometry, f"{name}/truth/odometry", STATE_OUT)
        self._fix = publisher(node, NavSatFix, f"{name}/truth/fix", STATE_OUT)
        self._joints = publisher(node, JointState, f"{name}/truth/joint_states", STATE_OUT)
        self._pose = publisher(node, PoseStamped, f"{name}/pose", STATE_OUT)
        self._estimate = publisher(node, Odometry, f"{name}/estimate/odometry", STATE_OUT)
        self._crash = publisher(node, UeCrash, f"{name}/crash", FEEDBACK_OUT)

    # --- truth

    def take_truth(self, datagram: bytes, arrival_s: float) -> None:
        """Publish a datagram of the truth's port."""
        packet = self.truth.decode(datagram, arrival_s)
        if packet is None:
            return
        if packet.type is UE4_CMD_GPS:
            origin = origin_of(packet)
            if origin is None:
                self.truth.refused["no_place"] += 1
            elif not self._given_origin:
                self._origin = origin
                self._update_start()
            return
        self._publish_hit(packet)
        if packet.type is not COPTER_SIM_CRASH:
            self._publish_truth(packet)

    def _publish_truth(self, packet: Packet) -> None:
        try:
            motion = truth_motion(packet)
            stamp_ns = self._stamp(self.truth, packet["runnedTime"])
        except PacketError as error:
            self.truth.refused[error.reason] += 1
            return
        self._on_time(packet["runnedTime"])

        # motion
        odometry = _odometry(motion, self.base_frame)
        self._odometry.publish(fill_header(odometry, stamp_ns, WORLD))
        pose = PoseStamped(pose=odometry.pose.pose)
        self._pose.publish(fill_header(pose, stamp_ns, WORLD))
        self._on_pose(self.base_frame, motion.position, motion.orientation, stamp_ns)

        # motors
        speeds = (np.array(packet["MotorRPMS"]) * _RPM).tolist()
        joints = JointState(name=[f"motor{k + 1}" for k in range(len(speeds))], velocity=speeds)
        self._joints.publish(fill_header(joints, stamp_ns, self.base_frame))

        # place
        place = place_of(packet, self._origin)
        if place is not None:
            fix = NavSatFix(latitude=place[0], longitude=place[1], altitude=place[2])
            fix.status.status = NavSatStatus.STATUS_FIX
            fix.status.service = NavSatStatus.SERVICE_GPS
            self._fix.publish(fill_header(fix, stamp_ns, self.base_frame))

    # --- estimate

    def take_estimate(self, datagram: bytes, arrival_s: float) -> None:
        """Publish a datagram of the estimate's port."""
        packet = self.estimate.decode(datagram, arrival_s)
        if packet is None:
            return
        self._publish_hit(packet)
        self.ready = self.ready or is_ready(packet)
        if has_estimate(packet):
            self._publish_estimate(packet)

    def _publish_estimate(self, packet: Packet) -> None:
        is_frame = packet.type is STATE_FRAME
        try:
            motion = estimated_motion(packet)
            time_s = packet["time"] * 1e-3 if is_frame else _NO_TIME
            stamp_ns = self._stamp(self.estimate, time_s)
        except PacketError as error:
            self.estimate.refused[error.reason] += 1
            return

        home = home_of(packet)
        if home is not None and home != self._home:
            self._home = home
            self._update_start()

        odometry = _odometry(motion, self.base_frame)
        if is_frame:
            horizontal, vertical = packet["accuracy"]
            odometry.pose.covariance[0] = odometry.pose.covariance[7] = horizontal**2
            odometry.pose.covariance[14] = vertical**2
        self._estimate.publish(fill_header(odometry, stamp_ns, self.start_frame))

    # --- both

    def forget_ready(self) -> None:
        """Wait for the estimator again, after a silence."""
        self.ready = False

    def _stamp(self, stream: StateStream, time_s: float) -> int:
        """Return a state's stamp. Raises PacketError `impossible_time`."""
        return self._stamps.stamp_ns(stream.times, self.copter_id, time_s)

    def _publish_hit(self, packet: Packet) -> None:
        target = hit_vehicle(packet)
        if target is None:
            return
        self.last_hit = target
        self.hits += 1
        crash = UeCrash(id=self.copter_id, target_id=target)
        stamp_ns = self._stamps.stamp_ns(FrameTimes(), self.copter_id, _NO_TIME)
        self._crash.publish(fill_header(crash, stamp_ns, WORLD))

    def _update_start(self) -> None:
        if self._origin is None or self._home is None:
            return
        start = vector_ned_to_enu(geodetic_to_ned(self._home, self._origin).tolist())
        if start != self.start:
            self.start = start
            self._on_start()


def _odometry(motion: CopterMotion, child: str) -> Any:
    """Return a message without a header; unknown rates have `UNKNOWN_VARIANCE`."""
    message = Odometry(child_frame_id=child)
    position = message.pose.pose.position
    orientation = message.pose.pose.orientation
    linear = message.twist.twist.linear
    angular = message.twist.twist.angular

    position.x, position.y, position.z = motion.position
    orientation.x, orientation.y, orientation.z, orientation.w = motion.orientation
    linear.x, linear.y, linear.z = motion.velocity
    if motion.rates is not None:
        angular.x, angular.y, angular.z = motion.rates
    else:
        for index in (21, 28, 35):
            message.twist.covariance[index] = UNKNOWN_VARIANCE
    return message
