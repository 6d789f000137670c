"""mavlink_hil_node: an autopilot that speaks MAVLink HIL, such as PX4, in place of the control nodes.

A thin shell around HilSession, HilMessages, ControlMapping and Perception.
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
from rfly_amphibious.links.mavlink_hil import ControlMapping, HilMessages, accuracies
from rfly_amphibious.links.mavlink_hil_session import PORT, ActuatorControls, HilSession
from rfly_amphibious.links.perception import Perception
from rfly_amphibious.links.session import ANSWER_WITHIN_S, LINK_LOSS_S
from rfly_amphibious.ros.amphibious_msgs import rotor_command_to_msg, wheel_command_to_msg
from rfly_amphibious.ros.perception_msgs import PerceptionTopics
from rfly_amphibious.sensors.samples import GpsSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError, LinkError
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, GeoPoint, geo_point
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.parameters import declare, declare_floats
from rfly_common.ros.qos import COMMANDS
from rfly_common.ros.run_loop import run
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import LatestTerrain

LOOK_EVERY_S = 0.1
SUPPLIES = ("both", "rotors", "chassis")


class MavlinkHilNode(Node):
    """Sends HIL_SENSOR, HIL_GPS and HIL_STATE_QUATERNION, publishes what HIL_ACTUATOR_CONTROLS means."""

    def __init__(self) -> None:
        super().__init__("mavlink_hil_node")
        self._params = VehicleParameters.load(
            declare(self, "vehicle", "scale", "parameter set of the vehicle: a shipped name or a YAML file")
        )
        bind = declare(self, "bind", "127.0.0.1", "IPv4 address of this machine to listen on, 0.0.0.0 for all")
        port = declare(self, "port", PORT, "TCP; 4560 + instance for PX4; 0: the system chooses", low=0, high=65535)
        supplies = declare(self, "supplies", "both", "what the autopilot commands", choices=SUPPLIES)
        self._has_rotors, self._has_chassis = supplies != "chassis", supplies != "rotors"
        self._mapping = self._declare_mapping()
        origin = declare_floats(
            self,
            "geo_origin",
            "latitude, longitude (deg), altitude (m) of the world's origin; default: of the simulation",
        )
        self._messages = HilMessages(geo_point(origin or DEFAULT_GEO_ORIGIN, "parameter geo_origin"))
        self._ground = None if origin else LatestTerrain(self, self._take_terrain, lambda: None)
        self._diagnostics = Diagnostics(self, "mavlink", f"tcp {bind}:{port}", self._say)
        self._perception = Perception(self._params)
        self._rotors = publisher(self, RotorCommandMsg, "cmd/rotors", COMMANDS)
        self._wheels = publisher(self, WheelCommandMsg, "cmd/wheels", COMMANDS)
        self._stamp_ns = self._sent_ns = -1
        self._sent_to = 0
        self._asked_at = self._state_at = -math.inf
        self._answer_made: tuple[RotorCommand, WheelCommand] | None = None
        self._other_time = 0
        self._ready = False
        self._session = HilSession(self._messages, bind, port, self._wake)
        self._topics = PerceptionTopics(self, self._perception, self._diagnostics, self._answer, self._send_gps)
        try:
            self._session.start()
        except LinkError as error:
            raise ConfigError(f"parameters bind and port: {error}") from error
        self._where = self._diagnostics.hardware_id = f"tcp {bind}:{self._session.port}"
        self.get_logger().info(f"listening for an autopilot on {self._where}")
        if self._ground is not None:
            self._ground.start()
        self.create_timer(LOOK_EVERY_S, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._say()

    def _declare_mapping(self) -> ControlMapping:
        usual = ControlMapping.default(self._params.rotors)
        rotors: list[int] = list(self.declare_parameter("rotor_controls", list(usual.rotors)).value or ())
        mapping = ControlMapping(
            rotors,
            *(
                declare(self, f"{name}_control", getattr(usual, name), f"{text}; -1: none", low=-1, high=15)
                for name, text in (("steering", "-1 … 1"), ("drive", "-1 … 1"), ("brake", "0 … 1"))
            ),
        )
        try:
            mapping.check(self._params)
        except ConfigError as error:
            raise ConfigError(f"parameters of controls: {error}") from None
        return mapping

    def destroy_node(self) -> None:
        """Ends the session first."""
        self._session.close()
        super().destroy_node()

    def _take_terrain(self, _terrain: HeightMap, geo_origin: GeoPoint) -> None:
        self._messages.geo_origin = geo_origin

    # --- to the autopilot

    def _answer(self, stamp_ns: int) -> None:
        """A tick, or in free-running an IMU message, is there: tell the autopilot."""
        if stamp_ns != self._stamp_ns:
            self._stamp_ns, self._answer_made = stamp_ns, None
            self._asked_at = time.monotonic()
        self._state_at = time.monotonic()
        if self._topics.lock_step and self._answer_made is not None:
            self._publish(*self._answer_made)  # it was lost on its way
            return
        self._ready = self._perception.ready(stamp_ns * 1e-9)
        if self._ready:
            self._send_state(stamp_ns)
        if self._topics.lock_step and (self._session.booting or (not self._ready and self._session.up)):
            self._rest()

    def _send_state(self, stamp_ns: int) -> None:
        """Once to each autopilot: TCP loses nothing, and time that stands would be news to it."""
        session = self._session
        if not session.peer or (stamp_ns, session.connections) == (self._sent_ns, self._sent_to):
            return
        new = session.connections != self._sent_to or stamp_ns < self._sent_ns
        self._sent_ns, self._sent_to = stamp_ns, session.connections
        usec = max(stamp_ns, 0) // 1000
        state = self._messages.state(usec, self._perception)
        session.send(state, self._messages.sensors(usec, self._perception, reset=new))
        self._perception.fresh.clear()

    def _send_gps(self, given: GpsSamples, fix: NavSatFix) -> None:
        usec = max(round(float(given.time[-1]) * 1e6), 0)
        self._session.send(self._messages.gps(usec, given, *accuracies(fix.position_covariance)))

    def _rest(self) -> None:
        """Nobody controls yet: what the autopilot will command rests, braked."""
        now = self._stamp_ns * 1e-9
        brakes = np.full(4, self._params.max_brake_torque)
        rest = RotorCommand(now, np.zeros(self._params.rotors)), WheelCommand(now, brake_torque=brakes)
        self._answer_made = rest
        self._publish(*rest)

    # --- from the autopilot

    def _wake(self) -> None:
        """In the session's thread."""
        executor = self.executor
        if executor is not None:  # before the node spins, and when it ends
            executor.create_task(self._take)

    def _take(self) -> None:
        for controls in self._session.commands():
            self._obey(controls)
        if self._topics.lock_step and self._answer_made is None and self._stamp_ns >= 0:
            if self._ready:
                self._send_state(self._stamp_ns)
            if self._session.booting or (not self._ready and self._session.up):
                self._rest()

    def _obey(self, controls: ActuatorControls) -> None:
        """In lock-step what answers the present tick; free-running all, as of the newest sample: clocks may differ."""
        if self._topics.lock_step and (
            self._answer_made is not None
            or controls.time_usec != self._sent_ns // 1000
            or self._sent_ns != self._stamp_ns
        ):
            self._other_time += 1
            return
        if self._stamp_ns < 0:
            return
        now = self._stamp_ns * 1e-9
        self._answer_made = (
            self._mapping.rotor_command(now, controls.controls, self._params),
            self._mapping.wheel_command(now, controls.controls, self._params),
        )
        self._publish(*self._answer_made)

    def _publish(self, rotors: RotorCommand, wheels: WheelCommand) -> None:
        if self._has_rotors:
            self._rotors.publish(rotor_command_to_msg(rotors))
        if self._has_chassis:
            self._wheels.publish(wheel_command_to_msg(wheels))

    # --- what is to be told

    def _look(self) -> None:
        self._take()
        self._say()

    def _say(self) -> None:
        session, now = self._session, time.monotonic()
        waited = now - self._asked_at if self._answer_made is None and self._topics.lock_step else 0.0
        level, text = OK, f"{session.peer} controls"
        if not session.peer:
            level, text = WARN, f"no autopilot has connected ({self._where})"
        elif now - self._state_at < 1.0 and not self._ready:
            level, text = (
                WARN,
                f"{session.peer} is not told anything before imu/data and {self._topics.odometry} have come",
            )
        elif not session.up:
            level, text = WARN, f"{session.peer} is connected and does not control yet"
        elif math.isfinite(waited) and waited > ANSWER_WITHIN_S:
            level = ERROR
            text = f"fail-safe: {session.peer} has not answered for {waited:.0f} s, and simulated time stands"
        elif not self._topics.lock_step and now - self._state_at < 1.0 and session.gap > LINK_LOSS_S:
            level, text = ERROR, f"no controls for {session.gap:.1f} s; the simulation's fail-safe acts"
        self._diagnostics.set(
            level, text, other_time=self._other_time, repeated_ticks=self._topics.repeated, **session.counters
        )


def main() -> None:
    """Entry point of the executable `mavlink_hil_node`."""
    run(MavlinkHilNode, often=True)
