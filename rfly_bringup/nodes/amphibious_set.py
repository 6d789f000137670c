# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node set of land-air vehicles, for `launch/amphibious.launch.py` and `rfly up amphibious`.

Each vehicle has its own namespace, NAME_1, NAME_2, …; terrain and bridge serve all of them. An
autopilot is started next to them, by the commands that `start_commands` returns.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rfly_amphibious.vehicle.motor_channels import FIRST_ID, model_type
from rfly_bringup.nodes.argument_files import (
    check_addresses,
    check_imagery,
    check_libraries,
    check_recorder,
    fill_feedback_addresses,
)
from rfly_bringup.nodes.entry_points import MOTION_CONTROLLER, SEVERAL
from rfly_bringup.nodes.node_set import (
    ARGUMENTS,
    BRIDGE,
    MISSION,
    RECORDER,
    SPAWNER,
    TERRAIN,
    Argument,
    NodeDescription,
    StartedNode,
    check_arguments,
    is_given,
    node_parameters,
    same,
    split_list,
    started_nodes,
    switch,
)
from rfly_bringup.nodes.node_set import MAVLINK as STATION_LINK
from rfly_bringup.nodes.parameter_names import check_numbers

SPACING = 8.0
"""Distance between vehicles, one behind the other, m."""
MAX_VEHICLES = 20
PATIENCE = 1.0
"""Wait for commands, s: a busy machine slows the simulation down instead of a fail-safe."""
LINK_PORT = 14660
"""Port of the first vehicle's link_node; its controller has the next one."""
LINK_PORTS = 2
"""Ports per vehicle of link_node."""
MAVLINK_PORT = 4560
ARDUPILOT_PORT = 9002
"""Port of ArduPilot's first instance."""
ARDUPILOT_PORTS = 10
"""Ports from one instance of ArduPilot to the next."""

_LOCK_STEP = same("lock_step")
SIMULATION = NodeDescription(
    "amphibious_sim_node",
    {"map_folders": "map_search_path"}
    | same("scenario", "world", "imagery", "noise", "lock_step", "real_time_factor"),
)
ESTIMATOR = NodeDescription("state_estimator_node", _LOCK_STEP)
FLIGHT = NodeDescription("flight_control_node", _LOCK_STEP)
CHASSIS = NodeDescription("chassis_control_node", _LOCK_STEP)
GUIDANCE = NodeDescription(
    "guidance_node", same("scenario", "map_search_path", "autostart", "lock_step")
)
POLICY = NodeDescription("policy_node", same("policy", "autostart", "lock_step"))
"""Node that flies by a trained policy, in the place of guidance."""
LINK = NodeDescription("link_node", _LOCK_STEP)
"""Node for frames over UDP or TCP.

Like the two below, it connects an external controller, which replaces the control nodes.
"""
MAVLINK = NodeDescription("mavlink_hil_node", _LOCK_STEP)
ARDUPILOT = NodeDescription("ardupilot_json_node", _LOCK_STEP)
MAPPING = NodeDescription("mapping_node", {}, needs="mapping")

_OUTSIDE = {
    "ardupilot": ARDUPILOT,
    "px4": MAVLINK,
    "mavlink": MAVLINK,
    "udp": LINK,
    "tcp": LINK,
}
"""Nodes of external controllers, by `autopilot` or `controller`."""
_OWN_ESTIMATORS = (ARDUPILOT, MAVLINK)
"""Nodes of controllers that estimate their state themselves."""

OF_A_VEHICLE = (SIMULATION, FLIGHT, CHASSIS, ESTIMATOR, GUIDANCE)
"""Nodes of a vehicle; in one process the flight controller has a sample before the estimator."""

_SHARED = (
    "world",
    "host",
    "windows",
    "feedback_bind",
    "feedback_multicast_interface",
    "map_search_path",
    "imagery",
)
_STATE_PUBLISHER = "robot_state_publisher"
_SHOWN = "amphibious"
"""`name` for which the shipped RViz configuration is made."""
_OF_EXTRAS = ("spawner", "record", "record_pictures", "rviz", "rviz_config")
_OF_PROCESSES = ("params_file", "log_level", "respawn")
AMPHIBIOUS_ARGUMENTS = (
    Argument(
        "scenario",
        "map, vehicle, start, mission, wind and events: a shipped name, or a file",
        "valley",
    ),
    Argument(
        "vehicle",
        "parameters of the vehicle: full, scale, scale_quad, scale_six or a YAML file (default: "
        "the scenario's)",
    ),
    Argument(
        "sensors",
        "sensor set: a shipped name or a YAML file (default: that of the policy, or the vehicle's)",
    ),
    Argument(
        "autopilot",
        "real firmware (SITL) that replaces estimator, control nodes and mission; the vehicle is "
        "scale_quad by default",
        choices=("ardupilot", "px4"),
    ),
    Argument(
        "controller",
        "external controller that replaces control nodes and mission: frames over udp or tcp, or "
        "mavlink",
        choices=("udp", "tcp", "mavlink"),
    ),
    switch(
        "ros2_control",
        "controllers of ros2_control command wheels, steering and gimbal by joint_commands; they "
        "replace the mission",
    ),
    Argument(
        "policy",
        "trained policy that flies instead of the mission, an ONNX file or the name of a shipped "
        "one, such as hover: to goal_pose, with autostart first to 3 m above its place",
    ),
    Argument(
        "name",
        "names of the vehicles and their namespaces: NAME_1, NAME_2, …",
        "amphibious",
    ),
    Argument("count", "number of vehicles, one behind the other with the same mission", "1"),
    Argument(
        "seed",
        "seed of noise and gusts; each further vehicle adds 1 (default: the scenario's)",
    ),
    switch("noise", "add errors to the sensors", "true"),
    switch("lock_step", "make the simulation wait for the controllers"),
    Argument(
        "real_time_factor",
        "simulated seconds per second; 0: as fast as possible (default 1)",
    ),
    Argument(
        "use_sim_time",
        "one clock of simulated time, from 0 on /clock, for all nodes (default: with lock_step, an "
        "autopilot or a real_time_factor; else all stamps are in the computer's time)",
        choices=("true", "false"),
    ),
    switch(
        "mapping",
        "make a 3-D map from the lidar: starts mapping_node too, whose service saves NAME_1.bt, …",
    ),
    switch(
        "mavlink",
        "the vehicles speak MAVLink to ground stations and wait for them, autostart or not: "
        "starts mission_node and mavlink_node too",
    ),
    switch("autostart", "start the mission without a command", "true"),
    switch(
        "processes",
        "a process for each node: estimator, guidance and both controllers of a vehicle share one "
        "otherwise",
    ),
    *(a for a in ARGUMENTS if a.name in (*_SHARED, *_OF_PROCESSES, *_OF_EXTRAS)),
)


def amphibious_nodes(arguments: Mapping[str, str]) -> list[StartedNode]:
    """Return the nodes that these arguments start, in the order of their start.

    Arguments left out have their defaults. Raise ValueError for a wrong argument, ConfigError for a
    scenario or vehicle that can't be read.
    """
    settings = {a.name: arguments.get(a.name, "") or a.default for a in AMPHIBIOUS_ARGUMENTS}
    check_arguments(
        {**arguments, **{name: value for name, value in settings.items() if value}},
        AMPHIBIOUS_ARGUMENTS,
        (TERRAIN, BRIDGE, *OF_A_VEHICLE),
    )

    check_addresses(settings)
    check_numbers((BRIDGE, SIMULATION), settings)
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", settings["name"]):
        raise ValueError(
            f"name: {settings['name']!r}, expected letters, digits and _, the first a letter"
        )
    count = _integer("count", settings["count"], 1, MAX_VEHICLES)

    # one commander of the vehicle, and what follows from it
    if settings["autopilot"]:
        settings["vehicle"] = settings["vehicle"] or "scale_quad"
        settings["lock_step"] = (
            "true"  # on a busy computer the one that is faster waits for the other
        )
    _check_one_commander(settings)
    if settings["mavlink"] == "true":
        settings["autostart"] = "false"
    settings["use_sim_time"] = use_sim_time(settings)

    facts = _facts(settings)
    _check_mavlink(settings, facts)
    settings["sensors"] = _sensors(settings, facts)

    # arguments that follow from the scenario
    settings["map_search_path"] = os.pathsep.join(
        part for part in (settings["map_search_path"], facts.folder) if part
    )
    settings["world"] = settings["world"] or facts.world
    shared = {**settings, "map": facts.map}

    # shared nodes
    of_all = [
        *started_nodes(settings, [RECORDER, SPAWNER]),
        *([TERRAIN] if facts.map else []),
        BRIDGE,
    ]
    more = {BRIDGE.executable: _ground_of_world(settings, facts)}
    started = [
        StartedNode(
            node.executable,
            "",
            node_parameters(node, shared) | more.get(node.executable, {}),
        )
        for node in of_all
    ]

    for number in range(count):
        x, y, heading = facts.start
        back = SPACING * number
        start = (x - back * math.cos(heading), y - back * math.sin(heading), heading)
        namespace = f"{settings['name']}_{number + 1}"
        started += vehicle_nodes(settings, facts, namespace, FIRST_ID + number, number, start)
    if settings["mavlink"] == "true":
        names = [f"{settings['name']}_{number + 1}" for number in range(count)]
        started += station_nodes(settings, names, facts.rotors)
    if settings["rviz"] == "true":
        if settings["name"] != _SHOWN and not settings["rviz_config"]:
            raise ValueError(
                f"rviz: the shipped configuration shows {_SHOWN}_1; for {settings['name']}_1 give "
                "one as rviz_config"
            )
        started += [_state_publisher(settings, facts, number) for number in range(count)]
    return started


def amphibious_processes(
    nodes: Sequence[StartedNode], arguments: Mapping[str, str]
) -> list[tuple[str, list[StartedNode]]]:
    """Return the processes of these nodes, with the name of each.

    The nodes of a vehicle's motion controller share one, unless the argument `processes` is true.
    """
    processes: dict[str, list[StartedNode]] = {}
    for node in nodes:
        shares = node.executable in MOTION_CONTROLLER and not is_given(arguments, "processes")
        name = f"{node.namespace}/{SEVERAL}" if shares else node.label
        processes.setdefault(name, []).append(node)
    return [
        (name if len(group) > 1 else group[0].label, group) for name, group in processes.items()
    ]


def checked_nodes(arguments: Mapping[str, str]) -> tuple[list[StartedNode], dict[str, str]]:
    """Return the nodes, and the arguments with what follows from host and simulated time.

    Raise ValueError for what a node would refuse when others run already.
    """
    check_recorder(arguments)
    check_imagery(arguments)
    arguments = fill_feedback_addresses(arguments)
    nodes = amphibious_nodes(arguments)
    check_libraries(nodes)
    return nodes, {**arguments, "use_sim_time": use_sim_time(arguments)}


def use_sim_time(arguments: Mapping[str, str]) -> str:
    """Return the argument use_sim_time, by default true if simulated time has a pace of its own.

    Raise ValueError if it is false then: no other clock has that pace.
    """
    given = arguments.get("use_sim_time", "")
    reasons = [name for name in ("lock_step", "autopilot") if is_given(arguments, name)]
    if float(arguments.get("real_time_factor") or 1.0) != 1.0:
        reasons.append("real_time_factor")
    if reasons and given == "false":
        raise ValueError(
            f"use_sim_time: false, but with {reasons[0]} simulated time has a pace of its own: "
            "expected true"
        )
    return "true" if reasons else given


def _ground_of_world(settings: Mapping[str, str], facts: Facts) -> dict[str, Any]:
    """Return the bridge's parameters for the ground below a world.

    Raise ValueError if the world is made for another map.
    """
    if not settings["world"]:
        return {}
    from rfly_terrain.map_files.search import map_name
    from rfly_terrain.world.world_file import load_world

    wanted = load_world(settings["world"]).map
    if wanted and map_name(wanted) != map_name(facts.map):
        here = f"on the map {facts.map!r}" if facts.map else "on level ground"
        raise ValueError(
            f"world: {settings['world']!r} is made for the map {wanted!r}, the scenario "
            f"{settings['scenario']!r} is {here}"
        )
    return {} if facts.map else {"level_ground": True}


@dataclass(frozen=True)
class Facts:
    """Facts of a scenario that several nodes need."""

    map: str
    """Name or path, "" for level ground."""
    folder: str
    """Folder of the scenario's file, "" for a shipped one."""
    world: str
    """World on the map: name or path, "" for none."""
    vehicle: str
    rotors: int
    start: tuple[float, float, float]
    seed: int
    rotor_command: str = "speed"
    """Quantity by which the rotors are commanded: speed or torque."""


def _facts(settings: Mapping[str, str]) -> Facts:
    """Return the facts of the scenario. Raise ConfigError."""
    from rfly_amphibious.scenarios.scenario import Scenario
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_common.config.documents import load_schema
    from rfly_common.config.parameter_files import checked_document, read_parameters

    name = settings["scenario"]
    folders = split_list(settings["map_search_path"])
    scenario = Scenario.load(name, folders)
    data, file, _ = read_parameters("scenario", "rfly_amphibious", "scenarios", name)
    content = checked_document(
        data, file, load_schema("rfly_amphibious", "scenario"), "version, vehicle, mission, end"
    ).value
    folder = str(Path(file).parent.resolve()) if os.path.isfile(file) else ""

    # files next to the scenario's
    vehicle = settings["vehicle"] or content["vehicle"]
    if not settings["vehicle"] and folder and os.path.isfile(os.path.join(folder, vehicle)):
        vehicle = os.path.join(folder, vehicle)
    world = content.get("world", "")
    if folder and os.path.isfile(os.path.join(folder, world)):
        world = os.path.join(folder, world)

    rotors = VehicleParameters.load(vehicle).rotors
    start = (*scenario.start, scenario.heading)
    return Facts(
        content.get("map", ""),
        folder,
        world,
        vehicle,
        rotors,
        start,
        scenario.wind.seed,
        scenario.rotor_command,
    )


def vehicle_nodes(
    settings: Mapping[str, str],
    facts: Facts,
    namespace: str,
    id: int,
    number: int,
    start: tuple[float, float, float],
) -> list[StartedNode]:
    """Return the nodes of one vehicle.

    `id` is that of RflySim3D; `number`, from 0, selects ports and seed; `start` is x and y in m and
    the heading in rad, ENU.
    """
    seed = (
        _integer("seed", settings["seed"], 0, 2**31 - 1 - MAX_VEHICLES)
        if settings["seed"]
        else facts.seed
    )

    simulated: dict[str, Any] = {
        "start": list(start),
        "seed": seed + number,
        "id": id,
        "type": model_type(facts.rotors),
        "publish_clock": settings["use_sim_time"] == "true" and number == 0,
        "command_patience": PATIENCE,
    }

    of_a_vehicle = _executables(settings)
    if ESTIMATOR not in of_a_vehicle:
        simulated["tf_source"] = "truth"

    sensors = {"sensors": settings["sensors"]} if settings["sensors"] else {}
    link_port = LINK_PORT + LINK_PORTS * number

    # parameters of single nodes
    special: dict[str, dict[str, Any]] = {
        SIMULATION.executable: simulated | sensors,
        ESTIMATOR.executable: sensors,
        FLIGHT.executable: sensors | {"rotor_command": facts.rotor_command},
        POLICY.executable: sensors,
        LINK.executable: {
            "transport": settings["controller"],
            "port": link_port,
            "controller_port": link_port + 1,
            "odometry": "filtered",
        },
        MAVLINK.executable: {"port": MAVLINK_PORT + number},
        ARDUPILOT.executable: {"port": ARDUPILOT_PORT + ARDUPILOT_PORTS * number},
        MAPPING.executable: {"file": f"{namespace}.bt"},
    }

    to_all = {
        topic: f"/{topic}"
        for topic in ("vehicle_states", "terrain_map", "placed_objects", "environment")
    }

    if settings["ros2_control"] == "true":
        # with rviz robot_state_publisher publishes the description
        text = "" if settings["rviz"] == "true" else _description(settings, facts, namespace)
        special[CHASSIS.executable] = {"joint_commands": True, "robot_description": text}

        # robot_state_publisher makes the cameras' frame from their joint
        gimbal = "joint_states" if settings["rviz"] == "true" else "both"
        special[SIMULATION.executable]["gimbal_state"] = gimbal

    started = []
    if (
        GUIDANCE in of_a_vehicle or POLICY in of_a_vehicle
    ):  # in lock-step the controllers wait for it
        for controller in (FLIGHT, CHASSIS):
            special[controller.executable] = {
                **special.get(controller.executable, {}),
                "guided": settings["lock_step"] == "true",
            }
    for node in of_a_vehicle:
        of_vehicle = {} if node is MAPPING else {"vehicle": facts.vehicle}
        parameters = node_parameters(node, settings) | of_vehicle | special.get(node.executable, {})
        started.append(StartedNode(node.executable, namespace, parameters, to_all))
    return started


def station_nodes(
    settings: Mapping[str, str], names: Sequence[str], rotors: int
) -> list[StartedNode]:
    """Return mission_node and mavlink_node for vehicles with their own controllers."""
    vehicles: dict[str, Any] = {"vehicles": list(names)}
    vehicles |= {f"{name}.uav_type": "land-air" for name in names}
    shown = {f"{name}.rotors": rotors for name in names}
    return [
        StartedNode(
            MISSION.executable,
            parameters=node_parameters(MISSION, settings) | vehicles | {"simulate": False},
        ),
        StartedNode(
            STATION_LINK.executable,
            parameters=node_parameters(STATION_LINK, settings) | vehicles | shown,
        ),
    ]


def _check_mavlink(settings: Mapping[str, str], facts: Facts) -> None:
    """Raise ValueError for vehicles that ground stations cannot be connected with."""
    if settings["mavlink"] != "true":
        return
    others = settings["controller"] or settings["autopilot"]
    if others:
        raise ValueError(
            f"mavlink: {others} commands the vehicle, not mission_node; connect ground stations "
            "with that controller"
        )
    if not facts.map:
        raise ValueError(
            f"mavlink: the scenario {settings['scenario']!r} has no map, so no latitude and "
            "longitude; expected one with a map, such as valley or hills"
        )


def _check_one_commander(settings: Mapping[str, str]) -> None:
    """Raise ValueError for arguments by which two commands would reach the vehicle."""
    if settings["autopilot"] and settings["controller"]:
        raise ValueError(
            f"controller: {settings['controller']}, but autopilot says {settings['autopilot']}: "
            "expected one"
        )
    for name, others in (
        ("ros2_control", ("autopilot", "controller", "mavlink")),
        ("policy", ("autopilot", "controller", "ros2_control", "mavlink")),
    ):
        commanding = [other for other in others if is_given(settings, other)]
        if is_given(settings, name) and commanding:
            raise ValueError(f"{name}: {commanding[0]} commands the vehicle too: expected one")


def _executables(settings: Mapping[str, str]) -> list[NodeDescription]:
    """Return what runs for each vehicle."""
    mapping = [MAPPING] if settings["mapping"] == "true" else []
    controller = _OUTSIDE.get(settings["controller"] or settings["autopilot"])
    if controller is not None:
        estimator = [] if controller in _OWN_ESTIMATORS and not mapping else [ESTIMATOR]
        return [SIMULATION, *estimator, controller, *mapping]

    of_a_vehicle = [
        node for node in OF_A_VEHICLE if node is not GUIDANCE or settings["ros2_control"] != "true"
    ]
    if settings["policy"]:
        of_a_vehicle[of_a_vehicle.index(GUIDANCE)] = POLICY
    return [*of_a_vehicle, *mapping]


def _description(settings: Mapping[str, str], facts: Facts, namespace: str) -> str:
    """Return a vehicle's URDF."""
    from rfly_amphibious.description.urdf import vehicle_urdf
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    params = VehicleParameters.load(facts.vehicle)
    sensors = SensorParameters.for_vehicle(params.name, settings["sensors"])
    ros2_control = f"/{namespace}" if settings["ros2_control"] == "true" else None
    return vehicle_urdf(params, sensors=sensors, ros2_control=ros2_control)


def _state_publisher(settings: Mapping[str, str], facts: Facts, number: int) -> StartedNode:
    """Return the node that publishes a vehicle's URDF, and its wheels and rotors on /tf."""
    namespace = f"{settings['name']}_{number + 1}"
    parameters = {
        "robot_description": _description(settings, facts, namespace),
        "frame_prefix": f"{namespace}/",
        "publish_frequency": 50.0,
    }
    sim_time = {"use_sim_time": True} if settings["use_sim_time"] == "true" else {}
    return StartedNode(_STATE_PUBLISHER, namespace, parameters | sim_time, package=_STATE_PUBLISHER)


def _sensors(settings: Mapping[str, str], facts: Facts) -> str:
    """Return the sensor set, by default a policy's; "": the vehicle's own.

    Raise ConfigError for one that can't be read, or with which policy or PX4 cannot fly.
    """
    sensors = settings["sensors"]
    if settings["policy"]:
        from rfly_lab.learning.policy_pilot import PolicyPilot

        pilot = PolicyPilot.load(settings["policy"], facts.vehicle, sensors)
        sensors = sensors or pilot.policy.facts.sensors
    if sensors:
        from rfly_amphibious.sensors.sensor_parameters import SensorParameters

        SensorParameters.load(sensors)
    if settings["autopilot"] == "px4":
        _check_px4(facts.vehicle, sensors)
    return sensors


def _check_px4(vehicle: str, sensors: str) -> None:
    """Raise ConfigError for a vehicle or sensors with which PX4 cannot fly."""
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_mavlink.autopilots.px4_parameters import px4_parameters

    params = VehicleParameters.load(vehicle)
    px4_parameters(params, SensorParameters.for_vehicle(params.name, sensors))


def _integer(name: str, text: str, low: int, high: int) -> int:
    """Return a whole number within limits. Raise ValueError."""
    if not (text.isdecimal() and low <= int(text) <= high):
        raise ValueError(f"{name}: {text!r}, expected a whole number from {low} to {high}")
    return int(text)


_PX4 = "build/px4_sitl_default/bin/px4"
"""PX4's SITL below the folder of its sources."""


def start_commands(autopilot: str, nodes: Sequence[StartedNode]) -> list[str]:
    """Return lines that explain how to start the autopilot of each vehicle.

    `autopilot` is the argument of `amphibious_nodes`, `nodes` is its result.
    """
    link = {"px4": MAVLINK, "ardupilot": ARDUPILOT}.get(autopilot)
    if link is None:
        return []

    lines = []
    sets = {
        node.namespace: _sets(node) for node in nodes if node.executable == SIMULATION.executable
    }
    for node in nodes:
        if node.executable != link.executable:
            continue
        if link is MAVLINK:
            lines += _px4(node, sets[node.namespace])
        else:
            lines += _ardupilot(node, sets[node.namespace], _origin(nodes))
    return lines


def _sets(node: StartedNode) -> str:
    """Return the options that name the vehicle and the sensors of a simulation."""
    names = {name: node.parameters.get(name, "") for name in ("vehicle", "sensors")}
    paths = {
        name: str(Path(value).resolve()) if Path(value).is_file() else value
        for name, value in names.items()
    }
    return " ".join(f"--{name} {shlex.quote(path)}" for name, path in paths.items() if path)


def _px4(node: StartedNode, sets: str) -> list[str]:
    """Return the lines for PX4, whose instance follows from the port."""
    instance = node.parameters["port"] - MAVLINK_PORT
    file = f"{node.namespace}.px4"
    return [
        f"PX4 for {node.namespace}, in the folder of PX4's sources:",
        f"    rfly sim px4-params {file} {sets} --overwrite",
        f"    (set -a; . ./{file}; exec {_PX4} -i {instance})",
    ]


def _ardupilot(node: StartedNode, sets: str, origin: Sequence[float]) -> list[str]:
    """Return the lines for ArduPilot: Copter if it has the vehicle's frame, else Rover."""
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_common.errors import ConfigError
    from rfly_mavlink.autopilots.ardupilot_parameters import frame_of

    try:
        frame_of(VehicleParameters.load(node.parameters["vehicle"]))
    except ConfigError:
        firmware = "rover"
    else:
        firmware = "copter"

    instance = (node.parameters["port"] - ARDUPILOT_PORT) // ARDUPILOT_PORTS
    file = f"{node.namespace}.parm"
    home = ",".join(f"{value:.10g}" for value in (*origin, 0.0))
    return [
        f"ArduPilot for {node.namespace}:",
        f"    rfly sim ardupilot-params {file} {sets} --firmware {firmware} --overwrite",
        f"    ardu{firmware} --model JSON:127.0.0.1 --home {home} --defaults {file} -I{instance}",
    ]


def _origin(nodes: Sequence[StartedNode]) -> tuple[float, float, float]:
    """Return latitude, longitude (deg) and altitude (m) of the world's origin."""
    from rfly_common.geodesy import DEFAULT_GEO_ORIGIN
    from rfly_terrain.tiles.open_terrain import open_terrain

    for node in nodes:
        if node.executable == TERRAIN.executable:
            folders = node.parameters.get("map_search_path", ())
            return open_terrain(node.parameters["map"], folders).geo_origin or DEFAULT_GEO_ORIGIN
    return DEFAULT_GEO_ORIGIN
