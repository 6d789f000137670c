# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames by signed examples worked out by hand, and by matrices that are built from the definition
of the axes.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from rfly_common import frames as f
from rfly_common.kernels import vectors as kernels

H = math.sqrt(0.5)
angles = st.floats(-math.pi, math.pi)
numbers = st.floats(-1e6, 1e6)


def matrix(quat):
    """Rotation matrix of one quaternion, column by column: where each axis of the inner frame
    points.
    """
    return np.stack([f.quat_rotate(quat, axis) for axis in np.eye(3)], axis=-1)


def euler_matrix(roll, pitch, yaw):
    """R_z(yaw) R_y(pitch) R_x(roll), the textbook product."""
    cr, sr, cp, sp, cy, sy = (g(a) for a in (roll, pitch, yaw) for g in (math.cos, math.sin))
    rx = np.array(
        [
            [1, 0, 0],
            [0, cr, -sr],
            [0, sr, cr],
        ]
    )
    ry = np.array(
        [
            [cp, 0, sp],
            [0, 1, 0],
            [-sp, 0, cp],
        ]
    )
    rz = np.array(
        [
            [cy, -sy, 0],
            [sy, cy, 0],
            [0, 0, 1],
        ]
    )
    return rz @ ry @ rx


def assert_same_angles(got, expected):
    """Assert equal angles within rounding; -π and π are the same heading."""
    difference = np.abs(np.subtract(got, expected))
    np.testing.assert_allclose(np.minimum(difference, 2 * math.pi - difference), 0, atol=1e-14)


ENU_OF_NED = np.array(
    [
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, -1],
    ]
)
FLU_OF_FRD = np.diag([1, -1, -1])


def test_position_by_hand():
    """1 north, 2 east, 3 down is 2 east, 1 north, -3 up."""
    np.testing.assert_array_equal(f.ned_to_enu([1.0, 2.0, 3.0]), [2.0, 1.0, -3.0])
    np.testing.assert_array_equal(f.enu_to_ned([2.0, 1.0, -3.0]), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f.flu_to_frd([1.0, 2.0, 3.0]), [1.0, -2.0, -3.0])


def test_a_turned_zero_is_no_negative_zero():
    """A turned zero has the bytes of 0.0 on the wire."""
    for turned in (
        f.ned_to_enu([0.0, 0.0, 0.0]),
        f.enu_to_ned([0.0, 0.0, 0.0]),
        f.flu_to_frd([0.0, 0.0, 0.0]),
    ):
        assert turned.tobytes() == bytes(24)
    position, euler = f.pose_enu_to_ned_euler(0.0, 0.0, 0.0, 0.0, 0.0, H, H)
    assert np.array([*position, *euler]).tobytes() == bytes(48)
    assert math.copysign(1.0, f.up_to_down(0.0)) == 1.0


def test_a_nan_stays_in_its_own_axis():
    """Axes are exchanged, not multiplied by a matrix."""
    np.testing.assert_array_equal(f.ned_to_enu([math.nan, 2.0, 3.0]), [2.0, math.nan, -3.0])


@pytest.mark.parametrize(
    ("quat_enu", "euler"),
    [
        pytest.param((0, 0, 0, 1), (0, 0, math.pi / 2), id="level, east"),
        pytest.param((0, 0, H, H), (0, 0, 0), id="level, north"),
        pytest.param((0, 0, 1, 0), (0, 0, -math.pi / 2), id="level, west"),
        pytest.param((0, 0, -H, H), (0, 0, math.pi), id="level, south"),
        # nose up by 30 degrees, heading east: about -y of ENU by 30 degrees
        pytest.param(
            (0, -math.sin(math.pi / 12), 0, math.cos(math.pi / 12)),
            (0, math.pi / 6, math.pi / 2),
            id="nose up",
        ),
        # right side down by 30 degrees, heading east: about +x of ENU by 30 degrees
        pytest.param(
            (math.sin(math.pi / 12), 0, 0, math.cos(math.pi / 12)),
            (math.pi / 6, 0, math.pi / 2),
            id="right down",
        ),
    ],
)
def test_attitude_in_map_by_hand(quat_enu, euler):
    """A ROS orientation in `map` becomes RflySim's roll, pitch, yaw."""
    got = f.quat_to_euler(f.quat_enu_flu_to_ned_frd(np.array(quat_enu, float)))
    wrapped = f.wrap_angle(got - np.array(euler))
    np.testing.assert_allclose(np.abs(wrapped) % (2 * math.pi), 0, atol=1e-12)


def test_level_and_north_in_map_ned_is_half_a_turn_about_x():
    """design: xyzw (1, 0, 0, 0) in `map_ned` is level and heading north."""
    np.testing.assert_allclose(
        f.quat_to_euler(f.quat_ned_flu_to_ned_frd([1.0, 0, 0, 0])), 0, atol=1e-15
    )


@given(angles, st.floats(-math.pi / 2, math.pi / 2), angles)
def test_attitudes_agree_with_matrices_of_the_axes(roll, pitch, yaw):
    """Attitude conversions are R_ned_frd = P R_enu_flu Q with axis permutations P and Q."""
    quat = f.euler_to_quat([roll, pitch, yaw])
    r_ned_frd = euler_matrix(roll, pitch, yaw)

    np.testing.assert_allclose(matrix(quat), r_ned_frd, atol=1e-12)

    np.testing.assert_allclose(
        matrix(f.quat_ned_frd_to_enu_flu(quat)), ENU_OF_NED @ r_ned_frd @ FLU_OF_FRD, atol=1e-12
    )
    np.testing.assert_allclose(
        matrix(f.quat_ned_frd_to_ned_flu(quat)), r_ned_frd @ FLU_OF_FRD, atol=1e-12
    )

    there_and_back = f.quat_enu_flu_to_ned_frd(f.quat_ned_frd_to_enu_flu(quat))
    np.testing.assert_allclose(matrix(there_and_back), r_ned_frd, atol=1e-12)
    there_and_back = f.quat_ned_flu_to_ned_frd(f.quat_ned_frd_to_ned_flu(quat))
    np.testing.assert_allclose(matrix(there_and_back), r_ned_frd, atol=1e-12)


@given(angles, st.floats(-math.pi / 2, math.pi / 2), angles)
def test_euler_angles_give_the_same_rotation_back(roll, pitch, yaw):
    """The rotation is the same even at pitch ±90°, where roll and yaw are not unique."""
    again = f.quat_to_euler(f.euler_to_quat([roll, pitch, yaw]))
    np.testing.assert_allclose(euler_matrix(*again), euler_matrix(roll, pitch, yaw), atol=1e-7)
    assert np.all(np.abs(again) <= math.pi)
    assert abs(again[1]) <= math.pi / 2 + 1e-12


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("roll", "yaw"), [(0.3, 1.1), (-2.0, 0.4), (0.0, 0.0)])
def test_straight_up_and_down(sign, roll, yaw):
    """The rotation survives pitch ±90°, though its angles are not unique."""
    again = f.quat_to_euler(f.euler_to_quat([roll, sign * math.pi / 2, yaw]))
    np.testing.assert_allclose(
        euler_matrix(*again), euler_matrix(roll, sign * math.pi / 2, yaw), atol=1e-7
    )


@given(st.tuples(numbers, numbers, numbers), angles, st.floats(-1.57, 1.57), angles)
def test_plain_float_poses_equal_the_arrays(position, roll, pitch, yaw):
    """The quick path for one pose computes what the array path computes."""
    quat = f.quat_ned_frd_to_enu_flu(f.euler_to_quat([roll, pitch, yaw]))
    got_position, got_euler = f.pose_enu_to_ned_euler(*position, *quat)
    np.testing.assert_array_equal(got_position, f.enu_to_ned(np.array(position)))
    assert_same_angles(got_euler, f.quat_to_euler(f.quat_enu_flu_to_ned_frd(quat)))
    quat = f.quat_ned_frd_to_ned_flu(f.euler_to_quat([roll, pitch, yaw]))
    got_position, got_euler = f.pose_ned_to_ned_euler(*position, *quat)
    assert got_position == position
    assert_same_angles(got_euler, f.quat_to_euler(f.quat_ned_flu_to_ned_frd(quat)))


@given(angles, st.floats(-1.57, 1.57), angles)
def test_rotation_matrices(roll, pitch, yaw):
    """Matrices of one quaternion and of many, of any length; the kernels' are the same."""
    r = euler_matrix(roll, pitch, yaw)
    quat = f.euler_to_quat([roll, pitch, yaw])
    np.testing.assert_allclose(f.rotation_matrix(quat), r, atol=1e-12)
    many = f.rotation_matrix([[-3.0 * quat, [H, 0.0, 0.0, H]]])
    assert many.shape == (1, 2, 3, 3)
    np.testing.assert_allclose(many[0, 0], r, atol=1e-12)
    expected = [
        [1, 0, 0],
        [0, 0, -1],
        [0, 1, 0],
    ]
    np.testing.assert_allclose(many[0, 1], expected, atol=1e-12)
    plain = getattr(kernels.rotation_matrix, "py_func", kernels.rotation_matrix)
    np.testing.assert_allclose(plain(*(0.5 * quat)), r.ravel(), atol=1e-12)


def test_the_static_transform_takes_ned_axes_into_map():
    """map -> map_ned: north (x of map_ned) is y of map, east is x, down is -z."""
    np.testing.assert_allclose(matrix(np.array(f.QUAT_ENU_NED_XYZW)), ENU_OF_NED, atol=1e-15)


@pytest.mark.parametrize(
    ("angle", "wrapped"),
    [
        (0.0, 0.0),
        (math.pi, math.pi),
        (-math.pi, math.pi),
        (3 * math.pi, math.pi),
        (4.0, 4.0 - 2 * math.pi),
        (-0.1, -0.1),
    ],
)
def test_wrap_angle(angle, wrapped):
    """Into (-π, π]; π itself stays."""
    assert f.wrap_angle(angle) == pytest.approx(wrapped, abs=1e-12)


def test_heading_north_is_yaw_ninety_degrees():
    """Yaw of ENU counts from east, counter-clockwise; heading of NED from north, clockwise."""
    assert f.yaw_ned_to_enu(0.0) == pytest.approx(math.pi / 2)
    assert f.yaw_ned_to_enu(math.pi / 2) == pytest.approx(0.0)
    assert f.yaw_ned_to_enu(-math.pi / 2) == pytest.approx(math.pi)


@pytest.mark.parametrize("bad", [[1.0, 2.0], 3.0, np.zeros((2, 4))])
def test_a_wrong_shape_is_named(bad):
    """The error says which argument and which shape."""
    with pytest.raises(ValueError, match=r"vector_ned: expected shape \(\.\.\., 3\)"):
        f.ned_to_enu(bad)


@given(st.tuples(numbers, numbers, numbers), st.tuples(angles, angles, angles))
def test_poses_from_the_wire_agree_with_the_array_functions(position, euler):
    quat = f.euler_to_quat(euler)
    enu, quat_enu = f.pose_ned_euler_to_enu(position, euler)
    ned, quat_ned = f.pose_ned_euler_to_ned(position, euler)
    np.testing.assert_array_equal(enu, f.ned_to_enu(np.array(position)))
    assert ned == position
    np.testing.assert_allclose(quat_enu, f.quat_ned_frd_to_enu_flu(quat), atol=1e-15)
    np.testing.assert_allclose(quat_ned, f.quat_ned_frd_to_ned_flu(quat), atol=1e-15)


def test_pose_from_the_wire_by_hand():
    """Level and heading north: a quarter turn in ENU; half a turn about x in NED, where FLU looks
    down.
    """
    expected = (
        (2.0, 1.0, 3.0),
        (0.0, 0.0, H, H),
    )
    assert f.pose_ned_euler_to_enu((1.0, 2.0, -3.0), (0.0, 0.0, 0.0)) == expected
    expected = (
        (1.0, 2.0, -3.0),
        (1.0, 0.0, 0.0, 0.0),
    )
    assert f.pose_ned_euler_to_ned((1.0, 2.0, -3.0), (0.0, 0.0, 0.0)) == expected


@given(st.lists(numbers, min_size=11, max_size=11))
def test_one_alone_and_in_a_batch_are_the_same_bit_by_bit(given_numbers):
    a = np.array(given_numbers[:4])
    b = np.array(given_numbers[4:8])
    v = np.array(given_numbers[8:])
    assert f.quat_multiply(a, b).tolist() == f.quat_multiply(a[None], b)[0].tolist()
    assert f.quat_rotate(a, v).tolist() == f.quat_rotate(a[None], v)[0].tolist()


@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-5, 1e-3, 1.0, 3.1])
def test_slerp_turns_at_a_constant_rate_the_short_way(apart):
    rng = np.random.default_rng(5)
    axis = rng.standard_normal(3)
    first = Rotation.random(random_state=6)
    last = Rotation.from_rotvec(apart * axis / np.linalg.norm(axis)) * first
    share = np.linspace(0.0, 1.0, 11)
    for sign in (1.0, -1.0):
        a = np.tile(first.as_quat(), (11, 1))
        b = np.tile(sign * last.as_quat(), (11, 1))
        got = f.quat_slerp(a, b, share[:, None])
        assert np.linalg.norm(got, axis=1) == pytest.approx(1.0, abs=1.2e-9)
        between = Slerp([0.0, 1.0], Rotation.concatenate([first, last]))(share)
        assert (between.inv() * Rotation.from_quat(got)).magnitude().max() < 1e-9


@pytest.mark.parametrize("angle", [0.0, 1e-13, 1e-11, 1e-6, 0.5, 3.0, math.pi - 1e-9])
def test_rotation_vectors_are_those_of_the_shorter_turn(angle):
    axes = np.array(((1.0, 0.0, 0.0), (0.6, 0.0, -0.8), (-2.0, 1.0, 2.0) / np.float64(3.0)))
    quat = np.column_stack([math.sin(angle / 2) * axes, np.full(3, math.cos(angle / 2))])
    for sign in (1.0, -1.0):
        assert f.rotation_vectors(sign * quat) == pytest.approx(angle * axes, rel=1e-12, abs=1e-24)
