# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`fleet_areas` and `lost_vehicles`: nodes that share a fleet by areas. Part of trajectory_node."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from rclpy.node import Node
from rfly_suite.msg import FleetArea, VehicleStateArray

from rfly_common.arrays import Bools, Ints
from rfly_common.config.checks import finite_number
from rfly_common.diagnostic_reasons import listed
from rfly_common.errors import ConfigError
from rfly_common.ros.diagnostics import ERROR, WARN, Diagnostics, Row
from rfly_common.ros.endpoints import publisher, steady_timer, subscription
from rfly_common.ros.qos import LATCHED, REPORTS_IN, STATE_OUT
from rfly_common.ros.stamps import fill_header, ns_to_stamp, stamp_to_ns
from rfly_common.ros.vehicle_msgs import states_to_msg
from rfly_common.vehicle_states import VehicleStates
from rfly_trajectory.fleet.area_shards import (
    PERIOD,
    AreaShards,
    Report,
    ShardArea,
    Uncovered,
    area_of,
    plan_checksum,
)
from rfly_trajectory.fleet.fleet import Fleet
from rfly_trajectory.fleet.run_clock import RunClock
from rfly_trajectory.ros.run_control_topics import RunControl

AREAS_TOPIC = "/fleet_areas"
"""Topic of all nodes of a fleet, whatever namespaces their hosts have."""
START_TOPIC = "/fleet_start"
"""Topic of the start of nodes with areas: it is one for all of them."""
LONGEST = 255
"""Largest length of a name in a report, characters."""
GOODBYES = 3
"""Number of times that a node which ends says so."""
BETWEEN_GOODBYES_S = 0.05
"""Time between them, s."""
MOST_TOLD = 10
"""Largest number of nodes of which the diagnostics say what does not fit."""
MOST_CHANGES = 1_000_000_000
"""Largest number of changes in a report that is taken: the field has room for as many again."""
MAX_PACE = 20.0
"""Fastest pace, fleet seconds per second, at which vehicles of different areas keep clear.

`area_avoidance` takes what is 2 s of fleet time old: 0.1 s on the way and in the ticks of nodes.
"""
LATEST_S = 1e9
"""Latest fleet time in a report that is taken, s."""


class AreaTopics:
    """Reports of nodes that drive the vehicles of areas, and the watch on them.

    `fleet_now()` returns the whole fleet of the file over its ground and the fleet time, or None
    before it drives. `changed()` is called when nodes or lost vehicles come or go. `sampled()`
    returns the states of vehicles by their numbers, as the node publishes them. With `avoidance`
    vehicles keep clear of each other.
    """

    def __init__(
        self,
        node: Node,
        area: ShardArea,
        run: RunControl,
        diagnostics: Diagnostics,
        fleet_now: Callable[[], tuple[Fleet, float] | None],
        changed: Callable[[], None],
        sampled: Callable[[Ints], VehicleStates],
        avoidance: bool,
    ) -> None:
        self._node = node
        self._run = run
        self._diagnostics = diagnostics
        self._fleet_now = fleet_now
        self._changed = changed
        self._sampled = sampled
        self._avoidance = avoidance
        self.area = area
        self.shards = AreaShards(node.get_fully_qualified_name(), area)
        self.here = 0
        """Number of the fleet's vehicles that the area held last."""

        self._fleet_name = ""
        self._from_file = 0
        self.checksum: int | None = None
        """`plan_checksum` of the shared fleet; None before there is one."""
        self._lost: list[int] = []
        self._lost_names: list[str] = []
        self._outside = 0
        self._outside_name = ""
        self._reports = publisher(node, FleetArea, AREAS_TOPIC, STATE_OUT)
        self._lost_topic = publisher(node, VehicleStateArray, "lost_vehicles", LATCHED)
        subscription(node, FleetArea, AREAS_TOPIC, self._on_report, REPORTS_IN)

        # steady, so that a paused simulation clock kills no node
        self._timer = steady_timer(node, PERIOD, self.watch)

    def use(self, whole: Fleet) -> None:
        """Share this fleet from now on."""
        self._fleet_name = whole.name
        self._from_file = len(whole)
        self.checksum = plan_checksum(whole)

    def other_areas(self) -> list[ShardArea]:
        """Return the areas of other nodes, also of those that are silent."""
        return [report.area for report in chain(*self.shards.others())]

    def rows(self, fleet: Fleet, fleet_time: float) -> Ints:
        """Return the numbers of the vehicles that are driven here at a fleet time, s.

        The first are those of the shared fleet, the others were spawned here.
        """
        held = self.area.holds(fleet.places(fleet_time))
        self.here = int(np.count_nonzero(held[: self._from_file]))
        held[self._from_file :] = True
        return np.flatnonzero(held)

    def watch(self) -> None:
        """Send the own report, and report lost vehicles."""
        self.report()
        self._look()

    def _look(self) -> None:
        """Report the vehicles that no node drives."""
        driven = self._fleet_now()
        if driven is None:
            return
        fleet, fleet_time = driven
        uncovered = self.shards.uncovered(fleet.places(fleet_time))
        self._tell_outside(fleet, uncovered.outside)
        self._tell_lost(fleet, uncovered)

    def report(self) -> None:
        """Send the own report to the other nodes."""
        if self.checksum is None:
            return
        report = self._own_report()
        self.shards.sent(report)
        self._reports.publish(report_to_msg(report, self.here))

    def leave(self) -> None:
        """Send a goodbye to the other nodes, several times because messages may be lost."""
        if self.checksum is not None and self._node.context.ok():
            goodbye = self._own_report()._replace(fleet="")
            for _ in range(GOODBYES):
                self._reports.publish(report_to_msg(goodbye, 0))
                time.sleep(BETWEEN_GOODBYES_S)

    def values(self) -> dict[str, Any]:
        """Return what the diagnostics say."""
        living, dead = self.shards.others()
        return {
            "area": str(self.area),
            "vehicles_in_area": self.here,
            "other_areas": listed([f"{each.source} {each.area}" for each in living]),
            "silent_areas": listed([f"{each.source} {each.area}" for each in dead]),
            "lost": len(self._lost_names),
            "lost_vehicles": listed(self._lost_names),
            "in_no_area": self._outside,
        }

    def problems(self) -> list[Row]:
        """Return the rows of the diagnostics."""
        misfits = self.shards.problems(self._own_report())
        silent = listed([each.source for each in self.shards.others()[1]])

        return [
            (misfits, ERROR, lambda: [str(each) for each in misfits[:MOST_TOLD]]),
            (
                self._avoidance and self._run.pace > MAX_PACE,
                ERROR,
                f"time_scale {self._run.pace:g}, expected at most {MAX_PACE:g}: reports come too "
                "late for vehicles of different areas to keep clear of each other",
            ),
            (self._lost_names, ERROR, lambda: f"{self._lost_text()}: nothing from {silent}"),
            (
                self._outside,
                WARN,
                f"{self._outside} vehicles, such as {self._outside_name!r}, are in no area of a "
                "node that is known: start the missing nodes, or make the areas fit together",
            ),
        ]

    def _own_report(self) -> Report:
        now_ns = self._node.get_clock().now().nanoseconds
        name = self.shards.source
        run = self._run
        return Report(
            name,
            now_ns,
            self.area,
            self._fleet_name,
            self.checksum or 0,
            run.clock,
            run.changes,
            self._avoidance,
        )

    def _on_report(self, message: Any) -> None:
        try:
            report = msg_to_report(message)
        except ConfigError as error:
            text = f"{AREAS_TOPIC} of {message.source!r}: {error}"
            self._diagnostics.refuse("refused_reports", text, subject=message.source)
            return

        now_ns = self._node.get_clock().now().nanoseconds
        is_new = self.shards.lives(report) != bool(report.fleet)
        if not self.shards.hear(report, now_ns):
            return

        # the run's clock is shared
        if report.fleet and report.clock is not None and report.checksum == self.checksum:
            self._run.share(report.clock, report.changes)
        if is_new:
            self._look()
            self._changed()

    def _tell_outside(self, fleet: Fleet, outside: Bools) -> None:
        self._outside = int(np.count_nonzero(outside))
        self._outside_name = fleet.vehicles[int(outside.argmax())].name if self._outside else ""

    def _tell_lost(self, fleet: Fleet, uncovered: Uncovered) -> None:
        """Publish the lost vehicles when there are others than before."""
        rows = np.flatnonzero(uncovered.lost)
        ids = [fleet.vehicles[row].id for row in rows.tolist()]
        if ids == self._lost:
            return
        was_well = not self._lost
        self._lost = ids
        self._lost_names = [fleet.vehicles[row].name for row in rows.tolist()]
        self._lost_topic.publish(states_to_msg(self._sampled(rows)))

        # the log has the begin and the end
        if not len(rows):
            self._node.get_logger().info("no vehicle is lost any more")
        elif was_well:
            self._node.get_logger().error(self._lost_text())
        self._changed()

    def _lost_text(self) -> str:
        names = self._lost_names
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"vehicle {names[0]!r}{more} lost" if names else ""


def report_to_msg(report: Report, vehicles: int) -> FleetArea:
    """Return the message of a report and of the number of vehicles in the area."""
    message = FleetArea(
        source=report.source,
        fleet=report.fleet,
        fleet_checksum=report.checksum,
        area=np.array(report.area),
        vehicles=vehicles,
        changes=report.changes,
        avoidance=report.avoidance,
    )
    fill_header(message, report.stamp_ns, "map")

    # its clock
    clock = report.clock
    if clock is not None:
        message.started = True
        message.start = ns_to_stamp(clock.start_ns)
        message.running = clock.running
        message.time_scale = clock.time_scale
        message.pace_since = ns_to_stamp(clock.from_ns or 0)
        message.pace_since_s = clock.from_s
    return message


def msg_to_report(message: FleetArea) -> Report:
    """Return the report of a message.

    Raises ConfigError for names that are too long, an area that is none, and an impossible clock.
    """
    for key in ("source", "fleet"):
        if len(getattr(message, key)) > LONGEST:
            raise ConfigError(f"more than {LONGEST} characters", key=key)

    area = area_of(np.asarray(message.area).tolist())
    assert area is not None
    clock = None

    # numbers within reason
    if message.changes > MOST_CHANGES:
        raise ConfigError(f"{message.changes:,}, at most {MOST_CHANGES:,}", key="changes")
    if message.started:
        finite_number("pace_since_s", message.pace_since_s, "s", at_least=0.0, at_most=LATEST_S)
        clock = RunClock(
            stamp_to_ns(message.start),
            message.time_scale,
            message.running,
            stamp_to_ns(message.pace_since) or None,
            message.pace_since_s,
        )

    return Report(
        message.source,
        stamp_to_ns(message.header.stamp),
        area,
        message.fleet,
        message.fleet_checksum,
        clock,
        message.changes,
        message.avoidance,
    )
