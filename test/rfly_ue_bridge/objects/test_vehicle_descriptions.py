"""What vehicle XML changes of what one sees; files as RflySim3D's own are laid out."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_common.errors import VehicleXmlError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_ue_bridge.objects.vehicle_descriptions import read_vehicle_descriptions
from rfly_ue_bridge.viewer.scene_state import SceneState
from rfly_ue_bridge.viewer.state_batches import StateBatch

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
    """The ground is at 10 m; a centre of 150 cm of a vehicle sent at twice its size stands 3 m above it."""
    write(tmp_path, "a.xml", 9001, "Tall", SCALE.format(z=3), HEIGHT.format(cm=150))
    write(tmp_path, "b.XML", 9002, "Plain")
    (tmp_path / "readme.txt").write_text("no vehicle")
    descriptions = read_vehicle_descriptions(tmp_path)
    ground = HeightMap(np.full((2, 2), 10.0), origin_x=-9, origin_y=-9, step_x=18, step_y=18)
    before = SceneState(load=lambda name: ground)
    after = SceneState(load=lambda name: ground, descriptions=descriptions)
    poses = []
    for state in (before, after):
        state.change_map("any")
        state.vehicles.update(grounded(9001, 9002, 9003), 0.0)
        poses.append(state.vehicles.world(state.terrain))
    assert poses[1].position_ned[0, 2] == pytest.approx(-13.0)
    assert poses[1].scale.tolist() == [[2.0, 4.0, 6.0], [2.0] * 3, [2.0] * 3]
    np.testing.assert_array_equal(poses[1].position_ned[1:], poses[0].position_ned[1:])
    assert [descriptions.name(number) for number in (9001, 9002, 9003)] == ["Tall", "Plain", ""]


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
        ([("a.xml", 3, {}), ("b.xml", 3, {})], "b.xml: ClassID 3 is that of .*a.xml already"),
        ([("a.xml", 3, {"scale": SCALE.format(z=-1)})], "a.xml: Scale .*expected three factors above 0"),
        ([("a.xml", "x", {})], "ClassID holds 'x', expected a number"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, files, text):
    for file, class_id, more in files:
        write(tmp_path, file, class_id, **more)
    with pytest.raises(VehicleXmlError, match=text):
        read_vehicle_descriptions(tmp_path)
