# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Make .venv ready (virtual environment, ROS wheels, interfaces, this package), then run a command.

    sh wheels/setup.sh \
        [--dev | --lib | --browser | --stations | --colcon | --peers | --docs ...]
        [command ...]

setup.sh picks the Python and calls this module. With a sourced ROS (RFLY_ROS=sourced) .venv sees
ROS's own Python packages and gets only those that they lack. The options:

- `--lib`: the quick way for library tests: no ROS, no compiler, packages imported from the tree;
- `--dev`: everything that the tests need;
- `--browser`: also Chromium and libsdformat, where possible, for the tests of `rfly view` and of
  the URDF;
- `--stations`: also MAVProxy, a ground station, for the tests that let it fly a vehicle;
- `--colcon`: also colcon and ROS's rules for CMake, to build this and other packages on the wheels;
- `--peers`: also the libraries that the benchmarks compare with;
- `--docs`: also the tools that build the site of the documents, in a folder outside .venv, since
  their versions need not fit those of ROS.

Finished work is noted in .venv/rfly_suite.json and not repeated, so a second run takes a blink. An
interrupted step, a moved checkout and a vanished Python start over. Standard library only.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import machine
from interfaces import BUILDER, InterfacePackage, interface_packages
from layout import (
    BUILD,
    COLCON_LOCK,
    DOCS_LOCK,
    DOCS_TOOLS,
    INSTALLED,
    LIBRARY_LOCK,
    PEERS_LOCK,
    PYTHON,
    ROOT,
    ROS_LOCK,
    SITE_PACKAGES,
    SOURCED,
    STATE,
    STATIONS_LOCK,
    UV_LOCK,
    VENV,
    WHEELS,
)
from scripts import write_scripts
from steps import SetupError, Steps
from tree import (
    cmake_inputs,
    digest,
    digest_names,
    installed_sources,
    link_sources,
    remove,
    remove_if_only_caches,
    slim,
)
from variables import base_environment, run_environment, uv_settings

from rfly_common.kernels.sources import digest_of_kernels

OPTIONS = (
    "--dev",
    "--lib",
    "--browser",
    "--stations",
    "--colcon",
    "--peers",
    "--docs",
)


class Environment:
    """The virtual environment and its contents so far."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self.world = f"ROS 2 {os.environ.get('ROS_DISTRO')}" if SOURCED else "ROS 2 Jazzy wheels"
        self.state = self._read_state()
        self._steps: Steps | None = None

    @property
    def steps(self) -> Steps:
        """The progress display; its first use announces that there is something to do."""
        if self._steps is None:
            self._steps = Steps(BUILD / "setup.log", self._lock)
            version = ".".join(map(str, sys.version_info[:3]))
            self._steps.say(f"rfly_suite: setting up .venv (Python {version}, {self.world})")
        return self._steps

    def ensure(self, *, lib: bool, dev: bool) -> None:
        """Install what is missing.

        `lib`: the libraries and their tools alone. `dev`: everything that the tests need; otherwise
        what the demo needs.
        """
        if not self._venv_is_good() or self.state["python"] != os.path.realpath(sys.executable):
            self._make_venv(lib)

        # packages
        if SOURCED:
            self._install_missing_packages()
        elif not lib:
            self._install_packages(ros=ROS_LOCK, **({"lib": LIBRARY_LOCK} if dev else {}))
        else:
            self._install_packages(
                **({"ros": ROS_LOCK} if self.state.get("ros") else {}), lib=LIBRARY_LOCK
            )

        if not lib:
            self._build(dev)

        if self._steps is not None:
            self._steps.finish(".venv is ready")

    def ensure_peers(self) -> None:
        """Install the libraries that `make bench` compares with; it omits rows of missing ones."""
        key = digest([PEERS_LOCK])
        if self.state.get("peers") == key:
            return

        with self.steps.step("libraries that the benchmarks compare with"):
            if SOURCED:
                constraint = (
                    ["-c", BUILD / "constraints.txt"]
                    if (BUILD / "constraints.txt").is_file()
                    else []
                )
                pip = _pip_install(*constraint)
                self.steps.run(
                    [*pip, *dict(_requirements("peers")).values()],
                    run_environment(),
                    may_fail=True,
                )
            else:
                self._uv("-r", PEERS_LOCK)
        self._write_state(peers=key)

    def ensure_browser(self) -> None:
        """Install Chromium for the tests of `rfly view`, and libsdformat for those of the URDF.

        If that fails, it is not tried again in this .venv.
        """
        packages = " ".join(machine.FOR_TESTS)
        if self.state.get("browser") == packages or not machine.can_install_for_tests():
            return
        with self.steps.step(f"apt-get install {packages} (for tests; they do without it too)"):
            machine.install_for_tests(self.steps)
        self._write_state(browser=packages)

    def ensure_stations(self) -> None:
        """Install MAVProxy, without the libraries of its windows, for the tests that need it.

        It is tried once for each version of its lock.
        """
        key = digest([STATIONS_LOCK])
        if self.state.get("stations") == key:
            return

        with self.steps.step("MAVProxy (for tests; they do without it too)"):
            if SOURCED:
                command = _pip_install("--no-deps", "--require-hashes", "-r", STATIONS_LOCK)
                self.steps.run(command, run_environment(), may_fail=True)
            else:
                self._uv("--no-deps", "--require-hashes", "-r", STATIONS_LOCK)
        self._write_state(stations=key)

    def ensure_colcon(self) -> None:
        """Install colcon and what `colcon build` needs; an installed ROS brings its own."""
        key = digest([COLCON_LOCK])
        if SOURCED or self.state.get("colcon") == key:
            return

        with self.steps.step("colcon and ROS's rules for CMake"):
            # the list is whole, but for what colcon can do without
            options = ("--no-deps", "--require-hashes", "-r", COLCON_LOCK)
            if not self._uv(*options):
                self.steps.run(_pip_install(*options), run_environment())
        self._write_state(colcon=key)

    def ensure_docs(self) -> None:
        """Install Sphinx and its extensions, which `make docs` needs."""
        key = digest([DOCS_LOCK])
        if self.state.get("docs") == key and DOCS_TOOLS.is_dir():
            return

        with self.steps.step("tools that build the site of the documents"):
            remove(DOCS_TOOLS)
            pip = _pip_install("--require-hashes")
            self.steps.run([*pip, "--target", DOCS_TOOLS, "-r", DOCS_LOCK], run_environment())
        self._write_state(docs=key)

    def _read_state(self) -> dict[str, str]:
        try:
            state = json.loads(STATE.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def _write_state(self, **changes: str | None) -> None:
        self.state.update({key: value for key, value in changes.items() if value is not None})
        for key in [key for key, value in changes.items() if value is None]:
            self.state.pop(key, None)

        part = STATE.with_suffix(".part")
        part.write_text(json.dumps(self.state, indent=1) + "\n", encoding="utf-8")
        part.replace(STATE)

    def _venv_is_good(self) -> bool:
        return (
            "unfinished" not in self.state
            and self.state.get("root") == str(ROOT)
            and self.state.get("world") == self.world
            and self.state.get("python") == os.path.realpath(PYTHON)
            and os.access(PYTHON, os.X_OK)
        )

    def other_python(self) -> str | None:
        """Return the Python of a good .venv, if it is another one and PYTHON does not name this
        one.
        """
        python = self.state.get("python")
        if (
            os.environ.get("PYTHON")
            or python == os.path.realpath(sys.executable)
            or not self._venv_is_good()
        ):
            return None
        return python

    def _make_venv(self, lib: bool) -> None:
        if VENV.exists() and not STATE.exists() and any(VENV.iterdir()):
            raise SetupError(
                f"{VENV} exists and was not made by this set-up. Move it away or remove it: make "
                "clean"
            )
        if not (lib or SOURCED):
            machine.check_platform()
        machine.prepare(self.steps, need_compiler=not lib)

        self.state = {}
        with self.steps.step("virtual environment"):
            remove(VENV)
            VENV.mkdir()
            self._write_state(unfinished="virtual environment")
            options = ["--system-site-packages"] if SOURCED else []
            self.steps.run([sys.executable, "-m", "venv", *options, VENV], base_environment())
            self._write_state(
                unfinished=None,
                root=str(ROOT),
                world=self.world,
                python=os.path.realpath(sys.executable),
            )

    def _install_packages(self, **files: Path) -> None:
        locks = {key: digest([file]) for key, file in files.items()}
        if all(self.state.get(key) == value for key, value in locks.items()):
            return
        if any(self.state.get(key, value) != value for key, value in locks.items()):
            # a lock has changed, and packages that it dropped must not stay
            self._make_venv(lib="ros" not in locks)

        self._write_state(unfinished="packages")
        count = sum(
            line[:1].isalnum()
            for file in files.values()
            for line in file.read_text(encoding="utf-8").splitlines()
        )

        with self.steps.step(
            f"packages (up to {count}, most of them ROS)" if "ros" in locks else "packages"
        ):
            env = run_environment()
            pip = _pip_install("--require-hashes")
            options = [option for file in files.values() for option in ("-r", file)]
            # the demo's Python compiles the few modules that it needs itself; otherwise each start
            # would take seconds
            compiled = (
                ["--compile-bytecode"]
                if "lib" in files or env.get("PYTHONDONTWRITEBYTECODE")
                else []
            )
            if not self._uv(*compiled, *options):
                # pip knows some proxies and mirrors that uv does not
                self.steps.run([*pip, *options], env)
            slim()
        self._write_state(unfinished=None, **locks)

    def _uv(self, *options: str | Path) -> bool:
        """Run `uv pip install` and return whether it succeeded; uv, 38 MB, is then removed."""
        env = run_environment()
        folder = BUILD / "uv"
        pip = _pip_install("--require-hashes")
        uv = [folder / "bin" / "uv", "pip", "install", "--python", PYTHON]

        remove(folder)
        try:
            return self.steps.run(
                [*pip, "--target", folder, "-r", UV_LOCK], env, may_fail=True
            ) and self.steps.run([*uv, *options], {**env, **uv_settings(env)}, may_fail=True)
        finally:
            remove(folder)

    def _install_missing_packages(self) -> None:
        """Install what a sourced ROS and the system lack; the system's NumPy is never replaced."""
        key = digest([ROOT / "pyproject.toml"])
        if self.state.get("lib") == key:
            return

        with self.steps.step("packages that ROS and the system lack"):
            env = run_environment()
            wanted = dict(_requirements("dependencies", "dev", "plot", "view"))
            script = WHEELS / "missing_modules.py"
            report = BUILD / "missing.json"
            self.steps.run([PYTHON, script, report, *wanted], env)
            found = json.loads(report.read_text(encoding="utf-8"))
            if found["missing"]:
                constraint = BUILD / "constraints.txt"
                constraint.write_text(
                    f"numpy=={found['numpy']}\n" if found["numpy"] else "",
                    encoding="utf-8",
                )
                pip = _pip_install("-c", constraint)
                self.steps.run([*pip, *(wanted[module] for module in found["missing"])], env)
        self._write_state(lib=key, ros="sourced", built=None)

    def _build(self, dev: bool) -> None:
        """Build the interfaces and compile missing kernels, all at once, and install this package.

        If only the set of Python files changed, it only installs. The installed modules are links
        into the tree, so an edit needs no build.
        """
        configured = digest(cmake_inputs())
        files = digest_names(installed_sources())
        kernels = self._kernels_to_compile(dev)
        jobs = [functools.partial(self._compile_kernels, dev)] if kernels else []
        packages = [] if SOURCED else interface_packages()

        # the build is up to date
        if self.state.get("built") == configured and all(
            package.manifest.exists() for package in packages
        ):
            if self.state.get("files") != files:
                with self.steps.step("installing new and removed files"):
                    self._install()
                self._write_state(files=files)
            if jobs:
                with self.steps.step("compiling the numerical kernels"):
                    self.steps.together(jobs)
                self._write_state(**kernels)
            return

        # or built for another .venv
        interrupted = self.state.get("building") or self.state.get("built") is None
        if SOURCED and interrupted:
            remove(BUILD / "rfly_suite")
        self._write_state(building="yes")

        try:
            missing = [package for package in packages if not package.restore()]
            compilers = self._prepare_to_build() if missing or SOURCED else {}
            if SOURCED:
                jobs.append(functools.partial(self._configure_and_build, compilers))

            # two processes of about equal work
            for several in (
                [p for p in missing if p.source == ROOT],
                [p for p in missing if p.source != ROOT],
            ):
                if several:
                    jobs.append(functools.partial(self._build_interfaces, several, compilers))

            with self.steps.step(
                "interfaces and numerical kernels" if missing or SOURCED else "package and kernels"
            ):
                self.steps.together(jobs)
                self._install()
                for package in missing:
                    package.keep()
        except SetupError:
            # not interrupted: the build tree is sound
            self._write_state(building=None, built="failed")
            raise
        self._write_state(building=None, built=configured, files=files, **kernels)

    def _prepare_to_build(self) -> dict[str, Path]:
        """Return CMake's variables for the compilers, if they are not the machine's own."""
        return self._install_zig() if machine.prepare(self.steps, need_compiler=True).zig else {}

    def _install_zig(self) -> dict[str, Path]:
        with self.steps.step("compiler (zig, as there is none; its first use takes a minute)"):
            pip = _pip_install("--require-hashes")
            self.steps.run([*pip, "-r", WHEELS / "requirements-zig.txt"], run_environment())
            return machine.make_zig_compilers(BUILD / "zig", PYTHON)

    def _build_interfaces(
        self, packages: list[InterfacePackage], compilers: dict[str, Path]
    ) -> None:
        command = [PYTHON, BUILDER, BUILD, VENV]
        for package in packages:
            remove(BUILD / package.name)
            command += [package.name, package.source]
        variables = {"CC": "CMAKE_C_COMPILER", "CXX": "CMAKE_CXX_COMPILER"}
        chosen = {
            name: shlex.quote(str(compilers[key]))
            for name, key in variables.items()
            if key in compilers
        }

        self.steps.run(command, {**run_environment(), **chosen}, job=packages[0].name)

    def _configure_and_build(self, compilers: dict[str, Path]) -> None:
        """Build the whole package with CMake, as colcon does."""
        env = run_environment()
        generator = ["-G", "Ninja"] if shutil.which("ninja", path=env["PATH"]) else []
        configure = [
            "cmake",
            *generator,
            "-S",
            ROOT,
            "-B",
            BUILD / "rfly_suite",
            f"-DCMAKE_INSTALL_PREFIX={VENV}",
            f"-DPython3_EXECUTABLE={PYTHON}",
            "-DBUILD_TESTING=OFF",
            "-DAMENT_CMAKE_SYMLINK_INSTALL=ON",
            *(f"-D{variable}={tool}" for variable, tool in compilers.items()),
        ]
        self.steps.run(configure, env, job="rfly_suite")

        build = [
            "cmake",
            "--build",
            BUILD / "rfly_suite",
            "--parallel",
            str(os.cpu_count() or 1),
        ]
        self.steps.run(build, env, job="rfly_suite")

    def _install(self) -> None:
        """Install, then remove files of an earlier install that are no longer part of it."""
        if SOURCED:
            # ament writes its manifest of links into the current folder, and neither it nor CMake
            # removes anything
            folder = BUILD / "rfly_suite"
            self.steps.run(["cmake", "--install", folder], run_environment(), cwd=folder)
            manifests = [
                folder / "install_manifest.txt",
                folder / "symlink_install_manifest.txt",
            ]
            linked = set()
        else:
            manifests = [package.manifest for package in interface_packages()]
            linked = link_sources()

        files = [
            manifest.read_text(encoding="utf-8").splitlines()
            for manifest in manifests
            if manifest.exists()
        ]
        installed = linked.union(*files)

        # files of an earlier install
        if INSTALLED.exists():
            for line in INSTALLED.read_text(encoding="utf-8").splitlines():
                if line and line not in installed:
                    Path(line).unlink(missing_ok=True)
        INSTALLED.write_text("".join(f"{line}\n" for line in sorted(installed)), encoding="utf-8")

        for folder in SITE_PACKAGES.glob("rfly_*"):
            if folder.is_dir():
                remove_if_only_caches(folder)
        write_scripts()
        shutil.copyfile(
            WHEELS / "rfly_suite_environment.py",
            SITE_PACKAGES / "rfly_suite_environment.py",
        )

        # the name sorts before those of the other .pth files, so this one is executed first
        (SITE_PACKAGES / "_rfly_suite.pth").write_text(
            "import rfly_suite_environment\n", encoding="utf-8"
        )

    def _kernels_to_compile(self, dev: bool) -> dict[str, str]:
        """Return what to note after the kernels are compiled; empty if they already are."""
        kernels = digest_of_kernels()
        done = "kernels" if dev else "demo_kernels"
        if kernels in (self.state.get("kernels"), self.state.get(done)):
            return {}
        return {done: kernels}

    def _compile_kernels(self, dev: bool) -> None:
        """Compile kernels into the user's cache, so that no node and no query waits for the
        compiler.

        Without `dev`, compile those of the demo only.
        """
        parts = [] if dev else ["terrain", "trajectory"]
        env = {**run_environment(), "PYTHONPATH": str(ROOT)}
        self.steps.run([PYTHON, "-m", "rfly_bringup.warm_up", *parts], env, cwd=VENV, job="kernels")


def _pip_install(*options: str | Path) -> list[str | Path]:
    """Return a command of .venv's pip that installs what is appended."""
    pip: list[str | Path] = [PYTHON, "-m", "pip", "install"]
    return [*pip, "--quiet", "--disable-pip-version-check", *options]


def _requirements(*tables: str) -> Iterator[tuple[str, str]]:
    """Yield (module to look for, requirement) of these lists of pyproject.toml.

    Packages that hold types only are omitted.
    """
    modules = {
        "opencv-python-headless": "cv2",
        "pytest-xdist": "xdist",
        "PyYAML": "yaml",
    }

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for table in tables:
        block = re.search(rf"^{table} = \[(.*?)\](?:  #.*)?$", text, re.MULTILINE | re.DOTALL)
        for requirement in re.findall(r'"([^"]+)"', block.group(1) if block else ""):
            name = re.split(r"[<>=!~;\s]", requirement)[0]
            if not name.startswith("types-"):
                yield modules.get(name, name), requirement


@contextmanager
def only_one() -> Iterator[int]:
    """Hold a lock and yield its descriptor.

    Two set-ups of one checkout at the same time would build into each other.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(
                "rfly_suite: another set-up of this checkout is running; waiting for it",
                file=sys.stderr,
                flush=True,
            )
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def leading_options(arguments: list[str]) -> tuple[set[str], list[str]]:
    """Split the arguments into the set-up's own options and the command with its options."""
    count = next(
        (k for k, argument in enumerate(arguments) if argument not in OPTIONS),
        len(arguments),
    )
    return set(arguments[:count]), arguments[count:]


def main(arguments: list[str]) -> None:
    options, command = leading_options(arguments)

    lib = "--lib" in options
    try:
        # setup.sh blocks Ctrl-C while Python starts
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        with only_one() as lock:
            environment = Environment(lock)
            python = environment.other_python()
            if python:
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                os.execv(python, [python, "-E", "-s", __file__, *arguments])
            environment.ensure(lib=lib, dev="--dev" in options)
            if "--browser" in options:
                environment.ensure_browser()
            if "--stations" in options:
                environment.ensure_stations()
            if "--colcon" in options:
                environment.ensure_colcon()
            if "--peers" in options:
                environment.ensure_peers()
            if "--docs" in options:
                environment.ensure_docs()
        if command:
            run(command, lib, "--docs" in options)
    except SetupError as error:
        sys.exit(f"rfly_suite: {error}")
    except KeyboardInterrupt:
        sys.exit("\nrfly_suite: interrupted; the same command goes on from here")


def run(command: list[str], lib: bool, docs: bool) -> None:
    """Replace this process by the command in the finished environment."""
    env = run_environment()
    if lib:
        env["PYTHONPATH"] = os.pathsep.join([*([str(DOCS_TOOLS)] if docs else []), str(ROOT)])

    program = shutil.which(command[0], path=env["PATH"])
    if program is None:
        sys.exit(f"rfly_suite: {command[0]}: not found in .venv or on PATH")
    os.execve(program, command, env)


if __name__ == "__main__":
    main(sys.argv[1:])
