# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stuck and noisy sensors differ from quiet, coarse and noise-free ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rfly_amphibious.sensors.samples import GpsSamples, HeightSamples, ImuSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_autonomy.estimation.stuck_readings import StuckSensors

SCALE = SensorParameters.load("scale")
RATE = 50.0


def heights(distance):
    """Return samples of the height sensor, one every 20 ms."""
    distance = np.asarray(distance, float)
    return HeightSamples(np.arange(len(distance)) / RATE, distance)


def left_out(samples, sensors=SCALE):
    """Return the times of the samples that do not pass, one after another."""
    watch = StuckSensors(sensors)
    return [
        time
        for time, distance in zip(samples.time.tolist(), samples.distance.tolist(), strict=True)
        if watch.sound("height", HeightSamples(np.array([time]), np.array([distance]))) is None
    ]


def noisy(seconds, sigma=0.02, seed=1):
    return 2.0 + sigma * np.random.default_rng(seed).standard_normal(round(seconds * RATE))


def test_equal_readings_of_a_noisy_sensor_are_left_out_after_0_3_s_until_they_change():
    readings = np.concatenate([noisy(4.0), np.full(100, 2.0), noisy(1.0, seed=2)])
    times = left_out(heights(readings))
    assert times[0] == pytest.approx(4.0 + 0.3, abs=1.5 / RATE)
    assert times[-1] == pytest.approx(6.0 - 1.0 / RATE)
    assert len(times) == pytest.approx((6.0 - times[0]) * RATE)


@pytest.mark.parametrize("seed", range(5))
def test_a_sound_sensor_is_never_left_out(seed):
    assert left_out(heights(noisy(60.0, seed=seed))) == []


def test_a_vehicle_that_stands_again_in_a_simulation_without_noise_has_no_stuck_sensor():
    time = np.arange(0.0, 4.0, 1.0 / RATE)
    settles = np.exp(-10.0 * time) * np.cos(20.0 * time)
    hops = [np.full(200, 2.0), 2.0 + np.sin(time), 2.0 + np.sin(4.0) + settles, np.full(500, 1.2)]
    assert left_out(heights(np.concatenate(hops))) == []


def test_coarse_steps_are_no_fault():
    """The step is ten times the noise, so that most readings are equal to the one before."""
    rounded = np.round(noisy(60.0), 1)
    assert (np.diff(rounded) == 0.0).mean() > 0.5
    assert left_out(heights(rounded)) == []


def test_a_sensor_without_noise_in_its_set_may_repeat_itself():
    height = dataclasses.replace(SCALE.height, noise=SCALE.height.noise.silent())
    readings = np.concatenate([noisy(4.0), np.full(100, 2.0)])
    assert left_out(heights(readings), SCALE.replace(height=height)) == []


def test_readings_out_of_range_are_no_repetition():
    readings = np.concatenate([noisy(4.0), np.full(100, np.inf), noisy(1.0)])
    assert left_out(heights(readings)) == []


@pytest.mark.parametrize("field", ["specific_force", "rates"])
def test_an_imu_is_stuck_within_20_ms_if_either_of_its_sensors_is(field):
    draw = np.random.default_rng(3).standard_normal
    count = 300
    imu = ImuSamples(
        np.arange(count) / SCALE.imu.rate,
        0.06 * draw((count, 3)) + (0.0, 0.0, 9.8),
        0.005 * draw((count, 3)),
        np.tile((0.0, 0.0, 0.0, 1.0), (count, 1)),
    )
    getattr(imu, field)[200:] = getattr(imu, field)[199]
    watch = StuckSensors(SCALE)
    passed = watch.sound("imu", imu)
    assert watch.stuck == {"imu"}
    assert watch.since("imu") == imu.time[198], "the first of the equal ones may be wrong, too"
    assert passed.time[-1] == pytest.approx(imu.time[199] + 0.016)


def noisy_from(readings):
    """Return the time from which the height sensor is too noisy, s; None: never."""
    watch = StuckSensors(SCALE)
    for k, distance in enumerate(readings.tolist()):
        time = k / RATE
        watch.sound("height", HeightSamples(np.array([time]), np.array([distance])))
        if "height" in watch.noisy:
            return time
    return None


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        (np.concatenate([noisy(2.0), noisy(3.0, 0.5)]), 2.7),
        (noisy(60.0, 0.02), None),
        (noisy(60.0, 0.04), None),
        (noisy(10.0) + 3.0 * (np.arange(500) // 25 % 2), None),
        (noisy(10.0) + np.sin(np.arange(500) / RATE * 3.0), None),
    ],
    ids=["noisy", "sound", "twice the noise", "roofs", "climbs"],
)
def test_readings_most_of_which_leave_their_line_are_noisy(readings, found):
    """Of 25 times the noise, 4/25 σ and motion leave 80 % loud: half of them within 0.4 s."""
    assert noisy_from(readings) == (found and pytest.approx(found, abs=0.25))


def test_the_noise_of_a_far_too_noisy_sensor_is_measured():
    """One of twenty readings, which share noise, is off by some 0.2; a sound one has none."""
    watch = StuckSensors(SCALE)
    noises = []
    for k, distance in enumerate(np.concatenate([noisy(2.0), noisy(6.0, 0.5)]).tolist()):
        sample = HeightSamples(np.array([k / RATE]), np.array([distance]))
        watch.sound("height", sample)
        noises.append(watch.noise("height", "distance"))
    assert set(noises[:100]) == {0.0}
    assert np.mean(noises[200:]) == pytest.approx(0.5, rel=0.1)
    assert min(noises[200:]) > 0.25
    assert max(noises[200:]) < 0.8


@pytest.mark.parametrize("latitude", [0.0, 70.0])
@pytest.mark.parametrize(("rate", "sigma", "found"), [(1.0, 0.02, False), (1.0, 5.0, True)])
def test_a_slow_gps_on_a_circle_is_not_noisy(rate, sigma, found, latitude):
    """At 4.2 m/s on 7 m of radius it leaves its line by 2.4 m: 2 r (1 - cos 0.6)."""
    gps = SensorParameters.load("scale_rtk").gps
    watch = StuckSensors(SCALE.replace(gps=dataclasses.replace(gps, rate=rate)))
    time = np.arange(60) / rate
    x, y = 7.0 * np.cos(0.6 * time), 7.0 * np.sin(0.6 * time)
    noise = sigma * np.random.default_rng(4).standard_normal((60, 3))
    parallel = 111_320.0 * np.cos(np.radians(latitude))
    read = (np.column_stack([x, y, 0.0 * x]) + noise) / (111_320.0, parallel, 1.0)
    read[:, 0] += latitude
    velocity = np.column_stack([-0.6 * y, 0.6 * x, noise[:, 0]])
    for k in range(60):
        watch.sound("gps", GpsSamples(time[k : k + 1], read[k : k + 1], velocity[k : k + 1]))
    assert (watch.noisy == {"gps"}) is found


@pytest.mark.parametrize("moves", [True, False])
def test_a_gps_that_repeats_its_velocity_alone_still_shows_where_it_is(moves):
    draw = np.random.default_rng(5).standard_normal
    count = 60
    fixes = np.array((47.0, 8.0, 400.0)) + draw((count, 3)) * (3e-6, 3e-6, 0.6)
    velocity = 0.1 * draw((count, 3))
    velocity[40:] = velocity[39]
    if not moves:
        fixes[40:] = fixes[39]
    watch = StuckSensors(SCALE)
    read = GpsSamples(np.arange(count) / SCALE.gps.rate, fixes, velocity.copy())
    passed = watch.sound("gps", read)
    assert watch.stuck == {"gps"}
    assert np.array_equal(read.velocity, velocity), "what others read, too"
    if moves:
        assert np.array_equal(passed.geodetic, fixes)
        measured = ~np.isnan(passed.velocity).any(axis=1)
        assert measured[:42].all()
        assert not measured[45:].any()
    else:
        assert 42 <= len(passed.time) <= 45
        assert not np.isnan(passed.velocity).any()
