# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Signal storms: bad ends are seen, and a few nodes and commands end well."""

from __future__ import annotations

import random
import signal
import sys

import pytest

from attacks import signals
from attacks.signals import COMMAND_CODES, NODE_CODES, Storm, Target, attack_once, judge

NODE = Target("node", list, NODE_CODES)
COMMAND = Target("command", list, COMMAND_CODES)


def program(text):
    """A target that runs a piece of Python."""
    return Target(
        "program",
        lambda folder, ports: [sys.executable, "-S", "-u", "-c", text],
        COMMAND_CODES,
    )


def test_a_good_end_is_not_reported():
    assert judge(NODE, 0, "a line", owned=True) == []
    assert judge(COMMAND, 130, "a line", owned=True) == []


@pytest.mark.parametrize(
    ("target", "code", "output", "owned", "told"),
    [
        (NODE, 130, "", True, "exit code 130"),
        (COMMAND, -15, "", True, "exit code -15"),
        (COMMAND, None, "", True, "had not ended after 60 s"),
        (
            COMMAND,
            130,
            "a\nTraceback (most recent call last):\nKeyboardInterrupt\n",
            True,
            "Traceback",
        ),
        (
            COMMAND,
            1,
            'Traceback …:\n  File "/a/rfly_bringup/cli/main.py", line 3\n',
            False,
            "Traceback",
        ),
    ],
)
def test_a_bad_end_is_reported(target, code, output, owned, told):
    assert [wrong for wrong in judge(target, code, output, owned) if wrong.startswith(told)]


@pytest.mark.parametrize("code", [-2, -15, 1])
def test_before_its_first_instruction_a_process_is_pythons(code):
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/env/lib/rfly_suite/terrain_node", line 3\n'
        "KeyboardInterrupt\n"
    )
    assert judge(NODE, code, trace, owned=False) == []


def test_a_storm_repeats_with_its_seed():
    first, again = (
        [signals.storm(random.Random(5), number, NODE.kinds) for number in range(10)]
        for _ in range(2)
    )
    assert first == again
    assert {one.first for one in first} == {signal.SIGINT, signal.SIGTERM}
    assert first[9].after_s == 0.0
    assert any(one.more for one in first)


DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); n = 0\nwhile True: n += 1"
)
PARENT = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'], "
    "start_new_session=True)\n"
    "while True: time.sleep(0.01)"
)


@pytest.mark.exhaustive
def test_a_process_that_ignores_a_signal_is_found_and_killed(monkeypatch):
    monkeypatch.setattr(signals, "GIVEN_UP_S", 0.5)
    outcome = attack_once(program(DEAF), Storm(2.0, signal.SIGTERM, ()), {}, set())
    assert "had not ended" in outcome.wrong


def test_a_process_that_leaves_a_child_is_found(monkeypatch):
    monkeypatch.setattr(signals, "LEFT_BEHIND_S", 0.5)
    outcome = attack_once(program(PARENT), Storm(2.0, signal.SIGTERM, ()), {}, set())
    assert "left -S -c behind" in outcome.wrong


@pytest.mark.ros
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", signals.ATTACKS)
def test_nodes_and_commands_end_well(name):
    result = signals.ATTACKS[name](random.Random(3), signals.SHORT_TRIES)
    assert result.tried >= 8
    assert result.failures == ()
