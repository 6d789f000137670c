# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MATLAB's occupancy maps and lidar scans by their names, as functions.

Scripts written for Navigation Toolbox use `from rfly_terrain.sdk.matlab_mapping import *`. Each
function is the method of that name of its first argument, with the arguments of
`occupancy.call_forms`. Rows and columns count from 0. In the namespace `one_based` the same names
make maps whose rows and columns count from 1, as a translated script expects:

    nav = matlab_mapping.one_based
    nav.setOccupancy(nav.binaryOccupancyMap(10, 10), [1, 1], 1, "grid")  # the top left cell
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rfly_common.files import StrPath
from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap
from rfly_terrain.occupancy.random_maps import load_mat_maps, map_clutter, map_maze
from rfly_terrain.occupancy.scan import LidarScan

METHODS = (
    "checkOccupancy",
    "copy",
    "getOccupancy",
    "grid2local",
    "grid2world",
    "inflate",
    "insertRay",
    "local2grid",
    "local2world",
    "move",
    "occupancyMatrix",
    "plot",
    "raycast",
    "rayIntersection",
    "removeInvalidData",
    "setOccupancy",
    "show",
    "syncWith",
    "world2grid",
    "world2local",
)

binaryOccupancyMap = BinaryOccupancyMap
lidarScan = LidarScan
mapMaze = map_maze
mapClutter = map_clutter

__all__ = (  # noqa: PLE0604  # METHODS is a tuple of names
    *METHODS,
    "binaryOccupancyMap",
    "lidarScan",
    "load",
    "mapClutter",
    "mapMaze",
    "one_based",
    "transformScan",
)


def transformScan(*scan_and_pose: Any) -> Any:
    """Return a moved scan, or its ranges and angles.

    The calls are `transformScan(scan, pose)` and `transformScan(ranges, angles, pose)`.
    """
    if len(scan_and_pose) == 3:
        moved = LidarScan(*scan_and_pose[:2]).transformed(scan_and_pose[2])
        return moved.ranges, moved.angles
    scan, pose = scan_and_pose
    return scan.transformed(pose)


def load(path: StrPath) -> SimpleNamespace:
    """Return the matrices of a .mat file as attributes, see `load_mat_maps`.

    Example: `load("exampleMaps.mat").complexMap`.
    """
    return SimpleNamespace(**load_mat_maps(path))


def _as_function(name: str) -> Any:
    """Return a function that calls the method of that name of its first argument."""

    def function(map: Any, *args: Any, **options: Any) -> Any:
        return getattr(map, name)(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The method `{name}` of a map, or of a scan."
    return function


def _one_based(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes the same map, with rows and columns from 1."""

    @wraps(make, updated=())
    def function(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        made.one_based = True
        return made

    return function


globals().update({name: _as_function(name) for name in METHODS})

one_based = SimpleNamespace(**{name: globals()[name] for name in __all__ if name != "one_based"})
"""The functions of this module, with maps whose rows and columns count from 1, as in MATLAB."""
one_based.binaryOccupancyMap = _one_based(BinaryOccupancyMap)
one_based.mapMaze = _one_based(map_maze)
one_based.mapClutter = _one_based(map_clutter)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a function of METHODS, for type checkers."""
