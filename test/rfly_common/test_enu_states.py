# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""States of any frame in `map`: by hand, and what no vehicle can be is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.transform_buffer import FrameToWorld, Transform
from rfly_common.vehicle_states import VehicleStates, states_to_enu

H = math.sqrt(0.5)
NORTH_IN_MAP = (0, 0, H, H)
NORTH_IN_NED = (1, 0, 0, 0)


def states(position, orientation=NORTH_IN_MAP, **fields):
    n = len(position)
    quat = np.broadcast_to(orientation, (n, 4)).astype(float)
    return VehicleStates(
        np.arange(1, n + 1), np.full(n, 3), np.array(position, float), quat, **fields
    )


def test_map_stays_as_it_is():
    given = states([(1, 2, 3)], velocity=[(4, 5, 6)], stamp_ns=7)
    found, dropped = states_to_enu(given, "enu")
    expected = ([[1, 2, 3]], [[4, 5, 6]])
    assert (found.position.tolist(), found.velocity.tolist()) == expected
    assert (found.stamp_ns, dropped) == (7, {})
    assert found.orientation[0] == pytest.approx(NORTH_IN_MAP)


def test_a_world_frame_does_not_move():
    assert FrameToWorld("ned").motion == (None, None)


def test_ned_is_turned():
    """x north 10, y east 20, 30 m up; heading north, at 2 m/s north and 1 m/s up."""
    found, _ = states_to_enu(
        states([(10, 20, -30)], NORTH_IN_NED, velocity=[(2, 0, -1)], frame_id="map_ned"), "ned"
    )
    assert found.frame_id == "map"
    assert found.position[0] == pytest.approx([20, 10, 30])
    assert found.velocity[0] == pytest.approx([0, 2, 1])
    assert abs(found.orientation[0] @ NORTH_IN_MAP) == pytest.approx(1)


def test_another_frame_is_transformed():
    """A frame at (100, 0, 5) that is turned by 90 degrees to the left: its x is north."""
    transform = Transform(np.array([100.0, 0.0, 5.0]), np.array([0.0, 0.0, H, H]))
    frame = FrameToWorld("enu", transform, is_world=False)
    given = states([(1, 0, 0)], (0, 0, 0, 1), velocity=[(3, 0, 0)])
    found, _ = states_to_enu(given, frame.axes, *frame.motion)
    assert found.position[0] == pytest.approx([100, 1, 5])
    assert found.velocity[0] == pytest.approx([0, 3, 0])
    assert found.orientation[0] == pytest.approx(NORTH_IN_MAP)


def test_what_no_vehicle_can_be_is_left_out_and_counted():
    given = states(
        [
            (0, 0, 0),
            (math.nan, 0, 0),
            (1, 1, 1),
            (2, 2, 2),
        ]
    )
    given.orientation[2] = (0, 0, 0, 0.5)
    given.orientation[3] = (0, 0, 0, 1.0005)
    found, dropped = states_to_enu(given, "enu")
    assert found.id.tolist() == [1, 4]
    assert dropped == {"not_finite": 1, "bad_quaternion": 1}
    assert np.linalg.norm(found.orientation, axis=1) == pytest.approx([1, 1])
