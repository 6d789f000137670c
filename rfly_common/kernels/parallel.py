"""Thread pool for kernels that release the GIL: chunks for idle cores, the caller's thread among
them.

Why not numba's `parallel=True`: its default threading layer on a plain install (workqueue) ends the
process when two Python threads enter it at once, which any node with two callbacks can do, and none
of its layers but tbb survives a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

MAX_THREADS = 16


class _Pool:
    """The process's threads, started by the first who needs them."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A forked child has the executor but none of its threads, and maybe a lock that nobody
        will release.
        """
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def submit(self, task: Callable[[], None], times: int) -> list[Future[None]]:
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
        except (
            RuntimeError
        ):  # the interpreter is ending and takes no new work: the caller does it all
            return []


_pool = _Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_chunks(work: Callable[[int, int], None], count: int, chunk: int) -> None:
    """Calls `work(start, stop)` for 0 … count in pieces of `chunk`, on as many threads as there are
    cores and pieces.

    One piece runs in the caller's thread with no thread started. The caller takes pieces too, so
    calls from several threads and calls out of a worker can't wait for each other. The first error
    of any piece is raised, after all threads stopped.
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
            for _ in starts:  # after an error here nobody is to begin another piece
                pass
        errors = [helper.exception() for helper in helpers if not helper.cancel()]
    for error in errors:
        if error is not None:
            raise error
