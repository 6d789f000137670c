# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Collision shape of each vehicle, by its type and scale.

`shape_file` reads the table from a file.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rfly_collision.shapes.shape import Box, Capsule, ConvexHull, Shape, Sphere
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ConfigError

CLASSES = 100_000
"""Modulus of vehicleType for its class: 100150 and 200150 are looks of class 150."""

Range = tuple[int, int]


@dataclass(frozen=True, eq=False)
class VehicleShape:
    """Shape of a kind of vehicle. Metres, body axes FLU, from the vehicle's origin."""

    name: str
    shape: Shape
    """Shape of the whole vehicle, wheels and legs included."""
    centre_height: float = 0.0
    """Height of the origin above the ground that the vehicle stands on, m."""
    ground_clearance: float = 0.0
    """Height above that ground at which contacts begin, m.

    It applies to boxes. Wheels and feet never touch anything.
    """
    upright: bool = False
    """True if the vehicle stays upright on slopes when it is kept on the ground."""

    def __post_init__(self) -> None:
        if not self.ground_clearance:
            return
        if not isinstance(self.shape, Box):
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
    def touching(self) -> Shape:
        """The part that can touch something: all, or the box from `ground_clearance` up."""
        if not isinstance(self.shape, Box) or self.clear_bottom <= self.low[2]:
            return self.shape
        low = self.low
        high = self.high
        low[2] = self.clear_bottom
        return box_between(low, high)


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

    def touching(self, index: Ints, scale: ArrayLike) -> tuple[tuple[Shape, ...], Ints]:
        """Return the different shapes of n vehicles, and the index (n,) of each vehicle's shape.

        `index` (n,) comes from `index_of`; `scale` (n, 3) are factors along the body axes.
        """
        factors = np.asarray(scale, float).reshape(len(index), 3)
        rows = np.column_stack([index.astype(float), factors])
        different, which = np.unique(rows, axis=0, return_inverse=True)
        shapes = tuple(scaled(self[int(row[0])].touching, row[1:]) for row in different)
        return shapes, which.reshape(-1)

    def _look_up(self, types: Ints) -> Ints:
        ranges: tuple[Ints, ...] = self._ranges  # type: ignore[attr-defined]
        first, last, index = ranges
        if not len(first):
            return np.full(types.shape, len(self.shapes))
        row = np.maximum(np.searchsorted(first, types, side="right") - 1, 0)
        found = (first[row] <= types) & (types <= last[row])
        return np.where(found, index[row], len(self.shapes))


def scaled(shape: Shape, factors: ArrayLike) -> Shape:
    """Return a shape stretched along the body axes by three factors, whose signs do not count.

    A sphere stays a sphere, large enough for the largest factor. A capsule stretches along its
    axis, and its radius by the larger of the other two factors.
    """
    k = np.abs(np.asarray(factors, float))
    if (k == 1).all():
        return shape
    offset = _triple(np.asarray(shape.offset, float) * k)
    if isinstance(shape, Box):
        return Box(_triple(np.asarray(shape.size, float) * k), offset)
    if isinstance(shape, Sphere):
        return Sphere(float(shape.radius * k.max()), offset)
    if isinstance(shape, Capsule):
        return Capsule(float(shape.radius * k[1:].max()), float(shape.length * k[0]), offset)
    return dataclasses.replace(shape, vertices=np.asarray(shape.vertices, float) * k, offset=offset)


def shape_bounds(shape: Shape) -> tuple[Floats, Floats]:
    """(low, high), (3,) each: the box along the body axes around a shape."""
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


def parse_types(types: Sequence[int | str], shape: int) -> list[tuple[Range, int]]:
    """Return `[150, "1-9"]` as ((150, 150), shape), ((1, 9), shape).

    Raises ConfigError for a range that runs backwards.
    """
    found = []
    for each in types:
        first, _, last = str(each).partition("-")
        pair = (int(first), int(last or first))
        if pair[1] < pair[0]:
            raise ConfigError(f"{each!r} runs backwards", key="types")
        found.append((pair, shape))
    return found


def repeated_type(types: Sequence[tuple[Range, int]]) -> int | None:
    """Return the first type that is in two ranges; None if no two overlap."""
    pairs = itertools.pairwise(sorted(types))
    return next((after[0] for (before, _), (after, _) in pairs if after[0] <= before[1]), None)


def make_shape(shape: Mapping[str, object], centre_height: float) -> Shape:
    """Return the shape of a checked description.

    Without an offset it stands `centre_height` below the vehicle's origin.
    """
    values = {key: value for key, value in shape.items() if key != "type"}
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


def _triple(values: ArrayLike | object) -> tuple[float, float, float]:
    x, y, z = np.asarray(values, float).tolist()
    return x, y, z
