# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tracks, worlds, costs and sight over the relief, and axes of series.

The pictures of the ground along a line and of a world from above are whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_common.imports import require
from rfly_terrain.costmap.traversability import LETHAL, TraversabilityGrid
from rfly_terrain.files.arrays import north_up
from rfly_terrain.height_map.places import Profile
from rfly_terrain.plots.relief import draw_relief, picture, region_about
from rfly_terrain.world.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

    from rfly_common.arrays import Floats
    from rfly_terrain.height_map.height_map import HeightMap


_LEAST_CELLS = 4.0
"""Least half width of a relief, cells of its map."""

_EASY_TO_HARD = ("#1a9850", "#a6d96a", "#fee08b", "#fdae61")
_FORBIDDEN = "#a50026"
_UNKNOWN = "#404040"
_GREY = ("#e0e0e0", "#e0e0e0")
"""One colour for all heights: only costs have colours."""
_OPACITY = 0.55
_PIXELS = 2000
"""Longer side, at most, pixels; a larger grid is drawn by the worst of its cells, of a larger
viewshed every n-th sample."""


def draw_ground(
    axes: Axes, terrain: HeightMap | None, middle: ArrayLike, half: ArrayLike
) -> Floats:
    """Draw the relief within `half` (m, of x and y) of `middle`, or a grid without a terrain.

    Return the half widths (2,), which are some cells of the map at least.
    """
    widths = np.broadcast_to(np.asarray(half, float), 2)
    if terrain is not None:
        widths = np.maximum(widths, _LEAST_CELLS * np.abs([terrain.step_x, terrain.step_y]))
        draw_relief(axes, terrain, region=region_about(terrain, middle, widths))
        return widths

    (left, bottom), (right, top) = np.subtract(middle, widths), np.add(middle, widths)
    axes.set(
        aspect="equal",
        xlim=(left, right),
        ylim=(bottom, top),
        xlabel="x east (m)",
        ylabel="y north (m)",
    )
    axes.grid(alpha=0.3)
    return widths


def draw_series_grid(axes: Axes, label: str, **ticks: Any) -> None:
    """Name the values of axes of time or distance, and draw their grid."""
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    axes.margins(x=0.01, y=0.12)
    axes.tick_params(**ticks)


_GROUND = "#8c6d46"
_OFF_MAP = "#b0b0b0"


def write_profile(profile: Profile, path: StrPath, *, title: str = "") -> None:
    """Write the picture of a profile; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …). Grey parts are off the map.
    """
    from rfly_terrain.plots.relief import picture

    with picture(path, (11.0, 4.5), dpi=120) as figure:
        axes = figure.add_subplot()
        altitude = profile.altitude
        base = altitude.min() - 0.05 * max(float(np.ptp(altitude)), 1.0)
        for where, colour in ((profile.inside, _GROUND), (~profile.inside, _OFF_MAP)):
            axes.fill_between(profile.distance, base, altitude, where, color=colour, alpha=0.5)

        axes.plot(profile.distance, altitude, color=_GROUND)
        axes.set(
            xlim=(0.0, profile.distance[-1]),
            xlabel="distance along the line, m",
            ylabel="z of the ground, m up",
            title=title,
        )
        axes.margins(y=0.1)
        axes.set_ylim(bottom=base)
        axes.grid(alpha=0.3)


_MARGIN = 10.0
"""Ground around the objects, m."""


def draw_objects(axes: Axes, world: World) -> None:
    """Draw the outlines of all parts into axes in metres, x east and y north.

    Higher parts cover lower ones.
    """
    require("matplotlib", "drawing")
    from matplotlib.collections import PolyCollection

    outlines = world.solids.outlines
    of_parts = [color for placed in world.objects for color in placed.model.colors]
    order = np.argsort(outlines.top, kind="stable")
    polygons = [
        outlines.corners[outlines.first[row] : outlines.first[row + 1]] for row in order.tolist()
    ]
    colors = np.array(of_parts, float).reshape(-1, 3)[order] / 255.0
    axes.add_collection(
        PolyCollection(polygons, facecolors=colors, edgecolors="#202020", linewidths=0.3, zorder=3)
    )


def draw_friction(axes: Axes, world: World) -> None:
    """Draw the areas of the ground's friction into axes in metres, each with its factor."""
    require("matplotlib", "drawing")
    from matplotlib.patches import Polygon

    for area in world.friction.areas:
        axes.add_patch(Polygon(area.corners, facecolor="#3060ff50", edgecolor="#3060ff", zorder=2))
        x, y = area.corners.mean(axis=0).tolist()
        axes.annotate(f"{area.friction:g}", (x, y), ha="center", va="center", zorder=4)


def write_world_picture(world: World, path: StrPath) -> None:
    """Write a picture of the part of the map with objects on it, from above.

    The ending of `path` is the picture's format. Raises ConfigError for a world without a terrain.
    """
    terrain = world.terrain
    if terrain is None:
        raise ConfigError("a picture of a world needs a terrain below it")

    region = terrain.bounds
    if world.objects or world.friction.areas:
        shown = [world.solids.vertices[:, :2], *(area.corners for area in world.friction.areas)]
        low = np.concatenate(shown).min(axis=0)
        high = np.concatenate(shown).max(axis=0)
        margin = np.maximum(_MARGIN, 3.0 * np.abs([terrain.step_x, terrain.step_y]))
        region = region_about(terrain, (low + high) / 2, (high - low) / 2 + margin)
    with picture(path, (9.0, 8.0)) as figure:
        axes = figure.subplots()
        draw_relief(axes, terrain, region=region)
        draw_friction(axes, world)
        draw_objects(axes, world)
        title = f"{world.name}: {len(world.objects)} objects on {terrain.name}"
        axes.set(xlim=region[:2], ylim=region[2:], title=title)


def draw_traversability(axes: Axes, terrain: HeightMap, grid: TraversabilityGrid) -> ScalarMappable:
    """Draw relief and costs into matplotlib axes.

    Green is easy, orange hard, red forbidden, dark unknown. Returns the mappable of a colour bar of
    the costs.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgba

    from rfly_terrain.plots.relief import draw_relief

    draw_relief(axes, terrain, contours=False, colour_bar=False, colours=_GREY)
    colours = LinearSegmentedColormap.from_list("rfly_costs", _EASY_TO_HARD)
    scale = Normalize(0, LETHAL - 1)

    cost, (height, width) = _thinned(grid.cost)
    picture: NDArray[Any] = np.asarray(colours(scale(cost.astype(np.float64))))
    picture[cost == LETHAL] = to_rgba(_FORBIDDEN)
    picture[cost < 0] = to_rgba(_UNKNOWN)

    x, y = grid.origin
    extent = (x, x + width * grid.resolution, y, y + height * grid.resolution)
    axes.imshow(
        picture, extent=extent, origin="lower", interpolation="nearest", alpha=_OPACITY, zorder=1
    )
    # whole cells: half a one lies beyond the outermost samples
    rows, columns = grid.cost.shape
    x_to = x + columns * grid.resolution
    y_to = y + rows * grid.resolution
    axes.set(xlim=(x, x_to), ylim=(y, y_to))

    return ScalarMappable(scale, colours)


def write_traversability(terrain: HeightMap, grid: TraversabilityGrid, path: StrPath) -> None:
    """Write the picture; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …).
    """
    from rfly_terrain.plots.relief import picture

    rows, columns = grid.cost.shape
    with picture(path, (10.0, 8.0 * min(max(rows / columns, 0.3), 1.6) + 1.2), dpi=120) as figure:
        from matplotlib.patches import Patch

        axes = figure.add_subplot()
        costs = draw_traversability(axes, terrain, grid)
        figure.colorbar(
            costs, ax=axes, label="cost", shrink=0.85, pad=0.02, aspect=30, alpha=_OPACITY
        )

        legend = [
            Patch(color=_FORBIDDEN, alpha=_OPACITY, label=f"forbidden, {grid.share_lethal:.1%}"),
            Patch(color=_UNKNOWN, alpha=_OPACITY, label=f"unknown, {grid.share_unknown:.1%}"),
        ]
        axes.legend(handles=legend, loc="upper right", framealpha=0.85)
        axes.set_title(f"{terrain.name}: {grid.share_free:.1%} can be driven")


def _thinned(cost: NDArray[np.int8]) -> tuple[NDArray[np.int8], tuple[int, int]]:
    """Return the worst of blocks of cells, and the rows and columns that they cover.

    There are at most _PIXELS blocks to a side.
    """
    factor = -(-max(cost.shape) // _PIXELS)
    rows, columns = (-(-n // factor) * factor for n in cost.shape)
    missing = ((0, rows - cost.shape[0]), (0, columns - cost.shape[1]))
    whole = np.pad(cost, missing, mode="edge")
    blocks = whole.reshape(rows // factor, factor, columns // factor, factor)
    return blocks.max(axis=(1, 3)), (rows, columns)


_OUT_OF_SIGHT = (0.10, 0.10, 0.22, 0.62)
"""Red, green, blue and opacity."""
_OBSERVER = "#d7301f"


def draw_viewshed(
    axes: Axes, height_map: HeightMap, seen: Bools, observer: tuple[float, float]
) -> None:
    """Draw relief and what is out of sight into matplotlib axes.

    `seen`: (rows, columns) of the map, as `viewshed` gives it; `observer`: x, y, ENU, m.
    """
    from rfly_terrain.plots.relief import draw_relief

    draw_relief(axes, height_map, contours=False, colour_bar=False)
    stride = -(-max(seen.shape) // _PIXELS)
    x_min, x_max, y_min, y_max = height_map.bounds
    half_x = 0.5 * abs(height_map.step_x)
    half_y = 0.5 * abs(height_map.step_y)

    shown = north_up(height_map, seen)[::stride, ::stride]
    shade = np.zeros((*shown.shape, 4))
    shade[~shown] = _OUT_OF_SIGHT
    extent = (x_min - half_x, x_max + half_x, y_min - half_y, y_max + half_y)
    axes.imshow(shade, extent=extent, interpolation="nearest", zorder=2)
    axes.plot(*observer, marker="^", color=_OBSERVER, markeredgecolor="white", ms=10, zorder=3)
    axes.set(xlim=(x_min, x_max), ylim=(y_min, y_max))


def write_viewshed(
    height_map: HeightMap,
    seen: Bools,
    observer: tuple[float, float],
    path: StrPath,
    *,
    title: str = "",
) -> None:
    """Write the picture; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …).
    """
    from rfly_terrain.plots.relief import picture

    x_min, x_max, y_min, y_max = height_map.bounds
    high = 8.0 * min(max((y_max - y_min) / (x_max - x_min), 0.3), 1.6) + 1.2
    with picture(path, (9.0, high), dpi=120) as figure:
        axes = figure.add_subplot()
        draw_viewshed(axes, height_map, seen, observer)
        axes.set_title(title)
