# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Battery and motors of the vehicle, with numbers worked out by hand, and what they change."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from amphibious_cases import model, of_wheels, parameters
from recorded_runs import shipped_run

from rfly_amphibious import Controls, Mode, Scenario, SensorParameters
from rfly_amphibious.simulation.power_system import PowerSystem
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.errors import ConfigError
from rfly_lab import run_scenario


def hovering(p):
    m = model("scale", ground_effect=False)
    state = m.flying((0.0, 0.0, 50.0))
    return state.x, m.outputs(state, Controls(rotor_speed=p.hover_speed))


def test_hover_draws_its_shaft_power_over_the_efficiency():
    """3218 W / 0.85 + 25 W = 3811 W; at 50.4 V and 15 mΩ these are 77.39 A, and 49.24 V."""
    p = parameters("scale")
    power = PowerSystem(p)
    x, outputs = hovering(p)
    assert power.power(x, outputs) == pytest.approx(3811.0, rel=1e-3)
    power.draw(x, outputs, 1.0)
    assert power.battery is not None
    assert power.battery.current == pytest.approx(77.39, rel=1e-3)
    assert power.lowest_voltage == pytest.approx(49.24, abs=0.02)
    assert power.energy == pytest.approx(3811.0, rel=1e-3)
    assert power.charge == pytest.approx(1.0 - 77.39 / 3600.0 / 22.0, rel=1e-6)


def test_wheels_that_brake_give_back_a_share():
    """Four wheels at 30 rad/s: +2 N m take 240 W / 0.8, -2 N m give 240 W · 0.6."""
    p = parameters("scale")
    m = model("scale")
    state = m.standing()
    outputs = m.outputs(state)
    state.x[of_wheels(p, "wheel_speed")] = 30.0
    for torque, expected in ((2.0, 300.0), (-2.0, -144.0)):
        state.x[of_wheels(p, "drive_torque")] = torque
        assert PowerSystem(p).power(state.x, outputs) == pytest.approx(25.0 + expected)


def test_rotors_that_slow_down_give_nothing_back():
    p = parameters("scale")
    m = model("scale", ground_effect=False)
    outputs = m.outputs(m.flying((0.0, 0.0, 50.0)), Controls(rotor_speed=0.0))
    assert outputs.rotor_power < -1000.0
    assert PowerSystem(p).power(m.standing().x, outputs) == 25.0


def test_a_low_voltage_limits_the_rotors_and_an_empty_battery_stops_them():
    """The cells have 3.5 V at 10 %: 42 V of the 44.4 V for which the motors are stated."""
    p = parameters("scale")
    power = PowerSystem(p)
    full = Controls(rotor_speed=p.max_rotor_speed, drive_torque=5.0)
    assert power.limited(full) is full
    assert power.battery is not None
    power.battery.used_ah = 0.9 * 22.0
    assert power.limited(full).rotor_speed == pytest.approx(350.0 * 42.0 / 44.4)
    torque = power.limited(Controls(rotor_torque=6.0)).rotor_torque
    assert torque == pytest.approx(6.0 * 42.0 / 44.4)

    power.battery.used_ah = 22.0
    stopped = power.limited(full)
    assert stopped.rotor_speed is None
    assert stopped.drive_torque == 0.0


def test_without_a_battery_only_the_energy_counts():
    p = parameters("scale").replace(battery_cells=0.0, battery_capacity=0.0)
    power = PowerSystem(p)
    x, outputs = hovering(p)
    power.draw(x, outputs, 2.0)
    assert power.energy == pytest.approx(2.0 * 3811.0, rel=1e-3)
    assert power.charge == 1.0
    with pytest.raises(ConfigError, match="cells"):
        parameters("scale").replace(battery_cells=0.0)


def small_battery(reserve):
    hop = Scenario.load("hop")
    params = hop.params.replace(battery_capacity=0.6, battery_reserve=reserve)
    return dataclasses.replace(hop, params=params)


def test_at_the_reserve_a_flight_lands():
    normal = shipped_run("hop")
    run = run_scenario(small_battery(0.75))
    told = [(time, text) for time, text in run.log if "battery" in text]
    assert [text for _, text in told] == ["lands where it is: the battery is at 75 %"]
    landing = next(time for time, mode in run.modes if mode is Mode.LAND)
    assert 0.0 <= landing - told[0][0] < 0.1
    assert landing < next(time for time, mode in normal.modes if mode is Mode.LAND) - 1.0
    assert run.modes[-1][1] is Mode.DRIVE
    assert 0.3 < run.charge < 0.75
    assert "it has landed on the way: the battery is at 75 %" in run.ending


def test_below_the_reserve_no_flight_begins():
    grounded = run_scenario(small_battery(0.999))
    assert "no take-off: the battery is at" in grounded.ending


def test_a_scenario_reports_the_battery():
    run = shipped_run("hop")
    expected = run.rotor_energy / 0.85 + 25.0 * run.duration
    assert run.battery_energy == pytest.approx(expected, rel=0.05)
    assert run.charge < 1.0
    assert run.lowest_voltage < 50.4


def test_a_reset_charges_the_battery():
    simulation = Scenario.load("hop").simulation(
        SensorParameters.load("scale"), fail_safe=abort_pilot
    )
    for _ in range(20):
        simulation.tick()
    assert simulation.power.charge < 1.0
    simulation.reset()
    assert simulation.power.charge == 1.0


def test_all_shipped_vehicles_hover_with_half_a_battery():
    for name in ("full", "scale", "scale_quad", "scale_six"):
        p = VehicleParameters.load(name)
        power = PowerSystem(p)
        assert power.battery is not None
        power.battery.used_ah = 0.5 * p.battery_capacity
        hover = p.rotors * p.torque_coefficient * p.hover_speed**3 / p.rotor_efficiency
        power.battery.draw(hover, 0.0)
        most = power.limited(Controls(rotor_speed=p.max_rotor_speed)).rotor_speed
        assert float(np.asarray(most)) > 1.1 * p.hover_speed, name
