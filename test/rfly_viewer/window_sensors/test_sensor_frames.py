# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames of the window's sensors against distances and angles that are worked out by hand.

A car stands at x = 0, y = 0 of level ground, another one 20 m to the north. Cars look north.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from rfly_collision.shapes.vehicle_meshes import BOX_LOW, CAR, CENTRE_HEIGHT, MULTIROTOR
from rfly_common.errors import ConfigError
from rfly_terrain.world.models import CLASSES
from rfly_ue_bridge import VisionSensor, decode_payload, encode_pose
from rfly_viewer.scene.scene_state import SceneState
from rfly_viewer.scene.state_batches import read_batches
from rfly_viewer.window_sensors.sensor_frames import check, class_palette, encode, measure, rosette
from rfly_viewer.window_sensors.window_scene import WindowScene

CAR_TYPE = 50
APART = 20.0
HEIGHT = float(CENTRE_HEIGHT[CAR])
"""Height of a car's origin above the ground, m."""
MAST = 3.0
"""Height of the sensors above the car's origin, m."""
STEP = 100.0 / 32767
"""Step of a cloud whose range is 100 m."""


def scene_of(*poses):
    """The scene of vehicles: id, type, position NED, yaw in rad."""
    state = SceneState()
    datagrams = [encode_pose(number, kind, at, (0.0, 0.0, yaw)) for number, kind, at, yaw in poses]
    for update in read_batches(datagrams, Counter()):
        state.apply(update, 0.0)
    return WindowScene(state.terrain, state.vehicles.world(state.terrain), 0.0)


CARS = ((1, CAR_TYPE, (0.0, 0.0, -HEIGHT), 0.0), (2, CAR_TYPE, (APART, 0.0, -HEIGHT), 0.0))


def sensor(type_id, **values):
    return VisionSensor(3, type_id, position=(0.0, 0.0, -MAST), **values)


def frame(one, scene=None, number=0):
    """The content of a frame, and the same after encoding and decoding."""
    check(one)
    scene = scene or scene_of(*CARS)
    pose = scene.sensor_pose(one, {one.seq_id: one})
    data = measure(one, pose, scene, number)
    return data, decode_payload(one, encode(one, pose, data))


def test_depth_is_along_the_axis_and_a_car_stands_in_the_middle():
    """90 degrees over 64 pixels: the row v of ground has depth h / tan = 32 h / (v - 23.5)."""
    counts, decoded = frame(sensor(2, width=64, height=48, way=3, parameters=(0.0, 40.0)))
    eye = HEIGHT + MAST
    assert counts[47, 5] == pytest.approx(1000 * 32 * eye / 23.5, abs=1)
    assert counts[47, 60] == counts[47, 5]
    assert (counts[:23] == 65535).all()
    rear = APART + float(BOX_LOW[CAR, 0])
    row = round(23.5 + 32 * (eye - 0.7) / rear)
    assert counts[row, 32] == pytest.approx(1000 * rear, abs=1)
    assert decoded.form == "png"
    np.testing.assert_array_equal(decoded.data, counts)


def test_the_range_finder_names_the_vehicle_that_it_hits():
    low = sensor(5, euler_deg=(0.0, -90.0, 0.0))
    record, _ = frame(low)
    assert record["distance"] == pytest.approx(HEIGHT + MAST, abs=1e-5)
    assert record["copter_id"] == -1
    assert record["impact"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-5)

    front = {"position": (2.0, 0.0, -0.7), "parameters": (50.0,)}
    record, decoded = frame(VisionSensor(3, 5, **front))
    assert record["copter_id"] == 2
    assert record["distance"] == pytest.approx(APART - 2.0 + BOX_LOW[CAR, 0], abs=1e-5)
    assert decoded.data == record

    record, _ = frame(VisionSensor(3, 5, euler_deg=(0.0, 10.0, 0.0), **front))
    assert (record["distance"], record["copter_id"]) == (50.0, -1)


def test_rings_point_to_the_middles_of_equal_parts_right_and_up():
    """Rays at -30 and -10 deg, 10 deg to the left and right, from a known height."""
    lidar = sensor(20, width=2, height=2, parameters=(100.0, 0.0, -20.0, 20.0, -40.0, 0.0))
    points, decoded = frame(lidar, scene_of(CARS[0]))
    eye = HEIGHT + MAST
    for row, down in enumerate((30.0, 10.0)):
        ground = eye / math.tan(math.radians(down))
        for column, left in enumerate((10.0, -10.0)):
            angle = math.radians(left)
            expected = (ground * math.cos(angle), ground * math.sin(angle), -eye)
            assert points[2 * row + column, :3] == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(decoded.data[:, :3], points[:, :3], atol=STEP / 2)
    raw = np.rint(decoded.data[:, 3] / STEP)
    assert raw.tolist() == [254.0] * 4


def test_the_world_lidar_sends_places_of_the_map_in_metres():
    lidar = sensor(21, width=2, height=2, parameters=(100.0, 0.0, -20.0, 20.0, -40.0, 0.0))
    turned = (1, CAR_TYPE, (900.0, -700.0, -HEIGHT), math.pi / 2)
    points, decoded = frame(lidar, scene_of(turned))
    ground = (HEIGHT + MAST) / math.tan(math.radians(30.0))
    north = 900.0 + ground * math.sin(math.radians(10.0))
    east = -700.0 + ground * math.cos(math.radians(10.0))
    assert points[0] == pytest.approx([north, east, 0.0, 254.0], abs=1e-3)
    assert decoded.form == "B"
    np.testing.assert_array_equal(decoded.data, points)
    assert decoded.pose == pytest.approx([900.0, -700.0, -HEIGHT - MAST, 0, 0, math.pi / 2])


def test_a_depth_cloud_is_every_nth_pixel_of_a_depth_camera():
    cloud, decoded = frame(sensor(7, width=64, height=48, parameters=(40.0, 4.0)))
    counts, _ = frame(sensor(2, width=64, height=48, parameters=(0.0, 40.0)))
    depth = counts[::4, ::4].reshape(-1) / 1000.0
    near = np.linalg.norm(cloud, axis=1) > 0
    np.testing.assert_allclose(cloud[near, 0], depth[near], atol=6e-4)
    assert near.sum() > 50
    columns = np.tile(np.arange(0, 64, 4), 12)[near]
    left = (31.5 - columns) / 32 * cloud[near, 0]
    np.testing.assert_allclose(cloud[near, 1], left, atol=1e-4)
    np.testing.assert_allclose(decoded.data, cloud, atol=40 / 32767 / 2 + 1e-6)


def test_a_rosette_has_eights_of_two_petals_through_the_centre():
    """40 half petals of 250 points are one flower of 10 eights, 18 deg apart."""
    lidar = sensor(22, width=250, height=40, fov_deg=70.432, parameters=(600.0,))
    rays = rosette(lidar, 0).reshape(40, 250, 3)
    angle = np.degrees(np.arccos(rays[..., 0]))
    assert angle.max() == pytest.approx(35.216, abs=0.05)
    assert angle[::2, 0].max() < 1.0
    assert angle[1::2, -1].max() < 1.0
    bearing = np.degrees(np.arctan2(rays[::2, -1, 2], rays[::2, -1, 1]))
    assert sorted(np.rint(bearing % 180.0 / 18.0) % 10) == sorted(2 * list(range(10)))

    # half a petal is 2.956 deg high, and the eights cross in the centre without a corner
    side = np.degrees(np.abs(np.einsum("ij,j->i", rays[0], np.cross(rays[0, -1], (1, 0, 0)))))
    assert side.max() / math.sin(math.radians(35.2)) == pytest.approx(2.9, abs=0.15)
    path = rays.reshape(-1, 250, 3)
    arriving = path[1, -1] - path[1, -2]
    leaving = path[2, 1] - path[2, 0]
    cosine = arriving @ leaving / np.linalg.norm(arriving) / np.linalg.norm(leaving)
    assert cosine > 0.95

    # the next flower is turned by 180 / 50 deg
    again = rosette(lidar, 1).reshape(40, 250, 3)
    turned = np.degrees(np.arctan2(again[::2, -1, 2], again[::2, -1, 1])) % 18.0
    np.testing.assert_allclose(turned, (bearing[0] + 3.6) % 18.0, atol=0.05)


def test_a_mid360_frame_covers_its_field_of_view_and_does_not_repeat():
    lidar = VisionSensor(3, 23, position=(0.0, 0.0, -MAST))
    points, decoded = frame(lidar, scene_of(CARS[0]))
    assert points.shape == (17408, 4)
    hits = points[np.linalg.norm(points[:, :3], axis=1) > 0]
    np.testing.assert_allclose(hits[:, 2], -HEIGHT - MAST, atol=1e-4)
    down = np.degrees(np.arctan2(-hits[:, 2], np.hypot(hits[:, 0], hits[:, 1])))
    assert 6.9 < down.max() <= 7.0
    assert np.unique(np.floor(np.degrees(np.arctan2(hits[:, 1], hits[:, 0])) / 5)).size == 72
    assert np.abs(decoded.data[:, :3] - points[:, :3]).max() <= STEP / 2 + 1e-6

    later, _ = frame(lidar, scene_of(CARS[0]), 1)
    assert np.linalg.norm(later[:, :3] - points[:, :3], axis=1).mean() > 1.0


def test_pictures_show_the_other_vehicle_in_the_colour_of_its_class():
    picture, _ = frame(sensor(4, width=64, height=48, way=3))
    colours = class_palette()
    car = (picture == colours[CLASSES.index("vehicle")]).all(axis=-1)
    sky = (picture == colours[255]).all(axis=-1)
    # 3.5 x 2.5 pixels at 17.85 m, and its roof
    assert 9 <= car.sum() <= 20
    assert sky[:23].mean() > 0.99
    assert not car[:, :20].any()

    rgb, decoded = frame(sensor(1, width=64, height=48, way=1))
    assert decoded.form == "jpeg"
    assert np.abs(decoded.data.astype(int) - rgb).mean() < 5
    grey, decoded = frame(sensor(3, width=64, height=48, way=2))
    np.testing.assert_array_equal(decoded.data, grey)
    weights = rgb @ np.array([0.114, 0.587, 0.299])
    assert np.abs(weights - grey).max() <= 1.0


def test_mounts():
    """The bearer is at 5 5 with yaw 90 deg: forward is east. A sensor may carry another one."""
    multirotor = 3
    scene = scene_of((1, multirotor, (5.0, 5.0, -9.0), math.pi / 2))
    low = BOX_LOW[MULTIROTOR, 2]
    assert low < 0.0

    def wire(**values):
        one = VisionSensor(3, 1, position=(1.0, 2.0, -3.0), **values)
        return scene.sensor_pose(one, {9: VisionSensor(9, 1, position=(0.0, 0.0, -1.0))}).wire

    half = math.pi / 2
    up = pytest.approx
    assert wire(mount=0) == up([3.0, 6.0, -12.0, 0, 0, half], abs=1e-6)
    assert wire(mount=1) == up([3.0, 6.0, -12.0 - low, 0, 0, half], abs=1e-6)
    assert wire(mount=2) == up([1.0, 2.0, -3.0, 0, 0, 0], abs=1e-6)
    assert wire(mount=3) == up([6.0, 7.0, -12.0, 0, 0, 0], abs=1e-6)
    assert wire(mount=4, target=9) == up([3.0, 6.0, -13.0, 0, 0, half], abs=1e-6)
    with pytest.raises(ConfigError, match="no vehicle 8 was seen"):
        wire(target=8)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"type_id": 8}, "fisheye camera. is not simulated"),
        ({"type_id": 1, "way": 0}, r"SendProtocol\[0\] is 0"),
        ({"type_id": 1, "width": 9000, "height": 9000}, "9000 x 9000"),
        ({"type_id": 1, "fov_deg": 179.0}, "CameraFOV is 179"),
        ({"type_id": 1, "mount": 7}, "TargetMountType is 7"),
        ({"type_id": 7}, r"otherParams\[0\] is 0"),
        ({"type_id": 22, "parameters": (0.0, 0, 0, 0, 2.5)}, r"otherParams\[4\]"),
        ({"type_id": 1, "euler_or_quat": 1.0}, "SensorAngQuat is no rotation"),
        ({"type_id": 1, "port": 70000}, "port 70000"),
        ({"type_id": 1, "rate": 1000}, "1000 Hz"),
    ],
)
def test_what_cannot_be_answered_is_named(values, text):
    with pytest.raises(ConfigError, match=text):
        check(VisionSensor(3, **values))
