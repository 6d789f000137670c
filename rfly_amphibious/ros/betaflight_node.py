# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""betaflight_node: Betaflight in the loop in place of flight_control_node.

It has the same topics, but the attitude loop is the firmware's. The firmware runs on the wall
clock, so the simulation must not be faster. In lock-step the simulation waits for the firmware's
answers: a busy computer slows it down instead of losing the vehicle.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rfly_suite.msg import RotorCommand
from sensor_msgs.msg import FluidPressure

from rfly_amphibious.autopilots.betaflight_attitude import BetaflightAttitudeLoop
from rfly_amphibious.autopilots.betaflight_session import (
    BetaflightSession,
    find_firmware,
    shipped_settings,
)
from rfly_amphibious.control.flight_controller import FlightController
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.ros.amphibious_msgs import barometer_samples
from rfly_amphibious.ros.declared_vehicle import (
    declare_gains,
    declare_vehicle_name,
)
from rfly_amphibious.ros.flight_control_topics import FlightControlTopics
from rfly_amphibious.ros.node_parameters import (
    DELAY,
    ControlParameters,
    FirmwareParameters,
    FlightControlParameters,
    TrustParameters,
)
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import AutopilotError, ConfigError
from rfly_common.files import read_regular
from rfly_common.ros.diagnostics import ERROR, STALE, WARN, Diagnostics, Row
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import sensor_qos
from rfly_common.ros.run_loop import run

PACE_TIME = 2.0
"""Time over which the simulation's pace is measured, s."""
PACE_ERROR = 0.1
"""Deviation of the pace from real time that is reported."""
SILENCE = 1.0
"""Time without imu/data that is reported, s."""
MAX_SETTINGS_BYTES = 1_000_000
"""Largest file of settings, bytes."""


class BetaflightNode(Node):
    """Node with the topics of `flight_control_node`, and the firmware as its attitude loop."""

    def __init__(self) -> None:
        super().__init__("betaflight_node")
        self._heard_at = -math.inf
        self._pace_from: tuple[float, int] | None = None
        self._pace = 1.0
        self._error = ""

        name = declare_vehicle_name(self)
        control = declare_parameters(self, ControlParameters, defaults={"vehicle": "scale_quad"})
        params = declare_gains(self, VehicleParameters.load(control.vehicle or "scale_quad"))
        delay = {"delay": 0.0 if control.lock_step else DELAY}
        settings = declare_parameters(self, FlightControlParameters, defaults=delay)
        firmware = declare_parameters(self, FirmwareParameters)
        sensors = SensorParameters.for_vehicle(params.name, settings.sensors)

        limits = declare_parameters(self, TrustParameters).limits
        self._session = _start(firmware)
        self.get_logger().info(
            f"Betaflight runs as process {self._session.pid}, settings {firmware.settings!r}"
        )

        try:
            self._attitude_loop = BetaflightAttitudeLoop(self._session, params, sensors)
            self._flight = FlightController(
                params,
                sensors,
                command_timeout=settings.command_timeout,
                trust_limits=limits,
                attitude_loop=self._attitude_loop,
            )
            self._diagnostics = Diagnostics(self, "flight", name, self._update_diagnostics)
            self._topics = FlightControlTopics(
                self,
                self._flight,
                self._diagnostics,
                self._update_diagnostics,
                params,
                vehicle=name,
                lock_step=control.lock_step,
                guided=control.guided,
                step=self._step,
                on_stamp=self._measure_pace,
            )
        except ConfigError:
            self._session.close()
            raise

        subscription(self, FluidPressure, "baro", self._on_baro, sensor_qos(control.lock_step))
        self._update_diagnostics()

    def destroy_node(self) -> None:
        """End the firmware, then the node."""
        self._session.close()
        super().destroy_node()

    def _on_baro(self, message: FluidPressure) -> None:
        self._topics.loop.sense("baro", lambda: SensorSamples(barometer=barometer_samples(message)))

    def _measure_pace(self, stamp_ns: int) -> None:
        now = time.monotonic()
        self._heard_at = now
        if self._pace_from is None or stamp_ns < self._pace_from[1]:
            self._pace_from = now, stamp_ns
        elif now - self._pace_from[0] >= PACE_TIME:
            self._pace = (stamp_ns - self._pace_from[1]) * 1e-9 / (now - self._pace_from[0])
            self._pace_from = now, stamp_ns

    def _step(self, estimate: Estimate | None, dt: float) -> RotorCommand | None:
        """Return a command, None if the firmware does not answer.

        Then the simulation's fail-safe acts, or in lock-step it stands still.
        """
        try:
            command = self._topics.step(estimate, dt)
        except AutopilotError as error:
            self._error = str(error)
            self.get_logger().error(self._error, throttle_duration_sec=5.0)
            return None
        self._error = ""
        return command

    def _update_diagnostics(self) -> None:
        session = self._session
        silence = time.monotonic() - self._heard_at
        values: dict[str, Any] = {
            **self._topics.values(),
            "armed": session.status is not None and session.status.armed,
            "real_time_factor": f"{self._pace:.2f}",
            "ignored_datagrams": session.ignored,
        }

        if session.attitude is not None:
            values["attitude_deg"] = " ".join(
                f"{math.degrees(angle):.1f}" for angle in session.attitude
            )

        error = session.why_ended or self._error
        silent = (
            "no imu/data has come yet"
            if math.isinf(silence)
            else f"no imu/data for {silence:.0f} s"
        )
        off_pace = (
            f"the simulation runs at {self._pace:.2f} of real time, but Betaflight flies by the "
            "wall clock"
        )
        flags = self._attitude_loop.arming_disable_flags

        rows: list[Row] = [
            (error, ERROR, error),
            (silence > SILENCE, STALE, silent),
            (abs(self._pace - 1.0) > PACE_ERROR, WARN, off_pace),
            (flags, WARN, f"Betaflight does not arm: {', '.join(flags)}"),
        ]
        self._diagnostics.set_first([*rows, *self._topics.rows()], **values)


def _start(firmware: FirmwareParameters) -> BetaflightSession:
    """Start the firmware. Raise ConfigError if that fails."""
    try:
        if firmware.settings.endswith(".txt"):
            lines = read_regular(firmware.settings, MAX_SETTINGS_BYTES).decode("utf-8").splitlines()
        else:
            lines = shipped_settings(firmware.settings)
        return BetaflightSession(
            lines,
            firmware.folder or None,
            Path(firmware.program) if firmware.program else find_firmware(),
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Betaflight: {error}") from error


def main() -> None:
    """Run the executable `betaflight_node`."""
    run(BetaflightNode, often=True)
