"""Plot of a plan: path over shaded relief, altitudes along it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rfly_common.imports import require

if TYPE_CHECKING:
    from rfly_terrain.costmap.traversability import TraversabilityGrid
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.planning.plan import Plan
    from rfly_terrain.world.world import World

_COLOURS = {0: "#b3261e", 1: "#1f4e9c"}
_NAMES = {0: "driven", 1: "flown"}
_FORBIDDEN = (0.25, 0.05, 0.05, 0.4)
_MARGIN = 0.15
"""of the path's extent, around it"""


def draw_plan(world: World, plan: Plan, path: Path, title: str, grid: TraversabilityGrid | None = None) -> None:
    """Writes the picture; the ending of `path` is its format. What `grid` forbids is dark. The world has a terrain."""
    require("matplotlib", "drawing")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from rfly_terrain.plots.relief import check_picture_format, draw_relief
    from rfly_terrain.plots.world import draw_objects

    terrain = world.terrain
    assert terrain is not None
    check_picture_format(path)
    figure = Figure(figsize=(10.0, 11.0), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, height_ratios=(3.2, 1))
    draw_relief(above, terrain, region=_region(terrain, plan))
    if grid is not None:
        _draw_forbidden(above, grid)
    draw_objects(above, world)
    x, y, z = plan.position.T
    for first, last, mode in _runs(plan.mode):
        above.plot(x[first:last], y[first:last], color="white", linewidth=4.0, alpha=0.8, zorder=4)
        above.plot(x[first:last], y[first:last], color=_COLOURS[mode], linewidth=2.0, zorder=5)
    above.plot(x[0], y[0], "o", color="white", markeredgecolor="black", markersize=9, zorder=6)
    above.plot(x[-1], y[-1], "*", color="white", markeredgecolor="black", markersize=15, zorder=6)
    above.set_title(title)
    _draw_altitudes(below, terrain, plan, z)
    figure.savefig(path)


def _draw_altitudes(axes: Any, terrain: HeightMap, plan: Plan, z: Any) -> None:
    distance = np.concatenate([[0.0], np.cumsum(plan.steps[0])])
    fine = np.linspace(0.0, distance[-1], 2000)
    x, y = (np.interp(fine, distance, plan.position[:, axis]) for axis in (0, 1))
    ground = terrain.altitude(x, y)
    low, high = min(ground.min(), z.min()), max(ground.max(), z.max())
    spare = max(0.08 * (high - low), 1.0)
    axes.fill_between(fine, ground, low - spare, color="#c0956a", linewidth=0, zorder=1)
    seen = set()
    for first, last, mode in _runs(plan.mode):
        label = None if mode in seen else _NAMES[mode]
        axes.plot(distance[first:last], z[first:last], color=_COLOURS[mode], linewidth=2.0, label=label, zorder=3)
        seen.add(mode)
    axes.set(
        xlabel="distance over ground (m)", ylabel="z up (m)", xlim=(0, distance[-1]), ylim=(low - spare, high + spare)
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="best")


def _draw_forbidden(axes: Any, grid: TraversabilityGrid) -> None:
    from matplotlib.patches import Patch

    rows, columns = grid.cost.shape
    x_0, y_0 = grid.origin
    shade = np.zeros((rows, columns, 4), np.float32)
    shade[(grid.cost == 100) | (grid.cost < 0)] = _FORBIDDEN
    extent = (x_0, x_0 + columns * grid.resolution, y_0, y_0 + rows * grid.resolution)
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(shade, extent=extent, origin="lower", interpolation="nearest", zorder=2)
    axes.set(xlim=limits[0], ylim=limits[1])
    axes.legend(handles=[Patch(color=_FORBIDDEN, label="forbidden or unknown")], loc="upper right", framealpha=0.85)


def _region(terrain: HeightMap, plan: Plan) -> tuple[float, float, float, float]:
    """The path and some ground around it, as square as the map lets it."""
    x, y = plan.position[:, 0], plan.position[:, 1]
    cell = max(abs(terrain.step_x), abs(terrain.step_y))
    half = (0.5 + _MARGIN) * max(float(np.ptp(x)), float(np.ptp(y)), 10 * cell)
    middle = (float(x.min() + x.max()) / 2, float(y.min() + y.max()) / 2)
    x_min, x_max, y_min, y_max = terrain.bounds
    return (
        max(x_min, middle[0] - half),
        min(x_max, middle[0] + half),
        max(y_min, middle[1] - half),
        min(y_max, middle[1] + half),
    )


def _runs(mode: Any) -> list[tuple[int, int, int]]:
    """(first pose, one past the last pose, mode) of each run of segments that are moved along in the same way."""
    ends = [0, *(np.flatnonzero(np.diff(mode)) + 1).tolist(), len(mode)]
    return [(a, b + 1, int(mode[a])) for a, b in itertools.pairwise(ends)]
