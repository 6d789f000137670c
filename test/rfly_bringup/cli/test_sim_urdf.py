# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim urdf`: the text of the library, to a file or stdout; mistakes in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rfly_amphibious.description.urdf import vehicle_urdf
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_bringup.cli.main import main


@pytest.fixture
def rfly(tmp_path, monkeypatch, capsys):
    """Runs the command; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rfly", "sim", "urdf", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr()
        return int(end.value.code or 0), out.out, out.err

    return run


def test_stdout_and_file(rfly):
    scale = vehicle_urdf(VehicleParameters.load("scale"))
    assert rfly() == (0, scale, "")
    assert rfly("full", "--output", "car.urdf", "--prefix", "car/", "--mesh", "rotor=r.stl") == (
        0,
        "car.urdf\n",
        "",
    )

    made = Path("car.urdf").read_text(encoding="utf-8")
    assert made == vehicle_urdf(VehicleParameters.load("full"), "car/", {"rotor": "r.stl"})
    assert (
        rfly("-o", "car.urdf")[2]
        == "rfly: car.urdf exists; choose another name or add --overwrite\n"
    )
    assert rfly("-o", "car.urdf", "--overwrite")[0] == 0
    assert Path("car.urdf").read_text(encoding="utf-8") == scale


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["huge"], "huge"),
        (["--mesh", "body"], "--mesh body: expected PART=FILE"),
        (["--mesh", "wing=a.dae"], "mesh of 'wing': known are body, wheel, rotor"),
        (["--output", "no/where.urdf"], "no/where.urdf"),
    ],
)
def test_mistakes(rfly, words, text):
    code, out, err = rfly(*words)
    assert (code, out) == (2, "")
    assert text in err
