# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`fleet_off_plan`: where vehicles are that keep clear, for the nodes of other areas.

Part of trajectory_node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.node import Node
from rfly_suite.msg import FleetOffPlan

from rfly_common.arrays import Floats
from rfly_common.config.checks import all_finite
from rfly_common.errors import ConfigError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.qos import REPORTS_IN, STATE_OUT
from rfly_common.ros.stamps import fill_header, ns_to_stamp, stamp_to_ns
from rfly_trajectory.avoidance.area_avoidance import AreaAvoidance, OffPlan
from rfly_trajectory.avoidance.avoidance import MAX_VEHICLES, MEMORY
from rfly_trajectory.avoidance.pose_tracks import FARTHEST
from rfly_trajectory.fleet.area_shards import area_of
from rfly_trajectory.fleet.fleet import Fleet
from rfly_trajectory.ros.area_topics import LATEST_S, AreaTopics
from rfly_trajectory.ros.run_control_topics import RunControl

if TYPE_CHECKING:
    from rfly_terrain.world.solids import Solids

TOPIC = "/fleet_off_plan"
"""Topic of all nodes of a fleet, whatever namespaces their hosts have."""
STATE = 7
"""Numbers of a state."""
STEPS = 2**32
"""Steps after which the counter of the messages begins anew: seven years of fleet time."""


class OffPlanTopics:
    """Exchange between nodes of areas about vehicles that keep clear."""

    def __init__(
        self,
        node: Node,
        areas: AreaTopics,
        run: RunControl,
        diagnostics: Diagnostics,
    ) -> None:
        self._node = node
        self._areas = areas
        self._run = run
        self._diagnostics = diagnostics
        self.avoidance: AreaAvoidance | None = None
        """Vehicles of this node; None before they drive."""
        self._told_step = -1
        self._publisher = publisher(node, FleetOffPlan, TOPIC, STATE_OUT)
        subscription(node, FleetOffPlan, TOPIC, self._on_off_plan, REPORTS_IN)

    def begin(self, fleet: Fleet, time: float, solids: Solids | None) -> AreaAvoidance:
        """Return the fleet at a fleet time, s, with its vehicles on their tracks."""
        area = self._areas.area
        self.avoidance = AreaAvoidance(fleet, time, solids, area, self._areas.other_areas)
        return self.avoidance

    def tell(self) -> None:
        """Publish the places of this node's vehicles, once after each step."""
        start_ns = self._run.start_ns
        checksum = self._areas.checksum
        avoidance = self.avoidance
        if avoidance is None or start_ns is None or checksum is None:
            return
        if avoidance.step == self._told_step:
            return
        self._told_step = avoidance.step
        message = off_plan_to_msg(avoidance.off_plan())
        fill_header(message, self._node.get_clock().now().nanoseconds, "map")
        message.source = self._areas.shards.source
        message.fleet_checksum = checksum
        message.start = ns_to_stamp(start_ns)
        self._publisher.publish(message)

    def _on_off_plan(self, message: Any) -> None:
        run = (stamp_to_ns(message.start), message.fleet_checksum)
        is_own = message.source == self._areas.shards.source
        if self.avoidance is None or is_own or run != (self._run.start_ns, self._areas.checksum):
            return
        try:
            told = msg_to_off_plan(message)
            step = nearest_step(told.step, self.avoidance.step)
            self.avoidance.hear(told._replace(step=step))
        except ConfigError as error:
            text = f"{TOPIC} of {message.source!r}: {error}"
            self._diagnostics.refuse("refused_off_plan", text, subject=message.source)


def off_plan_to_msg(told: OffPlan) -> FleetOffPlan:
    """Return the message of vehicles off their plans, without a header, a source and a run."""
    return FleetOffPlan(
        area=np.array(told.area),
        step=told.step % STEPS,
        id=told.ids.astype(np.int32),
        on_track=told.on_track.tolist(),
        late=told.late,
        state=told.state.ravel(),
        memory=told.memory.ravel(),
    )


def nearest_step(counter: int, now: int) -> int:
    """Return the step with this counter of a message that is nearest to the present one."""
    return now + (counter - now + STEPS // 2) % STEPS - STEPS // 2


def msg_to_off_plan(message: FleetOffPlan) -> OffPlan:
    """Return the vehicles off their plans of a message.

    Raises ConfigError for an area that is none, for too many vehicles, and for impossible states.
    """
    area = area_of(np.asarray(message.area).tolist())
    assert area is not None
    k = len(message.id)
    if k > MAX_VEHICLES:
        raise ConfigError(f"{k} vehicles, at most {MAX_VEHICLES} are taken", key="id")

    def numbers(key: str, width: int, low: float, high: float) -> Floats:
        values = np.array(getattr(message, key), float)
        if len(values) != k * width:
            raise ConfigError(f"{len(values)} numbers, expected {k * width}", key=key)
        if not all_finite(values) or (values < low).any() or (values > high).any():
            raise ConfigError(f"expected numbers from {low:g} to {high:g}", key=key)
        return values.reshape(k, width)

    on_track = np.array(message.on_track, bool)
    if len(on_track) != k:
        raise ConfigError(f"{len(on_track)} values, expected {k}", key="on_track")
    return OffPlan(
        message.step,
        area,
        np.array(message.id, np.int64),
        on_track,
        numbers("late", 1, 0.0, LATEST_S)[:, 0],
        numbers("state", STATE, -FARTHEST, FARTHEST),
        numbers("memory", MEMORY, -FARTHEST, FARTHEST),
    )
