# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Conventions of the repository: no results in its root, and the table of REPs.

Each line of docs/extending/standards.md that claims something names tests that exist.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending" / "standards.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]


def test_every_rep_is_there_and_every_claim_names_a_test():
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in ROWS]
    assert {number for number, *_ in cells} == {"103", "105", "117", "118", "120", "145", "155"}
    without = [number for number, _, _, tests in cells if not tests]
    assert without == ["155"], "of people, whom nothing here perceives"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]+\.py::\w+)`", "\n".join(ROWS)))))
def test_each_named_test_exists(name):
    file, function = name.split("::")
    tree = ast.parse((ROOT / "test" / file).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_no_command_has_left_its_result_in_the_root():
    """Commands such as `rfly terrain traversable` write MAP-….png into the current folder."""
    results = {".png", ".pdf", ".svg", ".html", ".csv", ".mcap", ".tif", ".npy", ".npz", ".ply"}
    left = [file.name for file in ROOT.iterdir() if file.suffix.lower() in results]
    assert left == []
