# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The trajectory_node from outside: a running process, real DDS, a latched terrain_map."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fleet_harness import (
    TerrainSource,
    fleet_start,
    ground,
    positions,
    receive_diagnostics,
    receive_states,
    seconds,
    stamp,
    told,
)

from rfly_common.frames import enu_to_ned, quat_rotate
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.ros

FLEET = """
version: 1
defaults:
  type: car_blue
  shape: {type: circle, center: [0, 0], radius: 120}
  speed: 10
vehicles:
  - {name: car, id: 11, count: 3, spacing: even, scale: 2}
  - {name: walker, id: 30, type: 30, delay: 3600, fit_ground: true, \
shape: {type: line, from: [50, 60], to: [50, 160]}}
  - {name: drone, id: 40, type: 3, kind: multirotor, altitude: {agl: 15}}
"""
BIG_FLEET = """
version: 1
vehicles:
  - {id: 1, type: 3, count: 21, spacing: even, \
shape: {type: circle, center: [0, 0], radius: 120}, speed: 10}
"""


@pytest.fixture
def fleet_file(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return str(path)


@pytest.fixture
def hears_much():
    return True


@pytest.fixture
def start(domain_id):
    """Start trajectory_node with parameters, and stop it when the test is over."""
    from contextlib import ExitStack

    from node_harness import NodeProcess

    with ExitStack() as stack:
        yield lambda **parameters: stack.enter_context(
            NodeProcess("trajectory_node", domain_id, parameters)
        )


@pytest.fixture(scope="module")
def served(shared_domain_id, tmp_path_factory):
    """A peer of one running node with FLEET on ground(), for tests that only read.

    Its terrain_map is latched.
    """
    from node_harness import NodeProcess, Peer

    path = tmp_path_factory.mktemp("fleet") / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    peer = Peer(shared_domain_id, events=True)
    TerrainSource(peer).publish(ground())
    with NodeProcess("trajectory_node", shared_domain_id, {"fleet": f"'{path}'"}):
        yield peer
    peer.close()


def test_vehicles_are_on_the_ground_and_where_their_paths_lead(served):
    """Every state of 2 s is on the ground and on its path.

    z is the map's altitude, and the cars go round as 10 m/s on a radius of 120 m say.
    """
    terrain = ground()
    states = receive_states(served)
    start = fleet_start(served)
    served.spin_until(
        lambda: states and stamp(states[-1].header) > max(start, stamp(states[0].header)) + 2.0
    )

    first = states[0]
    assert first.source == "/trajectory_node"
    assert first.header.frame_id == "map"
    assert list(first.id) == [11, 12, 13, 30, 40]
    assert list(first.vehicle_type) == [50, 50, 50, 30, 3]
    assert list(first.fit_ground) == [0, 0, 0, 1, 0]
    assert list(first.scale) == [2.0] * 9 + [1.0] * 6

    # on the ground, and along it
    height = np.array([0, 0, 0, 0, 15.0])
    for message in states:
        p = positions(message)
        np.testing.assert_allclose(p[:, 2], terrain.altitude(p[:, 0], p[:, 1]) + height, atol=1e-6)
        np.testing.assert_allclose(p[3, :2], [50, 60], atol=1e-9)
        q = np.asarray(message.orientation).reshape(-1, 4)
        up = quat_rotate(q, np.array([0.0, 0.0, 1.0]))
        np.testing.assert_allclose(
            up[:4], terrain.normal(p[:4, 0], p[:4, 1], smooth=True), atol=1e-12
        )

    # round the circle
    angle = np.array([math.atan2(*positions(message)[0, 1::-1]) for message in states])
    times = np.array([stamp(message.header) for message in states])
    expected = np.maximum(times - start, 0.0) * 10.0 / 120.0
    np.testing.assert_allclose(
        np.remainder(angle - expected + math.pi, 2 * math.pi), math.pi, atol=1e-6
    )

    assert np.median(np.diff(times)) == pytest.approx(0.02, abs=0.01)


def test_poses_transforms_and_paths_of_each_vehicle(served):
    """Poses, transforms and paths agree with vehicle_states; a late subscriber gets the path."""
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.qos import LATCHED, STATE_OUT, TF

    terrain = ground()
    states = receive_states(served)
    poses = served.receive(PoseStamped, "car_2/pose", STATE_OUT)
    transforms = served.receive(TFMessage, "/tf", TF)

    def together():
        by_stamp = {stamp(state.header): state for state in states}
        for pose in reversed(poses):
            for message in reversed(transforms):
                time = stamp(pose.header)
                if time in by_stamp and stamp(message.transforms[0].header) == time:
                    return by_stamp[time], pose, message.transforms
        return None

    state, pose, frames = served.spin_until(together)
    p = pose.pose.position
    q = pose.pose.orientation
    np.testing.assert_array_equal([p.x, p.y, p.z], positions(state)[1])
    np.testing.assert_array_equal([q.x, q.y, q.z, q.w], np.asarray(state.orientation)[4:8])
    assert pose.header.frame_id == "map"
    names = ("car_1", "car_2", "car_3", "walker", "drone")
    assert [frame.child_frame_id for frame in frames] == [f"{name}/base_link" for name in names]
    assert {frame.header.frame_id for frame in frames} == {"map"}
    t = frames[4].transform.translation
    q = frames[4].transform.rotation
    np.testing.assert_array_equal([t.x, t.y, t.z], positions(state)[4])
    np.testing.assert_array_equal([q.x, q.y, q.z, q.w], np.asarray(state.orientation)[16:20])

    late = served.receive(Path, "walker/path", LATCHED)
    (path,) = served.spin_until(lambda: late)
    assert path.header.frame_id == "map"
    track = np.array(
        [
            [
                p.pose.position.x,
                p.pose.position.y,
                p.pose.position.z,
            ]
            for p in path.poses
        ]
    )
    np.testing.assert_allclose(track[[0, -1], :2], [[50, 60], [50, 160]], atol=1e-9)
    np.testing.assert_allclose(track[:, 2], terrain.altitude(track[:, 0], track[:, 1]), atol=1e-9)
    served.spin_for(0.3)
    assert len(late) == 1


def test_the_terrain_comes_changes_and_fails(start, peer, fleet_file):
    """The node follows a terrain that comes, changes and fails.

    No terrain: no states and a diagnostic. One announced by name alone is loaded if it is the same.
    A new one is followed, and so are the paths. One that contradicts itself is reported, and the
    ground before it is kept.
    """
    from nav_msgs.msg import Path
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED

    source = TerrainSource(peer)
    states = receive_states(peer)
    diagnostics = receive_diagnostics(peer)
    paths = peer.receive(Path, "car_1/path", LATCHED)

    def on_ground_of(terrain):
        p = positions(states[-1])[:3]
        return np.allclose(p[:, 2], terrain.altitude(p[:, 0], p[:, 1]), atol=1e-6)

    start(fleet=f"'{fleet_file}'")
    level, text, values = peer.spin_until(lambda: told(diagnostics))
    assert (level, text) == (3, "no terrain_map has come yet: is terrain_node running?")

    demo = HeightMap.load("JacksboroFault")
    impostor = HeightMap(
        demo.heights + 1,
        origin_x=0.0,
        origin_y=0.0,
        step_x=1.0,
        step_y=1.0,
        name=demo.name,
    )
    source.publish(impostor, max_cells=0)
    level, text, values = peer.spin_until(lambda: (d := told(diagnostics)) and d[0] == 2 and d)
    assert "hold other heights than the publisher's" in text
    assert (states, paths) == ([], [])

    source.publish(demo, max_cells=0)
    level, text, values = peer.spin_until(lambda: (d := told(diagnostics)) and d[0] == 0 and d)
    assert (text, values["vehicles"], values["terrain"]) == (
        "publishing",
        "5",
        "JacksboroFault",
    )
    peer.spin_until(lambda: states and paths)
    assert on_ground_of(demo)

    waves = ground(lift=1000.0)
    source.publish(waves)
    peer.spin_until(lambda: positions(states[-1])[0, 2] > 900.0 and len(paths) == 2)
    assert on_ground_of(waves)
    assert paths[1].poses[0].pose.position.z > 900.0
    assert stamp(states[-1].header) > stamp(states[0].header)

    source.publish_message(
        TerrainMap(name="broken", rows=3, columns=3, step_x=1.0, step_y=1.0, height=[1.0, 2.0])
    )
    level, text, values = peer.spin_until(lambda: (d := told(diagnostics)) and d[0] == 2 and d)
    assert "2 heights for 3 rows x 3 columns" in text
    assert values["refused_terrains"] == "2"
    count = len(states)
    peer.spin_until(lambda: len(states) > count + 10)
    assert on_ground_of(waves)


def test_a_large_fleet_in_map_ned_with_topics_for_each_vehicle(start, peer, tmp_path):
    """A fleet in map_ned has the same vehicles in the other axes.

    21 of them have topics of their own because the parameter asks for them.
    """
    path = tmp_path / "big.yaml"
    path.write_text(BIG_FLEET, encoding="utf-8")
    terrain = ground()
    TerrainSource(peer).publish(terrain)
    states = receive_states(peer)
    start(
        fleet=f"'{path}'",
        frame_id="map_ned",
        publish_per_vehicle="always",
        start_time="1.0",
    )
    message = peer.spin_until(lambda: states and states[-1])
    assert message.header.frame_id == "map_ned"
    p = positions(message)
    np.testing.assert_allclose(np.hypot(p[:, 0], p[:, 1]), 120.0, atol=1e-9)
    np.testing.assert_allclose(p[:, 2], terrain.altitude_ned(p[:, 0], p[:, 1]), atol=1e-6)
    q = np.asarray(message.orientation).reshape(-1, 4)
    up = quat_rotate(q, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(
        up, enu_to_ned(terrain.normal(p[:, 1], p[:, 0], smooth=True)), atol=1e-12
    )
    velocity = np.asarray(message.velocity).reshape(-1, 3)
    forward = quat_rotate(q, np.array([1.0, 0.0, 0.0]))[:, :2]
    cross = forward[:, 0] * velocity[:, 1] - forward[:, 1] * velocity[:, 0]
    np.testing.assert_allclose(cross, 0.0, atol=1e-5)
    assert np.all((forward * velocity[:, :2]).sum(-1) > 9.0)
    # counter-clockwise in map is clockwise in map_ned: with x north and y east, the cross product
    # is negative
    assert np.all(p[:, 0] * velocity[:, 1] - p[:, 1] * velocity[:, 0] < 0.0)
    topics = dict(peer.node.get_topic_names_and_types())
    assert {"/vehicle_1/pose", "/vehicle_21/path"} <= set(topics)


def test_a_large_fleet_off_the_map_is_one_message_and_a_warning(start, peer, tmp_path):
    path = tmp_path / "far.yaml"
    path.write_text(BIG_FLEET.replace("[0, 0]", "[0, 150]"), encoding="utf-8")
    TerrainSource(peer).publish(ground())
    states = receive_states(peer)
    diagnostics = receive_diagnostics(peer)
    start(fleet=f"'{path}'")
    _, text, _ = peer.spin_until(lambda: (d := told(diagnostics)) and d[0] == 1 and d)
    assert text.startswith("vehicle 'vehicle_1': about ")
    outside = 2 * math.acos((200 - 150) / 120) * 120
    assert float(text.split()[3]) == pytest.approx(outside, abs=3.0)
    peer.spin_until(lambda: states)
    assert len(states[0].id) == 21
    assert not [name for name, _ in peer.node.get_topic_names_and_types() if "/vehicle_1/" in name]


def test_a_fleet_that_is_wrong_is_told_by_a_node_that_stays_up(start, peer, tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(FLEET.replace("spacing: even", "spacing: odd"), encoding="utf-8")
    TerrainSource(peer).publish(ground())
    diagnostics = receive_diagnostics(peer)
    node = start(fleet=f"'{path}'")
    _, message, values = peer.spin_until(lambda: (d := told(diagnostics)) and d[0] == 2 and d)
    assert message.startswith(f"{path}:8: vehicles[0].spacing: 'odd' is not allowed")
    assert values["vehicles"] == "0"
    count = len(diagnostics)
    peer.spin_until(lambda: len(diagnostics) > count + 1)
    assert node.process.poll() is None
    assert node.stop() == 0


def test_simulated_time_drives_the_fleet_and_a_jump_back_restarts_it(start, peer, fleet_file):
    from builtin_interfaces.msg import Time
    from rosgraph_msgs.msg import Clock

    from rfly_common.ros.qos import LATCHED, STATE_OUT

    TerrainSource(peer).publish(ground())
    states = receive_states(peer)
    diagnostics = receive_diagnostics(peer)
    start(fleet=f"'{fleet_file}'", use_sim_time="true")
    clock = peer.publisher(Clock, "/clock", STATE_OUT)
    starts = []
    peer.node.create_subscription(
        Time, "fleet_start", lambda time: starts.append(seconds(time)), LATCHED
    )

    def run_until(begin, ready):
        """Publish a clock that starts at `begin` and advances 20 ms a step."""
        time = begin
        while not ready():
            clock.publish(Clock(clock=Time(sec=int(time), nanosec=round(time % 1 * 1e9))))
            time += 0.02
            peer.spin_for(0.005)
            assert time < begin + 100.0
        return time

    def angle(message):
        return math.atan2(*positions(message)[0, 1::-1])

    def check():
        """Check that vehicles stand until the start, a whole second, and then are in place."""
        assert 0.0 < starts[-1] - stamp(states[0].header) <= 1.0
        assert starts[-1] == pytest.approx(round(starts[-1]), abs=1e-6)
        for message in states:
            elapsed = max(0.0, stamp(message.header) - starts[-1])
            assert angle(message) == pytest.approx(elapsed * 10.0 / 120.0, abs=1e-6)

    run_until(1000.0, lambda: starts and states and stamp(states[-1].header) > starts[0] + 2.0)
    check()
    states.clear()
    run_until(
        500.0,
        lambda: len(starts) == 2 and states and starts[1] + 1.0 < stamp(states[-1].header) < 900.0,
    )
    states[:] = [message for message in states if stamp(message.header) < 900.0]
    check()
    begin = starts[1] - 0.5  # shortly before the run began: the same run again
    run_until(begin, lambda: begin < stamp(states[-1].header) < begin + 0.2)
    states[:] = states[-1:]
    run_until(begin + 0.3, lambda: states and stamp(states[-1].header) > starts[1] + 0.5)
    assert len(starts) == 2
    check()
    peer.spin_for(0.3)
    count = len(states)
    peer.spin_until(
        lambda: (d := told(diagnostics)) and d[0] == 1 and "/clock has not moved for" in d[1]
    )
    assert len(states) == count  # a clock that stands still publishes nothing


def shown(peer):
    """Return markers received later, by namespace and id, as RViz keeps them."""
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
    from visualization_msgs.msg import Marker, MarkerArray

    qos = QoSProfile(
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
    received = peer.receive(MarkerArray, "fleet_markers", qos)

    def scene():
        kept = {}
        for message in received:
            for marker in message.markers:
                if marker.action == Marker.DELETE:
                    kept.pop((marker.ns, marker.id), None)
                else:
                    kept[marker.ns, marker.id] = marker
        return kept

    return scene


def test_fleet_markers_show_vehicles_names_and_tracks(served):
    """Markers show vehicles, names and tracks, in the frames of /tf.

    Ids 11, 12, 13 share the circle; the walker and the drone have tracks of their own.
    """
    scene = shown(served)
    markers = served.spin_until(scene)

    ids = {11: "car_1", 12: "car_2", 13: "car_3", 30: "walker", 40: "drone"}
    expected = {(ns, i) for ns in ("vehicles", "pins", "names") for i in ids} | {
        ("paths", i) for i in (11, 30, 40)
    }
    assert set(markers) == expected

    for number, name in ids.items():
        assert markers["names", number].text == name
        assert markers["vehicles", number].header.frame_id == f"{name}/base_link"

    # the walker's track is a line above the ground
    walk = markers["paths", 30]
    assert walk.header.frame_id == "map"
    first = walk.points[0]
    last = walk.points[-1]
    assert (first.x, first.y, last.x, last.y) == pytest.approx((50, 60, 50, 160), abs=1e-6)
    for point in (first, last):
        assert point.z == pytest.approx(ground().altitude(point.x, point.y) + 1.6, abs=0.05)

    # larger markers for larger vehicles
    long = (
        np.ptp([p.x for p in markers["vehicles", 11].points]),
        np.ptp([p.x for p in markers["vehicles", 30].points]),
    )
    assert long[0] == pytest.approx(4.3 * 2 * 4, abs=1.5), (
        "scale 2 of the fleet file, marker_scale 4"
    )
    assert long[1] < 0.5 * 4


def test_fleet_markers_of_vehicles_that_are_gone_are_deleted(peer, fleet_file, start, tmp_path):
    from rfly_suite.srv import LoadFleet

    TerrainSource(peer).publish(ground())
    start(fleet=f"'{fleet_file}'", marker_scale="1.0", file_folders=f"['{tmp_path}']")
    scene = shown(peer)
    peer.spin_until(lambda: ("vehicles", 40) in scene())
    line = "{type: line, from: [0, 0], to: [9, 0]}"
    other = tmp_path / "other.yaml"
    other.write_text(
        f"version: 1\nvehicles:\n  - {{name: one, id: 12, type: 3, shape: {line}, speed: 1}}\n",
        "utf-8",
    )
    assert peer.call(LoadFleet, "trajectory_node/load_fleet", fleet=str(other)).success
    peer.spin_until(
        lambda: set(scene()) == {(ns, 12) for ns in ("vehicles", "pins", "names", "paths")}
    )
    assert scene()["names", 12].text == "one"


CROSSING = """
version: 1
defaults: {type: car_blue, speed: 8}
vehicles:
  - {name: east, id: 1, shape: {type: line, from: [-40, 0], to: [40, 0]}}
  - {name: north, id: 2, shape: {type: line, from: [0, -40], to: [0, 40]}}
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("avoidance", [True, False])
def test_vehicles_that_cross_keep_clear_if_they_are_to(peer, start, tmp_path, avoidance):
    """The two plans are at the crossing after 5 s; a box stands on the way of the first one."""
    from rfly_suite.msg import PlacedObjectArray

    from rfly_common.ros.qos import LATCHED

    path = tmp_path / "crossing.yaml"
    path.write_text(CROSSING, encoding="utf-8")
    TerrainSource(peer).publish(ground())
    box = PlacedObjectArray(id=[7], position=[25.0, 0.0, 0.0], orientation=[0.0, 0.0, 0.0, 1.0])
    box.header.frame_id = "map"
    z = float(ground().altitude(25.0, 0.0))
    box.box_origin = [25.0, 0.0, z + 1.0]
    box.box_half_extent = [1.0, 1.0, 1.0]
    objects = peer.node.create_publisher(PlacedObjectArray, "placed_objects", LATCHED)
    objects.publish(box)
    start(fleet=f"'{path}'", avoidance=str(avoidance).lower(), time_scale=4.0)
    states = receive_states(peer)
    statuses = receive_diagnostics(peer)
    peer.spin_until(
        lambda: (
            states
            and stamp(states[-1].header) > fleet_start(peer) + 6.0
            and np.abs(positions(states[-1])[:, :2] - [(40, 0), (0, 40)]).max() < 3.0
        ),
        60.0,
    )
    there = np.array([positions(message)[:, :2] for message in states])
    apart = np.hypot(*(there[:, 0] - there[:, 1]).T).min()
    beside = np.hypot(*np.maximum(np.abs(there[:, 0] - (25.0, 0.0)) - 1.0, 0.0).T).min()
    if avoidance:
        assert apart > 2.0 * 2.0
        assert beside > 2.0
        peer.spin_until(lambda: told(statuses) and "late_s" in told(statuses)[2])
    else:
        assert beside == 0.0, "its plan leads through the box"


def test_vehicles_that_cannot_keep_clear_are_an_error(peer, start, tmp_path):
    """They need (8 + 0.1) m/s / 0.05 m/s² = 162 s to stop: a step may add 0.1 m/s."""
    slow = CROSSING.replace("speed: 8}", "speed: 8, limits: {acceleration: 0.05}}")
    path = tmp_path / "slow.yaml"
    path.write_text(slow, encoding="utf-8")
    TerrainSource(peer).publish(ground())
    statuses = receive_diagnostics(peer)
    start(fleet=f"'{path}'", avoidance="true")
    peer.spin_until(lambda: told(statuses) and told(statuses)[0] == 2)
    assert "cannot keep clear: a vehicle needs 162 s to stop" in told(statuses)[1]
