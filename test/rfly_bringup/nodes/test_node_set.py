# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The description of the nodes, and the launch files and command lines made from it."""

import configparser
import math
import runpy
import shutil
import sys
import types
from pathlib import Path

import pytest

from rfly_bringup.nodes import entry_points
from rfly_bringup.nodes.amphibious_set import OF_A_VEHICLE
from rfly_bringup.nodes.entry_points import MOTION_CONTROLLER
from rfly_bringup.nodes.node_set import (
    ARGUMENTS,
    BRIDGE,
    COLLISION,
    MAVLINK,
    MISSION,
    NODES,
    PLANNER,
    RECORDER,
    TERRAIN,
    TRAJECTORY,
    UE_SENSORS,
    check_arguments,
    node_parameters,
    node_processes,
    split_list,
    started_nodes,
)
from rfly_common.errors import ConfigError, RflyError

ROOT = Path(__file__).parents[3]


def test_every_node_has_a_console_script_and_an_entry_point():
    """cmake/nodes.cfg installs exactly the entry points; the nodes of both sets are among them."""
    config = configparser.ConfigParser()
    config.read(ROOT / "cmake" / "nodes.cfg")
    scripts = dict(
        line.split(" = ")
        for line in config["options.entry_points"]["console_scripts"].strip().splitlines()
    )
    names = list(entry_points.MODULES)
    assert scripts == {
        name: f"rfly_bringup.nodes.entry_points:{name}" for name in (*names, entry_points.SEVERAL)
    }
    assert {node.executable for node in (*NODES, *OF_A_VEHICLE)} <= set(names)


def test_only_given_arguments_become_parameters():
    """An argument without a value must not override a params_file."""
    assert node_parameters(TERRAIN, {}) == {}
    assert node_parameters(TERRAIN, {"map": "", "frame_id": "map_ned"}) == {"frame_id": "map_ned"}


def test_arguments_get_the_types_of_their_parameters():
    """ROS refuses a string for an integer or a list."""
    assert node_parameters(BRIDGE, {"windows": "2", "host": "10.0.0.5"}) == {
        "windows": 2,
        "host": "10.0.0.5",
    }
    assert node_parameters(TERRAIN, {"map_search_path": "/a:/b"}) == {
        "map_search_path": ["/a", "/b"]
    }

    run = {"shard": "1/2", "start_time": "1700000000", "time_scale": ".5"}
    assert node_parameters(TRAJECTORY, run) == {
        "shard": "1/2",
        "start_time": 1.7e9,
        "time_scale": 0.5,
    }
    assert node_parameters(TRAJECTORY, {"area": "-inf, 0,10 ,inf"}) == {
        "area": [-math.inf, 0.0, 10.0, math.inf]
    }
    assert node_parameters(TERRAIN, {"use_sim_time": "true"}) == {"use_sim_time": True}
    assert node_parameters(MISSION, {"mission_vehicles": "hawk, crow"}) == {
        "vehicles": ["hawk", "crow"]
    }


def test_the_planner_starts_where_a_path_or_a_goal_is_asked_for():
    for arguments in (
        {"planner": "true"},
        {"goal_vehicle": "truck_1"},
        {"planner": "false", "goal_vehicle": "a"},
    ):
        assert PLANNER in started_nodes(arguments)
    for arguments in ({}, {"planner": "false"}, {"vehicle_classes": "own.yaml"}):
        assert PLANNER not in started_nodes(arguments)


def test_rflysim3ds_sensors_start_with_their_file():
    arguments = {"ue_sensors": "Config.json", "host": "10.0.0.5", "feedback_bind": "10.0.0.2"}
    assert started_nodes(arguments)[-1] == UE_SENSORS
    assert node_parameters(UE_SENSORS, arguments) == {
        "config": "Config.json",
        "host": "10.0.0.5",
        "bind": "10.0.0.2",
    }


def test_nodes_chooses_the_nodes_that_start():
    """Names go with and without `_node`; the order is that of the start."""
    assert started_nodes({"nodes": "ue_bridge, terrain_node"}) == [TERRAIN, BRIDGE]
    assert started_nodes({"nodes": "terrain", "map": "x", "record": "false"}) == [TERRAIN]
    assert started_nodes({"nodes": "collision", "collision": "false"}) == [COLLISION]
    assert started_nodes({"nodes": ""}) == [TERRAIN, BRIDGE, TRAJECTORY]


def test_no_recording_leaves_the_log_folder_empty():
    """`record:=false` is no folder; ground stations would download logs of the working folder."""
    assert node_parameters(MAVLINK, {"record": "false"}) == {}
    assert node_parameters(MAVLINK, {"record": "runs/a.mcap"}) == {"log_folder": "runs/a.mcap"}


def test_a_recording_has_pictures_on_request():
    assert node_parameters(RECORDER, {"record": "a.mcap"}) == {"file": "a.mcap"}
    on_request = node_parameters(RECORDER, {"record": "true", "record_pictures": "true"})
    assert on_request == {"pictures": True}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"nodes": "terrain, window"}, "nodes: there is no node 'window'; there are recorder, "),
        ({"nodes": ","}, "nodes: there is no node ','; there are recorder, "),
        (
            {"nodes": "terrain", "fleet": "mixed_fleet"},
            "fleet: it is for trajectory_node, which nodes leaves out",
        ),
        (
            {"nodes": "terrain", "collision": "true"},
            "collision: it is for collision_node, which nodes leaves out",
        ),
        ({"mapp": "x"}, "mapp: no such argument; there are map, "),
        ({"windows": "two"}, "windows: 'two' is not a whole number"),
        ({"start_time": "noon"}, "start_time: 'noon' is not a number"),
        ({"time_scale": "-1"}, "time_scale: '-1' is not a number, at least 0"),
        ({"frame_id": "enu"}, "frame_id: 'enu', expected one of map, map_ned"),
        (
            {"params_file": "/no/such.yaml"},
            "params_file: there is no file '/no/such.yaml'",
        ),
        (
            {"ue_sensors": "/no/such.json"},
            "ue_sensors: there is no file '/no/such.json'",
        ),
        *(
            ({"namespace": name}, f"namespace: '{name}', expected words of letters, digits and _")
            for name in ("site-1", "1site", "a b", "/site_1//x", "//", "a/1b", "ä", "a" * 201)
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, text):
    """One line that says which argument and what would be right."""
    with pytest.raises(ValueError, match=text):
        check_arguments(arguments)


@pytest.mark.parametrize("namespace", ["", "/", "site_1", "/site/x/", "_a/B2", "a" * 200])
def test_namespaces_of_ros(namespace):
    check_arguments({"namespace": namespace})


class Recorded:
    """Stands for a launch action: keeps its arguments."""

    def __init__(self, *args, **kwargs):
        self.args = args
        self.kwargs = kwargs


@pytest.fixture
def installed(tmp_path):
    """A prefix with the executables that the launch files start, where they look for packages."""
    others = {name: [name] for name in ("rviz2", "robot_state_publisher")}
    for package, names in {
        "rfly_suite": [*entry_points.MODULES, entry_points.SEVERAL],
        **others,
    }.items():
        folder = tmp_path / "prefix" / "lib" / package
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).touch(0o755)
    (tmp_path / "prefix" / "share" / "rfly_suite").mkdir(parents=True)
    return tmp_path / "prefix"


@pytest.fixture
def run_launch_file(monkeypatch, installed):
    """(declared arguments, node actions) of a launch file, executed with recording actions in
    launch's place.
    """

    class PackageNotFoundError(KeyError):
        pass

    def prefix(package):
        if not (installed / "lib" / package).is_dir():
            raise PackageNotFoundError(package)
        return str(installed)

    def run(name, given):
        kinds = {
            kind: type(kind, (Recorded,), {})
            for kind in ("DeclareLaunchArgument", "OpaqueFunction", "Node")
        }
        modules = {
            "launch": {"LaunchDescription": lambda entities: entities, "Substitution": object},
            "launch.actions": {k: kinds[k] for k in ("DeclareLaunchArgument", "OpaqueFunction")},
            "launch_ros": {},
            "launch_ros.actions": {"Node": kinds["Node"]},
            "launch_ros.parameter_descriptions": {
                "ParameterValue": lambda value, value_type: (value_type, value)
            },
            "ament_index_python": {},
            "ament_index_python.packages": {
                "PackageNotFoundError": PackageNotFoundError,
                "get_package_prefix": prefix,
                "get_package_share_directory": lambda package: f"{prefix(package)}/share/{package}",
            },
        }
        for module, members in modules.items():
            fake = types.ModuleType(module)
            vars(fake).update(members)
            monkeypatch.setitem(sys.modules, module, fake)
        entities = runpy.run_path(str(ROOT / "launch" / name))["generate_launch_description"]()
        declared = {
            e.args[0]: e.kwargs for e in entities if isinstance(e, kinds["DeclareLaunchArgument"])
        }
        check, function = (e for e in entities if isinstance(e, kinds["OpaqueFunction"]))
        assert check is entities[0]

        context = types.SimpleNamespace(
            launch_configurations={
                **{n: d["default_value"] for n, d in declared.items()},
                **given,
            }
        )
        check.kwargs["function"](types.SimpleNamespace(launch_configurations=given))
        return declared, [a.kwargs for a in function.kwargs["function"](context)]

    return run


def test_rfly_launch_starts_the_node_set(run_launch_file, tmp_path):
    """The launch file has all arguments, each with a description, and starts all nodes.

    A given argument comes after the params_file, so that it wins.
    """
    params = tmp_path / "p.yaml"
    params.write_text("/**: {ros__parameters: {}}")
    given = {
        "map": "JacksboroFault",
        "windows": "2",
        "namespace": "fleet",
        "params_file": str(params),
        "respawn": "true",
    }
    declared, nodes = run_launch_file("rfly.launch.py", given)

    assert list(declared) == [a.name for a in ARGUMENTS]
    assert all(d["description"] for d in declared.values())
    assert [n["executable"] for n in nodes] == [n.executable for n in (TERRAIN, BRIDGE, TRAJECTORY)]
    assert {n["package"] for n in nodes} == {"rfly_suite"}
    assert {n["namespace"] for n in nodes} == {"fleet"}
    assert nodes[0]["parameters"] == [str(params), {"map": "JacksboroFault"}]
    assert nodes[1]["parameters"] == [str(params), {"windows": 2}]
    assert all(n["respawn"] for n in nodes)


def test_mission_node_starts_where_vehicles_fly_missions(run_launch_file):
    """It is in the set, and waits for its vehicles' names."""
    _, nodes = run_launch_file("rfly.launch.py", {"mission_vehicles": "hawk"})
    assert [n["executable"] for n in nodes] == [
        n.executable for n in (TERRAIN, BRIDGE, TRAJECTORY, MISSION)
    ]
    assert nodes[-1]["parameters"] == [{"vehicles": ["hawk"]}]


def test_collision_node_starts_where_it_is_asked_for(run_launch_file):
    """`collision:=true`; `false`, the default, is a value too, and starts nothing."""
    given = {"collision": "true", "collision_shapes": "rflysim3d"}
    _, nodes = run_launch_file("rfly.launch.py", given)
    assert nodes[-1]["executable"] == "collision_node"
    assert nodes[-1]["parameters"] == [{"shapes": "rflysim3d"}]
    assert COLLISION not in started_nodes({"collision": "false"})
    assert COLLISION in started_nodes({"collision": "true"})


def test_launch_starts_only_the_chosen_nodes(run_launch_file):
    _, nodes = run_launch_file("rfly.launch.py", {"nodes": "terrain"})
    assert [n["executable"] for n in nodes] == ["terrain_node"]


def test_terrain_launch_starts_the_terrain_alone(run_launch_file):
    """The arguments are those that concern the terrain or every node."""
    declared, nodes = run_launch_file("terrain.launch.py", {})
    assert [n["executable"] for n in nodes] == ["terrain_node"]
    assert {"map", "map_search_path", "frame_id", "params_file", "rviz"} <= set(declared)
    assert not {"fleet", "host", "windows", "collision", "nodes"} & set(declared)


def test_avoidance_launch_starts_the_node_of_robots_alone(run_launch_file):
    declared, nodes = run_launch_file("avoidance.launch.py", {"guarded_robots": "a, b"})
    assert [n["executable"] for n in nodes] == ["avoidance_node"]
    assert nodes[0]["parameters"] == [{"robots": ["a", "b"]}]
    assert {"map_search_path", "params_file", "use_sim_time"} <= set(declared)
    assert not {"map", "fleet", "host", "nodes"} & set(declared)


def test_a_wrong_launch_argument_is_refused(run_launch_file):
    """The launch file checks what `rfly up` checks."""
    with pytest.raises(ValueError, match="frame_id: 'x'"):
        run_launch_file("rfly.launch.py", {"frame_id": "x"})


def test_choices_are_told_to_launch(run_launch_file):
    """The choices are listed by `--show-args`; "" stands for an argument without a value."""
    declared, _ = run_launch_file("rfly.launch.py", {})
    assert declared["frame_id"]["choices"] == ["", "map", "map_ned"]
    assert declared["rviz"]["choices"] == ["false", "true"]
    assert declared["map"]["choices"] is None


@pytest.mark.parametrize(
    ("file", "given", "text"),
    [
        ("rfly.launch.py", {"map": "NoSuchMap"}, "map 'NoSuchMap' not found"),
        ("terrain.launch.py", {"map": "NoSuchMap"}, "map 'NoSuchMap' not found"),
        (
            "rfly.launch.py",
            {"fleet": "no_such_fleet"},
            "fleet 'no_such_fleet': no such file",
        ),
        (
            "rfly.launch.py",
            {"collision": "true", "collision_shapes": "no_such_set"},
            "no_such_set",
        ),
        (
            "rfly.launch.py",
            {"collision": "true", "vehicle_xml": "no_such.xml"},
            "no_such.xml",
        ),
        ("rfly.launch.py", {"shard": "2/2"}, "shard: '2/2'"),
        (
            "amphibious.launch.py",
            {"scenario": "no_such_scenario"},
            "scenario 'no_such_scenario': no such file",
        ),
    ],
)
def test_what_is_not_there_starts_nothing(run_launch_file, file, given, text):
    """An error instead of a list of nodes, as `rfly up` does; a node alone would wait for another
    map or fleet.
    """
    with pytest.raises(RflyError, match=text):
        run_launch_file(file, given)


def test_a_missing_executable_is_told_before_anything_starts(run_launch_file, installed):
    """rviz2 that is not installed, and a node that the installed package lacks."""
    _, nodes = run_launch_file("rfly.launch.py", {"rviz": "true"})
    assert nodes[-1]["package"] == "rviz2"
    (installed / "lib" / "rfly_suite" / "collision_node").unlink()
    with pytest.raises(
        ConfigError, match="collision_node: package rfly_suite is installed without it"
    ):
        run_launch_file("rfly.launch.py", {"collision": "true"})
    shutil.rmtree(installed / "lib" / "rviz2")
    with pytest.raises(ConfigError, match="rviz2: package rviz2 is not installed"):
        run_launch_file("rfly.launch.py", {"rviz": "true"})


def test_rviz_shows_land_air_vehicles_by_their_own_description(run_launch_file, installed):
    """The URDF is passed as text, which launch would otherwise read as YAML.

    A missing description is reported first.
    """
    _, nodes = run_launch_file("amphibious.launch.py", {"scenario": "hop", "rviz": "true"})
    publisher, rviz = nodes[-2:]
    assert (publisher["package"], publisher["namespace"]) == (
        "robot_state_publisher",
        "amphibious_1",
    )

    (parameters,) = publisher["parameters"]
    kind, text = parameters["robot_description"]
    assert (kind, text[:5], parameters["frame_prefix"]) == (
        str,
        "<?xml",
        (str, "amphibious_1/"),
    )
    assert (rviz["package"], rviz["arguments"][0]) == ("rviz2", "-d")
    assert rviz["arguments"][1].endswith("share/rfly_suite/rviz/amphibious.rviz")

    shutil.rmtree(installed / "lib" / "robot_state_publisher")
    with pytest.raises(ConfigError, match="package robot_state_publisher is not installed"):
        run_launch_file("amphibious.launch.py", {"scenario": "hop", "rviz": "true"})


def test_ros2_control_gets_the_description_as_text(run_launch_file):
    """The node in a process of its own does so too: launch would read the URDF as YAML."""
    given = {"scenario": "hop", "ros2_control": "true", "processes": "true"}
    _, nodes = run_launch_file("amphibious.launch.py", given)
    (chassis,) = (node for node in nodes if node["executable"] == "chassis_control_node")
    (parameters,) = chassis["parameters"]
    kind, text = parameters["robot_description"]
    assert (kind, text[:5], parameters["joint_commands"]) == (str, "<?xml", True)


def test_a_misspelt_launch_argument_is_refused(run_launch_file, monkeypatch):
    """launch itself takes any name; what another file that includes ours was given is that file's
    matter.
    """
    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "rfly_suite", "rfly.launch.py", "mapp:=x"])
    with pytest.raises(ConfigError, match=r"mapp: no such argument; did you mean map\?"):
        run_launch_file("rfly.launch.py", {})

    monkeypatch.setattr(
        sys,
        "argv",
        [
            "ros2",
            "launch",
            "rfly_suite",
            "rfly.launch.py",
            "map:=x",
            "launch-prefix:=nice",
        ],
    )
    assert run_launch_file("rfly.launch.py", {})[1]

    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "my_robot", "robot.launch.py", "arm:=left"])
    assert run_launch_file("rfly.launch.py", {})[1]


def test_one_process_gets_each_nodes_parameters_by_its_name(run_launch_file, tmp_path):
    """Two nodes have a parameter `vehicles`; a name for the process would become that of every
    node.
    """
    import yaml

    given = {
        "single_process": "true",
        "mission_vehicles": "hawk",
        "namespace": "a",
        "windows": "2",
    }
    _, (process,) = run_launch_file("rfly.launch.py", given)
    assert process["executable"] == "rfly_nodes"
    assert process["arguments"] == [
        "terrain_node",
        "ue_bridge_node",
        "trajectory_node",
        "mission_node",
    ]
    assert "name" not in process
    (file,) = process["parameters"]
    assert yaml.safe_load(Path(file).read_text()) == {
        "/a/ue_bridge_node": {"ros__parameters": {"windows": 2}},
        "/a/mission_node": {"ros__parameters": {"vehicles": ["hawk"]}},
    }
    Path(file).unlink()


@pytest.mark.parametrize("processes", ["false", "true"])
def test_the_motion_controller_of_a_vehicle_is_one_process(run_launch_file, tmp_path, processes):
    """The user's file reaches it like each node's own process, and so do remappings."""
    import yaml

    params = tmp_path / "mine.yaml"
    params.write_text("/**: {ros__parameters: {lock_step: false}}")
    given = {"scenario": "hop", "processes": processes, "params_file": str(params)}
    _, nodes = run_launch_file("amphibious.launch.py", given)
    started = [node["executable"] for node in nodes]
    controller = [*MOTION_CONTROLLER]
    assert started == [
        "ue_bridge_node",
        "amphibious_sim_node",
        *(controller if processes == "true" else ["rfly_nodes"]),
    ]

    process = nodes[-1]
    users, own = process["parameters"]
    assert (users, process["namespace"]) == (str(params), "amphibious_1")
    assert ("terrain_map", "/terrain_map") in process["remappings"]
    if processes == "true":
        assert process["name"] == "guidance_node"
        assert own["autostart"] is True
        return
    assert "name" not in process
    assert process["arguments"] == controller
    content = yaml.safe_load(Path(own).read_text())
    assert list(content) == [f"/amphibious_1/{name}" for name in controller]
    assert content["/amphibious_1/guidance_node"]["ros__parameters"]["autostart"] is True
    Path(own).unlink()


def test_rfly_up_gives_the_nodes_the_same_parameters(monkeypatch, tmp_path):
    """The command lines of the runner, from the same description; the given parameters name the
    node and come last.
    """
    import yaml

    from rfly_bringup.runner import supervisor

    monkeypatch.setattr(supervisor, "executable_path", lambda name, _: Path("/x") / name)
    arguments = {"windows": "2", "host": "it's", "namespace": "a", "params_file": "p"}
    processes = node_processes(arguments, extra={"ue_bridge_node": {"port": 7}})
    runner = supervisor.node_supervisor(processes, arguments, print)
    commands = dict(runner.commands)
    *start, given = commands["ue_bridge_node"]
    assert start == [
        "/x/ue_bridge_node",
        "--ros-args",
        "-r",
        "__ns:=/a",
        "--params-file",
        "p",
        "--params-file",
    ]
    assert yaml.safe_load(Path(given).read_text()) == {
        "/a/ue_bridge_node": {"ros__parameters": {"host": "it's", "windows": 2, "port": 7}}
    }
    assert commands["terrain_node"] == [
        "/x/terrain_node",
        "--ros-args",
        "-r",
        "__ns:=/a",
        "--params-file",
        "p",
    ]
    runner.stop()
    assert not Path(given).exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a:b: c :", ["/a", "b", "c"]),
        ("https://h/m:/a", ["https://h/m", "/a"]),
        ("/a:http://127.0.0.1:8080/m", ["/a", "http://127.0.0.1:8080/m"]),
        ("a : http://[::1]:80/x", ["a", "http://[::1]:80/x"]),
        ("http://h:8080:/a", ["http://h:8080", "/a"]),
        ("http://h:8080", ["http://h:8080"]),
        ("", []),
    ],
)
def test_addresses_on_a_search_path_keep_their_colons(text, expected):
    assert split_list(text, ":") == expected


@pytest.mark.parametrize(
    ("given", "parameters"),
    [({"avoidance": "true"}, {"avoidance": True}), ({"avoidance": "false"}, {"avoidance": False})],
)
def test_avoidance_is_a_parameter_only_where_it_is_given(given, parameters):
    """A params_file decides without it."""
    assert node_parameters(TRAJECTORY, given) == parameters
    assert node_parameters(TRAJECTORY, {}) == {}
