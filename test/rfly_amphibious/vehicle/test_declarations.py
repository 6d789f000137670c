# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters declared once: schema files, values and the kernels' record follow, whatever the order
of keys.
"""

from __future__ import annotations

import dataclasses
import random
from importlib.resources import files

import numpy as np
import pytest
import yaml

from rfly_amphibious import VehicleParameters
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.vehicle_record import vehicle_record
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_lab.write_schemas import ROOT, SCHEMAS, schema_text

KINDS = [
    (VehicleParameters, "rfly_amphibious", "vehicles"),
    (EstimatorParameters, "rfly_autonomy", "estimators"),
    (SensorParameters, "rfly_amphibious", "sensors"),
]


def shuffled(value, rng):
    """Return the same mapping with keys in another order, on all levels."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    return [shuffled(each, rng) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("file", SCHEMAS)
def test_the_schema_files_are_what_the_parameters_declare(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert text == schema_text(file), "python -m rfly_lab.write_schemas writes them anew"


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize(("cls", "package", "folder"), KINDS)
def test_the_order_of_keys_changes_nothing(cls, package, folder, seed, monkeypatch):
    """Neither the order of a file nor that of a schema matters."""
    text = (files(package) / "data" / folder / "scale.yaml").read_text(encoding="utf-8")
    expected = cls.parse(text.encode(), "scale.yaml", "scale")
    rng = random.Random(seed)
    other = yaml.safe_dump(shuffled(yaml.safe_load(text), rng), sort_keys=False)
    schema = shuffled(cls.schema(), rng)

    assert list(schema) != list(cls.schema())

    monkeypatch.setattr(cls, "schema", classmethod(lambda _: schema))
    found = cls.parse(other.encode(), "scale.yaml", "scale")
    if cls is not SensorParameters:
        assert found == expected
    else:
        for field in dataclasses.fields(cls):
            if field.name != "lines":
                assert repr(getattr(found, field.name)) == repr(getattr(expected, field.name))


def test_by_hand_some_values_land_in_their_fields():
    """Compare with the shipped file: a field with its neighbour's key would differ here."""
    p = VehicleParameters.load("scale")
    assert (p.mass_body, p.mass_rotor_frame, p.mass_unsprung) == (19.2, 6.0, 1.2)
    assert (p.front_axle, p.rear_axle, p.track, p.origin_height) == (0.32, 0.34, 0.56, 0.22)
    assert (p.friction_x, p.friction_y, p.shape_x, p.shape_y) == (0.95, 0.9, 1.65, 1.35)
    assert (p.inertia, p.steered, p.driven) == (
        (1.3, 2.2, 3.2, 0.0, 0.0, 0.0),
        "front",
        ("fl", "fr", "rl", "rr"),
    )


def test_the_record_of_the_kernels_has_every_number_under_its_own_name():
    p = VehicleParameters.load("scale").replace(inertia=(1.3, 2.2, 3.2, 0.1, 0.2, 0.3))
    record = vehicle_record(p, True, False, 0.0)
    for field in dataclasses.fields(p):
        value = getattr(p, field.name)
        if isinstance(value, float) or field.name in (
            "inertia",
            "linear_drag",
            "rotational_drag",
            "body_box",
        ):
            assert np.array_equal(getattr(record, field.name), value), field.name
