# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mavlink_node: vehicles of mission_node as MAVLink systems, around a MavlinkEndpoint."""

from __future__ import annotations

import errno
import math
import socket
import time
from pathlib import Path

from rclpy.node import Node

from rfly_common.config.checks import check_vehicle_names
from rfly_common.errors import ConfigError
from rfly_common.files import read_regular
from rfly_common.geodesy import GeoPoint, place_problem
from rfly_common.ros.diagnostics import OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import steady_timer
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_mavlink.dialect.wire import Address, signing_key
from rfly_mavlink.ros.mavlink_vehicle_topics import MavlinkVehicleTopics
from rfly_mavlink.ros.node_parameters import MavlinkParameters, MavlinkVehicleParameters
from rfly_mavlink.stations.endpoint import MavlinkEndpoint
from rfly_mavlink.stations.log_protocol import LogFolder
from rfly_mavlink.stations.parameter_protocol import Tunables, set_values
from rfly_mavlink.stations.remote_pilot import SILENCE_S
from rfly_mavlink.stations.terrain_protocol import PlacedTerrain
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, LatestTerrain

PERIOD_S = 0.01
"""Wall time between two readings of the socket, s."""
MOST_DATAGRAMS = 200
"""Number of datagrams in one reading; more wait in the system's buffer, or are dropped there."""
MOST_BYTES = 2048
"""Size of the largest datagram, bytes."""
MOST_PASSPHRASE_BYTES = 10_000
PX4_PORTS = (14580, 18570, 14280, 13030)
"""UDP ports of PX4's first simulated instance: API, ground station, camera, gimbal."""
PX4_INSTANCES = 100
"""Number of PX4's instances that are told by their ports."""


class MavlinkNode(Node):
    """A UDP socket, the vehicles' topics, and the endpoint between them."""

    def __init__(self) -> None:
        super().__init__("mavlink_node")
        params = declare_parameters(self, MavlinkParameters)
        self._ground = LatestTerrain(self, self._on_terrain_map)
        self._place_problem = ""
        self._diagnostics = Diagnostics(self, "mavlink", "", self._update_diagnostics)
        log_folder = Path(params.log_folder).expanduser() if params.log_folder else None
        logs = LogFolder(log_folder)
        targets = [_address(text) for text in params.targets]
        self._endpoint = MavlinkEndpoint(
            targets,
            _key(params.signing_file),
            logs,
            lambda: self.get_clock().now().nanoseconds,
        )

        frames = Frames(self)
        self._vehicles: list[MavlinkVehicleTopics] = []
        self._socket = _bound_socket(params.bind, params.port)
        self._where = f"udp {params.bind}:{self._socket.getsockname()[1]}"
        self._diagnostics.hardware_id = self._where
        check_vehicle_names("parameter vehicles", params.vehicles)
        for number, name in enumerate(params.vehicles, params.first_system_id):
            self._vehicles.append(self._vehicle(name, number, frames))

        self._ground.start(self._diagnostics)
        self._update_diagnostics()
        self._timer = steady_timer(self, PERIOD_S, self._tick)

        names = [f"{each.vehicle.system_id} {each.name}" for each in self._vehicles]
        listed = ", ".join(names) or "no vehicles"
        others = f" and sending to {', '.join(params.targets)}" if params.targets else ""
        self.get_logger().info(f"listening on {self._where} for ground stations{others}: {listed}")

    def _vehicle(self, name: str, number: int, frames: Frames) -> MavlinkVehicleTopics:
        """Return the vehicle, by default as system `number`. Raise ConfigError."""
        params = declare_parameters(
            self,
            MavlinkVehicleParameters,
            prefix=f"{name}.",
            defaults={"system_id": number},
        )
        if params.system_id in self._endpoint.vehicles:
            raise ConfigError(
                f"parameter {name}.system_id: {params.system_id} belongs to two vehicles"
            )

        values = Tunables()
        try:
            set_values(values, params.parameters)
        except ConfigError as error:
            raise ConfigError(f"parameter {name}.parameters: {error}") from None

        controller = params.controller if params.uav_type == "land-air" else ""
        topics = MavlinkVehicleTopics(
            self,
            name,
            self._endpoint,
            params.system_id,
            params.uav_type,
            values,
            frames,
            self._diagnostics,
            controller,
            params.rotors,
        )
        topics.vehicle.gimbal.limits = (
            math.radians(params.gimbal_min_pitch),
            math.radians(params.gimbal_max_pitch),
        )
        return topics

    def destroy_node(self) -> None:
        """Close the socket; take the actions off the graph first."""
        self._socket.close()
        for each in self._vehicles:
            each.destroy()
        super().destroy_node()

    def _on_terrain_map(self, terrain: HeightMap, origin: GeoPoint) -> None:
        for each in self._vehicles:
            each.take_terrain(terrain, origin)
        self._endpoint.terrain.terrain = PlacedTerrain(terrain, origin)
        self._place_problem = place_problem(origin)
        self._update_diagnostics()

    def _tick(self) -> None:
        wall = time.monotonic()
        self._receive(wall)
        for each in self._vehicles:
            each.update(wall)
        self._endpoint.tick(wall, self.get_clock().now().nanoseconds * 1e-9)
        for address, data in self._endpoint.datagrams():
            try:
                self._socket.sendto(data, address)
            except OSError:  # no listener, or the network is away: the next one may get through
                self._diagnostics.count("not_sent")

    def _receive(self, wall: float) -> None:
        for _ in range(MOST_DATAGRAMS):
            try:
                data, sender = self._socket.recvfrom(MOST_BYTES)
            except BlockingIOError:
                return
            except OSError:  # the loopback's answer that an address has no listener
                continue
            self._endpoint.receive(data, sender, wall)

    def _update_diagnostics(self) -> None:
        silent = [each.name for each in self._vehicles if each.silence_s > SILENCE_S]
        alone = [each.name for each in self._vehicles if each.problem()]
        peers = ", ".join(f"{host}:{port}" for host, port in self._endpoint.peers)

        self._diagnostics.set_first(
            [
                (not self._vehicles, OK, "no vehicles: parameter vehicles is empty"),
                (self._ground.problem, WARN, self._ground.problem),
                (self._ground.terrain is None, STALE, NO_MAP_YET),
                (self._place_problem, WARN, self._place_problem),
                (alone, WARN, f"no mission_node answers for {', '.join(alone)}"),
                (silent, STALE, f"no pose of {', '.join(silent)}"),
                (peers, OK, f"speaks with {peers}"),
                (True, OK, "no ground station has spoken"),
            ],
            vehicles=len(self._vehicles),
            received=self._endpoint.received,
            bad_data=self._endpoint.bad_data,
            terrain_grids_sent=self._endpoint.terrain.sent,
            terrain_grids_off_map=self._endpoint.terrain.off_map,
        )


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(
            f"parameter targets: {text!r}, expected host:port such as 127.0.0.1:14550"
        )
    try:
        return socket.gethostbyname(host), int(port)
    except OSError as error:
        raise ConfigError(f"parameter targets: {text!r}: {error}") from None


def _bound_socket(bind: str, port: int) -> socket.socket:
    udp_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        udp_socket.bind((bind, port))
    except OSError as error:
        udp_socket.close()
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = f"another program holds it, {_likely_holder(port)}"
        raise ConfigError(f"parameters bind and port: udp {bind}:{port}: {reason}") from None

    udp_socket.setblocking(False)
    return udp_socket


def _likely_holder(port: int) -> str:
    """Return who probably has a port that is in use."""
    for first in PX4_PORTS:
        if first <= port < first + PX4_INSTANCES:
            return f"perhaps PX4's simulation, which binds {first} + its instance's number"
    return "perhaps another mavlink_node"


def _key(file: str) -> bytes:
    """Return the key of the passphrase in a file, without its end of line; b"" for no file."""
    if not file:
        return b""
    try:
        passphrase = read_regular(file, MOST_PASSPHRASE_BYTES).decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"parameter signing_file: {file}: {error}") from None
    if not passphrase:
        raise ConfigError(f"parameter signing_file: {file}: expected a passphrase, it is empty")
    return signing_key(passphrase)
