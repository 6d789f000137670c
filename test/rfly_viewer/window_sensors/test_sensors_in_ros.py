# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Our window and ue_sensors_node: topics hold the renderer's own pixels and points."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sensor_window import free_ports, write_config

from rfly_terrain.world.weather import Weather
from rfly_ue_bridge import VisionConfig, encode_pose
from rfly_viewer.scene.scene_state import SceneState
from rfly_viewer.scene.state_batches import read_batches
from rfly_viewer.window_sensors.sensor_answers import SensorAnswers
from rfly_viewer.window_sensors.sensor_frames import measure
from rfly_viewer.window_sensors.window_scene import WindowScene
from rfly_viewer.wire.listener import Listener, SensorRequest

pytestmark = pytest.mark.ros

RANGE_M = 100.0
CAR_TYPE = 50
ENTRIES = (
    {"TypeID": 1, "SendProtocol": [3, 127, 0, 0, 1, 0, 0, 0]},
    {"TypeID": 23, "otherParams": [RANGE_M] + [0.0] * 7},
)


class Window:
    """A window without a browser: vehicles above level ground, requests by UDP."""

    def __init__(self):
        self.listener = Listener(port=0)
        self.answers = SensorAnswers()
        state = SceneState()
        poses = [
            encode_pose(k, CAR_TYPE, (8.0 * k, 0.0, 0.0), (0.0, 0.0, 0.3)) for k in range(1, 4)
        ]
        for update in read_batches(poses, Counter()):
            state.apply(update, 0.0)
        self.scene = WindowScene(state.terrain, state.vehicles.world(state.terrain), 0.0)

    def draw(self):
        for datagram in self.listener.take():
            assert isinstance(datagram, SensorRequest)
            self.answers.request(datagram, datagram.source)
        self.answers.show(self.scene.terrain, self.scene.poses, Weather())

    def close(self):
        self.listener.close()
        self.answers.close()


def test_pictures_and_points_on_topics_are_those_of_the_renderer(domain_id, tmp_path):
    from node_harness import NodeProcess, Peer
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import Image, PointCloud2

    entries = [
        {"SensorPosXYZ": [0.0, 0.0, -3.0], "DataCheckFreq": 10, **entry} for entry in ENTRIES
    ]
    for entry, port in zip(entries, free_ports(2), strict=True):
        way = entry.get("SendProtocol", [1])[0]
        entry["SendProtocol"] = [way, 127, 0, 0, 1, port, 0, 0]
    path = write_config(tmp_path, *entries)
    camera, lidar = VisionConfig.read(path).sensors

    window = Window()
    parameters = {
        "config": str(path),
        "port": str(window.listener.port),
        "keep_misses": "true",
    }
    peer = Peer(domain_id)
    try:
        with NodeProcess("ue_sensors_node", domain_id, parameters):
            images = peer.receive(Image, "/rflysim/sensor0/img_rgb", qos_profile_sensor_data)
            clouds = peer.receive(
                PointCloud2, "/rflysim/sensor1/mid360_lidar", qos_profile_sensor_data
            )

            def both():
                window.draw()
                return images and clouds

            peer.spin_until(both)
    finally:
        peer.close()
        window.close()

    pose = window.scene.sensor_pose(camera, {})
    image = np.frombuffer(images[0].data, np.uint8).reshape(48, 64, 3)
    np.testing.assert_array_equal(image, measure(camera, pose, window.scene, 0))

    # the frames before the first that was heard are not known
    points = np.frombuffer(clouds[0].data, np.float32).reshape(-1, 4)
    apart = [
        np.abs(points[:, :3] - measure(lidar, pose, window.scene, number)[:, :3]).max()
        for number in range(200)
    ]
    assert min(apart) <= 0.502 * RANGE_M / 32767
