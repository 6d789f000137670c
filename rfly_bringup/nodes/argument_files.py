# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arguments of the node set: files checked before any node starts, addresses for feedback."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from rfly_bringup.nodes.node_set import (
    PLANNER,
    TERRAIN,
    TRAJECTORY,
    NodeDescription,
    StartedNode,
    node_parameters,
    split_list,
    started_nodes,
)
from rfly_bringup.nodes.parameter_names import check_numbers
from rfly_common.config.checks import check_vehicle_names
from rfly_common.errors import ConfigError, RflyError
from rfly_common.files import check_ending, check_folder
from rfly_common.imports import require
from rfly_common.sockets.udp_sockets import ipv4
from rfly_ue_bridge.sockets.udp_sender import local_address_towards, resolve

MAX_CHECKED_VEHICLES = 100
"""Vehicles whose tracks are compared with the map before the start."""
CHECKED_POINTS = 501
"""Points of each of these tracks."""


def checked_arguments(arguments: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the arguments with what follows from world and host, and a warning, "" if none.

    Raise the error of whatever a node would refuse when others run already.
    """
    arguments = with_defaults_of_world(arguments)
    check_files(arguments)
    return fill_feedback_addresses(arguments), tracks_off_map(arguments)


def fill_feedback_addresses(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments with the addresses that a `host` elsewhere needs for feedback.

    `feedback_bind` and `feedback_multicast_interface`, if not given, become this machine's address
    in the host's network.
    """
    filled = dict(arguments)
    address = local_address_towards(arguments.get("host", ""))
    for name in ("feedback_bind", "feedback_multicast_interface"):
        if address and not filled.get(name):
            filled[name] = address
    return filled


def with_defaults_of_world(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments with their world's map and fleet, if none is given.

    They also get the folder of the world's file. Raise ConfigError for a world that cannot be read.
    """
    if not arguments.get("world"):
        return dict(arguments)
    from rfly_terrain.world.world_file import load_world

    world = load_world(arguments["world"])
    folders = [part for part in (arguments.get("map_search_path", ""), world.folder) if part]

    # a fleet next to the world's file
    fleet = world.fleet
    if world.folder and os.path.isfile(os.path.join(world.folder, fleet)):
        fleet = os.path.join(world.folder, fleet)

    return {
        **arguments,
        "map": arguments.get("map", "") or world.map,
        "fleet": arguments.get("fleet", "") or fleet,
        "map_search_path": os.pathsep.join(folders),
    }


def tracks_off_map(arguments: Mapping[str, str]) -> str:
    """Return a sentence about a fleet whose tracks leave the map, "" if none does.

    The default fleet fits on the default map, so the two are not compared. The files have been
    checked already.
    """
    given = any(arguments.get(name) for name in ("map", "fleet"))
    if not given or "fleet" not in arguments or TRAJECTORY not in started_nodes(arguments):
        return ""
    import numpy as np

    from rfly_terrain.ros.node_parameters import TerrainParameters
    from rfly_terrain.tiles.open_terrain import open_terrain
    from rfly_trajectory.fleet.fleet_file import load_fleet
    from rfly_trajectory.ros.node_parameters import TrajectoryParameters

    search_path = node_parameters(TERRAIN, arguments).get("map_search_path", ())
    terrain = open_terrain(arguments.get("map") or TerrainParameters().map, search_path)
    name = arguments.get("fleet") or TrajectoryParameters().fleet
    fleet = load_fleet(name)

    for index, vehicle in enumerate(fleet.vehicles[:MAX_CHECKED_VEHICLES]):
        length = vehicle.path.length
        s = np.linspace(0.0, length, CHECKED_POINTS)
        x, y = fleet.points_at(index, s)[:, :2].T
        share = 1.0 - float(np.mean(terrain.inside(x, y)))
        if share > 0.0:
            hint = "" if arguments.get("fleet") else "; give another one as fleet"
            return (
                f"fleet {name!r} leaves the map {terrain.name!r}: about {share * length:.0f} m of "
                f"the {length:.0f} m long track of {vehicle.name!r} are off it{hint}"
            )
    return ""


def check_files(arguments: Mapping[str, str]) -> None:
    """Raise the reader's error for what a node would refuse when others run already.

    These are files, names of vehicles, addresses, numbers out of range, a shard or an area.
    """
    check_recorder(arguments)
    check_imagery(arguments)
    check_addresses(arguments)
    check_libraries(started_nodes(arguments))
    check_numbers(started_nodes(arguments), arguments)
    _check_names(arguments)
    search_path = node_parameters(TERRAIN, arguments).get("map_search_path", ())

    if arguments.get("map"):
        from rfly_terrain.map_files.search import find_map
        from rfly_terrain.tiles.open_terrain import find_tiles

        if find_tiles(arguments["map"], search_path) is None:
            find_map(arguments["map"], search_path)

    if arguments.get("fleet"):
        from rfly_trajectory.fleet.fleet_file import load_fleet

        load_fleet(arguments["fleet"])

    if arguments.get("collision") == "true" and arguments.get("collision_shapes"):
        from rfly_collision.shapes.vehicle_shapes import load_shapes

        load_shapes(arguments["collision_shapes"])
    if arguments.get("collision") == "true" and arguments.get("vehicle_xml"):
        from rfly_collision.shapes.vehicle_descriptions import read_vehicle_descriptions

        read_vehicle_descriptions(arguments["vehicle_xml"])

    if PLANNER in started_nodes(arguments) and arguments.get("vehicle_classes"):
        from rfly_terrain.planning.vehicle_classes import load_vehicle_classes

        load_vehicle_classes(arguments["vehicle_classes"])
    if arguments.get("ue_sensors"):
        from rfly_ue_bridge.sensors.vision_config import VisionConfig

        try:
            VisionConfig.read(arguments["ue_sensors"])
        except (OSError, ConfigError) as error:
            raise ConfigError(f"ue_sensors: {error}") from error

    if arguments.get("shard"):
        from rfly_trajectory.fleet.fleet_file import shard_range

        shard_range(arguments["shard"], 0)

    if arguments.get("area"):
        from rfly_trajectory.fleet.area_shards import checked_area

        checked_area(
            node_parameters(TRAJECTORY, arguments)["area"],
            shard=arguments.get("shard", ""),
            per_vehicle="",
        )


def check_addresses(arguments: Mapping[str, str]) -> None:
    """Raise ConfigError for an address that is none."""
    if arguments.get("host"):
        resolve(arguments["host"])
    for name in ("feedback_bind", "feedback_multicast_interface"):
        if arguments.get(name):
            ipv4(arguments[name], name)


def _check_names(arguments: Mapping[str, str]) -> None:
    """Raise ConfigError for names of vehicles that a node would refuse."""
    from rfly_missions.ros.node_parameters import check_mission_vehicles
    from rfly_trajectory.ros.node_parameters import check_robots

    for name, check in (
        ("guarded_robots", check_robots),
        ("mission_vehicles", check_mission_vehicles),
    ):
        check(name, split_list(arguments.get(name, ""), ","))
    if arguments.get("goal_vehicle"):
        check_vehicle_names("goal_vehicle", [arguments["goal_vehicle"]])


def check_libraries(nodes: Iterable[StartedNode | NodeDescription]) -> None:
    """Raise ConfigError for a node whose library is not installed: it would end at its start."""
    for node in nodes:
        if node.executable.startswith("mavlink"):
            require("pymavlink", node.executable)


def check_imagery(arguments: Mapping[str, str]) -> None:
    """Raise ConfigError for a picture of the ground that a node would have to leave out."""
    path = arguments.get("imagery")
    if not path:
        return
    from rfly_terrain.imagery.imagery import check_picture

    try:
        check_picture(path)
    except RflyError as error:
        raise ConfigError(f"imagery: {error}") from None


def check_recorder(arguments: Mapping[str, str]) -> None:
    """Raise ConfigError for a recording that cannot be written, or without the library for it."""
    record = arguments.get("record", "")
    if record in ("", "false"):
        return
    require("mcap", "record")
    try:
        check_ending("" if record == "true" else record, ".mcap")
        check_folder("rfly_DATE_TIME.mcap" if record == "true" else record)
    except ConfigError as error:
        raise ConfigError(f"record: {error}") from None
    # a parameter file may say `overwrite`
    if record != "true" and os.path.exists(record) and not arguments.get("params_file"):
        raise ConfigError(f"record: {record} exists; choose another name")


def check_params_file(path: str, nodes: Sequence[StartedNode]) -> list[str]:
    """Return a sentence for each name in a ROS parameter file that these nodes don't have.

    Raise ConfigError for a file that no node could read.
    """
    if not path:
        return []
    from rfly_bringup.nodes.parameter_names import check_parameter_file

    try:
        return check_parameter_file(path, nodes)
    except ConfigError as error:
        raise ConfigError(f"params_file: {error}") from error
