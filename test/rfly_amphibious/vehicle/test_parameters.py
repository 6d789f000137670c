# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameter files: shipped sets, derived values, and the errors of bad files."""

from __future__ import annotations

import re
from importlib.resources import files

import numpy as np
import pytest

from rfly_amphibious import VehicleParameters
from rfly_amphibious.vehicle.parameters import shipped_parameter_sets
from rfly_common.errors import ConfigError

SCALE = (files("rfly_amphibious") / "data" / "vehicles" / "scale.yaml").read_text(encoding="utf-8")


def changed(pattern, replacement):
    text, count = re.subn(pattern, replacement, SCALE, count=1)
    assert count == 1
    return text


def refusal(text):
    with pytest.raises(ConfigError) as error:
        VehicleParameters.parse(text.encode(), "mine.yaml")
    return str(error.value)


def test_shipped_sets():
    assert shipped_parameter_sets() == ["full", "scale", "scale_quad", "scale_six"]
    quad = VehicleParameters.load("scale_quad")
    assert quad.rotors == 4
    assert quad.rotor_spin == (1, -1, 1, -1)
    assert (quad.max_rotor_speed / quad.hover_speed) ** 2 == pytest.approx(2.0, abs=2e-3)
    expected = [
        [1, -1],
        [1, 1],
        [-1, 1],
        [-1, -1],
    ]
    assert np.sign(quad.rotor_position[:, :2]).tolist() == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "full",
            (-0.005333, 0.6141, 3406.90, 3163.55, -0.337269, -0.336163, 0.324244, 0.324612, 1545.6),
        ),
        (
            "scale",
            (-0.001600, 0.2014, 63.654, 59.910, -0.116285, -0.115973, 0.107905, 0.108009, 32.06),
        ),
    ],
)
def test_derived_values(name, expected):
    p = VehicleParameters.load(name)
    got = (
        p.center_x,
        p.center_height,
        *p.spring_load[[0, 2]],
        *p.hub_position[[0, 2], 2],
        *p.rolling_radius[[0, 2]],
        p.effective_mass,
    )
    assert got == pytest.approx(expected, rel=3e-4)

    full = name == "full"
    inertia = (1118.61, 2408.16, 3094.36, -2.29) if full else (1.731, 2.777, 4.099, -0.004)
    total = p.total_inertia
    assert (
        total[0, 0],
        total[1, 1],
        total[2, 2],
        total[0, 2],
    ) == pytest.approx(inertia, rel=2e-3, abs=5e-4)

    assert p.hanging_strut[[0, 2]] == pytest.approx(
        (-0.10359, -0.10309) if full else (-0.03670, -0.03642), abs=6e-6
    )
    assert p.torque_coefficient == pytest.approx(0.0239316 if full else 3.20843e-5, rel=5e-6)
    assert p.inflow_coefficient == pytest.approx(0.418879 if full else 8.29646e-3, rel=5e-6)


def test_a_file_of_ones_own(tmp_path):
    (tmp_path / "mine.yaml").write_text(changed("track_m: 0.56", "track_m: 0.6"))
    p = VehicleParameters.load(tmp_path / "mine.yaml")
    assert (p.name, p.track) == ("mine", 0.6)
    assert p.replace(track=0.7).track == 0.7


@pytest.mark.parametrize(
    ("pattern", "replacement", "told"),
    [
        (
            "track_m: 0.56",
            "track_m: wide",
            r"mine.yaml:14: chassis.track_m: 'wide', expected a number",
        ),
        (
            "track_m: 0.56",
            "track_m: 0.56\n  trak_m: 0.56",
            r"mine.yaml:15: chassis.trak_m: unknown key; did you mean track_m",
        ),
        ("  track_m: 0.56\n", "", r"mine.yaml:11: chassis: the key track_m is missing"),
        ("body_kg: 19.2", "body_kg: -1", r"mine.yaml:4: mass.body_kg: "),
        (
            "wheels: front ",
            "wheels: middle ",
            r"mine.yaml:17: steering.wheels: 'middle', allowed: front, rear, all, none",
        ),
        ("spin: -1", "spin: 2", r"rotors.layout\[0\].spin"),
        ("xx_kgm2: 1.3", "xx_kgm2: 9.0", r"mine.yaml:7: inertia: principal moments"),
        (
            "max_angle_rad: 0.5",
            "max_angle_rad: 1.19",
            r"mine.yaml:18: steering.max_angle_rad: the turn's centre",
        ),
        (
            "stiffness_npm: 12000.0",
            "stiffness_npm: 900000.0",
            r"tyre.stiffness_npm: too stiff .* 1 ms",
        ),
        (
            "stiffness_npm: 12000.0",
            "stiffness_npm: 500.0",
            r"tyre.stiffness_npm: the static load presses",
        ),
        ("wheels: front ", "wheels: none ", r"steering.max_angle_rad: 0.5, expected 0"),
        ("{azimuth_deg: 90, spin: -1}", "{azimuth_deg: 30, spin: 1}", r""),
        ("version: 1", "version: 2", r"mine.yaml:2: version: "),
        ("lag_s: 0.06", "lag_s: 0.001", r"rotors.lag_s: 0.001 s is too quick"),
    ],
)
def test_bad_values_are_named(pattern, replacement, told):
    text = changed(pattern, replacement)
    if not told:
        VehicleParameters.parse(text.encode(), "mine.yaml")  # lopsided, but it can be commanded
        return
    assert re.search(told, refusal(text)), refusal(text)


def test_rotors_that_cannot_yaw_are_refused():
    assert "cannot command" in refusal(re.sub("spin: -?1", "spin: 1", SCALE))


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"mine.yaml:1: not UTF-8"):
        VehicleParameters.parse(b"\xff", "mine.yaml")
    assert "expected the keys" in refusal("- 1\n")
    with pytest.raises(
        ConfigError, match=r"no shipped set of this name \(full, scale, scale_quad, scale_six\)"
    ):
        VehicleParameters.load(tmp_path / "none.yaml")
    (tmp_path / "big.yaml").write_text("#" * 1_000_001)
    with pytest.raises(ConfigError, match="larger than"):
        VehicleParameters.load(tmp_path / "big.yaml")
