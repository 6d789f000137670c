# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Signals of a process from its first instruction. Imports nothing heavy, and no ROS.

A process is in one of three states, in which SIGINT, SIGTERM and SIGHUP mean the same:

- At its start and end they end it immediately: nothing needs cleaning up. Imports take some tenths
  of a second, in which Python's defaults would print a trace or lose the signal.
- A command that does its work and ends (`interruptible`) gets a KeyboardInterrupt.
- A loop (`spinning`, `stop_by_signal`) is asked to end. A second signal ends the process, unless it
  follows immediately: a terminal and a launcher may both send one.

A process that has not ended STOP_WITHIN_S after the first signal is ended by a thread, which prints
where the main thread was. The variable RFLY_STOP_WITHIN_S allows more time, such as on a slow
machine. If the thread does not get the interpreter's lock, the system ends the process (SIGALRM).

Python calls a signal's handler only between two of its own instructions; a second thread, which the
system itself wakes, ends a process whose main thread stays in a library meanwhile. A SIGHUP that
`nohup` ignores stays ignored. rclpy's own handlers are not installed: they invalidate the context
in the middle of a call, which causes traces.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

STOPS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that end a process: Ctrl-C, kill, and a terminal that is closed."""
STOP_WITHIN_S = 1.5
"""Time from the first signal to the forced end, s."""
SAME_S = 0.3
"""A second signal within this time is a copy of the first, s."""
LOCK_GRACE_S = 0.3
"""Time after which the system ends a process that the watching thread could not end, s."""


@dataclass
class _State:
    on_stop: Callable[[], None] | None = None
    """Function that the first signal calls; None: end immediately."""
    stop_signal: int = 0
    """Number of the first signal; 0 before it, and after the end of the loop that it ended."""
    stopped_at: float = 0.0
    """Time of the first signal, monotonic, s."""
    signalled: bool = False
    """True if any signal has arrived."""
    handled_at: float = 0.0
    """Time of the handler's last run, monotonic, s."""
    guarded: bool = False
    """True if the thread runs that checks the handler."""
    shell_codes: bool = False
    """True if an ended process returns 128 + signal, as a shell would; else it returns 0."""
    within_s: float = STOP_WITHIN_S
    watchdog: threading.Timer | None = None


_state = _State()


def loaded(parts: Mapping[str, str]) -> dict[str, Any]:
    """Import parts that are named as `module:name`."""
    found = {}
    for key, place in parts.items():
        module, _, name = place.partition(":")
        found[key] = getattr(importlib.import_module(module), name)
    return found


def run_node_module(module: str, *arguments: str) -> NoReturn:
    """Import a module that runs nodes and call its `main(*arguments)`, quiet under signals.

    After a signal the process ends without Python's own end, during which a thread that still works
    in C++ would abort the process.
    """
    install_handlers()
    importlib.import_module(module).main(*arguments)
    end(0)


def run_command_module(module: str) -> NoReturn:
    """Import a command's module and call its `main()`; a signal ends it without a trace."""
    install_handlers(shell_codes=True)
    main = importlib.import_module(module).main
    code = 0
    try:
        interruptible()
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        if not stop_requested():
            raise
    end(exit_code() or code)


def install_handlers(*, shell_codes: bool = False) -> None:
    """Take over STOPS (main thread only).

    Until `spinning`, `interruptible` or `stop_by_signal` they end the process immediately.
    """
    _state.shell_codes = shell_codes
    _take_over()


def spinning() -> None:
    """Let a signal ask for an orderly end from now on: `stop_requested` reports it."""
    _state.on_stop = _nothing


def interruptible() -> None:
    """Let a signal raise KeyboardInterrupt from now on.

    Traces of interrupted imports or threads are not printed.
    """
    _state.on_stop = interrupt


def end(code: int) -> NoReturn:
    """End the process with this exit code, quietly even if a signal arrives or has arrived.

    A signal has unwound what needed that. Threads that still run are not waited for, unlike at
    Python's own end.
    """
    _state.on_stop = None
    if _state.signalled:
        _watch()

    # a reader that has gone, or a closed stream: Python would report it at its end
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())

    if _state.signalled:
        os._exit(code)
    sys.exit(code)


def stop_requested() -> bool:
    """Return True once a signal has arrived."""
    return bool(_state.stop_signal)


def exit_code() -> int:
    """Return the exit code of a process that a signal has ended, else 0."""
    return 128 + _state.stop_signal if _state.shell_codes and _state.stop_signal else 0


@contextmanager
def stop_by_signal(
    on_stop: Callable[[], None] | None = None, *, within_s: float = STOP_WITHIN_S
) -> Iterator[Callable[[], bool]]:
    """Let the first of STOPS end a loop: call `on_stop`, and let the yielded function return True.

    It returns True from the beginning if a signal has arrived already. After the loop everything is
    as before the signal. The process is ended if the loop takes longer than `within_s` after the
    signal.
    """
    before = _state.on_stop, _state.within_s
    _state.on_stop = on_stop or _nothing
    _state.within_s = within_s
    handlers = _take_over()

    try:
        if _state.stop_signal:
            _watch()
            _state.on_stop()
        yield stop_requested
    finally:
        _call_off()
        _state.stop_signal = 0
        _state.on_stop, _state.within_s = before
        for number, handler in handlers.items():
            signal.signal(number, handler)


def interrupt() -> None:
    """Raise KeyboardInterrupt; an `on_stop` for work that cannot poll the yielded function."""
    sys.unraisablehook = threading.excepthook = _nothing
    raise KeyboardInterrupt


def _take_over() -> dict[int, Any]:
    """Install the handler and return the handlers before."""
    hang_up = getattr(signal, "SIGHUP", None)
    wanted = [
        number
        for number in STOPS
        if number != hang_up or signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, _on_signal) for number in wanted}
    _guard_handler()
    if hasattr(signal, "pthread_sigmask"):  # .venv's scripts start with them blocked
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    return before


def _guard_handler() -> None:
    """Start, once, a thread that is notified of each signal.

    It stands in for a main thread that does not run the handler.
    """
    if _state.guarded:
        return
    _state.guarded = True
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):
        # a child's signals are not its parent's
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    threading.Thread(target=_end_unless_handled, args=(read_end,), daemon=True).start()


def _end_unless_handled(read_end: int) -> None:
    """End the process if a signal's handler does not run in time: the guarding thread's work."""
    while numbers := os.read(read_end, 64):
        # signals of others, such as Ctrl-C after `stop_by_signal`, end nothing here
        stops = [
            number
            for number in numbers
            if number in STOPS and signal.getsignal(number) is _on_signal
        ]
        if stops:
            arrived_at = time.monotonic()
            patience_s = LOCK_GRACE_S if _state.on_stop is None else _state.within_s
            time.sleep(patience_s)
            if _state.handled_at < arrived_at - patience_s:
                os._exit(128 + stops[0] if _state.shell_codes else 0)


def _on_signal(number: int, frame: FrameType | None) -> None:
    """Note a signal, and call the loop's `on_stop` at the first one or end the process."""
    _state.handled_at = time.monotonic()
    first = not _state.stop_signal
    if first:
        _state.stop_signal = number
        _state.stopped_at = time.monotonic()
        _state.signalled = True
    if _state.on_stop is None or time.monotonic() - _state.stopped_at > SAME_S:
        os._exit(exit_code())
    if first:
        _watch()
        _state.on_stop()


def _watch() -> None:
    """Start the timers that end the process if it does not end by itself."""
    _call_off()
    within_s = max(_state.within_s, float(os.environ.get("RFLY_STOP_WITHIN_S") or 0.0))
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, within_s + LOCK_GRACE_S)
    _state.watchdog = threading.Timer(within_s, _end_by_force, (within_s,))
    _state.watchdog.daemon = True
    _state.watchdog.start()


def _end_by_force(within_s: float) -> None:
    """Print where the main thread is, and end the process."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    place = f" in {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
    with suppress(OSError):
        os.write(2, f"rfly: ended by force {within_s:g} s after the signal{place}\n".encode())
    os._exit(exit_code())


def _call_off() -> None:
    """Stop the timers of `_watch`."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if _state.watchdog is not None:
        _state.watchdog.cancel()


def _nothing(*_: Any) -> None:
    """Do nothing: `stop_requested` reports the signal."""
