# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Matplotlib plot of an occupancy map."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from rfly_common.imports import require
from rfly_terrain.occupancy.cell_grid import check_frame

if TYPE_CHECKING:
    from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap


def draw(occupancy: BinaryOccupancyMap, frame: str, ax: Any, fast_update: bool) -> Any:
    """Draw the map into axes (None: the current ones), see `BinaryOccupancyMap.show`.

    Returns the image artist.
    """
    require("matplotlib", "drawing")
    import matplotlib.pyplot as plt

    check_frame(frame)
    if ax is None:
        ax = plt.gca()
    rows, columns = occupancy.grid_size
    if frame == "grid":
        first = int(occupancy.one_based) - 0.5
        extent = (first, first + columns, first + rows, first)
        labels = ("Column", "Row")
    else:
        local = frame == "local"
        x = occupancy.x_local_limits if local else occupancy.x_world_limits
        y = occupancy.y_local_limits if local else occupancy.y_world_limits
        extent = (x[0], x[1], y[0], y[1])
        labels = ("X [meters]", "Y [meters]")
    if occupancy._drawn is None:
        occupancy._drawn = weakref.WeakKeyDictionary()
    image = occupancy._drawn.get(ax) if fast_update else None
    image = image() if image is not None else None
    if image is not None and image in ax.images:
        image.set_data(occupancy.occupancy_matrix())
        image.set_extent(extent)
    else:
        image = ax.imshow(
            occupancy.occupancy_matrix(),
            cmap="gray_r",
            vmin=0,
            vmax=1,
            interpolation="nearest",
            aspect="equal",
            extent=extent,
        )
        occupancy._drawn[ax] = weakref.ref(image)
    ax.set(xlabel=labels[0], ylabel=labels[1], title="Binary Occupancy Grid")
    return image
