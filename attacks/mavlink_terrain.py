# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink peers that ask mavlink_node for terrain, and upload fences, with odd numbers.

The ground of the map is level, so that each height the node sends has one right value. Off the map
there are no heights.
"""

from __future__ import annotations

import math
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from attacks.peers import PATIENCE_S, judged, listening_port, node_at_work
from attacks.running import free_port
from attacks.table import Result

TRIES = 5_000
SHORT_TRIES = 300
"""Odd messages in a short run."""
ORIGIN = (47.0, 8.0, 100.0)
ABOVE_ORIGIN = 23.0
"""Height of the ground above the map's origin, m."""
ALTITUDE = 123
SPAN_M = 1000.0
"""Half of the map's extent, m."""
ASKING = 40
"""Number of autopilots at the same time."""
BETWEEN = 100
"""Odd messages between two looks at the answers."""
_PLACES = (470_000_000, 80_000_000, 0, 1, -1, 900_000_000, 2**31 - 1, -(2**31), 470_060_000)
_SPACINGS = (0, 1, 30, 100, 5000, 65_535)
_MASKS = (0, 1, 2**55, 2**56 - 1, 2**64 - 1)
_FLOATS = (0.0, 3.0, 4.0, -1.0, 1e9, 3e38, math.nan, math.inf, -math.inf)


def odd_message(rng: random.Random, dialect: Any) -> Any:
    """Return a request for terrain, or a message of an upload, of odd numbers."""
    place = rng.choice(_PLACES), rng.choice(_PLACES)
    match rng.randrange(5):
        case 0 | 1:
            mask = rng.choice((*_MASKS, rng.getrandbits(64)))
            return dialect.MAVLink_terrain_request_message(*place, rng.choice(_SPACINGS), mask)
        case 2:
            return dialect.MAVLink_terrain_check_message(*place)
        case 3:
            count = rng.choice((0, 1, 3, 1000, 65_535))
            return dialect.MAVLink_mission_count_message(1, 1, count, rng.choice((0, 1, 2, 3, 255)))
        case _:
            command = rng.choice((5000, 5001, 5002, 5003, 5004, 5100, 16, 65_535))
            params = [rng.choice(_FLOATS) for _ in range(4)]
            fields = (rng.choice((0, 1, 2, 3)), rng.choice((0, 3, 5, 6, 10, 255)), command, 0, 1)
            height = rng.choice(_FLOATS)
            kind = rng.choice((0, 1, 2, 255))
            return dialect.MAVLink_mission_item_int_message(
                1, 1, *fields, *params, *place, height, kind
            )


def publish_level_ground(node: Any) -> Any:
    """Publish a map of level ground; return its publisher, which keeps it."""
    import numpy as np
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    steps = {"step_x": SPAN_M, "step_y": SPAN_M}
    level = HeightMap(np.full((3, 3), ABOVE_ORIGIN), origin_x=-SPAN_M, origin_y=-SPAN_M, **steps)
    publisher = node.create_publisher(TerrainMap, "terrain_map", LATCHED)
    publisher.publish(height_map_to_msg(level, ORIGIN, 1, 10**6))
    return publisher


class Asker:
    """An autopilot that asks on a socket of its own, and holds the answers against the ground."""

    def __init__(self, port: int) -> None:
        from rfly_mavlink.dialect.wire import Reader, Writer, load_dialect

        self.dialect = load_dialect()
        self._reader = Reader()
        self._writer = Writer(1)
        self._port = port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self.wrong: list[str] = []
        """Heights that are not those of the ground."""

    def send(self, message: Any) -> None:
        with suppress(ConnectionRefusedError):
            self._socket.sendto(self._writer.write(message), ("127.0.0.1", self._port))

    def take(self) -> int:
        """Read what has arrived; return the number of grids."""
        grids = 0
        with suppress(BlockingIOError, ConnectionRefusedError):
            while True:
                for message in self._reader.read(self._socket.recv(4096)):
                    grids += message.get_type() == "TERRAIN_DATA"
                    self._check(message)
        return grids

    def _check(self, message: Any) -> None:
        kind = message.get_type()
        if kind == "TERRAIN_DATA" and any(height != ALTITUDE for height in message.data):
            self.wrong.append(f"TERRAIN_DATA of {list(message.data)}")
        is_report = kind == "TERRAIN_REPORT" and message.spacing > 0
        if is_report and not abs(message.terrain_height - ALTITUDE) < 1e-3:
            self.wrong.append(f"TERRAIN_REPORT of {message.terrain_height}")

    def is_served(self) -> bool:
        """Return whether a sensible request is answered."""
        request = self.dialect.MAVLink_terrain_request_message(470_000_000, 80_000_000, 30, 1)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.send(request)
            time.sleep(0.1)
            if self.take():
                return True
        return False

    def close(self) -> None:
        self._socket.close()


def terrain_askers(rng: random.Random, tries: int) -> Result:
    """Ask for terrain and upload fences with odd numbers; no height may be wrong."""
    parameters = {"vehicles": ["uav"], "port": 0, "targets": [f"127.0.0.1:{free_port()}"]}
    with node_at_work("mavlink_node", parameters, traffic=False) as (running, pulse):
        port = listening_port(running, "udp")
        publish_level_ground(pulse.node)
        sensible = Asker(port)
        failures = [] if sensible.is_served() else ["a sensible request gets no answer"]

        askers = [Asker(port) for _ in range(ASKING)]
        for number in range(tries):
            asker = rng.choice(askers)
            asker.send(odd_message(rng, asker.dialect))
            if number % BETWEEN == 0:
                time.sleep(0.05)
                for each in askers:
                    each.take()

        if not sensible.is_served():
            failures.append("a sensible request gets no answer afterwards")
        for each in (sensible, *askers):
            each.take()
            failures += each.wrong[:3]
            each.close()
        return judged("terrain askers", tries, running, pulse.longest_stall(), failures)


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {"terrain askers": terrain_askers}
