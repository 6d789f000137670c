# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of ue_bridge_node. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_terrain.ros.node_parameters import LatestTerrainParameters
from rfly_ue_bridge.codec.addresses import DEFAULT_HOST, FEEDBACK_PORT, WINDOW_PORT


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

    PREFIX: ClassVar = "NAME."

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


NODES = {
    "ue_bridge_node": (
        BridgeParameters,
        BridgeFrameParameters,
        RobotParameters,
        FrameParameters,
        FeedbackParameters,
        ObjectParameters,
        LatestTerrainParameters,
    )
}
