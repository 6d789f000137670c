# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A ground station of pymavlink alone, and a pilot that flies MissionRunner's multirotor.

Together they drive an endpoint without ROS.
"""

from __future__ import annotations

import contextlib
import math
import socket
from typing import Any

from rfly_mavlink.stations.endpoint import MavlinkEndpoint
from rfly_mavlink.stations.log_protocol import LogFolder
from rfly_mavlink.stations.mission_rows import FlightPlan
from rfly_missions.execution.runner import MissionRunner
from rfly_missions.followers.multirotor import Multirotor
from rfly_missions.mission.geofence import FlightAreaPlan
from rfly_missions.mission.items import FlownMission, MissionCommand, Ned

ORIGIN = (47.0, 8.0, 500.0)
STATION = ("127.0.0.1", 14550)
OTHER_STATION = ("127.0.0.1", 14551)
NAN = math.nan


class SimulatedPilot:
    """A stand-in for mission_node, which carries out goals and commands; `requests` keeps them."""

    def __init__(self, position: Ned, yaw: float) -> None:
        self.follower = Multirotor(position, yaw)
        self.runner = MissionRunner(follower=self.follower)
        self.runner.load((), (0.0, 0.0, 0.0))
        self.requests: list[Any] = []
        self.areas = [FlightAreaPlan()]
        self.refusal = ""
        self.turns = False
        self.gimbal: float | None = None
        """Pitch of its joint, rad; None: it has no gimbal."""
        self.vehicle: Any = None
        self._running = False
        self._flies_for_other = False

    def problem(self) -> str:
        return self.refusal

    def fly(self, plan: FlightPlan, home: Ned, start_index: int) -> None:
        self.requests.append(plan)
        fence, rally = self.areas[-1]
        self.runner.load(plan.items, home, start_index=start_index, fence=fence, rally=rally)
        self._running = True
        self._flies_for_other = False

    def fly_for_other(self, mission: FlownMission, start_index: int = 0) -> None:
        """Fly a mission of another client, and report it as mission_node does."""
        fence, rally = self.areas[-1]
        self.runner.load(
            mission.items,
            mission.home,
            repeat=mission.repeat,
            start_index=start_index,
            fence=fence,
            rally=rally,
        )
        self._running = False
        self._flies_for_other = True
        flight = self.vehicle.flight
        flight.take_other_mission(mission.home, flight.shown_rows(mission))

    def command(self, command: MissionCommand) -> None:
        self.requests.append(command)
        self.runner.command = command

    def request_mode(self, word: str) -> None:
        self.requests.append(word)

    def takes_attitudes(self) -> bool:
        return self.turns

    def turn(self, attitude: tuple[float, float, float, float], thrust: float) -> None:
        self.requests.append((attitude, thrust))

    def gimbal_pitch(self) -> float | None:
        return self.gimbal

    def point_gimbal(self, pitch: float) -> None:
        self.requests.append(pitch)
        self.gimbal = pitch

    def set_area(self, area: FlightAreaPlan) -> None:
        self.areas.append(area)
        self.runner.replace_area(area.fence, area.rally)

    def step(self, dt: float) -> None:
        state = self.runner.step(dt)
        flight = self.vehicle.flight
        flight.situation.shown = state.params.current.mode
        if self._flies_for_other:
            flight.follow_other(state.item_index, state.phase)
        elif self._running:
            flight.follow_phase(state.phase)
        flight.situation.item = state.flown
        if self._running:
            flight.progressed(state.item_index)
        if self._running and state.finished:
            self._running = False
            flight.ended(True, "")


class Station:
    """One endpoint with one vehicle on level ground at z = 0, and a station that talks to it."""

    def __init__(
        self,
        key: bytes = b"",
        systems: tuple[int, ...] = (1,),
        at: Ned = (0.0, 0.0, 0.0),
        yaw: float = 0.0,
        logs: LogFolder | None = None,
    ) -> None:
        from pymavlink.dialects.v20 import common

        self.d = common

        self.endpoint = MavlinkEndpoint([STATION], key, logs)
        self.pilots = {}
        for system in systems:
            pilot = self.pilots[system] = SimulatedPilot(at, yaw)
            pilot.vehicle = self.endpoint.add(system, "multirotor", pilot)
        self.pilot = self.pilots[systems[0]]
        self.vehicle = self.endpoint.vehicles[systems[0]]

        self.packer = common.MAVLink(None, 245, 190)
        self.parser = common.MAVLink(None)
        self.other_parser = common.MAVLink(None)
        if key:
            for end in (self.packer, self.parser, self.other_parser):
                end.signing.secret_key = key
                end.signing.sign_outgoing = True

        self.now = 100.0
        self.heard: list[Any] = []
        self.other_heard: list[Any] = []
        """What the other station has heard, which has the same ids."""
        self.run(0.1)

    def run(self, seconds: float, dt: float = 0.05) -> None:
        """Let time pass; wall time and simulated time are the same."""
        for _ in range(round(seconds / dt)):
            self.now += dt
            for system, pilot in self.pilots.items():
                flight = self.endpoint.vehicles[system].flight
                pilot.step(dt)
                flight.pose.take(self.now, pilot.follower.position, pilot.follower.euler)
                flight.situation.origin = ORIGIN
                flight.situation.ground = 0.0
                flight.situation.silence = 0.0
            self.endpoint.tick(self.now, self.now)
            self.listen()

    def listen(self) -> None:
        for address, data in self.endpoint.datagrams():
            if address == STATION:
                self.heard += self.parser.parse_buffer(data) or []
            elif address == OTHER_STATION:
                self.other_heard += self.other_parser.parse_buffer(data) or []

    def send(self, message: Any, address: tuple[str, int] = STATION) -> list[Any]:
        """Send a message from an address; return the answers there."""
        heard = self.heard if address == STATION else self.other_heard
        before = len(heard)
        self.endpoint.receive(bytes(message.pack(self.packer)), address, self.now)
        self.listen()
        return heard[before:]

    def command(self, number: int, *params: float, system: int = 1) -> str:
        """Send COMMAND_LONG; return the name of its result."""
        filled = [*params, *[NAN] * (7 - len(params))]
        acks = of_type(
            "COMMAND_ACK",
            self.send(self.d.MAVLink_command_long_message(system, 1, number, 0, *filled)),
        )

        (ack,) = [ack for ack in acks if ack.get_srcSystem() == system]
        assert ack.command == number
        name: str = self.d.enums["MAV_RESULT"][ack.result].name
        return name.removeprefix("MAV_RESULT_")

    def last(self, kind: str, system: int = 1) -> Any:
        return [m for m in of_type(kind, self.heard) if m.get_srcSystem() == system][-1]

    @property
    def texts(self) -> list[str]:
        """Texts of STATUSTEXT, put together from their pieces."""
        texts: list[str] = []
        for message in of_type("STATUSTEXT", self.heard):
            texts += [message.text] if message.chunk_seq == 0 else [texts.pop() + message.text]
        return texts


def of_type(kind: str, messages: list[Any]) -> list[Any]:
    return [message for message in messages if message.get_type() == kind]


class StationSocket:
    """A ground station on a port of its own, for nodes; `peer` spins while it waits."""

    def __init__(self, peer: Any) -> None:
        from pymavlink.dialects.v20 import common

        self._peer = peer
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        self._node: Any = None
        self._mav = common.MAVLink(None, 245, 190)
        self._newest: dict[str, Any] = {}
        self.heard: list[Any] = []
        """All messages, oldest first."""

    def __enter__(self) -> StationSocket:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def last(self, kind: str) -> Any:
        """Return the newest message of a kind, None before the first."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, self._node = self._socket.recvfrom(4096)
                for message in self._mav.parse_buffer(data) or []:
                    self._newest[message.get_type()] = message
                    self.heard.append(message)
        return self._newest.get(kind)

    def ask(self, message: Any, *kinds: str) -> Any:
        """Send a message; return the answer, which is of one of these kinds."""
        for kind in kinds:
            self.last(kind)
            self._newest.pop(kind, None)
        self._socket.sendto(message.pack(self._mav), self._node)
        return self._peer.spin_until(lambda: next(filter(None, map(self.last, kinds)), None))

    def command(self, number: int, *params: float, system: int = 1, component: int = 1) -> int:
        """Send COMMAND_LONG; return its result."""
        # messages that wait are read first: a full buffer would drop the answer
        self.last("COMMAND_ACK")
        self._newest.pop("COMMAND_ACK", None)

        filled = [*params, *[NAN] * (7 - len(params))]
        message = self._mav.command_long_encode(system, component, number, 0, *filled)
        self._socket.sendto(message.pack(self._mav), self._node)
        ack = self._peer.spin_until(lambda: self.last("COMMAND_ACK"))
        assert ack.command == number
        result: int = ack.result
        return result
