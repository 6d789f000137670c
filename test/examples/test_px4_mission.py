# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The mission of examples/px4_mission.py."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("mavsdk")
SCRIPT = Path(__file__).parents[2] / "examples" / "px4_mission.py"


def test_the_square_is_of_20_m():
    """A degree of longitude at 60° north has half the length of one of latitude."""
    items = runpy.run_path(str(SCRIPT))["square"](60.0, 10.0)
    assert [item.command for item in items] == [22, 16, 16, 16, 16, 16, 21]
    assert [item.seq for item in items] == list(range(7))
    assert [item.current for item in items] == [1, 0, 0, 0, 0, 0, 0]
    assert [item.z for item in items] == [10.0] * 6 + [0.0]

    # 20 m are 20 / 111,195 degrees of latitude, 1799e-7
    corner = items[3]
    assert corner.x - 600_000_000 == pytest.approx(1799, abs=1)
    assert corner.y - 100_000_000 == pytest.approx(2 * 1799, abs=1)
    assert (items[-1].x, items[-1].y) == (600_000_000, 100_000_000)
