# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Records of arrays that the kernels of both phases take. ENU, SI."""

from __future__ import annotations

from typing import NamedTuple

from rfly_common.arrays import Bools, Floats, Ints


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
