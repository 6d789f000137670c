# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shaded relief and hillshade.

Relief shows heights in colours, lit from the north-west, with axes in metres; hillshade is an
array.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, open_whole
from rfly_common.imports import require
from rfly_terrain.height_map.point_cloud import Region, selected

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.imagery.imagery import Imagery

_TINTS = (
    "#43786a",
    "#57896a",
    "#749a6b",
    "#95a96d",
    "#b7b873",
    "#d2c37f",
    "#e3cd8f",
    "#eed6a0",
)
"""Valley green to sand: the lightness rises evenly, so that height reads without hues too. The
highest ground isn't white, which would look like missing data.
"""
_PIXELS = 1600
"""Longer side, at most, pixels; larger maps are averaged down to it."""
_SMOOTH_PIXELS = 1000
"""Longer side to which smaller maps are interpolated, pixels, about that of the picture."""
_LIGHTS = ((315.0, 0.6), (0.0, 0.2), (270.0, 0.2))
"""Azimuth (degrees clockwise from north) and share of each lamp; a single one hides the ridges
along its rays.
"""
_LIGHT_ELEVATION_DEG = 45.0
"""Elevation of the lamps, degrees."""
_STEEP = 0.75
"""Exaggerated slope of the steepest tenth of the ground: steep enough for contrast, without black
faces.
"""


def hillshade(z: Floats, step_x: float, step_y: float, exaggeration: float | None = None) -> Floats:
    """Return brightness 0 … 1 of heights, lit from the north-west.

    Heights are in m, rows along y north, columns along x east. Level ground has 0.5. `exaggeration`
    of the heights: None chooses it by the slope of the ground.
    """
    slope_y, slope_x = np.gradient(z, step_y, step_x)
    if exaggeration is None:
        steep = float(np.quantile(np.hypot(slope_x, slope_y), 0.9))
        exaggeration = min(max(_STEEP / steep, 0.1), 1000.0) if steep > 0 else 1.0

    light = np.zeros(z.shape)
    up = math.sin(math.radians(_LIGHT_ELEVATION_DEG))
    level = math.cos(math.radians(_LIGHT_ELEVATION_DEG))
    for azimuth_deg, share in _LIGHTS:
        azimuth = math.radians(azimuth_deg)
        towards = slope_x * math.sin(azimuth) + slope_y * math.cos(azimuth)
        facing = up - exaggeration * level * towards
        facing /= np.sqrt(1.0 + exaggeration**2 * (slope_x**2 + slope_y**2))
        light += share * (0.5 + 0.62 * (facing - up))
    return np.clip(light, 0.06, 0.94)


def lit(colours: NDArray[Any], light: NDArray[Any]) -> NDArray[Any]:
    """Return RGB 0 … 1, darker below a light of 0.5 and paler above; the arrays broadcast."""
    shaded = np.minimum(2 * light, 1.0)
    shine = np.maximum(2 * light - 1, 0.0)
    colours = colours * (0.3 + 0.7 * shaded)
    return np.clip(colours + (1 - colours) * 0.55 * shine, 0.0, 1.0)


def draw_relief(
    axes: Axes,
    height_map: HeightMap,
    *,
    region: Region | None = None,
    vertical_exaggeration: float | None = None,
    contours: bool = True,
    colour_bar: bool = True,
    colours: Sequence[str] = _TINTS,
    imagery: Imagery | None = None,
) -> ScalarMappable:
    """Draw the map, or the samples in `region`, into matplotlib axes.

    `region` is x_min, x_max, y_min, y_max; ENU metres. x east to the right, y north up, equal
    scales, metres; overlays use the same coordinates. Returns the mappable of a separate colour
    bar. `colours`: from the lowest to the highest ground. `vertical_exaggeration` affects the
    shading only, by default chosen for contrast. `imagery` lies on the relief, then without a
    colour bar. Raises ValueError for a region with fewer than 2 x 2 samples.
    """
    require("matplotlib", "drawing")
    rows, columns, (x_min, x_max, y_min, y_max) = _shown(height_map, region)
    part = height_map.heights[rows, columns]
    span = float(part.min()), float(part.max())

    # one sample more: the region's rim lies between samples
    rows = _one_more(rows, height_map.rows)
    columns = _one_more(columns, height_map.columns)
    picture, z, extent, heights = _picture(
        height_map, rows, columns, span, vertical_exaggeration, colours
    )

    axes.imshow(picture, extent=extent, origin="lower", interpolation="bicubic", zorder=0)
    if imagery is not None:
        shown = (x_min, x_max, y_min, y_max)
        finest = max(x_max - x_min, y_max - y_min) / _PIXELS
        size = [max(1, round(side / finest)) for side in (x_max - x_min, y_max - y_min)]
        axes.imshow(imagery.texture(shown, *size), extent=shown, interpolation="bilinear", zorder=0)
    if contours and span[1] > span[0]:
        _draw_contours(axes, z, span, extent)

    axes.set(
        aspect="equal",
        xlim=(x_min, x_max),
        ylim=(y_min, y_max),
        xlabel="x east (m)",
        ylabel="y north (m)",
    )

    if colour_bar and imagery is None:
        figure: Any = axes.figure
        figure.colorbar(heights, ax=axes, label="z up (m)", shrink=0.85, pad=0.02, aspect=30)
    return heights


def relief_pixels(height_map: HeightMap, width: int, height: int) -> NDArray[np.uint8]:
    """Return RGB of the whole map from edge to edge, (height, width, 3).

    Row 0 is the northern one. The picture has no axes and contours. It is a texture: the outer
    edges of the outer pixels lie on the map's bounds.
    """
    rows = slice(0, height_map.rows)
    columns = slice(0, height_map.columns)
    picture, z, extent, _ = _picture(
        height_map, rows, columns, (height_map.z_min, height_map.z_max), None, _TINTS
    )

    # where the texture's pixels lie in the picture
    step_x, step_y = _pixel_size(z, extent)
    x_min, x_max, y_min, y_max = height_map.bounds
    x = x_min + (np.arange(width) + 0.5) * ((x_max - x_min) / width)
    y = y_max - (np.arange(height) + 0.5) * ((y_max - y_min) / height)
    column = (x - extent[0]) / step_x - 0.5
    row = (y - extent[2]) / step_y - 0.5
    places = np.meshgrid(column.astype(np.float32), row.astype(np.float32))
    colours = cv2.remap(
        picture.astype(np.float32),
        places[0],
        places[1],
        cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.rint(colours * 255).astype(np.uint8)


def check_picture_format(path: StrPath) -> None:
    """Raise ConfigError for a name with an ending of no picture format."""
    require("matplotlib", "drawing")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    ending = Path(path).suffix.lstrip(".").lower()
    known = FigureCanvasAgg.filetypes
    if ending not in known:
        raise ConfigError(
            f"{path}: pictures can be written as {', '.join(sorted(known))}, "
            f"not {ending or 'without ending'!r}"
        )


@contextmanager
def picture(path: StrPath, size: tuple[float, float], dpi: int = 110) -> Iterator[Figure]:
    """Yield a matplotlib figure of `size` (inches), and save it to `path` at the end.

    It needs no display. The ending of `path` is the format. Raises ConfigError if matplotlib is
    missing, and for an ending of no picture format.
    """
    check_picture_format(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    yield figure

    # the layout alone: savefig would draw everything twice for it
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine(None)
    with open_whole(path) as file:
        kind = Path(path).suffix[1:].lower()
        # level 4 takes half of the usual 6's time, for a file that is 7 % larger
        options: dict[str, Any] = {"pil_kwargs": {"compress_level": 4}} if kind == "png" else {}
        figure.savefig(file, format=kind, **options)


def region_about(height_map: HeightMap, middle: ArrayLike, half: ArrayLike) -> Region:
    """Return the part of the map within `half` (m, of x and y) of `middle`.

    A middle off the map is moved onto it. Both are scalars or (2,), ENU metres.
    """
    x_min, x_max, y_min, y_max = height_map.bounds
    centre = np.clip(middle, (x_min, y_min), (x_max, y_max))
    left, bottom = (centre - half).tolist()
    right, top = (centre + half).tolist()
    return max(left, x_min), min(right, x_max), max(bottom, y_min), min(top, y_max)


def write_relief(
    height_map: HeightMap,
    path: StrPath,
    *,
    region: Region | None = None,
    vertical_exaggeration: float | None = None,
    title: str | None = None,
    imagery: Imagery | None = None,
) -> None:
    """Write the relief as a picture; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …).
    """
    bounds = height_map.bounds if region is None else region
    width = bounds[1] - bounds[0]
    height = bounds[3] - bounds[2]
    shape = min(max(height / width, 0.3), 1.6) if width > 0 else 1.0
    with picture(path, (10.0, 8.0 * shape + 1.2), dpi=120) as figure:
        axes = figure.add_subplot()
        draw_relief(
            axes,
            height_map,
            region=region,
            vertical_exaggeration=vertical_exaggeration,
            imagery=imagery,
        )
        axes.set_title(height_map.name if title is None else title)


def _picture(
    height_map: HeightMap,
    rows: slice,
    columns: slice,
    heights: tuple[float, float],
    exaggeration: float | None,
    colours: Sequence[str],
) -> tuple[Floats, Floats, Region, ScalarMappable]:
    """Return RGB of each pixel, heights, limits, and the scale of the heights.

    RGB is 0 … 1, heights and limits are as in `_north_up`, and the scale has its colours.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    z, extent = _north_up(height_map, rows, columns)
    low, high = heights
    tints = LinearSegmentedColormap.from_list("rfly_terrain", list(colours))
    np.clip(z, low, high, out=z)
    scale = Normalize(low, high) if high > low else Normalize(low - 1, high + 1)
    light = hillshade(z, *_pixel_size(z, extent), exaggeration)
    pixels = lit(tints(scale(z))[..., :3], light[..., None])
    return pixels, z, extent, ScalarMappable(scale, tints)


def _pixel_size(z: Floats, extent: Region) -> tuple[float, float]:
    """Return the size of a pixel along x and along y, m."""
    return (extent[1] - extent[0]) / z.shape[1], (extent[3] - extent[2]) / z.shape[0]


def _shown(height_map: HeightMap, region: Region | None) -> tuple[slice, slice, Region]:
    """Return the samples inside the region, and the part of it that the map covers."""
    rows, columns = selected(height_map, region)
    if min(rows.stop - rows.start, columns.stop - columns.start) < 2:
        raise ValueError(
            f"region {region} holds {rows.stop - rows.start} x {columns.stop - columns.start} "
            "samples, expected at least 2 x 2"
        )
    if region is None:
        return rows, columns, height_map.bounds

    x_min, x_max, y_min, y_max = region
    bounds = height_map.bounds
    limits = (
        max(x_min, bounds[0]),
        min(x_max, bounds[1]),
        max(y_min, bounds[2]),
        min(y_max, bounds[3]),
    )
    return rows, columns, limits


def _one_more(part: slice, count: int) -> slice:
    """Return the slice with the sample beyond each end, if there is one."""
    return slice(max(part.start - 1, 0), min(part.stop + 1, count))


def _north_up(height_map: HeightMap, rows: slice, columns: slice) -> tuple[Floats, Region]:
    """Return heights of at most _PIXELS on a side, and the ENU limits of their area.

    Heights are (north, east), both indices rising along the axes. The area reaches half a pixel
    beyond the outer pixels.
    """
    z = height_map.heights[rows, columns]
    x = [height_map.origin_x + r * height_map.step_x for r in (rows.start, rows.stop - 1)]
    y = [height_map.origin_y + c * height_map.step_y for c in (columns.start, columns.stop - 1)]

    if max(z.shape) > _PIXELS:
        size = min(z.shape[0], _PIXELS), min(z.shape[1], _PIXELS)
        pixels = np.asarray(cv2.resize(z, size[::-1], interpolation=cv2.INTER_AREA), np.float64)
        half_x = abs(height_map.step_x) / 2
        half_y = abs(height_map.step_y) / 2
    else:
        pixels = _spline(z, max(1.0, _SMOOTH_PIXELS / max(z.shape)))
        half_x = abs(x[1] - x[0]) / (pixels.shape[0] - 1) / 2
        half_y = abs(y[1] - y[0]) / (pixels.shape[1] - 1) / 2
    pixels = pixels.T[:: 1 if y[0] < y[1] else -1, :: 1 if x[0] < x[1] else -1]
    limits = (min(x) - half_x, max(x) + half_x, min(y) - half_y, max(y) + half_y)
    return np.ascontiguousarray(pixels), limits


def _spline(z: NDArray[np.float32], zoom: float) -> Floats:
    """Return `zoom` times as many samples from the first to the last one.

    They lie on a surface of continuous curvature: cubic B-splines whose coefficients are z minus a
    sixth of its second differences, along each axis (a quasi-interpolant). A cubic is reproduced,
    and a cliff has an effect over two cells only, while the interpolating spline rings on. Other
    interpolation (bicubic, bilinear) has kinks at the samples, which the light shows as a hatch.
    """
    from scipy.ndimage import affine_transform, correlate1d

    low = float(z.min())
    # two more samples around, on the line through the outer two: they keep the slopes at the rim
    wide = np.pad(z.astype(np.float64) - low, 2, mode="reflect", reflect_type="odd")
    for axis in (0, 1):
        wide = correlate1d(wide, [-1 / 6, 8 / 6, -1 / 6], axis, mode="nearest")

    shape = tuple(max(2, round((n - 1) * zoom) + 1) for n in z.shape)
    steps = [(n - 1) / (m - 1) for n, m in zip(z.shape, shape, strict=True)]
    with warnings.catch_warnings():
        # SciPy 1.11 still warns that a vector had another meaning before 0.18
        warnings.simplefilter("ignore", UserWarning)
        fine = affine_transform(
            wide, steps, offset=2.0, output_shape=shape, order=3, prefilter=False, mode="nearest"
        )
    return np.asarray(np.round(fine, 6) + low)  # rounded: level ground has no contours


def _draw_contours(axes: Axes, z: Floats, heights: tuple[float, float], extent: Region) -> None:
    """Draw contours at round heights."""
    low, high = heights
    step_x, step_y = _pixel_size(z, extent)
    interval = _round_interval((high - low) / 10)
    levels = np.arange(math.ceil(low / interval), math.floor(high / interval) + 1) * interval

    x = extent[0] + (np.arange(z.shape[1]) + 0.5) * step_x
    y = extent[2] + (np.arange(z.shape[0]) + 0.5) * step_y
    thin = 2 if min(z.shape) >= _SMOOTH_PIXELS // 2 else 1

    lines = axes.contour(
        x[::thin],
        y[::thin],
        z[::thin, ::thin],
        levels=levels,
        colors="#2b211a",
        linewidths=0.5,
        alpha=0.45,
        zorder=1,
    )
    axes.clabel(lines, levels[::2], fontsize=8, fmt="%g", colors="#2b211a")


def _round_interval(about: float) -> float:
    """Return 1, 2 or 5 times a power of ten, near `about`."""
    power = 10.0 ** math.floor(math.log10(about))
    return min((1 * power, 2 * power, 5 * power, 10 * power), key=lambda step: abs(step - about))
