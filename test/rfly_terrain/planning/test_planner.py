# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans over terrains: heights, energies by hand, limits of the ground.

Flights keep clear of the ground.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from rfly_common.errors import PlanError
from rfly_terrain import HeightMap
from rfly_terrain.costmap.traversability import TraversabilityLimits
from rfly_terrain.planning.fly import lowest_profile
from rfly_terrain.planning.plan import DRIVE, FLY, PlanPose, write_plan
from rfly_terrain.planning.planner import Planner
from rfly_terrain.planning.vehicle_classes import Driving, Flying, VehicleClass
from rfly_terrain.world.solids import ObjectBoxes

CART = VehicleClass(
    "cart",
    "ground",
    100.0,
    0.5,
    Driving(
        2.0, 3.0, TraversabilityLimits(20.0, vehicle_radius=0.5, half_wheelbase=0.5), 0.05, 0.8
    ),
)
DRONE = VehicleClass(
    "drone", "multirotor", 2.0, 0.5, None, Flying(10.0, 10.0, 4.0, 3.0, 100.0, 150.0)
)
GLIDER = VehicleClass(
    "glider",
    "fixed_wing",
    5.0,
    1.0,
    None,
    Flying(
        10.0, 15.0, 3.0, 3.0, 80.0, None, max_climb_deg=15, max_descent_deg=10, turning_radius=30.0
    ),
)


def ground(height, size=121, step=2.0):
    """A map of height(x, y) with its south-west sample at (0, 0)."""
    at = np.arange(size) * step
    return HeightMap(
        height(at[:, None], at[None, :]), origin_x=0.0, origin_y=0.0, step_x=step, step_y=step
    )


def ramp(slope):
    return ground(lambda x, y: slope * x + 0 * y)


def ridge(height=60.0, middle=120.0, half=60.0, reach=np.inf):
    """A ridge along y with a round crest, up to y = reach."""
    return ground(
        lambda x, y: height * np.exp(-(((x - middle) / half * 2) ** 2)) * (y <= reach) + 0.0 * y,
        size=121,
        step=2.0,
    )


def test_driving_up_a_ramp():
    """30 m east and 40 m north on a slope of 1:10 along x: 50 m over ground that rise by 3 m."""
    plan = Planner(ramp(0.1)).plan(CART, PlanPose(50.0, 50.0), PlanPose(80.0, 90.0), DRIVE)
    assert plan.length == pytest.approx(math.hypot(50, 3), rel=1e-6)
    assert plan.climb == pytest.approx(3.0, abs=1e-4)
    assert plan.share_climbed == pytest.approx(1.0)
    assert plan.energy == pytest.approx(980.665 * (0.05 * 50 + 3) / 0.8, rel=1e-4)
    assert plan.duration == pytest.approx(plan.length / 2.0, rel=1e-4)
    assert set(plan.mode.tolist()) == {DRIVE}
    assert plan.position[:, 2] == pytest.approx(0.1 * plan.position[:, 0], abs=1e-4)
    assert plan.heading == pytest.approx(math.atan2(40, 30))


def test_driving_keeps_off_steep_ground_and_objects():
    terrain = ground(lambda x, y: np.where(np.abs(x - 120) < 20, 30.0, 0.0) * (y < 160) + 0 * x)
    box = ObjectBoxes([[120.0, 190.0, 1.0]], [[3.0, 31.0, 1.0]])  # from the cliffs to y = 221
    for objects, northernmost in ((None, 162.0), (box, 222.0)):
        planner = Planner(terrain, objects)
        plan = planner.plan(CART, PlanPose(40.0, 60.0, 0.0), PlanPose(200.0, 60.0), DRIVE)
        cost = planner.grid(CART).cost
        cell = planner.grid(CART).resolution
        way = np.concatenate([[0], np.cumsum(plan.steps[0])])
        fine = np.linspace(0, way[-1], 20_000)
        x, y = (np.interp(fine, way, plan.position[:, k]) for k in (0, 1))
        column, row = (np.floor((v + cell / 2) / cell).astype(int) for v in (x, y))
        assert cost[row, column].max() < 100
        assert cost[row, column].min() >= 0
        assert northernmost - 2 < y.max() < northernmost + 6
    # a plan is refused where it begins or ends on what is forbidden, and says why
    for x, y, why in (
        (120.0 - 20.0, 60.0, "slopes of 20° and more"),
        (120.0, 200.0, "an object"),
        (0.0, 0.0, "edge"),
    ):
        with pytest.raises(PlanError, match=why) as error:
            planner.plan(CART, PlanPose(40.0, 60.0), PlanPose(x, y), DRIVE)
        assert error.value.reason == "goal_blocked"


def test_driving_keeps_out_of_the_water():
    lake = ground(lambda x, y: np.minimum(((x - 120) ** 2 + (y - 120) ** 2) / 900 - 4.0, 0.0))
    a = PlanPose(20.0, 120.0)
    b = PlanPose(220.0, 120.0)
    through = Planner(lake).plan(CART, a, b, DRIVE)
    assert np.hypot(through.position[:, 0] - 120, through.position[:, 1] - 120).min() < 30
    around = Planner(lake, water_level=-0.5).plan(CART, a, b, DRIVE)
    shore = 30 * math.sqrt(3.5)  # where the ground lies at -0.5 m
    assert np.hypot(around.position[:, 0] - 120, around.position[:, 1] - 120).min() > shore - 1.5
    # a string around the lake: two tangents and an arc between them
    tangent = math.sqrt(100**2 - shore**2)
    arc = math.pi - 2 * math.acos(shore / 100)
    assert 2 * tangent + shore * arc < around.length < 1.05 * (2 * tangent + (shore + 2) * arc)


def test_lowest_profile_by_hand():
    """A tower of 30 m stands at s = 100.

    It is reached by a climb of 1:2 from s = 40 and left by a descent of 1:4 down to s = 220.
    """
    s = np.arange(0.0, 301.0, 10.0)
    required = np.where(s == 100.0, 30.0, 0.0)
    z = lowest_profile(s, required, 0.5, 0.25)
    expected = np.maximum(np.minimum((s - 40) * 0.5, 30 - (s - 100) * 0.25), 0.0)
    assert z == pytest.approx(expected, abs=1e-12)


def clearance(terrain, plan, radius):
    """Return the least height above ground of dense points.

    The points lie on the way and on circles around it.
    """
    way = np.concatenate([[0], np.cumsum(plan.steps[0])])
    fine = np.unique(np.concatenate([np.linspace(0, way[-1], 30_000), way]))
    position = np.stack([np.interp(fine, way, plan.position[:, k]) for k in range(3)], 1)
    least = np.inf
    for share in (0.0, 0.5, 1.0):
        for angle in np.radians(np.arange(0, 360, 30)):
            x = position[:, 0] + share * radius * math.cos(angle)
            y = position[:, 1] + share * radius * math.sin(angle)
            least = min(least, float((position[:, 2] - terrain.altitude(x, y)).min()))
    return least


def slopes(plan):
    over_ground, climb = plan.steps
    level = over_ground > 1e-9
    return climb[level] / over_ground[level]


@pytest.mark.parametrize("vehicle", [DRONE, GLIDER], ids=lambda v: v.name)
@pytest.mark.parametrize("seed", range(3))
def test_flights_keep_clear_of_the_ground_and_climb_no_faster_than_they_may(vehicle, seed):
    from scipy.ndimage import gaussian_filter

    field = gaussian_filter(np.random.default_rng(seed).normal(size=(121, 121)), 5.0)
    terrain = HeightMap(
        25 * field / field.std(), origin_x=0.0, origin_y=0.0, step_x=2.0, step_y=2.0
    )
    plan = Planner(terrain).plan(vehicle, PlanPose(20.0, 30.0), PlanPose(215.0, 200.0), FLY)
    assert clearance(terrain, plan, vehicle.radius) >= vehicle.fly.min_height - 1e-6
    up, down = vehicle.fly.steepest
    assert slopes(plan).max() <= up + 1e-6
    assert slopes(plan).min() >= -down - 1e-6
    assert plan.position[0, :2] == pytest.approx([20, 30])
    assert plan.position[-1, :2] == pytest.approx([215, 200])
    if vehicle.fly.turning_radius:
        step = plan.steps[0]
        turn = np.abs(np.diff(np.unwrap(plan.heading)))
        assert np.all(turn[step > 1e-6] <= step[step > 1e-6] / vehicle.fly.turning_radius + 1e-6)
    # not needlessly high: somewhere it is as low as it may be
    assert clearance(terrain, plan, vehicle.radius) <= vehicle.fly.min_height + 0.5


def test_a_flight_over_level_ground_by_hand():
    """200 m at 10 m: rising from the ground 10 m straight up at 4 m/s, then 20 s level."""
    terrain = ground(lambda x, y: 5.0 + 0 * x * y)

    # from the ground
    plan = Planner(terrain).plan(
        DRONE, PlanPose(20.0, 20.0, z=0.0), PlanPose(140.0, 180.0, z=0.0), FLY
    )
    assert plan.position[:, 2].tolist() == pytest.approx([5.0, 15.0, 15.0])
    assert plan.length == pytest.approx(210.0)
    lift = 2 * 9.80665 * 10 / 0.5
    assert plan.energy == pytest.approx(150 * 2.5 + lift + 100 * 20)
    assert plan.duration == pytest.approx(22.5)

    # from above it
    higher = Planner(terrain).plan(
        DRONE, PlanPose(20.0, 20.0, z=40.0), PlanPose(140.0, 180.0, z=60.0), FLY
    )
    assert higher.position[0, 2] == pytest.approx(40.0)
    assert higher.position[-1, 2] == pytest.approx(60.0)
    assert slopes(higher).max() <= 0.4 + 1e-9


def test_around_a_ridge_or_over_it():
    """The heavier vehicle goes around a ridge of 60 m that ends at y = 150.

    The way over it costs m g h, the way around it metres.
    """
    terrain = ridge(reach=150.0)
    a = PlanPose(20.0, 110.0)
    b = PlanPose(220.0, 110.0)
    light = dataclasses.replace(DRONE, mass=0.2)
    heavy = dataclasses.replace(DRONE, mass=40.0)
    over, around = (Planner(terrain).plan(v, a, b, FLY) for v in (light, heavy))
    assert over.position[:, 1] == pytest.approx(110.0)
    assert over.position[:, 2].max() == pytest.approx(70.0, abs=0.6)
    assert around.position[:, 1].max() > 148
    assert around.climb < 10
    # by hand, over: 200 m at 10 m/s and 60 m at 4 m/s; around: a detour to y 152 or so is
    # 2·hypot(100, 42) m long
    assert around.energy < 100 * 2 * math.hypot(100, 50) / 10 + 0.2 * 40 * 9.80665 * 60 / 0.5
    assert clearance(terrain, around, heavy.radius) >= 10 - 1e-6


def test_what_cannot_be_flown_is_said():
    terrain = ridge()
    planner = Planner(terrain)

    def reason(vehicle, a, b, mode=FLY):
        with pytest.raises(PlanError) as error:
            planner.plan(vehicle, a, b, mode)
        return error.value.reason

    a = PlanPose(20.0, 110.0)
    b = PlanPose(220.0, 110.0)
    assert reason(CART, a, b) == "cannot_fly"
    assert reason(DRONE, a, b, DRIVE) == "cannot_drive"
    assert reason(DRONE, a, b, 7) == "unknown_mode"
    assert reason(DRONE, a, PlanPose(1e4, 0.0)) == "outside"
    assert reason(DRONE, a, PlanPose(20.0, 110.0)) == "same_place"
    assert (
        reason(GLIDER, PlanPose(100.0, 110.0, 0.0, 40.0), PlanPose(220.0, 110.0, 0.0)) == "too_low"
    )


def test_a_fixed_wing_that_starts_too_low_climbs_in_turns():
    """A fixed wing 10 m up, 90 m before a cliff of 100 m, climbs in three turns.

    At 1:5 up to 27 m are climbed on the way there and on it, so of the 100 m to climb more than two
    turns of 2π 30 m with 37.7 m each at most are left: three, to the left; to the right where a
    hill stands on the left.
    """
    cliff = ground(lambda x, y: np.clip((x - 150.0) * 5.0, 0.0, 100.0) + 0 * y)
    low = PlanPose(60.0, 110.0, 0.0, 10.0)
    goal = PlanPose(230.0, 110.0)
    plan = Planner(cliff).plan(GLIDER, low, goal, FLY)

    # three turns to the left
    assert plan.position[0] == pytest.approx([60.0, 110.0, 10.0])
    turning = np.abs(np.hypot(*(plan.position[:, :2] - (60.0, 140.0)).T) - 30.0) < 0.01
    assert turning[:100].all()
    over_ground, climb = plan.steps
    assert (climb[over_ground > 1e-6] / over_ground[over_ground > 1e-6]).max() < 0.2 + 1e-6
    turned = np.unwrap(plan.heading[: np.flatnonzero(turning)[-1] + 1])
    assert round((turned[-1] - turned[0]) / (2 * math.pi)) == 3

    dense = np.concatenate([np.linspace(a, b, 50) for a, b in itertools.pairwise(plan.position)])
    assert (dense[:, 2] - cliff.altitude(dense[:, 0], dense[:, 1])).min() >= 10.0 - 1e-3

    # a hill on the left
    hill = ground(
        lambda x, y: np.clip((x - 150.0) * 5.0, 0.0, 100.0) + 40.0 * ((x < 100) & (y > 150))
    )
    right = Planner(hill).plan(GLIDER, low, goal, FLY)
    assert np.abs(np.hypot(*(right.position[:100, :2] - (60.0, 80.0)).T) - 30.0).max() < 0.01


def test_a_class_that_reverses(tmp_path):
    """5 m straight back at twice the price, 10 m, is cheaper than a loop of 5 + 2 pi 3 m.

    The CSV says which direction is driven.
    """
    mule = dataclasses.replace(CART, drive=dataclasses.replace(CART.drive, reverse=True))
    start = PlanPose(50.0, 50.0, 0.0)
    goal = PlanPose(45.0, 50.0, 0.0)
    plan = Planner(ramp(0.05)).plan(mule, start, goal, DRIVE)
    assert plan.steps[0].sum() == pytest.approx(5.0)
    assert plan.backward.all()
    write_plan(plan, tmp_path / "back.csv")
    assert {
        row.rsplit(",", 1)[1] for row in (tmp_path / "back.csv").read_text().splitlines()[1:]
    } == {"reverse"}
    ahead = Planner(ramp(0.05)).plan(CART, start, goal, DRIVE)
    assert ahead.steps[0].sum() == pytest.approx(5.0 + 6.0 * math.pi, rel=0.01)
    assert not ahead.backward.any()


def test_way_points_as_csv(tmp_path):
    from rfly_trajectory.fleet.fleet_file import parse_fleet

    plan = Planner(ramp(0.05)).plan(
        CART, PlanPose(50.0, 50.0, 0.0), PlanPose(80.0, 120.0, 2.0), DRIVE
    )
    write_plan(plan, tmp_path / "way.csv")
    rows = np.genfromtxt(tmp_path / "way.csv", delimiter=",", skip_header=1, usecols=(0, 1, 2, 3))
    assert rows == pytest.approx(np.column_stack([plan.position, plan.heading]), abs=1e-4)
    text = """
    version: 1
    vehicles:
      - {name: cart, id: 1, type: 3, kind: ground, at_end: stop, speed: {cruise: 2},
         shape: {type: spline, file: way.csv}}
    """
    fleet = parse_fleet(text.encode(), "fleet.yaml", "fleet", tmp_path)
    assert fleet.vehicles[0].path.length == pytest.approx(plan.steps[0].sum(), rel=1e-3)
