# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""terrain_node with a map in tiles: services over borders, the window, tiles that fail or wait."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from optional_parts import late_module
from rasters import write_tif

pytestmark = [pytest.mark.ros, pytest.mark.needs("rasterio", "pyproj")]

affine = late_module("rasterio.transform")

SAMPLES = 320
STEP = 10.0
WINDOW = 96
DAMAGED = "east00000_north00004.tif"


def write_tiles(folder, name):
    """Write tiles of 64 samples, and return the whole map from the same file."""
    from rfly_terrain import import_dem
    from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles

    rng = np.random.default_rng(8)
    along = np.linspace(0.0, 7.0, SAMPLES)
    raster = 400.0 + 90.0 * np.sin(along)[:, None] * np.cos(along)
    raster = (raster + rng.normal(0.0, 0.5, raster.shape)).astype(np.float32)
    path = folder / f"{name}.tif"
    corner = (500_000 - SAMPLES * STEP / 2, 5_000_000 + SAMPLES * STEP / 2)
    write_tif(path, raster, affine.from_origin(*corner, STEP, STEP))
    make_tiles([path], folder / name, TileOptions(side=64), jobs=1)
    return import_dem(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("maps")


@pytest.fixture(scope="module")
def whole(folder):
    terrain = write_tiles(folder, "Country")
    (folder / "Country" / "tiles" / DAMAGED).write_bytes(b"II*\0 no more")
    return terrain


@pytest.fixture(scope="module")
def peer(shared_domain_id, folder, whole):
    """A peer of one running node, whose window follows the topic `lead/pose`."""
    from node_harness import NodeProcess, Peer

    parameters = {
        "map": "Country",
        "map_search_path": f"['{folder}']",
        "window_samples": WINDOW,
        "window_topic": "lead/pose",
    }
    with NodeProcess("terrain_node", shared_domain_id, parameters):
        peer = Peer(shared_domain_id)
        yield peer
        peer.close()


def ask(peer, x, y, **fields):
    from rfly_suite.srv import GetTerrainAltitudes

    return peer.call(GetTerrainAltitudes, "get_terrain_altitudes", x=x, y=y, **fields)


def test_altitudes_over_borders_of_tiles(peer, whole):
    x = np.linspace(-1400.0, 1590.0, 700)
    y = np.linspace(-1590.0, 900.0, 700)
    answer = ask(peer, x, y, want_normals=True)
    assert answer.success, answer.message
    expected = whole.query(x, y)
    np.testing.assert_allclose(answer.altitude, expected.altitude, atol=1e-6)
    np.testing.assert_allclose(np.reshape(answer.normal, (-1, 3)), expected.normal, atol=1e-6)
    assert all(answer.inside)
    assert not ask(peer, [1e6], [0.0]).inside[0]


def test_a_place_in_degrees(peer, whole):
    latitude, longitude = whole.place_of(777.0, -888.0)
    answer = ask(peer, [latitude], [longitude], frame_id="wgs84")
    assert answer.altitude[0] == pytest.approx(whole.altitude(777.0, -888.0), abs=1e-3)


def test_a_damaged_tile_is_told_and_others_answer(peer, whole):
    answer = ask(peer, [-1500.0], [1500.0])
    assert not answer.success
    assert DAMAGED in answer.message
    assert ask(peer, [1500.0], [1500.0]).altitude[0] == pytest.approx(
        whole.altitude(1500.0, 1500.0), abs=1e-6
    )


def test_the_window_follows_a_pose(peer, whole):
    """terrain_map shows the ground about the place, under another sha256, for all its nodes."""
    from geometry_msgs.msg import PoseStamped
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from rfly_suite.msg import TerrainMap
    from sensor_msgs.msg import PointCloud2

    from rfly_terrain.files.terrain_message import msg_to_height_map

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    maps = peer.receive(TerrainMap, "terrain_map", latched)
    clouds = peer.receive(PointCloud2, "outTerrainPoint", latched)
    first = peer.spin_until(lambda: maps and maps[-1])
    assert (first.rows, first.columns) == (WINDOW, WINDOW)
    assert first.name == "Country"
    half = WINDOW * STEP / 2
    window = msg_to_height_map(first)
    assert np.abs(np.array(window.bounds) - (-half, half, -half, half)).max() <= STEP

    poses = peer.publisher(PoseStamped, "lead/pose", QoSProfile(depth=1))
    pose = PoseStamped()
    pose.header.frame_id = "map"
    pose.pose.position.x = 1000.0
    pose.pose.position.y = -700.0

    def moved():
        poses.publish(pose)
        return maps[-1].sha256 != first.sha256 and clouds and maps[-1]

    window = msg_to_height_map(peer.spin_until(moved))
    assert abs(sum(window.bounds[:2]) / 2 - 1000.0) <= STEP
    assert abs(sum(window.bounds[2:]) / 2 + 700.0) <= STEP
    assert window.geo_origin == pytest.approx(whole.geo_origin)
    x, y = np.random.default_rng(1).uniform(-400.0, 400.0, (2, 50))
    x += 1000.0
    y -= 700.0
    np.testing.assert_allclose(window.altitude(x, y), whole.altitude(x, y), atol=1e-4)


def test_a_peer_loads_tiles_below_the_allowed_folders_only(peer, folder, whole, tmp_path):
    from rfly_suite.srv import LoadTerrain

    outside = tmp_path / "Secret"
    (folder / "Country").rename(outside)
    try:
        answer = peer.call(LoadTerrain, "load_terrain", map=str(outside))
        assert not answer.success
        assert "map_search_path" in answer.message
    finally:
        outside.rename(folder / "Country")
    answer = peer.call(LoadTerrain, "load_terrain", map=str(folder / "Country"))
    assert answer.success, answer.message
    assert (answer.rows, answer.columns) == (SAMPLES, SAMPLES)
    manifest = folder / "Country" / "terrain.json"
    text = manifest.read_text()
    manifest.write_text('{"password": "swordfish"}')
    try:
        answer = peer.call(LoadTerrain, "load_terrain", map="Country")
    finally:
        manifest.write_text(text)
    assert not answer.success
    assert "swordfish" not in answer.message
    assert "password" not in answer.message


@pytest.fixture
def node(domain_id, folder, whole):
    """A node in this process and its executor, whose tiles are read when `may_read` is set."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor

    from rfly_terrain.ros.terrain_node import TerrainNode

    settings = {
        "map": folder / "Country",
        "window_samples": WINDOW,
        "window_vehicle": 7,
        "publish_tf": False,
    }
    words = [word for item in settings.items() for word in ("-p", f"{item[0]}:={item[1]}")]
    rclpy.init(args=["--ros-args", *map(str, words)], domain_id=domain_id)
    executor = SingleThreadedExecutor()
    node = TerrainNode()
    executor.add_node(node)
    may_read = threading.Event()
    reader = node._terrain._reader

    def read(rows, columns):
        may_read.wait()
        return reader.read(rows, columns)

    node._terrain._reader = SimpleNamespace(read=read)
    yield node, executor, may_read
    may_read.set()
    executor.remove_node(node)
    node.destroy_node()
    executor.shutdown()
    rclpy.shutdown()


def test_nobody_waits_for_a_slow_tile(node, whole, monkeypatch):
    """A query of a tile that does not come waits; others are answered, and diagnostics name it."""
    from diagnostic_msgs.msg import DiagnosticStatus
    from rfly_suite.srv import GetTerrainAltitude

    from rfly_terrain.ros import terrain_node

    node, executor, may_read = node

    def start(x, y):
        request = GetTerrainAltitude.Request(x=x, y=y)
        return executor.create_task(node._get_altitude, request, GetTerrainAltitude.Response())

    slow = start(1500.0, 0.0)
    while not node._waiting:
        executor.spin_once(timeout_sec=1.0)
    executor.spin_until_future_complete(quick := start(0.0, 0.0))
    assert quick.result().altitude == pytest.approx(whole.altitude(0.0, 0.0), abs=1e-6)
    assert not slow.done()
    monkeypatch.setattr(terrain_node, "SLOW_S", -1.0)
    node._update_diagnostics()
    level, notices = node._diagnostics._report()
    assert level == DiagnosticStatus.WARN
    assert "1 queries wait" in notices[0].text

    monkeypatch.setattr(terrain_node, "MOST_WAITING", 1)
    executor.spin_until_future_complete(third := start(-1500.0, 0.0))
    assert "ask again" in third.result().message
    may_read.set()
    executor.spin_until_future_complete(slow)
    assert slow.result().altitude == pytest.approx(whole.altitude(1500.0, 0.0), abs=1e-6)
    assert not node._waiting


def test_tiles_are_read_before_a_fleet_needs_them(node, whole):
    """No answer waits for the tiles of the next ones, which another thread reads meanwhile."""
    from rfly_suite.srv import GetTerrainAltitudes

    node, executor, may_read = node
    may_read.set()
    now = [0.0]
    node._ahead._clock = lambda: now[0]

    def ask_at(x):
        east = np.linspace(x, x + 100.0, 20)
        request = GetTerrainAltitudes.Request(x=east, y=np.full(20, 200.0))
        work = node._get_altitudes(request, GetTerrainAltitudes.Response())
        executor.spin_until_future_complete(task := executor.create_task(work))
        expected = whole.altitude(east, np.full(20, 200.0))
        np.testing.assert_allclose(task.result().altitude, expected, atol=1e-6)
        now[0] += 1.0

    ask_at(-900.0)
    may_read.clear()
    while not node._ahead._reading.locked():
        ask_at(-900.0 + 80.0 * now[0])
    may_read.set()
    while node._ahead._reading.locked():
        executor.spin_once(timeout_sec=1.0)
    may_read.clear()
    ask_at(-600.0 + 80.0 * now[0])


def test_the_window_follows_a_vehicle_and_stays_where_tiles_fail(node):
    """The window is read once at a time; where it cannot be read, the last one stays."""
    from diagnostic_msgs.msg import DiagnosticStatus
    from rfly_suite.msg import VehicleStateArray

    node, executor, may_read = node
    may_read.set()

    def states(x, y):
        message = VehicleStateArray(id=[3, 7], vehicle_type=[1, 1], source="test")
        message.header.frame_id = "map"
        message.position = [0.0, 0.0, 0.0, x, y, 0.0]
        message.orientation = [0.0, 0.0, 0.0, 1.0] * 2
        return message

    assert node._choose_geo_origin(node._terrain)[1].endswith("altitude of the map")
    before = node._window
    node._place._on_states(states(100.0, 100.0))
    assert not node._moving
    node._place._on_states(states(1000.0, 100.0))
    assert node._moving
    while node._moving:
        executor.spin_once(timeout_sec=1.0)
    assert node._window is not before
    assert sum(node._window.bounds[:2]) / 2 == pytest.approx(1000.0, abs=10.0)

    here = node._window
    node._place._on_states(states(-1500.0, 1500.0))
    while node._moving:
        executor.spin_once(timeout_sec=1.0)
    assert node._window is here
    node._unread_until_s = math.inf
    node._place._on_states(states(-1501.0, 1500.0))
    assert not node._moving
    node._unread_until_s = -math.inf
    node._place._on_states(states(-1501.0, 1500.0))
    assert node._moving, "it is tried again after a time"
    while node._moving:
        executor.spin_once(timeout_sec=1.0)
    assert node._unread_until_s > 0.0
    level, notices = node._diagnostics._report()
    assert level == DiagnosticStatus.WARN
    assert notices[0].text.startswith("the window stays behind: ")
    assert node._diagnostics.counters["failed_windows"] == 2

    node._place._on_states(states(1000.0, 100.0))
    node._update_diagnostics()
    level, notices = node._diagnostics._report()
    assert level == DiagnosticStatus.OK
    assert notices[0].text == "serving"


@pytest.mark.exhaustive
def test_tiles_on_a_server_that_is_slow_and_then_dies(domain_id, folder, whole):
    """A query waits for a tile of it, others do not, and a dead server is named in the answer."""
    from diagnostic_msgs.msg import DiagnosticStatus
    from fleet_harness import receive_diagnostics
    from node_harness import NodeProcess, Peer, diagnostic
    from range_server import RangeServer
    from rfly_suite.srv import GetTerrainAltitude

    may_answer = threading.Event()
    may_answer.set()

    def answer(handler):
        may_answer.wait()
        return False

    with RangeServer(folder, answer) as server:
        settings = {
            "map": "Country",
            "map_search_path": f"['{server.url}']",
            "window_samples": WINDOW,
        }
        with NodeProcess("terrain_node", domain_id, settings):
            peer = Peer(domain_id)

            def altitude(x, y):
                return peer.call(GetTerrainAltitude, "get_terrain_altitude", x=x, y=y)

            assert altitude(0.0, 0.0).altitude == pytest.approx(whole.altitude(0.0, 0.0))

            # slow
            may_answer.clear()
            client = peer.node.create_client(GetTerrainAltitude, "get_terrain_altitude")
            assert client.wait_for_service(30.0)
            slow = client.call_async(GetTerrainAltitude.Request(x=1500.0, y=0.0))
            reports = receive_diagnostics(peer)

            def told():
                report = diagnostic(reports, "terrain")
                return report and "reading tiles is slow" in report[1] and report

            assert peer.spin_until(told)[0] == DiagnosticStatus.WARN[0]
            assert altitude(1.0, 0.0).altitude == pytest.approx(whole.altitude(1.0, 0.0))
            assert not slow.done()
            may_answer.set()
            answer = peer.spin_until(lambda: slow.done() and slow.result())
            assert answer.altitude == pytest.approx(whole.altitude(1500.0, 0.0))

            # dead
            server.answer = lambda handler: (handler.connection.close(), True)[1]
            answer = altitude(-1500.0, 0.0)
            assert not answer.success
            assert server.url in answer.message
            assert altitude(2.0, 0.0).altitude == pytest.approx(whole.altitude(2.0, 0.0))
            peer.close()
