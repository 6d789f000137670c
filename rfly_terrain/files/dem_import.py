# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Import of digital elevation models: GeoTIFF and four other formats of heights.

`RasterLayout` says which cells of a raster become those of the map, or where they are warped to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath
from rfly_common.geodesy import geo_point
from rfly_terrain.files.gaps import Gaps, HeightScale, Nodata, check_gaps, fill_gaps
from rfly_terrain.files.raster_file import (
    RasterHeights,
    band_of_heights,
    coordinate_system,
    metres_per_unit,
    open_raster,
    unshifted_datum,
    vertical_axis,
)
from rfly_terrain.files.raster_layout import (
    Progress,
    ProjectionAxes,
    RasterLayout,
    Resampling,
    TargetGrid,
    check_arguments,
    check_grid,
)
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.height_map.height_map import HeightMap

if TYPE_CHECKING:
    from rasterio.crs import CRS
    from rasterio.io import DatasetReader

_SAME_UNIT = 1e-5
"""Relative difference of two units that count as one, such as foot and US survey foot."""


@dataclass(frozen=True)
class ImportFacts:
    """Facts of an import: what was done to the raster's cells."""

    axes: ProjectionAxes | None = None
    """The raster's own axes; None for one in degrees, and where they are not defined."""
    is_resampled: bool = False
    """False if the cells are the raster's own."""
    largest_shift: float = 0.0
    """Distance, m, between the raster's own cells under the map and their true places, at most; 0
    for cells that can't be kept.
    """
    is_shifted: bool = False
    """True if that is more than MAX_SHIFT of a cell."""
    share: float = 1.0
    """Share of the raster's area that the map covers, if it was not asked for a part."""
    gaps: Gaps = field(default_factory=Gaps)
    """Cells of the part of the raster under the map that hold no height."""
    filled_cells: int = 0
    """Number of the map's cells that were filled."""
    band: tuple[int, int] = (1, 1)
    """Band that was read, and their number."""
    metres: float = 1.0
    """Unit in which the heights were read, m; negative: they were depths."""
    unknown_unit_in: str = ""
    """Unit of the raster's lengths, if they are no metres and nothing names that of its heights."""
    unshifted_datum: str = ""
    """Datum that was taken as WGS 84, because no way from it is known at this place."""
    vertical_datum: str = ""
    """What the heights are above, as the file says; "": it says nothing."""


def import_dem(
    path: StrPath,
    *,
    band: int | None = None,
    resolution: float | None = None,
    center: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
    crs: str | None = None,
    unit: str | None = None,
    nodata: Nodata = None,
    keep_cells: bool = False,
    origin_altitude: float | Literal["ground"] = 0.0,
    fill_nodata: bool = False,
    resampling: Resampling = "bilinear",
    name: str | None = None,
    progress: Progress | None = None,
    on_read: Callable[[ImportFacts], None] | None = None,
) -> HeightMap:
    """Return a height map, ENU metres, from a band of a raster file.

    band: by default the only one, or the one whose description names heights. resolution: cell
    size, m; by default the raster's own. center: (latitude, longitude) in degrees of the map's
    origin, x = y = 0; by default the middle of the raster. size: (east, north) m of the part around
    the center; by default the largest upright rectangle within the raster. crs: coordinate system
    of the raster (such as EPSG:4326), if the file has none or a wrong one. unit: unit of the
    heights, such as "ft", if the file names none or a wrong one. nodata: number in the file that
    stands for no height; "none": every number is a height; by default what the file declares, and
    what can be no height (`rfly_terrain.files.gaps`). keep_cells: keep the cells of a metric raster
    whose scale or north is not true; the map then names no place on the Earth, as every latitude
    computed from it would be wrong. origin_altitude: the elevation that becomes z = 0, m; "ground":
    that of the ground at x = y = 0. fill_nodata: fill cells without data like a membrane fixed at
    their rims; otherwise they are refused. resampling: for all cells that are not kept. progress:
    called with 0 before the first cell is read. on_read: called with what was done.

    Raises TerrainFileNotFound, TerrainFormatError (an unusable raster), ConfigError (an argument,
    or rasterio is not installed).
    """
    check_arguments(resolution, size, center)
    progress = progress or _no_progress
    progress(0.0)
    with open_raster(path) as dataset:
        raster_crs = coordinate_system(dataset, crs, path)
        band = band_of_heights(dataset, band, path)
        scale = height_scale(dataset, band, raster_crs, unit, path)
        raster = RasterHeights(dataset, band, raster_crs, scale, nodata)

        # where the map lies
        layout = RasterLayout(path, raster, resolution, size)
        latitude, longitude = layout.center() if center is None else center
        longitude -= 360.0 * round(longitude / 360.0)
        own = layout.own_cells(center, is_asked=keep_cells)
        target = layout.target(own, latitude, longitude, is_asked=keep_cells)
        check_grid(target.grid, path, MAX_CELLS)

        # heights
        gaps = layout.find_gaps(target, lambda share: progress(share / 2))
        check_gaps(
            gaps, fill_nodata, path, ", or choose a part without gaps with --center and --size"
        )
        heights = layout.read(target, resampling, lambda share: progress((1 + share) / 2))
        facts = ImportFacts(
            axes=layout.axes_at(latitude, longitude),
            is_resampled=target.own_cells is None,
            largest_shift=0.0 if own is None else own.largest_shift,
            is_shifted=own is not None and own.is_shifted,
            share=layout.share(target),
            gaps=gaps,
            band=(band, dataset.count),
            metres=scale.metres,
            unknown_unit_in=_unknown_unit_in(dataset, band, raster_crs, unit),
            unshifted_datum=unshifted_datum(raster_crs, latitude, longitude),
            vertical_datum=vertical_axis(raster_crs)[0],
        )

    unknown = int(np.count_nonzero(np.isnan(heights)))
    if unknown == heights.size or (unknown and not fill_nodata):
        raise TerrainFormatError(f"{path}: does not cover {unknown:,} cells of the map")
    fill_gaps(heights)
    if on_read is not None:
        on_read(replace(facts, filled_cells=unknown))
    return _height_map(heights, target, origin_altitude, name or Path(path).stem)


@dataclass(frozen=True)
class RasterGrid:
    """Cells of a raster that are those of a map as they are."""

    grid: Grid
    """The cells in the raster's own coordinates, row 0 in the north."""
    origin: tuple[float, float]
    """The map's x = y = 0 in these coordinates."""
    place: tuple[float, float] | None
    """Latitude and longitude of that."""
    band: int
    scale: HeightScale


def raster_grid(dataset: DatasetReader, path: StrPath) -> RasterGrid:
    """Return the cells of a raster whose coordinates are metres east and north.

    Raises TerrainFormatError, and ConfigError for a raster that has to be resampled.
    """
    crs = coordinate_system(dataset, None, path)
    band = band_of_heights(dataset, None, path)
    scale = height_scale(dataset, band, crs, None, path)
    layout = RasterLayout(path, RasterHeights(dataset, band, crs, scale, None), None, None)
    own = layout.own_cells(None)
    if own is None or own.is_shifted:
        off = "" if own is None else f": they are up to {own.largest_shift:,.1f} m off"
        raise ConfigError(
            f"{path}: its cells are not metres east and true north of its middle{off}; make tiles "
            "of it with `rfly terrain tile`"
        )
    target = own.target
    return RasterGrid(target.grid, target.origin, target.place, band, scale)


def _no_progress(_share: float) -> None:
    """Show nothing."""


def height_scale(
    dataset: DatasetReader, band: int, crs: CRS, unit: str | None, path: StrPath
) -> HeightScale:
    """Return how a band's numbers become metres: by the user's unit, the band's or the datum's.

    Raises ConfigError for a unit of the user's, TerrainFormatError for one of the file's that is
    not known, or not that of its datum.
    """
    scale = dataset.scales[band - 1]
    offset = dataset.offsets[band - 1]
    datum, length = vertical_axis(crs)
    axis = length or 1.0
    named = (dataset.units[band - 1] or "").strip()
    if unit is not None:
        metres = metres_per_unit(unit)
    elif named:
        try:
            metres = metres_per_unit(named)
        except ConfigError as error:
            raise TerrainFormatError(
                f"{path}: band {band} is in {error}; name it with --unit"
            ) from None
        if length and not math.isclose(metres, abs(length), rel_tol=_SAME_UNIT):
            raise TerrainFormatError(
                f"{path}: band {band} is in unit {named!r}, but its datum, {datum}, in units of "
                f"{abs(length):.7g} m; say which one is right with --unit"
            )
    else:
        metres = abs(axis)
    return HeightScale(math.copysign(metres, axis), scale, offset)


def _unknown_unit_in(dataset: DatasetReader, band: int, crs: CRS, unit: str | None) -> str:
    """Return the unit of the raster's lengths if it is no metre and the heights' is not known."""
    name, metres = crs.units_factor
    is_known = unit or (dataset.units[band - 1] or "").strip() or vertical_axis(crs)[1]
    return str(name) if crs.is_projected and metres != 1.0 and not is_known else ""


def _height_map(
    heights: NDArray[np.float32],
    target: TargetGrid,
    origin_altitude: float | Literal["ground"],
    name: str,
) -> HeightMap:
    """Return the map of heights, which become relative to the origin's altitude in place."""
    grid = target.grid
    origin = target.origin
    x_west, y_south = grid.centres(grid.rows - 1, 0)

    def build(geo_origin: tuple[float, float, float] | None) -> HeightMap:
        return HeightMap(
            heights,
            origin_x=x_west - origin[0],
            origin_y=y_south - origin[1],
            step_x=grid.step_x,
            step_y=-grid.step_y,
            name=name,
            geo_origin=geo_origin,
        )

    if origin_altitude == "ground":
        altitude = float(build(None).altitude(0.0, 0.0))
    else:
        altitude = geo_point((0.0, 0.0, origin_altitude), "origin_altitude")[2]
    heights -= np.float32(altitude)
    heights.flags.writeable = False  # so that it is shared, not copied
    return build(None if target.place is None else (*target.place, altitude))
