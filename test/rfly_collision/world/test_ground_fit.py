# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles on the ground: a plane by its analytic slope, a ridge and a step by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_collision.world.ground_fit import stand_on_ground
from rfly_common.frames import euler_to_quat, quat_rotate
from rfly_terrain.height_map.height_map import HeightMap

EAST = 0.0
NORTH = math.pi / 2


def ground(height):
    """Return samples every metre within 20 m of the origin."""
    axis = np.arange(-20.0, 21.0)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return HeightMap(height(x, y), origin_x=-20.0, origin_y=-20.0, step_x=1.0, step_y=1.0)


def stand(
    terrain, yaw, centre_height=0.5, upright=False, position=(0.0, 0.0, 99.0), euler=(0.3, -0.2)
):
    """Stand a vehicle of 4 x 2 m on the ground."""
    quat = euler_to_quat(np.array([[*euler, yaw]]))
    return stand_on_ground(
        terrain,
        np.array([position]),
        quat,
        np.array([centre_height]),
        np.array([[4.0, 2.0]]),
        np.array([upright]),
    )


@pytest.mark.parametrize("yaw", [EAST, NORTH, 0.4, -2.5])
def test_on_a_plane_the_body_stands_along_it(yaw):
    """The body stands along the plane z = 5 + 0.3 x - 0.2 y.

    Its z axis is the normal, and the origin lies 0.5 m off the plane along it.
    """
    terrain = ground(lambda x, y: 5 + 0.3 * x - 0.2 * y)
    position, orientation = stand(terrain, yaw, position=(3.0, -4.0, 0.0))
    normal = np.array([-0.3, 0.2, 1]) / math.sqrt(1 + 0.13)
    assert quat_rotate(orientation, np.array([[0.0, 0, 1]]))[0] == pytest.approx(normal, abs=1e-6)
    assert position[0, :2].tolist() == [3, -4]
    assert (position[0] - (0, 0, 5)) @ normal == pytest.approx(0.5, abs=1e-6)
    forward = quat_rotate(orientation, np.array([[1.0, 0, 0]]))[0]
    assert math.atan2(forward[1], forward[0]) == pytest.approx(yaw, abs=1e-6)


def test_upright_ones_stand_under_their_origin():
    position, orientation = stand(
        ground(lambda x, y: 0.5 * x), NORTH, upright=True, position=(2.0, 0.0, 0.0)
    )
    assert position[0].tolist() == pytest.approx([2, 0, 1.5])
    assert orientation[0] == pytest.approx(euler_to_quat(np.array([0.3, -0.2, NORTH])))


def test_on_a_ridge_and_in_a_valley_no_wheel_is_below_ground():
    """No wheel is below the ground |x|, with the wheels at ±1.4 m.

    The plane lies on all wheels, 1.4 m up, in the valley. On the ridge the origin touches, 1.4 m
    above the ground under the wheels.
    """
    valley, _ = stand(ground(lambda x, y: abs(x)), EAST, centre_height=0.0)
    ridge, _ = stand(ground(lambda x, y: -abs(x)), EAST, centre_height=0.0)
    assert (valley[0, 2], ridge[0, 2]) == pytest.approx((1.4, 0))


def test_one_wheel_on_a_bump_lifts_two():
    """A bump of 1 m under the front left corner, at (1.4, 0.9), lifts two wheels.

    The plane, raised by a quarter, touches there and at the rear right, where the ground is 0. Its
    middle is at 1/4 + 1/4.
    """
    terrain = HeightMap(
        [
            [0, 0, 0],
            [0, 0, 0],
            [0, 0, 1.0],
        ],
        origin_x=-1.4,
        origin_y=-0.9,
        step_x=1.4,
        step_y=0.9,
        name="bump",
    )
    position, orientation = stand(terrain, EAST, centre_height=0.0)
    assert position[0, 2] == pytest.approx(0.5)

    corner = quat_rotate(orientation, np.array([[1.0, 0, 0]]))[0]
    assert corner[2] / math.hypot(corner[0], corner[1]) == pytest.approx(1 / (4 * 1.4))


def test_no_vehicles_are_no_problem():
    none = np.empty((0, 3))
    position, orientation = stand_on_ground(
        ground(lambda x, y: x),
        none,
        np.empty((0, 4)),
        np.empty(0),
        np.empty((0, 2)),
        np.empty(0, bool),
    )
    assert (position.shape, orientation.shape) == ((0, 3), (0, 4))
