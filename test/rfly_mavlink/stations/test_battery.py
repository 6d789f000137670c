# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The battery, with numbers worked out by hand."""

from __future__ import annotations

import pytest

from rfly_common.energy.battery import Battery
from rfly_mavlink.stations.parameter_protocol import Tunables


def test_voltage_falls_with_current_and_charge():
    """16.8 V, 0.1 Ω and 200 W give 0.1 I² - 16.8 I + 200 = 0.

    I is (16.8 - √202.24)/0.2 = 12.894 A.
    """
    battery = Battery(
        Tunables(battery_capacity=5000.0, battery_cells=4.0, battery_resistance=0.1).battery_pack()
    )
    assert battery.voltage == pytest.approx(16.8)

    battery.draw(200.0, 1.0)
    assert battery.current == pytest.approx(12.894, abs=1e-3)
    assert battery.voltage == pytest.approx(200.0 / 12.894, abs=5e-3)  # a little charge has gone
    assert battery.used_ah == pytest.approx(12.894 / 3600.0, rel=1e-4)


def test_gives_no_more_than_its_resistance_lets_through():
    battery = Battery(
        Tunables(battery_capacity=5000.0, battery_cells=4.0, battery_resistance=0.1).battery_pack()
    )

    battery.draw(1e6, 0.0)
    assert battery.power == pytest.approx(16.8**2 / 0.4)
    assert battery.voltage == pytest.approx(8.4)


def test_is_empty_in_the_end():
    battery = Battery(
        Tunables(battery_capacity=100.0, battery_cells=1.0, battery_resistance=0.0).battery_pack()
    )
    for _ in range(100):
        battery.draw(40.0, 1.0)

    assert battery.charge == 0.0
    assert battery.open_circuit_voltage == pytest.approx(3.3)
    assert battery.current == 0.0
