# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The end of a test run, which a thread that a test has left must not put off for ever."""

from __future__ import annotations

import faulthandler
import os
import sys


def end_in_time(within_s: float) -> None:
    """End this process by force, with what each thread does, unless it ends by itself in this time.

    Processes of xdist are ended by the one that has started them, once all tests are done.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        faulthandler.dump_traceback_later(within_s, exit=True, file=sys.__stderr__)
