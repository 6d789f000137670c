# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Test files are collected on every machine.

While one is imported, nothing optional is, and nothing is skipped.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import os
import select
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import fork_server
import pytest
from node_harness import PATIENCE
from optional_parts import late_module, missing

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PACKAGES = sorted(path.parent.name for path in ROOT.glob("rfly_*/__init__.py"))
FILES = {str(path.relative_to(TESTS)): path for path in sorted(TESTS.rglob("*.py"))}

PACKAGE_XML = ElementTree.parse(ROOT / "package.xml").getroot()
KEYS = {element.text for element in PACKAGE_XML if element.tag.endswith("depend")}
MODULES = {
    "python3-opencv": "cv2",
    "python3-pil": "PIL",
    "python3-yaml": "yaml",
    "tf2_ros_py": "tf2_ros",
}
"""Modules of those keys of package.xml whose names differ by more than the prefix."""
EVERYWHERE = {
    "llvmlite",  # comes with numba
    *(MODULES.get(key, key.removeprefix("python3-")) for key in KEYS if key.startswith("python3-")),
}
"""Modules that a test file may import at once: not ROS, which is missing in `make test-lib`."""
FROM_PIP = {
    *(
        "distributed",
        "MAVProxy",
        "foxglove",
        "gymnasium",
        "mavsdk",
        "mcap",
        "mcap_ros2",
        "onnx",
        "onnxruntime",
        "pettingzoo",
        "pymavlink",
        "pyoctomap",
        "pyproj",
        "stable_baselines3",
        "torch",
        "xdist",
    ),
    *("mapbox_earcut", "osmium", "rasterio", "rosbags", "shapely", "viser", "zstandard"),
    *("catkin_pkg", "docutils"),  # with colcon
    *(
        "msgspec",
        "trimesh",
        "typing_extensions",
        "websockets",
    ),  # come with viser, matplotlib
}
"""Optional parts of pyproject.toml that Ubuntu 24.04 or rosdep lacks, or that few need."""


def at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes of a file that run when it is imported.

    Those in functions, and those that only type checkers see, are left out.
    """
    for node in ast.iter_child_nodes(tree):
        hidden = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not hidden and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            yield from at_import(node)


@functools.cache
def imported(
    path: Path, walk: Callable[[ast.AST], Iterable[ast.AST]] = at_import
) -> tuple[str, ...]:
    """Return what a file imports when it is imported itself.

    `from a import b` counts as both `a` and, as it may be a module, `a.b`.
    """
    names: list[str] = []
    for node in walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names += (
                node.module,
                *(f"{node.module}.{alias.name}" for alias in node.names),
            )
    return tuple(names)


@functools.cache
def source_of(module: str) -> Path | None:
    """The file of a module of this repository."""
    files = (folder.joinpath(*module.split(".")) for folder in (ROOT, TESTS, ROOT / "docs"))
    return next(
        (f for at in files for f in (at.with_suffix(".py"), at / "__init__.py") if f.is_file()),
        None,
    )


def imported_from_outside(path: Path) -> dict[str, str]:
    """Return each foreign package that importing a test file imports, and the file that does.

    Imports by way of our own modules count.
    """
    found: dict[str, str] = {}
    seen: set[Path] = set()
    files = [path]

    while files:
        file = files.pop()
        if file in seen:
            continue
        seen.add(file)
        for module in imported(file):
            package = module.split(".")[0]
            if package in sys.stdlib_module_names:
                continue
            if source_of(module):
                files.append(source_of(module))
            elif (
                not (ROOT / package).is_dir()
                and not (TESTS / package).exists()
                and not source_of(package)
            ):
                found.setdefault(package, str(file.relative_to(ROOT)))

    return found


def test_files_have_at_most_800_lines():
    """A longer one has more than one subject."""
    lines = {file: path.read_text(encoding="utf-8").count("\n") for file, path in FILES.items()}
    assert {file: count for file, count in lines.items() if count > 800} == {}


@pytest.mark.exhaustive
def test_nothing_optional_is_imported_with_a_test_file():
    assert len(FILES) > 300
    optional = {
        (name, package, file)
        for name, path in FILES.items()
        for package, file in imported_from_outside(path).items()
        if package not in EVERYWHERE
    }
    assert not optional, "import it in the test, or with optional_parts.late_module"


def test_no_test_file_skips_itself():
    """`@pytest.mark.needs` skips test by test; a skip at import takes launch_testing's whole
    session with it.
    """
    skips = {"pytest.importorskip", "pytest.skip", "importlib.import_module"}
    texts = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
    calls = {
        (name, ast.unparse(node.func))
        for name, text in texts.items()
        if any(f"{skip}(" in text for skip in skips)  # the others need no syntax tree
        for node in at_import(ast.parse(text))
        if isinstance(node, ast.Call)
    }
    assert not {(name, call) for name, call in calls if call in skips}


@pytest.mark.exhaustive
def test_every_import_is_declared():
    """Every import of the packages and their tests is a key of package.xml or of an extra for pip.

    Imports in functions count too.
    """
    folders = (TESTS, ROOT / "docs", ROOT / "wheels")
    ours = {path.stem for folder in folders for path in folder.glob("*.py")}
    ours |= {
        "rfly_suite",
        "fuzz",
        "oracles",
        "attacks",
        "benchmarks",
        *(path.parent.name for path in ROOT.glob("rfly_*/__init__.py")),
    }
    undeclared = {
        package: str(path.relative_to(ROOT))
        for path in (
            *ROOT.glob("rfly_*/**/*.py"),
            *ROOT.glob("launch/*.py"),
            *FILES.values(),
        )
        for module in imported(path, ast.walk)
        for package in [module.split(".")[0]]
        if package
        not in {
            *sys.stdlib_module_names,
            *EVERYWHERE,
            *(MODULES.get(key, key) for key in KEYS),
            *FROM_PIP,
            *ours,
        }
    }

    assert not undeclared


def test_what_would_be_found(tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text(
        "try:\n    import rasterio.transform\nexcept ImportError:\n    pass\ndef f():\n    import "
        "viser\n"
    )
    assert set(imported(path)) == {"rasterio.transform"}
    kernels = ROOT / "rfly_terrain" / "height_map" / "altitude_kernels.py"
    assert imported_from_outside(kernels)["numba"].startswith("rfly_common/kernels/")


def test_a_late_module_is_imported_when_it_is_used(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    late = late_module("colorsys")
    assert not hasattr(late, "__wrapped__")
    assert "colorsys" not in sys.modules
    assert late.rgb_to_hls(0.0, 0.0, 1.0) == pytest.approx((2 / 3, 0.5, 1.0))
    with pytest.raises(ModuleNotFoundError):
        _ = late_module("no_such_module").anything


def test_a_missing_part_is_named():
    assert missing("numpy") is None
    assert missing("no_such_module") == "the package no_such_module is not installed"


def test_all_packages_come_from_one_place():
    """One place holds all packages, because the cache of compiled kernels is bound to its place.

    With two places each first run would compile the kernels of one of them anew.
    """
    places = {
        Path(spec.origin).parents[1]
        for name in PACKAGES
        if (spec := importlib.util.find_spec(name))
    }
    assert len(places) == 1


IMPORTS = """
import fork_server, importlib, json, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
from node_harness import shell_environment
before = shell_environment(fork_server.ENVIRONMENT)
print(json.dumps(sorted(key for key, _ in before.items() ^ shell_environment().items())))
"""


def test_what_tests_import_changes_no_programs_environment():
    """No node could be forked with another environment: each start would take seconds longer."""
    modules = [
        name
        for name in (
            "rasterio",
            "pymavlink.mavutil",
            "cv2",
            "matplotlib.pyplot",
            "viser",
            "rclpy",
            "gymnasium",
            "pettingzoo",
            "onnxruntime",
        )
        if importlib.util.find_spec(name.split(".", maxsplit=1)[0])
    ]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *modules, "ground_station"],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert done.stdout == "[]\n"


def test_a_file_that_leaves_the_environment_changed_fails(request, monkeypatch):
    """Variables that are read when they are needed do not count, nor do those told before."""
    plugin = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    monkeypatch.setattr(plugin, "_told", set())
    monkeypatch.setenv("SOME_LIBRARY", "1")
    monkeypatch.setenv("RFLY_PATIENCE", "1")
    item = SimpleNamespace(path=Path("test_it.py"))
    ended = plugin.pytest_runtest_teardown(item, None)
    next(ended)
    told = r"test_it\.py leaves in the environment: SOME_LIBRARY$"
    with pytest.raises(pytest.fail.Exception, match=told):
        next(ended)
    assert list(plugin.pytest_runtest_teardown(item, None)) == [None]


def test_the_parts_of_the_tests_are_all_tests_each_once(request):
    plugin = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    items = [_Item(Path(f"test_{number % 4}.py"), number) for number in range(11)]
    ran, left_out = [], []

    def deselected(items):
        left_out.extend(items)

    for part in ("1/3", "2/3", "3/3"):
        config = SimpleNamespace(
            option=SimpleNamespace(markexpr="exhaustive"),
            hook=SimpleNamespace(pytest_deselected=deselected),
            getoption={"part": plugin._part(part)}.get,
        )
        chosen = list(items)
        plugin.pytest_collection_modifyitems(config, chosen)
        assert 3 <= len(chosen) <= 4
        ran += chosen

    assert sorted(item.number for item in ran) == list(range(11))
    assert len(left_out) == 2 * 11
    for wrong in ("0/3", "4/3", "3", "one/3"):
        with pytest.raises(ValueError, match=r"part|unpack|invalid literal"):
            plugin._part(wrong)


class _Item(NamedTuple):
    """What is asked of a collected test."""

    path: Path
    number: int

    def get_closest_marker(self, name: str) -> None:
        """Return the marker: none."""


CRASHES = {
    "test_a.py": "def test_first(): pass\ndef test_second(): pass\n",
    "test_b.py": "def test_alone(): pass\n",
    "test_c.py": (
        "import os\n"
        "def test_before(): pass\n"
        "def test_crash(): os._exit(1)\n"
        "def test_after(): pass\n"
    ),
    "test_d.py": "def test_alone(): pass\n",
    "test_e.py": "def test_alone(): pass\n",
}


@pytest.mark.exhaustive
@pytest.mark.needs("xdist")
def test_a_crashed_process_costs_one_test_and_not_the_run(tmp_path):
    """The other tests run elsewhere, and the run ends."""
    conftest = (
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    from whole_files import whole_files\n"
        "    return whole_files(config, log)\n"
    )
    done = run_tests(tmp_path, {"conftest.py": conftest, **CRASHES}, "-n2", "--dist", "loadfile")
    assert done.returncode == 1, done.stdout
    assert "1 failed, 7 passed" in done.stdout


def test_a_thread_that_a_test_has_left_ends_the_run_as_a_failure(tmp_path):
    """Python itself would wait for it for ever, after the last line of the run."""
    files = {
        "conftest.py": (
            "from end_of_run import end_in_time\ndef pytest_unconfigure(): end_in_time(0.5)\n"
        ),
        "test_a.py": (
            "import threading\n"
            "def endless(): threading.Event().wait()\n"
            "def test_leaves_a_thread(): threading.Thread(target=endless).start()\n"
        ),
    }
    done = run_tests(tmp_path, files)
    assert "1 passed" in done.stdout
    assert done.returncode == 1, done.stdout
    assert "in endless" in done.stderr


SERVER = """
import fork_server, os, signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\\0" + os.environ[fork_server.NAME])
listener.listen()
print("listens", flush=True)
lifeline = os.pidfd_open(int(sys.argv[1]))
if asked := fork_server._Server(listener.detach(), lifeline).serve():
    fork_server._become(asked)
"""
"""A fork server that loads nothing before."""
WORKER = """
import fork_server, os, signal
server = fork_server.ForkServer(os.environ)
print(server.start("signal:pause", ["pause"], os.environ, [0, 1, 2], ".").pid, flush=True)
signal.pause()
"""
"""A process that runs tests, with a program that SIGTERM does not end."""


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("killed", ["worker", "server", "run"])
def test_no_program_outlives_a_killed_test_run(killed, tmp_path):
    """kill -9 of the process that has started it, of the fork server, or of the whole run's."""
    name = f"rfly_test-{os.getpid()}-{killed}"
    environment = {**os.environ, fork_server.NAME: name, "PYTHONPATH": str(TESTS)}

    @contextmanager
    def started(*command: str) -> Iterator[subprocess.Popen[str]]:
        streams: Any = {"stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment, cwd=tmp_path, **streams) as process:
            try:
                yield process
            finally:
                process.kill()

    with (
        started("sleep", "1000") as run,
        started(sys.executable, "-c", SERVER, str(run.pid)) as server,
    ):
        assert server.stdout is not None
        assert server.stdout.readline() == "listens\n"
        with started(sys.executable, "-c", WORKER) as worker:
            assert worker.stdout is not None
            program = os.pidfd_open(int(worker.stdout.readline()))
            try:
                {"worker": worker, "server": server, "run": run}[killed].kill()
                assert select.select([program], [], [], PATIENCE)[0]
            finally:
                os.close(program)
        if killed == "run":
            assert server.wait(PATIENCE) == 0


FRESH = """
import signal, sys
from node_harness import Program
print(Program("", ["sleep", "1000"], ["sleep"], fresh=True).pid, flush=True)
signal.pause()
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed")
def test_a_program_that_is_executed_ends_with_a_killed_worker_too():
    with subprocess.Popen(
        [sys.executable, "-c", FRESH],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            assert worker.stdout is not None
            program = os.pidfd_open(int(worker.stdout.readline()))
        finally:
            worker.kill()
        try:
            assert select.select([program], [], [], PATIENCE)[0]
        finally:
            os.close(program)


def run_tests(
    folder: Path, files: Mapping[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    """Write these files and run pytest on them, to its end."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**own, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
