# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A vehicle that is to drive on and stays at its place is stuck after a time; others are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from control_rig import Rig

from rfly_amphibious.sensors.samples import JointSamples
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import ChassisController
from rfly_autonomy.control.stuck import SteeringWatch, StuckLimits, StuckWatch
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


@pytest.mark.parametrize("phase", [0.0, 1.0, 3.0])
def test_a_vehicle_that_slides_back_again_and_again_is_stuck(phase):
    """It goes up and down by 2.8 m every 4 s; all its places are old ones after half of that."""
    time = stuck_at(2.0, lambda t: (1.4 * math.sin(math.pi * t / 2.0 + phase), 0.0))
    assert 10.0 <= time <= 14.0


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


def readings(time, steering, wheel_angle):
    """Return readings of the encoders at a time, s: the virtual steering, rad, and a wheel, rad."""
    # Ackermann: 0.66 m / tan from the rear axle, 0.28 m more or less to the wheels
    away = 0.66 / math.tan(steering) if steering else math.inf
    left = math.atan(0.66 / (away - 0.28))
    right = math.atan(0.66 / (away + 0.28))
    zero = np.zeros((1, 4))
    angles = np.array([[left, right, 0.0, 0.0]])
    turned = np.full((1, 4), wheel_angle)
    rotors = np.zeros((1, 6))
    return JointSamples(np.array([time]), turned, zero, angles, zero, zero, rotors, rotors)


@pytest.mark.parametrize(
    ("measured", "turns", "frozen", "found"),
    [
        (lambda due: 0.4, lambda due: 0.4, False, True),
        (lambda due: due + 0.1, lambda due: due + 0.1, False, True),
        (lambda due: due + 0.1, lambda due: due, False, False),
        (lambda due: 0.4, lambda due: 0.4, True, False),
        (lambda due: due, lambda due: due, False, False),
    ],
    ids=["stuck", "biased", "encoder biased", "encoders frozen", "healthy"],
)
def test_a_steering_that_does_not_follow_its_command_is_told(measured, turns, frozen, found):
    """Commands swing by 0.2 rad at 2 m/s; the yaw rate is V tan(angle)/L. Within 2 s."""
    watch = SteeringWatch(VehicleParameters.load("scale"))
    due = 0.0
    for tick in range(200):
        time = 0.01 * tick
        commanded = 0.2 * math.sin(2.0 * time)
        due += (1.0 - math.exp(-0.01 / 0.03)) * (commanded - due)
        yaw_rate = 2.0 * math.tan(turns(due)) / 0.66
        turned = 0.0 if frozen else 18.0 * time
        watch.update(readings(time, measured(due), turned), commanded, 2.0, yaw_rate)
    assert bool(watch.text) is found
    if found:
        assert watch.text.startswith("the steering is at ")


@pytest.mark.parametrize(
    ("swing", "measured", "turns", "found"),
    [
        (0.03, lambda due: 0.5 * due + 0.02, lambda due: 0.5 * due + 0.02, True),
        (0.017, lambda due: 0.5 * due, lambda due: 0.5 * due, True),
        (0.03, lambda due: -due, lambda due: -due, True),
        (0.03, lambda due: 0.8 * due, lambda due: 0.8 * due, False),
        (0.03, lambda due: due + 0.04, lambda due: due + 0.04, False),
        (0.03, lambda due: 0.5 * due, lambda due: due, False),
    ],
    ids=["half", "half of little", "reversed", "nearly all", "trim", "encoder shows half"],
)
def test_a_steering_that_turns_half_is_told_from_small_turns(swing, measured, turns, found):
    """The angle is wrong by 0.015 rad at most, besides trim and a reversed one."""
    watch = SteeringWatch(VehicleParameters.load("scale"))
    due = 0.0
    for tick in range(200):
        time = 0.01 * tick
        commanded = swing * math.sin(4.0 * time)
        due += (1.0 - math.exp(-0.01 / 0.03)) * (commanded - due)
        yaw_rate = 2.0 * math.tan(turns(due)) / 0.66
        watch.update(readings(time, measured(due), 18.0 * time), commanded, 2.0, yaw_rate)
    assert bool(watch.text) is found


@pytest.mark.parametrize(("late", "share", "found"), [(0.12, 1.0, False), (0.08, 0.5, True)])
def test_a_steering_that_obeys_late_commands_is_sound(late, share, found):
    """It makes all of its turns, or half of them; commands change after 1 s of a straight way."""
    watch = SteeringWatch(VehicleParameters.load("scale"))

    def command(time):
        return 0.2 * math.sin(4.0 * max(time - 1.0, 0.0))

    angle = 0.0
    for tick in range(400):
        time = 0.01 * tick
        angle += (1.0 - math.exp(-0.01 / 0.03)) * (share * command(time - late) - angle)
        yaw_rate = 2.0 * math.tan(angle) / 0.66
        watch.update(readings(time, angle, 18.0 * time), command(time), 2.0, yaw_rate)
    assert bool(watch.text) is found


def test_a_steering_is_sound_before_it_is_known_how_late_its_commands_are():
    """It turns as much as it should, but by 0.1 s late: by up to 1.4 rad of its swings."""
    watch = SteeringWatch(VehicleParameters.load("scale"))

    def command(time):
        return 0.03 * (math.sin(9.0 * time) + math.sin(14.0 * time)) if time > 0.0 else 0.0

    angle = 0.0
    for tick in range(300):
        time = 0.01 * tick
        angle += (1.0 - math.exp(-0.01 / 0.03)) * (command(time - 0.1) - angle)
        yaw_rate = 2.0 * math.tan(angle) / 0.66
        watch.update(readings(time, angle, 18.0 * time), command(time), 2.0, yaw_rate)
    assert not watch.text


def test_with_a_stuck_steering_it_stops_instead_of_circling():
    """The vehicle once circled to the end of the mission."""
    rig = Rig("scale", rate=100.0)
    rig.sim.inject(Fault(1.5, "steering", FaultKind.STUCK, (0.4,)))
    rig.run(0.3, until=lambda r: r.flight.request("arm") == "")
    rig.run(1.5, lambda r: r.chassis.set_speed(2.0, 0.05))
    run = rig.run(2.5, lambda r: r.chassis.set_speed(2.0, 0.05))
    assert "instead of 0.05" in rig.chassis.steering_watch.text
    assert math.hypot(run.vx[-1], run.vy[-1]) < 0.05
