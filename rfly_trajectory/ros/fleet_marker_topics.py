"""`fleet_markers`: vehicles, names and paths as RViz draws them. Part of trajectory_node and mission_node.

Latched, and made only when somebody listens: the first time, and after a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

from rfly_common.arrays import Floats
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.qos import LATCHED

LOOK_EVERY_S = 0.5
"""between two looks whether somebody listens"""


class ShownVehicle(NamedTuple):
    """What markers tell of a vehicle."""

    name: str
    id: int
    vehicle_type: int
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


class ShownPath(NamedTuple):
    """A path, and the ids of the vehicles that follow it."""

    points: Floats
    """(k, 3) ENU, m"""
    ids: Sequence[int]


Shown = tuple[Sequence[ShownVehicle], Sequence[ShownPath]]


class FleetMarkers:
    """Publishes what `show` was given last."""

    def __init__(self, node: Node, enlargement: float) -> None:
        self._node, self._enlargement = node, enlargement
        self._unsent: Callable[[], Shown] | None = None
        self._sent: set[tuple[str, int]] = set()
        self._publisher = publisher(node, MarkerArray, "fleet_markers", LATCHED)
        node.create_timer(LOOK_EVERY_S, self._publish_unsent, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def show(self, what: Callable[[], Shown]) -> None:
        """From now on these vehicles and paths, and no others; `what` is called when they are to be sent."""
        self._unsent = what

    def _publish_unsent(self) -> None:
        if self._unsent is None or not self._publisher.get_subscription_count():
            return
        from rfly_trajectory.ros.fleet_marker_msgs import deletions, fleet_markers  # with the models: few look at them

        vehicles, paths = self._unsent()
        self._unsent = None
        message = fleet_markers(vehicles, paths, self._enlargement, self._node.get_clock().now().nanoseconds)
        now = {(marker.ns, marker.id) for marker in message.markers}
        message.markers += deletions(sorted(self._sent - now))
        self._sent = now
        self._publisher.publish(message)
