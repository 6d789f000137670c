"""The console scripts of .venv."""

from __future__ import annotations

import configparser
import re
import shlex

from layout import PYTHON, ROOT, VENV


def write_scripts() -> None:
    """Write the console scripts anew: started through sh, since a #! line takes no space and 127 characters at most,
    and importing their function at once, since looking it up in the installed metadata costs a node 50 ms."""
    for config, folder in (("cli.cfg", VENV / "bin"), ("nodes.cfg", VENV / "lib" / "rfly_suite")):
        parser = configparser.ConfigParser()
        parser.read(ROOT / "cmake" / config, encoding="utf-8")
        for line in parser["options.entry_points"]["console_scripts"].split("\n"):
            if not line.strip():
                continue
            name, module, function = re.fullmatch(r"\s*(\S+)\s*=\s*([\w.]+):(\w+)\s*", line).groups()
            part = folder / f".{name}.part"
            part.write_text(
                f"#!/bin/sh\n'''exec' {shlex.quote(str(PYTHON))} \"$0\" \"$@\"\n' '''\n"
                f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n",
                encoding="utf-8",
            )
            part.chmod(0o755)
            part.replace(folder / name)
