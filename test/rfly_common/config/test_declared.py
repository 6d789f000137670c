# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters declared once: the schema that follows from dataclass fields, and the values read by
it.
"""

from __future__ import annotations

import dataclasses
import math

import jsonschema
import pytest

from rfly_common.config.declared import (
    choice,
    declarations,
    file_schema,
    flag,
    number,
    triple,
    values_of,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cart:
    mass: float = number("body.mass_kg", "of everything", above=0.0)
    tilt: float = number(
        "body.tilt_deg",
        "of the tray",
        scale=math.pi / 180,
        default=10.0,
        optional=True,
        at_most=45.0,
    )
    wheels: int = number("wheels", "in all", kind="integer", at_least=3, at_most=8)
    colour: str = choice("paint.colour", "outside", ("red", "green"))
    bell: bool = flag("paint.bell", "rings", default=True)
    size: tuple[float, float, float] = triple("body.size_m", "outer", "an edge", above=0.0)
    name: str = "cart"


GOOD = {
    "version": 1,
    "body": {"mass_kg": 12, "size_m": [1, 2, 3]},
    "wheels": 4,
    "paint": {"colour": "red"},
}


def test_the_schema_is_what_one_would_write_by_hand():
    schema = file_schema("Carts", Cart, {"body": "the tray"})
    assert schema == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Carts",
        "type": "object",
        "additionalProperties": False,
        "required": ["version", "body", "wheels", "paint"],
        "properties": {
            "version": {"type": "integer", "description": "of this file format", "enum": [1]},
            "body": {
                "type": "object",
                "description": "the tray",
                "additionalProperties": False,
                "required": ["mass_kg", "size_m"],
                "properties": {
                    "mass_kg": {
                        "type": "number",
                        "description": "of everything",
                        "exclusiveMinimum": 0.0,
                        "maximum": 1e9,
                    },
                    "tilt_deg": {"type": "number", "description": "of the tray", "maximum": 45.0},
                    "size_m": {
                        "type": "array",
                        "description": "outer",
                        "minItems": 3,
                        "maxItems": 3,
                        "items": {
                            "type": "number",
                            "description": "an edge",
                            "exclusiveMinimum": 0.0,
                            "maximum": 1e9,
                        },
                    },
                },
            },
            "wheels": {"type": "integer", "description": "in all", "minimum": 3, "maximum": 8},
            "paint": {
                "type": "object",
                "additionalProperties": False,
                "required": ["colour"],
                "properties": {
                    "colour": {
                        "type": "string",
                        "description": "outside",
                        "enum": ["red", "green"],
                    },
                    "bell": {"type": "boolean", "description": "rings"},
                },
            },
        },
    }


def test_values_are_read_in_si_with_defaults():
    jsonschema.validate(GOOD, file_schema("Carts", Cart))
    values = values_of(Cart, GOOD)
    assert values.pop("tilt") == pytest.approx(0.17453292519943295, rel=1e-15)
    assert values == {
        "mass": 12.0,
        "wheels": 4,
        "colour": "red",
        "bell": True,
        "size": (1.0, 2.0, 3.0),
    }
    assert values_of(Cart, {**GOOD, "paint": {"colour": "red", "bell": False}})["bell"] is False
    assert Cart(**values_of(Cart, GOOD)).name == "cart"


@pytest.mark.parametrize(
    "changed",
    [
        {"wheels": 2},
        {"wheels": 3.5},
        {"paint": {"colour": "blue"}},
        {"body": {"mass_kg": 0, "size_m": [1, 2, 3]}},
        {"body": {"mass_kg": 1, "size_m": [1, 2]}},
        {
            "body": {
                "mass_kg": 1,
                "size_m": [1, 2, 3],
                "tilt_deg": 46,
            }
        },
        {"horn": 1},
    ],
)
def test_what_is_out_of_range_does_not_fit(changed):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**GOOD, **changed}, file_schema("Carts", Cart))


def test_fields_without_a_declaration_are_no_keys():
    assert list(declarations(Cart)) == ["mass", "tilt", "wheels", "colour", "bell", "size"]
