# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""motor_output_node over real topics, its serial line a pseudo-terminal whose other end the test
holds.
"""

from __future__ import annotations

import os
import pty
import select

import pytest
from node_harness import PATIENCE

pytestmark = [pytest.mark.ros, pytest.mark.needs("pymavlink")]


class Board:
    """A board at the serial line, which reads with pymavlink; `path`: the line's name."""

    def __init__(self, path):
        from rfly_mavlink.dialect.wire import load_dialect

        self.fd, self.line = pty.openpty()
        self.path = path
        path.symlink_to(os.ttyname(self.line))
        self.reader = load_dialect().MAVLink(None)

    @property
    def newest(self):
        """The newest SERVO_OUTPUT_RAW that has come; None: none since the last look."""
        heard = []
        while select.select([self.fd], [], [], 0.0)[0]:
            heard += self.reader.parse_buffer(os.read(self.fd, 4096)) or []
        outputs = [message for message in heard if message.get_type() == "SERVO_OUTPUT_RAW"]
        return [getattr(outputs[-1], f"servo{k}_raw") for k in range(1, 17)] if outputs else None

    def close(self):
        self.path.unlink()
        os.close(self.line)
        os.close(self.fd)


REST = [1000] * 6 + [1500] * 4 + [1500, 2000] + [0] * 4


def test_commands_turn_motors_only_while_armed_and_fresh(domain_id, tmp_path):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer, diagnostic
    from rfly_suite.msg import MotorOutput, RotorCommand, WheelCommand
    from std_srvs.srv import SetBool

    from rfly_common.ros.qos import COMMANDS, STATE_OUT

    board = Board(tmp_path / "tty")
    parameters = {
        "device": str(board.path),
        "max_duty": "0.5",
        "dead_man": "0.5",
    }
    with NodeProcess("motor_output_node", domain_id, parameters) as node:
        peer = Peer(domain_id)
        try:
            outputs = peer.receive(MotorOutput, "motor_output", STATE_OUT)
            told = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
            rotors = peer.publisher(RotorCommand, "cmd/rotors", COMMANDS)
            wheels = peer.publisher(WheelCommand, "cmd/wheels", COMMANDS)
            peer.spin_until(lambda: outputs and board.newest == REST)
            refused = peer.call(SetBool, "/motor_output_node/arm", data=True)
            assert not refused.success
            assert refused.message == "no cmd/rotors and no cmd/wheels within the last 0.5 s"

            def command():
                # 0.1 of K_t · 100 rad/s and more: 10.5 V of 44.4 V; 350 rad/s would take 0.83 of
                #   it: the limit is 0.5
                rotors.publish(RotorCommand(value=[100.0] * 5 + [350.0]))
                wheels.publish(WheelCommand(steering_angle=-0.5, drive_torque=[4.5, 4.5, 0.0, 0.0]))
                outputs.clear()
                peer.spin_until(lambda: outputs)
                return outputs[-1]

            peer.spin_until(
                lambda: (
                    command()
                    and rotors.get_subscription_count()
                    and wheels.get_subscription_count()
                )
            )
            assert not command().armed
            assert list(command().duty) == [0.0] * 10
            assert peer.call(SetBool, "/motor_output_node/arm", data=True).success
            output = peer.spin_until(lambda: (made := command()).armed and made)
            torque = 3.2085e-5 * 100.0**2  # c_Q of docs/model, Eq. 4.8
            assert output.voltage[0] == pytest.approx(0.05 * (torque / 0.1 + 1.2) + 10.0, abs=1e-3)
            assert output.duty[5] == 0.5
            assert output.voltage[6] == pytest.approx(0.2 * (10.0 + 0.5))
            heard = peer.spin_until(lambda: command() and board.newest)
            assert heard[:12] == list(output.pulse_us)
            assert heard[5] == 1500
            assert heard[10:12] == [1000, 1000]
            # nobody commands any more
            peer.spin_until(lambda: not outputs[-1].armed)
            assert list(outputs[-1].duty) == [0.0] * 10
            peer.spin_until(lambda: board.newest == REST)
            peer.spin_until(
                lambda: "dead man: no cmd/" in (diagnostic(told, "motors") or ("", ""))[1]
            )
            assert diagnostic(told, "motors")[0] == 2
            assert not command().armed  # it stays off until it is armed again
            # the line is pulled out while it is armed, and put back
            peer.spin_until(
                lambda: (
                    command() and peer.call(SetBool, "/motor_output_node/arm", data=True).success
                )
            )
            assert peer.spin_until(lambda: command().armed)
            board.close()
            peer.spin_until(lambda: not command().armed)
            refused = peer.call(SetBool, "/motor_output_node/arm", data=True)
            assert refused.message == f"the serial line {board.path} is gone"
            board = Board(board.path)
            peer.spin_until(lambda: command() and board.newest)
            assert all(command() and board.newest in (None, REST) for _ in range(5))
            peer.spin_until(
                lambda: (diagnostic(told, "motors") or ("", ""))[1] == "the serial line was lost"
            )
        finally:
            peer.close()
        assert node.stop() == 0, node.output
    assert board.newest == REST
    board.close()


def test_a_line_that_is_none_ends_the_start(domain_id, tmp_path):
    from node_harness import NodeProcess

    with NodeProcess("motor_output_node", domain_id, {"device": str(tmp_path / "tty")}) as node:
        node.process.wait(PATIENCE)
        assert node.stop() == 2
        assert (
            f"parameters device, baud and rate: serial line {tmp_path / 'tty'}: No such file"
            in node.output
        )
    with NodeProcess(
        "motor_output_node", domain_id, {"device": "/dev/null", "rate": "500.0"}
    ) as node:
        node.process.wait(PATIENCE)
        assert node.stop() == 2
        assert "rate: 500 Hz, expected at most 94 at 57600 bit/s" in node.output
