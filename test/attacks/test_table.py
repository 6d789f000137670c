# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The table of attacks: what failed is named, and fails the run."""

from __future__ import annotations

import io
import random
import sys
import types

import pytest
from rich.console import Console

from attacks import __main__ as command
from attacks.table import Result, largest, machine_line, print_table


def printed(*results):
    text = io.StringIO()
    print_table(results, Console(file=text, width=160))
    return text.getvalue()


def test_a_row_has_all_that_was_measured_and_nothing_that_was_not():
    text = printed(
        Result("kill -9 of [nodes]", 12, 0, 140.4, 0.127, ()),
        Result("mutated png", 10_000, 3, None, None, ("seed 7: TypeError", "seed 9: MemoryError")),
    )
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in text.splitlines()
        if "│" in line
    ]

    assert rows == [
        ["kill -9 of [nodes]", "12", "0", "140 MB", "0.13 s"],
        ["mutated png", "10,000", "3", "", ""],
    ]
    assert "mutated png: seed 7: TypeError\n" in text
    assert "mutated png: seed 9: MemoryError\n" in text


def test_many_failures_are_cut_and_counted():
    text = printed(Result("png", 99, 8, None, None, tuple(f"try {number}" for number in range(8))))
    assert "png: try 4\n" in text
    assert "png: try 5\n" not in text
    assert "png: and 3 more\n" in text


def test_the_largest_of_what_was_measured():
    assert largest([None, 2.0, 7.5, None]) == 7.5
    assert largest([None]) is None


def test_the_machine_is_named_with_its_load():
    assert " cores, load " in machine_line()


@pytest.fixture
def area(monkeypatch):
    """An area of two attacks: the second fails on odd tries. `drawn` keeps the numbers drawn."""
    module = types.ModuleType("attacks.invented")
    module.drawn = []

    def attack(name, failing):
        def run(rng: random.Random, tries: int) -> Result:
            module.drawn.append(rng.random())
            failed = tries // 2 if failing else 0
            return Result(name, tries, failed, None, None, ("odd",) * failed)

        return run

    module.ATTACKS = {"sound": attack("sound", False), "broken": attack("broken", True)}
    module.TRIES = 8
    module.SHORT_TRIES = 1
    monkeypatch.setitem(sys.modules, "attacks.invented", module)
    monkeypatch.setattr(command, "areas", lambda: ["invented"])
    return module


def test_a_failure_fails_the_run(area, capsys):
    assert command.main([]) == 1
    assert "16 tried, 4 failed, 0 let others wait for too long, seed 1" in capsys.readouterr().out


def test_a_long_stall_fails_the_run_although_nothing_failed(area, capsys):
    slow = Result("slow", 1, 0, None, 2.1, (), most_stall_s=2.0)
    area.ATTACKS = {"slow": lambda rng, tries: slow}
    assert command.main([]) == 1
    assert "1 tried, 0 failed, 1 let others wait for too long" in capsys.readouterr().out


def test_the_short_run_takes_the_short_number(area, capsys):
    assert command.main(["invented", "--short"]) == 0
    assert "2 tried, 0 failed" in capsys.readouterr().out


def test_a_number_of_tries_can_be_given(area, capsys):
    assert command.main(["--tries", "6", "--short"]) == 1
    assert "12 tried, 3 failed" in capsys.readouterr().out


def test_a_share_of_a_full_run_can_be_given(area, capsys):
    command.main(["--share", "0.25"])
    assert "4 tried, 1 failed" in capsys.readouterr().out


def test_a_seed_repeats_what_is_drawn_and_each_attack_has_its_own(area):
    for seed in ("1", "1", "2"):
        command.main(["--seed", seed])
    first = area.drawn[:2]
    again = area.drawn[2:4]
    other = area.drawn[4:]
    assert first == again
    assert len({*first, *other}) == 4


def test_findings_are_printed_although_an_attack_breaks_off(area, capsys):
    def breaks_off(rng, tries):
        raise KeyboardInterrupt

    area.ATTACKS["last"] = breaks_off
    with pytest.raises(KeyboardInterrupt):
        command.main(["--short"])
    assert "sound" in capsys.readouterr().out


def test_an_unknown_area_is_refused_by_name(area, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["inventd"])
    assert "no such area: inventd; known: invented" in capsys.readouterr().err
