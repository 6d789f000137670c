# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The layers that the folders promise.

Packages have one order, rooms have no circles, and ROS is behind one wall.
"""

from __future__ import annotations

import ast
import configparser
import functools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(p.name for p in ROOT.glob("rfly_*") if (p / "__init__.py").is_file())

ORDER = (
    "rfly_common",
    "rfly_terrain",
    "rfly_collision",
    "rfly_ue_bridge",
    "rfly_sensing",
    "rfly_viewer",
    "rfly_trajectory",
    "rfly_missions",
    "rfly_amphibious",
    "rfly_autonomy",
    "rfly_mavlink",
    "rfly_lab",
    "rfly_bringup",
)
"""Packages from the ground up."""

MAY_IMPORT = {package: set(ORDER[:number]) for number, package in enumerate(ORDER)} | {
    # what stands beside others, not on them
    "rfly_sensing": {"rfly_common", "rfly_terrain", "rfly_collision"},
    "rfly_trajectory": {"rfly_common", "rfly_terrain", "rfly_collision"},
    "rfly_missions": {"rfly_common", "rfly_terrain", "rfly_collision", "rfly_trajectory"},
}

LARGEST_ROOT = 12
"""Most modules in a package's root, without `__init__`."""


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def sources(package: str) -> list[Path]:
    """Return the modules, and the stub of the package's root, which names what it loads."""
    return [*modules(package), *sorted((ROOT / package).rglob("*.pyi"))]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room_of(module: str) -> str:
    """Return the folder of a module: `rfly_terrain.files` of `rfly_terrain.map_files.search`."""
    is_room = (ROOT / module.replace(".", "/")).is_dir()
    return module if is_room else module.rpartition(".")[0]


def folder_of(module: str) -> str:
    """Return the folder right below its package: `rfly_terrain.files` of `….files.points`."""
    return ".".join(room_of(module).split(".")[:2])


def module_of(module: str) -> str:
    """Return the module itself."""
    return module


MODULES = {name_of(path) for package in PACKAGES for path in modules(package)}


BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
"""Parts of the syntax tree that may hold an import."""


def is_ros_module(path: Path) -> bool:
    return path.parent.name == "ros" and path.stem not in {
        "__init__",
        "node_parameters",
    }


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Return every module that a file imports when it runs, also inside functions.

    Imports for type checkers only are left out.
    """
    return tuple(_imports_below(ast.parse(path.read_text(encoding="utf-8"))))


def _imports_below(module: ast.Module) -> Iterator[str]:
    """Return the imports among a module's statements, at any depth."""
    nodes: list[ast.AST] = [module]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            nodes.extend(part for part in ast.iter_child_nodes(node) if isinstance(part, BLOCKS))


def is_ros(name: str) -> bool:
    top = name.split(".")[0]
    return top in {
        "rclpy",
        "rfly_suite",
        "builtin_interfaces",
        "rosidl_runtime_py",
    } or top.endswith("_msgs")


@pytest.mark.parametrize("package", PACKAGES)
def test_ros_is_imported_in_its_rooms_only(package):
    """The folders called `ros` import ROS, no other module does."""
    guilty = {
        str(path.relative_to(ROOT)): sorted(filter(is_ros, imports(path)))
        for path in modules(package)
        if not is_ros_module(path) and any(map(is_ros, imports(path)))
    }
    assert not guilty


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package):
    """A package imports only those beneath it: no cycle, ever."""
    allowed = MAY_IMPORT[package] | {package}
    wrong = {
        (str(path.relative_to(ROOT)), name)
        for path in sources(package)
        for name in imports(path)
        if name.split(".")[0].startswith("rfly_")
        and name.split(".")[0] not in allowed | {"rfly_suite"}
    }
    assert not wrong


def arrows(part_of: Callable[[str], str]) -> dict[str, set[str]]:
    """Return the parts that each part of the suite imports."""
    graph = defaultdict(set)
    for package in PACKAGES:
        for path in sources(package):
            here = part_of(name_of(path))
            there = {part_of(name) for name in imports(path) if name in MODULES}
            graph[here] |= there - {here}
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The parts of one circle, or none."""
    done: set[str] = set()

    def walk(room: str, way: list[str]) -> list[str]:
        if room in way:
            return [*way[way.index(room) :], room]
        if room in done:
            return []
        for other in sorted(graph.get(room, ())):
            found = walk(other, [*way, room])
            if found:
                return found
        done.add(room)
        return []

    return next(filter(None, (walk(room, []) for room in sorted(graph))), [])


@pytest.mark.parametrize("part_of", [module_of, room_of, folder_of])
def test_imports_make_no_circles(part_of):
    """Imports inside functions and those of package roots count too."""
    graph = arrows(part_of)
    assert len(graph) > 40
    assert {"rfly_terrain", "rfly_trajectory"} <= graph.keys()
    assert circle(graph) == []


def test_a_circle_would_be_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_package_roots_are_small(package):
    loose = [path.name for path in (ROOT / package).glob("*.py") if path.name != "__init__.py"]
    assert len(loose) <= LARGEST_ROOT, (
        "more modules than a newcomer takes in at a glance: give them rooms"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_says_what_it_is_for(package):
    for folder in {path.parent for path in modules(package)}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))), (
            folder
        )


def executables() -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "cmake" / "nodes.cfg", encoding="utf-8")
    return set(
        re.findall(
            r"^\s*(\w+)\s*=",
            parser["options.entry_points"]["console_scripts"],
            re.MULTILINE,
        )
    )


def test_node_modules_are_executables_with_one_node():
    """The ending `_node` in the ROS rooms means an executable, and nothing else.

    `rfly_nodes` runs several of them.
    """
    nodes = {
        path.stem: path
        for package in PACKAGES
        for path in modules(package)
        if path.stem.endswith("_node")
    }

    assert {*nodes, "rfly_nodes"} == executables()

    for name, path in nodes.items():
        classes = [
            n.name
            for n in ast.parse(path.read_text("utf-8")).body
            if isinstance(n, ast.ClassDef) and "Node" in map(ast.unparse, n.bases)
        ]
        assert len(classes) == 1, f"{name} has the nodes {classes}"
        assert path.parent.name == "ros", f"{path} is not in a ROS room"


def test_tests_mirror_the_rooms():
    rooms = {
        str(path.parent.relative_to(ROOT)) for package in PACKAGES for path in modules(package)
    }
    lost = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "test").glob("rfly_*/**/test_*.py")
        if str(path.parent.relative_to(ROOT / "test")) not in rooms
    }
    assert not lost


def assigned_names(path: Path) -> set[str]:
    """Return the names that a module assigns at its top level."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    return {
        leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)
    }


def test_each_area_of_attacks_says_how_much_it_tries_and_has_its_test():
    """`test/attacks/test_AREA.py` runs the short form of `attacks/AREA.py`."""
    parts = {path.stem: assigned_names(path) for path in (ROOT / "attacks").glob("*.py")}
    areas = {area for area, names in parts.items() if "ATTACKS" in names}
    tested = {
        path.stem.removeprefix("test_") for path in (ROOT / "test" / "attacks").glob("test_*.py")
    }
    assert areas <= tested <= parts.keys()
    assert not [area for area in areas if not {"TRIES", "SHORT_TRIES"} <= parts[area]]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_needs_what_tries_it(package):
    """Tests, benchmarks and attacks are not installed."""
    beside = {"attacks", "benchmarks", "test"}
    assert not [
        path
        for path in modules(package)
        if any(name.split(".")[0] in beside for name in imports(path))
    ]


def test_data_lies_apart_from_code():
    """YAML, schemas, maps and the like lie below `data` of their package."""
    stray = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file()
        and path.suffix not in {".py", ".pyi", ".pyc", ".nbi", ".nbc", ".typed"}
        and path.relative_to(ROOT / package).parts[0] != "data"
    }
    assert not stray


def test_every_library_module_imports_without_ros():
    """Library modules import in an interpreter where rclpy and message packages are missing."""
    names = [
        name_of(path)
        for package in PACKAGES
        for path in modules(package)
        if not is_ros_module(path) and path.stem != "__main__"
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
    except ModuleNotFoundError as error:  # of an extra that is not installed
        extras = {{
            "rfly_viewer.": ("viser", "trimesh", "msgspec", "websockets"),
            "rfly_lab.learning.": ("gymnasium", "pettingzoo", "stable_baselines3"),
        }}
        if not any(name.startswith(room) and error.name in extras[room] for room in extras):
            raise
print(len({names!r}), "modules")
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == f"{len(names)} modules"


def test_packages_import_nothing_heavy():
    """Package roots like `rfly_terrain` load neither NumPy nor numba.

    `rfly --help` therefore answers at once.
    """
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {', '.join(PACKAGES)}; import "
        "rfly_bringup.cli.main\n"
        "print([m for m in ('numba', 'scipy', 'matplotlib', 'cv2', 'rclpy') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )

    assert run.stdout.strip() == "[]"
