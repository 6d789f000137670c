# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`kill -9` of each node under `rfly up`, and of the command itself, in the middle of work.

The other nodes go on and answer. The command reports which node died, and what it does about it:
with `--respawn` the node is back and answers. A killed command leaves no node behind.
"""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path

import psutil

from attacks.pulse import Pulse
from attacks.running import Running, is_alive, own_graph, rfly, wait_until
from attacks.signals import bridge_parameters
from attacks.table import Result, largest
from rfly_bringup.nodes.entry_points import SEVERAL

TRIES = 3
SHORT_TRIES = 1
"""Crashes of each node, and of the command itself, in a short run."""
PATIENCE_S = 60.0
END_WITHIN_S = 2.0
"""Time in which a command and its nodes end on an idle machine, s."""
FITS = 5
"""Fits that are killed for one crash of each node."""
COMMANDS = {
    "rfly up": (
        "--map",
        "JacksboroFault",
        "--fleet",
        "demo_convoy",
        "--collision",
        "--planner",
        "--mission-vehicles",
        "one",
    ),
    "rfly up amphibious": ("amphibious", "--mapping"),
}


@dataclass
class Crew:
    """`rfly up` at work, and a peer that asks its nodes."""

    running: Running
    pulse: Pulse
    failures: list[str] = field(default_factory=list)
    tried: int = 0

    def nodes(self) -> dict[str, psutil.Process]:
        """Return the processes of the nodes by their names in the graph."""
        processes = [
            process
            for script, process in self.running.processes().items()
            if script.partition(" ")[0].endswith(("_node", SEVERAL))
        ]
        return {name: process for process in processes for name in _full_names(process)}

    def victims(self) -> list[str]:
        """Return the name of one node of each process."""
        return sorted({process.pid: name for name, process in self.nodes().items()}.values())

    def kill(self, name: str, respawn: bool) -> None:
        """Kill a node's process, and check what follows."""
        self.tried += 1
        nodes = self.nodes()
        victim = nodes[name]
        dead = [node for node, process in nodes.items() if process.pid == victim.pid]
        for node in dead:
            del nodes[node]
        printed_before = len(self.running.output)
        victim.kill()
        for node in dead:
            self.pulse.renew(node)

        try:
            # the command reports the death of each of its nodes
            for node in dead:
                line = wait_until(
                    lambda node=node: self._obituary(node, printed_before),
                    f"a word on the death of {node}",
                    PATIENCE_S,
                )
                if "SIGKILL" not in line or ("starting again" in line) != respawn:
                    self.failures.append(f"{node}: said {line!r}")

            # all others answer, and the dead nodes if they come back
            if respawn:
                wait_until(
                    lambda: self.nodes().keys() >= set(dead), f"{name} to start again", PATIENCE_S
                )
            for other in [*nodes, *(dead if respawn else [])]:
                before = self.pulse.answers(other)
                wait_until(
                    lambda node=other, seen=before: self.pulse.answers(node) > seen,
                    f"an answer of {other} after {name} was killed",
                    PATIENCE_S,
                )
        except TimeoutError as error:
            self.failures.append(str(error))

        # no other node has ended with it
        now = self.nodes()
        gone = [
            node
            for node, process in nodes.items()
            if node not in now or now[node].pid != process.pid
        ]
        if gone:
            self.failures.append(f"{name} took {', '.join(gone)} with it")

    def _obituary(self, node: str, since: int) -> str:
        """Return the line on a node's end that was printed since; "" if none was."""
        lines = self.running.output[since:].splitlines()
        own = f"{node.lstrip('/')} "
        return next((s for s in lines if s.startswith(own) and "ended by itself" in s), "")


def _full_names(process: psutil.Process) -> list[str]:
    """Return `/amphibious_1/mapping_node` of a command line, or several; none if it has ended."""
    try:
        command = process.cmdline()
    except psutil.NoSuchProcess:
        return []
    if len(command) < 2:
        return []
    namespace = next((word.partition(":=")[2] for word in command if word.startswith("__ns:=")), "")
    script = Path(command[1]).name
    words = takewhile(lambda word: word != "--ros-args", command[2:])
    names = words if script == SEVERAL else [script]
    return [f"{namespace.rstrip('/')}/{name}" for name in names]


@contextmanager
def crew(graph: Mapping[str, str], *arguments: str) -> Iterator[Crew]:
    """Run `rfly up` with these arguments, once all its nodes answer."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="attack_")))
        running = opened.enter_context(
            Running(rfly("up", *arguments, *bridge_parameters(folder)), graph)
        )
        pulse = opened.enter_context(Pulse(graph))
        at_work = Crew(running, pulse)
        count = 0

        # wait until no more nodes are started
        while not at_work.nodes() or count != len(at_work.nodes()):
            count = len(at_work.nodes())
            time.sleep(1.0)

        # wait until all answer
        pulse.watch(*at_work.nodes())
        wait_until(
            lambda: all(pulse.answers(name) for name in at_work.nodes()),
            f"{running.output}: all to answer",
            120.0,
        )
        if "ended by itself" in running.output:
            raise RuntimeError(
                f"not all nodes could start, so that nothing can be tried: {running.output}"
            )

        yield at_work


def kill_nodes(name: str, arguments: tuple[str, ...], rng: random.Random, tries: int) -> Result:
    """Kill each node in random order, restarted each time, and finally each for good."""
    failures: list[str] = []
    tried = 0
    peak = None
    stall = None

    for respawn in (True, False):
        option = ["--respawn"] if respawn else []
        with own_graph() as graph, crew(graph, *arguments, *option) as at_work:
            # kill nodes
            for _ in range(tries if respawn else 1):
                nodes = at_work.victims()
                rng.shuffle(nodes)
                for node in nodes if respawn else nodes[:-1]:
                    at_work.kill(node, respawn)

            # end the command, or its last node
            if respawn:
                code, seconds = at_work.running.end(signal.SIGINT, PATIENCE_S)
            else:  # its last node's end is its own
                start = time.monotonic()
                next(iter(at_work.nodes().values())).kill()
                code = at_work.running.wait(PATIENCE_S)
                seconds = time.monotonic() - start

            if code != 1:
                at_work.failures.append(f"it ended with exit code {code}, expected 1: nodes died")

            peak = largest((peak, at_work.running.peak_mb))
            # others wait for a dead node to come back: only the end has a limit of time
            stall = largest((stall, seconds))
            failures += [
                f"{'--respawn: ' if respawn else ''}{failure}" for failure in at_work.failures
            ]
            tried += at_work.tried + 1

    return Result(
        f"kill -9 of nodes under {name}",
        tried,
        len(failures),
        peak,
        stall,
        tuple(failures),
        END_WITHIN_S,
    )


def kill_commands(rng: random.Random, tries: int) -> Result:
    """Kill the command itself: its nodes end, too."""
    failures: list[str] = []
    tried = 0
    peak = None
    stall = None

    for name, arguments in COMMANDS.items():
        for _ in range(tries):
            with own_graph() as graph, crew(graph, *arguments) as at_work:
                # kill the command at a random moment
                nodes = at_work.nodes()
                time.sleep(rng.uniform(0.0, 1.0))
                start = time.monotonic()
                at_work.running.process.kill()

                # all its nodes end
                alive = nodes
                while alive and time.monotonic() < start + PATIENCE_S:
                    time.sleep(0.02)
                    alive = {node: process for node, process in alive.items() if is_alive(process)}
                stall = largest((stall, time.monotonic() - start))
                if alive:
                    failures.append(
                        f"{name} left {', '.join(alive)} for more than {PATIENCE_S:g} s"
                    )
                for process in alive.values():
                    process.kill()

                peak = largest((peak, at_work.running.peak_mb))
                tried += 1

    return Result(
        "kill -9 of rfly up", tried, len(failures), peak, stall, tuple(failures), END_WITHIN_S
    )


def kill_fits(rng: random.Random, tries: int) -> Result:
    """Kill `rfly sim fit` at random moments: it leaves no process, and a whole result or none."""
    failures: list[str] = []
    peak = None
    with tempfile.TemporaryDirectory(prefix="attack_") as folder:
        result = Path(folder) / "excite.yaml"
        before = ""
        for number in range(tries * FITS):
            with Running(rfly("sim", "fit", "--excite", str(result), "--overwrite")) as running:
                if number == 0:  # a whole one
                    if running.wait(PATIENCE_S) != 0:
                        failures.append(f"the first one failed: {running.output[-300:]}")
                        break
                    before = result.read_text(encoding="utf-8")
                    lasts_s = time.monotonic() - running.started
                    continue

                # kill it in the last part of its life, where it writes
                time.sleep(lasts_s * rng.uniform(0.6, 1.1))
                nodes = running.processes()
                running.process.kill()
                running.process.wait()
                time.sleep(0.1)
                failures += [
                    f"{name} lives on" for name, process in nodes.items() if is_alive(process)
                ]
                peak = largest((peak, running.peak_mb))
            if result.read_text(encoding="utf-8") != before:
                failures.append(f"it left {len(result.read_bytes())} bytes of {len(before)}")
                result.write_text(before, encoding="utf-8")
    return Result(
        "kill -9 of rfly sim fit", tries * FITS, len(failures), peak, None, tuple(failures)
    )


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    **{name: partial(kill_nodes, name, arguments) for name, arguments in COMMANDS.items()},
    "kill -9": kill_commands,
    "kill -9 of a fit": kill_fits,
}
