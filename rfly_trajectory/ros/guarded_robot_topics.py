# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Poses, wishes and safe commands of robots, and what others do. Part of avoidance_node."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import CommandError, FrameError, RflyError, VehicleStatesError
from rfly_common.frames import flu_to_frd, quat_rotate
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import COMMANDS, FLEET_IN, STATE_IN
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_common.ros.velocity_commands import VelocityCommands
from rfly_common.state_sources import IdOwners, StampFilter
from rfly_common.vehicle_states import (
    QUATERNION_NORM_TOLERANCE,
    VehicleStates,
    msg_to_states,
    states_to_enu,
)
from rfly_terrain.ros.plan_msgs import heading_of
from rfly_trajectory.avoidance.avoidance import MAX_VEHICLES, OtherVehicles, upright_cylinders
from rfly_trajectory.avoidance.guarded_robots import GuardedRobots, SafeVelocities
from rfly_trajectory.avoidance.pose_tracks import FARTHEST, FASTEST, PoseTracks
from rfly_trajectory.ros.node_parameters import (
    AvoidanceParameters,
    GuardedRobotParameters,
    OtherVehicleParameters,
    PoseTopicParameters,
)

OFF_GROUND = 1.0
"""Height above the ground, m, from which a vehicle of vehicle_states counts as an aircraft."""


class PoseTopics:
    """Poses of vehicles by Odometry, PoseStamped or /tf -> tracks."""

    def __init__(
        self,
        node: Node,
        vehicles: Sequence[PoseTopicParameters],
        tracks: PoseTracks,
        frames: Frames,
        stamps: StampFilter,
        diagnostics: Diagnostics,
    ) -> None:
        self._node = node
        self._tracks = tracks
        self._frames = frames
        self._stamps = stamps
        self._diagnostics = diagnostics
        self._by_transform = [
            (row, vehicle.base_frame)
            for row, vehicle in enumerate(vehicles)
            if vehicle.message == "tf"
        ]
        types = {"odometry": Odometry, "pose": PoseStamped}
        for row, vehicle in enumerate(vehicles):
            if vehicle.message != "tf":
                callback = partial(self._on_pose, row, vehicle.topic)
                subscription(node, types[vehicle.message], vehicle.topic, callback, STATE_IN)

    def look_up(self) -> None:
        """Take the newest transforms of the vehicles that have no topic, at their own times."""
        now_ns = self._node.get_clock().now().nanoseconds
        for row, frame_id in self._by_transform:
            try:
                newest_ns = self._frames.newest_ns(frame_id)
                frame = self._frames.resolve(frame_id, newest_ns or 0)
            except FrameError:
                continue  # told as a pose that has not come
            quat = frame.quats_to_enu((0.0, 0.0, 0.0, 1.0))
            self._see(row, frame_id, newest_ns or now_ns, frame.points_to_enu(np.zeros(3)), quat)

    def _on_pose(self, row: int, topic: str, message: Any) -> None:
        """Take a pose in any frame that is connected to the world."""
        stamp_ns = stamp_to_ns(message.header.stamp)
        now_ns = self._node.get_clock().now().nanoseconds
        reason = self._stamps.rejection_reason(topic, stamp_ns, now_ns, time.monotonic_ns())
        if reason is not None:
            self._diagnostics.drop(reason, 1, topic, subject=topic)
            return

        is_odometry = isinstance(message, Odometry)
        pose = message.pose.pose if is_odometry else message.pose
        place = np.array([pose.position.x, pose.position.y, pose.position.z])
        q = pose.orientation
        quat = np.array([q.x, q.y, q.z, q.w])
        norm = float(np.sqrt(quat @ quat))
        if not abs(norm - 1.0) <= QUATERNION_NORM_TOLERANCE:
            what = f"{topic}: orientation {quat.tolist()}"
            self._diagnostics.drop("bad_quaternion", 1, what, subject=topic)
            return
        quat = quat / norm

        # a twist is in the body's axes
        velocity: Floats | None = None
        yaw_rate = 0.0
        if is_odometry:
            twist = message.twist.twist
            linear = np.array([twist.linear.x, twist.linear.y, twist.linear.z])
            frd = message.child_frame_id.endswith("_frd")
            velocity = np.asarray(quat_rotate(quat, flu_to_frd(linear) if frd else linear))
            yaw_rate = -twist.angular.z if frd else twist.angular.z

        try:
            frame = self._frames.resolve(message.header.frame_id or "map", stamp_ns)
        except FrameError as error:
            self._diagnostics.drop("unknown_frame", 1, f"{topic}: {error}", subject=topic)
            return
        if velocity is not None:
            velocity = frame.vectors_to_enu(velocity)
        self._see(
            row,
            topic,
            stamp_ns,
            frame.points_to_enu(place),
            frame.quats_to_enu(quat),
            velocity,
            yaw_rate,
        )

    def _see(
        self,
        row: int,
        topic: str,
        stamp_ns: int,
        place: Floats,
        quat: Floats,
        velocity: Floats | None = None,
        yaw_rate: float = 0.0,
    ) -> None:
        now_ns = self._node.get_clock().now().nanoseconds
        try:
            yaw = heading_of(quat) if np.isfinite(quat).all() else float("nan")
            self._tracks.see(row, now_ns, stamp_ns, place, yaw, velocity, yaw_rate)
        except VehicleStatesError as error:
            self._diagnostics.refuse("refused_poses", f"{topic}: {error}", subject=topic)


class CommandTopics:
    """Wished velocities of robots -> robots, and their safe ones."""

    def __init__(
        self,
        node: Node,
        params: AvoidanceParameters,
        robots: Sequence[GuardedRobotParameters],
        guarded: GuardedRobots,
        frames: Frames,
        diagnostics: Diagnostics,
    ) -> None:
        self._node = node
        self._guarded = guarded
        self._diagnostics = diagnostics
        self._stamped = params.stamped_cmd_vel
        self._frames = [robot.base_frame for robot in robots]
        kind = TwistStamped if self._stamped else Twist
        self._out = [publisher(node, kind, robot.cmd_vel_topic, COMMANDS) for robot in robots]
        for row, robot in enumerate(robots):
            VelocityCommands(
                node,
                robot.wish_topic,
                robot.base_frame,
                frames,
                stamped=params.stamped_cmd_vel,
                take=partial(self._on_wish, row, robot.wish_topic),
                refuse=partial(self._refuse, robot.wish_topic),
            )

    def publish(self, safe: SafeVelocities, stamp_ns: int) -> None:
        """Publish the safe velocity of each robot."""
        stamp = ns_to_stamp(stamp_ns)
        for out, frame, velocity, yaw_rate in zip(
            self._out, self._frames, safe.velocity.tolist(), safe.yaw_rate.tolist(), strict=True
        ):
            twist = Twist()
            twist.linear.x, twist.linear.y, twist.linear.z = velocity
            twist.angular.z = yaw_rate
            if not self._stamped:
                out.publish(twist)
                continue
            message = TwistStamped(twist=twist)
            message.header.stamp = stamp
            message.header.frame_id = frame
            out.publish(message)

    def _on_wish(self, row: int, topic: str, message: Twist) -> None:
        linear = message.linear
        now_ns = self._node.get_clock().now().nanoseconds
        try:
            self._guarded.wish(row, now_ns, (linear.x, linear.y, linear.z, message.angular.z))
        except CommandError as error:
            self._refuse(topic, str(error))

    def _refuse(self, topic: str, why: str) -> None:
        self._diagnostics.refuse("refused_wishes", f"{topic} refused: {why}", subject=topic)


class _Seen(NamedTuple):
    """Vehicles of vehicle_states, ENU, in the order of their ids."""

    id: Ints
    vehicle_type: Ints
    position: Floats
    velocity: Floats
    scale: Floats
    stamp_ns: Ints

    def rows(self, keep: Any) -> _Seen:
        return _Seen(*(column[keep] for column in self))


class SeenVehicles:
    """Vehicles of `vehicle_states`, which need not give way, but for those with an id in `own`."""

    def __init__(
        self,
        node: Node,
        params: AvoidanceParameters,
        own: Sequence[int],
        frames: Frames,
        stamps: StampFilter,
        diagnostics: Diagnostics,
    ) -> None:
        from rfly_collision.shapes.vehicle_shapes import load_shapes

        self._node = node
        self._params = params
        self._own = np.array(own, np.int64)
        self._frames = frames
        self._stamps = stamps
        self._owners = IdOwners()
        self._diagnostics = diagnostics
        self._shapes = load_shapes()
        self.clear()
        subscription(node, VehicleStateArray, "vehicle_states", self._on_states, FLEET_IN)
        subscription(node, VehicleStateArray, "removed_vehicles", self._on_removed, FLEET_IN)

    def __len__(self) -> int:
        return len(self._seen.id)

    def clear(self) -> None:
        """Forget all: the clock was set back."""
        no = np.zeros(0, np.int64)
        self._seen = _Seen(no, no, np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)), no)

    def silent(self, now_ns: int, after_s: float) -> Ints:
        """Return the ids of the vehicles that have been silent for this long."""
        return self._seen.id[(now_ns - self._seen.stamp_ns) * 1e-9 > after_s]

    def vehicles(self, now_ns: int, altitude: Callable[[Floats, Floats], Floats]) -> OtherVehicles:
        """Return them as others; `altitude(x, y)` is the ground's, m."""
        age = np.maximum(now_ns - self._seen.stamp_ns, 0) * 1e-9
        self._seen = self._seen.rows(age <= self._params.forget_after)
        self._owners.drop_stale(time.monotonic_ns())

        seen = self._seen
        body = upright_cylinders(self._shapes, seen.vehicle_type, seen.scale)
        low = seen.position[:, 2] - body.below
        flies: Bools = low > altitude(seen.position[:, 0], seen.position[:, 1]) + OFF_GROUND
        ones = np.ones(len(seen.id))
        return OtherVehicles(
            seen.position,
            seen.velocity,
            body.radius,
            body.below,
            np.maximum(body.height - body.below, 0.0),
            flies,  # its kind is not known: what flies may blow downwards
            flies,
            np.maximum(now_ns - seen.stamp_ns, 0) * 1e-9,
            self._params.others_acceleration * ones,
            self._params.others_speed * ones,
        )

    def _on_states(self, message: VehicleStateArray) -> None:
        what = f"vehicle_states of {message.source!r}"
        now_ns = self._node.get_clock().now().nanoseconds
        steady_ns = time.monotonic_ns()
        try:
            states = msg_to_states(message)
            reason = self._stamps.rejection_reason(what, states.stamp_ns, now_ns, steady_ns)
            if reason is not None:
                self._diagnostics.drop(reason, len(states), what, subject="vehicle_states")
                return
            claim = self._owners.claim(states.id, states.source, steady_ns)
            states = states.select(claim.accepted & ~np.isin(states.id, self._own))
            in_map = self._in_map(states, what)
        except RflyError as error:
            text = f"{what}: {error}"
            self._diagnostics.refuse("refused_states", text, subject=message.source)
            return
        for conflict in claim.conflicts:
            self._diagnostics.refuse("other_source", str(conflict), subject=message.source)
        # states are at least as old as the time since their arrival, whatever their stamp says
        self._take(in_map, min(states.stamp_ns or now_ns, now_ns))

    def _in_map(self, states: VehicleStates, what: str) -> VehicleStates:
        """Return the usable vehicles in `map`. Raises FrameError."""
        frame = self._frames.resolve(states.frame_id or "map", states.stamp_ns)
        in_map, dropped = states_to_enu(states, frame.axes, *frame.motion)
        for reason, count in dropped.items():
            self._diagnostics.drop(reason, count, what, subject="vehicle_states")

        near = np.abs(in_map.position).max(axis=1, initial=0.0) <= FARTHEST
        near &= np.abs(in_map.velocity).max(axis=1, initial=0.0) <= FASTEST
        if not near.all():
            self._diagnostics.drop("too_far", int((~near).sum()), what, subject="vehicle_states")
        return in_map.select(near)

    def _take(self, states: VehicleStates, stamp_ns: int) -> None:
        """Store the newest states of vehicles."""
        rest = self._seen.rows(~np.isin(self._seen.id, states.id))
        room = MAX_VEHICLES // 2 - len(rest.id)
        if len(states) > room:
            text = f"more than {MAX_VEHICLES // 2:,} vehicles: the others are not avoided"
            self._diagnostics.drop("too_many", len(states) - room, text, subject="vehicle_states")
            states = states.select(np.arange(len(states)) < room)
        new = _Seen(
            states.id.astype(np.int64),
            states.vehicle_type.astype(np.int64),
            states.position,
            states.velocity.astype(float),
            states.scale.astype(float),
            np.full(len(states), stamp_ns, np.int64),
        )
        both = _Seen(*(np.concatenate(pair) for pair in zip(rest, new, strict=True)))
        self._seen = both.rows(np.argsort(both.id, kind="stable"))

    def _on_removed(self, message: VehicleStateArray) -> None:
        """Forget removed vehicles, except for those that another source publishes."""
        ids = np.unique(np.asarray(message.id, np.int32))
        claim = self._owners.claim(ids, message.source, time.monotonic_ns())
        self._seen = self._seen.rows(~np.isin(self._seen.id, ids[claim.accepted]))


def others_of(
    params: Sequence[OtherVehicleParameters], tracks: PoseTracks, now_ns: int
) -> OtherVehicles:
    """Return the vehicles of the parameter `others` that have been heard."""
    rows = np.flatnonzero(tracks.heard)
    chosen = [params[row] for row in rows.tolist()]

    def column(name: str) -> Floats:
        return np.array([getattr(each, name) for each in chosen], float)

    below = column("below")
    return OtherVehicles(
        tracks.position[rows],
        tracks.velocity[rows],
        column("radius"),
        below,
        np.maximum(column("height") - below, 0.0),
        np.array([each.kind == "multirotor" for each in chosen], bool),
        np.array([each.kind != "ground" for each in chosen], bool),
        tracks.age(now_ns)[rows],
        column("acceleration"),
        column("speed_change"),
    )
