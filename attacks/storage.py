# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Disks that fill up under a recording, and damaged files in the cache of compiled kernels.

A recording that cannot go on ends with one line that names its file, with exit code 2, and its file
is readable up to there. A run with a damaged cache ends as one with a sound cache, and has replaced
what was damaged.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from attacks.peers import flood, listens
from attacks.running import Running, free_port, node_command, own_graph, rfly, wait_until
from attacks.table import Result

TRIES = 60
SHORT_TRIES = 3
"""Recordings of a kind, or damaged caches, in a short run."""
MOST_BLOCKS = {"pcap": 200, "mcap": 40}
"""Largest limit of a file, blocks of 512 bytes."""
DATAGRAMS = 1_000
ENDS_WITHIN_S = 40.0

KERNELS = """
import logging
import numpy as np
from rfly_terrain.height_map.height_map import HeightMap
logging.basicConfig(level=logging.INFO, format="%(message)s")
heights = np.outer(np.sin(np.arange(81.0)), np.cos(np.arange(81.0)))
ground = HeightMap(heights, origin_x=-40.0, origin_y=-40.0, step_x=1.0, step_y=1.0)
x = np.linspace(-39.0, 39.0, 500)
for values in (ground.altitude(x, x[::-1]), ground.gradient(x, x[::-1]), ground.inside(x, x)):
    print(np.asarray(values).tobytes().hex())
"""
"""Program that calls several kernels, and prints all that they return."""


def limited(blocks: int, command: Sequence[str]) -> list[str]:
    """Return a command whose files may have at most this many blocks of 512 bytes.

    It writes no byte code: Python would leave files cut at the limit for all later processes.
    """
    limit = f"ulimit -f {blocks}; export PYTHONDONTWRITEBYTECODE=1"
    return ["sh", "-c", f'{limit}; exec "$@"', "sh", *command]


def record_datagrams(blocks: int, file: Path) -> tuple[Running, str]:
    """Record datagrams until the limit; return the ended command, and what is wrong."""
    from rfly_common.errors import TruncatedCaptureError
    from rfly_ue_bridge.codec.state_datagrams import encode_pose
    from rfly_ue_bridge.datagram_recording.pcap import RecordingReader

    good = encode_pose(31337, 3, (1.0, 2.0, -3.0), (0.0, 0.0, 0.0))
    port = free_port()
    command = rfly("record", str(file), "--port", str(port), "--windows", "1")
    with Running(limited(blocks, command)) as running:
        wait_until(lambda: listens(running, port), f"UDP {port}")
        deadline = time.monotonic() + ENDS_WITHIN_S
        while running.process.poll() is None and time.monotonic() < deadline:
            flood(port, [good] * DATAGRAMS)
        running.wait(1.0)

    # all whole records: 24 bytes of header, 16 of each record's, 28 of IP's and UDP's
    whole = (file.stat().st_size - 24) // (16 + 28 + len(good))
    read = []
    with RecordingReader(file) as reader, suppress(TruncatedCaptureError):
        for datagram in reader:
            read.append(datagram.payload)
    return running, "" if read == [good] * whole else f"{len(read)} of {whole} datagrams are read"


def record_topics(blocks: int, file: Path) -> tuple[Running, str]:
    """Record the topics of a fleet until the limit; return as `record_datagrams`."""
    from rfly_bringup.topic_recording.mcap_file import recover
    from rfly_common.errors import CaptureError, TruncatedCaptureError
    from rfly_common.untrusted_files.mcap_reader import McapReader

    with ExitStack() as stack:
        graph = stack.enter_context(own_graph())
        fleet = node_command("trajectory_node", {"fleet": "demo_convoy"})
        stack.enter_context(Running(fleet, graph))
        running = stack.enter_context(
            Running(limited(blocks, rfly("record", str(file), "--mcap")), graph)
        )
        running.wait(ENDS_WITHIN_S)

    read = 0
    with McapReader(file) as reader, suppress(TruncatedCaptureError):
        for _ in reader:
            read += 1
    recovered = 0
    with suppress(CaptureError):  # of a file without a message
        recovered = recover(file, file.with_suffix(".whole")).messages
    return running, "" if recovered == read else f"{recovered} of {read} messages are recovered"


RECORDINGS: dict[str, Callable[[int, Path], tuple[Running, str]]] = {
    "pcap": record_datagrams,
    "mcap": record_topics,
}


def full_disk(kind: str, rng: random.Random, tries: int) -> Result:
    """Record to files that the system lets grow only so far."""
    failures = []
    peaks = [0.0]
    for _ in range(tries):
        blocks = rng.randint(1, MOST_BLOCKS[kind])
        with tempfile.TemporaryDirectory(prefix="attack_") as folder:
            file = Path(folder) / f"out.{kind}"
            running, wrong = RECORDINGS[kind](blocks, file)

        # its end and its last line
        last = running.output.rstrip().rpartition("\n")[2]
        if running.process.returncode != 2:
            wrong = f"exit code {running.process.returncode}, expected 2: {running.output[-300:]}"
        elif not (last.startswith("rfly: ") and str(file) in last) or "Trace" in running.output:
            wrong = f"said {running.output[-300:]!r}"
        if wrong:
            failures.append(f"{blocks} blocks: {wrong}")
        peaks.append(running.peak_mb or 0.0)
    return Result(f"full disk: {kind}", tries, len(failures), max(peaks), None, tuple(failures))


def spoil(rng: random.Random, files: Sequence[Path]) -> str:
    """Damage one file of a cache; return how."""
    file = rng.choice(files)
    data = bytearray(file.read_bytes())
    match rng.randrange(5):
        case 0:
            other = rng.choice([each for each in files if each != file])
            file.write_bytes(other.read_bytes())
            return f"{file.name} has the content of {other.name}"
        case 1:
            file.write_bytes(data[: rng.randrange(len(data))])
            return f"{file.name} was cut"
        case _:
            bits = [rng.randrange(8 * len(data)) for _ in range(rng.choice((1, 1, 2, 8)))]
            for bit in bits:
                data[bit // 8] ^= 1 << bit % 8
            file.write_bytes(data)
            return f"bits {bits} of {file.name} were flipped"


def kernel_cache(rng: random.Random, tries: int) -> Result:
    """Run kernels from a cache of which one file is damaged."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="attack_") as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}

        def run() -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-c", KERNELS]
            return subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )

        right = run().stdout
        sound = sorted(Path(folder).rglob("*.nbc"))
        for _ in range(tries):
            damage = spoil(rng, sound)
            done = run()
            if (done.returncode, done.stdout) != (0, right):
                failures.append(f"{damage}: exit code {done.returncode}, {done.stderr[-300:]}")
            elif "cannot be used" not in done.stderr:
                failures.append(f"{damage}: used all the same, or silently replaced")
            elif "cannot be used" in run().stderr:
                failures.append(f"{damage}: not replaced")
    return Result("damaged kernel cache", tries, len(failures), None, None, tuple(failures))


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    "full disk, pcap": partial(full_disk, "pcap"),
    "full disk, mcap": partial(full_disk, "mcap"),
    "kernel cache": kernel_cache,
}
