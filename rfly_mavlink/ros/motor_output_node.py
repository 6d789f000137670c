# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""motor_output_node: `cmd/rotors` and `cmd/wheels` as outputs for a real vehicle's motors.

It is a thin shell around MotorModel. It starts disarmed; a safety limit and a dead-man time hold
for every command.
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from rclpy.node import Node
from rfly_suite.msg import MotorOutput as MotorOutputMsg
from rfly_suite.msg import RotorCommand as RotorCommandMsg
from rfly_suite.msg import WheelCommand as WheelCommandMsg
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from rfly_amphibious.ros.command_msgs import msg_to_rotor_command, msg_to_wheel_command
from rfly_amphibious.sensors.sample_messages import JointReader
from rfly_amphibious.sensors.samples import JointSamples
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.motor_output import MotorModel, MotorOutput, MotorParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError, ConfigError, LinkError, SensorMessageError
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer, subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, SENSORS, STATE_OUT
from rfly_mavlink.links.servo_output import OneWay, ServoOutput, check_rate
from rfly_mavlink.links.transport import SerialTransport
from rfly_mavlink.ros.node_parameters import MotorOutputParameters


class MotorOutputNode(Node):
    """Node that publishes `motor_output`, and writes it to a serial line if wanted.

    `~/arm` makes it obey the commands.
    """

    def __init__(self) -> None:
        super().__init__("motor_output_node")
        settings = declare_parameters(self, MotorOutputParameters)
        self._params = VehicleParameters.load(settings.vehicle)
        self._model = MotorModel(
            self._params, MotorParameters.load(settings.motors), settings.max_duty
        )
        self._dead_man = settings.dead_man

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

        self._diagnostics = Diagnostics(self, "motors", settings.device, self._update_diagnostics)
        self._board = OneWay()
        self._losses = 0
        self._line = self._open_line(settings) if settings.device else None
        self._servo = ServoOutput() if settings.device else None

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
        steady_timer(self, 1.0 / settings.rate, self._on_timer)

        limit = f"at most {100 * settings.max_duty:g} % of {self._model.motors.battery_voltage:g} V"
        self.get_logger().info(
            f"vehicle {self._params.name!r}, {limit}; call ~/arm to let it turn the motors"
        )

    def destroy_node(self) -> None:
        """Turn everything off, then end the node."""
        self._disarm("the node ends")
        if self._line is not None:
            self._line.close()
        super().destroy_node()

    def _open_line(self, settings: MotorOutputParameters) -> SerialTransport:
        try:
            check_rate(settings.rate, settings.baud)
            # the newest frame replaces a waiting one: no motor may turn by an old frame
            line = SerialTransport(settings.device, settings.baud, self._board, most_waiting=1)
            line.start()
        except (ConfigError, LinkError) as error:
            raise ConfigError(f"parameters device, baud and rate: {error}") from error
        return line

    # --- commands

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
            self._diagnostics.refuse_message(topic, error)
        else:
            self._heard[topic] = time.monotonic()

    def _on_joint_states(self, message: JointState) -> None:
        try:
            self._joints = self._read_joints(message)
        except SensorMessageError as error:
            self._diagnostics.refuse("refused_joint_states", str(error))
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

    # --- outputs

    def _late(self) -> str:
        """Return the commands that came before, and are older than the dead-man time."""
        now = time.monotonic()
        return " and no ".join(
            topic
            for topic, at in self._heard.items()
            if topic.startswith("cmd/") and now - at > self._dead_man
        )

    def _disarm(self, why: str, *, failed: bool = False) -> None:
        """Turn off at once, then log it."""
        was_armed = self._armed
        self._armed = False
        self._why = why
        self._failed = failed
        self._send_output(self._model.rest)
        if was_armed:
            self.get_logger().warning(f"all motors off: {why}")

    def _on_timer(self) -> None:
        late = self._late()
        if self._armed and (late or self._board.losses != self._losses):
            no_commands = f"dead man: no {late} for {self._dead_man:g} s"
            self._disarm(no_commands if late else "the serial line was lost", failed=True)
            self._update_diagnostics()
        elif self._armed:
            self._send_output(self._model.output(self._rotors, self._wheels, *self._speeds()))
        else:
            self._send_output(self._model.rest)

    def _send_output(self, output: MotorOutput) -> None:
        self._limited = output.limited
        now = self.get_clock().now()
        if self._line is not None and self._servo is not None:
            self._line.send(self._servo.pack(now.nanoseconds * 1e-9, output.pulse))

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
        """Return the speeds (rotors,) and (4,), rad/s, of the newest joint_states.

        They are None if older than the dead-man time.
        """
        if (
            self._joints is None
            or time.monotonic() - self._heard.get("joint_states", -math.inf) > self._dead_man
        ):
            return None, None
        return self._joints.rotor_rate[-1], self._joints.wheel_rate[-1]

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
