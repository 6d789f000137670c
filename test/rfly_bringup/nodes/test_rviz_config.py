# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""rviz/*.rviz with running nodes.

Each display asks for an existing topic of its type, with a matching QoS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rfly_bringup.nodes.amphibious_set import AMPHIBIOUS_ARGUMENTS, amphibious_nodes
from rfly_trajectory.fleet.fleet_file import load_fleet

FOLDER = Path(__file__).resolve().parents[3] / "rviz"
TAKES = {
    "rviz_default_plugins/Image": "sensor_msgs/msg/Image",
    "rviz_default_plugins/Marker": "visualization_msgs/msg/Marker",
    "rviz_default_plugins/MarkerArray": "visualization_msgs/msg/MarkerArray",
    "rviz_default_plugins/Path": "nav_msgs/msg/Path",
    "rviz_default_plugins/PointCloud2": "sensor_msgs/msg/PointCloud2",
}
"""what each display with a topic takes, by RViz's plugin description"""
OF_OTHERS = {"rviz_default_plugins/RobotModel", "rviz_default_plugins/TF"}
"""displays of robot_state_publisher's topic, and of /tf"""
NODES = {
    "rfly": [
        (name, "") for name in ("terrain_node", "trajectory_node", "collision_node", "planner_node")
    ],
    "amphibious": [
        ("terrain_node", ""),
        *(
            (name, "/amphibious_1")
            for name in ("amphibious_sim_node", "guidance_node", "mapping_node")
        ),
    ],
}


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.rviz").read_text(encoding="utf-8"))[
        "Visualization Manager"
    ]


@pytest.fixture(params=list(NODES))
def name(request) -> str:
    return request.param


def displays(config: Any) -> dict[str, Any]:
    return {display["Name"]: display for display in config["Displays"]}


def lightness(colour: str) -> float:
    """About CIE L*, of RViz's "red; green; blue"."""
    red, green, blue = ((int(each) / 255) ** 2.2 for each in colour.split(";"))
    return float(116 * (0.2126 * red + 0.7152 * green + 0.0722 * blue) ** (1 / 3) - 16)


def test_every_configuration_is_tested():
    assert {path.stem for path in FOLDER.glob("*.rviz")} == set(NODES)


def test_everything_is_shown_in_map(name):
    config = read(name)
    assert config["Global Options"]["Fixed Frame"] == "map"
    assert {d["Class"] for d in config["Displays"]} <= OF_OTHERS | set(TAKES)
    assert len(displays(config)) == len(config["Displays"])


def test_the_costs_lie_on_the_ground_for_who_ticks_them(name):
    shown = displays(read(name))
    assert (shown["Terrain"]["Enabled"], shown["Terrain"]["Topic"]["Value"].strip("/")) == (
        True,
        "terrain_marker",
    )
    costs = shown["Traversability"]
    assert (costs["Enabled"], costs["Topic"]["Value"].strip("/")) == (
        False,
        "traversability_marker",
    )


def test_depth_is_told_apart_as_far_as_one_sees(name):
    """24 bits over the whole way: at z m from the eye they are z² / (near 2^24) apart, less than
    LIFT of the costs.
    """
    views = read(name)["Views"]
    for view in [views["Current"], *views["Saved"]]:
        if "Distance" in view:
            assert view["Distance"] ** 2 / (view["Near Clip Distance"] * 2**24) < 2.0, view["Name"]


def test_the_cloud_is_coloured_by_height_dark_to_light():
    """RViz's own AxisColor has no such choice: its lowest points are red."""
    cloud = displays(read("rfly"))["Terrain points"]
    assert (cloud["Color Transformer"], cloud["Channel Name"], cloud["Use rainbow"]) == (
        "Intensity",
        "z",
        False,
    )
    assert lightness(cloud["Min Color"]) < 30
    assert lightness(cloud["Max Color"]) > 90
    assert cloud["Autocompute Intensity Bounds"] is True
    assert cloud["Size (m)"] > 20, "no gaps between samples that are 20 m apart"


def test_saved_views_follow_vehicles_that_there_are():
    follow = {view["Name"]: view for view in read("rfly")["Views"]["Saved"]}["Follow lead"]
    assert follow["Class"] == "rviz_default_plugins/ThirdPersonFollower"
    assert follow["Target Frame"] in {
        f"{vehicle.name}/base_link" for vehicle in load_fleet("demo_convoy").vehicles
    }
    views = read("amphibious")["Views"]
    frames = {view["Target Frame"] for view in (views["Current"], *views["Saved"])}
    assert frames == {"<Fixed Frame>", "amphibious_1/base_link"}, (
        "in flight its footprint stays on the ground"
    )


def test_the_land_air_vehicle_is_the_first_one_of_the_launch_file():
    """The configuration names the first vehicle's namespace.

    It also has the prefix that robot_state_publisher puts before the links.
    """
    (default,) = (argument.default for argument in AMPHIBIOUS_ARGUMENTS if argument.name == "name")
    publisher = amphibious_nodes({"scenario": "hop", "rviz": "true"})[-1]
    model = displays(read("amphibious"))["Vehicle"]
    assert publisher.executable == publisher.package == "robot_state_publisher"
    assert publisher.namespace == f"{default}_1"
    assert model["Description Topic"]["Value"] == f"/{publisher.namespace}/robot_description"
    assert model["Description Topic"]["Durability Policy"] == "Transient Local"
    assert publisher.parameters["frame_prefix"] == f"{model['TF Prefix']}/"


def test_the_tool_2d_goal_pose_publishes_what_the_planner_takes():
    (tool,) = (
        tool for tool in read("rfly")["Tools"] if tool["Class"] == "rviz_default_plugins/SetGoal"
    )
    assert (tool["Topic"]["Value"], tool["Topic"]["Durability Policy"]) == ("goal_pose", "Volatile")


@pytest.mark.ros
def test_every_display_fits_a_publisher_of_the_nodes(name, domain_id, tmp_path):
    """The nodes with their defaults, and for each display one publisher that rmw itself calls
    compatible.
    """
    from contextlib import ExitStack

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

    wanted = [d for d in read(name)["Displays"] if d["Class"] in TAKES]
    topics = ["/" + d["Topic"]["Value"].lstrip("/") for d in wanted]
    with ExitStack() as stack:
        for node, namespace in NODES[name]:
            stack.enter_context(NodeProcess(node, domain_id, {}, "-r", f"__ns:={namespace or '/'}"))
        peer = Peer(domain_id)
        stack.callback(peer.close)
        peer.spin_until(
            lambda: all(
                peer.node.count_publishers(topic) for topic in [*topics, "/tf", "/tf_static"]
            )
        )
        for display, topic in zip(wanted, topics, strict=True):
            (offer,) = peer.node.get_publishers_info_by_topic(topic)
            assert offer.topic_type == TAKES[display["Class"]], topic
            asked = display["Topic"]
            qos = QoSProfile(
                depth=asked["Depth"],
                history=HistoryPolicy[asked["History Policy"].upper().replace(" ", "_")],
                reliability=ReliabilityPolicy[
                    asked["Reliability Policy"].upper().replace(" ", "_")
                ],
                durability=DurabilityPolicy[asked["Durability Policy"].upper().replace(" ", "_")],
                liveliness=LivelinessPolicy.AUTOMATIC,
            )
            assert qos_check_compatible(offer.qos_profile, qos)[0] == QoSCompatibility.OK, topic
            # what is published once reaches an RViz that is started later only if the display asks
            # for it
            assert qos.durability == offer.qos_profile.durability, topic
