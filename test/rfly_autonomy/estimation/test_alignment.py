# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The alignment while the GPS is silent: work a tick, and a start without it."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation import alignment
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters

TICK = 0.004
SECOND = 250
"""Ticks."""
FIRST_FIX = 4 * SECOND
HELD = Controls(brake_torque=(15.0,) * 4)
FORWARD = Controls(drive_torque=(3.0,) * 4)
SENSORS = SensorParameters.load("scale")
VEHICLE = VehicleParameters.load("scale")
PARAMETERS = EstimatorParameters.load("scale")


def ticks_of(controls):
    """Return samples and true states of a vehicle that begins at rest, tick by tick."""
    model = AmphibiousModel(VEHICLE)
    suite = SensorSuite(model, SENSORS, seed=4)
    state = model.standing()
    rows = []
    for control in controls:
        state, samples = suite.advance(state, control, TICK, method="semi_implicit_euler")
        rows.append((dataclasses.replace(samples, ground_truth=None), state))
    return rows


@pytest.fixture(scope="module")
def standing():
    return [tick for tick, _ in ticks_of([HELD] * 5 * SECOND)]


def silenced(tick):
    return dataclasses.replace(tick, gps=None)


def new_estimator(**changes):
    return StateEstimator(PARAMETERS.replace(**changes), SENSORS, VEHICLE)


def lines(work):
    """Return the number of lines of the alignment's module that a call carries out.

    A loop within one line counts each time. What it calls in C has no loop over readings but a
    search by halves.
    """
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename != alignment.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_a_tick_costs_the_same_however_long_the_gps_is_awaited(standing):
    estimator = new_estimator()

    def wait(first):
        for tick in standing[first : first + SECOND]:
            estimator.update(silenced(tick))

    counts = [lines(lambda first=first: wait(first)) for first in range(0, 1250, SECOND)]

    assert not estimator.initialised
    assert counts[0] > 100
    assert counts[2:] == pytest.approx([counts[1]] * 3, rel=0.01)


def test_a_long_wait_begins_as_a_short_one(standing):
    """Only readings of the last second, and fixes as late as the GPS, are of any use."""
    patient = new_estimator()
    for tick in standing[:FIRST_FIX]:
        patient.update(silenced(tick))
    newcomer = new_estimator()
    for tick in standing[FIRST_FIX - 2 * SECOND : FIRST_FIX]:
        newcomer.update(silenced(tick))

    for tick in standing[FIRST_FIX:]:
        first = patient.update(tick)
        second = newcomer.update(tick)
        assert (first is None) == (second is None)

    assert np.array_equal(first.position, second.position)
    assert np.array_equal(first.orientation, second.orientation)
    assert np.array_equal(patient.covariance, newcomer.covariance)


@pytest.mark.parametrize(("wait", "begins"), [(0.0, None), (0.5, 1.0), (2.5, 2.5)])
def test_without_gps_it_begins_after_the_time_of_the_parameter(standing, wait, begins):
    """An alignment takes one second in any case; the position is that of the world's origin."""
    estimator = new_estimator(align_without_gps=wait)
    estimates = [estimator.update(silenced(tick)) for tick in standing[: 3 * SECOND]]
    known = [estimate for estimate in estimates if estimate is not None]

    if begins is None:
        assert not known
        assert estimator.waits_for == "gps"
        return
    first = known[0]
    # the first sample comes at 0 or one tick later
    assert first.time == pytest.approx(begins, abs=2 * TICK)
    assert np.abs(first.position[:2]).max() < 0.1
    assert np.sqrt(np.diag(first.covariance)[:2]) == pytest.approx([1.0, 1.0], rel=0.05)
    assert np.abs(first.velocity).max() < 0.05


def test_a_vehicle_without_gps_drives_by_wheels_and_imu_and_not_before_it_has_stood():
    """It begins in the middle of its drive's only stop, and then knows how far it comes."""
    moving = SECOND * 3 // 2
    stopped = SECOND * 3
    controls = [FORWARD] * moving + [HELD] * stopped + [FORWARD] * 2 * SECOND
    estimator = new_estimator(align_without_gps=0.5)
    begun = None
    for tick, truth in ticks_of(controls):
        estimate = estimator.update(silenced(tick))
        if begun is None and estimate is not None:
            begun = estimate, truth

    first, place = begun
    assert place.time > moving * TICK + 1.0
    assert np.linalg.norm(place.velocity) < 0.05
    way = np.linalg.norm(truth.position[:2] - place.position[:2])
    assert way > 2.0
    assert np.linalg.norm(estimate.position[:2] - first.position[:2]) == pytest.approx(
        way, rel=0.03
    )


def test_thousands_of_readings_ahead_of_the_imu_do_not_stop_it(standing):
    """Samples within ten seconds are used in their time; those of another clock are left out."""
    estimator = new_estimator()
    heights = next(tick.height for tick in standing if tick.height is not None)
    for time in (*np.linspace(4.0, 9.0, 3000), *np.linspace(1e6, 2e6, 3000)):
        estimator.height(heights._replace(time=np.array([time])))
    for tick in standing[: 3 * SECOND // 2]:
        estimator.update(tick)

    assert estimator.initialised
    assert estimator.estimate.position[2] == pytest.approx(0.0, abs=1.0)
