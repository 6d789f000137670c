# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Configuration documents: what is refused before it costs time, and errors of one short line."""

from __future__ import annotations

import pytest

from rfly_common.config import documents
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import ConfigError

SCHEMA = {"properties": {"objects": {"type": "array", "maxItems": 3, "items": {"type": "integer"}}}}


def test_a_list_that_is_too_long_is_counted_before_its_elements_are_looked_at(monkeypatch):
    class Validator:
        def __init__(self, schema):
            raise AssertionError("it looks at the elements")

    monkeypatch.setattr(documents.jsonschema, "Draft7Validator", Validator)
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
