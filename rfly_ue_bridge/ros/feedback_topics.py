# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's feedback as topics, and the service `request_object`. Part of ue_bridge_node.

Position, angles and box of the answers to requests are read as NED metres and radians, as
everything else on the wire. RflySim documents neither, so this module is the one place to correct
if that turns out wrong.
"""

from __future__ import annotations

import errno
import ipaddress
import math
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Vector3
from rclpy.node import Node
from rclpy.task import Future
from rclpy.timer import Timer
from rfly_suite.msg import (
    Px4SilData,
    UeCameraData,
    UeCrash,
    UeGimbalRequest,
    UeObjectData,
    UeVehicleData,
    UeVehicleReport,
)
from rfly_suite.srv import RequestObject
from std_msgs.msg import Header

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import CommandError, ConfigError, FeedbackError
from rfly_common.frames import (
    Numbers,
    pose_ned_euler_to_enu,
    pose_ned_euler_to_ned,
    vector_ned_to_enu,
)
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer, waiting_service
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import FEEDBACK_OUT
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT, WINDOW_PORT
from rfly_ue_bridge.codec.commands import request_object, request_vehicle_data
from rfly_ue_bridge.codec.from_rflysim3d import (
    ANSWERS,
    FROM_RFLYSIM3D,
    OBJECT,
    REQ_VE_CRASH_DATA,
    Question,
    is_answer,
)
from rfly_ue_bridge.codec.packets import Packet
from rfly_ue_bridge.ros.node_parameters import FeedbackParameters
from rfly_ue_bridge.sockets.feedback_receiver import FeedbackReceiver
from rfly_ue_bridge.sockets.udp_sender import resolve

_RPM = 2.0 * math.pi / 60.0
_PLACES = (
    "PosE",
    "VelE",
    "CrashPos",
    "targetPos",
    "AngEuler",
    "PosUE",
    "angEuler",
    "boxOrigin",
    "boxExtent",
)


def has_finite_pose(packet: Packet) -> bool:
    """Return False for a packet whose positions, angles or box hold NaN or infinity."""
    values = packet.values
    return all(
        math.isfinite(number) for name in _PLACES if name in values for number in values[name]
    )


def answer_to_pose(packet: Packet, header: Header, axes: str) -> tuple[PoseStamped, Point, Vector3]:
    """Return the pose of an answer to a request, and the middle and half size of its box.

    A camera's box is 0.
    """
    stamped = PoseStamped(header=header, pose=_pose(packet["PosUE"], packet["angEuler"], axes))
    if "boxOrigin" not in packet.values:
        return stamped, Point(), Vector3()
    return stamped, _point(packet["boxOrigin"], axes), _size(packet["boxExtent"], axes)


def _unchanged(vector: Numbers) -> Numbers:
    return vector


_POSE: dict[str, Callable[[Numbers, Numbers], tuple[Numbers, Numbers]]] = {
    "enu": pose_ned_euler_to_enu,
    "ned": pose_ned_euler_to_ned,
}
_VECTOR: dict[str, Callable[[Numbers], Numbers]] = {"enu": vector_ned_to_enu, "ned": _unchanged}


def _pose(position: Numbers, euler: Numbers, axes: str) -> Pose:
    (x, y, z), (qx, qy, qz, qw) = _POSE[axes](position, euler)
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))


def _point(position: Numbers, axes: str) -> Point:
    x, y, z = _VECTOR[axes](position)
    return Point(x=x, y=y, z=z)


def _vector(vector: Numbers, axes: str) -> Vector3:
    x, y, z = _VECTOR[axes](vector)
    return Vector3(x=x, y=y, z=z)


def _size(extent: Numbers, _axes: str) -> Vector3:
    x, y, z = extent
    return Vector3(x=x, y=y, z=z)


# field of a message: field of its packet

_POSE_FIELDS = {
    "pose": "PosUE",
    "wire_quaternion": "angQuat",
    "timestamp": "timestamp",
}
_ANSWER = {**_POSE_FIELDS, "box_origin": "boxOrigin", "box_extent": "boxExtent"}
_REPORT = {
    "id": "copterID",
    "vehicle_type": "vehicleType",
    "crash_type": "CrashType",
    "crashed_name": "CrashedName",
    "run_time": "runnedTime",
    "pose": "PosE",
    "velocity": "VelE",
    "crash_position": "CrashPos",
    "target_position": "targetPos",
    "motor_speed": "MotorRPMS",
    "ray": "ray",
}
_CAMERA = {
    "id": "SeqID",
    "sensor_type": "TypeID",
    "height": "DataHeight",
    "width": "DataWidth",
    "fov_deg": "CameraFOV",
    **_POSE_FIELDS,
}
_GIMBAL = {
    "id": "SeqID",
    "bitmask": "bitmask",
    "sensor_type": "TypeID",
    "target_id": "TargetCopter",
    "mount_type": "TargetMountType",
    "width": "DataWidth",
    "height": "DataHeight",
    "check_frequency": "DataCheckFreq",
    "send_protocol": "SendProtocol",
    "fov_deg": "CameraFOV",
    "mount_position": "SensorPosXYZ",
    "angle_kind": "EularOrQuat",
    "mount_euler": "SensorAngEular",
    "mount_quaternion": "SensorAngQuat",
    "other_params": "otherParams",
}
_TOPICS: dict[str, tuple[str, type, dict[str, str]]] = {
    "CopterSimCrash": ("ue_crash", UeCrash, {"id": "copterID", "target_id": "targetID"}),
    "reqVeCrashData": ("ue_vehicle_report", UeVehicleReport, _REPORT),
    "CameraData": ("ue_camera", UeCameraData, _CAMERA),
    "CoptReqData": ("ue_vehicle", UeVehicleData, {"id": "copterID", **_ANSWER}),
    "ObjReqData": ("ue_object", UeObjectData, {"id": "seqID", "name": "name", **_ANSWER}),
    "PX4SILIntFloat": (
        "px4_sil",
        Px4SilData,
        {"id": "copterID", "ints": "inSILInts", "floats": "inSILFloats"},
    ),
    "VisionSensorReqNew": ("ue_gimbal", UeGimbalRequest, _GIMBAL),
}
"""Kind of packet -> its topic, its message type, and the packet's field for each of the message's.
"""
_ANGLES = {"PosUE": "angEuler", "PosE": "AngEuler"}
"""Packet's field of the angles that belong to a position."""
_GEOMETRY: dict[str, Callable[[Numbers, str], Any]] = {
    "velocity": _vector,
    "crash_position": _point,
    "target_position": _point,
    "box_origin": _point,
    "box_extent": _size,
}
"""Message's fields of geometry_msgs, poses apart, and how they are made."""

TOPICS = MappingProxyType({topic: message for topic, message, _ in _TOPICS.values()})
TOPIC_OF = MappingProxyType(
    {packet_type.name: _TOPICS[packet_type.kind][0] for packet_type in FROM_RFLYSIM3D}
)
"""Wire name -> topic."""


def packet_to_msg(packet: Packet, header: Header, axes: str) -> Any:
    """Return the message of a packet, of the type that `TOPICS` has for its topic.

    `axes` of the header's frame: enu, ned.
    """
    _, message, fields = _TOPICS[packet.type.kind]
    # an old layout has no angQuat
    packet_values = packet.values
    values = {
        name: packet_values[field] for name, field in fields.items() if field in packet_values
    }

    if "pose" in values:
        angles = packet_values[_ANGLES[fields["pose"]]]
        values["pose"] = _pose(values["pose"], angles, axes)
    for name in _GEOMETRY.keys() & values.keys():
        values[name] = _GEOMETRY[name](values[name], axes)
    if "motor_speed" in values:
        values["motor_speed"] = [speed * _RPM for speed in values["motor_speed"]]
    return message(header=header, **values)


WORK_S = 0.001
"""Time for publishing in one turn of the executor, s."""
TURN_S = 0.004
"""Least time between two turns, s, so that a flood leaves the poses their time."""
_AT_ONCE = 4
"""Packets between two looks at the clock."""
DEFAULT_TIMEOUT_S = 2.0
MAX_TIMEOUT_S = 60.0
MAX_WAITING = 100
"""Requests that wait at once; one more is refused."""
ASK_AGAIN_S = 5.0
"""Period in which RflyReqVehicleData is repeated until reports come: RflySim3D may start later, s.
"""

LOSSES = (
    "unknown_length",
    "wrong_checksum",
    "text",
    "not_allowed",
    "overflow",
    "system_dropped",
    "socket_errors",
)


class FeedbackTopics:
    """Topics of the feedback, in the frame `frame_id`, whose axes are `axes` (enu or ned).

    `window` is the host and port of RflySim3D's first window. They own the receiver.
    send_command(text, window) sends a console command to RflySim3D and returns "" or the error.
    """

    def __init__(
        self,
        node: Node,
        window: tuple[str, int],
        frame_id: str,
        axes: str,
        send_command: Callable[[str, int], str],
    ) -> None:
        self._node = node
        host, window_port = window
        self._frame_id = frame_id
        self._axes = axes
        self._send_command = send_command

        self._waiting: list[tuple[Question, Future]] = []
        self._turns: Timer | None = None
        self._pausing = False
        # steady clock
        self._heard_s = -math.inf
        self._reported_s = -math.inf
        self._asked_s = -math.inf
        self._losses: dict[str, int] = {}
        self._error = Notice("")

        params = declare_parameters(node, FeedbackParameters)
        self._request_vehicle_data = params.request_vehicle_data

        bind = params.feedback_bind
        port = params.feedback_port
        self._where = f"{bind}:{port}"
        self._window = f"{host}:{window_port}"
        self._is_elsewhere = False
        """Whether the usual window of this machine, which answers here, is not this bridge's."""

        self._receiver: FeedbackReceiver | None = None
        if port:
            try:
                self._receiver = FeedbackReceiver(
                    bind,
                    port,
                    multicast_interface=params.feedback_multicast_interface,
                    allow=params.feedback_allow,
                    wake=self._wake,
                    share_port=params.feedback_share_port,
                )
            except ConfigError as error:
                raise ConfigError(f"parameter feedback_{error}") from error
            own = ipaddress.IPv4Address(bind)
            address = ipaddress.IPv4Address(resolve(host)) if own.is_loopback else own
            if port == FEEDBACK_PORT:
                self._is_elsewhere = (address, window_port) != (own, WINDOW_PORT)
            if own.is_loopback and not address.is_loopback:
                node.get_logger().warning(
                    f"host is {host}, but feedback_bind is {bind}: RflySim3D's answers from there "
                    "do not arrive here; set feedback_bind to this machine's address in that "
                    "network"
                )

        self._publishers = {
            topic: publisher(node, msg_type, topic, FEEDBACK_OUT)
            for topic, msg_type in TOPICS.items()
        }

        self._guard = node.create_guard_condition(self._publish_received)
        waiting_service(node, RequestObject, "request_object", self._serve_request)
        self._diagnostics = Diagnostics(
            node, "feedback", self._where, self._every_second, check_peers=False
        )
        self._diagnostics.counters["not_finite"] = 0

        self._listen()
        self._ask_for_reports()
        self._update_diagnostics()

    def close(self) -> None:
        """Stop listening. To be called before the node is destroyed."""
        if self._receiver is not None:
            self._receiver.close()

    # --- listening

    def _listen(self) -> None:
        if self._receiver is None or self._receiver.listening:
            return

        try:
            self._receiver.start()
        except FeedbackError as error:
            if str(error) != str(self._error):
                taken = error.errno == errno.EADDRINUSE
                reason = Reason.FEEDBACK_PORT_TAKEN if taken else Reason.OTHER
                self._error = Notice(str(error), reason, str(self._receiver.port))
                log = self._node.get_logger()
                if taken and self._is_elsewhere:
                    log.info(f"{error}; tried again every second, as {self._window} may answer")
                else:
                    log.error(f"{error}; tried again every second")
            return

        # it listens
        self._error = Notice("")
        self._node.get_logger().info(f"listening to RflySim3D on {self._where}")
        if self._receiver.multicast_error:
            self._node.get_logger().warning(f"multicast: {self._receiver.multicast_error}")

    @property
    def _is_not_needed(self) -> bool:
        """Whether it does not listen because a bridge of the usual window holds the port."""
        return self._is_elsewhere and self._error.reason is Reason.FEEDBACK_PORT_TAKEN

    def _wake(self) -> None:
        """Wake the executor from the reading thread; in a pause the timer does it."""
        if not self._pausing:
            self._guard.trigger()

    def _publish_received(self) -> None:
        """Publish waiting packets for at most WORK_S, and pause.

        The timer runs until no packet waits.
        """
        if self._receiver is None or self._pausing or not len(self._receiver):
            return

        self._pausing = True
        if self._turns is None:
            self._turns = steady_timer(self._node, TURN_S, self._end_pause)
        else:
            self._turns.reset()

        wanted = self._wanted()
        self._heard_s = time.monotonic()
        while len(self._receiver) and time.monotonic() < self._heard_s + WORK_S:
            self._publish(self._receiver.take(_AT_ONCE, wanted))

    def _wanted(self) -> set[str]:
        """Return the wire names of the packets that subscribers or requests wait for."""
        heard = {topic for topic, out in self._publishers.items() if out.get_subscription_count()}
        wanted = {name for name, topic in TOPIC_OF.items() if topic in heard}
        if self._waiting:
            wanted.update(ANSWERS)
        if self._request_vehicle_data:
            wanted.add(REQ_VE_CRASH_DATA.name)
        return wanted

    def _end_pause(self) -> None:
        assert self._turns is not None
        self._turns.cancel()
        self._pausing = False  # before the look: a packet that is queued after it wakes us
        self._publish_received()

    def _publish(self, packets: list[Packet]) -> None:
        if not packets:
            return
        header = self._header()
        for packet in packets:
            if not has_finite_pose(packet):
                text = f"{packet.name} with a number that is not finite"
                self._diagnostics.refuse("not_finite", text, subject=packet.name)
                continue
            if packet.type is REQ_VE_CRASH_DATA:
                self._reported_s = self._heard_s

            if self._waiting:
                self._answer(packet)
            out = self._publishers[TOPIC_OF[packet.name]]
            if out.get_subscription_count():
                out.publish(packet_to_msg(packet, header, self._axes))

    def _header(self) -> Header:
        return Header(stamp=self._node.get_clock().now().to_msg(), frame_id=self._frame_id)

    # --- asking

    async def _serve_request(self, request: Any, response: Any) -> Any:
        response.message, packet = await self._request(request)
        response.success = packet is not None
        if packet is not None:
            response.pose, response.box_origin, response.box_extent = answer_to_pose(
                packet, self._header(), self._axes
            )
        return response

    async def _request(self, request: Any) -> tuple[str, Packet | None]:
        """Return "" and the answer, or the error."""
        timeout = request.timeout or DEFAULT_TIMEOUT_S
        if not 0.0 < timeout <= MAX_TIMEOUT_S:
            return f"timeout: {request.timeout}, expected 0 to {MAX_TIMEOUT_S:.0f} s", None

        try:
            question = (request.kind, request.name if request.kind == OBJECT else request.id)
            command = request_object(*question)
        except CommandError as error:
            return str(error), None

        if self._receiver is None:
            return "the bridge does not listen: parameter feedback_port is 0", None
        if not self._receiver.listening:
            return self._error.text, None
        if len(self._waiting) >= MAX_WAITING:
            return f"{MAX_WAITING} requests wait already", None
        problem = self._send_command(command, 0)
        if problem:
            return problem, None

        future: Future = Future(executor=self._node.executor)
        entry = (question, future)
        self._waiting.append(entry)
        timer = steady_timer(self._node, timeout, lambda: future.done() or future.set_result(None))
        try:
            packet = await future
        finally:
            self._waiting.remove(entry)
            self._node.destroy_timer(timer)
        return (f"no answer within {timeout:g} s to {command!r}" if packet is None else ""), packet

    def _answer(self, packet: Packet) -> None:
        for question, future in self._waiting:
            if not future.done() and is_answer(packet, question):
                future.set_result(packet)

    def _ask_for_reports(self) -> None:
        now_s = time.monotonic()
        if (
            self._request_vehicle_data
            and now_s - max(self._asked_s, self._reported_s) > ASK_AGAIN_S
        ):
            self._asked_s = now_s
            self._send_command(request_vehicle_data(), -1)

    # --- diagnostics

    def _every_second(self) -> None:
        self._listen()
        if self._receiver is not None and self._receiver.listening:
            self._receiver.join()
        self._ask_for_reports()
        self._update_diagnostics()

    def _update_diagnostics(self) -> None:
        if self._receiver is None:
            self._diagnostics.set(OK, "off: parameter feedback_port is 0")
            return
        counters = self._receiver.counters
        now_s = time.monotonic()

        lost = {
            reason: counters[reason]
            for reason in LOSSES
            if counters[reason] > self._losses.get(reason, 0)
        }

        if lost:
            new = ", ".join(
                f"{reason} {count - self._losses.get(reason, 0)}" for reason, count in lost.items()
            )
            self._losses |= lost
            if self._diagnostics.warn("datagrams_lost", f"datagrams lost: {new}"):
                self._node.get_logger().warning(f"feedback: datagrams lost: {new}")
        values: dict[str, Any] = {"waiting_requests": len(self._waiting), **counters}
        hearing = "nothing heard yet"
        if math.isfinite(self._heard_s):
            silence_s = f"{now_s - self._heard_s:.0f}"
            hearing = f"last heard {silence_s} s ago"
            values["last_heard_s"] = silence_s
        self._diagnostics.set_first(
            [
                (self._is_not_needed, OK, f"{self._error.text}; {self._window} is elsewhere"),
                (self._error.text, ERROR, self._error),
                (self._receiver.multicast_error, WARN, self._receiver.multicast_error),
                (True, OK, f"listening on {self._where}, {hearing}"),
            ],
            **values,
        )
