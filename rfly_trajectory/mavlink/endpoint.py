"""Several vehicles as MAVLink systems behind one port: datagrams in, datagrams out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from rfly_trajectory.mavlink.flight import Pilot
from rfly_trajectory.mavlink.parameter_protocol import Tunables
from rfly_trajectory.mavlink.vehicle import MavlinkVehicle
from rfly_trajectory.mavlink.wire import AUTOPILOT_COMPONENT, Reader, Writer

Address = tuple[str, int]
"""host and port"""
PEER_SILENCE_S = 15.0
"""of wall time, after which a ground station counts as gone"""
MOST_PEERS = 16
"""beside the targets; who comes when all places are taken is told nothing"""
_MOST_WAITING = 10_000


class MavlinkEndpoint:
    """`receive` and `tick` make what `datagrams` gives; all in one thread.

    Everything goes to the `targets`, and to whoever has sent a valid message lately. With a `key` all is signed, and
    only what is signed is heard.
    """

    def __init__(self, targets: Sequence[Address], key: bytes = b"") -> None:
        self._targets, self._key = tuple(targets), key
        self._reader = Reader(key)
        self._heard: dict[Address, float] = {}
        self._out: deque[tuple[Address, bytes]] = deque(maxlen=_MOST_WAITING)
        self.vehicles: dict[int, MavlinkVehicle] = {}
        self.received = 0
        """whole messages"""

    @property
    def bad_data(self) -> int:
        """Places in datagrams that held no message, or one that was not signed as it should be."""
        return self._reader.bad_data

    @property
    def peers(self) -> list[Address]:
        """Who has spoken lately."""
        return list(self._heard)

    def add(self, system_id: int, uav_type: str, pilot: Pilot, values: Tunables | None = None) -> MavlinkVehicle:
        """One more vehicle."""
        writer = Writer(system_id, self._key, link_id=system_id)
        made = MavlinkVehicle(system_id, uav_type, pilot, lambda message: self._send(writer, message), values)
        self.vehicles[system_id] = made
        return made

    def _send(self, writer: Writer, message: Any) -> None:
        data = writer.write(message)
        for address in {*self._targets, *self._heard}:
            self._out.append((address, data))

    def receive(self, datagram: bytes, sender: Address, wall: float) -> None:
        """What has come from somebody."""
        messages = self._reader.read(datagram)
        if not messages:
            return
        if sender in self._heard or len(self._heard) < MOST_PEERS:
            self._heard[sender] = wall
        elif sender not in self._targets:
            return
        for message in messages:
            self.received += 1
            system = getattr(message, "target_system", None)
            component = getattr(message, "target_component", 0)
            if system is None or component not in (0, AUTOPILOT_COMPONENT):
                continue
            for vehicle in [self.vehicles.get(system)] if system else list(self.vehicles.values()):
                if vehicle is not None:
                    vehicle.handle(message, wall)

    def tick(self, wall: float, time: float) -> None:
        """Time has come this far: steady wall time, and the simulation's."""
        for address in [a for a, at in self._heard.items() if wall - at > PEER_SILENCE_S]:
            del self._heard[address]
        for vehicle in self.vehicles.values():
            vehicle.tick(wall, time)

    def datagrams(self) -> list[tuple[Address, bytes]]:
        """What is to be sent, oldest first."""
        out = list(self._out)
        self._out.clear()
        return out
