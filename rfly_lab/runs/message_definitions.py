# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Definitions of ROS messages for MCAP files that are written without ROS."""

from __future__ import annotations

from types import SimpleNamespace

_FIELDS = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "std_msgs/MultiArrayDimension": "string label\nuint32 size\nuint32 stride",
    "std_msgs/MultiArrayLayout": "std_msgs/MultiArrayDimension[] dim\nuint32 data_offset",
    "std_msgs/Float64MultiArray": "std_msgs/MultiArrayLayout layout\nfloat64[] data",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1",
    "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
    "geometry_msgs/TwistStamped": "std_msgs/Header header\ngeometry_msgs/Twist twist",
    "geometry_msgs/Transform": (
        "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation"
    ),
    "geometry_msgs/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
    "geometry_msgs/Vector3Stamped": "std_msgs/Header header\ngeometry_msgs/Vector3 vector",
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "nav_msgs/Odometry": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n"
        "geometry_msgs/TwistWithCovariance twist"
    ),
    "rfly_suite/RotorCommand": "std_msgs/Header header\nuint8 mode\nfloat64[] value",
    "rfly_suite/WheelCommand": (
        "std_msgs/Header header\nfloat64 steering_angle\nfloat64[] drive_torque\n"
        "float64[] brake_torque\nfloat64[] wheel_steering_angle"
    ),
    "rfly_suite/VehicleForces": (
        "std_msgs/Header header\nfloat64[] spring_force\nfloat64[] damper_force\n"
        "float64[] slip_ratio\nfloat64[] slip_angle\nfloat64[] rotor_torque"
    ),
    "rfly_suite/VehicleMode": "std_msgs/Header header\nstring mode",
    "rfly_suite/WheelLoads": "std_msgs/Header header\nfloat64[] load",
    "rfly_suite/VehicleStateArray": (
        "std_msgs/Header header\nstring source\nint32[] id\nint32[] vehicle_type\n"
        "float64[] position\nfloat64[] orientation\nfloat32[] velocity\n"
        "float32[] angular_velocity\nuint8 motors\nfloat32[] motor_speed\nfloat32[] scale\n"
        "uint8[] fit_ground"
    ),
    "sensor_msgs/Imu": (
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n"
        "float64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    ),
    "sensor_msgs/CompressedImage": "std_msgs/Header header\nstring format\nuint8[] data",
    "sensor_msgs/Image": (
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n"
        "uint8 is_bigendian\nuint32 step\nuint8[] data"
    ),
    "sensor_msgs/PointField": "string name\nuint32 offset\nuint8 datatype\nuint32 count",
    "sensor_msgs/PointCloud2": (
        "std_msgs/Header header\nuint32 height\nuint32 width\nsensor_msgs/PointField[] fields\n"
        "bool is_bigendian\nuint32 point_step\nuint32 row_step\nuint8[] data\nbool is_dense"
    ),
    "sensor_msgs/Range": (
        "std_msgs/Header header\nuint8 radiation_type\nfloat32 field_of_view\n"
        "float32 min_range\nfloat32 max_range\nfloat32 range\nfloat32 variance"
    ),
    "sensor_msgs/NavSatStatus": "int8 status\nuint16 service",
    "sensor_msgs/NavSatFix": (
        "std_msgs/Header header\nsensor_msgs/NavSatStatus status\nfloat64 latitude\n"
        "float64 longitude\nfloat64 altitude\nfloat64[9] position_covariance\n"
        "uint8 position_covariance_type"
    ),
    "sensor_msgs/MagneticField": (
        "std_msgs/Header header\ngeometry_msgs/Vector3 magnetic_field\n"
        "float64[9] magnetic_field_covariance"
    ),
    "sensor_msgs/FluidPressure": (
        "std_msgs/Header header\nfloat64 fluid_pressure\nfloat64 variance"
    ),
    "sensor_msgs/JointState": (
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
        "float64[] effort"
    ),
}
"""Fields of each type of message."""

_BETWEEN = "=" * 80
"""Line between the types in a schema."""


def message_definition(name: str) -> str:
    """Return the schema `ros2msg` of a message such as `nav_msgs/Odometry`.

    It holds the fields of the message, then those of all messages in it.
    """
    needed = [name]
    for message in needed:  # grows during the loop
        types = [line.split()[0].split("[")[0] for line in _FIELDS[message].splitlines()]
        needed += [kind for kind in types if kind in _FIELDS and kind not in needed]

    parts = [_FIELDS[name], *(f"MSG: {message}\n{_FIELDS[message]}" for message in needed[1:])]
    return f"\n{_BETWEEN}\n".join(parts) + "\n"


def new_message(name: str) -> SimpleNamespace:
    """Return an empty message, with the messages in it; fields that stay unset are written as 0."""
    message = SimpleNamespace()
    for line in _FIELDS[name].splitlines():
        kind, field = line.split()[:2]
        if kind in _FIELDS:
            setattr(message, field, new_message(kind))
    return message
