# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flights and drives in strong wind, and with parts that disobey."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from control_rig import Rig
from marks import exhaustively

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_autonomy.control.attitude_controller import (
    AttitudeController,
    AttitudeSetpoint,
    Mixer,
    MomentObserver,
)
from rfly_autonomy.control.flight_modes import FlightModes
from rfly_autonomy.control.modes import ModeLogic
from rfly_autonomy.control.pilot import Pilot, timed_setpoints
from rfly_autonomy.control.rotor_evidence import LoadEvidence, ThrustByMotion
from rfly_autonomy.control.rotor_link import RotorLink
from rfly_autonomy.control.rotor_watch import RotorWatch
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.control.touch_down import Cue
from rfly_autonomy.estimation.estimate import EstimatedMotion
from rfly_common.frames import rotation_matrix
from rfly_common.physics import GRAVITY

UP = np.array((0.0, 0.0, GRAVITY))
"""Specific thrust of a hovering vehicle, m/s²."""

LEVEL = EstimatedMotion(np.zeros(3), np.zeros(3), np.eye(3), np.zeros(3))


def test_a_landing_in_wind_holds_its_place():
    """The wind takes 10.3° of tilt; a landing that was limited to 10° drifted with 3 m/s."""
    model = AmphibiousModel(VehicleParameters.load("scale"))
    place = (0.0, 0.0, 1.2)
    setpoints = [Setpoint(0.0, target=place), Setpoint(3.5, Mode.LAND, target=place)]
    pilot = Pilot(model, timed_setpoints(setpoints), Mode.FLIGHT)

    run = model.run(model.flying(place), pilot, 6.0, wind=Wind((14.0, 0.0, 0.0)))
    touch = int(np.argmax(run.outputs.wheel_load.any(axis=1)))
    assert run.time[touch] > 3.5
    east, north, up = run.x[touch, 3:6]
    assert np.hypot(east, north) < 0.4
    assert -up < 1.2


def test_a_steady_moment_is_learned_and_leaves_no_tilt():
    """A rigid body under the shipped loop, with the lag of its rotors.

    The centre of mass is 2 cm to the side: 294 N · 0.02 m = 5.88 N m. Without the observer it tilts
    by d/(J_xx ω²) = 5.88/(1.38 · 49) rad = 5°.
    """
    p = VehicleParameters.load("scale")
    loop = AttitudeController(p)
    shift = np.array((p.mass * GRAVITY * 0.02, 0.0, 0.0))
    rotation = np.eye(3)
    rates = np.zeros(3)
    dt = 0.01
    tilts = []

    for _ in range(300):
        motion = EstimatedMotion(np.zeros(3), np.zeros(3), rotation, rates)
        loop.advance(motion, dt, airborne=True)
        loop.rotor_speeds(AttitudeSetpoint(294.2, UP), motion)
        moment = Mixer(p).wrench(loop.expected)[1:] + shift
        rates = rates + dt * np.linalg.solve(p.total_inertia, moment)
        x, y, z = (0.5 * dt * rates).tolist()
        rotation = rotation @ rotation_matrix((x, y, z, 1.0))
        tilts.append(math.degrees(math.acos(min(rotation[2, 2], 1.0))))

    assert loop.observer.moment == pytest.approx(shift, abs=0.02)
    assert max(tilts) < 4.0
    assert tilts[-1] < 0.05
    loop.advance(motion, dt, airborne=False)
    assert loop.observer.moment == pytest.approx(shift, abs=0.02), "the ground teaches nothing"


@pytest.mark.parametrize("speed", [0.0, 120.0, 350.0])
@pytest.mark.parametrize("rotor", [0, 2])
def test_five_rotors_make_up_for_one_that_is_stuck(rotor, speed):
    p = VehicleParameters.load("scale")
    loop = AttitudeController(p)
    loop.set_failed_rotors((rotor,))
    loop.note_speeds(np.full(6, speed))
    assert loop.can_hover()

    speeds = loop.rotor_speeds(AttitudeSetpoint(300.0, UP), LEVEL)
    assert speeds.max() <= p.max_rotor_speed
    speeds[rotor] = speed
    assert Mixer(p).wrench(speeds)[:3] == pytest.approx((300.0, 0.0, 0.0), abs=1e-6)


@pytest.mark.parametrize(("name", "can"), [("scale", True), ("scale_quad", False)])
def test_whether_the_others_can_hover_without_a_rotor(name, can):
    """Two of four carry 2 · 0.0012 · 350² N = 294.0 N at most, and the weight is 294.2 N."""
    loop = AttitudeController(VehicleParameters.load(name))
    assert loop.can_hover()
    loop.set_failed_rotors((1,))
    assert loop.can_hover() is can


def watched(seconds, speed_of):
    """Return a watch over six rotors whose commands swing by 4 %.

    `speed_of(time, expected)`: measured speeds.
    """
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    for tick in range(round(seconds / 0.01)):
        swing = 0.04 * math.sin(4.0 * 0.01 * tick + 1.0)
        expected = np.full(6, p.hover_speed * (1.0 + swing))
        watch.update(0.01 * tick, speed_of(0.01 * tick, expected), expected, expected)
    return watch


def test_encoders_that_all_lie_blame_no_rotor_while_rotors_spool_down():
    """The encoders show 79 rad/s too little, as sizes: also 79 rad/s of rotors that rest."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    named = set()
    begin = p.hover_speed * np.array((1.3, 1.3, 1.3, 0.7, 0.7, 0.7))
    for tick in range(600):
        time = 0.01 * tick
        expected = begin * (1.0 + 0.04 * math.sin(4.0 * time))
        expected = expected * math.exp(-max(time - 2.0, 0.0) / 0.6)
        speeds = np.abs(expected - (79.0 if time > 1.0 else 0.0))
        watch.update(time, speeds, expected, expected)
        named |= set(watch.warnings)
    assert not watch.failed
    assert named == {"encoders"}


def descent(velocity, seconds, knows_speed=True, wheels_down=0.0):
    """Return how far the held height of an ABORT at this velocity sinks, m."""
    modes = FlightModes(VehicleParameters.load("scale"), ModeLogic(Mode.ABORT))
    modes.logic.contact.wheels_down = wheels_down
    modes.knows_speed = knows_speed
    now = LEVEL._replace(position=np.array((0.0, 0.0, 2.0)), velocity=np.array(velocity))
    modes.enter(Mode.ABORT, now)
    for _ in range(round(seconds / 0.02)):
        modes.update(Mode.ABORT, now, 1.5, None, 0.02)
    return 2.0 - modes.position[2]


@pytest.mark.parametrize(
    ("speed", "knows_speed", "seconds", "sunk"),
    [
        (0.7, True, 1.0, 0.5),
        (1.0, True, 2.0, 0.0),
        (1.0, False, 1.0, 0.5),
        (1.0, True, 4.0, 0.5),
    ],
    ids=["slow", "brakes", "knows no speed", "not for ever"],
)
def test_a_descent_brakes_before_it_sinks(speed, knows_speed, seconds, sunk):
    """It sinks by 0.5 m/s, but not above 0.8 m/s across in the first 3 s."""
    assert descent((speed, 0.0, 0.0), seconds, knows_speed) == pytest.approx(sunk, abs=0.011)


def test_a_descent_gains_speed_anew_after_braking():
    """It sinks for 1.5 s, brakes for 1 s, and has another second until it counts as stalled."""
    modes = FlightModes(VehicleParameters.load("scale"), ModeLogic(Mode.ABORT))
    modes.enter(Mode.ABORT, LEVEL)
    presses = []
    for tick in range(200):
        time = 0.02 * tick
        modes.logic.since = time
        modes.logic.touch_down.cues = {Cue.SINK: time >= 1.5}
        speed = 2.0 if 1.5 <= time < 2.5 else 0.0
        now = LEVEL._replace(velocity=np.array((speed, 0.0, 0.0)))
        modes.update(Mode.ABORT, now, 1.5, None, 0.02)
        presses.append(modes.press)
    pressed = 0.02 * int(np.argmax(np.array(presses) > 0.0))
    assert pressed == pytest.approx(3.5, abs=0.05)


@pytest.mark.parametrize("wheels_down", [4.0, math.nan])
def test_wheels_on_the_ground_brake_no_descent(wheels_down):
    """Unknown loads are none."""
    sunk = 0.5 if wheels_down == 4.0 else 0.0
    assert descent((1.0, 0.0, 0.0), 1.0, wheels_down=wheels_down) == pytest.approx(sunk, abs=0.011)


def test_a_descent_returns_slowly_to_its_place():
    """The vehicle, 3 m off and at rest, wants 0.5 m/s; its law would want 3 m times its gain."""
    p = VehicleParameters.load("scale")
    assert 3.0 * p.position_gain > 0.5
    modes = FlightModes(p, ModeLogic(Mode.ABORT))
    modes.enter(Mode.ABORT, LEVEL)
    away = LEVEL._replace(position=np.array((3.0, 0.0, 0.0)))
    modes.update(Mode.ABORT, away, 1.5, None, 0.02)
    modes.rotor_speeds(away)

    # the thrust leans back by the wanted acceleration
    assert modes._setpoint is not None
    assert modes._setpoint.acceleration[:2] == pytest.approx((-0.5 * p.velocity_gain, 0.0))


def with_rotor(rotor, speed):
    """Return the speeds of rotors that all follow but one."""
    return lambda _, expected: np.where(np.arange(6) == rotor, speed(expected), expected)


def resting_for(seconds):
    """Return speeds of rotors; the first one rests for some seconds."""
    rests = lambda time: 0.5 <= time < 0.5 + seconds  # noqa: E731
    return lambda time, expected: np.append(244.0 if rests(time) else expected[0], expected[1:])


@pytest.mark.parametrize(
    ("speed_of", "failed", "warnings"),
    [
        (lambda _, expected: expected + 3.0, {}, []),
        (with_rotor(2, lambda _: 256.0), {2: "rotor 3 is stuck at 256 rad/s"}, []),
        (with_rotor(0, lambda _: 0.0), {0: "rotor 1 failed"}, []),
        (with_rotor(5, lambda expected: 0.7 * expected), {}, ["rotor 6"]),
        (resting_for(0.1), {}, []),
        (lambda _, expected: np.full(6, 250.0), {}, ["encoders"]),
        (lambda _, expected: np.zeros(6), {}, []),
        (with_rotor(1, lambda _: math.nan), {}, []),
        (lambda time, expected: np.full(6, time), {}, ["encoders"]),
        (lambda _, expected: expected + 50.0, {}, ["encoders"]),
        (lambda time, expected: expected + 15.0 * math.cos(300.0 * time), {}, ["encoders"]),
        (lambda _, expected: np.full(6, 100.0), {}, ["encoders"]),
    ],
    ids=[
        "healthy",
        "stuck",
        "stands",
        "weak",
        "rests",
        "frozen",
        "standing",
        "unmeasured",
        "nonsense",
        "biased",
        "noisy",
        "wrong",
    ],
)
def test_rotors_that_do_not_follow_are_told_from_encoders_that_lie(speed_of, failed, warnings):
    watch = watched(1.5, speed_of)
    assert watch.failed == failed
    assert list(watch.warnings) == warnings


@pytest.mark.parametrize("lift", [8.0, 9.8, 13.0])
def test_encoders_that_show_too_high_speeds_accuse_neither_rotors_nor_battery(lift):
    """They pass the limit of 21 rad/s one after the other, and a climb has more force."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    seen = set()
    for tick in range(300):
        time = 0.01 * tick
        shown = 27.0 + 8.0 * np.sin(2.0 * time + 0.9 * np.arange(6))
        due = np.full(6, p.hover_speed * (1.0 + 0.04 * math.sin(4.0 * time)))
        watch.update(time, due + shown, due, due, lift)
        seen |= set(watch.warnings)
    assert seen == {"encoders"}
    assert not watch.failed


@pytest.mark.parametrize("others", [0.0, 0.3])
def test_a_link_is_judged_no_more_when_only_a_failed_rotor_turns(others):
    """Rotors that spool down by their commands have a share `others` of the speed in hover."""
    p = VehicleParameters.load("scale")
    loop = AttitudeController(p)
    modes = FlightModes(p, ModeLogic(Mode.ABORT), loop)
    link = RotorLink(loop, 0.0)
    modes.set_failed_rotors(frozenset((2,)))
    loop.command_age.age = 0.1
    loop.commanded = np.full(6, (others or 1e-6) * p.hover_speed)
    loop.expected = loop.commanded.copy()
    loop.expected[2] = 200.0
    link.rest(modes)
    assert list(link.warnings) == (["link"] if others else [])


def test_a_rotor_that_is_stuck_in_a_hover_is_held_by_the_others():
    """A quadrotor keeps its attitude if the stuck rotor's thrust is known, and only then."""
    loop = AttitudeController(VehicleParameters.load("scale_quad"))
    loop.set_failed_rotors((0,))
    assert not loop.can_hover()
    loop.note_speeds(np.array((250.0, math.nan, 0.0, 0.0)))
    assert loop.can_hover()


@pytest.mark.parametrize(("lack", "failed"), [(0.15, []), (0.17, [2])])
def test_a_rotor_that_lacks_much_of_its_thrust_has_failed(lack, failed):
    """The rotor is to push 0.24 of the weight and lacks a share of it for a second."""
    p = VehicleParameters.load("scale")
    watch = RotorWatch(p)
    due = np.full(6, p.hover_speed * math.sqrt(6.0 * 0.24))
    speeds = due.copy()
    speeds[2] *= math.sqrt(1.0 - lack / 0.24)
    for tick in range(100):
        swing = 1.0 + 0.02 * math.sin(0.04 * tick)
        watch.update(0.01 * tick, swing * speeds, swing * due, swing * due)
    assert list(watch.failed) == failed
    assert watch.failed or list(watch.warnings) == ["rotor 3"]


@pytest.mark.parametrize(("share", "failed"), [(0.82, []), (0.67, [0])])
def test_a_rotor_that_an_empty_battery_slows_down_has_not_failed(share, failed):
    """One of four is to turn at the largest speed for a second, as in a turn in the wind."""
    p = VehicleParameters.load("scale_quad")
    watch = RotorWatch(p)
    due = np.full(4, p.hover_speed)
    due[0] = p.max_rotor_speed
    speeds = due.copy()
    speeds[0] *= share
    for tick in range(100):
        swing = 1.0 - 0.005 * (1.0 + math.sin(0.04 * tick))
        watch.update(0.01 * tick, swing * speeds, swing * due, swing * due)
    assert list(watch.failed) == failed
    assert failed or not watch.warnings


@pytest.mark.parametrize(
    ("vehicle", "share"),
    [exhaustively("scale_quad", 0.3), ("scale_quad", 0.45), exhaustively("full", 0.13)],
)
def test_a_weak_rotor_is_made_up_for_until_the_vehicle_is_down(vehicle, share):
    """The weakness was only reported: 0.45 m above the ground a quadrotor was tilted by 38°."""
    rig = Rig(vehicle, airborne=4.0)
    rig.sim.inject(Fault(1.5, "rotor_1", FaultKind.PARTIAL, (share,)))
    hold = lambda r: r.flight.set_target((0.0, 0.0, 4.0))  # noqa: E731
    rig.run(2.5, hold, until=lambda r: r.flight.mode is Mode.ABORT)
    assert rig.flight.mode is Mode.ABORT
    assert "rotor 1 turns at" in rig.flight.reason
    run = rig.run(12.0, until=lambda r: r.sim.outputs.wheel_load.any())
    assert not rig.sim.crashed
    assert rig.sim.outputs.wheel_load.any()
    assert -run.vz[-1] < 1.2
    assert math.hypot(run.vx[-1], run.vy[-1]) < 1.0


def test_a_vehicle_that_spins_tilts_as_it_should():
    """A rigid body that spins at 10 rad/s, with the lag of its rotors and one of them lost.

    It turned on meanwhile: without allowing for that its tilt swings ever further.
    """
    p = VehicleParameters.load("scale_quad")
    loop = AttitudeController(p)
    loop.set_failed_rotors((0,))
    inertia = p.total_inertia
    wanted = rotation_matrix((0.0, math.sin(0.05), 0.0, math.cos(0.05)))
    rotation = np.eye(3)
    rates = np.array((0.0, 0.0, 10.0))
    moment = np.zeros(3)
    dt = 0.001
    off = []
    for _ in range(4000):
        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        c, s = math.cos(heading), math.sin(heading)
        turned = np.array(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))
        now = LEVEL._replace(rotation=rotation, rates=rates)
        # the same thrust direction for each heading
        up = wanted[:, 2]
        left = np.cross(up, turned[:, 0])
        left /= np.linalg.norm(left)
        attitude = np.column_stack([np.cross(left, up), left, up])
        commanded = loop.wrench(attitude, now, p.mass * GRAVITY)[1:]
        moment = moment + dt / p.rotor_lag * (commanded - moment)
        moment[2] = 0.0
        rates = rates + dt * np.linalg.solve(inertia, moment - np.cross(rates, inertia @ rates))
        rates[2] = 10.0
        angle = dt * np.linalg.norm(rates)
        axis = math.sin(0.5 * angle) * rates / np.linalg.norm(rates)
        rotation = rotation @ rotation_matrix((*axis, math.cos(0.5 * angle)))
        off.append(math.acos(min(1.0, float(rotation[:, 2] @ up))))
    assert max(off[3000:]) < 0.02


def test_encoders_that_are_late_accuse_no_rotor():
    """Speeds of half a second ago rest in a hover while the commands for a climb move on."""
    rig = Rig("scale", airborne=3.0)
    rig.sim.inject(Fault(0.2, "encoders", FaultKind.DELAYED, (0.5,)))

    accused = []

    def climb(r):
        r.flight.set_target((0.0, 0.0, 5.0 if r.flight.time > 0.8 else 3.0))
        accused.extend([*r.flight.failed_rotors, *r.flight.rotor_watch.warnings])

    run = rig.run(1.6, climb)
    assert accused == []
    assert run.z[-1] > 3.3


def test_a_flight_with_a_stuck_rotor_comes_down_level():
    """It is stuck at nearly all that it can; before, the vehicle turned over."""
    rig = Rig("scale", airborne=3.0)
    rig.sim.inject(Fault(1.5, "rotor_3", FaultKind.STUCK, (350.0,)))
    hold = lambda r: r.flight.set_target((0.0, 0.0, 3.0))  # noqa: E731
    run = rig.run(2.5, hold, until=lambda r: r.flight.mode is Mode.ABORT)
    assert run.elapsed[-1] < 1.75, "it runs away within 0.15 s"
    assert rig.flight.reason.startswith("rotor 3 runs away at 3")
    run = rig.run(1.5)
    assert np.abs(run.pitch).max() < 0.3
    assert run.vz[-1] == pytest.approx(-0.5, abs=0.15)


def with_encoder(rig, shows):
    """Let the encoder of rotor 3 show `shows(speed)` from 0.5 s on."""
    sense = rig.flight.sense

    def lie(samples):
        joints = samples.joints
        if joints is not None and joints.time[-1] > 0.5:
            rates = joints.rotor_rate.copy()
            rates[:, 2] = [shows(rate) for rate in rates[:, 2].tolist()]
            samples = dataclasses.replace(samples, joints=joints._replace(rotor_rate=rates))
        sense(samples)

    rig.flight.sense = lie


@pytest.mark.parametrize(
    ("shows", "shown"),
    [
        (lambda _: 0.0, 0),
        (lambda _: 256.0, 256),
        (lambda rate: 0.85 * rate, None),
        (lambda rate: rate + 80.0, None),
    ],
    ids=["dead", "frozen", "scaled", "fast"],
)
def test_a_flight_goes_on_with_an_encoder_that_lies(shows, shown):
    """Climbs and descents move the commands; the body shows that the rotor follows them."""
    rig = Rig("scale", airborne=3.0)
    with_encoder(rig, shows)
    goal = lambda r: (0.3 * math.sin(4.0 * r.time), 0.0, 3.0 + 0.5 * math.sin(3.0 * r.time))  # noqa: E731
    rig.run(2.5, lambda r: r.flight.set_target(goal(r)))
    watch = rig.flight.rotor_watch
    assert rig.flight.mode is Mode.FLIGHT
    assert not rig.flight.failed_rotors
    assert list(watch.lying) == [2]
    assert list(watch.warnings) == ["encoders"]
    if shown is not None:
        assert watch.lying[2] == f"the encoder of rotor 3 shows {shown} rad/s, but it works"


FAULTS = {
    "off": (FaultKind.OFF, ()),
    "fast": (FaultKind.STUCK, (350.0,)),
    "weak": (FaultKind.PARTIAL, (0.5,)),
}
"""Faults of a rotor: it stands, turns at nearly all that it can, or gives half of its thrust."""


def without_rotors(rig):
    """Let the encoders show nothing from 0.5 s on."""
    sense = rig.flight.sense

    def hide(samples):
        if samples.joints is not None and samples.joints.time[-1] > 0.5:
            samples = dataclasses.replace(samples, joints=None)
        sense(samples)

    rig.flight.sense = hide


UNSEEN = {
    "dead": lambda rig: with_encoder(rig, lambda _: 0.0),
    "frozen": lambda rig: with_encoder(rig, lambda _: 256.0),
    "silent": without_rotors,
}
"""Encoders that show nothing of rotor 3 from 0.5 s on."""


@pytest.mark.parametrize(
    ("unseen", "fault", "rotor"),
    [
        ("dead", "off", 3),
        exhaustively("dead", "fast", 3),
        exhaustively("frozen", "fast", 3),
        ("frozen", "weak", 3),
        exhaustively("silent", "off", 3),
        ("silent", "fast", 1),
        exhaustively("silent", "weak", 4),
    ],
)
def test_a_rotor_that_fails_unseen_by_its_encoder_is_named(unseen, fault, rotor):
    """Moments and force show it; before, the vehicle sank without a word."""
    rig = Rig("scale", airborne=3.0, noise=True)
    UNSEEN[unseen](rig)
    rig.sim.inject(Fault(2.5, f"rotor_{rotor}", *FAULTS[fault]))
    goal = lambda r: (0.3 * math.sin(4.0 * r.time), 0.0, 3.0 + 0.5 * math.sin(3.0 * r.time))  # noqa: E731
    rig.run(2.5, lambda r: r.flight.set_target(goal(r)))
    assert not rig.flight.failed_rotors
    assert rig.flight.mode is Mode.FLIGHT

    hold = lambda r: r.flight.set_target((0.0, 0.0, 3.0))  # noqa: E731
    run = rig.run(1.5, hold, until=lambda r: r.flight.mode is Mode.ABORT)
    assert run.elapsed[-1] < 1.0
    assert rig.flight.failed_rotors == (rotor - 1,)
    assert rig.flight.reason.startswith(f"rotor {rotor} ")

    run = rig.run(2.0)
    assert np.abs(run.pitch).max() < 0.3
    to_end = run.elapsed[-1] - run.elapsed
    assert np.abs(run.roll_rate[to_end < 1.0]).max() < 0.5
    assert run.vz[to_end < 0.4].mean() == pytest.approx(-0.5, abs=0.2)
    assert np.hypot(run.x[-1] - run.x[0], run.y[-1] - run.y[0]) < 1.0


@pytest.mark.parametrize(
    ("unseen", "fault", "rests"),
    [
        ("frozen", "weak", True),
        exhaustively("silent", "weak", True),
        exhaustively("dead", "fast", False),
        ("silent", "fast", False),
    ],
)
def test_on_the_ground_the_wheels_show_whether_a_failed_rotor_pushes(unseen, fault, rests):
    """The rotor opposite a weak one turned on for ever. One that runs away tips the vehicle over.

    147 N at 0.68 m and half of the track, 0.28 m: 141 N m; the weight holds 294 N · 0.28 m against.
    """
    rig = Rig("scale", airborne=1.0, noise=True)
    UNSEEN[unseen](rig)
    rig.sim.inject(Fault(2.5, "rotor_3", *FAULTS[fault]))
    goal = lambda r: (0.2 * math.sin(4.0 * r.time), 0.0, 1.0 + 0.3 * math.sin(3.0 * r.time))  # noqa: E731
    rig.run(2.5, lambda r: r.flight.set_target(goal(r)))
    hold = lambda r: r.flight.set_target((0.0, 0.0, 1.0))  # noqa: E731
    rig.run(1.5, hold, until=lambda r: r.flight.mode is Mode.ABORT)
    assert rig.flight.failed_rotors == (2,)

    rig.run(7.0, until=lambda r: r.flight.flight_modes.touched)
    run = rig.run(3.0)
    assert np.abs(run.pitch).max() < 0.2
    assert not rig.sim.state.crashed
    assert bool(rig.flight.attitude_loop.commanded.max() < 30.0) is rests


def is_upright(rig):
    """Return whether the vehicle stands within 6°, by the truth."""
    return rotation_matrix(rig.sim.state.orientation)[2, 2] > 0.995


@pytest.mark.parametrize("rotor", [exhaustively(1), 3, exhaustively(6)])
@pytest.mark.parametrize("seconds", [0.1, 0.5, None], ids=["spools", "slower", "stands"])
def test_a_rotor_that_runs_away_on_the_ground_is_held_by_the_others(rotor, seconds):
    """It tipped the vehicle over within 0.7 s after a touch-down, and within 1.6 s in DRIVE.

    92 N at 0.75 m and half of the track, 0.28 m, on the left or right: 95 N m of 82 N m.
    """
    if seconds is None:
        rig = Rig("scale", noise=True)
        rig.run(0.3)
        assert rig.flight.request("arm") == ""
        rig.run(0.3)
    else:
        rig = Rig("scale", airborne=0.5, noise=True)
        rig.run(0.3)
        rig.flight.request("land")
        rig.run(4.0, until=lambda r: r.flight.mode is Mode.SPOOL_DOWN)
        rig.run(seconds)

    rig.sim.inject(Fault(rig.time, f"rotor_{rotor}", FaultKind.STUCK, (350.0,)))
    run = rig.run(1.0, until=lambda r: r.flight.mode is Mode.ABORT)
    assert run.elapsed[-1] < 0.4
    assert rig.flight.reason.startswith(f"rotor {rotor} ")
    rig.run(3.0)
    assert is_upright(rig)
    assert not rig.sim.state.crashed
    assert f"rotor {rotor} runs away" in rig.flight.request("arm")


def test_an_encoder_that_shows_a_runaway_on_the_ground_is_not_believed():
    """The wheels show that the rotor rests."""
    rig = Rig("scale", noise=True)
    with_encoder(rig, lambda rate: rate + 345.0 + 5.0 * math.sin(50.0 * rig.time))
    rig.run(0.3)
    assert rig.flight.request("arm") == ""
    rig.run(2.0)
    assert rig.flight.mode is Mode.DRIVE
    assert not rig.flight.failed_rotors
    assert list(rig.flight.rotor_watch.warnings) == ["rotor 3"]


@pytest.mark.parametrize("rotor", range(6))
def test_loads_of_wheels_show_a_rotor_that_pushes(rotor):
    """The load cells of a vehicle that stands carry the moments of one rotor alone."""
    p = VehicleParameters.load("scale")
    evidence = LoadEvidence(p)
    x, y, _ = p.hub_position.T
    arms = np.stack([np.ones(4), y, -x])
    speeds = np.zeros(6)
    speeds[rotor] = 300.0
    pushed = rotor_matrix(p)[:3] @ np.square(speeds)
    loads = p.static_load - np.linalg.pinv(arms) @ (pushed * (0.0, 1.0, 1.0))
    assert evidence.shows(loads, speeds, np.zeros(6))[rotor]
    assert not evidence.shows(p.static_load, speeds, np.zeros(6)).any()


@pytest.mark.parametrize("speed", [200.0, 350.0])
@pytest.mark.parametrize("rotor", range(6))
def test_loads_of_wheels_show_which_rotor_rests(rotor, speed):
    """The opposite one turns against a rotor that seems to turn, and does until 1 s, and from 2 s.

    Loads are those of a vehicle on level ground that carry the moments of both.
    """
    p = VehicleParameters.load("scale")
    evidence = LoadEvidence(p)
    matrix = rotor_matrix(p)
    x, y, _ = p.hub_position.T
    arms = np.stack([np.ones(4), y, -x])
    noise = 2.0 * np.random.default_rng(rotor).standard_normal((300, 4))
    changes = []
    for k in range(300):
        speeds = np.zeros(6)
        speeds[[rotor, (rotor + 3) % 6]] = speed
        turns = speeds.copy()
        turns[rotor] *= not 100 <= k < 200
        pushed = matrix[:3] @ np.square(turns)
        pushed[0] = 0.0
        loads = p.static_load - np.linalg.pinv(arms) @ pushed + noise[k]
        before = evidence.rests.copy()
        evidence.update(loads, speeds, [rotor], 0.01)
        changes += [0.01 * k] * int((before != evidence.rests).any())
        assert not np.delete(evidence.rests, rotor).any()

    assert changes == pytest.approx([1.3, 2.3], abs=0.011)


@pytest.mark.parametrize("rotor", [0, 3, 6])
def test_of_two_rotors_on_one_axis_one_is_named_by_the_motion(rotor):
    """Eight rotors on four axes hover, and one stops: it or the other one of its axis is named."""
    single = VehicleParameters.load("scale_quad")
    params = dataclasses.replace(
        single,
        rotor_azimuth=tuple(np.repeat(single.rotor_azimuth, 2).tolist()),
        rotor_arm=tuple(np.repeat(single.rotor_arm, 2).tolist()),
        rotor_spin=(1, -1) * 4,
    )
    motion = ThrustByMotion(params)
    observer = MomentObserver(params, np.full(3, 5.0))
    expected = np.full(8, params.hover_speed)
    lost = rotor_matrix(params)[:3, rotor] * params.hover_speed**2
    for k in range(100):
        has_stopped = k >= 40
        observer.moment[:2] += -np.expm1(-0.05) * (-has_stopped * lost[1:] - observer.moment[:2])
        motion.update(expected, GRAVITY - has_stopped * lost[0] / params.mass, observer, 0.01)
    [named] = np.flatnonzero(motion.fails).tolist()

    assert named // 2 == rotor // 2
    assert motion.speeds[named] < 0.4 * params.hover_speed, "it stands"


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_noise_of_the_force_hides_no_rotor_that_stops_unseen(noise):
    """Single samples below half the thrust that is due are no battery that dies."""
    params = VehicleParameters.load("scale")
    watch = RotorWatch(params)
    observer = MomentObserver(params, np.full(3, 5.0))
    expected = np.full(6, params.hover_speed)
    lost = rotor_matrix(params)[:3, 2] * params.hover_speed**2
    draw = np.random.default_rng(2)
    for k in range(400):
        has_stopped = k >= 200
        observer.moment[:2] += -np.expm1(-0.05) * (-has_stopped * lost[1:] - observer.moment[:2])
        force = GRAVITY - has_stopped * lost[0] / params.mass + noise * draw.normal()
        watch.update_unmeasured(0.01 * k, expected, force, observer)
        assert "battery" not in watch.warnings
    assert set(watch.failed) == {2}


def test_silent_encoders_accuse_no_rotor_that_the_flight_law_makes_up_for():
    """One gives a quarter less, 12 N at 0.68 m; climbs and turns change thrust and inflow."""
    rig = Rig("scale", airborne=3.0, noise=True)
    without_rotors(rig)
    rig.sim.inject(Fault(1.0, "rotor_3", FaultKind.PARTIAL, (0.75,)))
    goal = lambda r: (math.sin(2.0 * r.time), 0.0, 3.0 + math.sin(1.5 * r.time))  # noqa: E731
    rig.run(5.0, lambda r: r.flight.set_target(goal(r)))
    assert abs(rig.flight.attitude_loop.observer.moment[0]) > 6.0
    assert rig.flight.mode is Mode.FLIGHT
    assert not rig.flight.failed_rotors


def test_an_encoder_that_follows_its_rotor_again_is_believed_again():
    """It shows half the speed for 1.5 s: named as a lie, until 2 s later, and once more."""
    rig = Rig("scale", airborne=3.0)
    lies = lambda time: 0.5 <= time < 2.0 or time >= 5.0  # noqa: E731
    with_encoder(rig, lambda rate: 0.5 * rate if lies(rig.time) else rate)
    goal = lambda r: (0.3 * math.sin(4.0 * r.time), 0.0, 3.0 + 0.5 * math.sin(3.0 * r.time))  # noqa: E731
    shown = []

    def fly(r):
        r.flight.set_target(goal(r))
        shown.append((r.time, bool(r.flight.rotor_watch.lying)))

    rig.run(6.5, fly)
    changes = [
        time for (time, now), (_, before) in zip(shown[1:], shown, strict=False) if now != before
    ]
    first, believed, second = changes
    assert 0.6 < first < 1.8
    assert 3.9 < believed < 4.2
    assert 5.1 < second < 6.4
    assert not rig.flight.failed_rotors


@pytest.mark.parametrize(("deviation", "brakes"), [(0.34, True), (0.36, False)])
def test_a_vehicle_that_does_not_know_its_heading_does_not_brake(deviation, brakes):
    """Beyond a standard deviation of 0.35 rad, 20°, it would push in a wrong direction."""
    rig = Rig("scale", airborne=3.0)
    known = rig.estimate
    covariance = np.diag([1e-4] * 8 + [deviation**2])
    rig.estimate = lambda samples: known(samples)._replace(covariance=covariance)
    rig.run(0.1)
    assert rig.flight.flight_modes.knows_speed is brakes


def test_a_second_weak_rotor_beside_a_lost_one_is_made_up_for():
    """The others learn the moment that it lacks, 0.2 of its thrust at its lever."""
    rig = Rig("scale", airborne=3.0)
    rig.sim.inject(Fault(0.5, "rotor_1", FaultKind.OFF, ()))
    rig.sim.inject(Fault(1.0, "rotor_3", FaultKind.PARTIAL, (0.8,)))
    rig.run(1.0, lambda r: r.flight.set_target((0.0, 0.0, 3.0)))
    assert rig.flight.failed_rotors == (0,)

    run = rig.run(3.0)
    p = rig.params
    loop = rig.flight.attitude_loop
    lack = 0.2 * p.thrust_coefficient * loop.commanded[2] ** 2
    assert loop.observer.moment[0] == pytest.approx(-lack * p.rotor_position[2, 1], rel=0.1)
    assert np.abs(run.pitch[-100:]).max() < 0.05
    assert np.hypot(run.vx, run.vy)[-100:].max() < 0.5
