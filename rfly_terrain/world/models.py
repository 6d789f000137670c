# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Models of objects: convex parts with a colour and a class."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import ShapeError
from rfly_terrain.world.solids import checked_rows

CLASSES = (
    "unknown",
    "building",
    "vegetation",
    "rock",
    "wall",
    "pole",
    "vehicle",
    "person",
    "barrier",
    "bridge",
)
"""Classes of objects; the class id is the place in this list."""
Color = tuple[int, int, int]
"""Red, green, blue, 0 … 255."""
GREY: Color = (150, 150, 150)
SIDES = 16
"""Sides of the prism that stands for a cylinder. The cylinder lies within it; its radius is up to 2
% smaller.
"""
MAX_CORNERS = 256
"""Corners of a convex part, at most, as of a hull that collides."""
FLAT = 1e-6
"""Thickness over the largest extent, up to which a part has no volume."""


@dataclass(frozen=True, eq=False)
class Model:
    """Shape of an object: x forward, y left, z up from the ground below it, m."""

    name: str
    """Name."""
    parts: tuple[Floats, ...]
    """Corners of each convex part, (v, 3) each."""
    class_id: int = 0
    """Class, a place in CLASSES."""
    color: Color = GREY
    """Colour: red, green, blue, 0 … 255."""
    vehicle_type: int = 0
    """Vehicle type, RflySim3D's ClassID; 0: none of its models, a box of that size in `rfly view`.
    """
    surface: Floats | None = None
    """Corners of the triangles that rays meet, (t, 3, 3); None: the faces of the parts."""
    part_colors: tuple[Color, ...] = ()
    """Colours of the parts; empty: all have `color`."""

    def __post_init__(self) -> None:
        """Raise ValueError for colours that do not fit the parts.

        There must be as many colours as parts, and no surface.
        """
        fits = len(self.part_colors) == len(self.parts) and self.surface is None
        if self.part_colors and not fits:
            surface = "" if self.surface is None else ", and a surface"
            raise ValueError(
                f"{self.name}: {len(self.part_colors)} part_colors for {len(self.parts)} "
                f"parts{surface}"
            )

    @property
    def colors(self) -> tuple[Color, ...]:
        """Colours of the parts."""
        return self.part_colors or (self.color,) * len(self.parts)

    @property
    def seen_colors(self) -> tuple[Color, ...]:
        """Colours of `seen`."""
        return self.part_colors or (self.color,) * len(self.seen)

    @property
    def seen(self) -> tuple[Floats, ...]:
        """Surfaces that rays meet: the surface, or each part."""
        return self.parts if self.surface is None else (self.surface,)

    @functools.cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest x, y and z, (3,) each."""
        corners = np.concatenate(self.parts)
        return corners.min(axis=0), corners.max(axis=0)

    @functools.cached_property
    def is_box(self) -> bool:
        """True if it is one box along its own axes."""
        low, high = self.bounds
        corners = np.unique(self.parts[0], axis=0)
        is_single = self.surface is None and len(self.parts) == 1
        return (
            is_single and len(corners) == 8 and bool(((corners == low) | (corners == high)).all())
        )


@functools.lru_cache(maxsize=4096)
def scaled(model: Model, factor: float) -> Model:
    """Return the model, larger by a factor.

    The result is the same object for the same factor, so that its shapes are made once.
    """
    if factor == 1.0:
        return model
    surface = None if model.surface is None else _frozen(model.surface * factor)
    return dataclasses.replace(
        model, parts=tuple(_frozen(part * factor) for part in model.parts), surface=surface
    )


def box_part(length: float, width: float, height: float) -> Floats:
    """Return the corners of a box that stands on z = 0, (8, 3), m."""
    half = np.array([length / 2, width / 2])
    corners = [
        (x * half[0], y * half[1], z * height) for x in (-1, 1) for y in (-1, 1) for z in (0, 1)
    ]
    return _frozen(np.array(corners, float))


def cylinder_part(radius: float, height: float, top_radius: float | None = None) -> Floats:
    """Return the corners of the prism around a cylinder that stands on z = 0, (32, 3), m.

    With another radius on top it is a prism around a cone; (17, 3) if that radius is 0.
    """
    angle = (np.arange(SIDES) + 0.5) * (2.0 * math.pi / SIDES)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) / math.cos(math.pi / SIDES)
    top = radius if top_radius is None else top_radius
    upper = np.zeros((1, 2)) if top == 0.0 else top * ring
    lower = radius * ring
    corners = [
        np.column_stack([lower, np.full(len(lower), 0.0)]),
        np.column_stack([upper, np.full(len(upper), height)]),
    ]
    return _frozen(np.concatenate(corners))


def hull_part(points: ArrayLike) -> Floats:
    """Return the points that are corners of their convex hull, (v, 3).

    Raises ShapeError if they enclose no volume, or have too many corners.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        array = checked_rows("points", points, 3)
    except ValueError as error:
        raise ShapeError(str(error)) from None
    if not has_volume(array):
        raise ShapeError(f"{len(array)} points that lie in one plane or line enclose no volume")
    try:
        corners = array[np.sort(ConvexHull(array).vertices)]
    except QhullError as error:
        raise ShapeError(
            f"no hull can be built around the points ({str(error).strip().splitlines()[0]})"
        ) from None
    if len(corners) > MAX_CORNERS:
        raise ShapeError(
            f"the hull has {len(corners)} corners, expected at most {MAX_CORNERS}: thin it out"
        )
    return _frozen(corners)


def has_volume(points: Floats) -> bool:
    """Return whether points (n, 3) do not lie in one plane."""
    if len(points) < 4:
        return False
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(extents[2] > FLAT * extents[0])


def part_triangles(part: Floats) -> Floats:
    """Return the triangles of a convex part, (t, 3, 3), counter-clockwise from outside."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(part)
    corners: Floats = part[hull.simplices]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", across, hull.equations[:, :3]) < 0
    corners[inwards] = corners[inwards][:, [0, 2, 1]]
    return corners


def placed_part(part: Floats, offset: ArrayLike, yaw: float) -> Floats:
    """Return the part, or a surface, turned about z and then moved.

    It turns by the yaw (rad, counter-clockwise from above) and moves by (x, y, z), m.
    """
    c = math.cos(yaw)
    s = math.sin(yaw)
    turned = part if yaw == 0.0 else part @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    return _frozen(turned + np.asarray(offset, float))


def _frozen(array: Floats) -> Floats:
    """Return the array, read-only."""
    array.flags.writeable = False
    return array


def part_faces(part: Floats) -> Floats:
    """Return the corners of the triangles around a convex part, (t, 3, 3)."""
    from scipy.spatial import ConvexHull

    return np.asarray(part[ConvexHull(part).simplices], float)
