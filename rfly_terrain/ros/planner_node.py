"""planner_node: paths over the terrain as a service, and for RViz's goal. A thin shell around
Planner.

A plan is worked out in a thread of its own, one after the other; its kernels release the
interpreter, so that the node answers and hears meanwhile.
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

from rfly_common.errors import ConfigError, FrameError, PlanError, RflyError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription, waiting_service
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, LATCHED
from rfly_common.ros.run_loop import in_thread, run
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.occupancy.octree import read_octree
from rfly_terrain.planning.plan import MODES, Plan
from rfly_terrain.planning.plan_pose import PlanPose
from rfly_terrain.planning.planner import Planner, warm_up
from rfly_terrain.planning.replanning import Replanner
from rfly_terrain.planning.seen_space import SeenSpace, seen_space
from rfly_terrain.planning.vehicle_classes import VehicleClass
from rfly_terrain.ros.node_parameters import NO_WATER, PlannerParameters
from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids
from rfly_terrain.ros.plan_msgs import plan_to_path, pose_to_plan_pose
from rfly_terrain.ros.planned_vehicles import NAME, PlannedVehicles
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, NOT_YET, LatestTerrain

MAP_PATIENCE_S = 5.0
"""so long a request waits for the first map: nodes that are started together have it a little later
"""
MOST_NAMES = 1_000
"""vehicles for which a topic `<name>/follow_path` is made"""


class _Job(NamedTuple):
    """What is to be planned, all in ENU."""

    vehicle: VehicleClass
    start: PlanPose
    goal: PlanPose
    mode: int


class _Way(NamedTuple):
    """To the goal_pose that is being followed."""

    replanner: Replanner
    frame_id: str
    frame: FrameToWorld


class _OctomapSpace:
    """The newest `octomap`; it is read when somebody plans, once, in that one's thread."""

    def __init__(
        self, node: Node, given: PlannerParameters, frames: Frames, on_octomap: Callable[[], Any]
    ) -> None:
        self._given = given
        self._frames = frames
        self._on_octomap = on_octomap
        self._newest: Octomap | None = None
        self._read: tuple[Octomap, HeightMap, SeenSpace] | None = None
        subscription(node, Octomap, "octomap", self._take, LATCHED)

    async def _take(self, message: Octomap) -> None:
        self._newest = message
        await self._on_octomap()

    def seen(self, terrain: HeightMap) -> SeenSpace:
        """What the newest map says. Raises PlanError where there is none, or none that can be read."""
        message = self._newest
        if message is None:
            raise PlanError(
                "no_octomap", "no octomap has come yet, and the parameter space is octomap"
            )
        if self._read is None or self._read[0] is not message or self._read[1] is not terrain:
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
                leaves = read_octree(np.asarray(message.data, np.int8), message.resolution)
            except RflyError as error:
                raise PlanError("bad_octomap", f"octomap: {error}") from None
            given = self._given
            self._read = (
                message,
                terrain,
                seen_space(
                    leaves,
                    terrain,
                    ground_margin=given.ground_margin,
                    unknown_height=given.unknown_height,
                ),
            )
        return self._read[2]


class PlannerNode(Node):
    """Serves `plan_path`, takes `goal_pose`, publishes `<name>/follow_path` and `planned_path`."""

    def __init__(self) -> None:
        super().__init__("planner_node")
        given = declare_parameters(self, PlannerParameters)
        self._given, self._frames = given, Frames(self)
        self._vehicles = PlannedVehicles(self, given, self._frames)
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
        octomap = given.space == "octomap"
        self._space = (
            _OctomapSpace(self, given, self._frames, self._on_octomap) if octomap else None
        )
        self._vehicles.start(self._diagnostics)
        if given.goal_vehicle:
            self._follower(given.goal_vehicle)
            subscription(self, PoseStamped, "goal_pose", self._on_goal_pose, COMMANDS)
        waiting_service(self, PlanPath, "plan_path", self._plan_path)
        self._update_diagnostics()
        self.get_logger().info(
            f"vehicle classes: {', '.join(self._vehicles.classes)}; waiting for terrain_map"
        )
        warm_up()  # last: the node is seen by others meanwhile

    # --- what comes in

    def _on_terrain_map(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        self._planner = None
        self._diagnostics.hardware_id = terrain.name
        self._update_diagnostics()

    def _on_placed_objects(self, message: PlacedObjectArray) -> None:
        self._objects = message
        self._planner = None

    async def _on_goal_pose(self, message: PoseStamped) -> None:
        self._goal = message
        await self._work_off()

    async def _on_octomap(self) -> None:
        self._mapped = self._way is not None
        await self._work_off()

    async def _work_off(self) -> None:
        """The newest goal and the newest map count; what comes while another is worked on waits for
        its end.
        """
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
        try:
            if request.name and not NAME.fullmatch(request.name):
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
            response.path = self._publish(
                plan, request.name, request.goal.header.frame_id or "map", frame
            )
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
        vehicle = self._vehicles.class_of(request.name, request.vehicle_class)
        if request.start.header.frame_id:
            frame = self._frames.resolve(
                request.start.header.frame_id, stamp_to_ns(request.start.header.stamp)
            )
            start = pose_to_plan_pose(request.start.pose, frame, "start")
        else:
            start = self._vehicles.present_pose(request.name)
        return _Job(
            vehicle, start, pose_to_plan_pose(request.goal.pose, goal_frame, "goal"), request.mode
        )

    def _replanner(self, job: _Job) -> Replanner:
        return Replanner(
            self._ready_planner(), job.vehicle, job.goal, job.mode, self._given.unknown_cost
        )

    async def _planned(self, way: Replanner, here: PlanPose) -> Plan | None:
        """The first plan, or another one where the octomap asks for it. Raises PlanError."""
        return await in_thread(self, lambda: self._work(way, here))

    def _work(self, way: Replanner, here: PlanPose) -> Plan | None:
        """In a thread; one after the other, so that each has the machine for itself."""
        with self._lock:
            start = time.monotonic()
            try:
                return way.update(
                    None if self._space is None else self._space.seen(way.planner.terrain), here
                )
            except MemoryError:
                raise PlanError("memory", "not enough memory to plan on this map") from None
            finally:
                self._last_s = time.monotonic() - start

    def _ready_planner(self) -> Planner:
        """The planner of the present map and objects; its costs are worked out when the first plan
        asks for them.
        """
        if self._planner is None:
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
            self._planner = Planner(
                terrain,
                solids,
                water_level=None
                if self._given.water_level <= NO_WATER
                else self._given.water_level,
                resolution=self._given.resolution or None,
                margin=self._given.object_margin,
            )
        return self._planner

    async def _go(self, message: PoseStamped) -> None:
        """Plan for the goal's vehicle, and tell it, unless a newer goal has come meanwhile."""
        name = self._given.goal_vehicle
        frame_id = message.header.frame_id or "map"
        try:
            await self._ground.known(MAP_PATIENCE_S)
            frame = self._frames.resolve(frame_id)
            goal = pose_to_plan_pose(message.pose, frame, "goal")
            vehicle = self._vehicles.class_of(name, self._given.goal_class)
            job = _Job(
                vehicle, self._vehicles.present_pose(name), goal, MODES[self._given.goal_mode]
            )
            replanner = self._replanner(job)
            plan = await self._planned(replanner, job.start)
        except RflyError as error:
            self._refuse(error)
            return
        if self._goal is None and plan is not None:
            self._way = None if self._space is None else _Way(replanner, frame_id, frame)
            self._publish(plan, name, frame_id, frame)

    async def _replan(self) -> None:
        """Tell the goal's vehicle another way where the map asks for it, and to stop where there is
        none.
        """
        way = self._way
        name = self._given.goal_vehicle
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

    # --- what goes out

    def _publish(self, plan: Plan, name: str, frame_id: str, frame: FrameToWorld) -> Path:
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
        if name not in self._followers:
            if not NAME.fullmatch(name):
                raise ConfigError(
                    f"parameter goal_vehicle: {name!r}: letters, digits, _ and /, a letter first"
                )
            if len(self._followers) >= MOST_NAMES:
                raise PlanError(
                    "too_many_names",
                    f"paths for {MOST_NAMES} vehicles are published already, no more",
                )
            self._followers[name] = publisher(self, Path, f"{name}/follow_path", LATCHED)
        return self._followers[name]

    def _refuse(self, error: RflyError) -> str:
        text = " ".join(str(error).split())
        self._diagnostics.count(f"refused_{getattr(error, 'reason', 'request')}")
        self._last = text
        self.get_logger().warning(f"no plan: {text}")
        self._update_diagnostics()
        return text

    def _update_diagnostics(self) -> None:
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
            goal_vehicle=self._given.goal_vehicle,
        )


def main() -> None:
    """Entry point of the executable `planner_node`."""
    run(PlannerNode)
