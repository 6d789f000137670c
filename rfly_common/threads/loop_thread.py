# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Threads that no data ends.

Each thread that lives as long as its owner (receivers, measuring and decoding threads) is a
`LoopThread`. An error in a step is a bug of this suite or of a library below it: it is reported,
what the step was working on is lost, and the next step follows. A node has the errors logged and
counted on /diagnostics (`run_loop`); elsewhere they go to Python's log.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

LOG_EVERY_S = 10.0
"""Least time between two logs of an error at the same place, s."""
LONGEST_TEXT = 300
"""Characters of an error's own text: contents of messages or files must not fill the log."""
_AFTER_ERROR_S = 0.001
"""Pause after an error, s: one that repeats for ever must not keep a processor busy."""
_GUARDS = ("loop_thread.py", "callback_errors.py", "run_loop.py")
"""Files whose lines only pass an error on."""

_logger = logging.getLogger(__name__)
_logged_at: dict[str, float] = {}
"""Time of the last log by place, on the steady clock, s."""


class ErrorReport(NamedTuple):
    """An unexpected error, as the log and the diagnostics report it."""

    place: str
    """File and line."""
    text: str
    """The error's type and its own text, shortened, in one line."""
    is_due: bool
    """True unless an error at the same place was logged in the last LOG_EVERY_S."""


def describe_error(error: BaseException) -> ErrorReport:
    """Return the report of an unexpected error that is to be logged, if it is due."""
    place = _place(error)
    text = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_TEXT]
    now_s = time.monotonic()
    is_due = now_s - _logged_at.get(place, -LOG_EVERY_S) >= LOG_EVERY_S
    if is_due:
        _logged_at[place] = now_s
    return ErrorReport(place, text, is_due)


def _log_error(error: BaseException) -> None:
    report = describe_error(error)
    if report.is_due:
        _logger.error("what came is dropped, by an error in %s: %s", report.place, report.text)


class LoopThread(threading.Thread):
    """Daemon thread that calls `step` until it returns False, whatever it raises."""

    report: Callable[[BaseException], object] = staticmethod(_log_error)
    """Function that takes the errors of all these threads; a node sets its own."""

    def __init__(self, step: Callable[[], bool], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._step = step

    def run(self) -> None:
        """Call the step until the owner ends it."""
        while True:
            try:
                if not self._step():
                    return
            except Exception as error:  # noqa: BLE001  reported; the next step follows
                LoopThread.report(error)
                time.sleep(_AFTER_ERROR_S)


def _place(error: BaseException) -> str:
    """Return file and line of the innermost code of the suite that the error came through.

    If there is none, the place is that of rclpy's innermost code, else of the innermost code.
    """
    frames = list(traceback.extract_tb(error.__traceback__))
    ours = [
        frame
        for frame in frames
        if any(part.startswith("rfly_") for part in Path(frame.filename).parts[-4:-1])
        and Path(frame.filename).name not in _GUARDS
    ]
    theirs = [frame for frame in frames if Path(frame.filename).parent.name == "rclpy"]
    frame = (ours or theirs or frames)[-1]
    return f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno}"
