# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""TiledHeightMap: terrain larger than memory, whose tiles are read when queries need them.

Theory of operation. Samples are read in tiles of TILE x TILE. For a query, the tiles that hold the
samples under its points become one `HeightMap`, a block, on which the kernels of maps in memory
run; so both have the same formulas. Points that are too far from each other for one block are split
by halves of their rectangle, and so are points whose block has a tile that cannot be read, as
perhaps none of them needs it. The faulty tile is read anew for the next single point that needs it.
Tiles and blocks that were not used for longest are forgotten beyond the limit of memory; a block
that is in use stays alive by its references.

A ray is followed in pieces of a few tiles, shorter ones next to a tile that cannot be read. A piece
ends inside its block, and its rectangle holds all that the ray can meet there, so that the edge of
a block is never taken for that of the map.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from mmap import mmap
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import TerrainError
from rfly_common.files import MAX_CELLS, StrPath
from rfly_common.kernels.parallel import in_chunks
from rfly_terrain.files.web_files import WebPlace
from rfly_terrain.height_map import ray_cast
from rfly_terrain.height_map.arguments import check_finite, flat_arrays, for_kernels, run
from rfly_terrain.height_map.ground import ground_of_grid
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.point_cloud import Region, selected
from rfly_terrain.height_map.scalar import surface_at
from rfly_terrain.height_map.terrain import Terrain, finite_floats
from rfly_terrain.map_files.search import map_name
from rfly_terrain.tiles.tile_files import TileFiles, open_files

TILE = 256
"""Samples a side of a tile, a block of the files that `rfly terrain tile` writes: 256 KB."""
MEMORY_MB = 256.0
SMALLEST_MEMORY_MB = 1.0
FEW_TILES = 4
"""Tiles of a block for points that are fewer than its tiles."""
RAY_TILES = 2
"""Length over the ground of the pieces of rays, tiles."""
SHORTER = 4
"""Number of pieces in which rays pass a tile that cannot be read, instead of one."""
ROUNDED_M = 0.01
"""Rounding of float32 heights to which an altitude was added, at most, m."""
ROUNDED_CELLS = 1e-6
"""Rounding of places, at most, cells."""
SAMPLES_OF_POINT = 16
"""Samples that a query of one point needs, at most."""
LOWEST_SHOWN = -500.0
"""Least height of what is drawn where the ground cannot be read, m."""
SHARE_OF_BLOCK = 4
"""The largest block is this part of the memory for blocks."""

Key = TypeVar("Key")
Value = TypeVar("Value")
Found = TypeVar("Found")


class IndexBox(NamedTuple):
    """Rectangle of samples, or of tiles."""

    rows: range
    columns: range

    @property
    def size(self) -> int:
        """Number of samples or tiles."""
        return len(self.rows) * len(self.columns)

    def holds(self, other: IndexBox) -> bool:
        """Return whether all of another box is in this one."""
        return all(
            mine.start <= its.start and its.stop <= mine.stop
            for mine, its in zip(self, other, strict=True)
        )


class Strip(NamedTuple):
    """Rows or columns of samples in one file."""

    samples: range
    places: Floats
    """Row or column at which each mean of them lies."""


class _Recent(Generic[Key, Value]):
    """Values by key; those not used for longest are forgotten beyond a number of samples."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.samples = 0
        """Samples of all values."""

    def get(self, key: Key) -> Value | None:
        """Return a value, and note that it was used."""
        if key not in self.values:
            return None
        self.values.move_to_end(key)
        return self.values[key][0]

    def put(self, key: Key, value: Value, samples: int) -> None:
        """Keep a value."""
        _, before = self.values.pop(key, (None, 0))
        self.values[key] = value, samples
        self.samples += samples - before
        while len(self.values) > 1 and self.samples > self.most:
            _, (_, forgotten) = self.values.popitem(last=False)
            self.samples -= forgotten


class TiledHeightMap(Terrain):
    """Terrain whose samples are in files; the queries are those of `Terrain`.

    They raise TerrainFileNotFound and TerrainFormatError if a tile is missing or damaged. A later
    query reads it anew.
    """

    def __init__(self, files: TileFiles, memory_mb: float = MEMORY_MB) -> None:
        """Make a terrain of files, which keeps heights of up to `memory_mb` in memory."""
        finite_number("memory_mb", memory_mb, "MB", at_least=SMALLEST_MEMORY_MB)
        grid = files.grid
        self.rows = grid.rows
        self.columns = grid.columns
        self.origin_x = grid.origin_x
        self.origin_y = grid.origin_y
        self.step_x = grid.step_x
        self.step_y = grid.step_y
        datum = 0.0 if grid.geo_origin is None else grid.geo_origin[2]
        self.z_min = grid.z_min - datum
        self.z_max = grid.z_max - datum
        if isinstance(files.path, WebPlace):
            self.name = map_name(files.path.name)
            self.files = ()
        else:
            self.name = map_name(files.path)
            self.files = (files.path,)
        self.geo_origin = grid.geo_origin
        place = (self.origin_x, self.origin_y, self.step_x, self.step_y)
        no_heights = np.zeros(1, np.float32)
        no_heights.flags.writeable = False
        self.ground = ground_of_grid(no_heights, *place, shape=(self.rows, self.columns))
        self._point_altitude = self._altitude_of_point

        # half of the memory for tiles, half for blocks with their pyramids
        self._memory_mb = memory_mb
        self._reader = files
        self._tile = min(TILE, grid.side)
        samples = memory_mb * 1e6 / np.float32().itemsize / 2.0
        self._lock = threading.Lock()
        self._tiles: _Recent[tuple[int, int], NDArray[np.float32]] = _Recent(samples)
        self._faults: dict[tuple[int, int], TerrainError] = {}
        self._blocks: _Recent[IndexBox, HeightMap] = _Recent(samples * 12.0 / 13.0)
        most = min(samples / SHARE_OF_BLOCK, MAX_CELLS / 2) / self._tile**2
        self._most_tiles = max(FEW_TILES, int(most))

    @classmethod
    def open(cls, path: StrPath, *, memory_mb: float = MEMORY_MB) -> TiledHeightMap:
        """Open a folder of `rfly terrain tile`, or a GeoTIFF whose cells are metres.

        The GeoTIFF should be cloud-optimised or tiled: a tile is read at a time. `WebPlace.allowed`
        makes a path of an address on a web server. Raises TerrainFileNotFound, TerrainFormatError,
        and ConfigError for a raster that has to be resampled.
        """
        return cls(open_files(path), memory_mb)

    def is_loaded(self, x: ArrayLike, y: ArrayLike) -> bool:
        """Return whether the tiles under these points are in memory."""
        _, (flat_x, flat_y) = flat_arrays(("x", "y"), (x, y))
        if not (flat_x.size and np.isfinite(flat_x).all() and np.isfinite(flat_y).all()):
            return True
        with self._lock, suppress(TerrainError):
            for _ in self._pieces((flat_x, flat_x), (flat_y, flat_y), self._check_held):
                pass
            return True
        return False

    def prepare(self, x: Floats, y: Floats) -> None:
        """Read the tiles that queries at points need; one that has failed is not tried again."""

        def find(need: IndexBox) -> None:
            if need.size > SAMPLES_OF_POINT or self._fault_in(self._tiles_around(need)) is None:
                self._block(need)

        for _ in self._pieces((x, x), (y, y), find):
            pass

    def inside(self, x: Any, y: Any) -> Any:
        """Return whether points are on the map; no tile is read."""
        (inside,) = self._run("insides", ("x", "y"), (x, y), [((), np.bool_)])
        return inside if inside.ndim else bool(inside)

    def window(self, x: float, y: float, samples: int) -> HeightMap:
        """Return the samples around a place, at most that many a side, on the map entirely."""
        parts = []
        for place, origin, step, count in (
            (x, self.origin_x, self.step_x, self.rows),
            (y, self.origin_y, self.step_y, self.columns),
        ):
            most = min(samples, count)
            middle = (place - origin) / step
            first = round(min(max(middle - (most - 1) / 2, 0.0), count - most))
            parts.append(range(first, first + most))
        return self._map_of(IndexBox(*parts))

    def detail(self, region: Region, samples: int, tell: Callable[[str], None]) -> HeightMap:
        """Return about `samples` means of heights a side of a region; see `Terrain.detail`."""
        from scipy.interpolate import RegularGridInterpolator

        need = self._needed(*region, spare=1)
        rows, columns = need
        shorter, longer = sorted(map(len, (rows, columns)))
        most = max(1, min(longer // samples, shorter // 2))
        stride = 1 << most.bit_length() - 1
        across = self._strips(rows, self.rows, stride)
        along = self._strips(columns, self.columns, stride)
        lowest = np.float32(max(self.z_min, LOWEST_SHOWN))
        pieces = [
            [np.full((len(x.places), len(y.places)), lowest, np.float32) for y in along]
            for x in across
        ]

        def read(start: int, stop: int) -> None:
            for number in range(start, stop):
                i, j = divmod(number, len(along))
                try:
                    pieces[i][j] = self._reader.read(across[i].samples, along[j].samples, stride)
                except TerrainError as error:
                    tell(str(error))

        in_chunks(read, len(across) * len(along), 1)
        heights = np.block(pieces)

        # the means of strips that end at a file's edge are nearer to each other than others
        places = [np.concatenate([strip.places for strip in strips]) for strips in (across, along)]
        even = [np.linspace(each[0], each[-1], len(each)) for each in places]
        if stride > 1:
            means = RegularGridInterpolator(places, heights)
            heights = means(tuple(np.meshgrid(*even, indexing="ij")))
        return HeightMap(
            heights,
            origin_x=self.origin_x + even[0][0] * self.step_x,
            origin_y=self.origin_y + even[1][0] * self.step_y,
            step_x=(even[0][1] - even[0][0]) * self.step_x,
            step_y=(even[1][1] - even[1][0]) * self.step_y,
            name=self.name,
            geo_origin=self.geo_origin,
        )

    def _strips(self, samples: range, count: int, stride: int) -> list[Strip]:
        """Return the parts of rows or columns that are in files of their own."""
        side = self._reader.grid.side
        strips = []
        for first in range(samples.start // side * side, samples.stop, side):
            own = range(first, min(first + side, count))
            start = (max(samples.start, first) - first) // stride * stride
            stop = -(-(min(samples.stop, own.stop) - first) // stride) * stride
            part = own[start:stop]
            means = -(-len(part) // stride)
            places = part.start - 0.5 + (np.arange(means) + 0.5) * len(part) / means
            strips.append(Strip(part, places))
        return strips

    def part(self, region: Region | None = None) -> HeightMap:
        """Return the samples of a region, x_min, x_max, y_min, y_max, as a map in memory.

        Raises ValueError for a region with too few or too many samples.
        """
        samples = IndexBox(*(range(part.start, part.stop) for part in selected(self, region)))
        if samples.size > MAX_CELLS:
            raise ValueError(
                f"{samples.size:,} samples, expected at most {MAX_CELLS:,}: name a smaller region"
            )
        return self._map_of(samples)

    def point_cloud(self, stride: int = 1, region: Region | None = None) -> NDArray[np.float32]:
        """Return every `stride`-th sample of a region; see `Terrain.point_cloud`."""
        return self.part(region).point_cloud(stride)

    def point_cloud_ned(self, stride: int = 1, region: Region | None = None) -> NDArray[np.float32]:
        """Return the same points in the same order as x north, y east, z down."""
        return self.part(region).point_cloud_ned(stride)

    def __reduce__(self) -> tuple[Any, ...]:
        return TiledHeightMap, (self._reader, self._memory_mb)

    def _altitude_of_point(self, x: float, y: float) -> float:
        if not math.isfinite(x - y):
            return math.nan
        return self._block_of_point(x, y)._point_altitude(x, y)

    def _surface_at(
        self, names: tuple[str, str], x: Any, y: Any
    ) -> tuple[float, float, float, bool, bool]:
        east, north = finite_floats(names, (x, y))
        return surface_at(self._block_of_point(east, north).ground, east, north)

    def _block_of_point(self, x: float, y: float) -> HeightMap:
        """Return a block under a point."""
        return self._block(self._needed(x, x, y, y))

    def _run(
        self,
        kernel: str,
        names: Sequence[str],
        values: Sequence[Any],
        outputs: Sequence[tuple[Any, type]],
        *options: Any,
    ) -> list[NDArray[Any]]:
        shape, arrays = flat_arrays(names, values, keep_float32=True)
        sums = [float(array.sum()) for array in arrays]
        if not math.isfinite(sum(sums)):
            check_finite(names, [array.reshape(shape) for array in arrays])
        if kernel == "insides" or not arrays[0].size:  # needs no heights
            return run(kernel, self.ground, names, values, outputs, *options)

        x, y = arrays[:2]
        spare = int(kernel == "gradient_rates" or any(options))  # smooth ones see the next samples
        results: list[NDArray[Any]] = []
        for chosen, block in self._pieces((x, x), (y, y), self._block, spare):
            if isinstance(chosen, slice):
                return run(kernel, block.ground, names, values, outputs, *options)
            part = run(kernel, block.ground, names, [a[chosen] for a in arrays], outputs, *options)
            results = results or [np.empty((x.size, *p.shape[1:]), p.dtype) for p in part]
            for whole, piece in zip(results, part, strict=True):
                whole[chosen] = piece
        return [result.reshape(shape + result.shape[1:]) for result in results]

    def _cast(self, inputs: list[NDArray[Any]], ranges: Floats, normals: Floats) -> bool:
        origins, directions, limits = inputs
        is_good = np.isfinite(origins).all() and np.isfinite(directions).all()
        if not (is_good and directions.any(axis=1).all() and (limits >= 0.0).all()):
            return False

        # short rays: one block holds all that they can meet
        reach = float(limits.max())
        if math.isfinite(reach):
            low = origins.min(axis=0) - reach
            high = origins.max(axis=0) + reach
            need = self._needed(low[0], high[0], low[1], high[1])
            if self._fits(need, ranges.size):
                with suppress(TerrainError):
                    return ray_cast.cast_over(self._block(need), inputs, ranges, normals)

        self._follow(inputs, ranges, normals)
        return True

    def _follow(self, inputs: list[NDArray[Any]], ranges: Floats, normals: Floats) -> None:
        """Write ranges and normals of rays, piece by piece."""
        origins, along, limits = (
            np.broadcast_to(array, (ranges.size, *array.shape[1:])).astype(np.float64)
            for array in inputs
        )
        along /= np.abs(along).max(axis=1, keepdims=True)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        ranges[:] = np.inf
        normals[:] = np.nan

        cell = min(self.step_x, self.step_y)
        longest = length = RAY_TILES * self._tile * cell
        begin, end = self._span(origins, along, limits)
        rays = np.flatnonzero((begin <= end) & np.isfinite(begin))
        t = begin[rays]
        while rays.size:
            over_ground = np.maximum(np.hypot(along[rays, 0], along[rays, 1]), 1e-9)
            stop = np.maximum(t + length / over_ground, np.nextafter(t, np.inf))
            stop = np.minimum(stop, end[rays])
            start = origins[rays] + t[:, None] * along[rays]
            last = origins[rays] + stop[:, None] * along[rays]
            x, y, _ = np.sort([start, last], axis=0).transpose(2, 0, 1)
            try:
                for part, block in self._pieces(tuple(x), tuple(y), self._block):
                    own = rays[part]
                    hits = np.empty(own.size)
                    facing = np.empty((own.size if normals.size else 0, 3))
                    piece = [
                        for_kernels(array[part], np.float64, (own.size, *array.shape[1:]))
                        for array in (start, along[rays], stop - t)
                    ]
                    ray_cast.cast_over(block, piece, hits, facing)
                    ranges[own] = t[part] + hits
                    if normals.size:
                        normals[own] = facing
            except TerrainError:
                # the faulty tile may be beside the rays, or behind what they meet
                if length <= cell / SHORTER:
                    raise
                length /= SHORTER
                continue
            length = min(length * SHORTER, longest)
            goes_on = np.isinf(ranges[rays]) & (stop < end[rays])
            rays = rays[goes_on]
            t = stop[goes_on]

    def _span(self, origins: Floats, along: Floats, limits: Floats) -> tuple[Floats, Floats]:
        """Return where rays may meet the ground, m; nowhere for begin > end or an infinite begin.

        A cell is added at both ends, where the kernel finds the edge of the map itself.
        """
        spare = self.step_x + self.step_y
        x_min, x_max, y_min, y_max = self.bounds
        low = np.array([x_min, y_min, -np.inf]) - ROUNDED_CELLS * spare
        high = np.array([x_max, y_max, self.z_max + ROUNDED_M]) + ROUNDED_CELLS * spare
        with np.errstate(divide="ignore", invalid="ignore"):
            sides = (np.stack([low, high])[:, None] - origins) / along
            begin = np.fmin(*sides).max(axis=1, initial=0.0)
            end = np.fmax(*sides).min(axis=1)
            to_low = (self.z_min - ROUNDED_M - origins[:, 2]) / along[:, 2]

        # no farther than down to the lowest point; a ray that enters below it hits the side there
        lowest = np.where(along[:, 2] < 0.0, np.maximum(to_low, begin), np.inf)
        end = np.where(begin > end, -np.inf, np.minimum(end, lowest))
        return np.maximum(begin - spare, 0.0), np.minimum(end + spare, limits)

    def _pieces(
        self,
        x: tuple[NDArray[Any], NDArray[Any]],
        y: tuple[NDArray[Any], NDArray[Any]],
        find: Callable[[IndexBox], Found],
        spare: int = 0,
    ) -> Iterator[tuple[slice | NDArray[np.intp], Found]]:
        """Yield indices of rectangles that one block may serve, and what `find` has for them.

        x, y: lowest and highest coordinates of the rectangles, m. A slice has all of them. spare:
        see `_needed`. Rectangles without a block are divided, as its faulty tile may be one that
        none of them needs.
        """
        waiting: list[slice | NDArray[np.intp]] = [slice(None)]
        while waiting:
            chosen = waiting.pop()
            low_x, high_x, low_y, high_y = (array[chosen] for array in (*x, *y))
            west, east = float(low_x.min()), float(high_x.max())
            south, north = float(low_y.min()), float(high_y.max())
            need = self._needed(west, east, south, north, spare)
            if low_x.size == 1 or self._fits(need, low_x.size):
                try:
                    found = find(need)
                except TerrainError:
                    if low_x.size == 1:
                        raise
                else:
                    yield chosen, found
                    continue

            # two halves of the longer side; of places that are the same, two halves of the list
            if east - west >= north - south:
                is_low = low_x + high_x < west + east
            else:
                is_low = low_y + high_y < south + north
            if is_low.all() or not is_low.any():
                is_low = np.arange(is_low.size) < is_low.size // 2
            numbers = np.arange(x[0].size)[chosen]
            waiting += [numbers[is_low], numbers[~is_low]]

    def _fits(self, need: IndexBox, count: int) -> bool:
        """Return whether one block may serve that many points or rays."""
        return self._tiles_around(need).size <= min(self._most_tiles, max(FEW_TILES, count))

    def _needed(
        self, west: float, east: float, south: float, north: float, spare: int = 0
    ) -> IndexBox:
        """Return the samples of the cells in a rectangle; those of the edge for one beyond it.

        spare: number of samples to add on each side, where the map goes on.
        """
        parts: list[range] = []
        for low, high, origin, step, samples in (
            (west, east, self.origin_x, self.step_x, self.rows),
            (south, north, self.origin_y, self.step_y, self.columns),
        ):
            first = int(min(max((low - origin) / step, 0.0), samples - 2))
            last = int(min(max((high - origin) / step, 0.0), samples - 2))
            parts.append(range(max(first - spare, 0), min(last + 2 + spare, samples)))
        return IndexBox(*parts)

    def _tiles_around(self, need: IndexBox) -> IndexBox:
        """Return the tiles that hold samples.

        Large boxes are widened to a coarser grid, so that places that move do not need a new block
        at each tile.
        """
        parts: list[range] = []
        for own, samples in zip(self._tiles_of(need), (self.rows, self.columns), strict=True):
            coarse = max(1, (1 << len(own).bit_length() - 1) >> 1)
            end = min(-(-own.stop // coarse) * coarse, -(-samples // self._tile))
            parts.append(range(own.start // coarse * coarse, end))
        return IndexBox(*parts)

    def _tiles_of(self, samples: IndexBox) -> IndexBox:
        """Return the tiles that hold samples, and no more."""
        return IndexBox(*(range(k.start // self._tile, -(-k.stop // self._tile)) for k in samples))

    def _found(self, need: IndexBox) -> HeightMap | None:
        """Return a block that holds samples."""
        key = next((key for key in reversed(self._blocks.values) if key.holds(need)), need)
        return self._blocks.get(key)

    def _block(self, need: IndexBox) -> HeightMap:
        """Return a block that holds samples; its tiles are read if they have to be.

        One that could not be read the last time is read again for a single point only.
        """
        with self._lock:
            block = self._found(need)
        if block is not None:
            return block

        tiles = self._tiles_around(need)
        fault = self._fault_in(tiles)
        if fault is not None and need.size > SAMPLES_OF_POINT:
            raise type(fault)(str(fault))
        ends = [part.stop * self._tile for part in tiles]
        samples = IndexBox(
            range(tiles.rows.start * self._tile, min(ends[0], self.rows)),
            range(tiles.columns.start * self._tile, min(ends[1], self.columns)),
        )
        block = self._map_of(samples)
        # the tolerance at the edge is that of the whole map
        ground = block.ground._replace(slack_u=self.ground.slack_u, slack_v=self.ground.slack_v)
        block._set(ground=ground)
        with self._lock:
            self._blocks.put(samples, block, samples.size)
        return block

    def _fault_in(self, tiles: IndexBox) -> TerrainError | None:
        """Return why one of the tiles could not be read the last time; None: all could."""
        faults = (self._faults.get(tile) for tile in itertools.product(*tiles))
        return next(filter(None, faults), None) if self._faults else None

    def _check_held(self, need: IndexBox) -> None:
        """Raise TerrainError if a block has to be read from files."""
        if self._found(need) is None:
            tiles = itertools.product(*self._tiles_around(need))
            if not all(tile in self._tiles.values for tile in tiles):
                raise TerrainError("not in memory")

    def _map_of(self, samples: IndexBox) -> HeightMap:
        """Return samples as a map in memory."""
        rows, columns = samples
        heights = np.empty((len(rows), len(columns)), np.float32)
        tiles = list(itertools.product(*self._tiles_of(samples)))

        def fill(start: int, stop: int) -> None:
            for i, j in tiles[start:stop]:
                # where the tile begins; it may reach beyond all sides
                u = i * self._tile - rows.start
                v = j * self._tile - columns.start
                heights[max(u, 0) : u + self._tile, max(v, 0) : v + self._tile] = self._heights_of(
                    i, j
                )[max(-u, 0) : len(rows) - u, max(-v, 0) : len(columns) - v]

        in_chunks(fill, len(tiles), 1)
        heights.flags.writeable = False  # shared, not copied
        return HeightMap(
            heights,
            origin_x=self.origin_x + rows.start * self.step_x,
            origin_y=self.origin_y + columns.start * self.step_y,
            step_x=self.step_x,
            step_y=self.step_y,
            name=self.name,
            geo_origin=self.geo_origin,
            files=self.files,
        )

    def _heights_of(self, i: int, j: int) -> NDArray[np.float32]:
        """Return the heights of a tile, which is read unless it is in memory."""
        with self._lock:
            tile = self._tiles.get((i, j))
        if tile is None:
            rows = range(i * self._tile, min((i + 1) * self._tile, self.rows))
            columns = range(j * self._tile, min((j + 1) * self._tile, self.columns))
            try:
                tile = _mapped(self._reader.read(rows, columns))
            except TerrainError as error:
                self._faults[i, j] = type(error)(str(error))  # without what its traceback holds
                raise
            self._faults.pop((i, j), None)
            with self._lock:
                self._tiles.put((i, j), tile, tile.size)
        return tile


def _mapped(heights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a copy in memory of its own, which goes back to the system when it is dropped.

    Tiles from the heap of many threads leave holes there: twice the limit of memory.
    """
    copy = np.frombuffer(mmap(-1, heights.nbytes), np.float32).reshape(heights.shape)
    copy[...] = heights
    return copy
