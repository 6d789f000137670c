# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The text of a command while it compiles kernels, on a real cache that is empty."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rfly_terrain.height_map.altitude_kernels import altitudes
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.map_files.pixel_kernel import heights_from_pixels

RFLY = [sys.executable, "-c", "from rfly_bringup.cli.entry_point import rfly; rfly()"]
FLIGHT = ("plan", "100,50", "-200,80", "--mode", "fly", "--vehicle-class", "multirotor")
COMPILING = "compiling kernels, once for this version"


def environment(cache):
    return {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TERM": "xterm", "COLUMNS": "120"}


def on_a_terminal(cache, *words):
    """Return what a command shows, and how many kernels the cache held when it first did."""
    ours, theirs = pty.openpty()
    command = subprocess.Popen(
        [*RFLY, *words], stdout=theirs, stderr=theirs, env=environment(cache)
    )
    os.close(theirs)
    shown = b""
    at_first = -1
    with open(ours, "rb", buffering=0) as terminal, command:
        while True:
            try:
                shown += terminal.read(65_536)
            except OSError:  # the command has ended
                break
            if at_first < 0 and COMPILING.encode() in shown:
                at_first = len(list(cache.rglob("*.nbc")))
    assert command.returncode == 0, shown
    return shown.decode(), at_first


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.exhaustive
def test_a_plan_shows_from_the_start_what_share_of_its_kernels_is_compiled(tmp_path):
    shown, at_first = on_a_terminal(tmp_path, "plan", "100,50", "-200,80")
    assert at_first == 0
    shares = [int(share) for share in re.findall(r"(\d+)%", shown.partition("length")[0])]
    assert shares == sorted(shares)
    assert len(set(shares)) > 10
    assert shares[-1] == 100
    # the count that the bar assumes: the last kernel came near the end, and not long before
    assert max(share for share in shares if share < 100) >= 80
    assert "length" in shown
    shown, _ = on_a_terminal(tmp_path, "plan", "100,50", "-200,80")
    assert COMPILING not in shown


@pytest.fixture(scope="module")
def flight(tmp_path_factory):
    """A cache with the kernels of a flight's plan, and what showed while they were compiled."""
    cache = tmp_path_factory.mktemp("flight")
    return cache, *on_a_terminal(cache, *FLIGHT)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_spinner_names_the_kernels_that_its_work_compiles(flight):
    _, shown, at_first = flight
    assert at_first == 0
    assert re.search(rf"planning: {COMPILING}: \d+ so far \(\w+\)", shown)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_one_line_says_it_in_a_log(tmp_path):
    """The cache holds the kernels that the command calls, but for one."""
    HeightMap.load("JacksboroFault").altitude(0.0, 0.0)
    for kernel in (heights_from_pixels, altitudes):
        folder = Path(kernel._cache.cache_path)
        shutil.copytree(folder, tmp_path / "rfly_suite" / "kernels" / folder.name)
    for missing in tmp_path.rglob("heights_from_pixels-*.nbc"):
        missing.unlink()

    for lines in (1, 0):
        ended = subprocess.run(
            [*RFLY, *FLIGHT],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
            timeout=300,
            check=True,
        )
        assert ended.stderr.count(f"rfly: {COMPILING}\n") == lines
        assert ended.stderr.count("\n") == lines
