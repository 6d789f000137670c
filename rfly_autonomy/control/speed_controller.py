# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speed controller: a speed setpoint to drive and brake torques. docs/model, section 10.2."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.physics import AIR_DENSITY, GRAVITY

SPEED_GAIN = 1.5
"""Gain of the speed error, 1/s."""

STOP_GAIN = 20.0
"""Gain of the speed while the brakes stop the vehicle, 1/s: they cannot push it back."""

BRAKING_SHARE = 0.88
"""Share of the friction, and of the force that lifts the rear wheels, that braking may use."""

OBSERVER_GAIN = 2.0
"""Gain of the observer of the force that the model does not know, 1/s."""

LOAD_TRANSFER_TIME = 0.1
"""Time in which the springs move load to the front wheels, s."""

SLOW_BRAKING = 0.3
"""Speed below which brakes may hold wheels with less than their torque, m/s."""

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

    `wheels`: number with load, low-passed; unknown ones (NaN) count as loaded. `down`: whether the
    vehicle has touched the ground since an abort.
    """
    if mode in (Mode.DISARMED, Mode.SPOOL_DOWN):
        return HOLD_SHARE * params.max_brake_torque
    stands = mode in (Mode.TAKEOFF, Mode.FLIGHT) and not wheels <= 0.5
    if stands or (mode is Mode.ABORT and down):
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


class ForceObserver:
    """Observer of the force along the path that the model does not know, by the momentum.

    Wind, load and rolling resistance are parts of it. It compares the momentum with the integral of
    the known forces, and needs no acceleration: A. De Luca and R. Mattone, "Sensorless robot
    collision detection and hybrid force/motion control", ICRA 2005. Unlike the integral of a speed
    error, it learns nothing wrong while the motors are at their limits.
    """

    def __init__(self, mass: float, gain: float = OBSERVER_GAIN) -> None:
        """`mass`: with that of the turning wheels, kg; `gain`: 1/s."""
        self._mass = mass
        self._gain = gain
        self._momentum = math.nan
        self.force = 0.0
        """Observed force, N, positive forward."""

    def update(self, speed: float, known: float, dt: float) -> None:
        """Go on by dt seconds with a speed, m/s, and the known force since the last update, N."""
        if math.isnan(self._momentum):
            self._momentum = self._mass * speed
        self._momentum += dt * (known + self.force)
        self.force = self._gain * (self._mass * speed - self._momentum)

    def skip(self, speed: float) -> None:
        """Go on without learning, as the known force is not known now."""
        self._momentum = self._mass * speed - self.force / self._gain


class SpeedController:
    """Speed controller that learns the forces which the model does not know. Eq. 10.5–10.7."""

    def __init__(self, params: VehicleParameters) -> None:
        self.params = params
        self._driven = params.is_driven
        self._motors = float(self._driven.sum())
        self._mean_radius = float(params.rolling_radius.mean())
        self.reset()

    def reset(self) -> None:
        """Forget what was learned."""
        self._observer = ForceObserver(self.params.effective_mass)
        self._motor_torque = np.zeros(len(self.params.wheels))
        """Torques of the motors, behind their commands by their lag, (wheels,), N m."""

        self._braking_force = 0.0
        """Force of braking to which springs have moved the load, N."""

        self._holds = False
        self._known_force: float | None = 0.0
        """Sum of all forces of the model, N; None if the brakes may hold the wheels."""

    def torques(
        self,
        wanted: float,
        speed: float,
        dt: float,
        grade: float = 0.0,
        hold: bool = True,
        *,
        yaw_rate: float = 0.0,
        share: Floats | None = None,
        acceleration: float = 0.0,
    ) -> tuple[Floats, Floats]:
        """Return drive and brake torques, (wheels,), N m, for a wanted and a present speed, m/s.

        `grade`: slope of the path, rad, positive uphill. `hold`: whether brakes stop a vehicle that
        is to stand, and hold it. `yaw_rate`: rad/s. `share`: of the torques that each wheel keeps,
        (wheels,), by the traction control. `acceleration`: of the wanted speed, m/s².
        """
        p = self.params
        stops = hold and wanted == 0.0
        if stops and abs(speed) < (SLOW_BRAKING if self._holds else HOLD_SPEED):
            return self._holding(speed)
        self._holds = False

        # forces that the model does not know
        if self._known_force is None:
            self._observer.skip(speed)
        else:
            self._observer.update(speed, self._known_force, dt)

        # force along the path
        moving = speed if abs(speed) > HOLD_SPEED else wanted
        resistance = self.resistance(moving, grade)
        against = resistance - self._observer.force
        gain = STOP_GAIN if stops else SPEED_GAIN
        pull = p.effective_mass * (gain * (wanted - speed) + acceleration) + against
        direction = math.copysign(1.0, speed if abs(speed) > HOLD_SPEED else pull)

        # torques
        most = self.motor_torque(speed)
        if stops:
            limit = self._braking_limit(grade, speed * yaw_rate)
            drive, brake = self._stopping(pull, direction, most, limit, dt)
        else:
            drive, brake = self._driving(pull, direction, most)
        if share is not None:
            drive = drive * share
            brake = brake * share
        self._motor_torque += (1.0 - math.exp(-dt / p.drive_lag)) * (drive - self._motor_torque)

        # what acts on the vehicle until the next time
        self._known_force = None
        if not brake.any() or abs(speed) > SLOW_BRAKING:
            force = float(((self._motor_torque - direction * brake) / p.rolling_radius).sum())
            grip = p.friction_x * p.mass * GRAVITY
            self._known_force = min(max(force, -grip), grip) - resistance
        return drive, brake

    @property
    def motor_force(self) -> float:
        """Force that the motors give by their commands and their lag, N, positive forward."""
        return float((self._motor_torque / self.params.rolling_radius).sum())

    def _holding(self, speed: float) -> tuple[Floats, Floats]:
        """Return the torques, (wheels,), N m, of a vehicle that has stopped.

        Springs and tyres rock it then.
        """
        p = self.params
        self.reset()
        self._holds = True
        held = HOLD_SHARE if abs(speed) < HOLD_SPEED else 1.0
        return np.zeros(len(p.wheels)), np.full(len(p.wheels), held * p.max_brake_torque)

    def _driving(self, pull: float, direction: float, most: float) -> tuple[Floats, Floats]:
        """Return the torques, (wheels,), N m, of a pull (N).

        The motors (at most `most` each) take the whole force as a driving one, the brakes what
        exceeds their braking.
        """
        p = self.params
        force = most * self._motors / self._mean_radius
        driving = min(max(pull, -force), force)
        drive = driving * p.rolling_radius * self._driven / max(self._motors, 1.0)
        braking = max(-direction * (pull - driving), 0.0)
        brake = self._brake_shares(braking) * braking * p.rolling_radius
        return drive, np.minimum(brake, p.max_brake_torque)

    def _stopping(
        self, pull: float, direction: float, most: float, limit: float, dt: float
    ) -> tuple[Floats, Floats]:
        """Return the torques, (wheels,), N m, of a pull (N) that stops, each wheel's by its load.

        `most`: of a motor. `limit`: of the force of braking, N. Motors brake first. The brakes do
        the rest, and what the motors do not do yet.
        """
        p = self.params
        braking = min(-direction * pull, limit)
        moved = 1.0 - math.exp(-dt / LOAD_TRANSFER_TIME)
        shares = self._brake_shares(self._braking_force)
        self._braking_force += moved * (max(braking, 0.0) - self._braking_force)
        if braking <= 0.0:
            return self._driving(pull, direction, most)

        torque = shares * braking * p.rolling_radius
        drive = -direction * np.minimum(torque, most) * self._driven
        done = np.clip(-direction * self._motor_torque, 0.0, torque)
        return drive, np.minimum(torque - done, p.max_brake_torque)

    def _braking_limit(self, grade: float, lateral: float) -> float:
        """Return the largest force of braking, N, on a slope (rad) with a side acceleration, m/s².

        Friction limits it, as far as the side force leaves some, and the load on the rear wheels.
        """
        p = self.params
        used = min(abs(lateral) / (p.friction_y * GRAVITY), 0.9)
        friction = p.friction_x * math.sqrt(1.0 - used**2)
        tipping = (p.front_axle - p.center_x) / p.center_height
        return BRAKING_SHARE * min(friction, tipping) * p.mass * GRAVITY * math.cos(grade)

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
        spin = abs(speed) / self._mean_radius
        return min(
            p.max_drive_torque,
            p.max_drive_power / max(self._motors, 1.0) / max(spin, 1e-3),
        )

    def steering_limit(self, speed: float) -> float:
        """Return the steering angle beyond which the turn would use up the friction, rad."""
        p = self.params
        return min(
            max_virtual_steering(p),
            math.atan(p.wheelbase * MAX_LATERAL * p.friction_y * GRAVITY / max(speed**2, 0.1)),
        )
