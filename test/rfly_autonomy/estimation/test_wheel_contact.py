# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Load cells and struts see the same loads: who repeats itself meanwhile is stuck."""

from __future__ import annotations

import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.wheel_contact import LoadWatch

PARAMS = VehicleParameters.load("scale")
STANDS = PARAMS.static_load.tolist()
AT_REST = [0.0] * 4
HANGS = [-0.05] * 4


def watched(rows):
    """Return the watch after rows of loads and travels, 100 a second, and when who was stuck."""
    watch = LoadWatch(PARAMS)
    found = {}
    for k, (loads, struts) in enumerate(rows):
        time = 0.01 * k
        for sensor, values in (("wheel_loads", loads), ("encoders", struts)):
            if watch.update(sensor, time, list(values)):
                found.setdefault(sensor, time)
    return watch, found


@pytest.mark.parametrize(
    ("stuck", "after"),
    [("wheel_loads", (STANDS, HANGS)), ("encoders", ([0.0] * 4, AT_REST))],
)
def test_who_stays_while_the_other_changes_is_stuck_after_0_3_s(stuck, after):
    watch, found = watched([(STANDS, AT_REST)] * 100 + [after] * 100)
    assert found == {stuck: pytest.approx(1.3, abs=0.015)}
    assert watch.since(stuck) == pytest.approx(1.0, abs=0.015)


def test_it_stays_stuck_when_the_other_comes_back_and_is_sound_after_a_change():
    lifted = [(STANDS, AT_REST)] * 100 + [(STANDS, HANGS)] * 100 + [(STANDS, AT_REST)] * 100
    watch, _ = watched(lifted)
    assert watch.is_stuck("wheel_loads")
    assert not watch.update("wheel_loads", 3.0, [70.0] * 4)
    assert not watch.is_stuck("wheel_loads")


@pytest.mark.parametrize(
    "rows",
    [
        [(STANDS, AT_REST)] * 300,
        [([0.0] * 4, HANGS)] * 300,
        [(STANDS, [1e-6 * k] * 4) for k in range(300)],
        [(STANDS, HANGS if k % 50 < 25 else AT_REST) for k in range(300)],
    ],
    ids=["stands", "flies", "settles", "bounces shortly"],
)
def test_equal_readings_alone_are_no_fault(rows):
    assert watched(rows)[1] == {}
