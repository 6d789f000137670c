# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""trajectory_node: a fleet that drives and flies over the terrain of `terrain_map`.

A thin shell around Fleet.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray
from rfly_suite.srv import LoadFleet

from rfly_common.arrays import Ints
from rfly_common.errors import ConfigError, WorkError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, ClockWatch, Diagnostics
from rfly_common.ros.endpoints import publisher, waiting_service
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import FLEET_OUT
from rfly_common.ros.run_loop import in_thread
from rfly_common.ros.vehicle_msgs import states_to_msg
from rfly_common.untrusted_files.allowed_folders import resolve_below, without_content
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, LatestTerrain
from rfly_trajectory.fleet.area_shards import checked_area
from rfly_trajectory.fleet.fleet import Fleet, Vehicle, states_in_ned
from rfly_trajectory.fleet.fleet_file import load_fleet, shard_range, shipped_fleets
from rfly_trajectory.fleet.limit_check import LimitViolation, check_tracks
from rfly_trajectory.fleet.run_clock import states_at_pace
from rfly_trajectory.ros.area_topics import START_TOPIC, AreaTopics
from rfly_trajectory.ros.avoidance_topics import KeptClear
from rfly_trajectory.ros.entity_topics import FleetEntities
from rfly_trajectory.ros.follow_path_topics import FollowPaths
from rfly_trajectory.ros.node_parameters import PER_VEHICLE_LIMIT, TrajectoryParameters
from rfly_trajectory.ros.run_control_topics import RunControl
from rfly_trajectory.ros.vehicle_topics import PerVehicleTopics
from rfly_trajectory.warm_up import warm_up

LOGGED_FINDINGS = 5


class _LoadedFleet(NamedTuple):
    """A fleet file that was read, or what is wrong with it."""

    name: str
    whole: Fleet | None
    findings: list[LimitViolation]
    """Violations of limits; empty without a terrain."""
    error: str


class TrajectoryNode(Node):
    """Node that publishes the states of a fleet or of a shard.

    It begins once a terrain and a start are known.
    """

    def __init__(self) -> None:
        super().__init__("trajectory_node")
        given = declare_parameters(self, TrajectoryParameters)
        self._given = given
        # a shard or an area that is none ends the node
        shard_range(given.shard, 0)
        area = checked_area(
            given.area,
            shard=given.shard,
            per_vehicle=given.publish_per_vehicle,
        )

        # inputs and diagnostics
        self._ground = LatestTerrain(self, self._on_terrain_map)
        self._source = self.get_fully_qualified_name()
        self._diagnostics = Diagnostics(self, "fleet", given.fleet, self._update_diagnostics)

        # fleets
        self._whole: Fleet | None = None
        self._plan: Fleet | None = None
        """This node's vehicles after a restart: those of the file, without deleted and with spawned
        ones.
        """
        self._fleet: Fleet | None = None
        """The vehicles now; some may have left their paths."""
        self._has_topics = False
        """True if each vehicle has its own topics."""

        # problems
        self._fleet_error = ""
        self._load_error = ""
        self._drive_error = ""
        """Reason why the vehicles cannot keep clear, so that none is moved."""
        self._findings: list[LimitViolation] = []
        self._loading = threading.Lock()
        self._last_ns = 0

        # outputs
        self._clock_watch = ClockWatch(self)
        self._states = publisher(self, VehicleStateArray, "vehicle_states", FLEET_OUT)
        self._removed = publisher(self, VehicleStateArray, "removed_vehicles", FLEET_OUT)
        self._topics = PerVehicleTopics(self, given.frame_id, given.marker_scale)
        self._follow = FollowPaths(self, self._given.frame_id, self._update_diagnostics)
        self.kept_clear: KeptClear | None = None
        """Vehicles that leave their tracks; None without avoidance."""
        self.areas: AreaTopics | None = None
        """Nodes of the other areas; None without an area."""
        start_topic = "fleet_start" if area is None else START_TOPIC
        self._run = RunControl(self, self._restart, self._run_changed, start_topic)
        if area is not None:
            self.areas = AreaTopics(
                self,
                area,
                self._run,
                self._diagnostics,
                self._driven,
                self._update_diagnostics,
                self._states_of,
                given.avoidance,
            )
        if given.avoidance:
            self.kept_clear = KeptClear(self, self._update_diagnostics)
            if self.areas is not None:
                self.kept_clear.share(self.areas, self._run, self._diagnostics)
        first_id = given.first_spawned_id
        self._entities = FleetEntities(self, self._run, self._follow, first_id, 1.0 / given.rate)

        # the fleet of the parameter
        try:
            self._use(load_fleet(given.fleet))
        except ConfigError as error:
            self._fleet_error = " ".join(str(error).split())
            self.get_logger().error(self._fleet_error)

        waiting_service(self, LoadFleet, "~/load_fleet", self._load_fleet)
        self._ground.start(self._diagnostics)
        self._update_diagnostics()
        self._period_ns = int(1e9 / given.rate)
        self._timer = self.create_timer(1.0 / given.rate, self.tick)
        self.get_logger().info(
            f"fleet {given.fleet!r}: {self._count()} at {given.rate:g} Hz; waiting for terrain_map"
        )
        if self._fleet is not None:
            warm_up(given.avoidance)  # last: the node is seen by others meanwhile

    def _use(self, whole: Fleet) -> None:
        """Drive this node's shard of a fleet."""
        for note in whole.notes:
            self.get_logger().warning(note)
        mine = shard_range(self._given.shard, len(whole))
        self._whole = self._plan = whole
        if len(mine) < len(whole):
            shard = whole.vehicles[mine.start : mine.stop]
            self._plan = Fleet(
                shard, whole.terrain, whole.name, whole.min_separation, whole.locations
            )
        few = self._given.publish_per_vehicle == "auto" and len(mine) <= PER_VEHICLE_LIMIT
        few = few and self.areas is None
        self._has_topics = few or self._given.publish_per_vehicle == "always"
        self._entities.forget()
        self._follow.forget()
        self._drive(self._plan)
        if self.areas is not None:
            self.areas.use(whole)  # last: removed vehicles are those of the fleet before

    def _drive(self, fleet: Fleet) -> None:
        """Drive these vehicles and publish the removed ones."""
        before = self._fleet
        self._fleet = fleet
        one_by_one = fleet.vehicles if self._has_topics else ()
        self._topics.use([vehicle.name for vehicle in one_by_one])
        self._follow.use(one_by_one)
        gone = (
            set()
            if before is None
            else {v.id for v in before.vehicles} - {v.id for v in fleet.vehicles}
        )
        if before is not None and before.terrain is not None and gone:
            states = self._sampled(before, self._run.fleet_time or 0.0)
            self._removed.publish(states_to_msg(states.select(np.isin(states.id, list(gone)))))

    # --- for its entities

    @property
    def fleet(self) -> Fleet | None:
        """Fleet as it drives now; None without a ground."""
        return None if self._fleet is None or self._fleet.terrain is None else self._fleet

    @property
    def plan(self) -> Fleet:
        """Fleet as it drives after a restart."""
        assert self._plan is not None
        return self._plan

    def is_shared(self, name: str) -> bool:
        """Return whether nodes of other areas drive this vehicle too, when it comes to them."""
        if self.areas is None or self._whole is None:
            return False
        return any(vehicle.name == name for vehicle in self._whole.vehicles)

    def _driven(self) -> tuple[Fleet, float] | None:
        """Return the whole fleet and the fleet time; None before it drives."""
        whole = self._whole
        fleet_time = self._run.fleet_time
        if whole is None or whole.terrain is None or fleet_time is None:
            return None
        return whole, fleet_time

    def _run_changed(self) -> None:
        if self.areas is not None:
            self.areas.report()
        self._update_diagnostics()

    def taken_ids(self) -> set[int]:
        """Return the ids of the entire fleet and of spawned vehicles."""
        fleets = (self._whole, self._plan)
        return {vehicle.id for fleet in fleets if fleet is not None for vehicle in fleet.vehicles}

    def change_vehicles(self, vehicles: Sequence[Vehicle], plan: Sequence[Vehicle]) -> None:
        """Drive these vehicles now, and those of `plan` after a restart."""
        assert self._fleet is not None
        known = {id(vehicle) for vehicle in self._fleet.vehicles}
        self._plan = self.plan.of(plan)
        self._drive(self._plan.of(vehicles))  # the same one, as long as nobody has left their path
        for index, vehicle in enumerate(vehicles):
            if id(vehicle) not in known:
                self._topics.publish_path(self._fleet, index)
        self._topics.show(self._fleet)
        self._update_diagnostics()

    def reload(self) -> None:
        """Drive what was loaded."""
        if self._whole is not None:
            self._use(self._whole)
            self._publish_paths()

    # --- the ground

    def _place_on(self, terrain: HeightMap) -> None:
        assert self._whole is not None
        assert self._plan is not None
        assert self._fleet is not None
        self._whole, self._plan = (
            self._whole.on_terrain(terrain),
            self._plan.on_terrain(terrain),
        )
        self._fleet = self._fleet.on_terrain(terrain)

    def _count(self) -> str:
        mine, all_of_them = (
            0 if fleet is None else len(fleet) for fleet in (self._fleet, self._whole)
        )
        if self.areas is not None:
            return (
                f"{all_of_them} vehicles, of which those within {self.areas.area} are driven here"
            )
        return f"{mine} vehicles" + (
            f" (shard {self._given.shard} of {all_of_them})" if mine != all_of_them else ""
        )

    def _on_terrain_map(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        if self._whole is None:
            return
        self._place_on(terrain)
        self.get_logger().info(
            f"driving over map {terrain.name!r}, {terrain.rows} x {terrain.columns} cells"
        )
        self._log_findings(check_tracks(self._whole))
        self._publish_paths()
        self._update_diagnostics()

    def _publish_paths(self) -> None:
        if self._fleet is not None:
            self._topics.publish_paths(self._fleet)

    def _log_findings(self, findings: list[LimitViolation]) -> None:
        self._findings = findings
        for finding in findings[:LOGGED_FINDINGS]:
            self.get_logger().warning(f"vehicle {finding.vehicle!r}: {finding.text}")

    def _restart(self) -> None:
        """Put vehicles that had left their paths back on them: fleet time is 0 again."""
        if self.kept_clear is not None:
            self.kept_clear.forget()
        had_left = bool(self._follow.following)
        self._follow.forget()
        self._fleet = self._plan
        if had_left:
            self._publish_paths()

    def destroy_node(self) -> None:
        """Say goodbye, and take the action off the graph first."""
        if self.areas is not None:
            self.areas.leave()
        self._entities.destroy()
        super().destroy_node()

    def _apply_new_paths(self, fleet_time: float) -> Fleet:
        """Return the fleet of this tick, with the vehicles that leave their paths now."""
        fleet = self._fleet
        assert fleet is not None
        taken = self._follow.take_over(fleet, fleet_time)
        if taken is None:
            return fleet
        self._fleet, changed = taken
        for index in changed:
            self._topics.publish_path(self._fleet, index)
        self._update_diagnostics()
        return self._fleet

    def tick(self) -> None:
        """Publish all states."""
        fleet = self._fleet
        if fleet is None or fleet.terrain is None:
            return
        now = self.get_clock().now().nanoseconds
        fleet_time = self._run.tick(now)
        if fleet_time is None:
            return

        if self._last_ns and now - self._last_ns > 1.5 * self._period_ns:
            self._diagnostics.count("late_states")
        self._last_ns = now
        if not len(fleet):
            return

        fleet = self._apply_new_paths(fleet_time)
        states = None
        error = ""
        try:
            states = self._sampled(fleet, fleet_time)
        except ConfigError as impossible:
            error = f"fleet {fleet.name!r} cannot keep clear: {impossible}"
        if error != self._drive_error:
            self._drive_error = error
            self._update_diagnostics()
        if not states:
            return
        self._states.publish(states_to_msg(states))
        self._diagnostics.count("published_states")
        self._topics.publish_states(states)

    def _sampled(self, fleet: Fleet, fleet_time: float) -> VehicleStates:
        """Return the states of the fleet as they are published."""
        rows = None if self.areas is None else self.areas.rows(fleet, fleet_time)
        return self._as_published(fleet, fleet_time, rows)

    def _states_of(self, rows: Ints) -> VehicleStates:
        """Return the states of vehicles with these numbers."""
        assert self._fleet is not None
        return self._as_published(self._fleet, self._run.fleet_time or 0.0, rows)

    def _as_published(self, fleet: Fleet, fleet_time: float, rows: Ints | None) -> VehicleStates:
        """Return states in the node's time and frame."""
        stamp_ns = self._run.last_ns
        if self.kept_clear is not None and fleet is self._fleet:
            states = self.kept_clear.states(fleet, fleet_time, self._source, stamp_ns, rows)
        else:
            states = fleet.sample(fleet_time, source=self._source, stamp_ns=stamp_ns, rows=rows)
        states = states_at_pace(states, self._run.pace)
        return (
            states_in_ned(states, self._given.frame_id)
            if self._given.frame_id == "map_ned"
            else states
        )

    async def _load_fleet(self, request: Any, response: Any) -> Any:
        if not self._loading.acquire(blocking=False):
            response.message = "another fleet is being loaded: ask again when it is done"
            return response

        terrain = self._ground.terrain
        try:  # a large file takes a second to read and check; the old fleet drives on meanwhile
            loaded = await in_thread(
                self, lambda: _load(request.fleet, self._given.file_folders, terrain)
            )
        except WorkError as error:
            response.message = f"fleet {request.fleet!r}: {error}"
            return response
        finally:
            self._loading.release()

        response.message = self._use_loaded(loaded)
        response.success = loaded.whole is not None
        response.vehicles = 0 if self._fleet is None else len(self._fleet)
        return response

    def _use_loaded(self, loaded: _LoadedFleet) -> str:
        """Drive a loaded fleet from its start and return what was done.

        A failed load leaves the present fleet driving.
        """
        self._load_error = loaded.error
        if loaded.whole is None:
            self.get_logger().error(loaded.error)
            self._diagnostics.count("failed_loads")
            self._update_diagnostics()
            return loaded.error

        self._fleet_error = ""
        self._diagnostics.hardware_id = loaded.name
        first = self._fleet is None
        self._use(loaded.whole)
        if first:
            warm_up(self._given.avoidance)

        terrain = self._ground.terrain
        if terrain is not None:
            stale = loaded.whole.terrain is not terrain  # another map came while the file was read
            if stale:
                self._place_on(terrain)
            self._log_findings(
                check_tracks(self._whole) if stale and self._whole is not None else loaded.findings
            )
            self._publish_paths()

        self._run.restart()
        text = f"fleet {loaded.name!r}: {self._count()}"
        self.get_logger().info(text)
        self._update_diagnostics()
        return text

    def _update_diagnostics(self) -> None:
        terrain = self._fleet.terrain if self._fleet is not None else None
        run = self._run
        values: dict[str, Any] = {
            "vehicles": 0 if self._fleet is None else len(self._fleet),
            "shard": self._given.shard,
            "terrain": "" if terrain is None else terrain.name,
            "run": run.state,
            "fleet_start": "" if run.start_ns is None else f"{run.start_ns * 1e-9:.6f}",
            "fleet_time_s": "" if run.fleet_time is None else f"{run.fleet_time:.2f}",
            "pace": f"{run.pace:g}",
            "clock_jumps_back": run.jumps,
            "following_paths": ", ".join(self._follow.following),
        }
        objects_problem = ""
        if self.kept_clear is not None:
            values |= self.kept_clear.values()
            objects_problem = self.kept_clear.problem
        area_rows = []
        if self.areas is not None:
            values |= self.areas.values()
            area_rows = self.areas.problems()

        error = self._load_error
        refused = self._follow.refused
        findings = self._findings
        self._diagnostics.set_first(
            [
                (self._fleet_error, ERROR, self._fleet_error),
                (self._ground.problem, ERROR, self._ground.problem),
                (error, ERROR, f"the last load failed, the fleet before it drives on: {error}"),
                (terrain is None, STALE, NO_MAP_YET),
                (self._drive_error, ERROR, self._drive_error),
                *area_rows,
                (self._clock_watch.problem, WARN, self._clock_watch.problem),
                (objects_problem, WARN, objects_problem),
                (refused, WARN, lambda: _refused_text(refused)),
                (findings, WARN, lambda: _findings_text(findings)),
                (True, OK, "publishing"),
            ],
            **values,
        )


def _refused_text(refused: Mapping[str, str]) -> str:
    name, reason = next(iter(refused.items()))
    return f"vehicle {name!r} goes on and does not follow the path: {reason}"


def _findings_text(findings: Sequence[LimitViolation]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"vehicle {findings[0].vehicle!r}: {findings[0].text}{more}"


def _load(name: str, folders: Sequence[str], terrain: HeightMap | None) -> _LoadedFleet:
    """Return a fleet by name, over a terrain.

    It touches nothing of a node, so that another thread may run it.
    """
    try:
        fleet = _asked_fleet(name, folders)
    except ConfigError as error:
        return _LoadedFleet(name, None, [], f"fleet {error}")
    except MemoryError:
        return _LoadedFleet(name, None, [], f"fleet {name!r}: not enough memory to load it")
    if terrain is None:
        return _LoadedFleet(name, fleet, [], "")
    fleet = fleet.on_terrain(terrain)
    return _LoadedFleet(name, fleet, check_tracks(fleet), "")


def _asked_fleet(name: str, folders: Sequence[str]) -> Fleet:
    """Return a shipped fleet, or one below the folders.

    Raises ConfigError without a word of the file's content.
    """
    if name in shipped_fleets():
        return load_fleet(name)
    try:
        path = resolve_below(name, folders, "file_folders")
    except ConfigError as error:
        raise ConfigError(f"{error}; shipped: {', '.join(shipped_fleets())}") from None
    try:
        return load_fleet(path)
    except ConfigError as error:
        raise ConfigError(without_content(name, error, path, f"rfly fleet check {path}")) from error
