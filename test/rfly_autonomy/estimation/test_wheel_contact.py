# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Load cells, struts and wheels: who repeats itself or contradicts the others is at fault."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.sensors.samples import JointSamples, SensorSamples, WheelLoadSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.wheel_contact import FlightLoads, LoadWatch, TurnWatch, WheelContact
from rfly_common.physics import GRAVITY

PARAMS = VehicleParameters.load("scale")
STANDS = PARAMS.static_load.tolist()
AT_REST = [0.0] * 4
HANGS = [-0.05] * 4


def watched(rows):
    """Return the watch after rows of loads and travels, 100 a second, and when who was stuck."""
    watch = LoadWatch(PARAMS)
    found = {}
    for k, (loads, struts) in enumerate(rows):
        time = 0.01 * k
        for sensor, values in (("wheel_loads", loads), ("encoders", struts)):
            if watch.update(sensor, time, list(values)):
                found.setdefault(sensor, time)
    return watch, found


@pytest.mark.parametrize(
    ("stuck", "after"),
    [("wheel_loads", (STANDS, HANGS)), ("encoders", ([0.0] * 4, AT_REST))],
)
def test_who_stays_while_the_other_changes_is_stuck_after_0_3_s(stuck, after):
    watch, found = watched([(STANDS, AT_REST)] * 100 + [after] * 100)
    assert found == {stuck: pytest.approx(1.3, abs=0.015)}
    assert watch.since(stuck) == pytest.approx(1.0, abs=0.015)


def test_it_stays_stuck_when_the_other_comes_back_and_is_sound_after_a_change():
    lifted = [(STANDS, AT_REST)] * 100 + [(STANDS, HANGS)] * 100 + [(STANDS, AT_REST)] * 100
    watch, _ = watched(lifted)
    assert watch.is_stuck("wheel_loads")
    assert not watch.update("wheel_loads", 3.0, [70.0] * 4)
    assert not watch.is_stuck("wheel_loads")


@pytest.mark.parametrize(
    "rows",
    [
        [(STANDS, AT_REST)] * 300,
        [([0.0] * 4, HANGS)] * 300,
        [(STANDS, [1e-6 * k] * 4) for k in range(300)],
        [(STANDS, HANGS if k % 50 < 25 else AT_REST) for k in range(300)],
        [([0.0] * 4, AT_REST if k < 10 else HANGS) for k in range(300)],
    ],
    ids=["stands", "flies", "settles", "bounces shortly", "is thrown up"],
)
def test_equal_readings_alone_are_no_fault(rows):
    assert watched(rows)[1] == {}


@pytest.mark.parametrize(
    ("rate", "moves_on", "found"),
    [(27.0, False, 0.31), (27.0, True, None), (0.0, False, None)],
    ids=["stuck", "rolls", "stands"],
)
def test_angles_that_rest_while_their_rates_turn_are_stuck_after_0_3_s(rate, moves_on, found):
    watch = TurnWatch()
    stuck = []
    for k in range(60):
        angle = rate * 0.01 * k if moves_on else 5.0
        if watch.update(0.01 * k, [angle] * 4, [rate] * 4):
            stuck.append(0.01 * k)
    assert (stuck[0] if stuck else None) == (found and pytest.approx(found, abs=0.011))


@pytest.mark.parametrize(
    ("bias", "factor", "turn"),
    [(0.0, 1.0, True), (5.0, 1.0, False), (0.0, 1.2, False), (-1.5, 1.0, False)],
    ids=["spins", "biased", "scaled", "slow"],
)
def test_wheels_that_spin_turn_as_their_rates_say_and_biased_rates_do_not(bias, factor, turn):
    """A wheel that spins up to 60 rad/s and back, twice a second; angles have 2048 counts."""
    watch = TurnWatch()
    count = 2.0 * math.pi / 2048.0
    seen = []
    for k in range(200):
        time = 0.01 * k
        rate = 30.0 - 30.0 * math.cos(4.0 * math.pi * time)
        angle = 30.0 * time - 30.0 * math.sin(4.0 * math.pi * time) / (4.0 * math.pi)
        angle = math.remainder(count * round(angle / count), 2.0 * math.pi)
        watch.update(time, [angle, 0.0], [factor * rate + bias, 0.0])
        seen.append(watch.turn)
    assert all(seen) if turn else not any(seen[100:])


@pytest.mark.parametrize("counts", [True, False])
def test_rates_of_counts_are_means_since_the_last_reading(counts):
    """A wheel gains 250 rad/s each second, so a mean is 1.25 rad/s behind; for rates, too."""
    watch = TurnWatch(counts)
    for k in range(100):
        time = 0.01 * k
        watch.update(time, [math.remainder(125.0 * time**2, math.tau)], [250.0 * (time - 0.005)])
        if k > 60:
            assert watch.turn is counts


@pytest.mark.parametrize(("error", "turn"), [(0.0, True), (5.0, False)])
def test_a_wheel_that_makes_more_than_half_a_turn_between_readings_turns_as_it_says(error, turn):
    """400 rad/s are 4 rad in 0.01 s, so its angle alone could also have gone back by 2.3 rad."""
    watch = TurnWatch()
    for k in range(100):
        watch.update(0.01 * k, [math.remainder(4.0 * k, math.tau)], [400.0 + error])
    assert watch.turn is turn


@pytest.mark.parametrize("odd", [math.nan, math.inf])
@pytest.mark.parametrize("is_angle", [True, False])
def test_a_reading_that_is_no_number_is_not_averaged(odd, is_angle):
    """A wheel spins at 10 rad/s; one of its angles or rates is odd."""
    watch = TurnWatch()
    for k in range(200):
        wheel = [0.1 * k, 10.0]
        if k == 20:
            wheel[0 if is_angle else 1] = odd
        watch.update(0.01 * k, [wheel[0], 0.0], [wheel[1], 0.0])
    assert watch.turn


LIFT = GRAVITY
"""Thrust of a hover as a specific force, m/s²."""


def hover(k):
    """Return speeds of rotors that differ from reading to reading, rad/s."""
    return np.full(6, 400.0 + 0.01 * (k % 2))


@pytest.mark.parametrize(
    ("load", "strut", "force", "lies"),
    [
        ([50.0] * 4, HANGS, LIFT, True),
        ([0.0, 0.0, -40.0, 0.0], HANGS, LIFT, True),
        ([5.0] * 4, HANGS, LIFT, False),
        (STANDS, AT_REST, LIFT, False),
        (STANDS, HANGS, 2.0 * LIFT, False),
    ],
    ids=["biased", "one wheel", "little", "struts agree", "force agrees"],
)
def test_load_in_flight_is_outvoted_by_struts_and_accelerometer(load, strut, force, lies):
    """Averaged over 1 s, lies for a share of 0.3 take 1 s · -ln 0.7 = 0.357 s."""
    watch = FlightLoads(PARAMS)
    since = []
    for k in range(100):
        watch.witness(0.01 * k, np.array(strut), hover(k), force, LIFT)
        if watch.update(0.01 * k, load):
            since.append(0.01 * k)
    assert watch.lies is lies
    if lies:
        assert since[0] == pytest.approx(0.357, abs=0.02)
        assert watch.update(1.0, STANDS), "on the ground the last judgement stands"


@pytest.mark.parametrize(("stuck", "lies"), [(True, False), (False, True)])
def test_encoders_stuck_since_a_flight_are_no_witness_against_load_on_the_ground(stuck, lies):
    """On the ground the accelerometer measures 1 g, as in the hover that the encoders show.

    The vehicle bounces, so that the load cells do not contradict the encoders for 0.3 s. The struts
    alone may repeat themselves where they hang, with sound encoders, too: 0.8 of the readings with
    load for 0.6 s are a share of 0.8 · (1 - exp -0.6) = 0.36, more than 0.3.
    """
    contact = WheelContact(PARAMS)
    rows = np.zeros((1, 4))
    found = False
    for k in range(160):
        time = np.array([0.01 * k])
        stands = k >= 100 and k % 5 < 4
        strut = np.array([HANGS]) + 1e-5 * (k % 2 if k < 100 else 0)
        rotors = hover(0 if k >= 100 and stuck else k)[np.newaxis]
        joints = JointSamples(time, rows, rows, rows, strut, rows, rotors, rotors)
        load = WheelLoadSamples(time, rows + (50.0 if stands else 0.0))
        contact.sense(SensorSamples(joints=joints, wheel_loads=load))
        contact.witness(LIFT, LIFT)
        found = found or contact.measured(0.01 * k) is None
    assert found is lies


@pytest.mark.parametrize(("every", "found"), [(2, 0.916), (5, None)])
def test_a_noisy_cell_shows_load_in_some_of_its_readings(every, found):
    """A share of 1/2 takes 1 s · -ln(1 - 0.3/0.5) = 0.916 s; one of 1/5 is never as much."""
    watch = FlightLoads(PARAMS)
    seen = []
    for k in range(300):
        watch.witness(0.01 * k, np.array(HANGS), hover(k), LIFT, LIFT)
        shows = 40.0 if k % every == 0 else 0.0
        if watch.update(0.01 * k, [0.0, 0.0, shows, 0.0]):
            seen.append(0.01 * k)
    assert (seen[0] if seen else None) == (found and pytest.approx(found, abs=0.03))


def test_load_cells_that_show_load_in_flight_are_left_out_of_the_contact():
    """The struts show the loads then, and in flight there are none."""
    contact = WheelContact(PARAMS)
    rows = np.zeros((1, 4))
    for k in range(60):
        time = np.array([0.01 * k])
        strut = np.array([HANGS]) + 1e-5 * (k % 2)
        rotors = np.zeros((1, 6))
        joints = JointSamples(time, rows, rows, rows, strut, rows, rotors, rotors)
        contact.sense(SensorSamples(joints=joints, wheel_loads=WheelLoadSamples(time, rows + 50.0)))
        contact.witness(LIFT, LIFT)
    assert contact.measured(0.59) is None
    assert contact.loads(0.59).tolist() == [0.0] * 4
