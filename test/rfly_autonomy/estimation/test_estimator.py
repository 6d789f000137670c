# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The state estimator on the readings of the real sensors, against the simulation's truth."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from marks import exhaustively
from node_harness import PATIENCE
from oracles.plain_python import ENVIRONMENT
from recorded_drives import (
    ALIGNED,
    FLAT,
    SENSORS,
    Drive,
    errors,
    new_estimator,
)
from scipy.stats import chi2

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.noise import NoiseModel
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_autonomy.estimation.error_state import ERRORS, FORCE_BIAS, GYRO_BIAS, POSITION
from rfly_autonomy.estimation.estimator_parameters import (
    EstimatorParameters,
    chi_square,
    shipped_estimator_sets,
)
from rfly_autonomy.estimation.filter_records import BOOK, STATE
from rfly_autonomy.estimation.measurement_models import (
    expect_field,
    expect_gps_position,
    expect_height,
    expect_pressure,
    expect_velocity,
    expect_wheels,
)
from rfly_autonomy.estimation.measurement_update import bend_ground, inject_error, update
from rfly_common.errors import ConfigError
from rfly_common.frames import rotation_matrix
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import ObjectBoxes


@pytest.mark.exhaustive
def test_a_landing_is_known_well_enough_to_be_gentle(hop, flown):
    """A drive, a flight in wind and a landing with the noise of the shipped set."""
    found, _ = errors(flown, new_estimator(hop))
    assert len(found) > 3000
    assert (
        np.abs(found[:, 3]).max() < 0.1
    )  # level ground, which is known: this is height above ground
    assert np.abs(found[:, 6]).max() < 0.1
    assert np.abs(found[:, 4:6]).max() < 0.2
    assert np.degrees(np.abs(found[:, 7:9]).max()) < 0.5
    assert np.degrees(np.abs(found[:, 9]).max()) < 2.0
    assert np.linalg.norm(found[:, 1:3], axis=1).max() < 3.0 * 1.5 * np.sqrt(2.0)


def test_jacobians_are_the_derivatives(hop):
    """Jacobians are compared with central differences over each of the 27 errors."""
    estimator = new_estimator(hop)
    c = estimator._constants
    ground = estimator._ground._replace(heights=np.arange(9, dtype=np.float32) ** 1.5)
    generator = np.random.default_rng(5)
    states = np.zeros(1, STATE)
    states.view(np.float64)[:] = generator.normal(0.0, 0.3, 28)
    x = states[0]
    x.position = 20.0, -30.0, 40.0
    x.velocity = 3.0, -2.0, 0.7
    x.quaternion = x.quaternion / np.linalg.norm(x.quaternion)
    book = np.zeros(1, BOOK)[0]
    book.rates = 0.4, -0.3, 0.8
    book.force = 1.0, 2.0, 9.0

    lever = np.array((0.4, -0.2, 0.6))
    steering = np.array((0.3, 0.25, 0.0, 0.0))
    rolls = np.array((1.0, 0.0, 1.0, 1.0))
    still = c._replace(
        wheel_delay=0.0, slip_gain=0.0, side_gain=0.0
    )  # with them the force is used, whose errors are left out
    cases = {
        "gps_position": (3, lambda x, _, *out: expect_gps_position(x, lever, *out)),
        "velocity": (3, lambda x, book, *out: expect_velocity(x, book, lever, *out)),
        "field": (3, lambda x, _, *out: expect_field(x, c.field * 1e6, *out)),
        "pressure": (1, lambda x, _, *out: expect_pressure(x, lever, 400.0, *out)),
        "height": (1, lambda x, _, *out: expect_height(x, ground, lever, 1e-3, 1e-3, *out)),
        "wheels": (2, lambda x, book, *out: expect_wheels(x, book, steering, rolls, still, *out)),
    }

    def reading_after(expect, m, n, step):
        """Return the expected reading (m,) after a step of error n."""
        error = np.zeros(ERRORS)
        error[n] = step
        moved = x.copy()
        moved_book = book.copy()
        inject_error(moved, moved_book, error)
        reading = np.empty(m)
        expect(moved, moved_book, np.zeros((m, ERRORS)), reading)
        return reading

    for name, (m, expect) in cases.items():
        h = np.zeros((m, ERRORS))
        expect(x, book, h, np.empty(m))
        for n in range(ERRORS):
            change = reading_after(expect, m, n, 1e-4) - reading_after(expect, m, n, -1e-4)
            assert np.allclose(h[:, n], change / 2e-4, rtol=1e-5, atol=1e-5), (name, n)


def test_errors_are_as_large_as_it_says(turn):
    """Squared errors and innovations are within the 99.9 % interval of their chi-square."""
    seeds = 6
    total = 0.0
    moving = 0.0
    innovations = {}
    for seed in range(100, 100 + seeds):
        estimator = new_estimator(turn)
        found, covariances = errors(
            turn.samples(SensorSuite(turn.model, SENSORS, seed=seed)), estimator
        )
        error = found[-1, 1:]
        covariance = covariances[-1]
        total += error @ np.linalg.solve(covariance, error)
        moving += error[3:] @ np.linalg.solve(covariance[3:, 3:], error[3:])
        for name, mean in estimator.mean_innovation.items():
            innovations.setdefault(name, []).append((mean, estimator.accepted[name]))
        assert (
            sum(
                estimator.rejected[name]
                for name in ("gps_position", "gps_velocity", "magnetometer", "barometer")
            )
            <= 1
        )

    assert chi2.ppf(0.0005, 9 * seeds) < total < chi2.ppf(0.9995, 9 * seeds)
    assert chi2.ppf(0.0005, 6 * seeds) < moving < chi2.ppf(0.9995, 6 * seeds)

    for name, m in (
        ("gps_position", 3),
        ("gps_velocity", 3),
        ("magnetometer", 3),
        ("barometer", 1),
    ):
        numbers = m * sum(count for _, count in innovations[name])
        squares = m * sum(mean * count for mean, count in innovations[name])
        assert chi2.ppf(0.0005, numbers) < squares < chi2.ppf(0.9995, numbers), name


@pytest.mark.exhaustive
def test_without_noise_it_follows_the_truth(hop):
    found, _ = errors(hop.samples(SensorSuite(hop.model, SENSORS, noise=False)), new_estimator(hop))
    assert np.abs(found[:, 1:3]).max() < 0.25
    assert np.abs(found[:, 3]).max() < 0.04
    assert np.abs(found[:, 4:7]).max() < 0.1
    assert np.degrees(np.abs(found[:, 7:9]).max()) < 0.35
    assert np.degrees(np.abs(found[:, 9]).max()) < 0.5


def sharp_gps():
    """Return sensors with a GPS without drift, so that only latency can cause a lag."""
    place = NoiseModel(3, white_sigma=0.05)
    noise = NoiseModel.joined([place, NoiseModel(3, white_sigma=0.1)])
    return SENSORS.replace(
        gps=dataclasses.replace(SENSORS.gps, noise=noise), encoders=None, wheel_loads=None
    )


@pytest.mark.parametrize("ignored", [False, True])
def test_a_late_gps_does_not_make_the_estimate_lag(turn, ignored):
    """An unknown latency of 0.1 s shows as 0.3 m along the track at 3 m/s.

    The IMU makes it less.
    """
    sensors = sharp_gps()
    estimator = new_estimator(turn, sensors=sensors)
    suite = SensorSuite(turn.model, sensors, noise=False)
    behind = []
    for tick, truth in turn.samples(suite):
        if ignored and tick.gps is not None:
            late_gps = tick.gps._replace(time=tick.gps.time + 0.1)
            tick = dataclasses.replace(tick, gps=late_gps)  # noqa: PLW2901
        estimate = estimator.update(tick)
        speed = np.linalg.norm(truth[3:5])
        if estimate is not None and speed > 2.5:
            behind.append((truth[:2] - estimate.position[:2]) @ truth[3:5] / speed)

    assert len(behind) > 200

    if ignored:
        assert np.mean(behind) > 0.15
    else:
        assert np.abs(behind).max() < 0.03


def test_the_order_of_arrival_changes_nothing(turn):
    """Readings of all sensors but the IMU are shuffled within 0.3 s.

    Once all have arrived, the estimate is the same bit by bit.
    """
    generator = np.random.default_rng(3)
    ticks = [tick for tick, _ in turn.samples(SensorSuite(turn.model, SENSORS, seed=7))][:900]
    first = new_estimator(turn)
    second = new_estimator(turn)
    waiting = []
    for k, tick in enumerate(ticks):
        first.update(tick)
        if first.initialised and second.initialised:
            for kind in ("joints", "wheel_loads", "magnetometer", "barometer", "height", "gps"):
                if getattr(tick, kind) is not None:
                    waiting.append((k + generator.integers(0, 75), kind, getattr(tick, kind)))
            for due in [item for item in waiting if item[0] <= k]:
                getattr(second, due[1])(due[2])
                waiting.remove(due)
            second.imu(tick.imu)
            assert second.estimate is not None
        else:
            second.update(tick)
    for _, kind, samples in waiting:
        getattr(second, kind)(samples)

    assert sum(second.late[kind] for kind in second.late if kind != "gps") == 0
    assert np.array_equal(first.covariance, second.covariance)
    assert all(np.array_equal(a, b) for a, b in zip(first.estimate, second.estimate, strict=True))


def test_a_height_over_bent_ground_allows_for_where_the_vehicle_may_be() -> None:
    """Mean and variance over a bowl are compared with 200,000 places of a normal distribution."""
    u = np.arange(401) * 0.1 - 20.0
    bowl = HeightMap(
        (0.02 * u[:, None] ** 2 + 0.01 * u[None, :] ** 2 + 0.1 * u[:, None]).astype(np.float32),
        origin_x=-20.0, origin_y=-20.0, step_x=0.1, step_y=0.1,
    )  # fmt: skip
    x = np.zeros(1, STATE)[0]
    x.quaternion[0] = 1.0
    x.position = 1.5, -2.0, 6.0
    h = np.zeros((1, ERRORS))
    out = np.empty(1)
    bent = expect_height(x, bowl.ground, np.zeros(3), 2.0, 1.5, h, out)
    places = np.random.default_rng(5).normal(
        (1.5, -2.0),
        (2.0, 1.5),
        (200_000, 2),
    )
    height = 6.0 - np.asarray(bowl.altitude(places[:, 0], places[:, 1]))

    assert out[0] == pytest.approx(height.mean(), abs=5e-3)

    about_plane = height - height.mean() - (places - (1.5, -2.0)) @ h[0, POSITION : POSITION + 2]
    assert bent == pytest.approx(about_plane.var(), rel=0.05)


def test_bent_ground_is_no_surer_for_being_measured_often() -> None:
    """The altitude of a vehicle that hovers over a bump stays uncertain by the bump's height.

    Its position is uncertain by 2 m.
    """
    u = np.arange(201) * 0.2 - 20.0
    bump = HeightMap(
        np.exp(-(u[:, None] ** 2 + u[None, :] ** 2) / 8.0).astype(np.float32),
        origin_x=-20.0, origin_y=-20.0, step_x=0.2, step_y=0.2,
    )  # fmt: skip
    x = np.zeros(1, STATE)[0]
    x.quaternion[0] = 1.0
    x.position[2] = 5.0
    book = np.zeros(1, BOOK)[0]
    p = np.diag(np.full(ERRORS, 1e-8))
    p[POSITION, POSITION] = 4.0
    p[POSITION + 1, POSITION + 1] = 4.0
    p[POSITION + 2, POSITION + 2] = 25.0
    h = np.zeros((1, ERRORS))
    residual = np.empty(1)
    for _ in range(500):  # 10 s
        bent = expect_height(x, bump.ground, np.zeros(3), 2.0, 2.0, h, residual)
        bend_ground(book, p, bent)
        residual[0] = 4.4 - residual[0]
        update(x, book, p, h, residual, np.full(1, 0.02**2), np.inf, True)

    assert bent > 0.1
    assert np.sqrt(p[POSITION + 2, POSITION + 2]) == pytest.approx(np.sqrt(bent), rel=0.05)


@pytest.mark.parametrize(
    "sensor",
    ["imu", "gps", "magnetometer", "barometer", "joints", "wheel_loads", "height"],
    ids=lambda name: name,
)
def test_any_one_sensor_may_fall_silent(hop, flown, sensor):
    """The error of a four-second flight stays within the covariance, which grows with it."""
    all_heard = 11.6
    begin = 12.0
    end = 16.0
    over = 17.0
    estimator = new_estimator(hop)
    at_worst = 0.0
    leaning = 0.0
    before = 0.0
    during = 0.0
    truths = {}
    for tick, _ in flown[: round(all_heard / 0.004)]:
        estimator.update(tick)
    for tick, truth in flown[round(all_heard / 0.004) : round(over / 0.004)]:
        time = float(tick.imu.time[-1])
        truths[round(time * 1e3)] = truth
        silent = {sensor: None} if begin <= time < end else {}
        estimate = estimator.update(dataclasses.replace(tick, ground_truth=None, **silent))
        sigma = np.sqrt(np.diag(estimate.covariance))
        assert np.isfinite(sigma).all()
        if begin <= time < end:
            assert time - estimate.time < 0.15
            there = truths.get(round(estimate.time * 1e3))
            if there is None:  # at a reading of the encoders between two ticks
                continue
            error = np.concatenate([there[:3] - estimate.position, there[3:6] - estimate.velocity])
            at_worst = max(at_worst, float(np.abs(error / sigma[:6]).max()))
            upright = (
                rotation_matrix(there[[7, 8, 9, 6]])[2] - rotation_matrix(estimate.orientation)[2]
            )
            leaning = max(leaning, float(np.abs(upright[:2]).max()))
            during = float(sigma[3:6].sum())
        elif time < begin:
            before = float(sigma[3:6].sum())

    assert at_worst < 5.0
    assert leaning < 0.1, "also without an IMU the tilt is known, by rotors and magnetometer"

    if sensor in ("imu", "gps"):
        assert during > 1.05 * before
    assert estimator.estimate.time == time


def test_biases_are_found(turn):
    """The estimator knows only the size of the turn-on biases of a cheap IMU."""
    channels = {"turn_on_bias": np.array([0.1] * 3 + [0.01] * 3 + [0.0] * 3)}
    noise = SENSORS.imu.noise
    given = {field.name: getattr(noise, field.name) for field in dataclasses.fields(noise)}
    cheap = SENSORS.replace(
        imu=dataclasses.replace(SENSORS.imu, noise=NoiseModel(**{**given, **channels}))
    )
    suite = SensorSuite(turn.model, cheap, seed=21)
    estimator = new_estimator(turn, sensors=cheap)
    errors(turn.samples(suite), estimator)
    true = suite._sources["imu"].bias

    assert np.linalg.norm(true[3:6]) > 0.005
    assert np.abs(estimator.gyro_bias - true[3:6]).max() < 1e-3
    assert abs(estimator.force_bias[2] - true[2]) < 0.05

    sigma = np.sqrt(np.diag(estimator.covariance))
    wrong = np.concatenate([estimator.gyro_bias - true[3:6], estimator.force_bias - true[:3]])
    assert (np.abs(wrong) < 4.0 * sigma[GYRO_BIAS : FORCE_BIAS + 3]).all()


def test_the_truth_is_not_looked_at(turn):
    """The result is the same without the truth, and with a wrong one."""
    suite = SensorSuite(turn.model, SENSORS, seed=2)
    with_none = new_estimator(turn)
    with_wrong = new_estimator(turn)
    for tick, _ in turn.samples(suite):
        wrong = (
            None
            if tick.ground_truth is None
            else tick.ground_truth._replace(position=np.full((1, 3), 1e3))
        )
        a = with_none.update(
            dataclasses.replace(tick, ground_truth=None, wind=None, wheel_odometry=None)
        )
        b = with_wrong.update(dataclasses.replace(tick, ground_truth=wrong))
        assert (a is None) == (b is None)

    assert all(np.array_equal(one, other) for one, other in zip(a, b, strict=True))


@pytest.mark.parametrize("gps", [True, exhaustively(False)])
@pytest.mark.exhaustive
def test_positions_are_as_uncertain_as_it_says(hop, gps):
    """Nine of ten errors of a drive, a flight in wind and a touch-down are within their bound.

    The bound is that of 95 % of normalised errors squared.
    """
    inside = []
    for seed in (11, 12, 13):
        estimator = new_estimator(hop)
        for k, (tick, truth) in enumerate(hop.samples(SensorSuite(hop.model, SENSORS, seed=seed))):
            kept = {"gps": tick.gps if gps or k < 500 else None, "ground_truth": None}
            for kind in (
                "wheel_loads",
                "joints",
                "gps",
                "magnetometer",
                "barometer",
                "height",
                "imu",
            ):
                read = kept.get(kind, getattr(tick, kind))
                if read is not None:
                    getattr(estimator, kind)(read)
            if k % 25 == 0 and (now := estimator.estimate) is not None:
                error = truth[:3] - now.position
                inside.append(
                    error @ np.linalg.solve(now.covariance[:3, :3], error) < chi2.ppf(0.95, 3)
                )

    assert len(inside) > 300
    assert np.mean(inside) >= 0.9


OVER_A_HOUSE = """version: 1
vehicle: scale
method: semi_implicit_euler
mission:
  fly_speed_mps: 3
  items:
    - {mode: takeoff, height_m: 4}
    - {mode: waypoint, position_m: [16, 0]}
end: {when: mission_done, time_s: 20}
"""
HOUSE = ObjectBoxes([(8.0, 0.0, 1.0)], [(5.0, 3.0, 1.0)])
"""A house 10 m along the way, more than 3 s long; its roof is 2 m above the ground."""


@pytest.fixture(scope="module")
def over_a_house():
    return Drive.of(Scenario.parse(OVER_A_HOUSE.encode(), "s.yaml"), FLAT, HOUSE)


@pytest.mark.parametrize("carried", [exhaustively(FLAT, id="map"), pytest.param(None, id="no map")])
def test_a_roof_is_no_loss_of_height(over_a_house, carried):
    """The step at the edges of a roof is the ground's, not the vehicle's.

    There is no GPS, and the map has no house.
    """
    suite = SensorSuite(over_a_house.model, SENSORS, seed=21)
    estimator = new_estimator(over_a_house, carried)
    above = []
    nees = []
    for k, (tick, truth) in enumerate(over_a_house.samples(suite)):
        now = estimator.update(
            dataclasses.replace(tick, ground_truth=None, gps=tick.gps if k < 500 else None)
        )
        if tick.height is not None and abs(truth[0] - 8.0) < 4.8 and truth[2] > 3.0:
            above.append(truth[2] - 0.08 - tick.height.distance[-1])
        if now is not None:
            error = truth[2] - now.position[2]
            nees.append(error**2 / now.covariance[2, 2])
            assert carried is None or abs(error) < 0.5, f"{error:.2f} m at {truth[:3]}"

    assert len(above) > 100
    assert np.abs(np.array(above) - 2.0).max() < 0.15, "the sensor sees the roof"
    assert np.mean(np.array(nees) < chi2.ppf(0.95, 1)) >= 0.9
    assert estimator.rejected["height"] < 20
    assert carried is None or abs(error) < 0.15, "behind the house the map tells the height again"


def test_gates_are_those_of_the_chi_square_distribution():
    for degrees in range(1, 7):
        for probability in (0.5, 0.95, 0.9999, 0.999999999):
            expected = chi2.isf(1.0 - probability, degrees)
            assert chi_square(degrees, probability) == pytest.approx(expected, rel=1e-12)


def test_it_needs_none_of_scipys_large_modules():
    """SciPy's special functions alone take 25 MB in a process for each vehicle."""
    code = (
        "import sys\n"
        "from rfly_amphibious import SensorParameters, VehicleParameters\n"
        "from rfly_autonomy import EstimatorParameters, StateEstimator\n"
        "from rfly_amphibious.vehicle.vehicle_record import vehicle_record\n"
        "kinds = EstimatorParameters, SensorParameters, VehicleParameters\n"
        "given = [kind.load('scale') for kind in kinds]\n"
        "StateEstimator(*given)\n"
        "vehicle_record(given[2], True, False, 0.0)\n"
        "heavy = {f'scipy.{name}' for name in ('interpolate', 'linalg', 'optimize', 'special')}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert done.returncode == 0, done.stderr


def test_bad_and_late_readings_are_counted(turn):
    estimator = new_estimator(turn)
    ticks = [tick for tick, _ in turn.samples(SensorSuite(turn.model, SENSORS, seed=2))]
    for tick in ticks[:500]:
        estimator.update(tick)
    before = estimator.estimate
    fix = next(tick.gps for tick in ticks[200:] if tick.gps is not None)
    estimator.gps(fix)
    estimator.gps(fix._replace(time=fix.time + 1.0, geodetic=fix.geodetic * math.nan))
    estimator.imu(ticks[100].imu)

    assert (estimator.late["gps"], estimator.invalid["gps"], estimator.late["imu"]) == (
        2,
        1,
        1,
    )  # one of them before the alignment
    assert all(np.array_equal(a, b) for a, b in zip(before, estimator.estimate, strict=True))


def test_times_of_another_clock_do_not_stop_it(turn):
    estimator = new_estimator(turn)
    ticks = [tick for tick, _ in turn.samples(SensorSuite(turn.model, SENSORS, seed=2))]
    for tick in ticks[:500]:
        estimator.update(tick)
    before = estimator.estimate
    fix = next(tick.gps for tick in ticks[200:] if tick.gps is not None)
    estimator.gps(fix._replace(time=fix.time + 1e6))

    assert estimator.invalid["gps"] == 1
    assert all(np.array_equal(a, b) for a, b in zip(before, estimator.estimate, strict=True))

    estimator.imu(ticks[500].imu._replace(time=ticks[500].imu.time + 1e6))
    assert not estimator.initialised

    for tick in ticks[501:1001]:
        read = {field.name: getattr(tick, field.name) for field in dataclasses.fields(tick)}
        later = {
            name: of._replace(time=of.time + 1e6) for name, of in read.items() if of is not None
        }
        estimator.update(dataclasses.replace(tick, **later))
    assert estimator.initialised


def test_encoders_of_another_clock_do_not_carry_the_estimate_on(hop, flown):
    """The rotors in the air stand for an IMU that is silent or late, up to their newest time."""
    estimator = new_estimator(hop)
    lift_off = next(k for k, (_, truth) in enumerate(flown) if truth[2] > 1.0)
    for k, (tick, _) in enumerate(flown[: lift_off + 50]):
        joints = tick.joints
        if joints is not None and k >= lift_off:
            joints = joints._replace(time=joints.time + 1000.0)
        now = estimator.update(dataclasses.replace(tick, joints=joints))
    assert now.time == pytest.approx(float(tick.imu.time[-1]), abs=0.01)
    assert not estimator.coasting


@pytest.mark.parametrize("lead", [0.2, exhaustively(5.0)])
def test_encoders_that_are_ahead_are_left_out_and_no_other_sensor_is_late(hop, flown, lead):
    """Before they carried the estimate on by their lead, and all others seemed late or silent."""
    estimator = new_estimator(hop)
    lift_off = next(k for k, (_, truth) in enumerate(flown) if truth[2] > 1.0)
    named = set()
    for k, (tick, _) in enumerate(flown[: lift_off + 300]):
        joints = tick.joints
        if joints is not None and k >= lift_off:
            joints = joints._replace(time=joints.time + lead)
        now = estimator.update(dataclasses.replace(tick, joints=joints))
        if k >= lift_off:
            assert now.time == pytest.approx(float(tick.imu.time[-1]), abs=0.01)
            named |= set(estimator.faults.items())
    assert named == {("encoders", f"are ahead of the others by {lead:.2f} s: left out")}
    assert not estimator.coasting
    assert np.linalg.norm(now.velocity - flown[k][1][3:6]) < 0.3

    # its clock is set right
    for tick, _ in flown[lift_off + 300 : lift_off + 450]:
        estimator.update(tick)
    assert not estimator.faults


def test_without_a_map_the_ground_is_estimated_along(hop, flown):
    """The vertical speed is as good near the ground, and altitude comes from GPS and barometer."""
    found, _ = errors(flown, new_estimator(hop, terrain=None))
    assert np.abs(found[:, 6]).max() < 0.1
    assert np.abs(found[:, 3]).max() < 1.0


def test_a_turned_imu_is_turned_back(turn):
    """Forces, rates, field and orientation of the IMU are in axes of its own."""
    sensors = SENSORS.replace(imu=dataclasses.replace(SENSORS.imu, rotation=(0.3, -0.2, 2.0)))
    found, _ = errors(
        turn.samples(SensorSuite(turn.model, sensors, noise=False)),
        new_estimator(turn, sensors=sensors),
    )
    assert np.degrees(np.abs(found[:, 7:]).max()) < 0.5
    assert np.abs(found[:, 4:7]).max() < 0.1


@pytest.mark.exhaustive
def test_plain_python_gives_what_the_kernels_give(turn, tmp_path):
    """The first 0.4 s of a drive, after a while of standing."""
    estimator = new_estimator(turn, terrain=None)
    samples = turn.samples(SensorSuite(turn.model, SENSORS, seed=2))
    ticks = [tick for tick, _ in itertools.islice(samples, round((ALIGNED + 0.4) / 0.004))]
    for tick in ticks:
        estimator.update(tick)
    saved = tmp_path / "ticks.pickle"
    saved.write_bytes(pickle.dumps(ticks))

    code = f"""
import json, pickle, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import oracles.plain_python
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
kinds = EstimatorParameters, SensorParameters, VehicleParameters
made = StateEstimator(*(kind.load("scale") for kind in kinds))
for tick in pickle.load(open({str(saved)!r}, "rb")):
    made.update(tick)
now = made.estimate
parts = now.position, now.velocity, now.orientation, made.covariance
print(json.dumps([part.tolist() for part in parts]))
"""
    environment = {**os.environ, **ENVIRONMENT}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    position, velocity, orientation, covariance = json.loads(out.stdout.splitlines()[-1])
    now = estimator.estimate

    assert np.allclose(position, now.position, atol=1e-9)
    assert np.allclose(velocity, now.velocity, atol=1e-9)
    assert np.allclose(orientation, now.orientation, atol=1e-11)
    assert np.allclose(covariance, estimator.covariance, rtol=1e-6, atol=1e-12)


def test_impossible_values_are_refused(turn):
    with pytest.raises(ConfigError, match="there is no imu"):
        new_estimator(turn, sensors=SENSORS.replace(imu=None))
    with pytest.raises(ConfigError, match=r"x.yaml:1: the key alignment is missing"):
        EstimatorParameters.parse(b"version: 1\nhistory_s: 1\n", "x.yaml")
    assert shipped_estimator_sets() == ["full", "scale", "scale_quad", "scale_six"]
    for name in shipped_estimator_sets():
        assert EstimatorParameters.load(name).name == name


def test_after_readings_that_cannot_be_it_begins_anew(turn):
    """One sample of 1e200 m/s² and rad/s makes the state infinite.

    The samples that follow align it again.
    """
    estimator = new_estimator(turn)
    ticks = [tick for tick, _ in turn.samples(SensorSuite(turn.model, SENSORS, seed=2))]
    for tick in ticks[:500]:
        estimator.update(tick)

    assert estimator.estimate is not None

    wild = ticks[500].imu
    estimator.imu(
        wild._replace(
            specific_force=np.full_like(wild.specific_force, 1e200),
            rates=np.full_like(wild.rates, 1e200),
        )
    )
    assert estimator.estimate is None
    assert (estimator.initialised, estimator.diverged) == (False, 1)

    for tick in ticks[501:]:
        estimator.update(tick)
    assert estimator.estimate is not None
    assert np.isfinite(estimator.estimate.position).all()
    assert estimator.diverged == 1


def test_stamps_in_the_computers_time_change_nothing(turn):
    """A float has steps of 2.4e-7 s at 1.8e9 s; the same drive ends as from 0."""
    ticks = list(turn.samples(SensorSuite(turn.model, SENSORS, seed=2)))
    ends = []
    for epoch in (0.0, 1_795_824_000.02):
        estimator = new_estimator(turn)
        for tick, _ in ticks:
            kinds = {kind.name: getattr(tick, kind.name) for kind in dataclasses.fields(tick)}
            moved = {
                name: part and part._replace(time=part.time + epoch) for name, part in kinds.items()
            }
            end = estimator.update(dataclasses.replace(tick, **moved))
        ends.append(end)

    assert ends[1].time - 1_795_824_000.02 == pytest.approx(ends[0].time, abs=1e-6)
    assert ends[1].position == pytest.approx(ends[0].position, abs=0.02)
    assert ends[1].velocity == pytest.approx(ends[0].velocity, abs=0.01)
    assert ends[1].covariance == pytest.approx(ends[0].covariance, rel=0.05, abs=1e-4)
