# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Octrees in OctoMap's binary form: the data of `octomap_msgs/Octomap`, and of a .bt file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.kernels.jit import kernel

DEPTH = 16
HALF = 32768
"""Voxels from the tree's corner to its middle, the origin."""

MOST_BYTES = 16_000_000
"""Largest data that are read."""

MOST_LEAVES = 5_000_000
"""Largest number of leaves, which take half a gigabyte while they are read."""

# two bits of a child
_FREE = 1
_OCCUPIED = 2
_INNER = 3


@dataclass(frozen=True, eq=False)
class Leaves:
    """Cubes that are known to be free or occupied, in the map's axes."""

    low: Floats
    """Lowest corners, (n, 3), m."""
    side: Floats
    """Sides, (n,), m: the resolution, or a power of two of it where neighbours are alike."""
    occupied: Bools
    """True for occupied cubes, (n,)."""


def read_octree(data: bytes | NDArray[Any], resolution: float) -> Leaves:
    """Return the leaves of a tree whose smallest ones have sides of `resolution` (m).

    Raises ConfigError for a resolution that can't be, and for data that are no such tree.
    """
    if not 1e-3 <= resolution <= 1e3:
        raise ConfigError(f"octomap: resolution {resolution:g} m, allowed: 0.001 … 1000")
    octets = (
        np.frombuffer(data, np.uint8)
        if isinstance(data, bytes)
        else np.asarray(data).view(np.uint8)
    )
    if octets.size > MOST_BYTES or octets.size % 2:
        raise ConfigError(
            f"octomap: {octets.size} bytes, expected an even number up to {MOST_BYTES}"
        )

    # the leaves are those pairs of bits that stand for no inner node
    pairs = np.stack([octets >> shift & 3 for shift in (0, 2, 4, 6)])
    count = int(np.count_nonzero((pairs == _FREE) | (pairs == _OCCUPIED)))
    if count > MOST_LEAVES:
        raise ConfigError(
            f"octomap: {count} leaves, at most {MOST_LEAVES} are taken: a coarser map has fewer"
        )

    corners = np.empty((count, 3), np.int64)
    sides = np.empty(count, np.int64)
    occupied = np.empty(count, np.bool_)
    if octets.size and _read_nodes(octets, corners, sides, occupied) != octets.size:
        raise ConfigError(
            f"octomap: {octets.size} bytes are not the nodes of one octree of {DEPTH} levels"
        )

    low, side = (
        np.multiply(part, resolution, dtype=np.float64) for part in (corners - HALF, sides)
    )
    return Leaves(low, side, occupied)


@kernel
def _read_nodes(data: Any, corners: Ints, sides: Ints, occupied: Bools) -> int:
    """Fill in the leaves, in voxels, and return the number of bytes that were read.

    It is -1 where there are too few bytes, or too many levels.
    """
    bits = np.zeros(DEPTH + 1, np.int64)
    child = np.zeros(DEPTH + 1, np.int64)
    place = np.zeros((DEPTH + 1, 3), np.int64)
    bits[0] = int(data[0]) | int(data[1]) << 8

    depth = 0
    position = 2
    count = 0
    while depth >= 0:
        if child[depth] == 8:
            depth -= 1
            continue

        # the next child of this node
        number = child[depth]
        child[depth] += 1
        kind = bits[depth] >> (2 * number) & 3
        if kind == 0:
            continue

        side = 1 << (DEPTH - 1 - depth)
        x = place[depth, 0] + (number & 1) * side
        y = place[depth, 1] + (number >> 1 & 1) * side
        z = place[depth, 2] + (number >> 2) * side
        if kind != _INNER:
            corners[count, 0] = x
            corners[count, 1] = y
            corners[count, 2] = z
            sides[count] = side
            occupied[count] = kind == _OCCUPIED
            count += 1
            continue

        # down to an inner node
        if depth == DEPTH - 1 or position + 2 > data.size:
            return -1
        depth += 1
        place[depth, 0] = x
        place[depth, 1] = y
        place[depth, 2] = z
        bits[depth] = int(data[position]) | int(data[position + 1]) << 8
        child[depth] = 0
        position += 2
    return position
