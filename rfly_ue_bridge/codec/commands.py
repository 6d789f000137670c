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
from typing import Literal

from rfly_common.config.vehicle_models import model_named
from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.command_words import MAX_LAN_BYTES as MAX_LAN_BYTES
from rfly_ue_bridge.codec.command_words import MAX_LONG_BYTES as MAX_LONG_BYTES
from rfly_ue_bridge.codec.command_words import MAX_SHORT_BYTES as MAX_SHORT_BYTES
from rfly_ue_bridge.codec.command_words import (
    checked_bytes,
    colour_word,
    command_text,
    flag_word,
    id_word,
    ids_word,
    integer_word,
    number_word,
    pose_words,
    quoted_text,
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
_DELETE_CAMERA = "10"
_DELETE_VEHICLE = "11"
_DELETE_OBJECT = "12"


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


# ---- map, view, texts


def change_map_by_name(name: str) -> str:
    """Load the map of that name.

    RflySim3D takes no poses for about a second after it (`MAP_CHANGE_SECONDS`).
    """
    return command_text("RflyChangeMapbyName", single_word("name", name))


def change_map_by_id(map_id: int) -> str:
    """Load the map of that number, as in RflySim3D's menu; otherwise as `change_map_by_name`."""
    return command_text("RflyChangeMapbyID", integer_word("map_id", map_id, 0))


def show_text(text: str) -> str:
    """Show a text on the screen for 5 s."""
    return command_text("RflyShowText", quoted_text("text", text))


def show_text_time(text: str, seconds: float) -> str:
    """Show a text on the screen for `seconds`."""
    return command_text(
        "RflyShowTextTime", quoted_text("text", text), number_word("seconds", seconds, 0.0)
    )


def change_view_key(key: str, number: int | None = None) -> str:
    """Press one of `KEYS` in RflySim3D's window, and a number unless it is None: V and 1, S and -1.

    docs/howto/console-commands.md says what each does.
    """
    if not isinstance(key, str) or key.upper() not in KEYS:
        raise CommandError(f"key: {key!r}, expected one of {', '.join(KEYS)}")
    numbers = [] if number is None else [integer_word("number", number, -1)]
    return command_text("RflyChangeViewKeyCmd", key.upper(), *numbers)


def camera_pose(
    x: float = 0.0,
    y: float = 0.0,
    z: float = 0.0,
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    yaw_deg: float = 0.0,
) -> str:
    """Put the camera at a pose: m NED from the map's origin."""
    return command_text("RflyCameraPosAng", *pose_words(x, y, z, roll_deg, pitch_deg, yaw_deg))


def camera_pose_add(
    x: float = 0.0,
    y: float = 0.0,
    z: float = 0.0,
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    yaw_deg: float = 0.0,
) -> str:
    """Move and turn the camera relative to its present pose."""
    return command_text("RflyCameraPosAngAdd", *pose_words(x, y, z, roll_deg, pitch_deg, yaw_deg))


def camera_fov(fov_deg: float) -> str:
    """Set the camera's horizontal angle of view, above 0 and below 180 degrees."""
    text = number_word("fov_deg", fov_deg, 0.0, 180.0)
    if not 0.0 < fov_deg < 180.0:
        raise CommandError(f"fov_deg: {fov_deg}, expected above 0 and below 180")
    return command_text("RflyCameraFovDegrees", text)


def clear_capture(seq_id: int | None = None) -> str:
    """Clear the cameras and lidars that capture: the one of that SeqID, or (-1, None) all.

    Windows before 2025 know the command without a SeqID only, as None sends it.
    """
    numbers = [] if seq_id is None else [integer_word("seq_id", seq_id, -1)]
    return command_text("RflyClearCapture", *numbers)


def synchronous_images(wanted: bool) -> str:
    """Capture pictures in step with the simulation, or not."""
    return command_text("RflyEnImgSync", flag_word("wanted", wanted))


def simulation_speed(factor: float) -> str:
    """Tell the window the speed of the simulation; RflySim's SDK does so after a map change."""
    return command_text("RflySetSimSpeed", number_word("factor", factor, 0.0))


def run_script(path: str) -> str:
    """Run a text file on RflySim3D's machine, which has one command on each line."""
    text = quoted_text("path", path)
    return command_text("RflyLoad3DFile", text if text.startswith('"') else f'"{text}"')


# ---- vehicles


def delete_vehicles(copter_ids: Iterable[int]) -> str:
    """Delete vehicles.

    RflySim3D never forgets a vehicle by itself. The next state of a deleted one creates it again,
    so its sender has to stop first. CommandError for more ids than fit into 249 bytes; for them
    there is `delete_vehicles_by_parts`.
    """
    return command_text("RflyDelVehicles", ids_word(copter_ids))


def delete_vehicles_by_parts(copter_ids: Iterable[int]) -> list[str]:
    """Return as many `delete_vehicles` as it takes for these ids, each as long as it can be."""
    texts: list[str] = []
    for word in map(id_word, copter_ids):
        longer = f"{texts[-1]},{word}" if texts else ""
        if longer and len(longer) <= MAX_LONG_BYTES:
            texts[-1] = longer
        else:
            texts.append(f"RflyDelVehicles {word}")
    return texts


def delete_vehicle(copter_id: int) -> str:
    """Delete a vehicle by RflyReqObjData; otherwise as `delete_vehicles`."""
    return command_text("RflyReqObjData", _DELETE_VEHICLE, id_word(copter_id), "0")


def disable_movement(copter_ids: Iterable[int], disabled: bool = True) -> str:
    """Ignore all states of these vehicles, so that they stand still, or follow them again."""
    return command_text("RflyDisableVeMove", ids_word(copter_ids), flag_word("disabled", disabled))


def set_track_colour(copter_id: int, colour: str) -> str:
    """Set the colour, RRGGBB, of the track that key T shows behind a vehicle."""
    return command_text("RflySetCopterLine", id_word(copter_id), colour_word(colour)[1:])


def set_position_scale(factor: float) -> str:
    """Multiply every position that arrives by UDP, which is in m; 1 restores it.

    RflySim's manual proposes 100, as Unreal counts in cm, although senders use m with 1.
    """
    text = number_word("factor", factor, 0.0)
    if not factor > 0:
        raise CommandError(f"factor: {factor}, expected above 0")
    return command_text("RflySetPosScale", text)


def set_actuators(copter_id: int, values: Sequence[float]) -> str:
    """Give a vehicle's blueprint up to eight numbers, such as the speeds of its rotors, rounds/s.

    The model's blueprint alone knows their meaning.
    """
    return _actuators("RflySetActuatorPWMs", copter_id, values, ACTUATORS)


def set_actuators_extended(copter_id: int, values: Sequence[float]) -> str:
    """Give a vehicle's blueprint the up to sixteen numbers that follow the first eight."""
    return _actuators("RflySetActuatorPWMsExt", copter_id, values, MORE_ACTUATORS)


def change_3d_model(copter_id: int, vehicle_type: int | str = 0) -> str:
    """Show a vehicle as another model.

    The model is given by its number, by a name of the suite's model list, such as car_blue, or by
    the name of a style of RflySim3D's, such as FSJ150_Orange_FBPanddles, which is sent as it is.
    """
    if isinstance(vehicle_type, str):
        model = model_named(vehicle_type)
        if model is not None:
            return change_3d_model(copter_id, model.vehicle_type)
        return command_text(
            "RflyChange3DModel", id_word(copter_id), single_word("vehicle_type", vehicle_type)
        )
    return command_text(
        "RflyChange3DModel", id_word(copter_id), integer_word("vehicle_type", vehicle_type, 0)
    )


def set_id_label(copter_id: int, text: str, colour: str = "#FF0000", size: float = 30.0) -> str:
    """Set the first line over a vehicle: text, colour as #RRGGBB or RRGGBB, and size."""
    words = [
        id_word(copter_id),
        quoted_text("text", text),
        colour_word(colour),
        number_word("size", size, 0.0),
    ]
    return command_text("RflySetIDLabel", *words)


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
    words = [
        id_word(copter_id),
        quoted_text("text", text),
        colour_word(colour),
        number_word("size", size, 0.0),
    ]
    return command_text(
        "RflySetMsgLabel", *words, number_word("seconds", seconds), integer_word("flag", flag)
    )


def change_vehicle_size(copter_id: int, size: float = 0.0) -> str:
    """Show a vehicle in another size."""
    return command_text("RflyChangeVehicleSize", id_word(copter_id), number_word("size", size, 0.0))


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
    pose = pose_words(x, y, z, roll_deg, pitch_deg, yaw_deg)
    return command_text(
        "RflyMoveVehiclePosAng", id_word(copter_id), flag_word("fit_ground", fit_ground), *pose
    )


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
    pose = pose_words(x, y, z, roll_deg, pitch_deg, yaw_deg)
    return command_text(
        "RflySetVehiclePosAng", id_word(copter_id), flag_word("fit_ground", fit_ground), *pose
    )


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
        number_word("x_left_bottom", x_left_bottom),
        number_word("y_left_bottom", y_left_bottom),
        number_word("x_right_top", x_right_top),
        number_word("y_right_top", y_right_top),
        number_word("scan_height", scan_height),
        number_word("scan_interval", scan_interval, 0.0),
    ]

    # a rectangle with an area
    if not scan_interval > 0:
        raise CommandError(f"scan_interval: {scan_interval}, expected above 0")
    if x_left_bottom == x_right_top or y_left_bottom == y_right_top:
        raise CommandError(
            "x_right_top and y_right_top: equal to the other corner's, the rectangle has no area"
        )
    return command_text("RflyScanTerrainH", *words)


def cesium_origin(
    latitude_deg: float, longitude_deg: float, altitude: float, solar_time: float | None = None
) -> str:
    """Set the geodetic origin of a Cesium map, altitude in m.

    `solar_time`, 0 to 24 hours, sets the light; None leaves it, as older windows want it.
    """
    hours = [] if solar_time is None else [number_word("solar_time", solar_time, 0.0, 24.0)]
    return command_text(
        "RflyCesiumOriPos",
        number_word("latitude_deg", latitude_deg, -90.0, 90.0),
        number_word("longitude_deg", longitude_deg, -180.0, 180.0),
        number_word("altitude", altitude),
        *hours,
    )


def request_vehicle_data(wanted: bool = True) -> str:
    """Ask for reqVeCrashData, or for no more of it.

    It is sent for vehicles that change, so ask before creating them.
    """
    return command_text("RflyReqVehicleData", flag_word("wanted", wanted))


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


def delete_camera(seq_id: int) -> str:
    """Delete a camera or lidar by its SeqID."""
    return command_text("RflyReqObjData", _DELETE_CAMERA, integer_word("seq_id", seq_id, 0), "0")


def delete_object(name: str) -> str:
    """Delete an object of the scene by its name, which a double click shows."""
    return command_text("RflyReqObjData", _DELETE_OBJECT, single_word("name", name), "0")


def clear(what: Cleared = "all") -> str:
    """Delete all cameras, vehicles, objects, vehicles and objects, or all three."""
    if what not in _CLEAR_FLAGS:
        raise CommandError(f"what: {what!r}, expected one of {', '.join(_CLEAR_FLAGS)}")
    return command_text("RflyReqObjData", str(_CLEAR_FLAGS[what]), "0", "0")


def set_stencil_value_by_copter_id(copter_id: int, value: int) -> str:
    """Set a vehicle's stencil value, 0 to 255, which segmentation and infrared pictures show."""
    return command_text(
        "RflySetStencilValueByCopterID", id_word(copter_id), integer_word("value", value, 0, 255)
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

    return command_text(
        WEATHER,
        number_word("light", light, 0.0, 1.0),
        number_word("visibility", visibility, 0.0),
        number_word("cloud_cover", cloud_cover, 0.0, 1.0),
        number_word("rain_rate", rain_rate, 0.0, MOST_RAIN),
    )


def _stencil(command: str, name: str, value: int, is_regex: bool) -> str:
    flag_word("is_regex", is_regex)
    return command_text(
        command,
        single_word("name", name),
        integer_word("value", value, 0, 255),
        str(bool(is_regex)),
    )


def _actuators(command: str, copter_id: int, values: Sequence[float], most: int) -> str:
    if not 1 <= len(values) <= most:
        raise CommandError(f"values: {len(values)}, expected 1 to {most}")
    return command_text(
        command, id_word(copter_id), *(number_word("values", value) for value in values)
    )
