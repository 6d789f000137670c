# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Preflight compared with a dense sampling of the same way, cases by hand, and repaired plans."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_missions.execution.planned_way import planned_way
from rfly_missions.execution.preflight import Demands, preflight, repaired
from rfly_missions.mission.clearance import Boxes, height_over_ground, near_boxes
from rfly_missions.mission.items import MissionItem, MissionMode
from rfly_terrain.height_map.height_map import HeightMap

NAN = math.nan
PLANS = 25
SAMPLE = 0.25


def terrain_of(random, size=24, step=10.0, roughness=12.0):
    heights = random.uniform(0.0, roughness, (size, size))
    corner = -step * (size - 1) / 2
    return HeightMap(heights, origin_x=corner, origin_y=corner, step_x=step, step_y=step)


def random_plan(random, home):
    """Return a mission of 2 to 5 places, orbits and way-points, and one of three ends."""
    places = random.uniform(-100.0, 100.0, (int(random.integers(2, 6)), 2))
    items = [MissionItem.takeoff((*home[:2], home[2] - random.uniform(10, 40)))]

    for place in places:
        down = home[2] - random.uniform(5, 40)
        if random.random() < 0.2:
            items.append(MissionItem.orbit((*place, down), random.uniform(5, 25), turns=1))
        else:
            items.append(MissionItem.waypoint((*place, down), NAN, 2.0))

    end = random.random()
    if end < 0.3:
        items.append(MissionItem.land((*random.uniform(-100, 100, 2), home[2])))
    elif end < 0.6:
        items.append(MissionItem.return_to_launch())
    return items


def dense(items, home):
    """Return places (k, 3) on the way to each item, as the howto describes the way, by item."""
    place = np.array([*home[:2], items[0].position[2]])
    places = {}

    for index, item in enumerate(items):
        if item.mode is MissionMode.ORBIT:
            centre = item.position
            radius = item.params[0]
            first = math.atan2(*(place[:2] - centre[:2])[::-1])
            angles = first + np.linspace(0, 2 * math.pi, int(2 * math.pi * radius / SAMPLE) + 2)
            ring = centre + radius * np.column_stack(
                (np.cos(angles), np.sin(angles), np.zeros(len(angles)))
            )
            places[index] = np.concatenate((line(place, ring[0]), ring))
            place = ring[-1]
        elif item.mode in (MissionMode.LAND, MissionMode.RTL):
            is_return = item.mode is MissionMode.RTL
            down = min(place[2], home[2] - 15.0) if is_return else place[2]
            end = np.array([*(home if is_return else item.position)[:2], down])
            places[index] = line(np.array([*place[:2], down]), end)
            place = end
        else:
            places[index] = line(place, item.position)
            place = item.position
    return places


def line(start, end):
    count = int(np.linalg.norm(end - start) / SAMPLE) + 2
    return np.linspace(start, end, count)


def distance_to_box(points, center, half, yaw, top):
    """Return distances by turning the points into the box's frame."""
    away = (points[:, 0] - center[0]) + 1j * (points[:, 1] - center[1])
    own = away * np.exp(-1j * yaw)
    outside = np.maximum(np.abs(own.real) - half[0], 0), np.maximum(np.abs(own.imag) - half[1], 0)
    return np.sqrt(outside[0] ** 2 + outside[1] ** 2 + np.maximum(top - points[:, 2], 0) ** 2)


def one_by_one(boxes):
    return zip(boxes.center, boxes.half, boxes.yaw, boxes.top, strict=True)


def random_boxes(random, terrain, count=6):
    center = random.uniform(-100, 100, (count, 2))
    half = random.uniform(1, 8, (count, 2))
    yaw = random.uniform(-3, 3, count)
    top = np.asarray(terrain.altitude_ned(center[:, 0], center[:, 1])) - random.uniform(
        2, 30, count
    )
    return Boxes(center, half, yaw, top)


def test_random_plans_beside_dense_sampling():
    """The report names every item whose way the samples find too low, too near or out of sight.

    It names no other item.
    """
    random = np.random.default_rng(11)
    demands = Demands(clearance=8.0, antenna_height=2.0)
    named = {"ground": 0, "object": 0, "radio": 0}

    for _ in range(PLANS):
        terrain = terrain_of(random)
        home = (0.0, 0.0, float(terrain.altitude_ned(0.0, 0.0)))
        items = random_plan(random, home)
        boxes = random_boxes(random, terrain)
        report = preflight(items, home, terrain, boxes=boxes, demands=demands)
        problems = {(problem.kind, problem.item): problem for problem in report.problems}

        lowest = math.inf
        for index, points in dense(items, home).items():
            height = np.asarray(terrain.altitude_ned(points[:, 0], points[:, 1])) - points[:, 2]
            lowest = min(lowest, height.min())
            distance = min(distance_to_box(points, *box).min() for box in one_by_one(boxes))
            for kind, least in (("ground", height.min()), ("object", distance)):
                if least < 8.0:
                    assert (kind, index) in problems
                    named[kind] += 1
                elif (kind, index) in problems:
                    assert least < 8.1

            # line of sight
            every = points[::4]
            above = np.column_stack((every[:, 1], every[:, 0], -every[:, 2]))
            seen = np.asarray(terrain.line_of_sight(above, np.array([0.0, 0.0, 2.0 - home[2]])))
            hidden = ~seen & (height[::4] > 0.1)
            if (hidden[:-2] & hidden[1:-1] & hidden[2:]).any():
                assert ("radio", index) in problems
                named["radio"] += 1

        assert report.lowest == pytest.approx(lowest, abs=0.1)
        assert report.lowest <= lowest + 0.011  # of a circle's chords

    assert min(named.values()) > 10, named


def test_repaired_plans_are_clear():
    random = np.random.default_rng(12)
    demands = Demands(clearance=8.0)
    for _ in range(15):
        terrain = terrain_of(random)
        home = (0.0, 0.0, float(terrain.altitude_ned(0.0, 0.0)))
        items = random_plan(random, home)
        boxes = random_boxes(random, terrain)
        raised, report = repaired(items, home, terrain, boxes=boxes, demands=demands)
        assert not [problem for problem in report.problems if problem.kind in ("ground", "object")]

        for before, after in zip(items, raised, strict=True):
            assert (after.mode, after.params.tolist()[1:]) == (
                before.mode,
                before.params.tolist()[1:],
            )
            np.testing.assert_array_equal(after.position[:2], before.position[:2])
            assert after.position[2] <= before.position[2]

        for points in dense(raised, home).values():
            assert (
                np.asarray(terrain.altitude_ned(points[:, 0], points[:, 1])) - points[:, 2]
            ).min() >= 8.0 - 0.011
            for box in one_by_one(boxes):
                assert distance_to_box(points, *box).min() >= 8.0 - 0.011


RIDGE = HeightMap(
    np.repeat([[0.0], [0.0], [40.0], [0.0], [0.0]], 5, axis=1),
    origin_x=-200,
    origin_y=-200,
    step_x=100,
    step_y=100,
)
"""A ridge, 40 m high along north at x = 0; level from 100 m on."""


def test_a_line_over_a_ridge_by_hand():
    """A line 50 m high clears the ridge by 10 m, half-way; a slanted one by similar triangles."""
    height, share = height_over_ground(RIDGE, np.array([0, -100, -50.0]), np.array([0, 100, -50.0]))
    assert (height, share) == pytest.approx((10.0, 0.5))

    height, share = height_over_ground(RIDGE, np.array([0, -100, -20.0]), np.array([0, 100, -80.0]))
    assert (height, share) == pytest.approx((10.0, 0.5))

    height, share = height_over_ground(
        RIDGE, np.array([5000, -9000, -7.0]), np.array([5000, -9000, -7.0])
    )
    assert height == pytest.approx(7.0)  # off the map its edge goes on

    height, _ = height_over_ground(RIDGE, np.array([0, -50, -30.0]), np.array([0, -50, -50.0]))
    assert height == pytest.approx(10.0)


def test_distances_to_a_box_by_hand():
    """A box of 4 x 2 m, its long side to the east, 10 m high."""
    box = Boxes(
        np.zeros((1, 2)), np.array([[2.0, 1.0]]), np.array([math.pi / 2]), np.array([-10.0])
    )

    for first, last, metres in (
        ((-9, 5, -5), (9, 5, -5), 3.0),
        ((4, -9, -5), (4, 9, -5), 3.0),
        ((0, -9, -14), (0, 9, -14), 4.0),
        ((4, 6, -15), (4, 6, -15), math.sqrt(9 + 16 + 25)),
        ((-9, 0, 3), (9, 0, 3), 0.0),
    ):
        start = np.array([first], float)
        end = np.array([last], float)
        near = near_boxes(box, start, end, 50.0)
        assert (near.line.tolist(), near.box.tolist()) == ([0], [0])
        assert near.distance[0] == pytest.approx(metres, abs=1e-6)

        none_near = near_boxes(box, start, end, max(0.0, metres - 1e-6))
        assert not len(none_near.line)


def over_the_ridge(down):
    return [
        MissionItem.takeoff((0, -150, down)),
        MissionItem.waypoint((0, 150, down), NAN, 2.0),
        MissionItem.land((0, 150, 0)),
    ]


HOME = (0.0, -150.0, 0.0)


def test_the_horizon_hides_home():
    """Over level ground an antenna of 2 m and a vehicle at 15 m lose each other after 21.8 km.

    4.12 km (√2 + √15): the radio horizon of ITU-R P.310.
    """
    level = HeightMap(
        np.zeros((2, 2)), origin_x=0.0, origin_y=0.0, step_x=60_000.0, step_y=60_000.0
    )
    home = (100.0, 100.0, 0.0)
    items = [
        MissionItem.takeoff((100.0, 100.0, -15.0)),
        MissionItem.waypoint((100.0, 21_000.0, -15.0), NAN, 2.0),
        MissionItem.waypoint((100.0, 28_700.0, -15.0), NAN, 2.0),
    ]
    demands = Demands(clearance=5.0, antenna_height=2.0)
    report = preflight(items, home, level, demands=demands)
    (radio,) = [problem for problem in report.problems if problem.kind == "radio"]
    assert radio.item == 2
    assert radio.place[1] - 100.0 == pytest.approx(21_793.0, abs=60.0)


def test_the_ridge_hides_home_and_sets_the_height_of_a_return():
    report = preflight(over_the_ridge(-45.0), HOME, RIDGE, demands=Demands(clearance=10.0))
    ground, radio, landing = report.problems
    assert (ground.kind, ground.item, ground.text) == ("ground", 1, "5.0 m over the ground")
    assert ground.place == pytest.approx((0.0, 0.0, -45.0))
    assert (radio.kind, radio.item, landing.item) == ("radio", 1, 2)

    # from 2 m the line over the top, 150 m away and 38 m higher, is at 45 m 169.7 m from home: 19.7
    # m beyond the ridge
    assert radio.place == pytest.approx((0.0, 19.7, -45.0), abs=2.0)
    assert report.return_height == pytest.approx(50.0)
    assert report.lowest == pytest.approx(5.0)

    raised, after = repaired(over_the_ridge(-45.0), HOME, RIDGE, demands=Demands(clearance=10.0))
    assert [item.position[2] for item in raised] == pytest.approx([-50.05, -50.05, 0.0])
    assert {problem.kind for problem in after.problems} == {"radio"}


def test_time_and_energy_by_hand():
    """60 m up at 4 m/s, 300 m at 8 m/s, 60 m down at 2 m/s: 15 + 37.5 + 30 s.

    They take 4.58 Wh at 200 W.
    """
    full = Demands(clearance=0.0, battery_wh=10.0, power_w=200.0)
    report = preflight(over_the_ridge(-60.0), HOME, RIDGE, demands=full)
    assert (report.seconds, report.length) == pytest.approx((82.5, 420.0))
    assert report.energy_wh == pytest.approx(200 * 82.5 / 3600)
    assert "battery" not in [problem.kind for problem in report.problems]

    # at the way-point 52.5 s are flown and 37.5 + 30 s are left: 6.67 Wh of 8 Wh without the
    # reserve
    short = Demands(clearance=0.0, battery_wh=8.0, power_w=200.0)
    problems = preflight(over_the_ridge(-60.0), HOME, RIDGE, demands=short).problems
    (problem,) = [problem for problem in problems if problem.kind == "battery"]
    assert problem.item == 1
    assert problem.text == "83 % of the battery with the way home, 20 % are to be left"

    with pytest.raises(ValueError, match="battery_wh and power_w"):
        Demands(battery_wh=3.0)


def test_items_that_the_vehicle_flies_higher_are_reported():
    """A fixed wing can't reach the plateau of 60 m from 20 m at 100 m away from it.

    It climbs 0.16 m/m at most, 1 / 1.0824 of that along the grid, and keeps 2 + 1 m above.
    """
    east = np.arange(-300.0, 301.0, 10.0)
    heights = np.repeat(np.where(east >= 100.0, 60.0, 0.0)[:, None], len(east), axis=1)
    cliff = HeightMap(heights, origin_x=-300, origin_y=-300, step_x=10, step_y=10)
    items = [MissionItem.takeoff((0, 0, -20)), MissionItem.waypoint((0, 0, -60))]

    (raised,) = preflight(items, HOME, cliff, fixed_wing=True).raised
    assert (raised.index, raised.mode, raised.height) == (0, MissionMode.TAKEOFF, 20.0)
    assert raised.flown_height == pytest.approx(60.0 - 100.0 * 0.16 / 1.0824 + 3.0)

    assert preflight(items, HOME, cliff).raised == ()
    (raised,) = preflight(items, HOME, cliff, min_height=30.0).raised
    assert raised.flown_height == 30.0


def test_items_beyond_the_map_are_reported_with_edge_and_distance():
    """The map spans 100 m north and south and 50 m west and east of its origin."""
    flat = HeightMap(np.zeros((11, 21)), origin_x=-50, origin_y=-100, step_x=10, step_y=10)
    items = [
        MissionItem.takeoff((0, 0, -20)),
        MissionItem.waypoint((100, 50, -20)),  # on the corner
        MissionItem.waypoint((112, 55, -20)),
        MissionItem.orbit((0, 30, -20), 25.0),
        MissionItem.mavlink(17, (-60, -49, -20)),  # a loiter
        MissionItem.land((-100.5, 0, 0)),
        MissionItem.return_to_launch(),
    ]

    def found(**kind):
        report = preflight(items, HOME, flat, **kind)
        return [(each.index, each.edge, each.distance) for each in report.off_map]

    assert found() == [(2, "north", 12.0), (3, "east", 5.0), (5, "south", 0.5)]
    assert (4, "west", 39.0) in found(fixed_wing=True, loiter_radius=40.0)


def jump(to, times):
    return MissionItem.mavlink(177, (0, 0, -20), (to, times, 0, 0))


def test_jumps_are_followed_and_their_way_back_is_checked():
    a = MissionItem.waypoint((50, 0, -20))
    b = MissionItem.waypoint((50, 50, -20))
    way = planned_way([MissionItem.takeoff((0, 0, -20)), a, b, jump(2, 2)], (1, 2, 3, 4), (0, 0, 0))
    assert [leg.item for leg in way.legs if leg.flown] == [0, 1, 2, 1, 2, 1, 2]
    assert [leg.repeated for leg in way.legs if leg.flown] == [False] * 4 + [True] * 3

    endless = planned_way([a, b, jump(1, -1)], (1, 2, 3), (0, 0, 0))
    assert endless.endless == "item 2 jumps to item 0 for ever"
    assert [leg.item for leg in endless.legs if leg.flown] == [0, 1, 0]

    flat = HeightMap(np.zeros((2, 2)), origin_x=-99, origin_y=-99, step_x=198, step_y=198)
    (problem,) = preflight([a, b, jump(1, -1)], (0, 0, 0), flat).problems
    assert (problem.kind, problem.text) == ("end", "item 2 jumps to item 0 for ever")


def test_a_fixed_wing_circles_where_it_waits():
    loiter = MissionItem.mavlink(19, (100, 0, -30), (12.0, 0.0, 0.0, 0.0))
    length = {}
    flat = HeightMap(np.zeros((2, 2)), origin_x=-99, origin_y=-99, step_x=198, step_y=198)
    for fixed_wing in (False, True):
        report = preflight(
            [MissionItem.takeoff((0, 0, -30)), loiter], (0, 0, 0), flat, fixed_wing=fixed_wing
        )
        length[fixed_wing] = report.length
        assert not report.problems
    assert length[False] == pytest.approx(130.0)
    assert length[True] == pytest.approx(105.0 + 2 * math.pi * 25.0, abs=0.2)
