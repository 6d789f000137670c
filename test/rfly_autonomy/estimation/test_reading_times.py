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
