# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A planned way with a cusp, driven by the land-air vehicle under its chassis controller."""

from __future__ import annotations

import math

import numpy as np
import pytest
from control_rig import Rig
from marks import exhaustively

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.mission_guide import MissionGuide
from rfly_missions.mission.legs import legs_of_path
from rfly_terrain.planning.drive import PlanPose, plan_drive


class Bay:
    """A road of 8 m along x through the origin, with a dead-end bay of 3 m by 6 m."""

    resolution = 0.5
    origin = (-10.0, -10.0)

    def __init__(self, margin):
        """Free cells, narrowed by `margin` cells."""
        self.cost = np.full((60, 80), 100, np.int8)
        self.cost[12 + margin : 28 - margin, :] = 0
        self.cost[12 + margin : 40 - margin, 40 + margin : 46 - margin] = 0


@pytest.mark.parametrize(
    ("changes", "most_turned_deg"),
    [
        exhaustively({}, 8.0, id="steering"),
        # motors turn it against its tyres, with a lag
        pytest.param({"steered": "none", "max_steering": 0.0}, 20.0, id="skid"),
    ],
)
def test_into_a_bay_backwards(changes, most_turned_deg):
    """The vehicle passes the bay, stops, and backs in between the walls.

    It ends nose out, on the spot, at rest.
    """
    params = VehicleParameters.load("scale").replace(**changes)
    rig = Rig(params, rate=100.0)
    goal = PlanPose(11.5, 8.0, -math.pi / 2)
    path = plan_drive(Bay(1), PlanPose(0.0, 0.0, 0.0), goal, 2.5, backward_cost=2.0, cusp_cost=5.0)

    poses = path.poses(0.5, math.radians(10.0))
    points = np.column_stack([poses[:, :2], np.zeros(len(poses))])
    legs = legs_of_path(points, None, 2.0, 5.0, (0.0, 0.0), poses[:, 2])
    assert [leg.backward for leg in legs] == [False, True]

    guide = MissionGuide(legs, params)
    rig.flight.logic.mode = Mode.DRIVE

    def command(rig):
        now = rig.sim.state
        order = guide.step(
            Estimate(now.time, now.position, now.orientation, now.velocity, now.rates), Mode.DRIVE
        )
        rig.chassis.set_speed(order.speed, order.steering)

    run = rig.run(60.0, command, until=lambda _: guide.done)
    x = run.x
    y = run.y
    yaw = run.yaw
    speed = np.cos(yaw) * run.vx + np.sin(yaw) * run.vy

    # both ways, and into the bay
    assert speed.max() > 1.0
    assert speed.min() < -0.8, "it really drives backwards"
    assert math.hypot(x[-1] - goal.x, y[-1] - goal.y) < 0.3
    assert abs(math.remainder(yaw[-1] - goal.heading, 2 * math.pi)) < math.radians(most_turned_deg)
    assert abs(speed[-1]) < 0.15

    # on free ground, near the path
    column = np.floor((x + 10.0) / 0.5).astype(int)
    row = np.floor((y + 10.0) / 0.5).astype(int)
    assert (Bay(0).cost[row, column] == 0).all(), "its middle never leaves what is free"
    away = np.hypot(x[:, None] - poses[:, 0], y[:, None] - poses[:, 1]).min(axis=1)
    assert away.max() < 0.5
