# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that keep clear of each other, of others, of objects and of the ground."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from crossing_vehicles import (
    HEIGHT,
    least_room,
    random_crossing,
    run_to_goals,
    states_towards,
    usual,
    wishes,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import exhaustively

from rfly_common.errors import ConfigError
from rfly_common.kernels.jit import kernel
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import ObjectBoxes
from rfly_trajectory.avoidance.avoidance import (
    CLIMB,
    COURSE,
    SPEED,
    Avoidance,
    AvoidanceAction,
    OtherVehicles,
    abilities,
)
from rfly_trajectory.kernels.avoidance_kernels import is_beside
from rfly_trajectory.kernels.clear_way_kernels import WASH_SPREAD, room_between
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, MULTIROTOR

KINDS = [GROUND, MULTIROTOR, FIXED_WING]


def made(kinds, starts, goals, **keys):
    kinds = np.array(kinds)
    goals = np.array(goals, float)
    state = states_towards(kinds, np.array(starts, float), goals)
    return Avoidance(usual(kinds), state, **keys), goals


def others(position, velocity, *, age=0.0, unrest=1.0, radius=2.5, flies=False):
    one = np.ones(1)
    no = np.array([False])
    return OtherVehicles(
        np.array([position], float),
        np.array([velocity], float),
        radius * one,
        0.0 * one,
        1.6 * one,
        no,
        np.array([flies]),
        age * one,
        unrest * one,
        5.0 * one,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_alone_it_goes_straight_to_its_goal(kind):
    avoidance, goals = made([kind], [(0.0, 0.0)], [(200.0, 0.0)])
    run = run_to_goals(avoidance, goals, 60.0)
    assert np.isfinite(run.arrived).all()
    assert np.abs(run.track[:, 0, 1]).max() < 1e-9
    assert set(avoidance.action) == {AvoidanceAction.FOLLOWED}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_two_meet_head_on(kind, offset):
    avoidance, goals = made(
        [kind] * 2, [(0.0, 0.0), (300.0, offset)], [(300.0, 0.0), (0.0, offset)]
    )
    run = run_to_goals(avoidance, goals, 90.0)
    assert run.room > 0.0
    assert np.isfinite(run.arrived).all()
    assert run.ratio.max() < 1.1


def test_a_track_can_be_driven():
    """A car turns no tighter than 5 m and 5 m/s² allow, gains 3 m/s² and brakes with 6 m/s²."""
    run = random_crossing(16, 5, 90.0, 40.0, (1.0, 0.0, 0.0))
    track = run.track
    assert run.room > 0.0
    speed = track[..., SPEED]
    gained = np.diff(np.abs(speed), axis=0) / 0.05
    assert gained.max() < 3.0 + 6.0 * (speed.min() < 0.0) + 1e-6
    assert gained.min() > -6.0 - 1e-6

    moved = np.hypot(*np.moveaxis(np.diff(track[..., :2], axis=0), -1, 0))
    turned = np.abs((np.diff(track[..., COURSE], axis=0) + math.pi) % (2 * math.pi) - math.pi)
    assert (turned <= moved / 5.0 * 1.001 + 1e-9).all()
    mean = 0.5 * (speed[1:] + speed[:-1])
    assert np.abs(turned / 0.05 * mean).max() < 5.0 * 1.1

    # and never sideways: each step is along the mean course
    course = track[:-1, :, COURSE] + 0.5 * (
        (np.diff(track[..., COURSE], axis=0) + math.pi) % (2 * math.pi) - math.pi
    )
    step = np.diff(track[..., :2], axis=0)
    sideways = step[..., 1] * np.cos(course) - step[..., 0] * np.sin(course)
    assert np.abs(sideways).max() < 1e-9


def test_a_fixed_wing_never_stops_and_banks_within_its_limit():
    run = random_crossing(8, 3, 500.0, 60.0, (0.0, 0.0, 1.0))
    assert run.room > 0.0
    assert run.track[..., SPEED].min() >= 14.0 - 1e-9
    turned = np.abs((np.diff(run.track[..., COURSE], axis=0) + math.pi) % (2 * math.pi) - math.pi)
    mean = 0.5 * (run.track[1:, :, SPEED] + run.track[:-1, :, SPEED])
    assert (turned / 0.05 * mean).max() < 12.0 * 1.02, "its lateral acceleration, m/s²"


@pytest.mark.parametrize(
    ("n", "side", "seed"),
    [(30, 250.0, 1), *(exhaustively(100, 600.0, seed) for seed in (0, 2))],
)
def test_random_crossings_meet_nobody(n, side, seed):
    run = random_crossing(n, seed, side, 60.0 if n < 100 else 180.0)
    assert run.room > 0.0
    on_the_ground = run.kinds != FIXED_WING
    assert np.isfinite(run.arrived[on_the_ground]).all()
    assert run.stood.max() < 30.0, "a deadlock"
    assert np.median(run.ratio) <= 1.15


@pytest.mark.exhaustive
@pytest.mark.parametrize(("n", "radius"), [(30, 100.0), (60, 80.0)])
def test_cars_on_a_circle_cross_its_middle(n, radius):
    angle = 2.0 * math.pi * np.arange(n) / n
    starts = radius * np.stack([np.cos(angle), np.sin(angle)], -1)
    avoidance, goals = made([GROUND] * n, starts, -starts)
    run = run_to_goals(avoidance, goals, 150.0)
    assert run.room > 0.0
    assert np.isfinite(run.arrived).all()
    assert run.stood.max() < 30.0, "a deadlock"


def test_who_does_not_give_way_is_avoided():
    """It drives through with 8 m/s whatever comes; 30 starts around the meeting."""
    for lead in np.linspace(-15.0, 15.0, 7).tolist():
        avoidance, goals = made([GROUND], [(-60.0 + lead, 0.0)], [(100.0, 0.0)])
        least = math.inf
        for number in range(400):
            time = number * 0.05
            there = np.array([0.0, -60.0 + 8.0 * time, 0.0])
            avoidance.step(
                wishes(avoidance.state, avoidance.able.kind, goals),
                others=others(there, (0.0, 8.0, 0.0)),
            )
            after = there + np.array((0.0, 0.4, 0.0))
            least = min(least, float(np.hypot(*(avoidance.state[0, :2] - after[:2]))))
        assert least > 5.0, f"lead {lead}: both have a radius of 2.5 m"
        assert avoidance.state[0, 0] > 50.0, "it went on"


def test_an_old_position_is_kept_farther_away():
    """The other one may be ½ · 1 m/s² · t² off at an age t, which is what the car adds."""

    def nearest(age):
        avoidance, goals = made([GROUND], [(-60.0, 0.0)], [(100.0, 0.0)])
        state = []
        for _ in range(300):
            wish = wishes(avoidance.state, avoidance.able.kind, goals)
            avoidance.step(wish, others=others((0.0, 3.0, 0.0), (0.0, 0.0, 0.0), age=age))
            state.append(avoidance.state[0, :2].copy())
        return float(np.hypot(*(np.array(state) - (0.0, 3.0)).T).min())

    fresh = nearest(0.0)
    assert fresh > 5.0
    assert nearest(3.0) > 5.0 + 0.5 * 3.0**2 - 0.1


@pytest.mark.exhaustive
def test_a_link_that_drops_a_fifth_makes_it_careful():
    """Ten cars that each decide alone and hear four of five messages of the others."""
    n = 10
    random = np.random.default_rng(4)
    angle = 2.0 * math.pi * np.arange(n) / n + random.uniform(-0.1, 0.1, n)
    starts = 80.0 * np.stack([np.cos(angle), np.sin(angle)], -1)
    ends = np.roll(starts, 4, axis=0)
    each = [made([GROUND], starts[i : i + 1], ends[i : i + 1]) for i in range(n)]
    able = usual([GROUND] * n)

    states = np.concatenate([avoidance.state for avoidance, _ in each])
    heard = np.repeat(states[None], n, axis=0)
    age = np.zeros((n, n))
    least = math.inf
    for _ in range(600):
        arrives = random.random((n, n)) >= 0.2
        heard[arrives] = np.broadcast_to(states, (n, n, 7))[arrives]
        age = np.where(arrives, 0.0, age + 0.05)
        for i, (avoidance, goals) in enumerate(each):
            rest = np.arange(n) != i
            known = heard[i, rest]
            course = known[:, COURSE]
            velocity = known[:, SPEED, None] * np.stack(
                [np.cos(course), np.sin(course), 0.0 * course], -1
            )
            ones = np.ones(n - 1)
            no = np.zeros(n - 1, bool)
            avoidance.step(
                wishes(avoidance.state, avoidance.able.kind, goals),
                others=OtherVehicles(
                    known[:, :3],
                    velocity,
                    2.5 * ones,
                    0.0 * ones,
                    1.6 * ones,
                    no,
                    no,
                    age[i, rest],
                    2.0 * ones,
                    10.0 * ones,
                ),
            )
        after = np.concatenate([avoidance.state for avoidance, _ in each])
        least = min(least, least_room(able, states, after))
        states = after
    assert least > 0.0
    assert (np.hypot(*(states[:, :2] - ends).T) < 5.0).mean() >= 0.9, "most have arrived"


def gate(width):
    """Walls of 40 m to both sides of a gate in the line x = 0, 6 m high."""
    centre = [(0.0, 0.5 * width + 20.0, 3.0), (0.0, -0.5 * width - 20.0, 3.0)]
    return ObjectBoxes(centre, [(1.0, 20.0, 3.0)] * 2)


@pytest.mark.parametrize("n", [12, exhaustively(50)])
def test_many_go_through_a_gate(n):
    """Cars and multirotors below the walls' tops, which need 5 m: the gate has 12 m."""
    kinds = np.array([GROUND, MULTIROTOR] * (n // 2))
    row, column = np.divmod(np.arange(n), 5)
    starts = np.stack([-30.0 - 9.0 * row, 9.0 * column - 18.0], -1)
    goals = np.stack([40.0 + 9.0 * (n // 5 - row), 9.0 * column - 18.0], -1)
    state = states_towards(kinds, starts, goals)
    state[kinds == MULTIROTOR, 2] = 3.0
    walls = gate(12.0)
    avoidance = Avoidance(usual(kinds), state, solids=walls)
    able = avoidance.able

    least = math.inf
    beside = math.inf
    for _ in range(1400 if n < 50 else 4000):
        before = avoidance.state.copy()
        ahead = before[:, 0] < 1.0
        aims = np.where(
            ahead[:, None], np.stack([0.0 * before[:, 0] + 3.0, 0.0 * ahead], -1), goals
        )
        wish = wishes(before, kinds, aims)
        wish[ahead, 1] = np.where(kinds[ahead] == GROUND, 5.0, 4.0)
        wish[:, CLIMB - COURSE] = np.where(kinds == GROUND, 0.0, np.clip(3.0 - before[:, 2], -1, 1))
        avoidance.step(wish)
        least = min(least, least_room(able, before, avoidance.state))

        # the boxes, by their definition
        x, y, z = avoidance.state[:, :3].T
        for cx, cy, _ in walls.centre:
            gap = np.hypot(
                np.maximum(np.abs(x - cx) - 1.0, 0.0), np.maximum(np.abs(y - cy) - 20.0, 0.0)
            )
            beside = min(beside, float((gap - able.radius)[z - able.below < 6.0].min()))
    assert least > 0.0
    assert beside > 0.0
    assert (avoidance.state[:, 0] > 2.0).all(), "through the gate"


def test_a_car_that_stands_at_a_wall_backs_off_and_goes_round_it():
    """It has 0.01 m of room, looks at the wall, and its goal is through the gate 3 m beside it."""
    state = np.zeros((1, 7))
    state[0, :4] = -3.51, 8.47, 0.0, -0.65
    avoidance = Avoidance(usual([GROUND]), state, solids=gate(12.0))
    goals = np.array([(3.0, 0.0)])
    for _ in range(1200):
        wish = wishes(avoidance.state, avoidance.able.kind, goals)
        wish[0, 1] = 5.0
        avoidance.step(wish)
        x, y = avoidance.state[0, :2].tolist()
        gap = math.hypot(max(abs(x) - 1.0, 0.0), max(6.0 - abs(y), 0.0))
        assert gap > 2.5, "the walls' ends are at y = 6 and -6 m"
        if x > 0.0:
            break
    assert avoidance.state[0, 0] > 0.0


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([GROUND, MULTIROTOR]))
def test_whatever_it_wishes_it_meets_no_object(seed, kind):
    """Thin walls and boxes on a lattice of 9 m, wishes at random; ten instants of each step."""
    random = np.random.default_rng(seed)
    centre = np.array([(9.0 * i, 9.0 * j, 3.0) for i in range(-2, 3) for j in range(-2, 3)])
    centre = centre[np.hypot(centre[:, 0], centre[:, 1]) > 1.0]
    half = np.column_stack([random.uniform(0.05, 1.5, (len(centre), 2)), np.full(len(centre), 3.0)])
    state = np.zeros((1, 7))
    state[0, 2] = 2.0 if kind == MULTIROTOR else 0.0
    state[0, COURSE] = random.uniform(-3.0, 3.0)
    avoidance = Avoidance(usual([kind]), state, solids=ObjectBoxes(centre, half))
    moved = 0.0
    for number in range(240):
        if number % 30 == 0:
            wish = random.uniform(-1.0, 1.0, (1, 4)) * (3.1, 8.0, 0.0, 0.5)
            wish[0, 1] = abs(wish[0, 1])
        before = avoidance.state[0, :2].copy()
        avoidance.step(wish)
        after = avoidance.state[0, :2]
        moved += math.dist(before, after)
        for share in np.linspace(0.0, 1.0, 10):
            place = (1.0 - share) * before + share * after
            outside = np.maximum(np.abs(place - centre[:, :2]) - half[:, :2], 0.0)
            assert np.hypot(*outside.T).min() > avoidance.able.radius[0]

    assert moved > 0.5


def test_waiting_is_not_forgotten_by_those_that_stay():
    first, goals = made([GROUND] * 2, [(0.0, 0.0), (0.0, 30.0)], [(50.0, 0.0), (50.0, 30.0)])
    first.step(wishes(first.state, first.able.kind, goals))
    assert first.waited.tolist() == [0.05, 0.05], "both stand at first"
    later, _ = made([GROUND] * 2, [(0.0, 60.0), (0.0, 0.0)], [(50.0, 0.0)] * 2)
    later.remember(first, np.array([-1, 0]))
    assert later.waited.tolist() == [0.0, 0.05]


def test_aircraft_climb_over_a_ridge_or_turn_away():
    """A ridge of 60 m across the way at x = 300 m, and aircraft that wish 40 m."""
    x = np.linspace(-100.0, 700.0, 81)
    heights = 60.0 * np.exp(-(((x - 300.0) / 60.0) ** 2))[:, None] * np.ones((1, 81))
    ridge = HeightMap(
        heights.astype(np.float32), origin_x=-100.0, origin_y=-400.0, step_x=10.0, step_y=10.0
    )
    for kind in (MULTIROTOR, FIXED_WING):
        avoidance, goals = made([kind], [(0.0, 0.0)], [(600.0, 0.0)], terrain=ridge)
        avoidance.state[0, 2] = HEIGHT[kind]
        able = avoidance.able
        least = math.inf
        for _ in range(1500):
            avoidance.step(wishes(avoidance.state, able.kind, goals))
            px, py, z = avoidance.state[0, :3].tolist()
            least = min(least, z - able.below[0] - float(ridge.altitude(px, py)))
        assert least > 0.0


def test_a_car_keeps_off_slopes_that_it_can_not_climb_and_on_the_map():
    """The ground rises by 2 m/m between x = 100 and 120 m; the map ends at y = 60 m."""
    heights = np.zeros((41, 21), np.float32)
    heights[20:] = 2.0 * np.minimum(np.arange(21), 4)[:, None] * 5.0
    step = HeightMap(heights, origin_x=0.0, origin_y=-40.0, step_x=5.0, step_y=5.0)
    for goal in ((180.0, 0.0), (50.0, 200.0)):
        avoidance, goals = made([GROUND], [(20.0, 0.0)], [goal], terrain=step)
        for _ in range(800):
            avoidance.step(wishes(avoidance.state, avoidance.able.kind, goals))
            assert avoidance.state[0, 0] <= 100.0 + 1e-6
            assert avoidance.state[0, 1] <= 60.0 + 1e-6


def test_nobody_flies_below_a_multirotor():
    """The air of 5 radii, 2.5 m, is free: one that wants to pass 1.5 m below does not."""
    kinds = np.array([MULTIROTOR, MULTIROTOR])
    state = states_towards(kinds, np.array([(0.0, 0.0), (-40.0, 0.0)]), np.array([(0.1, 0.0)] * 2))
    state[:, 2] = 10.0, 8.5
    avoidance = Avoidance(usual(kinds), state)
    for _ in range(400):
        wish = np.array([(0.0, 0.0, 0.0, 0.0), (0.0, 5.0, 0.0, 0.0)])
        avoidance.step(wish)
        apart = avoidance.state[1, :3] - avoidance.state[0, :3]
        if -2.5 < apart[2] < 0.0:
            assert np.hypot(*apart[:2]) > 1.0 - 0.2 * apart[2] - 1e-9
    assert avoidance.state[1, 0] > 30.0, "it has passed"


def test_aeroplanes_in_formation_stay_in_it():
    """Six of them, 30 m apart, go on together; each could circle without meeting another."""
    kinds = np.array([FIXED_WING] * 6)
    starts = np.array([(30.0 * (i // 3), 30.0 * (i % 3)) for i in range(6)], float)
    state = states_towards(kinds, starts, starts + np.array((1000.0, 0.0)))
    state[:, SPEED] = 18.0
    avoidance = Avoidance(usual(kinds), state)
    wish = np.tile((0.0, 18.0, 0.0, 0.0), (6, 1))
    for _ in range(200):
        avoidance.step(wish)
    assert np.allclose(avoidance.state[:, :2], starts + np.array((180.0, 0.0)))


def test_the_same_bits_in_any_thread():
    def track(out):
        out.append(random_crossing(12, 7, 150.0, 5.0, (0.5, 0.5, 0.0)).track.tobytes())

    results: list[bytes] = []
    track(results)
    threads = [threading.Thread(target=track, args=(results,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert len(set(results)) == 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.floats(30.0, 80.0))
def test_whatever_they_wish_they_do_not_meet(seed, n, side):
    """Wishes at random that change at random; speeds at the start are such that all can stop."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 2, n)
    able = usual(kinds)
    state = np.zeros((n, 7))
    row, column = np.divmod(np.arange(n), 4)
    state[:, 0] = side / 4 * column + random.uniform(-1.0, 1.0, n)
    state[:, 1] = side / 4 * row + random.uniform(-1.0, 1.0, n)
    state[:, 2] = np.where(kinds == MULTIROTOR, random.uniform(0.5, 4.0, n), 0.0)
    state[:, COURSE] = random.uniform(-3.0, 3.0, n)
    avoidance = Avoidance(able, state)
    for number in range(80):
        if number % 20 == 0:
            wish = random.uniform(-1.0, 1.0, (n, 4)) * (3.1, 8.0, 2.0, 0.5)
            wish[kinds == MULTIROTOR, 1] = np.abs(wish[kinds == MULTIROTOR, 1])
        before = avoidance.state.copy()
        avoidance.step(wish)
        assert least_room(able, before, avoidance.state) > 0.0


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"radius": 0.0}, "radius: 0, expected more than 0"),
        ({"brake": -1.0}, "brake: -1, expected more than 0"),
        ({"most": math.nan}, r"most\[0\]: nan, expected a finite number"),
        ({"least": 1.0}, "least: only a fixed wing has one"),
        ({"kind": 7}, "kind: expected 0, 1 or 2"),
        ({"kind": [256]}, "kind: expected 0, 1 or 2"),
        ({"kind": [0.5]}, "kind: expected 0, 1 or 2"),
        ({"kind": [math.nan]}, "kind: expected 0, 1 or 2"),
        ({"kind": [[0, 0]]}, "kind: expected 0, 1 or 2"),
        ({"kind": "car"}, "kind: expected 0, 1 or 2"),
        ({"gain": (1.0, 2.0)}, "gain"),
    ],
)
def test_abilities_that_no_vehicle_has(change, text):
    usual_car = {"kind": 0, "radius": 1.0, "height": 1.0, "most": 5.0, "gain": 1.0, "brake": 1.0}
    with pytest.raises(ConfigError, match=text):
        abilities(**{**usual_car, **change})


def test_wrong_steps_are_named():
    avoidance, _ = made([GROUND], [(0.0, 0.0)], [(10.0, 0.0)])
    with pytest.raises(ConfigError, match=r"wish: expected the shape \(1, 4\), got \(2, 4\)"):
        avoidance.step(np.zeros((2, 4)))
    with pytest.raises(ConfigError, match=r"wish\[0, 1\]: nan, expected a finite number"):
        avoidance.step(np.array([(0.0, math.nan, 0.0, 0.0)]))
    with pytest.raises(ConfigError, match="step: 5"):
        made([GROUND], [(0.0, 0.0)], [(10.0, 0.0)], step=5.0)
    before = avoidance.state.copy()
    assert (before == avoidance.state).all()


@kernel
def beside_and_room(one, other, body, room):
    """Return whether one is passed over as beside the other, and their room."""
    return is_beside(one, other, 0, room), room_between(one, 1, body, other, 1, body)


COORDINATE = st.floats(-30.0, 30.0)


@given(
    st.lists(st.tuples(*[COORDINATE] * 6), min_size=2, max_size=2),
    st.floats(0.1, 3.0),
    st.floats(0.0, 2.0),
)
def test_who_is_passed_over_as_beside_leaves_room(ways, radius, comfort):
    """Intents are first compared along x and y, at the height where they need most."""
    one, other = (np.array(way).reshape(2, 3) for way in ways)
    wash = 5.0 * radius
    body = (radius, 0.2, 0.3, wash, True)
    room = 2.0 * radius + comfort + WASH_SPREAD * wash
    is_passed_over, left = beside_and_room(one, other, body, room)
    assert not is_passed_over or left - comfort > -1e-9
    assert beside_and_room(other, one, body, room)[0] == is_passed_over

    # farther than that along one axis for all the time
    other[:, 0] = one[:, 0].max() + room + 1.0
    assert beside_and_room(one, other, body, room)[0]
    other[0, :2] = one[0, :2]
    assert not beside_and_room(one, other, body, room)[0]
