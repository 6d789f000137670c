"""Running the set-up's commands with short progress lines, and everything that they print in a log file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_NINJA_PROGRESS = re.compile(r"\[(\d+/\d+)\]")
_STILL_BUSY_EVERY = 15.0  # s between signs of life where the output is no terminal


class SetupError(Exception):
    """The set-up cannot go on; the message is what the user reads."""


class Steps:
    """Numbered steps on standard error, each one line with its time; the commands' own output goes to `log`."""

    def __init__(self, log: Path, lock: int):
        """`lock`: a file descriptor that the commands hold too, as a killed set-up may have left one running."""
        self._log_path = log
        self._lock = lock
        self._terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._step = ""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def finish(self, text: str) -> None:
        self.say(f"rfly_suite: {text} ({time.monotonic() - self._started:.0f} s)")

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._step = name
        started = time.monotonic()
        if self._terminal:
            print(f"  {name} ...", end="", file=sys.stderr, flush=True)
        yield
        line = f"  {name:<58} {time.monotonic() - started:5.1f} s"
        self.say(f"\r\033[K{line}" if self._terminal else line)

    def run(
        self, command: Sequence[str | Path], env: Mapping[str, str], cwd: Path | None = None, may_fail: bool = False
    ) -> bool:
        """Run `command`; its output goes to the log.

        Returns whether it succeeded, which is always so unless `may_fail`; else a failure raises SetupError with the
        log's last lines.
        """
        tail: deque[str] = deque(maxlen=15)
        last_sign = time.monotonic()
        with self._log_path.open("a", encoding="utf-8", errors="replace") as log:
            log.write("\n$ " + " ".join(map(str, command)) + "\n")
            log.flush()
            try:
                process = subprocess.Popen(
                    list(map(str, command)), env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                    pass_fds=[self._lock],
                )  # fmt: skip
            except OSError as error:
                raise SetupError(f"cannot run {command[0]}: {error.strerror}") from error
            with process:
                assert process.stdout is not None
                for line in process.stdout:
                    log.write(line)
                    if line.strip():
                        tail.append(line.rstrip())
                    last_sign = self._show_progress(line, last_sign)
            log.write(f"exit {process.returncode}\n")
        if process.returncode != 0 and not may_fail:
            if self._terminal:
                self.say("")
            for line in tail:
                self.say(f"    {line}")
            raise SetupError(
                f"{self._step}: {os.path.basename(command[0])} ended with {process.returncode} (above: its last lines; "
                f"all of it: {self._log_path})"
            )
        return process.returncode == 0

    def _show_progress(self, line: str, last_sign: float) -> float:
        """Keep the step's line alive: on a terminal with the command's last line, elsewhere now and then a line."""
        now = time.monotonic()
        if self._terminal:
            text = f"  {self._step} ... {line.strip()}"
            width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
            print(f"\r\033[K{text[:width]}", end="", file=sys.stderr, flush=True)
        elif now - last_sign > _STILL_BUSY_EVERY:
            progress = _NINJA_PROGRESS.search(line)
            self.say(f"  {self._step} ... {progress.group(1) if progress else 'still busy'}")
        else:
            return last_sign
        return now
