"""Occupancy voxels from lidar rays: OctoMap's log-odds update and file format, without OctoMap.

The voxels lie in a hash, an octree is made of them where a file or a message wants one. Each ray of
a cloud may start elsewhere. docs/model, section 12.3.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.mapping import octomap_kernels as kernels
from rfly_amphibious.mapping.octomap_parameters import OctomapParameters
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

MAX_RAYS = 2_000_000
"""in one cloud"""
KEPT_SHARE = 0.9
"""of max_voxels, where there is no more room: so room is made seldom"""


class Inserted(NamedTuple):
    """What a cloud did."""

    occupied: int
    """voxels that rays ended in"""
    free: int
    """voxels that rays passed"""
    left_out: int
    """rays that are not finite, or off the 65536³ voxels around the origin"""
    dropped: int
    """voxels that lay farthest from the sensor and made room"""


class OctomapGrid:
    """Voxels with log-odds of being occupied, in the world's axes (ENU)."""

    def __init__(self, parameters: OctomapParameters = OctomapParameters()) -> None:
        self.parameters = parameters
        self.clear()

    def __len__(self) -> int:
        """Voxels of which something is known."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """In memory."""
        return self._voxels.table.nbytes + self._voxels.values.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._count = 0
        self._voxels = kernels.Voxels(np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.float32))

    def insert(self, origins: ArrayLike, ends: ArrayLike) -> Inserted:
        """Rays of one cloud, (3,) or (n, 3) m -> (n, 3) m. Each voxel is updated once, hit or
        passed; hits win.

        Where there would be more than `max_voxels`, those farthest from where the last ray starts
        are dropped first. Raises ConfigError for other shapes and too many rays.
        """
        to = np.ascontiguousarray(ends, np.float64)
        if to.ndim != 2 or to.shape[1] != 3 or len(to) > MAX_RAYS:
            raise ConfigError(
                f"rays end at an array {to.shape}, expected (n, 3) with up to {MAX_RAYS} rays"
            )
        start = np.asarray(origins, np.float64)
        if start.shape not in ((3,), to.shape):
            raise ConfigError(f"rays start at an array {start.shape}, expected (3,) or {to.shape}")
        p = self.parameters
        begin = np.ascontiguousarray(np.broadcast_to(start, to.shape))
        cloud = kernels.Voxels(np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.uint8))
        cloud, left_out = kernels.walk(begin, to, p.resolution, p.max_range, p.max_voxels, cloud)
        size = int(np.count_nonzero(cloud.table))
        dropped = 0
        for _ in range(2):  # what is dropped may be seen by the cloud, and is new then
            new = kernels.count_new(cloud, self._voxels)
            if self._count + new > p.max_voxels:
                keep = round(KEPT_SHARE * p.max_voxels) - (size if dropped else new)
                left = kernels.drop_far(self._voxels, begin[-1] / p.resolution + kernels.HALF, keep)
                dropped = dropped + self._count - left
                self._count = left
        change = kernels.LogOdds(p.hit, p.miss, p.clamp_min, p.clamp_max)
        self._voxels, self._count = kernels.fuse(cloud, change, self._voxels, self._count)
        hit, passed = (
            int(np.count_nonzero(cloud.values == kind)) for kind in (kernels.OCCUPIED, kernels.FREE)
        )
        return Inserted(hit, passed, left_out, dropped)

    def age(self, seconds: float) -> int:
        """So much time has passed: occupied voxels become less so where `forget_after` says how
        fast, from `clamp_max` to unknown in that time. Returns how many are forgotten.
        """
        p = self.parameters
        if not p.forget_after or not seconds > 0.0:
            return 0
        forgotten = kernels.fade(self._voxels, min(seconds / p.forget_after, 2.0) * p.clamp_max)
        self._count -= forgotten
        return forgotten

    def voxels(self, occupied: bool = True) -> Floats:
        """(n, 3) m: centres of all occupied, or of all free voxels, sorted by x, y, z."""
        table, odds = self._voxels
        packed = np.sort(table[(table != 0) & ((odds >= 0.0) == occupied)]) - 1
        keys = np.stack([packed >> 32, packed >> 16 & 0xFFFF, packed & 0xFFFF], axis=-1)
        return (keys - (kernels.HALF - 0.5)) * self.parameters.resolution

    def log_odds(self, points: ArrayLike) -> Floats:
        """(n,) of the voxels around points (n, 3) m; NaN where nothing is known."""
        places = np.ascontiguousarray(points, np.float64).reshape(-1, 3)
        out = np.empty(len(places))
        kernels.look(places, self.parameters.resolution, self._voxels, out)
        return out

    def binary_data(self) -> bytes:
        """Free and occupied, two bits a node: what `octomap_msgs/Octomap` carries, and a .bt file
        after its head.
        """
        if not len(self):
            return b""
        table, odds = self._voxels
        there = table != 0
        nodes = table[there]
        nodes -= 1
        kernels.octants(nodes, nodes)
        # below a path of 48 bits its kind, so that one sort in place is enough: a map of the
        # largest size
        nodes <<= 2
        nodes |= np.where(
            odds[there] >= 0.0, np.uint8(kernels.OCCUPIED), np.uint8(kernels.FREE)
        )  # is not held
        nodes.sort()  # several times over
        paths = nodes
        kinds = nodes.astype(np.uint8) & 3
        paths >>= 2
        del there
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
        """The content of a .bt file."""
        data = self.binary_data()
        # its nodes: the root, and two bits that are not both 0 for every other
        bits = np.unpackbits(np.frombuffer(data, np.uint8)).reshape(-1, 2)
        size = int(bits.any(axis=1).sum()) + 1 if data else 0
        head = f"# Octomap OcTree binary file\nid OcTree\nsize {size}\nres {self.parameters.resolution:.12g}\ndata\n"
        return head.encode("ascii") + data

    def save(self, path: str | os.PathLike[str]) -> None:
        """To a .bt file, for octovis and octomap-tools; it is there at once or not at all.

        Raises ConfigError for another ending, OSError where it can't be written.
        """
        target = Path(path)
        if target.suffix.lower() != ".bt":
            raise ConfigError(
                f"{target}: maps are written as .bt, not {target.suffix or 'without ending'!r}"
            )
        beside = target.with_name(target.name + ".part")
        try:
            beside.write_bytes(self.binary_file())
            os.replace(beside, target)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def warm_up() -> None:
    """Compiles the kernels, or loads them from the disk cache, before a cloud waits for them."""
    grid = OctomapGrid()
    grid.insert((0.0, 0.0, 0.0), [(1.0, 1.0, 1.0)])
    grid.log_odds([(0.0, 0.0, 0.0)])
    grid.binary_data()
    OctomapGrid(OctomapParameters(forget_after=1.0)).age(1.0)
