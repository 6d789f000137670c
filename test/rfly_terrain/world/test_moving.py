# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Moving objects of a world: positions at a time, by hand; files and generated worlds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, load_world
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.moving import MovingPath
from rfly_terrain.world.populate import CLEARING, make_world
from rfly_terrain.world.world_file import parse_world, world_to_yaml

WORLD = """\
version: 1
models:
  walker: {class: person, type: 30, parts: [{cylinder: {radius: 0.3, height: 1.8}}]}
objects:
  - {box: [1, 1, 2], x: 50, y: 50}
moving:
  - {model: walker, speed: 1.5, path: [[0, 0], [30, 0], [30, 40]], start: 3}
  - {box: [4, 2, 1.5], class: vehicle, speed: 10, loop: true,
     path: [[0, 0], [30, 0], [30, 40]], scale: 2}
"""
ROOF = HeightMap(
    np.abs(np.arange(-50, 51.0))[:, None] * -0.1 + np.zeros(101),
    origin_x=-50,
    origin_y=-50,
    step_x=1,
    step_y=1,
)
"""a ridge along y at x = 0 that falls by 1:10 to both sides"""


@pytest.mark.parametrize(
    ("time", "place", "yaw"),
    [
        (0.0, (3.0, 0.0), 0.0),
        (18.0, (30.0, 0.0), math.pi / 2),  # 30 m along: the corner
        (18.0 + 4.0, (30.0, 6.0), math.pi / 2),
        (
            72.0 / 1.5,
            (30.0, 35.0),
            -math.pi / 2,
        ),  # 75 m along: 5 m on the way back from the end at 70 m
        ((-3.0 + 1400.0) / 1.5, (0.0, 0.0), 0.0),  # ten times there and back
        ((-3.0 - 10.0) / 1.5, (10.0, 0.0), math.pi),  # before the time 0
    ],
)
def test_there_and_back_by_hand(time, place, yaw):
    path = parse_world(WORLD.encode(), "w").moving[0].path
    position, heading, velocity = path.at(time)
    assert position == pytest.approx((*place, 0.0), abs=1e-9)
    assert math.remainder(heading - yaw, 2 * math.pi) == pytest.approx(0.0, abs=1e-9)
    assert velocity == pytest.approx((1.5 * math.cos(yaw), 1.5 * math.sin(yaw), 0.0), abs=1e-9)


def test_a_loop_by_hand():
    """A triangle of 30, 40 and 50 m at 10 m/s: 12 s, the last leg from (30, 40) to (0, 0)."""
    path = parse_world(WORLD.encode(), "w").moving[1].path
    for time in (9.0, 9.0 + 12.0 * 1e8):
        position, heading, velocity = path.at(time)
        assert position == pytest.approx((18.0, 24.0, 0.0), abs=1e-5)
        assert velocity == pytest.approx((-6.0, -8.0, 0.0))
        assert heading == pytest.approx(math.atan2(-8.0, -6.0))


def test_it_keeps_to_the_ground():
    """The path crosses a ridge between two corners.

    The ground is 1 m lower 10 m away on both sides.
    """
    path = MovingPath(np.array([(-10.0, 3.0, 0.0), (10.0, 3.0, 0.0)]), 2.0).on(ROOF, 0.5)
    for time, z, climb in (
        (0.0, -0.5, 0.2),
        (2.5, 0.0, 0.2),
        (7.5, 0.0, -0.2),
        (12.5, 0.0, 0.2),
        (17.5, 0.0, -0.2),
    ):
        position, _, velocity = path.at(time)
        assert position[2] == pytest.approx(z, abs=1e-6)
        assert velocity[2] == pytest.approx(climb, abs=1e-6)


def test_a_file_there_and_back_and_what_is_refused():
    world = parse_world(WORLD.encode(), "w")
    assert world_to_yaml(parse_world(world_to_yaml(world).encode(), "w")) == world_to_yaml(world)
    assert len(world.solids) == 1, "what moves is no part of what stands"

    solids = world.on(ROOF).moving_solids
    assert [len(parts) for parts in solids.parts] == [1, 1]
    assert solids.parts[1][0].max(axis=0) == pytest.approx((4.0, 2.0, 3.0))

    for broken, words in (
        (
            WORLD.replace("[30, 0], [30, 40]], start", "[0, 0]], start"),
            r"moving\[0\].path: path: two corners in a row",
        ),
        (
            WORLD.replace("model: walker, speed", "model: walkers, speed"),
            "'walkers': there are walker",
        ),
        (WORLD.replace("speed: 1.5", "speed: -1.5"), "speed"),
    ):
        with pytest.raises(ConfigError, match=words):
            parse_world(broken.encode(), "w")


@pytest.mark.parametrize("kind", ["forest", "village"])
def test_generated_worlds_have_people_who_run_into_nothing(kind):
    """Moving objects of two seeds keep clear of standing ones and of the clearing."""
    hills = HeightMap.load("RollingHills")
    for world in [load_world(kind).on(hills), *(make_world(kind, hills, seed) for seed in (2,))]:
        kinds = [CLASSES[each.model.class_id] for each in world.moving]
        assert kinds.count("person") >= 3
        assert ("vehicle" in kinds) is (kind == "village")

        outlines = world.solids.outlines
        for each, path in zip(world.moving, world.moving_solids.paths, strict=True):
            # no body meets an outline, except crowns above it
            points = np.array([path.at(time)[0] for time in np.linspace(0.0, 100.0, 201)])
            assert np.hypot(*points[:, :2].T).min() > CLEARING
            half_width = 0.9 if each.model.name == "car" else 0.3
            on_path, which = outlines.near(points[:, :2], half_width)
            crowns = (
                [
                    row
                    for row in which.tolist()
                    if outlines.bottom[row] - points[on_path[0], 2] < 1.8
                ]
                if len(which)
                else []
            )
            assert not crowns, (world.name, each.model.name)

            assert points[:, 2] == pytest.approx(
                hills.altitude(points[:, 0], points[:, 1]), abs=0.05
            )
