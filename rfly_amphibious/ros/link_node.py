"""link_node: a controller outside, by frames over UDP or TCP, in place of the control nodes.

A thin shell around LinkSession and Perception. docs/model, section 12.2.
"""

from __future__ import annotations

import math
import time

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rfly_suite.msg import RotorCommand as RotorCommandMsg
from rfly_suite.msg import WheelCommand as WheelCommandMsg
from sensor_msgs.msg import NavSatFix

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_amphibious.links.frames import SUPPLIES_CHASSIS, SUPPLIES_ROTORS, GpsReport
from rfly_amphibious.links.perception import Perception
from rfly_amphibious.links.session import CONTROLLER_PORT, LINK_LOSS_S, PORT, Command, LinkSession, LockStep
from rfly_amphibious.links.transport import TcpTransport, UdpTransport
from rfly_amphibious.ros.amphibious_msgs import rotor_command_to_msg, wheel_command_to_msg
from rfly_amphibious.ros.perception_msgs import PerceptionTopics
from rfly_amphibious.sensors.samples import GpsSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError, LinkError
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.parameters import declare
from rfly_common.ros.qos import COMMANDS
from rfly_common.ros.run_loop import run

LOOK_EVERY_S = 0.1


class LinkNode(Node):
    """Sends what the sensors say, publishes what the controller commands."""

    def __init__(self) -> None:
        super().__init__("link_node")
        self._params = VehicleParameters.load(
            declare(self, "vehicle", "scale", "parameter set of the vehicle: a shipped name or a YAML file")
        )
        transport = declare(self, "transport", "udp", "udp, or tcp: a server of one connection", choices=("udp", "tcp"))
        bind = declare(self, "bind", "127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
        port = declare(self, "port", PORT, "to listen on; 0: the system chooses", low=0, high=65535)
        host = declare(self, "controller_host", "127.0.0.1", "IPv4 address of the controller (udp)")
        to_port = declare(
            self,
            "controller_port",
            CONTROLLER_PORT,
            "of the controller (udp); 0: from where it sends",
            low=0,
            high=65535,
        )
        self._where = f"{transport} {bind}:{port}"
        self._diagnostics = Diagnostics(self, "link", self._where, self._say)
        self._perception = Perception(self._params)
        self._rotors = publisher(self, RotorCommandMsg, "cmd/rotors", COMMANDS)
        self._wheels = publisher(self, WheelCommandMsg, "cmd/wheels", COMMANDS)
        self._step, self._answers = LockStep(), dict[type, Command]()
        self._stamp_ns = -1
        self._state_at = -math.inf
        self._ready = False
        self._session = LinkSession(
            self._params,
            lambda handler: (
                UdpTransport(bind, port, host, to_port, handler)
                if transport == "udp"
                else TcpTransport(bind, port, handler)
            ),
            self._wake,
        )
        self._topics = PerceptionTopics(self, self._perception, self._diagnostics, self._answer, self._send_gps)
        try:
            self._session.start()
        except LinkError as error:
            raise ConfigError(f"parameters bind and port: {error}") from error
        self._where = self._diagnostics.hardware_id = f"{transport} {bind}:{self._session.port}"
        self.get_logger().info(f"listening for a controller on {self._where}")
        self.create_timer(LOOK_EVERY_S, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._say()

    def destroy_node(self) -> None:
        """Ends the link first."""
        self._session.close()
        super().destroy_node()

    # --- to the controller

    def _answer(self, stamp_ns: int) -> None:
        """A tick, or in free-running an IMU message, is there: tell the controller."""
        repeated, self._stamp_ns = stamp_ns == self._stamp_ns, stamp_ns
        now = stamp_ns * 1e-9
        self._state_at, self._ready = time.monotonic(), self._perception.ready(now)
        if not self._topics.lock_step:
            if self._ready:
                self._session.send(self._perception.report(now))
            return
        if not repeated:
            self._answers.clear()
        self._step.ask(now)
        for command in self._answers.values():
            self._publish(command)
        if self._step.complete(self._session.supplies):
            return
        if self._ready:
            self._session.send(self._perception.report(now), lock_step=True)
        else:
            self._rest()

    def _rest(self) -> None:
        """Before the sensors have spoken there is nothing to control: what the controller supplies rests, braked."""
        now, supplies = self._stamp_ns * 1e-9, self._session.supplies
        if self._step.complete(supplies):
            return
        if supplies & SUPPLIES_ROTORS:
            self._take_answer(RotorCommand(now, np.zeros(self._params.rotors)))
        if supplies & SUPPLIES_CHASSIS:
            self._take_answer(WheelCommand(now, brake_torque=np.full(4, self._params.max_brake_torque)))

    def _send_gps(self, given: GpsSamples, fix: NavSatFix) -> None:
        latitude, longitude, altitude = given.geodetic[-1]
        horizontal, vertical = (math.sqrt(max(fix.position_covariance[k], 0.0)) for k in (0, 8))
        report = GpsReport(
            float(given.time[-1]), latitude, longitude, altitude, given.velocity[-1], horizontal, vertical
        )
        self._session.send(report, lock_step=self._topics.lock_step)

    # --- from the controller

    def _wake(self) -> None:
        """In the link's thread."""
        executor = self.executor
        if executor is not None:  # before the node spins, and when it ends
            executor.create_task(self._take)

    def _take(self) -> None:
        for command in self._session.commands():
            if not self._topics.lock_step:
                self._publish(command)
            elif self._ready:
                self._take_answer(command)

    def _take_answer(self, command: Command) -> None:
        if self._step.takes(command):
            self._answers[type(command)] = command
            self._publish(command)

    def _publish(self, command: Command) -> None:
        if isinstance(command, RotorCommand):
            self._rotors.publish(rotor_command_to_msg(command))
        else:
            self._wheels.publish(wheel_command_to_msg(command))

    # --- what is to be told

    def _look(self) -> None:
        if (
            self._topics.lock_step and self._stamp_ns >= 0 and not self._ready
        ):  # who supplies what may have become known meanwhile
            self._rest()
        self._take()
        self._say()

    def _say(self) -> None:
        status, counters = self._session.status, self._session.counters
        supplied = [
            name for bit, name in ((SUPPLIES_ROTORS, "rotors"), (SUPPLIES_CHASSIS, "chassis")) if status.supplies & bit
        ]
        level, text = OK, f"{status.peer} supplies {' and '.join(supplied)}"
        overdue = self._step.overdue_s(status.supplies) if self._topics.lock_step else 0.0
        simulated = time.monotonic() - self._state_at < 1.0
        if not status.peer or not supplied:
            who = f"{status.peer} supplies nothing" if status.peer else "no controller has spoken yet"
            level, text = WARN, f"{who} ({self._where})"
        elif simulated and not self._ready:
            level, text = WARN, f"{text}; not told anything before imu/data and {self._topics.odometry} have come"
        elif overdue:
            level = ERROR
            text = f"fail-safe: {status.peer} has not answered for {overdue:.0f} s, and simulated time stands"
        elif not self._topics.lock_step and simulated and status.gap > LINK_LOSS_S:
            silence = f"for {status.gap:.1f} s" if math.isfinite(status.gap) else "yet"
            level, text = ERROR, f"link loss: no command of {status.peer} {silence}; the simulation's fail-safe acts"
        if counters["refused"] and level == OK and status.gap > LINK_LOSS_S:
            level, text = WARN, f"commands are refused: {self._session.last_refused}"
        self._diagnostics.set(
            level,
            text,
            age_ms=f"{1e3 * status.age:.2f}",
            jitter_ms=f"{1e3 * status.jitter:.2f}",
            other_time=self._step.other_time,
            repeated_ticks=self._topics.repeated,
            last_refused=self._session.last_refused,
            **counters,
        )


def main() -> None:
    """Entry point of the executable `link_node`."""
    run(LinkNode, often=True)
