# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Validation table of the model: driving.

Expected values are analytic or from far simpler models.
"""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import (
    SETS,
    forward_speed,
    holding,
    model,
    parameters,
    roll_pitch_yaw,
    rotation,
)
from scipy.optimize import brentq

from rfly_amphibious import AmphibiousModel, Controls
from rfly_amphibious.dynamics.tyres import magic_formula
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.vehicle_record import peak_slip
from rfly_terrain.height_map.height_map import HeightMap

G = 9.80665


@pytest.fixture(params=SETS)
def name(request):
    return request.param


def pick(name, full, scale):
    return full if name == "full" else scale


def yaw_rate(x):
    return float((rotation(x) @ x[state_layout.RATES : state_layout.RATES + 3])[2])


def understeer(p):
    """Return K_us, rad s²/m, and the axles' cornering stiffnesses, N/rad, at static load."""

    def axle(load, factor):
        ratio = load / (p.cornering_load_ratio * p.nominal_load)
        stiffness = factor * p.cornering_stiffness_per_rad * p.nominal_load
        return 2 * stiffness * np.sin(2 * np.arctan(ratio))

    front = axle(p.static_load[0], p.cornering_factor_front)
    rear = axle(p.static_load[2], p.cornering_factor_rear)
    to_front = p.front_axle - p.center_x
    to_rear = p.rear_axle + p.center_x
    return p.mass / p.wheelbase * (to_rear / front - to_front / rear), front, rear


def test_axle_stiffness_and_understeer(name):
    p = parameters(name)
    gradient, front, rear = understeer(p)
    assert (front, rear) == pytest.approx(pick(name, (96213, 115552), (1535.1, 1750.6)), rel=1e-4)
    assert gradient == pytest.approx(pick(name, 0.001777, 0.001669), rel=1e-3)
    assert np.sqrt(p.wheelbase / gradient) == pytest.approx(pick(name, 38.98, 19.88), rel=1e-3)


def test_v08_steady_turn(name):
    p = parameters(name)
    m = model(name)
    speed, steering = pick(name, (15.0, 0.03), (5.0, 0.04))
    end = m.run(
        m.standing(speed=speed),
        holding(p, speed, steering),
        pick(name, 8.0, 5.0),
        control_period=0.01,
    ).final

    x = end.x
    out = m.outputs(end)
    assert forward_speed(x) == pytest.approx(speed, rel=1e-2)
    assert yaw_rate(x) == pytest.approx(pick(name, 0.14463, 0.28447), rel=0.03)  # V08a
    k = understeer(p)[0]
    expected = speed * steering / (p.wheelbase + k * speed**2)
    assert yaw_rate(x) == pytest.approx(expected, rel=0.03)  # V08b
    lateral = float(rotation(x)[:, 1] @ x[3:6]) + yaw_rate(x) * p.center_x
    assert lateral == pytest.approx(pick(name, -0.0016, 0.0370), abs=0.01)  # V08c

    load = out.wheel_load
    shift = (load[1] + load[3] - load[0] - load[2]) / 2
    assert shift == pytest.approx(pick(name, 1285.8, 16.21), rel=0.04)  # V08d
    roll = roll_pitch_yaw(x)[0]
    assert roll == pytest.approx(pick(name, 0.02400, 0.02170), rel=0.05)  # V08e
    gradient = np.degrees(roll) / (speed * yaw_rate(x) / G)
    assert gradient == pytest.approx(pick(name, 6.37, 8.72), rel=0.05)


def test_v09_step_steer(name):
    p = parameters(name)
    m = model(name)
    speed, steering = pick(name, (15.0, 0.03), (5.0, 0.04))
    straight = m.run(m.standing(speed=speed), holding(p, speed), 1.0, control_period=0.01).final
    run = m.run(
        straight, holding(p, speed, steering), 2.0, control_period=0.01, sample_period=0.002
    )

    rate = np.array([yaw_rate(x) for x in run.x])
    assert rate[-1] == pytest.approx(pick(name, 0.14467, 0.28462), rel=0.03)  # V09a
    assert rate.max() == pytest.approx(pick(name, 0.14506, 0.28590), rel=0.05)  # V09b
    first = np.argmax(rate >= 0.9 * rate[-1])
    rise = run.time[first] - straight.time
    assert rise == pytest.approx(pick(name, 0.294, 0.1475), rel=0.12)  # V09c


def until(run, condition):
    """Return the index of the first sample at which the condition of the state holds."""
    return next(k for k, x in enumerate(run.x) if condition(x))


def test_v10_brake(name):
    p = parameters(name)
    m = model(name)
    speed, torque = pick(name, (20.0, 400.0), (8.0, 3.0))
    begin = m.standing(speed=speed)
    run = m.run(begin, Controls(brake_torque=torque), pick(name, 7.0, 3.0), sample_period=0.002)

    stop = until(run, lambda x: forward_speed(x) <= 1e-3)
    assert run.x[stop, 0] == pytest.approx(pick(name, 56.04, 8.408), rel=0.015)  # V10a
    assert run.time[stop] == pytest.approx(pick(name, 5.726, 2.128), rel=0.02)  # V10b

    middle = run.outputs.wheel_load[stop // 2]
    gain = middle[:2].sum() - p.static_load[:2].sum()
    assert gain == pytest.approx(pick(name, 1174.8, 36.48), rel=0.04)  # V10c


def test_v10_locked_wheels(name):
    p = parameters(name)
    m = model(name)
    speed = pick(name, 10.0, 4.0)
    held = Controls(brake_torque=p.max_brake_torque)
    run = m.run(m.standing(speed=speed), held, pick(name, 5.0, 4.0), sample_period=0.002)

    stop = until(run, lambda x: forward_speed(x) <= 1e-3)
    assert run.x[stop, 0] == pytest.approx(pick(name, 7.758, 1.319), rel=0.04)  # V10d
    locked = run.x[stop // 2]
    spin = (
        locked[state_layout.WHEEL_SPEED : state_layout.WHEEL_SPEED + 4]
        - locked[state_layout.RATES + 1]
    )
    assert np.abs(spin).max() <= 1e-6  # V10e

    after = np.searchsorted(run.time, run.time[stop] + np.array((1.5, 2.0)) - 1e-9)
    creep = np.linalg.norm(run.x[after[1], :3] - run.x[after[0], :3]) / 0.5
    assert 1e3 * creep <= 1.0  # V10f


def test_v11_coast_down(name):
    m = model(name)
    fast, slow = pick(name, (20.0, 16.0), (8.0, 6.5))
    run = m.run(m.standing(speed=fast), Controls(), pick(name, 25.5, 11.8), sample_period=0.005)

    end = until(run, lambda x: forward_speed(x) <= slow)
    half = until(run, lambda x: forward_speed(x) <= fast / 2)
    assert run.time[end] == pytest.approx(pick(name, 8.009, 3.602), rel=0.02)  # V11a
    assert run.x[end, 0] == pytest.approx(pick(name, 143.52, 26.03), rel=0.02)  # V11b
    to_half = (run.time[half], run.x[half, 0])
    expected = pick(name, (24.73, 357.3), (11.24, 65.65))
    assert to_half == pytest.approx(expected, rel=0.02)


def rolling_with_tyres(name, load=None):
    """Return a model with λ_K = 1 and a state above the speed of low-speed damping."""
    p = parameters(name).replace(
        cornering_factor_front=1.0, cornering_factor_rear=1.0, tyre_damping=0.0
    )
    m = AmphibiousModel(p)
    x = m.standing(speed=4.0 * p.low_speed).x
    if load is not None:
        x[state_layout.STRUT : state_layout.STRUT + 4] += (p.static_load - load) / p.tyre_stiffness
    return p, m, x


def test_v20a_friction_ellipse(name):
    p, m, x = rolling_with_tyres(name)
    rng = np.random.default_rng(3)
    states = np.repeat(x[None], 50, axis=0)
    reach = 3.0 * np.array((p.relaxation_x, p.relaxation_y))
    states[:, state_layout.TYRE_X : state_layout.TYRE_X + 4] = rng.uniform(
        -reach[0], reach[0], (50, 4)
    )
    states[:, state_layout.TYRE_Y : state_layout.TYRE_Y + 4] = rng.uniform(
        -reach[1], reach[1], (50, 4)
    )
    lifted = rng.uniform(0.0, 0.5, (50, 4)) * p.static_load / p.tyre_stiffness
    states[:, state_layout.STRUT : state_layout.STRUT + 4] -= lifted
    _, numbers = m._evaluate(states, Controls(), 0.0, (0.0, 0.0, 0.0))

    columns = state_layout.output_columns(4)
    load = numbers[:, columns["wheel_load"]]
    fx = numbers[:, columns["tyre_force_x"]]
    fy = numbers[:, columns["tyre_force_y"]]
    friction = 1.0 - p.friction_load_loss * (load - p.nominal_load) / p.nominal_load
    used_x = fx / (p.friction_x * friction * load)
    used_y = fy / (p.friction_y * friction * load)
    used = used_x**2 + used_y**2
    assert used.max() <= 1.0
    assert used.max() > 0.98
    assert np.sqrt(used).min() < 0.95


def test_v20b_stiffness_at_nominal_load(name):
    p = parameters(name)
    p, m, x = rolling_with_tyres(name, p.nominal_load)
    small = 1e-9
    state = state_layout.state_columns(p.rotors, 4)
    outputs = state_layout.output_columns(4)
    x[state["tyre_x"]] = small * p.relaxation_x
    x[state["tyre_y"]] = 0.0
    _, along = m._evaluate(x, Controls(), 0.0, (0.0, 0.0, 0.0))
    x[state["tyre_x"]] = 0.0
    x[state["tyre_y"]] = small * p.relaxation_y
    _, across = m._evaluate(x, Controls(), 0.0, (0.0, 0.0, 0.0))

    assert along[outputs["wheel_load"]] == pytest.approx(p.nominal_load, rel=1e-9)
    stiffness_y = across[outputs["tyre_force_y"]] / small
    assert stiffness_y == pytest.approx(pick(name, 59200, 900), rel=1e-9)
    stiffness_x = along[outputs["tyre_force_x"]] / small
    assert stiffness_x == pytest.approx(pick(name, 66600, 1050), rel=1e-9)


def test_v20d_shape_of_the_magic_formula(name):
    p = parameters(name)
    for shape, curvature, peak in zip(
        (p.shape_x, p.shape_y),
        (p.curvature_x, p.curvature_y),
        pick(name, (2.1295, 2.3706), (2.1850, 2.5006)),
        strict=True,
    ):
        assert magic_formula(1e-7, shape, 1.0 / shape, curvature) / 1e-7 == pytest.approx(
            1.0, abs=1e-6
        )
        assert peak_slip(shape, curvature) == pytest.approx(peak, abs=5e-5)

        slips = np.linspace(0.0, 30.0, 30001)
        forces = np.array([magic_formula(slip, shape, 1.0 / shape, curvature) for slip in slips])
        assert forces.max() == pytest.approx(1.0, abs=1e-6)
        assert slips[forces.argmax()] == pytest.approx(peak, abs=2e-3)


@pytest.mark.parametrize("shape", [1.01, 1.3, 1.65, 1.99])
@pytest.mark.parametrize("curvature", [-10.0, -0.5, 0.0, 0.8, 0.99])
def test_slip_of_the_largest_force_is_the_root_that_a_bracket_finds(shape, curvature):
    def beyond(z):
        return z - curvature * (z - np.arctan(z)) - np.tan(np.pi / (2.0 * shape))

    expected = shape * brentq(beyond, 0.0, 1e4, xtol=1e-14)
    assert peak_slip(shape, curvature) == pytest.approx(expected, rel=1e-11)


def test_v24_acceleration(name):
    m = model(name)
    speed, torque = pick(name, (10.0, 600.0), (5.0, 4.0))
    run = m.run(m.standing(), Controls(drive_torque=torque), 2.6, sample_period=0.002)
    end = until(run, lambda x: forward_speed(x) >= speed)
    assert run.time[end] == pytest.approx(pick(name, 2.228, 1.161), rel=0.05)


def bump(height, length, start):
    """Return level ground with one cosine bump across the way, in steps of a hundredth of its
    length.
    """
    step = length / 100.0
    x = -5.0 + step * np.arange(int((start + length + 20.0) / step))
    inside = (x > start) & (x < start + length)
    wave = 0.5 * height * (1.0 - np.cos(2.0 * np.pi * (x - start) / length))
    profile = np.where(inside, wave, 0.0)

    return HeightMap(
        np.stack([profile, profile], axis=1),
        origin_x=-5.0,
        origin_y=-10.0,
        step_x=step,
        step_y=20.0,
    )


def test_v25_bump(name):
    p = parameters(name)
    height, length, speed = pick(name, (0.030, 1.5, 5.0), (0.008, 0.5, 2.0))
    m = AmphibiousModel(p, bump(height, length, 3.0))
    begin = m.standing(speed=speed)
    run = m.run(begin, holding(p, speed), pick(name, 2.5, 3.0), sample_period=0.002)

    peak = 1e3 * run.x[:, state_layout.STRUT : state_layout.STRUT + 4].max()
    assert peak == pytest.approx(pick(name, 18.71, 4.255), rel=0.06)  # V25a
    load = run.outputs.wheel_load.sum(-1).max()
    assert load == pytest.approx(pick(name, 16908, 325.0), rel=0.05)  # V25b
    pitch = max(abs(roll_pitch_yaw(x)[1]) for x in run.x)
    assert pitch == pytest.approx(pick(name, 0.01063, 0.01408), rel=0.16)  # V25c


def test_v27_slow_circle(name):
    p = parameters(name)
    m = model(name)
    speed = pick(name, 1.0, 0.8)
    steering = 0.2
    driver = holding(p, speed, steering)
    end = m.run(m.standing(speed=speed), driver, 6.0, control_period=0.01).final
    turned = yaw_rate(end.x) * p.wheelbase / (forward_speed(end.x) * np.tan(steering))
    assert turned == pytest.approx(1.0, rel=0.02)


def test_v28_half_the_step(name):
    p = parameters(name)
    m = model(name)
    begin = m.standing(speed=pick(name, 15.0, 5.0))
    turning = Controls(steering=0.03, brake_torque=0.1 * p.max_brake_torque)
    places = [m.run(begin, turning, 0.6, dt).final.position for dt in (0.001, 0.0005)]
    assert np.linalg.norm(places[0] - places[1]) <= 1e-3
