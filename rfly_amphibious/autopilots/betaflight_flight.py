"""Flight controller interface around a running Betaflight process."""

from __future__ import annotations

import time

from rfly_amphibious.autopilots.betaflight_controller import BetaflightController
from rfly_amphibious.autopilots.betaflight_session import BetaflightSession
from rfly_amphibious.control.commands import RotorCommand
from rfly_amphibious.control.flight_controller import COMMAND_TIMEOUT
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.sensors.samples import ImuSamples, SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import AutopilotError, ConfigError

RADIO_PERIOD = 0.01
"""s of the wall clock"""
ANSWER_TIME = 0.001
"""s that the firmware's answer to a packet of the state is waited for; if it is later, it counts in the next step"""
SILENT_TIME, SILENT_STATES = 0.25, 50
"""s without motors, and packets of the state that it has not answered: then it hangs"""


class BetaflightFlight(BetaflightController):
    """Each step sends the newest sample of the IMU and the sticks, and gives the motors that come back.

    The firmware sees the IMU and the barometer only, with the attitude that the IMU's own filter makes of its readings.
    """

    def __init__(
        self,
        session: BetaflightSession,
        params: VehicleParameters,
        sensors: SensorParameters | None = None,
        *,
        command_timeout: float = COMMAND_TIMEOUT,
    ) -> None:
        self.session = session
        super().__init__(params, sensors, command_timeout=command_timeout)
        if any(self._imu.rotation):
            raise ConfigError(f"sensors {self.sensors.name!r}: Betaflight needs an imu along the axes of the body")

    def reset(self) -> None:
        """As it was made; the firmware goes on, and is disarmed by its switch."""
        super().reset()
        self._sample: ImuSamples | None = None
        self._pressure = 101325.0
        self._radio_due = 0.0
        self._unanswered = 0

    def sense(self, samples: SensorSamples) -> None:
        """What came in since the last step."""
        super().sense(samples)
        if samples.imu is not None:
            self._sample = samples.imu
        if samples.barometer is not None:
            self._pressure = float(samples.barometer.pressure[-1])

    def step(self, estimate: Estimate | None, dt: float) -> RotorCommand:
        """As `FlightController.step`. Raises AutopilotError while the firmware has ended, or does not answer."""
        session = self.session
        if session.why_ended:
            raise AutopilotError(session.why_ended)
        self._send_state()
        motors = session.motors(ANSWER_TIME)
        if motors is not None:
            self._unanswered = 0
            self.take_motors(motors)
        command = super().step(estimate, dt)
        now = time.monotonic()
        if now >= self._radio_due:
            self._radio_due = now + RADIO_PERIOD
            session.send_radio(self.channels)
        try:
            session.poll_telemetry()
        except AutopilotError as error:
            raise AutopilotError(session.wait_ended() or str(error)) from error
        self.take_status(session.status)
        if self._unanswered > SILENT_STATES and now - session.motors_time > SILENT_TIME:
            raise AutopilotError(f"Betaflight has sent no motors for {now - session.motors_time:.2f} s")
        return command

    def _send_state(self) -> None:
        sample = self._sample
        if sample is None:
            return
        self._unanswered += 1
        self.session.send_state(
            sample.rates[-1], sample.specific_force[-1], sample.orientation[-1], pressure=self._pressure
        )
