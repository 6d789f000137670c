# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors that lose many readings, by the times of those that come."""

import dataclasses

import numpy as np
import pytest

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_autonomy.estimation.reading_times import ReadingTimes

SENSORS = SensorParameters.load("scale")
PARTS = ("imu", "gps", "magnetometer", "barometer", "encoders", "height", "wheel_loads")


def named_after(part, lost, seconds=4.0, seed=0):
    """Return the time after which a sensor is named that loses a share by chance; None: never."""
    times = ReadingTimes(SENSORS)
    rate = SENSORS.sensors()[part].rate
    lost_at = np.random.default_rng(seed).random(round(seconds * rate)) < lost
    for k, is_lost in enumerate(lost_at.tolist()):
        if not is_lost:
            times.hear(part, k / rate)
        if part in times.lossy or times.silent(k / rate):
            return k / rate
    return None


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("lost", [0.55, 0.8])
def test_a_sensor_that_loses_most_readings_is_named_within_two_seconds(part, lost):
    assert all(named_after(part, lost, seed=seed) < 2.0 for seed in range(20))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("lost", [0.0, 0.05])
def test_a_sensor_that_loses_few_readings_is_not_named(part, lost):
    assert all(named_after(part, lost, 20.0, seed) is None for seed in range(20))


@pytest.mark.parametrize("rate", [1.0, 2.0])
def test_a_slow_sensor_that_loses_one_reading_is_not_named(rate):
    """A fix of 1 Hz that was lost was half of what was due in two seconds."""
    slow = dataclasses.replace(SENSORS.gps, rate=rate)
    times = ReadingTimes(SENSORS.replace(gps=slow))
    for k in range(30):
        if k != 15:
            times.hear("gps", k / rate)
        assert not times.lossy
    for k in range(30, 60, 2):
        times.hear("gps", k / rate)
    assert times.lossy == {"gps"}


def test_readings_that_come_in_another_order_or_together_are_not_lost():
    times = ReadingTimes(SENSORS)
    rng = np.random.default_rng(1)
    heard = np.argsort(np.arange(2000) + rng.uniform(0.0, 5.0, 2000))
    for k in heard.tolist():
        times.hear("magnetometer", k / 50.0)
    assert not times.lossy
    for k in range(100):
        times.hear("imu", 0.04 * k, 10)
    assert not times.lossy


def test_a_sensor_that_was_silent_or_slow_is_sound_again():
    times = ReadingTimes(SENSORS)
    for k in range(20):
        times.hear("barometer", 0.5 * k)
    assert times.lossy == {"barometer"}
    for k in range(100):
        times.hear("barometer", 20.0 + k / 25.0)
    assert not times.lossy


def heard(times, seconds, leads, lags, begin=0.0):
    """Hear all sensors for some seconds, some with a lead or a lag, s; return who was `is_late`."""
    late = set()
    for k in range(round(250 * begin), round(250 * (begin + seconds))):
        for part in (*PARTS[1:], "imu"):
            if k % round(250 / SENSORS.sensors()[part].rate) == 0:
                times.hear(part, 0.004 * k + leads.get(part, 0.0) - lags.get(part, 0.0))
            if times.is_late(part):
                late.add(part)
    return late


def test_one_sensor_that_is_ahead_makes_no_other_one_late():
    """A lag of 0.1 s for 0.2 s is too short; with encoders 5 s ahead it was late at once."""
    times = ReadingTimes(SENSORS)
    ahead = {"encoders": 5.0}
    assert not heard(times, 1.0, ahead, {})
    assert times.ahead == pytest.approx({"encoders": 5.0}, abs=0.011)
    assert not heard(times, 0.2, ahead, {"height": 0.1}, begin=1.0)
    assert not heard(times, 1.0, ahead, {}, begin=1.2)
    assert heard(times, 1.0, ahead, {"height": 0.1}, begin=2.2) == {"height"}
    assert times.leads("encoders")
    assert not times.lossy


@pytest.mark.parametrize("late", [{"imu": 0.3}, {"imu": 0.3, "gps": 1.0}, {"height": 1.0}])
def test_sensors_that_are_late_put_no_other_one_ahead(late):
    times = ReadingTimes(SENSORS)
    assert heard(times, 2.0, {}, late) == late.keys()
    assert not times.ahead


def test_a_sensor_whose_clock_is_set_right_is_no_longer_ahead():
    times = ReadingTimes(SENSORS)
    heard(times, 1.0, {"encoders": 500.0}, {})
    assert times.ahead == pytest.approx({"encoders": 500.0}, abs=0.011)
    heard(times, 0.1, {}, {}, begin=1.0)
    assert not times.ahead
    heard(times, 2.0, {}, {}, begin=1.1)
    assert not times.lossy
    assert not times.silent(3.1)
    assert not times.late(3.1)


@pytest.mark.parametrize("others", [("wheel_loads", "height"), ("gps", "barometer")])
def test_a_clock_that_is_set_right_after_the_imu_died_is_used_again(others):
    """Only the IMU's readings once ended a lead, so that the sensor was left out for good."""
    times = ReadingTimes(SENSORS)
    heard(times, 1.0, {"magnetometer": 500.0}, {})
    assert times.ahead.keys() == {"magnetometer"}
    for lead in (500.0, 0.0):
        for k in range(100):
            for part in (*others, "magnetometer"):
                times.hear(part, 1.0 + 0.01 * k + (lead if part == "magnetometer" else 0.0))
        assert times.ahead.keys() == ({"magnetometer"} if lead else set())


def test_a_gps_and_an_imu_as_late_as_its_latency_put_no_third_sensor_ahead():
    """Fixes of the GPS are 0.1 to 0.2 s old, samples of the IMU 0.15 s."""
    times = ReadingTimes(SENSORS)
    for k in range(750):
        now = 0.004 * k
        if k % 25 == 0:
            times.hear("gps", now - 0.1)
        if k % 5 == 0:
            times.hear("magnetometer", now)
        times.hear("imu", now - 0.15)
        assert not times.ahead
