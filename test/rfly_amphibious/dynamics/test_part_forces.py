# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Forces of springs and dampers, slips of tyres and torques of rotors, by hand values."""

import math

import numpy as np
import pytest

from rfly_amphibious import AmphibiousModel, VehicleParameters
from rfly_amphibious.dynamics.model import Controls
from rfly_amphibious.vehicle import state_layout
from rfly_common.physics import GRAVITY

SCALE = VehicleParameters.load("scale")
MODEL = AmphibiousModel(SCALE)
COLUMNS = state_layout.state_columns(6, 4)


@pytest.mark.parametrize("name", ["scale", "full", "scale_six"])
def test_springs_of_a_standing_vehicle_carry_its_sprung_mass(name):
    p = VehicleParameters.load(name)
    model = AmphibiousModel(p)
    out = model.outputs(model.standing())
    assert out.spring_force.sum() == pytest.approx(p.mass_sprung * GRAVITY, rel=1e-12)
    assert out.wheel_load.sum() == pytest.approx(p.mass * GRAVITY, rel=1e-12)
    for still in (out.damper_force, out.slip_ratio, out.slip_angle, out.rotor_torque):
        assert not np.any(still)


def test_a_damper_pushes_by_its_rate_and_a_spring_by_its_travel():
    """Scale.yaml: 1500 N/m; 60 N s/m while it is compressed, 80 while it extends."""
    state = MODEL.flying((0.0, 0.0, 9.0))
    rest = MODEL.outputs(MODEL.standing()).spring_force
    state.x[COLUMNS["strut"]] = (0.01, -0.01, 0.02, 0.0)
    state.x[COLUMNS["strut_rate"]] = (0.5, -0.5, 0.0, 1.0)
    out = MODEL.outputs(state)
    assert out.spring_force - rest == pytest.approx((15.0, -15.0, 30.0, 0.0))
    assert out.damper_force == pytest.approx((30.0, -40.0, 0.0, 60.0))
    # within the end stops and without anti-roll bars there is nothing else
    assert out.strut_force == pytest.approx(out.spring_force + out.damper_force)


def test_slip_angles_of_a_steady_bend_are_those_of_the_single_track():
    """The axles share m v r by their levers; tyres answer in the linear range by p_K1 at the load.

    2 % are left for the load's transfer and for what the drive does to it.
    """
    run = MODEL.run(
        MODEL.standing(speed=3.0), Controls(steering=0.09, drive_torque=0.3), 3.0, sample_period=1.0
    )
    x = run.x[-1]
    out = run.outputs
    speed = float(np.hypot(x[3], x[4]))
    yaw_rate = float(x[state_layout.RATES + 2])
    side = 30.0 * speed * yaw_rate
    # at its load, K_y = λ p_K1 F_z0 sin(2 atan(F_z / (p_K2 F_z0))) for each tyre
    loads = out.wheel_load[-1]
    stiffness = 15.0 * 75.0 * np.sin(2.0 * np.arctan(loads / (2.0 * 75.0)))
    expected = (
        side * 0.34 / 0.66 / (0.85 * stiffness[:2].sum()),
        side * 0.32 / 0.66 / stiffness[2:].sum(),
    )
    measured = out.slip_angle[-1].reshape(2, 2).mean(axis=1)
    assert measured == pytest.approx(expected, rel=0.02)
    assert measured.min() > 0.01


def test_slip_ratio_of_a_driven_wheel_is_its_torque_over_its_stiffness():
    """0.6 N m of each wheel at 0.11 m, less its rolling resistance; κ = F_x / (14 F_z)."""
    run = MODEL.run(MODEL.standing(speed=4.0), Controls(drive_torque=0.6), 1.0)
    out = run.outputs
    spins = run.x[-1][COLUMNS["wheel_speed"]]
    radius = 0.11 - out.tyre_compression[-1] / 3.0  # R_e
    ratio = radius * spins / run.x[-1, 3] - 1.0
    assert out.slip_ratio[-1] == pytest.approx(ratio, abs=5e-5)
    assert out.slip_ratio[-1] == pytest.approx(
        out.tyre_force_x[-1] / (14.0 * out.wheel_load[-1]), rel=0.02
    )


def test_the_torque_of_a_rotor_in_hover_is_that_of_its_speed():
    """Q = c_Q ϖ² = T v_h / (M ϖ): 49.0 N each; v_h² = T / (2 ρ A)."""
    out = MODEL.outputs(MODEL.flying((0.0, 0.0, 50.0)), Controls(rotor_speed=SCALE.hover_speed))
    thrust = 30.0 * GRAVITY / 6.0
    inflow = math.sqrt(thrust / (2.0 * 1.225 * math.pi * 0.355**2))
    speed = math.sqrt(thrust / 0.00075)
    assert out.rotor_torque == pytest.approx([thrust * inflow / (0.65 * speed)] * 6, rel=1e-3)
    assert out.rotor_power == pytest.approx(out.rotor_torque.sum() * speed, rel=1e-3)


def test_the_torque_of_a_rotor_accelerates_it_too():
    """Commanded by torque, the shaft has that torque, whatever the air takes of it."""
    state = MODEL.flying((0.0, 0.0, 50.0))
    torques = (1.0, 2.0, 3.0, -1.0, 0.5, 6.0)
    assert MODEL.outputs(state, Controls(rotor_torque=torques)).rotor_torque == pytest.approx(
        torques
    )
