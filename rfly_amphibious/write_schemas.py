"""Schemas of parameter files, written to `data/schemas` by `python -m
rfly_amphibious.write_schemas`, for editors.
"""

from __future__ import annotations

import json
from pathlib import Path

from rfly_amphibious.control.motor_output import MotorParameters
from rfly_amphibious.estimation.estimator_parameters import EstimatorParameters
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters

FOLDER = Path(__file__).parent / "data" / "schemas"
SCHEMAS = {
    "vehicle_parameters": VehicleParameters.schema,
    "motors": MotorParameters.schema,
    "estimator": EstimatorParameters.schema,
    "sensors": SensorParameters.schema,
}


def schema_text(name: str) -> str:
    """The file of a schema."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Writes them all."""
    for name in SCHEMAS:
        (FOLDER / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
