# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Link that carries a guide's setpoints: what arrives, when, and when it counts as lost."""

from __future__ import annotations

import numpy as np
import pytest
from control_rig import Rig

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_autonomy.control.flight_controller import COMMAND_TIMEOUT, HOVER_TIME
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.guidance.on_board import CommandLink

PERIOD = 0.02


def carried(*faults, seconds=3.0, seed=1):
    """Return the times of arrival by those of sending, and the times at which the link is lost.

    There are 50 commands a second.
    """
    link = CommandLink(faults, seed, timeout=0.5)
    arrivals = {}
    lost = []
    for tick in range(round(seconds / PERIOD)):
        time = round(PERIOD * tick, 9)
        link.send(Setpoint(time))
        arrivals |= {each.time: time for each in link.receive(time)}
        if link.is_lost:
            lost.append(time)
    return arrivals, lost


def link_fault(kind, *value, duration=None):
    return Fault(1.0, "link", FaultKind(kind), value, duration=duration)


def test_a_sound_link_delivers_at_once():
    arrivals, lost = carried()
    assert len(arrivals) == 150
    assert all(sent == arrived for sent, arrived in arrivals.items())
    assert lost == []


def test_a_link_that_is_off_for_a_second_is_lost_after_half_of_it():
    """The last command is that of 0.98 s, so it is 0.5 s old at 1.48 s."""
    arrivals, lost = carried(link_fault("off", duration=1.0))
    assert len(arrivals) == 100
    assert lost[0] == pytest.approx(1.5)
    assert lost[-1] == pytest.approx(1.98)


@pytest.mark.parametrize(("delay", "is_lost"), [(0.3, False), (0.7, True)])
def test_a_late_link_delivers_in_order_with_the_old_times(delay, is_lost):
    arrivals, lost = carried(link_fault("delayed", delay))
    late = [arrived - sent for sent, arrived in arrivals.items() if sent >= 1.0]
    assert late == pytest.approx([delay] * len(late), abs=PERIOD + 1e-9)
    assert len(late) == round((2.0 - delay) / PERIOD)
    assert bool(lost) is is_lost


def test_late_commands_do_not_arrive_after_newer_ones():
    """Commands of 1.5 … 2.0 s would arrive at 2.2 … 2.7 s, after that of 2.0 s at 2.0 s."""
    arrivals, _ = carried(link_fault("delayed", 0.7, duration=1.0))
    sent = list(arrivals)
    assert sent == sorted(sent)
    assert len(arrivals) == 50 + 16 + 50  # those of 1.00 … 1.30 s were there before or then
    assert arrivals[2.0] == 2.0


def test_losses_are_by_chance_and_by_the_seed():
    """Ten of 100 commands arrive, give or take 3.3 standard deviations of 3."""
    fault = link_fault("intermittent", 0.9)
    counts = [len(carried(fault, seed=seed)[0]) - 50 for seed in range(20)]
    assert np.mean(counts) == pytest.approx(10.0, abs=3.3 * 3.0 / np.sqrt(20))
    assert carried(fault, seed=3) == carried(fault, seed=3)
    assert carried(fault, seed=3) != carried(fault, seed=4)


@pytest.mark.parametrize("rests", [True, False])
def test_gaps_in_which_there_is_nothing_to_answer_are_no_losses(rests):
    """Setpoints come after 1 to 5 periods each with an IMU that delivers now and then."""
    link = CommandLink((), 1, timeout=0.5, period=PERIOD)
    time = 0.0
    for periods in 20 * (1, 4, 2, 5, 3):
        time += periods * PERIOD
        if rests and periods > 1:
            link.rest()
        link.send(Setpoint(time))
        link.receive(time)
    assert link.loses_most is not rests


def test_commands_that_arrive_too_late_end_the_flight_as_lost_ones_do():
    """Each late command began the wait anew, and the vehicle hovered for ever."""
    rig = Rig("scale", airborne=2.0)
    rig.run(0.1, lambda r: r.flight.set_target((0.0, 0.0, 2.0)))
    late = lambda r: r.flight.set_target((0.0, 0.0, 2.0), time=r.flight.time - 1.0)  # noqa: E731
    run = rig.run(4.0, late, until=lambda r: r.flight.mode is Mode.LAND)
    assert rig.flight.mode is Mode.LAND
    assert run.elapsed[-1] == pytest.approx(COMMAND_TIMEOUT + HOVER_TIME, abs=0.1)
