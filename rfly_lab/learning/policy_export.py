# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A policy of Stable-Baselines3 and its normalisation, written as one ONNX file."""

from __future__ import annotations

from typing import Any

from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, write_whole
from rfly_common.imports import require
from rfly_lab.learning.policy import METADATA_KEY, PolicyFacts

CONSTANT = 1e-7
"""Variance up to which a number counts as one that never changed in the training.

VecNormalize begins with a variance of 1, which fades with the number of observations.
"""


def write_policy(path: StrPath, model: Any, facts: PolicyFacts) -> None:
    """Write what an actor and critic of Stable-Baselines3, such as PPO's, have learned.

    The file takes the environment's observations: those of a VecNormalize around the model's
    environments are normalised inside, and numbers that never changed are ignored, as nothing was
    learned of them. Its actions are those without exploration, from -1 to 1.
    Raise ConfigError for other models or observations, and without torch and onnx.
    """
    torch = require("torch", "writing a policy")
    onnx = require("onnx", "writing a policy")
    require("onnxscript", "writing a policy")
    policies = require("stable_baselines3.common.policies", "writing a policy")
    if not isinstance(model.policy, policies.ActorCriticPolicy):
        raise ConfigError(f"policy: {type(model.policy).__name__}, expected an ActorCriticPolicy")
    if model.policy.squash_output:
        raise ConfigError("policy: squash_output, expected actions that are only limited")
    numbers = len(facts.observation_names)
    if model.observation_space.shape != (numbers,):
        raise ConfigError(
            f"observations: {model.observation_space.shape}, expected {(numbers,)} as the facts say"
        )
    acted = (len(facts.action_names),)
    if model.action_space.shape != acted:
        raise ConfigError(f"actions: {model.action_space.shape}, expected {acted} as the facts say")
    normalizer = model.get_vec_normalize_env()

    class Network(torch.nn.Module):  # type: ignore[name-defined]
        """Normalisation, network and limits."""

        def __init__(self) -> None:
            super().__init__()
            self.policy = model.policy
            self.normalizes = normalizer is not None and normalizer.norm_obs
            if self.normalizes:
                variance = normalizer.obs_rms.var
                scale = (variance > CONSTANT) / (variance + normalizer.epsilon) ** 0.5
                self.register_buffer("mean", torch.tensor(normalizer.obs_rms.mean).float())
                self.register_buffer("scale", torch.tensor(scale).float())

        def forward(self, seen: Any) -> Any:
            """Return the actions, (n, numbers), for observations, (n, numbers)."""
            if self.normalizes:
                limit = normalizer.clip_obs
                seen = torch.clamp((seen - self.mean) * self.scale, -limit, limit)
            policy = self.policy
            features = policy.extract_features(seen, policy.pi_features_extractor)
            mean = policy.action_net(policy.mlp_extractor.forward_actor(features))
            return torch.clamp(mean, -1.0, 1.0)

    program = torch.onnx.export(
        Network().eval(),
        (torch.zeros((2, numbers)),),
        input_names=["observation"],
        output_names=["action"],
        dynamic_shapes={"seen": {0: torch.export.Dim("n")}},
        dynamo=True,
        verbose=False,
    )
    written = program.model_proto
    forget_sources(written)
    onnx.helper.set_model_props(written, {METADATA_KEY: facts.text()})
    write_whole(path, written.SerializeToString())


def forget_sources(model: Any) -> None:
    """Take out of an ONNX model what the exporter notes of the program, such as paths of files."""
    graph = model.graph
    parts = (graph.node, graph.initializer, graph.input, graph.output, graph.value_info)
    for part in (model, graph, *(each for group in parts for each in group)):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
