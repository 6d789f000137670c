"""Solids: what stands on a terrain, as convex parts in flat arrays. Immutable."""

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

    Raises ValueError for shapes that disagree and for what is not finite.
    """

    vertices: Floats
    """(v, 3) x east, y north, z up, of one solid after the other"""
    first: Ints
    """(n + 1,) where each solid's vertices begin"""

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
        """Seen from above."""
        z = self.vertices[:, 2]
        starts = self.first[:-1]
        if not len(self):
            return outlines_around(np.empty((0, 2)), self.first, np.empty(0), np.empty(0))
        bottom = np.minimum.reduceat(z, starts)
        top = np.maximum.reduceat(z, starts)
        return outlines_around(self.vertices[:, :2], self.first, bottom, top)


class ObjectBoxes(Solids):
    """n boxes in ENU metres, in any attitude. Raises ValueError for shapes that differ and what is
    not finite.
    """

    centre: Floats
    """(n, 3) m: x east, y north, z up"""
    half_extent: Floats
    """(n, 3) m: half the box along its own axes; 0 0 0: the size is not known, and the object is a
    point
    """
    orientation: Floats
    """(n, 4) unit quaternions x y z w: the box's axes into ENU"""

    def __init__(
        self, centre: ArrayLike, half_extent: ArrayLike, orientation: ArrayLike | None = None
    ) -> None:
        """`orientation` None: all stand along the axes."""
        places = checked_rows("centre", centre, 3)
        turned = (
            np.tile((0.0, 0.0, 0.0, 1.0), (len(places), 1)) if orientation is None else orientation
        )
        object.__setattr__(self, "centre", places)
        object.__setattr__(self, "half_extent", checked_rows("half_extent", half_extent, 3))
        object.__setattr__(self, "orientation", checked_rows("orientation", turned, 4))
        for name in ("half_extent", "orientation"):
            if len(getattr(self, name)) != len(places):
                raise ValueError(f"{name}: {len(getattr(self, name))} for {len(places)} centres")
        if (self.half_extent < 0).any():
            raise ValueError(f"half_extent: {self.half_extent.min():g}, expected at least 0")
        corners = (
            quat_rotate(self.orientation[:, None], _BOX * self.half_extent[:, None])
            + places[:, None]
        )
        super().__init__(corners.reshape(-1, 3), 8 * np.arange(len(places) + 1))


def joined(parts: list[Solids]) -> Solids:
    """All solids of several."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    first = [
        np.zeros(1, np.int64),
        *(part.first[1:] + start for part, start in zip(parts, starts, strict=False)),
    ]
    return Solids(
        np.concatenate([np.empty((0, 3)), *(part.vertices for part in parts)]),
        np.concatenate(first),
    )


def checked_rows(name: str, values: ArrayLike, width: int) -> Floats:
    """(n, width) finite numbers, read-only. ValueError that begins with the name."""
    array = (
        np.array(values, np.float64).reshape(-1, width)
        if np.size(values) == 0
        else np.array(values, np.float64)
    )
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name}: expected the shape (n, {width}), got {array.shape}")
    finite_array(name, array, error=ValueError)
    array.flags.writeable = False
    return array
