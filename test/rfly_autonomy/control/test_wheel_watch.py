# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motors and brakes at fault differ from tyres that slip and from ground that holds them back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious.sensors.samples import JointSamples, SensorSamples
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import ChassisController, turn_in_common
from rfly_autonomy.control.speed_controller import SpeedController
from rfly_autonomy.control.wheel_watch import RateCheck, WheelStates, WheelWatch
from rfly_autonomy.estimation.estimate import Estimate

PARAMS = VehicleParameters.load("scale")


def wheels(slip, torque, speed=3.0, aside=0.0, load_share=1.0, steering=0.0):
    """Return wheels with slips and torques, N m, that carry a share of their load at rest."""
    slip = np.array(slip)
    return WheelStates(
        slip=slip,
        along=np.full(4, speed),
        across=np.full(4, aside * speed),
        steering=np.full(4, steering),
        rate=speed * (1.0 + slip) / PARAMS.rolling_radius,
        shown=np.ones(4, bool),
        torque=np.zeros(4) + torque,
        load=load_share * PARAMS.static_load,
    )


@pytest.mark.parametrize(
    ("slip", "torque", "speed", "fault"),
    [
        ((0.05, 0.0, 0.0, 0.0), 0.3, 3.0, "drive_fl"),
        ((0.05, -0.02, -0.03, -0.02), -2.4, 2.0, "drive_fl"),
        ((0.02, 0.02, -0.04, 0.02), 1.3, 2.7, "brake_rl"),
        ((-0.05, 0.0, 0.0, 0.0), -0.3, -2.0, "drive_fl"),
        ((0.05, 0.0, 0.0, 0.0), -0.3, -2.0, "brake_fl"),
        ((0.3, 0.02, 0.02, 0.02), 4.0, 2.0, None),
        ((-0.3, -0.02, -0.02, -0.02), -4.0, 2.0, None),
        ((0.008, 0.003, 0.002, 0.003), 0.3, 3.0, None),
        ((0.05, 0.05, 0.05, 0.05), 0.0, 3.0, None),
        ((0.05, 0.0, 0.0, 0.0), 0.3, 0.5, None),
    ],
    ids=[
        "pushes",
        "pushes against the brakes",
        "drags",
        "pushes backwards",
        "drags backwards",
        "spins on ice",
        "slides on ice",
        "sound",
        "speed is wrong",
        "slow",
    ],
)
def test_a_wheel_that_slips_against_its_torque_is_at_fault_after_half_a_second(
    slip, torque, speed, fault
):
    """5 N m are 5/0.11 N on 75 N of load with a stiffness of 14: 4.3 % of slip."""
    watch = WheelWatch(PARAMS)
    found = {}
    for k in range(100):
        watch.update(wheels(slip, torque, speed), speed, 0.02, 0.01)
        for part in watch.faults:
            found.setdefault(part, 0.01 * (k + 1))
    assert found == ({} if fault is None else {fault: pytest.approx(0.5, abs=0.011)})


@pytest.mark.parametrize("seed", range(4))
def test_noise_of_slips_hides_no_brake_that_drags_slightly(seed):
    """A tyre of 3.5 N m less than the others' 1.5 N m slips by 3 % back, and they by 1.5 % ahead.

    With 0.8 % of noise, one reading in 0.5 s seemed to be a wheel that rolls as it should.
    """
    random = np.random.default_rng(seed)
    watch = WheelWatch(PARAMS)
    for _ in range(80):
        slip = np.array((-0.03, 0.015, 0.02, 0.018)) + 0.008 * random.standard_normal(4)
        watch.update(wheels(slip, 1.5, 2.6), 2.6, 0.021, 0.01)
    assert list(watch.faults) == ["brake_fl"]


@pytest.mark.parametrize(
    ("slip", "torque", "more", "fault"),
    [
        ((0.2, 0.0, 0.0, 0.0), 0.5, {}, None),
        ((-0.03, 0.0, 0.0, 0.0), 0.1, {"aside": 0.3}, None),
        ((-0.8, 0.0, 0.0, 0.0), 0.3, {"aside": 0.3}, "brake_fl"),
        ((-1.0, 0.0, 0.0, 0.0), 0.3, {}, "brake_fl"),
        ((-1.5, 0.0, 0.0, 0.0), 0.3, {}, "drive_fl"),
        ((4.0, 0.0, 0.0, 0.0), 0.1, {}, "drive_fl"),
        ((4.0, 0.0, 0.0, 0.0), 0.1, {"load_share": 0.1}, None),
        ((4.0, 0.0, 0.0, 0.0), 0.1, {"speed": 0.6}, None),
        ((-0.04, 0.06, 0.06, 0.06), 0.5, {"doubt": 0.1}, None),
        ((0.05, 0.0, 0.0, 0.0), 0.1, {"steering": 0.4}, None),
        ((-0.49, -0.35, -0.35, -0.31), 0.1, {}, None),
    ],
    ids=[
        "spins by its own torque",
        "slides across",
        "slides across and drags",
        "is locked",
        "is driven backwards",
        "is driven",
        "hangs",
        "slow",
        "speed is uncertain",
        "slides unnoticed",
        "slides while most do",
    ],
)
def test_on_ice_only_what_the_ground_cannot_do_is_a_fault(slip, torque, more, fault):
    """Rolling takes 0.02 · 75 N · 0.11 m = 0.16 N m, and ice as much again.

    At 3 m/s three standard deviations of 0.1 m/s are 10 % of slip, and 0.5 m/s across are 6.5 %
    for a wheel that is steered by 0.4 rad. Where most wheels seem to slip by 35 %, the estimated
    speed is 1.5 times the true one, and one that slips by 49 % shows no more than they do.
    """
    watch = WheelWatch(PARAMS)
    more = {"speed": 3.0, "doubt": 0.02} | more
    doubt = more.pop("doubt")
    for _ in range(100):
        watch.update(wheels(slip, torque, **more), more["speed"], doubt, 0.01)
    assert list(watch.faults) == ([] if fault is None else [fault])


@pytest.mark.parametrize(("torque", "fault"), [(1.5, True), (1.05, True), (0.9, False)])
def test_a_bend_on_ground_that_is_no_ice_hides_no_brake(torque, fault):
    """1.5 N m are 18 % of the load of 75 N at 0.11 m, more than ice takes, and 0.9 N m are 11 %.

    1.05 N m are 12.7 %: a drive on grippy ground with a brake that drags by 5 N m takes as much.

    By 0.5 m/s across, wheels that are steered by 0.25 rad would seem to slip by 6 % at 2 m/s.
    """
    watch = WheelWatch(PARAMS)
    for _ in range(100):
        now = wheels((-0.002, -0.04, 0.0, 0.011), torque, 2.0, steering=0.25)
        watch.update(now, 2.0, 0.02, 0.01)
    assert list(watch.faults) == (["brake_fr"] if fault else [])


@pytest.mark.parametrize("counts", [False, True])
def test_a_rate_that_its_angle_does_not_show_is_no_fault_of_a_drive(counts):
    """A bias of 5 rad/s is noticed after 0.1 s · ln(5 / 4.5): the second gap. One spins up."""
    check = RateCheck(2)
    dt = 0.01
    for tick in range(100):
        time = dt * tick
        angle = np.array((27.0 * time, 0.5 * 800.0 * time**2))
        spun = 800.0 * (time - 0.5 * dt * counts)
        shown = check.agrees(angle, np.array((27.0 + 5.0 * (tick >= 50), spun)), time)
        assert shown.tolist() == [tick < 52, True]

    watch = WheelWatch(PARAMS)
    for _ in range(100):
        lies = wheels((0.2, 0.0, 0.0, 0.0), 0.1)._replace(shown=np.arange(4) > 0)
        watch.update(lies, 3.0, 0.02, 0.01)
    assert not watch.faults


@pytest.mark.parametrize("rate", [3.0, 5.0, 8.0, 100.0])
def test_encoders_of_any_rate_show_what_wheels_do(rate):
    """The second reading with 5 rad/s too much shows it. A pause of ten seconds hides nothing."""
    check = RateCheck(1)
    for tick in range(40):
        time = tick / rate + 10.0 * (tick >= 20)
        lie = 5.0 * (tick >= 30)
        shown = check.agrees(np.array([27.0 * time]), np.array([27.0 + lie]), time)
        assert bool(shown[0]) is (tick <= 30 or (rate == 100.0 and tick < 32))


def test_slips_from_before_an_assisted_drive_count_no_more():
    watch = WheelWatch(PARAMS)
    for tick in range(80):
        if tick == 40:
            watch.skip_slips()
        watch.update(wheels((-0.05, 0.0, 0.0, 0.0), 0.3), 3.0, 0.02, 0.01)
    assert not watch.faults


def test_an_unnoticed_slide_of_steered_wheels_accuses_no_others():
    """The estimate on ice of friction 0.06 missed 0.1 m/s forwards and 0.5 m/s across.

    Steered by 0.5 rad, all wheels roll with hardly any torque. The rear ones seem to slip by 7 %,
    the front ones the other way, which takes the middle along.
    """
    steering = np.array((0.617, 0.417, 0.0, 0.0))
    along = np.array((1.316, 1.547, 1.289, 1.49))
    missed = 0.1 * np.cos(steering) - 0.5 * np.sin(steering)
    now = wheels(missed / along, 0.085, 1.4)._replace(along=along, steering=steering)
    watch = WheelWatch(PARAMS)
    for _ in range(100):
        watch.update(now, 1.4, 0.02, 0.01)
    assert not watch.faults


def test_a_wheel_that_rolls_backwards_while_the_vehicle_slides_across_is_sound():
    """Rolling holds it with up to 0.16 N m, so that 0.1 N m forwards let it turn too slowly."""
    watch = WheelWatch(PARAMS)
    for _ in range(100):
        watch.update(wheels((0.5, 0.0, 0.0, 0.0), 0.1, speed=-1.5, aside=-3.0), 2.0, 0.02, 0.01)
    assert not watch.faults


def test_a_wheel_that_has_spun_slows_down_by_itself():
    """Ice takes 0.3 N m and rolling 0.16: 77 rad/s² for 0.006 kg m², 0.78 s from 60 rad/s."""
    watch = WheelWatch(PARAMS)
    rolls = 3.0 / PARAMS.rolling_radius[0]
    spin = rolls + 60.0
    for _ in range(100):
        now = wheels((spin / rolls - 1.0, 0.0, 0.0, 0.0), 0.0)
        watch.update(now, 3.0, 0.02, 0.01)
        spin = max(spin - 0.77, rolls)
    assert not watch.faults


@pytest.mark.parametrize(
    ("torque", "speed", "sound_at"),
    [(0.3, 3.0, 3.139), (4.0, 3.0, None), (0.3, 0.5, None), (0.3, -3.0, 3.139)],
    ids=["coasts", "hidden by its own torque", "slow", "backwards"],
)
@pytest.mark.parametrize("part", ["drive", "brake"])
def test_a_wheel_that_slips_as_the_others_again_is_sound_again(part, torque, speed, sound_at):
    """It does from 1 s on, and is believed 2 s later, where a fault would show.

    Averaged over 0.1 s, 5 % of slip are 1.25 % after ln(4) · 0.1 s = 0.139 s.
    """
    forwards = math.copysign(1.0, speed)
    sign = forwards if part == "drive" else -forwards
    fault = f"{part}_rr"
    watch = WheelWatch(PARAMS)
    named = []
    for k in range(500):
        wrong = k < 100
        slip = np.array((0.0, 0.0, 0.0, 0.05 * sign * wrong))
        own = 0.3 * forwards if wrong else sign * torque
        now = speed if not wrong else 3.0 * forwards
        watch.update(wheels(slip, own, now), now, 0.02, 0.01)
        if fault in watch.faults:
            named.append(0.01 * (k + 1))
        assert set(watch.faults) <= {fault}

    assert named[0] == pytest.approx(0.5, abs=0.011)
    assert named[-1] == pytest.approx(5.0 if sound_at is None else sound_at, abs=0.021)


def watched_drive(wanted, power=1.0, held=0.0, name="scale", noise=0.0):
    """Return when a battery is named in a drive, s after something happens at 3 s; None: never.

    The vehicle is a mass on level ground. `wanted(t)`: speed, m/s. From 3 s on its motors give
    the share `power` of their force, and the ground holds it back by `held` m/s².
    """
    p = VehicleParameters.load(name)
    controller = SpeedController(p)
    watch = WheelWatch(p)
    noises = noise * np.random.default_rng(1).standard_normal(1000)
    speed = motor = 0.0
    dt = 0.01

    for tick in range(1000):
        since = dt * tick - 3.0
        happened = since >= 0.0
        seen = speed + noises[tick]
        drive, brake = controller.torques(wanted(since), seen, dt)
        if brake.any():
            watch.skip_power()
        else:
            watch.watch_power(controller.motor_force, controller.resistance(seen, 0.0), seen, dt)
        if "battery" in watch.faults:
            return since

        force = float((drive / p.rolling_radius).sum()) * (power if happened else 1.0)
        motor += (1.0 - math.exp(-dt / p.drive_lag)) * (force - motor)
        against = controller.resistance(speed, 0.0) + float((brake / p.rolling_radius).sum())
        against += p.effective_mass * held * happened
        speed += dt * (motor - against) / p.effective_mass
    return None


@pytest.mark.parametrize("name", ["scale", "full"])
@pytest.mark.parametrize("slowing", [0.0, 0.5, 1.0])
def test_motors_without_power_are_named_while_the_vehicle_coasts(name, slowing):
    """It is to keep 3 m/s or to slow down, m/s²; without power it does neither.

    Rolling alone slows it down by 0.18 m/s² and more, which hides that for a moment.
    """
    named = watched_drive(lambda since: 3.0 - slowing * max(since, 0.0), power=0.0, name=name)
    assert named is not None
    assert 0.4 < named < 2.6


@pytest.mark.parametrize("speed", [1.5, exhaustively(3.0), 5.0])
@pytest.mark.parametrize("held", [0.0, 0.7, 4.0, *map(exhaustively, (0.3, 1.2, 2.0, 3.0))])
def test_soft_ground_is_no_dead_battery(speed, held):
    """The wheels' motors give 13.6 m/s² at most."""
    assert watched_drive(lambda _: speed, held=held) is None
    assert watched_drive(lambda _: speed, held=held, noise=0.02) is None


def test_motors_with_half_of_their_power_still_have_some():
    assert watched_drive(lambda _: 3.0, power=0.5) is None


HEADWIND = 18.0
"""Force of a headwind, N."""


@pytest.mark.parametrize("lost", [False, True])
def test_a_headwind_neither_is_a_dead_battery_nor_hides_one(lost):
    """A slope leaves 2 N of resistance, and 20 N of command less 18 N of wind keep the speed.

    Without power 20 N slow down 32 kg by 0.62 m/s², and the speed controller doubles its command
    every 0.35 s: the gain of its observer is 2 1/s.
    """
    watch = WheelWatch(PARAMS)
    resistance = 2.0
    slowing = (resistance + HEADWIND) / PARAMS.effective_mass * lost
    dt = 0.01
    for tick in range(-500, 200):
        since = max(dt * tick, 0.0)
        command = (resistance + HEADWIND) * (math.exp(2.0 * since) if lost else 1.0)
        watch.watch_power(command, resistance, 2.5 - slowing * since, dt)
        if "battery" in watch.faults:
            break
    if lost:
        assert 0.4 < since < 1.5
    else:
        assert not watch.faults


@pytest.mark.parametrize(
    ("fall", "within", "named"),
    [(1.0, 0.0, True), (1.0, 2.0, False), (0.6, 0.0, False), (1.6, 0.0, False)],
    ids=["lost", "slowly", "gust", "struck"],
)
def test_a_force_that_is_gone_at_once_is_a_dead_battery_whatever_the_command(fall, within, named):
    """A headwind needs 20 N of force, which falls by a share of that within some seconds.

    The observer has seen 0.8 of a fall after ln(5) / (5 1/s) = 0.32 s, and 0.2 s more are awaited.
    A gust takes less, and who is struck loses more.
    """
    watch = WheelWatch(PARAMS)
    command = HEADWIND + 2.0
    dt = 0.01
    speed = 2.5
    for tick in range(-500, 150):
        share = fall * min(max(dt * tick, 0.0) / within, 1.0) if within else fall * (tick >= 0)
        speed -= dt * share * command / PARAMS.effective_mass
        watch.watch_power(command, 2.0, speed, dt)
        if "battery" in watch.faults:
            break
    assert bool(watch.faults) is named
    if named:
        assert 0.48 < dt * tick < 0.56


@pytest.mark.parametrize(("slip", "named"), [(0.06, "drive_rl"), (0.0, "battery")])
@pytest.mark.parametrize("push", [40.0, 60.0])
def test_a_motor_that_pushes_has_power_though_the_others_brake_in_vain(push, slip, named):
    """A motor pushes with some 0.5 m/s² or more, slope or wind would do the same to all wheels.

    The speed is to be 2 m/s, with a gain of 1.5 1/s.
    """
    watch = WheelWatch(PARAMS)
    mass = PARAMS.effective_mass
    dt = 0.01
    speed = 2.0
    seen = set()
    for tick in range(-300, 300):
        pushes = tick >= 0
        told = 2.0 + mass * 1.5 * (2.0 - speed)
        braked = told if slip or not pushes else 0.0
        speed += dt * (braked + push * pushes - 2.0) / mass
        each = told * PARAMS.rolling_radius.mean() / 4.0
        watch.update(wheels((0.0, 0.0, slip * pushes, 0.0), each, speed), speed, 0.02, dt)
        watch.watch_power(told, 2.0 - (0.0 if slip else push * pushes), speed, dt)
        seen |= set(watch.faults)
    assert seen == {named}


def test_a_battery_that_dies_after_a_motor_has_pushed_is_named_too():
    """The motor is named for 3 s. Without power, nothing pushes, and the vehicle rolls to a stop.

    The speed is to be 3 m/s then, with a gain of 1.5 1/s.
    """
    watch = WheelWatch(PARAMS)
    mass = PARAMS.effective_mass
    dt = 0.01
    speed = 2.0
    for tick in range(-600, 200):
        pushes = -300 <= tick < 0
        is_dead = tick >= 0
        told = 2.0 + mass * 1.5 * (2.0 + is_dead - speed)
        speed += dt * ((0.0 if is_dead else told) - 2.0) / mass
        each = told * PARAMS.rolling_radius.mean() / 4.0
        watch.update(wheels((0.0, 0.0, 0.06 * pushes, 0.0), each, speed), speed, 0.02, dt)
        watch.watch_power(told, 2.0, speed, dt)
        if tick == -1:
            assert set(watch.faults) == {"drive_rl"}
            assert not watch.no_power
    assert watch.no_power


@pytest.mark.parametrize(
    ("apart", "steered", "turn"),
    [
        # a yaw rate that is 0.5 rad/s off, with a track of 0.56 m
        ((-0.14, 0.14, -0.14, 0.14), 0.3, 0.28),
        ((0.14, -0.14, 0.2, -0.14), -0.3, -0.28),
        # one wheel at fault
        ((0.3, 0.0, 0.0, 0.0), -0.3, 0.0),
        ((0.3, 0.0, -0.01, 0.01), -0.3, 0.0),
        # those of one side, on a straight way
        ((0.3, 0.0, 0.3, 0.0), 0.02, 0.0),
        ((0.3, 0.0, 0.3, 0.0), -0.02, -0.02),
    ],
)
def test_a_wrong_yaw_rate_parts_right_and_left_wheels_of_all_axles_alike(apart, steered, turn):
    assert turn_in_common(np.array(apart), steered) == pytest.approx(turn)


@pytest.mark.parametrize(
    ("left", "turns", "named"),
    [(0.24, 0.0, ["drive_fl", "drive_rl"]), (-0.24, 0.0, ["brake_fl", "brake_rl"]), (0.0, 0.5, [])],
    ids=["driven", "braked", "wrong yaw rate"],
)
def test_two_wheels_of_one_side_at_fault_are_no_turn(left, turns, named):
    """An estimate has 3 m/s and no yaw rate. Left wheels are 8 % off, or it turns nevertheless."""
    chassis = ChassisController(PARAMS)
    position = PARAMS.hub_position
    along = 3.0 + left * (position[:, 1] > 0.0) - turns * position[:, 1]
    rate = along / PARAMS.rolling_radius
    steering = math.atan(PARAMS.wheelbase * turns / 3.0)
    angles = np.where(PARAMS.steering_sign, steering, 0.0)[None]
    still = np.zeros((1, 6))
    for tick in range(100):
        time = 0.01 * tick
        turned = JointSamples(
            np.array([time]),
            rate[None] * time,
            rate[None],
            angles,
            0.0 * angles,
            0.0 * angles,
            still,
            still,
        )
        chassis.sense(SensorSamples(joints=turned))
        chassis.set_speed(3.0, steering, time)
        velocity = np.array((3.0, 0.0, 0.0))
        level = np.array((0.0, 0.0, 0.0, 1.0))
        chassis.step(Estimate(time, np.zeros(3), level, velocity, np.zeros(3)), Mode.DRIVE, 0.01)
    assert sorted(chassis.wheel_watch.faults) == named


def test_readings_that_are_too_old_accuse_no_steering():
    """They come 1 s late, from the straight way before a bend, in which the vehicle slides."""
    chassis = ChassisController(PARAMS)
    level = np.array((0.0, 0.0, 0.0, 1.0))
    velocity = np.array((2.0, 0.0, 0.0))
    still = np.zeros((1, 6))
    zero = np.zeros((1, 4))
    for tick in range(200):
        time = 0.01 * tick
        rate = np.full((1, 4), 2.0) / PARAMS.rolling_radius
        late = JointSamples(
            np.array([time - 1.0]), rate * time, rate, zero, zero, zero, still, still
        )
        chassis.sense(SensorSamples(joints=late))
        chassis.set_speed(2.0, 0.2 if time > 1.0 else 0.0, time)
        rates = np.array((0.0, 0.0, 0.2 if time > 1.1 else 0.0))  # a third of what is due
        chassis.step(Estimate(time, np.zeros(3), level, velocity, rates), Mode.DRIVE, 0.01)
    assert not chassis.steering_watch.text


def test_a_battery_that_is_dead_in_a_drive_stays_dead_until_the_vehicle_is_disarmed():
    """The wheels brake in the next drive as well; a fault of one wheel is judged anew."""
    chassis = ChassisController(PARAMS)
    estimate = Estimate(0.0, np.zeros(3), np.array((0.0, 0.0, 0.0, 1.0)), np.zeros(3), np.zeros(3))
    chassis.step(estimate, Mode.DRIVE, 0.01)
    chassis.wheel_watch.faults |= {"battery": "it is dead", "drive_fl": "it pushes"}
    for mode in (Mode.TAKEOFF, Mode.LAND, Mode.SPOOL_DOWN, Mode.DRIVE):
        command = chassis.step(estimate, mode, 0.01)
        assert chassis.wheel_watch.faults == {"battery": "it is dead"}
    assert command.brake_torque.min() > 0.0
    chassis.step(estimate, Mode.DISARMED, 0.01)
    assert not chassis.wheel_watch.no_power
