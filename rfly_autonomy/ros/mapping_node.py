# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mapping_node: voxels and heights from lidar clouds.

It is a thin shell around OctomapGrid and ElevationMap. Each point of a cloud has its own time, and
starts where the sensor was then, between two poses of `odometry/global`. A cloud waits for a pose
after its last point.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from grid_map_msgs.msg import GridMap
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from octomap_msgs.msg import Octomap
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import PointCloud2
from std_srvs.srv import Trigger

from rfly_autonomy.mapping.elevation_map import ElevationMap, ElevationParameters
from rfly_autonomy.mapping.octomap_grid import MAX_RAYS, OctomapGrid, warm_up
from rfly_autonomy.mapping.octomap_parameters import OctomapParameters
from rfly_autonomy.mapping.pose_track import PoseTrack
from rfly_autonomy.ros.estimate_msgs import is_unknown
from rfly_autonomy.ros.node_parameters import (
    MappingParameters,
)
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import FrameError, RflyError, SensorMessageError
from rfly_common.frames import quat_rotate
from rfly_common.ros.diagnostics import OK, STALE, Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer, subscription
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.process_memory import give_back_large_arrays, largest_memory
from rfly_common.ros.qos import LATCHED, SENSORS, sensor_qos
from rfly_common.ros.sensor_messages import read_fields
from rfly_common.ros.stamps import fill_header, stamp_to_ns
from rfly_common.transform_buffer import Transform
from rfly_terrain.ros.grid_layers_msgs import buffers_to_msg
from rfly_terrain.ros.terrain_msgs import cloud_to_msg

_TIMES = {"time": 1e9, "t": 1.0}
"""Time fields and their units, ns: Velodyne's seconds, Ouster's nanoseconds."""
LONGEST_S = 10.0
"""Largest time between a point and its cloud's stamp, s."""


class LidarPoints(NamedTuple):
    """Points in the sensor's own axes at the time of each."""

    points: Floats
    """Points, (n, 3), m, all finite."""
    times_ns: Ints
    """Times, (n,), ns."""


def msg_to_points(message: PointCloud2) -> LidarPoints:
    """Return x, y, z and the time of each point: the stamp and its field `time` (s) or `t` (ns).

    Without such a field all points have the stamp's time. Points that are not finite (no return)
    are left out. Raise SensorMessageError for a cloud that can't be read.
    """
    count = message.width * message.height
    if count > MAX_RAYS:
        raise SensorMessageError(f"the cloud has {count} points, allowed: up to {MAX_RAYS}")

    fields = {field.name for field in message.fields}
    timed = next((name for name in _TIMES if name in fields), None)
    table = read_fields(message, [*"xyz", *([timed] if timed else [])])

    points = np.stack([table[name].astype(np.float64) for name in "xyz"], axis=-1)
    since = table[timed].astype(np.float64) * _TIMES[timed] if timed else np.zeros(count)
    finite = np.isfinite(points).all(axis=1)
    if not (np.abs(since[finite]) <= LONGEST_S * 1e9).all():
        raise SensorMessageError(
            f"the cloud's field {timed} is more than {LONGEST_S:g} s off its stamp, or no number"
        )
    return LidarPoints(
        points[finite], stamp_to_ns(message.header.stamp) + np.round(since[finite]).astype(np.int64)
    )


def grid_to_octomap(grid: OctomapGrid, frame_id: str, stamp_ns: int) -> Octomap:
    """Return free and occupied voxels, as `octomap_msgs::binaryMsgToMap` and RViz read them."""
    message = Octomap(binary=True, id="OcTree", resolution=grid.parameters.resolution)
    message.data = flat("b", np.frombuffer(grid.binary_data(), np.int8))
    return fill_header(message, stamp_ns, frame_id)


def voxels_to_cloud(centres: NDArray[Any], frame_id: str, stamp_ns: int) -> PointCloud2:
    """Return voxel centres, (n, 3), m, as a cloud of x, y, z in float32."""
    return cloud_to_msg(np.ascontiguousarray(centres[None], np.float32), frame_id, stamp_ns)


MOST_WAITING = 5
"""Most clouds that wait for poses; then the oldest is dropped."""
SILENCE_S = 2.0
# processing a cloud takes a while, in which poses keep coming
_POSES = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)


class _Cloud(NamedTuple):
    """Cloud of a frame that waits for poses."""

    frame_id: str
    points: LidarPoints


class ElevationTopic:
    """Elevation map, published when it has changed and has a subscriber. Raise ConfigError."""

    def __init__(self, node: Node, enabled: bool) -> None:
        parameters = declare_parameters(
            node, ElevationParameters, prefix=ElevationParameters.PREFIX
        )
        self._map: ElevationMap | None = None
        if enabled:
            self._map = ElevationMap(parameters)
            self._publisher = publisher(node, GridMap, "elevation_map", LATCHED)
        self._changed = False
        self._stamp_ns = 0

    @property
    def known(self) -> int:
        """Number of known cells."""
        return self._map.known if self._map is not None else 0

    def insert(self, origins: Floats, ends: Floats, stamp_ns: int) -> None:
        """Insert points (n, 3) of one cloud in the world, seen from (n, 3), m."""
        if self._map is not None:
            self._map.insert(origins, ends, stamp_ns * 1e-9)
            self._changed = True
            self._stamp_ns = stamp_ns

    def clear(self) -> None:
        """Forget everything."""
        if self._map is not None:
            self._map.clear()
            self._changed = True

    def publish(self, frame_id: str) -> None:
        """Publish the map, if it is new."""
        if self._map is None or not self._changed or not self._publisher.get_subscription_count():
            return
        buffers = self._map.buffers()
        if buffers is not None:
            layers = {"elevation": buffers.elevation, "variance": buffers.variance}
            side = self._map.parameters.resolution
            message = buffers_to_msg(
                layers, side, buffers.corner, buffers.start, frame_id, self._stamp_ns
            )
            self._publisher.publish(message)
            self._changed = False


class MappingNode(Node):
    """Node that maps the surroundings of a vehicle.

    It turns `lidar/points` and `odometry/global` into `octomap`, `occupied_voxels` and
    `elevation_map`. Its services are `~/save` and `~/reset`.
    """

    def __init__(self) -> None:
        super().__init__("mapping_node")
        give_back_large_arrays()
        self._grid = OctomapGrid(declare_parameters(self, OctomapParameters))

        settings = declare_parameters(self, MappingParameters)
        self._elevation = ElevationTopic(self, settings.elevation_map)
        self._keeps_voxels = settings.octomap
        self._min_range = settings.min_range
        self._file = settings.file
        self._period_ns = round(1e9 / settings.rate) if settings.rate else 0

        self._frames = Frames(self)
        self._track = PoseTrack(settings.max_pose_gap)
        self._base = ""
        self._waiting: deque[_Cloud] = deque()
        self._last_taken_ns: int | None = None
        self._changed = {"octomap": False, "occupied_voxels": False}
        self._stamp_ns = 0
        self._heard = {"lidar/points": -np.inf, "odometry/global": -np.inf}
        self._last_warning = ""

        self._diagnostics = Diagnostics(self, "mapping", "", self._update_diagnostics)
        self._octomap = publisher(self, Octomap, "octomap", LATCHED)
        self._voxels = publisher(self, PointCloud2, "occupied_voxels", LATCHED)
        qos = sensor_qos(True) if settings.lock_step else SENSORS
        subscription(self, PointCloud2, "lidar/points", self._on_lidar_points, qos)
        subscription(self, Odometry, "odometry/global", self._on_odometry, _POSES)

        self.create_service(Trigger, "~/save", self._save)
        self.create_service(Trigger, "~/reset", self._reset)
        # a steady clock, so that late subscribers get the map of a paused simulation too
        steady_timer(self, 1.0 / settings.publish_rate, self._publish)

        self._update_diagnostics()
        warm_up()
        self.get_logger().info("waiting for lidar/points and odometry/global")

    # --- subscriptions

    def _on_odometry(self, message: Odometry) -> None:
        if is_unknown(message):
            return
        self._heard["odometry/global"] = time.monotonic()

        stamp_ns = stamp_to_ns(message.header.stamp)
        pose = message.pose.pose
        position = np.array((pose.position.x, pose.position.y, pose.position.z))
        quaternion = np.array(
            (pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w)
        )

        norm = float(np.linalg.norm(quaternion))
        if not np.isfinite(position).all() or not abs(norm - 1.0) < 1e-2:
            self._refuse(
                "refused_poses",
                f"odometry/global: {position.tolist()}, {quaternion.tolist()} is no pose",
            )
            return

        newest = self._track.newest_ns
        # the clock jumped back: a new run has begun
        if newest is not None and stamp_ns < newest - 1_000_000_000:
            self._track.clear()
            self._waiting.clear()
            self._last_taken_ns = None

        try:
            frame = self._frames.resolve(message.header.frame_id, stamp_ns)
            if frame.axes != "enu":
                raise FrameError(
                    f"frame {message.header.frame_id!r} is a NED frame, expected an ENU one"
                )
        except FrameError as error:
            self._refuse("refused_poses", f"odometry/global: {error}")
            return

        placed = frame.transform @ Transform(position, quaternion / norm)
        self._base = message.child_frame_id
        self._track.add(stamp_ns, placed.translation, placed.quat_xyzw)
        self._insert_waiting()

    def _on_lidar_points(self, message: PointCloud2) -> None:
        self._heard["lidar/points"] = time.monotonic()
        stamp_ns = stamp_to_ns(message.header.stamp)
        last = self._last_taken_ns
        # half a sweep of tolerance, as stamps are rounded
        if (
            last is not None
            and self._period_ns
            and last <= stamp_ns < last + round(0.99 * self._period_ns)
        ):
            self._diagnostics.count("skipped_clouds")
            return

        try:
            points = msg_to_points(message)
        except RflyError as error:
            self._refuse("refused_clouds", f"lidar/points: {error}")
            return

        self._last_taken_ns = stamp_ns
        if len(points.points):
            if len(self._waiting) == MOST_WAITING:
                self._waiting.popleft()
                self._diagnostics.count("dropped_clouds")
            self._waiting.append(_Cloud(message.header.frame_id, points))
        self._insert_waiting()

    def _refuse(self, counter: str, text: str) -> None:
        self._last_warning = text
        self._diagnostics.refuse(counter, text)

    # --- the map

    def _insert_waiting(self) -> None:
        """Insert all clouds whose last point is not younger than the newest pose."""
        newest = self._track.newest_ns
        while (
            newest is not None
            and self._waiting
            and int(self._waiting[0].points.times_ns.max()) <= newest
        ):
            cloud = self._waiting.popleft()
            try:
                self._insert(cloud)
            except RflyError as error:
                self._refuse("lost_clouds", f"lidar/points: {error}")

    def _insert(self, cloud: _Cloud) -> None:
        points, times_ns = cloud.points
        mount = self._frames.between(self._base, cloud.frame_id)

        if self._min_range:
            far = np.linalg.norm(points, axis=1) >= self._min_range
            points = points[far]
            times_ns = times_ns[far]

        # origin and end of each ray
        moments, moment_of_point = np.unique(times_ns, return_inverse=True)
        position, rotation = self._track.at(moments)
        start = position + quat_rotate(rotation, mount.translation)
        placed = quat_rotate(mount.quat_xyzw, points) + mount.translation
        begin = start[moment_of_point]
        end = position[moment_of_point] + quat_rotate(rotation[moment_of_point], placed)

        before_ns = self._stamp_ns
        if len(moments):
            self._stamp_ns = int(moments[-1])
        self._elevation.insert(begin, end, self._stamp_ns)

        if self._keeps_voxels:
            forgotten = self._grid.age((self._stamp_ns - before_ns) / 1e9) if before_ns else 0
            inserted = self._grid.insert(begin, end)
            self._diagnostics.count("forgotten_voxels", forgotten)
            self._diagnostics.count("rays_left_out", inserted.left_out)
            self._diagnostics.count("dropped_voxels", inserted.dropped)
            self._changed = dict.fromkeys(self._changed, True)

        self._diagnostics.count("clouds")
        self._diagnostics.count("rays", len(points))

    def _publish(self) -> None:
        frame_id = self._frames.enu_frames[0]
        self._elevation.publish(frame_id)
        if self._changed["octomap"] and self._octomap.get_subscription_count():
            self._octomap.publish(grid_to_octomap(self._grid, frame_id, self._stamp_ns))
            self._changed["octomap"] = False
        if self._changed["occupied_voxels"] and self._voxels.get_subscription_count():
            self._voxels.publish(voxels_to_cloud(self._grid.voxels(), frame_id, self._stamp_ns))
            self._changed["occupied_voxels"] = False

    def _save(self, _request: Any, response: Any) -> Any:
        file = self._file
        try:
            if not self._keeps_voxels:
                raise RflyError("there are no voxels to save: the parameter octomap is false")
            if not file:
                raise RflyError(
                    "the parameter file is empty: start the node with the name of a .bt file"
                )
            self._grid.save(file)
        except OSError as error:
            response.message = f"{file}: {error.strerror}"
        except RflyError as error:
            response.message = str(error)
        else:
            response.success = True
            response.message = f"{len(self._grid)} voxels in {file}"

        if response.success:
            self.get_logger().info(f"saved {response.message}")
        else:
            self.get_logger().warning(f"not saved: {response.message}")
        return response

    def _reset(self, _request: Any, response: Any) -> Any:
        self._grid.clear()
        self._elevation.clear()
        self._waiting.clear()
        self._last_taken_ns = None
        self._changed = dict.fromkeys(self._changed, True)
        response.success = True
        response.message = "the map is empty"
        self._update_diagnostics()
        return response

    def _update_diagnostics(self) -> None:
        now = time.monotonic()
        silent = [topic for topic, heard in self._heard.items() if now - heard > SILENCE_S]
        newest = self._track.newest_ns
        pose_time = "none" if newest is None else f"{newest / 1e9:.3f}"

        self._diagnostics.set_first(
            [
                (silent, STALE, f"no {', no '.join(silent)}"),
                (True, OK, "mapping"),
            ],
            voxels=len(self._grid),
            voxels_mb=f"{self._grid.size_bytes / 1e6:.0f}",
            largest_memory_mb=f"{largest_memory() / 1e6:.0f}",
            elevation_cells=self._elevation.known,
            waiting_clouds=len(self._waiting),
            newest_pose_s=pose_time,
            last_trouble=self._last_warning,
        )
