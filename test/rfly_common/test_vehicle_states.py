# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Values that vehicle states accept, fill in and refuse."""

import numpy as np
import pytest

from rfly_common.errors import VehicleStatesError
from rfly_common.vehicle_states import VehicleStates

LEVEL = (0.0, 0.0, 0.0, 1.0)


def make(n=2, **arrays):
    given = {
        "id": np.arange(1, n + 1),
        "vehicle_type": np.full(n, 3),
        "position": np.arange(3.0 * n),
        "orientation": np.tile(LEVEL, n),
    }
    return VehicleStates(**{**given, **arrays})


def test_flat_arrays_become_rows_and_empty_ones_their_defaults():
    """Flat arrays of the wire are read vehicle by vehicle."""
    states = make()
    np.testing.assert_array_equal(states.position, [[0, 1, 2], [3, 4, 5]])
    assert states.velocity.shape == states.angular_velocity.shape == (2, 3)
    assert not states.velocity.any()
    expected = np.ones((2, 3))
    np.testing.assert_array_equal(states.scale, expected)
    assert states.motor_speed.shape == (2, 0)
    assert states.fit_ground.tolist() == [False, False]
    assert len(states) == 2


def test_no_vehicle_at_all_is_fine():
    """An empty message is not an error."""
    assert len(make(0)) == 0


@pytest.mark.parametrize(
    "arrays",
    [
        {"vehicle_type": [3]},
        {"position": np.zeros(5)},
        {"position": np.ma.masked_equal([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0]], -1.0)},
        {"orientation": np.zeros(6)},
        {"velocity": np.zeros(3)},
        {"angular_velocity": np.zeros(7)},
        {"scale": np.ones(2)},
        {"fit_ground": [1]},
        {"motor_speed": np.zeros(3)},
        {"motor_speed": np.zeros((2, 9))},
    ],
    ids=lambda a: next(iter(a)),
)
def test_lengths_that_disagree_are_named(arrays):
    """The error names the array."""
    with pytest.raises(VehicleStatesError, match=f"^{next(iter(arrays))}: "):
        make(**arrays)


def test_a_repeated_id_is_named():
    """Each id may come once in a message."""
    with pytest.raises(VehicleStatesError, match="id: 7 is in the message 2 times"):
        make(3, id=[7, 2, 7])


def test_select_keeps_order_and_header():
    """A mask or an index array picks vehicles."""
    states = make(3, frame_id="map_ned", source="/a", stamp_ns=5).select(np.array([2, 0]))
    assert states.id.tolist() == [3, 1]
    assert (states.frame_id, states.source, states.stamp_ns) == ("map_ned", "/a", 5)


@pytest.mark.parametrize("name", ["id", "vehicle_type"])
@pytest.mark.parametrize(
    "wrong", [1.5, 2**31, -(2**31) - 1, 2**32 + 1, np.nan, np.inf], ids=lambda value: f"{value:g}"
)
def test_numbers_that_no_vehicle_can_have_are_not_rounded_or_wrapped(name, wrong):
    """A whole number of 32 bits is taken as it is, of any type; 2^32 + 1 was vehicle 1."""
    with pytest.raises(VehicleStatesError, match=f"{name}: .*, expected whole numbers from -2147"):
        make(**{name: np.array([7, wrong])})
    assert getattr(make(**{name: np.array([7.0, 2.0**31 - 1.0])}), name).tolist() == [7, 2**31 - 1]


def test_rows_and_columns_are_not_exchanged():
    """Three rows of 5 numbers are no positions of five vehicles; nine motors are one too many."""
    with pytest.raises(VehicleStatesError, match=r"position: shape \(3, 5\), expected \(5, 3\)"):
        make(5, position=np.zeros((3, 5)))
    with pytest.raises(VehicleStatesError, match="9 motors a vehicle, expected at most 8"):
        make(5, motor_speed=np.zeros((5, 9)))
