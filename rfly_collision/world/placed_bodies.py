"""Placed objects as bodies of the scene: arrays in, shapes out. ENU, m."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfly_collision.shapes.shape import Box, ConvexHull, TriangleMesh
from rfly_collision.shapes.vehicle_shapes import VehicleShapes
from rfly_common.arrays import Bools, Floats, Ints
from rfly_terrain.world.moving import MovingPath


@dataclass(frozen=True, eq=False)
class PlacedBodies:
    """n placed objects. What has no box has the shape of its type."""

    id: Ints
    """(n,) >= 0"""
    vehicle_type: Ints
    position: Floats
    """(n, 3) of the models' origins"""
    orientation: Floats
    """(n, 4) xyzw FLU -> ENU"""
    scale: Floats
    """(n, 3)"""
    box_origin: Floats
    """(n, 3) middle of the box"""
    box_half_extent: Floats
    """(n, 3) along the object's own axes; 0 0 0: not known"""
    hulls: tuple[ConvexHull | TriangleMesh, ...] = ()
    """different convex parts, or surfaces that rays meet, about the models' origins"""
    hull: Ints | None = None
    """(n,) which of them each is, -1 for none; None: nobody has one. An object of several parts is
    several rows
    """
    color: Floats | None = None
    """(n, 3) red, green, blue, 0 … 1; NaN, or None for all: none of its own"""
    class_id: Ints | None = None
    """(n,) what each is, a place in `rfly_terrain.world.models.CLASSES`; None: nobody knows"""
    paths: tuple[MovingPath | None, ...] = ()
    """n: along which each moves, None for one that stands still; empty: all do. What moves has a
    hull
    """
    velocity: Floats | None = None
    """(n, 3) m/s, at a time that `at` was asked for"""

    def __len__(self) -> int:
        return len(self.id)

    def rows(
        self, row: Ints, hulls: tuple[ConvexHull | TriangleMesh, ...], hull: Ints
    ) -> PlacedBodies:
        """Bodies of these objects: (m,) of which each is, and which of the hulls, or -1: its box."""
        columns = (
            "id",
            "vehicle_type",
            "position",
            "orientation",
            "scale",
            "box_origin",
            "box_half_extent",
        )
        values = {name: getattr(self, name)[row] for name in columns}
        color = None if self.color is None else self.color[row]
        class_id = None if self.class_id is None else self.class_id[row]
        paths = tuple(self.paths[k] for k in row.tolist()) if self.paths else ()
        return PlacedBodies(
            **values,
            hulls=hulls,
            hull=hull,
            color=color,
            class_id=class_id,
            paths=paths,
        )

    def select(self, chosen: Bools) -> PlacedBodies:
        """Some of them, (n,) of which."""
        row = np.flatnonzero(chosen)
        return self.rows(row, self.hulls, self.hull_index[row])

    @functools.cached_property
    def moves(self) -> Bools:
        """(n,) which go along a path."""
        return np.array([path is not None for path in self.paths] or [False] * len(self), np.bool_)

    def at(self, time: float) -> PlacedBodies:
        """All, and those that move where they are at a time, s of the nodes' clock."""
        position = self.position.copy()
        orientation = self.orientation.copy()
        velocity = np.zeros((len(self), 3))
        for row, path in enumerate(self.paths):
            if path is not None:
                position[row], yaw, velocity[row] = path.at(time)
                orientation[row] = 0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)
        return dataclasses.replace(
            self, position=position, orientation=orientation, velocity=velocity
        )

    @property
    def has_box(self) -> Bools:
        """(n,) of which a size is known."""
        return np.all(self.box_half_extent > 0, axis=1) & (self.hull_index < 0)

    @property
    def hull_index(self) -> Ints:
        """(n,) which of the hulls each is, or -1."""
        return np.full(len(self), -1, np.int64) if self.hull is None else self.hull

    @property
    def has_shape(self) -> Bools:
        """(n,) which are told apart from their types' shapes: by a box or a hull."""
        return self.has_box | (self.hull_index >= 0)

    def shapes(self, table: VehicleShapes) -> tuple[tuple[Any, ...], Ints]:
        """The different shapes, and (n,) which of them each object has, about `places`."""
        boxed = self.has_box
        hull = self.hull_index
        other = ~self.has_shape
        half, which_box = np.unique(self.box_half_extent[boxed], axis=0, return_inverse=True)
        boxes = tuple(Box((2 * x, 2 * y, 2 * z)) for x, y, z in half.tolist())
        others, which_other = table.touching(
            table.index_of(self.vehicle_type[other]), self.scale[other]
        )
        index = np.empty(len(self), np.int64)
        index[boxed] = which_box.reshape(-1)
        index[other] = len(boxes) + which_other
        index[hull >= 0] = len(boxes) + len(others) + hull[hull >= 0]
        return (*boxes, *others, *self.hulls), index

    @property
    def places(self) -> Floats:
        """(n, 3) of the bodies: the middle of the box, else the model's origin."""
        return np.where(self.has_box[:, None], self.box_origin, self.position)


def no_objects() -> PlacedBodies:
    """Nothing is placed."""
    ids = np.empty(0, np.int64)
    none = np.empty((0, 3))
    return PlacedBodies(ids, ids, none, np.empty((0, 4)), none, none, none)
