"""Signal handling of a node's process from its first instruction on. Imports nothing heavy, and no ROS.

Until a node spins, SIGINT and SIGTERM end the process at once with exit code 0, as nothing needs cleaning up:
importing rclpy and making a node take some tenths of a second, in which Python's defaults would print a trace or die.
Once it spins, the first signal asks the loop to end, and a second one, or 1.5 s without an end, ends the process.
rclpy's own handlers are not installed: they invalidate the context in mid-call, which is where traces come from.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from dataclasses import dataclass
from types import FrameType

STOP_WITHIN_S = 1.5


@dataclass
class _State:
    spinning: bool = False
    stop: bool = False


_state = _State()


def run_node_module(module: str) -> None:
    """Import a `*_node` module and call its `main()`, quiet under signals from the start."""
    install_handlers()
    importlib.import_module(module).main()


def install_handlers() -> None:
    """Take SIGINT and SIGTERM over (main thread only)."""
    signal.signal(signal.SIGINT, _on_signal)
    signal.signal(signal.SIGTERM, _on_signal)


def spinning() -> None:
    """From here on a signal asks for an orderly end."""
    _state.spinning = True


def stop_requested() -> bool:
    """True once a signal has come."""
    return _state.stop


def _on_signal(number: int, frame: FrameType | None) -> None:
    if _state.stop or not _state.spinning:
        os._exit(0)
    _state.stop = True
    watchdog = threading.Timer(
        STOP_WITHIN_S, os._exit, (0,)
    )  # a callback in a long load must not outlive the promise of 2 s
    watchdog.daemon = True
    watchdog.start()
