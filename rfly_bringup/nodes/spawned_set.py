# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Land-air vehicles that spawner_node starts while the others run, and their processes. No ROS."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rfly_amphibious.vehicle.motor_channels import FIRST_ID
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_bringup.nodes.amphibious_set import (
    AMPHIBIOUS_ARGUMENTS,
    MAX_VEHICLES,
    Facts,
    station_nodes,
    vehicle_nodes,
)
from rfly_bringup.nodes.node_set import StartedNode
from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.entities import SCHEME

LAND_AIR = "land_air"
"""Name of the vehicle that the simulation takes by default."""
VEHICLES = {
    LAND_AIR: "scale",
    "full": "full",
    "scale": "scale",
    "scale_quad": "scale_quad",
    "scale_six": "scale_six",
}
"""Shipped parameters of a vehicle, by the name in a request."""
DESCRIPTIONS = {
    SCHEME + name: f"land-air vehicle with its dynamics: the parameters {parameters!r}"
    for name, parameters in VEHICLES.items()
}
"""Descriptions of the vehicles, by the uri in a request."""
FIRST_NUMBER = MAX_VEHICLES + 1
"""Number of the first spawned vehicle; those of `rfly up amphibious` have smaller ones."""
MOST_SPAWNED = 20
"""Most vehicles at a time: each has its own simulation and controllers, and a core is full soon."""


@dataclass(frozen=True)
class SpawnedVehicle:
    """A land-air vehicle to start: what it is, where it stands, and the numbers that it has."""

    name: str
    """Namespace of its nodes."""
    parameters: str
    """Name of shipped parameters."""
    number: int
    """MAVLink system id; with FIRST_ID - 1 it makes the id for RflySim3D."""
    start: tuple[float, float, float]
    """x east, y north, m; heading from east, rad."""

    @property
    def id(self) -> int:
        """RflySim copterID."""
        return FIRST_ID - 1 + self.number


def spawned_parameters(uri: str) -> str:
    """Return the shipped parameters that a uri names; raise ConfigError for another one."""
    name = uri.removeprefix(SCHEME)
    if not uri.startswith(SCHEME) or name not in VEHICLES:
        raise ConfigError(f"{uri!r}: expected {', '.join(DESCRIPTIONS)}")
    return VEHICLES[name]


def free_number(taken: Collection[int]) -> int:
    """Return the smallest free number of a spawned vehicle."""
    numbers = range(FIRST_NUMBER, FIRST_NUMBER + MOST_SPAWNED)
    return next(number for number in numbers if number not in taken)


def spawned_nodes(
    vehicle: SpawnedVehicle, arguments: Mapping[str, str], targets: Sequence[str] | None
) -> list[StartedNode]:
    """Return the nodes of a vehicle, which stands until it is commanded.

    `arguments` are those of `rfly up amphibious` that concern it. Its ground is that of
    terrain_map. `targets` are the ground stations that its own mavlink_node sends to; without them
    it speaks no MAVLink.
    """
    rotors = VehicleParameters.load(vehicle.parameters).rotors
    facts = Facts("", "", "", vehicle.parameters, rotors, vehicle.start, vehicle.number)
    defaults = {argument.name: argument.default for argument in AMPHIBIOUS_ARGUMENTS}
    settings = {**defaults, "scenario": "", "autostart": "false", **arguments}
    nodes = vehicle_nodes(settings, facts, vehicle.name, vehicle.id, vehicle.number, vehicle.start)
    if targets is None:
        return nodes

    suffix = vehicle.name.replace("/", "_")
    mission, station = (
        replace(node, node_name=f"{node.executable}_{suffix}")
        for node in station_nodes(settings, [vehicle.name], rotors)
    )
    own = {f"{vehicle.name}.system_id": vehicle.number, "port": 0, "targets": list(targets)}
    return [*nodes, mission, replace(station, parameters={**station.parameters, **own})]
