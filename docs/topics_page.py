# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page docs/reference/topics.md: each node's topics and services.

It shows what each node publishes, subscribes to and serves, with types and QoS. All nodes are made
in this process and asked for their endpoints. `python docs/reference_pages.py` writes the page.
"""

from __future__ import annotations

import os
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
from rfly_bringup.ros.single_process import node_maker

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
    "mission_node": {"vehicles": f"[{VEHICLE}]", f"{VEHICLE}.uav_type": "land-air"},
    "amphibious_sim_node": {"ground": "level", "publish_clock": "true"},
    "trajectory_node": {"fleet": "fleet.yaml"},
    "guidance_node": {"scenario": "hop"},
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
_INTRODUCTION = f"""# Topics, services and actions

What each node publishes, subscribes to and serves. Names without a leading `/` are in the node's namespace, `~/` in the
node's own; `{VEHICLE}` stands for the name of each vehicle. The number is the queue's depth.

- *Latched* is transient local: a late subscriber gets the last message, if it is transient local itself.
- Every publisher is reliable, so that each subscription matches it, best effort or reliable. A best-effort
  subscription matches every publisher.
- Every topic's QoS can be changed by parameters `qos_overrides.…`, see [other ROS tools](../howto/other-ros-tools.md).
- Each node also publishes `/diagnostics` and `/rosout`, and has the parameter services of ROS.
- With `lock_step` subscriptions to sensors are reliable, and `amphibious_sim_node` publishes `simulation_tick`
  (rfly_suite/SimulationTick; reliable, 10), `guidance_node` `guidance_tick` of the same type, which controllers
  with `guided` subscribe to; `chassis_control_node` then subscribes to `cmd/rotors`. With `simulate:=false` `mission_node` subscribes to `{VEHICLE}/pose` and
  publishes `{VEHICLE}/cmd/pose`.

`python docs/reference_pages.py` writes this page from the running nodes; a test compares them.

## The nodes at a glance

Main inputs and outputs of each node; the sections below list all of them. `<name>` is the name of a vehicle.

| node | input | output |
| --- | --- | --- |
| `terrain_node` | a map, `placed_objects` | `outTerrainPoint`, `terrain_map`, `terrain_occupancy`, `terrain_marker`, `traversability_marker` (latched); `get_terrain_altitude`, `get_terrain_altitudes`, `get_grid_map`, `load_terrain` |
| `trajectory_node` | `terrain_map`, a fleet file, `<name>/follow_path` | `vehicle_states`, `removed_vehicles`; for small fleets `<name>/pose`, `<name>/path`, `/tf`, `fleet_markers`; `~/start`, `~/pause`, `~/reset`, `~/load_fleet`; services of `simulation_interfaces` |
| `mission_node` | `terrain_map`, missions: `<name>/execute_mission`, `.plan` and `.waypoints` files | `vehicle_states`, `<name>/pose`, `<name>/mission`, `<name>/mission_params`, `/tf`, `fleet_markers`; for your own vehicles `<name>/cmd/pose` |
| `mavlink_node` | missions, commands, parameters of [ground stations](../howto/ground-stations.md) by MAVLink (UDP); `<name>/pose`, `<name>/mission`, `terrain_map` | telemetry; goals of `mission_node`, `<name>/fence`, `<name>/battery_state`, `<name>/gimbal/cmd` |
| `collision_node` | `vehicle_states`, `terrain_map`, `placed_objects`, shapes by vehicle type | `contacts`, `contact_markers`, `check_collision` |
| `planner_node` | `terrain_map`, `placed_objects`, `vehicle_states`, `/tf`, `goal_pose` | `plan_path`; `<name>/follow_path`, `planned_path` (latched) |
| `spawner_node` | `terrain_map` | [land-air vehicles](../howto/spawn-vehicles.md#spawn-a-land-air-vehicle) as processes in namespaces of their own; `removed_vehicles`; services of `simulation_interfaces`: spawn, delete, list what can be spawned |
| `recorder_node` | all topics | an MCAP file for `ros2 bag play`, Foxglove, PlotJuggler |
| `ue_bridge_node` | `vehicle_states`, poses, odometry, `ue_command`, `terrain_map` | UDP 20010 + window; `send_ue_command`; `place_object` …, `placed_objects` (latched) |
| `ue_sensors_node` | UDP of RflySim3D's cameras and lidars, 9999 + SeqID; a `Config.json` | `rflysim/sensor<SeqID>/…`, `rflysim/imu`, `/tf_static`; `~/set_sensor` |
| `coptersim_node` | UDP of CopterSim, 30101, 20101, 20005; with `offboard` `copter<id>/cmd_vel`, `copter<id>/cmd/pose` | `copter<id>/truth/…`, `copter<id>/estimate/odometry`, `copter<id>/pose`, `/tf`, `/clock`; UDP 20100; `~/copter<id>/arm` |

The nodes of [the land-air vehicle](../howto/land-air-vehicle.md) run in the vehicle's namespace. Estimator and
controllers use the sensors' topics only.

| node | input | output |
| --- | --- | --- |
| `amphibious_sim_node` | `cmd/rotors`, `cmd/wheels`, `gimbal/cmd`, `terrain_map` | `imu/data`, `gps/fix`, `baro`, `joint_states` …, `lidar/points`, `scan`, `camera/…`, `ground_truth/odom`, `vehicle_states`, `failsafe`, `battery`; `~/inject_fault`, services of `simulation_interfaces` |
| `state_estimator_node` | the sensors' topics, `terrain_map` | `odometry/filtered`, `odometry/global`, `/tf` |
| `flight_control_node` | sensors, estimate, `cmd/mode`, `cmd/pose`, `cmd_vel` | `cmd/rotors`, `mode` |
| `chassis_control_node` | sensors, estimate, `mode`, `cmd/ackermann`, `cmd_vel`, `cmd/pose` | `cmd/wheels` |
| `guidance_node` | a scenario, `follow_path`, estimate, `mode`, `battery` | `cmd/mode`, `cmd/ackermann`, `cmd/pose`, `pose`; `~/start`, `~/stop` |
| `teleop_node` | `joy` | `cmd_vel`, `cmd/mode` |
| `mapping_node` | `lidar/points`, `odometry/global` | `octomap`, `occupied_voxels`, `elevation_map` (latched); `~/save`, `~/reset` |
| `link_node`, `mavlink_hil_node`, `ardupilot_json_node` | a controller outside ROS, by UDP, TCP, serial line, MAVLink or as ArduPilot SITL | its `cmd/rotors`, `cmd/wheels` |
| `motor_output_node` | `cmd/rotors`, `cmd/wheels` | the motor commands of a real vehicle: `motor_output`, a serial line |
"""  # noqa: E501


def topics_page() -> str:
    """The whole page, in Markdown."""
    sections = [_INTRODUCTION]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # nodes that write files put them here
        try:
            Path("fleet.yaml").write_text(_FLEET, encoding="utf-8")
            for name in MODULES:
                section = "\n".join(_of_node(name, _PARAMETERS.get(name, {})))
                sections.append(f"## {name}\n\n{section}\n")
        finally:
            os.chdir(before)
    return "\n".join(sections)


def _of_node(name: str, parameters: dict[str, str]) -> list[str]:
    words = ["--ros-args", "-r", f"__ns:=/{NAMESPACE}"]
    for key, value in parameters.items():
        words += ["-p", f"{key}:={value}"]
    rclpy.init(args=words)
    executor = SingleThreadedExecutor()
    node = node_maker(name)()
    executor.add_node(node)
    try:
        return _table(node)
    finally:
        executor.shutdown(timeout_sec=1.0)
        node.destroy_node()
        rclpy.shutdown()


def _table(node: Node) -> list[str]:
    rows = {
        ("publishes", each.topic_name, _name(each.msg_type), _qos(each.qos_profile))
        for each in node.publishers
    }
    rows |= {
        ("subscribes", each.topic_name, _name(each.msg_type), _qos(each.qos_profile))
        for each in node.subscriptions
    }
    rows |= {("serves", each.srv_name, _name(each.srv_type), "service") for each in node.services}
    rows |= {
        ("serves", name, kind.replace("/action/", "/"), "action") for name, kind in _actions(node)
    }
    lines = ["| | name | type | QoS |", "| --- | --- | --- | --- |"]
    order = ("publishes", "subscribes", "serves")
    for does, name, kind, qos in sorted(
        rows, key=lambda row: (order.index(row[0]), row[1].lower())
    ):
        if not _is_everywhere(name, kind):
            lines.append(f"| {does} | `{_shown(name, node.get_name())}` | {kind} | {qos} |")
    return lines


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
    words = ["reliable" if profile.reliability == ReliabilityPolicy.RELIABLE else "best effort"]
    if profile.durability == DurabilityPolicy.TRANSIENT_LOCAL:
        words.append("latched")
    words.append("all" if profile.history == HistoryPolicy.KEEP_ALL else str(profile.depth))
    return ", ".join(words)


if __name__ == "__main__":
    print(topics_page(), end="")
