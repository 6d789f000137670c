# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""link_node: an external controller, by frames over UDP or TCP, in place of the control nodes.

It is a thin shell around LinkSession and Perception. See docs/model, section 12.2.
"""

from __future__ import annotations

import math

from rclpy.node import Node
from sensor_msgs.msg import NavSatFix

from rfly_amphibious.sensors.samples import GpsSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.parameters import declare_parameters
from rfly_mavlink.links.link_frames import SUPPLIES_CHASSIS, SUPPLIES_ROTORS, GpsReport
from rfly_mavlink.links.perception import Perception
from rfly_mavlink.links.session import LINK_LOSS_S, Command, LinkSession, LockStep
from rfly_mavlink.links.transport import (
    Handler,
    SerialTransport,
    TcpTransport,
    Transport,
    UdpTransport,
)
from rfly_mavlink.ros.external_control_topics import ExternalControl, PerceptionTopics
from rfly_mavlink.ros.node_parameters import LinkParameters, PerceptionParameters

_SUPPLIED = {SUPPLIES_ROTORS: "rotors", SUPPLIES_CHASSIS: "chassis"}


def _transport(given: LinkParameters, handler: Handler) -> Transport:
    """Return the transport of the parameters."""
    if given.transport == "serial":
        return SerialTransport(given.device, given.baud, handler)
    if given.transport == "tcp":
        return TcpTransport(given.bind, given.port, handler)
    return UdpTransport(
        given.bind, given.port, given.controller_host, given.controller_port, handler
    )


class LinkNode(Node):
    """Node that sends the sensors' state, and publishes the controller's commands."""

    def __init__(self) -> None:
        super().__init__("link_node")
        settings = declare_parameters(self, LinkParameters)
        params = VehicleParameters.load(settings.vehicle)
        address = (
            f"serial {settings.device}"
            if settings.transport == "serial"
            else f"{settings.transport} {settings.bind}"
        )

        self._diagnostics = Diagnostics(self, "link", address, self._update_diagnostics)
        self._perception = Perception(params)
        self._control = ExternalControl(self, params, self._diagnostics, self._use_commands)

        self._step = LockStep()
        self._answers = dict[type, Command]()
        self._ready = False

        self._session = LinkSession(
            params, lambda handler: _transport(settings, handler), self._control.wake
        )
        perception = declare_parameters(self, PerceptionParameters)
        self._topics = PerceptionTopics(
            self, self._perception, self._diagnostics, perception, self._answer, self._send_gps
        )

        self._control.start(self._session, "a controller", self._check)
        self._update_diagnostics()

    def destroy_node(self) -> None:
        """End the link, then the node."""
        self._session.close()
        super().destroy_node()

    # --- to the controller

    def _answer(self, stamp_ns: int, again: bool) -> None:
        """Send the state of a tick, or without lock-step of a new IMU message."""
        now = stamp_ns * 1e-9
        self._ready = self._perception.ready(now)

        if not self._topics.lock_step:
            if self._ready:
                self._session.send(self._perception.report(now))
            return

        if not again:
            self._answers.clear()
        self._step.ask(now)
        self._control.publish(*self._answers.values())
        if self._step.complete(self._session.supplies):
            return
        if self._ready:
            self._session.send(self._perception.report(now), lock_step=True)
        else:
            self._publish_rest()

    def _publish_rest(self) -> None:
        """Publish rest and brakes in place of the controller until the sensors have readings."""
        supplies = self._session.supplies
        if self._step.complete(supplies):
            return

        rotors, wheels = self._control.rest(self._topics.stamp_ns)
        if supplies & SUPPLIES_ROTORS:
            self._accept(rotors)
        if supplies & SUPPLIES_CHASSIS:
            self._accept(wheels)

    def _send_gps(self, given: GpsSamples, fix: NavSatFix) -> None:
        latitude, longitude, altitude = given.geodetic[-1]
        horizontal, vertical = (math.sqrt(max(fix.position_covariance[k], 0.0)) for k in (0, 8))
        report = GpsReport(
            float(given.time[-1]),
            latitude,
            longitude,
            altitude,
            given.velocity[-1],
            horizontal,
            vertical,
        )
        self._session.send(report, lock_step=self._topics.lock_step)

    # --- from the controller

    def _use_commands(self) -> None:
        for command in self._session.commands():
            if not self._topics.lock_step:
                self._control.publish(command)
            elif self._ready:
                self._accept(command)

    def _accept(self, command: Command) -> None:
        if self._step.takes(command):
            self._answers[type(command)] = command
            self._control.publish(command)

    # --- checks and diagnostics

    def _check(self) -> None:
        # the controller may have said meanwhile what it supplies
        if self._topics.lock_step and self._topics.stamp_ns >= 0 and not self._ready:
            self._publish_rest()
        self._use_commands()
        self._update_diagnostics()

    def _update_diagnostics(self) -> None:
        session = self._session

        counters = self._session.counters
        peer = session.peer
        supplies = session.supplies

        gap = session.gap
        supplied = [name for bit, name in _SUPPLIED.items() if supplies & bit]
        told = f"{peer} supplies {' and '.join(supplied)}"
        lock_step = self._topics.lock_step
        simulated = self._topics.simulated

        # texts
        overdue = self._step.overdue_s(supplies) if lock_step else 0.0
        silent = gap > LINK_LOSS_S
        who = f"{peer} supplies nothing" if peer else "no controller has spoken yet"
        unready = f"{told}; not told anything before imu/data and {self._topics.odometry} have come"
        late = f"fail-safe: {peer} has not answered for {overdue:.0f} s, and simulated time stands"

        silence = f"for {gap:.1f} s" if math.isfinite(gap) else "yet"
        lost = f"link loss: no command of {peer} {silence}; the simulation's fail-safe acts"
        self._diagnostics.set_first(
            [
                (not peer or not supplied, WARN, f"{who} ({self._diagnostics.hardware_id})"),
                (simulated and not self._ready, WARN, unready),
                (overdue, ERROR, late),
                (not lock_step and simulated and silent, ERROR, lost),
                (
                    counters["refused"] and silent,
                    WARN,
                    f"commands are refused: {session.last_refused}",
                ),
                (True, OK, told),
            ],
            age_ms=f"{1e3 * session.age:.2f}",
            jitter_ms=f"{1e3 * session.jitter:.2f}",
            other_time=self._step.other_time,
            repeated_ticks=self._topics.repeated,
            last_refused=session.last_refused,
            **counters,
        )
