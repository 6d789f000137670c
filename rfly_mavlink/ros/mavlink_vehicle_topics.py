# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""One vehicle of mavlink_node: mission_node's interfaces as the `RemotePilot` of a MavlinkVehicle.

Feedback and the gains of a controller go the other way.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped
from geometry_msgs.msg import Quaternion as QuaternionMsg
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.action import ActionClient
from rclpy.node import Node
from rfly_suite.action import ExecuteMission
from rfly_suite.msg import AttitudeTarget, Fence, Mission, MissionParams, VehicleMode
from sensor_msgs.msg import BatteryState
from std_msgs.msg import Float64, String, UInt8
from unique_identifier_msgs.msg import UUID

from rfly_common.errors import FrameError
from rfly_common.frames import quat_ned_frd_to_enu_flu, quat_to_euler
from rfly_common.geodesy import GeoPoint
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.frame_lookup import Frames, frame_prefix
from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_IN, STATE_OUT
from rfly_common.ros.run_loop import NewestWork
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.ros.vehicle_msgs import battery_to_msg
from rfly_common.transform_buffer import WORLD
from rfly_mavlink.stations.endpoint import MavlinkEndpoint
from rfly_mavlink.stations.mission_rows import FlightPlan
from rfly_mavlink.stations.offboard import Quaternion
from rfly_mavlink.stations.parameter_protocol import GAIN_NAMES, ControllerGains, Tunables
from rfly_mavlink.stations.plan_rows import PlanRows
from rfly_mavlink.stations.terrain_protocol import PlacedTerrain
from rfly_missions.execution.path_manager import MissionPhase
from rfly_missions.mission.geofence import FlightAreaPlan
from rfly_missions.mission.items import MissionCommand, MissionMode, Ned
from rfly_missions.mission.mavlink_items import terrain_altitude
from rfly_missions.ros.mission_msgs import (
    NO_POSE,
    area_to_msg,
    item_to_msg,
    msg_to_area,
    msg_to_item,
    msg_to_mission,
    ned_to_point,
    pose_to_ned_euler,
)
from rfly_terrain.height_map.height_map import HeightMap

PERIOD_S = 1.0
"""Time between two readings of the gains, s."""
PATIENCE_S = 5.0
"""Time, s, after which an answer is no longer awaited."""
BATTERY_PERIOD_S = 1.0
"""Time between two messages about the battery, s."""


class ReportedMission(NamedTuple):
    """A mission that mission_node has loaded."""

    goal_id: bytes = b""
    home: Ned = (0.0, 0.0, 0.0)
    rows: PlanRows = PlanRows((), FlightPlan((), ()), ())
    area: FlightAreaPlan = FlightAreaPlan()
    area_ns: int = 0
    """Stamp of the last fence that mission_node has received."""


class ControllerGainsClient:
    """The gains of the node `controller`, kept in a `ControllerGains`.

    `update` finds changes by other clients.
    """

    def __init__(self, node: Node, controller: str, gains: ControllerGains) -> None:
        self._gains = gains
        gains.ask = self._ask
        self._describe = node.create_client(DescribeParameters, f"{controller}/describe_parameters")
        self._get = node.create_client(GetParameters, f"{controller}/get_parameters")
        self._set = node.create_client(SetParameters, f"{controller}/set_parameters")
        self._names = list(GAIN_NAMES.values())
        self._requested_at = -math.inf
        self._waits = False

    def update(self, wall: float) -> None:
        """Read the gains again if that is due; steady wall time, s."""
        if wall - self._requested_at < (PATIENCE_S if self._waits else PERIOD_S):
            return
        self._requested_at = wall

        if not all(client.service_is_ready() for client in (self._describe, self._get, self._set)):
            self._gains.forget()
            return

        self._waits = True
        answer: Any
        if not self._gains.ranges:
            answer = self._describe.call_async(DescribeParameters.Request(names=self._names))
            answer.add_done_callback(self._on_described)
        else:
            answer = self._get.call_async(GetParameters.Request(names=self._names))
            answer.add_done_callback(self._on_values)

    def _on_described(self, future: Any) -> None:
        # the values follow at once
        self._waits = False
        self._requested_at = -math.inf
        for name, descriptor in zip(GAIN_NAMES, future.result().descriptors, strict=False):
            self._gains.texts[name] = descriptor.description
            for span in descriptor.floating_point_range:
                self._gains.ranges[name] = span.from_value, span.to_value

    def _on_values(self, future: Any) -> None:
        self._waits = False
        for name, value in zip(GAIN_NAMES, future.result().values, strict=False):
            if value.type == ParameterType.PARAMETER_DOUBLE and name in self._gains.ranges:
                self._gains.values[name] = value.double_value

    def _ask(self, name: str, value: float, done: Callable[[str], None]) -> None:
        """Set a gain; `done` receives the reason of a refusal, or ""."""
        parameter_value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
        request = SetParameters.Request(
            parameters=[Parameter(name=GAIN_NAMES[name], value=parameter_value)]
        )

        def on_set(future: Any) -> None:
            (result,) = future.result().results
            if result.successful:
                self._gains.values[name] = value
            done("" if result.successful else result.reason)

        self._set.call_async(request).add_done_callback(on_set)


class MavlinkVehicleTopics:
    """A `RemotePilot` that flies by `<name>/execute_mission` and `<name>/mission_command`."""

    def __init__(
        self,
        node: Node,
        name: str,
        endpoint: MavlinkEndpoint,
        system_id: int,
        uav_type: str,
        values: Tunables,
        frames: Frames,
        diagnostics: Diagnostics,
        controller: str = "",
        rotors: int = 4,
    ) -> None:
        """Start the topics.

        `controller` is the node in the vehicle's namespace whose gains are parameters; "" means
        none.
        """
        self._node = node
        self.name = name
        self._frames = frames
        self._diagnostics = diagnostics
        self._terrain: HeightMap | None = None
        self._heard_at = -math.inf
        self._battery_sent_at = -math.inf

        # goals, own and others
        self._goals = 0
        """Number of goals of this node."""
        self._flown_goal = 0
        """Number of the own goal whose progress counts; 0: another client's goal is flown."""
        self._mark = os.urandom(8)
        """First half of the id of each goal of this node."""
        self._other = ReportedMission()
        """The last mission of another client."""
        self._taken_goal = b""
        """Id of the other client's goal whose mission is shown."""
        self._reading = NewestWork(node)
        self._area_ns = 0
        """Stamp of the last fence that was published."""
        self._replaced_goal = b""
        """Id of the other client's goal that a goal of this node replaces."""
        self._unplaced: Mission | None = None
        """A mission that came before the map."""

        # requests
        self._client = ActionClient(node, ExecuteMission, f"{name}/execute_mission")
        self._commands = publisher(node, UInt8, f"{name}/mission_command", COMMANDS)
        self._requests = publisher(node, String, f"{name}/cmd/mode", COMMANDS)
        self._attitudes = publisher(node, AttitudeTarget, f"{name}/cmd/attitude", COMMANDS)
        self._gimbal = publisher(node, Float64, f"{name}/gimbal/cmd", COMMANDS)
        self._fences = publisher(node, Fence, f"{name}/fence", LATCHED)
        self._battery = publisher(node, BatteryState, f"{name}/battery_state", STATE_OUT)

        self.vehicle = endpoint.add(system_id, uav_type, self, values, rotors)
        self._gains: ControllerGainsClient | None = None
        if controller:
            self._gains = ControllerGainsClient(node, f"{name}/{controller}", self.vehicle.gains)

        # reports
        subscription(node, PoseStamped, f"{name}/pose", self._on_pose, STATE_IN)
        subscription(
            node, MissionParams, f"{name}/mission_params", self._on_mission_params, LATCHED
        )
        subscription(node, Mission, f"{name}/mission", self._on_mission, LATCHED)
        self._modes = subscription(node, VehicleMode, f"{name}/mode", self._on_mode, LATCHED)

    def destroy(self) -> None:
        """Take the action's client off the graph."""
        self._client.destroy()

    # --- reports of the vehicle

    def take_terrain(self, terrain: HeightMap, origin: GeoPoint) -> None:
        """Take the ground, and the place of its origin."""
        self._terrain = terrain
        flight = self.vehicle.flight
        situation = flight.situation
        has_moved = situation.origin not in (None, origin)
        situation.origin = origin
        if has_moved:
            flight.area.relocate()
        situation.altitude = terrain_altitude(terrain, origin)
        situation.terrain = PlacedTerrain(terrain, origin)
        if self._unplaced is not None:
            self._on_mission(self._unplaced)

    def _on_pose(self, message: PoseStamped) -> None:
        stamp_ns = stamp_to_ns(message.header.stamp) or self._node.get_clock().now().nanoseconds
        try:
            frame = self._frames.resolve(message.header.frame_id or WORLD, stamp_ns)
        except FrameError as error:
            text = f"{self.name}/pose: {error}"
            self._diagnostics.refuse("poses_without_a_frame", text, subject=self.name)
            return

        ned = pose_to_ned_euler(message.pose, frame)
        if ned is None:
            text = f"{self.name}/pose refused: {NO_POSE}"
            self._diagnostics.refuse("refused_poses", text, subject=self.name)
            return

        self._heard_at = time.monotonic()
        flight = self.vehicle.flight
        flight.pose.take(stamp_ns * 1e-9, *ned)
        if self._terrain is not None:
            flight.situation.ground = float(self._terrain.altitude_ned(*ned[0][:2]))

    def _on_mission(self, message: Mission) -> None:
        """Take a mission of another client, and the fence that mission_node watches."""
        flight = self.vehicle.flight
        if flight.situation.origin is None:
            self._unplaced = message
            return

        self._unplaced = None
        self._reading.start(
            len(message.items), lambda: self._read_mission(message), self._take_mission
        )

    def _read_mission(self, message: Mission) -> ReportedMission | ValueError:
        """Return what a message says, or why it cannot be used. In a thread, if it is long."""
        axes = self._frames.axes(message.header.frame_id)
        if axes is None:
            return ValueError(f"{message.header.frame_id!r} is no world frame")
        try:
            mission = msg_to_mission(message, axes)
            area = msg_to_area(message.fence, axes)
        except ValueError as error:
            return error
        rows = self.vehicle.flight.shown_rows(mission)
        area_ns = stamp_to_ns(message.fence.header.stamp)
        return ReportedMission(bytes(message.goal_id), mission.home, rows, area, area_ns)

    def _take_mission(self, reported: ReportedMission | ValueError) -> None:
        if isinstance(reported, ValueError):
            text = f"{self.name}/mission refused: {reported}"
            self._diagnostics.refuse("refused_missions", text, subject=self.name)
            return

        # a report from before the last upload would undo it
        if reported.area_ns >= self._area_ns:
            self.vehicle.flight.area.take_reported(reported.area)

        is_own = reported.goal_id.startswith(self._mark)
        if not is_own and any(reported.goal_id):
            self._other = reported

    def _on_mission_params(self, message: MissionParams) -> None:
        flight = self.vehicle.flight
        flight.situation.item = None
        axes = self._frames.axes(message.header.frame_id)
        message.current.position = message.flown_position
        with contextlib.suppress(ValueError):  # an unknown mode, a place that is none
            flight.situation.shown = MissionMode(message.current.mode)
            flight.situation.item = msg_to_item(message.current, axes) if axes else None
        if message.phase > max(phase.value for phase in MissionPhase):
            return

        goal_id = bytes(message.goal_id)
        phase = MissionPhase(message.phase)
        if goal_id == self._goal_id(self._goals):
            self._flown_goal = self._goals
            flight.follow_phase(phase)
        elif goal_id == self._other.goal_id and goal_id != self._replaced_goal:
            # a mission is flown again, instead of an upload
            begins_again = flight.mission.plan is None and phase is MissionPhase.FLYING
            if goal_id != self._taken_goal or begins_again:
                self._take_other_mission()
            flight.follow_other(message.index, phase)

    def _take_other_mission(self) -> None:
        """Show the mission of another client; what becomes of an own goal does not matter now."""
        self._flown_goal = 0
        self._replaced_goal = b""
        self._taken_goal = self._other.goal_id
        self.vehicle.flight.take_other_mission(self._other.home, self._other.rows)

    def _goal_id(self, number: int) -> bytes:
        """Return the id of a goal of this node."""
        return self._mark + number.to_bytes(8, "big")

    def _on_mode(self, message: VehicleMode) -> None:
        self.vehicle.flight.situation.mode = message.mode.strip().upper()

    @property
    def silence_s(self) -> float:
        """Wall time since the last pose, s."""
        return time.monotonic() - self._heard_at

    def update(self, wall: float) -> None:
        """Prepare a tick: time without a pose, mode, gains, battery."""
        situation = self.vehicle.flight.situation
        situation.silence = self.silence_s
        if situation.mode and not self._node.count_publishers(self._modes.topic_name):
            situation.mode = ""  # its controller has ended
        if self._gains is not None:
            self._gains.update(wall)
        if wall - self._battery_sent_at >= BATTERY_PERIOD_S:
            self._battery_sent_at = wall
            self._publish_battery()

    def _publish_battery(self) -> None:
        message = battery_to_msg(self.vehicle.battery)
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._battery.publish(message)

    # --- the RemotePilot

    def problem(self) -> str:
        """Return why mission_node cannot take requests; "" if it can."""
        return "" if self._client.server_is_ready() else "mission_node does not answer"

    def command(self, command: MissionCommand) -> None:
        """Publish a command."""
        self._commands.publish(UInt8(data=int(command)))

    def request_mode(self, word: str) -> None:
        """Publish a request of a mode."""
        self._requests.publish(String(data=word))

    def takes_attitudes(self) -> bool:
        """Return whether a flight controller listens."""
        return self._attitudes.get_subscription_count() > 0

    def turn(self, attitude: Quaternion, thrust: float) -> None:
        """Publish an attitude."""
        x, y, z, w = quat_ned_frd_to_enu_flu(attitude).tolist()
        message = AttitudeTarget(orientation=QuaternionMsg(x=x, y=y, z=z, w=w), thrust=thrust)
        message.header.frame_id = WORLD
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._attitudes.publish(message)

    def gimbal_pitch(self) -> float | None:
        """Return the joint's pitch from /tf, where positive looks down.

        Only a gimbal reports its joint; a recorder subscribes to commands as well.
        """
        vehicle = f"{frame_prefix(self._node)}{self.name}"
        frames = f"{vehicle}/base_link", f"{vehicle}/camera_link"
        if not self._gimbal.get_subscription_count() or not self._frames.are_joined(*frames):
            return None
        link = self._frames.between(*frames)
        return 0.0 - float(quat_to_euler(link.quat_xyzw)[1])

    def point_gimbal(self, pitch: float) -> None:
        """Publish a pitch, where positive looks down."""
        self._gimbal.publish(Float64(data=0.0 - pitch))

    def set_area(self, area: FlightAreaPlan) -> None:
        """Publish a fence and rally points."""
        self._area_ns = max(self._node.get_clock().now().nanoseconds, self._area_ns + 1)
        self._fences.publish(area_to_msg(area, "enu", WORLD, self._area_ns))

    def fly(self, plan: FlightPlan, home: Ned, start_index: int) -> None:
        """Send a plan as a goal of the action; it replaces the one before."""
        self._goals += 1
        self._flown_goal = self._goals
        self._replaced_goal = self._other.goal_id
        number = self._goals
        goal = ExecuteMission.Goal(
            items=[item_to_msg(item, "enu") for item in plan.items],
            home=ned_to_point(home, "enu"),
            home_source=ExecuteMission.Goal.HOME_FROM_GOAL,
            start_index=start_index,
        )
        goal.header.frame_id = WORLD

        def on_feedback(message: Any) -> None:
            if number == self._flown_goal:
                self.vehicle.flight.progressed(int(message.feedback.index))

        def on_accepted(future: Any) -> None:
            handle = future.result()
            if not handle.accepted:
                on_end(False, "refused by mission_node")
                return
            handle.get_result_async().add_done_callback(on_result)

        def on_result(future: Any) -> None:
            result = future.result().result
            on_end(bool(result.success), result.message)

        def on_end(done: bool, why: str) -> None:
            if number == self._flown_goal:
                self._replaced_goal = b""
                self.vehicle.flight.ended(done, why)

        goal_id = UUID(uuid=list(self._goal_id(number)))
        accepted = self._client.send_goal_async(goal, on_feedback, goal_id)
        accepted.add_done_callback(on_accepted)
