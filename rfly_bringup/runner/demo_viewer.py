"""The demo's browser viewer: `rfly view` as a process of its own, and a check of its page."""

from __future__ import annotations

import importlib.util
import re
import sys
import urllib.error
import urllib.request

from rfly_bringup.runner.supervisor import Output

VIEWER = "view"
RFLY = "import sys; from rfly_bringup.cli.entry_point import rfly; sys.argv[0] = 'rfly'; rfly()"
_ADDRESS = re.compile(r"rfly view: (http://\S+)")


class DemoViewer:
    """`command` starts the viewer; [] where viser is not installed. `take_line` passes on what the processes print."""

    def __init__(self, udp_port: int, output: Output) -> None:
        self._output = output
        self.address = ""
        """of the page, once the viewer has said it"""
        self.command: list[str] = []
        if importlib.util.find_spec("viser") is not None:
            self.command = [sys.executable, "-c", RFLY, "view", "--udp-port", str(udp_port)]

    def take_line(self, name: str, line: str) -> None:
        """One line of one process."""
        found = _ADDRESS.match(line) if name == VIEWER else None
        if found is not None:
            self.address = found[1]
        self._output(name, line)

    def answers(self) -> bool:
        """Whether the page is there: a real request, answered with 200."""
        if not self.address:
            return False
        try:
            with urllib.request.urlopen(self.address, timeout=2.0) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
