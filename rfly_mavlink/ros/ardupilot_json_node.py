# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ardupilot_json_node: ArduPilot SITL in place of the control nodes, through its JSON interface.

It is a thin shell around ArdupilotSession, ControlMapping and Perception.
"""

from __future__ import annotations

import math
import time

from rclpy.node import Node

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.parameters import declare_parameters
from rfly_mavlink.links.ardupilot_session import (
    ArdupilotSession,
    DriveInterlock,
    ServoFrame,
    encode_state,
    servo_commands,
)
from rfly_mavlink.links.perception import Perception
from rfly_mavlink.links.session import ANSWER_WITHIN_S, LINK_LOSS_S
from rfly_mavlink.ros.external_control_topics import (
    ExternalControl,
    PerceptionTopics,
    declare_mapping,
)
from rfly_mavlink.ros.node_parameters import ArdupilotParameters, PerceptionParameters

HEARD = ("imu/data", "height_above_ground", "environment/wind")


class ArdupilotJsonNode(Node):
    """Node that answers each of ArduPilot's frames with one state, and publishes its servo outputs.

    In lock-step the frame that follows a tick's state is the tick's command. ArduPilot waits for an
    answer and repeats its frame without one, so this node never sends anything twice by itself.
    """

    def __init__(self) -> None:
        super().__init__("ardupilot_json_node")
        params = declare_parameters(self, ArdupilotParameters)

        self._params = VehicleParameters.load(params.vehicle)
        self._mapping = declare_mapping(self, self._params)
        self._interlock = DriveInterlock(self._mapping)
        self._diagnostics = Diagnostics(
            self, "ardupilot", f"udp {params.bind}", self._update_diagnostics
        )

        self._perception = Perception(self._params)
        self._control = ExternalControl(
            self, self._params, self._diagnostics, self._use_frames, params.supplies
        )

        # state of the exchange
        self._reported_ns = -1
        self._tick_at = -math.inf
        self._frame: ServoFrame | None = None
        self._frame_rate = 0
        self._answer: tuple[RotorCommand, WheelCommand] | None = None
        self._ready = False
        self._reported_rival = ""

        self._session = ArdupilotSession(
            params.bind, params.port, params.controller_host, self._control.wake
        )
        perception = declare_parameters(self, PerceptionParameters)
        self._topics = PerceptionTopics(
            self, self._perception, self._diagnostics, perception, self._on_state, heard=HEARD
        )

        self._control.start(self._session, "ArduPilot", self._check)
        self._update_diagnostics()

    def destroy_node(self) -> None:
        """End the session, then the node."""
        self._session.close()
        super().destroy_node()

    def _on_state(self, _stamp_ns: int, again: bool) -> None:
        """Use a tick, or without lock-step a new IMU message."""
        if not again:
            self._answer = None
            self._reported_ns = -1
            self._tick_at = time.monotonic()
        elif self._topics.lock_step and self._answer is not None:
            self._control.publish(*self._answer)  # it was lost on the way
            return

        self._ready = self._perception.imu is not None and self._perception.pose is not None
        self._exchange()

    def _exchange(self) -> None:
        """Answer ArduPilot's frame with the state, if both exist and the state is not yet sent."""
        stamp_ns = self._topics.stamp_ns
        if stamp_ns < 0 or self._frame is None:
            return

        if not self._ready:
            if self._topics.lock_step and self._answer is None:
                self._answer = self._control.rest(stamp_ns)
                self._control.publish(*self._answer)
        elif self._reported_ns != stamp_ns:
            self._session.reply(self._frame, encode_state(stamp_ns * 1e-9, self._perception))
            self._reported_ns = stamp_ns
            self._frame = None

    def _use_frames(self) -> None:
        """Publish the commands of ArduPilot's new frames."""
        for frame in self._session.commands():
            self._frame = frame
            self._frame_rate = frame.rate
            pulses = self._interlock.pulses(frame)

            if self._topics.stamp_ns >= 0 and (
                not self._topics.lock_step
                or (self._reported_ns == self._topics.stamp_ns and self._answer is None)
            ):
                self._answer = servo_commands(
                    self._topics.stamp_ns * 1e-9, pulses, self._mapping, self._params
                )
                self._control.publish(*self._answer)
            self._exchange()

    def _check(self) -> None:
        self._use_frames()
        self._report_rival()
        self._update_diagnostics()

    def _report_rival(self) -> None:
        """Warn of a second autopilot, once for each address."""
        rival = self._session.rival
        if rival not in ("", self._reported_rival):
            self._reported_rival = rival
            self.get_logger().warning(
                f"{rival} sends servo outputs too and is ignored, as "
                f"{self._session.peer} controls; give each ArduPilot a node with a port of its own"
            )

    def _update_diagnostics(self) -> None:
        """Update /diagnostics."""
        session = self._session
        now = time.monotonic()
        lock_step = self._topics.lock_step
        simulated = self._topics.simulated
        unanswered = lock_step and self._answer is None and math.isfinite(self._tick_at)
        waited = now - self._tick_at if unanswered else 0.0

        # texts
        unready = (
            f"{session.peer} is not told anything before imu/data and {self._topics.odometry} "
            "have come"
        )
        late = (
            f"fail-safe: {session.peer} has not answered for {waited:.0f} s, and simulated time "
            "stands"
        )
        lost = (
            f"no frame of {session.peer} for {session.gap:.1f} s; the simulation's fail-safe acts"
        )

        self._diagnostics.set_first(
            [
                (
                    not session.peer,
                    WARN,
                    f"ArduPilot has not spoken yet ({self._diagnostics.hardware_id})",
                ),
                (simulated and not self._ready, WARN, unready),
                (waited > ANSWER_WITHIN_S, ERROR, late),
                (
                    not lock_step and simulated and session.gap > LINK_LOSS_S,
                    ERROR,
                    lost,
                ),
                (
                    session.rival,
                    WARN,
                    f"{session.peer} controls; {session.rival} sends here too and is ignored",
                ),
                (True, OK, f"{session.peer} controls"),
            ],
            frame_rate=self._frame_rate,
            repeated_ticks=self._topics.repeated,
            **session.counters,
        )
