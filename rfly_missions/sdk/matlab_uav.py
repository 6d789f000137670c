# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UAV Toolbox's mission, follower, guidance and path objects by MATLAB's names, as functions too.

Scripts written for UAV Toolbox use `from rfly_missions.sdk.matlab_uav import *`. Where MATLAB
returns several values a function here returns a tuple of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_missions.execution.path_manager import PathManager
from rfly_missions.followers.guidance import FixedWingGuidance, MultirotorGuidance
from rfly_missions.followers.look_ahead import OrbitFollower, WaypointFollower
from rfly_trajectory.paths.dubins_airplane import DubinsAirplane, DubinsAirplanePath

uavPathManager = PathManager
uavWaypointFollower = WaypointFollower
uavOrbitFollower = OrbitFollower
fixedwing = FixedWingGuidance
multirotor = MultirotorGuidance
uavDubinsConnection = DubinsAirplane
uavDubinsPathSegment = DubinsAirplanePath

__all__ = (
    "connect",
    "control",
    "derivative",
    "environment",
    "fixedwing",
    "interpolate",
    "multirotor",
    "show",
    "state",
    "uavDubinsConnection",
    "uavDubinsPathSegment",
    "uavOrbitFollower",
    "uavPathManager",
    "uavWaypointFollower",
)

Model = FixedWingGuidance | MultirotorGuidance


def state(model: Model) -> Floats:
    """Return a state of zeros of a guidance model."""
    return model.state()


def control(model: Model) -> Any:
    """Return the commands of a guidance model, all 0."""
    return model.control()


def environment(model: Model) -> Any:
    """Return the environment of a guidance model, without wind."""
    return model.environment()


def derivative(model: Model, state: ArrayLike, control: Any, environment: Any) -> Floats:
    """Return the time derivative of a guidance model's state."""
    return model.derivative(state, control, environment)


def connect(
    connection: DubinsAirplane, start: ArrayLike, goal: ArrayLike, *options: str
) -> tuple[Any, Any]:
    """Return the shortest path and its length, or with "PathSegments", "all" those of all types.

    Several poses, (n, 4), give a list of paths and one of lengths: from each start to its goal, or
    from or to the only one.
    """
    if options not in ((), ("PathSegments", "optimal"), ("PathSegments", "all")):
        raise ValueError(f"{options!r}, expected nothing, or 'PathSegments' and 'optimal' or 'all'")
    if options == ("PathSegments", "all"):
        paths = connection.connect_all(start, goal)
        return paths, [path.length for path in paths]

    if np.ndim(start) < 2 and np.ndim(goal) < 2:
        path = connection.connect(start, goal)
        return path, path.length
    starts, goals = np.broadcast_arrays(np.atleast_2d(start), np.atleast_2d(goal))
    paths = [connection.connect(*poses) for poses in zip(starts, goals, strict=True)]
    return paths, [path.length for path in paths]


def interpolate(path: DubinsAirplanePath, lengths: ArrayLike | None = None) -> Floats:
    """Return poses (n, 6) at lengths along a path, see `DubinsAirplanePath.interpolate`."""
    return path.interpolate(lengths)


def show(path: DubinsAirplanePath, ax: Any = None) -> Any:
    """Draw a path in space, see `DubinsAirplanePath.show`."""
    return path.show(ax)
