# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Entry point of the executable `rfly`.

It imports little, so that signals are handled before the command's own imports begin.
"""

from __future__ import annotations

from typing import NoReturn

from rfly_common import startup


def rfly() -> NoReturn:
    """Run the command line."""
    startup.run_command_module("rfly_bringup.cli.main")
