# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Output of a node's process besides the node's own: it goes to the log, in one line."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.ros


def test_pythons_warnings_are_lines_of_the_log_and_a_client_that_has_gone_is_none(capfd):
    """rclpy warns of a response that it could not send; Python would print file and line."""
    from rfly_common.ros.run_loop import _log_warning

    _log_warning(
        "failed to send response (timeout): client will not receive response",
        RuntimeWarning,
        "executors.py",
        7,
    )
    _log_warning(DeprecationWarning("old\nand new"), DeprecationWarning, "a.py", 3)
    said = capfd.readouterr()
    assert "failed to send" not in said.err + said.out
    lines = [line for line in (said.err + said.out).splitlines() if "old and new" in line]
    assert len(lines) == 1
    assert lines[0].startswith("[WARN]")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-r", "__ns:=/site-1"], "-r __ns:=/site-1: expected FROM:=TO; names are words of"),
        (["-r", "__node:=a-b"], "-r __node:=a-b: expected FROM:=TO"),
        (["-p", "a=3"], "-p a=3: expected NAME:=VALUE"),
        (["-p", "use_sim_time:='true'"], "use_sim_time"),
        (["--params-file", "/no/such.yaml"], "'/no/such.yaml': No such file"),
        (["--params-file", "{}"], "params.yaml:3: use_sim_time: string, expected true or false"),
        (["--log-level", "loud"], "--log-level loud: "),
        (["--colour"], "unknown words after --ros-args: "),
    ],
)
def test_what_ros_refuses_of_a_command_line_is_one_line_and_exit_code_2(words, told, tmp_path):
    """Not 22 lines of rclpy's trace, and rcl's own two lines before it."""
    params = tmp_path / "params.yaml"
    params.write_text('/**:\n  ros__parameters:\n    use_sim_time: "true"\n', encoding="utf-8")
    node = "import rclpy.node; from rfly_common.ros.run_loop import run; "
    node += "run(lambda: rclpy.node.Node('any'))"
    ended = subprocess.run(
        [sys.executable, "-c", node, "--ros-args", *(word.format(params) for word in words)],
        capture_output=True,
        text=True,
        env={**os.environ, "RCUTILS_COLORIZED_OUTPUT": "0"},
        check=False,
    )
    (line,) = (ended.stdout + ended.stderr).splitlines()
    assert line.startswith("[FATAL]")
    assert told in line
    assert ended.returncode == 2
