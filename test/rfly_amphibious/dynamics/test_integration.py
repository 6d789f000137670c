# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Integration: a tenth of the step, another integrator, convergence and energy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from amphibious_cases import SETS, energy, forward_speed, model, parameters, roll_pitch_yaw
from marks import exhaustively
from scipy.integrate import solve_ivp

from rfly_amphibious import AmphibiousModel, Controls
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import Pilot, timed_setpoints
from rfly_autonomy.control.setpoint import Setpoint
from rfly_terrain import HeightMap

G = 9.80665


@pytest.fixture(params=SETS)
def name(request):
    return request.param


def pick(name, full, scale):
    return full if name == "full" else scale


def angle_between(a, b):
    """Return the angles between the attitudes of states (k, …), deg."""
    cosine = np.abs((a[:, 6:10] * b[:, 6:10]).sum(axis=1)).clip(0.0, 1.0)
    return np.degrees(2.0 * np.arccos(cosine))


def half_a_minute(params: VehicleParameters) -> tuple[AmphibiousModel, Pilot]:
    """Return level ground with one bump, and a pilot who drives over it, takes off, flies, lands.

    The bump lies across the way; it is as long as a wheelbase and a tenth of the wheels' radius
    high.
    """
    size = params.wheelbase
    terrain = level_ground(0.1 * params.wheel_radius, size, 3.0 * size)
    model = AmphibiousModel(params, terrain)

    speed = 1.2 * math.sqrt(size)
    stop = 4.0 + 4.0 * size / speed
    flight = (9.0 * size, 1.0 * size, 2.5 + params.origin_height)

    setpoints = [
        Setpoint(0.0, speed=speed),
        *(Setpoint(stop + 0.1 * k, speed=speed * (1.0 - 0.1 * k)) for k in range(11)),
        Setpoint(stop + 2.0, Mode.TAKEOFF),
        Setpoint(stop + 7.0, target=flight),
        Setpoint(20.0, Mode.LAND),
        Setpoint(27.0, speed=0.7 * speed, steering=0.1),
    ]
    return model, Pilot(model, timed_setpoints(setpoints))


def level_ground(height: float, length: float, start: float) -> HeightMap:
    """Return level ground with a cosine bump from x = start, across all of y."""
    step = length / 60
    x = np.arange(-10.0 * length, 40.0 * length, step)
    inside = (x > start) & (x < start + length)
    bump = 0.5 * height * (1.0 - np.cos(2.0 * np.pi * (x - start) / length))
    profile = np.where(inside, bump, 0.0)

    reach = 20.0 * length
    return HeightMap(
        np.stack([profile, profile], axis=1),
        origin_x=float(x[0]),
        origin_y=-reach,
        step_x=step,
        step_y=2.0 * reach,
    )


def fly_demo(name, dt):
    model, pilot = half_a_minute(parameters(name))
    return model.run(model.standing(), pilot, 30.0, dt, sample_period=0.02), pilot


@pytest.mark.parametrize("name", ["full", exhaustively("scale")])
@pytest.mark.exhaustive
def test_scenario_at_a_tenth_of_the_step(name):
    coarse, pilot = fly_demo(name, 1e-3)
    fine, _ = fly_demo(name, 1e-4)

    assert pilot.modes == [
        Mode.DRIVE,
        Mode.TAKEOFF,
        Mode.FLIGHT,
        Mode.LAND,
        Mode.SPOOL_DOWN,
        Mode.DRIVE,
    ]
    assert not coarse.final.crashed
    assert coarse.x[:, 13:17].max() > 0.003 * pick(name, 3.0, 1.0)  # the bump was felt
    assert coarse.outputs.clearance.max() > 1.5
    assert forward_speed(coarse.final.x) > 0.5
    assert np.linalg.norm(coarse.x[:, :3] - fine.x[:, :3], axis=1).max() <= 0.01
    assert angle_between(coarse.x, fine.x).max() <= 0.1


@pytest.mark.parametrize("flying", [False, True], ids=["driving", "flying"])
def test_another_integrator_on_smooth_stretches(name, flying):
    """Compare with SciPy's DOP853 on `derivative`; nothing lifts, brakes or stops meanwhile."""
    p = parameters(name)
    m = model(name)
    if flying:
        begin = m.flying((0.0, 0.0, 4.0), 0.3, (1.0, 0.5, 0.2))
        spread = np.linspace(-0.01, 0.01, p.rotors)
        commands = {"rotor_speed": p.hover_speed * (1.0 + spread)}
    else:
        begin = m.standing(speed=pick(name, 10.0, 4.0))
        commands = {"steering": 0.03, "drive_torque": 0.1 * p.max_drive_torque}

    ours = m.step(begin, Controls(**commands), 5e-4, steps=2000).x
    peer = solve_ivp(
        lambda _, x: m.derivative(x, **commands),
        (0.0, 1.0),
        begin.x,
        "DOP853",
        rtol=1e-11,
        atol=1e-12,
        max_step=0.01,
    ).y[:, -1]
    peer[6:10] /= np.linalg.norm(peer[6:10])
    assert ours == pytest.approx(peer, rel=1e-6, abs=1e-6)


def violent_second(name, dt, method="rk4"):
    """Simulate a drop while rolling and steering 0.1 rad, with brakes in the second half.

    docs/model, section 13.
    """
    p = parameters(name)
    m = model(name)
    begin = m.standing(speed=pick(name, 10.0, 4.0))
    begin.x[2] += 0.5 * pick(name, 0.30, 0.15)
    middle = m.step(begin, Controls(steering=0.1), dt, steps=round(0.5 / dt), method=method)
    braking = Controls(steering=0.1, brake_torque=0.2 * p.max_brake_torque)
    return m.step(middle, braking, dt, steps=round(0.5 / dt), method=method)


@pytest.mark.parametrize(
    ("method", "dt", "full", "scale"),
    [
        ("rk4", 1e-3, 0.5e-3, 0.03e-3),
        ("rk4", 2e-3, 2.5e-3, 1.5e-3),
        ("rk4", 4e-3, 6.7e-3, 4.6e-3),
        ("semi_implicit_euler", 5e-4, 2.2e-3, 1.3e-3),
        ("semi_implicit_euler", 1e-3, 4.9e-3, 2.6e-3),
        ("semi_implicit_euler", 2e-3, 8.4e-3, 6.5e-3),
    ],
)
def test_error_of_a_violent_second(name, method, dt, full, scale):
    """Compare with the order of magnitude in the table of docs/model, section 13."""
    exact = violent_second(name, 2.5e-4)
    found = violent_second(name, dt, method)
    error = np.linalg.norm(exact.position - found.position)
    assert error <= 4.0 * pick(name, full, scale)
    yaw = roll_pitch_yaw(exact.x)[2] - roll_pitch_yaw(found.x)[2]
    assert abs(yaw) <= 5e-3


def test_rk4_is_of_fourth_order_where_nothing_switches(name):
    m = model(name)
    begin = m.flying((0.0, 0.0, 4.0), 0.0, (1.0, 0.5, 0.2))
    begin.x[10:13] = 0.3, -0.2, 0.4
    controls = Controls(rotor_speed=parameters(name).hover_speed)
    ends = [m.step(begin, controls, dt, steps=round(0.4 / dt)).x[:13] for dt in (1e-2, 5e-3, 1e-3)]
    errors = [np.abs(end - ends[2]).max() for end in ends[:2]]
    assert 10.0 < errors[0] / errors[1] < 24.0


@pytest.mark.parametrize(("method", "limit"), [("rk4", 3e-4), ("semi_implicit_euler", 0.08)])
def test_energy_of_the_undamped_vehicle_stays(name, method, limit):
    """Bounce, pitch and roll for ten seconds; the drift is a share of the swinging energy."""
    p = parameters(name).replace(
        bump_damping=0.0,
        rebound_damping=0.0,
        tyre_damping=0.0,
        stop_damping=0.0,
        slip_stiffness=1e-9,
        cornering_stiffness_per_rad=1e-9,
        low_speed_damping=0.0,
        rolling_resistance=0.0,
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotational_drag=(0.0,) * 3,
    )

    m = AmphibiousModel(p)
    begin = m.standing()
    rest = energy(p, begin.x)
    begin.x[state_layout.STRUT : state_layout.STRUT + 4] = pick(name, 1.0, 0.4) * np.array(
        (0.002, 0.001, 0.0, -0.001)
    )
    swinging = energy(p, begin.x) - rest

    run = m.run(begin, Controls(), 10.0, sample_period=0.05, method=method)
    drift = np.array([energy(p, x) for x in run.x]) - energy(p, begin.x)
    assert swinging > 0.0
    assert np.abs(drift).max() <= limit * swinging


def test_a_run_in_pieces_is_the_run(name):
    from rfly_amphibious import Wind

    m = model(name)
    wind = Wind((3.0, 1.0, 0.0), (1.0, 1.0, 0.5), seed=5)
    controls = Controls(steering=0.1, drive_torque=0.2 * parameters(name).max_drive_torque)
    begin = m.standing(speed=2.0)
    whole = m.step(begin, controls, steps=700, wind=wind)
    part = m.step(begin, controls, steps=333, wind=wind)
    rest = m.step(part, controls, steps=367, wind=wind)

    assert np.array_equal(whole.x, rest.x)
    assert np.array_equal(whole.memory, rest.memory)
    assert rest.time == pytest.approx(0.7)

    again = m.step(begin, controls, steps=700, wind=wind)
    other = m.step(begin, controls, steps=700, wind=Wind((3.0, 1.0, 0.0), (1.0, 1.0, 0.5), seed=6))
    assert np.array_equal(whole.x, again.x)
    assert not np.array_equal(whole.x, other.x)
