# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Policies of Stable-Baselines3 as ONNX files: they act as the library itself predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import ConfigError
from rfly_lab import (
    Policy,
    PolicyFacts,
    as_stable_baselines,
    register_environments,
    write_policy,
)

pytestmark = [
    pytest.mark.needs("gymnasium", "onnx", "onnxruntime", "onnxscript", "stable_baselines3"),
    pytest.mark.filterwarnings("ignore"),  # of torch's exporter
    pytest.mark.slow,
]
gymnasium = late_module("gymnasium")
sb3 = late_module("stable_baselines3")
vec_env = late_module("stable_baselines3.common.vec_env")


@pytest.mark.parametrize("normalizes", [False, True])
def test_a_file_acts_as_the_model_predicts(normalizes: bool, tmp_path: Path) -> None:
    register_environments()
    raw = gymnasium.make_vec("rfly/LandAir-v0", num_envs=4, autoreset_mode="SameStep")
    envs: Any = as_stable_baselines(raw)
    if normalizes:
        envs = vec_env.VecNormalize(envs)
    model = sb3.PPO("MlpPolicy", envs, n_steps=16, batch_size=64, n_epochs=1, seed=1, device="cpu")
    model.learn(64)  # the normalisation has seen something, too
    file = tmp_path / "policy.onnx"
    facts = PolicyFacts.of(raw.batch)
    write_policy(file, model, facts)

    policy = Policy(file)
    assert policy.facts == facts
    assert policy.params.name == "scale"
    seen = np.random.default_rng(2).normal(0.0, 3.0, (50, 31)).astype(np.float32)
    expected, _ = model.predict(
        envs.normalize_obs(seen) if normalizes else seen, deterministic=True
    )
    assert policy.act(seen) == pytest.approx(expected, abs=1e-5)
    assert (policy.act(100.0 * seen) >= -1.0).all()

    # other observations or models
    other = PolicyFacts(**{**vars(facts), "observation_names": ("one_m",)})
    with pytest.raises(ConfigError, match=r"observations: \(31,\), expected \(1,\)"):
        write_policy(file, model, other)
    other = PolicyFacts(**{**vars(facts), "action_names": ("thrust",)})
    with pytest.raises(ConfigError, match=r"actions: \(4,\), expected \(1,\)"):
        write_policy(file, model, other)
    squashed = sb3.PPO(
        "MlpPolicy", envs, use_sde=True, policy_kwargs={"squash_output": True}, device="cpu"
    )
    with pytest.raises(ConfigError, match="squash_output"):
        write_policy(file, squashed, facts)
    off_policy = sb3.DDPG("MlpPolicy", envs, device="cpu")
    with pytest.raises(ConfigError, match="expected an ActorCriticPolicy"):
        write_policy(file, off_policy, facts)
    assert Policy(file).facts == facts
