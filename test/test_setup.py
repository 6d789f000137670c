# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Promises between the build files: CMake, pip, ROS and the set-up of a bare machine."""

from __future__ import annotations

import ast
import configparser
import contextlib
import importlib
import importlib.metadata
import itertools
import os
import re
import runpy
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from node_harness import PATIENCE

ROOT = Path(__file__).parents[1]
PACKAGES = {path.parent.name for path in ROOT.glob("rfly_*/__init__.py")}
PACKAGE_XML = ElementTree.parse(ROOT / "package.xml").getroot()
CMAKE = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def console_scripts(name):
    parser = configparser.ConfigParser()
    parser.read(ROOT / "cmake" / name, encoding="utf-8")
    lines = parser["options.entry_points"]["console_scripts"].split("\n")
    return dict(re.split(r"\s*=\s*", line.strip()) for line in lines if line.strip())


def locked(name):
    """{(distribution, marker): version} of a lock."""
    pattern = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)(?: ; ([^\\]+?))? ?\\?$", re.MULTILINE)
    text = (ROOT / "wheels" / name).read_text(encoding="utf-8")
    return {(found[1], found[3] or ""): found[2] for found in pattern.finditer(text)}


def test_one_version_everywhere():
    version = PACKAGE_XML.findtext("version")
    assert re.search(r'^version = "(.+)"$', PYPROJECT, re.MULTILINE)[1] == version
    changelog = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    assert re.findall(r"^(\d\S+) \(\d{4}-\d\d-\d\d\)\n-+$", changelog, re.MULTILINE)[0] == version


@pytest.mark.parametrize(
    ("repository", "expected"),
    [
        ("", "Film and still; [ROS](https://ros.org), start,\nthere."),
        (
            "https://example.org/a/b",
            "[![Film](https://example.org/a/b/raw/HEAD/docs/film.webp)]"
            "(https://example.org/a/b/blob/HEAD/docs/still.jpg) and "
            "![still](https://example.org/a/b/raw/HEAD/docs/still.jpg); [ROS](https://ros.org), "
            "[start,\nthere](https://example.org/a/b/blob/HEAD/docs/start.md#first).",
        ),
    ],
)
def test_an_index_shows_a_readme_without_dead_links(repository, expected):
    description = runpy.run_path(str(ROOT / "setup.py"))["description"]
    readme = (
        "[![Film](docs/film.webp)](docs/still.jpg) and ![still](docs/still.jpg); "
        "[ROS](https://ros.org), [start,\nthere](docs/start.md#first)."
    )
    assert description(readme, repository) == expected


def test_every_interface_is_built():
    files = {
        str(path.relative_to(ROOT))
        for folder in ("msg", "srv", "action")
        for path in (ROOT / folder).glob("*.*")
    }
    assert files == set(re.findall(r"(?:msg|srv|action)/\w+\.(?:msg|srv|action)", CMAKE))


def test_every_python_package_is_installed_once():
    assert sorted(re.findall(r"ament_python_install_package\((\w+)", CMAKE)) == sorted(PACKAGES)
    assert (
        len(re.findall(r"cmake/nodes\.cfg", CMAKE))
        == len(re.findall(r"cmake/cli\.cfg", CMAKE))
        == 1
    )
    assert not (ROOT / "setup.cfg").exists()  # every ament_python_install_package would pick it up
    assert not (ROOT / "rfly_suite").exists()  # the generated interfaces have that name


def test_colcon_runs_every_folder_of_tests():
    text = (ROOT / "cmake" / "add_tests.cmake").read_text(encoding="utf-8")
    folders = {
        path.relative_to(ROOT / "test").parts[0] for path in ROOT.glob("test/*/**/test_*.py")
    }
    assert folders == set(re.search(r"foreach\(folder ([^)]+)\)", text)[1].split())


def test_every_script_leads_to_a_function():
    for config in ("nodes.cfg", "cli.cfg"):
        for target in console_scripts(config).values():
            module, function = target.split(":")
            assert callable(getattr(importlib.import_module(module), function)), target


def test_rfly_is_the_same_command_for_pip_and_cmake():
    scripts = re.search(r"^\[project\.scripts\]\n((?:.+\n)+)", PYPROJECT, re.MULTILINE)[1]
    assert dict(re.findall(r'^(\w+) = "(.+)"$', scripts, re.MULTILINE)) == console_scripts(
        "cli.cfg"
    )


@pytest.mark.exhaustive
def test_ros_packages_that_are_imported_are_declared():
    """Each ROS package that is imported is in package.xml, and its wheel in the lock."""
    names = set()
    for path in [
        *(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")),
        *ROOT.glob("launch/*.py"),
    ]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])

    pattern = r"rclpy|launch|launch_ros|ament_index_python|builtin_interfaces|\w+_msgs"
    imported = {name for name in names if re.fullmatch(pattern, name)}
    declared = {
        element.text for tag in ("depend", "exec_depend") for element in PACKAGE_XML.iter(tag)
    }

    assert imported <= declared

    wheels = {name for name, _ in locked("requirements.txt")}
    stand_ins = {path.name for path in (ROOT / "wheels" / "interfaces").iterdir() if path.is_dir()}
    from_wheels = imported - stand_ins - {"launch", "launch_ros"}
    wheel_names = {
        name: {f"ros-jazzy-{name.replace('_', '-')}", f"ros-{name.replace('_', '-')}"}
        for name in from_wheels
    }

    assert [name for name, either in wheel_names.items() if not either & wheels] == []


def test_locks_hold_hashes_and_no_address():
    for path in (ROOT / "wheels").glob("requirements*.txt"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"://|^-|find-links|index-url", text, re.MULTILINE), path.name
        blocks = re.split(r"\n(?=[a-z0-9])", text.strip())
        assert all("--hash=sha256:" in block for block in blocks), path.name


def test_locks_agree_with_each_other_and_with_what_they_lock():
    ros = locked("requirements.txt")
    libraries = locked("requirements-dev.txt")
    common = ros.keys() & libraries.keys()

    expected = {key: libraries[key] for key in common}
    assert {key: ros[key] for key in common} == expected

    inputs = (ROOT / "wheels" / "requirements.in").read_text(encoding="utf-8")
    wanted = re.findall(r"^([a-z][\w-]+)(?:\[\w+\])?==(\S+)$", inputs, re.MULTILINE)
    assert len(wanted) > 10
    for name, version in wanted:
        assert ros[name, ""] == version

    block = re.search(r"^dependencies = \[(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)[1]
    for requirement in re.findall(r'"([\w-]+)', block):
        assert requirement.lower() in {name for name, _ in ros}
        assert requirement.lower() in {name for name, _ in libraries}


@pytest.mark.needs("make env")
def test_what_is_installed_first_stays_small():
    """The sizes are those in the wheels' records, without byte code. docs/adr/0017."""

    def megabytes(name):
        return sum(file.size or 0 for file in importlib.metadata.files(name) or ()) / 1e6

    todo = re.findall(
        r'"([\w-]+)',
        re.search(r"^dependencies = \[(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)[1],
    )
    sizes = {}
    while todo:
        name = todo.pop().lower()
        with contextlib.suppress(
            importlib.metadata.PackageNotFoundError
        ):  # of other systems and Pythons
            if name not in sizes:
                sizes[name] = megabytes(name)
                needs = [
                    text
                    for text in importlib.metadata.requires(name) or ()
                    if "extra ==" not in text
                ]
                todo += [re.match(r"[\w-]+", text)[0] for text in needs]
    assert "matplotlib" not in sizes
    assert {"numba", "numpy", "scipy", "opencv-python-headless", "markdown-it-py"} <= sizes.keys()
    assert sum(sizes.values()) < 590, sizes  # and about 80 of pip, byte code and rfly_suite itself
    demo = {}
    for name, _ in locked("requirements.txt"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            demo[name] = megabytes(name)
    assert 100 < sum(demo.values()) < 840, demo  # slim() takes 120 of them


def test_what_nobody_uses_leaves_the_environment_and_copies_become_links(
    set_up_modules, monkeypatch, tmp_path
):
    import tree

    packages = tmp_path / "lib" / "site-packages"
    monkeypatch.setattr(tree, "VENV", tmp_path)
    monkeypatch.setattr(tree, "SITE_PACKAGES", packages)
    contents = {
        "lib/libdds.so": "dds",
        "lib/libdds.so.2": "dds",
        "lib/libother.so": "cdr",
        "lib/site-packages/a.libs/libdds.so.2": "dds",
        "lib/site-packages/scipy/linalg/tests/test_it.py": "",
        "lib/site-packages/scipy/linalg/it.py": "",
        "lib/site-packages/scipy/tests/tests/deep.py": "",
        "lib/site-packages/viser/tests/kept.py": "",
        "lib/site-packages/fontTools/misc/fast.c": "",
        "lib/site-packages/zstandard/_cffi.so": "",
        "lib/site-packages/pymavlink/dialects/v20/__init__.py": "",
        "lib/site-packages/pymavlink/dialects/v20/common.py": "",
        "lib/site-packages/pymavlink/dialects/v20/storm32.py": "",
        "lib/site-packages/pymavlink/dialects/v20/storm32.xml": "",
        "lib/site-packages/pymavlink/dialects/v10/all.py": "",
        "lib/site-packages/pymavlink/dialects/v10/__pycache__/all.cpython-311.pyc": "",
        "lib/site-packages/pymavlink/dialects/v10/__pycache__/storm32.cpython-311.pyc": "",
    }
    for name, text in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tree.slim()
    tree.slim()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    gone = {
        name
        for name in contents
        if ("scipy" in name and "tests" in name)
        or name.endswith((".c", "_cffi.so"))
        or "storm32" in name
    }
    assert left == contents.keys() - gone
    assert all((tmp_path / name).read_text() == contents[name] for name in left)
    dds = [tmp_path / name for name, text in contents.items() if text == "dds"]
    assert all(path.samefile(dds[0]) for path in dds)
    assert (tmp_path / "lib" / "libother.so").stat().st_nlink == 1


def test_make_help_lists_what_there_is():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    shown = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[1] for line in shown.splitlines()} == targets
    assert {"env", "demo", "test", "test-lib", "lint", "bench", "clean"} <= targets
    phony = set(re.search(r"^\.PHONY:(.*)$", makefile, re.MULTILINE)[1].split())
    assert phony == targets


def test_make_demo_takes_what_stands_on_its_command_line():
    shown = run(
        ["make", "-n", "demo", "MAP=hills", "FLEET=my fleet.yaml"],
        {**os.environ, "HOST": "a-zsh-variable"},
    )
    assert '--map="hills" --fleet="my fleet.yaml"' in shown.stdout
    assert "zsh" not in shown.stdout


def run(command, env, folder=ROOT):
    return subprocess.run(
        command,
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def run_setup_script(env):
    return run(["/bin/sh", "wheels/setup.sh"], env)


@pytest.fixture
def fake_python(tmp_path):
    """A folder with a `python3` that says it is another version, and with sh's own tools."""

    def make(version):
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "dirname").symlink_to("/usr/bin/dirname")
        (folder / "python3").write_text(f'#!/bin/sh\n[ "$1" = -c ] && echo "Python {version}"\n')
        (folder / "python3").chmod(0o755)
        return {"PATH": str(folder)}

    return make


def test_a_python_that_is_too_old_or_too_new_is_one_line(fake_python):
    ended = run_setup_script(fake_python("3.9.2"))
    assert ended.returncode == 2
    assert ended.stderr.startswith("rfly_suite: python3 is Python 3.9.2")
    assert ended.stderr.count("\n") == 1
    assert "make env PYTHON=" in ended.stderr


def test_an_older_ros_is_refused_in_one_line(tmp_path):
    (tmp_path / "share" / "rclpy").mkdir(parents=True)
    (tmp_path / "share" / "rclpy" / "package.xml").touch()
    env = {**os.environ, "ROS_DISTRO": "humble", "AMENT_PREFIX_PATH": str(tmp_path)}
    ended = run_setup_script(env)
    assert ended.returncode == 2
    assert ended.stderr.startswith(
        "rfly_suite: ROS 2 humble is sourced, but Jazzy or newer is needed"
    )
    assert ended.stderr.count("\n") == 1


def test_a_wrong_python_by_name_is_refused():
    ended = run_setup_script({**os.environ, "ROS_DISTRO": "", "PYTHON": "/nowhere/python3.12"})
    assert ended.returncode == 2
    assert ended.stderr == "rfly_suite: PYTHON=/nowhere/python3.12 is not a program.\n"


def test_ctrl_c_while_the_set_up_starts_leaves_no_trace_of_python(tmp_path):
    """Ctrl-C comes before Python's first line, so its own handler would meet the imports."""
    python = tmp_path / "python3"
    is_set_up = '[ "$3" = -c ] || kill -INT $$'
    python.write_text(f'#!/bin/sh\n{is_set_up}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    ended = run_setup_script({**os.environ, "ROS_DISTRO": "", "PYTHON": str(python)})
    assert ended.returncode == 1
    assert ended.stderr == "\nrfly_suite: interrupted; the same command goes on from here\n"


@pytest.fixture
def set_up_modules(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "wheels"))


def test_the_set_up_needs_nothing_that_it_installs():
    """A Python of its own, without site-packages and without the suite on its path."""
    imports = "import sys; sys.path.insert(0, 'wheels'); import setup_env"
    shown = run([sys.executable, "-I", "-S", "-c", imports], os.environ)
    assert shown.returncode == 0, shown.stderr


def test_uv_trusts_what_pip_trusts(set_up_modules):
    """The system's certificates and pip's variables are used; uv's own variables win."""
    from variables import uv_settings

    assert uv_settings({"PIP_CERT": "/ca.pem"}) == {
        "UV_SYSTEM_CERTS": "1",
        "SSL_CERT_FILE": "/ca.pem",
    }
    assert (
        uv_settings(
            {
                "UV_SYSTEM_CERTS": "0",
                "PIP_CERT": "/ca.pem",
                "SSL_CERT_FILE": "/other.pem",
            }
        )
        == {}
    )


@pytest.mark.exhaustive
@pytest.mark.ros
@pytest.mark.needs("make env")
@pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which("c++") is None,
    reason="no compiler is installed",
)
def test_interfaces_are_built_for_python_in_a_folder_with_any_letter(tmp_path):
    """A message with a string, a time and an array comes out of its bytes as it went in.

    All kinds of interfaces are built.
    """
    source, build, prefix = (
        tmp_path / "Gelände 地形" / name for name in ("source", "build", "venv")
    )
    texts = {
        "msg/Sounding.msg": "std_msgs/Header header\nfloat64[] depths  # m\n",
        "srv/Sound.srv": "string where\n---\nrfly_soundings/Sounding[] found\n",
        "action/Survey.action": "uint8 lines\n---\nbool done\n---\nfloat32 part\n",
        "package.xml": "<package><name>rfly_soundings</name></package>\n",
    }

    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")

    builder = ROOT / "wheels" / "build_interfaces.py"
    command = [sys.executable, builder, build, prefix, "rfly_soundings", source]
    subprocess.run(command, check=True, timeout=300)
    script = (
        "from rclpy.serialization import deserialize_message, serialize_message\n"
        "from rclpy.type_support import check_for_type_support\n"
        "from rfly_soundings.action import Survey\n"
        "from rfly_soundings.msg import Sounding\n"
        "from rfly_soundings.srv import Sound\n"
        "sounding = Sounding(depths=[2.5, -1.0])\n"
        "sounding.header.frame_id, sounding.header.stamp.sec = 'map', 7\n"
        "assert deserialize_message(serialize_message(sounding), Sounding) == sounding\n"
        "check_for_type_support(Sound)\n"
        "check_for_type_support(Survey)\n"
    )
    libraries = os.pathsep.join([str(prefix / "lib"), os.environ.get("LD_LIBRARY_PATH", "")])
    (folder,) = prefix.glob("lib/python*/site-packages")
    env = {**os.environ, "PYTHONPATH": str(folder), "LD_LIBRARY_PATH": libraries}
    subprocess.run([sys.executable, "-c", script], env=env, check=True, timeout=PATIENCE)


def test_the_station_is_locked_without_its_windows():
    assert locked("requirements-stations.txt").keys() == {("mavproxy", ""), ("pyserial", "")}
    libraries = locked("requirements-dev.txt")
    assert ("pymavlink", "") in libraries  # from there it has what it needs to fly
    assert ("pyserial", "") not in libraries


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["--browser", "--stations", "pytest", "--lib"],
            ({"--browser", "--stations"}, ["pytest", "--lib"]),
        ),
        (["--lib"], ({"--lib"}, [])),
        (["python", "-m", "benchmarks"], (set(), ["python", "-m", "benchmarks"])),
        ([], (set(), [])),
    ],
)
def test_options_of_the_set_up_come_before_the_command(set_up_modules, arguments, expected):
    from setup_env import leading_options

    assert leading_options(arguments) == expected


def test_built_interfaces_are_kept_and_unpacked_for_another_checkout(
    set_up_modules, monkeypatch, tmp_path
):
    """The other .venv gets the same files; a changed message or a damaged archive is built anew."""
    import interfaces
    from steps import SetupError

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    package = next(found for found in interfaces.interface_packages() if found.name == "tf2_msgs")
    first = tmp_path / "first" / ".venv"
    second = tmp_path / "second one" / ".venv"

    def move_to(venv):
        monkeypatch.setattr(interfaces, "VENV", venv)
        monkeypatch.setattr(interfaces, "SITE_PACKAGES", venv / "lib")
        monkeypatch.setattr(interfaces, "BUILD", venv.parent / "build")

    move_to(first)
    assert not package.restore()
    shared = first / "share" / "package.xml"
    library = first / "lib" / "libtf2_msgs.so"
    for file in (shared, library):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"\x7f\0\xff" + os.fsencode(file.name))
    library.chmod(0o755)
    package.manifest.parent.mkdir(parents=True)
    package.manifest.write_text(f"{shared}\n{library}\n", encoding="utf-8")
    with pytest.raises(
        SetupError, match=r"does not name .*__init__\.py"
    ):  # such as where links were installed
        package.keep()
    python = package.python_package / "__init__.py"
    python.parent.mkdir()
    python.touch()
    with package.manifest.open("a", encoding="utf-8") as manifest:
        manifest.write(f"{python}\n")
    package.keep()

    move_to(second)
    assert package.restore()
    for name in ("share/package.xml", "lib/libtf2_msgs.so"):
        assert (second / name).read_bytes() == (first / name).read_bytes()
    assert os.access(second / "lib" / "libtf2_msgs.so", os.X_OK)
    listed = package.manifest.read_text(encoding="utf-8").splitlines()
    names = ("share/package.xml", "lib/libtf2_msgs.so", "lib/tf2_msgs/__init__.py")
    assert listed == [str(second / name) for name in names]

    archive = package.archive
    archive.write_bytes(archive.read_bytes()[:40])
    assert not package.restore()
    source = tmp_path / "source"
    shutil.copytree(package.source, source)
    edited = interfaces.InterfacePackage(package.name, source)
    monkeypatch.setattr("tree.ROOT", tmp_path)
    monkeypatch.setattr(interfaces, "ROS_LOCK", source / "package.xml")
    monkeypatch.setattr(interfaces, "BUILDER", source / "package.xml")
    monkeypatch.setattr(interfaces, "__file__", str(source / "package.xml"))
    before = edited.archive
    assert edited.archive == before
    next((source / "msg").glob("*.msg")).write_text("int32 other\n", encoding="utf-8")
    assert edited.archive != before


def test_jobs_of_a_step_run_at_once_and_a_failure_is_reported(set_up_modules, tmp_path, capsys):
    import steps

    with open(os.devnull) as lock:
        shown = steps.Steps(tmp_path / "setup.log", lock.fileno())
        first = tmp_path / "first"
        second = tmp_path / "second"
        # each for the other one
        waits = 'touch "$0"; while [ ! -e "$1" ]; do sleep 0.01; done; echo "[1/1] $0"'
        with shown.step("both"):
            shown.together([
                lambda: shown.run(["sh", "-c", waits, first, second], os.environ, job="first"),
                lambda: shown.run(["sh", "-c", waits, second, first], os.environ, job="second"),
            ])  # fmt: skip
        with (
            pytest.raises(steps.SetupError, match="second: sh ended with 3"),
            shown.step("one fails"),
        ):
            shown.together([
                lambda: shown.run(["true"], os.environ, job="first"),
                lambda: shown.run(["sh", "-c", "echo it broke; exit 3"], os.environ, job="second"),
            ])  # fmt: skip
        assert "    it broke" in capsys.readouterr().err

        # Ctrl-C reaches all processes of the terminal
        interrupted = [sys.executable, "-c", "import os; os.kill(os.getpid(), 2)"]
        for job in ("", "first"):
            with pytest.raises(KeyboardInterrupt), shown.step("interrupted"):
                shown.together([lambda job=job: shown.run(interrupted, os.environ, job=job)])
    assert "Traceback" not in capsys.readouterr().err
    log = (tmp_path / "setup.log").read_text(encoding="utf-8")
    assert f"[1/1] {first}\nexit 0\n" in log
    assert "it broke\nexit 3\n" in log


def test_the_share_of_a_step_never_falls_and_tells_the_time_left(set_up_modules, tmp_path, capsys):
    """A job that counts late, or counts more things, does not move it back."""
    import steps

    now = 0.0
    with open(os.devnull) as lock:
        shown = steps.Steps(tmp_path / "setup.log", lock.fileno(), clock=lambda: now)
        with shown.step("both"):
            shown.together([lambda: None, lambda: None])
            for job, line in (
                ("interfaces", "[34/36]"),
                ("kernels", "[10/40]"),
                ("interfaces", "[39/42]"),
                ("kernels", "[20/80]"),
                ("kernels", "[60/80]"),
                ("kernels", "[1/80]"),
            ):
                now += 16.0
                shown._take_line(line, job)
                shown._show_progress()
    # halves of 34/36, then also of 10/40, then of 60/80: what is less does not count
    assert capsys.readouterr().err.splitlines()[:-1] == [
        "  both ... 47%, about 18 s left",
        "  both ... 60%, about 22 s left",
        "  both ... 60%, about 32 s left",
        "  both ... 60%, about 43 s left",
        "  both ... 85%, about 14 s left",
        "  both ... 85%, about 17 s left",
    ]


def test_downloads_are_shown_in_mebibytes_with_the_time_left(set_up_modules, tmp_path, capsys):
    """Lines as uv 0.13 prints them, 16 s apart, and then a command that prints nothing."""
    import steps

    now = 0.0
    lines = """Resolved 8 packages in 505ms
Downloading llvmlite (56.9MiB)
Downloading numpy (16.0MiB)
Downloading pygments (1.1MiB)
 Downloaded numpy
 Downloaded pygments
 Downloaded llvmlite
 + numpy==2.2.6""".splitlines()
    with open(os.devnull) as lock:
        shown = steps.Steps(tmp_path / "setup.log", lock.fileno(), clock=lambda: now)
        with shown.step("packages"):
            for line in lines:
                now += 16.0
                shown._take_line(line, "")
                shown._show_progress()
    assert capsys.readouterr().err.splitlines()[:-1] == [
        "  packages ... busy for 16 s",
        "  packages ... busy for 32 s",
        "  packages ... busy for 48 s",
        "  packages ... busy for 64 s",
        "  packages ... 16 of 74 MiB downloaded, about 5 min left",  # 80 s * (74 / 16 - 1)
        "  packages ... 17 of 74 MiB downloaded, about 5 min left",
        "  packages ... busy for 112 s",
        "  packages ... busy for 128 s",
    ]


def test_a_command_that_prints_nothing_is_seen_to_live(
    set_up_modules, monkeypatch, tmp_path, capsys
):
    import steps

    ticks = itertools.count(0.0, 16.0)
    monkeypatch.setattr(steps, "_STILL_BUSY_EVERY", 0.001)
    with open(os.devnull) as lock:
        shown = steps.Steps(tmp_path / "setup.log", lock.fileno(), clock=lambda: next(ticks))
        seen = ""
        with shown.step("compiler"):
            while "compiler ... busy for" not in seen:
                seen += capsys.readouterr().err


class Commands:
    """Substitute for the steps of the set-up: it keeps the commands, and each of them fails."""

    def __init__(self):
        self.run_there = []
        self.titles = []

    @contextlib.contextmanager
    def step(self, title):
        self.titles.append(title)
        yield

    def run(self, command, env, may_fail=False, cwd=None):
        assert may_fail
        self.run_there.append(list(map(str, command)))
        return "--target" in command  # uv itself


def test_the_station_is_tried_once_and_its_failure_breaks_nothing(
    set_up_modules, monkeypatch, tmp_path
):
    import setup_env

    monkeypatch.setattr(setup_env, "STATE", tmp_path / "state.json")
    monkeypatch.setattr(setup_env, "SOURCED", False)
    for _ in range(2):
        environment = setup_env.Environment(0)
        environment._steps = steps = Commands()
        environment.ensure_stations()
        environment.ensure_stations()
    assert steps.run_there == []  # the second environment knows from the file
    (tmp_path / "state.json").unlink()
    environment = setup_env.Environment(0)
    environment._steps = steps = Commands()
    environment.ensure_stations()
    _, command = steps.run_there
    assert "--require-hashes" in command
    assert command[-1].endswith("requirements-stations.txt")


@pytest.mark.ros
@pytest.mark.needs("make env")
def test_the_environment_ignores_what_another_ros_left_behind(tmp_path):
    """The wheels' rclpy starts although another ROS left its settings behind.

    They are a foreign middleware, prefix, library folder, mark and PYTHONPATH.
    """
    foreign = tmp_path / "opt" / "ros"
    (foreign / "lib" / "rclpy").mkdir(parents=True)
    (foreign / "lib" / "rclpy" / "__init__.py").write_text("raise ImportError('foreign rclpy')\n")
    (foreign / "lib" / "librcl.so").write_text("not a library\n")
    (foreign / "share" / "rclpy").mkdir(parents=True)
    env = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp",
        "AMENT_PREFIX_PATH": str(foreign),
        "LD_LIBRARY_PATH": f"{foreign}/lib",
        "PYTHONPATH": f"{foreign}/lib",
        "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1",
    }
    program = (
        "import os, rclpy, rfly_suite.msg\n"
        "context = rclpy.Context(); rclpy.init(context=context); rclpy.shutdown(context=context)\n"
        "print(os.environ['AMENT_PREFIX_PATH'], os.environ['LD_LIBRARY_PATH'].split(':')[0], "
        "sep='\\n')"
    )
    ended = run([sys.executable, "-c", program], env, tmp_path)

    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [sys.prefix, f"{sys.prefix}/lib"]
    assert str(foreign) not in ended.stdout


@pytest.mark.ros
@pytest.mark.needs("make env")
def test_the_set_up_starts_its_command_in_an_activated_shell_too(tmp_path):
    """The environment's own `python3` runs the set-up there, and its process goes on."""
    program = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'wheels')!r})\n"
        "from variables import run_environment\n"
        "os.execve(sys.executable, [sys.executable, '-c', 'import rclpy'], run_environment())\n"
    )
    ended = run([sys.executable, "-c", program], {"PATH": os.environ["PATH"]}, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.ros
@pytest.mark.needs("make env")
def test_a_sourced_workspace_is_an_overlay_of_the_environment(tmp_path):
    """The package's prefix and libraries precede those of .venv, also where .venv's came first."""
    workspace = tmp_path / "install" / "my_robot"
    (workspace / "lib").mkdir(parents=True)
    program = (
        "import os\n"
        "print(os.environ['AMENT_PREFIX_PATH'])\n"
        "print(*os.environ['LD_LIBRARY_PATH'].split(':')[:2], sep=':')"
    )
    for libraries in (
        [f"{workspace}/lib", "/elsewhere/lib"],
        [f"{sys.prefix}/lib", f"{workspace}/lib"],
    ):
        env = {
            "PATH": os.environ["PATH"],
            "AMENT_PREFIX_PATH": str(workspace),
            "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        }
        ended = run([sys.executable, "-c", program], env, tmp_path)
        assert ended.stdout.splitlines() == [
            f"{workspace}:{sys.prefix}",
            f"{workspace}/lib:{sys.prefix}/lib",
        ]


@pytest.mark.ros
@pytest.mark.needs("make env")
@pytest.mark.parametrize(
    "command",
    [
        ["python", "-c", "import rclpy, rfly_suite.msg, rfly_terrain, tf2_msgs.msg"],
        ["rfly", "--help"],
    ],
)
def test_the_environment_needs_no_variable(command, tmp_path):
    ended = run([f"{sys.prefix}/bin/{command[0]}", *command[1:]], {}, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
