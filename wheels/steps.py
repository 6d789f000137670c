# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run the set-up's commands with short progress lines, and their output in a log file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import layout  # noqa: F401  which puts the suite on the path

from rfly_bringup.terminal import time_left

_PROGRESS = re.compile(r"\[(\d+)/(\d+)\]")  # ninja's, and that of rfly_bringup.warm_up
_DOWNLOAD = re.compile(r"^\s*(Downloading|Downloaded) (\S+)(?: \(([\d.]+)([MG])iB\))?$")  # uv's
_MIB = {"M": 1.0, "G": 1024.0}
_BAR_WIDTH = 20
_STILL_BUSY_EVERY = 15.0  # s between signs of life where the output is no terminal


class SetupError(Exception):
    """The set-up cannot go on; the message is what the user reads."""


class Steps:
    """Numbered steps on standard error, each on one line with its time.

    The commands' own output goes to `log`.
    """

    def __init__(self, log: Path, lock: int, clock: Callable[[], float] = time.monotonic):
        """Start a log. `lock` is a file descriptor that the commands hold too.

        A killed set-up may have left a command running.
        """
        self._clock = clock
        self._log_path = log
        self._lock = lock
        self._terminal = sys.stderr.isatty()
        self._started = self._clock()
        self._step = ""
        self._step_started = self._last_sign = self._started
        self._jobs = 1
        """Number of jobs of the step."""
        self._shares: dict[str, float] = {}
        """Largest share that each job has said is done."""
        self._to_download: dict[str, float] = {}
        """MiB of each package that uv downloads; it names those of 1 MiB and more."""
        self._downloaded = 0.0
        self._line = ""
        """The commands' last line."""
        self._writing = threading.Lock()

        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def finish(self, text: str) -> None:
        self.say(f"rfly_suite: {text} ({self._clock() - self._started:.0f} s)")

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._step = name
        self._jobs = 1
        self._shares.clear()
        self._to_download.clear()
        self._downloaded = 0.0
        self._line = ""
        self._step_started = self._last_sign = self._clock()

        if self._terminal:
            print(f"  {name} ...", end="", file=sys.stderr, flush=True)
        with self._signs_of_life():
            yield

        line = f"  {name:<58} {self._clock() - self._step_started:5.1f} s"
        self.say(f"\r\033[K{line}" if self._terminal else line)

    @contextmanager
    def _signs_of_life(self) -> Iterator[None]:
        """Show the progress now and then, for commands that print nothing for minutes."""
        ended = threading.Event()

        def show() -> None:
            while not ended.wait(_STILL_BUSY_EVERY):
                self._show_progress()

        thread = threading.Thread(target=show)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def together(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run all jobs of a step at the same time; raise the first failure when all have ended."""
        if not jobs:
            return
        self._jobs = len(jobs)
        with ThreadPoolExecutor(len(jobs)) as pool:
            for done in as_completed([pool.submit(job) for job in jobs]):
                done.result()

    def run(
        self,
        command: Sequence[str | Path],
        env: Mapping[str, str],
        cwd: Path | None = None,
        may_fail: bool = False,
        job: str = "",
    ) -> bool:
        """Run `command` and return whether it succeeded; its output goes to the log.

        A `job` that runs together with others logs its output in one piece. A failure raises
        SetupError with the log's last lines, unless `may_fail`.
        """
        tail: deque[str] = deque(maxlen=15)
        output = ["\n$ " + " ".join(map(str, command)) + "\n"]

        try:
            process = subprocess.Popen(
                list(map(str, command)),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                pass_fds=[self._lock],
            )
        except OSError as error:
            raise SetupError(f"cannot run {command[0]}: {error.strerror}") from error

        with process:
            assert process.stdout is not None
            for line in process.stdout:
                output.append(line)
                if not job:
                    self._write_to_log(output)
                if line.strip():
                    tail.append(line.rstrip())
                self._take_line(line, job)
                self._show_progress()

        output.append(f"exit {process.returncode}\n")
        self._write_to_log(output)

        if process.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
            raise KeyboardInterrupt  # Ctrl-C reaches the command too, whose trace helps nobody
        if process.returncode != 0 and not may_fail:
            with self._writing:
                if self._terminal:
                    self.say("")
                for line in tail:
                    self.say(f"    {line}")
            raise SetupError(
                f"{job or self._step}: {os.path.basename(command[0])} ended with "
                f"{process.returncode} (above: its last "
                f"lines; all of it: {self._log_path})"
            )

        return process.returncode == 0

    def _write_to_log(self, lines: list[str]) -> None:
        with (
            self._writing,
            self._log_path.open("a", encoding="utf-8", errors="replace") as log,
        ):
            log.writelines(lines)
        lines.clear()

    def _take_line(self, line: str, job: str) -> None:
        """Note what a job has done by a line of its output."""
        counted = _PROGRESS.search(line)
        download = _DOWNLOAD.match(line)
        with self._writing:
            self._line = line.strip()
            if counted:
                done = int(counted[1]) / int(counted[2])
                self._shares[job] = max(done, self._shares.get(job, 0.0))
            elif download and download[3]:
                self._to_download[download[2]] = float(download[3]) * _MIB[download[4]]
            elif download:
                self._downloaded += self._to_download.get(download[2], 0.0)

    def _show_progress(self) -> None:
        """Keep the step's line alive: its share and time left, or the command's last line.

        Without a terminal, print a line from time to time. Jobs of a step count as equally long.
        """
        with self._writing:
            now = self._clock()
            elapsed = now - self._step_started
            share = sum(self._shares.values()) / self._jobs
            progress = f"{share:.0%}{time_left(share, elapsed)}"

            # installing follows after the last download
            total = sum(self._to_download.values())
            if self._downloaded < total:
                share = self._downloaded / total
                progress = (
                    f"{self._downloaded:.0f} of {total:.0f} MiB downloaded"
                    f"{time_left(share, elapsed)}"
                )

            if self._terminal:
                text = f"... {self._line}"
                if share:
                    full = round(_BAR_WIDTH * share)
                    text = f"[{'=' * full}{' ' * (_BAR_WIDTH - full)}] {progress}"
                text = f"  {self._step} {text}"
                width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
                print(f"\r\033[K{text[:width]}", end="", file=sys.stderr, flush=True)
            elif now - self._last_sign > _STILL_BUSY_EVERY:
                self.say(f"  {self._step} ... {progress if share else f'busy for {elapsed:.0f} s'}")
                self._last_sign = now
