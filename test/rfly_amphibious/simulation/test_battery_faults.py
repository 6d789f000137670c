# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Faults of the battery and its gauge against effects worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import Controls
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_amphibious.simulation.power_system import PowerSystem
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError

PARAMS = VehicleParameters.load("scale")
"""Twelve cells of 22 Ah with 15 mΩ."""


def fault(part, kind, *value, quantity=""):
    made = Fault(0.0, part, FaultKind(kind), value, quantity)
    made.check(PARAMS)
    return made


def used(share, *faults):
    """Return a power system after the use of a share of its charge, then under faults."""
    power = PowerSystem(PARAMS)
    power.battery.used_ah = 22.0 * share
    power.suffer(())
    power.suffer(faults)
    return power


@pytest.mark.parametrize(
    ("faults", "voltage"),
    [
        # cells of 4.2 - 0.5 / 0.8 * 0.4 = 3.95 V at 60 %, and 100 A
        ([], 12 * 3.95 - 0.015 * 100.0),
        ([fault("battery", "partial", 11 / 12)], 11 * 3.95 - 0.015 * 100.0),
        ([fault("battery", "biased", 0.05)], 12 * 3.95 - 0.065 * 100.0),
        ([fault("battery", "partial", 0.5, quantity="capacity")], 12 * 3.95 - 0.015 * 100.0),
    ],
)
def test_a_lost_cell_and_a_grown_resistance_lower_the_voltage(faults, voltage):
    power = used(0.4, *faults)
    power.battery.draw(voltage * 100.0, 1e-9)
    assert power.battery.current == pytest.approx(100.0)
    assert power.battery.voltage == pytest.approx(voltage)

    # motors are stated for 12 cells of 3.7 V
    most = PARAMS.max_rotor_speed
    limited = power.limited(Controls(rotor_speed=np.full(6, most)))
    assert limited.rotor_speed == pytest.approx(min(voltage / 44.4, 1.0) * most)


def test_half_a_battery_is_as_full_and_empties_twice_as_fast():
    power = used(0.4, fault("battery", "partial", 0.5, quantity="capacity"))
    assert power.charge == pytest.approx(0.6)
    power.battery.used_ah += 2.2
    assert power.charge == pytest.approx(0.4)
    power.suffer(())
    assert power.charge == pytest.approx(0.4)


def test_a_battery_that_is_off_drives_nothing():
    power = used(0.4, fault("battery", "off"))
    commands = Controls(rotor_speed=np.full(6, 100.0), drive_torque=np.full(4, 1.0), steering=0.1)
    assert power.limited(commands) == Controls(steering=0.1)
    power.suffer(())
    assert power.limited(commands).rotor_speed is commands.rotor_speed


@pytest.mark.parametrize(
    ("faults", "shown"),
    [
        ([], 0.35),
        ([fault("battery_gauge", "off")], math.nan),
        ([fault("battery_gauge", "stuck")], 0.6),
        ([fault("battery_gauge", "biased", 0.25)], 0.6),
        ([fault("battery_gauge", "biased", 0.75)], 1.0),
        ([fault("battery_gauge", "wrong", 0.05)], 0.05),
    ],
)
def test_a_gauge_lies_about_the_charge_alone(faults, shown):
    power = used(0.4, *faults)
    power.battery.used_ah += 5.5
    power.suffer(faults)
    assert power.charge_shown == pytest.approx(shown, nan_ok=True)
    assert power.charge == pytest.approx(0.35)


@pytest.mark.parametrize(
    ("part", "kind", "value", "quantity", "text"),
    [
        ("battery", "partial", (0.0,), "", "value"),
        ("battery", "biased", (-0.1,), "", "value"),
        ("battery", "biased", (0.1,), "cells", "quantity"),
        ("battery", "off", (), "cells", "quantity"),
        ("battery", "stuck", (), "", "kind"),
        ("battery_gauge", "wrong", (1.5,), "", "value"),
        ("link", "biased", (1.0,), "", "kind"),
        ("link", "delayed", (), "", "value"),
    ],
)
def test_faults_that_these_parts_cannot_have_are_refused(part, kind, value, quantity, text):
    with pytest.raises(ConfigError, match=text):
        fault(part, kind, *value, quantity=quantity)
