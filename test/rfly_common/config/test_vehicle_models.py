# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The list of RflySim3D's models: numbers of its manual, both rules for styles, and names."""

from __future__ import annotations

import pytest

from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_common.config.vehicle_models import model_of, model_text, type_number, vehicle_models
from rfly_common.errors import ConfigError

# ClassIDs of the manual's tables
CLASSES = {
    "multirotor": 3,
    "person": 30,
    "car_blue": 50,
    "truck": 51,
    "light": 60,
    "fixed_wing": 100,
    "ring_target": 150,
    "quad_target": 151,
    "sphere_target": 152,
}


def test_names_give_the_numbers_of_the_manual():
    assert {name: type_number(name) for name in CLASSES} == CLASSES
    assert [type_number(name) for name in ("car", "Standard_Car_Blue", "quadcopter")] == [50, 50, 3]
    # F450: DisplayOrder 1000 of class 3, by the free edition's rule 1000 · 10000 + 3
    assert type_number("f450") == 10_000_003
    assert type_number("brick") == 1_000_813


def test_numbers_stay_what_they_are():
    assert [type_number(each) for each in (0, 4711, "4711", " 200150 ")] == [0, 4711, 4711, 200150]


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (10_000_003, "f450"),
        (100_000_003, "multirotor"),  # the full edition's rule: 1000 · 100000 + 3
        (100_050, "car_blue"),
        (10_050_050, "car_blue"),  # 1005 · 10000 + 50, which no rule with 100000 gives
        (200_150, "ring_target"),
        (813, "brick"),
        (10_100_310, "type 10100310"),
        (4711, "type 4711"),
    ],
)
def test_a_number_is_the_first_model_of_its_class(number, name):
    assert model_text(number) == name


@pytest.mark.parametrize(
    ("wrong", "proposal"),
    [
        ("car_bleu", "did you mean car_blue or"),
        ("ringtarget", "did you mean ring_target"),
        ("zzz", "no model is named 'zzz'; expected a number from 0 to 2147483647 or one of"),
        ("-3", "no model is named '-3'"),
        ("99999999999", "expected a number"),
    ],
)
def test_an_unknown_name_proposes_similar_ones(wrong, proposal):
    with pytest.raises(ConfigError, match=proposal):
        type_number(wrong)


def test_names_are_unique_and_each_look_is_a_shape():
    names = [name for model in vehicle_models() for name in (model.name, *model.aliases)]
    assert len(set(names)) == len(names)
    assert {model.source for model in vehicle_models()} == {"manual", "scripts", "suite"}

    shapes = load_shapes()
    for model in vehicle_models():
        shape = shapes[int(shapes.index_of(model.vehicle_type))]
        assert shape.name == (model.look or "box"), model
        assert model_of(model.vehicle_type) is model
