# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Wheels, GPS velocity and IMU outvote one of them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation import speed_consistency as speeds
from rfly_autonomy.estimation.error_state import ERRORS, VELOCITY
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters, constants_of
from rfly_autonomy.estimation.filter_records import (
    BOOK,
    GPS_VELOCITY,
    KIND_GPS,
    MEASUREMENT,
    STATE,
)

FIX_PERIOD = 0.1
WHEEL_PERIOD = 0.01


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    """Run the kernels as Python, as those without an array of records can't be called from it."""
    for name, value in vars(speeds).copy().items():
        if hasattr(value, "py_func"):
            monkeypatch.setattr(speeds, name, value.py_func)


@pytest.fixture(scope="module")
def constants():
    """Return the constants of a GPS with a noise of 0.3 m and a drift of 1.8 m in 60 s."""
    return constants_of(
        EstimatorParameters.load("scale"),
        SensorParameters.load("scale"),
        VehicleParameters.load("scale"),
        0.0,
        True,
    )


class Drive:
    """A vehicle that drives east at 2 m/s, with wheels, GPS and IMU that may be wrong."""

    def __init__(self, constants):
        self.c = constants
        self.x = np.zeros(1, STATE)[0]
        self.x.velocity = 2.0, 0.0, 0.0
        self.book = np.zeros(1, BOOK)[0]
        self.book.free_velocity = 2.0, 0.0
        self.book.free_variance = 0.01
        self.book.last_measured = self.book.wheels_time = self.book.fix_time = -10.0
        self.p = 0.01 * np.eye(ERRORS)
        self.fix = np.zeros(3)

    def go_on(self, seconds, wheels=0.0, gps=0.0, pull=0.0):
        """Drive on: errors of the speeds east by wheels and GPS, m/s, and of the IMU, m/s²."""
        row = np.zeros(1, MEASUREMENT)[0]
        row.kind = KIND_GPS
        for k in range(round(seconds / WHEEL_PERIOD)):
            self.book.time += WHEEL_PERIOD
            speeds.predict_free_velocity(self.book, WHEEL_PERIOD, (pull, 0.0), 0.0)
            speed = 2.0 + wheels - self.book.free_velocity[0]
            speeds.judge_wheels(
                self.x, self.book, self.p, speed, -self.book.free_velocity[1], 4e-4, self.c
            )
            if k % 10 == 9:
                self.fix[0] += 2.0 * FIX_PERIOD
                row.time = self.book.time
                row.values[:3] = self.fix
                row.values[3] = 2.0 + gps
                speeds.follow_fixes(self.book, row, self.c)
                innovation = np.array((row.values[3] - self.x.velocity[0], 0.0, 0.0))
                speeds.correct_free_velocity(self.x, self.book, self.p, innovation, 0.01)
                self.book.last_measured[GPS_VELOCITY] = self.book.time

    def verdict(self, residual, misfits=0.5):
        """Return the verdict about a GPS velocity with an innovation east, m/s."""
        self.book.misfits[GPS_VELOCITY] = misfits
        return speeds.verdict(self.book, (residual, 0.0, 0.0), self.c)


def test_the_small_filter_is_a_kalman_filter(constants):
    """Mean and variance of each axis: P + Q, K = P / (P + R), (1 - K) P."""
    drive = Drive(constants)
    x, book, p = drive.x, drive.book, drive.p
    speeds.predict_free_velocity(book, 0.5, (0.4, -0.2), 0.02)
    assert book.free_velocity == pytest.approx((2.2, -0.1))
    assert book.free_variance == pytest.approx(0.01 + 0.02 + 0.1**2 * 0.5)

    # the GPS says (2.3, 0.1): off by (0.1, 0.2)
    gain = 0.035 / (0.035 + 0.04)
    assert speeds.correct_free_velocity(x, book, p, np.array((0.3, 0.1, 0.0)), 0.04)
    assert book.free_velocity == pytest.approx((2.2 + 0.1 * gain, -0.1 + 0.2 * gain))
    assert book.free_variance == pytest.approx(0.035 * (1.0 - gain))

    # five standard deviations are too much
    before = book.free_velocity.copy()
    far = 5.1 * math.sqrt(book.free_variance + 0.04)
    residual = np.array((before[0] + far - 2.0, before[1], 0.0))
    assert not speeds.correct_free_velocity(x, book, p, residual, 0.04)
    assert (book.free_velocity == before).all()


def test_wheels_that_slide_are_left_out_until_they_roll(constants):
    drive = Drive(constants)
    drive.go_on(2.0)
    assert drive.book.wheels_slide == 0.0

    drive.x.velocity[0] = 1.5  # dragged along
    drive.go_on(1.0, wheels=-1.0)
    assert drive.book.wheels_slide == 1.0
    assert drive.x.velocity[0] == pytest.approx(2.0, abs=0.1)
    assert 0.002 < drive.p[VELOCITY, VELOCITY] < 0.02

    drive.go_on(1.5)
    assert drive.book.wheels_slide == 0.0


def test_no_gps_no_slide(constants):
    """Nothing shows, without a GPS, which of wheels and IMU is right."""
    drive = Drive(constants)
    drive.book.last_measured = 0.0
    for _ in range(200):
        drive.book.time += WHEEL_PERIOD
        speeds.judge_wheels(drive.x, drive.book, drive.p, 1.0, 0.0, 4e-4, constants)
        if drive.book.time > 0.6:
            assert drive.book.wheels_slide == 0.0


def test_wheels_and_imu_outvote_the_gps(constants):
    drive = Drive(constants)
    drive.go_on(2.0)
    drive.go_on(0.5, gps=1.5)
    assert drive.verdict(1.5) == speeds.GPS_IS_WRONG


def test_wheels_and_gps_outvote_the_imu(constants):
    drive = Drive(constants)
    drive.go_on(2.0)
    drive.go_on(0.6, pull=1.0)
    assert drive.book.wheels_slide == 0.0
    assert drive.verdict(-0.3) == speeds.IMU_IS_WRONG


def test_gps_and_imu_outvote_the_wheels(constants):
    """The average has not come to three deviations yet, but the estimate fits no more."""
    drive = Drive(constants)
    drive.go_on(2.0)
    drive.go_on(0.4, wheels=-0.27)
    assert drive.book.wheels_slide == 0.0
    assert drive.verdict(0.2) == speeds.WHEELS_SLIDE


def test_a_slow_error_of_the_gps_looks_like_a_slide_until_its_positions_show_it(constants):
    drive = Drive(constants)
    drive.go_on(2.0)
    drive.go_on(2.0, gps=0.6)
    assert drive.book.wheels_slide == 1.0
    drive.go_on(8.0, gps=0.6)
    assert drive.book.gps_velocity_refused == 1.0
    assert drive.book.wheels_slide == 0.0
    assert drive.x.velocity[0] == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(
    ("error", "seconds", "expected"),
    [
        # noise and drift: √(0.3² + 2 · 1.8² · 1.7 / 60) = 0.52 m at the begin
        (3.0, 0.7, speeds.GPS_IS_WRONG),
        (1.5, 0.7, speeds.NO_VERDICT),
        (0.5, 0.7, speeds.IMU_IS_WRONG),
        (0.5, 0.0, speeds.IMU_IS_WRONG),
    ],
)
def test_in_the_air_the_positions_decide(constants, error, seconds, expected):
    """The way beyond that of the velocities is error · time, less what has faded."""
    drive = Drive(constants)
    drive.go_on(2.0)
    drive.book.misfits[GPS_VELOCITY] = 1.0
    drive.go_on(seconds, gps=error)
    drive.book.wheels_time = -math.inf
    misfits = -math.expm1(-seconds / constants.reacquire)
    assert drive.verdict(error, misfits) == expected


def test_positions_that_jump_do_not_acquit_the_imu_for_ever(constants):
    """A jump of the position fades with LAG_TIME."""
    drive = Drive(constants)
    drive.go_on(1.0)
    drive.fix[0] -= 5.0
    drive.go_on(0.1)
    drive.go_on(5.0)
    assert abs(drive.book.fix_way[0]) < 0.05


@pytest.mark.parametrize("rate", [1.0, 2.0, 10.0])
def test_fixes_of_any_rate_show_a_velocity_that_is_wrong(rate):
    """After three of them the way is 1 m/s times their time, but for what has faded."""
    sensors = SensorParameters.load("scale")
    sensors = sensors.replace(gps=dataclasses.replace(sensors.gps, rate=rate))
    vehicle = VehicleParameters.load("scale")
    c = constants_of(EstimatorParameters.load("scale"), sensors, vehicle, 0.0, True)
    book = np.zeros(1, BOOK)[0]
    book.misfits[GPS_VELOCITY] = 1.0
    row = np.zeros(1, MEASUREMENT)[0]
    row.kind = KIND_GPS
    for k in range(4):
        row.time = 20.0 + k / rate
        row.values[0] = 2.0 * k / rate
        row.values[3] = 1.0
        speeds.follow_fixes(book, row, c)
    keep = math.exp(-1.0 / rate / speeds.WAY_TIME)
    assert book.fix_way[0] == pytest.approx((1.0 + keep + keep**2) / rate)


def test_fixes_of_a_vehicle_that_gains_speed_move_as_their_velocities(constants):
    """The way of 2 s at 3 m/s² is the sum over the means of two velocities each."""
    book = np.zeros(1, BOOK)[0]
    row = np.zeros(1, MEASUREMENT)[0]
    row.kind = KIND_GPS
    for time in np.arange(20.0, 22.05, 0.2):
        row.time = time
        row.values[:3] = 1.5 * (time - 20.0) ** 2, 4.0, -1.0
        row.values[3:6] = 3.0 * (time - 20.0), 0.0, 0.0
        speeds.follow_fixes(book, row, constants)
    assert book.fix_way == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
