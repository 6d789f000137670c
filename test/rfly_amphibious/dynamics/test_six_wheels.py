# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Six wheels: what three axles carry, how they roll, turn and stop.

Expected values are from statics and textbook formulas.
"""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import energy, of_wheels, plane, rotation

from rfly_amphibious import AmphibiousModel, Controls, VehicleParameters
from rfly_amphibious.vehicle import state_layout
from rfly_terrain.world.solids import Solids

G = 9.80665
SIX = VehicleParameters.load("scale_six")
LEVEL = SIX.replace(front_axle=0.4, rear_axle=0.4, middle_axle=0.0)
"""Vehicle with its centre of mass above the middle axle."""
STILL_AIR = {
    "linear_drag": (0.0,) * 3,
    "drag_area": (0.0,) * 3,
    "rotational_drag": (0.0,) * 3,
}


def box(x, y, size):
    """Return a box on level ground."""
    corners = np.array([(a, b, c) for a in (-0.5, 0.5) for b in (-0.5, 0.5) for c in (0, 1)]) * size
    return Solids(corners + np.array((x, y, 0.0)), np.array([0, 8]))


def test_loads_of_three_axles_by_hand():
    """Axles at 1, -1 and 0 m with springs of 1, 2 and 3 parts.

    A body that sinks by a and leans by b presses them in by a + b, a - b, a. So 6 a - b = W/2 of
    each side and -a + 3 b = 0; then b = W/34, a = 3 W/34, and the springs carry 4, 4 and 9 W/34.
    """
    unit = 2000.0
    p = SIX.replace(
        front_axle=1.0,
        rear_axle=1.0,
        middle_axle=0.0,
        front_spring=unit,
        rear_spring=2.0 * unit,
        middle_spring=3.0 * unit,
    )
    weight = 28.8 * G
    expected = weight / 34.0 * np.array((4, 4, 4, 4, 9, 9))
    assert p.spring_load == pytest.approx(expected, rel=1e-12)
    assert p.static_load == pytest.approx(p.spring_load + 1.2 * G, rel=1e-12)

    m = AmphibiousModel(p)
    end = m.run(m.standing(), Controls(), 3.0).final
    assert m.outputs(end).wheel_load == pytest.approx(p.static_load, rel=1e-6)
    assert m.outputs(end).strut_force == pytest.approx(p.spring_load, rel=1e-6)


def test_at_rest_it_stays_at_rest():
    m = AmphibiousModel(SIX)
    begin = m.standing(3.0, -2.0, 0.7)
    assert np.abs(m.derivative(begin.x)).max() < 1e-11
    for method in ("rk4", "semi_implicit_euler"):
        end = m.run(begin, Controls(brake_torque=1.0), 5.0, method=method).final
        assert np.abs(end.x - begin.x).max() < 1e-9


def test_dropped_it_settles_at_the_same_loads():
    # rolling resistance would hold some of the tyres' stress along the vehicle
    m = AmphibiousModel(SIX.replace(rolling_resistance=0.0))
    begin = m.standing()
    begin.x[2] += 0.03
    end = m.run(begin, Controls(brake_torque=1.0), 6.0).final
    assert m.outputs(end).wheel_load == pytest.approx(SIX.static_load, rel=1e-3)
    assert m.outputs(end).wheel_load.sum() == pytest.approx(36.0 * G, rel=1e-4)
    assert end.x[of_wheels(SIX, "strut")] == pytest.approx(0.0, abs=1e-5)


def test_a_plate_under_the_middle_wheels_takes_load_from_the_others():
    """Spring and tyre act in series, and the body rises by a third of the plate.

    The middle loads change by 2/3 k h, the others by -1/3 k h each.
    """
    height = 0.012
    k = 1.0 / (1.0 / 1150.0 + 1.0 / 12000.0)
    m = AmphibiousModel(LEVEL, solids=box(0.0, 0.0, (0.3, 2.0, height)))
    end = m.run(m.standing(), Controls(brake_torque=5.0), 8.0).final
    change = m.outputs(end).wheel_load - LEVEL.static_load
    expected = k * height / 3.0 * np.array((-1, -1, -1, -1, 2, 2))
    assert change == pytest.approx(expected, rel=2e-3)
    assert end.x[2] - LEVEL.origin_height == pytest.approx(height / 3.0, rel=2e-3)


def test_a_middle_axle_that_bears_nothing_leaves_the_body_as_on_four_wheels():
    """Bounce: a strut passes the wheel's mass to the body only sideways, not vertically."""
    free = {"bump_damping": 0.0, "rebound_damping": 0.0, **STILL_AIR}
    six = LEVEL.replace(middle_spring=1e-6, **free)
    none = dict.fromkeys(
        ("middle_axle", "middle_spring", "middle_anti_roll", "cornering_factor_middle")
    )
    four = LEVEL.replace(driven=("fl", "fr", "rl", "rr"), **none, **free)

    heights = []
    for p in (six, four):
        m = AmphibiousModel(p)
        begin = m.standing()
        begin.x[2] += 0.01
        run = m.run(begin, Controls(), 2.0, sample_period=0.01)
        heights.append(run.x[:, 2])
    assert np.ptp(heights[1]) > 0.015
    assert heights[0] == pytest.approx(heights[1], abs=1e-9)


@pytest.mark.parametrize("steering", [0.0, 0.2])
def test_coasting_only_loses_energy(steering):
    """Roll, bounce and turn without motors; a carcass that springs back may return a little."""
    m = AmphibiousModel(SIX)
    begin = m.standing(speed=3.0)
    begin.x[of_wheels(SIX, "strut")] = (0.01, -0.005, 0.004, -0.01, 0.008, 0.0)
    begin.x[state_layout.ROTOR_SPEED + SIX.rotors] = steering

    run = m.run(begin, Controls(steering=steering), 4.0)
    left = np.array([energy(SIX, x) for x in (begin.x, *run.x)]) - energy(SIX, m.standing().x)
    assert left[0] > 170.0
    assert left[-1] < 0.75 * left[0]
    assert np.diff(left).max() < 2e-4 * left[0]


@pytest.mark.parametrize(("torque", "brake"), [(2.0, 0.0), (0.0, 1.5)])
@pytest.mark.parametrize("driven", [SIX.wheels, ("ml", "mr"), ("fl", "fr", "ml", "mr")])
def test_it_accelerates_as_force_over_apparent_mass(torque, brake, driven):
    """Compare with (M + Σ I_w/R²) v̇ = Σ T/R for 36 kg and six times 0.006 kg m².

    Brakes act on all wheels, motors on the driven ones.
    """
    p = LEVEL.replace(driven=driven, rolling_resistance=0.0, **STILL_AIR)
    m = AmphibiousModel(p)
    radius = 0.11 - (28.8 / 6.0 + 1.2) * G / 12000.0 / 3.0
    run = m.run(m.standing(speed=4.0), Controls(drive_torque=torque, brake_torque=brake), 1.0)

    settled = run.time > 0.5
    slope = np.polyfit(run.time[settled], run.x[settled, 3], 1)[0]
    force = (torque * len(driven) - brake * 6.0) / radius
    expected = force / (36.0 + 6.0 * 0.006 / radius**2)
    assert slope == pytest.approx(expected, rel=6e-3)


def slow_turn(p, steering, speed):
    """Return the curvature of the path in a steady slow turn, 1/m."""
    m = AmphibiousModel(p)
    begin = m.standing(speed=speed)
    begin.x[state_layout.ROTOR_SPEED + p.rotors] = steering

    def hold(state):
        forward = float(rotation(state.x)[:, 0] @ state.x[3:6])
        return Controls(steering=steering, drive_torque=20.0 * (speed - forward))

    end = m.run(begin, hold, 8.0).final
    return end.x[12] / np.hypot(end.x[3], end.x[4])


def test_a_slow_turn_of_two_axles_that_do_not_steer():
    """Two axles that do not steer resist the turn.

    It is as wide as that of an equivalent wheelbase (C. B. Winkler, Simplified analysis of the
    steady-state turning of complex vehicles, 1998): l + t²/l (1 + C_r/C_f), with l from the front
    axle to the middle between the two, t half their distance, C_r of both together.
    """
    p = LEVEL.replace(
        steered="front", cornering_factor_front=1.0, cornering_factor_rear=1.0, **STILL_AIR
    )
    p = p.replace(rolling_resistance=0.0)
    wide = 0.6 + 0.2**2 / 0.6 * (1.0 + 2.0)
    assert slow_turn(p, 0.05, 0.6) == pytest.approx(np.tan(0.05) / wide, rel=0.02)


def test_a_slow_turn_with_both_ends_steered_is_about_the_middle_axle():
    p = LEVEL.replace(rolling_resistance=0.0, **STILL_AIR)
    assert slow_turn(p, 0.1, 0.6) == pytest.approx(np.tan(0.1) / 0.4, rel=0.02)


def test_wheels_of_one_side_slower_turn_a_chassis_without_steering():
    """The tyres slide on the spot, and are alike along and across.

    At the yaw rate r treads of the speed v slide by v - r b/2 along and by r x across, and the
    moments of their friction balance.
    """
    curves = {
        "shape_x": 1.01,
        "shape_y": 1.01,
        "curvature_x": 0.0,
        "curvature_y": 0.0,
    }  # flat beyond the peak
    alike = {"friction_y": 0.95, "friction_load_loss": 0.0, **curves}
    p = LEVEL.replace(
        steered="none", max_steering=0.0, max_drive_torque=60.0, max_drive_power=1e5, **alike
    )
    p = p.replace(
        cornering_stiffness_per_rad=17.5, cornering_factor_front=1.0, cornering_factor_rear=1.0
    )

    m = AmphibiousModel(p)
    sides = np.array((-1.0, 1.0, -1.0, 1.0, -1.0, 1.0))
    spin = 12.0
    turning = of_wheels(p, "wheel_speed")

    def hold(state):
        return Controls(drive_torque=1.5 * (spin * sides - state.x[turning]))

    run = m.run(m.standing(), hold, 4.0, control_period=0.001)

    # the yaw rate at which the moments balance, by bisection
    treads = p.rolling_radius * np.abs(run.x[-200:, turning]).mean(axis=0)
    half = 0.56 / 2.0
    x = np.repeat((0.4, -0.4, 0.0), 2)
    low = 0.0
    high = 5.0
    for _ in range(60):
        rate = 0.5 * (low + high)
        along = treads - rate * half
        moment = ((along * half - rate * x**2) / np.hypot(along, rate * x)).sum()
        if moment > 0.0:
            low = rate
        else:
            high = rate
    assert run.x[-200:, 12].mean() == pytest.approx(rate, rel=0.01)
    assert rate < 0.6 * treads.mean() / half, "far slower than wheels that do not slide"
    assert np.hypot(run.x[-1, 0], run.x[-1, 1]) < 0.05


def test_it_stands_on_a_slope_and_drives_up_a_kerb():
    m = AmphibiousModel(SIX, plane(0.2))
    end = m.run(m.standing(), Controls(brake_torque=12.0), 4.0).final
    assert np.linalg.norm(end.velocity) < 1e-6

    over = AmphibiousModel(SIX, solids=box(3.0, 0.0, (2.0, 4.0, 0.05)))
    run = over.run(over.standing(speed=1.0), Controls(drive_torque=3.0), 4.0)
    assert not run.final.crashed
    assert run.x[:, 0].max() > 4.5
    assert run.x[np.abs(run.x[:, 0] - 3.0) < 0.4, 2].mean() == pytest.approx(0.27, abs=0.01)


def test_in_free_fall_only_gravity_moves_it_and_hanging_struts_are_at_rest():
    p = SIX.replace(**STILL_AIR)
    m = AmphibiousModel(p, ground_effect=False)
    begin = m.flying((0.0, 0.0, 50.0))
    begin.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] = 0.0
    begin.x[of_wheels(p, "strut")] = p.free_strut
    dx = m.derivative(begin.x)
    assert dx[3:6] == pytest.approx((0.0, 0.0, -G), abs=1e-10)
    assert dx[of_wheels(p, "strut_rate")] == pytest.approx(0.0, abs=1e-9)

    hover = m.flying((0.0, 0.0, 50.0))
    end = m.step(hover, Controls(rotor_speed=p.hover_speed), steps=1000)
    assert np.abs(end.velocity).max() < 1e-6


def test_a_pressed_through_middle_tyre_is_named_and_all_six_brakes_act():
    weak = SIX.replace(max_tyre_compression=0.09)
    m = AmphibiousModel(weak, solids=box(0.0, 0.5, (0.3, 1.0, 0.03)))
    broken = m.run(m.standing(), Controls(), 1.0).final
    assert broken.crash_cause == "tyre ml was pressed through"

    whole = AmphibiousModel(SIX)
    now = whole.step(whole.standing(speed=1.0), Controls(brake_torque=1.0), steps=50)
    assert now.brake_torque_acting.shape == (6,)
    assert (now.brake_torque_acting < 0.0).all()


def test_controls_of_the_wrong_number_are_refused():
    m = AmphibiousModel(SIX)
    with pytest.raises(ValueError, match=r"drive_torque: expected shape \(6,\)"):
        m.step(m.standing(), Controls(drive_torque=np.ones(4)))
