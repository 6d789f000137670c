"""Shaded relief: the ground as a picture, coloured by height and lit from the north-west, with axes in metres."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError
from rfly_terrain.map_search import StrPath
from rfly_terrain.point_cloud import Region, selected

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

    from rfly_terrain.height_map import HeightMap

_TINTS = ("#55906a", "#86b277", "#bccf8d", "#ebe1ab", "#dfc089", "#c0956a", "#a58475", "#cfc6c1", "#fcfbfa")
"""valley green to snow, evenly rising in lightness where the eye reads height from"""
_LIGHTS = ((315.0, 0.6), (0.0, 0.2), (270.0, 0.2))
"""azimuth (degrees clockwise from north) and share: one lamp alone hides the ridges that run along its rays"""
_LIGHT_ELEVATION_DEG = 45.0
_PIXELS = 1600
"""of the longer side at most: what a larger map is averaged down to"""
_STEEP = 0.75
"""exaggerated slope of the steepest tenth of the ground: steep enough for contrast, short of black faces"""


def draw_relief(
    axes: Axes,
    height_map: HeightMap,
    *,
    region: Region | None = None,
    vertical_exaggeration: float | None = None,
    contours: bool = True,
    colour_bar: bool = True,
) -> ScalarMappable:
    """Draws the map, or the samples in `region` (x_min, x_max, y_min, y_max; ENU metres), into matplotlib axes.

    x east to the right, y north up, equal scales, metres; what is drawn over it takes the same coordinates. Returns
    what a colour bar of one's own needs. `vertical_exaggeration` is the shading's only, by default chosen for contrast.
    Raises ValueError for a region without at least 2 x 2 samples.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    z, (x_min, x_max, y_min, y_max) = _north_up(height_map, region)
    low, high = float(z.min()), float(z.max())
    step_x, step_y = (x_max - x_min) / (z.shape[1] - 1), (y_max - y_min) / (z.shape[0] - 1)
    left, bottom = x_min - step_x / 2, y_min - step_y / 2  # edges of the picture: half a cell around the outer samples
    extent = (left, left + z.shape[1] * step_x, bottom, bottom + z.shape[0] * step_y)
    shown, step_x, step_y = _averaged_down(z, step_x, step_y)

    tints = LinearSegmentedColormap.from_list("rfly_terrain", _TINTS)
    scale = Normalize(low, high) if high > low else Normalize(low - 1, high + 1)
    light = _light(shown, step_x, step_y, vertical_exaggeration)
    picture = _lit(tints(scale(shown))[..., :3], light[..., None])
    axes.imshow(picture, extent=extent, origin="lower", interpolation="bicubic", zorder=0)
    if contours and high > low:
        _draw_contours(axes, shown, (left, bottom, step_x, step_y))
    axes.set(aspect="equal", xlim=(x_min, x_max), ylim=(y_min, y_max), xlabel="x east (m)", ylabel="y north (m)")
    colours = ScalarMappable(scale, tints)
    if colour_bar:
        figure: Any = axes.figure
        figure.colorbar(colours, ax=axes, label="z up (m)", shrink=0.85, pad=0.02, aspect=30)
    return colours


def write_relief(
    height_map: HeightMap,
    path: StrPath,
    *,
    region: Region | None = None,
    vertical_exaggeration: float | None = None,
    title: str | None = None,
) -> None:
    """Writes the relief as a picture; the ending of `path` is its format (png, pdf, svg, jpg …). Needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    bounds = height_map.bounds if region is None else region
    width, height = bounds[1] - bounds[0], bounds[3] - bounds[2]
    shape = min(max(height / width, 0.3), 1.6) if width > 0 else 1.0
    figure = Figure(figsize=(10.0, 8.0 * shape + 1.2), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ending = Path(path).suffix.lstrip(".").lower()
    known = canvas.get_supported_filetypes()
    if ending not in known:
        raise ConfigError(
            f"{path}: pictures can be written as {', '.join(sorted(known))}, not {ending or 'without ending'!r}"
        )
    axes = figure.add_subplot()
    draw_relief(axes, height_map, region=region, vertical_exaggeration=vertical_exaggeration)
    axes.set_title(height_map.name if title is None else title)
    figure.savefig(path)


def _north_up(height_map: HeightMap, region: Region | None) -> tuple[NDArray[np.float32], Region]:
    """(north, east) heights with both indices rising along the axes, and the ENU limits of their samples."""
    rows, columns = selected(height_map, region)
    z = height_map.heights[rows, columns].T
    if min(z.shape) < 2:
        raise ValueError(f"region {region} holds {z.shape[1]} x {z.shape[0]} samples, expected at least 2 x 2")
    x = [height_map.origin_x + r * height_map.step_x for r in (rows.start, rows.stop - 1)]
    y = [height_map.origin_y + c * height_map.step_y for c in (columns.start, columns.stop - 1)]
    z = z[:: 1 if y[0] < y[1] else -1, :: 1 if x[0] < x[1] else -1]
    return np.ascontiguousarray(z), (min(x), max(x), min(y), max(y))


def _averaged_down(z: NDArray[np.float32], step_x: float, step_y: float) -> tuple[NDArray[np.float32], float, float]:
    """(heights, step_x, step_y) of at most _PIXELS on a side."""
    rows, columns = z.shape
    height, width = min(rows, _PIXELS), min(columns, _PIXELS)
    if (height, width) != z.shape:
        z = np.asarray(cv2.resize(z, (width, height), interpolation=cv2.INTER_AREA), np.float32)
    return z, columns * step_x / width, rows * step_y / height


def _light(z: NDArray[np.float32], step_x: float, step_y: float, exaggeration: float | None) -> NDArray[np.float64]:
    """Brightness 0 … 1 of each pixel; level ground has 0.5."""
    from matplotlib.colors import LightSource

    slope_y, slope_x = np.gradient(z, step_y, step_x)
    if exaggeration is None:
        steep = float(np.quantile(np.hypot(slope_x, slope_y), 0.9))
        exaggeration = min(max(_STEEP / steep, 0.1), 1000.0) if steep > 0 else 1.0
    light = np.zeros(z.shape)
    for azimuth, share in _LIGHTS:
        elevation = math.radians(_LIGHT_ELEVATION_DEG)
        towards = LightSource(azimuth, _LIGHT_ELEVATION_DEG).direction
        facing = -exaggeration * (slope_x * towards[0] + slope_y * towards[1]) + towards[2]
        facing /= np.sqrt(1.0 + exaggeration**2 * (slope_x**2 + slope_y**2))
        light += share * (0.5 + 0.62 * (facing - math.sin(elevation)))
    return np.clip(light, 0.06, 0.94)


def _lit(picture: NDArray[Any], light: NDArray[Any]) -> NDArray[Any]:
    """Colours, darker below a light of 0.5 and paler above."""
    shaded, shine = np.minimum(2 * light, 1.0), np.maximum(2 * light - 1, 0.0)
    picture = picture * (0.3 + 0.7 * shaded)
    return np.clip(picture + (1 - picture) * 0.55 * shine, 0.0, 1.0)


def _draw_contours(axes: Axes, z: NDArray[np.float32], grid: tuple[float, float, float, float]) -> None:
    x_0, y_0, step_x, step_y = grid
    interval = _round_interval((float(z.max()) - float(z.min())) / 10)
    levels = np.arange(math.ceil(float(z.min()) / interval), math.floor(float(z.max()) / interval) + 1) * interval
    x, y = (
        start + (np.arange(n) + 0.5) * step for start, n, step in ((x_0, z.shape[1], step_x), (y_0, z.shape[0], step_y))
    )
    lines = axes.contour(x, y, z, levels=levels, colors="#2b211a", linewidths=0.5, alpha=0.45, zorder=1)
    axes.clabel(lines, levels[::2], fontsize=6.5, fmt="%g")


def _round_interval(about: float) -> float:
    """1, 2 or 5 times a power of ten, near `about`."""
    power = 10.0 ** math.floor(math.log10(about))
    return min((1 * power, 2 * power, 5 * power, 10 * power), key=lambda step: abs(step - about))
