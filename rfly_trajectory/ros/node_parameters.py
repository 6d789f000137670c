"""Parameters of trajectory_node and mission_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_trajectory.fleet.run_clock import MAX_TIME_SCALE
from rfly_trajectory.missions.runner import UavType

PER_VEHICLE_LIMIT = 20
"""vehicles of a node up to which `publish_per_vehicle: auto` publishes poses, paths and transforms"""
FIRST_ID = 501
"""id of the first vehicle that has none given; the next count up"""


def _marker_scale() -> Any:
    text = "how many times their size vehicles are in fleet_markers, with names and paths to match; 1: as they are"
    return parameter(4.0, text, low=0.01, high=1e4)


@dataclass(frozen=True)
class TrajectoryParameters:
    """The fleet that trajectory_node drives, and what it publishes of it."""

    fleet: str = parameter("demo_convoy", "fleet file: a path, or the name of a shipped one")
    file_folders: list[str] = parameter(
        [], "folders below which ~/load_fleet may read; without any, shipped fleets only"
    )
    rate: float = parameter(50.0, "states per second", unit="Hz", low=0.1, high=1000.0)
    frame_id: Literal["map", "map_ned"] = parameter(
        "map", "frame of all that is published: map (ENU) or map_ned (RflySim's axes)"
    )
    publish_per_vehicle: Literal["auto", "always", "never"] = parameter(
        "auto",
        "<name>/pose, <name>/path, <name>/follow_path and /tf of each vehicle; auto: where the node drives up to "
        f"{PER_VEHICLE_LIMIT} of the fleet file; spawned ones as the others",
    )
    marker_scale: float = _marker_scale()
    first_spawned_id: int = parameter(
        5001, "RflySim copterID of the first vehicle that is spawned; the next free ones up follow", low=1, high=2**30
    )
    shard: str = parameter(
        "0/1", "which part of the fleet this node drives, i/n with i from 0 to n - 1: 1/4 is the second quarter"
    )


@dataclass(frozen=True)
class RunControlParameters:
    """When a fleet starts, and how fast its time goes."""

    start_time: float = parameter(
        0.0,
        "ROS time at which the fleet starts, s; 0: with the fleet that runs already (fleet_start), else at the next "
        "whole second",
        low=0.0,
    )
    time_scale: float = parameter(
        1.0,
        "seconds of the fleet in a second, may be changed at any time; 0 stands still",
        low=0.0,
        high=MAX_TIME_SCALE,
        changeable=True,
    )


@dataclass(frozen=True)
class MissionParameters:
    """What the vehicles of mission_node share."""

    vehicles: list[str] = parameter([], "names of the vehicles that fly missions")
    rate: float = parameter(50.0, "steps per second", unit="Hz", low=1.0, high=1000.0)
    frame_id: Literal["map", "map_ned"] = parameter(
        "map", "frame of all that is published, and of parameters: map (ENU) or map_ned (RflySim's axes)"
    )
    file_folders: list[str] = parameter(
        [], "folders below which the `file` of a goal may lie; without any, none is read"
    )
    simulate: bool = parameter(True, "move the vehicles; false: their poses come from <name>/pose")
    min_height: float = parameter(2.0, "least height above the ground on the way", unit="m", low=0.0, high=1e4)
    marker_scale: float = _marker_scale()
    default_radius: float = parameter(
        2.0, "transition radius of way-points from files that have none", unit="m", low=0.01, high=1e4
    )

    @property
    def axes(self) -> str:
        """Of `frame_id`: enu or ned."""
        return "enu" if self.frame_id == "map" else "ned"


@dataclass(frozen=True)
class MissionVehicleParameters:
    """Of each vehicle in `vehicles`, after its name and a dot."""

    PREFIX: ClassVar = "NAME."

    uav_type: UavType = parameter("multirotor", "how it flies, or drives")
    id: int = parameter(
        FIRST_ID, "RflySim copterID", low=1, high=2**31 - 1, shown=f"{FIRST_ID}, {FIRST_ID + 1} … in the order of names"
    )
    type: int = parameter(
        3,
        "RflySim vehicleType: which model is shown",
        low=0,
        high=2**31 - 1,
        shown="3; fixed-wing 100, ground 100150",
    )
    loiter_radius: float = parameter(
        25.0, "of a fixed wing's hold, and of orbits that have none", unit="m", low=0.1, high=1e5
    )
    hold_turn_direction: int = parameter(
        0, "of a fixed wing's hold: 1 clockwise from above, -1 counter-clockwise, 0 free", low=-1, high=1
    )
    start: list[float] = parameter(
        [], "x, y (m) and yaw (rad) of a simulated vehicle's first place", shown="10 m east of the vehicle before it"
    )
    home: list[float] = parameter([], "x, y, z (m) for goals with home_source 1")


@dataclass(frozen=True)
class MavlinkParameters:
    """Of mavlink_node."""

    vehicles: list[str] = parameter([], "names of mission_node's vehicles that speak MAVLink")
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(14580, "UDP port to listen on; 0: the system chooses", low=0, high=65535)
    targets: list[str] = parameter(
        ["127.0.0.1:14550", "127.0.0.1:14540"], "host:port of ground stations that wait for vehicles"
    )
    signing_file: str = parameter("", "file with the passphrase that all messages are signed by; empty: none is signed")
    log_folder: str = parameter(
        "", "MCAP files in it, or in the folder of a file, are the logs that ground stations download; empty: none"
    )
    erase_logs: bool = parameter(False, "ground stations may erase those files")


@dataclass(frozen=True)
class MavlinkVehicleParameters:
    """Of each vehicle of mavlink_node, after its name and a dot."""

    PREFIX: ClassVar = "NAME."

    system_id: int = parameter(1, "MAVLink system id", low=1, high=250, shown="1, 2 … in the order of names")
    uav_type: UavType = parameter("multirotor", "how it flies, or drives; as mission_node's parameter")
    controller: str = parameter(
        "flight_control_node", "of a land-air vehicle: node in its namespace whose gains are parameters; empty: none"
    )
    parameters: list[str] = parameter([], "values of MAVLink parameters at the start, as MIS_TAKEOFF_ALT=20")
    gimbal_min_pitch: float = parameter(-90.0, "of a gimbal, up positive", unit="degrees", low=-180.0, high=0.0)
    gimbal_max_pitch: float = parameter(30.0, "of a gimbal, up positive", unit="degrees", low=0.0, high=180.0)


NODES = {
    "trajectory_node": (TrajectoryParameters, RunControlParameters, FrameParameters, LatestTerrainParameters),
    "mission_node": (MissionParameters, MissionVehicleParameters, FrameParameters, LatestTerrainParameters),
    "mavlink_node": (MavlinkParameters, MavlinkVehicleParameters, FrameParameters, LatestTerrainParameters),
}
