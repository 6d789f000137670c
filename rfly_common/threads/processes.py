# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work in several processes, which end with their parent, or on a Dask cluster."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_common.kernels.parallel import cores

Result = TypeVar("Result")

MAX_PROCESSES = 61
"""Processes of a pool, at most: Windows waits for no more."""


def parallel_jobs(asked: int | None, tasks: int) -> int:
    """Return the number of processes for some tasks; by default one per core."""
    return max(1, min(asked or cores(), tasks, MAX_PROCESSES))


def in_processes(
    work: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    jobs: int,
    report: Callable[[int, Result], None],
    set_up: Callable[..., None],
    shared: tuple[Any, ...],
) -> list[Result]:
    """Return `work(*task)` of each task, in their order, computed in `jobs` processes.

    Each process calls `set_up(*shared)` first. `report(task, result)` is called here when a task is
    done. Ctrl-C ends the processes at once. Raises what `work` raises, and ConfigError if a process
    dies.
    """
    # not forked: threads of numba and of the caller do not survive a fork
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = concurrent.futures.ProcessPoolExecutor(jobs, context, _set_up, (set_up, shared))

    try:
        with _main_left_out():
            futures = [pool.submit(work, *task) for task in tasks]
        task_of = {future: task for task, future in enumerate(futures)}
        for future in concurrent.futures.as_completed(futures):
            report(task_of[future], future.result())
        return [future.result() for future in futures]
    except concurrent.futures.process.BrokenProcessPool:
        raise ConfigError(
            f"one of {jobs} processes ended in the middle of its run (out of memory?); "
            "try fewer jobs"
        ) from None
    except KeyboardInterrupt:  # do not wait for the work under way
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _main_left_out() -> Iterator[None]:
    """Keep processes that start meanwhile from running the caller's script once more."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _set_up(set_up: Callable[..., None], shared: tuple[Any, ...]) -> None:
    """Set a worker process up, which ends with its parent."""
    set_up(*shared)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent ends: if that was killed, it would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


CONNECT_TIMEOUT = 10.0
"""Time in which a scheduler has to answer, s."""


def check_dask() -> None:
    """Raise ConfigError with what to install if no Dask cluster can be used."""
    require("distributed", "a Dask cluster")


def on_dask(
    cluster: Any, submit: Callable[[Any], list[Any]], report: Callable[[int, Any], None]
) -> list[Any]:
    """Return the results of the futures that `submit(client)` gives, in their order.

    `cluster`: the address of a scheduler, or a `Client` or `Cluster` of distributed, whose workers
    need this package. `report(number, result)` is called here when a future is done. Raises what
    the work raises, and ConfigError if no scheduler answers.
    """
    check_dask()
    from distributed import Client, as_completed

    if isinstance(cluster, str) and not re.fullmatch(r"(\w+://)?\S+:\d+", cluster):
        raise ConfigError(
            f"Dask: {cluster!r}, expected the address of a scheduler, such as tcp://127.0.0.1:8786"
        )

    borrowed = isinstance(cluster, Client)
    client = cluster
    if not borrowed:
        try:
            client = Client(cluster, timeout=CONNECT_TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ConfigError(f"Dask: {cluster}: no scheduler answers ({error})") from None

    try:
        futures = submit(client)
        number_of = {future.key: number for number, future in enumerate(futures)}
        for future in as_completed(futures, loop=client.loop):
            report(number_of[future.key], future.result())
        return list(client.gather(futures))
    finally:
        if not borrowed:
            client.close()
