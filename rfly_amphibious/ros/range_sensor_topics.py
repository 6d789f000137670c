# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lidar and camera topics of a vehicle, part of amphibious_sim_node.

Only topics with a subscriber are computed: in lock-step within the tick, else in a separate thread.
Measurements that come too fast for the thread are left out and reported on /diagnostics.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from rfly_suite.msg import Environment, PlacedObjectArray, VehicleStateArray
from sensor_msgs.msg import CameraInfo, Image, LaserScan, PointCloud2, PointField
from std_msgs.msg import Float64
from tf2_msgs.msg import TFMessage

from rfly_amphibious.ros.node_parameters import RangeSensorNodeParameters, SimulationParameters
from rfly_amphibious.sensors.range_sensors import (
    COLOR_CAMERA,
    DEPTH_CAMERA,
    LIDAR,
    Due,
    RangeSensors,
)
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.warm_up import warm_up_solids
from rfly_collision.ros.contact_msgs import msg_to_placed
from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_common.errors import ConfigError, PlacementError, RflyError, VehicleStatesError
from rfly_common.frames import QUAT_FLU_OPTICAL_XYZW, euler_to_quat
from rfly_common.ros.diagnostics import OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.frame_lookup import transform_to_msg
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, FLEET_IN, LATCHED, STATE_OUT, TF, TF_STATIC_OUT
from rfly_common.ros.sensor_messages import camera_info, image_to_msg
from rfly_common.ros.stamps import fill_header
from rfly_common.threads.loop_thread import LoopThread
from rfly_common.vehicle_states import msg_to_states, states_to_enu
from rfly_sensing.lidar import POINT_WORDS, LidarSweep
from rfly_sensing.neighbours import Neighbours
from rfly_sensing.range_sensor_parameters import LidarParameters
from rfly_sensing.scene_rays import SceneRays
from rfly_sensing.warm_up import warm_up as warm_up_rays
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.imagery.imagery import Imagery
from rfly_terrain.world.weather import Weather

BIG_ENDIAN = sys.byteorder == "big"
_FLOAT = PointField.FLOAT32
_RING = PointField.UINT16
_FIELDS = (
    ("x", 0, _FLOAT),
    ("y", 4, _FLOAT),
    ("z", 8, _FLOAT),
    ("intensity", 12, _FLOAT),
    ("ring", 18 if BIG_ENDIAN else 16, _RING),
    ("time", 20, _FLOAT),
)


def sweep_to_cloud(sweep: LidarSweep, frame_id: str, epoch_ns: int = 0) -> PointCloud2:
    """Return all returns in the order of arrival, stamped with the sweep's start after the epoch.

    The fields are x y z intensity ring time, with the names and types of Velodyne's driver, which
    LOAM-type packages read; time is s since the stamp.
    """
    points = sweep.points()
    message = PointCloud2(
        height=1,
        width=len(points),
        fields=[
            PointField(name=name, offset=offset, datatype=kind, count=1)
            for name, offset, kind in _FIELDS
        ],
        is_bigendian=BIG_ENDIAN,
        point_step=4 * POINT_WORDS,
        row_step=4 * POINT_WORDS * len(points),
        is_dense=True,
        data=flat("B", points.view(np.uint8)),
    )
    _set_header(message, sweep, frame_id, epoch_ns)
    return message


def sweep_to_scan(
    sweep: LidarSweep, ring: int, lidar: LidarParameters, frame_id: str, epoch_ns: int = 0
) -> LaserScan:
    """Return one ring, ray by ray in the order of sending; a clockwise head has a falling angle.

    No return is inf, too near -inf, lost NaN (REP 117).
    """
    row = int(np.flatnonzero(sweep.rings == ring)[0])
    message = LaserScan(
        angle_min=float(sweep.azimuths[0]),
        angle_max=float(sweep.azimuths[-1]),
        angle_increment=(-2.0 if lidar.clockwise else 2.0) * np.pi / lidar.columns,
        time_increment=1.0 / (lidar.rate * lidar.columns),
        scan_time=1.0 / lidar.rate,
        range_min=lidar.min_range,
        range_max=lidar.max_range,
        ranges=flat("f", sweep.ranges[:, row]),
        intensities=flat("f", sweep.intensity[:, row]),
    )
    _set_header(message, sweep, frame_id, epoch_ns)
    return message


def _set_header(message: Any, sweep: LidarSweep, frame_id: str, epoch_ns: int) -> None:
    fill_header(message, epoch_ns + round(sweep.start * 1e9), frame_id)


WORLDS = {"": "enu", "map": "enu", "map_ned": "ned"}
GIMBAL_RATE = 30.0
"""Rate of camera_link's transforms, Hz."""
ORIGIN = (0.0, 0.0, 0.0)
FAR = 200.0
"""Distance beyond which a vehicle can't be run into before its next state, m."""


class RangeSensorTopics:
    """Publishers of lidar/points, scan, camera/… and the transforms of their frames.

    The topics are below `vehicle`. Call `restart` when the simulation begins or jumps, `follow`
    after each tick, and `close` before the node goes. The class declares the parameters of the
    weather (by default `weather`; the topic environment changes them) and `shapes`. `own_id` is the
    vehicle's own id in vehicle_states.
    """

    def __init__(
        self,
        node: Node,
        parameters: SensorParameters,
        *,
        vehicle: str,
        own_id: int,
        weather: Weather,
        seed: int | Sequence[int] = 0,
        noise: bool = True,
        lock_step: bool = False,
    ) -> None:
        self._node = node
        self._lock_step = lock_step
        self._terrain: HeightMap | None = None
        self._sensors = RangeSensors(parameters, seed=seed, noise=noise)
        self._prefix = f"{vehicle}/" if vehicle else ""

        defaults = dataclasses.asdict(weather)
        if math.isinf(weather.visibility):
            defaults["visibility"] = 0.0
        own = declare_parameters(node, RangeSensorNodeParameters, defaults=defaults)
        self._picture = own.imagery
        self._imagery: Imagery | None = None
        self._imagery_problem = ""

        # other vehicles
        self._own_id = own_id
        self.neighbours = Neighbours(load_shapes(own.shapes), own_id)
        self._solid = self._publishes_clock = self._has_warmed_up = False
        self._shows_gimbal = True
        self._epoch_ns = 0
        self._time = 0.0
        self._place = np.zeros(3)

        # publishers
        self._publishers: dict[str, Any] = {}
        self._make_publishers(parameters)
        self._tf = publisher(node, TFMessage, "/tf", TF)
        self._tf_static = publisher(node, TFMessage, "/tf_static", TF_STATIC_OUT)
        self._gimbal_at = -math.inf
        self._publish_optical_frame()

        self._diagnostics = Diagnostics(
            node, "lidar and cameras", vehicle, self._update_diagnostics, check_peers=False
        )
        self._diagnostics.counters = dict.fromkeys(_REFUSALS, 0)
        self._made = dict.fromkeys(self._sensors.periods, 0)
        self._left_out = dict.fromkeys(self._sensors.periods, 0)
        self._left_out_before = dict(self._left_out)

        subscription(node, Float64, "gimbal/cmd", self._on_gimbal_cmd, COMMANDS)
        subscription(node, Environment, "environment", self._on_environment, COMMANDS)
        subscription(node, VehicleStateArray, "vehicle_states", self._on_vehicle_states, FLEET_IN)
        subscription(node, PlacedObjectArray, "placed_objects", self._on_placed_objects, LATCHED)

        # measuring thread
        warm_up_rays()
        self._waiting: dict[str, tuple[Due, SceneRays, Weather]] = {}
        self._wake = threading.Condition()
        self._ending = False
        self._thread: LoopThread | None = None
        if not lock_step:
            self._thread = LoopThread(self._work, "rfly-range-sensors")
            self._thread.start()

    def _make_publishers(self, sensors: SensorParameters) -> None:
        for sensor, topics in _TOPICS.items():
            for topic, msg_type in topics.items():
                if getattr(sensors, "scan" if topic == "scan" else sensor) is not None:
                    # reliable: of messages of a megabyte, best effort loses many; subscriptions of
                    # both kinds match
                    self._publishers[topic] = publisher(self._node, msg_type, topic, STATE_OUT)

    def _publish_optical_frame(self) -> None:
        link = f"{self._prefix}camera_link"
        child = f"{self._prefix}camera_optical"
        optical = transform_to_msg(link, child, ORIGIN, QUAT_FLU_OPTICAL_XYZW, 0)
        self._tf_static.publish(TFMessage(transforms=[optical]))

    # --- the simulation

    def begin(self, simulation: Simulation, settings: SimulationParameters) -> None:
        """Use this simulation's ground, and put other vehicles in its way if they are solid."""
        self._terrain = simulation.model.terrain
        self._imagery = self._opened_imagery()
        self._solid = settings.other_vehicles
        self._shows_gimbal = settings.gimbal_state != "joint_states"
        self._publishes_clock = settings.publish_clock
        if self._solid:
            simulation.model.others = partial(self.neighbours.near, self._terrain)

    def _opened_imagery(self) -> Imagery | None:
        """Return the picture of the ground, if there is one for this map."""
        self._imagery_problem = ""
        if not self._picture or self._terrain is None:
            return None
        try:
            return Imagery.open(self._picture, self._terrain)
        except RflyError as error:
            self._tell_imagery_problem(str(error))
            return None

    def _tell_imagery_problem(self, problem: str) -> None:
        """Log once that the ground lacks its picture, and keep the reason for the diagnostics.

        An empty one: it can be read again.
        """
        changed = problem != self._imagery_problem
        self._imagery_problem = problem
        if changed and problem:
            self._node.get_logger().warning(f"cameras are without a picture: {problem}")

    def restart(self, simulation: Simulation, epoch_ns: int) -> None:
        """Start again: the simulation begins, or the vehicle is elsewhere at once.

        `epoch_ns` is the stamp of simulation time 0.
        """
        state = simulation.state
        self._epoch_ns = epoch_ns
        self._time = simulation.time
        self._place = state.position.copy()
        self._gimbal_at = -math.inf
        self.neighbours.solid = set()

        with self._wake:
            self._waiting.clear()
        self._sensors.restart(simulation.time, state.position, state.orientation)

    def follow(self, simulation: Simulation) -> None:
        """Measure what has become due within a tick."""
        times, x = simulation.step_states
        due = self._sensors.advance(
            times,
            x[:, state_layout.POSITION : state_layout.POSITION + 3],
            x[:, state_layout.QUATERNION_XYZW],
        )

        self._time = float(times[-1])
        self._place = x[-1, state_layout.POSITION : state_layout.POSITION + 3].copy()
        if self._time - self._gimbal_at >= 1.0 / GIMBAL_RATE - 1e-9:
            self._gimbal_at = self._time
            self._publish_gimbal(self._time, self._sensors.gimbal.pitch)

        # due sensors with subscribers
        wanted = [
            measurement for measurement in due if self._is_heard(*_TOPICS[measurement.sensor])
        ]
        if not wanted:
            return

        clock_ahead = simulation.model.clock_ahead
        bodies = self.neighbours.bodies(self._terrain, time.monotonic_ns(), self._time, clock_ahead)
        scene = SceneRays(self._terrain, bodies, self._imagery)
        weather = self._weather()

        for measurement in wanted:
            if self._lock_step:
                self._measure(measurement, scene, weather)
                continue
            with self._wake:
                if measurement.sensor in self._waiting:
                    self._left_out[measurement.sensor] += 1
                self._waiting[measurement.sensor] = (measurement, scene, weather)
                self._wake.notify()

    def gimbal_at(self, time: float) -> tuple[float, float]:
        """Return pitch, rad, and rate, rad/s, of the gimbal at a time, s, since the last tick."""
        return self._sensors.gimbal_at(time)

    def close(self) -> None:
        """End the thread; nothing is published after that."""
        with self._wake:
            self._ending = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    # --- measuring

    def _is_heard(self, *topics: str) -> bool:
        return any(
            t in self._publishers and self._publishers[t].get_subscription_count() for t in topics
        )

    def _weather(self) -> Weather:
        return Weather.from_values(*(self._node.get_parameter(name).value for name in _WEATHER))

    def _work(self) -> bool:
        """Measure the earliest of what waits; return False at the end."""
        with self._wake:
            while not (self._waiting or self._ending):
                self._wake.wait()
            if self._ending:
                return False
            name = min(self._waiting, key=lambda sensor: self._waiting[sensor][0].time)
            job = self._waiting.pop(name)
        self._measure(*job)
        return True

    def _measure(self, due: Due, scene: SceneRays, weather: Weather) -> None:
        if due.sensor == LIDAR:
            self._lidar(due, scene, weather)
        else:
            self._images(due, scene, weather)
        self._made[due.sensor] += 1

    def _lidar(self, due: Due, scene: SceneRays, weather: Weather) -> None:
        sensors = self._sensors.parameters
        frame = self._prefix + "lidar_link"
        assert sensors.lidar is not None
        ring = None if sensors.scan is None else sensors.scan.ring(sensors.lidar)
        wants_cloud = self._is_heard("lidar/points")
        rings = None if wants_cloud or ring is None else [ring]
        sweep = self._sensors.sweep(due, scene, weather, rings)

        if wants_cloud:
            self._publishers["lidar/points"].publish(sweep_to_cloud(sweep, frame, self._epoch_ns))
        if ring is not None and self._is_heard("scan"):
            self._publishers["scan"].publish(
                sweep_to_scan(sweep, ring, sensors.lidar, frame, self._epoch_ns)
            )

    def _images(self, due: Due, scene: SceneRays, weather: Weather) -> None:
        sensors = self._sensors
        frame = self._prefix + "camera_optical"
        is_depth = due.sensor == DEPTH_CAMERA
        camera = sensors.depth_camera if is_depth else sensors.color_camera
        assert camera is not None
        images = (sensors.depth_images if is_depth else sensors.color_images)(due, scene, weather)

        stamp_ns = self._epoch_ns + round(due.time * 1e9)
        self._publish_gimbal(due.time, due.pitch)
        for kind, (pixels, encoding) in _IMAGES[due.sensor].items():
            if self._is_heard(*_image_topics(kind)):
                image = image_to_msg(getattr(images, pixels), encoding, stamp_ns, frame)
                self._publishers[f"camera/{kind}/image_raw"].publish(image)
                self._publishers[f"camera/{kind}/camera_info"].publish(
                    camera_info(
                        camera.pinhole.matrix,
                        camera.pinhole.width,
                        camera.pinhole.height,
                        stamp_ns,
                        frame,
                    )
                )

    def _publish_gimbal(self, when: float, pitch: float) -> None:
        if not self._shows_gimbal:
            return
        link = transform_to_msg(
            self._prefix + "base_link",
            self._prefix + "camera_link",
            self._sensors.gimbal.parameters.position,
            euler_to_quat((0.0, pitch, 0.0)),
            self._epoch_ns + round(when * 1e9),
        )
        self._tf.publish(TFMessage(transforms=[link]))

    # --- subscriptions

    def _on_gimbal_cmd(self, message: Float64) -> None:
        try:
            self._sensors.gimbal.look(message.data)
        except ValueError as error:
            self._diagnostics.refuse("refused_gimbal", str(error))

    def _on_environment(self, message: Environment) -> None:
        weather = {name: getattr(message, name) for name in _WEATHER}
        try:
            Weather.from_values(**weather)
        except ConfigError as error:
            self._diagnostics.refuse("refused_environment", f"environment: {error}")
            return

        result = self._node.set_parameters_atomically(
            [RosParameter(name, value=value) for name, value in weather.items()]
        )
        if not result.successful:
            self._diagnostics.refuse("refused_environment", f"environment: {result.reason}")

    def _on_vehicle_states(self, message: VehicleStateArray) -> None:
        # a fleet's states cost time: they are read only for a subscriber or a collision
        if message.id.tolist() == [self._own_id] or not (
            self._solid or self._is_heard(*self._publishers)
        ):
            return

        if self._solid and not self._has_warmed_up:
            self._has_warmed_up = True
            warm_up_solids()  # before the first collision

        axes = WORLDS.get(message.header.frame_id)
        try:
            if axes is None:
                raise VehicleStatesError(
                    f"frame {message.header.frame_id!r}, expected map or map_ned"
                )
            states = msg_to_states(message)
            if not self._is_heard(*self._publishers):
                here = self._place[[1, 0] if axes == "ned" else [0, 1]]
                states = states.select(~(np.abs(states.position[:, :2] - here).max(axis=1) > FAR))
            states, dropped = states_to_enu(states, axes)
        except VehicleStatesError as error:
            text = f"vehicle_states of {message.source!r}: {error}"
            self._diagnostics.refuse("refused_states", text)
            return

        now_ns = (
            round(self._time * 1e9)
            if self._publishes_clock
            else self._node.get_clock().now().nanoseconds
        )
        age = (now_ns - states.stamp_ns) * 1e-9 if states.stamp_ns else 0.0
        dropped = dropped | self.neighbours.take(states, self._time, time.monotonic_ns(), age)
        for reason, count in dropped.items():
            text = f"vehicle_states of {message.source!r}: {count} not seen, {reason}"
            self._diagnostics.refuse(reason, text, subject=message.source, number=count)

    def _on_placed_objects(self, message: PlacedObjectArray) -> None:
        axes = WORLDS.get(message.header.frame_id)
        try:
            if axes is None:
                raise PlacementError(
                    f"placed_objects: frame {message.header.frame_id!r}, expected map or map_ned"
                )
            self.neighbours.set_objects(msg_to_placed(message, axes, seen=True))
        except PlacementError as error:
            self._diagnostics.refuse("refused_objects", str(error))

    def _update_diagnostics(self) -> None:
        late = {name: count - self._left_out_before[name] for name, count in self._left_out.items()}
        self._left_out_before = dict(self._left_out)
        behind = [f"{name}: {count}" for name, count in late.items() if count]
        numbers = {f"{name}_made": count for name, count in self._made.items()}
        numbers |= {f"{name}_left_out": count for name, count in self._left_out.items()}
        text = f"rates that can't be held, left out in the last second: {', '.join(behind)}"

        # cameras without their picture of the ground
        if self._imagery is not None:
            self._tell_imagery_problem(self._imagery.problem)
        problem = self._imagery_problem

        self._diagnostics.set_first(
            [
                (behind, WARN, text),
                (problem, WARN, f"cameras show heights, not the picture of the ground: {problem}"),
                (True, OK, "computes what is subscribed to"),
            ],
            **numbers,
        )


_WEATHER = ("light", "visibility", "cloud_cover", "rain_rate")
_REFUSALS = ("refused_states", "refused_objects", "refused_gimbal", "refused_environment")


def _image_topics(*kinds: str) -> dict[str, Any]:
    types = {"image_raw": Image, "camera_info": CameraInfo}
    return {f"camera/{kind}/{what}": msg_type for kind in kinds for what, msg_type in types.items()}


_IMAGES = {
    DEPTH_CAMERA: {"depth": ("depth", "32FC1"), "ir": ("infrared", "mono16")},
    COLOR_CAMERA: {
        "color": ("color", "rgb8"),
        "semantic": ("semantic", "mono8"),
        "instance": ("instance", "32SC1"),
    },
}
"""Fields of a camera's images, and their encodings."""
_TOPICS = {
    LIDAR: {"lidar/points": PointCloud2, "scan": LaserScan},
    **{camera: _image_topics(*kinds) for camera, kinds in _IMAGES.items()},
}
