# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The Python of docs/howto/without-the-ros2-command.md, typed as it stands while nodes run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from node_harness import PATIENCE

pytestmark = pytest.mark.ros

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "without-the-ros2-command.md"


def test_what_the_page_does_without_the_command(domain_id, tmp_path):
    """Service, latched message, command and parameter of a terrain_node and a bridge, in one
    script.
    """
    from bridge_harness import Window
    from node_harness import NodeProcess

    from rfly_terrain import HeightMap

    blocks = re.findall(
        r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 4
    window = Window()
    to = {"port": str(window.port), "feedback_port": "0"}
    with (
        NodeProcess("terrain_node", domain_id, {"map": "JacksboroFault"}),
        NodeProcess("ue_bridge_node", domain_id, to),
    ):
        script = "\n".join(blocks)
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    terrain = HeightMap.load("JacksboroFault")
    answer, map_line, result = done.stdout.splitlines()
    assert float(re.search(r"altitude=(-?[\d.]+)", answer)[1]) == pytest.approx(
        terrain.altitude(1.5, 2.0)
    )
    assert map_line == f"JacksboroFault {terrain.rows} {terrain.columns}"
    assert "successful=True" in result
    assert any(b"RflyCameraPosAng 0 0 -20 0 -45 0" in datagram for datagram in window.poll())
    window.socket.close()
