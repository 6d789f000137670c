"""Parameters of terrain_node and planner_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter

DEFAULT_MAP = "JacksboroFault"
NO_WATER = -1e9


@dataclass(frozen=True)
class TerrainParameters:
    """The map that terrain_node serves."""

    map: str = parameter(
        DEFAULT_MAP,
        "map to load at the start: a name on the search path, or the path of its png or txt",
    )
    map_search_path: list[str] = parameter(
        [], "folders that are searched for maps before all others"
    )
    frame_id: str = parameter(
        "map",
        "frame of outTerrainPoint, and of service calls that name none; map_ned gives RflySim's own numbers",
    )
    cloud_max_points: int = parameter(
        4_000_000, "a larger map is published with a stride", low=4, high=100_000_000
    )
    terrain_map_max_cells: int = parameter(
        25_000_000, "a larger map is announced by name and sha256 only", low=0, high=400_000_000
    )
    marker_max_triangles: int = parameter(
        200_000, "terrain_marker and traversability_marker thin a larger map", low=2, high=5_000_000
    )
    geo_origin: list[float] = parameter(
        [], "latitude (deg), longitude (deg), altitude (m) of the map's origin"
    )
    publish_tf: bool = parameter(True, "publish the static transform from the ENU to the NED frame")


@dataclass(frozen=True)
class OccupancyParameters:
    """Cells of `terrain_occupancy`, and what the vehicle can do."""

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
    """Of `get_grid_map` and `terrain_grid_map`."""

    publish_grid_map: bool = parameter(False, "publish all of the map as terrain_grid_map, latched")
    grid_map_max_cells: int = parameter(
        1_000_000,
        "a grid map with more cells gets larger ones; 28 bytes each",
        low=1,
        high=25_000_000,
    )


@dataclass(frozen=True)
class LatestTerrainParameters:
    """Of every node that hears `terrain_map`."""

    map_search_path: list[str] = parameter(
        [], "folders searched first for a map that terrain_map announces without its heights"
    )


@dataclass(frozen=True)
class PlannerParameters:
    """What planner_node plans with, and for whom."""

    vehicle_classes: str = parameter("", "file of vehicle classes; empty: the shipped one")
    water_level: float = parameter(NO_WATER, "ground below it is under water, m in map (z up)")
    resolution: float = parameter(
        0.0, "side of the cells, m; 0: the smaller step of the map", low=0.0, high=1e6
    )
    object_margin: float = parameter(
        0.5, "what plans keep from placed objects beyond the vehicle's radius, m", low=0.0, high=1e4
    )
    vehicles: list[str] = parameter(
        [], "names of vehicles whose place vehicle_states tells, see NAME.id"
    )
    goal_vehicle: str = parameter("", "vehicle that goes to RViz's goal_pose; empty: none")
    goal_class: str = parameter("", "its vehicle class; empty: NAME.vehicle_class")
    goal_mode: Literal["drive", "fly", "mixed"] = parameter("drive", "how it goes there")
    space: Literal["terrain", "octomap"] = parameter(
        "terrain",
        "what plans keep clear of: the ground and placed objects, or what is occupied in octomap too; then the way to "
        "goal_pose is planned anew where something comes in sight",
    )
    ground_margin: float = parameter(
        0.5,
        "occupied voxels that begin less than that above the terrain are its ground",
        unit="m",
        low=0.0,
        high=1e3,
    )
    unknown_cost: int = parameter(
        0,
        "to drive where octomap knows nothing costs at least this, as terrain_occupancy; 100: never",
        low=0,
        high=100,
    )
    unknown_height: float = parameter(
        10.0,
        "what is occupied with nothing known above it may be taller by so much",
        unit="m",
        low=0.0,
        high=1e3,
    )


@dataclass(frozen=True)
class PlannedVehicleParameters:
    """Of each vehicle in `vehicles`, after its name and a dot."""

    PREFIX: ClassVar = "NAME."

    id: int = parameter(-1, "its id in vehicle_states")
    vehicle_class: str = parameter("", "its vehicle class; empty: the first one")


NODES = {
    "terrain_node": (TerrainParameters, FrameParameters, OccupancyParameters, GridMapParameters),
    "planner_node": (
        PlannerParameters,
        FrameParameters,
        LatestTerrainParameters,
        PlannedVehicleParameters,
    ),
}
