# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Force and turning of a vehicle by the speeds of its rotors."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.rotor_motion import EncoderLeaps, RotorModel
from rfly_common.physics import GRAVITY

PARAMS = VehicleParameters.load("scale")
HOVER = np.full(6, PARAMS.hover_speed)


def motions(speeds, seconds, rates=None, load=0.0):
    """Return the motions of rotors at constant speeds, with rates at a time of a gyroscope."""
    model = RotorModel(PARAMS)
    for k in range(round(seconds / 0.01)):
        time = 0.01 * k
        if rates is not None:
            model.sense_rates(rates(time))
        model.sense_loads(time, load)
        model.sense(time, speeds)
    return list(model.since(-1.0, 10.0))


def test_a_hover_carries_the_weight_and_does_not_turn():
    last = motions(HOVER, 0.5)[-1]
    assert last.force == pytest.approx(GRAVITY, rel=1e-9)
    assert last.turn == pytest.approx(np.zeros(3), abs=1e-9)
    assert last.duration == pytest.approx(0.01)


def test_faster_rotors_on_the_left_roll_it_to_the_right():
    """Each rotor on the left gives 10 % more thrust: Σ y ΔT / J_xx about x."""
    left = PARAMS.rotor_position[:, 1] > 0.01
    speeds = HOVER * np.where(left, np.sqrt(1.1), 1.0)
    each = PARAMS.mass * GRAVITY / 6.0
    moment = 0.1 * each * PARAMS.rotor_position[left, 1].sum()
    last = motions(speeds, 0.5)[-1]
    assert last.turn[0] == pytest.approx(moment / PARAMS.total_inertia[0, 0], rel=1e-3)


def test_what_the_rotors_do_not_explain_is_learned_from_the_gyroscope():
    """Rates that grow by 0.4 rad/s² by the wind, seen with a bias; it takes some 0.5 s."""
    growing = lambda time: np.array((0.02, 0.4 * time - 0.1, 0.0))  # noqa: E731
    last = motions(HOVER, 4.0, growing)[-1]
    assert last.turn == pytest.approx((0.0, 0.4, 0.0), abs=0.01)


@pytest.mark.parametrize(
    "delivers",
    [lambda k: k % 4 == 0, lambda k: not 300 <= k < 350, lambda k: k < 300 or k % 30 == 0],
    ids=["slow", "silent once", "slow at last"],
)
def test_a_gyroscope_that_delivers_now_and_then_teaches_no_wrong_motion(delivers):
    """The rates grow by 0.4 rad/s². As if they came each 10 ms, they seemed to by up to 2.5."""
    model = RotorModel(PARAMS)
    for k in range(400):
        if delivers(k):
            model.sense_rates(np.array((0.0, 0.004 * k, 0.0)))
        model.sense(0.01 * k, HOVER)
    late = list(model.since(3.0, 10.0))
    assert len(late) == 99
    for motion in late:
        assert motion.turn == pytest.approx((0.0, 0.4, 0.0), abs=0.01)


def test_rates_of_a_gyroscope_that_was_stuck_are_forgotten():
    """Five readings of 0.5 rad/s seem to be 1 rad/s², as 0.5 s are averaged; nothing turned."""
    model = RotorModel(PARAMS)
    for k in range(105):
        model.sense_rates(np.array((0.5 if k >= 100 else 0.0, 0.0, 0.0)))
        model.sense(0.01 * k, HOVER)
    assert list(model.since(-1.0, 10.0))[-1].turn[0] > 0.8

    model.forget_rates(0.99)
    model.sense(1.05, HOVER)
    for motion in model.since(0.0, 10.0):
        assert motion.turn == pytest.approx(np.zeros(3), abs=1e-9)


@pytest.mark.parametrize(
    ("speeds", "load"), [(HOVER, 100.0), (0.5 * HOVER, 0.0)], ids=["on the ground", "too weak"]
)
def test_on_the_ground_the_rotors_show_no_motion(speeds, load):
    assert motions(speeds, 0.5, load=load) == []


def shown(rotor_3):
    """Return the believed speeds of rotor 3 by its readings, rad/s, at 100 Hz."""
    leaps = EncoderLeaps(PARAMS)
    believed = []
    for speed in rotor_3:
        speeds = np.append(np.full(5, 300.0), speed)
        believed.append(leaps.believed(speeds, 0.01))
        assert believed[-1][:5] == pytest.approx(300.0)
    return [float(speeds[5]) for speeds in believed]


@pytest.mark.parametrize("leap", [50.0, -50.0, -300.0, 20.0])
def test_a_leap_of_an_encoder_is_taken_off(leap):
    """A rotor takes some ten readings for such a change, by its lag of 0.06 s."""
    sound = [300.0, 301.0, 299.0, 302.0, 304.0, 303.0]
    assert shown([*sound[:3], *(speed + leap for speed in sound[3:])]) == pytest.approx(
        [300.0, 301.0, 299.0, 299.0, 301.0, 300.0]
    )
    lies = [speed + leap for speed in sound]
    # what the rotor does between two readings with a leap, 3 rad/s at most, stays
    assert shown([*sound, *3 * lies, *sound])[-1] == pytest.approx(303.0, abs=6.1)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_rotor_that_fails_is_believed(share):
    """The speed decays by its lag of 0.06 s, from a reading on that is up to 10 ms late."""
    for late in (0.0, 0.002, 0.007):
        times = np.arange(40) * 0.01 + late
        speeds = 300.0 * (share + (1.0 - share) * np.exp(-times / PARAMS.rotor_lag))
        believed = shown([300.0, 300.0, *speeds])
        assert believed[4:] == pytest.approx(speeds[2:])


def test_a_single_wrong_reading_and_noise_leave_no_trace():
    assert shown([300.0, 300.0, 380.0, 300.0, 301.0]) == [300.0, 300.0, 300.0, 300.0, 301.0]
    noise = 25.0 * np.random.default_rng(1).standard_normal(400)
    believed = shown(300.0 + noise)
    assert believed[100:] == pytest.approx(300.0 + noise[100:])


def test_a_leap_does_not_turn_the_vehicle():
    model = RotorModel(PARAMS)
    for k in range(60):
        leap = 50.0 * (k >= 30) * (np.arange(6) == 2)
        model.sense(0.01 * k, HOVER + leap)
    for motion in model.since(0.0, 1.0):
        assert motion.turn == pytest.approx(np.zeros(3), abs=1e-9)
        assert motion.force == pytest.approx(GRAVITY)
