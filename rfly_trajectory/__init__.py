"""Trajectories, ground following, the trajectory node, and the mission state machine."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Circle": "shapes",
    "FigureEight": "shapes",
    "Fleet": "fleet",
    "FleetMotion": "fleet",
    "Line": "shapes",
    "MissionCommand": "mission_items",
    "MissionItem": "mission_items",
    "MissionMode": "mission_items",
    "MissionParams": "mission_items",
    "Path": "paths",
    "PathManager": "path_manager",
    "Polyline": "shapes",
    "SpeedProfile": "motion",
    "Vehicle": "fleet",
    "load_fleet": "fleet_file",
    "shipped_fleets": "fleet_file",
}

__all__ = [
    "Circle",
    "FigureEight",
    "Fleet",
    "FleetMotion",
    "Line",
    "MissionCommand",
    "MissionItem",
    "MissionMode",
    "MissionParams",
    "Path",
    "PathManager",
    "Polyline",
    "SpeedProfile",
    "Vehicle",
    "load_fleet",
    "shipped_fleets",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"rfly_trajectory.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rfly_trajectory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
