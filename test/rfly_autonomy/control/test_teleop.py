# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Keys and joysticks: their velocities and requests in each mode, worked out by hand."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_autonomy.control.axle_lift import Assist
from rfly_autonomy.control.teleop import (
    JoyPilot,
    JoystickLayout,
    KeyPilot,
    KeyReader,
    Sticks,
    TeleopLimits,
    Velocity,
)
from rfly_common.errors import ConfigError

LIMITS = TeleopLimits(drive_speed=4.0, curvature=0.5, fly_speed=6.0, climb_speed=2.0, yaw_rate=1.0)
LAYOUT = JoystickLayout(dead_zone=0.2)


def pilot(mode, keys):
    operator = KeyPilot(LIMITS)
    operator.set_mode(mode)
    words = [word for key in keys if (word := operator.press(key))]
    return operator, words


def test_keys_drive():
    """Three presses of faster: 0.3 of 4 m/s. Two to the left: 0.2 of 0.5 1/m.

    At 1.2 m/s that turns with 0.12 rad/s.
    """
    operator, words = pilot("DRIVE", ["w", "w", "up", "a", "left", "q", "r"])
    assert operator.velocity == pytest.approx((1.2, 0.0, 0.0, 0.12))
    assert not words
    operator.press("c")
    assert operator.velocity == pytest.approx((1.2, 0.0, 0.0, 0.0))
    operator.press(" ")
    assert operator.velocity == Velocity()
    assert pilot("DRIVE", ["s"] * 30)[0].velocity.forward == -4.0


def test_keys_fly():
    operator, _ = pilot("FLIGHT", ["w", "e", "e", "f", "d", "d", "d"])
    assert operator.velocity == pytest.approx((0.6, -1.2, -0.2, -0.3))


def test_keys_ask_for_modes_and_a_new_mode_begins_at_rest():
    operator, words = pilot("DRIVE", ["o", "t", "l", "k", "x", "z"])
    assert words == ["arm", "takeoff", "land", "abort", "disarm"]
    operator.press("w")
    operator.set_mode("DRIVE")
    assert operator.velocity.forward > 0.0
    operator.set_mode("TAKEOFF")
    operator.press("w")
    assert operator.velocity == Velocity(), "a take-off is not steered"
    operator.set_mode("FLIGHT")
    assert operator.velocity == Velocity()


@pytest.mark.parametrize(
    ("modes", "forward"),
    [
        (("DRIVE", "ROLLING_TAKEOFF"), 2.0),
        (("DRIVE", "ROLLING_TAKEOFF", "FLIGHT"), 3.0),
        (("DRIVE", "ROLLING_TAKEOFF", "FLIGHT", "ROLLING_LAND"), 3.0),
        (("DRIVE", "ROLLING_TAKEOFF", "FLIGHT", "ROLLING_LAND", "ROLL_OUT", "DRIVE"), 2.0),
        (("DRIVE", "ROLLING_TAKEOFF", "LAND", "SPOOL_DOWN", "DRIVE"), 0.0),
        (("DRIVE", "TAKEOFF", "FLIGHT"), 0.0),
    ],
)
def test_a_vehicle_that_takes_off_and_lands_rolling_keeps_its_speed(modes, forward):
    """Five presses of faster: half of 4 m/s on the ground and of 6 m/s in the air."""
    operator, words = pilot(modes[0], ["w"] * 5 + ["a", "y", "j"])
    assert words == ["rolling_takeoff", "rolling_land"]
    for mode in modes[1:]:
        operator.set_mode(mode)
    assert operator.velocity == Velocity(forward)


@pytest.mark.parametrize(("held", "prefix"), [(1, "rolling_"), (0, "")])
def test_a_held_button_makes_take_off_and_landing_rolling(held, prefix):
    joy = JoyPilot(LIMITS, LAYOUT)
    joy.update([0.0] * 6, [0] * 8)
    buttons = [0] * 8
    buttons[LAYOUT.button_rolling] = held
    for number, word in ((3, f"{prefix}takeoff"), (0, f"{prefix}land"), (1, "abort")):
        pressed = list(buttons)
        pressed[number] = 1
        assert joy.update([0.0] * 6, pressed)[1] == [word]


@pytest.mark.parametrize(
    ("mode", "keys", "assist"),
    [
        ("DRIVE", "g", Assist.LIFT_FRONT),
        ("DRIVE", "gb", Assist.LIFT_REAR),
        ("DRIVE", "gg", None),
        ("DRIVE", "b ", None),
        ("FLIGHT", "g", None),
    ],
)
def test_keys_lift_an_axle_on_the_ground_and_lower_it(mode, keys, assist):
    operator, words = pilot(mode, keys)
    assert operator.assist is assist
    assert not words
    operator.set_mode("ABORT")
    assert operator.assist is None


@pytest.mark.parametrize(
    ("mode", "held", "assist"),
    [
        ("DRIVE", [5, 2], Assist.LIFT_FRONT),
        ("DRIVE", [5, 9], Assist.LIFT_REAR),
        ("DRIVE", [2], None),
        ("DRIVE", [5], None),
        ("TAKEOFF", [5, 2], None),
    ],
)
def test_an_axle_is_lifted_while_its_button_is_held(mode, held, assist):
    joy = JoyPilot(LIMITS, LAYOUT)
    joy.mode = mode
    joy.update([0.0] * 6, [int(number in held) for number in range(10)])
    assert joy.assist is assist


def test_bytes_of_a_terminal():
    reader = KeyReader()
    assert reader.keys(b"W\x1b[Aa\x1bOD \x1b[1;5C\x1b[3~t\n\xc3\xa4") == [
        "w",
        "up",
        "a",
        "left",
        " ",
        "right",
        "t",
    ]
    assert reader.keys(b"\x1b") == []
    assert reader.keys(b"[") == []
    assert reader.keys(b"Bl") == ["down", "l"]


@given(st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_any_bytes_in_any_pieces_give_the_same_keys(data, cuts):
    whole = KeyReader()
    parts = KeyReader()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [parts.keys(data[a:b]) for a, b in itertools.pairwise(edges)]
    assert whole.keys(data) == list(itertools.chain.from_iterable(pieces))


def test_a_joystick_flies_while_its_button_is_held():
    operator = JoyPilot(LIMITS, LAYOUT)
    operator.mode = "FLIGHT"
    axes = [0.6, -1.0, 0.0, 0.1, 0.2]
    held = [0] * 5 + [1, 0, 0]
    free = [0] * 8
    axes[4] = 1.0
    assert operator.update(axes, free) == (None, [])
    # 0.6 of a stick with a dead zone of 0.2: half way; 0.1 lies in it
    velocity, words = operator.update(axes, held)
    assert velocity == pytest.approx((6.0, 0.0, -2.0, 0.5))
    assert not words
    assert operator.update(axes, free)[0] == Velocity(), "let go in flight: it hovers on"
    assert operator.update(axes, free)[0] == Velocity()
    operator.mode = "DRIVE"
    assert operator.update(axes, free)[0] == Velocity(), "stops, and then others may command"
    assert operator.update(axes, free)[0] is None


def test_a_button_asks_once_for_each_press():
    operator = JoyPilot(LIMITS, JoystickLayout(button_land=-1))
    takeoff = [0, 0, 0, 1]
    assert operator.update([], takeoff)[1] == [], "it was down from the start"
    assert operator.update([], [0] * 4)[1] == []
    assert operator.update([], takeoff)[1] == ["takeoff"]
    assert operator.update([], takeoff)[1] == []
    assert operator.update([], [1, 1, 0, 0])[1] == ["abort"], "no button lands"


@given(
    st.lists(st.floats(), max_size=6),
    st.lists(st.integers(0, 1), max_size=8),
    st.sampled_from(["DRIVE", "FLIGHT"]),
)
def test_no_joystick_asks_for_more_than_the_limits(axes, buttons, mode):
    operator = JoyPilot(LIMITS, JoystickLayout(button_enable=-1))
    operator.mode = mode
    velocity, _ = operator.update(axes, buttons)
    assert all(map(math.isfinite, velocity))
    assert abs(velocity.forward) <= 6.0
    assert abs(velocity.up) <= 2.0
    assert abs(velocity.yaw_rate) <= 2.0


def test_limits_are_checked():
    with pytest.raises(ConfigError, match="fly_speed: 0, expected a finite number above 0"):
        TeleopLimits(fly_speed=0)
    assert LIMITS.velocity(Sticks(1, 1, 1, 1), "ABORT") == Velocity()
