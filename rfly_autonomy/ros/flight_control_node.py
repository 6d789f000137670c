# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""flight_control_node: a thin shell around the flight controller, and owner of the mode.

It uses sensors and estimates, never the truth, and answers each imu/data with a cmd/rotors of the
same stamp.
"""

from __future__ import annotations

from rclpy.node import Node

from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import load_attitude_law
from rfly_autonomy.control.flight_controller import FlightController
from rfly_autonomy.ros.flight_control_topics import FlightControlTopics, declare_gains
from rfly_autonomy.ros.node_parameters import (
    DELAY,
    ControlParameters,
    FlightControlParameters,
    TrustParameters,
)
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.run_loop import run


class FlightControlNode(Node):
    """Node that publishes `mode` and `cmd/rotors` from commands, samples and estimates."""

    def __init__(self) -> None:
        super().__init__("flight_control_node")
        name = declare_vehicle_name(self)
        control = declare_parameters(self, ControlParameters)
        params = declare_gains(self, VehicleParameters.load(control.vehicle or "scale"))
        delay = {"delay": 0.0 if control.lock_step else DELAY}
        settings = declare_parameters(self, FlightControlParameters, defaults=delay)

        flight = FlightController(
            params,
            SensorParameters.for_vehicle(params.name, settings.sensors),
            delay=settings.delay,
            command_timeout=settings.command_timeout,
            trust_limits=declare_parameters(self, TrustParameters).limits,
            attitude_law=load_attitude_law(settings.attitude_law),
            rotor_command=settings.rotor_command,
        )

        self._diagnostics = Diagnostics(self, "flight", name, self._update_diagnostics)
        self._topics = FlightControlTopics(
            self,
            flight,
            self._diagnostics,
            self._update_diagnostics,
            params,
            vehicle=name,
            lock_step=control.lock_step,
            guided=control.guided,
        )
        self._update_diagnostics()

    def _update_diagnostics(self) -> None:
        self._diagnostics.set_first(self._topics.rows(), **self._topics.values())


def main() -> None:
    """Run the executable `flight_control_node`."""
    run(FlightControlNode, often=True)
