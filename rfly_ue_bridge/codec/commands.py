"""RflySim3D's console commands: one function each, and their datagrams.

    sender.send(encode_command(camera_pose(0, 0, -20, pitch_deg=-45)))

The functions know words, order and units: positions in m, NED from the origin of the Unreal map,
angles in degrees. Numbers keep their value and have no exponent, because Unreal's console does not
read exponents everywhere. Texts with blanks are put in double quotes, as RflySim3D's console reads
them. CommandError, a ValueError that names argument and limit, is raised for what RflySim3D would
misread: a map's name of two words, NaN, an id that is no int32. Any other console command, such as
`t.MaxFPS 30`, can be sent as plain text.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from rfly_common.config.vehicle_models import model_named
from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.arguments import FLOAT_MAX, INT32, check_flag, number_within, whole_number
from rfly_ue_bridge.codec.to_rflysim3d import UE4_CMD, UE4_CMD0, UE4_CMD_NET

MAX_SHORT_BYTES = 51
"""Longest text of a short command, bytes."""
MAX_LONG_BYTES = 249
"""Longest text of a long command, bytes: RflySim's own limit, although the field holds 252."""
MAX_LAN_BYTES = 91
"""Longest text of a command to a whole network, bytes."""

_COLOUR = re.compile(r"#?([0-9A-Fa-f]{6})", re.ASCII)

MAP_CHANGE_SECONDS = 1.0
"""Time after a map change in which RflySim3D takes no poses, s; RflySim's SDK waits as long."""


def encode_command(text: str) -> bytes:
    """Return the datagram of a console command.

    Up to 51 bytes of UTF-8 make a Ue4CMD0 (56 bytes), up to 249 a Ue4CMD (256 bytes). Raises
    CommandError for a text that is empty, too long or holds a zero byte, where RflySim3D would cut
    it.
    """
    raw = _checked(text, MAX_LONG_BYTES)
    return (UE4_CMD0 if len(raw) <= MAX_SHORT_BYTES else UE4_CMD).pack_flat(raw)


def encode_command_lan(text: str) -> bytes:
    """Return the datagram of a console command to every RflySim3D of a network.

    It is a Ue4CMDNet (96 bytes) with up to 91 bytes of UTF-8. Errors as `encode_command`.
    """
    return UE4_CMD_NET.pack_flat(_checked(text, MAX_LAN_BYTES))


def changes_map(text: str) -> bool:
    """Return True for a command after which RflySim3D loads a map.

    The rule is that of RflySim's SDK: the word may stand anywhere in the text, in this spelling.
    """
    return "RflyChangeMap" in text


# ---- map, view, texts


def change_map_by_name(name: str) -> str:
    """Load the map of that name.

    RflySim3D takes no poses for about a second after it (`MAP_CHANGE_SECONDS`).
    """
    return _command("RflyChangeMapbyName", _word("name", name))


def change_map_by_id(map_id: int) -> str:
    """Load the map of that number, as in RflySim3D's menu; otherwise as `change_map_by_name`."""
    return _command("RflyChangeMapbyID", _integer("map_id", map_id, 0))


def show_text(text: str) -> str:
    """Show a text on the screen for 5 s."""
    return _command("RflyShowText", _text("text", text))


def show_text_time(text: str, seconds: float) -> str:
    """Show a text on the screen for `seconds`."""
    return _command("RflyShowTextTime", _text("text", text), _number("seconds", seconds, 0.0))


def change_view_key(key: str, number: int) -> str:
    """Press a key and a number in RflySim3D's window, such as V and 1."""
    return _command("RflyChangeViewKeyCmd", _word("key", key), _integer("number", number, 0))


def camera_pose(
    x: float = 0.0,
    y: float = 0.0,
    z: float = 0.0,
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    yaw_deg: float = 0.0,
) -> str:
    """Put the camera at a pose: m NED from the map's origin."""
    return _command("RflyCameraPosAng", *_pose(x, y, z, roll_deg, pitch_deg, yaw_deg))


def camera_pose_add(
    x: float = 0.0,
    y: float = 0.0,
    z: float = 0.0,
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    yaw_deg: float = 0.0,
) -> str:
    """Move and turn the camera relative to its present pose."""
    return _command("RflyCameraPosAngAdd", *_pose(x, y, z, roll_deg, pitch_deg, yaw_deg))


def camera_fov(fov_deg: float) -> str:
    """Set the camera's horizontal angle of view, above 0 and below 180 degrees."""
    text = _number("fov_deg", fov_deg, 0.0, 180.0)
    if not 0.0 < fov_deg < 180.0:
        raise CommandError(f"fov_deg: {fov_deg}, expected above 0 and below 180")
    return _command("RflyCameraFovDegrees", text)


def clear_capture() -> str:
    """Clear the unit that captures pictures."""
    return _command("RflyClearCapture")


# ---- vehicles


def change_3d_model(copter_id: int, vehicle_type: int | str = 0) -> str:
    """Show a vehicle as another model.

    The model is given by its number, by a name of the suite's model list, such as car_blue, or by
    the name of a style of RflySim3D's, such as FSJ150_Orange_FBPanddles, which is sent as it is.
    """
    if isinstance(vehicle_type, str):
        model = model_named(vehicle_type)
        if model is not None:
            return change_3d_model(copter_id, model.vehicle_type)
        return _command("RflyChange3DModel", _id(copter_id), _word("vehicle_type", vehicle_type))
    return _command("RflyChange3DModel", _id(copter_id), _integer("vehicle_type", vehicle_type, 0))


def set_id_label(copter_id: int, text: str, colour: str = "#FF0000", size: float = 30.0) -> str:
    """Set the first line over a vehicle: text, colour as #RRGGBB or RRGGBB, and size."""
    words = [_id(copter_id), _text("text", text), _colour(colour), _number("size", size, 0.0)]
    return _command("RflySetIDLabel", *words)


def set_message_label(
    copter_id: int,
    text: str,
    colour: str = "#FF0000",
    size: float = 30.0,
    seconds: float = 0.0,
    flag: int = -1,
) -> str:
    """Set a further line over a vehicle.

    `seconds` 0 shows it for ever; `flag` says which line, -1 for one more.
    """
    words = [_id(copter_id), _text("text", text), _colour(colour), _number("size", size, 0.0)]
    return _command("RflySetMsgLabel", *words, _number("seconds", seconds), _integer("flag", flag))


def change_vehicle_size(copter_id: int, size: float = 0.0) -> str:
    """Show a vehicle in another size."""
    return _command("RflyChangeVehicleSize", _id(copter_id), _number("size", size, 0.0))


def move_vehicle(
    copter_id: int,
    x: float = 0.0,
    y: float = 0.0,
    z: float = 0.0,
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    yaw_deg: float = 0.0,
    *,
    fit_ground: bool = False,
) -> str:
    """Move and turn a vehicle relative to its present pose, m.

    `fit_ground` keeps it on the ground.
    """
    pose = _pose(x, y, z, roll_deg, pitch_deg, yaw_deg)
    return _command("RflyMoveVehiclePosAng", _id(copter_id), _flag("fit_ground", fit_ground), *pose)


def set_vehicle_pose(
    copter_id: int,
    x: float,
    y: float,
    z: float,
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    yaw_deg: float = 0.0,
    *,
    fit_ground: bool = False,
) -> str:
    """Put a vehicle at a pose: m NED from the map's origin; `fit_ground` keeps it on the ground."""
    pose = _pose(x, y, z, roll_deg, pitch_deg, yaw_deg)
    return _command("RflySetVehiclePosAng", _id(copter_id), _flag("fit_ground", fit_ground), *pose)


# ---- map files, requests, stencil values


def scan_terrain(
    x_left_bottom: float,
    y_left_bottom: float,
    x_right_top: float,
    y_right_top: float,
    scan_height: float,
    scan_interval: float,
) -> str:
    """Let RflySim3D write png and txt of the map's terrain.

    A rectangle, the height to scan from and the distance of the samples, all in m.
    """
    words = [
        _number("x_left_bottom", x_left_bottom),
        _number("y_left_bottom", y_left_bottom),
        _number("x_right_top", x_right_top),
        _number("y_right_top", y_right_top),
        _number("scan_height", scan_height),
        _number("scan_interval", scan_interval, 0.0),
    ]

    # a rectangle with an area
    if not scan_interval > 0:
        raise CommandError(f"scan_interval: {scan_interval}, expected above 0")
    if x_left_bottom == x_right_top or y_left_bottom == y_right_top:
        raise CommandError(
            "x_right_top and y_right_top: equal to the other corner's, the rectangle has no area"
        )
    return _command("RflyScanTerrainH", *words)


def cesium_origin(latitude_deg: float, longitude_deg: float, altitude: float) -> str:
    """Set the geodetic origin of a Cesium map; altitude in m."""
    return _command(
        "RflyCesiumOriPos",
        _number("latitude_deg", latitude_deg, -90.0, 90.0),
        _number("longitude_deg", longitude_deg, -180.0, 180.0),
        _number("altitude", altitude),
    )


def request_vehicle_data(wanted: bool = True) -> str:
    """Ask for reqVeCrashData, or for no more of it.

    It is sent for vehicles that change, so ask before creating them.
    """
    return _command("RflyReqVehicleData", _flag("wanted", wanted))


def request_object(kind: int, name: int | str) -> str:
    """Ask for place and size of a camera, a vehicle or a scene object.

    `name` is the SeqID of a camera (kind 0), the copterID of a vehicle (1), or the name of a scene
    object (2). The kinds have names in `from_rflysim3d`: CAMERA, VEHICLE, OBJECT.
    """
    if kind not in (0, 1, 2):
        raise CommandError(f"kind: {kind!r}, expected 0 (camera), 1 (vehicle) or 2 (object)")
    kind_text = _integer("kind", kind)
    if kind == 2:
        return _command("RflyReqObjData", kind_text, _word("name", name), "0")
    if isinstance(name, str):
        raise CommandError(f"name: {name!r}, expected a number for kind {kind}")
    return _command("RflyReqObjData", kind_text, _integer("name", name), "0")


def set_stencil_value_by_copter_id(copter_id: int, value: int) -> str:
    """Set a vehicle's stencil value, 0 to 255, which segmentation and infrared pictures show."""
    return _command(
        "RflySetStencilValueByCopterID", _id(copter_id), _integer("value", value, 0, 255)
    )


def set_stencil_value_by_actor_name(name: str, value: int, *, is_regex: bool = False) -> str:
    """Set the stencil value, 0 to 255, of actors by name.

    With `is_regex` it is that of all actors whose name matches the regular expression.
    """
    return _stencil("RflySetStencilValueByActorName", name, value, is_regex)


def set_stencil_value_by_mesh_component_name(
    name: str, value: int, *, is_regex: bool = False
) -> str:
    """Set the stencil value, 0 to 255, of mesh components by name, as that of actors."""
    return _stencil("RflySetStencilValueByMeshComponentName", name, value, is_regex)


# ---- of this suite's own window


WEATHER = "RflySuiteWeather"
"""Weather command of `rfly view`.

RflySim3D has no command for weather (an actor of class 804 shows it), and its console ignores
unknown words.
"""


def weather(light: float, visibility: float, cloud_cover: float, rain_rate: float) -> str:
    """Set the weather of `rfly view`.

    Light 0 (night) to 1 (day), visibility in m (0: clear air), cloud cover 0 to 1, rain in mm/h.
    """
    from rfly_terrain.world.weather import MOST_RAIN  # NumPy: not for the other commands

    return _command(
        WEATHER,
        _number("light", light, 0.0, 1.0),
        _number("visibility", visibility, 0.0),
        _number("cloud_cover", cloud_cover, 0.0, 1.0),
        _number("rain_rate", rain_rate, 0.0, MOST_RAIN),
    )


# ---- words


def _command(*words: str) -> str:
    text = " ".join(words)
    _checked(text, MAX_LONG_BYTES)
    return text


def _pose(
    x: float, y: float, z: float, roll_deg: float, pitch_deg: float, yaw_deg: float
) -> list[str]:
    names = ("x", "y", "z", "roll_deg", "pitch_deg", "yaw_deg")
    numbers = (x, y, z, roll_deg, pitch_deg, yaw_deg)
    return [_number(name, number) for name, number in zip(names, numbers, strict=True)]


def _stencil(command: str, name: str, value: int, is_regex: bool) -> str:
    _flag("is_regex", is_regex)
    return _command(
        command, _word("name", name), _integer("value", value, 0, 255), str(bool(is_regex))
    )


def _word(argument: str, value: Any) -> str:
    if (
        not isinstance(value, str)
        or not value
        or len(value.split()) != 1
        or value.split()[0] != value
    ):
        raise CommandError(f"{argument}: {value!r}, expected one word, without a blank")
    if not value.isprintable():
        raise CommandError(f"{argument}: {value!r} holds a character that cannot be printed")
    return value


def _text(argument: str, value: Any) -> str:
    """Return a text, in double quotes if it has blanks."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise CommandError(f"{argument}: {value!r}, expected a text on one line")
    if '"' in value:
        raise CommandError(f"{argument}: {value!r} has a double quote, which ends it in a command")
    return f'"{value}"' if " " in value else value


def _colour(value: Any) -> str:
    """Return a colour with #, as public scripts send those of labels."""
    match = _COLOUR.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise CommandError(f"colour: {value!r}, expected #RRGGBB or RRGGBB, such as #0080FF")
    return f"#{match[1]}"


def _id(value: Any) -> str:
    return _integer("copter_id", value)


def _integer(argument: str, value: Any, low: int = INT32[0], high: int = INT32[1]) -> str:
    return str(whole_number(argument, value, low, high, CommandError))


def _flag(argument: str, value: Any) -> str:
    return "1" if check_flag(argument, value, CommandError) else "0"


def _number(argument: str, value: Any, low: float = -FLOAT_MAX, high: float = FLOAT_MAX) -> str:
    """Return the shortest text that is this number, without an exponent."""
    number = number_within(argument, value, low, high, CommandError)
    if number == int(number):
        return str(int(number))
    return format(Decimal(repr(number)), "f")


def _checked(text: str, max_bytes: int) -> bytes:
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise CommandError(f"the command is not valid Unicode text: {error}") from error

    if not raw.strip():
        raise CommandError(
            "the command is empty; expected a text such as 'RflyChangeMapbyName Grasslands'"
        )

    if len(raw) > max_bytes:
        raise CommandError(
            f"the command has {len(raw)} bytes, at most {max_bytes} are possible: {text[:40]!r}…"
        )

    if b"\0" in raw:
        raise CommandError(
            f"the command holds a zero character, where RflySim3D would cut it: {text[:60]!r}"
        )
    return raw
