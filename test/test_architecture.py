"""The layers that the file names promise."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(p.name for p in ROOT.glob("rfly_*") if (p / "__init__.py").is_file())

MAY_IMPORT = {
    "rfly_common": set(),
    "rfly_terrain": {"rfly_common"},
    "rfly_collision": {"rfly_common", "rfly_terrain"},
    "rfly_ue_bridge": {"rfly_common", "rfly_terrain", "rfly_collision"},
    "rfly_trajectory": {"rfly_common", "rfly_terrain"},
    "rfly_amphibious": {"rfly_common", "rfly_terrain", "rfly_trajectory", "rfly_ue_bridge", "rfly_collision"},
    "rfly_bringup": {
        "rfly_common",
        "rfly_terrain",
        "rfly_collision",
        "rfly_ue_bridge",
        "rfly_trajectory",
        "rfly_amphibious",
    },
}


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def is_ros_module(path):
    return path.name.endswith(("_node.py", "_msgs.py")) or path.parts[-2:] == ("rfly_common", "ros.py")


def imported_names(path):
    """Every module that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def is_ros(name):
    top = name.split(".")[0]
    return top in {"rclpy", "rfly_suite", "builtin_interfaces", "rosidl_runtime_py"} or top.endswith("_msgs")


@pytest.mark.parametrize("package", PACKAGES)
def test_only_nodes_and_converters_import_ros(package):
    """`*_node.py`, `*_msgs.py` and `rfly_common/ros.py` import ROS, no other module does."""
    guilty = {
        str(path.relative_to(ROOT)): sorted(filter(is_ros, imported_names(path)))
        for path in modules(package)
        if not is_ros_module(path) and any(map(is_ros, imported_names(path)))
    }
    assert not guilty


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package):
    """A package imports only those beneath it: no cycle, ever."""
    allowed = MAY_IMPORT[package] | {package}
    wrong = {
        (str(path.relative_to(ROOT)), name)
        for path in modules(package)
        for name in imported_names(path)
        if name.split(".")[0].startswith("rfly_") and name.split(".")[0] not in allowed | {"rfly_suite"}
    }
    assert not wrong


def test_every_library_module_imports_without_ros():
    """In a fresh interpreter where rclpy and all message packages cannot be imported."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in modules(package)
        if not is_ros_module(path)
    ]
    program = f"""
import importlib, importlib.abc, sys
sys.path.insert(0, {str(ROOT)!r})

class NoRos(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in ("rclpy", "rfly_suite", "launch", "launch_ros") or top.endswith("_msgs"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoRos())
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # of the extra "view", where that is not installed
        if error.name not in ("viser", "trimesh", "websockets", "PIL") or not name.startswith("rfly_ue_bridge.viewer."):
            raise
print(len({names!r}), "modules")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == f"{len(names)} modules"


def test_packages_import_nothing_heavy():
    """`import rfly_terrain` and its like load neither NumPy nor numba: `rfly --help` answers at once."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {', '.join(PACKAGES)}; import rfly_bringup.cli\n"
        "print([m for m in ('numba', 'scipy', 'matplotlib', 'cv2', 'rclpy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"
