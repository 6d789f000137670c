# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The adapter to Stable-Baselines3, held against that library's own of single environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import ConfigError
from rfly_lab import as_stable_baselines, register_environments
from rfly_lab.learning.tasks import TASKS

pytestmark = pytest.mark.needs("gymnasium", "stable_baselines3")
gymnasium = late_module("gymnasium")
vec_env = late_module("stable_baselines3.common.vec_env")

ID = "rfly/LandAir-v0"


@pytest.fixture(autouse=True)
def registered() -> None:
    register_environments()


def adapted(count: int, **options: Any) -> Any:
    raw = gymnasium.make_vec(ID, num_envs=count, autoreset_mode="SameStep", **options)
    return as_stable_baselines(raw)


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert np.array_equal(ours[name], value), name


@pytest.mark.parametrize("task", ["hover", "goal"])
def test_it_steps_as_their_dummy_of_single_ones_bit_by_bit(task: str) -> None:
    count = 5
    options = {"task": task, "period": 0.05, "wind": 3.0, "gusts": 0.5}
    ours = adapted(count, **options)
    theirs = vec_env.DummyVecEnv(
        [
            lambda: gymnasium.make(ID, disable_env_checker=True, **options).unwrapped
            for _ in range(count)
        ]
    )
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space

    ours.seed(11)
    theirs.seed(11)
    assert ours.reset().tobytes() == theirs.reset().tobytes()
    # some reach their time limit soon
    late = round(TASKS[task].duration / 0.05)
    for i in range(0, count, 2):
        ours.envs.unwrapped.batch.episodes.steps[i] = late - 10 - 3 * i
        theirs.envs[i].unwrapped.batch.episodes.steps[0] = late - 10 - 3 * i

    rng = np.random.default_rng(3)
    ends = []
    for _ in range(60):
        actions = rng.uniform(-1.5, 1.0, (count, *ours.action_space.shape)).astype(np.float32)
        own, own_rewards, own_over, own_infos = ours.step(actions)
        other, rewards, over, infos = theirs.step(actions)
        assert own.tobytes() == other.tobytes()
        assert own_rewards.dtype == rewards.dtype
        assert own_rewards.tobytes() == rewards.tobytes()
        assert own_over.tobytes() == over.tobytes()
        for i in range(count):
            same(own_infos[i], infos[i])
            same(ours.reset_infos[i], theirs.reset_infos[i])
        ends += [infos[i]["TimeLimit.truncated"] for i in np.flatnonzero(over)]
    assert any(ends)

    # seeds count once
    assert ours.reset().tobytes() == theirs.reset().tobytes()


def test_observations_are_the_callers_own() -> None:
    envs = adapted(2)
    envs.seed(1)
    first = envs.reset()
    kept = first.copy()
    envs.step(np.zeros((2, 4), np.float32))
    assert first.tobytes() == kept.tobytes()


def test_environments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"autoreset_mode: .*, expected SameStep"):
        as_stable_baselines(gymnasium.make_vec(ID, num_envs=2))
    envs = adapted(2)
    with pytest.raises(ConfigError, match="one batch"):
        envs.set_attr("period", 0.1)
    with pytest.raises(ConfigError, match="one batch"):
        envs.env_method("render")
    envs.set_options({"reset_mask": np.ones(2, np.bool_)})
    with pytest.raises(ConfigError, match="options"):
        envs.reset()
    assert envs.get_attr("render_mode") == [None, None]
    assert envs.env_is_wrapped(gymnasium.Wrapper, [0]) == [False]
