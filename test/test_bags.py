# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of our nodes, recorded like `ros2 bag record` and read by a CDR decoder that is not
ROS's.

Serialised messages go untouched into an MCAP file with rosbag2's profile (channels of `cdr`,
schemas of `ros2msg`); mcap-ros2-support decodes them from the definitions alone. The recording is
also played to a node elsewhere.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.ros, pytest.mark.needs("mcap", "mcap_ros2")]

RECORDED = {
    "/terrain_map": "rfly_suite/msg/TerrainMap",
    "/terrain_occupancy": "nav_msgs/msg/OccupancyGrid",
    "/terrain_grid_map": "grid_map_msgs/msg/GridMap",
    "/outTerrainPoint": "sensor_msgs/msg/PointCloud2",
    "/tf_static": "tf2_msgs/msg/TFMessage",
    "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
    "/vehicle_states": "rfly_suite/msg/VehicleStateArray",
    "/fleet_start": "builtin_interfaces/msg/Time",
    "/lead/path": "nav_msgs/msg/Path",
}


def message_class(kind):
    package, _, name = kind.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)


def definition(kind):
    """Return the text of a type as rosbag2 writes it into an MCAP file.

    All types within it follow, after lines of =.
    """
    from ament_index_python.packages import get_package_share_directory

    def text(package, name):
        stand_in = ROOT / "wheels" / "interfaces" / package
        folder = ROOT if package == "rfly_suite" else stand_in if stand_in.is_dir() else None
        return (
            (folder or Path(get_package_share_directory(package))) / "msg" / f"{name}.msg"
        ).read_text("utf-8")

    package, _, name = kind.split("/")
    parts = [text(package, name)]
    waiting = [(package, parts_of) for parts_of in [text(package, name)]]
    seen = set()
    while waiting:
        package, content = waiting.pop()
        for field in re.findall(
            r"^\s*([A-Za-z][\w/]*)(?:\[[^\]]*\])?\s+\w+", content, re.MULTILINE
        ):
            inner = field.split("/") if "/" in field else [package, field]
            if (field[0].isupper() or "/" in field) and tuple(inner) not in seen:
                seen.add(tuple(inner))
                content = text(*inner)
                parts.append(f"MSG: {'/'.join(inner)}\n{content}")
                waiting.append((inner[0], content))
    return ("\n" + "=" * 80 + "\n").join(parts)


def record(peer, path):
    """One message of each topic, serialised; {topic: bytes}."""
    from mcap.writer import Writer
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

    raw: dict = {}
    for topic, kind in RECORDED.items():
        (info, *_) = peer.spin_until(
            lambda topic=topic: peer.node.get_publishers_info_by_topic(topic)
        )
        latched = info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
        qos.durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
        peer.node.create_subscription(
            message_class(kind),
            topic,
            lambda data, topic=topic: raw.setdefault(topic, bytes(data)),
            qos,
            raw=True,
        )
    peer.spin_until(lambda: len(raw) == len(RECORDED))
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        for number, (topic, kind) in enumerate(RECORDED.items()):
            schema = writer.register_schema(kind, "ros2msg", definition(kind).encode())
            channel = writer.register_channel(topic, "cdr", schema)
            writer.add_message(channel, log_time=number, publish_time=number, data=raw[topic])
        writer.finish()
    return raw


def same(decoded, ours):
    """Field by field, through all that is nested."""
    if hasattr(ours, "get_fields_and_field_types"):
        return all(
            same(getattr(decoded, name), getattr(ours, name))
            for name in ours.get_fields_and_field_types()
        )
    if isinstance(ours, (str, bool, int)):
        return decoded == ours
    if isinstance(ours, bytes):
        return bytes([decoded]) == ours if isinstance(decoded, int) else bytes(decoded) == ours
    if isinstance(ours, list):
        return len(decoded) == len(ours) and all(map(same, decoded, ours))
    if isinstance(decoded, bytes):
        decoded = np.frombuffer(decoded, np.uint8)

    return np.array_equal(np.asarray(decoded), np.asarray(ours), equal_nan=True)


def test_recorded_messages_are_read_by_another_decoder_and_played_to_a_node(domain_id, tmp_path):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory
    from node_harness import NodeProcess, Peer
    from rclpy.serialization import deserialize_message
    from rfly_suite.srv import PlanPath

    from rfly_common.ros.qos import LATCHED

    file = tmp_path / "all.mcap"
    terrain = NodeProcess(
        "terrain_node", domain_id, {"publish_grid_map": "true", "grid_map_max_cells": "2000"}
    )
    with terrain, NodeProcess("trajectory_node", domain_id):  # the demo's map and fleet
        peer = Peer(domain_id)
        raw = record(peer, file)
        peer.close()
    found = {}
    with file.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        for schema, channel, _, decoded in reader.iter_decoded_messages():
            assert schema.name == RECORDED[channel.topic]
            found[channel.topic] = decoded
    assert found.keys() == RECORDED.keys()
    for topic, kind in RECORDED.items():
        assert same(found[topic], deserialize_message(raw[topic], message_class(kind))), topic
    assert (found["/terrain_map"].name, len(found["/terrain_map"].height)) == (
        "JacksboroFault",
        301 * 301,
    )
    assert len(found["/vehicle_states"].id) == 5
    with NodeProcess("planner_node", domain_id):
        peer = Peer(domain_id, "player")
        played = peer.publisher(message_class(RECORDED["/terrain_map"]), "terrain_map", LATCHED)
        played.publish(raw["/terrain_map"])
        request = PlanPath.Request(vehicle_class="rover")
        request.start.header.frame_id = request.goal.header.frame_id = "map"
        request.goal.pose.position.x = 100.0
        fields = {name: getattr(request, name) for name in ("start", "goal", "vehicle_class")}
        peer.spin_until(lambda: peer.call(PlanPath, "plan_path", **fields).success)
        peer.close()
