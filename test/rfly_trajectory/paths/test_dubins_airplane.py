# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dubins paths in space: ends that are met, angles within their limits, no shorter way found."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_trajectory import DubinsAirplane, dubins_path

coordinate = st.floats(-150, 150)
heading = st.floats(-math.pi, math.pi)
pose = st.tuples(coordinate, coordinate, coordinate, heading)


def flown(path, step=0.01):
    """The end of a path by small steps: along the heading, turning by the radius of the motion."""
    x, y, z, course = path.start_pose.tolist()
    level = math.cos(path.flight_path_angle)
    for kind, length in zip(path.motion_types, path.motion_lengths.tolist(), strict=True):
        radius = path.helix_radius if "H" in kind else path.min_turning_radius
        turn = {"L": -1, "R": 1, "Hl": -1, "Hr": 1}.get(kind, 0) / radius
        count = max(1, round(length / step))
        for _ in range(count):
            ds = length / count
            middle = course + 0.5 * turn * ds * level
            x += ds * level * math.cos(middle)
            y += ds * level * math.sin(middle)
            z -= ds * math.sin(path.flight_path_angle)
            course += turn * ds * level
    return x, y, z, course


def test_the_example_of_the_reference_page():
    path = DubinsAirplane().connect([0, 0, 0, 0], [0, 0, 20, math.pi])
    assert path.motion_types == ("R", "L", "R", "N")
    assert path.length == pytest.approx(138.373157, abs=5e-7)
    # three arcs of 60°, 300° and 60° about circles of v²/(g tan φ)
    radius = 100 / (9.8 * math.tan(0.5))
    assert path.length == pytest.approx(math.hypot(radius * math.radians(420), 20))
    assert path.flight_path_angle == pytest.approx(math.atan2(-20, radius * math.radians(420)))


def test_straight_ahead():
    path = DubinsAirplane(air_speed=20, max_roll_angle=0.6).connect(
        [0, 0, 0, 0.5], [100 * math.cos(0.5), 100 * math.sin(0.5), -30, 0.5]
    )
    assert path.length == pytest.approx(math.hypot(100, 30))
    assert path.interpolate([path.length / 2])[0] == pytest.approx(
        [50 * math.cos(0.5), 50 * math.sin(0.5), -15, 0.5, math.atan2(30, 100), 0]
    )


def test_a_high_climb_takes_whole_turns_at_the_steepest_angle():
    airplane = DubinsAirplane(FlightPathAngleLimit=[-0.3, 0.2])
    path = airplane.connect([0, 0, 0, 0], [200, 0, -300, 0])
    assert path.flight_path_angle == pytest.approx(0.2)
    assert path.length == pytest.approx(300 / math.sin(0.2))
    helix = [i for i, kind in enumerate(path.motion_types) if "H" in kind]
    assert len(helix) == 1
    level = path.motion_lengths[helix[0]] * math.cos(0.2)
    turns = level / (2 * math.pi * path.helix_radius)
    assert turns == pytest.approx(round(turns))
    assert round(turns) >= 1
    assert path.helix_radius >= path.min_turning_radius
    down = airplane.connect([0, 0, 0, 0], [200, 0, 300, 0])
    assert down.flight_path_angle == pytest.approx(-0.3)


def test_a_medium_climb_takes_one_more_arc():
    """A turn about with a climb of 100 m: too steep for 7π/3 radii, too low for one turn more."""
    airplane = DubinsAirplane()
    path = airplane.connect([0, 0, 0, 0], [0, 0, -100, math.pi])
    assert "N" not in path.motion_types
    assert path.helix_radius == path.min_turning_radius
    assert path.length == pytest.approx(100 / math.sin(0.5))
    assert flown(path)[:3] == pytest.approx([0, 0, -100], abs=1e-3)


@settings(max_examples=40)
@given(pose, pose)
def test_every_path_meets_its_end_within_the_angles(start, goal):
    airplane = DubinsAirplane()
    for path in airplane.connect_all(start, goal):
        if math.isnan(path.length):
            continue
        assert abs(path.flight_path_angle) <= 0.5 + 1e-9
        assert (path.motion_lengths >= 0).all()
        x, y, z, course, angle, _ = path.interpolate([path.length])[0]
        assert (x, y, z) == pytest.approx(goal[:3], abs=1e-3)
        assert math.cos(course - goal[3]) == pytest.approx(1, abs=1e-6)
        assert angle == path.flight_path_angle


@settings(max_examples=15)
@given(pose, pose)
def test_interpolation_is_the_same_as_small_steps(start, goal):
    path = DubinsAirplane().connect(start, goal)
    assert flown(path, 0.2)[:3] == pytest.approx(path.interpolate()[-1, :3], abs=0.05)


@settings(max_examples=40)
@given(pose, pose)
def test_lengths_lie_between_bounds_worked_out_elsewhere(start, goal):
    """The level Dubins path and the climb at its limit bound a path from below.

    The lower bound is met where the level path is long enough for the climb. A whole circle more,
    or a helix at the limit, is an upper one.
    """
    airplane = DubinsAirplane()
    level = float(
        dubins_path(
            (start[0], start[1], start[3]),
            (goal[0], goal[1], goal[3]),
            airplane.min_turning_radius,
        ).length
    )
    rise = abs(goal[2] - start[2])
    path = airplane.connect(start, goal)
    lower = max(math.hypot(level, rise), rise / math.sin(0.5))
    circle = 2 * math.pi * airplane.min_turning_radius
    upper = max(math.hypot(level + circle, rise), rise / math.sin(0.5))
    assert path.length >= lower - 1e-6
    assert path.length <= upper + 1e-4
    if rise <= level * math.tan(0.5):
        assert path.length == pytest.approx(lower, abs=1e-6)


def test_a_climb_on_the_spot_takes_one_turn_at_a_smaller_angle():
    """Same place, same heading, 15 m higher: the shortest way is a circle."""
    path = DubinsAirplane().connect([0, 0, 0, 1], [0, 0, -15, 1])
    circle = 2 * math.pi * path.min_turning_radius
    assert path.length == pytest.approx(math.hypot(circle, 15))
    assert path.flight_path_angle == pytest.approx(math.atan2(15, circle))
    assert path.helix_radius == pytest.approx(path.min_turning_radius)


def test_disabled_types_are_not_used():
    every = DubinsAirplane()
    one = DubinsAirplane(DisabledPathTypes=["RLRN", "LRLN"])
    start = [0, 0, 0, 0]
    goal = [0, 0, 20, math.pi]
    assert one.connect(start, goal).length > every.connect(start, goal).length
    assert len(one.connect_all(start, goal)) == 26
    with pytest.raises(ValueError, match="disabled_path_types: 'SSSN'"):
        DubinsAirplane(DisabledPathTypes=["SSSN"])


def test_poses_between_the_motions():
    path = DubinsAirplane().connect([0, 0, 0, 0], [0, 0, 20, math.pi])
    poses = path.interpolate()
    assert poses.shape == (5, 6)
    assert poses[:3, 5] == pytest.approx([0.5, -0.5, 0.5])  # rolls right, left, right
    assert poses[1, 3] == pytest.approx(math.radians(60))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"air_speed": 0}, "air_speed"),
        ({"max_roll_angle": math.pi / 2}, "less than π/2"),
        ({"flight_path_angle_limit": (0.1, 0.5)}, "a descent of 0 or below"),
    ],
)
def test_bad_properties_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        DubinsAirplane(**options)


def test_bad_poses_are_refused():
    with pytest.raises(ValueError, match="goal: 3 numbers, expected 4"):
        DubinsAirplane().connect([0, 0, 0, 0], [1, 2, 3])
    level_only = DubinsAirplane(flight_path_angle_limit=(0, 0))
    with pytest.raises(ValueError, match="no path"):
        level_only.connect([0, 0, 0, 0], [100, 0, -10, 0])
