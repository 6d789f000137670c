"""Set-up of a simulation: vehicle, sensors, start and wind out of amphibious_sim_node's parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.ros.declared_vehicle import load_sensors
from rfly_amphibious.ros.node_parameters import WorldParameters
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError


@dataclass(frozen=True)
class SimulationSetup:
    """Vehicle, sensors, start and wind, of a scenario where one is named."""

    scenario: Scenario | None
    params: VehicleParameters
    sensors: SensorParameters
    start: tuple[float, float, float]
    """x east, y north (m), heading (rad from east)"""
    wind: Wind
    hears_terrain: bool
    """the ground is that of `terrain_map`"""

    @classmethod
    def of(cls, given: WorldParameters) -> SimulationSetup:
        """Raises ConfigError that names the parameter."""
        scenario = Scenario.load(given.scenario, given.map_folders) if given.scenario else None
        if scenario is not None and given.ground == "level":
            raise ConfigError(
                "parameter ground: level, but scenario says where it is; expected auto or "
                "terrain_map"
            )
        if scenario is not None and not given.vehicle:
            params = scenario.params
        else:
            params = VehicleParameters.load(given.vehicle or "scale")
        start = given.start
        if start and (len(start) != 3 or not all(map(math.isfinite, start))):
            raise ConfigError(f"parameter start: {start}, expected x, y, heading")
        of_scenario = (0.0, 0.0, 0.0) if scenario is None else (*scenario.start, scenario.heading)
        return cls(
            scenario,
            params,
            load_sensors(given.sensors, params),
            (start[0], start[1], start[2]) if start else of_scenario,
            _wind(given, Wind() if scenario is None else scenario.wind),
            given.ground == "terrain_map" or (given.ground == "auto" and scenario is None),
        )


def _wind(given: WorldParameters, base: Wind) -> Wind:
    mean = given.wind
    sigma = given.gust_sigma
    for key, numbers in (("wind", mean), ("gust_sigma", sigma)):
        if numbers and len(numbers) != 3:
            raise ConfigError(f"parameter {key}: {numbers}, expected three numbers")
    try:
        return Wind(
            (mean[0], mean[1], mean[2]) if mean else base.mean,
            (sigma[0], sigma[1], sigma[2]) if sigma else base.gust_sigma,
            base.gust_time,
            base.seed if given.seed < 0 else given.seed,
            base.turbulence if given.turbulence < 0 else given.turbulence,
        )
    except ConfigError as error:
        raise ConfigError(f"parameters wind, gust_sigma, turbulence: {error}") from None
