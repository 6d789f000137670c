# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays through voxels, a hash of voxels, and octrees in OctoMap's format.

A voxel's key is floor(coordinate / resolution) + 32768 along each axis; three of them are packed
into one number.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, kernel

DEPTH = 16
"""Depth of an octree of OctoMap, which has 65536 voxels along each side."""
HALF = 32768
"""Half of these voxels."""
FARTHEST = 1 << 17
"""Distance in voxels, longer than the octree's diagonal."""
FULL = 0.75
"""Largest filled share of a hash. A search then meets nine neighbouring places on average."""
FREE = 1
OCCUPIED = 2
MIXED = 3
_MIX = -7046029254386353131
"""2⁶⁴ over the golden ratio."""


class Voxels(NamedTuple):
    """An open-addressed hash, never more than three quarters full. Its size is a power of 2."""

    table: Ints
    """Key + 1 of each place, or 0 if it is empty."""
    values: NDArray[Any]
    """Values of the voxels: FREE or OCCUPIED, or log-odds."""


class LogOdds(NamedTuple):
    """Changes of a voxel's log-odds by a hit and by a passing ray, and their limits."""

    hit: float
    miss: float
    low: float
    high: float


class Axis(NamedTuple):
    """The voxels between a ray's ends along one axis. Amanatides and Woo, Eurographics 1987."""

    first: int
    last: int
    side: int
    """Step from voxel to voxel: -1, 0 or 1."""
    crossing: float
    """Share of the ray at which it first leaves a voxel along this axis; inf: nowhere."""
    spacing: float
    """Share of the ray between two such places."""


class VoxelRay(NamedTuple):
    """A ray through voxels."""

    inside: bool
    """True if the ray is finite, and on the 65536³ voxels from end to end."""
    hits: bool
    """True if the ray is no longer than the sensor's range."""
    x: Axis
    y: Axis
    z: Axis


@kernel
def find(table: Any, packed: int) -> int:
    """Return the place of a key in a table of `Voxels`, or of the gap where it belongs."""
    mask = table.size - 1
    place = (int(packed) * _MIX >> 32) & mask  # wraps where it is compiled
    while table[place] != 0 and table[place] != packed + 1:
        place = (place + 1) & mask
    return place


@kernel
def grown(table: Ints, values: Any) -> tuple[Ints, Any]:
    """Return table and values of `Voxels` in twice the size."""
    bigger = np.zeros(2 * table.size, np.int64)
    new_values = np.zeros(2 * table.size, values.dtype)
    for place in range(table.size):
        if table[place] != 0:
            new_place = find(bigger, int(table[place]) - 1)
            bigger[new_place] = table[place]
            new_values[new_place] = values[place]
    return bigger, new_values


@kernel
def pack(x: int, y: int, z: int) -> int:
    """Return voxel indices, -32768 … 32767, as one number."""
    return ((x + HALF) << 32) | ((y + HALF) << 16) | (z + HALF)


@inlined_kernel
def axis_of(begin: float, length: float, resolution: float) -> Axis:
    """Return the voxels of a ray that goes `length` (m, signed) along this axis."""
    first = math.floor(begin / resolution)
    last = math.floor((begin + length) / resolution)
    side = 0
    crossing = math.inf
    spacing = math.inf
    if last != first:
        side = 1 if last > first else -1
        border = first + 1 if last > first else first
        crossing = (border * resolution - begin) / length
        spacing = resolution / abs(length)
    return Axis(first, last, side, crossing, spacing)


@inlined_kernel
def on_octree(axis: Axis) -> bool:
    """Return whether both ends are on the 65536 voxels."""
    return (-HALF <= axis.first < HALF) & (-HALF <= axis.last < HALF)


@inlined_kernel
def ray_of(origins: Floats, ends: Floats, n: int, resolution: float, max_range: float) -> VoxelRay:
    """Return the ray of row n, cut off at max_range."""
    ox = origins[n, 0]
    oy = origins[n, 1]
    oz = origins[n, 2]
    dx = ends[n, 0] - ox
    dy = ends[n, 1] - oy
    dz = ends[n, 2] - oz
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    finite = length < 1e9  # False for NaN
    if not finite:
        ox = oy = oz = 0.0
        dx = dy = dz = 0.0
        length = 0.0

    hits = length <= max_range
    share = 1.0 if hits else max_range / length
    x = axis_of(ox, dx * share, resolution)
    y = axis_of(oy, dy * share, resolution)
    z = axis_of(oz, dz * share, resolution)
    return VoxelRay(finite & on_octree(x) & on_octree(y) & on_octree(z), hits, x, y, z)


class Cloud(NamedTuple):
    """Voxels that rays have hit or passed."""

    voxels: Voxels
    size: int
    """Number of these voxels."""


@inlined_kernel
def with_voxel(cloud: Cloud, packed: int, state: int) -> Cloud:
    """Return the cloud with a voxel in this state, unless it has that voxel already."""
    table, states = cloud.voxels
    place = find(table, packed)
    if table[place] != 0:
        return cloud

    table[place] = packed + 1
    states[place] = state
    count = cloud.size + 1
    if count >= FULL * table.size:
        table, states = grown(table, states)
    return Cloud(Voxels(table, states), count)


@inlined_kernel
def with_passed_voxels(cloud: Cloud, ray: VoxelRay) -> Cloud:
    """Return the cloud with all voxels that a ray passes, from its begin to the last but one."""
    x = ray.x.first
    y = ray.y.first
    z = ray.z.first
    next_x = ray.x.crossing
    next_y = ray.y.crossing
    next_z = ray.z.crossing
    while x != ray.x.last or y != ray.y.last or z != ray.z.last:
        cloud = with_voxel(cloud, pack(x, y, z), FREE)

        # to the next voxel
        if next_x <= next_y and next_x <= next_z:
            x += ray.x.side
            next_x = math.inf if x == ray.x.last else next_x + ray.x.spacing
        elif next_y <= next_z:
            y += ray.y.side
            next_y = math.inf if y == ray.y.last else next_y + ray.y.spacing
        else:
            z += ray.z.side
            next_z = math.inf if z == ray.z.last else next_z + ray.z.spacing
    return cloud


@kernel
def walk(
    origins: Floats, ends: Floats, resolution: float, max_range: float, most: int, voxels: Voxels
) -> tuple[Voxels, int]:
    """Return the voxels that rays hit or pass, each once, and the number of rays left out.

    Rays go from (n, 3) to (n, 3) m. A hit wins over a passing ray. A ray longer than max_range is
    free up to there and hits nothing. As in OctoMap, the voxel in which a ray ends is not passed.
    Rays that are not finite or off the 65536³ voxels are left out, and so are all further rays once
    there are `most` voxels. `voxels` is empty.
    """
    cloud = Cloud(voxels, 0)
    left_out = 0

    # hits first, so that passing rays never cover them
    for n in range(origins.shape[0]):
        if cloud.size >= most:
            break
        ray = ray_of(origins, ends, n, resolution, max_range)
        if ray.inside and ray.hits:
            cloud = with_voxel(cloud, pack(ray.x.last, ray.y.last, ray.z.last), OCCUPIED)

    for n in range(origins.shape[0]):
        if cloud.size >= most:
            left_out += origins.shape[0] - n
            break
        ray = ray_of(origins, ends, n, resolution, max_range)
        if ray.inside:
            cloud = with_passed_voxels(cloud, ray)
        else:
            left_out += 1
    return cloud.voxels, left_out


@kernel
def fuse(cloud: Voxels, change: LogOdds, voxels: Voxels, count: int) -> tuple[Voxels, int]:
    """Add the voxels of a cloud (`walk`) to the `count` ones of a map. Return voxels and count."""
    cloud_table, states = cloud
    table, odds = voxels
    for place in range(cloud_table.size):
        if cloud_table[place] == 0:
            continue
        packed = int(cloud_table[place]) - 1
        voxel = find(table, packed)
        if table[voxel] == 0:
            if count >= FULL * table.size:
                table, odds = grown(table, odds)
                voxel = find(table, packed)
            table[voxel] = packed + 1
            odds[voxel] = 0.0
            count += 1

        step = change.hit if states[place] == OCCUPIED else change.miss
        odds[voxel] = min(max(odds[voxel] + np.float32(step), change.low), change.high)
    return Voxels(table, odds), count


@kernel
def count_new(cloud: Voxels, voxels: Voxels) -> int:
    """Return how many voxels of a cloud (`walk`) a map does not have yet."""
    cloud_table = cloud.table
    table = voxels.table
    count = 0
    for place in range(cloud_table.size):
        if cloud_table[place] != 0 and table[find(table, int(cloud_table[place]) - 1)] == 0:
            count += 1
    return count


@kernel
def close_gaps(table: Ints, values: Any, start: int) -> None:
    """Move all voxels to where a search ends, after some were dropped.

    `start`: a gap that was there before.
    """
    for n in range(start, start + table.size):
        place = n & (table.size - 1)
        if table[place] != 0:
            key = table[place]
            value = values[place]
            table[place] = 0
            new_place = find(table, int(key) - 1)
            table[new_place] = key
            values[new_place] = value


@kernel
def fade(voxels: Voxels, amount: float) -> int:
    """Lower the log-odds of occupied voxels, and drop those that are no longer occupied.

    Returns how many are dropped.
    """
    table, odds = voxels
    start = 0
    dropped = 0
    for n in range(table.size):
        if table[n] == 0:
            start = n

    for n in range(table.size):
        if table[n] != 0 and odds[n] >= 0.0:
            odds[n] -= np.float32(amount)
            if odds[n] < 1e-3:  # many small amounts leave a little
                table[n] = 0
                dropped += 1
    if dropped:
        close_gaps(table, odds, start)
    return dropped


@kernel
def shell(packed: int, place: Floats) -> int:
    """Return the distance of a voxel's centre from a place (3,), in voxels, rounded down.

    The place is in voxels from the octree's corner.
    """
    x = (packed >> 32) - place[0]
    y = (packed >> 16 & 0xFFFF) - place[1]
    z = (packed & 0xFFFF) - place[2]
    distance = math.sqrt((x + 0.5) ** 2 + (y + 0.5) ** 2 + (z + 0.5) ** 2)
    return int(distance) if distance < FARTHEST else FARTHEST  # also for NaN


@kernel
def drop_far(voxels: Voxels, place: Floats, keep: int) -> int:
    """Drop the `shell`s farthest from a place until at most `keep` voxels are left.

    Returns how many are left.
    """
    table, values = voxels
    counts = np.zeros(FARTHEST + 1, np.int64)
    start = 0
    for n in range(table.size):
        if table[n] == 0:
            start = n
        else:
            counts[shell(int(table[n]) - 1, place)] += 1

    # largest radius that fits
    radius = 0
    left = 0
    while radius < counts.size and left + counts[radius] <= keep:
        left += counts[radius]
        radius += 1

    for n in range(table.size):
        if table[n] != 0 and shell(int(table[n]) - 1, place) >= radius:
            table[n] = 0
    close_gaps(table, values, start)
    return left


@kernel
def look(points: Floats, resolution: float, voxels: Voxels, out: Floats) -> None:
    """Look up the log-odds of the voxels around points (n, 3) -> out (n,); NaN if unknown."""
    table, odds = voxels
    for n in range(points.shape[0]):
        out[n] = math.nan
        inside = True
        for k in range(3):
            cell = points[n, k] / resolution
            inside = inside and -HALF <= cell < HALF
        if inside:
            x = points[n, 0] / resolution
            y = points[n, 1] / resolution
            z = points[n, 2] / resolution
            place = find(table, pack(int(np.floor(x)), int(np.floor(y)), int(np.floor(z))))
            if table[place] != 0:
                out[n] = odds[place]


@kernel
def octants(packed: Any, out: Any) -> None:
    """Compute the paths of keys from the octree's root: three bits a level, z y x."""
    for n in range(packed.size):
        key = int(packed[n])
        path = 0
        for level in range(DEPTH):
            x = key >> (32 + level) & 1
            y = key >> (16 + level) & 1
            z = key >> level & 1
            path |= (x | y << 1 | z << 2) << (3 * level)
        out[n] = path


@kernel
def join(paths: Any, kinds: Any, bits: Any, first: Any) -> int:
    """Join one level of an octree, sorted by path, to the level above, in place.

    Returns the number of nodes. `bits`: two a child, FREE, OCCUPIED or MIXED; `first`: the first
    child's place. Eight equal children make one node.
    """
    count = 0
    for n in range(paths.size):
        parent = paths[n] >> 3
        child = paths[n] & 7
        if count == 0 or paths[count - 1] != parent:
            paths[count] = parent
            bits[count] = 0
            first[count] = n
            count += 1
        bits[count - 1] |= int(kinds[n]) << (2 * child)

    for n in range(count):
        kinds[n] = MIXED
        if bits[n] == 0x5555:
            kinds[n] = FREE
        elif bits[n] == 0xAAAA:
            kinds[n] = OCCUPIED
    return count


@kernel
def write_tree(bits: Any, first: Any, starts: Any, out: Any) -> int:
    """Write the data of a .bt file, parents first: two bytes a node whose children differ.

    Returns the number of bytes. Levels come one after the other, the root's first; `starts`: where
    each begins. `first`: places within the next level.
    """
    places = np.zeros(DEPTH + 1, np.int64)
    left = np.zeros(DEPTH + 1, np.int64)

    # the root
    depth = 0
    out[0] = bits[0] & 255
    out[1] = bits[0] >> 8
    size = 2
    places[0] = first[0]
    left[0] = bits[0]

    while depth >= 0:
        if left[depth] == 0:
            depth -= 1
            continue

        # its next child
        kind = left[depth] & 3
        left[depth] >>= 2
        if kind == 0:
            continue
        child = places[depth]
        places[depth] += 1
        if kind != MIXED:
            continue

        # down to a child that has children itself
        node = starts[depth + 1] + child
        out[size] = bits[node] & 255
        out[size + 1] = bits[node] >> 8
        size += 2
        depth += 1
        places[depth] = first[node]
        left[depth] = bits[node]
    return size
