# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The loader of all YAML files: values by YAML 1.2's core schema, lines, and the writer."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.config import marked_yaml
from rfly_common.config.marked_yaml import dump_yaml, parse_yaml
from rfly_common.errors import ConfigError

TEXT = """
a: 1
b: [1.5, -2e+3, true, no, ~, text, "3", 'it''s', 0x1F, 1_000]
c: {d: {e: [[], {}]}}
f: |
  two
  lines
g: &x {h: 1, i: 2}
j: {<<: *x, i: 3}
k: [*x, *x]
"""
VALUE = {
    "a": 1,
    "b": [1.5, -2000.0, True, "no", None, "text", "3", "it's", 31, "1_000"],
    "c": {"d": {"e": [[], {}]}},
    "f": "two\nlines\n",
    "g": {"h": 1, "i": 2},
    "j": {"h": 1, "i": 3},
    "k": [{"h": 1, "i": 2}] * 2,
}


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_values_and_lines(loader, monkeypatch):
    """PyYAML's own parser and libyaml read the same."""
    monkeypatch.setattr(marked_yaml, "YAML_LOADER", loader)
    document = parse_yaml(TEXT, "f.yaml")
    assert document.value == VALUE
    paths = [["a"], ["b", 3], ["c", "d", "e", 1], ["g", "i"], ["j", "i"], ["j", "h"]]
    assert [document.line(path) for path in paths] == [2, 3, 4, 8, 9, 8]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        # YAML 1.2.2, section 10.3.2, and its example 10.9
        ("null Null NULL ~", None),
        ("true True TRUE", True),
        ("false False FALSE", False),
        ("10 +10 010 0o12 0xA 0xa", 10),
        ("-19 -019", -19),
        ("9223372036854775807", 2**63 - 1),
        ("1e2 1E2 +1e2 10e1 1000e-1 0100", 100),
        ("100.0 1.e+2 .1e3 0100.", 100.0),
        ("1e16", 1e16),
        (".5 +.5 0.5 5e-1", 0.5),
        ("-0.0123 -1.23e-02 -1.23E-2", -0.0123),
        ("!!float,3.0", 3.0),
        ("!!int,010", 10),
        ("!!str,10 !,10 '10'", "10"),
    ],
)
def test_plain_words_of_the_core_schema(words, value):
    for word in words.split(" "):
        read = parse_yaml(f"[{word.replace(',', ' ')}]", "f.yaml").value[0]
        assert (read, type(read)) == (value, type(value)), word


def test_words_that_other_readers_take_for_values_are_text():
    text = (
        "[y, n, yes, no, on, off, Yes, NO, Off, nUll, tRUE, 1:30, 190:20:30, -1:30.5, 1_000, "
        "0b101, 0O7, -0x1f, -0o7, 1e, 1e+, e5, ., +, .e1, 1.2.3, 0x, 0o8, 2001-12-14, =, "
        "infinity, nan, NaN, inf, ٣]"
    )
    assert parse_yaml(text, "f.yaml").value == text.strip("[]").split(", ")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (".inf", "f.yaml:1: a: .inf is not a finite number"),
        ("-.INF", "f.yaml:1: a: -.INF is not a finite number"),
        (".NaN", "f.yaml:1: a: .NaN is not a finite number"),
        ("1e999", "f.yaml:1: a: 1e999 is not a finite number"),
        ("-9223372036854775809", "f.yaml:1: a: -9223372036854775809 is too large"),
        ("!!int 1.5", "f.yaml:1: a: '1.5' is not of the type int"),
        ("!!bool yes", "f.yaml:1: a: 'yes' is not of the type bool"),
        ("!!python/name:os.system", "tag 'tag:yaml.org,2002:python/name:os.system' has no meaning"),
    ],
)
def test_no_such_value(word, message):
    with pytest.raises(ConfigError) as refused:
        parse_yaml(f"a: {word}", "f.yaml")
    assert message in str(refused.value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.from_regex(r"[-+.0-9eExobn_:]{1,6}", fullmatch=True),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(value=json_values)
@settings(deadline=None)
def test_what_is_written_is_read_alike_by_both_rules(value):
    text = dump_yaml(value)
    assert parse_yaml(text, "f.yaml").value == value
    assert yaml.safe_load(text) == value


def test_text_like_a_number_is_written_with_quotes():
    assert dump_yaml({"vehicle": "1e5", "b": "010", "c": "off"}) == (
        "vehicle: '1e5'\nb: '010'\nc: 'off'\n"
    )
