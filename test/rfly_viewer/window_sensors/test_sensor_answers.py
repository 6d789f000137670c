# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The closed loop: requests by UDP to the window, frames back, and the renderer's own arrays."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter, defaultdict

import numpy as np
import pytest
from node_harness import PATIENCE
from optional_parts import late_module
from sensor_window import free_ports, write_config

from rfly_terrain import HeightMap
from rfly_terrain.world.weather import Weather
from rfly_ue_bridge import FrameAssembler, VisionConfig, VisionSensor, encode_pose, encode_request
from rfly_ue_bridge.codec.sensor_payloads import max_range, read_fragment
from rfly_ue_bridge.sockets.sensor_receiver import SensorReceiver
from rfly_viewer.scene.scene_state import SceneState
from rfly_viewer.scene.state_batches import read_batches
from rfly_viewer.window_sensors.sensor_answers import SensorAnswers
from rfly_viewer.window_sensors.sensor_frames import measure
from rfly_viewer.window_sensors.window_scene import WindowScene

server = late_module("rfly_viewer.window.server")

SECONDS = PATIENCE
CAR_TYPE = 50
VEHICLES = [
    encode_pose(1, CAR_TYPE, (0.0, 0.0, -20.0), (0.0, 0.0, 0.4)),
    encode_pose(2, CAR_TYPE, (12.0, 6.0, -20.5), (0.1, 0.0, 1.0)),
]


def hills():
    """Ground around 20 m of height."""
    x = np.linspace(0.0, 12.0, 201)
    heights = 17.0 + np.sin(x)[:, None] * np.cos(1.3 * x)
    return HeightMap(heights, origin_x=-200, origin_y=-200, step_x=2, step_y=2, name="hills")


def scene_of(terrain):
    state = SceneState(load=lambda name: terrain)
    state.change_map(terrain.name)
    for update in read_batches(VEHICLES, Counter()):
        state.apply(update, 0.0)
    return WindowScene(terrain, state.vehicles.world(terrain), 0.0)


class Receiver:
    """The frames that arrive for some sensors, by SeqID, with their numbers on the wire."""

    def __init__(self, sensors):
        self.assemblers = {one.seq_id: FrameAssembler(one) for one in sensors}
        self.frames = defaultdict(list)
        self.receiver = SensorReceiver({one.port: self._handler(one) for one in sensors})

    def _handler(self, one):
        def take(datagram, arrival):
            for frame in self.assemblers[one.seq_id].add(datagram, arrival):
                self.frames[one.seq_id].append((read_fragment(datagram).frame, frame))

        return take

    def has_all(self, count=1):
        return all(len(self.frames[seq_id]) >= count for seq_id in self.assemblers)

    def close(self):
        self.receiver.close()


def until(ready, what, each=lambda: None):
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert time.monotonic() < deadline, f"{what} did not happen in {SECONDS} s"
        each()
        time.sleep(0.02)


LIDAR = [100.0, 0.05, -180.0, 180.0, -30.0, 10.0, 0.0, 0.0]
CONFIG = (
    {"TypeID": 1},
    {"TypeID": 1, "way": 3, "TargetMountType": 3},
    {"TypeID": 2},
    {"TypeID": 2, "way": 2, "otherParams": [1.0, 15.0, 0.01, 0, 0, 0, 0, 0]},
    {"TypeID": 3, "way": 2},
    {"TypeID": 4, "way": 3},
    {"TypeID": 5, "SensorAngEular": [0, -20, 0]},
    {"TypeID": 7, "otherParams": [50.0, 4.0, 0, 0, 0, 0, 0, 0]},
    {"TypeID": 20, "DataWidth": 90, "DataHeight": 16, "otherParams": LIDAR},
    {"TypeID": 21, "DataWidth": 90, "DataHeight": 16, "otherParams": LIDAR},
    {"TypeID": 22, "DataWidth": 250, "DataHeight": 40, "CameraFOV": 70.432},
    {"TypeID": 23, "otherParams": [100.0] + [0.0] * 7},
)
"""One sensor of each kind and form. `way`: of sending."""


def config_of(folder):
    entries = []
    for number, (entry, port) in enumerate(zip(CONFIG, free_ports(len(CONFIG)), strict=True)):
        way = entry.get("way", 1)
        rest = {key: value for key, value in entry.items() if key != "way"}
        to = {"SendProtocol": [way, 127, 0, 0, 1, port, 0, 0], "SeqID": number, "DataCheckFreq": 10}
        entries.append({**to, "SensorPosXYZ": [0.3, 0.1, -2.0], **rest})
    return VisionConfig.read(write_config(folder, *entries))


def compare(sensor, number, frame, scene, sensors):
    """The frame equals what the renderer gives: exactly, or within the form's own precision."""
    pose = scene.sensor_pose(sensor, sensors)
    expected = measure(sensor, pose, scene, number)
    assert frame.data.dtype == expected.dtype
    if frame.form == "jpeg":
        assert np.abs(frame.data.astype(int) - expected).mean() < 5
    elif sensor.type_id in (7, 20, 22, 23):
        assert frame.data.shape == expected.shape
        assert np.abs(frame.data - expected).max() <= 0.502 * max_range(sensor) / 32767
        assert frame.pose == pytest.approx(pose.wire, abs=1e-4)
    elif sensor.type_id == 21:
        # the last bit of a float32
        np.testing.assert_allclose(frame.data, expected, rtol=3e-7, atol=1e-6)
    else:
        np.testing.assert_array_equal(frame.data, expected)


@pytest.mark.needs("viser")
def test_every_sensor_of_a_config_comes_back_from_the_window_as_it_was_rendered(tmp_path):
    """Poses, requests and data all go through real sockets and our own window."""
    config = config_of(tmp_path)
    sensors = {one.seq_id: one for one in config.sensors}
    (port,) = free_ports(1)
    receiver = Receiver(config.sensors)
    settings = server.Settings(
        http_port=0, udp_port=port, shadows=False, feedback_port=9, sensors=SensorAnswers
    )
    viewer = server.Viewer(settings)
    terrain = hills()
    viewer.state._load = lambda name: terrain
    viewer.state.change_map(terrain.name)
    thread = threading.Thread(target=viewer.run)
    thread.start()
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        for datagram in [*VEHICLES, *(request for request, _ in config.requests())]:
            sender.sendto(datagram, ("127.0.0.1", port))
        until(lambda: receiver.has_all(2), "frames of all sensors")
    finally:
        viewer.stop()
        thread.join()
        receiver.close()
        sender.close()

    assert not [line for line in viewer.state.log if "sensor" in line.lower()]
    scene = scene_of(terrain)
    for seq_id, frames in receiver.frames.items():
        times = [frame.time for _, frame in frames]
        assert times == sorted(set(times))
        for number, frame in frames[:2]:
            compare(sensors[seq_id], number, frame, scene, sensors)


class Loop:
    """Answers that are shown the scene, and a receiver of one sensor."""

    def __init__(self, *sensors, allowed=()):
        self.receiver = Receiver(sensors)
        self.answers = SensorAnswers(allowed=allowed)
        self.scene = scene_of(hills())

    def show(self):
        self.answers.show(self.scene.terrain, self.scene.poses, Weather())

    def request(self, *sensors, source="127.0.0.1"):
        for one in sensors:
            self.answers.request(encode_request(one), source)
        return self.answers.take_messages()

    def close(self):
        self.answers.close()
        self.receiver.close()


@pytest.fixture
def loop():
    made = []

    def make(*sensors, **options):
        made.append(Loop(*sensors, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def camera(seq_id=0, **values):
    return VisionSensor(seq_id, 2, width=32, height=24, port=free_ports(1)[0], way=2, **values)


def test_the_same_request_again_changes_a_sensor_and_its_frames_count_on(loop):
    one = camera(position=(0.0, 0.0, -3.0))
    made = loop(one)
    assert made.request(one) == []
    frames = made.receiver.frames[0]
    until(lambda: len(frames) >= 2, "two frames", made.show)
    moved = VisionSensor(**{**vars(one), "euler_deg": (0.0, -90.0, 0.0)})
    assert made.request(moved) == []
    before = len(frames)
    until(lambda: len(frames) >= before + 3, "three more frames", made.show)

    numbers = [number for number, _ in frames]
    assert numbers == list(range(len(numbers)))
    compare(moved, numbers[-1], frames[-1][1], made.scene, {})
    assert not np.array_equal(frames[0][1].data, frames[-1][1].data)


def test_cleared_sensors_stop_and_others_go_on(loop):
    one = camera(0)
    two = camera(1)
    made = loop(one, two)
    made.request(one, two)
    until(made.receiver.has_all, "frames of both", made.show)
    made.answers.clear_sensors(0)
    made.answers.clear_sensors(7)
    until(lambda: len(made.receiver.frames[1]) > 10, "frames of the second", made.show)
    stopped = len(made.receiver.frames[0])
    count = len(made.receiver.frames[1])
    until(lambda: len(made.receiver.frames[1]) > count + 5, "frames of the second", made.show)
    assert len(made.receiver.frames[0]) == stopped
    made.answers.clear_sensors()
    assert not made.answers.is_running


def test_a_sensor_waits_for_its_vehicle_and_says_so_once(loop):
    one = camera(target=5)
    made = loop(one)
    made.request(one)
    lines = []
    for _ in range(20):
        made.show()
        time.sleep(0.01)
        lines += made.answers.take_messages()
    assert lines == ["sensor 0: no vehicle 5 was seen yet"]
    assert not made.receiver.frames[0]


@pytest.mark.parametrize(
    ("address", "source", "refused"),
    [
        ((127, 0, 0, 1), "192.0.2.7", "192.0.2.7"),
        ((192, 0, 2, 9), "127.0.0.1", "192.0.2.9"),
        ((224, 0, 0, 10), "127.0.0.1", "224.0.0.10"),
        ((255, 255, 255, 255), "192.0.2.8", "255.255.255.255"),
        ((0, 0, 0, 0), "192.0.2.8", ""),
        ((127, 0, 0, 1), "127.0.0.1", ""),
    ],
)
def test_frames_go_to_this_machine_and_to_allowed_ones_only(loop, address, source, refused):
    one = camera(address=address)
    made = loop(one, allowed=("192.0.2.8",))
    messages = made.request(one, source=source)
    assert len(messages) == bool(refused)
    assert made.answers.is_running is not bool(refused)
    if refused:
        assert "sensor 0: " in messages[0]
        assert refused in messages[0]


def test_sensors_are_limited_and_spoilt_requests_only_named(loop):
    made = loop()
    assert made.request(*[VisionSensor(k, 5, port=9) for k in range(32)]) == []
    assert "32 sensors" in made.request(VisionSensor(32, 5, port=9))[0]
    assert made.request(VisionSensor(31, 5, port=10)) == []
    broken = bytearray(encode_request(VisionSensor(1, 1)))
    broken[32:36] = b"\xff" * 4
    made.answers.request(bytes(broken), "127.0.0.1")
    assert "cannot be used" in made.answers.take_messages()[0]


def test_a_sensor_without_a_receiver_is_removed(loop, monkeypatch):
    module = "rfly_viewer.window_sensors.sensor_answers"
    monkeypatch.setattr(f"{module}.UNHEARD_S", 0.2)
    made = loop()
    made.request(VisionSensor(0, 5, port=free_ports(1)[0]))
    until(lambda: not made.answers.is_running, "the removal", made.show)
    assert "nothing receives" in made.answers.take_messages()[0]
