# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lines of a shell that start the autopilots of land-air vehicles, PX4 and ArduPilot."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rfly_bringup.nodes.amphibious_set import (
    ARDUPILOT,
    ARDUPILOT_PORT,
    ARDUPILOT_PORTS,
    MAVLINK,
    MAVLINK_PORT,
    SIMULATION,
)
from rfly_bringup.nodes.node_set import TERRAIN, StartedNode

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
