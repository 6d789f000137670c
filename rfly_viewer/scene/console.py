# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parser of RflySim3D's console commands: text in, a typed command out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from rfly_common.arrays import Triple
from rfly_common.config.vehicle_models import model_named
from rfly_common.errors import CommandError, ConfigError
from rfly_terrain.world.weather import Weather
from rfly_ue_bridge.codec.commands import ACTUATORS, WEATHER
from rfly_ue_bridge.codec.commands import KEYS as RFLYSIM3D_KEYS
from rfly_ue_bridge.codec.unreal_commands import QUALITIES
from rfly_viewer.scene.scene_commands import (
    CameraFov,
    ChangeMap,
    ChangeModel,
    ChangeSize,
    ClearAll,
    ClearSensors,
    ConsoleCommand,
    DeleteVehicles,
    DisableMovement,
    Key,
    LimitFrames,
    MoveCamera,
    MoveVehicle,
    RequestObject,
    RequestVehicles,
    Rgb,
    ScanTerrain,
    SetActuators,
    SetLabel,
    SetPositionScale,
    SetSpeed,
    SetTrackColour,
    SetWeather,
    ShowText,
    UnsupportedCommand,
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
_PART = "([0-9A-Fa-f]{2})"
_COLOUR = re.compile("#?" + 3 * _PART, re.ASCII)


def parse(text: str) -> ConsoleCommand:
    """Return the command in a text; an unknown one is UnsupportedCommand.

    CommandError names the argument that is missing or wrong.
    """
    words = split_words(text)
    if not words:
        raise CommandError("the command is empty")
    if words[0] not in _READERS:
        return UnsupportedCommand(text[:MAX_TEXT], _UNSUPPORTED.get(words[0], "not known here"))

    usage, read = _READERS[words[0]]
    try:
        return read(words[1:])
    except (ValueError, IndexError) as error:
        reason = "an argument is missing" if isinstance(error, IndexError) else str(error)
        raise CommandError(f"{text[:MAX_TEXT]!r}: {reason}; expected {words[0]} {usage}") from error


def split_words(text: str) -> list[str]:
    """Return the words of a command. What is in double quotes is one word, without the quotes."""
    return [quoted or word for quoted, word in _WORD.findall(text)]


def _number(words: Sequence[str], index: int, default: float | None = None) -> float:
    if index >= len(words):
        if default is None:
            raise ValueError(f"argument {index + 1} is missing")
        return default

    value = float(words[index])
    if not math.isfinite(value):
        raise ValueError(f"argument {index + 1} is {words[index]}")
    return value


def _integer(words: Sequence[str], index: int, default: int | None = None) -> int:
    value = _number(words, index, default)
    if value != int(value) or abs(value) >= 2**31:
        raise ValueError(f"argument {index + 1} is {words[index]}, no whole number of 32 bits")
    return int(value)


def _triple(words: Sequence[str], index: int) -> Triple:
    x, y, z = (_number(words, i) for i in range(index, index + 3))
    if max(abs(x), abs(y), abs(z)) > MAX_COORDINATE_M:
        raise ValueError(f"arguments {index + 1} to {index + 3} reach beyond {MAX_COORDINATE_M:g}")
    return x, y, z


def _angles(words: Sequence[str], index: int) -> Triple:
    roll, pitch, yaw = (math.radians(angle) for angle in _triple(words, index))
    return roll, pitch, yaw


def _text(words: Sequence[str]) -> str:
    if not words:
        raise ValueError("the text is missing")
    return " ".join(words)[:MAX_TEXT]


def _text_with_time(words: Sequence[str]) -> ShowText:
    return ShowText(
        _text(words[:-1]), min(max(0.0, _number(words, len(words) - 1)), LONGEST_TEXT_S)
    )


def _camera_fov(words: Sequence[str]) -> CameraFov:
    degrees = _number(words, 0)
    if not 1.0 <= degrees <= 170.0:
        raise ValueError(f"{degrees:g} degrees, allowed are 1 to 170")
    return CameraFov(math.radians(degrees))


def _size(words: Sequence[str]) -> ChangeSize:
    size = _number(words, 1, 0.0)
    if not 0.0 <= size <= 1e4:
        raise ValueError(f"size {size:g}, allowed are 0 to 10000")
    return ChangeSize(_integer(words, 0), size)


def _move(words: Sequence[str], relative: bool) -> MoveVehicle:
    return MoveVehicle(
        _integer(words, 0),
        _integer(words, 1) != 0,
        _triple(words, 2),
        _angles(words, 5),
        relative=relative,
    )


def _clear_capture(words: Sequence[str]) -> ClearSensors:
    seq_id = _integer(words, 0, -1)
    return ClearSensors(None if seq_id < 0 else seq_id)


def _request(words: Sequence[str]) -> ConsoleCommand:
    """Return what RflyReqObjData asks for: an object's data, or its end."""
    kind = _integer(words, 0)
    if kind in (0, 1, 2):
        if kind < 2:
            _integer(words, 1)
        return RequestObject(kind, words[1])

    # deletes
    if kind == 11:
        return DeleteVehicles((_integer(words, 1),))
    if kind in (21, 23):
        return DeleteVehicles(None)
    if kind == 24:
        return ClearAll()
    if kind in (10, 20):
        return ClearSensors(_integer(words, 1) if kind == 10 else None)
    if kind in (12, 22):
        return UnsupportedCommand(_shown("RflyReqObjData", words), _NO_OBJECTS)
    raise ValueError(f"flag {kind}, known are 0 to 2, 10 to 12 and 20 to 24")


def _ids(words: Sequence[str], index: int) -> tuple[int, ...]:
    """Return ids with commas between them."""
    if index >= len(words):
        raise ValueError(f"argument {index + 1} is missing")
    parts = [part for part in words[index].split(",") if part]
    if not parts:
        raise ValueError(f"argument {index + 1} is {words[index]}, expected ids with commas")
    return tuple(_integer(parts, i) for i in range(len(parts)))


def _position_scale(words: Sequence[str]) -> SetPositionScale:
    factor = _number(words, 0)
    if not 1e-3 <= factor <= 1e3:
        raise ValueError(f"factor {factor:g}, allowed are 0.001 to 1000")
    return SetPositionScale(factor)


def _actuators(words: Sequence[str]) -> SetActuators:
    numbers = tuple(_number(words, i) for i in range(1, min(len(words), 1 + ACTUATORS)))
    if not numbers:
        raise ValueError("argument 2 is missing")
    return SetActuators(_integer(words, 0), numbers)


def _max_fps(words: Sequence[str]) -> LimitFrames:
    frames_per_s = _number(words, 0)
    return LimitFrames(frames_per_s if frames_per_s > 0 else None)


def _scan(words: Sequence[str]) -> ScanTerrain:
    x_0, y_0, x_1, y_1 = (_number(words, i) for i in range(4))
    interval = _number(words, 5)

    if not (x_0 < x_1 and y_0 < y_1 and interval > 0):
        raise ValueError(
            "the second corner must lie north and east of the first, and the interval be above 0"
        )
    _number(words, 4)
    return ScanTerrain((x_0, y_0), (x_1, y_1), interval)


def _weather(words: Sequence[str]) -> SetWeather:
    try:
        return SetWeather(Weather.from_values(*(_number(words, i) for i in range(4))))
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _model(words: Sequence[str]) -> ConsoleCommand:
    model = model_named(words[1]) if len(words) > 1 else None
    if model is not None:
        return ChangeModel(_integer(words, 0), model.vehicle_type)
    if len(words) > 1 and not words[1].lstrip("+-").replace(".", "").isdigit():
        return UnsupportedCommand(
            _shown("RflyChange3DModel", words),
            "styles by name are RflySim3D's own, give the number of a vehicle type",
        )
    return ChangeModel(_integer(words, 0), _integer(words, 1, 0))


def _key(words: Sequence[str]) -> ConsoleCommand:
    """Return a key and its number. `KEYS` says what each key does here."""
    key = words[0].upper()
    number = _integer(words, 1) if len(words) > 1 else None
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
        return Key(key, number)

    reason = _OTHER_KEYS.get(key, f"no such key; known are {', '.join(RFLYSIM3D_KEYS)}")
    return UnsupportedCommand(_shown("RflyChangeViewKeyCmd", words), reason)


def _colour(words: Sequence[str], index: int) -> Rgb:
    """Return a colour that is given as #RRGGBB or RRGGBB."""
    if index >= len(words):
        raise ValueError(f"argument {index + 1} is missing")
    colour = _COLOUR.fullmatch(words[index])
    if colour is None:
        raise ValueError(
            f"argument {index + 1} is {words[index]}, expected a colour as #RRGGBB or RRGGBB"
        )
    red, green, blue = (int(part, 16) for part in colour.groups())
    return red, green, blue


def _shown(command: str, words: Sequence[str]) -> str:
    """Return a command as the log shows it."""
    return " ".join((command, *words))[:MAX_TEXT]


def _label(words: Sequence[str], is_message: bool) -> SetLabel:
    """Return the label of copterID, text, colour, size, and for a message seconds and flag."""
    rgb = _colour(words, 2)
    size = min(max(_number(words, 3, 30.0), 1.0), 500.0)
    seconds = 0.0
    flag = 0
    if is_message:
        seconds = _number(words, 4, 0.0)
        flag = _integer(words, 5, -1)

    vehicle_id = _integer(words, 0)
    text = words[1][:MAX_TEXT]
    return SetLabel(vehicle_id, text, rgb, size, seconds, flag)


_POSE = "x y z roll pitch yaw (m NED, degrees)"
_READERS: dict[str, tuple[str, Callable[[Sequence[str]], ConsoleCommand]]] = {
    "RflyChangeMapbyName": ("name", lambda words: ChangeMap(_text(words))),
    "RflyCameraPosAng": (
        _POSE,
        lambda words: MoveCamera(_triple(words, 0), _angles(words, 3), relative=False),
    ),
    "RflyCameraPosAngAdd": (
        _POSE,
        lambda words: MoveCamera(_triple(words, 0), _angles(words, 3), relative=True),
    ),
    "RflyCameraFovDegrees": ("degrees", _camera_fov),
    "RflyChange3DModel": ("copterID type", _model),
    "RflySetIDLabel": ("copterID text #RRGGBB size", lambda words: _label(words, is_message=False)),
    "RflySetMsgLabel": (
        "copterID text #RRGGBB size seconds flag",
        lambda words: _label(words, is_message=True),
    ),
    "RflyChangeVehicleSize": ("copterID size", _size),
    "RflyMoveVehiclePosAng": (
        f"copterID fitGround {_POSE}",
        lambda words: _move(words, relative=True),
    ),
    "RflySetVehiclePosAng": (
        f"copterID fitGround {_POSE}",
        lambda words: _move(words, relative=False),
    ),
    "RflyDelVehicles": ("copterID,copterID,…", lambda words: DeleteVehicles(_ids(words, 0))),
    "RflyDisableVeMove": (
        "copterID,copterID,… 0 or 1",
        lambda words: DisableMovement(_ids(words, 0), _integer(words, 1) != 0),
    ),
    "RflySetCopterLine": (
        "copterID RRGGBB",
        lambda words: SetTrackColour(_integer(words, 0), _colour(words, 1)),
    ),
    "RflySetPosScale": ("factor", _position_scale),
    "RflySetActuatorPWMs": ("copterID p1 … p8 (rounds/s)", _actuators),
    "RflySetSimSpeed": ("factor", lambda words: SetSpeed(_number(words, 0))),
    "RflyReqObjData": ("flag name", _request),
    "RflyClearCapture": ("SeqID, or nothing or -1 for all", _clear_capture),
    # older scripts give an address in place of 1
    "RflyReqVehicleData": ("0 or 1", lambda words: RequestVehicles(words[0] != "0")),
    "t.MaxFPS": ("pictures a second, 0 or less: no limit", _max_fps),
    "RflyScanTerrainH": (
        "xLeftBottom yLeftBottom xRightTop yRightTop scanHeight scanInterval",
        _scan,
    ),
    "RflyShowText": ("text", lambda words: ShowText(_text(words), DEFAULT_TEXT_S)),
    "RflyShowTextTime": ("text seconds", _text_with_time),
    "RflyChangeViewKeyCmd": ("key number", _key),
    WEATHER: (
        "light visibility cloudCover rainRate (0 to 1, m or 0 in clear air, 0 to 1, mm/h)",
        _weather,
    ),
}
"""Arguments of each command, and the function that reads them."""
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
