# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Attitude laws by name: the built-in one, and that of the package in examples/attitude_law."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from control_rig import Rig

from rfly_amphibious.simulation.commands import Mode
from rfly_autonomy.control.attitude_controller import GROUP, GeometricLaw, load_attitude_law
from rfly_autonomy.control.flight_controller import FlightController
from rfly_common.errors import ConfigError
from rfly_common.frames import euler_to_quat, rotation_matrix

EXAMPLE = Path(__file__).parents[3] / "examples" / "attitude_law"
FREQUENCY = np.array((5.0, 5.0, 2.0))
STILL = np.zeros(3)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install entry points of the group as pip does; by default those of the example."""

    def install(points=None):
        if points is None:
            project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
            assert f'[project.entry-points."{GROUP}"]' in project
            points = dict(re.findall(r'^(\w+) = "(\w+:\w+)"$', project, re.M))
        info = tmp_path / "tilt_first_law-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tilt-first-law\n")
        lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.syspath_prepend(EXAMPLE)

    return install


def attitude(roll=0.0, pitch=0.0, yaw=0.0):
    return rotation_matrix(euler_to_quat((roll, pitch, yaw)))


def made(name):
    law = load_attitude_law(name)
    law.set_gains(FREQUENCY, 0.7)
    return law


@pytest.mark.parametrize("angle", [0.01, 1.0, 3.0])
def test_the_example_does_not_grow_weak_at_large_angles(installed, angle):
    """Level is wanted: the laws turn back by ω² sin θ and ω² θ; both damp a rate by 2 ζ ω."""
    installed()
    rolled = attitude(roll=angle)
    assert made("geometric").turn(np.eye(3), rolled, STILL) == pytest.approx(
        [-25.0 * math.sin(angle), 0.0, 0.0]
    )
    law = made("tilt_first")
    assert law.turn(np.eye(3), rolled, STILL) == pytest.approx([-25.0 * angle, 0.0, 0.0])
    rates = np.array((0.1, -0.2, 0.3))
    assert law.turn(np.eye(3), np.eye(3), rates) == pytest.approx([-0.7, 1.4, -0.84])


@pytest.mark.parametrize("heading", [0.0, 1.0, -3.0])
def test_the_examples_tilt_does_not_depend_on_the_heading(installed, heading):
    """A body that looks north-west and leans by 0.4 rad rights itself about the same axis."""
    installed()
    leaning = attitude(yaw=2.0) @ attitude(pitch=0.4)
    turn = made("tilt_first").turn(attitude(yaw=2.0 + heading), leaning, STILL)
    assert turn[:2] == pytest.approx([0.0, -25.0 * 0.4], abs=1e-9)
    assert turn[2] == pytest.approx(4.0 * heading)


def test_a_law_of_another_package_flies(installed):
    """It moves by a metre and turns by 40° meanwhile, within a decimetre of its height."""
    installed()
    rig = Rig(airborne=6.0)
    rig.flight = FlightController(
        rig.params, rig.flight.sensors, attitude_law=load_attitude_law("tilt_first")
    )
    rig.flight.logic.mode = Mode.FLIGHT
    rig.flight.attitude_loop.expected[:] = rig.params.hover_speed
    yaw = math.radians(40.0)
    motion = rig.run(3.0, lambda rig: rig.flight.set_target((1.0, 0.0, 6.0), yaw=yaw))
    assert motion.x[-1] == pytest.approx(1.0, abs=0.1)
    assert motion.yaw[-1] == pytest.approx(yaw, abs=0.05)
    assert np.abs(motion.z - 6.0).max() < 0.1


def test_the_law_of_a_controller_is_geometric_unless_another_is_given():
    assert isinstance(load_attitude_law("geometric"), GeometricLaw)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ({}, r"no installed package has it; known are geometric"),
        ({"mine": "tilt_first_law:Missing"}, r"tilt_first_law:Missing: AttributeError"),
        ({"mine": "no_such_module:Law"}, r"no_such_module:Law: ModuleNotFoundError"),
        ({"mine": "builtins:dict"}, r"builtins:dict lacks a method set_gains or turn"),
    ],
)
def test_a_law_that_cannot_be_had_is_named(installed, points, said):
    installed(points)
    with pytest.raises(ConfigError, match=f"attitude_law 'mine': {said}"):
        load_attitude_law("mine")
