"""betaflight_node: Betaflight in the loop in place of flight_control_node.

The same topics; the attitude loop is the firmware's. It runs on the wall clock: the simulation must not be faster. In
lock-step it waits for the firmware's answers, so that a busy computer slows it down instead of losing the vehicle.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from sensor_msgs.msg import FluidPressure, Imu

from rfly_amphibious.autopilots.betaflight_attitude import BetaflightAttitudeLoop
from rfly_amphibious.autopilots.betaflight_session import BetaflightSession, find_firmware, shipped_settings
from rfly_amphibious.control.flight_controller import FlightController
from rfly_amphibious.ros import amphibious_msgs as convert
from rfly_amphibious.ros.flight_control_node import FlightControlNode
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import AutopilotError, ConfigError, SensorMessageError
from rfly_common.ros.diagnostics import ERROR, STALE, WARN
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.parameters import declare
from rfly_common.ros.qos import sensor_qos
from rfly_common.ros.run_loop import run
from rfly_common.ros.stamps import stamp_to_ns

PACE_TIME, PACE_ERROR = 2.0, 0.1
"""s over which the simulation's pace is taken; of it, beyond which the firmware's clock is another one"""
SILENCE = 1.0
"""s without imu/data"""


class BetaflightNode(FlightControlNode):
    """`flight_control_node` with the firmware as its attitude loop."""

    def __init__(self) -> None:
        self._session: BetaflightSession | None = None
        self._heard_at = -math.inf
        self._begin: tuple[float, int] | None = None
        self._pace = 1.0
        self._trouble = ""
        try:
            super().__init__("betaflight_node", "scale_quad")
        except ConfigError:
            self._end_firmware()
            raise
        lock_step = bool(self.get_parameter("lock_step").value)
        subscription(self, FluidPressure, "baro", self._take_pressure, sensor_qos(lock_step))

    def _computer(
        self, params: VehicleParameters, sensors: SensorParameters, delay: float, timeout: float
    ) -> FlightController:
        settings = declare(self, "settings", "scale_quad", "for the firmware's command line: a shipped name or a file")
        folder = declare(self, "folder", "", "where the firmware keeps its settings; empty: a temporary one")
        program = declare(self, "program", "", "the firmware; empty: the one that the package betaflight has built")
        self._session = session = _start(settings, folder, program)
        self.get_logger().info(f"Betaflight runs as process {session.pid}, settings {settings!r}")
        self._attitude_loop = BetaflightAttitudeLoop(session, params, sensors)
        return FlightController(params, sensors, command_timeout=timeout, attitude_loop=self._attitude_loop)

    def destroy_node(self) -> None:
        """Ends the firmware first."""
        self._end_firmware()
        super().destroy_node()

    def _end_firmware(self) -> None:
        if self._session is not None:
            self._session.close()

    def _take_pressure(self, message: FluidPressure) -> None:
        try:
            self._flight.sense(SensorSamples(barometer=convert.barometer_samples(message)))
        except SensorMessageError as error:
            self._refuse("baro", error)

    def _take_imu(self, message: Imu) -> None:
        stamp_ns = stamp_to_ns(message.header.stamp)
        self._heard_at = now = time.monotonic()
        if self._begin is None or stamp_ns < self._begin[1]:
            self._begin = now, stamp_ns
        elif now - self._begin[0] >= PACE_TIME:
            self._pace = (stamp_ns - self._begin[1]) * 1e-9 / (now - self._begin[0])
            self._begin = now, stamp_ns
        super()._take_imu(message)

    def _compute(self, stamp_ns: int, dt: float) -> None:
        try:
            super()._compute(stamp_ns, dt)
        except AutopilotError as error:  # no command: the simulation's fail-safe acts, or in lock-step it stands still
            text, self._trouble = str(error), str(error)
            if self._ticks is not None:
                self._ticks.unanswered()
            self.get_logger().error(text, throttle_duration_sec=5.0)
        else:
            self._trouble = ""

    def _say(self) -> None:
        flight, session = self._flight, self._session
        assert session is not None
        silence = time.monotonic() - self._heard_at
        values: dict[str, Any] = {
            "mode": flight.mode.value,
            "reason": flight.reason,
            "armed": session.status is not None and session.status.armed,
            "real_time_factor": f"{self._pace:.2f}",
            "ignored_datagrams": session.ignored,
        }
        if session.attitude is not None:
            values["attitude_deg"] = " ".join(f"{math.degrees(angle):.1f}" for angle in session.attitude)
        if session.why_ended or self._trouble:
            self._diagnostics.set(ERROR, session.why_ended or self._trouble, **values)
        elif silence > SILENCE:
            text = "no imu/data has come yet" if math.isinf(silence) else f"no imu/data for {silence:.0f} s"
            self._diagnostics.set(STALE, text, **values)
        elif abs(self._pace - 1.0) > PACE_ERROR:
            text = f"the simulation runs at {self._pace:.2f} of real time, but Betaflight flies by the wall clock"
            self._diagnostics.set(WARN, text, **values)
        elif self._attitude_loop.arming_disable_flags:
            flags = ", ".join(self._attitude_loop.arming_disable_flags)
            self._diagnostics.set(WARN, f"Betaflight does not arm: {flags}", **values)
        else:
            super()._say()


def _start(settings: str, folder: str, program: str) -> BetaflightSession:
    """Raises ConfigError where the firmware cannot be started."""
    try:
        if settings.endswith(".txt"):
            lines = Path(settings).read_text(encoding="utf-8").splitlines()
        else:
            lines = shipped_settings(settings)
        return BetaflightSession(lines, folder or None, Path(program) if program else find_firmware())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Betaflight: {error}") from error


def main() -> None:
    """Entry point of the executable `betaflight_node`."""
    run(BetaflightNode, often=True)
