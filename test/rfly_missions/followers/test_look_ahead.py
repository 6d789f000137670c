# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Waypoint and orbit followers: outputs worked out by hand, flags, and vehicles that fly along."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_missions import (
    FixedWingGuidance,
    MissionItem,
    MissionMode,
    OrbitFollower,
    PathManager,
    WaypointFollower,
)

SQUARE = [[0, 0, -10], [100, 0, -10], [100, 100, -10]]
coordinates = st.floats(-200, 200)


def test_the_point_ahead_on_a_line():
    """A vehicle 3 m beside the line, 5 m ahead: 4 m along the line, by Pythagoras."""
    follower = WaypointFollower(waypoints=SQUARE, transition_radius=2)
    output = follower.step([10, 3, -10, 1.0], 5)
    assert output.lookahead_point == pytest.approx([14, 0, -10])
    assert output.desired_course == pytest.approx(math.atan2(-3, 4))
    assert output.desired_yaw == output.desired_course
    assert (output.lookahead_dist_flag, output.status) == (0, 0)
    assert output.cross_track_error == pytest.approx(3)


def test_the_whole_line_is_farther_away_than_the_look_ahead_distance():
    follower = WaypointFollower(waypoints=SQUARE, transition_radius=2)
    output = follower.step([10, 3, -14, 0], 4)
    assert output.lookahead_point == pytest.approx([10, 0, -10])
    assert output.cross_track_error == pytest.approx(5)
    assert output.desired_course == pytest.approx(-math.pi / 2)


def test_the_first_waypoint_is_flown_to_from_behind_and_left_out_from_ahead():
    """(p − w1)·(w2 − w1) ≥ 0 of the reference page: at x ≥ 0 the first line is the one on."""
    behind = WaypointFollower(waypoints=SQUARE, transition_radius=2)
    assert behind.step([-20, 10, -10, 0], 1e3).lookahead_point == pytest.approx(SQUARE[0])
    ahead = WaypointFollower(waypoints=SQUARE, transition_radius=2)
    assert ahead.step([0.5, 40, -10, 0], 1e3).lookahead_point == pytest.approx(SQUARE[1])


def test_the_next_line_begins_within_the_transition_radius_or_behind_the_plane():
    follower = WaypointFollower(waypoints=SQUARE, transition_radius=5)
    follower.step([50, 0, -10, 0], 2)
    assert follower.step([94.9, 0, -10, 0], 2).desired_course == pytest.approx(0)
    turning = follower.step([95, 0, -10, 0], 2)  # 5 m from the waypoint
    assert turning.cross_track_error == pytest.approx(5)  # of the line to the east, from x = 100
    assert turning.lookahead_point == pytest.approx([100, 0, -10])

    passing = WaypointFollower(waypoints=SQUARE, transition_radius=5)
    passing.step([50, -30, -10, 0], 2)
    assert passing.step([99.9, 30, -10, 0], 200).lookahead_point == pytest.approx(SQUARE[1])
    assert passing.step([100, 30, -10, 0], 200).lookahead_point == pytest.approx(SQUARE[2])


def test_the_status_is_one_after_the_last_waypoint_and_the_point_stays_there():
    follower = WaypointFollower(waypoints=SQUARE[:2], transition_radius=1)
    assert follower.step([50, 0, -10, 0], 5).status == 0
    passed = follower.step([100.5, 4, -10, 0], 5)
    assert passed.status == 1
    assert passed.lookahead_point == pytest.approx(SQUARE[1])
    assert follower.step([50, 0, -10, 0], 5).status == 1
    assert follower.step([50, 0, -10, 0], 5, SQUARE).status == 0  # other waypoints
    follower.reset()
    assert follower.step([50, 0, -10, 0], 5, SQUARE).status == 0


def test_one_waypoint_and_none():
    follower = WaypointFollower(waypoints=[[10, 0, 0]], transition_radius=1)
    output = follower.step([0, 0, 0, 2.0], 4)
    assert output.lookahead_point == pytest.approx([4, 0, 0])
    assert follower.step([12, 3, 0, 0], 4).status == 1
    empty = WaypointFollower().step([1, 2, 3, 4.0], 4)
    assert empty.lookahead_point.tolist() == [1, 2, 3]
    assert empty.desired_course == pytest.approx(4.0 - 2 * math.pi)
    assert (empty.status, empty.cross_track_error) == (1, 0)


def test_the_closest_line_is_found():
    follower = WaypointFollower(waypoints=SQUARE, StartFrom="closest", transition_radius=2)
    output = follower.step([98, 50, -10, 0], 5)
    assert output.cross_track_error == pytest.approx(2)
    assert output.lookahead_point == pytest.approx([100, 50 + math.sqrt(21), -10])


def test_short_look_ahead_distances_are_raised_and_flagged():
    follower = WaypointFollower(waypoints=SQUARE, MinLookaheadDistance=3)
    output = follower.step([50, 0, -10, 0], 0.5)
    assert output.lookahead_dist_flag == 1
    assert output.lookahead_point == pytest.approx([53, 0, -10])


def test_a_multirotor_has_yaw_angles_of_its_own():
    follower = WaypointFollower(
        UAVType="multirotor", waypoints=SQUARE, YawAngles=[0.1, 0.2, 7.0], transition_radius=2
    )
    assert follower.step([50, 0, -10, 0], 5).desired_yaw == pytest.approx(0.2)
    follower.step([99, 0, -10, 0], 5)
    assert follower.step([100, 50, -10, 0], 5).desired_yaw == pytest.approx(7.0 - 2 * math.pi)
    fixed_wing = WaypointFollower(waypoints=SQUARE, YawAngles=0.3)
    assert fixed_wing.step([50, 0, -10, 0], 5).desired_yaw == 0


def test_columns_of_the_block():
    """Yaw in the fourth column, transition radius in the last one."""
    rows = [[0, 0, 0, 0.5, 30], [100, 0, 0, 0.6, 20], [100, 100, 0, 0.7, 10]]
    follower = WaypointFollower(
        UAVType="multirotor", ShowYaw=True, TransitionRadiusSource="external"
    )
    assert follower.step([50, 0, 0, 0], 5, rows).desired_yaw == 0.6
    assert follower.step([80, 0, 0, 0], 5, rows).desired_yaw == 0.7
    with pytest.raises(ValueError, match="waypoints: 3 columns, expected 5"):
        follower.step([80, 0, 0, 0], 5, SQUARE)


def test_repeated_waypoints_count_once():
    twice = WaypointFollower(waypoints=[SQUARE[0], SQUARE[0], *SQUARE[1:]], transition_radius=2)
    once = WaypointFollower(waypoints=SQUARE, transition_radius=2)
    for x in (-5.0, 1.0, 50.0):
        a = twice.step([x, 2, -10, 0], 5)
        b = once.step([x, 2, -10, 0], 5)
        assert a.lookahead_point.tolist() == b.lookahead_point.tolist()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"uav_type": "plane"}, "uav_type: 'plane', expected one of fixed-wing, multirotor"),
        ({"start_from": "last"}, "start_from: 'last'"),
        ({"waypoints": [[1, 2]]}, "expected n-by-3, n-by-4 or n-by-5"),
        ({"waypoints": [[1, 2, math.nan]]}, "waypoints"),
        ({"transition_radius": 0}, "expected radii above 0 m"),
        ({"yaw_angles": "north"}, "yaw_angles: 'north'"),
        ({"min_lookahead_distance": 0}, "min_lookahead_distance"),
    ],
)
def test_bad_properties_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        WaypointFollower(**options)


def test_bad_inputs_are_refused_and_change_nothing():
    follower = WaypointFollower(waypoints=SQUARE, transition_radius=5)
    before = follower.step([50, 0, -10, 0], 2)
    for pose, distance in (([1, 2, 3], 2), ([1, 2, 3, math.inf], 2), ([96, 0, 0, 0], math.nan)):
        with pytest.raises(ValueError, match="expected"):
            follower.step(pose, distance)
    assert follower.step([50, 0, -10, 0], 2)[1:] == before[1:]


@given(coordinates, coordinates, coordinates, st.floats(0.2, 300))
def test_the_point_is_at_the_distance_unless_the_line_ends_or_is_too_far(x, y, z, distance):
    follower = WaypointFollower(waypoints=SQUARE[:2], StartFrom="closest", transition_radius=0.1)
    output = follower.step([x, y, z, 0], distance)
    away = math.dist(output.lookahead_point, (x, y, z))
    assert 0 <= output.lookahead_point[0] <= 100
    assert np.abs(output.lookahead_point[1:] - [0, -10]).max() < 1e-9
    at_end = output.lookahead_point[0] > 100 - 1e-9
    if output.cross_track_error <= distance:
        assert away == pytest.approx(distance, rel=1e-6, abs=1e-6) or at_end
    else:
        assert away == pytest.approx(output.cross_track_error, rel=1e-9) or at_end
    # no point of the line is nearer than the cross-track error
    nearest = min(math.dist((s, 0, -10), (x, y, z)) for s in np.linspace(0, 100, 201))
    assert output.cross_track_error <= nearest + 1e-9


def test_the_point_ahead_on_a_circle():
    """On a circle of 10 m, 10 m ahead is 60° around it: an equilateral triangle."""
    follower = OrbitFollower()
    clockwise = follower.step([10, 0, -5, math.pi / 2], [0, 0, -5], 10, 1, 10)
    assert clockwise.lookahead_point == pytest.approx([5, 10 * math.sin(math.pi / 3), -5])
    assert clockwise.desired_course == pytest.approx(math.radians(120))
    counter = follower.step([10, 0, -5, math.pi / 2], [0, 0, -5], 10, -1, 10)
    assert counter.lookahead_point == pytest.approx([5, -10 * math.sin(math.pi / 3), -5])
    assert counter.cross_track_error == 0


def test_a_circle_too_far_away_and_one_within_the_distance():
    follower = OrbitFollower()
    far = follower.step([30, 0, 0, 0], [0, 0, 0], 10, 1, 5)
    assert far.lookahead_point == pytest.approx([10, 0, 0])
    assert far.cross_track_error == pytest.approx(20)
    assert far.desired_course == pytest.approx(math.pi)
    near = follower.step([1, 0, 0, 0], [0, 0, 0], 10, 1, 50)
    assert near.lookahead_point == pytest.approx([-10, 0, 0], abs=1e-9)
    at_centre = follower.step([0, 0, 0, 0.5], [0, 0, 0], 10, 1, 2)
    assert at_centre.desired_course == pytest.approx(0.5)


def test_flags_of_radius_and_distance():
    follower = OrbitFollower(MinOrbitRadius=5, MinLookaheadDistance=2)
    output = follower.step([5, 0, 0, 0], [0, 0, 0], 1, 1, 0.5)
    assert (output.orbit_radius_flag, output.lookahead_dist_flag) == (1, 1)
    assert output.cross_track_error == 0
    assert math.dist(output.lookahead_point, (5, 0, 0)) == pytest.approx(2)


@pytest.mark.parametrize(
    ("course", "direction"), [(math.pi / 2, 1.0), (-math.pi / 2, -1.0), (1.0, 1.0), (-2.0, -1.0)]
)
def test_a_free_direction_is_the_one_that_needs_less_turning(course, direction):
    """North of the centre, eastwards is clockwise."""
    point = OrbitFollower().step([10, 0, 0, course], [0, 0, 0], 10, 0, 1).lookahead_point
    assert np.sign(point[1]) == direction


def test_turns_count_in_the_direction_near_the_circle_and_begin_anew():
    follower = OrbitFollower()

    def at(degrees, radius=10.0, direction=-1):
        angle = math.radians(degrees)
        pose = [radius * math.cos(angle), radius * math.sin(angle), 0, 0]
        return follower.step(pose, [0, 0, 0], 10, direction, 3).num_turns

    assert at(0) == 0
    assert at(-90) == pytest.approx(0.25)
    assert at(-180) == pytest.approx(0.5)
    assert at(-90) == pytest.approx(0.25)  # flown back
    assert at(0, radius=14) == pytest.approx(0.25)  # too far away to count
    assert at(90) == pytest.approx(0.25)
    assert at(0) == pytest.approx(0.5)
    assert at(0, direction=1) == 0


def fly(follow, pose, speed=15.0, seconds=60.0):
    """Fly a fixed wing by course and roll, as MATLAB's example does; return its positions."""
    model = FixedWingGuidance()
    model.configuration.PDRoll = [40, 3.9]
    x, y, z, course = pose
    state = np.array([x, y, -z, speed, course, 0.0, 0.0, 0.0])
    step = 0.02
    places = []
    for _ in range(int(seconds / step)):
        place = (state[0], state[1], -state[2], state[4])
        output = follow(place)
        turn = math.remainder(output.desired_course - state[4], 2 * math.pi)
        roll = float(np.clip(math.atan(2.0 * turn * speed / 9.81), -0.8, 0.8))
        control = model.control(RollAngle=roll, Height=-output.lookahead_point[2], AirSpeed=speed)
        state = state + step * model.derivative(state, control)
        places.append((state[0], state[1], -state[2]))
    return np.array(places)


def test_a_fixed_wing_flies_through_waypoints():
    follower = WaypointFollower(waypoints=[[0, 0, -50], [300, 0, -50], [300, 300, -60]])
    places = fly(lambda pose: follower.step(pose, 30), (0, 20, -50, 0.0), seconds=40)
    for waypoint in ([300, 0, -50], [300, 300, -60]):
        assert np.linalg.norm(places - waypoint, axis=1).min() < 12
    assert follower.step((*places[-1], 0), 30).status == 1


def test_a_fixed_wing_circles():
    follower = OrbitFollower()
    places = fly(lambda pose: follower.step(pose, [0, 0, -50], 60, 1, 20), (90, 0, -50, 0.0))
    radii = np.hypot(*places[-1000:, :2].T)
    assert np.abs(radii - 60).max() < 5
    assert follower.step((*places[-1], 0), [0, 0, -50], 60, 1, 20).num_turns > 1


def test_the_followers_take_the_outputs_of_the_path_manager():
    """WAYPOINT goes to the waypoint follower, ORBIT and HOLD to the orbit follower."""
    manager = PathManager("fixed-wing", loiter_radius=40)
    mission = (
        MissionItem.waypoint((200, 0, -50), radius=15),
        MissionItem.orbit((200, 100, -50), 50, 1, turns=1),
    )
    lines = WaypointFollower()
    orbits = OrbitFollower()
    done = False
    modes = []

    def follow(pose):
        nonlocal done
        params = manager.step(pose, mission, done)
        modes.append(params.current.mode)
        if params.current.mode is MissionMode.WAYPOINT:
            waypoints = [params.previous.position, params.current.position]
            lines.transition_radius = params.current.params[1]
            output = lines.step(pose, 25, waypoints)
            done = output.status == 1
            return output
        radius, direction, turns, _ = params.current.params
        orbit = orbits.step(pose, params.current.position, radius, direction, 20)
        done = params.current.mode is MissionMode.ORBIT and orbit.num_turns >= turns
        return orbit

    fly(follow, (0, 0, -50, 0.0), seconds=60)
    assert list(dict.fromkeys(modes)) == [
        MissionMode.WAYPOINT,
        MissionMode.ORBIT,
        MissionMode.HOLD,
    ]
