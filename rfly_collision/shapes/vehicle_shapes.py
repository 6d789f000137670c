# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Collision shape of each vehicle, by its type and scale.

The table is a YAML file, checked against `data/schemas/shapes.schema.json`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfly_collision.shapes.shape import Box, Capsule, ConvexHull, Shape, Sphere
from rfly_common.arrays import Floats, Ints
from rfly_common.config.documents import (
    check_schema,
    load_schema,
    parse_mapping,
    read_config,
    shipped_names,
)
from rfly_common.config.marked_yaml import Document
from rfly_common.config.vehicle_models import STYLE, type_number
from rfly_common.errors import ConfigError, Key
from rfly_common.files import StrPath

CLASSES = STYLE
"""Modulus of vehicleType for its class: 100050 and 10000050 are looks of class 50."""

Range = tuple[int, int]
Form: TypeAlias = Shape | tuple[Shape, ...]
"""One convex shape, or the convex parts of a frame that has openings."""

MAX_FILE_BYTES = 10_000_000
DEFAULT_SET = "rflysim3d"


@dataclass(frozen=True, eq=False)
class VehicleShape:
    """Shape of a kind of vehicle. Metres, body axes FLU, from the vehicle's origin."""

    name: str
    shape: Form
    """Shape of the whole vehicle, wheels and legs included."""
    centre_height: float = 0.0
    """Height of the origin above the ground that the vehicle stands on, m."""
    ground_clearance: float = 0.0
    """Height above that ground at which contacts begin, m.

    It applies to boxes, also to those among several parts. Wheels and feet never touch anything.
    """
    upright: bool = False
    """True if the vehicle stays upright on slopes when it is kept on the ground."""

    def __post_init__(self) -> None:
        if not self.ground_clearance:
            return
        if not any(isinstance(part, Box) for part in parts_of(self.shape)):
            raise ConfigError(
                f"{self.name} is no box, and only a box can begin above its wheels",
                key="ground_clearance",
            )
        if self.clear_bottom >= self.high[2]:
            raise ConfigError(
                f"{self.ground_clearance} m leaves nothing of the box of {self.name}",
                key="ground_clearance",
            )

    @property
    def low(self) -> Floats:
        """(3,) lowest corner of the box around the whole vehicle."""
        return shape_bounds(self.shape)[0]

    @property
    def high(self) -> Floats:
        """(3,) highest corner of the box around the whole vehicle."""
        return shape_bounds(self.shape)[1]

    @property
    def clear_bottom(self) -> float:
        """z at which what can touch begins."""
        return max(float(self.low[2]), self.ground_clearance - self.centre_height)

    @property
    def touching(self) -> Form:
        """What can touch something: all, but boxes only from `ground_clearance` up."""
        if self.clear_bottom <= self.low[2]:
            return self.shape
        cut = tuple(_cut_below(part, self.clear_bottom) for part in parts_of(self.shape))
        return cut if isinstance(self.shape, tuple) else cut[0]


class TypeShapes(NamedTuple):
    """Bodies of n vehicles: one for each, or several for one that has several parts."""

    shapes: tuple[Any, ...]
    """Different shapes: each a Shape, or a TriangleMesh for rays."""
    shape_index: Ints
    """Shape of each body, (m,)."""
    row: Ints
    """Vehicle of each body, (m,), 0 … n - 1, ascending."""


NO_SHAPES = TypeShapes((), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class VehicleShapes:
    """VehicleShapes by vehicleType. Where neither a type nor its class is listed, `default` serves.

    Raises ConfigError where two ranges of `types` overlap.
    """

    shapes: tuple[VehicleShape, ...]
    types: tuple[tuple[Range, int], ...]
    """Ranges ((first, last), index into shapes), both ends included."""
    default: VehicleShape = field(
        default_factory=lambda: VehicleShape("box", Box((1.0, 1.0, 1.0)), 0.5)
    )
    name: str = ""

    def __post_init__(self) -> None:
        repeated = repeated_type(self.types)
        if repeated is not None:
            raise ConfigError(f"{repeated} is listed twice", key="types")
        ranges = sorted(self.types)
        first = np.array([first for (first, _), _ in ranges], np.int64)
        last = np.array([last for (_, last), _ in ranges], np.int64)
        object.__setattr__(
            self,
            "_ranges",
            (first, last, np.array([index for _, index in ranges], np.int64)),
        )

    def __getitem__(self, index: int) -> VehicleShape:
        return self.default if index == len(self.shapes) else self.shapes[index]

    def index_of(self, vehicle_type: ArrayLike) -> Ints:
        """(n,) which of `shapes` each vehicleType has; len(shapes) where the default serves."""
        types = np.asarray(vehicle_type, np.int64)
        exact = self._look_up(types)
        return np.where(exact < len(self.shapes), exact, self._look_up(types % CLASSES))

    def column(self, name: str) -> Floats:
        """Return a number (or three) of each of `shapes` and then of the default.

        Examples are `centre_height` and `low`.
        """
        return np.array([getattr(s, name) for s in (*self.shapes, self.default)], float)

    @property
    def footprint(self) -> Floats:
        """(shapes + 1, 2) length and width of each of `shapes` and then of the default."""
        return np.array([(s.high - s.low)[:2] for s in (*self.shapes, self.default)])

    def touching(self, index: Ints, scale: ArrayLike) -> TypeShapes:
        """Return the bodies of n vehicles.

        `index` (n,) comes from `index_of`; `scale` (n, 3) are factors along the body axes.
        """
        factors = np.asarray(scale, float).reshape(len(index), 3)
        kinds = np.column_stack([index.astype(float), factors])
        different, which = np.unique(kinds, axis=0, return_inverse=True)
        which = which.reshape(-1)
        forms = [parts_of(scaled(self[int(kind[0])].touching, kind[1:])) for kind in different]

        # each vehicle has as many bodies as its form has parts
        count = np.array([len(form) for form in forms], np.int64)
        first = np.cumsum(count) - count
        bodies = count[which]
        row = np.repeat(np.arange(len(index)), bodies)
        part = np.arange(len(row)) - np.repeat(np.cumsum(bodies) - bodies, bodies)
        shapes = tuple(itertools.chain.from_iterable(forms))
        return TypeShapes(shapes, first[which[row]] + part, row)

    def _look_up(self, types: Ints) -> Ints:
        ranges: tuple[Ints, ...] = self._ranges  # type: ignore[attr-defined]
        first, last, index = ranges
        if not len(first):
            return np.full(types.shape, len(self.shapes))
        row = np.maximum(np.searchsorted(first, types, side="right") - 1, 0)
        found = (first[row] <= types) & (types <= last[row])
        return np.where(found, index[row], len(self.shapes))


def parts_of(form: Form) -> tuple[Shape, ...]:
    """Return the convex shapes of a form."""
    return form if isinstance(form, tuple) else (form,)


def scaled(form: Form, factors: ArrayLike) -> Form:
    """Return a form stretched along the body axes by three factors, whose signs do not count.

    A sphere stays a sphere, large enough for the largest factor. A capsule stretches along its
    axis, and its radius by the larger of the other two factors.
    """
    k = np.abs(np.asarray(factors, float))
    if (k == 1).all():
        return form
    stretched = tuple(_stretched(part, k) for part in parts_of(form))
    return stretched if isinstance(form, tuple) else stretched[0]


def _stretched(shape: Shape, k: Floats) -> Shape:
    """Return a shape stretched by three positive factors."""
    offset = _triple(np.asarray(shape.offset, float) * k)
    if isinstance(shape, Box):
        return Box(_triple(np.asarray(shape.size, float) * k), offset)
    if isinstance(shape, Sphere):
        return Sphere(float(shape.radius * k.max()), offset)
    if isinstance(shape, Capsule):
        return Capsule(float(shape.radius * k[1:].max()), float(shape.length * k[0]), offset)
    return dataclasses.replace(shape, vertices=np.asarray(shape.vertices, float) * k, offset=offset)


def shape_bounds(form: Form) -> tuple[Floats, Floats]:
    """(low, high), (3,) each: the box along the body axes around a form."""
    low, high = zip(*(_bounds(part) for part in parts_of(form)), strict=True)
    return np.min(low, axis=0), np.max(high, axis=0)


def _bounds(shape: Shape) -> tuple[Floats, Floats]:
    """Return the lowest and the highest corner of the box around a shape."""
    offset = np.asarray(shape.offset, float)
    if isinstance(shape, ConvexHull):
        vertices = np.asarray(shape.vertices, float)
        return vertices.min(axis=0) + offset, vertices.max(axis=0) + offset
    if isinstance(shape, Box):
        half = np.asarray(shape.size, float) / 2
    elif isinstance(shape, Capsule):
        half = np.array([shape.length / 2 + shape.radius, shape.radius, shape.radius])
    else:
        half = np.full(3, float(shape.radius))
    return offset - half, offset + half


def box_between(low: ArrayLike, high: ArrayLike) -> Box:
    """Return the box with these two corners, (3,) each."""
    below = np.asarray(low, float)
    above = np.asarray(high, float)
    return Box(_triple(above - below), _triple((above + below) / 2))


def _cut_below(shape: Shape, bottom: float) -> Shape:
    """Return a box without what lies below a height; other shapes stay as they are."""
    low, high = _bounds(shape)
    if not isinstance(shape, Box) or low[2] >= bottom:
        return shape
    low[2] = bottom
    return box_between(low, high)


def parse_types(types: Sequence[int | str], shape: int) -> list[tuple[Range, int]]:
    """Return `[150, "1-9", person]` as ((150, 150), shape), ((1, 9), shape), ((30, 30), shape).

    Raises ConfigError for a range that runs backwards and for an unknown name.
    """
    found = []
    for each in types:
        first, is_range, last = str(each).partition("-")
        if is_range:
            pair = (int(first), int(last))
        else:
            try:
                number = type_number(each)
            except ConfigError as error:
                raise error.inside("types") from None
            pair = (number, number)
        if pair[1] < pair[0]:
            raise ConfigError(f"{each!r} runs backwards", key="types")
        found.append((pair, shape))
    return found


def repeated_type(types: Sequence[tuple[Range, int]]) -> int | None:
    """Return the first type that is in two ranges; None if no two overlap."""
    pairs = itertools.pairwise(sorted(types))
    return next((after[0] for (before, _), (after, _) in pairs if after[0] <= before[1]), None)


def make_shape(shape: Mapping[str, object], centre_height: float) -> Form:
    """Return the form of a checked description.

    Without an offset it stands `centre_height` below the vehicle's origin. The origin of a frame is
    the middle of its opening.
    """
    values = {key: value for key, value in shape.items() if key != "type"}
    if shape["type"] == "frame":
        return frame_on_post(centre_height=centre_height, **values)  # type: ignore[arg-type]

    kind = {"box": Box, "sphere": Sphere, "capsule": Capsule, "hull": ConvexHull}[
        str(shape["type"])
    ]
    made: Shape = kind(
        **{key: _triple(v) if key in ("size", "offset") else v for key, v in values.items()}
    )
    if "offset" in shape or isinstance(made, ConvexHull):
        return made
    height = float(shape_bounds(made)[1][2])
    return dataclasses.replace(made, offset=(0.0, 0.0, height - centre_height))


def frame_on_post(
    opening: float,
    bar: float,
    sides: int,
    centre_height: float,
    hoops_deg: Sequence[float] = (0.0,),
) -> tuple[Shape, ...]:
    """Return the parts of a frame to fly through: hoops around the origin, and a post below them.

    A hoop is a regular polygon of `sides` sides about body x, with a flat one below. `opening` is
    the radius of the circle that fits into it, and `bar` the thickness of the sides, m. `hoops_deg`
    has the angle about z of each hoop. The post reaches from the lowest side
    to the ground, `centre_height` below the origin.
    """
    half = math.pi / sides
    angles = half * (2 * np.arange(sides + 1) + 1)
    circle = np.column_stack([np.cos(angles), np.sin(angles)]) / math.cos(half)
    inner = opening * circle
    outer = (opening + bar) * circle

    parts: list[Shape] = []
    for turn in np.radians(hoops_deg).tolist():
        along = np.array([math.cos(turn), math.sin(turn), 0.0])
        across = np.array([[-math.sin(turn), math.cos(turn), 0.0], [0.0, 0.0, 1.0]])
        for k in range(int(sides)):  # 16.0 is a whole number in a file, too
            side = np.concatenate([inner[k : k + 2], outer[k : k + 2]]) @ across
            corners = np.concatenate([side - bar / 2 * along, side + bar / 2 * along])
            parts.append(ConvexHull.of_corners(corners))

    if centre_height > opening + bar:
        low = (-bar / 2, -bar / 2, -centre_height)
        parts.append(box_between(low, (bar / 2, bar / 2, -opening - bar)))
    return tuple(parts)


def _triple(values: ArrayLike | object) -> tuple[float, float, float]:
    x, y, z = np.asarray(values, float).tolist()
    return x, y, z


def shipped_shapes() -> list[str]:
    """Return the names of the sets that come with the package."""
    return shipped_names("rfly_collision", "shapes")


def load_shapes(name_or_path: StrPath = DEFAULT_SET) -> VehicleShapes:
    """Return the shapes of a file, or of the shipped set of that name.

    Raises ConfigError that names file, line, key and what is allowed.
    """
    data, file, _ = read_config("shapes", "rfly_collision", "shapes", name_or_path, MAX_FILE_BYTES)
    return parse_shapes(data, file, os.fspath(name_or_path))


def parse_shapes(data: bytes, file: str, name: str = "") -> VehicleShapes:
    """Return the shapes of a file's content; errors call it `file`."""
    document = parse_mapping(data, file, "version and vehicles")
    check_schema(document, load_schema("rfly_collision", "shapes"))
    entries: list[dict[str, Any]] = document.value["vehicles"]

    shapes = tuple(
        _shape(document, entry, ("vehicles", index)) for index, entry in enumerate(entries)
    )

    types: list[tuple[Range, int]] = []
    for index, entry in enumerate(entries):
        path = ("vehicles", index)
        try:
            types += parse_types(entry["types"], index)
        except ConfigError as error:
            raise document.located(error, path) from None

        repeated = repeated_type(types)
        if repeated is not None:
            raise document.error((*path, "types"), f"type {repeated} is listed twice")

    default = document.value.get("default")
    if default is None:
        return VehicleShapes(shapes, tuple(types), name=name)
    return VehicleShapes(
        shapes, tuple(types), _shape(document, {"name": "box", **default}, ("default",)), name
    )


def _shape(document: Document, entry: dict[str, Any], path: tuple[Key, ...]) -> VehicleShape:
    """Return the shape of a kind of vehicle whose entry is at `path`."""
    centre_height = float(entry.get("centre_height", 0.0))
    try:
        shape = make_shape(entry["shape"], centre_height)
    except ValueError as error:
        raise document.error((*path, "shape"), str(error)) from None

    clearance = float(entry.get("ground_clearance", 0.0))
    upright = bool(entry.get("upright", False))
    try:
        return VehicleShape(entry["name"], shape, centre_height, clearance, upright)
    except ConfigError as error:
        raise document.located(error, path) from None
