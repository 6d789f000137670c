# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Occupancy voxels from lidar rays: OctoMap's log-odds update and file format, without OctoMap.

The voxels lie in a hash. An octree is made of them for a file or a message. Each ray of a cloud may
have its own start. docs/model, section 12.3.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_autonomy.mapping import octomap_kernels as kernels
from rfly_autonomy.mapping.octomap_parameters import OctomapParameters
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.files import write_whole

MAX_RAYS = 2_000_000
"""Most rays in one cloud."""
KEPT_SHARE = 0.9
"""Share of max_voxels that is kept when voxels are dropped, so that this happens seldom."""


class Inserted(NamedTuple):
    """Result of a cloud."""

    occupied: int
    """Number of voxels in which rays ended."""
    free: int
    """Number of voxels that rays passed."""
    left_out: int
    """Number of rays that are not finite, or off the 65536³ voxels around the origin."""
    dropped: int
    """Number of voxels farthest from the sensor that were dropped."""


class OctomapGrid:
    """Voxels with log-odds of being occupied, in the world's axes (ENU)."""

    def __init__(self, parameters: OctomapParameters | None = None) -> None:
        self.parameters = parameters or OctomapParameters()
        self.clear()

    def __len__(self) -> int:
        """Return the number of known voxels."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """Size in memory, bytes."""
        return self._voxels.table.nbytes + self._voxels.values.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._count = 0
        self._voxels = kernels.Voxels(np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.float32))

    def insert(self, origins: ArrayLike, ends: ArrayLike) -> Inserted:
        """Update voxels with the rays of one cloud, from (3,) or (n, 3) m to (n, 3) m.

        Each voxel is updated once, as hit or passed; hits win. If there would be more than
        `max_voxels`, those farthest from the start of the last ray are dropped first. Raises
        ConfigError for other shapes and too many rays.
        """
        end = np.ascontiguousarray(ends, np.float64)
        if end.ndim != 2 or end.shape[1] != 3 or len(end) > MAX_RAYS:
            raise ConfigError(
                f"rays end at an array {end.shape}, expected (n, 3) with up to {MAX_RAYS} rays"
            )
        start = np.asarray(origins, np.float64)
        if start.shape not in ((3,), end.shape):
            raise ConfigError(f"rays start at an array {start.shape}, expected (3,) or {end.shape}")

        # voxels of the cloud
        p = self.parameters
        begin = np.ascontiguousarray(np.broadcast_to(start, end.shape))
        cloud = kernels.Voxels(np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.uint8))
        cloud, left_out = kernels.walk(begin, end, p.resolution, p.max_range, p.max_voxels, cloud)
        size = int(np.count_nonzero(cloud.table))

        # room for them, twice: dropped voxels may be in the cloud, and are new then
        dropped = 0
        for _ in range(2):
            new = kernels.count_new(cloud, self._voxels)
            if self._count + new > p.max_voxels:
                keep = round(KEPT_SHARE * p.max_voxels) - (size if dropped else new)
                left = kernels.drop_far(self._voxels, begin[-1] / p.resolution + kernels.HALF, keep)
                dropped = dropped + self._count - left
                self._count = left

        change = kernels.LogOdds(p.hit, p.miss, p.clamp_min, p.clamp_max)
        self._voxels, self._count = kernels.fuse(cloud, change, self._voxels, self._count)
        occupied = int(np.count_nonzero(cloud.values == kernels.OCCUPIED))
        free = int(np.count_nonzero(cloud.values == kernels.FREE))
        return Inserted(occupied, free, left_out, dropped)

    def age(self, seconds: float) -> int:
        """Let occupied voxels fade for a time. Return the number of voxels that are forgotten.

        With `forget_after`, they fade from `clamp_max` to unknown in that time.
        """
        p = self.parameters
        if not p.forget_after or not seconds > 0.0:
            return 0
        forgotten = kernels.fade(self._voxels, min(seconds / p.forget_after, 2.0) * p.clamp_max)
        self._count -= forgotten
        return forgotten

    def voxels(self, occupied: bool = True) -> Floats:
        """Return the centres of all occupied, or all free voxels, m, (n, 3), sorted by x, y, z."""
        table, odds = self._voxels
        packed = np.sort(table[(table != 0) & ((odds >= 0.0) == occupied)]) - 1
        keys = np.stack([packed >> 32, packed >> 16 & 0xFFFF, packed & 0xFFFF], axis=-1)
        return (keys - (kernels.HALF - 0.5)) * self.parameters.resolution

    def log_odds(self, points: ArrayLike) -> Floats:
        """Return the log-odds (n,) of the voxels around points (n, 3) m; NaN for unknown ones."""
        places = np.ascontiguousarray(points, np.float64).reshape(-1, 3)
        out = np.empty(len(places))
        kernels.look(places, self.parameters.resolution, self._voxels, out)
        return out

    def binary_data(self) -> bytes:
        """Return the tree of free and occupied voxels, two bits a node.

        This is what `octomap_msgs/Octomap` carries, and a .bt file after its head.
        """
        if not len(self):
            return b""
        table, odds = self._voxels
        known = table != 0
        nodes = table[known]
        nodes -= 1
        kernels.octants(nodes, nodes)

        # the kind below a path of 48 bits: one sort in place, so that a map of the largest size is
        # not held in memory several times over
        nodes <<= 2
        nodes |= np.where(odds[known] >= 0.0, np.uint8(kernels.OCCUPIED), np.uint8(kernels.FREE))
        nodes.sort()
        paths = nodes
        kinds = nodes.astype(np.uint8) & 3
        paths >>= 2
        del known

        # levels from the leaves to the root
        levels = []
        for _ in range(kernels.DEPTH):
            bits = np.empty(len(paths), np.uint16)
            first = np.empty(len(paths), np.int32)
            count = kernels.join(paths, kinds, bits, first)
            levels.append((bits[:count].copy(), first[:count].copy()))
            paths = paths[:count]
            kinds = kinds[:count]

        levels.reverse()
        starts = np.cumsum([0, *(len(bits) for bits, _ in levels)])
        bits, first = (np.concatenate(parts) for parts in zip(*levels, strict=True))
        out = np.empty(2 * len(bits), np.uint8)
        return out[: kernels.write_tree(bits, first, starts, out)].tobytes()

    def binary_file(self) -> bytes:
        """Return the content of a .bt file."""
        data = self.binary_data()
        # number of nodes: the root, and each other has two bits that are not both 0
        bits = np.unpackbits(np.frombuffer(data, np.uint8)).reshape(-1, 2)
        size = int(bits.any(axis=1).sum()) + 1 if data else 0
        head = (
            f"# Octomap OcTree binary file\nid OcTree\nsize {size}\n"
            f"res {self.parameters.resolution:.12g}\ndata\n"
        )
        return head.encode("ascii") + data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .bt file for octovis and octomap-tools, whole or not at all.

        Raises ConfigError for another ending, OSError if it can't be written.
        """
        target = Path(path)
        if target.suffix.lower() != ".bt":
            raise ConfigError(
                f"{target}: maps are written as .bt, not {target.suffix or 'without ending'!r}"
            )
        write_whole(target, self.binary_file())


def warm_up() -> None:
    """Compile the kernels, or load them from the disk cache, before the first cloud."""
    grid = OctomapGrid()
    grid.insert((0.0, 0.0, 0.0), [(1.0, 1.0, 1.0)])
    grid.log_odds([(0.0, 0.0, 0.0)])
    grid.binary_data()
    OctomapGrid(OctomapParameters(forget_after=1.0)).age(1.0)
