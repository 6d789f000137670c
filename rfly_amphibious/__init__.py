"""The land-air vehicle: six rotors on a four-wheel chassis, one multibody system on the ground and in the air."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AmphibiousModel": "dynamics.model",
    "Controls": "dynamics.model",
    "ModelState": "dynamics.model",
    "Run": "dynamics.model",
    "SensorParameters": "sensors.sensor_parameters",
    "SensorSuite": "sensors.sensor_suite",
    "VehicleParameters": "vehicle.parameters",
    "Wind": "dynamics.wind",
}

__all__ = [
    "AmphibiousModel",
    "Controls",
    "ModelState",
    "Run",
    "SensorParameters",
    "SensorSuite",
    "VehicleParameters",
    "Wind",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"rfly_amphibious.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rfly_amphibious' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
