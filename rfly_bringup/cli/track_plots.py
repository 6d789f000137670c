# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plots of tracks over shaded relief: of a fleet, of a convoy, of a flown mission, of a plan."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.plots.overlays import draw_ground, draw_series_grid
from rfly_terrain.plots.relief import draw_relief, picture, region_about
from rfly_trajectory.fleet.fleet import Fleet
from rfly_trajectory.fleet.limit_check import Drive, LimitViolation, drive

if TYPE_CHECKING:
    from rfly_terrain.costmap.traversability import TraversabilityGrid
    from rfly_terrain.planning.plan import Plan
    from rfly_terrain.world.world import World

MAX_TRACKS = 200
"""Most vehicles that are drawn."""
MAX_OWN_COLOURS = 10
"""Most vehicles with a colour and a legend entry each; above that each group has one."""
_COINCIDE = 0.005
"""Lines nearer than this share of the panel's size are one line in the picture."""
_TAIL_SHARE = 0.06
"""Newest share of a convoy's tracks, which has the vehicles' colours."""
_DASH = 5.0
"""Length of a colour's dash in a line that several vehicles share, line widths."""


def draw_fleet(
    fleet: Fleet, path: Path, *, title: str | None = None, findings: Sequence[LimitViolation] = ()
) -> None:
    """Write the picture of a fleet over its terrain; the ending of `path` is its format.

    On the left are the first MAX_TRACKS tracks, with a dot at each start, a ring in the air. On the
    right are their profiles over the distance covered, with a dotted line for the ground below
    those that fly. Lines that lie on each other are dashed in the colours of all their vehicles.
    With more than MAX_OWN_COLOURS vehicles a colour stands for a group (`groups_of`), tracks in the
    air are wider, below the others, and the ground is that of the group's first. A red cross marks
    the place of each finding, at the picture's edge for those outside. It needs no display.

    Raise ConfigError for a fleet without a terrain and for an unknown picture format.
    """
    terrain = fleet.terrain
    if terrain is None:
        raise ConfigError("fleet: it has no terrain to draw it on")
    with picture(path, (14.0, 7.2)) as figure:
        drives = [drive(fleet, index) for index in range(min(len(fleet), MAX_TRACKS))]
        panels = figure.subplot_mosaic(
            [["map", "altitude"], ["map", "speed"], ["map", "slope"]],
            width_ratios=(1.35, 1),
            height_ratios=(1.3, 1, 1),
        )

        groups = groups_of([vehicle.name for vehicle in fleet.vehicles[: len(drives)]])
        flying = {i for i, vehicle in enumerate(fleet.vehicles) if vehicle.kind != "ground"}
        _draw_tracks(panels["map"], terrain, [done.position for done in drives], groups, flying)
        _mark_findings(panels["map"], findings)
        panels["map"].set_title(
            title if title is not None else f"{fleet.name or 'fleet'} over {terrain.name}"
        )

        _draw_profiles(panels, fleet, drives, groups)


def groups_of(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the groups of vehicles, as indices by their legend text.

    Up to MAX_OWN_COLOURS vehicles form a group each. Of more, those form a group whose names differ
    by a number at their end, as truck_1 and truck_2 do.
    """
    if len(names) <= MAX_OWN_COLOURS:
        return {name: [index] for index, name in enumerate(names)}
    members: dict[str, list[int]] = {}

    for index, name in enumerate(names):
        members.setdefault(re.sub(r"[-_ ]*\d+$", "", name) or name, []).append(index)

    return {
        f"{name} ({len(each)})" if len(each) > 1 else name: each for name, each in members.items()
    }


def draw_convoy(terrain: HeightMap, tracks: Mapping[int, ArrayLike], path: Path) -> None:
    """Write a picture of the tracks, (n, 3) ENU metres, that vehicles have made, by their ids.

    A dot marks each vehicle's last place, its colour the way there. On the right are the whole map,
    and the heights over the distance covered. The ending of `path` is its format. It needs no
    display.
    """
    lines = [np.asarray(track, float).reshape(-1, 3) for track in tracks.values()]
    name = "" if len(tracks) <= MAX_OWN_COLOURS else "vehicle "
    groups = groups_of([f"{name}{vehicle}" for vehicle in tracks])
    with picture(path, (13.2, 6.6), dpi=100) as figure:
        panels = figure.subplot_mosaic(
            [["map", "whole"], ["map", "heights"]], width_ratios=(1.6, 1), height_ratios=(1.5, 1)
        )
        newest_first = [line[::-1] for line in lines]
        _draw_tracks(
            panels["map"], terrain, newest_first, groups, ends="last place", coloured=_TAIL_SHARE
        )
        panels["map"].set_title(
            f"{terrain.name}: {len(lines)} vehicles, {sum(map(len, lines)):,} positions read from "
            "UDP datagrams"
        )

        # the whole map, with the part that is on the left
        draw_relief(panels["whole"], terrain, contours=False, colour_bar=False)
        panels["whole"].set_title("the whole map", fontsize="medium")
        left, right = panels["map"].get_xlim()
        bottom, top = panels["map"].get_ylim()
        panels["whole"].plot(
            [left, right, right, left, left], [bottom, bottom, top, top, bottom], color="white"
        )

        # heights over the distance
        heights = []
        for line in lines:
            steps = np.linalg.norm(np.diff(line[:, :2], axis=0), axis=1)
            heights.append(np.column_stack([np.append(0.0, np.cumsum(steps)), line[:, 2]]))
        _draw_lines(panels["heights"], heights, groups, 1.3)
        draw_series_grid(panels["heights"], "z up (m)")
        gap = max(np.abs(line[:, 2] - terrain.altitude(*line[:, :2].T)).max() for line in lines)
        panels["heights"].set(
            xlabel="distance covered (m)",
            title=f"height of each vehicle, within {_length(gap)} of the ground",
        )
        panels["heights"].title.set_fontsize("medium")


def _length(metres: float) -> str:
    """Return a length as text, in mm below 1 m."""
    return f"{max(math.ceil(metres * 1000 - 1e-6), 1)} mm" if metres < 1.0 else f"{metres:.1f} m"


def _draw_tracks(
    axes: Any,
    terrain: HeightMap,
    tracks: Sequence[Floats],
    groups: dict[str, list[int]],
    flying: AbstractSet[int] = frozenset(),
    ends: str = "start",
    coloured: float = 1.0,
) -> None:
    """Draw the relief around the tracks, and the tracks with their first places and names.

    Those in the air are rings, so that what drives below is seen. `ends` is what a first place is,
    `coloured` the first share of a track that has its vehicle's colour.
    """
    points = np.concatenate([track[:, :2] for track in tracks])
    low = points.min(axis=0)
    high = points.max(axis=0)
    half = draw_ground(axes, terrain, (low + high) / 2, 0.62 * float((high - low).max()))

    for track in tracks:
        axes.plot(*track[:, :2].T, color="white", linewidth=3.0, alpha=0.6, zorder=2)
    shown = [track[: max(2, round(coloured * len(track))), :2] for track in tracks]
    _draw_lines(axes, shown, groups, 1.5 if coloured == 1.0 else 3.0, flying)

    labelled: list[np.ndarray[Any, Any]] = []
    for number, (name, members) in enumerate(groups.items()):
        for index in members:
            colour = {"color": _colour(number)}
            look = _RING | {"markeredgecolor": _colour(number)} if index in flying else _DOT
            axes.plot(*tracks[index][0, :2], **colour, **look)

        # label starts that are apart; the legend has the others
        start = tracks[members[0]][0, :2]
        if all(np.hypot(*(start - other)) > 0.1 * half.max() for other in labelled):
            labelled.append(start)
            text = axes.annotate(
                name, start, (6, 6), textcoords="offset points", fontsize=8, zorder=5
            )
            text.set_bbox({"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.0})

    axes.plot([], [], color="0.35", label=ends, **_DOT)
    if flying:
        ring = _RING | {"markeredgecolor": "0.35"}
        axes.plot([], [], color="0.35", label="start in the air", **ring)
    axes.legend(fontsize="small", loc="lower right", framealpha=0.85)


def _draw_lines(
    axes: Any,
    lines: Sequence[Floats],
    groups: dict[str, list[int]],
    width: float,
    wide: AbstractSet[int] = frozenset(),
) -> None:
    """Draw a line, (k, 2), of each vehicle in its group's colour.

    Of lines that lie on each other the first is drawn, in dashes of all their colours. Where
    colours stand for groups, some are wide instead, below the others.
    """
    colours = {i: _colour(number) for number, each in enumerate(groups.values()) for i in each}
    for members in _coinciding(lines) if len(lines) <= MAX_OWN_COLOURS else [[i] for i in colours]:
        for place, index in enumerate(members):
            gap = len(members) - 1
            is_wide = index in wide and len(lines) > MAX_OWN_COLOURS
            dashes = (_DASH * (gap + 1 - place), (_DASH, _DASH * gap))
            axes.plot(
                *lines[members[0]].T,
                color=colours[index],
                linewidth=width * (2.5 if is_wide else 1.0),
                linestyle=dashes if gap else "-",
                zorder=2.5 if is_wide else 3,
            )


def _coinciding(lines: Sequence[Floats]) -> list[list[int]]:
    """Return groups of lines, (k, 2) each, that lie on each other in a panel around them all."""
    from scipy.spatial import cKDTree

    size = np.maximum(np.ptp(np.concatenate(lines), axis=0), 1e-9)
    trees = [cKDTree(line / size) for line in lines]
    groups: list[list[int]] = []
    for index, tree in enumerate(trees):
        for group in groups:
            first = trees[group[0]]
            apart = max(tree.query(first.data)[0].max(), first.query(tree.data)[0].max())
            if apart < _COINCIDE:
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _mark_findings(axes: Any, findings: Sequence[LimitViolation]) -> None:
    """Mark the places of findings."""
    positions = [finding.position for finding in findings if finding.position is not None]
    if not positions:
        return
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    shown = np.clip(positions, (left, bottom), (right, top))
    axes.plot(
        *shown.T,
        "x",
        color="red",
        markersize=9,
        markeredgewidth=2,
        zorder=6,
        clip_on=False,
        scalex=False,
        scaley=False,
        label="finding of the check",
    )
    axes.legend(fontsize="small", loc="lower right", framealpha=0.85)


def _draw_profiles(
    panels: dict[str, Any], fleet: Fleet, drives: list[Drive], groups: dict[str, list[int]]
) -> None:
    """Draw altitude, speed and slope over the distance covered."""
    width = 1.3 if len(groups) == len(drives) else 0.8
    for name, values in (
        ("altitude", [done.position[:, 2] for done in drives]),
        ("speed", [done.speed for done in drives]),
        ("slope", [np.degrees(np.arctan(done.slope)) for done in drives]),
    ):
        lines = [np.column_stack([d.distance, y]) for d, y in zip(drives, values, strict=True)]
        _draw_lines(panels[name], lines, groups, width)

    # ground below the first of each group
    flying = [
        (_colour(number), drives[members[0]])
        for number, members in enumerate(groups.values())
        if fleet.vehicles[members[0]].kind != "ground"
    ]
    for colour, first in flying:
        panels["altitude"].plot(first.distance, first.ground, ":", color=colour, linewidth=1.0)

    _name_lines(panels["altitude"], groups, bool(flying))

    # axes
    for name, label in (("altitude", "z up (m)"), ("speed", "speed (m/s)"), ("slope", "slope (°)")):
        draw_series_grid(panels[name], label, labelsize="small", labelbottom=name == "slope")
    panels["slope"].set_xlabel("distance covered (m)")
    panels["speed"].sharex(panels["altitude"])
    panels["slope"].sharex(panels["altitude"])


def _name_lines(axes: Any, groups: dict[str, list[int]], with_ground: bool) -> None:
    """Draw the legend of all groups, and of the ground below, above the panel."""
    for number, name in enumerate(groups):
        axes.plot([], [], color=_colour(number), label=name)
    if with_ground:
        axes.plot([], [], ":", color="0.35", label="ground below aircraft")
    axes.legend(
        fontsize="small",
        ncols=4,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        handlelength=1.5,
        frameon=False,
    )


def _colour(number: int) -> str:
    """Return one of matplotlib's ten colours; later groups are grey."""
    return f"C{number}" if number < MAX_OWN_COLOURS else "0.35"


_DOT: dict[str, Any] = {
    "marker": "o",
    "linestyle": "none",
    "markeredgecolor": "white",
    "markersize": 7,
    "zorder": 4,
}
"""Look of a start."""
_RING = _DOT | {"markersize": 11, "markerfacecolor": "none", "markeredgewidth": 1.5}
"""Look of a start in the air."""
_MARGIN = 0.15
"""Margin around a track, as a share of its larger side."""
_LEAST_M = 20.0
"""Least half width of a map, m."""


def draw_flight(track: ArrayLike, terrain: HeightMap | None, path: Path, title: str) -> None:
    """Write the picture of a track, (k, 5): time s, x east, y north, z up m, yaw rad.

    The ending of `path` is its format. A dot marks the start, a cross the end; the ground below is
    dotted. It needs no display.

    Raise ConfigError for an unknown picture format.
    """
    time, x, y, z = np.asarray(track, float).reshape(-1, 5).T[:4]
    with picture(path, (13.0, 6.2)) as figure:
        panels = figure.subplot_mosaic(
            [["map", "altitude"], ["map", "speed"]], width_ratios=(1.2, 1)
        )

        _draw_track(panels["map"], terrain, x, y)
        panels["map"].set_title(title)

        # altitude over time
        panels["altitude"].plot(time, z, color="C0", linewidth=1.4, label="track")
        if terrain is not None:
            panels["altitude"].plot(
                time, terrain.altitude(x, y), ":", color="0.35", linewidth=1.2, label="ground"
            )
            panels["altitude"].legend(fontsize="small")

        # speed over time
        steps = np.diff(time)
        moving = steps > 0.0
        speed = np.linalg.norm(np.diff([x, y, z], axis=1)[:, moving], axis=0) / steps[moving]
        panels["speed"].plot(time[1:][moving], speed, color="C1", linewidth=1.2)

        for name, label in (("altitude", "z up (m)"), ("speed", "speed (m/s)")):
            draw_series_grid(panels[name], label)
        panels["speed"].set_xlabel("time (s)")
        panels["speed"].sharex(panels["altitude"])


def _draw_track(axes: Any, terrain: HeightMap | None, x: Any, y: Any) -> None:
    """Draw a track over the relief, or over a grid without a terrain."""
    middle = np.array([x.min() + x.max(), y.min() + y.max()]) / 2
    least = max((0.5 + _MARGIN) * float(max(np.ptp(x), np.ptp(y))), _LEAST_M)
    half = float(draw_ground(axes, terrain, middle, least).max())

    axes.plot(x, y, color="white", linewidth=3.0, alpha=0.6, zorder=2)
    axes.plot(x, y, color="C0", linewidth=1.5, zorder=3)
    cross = _DOT | {"marker": "X", "markersize": 9}
    axes.plot(x[0], y[0], color="C0", **_DOT)
    axes.plot(x[-1], y[-1], color="C3", **cross)
    axes.plot([], [], color="0.35", label="start", **_DOT)
    axes.plot([], [], color="0.35", label="end", **cross)
    axes.legend(fontsize="small", loc="best", framealpha=0.85)

    left, bottom = middle - half
    right, top = middle + half
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")


_COLOURS = {0: "#b3261e", 1: "#1f4e9c"}
_NAMES = {0: "driven", 1: "flown"}
_FORBIDDEN = (0.42, 0.0, 0.6, 0.75)
"""Violet: no relief has it, and it is darker than sand and greens without hues too."""


def draw_plan(
    world: World, plan: Plan, path: Path, title: str, grid: TraversabilityGrid | None = None
) -> None:
    """Write the picture of a plan; the ending of `path` is its format.

    Cells that `grid` forbids are violet. The world must have a terrain.
    """
    from rfly_terrain.plots.overlays import draw_objects

    terrain = world.terrain
    assert terrain is not None
    with picture(path, (10.0, 11.0)) as figure:
        above, below = figure.subplots(2, 1, height_ratios=(3.2, 1))
        draw_relief(above, terrain, region=_region(terrain, plan))
        if grid is not None:
            _draw_forbidden(above, grid)
        draw_objects(above, world)

        x, y, z = plan.position.T
        for first, last, mode in _runs(plan.mode):
            above.plot(
                x[first:last], y[first:last], color="white", linewidth=4.0, alpha=0.8, zorder=4
            )
            above.plot(x[first:last], y[first:last], color=_COLOURS[mode], linewidth=2.0, zorder=5)

        # start and goal
        ends = {"color": "white", "linestyle": "none", "markeredgecolor": "black", "zorder": 6}
        start = above.plot(x[0], y[0], marker="o", markersize=9, label="start", **ends)
        goal = above.plot(x[-1], y[-1], marker="*", markersize=15, label="goal", **ends)

        _name_plan(above, plan, [*start, *goal], grid is not None)
        above.set_title(title, pad=30)
        _draw_altitudes(below, terrain, plan, z)


def _draw_altitudes(axes: Any, terrain: HeightMap, plan: Plan, z: Any) -> None:
    """Draw the plan's altitude and the ground over the distance."""
    distance = np.concatenate([[0.0], np.cumsum(plan.steps[0])])
    fine = np.linspace(0.0, distance[-1], 2000)
    x, y = (np.interp(fine, distance, plan.position[:, axis]) for axis in (0, 1))
    ground = terrain.altitude(x, y)

    low = min(ground.min(), z.min())
    high = max(ground.max(), z.max())
    spare = max(0.08 * (high - low), 1.0)
    axes.fill_between(
        fine, ground, low - spare, color="#c8b573", linewidth=0, label="ground", zorder=1
    )

    labelled_modes = set()
    for first, last, mode in _runs(plan.mode):
        label = None if mode in labelled_modes else _NAMES[mode]
        axes.plot(
            distance[first:last],
            z[first:last],
            color=_COLOURS[mode],
            linewidth=2.0,
            label=label,
            zorder=3,
        )
        labelled_modes.add(mode)

    axes.set(
        xlabel="distance over ground (m)",
        ylabel="z up (m)",
        xlim=(0, distance[-1]),
        ylim=(low - spare, high + spare),
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="best")


def _draw_forbidden(axes: Any, grid: TraversabilityGrid) -> None:
    """Shade the cells that are forbidden or unknown."""
    rows, columns = grid.cost.shape
    x_0, y_0 = grid.origin
    shade = np.zeros((rows, columns, 4), np.float32)
    shade[(grid.cost == 100) | (grid.cost < 0)] = _FORBIDDEN
    extent = (x_0, x_0 + columns * grid.resolution, y_0, y_0 + rows * grid.resolution)

    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(shade, extent=extent, origin="lower", interpolation="nearest", zorder=2)
    axes.set(xlim=limits[0], ylim=limits[1])


def _name_plan(axes: Any, plan: Plan, ends: list[Any], has_grid: bool) -> None:
    """Draw the legend of the way, its ends, and the ground that is forbidden."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    way = [
        Line2D([], [], color=_COLOURS[mode], linewidth=2.0, label=_NAMES[mode])
        for mode in np.unique(plan.mode).tolist()
    ]
    forbidden = [Patch(color=_FORBIDDEN, label="forbidden or unknown")] if has_grid else []
    axes.legend(
        handles=[*way, *ends, *forbidden],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=5,
        frameon=False,
    )


def _region(terrain: HeightMap, plan: Plan) -> tuple[float, float, float, float]:
    """Return the region of the path and some ground around it, as square as the map allows."""
    x = plan.position[:, 0]
    y = plan.position[:, 1]
    cell = max(abs(terrain.step_x), abs(terrain.step_y))
    half = (0.5 + _MARGIN) * max(float(np.ptp(x)), float(np.ptp(y)), 10 * cell)
    return region_about(terrain, ((x.min() + x.max()) / 2, (y.min() + y.max()) / 2), half)


def _runs(mode: Any) -> list[tuple[int, int, int]]:
    """Return (first pose, one past the last pose, mode) of each run of segments with one mode."""
    ends = [0, *(np.flatnonzero(np.diff(mode)) + 1).tolist(), len(mode)]
    return [(a, b + 1, int(mode[a])) for a, b in itertools.pairwise(ends)]
