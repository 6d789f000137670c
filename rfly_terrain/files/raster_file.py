# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Raster files of heights: opening them, their band, unit and datum, and their cells as heights.

GDAL reads them through rasterio, and PROJ's records of datums come through pyproj; both are
optional, the extra `geo`. GDAL has some 150 formats; some of them are texts that name other files
or addresses. Here it may use the formats of DRIVERS and read one file.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import StrPath, open_regular
from rfly_common.imports import require
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.files.ascii_grid import check_ascii_grid
from rfly_terrain.files.gaps import GapSearch, HeightScale, Nodata, drop_voids, holds_number
from rfly_terrain.files.web_files import WebPlace, web_opener

if TYPE_CHECKING:
    from rasterio import Affine
    from rasterio.crs import CRS
    from rasterio.io import DatasetReader

DRIVERS = ("GTiff", "AAIGrid", "DTED", "SRTMHGT", "USGSDEM")
"""GDAL formats that are read: each is one file of heights."""
MAX_BLOCK_BYTES = 256 << 20
"""Size of the piece that GDAL unpacks at once, at most; a raster declares it."""
MAX_BANDS = 1000
GDAL_OPTIONS: dict[str, Any] = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_TIFF_INTERNAL_MASK": "YES",
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}",
    "GDAL_HTTP_TIMEOUT": "1",
    "GDAL_HTTP_MAX_RETRY": "0",
    "GDAL_CACHEMAX": 256 << 20,
    "AAIGRID_DATATYPE": "Float64",
}
"""GDAL options: no files next to the raster (masks, overviews, world files, .aux.xml), no network,
a bounded cache, and no guess from the first numbers of a text that all are whole.
"""

WGS84 = "EPSG:4326"
_WGS84_RADIUS = 6_378_137.0
_FOOT = 0.3048
_US_FOOT = 1200 / 3937
_METRES = {
    **dict.fromkeys(("m", "metre", "masl", "米"), 1.0),
    **dict.fromkeys(("km", "kilometre"), 1000.0),
    **dict.fromkeys(("dm", "decimetre"), 0.1),
    **dict.fromkeys(("cm", "centimetre"), 0.01),
    **dict.fromkeys(("mm", "millimetre"), 0.001),
    **dict.fromkeys(("ft", "foot", "intft", "internationalfoot", "footinternational"), _FOOT),
    **dict.fromkeys(("usft", "ftus", "footus", "usfoot", "surveyfoot"), _US_FOOT),
    **dict.fromkeys(("ussurveyfoot", "footussurvey", "ussurveyft", "sft", "usfts"), _US_FOOT),
}
"""Length of the units of heights, m, by their names without marks, as singulars."""
UNITS = "m, km, dm, cm, mm, ft or us-ft"
_HEIGHT_NAME = re.compile(r"elev|height|altitude|\b(dem|dsm|dtm|z)\b", re.IGNORECASE)
"""Description of a band that holds heights."""
_PIECE_CELLS = 1 << 22
"""Cells that are read at once, about."""
_WHOLE = 1e-3
"""Share of a cell, across the raster, by which rows may turn and still count as upright."""

# Texts that name a coordinate reference system, and nothing else. GDAL's own reader takes names
# of files and addresses, too, behind prefixes such as `ESRI::` and `dict:`, and PROJ opens the
# files of `+init` and of grids.
LONGEST_CRS = 20_000
"""Characters; the WKT of compound systems has some thousands."""
_CRS_FORMS = re.compile(
    r"""
    (?!dict:) [a-z]\w* : \w+ (\+\w+)?          # EPSG:4326, ESRI:102003, IGNF:LAMB93, EPSG:4326+5773
    | urn:ogc:def:crs:[\w.:-]+
    | (WGS|NAD)\d\d
    | \+proj=\w+ (\s+ \+\w+ (=[\w.+@,:-]*)?)*  # without a slash: no path
    | [a-z_]+ (3d)? \s* \[ .* \]                # WKT
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_OPENS_FILES = re.compile(r"init=|grids=|grids\b.*\[|PARAMETERFILE|://", re.IGNORECASE)
_NO_GRID = re.compile(r"nadgrids=@null", re.IGNORECASE)
"""What WKT of web Mercator holds; it names no file."""


def checked_crs(text: str) -> str:
    """Return the text of a coordinate reference system without blanks at its ends.

    Raises ConfigError for one that could make GDAL or PROJ open a file or an address.
    """
    text = text.strip()
    is_form = len(text) <= LONGEST_CRS and _CRS_FORMS.fullmatch(text) is not None
    if not is_form or _OPENS_FILES.search(_NO_GRID.sub("", text)) or os.path.exists(text):
        raise ConfigError(
            f"crs {text!r}: expected such as EPSG:4326, a +proj= text or WKT, no file and no "
            "address"
        )
    return text


def rasterio_module() -> Any:
    """Return rasterio with its submodules. Raises ConfigError that says what to install."""
    rasterio = require("rasterio", "a raster")
    for name in ("crs", "enums", "features", "shutil", "warp", "windows"):
        require(f"rasterio.{name}", "a raster")
    return rasterio


def metres_per_unit(name: str) -> float:
    """Return the length of a unit, m. Raises ConfigError for an unknown name."""
    key = (
        re.sub(r"[\s_.()\[\]-]", "", name.lower()).replace("feet", "foot").replace("meter", "metre")
    )
    metres = _METRES.get(key) or _METRES.get(key.removesuffix("s"))
    if metres is None:
        raise ConfigError(f"unit {name!r}, expected {UNITS}")
    return metres


@contextmanager
def open_raster(path: StrPath) -> Iterator[DatasetReader]:
    """Yield a checked raster with a place; raise TerrainFileNotFound or TerrainFormatError."""
    with open_alone(path, DRIVERS) as dataset:
        if dataset.driver == "AAIGrid":
            check_ascii_grid(path)
        check_place(dataset, path)
        yield dataset


@contextmanager
def open_alone(path: StrPath, drivers: Sequence[str]) -> Iterator[DatasetReader]:
    """Yield a raster of one of some formats, whose pieces fit in memory; raise as `open_raster`.

    One on a server is a GeoTIFF; only its needed parts are read.
    """
    rasterio = rasterio_module()
    if isinstance(path, WebPlace):
        file = path.url
        opener: Any = web_opener(path)
        drivers = ("GTiff",)
    else:
        with terrain_file_errors(path):
            open_regular(path).close()
        file = os.path.abspath(path)  # a path, not another kind of name that GDAL knows
        opener = nullcontext()
    advice = "convert it with gdal_translate"
    if file.lower().endswith(".hgt"):
        advice = (
            "an .hgt is named after its south-western corner, such as N46E008.hgt, and has 1201 or "
            "3601 samples a side"
        )

    with (
        rasterio.Env(**GDAL_OPTIONS),
        opener as open_part,
        reader_errors(
            lambda text: TerrainFormatError(
                f"{path}: cannot be read as a raster ({', '.join(drivers)}); {advice}: {text}"
            )
        ),
        open_first(file, drivers, open_part) as dataset,
    ):
        _check_blocks(dataset, path)
        yield dataset


def open_first(file: str, drivers: Sequence[str], opener: Any = None) -> DatasetReader:
    """Open a file with the first driver that accepts it.

    If none does, raise the error of the first one, GTiff's. opener: see rasterio.open.
    """
    rasterio = rasterio_module()
    errors = []
    with warnings.catch_warnings():
        # check_place refuses a raster without a place
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        for driver in drivers:
            try:
                return rasterio.open(file, driver=driver, opener=opener)
            except rasterio.errors.RasterioIOError as error:
                errors.append(error)
    raise errors[0]


def check_place(dataset: DatasetReader, path: StrPath) -> None:
    """Raise TerrainFormatError for a raster that does not say where its cells lie."""
    if dataset.transform.is_identity and dataset.gcps[0]:
        raise TerrainFormatError(f"{path}: lies by control points; place its cells with gdalwarp")
    if dataset.transform.is_identity:
        raise TerrainFormatError(
            f"{path}: does not say where its cells lie; give it its corners first, such as with "
            "gdal_translate -a_srs EPSG:32632 -a_ullr WEST NORTH EAST SOUTH"
        )


def _check_blocks(dataset: DatasetReader, path: StrPath) -> None:
    """Raise TerrainFormatError for a raster that GDAL opens but that is unusable here.

    This happens before any of it is unpacked.
    """
    numbers = [*dataset.transform[:6], *dataset.scales[:MAX_BANDS], *dataset.offsets[:MAX_BANDS]]
    usable = all(map(math.isfinite, numbers)) and dataset.transform.determinant != 0
    if dataset.count > MAX_BANDS or not usable or not all(dataset.scales):
        raise TerrainFormatError(
            f"{path}: {dataset.count} bands placed by {tuple(dataset.transform[:6])}, scaled by "
            f"{dataset.scales[:3]}: expected 1 to {MAX_BANDS} bands, cells with an area and scales "
            "other than 0"
        )

    for (rows, columns), kind in zip(dataset.block_shapes, dataset.dtypes, strict=True):
        if kind.startswith(("complex", "cint")):
            raise TerrainFormatError(f"{path}: holds {kind} numbers, expected real ones")
        if rows * columns * np.dtype(kind).itemsize > MAX_BLOCK_BYTES:
            raise TerrainFormatError(
                f"{path}: packed in pieces of {rows:,} x {columns:,} cells, expected at most "
                f"{MAX_BLOCK_BYTES:,} bytes in one; pack it in tiles with gdal_translate "
                "-co TILED=YES"
            )


def coordinate_system(dataset: DatasetReader, crs: str | None, path: StrPath) -> CRS:
    """Return the coordinate system of a raster, or the one given by the caller instead."""
    rasterio = rasterio_module()
    if crs is not None:
        crs = checked_crs(crs)
        with reader_errors(
            lambda text: ConfigError(f"crs {crs!r}: {text}, expected such as EPSG:4326")
        ):
            return rasterio.crs.CRS.from_user_input(crs)
    if dataset.crs is None or not (dataset.crs.is_projected or dataset.crs.is_geographic):
        raise TerrainFormatError(
            f"{path}: names no coordinate reference system; say which one it is, such as "
            "--crs EPSG:4326 (degrees) or --crs EPSG:32632 (UTM zone 32 north)"
        )
    return dataset.crs


def band_of_heights(dataset: DatasetReader, band: int | None, path: StrPath) -> int:
    """Return the number of the band with the heights: the one asked for, or the only candidate.

    Raises ConfigError if it has to be asked for, TerrainFormatError for a picture.
    """
    if band is not None:
        if not 1 <= band <= dataset.count:
            raise ConfigError(f"{path}: band {band}, expected 1 … {dataset.count}")
        return band

    colours = [each.name for each in dataset.colorinterp]
    if {"red", "green", "blue"} <= set(colours) or "palette" in colours:
        kind = "a palette" if "palette" in colours else "red, green and blue"
        raise TerrainFormatError(
            f"{path}: is a picture ({kind}), no heights; take the elevation model it was drawn "
            "from, or name a band that does hold heights with --band"
        )

    bands = [n for n, colour in enumerate(colours, 1) if colour != "alpha"]
    if len(bands) > 1:
        named = [n for n in bands if _HEIGHT_NAME.search(dataset.descriptions[n - 1] or "")]
        bands = named if len(named) == 1 else bands
    if len(bands) != 1:
        listed = ", ".join(
            f"{n} {dataset.descriptions[n - 1] or ''} {dataset.dtypes[n - 1]}".replace("  ", " ")
            for n in bands[:8]
        )
        raise ConfigError(
            f"{path}: holds {dataset.count} bands ({listed}{', …' * (len(bands) > 8)}); say which "
            "one holds the heights with --band"
        )
    return bands[0]


def vertical_axis(crs: CRS) -> tuple[str, float | None]:
    """Return what a coordinate system counts heights from, and the unit of its heights, m.

    The name is empty, and the unit None, if it does not say. Depths have a unit below 0.
    """
    facts = crs.to_dict(projjson=True)
    if facts["type"] == "CompoundCRS":
        facts = facts["components"][-1]
        name = str(facts["name"])
    else:
        name = "the ellipsoid"
    facts = facts.get("base_crs", facts) if "coordinate_system" not in facts else facts

    axes = facts.get("coordinate_system", {}).get("axis", ())
    if len(axes) not in (1, 3):
        return "", None
    unit = axes[-1].get("unit", "metre")
    metres = unit["conversion_factor"] if isinstance(unit, dict) else 1.0
    return name, -metres if axes[-1].get("direction") == "down" else metres


def unshifted_datum(crs: CRS, latitude: float, longitude: float) -> str:
    """Return the name of a datum from which PROJ knows no way to WGS 84 at a place, else "".

    Modern datums, whose ellipsoid has the radius of WGS 84's, differ by a metre or two only.
    """
    pyproj = require("pyproj", "a raster")
    require("pyproj.aoi", "a raster")
    group = require("pyproj.transformer", "a raster").TransformerGroup
    own = pyproj.CRS.from_wkt(crs.to_wkt(version="WKT2_2019"))
    around = pyproj.aoi.AreaOfInterest(longitude, latitude, longitude, latitude)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of grids that are not installed
        ways = group(own, WGS84, always_xy=True, area_of_interest=around).transformers
    is_known = ways and not any(
        step.has_ballpark_transformation for step in ways[0].operations or ()
    )
    if is_known or abs(own.ellipsoid.semi_major_metre - _WGS84_RADIUS) < 1e-3:
        return ""
    return own.geodetic_crs.name if own.geodetic_crs is not None else own.name


def _moved(transform: Affine, u: Any, v: Any) -> tuple[Any, Any]:
    """Return points by an affine transform."""
    a, b, c, d, e, f = transform[:6]
    return a * u + b * v + c, d * u + e * v + f


class RasterHeights:
    """Heights of a raster's band, m, row 0 in the north and column 0 in the west.

    That is the raster's own order, or its cells turned and mirrored; only rows that are askew stay
    so. `transform` leads from (column, row) to the raster's own coordinates.
    """

    def __init__(
        self, dataset: DatasetReader, band: int, crs: CRS, scale: HeightScale, nodata: Nodata
    ) -> None:
        affine = type(dataset.transform)
        self.dataset = dataset
        self.crs = crs
        self.band = band
        self.scale = scale
        self.nodata = float(nodata) if isinstance(nodata, int) else nodata
        self.voids: list[float] | None = None
        self.rows = dataset.height
        self.columns = dataset.width

        # rows that run east or west, columns from the east, rows from the south
        a, b, c, d, e, f = dataset.transform[:6]
        longest = max(self.rows, self.columns)
        self._is_transposed = longest * max(abs(a), abs(e)) < _WHOLE * min(abs(b), abs(d))
        if self._is_transposed:
            a, b, d, e = b, a, e, d
            self.rows, self.columns = self.columns, self.rows
        self.is_upright = longest * max(abs(b), abs(d)) < _WHOLE * min(abs(a), abs(e))
        if self.is_upright:
            b = 0.0
            d = 0.0
        self._is_from_east = self.is_upright and a < 0
        if self._is_from_east:
            c += a * self.columns
            a = -a
        self._is_from_south = self.is_upright and e > 0
        if self._is_from_south:
            f += e * self.rows
            e = -e

        # degrees that begin anywhere: the middle between -180 and 180, the whole round for all
        self.turn = 0.0 if crs.is_projected else 2 * math.pi / crs.units_factor[1]
        if self.turn:
            # rasters whose cells lie on the degrees have the first column again as the last one
            whole = round(self.turn / a)
            if self.columns == whole + 1 and not self._is_from_east:
                self.columns = whole
            middle = c + a * self.columns / 2 + b * self.rows / 2
            c -= self.turn * round(middle / self.turn)
        self.goes_round = bool(self.turn) and abs(a * self.columns - self.turn) < a / 100
        self.transform = affine(a, b, c, d, e, f)

    def gap_search(self, path: StrPath) -> GapSearch:
        """Return the search for cells without a height, which `read` then gives as NaN."""
        dtype = np.dtype(self.dataset.dtypes[self.band - 1])
        suspects = self.scale.suspects(dtype) if self.nodata != "none" else None
        return GapSearch(path, self.scale, suspects)

    def drop_undeclared(self, heights: NDArray[np.float32], path: StrPath) -> None:
        """Make NaN of numbers that stand for no height, judged by a part of the raster alone."""
        suspects = np.unique(self.scale.suspects(np.dtype(self.dataset.dtypes[self.band - 1])))
        voids: list[float] = []
        if np.isin(heights, suspects).any():
            search = self.gap_search(path)
            search.add(heights)
            voids = search.voids or []
        drop_voids(heights, voids)

    def world(self, columns: Any, rows: Any) -> tuple[Any, Any]:
        """Return own coordinates at (column, row)."""
        return _moved(self.transform, columns, rows)

    def transform_from(self, column: int, row: int) -> Affine:
        """Return the transform of the part that begins at a cell."""
        a, b, _, d, e, _ = self.transform[:6]
        x, y = self.world(column, row)
        return type(self.transform)(a, b, x, d, e, y)

    def cells(self, x: Any, y: Any, near: float) -> tuple[Floats, Floats]:
        """Return (column, row), 0.5 in the middle of the first, of own coordinates.

        near: own x of a place, on whose side of a turn by 360° the columns lie.
        """
        own_x = np.asarray(x, float)
        if self.turn:
            own_x = own_x - self.turn * np.round((own_x - near) / self.turn)
        return _moved(~self.transform, own_x, np.asarray(y, float))

    def read(self, rows: range, columns: range) -> NDArray[np.float32]:
        """Return heights, m, (rows, columns), NaN where there are none.

        Columns may leave a raster that goes round the Earth.
        """
        pieces = []
        start = columns.start
        while start < columns.stop:
            first = start % self.columns
            count = min(columns.stop - start, self.columns - first)
            pieces.append(self._read(rows, range(first, first + count)))
            start += count

        heights = pieces[0] if len(pieces) == 1 else np.hstack(pieces)
        if self.voids is not None:
            drop_voids(heights, self.voids)
        return heights

    def _read(self, rows: range, columns: range) -> NDArray[np.float32]:
        """Return heights within the raster; a mosaic reads them from several."""
        return self.means(rows, columns, 1)

    def means(self, rows: range, columns: range, stride: int) -> NDArray[np.float32]:
        """Return means of stride x stride cells, from the file's overviews where it has some.

        They are equal parts of the cells that are asked for, and NaN where the file or its user
        says that there are no heights.
        """
        row = self.rows - rows.stop if self._is_from_south else rows.start
        column = self.columns - columns.stop if self._is_from_east else columns.start
        place = (column, row, len(columns), len(rows))
        if self._is_transposed:
            place = (row, column, len(rows), len(columns))

        has_gaps = self.nodata != "none" and "all_valid" not in {
            flag.name for flag in self.dataset.mask_flag_enums[self.band - 1]
        }
        rasterio = rasterio_module()
        numbers = self.dataset.read(
            self.band,
            window=rasterio.windows.Window(*place),
            masked=has_gaps,
            out_shape=(-(-place[3] // stride), -(-place[2] // stride)),
            resampling=rasterio.enums.Resampling.average,
        )
        heights = self.scale.heights(np.ma.getdata(numbers))
        if has_gaps:
            heights[np.ma.getmaskarray(numbers)] = np.nan
        if isinstance(self.nodata, float):
            heights[holds_number(np.ma.getdata(numbers), self.nodata)] = np.nan

        if self._is_transposed:
            heights = heights.T
        east_west = -1 if self._is_from_east else 1
        return heights[:: -1 if self._is_from_south else 1, ::east_west]

    def pieces(self, rows: range, columns: range) -> Iterator[tuple[range, range]]:
        """Yield parts of some rows and columns, whole blocks of the file where that goes."""
        height, width = self.dataset.block_shapes[self.band - 1]
        if self._is_transposed:
            height, width = width, height
        wide = max(1, _PIECE_CELLS // (height * width)) * width
        high = max(1, _PIECE_CELLS // (min(wide, len(columns) or 1) * height)) * height
        for row in range(rows.start, rows.stop, high):
            for column in range(columns.start, columns.stop, wide):
                yield (
                    range(row, min(row + high, rows.stop)),
                    range(column, min(column + wide, columns.stop)),
                )
