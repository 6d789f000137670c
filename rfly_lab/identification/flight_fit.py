# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Newton and Euler of a flight, linear in thrust, drag and inertia.

This is docs/model, sections 4 and 7, solved for the parameters.
"""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Bools, Floats
from rfly_common.errors import ConfigError
from rfly_common.physics import AIR_DENSITY, GRAVITY
from rfly_lab.identification.regression import Estimated, comparable, inside, linear_fit
from rfly_lab.identification.vehicle_log import LoggedMotion

MARGIN = 0.3
"""Time about touch-down and lift-off that does not count, s."""
LEAST = 3.0
"""Least time of flight, s."""


def sprung_inertia(p: VehicleParameters, m: LoggedMotion, inertia: Floats) -> Floats:
    """Return dL/dt of the sprung mass, N m, (k, 3)."""
    return m.rate_change @ inertia.T + np.cross(m.rates, m.rates @ inertia.T)


def inertial_wrench(p: VehicleParameters, m: LoggedMotion) -> tuple[Floats, Floats]:
    """Return force (N) and moment (N m), both (k, 3), of all but weight on the masses.

    The moment is about the centre of the sprung mass, whose inertia is left out.
    """
    hubs = p.mass_unsprung * m.hub_force
    return p.mass_sprung * m.force + hubs.sum(axis=1), np.cross(m.hub, hubs).sum(axis=1)


def drag(p: VehicleParameters, m: LoggedMotion) -> Floats:
    """Return the drag of the body in the air, N, (k, 3). Eq. 7.1."""
    speed = np.linalg.norm(m.air_velocity, axis=1, keepdims=True)
    damping = np.array(p.linear_drag) + 0.5 * AIR_DENSITY * np.array(p.drag_area) * speed
    return -damping * m.air_velocity


def airborne(p: VehicleParameters, m: LoggedMotion) -> Bools:
    """Return whether no wheel touches the ground, (k,)."""
    by_height: Bools = m.height > 0.5 * p.wheel_radius - p.rebound_stop
    by_load = m.load.max(axis=1) < 0.005 * p.mass * GRAVITY
    return np.where(np.isnan(m.load[:, 0]), by_height, by_load)


def fit_flight(p: VehicleParameters, m: LoggedMotion) -> list[Estimated]:
    """Return thrust and torque constants and inertia of a vehicle of known mass.

    In yaw a flight shows only the ratios of c_M, J_r and the inertia: I_zz is taken as given.
    Raises ConfigError without a flight.
    """
    keep = inside(airborne(p, m), MARGIN)
    duration = m.time[-1] - m.time[0]
    if keep.sum() < LEAST / duration * keep.size:
        flown = f"{keep.mean() * duration:.1f} s of flight"
        raise ConfigError(f"{flown}, expected {LEAST:g} s at least")

    # known forces and moments
    force, moment = inertial_wrench(p, m)
    spin_up = m.rate_change[:, 1:2] + m.wheel_speed_change
    moment[:, 1] += p.wheel_inertia * spin_up.sum(axis=1)
    known = p.inertia_matrix - np.diag((*p.inertia[:2], 0.0))
    right = np.hstack([force, moment + sprung_inertia(p, m, known)])

    # least squares
    columns, given = _columns(p, m)
    rows = np.stack([comparable(column)[keep] for column in columns.values()], axis=-1)
    values, covariance = linear_fit(rows, comparable(right)[keep], np.array(given))
    sigmas = np.sqrt(np.diag(covariance))
    fitted = dict(zip(columns, zip(values, sigmas, given, strict=True), strict=True))

    # rotors
    thrust = fitted["c_T"]
    torque = fitted["c_M"]
    inflow = fitted["c_V"]
    merit = thrust[0] ** 1.5 / (torque[0] * np.sqrt(2.0 * AIR_DENSITY * np.pi * p.rotor_radius**2))
    merit_error = np.hypot(torque[1] / torque[0], 1.5 * thrust[1] / thrust[0])
    advance = np.pi * thrust[0] / (inflow[0] * p.rotor_radius)
    advance_error = inflow[1] / abs(inflow[0])
    estimated = [
        Estimated(
            "c_T, thrust / speed²", "N s²/rad²", *thrust, "rotors.thrust_coefficient_ns2prad2"
        ),
        Estimated("c_M, torque / speed²", "N m s²/rad²", *torque),
        Estimated(
            "figure of merit",
            "",
            merit,
            merit * merit_error,
            p.figure_of_merit,
            "rotors.figure_of_merit",
        ),
        Estimated(
            "J_0, advance ratio",
            "",
            advance,
            advance * advance_error,
            p.zero_thrust_advance_ratio,
            "rotors.zero_thrust_advance_ratio",
        ),
        Estimated(
            "c_H, rotor drag", "N s²/(m rad)", *fitted["c_H"], "rotors.drag_coefficient_ns2pmrad"
        ),
        Estimated("J_r, of a rotor", "kg m²", *fitted["J_r"], "rotors.inertia_kgm2"),
    ]

    # inertia
    for axis in ("xx", "yy"):
        inertia = fitted[f"I_{axis}"]
        estimated.append(Estimated(f"I_{axis}", "kg m²", *inertia, f"inertia.{axis}_kgm2"))
    return estimated


def _columns(p: VehicleParameters, m: LoggedMotion) -> tuple[dict[str, Floats], list[float]]:
    """Return force and moment (k, 6) of a unit of each parameter, and their given values."""
    up = np.array((0.0, 0.0, 1.0))
    unit = np.eye(3)
    place = p.rotor_position
    spin = np.array(p.rotor_spin, float)
    speed = m.rotor_speed
    at_rotor = m.air_velocity[:, None] + np.cross(m.rates[:, None], place)
    above = np.maximum(m.height[:, None] + p.origin_height + p.rotor_height, p.rotor_radius / 2.0)
    ground = 1.0 / (1.0 - (p.rotor_radius / (4.0 * above)) ** 2)  # Cheeseman and Bennett, Eq. 4.6
    across = at_rotor * (1.0, 1.0, 0.0)

    def at_rotors(forces: Floats) -> Floats:
        return np.hstack([forces.sum(axis=1), np.cross(place, forces).sum(axis=1)])

    def moment(values: Floats) -> Floats:
        return np.hstack([np.zeros_like(values), values])

    # rotors
    spins = (speed @ spin)[:, None] * up
    columns = {
        "c_T": at_rotors((ground * speed**2)[..., None] * up),
        "c_V": at_rotors(-(ground * speed * at_rotor[..., 2])[..., None] * up),
        "c_H": at_rotors(-speed[..., None] * across),
        "c_M": moment(-(speed**2 @ spin)[:, None] * up),
        "J_r": moment(-(m.rotor_speed_change @ spin)[:, None] * up - np.cross(m.rates, spins)),
    }
    given = [
        p.thrust_coefficient,
        p.inflow_coefficient,
        p.rotor_drag_coefficient,
        p.torque_coefficient,
        p.rotor_inertia,
    ]

    # inertia and drag
    through = np.linalg.norm(m.air_velocity, axis=1)[:, None] * m.air_velocity
    for axis, name in enumerate("xyz"):
        along = unit[axis]
        if name != "z":
            columns[f"I_{name}{name}"] = moment(-sprung_inertia(p, m, np.outer(along, along)))
            given.append(p.inertia[axis])
        columns[f"K_{name}"] = np.hstack([-m.air_velocity * along, np.zeros_like(m.rates)])
        columns[f"A_{name}"] = np.hstack(
            [-0.5 * AIR_DENSITY * through * along, np.zeros_like(m.rates)]
        )
        columns[f"K_rot_{name}"] = moment(-m.rates * along)
        given += [p.linear_drag[axis], p.drag_area[axis], p.rotational_drag[axis]]
    return columns, given
