# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Odd words on the command line: bad ends are reported, and every command withstands odd lines."""

from __future__ import annotations

import random

import pytest

from attacks import command_line
from attacks.command_line import judge, odd_line

TRACE = "Traceback (most recent call last):\n  File x\nValueError: no\n"


@pytest.mark.parametrize(
    ("code", "stopped", "text", "wrong"),
    [
        (2, False, "rfly: a map: not found\n", None),
        (0, False, "reading\nwriting\n", None),
        (130, True, "", None),
        (130, False, "", "exit code 130"),
        (-11, True, "", "exit code -11"),
        (1, False, TRACE, "Traceback"),
        (2, False, "rfly: a\nb\n", "said 2 lines"),
        (2, False, "", "said 0 lines"),
        (2, False, "usage: rfly\n", "said 1 lines"),
        (2, False, f"rfly: {'9' * 2000}\n", "said a line of 2006 characters"),
        (2, False, "rfly: \x1b[31mred\n", "an escape sequence"),
        (0, False, "a.py:3: RuntimeWarning: overflow\n", "RuntimeWarning"),
    ],
)
def test_a_bad_end_is_reported(code, stopped, text, wrong):
    found = judge(code, stopped, text)
    assert (found == []) if wrong is None else any(wrong in each for each in found), found


def test_every_command_is_tried_and_the_odd_ones_repeat_with_their_seed():
    known = command_line.commands()
    assert known.keys() >= command_line.SENSIBLE.keys()  # of the others it is odd words alone
    assert "--map" in [option.name for option in known["terrain query"]]
    for name, options in known.items():
        first, again = (
            [odd_line(random.Random(n), name, options) for n in range(20)] for _ in range(2)
        )
        assert first == again
        assert all(line[: len(name.split())] == name.split() for line in first)
        assert any(line != [*name.split(), *command_line.SENSIBLE.get(name, ())] for line in first)


def test_no_word_leads_out_of_the_folder():
    """Only folders above can be reached, where nothing can be written over."""
    words = [*command_line.FILES, *command_line.TEXTS]
    assert not [word for word in words if word.startswith("/") and word.strip("/")]


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.exhaustive
def test_commands_withstand_odd_lines(monkeypatch):
    monkeypatch.setattr(command_line, "LASTS_S", 1.5)
    result = command_line.command_lines(random.Random(5), 5)
    assert (result.tried, result.failures) == (5, ())


def test_devices_are_given_to_each_command_that_takes_a_file():
    """One in the place of each file of a sensible line, and in each option that takes a text."""
    lines = command_line.device_lines()
    assert ["mission", "check", "pipe.plan"] in lines
    assert ["mission", "check", "zero.plan"] in lines
    sends = [line for line in lines if line[0] == "send"]
    assert [*["send", *command_line.SENSIBLE["send"]], "--file", "zero.yaml"] in sends
    assert not [line for line in lines if line[0] == "listen"]


@pytest.mark.ros
@pytest.mark.slow
def test_no_command_waits_for_a_device():
    result = command_line.devices(random.Random(6), 8)
    assert (result.tried, result.failures) == (8, ())
