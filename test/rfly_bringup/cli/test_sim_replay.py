# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim replay`: table, figures, picture, and refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import mistake
from typer.testing import CliRunner

from rfly_bringup.cli.main import app

pytestmark = pytest.mark.needs("mcap_ros2", "matplotlib")

SCENARIO = """version: 1
vehicle: scale
mission:
  items:
    - {mode: waypoint, position_m: [3, 0]}
end: {when: time, time_s: 4}
"""


def rfly(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.exhaustive
def test_from_a_run_to_its_replay(tmp_path: Path):
    """The command says of a run's log what the run itself said of its estimates."""
    scenario = tmp_path / "drive.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    log = tmp_path / "drive.mcap"
    rfly("sim", "run", scenario, "--estimate", "--mcap", log)

    picture = tmp_path / "drive.png"
    said = rfly("sim", "replay", log, "--out", picture)
    assert picture.stat().st_size > 20_000
    for row in ("gps_position", "height", "/ground_truth/odom, as recorded", "model on wheels"):
        assert row in said

    figures = json.loads(rfly("sim", "replay", log, "--json"))
    assert figures["duration_s"] == pytest.approx(4.0, abs=0.01)
    assert figures["innovations"]["height"]["readings"] > 100
    assert figures["errors"]["position_outside_95"] <= 1.0
    assert figures["model"]["on wheels"]["windows"] >= 4


def test_what_is_no_recording_ends_with_one_line(tmp_path, monkeypatch, capsys):
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"x" * 100)
    line = mistake(["sim", "replay", str(broken)], monkeypatch, capsys)
    assert "no MCAP file: its first bytes differ" in line
    line = mistake(["sim", "replay", str(tmp_path / "none.mcap")], monkeypatch, capsys)
    assert "none.mcap" in line
    topics = tmp_path / "topics.yaml"
    topics.write_text("version: 1\ntopics: {lidar: /scan}\n", encoding="utf-8")
    words = ["sim", "replay", str(broken), "--topics", str(topics)]
    assert "topics.yaml:2" in mistake(words, monkeypatch, capsys)
