# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""planner_node: paths over the terrain as a service, and for RViz's goal.

A thin shell around Planner.

Plans are computed one after the other in a thread of their own. Their kernels release the
interpreter, so that the node keeps answering and receiving meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from octomap_msgs.msg import Octomap
from rclpy.node import Node
from rfly_suite.msg import PlacedObjectArray
from rfly_suite.srv import PlanPath
from std_msgs.msg import Header

from rfly_common.config.checks import VEHICLE_NAME, check_vehicle_names
from rfly_common.errors import FrameError, PlanError, RflyError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription, waiting_service
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, LATCHED
from rfly_common.ros.run_loop import in_thread
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.occupancy.octree import Leaves, read_octree
from rfly_terrain.planning.plan import MODES, Plan, PlanPose
from rfly_terrain.planning.planner import Planner, Replanner, warm_up
from rfly_terrain.planning.seen_space import SeenSpace, seen_space
from rfly_terrain.planning.vehicle_classes import VehicleClass
from rfly_terrain.ros.node_parameters import NO_WATER, PlannerParameters
from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids
from rfly_terrain.ros.plan_msgs import plan_to_path, pose_to_plan_pose
from rfly_terrain.ros.planned_vehicles import PlannedVehicles
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, NOT_YET, LatestTerrain

MAP_PATIENCE_S = 5.0
"""Time that a request waits for the first map, s: a terrain_node started together has it a little
later.
"""
MOST_NAMES = 1_000
"""Vehicles that get a topic `<name>/follow_path`, at most."""


class _Job(NamedTuple):
    """A request for a plan, ENU."""

    vehicle: VehicleClass
    start: PlanPose
    goal: PlanPose
    mode: int


class _Way(NamedTuple):
    """The way to the goal_pose that is being followed."""

    replanner: Replanner
    frame_id: str
    frame: FrameToWorld


class _OctomapSpace:
    """The newest `octomap`; it is read once, in the thread of the first plan that needs it."""

    def __init__(
        self, node: Node, params: PlannerParameters, frames: Frames, on_octomap: Callable[[], Any]
    ) -> None:
        self._params = params
        self._frames = frames
        self._on_octomap = on_octomap
        self._newest: Octomap | None = None
        self._read: tuple[Octomap, HeightMap, SeenSpace] | None = None
        subscription(node, Octomap, "octomap", self._take, LATCHED)

    async def _take(self, message: Octomap) -> None:
        """Store the message, and start planning."""
        self._newest = message
        await self._on_octomap()

    def seen(self, terrain: HeightMap) -> SeenSpace:
        """Return the space of the newest octomap.

        Raises PlanError if there is none, or an unreadable one.
        """
        message = self._newest
        if message is None:
            raise PlanError(
                "no_octomap", "no octomap has come yet, and the parameter space is octomap"
            )
        if self._read is None or self._read[0] is not message or self._read[1] is not terrain:
            space = seen_space(
                self._leaves(message),
                terrain,
                ground_margin=self._params.ground_margin,
                unknown_height=self._params.unknown_height,
            )
            self._read = (message, terrain, space)
        return self._read[2]

    def _leaves(self, message: Octomap) -> Leaves:
        """Return the leaves of an octomap. Raises PlanError if they cannot be used."""
        try:
            frame = self._frames.resolve(
                message.header.frame_id or "map", stamp_to_ns(message.header.stamp)
            )
            if frame.axes != "enu" or not frame.is_world:
                raise PlanError(
                    "bad_octomap",
                    f"its frame {message.header.frame_id!r} is not the ENU world frame",
                )
            if not message.binary or message.id != "OcTree":
                kind = "binary" if message.binary else "full"
                raise PlanError(
                    "bad_octomap", f"a {kind} {message.id!r}, expected a binary 'OcTree'"
                )

            return read_octree(np.asarray(message.data, np.int8), message.resolution)
        except RflyError as error:
            raise PlanError("bad_octomap", f"octomap: {error}") from None


class PlannerNode(Node):
    """Node of planning: `plan_path`, `goal_pose`, `<name>/follow_path` and `planned_path`."""

    def __init__(self) -> None:
        super().__init__("planner_node")
        params = declare_parameters(self, PlannerParameters)
        self._params = params
        self._frames = Frames(self)
        self._vehicles = PlannedVehicles(self, params, self._frames)

        self._objects = PlacedObjectArray()
        self._planner: Planner | None = None
        self._last = ""
        self._last_s = 0.0
        self._goal: PoseStamped | None = None
        self._way: _Way | None = None
        self._busy = self._mapped = False
        self._lock = threading.Lock()
        self._followers: dict[str, Any] = {}

        self._ground = LatestTerrain(self, self._on_terrain_map)
        self._diagnostics = Diagnostics(self, "planning", "", self._update_diagnostics)
        self._shown = publisher(self, Path, "planned_path", LATCHED)
        self._ground.start(self._diagnostics)
        subscription(self, PlacedObjectArray, "placed_objects", self._on_placed_objects, LATCHED)
        self._space: _OctomapSpace | None = None
        if params.space == "octomap":
            self._space = _OctomapSpace(self, params, self._frames, self._on_octomap)
        self._vehicles.start(self._diagnostics)
        if params.goal_vehicle:
            self._follower(params.goal_vehicle)
            subscription(self, PoseStamped, "goal_pose", self._on_goal_pose, COMMANDS)
        waiting_service(self, PlanPath, "plan_path", self._plan_path)

        self._update_diagnostics()
        self.get_logger().info(
            f"vehicle classes: {', '.join(self._vehicles.classes)}; waiting for terrain_map"
        )
        warm_up()  # last: other nodes see this one meanwhile

    # --- inputs

    def _on_terrain_map(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        """Plan on the new map from now on; see `LatestTerrain`."""
        self._planner = None
        self._diagnostics.hardware_id = terrain.name
        self._update_diagnostics()

    def _on_placed_objects(self, message: PlacedObjectArray) -> None:
        """Plan among the new objects."""
        self._objects = message
        self._planner = None

    async def _on_goal_pose(self, message: PoseStamped) -> None:
        """Plan to the goal."""
        self._goal = message
        await self._work_off()

    async def _on_octomap(self) -> None:
        """Check the plan against the new map."""
        self._mapped = self._way is not None
        await self._work_off()

    async def _work_off(self) -> None:
        """Plan for the newest goal and the newest map; later ones wait for the end."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._goal is not None or self._mapped:
                self._mapped = False
                newest = self._goal
                self._goal = None
                await (self._replan() if newest is None else self._go(newest))
        finally:
            self._busy = False

    # --- planning

    async def _plan_path(self, request: Any, response: Any) -> Any:
        """Answer a request for a plan."""
        try:
            if request.name and not VEHICLE_NAME.fullmatch(request.name):
                raise PlanError(
                    "bad_name", f"name {request.name!r}: letters, digits, _ and /, a letter first"
                )
            frame = self._frames.resolve(
                request.goal.header.frame_id or "map", stamp_to_ns(request.goal.header.stamp)
            )
            await self._ground.known(MAP_PATIENCE_S)
            job = self._job(request, frame)
            plan = await self._planned(self._replanner(job), job.start)
            assert plan is not None
            frame_id = request.goal.header.frame_id or "map"
            response.path = self._publish(plan, request.name, frame_id, frame)
        except RflyError as error:
            response.message = self._refuse(error)
            return response

        response.success = True
        response.message = "; ".join(plan.notes)
        response.segment_mode = flat("B", plan.mode)
        response.length = plan.length
        response.energy = plan.energy
        return response

    def _job(self, request: Any, goal_frame: FrameToWorld) -> _Job:
        """Return the job of a request."""
        vehicle = self._vehicles.class_of(request.name, request.vehicle_class)
        if request.start.header.frame_id:
            frame = self._frames.resolve(
                request.start.header.frame_id, stamp_to_ns(request.start.header.stamp)
            )
            start = pose_to_plan_pose(request.start.pose, frame, "start")
        else:
            start = self._vehicles.present_pose(request.name)
        goal = pose_to_plan_pose(request.goal.pose, goal_frame, "goal")
        return _Job(vehicle, start, goal, request.mode)

    def _replanner(self, job: _Job) -> Replanner:
        """Return the way of a job, without a plan yet."""
        return Replanner(
            self._ready_planner(), job.vehicle, job.goal, job.mode, self._params.unknown_cost
        )

    async def _planned(self, way: Replanner, here: PlanPose) -> Plan | None:
        """Return the first plan, or another one if the octomap requires it. Raises PlanError."""
        return await in_thread(self, lambda: self._work(way, here))

    def _work(self, way: Replanner, here: PlanPose) -> Plan | None:
        """Plan in a thread; one after the other, so that each plan has the machine for itself."""
        with self._lock:
            start = time.monotonic()
            try:
                seen = None if self._space is None else self._space.seen(way.planner.terrain)
                return way.update(seen, here)
            except MemoryError:
                raise PlanError("memory", "not enough memory to plan on this map") from None
            finally:
                self._last_s = time.monotonic() - start

    def _ready_planner(self) -> Planner:
        """Return the planner of the present map and objects.

        Its costs are computed with the first plan.
        """
        if self._planner is not None:
            return self._planner
        terrain = self._ground.terrain
        if terrain is None:
            raise PlanError("no_terrain", self._ground.error or NOT_YET)
        solids = None
        if self._objects.id:
            try:
                frame = self._frames.resolve(self._objects.header.frame_id)
                solids = placed_objects_to_solids(self._objects, frame)
            except (FrameError, ValueError) as error:
                raise PlanError("bad_objects", f"placed_objects: {error}") from None

        water_level = self._params.water_level
        self._planner = Planner(
            terrain,
            solids,
            water_level=None if water_level <= NO_WATER else water_level,
            resolution=self._params.resolution or None,
            margin=self._params.object_margin,
        )
        return self._planner

    async def _go(self, message: PoseStamped) -> None:
        """Plan for the goal's vehicle, and publish the plan.

        A plan is not published if a newer goal has come meanwhile.
        """
        name = self._params.goal_vehicle
        frame_id = message.header.frame_id or "map"
        try:
            await self._ground.known(MAP_PATIENCE_S)
            frame = self._frames.resolve(frame_id)
            goal = pose_to_plan_pose(message.pose, frame, "goal")
            vehicle = self._vehicles.class_of(name, self._params.goal_class)
            here = self._vehicles.present_pose(name)
            job = _Job(vehicle, here, goal, MODES[self._params.goal_mode])
            replanner = self._replanner(job)
            plan = await self._planned(replanner, job.start)
        except RflyError as error:
            self._refuse(error)
            return

        if self._goal is None and plan is not None:
            self._way = None if self._space is None else _Way(replanner, frame_id, frame)
            self._publish(plan, name, frame_id, frame)

    async def _replan(self) -> None:
        """Publish another plan for the goal's vehicle if the map requires it.

        If there is none, publish an empty one, so that the vehicle stops.
        """
        way = self._way
        name = self._params.goal_vehicle
        if way is None:
            return

        had_plan = way.replanner.plan is not None
        try:
            way.replanner.planner = self._ready_planner()
            plan = await self._planned(way.replanner, self._vehicles.present_pose(name))
        except RflyError as error:
            self._refuse(error)
            if had_plan and way.replanner.plan is None and self._goal is None:
                self._follower(name).publish(Path(header=Header(frame_id=way.frame_id)))
            return
        if plan is not None and self._goal is None:
            self._publish(plan, name, way.frame_id, way.frame)

    # --- outputs

    def _publish(self, plan: Plan, name: str, frame_id: str, frame: FrameToWorld) -> Path:
        """Publish a plan as a path, for the vehicle and for RViz; return the path."""
        path = plan_to_path(plan, frame, frame_id, self.get_clock().now().nanoseconds)
        if name:
            self._follower(name).publish(path)
        self._shown.publish(path)
        self._diagnostics.count("plans")
        self._last = f"{plan.length:.1f} m for {name!r}" if name else f"{plan.length:.1f} m"
        self.get_logger().info(f"planned {self._last} in {self._last_s:.2f} s")
        self._update_diagnostics()
        return path

    def _follower(self, name: str) -> Any:
        """Return the publisher of a vehicle's path."""
        if name not in self._followers:
            check_vehicle_names("parameter goal_vehicle", [name])
            if len(self._followers) >= MOST_NAMES:
                raise PlanError(
                    "too_many_names",
                    f"paths for {MOST_NAMES} vehicles are published already, which is the limit",
                )
            self._followers[name] = publisher(self, Path, f"{name}/follow_path", LATCHED)
        return self._followers[name]

    def _refuse(self, error: RflyError) -> str:
        """Log and count an error; return its text."""
        text = " ".join(str(error).split())
        self._diagnostics.count(f"refused_{getattr(error, 'reason', 'request')}")
        self._last = text
        self.get_logger().warning(f"no plan: {text}")
        self._update_diagnostics()
        return text

    def _update_diagnostics(self) -> None:
        """Update the diagnostics."""
        ground = self._ground
        self._diagnostics.set_first(
            [
                (ground.terrain is None and ground.error, ERROR, ground.error),
                (ground.terrain is None, STALE, NO_MAP_YET),
                (ground.problem, WARN, ground.problem),
                (True, OK, "ready"),
            ],
            last_plan=self._last,
            last_plan_s=f"{self._last_s:.3f}",
            goal_vehicle=self._params.goal_vehicle,
        )
