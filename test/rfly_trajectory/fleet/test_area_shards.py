# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets divided by areas: ownership for any schedule, and the watch on other nodes.

Time is injected; ownership is compared with a search by hand.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.area_shards import (
    LEASE,
    MOST_NODES,
    PERIOD,
    AreaShards,
    Misfit,
    Report,
    ShardArea,
    area_of,
    checked_area,
    plan_checksum,
)
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.run_clock import RunClock
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, Line

INF = math.inf
WEST = ShardArea(-INF, -INF, 0.0, INF)
EAST = ShardArea(0.0, -INF, INF, INF)
PLACES = np.array([[-5.0, 1.0], [5.0, 1.0]])
"""One vehicle in the west, one in the east."""


def fleet(count=12, radius=120.0):
    """A ring of cars, and one that stands on the border of WEST and EAST."""
    path = Circle((0.0, 0.0), radius).path()
    step = path.length / count
    ring = [
        Vehicle(f"car_{i}", i, 3, path, SpeedProfile(10.0), "repeat", phase=i * step)
        for i in range(count)
    ]
    line = Line((0.0, -50.0), (0.0, 50.0)).path()
    return Fleet([*ring, Vehicle("guard", 900, 3, line, SpeedProfile(1.0), "stop", delay=1e6)])


def report(
    source="/east", area=EAST, checksum=7, stamp_ns=0, clock=None, changes=0, avoidance=False
):
    return Report(source, stamp_ns, area, "ring", checksum, clock, changes, avoidance)


class Clock:
    """A clock that stands until it is set."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


# --- areas


def test_an_area_holds_its_low_sides_only():
    """A vehicle of 1e-9 m, which is the arithmetic's noise, on either side of a border is on it."""
    area = ShardArea(0.0, 10.0, 20.0, 30.0)
    noise = 1e-9
    corners = [(0.0, 10.0), (20.0, 10.0), (0.0, 30.0), (20.0, 30.0)]
    for x, y in ((0.0, 0.0), (noise, -noise), (-noise, noise)):
        places = np.array(corners) + np.array([x, y])
        assert area.holds(places).tolist() == [True, False, False, False]
    inner = np.array([[19.9999, 29.9999], [-0.0001, 20.0], [5.0, 9.9999]])
    assert area.holds(inner).tolist() == [True, False, False]


def test_areas_overlap_only_where_a_place_is_in_both():
    """Sides are compared as places are: 0.1 + 0.2 is 0.3, though not in the last bit."""
    left = ShardArea(0.0, 0.0, 0.1 + 0.2, 5.0)
    assert not left.overlaps(ShardArea(0.3, 0.0, 1.0, 5.0))
    assert left.overlaps(ShardArea(0.299, 0.0, 1.0, 5.0))
    assert not left.overlaps(ShardArea(0.0, 5.0, 1.0, INF))
    assert ShardArea(-INF, -INF, INF, INF).overlaps(left)


@pytest.mark.parametrize(
    "values",
    [[1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0], [0.0, 0.0, INF, math.nan]],
)
def test_what_is_no_area_is_refused(values):
    with pytest.raises(ConfigError, match=r"area: \[.*expected x0, y0, x1, y1 in m"):
        area_of(values)


def test_an_area_may_be_without_borders():
    assert area_of([]) is None
    assert area_of([-INF, -INF, INF, INF]) == ShardArea(-INF, -INF, INF, INF)


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({"shard": "0/2"}, "shard: 0/2"),
        ({"per_vehicle": "always"}, "publish_per_vehicle: always"),
    ],
)
def test_an_area_excludes_what_would_leave_the_plan(others, text):
    parameters = {"shard": "0/1", "per_vehicle": "auto"} | others
    assert checked_area([], **parameters) is None
    with pytest.raises(ConfigError, match=f"does not go with {text}"):
        checked_area([0.0, 0.0, 1.0, 1.0], **parameters)


cuts = st.lists(
    st.one_of(st.integers(-20, 20), st.floats(-20.0, 20.0)).map(lambda x: round(float(x), 5)),
    unique=True,
    max_size=4,
).map(lambda inner: [-INF, *sorted(inner), INF])


@given(cuts, cuts, st.data())
def test_each_place_is_in_exactly_one_area_of_a_grid(xs, ys, data):
    """Borders count too, also where one host computes a place 1e-9 m from where another does."""
    grid = [ShardArea(x0, y0, x1, y1) for x0, x1 in itertools.pairwise(xs)
            for y0, y1 in itertools.pairwise(ys)]  # fmt: skip
    assert not any(a.overlaps(b) for a, b in itertools.combinations(grid, 2))
    corner = [st.sampled_from([c for c in each if math.isfinite(c)] or [0.0]) for each in (xs, ys)]
    anywhere = st.floats(-30.0, 30.0).map(lambda x: round(x, 5))
    x, y = (data.draw(st.one_of(anywhere, each)) for each in corner)
    noise = st.floats(-1e-9, 1e-9)
    computed = [np.array([[x + data.draw(noise), y + data.draw(noise)]]) for _ in grid]
    assert sum(bool(a.holds(place)[0]) for a, place in zip(grid, computed, strict=True)) == 1


@given(st.lists(st.floats(0.0, 1e4), min_size=1, max_size=20))
@settings(max_examples=50)
def test_at_each_fleet_time_every_vehicle_comes_from_exactly_one_node(times):
    """Nodes tick when they like, one may be dead for a while: it depends on the stamp alone."""
    whole = fleet()
    areas = [ShardArea(-INF, -INF, -30.0, INF), ShardArea(-30.0, -INF, 0.0, INF),
             ShardArea(0.0, -INF, INF, 3.0), ShardArea(0.0, 3.0, INF, INF)]  # fmt: skip
    for t in times:
        rows = [np.flatnonzero(area.holds(whole.places(t))) for area in areas]
        states = [whole.sample(t, rows=each) for each in rows]
        ids = np.concatenate([each.id for each in states])
        assert sorted(ids.tolist()) == [*range(12), 900]
        for each, area in zip(states, areas, strict=True):
            for x, y in each.position[:, :2].tolist():
                assert area.x0 - 1e-6 <= x <= area.x1 + 1e-6
                assert area.y0 - 1e-6 <= y <= area.y1 + 1e-6


@given(st.floats(0.0, 0.02), st.floats(-0.01, 0.01), st.floats(5.0, 40.0))
@settings(max_examples=25)
def test_no_vehicle_is_missing_for_longer_than_two_ticks_at_a_border(phase, ahead, begin):
    """Two nodes at 50 Hz, one of them later within the period and with a clock that is off."""
    whole = fleet()
    real = begin + 0.02 * np.arange(150)
    seen = {int(i): [] for i in whole.sample(0.0).id}
    for area, later, error in ((WEST, 0.0, 0.0), (EAST, phase, ahead)):
        for arrival in real + later:
            t = arrival + error
            rows = np.flatnonzero(area.holds(whole.places(t)))
            for i in whole.sample(t, rows=rows).id.tolist():
                seen[i].append(arrival)
    longest = max(float(np.diff(np.sort(arrivals)).max()) for arrivals in seen.values())
    assert longest <= 2 * 0.02 + abs(ahead) + 1e-9


def test_some_vehicles_of_a_fleet_have_the_states_that_all_have():
    whole = fleet()
    rows = np.array([5, 0, 12])
    some = whole.sample(17.0, rows=rows, source="/a", stamp_ns=9)
    of_all = whole.sample(17.0, source="/a", stamp_ns=9).select(rows)
    for name in ("id", "vehicle_type", "position", "orientation", "velocity", "scale"):
        np.testing.assert_array_equal(getattr(some, name), getattr(of_all, name))
    assert (some.source, some.stamp_ns) == ("/a", 9)
    np.testing.assert_allclose(whole.places(17.0)[rows], some.position[:, :2], atol=1e-9)
    assert Fleet([]).places(1.0).shape == (0, 2)


def test_other_plans_have_other_checksums():
    """Another radius, another number of vehicles."""
    same = plan_checksum(fleet())
    assert plan_checksum(fleet()) == same
    assert same not in (plan_checksum(fleet(radius=121.0)), plan_checksum(fleet(count=11)))


# --- the watch


def test_vehicles_of_a_node_that_falls_silent_are_lost_within_two_seconds():
    clock = Clock()
    shards = AreaShards("/west", WEST, clock)
    assert shards.uncovered(PLACES).outside.tolist() == [False, True]  # no node of the east yet

    shards.hear(report(), 0)
    assert not np.concatenate(shards.uncovered(PLACES)).any()
    clock.now += LEASE - 0.01
    assert not np.concatenate(shards.uncovered(PLACES)).any()
    clock.now += 0.01
    assert shards.uncovered(PLACES).lost.tolist() == [False, True]
    assert not shards.uncovered(PLACES).outside.any()
    assert LEASE + 2 * PERIOD <= 2.0  # a report and a look may each be a period away

    # one that crosses the border is taken up; the node comes back
    assert not shards.uncovered(PLACES - (10.0, 0.0)).lost.any()
    shards.hear(report(), 0)
    assert not np.concatenate(shards.uncovered(PLACES)).any()


def test_vehicles_of_a_node_that_says_goodbye_are_in_no_area():
    """Also of one that was silent before; only the node with this name and area is meant."""
    clock = Clock()
    west = AreaShards("/west", WEST, now=clock)
    for silence in (0.1, LEASE + 1.0):
        west.hear(report(), 0)
        west.hear(report("/third", ShardArea(0.0, 0.0, 1.0, 1.0)), 0)
        clock.now += silence
        assert west.hear(report("/east", ShardArea(0.0, 0.0, 9.0, 9.0))._replace(fleet=""), 0)
        assert not west.uncovered(PLACES).outside.any()
        assert west.hear(report()._replace(fleet=""), 0)
        uncovered = west.uncovered(PLACES)
        assert not uncovered.lost.any()
        assert uncovered.outside.tolist() == [False, True]
        assert [each.source for known in west.others() for each in known] == ["/third"]


def test_a_living_node_with_a_larger_area_takes_the_vehicles_of_a_dead_one_up():
    clock = Clock()
    shards = AreaShards("/west", WEST, clock)
    shards.hear(report(), 0)
    clock.now += 10.0
    shards.hear(report("/spare", ShardArea(-1.0, -10.0, 10.0, 10.0)), 0)
    assert not np.concatenate(shards.uncovered(PLACES)).any()


events = st.lists(
    st.tuples(st.sampled_from(["pass", "a", "b", "a repeated", "own"]), st.floats(0.0, 2.0)),
    max_size=30,
)


@given(events)
def test_for_any_schedule_of_reports_only_those_of_silent_nodes_are_lost(schedule):
    """Reports are lost, late or repeated: each that arrives proves that its node lived."""
    clock = Clock()
    shards = AreaShards("/own", ShardArea(-INF, -INF, -10.0, INF), clock)
    areas = {"a": ShardArea(-10.0, -INF, 0.0, INF), "b": ShardArea(0.0, -INF, INF, INF)}
    heard = {}
    for stamp, (event, wait) in enumerate(schedule):
        clock.now += wait
        name = event[0]
        if event == "own":
            mine = report("/own", shards.area, stamp_ns=stamp)
            shards.sent(mine)
            assert not shards.hear(mine, stamp)
        elif name in areas:
            for _ in range(2 if "repeated" in event else 1):
                assert shards.hear(report(f"/{name}", areas[name]), stamp)
            heard[name] = clock.now

        uncovered = shards.uncovered(np.array([[-20.0, 0.0], [-5.0, 0.0], [5.0, 0.0]]))
        silent = [n in heard and clock.now - heard[n] >= LEASE for n in "ab"]
        assert uncovered.lost.tolist() == [False, *silent]
        assert uncovered.outside.tolist() == [False, *(n not in heard for n in "ab")]


def test_the_longest_silent_node_is_forgotten_first():
    shards = AreaShards("/west", WEST, Clock())
    shards.hear(report("/first"), 0)
    for i in range(MOST_NODES):
        shards.hear(report(f"/n{i}"), 0)
    sources = [each.source for each in shards.others()[0]]
    assert len(sources) == MOST_NODES
    assert "/first" not in sources


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("other", "misfit"),
    [
        ({}, None),
        ({"source": "/west"}, Misfit.SAME_NAME),
        ({"source": "/west", "area": WEST}, Misfit.SAME_NAME),
        ({"checksum": 8}, Misfit.OTHER_FLEET),
        ({"area": ShardArea(-1.0, 0.0, 5.0, 5.0)}, Misfit.OVERLAP),
        ({"avoidance": True}, Misfit.OTHER_AVOIDANCE),
        ({"clock": RunClock(5 * SECOND)}, None),
        ({"clock": None}, None),
        ({"clock": RunClock(6 * SECOND)}, Misfit.OTHER_RUN),
        ({"clock": RunClock(5 * SECOND, 0.5)}, Misfit.OTHER_RUN),
        ({"clock": RunClock(5 * SECOND).paused(7 * SECOND)}, Misfit.OTHER_RUN),
        ({"stamp_ns": 9 * SECOND + 50_000_000}, None),
        ({"stamp_ns": 9 * SECOND + 150_000_000}, Misfit.OTHER_TIME),
        ({"stamp_ns": 8 * SECOND}, Misfit.OTHER_TIME),
    ],
)
def test_nodes_that_do_not_fit_together_are_told(other, misfit):
    clock = Clock()
    shards = AreaShards("/west", WEST, clock)
    own = report("/west", WEST, clock=RunClock(5 * SECOND), stamp_ns=1)
    shards.sent(own)
    assert not shards.hear(own, 9 * SECOND)
    assert shards.hear(report(**{"stamp_ns": 9 * SECOND} | other), 9 * SECOND)
    problems = shards.problems(own)
    assert [problem.misfit for problem in problems] == [misfit] * (misfit is not None)
    for problem in problems:
        assert str(problem).startswith(f"{other.get('source', '/east')} with the area [")

    # a dead node is no problem of this kind
    clock.now += LEASE
    assert shards.problems(own) == []
