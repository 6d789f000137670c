# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""terrain_node as other nodes meet it: a running process, real DDS."""

import math

import numpy as np
import pytest

pytestmark = pytest.mark.ros

MAP_E_COUNTS = np.array([[0, 100, 200, 300], [50, 150, 250, 350], [100, 200, 300, 500]])
MAP_E_TXT = "300,200,1600,-300,-200,600,100,0,1100"
"""terrain-format: sz 2 cm a count, so z_ned = -(600 + 2k)/100"""


def write_map(folder, name="E", counts=MAP_E_COUNTS, txt=MAP_E_TXT):
    import cv2

    cv2.imwrite(str(folder / f"{name}.png"), (counts + 32768).astype(np.uint16))
    (folder / f"{name}.txt").write_text(txt)
    return folder / f"{name}.png"


@pytest.fixture
def node(domain_id, tmp_path):
    from node_harness import NodeProcess

    parameters = {"map": f"'{write_map(tmp_path)}'", "map_search_path": f"['{tmp_path}']"}
    with NodeProcess("terrain_node", domain_id, parameters) as node:
        yield node


@pytest.fixture(scope="module")
def map_e(tmp_path_factory):
    return write_map(tmp_path_factory.mktemp("map"))


@pytest.fixture(scope="module")
def served(shared_domain_id, map_e):
    """A peer of one running node that serves map E, for tests that only read."""
    from node_harness import NodeProcess, Peer

    with NodeProcess("terrain_node", shared_domain_id, {"map": f"'{map_e}'"}):
        peer = Peer(shared_domain_id)
        yield peer
        peer.close()


def altitude(peer, x, y, frame_id=""):
    from rfly_suite.srv import GetTerrainAltitude

    return peer.call(
        GetTerrainAltitude, "get_terrain_altitude", x=float(x), y=float(y), frame_id=frame_id
    )


def cloud_points(message):
    """x, y, z as sensor_msgs' definition says, byte by byte: independent of our converter."""
    import struct

    offsets = {f.name: f.offset for f in message.fields}
    data = bytes(message.data)
    return np.array(
        [
            [
                struct.unpack_from(
                    "<f", data, r * message.row_step + c * message.point_step + offsets[n]
                )[0]
                for n in "xyz"
            ]
            for r in range(message.height)
            for c in range(message.width)
        ]
    )


def late_cloud(peer):
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import PointCloud2

    qos = QoSProfile(
        depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
    )
    received = peer.receive(PointCloud2, "outTerrainPoint", qos)
    return peer.spin_until(lambda: received and received[-1])


def test_a_late_subscriber_gets_the_cloud_in_enu(served):
    """A subscriber that joins long after the start gets every sample.

    Samples are at the place and height of the format's formula.
    """
    assert altitude(served, 0, 0).success
    cloud = late_cloud(served)
    assert (cloud.header.frame_id, cloud.height, cloud.width, cloud.is_dense) == ("map", 3, 4, True)
    expected = [
        (-2 + 2 * row, -3 + 2 * column, (600 + 2 * MAP_E_COUNTS[row, column]) / 100)
        for row in range(3)
        for column in range(4)
    ]
    np.testing.assert_allclose(cloud_points(cloud), expected, atol=1e-5)


def test_map_ned_gives_the_sdks_own_numbers(domain_id, peer, tmp_path):
    """outTerrainPoint in map_ned: tuples 0, 1, 4 and 11 of the format's example 12."""
    from node_harness import NodeProcess

    parameters = {"map": f"'{write_map(tmp_path)}'", "frame_id": "map_ned"}
    with NodeProcess("terrain_node", domain_id, parameters):
        cloud = late_cloud(peer)
        assert cloud.header.frame_id == "map_ned"
        points = cloud_points(cloud)
        np.testing.assert_allclose(
            points[[0, 1, 4, 11]], [(-3, -2, -6), (-1, -2, -8), (-3, 0, -7), (3, 2, -16)], atol=1e-5
        )
        assert altitude(peer, 0, 0).altitude == pytest.approx(-10, abs=1e-5)


def test_altitude_service(served):
    """Altitudes inside and outside, in ENU and NED, are the format's examples 3 and 4.

    x and y change places between the frames.
    """
    cases = [((0, 0), -10, True), ((-2, -1), -7.5, True), ((2.5, 1.5), -14.375, True)]
    cases += [
        ((100, 0), -13, False),
        ((0, -50), -9, False),
        ((-1000, 1000), -8, False),
        ((-2, 50), -9, False),
    ]
    for (north, east), down, inside in cases:
        ned = altitude(served, north, east, "map_ned")
        assert (ned.success, ned.inside) == (True, inside)
        assert ned.altitude == pytest.approx(down, abs=1e-4)
        enu = altitude(served, east, north, "map")
        assert enu.altitude == pytest.approx(-down, abs=1e-4)
        assert altitude(served, east, north).altitude == enu.altitude


def test_normals_point_out_of_the_ground(served):
    """The cell around (-2, -1) NED has z_up that rises 1 m a metre north and 0.5 m a metre east."""
    enu = altitude(served, -1.0, -2.0, "map").normal
    ned = altitude(served, -2.0, -1.0, "map_ned").normal
    length = math.sqrt(0.5**2 + 1**2 + 1)
    np.testing.assert_allclose([enu.x, enu.y, enu.z], np.array([-0.5, -1, 1]) / length, atol=1e-6)
    np.testing.assert_allclose([ned.x, ned.y, ned.z], np.array([-1, -0.5, -1]) / length, atol=1e-6)


def test_latitude_and_longitude(domain_id, peer, tmp_path):
    """The ground at the origin is 10 m above its altitude; 1e-5° of latitude are 1.1117 m north."""
    from node_harness import NodeProcess

    place = "[47.0, 8.0, 500.0]"
    parameters = {"map": f"'{write_map(tmp_path)}'", "geo_origin": place}
    with NodeProcess("terrain_node", domain_id, parameters):
        at_origin = altitude(peer, 47.0, 8.0, "wgs84")
        assert (at_origin.success, at_origin.inside) == (True, True)
        assert at_origin.altitude == pytest.approx(510.0, abs=1e-4)
        assert at_origin.normal.z > 0.0

        north = altitude(peer, 47.00001, 8.0, "wgs84")
        expected = altitude(peer, 0.0, 1.1117, "map").altitude + 500.0
        assert north.altitude == pytest.approx(expected, abs=1e-3)

        exchanged = altitude(peer, 8.0, 47.0, "wgs84")
        assert not exchanged.success
        assert "the two seem to be exchanged" in exchanged.message
        assert "latitude is 91" in altitude(peer, 91.0, 8.0, "wgs84").message


@pytest.mark.parametrize(
    ("x", "y", "frame_id", "what"),
    [
        (math.nan, 0.0, "", "x: nan"),
        (0.0, math.inf, "map", "y: inf"),
        (0.0, 0.0, "mars", "'mars'"),
    ],
)
def test_bad_queries_are_refused_by_name(served, x, y, frame_id, what):
    """The service says what is wrong and the node stays up."""
    answer = altitude(served, x, y, frame_id)
    assert not answer.success
    assert what in answer.message
    assert altitude(served, 0, 0).success


def test_many_altitudes_in_one_call(served):
    """Arrays, with and without normals; lengths that disagree are refused."""
    from rfly_suite.srv import GetTerrainAltitudes

    name = "get_terrain_altitudes"
    answer = served.call(
        GetTerrainAltitudes,
        name,
        x=[0.0, -2, 100],
        y=[0.0, -1, 0],
        frame_id="map_ned",
        want_normals=True,
    )
    assert answer.success
    np.testing.assert_allclose(answer.altitude, [-10, -7.5, -13], atol=1e-4)
    assert list(answer.inside) == [1, 1, 0]
    normals = np.reshape(answer.normal, (3, 3))
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-9)
    assert (normals[:, 2] < 0).all()
    answer = served.call(GetTerrainAltitudes, name, x=[0.0], y=[0.0])
    assert answer.success
    assert len(answer.normal) == 0
    answer = served.call(GetTerrainAltitudes, name, x=[0.0, 1.0], y=[0.0])
    assert not answer.success
    assert "x has 2 values and y 1" in answer.message
    answer = served.call(GetTerrainAltitudes, name, x=[0.0, math.nan], y=[0.0, 1.0])
    assert not answer.success
    assert "x[1]: nan" in answer.message
    answer = served.call(GetTerrainAltitudes, name)
    assert answer.success
    assert len(answer.altitude) == 0


def test_a_reload_swaps_the_map_and_a_failed_one_keeps_it(node, peer, tmp_path):
    """load_terrain brings a new cloud and new answers.

    A broken map leaves everything as it was, and /diagnostics says so.
    """
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import diagnostic
    from rclpy.qos import QoSProfile
    from rfly_suite.srv import LoadTerrain

    reports = peer.receive(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
    flat = write_map(tmp_path, "flat", np.zeros((5, 6)), "100,100,700,-100,-100,700,0,0,700")
    loaded = peer.call(LoadTerrain, "load_terrain", map=str(flat))
    assert loaded.success, loaded.message
    assert (loaded.rows, loaded.columns) == (5, 6)
    np.testing.assert_allclose(loaded.extent, [-1, 1, -1, 1])
    assert altitude(peer, 0, 0).altitude == pytest.approx(7)
    assert late_cloud(peer).width == 6
    peer.spin_until(lambda: (diagnostic(reports, "terrain") or [9])[0] == 0)

    (tmp_path / "broken.png").write_bytes(b"no picture")
    (tmp_path / "broken.txt").write_text(MAP_E_TXT)
    for name, what in [(tmp_path / "broken.png", "broken.png"), ("no_such_map", "no_such_map")]:
        failed = peer.call(LoadTerrain, "load_terrain", map=str(name))
        assert not failed.success
        assert what in failed.message
        assert altitude(peer, 0, 0).altitude == pytest.approx(7)
    assert late_cloud(peer).width == 6

    def said():
        level, message, values = diagnostic(reports, "terrain") or (0, "", {})
        return level == 2 and "no_such_map" in message and values["failed_loads"] == "2"

    peer.spin_until(said)


def test_a_node_without_a_map_stays_up_and_says_so(domain_id, peer, tmp_path):
    """A wrong name at the start is an error on /diagnostics; load_terrain heals it."""
    from node_harness import NodeProcess
    from rfly_suite.srv import LoadTerrain

    with NodeProcess(
        "terrain_node", domain_id, {"map": "nowhere", "map_search_path": f"['{tmp_path}']"}
    ):
        answer = altitude(peer, 0, 0)
        assert not answer.success
        assert "nowhere" in answer.message
        assert "load_terrain" in answer.message
        assert peer.call(LoadTerrain, "load_terrain", map=str(write_map(tmp_path))).success
        assert altitude(peer, 0, 0, "map_ned").altitude == pytest.approx(-10, abs=1e-4)


def test_terrain_map_rebuilds_the_same_height_map(served, map_e):
    """A consumer on another machine answers bit by bit as the file does."""
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
    from rfly_suite.msg import TerrainMap

    from rfly_terrain import HeightMap
    from rfly_terrain.files.terrain_message import msg_to_height_map

    qos = QoSProfile(
        depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
    )
    received = served.receive(TerrainMap, "terrain_map", qos)
    message = served.spin_until(lambda: received and received[-1])
    assert (message.name, message.rows, message.columns, message.header.frame_id) == (
        "E",
        3,
        4,
        "map",
    )
    assert message.height[1 * 4 + 2] == pytest.approx(11.0)  # row 1, column 2: count 250
    assert message.origin_x + 1 * message.step_x == pytest.approx(0.0)
    assert message.origin_y + 2 * message.step_y == pytest.approx(1.0)
    there = msg_to_height_map(message)
    here = HeightMap.load(str(map_e))
    x, y = np.random.default_rng(1).uniform(-4, 4, (2, 1000))
    np.testing.assert_array_equal(there.altitude(x, y), here.altitude(x, y))
    assert there.sha256 == here.sha256 == message.sha256


def test_static_transform_to_map_ned(served):
    """/tf_static, for someone who comes late: half a turn about the north-east axis."""
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from tf2_msgs.msg import TFMessage

    assert altitude(served, 0, 0).success
    received = served.receive(
        TFMessage, "/tf_static", QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    )
    transform = served.spin_until(
        lambda: next(
            (
                t
                for message in received
                for t in message.transforms
                if t.child_frame_id == "map_ned"
            ),
            None,
        )
    )
    q = transform.transform.rotation
    assert transform.header.frame_id == "map"
    np.testing.assert_allclose(
        [q.x, q.y, q.z, q.w], [math.sqrt(0.5), math.sqrt(0.5), 0, 0], atol=1e-12
    )


def test_a_thousand_by_a_thousand_map_arrives_whole(domain_id, peer, tmp_path):
    """A million points, none thinned out; and with a limit, a stride over both axes."""
    from node_harness import NodeProcess

    counts = np.add.outer(np.arange(1000), 3 * np.arange(1000))
    big = write_map(tmp_path, "big", counts, "50000,50000,9990,-50000,-50000,0,49900,49900,9000")
    with NodeProcess("terrain_node", domain_id, {"map": f"'{big}'"}) as node:
        cloud = late_cloud(peer)
        assert (cloud.height, cloud.width, len(cloud.data)) == (1000, 1000, 12_000_000)
        assert node.stop() == 0
    with NodeProcess(
        "terrain_node", domain_id, {"map": f"'{big}'", "cloud_max_points": "10000"}
    ) as node:
        thin = peer.spin_until(lambda: late_cloud(peer).height < 1000 and late_cloud(peer))
        assert (thin.height, thin.width) == (100, 100)


def test_a_frame_of_tf_serves_queries(served):
    """x, y and altitude are those of a turned and shifted frame. A tilted frame is refused."""
    from geometry_msgs.msg import TransformStamped
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from tf2_msgs.msg import TFMessage

    def transform(child, rotation):
        t = TransformStamped(child_frame_id=child)
        t.header.frame_id = "map"
        t.transform.translation.x = -1.0
        t.transform.translation.y = -3.0
        t.transform.translation.z = 2.0
        q = t.transform.rotation
        q.x, q.y, q.z, q.w = rotation
        return t

    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    h = math.sqrt(0.5)
    sender = served.publisher(TFMessage, "/tf_static", qos)
    sender.publish(
        TFMessage(
            transforms=[transform("site", (0.0, 0.0, h, h)), transform("tilted", (h, 0.0, 0.0, h))]
        )
    )
    # site: x points north, y west, origin at east -1, north -3, 2 m up. (1, 0) there is east -1,
    # north -2.
    answer = served.spin_until(lambda: (a := altitude(served, 1, 0, "site")).success and a)
    assert answer.altitude == pytest.approx(7.5 - 2, abs=1e-4)
    length = math.sqrt(0.5**2 + 1**2 + 1)
    np.testing.assert_allclose(
        [answer.normal.x, answer.normal.y, answer.normal.z],
        np.array([-1, 0.5, 1]) / length,
        atol=1e-6,
    )
    refused = altitude(served, 1, 0, "tilted")
    assert not refused.success
    assert "not vertical" in refused.message


def latched(peer, msg_type, topic):
    """Receive messages as a late subscriber: only with durability transient local."""
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

    qos = QoSProfile(
        depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
    )
    return peer.receive(msg_type, topic, qos)


def test_terrain_marker_is_the_ground_of_the_map(served):
    """6 cells, 2 triangles each; all samples are corners, at the height of the format's formula."""
    from visualization_msgs.msg import Marker

    first = latched(served, Marker, "terrain_marker")
    marker = served.spin_until(lambda: first and first[-1])
    assert (marker.header.frame_id, marker.ns, marker.type, marker.action) == (
        "map",
        "terrain",
        Marker.TRIANGLE_LIST,
        0,
    )
    assert (marker.scale.x, marker.scale.y, marker.scale.z, marker.pose.orientation.w) == (
        1,
        1,
        1,
        1,
    )
    expected = {
        (-2 + 2 * r, -3 + 2 * c): 6 + 0.02 * MAP_E_COUNTS[r, c] for r in range(3) for c in range(4)
    }
    assert len(marker.points) == len(marker.colors) == 36
    assert {(p.x, p.y): pytest.approx(p.z, abs=1e-5) for p in marker.points} == expected
    assert all(colour.a == 1 for colour in marker.colors)
    late = latched(served, Marker, "terrain_marker")
    assert served.spin_until(lambda: late and late[-1]) == marker, "kept for those who come later"


def test_terrain_marker_follows_the_map_and_its_limit(domain_id, peer, tmp_path):
    """Another map is shown to who listens, thinned to marker_max_triangles."""
    from node_harness import NodeProcess
    from rfly_suite.srv import LoadTerrain
    from visualization_msgs.msg import Marker

    rise = np.arange(40)[:, None] * 5 + np.zeros((1, 30), int)
    big = write_map(tmp_path, "big", rise)
    parameters = {
        "map": f"'{write_map(tmp_path)}'",
        "map_search_path": f"['{tmp_path}']",
        "marker_max_triangles": "10",
    }
    with NodeProcess("terrain_node", domain_id, parameters):
        shown = latched(peer, Marker, "terrain_marker")
        first = peer.spin_until(lambda: shown and shown[-1])
        assert len(first.points) == 3 * 6, "1 x 3 quads of 2 triangles, where 2 x 3 would be 12"
        assert peer.call(LoadTerrain, "load_terrain", map=str(big)).success
        second = peer.spin_until(lambda: shown[-1] != first and shown[-1])
        assert len(second.points) == 3 * 8, "2 x 2 quads"
        assert {(p.x, p.y) for p in second.points} == {
            (x, y) for x in (-2, 0, 2) for y in (-3, 0, 3)
        }


@pytest.mark.needs("rasterio")
@pytest.mark.parametrize(
    ("west", "expected"), [(-10, {(10, 200, 30)}), (990, None)], ids=["on the map", "off the map"]
)
def test_terrain_marker_shows_a_picture_of_the_ground(domain_id, peer, tmp_path, west, expected):
    """Its colour is that of all corners; one of other ground is named, and heights keep theirs."""
    import cv2
    from node_harness import NodeProcess
    from visualization_msgs.msg import Marker

    cv2.imwrite(str(tmp_path / "photo.png"), np.full((8, 8, 3), (30, 200, 10), np.uint8))
    table = f"column,row,x,y\n0,0,{west},10\n8,0,{west + 20},10\n0,8,{west},-10\n"
    (tmp_path / "photo.csv").write_text(table)
    parameters = {"map": f"'{write_map(tmp_path)}'", "imagery": f"'{tmp_path}/photo.png'"}
    with NodeProcess("terrain_node", domain_id, parameters) as node:
        shown = latched(peer, Marker, "terrain_marker")
        marker = peer.spin_until(lambda: shown and shown[-1])
        if expected is None:
            peer.spin_until(lambda: "shows no ground of the map" in node.output)
    colours = {
        tuple(round(255 * part) for part in (colour.r, colour.g, colour.b))
        for colour in marker.colors
    }
    assert (colours == expected) == (expected is not None)


@pytest.mark.parametrize(
    "wrong", [{"step_x": 1e308}, {"step_y": 5e-324}, {"origin_x": -3e38}, {"step_x": float("nan")}]
)
def test_a_map_that_is_no_place_of_this_world_is_refused(wrong):
    """The cells of such a map cannot be counted without an overflow later."""
    from rfly_suite.msg import TerrainMap

    from rfly_common.errors import TerrainFormatError
    from rfly_terrain.files.terrain_message import msg_to_height_map

    good = {
        "name": "odd",
        "rows": 2,
        "columns": 3,
        "step_x": 5.0,
        "step_y": 5.0,
        "height": [0.0] * 6,
    }
    assert msg_to_height_map(TerrainMap(**good)).rows == 2
    with pytest.raises(TerrainFormatError, match="expected places up to"):
        msg_to_height_map(TerrainMap(**{**good, **wrong}))
