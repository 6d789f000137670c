# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors that contradict the others: who is outvoted, refused, corrected and believed again."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from marks import exhaustively
from recorded_drives import (
    ALIGNED,
    FLAT,
    PARAMETERS,
    SENSORS,
    SHORT_DRIVE,
    errors,
    new_estimator,
)
from scipy.stats import chi2

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation import consistency, speed_consistency
from rfly_autonomy.estimation.consistency import correct_climb, predict_climb
from rfly_autonomy.estimation.error_state import ERRORS, POSITION
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import constants_of
from rfly_autonomy.estimation.filter_records import (
    BOOK,
    GPS_VELOCITY,
    MAGNETOMETER,
    STATE,
    WHEEL_SPEED,
)
from rfly_autonomy.estimation.stuck_readings import StuckSensors


def from_above(ticks, height, change):
    """Yield ticks; from a true height of the centre of mass on, samples are changed."""
    above = False
    for tick, truth in ticks:
        above = above or truth[2] > height
        yield (change(tick) if above else tick), truth


@pytest.mark.parametrize(
    ("sensor", "ticks", "texts"),
    [
        ("imu", 12, {"imu": "comes late by 0.05 s"}),
        ("joints", 75, {"encoders": "come late by 0.30 s"}),
        ("gps", 0, {}),
    ],
)
def test_a_sensor_that_comes_late_against_the_others_is_named(flown, hop, sensor, ticks, texts):
    """Some ticks of 4 ms late for nearly three seconds; the readings keep their stamps."""
    estimator = new_estimator(hop)
    waiting = []
    for tick, _ in flown[:700]:
        waiting.append(getattr(tick, sensor))
        due = waiting.pop(0) if len(waiting) > ticks else None
        estimator.update(dataclasses.replace(tick, ground_truth=None, **{sensor: due}))
    assert estimator.initialised
    assert estimator.faults == texts


@pytest.mark.exhaustive
def test_a_gyroscope_that_gets_a_bias_is_outvoted_and_corrected(hop, flown):
    step = np.array((0.0, 0.2, 0.0))

    def biased(tick):
        return dataclasses.replace(tick, imu=tick.imu._replace(rates=tick.imu.rates + step))

    estimator = new_estimator(hop)
    found, covariances = errors(from_above(flown, 1.0, biased), estimator)
    assert estimator.faults == {"imu": "has a biased gyroscope: corrected"}
    assert estimator.gyro_bias == pytest.approx(step, abs=0.02)
    assert np.degrees(np.abs(found[-1, 7:10]).max()) < 1.5
    squares = np.einsum(
        "ki,kij,kj->k", found[:, 1:4], np.linalg.inv(covariances[:, :3, :3]), found[:, 1:4]
    )
    assert np.percentile(squares, 95) < 50.0


def test_an_imu_that_is_far_too_noisy_is_trusted_less_and_no_other_part_named(hop):
    """Its declared noise would make the filter sure of a walk of 10 m/s² / √250 Hz · √t = 0.6 √t.

    A precise GPS of 1 Hz was said not to fit.
    """
    draw = np.random.default_rng(5).standard_normal
    gps = dataclasses.replace(SensorParameters.load("scale_rtk").gps, rate=1.0)
    precise = SENSORS.replace(gps=gps)
    ticks = list(hop.samples(SensorSuite(hop.model, precise, seed=1)))

    def noisy(tick):
        force = tick.imu.specific_force
        force = force + 10.0 * draw(force.shape)
        return dataclasses.replace(tick, imu=tick.imu._replace(specific_force=force))

    estimator = new_estimator(hop, sensors=precise, terrain=None)
    named = set()
    found = []
    for tick, truth in from_above(ticks, 1.0, noisy):
        estimate = estimator.update(dataclasses.replace(tick, ground_truth=None))
        if estimate is not None:
            named |= estimator.faults.keys()
            error = truth[:3] - estimate.position
            found.append(error @ np.linalg.solve(estimate.covariance[:3, :3], error))
    assert named == {"imu"}
    assert np.percentile(found, 95) < 50.0


def test_an_obstructed_height_sensor_is_outvoted(hop, flown):
    """It reads about 0.5 m from then on, with its usual noise."""
    draw = np.random.default_rng(2).standard_normal

    def obstructed(tick):
        if tick.height is None:
            return tick
        distance = 0.5 + 0.02 * draw(len(tick.height.time))
        return dataclasses.replace(tick, height=tick.height._replace(distance=distance))

    estimator = new_estimator(hop, terrain=None)
    found, covariances = errors(from_above(flown, 0.7, obstructed), estimator)
    assert "height" in estimator.faults
    assert np.percentile(found[:, 3] ** 2 / covariances[:, 2, 2], 95) < 20.0


def test_encoders_that_are_left_out_stay_so_until_most_readings_fit(hop):
    """Wheels may slip for a minute; 0.5 of misfits is too much for encoders that are left out."""
    estimator = new_estimator(hop)
    book = estimator._filter.book[0]

    def left_out(time, share):
        """Return whether encoders are left out with a share of misfits at a time, s."""
        book["time"] = book["last_measured"][WHEEL_SPEED] = time
        book["misfits"][WHEEL_SPEED] = share
        return "encoders" in estimator._outvoted_parts()

    assert not left_out(0.0, 0.0)
    assert not left_out(59.9, 0.9), "they slip"
    assert left_out(60.1, 0.9)
    assert left_out(60.2, 0.5)
    assert left_out(60.3, 0.9)
    assert not left_out(60.4, 0.2)
    assert not left_out(60.5, 0.9)


def test_without_the_imu_no_sensor_is_outvoted(hop, monkeypatch):
    """Nor within 2 s after it comes back, while the misfits fade; one that was stays left out."""
    estimator = new_estimator(hop)
    book = estimator._filter.book[0]

    def outvoted(time, share, coasts):
        """Return who is outvoted with a share of misfits of the magnetometer at a time, s."""
        monkeypatch.setattr(StateEstimator, "coasting", coasts)
        book["time"] = book["last_measured"][MAGNETOMETER] = time
        book["misfits"][MAGNETOMETER] = share
        return estimator._outvoted_parts()

    assert not outvoted(1.0, 0.9, True)
    assert not outvoted(2.9, 0.9, False)
    assert outvoted(3.1, 0.9, False) == {"magnetometer"}
    assert outvoted(4.0, 0.1, True) == {"magnetometer"}
    assert not outvoted(6.1, 0.1, False)


def with_pressure(ticks, begin, change):
    """Yield ticks; from a time on, `change(seconds since then)`, Pa, is added to the pressure."""
    for tick, truth in ticks:
        read = tick.barometer
        if read is not None:
            added = [change(time - begin) if time >= begin else 0.0 for time in read.time.tolist()]
            read = read._replace(pressure=read.pressure + added)
        yield dataclasses.replace(tick, barometer=read), truth


def vertical_errors(ticks, estimator, begin):
    """Return the errors of the altitude after a time in standard deviations, (ticks,)."""
    found, covariances = errors(ticks, estimator)
    after = found[:, 0] > begin
    return np.abs(found[after, 3]) / np.sqrt(covariances[after, 2, 2])


STEP = {"barometer": "has a bias since a step: corrected"}


@pytest.mark.parametrize(
    ("step", "begin", "faults"),
    [
        (-25.0, 2.5, STEP),
        *(
            exhaustively(step, begin, faults)
            for begin in (2.5, 5.0)
            for step, faults in (
                (10.0, None),
                (-10.0, None),
                (15.0, STEP),
                (-15.0, STEP),
                (25.0, STEP),
                (40.0, STEP),
                (-40.0, STEP),
                (60.0, STEP),
            )
        ),
    ],
)
def test_a_step_of_the_pressure_moves_the_altitude_no_further_than_it_says(
    flown, hop, step, begin, faults
):
    """Without a map, in a drive and in a flight that lands; 25 Pa moved it by 1.9 m at 0.05 m."""
    estimator = new_estimator(hop, terrain=None)
    off = vertical_errors(with_pressure(flown, begin, lambda _: step), estimator, begin)
    assert np.percentile(off, 95) < 4.0
    if faults is not None:
        assert estimator.faults == faults


def test_a_pressure_that_drifts_as_in_a_storm_is_no_fault(flown, hop):
    """1 Pa/s is the front of a thunderstorm; the bias follows it."""
    estimator = new_estimator(hop, terrain=None)
    named = []

    def drifting():
        for tick, truth in with_pressure(flown, 2.5, lambda since: since):
            yield tick, truth
            named.append(estimator.faults)

    off = vertical_errors(drifting(), estimator, 2.5)
    assert not any(named)
    assert np.percentile(off, 95) < 5.0


def test_without_a_gps_a_drifting_pressure_moves_the_altitude_no_further_than_it_says(flown, hop):
    """The map's ground holds the altitude, if the barometer's bias may follow the weather."""
    estimator = new_estimator(hop)

    def blind():
        for tick, truth in with_pressure(flown, 2.5, lambda since: since):
            yield dataclasses.replace(tick, gps=tick.gps if truth[2] < 0.5 else None), truth

    assert np.percentile(vertical_errors(blind(), estimator, 2.5), 95) < 3.0


def test_the_small_filter_of_the_climb_is_a_kalman_filter():
    """The same in matrices: x = F x + B u, P = F P Fᵀ + Q, K = P Hᵀ / S, P - K S Kᵀ."""
    book = np.zeros(1, BOOK)[0]
    book.free_altitude = 3.0
    book.free_climb = 0.4
    book.free_p = 2.0, 0.3, 0.5
    predict_climb.py_func(book, 0.1, 0.7, 0.02)
    correct_climb.py_func(book, 0.6, 0.4, False)
    correct_climb.py_func(book, -0.2, 0.1, True)
    correct_climb.py_func(book, 9.0, 0.1, True)  # too far off to be used

    transition = np.array(((1.0, 0.1), (0.0, 1.0)))
    mean = transition @ (3.0, 0.4) + np.array((0.005, 0.1)) * 0.7
    spread = transition @ np.array(((2.0, 0.3), (0.3, 0.5))) @ transition.T
    spread[1, 1] += 0.02 + 0.1**2 * 0.1
    for row, residual, variance in (((1.0, 0.0), 0.6, 0.4), ((0.0, 1.0), -0.2, 0.1)):
        gain = spread @ row / (np.dot(row, spread @ row) + variance)
        mean = mean + gain * residual
        spread = spread - np.outer(gain, row @ spread)
    assert (book.free_altitude, book.free_climb) == pytest.approx(mean)
    assert book.free_p == pytest.approx(spread[[0, 0, 1], [0, 1, 1]])


@pytest.fixture
def _interpreted(monkeypatch):
    """Run the kernels as Python, as those without an array of records can't be called from it."""
    for module in (consistency, speed_consistency):
        for name, value in vars(module).copy().items():
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)


@pytest.mark.parametrize("rate", [1.0, 2.0])
@pytest.mark.parametrize(
    ("innovations", "refused", "anew"),
    [((3.0,), 0.0, False), ((3.0, -3.0), 1.0, False), ((0.7, 1.4, 2.1), 0.0, True)],
    ids=["outlier", "noise", "wrong force"],
)
@pytest.mark.usefixtures("_interpreted")
def test_one_reading_of_a_slow_gps_velocity_proves_nothing(rate, innovations, refused, anew):
    """One with noise of 3 m/s was believed each time, and the vehicle flew away."""
    sensors = SENSORS.replace(gps=dataclasses.replace(SENSORS.gps, rate=rate))
    constants = constants_of(PARAMETERS, sensors, VehicleParameters.load("scale"), 0.0, True)
    x = np.zeros(1, STATE)[0]
    book = np.zeros(1, BOOK)[0]
    book.realigned_at = -np.inf
    book.time = 100.0
    book.last_measured[GPS_VELOCITY] = book.last_accepted[GPS_VELOCITY] = 100.0
    covariance = 0.01 * np.eye(ERRORS)
    for speed in innovations:
        book.time += 1.0 / rate
        innovation = np.array((speed, 0.0, 0.0))
        consistency.average_velocity(book, innovation, constants)
        weight = consistency.count_misfit(book, GPS_VELOCITY, True, constants)
        consistency.reacquire_velocity(x, book, covariance, innovation, weight, constants)
    assert book.gps_velocity_refused == refused
    assert (book.realigned_at > 100.0) == anew

    # the first one may have moved it by the half of that speed all the time
    assert covariance[POSITION, POSITION] >= 0.01 + (0.5 / rate * innovations[0]) ** 2


@pytest.mark.usefixtures("_interpreted")
def test_one_outlier_moves_no_position_further_than_a_wrong_imu_does():
    """10 m/s² for 0.1 s are 1 m/s, and 0.05 m at their half; each metre more would land it."""
    constants = constants_of(PARAMETERS, SENSORS, VehicleParameters.load("scale"), 0.0, True)
    x = np.zeros(1, STATE)[0]
    book = np.zeros(1, BOOK)[0]
    book.last_accepted[GPS_VELOCITY] = 100.0
    book.time = 100.1
    covariance = np.zeros((ERRORS, ERRORS))
    outlier = np.array((1000.0, 0.0, -0.1))
    consistency.reacquire_velocity(x, book, covariance, outlier, 0.1, constants)
    sigma = np.sqrt(np.diag(covariance))[POSITION : POSITION + 3]
    assert sigma == pytest.approx((0.05, 0.0, 0.005))


@pytest.mark.usefixtures("_interpreted")
def test_a_second_error_of_the_imu_is_not_taken_for_noise_of_the_gps():
    """Innovations of 0.5 s to the east led to new motion; those to the west are another error."""
    vehicle = VehicleParameters.load("scale")
    constants = constants_of(PARAMETERS, SENSORS, vehicle, 0.0, True)
    x = np.zeros(1, STATE)[0]
    book = np.zeros(1, BOOK)[0]
    book.time = book.last_measured[GPS_VELOCITY] = 100.0
    covariance = 0.01 * np.eye(ERRORS)
    for innovation in (np.array((1.0, 0.0, 0.0)), np.array((-1.0, 0.0, 0.0))):
        for _ in range(5):
            book.time += 0.1
            assert book.realigned_at < book.time - 0.05
            consistency.average_velocity(book, innovation, constants)
            weight = consistency.count_misfit(book, GPS_VELOCITY, True, constants)
            consistency.reacquire_velocity(x, book, covariance, innovation, weight, constants)
        assert book.realigned_at == pytest.approx(book.time)
    assert book.gps_velocity_refused == 0.0


@pytest.mark.parametrize(("rejected_for", "anew"), [(2.0, True), (20.0, False)])
@pytest.mark.usefixtures("_interpreted")
def test_a_magnetometer_that_has_been_wrong_for_long_votes_no_more(rejected_for, anew):
    """At touch-down one GPS velocity did not fit, and the IMU was named."""
    constants = constants_of(PARAMETERS, SENSORS, VehicleParameters.load("scale"), 0.0, True)
    x = np.zeros(1, STATE)[0]
    book = np.zeros(1, BOOK)[0]
    book.time = 100.0
    book.last_measured[:] = book.doubted_since[:] = 99.9
    book.doubted_since[MAGNETOMETER] = 100.0 - rejected_for
    book.misfits[MAGNETOMETER] = 1.0
    book.misfits[GPS_VELOCITY] = 0.45
    consistency.vote_on_attitude(x, book, np.eye(ERRORS), constants)
    assert (book.realigned_at == 100.0) == anew


def test_a_sensor_that_loses_readings_is_named_for_what_is_worse(hop):
    estimator = new_estimator(hop)
    estimator._alignment = None
    estimator._times.lossy = {"height"}
    book = estimator._filter.book[0]
    book["realigned_at"] = -10.0
    texts = []
    for refused in (0.0, 1.0, 0.0):
        book["height_refused"] = refused
        texts.append(estimator.faults["height"])
    loses = "loses many of its readings"
    assert texts == [loses, "contradicts the climb: left out", loses]


def test_an_imu_that_is_shaken_is_not_called_noisy(hop, flown, monkeypatch):
    """A step jolts the struts; 2 s later they explain no noise."""
    monkeypatch.setattr(StuckSensors, "noisy", {"imu"})
    estimator = new_estimator(hop)
    noisy = {"imu": "is far noisier than it should be"}
    faults = {}
    for k, (read, _) in enumerate(flown[:1020]):
        tick = read
        joints = tick.joints
        if joints is not None:
            rate = 0.0 * joints.strut_rate
            if 500 <= k <= 502:
                rate[-1, 0] = -0.2
            tick = dataclasses.replace(tick, joints=joints._replace(strut_rate=rate))
        estimator.update(tick)
        faults[k] = estimator.faults

    assert faults[499] == noisy
    assert faults[503] == faults[990] == {}
    assert faults[1010] == noisy


@pytest.mark.parametrize(("clock", "noise"), [(0.0, 0.03), (1000.0, 0.0)])
def test_struts_that_are_noisy_or_of_another_clock_hide_no_noisy_imu(
    hop, flown, monkeypatch, clock, noise
):
    """The limit is 0.1 m/s and 5 σ of 0.03 m/s; readings 1,000 s ahead hide it for 2 s only."""
    monkeypatch.setattr(StuckSensors, "noisy", {"imu"})
    encoders = dataclasses.replace(SENSORS.encoders, strut_rate_noise=noise)
    estimator = new_estimator(hop, sensors=dataclasses.replace(SENSORS, encoders=encoders))
    for k, (read, _) in enumerate(flown[:1020]):
        tick = read
        joints = tick.joints
        if joints is not None:
            shakes = noise > 0.0 or 500 <= k <= 502
            rate = 0.0 * joints.strut_rate + 0.2 * shakes
            late = joints.time + clock * (500 <= k <= 502)
            tick = dataclasses.replace(tick, joints=joints._replace(strut_rate=rate, time=late))
        estimator.update(tick)

    assert estimator.faults["imu"] == "is far noisier than it should be"


def spoofed(ticks, begin, end=math.inf, north=30.0):
    """Return the ticks, with a GPS that is metres off to the north for a while."""
    moved = np.array((north / 111_319.0, 0.0, 0.0))
    for tick, truth in ticks:
        if tick.gps is not None and begin < float(tick.imu.time[-1]) <= end:
            yield (
                dataclasses.replace(
                    tick, gps=tick.gps._replace(geodetic=tick.gps.geodetic + moved)
                ),
                truth,
            )
        else:
            yield tick, truth


def sigma_north(estimator):
    return math.sqrt(estimator.covariance[1, 1])


def test_a_gps_that_jumps_is_refused_until_it_fits_again(turn):
    """The GPS is 30 m off from 1.8 s, and right again from 4 s.

    It is never believed, the error grows as without it, and then it is used again.
    """
    estimator = new_estimator(turn)
    refused = []
    certain = math.inf
    for tick, truth in spoofed(turn.samples(SensorSuite(turn.model, SENSORS, seed=3)), 1.8, 3.8):
        estimator.update(tick)
        time = float(tick.imu.time[-1])
        if estimator.initialised:
            assert np.linalg.norm(estimator.estimate.position[:2] - truth[:2]) < 4.0
        if 2.5 < time < 3.8:
            assert estimator.gps_refused
            assert estimator.gps_off == pytest.approx(30.0, abs=5.0)
            assert sigma_north(estimator) >= min(certain, 1.0)
        certain = sigma_north(estimator) if estimator.initialised else math.inf
        refused.append(estimator.gps_refused)

    assert np.flatnonzero(np.diff(refused)).size == 2, "refused once, and used again"
    assert not estimator.gps_refused
    assert estimator.gps_resets == 0


def test_a_gps_that_insists_is_taken_over_after_the_time_of_the_parameter(turn):
    """The position of a GPS that stays elsewhere is taken over in the end, and counted.

    It is no more certain than the receiver's drift.
    """
    estimator = new_estimator(turn, gps_reset=1.5)
    most = 0.0
    for tick, truth in spoofed(
        turn.samples(SensorSuite(turn.model, SENSORS, seed=2)), 2.0, north=50.0
    ):
        estimator.update(tick)
        if estimator.initialised and estimator.gps_resets == 0:
            most = max(most, np.linalg.norm(estimator.estimate.position[:2] - truth[:2]))

    assert most < 6.0
    assert (estimator.gps_resets, estimator.gps_refused) == (1, False)
    assert 40.0 < estimator.estimate.position[1] - truth[1] < 60.0
    assert sigma_north(estimator) > 1.4


def test_wheels_that_skid_tell_no_speed():
    """Locked wheels that slide at 3 m/s do not turn, and must not stop the estimate.

    Without other sensors for a second, the estimator knows its speed no longer.
    """
    model = AmphibiousModel(Scenario.parse(SHORT_DRIVE.encode(), "s.yaml").params, FLAT)
    suite = SensorSuite(model, SENSORS, seed=4)
    state = model.standing()
    estimator = StateEstimator(PARAMETERS, SENSORS, model.params, suite.geo_origin, FLAT)
    locked = Controls(brake_torque=model.params.max_brake_torque)
    worst = 0.0
    slid = 0
    for tick in range(1100):
        time = tick * 0.004
        controls = Controls(drive_torque=(2.0,) * 4) if ALIGNED <= time < 3.5 else locked
        state, read = suite.advance(state, controls, 0.004, method="semi_implicit_euler")
        blind = {"imu": None} if 2.5 < time < 3.5 else {}
        blind |= dict.fromkeys(("joints", "wheel_loads") if 2.5 < time < 3.6 else ())
        estimator.update(dataclasses.replace(read, gps=read.gps if time < 2.5 else None, **blind))
        if time > 3.6 and np.linalg.norm(state.velocity) > 0.5:
            slid += 1
            error = estimator.estimate.velocity - state.velocity
            worst = max(
                worst, error @ np.linalg.solve(estimator.estimate.covariance[3:6, 3:6], error)
            )

    assert slid > 20
    assert worst < chi2.ppf(0.9999, 3)
    assert np.linalg.norm(estimator.estimate.velocity - state.velocity) < 0.4, (
        "and it is known again once it has stopped"
    )
