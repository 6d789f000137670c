# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The script that draws what lidar and cameras see."""

import re
import subprocess
import sys
from pathlib import Path

import cv2

SCRIPT = Path(__file__).parents[2] / "examples" / "lidar_and_cameras.py"


def test_draws_a_picture(tmp_path):
    """Fog of 15 m leaves fewer points than the 37,000 of clear air."""
    out = tmp_path / "fog.png"
    command = [sys.executable, str(SCRIPT), "--out", str(out), "--visibility", "15"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert 5_000 < int(re.match(r"(\d+) points of 57600 beams", done.stdout)[1]) < 33_000
    assert cv2.imread(str(out)).std() > 20
