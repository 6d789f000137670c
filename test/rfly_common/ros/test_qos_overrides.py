# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`qos_overrides.<topic>.…`: a topic's QoS as the user wants it, and no other topic's."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from node_harness import PATIENCE

ROOT = Path(__file__).parents[3]


@pytest.mark.exhaustive
def test_every_topic_is_made_where_its_qos_can_be_overridden():
    """No module of a node but `endpoints` calls rclpy's own functions.

    Commands have no QoS of their own: they adapt to the topics that they find.
    """
    of_commands = {"graph_watch.py", "mission_client.py", "play_topics.py", "topic_taps.py"}
    made = {
        str(path.relative_to(ROOT))
        for path in ROOT.glob("rfly_*/**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in {"create_publisher", "create_subscription"}
        if path.name not in of_commands
    }
    assert made == {"rfly_common/ros/endpoints.py"}


@pytest.fixture
def flat_map(tmp_path):
    from rfly_terrain.files.writer import write_map

    write_map(np.zeros((3, 3)), tmp_path / "flat", origin_x=0, origin_y=0, step_x=1, step_y=1)
    return f"'{tmp_path / 'flat.png'}'"


@pytest.mark.ros
def test_an_override_counts_for_its_topic_alone(domain_id, flat_map):
    """Two latched publishers share a profile, and so do two latched subscriptions: one of each is
    overridden.
    """
    from node_harness import NodeProcess, Peer
    from rcl_interfaces.srv import ListParameters
    from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

    overrides = {
        "qos_overrides./site/outTerrainPoint.publisher.reliability": "best_effort",
        "qos_overrides./site/placed_objects.subscription.reliability": "best_effort",
    }
    with NodeProcess(
        "terrain_node", domain_id, {"map": flat_map, **overrides}, "-r", "__ns:=/site"
    ):
        peer = Peer(domain_id)

        def profile(topic, infos=peer.node.get_publishers_info_by_topic):
            return peer.spin_until(lambda: infos(topic))[0].qos_profile

        subscriptions = peer.node.get_subscriptions_info_by_topic
        assert profile("/site/outTerrainPoint").reliability == ReliabilityPolicy.BEST_EFFORT
        assert profile("/site/outTerrainPoint").durability == DurabilityPolicy.TRANSIENT_LOCAL
        assert profile("/site/terrain_map").reliability == ReliabilityPolicy.RELIABLE
        assert profile("/site/terrain_occupancy").reliability == ReliabilityPolicy.RELIABLE
        assert (
            profile("/site/placed_objects", subscriptions).reliability
            == ReliabilityPolicy.BEST_EFFORT
        )
        assert profile("/tf_static", subscriptions).reliability == ReliabilityPolicy.RELIABLE

        # `ros2 param list` shows what was given, and nothing for all other topics and policies
        listed = peer.call(ListParameters, "/site/terrain_node/list_parameters").result.names
        assert {name for name in listed if name.startswith("qos_overrides")} == set(overrides)
        peer.close()


@pytest.mark.ros
@pytest.mark.parametrize(
    ("policy", "value", "text"),
    [
        ("reliability", "sometimes", "reliability: 'sometimes': "),
        ("depth", "many", "depth: 'many': "),
        ("durability", "volatile", "'durability', expected one of history, depth, reliability"),
    ],
)
def test_an_invalid_override_ends_the_node_in_one_line(domain_id, flat_map, policy, value, text):
    from node_harness import NodeProcess

    name = f"qos_overrides./outTerrainPoint.publisher.{policy}"
    with NodeProcess("terrain_node", domain_id, {"map": flat_map, name: value}) as node:
        assert node.process.wait(PATIENCE) == 2
        node.stop()
        assert "parameter qos_overrides./outTerrainPoint.publisher." in node.output
        assert text in node.output
        assert "Traceback" not in node.output


@pytest.mark.ros
def test_an_override_counts_again_for_an_endpoint_that_is_made_again(domain_id):
    """A vehicle that is removed and spawned again has the same topic."""
    import rclpy
    from node_harness import Peer
    from rclpy.node import Node
    from std_msgs.msg import Empty

    from rfly_common.ros.endpoints import publisher

    peer = Peer(domain_id)
    name = "qos_overrides./a/pose.publisher.depth"
    node = Node(
        "vehicles",
        context=peer.node.context,
        parameter_overrides=[rclpy.Parameter(name, value=7)],
    )
    for _ in range(2):
        made = publisher(node, Empty, "a/pose", rclpy.qos.QoSProfile(depth=1))
        assert made.qos_profile.depth == 7
        node.destroy_publisher(made)
    assert [each for each in node._parameters if each.startswith("qos")] == [name]
    node.destroy_node()
    peer.close()
