# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ctrl-C ends a long kernel, and work that is too large for the memory is refused."""

from __future__ import annotations

import math
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_common.errors import PlanError
from rfly_common.kernels import interruptible as module
from rfly_common.kernels.interruptible import check_memory, interruptible
from rfly_terrain import PlanPose, TraversabilityGrid
from rfly_terrain.planning import cost_kernels as kernels
from rfly_terrain.planning import search_kernels
from rfly_terrain.planning.drive import plan_drive


def flat_ground(rows, columns):
    """Costs of 0 on cells of 1 m from the origin."""
    return TraversabilityGrid(np.zeros((rows, columns), np.int8), 1.0, (0.0, 0.0))


@pytest.mark.parametrize("turn", range(30))
def test_ctrl_c_ends_a_kernel_that_runs(turn):
    """The stop works while the kernel is being started, too, or just before the wait for it."""
    runs = threading.Event()
    ended = threading.Event()

    def kernel(stopped):
        runs.set()
        while not stopped[0]:
            pass
        ended.set()

    def interrupt():
        runs.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(kernel)
    assert ended.wait(PATIENCE)


def test_ctrl_c_while_a_kernel_starts_ends_it(monkeypatch):
    """The kernel runs already when the interrupt comes, and its submission has not returned."""
    ended = threading.Event()

    def kernel(stopped):
        while not stopped[0]:
            pass
        ended.set()

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *job):
            super().submit(*job)
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        interruptible(kernel)
    assert ended.wait(PATIENCE)


def test_a_kernel_that_is_stopped_returns_at_once():
    """Both searches look at the flag: stopped before the start, neither goes beyond it."""
    stop = np.ones(1, np.bool_)
    weight = np.pad(np.ones((20, 30), np.float32), 2).reshape(-1)
    best = np.full(weight.size, np.inf, np.float32)
    neighbours = np.array([1, 35, 34, 33, -1, -35, -34, -33])
    assert kernels.spread(weight, best, 8, 70, 75, math.inf, neighbours, stop) == -1
    assert np.isfinite(best).sum() == 1

    expanded = []

    def stopped_at_once(kernel, *arguments):
        expanded.append(kernel(*arguments, stop))
        return expanded[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_kernels, "interruptible", stopped_at_once)
        with pytest.raises(PlanError, match="none that a vehicle"):
            plan_drive(flat_ground(20, 20), PlanPose(2, 2, 0), PlanPose(15, 15, 1), 2.0)
    assert expanded == [-1]


def test_a_search_that_does_not_fit_says_what_it_needs(monkeypatch, tmp_path):
    """160 x 260 cells of 24 bytes are 1 MB, 10,000 x 10,000 of 32 bytes 3.2 GB."""
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal: 9 kB\nMemAvailable:       799 kB\n")
    monkeypatch.setattr(module, "_MEMORY", memory)
    with pytest.raises(PlanError, match=r"a plan over 41,600 cells needs 0\.0 GB of memory"):
        plan_drive(flat_ground(160, 260), PlanPose(2, 2), PlanPose(9, 9), 2.0)

    memory.write_text("MemAvailable: 1953125 kB\n")
    with pytest.raises(PlanError, match=r"needs 3\.2 GB .* 2\.0 GB are free") as refused:
        check_memory("a plan", 10**8, 32)
    assert refused.value.reason == "too_large"
    check_memory("a plan", 10**7, 32)
    memory.unlink()
    check_memory("a plan", 10**12, 32)
