# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Runs of scenarios, recorded once for the same sources and shared by all test processes.

A run depends on nothing but the product's files, the libraries and its own arguments; the digest of
all of them names its record in `build/test_runs`. A changed line of the product computes every run
anew. The records are pickles, which only these tests write, into a folder of the user's own tree.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_lab.runs.closed_loop import ClosedLoopRun, run_closed_loop
from rfly_lab.runs.recorder import ScenarioRun
from rfly_lab.runs.run import run_scenario

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "test_runs"
LIBRARIES = ("numpy", "numba", "scipy")
CHECKSUM_SIZE = hashlib.sha256().digest_size
KEPT = 86400.0
"""Time for which the records of other sources are kept, s."""

T = TypeVar("T")


def closed_run(text: str, sensors: SensorParameters | None = None) -> ClosedLoopRun:
    """Return the closed run of a scenario's text."""
    return recorded(run_closed_loop, Scenario.parse(text.encode(), "s.yaml"), sensors)


def shipped_run(name: str) -> ScenarioRun:
    """Return the run of a shipped scenario with the truth pilot."""
    return recorded(run_scenario, Scenario.load(name))


def recorded(run: Callable[..., T], *arguments: object) -> T:
    """Return `run(*arguments)`, from its record if there is one."""
    folder = FOLDER / sources_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a tree that cannot be written
        return run(*arguments)

    record = folder / hashlib.sha256(pickle.dumps((run.__name__, arguments))).hexdigest()
    with record.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another process may be computing the same run
        file.seek(0)
        checksum = file.read(CHECKSUM_SIZE)
        known = file.read()
        if known and hashlib.sha256(known).digest() == checksum:
            return pickle.loads(known)

        # nothing yet, or the rest of a process that was killed
        result = run(*arguments)
        data = pickle.dumps(result)
        file.truncate(0)
        file.write(hashlib.sha256(data).digest() + data)
        return result


@functools.cache
def sources_digest() -> str:
    """Return the digest of the product's files, the libraries and the machine."""
    digest = hashlib.sha256(platform.python_version().encode() + platform.processor().encode())
    for library in LIBRARIES:
        digest.update(importlib.metadata.version(library).encode())
    for path in sorted(ROOT.glob("rfly_*/**/*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())

    name = digest.hexdigest()[:16]
    remove_others(name)
    return name


def remove_others(name: str) -> None:
    """Remove the records of other sources that have not been used for some time."""
    for folder in FOLDER.glob("*"):
        if folder.name != name and time.time() - folder.stat().st_mtime > KEPT:
            shutil.rmtree(folder, ignore_errors=True)
    if (FOLDER / name).exists():
        os.utime(FOLDER / name)
