# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Which processes `rfly up amphibious` and its launch file start, with which parameters."""

from __future__ import annotations

import importlib.util
import math
import re
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from policy_files import blind

from rfly_bringup.nodes import amphibious_set, entry_points
from rfly_bringup.nodes.amphibious_set import (
    AMPHIBIOUS_ARGUMENTS,
    amphibious_nodes,
    amphibious_processes,
)
from rfly_bringup.nodes.node_set import parameter_file, ros_arguments
from rfly_common.errors import ConfigError
from rfly_lab import LandAirBatch, PolicyFacts, shipped_policy

SIMULATION = "amphibious_sim_node"


def of(nodes, executable):
    return [node for node in nodes if node.executable == executable]


def test_by_default_one_vehicle_with_the_scenario_over_the_valley() -> None:
    nodes = amphibious_nodes({})
    terrain, bridge, *vehicle = nodes
    assert (terrain.executable, terrain.namespace, terrain.parameters["map"]) == (
        "terrain_node",
        "",
        "JacksboroFault",
    )
    assert (bridge.executable, bridge.namespace) == ("ue_bridge_node", "")
    assert {node.namespace for node in vehicle} == {"amphibious_1"}
    [simulation] = of(vehicle, SIMULATION)
    given = simulation.parameters
    # what the shipped file says, and RflySim's class 3 with six rotors
    assert given["start"] == pytest.approx([-1130, -480, math.radians(7)])
    assert (given["scenario"], given["vehicle"], given["seed"]) == ("valley", "scale", 7)
    assert (given["id"], given["type"], given["lock_step"], given["noise"]) == (
        601,
        600003,
        False,
        True,
    )
    assert given["publish_clock"] is False
    assert given["command_patience"] == 1.0
    assert simulation.remappings["vehicle_states"] == "/vehicle_states"
    assert of(vehicle, "guidance_node")[0].parameters["autostart"] is True


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, None),
        ({"real_time_factor": "1.0"}, None),
        ({"use_sim_time": "false"}, False),
        ({"use_sim_time": "true"}, True),
        ({"lock_step": "true"}, True),
        ({"real_time_factor": "5"}, True),
        ({"real_time_factor": "0", "use_sim_time": "true"}, True),
        ({"autopilot": "ardupilot"}, True),
    ],
)
def test_one_clock_for_all_nodes(arguments, expected) -> None:
    """/clock of the first vehicle where simulated time has a pace of its own, or on request."""
    nodes = amphibious_nodes({"scenario": "hop", "count": "2", **arguments})
    assert {node.parameters.get("use_sim_time") for node in nodes} == {expected}
    clocks = [node.parameters["publish_clock"] for node in of(nodes, "amphibious_sim_node")]
    assert clocks == [bool(expected), False]


@pytest.mark.parametrize("pace", [{"lock_step": "true"}, {"real_time_factor": "0"}])
def test_no_other_clock_has_the_pace_of_lock_step(pace) -> None:
    with pytest.raises(ValueError, match=f"use_sim_time: false, but with {next(iter(pace))}"):
        amphibious_nodes({"scenario": "hop", "use_sim_time": "false", **pace})


def test_vehicles_stand_one_behind_the_other_with_numbers_of_their_own() -> None:
    nodes = amphibious_nodes(
        {
            "scenario": "hop",
            "count": "3",
            "seed": "40",
            "lock_step": "true",
            "noise": "false",
            "use_sim_time": "true",
        }
    )
    assert of(nodes, "terrain_node") == []  # level ground
    simulations = of(nodes, SIMULATION)
    assert [node.label for node in simulations] == [
        f"amphibious_{k}/{SIMULATION}" for k in (1, 2, 3)
    ]
    # it begins at the origin, towards its first waypoint in the east
    assert [node.parameters["start"] for node in simulations] == [
        [0, 0, 0],
        [-8, 0, 0],
        [-16, 0, 0],
    ]
    assert [node.parameters["seed"] for node in simulations] == [40, 41, 42]
    assert [node.parameters["id"] for node in simulations] == [601, 602, 603]
    assert [node.parameters["publish_clock"] for node in simulations] == [True, False, False]
    for node in nodes:
        assert node.parameters["use_sim_time"] is True
    assert all(
        node.parameters["lock_step"] and not node.parameters["noise"] for node in simulations
    )
    assert all(node.parameters["lock_step"] for node in of(nodes, "guidance_node"))
    for controller in ("flight_control_node", "chassis_control_node"):
        assert [node.parameters["guided"] for node in of(nodes, controller)] == [True] * 3


def test_what_a_scenario_names_is_found_beside_it(tmp_path) -> None:
    maps = files("rfly_terrain") / "data" / "maps"
    for ending in ("png", "txt"):
        (tmp_path / f"hills.{ending}").write_bytes((maps / f"JacksboroFault.{ending}").read_bytes())
    (tmp_path / "trip.yaml").write_text(
        "version: 1\nmap: hills\nvehicle: car.yaml\nend: {time_s: 5}\n"
        "mission: {items: [{mode: waypoint, position_m: [5, 0]}]}\n",
        encoding="utf-8",
    )
    car = (files("rfly_amphibious") / "data" / "vehicles" / "scale_quad.yaml").read_text(
        encoding="utf-8"
    )
    (tmp_path / "car.yaml").write_text(car, encoding="utf-8")
    nodes = amphibious_nodes({"scenario": str(tmp_path / "trip.yaml"), "name": "car"})
    assert nodes[0].parameters["map_search_path"] == [str(tmp_path)]

    [simulation] = of(nodes, SIMULATION)
    assert simulation.parameters["vehicle"] == str(tmp_path / "car.yaml")
    assert simulation.parameters["map_folders"] == [str(tmp_path)]
    assert simulation.parameters["type"] == 400003
    assert simulation.namespace == "car_1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"count": "0"}, "count: '0', expected a whole number from 1 to 20"),
        ({"seed": "-1"}, "seed: '-1'"),
        ({"noise": "loud"}, "noise: 'loud', expected one of true, false"),
        ({"real_time_factor": "fast"}, "real_time_factor: 'fast' is not a number"),
        ({"fleet": "x"}, "fleet: no such argument"),
        ({"name": "1st"}, "name: '1st'"),
        ({"windows": "0"}, "windows: '0' is not a whole number, at least 1"),
        ({"sensors": "nosuch"}, "sensors 'nosuch'"),
    ],
)
def test_arguments_that_cannot_be_are_named(arguments, said) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        amphibious_nodes(arguments)


def test_a_scenario_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="'nowhere'"):
        amphibious_nodes({"scenario": "nowhere"})


def test_parameter_files_name_the_node_in_full_and_come_last() -> None:
    [simulation] = of(amphibious_nodes({"scenario": "hop"}), SIMULATION)
    [(name, _)] = parameter_file([simulation]).items()
    assert name == f"/amphibious_1/{SIMULATION}"
    line = ros_arguments(simulation, "debug", ["mine.yaml", "ours.yaml"])
    assert line[:2] == ["-r", "__ns:=/amphibious_1"]
    assert line[-4:] == ["--params-file", "mine.yaml", "--params-file", "ours.yaml"]
    assert "vehicle_states:=/vehicle_states" in line


CONTROLLER = [
    "flight_control_node",
    "chassis_control_node",
    "state_estimator_node",
    "guidance_node",
]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"count": "2"},
            {
                "ue_bridge_node": ["ue_bridge_node"],
                "amphibious_1/amphibious_sim_node": ["amphibious_sim_node"],
                "amphibious_1/rfly_nodes": CONTROLLER,
                "amphibious_2/amphibious_sim_node": ["amphibious_sim_node"],
                "amphibious_2/rfly_nodes": CONTROLLER,
            },
        ),
        (
            {"processes": "true"},
            {
                "ue_bridge_node": ["ue_bridge_node"],
                **{f"amphibious_1/{name}": [name] for name in ("amphibious_sim_node", *CONTROLLER)},
            },
        ),
        (
            {"controller": "udp"},
            {
                "ue_bridge_node": ["ue_bridge_node"],
                "amphibious_1/amphibious_sim_node": ["amphibious_sim_node"],
                "amphibious_1/state_estimator_node": ["state_estimator_node"],
                "amphibious_1/link_node": ["link_node"],
            },
        ),
    ],
)
def test_estimator_controllers_and_guidance_share_a_process(arguments, expected) -> None:
    """Each vehicle has its own, unless `processes` parts them; a node alone keeps its name."""
    nodes = amphibious_nodes({"scenario": "hop", **arguments})
    processes = amphibious_processes(nodes, arguments)
    shown = {name: [node.executable for node in group] for name, group in processes}
    assert shown == expected


@pytest.mark.needs("onnx", "onnxruntime")
def test_a_policy_of_sensors_brings_its_set_for_all_nodes() -> None:
    def sets(name: str, **more: str) -> dict[str, str]:
        given = {"scenario": "hop", "policy": name, **more}
        nodes = amphibious_nodes(given)
        return {node.executable: node.parameters.get("sensors", "") for node in nodes}

    of_sensors = sets("hover_by_sensors")
    sensing = ("amphibious_sim_node", "state_estimator_node", "flight_control_node", "policy_node")
    assert [of_sensors[node] for node in sensing] == ["scale_rtk"] * 4
    assert set(sets("hover").values()) == {""}
    for name in ("hover", "hover_by_sensors"):
        assert sets(name, sensors="scale")["policy_node"] == "scale"


@pytest.mark.needs("onnx", "onnxruntime")
def test_a_policy_that_its_node_would_refuse_starts_nothing(tmp_path: Path) -> None:
    """Whatever ends policy_node is said before any process is there."""

    def policy(**options: Any) -> str:
        return str(blind(tmp_path, PolicyFacts.of(LandAirBatch(1, **options))))

    no_loads = tmp_path / "no_loads.yaml"
    text = (files("rfly_amphibious") / "data" / "sensors" / "scale.yaml").read_text("utf-8")
    sections = re.split(r"(?m)^(?=\w)", text)
    no_loads.write_text("".join(s for s in sections if not s.startswith("wheel_loads:")), "utf-8")
    by_sensors = {"task": "hop", "observations": "sensors", "sensors": str(no_loads)}
    for trained, sensors, message in (
        ({"task": "hover", "actions": "velocity"}, "", "actions: trained with 'velocity'"),
        ({"task": "hover", "lidar": 4}, "", "lidar, depth: trained with rays"),
        ({"task": "goal", "actions": "wrench"}, "", "task: 'goal' sees the ground"),
        (by_sensors, "", "sensors: trained with 'no_loads', which is not shipped"),
        (by_sensors, str(no_loads), "has no wheel_loads, which 'hop' needs"),
        (None, str(no_loads), "has no wheel_loads, which 'hover' needs"),
        (None, "nonsense", "nonsense"),
    ):
        file = str(shipped_policy("hover")) if trained is None else policy(**trained)
        given = {"scenario": "hop", "policy": file, "sensors": sensors}
        with pytest.raises(ConfigError, match=re.escape(message)):
            amphibious_nodes(given)


@pytest.mark.needs("onnx", "onnxruntime")
def test_a_folder_does_not_hide_a_shipped_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hover").mkdir()
    nodes = amphibious_nodes({"scenario": "hop", "policy": "hover"})
    assert any(node.executable == "policy_node" for node in nodes)


@pytest.mark.needs("onnx", "onnxruntime")
def test_a_word_that_is_no_shipped_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy: 'hoverr'.*hover"):
        amphibious_nodes({"scenario": "hop", "policy": "hoverr"})
    with pytest.raises(ConfigError, match=r"hoverr\.onnx"):
        amphibious_nodes({"scenario": "hop", "policy": "hoverr.onnx"})


def test_a_3d_map_is_made_where_asked_for() -> None:
    nodes = amphibious_set.amphibious_nodes(
        {"scenario": "hop", "mapping": "true", "count": "2", "name": "car"}
    )
    mapping = [node for node in nodes if node.executable == "mapping_node"]
    assert [(node.namespace, node.parameters) for node in mapping] == [
        ("car_1", {"file": "car_1.bt"}),
        ("car_2", {"file": "car_2.bt"}),
    ]
    assert "mapping_node" not in {
        node.executable for node in amphibious_set.amphibious_nodes({"scenario": "hop"})
    }


def test_rviz_gets_a_description_of_each_vehicle() -> None:
    """Each vehicle has a robot_state_publisher with the URDF of the simulated vehicle."""
    given = {
        "scenario": "hop",
        "vehicle": "scale_quad",
        "rviz": "true",
        "count": "2",
        "use_sim_time": "true",
    }
    nodes = [node for node in amphibious_nodes(given) if node.package != "rfly_suite"]
    assert [(node.package, node.executable, node.namespace) for node in nodes] == [
        ("robot_state_publisher", "robot_state_publisher", f"amphibious_{i}") for i in (1, 2)
    ]

    for node in nodes:
        assert node.parameters["frame_prefix"] == f"{node.namespace}/"
        assert node.parameters["use_sim_time"] is True
        links = ElementTree.fromstring(node.parameters["robot_description"]).findall("link")
        assert {link.get("name") for link in links} >= {"base_link", "rotor_4", "wheel_fl"}
        assert "rotor_5" not in {link.get("name") for link in links}
    assert all(node.package == "rfly_suite" for node in amphibious_nodes({"scenario": "hop"}))


def test_rviz_needs_a_configuration_for_vehicles_of_other_names(tmp_path) -> None:
    with pytest.raises(
        ValueError, match="rviz: the shipped configuration shows amphibious_1; for car_1 give one"
    ):
        amphibious_nodes({"scenario": "hop", "rviz": "true", "name": "car"})
    (tmp_path / "car.rviz").touch()
    own = {
        "scenario": "hop",
        "rviz": "true",
        "name": "car",
        "rviz_config": str(tmp_path / "car.rviz"),
    }
    assert amphibious_nodes(own)[-1].namespace == "car_1"


def test_vehicles_of_ground_stations_have_one_mission_node_and_one_mavlink_node() -> None:
    nodes = amphibious_nodes({"mavlink": "true", "count": "2", "vehicle": "scale_quad"})
    [mission] = of(nodes, "mission_node")
    [station] = of(nodes, "mavlink_node")
    vehicles = {
        "vehicles": ["amphibious_1", "amphibious_2"],
        "amphibious_1.uav_type": "land-air",
        "amphibious_2.uav_type": "land-air",
    }
    assert (mission.namespace, mission.parameters) == ("", {**vehicles, "simulate": False})
    shown = {"amphibious_1.rotors": 4, "amphibious_2.rotors": 4}
    assert (station.namespace, station.parameters) == ("", vehicles | shown)
    # they wait for the station
    assert not any(node.parameters["autostart"] for node in of(nodes, "guidance_node"))
    assert of(amphibious_nodes({}), "mavlink_node") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scenario": "hop"}, "the scenario 'hop' has no map"),
        ({"autopilot": "ardupilot"}, "ardupilot commands the vehicle"),
        ({"autopilot": "px4"}, "px4 commands the vehicle"),
        ({"controller": "udp"}, "udp commands the vehicle"),
    ],
)
def test_stations_without_a_place_or_beside_another_controller_are_refused(arguments, said) -> None:
    with pytest.raises(ValueError, match=said):
        amphibious_nodes({"mavlink": "true", **arguments})


@pytest.mark.parametrize("node", amphibious_set.OF_A_VEHICLE, ids=lambda node: node.executable)
def test_every_node_has_an_executable(node) -> None:
    assert callable(getattr(entry_points, node.executable))
    assert importlib.util.find_spec(entry_points.MODULES[node.executable]) is not None


def test_arguments_have_one_meaning_each() -> None:
    names = [argument.name for argument in AMPHIBIOUS_ARGUMENTS]
    assert len(names) == len(set(names))
