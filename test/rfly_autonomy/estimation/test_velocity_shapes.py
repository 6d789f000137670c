# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""GPS velocities that step against the IMU are refused, those that grow with time are not."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_autonomy.estimation import velocity_shapes as shapes
from rfly_autonomy.estimation.error_state import ERRORS, VELOCITY
from rfly_autonomy.estimation.filter_records import BOOK, SHAPE_READINGS, STATE

PERIOD = 0.1
SIGMA = 0.1
TRUTH = np.array((2.0, 0.5, -0.3))


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    """Run the kernels as Python, as those without an array of records can't be called from it."""
    for name, value in vars(shapes).copy().items():
        if hasattr(value, "py_func"):
            monkeypatch.setattr(shapes, name, value.py_func)


class Flight:
    """A vehicle that flies at a constant velocity; GPS or IMU are wrong from 3 s on."""

    def __init__(self, seed=None, period=PERIOD):
        self.period = period
        self.x = np.zeros(1, STATE)[0]
        self.x.velocity = TRUTH
        self.book = np.zeros(1, BOOK)[0]
        self.book.realigned_at = self.book.wheels_time = -10.0
        self.p = 0.01 * np.eye(ERRORS)
        draw = np.random.default_rng(seed)
        self.noise = np.zeros((200, 3)) if seed is None else SIGMA * draw.normal(size=(200, 3))
        self.sigma = SIGMA
        self.force_noise = 0.0
        self.refused_after = None
        self.readings = 0

    def go_on(self, seconds, bias=(0.0, 0.0, 0.0), pull=(0.0, 0.0, 0.0), until_refused=False):
        """Fly on with a bias of the GPS velocity, m/s, and an error of the IMU, m/s²."""
        for _ in range(round(seconds / self.period)):
            self.book.time += self.period
            self.book.imu_velocity += self.period * np.array(pull)
            self.x.velocity += self.period * np.array(pull)
            read = TRUTH + bias + self.noise[self.readings]
            self.readings += 1
            residual = read - self.x.velocity
            gap = max(0.5, 1.5 * self.period)
            variance = self.sigma**2
            shapes.judge_steps(self.x, self.book, self.p, residual, variance, self.force_noise, gap)
            assert residual == pytest.approx(read - self.x.velocity)
            if until_refused and self.book.gps_velocity_refused:
                return


@pytest.mark.parametrize("bias", [(0.0, 0.0, -0.8), (0.0, 0.0, 0.4), (0.3, -0.3, 0.0)])
def test_a_step_is_refused_within_a_second_and_a_half_and_the_velocity_goes_back(bias):
    for seed in range(3):
        flight = Flight(seed)
        flight.go_on(3.0)
        assert flight.book.gps_velocity_refused == 0.0
        flight.x.velocity += 0.5 * np.array(bias)  # dragged along
        flight.go_on(1.5, bias, until_refused=True)
        assert flight.book.gps_velocity_refused == 1.0
        assert flight.book.gps_velocity_step == pytest.approx(bias, abs=0.25)
        assert flight.x.velocity == pytest.approx(TRUTH, abs=0.3)
        off = flight.x.velocity - TRUTH
        assert off @ off / flight.p[VELOCITY, VELOCITY] < 21.0, "0.9999 of chi-square"


@pytest.mark.parametrize("pull", [(0.0, 0.0, 0.4), (0.5, 0.0, -0.5), (0.0, 3.0, 0.0)])
def test_a_slope_is_not(pull):
    """The biased force carries the velocity on as well, so that the innovation is the same."""
    for seed in range(3):
        flight = Flight(seed)
        flight.go_on(1.6)
        flight.go_on(2.5, pull=pull)
        assert flight.book.gps_velocity_refused == 0.0


@pytest.mark.parametrize("period", [0.5, 1.0])
def test_four_readings_of_a_slow_gps_show_a_step_and_no_slope(period):
    for seed in range(3):
        flight = Flight(seed, period)
        flight.go_on(8.0)
        flight.go_on(4.0 * period, (0.0, 0.0, -0.8), until_refused=True)
        assert flight.book.gps_velocity_refused == 1.0
        assert flight.book.gps_velocity_step == pytest.approx((0.0, 0.0, -0.8), abs=0.25)

        flight = Flight(seed, period)
        flight.go_on(8.0)
        flight.go_on(6.0, pull=(0.0, 0.0, 0.7))
        assert flight.book.gps_velocity_refused == 0.0


@pytest.mark.parametrize("period", [0.2, 0.3])
def test_after_two_readings_that_may_be_a_step_the_next_one_decides(period):
    """The second of 5 Hz had the IMU named, before a step was looked for."""
    flight = Flight(1, period)
    flight.go_on(10.0 * period)
    flight.go_on(2.0 * period, (0.5, 1.6, -1.5))
    assert (flight.book.may_step, flight.book.gps_velocity_refused) == (1.0, 0.0)
    flight.go_on(period, (0.5, 1.6, -1.5))
    assert flight.book.gps_velocity_refused == 1.0


def test_a_walk_of_a_noisy_imu_is_no_step():
    """Noise of 2 m/s² at 250 Hz, by which it is trusted: the sound GPS of 2 Hz was named."""
    density = 2.0 / np.sqrt(250.0)
    for seed in range(20):
        flight = Flight(seed, 0.5)
        flight.force_noise = density
        draw = np.random.default_rng(100 + seed)
        for walk in density * np.sqrt(0.5) * draw.normal(size=(60, 3)):
            flight.go_on(0.5, pull=walk / 0.5)
            assert flight.book.gps_velocity_refused == 0.0


def test_the_imus_bias_begins_with_the_estimated_one():
    """A turn-on bias that was learned on the ground would be a slope for 20 s."""
    flight = Flight(1)
    flight.x.force_bias = 0.5, -0.1, 0.2
    flight.book.wheels_time = 0.05
    flight.go_on(0.1)
    assert flight.book.slow_force_bias == pytest.approx((0.5, -0.1, 0.2))


def test_an_acceleration_through_stamps_that_are_a_bit_off_is_no_step():
    """0.025 s off at 4 m/s² are 0.1 m/s as long as it accelerates, by a GPS of σ = 0.03 m/s."""
    flight = Flight(1)
    flight.noise *= 0.3
    flight.sigma = 0.03
    flight.go_on(1.6)
    flight.go_on(1.0, bias=(0.1, 0.0, 0.0))
    flight.go_on(1.6)
    assert flight.book.gps_velocity_refused == 0.0


def test_the_fall_of_squares_is_that_of_the_regression():
    flight = Flight(3)
    flight.go_on(3.0)
    times = np.arange(SHAPE_READINGS) * PERIOD
    apart = flight.book.apart.reshape(-1, 3)
    change = np.zeros(3)
    for first, slopes in ((4, False), (9, False), (1, True), (7, True)):
        shape = times >= times[first] - 1e-6
        if slopes:
            shape = np.maximum(0.0, times - times[first - 1])
        design = np.column_stack([np.ones(SHAPE_READINGS), shape])
        best, left, *_ = np.linalg.lstsq(design, apart, rcond=None)
        whole = ((apart - apart.mean(axis=0)) ** 2).sum()
        fall = shapes.fall_by_shape(flight.book, first, slopes, change)
        assert fall == pytest.approx(whole - left.sum())
        assert change == pytest.approx(best[1])


def test_on_wheels_and_after_new_motion_nothing_is_judged():
    for field in ("wheels_time", "realigned_at"):
        flight = Flight(1)
        flight.go_on(3.0)
        flight.book[field] = flight.book.time + 0.05
        flight.go_on(0.1, (0.0, 0.0, -0.8))
        assert flight.book.apart_count == 0.0


def test_a_velocity_that_stepped_is_believed_once_it_has_stepped_back():
    """Less variance of the estimate lets a refused reading fit though it is still off."""
    flight = Flight(1)
    flight.go_on(3.0)
    flight.go_on(1.5, (0.0, 0.0, -0.8), until_refused=True)
    for off, refused in ((-0.7, 1.0), (-0.5, 1.0), (-0.2, 0.0)):
        flight.book.velocity_off = 0.0, 0.0, off
        shapes.believe_again(flight.book)
        assert flight.book.gps_velocity_refused == refused
    assert not flight.book.gps_velocity_step.any()
