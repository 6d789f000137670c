# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mavlink_hil_node: an autopilot that speaks MAVLink HIL in place of the control nodes.

Such an autopilot is PX4. The node is a thin shell around HilSession, HilMessages, ControlMapping
and Perception.
"""

from __future__ import annotations

import math
import time
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import NavSatFix

from rfly_amphibious.sensors.samples import GpsSamples
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, GeoPoint, geo_point
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import steady_timer
from rfly_common.ros.parameters import declare_parameters
from rfly_mavlink.links.answer_rhythm import EVERY_TICK, AnswerRhythm
from rfly_mavlink.links.mavlink_hil import (
    ActuatorControls,
    AutopilotClock,
    HilMessages,
    HilSession,
    accuracies,
)
from rfly_mavlink.links.perception import Perception
from rfly_mavlink.links.session import LINK_LOSS_S
from rfly_mavlink.links.transport import SerialTransport, TcpTransport
from rfly_mavlink.ros.external_control_topics import (
    CHECK_PERIOD_S,
    HEARD,
    ExternalControl,
    PerceptionTopics,
    declare_mapping,
)
from rfly_mavlink.ros.node_parameters import MavlinkHilParameters, PerceptionParameters
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import LatestTerrain

WENT_ON_SHOWN_S = 5.0
"""Wall time for which diagnostics show a tick without an answer, s."""
LEARNING_SHARE = 0.05
"""Share of `answer_timeout` that ticks wait while the rhythm of the answers is being learned."""


class MavlinkHilNode(Node):
    """Node between an autopilot and the simulation.

    It sends HIL_SENSOR, HIL_GPS and HIL_STATE_QUATERNION, and publishes HIL_ACTUATOR_CONTROLS as
    commands.
    """

    def __init__(self) -> None:
        super().__init__("mavlink_hil_node")
        settings = declare_parameters(self, MavlinkHilParameters)
        self._params = VehicleParameters.load(settings.vehicle)
        self._unanswered = settings.unanswered
        self._answer_timeout = settings.answer_timeout
        self._mapping = declare_mapping(self, self._params)

        origin = geo_point(settings.geo_origin or DEFAULT_GEO_ORIGIN, "parameter geo_origin")
        self._messages = HilMessages(origin)
        self._ground = None if settings.geo_origin else LatestTerrain(self, self._on_terrain_map)

        address = f"serial {settings.device}" if settings.device else f"tcp {settings.bind}"
        self._diagnostics = Diagnostics(self, "mavlink", address, self._update_diagnostics)
        self._perception = Perception(self._params)
        self._control = ExternalControl(
            self, self._params, self._diagnostics, self._use_controls, settings.supplies
        )

        # state of the exchange
        self._autopilot_clock = AutopilotClock()
        self._rhythm = AnswerRhythm()
        self._reported_pattern: tuple[int, ...] = EVERY_TICK
        self._sent_ns = -1
        self._sent_usec = -1
        self._sent_to = 0
        self._asked_at = -math.inf
        self._answer_made: tuple[RotorCommand, WheelCommand] | None = None
        self._sent: tuple[Any, ...] = ()
        self._newest: ActuatorControls | None = None
        self._in_effect: ActuatorControls | None = None
        self._other_time = 0
        self._went_on = 0
        self._sent_again = 0
        self._resent_at = -math.inf
        self._went_on_at = -math.inf
        self._ready = False

        self._session = HilSession(
            self._messages,
            lambda handler: (
                SerialTransport(settings.device, settings.baud, handler)
                if settings.device
                else TcpTransport(settings.bind, settings.port, handler)
            ),
            self._control.wake,
        )

        perception = declare_parameters(self, PerceptionParameters)
        self._topics = PerceptionTopics(
            self,
            self._perception,
            self._diagnostics,
            perception,
            self._answer,
            self._send_gps,
            (*HEARD, "environment/wind"),
        )

        self._control.start(self._session, "an autopilot", self._check)
        self._patience = steady_timer(
            self, LEARNING_SHARE * self._answer_timeout, self._meet_silence
        )
        if self._ground is not None:
            self._ground.start()
        self._update_diagnostics()

    def destroy_node(self) -> None:
        """End the session, then the node."""
        self._session.close()
        super().destroy_node()

    def _on_terrain_map(self, _terrain: HeightMap, geo_origin: GeoPoint) -> None:
        self._messages.geo_origin = geo_origin

    # --- to the autopilot

    def _answer(self, stamp_ns: int, again: bool) -> None:
        """Send the state of a tick, or without lock-step of a new IMU message."""
        if not again:
            if stamp_ns <= self._sent_ns:  # simulated time went back
                self._sent_ns = -1
            self._answer_made = None
            self._asked_at = time.monotonic()
        elif self._topics.lock_step and self._answer_made is not None:
            self._control.publish(*self._answer_made)  # it was lost on the way
            return

        self._ready = self._perception.ready(stamp_ns * 1e-9)
        if self._ready:
            self._send_state(stamp_ns)
        if self._topics.lock_step and (
            self._session.booting or (not self._ready and self._session.up)
        ):
            self._publish_rest()

    def _send_state(self, stamp_ns: int) -> None:
        """Send a state once to each autopilot.

        TCP loses nothing, and repeated times would mislead an autopilot.
        """
        session = self._session
        if not session.peer or (stamp_ns, session.connections) == (
            self._sent_ns,
            self._sent_to,
        ):
            return

        # a new autopilot, or simulated time that went back
        is_new = session.connections != self._sent_to
        if is_new:
            self._autopilot_clock.restart()
            self._rhythm.restart()
            self._reported_pattern = EVERY_TICK
            self._in_effect = None
        reset = is_new or self._sent_ns < 0

        self._sent_ns = stamp_ns
        self._sent_to = session.connections
        self._sent_usec = self._autopilot_clock.advance(stamp_ns)
        sensors = self._messages.sensors(self._sent_usec, self._perception, reset=reset)
        self._sent = (self._messages.state(self._sent_usec, self._perception), sensors)
        session.send(*self._sent)
        self._asked_at = time.monotonic()
        self._perception.fresh.clear()

        # the last controls stay in effect between the answers
        if not self._topics.lock_step:
            return
        self._rhythm.tick(self._sent_usec)
        if not self._rhythm.expects_answer and self._in_effect is not None:
            self._command(self._in_effect)
        elif not self._rhythm.is_sure:
            self._patience.reset()

    def _send_gps(self, given: GpsSamples, fix: NavSatFix) -> None:
        if self._ready:
            usec = self._autopilot_clock.of_sample(float(given.time[-1]))
            accuracy = accuracies(fix.position_covariance)
            self._session.send(self._messages.gps(usec, given, *accuracy))

    def _publish_rest(self) -> None:
        """Publish rest and brakes while no autopilot controls."""
        self._answer_made = self._control.rest(self._topics.stamp_ns)
        self._control.publish(*self._answer_made)

    def _meet_silence(self) -> None:
        """Do what the parameter `unanswered` says if the present tick is not answered in time."""
        self._use_controls()
        now = time.monotonic()
        waited = self._waited_s
        if self._unanswered == "wait" or not self._session.up or not waited:
            return

        if self._unanswered == "go_on" and self._newest is not None:
            sure = self._rhythm.is_sure
            limit = self._answer_timeout if sure else LEARNING_SHARE * self._answer_timeout
            if waited >= limit:
                self._go_on(sure)
        elif (
            self._unanswered == "resend"
            and now - max(self._asked_at, self._resent_at) > self._answer_timeout
        ):
            self._sent_again += 1
            self._resent_at = now
            self._session.send(*self._sent)

    def _go_on(self, was_expected: bool) -> None:
        """End the wait for an answer with the newest controls."""
        assert self._newest is not None
        self._went_on += 1
        if was_expected:
            self._went_on_at = time.monotonic()
        self._in_effect = self._newest
        self._settle()
        self._command(self._newest)

    def _settle(self) -> None:
        """Learn when the autopilot answers, and report a change."""
        self._rhythm.settle()
        pattern = self._rhythm.pattern
        if pattern and sorted(pattern) != sorted(self._reported_pattern):
            self._reported_pattern = pattern
            self._went_on_at = -math.inf
            between = "" if pattern == EVERY_TICK else "; the ticks between are not waited for"
            self.get_logger().info(f"{self._session.peer} answers {self._rhythm}{between}")

    # --- from the autopilot

    def _use_controls(self) -> None:
        for controls in self._session.commands():
            self._use_control(controls)
        if self._topics.lock_step and self._answer_made is None and self._topics.stamp_ns >= 0:
            if self._ready:
                self._send_state(self._topics.stamp_ns)
            if self._session.booting or (not self._ready and self._session.up):
                self._publish_rest()

    def _use_control(self, controls: ActuatorControls) -> None:
        """Use controls; in lock-step only those that answer the present tick.

        Without lock-step all count as of the newest sample, as clocks may differ.
        """
        self._newest = controls
        if self._topics.lock_step:
            self._rhythm.answered(controls.time_usec)
            if (
                self._answer_made is not None
                or controls.time_usec != self._sent_usec
                or self._sent_ns != self._topics.stamp_ns
            ):
                self._other_time += 1
                return
            self._in_effect = controls
            self._settle()
        if self._topics.stamp_ns >= 0:
            self._command(controls)

    def _command(self, controls: ActuatorControls) -> None:
        now = self._topics.stamp_ns * 1e-9
        self._answer_made = (
            self._mapping.rotor_command(now, controls.controls, self._params),
            self._mapping.wheel_command(now, controls.controls, self._params, controls.armed),
        )
        self._control.publish(*self._answer_made)

    # --- checks and diagnostics

    def _check(self) -> None:
        self._meet_silence()
        self._update_diagnostics()

    @property
    def _waited_s(self) -> float:
        """Wall time since the present tick, if in lock-step it is unanswered; else 0. Unit: s."""
        unanswered = (
            self._topics.lock_step and self._answer_made is None and math.isfinite(self._asked_at)
        )
        return time.monotonic() - self._asked_at if unanswered else 0.0

    def _update_diagnostics(self) -> None:
        session = self._session
        now = time.monotonic()
        waited = self._waited_s
        lock_step = self._topics.lock_step
        simulated = self._topics.simulated

        # texts
        unready = (
            f"{session.peer} is not told anything before imu/data and {self._topics.odometry} "
            "have come"
        )
        late = (
            f"fail-safe: {session.peer} has not answered for {waited:.0f} s, and simulated time "
            "stands"
        )
        if self._unanswered == "resend":
            late += f"; it is told again every {self._answer_timeout:g} s"
        went_on = (
            f"{session.peer} left ticks unanswered for {self._answer_timeout:g} s each: its last "
            "controls acted on"
        )
        learning = f"{session.peer} leaves ticks unanswered: its answer rate is being learned"
        lost = f"no controls for {session.gap:.1f} s; the simulation's fail-safe acts"

        self._diagnostics.set_first(
            [
                (
                    not session.peer,
                    WARN,
                    f"no autopilot has connected ({self._diagnostics.hardware_id}); PX4 connects "
                    "once, so start it again if this node was restarted",
                ),
                (simulated and not self._ready, WARN, unready),
                (
                    not session.up,
                    WARN,
                    f"{session.peer} is connected and does not control yet",
                ),
                (waited > self._answer_timeout + CHECK_PERIOD_S, ERROR, late),
                (now - self._went_on_at < WENT_ON_SHOWN_S, ERROR, went_on),
                (lock_step and not self._rhythm.pattern, WARN, learning),
                (
                    not lock_step and simulated and session.gap > LINK_LOSS_S,
                    ERROR,
                    lost,
                ),
                (True, OK, f"{session.peer} controls"),
            ],
            answers=str(self._rhythm) if lock_step else "",
            other_time=self._other_time,
            went_on=self._went_on,
            sent_again=self._sent_again,
            repeated_ticks=self._topics.repeated,
            **session.counters,
        )
