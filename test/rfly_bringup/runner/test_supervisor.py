# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The supervisor alone, with small programs in the nodes' place."""

from __future__ import annotations

import os
import sys

import pytest
from node_harness import wait_until

from rfly_bringup.runner.supervisor import Supervisor

NOT_IN_HAND_YET = """
import time
time.sleep(1.0)
from rfly_common import startup
startup.install_handlers()
time.sleep(60.0)
"""


def test_who_is_stopped_before_it_has_its_signals_in_hand_prints_no_trace():
    lines = []
    command = [sys.executable, "-c", NOT_IN_HAND_YET]
    supervisor = Supervisor(
        [("view", command)], lambda name, line: lines.append(line), dict(os.environ)
    )
    supervisor.start()
    process = supervisor.processes["view"]
    supervisor.stop()
    assert (process.returncode, lines) == (0, [])


def test_the_end_of_a_process_is_the_end_of_each_of_its_nodes():
    lines = []
    nodes = {"car/rfly_nodes": ["car/guidance_node", "car/state_estimator_node"]}
    supervisor = Supervisor(
        [("car/rfly_nodes", ["sh", "-c", "kill -SEGV $$"]), ("view", ["sh", "-c", "exit 3"])],
        lambda name, line: lines.append((name, line)),
        dict(os.environ),
        nodes=nodes,
    )
    supervisor.start()
    for process in supervisor.processes.values():
        process.wait()
    supervisor.poll()
    supervisor.stop()

    crash = "signal SIGSEGV"
    ends = [*((node, crash) for node in nodes["car/rfly_nodes"]), ("view", "exit code 3")]
    assert lines == [(node, f"ended by itself with {how}") for node, how in ends]
    assert supervisor.ended_nodes() == [(node, f"had ended with {how}") for node, how in ends]
    assert supervisor.exits == 2


@pytest.mark.parametrize("window", ["echo http://here; exec sleep 60", "exit 3"])
def test_a_bridge_starts_after_its_window_has_spoken_or_ended(window):
    lines = []
    commands = [("bridge", ["echo", "sending"]), ("view", ["sh", "-c", window])]
    supervisor = Supervisor(
        commands,
        lambda name, line: lines.append((name, line)),
        dict(os.environ),
        after={"bridge": "view"},
    )
    supervisor.start()
    wait_until(lambda: ("bridge", "sending") in lines, "the bridge's line")
    supervisor.stop()
    assert lines[-1] == ("bridge", "sending")
    assert len(lines) == 1 + window.startswith("echo")
