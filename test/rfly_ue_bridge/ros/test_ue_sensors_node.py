# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ue_sensors_node with real sockets and DDS, and a sender in RflySim3D's place."""

from __future__ import annotations

import itertools
import math
import struct
import time

import cv2
import numpy as np
import pytest
from node_harness import PATIENCE
from sensor_window import SensorWindow, write_config

from rfly_ue_bridge import encode_cloud, encode_fragments, encode_image

pytestmark = pytest.mark.ros

LIDAR = {"TypeID": 23, "DataWidth": 64, "DataHeight": 272, "otherParams": [100] + [0] * 7}
POINTS = np.array([(10, -2.5, 0.5, 3), (0, 0, 0, 0), (3, 4, -1, 0)], float)
COUNTS = np.full((48, 64), 2500, np.uint16)
COUNTS[0, :2] = 65535, 1
COLOURS = cv2.applyColorMap(np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1)), cv2.COLORMAP_JET)


class Rig:
    """A running node, a window that it requests, and a peer that hears it."""

    def __init__(self, domain, folder, *entries, **parameters):
        from node_harness import NodeProcess, Peer

        self.window = SensorWindow()
        config = write_config(folder, *entries) if entries else ""
        settings = {"config": config, "port": self.window.port, "request_period": 0.5}
        settings |= parameters
        self.node = NodeProcess(
            "ue_sensors_node", domain, {k: str(v) for k, v in settings.items() if v != ""}
        )
        self.peer = Peer(domain)
        self.requested(len(entries) or 1)
        self._frame = 0

    def requested(self, count):
        self.peer.spin_until(lambda: self.window.poll() and len(self.window.sensors) >= count)

    def listen(self, msg_type, topic):
        from rclpy.qos import qos_profile_sensor_data

        return self.peer.receive(msg_type, topic, qos_profile_sensor_data)

    def heard(self, seq_id, payload, *received):
        """The newest message of each list, after the payload was sent often enough."""

        def once_more():
            self._frame += 1
            self.window.send(seq_id, payload, self._frame * 0.1, self._frame)
            return all(received)

        self.peer.spin_until(once_more)
        return [messages[-1] for messages in received]

    def close(self):
        self.peer.close()
        self.node.__exit__()
        self.window.close()


@pytest.fixture
def rig(domain_id, tmp_path):
    made = []

    def make(*entries, **parameters):
        made.append(Rig(domain_id, tmp_path, *entries, **parameters))
        return made[-1]

    yield make
    for each in made:
        each.close()


def pixels(message, kind, *shape):
    return np.frombuffer(message.data, kind).reshape(message.height, message.width, *shape)


def points(message, columns=4):
    return np.frombuffer(message.data, np.float32).reshape(-1, columns)


def test_a_camera_has_pictures_info_and_the_jpeg_as_it_came(rig):
    from sensor_msgs.msg import CameraInfo, CompressedImage, Image

    made = rig({})
    topic = "/rflysim/sensor0/img_rgb"
    jpeg = encode_image(COLOURS)
    image, info, compressed = made.heard(
        0,
        jpeg,
        made.listen(Image, topic),
        made.listen(CameraInfo, "/rflysim/sensor0/camera_info"),
        made.listen(CompressedImage, f"{topic}/compressed"),
    )
    assert (image.encoding, image.step, image.header.frame_id) == ("bgr8", 192, "sensor0_optical")
    expected = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(pixels(image, np.uint8, 3), expected)

    # 90 degrees over 64 pixels: f = 32 / tan 45°
    assert info.k.tolist() == pytest.approx([32.0, 0.0, 31.5, 0.0, 32.0, 23.5, 0.0, 0.0, 1.0])
    assert (info.width, info.height, info.header.frame_id) == (64, 48, "sensor0_optical")
    assert bytes(compressed.data) == jpeg
    assert compressed.format == "bgr8; jpeg compressed bgr8"


@pytest.mark.parametrize(
    ("encoding", "kind", "first", "far"),
    [
        ("mono16", np.uint16, [65535, 1], 2500),
        ("16UC1", np.uint16, [0, 1], 2500),
        ("32FC1", np.float32, [math.nan, 0.001], 2.5),
    ],
)
def test_depth_in_three_encodings(rig, encoding, kind, first, far):
    from sensor_msgs.msg import Image

    made = rig({"TypeID": 2}, depth_encoding=encoding)
    received = made.listen(Image, "/rflysim/sensor0/img_depth")
    (image,) = made.heard(0, encode_image(COUNTS, "png"), received)
    assert image.encoding == encoding
    depth = pixels(image, kind)
    np.testing.assert_allclose(depth[0, :2], first)
    assert depth[1, 1] == pytest.approx(far)


def test_clouds_of_lidars_and_depth(rig):
    from sensor_msgs.msg import PointCloud2

    made = rig(LIDAR, {**LIDAR, "TypeID": 21}, {**LIDAR, "TypeID": 7})
    (cloud,) = made.heard(
        0, encode_cloud(POINTS), made.listen(PointCloud2, "/rflysim/sensor0/mid360_lidar")
    )
    assert [field.name for field in cloud.fields] == ["x", "y", "z", "seg"]
    assert (cloud.height, cloud.point_step, cloud.is_dense) == (1, 16, False)
    assert cloud.header.frame_id == "sensor0"
    np.testing.assert_array_equal(points(cloud), POINTS[[0, 2]])  # without the miss

    world = made.listen(PointCloud2, "/rflysim/sensor1/global_lidar")
    (cloud,) = made.heard(1, encode_cloud(POINTS), world)
    assert cloud.header.frame_id == "map"
    np.testing.assert_array_equal(points(cloud), [(-2.5, 10, -0.5, 3), (4, 3, 1, 0)])

    depth = made.listen(PointCloud2, "/rflysim/sensor2/Depth_Cloud")
    (cloud,) = made.heard(2, encode_cloud([(100, 0, -100)], 100.0), depth)
    assert [field.name for field in cloud.fields] == ["x", "y", "z"]
    np.testing.assert_allclose(points(cloud, 3), [(100, 0, -100)], rtol=1e-6)


def test_other_axes_and_kept_misses(rig):
    from sensor_msgs.msg import PointCloud2

    made = rig(LIDAR, {**LIDAR, "TypeID": 21}, lidar_axes="frd", world_axes="nwu", keep_misses=True)
    lidar = made.listen(PointCloud2, "/rflysim/sensor0/mid360_lidar")
    (cloud,) = made.heard(0, encode_cloud(POINTS), lidar)
    np.testing.assert_array_equal(points(cloud), POINTS * [1, -1, -1, 1])
    world = made.listen(PointCloud2, "/rflysim/sensor1/global_lidar")
    (cloud,) = made.heard(1, encode_cloud(POINTS), world)
    np.testing.assert_array_equal(points(cloud)[0], (2.5, 10, 0.5, 3))


def test_range_finder_and_radar(rig):
    from sensor_msgs.msg import PointCloud2, Range

    made = rig({"TypeID": 5}, {"TypeID": 31})
    received = made.listen(Range, "/rflysim/sensor0/range")
    (message,) = made.heard(0, struct.pack("<fi12f", 12.5, 2, *(0.0,) * 12), received)
    assert (message.range, message.max_range, message.header.frame_id) == (12.5, 200.0, "sensor0")
    received.clear()
    made.heard(0, struct.pack("<fi12f", 200.0, -1, *(0.0,) * 12), received)
    made.peer.spin_until(lambda: received[-1].range == math.inf)

    targets = made.listen(PointCloud2, "/rflysim/sensor1/targets")
    (cloud,) = made.heard(1, struct.pack("<2i3f", 1, 7, 10.0, -3.0, 0.5), targets)
    assert points(cloud).tolist() == [[10.0, -3.0, 0.5, 7.0]]


def test_boxes_of_a_detector(rig):
    messages = pytest.importorskip("vision_msgs.msg")
    made = rig({"TypeID": 30})
    received = made.listen(messages.Detection2DArray, "/rflysim/sensor0/detections")
    payload = struct.pack("<2i5f", 1, 7, 0.5, 100.0, 50.0, 180.0, 120.0)
    (message,) = made.heard(0, payload, received)
    (box,) = message.detections
    assert (message.header.frame_id, box.id) == ("sensor0_optical", "7")
    assert (box.bbox.center.position.x, box.bbox.center.position.y) == (140.0, 85.0)
    assert (box.bbox.size_x, box.bbox.size_y) == (80.0, 70.0)
    assert box.results[0].hypothesis.score == 0.5


def test_requests_are_repeated_while_a_sensor_is_silent_and_after_a_map_change(rig):
    from rclpy.qos import QoSProfile
    from std_msgs.msg import String

    made = rig({}, LIDAR, request_period=1.0)
    image = encode_image(COLOURS)
    first = made.window.datagrams[0]
    assert len(first) == 144
    seen = len(made.window.datagrams)

    def lidar_asked_again():
        made.window.send(0, image, 1.0)
        return any(d[2] == 1 for d in made.window.poll()[seen:])

    made.peer.spin_until(lidar_asked_again)
    assert all(d[2] == 1 for d in made.window.datagrams[seen + 1 :])

    commands = made.peer.publisher(String, "/ue_command", QoSProfile(depth=10))
    made.window.poll()
    seen = len(made.window.datagrams)
    commands.publish(String(data="RflyChangeMapbyName Grasslands"))

    def all_asked_again():
        made.window.send(0, image, 1.0)
        return {d[2] for d in made.window.poll()[seen:]} == {0, 1}

    made.peer.spin_until(all_asked_again)


def test_a_pose_can_be_changed_while_it_runs(rig):
    from geometry_msgs.msg import Point, Pose, Quaternion
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from rfly_suite.srv import SetSensor
    from tf2_msgs.msg import TFMessage

    made = rig({})
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    transforms = made.peer.receive(TFMessage, "/tf_static", latched)
    made.peer.spin_until(lambda: transforms)
    link, optical = transforms[-1].transforms
    assert (link.header.frame_id, link.child_frame_id) == ("copter1/base_link", "sensor0")
    shift = link.transform.translation
    assert (shift.x, shift.y, shift.z) == (0.3, 0.15, -0.1)
    assert (optical.header.frame_id, optical.child_frame_id) == ("sensor0", "sensor0_optical")

    # 30 degrees down, in ROS a positive turn about y
    turn = Quaternion(y=math.sin(math.radians(15.0)), w=math.cos(math.radians(15.0)))
    pose = Pose(position=Point(x=1.0, y=2.0, z=3.0), orientation=turn)
    answer = made.peer.call(
        SetSensor, "/ue_sensors_node/set_sensor", seq_id=0, pose=pose, fov_deg=60.0
    )
    assert (answer.success, answer.message) == (True, "")
    made.peer.spin_until(lambda: made.window.poll() and made.window.sensors[0].fov_deg == 60.0)
    sensor = made.window.sensors[0]
    assert sensor.position == (1.0, -2.0, -3.0)
    assert sensor.euler_deg == pytest.approx((0.0, -30.0, 0.0), abs=1e-4)
    made.peer.spin_until(lambda: transforms[-1].transforms[0].transform.translation.z == 3.0)

    refused = made.peer.call(SetSensor, "/ue_sensors_node/set_sensor", seq_id=4)
    assert (refused.success, refused.message) == (False, "seq_id: 4, expected one of 0")
    bad = Pose(orientation=Quaternion(x=3.0))
    refused = made.peer.call(SetSensor, "/ue_sensors_node/set_sensor", seq_id=0, pose=bad)
    assert "orientation" in refused.message


def test_silence_and_losses_are_reported(rig):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import diagnostic
    from sensor_msgs.msg import Image

    made = rig({})
    statuses = made.peer.receive(DiagnosticArray, "/diagnostics", 10)
    port = made.window.sensors[0].port
    level, message, values = made.peer.spin_until(
        lambda: (s := diagnostic(statuses, "sensor0")) and s[0] == 3 and s
    )
    assert message == f"no data on port {port} yet"
    assert (values["reason"], values["subject"]) == ("no_sensor_data", str(port))

    made.heard(0, encode_image(COLOURS), made.listen(Image, "/rflysim/sensor0/img_rgb"))
    whole = encode_image(COLOURS)[:-99]
    spoilt = encode_fragments(whole, 999.0, 999)[0]
    for datagram in (b"", b"x" * 100, spoilt[:-1]):
        made.window.send_raw(0, datagram)

    # a frame that waits is pushed out by a newer one: spoilt ones alone until one is counted
    number = itertools.count(999)
    due = [0.0]

    def counted():
        status = diagnostic(statuses, "sensor0")
        is_counted = bool(status) and int(status[2].get("undecodable", 0)) > 0
        if not is_counted and time.monotonic() > due[0]:
            due[0] = time.monotonic() + 5.0
            frame = next(number)
            made.window.send_raw(0, encode_fragments(whole, float(frame), frame)[0])
        return is_counted and status

    made.peer.spin_until(counted)

    def goes_on():
        frame = 10_000 + len(statuses)
        made.window.send(0, encode_image(COLOURS), float(frame), frame)
        return (status := counted())[0] == 1 and status

    level, message, values = made.peer.spin_until(goes_on)
    assert level == 1
    assert f"undecodable {values['undecodable']}" in message
    assert int(values["undecodable"]) <= next(number) - 999, "each was counted once"
    assert (values["checksum"], values["length"]) == ("1", "2")
    assert float(values["latency_ms"]) < 1000.0


def test_sensors_by_parameters(rig):
    made = rig(
        sensors="[front]",
        **{
            "front.type_id": 3,
            "front.seq_id": 7,
            "front.data_port": 40999,
            "front.position": "[1.0, 0.0, -0.5]",
            "front.euler_deg": "[0.0, -10.0, 0.0]",
        },
    )
    sensor = made.window.sensors[7]
    assert (sensor.type_id, sensor.port, sensor.position) == (3, 40999, (1.0, 0.0, -0.5))
    assert sensor.euler_deg == (0.0, -10.0, 0.0)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({}, "config and sensors"),
        ({"config": "/nowhere/Config.json"}, "/nowhere/Config.json"),
        ({"sensors": "[a, b]", "b.seq_id": "0"}, "b: number 0"),
        ({"sensors": "[a]", "a.position": "[1.0]"}, "a.position"),
    ],
)
def test_a_wrong_configuration_ends_the_node_with_one_line(domain_id, parameters, named):
    from node_harness import NodeProcess

    with NodeProcess("ue_sensors_node", domain_id, parameters) as node:
        assert node.process.wait(PATIENCE) == 2
        assert node.stop() == 2
    assert named in node.output
    assert "Traceback" not in node.output


def test_stamps_are_of_the_simulation_by_its_heart_beat(rig):
    from sensor_msgs.msg import Image
    from sensor_window import free_ports

    (time_port,) = free_ports(1)
    made = rig({}, stamp="simulation", time_port=time_port)
    received = made.listen(Image, "/rflysim/sensor0/img_rgb")
    start_ms = 1_700_000_000_000
    now = int(made.peer.node.get_clock().now().nanoseconds / 1e6)
    # a machine whose clock is years slow: the node counts from its own clock
    beat = struct.pack("<2i3q", 123456789, 1, start_ms, start_ms + 50_000, 1)
    image = encode_image(COLOURS)

    def stamped():
        made.window.socket.sendto(beat, ("127.0.0.1", time_port))
        made._frame += 1
        made.window.send(0, image, 30.0 + 0.001 * made._frame, made._frame)
        return received

    made.peer.spin_until(stamped)
    stamp_ms = received[-1].header.stamp.sec * 1000 + received[-1].header.stamp.nanosec / 1e6
    # the simulation began 50 s before the heart-beat
    assert stamp_ms == pytest.approx(now - 50_000 + 30_000, abs=15_000)


def test_an_imu_is_requested_from_coptersim(domain_id, tmp_path):
    import socket

    from node_harness import NodeProcess, Peer
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import Imu

    coptersim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    coptersim.bind(("127.0.0.1", 30100 + 2 * 6))
    coptersim.settimeout(PATIENCE)
    config = write_config(tmp_path, {})
    parameters = {"config": str(config), "imu_vehicles": "[7]", "imu_rate": "100", "port": "47113"}
    parameters["stamp"] = "simulation"
    with NodeProcess("ue_sensors_node", domain_id, parameters) as node, coptersim:
        request, _ = coptersim.recvfrom(100)
        address = bytes([127, 0, 0, 1])
        assert request == struct.pack("<4H", 12345, 0, 100, 31006) + address + bytes(24)
        sample = bytes.fromhex(
            "da029649c40900000000000000002940cdcccc3dcdcc4cbec3f51cc10ad7233c0ad7a33c8fc2f5bc"
        )
        peer = Peer(domain_id)
        received = peer.receive(Imu, "/rflysim/imu", qos_profile_sensor_data)

        def once_more():
            coptersim.sendto(sample, ("127.0.0.1", 31006))
            return received

        peer.spin_until(once_more)
        first = received[0]

        # times that no stamp can hold
        threads = node.threads()
        for time in (math.nan, math.inf, 1e300, -1e300, 2.0**31):
            bad = sample[:8] + struct.pack("<d", time) + sample[16:]
            coptersim.sendto(bad, ("127.0.0.1", 31006))
        received.clear()
        peer.spin_until(once_more)
        peer.close()
        assert threads <= node.threads()
        assert "dropped, by an error" not in node.output
    received = [first]
    a = received[0].linear_acceleration
    w = received[0].angular_velocity
    assert (a.x, a.y, a.z) == pytest.approx((0.1, 0.2, 9.81), abs=1e-4)
    assert (w.x, w.y, w.z) == pytest.approx((0.01, -0.02, 0.03), abs=1e-6)
    assert received[0].orientation_covariance.tolist() == [-1.0] * 9
    assert received[0].header.frame_id == "imu"


def test_a_level_sensor_follows_its_vehicle_without_turning(rig):
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    made = rig({"TargetMountType": 3})
    vehicle = TransformStamped(child_frame_id="copter1/base_link")
    vehicle.header.frame_id = "map"
    vehicle.transform.translation.x = 5.0
    vehicle.transform.rotation.x = 1.0  # upside down
    vehicle.transform.rotation.w = 0.0
    publisher = made.peer.publisher(TFMessage, "/tf", 10)
    transforms = made.peer.receive(TFMessage, "/tf", 100)

    def level():
        vehicle.header.stamp = made.peer.node.get_clock().now().to_msg()
        publisher.publish(TFMessage(transforms=[vehicle]))
        return [
            t for m in transforms for t in m.transforms
            if t.child_frame_id == "copter1/base_link_level"
        ]  # fmt: skip

    found = made.peer.spin_until(level)[-1]
    assert found.header.frame_id == "map"
    assert found.transform.translation.x == 5.0
    assert (found.transform.rotation.x, found.transform.rotation.w) == (0.0, 1.0)
