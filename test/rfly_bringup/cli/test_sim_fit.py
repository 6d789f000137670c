# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim fit` and `rfly sim modes`: from the manoeuvre that they write to a vehicle's file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_bringup.cli.main import app


def rfly(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
@pytest.mark.needs("mcap_ros2", "matplotlib")
@pytest.mark.exhaustive
def test_from_the_manoeuvre_to_a_vehicle_file(tmp_path: Path):
    """The first 13 s, in which it stands and bounces: mass, struts and lag of a vehicle that the
    fit does not know.
    """
    vehicle = Path(str(tmp_path)) / "hidden.yaml"
    text = (Path(__file__).parents[3] / "rfly_amphibious/data/vehicles/scale.yaml").read_text(
        encoding="utf-8"
    )
    for key, value in (
        ("body_kg", 21.0),
        ("front_stiffness_npm", 1700.0),
        ("bump_damping_nspm", 70.0),
    ):
        text = re.sub(rf"{key}: \S+", f"{key}: {value}", text)
    vehicle.write_text(text.replace("  lag_s: 0.06", "  lag_s: 0.05"), encoding="utf-8")
    excite = tmp_path / "excite.yaml"
    log = tmp_path / "log.mcap"
    found = tmp_path / "found.yaml"
    assert rfly("sim", "fit", "--excite", excite, "--vehicle", "scale").strip() == str(excite)

    short = re.sub(r"time_s: 66.0", "time_s: 13.0", excite.read_text(encoding="utf-8"))
    excite.write_text(short.replace("vehicle: scale", "vehicle: hidden.yaml"), encoding="utf-8")
    rfly("sim", "run", excite, "--estimate", "--sensors", "scale", "--mcap", log)
    said = rfly(
        "sim", "fit", log, "--vehicle", "scale", "--plot", tmp_path / "fit.png", "-o", found
    )
    for note in (
        "note: tyres and I_zz: not enough driving",
        "note: rotors, I_xx and I_yy: 0.0 s of flight",
        "not identified, kept as given: mass.rotor_frame_kg, mass.unsprung_kg, inertia.xx_kgm2",
    ):
        assert note in said
    assert (tmp_path / "fit.png").stat().st_size > 20_000

    params = VehicleParameters.load(str(found))
    assert params.mass == pytest.approx(21.0 + 6.0 + 4.8, rel=1e-3)
    assert params.front_spring == pytest.approx(1700.0, rel=0.01)
    assert params.rear_spring == pytest.approx(1500.0, rel=0.01)
    assert params.bump_damping == pytest.approx(70.0, rel=0.04)
    assert params.rotor_lag == pytest.approx(0.05, rel=0.01)
    assert params.cornering_stiffness_per_rad == 15.0  # as given: nothing said of it


@pytest.mark.needs("mcap_ros2")
def test_either_a_log_or_a_manoeuvre(capsys, monkeypatch, tmp_path):
    from page_commands import run

    assert run(["rfly", "sim", "fit"], monkeypatch, capsys) == (
        2,
        "rfly: expected either LOG or --excite FILE\n",
    )
    log = tmp_path / "log.mcap"
    log.write_bytes(b"no log")
    code, error = run(["rfly", "sim", "fit", str(log)], monkeypatch, capsys)
    assert (code, error.count("\n")) == (2, 1)
    assert "no messages of ROS 2; expected a recording" in error


def test_the_modes_of_a_vehicle(tmp_path):
    said = rfly("sim", "modes", "full", "--plot", tmp_path / "modes.png")
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line.strip()}
    assert rows["heave"][1:4] == ["1.356", "1.313", "0.349"]
    assert rows["roll"][1] == "1.421"
    assert (tmp_path / "modes.png").stat().st_size > 20_000
