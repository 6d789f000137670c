# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The batch as Gymnasium's environments, held against Gymnasium's own checks and vectoriser."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from marks import exhaustively
from optional_parts import late_module

from rfly_common.errors import ConfigError
from rfly_common.imports import how_to_install
from rfly_lab import Ending, register_environments
from rfly_lab.learning.tasks import TASKS

pytestmark = [pytest.mark.needs("gymnasium"), pytest.mark.exhaustive]
gymnasium = late_module("gymnasium")
vector = late_module("gymnasium.vector")
checks = late_module("gymnasium.utils.passive_env_checker")
env_checker = late_module("gymnasium.utils.env_checker")
environments = late_module("rfly_lab.learning.environments")

ID = "rfly/LandAir-v0"
MODES = ("NextStep", "SameStep", "Disabled")


@pytest.fixture(autouse=True)
def registered() -> None:
    register_environments()


def same(ours: Any, theirs: Any) -> None:
    """Assert that two infos, or parts of them, are the same."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        assert [value is None for value in ours] == [value is None for value in theirs]
        for own, other in zip(ours, theirs, strict=True):
            assert np.array_equal(own, other)
    else:
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        *((task, {}) for task in TASKS),
        ("hover", {"actions": "velocity"}),
        ("goal", {"observations": "sensors"}),
        *((task, {"world": "random", "terrain": "random"}) for task in TASKS if task != "roof"),
        ("roof", {"observations": "sensors", "lidar": 12, "depth": (3, 4)}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_the_checker_passes(task: str, options: dict[str, Any]) -> None:
    environment = gymnasium.make(ID, task=task, render_mode="rgb_array", **options)
    env_checker.check_env(environment.unwrapped, skip_render_check=True)
    checks.env_render_passive_checker(environment.unwrapped)
    assert environment.spec.id == ID
    assert environment.metadata == {"render_modes": ["human", "rgb_array"], "render_fps": 50}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("task", "more"),
    [
        ("hover", {}),
        exhaustively("goal", {}),
        ("waypoints", {"observations": "sensors", "lidar": 5}),
    ],
)
def test_all_at_once_are_as_gymnasiums_vectoriser_steps_single_ones(
    task: str, more: dict[str, Any], mode: str
) -> None:
    """Observations, rewards, ends and infos, bit by bit, over several episodes."""
    count = 9  # eight in lanes, one alone
    options = {
        "task": task,
        "wind": 3.0,
        "gusts": 0.5,
        "rotor_failures": 0.2,
        "period": 0.05,
        "spread": 0.1,
        **more,
    }
    ours = gymnasium.make_vec(ID, num_envs=count, autoreset_mode=mode, **options)
    theirs = gymnasium.make_vec(
        ID,
        num_envs=count,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )
    assert isinstance(ours, environments.LandAirVectorEnv)
    assert ours.metadata["autoreset_mode"] is vector.AutoresetMode(mode)
    for space in ("single_observation_space", "single_action_space"):
        assert getattr(ours, space) == getattr(theirs, space)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space

    rng = np.random.default_rng(3)
    own, own_info = ours.reset(seed=11)
    other, other_info = theirs.reset(seed=11)
    # some reach their time limit soon
    late = round(TASKS[task].duration / 0.05)
    for i in range(0, count, 2):
        ours.batch.episodes.steps[i] = late - 10 - 3 * i
        theirs.envs[i].unwrapped.batch.episodes.steps[0] = late - 10 - 3 * i
    ended = 0
    for step in range(60):
        assert own.tobytes() == other.tobytes()
        assert own in ours.observation_space
        same(own_info, other_info)
        actions = rng.uniform(-1.5, 1.0, ours.action_space.shape).astype(np.float32)
        own, *own_rest, own_info = ours.step(actions)
        other, *other_rest, other_info = theirs.step(actions)
        for a, b in zip(own_rest, other_rest, strict=True):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        over = own_rest[1] | own_rest[2]
        ended += over.sum()
        if mode == "Disabled" and over.any():
            assert own.tobytes() == other.tobytes()
            own, own_info = ours.reset(options={"reset_mask": over})
            other, other_info = theirs.reset(options={"reset_mask": over.copy()})
        if step == 40:
            own, own_info = ours.reset()
            other, other_info = theirs.reset()
    assert ended >= 5


def test_seeds() -> None:
    environment = gymnasium.make_vec(ID, num_envs=3, task="waypoints")
    first, _ = environment.reset(seed=5)
    later, _ = environment.reset()
    assert (first != later).any(axis=1).all()
    assert environment.reset(seed=5)[0].tobytes() == first.tobytes()
    assert environment.reset()[0].tobytes() == later.tobytes()
    shifted, _ = environment.reset(seed=[6, 7, 5])
    assert shifted.tobytes() == first[[1, 2, 0]].tobytes() or (
        shifted[0].tobytes() == first[1].tobytes() and shifted[2].tobytes() == first[0].tobytes()
    )
    one_new, _ = environment.reset(seed=[None, 6, None])
    assert one_new[1].tobytes() == first[1].tobytes()
    assert one_new[2].tobytes() == later[0].tobytes()

    # without any seed they differ, also between environments
    drawn = [gymnasium.make_vec(ID, num_envs=2).reset()[0] for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()
    assert (drawn[0][0] != drawn[0][1]).any()
    alone = [gymnasium.make(ID).reset()[0] for _ in range(2)]
    assert (alone[0] != alone[1]).any()


def test_an_episode_that_has_ended_goes_on_only_after_a_reset() -> None:
    off = np.array([-1.0, 0.0, 0.0, 0.0], np.float32)
    environment = gymnasium.make(ID, task="hover").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step(off)
    environment.reset(seed=1)
    over = False
    while not over:
        *_, over, late, info = environment.step(off)
        assert not late
    assert Ending(info["ending"]) in (Ending.CRASHED, Ending.ASTRAY)
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode has ended"):
        environment.step(off)

    # many
    for mode in MODES:
        several = gymnasium.make_vec(ID, num_envs=2, task="hover", autoreset_mode=mode)
        with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has begun"):
            several.step(np.tile(off, (2, 1)))
    assert several.autoreset_mode is vector.AutoresetMode.DISABLED
    several.reset(seed=1)
    several.batch.episodes.steps[1] = 499
    several.step(np.zeros((2, 4)))
    with pytest.raises(gymnasium.error.ResetNeeded, match="environment 1 has ended"):
        several.step(np.zeros((2, 4)))


def test_pictures_show_the_vehicle_and_its_target() -> None:
    environment = gymnasium.make(ID, task="hover", render_mode="rgb_array")
    environment.reset(seed=3)
    picture = environment.render()
    assert picture.shape == (180, 320, 3)
    assert picture.dtype == np.uint8
    red, green, blue = picture[80:110, 130:190].reshape(-1, 3).astype(int).T
    assert ((red > 2 * green) & (red > 2 * blue)).sum() > 20  # its body
    red, green, blue = picture.reshape(-1, 3).astype(int).T
    assert ((red > 100) & (green > 0.7 * red) & (4 * blue < red)).sum() > 100  # its target

    both = gymnasium.make_vec(ID, num_envs=2, task="hover", render_mode="rgb_array")
    both.reset(seed=2)
    pictures = both.render()
    assert len(pictures) == 2
    assert pictures[1].tobytes() == picture.tobytes()
    assert gymnasium.make_vec(ID, num_envs=2).render() is None

    # before the first episode there is nothing to see
    unbegun = gymnasium.make_vec(ID, num_envs=2, task="hover", render_mode="rgb_array")
    one = gymnasium.make(ID, task="hover", render_mode="rgb_array").unwrapped
    for environment in (unbegun, one):
        with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has begun"):
            environment.render()
    unbegun.reset(seed=1, options={"reset_mask": np.array([True, False])})
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has begun"):
        unbegun.render()
    assert gymnasium.make(ID).unwrapped.render() is None


def test_arguments_that_cannot_be_used() -> None:
    for options, text in (
        ({"autoreset_mode": "never"}, "autoreset_mode: 'never', expected one of NextStep"),
        ({"render_mode": "ansi"}, "render_mode: 'ansi', expected one of human, rgb_array"),
        ({"task": "sleep"}, "task: 'sleep'"),
    ):
        with pytest.raises(ConfigError, match=text):
            environments.LandAirVectorEnv(2, **options)
    with pytest.raises(ConfigError, match="render_mode"):
        environments.LandAirEnv(render_mode="ansi")

    environment = environments.LandAirVectorEnv(3)
    for seed, options, text in (
        ([1, 2], None, "seed: 2 seeds, expected 3"),
        ([1, -2, 3], None, "seed: -2, expected a whole number of at least 0"),
        ([1, 2.5, 3], None, "seed: 2.5, expected a whole number"),
        (2.5, None, "seed: 2.5, expected a whole number"),
        (None, {"reset_mask": [True] * 3}, "reset_mask: expected an array of bool"),
        (None, {"reset_mask": np.zeros(3, bool)}, r"with 0 True, expected \(3,\) with at least"),
        (None, {"reset_mask": np.ones(2, bool)}, r"shape \(2,\) with 2 True, expected \(3,\)"),
    ):
        with pytest.raises(ConfigError, match=text):
            environment.reset(seed=seed, options=options)
    with pytest.raises(ConfigError, match="options: 5, expected a dict"):
        environment.reset(options=5)


def test_without_gymnasium_an_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    text = f"an environment to learn in needs gymnasium; {how_to_install('learn')}"
    with pytest.raises(ConfigError) as error:
        register_environments()
    assert str(error.value) == text
