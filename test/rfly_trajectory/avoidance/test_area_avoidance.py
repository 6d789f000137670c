# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that keep clear and are moved by nodes of several areas, over any messages.

What one node of the whole fleet does is the oracle of many. Time is counted in steps.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from crossing_vehicles import least_room
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from marks import exhaustively

from rfly_trajectory.avoidance.area_avoidance import MOST_APART, AreaAvoidance
from rfly_trajectory.avoidance.avoidance import STEP
from rfly_trajectory.avoidance.fleet_avoidance import FleetAvoidance, fleet_abilities
from rfly_trajectory.fleet.area_shards import Area
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Line

INF = math.inf
WEST = Area(-INF, -INF, 0.0, INF)
EAST = Area(0.0, -INF, INF, INF)
THIRDS = (Area(-INF, -INF, -15.0, INF), Area(-15.0, -INF, 15.0, INF), Area(15.0, -INF, INF, INF))
CAR = 3


def places(random, n, side):
    """Return random places in a square, 9 m and more from each other."""
    chosen = []
    while len(chosen) < n:
        place = random.uniform(-side / 2, side / 2, 2)
        if all(math.dist(place, other) > 9.0 for other in chosen):
            chosen.append(place)
    return chosen


def crossing(n, seed, side):
    """Return cars and multirotors that go from random places of a square to others."""
    random = np.random.default_rng(seed)
    ways = zip(places(random, n, side), places(random, n, side), strict=True)
    vehicles = []
    for i, (start, end) in enumerate(ways):
        kind = "multirotor" if random.random() < 0.3 else "ground"
        height = {"height": 10.0} if kind == "multirotor" else {}
        path = Line(tuple(start), tuple(end)).path()
        # ids that do not rise
        name = (f"v{i}", 100 - i)
        vehicles.append(Vehicle(*name, CAR, path, SpeedProfile(8.0, 2.0), "stop", kind, **height))
    return Fleet(vehicles)


def node(fleet, areas, number, time=0.0):
    others = [area for area in areas if area != areas[number]]
    return AreaAvoidance(fleet, time, None, areas[number], lambda: others)


def owners(fleet, areas, time):
    """Return the number of the area that holds each vehicle's planned place, by comparing it."""
    x = np.round(fleet.sample_times([time]).position[0, :, 0], 6)
    numbers = np.full(len(x), -1)
    for number, area in enumerate(areas):
        numbers[(area.x0 <= x) & (x < area.x1)] = number
    return numbers


def sampled(nodes, fleet, areas, time):
    """Return the positions (n, 3) that nodes publish, each those of its own vehicles."""
    of = owners(fleet, areas, time)
    position = np.full((len(fleet), 3), np.nan)
    for number, each in enumerate(nodes):
        rows = np.flatnonzero(of == number)
        position[rows] = each.sample(time, rows=rows).position
    assert np.isfinite(position).all()
    return position, of


def ids_off_plan(nodes):
    """Return the ids of the vehicles that are late or off their tracks."""
    return {int(i) for each in nodes for i in each.off_plan().ids}


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_vehicles_of_two_nodes_go_the_ways_of_those_of_one(loss):
    """Also when a fifth of the messages is lost: ghosts choose as what they stand for."""
    fleet = crossing(30, 1, 70.0)
    areas = (WEST, EAST)
    nodes = [node(fleet, areas, 0), node(fleet, areas, 1)]
    one = FleetAvoidance(fleet, 0.0)
    random = np.random.default_rng(1)
    handed_over = set()
    of = owners(fleet, areas, 0.0)
    for step in range(1, 300):
        off_plan = ids_off_plan(nodes)
        position, now = sampled(nodes, fleet, areas, step * STEP)
        np.testing.assert_allclose(position, one.sample(step * STEP).position, atol=1e-6)
        crossed = {fleet.vehicles[row].id for row in np.flatnonzero(now != of)}
        handed_over |= crossed & off_plan
        of = now
        for each, other in (nodes, nodes[::-1]):
            if random.random() >= loss:
                other.hear(each.off_plan())
    assert len(handed_over) >= 5, "vehicles that are not where their plans have them"


@pytest.mark.parametrize(
    ("seed", "loss", "delay"),
    [(0, 0.2, 2), exhaustively(1, 0.2, 2), exhaustively(2, 0.5, 4), exhaustively(3, 0.5, 4)],
)
def test_vehicles_of_two_nodes_keep_clear_though_messages_are_lost_and_late(seed, loss, delay):
    """Of 30 vehicles on 90 m, most of which cross the border; contacts are looked for densely."""
    fleet = crossing(30, seed, 90.0)
    able = fleet_abilities(fleet)
    areas = (WEST, EAST)
    nodes = [node(fleet, areas, 0), node(fleet, areas, 1)]
    random = np.random.default_rng(seed)
    on_way = []
    before, _ = sampled(nodes, fleet, areas, 0.0)
    room = math.inf
    for step in range(1, 600):
        due = [each for each in on_way if each[0] <= step]
        on_way = [each for each in on_way if each[0] > step]
        for _, receiver, told in due:
            receiver.hear(told)
        position, _ = sampled(nodes, fleet, areas, step * STEP)
        room = min(room, least_room(able, before, position))
        assert np.linalg.norm(position - before, axis=1).max() < 0.7, "nobody jumps"
        before = position
        for each, other in (nodes, nodes[::-1]):
            if random.random() >= loss:
                on_way.append((step + 1 + int(random.integers(delay + 1)), other, each.off_plan()))
    assert room > 0.0
    ends = np.array([vehicle.path.at(vehicle.path.length).position for vehicle in fleet.vehicles])
    assert np.linalg.norm(before[:, :2] - ends, axis=1).max() < 5.0, "all arrive"


def test_a_node_that_is_started_again_hears_where_the_others_are():
    """Its own vehicles are where their plans have them; those of others where they are told."""
    fleet = crossing(30, 1, 70.0)
    areas = (WEST, EAST)
    nodes = [node(fleet, areas, 0), node(fleet, areas, 1)]
    for step in range(1, 200):
        sampled(nodes, fleet, areas, step * STEP)
        nodes[0].hear(nodes[1].off_plan())
        nodes[1].hear(nodes[0].off_plan())
    time = 199 * STEP
    told = nodes[0].off_plan()
    assert len(told.ids) >= 3
    again = node(fleet, areas, 1, time)
    mine = np.flatnonzero(owners(fleet, areas, time) == 1)
    plan = fleet.sample(time).position[mine]
    assert again.sample(time, rows=mine).position.tolist() == plan.tolist()
    again.hear(told)
    pair = (nodes[0], again)
    for each in pair:
        each.sample(time + STEP)
    for each, other in (pair, pair[::-1]):
        other.hear(each.off_plan())
    everyone = [each.sample(time + 3 * STEP).position for each in pair]
    np.testing.assert_allclose(*everyone, atol=1e-6)


def test_what_is_old_or_of_another_run_changes_nothing():
    fleet = crossing(30, 1, 70.0)
    areas = (WEST, EAST)
    west, east = node(fleet, areas, 0), node(fleet, areas, 1)
    told = []
    for step in range(1, 160):
        west.sample(step * STEP)
        told.append(west.off_plan())
    newest = next(each for each in reversed(told) if len(each.ids))
    east.sample(newest.step * STEP)
    east.hear(newest)
    east.hear(told[newest.step - 4])
    east.hear(newest._replace(step=newest.step + MOST_APART + 1, ids=newest.ids[:0]))
    # it says something about vehicles of others, and about some that there are not
    spoilt = newest._replace(step=newest.step - 1, ids=newest.ids + 10_000)
    east.hear(spoilt)
    time = (newest.step + 1) * STEP
    rows = [row for row, each in enumerate(fleet.vehicles) if each.id in newest.ids]
    np.testing.assert_allclose(
        east.sample(time).position[rows], west.sample(time).position[rows], atol=1e-6
    )


# --- any messages


class AnyMessages(RuleBasedStateMachine):
    """Three nodes, of which some die and are started again, and messages of any fate.

    Clocks differ by up to two steps. A vehicle that another node gets is where it can have come to
    since the last news of it.
    """

    FASTEST_APART = 10.0
    """Largest difference of two accelerations, halved, m/s²."""

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed):
        self.fleet = crossing(14, seed, 60.0)
        self.step = 0
        self.nodes = [node(self.fleet, THIRDS, number) for number in range(3)]
        self.on_way = []
        self.news = np.zeros((3, 3), int)
        """Step to which [receiver, sender] know the same."""
        self.before = owners(self.fleet, THIRDS, 0.0)
        self.lead = [0, 0, 0]

    def alive(self):
        return [number for number, each in enumerate(self.nodes) if each is not None]

    @rule(steps=st.integers(1, 12), heard=st.lists(st.booleans(), min_size=6, max_size=6))
    def go_on(self, steps, heard):
        """Nodes tell; some of it arrives at once, the rest stays on its way."""
        for _ in range(steps):
            self.step += 1
            self.look()
            for sender, receiver in itertools.permutations(self.alive(), 2):
                message = (sender, receiver, self.nodes[sender].off_plan())
                arrives = heard[(3 * sender + receiver) % 6]
                self.on_way = [*self.on_way[-40:], message]
                if arrives:
                    self.on_way.pop()
                    self.arrive(*message)

    def arrive(self, sender, receiver, told):
        if self.nodes[receiver] is not None:
            self.nodes[receiver].hear(told)
            news = self.news[receiver, sender]
            self.news[receiver, sender] = max(news, min(told.step, self.step))

    @precondition(lambda self: self.on_way)
    @rule(data=st.data(), again=st.booleans())
    def deliver_late(self, data, again):
        """A message arrives late, out of order, and perhaps once more later on."""
        index = data.draw(st.integers(0, len(self.on_way) - 1))
        message = self.on_way[index]
        if not again:
            self.on_way.pop(index)
        self.arrive(*message)

    @rule(number=st.integers(0, 2), lead=st.integers(0, 2))
    def set_clock(self, number, lead):
        self.lead[number] = lead

    @rule(number=st.integers(0, 2))
    def kill_or_start(self, number):
        dead = self.nodes[number] is None
        time = self.step * STEP
        self.nodes[number] = node(self.fleet, THIRDS, number, time) if dead else None
        self.news[number, :] = self.news[:, number] = -100

    def look(self):
        """Each vehicle comes from the one node that holds its place, unless that is dead."""
        time = self.step * STEP
        of = owners(self.fleet, THIRDS, time)
        for number in self.alive():
            each = self.nodes[number]
            each.sample((self.step + self.lead[number]) * STEP)
            told = each.off_plan()
            at_lead = owners(self.fleet, THIRDS, told.step * STEP)
            own = {self.fleet.vehicles[row].id for row in np.flatnonzero(at_lead == number)}
            assert set(told.ids.tolist()) <= own, "nobody tells of vehicles of others"

        for row in np.flatnonzero(of != self.before):
            giver, taker = self.before[row], of[row]
            if self.nodes[giver] is None or self.nodes[taker] is None:
                continue
            if self.lead[giver] or self.lead[taker]:
                continue
            then, now = (
                self.nodes[number].sample(time, rows=np.array([row])).position[0]
                for number in (giver, taker)
            )
            lag = (self.step - self.news[taker, giver]) * STEP
            assert np.isfinite(now).all()
            assert math.dist(then, now) <= 0.2 + self.FASTEST_APART * lag**2
        self.before = of

    @invariant()
    def states_are_finite(self):
        for number in self.alive():
            assert np.isfinite(self.nodes[number].sample(self.step * STEP).position).all()


TestAnyMessages = pytest.mark.exhaustive(AnyMessages.TestCase)
TestAnyMessages.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class FewMessages(AnyMessages):
    """The same, a few times."""


TestFewMessages = FewMessages.TestCase
TestFewMessages.settings = settings(max_examples=4, stateful_step_count=15, deadline=None)
