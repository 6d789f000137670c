"""UAV Toolbox's mission, follower, guidance and path objects by MATLAB's names, as functions too.

Scripts written for UAV Toolbox use `from rfly_missions.sdk.matlab_uav import *`. Where MATLAB
returns several values a function here returns a tuple of them.
"""

from __future__ import annotations

from typing import Any

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
    """Return the shortest path and its length; with "PathSegments", "all" lists of all types."""
    if not options or options == ("PathSegments", "optimal"):
        path = connection.connect(start, goal)
        return path, path.length
    if options != ("PathSegments", "all"):
        raise ValueError(f"{options!r}, expected nothing, or 'PathSegments' and 'optimal' or 'all'")
    paths = connection.connect_all(start, goal)
    return paths, [path.length for path in paths]


def interpolate(path: DubinsAirplanePath, lengths: ArrayLike | None = None) -> Floats:
    """Return poses (n, 6) at lengths along a path, see `DubinsAirplanePath.interpolate`."""
    return path.interpolate(lengths)
