# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The tree of exceptions that `rfly_common.errors` draws."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from rfly_common import errors
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import (
    LONGEST_TEXT,
    ConfigError,
    FeedbackError,
    PacketError,
    RflyError,
    shortened,
)

_LINE = re.compile(r"^    (?P<branches>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: \((?P<builtin>\w+)\))?", re.M)
_INDENT = 4
"""Columns of one level of the drawing."""


def drawn_tree():
    """Name -> (its parent's name, the built-in exception in brackets), from the drawing."""
    tree = {}
    above = []
    for line in _LINE.finditer(errors.__doc__):
        level = len(line["branches"]) // _INDENT
        del above[level:]
        tree[line["name"]] = (above[-1] if above else "Exception", line["builtin"])
        above.append(line["name"])
    return tree


def defined_tree():
    """The same of the classes; a private base is skipped, what it inherits counts."""
    tree = {}
    for name, cls in vars(errors).items():
        if not inspect.isclass(cls) or name.startswith("_") or cls.__module__ != errors.__name__:
            continue
        ancestors = [base for base in cls.__mro__[1:] if not base.__name__.startswith("_")]
        parent = ancestors[0]
        added = [
            base.__name__
            for base in ancestors
            if base.__module__ == "builtins" and not issubclass(parent, base)
        ]
        tree[name] = (parent.__name__, added[0] if added else None)
    return tree


def test_the_drawing_shows_each_error_below_its_base():
    assert drawn_tree() == defined_tree()


@pytest.mark.parametrize(
    ("key", "path", "message"),
    [
        ((), (), "too short"),
        ("to", ("to",), "to: too short"),
        (("points", 3), ("points", 3), "points[3]: too short"),
        (("shape", "points", 0), ("shape", "points", 0), "shape.points[0]: too short"),
    ],
)
def test_a_config_error_has_its_key_apart_from_its_text(key, path, message):
    error = errors.ConfigError("too short", key=key)
    assert (error.key, error.text, str(error)) == (path, "too short", message)


def test_the_text_of_a_config_error_is_never_taken_for_a_key():
    error = errors.ConfigError("shape: too short")
    assert (error.key, error.text) == ((), "shape: too short")


def test_a_larger_value_prefixes_its_path_and_keeps_the_kind_of_error():
    error = errors.TooLargeError("too many", key=("points", 3)).inside("vehicles", 2, "shape")
    assert type(error) is errors.TooLargeError
    assert error.key == ("vehicles", 2, "shape", "points", 3)
    assert str(error) == "vehicles[2].shape.points[3]: too many"


def test_a_config_error_keeps_its_key_on_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(errors.TooLargeError("too many", key=("points", 3))))
    assert (error.key, error.text, str(error)) == (("points", 3), "too many", "points[3]: too many")


def test_a_document_adds_file_and_line_to_the_error_of_a_part():
    document = parse_yaml("shape:\n  points:\n    - 1\n    - 2\n", "a.yaml")
    error = document.located(errors.ConfigError("too small", key=("points", 1)), ("shape",))
    assert str(error) == "a.yaml:4: shape.points[1]: too small"
    assert str(document.located(errors.ConfigError("odd: yes"), ("shape",))) == (
        "a.yaml:1: shape: odd: yes"
    )


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("x" * 100_000 + ", expected a number", key="speed"),
        PacketError("length", "y" * 100_000 + ", expected a number"),
        FeedbackError(98, "z" * 100_000 + ", expected a number"),
        RflyError("a" * 100_000 + ", expected a number"),
    ],
)
def test_a_long_text_is_shown_without_its_middle(error):
    """The end of the message says what would be right."""
    assert len(str(error)) == LONGEST_TEXT == 1000
    assert str(error).endswith(", expected a number")
    assert " … " in str(error)
    assert len(error.whole_text()) > 100_000


def test_a_text_of_usual_length_is_whole():
    assert shortened("b" * 1000) == "b" * 1000
