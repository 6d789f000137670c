# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rotors commanded by torque: the law and its observer, and flights like those by speed."""

import math

import numpy as np
import pytest

from rfly_amphibious import Scenario, VehicleParameters
from rfly_autonomy.control.rotor_torque import RotorTorqueLaw
from rfly_common.errors import ConfigError
from rfly_lab import run_closed_loop, run_scenario

SCALE = VehicleParameters.load("scale")
TICK = 0.004
"""Time between commands, s."""


class Rotors:
    """Six rotors of `scale`, I_r dϖ/dt = τ - k c_Q ϖ², in steps of 0.5 ms; c_Q of scale.yaml."""

    def __init__(self, speed, resistance):
        self.speed = np.full(6, speed)
        thrust = 30.0 * 9.80665 / 6.0
        inflow = math.sqrt(thrust / (2.0 * 1.225 * math.pi * 0.355**2))
        self.coefficient = resistance * thrust * inflow / (0.65 * (thrust / 0.00075) ** 1.5)

    def turn(self, torque):
        for _ in range(8):
            rate = (torque - self.coefficient * self.speed**2) / 0.003
            self.speed = np.maximum(self.speed + 5e-4 * rate, 0.0)


def follow(law, rotors, wanted, ticks, reading=None):
    """Return the speeds after each of some ticks; encoders measure every third of them.

    `reading`: what they measure in place of the speeds.
    """
    speeds = []
    for tick in ticks:
        if tick % 3 == 0:
            law.measure(tick * TICK, rotors.speed.copy() if reading is None else reading.copy())
        rotors.turn(law.torques(tick * TICK, np.full(6, wanted), TICK))
        speeds.append(rotors.speed[0])
    return np.array(speeds)


@pytest.mark.parametrize("resistance", [1.0, 0.8, 1.25])
def test_speeds_follow_with_the_lag_whatever_the_air_resists(resistance):
    """A step of 20 rad/s decays with 0.06 s; the resistance is known after a second in hover."""
    law = RotorTorqueLaw(SCALE)
    rotors = Rotors(256.0, resistance)
    follow(law, rotors, 256.0, range(375))
    assert rotors.speed == pytest.approx([256.0] * 6, abs=0.2)
    assert law.resistance == pytest.approx([resistance] * 6, abs=0.02)

    speeds = follow(law, rotors, 276.0, range(375, 450))
    time = TICK * np.arange(1, len(speeds) + 1)
    assert speeds == pytest.approx(276.0 - 20.0 * np.exp(-time / 0.06), abs=0.5)


def test_torques_keep_their_limits():
    """6 N m is the largest; a step from rest to 350 rad/s would take 17."""
    law = RotorTorqueLaw(SCALE)
    law.measure(0.0, np.zeros(6))
    assert law.torques(0.0, np.full(6, 350.0), TICK).tolist() == [6.0] * 6
    assert law.torques(0.0, np.zeros(6), 0.0).tolist() == [6.0] * 6  # the same time again
    law.reset()
    assert law.torques(0.0, np.zeros(6), TICK).tolist() == [0.0] * 6


@pytest.mark.parametrize("reading", ["stuck", "zero", "unknown"])
def test_a_flight_goes_on_without_good_encoders(reading):
    """The law without readings goes by what its torques do: within 1 % of the speed."""
    law = RotorTorqueLaw(SCALE)
    rotors = Rotors(256.0, 1.0)
    follow(law, rotors, 256.0, range(100))
    readings = {"stuck": rotors.speed.copy(), "zero": np.zeros(6), "unknown": np.full(6, math.nan)}
    follow(law, rotors, 270.0, range(100, 250), readings[reading])
    assert rotors.speed == pytest.approx([270.0] * 6, rel=0.01)


HOP = """
version: 1
vehicle: scale
rotor_command: {quantity}
mission:
  items:
    - {{mode: takeoff, height_m: 1}}
    - {{mode: waypoint, position_m: [2, 1], height_m: 1}}
    - {{mode: land}}
end: {{when: standing_after_landing, time_s: 30}}
"""


def hops(run):
    """Return the same hop, commanded by speed and by torque, as (run, run)."""
    return [
        run(Scenario.parse(HOP.format(quantity=quantity).encode(), "hop.yaml"))
        for quantity in ("speed", "torque")
    ]


def farthest_apart(one, other):
    """Return the largest distance between two runs at the same times, m."""
    samples = min(len(one.time), len(other.time))
    apart = one.position[:samples] - other.position[:samples]
    return float(np.linalg.norm(apart, axis=1).max())


def test_a_hop_by_torque_is_the_hop_by_speed():
    by_speed, by_torque = hops(run_scenario)
    assert by_torque.reached
    assert farthest_apart(by_speed, by_torque) < 0.01
    assert by_torque.rotor_energy == pytest.approx(by_speed.rotor_energy, rel=1e-3)
    assert by_torque.outputs.rotor_torque.max() <= 6.0


@pytest.mark.exhaustive
def test_a_hop_by_torque_from_estimates_is_the_hop_by_speed():
    by_speed, by_torque = (each.run for each in hops(run_closed_loop))
    assert by_torque.reached
    assert farthest_apart(by_speed, by_torque) < 0.05


def test_a_manoeuvre_by_torque_is_refused():
    text = HOP.format(quantity="torque").split("mission:")[0]
    text += "mission: {manoeuvre: [{mode: takeoff, from_s: 1}]}\nend: {time_s: 3}\n"
    with pytest.raises(ConfigError, match="rotor_command: torque, but a manoeuvre"):
        Scenario.parse(text.encode(), "excite.yaml")
