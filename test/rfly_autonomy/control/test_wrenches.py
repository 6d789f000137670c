# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Wrenches that fly a vehicle: what they do, when they are lost, and when they count again."""

import itertools
import math

import numpy as np
import pytest
from control_rig import Rig, hover

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_common.errors import CommandError

G = 9.80665


def test_a_wrench_is_flown_before_any_place_and_lost_soon():
    """The rotors' matrix times their squared speeds is the wrench.

    Without a new one the vehicle levels itself and lands.
    """
    rig = hover()
    p = rig.params
    weight = p.mass * G
    wanted = np.array((1.02 * weight, 0.3, -0.2, 0.1))

    def push(r):
        r.flight.set_wrench(wanted)
        r.flight.set_target((0.0, 0.0, 10.0))

    run = rig.run(0.2, push)
    assert rotor_matrix(p) @ rig.rotors.value**2 == pytest.approx(wanted, rel=1e-6)
    # turned by the moments about the axes, less what the lag of the rotors takes
    expected = wanted[1:] / np.diag(p.total_inertia) * 0.2
    turned = np.array((run.roll_rate[-1], run.pitch_rate[-1], run.yaw_rate[-1]))
    assert (np.sign(turned) == np.sign(expected)).all()
    assert (np.abs(turned) > 0.5 * np.abs(expected)).all()
    assert (np.abs(turned[:2]) < np.abs(expected[:2])).all(), (turned, expected)

    # lost: it hovers, then it lands
    rig.run(1.5)
    assert rig.flight.mode is Mode.FLIGHT
    run = rig.run(0.5)
    assert np.abs(run.pitch).max() < 0.05
    rig.run(1.0, until=lambda r: r.flight.mode is Mode.LAND)
    assert rig.flight.reason == "the motion command is lost"

    for wrong, message in (
        ((-1.0, 0.0, 0.0, 0.0), "thrust is -1 N"),
        ((1.0, math.nan, 0.0, 0.0), "wrench"),
        ((1.0, 0.0, 0.0), "wrench"),
    ):
        with pytest.raises(CommandError, match=message):
            rig.flight.set_wrench(wrong)


def test_a_wrench_counts_from_what_it_answers_on():
    """The age of what a policy has seen is what makes it blind, not when its answer comes."""
    rig = hover()
    weight = rig.params.mass * G
    turning = np.array((weight, 0.0, 0.3, 0.0))
    level = np.array((weight, 0.0, 0.0, 0.0))

    def flown():
        return rotor_matrix(rig.params) @ rig.rotors.value**2

    # 80 ms late: for 20 ms more
    rig.flight.set_wrench(turning, rig.flight.time - 0.08)
    rig.run(0.016)
    assert flown() == pytest.approx(turning, abs=1e-6)
    rig.run(0.016)
    assert abs(flown()[2] - turning[2]) > 0.1

    # later ones are refused and change nothing
    for age in (0.101, 5.0, math.nan):
        with pytest.raises(CommandError, match=r"it answers what was .* s ago, expected at"):
            rig.flight.set_wrench(turning, rig.flight.time - age)
    rig.run(1.9, lambda r: r.flight.set_target((0.0, 0.0, 10.0)))
    assert rig.flight.mode is Mode.FLIGHT

    # the stamp of a clock that is ahead is no longer life
    rig = hover()
    rig.flight.set_wrench(level, rig.flight.time + 1000.0)
    rig.run(0.09)
    assert flown() == pytest.approx(level, abs=1e-6)
    rig.run(0.03)
    rig.run(2.1)
    assert rig.flight.reason == "the motion command is lost"


@pytest.mark.parametrize(
    ("timely", "mode"),
    [
        # a fifth of them, in rows of four or alone
        (lambda k: k % 20 < 4, Mode.LAND),
        (lambda k: k % 5 == 0 and k % 40 < 20, Mode.LAND),
        # late for a second, then in time for longer than half a second
        (lambda k: not 25 <= k < 150, Mode.FLIGHT),
        # each 80 ms one is in time
        (lambda k: k % 10 == 0, Mode.FLIGHT),
    ],
    ids=["rows", "single ones", "late once", "often enough"],
)
def test_wrenches_that_mix_with_late_ones_end_in_a_flight_or_a_landing(timely, mode):
    """One comes each 8 ms. Lost, they count again once they come in time for half a second."""
    rig = hover()
    level = np.array((rig.params.mass * G, 0.0, 0.0, 0.0))
    count = itertools.count()
    flown = []

    def push(r):
        if timely(next(count)):
            r.flight.set_wrench(level)
        setpoint = r.flight._setpoint
        flies = r.flight.mode is Mode.FLIGHT
        flown.append(flies and setpoint is not None and setpoint.wrench is not None)

    rig.run(3.0, push)
    assert rig.flight.mode is mode
    if mode is Mode.LAND:
        assert rig.flight.reason == "the motion command is lost"
        assert not any(flown[60:])
    else:
        # 150 · 8 ms and half a second later
        assert all(flown[215:])


@pytest.mark.parametrize(("gap", "begin"), [(17, 255), (25, 250)], ids=["one place", "places"])
def test_places_between_wrenches_do_not_make_them_count_sooner(gap, begin):
    """Four wrenches, one each 8 ms, come each `gap` ticks, else places at 62.5 Hz.

    With 17 ticks one comes 0.112 s after the last one: one place counts before it. It flies
    by places then, until wrenches have come in time for half a second, from tick `begin` on.
    """
    rig = hover()
    level = np.array((rig.params.mass * G, 0.0, 0.0, 0.0))
    count = itertools.count()
    flown = []

    def push(r):
        k = next(count)
        if k >= begin or k % gap < 4:
            r.flight.set_wrench(level)
        if k % 2:
            r.flight.set_target((0.0, 0.0, 10.0))
        setpoint = r.flight._setpoint
        flown.append(setpoint is not None and setpoint.wrench is not None)

    rig.run(4.0, push)
    assert rig.flight.mode is Mode.FLIGHT
    assert all(flown[:10])
    # until half a second, 62.5 ticks, after they come in time
    assert not any(flown[gap : begin + 62])
    assert all(flown[begin + 65 :])


def test_wrenches_that_are_lost_before_the_next_one_comes_do_not_count_again():
    """One comes each 48 ms and answers what was 96 ms ago, so it is lost 4 ms later."""
    rig = hover()
    level = np.array((rig.params.mass * G, 0.0, 0.0, 0.0))
    count = itertools.count()
    flown = []

    def push(r):
        if next(count) % 6 == 0:
            r.flight.set_wrench(level, r.flight.time - 0.096)
        setpoint = r.flight._setpoint
        flies = r.flight.mode is Mode.FLIGHT
        flown.append(flies and setpoint is not None and setpoint.wrench is not None)

    rig.run(3.0, push)
    assert rig.flight.mode is Mode.LAND
    assert not any(flown[60:])


def test_a_wrench_precedes_places_that_come_faster_than_it_answers():
    """Places come every 8 ms; each wrench answers what was 40 ms ago, so a place is newer."""
    rig = hover()
    wanted = np.array((1.02 * rig.params.mass * G, 0.3, -0.2, 0.1))

    def push(r):
        r.flight.set_target((0.0, 0.0, 10.0))
        r.flight.set_wrench(wanted, r.flight.time - 0.04)

    rig.run(0.2, push)
    assert rotor_matrix(rig.params) @ rig.rotors.value**2 == pytest.approx(wanted, rel=1e-6)

    # an older wrench than the last one is none
    rig.flight.set_wrench(2.0 * wanted, rig.flight.time - 0.09)
    rig.run(0.008)
    assert rotor_matrix(rig.params) @ rig.rotors.value**2 == pytest.approx(wanted, rel=1e-6)


def armed():
    rig = Rig("scale")
    rig.run(0.3)
    assert rig.flight.request("arm") == ""
    rig.run(0.3)
    assert rig.flight.request("takeoff") == ""
    return rig


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_wrench_takes_off_and_what_it_has_set_down_stays_there(is_asked):
    """The climb begins at once with a tenth of g: 1 m after sqrt(2 / 0.1 g) = 1.43 s.

    The lag of the rotors and the drag add to that. Set down, it stands on its brakes. Once it is
    asked to land, or the wrench is lost, the rotors stop; they neither lift it nor move it.
    """
    rig = armed()
    weight = rig.params.mass * G
    run = rig.run(
        2.5,
        lambda r: r.flight.set_wrench((1.1 * weight, 0.0, 0.0, 0.0)),
        until=lambda r: r.rows[-1].z > 1.2,
    )
    assert 1.2 < run.elapsed[-1] < 2.0
    assert rig.flight.mode is Mode.FLIGHT
    assert rig.modes == [Mode.DISARMED, Mode.DRIVE, Mode.TAKEOFF, Mode.FLIGHT]

    # down by hand, then it stands
    def sink(r):
        state = r.sim.state
        thrust = weight * (1.0 - 0.5 * (float(state.velocity[2]) + 0.4))
        r.flight.set_wrench((thrust if state.position[2] > 0.24 else 0.0, 0.0, 0.0, 0.0))

    rig.run(5.0, sink)
    run = rig.run(1.0, lambda r: r.flight.set_wrench((0.0, 0.0, 0.0, 0.0)))
    assert rig.flight.mode is Mode.FLIGHT
    assert not rig.rotors.value.any()
    if is_asked:
        assert rig.flight.request("land") == ""
    run = rig.run(4.0, until=lambda r: r.flight.mode is Mode.DRIVE)
    assert run.elapsed[-1] < 2.0
    rotors_off = rig.run(0.5)
    assert rig.modes[-3:] == [Mode.FLIGHT, Mode.SPOOL_DOWN, Mode.DRIVE]
    assert not rig.rotors.value.any()
    for motion in (run, rotors_off):
        for along in (motion.x, motion.y, motion.z):
            assert np.ptp(along) < 2e-3
    assert not rig.sim.crashed


def test_a_take_off_by_wrench_ends_where_the_wrench_is_lost():
    rig = armed()
    weight = rig.params.mass * G
    rig.run(1.0, lambda r: r.flight.set_wrench((0.7 * weight, 0.0, 0.0, 0.0)))
    assert rig.flight.mode is Mode.TAKEOFF
    rig.run(0.2, until=lambda r: r.flight.mode is Mode.LAND)
    assert rig.flight.reason == "the motion command is lost"
    run = rig.run(5.0, until=lambda r: r.flight.mode is Mode.DRIVE)
    assert np.ptp(run.z) < 0.05
    assert not rig.sim.crashed


def test_a_wrench_of_before_a_take_off_does_not_count_in_it():
    rig = Rig("scale")
    rig.run(0.3)
    assert rig.flight.request("arm") == ""
    rig.run(0.3, lambda r: r.flight.set_wrench((0.0, 0.0, 0.0, 0.0)))
    assert rig.flight.request("takeoff") == ""
    run = rig.run(6.0, until=lambda r: r.flight.mode is Mode.FLIGHT)
    assert 2.0 < run.elapsed[-1] < 4.0  # by the ramp, which takes 2 s
