# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Poses of sensors between RflySim3D's axes and those of ROS, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.frames import quat_rotate
from rfly_ue_bridge import VisionSensor
from rfly_ue_bridge.sensors.mounting import mount_pose, turn_points, with_mount_pose

FORWARD, LEFT, UP = np.eye(3)
ANGLES = st.floats(-179.0, 179.0)


def looks(sensor):
    """Return where the sensor's x and z axes point in the ROS axes of its mount."""
    _, quat = mount_pose(sensor)
    return quat_rotate(quat, FORWARD), quat_rotate(quat, UP)


@pytest.mark.parametrize("mount", [0, 1, 4])
def test_pose_on_a_vehicle(mount):
    """Pitch 90° looks up; yaw 90° looks right; roll 90° puts the right side down."""
    place, _ = mount_pose(VisionSensor(0, 1, mount=mount, position=(1.0, 2.0, 3.0)))
    assert place.tolist() == [1.0, -2.0, -3.0]

    def turned(roll, pitch, yaw):
        return looks(VisionSensor(0, 1, mount=mount, euler_deg=(roll, pitch, yaw)))

    np.testing.assert_allclose(turned(0, 90, 0), (UP, -FORWARD), atol=1e-9)
    np.testing.assert_allclose(turned(0, 0, 90), (-LEFT, UP), atol=1e-9)
    np.testing.assert_allclose(turned(90, 0, 0), (FORWARD, -LEFT), atol=1e-9)


@pytest.mark.parametrize("mount", [2, 3])
def test_pose_in_the_axes_of_the_earth(mount):
    """The place (1 north, 2 east, 3 down) is (2, 1, -3) on the map; yaw 90° looks east."""
    north = VisionSensor(0, 1, mount=mount, position=(1.0, 2.0, 3.0))
    assert mount_pose(north)[0].tolist() == [2.0, 1.0, -3.0]
    np.testing.assert_allclose(looks(north), ([0, 1, 0], [0, 0, 1]), atol=1e-9)
    east = VisionSensor(0, 1, mount=mount, euler_deg=(0.0, 0.0, 90.0))
    np.testing.assert_allclose(looks(east), ([1, 0, 0], [0, 0, 1]), atol=1e-9)
    down = VisionSensor(0, 1, mount=mount, euler_deg=(0.0, -90.0, 0.0))
    np.testing.assert_allclose(looks(down), ([0, 0, -1], [0, 1, 0]), atol=1e-9)


@given(st.integers(0, 4), ANGLES, st.floats(-89.0, 89.0), ANGLES)
def test_a_pose_and_back(mount, roll, pitch, yaw):
    sensor = VisionSensor(
        0, 1, mount=mount, position=(1.0, -2.0, 0.5), euler_deg=(roll, pitch, yaw)
    )
    back = with_mount_pose(sensor, *mount_pose(sensor))
    assert back.position == pytest.approx(sensor.position)
    assert back.euler_deg == pytest.approx(sensor.euler_deg, abs=1e-5)


def test_a_quaternion_counts_where_it_is_said_to():
    half = math.sqrt(0.5)
    sensor = VisionSensor(0, 1, euler_or_quat=1.0, quat_xyzw=(0.0, half, 0.0, half))
    np.testing.assert_allclose(looks(sensor)[0], UP, atol=1e-9)


@pytest.mark.parametrize(
    ("axes", "turned"),
    [
        ("flu", [1.0, 2.0, 3.0, 4.0]),
        ("frd", [1.0, -2.0, -3.0, 4.0]),
        ("ned", [2.0, 1.0, -3.0, 4.0]),
        ("nwu", [-2.0, 1.0, 3.0, 4.0]),
        ("neu", [2.0, 1.0, 3.0, 4.0]),
    ],
)
def test_points_in_the_axes_of_ros(axes, turned):
    points = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)
    result = turn_points(points, axes)
    assert result.dtype == np.float32
    assert result.tolist() == [turned]
