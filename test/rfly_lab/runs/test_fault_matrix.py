# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fault matrix: its cases, its table that goes on after an interruption, and how it is judged."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest
from fault_matrix_page import matrix_page
from marks import exhaustively

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_bringup.cli.main import main
from rfly_common.errors import ConfigError
from rfly_lab.runs import fault_matrix
from rfly_lab.runs.fault_matrix import (
    CaseResult,
    MatrixTable,
    all_cases,
    chosen_cases,
    fly_case,
    missing_runs,
    read_matrix,
)
from rfly_lab.runs.fault_verdicts import verdicts_of

GOOD = CaseResult(
    part="gps",
    kind="off",
    mode="flight",
    seed=0,
    fault="gps is off",
    reaction="LAND, SPOOL_DOWN",
    named="gps is silent",
    named_after_s=0.5,
    outcome="reached",
    sink_mps=0.5,
    across_mps=0.25,
    above_m=0.3,
    nees_95=12.0,
    said_lost=False,
    ending="stands, as it should",
)
OTHER = replace(GOOD, kind="biased", fault="gps is biased (position): 30 0 0")


def test_the_vehicle_can_have_every_fault_of_the_matrix():
    cases = all_cases()
    assert len({case.key for case in cases}) == len(cases)
    params = VehicleParameters.load("scale")
    for case in cases:
        case.fault.check(params)
    assert {case.phase.value for case in cases} == {"take-off", "flight", "landing", "drive"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((["gsp"], [], []), "part"),
        (([], ["broken"], []), "kind"),
        (([], [], ["hover"]), "mode"),
        ((["steering"], [], ["flight"]), "no case of the matrix"),
    ],
)
def test_words_that_no_case_has_are_refused(words, text):
    with pytest.raises(ConfigError, match=text):
        chosen_cases(*words)


@pytest.mark.parametrize("cut", [1, 4, 40])
def test_a_last_row_that_was_cut_off_does_not_count(tmp_path, cut):
    """A full disk ends a row anywhere, also within its last cell."""
    path = tmp_path / "faults.csv"
    with MatrixTable(path) as table:
        table.add(GOOD)
        table.add(OTHER)
    path.write_text(path.read_text(encoding="utf-8")[:-cut], encoding="utf-8")
    assert read_matrix(path) == [GOOD]


def test_an_interrupted_table_goes_on_where_it_was(tmp_path):
    path = tmp_path / "faults.csv"
    with MatrixTable(path) as table:
        table.add(replace(OTHER, seed=1))
        table.add(GOOD)
        table.add(OTHER)
        cut_off = path.read_text(encoding="utf-8") + "gps,off,fli"
    whole = read_matrix(path)
    assert whole == [GOOD, OTHER, replace(OTHER, seed=1)]

    path.write_text(cut_off, encoding="utf-8")
    cases = [case for case in chosen_cases(["gps"], (), ["flight"]) if case.key[1] in "off biased"]
    with MatrixTable(path) as table:
        runs = [(case.key[1], seed) for case, seed in missing_runs(cases, 3, table)]
    assert runs == [("off", 1), ("off", 2), ("biased", 2)]
    assert read_matrix(path) == whole


@pytest.mark.parametrize("text", ["", "run,scenario\n0,hop\n", "\x00"])
def test_another_file_is_no_matrix(tmp_path, text):
    path = tmp_path / "faults.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="no table of rfly sim faults"):
        MatrixTable(path)


def test_a_device_is_not_read_as_a_table(tmp_path):
    table = tmp_path / "zero.csv"
    table.symlink_to("/dev/zero")
    with pytest.raises(OSError, match="expected a regular file"):
        MatrixTable(table)


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, set()),
        ({"named_after_s": 2.0, "sink_mps": 1.19, "across_mps": 0.99, "above_m": 4.9}, set()),
        ({"named_after_s": 2.1}, {"named"}),
        ({"named": "", "named_after_s": math.nan}, {"named"}),
        ({"outcome": "landed"}, set()),
        ({"outcome": "lost", "sink_mps": math.nan}, {"outcome"}),
        ({"sink_mps": 1.2, "across_mps": 1.0}, {"sink", "across"}),
        ({"above_m": 5.0}, {"above"}),
        ({"nees_95": 50.0}, {"nees"}),
        ({"nees_95": math.nan}, {"nees"}),
        ({"nees_95": 900.0, "said_lost": True}, set()),
    ],
)
def test_one_seed_beyond_a_goal_misses_it(changes, missed):
    rows = [GOOD, replace(GOOD, seed=1, **changes), replace(GOOD, seed=2)]
    verdicts = verdicts_of(rows)
    assert {name for name, each in verdicts.items() if not each.is_met} == missed


@pytest.mark.parametrize(
    ("part", "kind", "mode", "changes", "texts"),
    [
        ("height", "biased", "landing", {"named_after_s": math.nan}, {"named": "not to be told"}),
        ("height", "biased", "flight", {"named_after_s": 0.7}, {"named": "0.70"}),
        (
            "battery",
            "off",
            "flight",
            {"outcome": "lost", "sink_mps": 6.3, "across_mps": 1.44},
            {"outcome": "1 lost (no help)", "sink": "6.30", "across": "1.44"},
        ),
    ],
)
def test_what_cannot_be_told_or_helped_is_no_goal(part, kind, mode, changes, texts):
    row = replace(GOOD, part=part, kind=kind, mode=mode, **changes)
    verdicts = verdicts_of([row])
    assert all(each.is_met for each in verdicts.values())
    assert {name: verdicts[name].text for name in texts} == texts


def test_the_page_tells_what_made_it_and_what_is_missed():
    bad = replace(GOOD, seed=1, named="", named_after_s=math.nan, across_mps=1.5)
    page = matrix_page([GOOD, bad, OTHER], "rfly sim faults --seeds 2")
    assert "Made by `rfly sim faults --seeds 2`: 2 cases over 1 to 2 seeds" in page
    assert "1 case misses a goal" in page
    row, other = (line for line in page.splitlines() if line.startswith("| `gps`"))
    assert "**0.50 (1 of 2) missed**" in row
    assert "| 2 reached | 0.50 | **1.50 missed** |" in row
    assert "(position): 30 0 0" in other
    assert "missed" not in other


@pytest.mark.parametrize(
    ("phase", "end_time", "seed"),
    [
        ("drive", 6, 0),
        *(exhaustively("drive", 16, seed) for seed in (2, 4)),
        *(exhaustively("flight", 16, seed) for seed in (1, 3)),
    ],
)
def test_a_link_that_loses_nine_of_ten_commands_is_named(phase, end_time, seed, monkeypatch):
    """A gap of 0.5 s came after up to 8.2 s, or never."""
    shorter = fault_matrix.DRIVEN.replace("time_s: 16", f"time_s: {end_time}")
    monkeypatch.setattr(fault_matrix, "DRIVEN", shorter)
    [case] = chosen_cases(["link"], ["intermittent"], [phase])
    result = fly_case(case, seed)
    assert result.named in (
        "the link loses many motion commands",
        "the link brings no motion commands in time",
    )
    assert result.named_after_s < 2.0
    assert result.outcome == "reached" or end_time == 6


def test_the_command_drives_writes_and_goes_on(tmp_path, monkeypatch, capsys):
    table = tmp_path / "faults.csv"
    words = ["--part", "steering", "--kind", "stuck", "--seeds", "1", "--jobs", "1", "--out"]
    shorter = fault_matrix.DRIVEN.replace("time_s: 16", "time_s: 6")
    monkeypatch.setattr(fault_matrix, "DRIVEN", shorter)

    def command(*more):
        monkeypatch.setattr(sys, "argv", ["rfly", "sim", "faults", *words, str(table), *more])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), capsys.readouterr().out

    code, out = command()
    (result,) = read_matrix(table)
    assert code == 0, out
    assert result.named.startswith("the steering is")
    assert result.named_after_s < 2.0
    assert result.outcome == "landed"
    assert "1 case, 1 run; 0 cases miss a goal" in out
    row = table.read_bytes()

    monkeypatch.setattr(fault_matrix, "fly_case", None)
    assert command()[0] == 0
    assert table.read_bytes() == row
