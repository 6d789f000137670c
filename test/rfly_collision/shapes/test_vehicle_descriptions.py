# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Visible changes by vehicle XML.

The files are laid out as RflySim3D's own.
"""

from __future__ import annotations

import numpy as np
import pytest

from rfly_collision.shapes.vehicle_descriptions import (
    read_vehicle_descriptions,
    with_descriptions,
)
from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_collision.world.collision_world import CollisionWorld
from rfly_common.errors import VehicleXmlError
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.scene_state import SceneState
from rfly_viewer.scene.state_batches import StateBatch

XML = """<?xml version="1.0" encoding="UTF-8"?>
<vehicle><ClassID>{class_id}</ClassID><DisplayOrder>1000</DisplayOrder><Name>{name}</Name>{scale}
<AngEulerDeg><roll>0</roll><pitch>0</pitch><yaw>0</yaw></AngEulerDeg>
<body><MeshPath>/Game/x</MeshPath>{height}</body></vehicle>
"""
SCALE = "<Scale><x>1</x><y>2</y><z>{z}</z></Scale>"
HEIGHT = "<CenterHeightAboveGroundCm>{cm}</CenterHeightAboveGroundCm>"


def write(folder, file, class_id, name="", scale="", height=""):
    (folder / file).write_text(XML.format(class_id=class_id, name=name, scale=scale, height=height))


def grounded(*types):
    count = len(types)
    return StateBatch(
        id=np.arange(1, count + 1),
        vehicle_type=np.array(types),
        position_ned=np.zeros((count, 3)),
        euler=np.zeros((count, 3)),
        velocity_ned=np.zeros((count, 3)),
        scale=np.full((count, 3), 2.0),
        motor_speed_rpm=np.zeros(count),
        wheel_speed_rpm=np.zeros(count),
        on_ground=np.ones(count, bool),
    )


def test_heights_scales_and_names_are_seen(tmp_path):
    """A centre of 150 cm at twice the size puts the vehicle 3 m above the ground.

    The ground is at 10 m.
    """
    write(tmp_path, "a.xml", 9001, "Tall", SCALE.format(z=3), HEIGHT.format(cm=150))
    write(tmp_path, "b.XML", 9002, "Plain")
    (tmp_path / "readme.txt").write_text("no vehicle")
    descriptions = read_vehicle_descriptions(tmp_path)

    # the same vehicles without and with descriptions
    ground = HeightMap(np.full((2, 2), 10.0), origin_x=-9, origin_y=-9, step_x=18, step_y=18)
    before = SceneState(load=lambda name: ground)
    after = SceneState(load=lambda name: ground, descriptions=descriptions)
    poses = []
    for state in (before, after):
        state.change_map("any")
        state.vehicles.update(grounded(9001, 9002, 9003), 0.0)
        poses.append(state.vehicles.world(state.terrain))

    assert poses[1].position_ned[0, 2] == pytest.approx(-13.0)
    expected = [[2.0, 4.0, 6.0], [2.0] * 3, [2.0] * 3]
    assert poses[1].scale.tolist() == expected
    expected = poses[0].position_ned[1:]
    np.testing.assert_array_equal(poses[1].position_ned[1:], expected)
    assert [descriptions.name(number) for number in (9001, 9002, 9003)] == [
        "Tall",
        "Plain",
        "",
    ]


def test_one_file_alone(tmp_path):
    write(tmp_path, "a.xml", 7, height=HEIGHT.format(cm=-12.5))
    descriptions = read_vehicle_descriptions(tmp_path / "a.xml")
    assert descriptions.centre_height.tolist() == [-0.125]
    assert np.isnan(descriptions.scale).all()


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ([], "0 .xml files, expected 1 to 1000"),
        ([("a.xml", "", {})], "a.xml: ClassID: missing"),
        (
            [("a.xml", 3, {}), ("b.xml", 3, {})],
            "b.xml: ClassID 3 is that of .*a.xml already",
        ),
        (
            [("a.xml", 3, {"scale": SCALE.format(z=-1)})],
            "a.xml: Scale .*expected three factors above 0",
        ),
        ([("a.xml", "x", {})], "ClassID holds 'x', expected a number"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, files, text):
    for file, class_id, more in files:
        write(tmp_path, file, class_id, **more)
    with pytest.raises(VehicleXmlError, match=text):
        read_vehicle_descriptions(tmp_path)


def test_shapes_of_described_types(tmp_path):
    """Type 50 and its variant 100050 get its size and height; undescribed types stay."""
    write(tmp_path, "a.xml", 50, "Lorry", SCALE.format(z=3), HEIGHT.format(cm=90))
    write(tmp_path, "b.xml", 9001, scale=SCALE.format(z=4))

    shapes = load_shapes()
    after = with_descriptions(shapes, read_vehicle_descriptions(tmp_path))
    car = shapes[int(shapes.index_of(50))]
    lorry = after[int(after.index_of(50))]

    assert (car.name, car.centre_height) == ("car", 0.0)
    assert (lorry.name, lorry.centre_height) == ("Lorry", 0.9)
    expected = (car.high - car.low) * (1, 2, 3)
    assert (lorry.high - lorry.low) == pytest.approx(expected)
    assert after[int(after.index_of(100050))] is lorry
    assert [after[int(after.index_of(number))].name for number in (52, 59, 150, 3, 9999)] == [
        shapes[int(shapes.index_of(number))].name for number in (52, 59, 150, 3, 9999)
    ]

    # the default is a box of 1 m with its origin at half its height
    unknown = after[int(after.index_of(9001))]
    assert (unknown.centre_height, unknown.low[2], unknown.high[2]) == (2.0, -2.0, 2.0)


def test_a_taller_vehicle_touches_what_the_shipped_shape_passes_below(tmp_path):
    """A car of 1.42 m passes below a multirotor at 2 m.

    A car that is described as twice as tall does not.
    """
    write(tmp_path, "a.xml", 50, scale=SCALE.format(z=2))

    shapes = load_shapes()
    touched = []
    for chosen in (
        shapes,
        with_descriptions(shapes, read_vehicle_descriptions(tmp_path)),
    ):
        world = CollisionWorld(chosen)
        states = VehicleStates(
            np.array([1, 2], np.int32),
            np.array([50, 3], np.int32),
            np.array([(0, 0, 0), (0, 0, 2.0)]),
            np.tile((0, 0, 0, 1.0), (2, 1)),
        )
        touched.append(len(world.check(states).vehicle))

    assert touched == [0, 1]
