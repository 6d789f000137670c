"""rviz/rfly.rviz beside running nodes: each display asks for a topic that is there, of its type, with a fitting QoS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rfly_trajectory.fleet.fleet_file import load_fleet

CONFIG = Path(__file__).resolve().parents[3] / "rviz" / "rfly.rviz"
TAKES = {
    "rviz_default_plugins/PointCloud2": "sensor_msgs/msg/PointCloud2",
    "rviz_default_plugins/Map": "nav_msgs/msg/OccupancyGrid",
    "rviz_default_plugins/MarkerArray": "visualization_msgs/msg/MarkerArray",
    "rviz_default_plugins/Path": "nav_msgs/msg/Path",
    "rviz_default_plugins/Pose": "geometry_msgs/msg/PoseStamped",
}
"""what each display with a topic takes, by RViz's plugin description"""
NO_TOPIC = {"rviz_default_plugins/Grid", "rviz_default_plugins/TF"}


@pytest.fixture(scope="module")
def config() -> Any:
    return yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["Visualization Manager"]


def displays(config: Any, kind: str) -> list[Any]:
    return [d for d in config["Displays"] if d["Class"] == f"rviz_default_plugins/{kind}"]


def test_everything_is_shown_in_map(config):
    assert config["Global Options"]["Fixed Frame"] == "map"
    assert {d["Class"] for d in config["Displays"]} == NO_TOPIC | set(TAKES)
    names = [d["Name"] for d in config["Displays"]]
    assert len(names) == len(set(names))


def test_the_cloud_is_coloured_by_height(config):
    (cloud,) = displays(config, "PointCloud2")
    assert (cloud["Color Transformer"], cloud["Axis"]) == ("AxisColor", "Z")
    assert cloud["Autocompute Value Bounds"]["Value"] is True


def test_the_costs_do_not_hide_the_cloud(config):
    """They lie in the plane z = 0; who wants them ticks them."""
    (costs,) = displays(config, "Map")
    assert (costs["Topic"]["Value"], costs["Enabled"], costs["Color Scheme"]) == ("terrain_occupancy", False, "costmap")


def test_every_vehicle_of_the_demo_fleet_has_a_path_and_a_pose(config):
    names = [vehicle.name for vehicle in load_fleet("demo_convoy").vehicles]
    paths = [d["Topic"]["Value"] for d in displays(config, "Path")]
    assert paths == ["planned_path", *(f"{name}/path" for name in names)]
    assert [d["Topic"]["Value"] for d in displays(config, "Pose")] == [f"{name}/pose" for name in names]


def test_the_tool_2d_goal_pose_publishes_what_the_planner_takes(config):
    (tool,) = (tool for tool in config["Tools"] if tool["Class"] == "rviz_default_plugins/SetGoal")
    assert (tool["Topic"]["Value"], tool["Topic"]["Durability Policy"]) == ("goal_pose", "Volatile")


@pytest.mark.ros
def test_every_display_fits_a_publisher_of_the_nodes(config, domain_id):
    """The nodes with their defaults, and for each display one publisher that rmw itself calls compatible."""
    from node_harness import NodeProcess, Peer
    from rclpy.qos import (
        DurabilityPolicy,
        HistoryPolicy,
        LivelinessPolicy,
        QoSCompatibility,
        QoSProfile,
        ReliabilityPolicy,
        qos_check_compatible,
    )

    wanted = [d for d in config["Displays"] if d["Class"] in TAKES]
    topics = ["/" + d["Topic"]["Value"] for d in wanted]
    names = ("terrain_node", "trajectory_node", "collision_node", "planner_node")
    nodes = [NodeProcess(name, domain_id) for name in names]
    with nodes[0], nodes[1], nodes[2], nodes[3]:
        peer = Peer(domain_id)
        try:
            peer.spin_until(lambda: all(peer.node.count_publishers(topic) for topic in [*topics, "/tf", "/tf_static"]))
            for display, topic in zip(wanted, topics, strict=True):
                (offer,) = peer.node.get_publishers_info_by_topic(topic)
                assert offer.topic_type == TAKES[display["Class"]], topic
                asked = display["Topic"]
                qos = QoSProfile(
                    depth=asked["Depth"],
                    history=HistoryPolicy[asked["History Policy"].upper().replace(" ", "_")],
                    reliability=ReliabilityPolicy[asked["Reliability Policy"].upper().replace(" ", "_")],
                    durability=DurabilityPolicy[asked["Durability Policy"].upper().replace(" ", "_")],
                    liveliness=LivelinessPolicy.AUTOMATIC,
                )
                assert qos_check_compatible(offer.qos_profile, qos)[0] == QoSCompatibility.OK, topic
                # what is published once reaches an RViz that is started later only if the display asks for it
                assert qos.durability == offer.qos_profile.durability, topic
        finally:
            peer.close()
