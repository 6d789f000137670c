# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Signal storms: nodes and lasting commands get SIGINT or SIGTERM at any moment from their start.

Each try is a new process, in traffic. It has to end soon after the first signal, without a trace,
with an exit code that says so, and with everything that it has started. Before its own first
instruction a process is the system's and Python's: what signals do then is theirs, but it ends all
the same.
"""

from __future__ import annotations

import importlib.util
import os
import pty
import random
import re
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from claims import RFLYSIM_PORTS, turn

from attacks.running import Running, free_port, is_alive, node_command, own_graph, rfly
from attacks.table import Result, largest
from attacks.traffic import Traffic

TRIES = 100
SHORT_TRIES = 1
"""Tries of each node and each command in a short run."""
END_WITHIN_S = 2.0
"""Time in which a process ends on an idle machine, s."""
DEMO_WITHIN_S = 8.0
"""The same for the demo, which draws a picture at its end."""
GIVEN_UP_S = 60.0
LEFT_BEHIND_S = 30.0
"""Time after its end after which what a process has started counts as left behind, s."""
AT_ONCE = 3
"""Targets at the same time, in threads."""
LATEST_S = 1.5
"""Latest first signal, s of processor time.

A process that waits for work earlier gets its signal then.
"""
IDLE_S = 1.0
IDLE_SHARE = 0.05
"""Share of a processor below which a process counts as waiting for work."""
NODE_CODES = frozenset({0})
COMMAND_CODES = frozenset({0, 129, 130, 143})
"""Exit codes after a requested end, with those of a shell for a command ended by a signal."""
_TRACES = re.compile(
    r"Traceback|Exception ignored|Fatal Python error|terminate called|Segmentation fault"
)
_OWN_FRAME = re.compile(r'File "[^"]*/rfly_(?!suite)')


@dataclass(frozen=True)
class Target:
    """A target of signals.

    `command` makes a command line, with new ports, in a folder of its own.
    """

    name: str
    command: Callable[[Path, set[int]], list[str]]
    """Command line; the UDP ports that it adds get traffic."""
    codes: frozenset[int]
    kinds: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM)
    claims: int | None = None
    """Claim to a resource that a machine has only once."""
    check: Callable[[Path, str], str] = field(default=lambda folder, output: "")
    """Check of the files left in its folder: what is wrong with them; "" if nothing."""
    within_s: float = END_WITHIN_S
    on_terminal: bool = False
    """True if stdin is a terminal, which has to be restored."""


@dataclass(frozen=True)
class Storm:
    """A first signal after this much processor time, as machines are busy, and some more.

    `more`: seconds after the first, and the signal.
    """

    after_s: float
    first: signal.Signals
    more: Sequence[tuple[float, signal.Signals]]

    def __str__(self) -> str:
        text = f"{self.first.name} after {self.after_s:.3f} s of work"
        if not self.more:
            return text

        more = ", ".join(f"{number.name} {1e3 * s:.0f} ms" for s, number in self.more)
        return f"{text}, then {more} later"


def storm(rng: random.Random, number: int, kinds: Sequence[signal.Signals]) -> Storm:
    """Draw a storm: kinds in turn, every tenth at once, every third with impatient repetitions."""
    times = rng.randint(1, 20) if number % 3 == 2 else 0
    more = sorted((rng.uniform(0.0, 0.5), rng.choice(kinds)) for _ in range(times))
    return Storm(
        0.0 if number % 10 == 9 else rng.uniform(0.0, LATEST_S),
        kinds[number % len(kinds)],
        more,
    )


def wait_for_work(process: psutil.Process, seconds: float) -> None:
    """Wait until a process has used this much processor time, or waits for work."""
    with suppress(psutil.NoSuchProcess):
        seen_at = time.monotonic()
        seen = 0.0
        while (used := sum(process.cpu_times()[:2])) < seconds:
            if time.monotonic() - seen_at > IDLE_S:
                if 0.0 < used - seen < IDLE_SHARE * IDLE_S or used == seen > 0.0:
                    return
                seen_at = time.monotonic()
                seen = used
            time.sleep(0.005)


def in_hand(pid: int) -> bool:
    """Return whether a process has run its first instruction.

    SIGTERM, which Python leaves alone, is then caught or blocked.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    masks = [
        int(mask, 16) for mask in re.findall(r"^Sig(?:Blk|Cgt|Ign):\s*(\w+)$", text, re.MULTILINE)
    ]
    return any(mask & 1 << signal.SIGTERM - 1 for mask in masks)


@dataclass
class Outcome:
    """Result of one try; `wrong` is empty if all went well."""

    wrong: str
    seconds: float
    """Time that the end took, without what the demo may take longer."""
    peak_mb: float | None


def attack_once(target: Target, storm: Storm, graph: Mapping[str, str], ports: set[int]) -> Outcome:
    """Start a process, send it a storm of signals, and judge its end."""
    with ExitStack() as opened:
        if target.claims is not None:
            opened.enter_context(turn(target.claims))

        # a command line, whose ports get traffic
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="attack_")))
        own_ports: set[int] = set()
        command = target.command(folder, own_ports)
        ports |= own_ports
        opened.callback(ports.difference_update, own_ports)

        # a terminal
        terminal = subprocess.DEVNULL
        if target.on_terminal:
            keyboard, terminal = pty.openpty()
            opened.callback(os.close, keyboard)
            opened.callback(os.close, terminal)
            modes = termios.tcgetattr(terminal)

        # let it work
        running = opened.enter_context(Running(command, graph, terminal))
        wait_for_work(psutil.Process(running.process.pid), storm.after_s)
        owned = in_hand(running.process.pid)
        started = list(running.processes().values())

        # the storm
        begin = time.monotonic()
        for after_s, number in ((0.0, storm.first), *storm.more):
            with suppress(subprocess.TimeoutExpired):
                running.process.wait(max(0.0, begin + after_s - time.monotonic()))
            if running.process.poll() is not None:
                break
            running.process.send_signal(number)

        # its end
        code = running.wait(begin + GIVEN_UP_S - time.monotonic())
        seconds = time.monotonic() - begin
        wrong = judge(target, code, running.output, owned)

        # a second signal ends a command at once; the system ends then what it has started
        deadline = time.monotonic() + LEFT_BEHIND_S
        while (alive := _alive(started)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if alive:
            wrong.append(f"left {', '.join(map(_words, alive))} behind")
            for process in alive:
                process.kill()

        # the terminal and the files that it leaves
        killed = running.process.returncode == -9
        if target.on_terminal and not killed and termios.tcgetattr(terminal) != modes:
            wrong.append("left the terminal in another mode")
        if owned and (problem := target.check(folder, running.output)):
            wrong.append(problem)

        late_s = seconds - target.within_s + END_WITHIN_S
        return Outcome(f"{storm}: {'; '.join(wrong)}" if wrong else "", late_s, running.peak_mb)


def _alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that still run."""
    return [process for process in processes if is_alive(process)]


def judge(target: Target, code: int | None, output: str, owned: bool) -> list[str]:
    """Return what was wrong with an end.

    `owned`: the process had run its first instruction when the signal came.
    """
    wrong = []

    # a fitting exit code
    if code is None:
        wrong.append(f"had not ended after {GIVEN_UP_S:g} s")
    elif owned and code not in target.codes:
        wrong.append(f"exit code {code}")

    # no trace
    trace = _TRACES.search(output)
    if trace and (owned or _OWN_FRAME.search(output)):
        lines = output[trace.start() :].splitlines()
        wrong.append(" | ".join(lines if len(lines) < 7 else [*lines[:3], "…", *lines[-3:]]))

    return wrong


def _words(process: psutil.Process) -> str:
    """Return the first words of a process' command line, or its number."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline()[1:3])
    return str(process.pid)


def attack_all(name: str, targets: Sequence[Target], rng: random.Random, tries: int) -> Result:
    """Try each target `tries` times, in the middle of traffic."""
    storms = [
        (target, storm(rng, number, target.kinds)) for number in range(tries) for target in targets
    ]
    with (
        own_graph() as graph,
        Traffic(graph) as traffic,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        outcomes = list(pool.map(lambda each: attack_once(*each, graph, traffic.udp_ports), storms))

    failures = tuple(
        f"{target.name}: {o.wrong}"
        for (target, _), o in zip(storms, outcomes, strict=True)
        if o.wrong
    )
    peak = largest(o.peak_mb for o in outcomes)
    stall = largest(o.seconds for o in outcomes)

    return Result(name, len(storms), len(failures), peak, stall, failures, END_WITHIN_S)


# --- the targets


def node_targets() -> Iterator[Target]:
    """Yield every node."""
    from rfly_bringup.nodes.entry_points import MODULES

    def of(name: str) -> Callable[[Path, set[int]], list[str]]:
        def command(folder: Path, ports: set[int]) -> list[str]:
            parameters: dict[str, Any] = {}
            if name == "terrain_node":
                parameters = {"map": "JacksboroFault"}
            elif name == "ue_bridge_node":
                parameters = {"port": free_port(), "feedback_port": free_port()}
                ports.add(parameters["feedback_port"])
            elif name in (
                "link_node",
                "mavlink_hil_node",
                "ardupilot_json_node",
                "mavlink_node",
            ):
                parameters = {"port": 0}
            elif name == "recorder_node":
                parameters = {"file": str(folder / "{time}.mcap"), "overwrite": True}

            return node_command(name, parameters)

        return command

    for name in MODULES:
        yield Target(name, of(name), NODE_CODES)


def bridge_parameters(folder: Path) -> list[str]:
    """Return an option for `rfly up`: the bridge has ports of its own."""
    file = folder / "bridge.yaml"
    file.write_text(
        f"/**: {{ros__parameters: {{port: {free_port()}, feedback_port: {free_port()}}}}}\n",
        encoding="utf-8",
    )
    return ["--params-file", str(file)]


def _up(*arguments: str) -> Callable[[Path, set[int]], list[str]]:
    """Return a command of `rfly up`, whose bridge has ports of its own."""
    return lambda folder, ports: rfly("up", *arguments, *bridge_parameters(folder))


def _listening(*arguments: str) -> Callable[[Path, set[int]], list[str]]:
    """Return a command that listens on a port with traffic; {folder} and {port} are filled in."""

    def command(folder: Path, ports: set[int]) -> list[str]:
        port = free_port()
        ports.add(port)
        return rfly(*(word.format(folder=folder, port=port) for word in arguments))

    return command


def _replay(folder: Path, ports: set[int]) -> list[str]:
    """Return the command that replays a recording again and again."""
    from rfly_ue_bridge.codec.state_datagrams import encode_pose
    from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
    from rfly_ue_bridge.datagram_recording.pcap import PcapWriter

    # a recording of ten seconds
    with (folder / "in.pcap").open("wb") as file:
        writer = PcapWriter(file)
        for number in range(1000):
            data = encode_pose(1, 3, (0.01 * number, 0.0, -10.0), (0.0, 0.0, 0.0))
            writer.write(
                RecordedDatagram(
                    10_000_000 * number,
                    ("127.0.0.1", 40000),
                    ("127.0.0.1", 20010),
                    data,
                )
            )
        writer.flush()

    return rfly("replay", str(folder / "in.pcap"), "--loop", "0", "--port", str(free_port()))


def _mission(folder: Path, ports: set[int]) -> list[str]:
    """Return the command that starts a mission which repeats."""
    from attacks.mission_mutators import WAYPOINTS

    (folder / "field.waypoints").write_text(WAYPOINTS, encoding="utf-8")
    return rfly("mission", "start", "hawk", str(folder / "field.waypoints"), "--repeat")


def _demo(folder: Path, ports: set[int]) -> list[str]:
    """Return the demo's command in its folder, where its picture goes."""
    return [
        "/bin/sh",
        "-c",
        f"cd '{folder}' && exec '{sys.executable}' -m rfly_bringup.demo",
    ]


def _recording_is_whole(folder: Path, output: str) -> str:
    """Return what is wrong with a recording that was stopped; "" if nothing is."""
    from rfly_common.errors import RflyError
    from rfly_ue_bridge.datagram_recording.pcap import RecordingReader

    path = folder / "out.pcap"
    if not path.exists():
        return ""

    # all datagrams, none damaged
    try:
        with RecordingReader(path) as reader:
            count = sum(1 for _ in reader)
            cut = reader.skipped.total()
    except RflyError as error:
        return f"the recording is damaged: {error}"

    # as many as the command has reported
    reported = re.search(r"(\d[\d,]*) datagrams", output)
    if cut or (reported and int(reported[1].replace(",", "")) != count):
        return (
            f"the recording has {count} datagrams and {cut} damaged ones, "
            f"reported was {reported and reported[0]!r}"
        )

    return ""


def command_targets() -> Iterator[Target]:
    """Yield every command that runs until it is stopped, or for long."""
    # the suite, and a viewer
    up = _up("--map", "JacksboroFault", "--collision", "--planner")
    yield Target("rfly up", up, COMMAND_CODES)
    yield Target("rfly up amphibious", _up("amphibious", "--mapping"), COMMAND_CODES)
    if importlib.util.find_spec("viser") is not None:
        ports = ("--udp-port", "{port}", "--feedback-port", "{port}")
        yield Target("rfly view", _listening("view", "--port", "0", *ports), COMMAND_CODES)

    # monitors and recordings
    yield Target("rfly listen", _listening("listen", "--port", "{port}"), COMMAND_CODES)
    record = _listening("record", "{folder}/out.pcap", "--port", "{port}", "--windows", "1")
    yield Target("rfly record", record, COMMAND_CODES, check=_recording_is_whole)
    yield Target("rfly replay", _replay, COMMAND_CODES)
    yield Target("rfly status", lambda folder, ports: rfly("status"), COMMAND_CODES)

    yield Target(
        "rfly doctor",
        lambda folder, ports: rfly("doctor", "--seconds", "60"),
        COMMAND_CODES,
    )
    if importlib.util.find_spec("mcap") is not None:
        yield Target(
            "rfly record --mcap",
            lambda folder, ports: rfly("record", "--mcap", f"{folder}/a.mcap"),
            COMMAND_CODES,
        )

    if importlib.util.find_spec("websockets") is not None:
        served = ("view", "--foxglove", "--port", "0")
        yield Target("rfly view --foxglove", lambda folder, ports: rfly(*served), COMMAND_CODES)

    # simulations and missions
    yield Target(
        "rfly sim run",
        lambda folder, ports: rfly("sim", "run", "valley", "--estimate"),
        COMMAND_CODES,
    )
    yield Target(
        "rfly drive",
        lambda folder, ports: rfly("drive", "amphibious_1"),
        COMMAND_CODES,
        on_terminal=True,
    )

    # the mission does not reach its end, or no node has offered to fly it
    yield Target("rfly mission start", _mission, COMMAND_CODES | {1, 2})
    yield Target("the demo", _demo, COMMAND_CODES, claims=RFLYSIM_PORTS, within_s=DEMO_WITHIN_S)
    sweep = ("sim", "sweep", "hop", "--vary", "seed=0:50", "--jobs", "2")
    yield Target("rfly sim sweep", lambda folder, ports: rfly(*sweep), COMMAND_CODES)


def signals_to_nodes(rng: random.Random, tries: int) -> Result:
    return attack_all("signals to nodes", list(node_targets()), rng, tries)


def signals_to_commands(rng: random.Random, tries: int) -> Result:
    return attack_all("signals to commands", list(command_targets()), rng, tries)


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    "signals to nodes": signals_to_nodes,
    "signals to commands": signals_to_commands,
}
