# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that keep clear and are moved by nodes of several areas, over any messages.

What one node of the whole fleet does is the oracle of many. Time is counted in steps.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math

import numpy as np
import pytest
from crossing_vehicles import least_room
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from marks import exhaustively

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap
from rfly_trajectory.avoidance import avoidance
from rfly_trajectory.avoidance.area_avoidance import MOST_APART, AreaAvoidance
from rfly_trajectory.avoidance.avoidance import STEP
from rfly_trajectory.avoidance.fleet_avoidance import FleetAvoidance, fleet_abilities
from rfly_trajectory.fleet.area_shards import ShardArea
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Line

INF = math.inf
WEST = ShardArea(-INF, -INF, 0.0, INF)
EAST = ShardArea(0.0, -INF, INF, INF)
THIRDS = (
    ShardArea(-INF, -INF, -15.0, INF),
    ShardArea(-15.0, -INF, 15.0, INF),
    ShardArea(15.0, -INF, INF, INF),
)
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


@pytest.mark.parametrize("loss", [exhaustively(0.0), 0.2])
def test_vehicles_of_two_nodes_go_the_ways_of_those_of_one(loss):
    """The choice is the same if a fifth of the messages is lost: ghosts choose as originals do."""
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
    """A host's own vehicles are where their plans have them; those of others where messages say."""
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


@pytest.mark.parametrize(("column", "speed"), [(4, 1e6), (4, -18.0), (5, -1e6), (5, 8.0)])
def test_a_vehicle_faster_than_it_can_be_is_refused(column, speed):
    """They drive 8 m/s and climb 3 m/s, and cars do not climb; twice that and 1 m/s is believed."""
    fleet = crossing(30, 1, 70.0)
    areas = (WEST, EAST)
    west, east = node(fleet, areas, 0), node(fleet, areas, 1)
    for step in range(1, 160):
        west.sample(step * STEP)
        east.sample(step * STEP)
        told = west.off_plan()
        if not told.on_track.all():
            break
    assert not told.on_track.all()

    before = east.sample(told.step * STEP).position
    spoilt = told.state.copy()
    spoilt[~told.on_track, column] = speed
    with pytest.raises(ConfigError, match="m/s, expected at most"):
        east.hear(told._replace(state=spoilt))
    np.testing.assert_array_equal(east.sample(told.step * STEP).position, before)
    east.hear(told)


def test_a_vehicle_that_still_slows_down_from_its_plan_is_believed():
    """Multirotors follow slopes of 68° to a plateau, where their plans stop climbing at once."""
    side = np.arange(-100.0, 101.0, 2.0)
    rise = np.clip(2.5 * (30.0 - np.abs(side)), 0.0, 40.0)
    heights = np.repeat(rise[:, None], len(side), axis=1)
    hill = HeightMap(heights, origin_x=-100.0, origin_y=-100.0, step_x=2.0, step_y=2.0)
    random = np.random.default_rng(0)
    vehicles = []
    for number in range(16):
        path = Line(*(tuple(random.uniform(-60.0, 60.0, 2)) for _ in range(2))).path()
        profile = SpeedProfile(14.0, 3.0 if random.random() < 0.5 else None)
        name = (f"v{number}", number + 1)
        vehicles.append(Vehicle(*name, CAR, path, profile, "ping_pong", "multirotor", height=10.0))
    fleet = Fleet(vehicles, hill)
    nodes = [node(fleet, (WEST, EAST), number) for number in (0, 1)]

    fastest = 0.0
    for step in range(1, 200):
        for each in nodes:
            each.advance(step * STEP)
        for each, other in (nodes, nodes[::-1]):
            told = each.off_plan()
            other.hear(told)
            fastest = max(fastest, np.abs(told.state[~told.on_track, 5]).max(initial=0.0))
    assert fastest > 2.0 * 3.0 + 1.0  # beyond twice their own climb


def test_a_node_counts_the_vehicles_that_it_moves_and_not_the_whole_fleet(monkeypatch):
    """Neither at the start nor when the objects change are those of others more than it takes."""
    monkeypatch.setattr(avoidance, "MAX_VEHICLES", 10)
    lines = [Line((side, 9.0 * i), (1.1 * side, 9.0 * i)) for side in (-3e3, 3e3) for i in range(8)]
    fleet = Fleet(
        [
            Vehicle(f"v{i}", i + 1, CAR, line.path(), SpeedProfile(8.0), "stop")
            for i, line in enumerate(lines)
        ]
    )
    with pytest.raises(ConfigError, match="16 vehicles, at most 10"):
        FleetAvoidance(fleet, 0.0)

    east = node(fleet, (WEST, EAST), 1)
    plan = fleet.sample(1.0).position
    assert east.sample(1.0).position.tolist() == plan.tolist()

    east.use(fleet, None)
    assert east.sample(1.0).position.tolist() == plan.tolist()


def test_a_vehicle_of_a_silent_node_comes_late_and_on_its_track():
    """It was beside its track far away when its node was heard last, a minute before the border."""
    line = Line((480.0, 0.0), (-200.0, 0.0)).path()
    fleet = Fleet([Vehicle("far", 7, CAR, line, SpeedProfile(8.0), "stop")])
    west = node(fleet, (WEST, EAST), 0)
    east = node(fleet, (WEST, EAST), 1)
    east.sample(STEP)
    west.sample(STEP)
    beside = [[480.0, 5.0, 0.0, math.pi, 8.0, 0.0, 0.0]]
    west.hear(
        east.off_plan()._replace(
            ids=np.array([7]),
            on_track=np.array([False]),
            late=np.array([3.0]),
            state=np.array(beside),
            memory=np.zeros((1, 6)),
        )
    )
    for time in range(1, 62):
        states = west.sample(float(time))
    expected = fleet.sample_times([61.0 - 3.0]).position[0]

    np.testing.assert_allclose(states.position, expected, atol=1e-6)


# --- any messages


BEGUN = 130
"""Steps of a run in which the first vehicles are late."""


@functools.cache
def begun(seed):
    """Return a fleet, and three nodes that have heard all of each other."""
    fleet = crossing(24, seed, 60.0)
    nodes = [node(fleet, THIRDS, number) for number in range(3)]
    for step in range(1, BEGUN + 1):
        sampled(nodes, fleet, THIRDS, step * STEP)
        told = [each.off_plan() for each in nodes]
        for each, other in itertools.product(nodes, told):
            each.hear(other)
    assert len(ids_off_plan(nodes)) >= 3
    return fleet, nodes


class AnyMessages(RuleBasedStateMachine):
    """Three nodes, some of which die and are started again, and messages of any fate.

    Clocks differ by up to two steps. A node has each vehicle of another one where it can have come
    to since the last news of it; so that is also where it goes on with one that it gets.
    """

    FASTEST = 9.0
    """Largest speed, m/s, and half of the largest difference of two accelerations, m/s²."""

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed):
        self.fleet, nodes = begun(seed)
        self.nodes = copy.deepcopy(nodes, {id(self.fleet): self.fleet})
        self.ids = np.array([vehicle.id for vehicle in self.fleet.vehicles])
        self.step = BEGUN
        self.lives = [0, 0, 0]
        self.started = [0, 0, 0]
        self.lead = [0, 0, 0]
        self.on_way = []
        self.news = np.full((3, 3), BEGUN)
        """Step until which [receiver, sender] know the same."""

    def alive(self):
        return [number for number, each in enumerate(self.nodes) if each is not None]

    @rule(steps=st.integers(1, 15), heard=st.lists(st.booleans(), min_size=6, max_size=6))
    def go_on(self, steps, heard):
        """Nodes tell; some of it arrives at once, the rest stays on its way."""
        for _ in range(steps):
            self.step += 1
            self.look()
            for sender, receiver in itertools.permutations(self.alive(), 2):
                told = self.nodes[sender].off_plan()
                message = (sender, self.lives[sender], receiver, told)
                if heard[(3 * sender + receiver) % 6]:
                    self.arrive(*message)
                else:
                    self.on_way = [*self.on_way[-40:], message]

    def arrive(self, sender, life, receiver, told):
        if self.nodes[receiver] is not None:
            self.nodes[receiver].hear(told)
            if life == self.lives[sender]:
                step = min(told.step, self.step)
                self.news[receiver, sender] = max(self.news[receiver, sender], step)

    @precondition(lambda self: self.on_way)
    @rule(data=st.data(), again=st.booleans())
    def deliver_late(self, data, again):
        """A message arrives late, out of order, and perhaps once more later on."""
        index = data.draw(st.integers(0, len(self.on_way) - 1))
        message = self.on_way[index]
        if not again:
            self.on_way.pop(index)
        self.arrive(*message)

    @rule(number=st.integers(0, 2), lead=st.sampled_from([0, 0, 1, 2]))
    def set_clock(self, number, lead):
        self.lead[number] = lead

    @rule(number=st.integers(0, 2))
    def kill_or_start(self, number):
        dead = self.nodes[number] is None
        self.nodes[number] = node(self.fleet, THIRDS, number, self.step * STEP) if dead else None
        self.lives[number] += 1
        self.started[number] = self.step
        self.news[number, :] = self.news[:, number] = -1000

    def look(self):
        """Compare what nodes have of each other's vehicles."""
        time = self.step * STEP
        of = owners(self.fleet, THIRDS, time)
        has = {}
        for number in self.alive():
            each = self.nodes[number]
            each.sample((self.step + self.lead[number]) * STEP)
            told = each.off_plan()
            at_lead = owners(self.fleet, THIRDS, told.step * STEP)
            assert set(told.ids) <= set(self.ids[at_lead == number]), "only of its own vehicles"
            has[number] = each.sample(time).position
            assert np.isfinite(has[number]).all()

        for owner, other in itertools.permutations(has, 2):
            if self.lead[owner] or self.lead[other]:
                continue
            # its own already when it told or was started, or got from the other one since
            step = self.news[other, owner]
            before = owners(self.fleet, THIRDS, max(step, self.started[owner]) * STEP)
            for giver, known in ((owner, step), (other, self.news[owner, other])):
                rows = np.flatnonzero((of == owner) & (before == giver))
                apart = np.linalg.norm(has[owner][rows] - has[other][rows], axis=1)
                lag = (self.step - known) * STEP
                assert apart.max(initial=0.0) <= 0.2 + self.FASTEST * (lag + lag**2)


TestAnyMessages = pytest.mark.exhaustive(AnyMessages.TestCase)
TestAnyMessages.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


class FewMessages(AnyMessages):
    """The same, a few times."""


TestFewMessages = FewMessages.TestCase
TestFewMessages.settings = settings(max_examples=4, stateful_step_count=15, deadline=None)
