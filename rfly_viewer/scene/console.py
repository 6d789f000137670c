"""Parser of RflySim3D's console commands: text in, a typed command out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rfly_common.arrays import Triple
from rfly_common.errors import CommandError, ConfigError
from rfly_common.vehicle_models import model_named
from rfly_terrain.world.weather import Weather
from rfly_ue_bridge.codec.commands import WEATHER
from rfly_viewer.scene.state_batches import MAX_COORDINATE_M

DEFAULT_TEXT_S = 5.0
"""Time for which a text is shown, s."""
LONGEST_TEXT_S = 3600.0
"""Longest time for which a text can be shown, s."""
KEYS = {
    "B": "follows that vehicle, without a number the next one",
    "V": "only camera 1 (ahead) and 0 (from outside) are known here",
    "N": "a view of all vehicles, without following one",
    "S": "ids on (above 0) or off; without a number they are switched",
    "T": "trails, as S",
    "P": "collision mode on or off",
    "L": "the viewer has no small map",
}
"""RflySim3D's keys that are known here, and their effect, or why they have none.

B, V, N, S, T, P and L are those of public scripts for it (PX4PSP's examples: B 1, V 1, N 6, S 1, S
-1, T 1, L 1, P). These scripts do not show the effect of other keys.
"""
MAX_TEXT = 200
"""Characters of a text that is shown."""

_WORD = re.compile(r'"([^"]*)"(?!\S)|(\S+)')
_PART = "([0-9A-Fa-f]{2})"
_COLOUR = re.compile("#?" + 3 * _PART, re.ASCII)


class ConsoleCommand:
    """Base class of the commands that a text can hold."""


@dataclass(frozen=True)
class ChangeMap(ConsoleCommand):
    """RflyChangeMapbyName."""

    name: str


@dataclass(frozen=True)
class MoveCamera(ConsoleCommand):
    """RflyCameraPosAng and RflyCameraPosAngAdd."""

    position_ned: Triple
    euler: Triple
    """Roll, pitch, yaw, rad."""
    relative: bool


@dataclass(frozen=True)
class CameraFov(ConsoleCommand):
    """RflyCameraFovDegrees: the horizontal angle, as for Unreal's cameras."""

    horizontal: float
    """Angle, rad."""


@dataclass(frozen=True)
class ChangeModel(ConsoleCommand):
    """RflyChange3DModel; id -1: all vehicles."""

    vehicle_id: int
    vehicle_type: int


@dataclass(frozen=True)
class ChangeSize(ConsoleCommand):
    """RflyChangeVehicleSize; id -1: all vehicles."""

    vehicle_id: int
    size: float


@dataclass(frozen=True)
class MoveVehicle(ConsoleCommand):
    """RflyMoveVehiclePosAng and RflySetVehiclePosAng."""

    vehicle_id: int
    on_ground: bool
    position_ned: Triple
    euler: Triple
    """Roll, pitch, yaw, rad."""
    relative: bool


@dataclass(frozen=True)
class RequestObject(ConsoleCommand):
    """RflyReqObjData.

    kind 0: the camera of a SeqID, 1: the vehicle of a copterID, 2: the scene object of a name.
    """

    kind: int
    name: str


@dataclass(frozen=True)
class ClearSensors(ConsoleCommand):
    """RflyClearCapture, and RflyReqObjData 10 and 20."""

    seq_id: int | None
    """Sensor that is removed; None: all."""


@dataclass(frozen=True)
class RequestVehicles(ConsoleCommand):
    """RflyReqVehicleData."""

    on: bool


@dataclass(frozen=True)
class ScanTerrain(ConsoleCommand):
    """RflyScanTerrainH: corners in m, x north and y east, and the distance of the samples."""

    low: tuple[float, float]
    high: tuple[float, float]
    interval: float


@dataclass(frozen=True)
class ShowText(ConsoleCommand):
    """RflyShowText and RflyShowTextTime."""

    text: str
    seconds: float


@dataclass(frozen=True)
class SetWeather(ConsoleCommand):
    """RflySuiteWeather, of this suite."""

    weather: Weather


@dataclass(frozen=True)
class SetLabel(ConsoleCommand):
    """RflySetIDLabel (flag 0) and RflySetMsgLabel, with CopterMsg's flags and times."""

    vehicle_id: int
    text: str
    rgb: tuple[int, int, int]
    size: float
    seconds: float
    flag: int


@dataclass(frozen=True)
class Key(ConsoleCommand):
    """RflyChangeViewKeyCmd: one of KEYS that has an effect here, as a capital, and a number."""

    key: str
    number: int | None


@dataclass(frozen=True)
class UnsupportedCommand(ConsoleCommand):
    """Command of RflySim3D that has no effect here; `reason` is shown."""

    text: str
    reason: str


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
        raise CommandError(f"{text[:MAX_TEXT]!r}: {error}; expected {words[0]} {usage}") from error


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
    kind = _integer(words, 0)
    if kind == _DELETE_CAMERA:
        return ClearSensors(_integer(words, 1))
    if kind == _DELETE_CAMERAS:
        return ClearSensors(None)
    if kind not in (0, 1, 2):
        raise ValueError(f"type {kind}, known are 0 camera, 1 vehicle, 2 object, 10 and 20")
    if kind < 2:
        _integer(words, 1)
    return RequestObject(kind, words[1])


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
        text = "RflyChange3DModel " + " ".join(words)[:MAX_TEXT]
        return UnsupportedCommand(
            text, "styles by name are RflySim3D's own, give the number of a vehicle type"
        )
    return ChangeModel(_integer(words, 0), _integer(words, 1, 0))


def _key(words: Sequence[str]) -> ConsoleCommand:
    """Return a key and its number, as public scripts for RflySim3D send them.

    `KEYS` says what each key does here.
    """
    key = words[0].upper()
    number = _integer(words, 1) if len(words) > 1 else None
    if key in ("B", "N", "S", "T", "P") or (key == "V" and number in (None, 0, 1)):
        return Key(key, number)

    reason = KEYS.get(key, f"no such key is known here; known are {', '.join(KEYS)}")
    return UnsupportedCommand("RflyChangeViewKeyCmd " + " ".join(words)[:MAX_TEXT], reason)


def _label(words: Sequence[str], is_message: bool) -> SetLabel:
    """Return the label of copterID, text, colour, size, and for a message seconds and flag."""
    if len(words) < 3:
        raise ValueError(f"argument {len(words) + 1} is missing")

    colour = _COLOUR.fullmatch(words[2])
    if colour is None:
        raise ValueError(f"argument 3 is {words[2]}, expected a colour as #RRGGBB or RRGGBB")
    red, green, blue = (int(part, 16) for part in colour.groups())
    size = min(max(_number(words, 3, 30.0), 1.0), 500.0)
    seconds = 0.0
    flag = 0
    if is_message:
        seconds = _number(words, 4, 0.0)
        flag = _integer(words, 5, -1)

    vehicle_id = _integer(words, 0)
    text = words[1][:MAX_TEXT]
    return SetLabel(vehicle_id, text, (red, green, blue), size, seconds, flag)


_DELETE_CAMERA = 10
_DELETE_CAMERAS = 20
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
    "RflyReqObjData": ("type name", _request),
    "RflyClearCapture": ("SeqID, or nothing or -1 for all", _clear_capture),
    "RflyReqVehicleData": ("0 or 1", lambda words: RequestVehicles(_integer(words, 0) != 0)),
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
_NO_STENCIL = "the viewer has no segmentation camera"
_UNSUPPORTED = {
    "RflyChangeMapbyID": "map numbers are RflySim3D's own; use RflyChangeMapbyName",
    "RflyCesiumOriPos": "the viewer shows no Cesium globe",
    "RflySetStencilValueByCopterID": _NO_STENCIL,
    "RflySetStencilValueByActorName": _NO_STENCIL,
    "RflySetStencilValueByMeshComponentName": _NO_STENCIL,
}
