"""Entry point of the executable `rfly`; light, so that signals are in hand before the command's
imports begin.
"""

from __future__ import annotations

from typing import NoReturn

from rfly_common import startup


def rfly() -> NoReturn:
    """Run the command line."""
    startup.run_command_module("rfly_bringup.cli.main")
