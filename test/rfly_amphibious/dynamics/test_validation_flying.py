# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Validation table of the model: rotors, flight, mixer, air, and a landing.

Expected values are analytic.
"""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import SETS, along, center_velocity, model, parameters, plane, roll_pitch_yaw
from scipy.optimize import brentq

from rfly_amphibious import AmphibiousModel, Controls
from rfly_amphibious.dynamics.environment import density_ratio
from rfly_amphibious.dynamics.trim import steady_flight
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_autonomy.control.attitude_controller import Mixer
from rfly_autonomy.control.pilot import Pilot, timed_setpoints
from rfly_autonomy.control.setpoint import Setpoint
from rfly_common.errors import DynamicsError
from rfly_common.geodesy import ned_to_geodetic
from rfly_common.physics import standard_density, standard_pressure

G = 9.80665


@pytest.fixture(params=SETS)
def name(request):
    return request.param


def pick(name, full, scale):
    return full if name == "full" else scale


def test_v01_hover(name):
    p = parameters(name)
    m = model(name, ground_effect=False)
    state = m.flying((0.0, 0.0, 50.0))
    hover = Controls(rotor_speed=p.hover_speed)
    out = m.outputs(state, hover)
    assert out.thrust == pytest.approx(pick(name, 2451.66, 49.033), rel=1e-3)  # V01a
    assert p.hover_speed == pytest.approx(pick(name, 127.845, 255.691), rel=1e-3)  # V01b
    assert out.rotor_power == pytest.approx(pick(name, 300038, 3218.0), rel=2e-3)  # V01c

    end = m.run(state, hover, 2.0).final
    dx = m.derivative(end.x, rotor_speed=p.hover_speed)
    assert np.linalg.norm(along(lambda x: center_velocity(p, x), end.x, dx)) <= 0.005  # V01d
    assert np.linalg.norm(end.position - state.position) < 1e-6
    reserve = (p.max_rotor_speed / p.hover_speed) ** 2
    assert reserve == pytest.approx(pick(name, 1.6657, 1.8737), abs=5e-5)  # V01e


def test_thrust_in_the_vortex_ring_state(name):
    """Compare with Leishman's curve by hand.

    v_i/v_h is 1.816 at V = -v_h and 2.083 at -1.5 v_h; a climb does not change.
    """
    p = parameters(name)
    in_hover = p.hover_speed
    static = p.mass * G / p.rotors
    v_h = pick(
        name, np.sqrt(2451.66 / (2 * 1.225 * 4.908739)), np.sqrt(49.033 / (2 * 1.225 * 0.3959192))
    )
    with_ring = AmphibiousModel(p.replace(vortex_ring=1.0), ground_effect=False)
    without = model(name, ground_effect=False)

    def thrust(m, climb, across=0.0):
        state = m.flying((0.0, 0.0, 50.0), velocity=(across, 0.0, climb * v_h))
        out = m.outputs(state, Controls(rotor_speed=in_hover))
        return out.thrust.mean()

    # descending
    for climb, induced in ((-1.0, 1.816), (-1.5, 2.083625), (-0.5, 1.3935)):
        through = (climb + induced - 1.0) * v_h
        expected = static - p.inflow_coefficient * in_hover * through
        assert thrust(with_ring, climb) == pytest.approx(expected, rel=2e-3)
        half = thrust(with_ring, climb, 0.5 * v_h)  # blown away by half
        assert half == pytest.approx(0.5 * (expected + thrust(without, climb)), rel=5e-3)

    # climbing, hovering, and fast enough along or down
    for climb, across in (
        (1.0, 0.0),
        (0.0, 0.0),
        (-1.0, 1.01 * v_h),
        (-2.5, 0.0),
    ):
        expected = thrust(without, climb, across)
        assert thrust(with_ring, climb, across) == pytest.approx(expected, rel=1e-12)

    # nothing damps the descent: at hover's rotor speed it sinks on, faster and faster
    rates = [thrust(m, -0.8) - thrust(m, -0.6) for m in (without, with_ring)]
    assert rates[0] > 0.05 * static
    assert abs(rates[1]) < 0.02 * static


def test_v15_climb(name):
    """Find the speed at which forces balance at full rotor speed."""
    p = parameters(name)
    m = model(name, ground_effect=False)

    def climbing(speed):
        x = m.flying((0.0, 0.0, 100.0), velocity=(0.0, 0.0, speed)).x
        x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] = p.max_rotor_speed
        dx = m.derivative(x, rotor_speed=p.max_rotor_speed)
        return along(lambda x: center_velocity(p, x), x, dx)[2]

    steady = brentq(climbing, 1.0, 40.0)
    assert steady == pytest.approx(pick(name, 18.032, 11.947), rel=2e-3)


@pytest.mark.parametrize(
    ("name", "speed", "pitch", "rotor"),
    [
        ("full", 10.0, 0.03429, 128.42),
        ("full", 5.0, 0.01588, 127.97),
        ("full", 15.0, 0.05532, 129.32),
        ("scale", 8.0, 0.05061, 258.30),
        ("scale", 5.0, 0.02782, 256.54),
        ("scale", 15.0, 0.12223, 268.95),
    ],
)
def test_v16_level_flight(name, speed, pitch, rotor):
    """Check that forces balance at the pitch and rotor speed of the table."""
    p = parameters(name)
    m = model(name, ground_effect=False)
    x = m.flying((0.0, 0.0, 50.0), velocity=(speed, 0.0, 0.0)).x
    x[6:10] = np.cos(pitch / 2), 0.0, np.sin(pitch / 2), 0.0
    x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] = rotor
    dx = m.derivative(x, rotor_speed=rotor)
    assert np.abs(along(lambda x: center_velocity(p, x), x, dx)).max() <= 2e-3


@pytest.mark.parametrize("climb", [-2.0, 0.0, 3.0])
def test_a_trimmed_flight_goes_on_as_it_is(name, climb):
    m = model(name, ground_effect=False)
    trim = steady_flight(m, 8.0, climb=climb)
    end = m.run(trim.state, Controls(rotor_speed=trim.rotor_speed), 1.0).final
    assert end.velocity == pytest.approx([8.0, 0.0, climb], abs=1e-6)
    assert roll_pitch_yaw(end.x) == pytest.approx((trim.roll, trim.pitch, 0.0), abs=1e-6)
    assert trim.rotor_speed[0] == pytest.approx(trim.rotor_speed[1])  # left as right
    if climb == 0.0:
        assert trim.pitch == pytest.approx(pick(name, 0.02662, 0.05061), rel=1e-3)  # V16
        root_mean_square = np.sqrt(np.mean(trim.rotor_speed**2))
        assert root_mean_square == pytest.approx(pick(name, 128.19, 258.30), rel=1e-3)


def test_a_climb_costs_its_potential_energy(name):
    """Compare with axial momentum theory: v = -V/2 + sqrt(V²/4 + v_h²)."""
    p = parameters(name).replace(linear_drag=(0.0,) * 3, drag_area=(0.0,) * 3)
    m = AmphibiousModel(p, ground_effect=False)
    v_h = pick(name, 14.278, 7.110)
    trim = steady_flight(m, climb=4.0)
    through = 2.0 + np.sqrt(4.0 + v_h**2)
    ideal = p.mass * G * through
    hover = steady_flight(m).rotor_power
    profile = (1 - p.figure_of_merit) * hover
    assert profile * 0.95 < trim.rotor_power - ideal < profile * 1.3


def test_no_steady_flight_beyond_the_rotors(name):
    with pytest.raises(DynamicsError, match=r"at 80 m/s .*, at a height of 1000 m"):
        steady_flight(model(name, ground_effect=False), 80.0)


def test_a_steady_flight_says_its_height():
    """Rotors that carry the same weight in thin air take 1/√(ρ/ρ₀) of the power."""
    m = AmphibiousModel(parameters("scale"), ground_effect=False, air_density="standard_atmosphere")
    high = steady_flight(m)
    low = steady_flight(m, position=(0.0, 0.0, 100.0))
    assert (high.height, low.height) == (1000.0, 100.0)
    thinner = standard_density(1000.0) / standard_density(100.0)
    assert high.rotor_power / low.rotor_power == pytest.approx(thinner**-0.5)


def test_v17_mixer_steps(name):
    p = parameters(name).replace(
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotational_drag=(0.0,) * 3,
        rotor_drag_coefficient=0.0,
        zero_thrust_advance_ratio=1e9,
    )

    m = AmphibiousModel(p, ground_effect=False)
    tilt, turn = pick(name, (200.0, 150.0), (0.5, 0.4))
    for axis, moment, expected, tolerance in (
        (0, tilt, pick(name, 0.08940, 0.14445), 0.04),
        (1, tilt, pick(name, 0.04153, 0.09001), 0.04),
        (2, turn, pick(name, 0.024238, 0.048787), 0.01),
    ):
        wrench = np.zeros(4)
        wrench[0] = p.mass * G
        wrench[1 + axis] = moment
        speeds = Mixer(p).rotor_speeds(wrench)
        begin = m.flying((0.0, 0.0, 50.0))
        begin.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] = speeds
        end = m.run(begin, Controls(rotor_speed=speeds), 0.5).final
        assert end.rates[axis] == pytest.approx(expected, rel=tolerance)
        others = np.delete(end.rates, axis)
        assert np.abs(others).max() < 0.05 * expected


def test_v18_ground_effect(name):
    p = parameters(name)
    m = model(name)
    state = m.standing()
    state.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] = p.hover_speed
    gain = m.outputs(state).thrust / (p.thrust_coefficient * p.hover_speed**2)
    height = pick(name, 1.60, 0.42)
    expected = 1.0 / (1.0 - (p.rotor_radius / 4.0 / height) ** 2)
    assert gain == pytest.approx(expected, rel=1e-6)
    assert gain == pytest.approx(pick(name, 1.0397, 1.0467), abs=5e-5)


def test_v19_motor_lag(name):
    p = parameters(name)
    m = model(name, ground_effect=False)
    begin = m.flying((0.0, 0.0, 50.0))
    end = m.run(begin, Controls(rotor_speed=p.hover_speed + 1.0), p.rotor_lag).final
    risen = end.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] - p.hover_speed
    assert risen == pytest.approx(1.0 - 1.0 / np.e, rel=2e-3)


def test_v19b_torque_command(name):
    p = parameters(name)
    m = model(name, ground_effect=False)
    begin = m.flying((0.0, 0.0, 50.0))
    torque = 1.01 * p.torque_coefficient * p.hover_speed**2
    run = m.run(begin, Controls(rotor_torque=torque), 0.6, sample_period=0.001)
    risen = (run.x[:, state_layout.ROTOR_SPEED] - p.hover_speed) / (
        p.hover_speed * (np.sqrt(1.01) - 1.0)
    )
    constant = run.time[np.argmax(risen >= 1.0 - 1.0 / np.e)]

    assert constant == pytest.approx(pick(name, 0.3268, 0.1828), rel=0.02)
    assert constant == pytest.approx(
        p.rotor_inertia / (2 * p.torque_coefficient * p.hover_speed), rel=0.02
    )


def test_v22_mixer(name):
    p = parameters(name)
    mixer = Mixer(p)
    scale = p.thrust_coefficient * np.array(
        (
            1.0,
            p.rotor_arm[0],
            p.rotor_arm[0],
            p.torque_coefficient / p.thrust_coefficient,
        )
    )
    normalised = mixer.matrix / scale[:, None]
    values = np.linalg.svd(normalised, compute_uv=False)
    assert np.linalg.matrix_rank(normalised) == 4
    expected = [6**0.5, 6**0.5, 3**0.5, 3**0.5]
    assert values == pytest.approx(expected, rel=1e-9)  # V22a
    printed = normalised.copy()
    printed[1, [2, 5]] *= -1.0
    smallest = np.linalg.svd(printed, compute_uv=False)[-1]
    expected = np.sqrt((9 - np.sqrt(73)) / 2)
    assert smallest == pytest.approx(expected, rel=1e-9)  # V22c

    wrench = np.array((p.mass * G, *np.array((1.0, -2.0, 0.5)) * pick(name, 100.0, 0.3)))
    got = mixer.wrench(mixer.rotor_speeds(wrench))
    assert np.linalg.norm(got - wrench) / (p.mass * G) <= 1e-12  # V22d


def test_v29a_standard_atmosphere():
    assert standard_pressure(1000.0) == pytest.approx(89874.6, rel=1e-5)
    assert standard_density(1000.0) == pytest.approx(1.11164, rel=1e-4)
    record = AmphibiousModel(parameters("full"), map_altitude=400.0)._records[0]
    assert density_ratio(record, 600.0) * 1.225 == pytest.approx(
        standard_density(1000.0), rel=1e-12
    )


def test_thin_air_lifts_less(name):
    p = parameters(name)
    high = AmphibiousModel(
        p, ground_effect=False, air_density="standard_atmosphere", map_altitude=1000.0
    )
    state = high.flying((0.0, 0.0, 0.0 + 100.0))
    thrust = high.outputs(state).thrust
    assert thrust == pytest.approx(p.mass * G / 6 * standard_density(1100.0) / 1.225, rel=1e-9)


def test_v21_landing(name):
    p = parameters(name)
    m = model(name)
    begin = m.flying((0.0, 0.0, 0.0))
    begin.x[2] = 1.5 - float(m.outputs(begin).clearance)

    place = tuple(begin.position)
    setpoints = [
        Setpoint(0.0, target=place),
        Setpoint(2.0, Mode.LAND),
        Setpoint(9.0, speed=3.0),
    ]
    pilot = Pilot(m, timed_setpoints(setpoints), Mode.FLIGHT)
    run = m.run(begin, pilot, 13.0, sample_period=0.004)
    assert pilot.modes == [Mode.FLIGHT, Mode.LAND, Mode.SPOOL_DOWN, Mode.DRIVE]
    assert abs(run.x[499, 2] - place[2]) <= 0.10  # V21b

    load = run.outputs.wheel_load.sum(-1)
    contact = int(np.argmax(load > 0.0))
    assert -run.x[contact - 1, 5] <= 0.60  # V21c
    before_driving = int(np.searchsorted(run.time, 8.99))
    assert load[before_driving] / (p.mass * G) == pytest.approx(1.0, rel=0.02)  # V21d
    assert run.x[-1, 3] == pytest.approx(3.0, rel=0.03)  # V21e

    force = np.linalg.norm(run.outputs.specific_force, axis=-1)
    assert force.max() <= 2 * G  # V21f
    angles = np.array([roll_pitch_yaw(x)[:2] for x in run.x])
    assert np.abs(angles).max() <= 0.12  # V21g


def ecef(latitude_deg, longitude_deg, altitude):
    """Return ECEF coordinates, exact for WGS 84, m."""
    latitude, longitude = np.radians((latitude_deg, longitude_deg))
    n = 6378137.0 / np.sqrt(1 - 0.00669437999 * np.sin(latitude) ** 2)
    level = (n + altitude) * np.cos(latitude)
    up = (n * (1 - 0.00669437999) + altitude) * np.sin(latitude)
    return np.array((level * np.cos(longitude), level * np.sin(longitude), up))


def test_v29c_places_on_the_earth():
    """Compare 1000 m east, 2000 m north and 50 m up of 40° N with exact ECEF."""
    origin = (40.0, 9.0, 100.0)
    point = ned_to_geodetic((2000.0, 1000.0, -50.0), origin)
    lat, lon = np.radians(origin[:2])
    east = np.array((-np.sin(lon), np.cos(lon), 0.0))
    north = np.array(
        (
            -np.sin(lat) * np.cos(lon),
            -np.sin(lat) * np.sin(lon),
            np.cos(lat),
        )
    )
    up = np.cross(east, north)
    offset = ecef(*point) - ecef(*origin)
    found = np.array((offset @ east, offset @ north, offset @ up))

    assert np.linalg.norm(found - (1000.0, 2000.0, 50.0)) <= 1.0


def test_v29d_a_forward_beam_meets_a_slope(name):
    """Cast the steepest lidar beam from the rotor plane against z = 0.1 x."""
    height = pick(name, 1.60, 0.42)
    steep = np.radians(30.67)
    beam = np.array((np.cos(steep), 0.0, -np.sin(steep)))
    distance = float(np.squeeze(plane(0.1).cast(np.array((0.0, 0.0, height)), beam, 70.0)))
    expected = height / (0.1 * np.cos(steep) + np.sin(steep))
    assert distance == pytest.approx(expected, rel=1e-9)
    assert distance == pytest.approx(pick(name, 2.6841, 0.70457), abs=5e-5)
