# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Console commands of the Unreal Engine that RflySim's manual lists for RflySim3D's window.

They set how pictures are drawn and how fast. As those of `commands`, each function checks its
arguments and returns the text. CommandError names argument and limit.
"""

from __future__ import annotations

from typing import Literal, get_args

from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.command_words import (
    command_text,
    console_command,
    integer_word,
    number_word,
)
from rfly_ue_bridge.codec.commands import NotNegative

Statistics = Literal["fps", "unit", "rhi", "game", "gpu", "engine", "scenerendering"]
ScreenMode = Literal["", "window", "full screen"]

MAX_PIXELS = 8192
"""Widest and highest picture that is asked for, pixels."""
QUALITIES = {
    "r.Streaming.PoolSize": (0, 2**31 - 1),
    "r.ForceLOD": (-1, 7),
    "r.ScreenPercentage": (1, 400),
    "r.ShadowQuality": (0, 3),
    "r.PostProcessAAQuality": (0, 3),
    "r.SetNearClipPlane": (1, 2**31 - 1),
    "r.MipMapLODBias": (-15, 15),
    "sg.TextureQuality": (0, 3),
    "sg.PostProcessQuality": (0, 3),
    "foliage.MaxTrianglesToRender": (0, 2**31 - 1),
}
"""Whole numbers, lowest and highest, that set a picture's quality.

The pool of textures is in MB, the screen percentage in per cent, the near clip plane in cm.
r.ForceLOD -1 leaves the level of detail to Unreal.
"""

_SCREENS = {"": "", "window": "w", "full screen": "f"}


@console_command("t.MaxFPS", usage="pictures a second, 0 or less: no limit")
def max_fps(frames_per_s: NotNegative) -> None:
    """Limit the pictures a second, and with them the rates of RflySim3D's cameras and lidars."""


def slow_motion(factor: float) -> str:
    """Set how fast Unreal's time passes; 1 is real time."""
    return command_text("slomo", number_word("factor", factor, 0.0, 20.0))


def screenshot(width: int, height: int) -> str:
    """Write a picture of this size, pixels, to RflySim3D's folder of screenshots."""
    return command_text("HighResShot", _size(width, height))


def toggle_statistics(name: Statistics) -> str:
    """Show these statistics on the screen, or hide them again."""
    if name not in get_args(Statistics):
        raise CommandError(f"name: {name!r}, expected one of {', '.join(get_args(Statistics))}")
    return command_text("stat", name)


def set_resolution(width: int, height: int, screen: ScreenMode = "") -> str:
    """Set the window's size, pixels, and whether it is a window or fills the screen."""
    if screen not in _SCREENS:
        raise CommandError(f"screen: {screen!r}, expected '', 'window' or 'full screen'")
    return command_text("r.setRes", _size(width, height) + _SCREENS[screen])


def set_quality(name: str, value: int) -> str:
    """Set one of `QUALITIES`."""
    if name not in QUALITIES:
        raise CommandError(f"name: {name!r}, expected one of {', '.join(QUALITIES)}")
    low, high = QUALITIES[name]
    return command_text(name, integer_word(name, value, low, high))


def _size(width: int, height: int) -> str:
    parts = [
        integer_word(argument, value, 1, MAX_PIXELS)
        for argument, value in (("width", width), ("height", height))
    ]
    return "x".join(parts)
