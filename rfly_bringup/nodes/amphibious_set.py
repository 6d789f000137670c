"""Node set of land-air vehicles, described once for `launch/amphibious.launch.py` and `rfly up
amphibious`.

Each vehicle has a namespace of its own, NAME_1, NAME_2, …; terrain and bridge serve all of them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rfly_bringup.nodes.node_set import (
    ARGUMENTS,
    BRIDGE,
    RECORDER,
    TERRAIN,
    Argument,
    NodeDescription,
    StartedNode,
    check_arguments,
    node_parameters,
    same,
    started_nodes,
    switch,
)

FIRST_ID = 601
SPACING = 8.0
"""m between vehicles, one behind the other"""
MAX_VEHICLES = 20
PATIENCE = 1.0
"""s: on a busy machine the simulation goes slower, where the fail-safe would act"""
LINK_PORT = 14660
LINK_PORTS = 2
"""of link_node of the first vehicle, the controller's port behind it; ports of a vehicle"""
MAVLINK_PORT = 4560
ARDUPILOT_PORT = 9002
ARDUPILOT_PORTS = 10
"""of ArduPilot's first instance; to the next one's"""
BETAFLIGHT_ROTORS = 4
MULTIROTOR = 3
"""RflySim's vehicle class; in front of it stands how many rotors there are, as a look of that class
"""

_LOCK_STEP = same("lock_step")
SIMULATION = NodeDescription(
    "amphibious_sim_node",
    {"map_folders": "map_search_path"} | same("scenario", "noise", "lock_step", "real_time_factor"),
)
ESTIMATOR = NodeDescription("state_estimator_node", _LOCK_STEP)
FLIGHT = NodeDescription("flight_control_node", _LOCK_STEP)
CHASSIS = NodeDescription("chassis_control_node", _LOCK_STEP)
GUIDANCE = NodeDescription("guidance_node", same("scenario", "map_search_path", "autostart"))
BETAFLIGHT = NodeDescription("betaflight_node", _LOCK_STEP)
"""in place of flight_control_node"""
LINK = NodeDescription("link_node", _LOCK_STEP)
"""frames over UDP or TCP: as the two below, it brings in a controller outside in place of the
control nodes
"""
MAVLINK = NodeDescription("mavlink_hil_node", _LOCK_STEP)
ARDUPILOT = NodeDescription("ardupilot_json_node", _LOCK_STEP)
MAPPING = NodeDescription("mapping_node", {}, needs="mapping")

OF_A_VEHICLE = (SIMULATION, ESTIMATOR, FLIGHT, CHASSIS, GUIDANCE)

_SHARED = (
    "world",
    "host",
    "windows",
    "feedback_bind",
    "feedback_multicast_interface",
    "map_search_path",
)
_STATE_PUBLISHER = "robot_state_publisher"
_SHOWN = "amphibious"
"""`name` for which the shipped RViz configuration is made"""
_OF_PROCESSES = ("use_sim_time", "params_file", "log_level", "respawn")
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
    Argument("sensors", "sensor set: a shipped name or a YAML file (default: the vehicle's)"),
    Argument(
        "autopilot",
        "real firmware: betaflight in place of flight_control_node, ardupilot (SITL) of control "
        "nodes and mission; "
        "the vehicle is scale_quad where no other is named",
        choices=("betaflight", "ardupilot"),
    ),
    Argument(
        "controller",
        "a controller outside in place of control nodes and mission: frames over udp or tcp, or "
        "mavlink",
        choices=("udp", "tcp", "mavlink"),
    ),
    Argument(
        "name",
        "names of the vehicles and their namespaces: NAME_1, NAME_2, …",
        "amphibious",
    ),
    Argument("count", "number of vehicles, one behind the other with the same mission", "1"),
    Argument(
        "seed",
        "of noise and gusts; the next vehicle has the next one (default: the scenario's)",
    ),
    switch("noise", "sensors have errors", "true"),
    switch("lock_step", "the simulation waits for the controllers"),
    Argument(
        "real_time_factor",
        "simulated seconds in a second; 0: as fast as possible (default 1)",
    ),
    switch(
        "mapping",
        "make a 3-D map from the lidar: starts mapping_node too, which saves NAME_1.bt, … when "
        "its service is called",
    ),
    switch("autostart", "begin with the mission by itself", "true"),
    *(
        a
        for a in ARGUMENTS
        if a.name in (*_SHARED, *_OF_PROCESSES, "record", "rviz", "rviz_config")
    ),
)


def amphibious_nodes(arguments: Mapping[str, str]) -> list[StartedNode]:
    """The processes that these arguments start, in the order of their start; what is left out has
    its default.

    Raises ValueError for an argument that can't be, ConfigError for a scenario or vehicle that
    can't be read.
    """
    given = {a.name: arguments.get(a.name, "") or a.default for a in AMPHIBIOUS_ARGUMENTS}
    check_arguments(
        {**arguments, **{name: value for name, value in given.items() if value}},
        AMPHIBIOUS_ARGUMENTS,
        (TERRAIN, BRIDGE, *OF_A_VEHICLE),
    )
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", given["name"]):
        raise ValueError(
            f"name: {given['name']!r}, expected letters, digits and _, the first a letter"
        )
    count = _integer("count", given["count"], 1, MAX_VEHICLES)
    if given["autopilot"] == "betaflight":
        _check_betaflight(given, count)
    if given["autopilot"]:
        given["vehicle"] = given["vehicle"] or "scale_quad"
        given["lock_step"] = "true"  # on a busy computer the one that is faster waits for the other
    if given["autopilot"] and given["controller"]:
        raise ValueError(
            f"controller: {given['controller']}, but autopilot says {given['autopilot']}: "
            "expected one"
        )
    facts = _facts(given)
    if given["autopilot"] == "betaflight" and facts.rotors != BETAFLIGHT_ROTORS:
        raise ValueError(
            f"vehicle: {facts.vehicle!r} has {facts.rotors} rotors, expected {BETAFLIGHT_ROTORS}: "
            "Betaflight's"
        )
    if given["sensors"]:
        from rfly_amphibious.sensors.sensor_parameters import SensorParameters

        SensorParameters.load(given["sensors"])
    given["map_search_path"] = os.pathsep.join(
        part for part in (given["map_search_path"], facts.folder) if part
    )
    given["world"] = given["world"] or facts.world
    shared = {**given, "map": facts.map}
    of_all = [
        *started_nodes(given, [RECORDER]),
        *([TERRAIN] if facts.map else []),
        BRIDGE,
    ]
    more = {BRIDGE.executable: _ground_of_world(given, facts)}
    started = [
        StartedNode(
            node.executable,
            "",
            node_parameters(node, shared) | more.get(node.executable, {}),
        )
        for node in of_all
    ]
    for number in range(count):
        started += _vehicle_nodes(given, facts, number)
    if given["rviz"] == "true":
        if given["name"] != _SHOWN and not given["rviz_config"]:
            raise ValueError(
                f"rviz: the shipped configuration shows {_SHOWN}_1; for {given['name']}_1 give "
                "one as rviz_config"
            )
        started += [_state_publisher(given, facts, number) for number in range(count)]
    return started


def _ground_of_world(given: Mapping[str, str], facts: _Facts) -> dict[str, Any]:
    """What the bridge must know of the ground that a world stands on. Raises ValueError where it is
    another map's.
    """
    if not given["world"]:
        return {}
    from rfly_terrain.world.world_file import load_world

    wanted = load_world(given["world"]).map
    if wanted and Path(wanted).stem != Path(facts.map).stem:
        here = f"on the map {facts.map!r}" if facts.map else "on level ground"
        raise ValueError(
            f"world: {given['world']!r} is made for the map {wanted!r}, the scenario "
            f"{given['scenario']!r} is {here}"
        )
    return {} if facts.map else {"level_ground": True}


@dataclass(frozen=True)
class _Facts:
    """What a scenario says that several nodes must know."""

    map: str
    """name or path; "": level ground"""
    folder: str
    """of the scenario's file; "": a shipped one"""
    world: str
    """what stands there: name or path; "": nothing"""
    vehicle: str
    rotors: int
    start: tuple[float, float, float]
    seed: int


def _facts(given: Mapping[str, str]) -> _Facts:
    from rfly_amphibious.scenarios.scenario import Scenario
    from rfly_amphibious.vehicle.parameter_files import (
        checked_document,
        load_schema,
        read_parameters,
    )
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    name = given["scenario"]
    folders = [part for part in given["map_search_path"].split(os.pathsep) if part]
    scenario = Scenario.load(name, folders)
    data, file, _ = read_parameters("scenario", "scenarios", name)
    content = checked_document(
        data, file, load_schema("scenario"), "version, vehicle, mission, end"
    ).value
    folder = str(Path(file).parent.resolve()) if os.path.isfile(file) else ""
    vehicle = given["vehicle"] or content["vehicle"]
    if not given["vehicle"] and folder and os.path.isfile(os.path.join(folder, vehicle)):
        vehicle = os.path.join(folder, vehicle)
    world = content.get("world", "")
    if folder and os.path.isfile(os.path.join(folder, world)):
        world = os.path.join(folder, world)
    rotors = VehicleParameters.load(vehicle).rotors
    start = (*scenario.start, scenario.heading)
    return _Facts(
        content.get("map", ""),
        folder,
        world,
        vehicle,
        rotors,
        start,
        scenario.wind.seed,
    )


def _vehicle_nodes(given: Mapping[str, str], facts: _Facts, number: int) -> list[StartedNode]:
    namespace = f"{given['name']}_{number + 1}"
    x, y, heading = facts.start
    back = SPACING * number
    seed = (
        _integer("seed", given["seed"], 0, 2**31 - 1 - MAX_VEHICLES)
        if given["seed"]
        else facts.seed
    )
    simulated: dict[str, Any] = {
        "start": [x - back * math.cos(heading), y - back * math.sin(heading), heading],
        "seed": seed + number,
        "id": FIRST_ID + number,
        "type": 100_000 * facts.rotors + MULTIROTOR,
        "publish_clock": given["use_sim_time"] == "true" and number == 0,
        "command_patience": PATIENCE,
    }
    sensors = {"sensors": given["sensors"]} if given["sensors"] else {}
    link_port = LINK_PORT + LINK_PORTS * number
    special: dict[str, dict[str, Any]] = {
        SIMULATION.executable: simulated | sensors,
        **{node.executable: sensors for node in (ESTIMATOR, FLIGHT, BETAFLIGHT)},
        LINK.executable: {
            "transport": given["controller"],
            "port": link_port,
            "controller_port": link_port + 1,
        },
        MAVLINK.executable: {"port": MAVLINK_PORT + number},
        ARDUPILOT.executable: {"port": ARDUPILOT_PORT + ARDUPILOT_PORTS * number},
        MAPPING.executable: {"file": f"{namespace}.bt"},
    }
    outside = {"ardupilot": ARDUPILOT, "mavlink": MAVLINK, "udp": LINK, "tcp": LINK}
    of_a_vehicle = [
        BETAFLIGHT if node is FLIGHT and given["autopilot"] else node for node in OF_A_VEHICLE
    ]
    if by := outside.get(given["controller"] or given["autopilot"]):
        of_a_vehicle = [SIMULATION, ESTIMATOR, by]
    if given["mapping"] == "true":
        of_a_vehicle.append(MAPPING)
    to_all = {
        topic: f"/{topic}"
        for topic in ("vehicle_states", "terrain_map", "placed_objects", "environment")
    }
    started = []
    for node in of_a_vehicle:
        of_vehicle = {} if node is MAPPING else {"vehicle": facts.vehicle}
        parameters = node_parameters(node, given) | of_vehicle | special.get(node.executable, {})
        started.append(StartedNode(node.executable, namespace, parameters, to_all))
    return started


def _state_publisher(given: Mapping[str, str], facts: _Facts, number: int) -> StartedNode:
    """What tells RViz how the vehicle looks, and /tf where its wheels and rotors are, by its
    joint_states.
    """
    from rfly_amphibious.description.urdf import vehicle_urdf
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    namespace = f"{given['name']}_{number + 1}"
    parameters = {
        "robot_description": vehicle_urdf(VehicleParameters.load(facts.vehicle)),
        "frame_prefix": f"{namespace}/",
        "publish_frequency": 50.0,
    }
    sim_time = {"use_sim_time": True} if given["use_sim_time"] == "true" else {}
    return StartedNode(_STATE_PUBLISHER, namespace, parameters | sim_time, package=_STATE_PUBLISHER)


def _check_betaflight(given: Mapping[str, str], count: int) -> None:
    """Raises ValueError for what real firmware cannot do."""
    if given["real_time_factor"] and float(given["real_time_factor"]) != 1.0:
        raise ValueError(
            f"real_time_factor: {given['real_time_factor']}, but Betaflight flies by the wall clock"
        )
    if count > 1:
        raise ValueError(f"count: {count}, but Betaflight's ports are fixed: it flies one vehicle")


def _integer(name: str, text: str, low: int, high: int) -> int:
    if not (text.isdecimal() and low <= int(text) <= high):
        raise ValueError(f"{name}: {text!r}, expected a whole number from {low} to {high}")
    return int(text)
