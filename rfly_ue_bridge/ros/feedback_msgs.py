"""RflySim3D's feedback packets -> messages, in the axes of a ROS frame.

Position, angles and box of the answers to requests are read as NED metres and radians, as everything else on the wire;
RflySim states neither, so this module is the one place to correct should that turn out wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from geometry_msgs.msg import PoseStamped
from rfly_suite.msg import (
    Px4SilData,
    UeCameraData,
    UeCrash,
    UeGimbalRequest,
    UeObjectData,
    UeVehicleData,
    UeVehicleReport,
)
from std_msgs.msg import Header

from rfly_common.frames import Numbers, pose_ned_euler_to_enu, pose_ned_euler_to_ned, vector_ned_to_enu
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.packets import Packet

_RPM = 2.0 * math.pi / 60.0
_PLACES = ("PosE", "VelE", "CrashPos", "targetPos", "AngEuler", "PosUE", "angEuler", "boxOrigin", "boxExtent")


def has_finite_pose(packet: Packet) -> bool:
    """False for a packet whose positions, angles or box hold NaN or infinity."""
    values = packet.values
    return all(math.isfinite(number) for name in _PLACES if name in values for number in values[name])


def answer_to_pose(packet: Packet, header: Header, axes: str) -> tuple[PoseStamped, Numbers, Numbers]:
    """The pose of an answer to a request, its box's middle and half size (0 for a camera)."""
    position, quat = _POSE[axes](packet["PosUE"], packet["angEuler"])
    stamped = PoseStamped(header=header)
    stamped.pose.position.x, stamped.pose.position.y, stamped.pose.position.z = position
    q = stamped.pose.orientation
    q.x, q.y, q.z, q.w = quat
    if "boxOrigin" not in packet.values:
        return stamped, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    return stamped, _VECTOR[axes](packet["boxOrigin"]), packet["boxExtent"]


def _same(vector: Numbers) -> Numbers:
    return vector


_POSE: dict[str, Callable[[Numbers, Numbers], tuple[Numbers, Numbers]]] = {
    "enu": pose_ned_euler_to_enu,
    "ned": pose_ned_euler_to_ned,
}
_VECTOR: dict[str, Callable[[Numbers], Numbers]] = {"enu": vector_ned_to_enu, "ned": _same}


def _crash(packet: Packet, header: Header, axes: str) -> UeCrash:
    return UeCrash(header=header, id=packet["copterID"], target_id=packet["targetID"])


def _sil(packet: Packet, header: Header, axes: str) -> Px4SilData:
    return Px4SilData(header=header, id=packet["copterID"], ints=packet["inSILInts"], floats=packet["inSILFloats"])


def _report(packet: Packet, header: Header, axes: str) -> UeVehicleReport:
    vector = _VECTOR[axes]
    position, quat = _POSE[axes](packet["PosE"], packet["AngEuler"])
    return UeVehicleReport(
        header=header,
        id=packet["copterID"],
        vehicle_type=packet["vehicleType"],
        crash_type=packet["CrashType"],
        crashed_name=packet["CrashedName"],
        run_time=packet["runnedTime"],
        position=position,
        orientation=quat,
        velocity=vector(packet["VelE"]),
        crash_position=vector(packet["CrashPos"]),
        target_position=vector(packet["targetPos"]),
        motor_speed=[speed * _RPM for speed in packet["MotorRPMS"]],
        ray=packet["ray"],
    )


def _camera(packet: Packet, header: Header, axes: str) -> UeCameraData:
    return UeCameraData(
        header=header,
        id=packet["SeqID"],
        sensor_type=packet["TypeID"],
        height=packet["DataHeight"],
        width=packet["DataWidth"],
        fov_deg=packet["CameraFOV"],
        **_answer(packet, axes),
    )


def _vehicle(packet: Packet, header: Header, axes: str) -> UeVehicleData:
    return UeVehicleData(header=header, id=packet["copterID"], **_answer(packet, axes))


def _object(packet: Packet, header: Header, axes: str) -> UeObjectData:
    return UeObjectData(header=header, id=packet["seqID"], name=packet["name"], **_answer(packet, axes))


def _answer(packet: Packet, axes: str) -> dict[str, Any]:
    """What all answers to requests hold, and the box of those that have one."""
    position, quat = _POSE[axes](packet["PosUE"], packet["angEuler"])
    box = {}
    if "boxOrigin" in packet.values:
        box = {"box_origin": _VECTOR[axes](packet["boxOrigin"]), "box_extent": packet["boxExtent"]}
    return {
        **box,
        "position": position,
        "orientation": quat,
        "wire_quaternion": packet.values.get("angQuat", ()),
        "timestamp": packet["timestamp"],
    }


def _gimbal(packet: Packet, header: Header, axes: str) -> UeGimbalRequest:
    return UeGimbalRequest(
        header=header,
        id=packet["SeqID"],
        bitmask=packet["bitmask"],
        sensor_type=packet["TypeID"],
        target_id=packet["TargetCopter"],
        mount_type=packet["TargetMountType"],
        width=packet["DataWidth"],
        height=packet["DataHeight"],
        check_frequency=packet["DataCheckFreq"],
        send_protocol=packet["SendProtocol"],
        fov_deg=packet["CameraFOV"],
        mount_position=packet["SensorPosXYZ"],
        angle_kind=packet["EularOrQuat"],
        mount_euler=packet["SensorAngEular"],
        mount_quaternion=packet["SensorAngQuat"],
        other_params=packet["otherParams"],
    )


_TOPICS: dict[str, tuple[str, type, Callable[[Packet, Header, str], Any]]] = {
    "CopterSimCrash": ("ue_crash", UeCrash, _crash),
    "reqVeCrashData": ("ue_vehicle_report", UeVehicleReport, _report),
    "CameraData": ("ue_camera", UeCameraData, _camera),
    "CoptReqData": ("ue_vehicle", UeVehicleData, _vehicle),
    "ObjReqData": ("ue_object", UeObjectData, _object),
    "PX4SILIntFloat": ("px4_sil", Px4SilData, _sil),
    "VisionSensorReqNew": ("ue_gimbal", UeGimbalRequest, _gimbal),
}
"""kind of packet -> its topic, its message, and what makes one"""

TOPICS = MappingProxyType({topic: message for topic, message, _ in _TOPICS.values()})
TOPIC_OF = MappingProxyType({packet_type.name: _TOPICS[packet_type.kind][0] for packet_type in FROM_RFLYSIM3D})
"""Wire name -> topic."""


def packet_to_msg(packet: Packet, header: Header, axes: str) -> Any:
    """The message of a packet, as `TOPICS` has it for the packet's topic; `axes` of the header's frame: enu, ned."""
    return _TOPICS[packet.type.kind][2](packet, header, axes)
