# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim px4-params` and `ardupilot-params`: the library's text in a file, or one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_bringup.cli.main import main
from rfly_mavlink.autopilots.px4_parameters import parameter_text, px4_parameters


@pytest.fixture
def rfly(tmp_path, monkeypatch, capsys):
    """Runs the command; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rfly", "sim", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr()
        return int(end.value.code or 0), out.out, out.err

    return run


def test_the_sensors_are_the_vehicles(rfly):
    assert rfly("px4-params", "car.px4", "--vehicle", "full") == (0, "car.px4\n", "")
    settings = px4_parameters(VehicleParameters.load("full"), SensorParameters.load("full"))
    assert Path("car.px4").read_text("utf-8") == parameter_text(settings, "full", "full")
    assert rfly("px4-params", "car.params", "--vehicle", "full")[0] == 0
    assert "car.px4 exists" in rfly("px4-params", "car.px4")[2]
    assert rfly("ardupilot-params", "quad.parm") == (0, "quad.parm\n", "")
    assert "INS_POS1_X 0.05\n" in Path("quad.parm").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["px4-params", "a.px4", "--vehicle", "huge"], "huge"),
        (["px4-params", "a.px4", "--sensors", "none"], "none"),
        (["ardupilot-params", "a.parm", "--vehicle", "scale"], "none of ArduPilot's frames"),
    ],
)
def test_mistakes_leave_no_file(rfly, words, text):
    code, _, said = rfly(*words)
    assert code == 2
    assert text in said
    assert not Path(words[1]).exists()
