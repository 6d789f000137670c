# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""BinaryOccupancyMap: free and occupied cells, with occupancy, ray and inflation queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.files import StrPath
from rfly_terrain.height_map.grid import snap
from rfly_terrain.occupancy.call_forms import in_call_forms
from rfly_terrain.occupancy.cell_grid import (
    SNAP,
    binary,
    cells_for,
    check_frame,
    checked_size,
    not_zero,
    number,
    numbers,
    pair,
    points,
)
from rfly_terrain.occupancy.cells import inflated, resample, sampled, shifted
from rfly_terrain.occupancy.map_frames import MapFrames
from rfly_terrain.occupancy.places import (
    observed_rays,
    places_of,
    places_to_write,
    rays_reach,
    shift_window,
    window_shift,
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
DEFAULTS: dict[str, Any] = {
    "grid_origin_in_local": (0, 0),
    "local_origin_in_world": (0, 0),
    "default_value": False,
    "layer_name": "binaryLayer",
    "one_based": False,
}
"""Properties of a map, by Python's names, and their defaults."""


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


class BinaryOccupancyMap(MapFrames):
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

    _drawn: Any = None
    """Images by axes, of `show`; None before the first."""
    _cells: Bools
    """Occupied cells, (rows, columns), row 0 on top."""

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
        check_frame(frame, ("world", "grid"))
        source = width if isinstance(width, BinaryOccupancyMap) else None
        given = {name: value for name, value in keywords.items() if value is not None}
        properties = DEFAULTS | ({} if source is None else source._properties()) | given
        location = properties.pop("grid_location_in_world", None)
        _check_location(location, given.get("local_origin_in_world"))

        # another map, a matrix, or a size
        if source is not None:
            cells, per_metre = source._resampled(_resolution_behind(height, resolution, frame))
        elif np.ndim(width) == 2:
            per_metre = _resolution_behind(height, resolution, frame)
            per_metre = 1 if per_metre is None else per_metre
            cells = not_zero(width, "p")
            checked_size(*cells.shape)
        else:
            per_metre = number(1 if resolution is None else resolution, "resolution", above=0.0)
            shape = _empty_shape(width, 10 if height is None else height, per_metre, frame)
            cells = np.full(shape, binary(properties["default_value"], "default_value"))

        super().__init__((cells.shape[0], cells.shape[1]), per_metre, **properties)
        if location is not None:
            self.grid_location_in_world = location
        self._cells = cells
        self._changed()

    def _properties(self) -> dict[str, Any]:
        """Return the properties by Python's names."""
        return {name: getattr(self, name) for name in DEFAULTS}

    def _resampled(self, resolution: Any) -> tuple[Bools, float]:
        """Return a copy of the cells, or the same area in other cells, and the resolution."""
        if resolution is None:
            return self._cells.copy(), self.resolution
        per_metre = number(resolution, "resolution", above=0.0)
        return resample(self._cells, per_metre / self.resolution), per_metre

    def copy(self) -> Self:
        """Return an independent map with the same cells and properties."""
        return type(self)(self)

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
            raise ValueError(f"source: {type(source).__name__}, expected a BinaryOccupancyMap")
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

    @in_call_forms
    def set_occupancy(self, points: ArrayLike, values: ArrayLike, *, frame: str = "world") -> Bools:
        """Write one value, or one per point, (n,) or (n, 1); later points win.

        0 is free, any other number occupied. A matrix of values with one location is a block,
        placed as that of `get_occupancy`. Returns, in the shape of points or block, which of them
        lie on the map; the others are ignored.
        """
        places, stored = places_to_write(self, points, not_zero(values, "values"), frame)
        places.write(self._cells, stored)
        self._changed()
        return places.inside

    @in_call_forms
    def inflate(self, radius: float, frame: str = "world") -> None:
        """Grow every occupied cell by a disc of cells.

        The disc holds the cells whose centres are at most the radius, rounded up to whole cells,
        away (to within rounding: i² + j² ≤ r² + r). The radius is in metres, or in cells in the
        frame "grid".
        """
        check_frame(frame, ("world", "grid"))
        reach = number(radius, "radius", at_least=0.0)
        if frame == "grid":
            cells = float(np.ceil(snap(reach, SNAP)))
        else:
            cells = cells_for(reach, self.resolution)
        self._cells = inflated(self._cells, int(min(cells, self._rows + self._columns)))
        self._changed()

    @in_call_forms
    def move(
        self,
        value: ArrayLike,
        *,
        move_type: str = "absolute",
        fill_value: Any = None,
        sync_with: Self | None = None,
    ) -> None:
        """Move the window over the world to `value`, or ("relative") by it, in whole cells.

        The shift is truncated towards zero. Cells that stay in view keep their value at their
        place. Those newly in view take the value of `sync_with` where it covers their centre, else
        `fill_value` or, without one, `default_value`.
        """
        shift = window_shift(self, value, move_type)
        fill = self.default_value if fill_value is None else binary(fill_value, "fill_value")

        # the cells, and those newly in view
        source = None if sync_with is None else self._checked_map(sync_with, "sync_with")
        source = self.copy() if source is self else source
        shift_window(self, shift)
        self._cells, revealed = shifted(self._cells, shift, fill)

        if source is not None:
            values, covered = self._values_of(source)
            revealed &= covered
            self._cells[revealed] = values[revealed]
        self._changed()

    def _checked_map(self, value: Any, what: str) -> Self:
        """Return the value if it is such a map. Raise ValueError for anything else."""
        if not isinstance(value, BinaryOccupancyMap):
            raise ValueError(f"{what}: {type(value).__name__}, expected a BinaryOccupancyMap")
        return cast("Self", value)

    def sync_with(self, source: Self) -> Bools:
        """Take over the values of another map at the centres of the cells, else `default_value`.

        Resolutions may differ. Returns the new matrix.
        """
        values, covered = self._values_of(self._checked_map(source, "source"))
        self._cells = np.where(covered, values, self.default_value)
        self._changed()
        return self.occupancy_matrix()

    def _values_of(self, source: Self) -> tuple[Bools, Bools]:
        """Return the values of another map at the centres of the cells, and where it has any."""
        return sampled(source._cells, source._grid("world"), self._grid("world"))

    @in_call_forms
    def show(self, frame: str = "world", *, ax: Any = None, fast_update: bool = False) -> Any:
        """Draw the map, free white and occupied black, into Matplotlib axes (the current ones).

        Units are those of the frame. `fast_update` reuses the image that this map drew there
        before. Returns the image artist.
        """
        from rfly_terrain.occupancy.plot import draw

        return draw(self, frame, ax, fast_update)

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

        `path` gets the ending .yaml where it has none.
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
    setOccupancy: Callable[..., Any] = set_occupancy
    syncWith = sync_with
    occupancyMatrix = occupancy_matrix
    getOccupancy: Callable[..., Any] = get_occupancy
    checkOccupancy: Callable[..., Any] = check_occupancy
    rayIntersection = ray_intersection
    insertRay = insert_ray


def _empty_shape(width: Any, height: Any, per_metre: float, frame: str) -> tuple[int, int]:
    """Return the size of an empty map, of metres or ("grid") of rows and columns."""
    if frame == "grid":
        return checked_size(number(width, "rows"), number(height, "cols"))
    across = number(width, "width", above=0.0)
    up = number(height, "height", above=0.0)
    return checked_size(cells_for(up, per_metre), cells_for(across, per_metre))


def _resolution_behind(height: Any, resolution: Any, frame: str) -> Any:
    """Return the resolution that stands behind a matrix or a map; None for none."""
    if (height is not None and resolution is not None) or frame == "grid":
        raise ValueError("expected (matrix), (matrix, resolution), (map) or (map, resolution)")
    return height if resolution is None else resolution


def _check_location(location: Any, local_origin: Any) -> None:
    """Raise ValueError if both properties say where a map is."""
    if location is not None and local_origin is not None:
        raise ValueError(
            "grid_location_in_world and local_origin_in_world both say where the map is, "
            "expected one"
        )
