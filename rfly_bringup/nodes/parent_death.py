# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Processes that end with the process that started them."""

from __future__ import annotations

import os
import shutil
import sys


def end_with_parent() -> list[str]:
    """Return the words before a command that shall get SIGTERM when this process ends in any way.

    They are [] outside Linux. The shell makes sure that this process had not ended before the
    system knew of the wish.
    """
    guard = shutil.which("setpriv") if sys.platform == "linux" else None
    if guard is None:
        return []
    return [
        guard,
        "--pdeathsig",
        "TERM",
        "sh",
        "-c",
        '[ "$PPID" = "$0" ] && exec "$@"',
        str(os.getpid()),
    ]
