# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shared parts of fleet tests: a ground, terrain_map as terrain_node publishes it, node output."""

from __future__ import annotations

import numpy as np

from rfly_terrain.height_map.height_map import HeightMap


def ground(lift=0.0, name="waves"):
    """400 m x 400 m of hills around the origin."""
    axis = np.arange(-200.0, 201.0, 10.0)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    heights = lift + 6 * np.sin(x / 37) * np.cos(y / 29) + 0.03 * x
    return HeightMap(heights, origin_x=-200.0, origin_y=-200.0, step_x=10.0, step_y=10.0, name=name)


class TerrainSource:
    """Publishes terrain_map as terrain_node does."""

    def __init__(self, peer):
        from rfly_suite.msg import TerrainMap

        from rfly_common.ros.qos import LATCHED

        self._publisher = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)

    def publish(self, height_map, max_cells=10**9):
        from rfly_terrain.ros.terrain_msgs import height_map_to_msg

        self._publisher.publish(height_map_to_msg(height_map, (0.0, 0.0, 0.0), 1, max_cells))

    def publish_message(self, message):
        self._publisher.publish(message)


def receive_states(peer):
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.qos import FLEET_IN

    return peer.receive(VehicleStateArray, "vehicle_states", FLEET_IN)


def receive_diagnostics(peer):
    from diagnostic_msgs.msg import DiagnosticArray

    from rfly_common.ros.qos import STATE_OUT

    return peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)


def told(messages):
    """(level, message, values) of the newest diagnostic of the fleet, or None."""
    from node_harness import diagnostic

    return diagnostic(messages, "fleet")


def positions(message):
    return np.asarray(message.position).reshape(-1, 3)


def stamp(header):
    return seconds(header.stamp)


def seconds(time):
    return time.sec + time.nanosec * 1e-9


def fleet_start(peer):
    """The start that the nodes agree on, as who comes late hears it."""
    from builtin_interfaces.msg import Time

    from rfly_common.ros.qos import LATCHED

    starts = peer.receive(Time, "fleet_start", LATCHED)
    return seconds(peer.spin_until(lambda: starts and starts[-1]))
