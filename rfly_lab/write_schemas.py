# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Write the schemas of parameter files to their packages' `data/schemas`, for editors.

Run by `python -m rfly_lab.write_schemas`.
"""

from __future__ import annotations

import json
from pathlib import Path

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.motor_output import MotorParameters
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_lab.replay.topic_map import TopicMap

ROOT = Path(__file__).parents[1]
"""Folder of the packages."""
SCHEMAS = {
    "rfly_amphibious/data/schemas/vehicle_parameters.schema.json": VehicleParameters.schema,
    "rfly_amphibious/data/schemas/sensors.schema.json": SensorParameters.schema,
    "rfly_autonomy/data/schemas/motors.schema.json": MotorParameters.schema,
    "rfly_autonomy/data/schemas/estimator.schema.json": EstimatorParameters.schema,
    "rfly_lab/data/schemas/topics.schema.json": TopicMap.schema,
}
"""Functions that return a schema, by its file."""


def schema_text(file: str) -> str:
    """Return the content of a schema's file."""
    return json.dumps(SCHEMAS[file](), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all schemas."""
    for file in SCHEMAS:
        (ROOT / file).write_text(schema_text(file), encoding="utf-8")


if __name__ == "__main__":
    main()
