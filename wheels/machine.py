"""What the machine must bring before anything is downloaded, and how what is missing gets there."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from steps import SetupError, Steps

_C_TEST = "#include <stdio.h>\nint main(void) { return 0; }\n"
_CXX_TEST = "#include <vector>\nint main() { return 0; }\n"


@dataclass(frozen=True)
class Toolchain:
    """`zig`: no working C and C++ compiler was found, the one of the ziglang wheel is to be used."""

    zig: bool


def check_platform() -> None:
    """Raise SetupError where the ROS wheels cannot run: they are x86-64 Linux with glibc 2.28 or
    newer.
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
    """See that there are a compiler, Python's headers and the venv module; install what is missing
    where one can.
    """
    missing = _missing(need_compiler)
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        packages = sorted({package for packages in missing.values() for package in packages})
        with steps.step(f"apt-get install {' '.join(packages)}"):
            env = _apt_environment()
            steps.run(
                ["apt-get", "update"], env, may_fail=True
            )  # an unreachable extra source need not be the end
            steps.run(["apt-get", "install", "-y", "--no-install-recommends", *packages], env)
        missing = _missing(need_compiler)
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


def install_chromium(steps: Steps) -> None:
    """See that the tests find a browser, where it can be installed. Without it they are skipped
    with the reason.
    """
    steps.run(["apt-get", "update"], _apt_environment(), may_fail=True)
    steps.run(
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
        _apt_environment(),
        may_fail=True,
    )


def can_install_chromium() -> bool:
    """True where Debian's Chromium is missing and may be installed. (Ubuntu's package only starts a
    snap.)
    """
    release = Path("/etc/os-release")
    debian = release.exists() and "ID=debian" in release.read_text(encoding="utf-8").split("\n")
    return (
        debian
        and os.geteuid() == 0
        and bool(shutil.which("apt-get"))
        and not shutil.which("chromium")
    )


def can_build_firmware() -> bool:
    """True where Betaflight's makefile finds what it builds with."""
    return sys.platform == "linux" and bool(shutil.which("gcc")) and bool(shutil.which("make"))


def _apt_environment() -> dict[str, str]:
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def _missing(need_compiler: bool) -> dict[str, list[str]]:
    """What is missing, in words, and the Debian packages that bring it."""
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
        if not (_compiles("CC", ("cc", "gcc", "clang"), "c", _C_TEST)
                and _compiles("CXX", ("c++", "g++", "clang++"), "c++", _CXX_TEST)):  # fmt: skip
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
    """Whether the compiler that CMake would take makes a program (it may be there without the C
    library's headers).
    """
    chosen = shlex.split(os.environ.get(variable, ""))
    if not chosen:
        chosen = [path for name in names if (path := shutil.which(name))][:1]
    if not chosen:
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = [*chosen, "-x", language, "-", "-o", os.path.join(folder, "program")]
        try:
            return (
                subprocess.run(
                    command, input=source, text=True, capture_output=True, check=False
                ).returncode
                == 0
            )
        except OSError:
            return False


def make_zig_compilers(folder: Path, python: Path) -> dict[str, Path]:
    """Write wrappers around the ziglang wheel of `python`; the CMake variables that name them."""
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
