# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion among unknown objects: lidar, OctomapGrid, Replanner and path followers in a loop."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
import pytest
from marks import exhaustively

from rfly_common.arrays import Floats
from rfly_common.errors import PlanError
from rfly_terrain import HeightMap
from rfly_terrain.costmap.traversability import TraversabilityLimits
from rfly_terrain.planning.plan import DRIVE, FLY, PlanPose
from rfly_terrain.planning.planner import Planner
from rfly_terrain.planning.vehicle_classes import Driving, Flying, VehicleClass

RADIUS = 0.6
MARGIN = 0.8
HIGH = 30.0
TURN = 1.5
MULE = VehicleClass(
    "mule",
    "land_air",
    20.0,
    RADIUS,
    Driving(
        3.0, TURN, TraversabilityLimits(25.0, vehicle_radius=RADIUS, half_wheelbase=0.5), 0.05, 0.8
    ),
    Flying(5.0, 4.0, 2.0, 2.0, power=2000.0, hover_power=2400.0, efficiency=0.5),
)
START = np.array([-40.0, 0.0])
GOAL = np.array([40.0, 0.0])
SHORT_WAY = np.array([-24.0, 0.0]), np.array([12.0, 0.0])
"""A start and a goal with pillars between them in the first world."""
PERIOD = 0.8
STEP = 0.02
"""Period of the lidar, and step of the vehicle's motion, s."""


class Pillars(NamedTuple):
    """Upright cylinders from the ground to HIGH."""

    middle: Floats
    radius: Floats

    def distance(self, place):
        across = np.maximum(np.hypot(*(self.middle - place[:2]).T) - self.radius, 0.0)
        return float(np.hypot(across, max(place[2] - HIGH, 0.0)).min())


def pillars(seed, count=30):
    """Return pillars anywhere between start and goal, but not at them."""
    rng = np.random.default_rng(seed)
    return Pillars(
        np.column_stack([rng.uniform(-32, 32, count), rng.uniform(-16, 16, count)]),
        rng.uniform(0.2, 0.8, count),
    )


@functools.cache
def ground():
    """Return gentle hills, 120 m to a side."""
    at = np.arange(-60.0, 60.5, 1.0)
    heights = 0.8 * np.sin(at[:, None] / 12.0) * np.cos(at[None, :] / 15.0)
    return HeightMap(heights, origin_x=-60.0, origin_y=-60.0, step_x=1.0, step_y=1.0)


def scene(them):
    from rfly_collision.shapes.shape import ConvexHull
    from rfly_sensing.scene_rays import SceneBodies, SceneRays

    angle = np.arange(16) * math.pi / 8
    shapes = []
    for radius in them.radius:
        ring = radius * np.column_stack([np.cos(angle), np.sin(angle)])
        shapes.append(
            ConvexHull(
                np.concatenate([np.column_stack([ring, np.full(16, z)]) for z in (-3.0, HIGH)])
            )
        )
    count = len(them.radius)
    return SceneRays(
        ground(),
        SceneBodies(
            tuple(shapes),
            np.arange(count),
            np.column_stack([them.middle, np.zeros(count)]),
            np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)),
            np.zeros((count, 3)),
            np.zeros(count),
            np.arange(count),
        ),
    )


class Driven:
    """A vehicle on the ground that goes where it steers, and follows its speed with a lag."""

    mode = DRIVE
    eye = 1.0

    def __init__(self, start):
        from rfly_amphibious.vehicle.parameters import VehicleParameters

        self.params = VehicleParameters.load("scale")
        self.place = start.copy()
        self.heading = 0.0
        self.speed = 0.0
        self.follower = None

    @property
    def position(self):
        return np.array([*self.place, float(ground().altitude(*self.place))])

    def follow(self, plan):
        from rfly_autonomy.control.path_following import DrivePathFollower

        points = plan.position[1:, :2]
        self.follower = DrivePathFollower(self.place, points, [2.5] * len(points), self.params)

    def step(self, dt):
        from rfly_autonomy.control.path_following import SPEED_LAG
        from rfly_autonomy.control.speed_controller import steering_lever

        speed, steering = (
            (0.0, 0.0)
            if self.follower is None
            else self.follower.command(self.place, self.heading, self.speed)
        )
        self.speed += (speed - self.speed) * min(1.0, dt / SPEED_LAG)
        self.heading += self.speed * math.tan(steering) / steering_lever(self.params) * dt
        self.place = self.place + self.speed * dt * np.array(
            [math.cos(self.heading), math.sin(self.heading)]
        )


class Flown:
    """A multirotor that follows a moving target."""

    mode = FLY
    eye = 0.0

    def __init__(self, start):
        self.position = np.array([*start, 6.0])
        self.heading = 0.0
        self.velocity = np.zeros(3)
        self.follower = None

    def follow(self, plan):
        from rfly_autonomy.control.path_following import FlightPathFollower

        points = plan.position[1:]
        self.follower = FlightPathFollower(
            self.position, float(np.linalg.norm(self.velocity)), points, [4.0] * len(points)
        )

    def step(self, dt):
        target, velocity = (
            (self.position, np.zeros(3))
            if self.follower is None
            else self.follower.advance(self.position, dt)
        )
        wanted = velocity + 1.5 * (target - self.position)
        self.velocity = self.velocity + (wanted - self.velocity) * min(1.0, dt / 0.2)
        self.position = self.position + self.velocity * dt


class Trip(NamedTuple):
    """Result of a seed."""

    missed: float
    """Distance from the goal at the end, m."""
    nearest: float
    """Least distance from the vehicle's middle to a pillar, m."""
    plans: int
    seconds: float


def trip(vehicle, goal, seed, most_seconds=120.0):
    """Drive or fly to a goal amid pillars that the planner does not know."""
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_autonomy.mapping.octomap_grid import OctomapGrid
    from rfly_autonomy.mapping.octomap_parameters import OctomapParameters
    from rfly_sensing.lidar import Lidar, VehicleTrack
    from rfly_terrain.occupancy.octree import read_octree
    from rfly_terrain.planning.planner import Replanner
    from rfly_terrain.planning.seen_space import seen_space

    # the world and the lidar
    them = pillars(seed)
    rays = scene(them)
    sensor = dataclasses.replace(
        SensorParameters.load("scale").lidar,
        position=(0.0, 0.0, 0.0),
        rate=1.0 / PERIOD,
        columns=360,
        beams=16,
        max_range=20.0,
    )
    lidar = Lidar(sensor, seed=seed)

    # the map and the planner
    grid = OctomapGrid(OctomapParameters(resolution=0.25, max_range=20.0, forget_after=5.0))
    planner = Planner(ground(), margin=MARGIN, resolution=0.25)
    replanner = Replanner(planner, MULE, PlanPose(*goal), vehicle.mode)

    time = 0.0
    nearest = math.inf
    plans = 0
    while time < most_seconds:
        # look around
        eye = vehicle.position + np.array([0.0, 0.0, vehicle.eye])
        turn = np.array([0.0, 0.0, math.sin(vehicle.heading / 2), math.cos(vehicle.heading / 2)])
        sweep = lidar.sweep(
            round(time / PERIOD),
            VehicleTrack(
                np.array([time, time + PERIOD]), np.tile(eye, (2, 1)), np.tile(turn, (2, 1))
            ),
            rays,
            start=time,
        )

        # keep in the map what was seen
        points = sweep.points()[:, :3].astype(float)
        cosine = math.cos(vehicle.heading)
        sine = math.sin(vehicle.heading)
        grid.age(PERIOD)
        grid.insert(
            eye,
            eye
            + points
            @ np.array(
                [
                    [cosine, sine, 0.0],
                    [-sine, cosine, 0.0],
                    [0.0, 0.0, 1.0],
                ]
            ),
        )

        # plan anew in the map
        seen = seen_space(read_octree(grid.binary_data(), 0.25), ground(), unknown_height=20.0)
        try:
            plan = replanner.update(
                seen, PlanPose(*vehicle.position[:2], vehicle.heading, vehicle.position[2])
            )
        except PlanError:
            vehicle.follower = None
        else:
            if plan is not None:
                plans += 1
                vehicle.follow(plan)

        # go on until the next sweep
        for _ in range(round(PERIOD / STEP)):
            vehicle.step(STEP)
            nearest = min(nearest, them.distance(vehicle.position))
        time += PERIOD
        if math.dist(vehicle.position[:2], goal) < 0.5:
            break

    return Trip(math.dist(vehicle.position[:2], goal), nearest, plans, time)


def check(kind, seed, start=START, goal=GOAL):
    done = trip(kind(start), goal, seed)
    assert done.missed < 0.51, done
    assert done.nearest > RADIUS + 0.25 * MARGIN, done
    return done


@pytest.mark.parametrize("kind", [Driven, exhaustively(Flown)])
def test_from_sensors_only_it_arrives_without_contact(kind):
    assert check(kind, 0, *SHORT_WAY).plans > 1, "what it met on the way made it plan anew"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "seed"),
    [*((Driven, seed) for seed in range(1, 20, 3)), *((Flown, seed) for seed in range(0, 20, 6))],
)
def test_so_it_does_in_each_of_many_worlds(kind, seed):
    check(kind, seed)


def test_a_vehicle_without_a_map_runs_into_them():
    """The straight way has contact in most worlds, so that the other tests prove something."""
    way = [np.array([x, 0.0, 0.0]) for x in np.arange(-40.0, 40.0, 0.1)]
    assert sum(min(pillars(seed).distance(at) for at in way) < RADIUS for seed in range(20)) >= 15
