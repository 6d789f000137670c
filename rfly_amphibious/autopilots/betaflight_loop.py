# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Betaflight in the loop on the wall clock, without ROS: sensors, estimator, firmware, vehicle."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from rfly_amphibious.autopilots.betaflight_attitude import BetaflightAttitudeLoop
from rfly_amphibious.autopilots.betaflight_session import BetaflightSession
from rfly_amphibious.control.chassis_controller import ChassisController
from rfly_amphibious.control.commands import RotorCommand
from rfly_amphibious.control.flight_controller import FlightController
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.estimation.estimator import StateEstimator
from rfly_amphibious.estimation.estimator_parameters import EstimatorParameters
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.simulation import Simulation
from rfly_common.errors import ConfigError

IMU_RATE = 500.0
"""Rate of the vehicle's states, Hz."""

LATEST = 0.05
"""Delay of a tick after which the schedule is put off, s: lost time is not made up in a rush."""


def fast_imu(sensors: SensorParameters, rate: float = IMU_RATE) -> SensorParameters:
    """Return the sensors with an IMU of a rate, Hz. Raise ConfigError if there is none."""
    if sensors.imu is None:
        raise ConfigError(f"sensors {sensors.name!r}: Betaflight needs an imu")
    return sensors.replace(imu=dataclasses.replace(sensors.imu, rate=rate))


class BetaflightLoop:
    """Simulation at the pace of the wall clock, with the firmware in the loop.

    No part of the loop knows the truth. `withhold`: the firmware's motors do not reach the rotors,
    which stand still.
    """

    def __init__(
        self,
        simulation: Simulation,
        session: BetaflightSession,
        estimator: EstimatorParameters | None = None,
    ) -> None:
        params = simulation.model.params
        sensors = simulation.sensors.parameters

        self.simulation = simulation
        self.session = session
        self.attitude_loop = BetaflightAttitudeLoop(session, params, sensors)

        self.flight = FlightController(params, sensors, attitude_loop=self.attitude_loop)
        self.chassis = ChassisController(params)
        self.estimator = StateEstimator(
            EstimatorParameters.load(params.name) if estimator is None else estimator,
            sensors,
            params,
            simulation.sensors.geo_origin,
            simulation.model.terrain,
        )

        self.estimate: Estimate | None = None
        self.withhold = False

        self.overruns = 0
        """Number of ticks that were so late that the schedule was put off."""

        self._due = -1.0

    def tick(self) -> SensorSamples:
        """Run one tick, which begins no earlier than scheduled.

        Raise AutopilotError if the firmware has ended or hangs.
        """
        self._wait()

        simulation = self.simulation
        flight = self.flight
        seen = simulation.tick()
        self.estimate = self.estimator.update(seen)
        for controller in (flight, self.chassis):
            controller.advance_clock(simulation.time)
            controller.sense(seen)

        rotors = flight.step(self.estimate, simulation.period)
        wheels = self.chassis.step(self.estimate, flight.mode, simulation.period)
        speeds = np.zeros_like(rotors.value) if self.withhold else rotors.value
        simulation.command_rotors(RotorCommand(simulation.time, speeds))
        simulation.command_wheels(dataclasses.replace(wheels, time=simulation.time))

        return seen

    def run(self, seconds: float, each: Callable[[], bool] | None = None) -> bool:
        """Run for some seconds, or until `each`, called after every tick, is true.

        Return whether `each` was true.
        """
        end = self.simulation.time + seconds
        while self.simulation.time < end:
            self.tick()
            if each is not None and each():
                return True
        return False

    def _wait(self) -> None:
        """Wait until the next tick is due, or put the schedule off."""
        now = time.monotonic()
        if self._due < 0.0 or now - self._due > LATEST:
            self.overruns += self._due >= 0.0
            self._due = now
        elif now < self._due:
            time.sleep(self._due - now)
        self._due += self.simulation.period
