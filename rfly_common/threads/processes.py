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


def in_parallel(
    work: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    report: Callable[[int, Result], None],
    *shared: Any,
    jobs: int | None = None,
    dask: Any = None,
    set_up: Callable[[], None] | None = None,
) -> list[Result]:
    """Return `work(*shared, *task)` of each task, in their order, computed in `jobs` processes.

    `jobs`: by default one per core; 1: this process. `dask`: a cluster in place of them, as
    `on_dask` takes it. Each process gets `shared` once, and calls `set_up()` first. `report(task,
    result)` is called here when a task is done. Ctrl-C ends the processes at once. Raises what
    `work` raises, and ConfigError if a process dies or no cluster answers.
    """
    if dask is not None:
        return on_dask(dask, work, tasks, report, shared)
    jobs = max(1, min(jobs or cores(), len(tasks), MAX_PROCESSES))
    if jobs > 1:
        return _in_processes(work, tasks, report, jobs, shared, set_up)

    results = []
    for number, task in enumerate(tasks):
        results.append(work(*shared, *task))
        report(number, results[-1])
    return results


def _in_processes(
    work: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    report: Callable[[int, Result], None],
    jobs: int,
    shared: tuple[Any, ...],
    set_up: Callable[[], None] | None,
) -> list[Result]:
    """Return the results of `in_parallel`, computed in a pool."""
    # not forked: threads of numba and of the caller do not survive a fork
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = concurrent.futures.ProcessPoolExecutor(jobs, context, _set_up, (set_up, shared))

    try:
        with _main_left_out():
            futures = [pool.submit(_work_with_shared, work, task) for task in tasks]
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


_shared: tuple[Any, ...] = ()
"""What all tasks of a worker process share."""


def _set_up(set_up: Callable[[], None] | None, shared: tuple[Any, ...]) -> None:
    """Set a worker process up, which ends with its parent."""
    global _shared  # noqa: PLW0603  a pool's processes get what all tasks share only this way
    _shared = shared
    if set_up is not None:
        set_up()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _work_with_shared(work: Callable[..., Result], task: tuple[Any, ...]) -> Result:
    """Do a task in a worker process."""
    return work(*_shared, *task)


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
    cluster: Any,
    work: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    report: Callable[[int, Result], None],
    shared: tuple[Any, ...],
) -> list[Result]:
    """Return the results of `in_parallel`, computed on a Dask cluster.

    `cluster`: the address of a scheduler, or a `Client` or `Cluster` of distributed, whose workers
    need this package. Raises what the work raises, and ConfigError if no scheduler answers, if no
    worker is there to hold `shared`, and if workers are lost.
    """
    check_dask()
    from distributed import CancelledError, Client, KilledWorker, as_completed
    from distributed import TimeoutError as DaskTimeoutError

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
        held = []
        if shared:
            try:
                held = client.scatter(list(shared), broadcast=True, hash=False)
            except DaskTimeoutError:
                raise ConfigError(f"Dask: {cluster}: it has no workers, expected one") from None
        futures = [client.submit(work, *held, *task, pure=False) for task in tasks]
        number_of = {future.key: number for number, future in enumerate(futures)}
        for future in as_completed(futures, loop=client.loop):
            report(number_of[future.key], future.result())
        return list(client.gather(futures))
    except (KilledWorker, CancelledError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"Dask: {cluster}: its workers were lost ({reason})") from None
    finally:
        if not borrowed:
            client.close()
