# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's scene: its map and that of terrain_node, and its weather. Part of ue_bridge_node.

By the parameter `scene` the window follows the terrain, or the terrain follows the window; never
both, as each change would cause the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rfly_suite.msg import Environment
from rfly_suite.srv import LoadTerrain

from rfly_common.errors import CommandError
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.qos import COMMANDS
from rfly_ue_bridge.codec.commands import (
    MAP_CHANGE_SECONDS,
    change_map_by_name,
    changes_map,
    map_named_in,
    weather,
)
from rfly_ue_bridge.objects.weather_actor import CLEAR, encode_weather, weather_of
from rfly_ue_bridge.ros.node_parameters import BridgeParameters
from rfly_ue_bridge.sockets.udp_sender import UdpSender


class SceneTopics:
    """Map and weather of the window.

    `send_command` sends a console command to a window and returns "" or the error; `refused` counts
    an environment that cannot be shown.
    """

    def __init__(
        self,
        node: Node,
        params: BridgeParameters,
        sender: UdpSender,
        send_command: Callable[[str, int], str],
        refused: Callable[[], None],
    ) -> None:
        self._node = node
        self._params = params
        self._sender = sender
        self._send_command = send_command
        self._refused = refused
        self._begin = time.monotonic()
        self._weather = CLEAR
        self._weather_due: float | None = None
        """Time at which the actor is shown again after a map change, s; None: it is there."""
        subscription(node, Environment, "environment", self._on_environment, COMMANDS)
        self._load = None
        if params.scene == "lead":
            self._load = node.create_client(LoadTerrain, "load_terrain")

    # --- map

    def follow_terrain(self, name: str) -> None:
        """Let RflySim3D load the map of a new terrain's name, if the scene follows the terrain."""
        if self._params.scene != "follow":
            return
        try:
            problem = self._send_command(change_map_by_name(name), -1)
        except CommandError as error:
            problem = str(error)
        if problem:
            self._node.get_logger().warning(f"scene: RflySim3D cannot follow {name!r}: {problem}")

    def command_sent(self, text: str) -> None:
        """Note a command that was sent: after a map change the scene is another one."""
        if not changes_map(text):
            return
        self._weather_due = time.monotonic() + MAP_CHANGE_SECONDS
        if self._load is None:
            return

        name = map_named_in(text)
        if name is None:
            self._node.get_logger().warning(
                f"scene: {text!r} names no map, so the terrain stays; expected RflyChangeMapbyName"
            )
        elif not self._load.service_is_ready():
            self._node.get_logger().warning(
                f"scene: nothing serves load_terrain, so the terrain does not become {name!r}"
            )
        else:
            self._load.call_async(LoadTerrain.Request(map=name)).add_done_callback(self._loaded)

    def _loaded(self, future: Any) -> None:
        answer = future.result()
        if answer is not None and not answer.success:
            self._node.get_logger().warning(f"scene: the terrain stays: {answer.message}")

    # --- weather

    def every_second(self) -> None:
        """Show the weather's actor again, once a new map has been loaded."""
        if self._weather_due is None or time.monotonic() < self._weather_due:
            return
        self._weather_due = None
        if self._weather != CLEAR:
            self._show_weather()

    def _on_environment(self, message: Environment) -> None:
        try:
            text = weather(
                message.light, message.visibility, message.cloud_cover, message.rain_rate
            )
        except CommandError as error:
            self._refused()
            self._node.get_logger().warning(f"environment: {error}")
            return

        self._send_command(text, -1)
        shown = weather_of(message.visibility, message.rain_rate)
        if self._params.weather_actor and shown != self._weather:
            self._weather = shown
            self._show_weather()

    def _show_weather(self) -> None:
        elapsed = time.monotonic() - self._begin
        for datagram in encode_weather(self._weather, self._params.weather_actor, elapsed):
            self._sender.send(datagram)
