# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A vehicle that is to drive on and stays at its place is stuck after a time; others are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import ChassisController
from rfly_autonomy.control.stuck import StuckLimits, StuckWatch
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import ConfigError

STEP = 0.02


def stuck_at(speed, place, limits=None, duration=60.0):
    """Return the first time at which it is stuck, s; None: never.

    `speed`: wanted, m/s; `place(time)`: x and y, m.
    """
    watch = StuckWatch(limits)
    for time in np.arange(0.0, duration, STEP):
        if watch.update(float(time), np.array(place(time)), speed):
            return time
    return None


@pytest.mark.parametrize("speed", [2.0, -1.0])
def test_it_stands_though_it_is_to_drive(speed):
    assert stuck_at(speed, lambda _: (5.0, 1.0)) == pytest.approx(10.0, abs=2 * STEP)
    limits = StuckLimits(time=3.0)
    assert stuck_at(speed, lambda _: (5.0, 1.0), limits) == pytest.approx(3.0, abs=2 * STEP)


def test_the_time_counts_from_the_last_metre_before_a_wall():
    """At 2 m/s to a wall 5.5 m ahead: it is 5 m from the start after 2.5 s, the last time that it
    left a place.
    """
    stops = stuck_at(2.0, lambda time: (min(2.0 * time, 5.5), 0.0))
    assert 12.0 < stops < 12.75


def test_an_estimated_place_may_wander():
    noise = np.random.default_rng(5)
    assert stuck_at(2.0, lambda _: noise.normal(0.0, 0.1, 2)) == pytest.approx(10.0, abs=0.5)


@pytest.mark.parametrize(
    ("speed", "place", "limits"),
    [
        (0.0, lambda _: (0.0, 0.0), None),
        (0.02, lambda _: (0.0, 0.0), None),
        (0.3, lambda time: (0.3 * time, 0.0), None),
        (1.0, lambda time: (1.3 * math.cos(time / 1.3), 1.3 * math.sin(time / 1.3)), None),
        (2.0, lambda _: (0.0, 0.0), StuckLimits(time=0.0)),
        (2.0, lambda time: (0.05 * time, 0.0), StuckLimits(distance=0.4)),
    ],
    ids=["stands", "creeps", "slow", "circle", "off", "less distance"],
)
def test_what_is_not_stuck(speed, place, limits):
    assert stuck_at(speed, place, limits) is None


def test_limits_are_checked():
    with pytest.raises(ConfigError, match=r"^stuck_time is -1\.0 s, expected at least 0"):
        StuckLimits(time=-1.0)
    with pytest.raises(ConfigError, match=r"^stuck_distance is 0\.0 m, expected more than 0"):
        StuckLimits(distance=0.0)


def test_the_chassis_controller_tells_it_until_it_is_to_stop():
    params = VehicleParameters.load("scale")
    chassis = ChassisController(params, stuck_limits=StuckLimits(time=4.0))
    place = np.array((0.0, 0.0, params.origin_height))
    upright = np.array((0.0, 0.0, 0.0, 1.0))
    told = []
    for time in np.arange(0.0, 8.0, STEP):
        chassis.advance_clock(float(time))
        chassis.set_speed(1.0 if time < 6.0 else 0.0)
        now = Estimate(float(time), place, upright, np.zeros(3), np.zeros(3))
        chassis.step(now, Mode.DRIVE, STEP)
        if chassis.stuck.text:
            told.append(time)
    assert told[0] == pytest.approx(4.0, abs=0.05)
    assert told[-1] == pytest.approx(6.0, abs=0.05)
