# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles of a running trajectory_node that leave their fleet for a nav_msgs/Path.

The others go on.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from fleet_harness import (
    TerrainSource,
    ground,
    positions,
    receive_diagnostics,
    receive_states,
    stamp,
    told,
)

from rfly_common.frames import quat_rotate

pytestmark = pytest.mark.ros

SPEED = 20.0
PACE = 4.0
"""Speed in fleet time, m/s, and fleet seconds a second."""
FLEET = """
version: 1
defaults: {type: 3, speed: {cruise: 20, acceleration: 4}, limits: {turn_radius: 10}}
vehicles:
  - {name: car, id: 1, count: 2, spacing: even, shape: {type: circle, center: [0, 0], radius: 120}}
  - {name: drone, id: 5, kind: multirotor, altitude: {agl: 30}, \
shape: {type: circle, center: [0, 0], radius: 80}}
"""
CAR_1, CAR_2, DRONE = range(3)


@pytest.fixture(scope="module")
def running(shared_domain_id, tmp_path_factory):
    """A peer of one node with FLEET on the way, its states and diagnostics.

    The last element is a function that sends a vehicle its path.
    """
    from nav_msgs.msg import Path
    from node_harness import NodeProcess, Peer

    from rfly_common.ros.qos import LATCHED

    file = tmp_path_factory.mktemp("follow") / "fleet.yaml"
    file.write_text(FLEET, encoding="utf-8")
    peer = Peer(shared_domain_id, events=True)
    TerrainSource(peer).publish(ground())
    states = receive_states(peer)
    diagnostics = receive_diagnostics(peer)
    parameters = {"fleet": f"'{file}'", "start_time": "1", "time_scale": str(PACE)}
    node = NodeProcess("trajectory_node", shared_domain_id, parameters)
    with node:
        peer.spin_until(lambda: states)
        names = ("car_1", "car_2", "drone")
        publishers = {name: peer.publisher(Path, f"{name}/follow_path", LATCHED) for name in names}
        yield (
            peer,
            states,
            diagnostics,
            lambda name, points, frame="map", headings=None: publishers[name].publish(
                path_message(points, frame, headings)
            ),
        )
    peer.close()


@pytest.fixture
def driving(running):
    """The running node with all vehicles on their rings at full speed."""
    peer, states, diagnostics, _ = running
    reset(peer, diagnostics)
    begin = time.time()  # before: states of the last run
    states.clear()
    peer.spin_until(
        lambda: (
            states
            and stamp(states[-1].header) > begin
            and np.hypot(*velocities(states[-1])[:, :2].T).min() > SPEED * PACE - 1e-2
        )
    )
    del states[:-1]
    return running


def reset(peer, diagnostics):
    from std_srvs.srv import Trigger

    diagnostics.clear()
    assert peer.call(Trigger, "/trajectory_node/reset").success
    peer.spin_until(
        lambda: (d := told(diagnostics)) and d[0] == 0 and d[2]["following_paths"] == ""
    )


def path_message(points, frame, headings=None):
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path

    message = Path()
    message.header.frame_id = frame
    for k, point in enumerate(points):
        pose = PoseStamped()
        if headings is not None:
            turned = pose.pose.orientation
            turned.z = math.sin(0.5 * headings[k])
            turned.w = math.cos(0.5 * headings[k])
        pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = (
            float(number) for number in point
        )
        message.poses.append(pose)
    return message


def velocities(message):
    """Return (n, 3) velocities; absent ones are zeros."""
    return np.reshape(message.velocity or np.zeros(3 * len(message.id)), (-1, 3))


def motion(states, vehicle):
    """Return times (m,), positions (m, 3), velocities (m, 3) of a vehicle in all states."""
    times = np.array([stamp(message.header) for message in states])
    place = np.array([positions(message)[vehicle] for message in states])
    velocity = np.array([velocities(message)[vehicle] for message in states])
    return times, place, velocity


def radii(states, vehicle):
    """Return distances from the ring's centre."""
    return np.hypot(*motion(states, vehicle)[1][:, :2].T)


def drive(driving, name, points, frame="map"):
    """Send a vehicle a path and wait until it stands at its end.

    Return all states meanwhile, `<name>/path` and the vehicle's row.
    """
    from nav_msgs.msg import Path

    from rfly_common.ros.qos import LATCHED

    peer, states, _, tell = driving
    vehicle = ("car_1", "car_2", "drone").index(name)
    paths = peer.receive(Path, f"{name}/path", LATCHED)
    peer.spin_until(lambda: paths)
    states.clear()
    peer.spin_until(lambda: len(states) > 3)
    tell(name, points, frame)
    peer.spin_until(lambda: len(paths) > 1)
    peer.spin_until(lambda: not velocities(states[-1])[vehicle].any())
    return list(states), paths[-1], vehicle


def assert_no_jump(states, vehicle):
    """Check that a vehicle moves from state to state as its velocities say.

    Velocities change by no more than fleet time allows for 4 m/s² along the way and, in turns of 10
    m, 40 m/s² across it. (A car's climb has the steps of the ground's cells.)
    """
    most = PACE**2 * (4.0 + SPEED**2 / 10.0)
    times, place, velocity = motion(states, vehicle)
    # an acceleration that turns round half way makes the mean velocity wrong by a quarter of it
    # times dt
    dt = np.diff(times)
    way = np.diff(place, axis=0)
    change = np.diff(velocity, axis=0)[:, :2]
    mean = 0.5 * (velocity[1:] + velocity[:-1])
    assert np.all(np.hypot(*(way - mean * dt[:, None])[:, :2].T) < 0.25 * most * dt**2 + 1e-3)
    climb = np.abs(velocity[:, 2])
    assert np.all(
        np.abs(way[:, 2]) < np.maximum(climb[1:], climb[:-1]) * dt + 0.25 * most * dt**2 + 1e-3
    )
    assert np.all(np.hypot(*change.T) < most * dt + 1e-2)


def test_a_car_leaves_its_ring_for_a_path_and_ends_there(driving):
    """A car leaves its ring without a jump in place or velocity and ends at the last pose.

    It stays on the ground: the pose's height is not its own. Its path is published anew. The other
    car keeps to the ring.
    """
    goal = [
        [140.0, 60.0, 500.0],
        [150.0, 150.0, 500.0],
        [20.0, 170.0, 500.0],
    ]
    states, path, vehicle = drive(driving, "car_1", goal)
    assert_no_jump(states, vehicle)

    # it ends at the last pose, on the ground
    _, place, _ = motion(states, vehicle)
    np.testing.assert_allclose(place[-1, :2], goal[-1][:2], atol=1e-6)
    np.testing.assert_allclose(place[:, 2], ground().altitude(place[:, 0], place[:, 1]), atol=1e-6)

    # it passes the first pose
    longest = np.hypot(*np.diff(place[:, :2], axis=0).T).max()  # on a busy machine states come late
    assert np.hypot(*(place[:, :2] - goal[0][:2]).T).min() < max(SPEED * PACE * 0.05, 0.6 * longest)

    np.testing.assert_allclose(radii(states[:3], vehicle), 120.0, atol=1e-9)
    np.testing.assert_allclose(radii(states, CAR_2), 120.0, atol=1e-9)

    # its path is published from its place to the end
    drawn = np.array([[p.pose.position.x, p.pose.position.y] for p in path.poses])
    np.testing.assert_allclose(drawn[-1], goal[-1][:2], atol=1e-9)
    assert np.hypot(*(drawn[0] - place[0, :2])) < SPEED * PACE

    peer, _, diagnostics, _ = driving
    peer.spin_until(lambda: told(diagnostics)[2]["following_paths"] == "car_1")


def test_a_drone_follows_heights_given_in_map_ned(driving):
    """A drone's path in north, east, down ends 90 m up, with a continuous climb."""
    peer, states, _, _ = driving

    # far from the path's beginning
    peer.spin_until(lambda: positions(states[-1])[DRONE, 1] < -70.0)
    states, _, vehicle = drive(
        driving, "drone", [[60.0, 100.0, -60.0], [-50.0, 120.0, -90.0]], "map_ned"
    )

    assert_no_jump(states, vehicle)
    times, place, velocity = motion(states, vehicle)
    np.testing.assert_allclose(place[-1], [120.0, -50.0, 90.0], atol=1e-6)

    # the climb has no step
    left = int(np.argmax(np.abs(radii(states, vehicle) - 80.0) > 1e-6))
    climbing = np.diff(velocity[left:, 2]) / np.diff(times[left:])
    # m/s²; a step of the climb would be more than twice that
    assert np.abs(climbing).max() < PACE**2 * 20.0

    assert np.hypot(*(place[:, :2] - [100.0, 60.0]).T).min() < SPEED * PACE * 0.05


def test_a_path_in_a_frame_of_its_own_waits_for_the_transform(driving):
    """A path in a frame 100 m east of map, turned by 90°, waits for the transform.

    The frame's x is north. The transform comes after the node has reported the wait.
    """
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.qos import TF_STATIC_OUT

    peer, states, diagnostics, tell = driving
    tell("car_1", [[0.0, 0.0, 0.0], [60.0, 0.0, 0.0]], "site")
    peer.spin_until(lambda: (d := told(diagnostics)) and "'site'" in d[1])
    transform = TransformStamped(child_frame_id="site")
    transform.header.frame_id = "map"
    transform.transform.translation.x = 100.0
    transform.transform.rotation.z = transform.transform.rotation.w = math.sqrt(0.5)
    peer.node.create_publisher(TFMessage, "/tf_static", TF_STATIC_OUT).publish(
        TFMessage(transforms=[transform])
    )
    peer.spin_until(lambda: np.hypot(*(positions(states[-1])[CAR_1, :2] - [100.0, 60.0])) < 1e-6)
    peer.spin_until(lambda: "'site'" not in told(diagnostics)[1])


@pytest.mark.parametrize(
    ("points", "frame", "text"),
    [
        ([[150.0, 0.0, 0.0]], "map", "poses: got 1, expected 2 to"),
        (
            [[150.0, 0.0, 0.0], [160.0, math.nan, 0.0]],
            "map",
            "poses[1]: its position is not finite",
        ),
        ([[150.0, 0.0, 0.0]] * 2, "map", "poses: all of them are in one place"),
        (
            [[0.0, 5000.0, 0.0], [0.0, 100.0, 0.0]],
            "map",
            "m from the vehicle, which follows paths that begin within",
        ),
        ([[150.0, 0.0, 0.0], [160.0, 0.0, 0.0]], "nowhere", "'nowhere'"),
        ([[150.0, 0.0, 0.0]] * 10_001, "map", "poses: 10001 of them, at most 10000"),
    ],
)
def test_a_path_that_is_none_is_told_and_the_vehicle_goes_on(driving, points, frame, text):
    """A diagnostic names vehicle and reason; the car keeps to its ring."""
    peer, states, diagnostics, tell = driving
    states.clear()
    tell("car_2", points, frame)
    peer.spin_until(lambda: (d := told(diagnostics)) and d[0] == 1 and text in d[1])
    assert told(diagnostics)[1].startswith("vehicle 'car_2' goes on and does not follow the path: ")
    count = len(states)
    peer.spin_until(lambda: len(states) > count + 10)
    np.testing.assert_allclose(radii(states, CAR_2), 120.0, atol=1e-9)
    _, place, _ = motion(states, CAR_2)
    assert np.all(np.hypot(*np.diff(place[:, :2], axis=0).T) > 0.0)


def test_an_empty_path_stops_a_car_on_its_ring_and_a_reset_brings_all_back(driving):
    """A car on its ring stops with 4 m/s²: 50 m from 20 m/s.

    A reset puts every vehicle at the beginning of its own ring.
    """
    peer, states, diagnostics, _ = driving
    stopped, _, vehicle = drive(driving, "car_2", [])
    assert_no_jump(stopped, vehicle)
    np.testing.assert_allclose(radii(stopped, vehicle), 120.0, atol=1e-9)
    times, _, velocity = motion(stopped, vehicle)
    braking = np.flatnonzero(np.hypot(*velocity[:, :2].T) < SPEED * PACE - 1e-2)
    assert times[-1] - times[braking[0]] == pytest.approx(5.0 / PACE, abs=0.3)
    reset(peer, diagnostics)
    states.clear()
    peer.spin_until(lambda: states and states[-1].velocity)
    np.testing.assert_allclose(
        [radii(states, i)[-1] for i in range(3)], [120.0, 120.0, 80.0], atol=1e-9
    )


def test_a_car_stops_at_a_cusp_and_goes_on_backwards(driving):
    """The poses lead north, then nose against the motion on a quarter of 20 m about (160, 160)."""
    peer, states, _, tell = driving
    turned = np.radians(np.arange(9.0, 91.0, 9.0))
    ahead = np.column_stack([np.full(11, 140.0), np.arange(60.0, 161.0, 10.0)])
    back = np.column_stack([160.0 - 20.0 * np.cos(turned), 160.0 - 20.0 * np.sin(turned)])
    points = np.column_stack([np.concatenate([ahead, back]), np.zeros(21)])

    states.clear()
    tell(
        "car_1",
        points,
        headings=np.concatenate([np.full(11, math.pi / 2), math.pi / 2 + turned]),
    )

    end = (160.0, 140.0)
    peer.spin_until(lambda: states and math.dist(positions(states[-1])[CAR_1][:2], end) < 1e-3)
    kept = list(states)
    assert_no_jump(kept, CAR_1)

    _, place, velocity = motion(kept, CAR_1)
    nose = np.array(
        [
            quat_rotate(np.reshape(m.orientation, (-1, 4))[CAR_1], np.array([1.0, 0, 0]))
            for m in kept
        ]
    )

    along = (nose * velocity).sum(axis=1)
    cusp = int(np.argmin(np.hypot(*(place[:, :2] - (140.0, 160.0)).T)))

    # ahead to the cusp, backwards from it
    assert abs(along[cusp]) < 4.0 * PACE
    assert along[:cusp].min() > -1e-6
    assert along[cusp + 1 :].max() < 1e-6
    assert along.min() < -5.0 * PACE, "it really drives backwards"

    assert nose[-1, :2] == pytest.approx((-1.0, 0.0), abs=1e-3)
