# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plot of a fleet's tracks: over shaded relief, on the whole map, and heights along the paths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.point_cloud import Region
from rfly_terrain.plots.relief import draw_relief, picture, region_about

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Tracks = Mapping[int, NDArray[Any]]

_MAX_COLOURS = 10
"""Most vehicles with colours of their own and an entry in the legend."""
_TAIL_SHARE = 0.06
"""Newest share of each track, drawn bold."""


def draw_convoy(terrain: HeightMap, tracks: Tracks, path: Path) -> None:
    """Write a png of the tracks, (n, 3) ENU metres, by vehicle id.

    A dot marks each vehicle's last place. On the left is the ground around the tracks. On the right
    are the whole map, and each vehicle's height over the distance covered, with the map's own
    height below it.
    """
    tracks = {
        vehicle: np.asarray(track, float).reshape(-1, 3)
        for vehicle, track in tracks.items()
        if len(track)
    }
    with picture(path, (13.2, 6.6), dpi=100) as figure:
        panels = figure.subplot_mosaic(
            [["near", "map"], ["near", "heights"]],
            width_ratios=(1.75, 1),
            height_ratios=(1.7, 1),
        )
        _draw_maps(panels["near"], panels["map"], terrain, tracks)
        _draw_heights(panels["heights"], terrain, tracks)


def _draw_maps(near: Axes, overview: Axes, terrain: HeightMap, tracks: Tracks) -> None:
    """Draw the ground around the tracks, and the whole map with that region marked."""
    from matplotlib.patches import Rectangle

    region = _around(terrain, tracks)
    draw_relief(near, terrain, region=region)
    _draw_tracks(near, tracks)
    near.set_title(
        f"{terrain.name}: {len(tracks)} vehicles, {sum(map(len, tracks.values())):,} positions "
        "read from UDP datagrams"
    )

    draw_relief(overview, terrain, contours=False, colour_bar=False)
    x_min, x_max, y_min, y_max = region
    frame = Rectangle(
        (x_min, y_min),
        x_max - x_min,
        y_max - y_min,
        fill=False,
        edgecolor="white",
        linewidth=2.0,
    )
    overview.add_patch(frame)
    overview.set_title("the whole map", fontsize="medium")
    overview.tick_params(labelsize="small")


def _draw_tracks(axes: Axes, tracks: Tracks) -> None:
    """Draw tracks, with bold tails, and the vehicles' ids."""
    from matplotlib.patheffects import withStroke

    halo: list[Any] = [withStroke(linewidth=2.5, foreground="white")]
    for place, track in enumerate(tracks.values()):
        label = None if place else "tracks"
        axes.plot(*track[:, :2].T, color="white", linewidth=1.6, alpha=0.7, zorder=2, label=label)

    for number, (vehicle, track) in enumerate(sorted(tracks.items())):
        colour = f"C{number % _MAX_COLOURS}"
        tail = track[-max(2, round(_TAIL_SHARE * len(track))) :]
        axes.plot(
            tail[:, 0],
            tail[:, 1],
            color=colour,
            linewidth=3.5,
            solid_capstyle="round",
            zorder=3,
        )

        axes.plot(
            *track[-1, :2],
            "o",
            color=colour,
            markeredgecolor="white",
            markeredgewidth=1.4,
            markersize=9,
            zorder=4,
        )

        # id to the left of the direction of motion
        if len(tracks) <= _MAX_COLOURS:
            motion = track[-1, :2] - track[max(-len(track), -8), :2]
            left = np.array([-motion[1], motion[0]]) / max(float(np.linalg.norm(motion)), 1e-9)
            x, y = track[-1, :2].tolist()
            text = axes.annotate(
                str(vehicle),
                (x, y),
                xytext=(17 * float(left[0]), 17 * float(left[1])),
                textcoords="offset points",
                ha="center",
                va="center",
                color=colour,
                weight="bold",
                fontsize=9,
                zorder=5,
            )
            text.set_path_effects(halo)

    if tracks:
        axes.plot([], [], color="0.35", linewidth=3.5, label=f"last {_TAIL_SHARE:.0%} of a track")
        legend = axes.legend(loc="lower right", fontsize="small", framealpha=0.85)
        legend.get_frame().set_facecolor("#c0c8b8")


def _draw_heights(axes: Axes, terrain: HeightMap, tracks: Tracks) -> None:
    """Draw each vehicle's z over the distance covered, above the ground of the map."""
    largest_gap = 0.0
    for number, (vehicle, track) in enumerate(sorted(tracks.items())):
        distance = np.concatenate(
            [[0.0], np.cumsum(np.linalg.norm(np.diff(track[:, :2], axis=0), axis=1))]
        )
        ground = terrain.altitude(track[:, 0], track[:, 1])
        largest_gap = max(largest_gap, float(np.abs(track[:, 2] - ground).max()))
        label = str(vehicle) if len(tracks) <= _MAX_COLOURS else None
        axes.plot(
            distance,
            track[:, 2],
            color=f"C{number % _MAX_COLOURS}",
            linewidth=1.5,
            label=label,
        )

    if tracks:
        axes.set_title(
            f"height of each vehicle, within {_length(largest_gap)} of the ground",
            fontsize="medium",
        )
        if len(tracks) <= _MAX_COLOURS:
            axes.legend(
                ncols=len(tracks),
                fontsize="small",
                loc="upper right",
                handlelength=1.0,
                columnspacing=1.0,
            )

    axes.set(xlabel="distance covered (m)", ylabel="z up (m)")
    axes.margins(x=0.01, y=0.25)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize="small")


def _length(metres: float) -> str:
    """Return a length as text, in mm below 1 m."""
    return f"{max(math.ceil(metres * 1000 - 1e-6), 1)} mm" if metres < 1.0 else f"{metres:.1f} m"


def _around(terrain: HeightMap, tracks: Tracks) -> Region:
    """Return the region around the tracks, with a margin; the whole map without tracks."""
    if not tracks:
        return terrain.bounds
    points = np.concatenate(list(tracks.values()))[:, :2]
    low = points.min(axis=0)
    high = points.max(axis=0)

    margin = max(
        0.4 * float((high - low).max()),
        8 * abs(terrain.step_x),
        8 * abs(terrain.step_y),
    )
    half = np.maximum((high - low) / 2 + margin, 0.3 * float((high - low).max()) + margin)
    return region_about(terrain, (low + high) / 2, half)
