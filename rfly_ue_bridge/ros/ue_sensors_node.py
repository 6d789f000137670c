# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node that requests RflySim3D's cameras and lidars and publishes what they send.

Theory of operation. One thread reads all ports and joins fragments; each sensor has a thread that
decodes and publishes. The executor's thread requests sensors, again while they are silent, as
RflySim3D may start later, and a map change stops them. It also serves `~/set_sensor` and publishes
transforms.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rfly_suite.srv import SetSensor
from sensor_msgs.msg import Imu
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from rfly_common.config.checks import finite_array, unit_quaternion
from rfly_common.errors import ConfigError, FeedbackError, FrameError, PacketError
from rfly_common.frames import QUAT_FLU_OPTICAL_XYZW
from rfly_common.ros.diagnostics import OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer, subscription
from rfly_common.ros.frame_lookup import Frames, frame_prefix, transform_to_msg
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.process_memory import keep_freed_arrays
from rfly_common.ros.qos import COMMANDS, STATE_OUT, TF, TF_STATIC_OUT
from rfly_common.ros.stamps import fill_header
from rfly_common.sockets.udp_sockets import ipv4
from rfly_common.transform_buffer import WORLD
from rfly_ue_bridge.codec.addresses import COPTER_SIM_PORT, IMU_PORT
from rfly_ue_bridge.codec.commands import MAP_CHANGE_SECONDS, changes_map
from rfly_ue_bridge.codec.coptersim import IMU_DATA, encode_imu_request
from rfly_ue_bridge.codec.sensor_payloads import Content, sensor_type
from rfly_ue_bridge.codec.sensor_requests import (
    PARAMETERS,
    Mount,
    RequestLayout,
    VisionSensor,
    encode_request,
)
from rfly_ue_bridge.ros.node_parameters import SensorRequestParameters, SensorsParameters
from rfly_ue_bridge.ros.sensor_frame_msgs import imu_to_msg
from rfly_ue_bridge.ros.sensor_frame_topics import SensorFrames, SensorFrameTopics
from rfly_ue_bridge.ros.simulation_stamps import SimulationStamps
from rfly_ue_bridge.sensors.frame_times import FrameTimes
from rfly_ue_bridge.sensors.mounting import mount_pose, with_mount_pose
from rfly_ue_bridge.sensors.vision_config import VisionConfig, to_own_address, with_address
from rfly_ue_bridge.sockets.sensor_receiver import BUFFER_BYTES, Handler, SensorReceiver
from rfly_ue_bridge.sockets.udp_sender import UdpSender, answer_address, local_address_towards

CHECK_PERIOD_S = 0.25
"""Period in which silent sensors are looked for, s."""
LEVEL_RATE = 30.0
"""Rate of the transforms of vehicles' level frames, Hz."""
ORIGIN = (0.0, 0.0, 0.0)


class UeSensorsNode(Node):
    """Node for requests, transforms and the service; `SensorFrameTopics` publish the data."""

    def __init__(self) -> None:
        super().__init__("ue_sensors_node")
        keep_freed_arrays()
        frames = ("base_frame", "bottom_frame", "frame_prefix")
        prefix = frame_prefix(self)
        defaults = {name: prefix + getattr(SensorsParameters, name) for name in frames}
        self._params = declare_parameters(self, SensorsParameters, defaults=defaults)
        self._frames = Frames(self, listen=False)
        self._layout = RequestLayout(int(self._params.layout))
        self._sender = UdpSender(self._params.host, self._params.port + self._params.window)
        self._stamps = SimulationStamps(self, self._params.stamp)
        self._times: dict[int, FrameTimes] = {}

        self._topics = self._make_topics()
        self._imus = self._make_imus()
        self._receiver = self._listen()
        for port, topics in self._topics.items():
            topics.dropped = partial(self._receiver.dropped_at, port)

        self._tf_static = publisher(self, TFMessage, "/tf_static", TF_STATIC_OUT)
        self._tf = publisher(self, TFMessage, "/tf", TF)
        self._publish_static_frames()
        self._level_vehicles = {
            topics.sensor.target
            for topics in self._topics.values()
            if topics.sensor.mount == Mount.LEVEL
        }
        if self._level_vehicles:
            self._frames.listen()
            steady_timer(self, 1.0 / LEVEL_RATE, self._publish_level_frames)

        self._requested_s = {port: -math.inf for port, _ in self._sources()}
        self._map_ready_s = math.inf
        self._problem = ""
        self._diagnostics = Diagnostics(
            self, "sensors", self._params.host, self._update_diagnostics
        )
        subscription(self, String, "ue_command", self._on_ue_command, COMMANDS)
        self.create_service(SetSensor, "~/set_sensor", self._serve_set_sensor)
        self._request_silent()
        steady_timer(self, CHECK_PERIOD_S, self._request_silent)
        ports = ", ".join(map(str, self._topics))
        self.get_logger().info(f"requests sensors of {self._params.host} to ports {ports}")

    def destroy_node(self) -> None:
        """Close sockets and end threads too."""
        self._receiver.close()
        for topics in self._topics.values():
            topics.close()
        self._sender.close()
        for imu in self._imus.values():
            imu.sender.close()
        super().destroy_node()

    # --- making

    def _make_topics(self) -> dict[int, SensorFrameTopics]:
        """Return the topics of each sensor, by port."""
        topics = {}
        for sensor in self._sensors():
            times = self._times[sensor.port] = FrameTimes()
            link = f"{self._params.frame_prefix}sensor{sensor.seq_id}"
            topics[sensor.port] = SensorFrameTopics(
                self,
                sensor,
                self._params,
                SensorFrames(link, f"{link}_optical"),
                partial(self._stamps.stamp_ns, times, sensor.target),
            )

            # data without a public layout
            if sensor_type(sensor.type_id).content is Content.BYTES:
                self.get_logger().warning(
                    f"sensor {sensor.seq_id}: the data of type {sensor.type_id} are in no public "
                    "layout; only their rate is shown"
                )
        return topics

    def _sensors(self) -> list[VisionSensor]:
        """Return the sensors of the Config.json, or of the parameters. Raises ConfigError."""
        params = self._params
        if bool(params.config) == bool(params.sensors):
            raise ConfigError(
                "parameters config and sensors: expected one of them, the path of a Config.json or "
                "names of sensors"
            )
        if params.config:
            try:
                config = VisionConfig.read(params.config, angle_unit=params.angle_unit)
            except OSError as error:
                raise ConfigError(f"parameter config: {error}") from error
            for warning in config.warnings:
                self.get_logger().warning(f"{params.config}: {warning}")
            sensors = list(config.sensors)
        else:
            sensors = self._declared_sensors(params.sensors)

        if (
            local_address_towards(params.host)
            and ipaddress.IPv4Address(ipv4(params.bind, "parameter bind")).is_loopback
        ):
            self.get_logger().warning(
                f"host is {params.host}, but bind is {params.bind}: data from there do not arrive "
                "here; set bind to this machine's address in that network"
            )
        sensors = [to_own_address(sensor, params.host, params.bind) for sensor in sensors]
        for sensor in sensors:
            encode_request(sensor, self._layout)
        return sensors

    def _declared_sensors(self, names: Sequence[str]) -> list[VisionSensor]:
        sensors: list[VisionSensor] = []
        for number, name in enumerate(names):
            p = declare_parameters(
                self, SensorRequestParameters, prefix=f"{name}.", defaults={"seq_id": number}
            )
            for key, count in (("position", 3), ("euler_deg", 3)):
                finite_array(f"{name}.{key}", getattr(p, key), (count,))
            if len(p.other_params) > PARAMETERS:
                raise ConfigError(f"at most {PARAMETERS} numbers", key=f"{name}.other_params")

            x, y, z = p.position
            roll, pitch, yaw = p.euler_deg
            sensor = VisionSensor(
                p.seq_id, p.type_id, p.target, p.mount, p.width, p.height, p.rate, p.way,
                port=p.data_port,
                fov_deg=p.fov_deg,
                position=(x, y, z),
                euler_deg=(roll, pitch, yaw),
                parameters=tuple(p.other_params),
            )  # fmt: skip
            for other in sensors:
                if other.seq_id == sensor.seq_id or other.port == sensor.port:
                    raise ConfigError(
                        f"number {sensor.seq_id} or port {sensor.port} is another sensor's",
                        key=name,
                    )
            sensors.append(sensor)
        return sensors

    def _make_imus(self) -> dict[int, _ImuTopic]:
        """Return the topics of the IMUs, by port."""
        vehicles = self._params.imu_vehicles
        if any(not 1 <= copter_id <= 1000 for copter_id in vehicles):
            raise ConfigError(f"{vehicles}, expected ids from 1 to 1000", key="imu_vehicles")

        # this machine, as CopterSim sees it
        host = self._params.coptersim_host or self._params.host
        address = answer_address(host, self._params.bind) or "127.0.0.1"

        imus = {}
        for copter_id in vehicles:
            name = "imu" if len(vehicles) == 1 else f"imu{copter_id}"
            stamp = partial(self._stamps.stamp_ns, FrameTimes(), copter_id)
            frame_id = f"{self._params.frame_prefix}{name}"
            imu = _ImuTopic(self, name, frame_id, copter_id, host, stamp)
            imu.request = encode_imu_request(
                imu.port, with_address(VisionSensor(0, 0), address).address, self._params.imu_rate
            )
            imus[imu.port] = imu
        return imus

    def _listen(self) -> SensorReceiver:
        """Return the receiver of all ports. Raises ConfigError for one that cannot be opened."""
        handlers: dict[int, Handler] = {port: source.take for port, source in self._sources()}
        if self._params.stamp == "simulation" and self._params.time_port:
            handlers[self._params.time_port] = self._stamps.take_heart_beat
        try:
            receiver = SensorReceiver(handlers, self._params.bind, tick=self._give_up_old)
        except (FeedbackError, ConfigError) as error:
            for topics in self._topics.values():
                topics.close()
            raise ConfigError(f"{error}; RflySim's SDK, or another ue_sensors_node?") from error

        if receiver.buffer_bytes < BUFFER_BYTES:
            self.get_logger().warning(
                f"the system grants {receiver.buffer_bytes:,} bytes of receive buffer, raw "
                f"pictures need more: sudo sysctl net.core.rmem_max={BUFFER_BYTES}"
            )
        return receiver

    def _give_up_old(self, now_s: float) -> None:
        """Forget incomplete frames that have waited for too long, in the receiver's thread."""
        for topics in self._topics.values():
            topics.give_up_old(now_s)

    def _sources(self) -> list[tuple[int, SensorFrameTopics | _ImuTopic]]:
        """Return what receives data, with its port."""
        return [*self._topics.items(), *self._imus.items()]

    # --- requests

    def _request_silent(self) -> None:
        """Request the sensors that are silent, and all of them after a map change."""
        now_s = time.monotonic()
        period = self._params.request_period
        if not period:
            return
        after_map_change = now_s >= self._map_ready_s
        if after_map_change:
            self._map_ready_s = math.inf

        for port, source in self._sources():
            waited = now_s - max(source.heard_s, self._requested_s[port])
            if waited > period or after_map_change:
                self._requested_s[port] = now_s
                self._request(source)

    def _request(self, source: SensorFrameTopics | _ImuTopic) -> None:
        if isinstance(source, _ImuTopic):
            source.sender.send(source.request)
        else:
            self._problem = self._sender.send_to(0, encode_request(source.sensor, self._layout))

    def _on_ue_command(self, message: String) -> None:
        if changes_map(message.data):
            self._map_ready_s = time.monotonic() + MAP_CHANGE_SECONDS

    def _serve_set_sensor(self, request: Any, response: Any) -> Any:
        try:
            topics = next(t for t in self._topics.values() if t.sensor.seq_id == request.seq_id)
            sensor = _changed(topics.sensor, request)
            problem = self._sender.send_to(0, encode_request(sensor, self._layout))
        except StopIteration:
            known = ", ".join(str(t.sensor.seq_id) for t in self._topics.values())
            problem = f"seq_id: {request.seq_id}, expected one of {known}"
        except ConfigError as error:
            problem = str(error)
        else:
            topics.change(sensor)
            self._publish_static_frames()

        response.message = problem
        response.success = not problem
        return response

    # --- transforms

    def _publish_static_frames(self) -> None:
        transforms: list[TransformStamped] = []
        for topics in self._topics.values():
            place, turn = mount_pose(topics.sensor)
            frames = topics.frames
            parent = self._parent(topics.sensor)
            transforms.append(transform_to_msg(parent, frames.link, place, turn, 0))
            if topics.has_pictures:
                optical = QUAT_FLU_OPTICAL_XYZW
                transforms.append(transform_to_msg(frames.link, frames.optical, ORIGIN, optical, 0))
        self._tf_static.publish(TFMessage(transforms=transforms))

    def _parent(self, sensor: VisionSensor) -> str:
        """Return the frame on which a sensor is mounted."""
        if sensor.mount == Mount.MAP:
            return WORLD
        if sensor.mount == Mount.SENSOR:
            return f"{self._params.frame_prefix}sensor{sensor.target}"
        if sensor.mount == Mount.LEVEL:
            return self._level_frame(sensor.target)
        if sensor.mount == Mount.BOTTOM:
            return self._params.bottom_frame.replace("{id}", str(sensor.target))
        return self._base_frame(sensor.target)

    def _base_frame(self, copter_id: int) -> str:
        return self._params.base_frame.replace("{id}", str(copter_id))

    def _level_frame(self, copter_id: int) -> str:
        return f"{self._base_frame(copter_id)}_level"

    def _publish_level_frames(self) -> None:
        """Publish frames at the vehicles, in the axes of the map, from the vehicles' transforms."""
        now_ns = self.get_clock().now().nanoseconds
        transforms = []
        for copter_id in self._level_vehicles:
            try:
                place = self._frames.between(WORLD, self._base_frame(copter_id)).translation
            except FrameError:  # the vehicle has no transform yet
                continue
            level = self._level_frame(copter_id)
            transforms.append(transform_to_msg(WORLD, level, place, (0.0, 0.0, 0.0, 1.0), now_ns))
        if transforms:
            self._tf.publish(TFMessage(transforms=transforms))

    # --- diagnostics

    def _update_diagnostics(self) -> None:
        warnings = [*self._diagnostics.unmatched]

        # sensors that are silent, or whose time stands still
        heard_s = time.monotonic() - (self._params.request_period or 3.0)
        is_silent = any(topics.heard_s < heard_s for topics in self._topics.values())
        if self._problem and is_silent:
            warnings.append(self._sender.windows[0].notice())
        still = [
            self._topics[port].sensor.seq_id
            for port, times in self._times.items()
            if times.stands_still
        ]

        values = {
            "requests": self._sender.sent,
            "receive_buffer_bytes": self._receiver.buffer_bytes,
            "read_errors": self._receiver.read_errors,
            "imu_refused": sum(imu.refused for imu in self._imus.values()),
            "time_stands_still": ", ".join(map(str, still)),
        }
        text = f"{len(self._topics)} sensors, {len(self._imus)} IMUs"
        self._diagnostics.set_first([(warnings, WARN, warnings), (True, OK, text)], **values)


class _ImuTopic:
    """Topic of one vehicle's IMU, which CopterSim sends."""

    def __init__(
        self, node: Node, name: str, frame_id: str, copter_id: int, host: str, stamp: Any
    ) -> None:
        self.port = IMU_PORT + copter_id - 1
        self.sender = UdpSender(host, COPTER_SIM_PORT + 2 * (copter_id - 1))
        self.request = b""
        self.heard_s = -math.inf
        self.refused = 0
        """Datagrams that are no sample, or whose time is impossible."""
        self._frame_id = frame_id
        self._stamp = stamp
        self._publisher = publisher(node, Imu, f"rflysim/{name}", STATE_OUT)

    def take(self, datagram: bytes, arrival_s: float) -> None:
        """Publish a sample, in the receiver's thread."""
        head = IMU_DATA.checksum_struct.pack(IMU_DATA.checksums[0])
        if len(datagram) != IMU_DATA.size or not datagram.startswith(head):
            self.refused += 1
            return
        values = IMU_DATA.unpack(datagram)
        try:
            stamp_ns = self._stamp(values["timestmp"])
        except PacketError:
            self.refused += 1
            return
        self.heard_s = arrival_s
        message = imu_to_msg(values["acc"], values["rate"])
        self._publisher.publish(fill_header(message, stamp_ns, self._frame_id))


def _changed(sensor: VisionSensor, request: Any) -> VisionSensor:
    """Return a sensor with the pose and angle of view of a request. Raises ConfigError."""
    p = request.pose.position
    q = request.pose.orientation
    quat = np.array([q.x, q.y, q.z, q.w])
    if quat.any():
        place = finite_array("position", [p.x, p.y, p.z])
        sensor = with_mount_pose(sensor, place, unit_quaternion("orientation", quat))
    if request.fov_deg:
        fov_deg = float(request.fov_deg)
        if not 0.0 < fov_deg <= 360.0:
            raise ConfigError(f"{fov_deg}, expected above 0 and at most 360", key="fov_deg")
        sensor = replace(sensor, fov_deg=fov_deg)
    return sensor
