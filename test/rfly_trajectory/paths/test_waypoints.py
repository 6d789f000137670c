# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Paths through given points and the ways onto them.

They are compared with circles, corners by hand and each other's joints.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_trajectory.paths.shapes import Polyline
from rfly_trajectory.paths.waypoints import MovingPose, path_through, transition_to

CORNER = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 80.0]])


def check_joints(path):
    """Check that pieces have the same place and heading where they meet.

    The path in between is as long as its arc length.
    """
    s = path.start[1:]
    before = path.at(s - 1e-7)
    after = path.at(s + 1e-7)
    np.testing.assert_allclose(after.position - before.position, 2e-7 * after.tangent, atol=3e-7)
    # a joint turns by no more than what its pieces turn on the way, at hairpins through points that
    # nearly coincide
    turned = 2e-7 * np.maximum(np.abs(before.curvature), np.abs(after.curvature))
    assert (np.abs(before.tangent - after.tangent) <= 1e-5 + turned[:, None]).all()
    s = np.linspace(0.0, path.length, 4001)
    way = np.hypot(*np.diff(path.at(s).position, axis=0).T).sum()
    assert way == pytest.approx(path.length, rel=2e-3)


def test_points_of_a_curve_are_joined_smoothly():
    """Samples every 2° of a quarter circle of 50 m give its length and curvature, no corners."""
    angle = np.radians(np.arange(0.0, 91.0, 2.0))
    path = path_through(50.0 * np.column_stack([np.cos(angle), np.sin(angle)]), 20.0)
    assert path.length == pytest.approx(50.0 * math.pi / 2, rel=1e-5)
    s = np.linspace(10.0, path.length - 10.0, 50)
    np.testing.assert_allclose(np.hypot(*path.at(s).position.T), 50.0, atol=1e-4)
    np.testing.assert_allclose(path.at(s).curvature, 0.02, rtol=5e-3)


def test_corners_with_room_are_those_of_a_polyline():
    path = path_through(CORNER, 12.0)
    expected = Polyline(CORNER.tolist(), 12.0).path()
    assert path.length == pytest.approx(expected.length, rel=1e-12)
    s = np.linspace(0.0, path.length, 200)
    np.testing.assert_allclose(path.at(s).position, expected.at(s).position, atol=1e-9)


def test_corners_without_room_are_tighter_and_stay_beside_their_lines():
    """Corners of stairs of 2 m each take half of their lines.

    The path therefore passes through the middles of all lines.
    """
    stairs = np.array(
        [
            [0, 0],
            [2, 0],
            [2, 2],
            [4, 2],
            [4, 4],
            [6, 4],
        ],
        float,
    )
    path = path_through(stairs, 15.0)
    check_joints(path)
    points = path.at(np.linspace(0.0, path.length, 2000)).position
    for middle in [[2, 1], [3, 2], [4, 3]]:
        assert np.hypot(*(points - middle).T).min() < 0.01

    np.testing.assert_allclose(path.at([0.0, path.length]).position, stairs[[0, -1]], atol=1e-9)


def test_heights_are_those_of_the_points():
    """The height in the middle of a corner is the corner's; repeated points count once."""
    points = np.column_stack([np.repeat(CORNER, 2, axis=0), [10, 10, 20, 20, 15, 15]])
    path = path_through(points, 12.0)
    assert path.altitude is not None
    np.testing.assert_allclose(path.altitude.values[:, 0], [10.0, 20.0])
    turn_middle = path.altitude.start[1]
    x, y = path.at(turn_middle).position
    assert x - 50 == pytest.approx(50 - y, abs=1e-9)  # on the bisector of the corner


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], "all of them are in one place"),
        ([[0.0, 0.0], [5.0, 0.0], [1.0, 0.0]], "turns straight back at x 5.00, y 0.00"),
    ],
)
def test_points_that_make_no_path_are_refused(points, text):
    with pytest.raises(ConfigError, match=text):
        path_through(np.array(points), 5.0)


def test_a_vehicle_that_is_on_its_way_already_goes_on():
    """A vehicle 30 m along the first line leaves out the part behind it and drives the rest."""
    path = path_through(CORNER, 12.0)
    joined = transition_to(path, MovingPose(30.0, 0.0, 0.0), 12.0)
    assert joined.length == pytest.approx(path.length - 30.0, abs=1e-9)
    s = np.linspace(0.0, joined.length, 100)
    np.testing.assert_allclose(joined.at(s).position, path.at(s + 30.0).position, atol=1e-6)


def test_a_vehicle_beside_the_path_joins_it_ahead():
    """A vehicle 4 m left of the line, 20 m along, makes no loop and no detour to its start."""
    path = path_through(CORNER, 12.0)
    joined = transition_to(path, MovingPose(20.0, 4.0, 0.0), 12.0)
    check_joints(joined)
    assert path.length - 20.0 < joined.length < path.length - 20.0 + 4.0
    assert np.abs(joined.at(np.linspace(0.0, joined.length, 500)).curvature).max() < 1 / 12.0 + 1e-9


@pytest.mark.parametrize("place", [MovingPose(-60.0, 40.0, 2.0), MovingPose(20.0, 4.0, math.pi)])
def test_a_vehicle_that_is_elsewhere_or_turned_away_begins_at_the_start(place):
    path = path_through(CORNER, 12.0)
    joined = transition_to(path, place, 12.0)
    check_joints(joined)
    distance = np.hypot(*joined.at(np.linspace(0.0, joined.length, 20_000)).position.T)
    assert distance.min() < 0.02
    joint = joined.length - path.length
    later = np.array([0.0, 50.0, 150.0])
    np.testing.assert_allclose(
        joined.at(joint + later).position, path.at(later).position, atol=1e-9
    )


def test_a_vehicle_at_the_end_has_nothing_to_follow():
    assert (
        transition_to(path_through(CORNER, 12.0), MovingPose(100.0, 80.0, math.pi / 2), 12.0)
        is None
    )


def test_a_path_too_far_away_is_refused():
    with pytest.raises(ConfigError, match=r"poses\[0\]: it is 1100 m from the vehicle"):
        transition_to(path_through(CORNER, 12.0), MovingPose(0.0, -1100.0, 0.0), 12.0)


coordinates = st.floats(-80.0, 80.0)


@settings(deadline=None)
@given(
    st.lists(st.tuples(coordinates, coordinates, st.floats(0, 30)), min_size=2, max_size=7),
    st.builds(
        MovingPose,
        coordinates,
        coordinates,
        st.floats(-4, 4),
        st.floats(0, 30),
        st.floats(-0.3, 0.3),
    ),
    st.floats(0.5, 20.0),
    st.booleans(),
)
def test_every_way_onto_every_path_is_one_smooth_path(points, place, radius, flies):
    """Every way onto every path leads smoothly from the vehicle to the last point.

    It begins with the vehicle's place, heading, height and climb, and has no jump or corner.
    """
    points = np.array(points)[:, : 3 if flies else 2]
    try:
        path = path_through(points, radius)
    except ConfigError:
        assume(False)

    joined = transition_to(path, place, radius)
    if joined is None:
        np.testing.assert_allclose(path.at(path.length).position, place[:2], atol=2e-3)
        return

    check_joints(joined)
    first = joined.at(0.0)
    last = joined.at(joined.length)
    np.testing.assert_allclose(first.position, place[:2], atol=1e-6)
    expected = [math.cos(place.heading), math.sin(place.heading)]
    np.testing.assert_allclose(first.tangent, expected, atol=1e-6)
    np.testing.assert_allclose(last.position, path.at(path.length).position, atol=1e-6)

    # heights go on without a step, too
    if flies:
        profile = joined.altitude
        assert profile is not None
        np.testing.assert_allclose(profile.values[0, :2], [place.z, place.climb], atol=1e-9)
        run = np.diff(profile.start)[:, None]
        c = profile.values
        ends = c[:-1, 0:1] + run * (c[:-1, 1:2] + run * (c[:-1, 2:3] + run * c[:-1, 3:4]))
        climbs = c[:-1, 1:2] + run * (2 * c[:-1, 2:3] + 3 * run * c[:-1, 3:4])
        np.testing.assert_allclose(ends[:, 0], c[1:, 0], atol=1e-6)
        np.testing.assert_allclose(climbs[:, 0], c[1:, 1], atol=1e-6)
