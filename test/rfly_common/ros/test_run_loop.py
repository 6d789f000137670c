# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Output of a node's process besides the node's own: it goes to the log, in one line."""

import os
import subprocess
import sys
import threading

import pytest
from node_harness import PATIENCE

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
    """The log lacks the 22 lines of rclpy's trace, and rcl's own two lines before it."""
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


@pytest.fixture
def alone(domain_id):
    """A node and its executor, which counts the wait sets that it builds."""
    import rclpy
    from rclpy.node import Node

    from rfly_common.ros.run_loop import LoneExecutor

    class Counted(LoneExecutor):
        wait_sets = 0

        def get_nodes(self):
            self.wait_sets += 1
            return super().get_nodes()

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id)
    node = Node("alone", context=context)
    executor = Counted(context=context)
    executor.add_node(node)
    yield node, executor
    executor.remove_node(node)
    node.destroy_node()
    executor.shutdown(timeout_sec=0.5)
    rclpy.try_shutdown(context=context)


def test_a_callback_takes_one_wait_set(alone):
    """rclpy's own executor finds itself woken after a callback, and builds a second one."""
    node, executor = alone
    called = []
    guard = node.create_guard_condition(lambda: called.append(executor.wait_sets))
    idle = []
    for _ in range(5):
        guard.trigger()
        executor.spin_once(timeout_sec=PATIENCE)
        executor.spin_once(timeout_sec=0.01)
        idle.append(executor.wait_sets - called[-1])
    assert len(called) == 5
    assert min(idle) == 1


def test_work_of_another_thread_and_what_waits_for_it_are_done_at_once(alone):
    """No spin lasts as long as its time-out: the test would."""
    from rfly_common.ros.run_loop import in_thread

    node, executor = alone
    answers = []
    begin = threading.Event()

    async def ask(work):
        answers.append(await in_thread(node, work))

    executor.create_task(ask, lambda: begin.wait(PATIENCE))
    executor.create_task(executor.create_task, begin.set)  # made after the turn of tasks
    while not answers:
        executor.spin_once(timeout_sec=2 * PATIENCE)
    assert answers == [True]
    assert begin.is_set()
