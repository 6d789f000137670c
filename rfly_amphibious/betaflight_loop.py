"""Betaflight flies a simulated vehicle, on the wall clock and without ROS: simulation, flight computer, firmware."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.betaflight_cli import Attitude
from rfly_amphibious.betaflight_computer import BetaflightComputer
from rfly_amphibious.betaflight_session import BetaflightSession
from rfly_amphibious.chassis_control import brake_in
from rfly_amphibious.commands import RotorCommand, WheelCommand
from rfly_amphibious.estimate import Estimate
from rfly_amphibious.modes import Mode
from rfly_amphibious.sensor_parameters import SensorParameters
from rfly_amphibious.sensor_samples import SensorSamples
from rfly_amphibious.simulation import Simulation
from rfly_common.errors import AutopilotError

Floats = NDArray[np.float64]

IMU_RATE = 500.0
"""Hz: packets of the vehicle's state a second"""
RADIO_PERIOD = 0.01
"""s"""
LATEST = 0.05
"""s that a tick may be late before the schedule is put off: what is lost then is not made up in a rush"""


def fast_imu(sensors: SensorParameters, rate: float = IMU_RATE) -> SensorParameters:
    """The sensors with an IMU of this rate, Hz."""
    if sensors.imu is None:
        raise AutopilotError(f"sensors {sensors.name!r}: Betaflight needs an imu")
    return sensors.replace(imu=dataclasses.replace(sensors.imu, rate=rate))


class BetaflightLoop:
    """Runs the simulation at the pace of the wall clock with the firmware in the loop.

    `estimate`: makes an estimate of what was sensed in a tick, or None before it can. `withhold`: the firmware's motors
    do not reach the rotors, which stand still.
    """

    def __init__(
        self,
        simulation: Simulation,
        session: BetaflightSession,
        estimate: Callable[[SensorSamples], Estimate | None],
    ) -> None:
        self.simulation, self.session, self._estimate = simulation, session, estimate
        params = simulation.model.params
        self.computer = BetaflightComputer(params, simulation.sensors.parameters)
        self.withhold = False
        self.overruns = 0
        """ticks that came so late that the schedule was put off"""
        self._due = -1.0
        self._radio_due = 0.0
        self._pressure = 101325.0
        self._newest: Estimate | None = None

    @property
    def attitude(self) -> Attitude | None:
        """What the firmware takes for the vehicle's attitude, by MSP."""
        return self.session.attitude

    def tick(self) -> SensorSamples:
        """One tick, which returns no earlier than the wall clock lets it. Raises AutopilotError where the firmware has
        ended.
        """
        self._wait()
        if self.session.why_ended:
            raise AutopilotError(self.session.why_ended)
        simulation, computer, session = self.simulation, self.computer, self.session
        motors = session.motors()
        if motors is not None:
            computer.take_motors(motors)
        seen = simulation.tick()
        computer.sense(seen)
        estimate = self._estimate(seen)
        self._newest = estimate if estimate is not None else self._newest
        command = computer.step(self._newest, simulation.period)
        self._tell(seen)
        speeds = np.zeros_like(command.value) if self.withhold else command.value
        brake = brake_in(computer.mode, computer.params, computer.logic.wheels, computer._down)
        if computer.mode is Mode.DRIVE:
            brake = computer.params.max_brake_torque
        simulation.command_rotors(RotorCommand(simulation.time, speeds))
        simulation.command_wheels(WheelCommand(simulation.time, brake_torque=np.full(4, brake)))
        return seen

    def run(self, seconds: float, each: Callable[[], bool] | None = None) -> bool:
        """Ticks for this long, or until `each`, called after every tick, is true: whether it was."""
        end = self.simulation.time + seconds
        while self.simulation.time < end:
            self.tick()
            if each is not None and each():
                return True
        return False

    def _tell(self, seen: SensorSamples) -> None:
        session = self.session
        if seen.barometer is not None:
            self._pressure = float(seen.barometer.pressure[-1])
        if seen.imu is not None:
            velocity = np.zeros(3) if self._newest is None else self._newest.velocity
            imu = seen.imu
            session.send_state(
                imu.rates[-1], imu.specific_force[-1], imu.orientation[-1], velocity, pressure=self._pressure
            )
        now = time.monotonic()
        if now >= self._radio_due:
            self._radio_due = now + RADIO_PERIOD
            session.send_radio(self.computer.channels)
        session.poll_telemetry()
        self.computer.take_status(session.status)

    def _wait(self) -> None:
        now = time.monotonic()
        if self._due < 0.0 or now - self._due > LATEST:
            self.overruns += self._due >= 0.0
            self._due = now
        elif now < self._due:
            time.sleep(self._due - now)
        self._due += self.simulation.period
