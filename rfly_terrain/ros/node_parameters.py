# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of terrain_node and planner_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter

DEFAULT_MAP = "JacksboroFault"
NO_WATER = -1e9
"""Water level that stands for no water, m."""


@dataclass(frozen=True)
class TerrainParameters:
    """Parameters of the map that terrain_node serves."""

    map: str = parameter(
        DEFAULT_MAP,
        "map to load at the start: a name on the search path, or the path of its png or txt, of a "
        "folder of tiles or of a GeoTIFF in metres",
    )
    map_search_path: list[str] = parameter(
        [],
        "folders in which maps are searched before all others; a map in tiles may be on a web "
        "server, if the http(s) address of a folder there is one of them",
    )
    frame_id: str = parameter(
        "map",
        "frame of outTerrainPoint, and of service calls without one; map_ned gives RflySim's own "
        "numbers",
    )
    cloud_max_points: int = parameter(
        4_000_000, "a larger map is published with a stride", low=4, high=100_000_000
    )
    terrain_map_max_cells: int = parameter(
        25_000_000, "a larger map is announced by name and sha256 only", low=0, high=400_000_000
    )
    marker_max_triangles: int = parameter(
        200_000,
        "terrain_marker and traversability_marker thin a larger map",
        low=2,
        high=5_000_000,
    )
    imagery: str = parameter(
        "",
        "picture of the ground that terrain_marker shows: path of a GeoTIFF, or of a picture with "
        "three points in NAME.csv; empty: colours of heights",
    )
    geo_origin: list[float] = parameter(
        [], "latitude (deg), longitude (deg), altitude (m) of the map's origin"
    )
    tile_memory_mb: float = parameter(
        24.0, "heights of a map in tiles that stay in memory, MB", low=16.0, high=1e6
    )
    publish_tf: bool = parameter(True, "publish the static transform from the ENU to the NED frame")
    lifecycle: bool = parameter(
        False,
        "wait for a lifecycle manager such as Nav2's: configure loads the map, activate publishes "
        "and serves it",
    )


@dataclass(frozen=True)
class WindowParameters:
    """Parameters of the part of a map in tiles that topics show."""

    window_samples: int = parameter(
        512,
        "samples a side of the part of a map in tiles that outTerrainPoint, terrain_map, markers "
        "and costs show; other maps are shown whole",
        low=64,
        high=5000,
    )
    window_x: float = parameter(0.0, "middle of that part at first, x east, m")
    window_y: float = parameter(0.0, "the same, y north, m")
    window_vehicle: int = parameter(
        -1, "id in vehicle_states of a vehicle that the part follows; -1: none"
    )
    window_topic: str = parameter(
        "", "topic of geometry_msgs/PoseStamped that the part follows; empty: none"
    )


@dataclass(frozen=True)
class OccupancyParameters:
    """Cells of `terrain_occupancy`, and limits of the vehicle."""

    occupancy_resolution: float = parameter(
        0.0,
        "side of the cells of terrain_occupancy, m; 0 = the smaller step of the map",
        low=0.0,
        high=1e6,
        changeable=True,
    )
    max_slope_deg: float = parameter(
        25.0,
        "steepest slope that the vehicle drives",
        unit="degrees",
        low=0.01,
        high=90.0,
        changeable=True,
    )
    max_roughness: float = parameter(
        0.0,
        "largest RMS of the ground about a plane, m; 0 = by slope and size of cells",
        low=0.0,
        changeable=True,
    )
    max_step: float = parameter(
        0.0,
        "largest step between two cells, m; 0 = by slope and size of cells",
        low=0.0,
        changeable=True,
    )
    water_level: float = parameter(
        NO_WATER, "ground below it is under water, m in map (z up)", changeable=True
    )
    vehicle_radius: float = parameter(
        1.0, "forbidden cells are grown by it", unit="m", low=0.0, high=1e4, changeable=True
    )
    half_wheelbase: float = parameter(
        0.7,
        "radius within which slope, roughness and steps count, m; one cell at least",
        low=0.0,
        high=1e4,
        changeable=True,
    )


@dataclass(frozen=True)
class GridMapParameters:
    """Parameters of `get_grid_map` and `terrain_grid_map`."""

    publish_grid_map: bool = parameter(False, "publish all of the map as terrain_grid_map, latched")
    grid_map_max_cells: int = parameter(
        1_000_000,
        "a grid map with more cells gets larger ones; 28 bytes each",
        low=1,
        high=25_000_000,
    )


@dataclass(frozen=True)
class LatestTerrainParameters:
    """Parameters of every node that subscribes to `terrain_map`."""

    map_search_path: list[str] = parameter(
        [], "folders searched first for a map that terrain_map announces without its heights"
    )


@dataclass(frozen=True)
class PlannerParameters:
    """Parameters of planning."""

    vehicle_classes: str = parameter("", "file of vehicle classes; empty: the shipped one")
    water_level: float = parameter(NO_WATER, "ground below it is under water, m in map (z up)")
    resolution: float = parameter(
        0.0, "side of the cells, m; 0: the smaller step of the map", low=0.0, high=1e6
    )
    object_margin: float = parameter(
        0.5,
        "distance that plans keep from placed objects beyond the vehicle's radius, m",
        low=0.0,
        high=1e4,
    )
    vehicles: list[str] = parameter(
        [], "names of vehicles whose positions vehicle_states reports, see NAME.id"
    )
    goal_vehicle: str = parameter("", "vehicle that moves to RViz's goal_pose; empty: none")
    goal_class: str = parameter("", "its vehicle class; empty: NAME.vehicle_class")
    goal_mode: Literal["drive", "fly", "mixed"] = parameter("drive", "mode of moving there")
    space: Literal["terrain", "octomap"] = parameter(
        "terrain",
        "obstacles of plans: the ground and placed objects, or occupied space in octomap too; "
        "then the path to goal_pose is planned anew when obstacles come in sight",
    )
    ground_margin: float = parameter(
        0.5,
        "occupied voxels that begin less than this above the terrain are its ground",
        unit="m",
        low=0.0,
        high=1e3,
    )
    unknown_cost: int = parameter(
        0,
        "least cost of driving over ground unknown to octomap, as in terrain_occupancy; 100: never",
        low=0,
        high=100,
    )
    unknown_height: float = parameter(
        10.0,
        "height by which an obstacle with unknown space above it may be taller",
        unit="m",
        low=0.0,
        high=1e3,
    )


@dataclass(frozen=True)
class PlannedVehicleParameters:
    """Parameters of each vehicle in `vehicles`, after its name and a dot."""

    PREFIX: ClassVar[str] = "NAME."

    id: int = parameter(-1, "its id in vehicle_states")
    vehicle_class: str = parameter("", "its vehicle class; empty: the first one")


NODES = {
    "terrain_node": (
        TerrainParameters,
        FrameParameters,
        WindowParameters,
        OccupancyParameters,
        GridMapParameters,
    ),
    "planner_node": (
        PlannerParameters,
        FrameParameters,
        LatestTerrainParameters,
        PlannedVehicleParameters,
    ),
}
