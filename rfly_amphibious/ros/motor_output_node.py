"""motor_output_node: what `cmd/rotors` and `cmd/wheels` mean for the motors of a real vehicle.

A thin shell around MotorModel. Disarmed at first; a safety limit and a dead-man time hold whatever
is commanded.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import IO

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rfly_suite.msg import MotorOutput as MotorOutputMsg
from rfly_suite.msg import RotorCommand as RotorCommandMsg
from rfly_suite.msg import WheelCommand as WheelCommandMsg
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_amphibious.control.motor_output import (
    MotorModel,
    MotorOutput,
    MotorParameters,
)
from rfly_amphibious.links.servo_output import OneWay, ServoOutput, check_rate
from rfly_amphibious.links.transport import SerialTransport
from rfly_amphibious.ros.amphibious_msgs import (
    JointReader,
    msg_to_rotor_command,
    msg_to_wheel_command,
)
from rfly_amphibious.ros.node_parameters import MotorOutputParameters
from rfly_amphibious.sensors.samples import JointSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError, ConfigError, LinkError, SensorMessageError
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, SENSORS, STATE_OUT
from rfly_common.ros.run_loop import run


class MotorOutputNode(Node):
    """`motor_output`, and where it is asked for a serial line and a file; `~/arm` makes it heed the
    commands.
    """

    def __init__(self) -> None:
        super().__init__("motor_output_node")
        given = declare_parameters(self, MotorOutputParameters)
        self._params = VehicleParameters.load(given.vehicle)
        self._model = MotorModel(self._params, MotorParameters.load(given.motors), given.max_duty)
        self._dead_man = given.dead_man
        self._rotors: RotorCommand | None = None
        self._wheels: WheelCommand | None = None
        self._joints: JointSamples | None = None
        self._heard: dict[str, float] = {}
        self._armed = False
        self._limited = 0
        self._why = "~/arm has not been called"
        self._failed = False
        """True if a fault has disarmed the motors: no commands, or the serial line was lost."""
        self._read_joints = JointReader(self._params)
        self._diagnostics = Diagnostics(self, "motors", given.device, self._update_diagnostics)
        self._at_end = ExitStack()
        self._board = OneWay()
        self._losses = 0
        self._file: IO[str] | None = None
        self._line = self._open_line(given) if given.device else None
        self._servo = ServoOutput() if given.device else None
        if given.file:
            self._file = self._open_file(given.file)
        self._publisher = publisher(self, MotorOutputMsg, "motor_output", STATE_OUT)
        subscription(
            self,
            RotorCommandMsg,
            "cmd/rotors",
            partial(self._on_command, "cmd/rotors"),
            COMMANDS,
        )
        subscription(
            self,
            WheelCommandMsg,
            "cmd/wheels",
            partial(self._on_command, "cmd/wheels"),
            COMMANDS,
        )
        subscription(self, JointState, "joint_states", self._on_joint_states, SENSORS)
        self.create_service(SetBool, "~/arm", self._serve_arm)
        self.create_timer(
            1.0 / given.rate,
            self._put_out,
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )
        limit = f"at most {100 * given.max_duty:g} % of {self._model.motors.battery_voltage:g} V"
        self.get_logger().info(
            f"vehicle {self._params.name!r}, {limit}; call ~/arm to let it turn the motors"
        )

    def destroy_node(self) -> None:
        """Everything off first."""
        self._disarm("the node ends")
        if self._line is not None:
            self._line.close()
        with suppress(OSError):  # told when it was written
            self._at_end.close()
        super().destroy_node()

    def _open_line(self, given: MotorOutputParameters) -> SerialTransport:
        try:
            check_rate(given.rate, given.baud)
            # the newest frame replaces what waits: an old one may turn no motor
            line = SerialTransport(given.device, given.baud, self._board, most_waiting=1)
            line.start()
        except (ConfigError, LinkError) as error:
            raise ConfigError(f"parameters device, baud and rate: {error}") from error
        return line

    def _open_file(self, path: str) -> IO[str]:
        try:
            file = self._at_end.enter_context(open(path, "x", encoding="utf-8", buffering=1))  # noqa: SIM115
        except OSError as error:
            raise ConfigError(f"parameter file: {path}: {error.strerror}") from error
        rotors = [f"rotor_{k + 1}" for k in range(self._params.rotors)]
        motors = [*rotors, *(f"wheel_{wheel}" for wheel in self._params.wheels)]
        pulses = [f"{name}_us" for name in (*motors, "steering", "brake")]
        file.write(
            ",".join(["time_s", "armed", *(f"{name}_duty" for name in motors), *pulses]) + "\n"
        )
        return file

    # --- what is commanded

    def _on_command(self, topic: str, message: RotorCommandMsg | WheelCommandMsg) -> None:
        now = self.get_clock().now().nanoseconds * 1e-9
        try:
            if topic == "cmd/rotors":
                rotors = msg_to_rotor_command(message, now)
                rotors.check(self._params)
                self._rotors = rotors
            else:
                wheels = msg_to_wheel_command(message, now, len(self._params.wheels))
                wheels.check(self._params)
                self._wheels = wheels
        except CommandError as error:
            self._diagnostics.count(f"refused_{topic.replace('/', '_')}")
            self.get_logger().warning(f"{topic} refused: {error}", throttle_duration_sec=1.0)
        else:
            self._heard[topic] = time.monotonic()

    def _on_joint_states(self, message: JointState) -> None:
        try:
            self._joints = self._read_joints(message)
        except SensorMessageError as error:
            self._diagnostics.count("refused_joint_states")
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)
        else:
            self._heard["joint_states"] = time.monotonic()

    def _serve_arm(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        late = self._late()
        commands = [topic for topic in self._heard if topic.startswith("cmd/")]
        if not request.data:
            self._disarm("disarmed by ~/arm")
        elif self._line is not None and not self._line.peer:
            response.message = f"the serial line {self._diagnostics.hardware_id} is gone"
            return response
        elif not commands or late:
            response.message = (
                f"no {late or 'cmd/rotors and no cmd/wheels'} within the last {self._dead_man:g} s"
            )
            return response
        else:
            self._armed = True
            self._losses = self._board.losses
            self.get_logger().warning(f"armed: the motors obey {' and '.join(commands)}")
        response.success = True
        response.message = "armed" if self._armed else "disarmed"
        self._update_diagnostics()
        return response

    # --- what goes out

    def _late(self) -> str:
        """Commands that came before, and are older than the dead-man time."""
        now = time.monotonic()
        return " and no ".join(
            topic
            for topic, at in self._heard.items()
            if topic.startswith("cmd/") and now - at > self._dead_man
        )

    def _disarm(self, why: str, *, failed: bool = False) -> None:
        """Off at once, and told after that."""
        was_armed = self._armed
        self._armed = False
        self._why = why
        self._failed = failed
        self._give(self._model.rest)
        if was_armed:
            self.get_logger().warning(f"all motors off: {why}")

    def _put_out(self) -> None:
        late = self._late()
        if self._armed and (late or self._board.losses != self._losses):
            no_commands = f"dead man: no {late} for {self._dead_man:g} s"
            self._disarm(no_commands if late else "the serial line was lost", failed=True)
            self._update_diagnostics()
        elif self._armed:
            self._give(self._model.output(self._rotors, self._wheels, *self._speeds()))
        else:
            self._give(self._model.rest)

    def _give(self, output: MotorOutput) -> None:
        self._limited = output.limited
        now = self.get_clock().now()
        seconds = now.nanoseconds * 1e-9
        if self._line is not None and self._servo is not None:
            self._line.send(self._servo.pack(seconds, output.pulse))
        self._write(seconds, output)
        if not self.context.ok():
            return
        message = MotorOutputMsg(
            armed=self._armed,
            voltage=output.voltage.tolist(),
            duty=output.duty.tolist(),
        )
        message.header.stamp = now.to_msg()
        message.pulse_us = np.rint(output.pulse).astype(int).tolist()
        self._publisher.publish(message)

    def _speeds(self) -> tuple[Floats | None, Floats | None]:
        """(rotors,) and (4,) rad/s of the newest joint_states; None where they are older than the
        dead-man time.
        """
        if (
            self._joints is None
            or time.monotonic() - self._heard.get("joint_states", -math.inf) > self._dead_man
        ):
            return None, None
        return self._joints.rotor_rate[-1], self._joints.wheel_rate[-1]

    def _write(self, seconds: float, output: MotorOutput) -> None:
        if self._file is None:
            return
        numbers = [f"{duty:.4f}" for duty in output.duty] + [
            f"{pulse:.0f}" for pulse in output.pulse
        ]
        try:
            self._file.write(",".join([f"{seconds:.6f}", str(int(self._armed)), *numbers]) + "\n")
        except OSError as error:
            self.get_logger().error(
                f"{self._file.name}: {error.strerror}; nothing more is written there"
            )
            self._file = None

    def _update_diagnostics(self) -> None:
        gone = self._line is not None and not self._line.peer
        values = {} if self._line is None else {"send_dropped": self._line.counters["send_dropped"]}
        self._diagnostics.set_first(
            [
                (gone, ERROR, lambda: f"the serial line {self._diagnostics.hardware_id} is gone"),
                (self._failed and not self._armed, ERROR, self._why),
                (not self._armed, OK, f"disarmed: {self._why}"),
                (
                    self._limited,
                    WARN,
                    f"{self._limited} motors are at the limit max_duty",
                ),
                (True, OK, "armed"),
            ],
            armed=self._armed,
            **values,
        )


def main() -> None:
    """Entry point of the executable `motor_output_node`."""
    run(MotorOutputNode)
