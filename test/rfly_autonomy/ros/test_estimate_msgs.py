# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Estimates as messages and back, through their serialized form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from optional_parts import late_module

from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import SensorMessageError

pytestmark = pytest.mark.ros

msgs = late_module("rfly_autonomy.ros.estimate_msgs")
nav_msgs = late_module("nav_msgs.msg")
serialization = late_module("rclpy.serialization")


def through_the_wire(message):
    return serialization.deserialize_message(
        serialization.serialize_message(message), type(message)
    )


def test_estimates_there_and_back_and_as_others_read_them() -> None:
    # heading north, rolled by 0: forward is +y of the world
    half = math.sqrt(0.5)
    covariance = np.diag([1.0, 2, 3, 0.4, 0.5, 0.6, 0.01, 0.02, 0.03])
    covariance[0, 6] = covariance[6, 0] = 0.05
    estimate = Estimate(
        3.2,
        np.array((1.0, 2.0, 3.0)),
        np.array((0.0, 0.0, half, half)),
        np.array((0.0, 5.0, -1.0)),
        np.array((0.1, 0.2, 0.3)),
        covariance,
    )
    gyro = np.diag([1e-5, 2e-5, 3e-5])
    message = through_the_wire(msgs.estimate_to_odometry(estimate, "car", rates=gyro))
    assert (message.header.frame_id, message.child_frame_id) == ("map", "car/base_link")

    linear = message.twist.twist.linear
    assert (linear.x, linear.y, linear.z) == pytest.approx((5.0, 0.0, -1.0))  # in the body's axes

    pose = message.pose.covariance.reshape(6, 6)
    assert np.diag(pose) == pytest.approx((1.0, 2.0, 3.0, 0.01, 0.02, 0.03))
    assert pose[0, 3] == pytest.approx(0.05)

    twist = np.diag(message.twist.covariance.reshape(6, 6))
    assert twist == pytest.approx((0.5, 0.4, 0.6, 1e-5, 2e-5, 3e-5))

    back = msgs.odometry_to_estimate(message)
    for name in Estimate._fields:
        assert getattr(back, name) == pytest.approx(getattr(estimate, name), abs=1e-12), name
    bare = msgs.odometry_to_estimate(
        msgs.estimate_to_odometry(estimate._replace(covariance=None), "car", rates=gyro)
    )
    assert bare.covariance is None

    bad = nav_msgs.Odometry()
    bad.pose.pose.orientation.w = 0.0
    with pytest.raises(SensorMessageError, match="orientation"):
        msgs.odometry_to_estimate(bad)
