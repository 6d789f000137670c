# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Write the schemas of parameter files to `data/schemas`, for editors.

Run by `python -m rfly_amphibious.write_schemas`.
"""

from __future__ import annotations

import json
from pathlib import Path

from rfly_amphibious.control.motor_output import MotorParameters
from rfly_amphibious.estimation.estimator_parameters import EstimatorParameters
from rfly_amphibious.replay.topic_map import TopicMap
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters

FOLDER = Path(__file__).parent / "data" / "schemas"
"""Folder of the schemas."""
SCHEMAS = {
    "vehicle_parameters": VehicleParameters.schema,
    "motors": MotorParameters.schema,
    "estimator": EstimatorParameters.schema,
    "sensors": SensorParameters.schema,
    "topics": TopicMap.schema,
}
"""Functions that return a schema, by the names of their files."""


def schema_text(name: str) -> str:
    """Return the content of a schema's file."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all schemas."""
    for name in SCHEMAS:
        (FOLDER / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
