# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Populated worlds: the same seed the same file, and nothing where it cannot stand."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, load_world
from rfly_terrain.world.models import CLASSES
from rfly_terrain.world.populate import CLEARING, KINDS, Area, find_road, make_world
from rfly_terrain.world.world_file import world_to_yaml


@pytest.fixture(scope="module")
def hills():
    return HeightMap.load("RollingHills")


def places(world):
    return np.array([(o.x, o.y) for o in world.objects])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_seed_makes_one_world(kind, hills):
    made = world_to_yaml(make_world(kind, hills, 1))
    assert made == world_to_yaml(make_world(kind, hills, 1))
    assert made != world_to_yaml(make_world(kind, hills, 2))
    shipped = load_world(kind)
    assert world_to_yaml(dataclasses.replace(shipped, fleet="")) == made, (
        "rfly world make KIND --overwrite in rfly_terrain/data/worlds, then its line `fleet`"
    )
    x, y = np.abs(places(shipped)).max(axis=0)
    assert max(x, y) <= 100.0
    assert np.hypot(*places(shipped).T).min() > CLEARING


def test_a_forest_by_density_and_slope():
    """A slope of 45° in the east stays without trees.

    The west is 100 m of level ground: 2 ha with trees, 2 ha without.
    """
    at = np.arange(201) * 1.0
    terrain = HeightMap(
        np.maximum(at - 100.0, 0.0)[:, None] + 0.0 * at, origin_x=0, origin_y=0, step_x=1, step_y=1
    )
    world = make_world("forest", terrain, 5, density=60.0)
    assert places(world)[:, 0].max() <= 100.0
    assert len(world.objects) == pytest.approx(60 * 4, rel=0.02)
    classes = {CLASSES[o.model.class_id] for o in world.objects}
    assert classes == {"vegetation", "rock"}
    fewer = make_world("forest", terrain, 5, density=30.0)
    assert len(fewer.objects) == pytest.approx(len(world.objects) / 2, rel=0.05)
    assert len({id(o.scaled_model) for o in world.objects}) <= 30  # shapes that nodes make once


def test_pillars_leave_gaps_of_five_metres(hills):
    world = make_world("pillars", hills, 3)
    radii = np.array([o.model.bounds[1][0] for o in world.objects])
    xy = places(world)
    for i, j in itertools.combinations(range(len(xy)), 2):
        assert np.hypot(*(xy[i] - xy[j])) - radii[i] - radii[j] > 5.0 - 0.01
    assert len(world.objects) > 100


@pytest.mark.parametrize("seed", range(3))
def test_houses_stand_apart_beside_the_road(hills, seed):
    world = make_world("village", hills, seed)
    houses = [o for o in world.objects if CLASSES[o.model.class_id] == "building"]
    assert len(houses) >= 6
    assert {"pole", "wall", "vegetation"} <= {CLASSES[o.model.class_id] for o in world.objects}

    # no house on the road
    road = find_road(hills, (-100.0, 100.0, -100.0, 100.0)).points(0.5)
    outlines = world.solids.outlines
    on_road, which = outlines.near(road, 2.5)
    assert len(on_road) == 0, world.objects[int(which[0])]

    # level enough, with a foundation in the ground
    for o in houses:
        assert math.degrees(float(hills.slope(o.x, o.y))) <= 14.0
        sin = math.sin(o.yaw)
        cos = math.cos(o.yaw)
        length, width, _ = o.model.bounds[1] - o.model.bounds[0]
        corners = [
            (o.x + cos * a - sin * b, o.y + sin * a + cos * b)
            for a in (-length / 2, length / 2)
            for b in (-width / 2, width / 2)
        ]
        ground = float(hills.altitude(o.x, o.y))
        floating = ground - 2.0 - min(float(hills.altitude(x, y)) for x, y in corners)
        assert floating < 1.0, "its foundation hardly leaves the ground"

    for a, b in itertools.combinations(houses, 2):
        assert math.hypot(a.x - b.x, a.y - b.y) > 9.0


def test_a_road_goes_round_a_hill():
    """A ridge of 30 m from south to north, with a gap at y = 60: the road takes the gap."""
    at = np.arange(101) * 2.0 - 100.0
    ridge = (
        30.0
        * np.exp(-((at[:, None] - 40) ** 2) / 200)
        * (1 - np.exp(-((at[None, :] - 60) ** 2) / 300))
    )
    terrain = HeightMap(ridge, origin_x=-100, origin_y=-100, step_x=2, step_y=2)

    road = find_road(terrain, (-100.0, 100.0, -100.0, 100.0))
    points = road.points(1.0)
    assert (points[0, 0], points[-1, 0]) == (pytest.approx(-100, abs=4), pytest.approx(100, abs=4))
    crossing = points[np.abs(points[:, 0] - 40).argmin()]
    assert crossing[1] == pytest.approx(60.0, abs=10.0)

    # gentle, and headings along it
    z = terrain.altitude(points[:, 0], points[:, 1])
    assert np.abs(np.diff(z)).max() < 0.25  # of a metre a metre
    x, y, heading = road.at(0.5 * road.length)
    ahead = np.array([x + 0.5 * math.cos(heading), y + 0.5 * math.sin(heading)])
    assert np.hypot(*(points - ahead).T).min() < 0.6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "city"}, "'city': expected one of forest, village, pillars"),
        ({"area": (0.0, 500.0, 0.0, 10.0)}, "reaches beyond the map"),
        ({"area": (10.0, 0.0, 0.0, 10.0)}, "expected increasing metres"),
        ({"density": 1e5}, "expected 0 … 5000 here"),
        ({"density": math.nan}, "density: nan"),
    ],
)
def test_what_cannot_be_made(hills, changes, words):
    kind = changes.get("kind", "forest")
    area = changes.get("area")
    density = changes.get("density", 0.0)
    with pytest.raises(ConfigError, match=words):
        make_world(kind, hills, 1, area=area and Area(*area), density=density)
