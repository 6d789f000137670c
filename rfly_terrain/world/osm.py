# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Buildings of an OpenStreetMap file (.osm, the XML of API 0.6) as objects of a world.

Tags are those of Key:building, Key:height, Key:building:levels, Simple_3D_Buildings and
Relation:multipolygon at https://wiki.openstreetmap.org. `building:part` is not read: a building
counts with its whole outline.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.documents import read_limited
from rfly_common.errors import ConfigError, ShapeError
from rfly_common.files import StrPath
from rfly_common.frames import ned_to_enu
from rfly_common.geodesy import geo_point, geodetic_to_ned
from rfly_common.untrusted_files.xml_elements import XmlElements
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.footprints import convex_pieces
from rfly_terrain.world.models import CLASSES, Color, Model, hull_part
from rfly_terrain.world.populate import MAX_OBJECTS, Area
from rfly_terrain.world.world import World, WorldObject

MAX_FILE_BYTES = 100_000_000
MAX_NODES = 1_000_000
MAX_ELEMENTS = 5_000_000
MAX_WAYS = 1_000
"""Ways of a multipolygon, at most."""
LEVEL = 3.0
"""Height of a storey, m."""
DEFAULT_HEIGHT = 6.0
"""Height of a building without tags of height and levels, m."""
FOUNDATION = 0.5
"""Depth below the lowest ground under a building, m."""
MAX_HEIGHT = 1_000.0
"""Height of a building, at most, m."""
_ROLES = ("outer", "inner", "")
COLOR: Color = (190, 176, 158)
_METRES = re.compile(r"(\d+(?:\.\d+)?)\s*(?:m|metres?|meters?)?$")
_FEET = re.compile(r"(\d+(?:\.\d+)?)'(?:\s*(\d+(?:\.\d+)?)\")?$")


class OsmImport(NamedTuple):
    """Result of `import_osm`."""

    world: World
    left_out: dict[str, int]
    """Number of buildings that are not in the world, by reason."""


@dataclass
class _Tagged:
    """A way or a relation."""

    members: list[int] = field(default_factory=list)
    """Nodes of a way, ways of a relation."""
    tags: dict[str, str] = field(default_factory=dict)


class _OsmElements(XmlElements):
    """Nodes, ways and relations of a file, without those that an editor has deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(name, MAX_ELEMENTS)
        self.nodes: dict[int, tuple[float, float]] = {}
        """Latitude and longitude of each node, degrees."""
        self.ways: dict[int, _Tagged] = {}
        self.relations: dict[int, _Tagged] = {}
        self._current: _Tagged | None = None

    def opened(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an element with its attributes."""
        if len(self._open) == 1 and tag != "osm":
            raise self.error(f"the first element is {tag[:60]!r}, expected 'osm'")
        exists = attributes.get("visible") != "false" and attributes.get("action") != "delete"
        parent = self._open[-2] if len(self._open) > 1 else ""

        if tag == "node" and exists:
            place = self._degrees(attributes, "lat", 90.0), self._degrees(attributes, "lon", 180.0)
            self.nodes[self._id(attributes, "id")] = place
            if len(self.nodes) > MAX_NODES:
                raise self.error(f"more than {MAX_NODES:,} nodes: take a smaller area")
        elif tag in ("way", "relation"):
            self._current = _Tagged()  # of deleted elements too: their content goes there
            if exists:
                elements = self.ways if tag == "way" else self.relations
                elements[self._id(attributes, "id")] = self._current
        elif parent not in ("way", "relation") or self._current is None:
            return
        elif tag == "tag":
            self._current.tags[attributes.get("k", "")] = attributes.get("v", "")
        else:
            is_outline = attributes.get("type") == "way" and attributes.get("role", "") in _ROLES
            if tag == "nd" or is_outline:
                self._current.members.append(self._id(attributes, "ref"))

    def _id(self, attributes: dict[str, str], key: str) -> int:
        """Return an attribute as a whole number."""
        text = attributes.get(key, "")
        if not re.fullmatch(r"-?\d{1,18}", text):
            raise self.error(f"{self._open[-1]}: {key} {text[:40]!r}, expected a whole number")
        return int(text)

    def _degrees(self, attributes: dict[str, str], key: str, most: float) -> float:
        """Return an attribute as degrees."""
        text = attributes.get(key, "")
        is_number = re.fullmatch(r"[-+]?\d{1,3}(\.\d*)?([eE]-?\d{1,2})?", text)
        if not is_number or abs(float(text)) > most:
            raise self.error(f"node: {key} {text[:40]!r}, expected degrees within ±{most:g}")
        return float(text)


def import_osm(
    path: StrPath,
    terrain: HeightMap,
    *,
    geo_origin: Sequence[float] | None = None,
    area: Area | None = None,
    default_height: float = DEFAULT_HEIGHT,
) -> OsmImport:
    """Return the buildings of an .osm file on a terrain, as prisms.

    Buildings are ways and multipolygons with the tag `building`. `geo_origin`: latitude, longitude
    (degrees) and altitude (m) of the map's x = y = z = 0, by default the terrain's. The height of a
    prism is that of `height`, else LEVEL for each of `building:levels`, else `default_height` (m),
    above the lowest ground below its outline. It begins `min_height` or `building:min_level` above
    that ground. `area`: only buildings with their middle in it.

    Raises ConfigError for a file of another kind, or without a building that can be placed.
    """
    place = terrain.geo_origin if geo_origin is None else geo_origin
    if place is None:
        raise ConfigError(
            f"map {terrain.name!r} does not say where on Earth it lies: give its geo origin"
        )
    origin = geo_point(place, "geo origin")
    if not 0.0 < default_height <= MAX_HEIGHT:
        raise ConfigError(
            f"height: {default_height:g} m, expected more than 0, at most {MAX_HEIGHT:g}"
        )

    x_min, x_max, y_min, y_max = dataclasses.astuple(area) if area else terrain.bounds
    elements = _OsmElements(str(path))
    elements.read(read_limited(path, "file", MAX_FILE_BYTES))

    objects: list[WorldObject] = []
    left_out: Counter[str] = Counter()
    first_outside = ""
    for name, tags, node_rings in _buildings(elements):
        if not node_rings:
            left_out["incomplete in the file"] += 1
            continue

        rings = [_places([elements.nodes[node] for node in ring], origin) for ring in node_rings]
        corners = np.concatenate(rings)
        x, y = (0.5 * (corners.min(axis=0) + corners.max(axis=0))).tolist()
        if not (x_min <= x <= x_max and y_min <= y <= y_max):
            left_out["outside the area"] += 1
            first_outside = first_outside or f", the first one at x {x:.0f}, y {y:.0f} m"
            continue
        building = _prism(name, rings, _bottom_and_top(tags, default_height), terrain)
        if building is None:
            left_out["too thin or too detailed"] += 1
            continue
        objects.append(building)
        if len(objects) > MAX_OBJECTS:
            raise ConfigError(f"{path}: more than {MAX_OBJECTS:,} buildings: take a smaller area")

    if not objects:
        counts = ", ".join(f"{count} {why}" for why, count in left_out.items()) or "none at all"
        raise ConfigError(
            f"{path}: no building within x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g} m: "
            f"{counts}{first_outside}"
        )
    world = World(Path(path).stem, tuple(objects), terrain.name, terrain=terrain)
    return OsmImport(world, dict(left_out))


def _buildings(elements: _OsmElements) -> Iterator[tuple[str, dict[str, str], list[list[int]]]]:
    """Yield name, tags, and rings of node ids of each building.

    There are no rings if the file lacks a part of the building.
    """
    # ways of multipolygons: the same building, if they have the tag too
    outlines: set[int] = set()
    corners = 0
    for number, relation in elements.relations.items():
        if not _is_building(relation.tags) or relation.tags.get("type") != "multipolygon":
            continue
        outlines.update(relation.members)
        ways = [elements.ways[way].members for way in relation.members if way in elements.ways]
        complete = len(ways) == len(relation.members) <= MAX_WAYS
        # each way is searched among all, and may be in many relations, or many times in one
        corners += complete * (sum(map(len, ways)) + len(ways) ** 2)
        if corners > MAX_ELEMENTS:
            raise ConfigError(
                f"{elements.name}: multipolygons of more than {MAX_ELEMENTS:,} corners"
            )
        yield f"relation_{number}", relation.tags, _closed(ways, elements) if complete else []

    for number, way in elements.ways.items():
        if _is_building(way.tags) and number not in outlines:
            yield f"way_{number}", way.tags, _closed([way.members], elements)


def _is_building(tags: dict[str, str]) -> bool:
    """Return whether tags are those of a building above the ground."""
    return tags.get("building", "no") != "no" and tags.get("location") != "underground"


def _closed(ways: list[list[int]], elements: _OsmElements) -> list[list[int]]:
    """Return the rings of ways in any order and direction, each node of a ring once.

    There are none if a piece is missing.
    """
    if not all(way and all(node in elements.nodes for node in way) for way in ways):
        return []

    # join ways at their ends
    remaining = list(ways)
    rings = []
    while remaining:
        ring = list(remaining.pop())
        while ring[0] != ring[-1] or len(ring) == 1:
            index = next(
                (k for k, way in enumerate(remaining) if ring[-1] in (way[0], way[-1])), None
            )
            if index is None:
                return []
            way = remaining.pop(index)
            ring += (way if way[0] == ring[-1] else way[::-1])[1:]
        rings.append(ring[:-1])

    return rings


def _places(nodes: list[tuple[float, float]], origin: tuple[float, float, float]) -> Floats:
    """Return the places of nodes, x east, y north, m, (n, 2)."""
    above = np.column_stack([np.array(nodes), np.full(len(nodes), origin[2])])
    return np.asarray(ned_to_enu(geodetic_to_ned(above, origin)), float)[:, :2]


def _bottom_and_top(tags: dict[str, str], default_height: float) -> tuple[float, float]:
    """Return bottom and top above the lowest ground, m; a bottom of 0 reaches into it."""
    levels = _metres(tags.get("building:levels", ""), LEVEL)
    top = _metres(tags.get("height", "")) or levels or default_height
    bottom = _metres(tags.get("min_height", ""))
    bottom = bottom or _metres(tags.get("building:min_level", ""), LEVEL) or 0.0
    return (bottom if bottom < top else 0.0), top


def _metres(text: str, unit: float = 1.0) -> float | None:
    """Return the metres of `12`, `12.5 m` or, with feet and inches, `7'4"`.

    Returns None for another text or no height.
    """
    text = text.strip()
    metres = _METRES.match(text)
    feet = _FEET.match(text)
    if metres:
        value = float(metres[1]) * unit
    elif feet:
        value = 0.3048 * (float(feet[1]) + float(feet[2] or 0) / 12)
    else:
        return None
    return value if 0.0 < value <= MAX_HEIGHT else None


def _prism(
    name: str, rings: list[Floats], span: tuple[float, float], terrain: HeightMap
) -> WorldObject | None:
    """Return a building along its longest wall, in the middle of its outline.

    Returns None if it has no area.
    """
    # axes along the longest wall
    walls = np.concatenate([np.roll(ring, -1, axis=0) - ring for ring in rings])
    longest = walls[int(np.hypot(*walls.T).argmax())]
    yaw = round(math.degrees(math.atan2(longest[1], longest[0])), 2) % 180.0
    c = math.cos(math.radians(yaw))
    s = math.sin(math.radians(yaw))
    to_world = np.array([[c, s], [-s, c]])  # for rows; its transpose leads back
    turned = np.concatenate(rings) @ to_world.T
    middle = 0.5 * (turned.min(axis=0) + turned.max(axis=0))
    x, y = np.round(middle @ to_world, 2).tolist()
    pieces = convex_pieces([(ring - (x, y)) @ to_world.T for ring in rings])

    # heights above the ground in the middle
    ground = np.asarray(terrain.altitude(*np.concatenate(rings).T)).min() - terrain.altitude(x, y)
    bottom, top = span
    low = round(float(ground + (bottom or -FOUNDATION)), 2)
    high = round(float(ground + top), 2)

    parts = []
    for piece in pieces:
        corners = np.round(piece, 4).tolist()
        try:
            parts.append(hull_part([(*corner, z) for corner in corners for z in (low, high)]))
        except ShapeError:  # thinner than any wall
            continue
    if not parts:
        return None
    model = Model(name, tuple(parts), CLASSES.index("building"), COLOR)
    return WorldObject(model, x, y, math.radians(yaw))
