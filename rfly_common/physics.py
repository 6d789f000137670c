"""Standard gravity and the standard atmosphere below 11 km (ISO 2533). docs/model, Eq. 3.3.

The functions take a float or an array. `kernels.atmosphere` has them inside compiled kernels.
"""

from __future__ import annotations

from typing import Any

GRAVITY = 9.80665
"""m/s²"""
AIR_DENSITY = 1.225
"""kg/m³ at sea level"""
SEA_LEVEL_PRESSURE = 101325.0
"""Pa"""
SEA_LEVEL_TEMPERATURE = 288.15
"""K"""
LAPSE_RATE = 0.0065
"""K/m"""
PRESSURE_EXPONENT = 5.25588
GAS_CONSTANT = 287.053
"""J/(kg K), of air"""


def standard_temperature(altitude: Any) -> Any:
    """K at m above sea level."""
    return SEA_LEVEL_TEMPERATURE - LAPSE_RATE * altitude


def pressure_at_temperature(temperature: Any) -> Any:
    """Pa where the standard atmosphere has this temperature, K."""
    return SEA_LEVEL_PRESSURE * (temperature / SEA_LEVEL_TEMPERATURE) ** PRESSURE_EXPONENT


def air_density(pressure: Any, temperature: Any) -> Any:
    """kg/m³ at Pa and K."""
    return pressure / (GAS_CONSTANT * temperature)


def standard_pressure(altitude: Any) -> Any:
    """Pa at m above sea level."""
    return pressure_at_temperature(standard_temperature(altitude))


def standard_density(altitude: Any) -> Any:
    """kg/m³ at m above sea level."""
    return air_density(standard_pressure(altitude), standard_temperature(altitude))


def pressure_altitude(pressure: Any) -> Any:
    """m above sea level where the standard atmosphere has this pressure, Pa."""
    share = (pressure / SEA_LEVEL_PRESSURE) ** (1.0 / PRESSURE_EXPONENT)
    return SEA_LEVEL_TEMPERATURE / LAPSE_RATE * (1.0 - share)
