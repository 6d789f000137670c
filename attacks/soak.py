# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`python -m attacks.soak HOURS`: the suite at work for hours, watched from outside.

Two ROS graphs run on this machine. One is `rfly up` with 100 vehicles at 50 Hz, collisions and
bridge, with `rfly view` (and a browser's end of its page) and a receiver in RflySim3D's place. The
other is `rfly up amphibious --mapping`, whose vehicle drives and flies from hill to hill. Once a
second memory, threads and descriptors of each process are recorded. The result is printed, and
written to `build/soak.json`, `build/soak.png` and the logs next to them. Exit code 1 if a process
ended or the goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml
from rich.console import Console
from rich.table import Table

from attacks.pulse import Pulse
from attacks.running import MB, Running, free_port, own_graph, rfly, wait_until
from attacks.series_receiver import SeriesReceiver
from attacks.table import machine_line
from rfly_amphibious.simulation.pacing import MOST_BEHIND

VEHICLES = 100
MOST_GROWTH_MB = 5.0
MOST_DRIFT_S = 1e-3
_LOOKS_ONCE = "rfly_bringup.ros.domain_check"
"""A process of `rfly up` that ends by itself, a few seconds after the start."""
WARM_UP = 0.3, 600.0
"""Warm-up: share of the whole run, and its limit, s.

The comparison begins then, when the vehicle has been everywhere once.
"""
COMPARED = 0.1
"""Share of the time after the warm-up: the medians of its first and last part are compared."""
SAMPLE_EVERY_S = 1.0
CYCLE = """
- {mode: waypoint, position_m: [-1037, -468]}
- {mode: waypoint, position_m: [-1000, -447]}
- {mode: waypoint, position_m: [-963, -435]}
- {mode: takeoff, height_m: 6}
- {mode: waypoint, position_m: [-814, -375], height_m: 18}
- {mode: waypoint, position_m: [-665, -316], height_m: 5}
- {mode: land}
- {mode: waypoint, position_m: [-640, -308]}
- {mode: takeoff, height_m: 6}
- {mode: waypoint, position_m: [-814, -375], height_m: 18}
- {mode: waypoint, position_m: [-963, -435], height_m: 12}
- {mode: waypoint, position_m: [-1037, -468], height_m: 12}
- {mode: waypoint, position_m: [-1074, -479], height_m: 6}
- {mode: land}
"""
"""Way-points back and forth between the hills of the scenario `valley`."""
CYCLE_S = 190.0
START_S = 600.0
"""Longest start, s: kernels may have to be compiled first."""
SIMULATION = "/amphibious_1/amphibious_sim_node: simulation"


@dataclass
class Watched:
    """Samples of one process."""

    at_s: list[float] = field(default_factory=list)
    resident_mb: list[float] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def note(self, at_s: float, process: psutil.Process) -> None:
        """Add a sample of a process."""
        with process.oneshot():
            values = (
                process.memory_info().rss / MB,
                process.num_threads(),
                process.num_fds(),
            )
        self.at_s.append(at_s)
        for samples, value in zip(
            (self.resident_mb, self.threads, self.descriptors), values, strict=True
        ):
            samples.append(value)  # type: ignore[attr-defined]


def ends(at_s: list[float], values: list[float], from_s: float) -> tuple[float, float]:
    """Return the medians of the first and the last part of the samples at `from_s` or later.

    COMPARED is the length of a part.
    """
    times = np.array(at_s)
    value = np.array(values, dtype=float)
    kept = times >= from_s
    times = times[kept]
    value = value[kept]

    part = COMPARED * (times[-1] - times[0])
    first = value[times <= times[0] + part]
    last = value[times >= times[-1] - part]
    return float(np.median(first)), float(np.median(last))


def loop_scenario(seconds: float) -> dict[str, Any]:
    """Return a scenario whose mission is longer than this."""
    cycles = math.ceil(seconds / CYCLE_S) + 1
    return {
        "version": 1,
        "map": "JacksboroFault",
        "vehicle": "scale",
        "start": {"position_m": [-1074, -479], "heading_deg": 22},
        "seed": 7,
        "wind": {"mean_mps": [0.8, -1.8, 0], "gust_sigma_mps": [0.5, 0.5, 0.2]},
        "mission": {
            "drive_speed_mps": 4,
            "fly_speed_mps": 9,
            "items": yaml.safe_load(CYCLE) * cycles,
        },
        "end": {"when": "mission_done", "time_s": 3600},
    }


class Soak:
    """The two graphs, and all that is noted of them."""

    def __init__(self, seconds: float, folder: Path) -> None:
        self.seconds = seconds
        self.folder = folder
        self.watched: dict[str, Watched] = {}
        self.load: list[float] = []
        self.fleet: list[tuple[float, float, int]] = []
        """Time, s, fleet time, and series published by then."""
        self.simulated: list[tuple[float, float, float]] = []
        """Time, lead of the machine's clock over the simulation's, and time given up, s.

        The lead is without the time that the simulation gave up.
        """
        self.deaths: list[str] = []
        self.browser_bytes = 0

    def run(self) -> None:
        """Start the commands, take samples for as long as asked, and end them by Ctrl-C."""
        with ExitStack() as opened:
            self.receiver = opened.enter_context(SeriesReceiver())
            commands = self._start(opened)
            self._begin = time.monotonic()
            due = self._begin

            # sample once a second
            while (now := time.monotonic()) < self._begin + self.seconds:
                self._note(now - self._begin, commands)
                due += SAMPLE_EVERY_S
                time.sleep(max(0.0, due - time.monotonic()))

            # the newest reports; both graphs have a bridge and a terrain
            self.diagnostics = {
                f"{part}: {name}": values
                for part, pulse in zip(("fleet", "vehicle"), self._pulses, strict=True)
                for name, values in pulse.diagnostics.items()
            }

            # end all commands
            for name, command in commands.items():
                code, taken = command.end(signal.SIGINT, 10.0)
                (self.folder / f"{name.replace(' ', '_')}.log").write_text(
                    command.output, encoding="utf-8"
                )
                if code != 0:
                    self.deaths.append(f"{name}: exit code {code} after {taken:.1f} s of Ctrl-C")

    def _start(self, opened: ExitStack) -> dict[str, Running]:
        """Start the commands of both graphs; return them once the fleet and the vehicle move."""
        from benchmarks.ring_fleet import RingFleet

        # the fleet and the scenario
        clock = {"clock_seconds": self.seconds + 300.0}
        (self.folder / "fleet.yaml").write_text(
            RingFleet(VEHICLES, **clock).yaml(), encoding="utf-8"
        )
        (self.folder / "loop.yaml").write_text(
            yaml.safe_dump(loop_scenario(self.seconds)), encoding="utf-8"
        )

        # ports of both bridges
        to_the_fleets = {
            "port": self.receiver.viewer_port,
            "windows": 2,
            "feedback_port": free_port(),
        }
        to_nobody = {"port": free_port(), "feedback_port": free_port()}
        for name, parameters in (("fleet", to_the_fleets), ("vehicle", to_nobody)):
            text = json.dumps({"/**": {"ros__parameters": parameters}})
            (self.folder / f"{name}_bridge.yaml").write_text(text, encoding="utf-8")

        # the command lines
        graphs = [opened.enter_context(own_graph()) for _ in range(2)]
        feedback = ["--feedback-port", str(to_the_fleets["feedback_port"])]
        viewer = [
            "view",
            "--port",
            "0",
            "--udp-port",
            str(self.receiver.viewer_port),
            *feedback,
        ]
        up = [
            "up",
            "--map",
            "JacksboroFault",
            "--fleet",
            str(self.folder / "fleet.yaml"),
            "--collision",
        ]
        up += ["--params-file", str(self.folder / "fleet_bridge.yaml")]
        amphibious = [
            "up",
            "amphibious",
            "--scenario",
            str(self.folder / "loop.yaml"),
            "--mapping",
        ]
        amphibious += ["--params-file", str(self.folder / "vehicle_bridge.yaml")]

        # start them, with a peer in each graph
        commands = {}
        for name, command, graph in (
            ("view", viewer, {}),
            ("fleet", up, graphs[0]),
            ("vehicle", amphibious, graphs[1]),
        ):
            commands[name] = opened.enter_context(Running(rfly(*command), graph))
        self._pulses = [
            opened.enter_context(Pulse(graph, name=f"soak_{number}"))
            for number, graph in enumerate(graphs)
        ]

        # wait until all are at work
        commands["view"].wait_for("rfly view: http")
        self._browse(opened, commands["view"].output)
        wait_until(lambda: self.receiver.count > 100, "the fleet's datagrams", START_S)
        wait_until(
            lambda: self._simulation().get("state") == "playing",
            "the land-air vehicle's simulation",
            START_S,
        )

        return commands

    def _browse(self, opened: ExitStack, output: str) -> None:
        """Open the viewer's page as a browser does, and read whatever comes."""
        import viser
        from websockets.exceptions import ConnectionClosed
        from websockets.sync.client import connect

        address = output.partition("rfly view: http")[2].split()[0]
        page = connect(f"ws{address}", subprotocols=[f"viser-v{viser.__version__}"], max_size=None)  # type: ignore[list-item]
        opened.callback(page.close)

        def read() -> None:
            with suppress(ConnectionClosed):
                for message in page:
                    self.browser_bytes += len(message)

        threading.Thread(target=read, daemon=True).start()

    def _note(self, at_s: float, commands: dict[str, Running]) -> None:
        """Take a sample of every process; note deaths and clocks."""
        self.load.append(os.getloadavg()[0])

        # processes
        for part, command in commands.items():
            for name, process in command.processes().items():
                if name == _LOOKS_ONCE:
                    continue
                with suppress(psutil.NoSuchProcess):
                    self.watched.setdefault(f"{part}: {name}", Watched()).note(at_s, process)
            if "ended by itself" in command.output or command.process.poll() is not None:
                lines = [line for line in command.output.splitlines() if "ended by itself" in line]
                deaths = [f"{part}: {line}" for line in lines or ["ended"]]
                self.deaths += [death for death in deaths if death not in self.deaths]

        # the fleet's clock
        status = self._pulses[0].diagnostics.get("/trajectory_node: fleet")
        if status is not None and status[2].get("fleet_time_s"):
            until = float(status[2]["fleet_time_s"])
            published = int(status[2]["published_states"])
            if not self.fleet or self.fleet[-1][1] != until:
                self.fleet.append((at_s, until, published))

        # the simulation's clock
        simulation = self._simulation()
        if simulation.get("time_s", "0.000") != "0.000":
            clock_s = self._pulses[1].stamps[SIMULATION]
            gave_up_s = float(simulation["lost_s"])
            self.simulated.append(
                (at_s, clock_s - float(simulation["time_s"]) - gave_up_s, gave_up_s)
            )

    def missing_series(self, from_s: float) -> list[int]:
        """Return, for each report after `from_s`, the series published by then that never arrived.

        Those of the first of these reports are subtracted.
        """
        reports = [row for row in self.fleet if row[0] >= from_s]
        missing = [
            published - self.receiver.arrived_until(until) for _, until, published in reports
        ]
        return [count - missing[0] for count in missing]

    def _simulation(self) -> dict[str, str]:
        """Return the newest report of the vehicle's simulation."""
        return self._pulses[1].diagnostics.get(SIMULATION, ("", "", {}))[2]


def warm_up_s(soak: Soak) -> float:
    """Return the length of the warm-up, s."""
    return min(WARM_UP[0] * soak.seconds, WARM_UP[1])


def found(soak: Soak) -> dict[str, Any]:
    """Return the result of the soak: growth by process, series lost, drift."""
    from_s = warm_up_s(soak)
    processes = {}

    # growth of each process
    for name, watched in soak.watched.items():
        if watched.at_s[-1] <= from_s:
            continue  # of the start only
        before, after = ends(watched.at_s, watched.resident_mb, from_s)
        processes[name] = {
            "before_mb": before,
            "growth_mb": after - before,
            "threads": ends(watched.at_s, list(map(float, watched.threads)), from_s),
            "descriptors": ends(watched.at_s, list(map(float, watched.descriptors)), from_s),
        }

    # the fleet's clock and series
    reports = [row for row in soak.fleet if row[0] >= from_s]
    at, offset = soak.receiver.least_offsets(from_s + soak.receiver.first_s)
    before, after = ends(at, offset, at[0])

    # the simulation's clock
    simulated = [row for row in soak.simulated if row[0] >= from_s]
    sim_before, sim_after = ends(
        [row[0] for row in simulated], [row[1] for row in simulated], from_s
    )

    return {
        "seconds": soak.seconds,
        "from_s": from_s,
        "load": [
            float(np.min(soak.load)),
            float(np.median(soak.load)),
            float(np.max(soak.load)),
        ],
        "processes": processes,
        "series": reports[-1][2] - reports[0][2],
        "lost_series": soak.missing_series(from_s)[-1],
        "wrong_datagrams": soak.receiver.wrong,
        "dropped_by_system": soak.receiver.dropped,
        "drift_s": after - before,
        "simulation_drift_s": sim_after - sim_before,
        "simulation_gave_up_s": simulated[-1][2] - simulated[0][2],
        "browser_mb": soak.browser_bytes / MB,
        "deaths": soak.deaths,
        "diagnostics": {name: values for name, (_, _, values) in soak.diagnostics.items()},
    }


def misses(result: dict[str, Any]) -> Iterator[str]:
    """Return where the goal is missed."""
    for name, process in result["processes"].items():
        if process["growth_mb"] >= MOST_GROWTH_MB:
            yield f"{name} has grown by {process['growth_mb']:.1f} MB"
        for what in ("threads", "descriptors"):
            if process[what][1] > process[what][0]:
                yield f"{name}: {what} went from {process[what][0]:.0f} to {process[what][1]:.0f}"
    for what in ("lost_series", "wrong_datagrams"):
        if result[what]:
            yield f"{what.replace('_', ' ')}: {result[what]}"
    if abs(result["drift_s"]) >= MOST_DRIFT_S:
        yield f"the fleet's clock drifted by {1e3 * result['drift_s']:.2f} ms"
    if abs(result["simulation_drift_s"]) >= MOST_BEHIND:
        yield f"the simulation's clock drifted by {1e3 * result['simulation_drift_s']:.2f} ms"
    yield from result["deaths"]


def report(result: dict[str, Any], console: Console) -> None:
    """Print the result as a table of the processes, and the clocks below it."""
    table = Table(
        title=f"{result['seconds'] / 3600:.2f} h, after {result['from_s']:.0f} s of warming up"
    )
    for heading in ("process", "memory", "growth", "threads", "descriptors"):
        table.add_column(heading, justify="left" if heading == "process" else "right")

    for name, process in result["processes"].items():
        counts = ("{:.0f} → {:.0f}".format(*process[what]) for what in ("threads", "descriptors"))
        table.add_row(
            name,
            f"{process['before_mb']:.1f} MB",
            f"{process['growth_mb']:+.2f} MB",
            *counts,
        )

    console.print(table)
    low, median, high = result["load"]
    print(
        f"series: {result['series']:,} published, {result['lost_series']} lost; drift "
        f"{1e3 * result['drift_s']:+.3f} ms"
    )
    drift = 1e3 * result["simulation_drift_s"]
    gave_up = 1e3 * result["simulation_gave_up_s"]
    print(
        f"simulation: drift {drift:+.3f} ms, and {gave_up:.0f} ms that it reports to have given up "
        "for want of a processor"
    )
    print(
        f"browser: {result['browser_mb']:.1f} MB; load {low:.1f} to {high:.1f}, median {median:.1f}"
    )
    print(machine_line())


def draw(soak: Soak, path: Path) -> None:
    """Draw memory and its growth after the warm-up, threads, descriptors, clocks and load."""
    from matplotlib.figure import Figure

    warm_s = warm_up_s(soak)
    figure = Figure(figsize=(9, 12), layout="constrained")
    panels = figure.subplots(5, 1, sharex=True, height_ratios=(3, 2, 1.2, 1.5, 1))
    memory, growth, counts, clock, load = panels

    # memory of each process
    stayed = {name: watched for name, watched in soak.watched.items() if watched.at_s[-1] > warm_s}
    styles = ("-", "--", ":")
    for number, (name, watched) in enumerate(stayed.items()):
        times = np.array(watched.at_s)
        resident = np.array(watched.resident_mb)
        style = {"color": f"C{number % 10}", "ls": styles[number // 10], "lw": 1}
        memory.plot(times / 60, resident, label=f"{name}, {resident[-1]:.0f} MB", **style)
        base = ends(watched.at_s, watched.resident_mb, warm_s)[0]
        growth.plot(times[times >= warm_s] / 60, resident[times >= warm_s] - base, **style)

    # threads and descriptors of all together
    minutes = np.arange(len(soak.load)) * SAMPLE_EVERY_S / 60
    for what, style in (("threads", "-"), ("descriptors", ":")):
        rows = [np.interp(60 * minutes, w.at_s, getattr(w, what)) for w in stayed.values()]
        counts.plot(minutes, np.sum(rows, axis=0), style, color="k", lw=1, label=what)

    # clocks, lost series and load
    at_s, offset = soak.receiver.least_offsets(soak.receiver.first_s + warm_s)
    clock.plot(
        (np.array(at_s) - soak.receiver.first_s) / 60,
        1e3 * (np.array(offset) - offset[0]),
        lw=1,
    )
    missing = clock.twinx()
    missing.plot([row[0] / 60 for row in soak.fleet], soak.missing_series(0.0), "r", lw=1)
    missing.set_ylabel("series lost", color="r")
    load.plot(minutes, soak.load, "k", lw=1)

    # labels
    memory.set(yscale="log", ylabel="resident memory, MB")
    for set_formatter in (memory.yaxis.set_major_formatter, memory.yaxis.set_minor_formatter):
        set_formatter("{x:.0f}")
    growth.set(
        ylabel="growth after\nthe warm-up, MB",
        ylim=(-2 * MOST_GROWTH_MB, 2 * MOST_GROWTH_MB),
    )
    growth.axhspan(-MOST_GROWTH_MB, MOST_GROWTH_MB, color="0.92", zorder=0)
    counts.margins(y=0.15)
    counts.set(ylabel="threads, descriptors\nof all processes", ylim=(0, None))
    counts.legend(fontsize="small", loc="lower left")
    clock.set(
        ylabel="drift of the\nfleet's clock, ms",
        ylim=(-2e3 * MOST_DRIFT_S, 2e3 * MOST_DRIFT_S),
    )
    missing.set_ylim(-10, 10)
    load.set(ylabel="load average", xlabel="minutes", ylim=(0, None))
    figure.legend(
        *memory.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize="small",
    )
    figure.savefig(path, dpi=80)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m attacks.soak", description="Run the suite and watch it."
    )
    parser.add_argument("hours", type=float, help="length of the soak, h, with decimals")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("build"),
        help="folder for the results (default build)",
    )
    options = parser.parse_args()
    if not 0.0 < options.hours < 1000.0:
        parser.error(f"hours: {options.hours}, expected more than 0")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended then, too
    options.folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(3600.0 * options.hours, options.folder.resolve())

    soak.run()
    result = found(soak)
    (options.folder / "soak.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    draw(soak, options.folder / "soak.png")
    report(result, Console() if sys.stdout.isatty() else Console(width=120))

    missed = list(misses(result))
    print("\n".join(missed) if missed else "the goal is met")

    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
