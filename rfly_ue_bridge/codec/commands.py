# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's console commands: one function each, and their datagrams.

    sender.send(encode_command(camera_pose(0, 0, -20, pitch_deg=-45)))

The functions know words, order and units: positions in m, NED from the origin of the Unreal map,
angles in degrees. Numbers keep their value and have no exponent, because Unreal's console does not
read exponents everywhere. Texts with blanks are put in double quotes, as RflySim3D's console reads
them. CommandError, a ValueError that names argument and limit, is raised for what RflySim3D would
misread: a map's name of two words, NaN, an id that is no int32. `unreal_commands` has Unreal's own,
such as `t.MaxFPS 30`. Any other console command can be sent as plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from rfly_common.config.vehicle_models import model_named
from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.command_words import MAX_LAN_BYTES as MAX_LAN_BYTES
from rfly_ue_bridge.codec.command_words import MAX_LONG_BYTES as MAX_LONG_BYTES
from rfly_ue_bridge.codec.command_words import MAX_SHORT_BYTES as MAX_SHORT_BYTES
from rfly_ue_bridge.codec.command_words import (
    Word,
    checked_bytes,
    colour_word,
    command_text,
    console_command,
    flag_word,
    ids_word,
    integer_word,
    number_word,
    quoted_text,
    read_colour,
    read_flag,
    read_ids,
    read_integer,
    read_number,
    read_text,
    single_word,
)
from rfly_ue_bridge.codec.to_rflysim3d import UE4_CMD, UE4_CMD0, UE4_CMD_NET

MAP_CHANGE_SECONDS = 1.0
"""Time after a map change in which RflySim3D takes no poses, s; RflySim's SDK waits as long."""
KEYS = ("F1", "F2", "ESC", "S", "H", "D", "M", "B", "C", "P", "V", "N", "T", "I", "O", "L")
"""Keys of RflySim3D's window: the fifteen of its manual, and L of public scripts."""
ACTUATORS = 8
"""Numbers that RflySetActuatorPWMs holds."""
MORE_ACTUATORS = 16
"""Numbers that RflySetActuatorPWMsExt holds."""

Cleared = Literal["cameras", "vehicles", "objects", "vehicles and objects", "all"]
_CLEAR_FLAGS = {"cameras": 20, "vehicles": 21, "objects": 22, "vehicles and objects": 23, "all": 24}


def encode_command(text: str) -> bytes:
    """Return the datagram of a console command.

    Up to 51 bytes of UTF-8 make a Ue4CMD0 (56 bytes), up to 249 a Ue4CMD (256 bytes). Raises
    CommandError for a text that is empty, too long or holds a zero byte, where RflySim3D would cut
    it.
    """
    raw = checked_bytes(text, MAX_LONG_BYTES)
    return (UE4_CMD0 if len(raw) <= MAX_SHORT_BYTES else UE4_CMD).pack_flat(raw)


def encode_command_lan(text: str) -> bytes:
    """Return the datagram of a console command to every RflySim3D of a network.

    It is a Ue4CMDNet (96 bytes) with up to 91 bytes of UTF-8. Errors as `encode_command`.
    """
    return UE4_CMD_NET.pack_flat(checked_bytes(text, MAX_LAN_BYTES))


def changes_map(text: str) -> bool:
    """Return True for a command after which RflySim3D loads a map.

    The rule is that of RflySim's SDK: the word may stand anywhere in the text, in this spelling.
    """
    return "RflyChangeMap" in text


def map_named_in(text: str) -> str | None:
    """Return the map that a RflyChangeMapbyName loads; None for other commands."""
    words = text.split()
    return words[1] if len(words) == 2 and words[0] == "RflyChangeMapbyName" else None


# ---- words


def _key_word(argument: str, value: Any) -> str:
    if not isinstance(value, str) or value.upper() not in KEYS:
        raise CommandError(f"{argument}: {value!r}, expected one of {', '.join(KEYS)}")
    return value.upper()


def _path_word(argument: str, value: Any) -> str:
    text = quoted_text(argument, value)
    return text if text.startswith('"') else f'"{text}"'


def _model_word(argument: str, value: Any) -> str:
    model = model_named(value) if isinstance(value, str) else None
    if model is None and isinstance(value, str):
        return single_word(argument, value)
    return integer_word(argument, value if model is None else model.vehicle_type, 0)


def _rain_word(argument: str, value: Any) -> str:
    from rfly_terrain.world.weather import MOST_RAIN  # NumPy: not for the other commands

    return number_word(argument, value, 0.0, MOST_RAIN)


def _actuators_word(most: int, argument: str, values: Sequence[Any]) -> str:
    if not 1 <= len(values) <= most:
        raise CommandError(f"{argument}: {len(values)}, expected 1 to {most}")
    return " ".join(number_word(argument, value) for value in values)


def _read_actuators(words: Sequence[str], index: int) -> tuple[float, ...]:
    end = max(index + 1, min(len(words), index + ACTUATORS))
    return tuple(read_number(words, i) for i in range(index, end))


_NOT_NEGATIVE = partial(number_word, low=0.0)

Number = Annotated[float, Word(number_word, read_number)]
NotNegative = Annotated[float, Word(_NOT_NEGATIVE, read_number)]
Share = Annotated[float, Word(partial(number_word, low=0.0, high=1.0), read_number)]
Size = Annotated[float, Word(_NOT_NEGATIVE, read_number, may_miss=True)]
Seconds = Annotated[float, Word(number_word, read_number, may_miss=True)]
Integer = Annotated[int, Word(integer_word, read_integer)]
Line = Annotated[int, Word(integer_word, read_integer, may_miss=True)]
Natural = Annotated[int, Word(partial(integer_word, low=0), read_integer)]
Byte = Annotated[int, Word(partial(integer_word, low=0, high=255), read_integer)]
OptionalNumber = Annotated[
    int | None, Word(partial(integer_word, low=-1), read_integer, may_miss=True)
]
Ids = Annotated[Iterable[int], Word(ids_word, read_ids)]
Flag = Annotated[bool, Word(flag_word, read_flag)]
Colour = Annotated[str, Word(colour_word, read_colour)]
BareColour = Annotated[
    str, Word(lambda argument, value: colour_word(argument, value)[1:], read_colour)
]
Text = Annotated[str, Word(quoted_text)]
LongText = Annotated[str, Word(quoted_text, read_text, takes_all=True)]
MapName = Annotated[str, Word(single_word, read_text, takes_all=True)]
Name = Annotated[str, Word(single_word)]
RegexFlag = Annotated[bool, Word(lambda argument, value: str(flag_word(argument, value) == "1"))]
Latitude = Annotated[float, Word(partial(number_word, low=-90.0, high=90.0))]
Longitude = Annotated[float, Word(partial(number_word, low=-180.0, high=180.0))]
Hours = Annotated[float | None, Word(partial(number_word, low=0.0, high=24.0))]
Angle = Annotated[float, Word(partial(number_word, low=0.0, high=180.0), read_number)]
Actuators = Annotated[Sequence[float], Word(partial(_actuators_word, ACTUATORS), _read_actuators)]
MoreActuators = Annotated[Sequence[float], Word(partial(_actuators_word, MORE_ACTUATORS))]

_POSE = "x y z roll pitch yaw (m NED, degrees)"
_POSE_ORDER = ("copter_id", "fit_ground", "x", "y", "z", "roll_deg", "pitch_deg", "yaw_deg")


# ---- map, view, texts


@console_command("RflyChangeMapbyName", usage="name")
def change_map_by_name(name: MapName) -> None:
    """Load the map of that name.

    RflySim3D takes no poses for about a second after it (`MAP_CHANGE_SECONDS`).
    """


@console_command("RflyChangeMapbyID")
def change_map_by_id(map_id: Natural) -> None:
    """Load the map of that number, as in RflySim3D's menu; otherwise as `change_map_by_name`."""


@console_command("RflyShowText", usage="text")
def show_text(text: LongText) -> None:
    """Show a text on the screen for 5 s."""


@console_command("RflyShowTextTime", usage="text seconds")
def show_text_time(text: LongText, seconds: NotNegative) -> None:
    """Show a text on the screen for `seconds`."""


@console_command("RflyChangeViewKeyCmd", usage="key number")
def change_view_key(key: Annotated[str, Word(_key_word)], number: OptionalNumber = None) -> None:
    """Press one of `KEYS` in RflySim3D's window, and a number unless it is None: V and 1, S and -1.

    docs/howto/console-commands.md says what each does.
    """


@console_command("RflyCameraPosAng", usage=_POSE)
def camera_pose(
    x: Number = 0.0,
    y: Number = 0.0,
    z: Number = 0.0,
    roll_deg: Number = 0.0,
    pitch_deg: Number = 0.0,
    yaw_deg: Number = 0.0,
) -> None:
    """Put the camera at a pose: m NED from the map's origin."""


@console_command("RflyCameraPosAngAdd", usage=_POSE)
def camera_pose_add(
    x: Number = 0.0,
    y: Number = 0.0,
    z: Number = 0.0,
    roll_deg: Number = 0.0,
    pitch_deg: Number = 0.0,
    yaw_deg: Number = 0.0,
) -> None:
    """Move and turn the camera relative to its present pose."""


@console_command("RflyCameraFovDegrees", usage="degrees")
def camera_fov(fov_deg: Angle) -> None:
    """Set the camera's horizontal angle of view, above 0 and below 180 degrees."""
    if not 0.0 < fov_deg < 180.0:
        raise CommandError(f"fov_deg: {fov_deg}, expected above 0 and below 180")


@console_command("RflyClearCapture", usage="SeqID, or nothing or -1 for all")
def clear_capture(seq_id: OptionalNumber = None) -> None:
    """Clear the cameras and lidars that capture: the one of that SeqID, or (-1, None) all.

    Windows before 2025 know the command without a SeqID only, as None sends it.
    """


@console_command("RflyEnImgSync")
def synchronous_images(wanted: Flag) -> None:
    """Capture pictures in step with the simulation, or not."""


@console_command("RflySetSimSpeed", usage="factor")
def simulation_speed(factor: NotNegative) -> None:
    """Show the speed of the simulation in the window, as RflySim's SDK does after a map change."""


@console_command("RflyLoad3DFile")
def run_script(path: Annotated[str, Word(_path_word)]) -> None:
    """Run a text file on RflySim3D's machine, which has one command on each line."""


# ---- vehicles


@console_command("RflyDelVehicles", usage="copterID,copterID,…")
def delete_vehicles(copter_ids: Ids) -> None:
    """Delete vehicles.

    RflySim3D never forgets a vehicle by itself. The next state of a deleted one creates it again,
    so its sender has to stop first. CommandError for more ids than fit into 249 bytes; for them
    there is `delete_vehicles_by_parts`.
    """


def delete_vehicles_by_parts(copter_ids: Iterable[int]) -> list[str]:
    """Return as many `delete_vehicles` as it takes for these ids, each as long as it can be."""
    texts: list[str] = []
    for word in (integer_word("copter_id", each) for each in copter_ids):
        longer = f"{texts[-1]},{word}" if texts else ""
        if longer and len(longer) <= MAX_LONG_BYTES:
            texts[-1] = longer
        else:
            texts.append(f"RflyDelVehicles {word}")
    return texts


@console_command("RflyReqObjData", "11", tail=("0",), usage="flag name")
def delete_vehicle(copter_id: Integer) -> None:
    """Delete a vehicle by RflyReqObjData; otherwise as `delete_vehicles`."""


@console_command("RflyDisableVeMove", usage="copterID,copterID,… 0 or 1")
def disable_movement(copter_ids: Ids, disabled: Flag = True) -> None:
    """Ignore all states of these vehicles, so that they stand still, or follow them again."""


@console_command("RflySetCopterLine", usage="copterID RRGGBB")
def set_track_colour(copter_id: Integer, colour: BareColour) -> None:
    """Set the colour, RRGGBB, of the track that key T shows behind a vehicle."""


@console_command("RflySetPosScale", usage="factor")
def set_position_scale(factor: NotNegative) -> None:
    """Multiply every position that arrives by UDP, which is in m; 1 restores it.

    RflySim's manual proposes 100, as Unreal counts in cm, although senders use m with 1.
    """
    if not factor > 0:
        raise CommandError(f"factor: {factor}, expected above 0")


@console_command("RflySetActuatorPWMs", usage="copterID p1 … p8 (rounds/s)")
def set_actuators(copter_id: Integer, values: Actuators) -> None:
    """Give a vehicle's blueprint up to eight numbers, such as the speeds of its rotors, rounds/s.

    The model's blueprint alone knows their meaning.
    """


@console_command("RflySetActuatorPWMsExt")
def set_actuators_extended(copter_id: Integer, values: MoreActuators) -> None:
    """Give a vehicle's blueprint the up to sixteen numbers that follow the first eight."""


@console_command("RflyChange3DModel", usage="copterID type")
def change_3d_model(
    copter_id: Integer, vehicle_type: Annotated[int | str, Word(_model_word)] = 0
) -> None:
    """Show a vehicle as another model.

    The model is given by its number, by a name of the suite's model list, such as car_blue, or by
    the name of a style of RflySim3D's, such as FSJ150_Orange_FBPanddles, which is sent as it is.
    """


@console_command("RflySetIDLabel", usage="copterID text #RRGGBB size")
def set_id_label(
    copter_id: Integer, text: Text, colour: Colour = "#FF0000", size: Size = 30.0
) -> None:
    """Set the first line over a vehicle: text, colour as #RRGGBB or RRGGBB, and size."""


@console_command("RflySetMsgLabel", usage="copterID text #RRGGBB size seconds flag")
def set_message_label(
    copter_id: Integer,
    text: Text,
    colour: Colour = "#FF0000",
    size: Size = 30.0,
    seconds: Seconds = 0.0,
    flag: Line = -1,
) -> None:
    """Set a further line over a vehicle.

    `seconds` 0 shows it for ever; `flag` says which line, -1 for one more.
    """


@console_command("RflyChangeVehicleSize", usage="copterID size")
def change_vehicle_size(copter_id: Integer, size: Size = 0.0) -> None:
    """Show a vehicle in another size."""


@console_command("RflyMoveVehiclePosAng", usage=f"copterID fitGround {_POSE}", order=_POSE_ORDER)
def move_vehicle(
    copter_id: Integer,
    x: Number = 0.0,
    y: Number = 0.0,
    z: Number = 0.0,
    roll_deg: Number = 0.0,
    pitch_deg: Number = 0.0,
    yaw_deg: Number = 0.0,
    *,
    fit_ground: Flag = False,
) -> None:
    """Move and turn a vehicle relative to its present pose, m.

    `fit_ground` keeps it on the ground.
    """


@console_command("RflySetVehiclePosAng", usage=f"copterID fitGround {_POSE}", order=_POSE_ORDER)
def set_vehicle_pose(
    copter_id: Integer,
    x: Number,
    y: Number,
    z: Number,
    roll_deg: Number = 0.0,
    pitch_deg: Number = 0.0,
    yaw_deg: Number = 0.0,
    *,
    fit_ground: Flag = False,
) -> None:
    """Put a vehicle at a pose: m NED from the map's origin; `fit_ground` keeps it on the ground."""


# ---- map files, requests, stencil values


@console_command(
    "RflyScanTerrainH", usage="xLeftBottom yLeftBottom xRightTop yRightTop scanHeight scanInterval"
)
def scan_terrain(
    x_left_bottom: Number,
    y_left_bottom: Number,
    x_right_top: Number,
    y_right_top: Number,
    scan_height: Number,
    scan_interval: NotNegative,
) -> None:
    """Let RflySim3D write png and txt of the map's terrain.

    A rectangle, the height to scan from and the distance of the samples, all in m.
    """
    # a rectangle with an area
    if not scan_interval > 0:
        raise CommandError(f"scan_interval: {scan_interval}, expected above 0")
    if x_left_bottom == x_right_top or y_left_bottom == y_right_top:
        raise CommandError(
            "x_right_top and y_right_top: equal to the other corner's, the rectangle has no area"
        )


@console_command("RflyCesiumOriPos")
def cesium_origin(
    latitude_deg: Latitude, longitude_deg: Longitude, altitude: Number, solar_time: Hours = None
) -> None:
    """Set the geodetic origin of a Cesium map, altitude in m.

    `solar_time`, 0 to 24 hours, sets the light; None leaves it, as older windows want it.
    """


@console_command("RflyReqVehicleData", usage="0 or 1")
def request_vehicle_data(
    wanted: Annotated[bool, Word(flag_word, lambda words, index: words[index] != "0")] = True,
) -> None:
    """Ask for reqVeCrashData, or for no more of it.

    It is sent for vehicles that change, so ask before creating them.
    """


def request_object(kind: int, name: int | str) -> str:
    """Ask for place and size of a camera, a vehicle or a scene object.

    `name` is the SeqID of a camera (kind 0), the copterID of a vehicle (1), or the name of a scene
    object (2). The kinds have names in `from_rflysim3d`: CAMERA, VEHICLE, OBJECT.
    """
    if kind not in (0, 1, 2):
        raise CommandError(f"kind: {kind!r}, expected 0 (camera), 1 (vehicle) or 2 (object)")
    kind_text = integer_word("kind", kind)
    if kind == 2:
        return command_text("RflyReqObjData", kind_text, single_word("name", name), "0")
    if isinstance(name, str):
        raise CommandError(f"name: {name!r}, expected a number for kind {kind}")
    return command_text("RflyReqObjData", kind_text, integer_word("name", name), "0")


@console_command("RflyReqObjData", "10", tail=("0",))
def delete_camera(seq_id: Natural) -> None:
    """Delete a camera or lidar by its SeqID."""


@console_command("RflyReqObjData", "12", tail=("0",))
def delete_object(name: Name) -> None:
    """Delete an object of the scene by its name, which a double click shows."""


def clear(what: Cleared = "all") -> str:
    """Delete all cameras, vehicles, objects, vehicles and objects, or all three."""
    if what not in _CLEAR_FLAGS:
        raise CommandError(f"what: {what!r}, expected one of {', '.join(_CLEAR_FLAGS)}")
    return command_text("RflyReqObjData", str(_CLEAR_FLAGS[what]), "0", "0")


@console_command("RflySetStencilValueByCopterID")
def set_stencil_value_by_copter_id(copter_id: Integer, value: Byte) -> None:
    """Set a vehicle's stencil value, 0 to 255, which segmentation and infrared pictures show."""


@console_command("RflySetStencilValueByActorName")
def set_stencil_value_by_actor_name(
    name: Name, value: Byte, *, is_regex: RegexFlag = False
) -> None:
    """Set the stencil value, 0 to 255, of actors by name.

    With `is_regex` it is that of all actors whose name matches the regular expression.
    """


@console_command("RflySetStencilValueByMeshComponentName")
def set_stencil_value_by_mesh_component_name(
    name: Name, value: Byte, *, is_regex: RegexFlag = False
) -> None:
    """Set the stencil value, 0 to 255, of mesh components by name, as that of actors."""


# ---- of this suite's own window


WEATHER = "RflySuiteWeather"
"""Weather command of `rfly view`.

RflySim3D has no command for weather (an actor of class 804 shows it), and its console ignores
unknown words.
"""


@console_command(
    WEATHER,
    usage="light visibility cloudCover rainRate (0 to 1, m or 0 in clear air, 0 to 1, mm/h)",
)
def weather(
    light: Share,
    visibility: NotNegative,
    cloud_cover: Share,
    rain_rate: Annotated[float, Word(_rain_word, read_number)],
) -> None:
    """Set the weather of `rfly view`.

    Light 0 (night) to 1 (day), visibility in m (0: clear air), cloud cover 0 to 1, rain in mm/h.
    """
