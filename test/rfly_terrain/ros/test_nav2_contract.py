# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nav2's checks of our grid and our paths: the rules of its sources, Jazzy to Lyrical, one by one.

nav2_util/validate_messages.hpp, nav2_costmap_2d's StaticLayer, nav2_controller's setPlannerPath,
and the path handlers of Regulated Pure Pursuit, MPPI and Graceful.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain import (
    DRIVE,
    HeightMap,
    Planner,
    PlanPose,
    TraversabilityLimits,
    load_vehicle_classes,
)
from rfly_terrain.costmap.traversability import traversability

pytestmark = pytest.mark.ros


INT16_MAX = 32767
NO_INFORMATION = 255
LETHAL = 254
INSCRIBED = 253
FREE = 0


def is_unit(q):
    return abs(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w - 1.0) < 1e-4


def is_valid(grid):
    """`validateMsg` of an OccupancyGrid."""
    info = grid.info
    numbers = grid.info.origin.position
    return (
        grid.header.frame_id != ""
        and grid.header.stamp.nanosec < 10**9
        and all(map(math.isfinite, (numbers.x, numbers.y, numbers.z, info.resolution)))
        and is_unit(info.origin.orientation)
        and info.resolution > 1e-6
        and 0 < info.width <= INT16_MAX
        and 0 < info.height <= INT16_MAX
        and len(grid.data) == info.width * info.height
    )


def static_layer(
    grid, lethal_cost_threshold=100, trinary_costmap=False, inscribed_obstacle_cost_value=None
):
    """Return the costs, (height, width), that the static layer makes of it.

    Row 0 is in the south. The source is `interpretValue`.
    """
    value = (
        np.asarray(grid.data, np.int8)
        .view(np.uint8)
        .astype(int)
        .reshape(grid.info.height, grid.info.width)
    )

    scaled = (
        np.zeros_like(value)
        if trinary_costmap
        else (value / lethal_cost_threshold * LETHAL).astype(int)
    )

    costs = np.where(value >= lethal_cost_threshold, LETHAL, scaled)
    if inscribed_obstacle_cost_value is not None:
        costs[value == inscribed_obstacle_cost_value] = INSCRIBED
    costs[value == 255] = NO_INFORMATION
    return costs


@pytest.fixture(scope="module")
def hills():
    return HeightMap.load("RollingHills")


@pytest.fixture(scope="module")
def grid(hills):
    from rfly_terrain.ros.occupancy_msgs import costs_to_msg

    grid = traversability(hills, TraversabilityLimits(max_slope_deg=14))
    return costs_to_msg(grid.cost, grid.resolution, grid.origin, "map", 5)


def test_the_static_layer_takes_the_grid_and_keeps_its_costs(grid):
    """The how-to's parameters scale costs to 254, and keep lethal and unknown cells."""
    assert is_valid(grid)

    ours = np.asarray(grid.data, np.int8).reshape(grid.info.height, grid.info.width)
    assert {-1, 100} < set(ours.ravel().tolist())
    assert len(set(ours.ravel().tolist())) > 30

    costs = static_layer(grid)
    assert ((costs == LETHAL) == (ours == 100)).all()
    assert ((costs == NO_INFORMATION) == (ours == -1)).all()
    between = (ours >= 0) & (ours < 100)
    assert np.abs(costs[between] - ours[between] * 2.54).max() < 1.0
    assert costs[between].max() <= 251 < INSCRIBED

    # a trinary costmap
    assert set(static_layer(grid, trinary_costmap=True).ravel().tolist()) == {
        FREE,
        LETHAL,
        NO_INFORMATION,
    }


def test_from_lyrical_on_the_hardest_free_cells_are_blocked_unless_told_otherwise(grid):
    """99 means inscribed by default.

    A value that no cell has, as the how-to sets it, leaves the cells as they are.
    """
    grid.data[grid.info.width + 1] = 99
    assert static_layer(grid, inscribed_obstacle_cost_value=99)[1, 1] == INSCRIBED
    assert (static_layer(grid, inscribed_obstacle_cost_value=254) == static_layer(grid)).all()


@pytest.mark.parametrize(("frame", "axes"), [("map", "enu"), ("map_ned", "ned")])
def test_controllers_take_the_path(hills, frame, axes):
    """The path has one frame and time, unit quaternions, and at least two poses, none twice.

    Each pose looks along the path.
    """
    from rfly_terrain.ros.plan_msgs import plan_to_path

    rover = load_vehicle_classes("")["rover"]
    plan = Planner(hills).plan(rover, PlanPose(-60.0, -40.0, 0.0), PlanPose(70.0, 60.0), DRIVE)
    path = plan_to_path(plan, FrameToWorld(axes), frame, 7)
    assert path.header.frame_id == frame
    assert len(path.poses) >= 2
    for pose in path.poses:
        assert pose.header == path.header
        assert is_unit(pose.pose.orientation)
        assert all(
            map(math.isfinite, (pose.pose.position.x, pose.pose.position.y, pose.pose.position.z))
        )
    place = np.array([(p.pose.position.x, p.pose.position.y) for p in path.poses])
    steps = np.linalg.norm(np.diff(place, axis=0), axis=1)
    assert steps.min() > 1e-3, "a pose twice has no direction"
    cell = min(abs(hills.step_x), abs(hills.step_y))
    assert steps.max() <= cell + 1e-6, "half of a local costmap must be larger: the how-to says so"
    ahead = np.array([forward(p.pose.orientation) for p in path.poses])[:, :2]
    along = np.diff(place, axis=0) / steps[:, None]
    turned = np.einsum("ij,ij->i", ahead[:-1] / np.linalg.norm(ahead[:-1], axis=1)[:, None], along)
    assert turned.min() > math.cos(math.radians(30)), "never backwards, and no corner"


def forward(q):
    """x axis of the body in the frame, from the quaternion's definition."""
    return np.array(
        (1 - 2 * (q.y * q.y + q.z * q.z), 2 * (q.x * q.y + q.z * q.w), 2 * (q.x * q.z - q.y * q.w)),
    )


@pytest.mark.parametrize("axes", ["enu", "ned"])
def test_a_way_driven_backwards_is_read_as_one(axes):
    """A path straight back from heading east has the attitude of a default pose.

    Such poses carry no heading.
    """
    from rfly_terrain.planning.plan import Plan
    from rfly_terrain.ros.plan_msgs import path_to_points, plan_to_path
    from rfly_trajectory.paths.nav_path import Section, sections

    position = np.array([[10.0, 5.0, 1.0], [8.0, 5.0, 1.0], [5.0, 5.0, 1.0]])
    plan = Plan(position, np.zeros(3), np.full(2, DRIVE, np.uint8), 0.0, 0.0)
    assert plan.backward.tolist() == [True, True]
    frame = FrameToWorld(axes)
    path = plan_to_path(plan, frame, "map", 7)
    points, heading = path_to_points(path, frame)
    assert points == pytest.approx(position)
    assert np.cos(heading) == pytest.approx(1.0)
    assert sections(points, heading) == [Section(0, 2, True)]
    for pose in path.poses:
        pose.pose.orientation.x = pose.pose.orientation.y = pose.pose.orientation.z = 0.0
        pose.pose.orientation.w = 1.0
    assert path_to_points(path, frame)[1] is None
