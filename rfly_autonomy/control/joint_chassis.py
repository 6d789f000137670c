# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Chassis controller that obeys joint commands of ros2_control, and nothing else.

Each wheel holds its own rate; steered wheels take their angles. Mode, trust in the estimate and
traction control are those of the chassis controller.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.simulation.commands import Mode, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import (
    COMMAND_TIMEOUT,
    SKID_INTEGRAL,
    ChassisController,
    SkidSteer,
)
from rfly_autonomy.control.joint_commands import JointCommand
from rfly_autonomy.control.speed_controller import ForceObserver, virtual_steering
from rfly_autonomy.control.stuck import StuckLimits
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.trust import CAREFUL_SPEED, Trust, TrustLimits
from rfly_common.arrays import Floats
from rfly_common.frames import rotation_matrix

RATE_TIME = 0.015
"""Time constant of a wheel in the air under its rate's error, s."""

EQUAL = 1e-5
"""Sum of |state - command| up to which JointStateTopicSystem sends nothing, rad and rad/s."""


class WheelRateController:
    """Proportional controllers of the wheels' rates, which learn what acts against the wheels.

    An observer finds the force on the vehicle that the model does not know. Integrals find what
    turns the wheels against each other: tyres that slide aside in the bends of a skid-steer
    chassis. Eq. 10.21.
    """

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._skid = SkidSteer(params) if params.steered == "none" else None
        self._gain = params.wheel_inertia / RATE_TIME
        self.reset()

    def reset(self) -> None:
        """Forget what was learned."""
        self._integral = np.zeros(len(self._params.wheels))
        self._observer = ForceObserver(self._params.effective_mass)
        self._known_force: float | None = None
        """Sum of the forces of motors, brakes and the model, N; None if a wheel slips."""

    def torques(
        self, wanted: Floats, rate: Floats, resistance: float, most: float, share: Floats, dt: float
    ) -> tuple[Floats, Floats]:
        """Return drive and brake torques, (wheels,), N m; wheels without a command roll freely.

        `wanted`, `rate`: (wheels,), rad/s, NaN without a command. `resistance`: of the vehicle, N.
        `most`: torque of a motor, N m. `share`: of the torque that each wheel keeps, (wheels,).
        """
        p = self._params
        commanded = np.isfinite(wanted)

        # force that the model does not know
        speed = float((rate * p.rolling_radius)[commanded].mean())
        if self._known_force is None:
            self._observer.skip(speed)
        else:
            self._observer.update(speed, self._known_force, dt)
        against = resistance - self._observer.force

        # torque of each wheel
        error = np.where(commanded, wanted - rate, 0.0)
        apart = np.where(commanded & (share == 1.0), error - error[commanded].mean(), 0.0)
        self._integral += dt * SKID_INTEGRAL * self._gain * apart
        self._integral = np.clip(self._integral, -most, most) * commanded
        ahead = against * p.rolling_radius / commanded.sum()
        torque = ahead + self._gain * error + self._integral
        if self._skid is not None:
            torque += self._skid.scrubbing(self._skid.yaw_rate_of(np.nan_to_num(wanted)))
        torque *= commanded

        # motors first; brakes do the rest of what acts against the spin
        drive = np.clip(torque, -most, most) * p.is_driven
        brake = np.clip((drive - torque) * np.sign(rate), 0.0, p.max_brake_torque) * share
        drive = drive * share

        force = float(((drive - np.sign(rate) * brake) / p.rolling_radius).sum())
        self._known_force = force - resistance if (share == 1.0).all() else None
        return drive, brake


class JointChassisController(ChassisController):
    """Controller of steering, motors and brakes by the newest joint command.

    With commands of 0, or NaN for all wheels, the vehicle stops and its brakes hold it. A command
    older than `command_timeout` (s, 0: never) is lost, and the vehicle brakes, unless the joints do
    what it says: ros2_control sends nothing then.
    """

    def __init__(
        self,
        params: VehicleParameters,
        *,
        command_timeout: float = COMMAND_TIMEOUT,
        trust_limits: TrustLimits | None = None,
        stuck_limits: StuckLimits | None = None,
    ) -> None:
        super().__init__(
            params,
            command_timeout=command_timeout or math.inf,
            trust_limits=trust_limits,
            stuck_limits=stuck_limits,
        )

    def reset(self) -> None:
        """Return to the initial state."""
        super().reset()
        self._rates = WheelRateController(self.params)
        self._command: JointCommand | None = None
        self._command_time = -math.inf
        self._virtual_steering = 0.0

    def set_joints(self, command: JointCommand) -> None:
        """Obey this command from now on. Steering without a command stays as it is."""
        self._command = command
        self._command_time = self._time
        steering = virtual_steering(self.params, command.steering)
        if not math.isnan(steering):
            most = self.params.max_steering
            self._virtual_steering = min(max(steering, -most), most)

    @property
    def command_lost(self) -> bool:
        """True if there was a command, and its silence means that its sender is gone."""
        command = self._command
        if command is None or self._time - self._command_time <= self.command_timeout:
            return False
        errors = np.abs((command.wheel_rate - self._wheel_rate, command.steering - self._steering))
        return not np.nansum(errors) <= EQUAL

    @property
    def is_ordered(self) -> bool:
        """True if a command is in effect that turns a wheel."""
        return bool(np.nan_to_num(self._wanted).any())

    @property
    def _wanted(self) -> Floats:
        """Commanded rates of the wheels, (wheels,), rad/s; NaN without a command."""
        command = self._command
        if command is None or self.command_lost:
            return np.full(len(self.params.wheels), math.nan)
        return command.wheel_rate

    def _enter(self, mode: Mode | None) -> None:
        super()._enter(mode)
        self._rates.reset()
        if mode is Mode.DRIVE and self.command_lost:
            self._command = None

    def _drive(self, time: float, estimate: Estimate, dt: float) -> WheelCommand:
        rotation = rotation_matrix(estimate.orientation)
        velocity = rotation.T @ estimate.velocity
        speed = float(velocity[0])
        self._update_traction(velocity, estimate.rates)

        # rates of the wheels
        wanted = self._wanted
        forward = np.nansum(wanted * self.params.rolling_radius) / max(np.isfinite(wanted).sum(), 1)
        if self.trust.level is Trust.SLOW:
            fastest = np.nanmax(np.abs(wanted * self.params.rolling_radius), initial=CAREFUL_SPEED)
            wanted = wanted * (CAREFUL_SPEED / fastest)
        self.stuck.update(time, estimate.position[:2], float(forward))

        # torques
        grade = math.asin(max(-1.0, min(1.0, float(rotation[2, 0]))))
        share = self.traction.share
        if np.nan_to_num(wanted).any():
            self._speed_controller.reset()
            resistance = self._speed_controller.resistance(speed, grade)
            most = self._speed_controller.motor_torque(speed)
            drive, brake = self._rates.torques(
                wanted, self._wheel_rate, resistance, most, share, dt
            )
        else:
            self._rates.reset()
            yaw_rate = float(estimate.rates[2])
            drive, brake = self._speed_controller.torques(
                0.0, speed, dt, grade, yaw_rate=yaw_rate, share=share
            )
        self._wheel_torque = drive - math.copysign(1.0, speed) * brake
        return WheelCommand(time, self._virtual_steering, drive, brake)
