# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Grounds of the environments to learn in: a map, what stands on it, and where episodes begin."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number, whole_number
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_lab.learning.episodes import WIDEST_COURSE
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.models import CLASSES, Model, box_part
from rfly_terrain.world.populate import Area, make_clutter
from rfly_terrain.world.solids import ObjectBoxes
from rfly_terrain.world.world import World, WorldObject
from rfly_terrain.world.world_file import load_world

RANDOM = "random"
"""Name of a terrain or a world that is drawn."""
DENSITY = 40.0
"""Usual number of objects of a random world, per hectare."""
MOST_DENSITY = 200.0
"""Largest number of objects of a random world, per hectare."""
MOST_SEED = 2**63 - 1
"""Largest seed of a random terrain or world."""
WIDEST = 600.0
"""Longest side of a random world, m: on a larger map it is in the middle."""
AROUND = 20.0
"""Distance from the objects of a world within which episodes begin, m, along each axis."""

HOUSE = (204, 178, 153)
"""Colour of houses: red, green, blue."""
HILLS_SIDE = 401
"""Samples of the usual terrain along a side, a metre apart."""
RANDOM_SIDE = 400.0
"""Side of a random terrain, m."""
RANDOM_STEP = 0.5
"""Distance of its samples, m."""
PATCHES = 8
"""Patches of a random terrain along a side, each with hills, slopes, steps and bumps of its own."""
FLAT_SHARE = 0.4
"""Share of the patches without hills; likewise without slopes, without steps, without bumps."""
HIGHEST_HILLS = 4.0
"""Largest height of the hills above their mean, m."""
STEEPEST = 0.25
"""Largest gradient of the slopes, m per m."""
HIGHEST_STEP = 0.12
"""Largest height of a step, m."""
HIGHEST_BUMPS = 0.03
"""Largest standard deviation of the bumps, m."""


class BatchGround(NamedTuple):
    """Ground and objects that the vehicles of a batch drive and fly over."""

    terrain: HeightMap
    """Map."""
    world: World | None
    """Objects on it; None: there are none."""
    low: tuple[float, float]
    """South-west corner of the places where episodes begin, m. No course leaves the map."""
    high: tuple[float, float]
    """North-east corner, m."""


def ground_of(
    terrain: StrPath | HeightMap | None,
    world: StrPath | World | None,
    density: float | None,
    world_seed: int | None,
    gap: float,
) -> BatchGround:
    """Return the ground of the arguments of a `LandAirBatch`.

    `gap`: least distance of two objects of a random world, m. Raise ConfigError for a world file or
    map that can't be read, for objects off the map, for a map that is too small for any course, and
    for options that this ground does not have.
    """
    is_drawn = isinstance(world, str) and world == RANDOM
    if density is not None:
        if not is_drawn:
            raise ConfigError(f"density: {density!r}, expected none without world='{RANDOM}'")
        density = finite_number("density", density, "a hectare", above=0.0, at_most=MOST_DENSITY)
    seed = _seed(world_seed, is_drawn or (isinstance(terrain, str) and terrain == RANDOM))

    # a world brings its map along
    given = None if is_drawn or world is None else _world(world)
    if terrain is None and given is not None and (given.terrain is not None or given.map):
        terrain = given.terrain or HeightMap.load(given.map, [given.folder] if given.folder else ())
    ground = _map(terrain, seed)
    low, high = places_on(ground)
    if is_drawn:
        drawn = random_world(ground, DENSITY if density is None else density, seed, gap)
        return BatchGround(ground, drawn, *_around(drawn, low, high, 0.0))
    if given is None:
        return BatchGround(ground, None, low, high)
    return _with_world(ground, given, low, high)


def _seed(world_seed: int | None, is_used: bool) -> int:
    """Return the seed of random terrains and worlds. Raise ConfigError for another one."""
    if world_seed is None:
        return 0
    seed = whole_number("world_seed", world_seed, at_least=0, at_most=MOST_SEED)
    if not is_used:
        raise ConfigError(
            f"world_seed: {seed}, expected none without a terrain or world '{RANDOM}'"
        )
    return seed


def _map(terrain: StrPath | HeightMap | None, seed: int) -> HeightMap:
    """Return the map of an argument. Raise ConfigError for one that is too small for any course."""
    if terrain is None:
        result = hills()
    elif isinstance(terrain, HeightMap):
        result = terrain
    elif terrain == RANDOM:
        result = random_terrain(seed)
    else:
        result = HeightMap.load(terrain)

    ground = result.ground
    side = min(ground.x_max - ground.x_min, ground.y_max - ground.y_min)
    if side <= 2.0 * WIDEST_COURSE:
        raise ConfigError(
            f"terrain: {side:g} m wide, expected more than {2.0 * WIDEST_COURSE:g} m: "
            "courses must not leave it"
        )
    return result


def places_on(terrain: HeightMap) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the corners of the places from which no course leaves a map, m."""
    west, east, south, north = terrain.bounds
    margin = WIDEST_COURSE
    return (west + margin, south + margin), (east - margin, north - margin)


# maps


@functools.cache
def hills() -> HeightMap:
    """Return the usual terrain: 400 x 400 m of hills up to 3 m high, with bumps of a few cm."""
    along = np.arange(HILLS_SIDE, dtype=np.float64)
    waves = np.sin(along / 11.0)[:, None] * np.cos(along / 17.0) + np.sin(along / 29.0)
    bumps = np.random.default_rng(1).normal(0.0, 0.02, waves.shape)
    half = 0.5 * (HILLS_SIDE - 1)
    return HeightMap(
        1.5 * waves + bumps, origin_x=-half, origin_y=-half, step_x=1.0, step_y=1.0, name="hills"
    )


@functools.lru_cache(maxsize=8)
def random_terrain(seed: int) -> HeightMap:
    """Return RANDOM_SIDE x RANDOM_SIDE m of hills, slopes, steps and bumps, drawn by a seed.

    How high each of them is differs from patch to patch, and passes over evenly in between.
    """
    random = np.random.default_rng((seed, 5))
    along: Floats = np.arange(round(RANDOM_SIDE / RANDOM_STEP) + 1, dtype=float) * RANDOM_STEP
    x = along[:, None]
    y = along[None, :]

    # hills up to 1 m high, slopes of 1 m per m, steps of 1 m, bumps of 1 m
    waves = [
        np.sin(2.0 * math.pi * _across(random, x, y) / random.uniform(25.0, 80.0)) for _ in range(6)
    ]
    ridges = random.uniform(15.0, 30.0)
    slopes = np.abs(np.mod(_across(random, x, y), 2.0 * ridges) - ridges)
    stairs = random.uniform(10.0, 20.0)
    up_and_down = np.abs(np.mod(_across(random, x, y), 2.0 * stairs) - stairs)
    steps = np.floor(up_and_down / random.uniform(1.0, 3.0))
    bumps = random.normal(size=waves[0].shape)
    kinds = (
        (np.sum(waves, axis=0) / len(waves), HIGHEST_HILLS),
        (slopes, STEEPEST),
        (steps, HIGHEST_STEP),
        (bumps, HIGHEST_BUMPS),
    )

    # their sizes, patch by patch
    place = along / RANDOM_SIDE * PATCHES
    share = np.maximum(1.0 - np.abs(place[:, None] - np.arange(PATCHES + 1)), 0.0)
    heights = np.zeros(waves[0].shape)
    for heights_of_one, most in kinds:
        size = random.uniform(0.0, most, (PATCHES + 1, PATCHES + 1))
        size *= random.uniform(size=size.shape) >= FLAT_SHARE
        heights += heights_of_one * (share @ size @ share.T)
    half = 0.5 * RANDOM_SIDE
    return HeightMap(
        heights,
        origin_x=-half,
        origin_y=-half,
        step_x=RANDOM_STEP,
        step_y=RANDOM_STEP,
        name=f"random {seed}",
    )


def _across(random: np.random.Generator, x: Floats, y: Floats) -> Floats:
    """Return how far places lie along a direction that is drawn, from a line that is drawn, m."""
    turn = random.uniform(-math.pi, math.pi)
    offset = random.uniform(0.0, 100.0)
    return np.asarray(math.cos(turn) * x + math.sin(turn) * y + offset)


# worlds


@functools.lru_cache(maxsize=8)
def random_world(terrain: HeightMap, density: float, seed: int, gap: float) -> World:
    """Return boxes and cylinders on a map, drawn by a seed, at least a gap (m) apart.

    They cover the map, at most WIDEST x WIDEST m in its middle. Raise ConfigError where none finds
    a place.
    """
    west, east, south, north = terrain.bounds
    x = 0.5 * (west + east)
    y = 0.5 * (south + north)
    half_x = 0.5 * min(WIDEST, east - west)
    half_y = 0.5 * min(WIDEST, north - south)
    area = Area(x - half_x, x + half_x, y - half_y, y + half_y)
    world = make_clutter(terrain, seed, area=area, density=density, gap=gap)
    if not world.objects:
        raise ConfigError(
            f"density: {density:g} a hectare, and no object has found a place; "
            "expected more, or a terrain that is less steep"
        )
    return world


def _world(world: StrPath | World) -> World:
    """Return the world of an argument. Raise ConfigError for a file that can't be read."""
    return world if isinstance(world, World) else load_world(world)


def _with_world(
    terrain: HeightMap, world: World, low: tuple[float, float], high: tuple[float, float]
) -> BatchGround:
    """Return the ground with a world on it. Raise ConfigError for objects off the map."""
    placed = world if world.terrain is terrain else world.on(terrain)
    off = placed.off_map(terrain)
    if off:
        first = placed.objects[off[0]]
        raise ConfigError(
            f"world: {len(off)} of {len(placed.objects)} objects are off the map, the first at "
            f"x {first.x:g}, y {first.y:g} m; expected a world for the map {terrain.name!r}"
        )
    if placed.objects:
        low, high = _around(placed, low, high, AROUND)
    return BatchGround(terrain, placed, low, high)


def _around(
    world: World, low: tuple[float, float], high: tuple[float, float], margin: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the corners of the places at most a margin (m) beyond the objects of a world.

    Raise ConfigError where none of them lies between `low` and `high`.
    """
    lowest, highest = world.solids.outlines.bounds
    south_west = np.maximum(low, lowest.min(axis=0) - margin).tolist()
    north_east = np.minimum(high, highest.max(axis=0) + margin).tolist()
    if south_west[0] > north_east[0] or south_west[1] > north_east[1]:
        raise ConfigError(
            f"world: its objects are within {WIDEST_COURSE:g} m of the map's edge, where no "
            "episode begins; expected some farther in"
        )
    return (south_west[0], south_west[1]), (north_east[0], north_east[1])


def house_world(boxes: ObjectBoxes) -> World:
    """Return houses that are parallel to the axes as a world."""
    objects = []
    for (x, y, z), half in zip(boxes.centre.tolist(), boxes.half_extent.tolist(), strict=True):
        model = Model(
            "house", (box_part(*(2.0 * side for side in half)),), CLASSES.index("building"), HOUSE
        )
        objects.append(WorldObject(model, x, y, z=z - half[2]))
    return World(objects=tuple(objects))
