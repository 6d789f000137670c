# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Force and turning of a vehicle by the speeds of its rotors."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.rotor_motion import RotorModel
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
    ("speeds", "load"), [(HOVER, 100.0), (0.5 * HOVER, 0.0)], ids=["on the ground", "too weak"]
)
def test_on_the_ground_the_rotors_show_no_motion(speeds, load):
    assert motions(speeds, 0.5, load=load) == []
