# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The public names of the packages.

A type checker sees them once they are installed.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = sorted(path.parent.name for path in ROOT.glob("rfly_*/__init__.py"))

FLOATS = "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.float64]]"

SCRIPT = """
import numpy as np

from rfly_amphibious import AmphibiousModel, Controls, VehicleParameters
from rfly_collision import load_shapes
from rfly_common import PlanError, quat_rotate
from rfly_terrain import HeightMap, Planner, load_vehicle_classes, traversability
from rfly_trajectory import load_fleet
from rfly_ue_bridge import UE4CtrlAPI, commands

terrain = HeightMap.load("JacksboroFault")
model = AmphibiousModel(VehicleParameters.load("scale"), terrain)
"""

TYPES = {
    "terrain.altitude(1.0, 2.0)": "float",
    "terrain.altitude(np.float32(1), 2)": "float",
    "terrain.altitude(np.zeros(3), 2.0)": FLOATS,
    "terrain.altitude([1.0, 2.0], [3.0, 4.0])": FLOATS,
    "terrain.inside(1.0, 2.0)": "bool",
    "terrain.cast((0, 0, 9), (0, 0, -1), normals=True)[1]": FLOATS,
    "traversability(terrain).share_free": "float",
    "Planner(terrain)": "rfly_terrain.planning.planner.Planner",
    "load_vehicle_classes()['rover'].name": "str",
    "load_fleet('convoy')": "rfly_trajectory.fleet.fleet.Fleet",
    "load_shapes()": "rfly_collision.shapes.vehicle_shapes.VehicleShapes",
    "model.run(model.standing(), Controls(), "
    "1.0).final": "rfly_amphibious.dynamics.model.ModelState",
    "UE4CtrlAPI().sendUE4Pos": "def (copterID: int",
    "commands.MAX_SHORT_BYTES": "int",
    "quat_rotate": "def (quat_a_b_xyzw: ",
    "PlanError('unreachable', 'no path').reason": "str",
}
"""Expressions after the script, and the beginnings of the types that a checker reveals."""


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_the_public_names_and_nothing_else(package):
    module = importlib.import_module(package)
    stub = (ROOT / package / "__init__.pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    names = sorted(str(alias.asname) for node in imports for alias in node.names)
    assert dir(module) == names == module.__all__
    for name in dir(module):
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"'{package}' has no attribute 'no_such_name'"):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_is_a_room(package):
    """The import system would write the room over the name at the first import of its module."""
    rooms = {path.stem for path in (ROOT / package).iterdir()}
    assert not rooms & set(dir(importlib.import_module(package)))


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_and_classes_are_documented(package):
    """Public methods and properties have docstrings too."""
    module = importlib.import_module(package)
    public = {name: getattr(module, name) for name in dir(module)}
    members = {
        f"{name}.{key}": member
        for name, value in public.items()
        if inspect.isclass(value)
        for key, member in inspect.getmembers(value)
        if not key.startswith("_")
        and str(getattr(_function(member), "__module__", "")).startswith("rfly_")
    }
    documented = (*public.items(), *members.items())

    assert not [
        name
        for name, value in documented
        if (callable(_function(value)) or isinstance(value, ModuleType))
        and not inspect.getdoc(value)
    ]


def _function(member: object) -> object:
    return member.fget if isinstance(member, property) else member


@pytest.mark.slow
@pytest.mark.needs("mypy")
@pytest.mark.exhaustive
def test_a_type_checker_sees_the_types_of_the_installed_packages(tmp_path):
    """A user's script, and the packages as pip installs them: nothing is `Any`."""
    source = tmp_path / "source"
    installed = tmp_path / "installed"
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package,
            source / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )

    for file in ("LICENSE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / file, source)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*pip, "--target", str(installed), str(source)], check=True, timeout=300)
    (metadata,) = installed.glob("rfly_suite-*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8")
    assert "\n\n# rfly_suite\n" in text
    assert re.findall(r"\]\((?!https://)", text) == []  # an index shows no file beside it

    script = SCRIPT + "".join(f"reveal_type({expression})\n" for expression in TYPES)
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    cache = str(ROOT / ".mypy_cache/user")
    checker = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-color-output",
        "--cache-dir",
        cache,
    ]
    run = subprocess.run(
        [*checker, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed), "MYPYPATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (run.returncode, run.stderr) == (0, ""), run.stdout

    revealed = re.findall(r'Revealed type is "(.*)"$', run.stdout, re.MULTILINE)
    found = dict(zip(TYPES, revealed, strict=True))
    assert not {
        expression: found[expression]
        for expression, wanted in TYPES.items()
        if not found[expression].replace("builtins.", "").startswith(wanted)
    }


def test_the_list_of_moved_imports_is_true():
    """Names said to be new are there, those said to be earlier are not."""
    page = (ROOT / "docs" / "extending" / "moved-imports.md").read_text(encoding="utf-8")
    rows = [row.split(": ", 1) for row in page.splitlines() if row.startswith("- `")]
    assert len(rows) > 20
    for earlier, now in rows:
        old, *others = re.findall(r"`([\w.]+)`", earlier)
        places = re.findall(r"`(rfly_[\w.]+)`", now)
        assert not _is_there(old), old
        assert all(map(_is_there, places)), places
        for name in others:
            assert any(_is_there(f"{place}.{name}") for place in places), name


def _is_there(name: str) -> bool:
    """Return whether a module, or a name in one, is there; an empty folder is no module."""
    try:
        found = pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return not (inspect.ismodule(found) and found.__file__ is None)
