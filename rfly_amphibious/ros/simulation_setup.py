# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Set-up of a simulation from the parameters of amphibious_sim_node."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.ros.node_parameters import WorldParameters
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError
from rfly_terrain.world.ground_friction import TYRES_OWN, GroundFriction
from rfly_terrain.world.world_file import load_world


@dataclass(frozen=True)
class SimulationSetup:
    """Vehicle, sensors, start and wind, from a scenario if one is named."""

    scenario: Scenario | None
    params: VehicleParameters
    sensors: SensorParameters
    start: tuple[float, float, float]
    """Start: x east, y north, m; heading, rad from east."""
    wind: Wind
    friction: GroundFriction
    """Friction of the ground."""
    hears_terrain: bool
    """True if the ground is that of `terrain_map`."""

    @classmethod
    def of(cls, world: WorldParameters) -> SimulationSetup:
        """Return the set-up. Raise ConfigError that names the parameter."""
        scenario = Scenario.load(world.scenario, world.map_folders) if world.scenario else None

        if scenario is not None and world.ground == "level":
            raise ConfigError(
                "parameter ground: level, but scenario says where it is; expected auto or "
                "terrain_map"
            )

        if scenario is not None and not world.vehicle:
            params = scenario.params
        else:
            params = VehicleParameters.load(world.vehicle or "scale")

        start = world.start
        if start and (len(start) != 3 or not all(map(math.isfinite, start))):
            raise ConfigError(f"parameter start: {start}, expected x, y, heading")
        of_scenario = (0.0, 0.0, 0.0) if scenario is None else (*scenario.start, scenario.heading)

        return cls(
            scenario,
            params,
            SensorParameters.for_vehicle(params.name, world.sensors),
            (start[0], start[1], start[2]) if start else of_scenario,
            _wind(world, Wind() if scenario is None else scenario.wind),
            _friction(world, scenario),
            world.ground == "terrain_map" or (world.ground == "auto" and scenario is None),
        )


def _friction(world: WorldParameters, scenario: Scenario | None) -> GroundFriction:
    """Return the friction of the world that is named, or of the scenario's."""
    if world.world:
        return load_world(world.world).friction
    if scenario is None or scenario.world is None:
        return TYRES_OWN
    return scenario.world.friction


def _wind(world: WorldParameters, base: Wind) -> Wind:
    """Return the wind of the parameters, in place of `base` where they are set."""
    mean = world.wind
    sigma = world.gust_sigma
    for key, numbers in (("wind", mean), ("gust_sigma", sigma)):
        if numbers and len(numbers) != 3:
            raise ConfigError(f"parameter {key}: {numbers}, expected three numbers")

    try:
        return Wind(
            (mean[0], mean[1], mean[2]) if mean else base.mean,
            (sigma[0], sigma[1], sigma[2]) if sigma else base.gust_sigma,
            base.gust_time,
            base.seed if world.seed < 0 else world.seed,
            base.turbulence if world.turbulence < 0 else world.turbulence,
            base.roughness if world.roughness < 0 else world.roughness,
            base.lee or world.lee,
        )
    except ConfigError as error:
        raise ConfigError(f"parameters wind, gust_sigma, turbulence: {error}") from None
