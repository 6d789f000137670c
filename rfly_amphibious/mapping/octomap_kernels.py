"""Rays through voxels, a hash of voxels, and octrees as OctoMap writes them: compiled where numba is.

A voxel's key is floor(coordinate / resolution) + 32768 along each axis; three of them are packed into one number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.kernels.jit import kernel

DEPTH = 16
"""of an octree of OctoMap: 65536 voxels along each side"""
HALF = 32768
FREE, OCCUPIED, MIXED = 1, 2, 3
_MIX = -7046029254386353131
"""2⁶⁴ over the golden ratio"""


@kernel(nogil=True, error_model="numpy")
def find(table: Any, packed: int) -> int:
    """The place of a key in an open-addressed table (0: empty, else key + 1), or of the gap where it belongs."""
    mask = table.size - 1
    place = (int(packed) * _MIX >> 32) & mask  # wraps where it is compiled
    while table[place] != 0 and table[place] != packed + 1:
        place = (place + 1) & mask
    return place


@kernel(nogil=True, error_model="numpy")
def grown(table: Any, states: Any) -> Any:
    """(table, states) of twice the size; states may be of any type."""
    bigger, new_states = np.zeros(2 * table.size, np.int64), np.zeros(2 * table.size, states.dtype)
    for place in range(table.size):
        if table[place] != 0:
            there = find(bigger, int(table[place]) - 1)
            bigger[there] = table[place]
            new_states[there] = states[place]
    return bigger, new_states


@kernel(nogil=True, error_model="numpy")
def walk(origins: Any, ends: Any, resolution: float, max_range: float, most: int, table: Any, states: Any) -> Any:
    """(table, states, rays left out): each voxel that rays hit or pass, once; hit wins over passed.

    Rays (n, 3) -> (n, 3) m. A ray longer than max_range is free up to there and hits nothing. As OctoMap does it, the
    voxel in which a ray ends is not passed. What is not finite or off the 65536³ voxels is left out, and so is what
    comes once there are `most` voxels.
    """
    count, left_out = 0, 0
    first, last = np.zeros(3, np.int64), np.zeros(3, np.int64)
    side, next_at, step_of = np.zeros(3, np.int64), np.zeros(3), np.zeros(3)
    for turn in range(2):  # hits first, so that what is passed never covers them
        for ray in range(origins.shape[0]):
            length = 0.0
            for k in range(3):
                length += (ends[ray, k] - origins[ray, k]) ** 2
            length = math.sqrt(length)
            hits = length <= max_range
            share = 1.0 if hits else max_range / length
            inside = length < 1e9 and count < most  # not for NaN
            if inside:
                for k in range(3):
                    a, d = origins[ray, k], (ends[ray, k] - origins[ray, k]) * share
                    begin, finish = math.floor(a / resolution), math.floor((a + d) / resolution)
                    inside = inside and -HALF <= begin < HALF and -HALF <= finish < HALF
                    if not inside:
                        break
                    first[k], last[k] = int(begin), int(finish)
                    if last[k] == first[k]:
                        side[k], next_at[k], step_of[k] = 0, math.inf, math.inf
                    else:
                        side[k] = 1 if last[k] > first[k] else -1
                        border = first[k] + 1 if last[k] > first[k] else first[k]
                        next_at[k], step_of[k] = (border * resolution - a) / d, resolution / abs(d)
            if not inside:
                left_out += turn
                continue
            if 2 * count + 2 > table.size:
                table, states = grown(table, states)
            if turn == 0:
                if hits:
                    packed = pack(int(last[0]), int(last[1]), int(last[2]))
                    place = find(table, packed)
                    if table[place] == 0:
                        table[place], states[place] = packed + 1, OCCUPIED
                        count += 1
                continue
            x, y, z = int(first[0]), int(first[1]), int(first[2])
            while x != last[0] or y != last[1] or z != last[2]:
                packed = pack(x, y, z)
                place = find(table, packed)
                if table[place] == 0:
                    table[place], states[place] = packed + 1, FREE
                    count += 1
                    if 2 * count + 2 > table.size:
                        table, states = grown(table, states)
                if next_at[0] <= next_at[1] and next_at[0] <= next_at[2]:
                    x += side[0]
                    next_at[0] = math.inf if x == last[0] else next_at[0] + step_of[0]
                elif next_at[1] <= next_at[2]:
                    y += side[1]
                    next_at[1] = math.inf if y == last[1] else next_at[1] + step_of[1]
                else:
                    z += side[2]
                    next_at[2] = math.inf if z == last[2] else next_at[2] + step_of[2]
    return table, states, left_out


@kernel(nogil=True, error_model="numpy")
def pack(x: int, y: int, z: int) -> int:
    """Voxel indices, -32768 … 32767, as one number."""
    return ((x + HALF) << 32) | ((y + HALF) << 16) | (z + HALF)


@kernel(nogil=True, error_model="numpy")
def fuse(
    cloud: Any, states: Any, hit: float, miss: float, low: float, high: float, table: Any, odds: Any, count: int
) -> Any:
    """(table, odds, count): the voxels of a cloud (`walk`) added to those of a map; log-odds stay in low … high."""
    for place in range(cloud.size):
        if cloud[place] == 0:
            continue
        packed = int(cloud[place]) - 1
        there = find(table, packed)
        if table[there] == 0:
            if 2 * count + 2 > table.size:
                table, odds = grown(table, odds)
                there = find(table, packed)
            table[there] = packed + 1
            odds[there] = 0.0
            count += 1
        change = hit if states[place] == OCCUPIED else miss
        odds[there] = min(max(odds[there] + np.float32(change), low), high)
    return table, odds, count


@kernel(nogil=True, error_model="numpy")
def look(points: Any, resolution: float, table: Any, odds: Any, out: Any) -> None:
    """Log-odds of the voxels around points (n, 3); NaN where nothing is known."""
    for n in range(points.shape[0]):
        out[n] = math.nan
        inside = True
        for k in range(3):
            cell = points[n, k] / resolution
            inside = inside and -HALF <= cell < HALF
        if inside:
            x, y, z = points[n, 0] / resolution, points[n, 1] / resolution, points[n, 2] / resolution
            place = find(table, pack(int(np.floor(x)), int(np.floor(y)), int(np.floor(z))))
            if table[place] != 0:
                out[n] = odds[place]


@kernel(nogil=True, error_model="numpy")
def octants(packed: Any, out: Any) -> None:
    """Keys -> the path from the octree's root: three bits a level, z y x."""
    for n in range(packed.size):
        key, path = int(packed[n]), 0
        for level in range(DEPTH):
            bit = (key >> (32 + level) & 1) | (key >> (16 + level) & 1) << 1 | (key >> level & 1) << 2
            path |= bit << (3 * level)
        out[n] = path


@kernel(nogil=True, error_model="numpy")
def join(paths: Any, kinds: Any, parents: Any, parent_kinds: Any, bits: Any, first: Any) -> int:
    """One level of an octree out of the level below, sorted by path; returns how many nodes it has.

    `bits`: two a child, FREE, OCCUPIED or MIXED; `first`: the first child's place. Eight equal children make one node.
    """
    count = 0
    for n in range(paths.size):
        parent = paths[n] >> 3
        if count == 0 or parents[count - 1] != parent:
            parents[count], bits[count], first[count] = parent, 0, n
            count += 1
        bits[count - 1] |= int(kinds[n]) << (2 * (paths[n] & 7))
    for n in range(count):
        parent_kinds[n] = MIXED
        if bits[n] == 0x5555:
            parent_kinds[n] = FREE
        elif bits[n] == 0xAAAA:
            parent_kinds[n] = OCCUPIED
    return count


@kernel(nogil=True, error_model="numpy")
def write_tree(bits: Any, first: Any, starts: Any, out: Any) -> int:
    """The data of a .bt file, parents first: two bytes a node whose children differ. Returns how many bytes.

    Levels one after the other, the root's first; `starts`: where each begins. `first`: places within the next level.
    """
    at, depth = 0, 0
    places, left = np.zeros(DEPTH + 1, np.int64), np.zeros(DEPTH + 1, np.int64)
    out[0], out[1] = bits[0] & 255, bits[0] >> 8
    at = 2
    places[0], left[0] = first[0], bits[0]
    while depth >= 0:
        if left[depth] == 0:
            depth -= 1
            continue
        kind = left[depth] & 3
        left[depth] >>= 2
        if kind == 0:
            continue
        child = places[depth]
        places[depth] += 1
        if kind != MIXED:
            continue
        node = starts[depth + 1] + child
        out[at], out[at + 1] = bits[node] & 255, bits[node] >> 8
        at += 2
        depth += 1
        places[depth], left[depth] = first[node], bits[node]
    return at
