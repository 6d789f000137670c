# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of the nodes for ground stations, autopilots and controllers outside. No ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rfly_common.ros.node_parameters import FrameParameters, parameter
from rfly_mavlink.links import ardupilot_session, mavlink_hil, session
from rfly_missions.followers.vehicle_kinds import UavType
from rfly_terrain.ros.node_parameters import LatestTerrainParameters

MAVLINK_PORT = 14700
"""UDP port of mavlink_node, none of those of PX4's simulation (14580 + instance, 18570 …)."""


@dataclass(frozen=True)
class MavlinkParameters:
    """Parameters of mavlink_node."""

    vehicles: list[str] = parameter([], "vehicles of mission_node that speak MAVLink")
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(
        MAVLINK_PORT, "UDP port to listen on; 0: the system chooses", low=0, high=65535
    )
    targets: list[str] = parameter(
        ["127.0.0.1:14550", "127.0.0.1:14540"],
        "ground stations that wait for vehicles, each as host:port",
    )
    first_system_id: int = parameter(
        1,
        "MAVLink system id of the first vehicle, which the others follow; 1 is PX4's and "
        "ArduPilot's too",
        low=1,
        high=250,
    )
    signing_file: str = parameter(
        "", "file with the passphrase that signs all messages; empty: messages are not signed"
    )
    log_folder: str = parameter(
        "",
        "folder of MCAP logs, or a file in that folder; ground stations may download them; "
        "empty: no logs",
    )


@dataclass(frozen=True)
class MavlinkVehicleParameters:
    """Parameters of each vehicle of mavlink_node, after its name and a dot."""

    PREFIX: ClassVar[str] = "NAME."

    system_id: int = parameter(
        1,
        "MAVLink system id",
        low=1,
        high=250,
        shown="first_system_id and up, in the order of names",
    )
    uav_type: UavType = parameter("multirotor", "kind of vehicle, as in mission_node's parameter")
    rotors: int = parameter(
        4,
        "rotors of a multirotor or land-air vehicle: ground stations show a quadrotor, hexarotor …",
        low=1,
        high=100,
    )
    controller: str = parameter(
        "flight_control_node",
        "node in a land-air vehicle's namespace whose gains are parameters; empty: none",
    )
    parameters: list[str] = parameter(
        [], "initial values of MAVLink parameters, for example MIS_TAKEOFF_ALT=20"
    )
    gimbal_min_pitch: float = parameter(
        -90.0, "lowest pitch of a gimbal, positive up", unit="degrees", low=-180.0, high=0.0
    )
    gimbal_max_pitch: float = parameter(
        30.0, "highest pitch of a gimbal, positive up", unit="degrees", low=0.0, high=180.0
    )


# --- link_node, mavlink_hil_node, ardupilot_json_node, motor_output_node

Supplies = Literal["both", "rotors", "chassis"]


@dataclass(frozen=True)
class PerceptionParameters:
    """Perception that an external controller gets."""

    lock_step: bool = parameter(
        False,
        "the simulation waits for the answer to each tick; as the simulation's parameter",
    )
    odometry: Literal["filtered", "truth"] = parameter(
        "truth",
        "source of position, velocity and attitude: ground_truth/odom (truth), or odometry/global "
        "of state_estimator_node (filtered)",
    )


@dataclass(frozen=True)
class LinkParameters:
    """Parameters of link_node."""

    vehicle: str = parameter("scale", "parameter set of the vehicle: a shipped name or a YAML file")
    transport: Literal["udp", "tcp", "serial"] = parameter(
        "udp",
        "udp, tcp (a server of one connection), or serial: a line to the controller",
    )
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(session.PORT, "to listen on; 0: the system chooses", low=0, high=65535)
    controller_host: str = parameter("127.0.0.1", "IPv4 address of the controller (udp)")
    controller_port: int = parameter(
        session.CONTROLLER_PORT,
        "port of the controller (udp); 0: the one it sends from",
        low=0,
        high=65535,
    )
    device: str = parameter("/dev/ttyUSB0", "line to the controller (serial)")
    baud: int = parameter(921600, "rate of the line (serial)", unit="bit/s")


@dataclass(frozen=True)
class MavlinkHilParameters:
    """Parameters of mavlink_hil_node."""

    vehicle: str = parameter("scale", "parameter set of the vehicle: a shipped name or a YAML file")
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(
        mavlink_hil.PORT,
        "TCP; 4560 + instance for PX4; 0: the system chooses",
        low=0,
        high=65535,
    )
    device: str = parameter("", "serial line to an autopilot's board, instead of TCP")
    baud: int = parameter(921600, "rate of the serial line", unit="bit/s")
    supplies: Supplies = parameter("both", "outputs that the autopilot commands")
    geo_origin: list[float] = parameter(
        [],
        "latitude, longitude (deg), altitude (m) of the world's origin; default: of the simulation",
    )
    unanswered: Literal["wait", "resend", "go_on"] = parameter(
        "go_on",
        "a tick of lock-step that is not answered within answer_timeout: wait for it, send it "
        "again each time, or go on with the last controls and learn which ticks are answered",
    )
    answer_timeout: float = parameter(
        session.ANSWER_WITHIN_S,
        "wall time in which a tick of lock-step is answered; a twentieth of it while the answer "
        "rate is being learned",
        unit="s",
        low=0.05,
        high=60.0,
    )


@dataclass(frozen=True)
class ArdupilotParameters:
    """Parameters of ardupilot_json_node."""

    vehicle: str = parameter(
        "scale_quad", "parameter set of the vehicle: a shipped name or a YAML file"
    )
    bind: str = parameter("127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
    port: int = parameter(
        ardupilot_session.PORT,
        "UDP; 10 more for each of ArduPilot's instances; 0: the system chooses",
        low=0,
        high=65535,
    )
    controller_host: str = parameter(
        "127.0.0.1", "IPv4 address of the machine that ArduPilot runs on"
    )
    supplies: Supplies = parameter("both", "outputs that ArduPilot commands")


@dataclass(frozen=True)
class ControlMappingParameters:
    """Use of the autopilot's first 16 outputs, from 0: MAVLink's controls, ArduPilot's servos."""

    rotor_controls: list[int] = parameter(
        [], "outputs of the rotors in their order, 0 … 1", shown="the first, in order"
    )
    steering_control: int = parameter(8, "-1 … 1; -1: none", low=-1, high=15)
    drive_control: int = parameter(9, "-1 … 1; -1: none", low=-1, high=15)
    brake_control: int = parameter(10, "0 … 1; -1: none", low=-1, high=15)


@dataclass(frozen=True)
class MotorOutputParameters:
    """Parameters of motor_output_node."""

    vehicle: str = parameter("scale", "parameter set of the vehicle: a shipped name or a YAML file")
    motors: str = parameter("scale", "constants of its motors: a shipped name or a YAML file")
    max_duty: float = parameter(
        0.2,
        "safety limit of every motor's duty cycle; 1: all that the battery gives",
        low=0.01,
        high=1.0,
    )
    dead_man: float = parameter(
        0.2,
        "s without one of the commands that came before, after which all is off until it is armed "
        "again",
        unit="s",
        low=0.02,
        high=2.0,
    )
    rate: float = parameter(50.0, "outputs a second", unit="Hz", low=1.0, high=500.0)
    device: str = parameter(
        "", "serial line that gets them as MAVLink SERVO_OUTPUT_RAW; empty: none"
    )
    baud: int = parameter(57600, "rate of the line", unit="bit/s")


_AUTOPILOT = (ControlMappingParameters, PerceptionParameters)


NODES = {
    "mavlink_node": (
        MavlinkParameters,
        MavlinkVehicleParameters,
        FrameParameters,
        LatestTerrainParameters,
    ),
    "link_node": (LinkParameters, PerceptionParameters),
    "mavlink_hil_node": (MavlinkHilParameters, *_AUTOPILOT, LatestTerrainParameters),
    "ardupilot_json_node": (ArdupilotParameters, *_AUTOPILOT),
    "motor_output_node": (MotorOutputParameters,),
}
