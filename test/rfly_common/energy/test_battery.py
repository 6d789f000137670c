# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A battery that is charged, by hand. `test_battery.py` of the missions has its discharge."""

from __future__ import annotations

import pytest

from rfly_common.energy.battery import Battery, BatteryPack

PACK = BatteryPack(cells=10.0, capacity_ah=5.0, resistance=0.1, charge_rate=2.0)


def half_full():
    battery = Battery(PACK)
    battery.used_ah = 2.5
    return battery


def test_charging_raises_the_voltage():
    """V₀ = 38.875 V at half charge; -200 W: 0.1 I² - 38.875 I - 200 = 0, I = -5.0784 A."""
    battery = half_full()
    battery.draw(-200.0, 3600.0 / 100.0)
    assert battery.current == pytest.approx(-5.0784, abs=1e-4)
    assert battery.used_ah == pytest.approx(2.5 - 0.050784, abs=1e-6)
    assert battery.voltage > battery.open_circuit_voltage
    assert battery.used_wh == pytest.approx(-2.0)


def test_no_more_current_than_the_charge_rate():
    """The terminals have 38.875 V + 1 V at 10 A = 2 · 5 Ah, so that 398.75 W go in."""
    battery = half_full()
    battery.draw(-5000.0, 0.0)
    assert battery.current == -10.0
    assert battery.power == pytest.approx(-398.75)


def test_a_full_battery_takes_nothing_and_one_without_a_rate_neither():
    battery = Battery(PACK)
    battery.draw(-200.0, 1.0)
    assert battery.power == battery.current == battery.used_ah == 0.0

    fixed = Battery(BatteryPack(10.0, 5.0, 0.1, 0.0))
    fixed.used_ah = 2.5
    fixed.draw(-200.0, 1.0)
    assert fixed.power == fixed.current == 0.0
