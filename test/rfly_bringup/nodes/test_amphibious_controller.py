# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`--controller` of `rfly up amphibious` and its launch file: which nodes a controller outside
replaces.
"""

from __future__ import annotations

import importlib.util

import pytest

from rfly_bringup.nodes import entry_points
from rfly_bringup.nodes.amphibious_set import LINK, MAVLINK, amphibious_nodes


def of_vehicles(**arguments):
    return [node for node in amphibious_nodes(arguments) if node.namespace]


@pytest.mark.parametrize("way", ["udp", "tcp"])
def test_link_node_takes_the_place_of_the_control_nodes(way):
    simulation, estimator, link = of_vehicles(controller=way, lock_step="true", vehicle="full")
    assert (simulation.executable, estimator.executable) == (
        "amphibious_sim_node",
        "state_estimator_node",
    )
    assert link.executable == "link_node"

    given = {
        "lock_step": True,
        "vehicle": "full",
        "transport": way,
        "port": 14660,
        "controller_port": 14661,
        "odometry": "filtered",
    }
    assert given.items() <= link.parameters.items()


def test_every_vehicle_has_ports_of_its_own():
    ports = [
        (node.parameters["port"], node.parameters["controller_port"])
        for node in of_vehicles(controller="udp", count="3", scenario="hop")
        if node.executable == "link_node"
    ]
    assert ports == [(14660, 14661), (14662, 14663), (14664, 14665)]
    autopilots = of_vehicles(controller="mavlink", count="2", scenario="hop")[1::2]
    assert [(node.executable, node.parameters["port"]) for node in autopilots] == [
        ("mavlink_hil_node", 4560),
        ("mavlink_hil_node", 4561),
    ]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"controller": "serial"}, "expected one of udp, tcp, mavlink"),
        ({"autopilot": "ardupilot"}, "expected one"),
    ],
)
def test_what_cannot_be_is_refused(more, why):
    with pytest.raises(ValueError, match=why):
        amphibious_nodes({"controller": "udp", **more})


@pytest.mark.parametrize("node", [LINK, MAVLINK], ids=lambda node: node.executable)
def test_both_have_an_executable(node):
    assert callable(getattr(entry_points, node.executable))
    assert importlib.util.find_spec(entry_points.MODULES[node.executable]) is not None


@pytest.mark.parametrize(
    ("rviz", "publisher", "gimbal"),
    [
        ("false", "chassis_control_node", "both"),
        ("true", "robot_state_publisher", "joint_states"),
    ],
)
def test_ros2_control_takes_the_place_of_the_mission(rviz, publisher, gimbal):
    """Each vehicle's URDF names its own topics, and one node publishes it.

    One node publishes the cameras' frame, too.
    """
    nodes = of_vehicles(ros2_control="true", rviz=rviz, count="2", scenario="hop")
    assert "guidance_node" not in {node.executable for node in nodes}
    for number in (1, 2):
        mine = [node for node in nodes if node.namespace == f"amphibious_{number}"]
        (chassis,) = (node for node in mine if node.executable == "chassis_control_node")
        assert chassis.parameters["joint_commands"] is True
        (simulation,) = (node for node in mine if node.executable == "amphibious_sim_node")
        assert simulation.parameters["gimbal_state"] == gimbal
        texts = {node.executable: node.parameters.get("robot_description") for node in mine}
        assert [name for name, text in texts.items() if text] == [publisher]
        assert f'<param name="joint_commands_topic">/amphibious_{number}/joint' in texts[publisher]


@pytest.mark.parametrize(
    "other", [{"controller": "udp"}, {"autopilot": "px4"}, {"mavlink": "true"}]
)
def test_ros2_control_has_no_other_controller_beside_it(other):
    with pytest.raises(ValueError, match=r"ros2_control: .* commands the vehicle too"):
        amphibious_nodes({"ros2_control": "true", **other})


def test_the_rotors_are_commanded_as_the_scenario_says(tmp_path):
    scenario = tmp_path / "pull.yaml"
    scenario.write_text(
        "version: 1\nvehicle: scale\nrotor_command: torque\n"
        "mission: {items: [{mode: takeoff, height_m: 2}, {mode: land}]}\nend: {time_s: 20}\n",
        encoding="utf-8",
    )
    for name, quantity in ((str(scenario), "torque"), ("hop", "speed")):
        (flight,) = (
            node for node in of_vehicles(scenario=name) if node.executable == "flight_control_node"
        )
        assert flight.parameters["rotor_command"] == quantity
