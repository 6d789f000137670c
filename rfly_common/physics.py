# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Standard gravity and the standard atmosphere below 11 km (ISO 2533). docs/model, Eq. 3.3.

The functions take a float or an array. `kernels.atmosphere` has them inside compiled kernels.
"""

from __future__ import annotations

from typing import Any

GRAVITY = 9.80665
"""Standard gravity, m/s²."""
AIR_DENSITY = 1.225
"""Air density at sea level, kg/m³."""
SEA_LEVEL_PRESSURE = 101325.0
"""Air pressure at sea level, Pa."""
SEA_LEVEL_TEMPERATURE = 288.15
"""Temperature at sea level, K."""
LAPSE_RATE = 0.0065
"""Decrease of temperature with height, K/m."""
PRESSURE_EXPONENT = 5.25588
"""Exponent of the pressure's dependence on temperature."""
GAS_CONSTANT = 287.053
"""Specific gas constant of air, J/(kg K)."""


def standard_temperature(altitude: Any) -> Any:
    """Return the temperature, K, at an altitude above sea level, m."""
    return SEA_LEVEL_TEMPERATURE - LAPSE_RATE * altitude


def pressure_at_temperature(temperature: Any) -> Any:
    """Return the pressure, Pa, at which the standard atmosphere has this temperature, K."""
    return SEA_LEVEL_PRESSURE * (temperature / SEA_LEVEL_TEMPERATURE) ** PRESSURE_EXPONENT


def air_density(pressure: Any, temperature: Any) -> Any:
    """Return the density, kg/m³, from pressure, Pa, and temperature, K."""
    return pressure / (GAS_CONSTANT * temperature)


def standard_pressure(altitude: Any) -> Any:
    """Return the pressure, Pa, at an altitude above sea level, m."""
    return pressure_at_temperature(standard_temperature(altitude))


def standard_density(altitude: Any) -> Any:
    """Return the density, kg/m³, at an altitude above sea level, m."""
    return air_density(standard_pressure(altitude), standard_temperature(altitude))


def pressure_altitude(pressure: Any) -> Any:
    """Return the altitude above sea level, m, for a pressure, Pa.

    It is the altitude at which the standard atmosphere has this pressure.
    """
    share = (pressure / SEA_LEVEL_PRESSURE) ** (1.0 / PRESSURE_EXPONENT)
    return SEA_LEVEL_TEMPERATURE / LAPSE_RATE * (1.0 - share)
