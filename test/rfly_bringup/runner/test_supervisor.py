# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The supervisor alone, with small programs in the nodes' place."""

from __future__ import annotations

import os
import sys

from rfly_bringup.runner.supervisor import Supervisor

NOT_IN_HAND_YET = """
import time
time.sleep(1.0)
from rfly_common import startup
startup.install_handlers()
time.sleep(60.0)
"""


def test_who_is_stopped_before_it_has_its_signals_in_hand_prints_no_trace():
    lines = []
    command = [sys.executable, "-c", NOT_IN_HAND_YET]
    supervisor = Supervisor(
        [("view", command)], lambda name, line: lines.append(line), dict(os.environ)
    )
    supervisor.start()
    process = supervisor.processes["view"]
    supervisor.stop()
    assert (process.returncode, lines) == (0, [])
