# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The multi-body car of commonroad-vehicle-models (29 states) and our vehicle with the parameters
of that car.

Masses, inertia, springs, dampers, roll bars, tyres and the law of steering are mapped one to one;
what that model has and ours has not (camber, tyres' shifts, compliance of the axles), and what ours
has (Ackermann steering, tyre relaxation), stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from vehiclemodels.init_mb import init_mb
from vehiclemodels.parameters_vehicle2 import parameters_vehicle2
from vehiclemodels.vehicle_dynamics_mb import vehicle_dynamics_mb

from rfly_amphibious import ModelState, VehicleParameters
from rfly_amphibious.vehicle.state_layout import QUATERNION, RATES

STEERING_LAG = 0.1
"""Lag of the steering, s."""
ROTORS_MASS = 1.0
CORNERING_LOAD_RATIO = 40.0
"""Ratio so large that the cornering stiffness grows with the load, as in that model."""

Numbers = np.ndarray[Any, np.dtype[np.float64]]


class CommonRoadCar:
    """A BMW 320i on level ground, stepped by the classical Runge–Kutta method.

    Its functions are plain Python.
    """

    def __init__(self) -> None:
        self._p = parameters_vehicle2()

    def start(self, speed: float) -> list[float]:
        """Return the state that rolls straight on at `speed`, m/s."""
        state: list[float] = init_mb([0.0, 0.0, 0.0, speed, 0.0, 0.0, 0.0], self._p)
        return state

    def run(self, state: list[float], steering: float, dt: float, steps: int) -> list[float]:
        """Return the state after steps with a steering angle commanded."""
        x = list(state)
        for _ in range(steps):
            k1 = self._rates(x, steering)
            k2 = self._rates([a + 0.5 * dt * b for a, b in zip(x, k1, strict=True)], steering)
            k3 = self._rates([a + 0.5 * dt * b for a, b in zip(x, k2, strict=True)], steering)
            k4 = self._rates([a + dt * b for a, b in zip(x, k3, strict=True)], steering)
            x = [
                a + dt / 6.0 * (b1 + 2.0 * b2 + 2.0 * b3 + b4)
                for a, b1, b2, b3, b4 in zip(x, k1, k2, k3, k4, strict=True)
            ]
        return x

    def _rates(self, x: list[float], steering: float) -> list[float]:
        """Return the rates of the state."""
        rates: list[float] = vehicle_dynamics_mb(
            x, [(steering - x[2]) / STEERING_LAG, 0.0], self._p
        )
        return rates

    @staticmethod
    def motion(x: list[float]) -> Numbers:
        """Return x, m, y, m, heading, rad, speed, m/s, and yaw rate, rad/s."""
        return np.array((x[0], x[1], x[4], float(np.hypot(x[3], x[10])), x[5]))


def our_car() -> VehicleParameters:
    """Return the full-size vehicle with the dynamics of that car.

    Its rotors weigh 1 kg and stand still.
    """
    p = parameters_vehicle2()
    unsprung = 0.5 * p.m_uf
    track = 0.5 * (p.T_f + p.T_r)

    # their I_z is of the whole car
    around = 2.0 * unsprung * (p.a**2 + p.b**2) + 4.0 * unsprung * (0.5 * track) ** 2
    load = 0.25 * p.m * 9.81

    # the radius that rolls is a third of the compression less
    rolling_radius = p.R_w + load / p.K_zt / 3.0
    damping = 0.5 * (p.K_sdf + p.K_sdr)
    full = VehicleParameters.load("full")

    return full.replace(
        name="BMW 320i",
        mass_body=p.m_s - ROTORS_MASS,
        mass_rotor_frame=ROTORS_MASS,
        mass_unsprung=unsprung,
        inertia=(p.I_Phi_s, p.I_y_s, p.I_z - around, 0.0, p.I_xz_s, 0.0),
        front_axle=p.a,
        rear_axle=p.b,
        track=track,
        origin_height=p.h_s,
        steering_lag=STEERING_LAG,
        wheel_radius=rolling_radius,
        wheel_inertia=p.I_y_w,
        tyre_stiffness=p.K_zt,
        tyre_damping=0.0,
        nominal_load=load,
        friction_x=p.tire.p_dx1,
        friction_y=p.tire.p_dy1,
        friction_load_loss=0.0,
        slip_stiffness=p.tire.p_kx1,
        cornering_stiffness_per_rad=-0.5 * p.tire.p_ky1 * CORNERING_LOAD_RATIO,
        cornering_load_ratio=CORNERING_LOAD_RATIO,
        cornering_factor_front=1.0,
        cornering_factor_rear=1.0,
        shape_x=p.tire.p_cx1,
        curvature_x=p.tire.p_ex1,
        shape_y=p.tire.p_cy1,
        curvature_y=p.tire.p_ey1,
        rolling_resistance=0.0,
        front_spring=p.K_sf,
        rear_spring=p.K_sr,
        front_anti_roll=-p.K_tsf / p.T_f**2,
        rear_anti_roll=-p.K_tsr / p.T_r**2,
        bump_damping=damping,
        rebound_damping=damping,
        bump_stop_stiffness=150_000.0,
        rebound_stop_stiffness=150_000.0,
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotational_drag=(0.0,) * 3,
    )


def our_motion(state: ModelState) -> Numbers:
    """Return the same values as `CommonRoadCar.motion`."""
    w, x, y, z = state.x[QUATERNION : QUATERNION + 4]
    heading = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    speed = np.hypot(*state.velocity[:2])
    return np.array((*state.position[:2], heading, speed, state.x[RATES + 2]))
