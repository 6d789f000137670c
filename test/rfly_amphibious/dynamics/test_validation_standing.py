# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Validation table of the model: at rest, in free fall, dropped.

Expected values are analytic or from far simpler models.
"""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import (
    SETS,
    angular_momentum,
    center_velocity,
    jacobian,
    model,
    parameters,
    plane,
)

from rfly_amphibious import AmphibiousModel, Controls, ModelState
from rfly_amphibious.vehicle import state_layout

G = 9.80665


@pytest.fixture(params=SETS)
def name(request):
    return request.param


def pick(name, full, scale):
    return full if name == "full" else scale


FRICTIONLESS = {
    "slip_stiffness": 1e-9,
    "cornering_stiffness_per_rad": 1e-9,
    "low_speed_damping": 0.0,
    "rolling_resistance": 0.0,
}


def test_v02_rest_on_level_ground(name):
    p = parameters(name)
    m = model(name)
    begin = m.standing()
    begin.x[2] += 0.010
    end = m.run(begin, Controls(), 3.0).final
    out = m.outputs(end)

    front, rear = pick(name, (3799.17, 3555.82), (75.422, 71.678))
    assert out.wheel_load == pytest.approx([front, front, rear, rear], rel=1e-3)  # V02a
    mm = pick(name, (17.269, 16.163), (6.285, 5.973))
    assert 1e3 * out.tyre_compression[[0, 2]] == pytest.approx(mm, rel=2e-3)  # V02b
    assert end.x[state_layout.STRUT : state_layout.STRUT + 4] == pytest.approx(
        0.0, abs=1e-4
    )  # V02c
    spring = np.array((p.front_spring, p.rear_spring))
    travel = 1e3 * out.strut_force[[0, 2]] / spring
    assert travel == pytest.approx(pick(name, (121.68, 117.17), (42.44, 39.94)), rel=2e-3)

    assert end.position[2] == pytest.approx(pick(name, 0.65, 0.22), abs=1e-4)  # V02e
    assert np.linalg.norm(out.specific_force) == pytest.approx(G, rel=1e-4)  # V02f
    assert out.specific_force[2] == pytest.approx(G, rel=1e-4)


def test_at_rest_every_derivative_is_zero(name):
    m = model(name)
    assert np.abs(m.derivative(m.standing(3.0, -2.0, 0.7).x)).max() < 1e-11


def modes(p):
    """Return [(eigenvalue, eigenvector)] of body and struts from the linearised model.

    Their frequencies are positive.
    """
    m = AmphibiousModel(p)
    chosen = [*range(13), *range(state_layout.STRUT, state_layout.STRUT + 8)]
    values, vectors = np.linalg.eig(jacobian(m, m.standing().x)[np.ix_(chosen, chosen)])
    order = np.argsort(values.imag)
    return [(values[k], vectors[:, k]) for k in order if values[k].imag > 1.0]


def kind(p, vector):
    """Return which of heave, pitch and roll a body mode is, by its kinetic energy."""
    energy = (
        p.mass * abs(vector[5]) ** 2,
        p.inertia[1] * abs(vector[11]) ** 2,
        p.inertia[0] * abs(vector[10]) ** 2,
    )
    return ("heave", "pitch", "roll")[int(np.argmax(energy))]


def test_v03_undamped_modes(name):
    undamped = parameters(name).replace(
        bump_damping=0.0, rebound_damping=0.0, tyre_damping=0.0, stop_damping=0.0, **FRICTIONLESS
    )
    found = modes(undamped)

    body = {kind(undamped, vector): value.imag / (2 * np.pi) for value, vector in found[:3]}
    expected = pick(name, (1.3558, 1.4436, 1.4206), (2.3048, 2.4955, 2.6940))
    plain = pick(name, (1.3564, 1.4669, 1.4706), (2.3074, 2.5879, 2.8491))
    got = [body[key] for key in ("heave", "pitch", "roll")]
    assert got == pytest.approx(expected, rel=5e-3)  # V03a
    assert got == pytest.approx(plain, rel=0.06)

    hop = sorted(value.imag / (2 * np.pi) for value, _ in found[3:])
    expected = pick(name, (12.517, 12.542, 12.713, 12.939), (16.881, 16.901, 16.906, 16.911))
    assert hop == pytest.approx(expected, rel=2e-3)
    assert np.mean(hop) == pytest.approx(pick(name, 12.52, 16.88), rel=0.02)  # V03c


def test_v03d_heave_damping(name):
    p = parameters(name)
    mean = (p.bump_damping + p.rebound_damping) / 2
    damped = p.replace(bump_damping=mean, rebound_damping=mean, **FRICTIONLESS)
    ratio = {kind(damped, vector): -value.real / abs(value) for value, vector in modes(damped)[:3]}
    assert ratio["heave"] == pytest.approx(pick(name, 0.3527, 0.3062), rel=0.03)


def test_v12_holds_on_a_grade(name):
    p = parameters(name)
    m = AmphibiousModel(p, plane(0.15))
    held = Controls(brake_torque=p.max_brake_torque)
    early = m.run(m.standing(), held, 4.0).final
    late = m.run(early, held, 1.0).final
    assert 1e3 * np.linalg.norm(late.position - early.position) <= 0.2  # V12a
    force = m.outputs(late, held).tyre_force_x.sum()
    assert force == pytest.approx(pick(name, 2182.1, 43.64), rel=0.01)  # V12b
    expected = p.mass * G * np.sin(np.arctan(0.15))
    assert force == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("slope", "heading"), [(0.06, 2.0), (0.3, 0.0), (0.5, 1.0)])
def test_standing_on_a_slope_is_an_equilibrium(name, slope, heading):
    """Braked it stays; the loads carry the weight's part across the slope, tyres the part along it.

    Heading up, the slope moves weight from the front to the rear axle: M g sin θ h / L.
    """
    p = parameters(name)
    m = AmphibiousModel(parameters(name), plane(slope))
    begin = m.standing(7.0, -3.0, heading)
    hold = Controls(brake_torque=p.max_brake_torque)
    end = m.step(begin, hold, steps=1000)
    assert begin.time == 0.0
    assert end.position == pytest.approx(begin.position, abs=1e-6)
    # the place is that of the plane's state: normal to the ground above (7, -3)
    angle = np.arctan(slope)
    offset = np.array((-np.sin(angle), 0.0, np.cos(angle))) * p.origin_height
    assert begin.position[:2] == pytest.approx((7.0 + offset[0], -3.0), abs=2e-3)

    out = m.outputs(end, hold)
    weight = p.mass * G
    assert out.wheel_load.sum() == pytest.approx(weight * np.cos(angle), rel=5e-3)
    held = np.hypot(out.tyre_force_x.sum(), out.tyre_force_y.sum())
    assert held == pytest.approx(weight * np.sin(angle), rel=5e-3)
    if heading == 0.0:
        moved = out.wheel_load[2:].sum() - np.cos(angle) * p.static_load[2:].sum()
        lever = p.center_height / p.wheelbase
        assert moved == pytest.approx(weight * np.sin(angle) * lever, rel=0.1)


def test_where_no_tyre_holds_it_stands_on_the_plane(name):
    p = parameters(name)
    state = AmphibiousModel(p, plane(1.5)).standing()
    assert not state.velocity.any()
    assert state.position[2] == pytest.approx(p.origin_height / np.hypot(1.0, 1.5))


@pytest.mark.parametrize("share", [0.4, 0.8, 1.3])
def test_v12c_unbraked_on_a_slope(name, share):
    """Below the slope C_rr rolling resistance holds the vehicle; above it rolls by the rest."""
    p = parameters(name)
    slope = share * p.rolling_resistance
    m = AmphibiousModel(p, plane(slope))
    early = m.run(m.standing(), Controls(), 4.0).final
    late = m.run(early, Controls(), 10.0).final
    way = np.linalg.norm(late.position - early.position)
    if share < 1.0:
        assert 1e3 * way <= 0.1
    else:
        expected = (slope - p.rolling_resistance) * G * p.mass / p.effective_mass * 10.0
        gained = np.linalg.norm(late.velocity) - np.linalg.norm(early.velocity)
        assert 0.7 * expected < gained < expected  # less what drag takes


def test_a_coasting_vehicle_comes_to_rest(name):
    p = parameters(name)
    m = model(name)
    run = m.run(m.standing(speed=0.5), Controls(), 12.0)
    assert np.linalg.norm(run.final.velocity) < 1e-9
    way = 0.5 * 0.5**2 * p.effective_mass / (p.rolling_resistance * p.mass * G)
    assert run.final.position[0] == pytest.approx(way, rel=0.1)


def airless(p):
    return p.replace(
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotational_drag=(0.0,) * 3,
    )


def test_v13_free_fall(name):
    p = airless(parameters(name))
    m = AmphibiousModel(p)
    x = m.standing().x
    x[2] = 100.0
    x[state_layout.RATES : state_layout.RATES + 3] = (1.2, -0.8, 0.5)
    x[3:6] = (2.0, -1.0, 0.0)
    x[state_layout.STRUT : state_layout.STRUT + 4] = pick(name, 1.0, 0.3) * np.array(
        (0.02, -0.03, 0.05, -0.01)
    )
    x[state_layout.WHEEL_SPEED : state_layout.WHEEL_SPEED + 4] = (3.0, 4.0, -5.0, 6.0)
    begin = ModelState(x, np.zeros(state_layout.MEMORY))

    end = m.run(begin, Controls(), 0.5).final
    change = center_velocity(p, end.x) - center_velocity(p, x)
    assert -change[2] == pytest.approx(4.903325, rel=1e-9)  # V13a
    assert np.linalg.norm(change[:2]) <= 1e-9  # V13b
    before = angular_momentum(p, x)
    after = angular_momentum(p, end.x)
    assert np.linalg.norm(after - before) <= 1e-6 * np.linalg.norm(before)  # V13c


def test_v13d_specific_force_in_free_fall(name):
    m = AmphibiousModel(airless(parameters(name)))
    begin = m.standing()
    begin.x[2] = 100.0
    end = m.run(begin, Controls(), 2.0).final
    assert np.linalg.norm(m.outputs(end).specific_force) <= 0.02


def test_v14_drop(name):
    p = parameters(name).replace(**FRICTIONLESS)
    m = AmphibiousModel(p)
    height = pick(name, 0.30, 0.15)
    begin = m.standing()
    begin.x[state_layout.STRUT : state_layout.STRUT + 4] = p.free_strut
    begin.x[2] += height - float(m.outputs(begin).clearance)

    assert np.sqrt(2 * G * height) == pytest.approx(pick(name, 2.426, 1.715), abs=5e-4)
    assert p.mass * G * height == pytest.approx(pick(name, 4413, 44.13), rel=1e-4)
    run = m.run(begin, Controls(), 3.0, sample_period=0.001)

    travel = 1e3 * run.x[:, state_layout.STRUT : state_layout.STRUT + 4].max()
    assert travel == pytest.approx(pick(name, 106.34, 42.89), rel=0.02)  # V14a
    load = run.outputs.wheel_load.sum(-1).max()
    assert load == pytest.approx(pick(name, 55465, 1287.7), rel=0.03)  # V14b
    force = run.outputs.specific_force[:, 2].max()
    assert force == pytest.approx(pick(name, 38.20, 45.06), rel=0.03)  # V14c
    height = run.final.position[2]
    assert height == pytest.approx(p.origin_height, abs=pick(name, 1.5e-3, 0.6e-3))  # V14d


def test_v26_fastest_eigenvalues(name):
    """Check that standing, driving and flying are well inside the range of RK4 at 1 ms.

    Rolling resistance would hold the wheels of the standing vehicle against any small disturbance.
    """
    p = parameters(name)
    m = model(name, ground_effect=False)
    free = AmphibiousModel(p.replace(rolling_resistance=0.0), ground_effect=False)
    fastest = [
        np.abs(np.linalg.eigvals(jacobian(m, x, **command))).max()
        for m, x, command in (
            (free, m.standing().x, {}),
            (m, m.standing(speed=pick(name, 20.0, 8.0)).x, {}),
            (m, m.flying((0, 0, 20)).x, {"rotor_speed": p.hover_speed}),
        )
    ]
    assert max(fastest) < 2780
    assert fastest == pytest.approx(pick(name, (280, 156, 89), (190, 190, 120)), rel=0.03)
