# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Send a mission file to mission_node and print its progress and its end.

This is an action client in rclpy.

    python examples/tutorials/fly_mission.py hawk /home/me/missions/ridge.plan
"""

from __future__ import annotations

import signal
import sys
import threading

import rclpy
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rfly_suite.action import ExecuteMission


def fly(node: Node, vehicle: str, file: str, stop: threading.Event) -> ExecuteMission.Result:
    """Fly a mission to its end and return the result. `stop` cancels it: the vehicle then holds."""

    def show(message: ExecuteMission.Impl.FeedbackMessage) -> None:
        feedback = message.feedback
        print(
            f"\ritem {feedback.index}, {feedback.progress:.0%} ",
            end="",
            flush=True,
        )

    client = ActionClient(node, ExecuteMission, f"{vehicle}/execute_mission")
    while not client.wait_for_server(timeout_sec=0.2):
        if stop.is_set():
            raise SystemExit(f"no mission_node flies {vehicle}")
    sending = client.send_goal_async(ExecuteMission.Goal(file=file), show)
    rclpy.spin_until_future_complete(node, sending)
    goal = sending.result()

    ending = goal.get_result_async()
    while not ending.done():
        rclpy.spin_once(node, timeout_sec=0.1)
        if stop.is_set():
            goal.cancel_goal_async()
            stop.clear()
    return ending.result().result


def main() -> int:
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())  # Ctrl-C
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("fly_mission")
    result = fly(node, *sys.argv[1:3], stop)
    print(f"\n{'done' if result.success else 'not done'}: {result.message or 'to its end'}")
    node.destroy_node()
    rclpy.shutdown()
    return 0 if result.success else 1


if __name__ == "__main__":
    raise SystemExit(main())
