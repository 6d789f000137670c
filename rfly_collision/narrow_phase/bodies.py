# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bodies and contacts: the input and output of a scene, as flat arrays. ENU, SI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_collision.shapes.shape import Box, Capsule, ConvexHull, Shape, Sphere
from rfly_common.arrays import Bools, Floats, Ints, Rows
from rfly_common.config.checks import finite_array
from rfly_common.errors import BodiesError
from rfly_common.vehicle_states import QUATERNION_NORM_TOLERANCE

NO_GROUP = -1
"""Group of a body without a group."""

TERRAIN = -1
"""The terrain, in `Contacts.b`."""


class SweptMotion(NamedTuple):
    """n bodies at the end of a step over which they moved evenly; see `Bodies`."""

    shape_index: Ints
    """Row of each body's shape, (n,)."""
    position: Floats
    """Positions, (n, 3)."""
    orientation: Floats
    """Quaternions xyzw, (n, 4)."""
    velocity: Floats
    """Velocities, (n, 3)."""
    angular_velocity: Floats
    """Angular velocities, body axes, (n, 3)."""


class PlacedShapes(NamedTuple):
    """Rotation matrices and boxes of n bodies."""

    rotation: Floats
    """Rotation matrices body -> ENU at the end of the step, (n, 3, 3)."""
    low: Floats
    """Lower corner of a box around the body over the entire step, (n, 3), m."""
    high: Floats
    """Upper corner of that box, (n, 3), m."""


class Touches(NamedTuple):
    """Results for m bodies or pairs; rows that don't touch hold no numbers. See `Contacts`."""

    touching: Bools
    """True for those that touch, (m,)."""
    points: Floats
    """Contact points, (m, 3)."""
    normals: Floats
    """Normals, (m, 3)."""
    depths: Floats
    """Depths, (m,)."""
    times: Floats
    """Times of the first touch, (m,)."""


class PairScratch(NamedTuple):
    """Work space for one pair of bodies."""

    pose_a: Floats
    """Pose of the first body, (4, 3); see `distance_kernels`."""
    pose_b: Floats
    """Pose of the second body, (4, 3)."""
    vertices: Floats
    """Vertices of the first body in the axes of the second, (most vertices, 3)."""
    polygons: Floats
    """Polygons of the contact, (4, 2·most vertices + 8, 2)."""


class TerrainScratch(NamedTuple):
    """Work space for one body against the ground."""

    vertices: Floats
    """Vertices of the core, (most vertices, 3): u, v and z."""
    pose: Floats
    """Pose of the body, (4, 3); see `distance_kernels`."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """n bodies at the end of a step, each with one shape. Arrays of fitting types are not copied.

    With a step dt they moved evenly: from position - velocity·dt, and turned at angular_velocity.
    Raises BodiesError with the name of the array and the index for lengths that disagree, shape
    indices that don't exist, numbers that are not finite, and quaternions of a length other than 1.
    """

    shapes: Sequence[Shape]
    """Shapes; kept as a tuple."""
    shape_index: Ints
    """Index of each body's shape, (n,)."""
    position: Floats
    """Origins of the bodies at the end of the step, (n, 3), ENU, m."""
    orientation: Floats
    """Orientations at the end of the step, (n, 4) xyzw, body (FLU) -> ENU."""
    velocity: Floats = field(default_factory=lambda: np.empty(0))
    """Velocities, (n, 3), ENU, m/s; empty = 0."""
    angular_velocity: Floats = field(default_factory=lambda: np.empty(0))
    """Angular velocities, (n, 3), body axes, rad/s; empty = 0."""
    static: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    """Static bodies, (n,): two of them, or one and the terrain, never count; empty = none."""
    group: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Groups, (n,): bodies of one group never count, such as the parts of a vehicle.

    NO_GROUP or empty = no group.
    """
    ignore: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))
    """Pairs of indices that never count, (k, 2), in any order.

    (index, TERRAIN) is a body and the terrain.
    """

    def __post_init__(self) -> None:
        shapes = tuple(self.shapes)
        for index, shape in enumerate(shapes):
            if not isinstance(shape, Sphere | Capsule | Box | ConvexHull):
                raise BodiesError(
                    f"shapes[{index}] is {shape!r}, expected a Sphere, Capsule, Box or ConvexHull"
                )

        # index and orientation
        n = len(_array("position", self.position, np.float64).reshape(-1)) // 3
        shape_index = _rows("shape_index", self.shape_index, n, (), np.int64)
        wrong = np.flatnonzero((shape_index < 0) | (shape_index >= len(shapes)))
        if wrong.size:
            raise BodiesError(
                f"shape_index[{wrong[0]}] is {shape_index[wrong[0]]}, expected 0 … "
                f"{len(shapes) - 1}, a shape's index"
            )
        orientation = _rows("orientation", self.orientation, n, (4,), np.float64)
        norm = np.sqrt(np.einsum("ij,ij->i", orientation, orientation))
        wrong = np.flatnonzero(np.abs(norm - 1.0) > QUATERNION_NORM_TOLERANCE)
        if wrong.size:
            raise BodiesError(
                f"orientation[{wrong[0]}] has length {norm[wrong[0]]:g}, expected 1 (x y z w)"
            )

        values = {
            "shapes": shapes,
            "shape_index": shape_index,
            "position": _rows("position", self.position, n, (3,), np.float64),
            "orientation": orientation,
            "velocity": _rows("velocity", self.velocity, n, (3,), np.float64, 0.0),
            "angular_velocity": _rows(
                "angular_velocity", self.angular_velocity, n, (3,), np.float64, 0.0
            ),
            "static": _rows("static", self.static, n, (), np.bool_, False),
            "group": _rows("group", self.group, n, (), np.int64, NO_GROUP),
            "ignore": _pairs(self.ignore, n),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True, eq=False)
class Contacts(Rows):
    """m contacts, sorted by a, then b (the terrain first); at most one for each pair.

    a < b if b is a body. Position, normal and depth are those at the end of the step for bodies
    that touch then. For bodies that only touched on the way they are those of the first touch, with
    depth 0.
    """

    a: Ints
    """Index of the first body, (m,)."""
    b: Ints
    """Index of the second body, (m,), or TERRAIN."""
    position: Floats
    """Middles of the contacts, (m, 3), ENU, m."""
    normal: Floats
    """Unit vectors from b to a, (m, 3)."""
    depth: Floats
    """Depths, (m,), m >= 0: the least shift along the normal that separates two bodies.

    For the depth in the ground see `terrain_contact`.
    """
    time: Floats
    """Time from the begin of the step to the first touch, (m,), s.

    It is 0 for bodies that touch from the begin.
    """


def no_contacts() -> Contacts:
    """Contacts of length 0."""
    none = np.empty(0, np.int64)
    return Contacts(none, none, np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty(0))


def _array(name: str, value: ArrayLike, dtype: Any) -> NDArray[Any]:
    array = np.asarray(value)
    if (
        array.size
        and array.dtype.kind not in {"f": "fiu", "i": "iu", "b": "biu"}[np.dtype(dtype).kind]
    ):
        raise BodiesError(f"{name}: expected {np.dtype(dtype).name}, got {array.dtype}")
    return np.ascontiguousarray(array, dtype)


def _rows(
    name: str,
    value: ArrayLike,
    n: int,
    trailing: tuple[int, ...],
    dtype: Any,
    default: Any = None,
) -> NDArray[Any]:
    array = _array(name, value, dtype)
    if array.size == 0 and (default is not None or n == 0):
        return np.full((n, *trailing), 0 if default is None else default, dtype)
    if array.shape != (n, *trailing):
        raise BodiesError(f"{name}: expected shape {(n, *trailing)}, got {array.shape}")
    if array.dtype.kind == "f":
        finite_array(name, array, error=BodiesError)
    return array


def _pairs(value: ArrayLike, n: int) -> Ints:
    array = _array("ignore", value, np.int64)
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise BodiesError(f"ignore: expected shape (k, 2), got {array.shape}")
    wrong = np.argwhere((array < TERRAIN) | (array >= n))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise BodiesError(
            f"ignore[{row}, {column}] is {array[row, column]}, expected 0 … {n - 1}, or -1: the "
            "terrain"
        )
    return array
