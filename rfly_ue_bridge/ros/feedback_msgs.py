# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's feedback packets -> messages, in the axes of a ROS frame.

Position, angles and box of the answers to requests are read as NED metres and radians, as
everything else on the wire. RflySim documents neither, so this module is the one place to correct
if that turns out wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Vector3
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

from rfly_common.frames import (
    Numbers,
    pose_ned_euler_to_enu,
    pose_ned_euler_to_ned,
    vector_ned_to_enu,
)
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.packets import Packet

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
