# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Solids: the objects on a terrain as convex parts in flat arrays. Immutable."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import finite_array
from rfly_common.frames import quat_rotate
from rfly_terrain.world.outlines import Outlines, outlines_around

_BOX = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


@dataclass(frozen=True, eq=False)
class Solids:
    """Convex solids, each the hull of its vertices, in ENU (m); several may be parts of one object.

    Raises ValueError for shapes that disagree and numbers that are not finite.
    """

    vertices: Floats
    """Vertices, (v, 3): x east, y north, z up, m, solid after solid."""
    first: Ints
    """Place of each solid's first vertex, (n + 1,)."""

    def __post_init__(self) -> None:
        vertices = checked_rows("vertices", self.vertices, 3)
        first = np.array(self.first, np.int64)

        if first.ndim != 1 or not len(first) or first[0] != 0 or first[-1] != len(vertices):
            raise ValueError(
                f"first: expected places from 0 to {len(vertices)}, the number of vertices"
            )
        if (np.diff(first) < 1).any():
            raise ValueError("first: expected rising places: each solid has a vertex or more")

        first.flags.writeable = False
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "first", first)

    def __len__(self) -> int:
        return len(self.first) - 1

    @functools.cached_property
    def outlines(self) -> Outlines:
        """Outlines seen from above."""
        z = self.vertices[:, 2]
        starts = self.first[:-1]
        if not len(self):
            return outlines_around(np.empty((0, 2)), self.first, np.empty(0), np.empty(0))
        bottom = np.minimum.reduceat(z, starts)
        top = np.maximum.reduceat(z, starts)
        return outlines_around(self.vertices[:, :2], self.first, bottom, top)


class ObjectBoxes(Solids):
    """Boxes in ENU metres, in any attitude.

    Raises ValueError for shapes that differ and numbers that are not finite.
    """

    centre: Floats
    """Centres, (n, 3): x east, y north, z up, m."""
    half_extent: Floats
    """Halves of the boxes along their own axes, (n, 3), m; 0 0 0: the size is unknown, and the
    object is a point.
    """
    orientation: Floats
    """Unit quaternions x y z w of the boxes' axes into ENU, (n, 4)."""

    def __init__(
        self, centre: ArrayLike, half_extent: ArrayLike, orientation: ArrayLike | None = None
    ) -> None:
        """Make boxes; `orientation` None: all are parallel to the axes."""
        places = checked_rows("centre", centre, 3)
        if orientation is None:
            orientation = np.tile((0.0, 0.0, 0.0, 1.0), (len(places), 1))
        object.__setattr__(self, "centre", places)
        object.__setattr__(self, "half_extent", checked_rows("half_extent", half_extent, 3))
        object.__setattr__(self, "orientation", checked_rows("orientation", orientation, 4))

        for name in ("half_extent", "orientation"):
            if len(getattr(self, name)) != len(places):
                raise ValueError(f"{name}: {len(getattr(self, name))} for {len(places)} centres")
        if (self.half_extent < 0).any():
            raise ValueError(f"half_extent: {self.half_extent.min():g}, expected at least 0")

        offsets = quat_rotate(self.orientation[:, None], _BOX * self.half_extent[:, None])
        corners = offsets + places[:, None]
        super().__init__(corners.reshape(-1, 3), 8 * np.arange(len(places) + 1))


def joined(parts: list[Solids]) -> Solids:
    """Return all solids of several."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    first = [part.first[1:] + start for part, start in zip(parts, starts, strict=False)]
    vertices = [part.vertices for part in parts]
    return Solids(
        np.concatenate([np.empty((0, 3)), *vertices]),
        np.concatenate([np.zeros(1, np.int64), *first]),
    )


def checked_rows(name: str, values: ArrayLike, width: int) -> Floats:
    """Return finite numbers, (n, width), read-only. Raises ValueError that begins with the name."""
    array = np.array(values, np.float64)
    if array.size == 0:
        array = array.reshape(-1, width)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name}: expected the shape (n, {width}), got {array.shape}")
    finite_array(name, array, error=ValueError)
    array.flags.writeable = False
    return array
