"""`rfly view --foxglove`: topics of the graph to Foxglove until a signal comes."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node

from rfly_bringup.recording.foxglove_server import FoxgloveServer
from rfly_bringup.recording.topics import TopicChoice
from rfly_bringup.ros.command_client import command_session
from rfly_bringup.ros.topic_taps import TopicTaps
from rfly_common.startup import stop_by_signal

_REFRESH_S = 0.3


def serve_foxglove(host: str, port: int, choice: TopicChoice, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP; `say` is given the address. Raises ConfigError for one that is taken."""
    with stop_by_signal() as stopped:
        server = FoxgloveServer(host, port)
        try:
            with command_session(lambda: Node("rfly_foxglove", use_global_arguments=False)) as (node, executor):
                taps = TopicTaps(node, server, choice)
                node.create_timer(_REFRESH_S, taps.refresh)
                say(server.address)
                while not stopped():
                    executor.spin_once(timeout_sec=0.1)
        finally:
            server.close()
