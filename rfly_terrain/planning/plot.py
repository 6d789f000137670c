# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Matplotlib plots of plans on an occupancy map."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.arrays import Floats

EXPLORED_COLOR = "lightskyblue"
PATH_COLOR = "tab:blue"


def draw_plan(occupancy: Any, path: Floats, explored: Floats, ax: Any) -> Any:
    """Draw a map, explored places and a path (n, 2) in the world, m; return the axes.

    Without axes they are the current ones.
    """
    axes = occupancy.show(ax=ax).axes
    if len(explored):
        axes.plot(*np.asarray(explored).T, ".", color=EXPLORED_COLOR, markersize=2)
    if len(path):
        axes.plot(*np.asarray(path).T, "-", color=PATH_COLOR, linewidth=2)
        axes.plot(*path[0], "o", color="tab:green")
        axes.plot(*path[-1], "o", color="tab:red")
    return axes
