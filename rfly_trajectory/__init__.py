"""Trajectories, ground following, fleets and missions, with their nodes."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Circle": "paths.shapes",
    "CompletionMonitor": "missions.completion_monitor",
    "Dubins": "paths.dubins",
    "DubinsPath": "paths.dubins",
    "Ellipse": "paths.shapes",
    "FigureEight": "paths.shapes",
    "FixedWing": "missions.fixed_wing",
    "Fleet": "fleet.fleet",
    "FleetMotion": "fleet.fleet",
    "Geofence": "missions.geofence",
    "Ground": "missions.ground",
    "GroundVehicle": "missions.ground_vehicle",
    "LandAir": "missions.land_air",
    "LawnMower": "paths.shapes",
    "Line": "paths.shapes",
    "Mission": "missions.files",
    "MissionCommand": "missions.items",
    "MissionItem": "missions.items",
    "MissionMode": "missions.items",
    "MissionParams": "missions.items",
    "MissionRunner": "missions.runner",
    "Multirotor": "missions.multirotor",
    "Path": "paths.path",
    "PathManager": "missions.path_manager",
    "Polyline": "paths.shapes",
    "SpeedProfile": "motion.speed_profile",
    "Spline": "paths.splines",
    "Vehicle": "fleet.fleet",
    "dubins_path": "paths.dubins",
    "load_fleet": "fleet.fleet_file",
    "read_mission": "missions.files",
    "read_points": "paths.point_files",
    "shipped_fleets": "fleet.fleet_file",
    "write_mission": "missions.files",
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
