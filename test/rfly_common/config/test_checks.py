# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of arguments: what passes, and the words for what does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.config.checks import check_choice, finite_array, finite_number, whole_number
from rfly_common.errors import CommandError, ConfigError


def test_numbers_within_their_bounds_pass_as_floats():
    assert type(finite_number("n", 3)) is float
    assert finite_number("n", 0.0, at_least=0.0, at_most=0.0) == 0.0
    assert finite_number("n", np.float32(2.5), above=2.0) == 2.5
    assert finite_number("n", 5e-324, above=0.0) == 5e-324


@pytest.mark.parametrize(
    ("value", "bounds", "said"),
    [
        (0.0, {"above": 0.0}, "dt: 0.0 s, expected a finite number above 0"),
        (-1, {"at_least": 0.0}, "dt: -1 s, expected a finite number of at least 0"),
        (
            0.02,
            {"above": 0.0, "at_most": 0.01},
            "dt: 0.02 s, expected a finite number above 0 and of at most 0.01",
        ),
        (math.nan, {}, "dt: nan s, expected a finite number"),
        (math.inf, {"above": 0.0}, "dt: inf s, expected a finite number above 0"),
        ("soon", {}, "dt: 'soon' s, expected a finite number"),
        (None, {"above": 0.0}, "dt: None s, expected a finite number above 0"),
        (10**400, {}, "dt: inf s, expected a finite number"),
    ],
)
def test_other_numbers_are_refused(value, bounds, said):
    with pytest.raises(CommandError) as caught:
        finite_number("dt", value, "s", error=CommandError, **bounds)
    assert str(caught.value) == said


def test_whole_numbers_within_their_bounds_pass_whole():
    assert whole_number("n", 2**63 + 1, at_least=0) == 2**63 + 1  # no float has it
    assert type(whole_number("n", np.uint8(3), at_least=3, at_most=3)) is int
    assert whole_number("n", -7) == -7
    for value in (1, 5, 2.0, True, "3", None, [3], np.array([3]), math.nan):
        with pytest.raises(CommandError) as caught:
            whole_number("n", value, at_least=2, at_most=4, error=CommandError)
        assert str(caught.value) == (
            f"n: {value!r}, expected a whole number of at least 2 and of at most 4"
        )


@pytest.mark.parametrize("value", [5, None, [], {}, np.array(["a", "b"]), b"a"])
def test_a_choice_is_a_text(value):
    with pytest.raises(ConfigError, match=r"n: .*, expected one of a, b"):
        check_choice("n", value, {"a": 1, "b": 2})


def test_arrays_are_told_by_shape_and_by_their_first_wrong_number():
    np.testing.assert_array_equal(finite_array("v", (1, 2, 3), (3,)), [1.0, 2.0, 3.0])
    assert finite_array("v", np.full(20_000, 1e200)).size == 20_000  # their squares overflow
    for values, shape, said in (
        ((1, 2), (3,), "v: 2 numbers, expected 3"),
        ([[1, 2]], (3,), "v: shape (1, 2), expected (3,)"),
        ([[1, math.nan], [math.inf, 0]], None, "v[0, 1]: nan, expected a finite number"),
        (math.inf, None, "v: inf, expected a finite number"),
        ([*[0.0] * 20_000, math.nan], None, "v[20000]: nan, expected a finite number"),
    ):
        with pytest.raises(ConfigError) as caught:
            finite_array("v", values, shape)
        assert str(caught.value) == said


def test_choices_are_listed():
    check_choice("mode", "drive", ("drive", "fly"))
    with pytest.raises(ConfigError, match="mode: 'swim', expected one of drive, fly"):
        check_choice("mode", "swim", ("drive", "fly"))


@pytest.mark.parametrize(
    "check",
    [
        lambda: finite_number("rate", math.nan, "Hz"),
        lambda: finite_array("rate", (1, 2), (3,)),
        lambda: check_choice("rate", "swim", ("drive", "fly")),
    ],
)
def test_the_name_of_the_value_is_the_key_of_the_error(check):
    with pytest.raises(ConfigError) as caught:
        check()
    assert caught.value.key == ("rate",)
    assert str(caught.value) == f"rate: {caught.value.text}"
