# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Aids that are away while the IMU goes wrong: the prediction is told to be wrong, not the aids."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from recorded_drives import new_estimator

AWAY_SINCE = 7.5
"""Time from which aids are away, s. The vehicle is in the air from 7 to 20 s."""


def followed(ticks, estimator, away, back_at, begin, rates=(0.0, 0.0, 0.0), force=(0.0, 0.0, 0.0)):
    """Return the parts named and the time of each, and time and squared error of each estimate.

    `away`: fields of the samples that are missing from AWAY_SINCE to `back_at`, s. Rates and force
    are biased from `begin` on, s.
    """
    named = {}
    rows = []
    for tick, truth in ticks:
        time = float(tick.imu.time[-1])
        changes = {"ground_truth": None}
        if AWAY_SINCE < time < back_at:
            changes |= dict.fromkeys(away)
        if time > begin:
            changes["imu"] = tick.imu._replace(
                rates=tick.imu.rates + np.array(rates),
                specific_force=tick.imu.specific_force + np.array(force),
            )
        estimate = estimator.update(dataclasses.replace(tick, **changes))
        if estimate is None:
            continue
        for part in estimator.faults:
            named.setdefault(part, time)
        error = truth[:3] - estimate.position
        rows.append((time, error @ np.linalg.solve(estimate.covariance[:3, :3], error)))
    return named, np.array(rows)


@pytest.mark.parametrize("rates", [(0.0, 0.2, 0.0), (0.1, 0.1, -0.14)])
def test_without_gps_and_magnetometer_an_imu_that_contradicts_itself_is_named(hop, flown, rates):
    """Its attitude was believed less and less by a wrong gyroscope, and nothing was named."""
    estimator = new_estimator(hop)
    named, rows = followed(
        flown, estimator, ("gps", "magnetometer"), math.inf, AWAY_SINCE + 1.0, rates
    )
    assert AWAY_SINCE + 1.0 < named["imu"] < AWAY_SINCE + 2.5
    assert named.keys() == {"imu", "gps", "magnetometer"}
    assert np.percentile(rows[:, 1], 95) < 50.0
    assert estimator.gyro_bias == pytest.approx(rates, abs=0.02)


@pytest.mark.parametrize(
    ("bias", "begin", "named_then"),
    [
        ({"force": (0.8, 0.6, 0.0)}, AWAY_SINCE, {"imu", "gps"}),
        ({"rates": (0.0, 0.1, 0.0)}, AWAY_SINCE + 4.5, {"imu", "gps", "magnetometer"}),
    ],
)
def test_a_gps_that_comes_back_outvotes_an_imu_that_went_wrong_meanwhile(
    hop, flown, bias, begin, named_then
):
    """An accelerometer's bias of 1 m/s² moves the estimate by 18 m in 6 s without a GPS.

    No orientation shows the gyroscope's bias. The GPS was refused for 30 s.
    """
    estimator = new_estimator(hop, orientation_rate=0.0)
    back_at = AWAY_SINCE + 6.0
    away = tuple(named_then - {"imu"})
    named, rows = followed(flown, estimator, away, back_at, begin, **bias)
    assert back_at <= named["imu"] < back_at + 2.0
    assert named.keys() == named_then
    assert rows[rows[:, 0] > back_at + 1.0, 1].max() < 50.0
