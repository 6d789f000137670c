# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flights over a link that brings the rotors' commands late, or loses some."""

from __future__ import annotations

import math

import numpy as np
import pytest
from control_rig import Rig
from marks import exhaustively

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_autonomy.control.command_age import CommandAge
from rfly_autonomy.control.position_controller import PositionController


class LateLink:
    """Link to a rig's rotors that keeps the order of commands, and is late from 0.5 s on."""

    def __init__(self, rig, delays, loss=0.0, begin=0.5, end=math.inf):
        """`delays`: least and largest one, s. `loss`: share of the commands that are lost."""
        self._sim = rig.sim
        self._deliver = rig.sim.command_rotors
        self._tick = rig.sim.tick
        self._delays = delays
        self._loss = loss
        self._span = begin, end
        self._random = np.random.default_rng(5)
        self._under_way = []
        self._last = 0.0
        rig.sim.command_rotors = self.command_rotors
        rig.sim.tick = self.tick

    def command_rotors(self, command):
        now = self._sim.time
        begin, end = self._span
        late = begin <= now < end
        if late and self._random.random() < self._loss:
            return
        delay = self._random.uniform(*self._delays) if late else 0.0
        self._last = max(self._last, now + delay)
        self._under_way.append((self._last, command))
        self._bring()

    def _bring(self):
        while self._under_way and self._under_way[0][0] <= self._sim.time + 1e-9:
            self._deliver(self._under_way.pop(0)[1])

    def tick(self):
        self._bring()
        return self._tick()


def swing(rig):
    """Fly to and fro, up and down, by half a metre."""
    place = (0.5 * math.sin(2.0 * rig.time), 0.0, 3.0 + 0.5 * math.sin(1.5 * rig.time))
    rig.flight.set_target(place)


def turning(time, rotors=6):
    """Return speeds of rotors at a time, s, each with a swing of its own, rad/s."""
    return 250.0 + 20.0 * np.sin(5.0 * time + np.arange(rotors))


def watched(age_of, weak=(), seconds=2.0):
    """Return the age by rotors that obey commands of the age `age_of(time)`, s.

    `weak`: rotors at 0.8 of their speeds.
    """
    link = CommandAge(6, 256.0)
    share = np.ones(6)
    share[list(weak)] = 0.8
    for tick in range(round(seconds / 0.004)):
        time = 0.004 * (tick + 1)
        link.go_on(turning(time), 0.004)
        if tick % 3 == 0:
            link.measure(share * turning(time - age_of(time)), 0.0)
    return link


@pytest.mark.parametrize("age", [0.0, 0.02, 0.05, 0.12, 0.2])
@pytest.mark.parametrize("weak", [(), (1,), (0, 3)])
def test_rotors_show_how_old_their_commands_are(age, weak):
    """One or two rotors at fault differ from the others, and show nothing."""
    link = watched(lambda _: age, weak)
    assert link.age == pytest.approx(age, abs=0.011)
    assert link.speeds(0.0) == pytest.approx(turning(2.0 - age), abs=1.2)


def test_a_loop_of_2_khz_shows_the_age_too():
    """Its commands of 0.6 s are more than there is room for at first."""
    link = CommandAge(6, 256.0)
    for tick in range(4000):
        time = 0.0005 * (tick + 1)
        link.go_on(turning(time), 0.0005)
        if tick % 20 == 0:
            link.measure(turning(time - 0.12), 0.0)
    assert link.age == pytest.approx(0.12, abs=0.011)
    assert link.possible(0.0)[[0, -1]] == pytest.approx(
        np.array((turning(1.85), turning(2.0))), abs=0.2
    )


def test_the_age_is_prompt_again_with_the_commands():
    link = watched(lambda time: 0.08 if time < 1.0 else 0.0)
    assert link.age == 0.0
    assert link.speeds(-0.1) == pytest.approx(turning(1.9), abs=0.6)


def test_encoders_whose_clock_leaps_ahead_and_back_show_an_age_again():
    link = CommandAge(6, 256.0)
    for tick in range(1500):
        time = 0.004 * (tick + 1)
        late = 0.1 if time > 3.0 else 0.0
        link.go_on(turning(time), 0.004)
        if tick % 3 == 0:
            link.measure(turning(time - late), 30.0 if 1.0 < time < 2.0 else 0.0)
    assert link.age == pytest.approx(0.1, abs=0.011)


def test_commands_that_rest_show_no_age():
    """Nor do rotors that all have less than they should, as on an empty battery."""
    link = CommandAge(6, 256.0)
    for _ in range(500):
        link.go_on(np.full(6, 250.0), 0.004)
        link.measure(np.full(6, 220.0), 0.0)
    assert link.age == 0.0


def test_encoders_with_a_bias_show_no_age_while_rotors_spool_down():
    """50 rad/s too much is what rotors show that answer old commands while these fall."""
    link = CommandAge(6, 256.0)
    for tick in range(1500):
        time = 0.004 * tick
        speeds = turning(time) * math.exp(-max(time - 3.0, 0.0) / 0.6)
        link.go_on(speeds, 0.004)
        link.measure(speeds + (50.0 if time > 1.0 else 0.0), 0.0)
        assert link.age == 0.0


@pytest.mark.parametrize("noise", [0.0, 3.0, 20.0])
def test_encoders_that_freeze_show_no_age(noise):
    """Commands that begin to change seemed to be obeyed late by rotors that seem to rest."""
    link = CommandAge(6, 256.0)
    random = np.random.default_rng(1)
    for tick in range(1000):
        time = 0.004 * tick
        link.go_on(turning(max(time, 1.5)), 0.004)
        if tick % 3 == 0:
            link.measure(turning(1.5) + noise * random.standard_normal(6), 0.0)
        assert link.age == 0.0


def test_encoders_that_freeze_keep_the_age_that_they_showed():
    """The link is late still: prompt laws would be unstable again."""
    link = watched(lambda time: 0.08 if time < 1.5 else time - 1.42, seconds=3.5)
    assert link.age == pytest.approx(0.08, abs=0.011)


def test_an_age_may_shrink_but_not_grow_while_a_fault_looks_like_one():
    link = watched(lambda _: 0.1)
    for tick in range(500, 1000):
        link.go_on(turning(0.004 * (tick + 1)), 0.004)
        link.measure(turning(0.004 * (tick + 1) - 0.15), 0.0, may_grow=False)
    assert link.age == pytest.approx(0.1, abs=0.011)
    for tick in range(1000, 1500):
        link.go_on(turning(0.004 * (tick + 1)), 0.004)
        link.measure(turning(0.004 * (tick + 1) - 0.05), 0.0, may_grow=False)
    assert link.age == pytest.approx(0.05, abs=0.011)


def test_possible_speeds_are_those_of_newer_commands_and_a_bit_older_ones():
    """At 2 s the commands of 0.05 s ago count, those since then, and 0.03 s before."""
    link = watched(lambda _: 0.05)
    ages = np.arange(0.0, 0.079, 0.004)
    due = np.array([turning(2.0 - age) for age in ages])
    possible = link.possible(0.0)
    assert possible.min(axis=0) == pytest.approx(due.min(axis=0), abs=1.0)
    assert possible.max(axis=0) == pytest.approx(due.max(axis=0), abs=1.0)


@pytest.mark.parametrize(
    ("delays", "loss"),
    [
        ((0.08, 0.08), 0.0),
        ((0.02, 0.08), 0.3),
        exhaustively((0.05, 0.05), 0.0),
        exhaustively((0.12, 0.12), 0.0),
        exhaustively((0.08, 0.08), 0.4),
    ],
)
def test_a_late_link_is_named_and_no_rotor(delays, loss):
    """With 0.08 s the vehicle turned over after 3 s, and rotor after rotor was named."""
    rig = Rig("scale", airborne=3.0)
    LateLink(rig, delays, loss)
    run = rig.run(2.5, swing)
    assert list(rig.flight.warnings) == ["link"], "it is named within 2 s"
    more = rig.run(5.0, swing)
    assert list(rig.flight.warnings) == ["link"]
    assert not rig.flight.failed_rotors
    assert rig.flight.mode is Mode.FLIGHT
    assert max(np.abs(run.pitch).max(), np.abs(more.pitch).max()) < 0.35
    assert np.abs(more.z - 3.0).max() < 1.0


def test_losses_alone_are_no_delay():
    """Of 125 commands a second 75 come: the rotors obey some 5 ms later."""
    rig = Rig("scale", airborne=3.0)
    LateLink(rig, (0.0, 0.0), 0.4)
    rig.run(4.0, swing)
    assert not rig.flight.warnings
    assert not rig.flight.failed_rotors


def test_a_link_that_is_sound_again_is_named_no_longer():
    rig = Rig("scale", airborne=3.0)
    LateLink(rig, (0.08, 0.08), end=2.5)
    rig.run(2.4, swing)
    slow = rig.flight.attitude_loop.frequency.copy()
    rig.run(3.0, swing)
    assert not rig.flight.warnings
    assert rig.flight.attitude_loop.frequency[0] == pytest.approx(7.0)
    assert slow[0] == pytest.approx(0.45 / (0.06 + 0.08), rel=0.12)


def test_a_late_link_is_named_until_the_rotors_stop():
    """It was named on the ground until the next take-off, however sound it was by then."""
    rig = Rig("scale", airborne=1.5)
    LateLink(rig, (0.08, 0.08))
    rig.run(2.0, lambda r: r.flight.set_target((0.3 * math.sin(3.0 * r.time), 0.0, 1.5)))
    assert "link" in rig.flight.warnings
    assert rig.flight.request("land") == ""
    rig.run(10.0, until=lambda r: r.flight.mode is Mode.DRIVE)
    rig.run(1.0)
    assert not rig.flight.warnings
    assert rig.flight.attitude_loop.frequency[0] == pytest.approx(7.0)


def test_a_rotor_that_fails_over_a_late_link_is_named():
    """The others lag alike, it does not move."""
    rig = Rig("scale", airborne=3.0)
    LateLink(rig, (0.08, 0.08))
    rig.sim.inject(Fault(2.5, "rotor_3", FaultKind.STUCK, (350.0,)))
    rig.run(2.5, swing)
    rig.run(1.0, swing, until=lambda r: r.flight.mode is Mode.ABORT)
    assert rig.flight.failed_rotors == (2,)
    rig.run(1.5)
    assert rig.flight.failed_rotors == (2,)


@pytest.mark.parametrize("kind", [FaultKind.STUCK, FaultKind.OFF])
def test_a_late_link_stays_named_when_encoders_fail(kind):
    """By an age that decayed it swung by 0.6 rad after 4 s, and more and more."""
    rig = Rig("scale", airborne=3.0)
    LateLink(rig, (0.08, 0.08))
    rig.sim.inject(Fault(2.5, "encoders", kind))
    run = rig.run(8.0, swing)
    assert "link" in rig.flight.warnings
    assert not rig.flight.failed_rotors
    assert np.abs(run.pitch).max() < 0.35


@pytest.mark.parametrize("begin", [2.0, exhaustively(2.2), exhaustively(2.7)])
def test_encoders_that_freeze_name_no_link(begin):
    """It was named 0.2 s later, and the loops were so gentle that a failed rotor tipped it over."""
    rig = Rig("scale", airborne=3.0)
    rig.sim.inject(Fault(begin, "encoders", FaultKind.STUCK))
    for _ in range(10):
        rig.run(0.5, swing)
        assert "link" not in rig.flight.warnings
    assert list(rig.flight.warnings) == ["encoders"]
    assert rig.flight.attitude_loop.frequency[0] == pytest.approx(7.0)


def test_a_gentler_law_answers_half_of_an_error_by_a_quarter():
    """Half of the way's gain, and half of the speed's, across the ground only."""
    scale = Rig("scale").params
    prompt = PositionController(scale)
    gentle = PositionController(scale)
    gentle.softness = 0.5
    firm = prompt.acceleration((1.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0)
    soft = gentle.acceleration((1.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0)
    assert soft[0] == pytest.approx(0.25 * firm[0])
    assert soft[2] == pytest.approx(firm[2])
