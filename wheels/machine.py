# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of the machine before anything is downloaded, and installation of what it lacks."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path

from steps import SetupError, Steps

_C_TEST = "#include <stdio.h>\nint main(void) { return 0; }\n"
_CXX_TEST = "#include <vector>\nint main() { return 0; }\n"
FOR_TESTS = ("chromium", "libsdformat12-12")
"""Debian's packages that tests use: a browser, and Gazebo's library of models."""


@dataclass(frozen=True)
class Toolchain:
    """The machine's compilers; `zig` if no C and C++ compiler works and the ziglang wheel is
    needed.
    """

    zig: bool


def check_platform() -> None:
    """Raise SetupError if the ROS wheels cannot run here.

    They need x86-64 Linux with glibc 2.28 or newer.
    """
    hint = "Without a sourced ROS 2 only the libraries run here: make test-lib, pip install ."
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise SetupError(
            f"the ROS wheels are for x86-64 Linux, not {platform.machine()} {platform.system()}. "
            f"{hint}"
        )

    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        libc = ""
    version = libc.removeprefix("glibc ").split(".")
    if not libc.startswith("glibc ") or tuple(map(int, version[:2])) < (2, 28):
        raise SetupError(
            f"the ROS wheels need glibc 2.28 or newer; this has {libc or 'none'}. {hint}"
        )


def prepare(steps: Steps, *, need_compiler: bool) -> Toolchain:
    """Check for a compiler, Python's headers and the venv module, and install them where possible.

    Return the compilers to use; raise SetupError with a command that helps if something is missing.
    """
    missing = _missing(need_compiler)

    # install as root
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        packages = sorted({package for packages in missing.values() for package in packages})
        with steps.step(f"apt-get install {' '.join(packages)}"):
            env = _apt_environment()
            # an unreachable extra source need not stop the set-up
            steps.run(["apt-get", "update"], env, may_fail=True)
            steps.run(["apt-get", "install", "-y", "--no-install-recommends", *packages], env)
        missing = _missing(need_compiler)

    # zig replaces compilers
    zig = "a C and C++ compiler" in missing
    missing.pop("a C and C++ compiler", None)

    if missing:
        packages = sorted({package for packages in missing.values() for package in packages})
        root = "" if os.geteuid() == 0 else "sudo "
        raise SetupError(
            f"this machine lacks {' and '.join(missing)} for {sys.executable}. On Debian or "
            "Ubuntu: "
            f"{root}apt-get install {' '.join(packages)}, then run the same command again. "
            "Elsewhere use a Python that "
            "brings them (pyenv, uv): make env PYTHON=/path/to/python3"
        )
    return Toolchain(zig=zig)


def install_for_tests(steps: Steps) -> None:
    """Install what tests take from Debian, where possible; without it they are skipped."""
    steps.run(["apt-get", "update"], _apt_environment(), may_fail=True)
    for package in FOR_TESTS:
        steps.run(
            ["apt-get", "install", "-y", "--no-install-recommends", package],
            _apt_environment(),
            may_fail=True,
        )


def can_install_for_tests() -> bool:
    """Return whether one of Debian's packages for tests is missing and may be installed.

    Ubuntu's package of Chromium only starts a snap.
    """
    release = Path("/etc/os-release")
    debian = release.exists() and "ID=debian" in release.read_text(encoding="utf-8").split("\n")
    return (
        debian
        and os.geteuid() == 0
        and bool(shutil.which("apt-get"))
        and not (shutil.which("chromium") and find_library("sdformat12"))
    )


def _apt_environment() -> dict[str, str]:
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def _missing(need_compiler: bool) -> dict[str, list[str]]:
    """Return what is missing, in words, and the Debian packages that bring it."""
    version = f"python3.{sys.version_info.minor}"
    default = Path("/usr/bin/python3")
    if default.exists() and default.resolve() == Path(sys.executable).resolve():
        version = "python3"

    missing = {}
    if not _has_venv():
        missing["the venv module"] = [f"{version}-venv"]

    if need_compiler:
        if not (Path(sysconfig.get_config_var("INCLUDEPY") or "") / "Python.h").is_file():
            missing["Python's headers"] = [f"{version}-dev"]
        has_c = _compiles("CC", ("cc", "gcc", "clang"), "c", _C_TEST)
        if not (has_c and _compiles("CXX", ("c++", "g++", "clang++"), "c++", _CXX_TEST)):
            missing["a C and C++ compiler"] = ["gcc", "g++", "libc6-dev"]
    return missing


def _has_venv() -> bool:
    try:
        import ensurepip
        import venv  # noqa: F401
    except ImportError:
        return False
    return bool(ensurepip.version())


def _compiles(variable: str, names: tuple[str, ...], language: str, source: str) -> bool:
    """Return whether the compiler that CMake would choose makes a program.

    A compiler may be installed without the C library's headers.
    """
    chosen = shlex.split(os.environ.get(variable, ""))
    if not chosen:
        chosen = [path for name in names if (path := shutil.which(name))][:1]
    if not chosen:
        return False

    with tempfile.TemporaryDirectory() as folder:
        command = [*chosen, "-x", language, "-", "-o", os.path.join(folder, "program")]
        try:
            process = subprocess.run(
                command, input=source, text=True, capture_output=True, check=False
            )
        except OSError:
            return False
    return process.returncode == 0


def make_zig_compilers(folder: Path, python: Path) -> dict[str, Path]:
    """Write wrappers around the ziglang wheel of `python`; return the CMake variables for them."""
    folder.mkdir(parents=True, exist_ok=True)
    variables = {
        "cc": "CMAKE_C_COMPILER",
        "c++": "CMAKE_CXX_COMPILER",
        "ar": "CMAKE_AR",
        "ranlib": "CMAKE_RANLIB",
    }

    tools = {}
    for tool, variable in variables.items():
        wrapper = folder / tool
        wrapper.write_text(
            f'#!/bin/sh\nexec {shlex.quote(str(python))} -m ziglang {tool} "$@"\n',
            encoding="utf-8",
        )
        wrapper.chmod(0o755)
        tools[variable] = wrapper
    return tools
