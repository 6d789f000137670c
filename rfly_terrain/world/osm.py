# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Buildings of an OpenStreetMap file as objects of a world.

osmium reads the file: XML as osm.org, Overpass and JOSM write it, packed too, or PBF. Outlines and
their parts are those of Relation:multipolygon and Simple_3D_Buildings at
https://wiki.openstreetmap.org.
"""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.documents import read_limited
from rfly_common.errors import ConfigError, ShapeError
from rfly_common.files import StrPath
from rfly_common.frames import ned_to_enu
from rfly_common.geodesy import geo_point, geodetic_to_ned
from rfly_common.imports import require
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world import osm_tags
from rfly_terrain.world.footprints import MAX_CORNERS, convex_pieces
from rfly_terrain.world.models import CLASSES, Color, Model, hull_part
from rfly_terrain.world.osm_tags import MAX_HEIGHT, Span, Tags
from rfly_terrain.world.populate import MAX_OBJECTS, Area
from rfly_terrain.world.world import World, WorldObject

MAX_FILE_BYTES = 100_000_000
MAX_UNPACKED_BYTES = 500_000_000
MAX_NODES = 1_000_000
"""Corners of all buildings, at most."""
DEFAULT_HEIGHT = 6.0
"""Height of a building without tags of height and levels, m."""
FOUNDATION = 0.5
"""Depth below the lowest ground under a building, m."""
UNCOVERED = 0.1
"""Share of an outline that stands beside the parts in it if they leave at least so much free."""
COLOR: Color = (190, 176, 158)
_ROLES = {"multipolygon": ("outer", "inner", ""), "building": ("outline",)}
"""Roles of the ways that bound an area, by the type of a relation."""
_OTHERS = {
    "highway": "roads and paths",
    "railway": "railways",
    "barrier": "walls, fences and other barriers",
    "power": "power lines and towers",
    "aerialway": "cableways",
    "man_made": "masts, chimneys and other structures",
    "natural": "trees and other natural features",
    "waterway": "rivers and canals",
}
"""Names of what is counted and not imported, by key."""
_OTHER_NODES = ("barrier", "power", "man_made", "natural")
"""Keys that are counted for nodes; those of roads there are crossings and signs."""
_UNPACK: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open}
"""Readers of packed files, by their first two bytes."""
_INCOMPLETE = "incomplete in the file, or with an outline that crosses itself"

# Overpass' `out geom`: the corners of a relation's ways, inside the relation
_MEMBER_WITH_CORNERS = re.compile(
    rb"<member\b([^<>]*[^<>/])>((?:\s*<nd\b[^<>]*/>)*\s*)</member>", re.ASCII
)
# an answer of Overpass that ran out of time or memory
_BROKEN_OFF = re.compile(rb"<remark>\s*(runtime error[^<]{0,150})")
_NO_VERSION = re.compile(rb"<osm\b(?![^<>]*\bversion)")
_IS_WAY = re.compile(rb"\btype\s*=\s*['\"]way['\"]")
_REFERENCE = re.compile(rb"\bref\s*=\s*['\"](-?\d+)['\"]")
# elements that were deleted in JOSM and not uploaded yet
_DELETED = re.compile(rb"<(way|relation)\b([^<>]*\baction\s*=\s*['\"]delete['\"][^<>]*)>")
_ID = re.compile(rb"\bid\s*=\s*['\"](-?\d+)['\"]")


class OsmImport(NamedTuple):
    """Result of `import_osm`."""

    world: World
    left_out: dict[str, int]
    """Number of buildings that are not in the world, by reason."""
    default_heights: int
    """Number of buildings that have the default height."""
    not_understood: tuple[str, ...]
    """Tags of heights that could not be used, as `way_5: height=high`, one for a building."""
    others: dict[str, int]
    """Number of other elements of the file, none of which is in the world, by kind."""


Corner = int | tuple[float, float]
"""A node's id, or latitude and longitude, degrees."""


@dataclass
class _Element:
    """A way, or a relation of ways, around a building or a part of one."""

    name: str
    tags: Tags
    ways: list[int]
    outer: list[int] = dataclasses.field(default_factory=list)
    """Those of a relation's ways that are not its courtyards."""


@dataclass
class _Building:
    """A building, or a part of one, and its area."""

    name: str
    tags: Tags
    area: Any
    """Polygons, x east, y north, m."""


class _OsmFile:
    """Buildings of a file: their tags, ways and nodes, and the number of everything else."""

    def __init__(self, path: StrPath) -> None:
        self.elements: list[_Element] = []
        self.ways: dict[int, list[Corner]] = {}
        self.outer_tags: dict[int, Tags] = {}
        """Tags of ways that are buildings themselves and bound a relation's building."""
        self.nodes: dict[int, tuple[float, float]] = {}
        """Latitude and longitude of each corner, degrees."""
        self.left_out: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self._osmium: Any = require("osmium", "a file of OpenStreetMap")

        data = _unpacked(path)
        kind = "pbf" if b"OSMHeader" in data[:64] else "osm"
        self._deleted = _deleted(data)
        with reader_errors(lambda text: ConfigError(f"{path}: cannot be read: {text}")):
            self._buffer = self._osmium.io.FileBuffer(_with_corners(data), kind)
            self._read_relations()
            self._read_ways()
            self._read_nodes()

    def _objects(self, kind: str, *filters: Any) -> Iterator[Any]:
        """Yield the objects of a kind that exist, each once."""
        entities = getattr(self._osmium.osm, kind.upper())
        processor = self._osmium.FileProcessor(self._buffer, entities)
        for each in filters:
            processor.with_filter(each)

        versions: dict[int, int] = {}
        for item in processor:
            is_first = item.id not in versions
            if 0 < item.version != versions.setdefault(item.id, item.version):
                raise ValueError(f"{kind} {item.id} is there in several versions, expected one")
            if is_first and item.visible and (kind, item.id) not in self._deleted:
                yield item

    def _read_relations(self) -> None:
        for relation in self._objects("relation"):
            tags = dict(relation.tags)
            if not self._is_above_ground(tags):
                continue
            roles = _ROLES.get(tags.get("type", ""), ())
            ways = [each for each in relation.members if each.type == "w" and each.role in roles]
            outer = [each.ref for each in ways if each.role != "inner"]
            if not roles:
                self.left_out["in a relation that is no multipolygon"] += 1
            elif outer or tags["type"] == "multipolygon":
                ids = [each.ref for each in ways]
                self.elements.append(_Element(f"relation_{relation.id}", tags, ids, outer))

    def _read_ways(self) -> None:
        members = {way for element in self.elements for way in element.ways}
        outer = {way for element in self.elements for way in element.outer}
        corners = 0
        for way in self._objects("way"):
            tags = dict(way.tags)
            is_building = self._is_above_ground(tags)
            if not (is_building or way.id in members):
                continue

            corners += len(way.nodes)
            if corners > MAX_NODES:
                raise ValueError(
                    f"buildings of more than {MAX_NODES:,} corners: take a smaller area"
                )
            self.ways[way.id] = [
                (each.lat, each.lon) if each.location.valid() else each.ref for each in way.nodes
            ]
            if is_building and way.id in outer:
                self.outer_tags[way.id] = tags
            elif is_building:
                self.elements.append(_Element(f"way_{way.id}", tags, [way.id]))

        # a way may bound many relations
        each = (len(self.ways.get(way, ())) for element in self.elements for way in element.ways)
        if sum(each) > MAX_NODES:
            raise ValueError(f"buildings of more than {MAX_NODES:,} corners: take a smaller area")

    def _read_nodes(self) -> None:
        filters = self._osmium.filter
        ids = {each for way in self.ways.values() for each in way if isinstance(each, int)}
        # osmium's filter takes no negative ids, as new nodes of JOSM have them
        chosen = [filters.IdFilter(ids)] if min(ids, default=0) >= 0 else []
        for node in self._objects("node", *chosen) if ids else ():
            if node.id in ids and node.location.valid():
                self.nodes[node.id] = (node.location.lat, node.location.lon)

        for node in self._objects("node", filters.KeyFilter("building", *_OTHER_NODES)):
            tags = dict(node.tags)
            if osm_tags.is_outline(tags):
                self.left_out["without an outline"] += 1
            else:
                self._count(tags, _OTHER_NODES)

    def _is_above_ground(self, tags: Tags) -> bool:
        """Return whether these are the tags of a building that stands; count everything else."""
        if not (osm_tags.is_outline(tags) or osm_tags.is_part(tags) or osm_tags.had_building(tags)):
            self._count(tags, _OTHERS)
            return False
        reason = osm_tags.absence(tags)
        self.left_out.update(filter(None, [reason]))
        return not reason

    def _count(self, tags: Tags, keys: Iterable[str]) -> None:
        """Count an element that is no building."""
        kind = next((_OTHERS[key] for key in keys if key in tags), None)
        self.others.update(filter(None, [kind]))


def import_osm(
    path: StrPath,
    terrain: HeightMap,
    *,
    geo_origin: Sequence[float] | None = None,
    area: Area | None = None,
    default_height: float = DEFAULT_HEIGHT,
) -> OsmImport:
    """Return the buildings of a file of OpenStreetMap on a terrain, as prisms.

    Buildings are ways and multipolygons with the tag `building` or `building:part`; parts replace
    the outline around them. `geo_origin`: latitude, longitude (degrees) and altitude (m) of the
    map's x = y = z = 0, by default the terrain's. Heights are those of the tags (`osm_tags.span`),
    else `default_height` (m), above the lowest ground below the outline. `area`: only buildings
    with their middle in it.

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
    file = _OsmFile(path)
    left_out = file.left_out
    objects: list[WorldObject] = []
    first_outside = ""
    default_heights = 0
    not_understood = []
    for building in _without_parts(_buildings(file, origin)):
        low_x, low_y, high_x, high_y = building.area.bounds
        x = 0.5 * (low_x + high_x)
        y = 0.5 * (low_y + high_y)
        if not (x_min <= x <= x_max and y_min <= y <= y_max):
            left_out["outside the area"] += 1
            first_outside = first_outside or f", the first one at x {x:.0f}, y {y:.0f} m"
            continue

        span = osm_tags.span(building.tags, default_height)
        prism = _prism(building, span, terrain)
        if prism is None:
            left_out["too thin or too detailed"] += 1
            continue
        default_heights += span.is_default
        if span.not_understood:
            not_understood.append(f"{building.name}: {span.not_understood}")
        objects.append(prism)
        if len(objects) > MAX_OBJECTS:
            raise ConfigError(f"{path}: more than {MAX_OBJECTS:,} buildings: take a smaller area")

    if not objects:
        counts = ", ".join(f"{count} {why}" for why, count in left_out.items()) or "none at all"
        raise ConfigError(
            f"{path}: no building within x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g} m: "
            f"{counts}{first_outside}"
        )
    name = Path(path).stem.removesuffix(".osm")
    world = World(name, tuple(objects), terrain.name, terrain=terrain)
    return OsmImport(
        world, dict(left_out), default_heights, tuple(not_understood), dict(file.others)
    )


def _unpacked(path: StrPath) -> bytes:
    """Return the content of a file, unpacked. Raise ConfigError if it is none of OpenStreetMap."""
    data = read_limited(path, "file", MAX_FILE_BYTES)
    unpack = _UNPACK.get(data[:2])
    if unpack:
        with reader_errors(lambda text: ConfigError(f"{path}: cannot be unpacked: {text}")):
            data = unpack(io.BytesIO(data)).read(MAX_UNPACKED_BYTES + 1)
    if len(data) > MAX_UNPACKED_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_UNPACKED_BYTES:,} bytes when it is unpacked")
    if data[:1] in (b"{", b"["):
        raise ConfigError(f"{path}: this is JSON; ask Overpass for XML: [out:xml]")
    remark = _BROKEN_OFF.search(data)
    if remark:
        text = remark[1].decode("utf-8", "replace")
        raise ConfigError(f"{path}: incomplete, Overpass broke off: {text}; ask again for less")
    return data


def _deleted(data: bytes) -> set[tuple[str, int]]:
    """Return kind and id of the elements that JOSM marks as deleted."""
    if b"action" not in data:
        return set()
    marked = ((match[1].decode(), _ID.search(match[2])) for match in _DELETED.finditer(data))
    return {(kind, int(number[1])) for kind, number in marked if number}


def _with_corners(data: bytes) -> bytes:
    """Return XML with each way that Overpass writes inside a relation as an element of its own.

    It gets a version, too, which osmium wants.
    """
    data = _NO_VERSION.sub(b'<osm version="0.6"', data, count=1)
    if b"</member>" not in data:
        return data
    ways: list[bytes] = []

    def lift(match: re.Match[bytes]) -> bytes:
        reference = _REFERENCE.search(match[1])
        if reference and _IS_WAY.search(match[1]):
            ways.append(b'<way id="%b">%b</way>' % (reference[1], match[2]))
        return b"<member%b/>" % match[1]

    lifted = _MEMBER_WITH_CORNERS.sub(lift, data)
    end = lifted.rfind(b"</osm>")
    return lifted[:end] + b"".join(ways) + lifted[end:] if end >= 0 else data


def _buildings(file: _OsmFile, origin: tuple[float, float, float]) -> list[_Building]:
    """Return the buildings and parts with their areas; those without one are counted."""
    found = []
    for element in file.elements:
        lines = [_line(file, way, origin) for way in element.ways]
        whole = _area(lines)
        if whole is None or whole.is_empty:
            reason = _INCOMPLETE if whole is None else "too thin or too detailed"
            file.left_out[reason] += 1
            continue

        # outer ways that are buildings themselves keep their own tags
        for way, line in zip(element.ways, lines, strict=True):
            own = _area([line]) if way in element.outer and way in file.outer_tags else None
            if own is not None:
                tags = {**element.tags, **file.outer_tags[way]}
                found.append(_Building(f"way_{way}", tags, _polygons(whole & own)))
                whole = _polygons(whole - own)
        found.append(_Building(element.name, element.tags, whole))
    return [building for building in found if not building.area.is_empty]


def _line(file: _OsmFile, way: int, origin: tuple[float, float, float]) -> Floats | None:
    """Return the corners of a way, x east, y north, m, (n, 2); None if one is missing."""
    corners = [
        file.nodes.get(each) if isinstance(each, int) else each for each in file.ways.get(way, [])
    ]
    known = [each for each in corners if each is not None]
    return _places(known, origin) if known and len(known) == len(corners) else None


def _area(lines: Sequence[Floats | None]) -> Any:
    """Return the area within an odd number of the rings of these lines, as polygons.

    Returns None if the lines do not make rings, or rings that cross, and no polygons if there are
    too many corners.
    """
    shapely = require("shapely", "a file of OpenStreetMap")
    known = [line for line in lines if line is not None]
    if not known or len(known) < len(lines):
        return None
    if sum(map(len, known)) > MAX_CORNERS:
        return shapely.MultiPolygon()

    # walls between an even number of rings are none
    pairs = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in known])
    pairs = np.sort(pairs.view([("x", float), ("y", float)]).reshape(-1, 2), axis=1)
    unique, count = np.unique(pairs, axis=0, return_counts=True)
    walls = unique[count % 2 == 1].view(float).reshape(-1, 2, 2)
    walls = walls[(walls[:, 0] != walls[:, 1]).any(axis=1)]
    faces, *rest = shapely.polygonize_full(shapely.linestrings(walls).tolist())
    if not all(each.is_empty for each in rest):
        return None

    inside = [face for face in faces.geoms if _is_within(face.representative_point(), walls)]
    area = shapely.MultiPolygon(inside)
    return area if area.is_valid else None


def _is_within(point: Any, walls: Floats) -> bool:
    """Return whether the line from a point to the east crosses an odd number of walls."""
    a = walls[:, 0]
    b = walls[:, 1]
    beside = (a[:, 1] > point.y) != (b[:, 1] > point.y)
    share = (point.y - a[beside, 1]) / (b[beside, 1] - a[beside, 1])
    x = a[beside, 0] + share * (b[beside, 0] - a[beside, 0])
    return int((x > point.x).sum()) % 2 == 1


def _polygons(geometry: Any) -> Any:
    """Return the polygons of a geometry, without its lines and points."""
    shapely = require("shapely", "a file of OpenStreetMap")
    parts = shapely.get_parts(shapely.get_parts([geometry]))
    return shapely.MultiPolygon(parts[shapely.get_dimensions(parts) == 2].tolist())


def _without_parts(buildings: list[_Building]) -> Iterator[_Building]:
    """Yield the buildings; parts replace the outline around them, and inherit its height."""
    shapely = require("shapely", "a file of OpenStreetMap")
    parts = [each for each in buildings if osm_tags.is_part(each.tags)]
    tree = shapely.STRtree([part.area.representative_point() for part in parts])
    for building in buildings:
        if osm_tags.is_part(building.tags):
            continue
        inside = [parts[index] for index in tree.query(building.area, "contains")]
        for part in inside:
            part.tags = osm_tags.with_heights(part.tags, building.tags)
        if not inside:
            yield building
            continue

        areas = [part.area for part in inside]
        if shapely.get_num_coordinates([building.area, *areas]).sum() > MAX_CORNERS:
            continue
        rest = _polygons(building.area - shapely.union_all(areas))
        if rest.area >= UNCOVERED * building.area.area:
            yield dataclasses.replace(building, area=rest)
    yield from parts


def _places(nodes: list[tuple[float, float]], origin: tuple[float, float, float]) -> Floats:
    """Return the places of nodes, x east, y north, m, (n, 2)."""
    above = np.column_stack([np.array(nodes), np.full(len(nodes), origin[2])])
    return np.asarray(ned_to_enu(geodetic_to_ned(above, origin)), float)[:, :2]


def _prism(building: _Building, span: Span, terrain: HeightMap) -> WorldObject | None:
    """Return a building along its longest wall, in the middle of its outline.

    Returns None if it has no area.
    """
    polygons = building.area.geoms
    outlines = [ring for each in polygons for ring in (each.exterior, *each.interiors)]
    rings = [np.asarray(ring.coords)[:-1] for ring in outlines]

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
    low = round(float(ground + (span.bottom or -FOUNDATION)), 2)
    high = round(float(ground + span.top), 2)

    parts = []
    for piece in pieces:
        corners = np.round(piece, 4).tolist()
        try:
            parts.append(hull_part([(*corner, z) for corner in corners for z in (low, high)]))
        except ShapeError:  # thinner than any wall
            continue
    if not parts:
        return None
    model = Model(building.name, tuple(parts), CLASSES.index("building"), COLOR)
    return WorldObject(model, x, y, math.radians(yaw))
