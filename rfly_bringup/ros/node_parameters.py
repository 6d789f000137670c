# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of recorder_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass

from rfly_common.ros.node_parameters import parameter
from rfly_mavlink.ros.node_parameters import MavlinkParameters
from rfly_terrain.ros.node_parameters import LatestTerrainParameters


@dataclass(frozen=True)
class RecorderParameters:
    """Parameters of a recording."""

    file: str = parameter(
        "",
        "MCAP file to write, with {time} for date and time",
        shown="rfly_{time}.mcap in the current folder",
    )
    overwrite: bool = parameter(False, "write over a file that exists")
    topics: list[str] = parameter([], "regular expressions for whole topic names; none: all")
    exclude: list[str] = parameter([], "regular expressions for topics to leave out")
    pictures: bool = parameter(
        False, "record pictures too, not only those of topics that `topics` names"
    )
    max_size: float = parameter(
        4000.0, "the recording ends before the file has this size; 0: no limit", unit="MB", low=0.0
    )


@dataclass(frozen=True)
class SpawnerParameters:
    """Parameters of spawner_node."""

    mavlink: bool = parameter(False, "spawned vehicles speak MAVLink to ground stations")
    targets: list[str] = parameter(
        MavlinkParameters().targets, "ground stations that wait for vehicles, each as host:port"
    )


NODES: dict[str, tuple[type, ...]] = {
    "recorder_node": (RecorderParameters,),
    "spawner_node": (SpawnerParameters, LatestTerrainParameters),
}
