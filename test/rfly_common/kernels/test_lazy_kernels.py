"""numba is imported by the first use of a kernel, and from then on kernels are numba's own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def answer(program):
    """What a Python of its own prints."""
    program = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{program}"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.needs("numba")
def test_modules_of_kernels_do_without_numba_until_one_is_called():
    program = """
import rfly_collision.narrow_phase.pair_kernels
from rfly_trajectory.kernels import motion_kernels
print("numba" in sys.modules, motion_kernels.wheel_arm.__name__)
kept = motion_kernels.wheel_arm
kept(0, 0.2, 0.1, 0.0, 0.0)
print("numba" in sys.modules, type(motion_kernels.wheel_arm).__name__, len(kept.signatures))
"""
    assert answer(program) == ["False", "wheel_arm", "True", "CPUDispatcher", "1"]


@pytest.mark.needs("numba")
def test_a_kernel_that_was_kept_elsewhere_is_called_by_compiled_ones():
    """In a module outside of the suite, which is not looked through."""
    program = """
from rfly_common.kernels.jit import inner_kernel
import numba
@inner_kernel
def double(x):
    return 2.0 * x
assert type(double).__name__ == "LazyKernel"
@numba.njit
def quadruple(x):
    return double(double(x))
print(quadruple(1.5))
"""
    assert answer(program) == ["6.0"]


@pytest.mark.needs("numba")
def test_kernels_come_without_scipy_until_one_needs_its_linear_algebra():
    program = """
from rfly_terrain.warm_up import warm_up
from rfly_trajectory.warm_up import warm_up as warm_up_fleets
warm_up()
warm_up_fleets()
print("numba" in sys.modules, "scipy.linalg" in sys.modules)
import numba, numpy
product = numba.njit(lambda a, b: numpy.dot(a, b))
print(*product(numpy.array([[1.0, 2.0], [3.0, 4.0]]), numpy.eye(2)).flat, "scipy.linalg" in sys.modules)
"""
    assert answer(program) == ["True", "False", "1.0", "2.0", "3.0", "4.0", "True"]


@pytest.mark.ros
@pytest.mark.parametrize(
    "name", ["ue_bridge_node", "flight_control_node", "guidance_node", "link_node"]
)
def test_nodes_without_kernels_import_neither_numba_nor_scipy(name):
    """100 and 40 MB."""
    program = f"""
import importlib
from rfly_bringup.nodes.entry_points import MODULES
importlib.import_module(MODULES[{name!r}])
print(*[m for m in ("rclpy", "numba", "scipy.spatial", "scipy.optimize", "cv2") if m in sys.modules])
"""
    assert answer(program) == ["rclpy"]
