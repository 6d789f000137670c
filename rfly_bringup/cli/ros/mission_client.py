"""Client of mission_node's action and services, for `rfly mission start`, `hold`, `resume`,
`return` and `status`.
"""

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

from rfly_bringup.cli.ros.command_client import CommandClient, check_name
from rfly_common.errors import ConfigError
from rfly_common.ros.goal_result import GoalResult
from rfly_common.ros.qos import LATCHED
from rfly_missions.mission.items import MissionCommand, MissionMode

KNOWN_WITHIN_S = 2.0
FEEDBACK_WITHIN_S = 1.0
"""what is latched comes at once; feedback ten times a second by the node's clock"""
_ACTIVE = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)
_KEPT = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
Show = Callable[[float, str], None]
"""is told the share, 0 … 1, and in words what is going on"""


class MissionClient(CommandClient):
    """Raises ConfigError for what mission_node refuses, or where none answers."""

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
        """Let it fly a file: whether the mission was carried out to its end, and what is to be
        told.

        When `stopped` says so the goal is cancelled and the vehicle holds. Without `wait` the
        mission goes on alone.
        """
        goal = ExecuteMission.Goal(
            file=str(file.absolute()), repeat=repeat, start_index=start_index
        )
        client = ActionClient(self.node, ExecuteMission, f"{self._vehicle}/execute_mission")
        try:
            where = self.node.resolve_service_name(f"{self._vehicle}/execute_mission")
            self.wait_for(lambda: client.server_is_ready() or stopped(), self.nobody(where))
            sent = client.send_goal_async(
                goal, feedback_callback=lambda m: show(*_progress(m.feedback))
            )
            self.wait_for(sent.done, f"{where} does not answer")
            ended = GoalResult(sent.result())
            if not wait and not self.spin(ended.done, 1.0):  # a refused goal ends at once
                return True, "the mission has begun: rfly mission status tells more"
            self.spin(lambda: ended.done() or stopped())
            if not ended.done():
                sent.result().cancel_goal_async()
                self.wait_for(ended.done, f"{where} does not end the mission")
            result = ended.result().result
            return bool(result.success), str(result.message)
        finally:
            client.destroy()

    def command(self, command: MissionCommand) -> None:
        """Hold, carry on, or return."""
        self.call(
            SetMissionCommand,
            f"{self._vehicle}/set_mission_command",
            SetMissionCommand.Request(command=command.value),
        )

    def status(self, show: Show, stopped: Callable[[], bool], *, follow: bool) -> str:
        """What the vehicle does now; with `follow` `show` is told until its mission ends."""
        action = f"{self._vehicle}/execute_mission/_action"
        goals: list[Any] = []
        params: list[Any] = []
        seen: list[Any] = []

        def on_feedback(message: Any) -> None:
            seen.append(message.feedback)
            del seen[:-1]
            show(*_progress(message.feedback))

        self.node.create_subscription(GoalStatusArray, f"{action}/status", goals.append, _KEPT)
        self.node.create_subscription(
            MissionParams, f"{self._vehicle}/mission_params", params.append, LATCHED
        )
        self.node.create_subscription(
            ExecuteMission.Impl.FeedbackMessage, f"{action}/feedback", on_feedback, 10
        )
        where = self.node.resolve_service_name(f"{self._vehicle}/execute_mission")
        self.wait_for(lambda: self.node.count_publishers(f"{action}/status"), self.nobody(where))

        def flies() -> bool:
            return bool(goals) and any(each.status in _ACTIVE for each in goals[-1].status_list)

        self.spin(
            lambda: (params and goals) or stopped(), KNOWN_WITHIN_S
        )  # no goals are told where there was none
        self.spin(lambda: seen or stopped(), FEEDBACK_WITHIN_S)
        if follow:
            self.spin(lambda: not flies() or stopped())
        if flies() and seen:
            share, text = _progress(seen[-1])
            return f"{text} ({100 * share:.0f} %)"
        doing = MissionMode(params[-1].current.mode).name if params else "no pose is known yet"
        return f"no mission is running: {doing}"


def _progress(feedback: Any) -> tuple[float, str]:
    """Share and words of an ExecuteMission feedback."""
    if not feedback.count and math.isnan(feedback.distance):
        return 0.0, "waits for the vehicle's pose"
    mode = MissionMode(feedback.current.mode).name
    left = "" if math.isnan(feedback.distance) else f", {feedback.distance:.1f} m to go"
    return feedback.progress, f"item {feedback.index + 1} of {feedback.count}: {mode}{left}"
