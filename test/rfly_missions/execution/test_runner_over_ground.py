# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions over ground: least heights, climbs in time, items too low or off the map."""

import math

import numpy as np
import pytest
from marks import exhaustively
from mission_flights import KINDS, Flight, R, T

from rfly_common.errors import ConfigError
from rfly_missions.execution.runner import MissionRunner
from rfly_missions.followers.fixed_wing import FixedWing
from rfly_missions.followers.ground import Ground, cone_envelope
from rfly_missions.followers.multirotor import Multirotor, MultirotorLimits
from rfly_missions.mission.items import MissionCommand, MissionItem, MissionMode
from rfly_terrain.height_map.height_map import HeightMap

NAN = math.nan


@pytest.fixture(scope="module")
def mountains():
    return HeightMap.load("JacksboroFault")


def test_the_surface_above_which_a_climb_suffices():
    """Compare with every sample's cone, one by one; distances along rows, columns and diagonals."""
    heights = np.random.default_rng(4).uniform(0, 40, (9, 12))
    rows, columns = np.indices(heights.shape)
    expected = heights.copy()
    for (row, column), height in np.ndenumerate(heights):
        across = np.abs(rows - row)
        along = np.abs(columns - column)
        both = np.minimum(across, along)
        distance = both * math.hypot(3.0, 5.0) + (across - both) * 3.0 + (along - both) * 5.0
        expected = np.maximum(expected, height - 0.7 * distance)
    np.testing.assert_allclose(cone_envelope(heights, 3.0, 5.0, 0.7), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_over_rough_ground_never_below_the_minimum(kind):
    """Hills have bumps of 5 m from cell to cell, and way-points lie deep inside of them."""
    random = np.random.default_rng(1)
    heights = np.cumsum(np.cumsum(random.normal(0, 1, (81, 81)), 0), 1)
    heights = 100 * (heights - heights.min()) / np.ptp(heights) + random.uniform(0, 5, (81, 81))
    rough = HeightMap(heights, origin_x=-400.0, origin_y=-400.0, step_x=10.0, step_y=10.0)

    home = (0.0, 0.0, float(rough.altitude_ned(0.0, 0.0)))
    points = [
        MissionItem.waypoint((*random.uniform(-330, 330, 2), 0.0), NAN, 3.0) for _ in range(3)
    ]

    up = MissionItem.takeoff((0, 0, home[2] - 30))
    items = [
        up,
        *points,
        MissionItem.orbit((50, 50, 0), 60.0, -1, 0.5),
        MissionItem.land((10, 20, 0)),
    ]
    flight = Flight(kind, items, terrain=rough, min_height=10.0, home=home, dt=0.1).to_end(2000.0)

    # heights on the way and at the end
    track = np.array(flight.track)
    height = np.asarray(rough.altitude_ned(track[:, 0], track[:, 1])) - track[:, 2]
    begin, end = (round(t / flight.dt) for t in (flight.times[1], flight.times[-1]))
    assert height[begin:end].min() >= 10.0
    assert abs(height[-1]) <= 0.31
    assert np.hypot(*(track[-1, :2] - (10, 20))) <= 1.0


def test_a_fixed_wing_climbs_over_a_ridge_in_time():
    """A ridge of 60 m half-way: no turn to the side, no spiral, no metre too low."""
    axis = np.arange(-600.0, 601.0, 10.0)
    ridge = np.repeat(60.0 * np.exp(-((axis[:, None] / 60.0) ** 2)), axis.size, axis=1)
    terrain = HeightMap(ridge.T, origin_x=-600.0, origin_y=-600.0, step_x=10.0, step_y=10.0)

    items = [MissionItem.waypoint((north, 0.0, -12.0), NAN, 3.0) for north in (-400.0, 400.0)]
    flight = Flight("fixed-wing", items, terrain=terrain, min_height=10.0)
    flight.vehicle.airborne = True
    flight.vehicle.position = (-550.0, 0.0, -12.0)
    flight.vehicle._speed = 14.0

    track = np.array(flight.to_end(200.0).track)
    height = np.asarray(terrain.altitude_ned(track[:, 0], track[:, 1])) - track[:, 2]
    assert height.min() >= 10.0
    assert np.abs(track[:, 1]).max() < 1.0
    assert np.all(np.diff(track[:, 0]) > 0.0)


@pytest.mark.parametrize("kind", [exhaustively("multirotor"), "fixed-wing"])
def test_over_mountains_never_under_the_ground(kind, mountains):
    """Way-points inside of the mountains are flown above them; the landing is on the terrain."""

    def down(north, east):
        return float(mountains.altitude_ned(north, east))

    home = (0.0, 0.0, down(0, 0))
    items = [
        MissionItem.takeoff((0, 0, home[2] - 20)),
        MissionItem.waypoint((1500, 1500, home[2] - 10), NAN, 3),
        MissionItem.waypoint((-1900, 1500, home[2] - 10), NAN, 3),
        MissionItem.orbit((-1900, 0, down(-1900, 0)), 60.0, 1, 1),
        MissionItem.waypoint((-2300, -2200, 0), NAN, 3),
        MissionItem.land((100, -50, 0)),
    ]
    limits = MultirotorLimits(speed=20.0) if kind == "multirotor" else None
    flight = Flight(
        kind, items, terrain=mountains, min_height=8.0, home=home, dt=0.1, limits=limits
    ).to_end(4000.0)

    track = np.array(flight.track)
    ground = np.asarray(mountains.altitude_ned(track[:, 0], track[:, 1]))
    height = ground - track[:, 2]
    assert height.min() >= -1e-9

    begin, end = (int(t / flight.dt) for t in (flight.times[1], flight.times[-1]))
    assert height[begin:end].min() >= 8.0
    assert height[begin:end].min() < 14.0
    assert np.ptp(ground[begin:end]) > 150.0
    assert abs(height[-1]) <= 0.31
    assert np.hypot(*(track[-1, :2] - (100, -50))) <= 1.0
    assert flight.state.flown.position[2] == down(100, -50)


def cliff():
    """Return ground at 0 m that rises to 60 m between 90 and 100 m east."""
    east = np.arange(-300.0, 301.0, 10.0)
    heights = np.repeat(np.where(east >= 100.0, 60.0, 0.0)[:, None], len(east), axis=1)
    return HeightMap(heights, origin_x=-300.0, origin_y=-300.0, step_x=10.0, step_y=10.0)


LOW = [
    MissionItem.takeoff((0, 0, -20)),
    MissionItem.waypoint((50, 0, -30), math.nan),
    MissionItem.waypoint((0, 0, -60), math.nan),
]
NEEDED = 60.0 - 100.0 * 0.16 / 1.0824 + 2.0 + 1.0
"""Height, m, 100 m away from the cliff: it climbs 0.75 * 3 / 14 m/m, which counts as 0.16, and
1 / 1.0824 of that along the grid; the minimum height and a margin come on top.
"""


def test_items_too_low_for_a_fixed_wing_are_flown_higher_and_the_log_says_how_high():
    flight = Flight("fixed-wing", LOW, terrain=cliff())
    assert flight.logged == [
        "flown higher than the mission says, to keep 2 m above all ground that it cannot outclimb: "
        "item 0 (TAKEOFF) at 48.2 m instead of 20.0 m, item 1 (WAYPOINT) at 48.2 m instead of "
        "30.0 m"
    ]

    flight.until(lambda: flight.state and flight.state.item_index == 1)
    assert flight.state.params.current == LOW[1]
    assert flight.state.flown.position.tolist() == pytest.approx([50, 0, -NEEDED])
    assert flight.vehicle.position[2] == pytest.approx(-NEEDED, abs=1.0)
    flight.to_end()
    assert flight.state.flown.position[2] == pytest.approx(-60.0, abs=1.0)

    many = Flight("fixed-wing", [LOW[0], *[LOW[1]] * 8], terrain=cliff()).logged
    assert many[0].endswith("item 4 (WAYPOINT) at 48.2 m instead of 30.0 m and 4 more")


def test_items_beyond_the_map_are_logged_when_mission_or_map_come():
    """The map ends 300 m from its origin; before it is known, none of it is said."""
    items = [MissionItem.takeoff((0, 0, -80)), MissionItem.waypoint((0, -320, -80))]
    note = (
        "item 1 (WAYPOINT) reaches 20.0 m beyond the map's west edge; the ground there is unknown, "
        "and the edge's height stands for it"
    )
    assert Flight("multirotor", items, terrain=cliff()).logged == [note]

    flight = Flight("multirotor", items)
    assert flight.logged == []
    flight.runner.ground = Ground(cliff())
    assert flight.logged == [note]

    many = Flight("multirotor", [items[0], *[items[1]] * 8], terrain=cliff(), start_index=2).logged
    assert len(many) == 6
    assert many[-1] == "2 more items reach beyond the map"


def test_missions_with_items_too_low_are_refused_where_that_is_chosen():
    vehicle = FixedWing(ground=Ground(cliff()))
    runner = MissionRunner("fixed-wing", follower=vehicle, too_low="refuse")
    high = [MissionItem.takeoff((0, 0, -NEEDED)), LOW[2]]
    runner.load(high)
    with pytest.raises(
        ConfigError,
        match=r"mission item 0: TAKEOFF at 20\.0 m, expected at least 48\.3 m to keep 2 m above .*"
        r"; 2 items are too low",
    ):
        runner.load(LOW)
    assert runner.items == tuple(high)
    runner.load(LOW, start_index=2)

    # a multirotor keeps its minimum height only
    runner = MissionRunner("multirotor", ground=Ground(cliff(), 25.0), too_low="refuse")
    runner.load(LOW[1:])
    with pytest.raises(ConfigError, match=r"at 20\.0 m, expected at least 25\.0 m to keep 25 m ab"):
        runner.load(LOW)

    # without a map, home's level counts
    runner = MissionRunner("multirotor", too_low="refuse")
    with pytest.raises(ConfigError, match="item 1 lies below home"):
        runner.load([T, MissionItem.waypoint((50, 0, 5))])
    with pytest.raises(ValueError, match="too_low: 'sink'"):
        MissionRunner(too_low="sink")


def test_a_guide_of_an_external_fixed_wing_flies_higher_too():
    logged = []
    runner = MissionRunner("fixed-wing", ground=Ground(cliff()), log=logged.append)
    runner.load(LOW)
    assert logged[0].count(" at 48.2 m") == 2
    runner.guide = FixedWing((0.0, -200.0, -20.0), ground=runner.ground, airborne=True)
    state = runner.step(0.1, (0.0, -200.0, -20.0, 0.0))
    assert state.flown.position.tolist() == pytest.approx([0, 0, -NEEDED])

    # a map that arrives later
    late = MissionRunner("fixed-wing", log=logged.append)
    late.load(LOW)
    logged.clear()
    late.ground = Ground(cliff())
    assert logged[0].count(" at 48.2 m") == 2


def test_a_land_air_vehicle_ignores_the_heights_of_what_it_drives():
    logged = []
    runner = MissionRunner("land-air", ground=Ground(cliff(), 25.0), log=logged.append)
    runner.load([LOW[1], LOW[0], LOW[0], MissionItem.land((0, 0, 0)), LOW[1]])
    assert [text.count("item ") for text in logged] == [2]
    assert "item 1 (TAKEOFF)" in logged[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_landing_above_home_ends_on_the_ground_without_a_map(kind):
    """Home is the only ground that is known: its height, everywhere."""
    flight = Flight(kind, [T, MissionItem.land((300, 0, -19.5))]).to_end()
    assert flight.vehicle.position[2] == pytest.approx(0.0, abs=0.35)


def test_what_lies_below_home_is_flown_above_it_without_a_map():
    """An item 100 m above sea, home at 500 m."""
    flight = Flight(
        "multirotor", [T, MissionItem.waypoint((100, 0, 400), NAN, 2.0), R], home=(0.0, 0.0, 0.0)
    ).to_end()
    assert np.array(flight.track)[:, 2].max() <= 1e-9
    assert "item 1 by 400.0 m: without a map the ground is taken as level" in flight.logged[0]
    assert flight.state.items_done == 3


def test_a_vehicle_below_home_goes_on_from_there():
    """Level ground is assumed no higher than the vehicle, which stands 30 m below home."""
    vehicle = Multirotor((0.0, 0.0, 30.0))
    runner = MissionRunner("multirotor", follower=vehicle)
    runner.load([MissionItem.takeoff((0, 0, 10)), MissionItem.land((0, 0, 30))], (0.0, 0.0, 0.0))

    highest = 30.0
    for _ in range(2000):
        state = runner.step(0.05)
        highest = min(highest, vehicle.position[2])
        if state.finished:
            break

    assert highest == pytest.approx(10.0, abs=1.1)
    assert vehicle.position[2] == pytest.approx(30.0, abs=0.4)


def test_a_vehicle_that_stands_on_an_unknown_hill_has_landed():
    """It follows its guide, but the ground is 12 m above home."""
    runner = MissionRunner("multirotor")
    runner.load([MissionItem.land((0, 0, 0))], (0.0, 0.0, 0.0))
    runner.guide = Multirotor((0.0, 0.0, -20.0))

    down = -20.0
    landed_at = None
    state = None

    for step in range(1200):
        state = runner.step(0.05, (0.0, 0.0, down, 0.0))
        down = min(-12.0, runner.guide.position[2])
        landed_at = step * 0.05 if landed_at is None and down == -12.0 else landed_at
        if state.finished:
            break

    assert state.finished
    assert 3.0 <= step * 0.05 - landed_at <= 5.0


def test_a_landing_in_a_pit_is_given_up():
    """Walls of 150 m stand 40 m around the touchdown point.

    No approach is free, and the aircraft holds.
    """
    axis = np.arange(-400.0, 401.0, 5.0)
    heights = np.clip((np.hypot(*np.meshgrid(axis, axis)) - 40.0) * 3.0, 0.0, 150.0)
    pit = HeightMap(heights, origin_x=-400.0, origin_y=-400.0, step_x=5.0, step_y=5.0)

    wing = FixedWing((300.0, 300.0, -200.0), ground=Ground(pit), airborne=True)
    runner = MissionRunner("fixed-wing", follower=wing, log=lambda text: None)
    runner.load([MissionItem.land((0, 0, 0))])

    state = runner.step(0.1)
    for _ in range(9000):
        if state.problem:
            break
        state = runner.step(0.1)
    assert "no way to land at 0, 0 (north, east m): 6 approaches came to nothing" in state.problem

    state = runner.step(0.1)
    assert state.params.current.mode is MissionMode.HOLD
    assert state.problem
    assert not state.finished

    runner.command = MissionCommand.RTL
    assert runner.step(0.1).problem == ""


UP = MissionItem.takeoff((0, 0, -20), here=True)


def test_a_take_off_here_begins_where_the_vehicle_is():
    """The vehicle starts 200 m off, lands 60 m farther on, and rises there again."""
    flight = Flight("multirotor", [], home=(200.0, 0.0, 0.0))
    there = (260.0, 0.0)
    items = [UP, MissionItem.waypoint((*there, -20), math.nan), MissionItem.land((*there, 0)), UP]
    flight.runner.load([*items, MissionItem.waypoint((0, 0, -20), math.nan)], (0.0, 0.0, 0.0))
    assert [item.position[0] for item in flight.runner.items] == [200, 260, 260, 260, 0]

    flight.to_end()
    track = np.array(flight.track)
    begins = [round(t / flight.dt) for t in flight.times]
    ends = [*begins[1:], len(track)]
    for (mode, _), begin, end in zip(flight.shown, begins, ends, strict=True):
        if mode == "TAKEOFF":
            assert np.ptp(track[begin:end, :2], axis=0).max() < 0.5
            assert np.ptp(track[begin:end, 2]) > 18.0


@pytest.mark.parametrize("height", [20.0, 49.0])
def test_a_take_off_below_the_vehicle_is_ignored(height):
    high = MissionItem.waypoint((60, 0, -50), math.nan)
    lower = MissionItem.takeoff((90, 0, -height))
    flight = Flight("multirotor", [T, high, lower, high]).to_end()
    began = flight.shown.index(("TAKEOFF", 2))
    assert flight.times[began + 1] - flight.times[began] < 0.11
    lowest = np.array(flight.track)[round(flight.times[began] / flight.dt) :, 2].max()
    assert lowest < -48.5
