# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Chassis controller that obeys joint commands of ros2_control, and nothing else.

Each wheel holds its own rate and, where it is steered, its own angle. A skid-steer chassis holds
the speed and the yaw rate that the rates of its sides mean. Mode, trust in the estimate and
traction control are those of the chassis controller.

Commands come as a JointState on `joint_commands`. ros-controls' JointStateTopicSystem lists all
joints in `name`. `position` and `velocity` hold the joints that have this command interface only,
in the order of `name`. A command is NaN until a controller has claimed its joint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rfly_amphibious.description.urdf import CAMERA_JOINT, steering_joint_limits
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.simulation.commands import Mode, WheelCommand
from rfly_amphibious.vehicle.ackermann import virtual_steering, wheel_angles
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import COMMAND_TIMEOUT, ChassisController
from rfly_autonomy.control.speed_controller import ForceObserver
from rfly_autonomy.control.stuck import StuckLimits
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.trust import CAREFUL_SPEED, Trust, TrustLimits
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError
from rfly_common.frames import rotation_matrix

FASTEST = 60.0
"""Speed on the ground that no wheel is turned for, m/s."""

WIDEST = math.tau
"""Angle that no controller sends for a joint, rad; an angle in degrees exceeds it."""

MOST_NAMED = 3
"""Joints that a refusal names."""

SLACK = 1e-6
"""Rounding error of the steering at its limit, rad."""


class JointCommand(NamedTuple):
    """Commands of the joints; NaN: of a joint that no controller has claimed."""

    wheel_rate: Floats
    """Rates of the wheels, (wheels,), rad/s, positive rolls forward."""

    steering: Floats
    """Angles of the steering joints, (wheels,), rad, positive to the left."""

    camera: float = math.nan
    """Pitch of the gimbal, rad, positive looks down."""


class JointCommandReader:
    """Reader of JointState messages for the joints of one vehicle."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._wheels = {f"wheel_{wheel}_joint": i for i, wheel in enumerate(params.wheels)}
        self._steered = {
            f"steer_{wheel}_joint": i
            for i, wheel in enumerate(params.wheels)
            if params.steering_sign[i]
        }
        self._known = {*joint_names(params), CAMERA_JOINT}
        self._limits = {
            "velocity": FASTEST / float(params.rolling_radius.mean()),
            "position": WIDEST,
        }
        self._most_steering = steering_joint_limits(params)[0]

    def __call__(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float] = (),
    ) -> JointCommand:
        """Return the command of a message's fields. Raise CommandError for one that can't be.

        Steering stops at its limit: controllers send more for bends that are too tight.
        """
        unknown = sorted(set(names) - self._known)
        if unknown:
            raise CommandError(f"unknown joints {', '.join(map(repr, unknown[:MOST_NAMED]))}")
        if len(set(names)) < len(names):
            raise CommandError("a joint is named twice")
        if len(effort):
            raise CommandError(f"effort: {len(effort)} values, expected none")

        # the joints that each list is for
        turned = [name for name in names if name in self._steered or name == CAMERA_JOINT]
        rolled = [name for name in names if name in self._wheels]
        values = {
            **self._values("position", turned, position),
            **self._values("velocity", rolled, velocity),
        }

        wheels = len(self._params.wheels)
        command = JointCommand(
            np.full(wheels, math.nan), np.full(wheels, math.nan), values.get(CAMERA_JOINT, math.nan)
        )
        for array, indices in (
            (command.wheel_rate, self._wheels),
            (command.steering, self._steered),
        ):
            for name in indices.keys() & values.keys():
                array[indices[name]] = values[name]

        # stops of the steering
        most = self._most_steering
        return command._replace(steering=np.clip(command.steering, -most, most))

    def _values(
        self, field: str, names: Sequence[str], values: Sequence[float]
    ) -> dict[str, float]:
        """Return the values of a field by joint. Raise CommandError."""
        if len(values) != len(names):
            raise CommandError(
                f"{field}: {len(values)} values, expected one for each of "
                f"{', '.join(names) or 'no joint'}"
            )
        limit = self._limits[field]
        for name, value in zip(names, values, strict=True):
            if abs(value) > limit:
                raise CommandError(
                    f"{field} of {name} is {value:g}, expected -{limit:g} to {limit:g}"
                )
        return dict(zip(names, values, strict=True))


RATE_TIME = 0.015
"""Time constant of a wheel in the air under its rate's error, s."""

FILTER_TIME = 0.1
"""Time constant of the filter of rate errors, s.

Wheels swing on their tyres at about 25 Hz, and the motors' lag turns quick answers into a drive.
"""

EQUAL = 1e-5
"""Sum of |state - command| up to which JointStateTopicSystem sends nothing, rad and rad/s."""


class WheelRateController:
    """Proportional controllers of the wheels' rates. Eq. 10.21.

    An observer finds the force on the vehicle that the model does not know.
    """

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._gain = params.wheel_inertia / RATE_TIME
        self.reset()

    def reset(self) -> None:
        """Forget what was learned."""
        self._error = np.zeros(len(self._params.wheels))
        """Filtered errors of the rates, (wheels,), rad/s."""

        self._observer = ForceObserver(self._params.effective_mass)
        self._known_force: float | None = None
        """Sum of the forces of motors, brakes and the model, N; None if a wheel slips or hangs."""

    def torques(
        self,
        wanted: Floats,
        rate: Floats,
        dt: float,
        *,
        speed: float,
        resistance: float,
        most: float,
        share: Floats,
        grip: Floats | float,
    ) -> tuple[Floats, Floats]:
        """Return drive and brake torques, (wheels,), N m; wheels without a command roll freely.

        `wanted`, `rate`: (wheels,), rad/s, NaN without a command. `speed`, `resistance`: of the
        vehicle, m/s and N. `most`: torque of a motor, N m. `share`: of the torque that each wheel
        keeps, (wheels,). `grip`: share of the torque that its load lets it have, (wheels,).
        """
        p = self._params
        commanded = np.isfinite(wanted)

        # force that the model does not know
        if self._known_force is None:
            self._observer.skip(speed)
        else:
            self._observer.update(speed, self._known_force, dt)
        against = resistance - self._observer.force

        # torque of each wheel
        change = np.where(commanded, wanted - rate, 0.0) - self._error
        error = self._error + (1.0 - math.exp(-dt / FILTER_TIME)) * change
        self._error = error
        ahead = against * p.rolling_radius / commanded.sum()
        torque = (grip * ahead + self._gain * error) * commanded * grip

        # motors first; brakes do the rest of what acts against the spin
        drive = np.clip(torque, -most, most) * p.is_driven
        brake = np.clip((drive - torque) * np.sign(rate), 0.0, p.max_brake_torque) * share
        drive = drive * share

        force = float(((drive - np.sign(rate) * brake) / p.rolling_radius).sum())
        pulls = np.all(share == 1.0) and np.all(np.asarray(grip) == 1.0)
        self._known_force = force - resistance if pulls else None
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
        self._angles = np.zeros(len(self.params.wheels))
        """Angles of the wheels, (wheels,), rad."""

    def set_joints(self, command: JointCommand) -> None:
        """Obey this command from now on. Steering without a command stays as it is.

        For a bend that is too tight all wheels turn as in the tightest.
        """
        self._command = command
        self._command_time = self._time
        steering = virtual_steering(self.params, command.steering)
        if not math.isnan(steering):
            most = self.params.max_steering
            self._virtual_steering = min(max(steering, -most), most)

            # steered wheels without a command turn with the others
            others = wheel_angles(self.params, self._virtual_steering)
            steered = np.isfinite(command.steering) & (self.params.steering_sign != 0.0)
            obeyed = steered & (abs(steering) <= most + SLACK)
            self._angles = np.where(obeyed, command.steering, others)
        if self._skid is not None:
            self._set_sides(command.wheel_rate)

    def _set_sides(self, rates: Floats) -> None:
        """Drive a skid-steer chassis as rates of the wheels, (wheels,), rad/s, mean."""
        assert self._skid is not None
        left, right = (rates[side::2][np.isfinite(rates[side::2])] for side in (0, 1))
        if not (left.size and right.size):
            self._setpoint = None
            return
        speed, yaw_rate = self._skid.twist_of(float(left.mean()), float(right.mean()))
        self.set_twist(speed, yaw_rate)

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
        if self._skid is not None:
            return super()._drive(time, estimate, dt)
        rotation = rotation_matrix(estimate.orientation)
        velocity = rotation.T @ estimate.velocity
        speed = float(velocity[0])
        self._update_traction(velocity, estimate)

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
            drive, brake = self._rates.torques(
                wanted,
                self._wheel_rate,
                dt,
                speed=speed,
                resistance=self._speed_controller.resistance(speed, grade),
                most=self._speed_controller.motor_torque(speed),
                share=share,
                grip=self._grip(),
            )
        else:
            self._rates.reset()
            yaw_rate = float(estimate.rates[2])
            drive, brake = self._speed_controller.torques(
                0.0, speed, dt, grade, yaw_rate=yaw_rate, share=share
            )
        self._wheel_torque = drive - math.copysign(1.0, speed) * brake
        return WheelCommand(time, self._virtual_steering, drive, brake, self._angles)
