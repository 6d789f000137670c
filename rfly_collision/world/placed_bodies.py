# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Placed objects as bodies of the scene: arrays in, shapes out. ENU, m."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np

from rfly_collision.shapes.shape import Box, ConvexHull, TriangleMesh
from rfly_collision.shapes.vehicle_shapes import TypeShapes, VehicleShapes
from rfly_common.arrays import Bools, Floats, Ints
from rfly_terrain.world.moving import MovingPath


@dataclass(frozen=True, eq=False)
class PlacedBodies:
    """n placed objects. What has no box has the shape of its type."""

    id: Ints
    """Ids >= 0, (n,)."""
    vehicle_type: Ints
    position: Floats
    """Positions of the models' origins, (n, 3), m."""
    orientation: Floats
    """Quaternions xyzw FLU -> ENU, (n, 4)."""
    scale: Floats
    """Factors of size, (n, 3)."""
    box_origin: Floats
    """Middle of the box, (n, 3), m."""
    box_half_extent: Floats
    """Half lengths of the box along the object's own axes, (n, 3), m; 0 0 0: unknown."""
    hulls: tuple[ConvexHull | TriangleMesh, ...] = ()
    """Different convex parts, or surfaces for rays, relative to the models' origins."""
    hull: Ints | None = None
    """Hull of each body, (n,), -1 for none; None if no body has one.

    An object of several parts takes several rows.
    """
    color: Floats | None = None
    """Red, green, blue, 0 … 1, (n, 3); NaN, or None for all: no colour of its own."""
    class_id: Ints | None = None
    """Class of each, an index of `rfly_terrain.world.models.CLASSES`, (n,); None: unknown."""
    paths: tuple[MovingPath | None, ...] = ()
    """Path of each, (n,), None for one that stands still; empty: all do.

    A moving object has a hull.
    """
    velocity: Floats | None = None
    """Velocities, (n, 3), m/s, at the time given to `at`."""

    def __len__(self) -> int:
        return len(self.id)

    def rows(
        self, row: Ints, hulls: tuple[ConvexHull | TriangleMesh, ...], hull: Ints
    ) -> PlacedBodies:
        """Return bodies of these objects.

        `row` (m,): the object of each; `hull` (m,): its hull, or -1 for its box.
        """
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
        """Return the chosen ones, (n,)."""
        row = np.flatnonzero(chosen)
        return self.rows(row, self.hulls, self.hull_index[row])

    @functools.cached_property
    def moves(self) -> Bools:
        """True for those that move along a path, (n,)."""
        return np.array([path is not None for path in self.paths] or [False] * len(self), np.bool_)

    def at(self, time: float) -> PlacedBodies:
        """Return all, with the moving ones where they are at a time, s of the nodes' clock."""
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
        """True for those whose size is known by a box, (n,)."""
        return np.all(self.box_half_extent > 0, axis=1) & (self.hull_index < 0)

    @property
    def hull_index(self) -> Ints:
        """Hull of each, or -1, (n,)."""
        return np.full(len(self), -1, np.int64) if self.hull is None else self.hull

    @property
    def has_shape(self) -> Bools:
        """True for those with a box or a hull of their own, (n,)."""
        return self.has_box | (self.hull_index >= 0)

    def shapes(self, table: VehicleShapes) -> TypeShapes:
        """Return the bodies of all objects, relative to `places`.

        An object has one; several where the shape of its type has several parts.
        """
        boxed = self.has_box
        hull = self.hull_index
        other = ~self.has_shape
        half, which_box = np.unique(self.box_half_extent[boxed], axis=0, return_inverse=True)
        boxes = tuple(Box((2 * x, 2 * y, 2 * z)) for x, y, z in half.tolist())
        typed = table.touching(table.index_of(self.vehicle_type[other]), self.scale[other])

        # a body for each box and hull, and those of types
        rows = [np.flatnonzero(boxed), np.flatnonzero(other)[typed.row], np.flatnonzero(hull >= 0)]
        index = [
            which_box.reshape(-1),
            len(boxes) + typed.shape_index,
            len(boxes) + len(typed.shapes) + hull[hull >= 0],
        ]
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        shapes = (*boxes, *typed.shapes, *self.hulls)
        return TypeShapes(shapes, np.concatenate(index)[order], row[order])

    @property
    def places(self) -> Floats:
        """Positions of the bodies, (n, 3): the middle of the box, else the model's origin."""
        return np.where(self.has_box[:, None], self.box_origin, self.position)


def no_objects() -> PlacedBodies:
    """Return placed objects of length 0."""
    ids = np.empty(0, np.int64)
    none = np.empty((0, 3))
    return PlacedBodies(ids, ids, none, np.empty((0, 4)), none, none, none)
