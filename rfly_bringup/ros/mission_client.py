# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Client of mission_node's action and services, for the commands of `rfly mission`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.validate_topic_name import validate_topic_name
from rfly_suite.action import ExecuteMission
from rfly_suite.msg import MissionParams
from rfly_suite.srv import SetMissionCommand

from rfly_bringup.ros.command_client import CommandClient, check_name
from rfly_common.errors import ConfigError
from rfly_common.ros.endpoints import GoalResult
from rfly_common.ros.qos import LATCHED
from rfly_missions.mission.items import MissionCommand, MissionMode

KNOWN_WITHIN_S = 2.0
"""Longest wait for latched topics, s; they come at once."""
FEEDBACK_WITHIN_S = 1.0
"""Longest wait for feedback, s; it comes ten times a second by the node's clock."""
_ACTIVE = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)
_LATCHED_STATUS = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
Show = Callable[[float, str], None]
"""Called with the share, 0 … 1, and a text on the progress."""


class MissionClient(CommandClient):
    """Client that raises ConfigError if mission_node refuses, or none answers."""

    def __init__(self, namespace: str, vehicle: str) -> None:
        check_name(validate_topic_name, "NAME", vehicle)
        super().__init__("rfly_mission", namespace, "mission_node", ConfigError)
        self._vehicle = vehicle

    def start(
        self,
        file: Path,
        show: Show,
        stopped: Callable[[], bool],
        *,
        repeat: bool,
        start_index: int,
        wait: bool,
    ) -> tuple[bool, str]:
        """Start a mission file; return whether it reached its end, and a text on it.

        When `stopped` returns True the goal is cancelled and the vehicle holds. Without `wait` the
        mission goes on alone.
        """
        goal = ExecuteMission.Goal(
            file=str(file.absolute()), repeat=repeat, start_index=start_index
        )
        client = ActionClient(self.node, ExecuteMission, f"{self._vehicle}/execute_mission")
        try:
            where = self.node.resolve_service_name(f"{self._vehicle}/execute_mission")
            self._wait_for_server(client.server_is_ready, where, stopped)
            accepted = client.send_goal_async(
                goal, feedback_callback=lambda m: show(*_progress(m.feedback))
            )
            self.wait_for(accepted.done, f"{where} does not answer")

            ended = GoalResult(accepted.result())
            if not wait and not self.spin(ended.done, 1.0):  # a refused goal ends at once
                return True, "the mission has begun; see rfly mission status"

            self.spin(lambda: ended.done() or stopped())
            if not ended.done():
                accepted.result().cancel_goal_async()
                self.wait_for(ended.done, f"{where} does not end the mission")

            result = ended.result().result
            return bool(result.success), str(result.message)
        finally:
            client.destroy()

    def command(self, command: MissionCommand) -> None:
        """Hold, resume or return."""
        self.call(
            SetMissionCommand,
            f"{self._vehicle}/set_mission_command",
            SetMissionCommand.Request(command=command.value),
        )

    def status(self, show: Show, stopped: Callable[[], bool], *, follow: bool) -> str:
        """Return a text on the vehicle's mission; with `follow` call `show` until it ends."""
        action = f"{self._vehicle}/execute_mission/_action"
        goals: list[Any] = []
        params: list[Any] = []
        feedback: list[Any] = []

        def on_feedback(message: Any) -> None:
            feedback.append(message.feedback)
            del feedback[:-1]
            show(*_progress(message.feedback))

        self.node.create_subscription(
            GoalStatusArray, f"{action}/status", goals.append, _LATCHED_STATUS
        )
        self.node.create_subscription(
            MissionParams, f"{self._vehicle}/mission_params", params.append, LATCHED
        )
        self.node.create_subscription(
            ExecuteMission.Impl.FeedbackMessage, f"{action}/feedback", on_feedback, 10
        )

        where = self.node.resolve_service_name(f"{self._vehicle}/execute_mission")
        self._wait_for_server(
            lambda: self.node.count_publishers(f"{action}/status"), where, stopped
        )

        def is_flying() -> bool:
            return bool(goals) and any(each.status in _ACTIVE for each in goals[-1].status_list)

        # a node that has had no goal publishes none
        self.spin(lambda: (params and goals) or stopped(), KNOWN_WITHIN_S)
        self.spin(lambda: feedback or stopped(), FEEDBACK_WITHIN_S)
        if follow:
            self.spin(lambda: not is_flying() or stopped())

        if is_flying() and feedback:
            share, text = _progress(feedback[-1])
            return f"{text} ({100 * share:.0f} %)"
        doing = MissionMode(params[-1].current.mode).name if params else "no pose is known yet"
        return f"no mission is running: {doing}"

    def _wait_for_server(
        self, is_there: Callable[[], Any], where: str, stopped: Callable[[], bool]
    ) -> None:
        """Wait until a server is there; raise KeyboardInterrupt where it is stopped before that."""
        self.wait_for(lambda: is_there() or stopped(), lambda: self.missing_server(where))
        if stopped():
            raise KeyboardInterrupt


def _progress(feedback: Any) -> tuple[float, str]:
    """Return the share and the text of an ExecuteMission feedback."""
    if not feedback.count and math.isnan(feedback.distance):
        return 0.0, "waits for the vehicle's pose"
    mode = MissionMode(feedback.current.mode).name
    left = "" if math.isnan(feedback.distance) else f", {feedback.distance:.1f} m to go"
    return feedback.progress, f"item {feedback.index} of 0 … {feedback.count - 1}: {mode}{left}"
