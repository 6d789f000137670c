# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The scene after packets; every expected value is worked out by hand."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest

from rfly_collision.shapes import vehicle_meshes as models
from rfly_common.errors import TerrainFileNotFound
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.scene_commands import (
    CameraFov,
    ChangeMap,
    ClearSensors,
    DeleteVehicles,
    MoveCamera,
    ViewKey,
)
from rfly_viewer.scene.scene_state import SceneState
from rfly_viewer.scene.state_batches import read_batches
from rfly_viewer.scene.viewpoint import Viewpoint, on_board

# 10 m high in the west, 30 m in the east, 100 m apart; level along north
RAMP = HeightMap(
    [[10.0, 10.0], [30.0, 30.0]], origin_x=-50, origin_y=-50, step_x=100, step_y=100, name="Ramp"
)
QUARTER = np.pi / 2


def load(name):
    if name != "Ramp":
        raise TerrainFileNotFound(f"no map {name}")
    return RAMP


@pytest.fixture
def state():
    return SceneState(load=load)


def tell(state, *datagrams, now_s=0.0):
    for said in read_batches(datagrams, Counter()):
        state.apply(said, now_s)


def command(text):
    return struct.pack("<i252s", 1234567890, text.encode())


def pose(
    vehicle_id,
    x=0.0,
    y=0.0,
    z=0.0,
    roll=0.0,
    pitch=0.0,
    yaw=0.0,
    vehicle_type=3,
    checksum=1234567890,
):
    return struct.pack("<3i7f", checksum, vehicle_id, vehicle_type, 0.0, x, y, z, roll, pitch, yaw)


def attach(*triples):
    columns = [list(column) + [0] * (25 - len(triples)) for column in zip(*triples, strict=True)]
    return struct.pack(
        "<76i",
        1234567892,
        *columns[0],
        *columns[1],
        *columns[2],
    )


def label(vehicle_id, flag, seconds, text, size=30.0):
    return struct.pack(
        "<6i2f120s", 1234567899, vehicle_id, flag, 255, 0, 0, seconds, size, text.encode()
    )


def world(state):
    poses = state.vehicles.world(state.terrain)
    return dict(zip(poses.id.tolist(), poses.position_ned.tolist(), strict=True)), poses


def texts(state, vehicle_id):
    return [line.text for line in state.labels.lines_of(vehicle_id)]


def test_vehicles_come_with_their_first_state_and_stay(state):
    tell(state, pose(9, x=1.0), pose(2, x=2.0))
    tell(state, pose(2, x=3.0))
    positions, poses = world(state)
    expected = {2: [3.0, 0.0, 0.0], 9: [1.0, 0.0, 0.0]}
    assert positions == expected
    assert poses.row(9) == 1
    assert poses.row(5) is None


def test_on_the_ground_by_the_terrain_less_the_height_of_the_centre(state):
    """A target stands on the ramp: 25 m high at y_east = 25.

    Its centre is 1.2 m above its foot, twice that at scale 2.
    """
    state.change_map("Ramp")
    tell(state, pose(1, y=25.0, z=-500.0, vehicle_type=50, checksum=1234567891))
    scaled = struct.pack(
        "<3i10f", 1234567891, 2, 151, 0.0, 0.0, 25.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0
    )
    tell(state, scaled, pose(3, y=25.0, z=-500.0, vehicle_type=50))
    positions, _ = world(state)
    assert positions[1] == [0.0, 25.0, -25.0]
    assert positions[2] == pytest.approx([0.0, 25.0, -27.4])
    assert positions[3] == [0.0, 25.0, -500.0]


def test_a_scale_stays_when_a_packet_does_not_say_it(state):
    tell(state, pose(1), command("RflyChangeVehicleSize 1 3"), pose(1, x=1.0))
    assert state.vehicles["scale"].tolist() == [[3.0, 3.0, 3.0]]
    tell(state, command("RflyChangeVehicleSize 1"))
    assert state.vehicles["scale"].tolist() == [[1.0, 1.0, 1.0]]


def test_another_model_stays_until_the_packets_name_another_type(state):
    tell(state, pose(1, vehicle_type=3), command("RflyChange3DModel 1 30"), pose(1, vehicle_type=3))
    assert world(state)[1].kind.tolist() == [models.PERSON]
    tell(state, pose(1, vehicle_type=50))
    assert world(state)[1].kind.tolist() == [models.CAR]


def test_moving_and_setting_by_command_is_in_degrees(state):
    tell(state, pose(1, x=1.0, y=2.0, z=-3.0, yaw=0.5))
    tell(state, command("RflyMoveVehiclePosAng 1 0 1 1 1 0 0 90"))
    assert state.vehicles["position_ned"].tolist() == [[2.0, 3.0, -2.0]]
    assert state.vehicles["euler"][0] == pytest.approx([0, 0, 0.5 + QUARTER])
    tell(state, command("RflySetVehiclePosAng 1 1 7 8 9 180 0 0"))
    assert state.vehicles["position_ned"].tolist() == [[7.0, 8.0, 9.0]]
    assert state.vehicles["euler"][0] == pytest.approx([np.pi, 0, 0])
    assert state.vehicles["on_ground"].tolist() == [True]


@pytest.mark.parametrize(
    ("kind", "position", "forward"),
    [
        pytest.param(0, [2.0, 0.0, 0.0], [1, 0, 0], id="normal"),
        pytest.param(1, [12.0, 0.0, -5.0], [1, 0, 0], id="position"),
        pytest.param(2, [10.0, 2.0, -5.0], [0, 1, 0], id="position and yaw"),
    ],
)
def test_attachments_to_a_level_parent(state, kind, position, forward):
    """A child is relative to its parent.

    The parent is at 10, 0, -5 and looks east; the child says 2, 0, 0 and no turn. Its own x axis is
    checked.
    """
    tell(state, pose(1, x=10.0, z=-5.0, yaw=QUARTER), pose(2, x=2.0))
    tell(state, attach((2, 1, kind)))
    positions, poses = world(state)
    assert positions[2] == pytest.approx(position)
    x, y, z, w = poses.quat_ned_frd[1]
    assert [
        1 - 2 * (y * y + z * z),
        2 * (x * y + z * w),
        2 * (x * z - y * w),
    ] == pytest.approx(forward, abs=1e-6)


def test_an_attachment_with_attitude_turns_the_offset_with_the_parent(state):
    """A parent looks straight up: 2 m ahead of it is 2 m above it, and the child looks up too."""
    tell(state, pose(1, x=10.0, z=-5.0, pitch=QUARTER), pose(2, x=2.0))
    tell(state, attach((2, 1, 3)))
    positions, poses = world(state)
    assert positions[2] == pytest.approx([10.0, 0.0, -7.0])
    expected = [0, np.sqrt(0.5), 0, np.sqrt(0.5)]
    assert poses.quat_ned_frd[1] == pytest.approx(expected)


def test_chains_are_followed_and_rings_are_not(state):
    tell(state, *(pose(i, x=1.0) for i in (1, 2, 3, 4, 5)))
    tell(state, attach((2, 1, 1), (3, 2, 1), (4, 5, 1), (5, 4, 1)))
    expected = {
        1: 1.0,
        2: 2.0,
        3: 3.0,
        4: 1.0,
        5: 1.0,
    }
    assert {i: p[0] for i, p in world(state)[0].items()} == expected
    tell(state, attach((3, 2, 0)))
    assert world(state)[0][3][0] == 1.0


def test_a_new_map_takes_the_vehicles_away(state):
    tell(
        state,
        pose(1),
        label(1, -1, 0.0, "gone"),
        command("RflyChangeMapbyName Ramp"),
        pose(2),
    )
    assert (state.terrain, state.terrain_known, state.map_name) == (RAMP, True, "Ramp")
    assert state.vehicles.id.tolist() == [2]
    assert texts(state, 1) == []
    assert state.take_events() == [ChangeMap("Ramp")]


def test_an_unknown_map_is_flat_ground_and_said(state):
    tell(state, command("RflyChangeMapbyName Nowhere"))
    assert not state.terrain_known
    assert state.terrain.altitude(123.0, 45.0) == 0.0
    assert "no map Nowhere" in state.log[-1]


def test_camera_commands_wait_as_events_in_radians(state):
    tell(state, command("RflyCameraPosAng 1 2 -3 0 -90 180"), command("RflyCameraFovDegrees 90"))
    moved, fov = state.take_events()
    assert isinstance(moved, MoveCamera)
    assert (moved.position_ned, moved.relative) == ((1.0, 2.0, -3.0), False)
    assert moved.euler == pytest.approx((0.0, -QUARTER, np.pi))
    assert isinstance(fov, CameraFov)
    assert fov.horizontal == pytest.approx(QUARTER)
    assert state.take_events() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RflyCameraPosAng 1 2", "argument 3 is missing"),
        ("RflyCameraPosAng 1 2 nan 0 0 0", "argument 3 is nan"),
        ("RflyChangeVehicleSize x 2", "could not convert"),
        ("RflyChangeVehicleSize 5 2", "no vehicle 5"),
        ("RflyMoveVehiclePosAng 5 0 0 0 0 0 0 0", "no vehicle 5"),
        ("RflyChangeMapbyID 3", "use RflyChangeMapbyName"),
        ("r.ForceLOD 2", "not drawn by Unreal"),
        ("t.MaxFPS x", "could not convert"),
        ("RflyChangeViewKeyCmd L 1", "L 1: there is no small map"),
        ("RflyChangeViewKeyCmd V 3", "V 3: here V is camera 0 from outside, 1 ahead"),
        ("RflyChangeViewKeyCmd M 2", "M 2: numbers are RflySim3D's own; here M is the next map"),
        ("RflyChangeViewKeyCmd O", "argument 2 is missing"),
        ("RflyChangeViewKeyCmd Z 1", "Z 1: no such key; known are F1, F2, ESC"),
        ("RflyChangeViewKeyCmd C", "key C: no vehicle was seen yet"),
        ("RflyDelVehicles 7", "no vehicle 7 was seen yet"),
        ("RflyDelVehicles 7,x", "could not convert"),
        ("RflyDelVehicles ,", "expected ids with commas"),
        ("RflyReqObjData 13 7 0", "flag 13, known are 0 to 2, 10 to 12 and 20 to 24"),
        ("RflyEnImgSync 1", "pictures at their own times"),
        ("RflyReqObjData 12 Tree_1 0", "no objects but vehicles"),
        ("RflySetPosScale 0", "factor 0, allowed are 0.001 to 1000"),
        ("RflySetActuatorPWMs 7", "argument 2 is missing"),
        ("RflySetCopterLine 1 red", "expected a colour"),
        ('RflyLoad3DFile "/etc/passwd"', "use rfly send --file"),
        ("RflyChange3DModel 1 FSJ150_Yellow_FBPanddles", "styles by name are RflySim3D's own"),
        ("RflySetIDLabel 1 U1", "argument 3 is missing"),
        ("RflySetIDLabel 1 U1 red 28", "expected a colour as #RRGGBB"),
        ("RflySetMsgLabel 1 U1 #00zz00 28", "argument 3 is #00zz00, expected a colour"),
        ("RflySuiteWeather 1 0 2 0", "cloud_cover is 2.0, expected 0 … 1"),
        ("RflySuiteWeather 1 0", "argument 3 is missing"),
        ("RflyChangeMapbyName ../secret/map", "not a path"),
        ("RflyChangeMapbyName C:\\\\maps\\\\x", "not a path"),
    ],
)
def test_what_cannot_be_done_is_in_the_log(state, text, said):
    tell(state, command(text))
    assert said in state.log[-1]
    assert state.take_events() == []


def test_texts_in_double_quotes_are_one_word_and_colours_have_a_hash_or_none(state):
    """The first two are examples of RflySim's manual, the third has the form of public scripts."""
    tell(state, command('RflyShowTextTime "TakeOff cmd:1 2 3" 10'))
    (shown,) = state.take_events()
    assert shown.values == ("TakeOff cmd:1 2 3", 10.0)

    tell(state, pose(1000), command('RflySetMsgLabel 1000 "Hi, here" FFFF00 20 5 0'))
    first, *_ = state.labels.lines_of(1000)
    assert (first.text, first.rgb, first.font_size) == ("Hi, here", (255, 255, 0), 20.0)

    tell(state, command("RflySetIDLabel 1000 low #0080FF 20"))
    first, *_ = state.labels.lines_of(1000)
    assert (first.text, first.rgb) == ("low", (0, 128, 255))


def test_the_models_of_the_list_are_known_by_name(state):
    tell(state, pose(1), command("RflyChange3DModel 1 truck"))
    assert state.vehicles["vehicle_type"].tolist() == [51]


def test_labels_append_replace_and_delete(state):
    """CopterMsg sets lines of a label.

     A flag below 0 appends (at most 5 stay), 0 is the id line, n replaces line n; a time below 0
    deletes.
    """
    tell(state, pose(1), *(label(1, -1, 0.0, text) for text in "abcdef"))
    assert texts(state, 1) == list("bcdef")
    tell(
        state,
        label(1, 0, 0.0, "id"),
        label(1, 2, 0.0, "C"),
        label(1, 1, -1.0, ""),
    )
    assert texts(state, 1) == ["id", "C", "d", "e", "f"]
    tell(state, label(1, 5, 0.0, "g"))
    assert texts(state, 1) == ["id", "C", "d", "e", "f", "g"]
    tell(state, label(1, -1, -1.0, ""))
    assert texts(state, 1) == []


def test_labels_for_all_and_labels_that_end(state):
    tell(
        state,
        pose(1),
        label(0, -1, 2.0, "all"),
        label(1, -1, 5.0, "one"),
        now_s=10.0,
    )
    assert texts(state, 1) == ["one", "all"]
    state.labels.expire(12.0)
    assert texts(state, 1) == ["one"]
    state.labels.expire(15.0)
    assert state.labels.by_id == {}


def test_reports_and_collision_mode_are_switched_by_commands(state):
    tell(state, command("RflyReqVehicleData 1"), command("RflyChangeViewKeyCmd P 0"))
    assert (state.reports_vehicles, state.collision_mode) == (True, True)
    tell(state, command("RflyReqVehicleData 0"), command("RflyChangeViewKeyCmd P"))
    assert (state.reports_vehicles, state.collision_mode) == (False, False)
    tell(state, command("RflyReqVehicleData 127.0.0.1"), command("RflyChangeViewKeyCmd P 2"))
    assert (state.reports_vehicles, state.collision_mode) == (True, True)


def test_deleted_vehicles_go_with_their_labels_and_come_back_with_their_next_state(state):
    tell(state, pose(1), pose(2), pose(3), label(2, -1, 0.0, "two"))
    tell(state, command("RflyDelVehicles 2,3"))
    assert state.vehicles.id.tolist() == [1]
    assert 2 not in state.labels.by_id

    tell(state, pose(3))
    assert state.vehicles.id.tolist() == [1, 3]
    tell(state, command("RflyReqObjData 11 1 0"))
    assert state.vehicles.id.tolist() == [3]


@pytest.mark.parametrize(
    "text",
    [
        "RflyReqObjData 21 0 0",
        "RflyReqObjData 23 0 0",
        "RflyReqObjData 24 0 FFFFFF",
        "RflyChangeViewKeyCmd ESC",
    ],
)
def test_all_vehicles_are_deleted_at_once(state, text):
    tell(state, pose(1), pose(2), command(text))
    assert len(state.vehicles) == 0


@pytest.mark.parametrize(
    ("text", "seq_id"),
    [
        ("RflyClearCapture", None),
        ("RflyClearCapture -1", None),
        ("RflyClearCapture 3", 3),
        ("RflyReqObjData 10 3 0", 3),
        ("RflyReqObjData 20 0 0", None),
    ],
)
def test_sensors_are_cleared_by_the_window(state, text, seq_id):
    tell(state, command(text))
    assert state.take_events() == [ClearSensors(seq_id)]
    assert not state.log


def test_everything_is_cleared_with_the_sensors(state):
    tell(state, pose(1), command("RflyReqObjData 24 0 0"))
    assert len(state.vehicles) == 0
    assert state.take_events() == [DeleteVehicles((1,)), ClearSensors(None)]


def test_vehicles_without_movement_stand_still_and_no_new_one_comes(state):
    tell(state, pose(1, x=1.0), command("RflyDisableVeMove 1,2 1"))
    tell(state, pose(1, x=9.0), pose(2))
    assert state.vehicles.id.tolist() == [1]
    assert state.vehicles["position_ned"][0].tolist() == [1.0, 0.0, 0.0]

    tell(state, command("RflyDisableVeMove 1 0"), pose(1, x=9.0))
    assert state.vehicles["position_ned"][0].tolist() == [9.0, 0.0, 0.0]


def test_positions_are_scaled_as_they_arrive(state):
    tell(state, command("RflySetPosScale 2"), pose(1, x=1.0, y=-2.0, z=3.0))
    assert state.vehicles["position_ned"][0].tolist() == [2.0, -4.0, 6.0]
    tell(state, pose(2, x=9e5))
    assert state.vehicles.id.tolist() == [1], "beyond the world"


def test_the_actor_of_the_weather_is_no_vehicle(state):
    tell(state, pose(1), pose(10804, vehicle_type=804))
    assert state.vehicles.id.tolist() == [1]


def test_actuators_turn_the_rotors(state):
    """The mean of those that turn, 25 rounds/s, is 1,500 rpm."""
    tell(state, pose(1), command("RflySetActuatorPWMs 1 10 20 30 40 0 0 0 0"))
    assert state.vehicles["motor_speed_rpm"].tolist() == [1500.0]


def test_the_newest_vehicle_changes_its_look_within_its_class(state):
    """Class 3 has, by the list, quadcopter 3, F450 10000003 and three land-air vehicles."""
    tell(state, pose(2), pose(1), command("RflyChangeViewKeyCmd C"))
    assert state.vehicles["vehicle_type"].tolist() == [10_000_003, 3]
    for _ in range(4):
        tell(state, command("RflyChangeViewKeyCmd C"))
    assert state.vehicles["vehicle_type"].tolist() == [3, 3]


def test_keys_of_public_scripts_are_events_for_the_window(state):
    keys = ("B 2", "B", "V 1", "V 0", "N 6", "S 1", "S 0", "S -1", "T")
    tell(state, *(command(f"RflyChangeViewKeyCmd {key}") for key in keys))
    assert state.take_events() == [
        ViewKey("B", 2),
        ViewKey("B", None),
        ViewKey("V", 1),
        ViewKey("V", 0),
        ViewKey("N", 6),
        ViewKey("S", 1),
        ViewKey("S", 0),
        ViewKey("S", -1),
        ViewKey("T", None),
    ]
    assert not state.log


def test_labels_by_command_are_those_of_the_packet(state):
    tell(
        state,
        pose(1),
        command("RflySetIDLabel 1 U1 #0080FF 28"),
        command("RflySetMsgLabel 1 low #FF0000 20 2 -1"),
    )
    assert texts(state, 1) == ["U1", "low"]
    line = state.labels.lines_of(1)[0]
    expected = ((0, 128, 255), 28.0, float("inf"))
    assert (line.rgb, line.font_size, line.until_s) == expected
    state.labels.expire(2.5)
    assert texts(state, 1) == ["U1"]


def test_a_size_for_all_vehicles(state):
    tell(
        state,
        pose(1),
        pose(2),
        command("RflyChangeVehicleSize -1 4"),
        command("RflyChange3DModel -1 50"),
    )
    assert state.vehicles["scale"].tolist() == [[4.0] * 3] * 2
    assert world(state)[1].kind.tolist() == [models.CAR] * 2


def test_a_camera_on_board_turns_with_its_vehicle(state):
    """A mount 0.3 m ahead and 0.1 m below looks 90 degrees to the right of its vehicle.

    The vehicle heads east at (5, 6, -7).
    """
    tell(state, pose(1, x=5.0, y=6.0, z=-7.0, yaw=QUARTER))
    poses = world(state)[1]
    mount = Viewpoint(np.array((0.3, 0.0, 0.1)), np.array((0.0, 0.0, QUARTER)))
    camera = on_board(poses.position_ned[0], poses.quat_ned_frd[0], mount)
    assert camera.position_ned == pytest.approx([5.0, 6.3, -6.9])
    assert np.abs(camera.euler) == pytest.approx([0.0, 0.0, np.pi], abs=1e-6)
