# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans keep clear of objects on the ground, by an oracle of its own.

The oracle measures distances of dense samples to the objects.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError, PlanError
from rfly_terrain import HeightMap
from rfly_terrain.costmap.traversability import TraversabilityLimits
from rfly_terrain.planning.plan import DRIVE, FLY, MIXED, PlanPose
from rfly_terrain.planning.planner import MARGIN, Planner
from rfly_terrain.planning.vehicle_classes import Driving, Flying, VehicleClass
from rfly_terrain.world.solids import ObjectBoxes, Solids

RADIUS = 0.8
MIN_HEIGHT = 8.0
DRIVING = Driving(
    5.0, 1.5, TraversabilityLimits(25.0, vehicle_radius=RADIUS, half_wheelbase=0.5), 0.05, 0.8
)
FLYING = Flying(MIN_HEIGHT, 10.0, 4.0, 2.0, power=2000.0, hover_power=2400.0, efficiency=0.5)
MULE = VehicleClass("mule", "land_air", 20.0, RADIUS, DRIVING, FLYING)
WING = VehicleClass(
    "wing",
    "fixed_wing",
    6.0,
    RADIUS,
    None,
    Flying(MIN_HEIGHT, 18.0, 3.0, 3.0, power=150.0, turning_radius=30.0),
)


def hills(size=151, step=2.0):
    """300 m to a side about the origin, 4 m up and down."""
    at = (np.arange(size) - size // 2) * step
    heights = 4.0 * np.sin(at[:, None] / 40.0) * np.cos(at[None, :] / 50.0)
    return HeightMap(heights, origin_x=at[0], origin_y=at[0], step_x=step, step_y=step)


def tower(height=150.0, half=4.0):
    return ObjectBoxes([(0.0, 0.0, height / 2 - 5.0)], [(half, half, height / 2 + 5.0)])


def dense(plan, count=4000):
    """(count, 3) places along a plan, evenly."""
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(plan.position, axis=0), axis=1))])
    return np.column_stack(
        [np.interp(np.linspace(0, way[-1], count), way, column) for column in plan.position.T]
    )


def box_distance(points, boxes):
    """(n,) from points to the nearest upright box; 0 within one."""
    away = np.abs(points[:, None] - boxes.centre) - boxes.half_extent
    return np.linalg.norm(np.maximum(away, 0.0), axis=2).min(axis=1)


@pytest.mark.parametrize("mode", [FLY, MIXED, DRIVE])
def test_a_tower_on_the_straight_way(mode):
    """561 of 4,000 samples of the flown plan lay inside a tower of 150 m, as many as without it."""
    a = PlanPose(-100.0, 0.3)
    b = PlanPose(100.0, 0.0)
    without = dense(Planner(hills()).plan(MULE, a, b, mode))
    assert (box_distance(without, tower()) == 0.0).sum() > 100
    plan = Planner(hills(), tower()).plan(MULE, a, b, mode)
    assert box_distance(dense(plan), tower()).min() >= RADIUS + MARGIN - 0.01
    assert plan.length < 1.2 * 200  # around it, not over it


def test_a_wide_wall_is_flown_over_with_the_height_kept():
    """A wall from rim to rim of the map is crossed above its top at 12 m.

    The flight is no lower than `min_height`.
    """
    wall = ObjectBoxes([(0.0, 0.0, 6.0)], [(1.0, 150.0, 6.0)])
    terrain = HeightMap(
        np.zeros((151, 151)), origin_x=-150.0, origin_y=-150.0, step_x=2.0, step_y=2.0
    )

    plan = Planner(terrain, wall).plan(MULE, PlanPose(-100.0, 0.0), PlanPose(100.0, 0.0), FLY)
    way = dense(plan)
    above = np.abs(way[:, 0]) <= 1.0 + RADIUS
    assert above.sum() > 30
    assert way[above, 2].min() >= 12.0 + MIN_HEIGHT - 1e-6
    assert way[:, 2].max() <= 12.0 + MIN_HEIGHT + 1e-6

    # not by driving, but by both
    with pytest.raises(PlanError, match="no way leads"):
        Planner(terrain, wall).plan(MULE, PlanPose(-100.0, 0.0), PlanPose(100.0, 0.0), DRIVE)
    mixed = Planner(terrain, wall).plan(MULE, PlanPose(-100.0, 0.0), PlanPose(100.0, 0.0), MIXED)
    assert {DRIVE, FLY} == set(mixed.mode.tolist())
    assert box_distance(dense(mixed), wall).min() >= RADIUS + MARGIN - 0.01


def cylinders(seed, count=60):
    """Return solids of upright cylinders, with their middles (n, 2), radii, and tops.

    The solids are prisms of 16 sides around the cylinders.
    """
    rng = np.random.default_rng(seed)
    middle = rng.uniform(-90, 90, (count, 2))
    radius = rng.uniform(0.3, 4.0, count)
    keep = np.hypot(*(middle - (-100, 0)).T) > 12
    middle = middle[keep]
    radius = radius[keep]
    top = rng.uniform(3.0, 90.0, len(middle))

    # prisms
    angle = (np.arange(16) + 0.5) * math.pi / 8
    ring = (
        radius[:, None, None]
        / math.cos(math.pi / 16)
        * np.column_stack([np.cos(angle), np.sin(angle)])
    )
    low, high = (
        np.concatenate([ring + middle[:, None], np.broadcast_to(z, (len(middle), 16, 1))], axis=2)
        for z in (np.full((len(middle), 1, 1), -9.0), top[:, None, None])
    )
    vertices = np.concatenate([low, high], axis=1).reshape(-1, 3)
    return Solids(vertices, 32 * np.arange(len(middle) + 1)), middle, radius, top


def cylinder_distance(points, middle, radius, top):
    """(n,) from points to the nearest cylinder, from far below up to its top; 0 within one."""
    across = np.linalg.norm(points[:, None, :2] - middle, axis=2) - radius
    return np.hypot(np.maximum(across, 0.0), np.maximum(points[:, None, 2] - top, 0.0)).min(axis=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("vehicle", "mode"), [(MULE, FLY), (MULE, DRIVE), (MULE, MIXED), (WING, FLY)]
)
def test_sixty_pillars(vehicle, mode, seed):
    solids, *where = cylinders(seed)
    goal = PlanPose(110.0, -20.0)
    planner = Planner(hills(), solids, margin=1.0, resolution=1.0)
    plan = planner.plan(vehicle, PlanPose(-110.0, 0.0), goal, mode)
    assert cylinder_distance(dense(plan, 20_000), *where).min() >= RADIUS + 1.0 - 0.01
    assert plan.position[-1, :2] == pytest.approx([110.0, -20.0])


def test_between_two_towers_only_where_the_vehicle_fits():
    """A gap of 5 m is wide enough for a vehicle of 1.6 m with margins of 0.5 m on both sides.

    It is too narrow with margins of 2 m.
    """
    gate = ObjectBoxes([(0.0, 77.5, 60.0), (0.0, -77.5, 60.0)], [(2.0, 75.0, 70.0)] * 2)
    terrain = HeightMap(
        np.zeros((601, 601)), origin_x=-150.0, origin_y=-150.0, step_x=0.5, step_y=0.5
    )
    a = PlanPose(-60.0, 0.0)
    b = PlanPose(60.0, 0.0)
    through = Planner(terrain, gate).plan(MULE, a, b, FLY)
    assert through.position[:, 2].max() == pytest.approx(MIN_HEIGHT)
    assert box_distance(dense(through), gate).min() >= RADIUS + MARGIN
    assert Planner(terrain, gate, margin=2.0).plan(MULE, a, b, FLY).position[:, 2].max() > 130.0
    assert Planner(terrain, gate).plan(MULE, a, b, DRIVE).length < 121.0
    with pytest.raises(PlanError, match="no way leads"):
        Planner(terrain, gate, margin=2.0).plan(MULE, a, b, DRIVE)


def test_a_start_below_or_inside_an_object_is_refused():
    roof = ObjectBoxes([(0.0, 0.0, 20.0)], [(5.0, 5.0, 1.0)])  # 19 to 21 m up
    for z in (10.0, 20.0):
        with pytest.raises(
            PlanError, match=r"start \(5.5, 0, .* reaches up to 21.0 m, or below it"
        ) as error:
            Planner(hills(), roof).plan(MULE, PlanPose(5.5, 0.0, z=z), PlanPose(80.0, 0.0), FLY)
        assert error.value.reason == "start_blocked"
    above = Planner(hills(), roof).plan(MULE, PlanPose(5.5, 0.0, z=22.0), PlanPose(80.0, 0.0), FLY)
    assert above.position[0] == pytest.approx([5.5, 0.0, 22.0])
    with pytest.raises(PlanError, match="an object"):
        Planner(hills(), roof).plan(MULE, PlanPose(-80.0, 0.0), PlanPose(5.0, 0.0), DRIVE)


def test_a_margin_that_cannot_be():
    with pytest.raises(ConfigError, match="margin: -1"):
        Planner(hills(), tower(), margin=-1.0)


@pytest.mark.parametrize("distance", [150.0, 250.0])
def test_from_the_air_to_the_air_it_stays_there(distance):
    """A mixed plan between places 60 m above the ground once came back as driving at height 0."""
    terrain = hills()
    ends = [
        (x, 10.0, float(terrain.altitude(x, 10.0)) + 60.0) for x in (-distance / 2, distance / 2)
    ]
    plan = Planner(terrain).plan(MULE, *(PlanPose(x, y, z=z) for x, y, z in ends), MIXED)
    assert set(plan.mode.tolist()) == {FLY}
    assert plan.position[[0, -1]] == pytest.approx(np.array(ends))
    assert plan.position[:, 2].min() >= min(z for _, _, z in ends) - 1e-6


def test_ways_straight_down_and_up_belong_to_the_plan():
    """A vehicle whose flight is dear lands from 60 m at once, drives, and rises at the goal.

    The energy is worked out by hand.
    """
    flat = HeightMap(np.zeros((301, 21)), origin_x=0.0, origin_y=-20.0, step_x=2.0, step_y=2.0)
    dear = dataclasses.replace(MULE, fly=dataclasses.replace(FLYING, power=50_000.0))
    air = PlanPose(20.0, 0.0, z=60.0)
    ground = PlanPose(580.0, 0.0)

    # lands at once
    down = Planner(flat).plan(dear, air, ground, MIXED)
    assert down.position[0] == pytest.approx([20.0, 0.0, 60.0])
    assert down.position[1] == pytest.approx([20.0, 0.0, 0.0])
    assert down.mode[:2].tolist() == [FLY, DRIVE]
    weight = 20 * 9.80665
    driven = weight * 0.05 * 560 / 0.8
    assert down.energy == pytest.approx(2400 * 60 / 2 + driven, rel=0.01)

    # rises at the goal
    up = Planner(flat).plan(dear, PlanPose(20.0, 0.0), PlanPose(580.0, 0.0, z=60.0), MIXED)
    assert up.position[-1] == pytest.approx([580.0, 0.0, 60.0])
    assert up.mode[-2:].tolist() == [DRIVE, FLY]
    assert up.energy == pytest.approx(2400 * 60 / 4 + weight * 60 / 0.5 + driven, rel=0.01)
    assert up.length == pytest.approx(620.0, rel=0.01)
