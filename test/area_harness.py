# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes that drive the fleets of areas, each in a namespace of its own, and what they publish."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from fleet_harness import TerrainSource, ground, receive_diagnostics, stamp

from rfly_trajectory.fleet.area_shards import LEASE

SIDES = ("west", "east")
"""Namespaces of the two nodes that share a fleet."""


class AreaNodes:
    """The nodes of one fleet, and their states, lost vehicles, starts and diagnostics."""

    def __init__(self, stack: ExitStack, domain_id: int, fleet: Path) -> None:
        from builtin_interfaces.msg import Time
        from node_harness import NodeProcess, Peer
        from rfly_suite.msg import FleetArea, VehicleStateArray

        from rfly_common.ros.qos import FLEET_IN, LATCHED
        from rfly_trajectory.ros.area_topics import AREAS_TOPIC, REPORTS_IN

        self._stack = stack
        self._domain_id = domain_id
        self.file = fleet
        self.nodes: dict[str, NodeProcess] = {}
        self.peer = peer = Peer(domain_id, events=True)
        stack.callback(peer.close)
        TerrainSource(peer).publish(ground())
        self.states = {
            side: peer.receive(VehicleStateArray, f"/{side}/vehicle_states", FLEET_IN)
            for side in SIDES
        }
        self.lost = peer.receive(VehicleStateArray, "/west/lost_vehicles", LATCHED)
        self.reports = peer.receive(FleetArea, AREAS_TOPIC, REPORTS_IN)
        self.starts = peer.receive(Time, "/fleet_start", LATCHED)
        self.diagnostics = receive_diagnostics(peer)

    def start_node(self, side: str, area: str, **parameters: str) -> None:
        """Start the node of an area."""
        from node_harness import NodeProcess

        parameters = {"fleet": f"'{self.file}'", "area": area, **parameters}
        remap = ["-r", f"__ns:=/{side}", "-r", "terrain_map:=/terrain_map"]
        node = NodeProcess("trajectory_node", self._domain_id, parameters, *remap)
        self.nodes[side] = self._stack.enter_context(node)

    def kill(self, side: str) -> float:
        """Kill a node; return the time then, s."""
        self.nodes[side].process.send_signal(signal.SIGKILL)
        self.nodes[side].process.wait()
        return self.peer.node.get_clock().now().nanoseconds * 1e-9

    def assert_none_lost(self) -> None:
        """Check that no vehicle was told as lost.

        On a busy machine a node may rest for so long that the other has to take it for dead; then
        its vehicles are found again.
        """
        rests = [
            stamp(after.header) - stamp(before.header)
            for side in SIDES
            for before, after in pairwise(r for r in self.reports if f"/{side}/" in r.source)
        ]
        assert max(rests, default=math.inf) > LEASE / 2.0 or not self.lost
        self.peer.spin_until(lambda: not (self.lost and self.lost[-1].id))
        self.lost.clear()

    def told(self, side: str) -> tuple[int, str, dict[str, str]] | None:
        """Return (level, message, values) of the newest diagnostic of a node, or None."""
        for message in reversed(self.diagnostics):
            for status in message.status:
                if status.name == f"/{side}/trajectory_node: fleet":
                    values = {v.key: v.value for v in status.values}
                    return int.from_bytes(status.level, "big"), status.message, values
        return None

    def wait_until_told(self, side: str, ready: Callable[[int, str, dict[str, str]], Any]) -> Any:
        """Wait for a diagnostic of a node for which `ready(level, message, values)` is true."""
        self.diagnostics.clear()
        return self.peer.spin_until(lambda: (d := self.told(side)) and ready(*d) and d)
