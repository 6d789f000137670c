# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of this package's nodes. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_ue_bridge.codec.addresses import (
    DEFAULT_HOST,
    FEEDBACK_PORT,
    OFFBOARD_PORT,
    STATE_PORT,
    TIME_PORT,
    TRUTH_PORT,
    WINDOW_PORT,
)
from rfly_ue_bridge.objects.weather_actor import WEATHER_ACTOR


@dataclass(frozen=True)
class BridgeParameters:
    """Destination of the states, their rate, and the vehicles."""

    host: str = parameter(DEFAULT_HOST, "name or IPv4 address of the machine that runs RflySim3D")
    port: int = parameter(
        WINDOW_PORT, "UDP port of window 0; window k has port + k", low=1, high=65535
    )
    windows: int = parameter(1, "number of RflySim3D windows at the host", low=1, high=64)
    broadcast: bool = parameter(False, "allow a broadcast address as host")
    multicast_ttl: int = parameter(
        1, "networks that a datagram to a multicast host may cross", low=0, high=255
    )
    multicast_interface: str = parameter(
        "", "IPv4 address of the interface for a multicast host; empty = the system's"
    )
    rate_limit: float = parameter(
        0.0,
        "most datagrams of one vehicle a second, Hz; the newest state is sent when its turn comes; "
        "0 = no limit",
        low=0.0,
        high=10_000.0,
    )
    max_age: float = parameter(
        0.0,
        "states whose stamp is older than this by the node's clock are dropped, s; 0 = off",
        low=0.0,
        high=1e6,
    )
    stale_after: float = parameter(
        1.0,
        "silence after which another source may take a vehicle id over, s; silence of all vehicles "
        "for this long is reported",
        low=0.01,
        high=3600.0,
    )
    packets: Literal["auto", "single", "batch"] = parameter(
        "auto",
        "how the vehicles of a VehicleStateArray leave: one by one, as fleet packets, or auto: "
        "fleet packets if they are more than 20",
    )
    scene: Literal["off", "follow", "lead"] = parameter(
        "off",
        "follow: a new terrain_map lets RflySim3D load the map of its name; lead: a command that "
        "changes RflySim3D's map lets terrain_node load the terrain of that name",
    )
    weather_actor: int = parameter(
        WEATHER_ACTOR,
        "CopterID of the actor by which RflySim3D shows rain and fog of the topic environment; "
        "0 = none",
        low=0,
        high=2**31 - 1,
    )
    removal: Literal["delete", "lower"] = parameter(
        "delete",
        "how vehicles and objects leave RflySim3D: deleted by the command RflyDelVehicles, or, for "
        "windows that do not know it, lowered by 1,000 m",
    )
    vehicles: list[str] = parameter(
        [], "names of foreign robots to show; each has the parameters <name>.id …"
    )


@dataclass(frozen=True)
class BridgeFrameParameters:
    """The bridge's own frame, one of its world frames."""

    frame_id: str = parameter(
        "map",
        "the node's own world frame: that of RflySim3D's answers, and of states whose frame_id "
        "is empty",
        shown="the first world frame",
    )


@dataclass(frozen=True)
class RobotParameters:
    """One foreign robot in `vehicles`; its parameters stand after its name and a dot."""

    PREFIX: ClassVar[str] = "NAME."

    message: Literal["pose", "odometry", "vehicle_state"] = parameter(
        "pose", "message type of its topic"
    )
    id: int = parameter(0, "its CopterID, which must be set", low=0, high=2**31 - 1)
    type: int = parameter(
        3, "its vehicleType (a vehicle_state brings its own)", low=-(2**31), high=2**31 - 1
    )
    topic: str = parameter(
        "",
        "topic of its PoseStamped, Odometry or VehicleState",
        shown="NAME/pose, NAME/odom or NAME/state",
    )
    fit_ground: bool = parameter(
        False, "RflySim3D keeps it on the ground (a vehicle_state says so itself)"
    )


@dataclass(frozen=True)
class FeedbackParameters:
    """Reception of RflySim3D's answers."""

    feedback_bind: str = parameter(
        "127.0.0.1",
        "IPv4 address of this machine on which RflySim3D's answers are received; 0.0.0.0 = all",
    )
    feedback_port: int = parameter(
        FEEDBACK_PORT,
        "UDP port on which RflySim3D's answers are received; 0 = do not listen",
        low=0,
        high=65535,
    )
    feedback_multicast_interface: str = parameter(
        "",
        "IPv4 address of the interface on which the group 224.0.0.10 is joined; empty = not at all",
    )
    feedback_allow: list[str] = parameter(
        [],
        "addresses or networks (192.168.1.0/24) whose datagrams are read; empty = all",
    )
    feedback_share_port: bool = parameter(
        False,
        "share the port with other programs that do so too, such as RflySim's SDK; each unicast "
        "datagram still reaches only one of them",
    )
    request_vehicle_data: bool = parameter(
        False, "ask RflySim3D to report its vehicles (topic ue_vehicle_report)"
    )


@dataclass(frozen=True)
class ObjectParameters:
    """Objects that the bridge has placed."""

    objects_resend_period: float = parameter(
        1.0,
        "period in which each placed object is sent again, s, so that a restarted RflySim3D shows "
        "it; 0 = never",
        low=0.0,
        high=3600.0,
    )
    world: str = parameter(
        "",
        "what stands on the map from the start: a world file, or the name of a shipped one; "
        "empty: nothing",
    )
    level_ground: bool = parameter(
        False, "no terrain_map is published: the objects of `world` stand at z = 0"
    )


@dataclass(frozen=True)
class SensorsParameters:
    """RflySim3D's sensors: which, where from, and how they become messages."""

    config: str = parameter(
        "", "RflySim's Config.json with the sensors; empty = those of the parameter sensors"
    )
    sensors: list[str] = parameter(
        [], "names of sensors without a Config.json; each has the parameters <name>.type_id …"
    )
    angle_unit: Literal["deg", "rad"] = parameter(
        "deg", "unit of the angles in the Config.json: RflySim3D takes deg, old documents say rad"
    )
    host: str = parameter(DEFAULT_HOST, "name or IPv4 address of the machine that runs RflySim3D")
    port: int = parameter(
        WINDOW_PORT, "UDP port of window 0; window k has port + k", low=1, high=65535
    )
    window: int = parameter(
        0, "the RflySim3D window whose process renders the sensors", low=0, high=63
    )
    layout: Literal["144", "92", "148"] = parameter(
        "144", "bytes of a request: 144, 92 for windows before 2023, 148 for new ones"
    )
    bind: str = parameter(
        "127.0.0.1",
        "IPv4 address of this machine on which data are received; 0.0.0.0 = all",
    )
    request_period: float = parameter(
        3.0,
        "silence after which a sensor is reported and requested again, s; 0 = never request, for "
        "sensors that another program has requested",
        low=0.0,
        high=3600.0,
    )
    stamp: Literal["arrival", "simulation"] = parameter(
        "arrival",
        "stamps: the arrival of the data, or the time of their making by CopterSim's clock",
    )
    time_port: int = parameter(
        TIME_PORT,
        "UDP port of CopterSim's heart-beat for stamps of the simulation; 0 = estimate its start",
        low=0,
        high=65535,
    )
    depth_encoding: Literal["mono16", "16UC1", "32FC1"] = parameter(
        "mono16",
        "depth: counts as RflySim3D sends them (65535 = none), mm (0 = none), or m (NaN = none)",
    )
    lidar_axes: Literal["flu", "frd"] = parameter(
        "flu", "axes in which RflySim3D sends the points of lidars; published are x forward, y left"
    )
    world_axes: Literal["ned", "nwu", "neu"] = parameter(
        "ned", "axes in which RflySim3D sends the points of type 21; published is ENU in map"
    )
    depth_cloud_axes: Literal["flu", "frd", "optical"] = parameter(
        "flu", "axes in which RflySim3D sends depth clouds (type 7)"
    )
    keep_misses: bool = parameter(
        False, "keep a lidar's points at exactly 0 0 0, which are rays that hit nothing"
    )
    base_frame: str = parameter(
        "copter{id}/base_link",
        "frame of a vehicle's geometric centre; {id} is its CopterID",
        shown="`copter{id}/base_link`, after the node's namespace",
    )
    bottom_frame: str = parameter(
        "copter{id}/base_footprint",
        "frame of the middle of a vehicle's bottom, for mount type 1",
        shown="`copter{id}/base_footprint`, after the node's namespace",
    )
    frame_prefix: str = parameter(
        "",
        "prefix of the sensors' frames sensor<SeqID>",
        shown="the node's namespace and /, such as `alpha/`",
    )
    imu_vehicles: list[int] = parameter([], "CopterIDs whose IMU CopterSim is to send")
    imu_rate: int = parameter(200, "rate of the IMUs, Hz", low=1, high=1000)
    coptersim_host: str = parameter(
        "", "machine that runs CopterSim, for its IMUs", shown="the host"
    )


@dataclass(frozen=True)
class SensorRequestParameters:
    """One sensor in `sensors`; its parameters stand after its name and a dot."""

    PREFIX: ClassVar[str] = "SENSOR."

    type_id: int = parameter(1, "kind of sensor, RflySim3D's TypeID", low=1, high=65535)
    seq_id: int = parameter(0, "its SeqID", low=0, high=50_000, shown="its place in sensors")
    target: int = parameter(
        1,
        "CopterID of its vehicle, or SeqID of the sensor that it is mounted on",
        low=0,
        high=65535,
    )
    mount: int = parameter(
        0, "0 vehicle's centre, 1 its bottom, 2 map, 3 vehicle but level, 4 sensor", low=0, high=4
    )
    width: int = parameter(640, "pixels, or points of a ring", low=1, high=8192)
    height: int = parameter(480, "pixels, or rings", low=1, high=8192)
    rate: int = parameter(
        30, "rate at which RflySim3D looks for a new picture, Hz", low=1, high=200
    )
    way: int = parameter(1, "1 jpeg or png by UDP, 2 raw, 3 png", low=1, high=3)
    data_port: int = parameter(0, "UDP port of its data", low=0, high=65535, shown="9999 + seq_id")
    fov_deg: float = parameter(90.0, "horizontal angle of view, deg", low=0.0, high=360.0)
    position: list[float] = parameter(
        [0.0, 0.0, 0.0], "forward, right, down of the vehicle, or NED of the map, m"
    )
    euler_deg: list[float] = parameter([0.0, 0.0, 0.0], "roll, pitch, yaw, deg; pitch > 0 is up")
    other_params: list[float] = parameter([0.0], "its otherParams, at most 16")


@dataclass(frozen=True)
class CopterSimParameters:
    """Vehicles that CopterSim simulates, and how their states become messages."""

    vehicles: list[int] = parameter([1], "CopterIDs of the vehicles")
    name: str = parameter(
        "copter{id}",
        "namespace of a vehicle's topics and prefix of its frames; {id} is its CopterID",
    )
    host: str = parameter(DEFAULT_HOST, "name or IPv4 address of the machine that runs CopterSim")
    bind: str = parameter(
        "127.0.0.1", "IPv4 address of this machine on which states are received; 0.0.0.0 = all"
    )
    allow: list[str] = parameter(
        [],
        "addresses or networks (192.168.1.0/24) whose datagrams are read",
        shown="the host and this machine",
    )
    truth_port: int = parameter(
        TRUTH_PORT, "UDP port of vehicle 1's truth; vehicle k's is 2 (k - 1) higher",
        low=1, high=65535,
    )  # fmt: skip
    state_port: int = parameter(
        STATE_PORT, "UDP port of vehicle 1's estimate; vehicle k's is 2 (k - 1) higher",
        low=1, high=65535,
    )  # fmt: skip
    time_port: int = parameter(
        TIME_PORT,
        "UDP port of CopterSim's heart-beat, for stamp: simulation and clock: heartbeat",
        low=1,
        high=65535,
    )
    silence_after: float = parameter(
        3.0, "silence after which a vehicle is reported, s", low=0.1, high=3600.0
    )
    stamp: Literal["arrival", "simulation"] = parameter(
        "arrival", "stamps: the arrival of a state, or its time by CopterSim's clock"
    )
    clock: Literal["off", "heartbeat", "truth"] = parameter(
        "off",
        "publish the first vehicle's time since CopterSim's start on /clock, from its heart-beat "
        "or from its truth, which comes more often",
    )
    publish_tf: bool = parameter(True, "publish the true poses as transforms from map")
    geo_origin: list[float] = parameter(
        [],
        "latitude deg, longitude deg, altitude m of the map's origin",
        shown="what CopterSim sends",
    )


@dataclass(frozen=True)
class OffboardParameters:
    """Commands to the vehicles."""

    offboard: bool = parameter(False, "take cmd_vel and cmd/pose; without it nothing is sent")
    offboard_port: int = parameter(
        OFFBOARD_PORT, "UDP port for vehicle 1's commands; vehicle k's is 2 (k - 1) higher",
        low=1, high=65535,
    )  # fmt: skip
    udp_mode: Literal["simple", "full"] = parameter(
        "simple",
        "CopterSim's UDP mode: UDP_Simple (1), or UDP_Full (0), in which it cannot be armed here",
    )
    command_rate: float = parameter(50.0, "rate of commands, Hz", low=30.0, high=400.0)
    command_timeout: float = parameter(
        0.5, "silence of commands after which zero velocity is sent, s", low=0.05, high=60.0
    )
    stamped_cmd_vel: bool = parameter(
        True, "cmd_vel is a TwistStamped, false: a Twist; a subscriber follows its publishers"
    )


NODES = {
    "coptersim_node": (CopterSimParameters, OffboardParameters, FrameParameters),
    "ue_sensors_node": (SensorsParameters, SensorRequestParameters, FrameParameters),
    "ue_bridge_node": (
        BridgeParameters,
        BridgeFrameParameters,
        RobotParameters,
        FrameParameters,
        FeedbackParameters,
        ObjectParameters,
        LatestTerrainParameters,
    ),
}
