"""Arguments of the kernels of both phases, in groups. ENU, SI."""

from __future__ import annotations

from typing import NamedTuple

from rfly_common.arrays import Bools, Floats, Ints


class SweptMotion(NamedTuple):
    """n bodies at the end of a step over which they moved evenly; see `Bodies`."""

    shape_index: Ints
    """(n,)"""
    position: Floats
    """(n, 3)"""
    orientation: Floats
    """(n, 4) xyzw"""
    velocity: Floats
    """(n, 3)"""
    angular_velocity: Floats
    """(n, 3)"""


class PlacedShapes(NamedTuple):
    """Bodies in the world."""

    rotation: Floats
    """(n, 3, 3) body -> ENU at the end of the step"""
    low: Floats
    """(n, 3) m: the lower corner of a box around the body over the whole step"""
    high: Floats
    """(n, 3) m: the upper corner"""


class Touches(NamedTuple):
    """What is found of m bodies or pairs; rows that don't touch hold nothing. See `Contacts`."""

    touching: Bools
    """(m,)"""
    points: Floats
    """(m, 3)"""
    normals: Floats
    """(m, 3)"""
    depths: Floats
    """(m,)"""
    times: Floats
    """(m,)"""


class TerrainScratch(NamedTuple):
    """Work space of one body against the ground."""

    corners: Floats
    """(most vertices, 3) u, v, z of the core's vertices"""
    deepest: Floats
    """(9,) see `ground_kernels.deepest`"""
    nearest: Floats
    """(2, 3) points of the core and of the ground that are nearest to each other"""
    pose: Floats
    """(4, 3)"""
