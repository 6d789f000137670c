# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files of pictures: parts of them as red, green, blue and opacity, at any coarseness.

GDAL reads them through rasterio. A GeoTIFF with overviews is read by windows. Any other picture has
to be small, and is kept in memory, with overviews.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainFormatError
from rfly_common.files import StrPath
from rfly_common.imports import require
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_terrain.files.raster_file import GDAL_OPTIONS, open_alone, open_first, rasterio_module

if TYPE_CHECKING:
    from rasterio.io import DatasetReader, MemoryFile

DRIVERS = ("GTiff", "PNG", "JPEG")
"""GDAL formats of pictures."""
MAX_PIXELS_IN_MEMORY = 40_000_000
"""Pixels of a picture without overviews, at most: 200 MB with opacity and overviews."""
_SAMPLED = 512
"""Pixels of the longer side from which the range of other numbers than bytes is found."""
_PERCENTILES = (1.0, 99.0)
"""Share of the numbers below black and below white, %."""


class PictureFile:
    """Pixels of a file. Several threads may read at once."""

    def __init__(self, path: StrPath) -> None:
        """Open a file; raise TerrainFileNotFound, TerrainFormatError for an unusable one."""
        self.path = path
        with open_alone(path, DRIVERS) as dataset:
            self.rows: int = dataset.height
            self.columns: int = dataset.width
            self.transform = dataset.transform
            self.crs = dataset.crs
            self.has_place = not (dataset.transform.is_identity or dataset.gcps[0])
            self._bands = _colour_bands(dataset, path)
            self._palette = _palette(dataset)
            self._memory: MemoryFile | None = None
            if dataset.driver != "GTiff" or not dataset.overviews(self._bands[0]):
                self._memory = _in_memory(dataset, path)
        self._range = self._range_of_numbers()

    def read(self, rows: range, columns: range, shape: tuple[int, int]) -> NDArray[np.uint8]:
        """Return a part as RGBA, (*shape, 4); pixels are averaged if there are more of them."""
        numbers, opacity = self._read(rows, columns, shape)
        if self._palette is not None:
            picture = self._palette[numbers[0]]
            opacity = np.minimum(opacity, picture[..., 3])
        elif self._range is None:
            picture = np.moveaxis(numbers, 0, -1)
        else:
            low, high = self._range
            opacity = np.where(np.isfinite(numbers).all(axis=0), opacity, 0)
            shares = (np.nan_to_num(np.moveaxis(numbers, 0, -1), nan=low) - low) / (high - low)
            picture = np.rint(255.0 * np.clip(shares, 0.0, 1.0))

        result = np.empty((*shape, 4), np.uint8)
        result[..., :3] = picture[..., :3]
        result[..., 3] = opacity
        return result

    def _read(self, rows: range, columns: range, shape: tuple[int, int]) -> tuple[Any, Any]:
        """Return the numbers of a part, (bands, *shape), and their opacity, 0 to 255, (*shape)."""
        rasterio = rasterio_module()
        window = rasterio.windows.Window(columns.start, rows.start, len(columns), len(rows))
        nearest = rasterio.enums.Resampling.nearest
        average = rasterio.enums.Resampling.average
        with self._open() as dataset:
            numbers = dataset.read(
                self._bands,
                window=window,
                out_shape=(len(self._bands), *shape),
                resampling=nearest if self._palette is not None else average,
            )
            flags = {flag.name for band in dataset.mask_flag_enums for flag in band}
            if flags == {"all_valid"}:
                return numbers, np.full(shape, 255, np.uint8)
            # masks that follow from the numbers have no overviews to be averaged
            opacity = dataset.dataset_mask(
                window=window, out_shape=shape, resampling=average if "alpha" in flags else nearest
            )
            return numbers, opacity

    @contextmanager
    def _open(self) -> Iterator[DatasetReader]:
        if self._memory is None:
            with open_alone(self.path, DRIVERS) as dataset:
                yield dataset
            return
        with (
            rasterio_module().Env(**GDAL_OPTIONS),
            reader_errors(lambda text: TerrainFormatError(f"{self.path}: {text}")),
            open_first(self._memory.name, ("GTiff",)) as dataset,
        ):
            yield dataset

    def _range_of_numbers(self) -> tuple[float, float] | None:
        """Return what is black and what is white; None for bytes, which are shown as they are."""
        with self._open() as dataset:
            if set(np.array(dataset.dtypes)[np.array(self._bands) - 1]) == {"uint8"}:
                return None
        shrink = max(1.0, max(self.rows, self.columns) / _SAMPLED)
        shape = max(1, round(self.rows / shrink)), max(1, round(self.columns / shrink))
        numbers, opacity = self._read(range(self.rows), range(self.columns), shape)
        seen = numbers[:, opacity > 0].astype(np.float64)
        seen = seen[np.isfinite(seen)]
        low, high = np.percentile(seen, _PERCENTILES) if seen.size else (0.0, 1.0)
        return float(low), float(max(high, low + np.spacing(low) + 1e-9))


def _colour_bands(dataset: DatasetReader, path: StrPath) -> list[int]:
    """Return the bands of red, green and blue, or the one of a palette or of greys."""
    colours = [each.name for each in dataset.colorinterp]
    if {"red", "green", "blue"} <= set(colours):
        return [colours.index(name) + 1 for name in ("red", "green", "blue")]
    bands = [number for number, name in enumerate(colours, 1) if name != "alpha"]
    if len(bands) in (1, 3):
        return bands
    raise TerrainFormatError(
        f"{path}: none of its {dataset.count} bands is named red, green or blue; choose them with "
        "gdal_translate -b 3 -b 2 -b 1 -colorinterp red,green,blue"
    )


def _palette(dataset: DatasetReader) -> NDArray[np.uint8] | None:
    """Return the RGBA colours of a palette by number, (256, 4)."""
    if dataset.colorinterp[0].name != "palette" or dataset.dtypes[0] != "uint8":
        return None
    table = np.zeros((256, 4), np.uint8)
    for number, colour in dataset.colormap(1).items():
        table[number] = colour
    return table


def _in_memory(dataset: DatasetReader, path: StrPath) -> MemoryFile:
    """Return a copy of a small picture with overviews."""
    if dataset.width * dataset.height > MAX_PIXELS_IN_MEMORY:
        raise TerrainFormatError(
            f"{path}: {dataset.width:,} x {dataset.height:,} pixels without overviews, expected at "
            f"most {MAX_PIXELS_IN_MEMORY:,}; convert it with gdal_translate -of COG"
        )
    memory: MemoryFile = require("rasterio.io", "reading pictures").MemoryFile(ext=".tif")
    require("rasterio.shutil", "reading pictures").copy(
        dataset, memory.name, driver="COG", compress="NONE"
    )
    return memory
