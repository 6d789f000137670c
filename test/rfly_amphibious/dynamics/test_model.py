# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Interface of the model, its symmetries, contact and the crash latch, gusts, chassis and rotor
layouts.
"""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import SETS, model, parameters, plane, random_state, roll_pitch_yaw, rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_amphibious import AmphibiousModel, Controls, ModelState, VehicleParameters, Wind
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import ConfigError, DynamicsError

G = 9.80665
SWAP = np.array((1, 0, 3, 2))
"""Indices with left and right wheels exchanged."""


@pytest.fixture(params=SETS)
def name(request):
    return request.param


class Flat:
    @staticmethod
    def altitude(_x, _y):
        return 0.0


def mirrored(p, x):
    """Return the state of the mirror image, left for right."""
    y = x.copy()
    y[[1, 4]] *= -1
    y[[7, 9]] *= -1
    y[[10, 12]] *= -1
    columns = state_layout.state_columns(p.rotors, 4)
    of_wheels = ("strut", "strut_rate", "wheel_speed", "tyre_x", "tyre_y", "drive_torque")
    for quantity in (*of_wheels, "steering_trim"):
        y[columns[quantity]] = x[columns[quantity]][SWAP]
    for quantity in ("tyre_y", "steering_trim"):
        y[columns[quantity]] *= -1
    y[columns["rotor_speed"]] = x[columns["rotor_speed"]][[1, 0, 5, 4, 3, 2]]
    y[columns["steering"]] *= -1
    return y


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(SETS), flying=st.booleans())
def test_left_and_right_are_alike(seed, name, flying):
    p = parameters(name)
    m = model(name)
    rng = np.random.default_rng(seed)
    x = random_state(p, rng, Flat, flying)
    wind = rng.normal(0, 3, 3)
    command = rng.uniform(0, p.max_rotor_speed, 6)

    dx = m.derivative(x, rotor_speed=command, steering=0.2, wind=wind)
    other = m.derivative(
        mirrored(p, x),
        rotor_speed=command[[1, 0, 5, 4, 3, 2]],
        steering=-0.2,
        wind=wind * (1, -1, 1),
    )
    assert mirrored(p, dx) == pytest.approx(other, rel=1e-9, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(SETS), turn=st.floats(-3.1, 3.1))
def test_place_and_heading_do_not_matter(seed, name, turn):
    p = parameters(name)
    m = model(name)
    rng = np.random.default_rng(seed)
    x = random_state(p, rng, Flat, seed % 2 == 0)
    wind = rng.normal(0, 3, 3)
    c = np.cos(turn)
    s = np.sin(turn)
    R = np.array(
        (
            (c, -s, 0),
            (s, c, 0),
            (0, 0, 1),
        )
    )
    ch = np.cos(turn / 2)
    sh = np.sin(turn / 2)

    def turned(x, shift):
        y = x.copy()
        y[:3] = R @ x[:3] + shift
        y[3:6] = R @ x[3:6]
        w, i, j, k = x[6:10]
        y[6:10] = ch * w - sh * k, ch * i - sh * j, ch * j + sh * i, ch * k + sh * w
        return y

    dx = m.derivative(x, rotor_speed=100.0, steering=0.1, wind=wind)
    other = m.derivative(
        turned(x, (7.0, -3.0, 0.0)), rotor_speed=100.0, steering=0.1, wind=R @ wind
    )
    assert turned(dx, 0.0) == pytest.approx(other, rel=1e-9, abs=1e-7)


def test_shapes_and_names():
    for name, rotors in (("full", 6), ("scale", 6), ("scale_quad", 4)):
        p = VehicleParameters.load(name)
        m = AmphibiousModel(p)
        x = m.standing().x
        assert x.shape == m.derivative(x).shape == (42 + rotors,)
        three = m.derivative(np.stack([x] * 3), rotor_speed=np.zeros(rotors))
        assert three.shape == (3, 42 + rotors)
        names = state_layout.state_names(rotors)
        assert len(set(names)) == 42 + rotors
        assert names[state_layout.ROTOR_SPEED] == "rotor_1_radps"
        assert names[-4] == "steering_trim_fl_rad"


def test_wrong_arguments_are_named():
    m = model("full")
    state = m.standing()
    with pytest.raises(ValueError, match=r"x: expected shape \(48,\)"):
        m.derivative(np.zeros(47))
    with pytest.raises(ValueError, match="rotor_speed: expected shape"):
        m.derivative(state.x, rotor_speed=np.zeros(4))
    with pytest.raises(ValueError, match="steering is nan"):
        m.derivative(state.x, steering=np.nan)
    with pytest.raises(ConfigError, match="both given"):
        m.derivative(state.x, rotor_speed=1.0, rotor_torque=1.0)
    with pytest.raises(ConfigError, match="brake_torque"):
        Controls(brake_torque=-1.0)
    with pytest.raises(ConfigError, match=r"dt: 0\.02 s"):
        m.step(state, Controls(), 0.02)

    expected = "method: 'euler', expected one of rk4, semi_implicit_euler"
    with pytest.raises(ConfigError, match=expected):
        m.step(state, Controls(), method="euler")
    with pytest.raises(ConfigError, match="air_density"):
        AmphibiousModel(parameters("full"), air_density="thin")
    with pytest.raises(ConfigError, match="gust_sigma"):
        Wind(gust_sigma=(-1.0, 0.0, 0.0))


def test_a_state_that_is_no_number_is_named():
    m = model("full")
    state = m.standing()
    state.x[state_layout.STRUT + 1] = 1e300
    with pytest.raises(DynamicsError, match=r"state \w+ is .* at 0.001 s"):
        m.step(state, Controls())
    far = m.flying((2e6, 0.0, 10.0))
    batch = ModelState(np.stack([m.standing().x, far.x]), np.zeros((2, state_layout.MEMORY)))
    with pytest.raises(DynamicsError, match=r"vehicle 1: position_m .* more than 1000 km away"):
        m.step(batch, Controls())


def test_standing_on_a_gentle_slope_lies_in_its_plane(name):
    p = parameters(name)
    m = AmphibiousModel(p, plane(0.04, slope_y=-0.02))
    state = m.standing(3.0, 4.0, 1.0)
    out = m.outputs(state)
    normal = np.array((-0.04, 0.02, 1)) / np.sqrt(1.002)
    assert rotation(state.x)[:, 2] == pytest.approx(normal, abs=1e-6)
    assert out.tyre_compression == pytest.approx(p.static_load / p.tyre_stiffness, rel=1e-2)


def test_a_flying_wheel_forgets_its_tyre(name):
    m = model(name)
    begin = m.flying((0.0, 0.0, 10.0))
    begin.x[state_layout.TYRE_X : state_layout.TYRE_X + 8] = 0.01
    end = m.step(begin, Controls(rotor_speed=parameters(name).hover_speed))
    assert not end.x[state_layout.TYRE_X : state_layout.TYRE_X + 8].any()


def test_upside_down_it_lies_on_its_body_and_has_crashed(name):
    p = parameters(name)
    m = model(name)
    begin = m.standing()
    begin.x[2] = 1.5 * p.body_box[2]
    begin.x[6:10] = (0.0, 1.0, 0.0, 0.0)

    for method in ("rk4", "semi_implicit_euler"):
        controls = Controls(rotor_speed=0.0, drive_torque=p.max_drive_torque)
        end = m.run(begin, controls, 6.0, method=method).final
        assert end.crashed
        out = m.outputs(end)
        assert out.body_points_down >= 3
        assert not out.wheel_load.any()
        assert np.linalg.norm(end.velocity) < 0.05
        drive_torques = end.x[state_layout.ROTOR_SPEED + p.rotors + 1 :]
        assert np.abs(drive_torques).max() < 1e-6

    assert m.step(end, Controls()).crashed


def test_a_turning_rotor_in_the_ground_crashes_at_once(name):
    p = parameters(name)
    m = model(name)
    begin = m.flying((0.0, 0.0, 0.0))
    begin.x[6:10] = np.cos(0.6), np.sin(0.6), 0.0, 0.0
    begin.x[2] = 0.8 * p.rotor_arm[0] * np.sin(1.2)
    assert m.outputs(begin).body_points_down > 0
    assert m.step(begin, Controls(rotor_speed=p.hover_speed)).crashed

    slow = ModelState(begin.x.copy(), begin.memory.copy())
    slow.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] = 0.1 * p.max_rotor_speed
    assert not m.step(slow, Controls()).crashed


def test_gusts_have_their_statistics():
    wind = Wind(
        (5.0, 0.0, 0.0),
        (1.5, 1.0, 0.5),
        (2.0, 2.0, 1.0),
        seed=3,
    )
    m = model("full")
    state = m.flying((0.0, 0.0, 5000.0))
    batch = ModelState(np.repeat(state.x[None], 50, 0), np.zeros((50, state_layout.MEMORY)))
    gusts = []
    hover = Controls(rotor_speed=128.0)
    for _ in range(40):
        batch = m.step(batch, hover, 0.01, steps=100, wind=wind, method="semi_implicit_euler")
        gusts.append(batch.memory[:, state_layout.GUST : state_layout.GUST + 3])

    late = np.array(gusts)[5:]
    assert late.std(axis=(0, 1)) == pytest.approx((1.5, 1.0, 0.5), rel=0.1)
    assert np.abs(late.mean(axis=(0, 1))).max() < 0.3

    # from second to second, and from vehicle to vehicle
    one = np.corrcoef(late[1:, :, 0].ravel(), late[:-1, :, 0].ravel())[0, 1]
    assert one == pytest.approx(np.exp(-0.5), abs=0.08)
    across = np.corrcoef(late[:, 0, 0], late[:, 1, 0])[0, 1]
    assert abs(across) < 0.75


def test_wind_carries_a_hovering_vehicle_along(name):
    p = parameters(name)
    m = model(name)
    run = m.run(
        m.flying((0.0, 0.0, 50.0)),
        Controls(rotor_speed=p.hover_speed),
        0.3,
        wind=Wind((5.0, 0.0, 0.0)),
    )
    assert run.final.velocity[0] > 0.01
    assert abs(run.final.velocity[1]) < 1e-9


@pytest.mark.parametrize("rotors", [4, 6, 8])
def test_layouts_hover_and_turn(rotors):
    azimuth = tuple(np.pi / rotors + 2 * np.pi * k / rotors for k in range(rotors))
    p = parameters("scale").replace(
        rotor_azimuth=azimuth,
        rotor_arm=(0.75,) * rotors,
        rotor_spin=tuple((-1) ** k for k in range(rotors)),
    )
    m = AmphibiousModel(p, ground_effect=False)
    state = m.flying((0.0, 0.0, 9.0))

    assert state.x.size == 42 + rotors
    assert np.abs(m.derivative(state.x, rotor_speed=p.hover_speed)).max() < 1e-9

    faster = np.where(np.array(p.rotor_spin) < 0, 1.01, 0.99) * p.hover_speed
    assert m.step(state, Controls(rotor_speed=faster), steps=200).rates[2] > 0.005


def turn_rate(p, controls):
    m = AmphibiousModel(p)
    end = m.run(m.standing(speed=1.0), controls, 2.0).final
    return end.rates[2]


def test_steered_axles():
    """Turn left for a positive angle with front, rear and all wheels; all need half the radius."""
    p = parameters("scale")
    turn = Controls(steering=0.15, drive_torque=0.1)
    front = turn_rate(p, turn)
    rear = turn_rate(p.replace(steered="rear"), turn)
    both = turn_rate(p.replace(steered="all"), turn)
    assert front > 0.1
    assert rear == pytest.approx(front, rel=0.2)
    assert both == pytest.approx(2 * front, rel=0.2)


def test_skid_steer_turns_by_torque():
    p = parameters("scale").replace(steered="none", max_steering=0.0)
    m = AmphibiousModel(p)
    controls = Controls(steering=0.3, drive_torque=(-11.0, 11.0, -11.0, 11.0))
    end = m.run(m.standing(), controls, 2.0).final
    assert end.rates[2] > 0.3
    assert end.x[state_layout.ROTOR_SPEED + p.rotors] == 0.0
    assert np.linalg.norm(end.position[:2]) < 0.2


def test_only_driven_wheels_drive():
    p = parameters("scale").replace(driven=("rl", "rr"))
    m = AmphibiousModel(p)
    end = m.run(m.standing(), Controls(drive_torque=3.0), 0.5).final
    columns = state_layout.state_columns(p.rotors, 4)
    assert end.x[columns["drive_torque"]] == pytest.approx((0, 0, 3, 3), abs=1e-6)


def test_load_transfer_in_a_turn_goes_outward_and_brakes_press_the_front(name):
    p = parameters(name)
    m = model(name)
    speed = 10.0 if name == "full" else 4.0
    turned = m.run(m.standing(speed=speed), Controls(steering=0.04), 1.0)
    load = turned.outputs.wheel_load[-1]
    assert load[1] + load[3] > 1.05 * (load[0] + load[2])
    assert roll_pitch_yaw(turned.final.x)[0] > 0.0

    braked = m.run(m.standing(speed=speed), Controls(brake_torque=0.2 * p.max_brake_torque), 0.5)
    load = braked.outputs.wheel_load[-1]
    assert load[:2].sum() > 1.05 * p.static_load[:2].sum()
    assert roll_pitch_yaw(braked.final.x)[1] > 0.0


def test_off_the_map_is_reported():
    m = AmphibiousModel(parameters("scale"), plane(0.0, size=10.0))
    assert m.outputs(m.standing(0.0, 0.0)).wheels_off_map == 0
    assert m.outputs(m.standing(10.0, 0.0)).wheels_off_map == 2
