# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tracks and worlds over the relief: the ground around them, lines, objects, and axes of series.

The pictures of the ground along a line and of a world from above are whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_common.imports import require
from rfly_terrain.height_map.places import Profile
from rfly_terrain.plots.relief import draw_relief, picture, region_about
from rfly_terrain.world.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rfly_common.arrays import Floats
    from rfly_terrain.height_map.height_map import HeightMap


_LEAST_CELLS = 4.0
"""Least half width of a relief, cells of its map."""


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
