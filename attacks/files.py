# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mutated and monstrous files for every reader that a user or a peer can reach.

Readers work in a process of their own (`file_reader`), which answers each file with a good result
or a typed error of one line, within a time and a limit of memory. Mutators know the formats: chunks
of a png, members of an npz, entries of a TIFF, the trees of YAML and JSON, records of a capture.
The first files of a long run are bombs.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attacks.mutators import BOMBS, MAKERS
from attacks.table import Result, largest

TRIES = 3_000
SHORT_TRIES = 40
"""Tries of each reader in a short run."""
WITH_BOMBS = 100
"""Tries from which files include decompression bombs."""
MAX_MEMORY_MB = 1_000.0
"""Limit of a reading process with its libraries: the largest accepted map needs as much."""
MAX_READING_S = 20.0
"""Limit of processor time, s, since the machine may be busy."""
GIVEN_UP_S = 90.0
_KEPT = 20
_READER = Path(__file__).with_name("file_reader.py")
_ROOT = Path(__file__).parents[1]


class Answer(NamedTuple):
    """Answer of a reading process."""

    came: str
    """Outcome: read, or the name of the typed error."""
    wrong: str
    """What is wrong with it; empty if nothing."""
    memory_mb: float
    """Largest resident memory so far, 10^6 bytes."""
    seconds: float
    """Processor time, s."""


class ReadingProcess:
    """A process that reads files with one reader after the other; one that has died begins anew."""

    def __init__(self) -> None:
        self._reader = ""
        self._start()

    def _start(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(_ROOT), os.environ.get("PYTHONPATH", ""))),
        }
        self._process = subprocess.Popen(
            [sys.executable, str(_READER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._answers = self._process.stdout
        self._paths = self._process.stdin

    def choose(self, reader: str) -> None:
        """Take a reader, in a new process if the last has ended."""
        if self._process.poll() is not None:
            self.close()
            self._reader = ""
            self._start()
        if reader == self._reader:
            return

        # wait until it has started
        self._reader = reader
        if self._ask(f"reader {reader}", 120.0).came != "ready":
            raise RuntimeError(f"the reader {reader!r} does not start")

    def read(self, path: Path) -> Answer:
        """Return the outcome of a file."""
        return self._ask(str(path), GIVEN_UP_S)

    def _ask(self, line: str, seconds: float) -> Answer:
        self._paths.write(f"{line}\n".encode())
        self._paths.flush()
        return self.answer(seconds)

    def answer(self, seconds: float) -> Answer:
        """Return the next answer; a process that gives none has stalled or ended."""
        ready, _, _ = select.select([self._answers], [], [], seconds)
        line = self._answers.readline() if ready else b""
        if not line:
            self.close()
            code = self._process.returncode
            return Answer(
                "nothing", f"no answer in {seconds:.0f} s, exit code {code}", 0.0, seconds
            )
        return Answer(*json.loads(line))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._answers.close()
        self._paths.close()


def read_files(
    kind: str,
    reader: str,
    rng: random.Random,
    tries: int,
    process: ReadingProcess | None = None,
) -> Result:
    """Try many files of one kind. Files that failed stay in a folder, which is named.

    A process that is given goes on afterwards, and counts the memory of all that it has read.
    """
    if process is None:
        with closing(ReadingProcess()) as own:
            return read_files(kind, reader, rng, tries, own)
    folder = Path(tempfile.mkdtemp(prefix="attacked_files_"))
    outcomes: Counter[str] = Counter()
    memories = [0.0]
    stalls = [0.0]
    failures = []
    bombs = BOMBS.get(kind, {}) if tries >= WITH_BOMBS else {}
    plan: list[tuple[str, Callable[[], dict[str, bytes]]]] = [
        *((name, partial(make, rng)) for name, make in bombs.items()),
        *((f"file {number}", partial(MAKERS[kind], rng)) for number in range(tries - len(bombs))),
    ]

    for name, make in plan:
        stem = name.replace(" ", "_")
        paths = []

        # ending of the stem, or another file's name
        for ending, data in make().items():
            paths.append(folder / (f"{stem}{ending}" if ending.startswith(".") else ending))
            paths[-1].write_bytes(data)

        # read the first of them
        process.choose(reader)
        came, wrong, memory_mb, seconds = process.read(paths[0])
        stalls.append(seconds)
        memories.append(memory_mb)
        outcomes[came] += 1

        # judge the answer
        if not wrong and memory_mb > MAX_MEMORY_MB:
            wrong = f"{memory_mb:.0f} MB, at most {MAX_MEMORY_MB:.0f} are meant to be needed"
        if not wrong and seconds > MAX_READING_S:
            wrong = f"{seconds:.0f} s, at most {MAX_READING_S:.0f} are meant to be needed"
        if wrong:
            failures.append(f"{paths[0]}: {wrong}")

        # keep only what failed
        for path in paths:
            if not wrong or len(failures) > _KEPT:
                path.unlink()

        # a new process after a large one
        if memory_mb > MAX_MEMORY_MB:
            process.close()

    if not failures:
        folder.rmdir()
    if tries >= WITH_BOMBS and (not outcomes["read"] or outcomes["read"] == sum(outcomes.values())):
        failures.append(f"all were read, or none: the mutators try nothing ({dict(outcomes)})")

    return Result(
        f"files: {kind}", len(plan), len(failures), largest(memories), max(stalls), tuple(failures)
    )


_READER_OF = {
    # arrays and rasters
    "map": "map",
    "npy": "array",
    "npz": "array",
    "geotiff": "raster",
    "placed geotiff": "placed raster",
    "ascii grid": "raster",
    "occupancy map": "occupancy",
    "mat maps": "mat maps",
    # points and ways
    "points": "query points",
    "waypoints csv": "waypoints",
    "waypoints npy": "waypoints",
    "gpx": "waypoints",
    "path yaml": "waypoints",
    "plan": "mission",
    "waypoints mission": "mission",
    # recordings
    "pcap": "recording",
    "pcapng": "recording",
    "mcap": "mcap",
    "fit log": "fit log",
    "replay log": "replay log",
    # vehicles and worlds
    "vehicle xml": "vehicle xml",
    "parameter file": "parameter file",
    "fleet": "fleet",
    "placements": "placements",
    "placements csv": "placements",
    "shapes": "shapes",
    "vehicle classes": "vehicle classes",
    "scenario": "scenario",
    "vehicle": "vehicle",
    "sensors": "sensors",
    "estimator": "estimator",
    "world": "world",
    "mesh glb": "world",
    "mesh obj": "world",
    "osm": "osm",
}
"""Reader of `file_reader` by the kind of the files."""

ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    f"files: {kind}": partial(read_files, kind, reader) for kind, reader in _READER_OF.items()
}
