# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly plan`: what it prints, draws and writes, and what it says of wrong input."""

from __future__ import annotations

import math
import re
import sys

import cv2
import numpy as np
import pytest

from rfly_bringup.cli.main import main
from rfly_bringup.warm_up import compile_first


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile the kernels beforehand, so that stderr holds what the command itself says."""
    compile_first(["planner"])


def rfly(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["rfly", "plan", *words])
    with pytest.raises(SystemExit) as end:
        main()
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def number(text, key):
    found = re.search(rf"^{key} +([0-9.]+)", text, re.MULTILINE)
    assert found, text
    return float(found[1])


def test_a_driven_plan_is_told_drawn_and_written(monkeypatch, capsys, tmp_path):
    picture = tmp_path / "plan.png"
    way = tmp_path / "way.csv"
    words = [
        "100,50,180",
        "-200,80",
        "--vehicle-class",
        "rover",
        "--out",
        str(picture),
        "--csv",
        str(way),
    ]
    code, out, err = rfly(monkeypatch, capsys, *words)
    assert (code, err) == (0, "")

    points = np.genfromtxt(way, delimiter=",", skip_header=1, usecols=(0, 1, 2, 3))
    assert points[0, :2] == pytest.approx([100, 50])
    assert points[0, 3] == pytest.approx(math.pi)
    assert points[-1, :2] == pytest.approx([-200, 80])

    length = np.linalg.norm(np.diff(points[:, :3], axis=0), axis=1).sum()
    assert number(out, "length") == pytest.approx(length, abs=0.2)
    assert math.hypot(300, 30) <= number(out, "length") < 1.05 * math.hypot(300, 30)

    image = cv2.imread(str(picture))
    assert image.shape[0] > 800

    red = (image[..., 2] > 150) & (image[..., 1] < 60) & (image[..., 0] < 60)
    assert red.sum() > 500  # the path, in both drawings

    code, _, err = rfly(monkeypatch, capsys, *words)
    assert code == 2
    assert "exists" in err


def test_a_start_west_of_the_origin_is_no_option(monkeypatch, capsys):
    """A place that begins with a minus sign is one with and without `--` before it."""
    plans = [
        rfly(monkeypatch, capsys, *words)
        for words in (("-220,80", "-200,80"), ("--", "-220,80", "-200,80"))
    ]
    assert plans[0] == plans[1]
    code, out, err = plans[0]
    assert (code, err) == (0, "")
    assert number(out, "length") == pytest.approx(20.0, abs=0.5)


def test_a_flight(monkeypatch, capsys):
    code, out, _ = rfly(
        monkeypatch,
        capsys,
        "100,50",
        "-200,80",
        "--vehicle-class",
        "multirotor",
        "--mode",
        "fly",
    )
    assert code == 0
    assert number(out, "length") >= math.hypot(300, 30)
    assert "kJ" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["1", "2,3"], "A '1': expected X,Y in metres"),
        (["1,2", "nan,3"], "B 'nan,3': expected X,Y"),
        (["1,2", "3,4,5,6,7"], "expected X,Y"),
        (["1,2", "9999,3"], "the goal (9999, 3) lies off the map"),
        (
            ["-2500,-2500", "2,3"],
            "the start (-2500, -2500) lies on ground that may not be driven on: slopes of 20°",
        ),
        (
            ["1,2", "50,3", "--mode", "fly"],
            "'car' is of the kind ground and cannot fly, expected multirotor, fixed_wing or "
            "land_air",
        ),
        (
            ["1,2", "50,3", "--vehicle-class", "tank"],
            "vehicle class 'tank': there are car, truck",
        ),
        (
            ["1,2", "50,3", "--classes", "no.yaml"],
            "vehicle classes 'no.yaml': No such file",
        ),
        (["1,2", "50,3", "--map", "Nowhere"], "Nowhere"),
        (["1,2", "50,3", "--water-level", "nan"], "--water-level"),
        (["1,2", "50,3", "--out", "plan.docx"], "pictures can be written as"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(words, text, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, err = rfly(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1
