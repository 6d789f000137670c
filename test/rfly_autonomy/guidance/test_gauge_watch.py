# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over the battery's gauge: leaps and rests in flight."""

from __future__ import annotations

import math

import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.guidance.gauge_watch import GaugeFault, GaugeWatch, charge_per_second

PARAMS = VehicleParameters.load("scale")
RATE = charge_per_second(PARAMS)


def coarse(charge):
    """Return a charge that is shown in whole per cent."""
    return round(charge, 2)


@pytest.mark.parametrize(
    ("shown", "flies", "fault"),
    [
        (lambda time, charge: charge, True, GaugeFault.NONE),
        (lambda time, charge: coarse(charge), True, GaugeFault.NONE),
        (lambda time, charge: 0.95 - RATE * min(time, 30.0), True, GaugeFault.RESTS),
        (lambda time, charge: 0.9, False, GaugeFault.NONE),
        (lambda time, charge: charge - 0.5 * (time > 30.0), True, GaugeFault.LEAPS),
        (lambda time, charge: charge if time < 30.0 else 0.01, True, GaugeFault.LEAPS),
        (lambda time, charge: 1.0 if time > 30.0 else charge, False, GaugeFault.NONE),
        (lambda time, charge: math.nan if time > 30.0 else charge, True, GaugeFault.SILENT),
    ],
    ids=["sound", "coarse", "rests", "stands", "falls", "wrong", "is charged", "off"],
)
def test_a_gauge_is_judged_by_the_charge_that_a_flight_takes(shown, flies, fault):
    watch = GaugeWatch(PARAMS)
    for tick in range(700):
        time = 0.1 * tick
        watch.update(time, shown(time, 0.95 - RATE * time), flies)
        assert watch.fault in (GaugeFault.NONE, fault)
    assert watch.fault is fault


def test_a_gauge_that_rests_is_found_once_the_flight_took_three_of_its_steps():
    """0.3 of the power of a hover takes three per cent in 0.03/(0.3 RATE) = 79 s."""
    watch = GaugeWatch(PARAMS)
    found = None
    for tick in range(2000):
        time = 0.1 * tick
        watch.update(time, coarse(0.95 - RATE * min(time, 20.0)), True)
        if found is None and watch.fault is GaugeFault.RESTS:
            found = time
    assert found == pytest.approx(20.0 + 0.03 / (0.3 * RATE), abs=8.0)
