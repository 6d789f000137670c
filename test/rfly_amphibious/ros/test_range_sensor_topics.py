# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lidar and cameras of amphibious_sim_node as others meet them: a running process and real DDS."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytestmark = pytest.mark.ros

HEIGHT = 0.22 + 0.25
"""of the lidar above level ground, m"""
CAMERA_HEIGHT = 0.22 + 0.08
TYPES = {
    2: np.uint8,
    4: np.uint16,
    7: np.float32,
}
"""numbers of PointField"""


def stamp(message) -> float:
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


def points_of(cloud) -> np.ndarray:
    """Return the points as a reader by field names gets them."""
    dtype = np.dtype(
        {
            "names": [field.name for field in cloud.fields],
            "formats": [TYPES[field.datatype] for field in cloud.fields],
            "offsets": [field.offset for field in cloud.fields],
            "itemsize": cloud.point_step,
        }
    )
    return np.frombuffer(cloud.data, dtype)


class Watcher:
    """A peer that looks at the vehicle in `/seer`."""

    def __init__(self, domain_id: int, name: str) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from node_harness import Peer

        from rfly_common.ros.qos import STATE_OUT

        self.peer = Peer(domain_id, name)
        self.until = self.peer.spin_until
        self.diagnostics = self.peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)

    def receive(self, kind, topic, qos=None):
        from rfly_common.ros.qos import STATE_OUT

        return self.peer.receive(kind, f"/seer/{topic}", qos or STATE_OUT)

    def next(self, heard):
        """The next message of a list, which holds no older ones then."""
        del heard[:]
        return self.until(lambda: heard and heard[-1])

    def said(self, ready=lambda level, text, values: True):
        """The newest diagnostic, once it is as wanted."""
        from node_harness import diagnostic

        def look():
            found = diagnostic(self.diagnostics, "lidar and cameras")
            return found if found is not None and ready(*found) else None

        return self.until(look)


@pytest.fixture
def watcher(domain_id):
    """A vehicle that stands on level ground and reads the truth, in real time."""
    from node_harness import NodeProcess

    parameters = {"ground": "level", "noise": "false", "id": "610", "gimbal_state": "both"}
    with NodeProcess("amphibious_sim_node", domain_id, parameters, "-r", "__ns:=/seer") as node:
        made = Watcher(domain_id, "watcher")
        made.node = node
        yield made
        made.peer.close()
        assert node.stop() == 0


def test_nothing_is_computed_for_nobody_then_a_cloud(watcher) -> None:
    """Fields of Velodyne's driver; the start of the sweep as stamp; the ground where it is."""
    from sensor_msgs.msg import PointCloud2

    _, _, values = watcher.said()
    assert {key: values[f"{key}_made"] for key in ("lidar", "depth_camera", "color_camera")} == {
        "lidar": "0",
        "depth_camera": "0",
        "color_camera": "0",
    }
    clouds = watcher.receive(PointCloud2, "lidar/points")
    cloud = watcher.next(clouds)
    assert cloud.header.frame_id == "seer/lidar_link"
    assert stamp(cloud) / 0.02 == pytest.approx(round(stamp(cloud) / 0.02), abs=1e-3)
    layout = [(field.name, field.offset, field.datatype) for field in cloud.fields]
    assert layout == [
        ("x", 0, 7),
        ("y", 4, 7),
        ("z", 8, 7),
        ("intensity", 12, 7),
        ("ring", 16, 4),
        ("time", 20, 7),
    ]
    points = points_of(cloud)
    expected = (
        1,
        True,
        cloud.width,
        24 * cloud.width,
    )
    assert (cloud.height, cloud.is_dense, len(points), len(cloud.data)) == expected
    assert np.abs(points["z"] + HEIGHT).max() < 0.01
    assert np.median(points["z"]) == pytest.approx(-HEIGHT, abs=0.002)
    assert points["ring"].min() == 2  # what rings 0 and 1 see is nearer than 1 m
    assert points["ring"].max() == 22
    assert 0.0 <= points["time"].min() < points["time"].max() < 0.1
    azimuth = np.arctan2(points["y"], points["x"])
    turned = np.angle(np.exp(1j * (math.pi - 2 * math.pi * points["time"] / 0.1 - azimuth)))
    assert np.abs(turned).max() < 0.01  # clockwise from the rear
    _, _, values = watcher.said(lambda level, text, values: int(values["lidar_made"]) > 1)
    assert (values["depth_camera_made"], values["color_camera_made"]) == ("0", "0")


def test_a_scan_of_others_not_of_oneself(watcher) -> None:
    """A multirotor (1.1 m wide) ahead, a crate to the left; its own id is itself."""
    from bridge_harness import fleet
    from rfly_suite.msg import PlacedObjectArray, VehicleStateArray
    from sensor_msgs.msg import LaserScan

    from rfly_common.ros.qos import FLEET_OUT, LATCHED, SENSORS

    scans = watcher.receive(LaserScan, "scan", SENSORS)
    scan = watcher.next(scans)
    assert (scan.header.frame_id, len(scan.ranges)) == ("seer/lidar_link", 1800)
    assert scan.angle_min == pytest.approx(math.pi)
    assert scan.angle_increment == pytest.approx(-2 * math.pi / 1800)
    assert scan.angle_max == pytest.approx(scan.angle_min + 1799 * scan.angle_increment, abs=1e-5)
    assert scan.time_increment == pytest.approx(0.1 / 1800)
    assert np.isinf(scan.ranges).all()
    states = watcher.peer.publisher(VehicleStateArray, "/seer/vehicle_states", FLEET_OUT)
    objects = watcher.peer.publisher(PlacedObjectArray, "/seer/placed_objects", LATCHED)
    crate = PlacedObjectArray(
        id=[900],
        vehicle_type=[40],
        position=[0.0, 8.0, 0.0],
        orientation=[0.0, 0.0, 0.0, 1.0],
        box_origin=[0.0, 8.0, 0.5],
        box_half_extent=[1.0, 1.0, 0.5],
        offset=[0.0],
        scale=[1.0, 1.0, 1.0],
        use_ground_packet=[0],
    )
    crate.header.frame_id = "map"
    objects.publish(crate)

    def seen():
        states.publish(
            fleet(
                [5, 610],
                position=[10.0, 0, 0.5, -4.0, 0, 0.5],
                orientation=[0.0, 0, 0, 1.0] * 2,
            )
        )
        return (
            scans
            and np.isfinite(scans[-1].ranges[900])
            and np.isfinite(scans[-1].ranges[450])
            and scans[-1]
        )

    scan = watcher.until(seen)
    assert scan.ranges[900] == pytest.approx(
        10.0 - 0.55, abs=0.02
    )  # straight ahead, half way through the turn
    assert scan.ranges[450] == pytest.approx(7.0, abs=0.02)
    assert np.isinf(scan.ranges[0])  # behind: a state of its own id
    watcher.until(lambda: scans and np.isinf(scans[-1].ranges[900]))  # silent for a second
    objects.publish(PlacedObjectArray(header=crate.header))


def test_images_their_geometry_and_the_gimbal(watcher) -> None:
    """Depth of the ground by hand, before and after the gimbal has looked down."""
    from sensor_msgs.msg import CameraInfo, Image, JointState
    from std_msgs.msg import Float64
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.qos import COMMANDS, TF, TF_STATIC_IN

    expected = {
        "depth": ("32FC1", 256, 212, 4),
        "ir": ("mono16", 256, 212, 2),
        "color": ("rgb8", 320, 180, 3),
        "semantic": ("mono8", 320, 180, 1),
        "instance": ("32SC1", 320, 180, 4),
    }
    heard = {kind: watcher.receive(Image, f"camera/{kind}/image_raw") for kind in expected}
    infos = {kind: watcher.receive(CameraInfo, f"camera/{kind}/camera_info") for kind in heard}
    frames = watcher.peer.receive(TFMessage, "/tf", TF)
    fixed = watcher.peer.receive(TFMessage, "/tf_static", TF_STATIC_IN)
    watcher.until(lambda: all(heard.values()) and all(infos.values()))
    for kind, (encoding, width, height, size) in expected.items():
        image = heard[kind][-1]
        info = infos[kind][-1]
        assert (image.encoding, image.width, image.height, image.step) == (
            encoding,
            width,
            height,
            size * width,
        )
        assert image.header.frame_id == info.header.frame_id == "seer/camera_optical"
        assert (info.width, info.height, len(info.d)) == (width, height, 5)
        assert len(image.data) == size * width * height

    assert {heard["semantic"][-1].data[0], heard["semantic"][-1].data[-1]} == {
        255,
        254,
    }  # sky above, ground below
    assert set(np.frombuffer(heard["instance"][-1].data, np.int32)) == {-2, -1}

    def row_depths(message):
        return np.frombuffer(message.data, np.float32).reshape(212, 256)[:, 128]

    focal = infos["depth"][-1].k[4]
    middle = infos["depth"][-1].k[5]
    below = (np.arange(212) - middle) / focal
    depth = row_depths(watcher.next(heard["depth"]))
    near = np.isfinite(depth)
    assert near.sum() > 50
    assert depth[near] == pytest.approx(CAMERA_HEIGHT / below[near], rel=0.01)
    looks = watcher.peer.publisher(Float64, "/seer/gimbal/cmd", COMMANDS)
    looks.publish(Float64(data=math.nan))
    looks.publish(Float64(data=0.4))

    def pitch():
        links = [
            t
            for message in frames
            for t in message.transforms
            if t.child_frame_id == "seer/camera_link"
        ]
        return (
            links
            and links[-1].header.frame_id == "seer/base_link"
            and 2 * math.asin(links[-1].transform.rotation.y)
        )

    watcher.until(lambda: pitch() and abs(pitch() - 0.4) < 1e-5)
    joints = watcher.next(watcher.receive(JointState, "joint_states"))
    assert joints.name[-1] == "camera_joint"
    assert joints.position[-1] == pytest.approx(0.4, abs=1e-5)
    assert joints.velocity[-1] == pytest.approx(0.0, abs=1e-4)
    depth = row_depths(watcher.next(heard["depth"]))
    down = below * math.cos(0.4) + math.sin(0.4)
    near = np.isfinite(depth)
    assert near.sum() > 50
    assert depth[near] == pytest.approx(CAMERA_HEIGHT / down[near], rel=0.01)
    assert (
        int(
            watcher.said(lambda level, text, values: values["refused_gimbal"] != "0")[2][
                "refused_gimbal"
            ]
        )
        == 1
    )
    places = {
        t.child_frame_id: t for message in watcher.until(lambda: fixed) for t in message.transforms
    }
    watcher.until(
        lambda: "seer/lidar_link" in {t.child_frame_id for m in fixed for t in m.transforms}
    )
    places = {t.child_frame_id: t for message in fixed for t in message.transforms}
    assert places["seer/lidar_link"].header.frame_id == "seer/base_link"
    assert places["seer/lidar_link"].transform.translation.z == pytest.approx(0.25)
    assert places["seer/camera_optical"].transform.rotation.x == pytest.approx(-0.5)


def test_fog_comes_while_it_runs(watcher) -> None:
    """The parameter `visibility`, and the topic: what was seen 18 m away is gone. What no weather
    can be is refused.
    """
    from rcl_interfaces.msg import Parameter, ParameterValue
    from rcl_interfaces.srv import SetParameters
    from rfly_suite.msg import Environment
    from sensor_msgs.msg import PointCloud2

    from rfly_common.ros.qos import COMMANDS

    clouds = watcher.receive(PointCloud2, "lidar/points")

    def farthest() -> float:
        points = points_of(watcher.next(clouds))
        return np.hypot(points["x"], points["y"]).max()

    assert farthest() > 18.0
    service = "/seer/amphibious_sim_node/set_parameters"
    for metres, ready in ((10.0, lambda far: far < 9.0), (0.0, lambda far: far > 18.0)):
        value = ParameterValue(type=3, double_value=metres)
        assert (
            watcher.peer.call(
                SetParameters,
                service,
                parameters=[Parameter(name="visibility", value=value)],
            )
            .results[0]
            .successful
        )
        watcher.until(lambda ready=ready: ready(farthest()))
    weather = watcher.peer.publisher(Environment, "/seer/environment", COMMANDS)
    for told, ready in ((10.0, lambda far: far < 9.0), (0.0, lambda far: far > 18.0)):
        weather.publish(Environment(light=1.0, visibility=told, rain_rate=1.0))
        watcher.until(lambda ready=ready: ready(farthest()))
    for wrong in (Environment(light=2.0), Environment(light=1.0, visibility=math.nan)):
        weather.publish(wrong)
    watcher.said(lambda level, text, values: values["refused_environment"] == "2")


def test_it_begins_with_the_scenarios_weather(domain_id, tmp_path) -> None:
    """The scenario's weather sets parameters, in addition to those of a launch file."""
    from node_harness import NodeProcess, Peer
    from rcl_interfaces.srv import GetParameters

    text = """{version: 1, vehicle: scale, mission: {items: [{mode: waypoint, position_m: [9, 0]}]},
      end: {time_s: 9}, environment: {visibility_m: 150, cloud_cover: 0.5, rain_mmph: 3}}"""
    (tmp_path / "rain.yaml").write_text(text, encoding="utf-8")
    parameters = {"scenario": str(tmp_path / "rain.yaml"), "rain_rate": "7.0"}
    with NodeProcess("amphibious_sim_node", domain_id, parameters, "-r", "__ns:=/seer"):
        peer = Peer(domain_id, "asker")
        names = ["light", "visibility", "cloud_cover", "rain_rate"]
        values = peer.call(
            GetParameters, "/seer/amphibious_sim_node/get_parameters", names=names
        ).values
        assert [value.double_value for value in values] == [1.0, 150.0, 0.5, 7.0]
        peer.close()


def test_in_lock_step_a_sweep_comes_with_its_tick_and_is_the_same_again(
    domain_id,
) -> None:
    """The first cloud with noise comes reliably after 25 answered ticks.

    After a reset the same cloud comes, byte by byte.
    """
    from node_harness import NodeProcess
    from rfly_suite.msg import RotorCommand, SimulationTick, WheelCommand
    from sensor_msgs.msg import PointCloud2
    from simulation_interfaces.srv import ResetSimulation

    from rfly_common.ros.qos import COMMANDS, STATE_OUT

    parameters = {
        "ground": "level",
        "lock_step": "true",
        "seed": "5",
        "real_time_factor": "0.0",
    }
    with NodeProcess("amphibious_sim_node", domain_id, parameters, "-r", "__ns:=/seer"):
        watcher = Watcher(domain_id, "stepper")
        peer = watcher.peer
        rotors = peer.publisher(RotorCommand, "/seer/cmd/rotors", COMMANDS)
        wheels = peer.publisher(WheelCommand, "/seer/cmd/wheels", COMMANDS)
        clouds = watcher.receive(PointCloud2, "lidar/points")
        ticks = peer.receive(SimulationTick, "/seer/simulation_tick", STATE_OUT)
        peer.spin_until(lambda: peer.node.count_publishers("/seer/lidar/points") and ticks)

        def run(count: int) -> bytes:
            del clouds[:]
            answered = set()
            for _ in range(count):
                peer.spin_until(lambda: stamp(ticks[-1]) not in answered)
                answered.add(stamp(ticks[-1]))
                header = ticks[-1].header
                rotors.publish(RotorCommand(header=header, value=[0.0] * 6))
                wheels.publish(WheelCommand(header=header, brake_torque=[10.0] * 4))
            peer.spin_until(lambda: stamp(ticks[-1]) == pytest.approx(0.004 * count))
            cloud = peer.spin_until(lambda: clouds and clouds[0])
            assert (len(clouds), stamp(cloud)) == (1, 0.0)
            return bytes(cloud.data)

        first = run(27)
        del ticks[:]
        assert (
            peer.call(ResetSimulation, "/seer/amphibious_sim_node/reset_simulation").result.result
            == 1
        )
        peer.spin_until(lambda: ticks and stamp(ticks[-1]) == 0.0)
        assert run(27) == first
        assert len(first) > 24 * 20_000
        peer.close()


def test_a_rate_that_cannot_be_held_is_told(domain_id, tmp_path) -> None:
    """Images of 640,000 pixels at 25 Hz are skipped and counted; the vehicle keeps real time."""
    from importlib.resources import files

    from node_harness import NodeProcess, diagnostic
    from sensor_msgs.msg import CameraInfo

    text = (files("rfly_amphibious") / "data" / "sensors" / "scale.yaml").read_text(
        encoding="utf-8"
    )
    for before, after in (
        ("rate_hz: 5\n  width_px: 256", "rate_hz: 25\n  width_px: 800"),
        ("height_px: 212", "height_px: 800"),
    ):
        assert before in text
        text = text.replace(before, after, 1)
    (tmp_path / "sharp.yaml").write_text(text, encoding="utf-8")
    parameters = {"ground": "level", "sensors": str(tmp_path / "sharp.yaml")}
    with NodeProcess("amphibious_sim_node", domain_id, parameters, "-r", "__ns:=/seer") as node:
        watcher = Watcher(domain_id, "hurried")
        infos = watcher.receive(CameraInfo, "camera/depth/camera_info")
        _, text, values = watcher.said(lambda level, text, values: level == 1)
        assert text.startswith(
            "rates that can't be held, left out in the last second: depth_camera: "
        )
        assert int(values["depth_camera_left_out"]) > 0
        watcher.until(lambda: infos)
        assert infos[-1].width == 800
        _, told, _ = watcher.until(lambda: diagnostic(watcher.diagnostics, "simulation"))
        assert told == "playing" or told.startswith("runs at")
        watcher.peer.close()
        assert node.stop() == 0


@pytest.mark.needs("rasterio")
def test_a_damaged_picture_of_the_ground_is_told(domain_id, tmp_path) -> None:
    """The head of the file is good, its pixels are not; images come with the heights' colours."""
    import rasterio
    from node_harness import NodeProcess
    from rasterio.transform import from_origin
    from rasters import write_tif
    from sensor_msgs.msg import Image

    from rfly_terrain.files.writer import write_height_map
    from rfly_terrain.height_map.height_map import HeightMap

    plain = HeightMap(
        np.zeros((21, 21)),
        origin_x=-100.0,
        origin_y=-100.0,
        step_x=10.0,
        step_y=10.0,
        geo_origin=(47.0, 8.0, 0.0),
    )
    write_height_map(plain, tmp_path / "plain")
    (tmp_path / "stand.yaml").write_text(
        "{version: 1, vehicle: scale, map: plain, mission: {items: [{mode: waypoint, "
        "position_m: [9, 0]}]}, end: {time_s: 9}}",
        encoding="utf-8",
    )

    # a picture of the place, read by windows; all but its head and the overviews' place is lost
    photo = tmp_path / "photo.tif"
    pixels = np.random.default_rng(1).integers(0, 255, (512, 512), np.uint8)
    kind = {"tiled": True, "compress": "deflate"}
    write_tif(photo, pixels, from_origin(7.99, 47.01, 4e-5, 4e-5), "EPSG:4326", **kind)
    with rasterio.open(photo, "r+") as dataset:
        dataset.build_overviews([2])
    content = bytearray(photo.read_bytes())
    content[2000:200_000] = bytes(198_000)
    photo.write_bytes(content)

    parameters = {"scenario": str(tmp_path / "stand.yaml"), "imagery": str(photo)}
    with NodeProcess("amphibious_sim_node", domain_id, parameters, "-r", "__ns:=/seer") as node:
        watcher = Watcher(domain_id, "onlooker")
        images = watcher.receive(Image, "camera/color/image_raw")
        watcher.until(lambda: images)
        _, text, _ = watcher.said(lambda level, text, values: level == 1 and "picture" in text)
        assert text.startswith("cameras show heights, not the picture of the ground: ")
        assert "photo.tif" in text
        watcher.peer.close()
        assert node.stop() == 0
