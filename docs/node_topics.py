# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Table of docs/reference/topics.csv: each node's topics and services; `--write` renews it.

It has what each node publishes, subscribes to and serves, with types and QoS. All nodes are made in
this process and asked for their endpoints. That needs ROS, which `make docs` does without, so git
has the table.
"""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import rclpy
from rclpy.action import ActionServer, get_action_server_names_and_types_by_node
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from rfly_bringup.nodes.entry_points import MODULES
from rfly_bringup.ros.executables import node_maker
from rfly_lab import shipped_policy

NAMESPACE = "ns"
VEHICLE = "NAME"
PATIENCE_S = 60.0
_PARAMETERS: dict[str, dict[str, str]] = {
    "terrain_node": {"publish_grid_map": "true"},
    "planner_node": {
        "vehicles": f"[{VEHICLE}]",
        f"{VEHICLE}.id": "1",
        "goal_vehicle": VEHICLE,
        "space": "octomap",
    },
    "ue_bridge_node": {
        "vehicles": f"[{VEHICLE}]",
        f"{VEHICLE}.id": "7",
        "port": "45010",
        "feedback_port": "0",
    },
    "ue_sensors_node": {
        "sensors": "[front, depth, lidar]",
        "depth.type_id": "2",
        "lidar.type_id": "23",
        "imu_vehicles": "[1]",
        "port": "45020",
    },
    "coptersim_node": {
        "offboard": "true",
        "clock": "truth",
        "truth_port": "45030",
        "state_port": "45031",
        "offboard_port": "45032",
    },
    "avoidance_node": {"robots": f"[{VEHICLE}]"},
    "mission_node": {"vehicles": f"[{VEHICLE}]", f"{VEHICLE}.uav_type": "land-air"},
    "amphibious_sim_node": {"ground": "level", "publish_clock": "true"},
    "trajectory_node": {"fleet": "fleet.yaml"},
    "guidance_node": {"scenario": "hop"},
    "policy_node": {"policy": str(shipped_policy("hover"))},
    "mavlink_node": {"vehicles": f"[{VEHICLE}]", "port": "0"},
    "link_node": {"port": "0", "controller_port": "0"},
    "mavlink_hil_node": {"port": "0"},
    "ardupilot_json_node": {"port": "0"},
}
_FLEET = f"""version: 1
vehicles:
  - {{name: {VEHICLE}, id: 1, type: 3, kind: ground, speed: 1.0,
     shape: {{type: circle, center: [0, 0], radius: 50}}}}
"""
_OF_EVERY_NODE = ("rcl_interfaces/", "type_description_interfaces/")
TABLE = Path(__file__).parent / "reference" / "topics.csv"


def topics_table() -> str:
    """Return the table of all nodes."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("node", "does", "name", "type", "qos"))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # nodes that write files put them here
        try:
            Path("fleet.yaml").write_text(_FLEET, encoding="utf-8")
            for name in MODULES:
                table.writerows((name, *row) for row in _of_node(name, _PARAMETERS.get(name, {})))
        finally:
            os.chdir(before)
    return text.getvalue()


def _of_node(name: str, parameters: dict[str, str]) -> list[tuple[str, str, str, str]]:
    words = ["--ros-args", "-r", f"__ns:=/{NAMESPACE}"]
    for key, value in parameters.items():
        words += ["-p", f"{key}:={value}"]
    rclpy.init(args=words)
    executor = SingleThreadedExecutor()
    node = node_maker(name)()
    executor.add_node(node)
    try:
        return _rows(node)
    finally:
        executor.shutdown(timeout_sec=1.0)
        node.destroy_node()
        rclpy.shutdown()


def _rows(node: Node) -> list[tuple[str, str, str, str]]:
    """Return what the node does with each name, its type and its QoS."""
    rows = {
        ("publishes", each.topic_name, _name(each.msg_type), _qos(each.qos_profile))
        for each in node.publishers
    }
    rows |= {
        ("subscribes", each.topic_name, _name(each.msg_type), _qos(each.qos_profile))
        for each in node.subscriptions
    }
    rows |= {("service", each.srv_name, _name(each.srv_type), "") for each in node.services}
    rows |= {("action", name, kind.replace("/action/", "/"), "") for name, kind in _actions(node)}
    order = ("publishes", "subscribes", "action", "service")
    return [
        (does, _shown(name, node.get_name()), kind, qos)
        for does, name, kind, qos in sorted(
            rows, key=lambda row: (order.index(row[0]), row[1].lower())
        )
        if not _is_everywhere(name, kind)
    ]


def _actions(node: Node) -> list[tuple[str, str]]:
    """(name, type) of the node's action servers, as soon as the graph has them all."""
    count = sum(isinstance(each, ActionServer) for each in node.waitables)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = get_action_server_names_and_types_by_node(
            node, node.get_name(), node.get_namespace()
        )
        if len(found) == count:
            return [(name, kinds[0]) for name, kinds in found]
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{node.get_name()}: {len(found)} of {count} actions are in the graph"
            )
        time.sleep(0.01)


def _is_everywhere(name: str, kind: str) -> bool:
    return name in ("/rosout", "/parameter_events", "/diagnostics") or kind.startswith(
        _OF_EVERY_NODE
    )


def _shown(name: str, node: str) -> str:
    own = f"/{NAMESPACE}/{node}/"
    return (
        f"~/{name.removeprefix(own)}"
        if name.startswith(own)
        else name.removeprefix(f"/{NAMESPACE}/")
    )


def _name(kind: Any) -> str:
    """Such as sensor_msgs/Imu."""
    return f"{kind.__module__.split('.')[0]}/{kind.__name__}"


def _qos(profile: QoSProfile) -> str:
    """Return what differs from a reliable queue of ten messages, such as "latched, 1"."""
    words = []
    if profile.reliability != ReliabilityPolicy.RELIABLE:
        words.append("best effort")
    if profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
        words.append("latched")
    if profile.history == HistoryPolicy.KEEP_ALL:
        words.append("all")
    elif words or profile.depth != 10:
        words.append(str(profile.depth))
    return ", ".join(words)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        TABLE.write_text(topics_table(), encoding="utf-8")
    else:
        print(topics_table(), end="")
