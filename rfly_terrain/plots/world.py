# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pictures of worlds from above: the relief, and the objects on it in their own colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_common.imports import require
from rfly_terrain.plots.relief import draw_relief, picture, region_about
from rfly_terrain.world.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
