"""Trajectories, ground following, the trajectory node, and the mission state machine."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Circle": "shapes",
    "CompletionMonitor": "completion_monitor",
    "Dubins": "dubins",
    "DubinsPath": "dubins",
    "Ellipse": "shapes",
    "FigureEight": "shapes",
    "FixedWing": "mission_fixed_wing",
    "Fleet": "fleet",
    "FleetMotion": "fleet",
    "Geofence": "mission_fence",
    "Ground": "mission_ground",
    "GroundVehicle": "mission_ground_vehicle",
    "LandAir": "mission_land_air",
    "LawnMower": "shapes",
    "Line": "shapes",
    "Mission": "mission_files",
    "MissionCommand": "mission_items",
    "MissionItem": "mission_items",
    "MissionMode": "mission_items",
    "MissionParams": "mission_items",
    "MissionRunner": "mission_runner",
    "Multirotor": "mission_followers",
    "Path": "paths",
    "PathManager": "path_manager",
    "Polyline": "shapes",
    "SpeedProfile": "motion",
    "Spline": "splines",
    "Vehicle": "fleet",
    "dubins_path": "dubins",
    "load_fleet": "fleet_file",
    "read_mission": "mission_files",
    "read_points": "point_files",
    "shipped_fleets": "fleet_file",
    "write_mission": "mission_files",
}

__all__ = [
    "Circle",
    "CompletionMonitor",
    "Dubins",
    "DubinsPath",
    "Ellipse",
    "FigureEight",
    "FixedWing",
    "Fleet",
    "FleetMotion",
    "Geofence",
    "Ground",
    "GroundVehicle",
    "LandAir",
    "LawnMower",
    "Line",
    "Mission",
    "MissionCommand",
    "MissionItem",
    "MissionMode",
    "MissionParams",
    "MissionRunner",
    "Multirotor",
    "Path",
    "PathManager",
    "Polyline",
    "SpeedProfile",
    "Spline",
    "Vehicle",
    "dubins_path",
    "load_fleet",
    "read_mission",
    "read_points",
    "shipped_fleets",
    "write_mission",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"rfly_trajectory.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rfly_trajectory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
