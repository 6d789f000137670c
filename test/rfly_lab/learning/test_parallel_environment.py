# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Several vehicles over one ground, held against PettingZoo's own checks and plain geometry."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from marks import exhaustively
from optional_parts import late_module
from scipy.spatial.transform import Rotation

from rfly_common.errors import CommandError, ConfigError
from rfly_common.imports import how_to_install
from rfly_lab import Ending, LandAirBatch, parallel_env
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = [pytest.mark.needs("gymnasium", "pettingzoo"), pytest.mark.exhaustive]
checks = late_module("pettingzoo.test")

HOVER = np.zeros(4, np.float32)


def same_for_all(env: Any, action: np.ndarray) -> dict[str, np.ndarray]:
    return dict.fromkeys(env.agents, action)


def meet(env: Any, distance: float, closing: float, across: float = 0.0) -> None:
    """Put the first two vehicles apart along x and, at half of `closing` each, on their way."""
    x = env.batch.vehicles.x
    x[1] = x[0]
    x[1, 0] += distance
    x[1, 1] += across
    x[:2, 3:6] = 0.0
    x[0, 3] = 0.5 * closing
    x[1, 3] = -0.5 * closing
    env.batch.episodes.targets[1] = env.batch.episodes.targets[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        exhaustively({"task": "hover", "vehicles": 2, "actions": "velocity"}),
        {"observations": "sensors"},
    ],
)
@pytest.mark.filterwarnings("error")
def test_pettingzoos_own_checks_pass(options: dict[str, Any]) -> None:
    checks.parallel_api_test(parallel_env(**options), num_cycles=300)
    checks.parallel_seed_test(lambda: parallel_env(**options), num_cycles=20)


def test_each_flies_as_it_would_alone() -> None:
    """The batch of the environment is that of `LandAirBatch` with the same seeds and places."""
    env = parallel_env(vehicles=5, wind=3.0, gusts=0.5, spread=0.1)
    env.reset(seed=3)
    batch = env.batch
    every = np.arange(5)
    other = LandAirBatch(5, "waypoints", wind=3.0, gusts=0.5, spread=0.1)
    other.place(batch._starts.low, batch._starts.high)
    other.seed(every, batch.episodes.seed)
    other.begin(every)
    rng = np.random.default_rng(2)
    for _ in range(25):
        actions = rng.uniform(-0.2, 0.2, (5, 4)).astype(np.float32)
        seen, rewards, terminated, _, infos = env.step(dict(zip(env.agents, actions, strict=True)))
        other.step(actions)
        own = other.observe()
        for i in range(5):
            name = f"vehicle_{i}"
            assert seen[name][: own.shape[1]].tobytes() == own[i].tobytes()
            assert rewards[name] == other.rewards[i]
            assert not terminated[name]
            assert infos[name]["distance"] == other.episodes.distance[i]


def test_starts_are_apart_and_differ_from_episode_to_episode() -> None:
    reach = parallel_env().batch.params.reach
    for task in ("waypoints", "hover"):
        env = parallel_env(vehicles=11, task=task)
        episodes = []
        for seed in (1, None, None, 1):
            env.reset(seed=seed)
            x = env.batch.vehicles.x[:, :3].copy()
            targets = env.batch.episodes.targets[:, 0]
            for points in (x, *([targets] if task == "hover" else [])):
                away = np.linalg.norm(points[:, None] - points, axis=-1)
                away[np.diag_indices(11)] = np.inf
                assert away.min() >= 4.0 * reach
            assert np.ptp(x[:, :2], axis=0).max() < 4.0 * (8.0 + 8.0 * reach)
            episodes.append(x)
        assert (episodes[0] == episodes[3]).all()
        assert (episodes[0] != episodes[1]).all()
        assert (episodes[1] != episodes[2]).all()


def test_vehicles_see_where_the_others_are_and_how_they_move() -> None:
    env = parallel_env(vehicles=4)
    env.reset(seed=5)
    rng = np.random.default_rng(1)
    for _ in range(30):
        turned = rng.uniform(-0.3, 0.3, 4).astype(np.float32)
        seen, *_ = env.step(same_for_all(env, turned))
    x = env.batch.vehicles.x
    names = env.observation_names
    assert names[-21:-14] == [
        *("other_1_x_m", "other_1_y_m", "other_1_z_m"),
        *("other_1_x_mps", "other_1_y_mps", "other_1_z_mps", "other_1_is_there"),
    ]

    for i in range(4):
        to_body = Rotation.from_quat(x[i, [7, 8, 9, 6]]).inv()
        others = sorted(
            (j for j in range(4) if j != i), key=lambda j: np.linalg.norm(x[j, :3] - x[i, :3])
        )
        for k, j in enumerate(others):
            expected = [
                *to_body.apply(x[j, :3] - x[i, :3]),
                *to_body.apply(x[j, 3:6] - x[i, 3:6]),
                1.0,
            ]
            first = len(names) - 21 + 7 * k
            np.testing.assert_allclose(
                seen[f"vehicle_{i}"][first : first + 7], expected, rtol=1e-5, atol=1e-5
            )


def test_by_sensors_others_are_where_the_fixes_of_both_say() -> None:
    """Differences of two GPS readings, turned by the own IMU's attitude: each off by metres."""
    env = parallel_env(vehicles=3, observations="sensors")
    env.reset(seed=5)
    for _ in range(15):
        seen, *_ = env.step(same_for_all(env, HOVER))
    sensed = env.batch._sensed
    x = env.batch.vehicles.x
    first = sensed.suite.first[1]
    fix = sensed.memory.readings[:, first : first + 3]
    antenna = np.array(env.batch.view.sensors.gps.position)
    attitudes = [Rotation.from_quat(quat) for quat in sensed.memory.attitude]
    place = [fix[i] - attitudes[i].apply(antenna) for i in range(3)]
    for i in range(3):
        others = sorted(
            (j for j in range(3) if j != i), key=lambda j: np.linalg.norm(place[j] - place[i])
        )
        for k, j in enumerate(others):
            expected = attitudes[i].inv().apply(place[j] - place[i])
            column = len(env.observation_names) - 14 + 7 * k
            got = seen[f"vehicle_{i}"][column : column + 3]
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
            true = attitudes[i].inv().apply(x[j, :3] - x[i, :3])
            assert 1e-3 < np.linalg.norm(got - true) < 20.0


def test_two_that_touch_have_crashed_and_are_gone() -> None:
    env = parallel_env(vehicles=3)
    env.reset(seed=1)
    reach = env.batch.params.reach

    # closer than both spheres allow, then not
    meet(env, 2.0 * reach + 0.01, 0.0)
    _, rewards, terminated, truncated, infos = env.step(same_for_all(env, HOVER))
    assert not any(terminated.values())
    meet(env, 2.0 * reach - 0.01, 0.0)
    seen, rewards, terminated, truncated, infos = env.step(same_for_all(env, HOVER))
    assert terminated == {"vehicle_0": True, "vehicle_1": True, "vehicle_2": False}
    assert not any(truncated.values())
    assert infos["vehicle_0"]["ending"] == infos["vehicle_1"]["ending"] == Ending.CRASHED
    assert max(rewards["vehicle_0"], rewards["vehicle_1"]) < -15.0 < rewards["vehicle_2"]
    assert env.agents == ["vehicle_2"]
    assert not seen["vehicle_2"][-14:].any()  # nobody is there

    # it flies on, through where they were
    env.batch.vehicles.x[0, :3] = env.batch.vehicles.x[2, :3]
    seen, rewards, terminated, *_ = env.step({"vehicle_2": HOVER})
    assert terminated == {"vehicle_2": False}
    with pytest.raises(CommandError, match="of vehicle_0, expected of vehicle_2"):
        env.step({"vehicle_0": HOVER})
    with pytest.raises(CommandError, match="of none, expected of vehicle_2"):
        env.step({})


@pytest.mark.parametrize(("across", "touches"), [(0.9, True), (1.1, False)])
def test_a_touch_between_two_steps_counts(across: float, touches: bool) -> None:
    """They pass each other at 80 m/s, 1.6 m a step, at a distance around twice the reach."""
    env = parallel_env(vehicles=2)
    env.reset(seed=2)
    reach = env.batch.params.reach
    meet(env, 0.8, 80.0, 2.0 * reach * across)
    begin = env.batch.vehicles.x[:2, :3].copy()
    _, _, terminated, _, _ = env.step(same_for_all(env, HOVER))
    end = env.batch.vehicles.x[:2, :3]
    if touches:
        # at neither end of the step by itself
        far = [np.linalg.norm(points[1] - points[0]) for points in (begin, end)]
        assert min(far) > 2.0 * reach * 0.9
    assert set(terminated.values()) == {touches}


def test_pictures_show_those_that_are_left() -> None:
    """The first vehicle is in the middle, the second to its left, the third out of sight."""
    env = parallel_env(vehicles=3, task="hover", render_mode="rgb_array")
    with pytest.raises(CommandError, match="no episode has begun"):
        env.render()
    env.reset(seed=3)
    x = env.batch.vehicles.x
    x[:, 6:10] = (1.0, 0.0, 0.0, 0.0)  # all head east
    x[1, :3] = x[0, :3] + (1.0, 2.0, 0.0)
    x[2, :3] = x[0, :3] - (60.0, 0.0, 0.0)
    env.batch.episodes.targets[:] = x[:, None, :3] - (100.0, 0.0, 0.0)

    def red_columns() -> np.ndarray:
        """Return the columns of the picture in which there is red, as only bodies are."""
        red, green, blue = np.moveaxis(env.render().astype(int), -1, 0)
        return np.flatnonzero(((red > 2 * green) & (red > 2 * blue)).any(axis=0))

    both = red_columns()
    assert env.render().shape == (180, 320, 3)
    assert ((both > 140) & (both < 180)).any()
    assert (both < 120).any()

    # the first has left: the second is in the middle, alone
    env._is_live[0] = False
    alone = red_columns()
    assert len(alone)
    assert ((alone > 140) & (alone < 180)).all()
    env._is_live[:] = False
    assert (red_columns() > 140).any()
    assert parallel_env().render() is None
    with pytest.raises(ConfigError, match="render_mode: 'ansi', expected one of human, rgb_array"):
        parallel_env(render_mode="ansi")


def test_an_episode_ends_when_all_have_ended() -> None:
    env = parallel_env(vehicles=3, task="hover")
    env.reset(seed=1)
    env.batch.episodes.steps[:] = (497, 498, 499)
    left = []
    for _ in range(3):
        names = list(env.agents)
        _, _, terminated, truncated, _ = env.step(same_for_all(env, HOVER))
        assert not any(terminated.values())
        assert truncated == {name: name not in env.agents for name in names}
        left.append(list(env.agents))
    assert left == [["vehicle_0", "vehicle_1"], ["vehicle_0"], []]
    assert env.step({}) == ({}, {}, {}, {}, {})
    with pytest.raises(CommandError, match="expected of none before reset"):
        env.step({"vehicle_0": HOVER})

    seen, infos = env.reset()
    assert list(seen) == list(infos) == env.agents == env.possible_agents


def test_arguments_that_cannot_be_used() -> None:
    small = HeightMap(np.zeros((140, 140)), origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
    for options, text in (
        ({"task": "roof"}, "task: 'roof', expected one of hover, waypoints"),
        ({"vehicles": 1}, "vehicles: 1, expected a whole number of at least 2 and of at most 64"),
        ({"vehicles": 65}, "vehicles: 65"),
        ({"vehicles": 2.0}, "vehicles: 2.0, expected a whole number"),
        ({"terrain": small, "vehicles": 40}, "vehicles: 40 start on .* m along each side"),
        ({"wind": 1e3}, "wind"),
    ):
        with pytest.raises(ConfigError, match=text):
            parallel_env(**options)


def test_what_vehicles_cannot_do_is_said() -> None:
    env = parallel_env(vehicles=2)
    for seed in (-1, 2.5, True, "one"):
        with pytest.raises(ConfigError, match=f"seed: {seed!r}, expected a whole number"):
            env.reset(seed=seed)
    env.reset(seed=np.int64(3))
    for action, text in (
        (np.zeros(3), "action of vehicle_1: 3 numbers, expected 4"),
        (np.zeros((4, 1)), r"action of vehicle_1: shape \(4, 1\), expected \(4,\)"),
        (np.array((0.0, np.nan, 0.0, 0.0)), r"action of vehicle_1\[1\]: nan"),
        (np.array((("up", "up"), ("up", "up"))), "action of vehicle_1: <U2, expected numbers"),
        (np.array(("1", "1", "1", "1")), "action of vehicle_1: <U1, expected numbers"),
        (np.zeros(4, complex), "action of vehicle_1: complex128, expected numbers"),
        (((0.0, 0.0), (0.0,)), "action of vehicle_1: expected rows of the same length"),
    ):
        with pytest.raises(CommandError, match=text):
            env.step({"vehicle_0": HOVER, "vehicle_1": action})
    with pytest.raises(CommandError, match="actions: of 1, 2, expected of vehicle_0, vehicle_1"):
        env.step({1: HOVER, 2: HOVER})
    assert env.batch.episodes.steps.tolist() == [0, 0]

    # beyond the limits, and beyond all float32, is at the limits
    states = []
    for most in (1.0, 7.0, 1e300):
        env.reset(seed=5)
        env.step(dict.fromkeys(env.agents, np.full(4, most)))
        states.append(env.batch.vehicles.x.tobytes())
    assert states == states[:1] * 3

    # places of start
    low, high = np.array(env.batch.places)
    inside = np.tile(low, (2, 1)), np.tile(high, (2, 1))
    env.batch.place(*inside)
    for wrong in (inside[::-1], (inside[0] - 1.0, inside[1]), (inside[0], inside[1] + 1.0)):
        with pytest.raises(ConfigError, match="low, high: expected corners in order between"):
            env.batch.place(*wrong)
    with pytest.raises(ConfigError, match=r"low: shape \(1, 2\), expected \(2, 2\)"):
        env.batch.place(inside[0][:1], inside[1])


def test_without_pettingzoo_an_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(ConfigError) as error:
        parallel_env()
    text = f"an environment of several vehicles needs pettingzoo; {how_to_install('learn')}"
    assert str(error.value) == text
