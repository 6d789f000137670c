# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes that run no kernel start without numba, and kernels without SciPy."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def answer(program):
    """Return what a fresh interpreter prints."""
    program = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{program}"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_kernels_come_without_scipy_until_one_needs_its_linear_algebra():
    program = """
from rfly_terrain.warm_up import warm_up
from rfly_trajectory.warm_up import warm_up as warm_up_fleets
warm_up()
warm_up_fleets()
print("numba" in sys.modules, "scipy.linalg" in sys.modules)
import numba, numpy
product = numba.njit(lambda a, b: numpy.dot(a, b))
print(*product(numpy.array([[1.0, 2.0], [3.0, 4.0]]), numpy.eye(2)).flat)
print("scipy.linalg" in sys.modules)
"""

    assert answer(program) == ["True", "False", "1.0", "2.0", "3.0", "4.0", "True"]


@pytest.mark.ros
@pytest.mark.parametrize(
    "name", ["ue_bridge_node", "mission_node", "flight_control_node", "guidance_node", "link_node"]
)
def test_nodes_without_kernels_import_neither_numba_nor_scipy(name):
    """100 and 40 MB."""
    program = f"""
import importlib
from rfly_bringup.nodes.entry_points import MODULES
importlib.import_module(MODULES[{name!r}])
heavy = "rclpy", "numba", "scipy.spatial", "scipy.optimize", "cv2"
print(*[name for name in heavy if name in sys.modules])
"""
    assert answer(program) == ["rclpy"]


@pytest.mark.ros
@pytest.mark.parametrize("name", ["policy_node", "trajectory_node"])
def test_nodes_with_kernels_import_no_scipy(name):
    """It is a third of their start."""
    program = f"""
import importlib
from rfly_bringup.nodes.entry_points import MODULES
importlib.import_module(MODULES[{name!r}])
print(*[name for name in ("numba", "scipy.spatial", "scipy.linalg") if name in sys.modules])
"""
    assert answer(program) == ["numba"]
