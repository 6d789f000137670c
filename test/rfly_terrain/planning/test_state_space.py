# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""States and motions: distances by hand, validity against the map's own answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_terrain import (
    BinaryOccupancyMap,
    NavPath,
    OccupancyMap,
    StateSpaceSE2,
    ValidatorOccupancyMap,
)

# on edges of cells of half a metre, and between them
coordinate = st.one_of(st.floats(-1, 6), st.integers(-2, 12).map(lambda n: n / 2))


def test_defaults_are_those_of_matlab():
    space = StateSpaceSE2()
    assert np.asarray(space.StateBounds).tolist() == [
        [-100, 100],
        [-100, 100],
        [-math.pi, math.pi],
    ]
    assert (space.WeightXY, space.WeightTheta) == (1.0, 0.1)
    validator = ValidatorOccupancyMap()
    assert validator.Map.GridSize == (10, 10)
    assert validator.ValidationDistance == math.inf


def test_distances_and_motions_take_the_shorter_turn():
    space = StateSpaceSE2(WeightXY=2, WeightTheta=0.5)
    a = [1, 2, 3.0]
    b = [4, 6, -3.0]
    turn = 2 * math.pi - 6
    assert space.distance(a, b) == pytest.approx([math.sqrt(2 * 25 + 0.5 * turn**2)])
    half = space.interpolate(a, b, [0, 0.5, 1])
    assert half[1, :2].tolist() == [2.5, 4]
    assert half[1, 2] == pytest.approx(-math.pi)
    assert half[[0, 2]] == pytest.approx(np.array([a, b]))


def test_samples_and_bounds():
    space = StateSpaceSE2([[0, 1], [2, 3], [0, 0.5]])
    samples = space.sample_uniform(500, np.random.default_rng(1))
    assert (samples >= [0, 2, 0]).all()
    assert (samples <= [1, 3, 0.5]).all()
    assert samples.mean(axis=0) == pytest.approx([0.5, 2.5, 0.25], abs=0.05)
    assert space.enforce_state_bounds([[5, 0, 0.2]]).tolist() == [[1, 2, 0.2]]


@given(coordinate, coordinate)
def test_validity_is_what_the_map_says(x, y):
    cells = np.random.default_rng(4).random((10, 10)) < 0.5
    occupancy = BinaryOccupancyMap.from_matrix(cells, 2)
    validator = ValidatorOccupancyMap(map=occupancy)
    valid = validator.is_state_valid([x, y, 0])[0]
    assert valid == (occupancy.check_occupancy([[x, y]])[0] == 0)


def test_unknown_cells_and_states_outside_of_the_bounds_are_not_valid():
    m = OccupancyMap([[0.1, 0.5, 0.9]])
    validator = ValidatorOccupancyMap(Map=m)
    states = [[0.5, 0.5, 0], [1.5, 0.5, 0], [2.5, 0.5, 0], [0.5, 0.5, 4], [0.2, 0.5, 0]]
    assert validator.isStateValid(states).tolist() == [True, False, False, False, True]
    validator.state_space.state_bounds = [[0.3, 3], [0, 1], [-5, 5]]
    assert validator.isStateValid(states).tolist() == [True, False, False, True, False]


def test_a_motion_is_valid_up_to_the_wall():
    occupancy = BinaryOccupancyMap(10, 10)
    occupancy.set_occupancy([[5.5, 0.5]], 1)
    validator = ValidatorOccupancyMap(map=occupancy, validation_distance=0.4)
    valid, last = validator.is_motion_valid([0.5, 0.5, 0], [9.5, 0.5, 0])
    assert not valid
    # x = 0.5 + 0.4 k: 4.9 is the last before the cell from 5 on, 5.0 belongs to the cell before
    assert last == pytest.approx([4.9, 0.5, 0])
    valid, last = validator.is_motion_valid([0.5, 1.5, 0], [9.5, 1.5, 1])
    assert valid
    assert last == pytest.approx([9.5, 1.5, 1])
    valid, last = validator.is_motion_valid([5.5, 0.5, 0], [9.5, 1.5, 0])
    assert not valid
    assert np.isnan(last).all()


def test_without_a_validation_distance_only_the_ends_are_checked():
    occupancy = BinaryOccupancyMap(10, 10)
    occupancy.set_occupancy([[5.5, 0.5], [9.5, 0.5]], 1)
    validator = ValidatorOccupancyMap(map=occupancy)
    assert validator.is_motion_valid([0.5, 0.5, 0], [8.5, 0.5, 0])[0]
    valid, last = validator.is_motion_valid([0.5, 0.5, 0], [9.5, 0.5, 0])
    assert not valid
    assert last == pytest.approx([0.5, 0.5, 0])


def test_the_length_of_a_path():
    path = NavPath(np.array([[0, 0, 0], [3, 4, 0], [3, 5, 0]], float), StateSpaceSE2())
    assert path.length == pytest.approx(6)
    assert path.NumStates == 3
    assert NavPath(np.empty((0, 3)), StateSpaceSE2()).length == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: StateSpaceSE2([[1, 0], [0, 1], [0, 1]]), r"expected \[min, max\]"),
        (lambda: StateSpaceSE2(weight_theta=-1), "weight_theta: -1"),
        (lambda: ValidatorOccupancyMap(map=[[0]]), "map: list, expected an occupancy map"),
        (lambda: ValidatorOccupancyMap(state_space=1), "state_space: int"),
        (lambda: ValidatorOccupancyMap(validation_distance=0), "validation_distance: 0"),
        (lambda: ValidatorOccupancyMap().is_state_valid([1, 2]), "states: the shape"),
    ],
)
def test_bad_arguments_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
