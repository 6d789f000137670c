# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Poses of a vehicle from /tf and /tf_static alone: by ROS's tf2_ros, and composed by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.ros

X = 12.0
Y = -7.0
YAW = np.pi / 2
"""Pose: m east, m north, heading north."""
GROUND = 25.0


@pytest.fixture(scope="module")
def nodes(shared_domain_id, tmp_path_factory):
    """A peer, and a vehicle 12 m east and 7 m south, heading north, on level ground 25 m high."""
    from node_harness import NodeProcess, Peer

    from rfly_terrain.files.writer import write_height_map
    from rfly_terrain.height_map.height_map import HeightMap

    level = HeightMap(
        np.full((41, 41), GROUND), origin_x=-20.0, origin_y=-20.0, step_x=1.0, step_y=1.0
    )
    path = tmp_path_factory.mktemp("map") / "level.png"
    write_height_map(level, path)
    terrain = {"map": f"'{path}'"}
    vehicle = {"start": f"[{X}, {Y}, {YAW}]", "tf_source": "truth", "ground": "terrain_map"}
    names = ("-r", "__ns:=/car", "-r", "terrain_map:=/terrain_map")
    with (
        NodeProcess("terrain_node", shared_domain_id, terrain),
        NodeProcess("amphibious_sim_node", shared_domain_id, vehicle, *names) as simulator,
    ):
        peer = Peer(shared_domain_id)
        try:
            peer.spin_until(
                lambda: "stands on" in simulator.output or simulator.process.poll() is not None
            )
            assert simulator.process.poll() is None, simulator.output
            yield peer
        finally:
            peer.close()


def matrix(transform):
    """Return the matrix (4, 4) of a Transform message, from its child frame to its frame.

    The quaternion's formula: Kuipers, 5.14.
    """
    t = transform.translation
    q = transform.rotation
    x = q.x
    y = q.y
    z = q.z
    w = q.w

    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), t.x],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), t.y],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), t.z],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def by_hand(peer):
    """A look-up that composes the newest published transforms on the way up to `map`."""
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.qos import TF, TF_STATIC_IN

    heard = [
        peer.receive(TFMessage, "/tf", TF),
        peer.receive(TFMessage, "/tf_static", TF_STATIC_IN),
    ]

    def up_to_map(frame):
        if frame == "map":
            return np.eye(4)
        latest = [
            t
            for messages in heard
            for m in messages
            for t in m.transforms
            if t.child_frame_id == frame
        ]
        above = up_to_map(latest[-1].header.frame_id) if latest else None
        return None if above is None else above @ matrix(latest[-1].transform)

    def look_up(target, source):
        found = up_to_map(target), up_to_map(source)
        return None if found[0] is None or found[1] is None else np.linalg.inv(found[0]) @ found[1]

    return look_up


def by_tf2_ros(peer):
    """A look-up in the buffer that ROS 2 nodes use."""
    from rclpy.time import Time
    from tf2_ros import Buffer, TransformListener

    buffer = Buffer()
    buffer.listener = TransformListener(buffer, peer.node)

    def look_up(target, source):
        if not buffer.can_transform(target, source, Time()):
            return None
        return matrix(buffer.lookup_transform(target, source, Time()).transform)

    return look_up


@pytest.mark.parametrize(
    "means", [by_hand, pytest.param(by_tf2_ros, marks=pytest.mark.needs("tf2_ros"))]
)
def test_where_the_vehicle_and_what_is_around_it_are(nodes, means):
    """The frames follow conventions.md: x forward, y left, z up aboard; NED in map_ned."""
    look_up = means(nodes)

    def told(target, source, point=(0.0, 0.0, 0.0)):
        nodes.spin_until(lambda: look_up(target, source) is not None)
        return (look_up(target, source) @ (*point, 1.0))[:3]

    near = pytest.approx
    body = "car/base_link"
    footprint = "car/base_footprint"
    height = told(footprint, body)[2]
    assert 0.1 < height < 0.6, "the origin of the body lies above the wheels' lowest points"
    assert told("map", footprint) == near((12.0, -7.0, 25.0), abs=0.02)
    assert told("map", footprint, (1.0, 0.0, 0.0)) == near(
        (12.0, -6.0, 25.0), abs=0.02
    )  # a metre ahead: to the north
    assert told("map", body, (0.0, 1.0, 0.0)) == near(
        (11.0, -7.0, 25.0 + height), abs=0.02
    )  # to its left: to the west
    assert told("map_ned", footprint) == near((-7.0, 12.0, -25.0), abs=0.02)
    assert told("map_ned", body, (2.0, 0.0, 1.0)) == near((-5.0, 12.0, -26.0 - height), abs=0.02)
    assert told(body, "map_ned", (-7.0, 15.0, -25.0)) == near(
        (0.0, -3.0, -height), abs=0.02
    )  # 3 m east: to its right
    assert told("car/odom", footprint) == near(
        told("map", footprint) - told("map", "car/odom"), abs=0.02
    )
