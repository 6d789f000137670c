# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The console scripts of .venv."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess

from layout import PYTHON, ROOT, VENV

_BLOCK = "--block-signal=INT,TERM,HUP"
"""Option of GNU's env, from coreutils 8.31."""


def write_scripts() -> None:
    """Write the console scripts anew.

    They start through sh, since a #! line holds at most 127 characters and no space. They import
    their function directly, since a look-up in the installed metadata costs a node 50 ms.

    Python starts with its stop signals blocked, until `rfly_suite_environment` has installed its
    handlers: Python's own handler, in place 10 ms earlier, would print a trace.
    """
    can_block = (
        subprocess.run(["env", _BLOCK, "true"], check=False, capture_output=True).returncode == 0
    )

    block = f"env {_BLOCK} " if can_block else ""
    for config, folder in (("cli.cfg", VENV / "bin"), ("nodes.cfg", VENV / "lib" / "rfly_suite")):
        folder.mkdir(exist_ok=True)

        parser = configparser.ConfigParser()
        parser.read(ROOT / "cmake" / config, encoding="utf-8")

        for line in parser["options.entry_points"]["console_scripts"].split("\n"):
            if not line.strip():
                continue

            name, module, function = re.fullmatch(
                r"\s*(\S+)\s*=\s*([\w.]+):(\w+)\s*", line
            ).groups()

            part = folder / f".{name}.part"
            part.write_text(
                f"#!/bin/sh\n'''exec' {block}{shlex.quote(str(PYTHON))} \"$0\" \"$@\"\n' '''\n"
                f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n",
                encoding="utf-8",
            )
            part.chmod(0o755)
            part.replace(folder / name)
