# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parser of RflySim3D's console commands: text in, a typed command out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rfly_common.arrays import Triple
from rfly_common.config.vehicle_models import model_named
from rfly_common.errors import CommandError, ConfigError
from rfly_terrain.world.weather import Weather
from rfly_ue_bridge.codec.command_words import DECLARED, read_integer
from rfly_ue_bridge.codec.commands import KEYS as RFLYSIM3D_KEYS
from rfly_ue_bridge.codec.commands import WEATHER
from rfly_ue_bridge.codec.unreal_commands import QUALITIES
from rfly_viewer.scene.scene_commands import (
    CameraFov,
    ChangeMap,
    ChangeModel,
    ClearAll,
    ClearSensors,
    ConsoleCommand,
    DeleteVehicles,
    MoveCamera,
    MoveVehicle,
    ReadCommand,
    RequestObject,
    Rgb,
    ScanTerrain,
    SetLabel,
    UnsupportedCommand,
    ViewKey,
)
from rfly_viewer.scene.state_batches import MAX_COORDINATE_M

DEFAULT_TEXT_S = 5.0
"""Time for which a text is shown, s."""
LONGEST_TEXT_S = 3600.0
"""Longest time for which a text can be shown, s."""
KEYS = {
    "F1": "the list of keys",
    "ESC": "all vehicles go",
    "S": "ids on (above 0) or off; without a number they are switched",
    "H": "texts on or off, as S",
    "D": "the followed vehicle's data on or off, as S",
    "M": "the next map",
    "B": "follows that vehicle, without a number the next one",
    "C": "the next model of the newest vehicle",
    "P": "contacts are reported, as in mode 2; without a number that is switched",
    "V": "camera 0 from outside, 1 ahead, 2 to the right; without a number the next one",
    "N": "0 follows, 1 stands and looks at the vehicle, 2 stands and looks north, 3 south; "
    "otherwise all vehicles",
    "T": "trails of that thickness, 0 or less: none; without a number they are switched",
    "O": "a vehicle of that type where the mouse clicked twice",
}
"""RflySim3D's keys that have an effect here.

B, V, N, S, T and P are also those of public scripts (PX4PSP's examples: B 1, V 1, N 6, S 1, S -1,
T 1, P).
"""
_OTHER_KEYS = {
    "F2": "the tables of maps and models are RflySim3D's own",
    "I": "this window talks to no other one",
    "L": "there is no small map",
}
_CAMERAS = (0, 1, 2)
_NO_OBJECTS = "the viewer has no objects but vehicles"
_NO_STENCIL = "the viewer has no segmentation camera"
MAX_TEXT = 200
"""Characters of a text that is shown."""

_WORD = re.compile(r'"([^"]*)"(?!\S)|(\S+)')


def parse(text: str) -> ConsoleCommand:
    """Return the command in a text; an unknown one is UnsupportedCommand.

    CommandError names the argument that is missing or wrong.
    """
    words = split_words(text)
    if not words:
        raise CommandError("the command is empty")
    name, *arguments = words
    if name not in _MAKERS and name not in _READERS:
        return UnsupportedCommand(text[:MAX_TEXT], _UNSUPPORTED.get(name, "not known here"))

    usage = DECLARED[name].usage
    try:
        if name in _READERS:
            return _READERS[name](arguments)
        made = _MAKERS[name](*DECLARED[name].read(arguments))
        return made if isinstance(made, ConsoleCommand) else ReadCommand(name, made)
    except (ValueError, IndexError) as error:
        reason = "an argument is missing" if isinstance(error, IndexError) else str(error)
        raise CommandError(f"{text[:MAX_TEXT]!r}: {reason}; expected {name} {usage}") from error


def split_words(text: str) -> list[str]:
    """Return the words of a command. What is in double quotes is one word, without the quotes."""
    return [quoted or word for quoted, word in _WORD.findall(text)]


def _unchanged(*values: Any) -> tuple[Any, ...]:
    return values


def _move_camera(relative: bool, *pose: float) -> MoveCamera:
    return MoveCamera(_triple(pose[:3], 0), _angles(pose[3:], 3), relative)


def _move_vehicle(relative: bool, vehicle_id: int, on_ground: bool, *pose: float) -> MoveVehicle:
    position = _triple(pose[:3], 2)
    return MoveVehicle(vehicle_id, on_ground, position, _angles(pose[3:], 5), relative)


def _triple(numbers: Sequence[float], index: int) -> Triple:
    x, y, z = numbers
    if max(abs(x), abs(y), abs(z)) > MAX_COORDINATE_M:
        raise ValueError(f"arguments {index + 1} to {index + 3} reach beyond {MAX_COORDINATE_M:g}")
    return x, y, z


def _angles(degrees: Sequence[float], index: int) -> Triple:
    roll, pitch, yaw = map(math.radians, _triple(degrees, index))
    return roll, pitch, yaw


def _show_text(text: str, seconds: float = DEFAULT_TEXT_S) -> tuple[str, float]:
    return text[:MAX_TEXT], min(max(0.0, seconds), LONGEST_TEXT_S)


def _camera_fov(degrees: float) -> CameraFov:
    if not 1.0 <= degrees <= 170.0:
        raise ValueError(f"{degrees:g} degrees, allowed are 1 to 170")
    return CameraFov(math.radians(degrees))


def _size(vehicle_id: int, size: float) -> tuple[int, float]:
    if not 0.0 <= size <= 1e4:
        raise ValueError(f"size {size:g}, allowed are 0 to 10000")
    return vehicle_id, size


def _clear_capture(seq_id: int | None) -> ClearSensors:
    return ClearSensors(None if seq_id is None or seq_id < 0 else seq_id)


def _position_scale(factor: float) -> tuple[float]:
    if not 1e-3 <= factor <= 1e3:
        raise ValueError(f"factor {factor:g}, allowed are 0.001 to 1000")
    return (factor,)


def _scan(
    x_0: float, y_0: float, x_1: float, y_1: float, _height: float, interval: float
) -> ScanTerrain:
    if not (x_0 < x_1 and y_0 < y_1 and interval > 0):
        raise ValueError(
            "the second corner must lie north and east of the first, and the interval be above 0"
        )
    return ScanTerrain((x_0, y_0), (x_1, y_1), interval)


def _weather(*values: float) -> tuple[Weather]:
    try:
        return (Weather.from_values(*values),)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _label(
    vehicle_id: int, text: str, rgb: Rgb, size: float, seconds: float = 0.0, flag: int = 0
) -> SetLabel:
    return SetLabel(vehicle_id, text[:MAX_TEXT], rgb, min(max(size, 1.0), 500.0), seconds, flag)


def _request(words: Sequence[str]) -> ConsoleCommand:
    """Return what RflyReqObjData asks for: an object's data, or its end."""
    kind = read_integer(words, 0)
    if kind in (0, 1, 2):
        if kind < 2:
            read_integer(words, 1)
        return RequestObject(kind, words[1])

    # deletes
    if kind == 11:
        return DeleteVehicles((read_integer(words, 1),))
    if kind in (21, 23):
        return DeleteVehicles(None)
    if kind == 24:
        return ClearAll()
    if kind in (10, 20):
        return ClearSensors(read_integer(words, 1) if kind == 10 else None)
    if kind in (12, 22):
        return UnsupportedCommand(_shown("RflyReqObjData", words), _NO_OBJECTS)
    raise ValueError(f"flag {kind}, known are 0 to 2, 10 to 12 and 20 to 24")


def _model(words: Sequence[str]) -> ConsoleCommand:
    model = model_named(words[1]) if len(words) > 1 else None
    if model is not None:
        return ChangeModel(read_integer(words, 0), model.vehicle_type)
    if len(words) > 1 and not words[1].lstrip("+-").replace(".", "").isdigit():
        return UnsupportedCommand(
            _shown("RflyChange3DModel", words),
            "styles by name are RflySim3D's own, give the number of a vehicle type",
        )
    return ChangeModel(read_integer(words, 0), (read_integer(words, 1) if len(words) > 1 else 0))


def _key(words: Sequence[str]) -> ConsoleCommand:
    """Return a key and its number. `KEYS` says what each key does here."""
    key = words[0].upper()
    number = read_integer(words, 1) if len(words) > 1 else None
    if key == "V" and number is not None and number not in _CAMERAS:
        return UnsupportedCommand(_shown("RflyChangeViewKeyCmd", words), f"here V is {KEYS[key]}")
    if key == "O" and number is None:
        raise ValueError("argument 2 is missing")
    if key in ("M", "C") and number is not None:
        return UnsupportedCommand(
            _shown("RflyChangeViewKeyCmd", words),
            f"numbers are RflySim3D's own; here {key} is {KEYS[key]}",
        )
    if key in KEYS:
        return ViewKey(key, number)

    reason = _OTHER_KEYS.get(key, f"no such key; known are {', '.join(RFLYSIM3D_KEYS)}")
    return UnsupportedCommand(_shown("RflyChangeViewKeyCmd", words), reason)


def _shown(command: str, words: Sequence[str]) -> str:
    """Return a command as the log shows it."""
    return " ".join((command, *words))[:MAX_TEXT]


_READERS: dict[str, Callable[[Sequence[str]], ConsoleCommand]] = {
    "RflyReqObjData": _request,
    "RflyChange3DModel": _model,
    "RflyChangeViewKeyCmd": _key,
}
"""Commands whose words depend on each other, and the functions that read them."""
_MAKERS: dict[str, Callable[..., ConsoleCommand | tuple[Any, ...]]] = {
    "RflyChangeMapbyName": lambda name: ChangeMap(name[:MAX_TEXT]),
    "RflyCameraPosAng": partial(_move_camera, False),
    "RflyCameraPosAngAdd": partial(_move_camera, True),
    "RflyCameraFovDegrees": _camera_fov,
    "RflySetIDLabel": _label,
    "RflySetMsgLabel": _label,
    "RflyChangeVehicleSize": _size,
    "RflyMoveVehiclePosAng": partial(_move_vehicle, True),
    "RflySetVehiclePosAng": partial(_move_vehicle, False),
    "RflyDelVehicles": DeleteVehicles,
    "RflyDisableVeMove": _unchanged,
    "RflySetCopterLine": _unchanged,
    "RflySetPosScale": _position_scale,
    "RflySetActuatorPWMs": _unchanged,
    "RflySetSimSpeed": _unchanged,
    "RflyClearCapture": _clear_capture,
    "RflyReqVehicleData": _unchanged,
    "t.MaxFPS": lambda frames_per_s: (frames_per_s if frames_per_s > 0 else None,),
    "RflyScanTerrainH": _scan,
    "RflyShowText": _show_text,
    "RflyShowTextTime": _show_text,
    WEATHER: _weather,
}
"""What this window makes of the values of each command, by which it checks them."""
_UNREAL = "this window is not drawn by Unreal"
_UNSUPPORTED = {
    "RflyChangeMapbyID": "map numbers are RflySim3D's own; use RflyChangeMapbyName",
    "RflyEnImgSync": "the viewer sends each sensor's pictures at their own times",
    "RflySetActuatorPWMsExt": "no model has further actuators here",
    "RflyLoad3DFile": "a datagram may not name a file to be read; use rfly send --file",
    "RflyCesiumOriPos": "the viewer shows no Cesium globe",
    "RflySetStencilValueByCopterID": _NO_STENCIL,
    "RflySetStencilValueByActorName": _NO_STENCIL,
    "RflySetStencilValueByMeshComponentName": _NO_STENCIL,
    **dict.fromkeys(("slomo", "HighResShot", "stat", "r.setRes", *QUALITIES), _UNREAL),
}
