# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans that drive and fly: a channel by hand, the slope of take-offs, and what cannot be done."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest

from rfly_common.errors import PlanError
from rfly_terrain import HeightMap
from rfly_terrain.costmap.traversability import TraversabilityLimits
from rfly_terrain.planning.plan import DRIVE, FLY, MIXED, PlanPose
from rfly_terrain.planning.planner import Planner
from rfly_terrain.planning.vehicle_classes import Driving, Flying, VehicleClass

LIMITS = TraversabilityLimits(25.0, vehicle_radius=0.5, half_wheelbase=0.5)
MULE = VehicleClass(
    "mule",
    "land_air",
    20.0,
    0.5,
    Driving(5.0, 1.5, LIMITS, rolling_resistance=0.05, efficiency=0.8),
    Flying(8.0, 10.0, 4.0, 2.0, power=2000.0, hover_power=2400.0, efficiency=0.5),
)
WEIGHT = 20 * 9.80665
A_METRE_DRIVEN = WEIGHT * 0.05 / 0.8
A_METRE_FLOWN = 2000.0 / 10.0
UP_AND_DOWN = WEIGHT * 8 / 0.5 + 2400 * 8 / 4 + 2400 * 8 / 2


def ground(height, size=121, step=2.0):
    at = np.arange(size) * step
    return HeightMap(
        height(at[:, None], at[None, :]), origin_x=0.0, origin_y=0.0, step_x=step, step_y=step
    )


def channel(end=1e9, bank=2.0):
    """Return level ground at 0 with a channel 3 m deep between x = 100 and 140 up to y = `end`.

    Its banks are `bank` m wide.
    """
    return ground(
        lambda x, y: -3.0 * np.clip((20 + bank - np.abs(x - 120)) / bank, 0, 1) * (y <= end)
    )


A = PlanPose(30.0, 120.0, 0.0)
B = PlanPose(210.0, 120.0)


def runs(plan):
    ends = np.flatnonzero(np.diff(plan.mode)) + 1
    return [plan.mode[0], *plan.mode[ends]], plan.position[ends]


def test_over_a_channel_by_hand():
    """The plan has 180 m, 44 to 56 of them flown.

    These are the water, the cells at its shores and the vehicle's radius.
    """
    planner = Planner(channel(), water_level=-1.0)
    with pytest.raises(PlanError, match="no way leads"):
        planner.plan(MULE, A, B, DRIVE)
    plan = planner.plan(MULE, A, B, MIXED)
    modes, places = runs(plan)
    assert modes == [DRIVE, FLY, DRIVE]
    take_off, landing = places
    assert 90 <= take_off[0] < 98
    assert 142 < landing[0] <= 150
    flown = float(landing[0] - take_off[0])
    by_hand = (180 - flown) * A_METRE_DRIVEN + flown * A_METRE_FLOWN + UP_AND_DOWN
    assert plan.energy == pytest.approx(by_hand, rel=0.01)
    assert plan.duration == pytest.approx((180 - flown) / 5 + flown / 10 + 8 / 4 + 8 / 2, rel=0.01)
    z = plan.position[:, 2]
    assert z.max() == pytest.approx(8.0, abs=0.1)
    assert z[0] == z[-1] == pytest.approx(0.0)
    assert plan.length == pytest.approx(180 + 2 * z.max(), rel=0.01)
    # all 180 m in the air take more
    assert planner.plan(MULE, A, B, FLY).energy > plan.energy


def test_around_the_channel_where_that_takes_less():
    """The plan leads around the channel's end, which takes less energy.

    Around its end at y = 150 it is some 200 m, at 12 J; over it 50 m at 200 J, and 17 kJ up and
    down.
    """
    planner = Planner(channel(150.0), water_level=-1.0)
    plan = planner.plan(MULE, A, B, MIXED)
    assert set(plan.mode.tolist()) == {DRIVE}
    assert plan.energy == pytest.approx(planner.plan(MULE, A, B, DRIVE).energy)
    assert plan.energy == pytest.approx(A_METRE_DRIVEN * plan.length, rel=0.01)


def test_flown_all_the_way_where_that_takes_less():
    """The plan is flown all the way at 5 J a metre, since driving costs 49 J.

    By hand: 180 m · 5 J, m g h / η, 6 s of hovering at 100 W.
    """
    vehicle = dataclasses.replace(
        MULE,
        drive=dataclasses.replace(MULE.drive, rolling_resistance=0.2),
        fly=dataclasses.replace(MULE.fly, power=50.0, hover_power=100.0),
    )
    plan = Planner(channel(150.0), water_level=-1.0).plan(vehicle, A, B, MIXED)
    assert set(plan.mode.tolist()) == {FLY}
    assert plan.energy == pytest.approx(180 * 5 + WEIGHT * 8 / 0.5 + 600, rel=0.02)
    assert plan.steps[0].sum() == pytest.approx(180.0, abs=0.1)


def test_take_off_and_landing_only_where_the_ground_is_gentle():
    """Ground that can be driven on may be too steep for take-off.

    There is an island, and a shore that rises by 15° for 40 m.
    """
    rise = math.tan(math.radians(15))
    terrain = ground(
        lambda x, y: np.where(x < 80, 0.0, np.minimum((x - 80) * rise, 40 * rise)) + 0 * y
    )
    lake = HeightMap(
        np.where(
            (np.arange(121)[:, None] * 2.0 > 124) & (np.arange(121)[:, None] * 2.0 < 160),
            -5.0,
            terrain.heights,
        ),
        origin_x=0.0,
        origin_y=0.0,
        step_x=2.0,
        step_y=2.0,
    )
    planner = Planner(lake, water_level=-1.0)
    plan = planner.plan(MULE, A, B, MIXED)
    assert FLY in plan.mode
    steep = terrain.slope(np.array([100.0]), np.array([120.0]))[0]
    assert math.degrees(steep) == pytest.approx(15.0, abs=0.1)
    upright = plan.steps[0] < 1e-9  # straight up or down
    assert upright.sum() >= 2
    for x, y, _ in plan.position[:-1][upright]:
        near = [lake.slope(x + dx, y + dy) for dx in (-1.0, 0.0, 1.0) for dy in (-1.0, 0.0, 1.0)]
        assert math.degrees(float(np.median(near))) < 10.0
        assert not 82 < x < 118
    # no take-off on the shore itself
    alone = dataclasses.replace(MULE, drive=dataclasses.replace(MULE.drive, turning_radius=1e4))
    with pytest.raises(PlanError, match="too steep or rough to take off from") as refused:
        planner.plan(alone, PlanPose(100.0, 120.0, 1.5), B, MIXED)
    (place,) = re.findall(
        r"above 10°; the nearest free place is \((\S+), (\S+)\) in map", str(refused.value)
    )
    x, y = map(float, place)
    assert (x, y) == (
        pytest.approx(77.0, abs=3.0),
        pytest.approx(120.0, abs=1.0),
    )  # the foot of the shore is at 80


def test_what_starts_in_the_air_flies_on_or_lands():
    planner = Planner(channel(), water_level=-1.0)
    high = PlanPose(30.0, 120.0, z=50.0)
    landed = planner.plan(MULE, high, B, MIXED)
    assert landed.mode[0] == FLY
    assert landed.position[0, 2] == pytest.approx(50.0)
    assert landed.position[-1, 2] == pytest.approx(0.0, abs=1e-6)
    arrived = planner.plan(MULE, high, PlanPose(210.0, 120.0, z=30.0), MIXED)
    assert set(arrived.mode.tolist()) == {FLY}
    assert arrived.position[-1, 2] == pytest.approx(30.0)


def test_a_vehicle_that_cannot_do_both_is_refused():
    planner = Planner(channel())
    for vehicle in (dataclasses.replace(MULE, fly=None), dataclasses.replace(MULE, drive=None)):
        with pytest.raises(PlanError, match="cannot both") as error:
            planner.plan(vehicle, A, B, MIXED)
        assert error.value.reason == "cannot_mix"
    with pytest.raises(PlanError, match="lies off the map"):
        planner.plan(MULE, A, PlanPose(1e5, 0.0), MIXED)
