# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A benchmark that fails has a row, the others go on, and the page gets the table of the run."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as runner
from benchmarks.harness import Row, markdown_table


def broken():
    yield Row("first", 1.0, 5.0, "a peer", 4.0, agree="equal: all")
    raise RuntimeError("not heard of a_node\nand more")


def sound():
    yield Row("second", 2.0, 1.0, "the goal", 1.0, agree="equal: all", kind="at most")


@pytest.fixture
def benchmarks(monkeypatch):
    for name, rows in (("broken", broken), ("sound", sound)):
        monkeypatch.setitem(sys.modules, f"benchmarks.bench_{name}", SimpleNamespace(rows=rows))


def test_after_a_failure_the_others_go_on(benchmarks, capsys):
    rows = [row for name in ("broken", "sound") for row in runner.rows_of(name)]
    assert [row.verdict for row in rows] == ["met", "failed", "missed"]
    assert "RuntimeError" in capsys.readouterr().err
    assert markdown_table(rows).splitlines()[2:] == [
        "| first | a peer | 5 | ≥ 4 |",
        "| broken | – | failed: RuntimeError: not heard of a_node | – |",
        "| second | the goal | 2 **missed** | ≤ 1 |",
    ]


def test_the_table_replaces_that_of_the_run_before(benchmarks, tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Speed\n{runner.BEGIN}\nold\n{runner.END}\nmore\n")
    runner.write_table(list(runner.rows_of("sound")), "2026-11-28: 0 of 1 met.", page)
    before, table, after = page.read_text().replace(runner.END, runner.BEGIN).split(runner.BEGIN)
    assert (before, after) == ("# Speed\n", "\nmore\n")
    assert "old" not in table
    assert "2026-11-28: 0 of 1 met." in table
    assert "| second | the goal | 2 **missed** | ≤ 1 |" in table


def test_a_page_without_a_place_for_the_table_is_left_alone(tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text("# Speed\n")
    with pytest.raises(SystemExit, match="around the table"):
        runner.write_table([], "", page)
    assert page.read_text() == "# Speed\n"
