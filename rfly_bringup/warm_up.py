# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compilation of the suite's kernels into the cache on disk, in several processes at once.

`python -m rfly_bringup.warm_up [PART ...]` compiles the parts, all by default, and prints
"[compiled/all]" at each kernel. Its exit code is 1 if one of the parts fails.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib.metadata
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from rfly_bringup.terminal import COMPILING, progress_bar, say_compiling
from rfly_common.kernels.compiling import on_compile
from rfly_common.kernels.sources import digest_of_kernels, user_cache


class WarmUpPart(NamedTuple):
    """Kernels that are compiled by one process."""

    kernels: int
    """Number of them on an empty cache, inner ones included, for the progress bar."""
    functions: tuple[str, ...]
    """Functions that use them."""


PARTS = {
    "terrain": WarmUpPart(31, ("rfly_terrain.warm_up:warm_up",)),
    "collision": WarmUpPart(113, ("rfly_collision.world.scene:warm_up",)),
    "amphibious": WarmUpPart(110, ("rfly_amphibious.warm_up:warm_up",)),
    "estimator": WarmUpPart(83, ("rfly_autonomy.estimation.estimator:warm_up",)),
    "solids": WarmUpPart(120, ("rfly_amphibious.warm_up:warm_up_solids",)),
    "batches": WarmUpPart(130, ("rfly_amphibious.warm_up:warm_up_lanes",)),
    "trajectory": WarmUpPart(46, ("rfly_trajectory.warm_up:warm_up",)),
    "avoidance": WarmUpPart(92, ("rfly_trajectory.warm_up:warm_up_avoidance",)),
    "planner": WarmUpPart(71, ("rfly_terrain.planning.planner:warm_up",)),
    "range sensors": WarmUpPart(
        88,
        (
            "rfly_sensing.warm_up:warm_up",
            "rfly_autonomy.mapping.octomap_grid:warm_up",
        ),
    ),
}
"""Parts by name.

All other parts contain the ground's kernels, so these come first, unless all run at once. Then the
longest comes first.
"""

_NODES = {
    "terrain_node": ("terrain",),
    "trajectory_node": ("trajectory",),
    "avoidance_node": ("avoidance",),
    "mission_node": ("trajectory",),
    "collision_node": ("collision",),
    "planner_node": ("planner",),
    "amphibious_sim_node": ("amphibious", "solids", "range sensors"),
    "state_estimator_node": ("estimator",),
    "mapping_node": ("range sensors",),
    "spawner_node": ("trajectory", "amphibious", "solids", "range sensors", "estimator"),
}
"""Parts that a node's executable loads at its start."""


def compile_for_nodes(executables: Iterable[str], avoidance: bool = False) -> None:
    """Call `compile_first` for these nodes; each would otherwise compile the same on its own.

    `avoidance`: the vehicles of a fleet keep clear of each other.
    """
    parts = {part for name in executables for part in _NODES.get(name, ())}
    compile_first(parts | {"avoidance"} if avoidance else parts)


def compile_first(wanted: Container[str]) -> None:
    """Compile the wanted parts that the cache lacks, with a progress bar.

    Usually none is missing.
    """
    missing = [part for part in PARTS if part in wanted and not _stamp(part).is_dir()]
    if not missing:
        return

    if not sys.stderr.isatty():
        say_compiling()
    with progress_bar(COMPILING, says=True) as bar:
        compile_counted(missing, lambda compiled, total: bar(compiled / total))


def compile_counted(names: Sequence[str], show: Callable[[int, int], None]) -> None:
    """Compile parts, and call `show` with the number of compiled kernels and the total.

    Raise as `compile_parts`.
    """
    compiled = dict.fromkeys(names, 0)
    total = sum(PARTS[name].kernels for name in names)

    def count(name: str, kernels: int) -> None:
        compiled[name] = min(kernels, PARTS[name].kernels)
        show(sum(compiled.values()), total)

    for name in compile_parts(names, os.cpu_count() or 1, count):
        count(name, PARTS[name].kernels)


def compile_parts(
    names: Sequence[str], processes: int, count: Callable[[str, int], None] = lambda *_: None
) -> Iterator[str]:
    """Compile each part in its own process, and yield its name when it is ready.

    At most `processes` run at once. `count` is called from their threads with the name of a part
    and the number of its kernels so far. Raise `subprocess.CalledProcessError`, with what the
    process printed, if one fails.
    """
    ordered = [name for name in PARTS if name in names]
    running: set[subprocess.Popen[str]] = set()
    stopped = threading.Event()
    with ThreadPoolExecutor(max(1, processes)) as pool:
        try:
            # the others find the kernels of the terrain in the cache
            if ordered[:1] == ["terrain"] and len(ordered) > processes:
                pool.submit(_compile, "terrain", count, running, stopped).result()
                yield ordered.pop(0)

            jobs = {pool.submit(_compile, name, count, running, stopped): name for name in ordered}
            for job in as_completed(jobs):
                job.result()
                yield jobs[job]
        # after Ctrl-C or a failure, do not wait for the others, but do not leave them running
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in tuple(running):
                process.kill()


def _compile(
    name: str,
    count: Callable[[str, int], None],
    running: set[subprocess.Popen[str]],
    stopped: threading.Event,
) -> None:
    """Compile a part in its own process, which is in `running` and ends when `stopped`."""
    command = [sys.executable, "-m", "rfly_bringup.warm_up", "--in-this-process", name]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        running.add(process)
        if stopped.is_set():
            process.kill()

        # one line for each kernel
        assert process.stdout is not None
        for kernels, _ in enumerate(process.stdout, 1):
            count(name, kernels)
        process.wait()
        running.discard(process)
        errors.seek(0)
        printed = errors.read()

    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=printed)
    with contextlib.suppress(OSError):  # a cache that cannot be written
        _stamp(name).mkdir(parents=True, exist_ok=True)


def _stamp(part: str) -> Path:
    """Return the folder that marks a part as compiled from these sources and versions."""
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    key = hashlib.sha256(repr((digest_of_kernels(), sys.version, versions)).encode()).hexdigest()
    stamp = (
        user_cache() / "rfly_suite" / "kernels" / f"{part.replace(' ', '_')}-compiled-{key[:16]}"
    )

    with contextlib.suppress(OSError):  # not there
        os.utime(stamp)  # in use
    return stamp


def main(arguments: Sequence[str]) -> int:
    """Run the command with its arguments, which are parts; return the exit code."""
    if arguments[:1] == ["--in-this-process"]:
        # numba makes millions of objects, and nearly all of them stay until the process ends
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)

        with on_compile(functools.partial(print, flush=True)):
            for function in PARTS[arguments[1]].functions:
                pkgutil.resolve_name(function)()
        return 0

    names = list(arguments) or list(PARTS)
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2

    try:
        compile_counted(names, lambda compiled, total: print(f"[{compiled}/{total}]", flush=True))
    except subprocess.CalledProcessError as error:
        print(error.stderr, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
