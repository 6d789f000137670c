# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""guidance_node: setpoints from a scenario's mission or a planned path.

It is a thin shell around MissionGuide. It knows odometry/global and mode, and steps with each
estimate, without a timer. In lock-step it answers each estimate by guidance_tick, which counts the
commands that were published before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ackermann_msgs.msg import AckermannDriveStamped
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry, Path
from rclpy.node import Node
from rfly_suite.msg import VehicleMode
from sensor_msgs.msg import BatteryState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.axle_lift import AssistWords
from rfly_autonomy.control.modes import DRIVEN
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.mission_guide import MissionGuide
from rfly_autonomy.guidance.rolling_choice import assisted, choose_rolling
from rfly_autonomy.ros.control_topics import GuidanceOutputs
from rfly_autonomy.ros.estimate_msgs import (
    estimate_to_pose,
    is_unknown,
    odometry_to_estimate,
    order_to_ackermann,
    order_to_pose,
    points_to_path,
)
from rfly_autonomy.ros.node_parameters import GuidanceParameters, StuckParameters, TrustParameters
from rfly_common.errors import PlanError, RflyError
from rfly_common.ros.diagnostics import OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED, STATE_IN, STATE_OUT, sensor_qos
from rfly_common.ros.stamps import stamp_to_ns
from rfly_missions.followers.land_air import ModeRequests
from rfly_missions.mission.legs import DriveLeg, Leg, legs_of_path, way_of_legs
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.plan_msgs import path_to_points
from rfly_terrain.ros.terrain_topics import LatestTerrain
from rfly_trajectory.fleet.follow_path import MAX_POSES

SILENCE_S = 1.0
ON_WHEELS = (Mode.DISARMED, Mode.DRIVE)


class GuidanceNode(Node):
    """Node that publishes `pose` and, during a mission or path, `path` and the commands.

    These are `cmd/ackermann`, `cmd/pose`, `cmd/mode` and `cmd/assist`.
    """

    def __init__(self) -> None:
        super().__init__("guidance_node")
        settings = declare_parameters(self, GuidanceParameters)
        self._name = declare_vehicle_name(self)
        self._autostart = settings.autostart
        self._scenario = settings.scenario
        self._speeds = settings.drive_speed, settings.fly_speed
        self._rolls = settings.rolling
        self._assisted = settings.thrust_assist
        self._period_ns = round(1e9 / settings.rate)

        self._frames = Frames(self, listen=False)
        self._ground = LatestTerrain(self, self._on_terrain_map)
        self._mission: tuple[Leg, ...] = ()

        terrain = None
        solids = None
        if settings.scenario:
            from rfly_amphibious.scenarios.scenario import Scenario

            loaded = Scenario.load(settings.scenario, self._ground.search_path)
            self._mission = loaded.legs
            terrain = loaded.terrain
            solids = None if loaded.world is None else loaded.world.solids
            params = VehicleParameters.load(settings.vehicle) if settings.vehicle else loaded.params
        else:
            params = VehicleParameters.load(settings.vehicle or "scale")
        limits = declare_parameters(self, TrustParameters).limits
        stuck = declare_parameters(self, StuckParameters).limits
        self._guide = MissionGuide(
            (), params, terrain, limits, stuck, settings.stuck_detours, solids
        )
        self._assist_words = AssistWords()
        self._active = False
        self._doing = ""
        self._notes = ""
        self._logged = 0
        self._refused = ""
        self._unplaced: Path | None = None
        self._now: Estimate | None = None
        self._mode: Mode | None = None
        self._last_ns = -1
        self._heard_at = time.monotonic()
        self._mode_requests = ModeRequests()

        self._diagnostics = Diagnostics(self, "guidance", self._name, self._update_diagnostics)
        self._pose = publisher(self, PoseStamped, "pose", STATE_OUT)
        self._path = publisher(self, Path, "path", LATCHED)
        kinds = {
            "cmd/ackermann": AckermannDriveStamped,
            "cmd/pose": PoseStamped,
            "cmd/mode": String,
            "cmd/assist": String,
        }
        self._outputs = GuidanceOutputs(self, kinds, settings.lock_step)

        self._ground.start(self._diagnostics)
        subscription(self, VehicleMode, "mode", self._on_mode, LATCHED)
        subscription(self, Path, "follow_path", self._on_follow_path, LATCHED)
        subscription(self, BatteryState, "battery", self._on_battery, STATE_IN)
        # last, so that the mode of the tick before is known
        odometry_qos = sensor_qos(True) if settings.lock_step else STATE_IN
        subscription(self, Odometry, "odometry/global", self._on_odometry, odometry_qos)
        self.create_service(Trigger, "~/start", self._serve_start)
        self.create_service(Trigger, "~/stop", self._serve_stop)
        self._update_diagnostics()

        task = (
            f"scenario {settings.scenario!r}"
            if settings.scenario
            else "no scenario, waiting for follow_path"
        )
        self.get_logger().info(f"{self._name}: {task}")

    # --- subscriptions

    def _on_terrain_map(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        if not self._scenario:  # it names the ground
            self._guide.route.terrain = terrain
        if self._unplaced is not None:
            self._on_follow_path(self._unplaced)

    @property
    def _knows_ground(self) -> bool:
        return bool(self._scenario) or self._guide.route.terrain is not None

    def _on_mode(self, message: VehicleMode) -> None:
        try:
            self._mode = Mode(message.mode)
            if self._mode is not Mode.DISARMED:
                self._guide.was_disarmed = False
        except ValueError:
            text = f"mode: {message.mode!r} is none of the vehicle's"
            self._diagnostics.refuse("unknown_modes", text, subject=message.mode)

    def _on_battery(self, message: BatteryState) -> None:
        """Land, and take off no more, once the way down takes what the battery has left."""
        self._guide.watch_battery(message.percentage)

    def _on_follow_path(self, message: Path) -> None:
        """Follow a path from now on; an empty one means: stop."""
        self._unplaced = None
        if not message.poses:
            self._stop("told to stop by an empty path")
            return

        if not self._knows_ground:
            self._unplaced = message
            self._refuse(
                "", "follow_path waits for terrain_map: which of its poses lie on the ground?"
            )
            return

        if self._now is None:
            self._unplaced = message
            return

        try:
            if len(message.poses) > MAX_POSES:
                raise PlanError(
                    "too_long", f"{len(message.poses)} poses, at most {MAX_POSES} are taken"
                )
            frame_id = message.header.frame_id or "map"
            frame = self._frames.resolve(frame_id, stamp_to_ns(message.header.stamp))
            points, heading = path_to_points(message, frame)
            legs = legs_of_path(
                points, self._guide.route.terrain, *self._speeds, self._now.position[:2], heading
            )
        except RflyError as error:
            self._refuse("refused_paths", f"follow_path: {error}")
            return
        if self._assisted:
            legs = assisted(legs)
        notes: tuple[str, ...] = ()
        if self._rolls:
            place = self._now.position[:2].tolist()
            legs, notes = choose_rolling(legs, place, self._guide.params, self._guide.route.terrain)
        # a planner plans again by itself: that arms nothing
        self._begin(legs, "a planned path", notes, arms=False)

    def _refuse(self, counter: str, text: str) -> None:
        self._refused = " ".join(text.split())
        if counter:
            self._diagnostics.count(counter)
        self.get_logger().warning(self._refused)
        self._update_diagnostics()

    # --- start and stop

    def _serve_start(self, _request: Any, response: Any) -> Any:
        response.success, response.message = self._begin_mission()
        return response

    def _begin_mission(self) -> tuple[bool, str]:
        if not self._mission:
            return False, "there is no mission: the parameter scenario names none"
        if self._now is None or self._mode is None:
            return (
                False,
                f"nothing is known of the vehicle yet: no {' and no '.join(self._missing())}",
            )
        self._begin(self._mission, f"the mission of {self._scenario}")
        return True, f"{len(self._mission)} legs"

    def _begin(
        self, legs: Sequence[Leg], what: str, notes: Sequence[str] = (), arms: bool = True
    ) -> None:
        """Carry out legs; `notes` say what was chosen for them.

        `arms`: whether they arm a vehicle that was disarmed on its way.
        """
        self._guide.follow(legs, arms)
        self._active = True
        self._doing = what
        self._refused = ""
        self._mode_requests.forget()
        self._logged = len(self._guide.log)
        if self._now is not None:
            way = way_of_legs(legs, self._now.position[:2], self._guide.route.terrain)
            self._path.publish(points_to_path(way, self._now.time))
        self._notes = "; ".join(notes)
        self.get_logger().info("; ".join((f"carries out {what}: {len(legs)} legs", *notes)))
        self._update_diagnostics()

    def _serve_stop(self, _request: Any, response: Any) -> Any:
        self._stop("told to stop")
        response.success = True
        response.message = self._doing if self._active else "nothing is carried out"
        return response

    def _stop(self, why: str) -> None:
        self._autostart = False
        if self._active and self._now is not None and self._mode is not None:
            self._guide.hold(self._now, self._mode)
            self._doing = "hovering" if self._guide.route.legs else "standing"
            self.get_logger().info(f"{why}: {self._doing}")
        self._update_diagnostics()

    # --- steps

    def _on_odometry(self, message: Odometry) -> None:
        """Take an estimate; in lock-step answer it, once the mode is known."""
        self._take_odometry(message)
        if self._mode is not None:
            self._outputs.answer(message.header.stamp)

    def _take_odometry(self, message: Odometry) -> None:
        stamp_ns = stamp_to_ns(message.header.stamp)
        self._heard_at = time.monotonic()
        if is_unknown(message):
            return
        if self._last_ns >= 0 and 0 <= stamp_ns - self._last_ns < self._period_ns - 1000:
            return

        if stamp_ns < self._last_ns:
            self._diagnostics.count("clock_jumps_back")
            if self._active:
                self._active = False
                self.get_logger().warning(f"the time went back: {self._doing} is given up")

        try:
            now = odometry_to_estimate(message)
        except RflyError as error:
            self._diagnostics.refuse("refused_odometry", f"odometry/global: {error}")
            return

        self._last_ns = stamp_ns
        self._now = now
        self._pose.publish(estimate_to_pose(now))
        if self._unplaced is not None and self._knows_ground:
            self._on_follow_path(self._unplaced)

        if self._mode is None:
            return
        if self._autostart and self._mission:
            self._autostart = False
            self._begin_mission()

        if self._active:
            self._step(now, self._mode)

    def _step(self, now: Estimate, mode: Mode) -> None:
        guide = self._guide
        before = (self._guide.route.index, self._guide.problem)
        order = guide.step(now, mode)

        for _, text in guide.log[self._logged :]:
            self.get_logger().info(text)
        self._logged = len(guide.log)

        if mode in DRIVEN:
            self._outputs.send("cmd/ackermann", order_to_ackermann(order, self._name))
        word = self._assist_words.word(order.assist) if mode is Mode.DRIVE else ""
        if word:
            self._outputs.send("cmd/assist", String(data=word))
        if mode is not Mode.DRIVE and order.target is not None:
            self._outputs.send("cmd/pose", order_to_pose(order, now))
        if self._mode_requests.is_due(order.request, order.time):
            self._outputs.send("cmd/mode", String(data=order.request))

        if guide.done and mode in ON_WHEELS:
            self._active = False
            self.get_logger().info(f"{self._doing} is done")

        if before != (guide.route.index, guide.problem) or not self._active:
            self._update_diagnostics()

    # --- diagnostics

    def _missing(self) -> list[str]:
        heard = {"odometry/global": self._now is not None, "mode": self._mode is not None}
        return [topic for topic, there in heard.items() if not there]

    def _update_diagnostics(self) -> None:
        guide = self._guide
        missing = self._missing()
        mode = "" if self._mode is None else self._mode.value
        values: dict[str, Any] = {"doing": self._doing if self._active else "", "mode": mode}

        if self._active and not guide.route.at_end:
            what = "drive" if isinstance(guide.route.leg, DriveLeg) else "fly"
            values["leg"] = f"{guide.route.index + 1} of {len(guide.route.legs)}: {what}"

        if self._active and self._notes:
            values["rolling"] = self._notes

        silence = time.monotonic() - self._heard_at
        problem = self._refused or self._ground.problem
        self._diagnostics.set_first(
            [
                (self._active and guide.problem, WARN, guide.problem),
                (problem, WARN, problem),
                (missing, STALE, f"not known yet: {', '.join(missing)}"),
                (silence > SILENCE_S, STALE, f"no odometry/global for {silence:.0f} s"),
                (self._active, OK, f"carries out {self._doing}"),
                (self._doing and guide.done, OK, f"{self._doing} is done"),
                (True, OK, "idle"),
            ],
            **values,
        )
