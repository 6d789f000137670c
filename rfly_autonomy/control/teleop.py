# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Teleoperation: keys and joystick axes to velocity setpoints and modes.

It needs neither a terminal nor ROS.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from rfly_autonomy.control.axle_lift import Assist
from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import parameter

KEY_STEP = 0.1
"""Share of the full deflection that one key press changes."""

HELP = """\
  W S or ↑ ↓   faster, slower / fly forward, backward     O   arm          T   take off
  A D or ← →   steer / turn left, right                   X   disarm       L   land
  Q E          fly left, right                            K   abort        C   straight on
  R F          climb, sink                            Space   brake, hover     Ctrl-C ends
  Y J          take off, land while the wheels roll
  G B          lift the front axle, the rear axle; again: lower it"""

_ON_WHEELS = ("DRIVE", "ROLLING_TAKEOFF", "ROLL_OUT")
"""Modes in which sticks drive."""

_ROLLS_ON = (
    {"DRIVE", "ROLLING_TAKEOFF"},
    {"ROLLING_TAKEOFF", "FLIGHT"},
    {"FLIGHT", "ROLLING_LAND"},
    {"ROLLING_LAND", "ROLL_OUT"},
    {"ROLL_OUT", "DRIVE"},
)
"""Changes of mode, either way, in which the vehicle moves on."""


class Velocity(NamedTuple):
    """Velocity of cmd_vel: m/s forward, to the left and up, and rad/s counter-clockwise."""

    forward: float = 0.0
    left: float = 0.0
    up: float = 0.0
    yaw_rate: float = 0.0


class Sticks(NamedTuple):
    """Deflections of -1 … 1, positive: forward, counter-clockwise, to the left, up."""

    forward: float = 0.0
    turn: float = 0.0
    left: float = 0.0
    up: float = 0.0


_limit = partial(parameter, low=0.001, high=100.0)


@dataclasses.dataclass(frozen=True)
class TeleopLimits:
    """Velocities at full deflection; parameters of teleop_node."""

    drive_speed: float = _limit(3.0, "fastest drive", unit="m/s")
    curvature: float = _limit(0.6, "sharpest bend that is driven", unit="1/m")
    fly_speed: float = _limit(3.0, "fastest flight", unit="m/s")
    climb_speed: float = _limit(1.0, "fastest climb and descent", unit="m/s")
    yaw_rate: float = _limit(0.8, "fastest turn in flight", unit="rad/s")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            finite_number(field.name, getattr(self, field.name), above=0.0)

    def velocity(self, sticks: Sticks, mode: str) -> Velocity:
        """Return the velocity for the sticks in a mode (by its name).

        Only DRIVE, FLIGHT and the rolling modes between them obey the sticks; in all other modes
        the vehicle stands or hovers.
        """
        if mode == "ROLLING_LAND":
            return Velocity(sticks.forward * self.fly_speed)
        if mode in _ON_WHEELS:
            speed = sticks.forward * self.drive_speed
            return Velocity(speed, yaw_rate=speed * sticks.turn * self.curvature)
        if mode == "FLIGHT":
            return Velocity(
                sticks.forward * self.fly_speed,
                sticks.left * self.fly_speed,
                sticks.up * self.climb_speed,
                sticks.turn * self.yaw_rate,
            )
        return Velocity()


_MOVES = {
    "w": ("forward", 1),
    "up": ("forward", 1),
    "s": ("forward", -1),
    "down": ("forward", -1),
    "a": ("turn", 1),
    "left": ("turn", 1),
    "d": ("turn", -1),
    "right": ("turn", -1),
    "q": ("left", 1),
    "e": ("left", -1),
    "r": ("up", 1),
    "f": ("up", -1),
}
_WORDS = {
    "o": "arm",
    "x": "disarm",
    "t": "takeoff",
    "l": "land",
    "k": "abort",
    "y": "rolling_takeoff",
    "j": "rolling_land",
}
_LIFTS = {"g": Assist.LIFT_FRONT, "b": Assist.LIFT_REAR}
_ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}


class KeyReader:
    """Reader of a terminal's bytes: names of keys.

    A sequence that comes in pieces is kept until it is complete.
    """

    def __init__(self) -> None:
        self._rest = b""

    def keys(self, data: bytes) -> list[str]:
        """Return the keys: lower-case characters, `up`, `down`, `left`, `right`.

        Other sequences and bytes are skipped.
        """
        data = self._rest + data
        self._rest = b""
        keys = []
        position = 0
        while position < len(data):
            # a single character
            if data[position] != 0x1B:
                if 0x20 <= data[position] < 0x7F:
                    keys.append(chr(data[position]).lower())
                position += 1
                continue

            # an escape that begins no sequence
            if data[position + 1 : position + 2] not in (b"[", b"O"):
                if position + 1 == len(data):
                    self._rest = data[position:]
                position += 1
                continue

            # a sequence, which may not be complete yet
            end = position + 2
            while end < len(data) and not 0x40 <= data[end] < 0x7F:
                end += 1
            if end == len(data):
                self._rest = data[position:][:16]
                break
            arrow = _ARROWS.get(data[end : end + 1])
            if arrow is not None:
                keys.append(arrow)
            position = end + 1
        return keys


class KeyPilot:
    """Keys that move sticks.

    The sticks stay where they are; in another mode they begin in the middle. A vehicle that takes
    off or lands rolling keeps its speed.
    """

    def __init__(self, limits: TeleopLimits) -> None:
        self.limits = limits
        self.sticks = Sticks()
        self.mode = ""
        self.assist: Assist | None = None
        """What the rotors do while the vehicle drives."""

    def set_mode(self, mode: str) -> None:
        """Take note of the vehicle's mode."""
        if mode != self.mode:
            rolls_on = {mode, self.mode} in _ROLLS_ON
            self.mode = mode
            self.sticks = Sticks(self.sticks.forward) if rolls_on else Sticks()
            self.assist = None

    def press(self, key: str) -> str:
        """Move the sticks by a key; return the request for the vehicle's mode, or ""."""
        if key in _MOVES:
            stick, sign = _MOVES[key]
            value = round(getattr(self.sticks, stick) + sign * KEY_STEP, 6)
            self.sticks = self.sticks._replace(**{stick: min(1.0, max(-1.0, value))})
        elif key == "c":
            self.sticks = self.sticks._replace(turn=0.0)
        elif key == " ":
            self.sticks = Sticks()
            self.assist = None
        elif key in _LIFTS and self.mode == "DRIVE":
            self.assist = None if self.assist is _LIFTS[key] else _LIFTS[key]
        return _WORDS.get(key, "")

    @property
    def velocity(self) -> Velocity:
        """Velocity for the present sticks."""
        return self.limits.velocity(self.sticks, self.mode)


_number = partial(parameter, low=-1, high=99)


@dataclasses.dataclass(frozen=True)
class JoystickLayout:
    """Numbers of a joystick's axes and buttons, from 0; -1: none. Parameters of teleop_node.

    The defaults are those of a game pad's driver for Linux (xpad).
    """

    axis_forward: int = _number(4, "axis that drives and flies forward")
    axis_turn: int = _number(0, "axis that steers and turns to the left")
    axis_left: int = _number(3, "axis that flies to the left")
    axis_up: int = _number(1, "axis that climbs")
    button_enable: int = _number(5, "button that is held while the axes count; -1: they always do")
    button_arm: int = _number(7, "button that arms")
    button_disarm: int = _number(6, "button that disarms")
    button_takeoff: int = _number(3, "button that takes off")
    button_land: int = _number(0, "button that lands")
    button_abort: int = _number(1, "button that aborts the flight")
    button_rolling: int = _number(
        4, "button that is held to take off and land while the wheels roll"
    )
    button_lift_front: int = _number(2, "button that is held while the rotors lift the front axle")
    button_lift_rear: int = _number(9, "button that is held while the rotors lift the rear axle")
    dead_zone: float = parameter(
        0.08, "deflection of an axis below which it counts as 0", low=0.0, high=0.9
    )

    def __post_init__(self) -> None:
        if not 0.0 <= self.dead_zone < 1.0:
            raise ConfigError(f"dead_zone is {self.dead_zone}, expected 0 up to 1")


class JoyPilot:
    """Axes and buttons of a joystick to velocities and requests."""

    def __init__(self, limits: TeleopLimits, layout: JoystickLayout) -> None:
        self.limits = limits
        self.layout = layout
        self.mode = ""
        self.assist: Assist | None = None
        """What the rotors do while the vehicle drives: of the buttons that are held."""

        self._held: frozenset[str] = frozenset(("arm", "disarm", "takeoff", "land", "abort"))
        """Buttons that are down. At first none counts before it was seen up."""

        self._engaged = False

    def update(
        self, axes: Sequence[float], buttons: Sequence[int]
    ) -> tuple[Velocity | None, list[str]]:
        """Return the velocity and the requests for the joystick's present state.

        The velocity is None while the enabling button is up: then others may command. When it is
        let go, the vehicle stops or, in flight, hovers on.
        """
        # requests: buttons that went down
        layout = self.layout
        down = frozenset(
            word
            for word in ("arm", "disarm", "takeoff", "land", "abort")
            if _pressed(buttons, getattr(layout, f"button_{word}"))
        )
        words = sorted(down - self._held)
        self._held = down
        if _pressed(buttons, layout.button_rolling):
            words = [f"rolling_{word}" if word in ("takeoff", "land") else word for word in words]

        # an axle, while the sticks count
        enabled = layout.button_enable < 0 or _pressed(buttons, layout.button_enable)
        self.assist = None
        if enabled and self.mode == "DRIVE":
            for assist in (Assist.LIFT_FRONT, Assist.LIFT_REAR):
                if _pressed(buttons, getattr(layout, f"button_{assist.value}")):
                    self.assist = assist

        # the sticks count
        if enabled:
            self._engaged = True
            axis = {
                name: _deflection(axes, getattr(layout, f"axis_{name}"), layout.dead_zone)
                for name in ("forward", "turn", "left", "up")
            }
            return self.limits.velocity(Sticks(**axis), self.mode), words

        # the button was let go
        if not self._engaged:
            return None, words
        self._engaged = self.mode not in ("", "DISARMED", "DRIVE")
        return Velocity(), words


def _pressed(buttons: Sequence[int], number: int) -> bool:
    return 0 <= number < len(buttons) and bool(buttons[number])


def _deflection(axes: Sequence[float], number: int, dead_zone: float) -> float:
    """Return the deflection, -1 … 1: 0 within the dead zone, and rising evenly from its edge."""
    value = float(axes[number]) if 0 <= number < len(axes) else 0.0
    if not math.isfinite(value) or abs(value) <= dead_zone:
        return 0.0
    return math.copysign(min((abs(value) - dead_zone) / (1.0 - dead_zone), 1.0), value)
