# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Odd words on the command line, as typed or sent by a script, for every command of `rfly`.

Words of a sensible command line become odd. Options get odd values: wrong or too large numbers,
texts of any script, files that are missing, empty, folders, pipes, links to themselves or of
another kind. Each line has to succeed, or fail with one plain line and exit code 2, never with a
trace, in time and small. A line that lasts is ended by SIGINT. Every line is a process, forked from
one that has finished its imports, in a folder and an empty ROS graph of its own; paths stay below
that folder.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from attacks.running import MB, free_port, own_graph
from attacks.table import Result, largest

TRIES = 1_000
SHORT_TRIES = 10
LASTS_S = 6.0
"""Processor or wall time, whichever is longer, after which a line is asked to end, s."""
GIVEN_UP_S = 60.0
ADDRESS_SPACE = 8 << 30
MOST_MEMORY_MB = 1_000.0
LONGEST_LINE = 1_500
"""Longest error line of a command that refuses its input, in characters."""
CODES = frozenset({0, 1, 2})
STOPPED_CODES = CODES | {129, 130, 143}
COMMON_IMPORTS = (
    "attacks.command_line",
    "rfly_bringup.cli.main",
    "rfly_terrain",
    "rfly_trajectory",
    "rfly_amphibious",
    "rfly_collision",
    "rfly_ue_bridge",
    "numpy",
    "yaml",
    "rich.console",
    "jsonschema",
    "scipy.ndimage",
)
NUMBERS = (
    # extreme and odd forms
    "",
    " ",
    "0",
    "-0",
    "-1",
    "1",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e400",
    "-1e308",
    "1e-320",
    "1e308",
    "0x10",
    "1_000",
    # of other scripts, too long or too large
    "٣",
    "１２",
    "1,5",
    "1.5.2",
    "--",
    "-",
    "½",
    "9" * 400,
    "9" * 5000,
    "2147483648",
    "-9223372036854775809",
    "1e18",
    # integers, words and more exponents
    "18446744073709551616",
    "65536",
    "99999",
    "true",
    "None",
    "+1",
    "1e",
    "٣.٥",
    "1000000",
    "0.0000001",
    "1e9",
)
TEXTS = (
    # scripts, controls and markup
    "",
    " ",
    "é",
    "e\u0301",
    "日本",
    "\u202e",
    "\x1b[31mred\x1b[0m",
    "a\nb",
    "[bold]x[/]",
    "[/]",
    "%s%n",
    "{0}",
    "{",
    "}",
    # lengths, paths and patterns
    "x" * 300,
    "x" * 5000,
    "../x",
    "..",
    "~",
    "/",
    "//",
    "a b",
    "a/b",
    "*",
    "?",
    "(",
    "[",
    "(a+)+$",
    "\\",
    "\udc80",
    "'",
    # variations and lists
    "0=1",
    "a=b=c",
    "=",
    "seed=0:50",
    "seed=1:0",
    "seed=nan",
    "mass=-1,nan",
    "1,2",
    "nan,nan",
    "1,2,3,4",
    ",",
    "\t",
    "\0x",
    # systems, hosts and addresses
    "EPSG:0",
    "EPSG:99999999",
    "+proj=longlat",
    "localhost:99999",
    "256.1.1.1",
    "x" * 70 + ".invalid",
    "1.2.3",
    "::1",
    # names that mean something
    "JacksboroFault",
    "scale",
    "hop",
    "valley",
    "pillars",
    "demo_convoy",
    "forest",
    "map_ned",
    "rover",
    "true",
    "false",
)
FILES = (
    # of another kind
    "missing",
    "missing/x",
    "folder",
    "folder/",
    "pipe",
    "loop",
    "empty",
    "socket",
    "random",
    "zeros",
    "huge",
    "x.png",
    # folders
    "folder.png",
    "folder.yaml",
    "folder.plan",
    "folder.mcap",
    "folder.pcap",
    "folder.npz",
    "folder.csv",
    "folder.xml",
    # pipes
    "pipe.png",
    "pipe.yaml",
    "pipe.plan",
    "pipe.mcap",
    "pipe.pcap",
    "pipe.npz",
    "pipe.csv",
    "pipe.xml",
    "pipe.tif",
    # empty files
    "empty.png",
    "empty.yaml",
    "empty.plan",
    "empty.mcap",
    "empty.pcap",
    "empty.npz",
    "empty.csv",
    "empty.xml",
    # random bytes
    "random.png",
    "random.yaml",
    "random.plan",
    "random.mcap",
    "random.pcap",
    "random.npz",
    "random.csv",
    "random.xml",
    # more empty and random ones
    "empty.tif",
    "empty.npy",
    "empty.obj",
    "empty.waypoints",
    "random.tif",
    "random.npy",
    "random.waypoints",
    # locked, or with odd names
    "locked.yaml",
    "locked.plan",
    "locked/x",
    "é\u0301.png",
    "\udc80.yaml",
    "x" * 250 + ".yaml",
    "x" * 300,
    "a\nb.csv",
    # sensible files
    "fleet.yaml",
    "world.yaml",
    "mission.plan",
    "points.csv",
    "vehicle.xml",
    "none.yaml",
    "list.yaml",
    "text.yaml",
)

DEVICE_FILES = tuple(
    f"{kind}{ending}"
    for kind in ("pipe", "zero", "socket")
    for ending in (
        "", ".yaml", ".png", ".csv", ".mcap", ".txt", ".plan", ".osm", ".npy", ".pcap", ".json"
    )
)  # fmt: skip
"""What is no regular file: pipes that nobody writes into, links to /dev/zero, sockets."""

SENSIBLE: dict[str, Sequence[str]] = {
    "dissector": ("--out", "made.lua"),
    "doctor": ("--seconds", "0.5"),
    "drive": ("amphibious_1",),
    "fleet check": ("fleet.yaml", "--seconds", "2"),
    "fleet deconflict": ("fleet.yaml", "--out", "made.yaml"),
    "fleet plot": ("fleet.yaml", "--out", "made.png"),
    "listen": ("--count", "1"),
    "mission check": ("mission.plan",),
    "mission convert": ("mission.plan", "made.waypoints"),
    "mission fly": ("mission.plan", "--limit", "5"),
    "mission preflight": ("mission.plan", "--map", "RollingHills"),
    "mission hold": ("hawk",),
    "mission resume": ("hawk",),
    "mission return": ("hawk",),
    "mission start": ("hawk", "mission.plan"),
    "mission status": ("hawk",),
    "objects fit": ("--click", "1", "2", "3", "--object", "1", "2", "3", "--dry-run"),
    "objects list": (),
    "objects move": ("1", "2", "3"),
    "objects place": ("3", "1", "2"),
    "objects remove": ("1",),
    "plan": ("0,0", "50,50", "--map", "RollingHills"),
    "record": ("made.pcap", "--windows", "1", "--duration", "0.2"),
    "replay": ("made.pcap", "--speed", "100"),
    "send": ("RflyCameraPosAng", "0", "0", "-20"),
    "sim ardupilot-params": ("made.parm",),
    "sim faults": ("--part", "brake_fl", "--seeds", "1", "--jobs", "1", "--out", "made.csv"),
    "sim fit": ("points.csv",),
    "sim modes": ("scale",),
    "sim px4-params": ("made.px4",),
    "sim replay": ("points.csv",),
    "sim run": ("scenario.yaml",),
    "sim sweep": ("scenario.yaml", "--vary", "seed=0:1", "--jobs", "1"),
    "sim urdf": ("scale", "--out", "made.urdf"),
    "status": ("--once", "--seconds", "0.5"),
    "terrain cloud": ("RollingHills", "--out", "made.pcd", "--stride", "50"),
    "terrain export": ("RollingHills", "--out", "made.tif"),
    "terrain import": ("heights.npy", "--out", "made.png", "--cell-size", "1", "1"),
    "terrain info": ("RollingHills",),
    "terrain plot": ("RollingHills", "--out", "made.png"),
    "terrain query": ("1", "2", "RollingHills"),
    "terrain traversable": ("RollingHills", "--resolution", "5"),
    "up": ("--map", "RollingHills"),
    "up amphibious": (),
    "view": ("--port", "0"),
    "world import": (
        "city.osm",
        "--map",
        "RollingHills",
        "--geo-origin",
        "47",
        "8",
        "500",
    ),
    "world info": ("pillars",),
    "world make": ("forest", "--out", "made.yaml"),
    "world plot": ("pillars", "--out", "made.png"),
}
OWN_PORTS: Mapping[str, Sequence[str]] = {
    "listen": ("--port={port}",),
    "record": ("--port={port}",),
    "replay": ("--port={port}",),
    "send": ("--port={port}", "--window=0"),
    "objects place": ("--port={port}", "--window=0"),
    "view": ("--udp-port={port}", "--feedback-port={port}"),
    "up": ("--params-file=ports.yaml",),
    "up amphibious": ("--params-file=ports.yaml",),
}
"""Options appended last, so that nothing reaches other peers of this machine."""
RASTER_OPTIONS: Sequence[Sequence[str]] = (
    (),
    ("--keep-cells",),
    ("--crs", "EPSG:4326"),
    ("--resolution", "0.001"),
    ("--resolution", "5", "--origin-altitude", "ground"),
    ("--center", "46.5", "8", "--size", "100", "100"),
)
SLOW = frozenset(
    {
        "up",
        "up amphibious",
        "view",
        "sim run",
        "sim sweep",
        "sim faults",
        "mission start",
        "mission status",
        "doctor",
    }
)
SELDOM = 0.15
"""Probability that one of them is chosen."""
LASTING = SLOW | {"drive", "listen", "record", "sensors listen", "sensors request", "status"}
"""Commands that may wait for data or a person."""


class Option(NamedTuple):
    """A command: its name, and the number of words after it."""

    name: str
    words: int
    takes_text: bool = True
    """False for numbers and choices."""


def commands() -> dict[str, list[Option]]:
    """Return every command of `rfly` with its options, as Typer has them."""
    import typer.main

    from rfly_bringup.cli.main import app

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, list[Option]]]:
        """Yield the name of each command below this one, with its options."""
        for name, child in sorted(getattr(command, "commands", {}).items()):
            yield from walk(child, (*words, name))
        is_group = hasattr(command, "commands") and not command.invoke_without_command
        if command.callback is None or is_group:
            return

        options = []
        for param in command.params:
            if param.param_type_name == "option":
                is_flag = getattr(param, "is_flag", False)
                kind = getattr(getattr(param, "type_descriptor", None), "annotation", str)
                takes_text = not is_flag and kind in (str, Path)
                options.append(Option(param.opts[0], 0 if is_flag else param.nargs, takes_text))
        yield " ".join(words), options

    return {name: options for name, options in walk(typer.main.get_command(app), ()) if name}


def odd_line(rng: random.Random, name: str, options: Sequence[Option]) -> list[str]:
    """Return the words after `rfly`.

    They are a sensible line with an odd word, too few or too many, or an option with odd values.
    """
    words = list(SENSIBLE.get(name, ()))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(len(words) + 1)
        match rng.randrange(6):
            case 0 | 1 if words:
                words[place % len(words)] = odd_word(rng)
            case 2:
                del words[place : place + 1]
            case 3:
                words.insert(place, odd_word(rng))
            case _ if options:
                option = rng.choice(options)
                words += [option.name, *(odd_word(rng) for _ in range(option.words))]

    return [word for word in (*name.split(), *words) if word != "--overwrite" or rng.random() < 0.5]


def odd_word(rng: random.Random) -> str:
    """Return a number, a text or the name of a file."""
    return rng.choice(rng.choice((NUMBERS, TEXTS, FILES))).replace("\0", "")


def make_files(folder: Path, rng: random.Random) -> None:
    """Write the files that FILES and SENSIBLE name."""
    from attacks.binary_mutators import saved
    from attacks.mission_mutators import PLAN
    from attacks.mutators import OSM, VEHICLE
    from attacks.text_mutators import shipped

    contents: dict[str, bytes] = {
        "fleet.yaml": shipped("rfly_trajectory/data/fleets/demo_convoy.yaml"),
        "world.yaml": shipped("rfly_terrain/data/worlds/pillars.yaml"),
        "scenario.yaml": shipped("rfly_amphibious/data/scenarios/hop.yaml"),
        "mission.plan": json.dumps(PLAN).encode(),
        "points.csv": b"x,y\n1,2\n3,4\n",
        "vehicle.xml": VEHICLE.encode(),
        "city.osm": OSM.encode(),
        "none.yaml": b"null\n",
        "list.yaml": b"[1, [2, {}]]\n",
        "text.yaml": b"text\n",
        "heights.npy": saved(a=[[1.0, 2.0, 3.0]] * 3)["a.npy"],
        "ports.yaml": f"/**: {{ros__parameters: {{port: {free_port()}, feedback_port: "
        f"{free_port()}}}}}\n".encode(),
        "zeros": bytes(1_000_000),
    }

    # by name: folders, pipes, links to themselves, sockets, holes and bytes
    for name in (*FILES, *DEVICE_FILES):
        path = folder / name
        kind = name.partition(".")[0]
        with suppress(OSError):  # a name that no system takes
            if kind == "folder":
                path.mkdir(exist_ok=True)
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind == "zero":
                path.symlink_to("/dev/zero")
            elif kind == "loop":
                path.symlink_to(path)
            elif kind == "socket":
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(str(path))
            elif kind == "huge":
                with path.open("wb") as file:
                    file.truncate(1 << 40)
            elif kind in ("empty", "random", "locked"):
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(b"" if kind == "empty" else rng.randbytes(2000))

    for name, data in contents.items():
        (folder / name).write_bytes(data)
    for path in folder.glob("locked*"):
        path.chmod(0)


class Outcome(NamedTuple):
    """Result of one line; `wrong` is empty if all went well."""

    wrong: str
    seconds: float
    peak_mb: float


def run_words(words: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
    """Become `rfly` with these words, in the forked process."""
    # a session, an environment and a folder of its own
    os.setsid()
    os.environ.update(environment)
    os.chdir(folder)

    # nothing on stdin, output into files
    for number, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened = os.open(name, flags)
        os.dup2(opened, number)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", errors="backslashreplace") for number in (1, 2)
    )
    sys.stdin = open(os.devnull)  # noqa: SIM115  it lasts as long as the process

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    sys.argv = ["rfly", *words]

    from rfly_bringup.cli.entry_point import rfly

    rfly()


def attack_line(
    context: Any,
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    may_last: bool = True,
) -> Outcome:
    """Run one process; return its output at its end, which is requested if it lasts."""
    process = context.Process(target=run_words, args=(words, str(folder), dict(environment)))
    start = time.monotonic()
    peak = 0.0
    process.start()
    watched = psutil.Process(process.pid)
    stopped_at = math.inf
    code = None
    used = 0.0

    while code is None:
        process.join(0.02)
        code = process.exitcode
        with suppress(psutil.Error):
            peak = max(peak, watched.memory_info().rss / MB)
            used = sum(watched.cpu_times()[:2])

        # ask it to end after its time, which is longer on a busy machine, and not before it begins
        now = time.monotonic()
        if not (folder / "stderr").exists():
            start = now
        lasted = min(now - start, max(used, 0.2 * (now - start)))
        if code is None and stopped_at == math.inf and lasted > LASTS_S:
            stopped_at = now
            os.kill(process.pid, signal.SIGINT)

        # kill it when that does not help
        if now - stopped_at > GIVEN_UP_S:
            process.kill()
            process.join()
            code = -9

    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

    # judge its end
    wrong = judge(code, stopped_at < math.inf, (folder / "stderr").read_text("utf-8", "replace"))
    if stopped_at < math.inf and not may_last:
        wrong.append("it waits or reads without end")
    if peak > MOST_MEMORY_MB:
        wrong.append(f"swelled to {peak:.0f} MB")

    return Outcome(
        f"rfly {words!r}: {'; '.join(wrong)}" if wrong else "",
        time.monotonic() - start,
        peak,
    )


def judge(code: int, stopped: bool, text: str) -> list[str]:
    """Return what is wrong with an end.

    `stopped`: the line lasted and was asked to end; `text`: its output on stderr.
    """
    wrong = []
    if code not in (STOPPED_CODES if stopped else CODES):
        wrong.append(f"exit code {code}")

    if "Traceback" in text or "Warning:" in text:
        wrong.append(" | ".join(text.splitlines()[-6:])[-1000:])

    # a refusal is one line
    lines = text.splitlines()
    if code == 2 and not stopped and not wrong:
        if len(lines) != 1 or not lines[0].startswith("rfly: "):
            wrong.append(f"said {len(lines)} lines, not one: {text[:300]!r}")
        elif len(lines[0]) > LONGEST_LINE:
            wrong.append(f"said a line of {len(lines[0])} characters: {lines[0][:100]!r}")

    if "\x1b" in text:
        wrong.append(f"an escape sequence reached the terminal: {text[:300]!r}")
    return wrong


def _drawn(rng: random.Random, names: Sequence[str], tries: int) -> Iterator[str]:
    """Yield commands at random, those that last only seldom."""
    for _ in range(tries):
        name = rng.choice(names)
        while name in SLOW and rng.random() > SELDOM:
            name = rng.choice(names)
        yield name


def attack_lines(
    name: str, lines: Iterable[Callable[[Path], list[str]]], may_last: bool = True
) -> Result:
    """Run lines, each made for a folder of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(COMMON_IMPORTS))
    outcomes = []

    with own_graph() as graph, tempfile.TemporaryDirectory(prefix="attack_") as root:
        for number, make in enumerate(lines):
            folder = Path(root) / str(number)
            folder.mkdir()
            outcomes.append(attack_line(context, make(folder), folder, graph, may_last))
            _remove(folder)

    failures = tuple(outcome.wrong for outcome in outcomes if outcome.wrong)
    peak = largest(o.peak_mb for o in outcomes)
    longest = largest(o.seconds for o in outcomes)
    return Result(name, len(outcomes), len(failures), peak, longest, failures)


def command_lines(rng: random.Random, tries: int) -> Result:
    """Give odd words to all commands."""
    known = commands()

    def line(name: str, folder: Path) -> list[str]:
        make_files(folder, rng)
        last = [word.format(port=free_port()) for word in OWN_PORTS.get(name, ())]
        return [*odd_line(rng, name, known[name]), *last]

    lines = (partial(line, name) for name in _drawn(rng, sorted(known), tries))
    return attack_lines("odd words on the command line", lines)


def device_lines() -> list[list[str]]:
    """Return a sensible line of each command with a device in the place of each of its files.

    An option that takes a text gets some, too, whether or not it wants a file.
    """
    lines = []
    for name, options in sorted(commands().items()):
        if name in LASTING:
            continue
        words = list(SENSIBLE.get(name, ()))
        for place, word in enumerate(words):
            lines += [
                [*name.split(), *words[:place], device, *words[place + 1 :]]
                for device in DEVICE_FILES
                if "." in word and Path(device).suffix == Path(word).suffix
            ]
        for option in options:
            if option.takes_text:
                lines += [
                    [*name.split(), *words, option.name, *[device] * option.words]
                    for device in ("pipe.yaml", "zero.yaml")
                ]
    return lines


def devices(rng: random.Random, tries: int) -> Result:
    """Give pipes, endless devices and sockets to whatever takes a file; none waits or reads on."""
    lines = device_lines()
    rng.shuffle(lines)

    def line(words: Sequence[str], folder: Path) -> list[str]:
        make_files(folder, rng)
        name = " ".join(words[:2]) if " ".join(words[:2]) in OWN_PORTS else words[0]
        return [*words, *(word.format(port=free_port()) for word in OWN_PORTS.get(name, ()))]

    made = (partial(line, words) for words in lines[:tries])
    return attack_lines("devices in the place of files", made, may_last=False)


def rasters(rng: random.Random, tries: int) -> Result:
    """Import GeoTIFFs of odd places and projections."""
    from attacks.raster_mutators import placed_raster

    def line(folder: Path) -> list[str]:
        (folder / "a.tif").write_bytes(placed_raster(rng)[".tif"])
        options = rng.choice(RASTER_OPTIONS)
        return ["terrain", "import", "a.tif", "--out", "made", "--fill-nodata", *options]

    return attack_lines("GeoTIFFs to rfly terrain import", [line] * tries)


def _remove(folder: Path) -> None:
    """Remove a folder with all that was made unreadable in it."""
    for path in folder.glob("locked*"):
        path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder)


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    "odd words on the command line": command_lines,
    "devices in the place of files": devices,
    "rasters": rasters,
}
