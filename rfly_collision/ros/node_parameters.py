# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of collision_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rfly_collision.shapes.vehicle_shapes import DEFAULT_SET
from rfly_collision.world.ignore_rules import EXPECTED
from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters


@dataclass(frozen=True)
class CollisionParameters:
    """Tests of collision_node, their rate, and their display."""

    shapes: str = parameter(
        DEFAULT_SET, "shapes of the vehicle types: a file, or the name of a shipped set"
    )
    vehicle_xml: str = parameter(
        "",
        "vehicle XML of RflySim3D, a file or a folder: centre heights and sizes of its types; "
        "empty: none",
    )
    ignore: list[str] = parameter([], f"pairs that never count: {EXPECTED}")
    outside: Literal["extend", "void"] = parameter(
        "extend",
        "beyond the map the ground goes on as its edge does (extend), or there is none (void)",
    )
    rate: float = parameter(50.0, "most steps per second", unit="Hz", low=0.1, high=1000.0)
    stale_after: float = parameter(
        1.0,
        "a vehicle that is silent for so long is gone",
        unit="s",
        low=0.01,
        high=3600.0,
    )
    max_speed: float = parameter(
        1000.0,
        "a vehicle that came farther between two states was put there: the way is not tested",
        unit="m/s",
        low=0.0,
        high=1e6,
    )
    max_pairs: int = parameter(
        50_000,
        "where the boxes of more pairs overlap (316 vehicles in one place), only the ground is "
        "tested",
        low=1,
        high=5_000_000,
    )
    max_vehicles: int = parameter(
        100_000,
        "vehicles that are tested; those that come when there are so many are left out",
        low=1,
        high=1_000_000,
    )
    marker_length: float = parameter(10.0, "of the arrows in RViz", unit="m", low=0.001, high=1e4)
    max_markers: int = parameter(200, "arrows at once: the deepest contacts", low=0, high=10_000)
    frame_id: Literal["map", "map_ned"] = parameter(
        "map", "frame of all that is published: map (ENU) or map_ned (RflySim's axes)"
    )


NODES = {"collision_node": (CollisionParameters, FrameParameters, LatestTerrainParameters)}
