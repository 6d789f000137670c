"""The script that draws what lidar and cameras see."""

import re
import subprocess
import sys
from pathlib import Path

import cv2

SCRIPT = Path(__file__).parents[2] / "examples" / "lidar_and_cameras.py"


def run(out, *options):
    command = [sys.executable, str(SCRIPT), "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return int(re.match(r"(\d+) points of 57600 beams", done.stdout)[1])


def test_draws_a_picture_and_fog_takes_points(tmp_path):
    clear = run(tmp_path / "clear.png")
    assert 25_000 < clear < 57_600
    assert run(tmp_path / "fog.png", "--visibility", "15") < 0.9 * clear
    pictures = [cv2.imread(str(tmp_path / name)) for name in ("clear.png", "fog.png")]
    assert pictures[0].shape == pictures[1].shape
    assert (pictures[0] != pictures[1]).mean() > 0.1
