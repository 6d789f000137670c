"""Compilation of the planner's kernels, or loading from the disk cache, ahead of the first plan."""

from __future__ import annotations

import numpy as np

from rfly_common.kernels.jit import use_numba


def warm_up() -> None:
    """Runs every kernel once with the types of argument that the planner passes. Without numba there is nothing to do.

    Threads may call it at once.
    """
    if not use_numba():
        return
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.planning.drive import PlanPose
    from rfly_terrain.planning.planner import Planner
    from rfly_terrain.planning.vehicle_classes import load_vehicle_classes

    flat = HeightMap(np.zeros((20, 20), np.float32), origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
    rover = load_vehicle_classes()["rover"]
    Planner(flat).drive(rover, PlanPose(5.2, 5.4, 0.3), PlanPose(12.1, 12.3, 0.1))
