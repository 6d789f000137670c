# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Console commands: which packet, which words, and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.errors import CommandError
from rfly_ue_bridge.codec import commands, unreal_commands
from rfly_ue_bridge.codec.command_words import DECLARED
from rfly_ue_bridge.codec.commands import changes_map, encode_command, encode_command_lan


def test_map_command_byte_by_byte():
    """The first experiment of RflySim's documentation.

    A checksum of 4 bytes, the text, zeros up to 56 bytes.
    """
    expected = bytes.fromhex(
        "d2029649" + "52666c794368616e67654d617062794e616d652047726173736c616e6473"
    ) + bytes(22)
    assert encode_command("RflyChangeMapbyName Grasslands") == expected
    assert len(expected) == 56


@pytest.mark.parametrize(
    ("length", "size"),
    [
        (1, 56),
        (51, 56),
        (52, 256),
        (249, 256),
    ],
)
def test_length_chooses_the_packet(length, size):
    datagram = encode_command("x" * length)
    assert len(datagram) == size
    assert datagram == bytes.fromhex("d2029649") + b"x" * length + bytes(size - 4 - length)


def test_length_counts_bytes_not_characters():
    """Texts that are too long are refused, counted in bytes of UTF-8.

    26 umlauts are 52 bytes: one too many for the short packet; 125 are 250, too many for any.
    """
    assert len(encode_command("ö" * 25)) == 56
    assert len(encode_command("ö" * 26)) == 256
    with pytest.raises(CommandError, match="250 bytes, at most 249"):
        encode_command("ö" * 125)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("  ", "empty", id="blank"),
        pytest.param("x" * 250, "at most 249", id="too-long"),
        pytest.param("t.MaxFPS\x0030", "zero character", id="zero-byte"),
        pytest.param("\ud800", "Unicode", id="lone-surrogate"),
    ],
)
def test_refused_commands(text, named):
    with pytest.raises(CommandError, match=named):
        encode_command(text)


def test_lan_command():
    assert encode_command_lan("x" * 91) == bytes.fromhex("d9029649") + b"x" * 91 + b"\0"
    with pytest.raises(CommandError, match="at most 91"):
        encode_command_lan("x" * 92)


def test_map_change_is_recognised_as_the_sdk_does():
    assert changes_map("RflyChangeMapbyName Grasslands")
    assert changes_map("say RflyChangeMapbyID 2")
    assert not changes_map("rflychangemapbyname Grasslands")


BUILT = [
    (commands.change_map_by_name("Grasslands"), "RflyChangeMapbyName Grasslands"),
    (commands.change_map_by_id(3), "RflyChangeMapbyID 3"),
    (commands.show_text("hello world"), 'RflyShowText "hello world"'),
    (commands.show_text("hello"), "RflyShowText hello"),
    # an example of the manual
    (
        commands.show_text_time("TakeOff cmd:1 2 3", 10),
        'RflyShowTextTime "TakeOff cmd:1 2 3" 10',
    ),
    (commands.show_text_time("hello", 2.5), "RflyShowTextTime hello 2.5"),
    (commands.change_view_key("V", 1), "RflyChangeViewKeyCmd V 1"),
    (commands.camera_pose(1, 2.5, -3, 10, -45, 90), "RflyCameraPosAng 1 2.5 -3 10 -45 90"),
    (commands.camera_pose(yaw_deg=90), "RflyCameraPosAng 0 0 0 0 0 90"),
    (commands.camera_pose_add(z=-1, pitch_deg=5), "RflyCameraPosAngAdd 0 0 -1 0 5 0"),
    (commands.camera_fov(72.5), "RflyCameraFovDegrees 72.5"),
    (commands.change_3d_model(7, 30), "RflyChange3DModel 7 30"),
    (commands.change_3d_model(7), "RflyChange3DModel 7 0"),
    (
        commands.change_3d_model(7, "FSJ150_Orange_FBPanddles"),
        "RflyChange3DModel 7 FSJ150_Orange_FBPanddles",
    ),
    (commands.set_id_label(1, "U1", "#FFFFFF", 28), "RflySetIDLabel 1 U1 #FFFFFF 28"),
    (
        commands.set_message_label(1, "low", "#ff8000", 20, 2.5, 3),
        "RflySetMsgLabel 1 low #ff8000 20 2.5 3",
    ),
    (commands.set_message_label(1, "low"), "RflySetMsgLabel 1 low #FF0000 30 0 -1"),
    (
        commands.set_message_label(1000, "Hi, here", "FFFF00", 20, 5, 0),
        'RflySetMsgLabel 1000 "Hi, here" #FFFF00 20 5 0',
    ),
    (commands.set_id_label(2, "U 2", "0080ff"), 'RflySetIDLabel 2 "U 2" #0080ff 30'),
    (commands.change_3d_model(7, "truck"), "RflyChange3DModel 7 51"),
    (commands.change_vehicle_size(7, 2), "RflyChangeVehicleSize 7 2"),
    (commands.change_vehicle_size(7), "RflyChangeVehicleSize 7 0"),
    (commands.move_vehicle(7, 1, 2, 3, 4, 5, 6), "RflyMoveVehiclePosAng 7 0 1 2 3 4 5 6"),
    (
        commands.set_vehicle_pose(7, 1, 2, 3, 4, 5, 6, fit_ground=True),
        "RflySetVehiclePosAng 7 1 1 2 3 4 5 6",
    ),
    (
        commands.scan_terrain(-100, -200, 300, 400, 1000, 0.5),
        "RflyScanTerrainH -100 -200 300 400 1000 0.5",
    ),
    (commands.cesium_origin(47.397742, 8.545594, 488), "RflyCesiumOriPos 47.397742 8.545594 488"),
    (commands.weather(0.6, 60, 0.9, 0), "RflySuiteWeather 0.6 60 0.9 0"),
    (commands.clear_capture(), "RflyClearCapture"),
    (commands.clear_capture(2), "RflyClearCapture 2"),
    (commands.clear_capture(-1), "RflyClearCapture -1"),
    (commands.synchronous_images(True), "RflyEnImgSync 1"),
    (commands.simulation_speed(2), "RflySetSimSpeed 2"),
    (commands.run_script("C:\\foo.txt"), 'RflyLoad3DFile "C:\\foo.txt"'),
    (commands.run_script("C:\\my scene.txt"), 'RflyLoad3DFile "C:\\my scene.txt"'),
    (commands.change_view_key("P"), "RflyChangeViewKeyCmd P"),
    (commands.change_view_key("s", -1), "RflyChangeViewKeyCmd S -1"),
    (commands.change_view_key("Esc"), "RflyChangeViewKeyCmd ESC"),
    (commands.delete_vehicles([1000, 1001]), "RflyDelVehicles 1000,1001"),
    (commands.delete_vehicle(1000), "RflyReqObjData 11 1000 0"),
    (commands.delete_camera(3), "RflyReqObjData 10 3 0"),
    (commands.delete_object("Landscape_1"), "RflyReqObjData 12 Landscape_1 0"),
    (commands.clear("cameras"), "RflyReqObjData 20 0 0"),
    (commands.clear("vehicles"), "RflyReqObjData 21 0 0"),
    (commands.clear("objects"), "RflyReqObjData 22 0 0"),
    (commands.clear("vehicles and objects"), "RflyReqObjData 23 0 0"),
    (commands.clear(), "RflyReqObjData 24 0 0"),
    (commands.disable_movement([1, 2]), "RflyDisableVeMove 1,2 1"),
    (commands.disable_movement([1], False), "RflyDisableVeMove 1 0"),
    (commands.set_track_colour(1, "FF0000"), "RflySetCopterLine 1 FF0000"),
    (commands.set_track_colour(1, "#00ff00"), "RflySetCopterLine 1 00ff00"),
    (commands.set_position_scale(2), "RflySetPosScale 2"),
    (
        commands.set_actuators(1000, [10, 10, 10, 10, 0, 0, 0, 0]),
        "RflySetActuatorPWMs 1000 10 10 10 10 0 0 0 0",
    ),
    (commands.set_actuators(1, [500]), "RflySetActuatorPWMs 1 500"),
    (commands.set_actuators_extended(1, [1]), "RflySetActuatorPWMsExt 1 1"),
    (
        commands.cesium_origin(40, 116, 50, 12),
        "RflyCesiumOriPos 40 116 50 12",
    ),
    (commands.request_vehicle_data(), "RflyReqVehicleData 1"),
    (commands.request_vehicle_data(False), "RflyReqVehicleData 0"),
    (commands.request_object(0, 3), "RflyReqObjData 0 3 0"),
    (commands.request_object(1, 7), "RflyReqObjData 1 7 0"),
    (commands.request_object(2, "Tree_1"), "RflyReqObjData 2 Tree_1 0"),
    (commands.set_stencil_value_by_copter_id(7, 255), "RflySetStencilValueByCopterID 7 255"),
    (
        commands.set_stencil_value_by_actor_name("Floor", 9),
        "RflySetStencilValueByActorName Floor 9 False",
    ),
    (
        commands.set_stencil_value_by_mesh_component_name(".*Rotor.*", 9, is_regex=True),
        "RflySetStencilValueByMeshComponentName .*Rotor.* 9 True",
    ),
]


@pytest.mark.parametrize(("built", "text"), BUILT, ids=[text.split()[0] for _, text in BUILT])
def test_words_and_order_of_each_command(built, text):
    assert built == text
    encode_command(built)


NAN = float("nan")
INF = float("inf")

REFUSED = [
    (lambda: commands.delete_vehicles([]), "copter_ids: none"),
    (lambda: commands.delete_vehicles([2**31]), "copter_ids: 2147483648"),
    (lambda: commands.delete_vehicles(range(10_000, 10_100)), "at most 249"),
    (lambda: commands.clear("everything"), "what: 'everything', expected one of cameras"),
    (lambda: commands.change_view_key("Q"), "key: 'Q', expected one of F1"),
    (lambda: commands.change_view_key("V", -2), "number: -2"),
    (lambda: commands.set_position_scale(0), "factor: 0, expected above 0"),
    (lambda: commands.set_actuators(1, range(9)), "values: 9, expected 1 to 8"),
    (lambda: commands.set_actuators_extended(1, []), "values: 0, expected 1 to 16"),
    (lambda: commands.set_track_colour(1, "red"), "colour: 'red'"),
    (lambda: commands.cesium_origin(0, 0, 0, 25), "solar_time: 25"),
    (lambda: commands.run_script('C:\\"x".txt'), "double quote"),
    (lambda: commands.change_map_by_name("Grass lands"), r"name: 'Grass lands', expected one word"),
    (lambda: commands.change_map_by_name("Grass\n"), r"name: 'Grass\\n', expected one word"),
    (lambda: commands.change_map_by_name(""), "name: ''"),
    (lambda: commands.change_map_by_name("a\x07"), "cannot be printed"),
    (lambda: commands.change_map_by_name(3), "name: 3"),
    (lambda: commands.change_map_by_name("x" * 230), "250 bytes, at most 249"),
    (
        lambda: commands.change_map_by_id(-1),
        "map_id: -1, expected a whole number from 0 to 2147483647",
    ),
    (lambda: commands.change_map_by_id(1.0), "map_id: 1.0"),
    (lambda: commands.change_map_by_id(True), "map_id: True"),
    (lambda: commands.show_text("a\nb"), "text"),
    (lambda: commands.show_text('say "a"'), "double quote"),
    (lambda: commands.show_text(" "), "text"),
    (lambda: commands.show_text_time("", 1), "text: '', expected a text on one line"),
    (lambda: commands.show_text_time("a", -1), "seconds: -1"),
    (lambda: commands.change_view_key("", 1), "key"),
    (lambda: commands.camera_pose(NAN), "x: nan"),
    (lambda: commands.camera_pose(0, INF), "y: inf"),
    (lambda: commands.camera_pose(0, 0, 1e39), "z: 1e[+]39, expected a number from -3.40282e[+]38"),
    (lambda: commands.camera_pose(yaw_deg="90"), "yaw_deg: '90'"),
    (lambda: commands.camera_pose_add(pitch_deg=None), "pitch_deg: None"),
    (lambda: commands.camera_fov(180), "fov_deg: 180, expected above 0 and below 180"),
    (lambda: commands.camera_fov(0), "fov_deg: 0"),
    (lambda: commands.change_3d_model(2**31), "copter_id: 2147483648"),
    (lambda: commands.change_3d_model(1, -1), "vehicle_type: -1"),
    (lambda: commands.change_vehicle_size(1, -0.5), "size: -0.5"),
    (lambda: commands.move_vehicle(1, fit_ground=2), "fit_ground: 2"),
    (lambda: commands.set_vehicle_pose(1, 0, 0, NAN), "z: nan"),
    (lambda: commands.scan_terrain(0, 0, 1, 1, 10, 0), "scan_interval: 0"),
    (lambda: commands.scan_terrain(0, 0, 0, 1, 10, 1), "no area"),
    (
        lambda: commands.cesium_origin(90.1, 0, 0),
        "latitude_deg: 90.1, expected a number from -90 to 90",
    ),
    (lambda: commands.cesium_origin(0, -181, 0), "longitude_deg"),
    (lambda: commands.weather(1.1, 0, 0, 0), "light: 1.1, expected a number from 0 to 1"),
    (lambda: commands.weather(1, -1, 0, 0), "visibility: -1"),
    (lambda: commands.weather(1, 0, NAN, 0), "cloud_cover: nan"),
    (lambda: commands.weather(1, 0, 0, 501), "rain_rate: 501"),
    (lambda: commands.request_vehicle_data("no"), "wanted: 'no'"),
    (
        lambda: commands.request_object(3, 1),
        r"kind: 3, expected 0 \(camera\), 1 \(vehicle\) or 2 \(object\)",
    ),
    (lambda: commands.request_object(1, "7"), "name: '7', expected a number for kind 1"),
    (lambda: commands.request_object(2, 7), "name: 7"),
    (lambda: commands.request_object(2, "Big Tree"), "name: 'Big Tree'"),
    (
        lambda: commands.set_stencil_value_by_copter_id(1, 256),
        "value: 256, expected a whole number from 0 to 255",
    ),
    (lambda: commands.set_stencil_value_by_actor_name("a b", 1), "name: 'a b'"),
    (lambda: commands.set_stencil_value_by_mesh_component_name("a", 1, is_regex="x"), "is_regex"),
]


@pytest.mark.parametrize(("build", "named"), REFUSED, ids=[named for _, named in REFUSED])
def test_what_rflysim3d_would_misread_is_refused(build, named):
    with pytest.raises(ValueError, match=named) as caught:
        build()
    assert isinstance(caught.value, CommandError)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (3.0, "3"),
        (-7, "-7"),
        (0.1, "0.1"),
        (1 / 3, "0.3333333333333333"),
        (1e-7, "0.0000001"),
        (-177.181, "-177.181"),
        (1e16, "10000000000000000"),
        (123456789.25, "123456789.25"),
        (np.float64(2.5), "2.5"),
        (np.int32(4), "4"),
    ],
)
def test_numbers_are_short_and_without_exponent(number, text):
    assert commands.camera_pose(number) == f"RflyCameraPosAng {text} 0 0 0 0 0"


@given(st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-30))
def test_numbers_keep_their_value(number):
    word = commands.change_vehicle_size(1, abs(number)).split()[2]
    assert float(word) == abs(number)
    assert "e" not in word
    assert len(word) <= len(repr(abs(number))) or abs(number) < 1e-4


def test_every_documented_command_has_a_builder():
    """The commands of RflySim's manual and SDK, two of public examples, and one of this suite."""
    documented = """RflyShowTextTime RflyShowText RflyChangeMapbyID RflyChangeMapbyName
        RflyChangeViewKeyCmd RflyCameraPosAngAdd RflyCameraPosAng RflyCameraFovDegrees
        RflyChange3DModel RflyChangeVehicleSize RflyMoveVehiclePosAng RflySetVehiclePosAng
        RflyScanTerrainH RflyCesiumOriPos RflyClearCapture RflyReqVehicleData RflyReqObjData
        RflySetStencilValueByCopterID RflySetStencilValueByActorName
        RflySetStencilValueByMeshComponentName RflySetIDLabel RflySetMsgLabel RflySuiteWeather
        RflyDelVehicles RflyDisableVeMove RflySetCopterLine RflySetPosScale RflySetActuatorPWMs
        RflySetActuatorPWMsExt RflyLoad3DFile RflyEnImgSync RflySetSimSpeed"""
    assert {text.split()[0] for _, text in BUILT} == set(documented.split())


def test_a_delete_byte_by_byte():
    """The example of RflySim's manual, worked out by hand."""
    text = "52 66 6c 79 44 65 6c 56 65 68 69 63 6c 65 73 20 31 30 30 30 2c 31 30 30 31"
    expected = bytes.fromhex("d2 02 96 49" + text).ljust(56, b"\0")
    assert encode_command(commands.delete_vehicles([1000, 1001])) == expected


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=300))
def test_many_deletes_are_parted_without_losing_or_changing_an_id(ids):
    texts = commands.delete_vehicles_by_parts(ids)
    found = [int(word) for text in texts for word in text.split()[1].split(",")]
    assert found == ids
    assert all(len(text) <= 249 for text in texts)
    for text, following in itertools.pairwise(texts):
        first = following.split()[1].split(",")[0]
        assert len(f"{text},{first}") > 249


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("RflyChangeVehicleSize 7 2.5", [7, 2.5]),
        ("RflyChangeVehicleSize 7", [7, 0.0]),  # a word that may miss
        ("RflySetVehiclePosAng 7 1 1 2 -3 0 0 90", [7, True, 1.0, 2.0, -3.0, 0.0, 0.0, 90.0]),
        ("RflyShowTextTime take off now 10", ["take off now", 10.0]),
        ("RflySetCopterLine 3 0080ff", [3, (0, 128, 255)]),
        ("RflyDisableVeMove 1,2 0", [(1, 2), False]),
        ("RflySetActuatorPWMs 1 10 20", [1, (10.0, 20.0)]),
        ("RflyReqVehicleData 127.0.0.1", [True]),
        ("RflyClearCapture", [None]),
    ],
)
def test_a_declaration_reads_what_it_writes(text, values):
    word, *words = text.split()
    assert DECLARED[word].read(words) == values


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("RflyChangeVehicleSize", "argument 1 is missing"),
        ("RflySetCopterLine 3", "argument 2 is missing"),
        ("RflySetCopterLine 3 red", "argument 2 is red, expected a colour"),
        ("RflyDelVehicles ,", "argument 1 is ,, expected ids"),
        ("RflyChangeVehicleSize 1.5", "argument 1 is 1.5, no whole number"),
        ("RflySetPosScale nan", "argument 1 is nan"),
    ],
)
def test_words_that_are_missing_or_wrong_are_named(text, problem):
    word, *words = text.split()
    with pytest.raises(ValueError, match=problem):
        DECLARED[word].read(words)


def test_only_an_optional_argument_may_be_none():
    with pytest.raises(CommandError, match="seq_id: None"):
        commands.delete_camera(None)
    assert commands.clear_capture(None) == "RflyClearCapture"


def test_the_page_names_every_declared_command():
    page = (Path(__file__).parents[3] / "docs/howto/console-commands.md").read_text("utf-8")
    assert unreal_commands.max_fps(30) == "t.MaxFPS 30"  # declares its word
    missing = [word for word in DECLARED if f"`{word}" not in page]
    assert not missing
