# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Batteries that are dead or weak, told from encoders that lie."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
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
        assert not (watch.shows_delay and named[-1])
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


def swinging(p, time):
    """Return speeds, (rotors,), rad/s, that a flight law commands in gusts."""
    phases = np.arange(p.rotors) * 2.0
    return p.hover_speed * (1.0 + 0.08 * np.sin(9.0 * time + phases))


def thrust_of(p, speeds):
    """Return the specific force of rotors with speeds, (rotors,), rad/s, m/s²."""
    return p.thrust_coefficient * float(np.square(speeds).sum()) / p.mass


def named_by(watch):
    """Return the names of all parts that a watch names."""
    return {*watch.warnings, *(f"rotor {rotor + 1}" for rotor in watch.failed)}


@pytest.mark.parametrize(("name", "share"), [("scale_six", 0.94), ("scale", 0.97), ("full", 0.9)])
def test_rotors_that_turn_at_the_highest_speed_of_a_weak_battery_are_sound(name, share):
    """The battery is named within 0.5 s, and none of the rotors that no longer move."""
    p = VehicleParameters.load(name)
    watch = RotorWatch(p)
    named = []
    for tick in range(300):
        due = swinging(p, 0.01 * tick)
        speeds = np.minimum(due, p.hover_speed * (share if tick >= 100 else 2.0) - 1e-3 * tick)
        watch.update(0.01 * tick, speeds, due, due, thrust_of(p, speeds))
        named.append(named_by(watch))
        assert watch.shows_delay or tick >= 100
    assert named[100:150] == sorted(named[100:150], key=len)
    assert named[:100] == [set()] * 100
    assert named[150:] == [{"battery"}] * 150


def test_the_highest_speed_of_a_sound_battery_accuses_nothing():
    """An empty one gives 0.8 of the largest speed, 280 rad/s; the rotors should turn at 302.

    One of them turns at it alone for 1.5 s, after others have been there with it.
    """
    p = VehicleParameters.load("scale_six")
    watch = RotorWatch(p)
    for tick in range(400):
        due = swinging(p, 0.01 * tick) * (0.95 if tick >= 200 else 1.05)
        due[3] = (1.1 + 0.02 * math.sin(0.1 * tick)) * p.hover_speed
        speeds = np.minimum(due, 1.04 * p.hover_speed + 0.001 * tick)
        watch.update(0.01 * tick, speeds, due, due, thrust_of(p, speeds))
        assert not watch.warnings
        assert not watch.failed or tick > 350


def test_a_rotor_that_runs_away_is_found_though_the_battery_is_weak():
    """Five rotors turn at 263 rad/s, all that the battery gives, and one at 350."""
    p = VehicleParameters.load("scale_six")
    watch = RotorWatch(p)
    named = []
    for tick in range(300):
        due = swinging(p, 0.01 * tick)
        speeds = np.minimum(due, 0.94 * p.hover_speed - 1e-3 * tick)
        if tick >= 200:
            speeds[2] = 350.0 - 0.01 * tick
        moment = rotor_matrix(p)[1:] @ (np.square(speeds) - np.square(due))
        observer = SimpleNamespace(moment=moment, gain=np.full(3, 20.0))
        watch.update(0.01 * tick, speeds, due, due, thrust_of(p, speeds), observer)
        named.append(named_by(watch))
    assert named[150:200] == [{"battery"}] * 50
    assert named[230] == {"battery", "rotor 3"}
    assert named[299] <= {"battery", "rotor 3"}


@pytest.mark.parametrize("differ", [True, False])
def test_a_takeoff_that_the_battery_is_too_weak_for_accuses_no_rotor(differ):
    """Four rotors reach 187 of 248 rad/s; the wheels carry the rest, so the force is g."""
    p = VehicleParameters.load("scale_quad")
    watch = RotorWatch(p)
    seen = set()
    for tick in range(300):
        due = swinging(p, 0.01 * tick) if differ else np.full(4, p.hover_speed)
        due = due * min(0.008 * tick, 1.0)
        speeds = np.minimum(due, 187.0 - 1e-3 * tick)
        loads = p.static_load * (1.0 - thrust_of(p, speeds) / GRAVITY)
        watch.update(0.01 * tick, speeds, due, due, GRAVITY, loads=loads)
        seen |= named_by(watch)
    assert seen == {"battery"}


def test_rotors_that_spool_up_late_show_no_weak_battery():
    """The commands are 0.08 s late: all rotors turn alike at less than they should."""
    p = VehicleParameters.load("scale_six")
    watch = RotorWatch(p)
    due_at = lambda tick: np.full(6, p.hover_speed * min(max(0.008 * tick, 0.0), 1.0))  # noqa: E731
    for tick in range(300):
        speeds = due_at(tick - 8) + 1e-3 * tick
        due = due_at(tick)
        loads = p.static_load * (1.0 - thrust_of(p, speeds) / GRAVITY)
        watch.update(0.01 * tick, speeds, due, due, GRAVITY, loads=loads)
        assert not named_by(watch)
        assert watch.shows_delay


def test_encoders_that_seemed_to_lie_before_a_weak_battery_was_named_are_sound():
    """Three rotors are slower than expected while the body shows nothing: the battery's fault."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    watch.lying |= {rotor: f"the encoder of rotor {rotor + 1} lies" for rotor in (0, 2, 4)}
    for tick in range(100):
        due = swinging(p, 0.01 * tick)
        speeds = np.minimum(due, 0.95 * p.hover_speed - 1e-3 * tick)
        watch.update(0.01 * tick, speeds, due, due, thrust_of(p, speeds))
    assert named_by(watch) == {"battery"}
    assert not watch.lying
