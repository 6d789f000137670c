# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The fuzz program of the map reader, with some thousand files in every run.

`make attack AREAS=files` has others.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("fuzz_terrain.py")


def fuzz(count: int) -> dict[str, int]:
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[2])}
    command = [sys.executable, str(PROGRAM), str(count)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stdout
    return {
        what: int(number) for number, what in re.findall(r"(\d+) (map|Terrain\w+)", result.stdout)
    }


def test_only_maps_and_typed_errors_come_out():
    """And the files are neither all refused nor all accepted, which would test nothing."""
    count = 3_000
    outcomes = fuzz(count)
    assert sum(outcomes.values()) == count
    assert outcomes["map"] > count / 20
    assert outcomes["TerrainFormatError"] > count / 3
