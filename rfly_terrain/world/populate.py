# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Populated worlds: forest, village, its roads, pillars, and clutter on any terrain.

The same seed makes the same world.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.lattice import SIXTEEN, cheapest_path, neighbours
from rfly_terrain.world.models import (
    CLASSES,
    Color,
    Model,
    box_part,
    cylinder_part,
    hull_part,
    placed_part,
)
from rfly_terrain.world.moving import MovingObject, MovingPath
from rfly_terrain.world.world import World, WorldObject

MAX_OBJECTS = 20_000
SCALES = (0.7, 0.85, 1.0, 1.2, 1.4)
"""Sizes of trees and rocks; there are few, so that each shape is made once."""
CLEARING = 12.0
"""Radius of the empty circle in the middle of the area, m."""
STEEPEST_HOUSE = math.radians(14.0)
"""Slope of the ground below a house, at most, rad."""
STEEPEST_TREE = math.radians(38.0)
"""Slope of the ground below a tree, at most, rad."""
STEEPEST_CLUTTER = math.radians(25.0)
"""Slope of the ground below a box or cylinder of clutter, at most, rad."""
_TRIES = 30
"""Places that are tried for each object."""
CELL = 4.0
"""Side of the cells of the lattice on which roads are searched, m."""
MOST_CELLS = 250
"""Cells on a side of the lattice, at most."""
_STEEPNESS = 400.0
"""Weight of the square of a slope: at 1:10 a metre of road counts as five."""


@dataclass(frozen=True, eq=False)
class Road:
    """A line of at least two points over the ground, ENU, m."""

    corners: Floats
    """Corners, (n, 2): x east, y north, m."""

    @property
    def ways(self) -> Floats:
        """Distance along it from the begin to each corner, (n,), m."""
        return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(self.corners, axis=0).T))])

    @property
    def length(self) -> float:
        """Length, m."""
        return float(self.ways[-1])

    def points(self, spacing: float) -> Floats:
        """Return places along it, (m, 2), at most that spacing (m) apart."""
        ways = self.ways
        distances = np.linspace(0.0, ways[-1], math.ceil(ways[-1] / spacing) + 1)
        return np.column_stack(
            [np.interp(distances, ways, self.corners[:, axis]) for axis in (0, 1)]
        )

    def at(self, way: float) -> tuple[float, float, float]:
        """Return x, y (m) and heading (rad) after a way of that length (m).

        The heading is counter-clockwise from east.
        """
        ways = self.ways
        leg = int(np.clip(np.searchsorted(ways, way, side="right") - 1, 0, len(ways) - 2))
        d_x, d_y = (self.corners[leg + 1] - self.corners[leg]).tolist()
        x = float(np.interp(way, ways, self.corners[:, 0]))
        y = float(np.interp(way, ways, self.corners[:, 1]))
        return x, y, math.atan2(d_y, d_x)


def find_road(terrain: HeightMap, area: tuple[float, float, float, float]) -> Road:
    """Return a road from the western edge of an area to the eastern one, past its middle.

    The area is x_min, x_max, y_min, y_max; m. The road is the path over a lattice with the fewest
    metres, weighted by the square of their slope; then it is rounded.
    """
    from scipy.ndimage import gaussian_filter1d

    # heights of the lattice
    x, y = (
        np.linspace(low, high, min(MOST_CELLS, max(2, round((high - low) / CELL) + 1)))
        for low, high in (area[:2], area[2:])
    )
    z = np.asarray(terrain.altitude(x[:, None], y[None, :]), float)

    # from the middle to both edges
    middle = (len(x) // 2, len(y) // 2)
    west = _cheapest(x, y, z, middle, [(0, row) for row in range(len(y))])
    east = _cheapest(x, y, z, middle, [(len(x) - 1, row) for row in range(len(y))])
    nodes = np.array([*west[::-1], *east[1:]])

    rounded_x = gaussian_filter1d(x[nodes[:, 0]], 2.0, mode="nearest")
    rounded_y = gaussian_filter1d(y[nodes[:, 1]], 2.0, mode="nearest")
    return Road(np.column_stack([rounded_x, rounded_y]))


def _cheapest(
    x: Floats, y: Floats, z: Floats, begin: tuple[int, int], ends: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the nodes from the begin to the end that is cheapest to reach."""
    height = z.ravel()
    edges = []
    for (d_x, d_y), a, b in neighbours(z.shape, SIXTEEN):
        distance = math.hypot(d_x * (x[1] - x[0]), d_y * (y[1] - y[0]))
        slope = (height[b] - height[a]) / distance
        edges.append((a, b, distance * (1.0 + _STEEPNESS * slope**2)))
    first, *last = (column * len(y) + row for column, row in (begin, *ends))
    path = cheapest_path(edges, z.size, first, last, directed=False)
    return [divmod(node, len(y)) for node in path]


@dataclass(frozen=True)
class Area:
    """A rectangle of a map, ENU, m. Raises ConfigError if it has no area."""

    x_min: float
    x_max: float
    y_min: float
    y_max: float

    def __post_init__(self) -> None:
        if not (self.x_max > self.x_min and self.y_max > self.y_min):  # false for NaN too
            raise ConfigError(
                f"area: x {self.x_min:g} … {self.x_max:g}, y {self.y_min:g} … {self.y_max:g}: "
                "expected increasing metres"
            )

    @property
    def middle(self) -> tuple[float, float]:
        """Middle x, y, m."""
        return 0.5 * (self.x_min + self.x_max), 0.5 * (self.y_min + self.y_max)

    @property
    def hectares(self) -> float:
        """Area, hectares."""
        return (self.x_max - self.x_min) * (self.y_max - self.y_min) / 1e4


def make_world(
    kind: str, terrain: HeightMap, seed: int, *, area: Area | None = None, density: float = 0.0
) -> World:
    """Return a world of a kind on a terrain, in an area.

    The area is by default the 200 m about the middle of the map. `density`: trees or pillars a
    hectare, of a village houses a hectare; 0: the kind's own. Raises ConfigError for an unknown
    kind, an area beyond the map and more than MAX_OBJECTS objects.
    """
    if kind not in KINDS:
        raise ConfigError(f"world {kind!r}: expected one of {', '.join(KINDS)}")

    site = _site(terrain, seed, area, density)
    objects, moving = KINDS[kind](site, density)
    return World(kind, tuple(objects), terrain.name, terrain=terrain, moving=tuple(moving))


def make_clutter(terrain: HeightMap, seed: int, *, area: Area, density: float, gap: float) -> World:
    """Return a world of boxes and cylinders, up to 9 m high, at places and with yaws by a seed.

    `density`: objects a hectare, fewer where they find no room. `gap`: least distance of two, m.
    Raises ConfigError for an area beyond the map and more than MAX_OBJECTS objects.
    """
    site = _site(terrain, seed, area, density)
    rng = site.rng
    objects: list[WorldObject] = []
    for _ in range(round(density * area.hectares)):
        model = _CLUTTER[int(rng.integers(len(_CLUTTER)))]
        scale = SCALES[int(rng.integers(len(SCALES)))]
        radius = scale * float(np.hypot(*model.bounds[1][:2]))
        place = site.anywhere(radius + 0.5 * gap, STEEPEST_CLUTTER)
        if place is not None:
            objects.append(WorldObject(model, *place, site.turn(), None, scale))
    return World("clutter", tuple(objects), terrain.name, terrain=terrain)


def _site(terrain: HeightMap, seed: int, area: Area | None, density: float) -> _Site:
    """Return the site of a world. Raises ConfigError for one beyond the map, or too dense."""
    site_area = _default_area(terrain) if area is None else area
    x_min, x_max, y_min, y_max = terrain.bounds
    if (
        site_area.x_min < x_min
        or site_area.x_max > x_max
        or site_area.y_min < y_min
        or site_area.y_max > y_max
    ):
        raise ConfigError(
            f"area: reaches beyond the map, x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g}"
        )

    if not 0.0 <= density * site_area.hectares <= MAX_OBJECTS:
        raise ConfigError(
            f"density: {density:g} a hectare, "
            f"expected 0 … {MAX_OBJECTS / site_area.hectares:g} here"
        )
    return _Site(terrain, site_area, np.random.default_rng(seed))


class _Site:
    """Ground with its present objects, as discs that no other object may touch."""

    def __init__(self, terrain: HeightMap, area: Area, rng: np.random.Generator) -> None:
        self.terrain = terrain
        self.area = area
        self.rng = rng
        self._discs = np.array([[*area.middle, CLEARING]])

    def free(self, x: float, y: float, radius: float, steepest: float) -> bool:
        """Return whether a disc (m) is free, in the area, on ground no steeper than that (rad)."""
        area = self.area
        in_x = area.x_min + radius <= x <= area.x_max - radius
        in_y = area.y_min + radius <= y <= area.y_max - radius
        if not (in_x and in_y):
            return False
        apart = np.hypot(self._discs[:, 0] - x, self._discs[:, 1] - y) - self._discs[:, 2]
        return bool(apart.min() > radius and float(self.terrain.slope(x, y)) <= steepest)

    def take(self, x: float, y: float, radius: float) -> None:
        """Reserve a disc for an object."""
        self._discs = np.vstack([self._discs, [x, y, radius]])

    def anywhere(self, radius: float, steepest: float) -> tuple[float, float] | None:
        """Return a free place for a disc and reserve it; None if none was found."""
        low = (self.area.x_min, self.area.y_min)
        high = (self.area.x_max, self.area.y_max)
        for _ in range(_TRIES):
            x, y = (round(float(value), 2) for value in self.rng.uniform(low, high))
            if self.free(x, y, radius, steepest):
                self.take(x, y, radius)
                return x, y
        return None

    def turn(self) -> float:
        """Return a random yaw of whole degrees, rad."""
        return math.radians(int(self.rng.integers(0, 360)))


def _default_area(terrain: HeightMap) -> Area:
    """Return the square of 200 m about the middle of the map, or less on a smaller one."""
    x_min, x_max, y_min, y_max = terrain.bounds
    x = 0.5 * (x_min + x_max)
    y = 0.5 * (y_min + y_max)
    half = min(100.0, 0.5 * (x_max - x_min), 0.5 * (y_max - y_min))
    return Area(x - half, x + half, y - half, y + half)


def _model(
    name: str, kind: str, color: Color, *parts: Floats, colors: tuple[Color, ...] = ()
) -> Model:
    """Return a model of a class by its name."""
    return Model(name, parts, CLASSES.index(kind), color, part_colors=colors)


def _raised(part: Floats, z: float, x: float = 0.0, y: float = 0.0) -> Floats:
    """Return a part, moved."""
    return placed_part(part, (x, y, z), 0.0)


_PINE = (46, 84, 52)
_PINE_BARK = (112, 78, 54)
_LEAVES = (86, 125, 58)
_BARK = (94, 76, 58)


def _trees() -> tuple[Model, Model, Model]:
    """Return a pine, a broad-leaved tree, a bush; trunks reach 1 m into the ground, for slopes."""
    stem = _raised(cylinder_part(0.22, 4.0), -1.0)
    crown = _raised(cylinder_part(2.0, 9.0, 0.0), 2.2)
    pine = _model("pine", "vegetation", _PINE, stem, crown, colors=(_PINE_BARK, _PINE))

    crowns = _raised(cylinder_part(1.4, 1.8, 3.0), 3.0), _raised(cylinder_part(3.0, 3.2, 1.2), 4.8)
    stem = _raised(cylinder_part(0.3, 4.5), -1.0)
    colors = (_BARK, _LEAVES, _LEAVES)
    leaved = _model("leaved", "vegetation", _LEAVES, stem, *crowns, colors=colors)

    bush = _model("bush", "vegetation", (104, 134, 74), _raised(cylinder_part(0.7, 1.6, 0.4), -0.3))
    return pine, leaved, bush


def _rocks(rng: np.random.Generator) -> list[Model]:
    """Return three boulders, a third of each in the ground."""
    rocks = []
    for number in range(3):
        direction = rng.normal(size=(14, 3))
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        corners = np.round(direction * (1.1, 0.8, 0.7) + (0.0, 0.0, 0.25), 2)
        rocks.append(_model(f"rock_{number + 1}", "rock", (128, 124, 118), hull_part(corners)))
    return rocks


_Population = tuple[list[WorldObject], list[MovingObject]]
"""Objects that stand still, and those that move."""


def _forest(site: _Site, density: float) -> _Population:
    """Return trees, bushes and rocks, with people in between."""
    pine, leaved, bush = _trees()
    rocks = _rocks(site.rng)
    rng = site.rng
    choices: list[tuple[Model, float, float]] = [
        (pine, 2.0, 0.5),
        (leaved, 2.6, 0.25),
        (bush, 0.9, 0.15),
    ]
    choices += [(rock, 1.3, 0.1 / len(rocks)) for rock in rocks]

    shares = np.array([share for _, _, share in choices])
    objects: list[WorldObject] = []
    for _ in range(round((density or 100.0) * site.area.hectares)):
        model, radius, _ = choices[int(rng.choice(len(choices), p=shares / shares.sum()))]
        scale = SCALES[int(rng.integers(len(SCALES)))]
        # crowns touch each other, trunks do not
        place = site.anywhere(0.6 * radius * scale, STEEPEST_TREE)
        if place is not None:
            objects.append(WorldObject(model, *place, site.turn(), None, scale))
    return objects, _people(site, 1.0)


def _pillars(site: _Site, density: float) -> _Population:
    """Return pillars of three sizes."""
    models = []
    for radius, color in (
        (0.4, (196, 120, 70)),
        (0.8, (92, 128, 168)),
        (1.5, (150, 150, 150)),
    ):
        shape = _raised(cylinder_part(radius, 32.0), -2.0)
        models.append(_model(f"pillar_{radius * 10:.0f}", "pole", color, shape))

    objects: list[WorldObject] = []
    for _ in range(round((density or 30.0) * site.area.hectares)):
        model = models[int(site.rng.integers(len(models)))]
        place = site.anywhere(float(model.bounds[1][0]) + 2.5, math.radians(60.0))
        if place is not None:
            objects.append(WorldObject(model, *place))
    return objects, []


def _clutter_models() -> tuple[Model, ...]:
    """Return boxes and cylinders, all with 1 m in the ground, for slopes."""
    boxes = ((1.2, 1.2, 1.0), (4.0, 0.6, 1.5), (3.0, 2.0, 3.0), (2.5, 2.5, 6.0))
    cylinders = ((0.2, 5.0), (0.5, 1.2), (1.2, 2.5))
    models = [
        _model(f"box_{k}", "barrier", (150, 120, 90), _raised(box_part(x, y, z + 1.0), -1.0))
        for k, (x, y, z) in enumerate(boxes, 1)
    ]
    models += [
        _model(f"cylinder_{k}", "pole", (92, 128, 168), _raised(cylinder_part(r, z + 1.0), -1.0))
        for k, (r, z) in enumerate(cylinders, 1)
    ]
    return tuple(models)


_CLUTTER = _clutter_models()


def _house(
    name: str, size: tuple[float, float, float], roof: float, color: Color, tiles: Color
) -> Model:
    """Return walls with foundations of 2 m below a gable roof along x."""
    length, width, height = size
    eaves = [
        (x * (length / 2 + 0.4), y * (width / 2 + 0.5), height) for x in (-1, 1) for y in (-1, 1)
    ]
    ridge = [(x * (length / 2 + 0.4), 0.0, height + roof) for x in (-1, 1)]
    walls = _raised(box_part(length, width, height + 2.0), -2.0)
    gable = hull_part([*eaves, *ridge])
    return _model(name, "building", color, walls, gable, colors=(color, tiles))


@functools.cache
def _house_models() -> tuple[Model, ...]:
    """Return three houses, made once: their hulls need SciPy, which takes long to import."""
    return (
        _house("house_small", (9.0, 7.0, 3.0), 2.5, (201, 180, 150), (146, 78, 58)),
        _house("house_large", (12.0, 8.5, 5.6), 3.2, (216, 206, 188), (118, 66, 52)),
        _house("barn", (16.0, 9.0, 4.5), 3.5, (140, 96, 76), (92, 94, 98)),
    )


_SETBACK = 9.0
"""Distance from the middle of the road to the middle of a house's front garden, m."""
_HEDGES = 6.5
"""Distance from the middle of the road to the hedges, m."""
_PLANTS = 40.0
"""Trees and bushes a hectare: enough for lidar odometry up to the edge (docs/benchmarks.md)."""


def _village(site: _Site, density: float) -> _Population:
    """Return houses, lamps and hedges along a road, with garden walls and trees around.

    Cars are on the road, people in between.
    """
    area = site.area
    road = find_road(site.terrain, (area.x_min, area.x_max, area.y_min, area.y_max))
    for x, y in road.points(2.0):
        site.take(float(x), float(y), 3.0)
    houses = _houses(site, road, round((density or 6.0) * area.hectares))
    objects = [
        *houses,
        *_lamps(site, road),
        *_garden_walls(site, houses),
        *_hedges(site, road),
        *_plants(site),
    ]
    return objects, [*_cars(site, road), *_people(site, 2.0)]


def _houses(site: _Site, road: Road, most: int) -> list[WorldObject]:
    """Return houses on both sides of a road, their ridges along it, where there is room."""
    rng = site.rng
    models = _house_models()
    houses: list[WorldObject] = []
    along = road.length * rng.permutation(np.linspace(0.03, 0.97, 4 * max(most, 1)))
    for way in along.tolist():
        if len(houses) >= most:
            break
        model = models[int(rng.integers(len(models)))]
        side = 1 if rng.random() < 0.5 else -1
        length, width, _ = model.bounds[1] - model.bounds[0]
        x, y, heading = _next_to(road, way, side * (_SETBACK + width / 2))
        radius = 0.5 * math.hypot(length, width)
        near_road = np.hypot(*(road.points(1.0) - (x, y)).T) < width / 2 + 3.5
        if site.free(x, y, radius + 1.0, STEEPEST_HOUSE) and not near_road.any():
            # the garden is behind the house
            yaw = math.radians(round(math.degrees(heading + (0.0 if side > 0 else math.pi))))
            houses.append(WorldObject(model, x, y, yaw))
            site.take(x, y, radius)
    return houses


def _lamps(site: _Site, road: Road) -> list[WorldObject]:
    """Return lamps on alternating sides of a road."""
    lamp = _model("lamp", "pole", (70, 72, 76), _raised(cylinder_part(0.09, 6.5), -0.5))
    lamps = []
    for number, way in enumerate(np.arange(12.0, road.length - 5.0, 28.0).tolist()):
        x, y, _ = _next_to(road, way, 4.0 * (1 if number % 2 else -1))
        lamps.append(WorldObject(lamp, x, y))
        site.take(x, y, 0.5)
    return lamps


def _garden_walls(site: _Site, houses: list[WorldObject]) -> list[WorldObject]:
    """Return walls behind houses, where there is room."""
    wall = _model("garden_wall", "wall", (150, 144, 134), _raised(box_part(6.0, 0.35, 2.2), -1.0))
    walls = []
    for house in houses:
        _, width, _ = house.model.bounds[1] - house.model.bounds[0]
        back = width / 2 + 4.0
        x = round(house.x - back * math.sin(house.yaw), 2)
        y = round(house.y + back * math.cos(house.yaw), 2)
        if site.free(x, y, 1.0, STEEPEST_TREE):
            walls.append(WorldObject(wall, x, y, house.yaw))
            site.take(x, y, 3.2)
    return walls


def _hedges(site: _Site, road: Road) -> list[WorldObject]:
    """Return hedges along both sides of a road, where there is room."""
    hedge = _model("hedge", "vegetation", (78, 112, 56), _raised(box_part(4.4, 0.9, 2.0), -0.6))
    hedges = []
    for way in np.arange(5.0, road.length - 5.0, 5.0).tolist():
        for side in (_HEDGES, -_HEDGES):
            x, y, heading = _next_to(road, way, side)
            if site.rng.random() < 0.8 and site.free(x, y, 2.25, STEEPEST_TREE):
                yaw = math.radians(round(math.degrees(heading)))
                hedges.append(WorldObject(hedge, x, y, yaw))
                site.take(x, y, 2.25)
    return hedges


def _plants(site: _Site) -> list[WorldObject]:
    """Return trees and bushes, where there is room."""
    rng = site.rng
    _, leaved, bush = _trees()
    plants = []
    for _ in range(round(_PLANTS * site.area.hectares)):
        model, radius = (leaved, 2.6) if rng.random() < 0.7 else (bush, 0.9)
        place = site.anywhere(radius, STEEPEST_TREE)
        if place is not None:
            yaw = site.turn()
            plants.append(WorldObject(model, *place, yaw, None, SCALES[int(rng.integers(3))]))
    return plants


def _next_to(road: Road, way: float, distance: float) -> tuple[float, float, float]:
    """Return x, y (m) and heading (rad) at a distance from a road.

    The distance (m) is positive to the left, after a way of that length (m) along the road.
    """
    x, y, heading = road.at(way)
    x = round(x - distance * math.sin(heading), 2)
    y = round(y + distance * math.cos(heading), 2)
    return x, y, heading


_PERSON = Model("person", (cylinder_part(0.3, 1.8),), CLASSES.index("person"), (190, 92, 60), 30)
_CAR_PARTS = (_raised(box_part(4.3, 1.8, 0.75), 0.2), _raised(box_part(2.3, 1.6, 0.5), 0.95, -0.2))
_CAR = Model("car", _CAR_PARTS, CLASSES.index("vehicle"), (70, 96, 150), 50)
_LANE = 1.4
"""Distance from the middle of the road to the middle of a lane, m."""
_ALOOF = 1.5
"""Distance of people from trunks, m: they walk below no crown that is too low."""
_STROLL = 40.0
"""Longest way of a person, m."""


def _people(site: _Site, per_hectare: float) -> list[MovingObject]:
    """Return people who walk to and fro in straight lines, where there are no objects."""
    people: list[MovingObject] = []
    rng = site.rng
    low = (site.area.x_min, site.area.y_min)
    high = (site.area.x_max, site.area.y_max)
    for _ in range(round(per_hectare * site.area.hectares)):
        for _ in range(_TRIES):
            begin = np.round(rng.uniform(low, high), 2)
            turn = site.turn()
            length = float(rng.uniform(0.3, 1.0)) * _STROLL
            end = np.round(begin + length * np.array([math.cos(turn), math.sin(turn)]), 2)
            line = Road(np.array([begin, end]))
            places = line.points(0.5).tolist()

            if all(site.free(x, y, _ALOOF, STEEPEST_HOUSE) for x, y in places):
                speed = round(float(rng.uniform(0.9, 1.6)), 2)
                start = round(float(rng.uniform(0, 60)), 2)
                corners = np.column_stack([line.corners, np.zeros(2)])
                people.append(MovingObject(_PERSON, MovingPath(corners, speed, start=start)))
                break
    return people


def _cars(site: _Site, road: Road) -> list[MovingObject]:
    """Return cars that drive on the right, back and forth.

    They keep to both sides of the clearing in the middle.
    """
    points = road.points(CELL)
    away = np.hypot(*(points - site.area.middle).T) > CLEARING + 4.0
    cars: list[MovingObject] = []

    for part in np.split(points, np.flatnonzero(np.diff(away)) + 1):
        if len(part) < 5 or np.hypot(*(part[len(part) // 2] - site.area.middle)) < CLEARING + 4.0:
            continue

        # both lanes as one loop
        along = np.gradient(part, axis=0)
        right = _LANE * np.column_stack([along[:, 1], -along[:, 0]]) / np.hypot(*along.T)[:, None]
        lanes = np.round(np.concatenate([part + right, (part - right)[::-1]]), 2)
        corners = np.column_stack([lanes, np.zeros(len(lanes))])

        start = round(float(site.rng.uniform(0.0, 60.0)), 2)
        cars += [
            MovingObject(_CAR, MovingPath(corners, 5.0, True, start + ahead))
            for ahead in (0.0, 60.0)
        ]
    return cars


KINDS: dict[str, Callable[[_Site, float], _Population]] = {
    "forest": _forest,
    "village": _village,
    "pillars": _pillars,
}
"""Kinds of worlds by name."""
