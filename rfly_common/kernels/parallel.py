# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Thread pool for kernels, which release the GIL: chunks of work for idle cores and the caller.

numba's `parallel=True` would not do. Its default threading layer on a plain install (workqueue)
ends the process when two Python threads enter it at once, which any node with two callbacks can do.
None of its layers but tbb survives a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

MAX_THREADS = 16
"""Largest number of threads for one piece of work, the caller's included."""


class _Pool:
    """The threads of the process, started when they are first needed."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew in a forked child, which has no threads and perhaps a lock held for ever."""
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def submit(self, task: Callable[[], None], times: int) -> list[Future[None]]:
        """Run the task on `times` threads; return an empty list if no thread can take it."""
        if times <= 0:
            return []
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    max(1, min(cores(), MAX_THREADS) - 1), thread_name_prefix="rfly-kernels"
                )
            executor = self._executor
        try:
            return [executor.submit(task) for _ in range(times)]
        except RuntimeError:  # the interpreter is ending and takes no new work
            return []


_pool = _Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_chunks(work: Callable[[int, int], None], count: int, chunk: int) -> None:
    """Call `work(start, stop)` for 0 … count in pieces of `chunk`, on idle cores.

    A single piece runs in the caller's thread, and no thread is started. The caller takes pieces
    too, so calls from several threads and calls by a worker cannot wait for each other. The first
    error of any piece is raised after all threads have stopped.
    """
    pieces = -(-count // chunk)
    if pieces <= 1:
        if count:
            work(0, count)
        return

    starts = iter(range(0, count, chunk))
    lock = threading.Lock()

    def take_pieces() -> None:
        while True:
            with lock:
                start = next(starts, None)
            if start is None:
                return
            work(start, min(start + chunk, count))

    helpers = _pool.submit(take_pieces, min(cores(), MAX_THREADS, pieces) - 1)
    try:
        take_pieces()
    finally:
        with lock:
            for _ in starts:  # after an error no thread may begin another piece
                pass
        errors = [helper.exception() for helper in helpers if not helper.cancel()]
    for error in errors:
        if error is not None:
            raise error
