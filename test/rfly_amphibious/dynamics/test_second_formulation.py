# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Second, slow formulation of the equations: a mass matrix Σ JᵀmJ, 10 x 10 or 12 x 12.

It belongs to a rigid body and point masses, and uses nothing of the closed forms of the kernels: no
eliminated struts, no 3 x 3 solve, no trigonometric shortcut.
"""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import of_wheels, random_state, rotation
from marks import exhaustively
from scipy.optimize import brentq

from rfly_amphibious import AmphibiousModel, VehicleParameters
from rfly_terrain.height_map.height_map import HeightMap

G = 9.80665
Z = np.array((0.0, 0.0, 1.0))


def cross(a):
    return np.array(
        [
            [0, -a[2], a[1]],
            [a[2], 0, -a[0]],
            [-a[1], a[0], 0],
        ]
    )


def air_torque(p, speed, velocity):
    """Return a rotor's torque: the power of momentum theory and the blades' drag, over its speed.

    The induced velocity is the root of T = 2 ρ A v √(V⊥² + (V + v)²), found by bisection. Bailey's
    drag is taken at angles of attack that are 0.1 rad in hover, and grows by Leishman's 4.65 μ².
    The work of the vehicle against the drag in the plane is not the motor's. Both are those of an
    advance ratio μ of 0.5 at most.
    """
    static = p.thrust_coefficient * speed**2
    thrust = np.clip(static - p.inflow_coefficient * speed * velocity[2], 0, 1.5 * static)
    disc = 2 * 1.225 * np.pi * p.rotor_radius**2
    level = np.hypot(velocity[0], velocity[1])
    sink = max(velocity[2], -1.5 * np.sqrt(thrust / disc))

    def excess(v):
        return disc * v * np.hypot(level, sink + v) - thrust

    induced = brentq(excess, 0, 10 * np.sqrt(thrust / disc) + 1, xtol=1e-15, rtol=1e-14)
    drag = [0.0087 - 0.0216 * a + 0.400 * a**2 for a in (0.1 * thrust / static, 0.1)]
    hover = p.torque_coefficient * speed**3
    tip = speed * p.rotor_radius
    across = min(level, 0.5 * tip)
    profile = (1 - p.figure_of_merit) * hover * drag[0] / drag[1] * (1 + 4.65 * (across / tip) ** 2)
    pushed = p.rotor_drag_coefficient * speed * across**2
    return (thrust * (velocity[2] + induced) + profile - pushed) / speed


def reference(p, terrain, x, command, steering, trim, torque, brake, wind, rotor_torques):
    R = rotation(x)
    v = x[3:6]
    w = x[10:13]
    wheels = len(p.hub_position)
    quantities = ("strut", "strut_rate", "wheel_speed", "tyre_x", "tyre_y", "drive_torque")
    columns_of = {quantity: of_wheels(p, quantity) for quantity in quantities}
    s, s_rate, spin, u, y, drive = (x[columns] for columns in columns_of.values())

    # rotors and steering
    speed = x[33 : 33 + p.rotors]
    delta = x[33 + p.rotors]

    # body
    dx = np.zeros_like(x)
    dx[0:3] = v
    W, X, Y, Zq = x[6:10]
    dx[6:10] = (
        0.5
        * np.array(
            [
                [-X, -Y, -Zq],
                [W, -Zq, Y],
                [Zq, W, -X],
                [-Y, X, W],
            ]
        )
        @ w
    )
    air = R.T @ (v - wind)
    gravity = -G * R.T @ Z

    # weight and drag
    force = p.mass_sprung * gravity
    drag = np.array(p.linear_drag) + 0.5 * 1.225 * np.array(p.drag_area) * np.linalg.norm(air)
    force -= drag * air
    moment = -np.array(p.rotational_drag) * w
    momentum = p.inertia_matrix @ w

    # rotors
    at_rotors = air + np.cross(w, p.rotor_position)
    torques = np.array([air_torque(p, *pair) for pair in zip(speed, at_rotors, strict=True)])
    if rotor_torques:
        given = np.clip(command, -p.max_rotor_torque, p.max_rotor_torque)
        speed_rate = (given - torques) / p.rotor_inertia
    else:
        speed_rate = (np.clip(command, 0, p.max_rotor_speed) - speed) / p.rotor_lag
    for j, place in enumerate(p.rotor_position):
        at_hub = air + np.cross(w, place)
        world = x[:3] + R @ place
        above = max(world[2] - terrain.altitude(world[0], world[1]), p.rotor_radius / 2)
        gain = 1 / (1 - (p.rotor_radius / 4 / above) ** 2)

        static = p.thrust_coefficient * speed[j] ** 2
        loss = p.inflow_coefficient * speed[j] * at_hub[2]
        thrust = gain * np.clip(static - loss, 0, 1.5 * static)
        level = np.array((at_hub[0], at_hub[1], 0))
        pull = thrust * Z - p.rotor_drag_coefficient * speed[j] * level
        force = force + pull
        moment = moment + np.cross(place, pull)
        shaft = torques[j] + p.rotor_inertia * speed_rate[j]
        moment = moment - p.rotor_spin[j] * shaft * Z
        momentum = momentum + p.rotor_inertia * p.rotor_spin[j] * speed[j] * Z

    # body points
    half = np.array(p.body_box) / 2
    corners = [half * (a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    for place in [*corners, *p.rotor_position]:
        world = x[:3] + R @ place
        below = terrain.altitude(world[0], world[1]) - world[2]
        if below <= 0:
            continue
        n = R.T @ terrain.normal(world[0], world[1], smooth=True)
        velocity = R.T @ v + np.cross(w, place)
        push = max(0, p.body_stiffness * below * (R @ n)[2] - p.body_damping * velocity @ n)
        slide = velocity - (velocity @ n) * n
        rate = np.linalg.norm(slide)
        pull = push * n - p.body_friction * push * np.tanh(rate / 0.1) * slide / max(rate, 1e-12)
        force = force + pull
        moment = moment + np.cross(place, pull)

    # body velocity (body axes, inertial), angular velocity, strut rates
    freedoms = 6 + wheels
    mass = np.zeros((freedoms, freedoms))
    mass[:3, :3] = p.mass_sprung * np.eye(3)
    mass[3:6, 3:6] = p.inertia_matrix
    right = np.zeros(freedoms)

    # stiffness and steering of the axles
    spring = np.repeat((p.front_spring, p.rear_spring, p.middle_spring), 2)
    bar = np.repeat((p.front_anti_roll, p.rear_anti_roll, p.middle_anti_roll), 2)
    soft = np.repeat(
        (p.cornering_factor_front, p.cornering_factor_rear, p.cornering_factor_middle), 2
    )
    lever, against = {"front": (p.wheelbase, 0.0), "all": (p.wheelbase / 2, -1.0)}[p.steered]
    t = np.tan(delta) * p.track / 2 / lever
    angles = np.arctan(np.tan(delta) / np.array((1 - t, 1 + t)))
    angles = np.concatenate((angles, against * angles, (0.0, 0.0)))[:wheels]
    turns = np.repeat((1.0, float(against != 0.0), 0.0), 2)[:wheels]
    trims = x[of_wheels(p, "steering_trim")]
    angles = angles + trims

    # wheels
    loads = np.zeros(wheels)
    for i, hub in enumerate(p.hub_position):
        r = hub + s[i] * Z
        axle = np.array((-np.sin(angles[i]), np.cos(angles[i]), 0))
        hub_v = R.T @ v + np.cross(w, r) + s_rate[i] * Z
        world = x[:3] + R @ r
        n_world = terrain.normal(world[0], world[1], smooth=True)
        n = R.T @ n_world
        d = (world[2] - terrain.altitude(world[0], world[1])) * n_world[2]
        pressed = p.wheel_radius - d
        load = 0.0
        if pressed > 0 and n[2] > 0.2:
            load = max(0, p.tyre_stiffness * pressed - p.tyre_damping * hub_v @ n)
        loads[i] = load

        # tyre
        tyre = np.zeros(3)
        couple = np.zeros(3)
        fx = 0.0
        radius = p.wheel_radius
        rolling = 0.0
        if load > 0:
            ex = np.cross(axle, n)
            ex /= np.linalg.norm(ex)
            ey = np.cross(n, ex)
            to_contact = -d * n
            radius = p.wheel_radius - pressed / 3
            vx = hub_v @ ex
            sy = (hub_v + np.cross(w, to_contact)) @ ey
            sx = vx - radius * spin[i]
            mu = max(0.2, 1 - p.friction_load_loss * (load - p.nominal_load) / p.nominal_load)
            dmax = np.array((p.friction_x, p.friction_y)) * mu * load

            # stiffness, and damping at low speed
            kx = p.slip_stiffness * load
            ky = soft[i] * p.cornering_stiffness_per_rad * p.nominal_load
            ky *= np.sin(2 * np.arctan(load / (p.cornering_load_ratio * p.nominal_load)))
            kv = 0.0
            if abs(vx) < p.low_speed:
                fade = (1 + np.cos(np.pi * abs(vx) / p.low_speed)) / 2
                kv = p.low_speed_damping * load / p.nominal_load * fade
            slip_x = kx * u[i] / p.relaxation_x - kv * sx
            slip_y = ky * y[i] / p.relaxation_y - kv * sy

            # combined slip
            slips = np.array((slip_x, slip_y)) / dmax
            rho = np.hypot(*slips)
            shapes = []
            for c, e in ((p.shape_x, p.curvature_x), (p.shape_y, p.curvature_y)):
                b = 1 / c
                shapes.append(np.sin(c * np.arctan(b * rho - e * (b * rho - np.arctan(b * rho)))))
            fx, fy = dmax * slips / rho * shapes
            tyre = fx * ex + fy * ey + load * n
            couple = np.cross(to_contact, tyre)
            couple = couple - (couple @ axle) * axle

            # tread and rolling resistance
            dx[columns_of["tyre_x"][i]] = -sx - abs(vx) * u[i] / p.relaxation_x
            dx[columns_of["tyre_y"][i]] = -sy - abs(vx) * y[i] / p.relaxation_y

            # what holds the wheel within a few hundredths of a second, up to the limit
            most = p.rolling_resistance * load * radius
            holding = drive[i] + brake[i] - radius * fx + most * radius * spin[i] / p.rolling_speed
            rolling = np.clip(holding, -most, most)

        motor = drive[i] + brake[i]
        couple = couple - motor * axle
        dx[columns_of["wheel_speed"][i]] = (motor - radius * fx - rolling) / p.wheel_inertia
        momentum = momentum + p.wheel_inertia * spin[i] * axle

        # strut
        fs = max(0, p.spring_load[i] + spring[i] * s[i])
        fs += (p.bump_damping if s_rate[i] > 0 else p.rebound_damping) * s_rate[i]
        if s[i] > p.bump_stop:
            fs += max(0, p.bump_stop_stiffness * (s[i] - p.bump_stop) + p.stop_damping * s_rate[i])
        if s[i] < p.rebound_stop:
            fs += min(
                0, p.rebound_stop_stiffness * (s[i] - p.rebound_stop) + p.stop_damping * s_rate[i]
            )
        fs += bar[i] * (s[i] - s[i ^ 1])

        # Jacobian of the hub
        J = np.zeros((3, freedoms))
        J[:, :3] = np.eye(3)
        J[:, 3:6] = -cross(r)
        J[:, 6 + i] = Z
        bias = np.cross(w, np.cross(w, r)) + 2 * s_rate[i] * np.cross(w, Z)
        mass += p.mass_unsprung * J.T @ J
        right += J.T @ (tyre + p.mass_unsprung * (gravity - bias))
        right[6 + i] -= fs
        moment = moment + couple

    right[:3] += force
    right[3:6] += moment - np.cross(w, momentum)
    found = np.linalg.solve(mass, right)

    # rates
    dx[3:6] = R @ found[:3]
    dx[10:13] = found[3:6]
    dx[columns_of["strut"]] = s_rate
    dx[columns_of["strut_rate"]] = found[6:]
    dx[33 : 33 + p.rotors] = speed_rate
    rate = (np.clip(steering, -p.max_steering, p.max_steering) - delta) / p.steering_lag
    dx[33 + p.rotors] = np.clip(rate, -p.max_steering_rate, p.max_steering_rate)
    rate = (turns * np.clip(trim, -p.max_steering, p.max_steering) - trims) / p.steering_lag
    rate = np.clip(rate, -p.max_steering_rate, p.max_steering_rate)
    dx[of_wheels(p, "steering_trim")] = rate
    limit = np.minimum(
        p.max_drive_torque, p.max_drive_power / wheels / np.maximum(np.abs(spin), 1e-3)
    )
    dx[columns_of["drive_torque"]] = (np.clip(torque, -limit, limit) - drive) / p.drive_lag
    return dx, loads


@pytest.mark.parametrize(
    "name", [exhaustively("full"), "scale", exhaustively("scale_quad"), "scale_six"]
)
def test_all_derivatives_of_random_states(name):
    p = VehicleParameters.load(name)
    rng = np.random.default_rng(20)
    heights = rng.normal(0, 0.03 * p.wheelbase, (60, 50)).astype(np.float32)
    terrain = HeightMap(
        heights,
        origin_x=-20 * p.wheelbase,
        origin_y=-15 * p.wheelbase,
        step_x=p.wheelbase,
        step_y=0.9 * p.wheelbase,
    )
    model = AmphibiousModel(p, terrain)

    loaded = 0
    for k in range(120):
        x = random_state(p, rng, terrain, k % 3 == 0)
        wind = rng.normal(0, 3, 3)
        steering = rng.uniform(-1, 1)
        trim = rng.uniform(-0.8, 0.8, len(p.wheels))
        torque = rng.normal(0, 1, len(p.wheels)) * p.max_drive_torque
        brake = rng.normal(0, 1, len(p.wheels)) * p.max_brake_torque
        torques = k % 2 == 0
        if torques:
            command = rng.uniform(-1, 1, p.rotors) * p.max_rotor_torque
            rotor = {"rotor_torque": command}
        else:
            command = rng.uniform(0, 1.2, p.rotors) * p.max_rotor_speed
            rotor = {"rotor_speed": command}

        expected, loads = reference(
            p, terrain, x, command, steering, trim, torque, brake, wind, torques
        )
        got = model.derivative(
            x,
            steering=steering,
            steering_trim=trim,
            drive_torque=torque,
            brake_torque_acting=brake,
            wind=wind,
            **rotor,
        )

        # each quantity against its own size
        for part in (
            slice(0, 3),
            slice(3, 6),
            slice(6, 10),
            slice(10, 13),
            of_wheels(p, "strut"),
            of_wheels(p, "strut_rate"),
            of_wheels(p, "wheel_speed"),
            of_wheels(p, "tyre_x") + of_wheels(p, "tyre_y"),
            [*range(33, 34 + p.rotors), *of_wheels(p, "drive_torque")],
            of_wheels(p, "steering_trim"),
        ):
            scale = np.abs(expected[part]).max() + 1e-3
            assert got[part] == pytest.approx(expected[part], rel=0, abs=1e-10 * scale), (k, part)
        loaded += (loads > 0).sum()
    assert loaded > 100
