"""flight_control_node: a thin shell around the flight controller; owner of the mode.

It hears sensors and estimates, never the truth, and answers each imu/data with a cmd/rotors of the same stamp.
"""

from __future__ import annotations

import time

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rfly_suite.msg import RotorCommand, SimulationTick
from sensor_msgs.msg import Imu, JointState, Range
from std_msgs.msg import Bool, Float64MultiArray, String

from rfly_amphibious.control.flight_controller import COMMAND_TIMEOUT, WORDS, FlightController
from rfly_amphibious.control.modes import Mode
from rfly_amphibious.ros import amphibious_msgs as convert
from rfly_amphibious.ros.control_topics import (
    GAINS,
    REFUSED_SHOWN_S,
    Estimates,
    MotionCommands,
    Ticks,
    declare_vehicle,
)
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters, shipped_sensor_sets
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import CommandError, SensorMessageError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare
from rfly_common.ros.qos import COMMANDS, LATCHED, sensor_qos
from rfly_common.ros.run_loop import run
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns

DELAY = 0.02
"""s, through ROS, where the simulation does not wait"""
MODE_PERIOD_S = 0.5
LONGEST_STEP = 0.1
IN_THE_AIR = (Mode.TAKEOFF, Mode.FLIGHT, Mode.LAND, Mode.SPOOL_DOWN, Mode.ABORT)


class FlightControlNode(Node):
    """`mode` and `cmd/rotors` out; words, motion commands, samples and estimates in.

    A kind of its own is `betaflight_node`, with another computer.
    """

    def __init__(self, name: str = "flight_control_node", vehicle: str = "scale") -> None:
        super().__init__(name)
        self._name: str = declare(
            self, "vehicle_name", self.get_namespace().strip("/") or "amphibious", "prefix of the vehicle's frames"
        )
        lock_step = declare(self, "lock_step", False, "answer each tick of the simulation, which waits for it")
        params = declare_vehicle(self, tuple(GAINS), vehicle)
        sensors = declare(self, "sensors", "", "sensor set: a shipped name or a YAML file (default: the vehicle's)")
        if not sensors:
            sensors = params.name if params.name in shipped_sensor_sets() else "scale"
        delay = declare(
            self,
            "delay",
            0.0 if lock_step else DELAY,
            "s from a sample to the moment when its command acts; the attitude loop is made slower by it",
            low=0.0,
            high=1.0,
        )
        timeout = declare(
            self,
            "command_timeout",
            COMMAND_TIMEOUT,
            "s of silence, after which a motion command is lost: hover 2 s, then land",
            low=0.05,
            high=3600.0,
        )
        self._flight = self._computer(params, SensorParameters.load(sensors), delay, timeout)
        self._joints = convert.JointReader(params)
        self._diagnostics = Diagnostics(self, "flight", self._name, self._say)
        self._mode: Mode | None = None
        self._last_ns = -1
        self._answer: RotorCommand | None = None
        self._answered = 0
        self._refused, self._refused_at = "", -REFUSED_SHOWN_S
        self._modes = publisher(self, String, "mode", LATCHED)
        self._rotors = publisher(self, RotorCommand, "cmd/rotors", COMMANDS)
        self._ticks: Ticks | None = None
        if lock_step:
            watched = (SimulationTick.IMU, SimulationTick.JOINTS, SimulationTick.HEIGHT, SimulationTick.WHEEL_LOADS)
            self._ticks = Ticks(self, watched, self._compute, self._send, self._begin_anew)
        qos = sensor_qos(lock_step)
        subscription(self, Imu, "imu/data", self._take_imu, qos)
        subscription(self, JointState, "joint_states", self._take_joints, qos)
        subscription(self, Range, "height_above_ground", self._take_height, qos)
        subscription(self, Float64MultiArray, "wheel_loads", self._take_loads, qos)
        heard = None if self._ticks is None else self._ticks.gate.answered
        self._estimates = Estimates(self, self._diagnostics, lock_step, heard)
        self._commands = MotionCommands(
            self, self._diagnostics, self._name, velocity=self._flight.set_velocity, pose=self._flight.set_target
        )
        subscription(self, String, "cmd/mode", self._take_word, COMMANDS)
        subscription(self, Bool, "failsafe", self._take_failsafe, LATCHED)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(MODE_PERIOD_S, self._tell_mode, clock=steady)
        self._tell_mode()
        self._say()
        frequency = self._flight.attitude_frequency
        self.get_logger().info(f"{self._name}: vehicle {params.name!r}, attitude loop at {frequency:.2f} rad/s")

    def _computer(
        self, params: VehicleParameters, sensors: SensorParameters, delay: float, timeout: float
    ) -> FlightController:
        return FlightController(params, sensors, delay=delay, command_timeout=timeout)

    # --- what is asked

    def _take_word(self, message: String) -> None:
        try:
            why_not = self._flight.request(message.data)
        except CommandError as error:
            why_not = str(error)
        if why_not:
            self._refused, self._refused_at = f"cmd/mode {message.data!r} refused: {why_not}", time.monotonic()
            self._diagnostics.count("refused_modes" if message.data in WORDS else "unknown_modes")
            self.get_logger().warning(self._refused, throttle_duration_sec=1.0)
        self._tell_change()
        self._say()

    def _take_failsafe(self, message: Bool) -> None:
        self._flight.failsafe(message.data)
        self._tell_change()
        self._say()

    # --- what is sensed

    def _take_imu(self, message: Imu) -> None:
        stamp_ns = stamp_to_ns(message.header.stamp)
        if stamp_ns < self._last_ns - round(convert.WENT_BACK_S * 1e9):
            self._begin_anew()
        last = self._last_ns
        self._last_ns = max(last, stamp_ns)
        try:
            self._flight.sense(SensorSamples(imu=convert.imu_samples(message)))
        except SensorMessageError as error:
            self._refuse("imu/data", error)
        if self._ticks is not None:
            self._ticks.gate.heard(SimulationTick.IMU)
        elif last < stamp_ns:
            self._compute(stamp_ns, 0.0 if last < 0 else min((stamp_ns - last) * 1e-9, LONGEST_STEP))

    def _take_joints(self, message: JointState) -> None:
        try:
            self._flight.sense(SensorSamples(joints=self._joints(message)))
        except SensorMessageError as error:
            self._refuse("joint_states", error)
        if self._ticks is not None:
            self._ticks.gate.heard(SimulationTick.JOINTS)

    def _take_height(self, message: Range) -> None:
        try:
            self._flight.sense(SensorSamples(height=convert.height_samples(message)))
        except SensorMessageError as error:
            self._refuse("height_above_ground", error)
        if self._ticks is not None:
            self._ticks.gate.heard(SimulationTick.HEIGHT)

    def _take_loads(self, message: Float64MultiArray) -> None:
        try:
            self._flight.sense(SensorSamples(wheel_loads=convert.wheel_load_samples(message, self._flight.time)))
        except SensorMessageError as error:
            self._refuse("wheel_loads", error)
        if self._ticks is not None:
            self._ticks.gate.heard(SimulationTick.WHEEL_LOADS)

    def _refuse(self, topic: str, why: object) -> None:
        self._diagnostics.count(f"refused_{topic.replace('/', '_')}")
        self.get_logger().warning(f"{topic} refused: {why}", throttle_duration_sec=5.0)

    def _begin_anew(self) -> None:
        self.get_logger().warning("the time went back: disarmed, all is forgotten")
        self._diagnostics.count("clock_jumps_back")
        self._flight.reset()
        self._estimates.newest = None
        self._last_ns = -1

    # --- what is answered

    def _compute(self, stamp_ns: int, dt: float) -> None:
        command = self._flight.step(self._estimates.newest, dt)
        self._answer = convert.rotor_command_to_msg(command)
        self._answer.header.stamp = ns_to_stamp(stamp_ns)
        self._answered += 1
        self._tell_change()  # before the command: whoever waits for it knows the mode by then
        self._send()

    def _send(self) -> None:
        if self._answer is not None:
            self._rotors.publish(self._answer)

    def _tell_change(self) -> None:
        mode = self._flight.mode
        if mode is not self._mode:
            self.get_logger().info(f"{mode.value}: {self._flight.reason}" if self._flight.reason else mode.value)
            self._tell_mode()
            self._say()

    def _tell_mode(self) -> None:
        self._mode = self._flight.mode
        self._modes.publish(String(data=self._mode.value))

    def _say(self) -> None:
        flight = self._flight
        values = {"mode": flight.mode.value, "reason": flight.reason, "answers": self._answered}
        if flight.failed_rotors:
            values["failed_rotors"] = ", ".join(str(rotor + 1) for rotor in flight.failed_rotors)
        missing = flight.missing
        if flight.mode is Mode.ABORT:
            self._diagnostics.set(ERROR, f"aborted: {flight.reason}", **values)
        elif missing:
            level = WARN if flight.mode in IN_THE_AIR else STALE
            self._diagnostics.set(level, f"not known: {', '.join(missing)}", **values)
        elif time.monotonic() - self._refused_at < REFUSED_SHOWN_S:
            self._diagnostics.set(WARN, self._refused, **values)
        elif flight.failed_rotors:
            self._diagnostics.set(WARN, f"rotor {values['failed_rotors']} failed", **values)
        else:
            self._diagnostics.set(OK, flight.mode.value, **values)


def main() -> None:
    """Entry point of the executable `flight_control_node`."""
    run(FlightControlNode, often=True)
