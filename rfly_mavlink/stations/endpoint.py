# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Several vehicles as MAVLink systems behind one port: datagrams in, datagrams out."""

from __future__ import annotations

import math
import time as system_time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rfly_common.energy.battery import Battery
from rfly_common.geodesy import geodetic_to_ned
from rfly_mavlink.dialect.wire import (
    AUTOPILOT_COMPONENT,
    Address,
    Reader,
    Send,
    Writer,
    load_dialect,
    newer_message,
    sender_of,
    target_of,
)
from rfly_mavlink.stations.command_protocol import CommandProtocol
from rfly_mavlink.stations.file_transfer import FOLDER, ComponentMetadata, FileTransfer
from rfly_mavlink.stations.flight import FlightLogic
from rfly_mavlink.stations.flight_modes import find_custom_mode
from rfly_mavlink.stations.gimbal_protocol import GimbalManager
from rfly_mavlink.stations.log_protocol import LogFolder, LogProtocol
from rfly_mavlink.stations.mission_protocol import MissionProtocol
from rfly_mavlink.stations.mission_rows import Refused
from rfly_mavlink.stations.offboard import FlightSetpoint
from rfly_mavlink.stations.parameter_protocol import (
    ControllerGains,
    ParameterProtocol,
    Tunables,
    fixed_parameters,
)
from rfly_mavlink.stations.remote_pilot import Denied, RemotePilot
from rfly_mavlink.stations.telemetry import Telemetry
from rfly_mavlink.stations.terrain_protocol import TerrainServer
from rfly_missions.mission.items import Ned
from rfly_missions.mission.mavlink_items import (
    ABSOLUTE_FRAMES,
    GLOBAL_FRAMES,
    LOCAL_NED,
    MAX_AWAY,
    TERRAIN_FRAMES,
)


class TimeProtocol:
    """Answers to requests of HANDLED; what answers a request of others is left alone.

    https://mavlink.io/en/services/timesync.html and https://mavlink.io/en/services/ping.html. The
    time is that of the node's clock, which also stamps poses and so telemetry.
    """

    HANDLED = frozenset({"TIMESYNC", "PING"})

    def __init__(self, send: Send, clock_ns: Callable[[], int]) -> None:
        self._d = load_dialect()
        self._send = send
        self._clock_ns = clock_ns

    def handle(self, message: Any, address: Address) -> None:
        """Take one of HANDLED, for this vehicle; `address` is its sender's."""
        sender = sender_of(message)
        if message.get_type() == "PING":
            if (message.target_system, message.target_component) == (0, 0):
                ping = self._d.MAVLink_ping_message(message.time_usec, message.seq, *sender)
                self._send(ping, address)
        elif message.tc1 == 0:
            now = max(1, self._clock_ns())  # 0 would make it a request
            self._send(newer_message("TIMESYNC", now, message.ts1, *sender), address)


PEER_SILENCE_S = 15.0
"""Wall time, s, after which a silent ground station counts as gone."""
MOST_PEERS = 16
"""Number of ground stations that are served besides the targets."""
GIVES_WAY_S = 1.5
"""Wall time, s, after which a silent station gives its place to one that waits; longer than the
second between two heartbeats.
"""
MAX_SPEED = 100.0
"""Highest speed of a set-point, m/s; a higher one is ignored."""
CHUNK = 50
"""Length of the text in one STATUSTEXT."""
MOST_TEXT = 200
"""Length of the longest text that is sent."""
BATTERY_GAP_S = 10.0
"""Longest time between two ticks, s, for which the battery is drawn."""
_MOST_WAITING = 10_000
"""Number of datagrams that wait to be sent."""
_MOST_TURNED_AWAY = 64
"""Number of senders that are remembered while all places are taken."""
_STATION = (255, 190)
"""System and component, MAV_COMP_ID_MISSIONPLANNER, from which terrain data comes."""
_NO_POSITION = 0x7
"""Bits of a set-point's type_mask: a coordinate of the position is ignored."""
_NO_VELOCITY = 0x38
"""Bits of the type_mask: a coordinate of the velocity is ignored."""
_NO_YAW = 0x400
"""Bit of the type_mask: the yaw is ignored."""


class MavlinkVehicle:
    """One vehicle: it takes the messages for it, and passes its own to `send`.

    `flight` takes poses and the progress of requests. `wall` is steady time, for the link; `time`
    is that of the simulation.
    """

    def __init__(
        self,
        system_id: int,
        uav_type: str,
        pilot: RemotePilot,
        send: Send,
        values: Tunables | None = None,
        logs: LogFolder | None = None,
        clock_ns: Callable[[], int] = system_time.time_ns,
        rotors: int = 4,
    ) -> None:
        self._d = load_dialect()
        self._send = send
        self.system_id = system_id
        self.values = values or Tunables()
        self.gains = ControllerGains()
        self.battery = Battery(self.values.battery_pack())
        self.flight = FlightLogic(uav_type, pilot, self.values, self.report)

        # protocols
        logs = logs or LogFolder()
        fixed = fixed_parameters(uav_type, system_id, rotors)
        metadata = ComponentMetadata(uav_type, fixed, self.gains)
        self.gimbal = GimbalManager(self.flight, pilot)
        self._telemetry = Telemetry(
            uav_type, system_id, self.flight, self.battery, self.gimbal, metadata, rotors
        )
        self._commands = CommandProtocol(self.flight, self._telemetry, send, self.warn)
        self._missions = MissionProtocol(self.flight, send, self.warn)
        self._parameters = ParameterProtocol(self.values, self.gains, fixed, send, self.warn)
        self._logs = LogProtocol(logs, send, self.warn)
        self._files = FileTransfer(FOLDER, metadata.files, send)
        self._times = TimeProtocol(send, clock_ns)
        self._time = math.nan
        self._warned_low = False
        self._text_id = 0

    def handle(self, message: Any, wall: float, address: Address) -> None:
        """Take a message for this system, or for all; `address` is its sender's."""
        kind = message.get_type()
        if kind in CommandProtocol.HANDLED:
            self._commands.handle(message, address)
        elif kind in MissionProtocol.HANDLED:
            self._missions.handle(message, wall, address)
        elif kind in ParameterProtocol.HANDLED:
            self._parameters.handle(message, address)
        elif kind in LogProtocol.HANDLED:
            self._logs.handle(message, address)
        elif kind in FileTransfer.HANDLED:
            self._files.handle(message, address)
        elif kind in TimeProtocol.HANDLED:
            self._times.handle(message, address)
        elif kind in GimbalManager.HANDLED:
            self.gimbal.handle(message)
        elif kind in ("SET_MODE", "MISSION_SET_CURRENT"):
            self._obey_old(message)
        elif kind in ("SET_POSITION_TARGET_LOCAL_NED", "SET_POSITION_TARGET_GLOBAL_INT"):
            self._take_setpoint(message)
        elif kind == "SET_ATTITUDE_TARGET":
            self._take_attitude(message)
        elif kind == "TERRAIN_CHECK":
            report = self._telemetry.terrain_report(message.lat, message.lon)
            if report is not None:
                self._send(report, address)

    def forget(self, address: Address) -> None:
        """Drop what a station has requested that is silent now."""
        self._logs.forget(address)
        self._files.forget(address)

    def tick(self, wall: float, time: float) -> None:
        """Carry on, and send what is due."""
        try:
            self.flight.tick(time)
        except Denied as denial:
            self.warn(str(denial))

        self._use_battery(time)
        self.gimbal.tick(time)
        self._missions.tick(wall)
        self._logs.tick()
        while self.flight.mission.reached:
            self._send(
                self._d.MAVLink_mission_item_reached_message(self.flight.mission.reached.pop(0))
            )

        for name in self._telemetry.due(wall):
            message = self._telemetry.message(name)
            if message is not None:
                self._send(message)

    def report(self, text: str) -> None:
        """Send a STATUSTEXT about something that has happened."""
        self._send_text(self._d.MAV_SEVERITY_INFO, text)

    def warn(self, text: str) -> None:
        """Send a STATUSTEXT about something that was not done; none for ""."""
        if text:
            self._send_text(self._d.MAV_SEVERITY_WARNING, text)

    def _send_text(self, severity: int, text: str) -> None:
        """Send a whole text: one too long for a message goes in several with one id."""
        data = text.encode("ascii", "replace")[:MOST_TEXT]
        chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]

        self._text_id = self._text_id % 65535 + 1
        for number, chunk in enumerate(chunks):
            message_id = self._text_id if len(chunks) > 1 else 0
            self._send(self._d.MAVLink_statustext_message(severity, chunk, message_id, number))

    def _obey_old(self, message: Any) -> None:
        """Obey SET_MODE and MISSION_SET_CURRENT, older than commands, which get no COMMAND_ACK."""
        try:
            if message.get_type() == "MISSION_SET_CURRENT":
                self.flight.set_current(message.seq)
                self._send(self._telemetry.message("MISSION_CURRENT"))
                return

            mode = find_custom_mode(message.custom_mode)
            if mode is None:
                raise Denied("No such mode here")
            self.flight.select(mode)
        except (Denied, Refused) as denial:
            self.warn(str(denial))

    def _take_setpoint(self, message: Any) -> None:
        """Take a position, or else a velocity; an acceleration or a yaw rate alone is ignored."""
        mask = message.type_mask
        yaw = math.nan if mask & _NO_YAW else message.yaw
        place = None
        velocity = None
        if not mask & _NO_POSITION:
            place = self._setpoint_place(message)
        elif not mask & _NO_VELOCITY:
            velocity = self._setpoint_velocity(message)

        values = place or velocity or (math.nan,)
        is_near = all(abs(value) <= MAX_AWAY for value in values)  # False for NaN too
        if is_near and not math.isinf(yaw):
            self.flight.take_setpoint(FlightSetpoint(place, velocity, yaw))

    def _take_attitude(self, message: Any) -> None:
        """Take an attitude with a thrust; turn rates are ignored."""
        ignored = (
            self._d.ATTITUDE_TARGET_TYPEMASK_ATTITUDE_IGNORE
            | self._d.ATTITUDE_TARGET_TYPEMASK_THROTTLE_IGNORE
        )
        w, x, y, z = message.q
        if message.type_mask & ignored or not abs(math.hypot(w, x, y, z) - 1.0) < 0.01:
            return
        if 0.0 <= message.thrust <= 1.0:
            setpoint = FlightSetpoint(None, attitude=(x, y, z, w), thrust=message.thrust)
            self.flight.take_setpoint(setpoint)

    def _setpoint_velocity(self, message: Any) -> Ned | None:
        """Return a velocity, NED, m/s; body frames turn with the vehicle's heading."""
        vx = message.vx
        vy = message.vy
        vz = message.vz
        if max(map(abs, (vx, vy, vz))) > MAX_SPEED:
            return None

        body_frames = (self._d.MAV_FRAME_BODY_NED, self._d.MAV_FRAME_BODY_OFFSET_NED)
        if message.coordinate_frame in body_frames:
            yaw = float(self.flight.pose.euler[2])
            north = vx * math.cos(yaw) - vy * math.sin(yaw)
            east = vx * math.sin(yaw) + vy * math.cos(yaw)
            return north, east, vz

        is_local = message.get_type() == "SET_POSITION_TARGET_LOCAL_NED"
        is_known = not is_local or message.coordinate_frame == LOCAL_NED
        return (vx, vy, vz) if is_known else None

    def _setpoint_place(self, message: Any) -> Ned | None:
        frame = message.coordinate_frame
        if message.get_type() == "SET_POSITION_TARGET_LOCAL_NED":
            return (message.x, message.y, message.z) if frame == LOCAL_NED else None

        origin = self.flight.situation.origin
        home = self.flight.home_geodetic()
        if origin is None or home is None or frame not in GLOBAL_FRAMES - TERRAIN_FRAMES:
            return None

        north, east, _ = geodetic_to_ned(
            (message.lat_int * 1e-7, message.lon_int * 1e-7, 0.0), origin
        ).tolist()
        above = message.alt if frame in ABSOLUTE_FRAMES else home[2] + message.alt
        return north, east, origin[2] - above

    def _use_battery(self, time: float) -> None:
        self.battery.pack = self.values.battery_pack()
        dt = time - self._time
        self._time = time
        if not 0.0 < dt < BATTERY_GAP_S:
            return
        flying = self.values.flying_power if self.flight.in_air else 0.0
        self.battery.draw(self.values.idle_power + flying, dt)

        low = self.battery.charge < self.values.battery_low
        if low and not self._warned_low:
            self.warn("Battery low")
        self._warned_low = low


class MavlinkEndpoint:
    """Vehicles behind one port: `receive` and `tick` fill what `datagrams` returns.

    All three are called in one thread. Telemetry goes to the `targets`, and to every station that
    has sent a valid message lately; answers go to the station that asked. With a `key` all messages
    are signed, and only signed ones are accepted.
    """

    def __init__(
        self,
        targets: Sequence[Address],
        key: bytes = b"",
        logs: LogFolder | None = None,
        clock_ns: Callable[[], int] = system_time.time_ns,
    ) -> None:
        """Start; `clock_ns` is the clock that stamps poses, ns."""
        self._clock_ns = clock_ns
        self._targets = tuple(targets)
        self._key = key
        self._logs = logs
        self._reader = Reader(key)
        self._heard: dict[Address, float] = {}
        self._turned_away: dict[Address, float] = {}
        """When a station without a place was heard last; the newest at the end."""
        self._out: deque[tuple[Address, bytes]] = deque(maxlen=_MOST_WAITING)
        self.vehicles: dict[int, MavlinkVehicle] = {}
        station = Writer(_STATION[0], key, link_id=_STATION[0], component_id=_STATION[1])
        self.terrain = TerrainServer(lambda message, to: self._send(station, message, to))
        self.received = 0
        """Number of complete messages."""

    @property
    def bad_data(self) -> int:
        """Number of places in datagrams without a message, or with a wrongly signed one."""
        return self._reader.bad_data

    @property
    def peers(self) -> list[Address]:
        """Stations that have sent a message lately."""
        return list(self._heard)

    def add(
        self,
        system_id: int,
        uav_type: str,
        pilot: RemotePilot,
        values: Tunables | None = None,
        rotors: int = 4,
    ) -> MavlinkVehicle:
        """Add a vehicle; `rotors` of a multirotor or a land-air one determine its MAV_TYPE."""
        writer = Writer(system_id, self._key, link_id=system_id)
        vehicle = MavlinkVehicle(
            system_id,
            uav_type,
            pilot,
            lambda message, to=None: self._send(writer, message, to),
            values,
            self._logs,
            self._clock_ns,
            rotors,
        )
        self.vehicles[system_id] = vehicle
        return vehicle

    def _send(self, writer: Writer, message: Any, to: Address | None) -> None:
        data = writer.write(message)
        for address in {*self._targets, *self._heard} if to is None else (to,):
            self._out.append((address, data))

    def receive(self, datagram: bytes, sender: Address, wall: float) -> None:
        """Take a datagram from a sender."""
        messages = self._reader.read(datagram)
        if not messages:
            return

        if sender in self._heard or len(self._heard) < MOST_PEERS:
            self._heard[sender] = wall
            self._turned_away.pop(sender, None)
        elif sender not in self._targets:
            self._turned_away.pop(sender, None)
            self._turned_away[sender] = wall
            if len(self._turned_away) > _MOST_TURNED_AWAY:
                del self._turned_away[next(iter(self._turned_away))]
            return

        for message in messages:
            self.received += 1
            if message.get_type() in TerrainServer.HANDLED:
                self.terrain.handle(message, sender)
                continue

            # a check of terrain names no system
            target = (0, 0) if message.get_type() == "TERRAIN_CHECK" else target_of(message)
            if target is None or target[1] not in (0, AUTOPILOT_COMPONENT):
                continue
            system = target[0]
            everyone = list(self.vehicles.values())
            for vehicle in [self.vehicles.get(system)] if system else everyone:
                if vehicle is not None:
                    vehicle.handle(message, wall, sender)

    def tick(self, wall: float, time: float) -> None:
        """Carry on to a steady wall time and a simulated time, s."""
        for address in [a for a, heard in self._heard.items() if wall - heard > PEER_SILENCE_S]:
            self._forget(address)
        if self._turned_away:
            self._give_places(wall)
        self.terrain.tick()
        for vehicle in self.vehicles.values():
            vehicle.tick(wall, time)

    def _forget(self, address: Address) -> None:
        """Take a station's place, and drop what it has requested."""
        del self._heard[address]
        for vehicle in self.vehicles.values():
            vehicle.forget(address)
        self.terrain.forget(address)

    def _give_places(self, wall: float) -> None:
        """Give the places of stations that are silent, as after a flood, to those that wait."""
        waiting = [a for a, heard in self._turned_away.items() if wall - heard <= GIVES_WAY_S]
        self._turned_away = {address: self._turned_away[address] for address in waiting}
        for address in reversed(waiting):
            if len(self._heard) >= MOST_PEERS:
                quietest = min(self._heard, key=self._heard.__getitem__)
                if wall - self._heard[quietest] <= GIVES_WAY_S:
                    return
                self._forget(quietest)
            self._heard[address] = self._turned_away.pop(address)

    def datagrams(self) -> list[tuple[Address, bytes]]:
        """Return the datagrams that are to be sent, oldest first, and forget them."""
        out = list(self._out)
        self._out.clear()
        return out
