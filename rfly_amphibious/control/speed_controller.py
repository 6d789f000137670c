# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speed controller: a speed setpoint to drive and brake torques. docs/model, section 10.2."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.control.modes import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.physics import AIR_DENSITY, GRAVITY

SPEED_GAIN = 1.5
"""Gain of the speed error, 1/s."""

INTEGRAL_GAIN = 0.3
"""Gain of the integral of the speed error, 1/s²."""

INTEGRAL_BAND = 0.3
"""Speed error below which it is integrated, m/s: only the last error counts, not the way there."""

HOLD_SPEED = 0.05
"""Speed below which the brakes hold a vehicle that is to stand, m/s."""

HOLD_SHARE = 0.3
"""Share of the largest brake torque that holds a standing vehicle."""

MAX_LATERAL = 0.6
"""Share of the friction that steering may use up."""

SKID_STEERING = 1.2
"""Largest angle of the imagined steered wheels of a chassis that steers by its motors, rad."""


def brake_torque_in(mode: Mode, params: VehicleParameters, wheels: float, down: bool) -> float:
    """Return the brake torque of each wheel in modes other than DRIVE, N m. docs/model, section 9.

    `wheels`: number with load, low-passed. `down`: whether the vehicle has touched the ground since
    an abort.
    """
    if mode in (Mode.DISARMED, Mode.SPOOL_DOWN):
        return HOLD_SHARE * params.max_brake_torque
    if (mode is Mode.TAKEOFF and wheels > 0.5) or (mode is Mode.ABORT and down):
        return params.max_brake_torque
    return 0.0


def max_virtual_steering(params: VehicleParameters) -> float:
    """Return the largest steering angle of the virtual wheel, rad.

    A chassis that steers by its motors has an imagined one.
    """
    return SKID_STEERING if params.steered == "none" else params.max_steering


def steering_lever(params: VehicleParameters) -> float:
    """Return tan(steering) over the curvature of the path, m. Three axles: Eq. 10.15.

    Two of three axles work against each other.
    """
    if params.middle_axle is not None and params.steered != "none":
        return _linear_turn(params)[0]
    return params.wheelbase * (0.5 if params.steered == "all" else 1.0)


def understeer_gradient(params: VehicleParameters) -> float:
    """Return the understeer gradient K_us, rad s²/m. Eq. 10.11, 10.15.

    It is the steering for each m/s² to the side, in addition to that of the geometry.
    """
    p = params
    if p.middle_axle is not None and p.steered != "none":
        lever, aside = _linear_turn(p)
        return p.wheelbase / lever * aside
    front, rear = p.axle_stiffness.tolist()[:2]
    to_front = p.front_axle - p.center_x
    to_rear = p.rear_axle + p.center_x
    return p.mass / p.wheelbase * (to_rear / front - to_front / rear)


def _linear_turn(p: VehicleParameters) -> tuple[float, float]:
    """Return the steering per curvature, m, and per m/s² to the side, rad s²/m, of three axles.

    On linear tyres forces and moments about the centre of mass balance; the unknowns are the
    steering and the body's slip angle. Eq. 10.15.
    """
    x = p.axles - p.center_x
    stiffness = p.axle_stiffness
    sign = p.steering_sign[::2]
    unknown = [[stiffness @ sign, -stiffness.sum()], [stiffness @ (sign * x), -stiffness @ x]]
    known = np.array(((stiffness @ x, p.mass), (stiffness @ x**2, 0.0)))
    lever, aside = np.linalg.solve(unknown, known)[0].tolist()
    return lever, aside


class SpeedController:
    """Speed controller with an integral of the speed error."""

    def __init__(self, params: VehicleParameters) -> None:
        self.params = params
        self._driven = params.is_driven
        self.reset()

    def reset(self) -> None:
        """Forget the integral."""
        self._integral = 0.0

    def torques(
        self, wanted: float, speed: float, dt: float, grade: float = 0.0, hold: bool = True
    ) -> tuple[Floats, Floats]:
        """Return drive and brake torques, (wheels,), N m, for a wanted and a present speed, m/s.

        `grade`: slope of the path, rad, positive uphill. `hold`: whether the brakes hold a vehicle
        that is to stand.
        """
        p = self.params
        if hold and wanted == 0.0 and abs(speed) < HOLD_SPEED:
            self._integral = 0.0
            return np.zeros(len(p.wheels)), np.full(len(p.wheels), HOLD_SHARE * p.max_brake_torque)

        error = wanted - speed
        moving = speed if abs(speed) > HOLD_SPEED else wanted
        pull = p.effective_mass * (SPEED_GAIN * error + self._integral) + self.resistance(
            moving, grade
        )

        # the motors take the whole force as a driving one; the brakes take what exceeds their
        # braking
        direction = math.copysign(1.0, speed if abs(speed) > HOLD_SPEED else pull)
        most = self.motor_torque(speed) * self._driven.sum() / p.rolling_radius.mean()
        driving = min(max(pull, -most), most)
        drive = driving * p.rolling_radius * self._driven / max(self._driven.sum(), 1.0)

        rest = pull - driving
        brake = np.zeros(len(p.wheels))
        if rest * direction < 0.0:
            brake = np.minimum(
                self._brake_shares(abs(rest)) * abs(rest) * p.rolling_radius, p.max_brake_torque
            )

        # a vehicle that stands still against its orders pulls more and more until it breaks away
        if rest == 0.0 and (abs(error) < INTEGRAL_BAND or abs(speed) < HOLD_SPEED):
            self._integral += dt * INTEGRAL_GAIN * error
        return drive, brake

    def _brake_shares(self, force: float) -> Floats:
        """Return each wheel's share of a braking force (N), (wheels,). Eq. 10.7; six wheels: 10.16.

        The force moves load to the front, which then brakes more.
        """
        p = self.params
        if p.middle_axle is None:
            shift = p.center_height * force / (p.mass * GRAVITY)
            front = min(max((p.rear_axle + shift) / p.wheelbase, 0.0), 1.0)
            return 0.5 * np.array((front, front, 1.0 - front, 1.0 - front))

        stiffness = 1.0 / (1.0 / p.spring + 1.0 / p.tyre_stiffness)
        lever = p.hub_position[:, 0] - stiffness @ p.hub_position[:, 0] / stiffness.sum()
        load = p.static_load + p.center_height * force * stiffness * lever / (stiffness @ lever**2)
        load = np.maximum(load, 0.0)
        return load / load.sum()

    def resistance(self, speed: float, grade: float) -> float:
        """Return the resistance of rolling, air and slope at a speed, N."""
        p = self.params
        rolling = p.rolling_resistance * p.mass * GRAVITY * math.tanh(speed / p.rolling_speed)
        air = p.linear_drag[0] * speed + 0.5 * AIR_DENSITY * p.drag_area[0] * speed * abs(speed)
        return rolling + air + p.mass * GRAVITY * math.sin(grade)

    def motor_torque(self, speed: float) -> float:
        """Return the torque that each motor has at a speed, driving or braking, N m.

        The power of all motors together is limited too.
        """
        p = self.params
        spin = abs(speed) / float(p.rolling_radius.mean())
        return min(
            p.max_drive_torque,
            p.max_drive_power / max(float(self._driven.sum()), 1.0) / max(spin, 1e-3),
        )

    def steering_limit(self, speed: float) -> float:
        """Return the steering angle beyond which the turn would use up the friction, rad."""
        p = self.params
        return min(
            max_virtual_steering(p),
            math.atan(p.wheelbase * MAX_LATERAL * p.friction_y * GRAVITY / max(speed**2, 0.1)),
        )
