# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""BinaryOccupancyMap: free and occupied cells, with occupancy, ray and inflation queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.files import StrPath
from rfly_terrain.occupancy.call_forms import in_call_forms
from rfly_terrain.occupancy.cell_grid import (
    SNAP,
    binary,
    not_zero,
    number,
    numbers,
    pair,
    points,
)
from rfly_terrain.occupancy.cell_map import CellMap
from rfly_terrain.occupancy.cells import inflated
from rfly_terrain.occupancy.places import (
    observed_rays,
    places_of,
    rays_reach,
)
from rfly_terrain.occupancy.rays import (
    clearance_of,
    end_cells,
    first_hits,
    free_touched,
    occupancy_as_clearance,
    segments_along,
    segments_between,
    touched_cells,
)
from rfly_terrain.occupancy.scan import Scan, directions, max_range_of, pose_of, poses_of

if TYPE_CHECKING:
    from typing_extensions import Self

OptionalArray = ArrayLike | None


class RayCells(NamedTuple):
    """Cells that many rays touch.

    Those of ray n are `cells[offsets[n]:offsets[n + 1]]`, in order from its start.
    """

    cells: NDArray[np.int32]
    """Row and column, (k, 2)."""
    offsets: Ints
    """Index of each ray's first cell, (n + 1,)."""
    is_end: Bools
    """True where the ray ends in the cell, on its edge or on its corner, (k,)."""


class BinaryOccupancyMap(CellMap):
    """Grid of free (False) and occupied (True) cells, with queries, rays and a moving window.

    It behaves as MATLAB's `binaryOccupancyMap` with Python's indices, from 0; with `one_based=True`
    rows and columns count from 1, as in MATLAB. The first row is the top row, of the largest y.
    Points are n-by-2 or one pair, in the frame "world" (default) or "local" in metres, or "grid" as
    row and column. Arguments and results are copied. Bad arguments raise ValueError. Reading from
    several threads at once is safe, writing is not.

    >>> m = BinaryOccupancyMap(10, 10, 2)
    >>> m.set_occupancy([[4, 4]], 1)
    array([ True])
    >>> m.ray_intersection([1, 3.9, 0], [0.0], 6)
    array([[3.5, 3.9]])
    """

    _title = "Binary Occupancy Grid"
    _words = "a BinaryOccupancyMap"
    _defaults: ClassVar = {**CellMap._defaults, "default_value": False, "layer_name": "binaryLayer"}

    @in_call_forms
    def __init__(
        self,
        width: Any = 10,
        height: Any = None,
        resolution: Any = None,
        *,
        grid_origin_in_local: ArrayLike | None = None,
        local_origin_in_world: ArrayLike | None = None,
        grid_location_in_world: ArrayLike | None = None,
        default_value: Any = None,
        layer_name: str | None = None,
        one_based: Any = None,
        frame: str = "world",
    ) -> None:
        """Make a map of width x height metres (10 x 10), rounded up to whole cells.

        Its cells are `default_value` (free). MATLAB's forms work too: `(rows, cols, resolution,
        "grid")`, `(matrix)`, `(matrix, resolution)`, `(map)`, `(map, resolution)`, with properties
        as keywords in either spelling.
        """
        keywords = {
            "grid_origin_in_local": grid_origin_in_local,
            "local_origin_in_world": local_origin_in_world,
            "grid_location_in_world": grid_location_in_world,
            "default_value": default_value,
            "layer_name": layer_name,
            "one_based": one_based,
        }
        self._begin(width, height, resolution, frame, keywords)

    @classmethod
    def from_grid_size(cls, rows: int, cols: int, resolution: float = 1, **properties: Any) -> Self:
        """Return a map of rows x cols cells, filled with `default_value`.

        `properties` are the keywords of the class.
        """
        return cls(rows, cols, resolution, frame="grid", **properties)

    @classmethod
    def from_matrix(cls, p: ArrayLike, resolution: float = 1, **properties: Any) -> Self:
        """Return a map from a matrix, row 0 on top: occupied where p is not 0.

        Keywords are those of the class.
        """
        cells = not_zero(p, "p")
        if cells.ndim != 2:
            raise ValueError(f"p: expected a matrix, got the shape {cells.shape}")
        return cls(cells, resolution, **properties)

    @classmethod
    def from_map(cls, source: BinaryOccupancyMap, resolution: float | None = None) -> Self:
        """Return a copy of a map, or (with a resolution) the same area in other cells.

        Both have the same bottom-left corner. A new cell is occupied if it shares area with an
        occupied cell of the source.
        """
        if not isinstance(source, BinaryOccupancyMap):
            raise ValueError(f"source: {type(source).__name__}, expected {cls._words}")
        return cls(source, resolution)

    def _changed(self) -> None:
        """Forget what was computed from the cells."""
        self._clearance: NDArray[np.uint8] | None = None
        self._swept = 0

    def __repr__(self) -> str:
        (x_0, x_1), (y_0, y_1) = self.x_world_limits, self.y_world_limits
        return (
            f"<BinaryOccupancyMap {self._rows} rows x {self._columns} columns, "
            f"{self.resolution:g} cells/m, "
            f"x {x_0:g} … {x_1:g} m, y {y_0:g} … {y_1:g} m, {int(self._cells.sum())} occupied>"
        )

    def occupancy_matrix(self) -> Bools:
        """Return the cells, (rows, columns) bool, row 0 on top."""
        return self._cells.copy()

    @overload
    def get_occupancy(
        self,
        points: OptionalArray = ...,
        size: OptionalArray = ...,
        *,
        frame: str = ...,
        return_valid: Literal[False] = ...,
    ) -> Bools: ...
    @overload
    def get_occupancy(
        self,
        points: OptionalArray = ...,
        size: OptionalArray = ...,
        *,
        frame: str = ...,
        return_valid: Literal[True],
    ) -> tuple[Bools, Bools]: ...
    @in_call_forms
    def get_occupancy(
        self,
        points: ArrayLike | None = None,
        size: ArrayLike | None = None,
        *,
        frame: str = "world",
        return_valid: bool = False,
    ) -> Any:
        """Return values (n,) bool at n points, `default_value` outside; or the whole matrix.

        With a size, the block whose bottom-left corner (in "grid": top-left cell) is `points`, of
        (x length, y length) metres (in "grid": rows, columns). With `return_valid` the result is a
        tuple of the values and which of them lie on the map.
        """
        values, inside = self._read(points, size, frame)
        result = np.where(inside, values, self.default_value)
        return (result, inside) if return_valid else result

    @overload
    def check_occupancy(
        self,
        points: OptionalArray = ...,
        size: OptionalArray = ...,
        *,
        frame: str = ...,
        return_valid: Literal[False] = ...,
    ) -> NDArray[np.int8]: ...
    @overload
    def check_occupancy(
        self,
        points: OptionalArray = ...,
        size: OptionalArray = ...,
        *,
        frame: str = ...,
        return_valid: Literal[True],
    ) -> tuple[NDArray[np.int8], Bools]: ...
    @in_call_forms
    def check_occupancy(
        self,
        points: ArrayLike | None = None,
        size: ArrayLike | None = None,
        *,
        frame: str = "world",
        return_valid: bool = False,
    ) -> Any:
        """Return `get_occupancy` in int8: 0 free, 1 occupied, −1 outside the map."""
        values, inside = self._read(points, size, frame)
        result = np.where(inside, values.astype(np.int8), np.int8(-1))
        return (result, inside) if return_valid else result

    def _read(
        self, places: ArrayLike | None, size: ArrayLike | None, frame: str
    ) -> tuple[Bools, Bools]:
        """Return (values, which are on the map) of points, of a block, or of everything."""
        found = places_of(self, places, size, frame)
        return found.read(self._cells), found.inside

    def _stored(self, values: Any, what: str) -> Bools:
        """Return True for numbers other than 0."""
        return not_zero(values, what)

    def _grown(self, cells: int) -> Bools:
        return inflated(self._cells, cells)

    def raycast(
        self, p1: ArrayLike, p2: ArrayLike, angle: float | None = None
    ) -> tuple[Ints, Ints]:
        """Return the cells under the segment from p1 to p2, or under a ray.

        A ray is `raycast(pose, range, angle)`. The results are (endpoints, midpoints), each (n, 2)
        row, column: cells that hold the end (two where it lies on an edge, four on a corner), and
        all others that the segment touches, edges and corners included, in order from the start.
        """
        # both ends
        grid = self._grid("world")
        if angle is None:
            start = points([pair(p1, "p1")], "p1")
            end = points([pair(p2, "p2")], "p2")
        else:
            start, theta = pose_of(p1)
            length = number(p2, "range", at_least=0.0)
            end = start + length * directions(theta, np.array([number(angle, "angle")]))

        cells, _, is_end = self._ray_cells(grid.cell_coordinates(start), grid.cell_coordinates(end))
        as_int = cells.astype(np.int64) + self._first_index
        return as_int[is_end], as_int[~is_end]

    def raycast_many(self, starts: ArrayLike, ends: ArrayLike) -> RayCells:
        """Return the cells under n segments, as `raycast`.

        Starts and ends are (n, 2) metres in the world; one start serves all.
        """
        grid = self._grid("world")
        start = points(starts, "starts")
        end = points(ends, "ends")
        if len(start) not in (1, len(end)):
            raise ValueError(
                f"starts: {len(start)} for {len(end)} ends, expected one or one per end"
            )
        rays = self._ray_cells(grid.cell_coordinates(start), grid.cell_coordinates(end))
        return rays._replace(cells=rays.cells + np.int32(1)) if self.one_based else rays

    def _ray_cells(self, start_uv: Floats, end_uv: Floats) -> RayCells:
        return RayCells(
            *touched_cells(segments_between(start_uv, end_uv), self._rows, self._columns)
        )

    def ray_intersection(self, pose: ArrayLike, angles: ArrayLike, max_range: float) -> Floats:
        """Return the points, (n, 2), m, where rays first meet an occupied cell, or NaN.

        Rays go from a pose (x, y, θ) in the directions θ + angle. Exact geometry: the first point
        of the ray in the closed square of an occupied cell. A point `max_range` or more away is a
        miss. Several poses (m, 3) give (m, n, 2).
        """
        poses = poses_of(pose)
        turned = numbers(angles, "angles").reshape(-1)
        limit = max_range_of(max_range) * self.resolution
        grid = self._grid("world")
        start_uv = grid.cell_coordinates(poses[:, :2])

        # rays no longer than the map
        reach = np.minimum(limit, rays_reach(self, start_uv))
        segments = segments_along(start_uv, reach, directions(poses[:, 2:], turned))
        distances, hits = first_hits(segments, self._clearance_for(len(segments)))
        result = grid.metres(hits)

        # a ray that begins in an occupied cell meets it at its start
        at_start = np.flatnonzero(distances == 0.0)

        result[distances >= limit - SNAP] = np.nan
        if at_start.size:
            result[at_start] = poses[at_start // turned.size, :2]
        return result if np.ndim(pose) == 1 else result.reshape(len(poses), turned.size, 2)

    def _clearance_for(self, rays: int) -> NDArray[np.uint8]:
        """Return the clearance for `first_hits`.

        Distances for leaps are computed once enough rays have been cast to pay for them.
        """
        if self._clearance is None:
            self._swept += rays * max(self._cells.shape) // 4
            if self._swept < self._cells.size:
                return occupancy_as_clearance(self._cells)
            self._clearance = clearance_of(self._cells)
        return self._clearance

    def insert_ray(
        self,
        start: ArrayLike,
        rays: ArrayLike | Scan,
        angles: Any = None,
        max_range: float | None = None,
    ) -> None:
        """Write observations: cells that a ray touches become free, those at its end occupied.

        Forms: `insert_ray(start, endpoints)`, `insert_ray(pose, ranges, angles, max_range)`, or
        with an object that has `ranges` and `angles`: `insert_ray(pose, scan, max_range)`. A ray of
        `max_range` or more is free over `max_range` metres and occupies nothing; NaN is skipped.
        Ends win over the rays of the same call.
        """
        rays_in_cells = observed_rays(self, start, rays, angles, max_range)
        ends = rays_in_cells.ends
        free_touched(segments_between(rays_in_cells.start, ends), self._cells)
        _, row, column = end_cells(ends[rays_in_cells.is_hit], self._rows, self._columns)
        self._cells[row, column] = True
        self._changed()

    def to_occupancy_grid(self) -> tuple[dict[str, Any], NDArray[np.int8]]:
        """Return (info, data) of a nav_msgs/OccupancyGrid.

        Data are row-major from the bottom row, 100 occupied, 0 free. info: `resolution` (metres per
        cell), `width`, `height`, `origin` (x, y, yaw).
        """
        x, y = self.grid_location_in_world.tolist()
        info = {"width": self._columns, "height": self._rows, "resolution": 1.0 / self.resolution}
        return {**info, "origin": (x, y, 0.0)}, (self._cells[::-1] * np.int8(100)).ravel()

    @classmethod
    def from_occupancy_grid(
        cls, info: Mapping[str, Any], data: ArrayLike, threshold: float = 50, unknown: Any = False
    ) -> Self:
        """Return the map of a nav_msgs/OccupancyGrid's info and data, see `to_occupancy_grid`.

        Cells are occupied from `threshold` up; negative values, usually −1, become `unknown`.
        """
        from rfly_terrain.occupancy.files import from_message

        cells, resolution, origin = from_message(info, data, threshold, binary(unknown, "unknown"))
        return cls(cells, resolution, local_origin_in_world=origin)

    def save(self, path: StrPath, image_format: str = "pgm") -> None:
        """Write map_server's files: the .yaml, and next to it the image, pgm or png.

        `path` gets the ending .yaml.
        """
        from rfly_terrain.occupancy.files import save_map

        save_map(
            path,
            self._cells,
            1.0 / self.resolution,
            self.grid_location_in_world.tolist(),
            image_format,
        )

    @classmethod
    def load(cls, path: StrPath, unknown: Any = False) -> Self:
        """Return the map of map_server's files: a .yaml and the image that it names.

        `unknown` is the value of cells that are neither free nor occupied. Raises
        TerrainFormatError (a ValueError) that names file and key, TerrainFileNotFound for a missing
        file.
        """
        from rfly_terrain.occupancy.files import load_map, occupied

        image = load_map(path)
        cells = occupied(image.cells, 50, binary(unknown, "unknown"))
        return cls(cells, image.resolution, local_origin_in_world=image.origin)

    # MATLAB's names; what they take is in call_forms.CALL_FORMS
    occupancyMatrix = occupancy_matrix
    getOccupancy: Callable[..., Any] = get_occupancy
    checkOccupancy: Callable[..., Any] = check_occupancy
    rayIntersection = ray_intersection
    insertRay = insert_ray
