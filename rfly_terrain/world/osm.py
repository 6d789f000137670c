"""Buildings of an OpenStreetMap file (.osm, the XML of API 0.6) as objects of a world.

Tags as https://wiki.openstreetmap.org says in Key:building, Key:height, Key:building:levels,
Simple_3D_Buildings and Relation:multipolygon. `building:part` is not read: a building counts with
its whole outline.
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
"""of a multipolygon"""
LEVEL = 3.0
"""m of a storey"""
DEFAULT_HEIGHT = 6.0
"""m of a building that tells neither height nor levels"""
FOUNDATION = 0.5
"""m below the lowest ground that it touches"""
MAX_HEIGHT = 1_000.0
_ROLES = ("outer", "inner", "")
COLOR: Color = (190, 176, 158)
_METRES = re.compile(r"(\d+(?:\.\d+)?)\s*(?:m|metres?|meters?)?$")
_FEET = re.compile(r"(\d+(?:\.\d+)?)'(?:\s*(\d+(?:\.\d+)?)\")?$")


class OsmImport(NamedTuple):
    """What `import_osm` made of a file."""

    world: World
    left_out: dict[str, int]
    """how many buildings are not in it, by the reason"""


@dataclass
class _Tagged:
    """A way or a relation."""

    members: list[int] = field(default_factory=list)
    """nodes of a way, ways of a relation"""
    tags: dict[str, str] = field(default_factory=dict)


class _OsmElements(XmlElements):
    """Nodes, ways and relations that a file holds, but for what an editor has deleted."""

    def __init__(self, name: str) -> None:
        super().__init__(name, MAX_ELEMENTS)
        self.nodes: dict[int, tuple[float, float]] = {}
        """latitude, longitude, degrees"""
        self.ways: dict[int, _Tagged] = {}
        self.relations: dict[int, _Tagged] = {}
        self._now: _Tagged | None = None

    def opened(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) == 1 and tag != "osm":
            raise self.error(f"the first element is {tag[:60]!r}, expected 'osm'")
        there = attributes.get("visible") != "false" and attributes.get("action") != "delete"
        around = self._open[-2] if len(self._open) > 1 else ""
        if tag == "node" and there:
            place = self._degrees(attributes, "lat", 90.0), self._degrees(attributes, "lon", 180.0)
            self.nodes[self._id(attributes, "id")] = place
            if len(self.nodes) > MAX_NODES:
                raise self.error(f"more than {MAX_NODES:,} nodes: take a smaller area")
        elif tag in ("way", "relation"):
            self._now = _Tagged()  # also of what is not there: a place for what is in it
            if there:
                (self.ways if tag == "way" else self.relations)[self._id(attributes, "id")] = (
                    self._now
                )
        elif around not in ("way", "relation") or self._now is None:
            return
        elif tag == "tag":
            self._now.tags[attributes.get("k", "")] = attributes.get("v", "")
        elif tag == "nd" or (
            attributes.get("type") == "way" and attributes.get("role", "") in _ROLES
        ):
            self._now.members.append(self._id(attributes, "ref"))

    def _id(self, attributes: dict[str, str], key: str) -> int:
        text = attributes.get(key, "")
        if not re.fullmatch(r"-?\d{1,18}", text):
            raise self.error(f"{self._open[-1]}: {key} {text[:40]!r}, expected a whole number")
        return int(text)

    def _degrees(self, attributes: dict[str, str], key: str, most: float) -> float:
        text = attributes.get(key, "")
        if (
            not re.fullmatch(r"[-+]?\d{1,3}(\.\d*)?([eE]-?\d{1,2})?", text)
            or abs(float(text)) > most
        ):
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
    """The buildings of an .osm file on a terrain: ways and multipolygons with the tag `building`,
    as prisms.

    `geo_origin`: latitude, longitude (degrees) and altitude (m) of the map's x = y = z = 0, by
    default the terrain's. A prism is as high as `height` says, else LEVEL for each of
    `building:levels`, else `default_height` (m), counted from the lowest ground below its outline;
    `min_height` or `building:min_level` are where it begins above that. `area`: only buildings
    whose middle lies there.

    Raises ConfigError for what is no such file or holds no building that can be placed.
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
    found = _OsmElements(str(path))
    found.read(read_limited(path, "file", MAX_FILE_BYTES))
    objects: list[WorldObject] = []
    left_out: Counter[str] = Counter()
    first_outside = ""
    for name, tags, node_rings in _buildings(found):
        if not node_rings:
            left_out["incomplete in the file"] += 1
            continue
        rings = [_places([found.nodes[node] for node in ring], origin) for ring in node_rings]
        corners = np.concatenate(rings)
        x, y = (0.5 * (corners.min(axis=0) + corners.max(axis=0))).tolist()
        if not (x_min <= x <= x_max and y_min <= y <= y_max):
            left_out["outside the area"] += 1
            first_outside = first_outside or f", the first one at x {x:.0f}, y {y:.0f} m"
            continue
        made = _prism(name, rings, _bottom_and_top(tags, default_height), terrain)
        if made is None:
            left_out["too thin or too detailed"] += 1
            continue
        objects.append(made)
        if len(objects) > MAX_OBJECTS:
            raise ConfigError(f"{path}: more than {MAX_OBJECTS:,} buildings: take a smaller area")
    if not objects:
        counts = ", ".join(f"{count} {why}" for why, count in left_out.items()) or "none at all"
        raise ConfigError(
            f"{path}: no building within x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g} m: {counts}{first_outside}"
        )
    return OsmImport(
        World(Path(path).stem, tuple(objects), terrain.name, terrain=terrain), dict(left_out)
    )


def _buildings(found: _OsmElements) -> Iterator[tuple[str, dict[str, str], list[list[int]]]]:
    """(name, tags, rings of node ids) of each; no rings where the file lacks some of it."""
    outlines: set[int] = set()
    """ways that a multipolygon is made of: the same building, where they have the tag too"""
    corners = 0
    for number, relation in found.relations.items():
        if _is_building(relation.tags) and relation.tags.get("type") == "multipolygon":
            outlines.update(relation.members)
            ways = [found.ways[way].members for way in relation.members if way in found.ways]
            complete = len(ways) == len(relation.members) <= MAX_WAYS
            corners += complete * (
                sum(map(len, ways)) + len(ways) ** 2
            )  # each way is looked for among all
            if corners > MAX_ELEMENTS:  # ways may be in many relations, and often in one
                raise ConfigError(
                    f"{found.name}: multipolygons of more than {MAX_ELEMENTS:,} corners"
                )
            yield f"relation_{number}", relation.tags, _closed(ways, found) if complete else []
    for number, way in found.ways.items():
        if _is_building(way.tags) and number not in outlines:
            yield f"way_{number}", way.tags, _closed([way.members], found)


def _is_building(tags: dict[str, str]) -> bool:
    return tags.get("building", "no") != "no" and tags.get("location") != "underground"


def _closed(ways: list[list[int]], found: _OsmElements) -> list[list[int]]:
    """Rings of ways in any order and direction, each node of a ring once; none where a piece is
    missing.
    """
    if not all(way and all(node in found.nodes for node in way) for way in ways):
        return []
    left = list(ways)
    rings = []
    while left:
        ring = list(left.pop())
        while ring[0] != ring[-1] or len(ring) == 1:
            index = next((k for k, way in enumerate(left) if ring[-1] in (way[0], way[-1])), None)
            if index is None:
                return []
            way = left.pop(index)
            ring += (way if way[0] == ring[-1] else way[::-1])[1:]
        rings.append(ring[:-1])
    return rings


def _places(nodes: list[tuple[float, float]], origin: tuple[float, float, float]) -> Floats:
    """(n, 2) x east, y north, m."""
    above = np.column_stack([np.array(nodes), np.full(len(nodes), origin[2])])
    return np.asarray(ned_to_enu(geodetic_to_ned(above, origin)), float)[:, :2]


def _bottom_and_top(tags: dict[str, str], default_height: float) -> tuple[float, float]:
    """m above the lowest ground; a bottom of 0 reaches into it."""
    levels = _metres(tags.get("building:levels", ""), LEVEL)
    top = _metres(tags.get("height", "")) or levels or default_height
    bottom = (
        _metres(tags.get("min_height", ""))
        or _metres(tags.get("building:min_level", ""), LEVEL)
        or 0.0
    )
    return (bottom if bottom < top else 0.0), top


def _metres(text: str, unit: float = 1.0) -> float | None:
    """`12`, `12.5 m` or, with feet and inches, `7'4"`; None for what is nothing of that or no
    height.
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
    """A building along its longest wall, in the middle of its outline; None where it has no area."""
    walls = np.concatenate([np.roll(ring, -1, axis=0) - ring for ring in rings])
    along = walls[int(np.hypot(*walls.T).argmax())]
    yaw = round(math.degrees(math.atan2(along[1], along[0])), 2) % 180.0
    c = math.cos(math.radians(yaw))
    s = math.sin(math.radians(yaw))
    to_world = np.array([[c, s], [-s, c]])  # for rows; its transpose leads back
    turned = np.concatenate(rings) @ to_world.T
    middle = 0.5 * (turned.min(axis=0) + turned.max(axis=0))
    x, y = np.round(middle @ to_world, 2).tolist()
    pieces = convex_pieces([(ring - (x, y)) @ to_world.T for ring in rings])
    ground = np.asarray(terrain.altitude(*np.concatenate(rings).T)).min() - terrain.altitude(x, y)
    bottom, top = span
    low = round(float(ground + (bottom or -FOUNDATION)), 2)
    high = round(float(ground + top), 2)
    parts = []
    for piece in pieces:
        try:
            parts.append(
                hull_part(
                    [(*corner, z) for corner in np.round(piece, 4).tolist() for z in (low, high)]
                )
            )
        except ShapeError:  # thinner than any wall
            continue
    if not parts:
        return None
    model = Model(name, tuple(parts), CLASSES.index("building"), COLOR)
    return WorldObject(model, x, y, math.radians(yaw))
