# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Configuration documents: what is refused before it costs time, and errors of one short line."""

from __future__ import annotations

import jsonschema
import pytest

from rfly_common.config import documents
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import ConfigError

SCHEMA = {"properties": {"objects": {"type": "array", "maxItems": 3, "items": {"type": "integer"}}}}


def test_a_list_that_is_too_long_is_counted_before_its_elements_are_looked_at(monkeypatch):
    class Validator:
        def __init__(self, schema):
            raise AssertionError("it looks at the elements")

    monkeypatch.setattr(jsonschema, "Draft7Validator", Validator)
    with pytest.raises(ConfigError, match=r"^w\.yaml:2: objects: 4 elements, allowed: at most 3$"):
        documents.check_schema(parse_yaml("version: 1\nobjects: [a, b, c, d]\n", "w.yaml"), SCHEMA)


def test_lists_that_are_not_too_long_and_values_that_are_none_are_validated():
    documents.check_schema(parse_yaml("objects: [1, 2, 3]\n", "w.yaml"), SCHEMA)
    for text in ("objects: [1, a]\n", "objects: abcde\n"):
        with pytest.raises(ConfigError, match=r"^w\.yaml:1: objects"):
            documents.check_schema(parse_yaml(text, "w.yaml"), SCHEMA)


def test_an_error_quotes_no_more_than_fits_a_line():
    document = parse_yaml("frame: x\n", "path.yaml")
    assert str(document.error(("frame",), "is wrong")) == "path.yaml:1: frame: is wrong"
    text = str(document.error(("frame",), f"{'x' * 5000!r} is no frame"))
    assert text.startswith("path.yaml:1: frame: 'xxx")
    assert text.endswith("x…")
    assert len(text) < 600


KEYS = {
    "type": "object",
    "required": ["version", "mass"],
    "additionalProperties": False,
    "properties": {
        "version": {"enum": [1]},
        "mass": {
            "type": "object",
            "required": ["body_kg"],
            "additionalProperties": False,
            "properties": {
                "body_kg": {"type": "number", "exclusiveMinimum": 0},
                "frame_kg": {"type": "number"},
            },
        },
        "shape": {"type": "object", "required": ["type"], "properties": {"type": {}}},
        "fault": {"required": ["kind"], "properties": {"kind": {"enum": ["off", "stuck"]}}},
    },
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the unknown key also makes another one missing, on a line before it
        ("version: 1\nmass:\n  frame_kg: 2\n  body_mass_kg: 3\n",
         "f.yaml:4: mass.body_mass_kg: unknown key; did you mean body_kg? "
         "allowed: body_kg, frame_kg"),
        ("version: 1\nmas: {body_kg: 3}\n",
         "f.yaml:2: mas: unknown key; did you mean mass? allowed: fault, mass, shape, version"),
        ("version: 2\nmass: {body_kg: 3, zzz: 1}\n",
         "f.yaml:2: mass.zzz: unknown key; allowed: body_kg, frame_kg"),
        ("version: 1\nmass: {frame_kg: 3}\n", "f.yaml:2: mass: the key body_kg is missing"),
        ("mass: {body_kg: 3}\n", "f.yaml:1: the key version is missing; add version: 1"),
        ("version: 1\nmass: {body_kg: -3}\n", "f.yaml:2: mass.body_kg: -3, expected more than 0"),
        ("version: 1\nmass: {body_kg: 3}\nfault: {value: 1}\n",
         "f.yaml:3: fault: the key kind is missing; add kind: off or stuck"),
        # a mapping whose keys depend on its type
        ("version: 1\nmass: {body_kg: 3}\nshape: {typ: box}\n",
         "f.yaml:3: shape.typ: unknown key; did you mean type?"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_named_before_the_one_that_is_missing_for_it(text, expected):
    with pytest.raises(ConfigError) as error:
        documents.check_schema(parse_yaml(text, "f.yaml"), KEYS)
    assert str(error.value) == expected


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n"])
def test_tabs_that_indent_are_named(text):
    with pytest.raises(ConfigError, match=r"not valid YAML: .*; indent with spaces, not with tabs"):
        parse_yaml(text, "f.yaml")
    with pytest.raises(ConfigError) as error:
        parse_yaml("a: [1\n", "f.yaml")
    assert "tabs" not in str(error.value)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
def test_mistakes_behind_any_end_of_a_line_are_named(end):
    with pytest.raises(ConfigError, match=r"^f.yaml:3: not valid YAML: .*; indent with spaces"):
        parse_yaml(f"a:{end}  b: 1{end}\tc: 2{end}", "f.yaml")
    # the last line with text, not one behind the end of the file
    with pytest.raises(ConfigError, match=r"^f.yaml:2: not valid YAML: .*sequence$"):
        parse_yaml(f"a:{end}b: [1{end}{end}", "f.yaml")
