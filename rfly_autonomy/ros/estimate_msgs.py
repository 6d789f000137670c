# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of estimates and of orders, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from ackermann_msgs.msg import AckermannDriveStamped
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry, Path

from rfly_amphibious.sensors.sample_messages import (
    finite,
    frame_of,
    quaternion_of,
    set_odometry,
    set_quaternion,
    set_vector,
    stamped,
    time_of,
    vector_of,
)
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.arrays import Floats
from rfly_common.errors import SensorMessageError
from rfly_common.frames import quat_to_euler, rotation_matrix
from rfly_common.transform_buffer import WORLD


def estimate_to_odometry(
    estimate: Estimate, vehicle: str, frame: str = WORLD, *, rates: Floats
) -> Odometry:
    """Return the message for odometry/global.

    Its pose is in the world, or in `frame`; its twist is in base_link's axes. `rates` (3, 3):
    covariance of its angular velocity. Covariances are 0 if unknown.
    """
    rotation = rotation_matrix(estimate.orientation)
    velocity = (rotation.T @ estimate.velocity).tolist()
    pose = (
        np.asarray(estimate.position).tolist(),
        np.asarray(estimate.orientation).tolist(),
    )

    base = frame_of(vehicle, "base_link")
    message = stamped(
        set_odometry(Odometry(), base, *pose, velocity, np.asarray(estimate.rates).tolist()),
        estimate.time,
        frame,
    )

    message.pose.covariance, message.twist.covariance = estimate.odometry_covariances(rates)
    return message


def unknown_odometry(vehicle: str, frame: str = WORLD) -> Odometry:
    """Return the odometry/global of an estimator that knows nothing yet, for lock-step.

    Its first covariance is -1.
    """
    nowhere = (0.0, 0.0, 0.0)
    base = frame_of(vehicle, "base_link")
    message = set_odometry(Odometry(), base, nowhere, (*nowhere, 1.0), nowhere, nowhere)
    message.header.frame_id = frame
    message.pose.covariance[0] = message.twist.covariance[0] = -1.0
    return message


def is_unknown(message: Odometry) -> bool:
    """Return whether an odometry says that nothing is known (`unknown_odometry`)."""
    return bool(message.pose.covariance[0] < 0.0)


def odometry_to_estimate(message: Odometry) -> Estimate:
    """Return the estimate of odometry/global, or of any odometry in the world.

    Its covariance consists of two blocks, for position and attitude, and for the velocity; None if
    all is 0. Raise SensorMessageError for impossible numbers, and if nothing is known
    (`is_unknown`).
    """
    if is_unknown(message):
        raise SensorMessageError(
            "nothing is known of the vehicle's place yet: the estimator is not aligned"
        )

    pose = message.pose.pose
    twist = message.twist.twist
    orientation = quaternion_of(pose.orientation)
    rotation = rotation_matrix(orientation)

    covariance = None
    of_pose, of_twist = (
        finite("covariance", part.covariance).reshape(6, 6)
        for part in (message.pose, message.twist)
    )
    if of_pose.any():
        covariance = np.zeros((9, 9))
        covariance[_PLACES] = of_pose
        covariance[3:6, 3:6] = rotation @ of_twist[:3, :3] @ rotation.T

    return Estimate(
        time_of(message),
        vector_of("position", pose.position),
        orientation,
        rotation @ vector_of("linear", twist.linear),
        vector_of("angular", twist.angular),
        covariance,
    )


_PLACES = np.ix_((0, 1, 2, 6, 7, 8), (0, 1, 2, 6, 7, 8))
"""Rows and columns of position and attitude in an estimate's covariance."""


def order_to_ackermann(order: Setpoint, vehicle: str) -> AckermannDriveStamped:
    """Return speed and steering of an order, for cmd/ackermann."""
    message = stamped(AckermannDriveStamped(), order.time, frame_of(vehicle, "base_link"))
    message.drive.speed = float(order.speed)
    message.drive.steering_angle = float(order.steering)
    return message


def order_to_pose(order: Setpoint, now: Estimate) -> PoseStamped:
    """Return the target of an order, for cmd/pose; without one, the vehicle's place.

    It is level and has the order's yaw, or without one the vehicle's.
    """
    yaw = quat_to_euler(now.orientation)[2] if order.yaw is None else order.yaw
    place = now.position if order.target is None else order.target
    return _pose(order.time, place, (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)))


def estimate_to_pose(now: Estimate) -> PoseStamped:
    """Return the vehicle's pose, for pose."""
    return _pose(now.time, now.position, now.orientation)


def points_to_path(points: Floats, time: float) -> Path:
    """Return points (n, 3), m, ENU, as a path."""
    return stamped(
        Path(poses=[_pose(time, point, (0.0, 0.0, 0.0, 1.0)) for point in points]),
        time,
        WORLD,
    )


def _pose(time: float, place: Any, quat_xyzw: Any) -> PoseStamped:
    message = stamped(PoseStamped(), time, WORLD)
    set_vector(message.pose.position, map(float, place))
    set_quaternion(message.pose.orientation, map(float, quat_xyzw))
    return message
