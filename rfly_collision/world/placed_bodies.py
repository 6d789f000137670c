"""Placed objects as bodies of the scene: arrays in, shapes out. ENU, m."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfly_collision.shapes.shape import Box, Shape
from rfly_collision.shapes.vehicle_shapes import VehicleShapes
from rfly_common.arrays import Bools, Floats, Ints


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

    def __len__(self) -> int:
        return len(self.id)

    @property
    def has_box(self) -> Bools:
        """(n,) of which a size is known."""
        known: Bools = np.all(self.box_half_extent > 0, axis=1)
        return known

    def shapes(self, table: VehicleShapes) -> tuple[tuple[Shape, ...], Ints]:
        """The different shapes, and (n,) which of them each object has, about `places`."""
        boxed = self.has_box
        half, which_box = np.unique(self.box_half_extent[boxed], axis=0, return_inverse=True)
        boxes = tuple(Box((2 * x, 2 * y, 2 * z)) for x, y, z in half.tolist())
        others, which_other = table.touching(table.index_of(self.vehicle_type[~boxed]), self.scale[~boxed])
        index = np.empty(len(self), np.int64)
        index[boxed] = which_box.reshape(-1)
        index[~boxed] = len(boxes) + which_other
        return (*boxes, *others), index

    @property
    def places(self) -> Floats:
        """(n, 3) of the bodies: the middle of the box, else the model's origin."""
        return np.where(self.has_box[:, None], self.box_origin, self.position)


def no_objects() -> PlacedBodies:
    """Nothing is placed."""
    ids, none = np.empty(0, np.int64), np.empty((0, 3))
    return PlacedBodies(ids, ids, none, np.empty((0, 4)), none, none, none)
