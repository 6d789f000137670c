"""Teleoperation: keys and joystick axes to velocity setpoints and modes. Without terminal and
without ROS.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError

KEY_STEP = 0.1
"""of the full deflection, that one key press changes"""

HELP = """\
  W S or ↑ ↓   faster, slower / fly forward, backward     O   arm          T   take off
  A D or ← →   steer / turn left, right                   X   disarm       L   land
  Q E          fly left, right                            K   abort        C   straight on
  R F          climb, sink                            Space   brake, hover     Ctrl-C ends"""


class Velocity(NamedTuple):
    """What cmd_vel says: m/s forward, to the left and up, and rad/s counter-clockwise."""

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


@dataclasses.dataclass(frozen=True)
class TeleopLimits:
    """What full deflections ask for."""

    drive_speed: float = 3.0
    """m/s"""
    curvature: float = 0.6
    """1/m, of the way that is driven"""
    fly_speed: float = 3.0
    climb_speed: float = 1.0
    yaw_rate: float = 0.8
    """rad/s, in flight"""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            finite_number(field.name, getattr(self, field.name), above=0.0)

    def velocity(self, sticks: Sticks, mode: str) -> Velocity:
        """What the sticks ask for in a mode (`mode`'s words): DRIVE and FLIGHT obey, all others
        stand or hover.
        """
        if mode == "DRIVE":
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
_WORDS = {"o": "arm", "x": "disarm", "t": "takeoff", "l": "land", "k": "abort"}
_ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}


class KeyReader:
    """Bytes of a terminal to names of keys; a sequence that comes in pieces is kept until it is
    whole.
    """

    def __init__(self) -> None:
        self._rest = b""

    def keys(self, data: bytes) -> list[str]:
        """Lower-case characters, `up`, `down`, `left`, `right`; other sequences and bytes are
        passed over.
        """
        data = self._rest + data
        found = []
        at = 0
        self._rest = b""
        while at < len(data):
            if data[at] != 0x1B:
                if 0x20 <= data[at] < 0x7F:
                    found.append(chr(data[at]).lower())
                at += 1
                continue
            end = at + 2
            if data[at + 1 : at + 2] not in (b"[", b"O"):
                if at + 1 == len(data):
                    self._rest = data[at:]
                at += 1
                continue
            while end < len(data) and not 0x40 <= data[end] < 0x7F:
                end += 1
            if end == len(data):
                self._rest = data[at:][:16]
                break
            arrow = _ARROWS.get(data[end : end + 1])
            if arrow is not None:
                found.append(arrow)
            at = end + 1
        return found


class KeyPilot:
    """Keys move the sticks, which stay where they are; in another mode they begin in the middle."""

    def __init__(self, limits: TeleopLimits) -> None:
        self.limits = limits
        self.sticks = Sticks()
        self.mode = ""

    def set_mode(self, mode: str) -> None:
        """The vehicle is in this mode now."""
        if mode != self.mode:
            self.mode = mode
            self.sticks = Sticks()

    def press(self, key: str) -> str:
        """What to request of the vehicle's modes by it, "" for nothing."""
        if key in _MOVES:
            stick, sign = _MOVES[key]
            value = round(getattr(self.sticks, stick) + sign * KEY_STEP, 6)
            self.sticks = self.sticks._replace(**{stick: min(1.0, max(-1.0, value))})
        elif key == "c":
            self.sticks = self.sticks._replace(turn=0.0)
        elif key == " ":
            self.sticks = Sticks()
        return _WORDS.get(key, "")

    @property
    def velocity(self) -> Velocity:
        """What the sticks ask for now."""
        return self.limits.velocity(self.sticks, self.mode)


@dataclasses.dataclass(frozen=True)
class JoystickLayout:
    """Numbers of axes and buttons, from 0; -1: there is none. As a game pad's driver for Linux
    (xpad) counts them.
    """

    axis_forward: int = 4
    axis_turn: int = 0
    axis_left: int = 3
    axis_up: int = 1
    button_enable: int = 5
    """that is held while the sticks count; -1: they always do"""
    button_arm: int = 7
    button_disarm: int = 6
    button_takeoff: int = 3
    button_land: int = 0
    button_abort: int = 1
    dead_zone: float = 0.08

    def __post_init__(self) -> None:
        if not 0.0 <= self.dead_zone < 1.0:
            raise ConfigError(f"dead_zone is {self.dead_zone}, expected 0 up to 1")


class JoyPilot:
    """A joystick's axes and buttons to velocities and requests."""

    def __init__(self, limits: TeleopLimits, layout: JoystickLayout) -> None:
        self.limits = limits
        self.layout = layout
        self.mode = ""
        self._held: frozenset[str] = frozenset(("arm", "disarm", "takeoff", "land", "abort"))
        """buttons that are down; at first none counts before it was seen up"""
        self._engaged = False

    def update(
        self, axes: Sequence[float], buttons: Sequence[int]
    ) -> tuple[Velocity | None, list[str]]:
        """(velocity, requests) for what the joystick says now. The velocity is None while nobody
        holds the enabling button: then others may command. Once it is let go, the vehicle stops or,
        in flight, hovers on.
        """
        layout = self.layout
        down = frozenset(
            word
            for word in ("arm", "disarm", "takeoff", "land", "abort")
            if _pressed(buttons, getattr(layout, f"button_{word}"))
        )
        words = sorted(down - self._held)
        self._held = down
        if layout.button_enable < 0 or _pressed(buttons, layout.button_enable):
            self._engaged = True
            axis = {
                name: _deflection(axes, getattr(layout, f"axis_{name}"), layout.dead_zone)
                for name in ("forward", "turn", "left", "up")
            }
            return self.limits.velocity(Sticks(**axis), self.mode), words
        if not self._engaged:
            return None, words
        self._engaged = self.mode not in ("", "DISARMED", "DRIVE")
        return Velocity(), words


def _pressed(buttons: Sequence[int], number: int) -> bool:
    return 0 <= number < len(buttons) and bool(buttons[number])


def _deflection(axes: Sequence[float], number: int, dead_zone: float) -> float:
    """-1 … 1, 0 within the dead zone and going up evenly from its edge."""
    value = float(axes[number]) if 0 <= number < len(axes) else 0.0
    if not math.isfinite(value) or abs(value) <= dead_zone:
        return 0.0
    return math.copysign(min((abs(value) - dead_zone) / (1.0 - dead_zone), 1.0), value)
