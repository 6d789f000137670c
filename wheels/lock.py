# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Renew the locks, which are lists of exact versions with hashes.

- wheels/requirements.txt: the libraries, the viewer and ROS;
- requirements-dev.txt: the libraries and the extras of development, no ROS;
- requirements-peers.txt: the libraries that `make bench` compares with;
- requirements-stations.txt: a ground station for the tests, without what it depends on;
- requirements-colcon.txt: colcon and ROS's rules for CMake, from requirements-colcon.in;
- requirements-docs.txt: the tools that build the site;
- requirements-uv.txt and requirements-zig.txt: tools of the set-up.

One resolution for Python 3.10 to 3.13 comes first and constrains the other lists, so that they
never disagree. The lists of tools are not constrained, as tools are installed apart. Only the
public index counts: local wheel folders and configuration are left out, and no address is written.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WHEELS = Path(__file__).resolve().parent
ROOT = WHEELS.parent


def compile_lock(output: Path, *inputs: str | Path, stdin: str | None = None) -> None:
    """Run one `uv pip compile`, universal and with hashes; `uv` must be on PATH."""
    env = {name: value for name, value in os.environ.items() if not name.endswith("_FIND_LINKS")}
    command = [
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--no-config",
        "--universal",
        "--python-version",
        "3.10",
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--upgrade",
        *inputs,
        "--output-file",
        output,
    ]
    subprocess.run(list(map(str, command)), cwd=ROOT, env=env, input=stdin, text=True, check=True)


def extras(*names: str) -> list[str]:
    """Return the options that select extras of pyproject.toml."""
    return [option for name in names for option in ("--extra", name)]


def main() -> None:
    libraries = "pyproject.toml"
    ros = "wheels/requirements.in"
    colcon = "wheels/requirements-colcon.in"
    pyproject = (ROOT / libraries).read_text(encoding="utf-8")
    for_dev = extras(
        *("dev", "foxglove", "geo", "learn", "log", "mavlink", "mesh", "osm", "plot", "sweep"),
        "view",
    )

    with tempfile.TemporaryDirectory() as folder:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--target",
            folder,
        ]
        subprocess.run([*pip, "-r", WHEELS / "requirements-uv.txt"], check=True)
        os.environ["PATH"] = os.pathsep.join([f"{folder}/bin", os.environ["PATH"]])

        # one resolution for all
        everything = Path(folder) / "everything.txt"
        compile_lock(everything, *for_dev, *extras("peers"), libraries, ros, colcon)

        # the lists within it
        compile_lock(
            WHEELS / "requirements.txt",
            "-c",
            everything,
            *extras("view", "plot"),
            libraries,
            ros,
        )
        compile_lock(WHEELS / "requirements-dev.txt", "-c", everything, *for_dev, libraries)
        compile_lock(
            WHEELS / "requirements-peers.txt", "-c", everything, *extras("peers"), libraries
        )

        # numba imports coverage where it finds it, which costs each process 0.15 s
        without = [f"--no-emit-package={name}" for name in ("coverage", "pytest-cov")]
        compile_lock(WHEELS / "requirements-colcon.txt", "-c", everything, *without, colcon)

        stations = re.findall(r'"([^"]+)"', re.findall(r"^stations = \[(.*)\]", pyproject, re.M)[0])
        compile_lock(
            WHEELS / "requirements-stations.txt", "--no-deps", "-", stdin="\n".join(stations)
        )

        # tools, installed apart
        docs = re.findall(
            r'"([^"]+)"', re.findall(r"^docs = \[(.*?)\]", pyproject, re.MULTILINE)[0]
        )
        for name, packages in (("docs", docs), ("uv", ["uv"]), ("zig", ["ziglang"])):
            compile_lock(WHEELS / f"requirements-{name}.txt", "-", stdin="\n".join(packages))


if __name__ == "__main__":
    main()
