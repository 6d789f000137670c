# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Policies that are made for a test: no training needs to have found them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from optional_parts import late_module

from rfly_lab import PolicyFacts
from rfly_lab.learning.policy import METADATA_KEY

onnx = late_module("onnx")


def blind(folder: Path, facts: PolicyFacts) -> Path:
    """A policy that always commands the wrench 0, whatever it sees, with any facts."""
    helper = onnx.helper
    kind = onnx.TensorProto.FLOAT
    numbers = len(facts.observation_names)
    weights = helper.make_tensor("weights", kind, (numbers, 4), np.zeros(numbers * 4))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["observation", "weights"], ["action"])],
        "blind",
        [helper.make_tensor_value_info("observation", kind, ("n", numbers))],
        [helper.make_tensor_value_info("action", kind, ("n", 4))],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, {METADATA_KEY: facts.text()})
    file = folder / "blind.onnx"
    onnx.save(model, file)
    return file
