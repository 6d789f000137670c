# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Batteries that are dead or weak, told from encoders that lie."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.rotor_watch import RotorWatch
from rfly_common.physics import GRAVITY


@pytest.mark.parametrize(("lift", "part"), [(2.0, "battery"), (9.8, "encoders")])
def test_the_accelerometer_tells_a_dead_battery_from_encoders_that_lie(lift, part):
    """Rotors at a third of their speed give a ninth of the thrust, 1.1 m/s²."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    due = np.full(6, p.hover_speed)
    for tick in range(80):
        watch.update(0.01 * tick, (0.3 + 1e-4 * tick) * due, due, due, lift)
    assert list(watch.warnings) == [part]
    assert not watch.failed


def test_a_battery_that_gives_too_little_accuses_no_encoders_while_the_vehicle_sinks():
    """Rotors at 0.8 of their speed give 0.64 of the thrust, 6.3 m/s², and more in a descent.

    Once the accelerometer has not shown so little for two seconds, encoders lie after all.
    """
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    due = np.full(6, p.hover_speed)
    named = []
    for tick in range(500):
        lift = 6.3 if tick < 100 else 9.0
        watch.update(0.01 * tick, (0.8 + 1e-5 * tick) * due, due, due, lift)
        named.append(list(watch.warnings))
        assert watch.shows_delay is (not named[-1])
    first = named.index(["battery"])
    assert 10 <= first < 60
    assert named[first:299] == [["battery"]] * (299 - first)
    assert named[302:] == [["encoders"]] * 198


def test_a_weak_battery_shows_by_all_rotors_together():
    """Each turns at 0.93 of its speed, 260 instead of 280 rad/s, and alone it would be sound.

    Together they push with 0.865 of the weight, 8.5 m/s².
    """
    p = VehicleParameters.load("scale_six")
    watch = RotorWatch(p)
    due = np.full(6, p.hover_speed)
    named = []
    for tick in range(100):
        share = 0.93 + 1e-5 * tick
        watch.update(0.01 * tick, share * due, due, due, GRAVITY * share**2)
        named.append(list(watch.warnings))
    assert 15 <= named.index(["battery"]) <= 25
    assert named[25:] == [["battery"]] * 75
    assert not watch.failed


@pytest.mark.parametrize(("carried", "named"), [(0.95, {"battery"}), (0.0, set())])
def test_rotors_that_all_rest_in_a_takeoff_lack_power_if_the_wheels_carry_on(carried, named):
    """Encoders that are stuck at 0 show no turning either, but the vehicle is in the air."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    seen = set()
    for tick in range(100):
        due = np.full(6, p.hover_speed * min(0.01 * tick, 1.0))
        loads = carried * p.static_load
        watch.update(0.01 * tick, np.zeros(6), due, due, GRAVITY, loads=loads)
        seen |= set(watch.warnings)
    assert seen == named
    assert not watch.failed


@pytest.mark.parametrize(("off", "climb"), [(-20.0, 3.0), (-40.0, 3.0), (-40.0, -2.0)])
def test_encoders_that_show_too_little_accuse_no_battery_in_a_climb(off, climb):
    """The force is that in hover: a climb takes thrust away, a descent adds some."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    thrust = p.mass * GRAVITY + p.inflow_coefficient * climb * 6.0 * p.hover_speed
    due = np.full(6, math.sqrt(thrust / (6.0 * p.thrust_coefficient)))
    seen = set()
    for tick in range(200):
        shown = due + off + 1e-3 * tick
        watch.update(0.01 * tick, shown, due, due, GRAVITY, climb=climb)
        seen |= set(watch.warnings)
    assert "battery" not in seen


@pytest.mark.parametrize("encoders", ["biased", "noisy", "repeated", "off"])
def test_a_battery_that_dies_while_no_encoder_shows_it_is_named(encoders):
    """The rotors' thrust falls to a tenth, of which encoders at fault show nothing."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    draw = np.random.default_rng(1)
    named = []
    for tick in range(300):
        due = np.full(6, p.hover_speed * (1.0 + 0.03 * math.sin(0.1 * tick)))
        is_dead = tick >= 150
        shown = {
            "biased": due * (0.3 if is_dead else 1.0) + 50.0,
            "noisy": due + 40.0 * draw.normal(size=6),
            "repeated": np.full(6, 200.0),
        }
        lift = 1.0 if is_dead else 9.8
        if encoders == "off":
            watch.update_unmeasured(0.01 * tick, due, lift, None)
        else:
            watch.update(0.01 * tick, shown[encoders], due, due, lift)
        assert not watch.failed
        if "battery" in watch.warnings:
            named.append(tick)
    assert 165 <= named[0] < 180
    assert named[-1] == 299
