# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Usual input of a node or a command, for attacks in the middle of work."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress

from attacks.running import Running, node_command
from rfly_common.files import Closing

DATAGRAMS_HZ = 200.0
VEHICLES = 100
"""Vehicles in the datagrams."""


class Traffic(Closing):
    """Usual senders of a graph: a terrain, a convoy at 50 Hz, missions, a vehicle with all sensors.

    The vehicle is a land-air vehicle. Datagrams go to `udp_ports`.
    """

    def __init__(self, graph: Mapping[str, str]) -> None:
        self.udp_ports: set[int] = set()
        """UDP ports of the loopback."""
        self._done = threading.Event()

        with ExitStack() as opened:
            nodes: dict[str, dict[str, str]] = {
                "terrain_node": {"map": "JacksboroFault"},
                "trajectory_node": {"fleet": "demo_convoy"},
                "mission_node": {
                    "vehicles": "[hawk]",
                    "file_folders": f"[{tempfile.gettempdir()}]",
                },
                "amphibious_sim_node": {"vehicle": "scale", "start": "[-1074.0, -479.0, 0.38]"},
            }
            for name, parameters in nodes.items():
                opened.enter_context(Running(node_command(name, parameters), graph))

            # datagrams in a thread of their own
            self._thread = threading.Thread(target=self._send, daemon=True)
            self._thread.start()
            opened.callback(self._thread.join)
            opened.callback(self._done.set)
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def _send(self) -> None:
        """Send poses of VEHICLES vehicles to all ports until closed."""
        from rfly_ue_bridge.codec.state_datagrams import encode_pose

        number = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not self._done.wait(1.0 / DATAGRAMS_HZ):
                number += 1
                vehicle = number % VEHICLES
                datagram = encode_pose(
                    1 + vehicle, 3, (float(vehicle), 0.01 * number, -500.0), (0.0, 0.0, 0.0)
                )
                for port in tuple(self.udp_ports):
                    with suppress(ConnectionRefusedError):  # nothing listens yet, or any more
                        sender.sendto(datagram, ("127.0.0.1", port))
