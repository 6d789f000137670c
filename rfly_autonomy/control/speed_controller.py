# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speed controller: a speed setpoint to drive and brake torques. docs/model, section 10.2."""

from __future__ import annotations

import functools
import math

import numpy as np

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import peak_slip
from rfly_autonomy.control import drive_laws
from rfly_autonomy.control.drive_laws import (
    HOLD_SHARE,
    OBSERVER_GAIN,
    DriveLaw,
    fresh_speed,
    observed_force,
    speed_torques,
)
from rfly_common.arrays import Floats

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
        return linear_turn(params)[0]
    return params.wheelbase * (0.5 if params.steered == "all" else 1.0)


def linear_turn(p: VehicleParameters) -> tuple[float, float]:
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
        self._momentum, self.force = observed_force(
            self._momentum, self.force, self._mass, self._gain, speed, known, dt
        )

    def skip(self, speed: float) -> None:
        """Go on without learning, as the known force is not known now."""
        self._momentum = self._mass * speed - self.force / self._gain


@functools.lru_cache(maxsize=32)
def drive_law(params: VehicleParameters) -> DriveLaw:
    """Return the constants of a vehicle's laws of driving."""
    p = params
    driven = p.is_driven
    shift = np.empty(0)
    if p.middle_axle is not None:
        stiffness = 1.0 / (1.0 / p.spring + 1.0 / p.tyre_stiffness)
        lever = p.hub_position[:, 0] - stiffness @ p.hub_position[:, 0] / stiffness.sum()
        shift = p.center_height * stiffness * lever / (stiffness @ lever**2)

    return DriveLaw(
        mass=p.mass,
        effective_mass=p.effective_mass,
        wheelbase=p.wheelbase,
        front_axle=p.front_axle,
        rear_axle=p.rear_axle,
        center_x=p.center_x,
        center_height=p.center_height,
        friction_x=p.friction_x,
        friction_y=p.friction_y,
        rolling_resistance=p.rolling_resistance,
        rolling_speed=p.rolling_speed,
        linear_drag=p.linear_drag[0],
        drag_area=p.drag_area[0],
        max_drive_torque=p.max_drive_torque,
        max_drive_power=p.max_drive_power,
        max_brake_torque=p.max_brake_torque,
        drive_lag=p.drive_lag,
        low_speed=p.low_speed,
        peak_slip=peak_slip(p.shape_x, p.curvature_x) * p.friction_x / p.slip_stiffness,
        most_steering=max_virtual_steering(p),
        motors=float(driven.sum()),
        driven=driven,
        rolling_radius=p.rolling_radius,
        mean_radius=float(p.rolling_radius.mean()),
        hub_x=p.hub_position[:, 0].copy(),
        hub_y=p.hub_position[:, 1].copy(),
        static_load=p.static_load,
        load_shift=shift,
    )


class SpeedController:
    """Speed controller that learns the forces which the model does not know. Eq. 10.5–10.7."""

    def __init__(self, params: VehicleParameters) -> None:
        self.params = params
        self._law = drive_law(params)
        self.reset()

    def reset(self) -> None:
        """Forget what was learned."""
        self._memory = fresh_speed(len(self.params.wheels))

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

        The arguments are those of `speed_torques`; without a `share` wheels keep all.
        """
        if share is None:
            share = np.ones(len(self.params.wheels))
        drive, brake, self._memory = speed_torques(
            self._law,
            self._memory,
            wanted,
            speed,
            dt,
            grade,
            hold,
            yaw_rate,
            share,
            acceleration,
        )
        return drive, brake

    @property
    def motor_force(self) -> float:
        """Force that the motors give by their commands and their lag, N, positive forward."""
        return float((self._memory.motor_torque / self.params.rolling_radius).sum())

    def resistance(self, speed: float, grade: float) -> float:
        """Return the resistance of rolling, air and slope at a speed, N."""
        return drive_laws.resistance(self._law, speed, grade)

    def motor_torque(self, speed: float) -> float:
        """Return the torque that each motor has at a speed, driving or braking, N m."""
        return drive_laws.motor_torque(self._law, speed)

    def steering_limit(self, speed: float) -> float:
        """Return the steering angle beyond which the turn would use up the friction, rad."""
        return drive_laws.steering_limit(self._law, speed)
