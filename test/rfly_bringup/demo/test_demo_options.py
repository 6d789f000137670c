# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The demo's own options, and what is wrong with them in one line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing

import pytest
from node_harness import PATIENCE, wait_until


def run_demo(*arguments, **environment):
    command = [sys.executable, "-m", "rfly_bringup.demo", *arguments]
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.ros
def test_help_is_help():
    ended = run_demo("--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(option in ended.stdout for option in ("--map", "--fleet", "--host", "--duration"))


STOPPED_BEFORE = """
import signal
from rich.console import Console
from rfly_bringup.demo.demo import Demo
from rfly_bringup.runner import up
from rfly_bringup.runner.supervisor import Supervisor

started = []
Supervisor._start = lambda self, name, command: started.append(name)
up.compile_for_nodes = lambda executables, avoidance: signal.raise_signal(signal.SIGINT)
Demo(Console(), {}).run(None)
print("started", started)
"""


@pytest.mark.ros
def test_ctrl_c_while_kernels_are_compiled_starts_no_node_and_waits_for_none(domain_id):
    command = [sys.executable, "-c", STOPPED_BEFORE]
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain_id)}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (0, ["started []"]), ended.stderr


def test_datagrams_of_other_programs_are_left_out(monkeypatch):
    """One that has sent before the demo's bridge starts, with the demo's own ids; and other
    vehicles, later.
    """
    from rfly_bringup.demo import demo
    from rfly_ue_bridge.codec.state_datagrams import encode_pose

    monkeypatch.setattr(demo, "WINDOW_PORT", 0)
    watch = demo.DatagramWatch({1, 2})
    with closing(watch), ExitStack() as stack:
        other, bridge = (
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)
        )

        def send(by, id, north, heard):
            by.sendto(
                encode_pose(id, 3, (north, 0.0, 0.0), (0.0, 0.0, 0.0)), ("127.0.0.1", watch.port)
            )
            wait_until(lambda: watch.total + watch.foreign >= heard)

        send(other, 1, 100.0, 1)
        watch.begin()
        send(bridge, 1, 7.0, 2)
        send(other, 1, 100.0, 3)
        send(bridge, 99, 100.0, 4)
        assert {id: track.position_ned[0] for id, track in watch.tracks.items()} == {1: 7.0}
        assert (watch.total, watch.foreign) == (1, 3)


@pytest.mark.ros
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--map", "nowhere"], "map 'nowhere' not found"),
        (["--fleet", "nowhere.yaml"], "nowhere.yaml"),
        (["--host", "no such host"], "host 'no such host': no IPv4 address"),
    ],
    ids=["map", "fleet", "host"],
)
def test_what_does_not_exist_is_one_line_before_anything_starts(arguments, told):
    ended = run_demo(*arguments)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert ended.stderr.startswith("demo: ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.ros
def test_a_duration_that_is_no_number_is_refused():
    ended = run_demo(DURATION="ten")
    assert ended.returncode == 2
    assert "invalid float value: 'ten'" in ended.stderr
