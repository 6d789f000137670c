"""Signals of a process from its first instruction on. Imports nothing heavy, and no ROS.

A process is in one of three states, and SIGINT, SIGTERM and SIGHUP mean the same in each of them:

- at its start and at its end they end it at once, as nothing needs cleaning up: imports take some
tenths of a second,
  in which Python's defaults would print a trace or lose the signal;
- a command that does its work and ends (`interruptible`) gets a KeyboardInterrupt;
- a loop (`spinning`, `stop_by_signal`) is asked to end; a second signal ends the process, unless it
comes at once, as a
  terminal and a launcher may both send one.

Whoever has not ended STOP_WITHIN_S after the first signal is ended: by a thread, and where that
does not get the interpreter's lock, by the system (SIGALRM). Python calls a signal's handler
between two of its own instructions only; a second thread, woken by the system itself, ends a
process whose main thread sits in a library meanwhile. A SIGHUP that `nohup` has set aside stays so.
rclpy's own handlers are not installed: they invalidate the context in mid-call, which is where
traces come from.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

STOPS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""signals that end a process: Ctrl-C, kill, and the terminal that is closed"""
STOP_WITHIN_S = 1.5
SAME_S = 0.3
"""a second signal so soon after the first one is no second wish"""
LOCK_GRACE_S = 0.3
"""s after which the system ends what the watching thread could not end"""


@dataclass
class _State:
    ask: Callable[[], None] | None = None
    """called by the first signal; None: end at once"""
    came: int = 0
    """number of the first signal; 0: none has come, or the loop that it came to has ended"""
    came_at: float = 0.0
    """s, monotonic"""
    ever: bool = False
    """one has come at some time"""
    handled_at: float = 0.0
    """s, monotonic: when the handler ran last"""
    guarded: bool = False
    """the thread is there that watches whether the handler runs"""
    shell_codes: bool = False
    """ended by a signal: exit code 128 + its number, as a shell would say, else 0"""
    within_s: float = STOP_WITHIN_S
    watchdog: threading.Timer | None = None


_state = _State()


def run_node_module(module: str) -> NoReturn:
    """Import a `*_node` module and call its `main()`, quiet under signals from the start.

    After a signal the process ends without Python's own end: there a thread that still works in C++
    aborts the process.
    """
    install_handlers()
    importlib.import_module(module).main()
    end(0)


def run_command_module(module: str) -> NoReturn:
    """Import a command's module and call its `main()`; Ctrl-C and its like end it without a trace
    at any time.
    """
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
    """Take STOPS over (main thread only): until something else is said they end the process at
    once.
    """
    _state.shell_codes = shell_codes
    _take_over()


def spinning() -> None:
    """From here on a signal asks for an orderly end: `stop_requested` says so."""
    _state.ask = _nothing


def interruptible() -> None:
    """From here on a signal raises KeyboardInterrupt. What an interrupted import or thread would
    print stays unsaid.
    """
    _state.ask = interrupt


def end(code: int) -> NoReturn:
    """End the process with this exit code, at once and quietly where a signal comes meanwhile, or
    came before.

    A signal has unwound what needed that; threads that still run are not waited for, as Python
    itself would.
    """
    _state.ask = None
    if _state.ever:
        _watch()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (
            OSError,
            ValueError,
        ):  # whoever read it has gone, or it is closed: Python would say so at its end
            with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
    if _state.ever:
        os._exit(code)
    sys.exit(code)


def stop_requested() -> bool:
    """True once a signal has come."""
    return bool(_state.came)


def exit_code() -> int:
    """Of a process that a signal has ended."""
    return 128 + _state.came if _state.shell_codes and _state.came else 0


@contextmanager
def stop_by_signal(
    on_stop: Callable[[], None] | None = None, *, within_s: float = STOP_WITHIN_S
) -> Iterator[Callable[[], bool]]:
    """A loop that the first of STOPS asks to end: `on_stop` is called, and what this yields says
    True from then on.

    So it is from the beginning where one has come already and was lost. Behind the loop everything
    is as it was before the signal. `within_s`: the process is ended when the loop has not ended so
    long after the signal.
    """
    before = _state.ask, _state.within_s
    _state.ask = on_stop or _nothing
    _state.within_s = within_s
    handlers = _take_over()
    try:
        if _state.came:
            _watch()
            _state.ask()
        yield stop_requested
    finally:
        _call_off()
        _state.came = 0
        _state.ask, _state.within_s = before
        for number, handler in handlers.items():
            signal.signal(number, handler)


def interrupt() -> None:
    """Raise KeyboardInterrupt; for `stop_by_signal` of what has no place to look at its yielded
    function.
    """
    sys.unraisablehook = threading.excepthook = _nothing
    raise KeyboardInterrupt


def _take_over() -> dict[int, Any]:
    """The handlers before."""
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
    """Once: a thread that is notified of each signal, for a main thread that does not run the
    handler.
    """
    if _state.guarded:
        return
    _state.guarded = True
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            after_in_child=lambda: signal.set_wakeup_fd(-1)
        )  # a child's signals are not its parent's
    threading.Thread(target=_end_unless_handled, args=(told,), daemon=True).start()


def _end_unless_handled(told: int) -> None:
    while numbers := os.read(told, 64):
        stops = [number for number in numbers if number in STOPS]
        if stops:
            told_at = time.monotonic()
            patience_s = LOCK_GRACE_S if _state.ask is None else _state.within_s
            time.sleep(patience_s)
            if _state.handled_at < told_at - patience_s:
                os._exit(128 + stops[0] if _state.shell_codes else 0)


def _on_signal(number: int, frame: FrameType | None) -> None:
    _state.handled_at = time.monotonic()
    first = not _state.came
    if first:
        _state.came = number
        _state.came_at = time.monotonic()
        _state.ever = True
    if _state.ask is None or time.monotonic() - _state.came_at > SAME_S:
        os._exit(exit_code())
    if first:
        _watch()
        _state.ask()


def _watch() -> None:
    _call_off()
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _state.within_s + LOCK_GRACE_S)
    _state.watchdog = threading.Timer(_state.within_s, os._exit, (exit_code(),))
    _state.watchdog.daemon = True
    _state.watchdog.start()


def _call_off() -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if _state.watchdog is not None:
        _state.watchdog.cancel()


def _nothing(*_: Any) -> None:
    """Whoever looks at `stop_requested` sees it."""
