# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shared parts of the vehicle's tests: models, momenta, and a driver that holds a speed."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

import numpy as np

from rfly_amphibious import AmphibiousModel, Controls, VehicleParameters
from rfly_amphibious.vehicle import state_layout
from rfly_terrain.height_map.height_map import HeightMap

SETS = ("full", "scale")


@functools.cache
def parameters(name):
    return VehicleParameters.load(name)


@functools.cache
def model(name, ground_effect=True):
    return AmphibiousModel(parameters(name), ground_effect=ground_effect)


def plane(slope_x, size=2000.0, slope_y=0.0):
    heights = np.array([[slope_x * x + slope_y * y for y in (-size, size)] for x in (-size, size)])
    return HeightMap(heights, origin_x=-size, origin_y=-size, step_x=2 * size, step_y=2 * size)


def rotation(x):
    """Return the rotation of a state, (3, 3), body -> world."""
    w, i, j, k = x[6:10] / np.linalg.norm(x[6:10])
    return np.array(
        [
            [1 - 2 * (j * j + k * k), 2 * (i * j - w * k), 2 * (i * k + w * j)],
            [2 * (i * j + w * k), 1 - 2 * (i * i + k * k), 2 * (j * k - w * i)],
            [2 * (i * k - w * j), 2 * (j * k + w * i), 1 - 2 * (i * i + j * j)],
        ]
    )


def of_wheels(p, quantity):
    """Return the state's columns of a quantity of each wheel, by their names."""
    names = state_layout.state_names(p.rotors, len(p.wheels))
    return [
        k
        for wheel in p.wheels
        for k, name in enumerate(names)
        if name.startswith(f"{quantity}_{wheel}_")
    ]


def masses(p, x):
    """Return mass, place and velocity of the sprung mass and the wheels as points, world axes."""
    R = rotation(x)
    w = x[state_layout.RATES : state_layout.RATES + 3]
    parts = [(p.mass_sprung, x[0:3], x[3:6])]
    struts = x[of_wheels(p, "strut")]
    rates = x[of_wheels(p, "strut_rate")]
    for hub, strut, strut_rate in zip(p.hub_position, struts, rates, strict=True):
        r = hub + np.array((0, 0, strut))
        rate = np.cross(w, r) + np.array((0, 0, strut_rate))
        parts.append((p.mass_unsprung, x[0:3] + R @ r, x[3:6] + R @ rate))
    return parts


def center(p, x):
    return sum(m * at_ for m, at_, _ in masses(p, x)) / p.mass


def center_velocity(p, x):
    return sum(m * v for m, _, v in masses(p, x)) / p.mass


def along(function, x, dx, h=1e-5):
    """Return the time derivative of function(x) along dx."""
    return (function(x + h * dx) - function(x - h * dx)) / (2 * h)


def angular_momentum(p, x):
    """Return the angular momentum about the centre of mass, world axes, with all spins."""
    R = rotation(x)
    c = center(p, x)
    vc = center_velocity(p, x)
    spin = p.inertia_matrix @ x[state_layout.RATES : state_layout.RATES + 3]
    spin = spin + p.wheel_inertia * x[of_wheels(p, "wheel_speed")].sum() * np.array((0, 1, 0))
    rotors = x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors]
    spin = spin + p.rotor_inertia * np.array((0, 0, np.dot(p.rotor_spin, rotors)))
    return R @ spin + sum(m * np.cross(at_ - c, v - vc) for m, at_, v in masses(p, x))


def forward_speed(x):
    return float(rotation(x)[:, 0] @ x[3:6])


def energy(p, x):
    """Return the energy on level ground, J: motion, height, springs and compressed tyres.

    The tyres' carcasses and the rotors are left out.
    """
    total = (
        0.5
        * x[state_layout.RATES : state_layout.RATES + 3]
        @ p.inertia_matrix
        @ x[state_layout.RATES : state_layout.RATES + 3]
    )
    total += 0.5 * p.wheel_inertia * (x[of_wheels(p, "wheel_speed")] ** 2).sum()
    for i, (mass, place, velocity) in enumerate(masses(p, x)):
        total += 0.5 * mass * velocity @ velocity + mass * 9.80665 * place[2]
        if i:
            total += 0.5 * p.tyre_stiffness * max(0.0, p.wheel_radius - place[2]) ** 2

    s = x[of_wheels(p, "strut")]
    springs = (p.front_spring, p.rear_spring, p.middle_spring)
    bars = (p.front_anti_roll, p.rear_anti_roll, None)
    for spring, bar, (left, right) in zip(springs, bars, s.reshape(-1, 2), strict=False):
        total += 0.5 * spring * (left**2 + right**2) + 0.5 * (bar or 0.0) * (left - right) ** 2

    return total + p.spring_load @ s


def roll_pitch_yaw(x):
    R = rotation(x)
    return np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(R[2, 0]), np.arctan2(R[1, 0], R[0, 0])


def holding(p, speed, steering=0.0):
    """Driver who holds a speed, by the resistances and the proportional part of Eq. 10.5."""
    resistance = p.rolling_resistance * p.mass * 9.80665 + p.linear_drag[0] * speed
    resistance += 0.5 * 1.225 * p.drag_area[0] * speed**2

    def drive(state):
        force = resistance + 1.5 * p.effective_mass * (speed - forward_speed(state.x))
        return Controls(
            steering=steering, drive_torque=force * p.rolling_radius.mean() / len(p.wheels)
        )

    return drive


def jacobian(model, x, h=1e-6, **commands):
    columns = []
    for n in range(x.size):
        step = np.zeros_like(x)
        step[n] = h
        columns.append(
            (model.derivative(x + step, **commands) - model.derivative(x - step, **commands))
            / (2 * h)
        )
    return np.array(columns).T


def random_state(p, rng, terrain, flying):
    """Return any possible state: tilted, struts at their stops, wheels spinning, tyres slipping."""
    size = p.wheelbase
    x = np.zeros(p.state_size)

    # position and velocity
    x[:2] = rng.uniform(-3, 3, 2) * size
    ground = terrain.altitude(x[0], x[1])
    x[2] = (
        ground
        + p.origin_height
        + (rng.uniform(1, 5) * size if flying else rng.uniform(-0.08, 0.03) * size)
    )
    x[3:6] = rng.normal(0, 3 * np.sqrt(size), 3) * (1, 0.3, 0.3)

    # attitude and rates
    q = np.array((1.0, *rng.normal(0, 0.4 if flying else 0.03, 2), 0.0))
    yaw = rng.uniform(-np.pi, np.pi)
    c = np.cos(yaw / 2)
    s = np.sin(yaw / 2)
    q = np.array(
        (
            c * q[0] - s * q[3],
            c * q[1] - s * q[2],
            c * q[2] + s * q[1],
            c * q[3] + s * q[0],
        )
    )
    x[6:10] = q / np.linalg.norm(q)
    x[10:13] = rng.normal(0, 0.5, 3)

    # struts, wheels and tyres
    x[13:17] = rng.uniform(1.3 * p.rebound_stop, 1.3 * p.bump_stop, 4)
    x[17:21] = rng.normal(0, 0.3, 4)
    forward = rotation(x)[:, 0] @ x[3:6]
    x[21:25] = forward / p.wheel_radius * rng.uniform(0.8, 1.2, 4) + rng.normal(0, 0.5, 4)
    x[25:29] = rng.normal(0, 0.1, 4) * p.relaxation_x
    x[29:33] = rng.normal(0, 0.1, 4) * p.relaxation_y

    # actuators
    x[33 : 33 + p.rotors] = rng.uniform(0, p.max_rotor_speed, p.rotors)
    x[33 + p.rotors] = rng.uniform(-1, 1) * p.max_steering
    x[34 + p.rotors : 38 + p.rotors] = rng.uniform(-1, 1, 4) * p.max_drive_torque

    x[of_wheels(p, "steering_trim")[:4]] = rng.uniform(-0.1, 0.1, 4) * (p.steering_sign[:4] != 0.0)

    # the middle axle
    if len(p.wheels) > 4:
        spread = {
            "strut": rng.uniform(1.3 * p.rebound_stop, 1.3 * p.bump_stop, 2),
            "strut_rate": rng.normal(0, 0.3, 2),
            "wheel_speed": forward / p.wheel_radius * rng.uniform(0.8, 1.2, 2)
            + rng.normal(0, 0.5, 2),
            "tyre_x": rng.normal(0, 0.1, 2) * p.relaxation_x,
            "tyre_y": rng.normal(0, 0.1, 2) * p.relaxation_y,
            "drive_torque": rng.uniform(-1, 1, 2) * p.max_drive_torque,
        }
        for quantity, values in spread.items():
            x[of_wheels(p, quantity)[4:]] = values

    return x


def slower_imu(folder: Path, name: str = "scale") -> str:
    """Write a vehicle's sensor file with 100 ticks a second instead of 250.

    In lock-step each tick takes all nodes their time.
    """
    shipped = resources.files("rfly_amphibious") / "data" / "sensors" / f"{name}.yaml"
    path = folder / "sensors.yaml"
    path.write_text(
        shipped.read_text(encoding="utf-8").replace("rate_hz: 250", "rate_hz: 100"),
        encoding="utf-8",
    )
    return str(path)
