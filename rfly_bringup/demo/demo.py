# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`make demo`: `rfly up` with a convoy on real terrain, observed from outside the nodes.

Every figure comes from a topic, a service call or a datagram that a socket received. If something
that the demo promises does not arrive, it prints the reason, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from rfly_bringup.runner.supervisor import STOP_TIMEOUT_S, Supervisor, node_environment
from rfly_bringup.runner.up import RFLY, VIEWER, Observer, up
from rfly_common.errors import PacketError, RflyError
from rfly_common.frames import ned_to_enu
from rfly_common.imports import how_to_install
from rfly_common.sockets.socket_thread import Address, SocketThread
from rfly_common.startup import stop_by_signal
from rfly_trajectory import load_fleet
from rfly_trajectory.ros.node_parameters import TrajectoryParameters
from rfly_ue_bridge.codec.addresses import WINDOW_PORT
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D, decode
from rfly_ue_bridge.sockets.udp_sender import resolve

START_TIMEOUT_S = 30.0
SILENCE_S = 3.0
GROUND_TOLERANCE_M = 0.05
TRACK_SPACING_S = 0.25
PICTURE_S = 10.0
"""Longest time for the picture after Ctrl-C, s."""
_URL = re.compile(r"http://\S+")
PICTURE = Path("build") / "demo" / "convoy.png"


class DemoFailed(Exception):
    """Failure of something that the demo promises; the text says what."""


@dataclass
class MeasuredTrack:
    """Datagrams of one vehicle: position NED, m; roll, pitch, yaw, rad."""

    vehicle_type: int
    packet: str
    position_ned: tuple[float, float, float] = (0.0, 0.0, 0.0)
    euler: tuple[float, float, float] = (0.0, 0.0, 0.0)
    datagrams: int = 0
    history: list[tuple[float, float, float]] = field(default_factory=list)
    last_history_time: float = 0.0


class DatagramWatch:
    """Receiver of what RflySim3D would receive, in a thread, which relays it to a window if named.

    `ids` are the demo's vehicles. Datagrams of programs that sent before `begin`, and of other
    vehicles, are `foreign`.
    """

    def __init__(self, ids: Container[int], relay_to: str = "") -> None:
        """Open the socket. Raise ConfigError if the host `relay_to` has no address."""
        self._ids = ids
        self._relay = (resolve(relay_to), WINDOW_PORT) if relay_to else None
        self._socket = _bound_before_a_free_port()
        self.port: int = self._socket.getsockname()[1]
        self.port_was_free = self.port == WINDOW_PORT

        self.tracks: dict[int, MeasuredTrack] = {}
        self.total = 0
        self.unknown = 0
        self.foreign = 0
        self._others: set[Any] = set()
        """Addresses of senders other than the demo."""

        self._begun = False
        self.last_arrival = time.monotonic()
        self.lock = threading.Lock()

        self._thread = SocketThread("rfly demo: UDP")
        self._thread.receive(self._socket, self._receive)
        self._thread.start()

    def begin(self) -> None:
        """Treat new senders as the demo's bridge, which starts now."""
        self._begun = True

    def close(self) -> None:
        """Stop receiving."""
        self._thread.close()

    def _receive(self, datagram: bytes, sender: Address) -> None:
        """Count a datagram of the demo, and relay it."""
        if not self._begun:
            self._others.add(sender)

        if sender in self._others:
            self.foreign += 1
            return
        if self._relay is not None:
            with contextlib.suppress(OSError):  # nothing listens there yet
                self._socket.sendto(datagram, self._relay)

        with self.lock:
            self._take(datagram)

    def _take(self, datagram: bytes) -> None:
        """Count a datagram, and add its vehicle's position to the track."""
        now = time.monotonic()
        try:
            packet = decode(datagram, TO_RFLYSIM3D)
        except PacketError:
            self.unknown += 1
            return
        vehicle_id = packet.values.get("copterID")
        if isinstance(vehicle_id, int) and vehicle_id not in self._ids:
            self.foreign += 1
            return

        self.total += 1
        self.last_arrival = now
        if "PosE" not in packet.values or not isinstance(vehicle_id, int):
            return

        track = self.tracks.setdefault(
            vehicle_id, MeasuredTrack(packet["vehicleType"], packet.name)
        )
        track.position_ned = packet["PosE"]
        track.euler = packet["AngEuler"]
        track.datagrams += 1
        if now - track.last_history_time >= TRACK_SPACING_S:
            track.last_history_time = now
            track.history.append(track.position_ned)


def _bound_before_a_free_port() -> socket.socket:
    """Return a UDP socket on 20010, or another port of loopback, whose next port is free.

    That port is for the viewer, as window 1.
    """
    for port in (WINDOW_PORT, *[0] * 100):
        opened, after = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        with after:
            try:
                opened.bind(("127.0.0.1", port))
                after.bind(("127.0.0.1", opened.getsockname()[1] + 1))
            except (OSError, OverflowError):
                opened.close()
                continue
        opened.setblocking(False)
        return opened
    raise DemoFailed("no two neighbouring UDP ports are free")


class DemoViewer:
    """The viewer's process.

    `command` starts it, [] without viser.
    """

    def __init__(self, udp_port: int, map_name: str) -> None:
        """Prepare the command. `map_name` "" stands for the default map."""
        self.address = ""
        """Address of the page, once the viewer has printed it."""
        self.command: list[str] = []
        if importlib.util.find_spec("viser") is not None:
            self.command = [sys.executable, "-c", RFLY, "view", "--udp-port", str(udp_port)]
            self.command += [
                "--follow",
                "all",
                "--enlarge",
                "3",
                *(["--map", map_name] if map_name else []),
            ]

    def hear(self, name: str, line: str) -> None:
        """Take the page's address from a line of a process."""
        found = _URL.search(line) if name == VIEWER and not self.address else None
        if found is not None:
            self.address = found[0]

    def answers(self) -> bool:
        """Return whether the page exists: a real request, answered with 200."""
        if not self.address:
            return False
        try:
            with urllib.request.urlopen(self.address, timeout=2.0) as answer:
                return bool(answer.status == 200)
        except OSError:  # URLError is one
            return False


class Demo(Observer):
    """Observer of `rfly up`, which counts what arrives, shows it, and draws the tracks."""

    within_s = STOP_TIMEOUT_S + PICTURE_S

    def __init__(self, console: Console, arguments: Mapping[str, str], relay_to: str = "") -> None:
        """Prepare the run.

        `arguments` are those of `rfly up`. The host `relay_to` gets each datagram too.
        """
        self.console: Console = console
        self._arguments = {"log_level": "info", **arguments}
        self._duration_s: float | None = None

        vehicles = load_fleet(arguments.get("fleet") or TrajectoryParameters.fleet).vehicles
        self._on_ground = {vehicle.id for vehicle in vehicles if vehicle.kind == "ground"}

        self._watch = DatagramWatch({vehicle.id for vehicle in vehicles}, relay_to)
        self._viewer = DemoViewer(self._watch.port + 1, arguments.get("map", ""))
        if self._viewer.command:
            self.others = [(VIEWER, self._viewer.command)]
        windows = 1 + len(self.others)
        self.extra = {"ue_bridge_node": {"port": self._watch.port, "windows": windows}}

        self._supervisor: Supervisor
        self._stopped: Callable[[], bool]
        self._started = time.monotonic()
        self._rate_from = (0.0, 0)
        self._rate = 0.0

    def hear(self, name: str, line: str) -> None:
        """Pass a line on to the viewer, which looks for its address."""
        self._viewer.hear(name, line)

    def run(self, duration_s: float | None) -> None:
        """Run until Ctrl-C, SIGTERM, SIGHUP or the end of the duration. Raise DemoFailed."""
        self._duration_s = duration_s
        if not self._watch.port_was_free:
            self.console.print(
                f"UDP port {WINDOW_PORT} is in use: the demo's datagrams go to {self._watch.port} "
                "instead"
            )
        with stop_by_signal(within_s=self.within_s), contextlib.closing(self._watch):
            up(self._arguments, observer=self)

    def watch(self, supervisor: Supervisor, stopped: Callable[[], bool]) -> None:
        """Start the nodes, observe them, and draw. Raise DemoFailed."""
        os.environ.update(node_environment())
        from rfly_bringup.ros.demo_probe import TerrainObserver

        self._supervisor = supervisor
        self._stopped = stopped
        self._watch.begin()
        supervisor.start(stopped)
        with TerrainObserver() as observer:
            self._wait_until_started(observer)
            if self.others:
                self._wait(observer, self._viewer.answers, "an answer from the viewer's page")
            if not stopped():
                self._print_addresses(observer)
                self._observe(observer)
                self._draw(observer)

    def _wait_until_started(self, observer: Any) -> None:
        """Wait for the terrain and the first datagram. Raise DemoFailed."""
        self._wait(
            observer,
            lambda: observer.cloud is not None and observer.terrain is not None,
            "outTerrainPoint",
        )
        self._wait(observer, lambda: self._watch.total > 0, "a datagram")

    def _wait(self, observer: Any, ready: Callable[[], bool], what: str) -> None:
        """Wait until `ready`, or a signal. Raise DemoFailed after START_TIMEOUT_S."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._stopped() and not observer.spin(ready, 0.2):
            self._check_nodes()
            if time.monotonic() > deadline:
                raise DemoFailed(f"{what} has not arrived within {START_TIMEOUT_S:.0f} s")

    def _check_nodes(self) -> None:
        """Raise DemoFailed if a node has ended."""
        self._supervisor.poll()
        if self._supervisor.ended:
            raise DemoFailed(f"{', '.join(self._supervisor.ended)} has ended")

    def _print_addresses(self, observer: Any) -> None:
        """Print where to look."""
        cloud = observer.cloud
        no_page = f"no page, as viser is missing; {how_to_install('view')}"
        self.console.print(
            f"\n[bold]outTerrainPoint[/bold]: {cloud.rows} x {cloud.columns} = "
            f"{cloud.rows * cloud.columns:,} points, "
            f"heights {cloud.lowest:.1f} … {cloud.highest:.1f} m\n"
            f"[bold]datagrams[/bold]: 127.0.0.1:{self._watch.port}, as for RflySim3D\n"
            f"[bold]see it[/bold]: {self._viewer.address or no_page}\n"
            f"[bold]look closer[/bold]: RViz with rviz/rfly.rviz, or any ROS 2 program on domain "
            f"{os.environ.get('ROS_DOMAIN_ID', '0')} of this host; Ctrl-C ends the demo\n"
        )

    def _observe(self, observer: Any) -> None:
        """Show figures until a signal or the end of the duration. Raise DemoFailed."""
        self._started = time.monotonic()
        self._rate_from = (self._started, self._watch.total)
        next_report = 0.0
        threading.Thread(target=_import_drawing_modules, daemon=True).start()
        is_terminal = self.console.is_terminal
        with Live(console=self.console) if is_terminal else contextlib.nullcontext() as live:
            while not self._stopped():
                elapsed_s = time.monotonic() - self._started
                if self._duration_s is not None and elapsed_s >= self._duration_s:
                    break
                self._check_nodes()
                silence = time.monotonic() - self._watch.last_arrival
                if silence > SILENCE_S:
                    raise DemoFailed(
                        f"no datagram has arrived for {silence:.0f} s: is ue_bridge_node alive?"
                    )

                rows = self._measure(observer)
                if live is not None:
                    live.update(Group(self._table(rows)))
                elif time.monotonic() >= next_report:
                    self.console.print(self._status_line(rows))
                    next_report = time.monotonic() + 2.0
                observer.spin(self._stopped, 0.25)
        self.console.print(self._table(self._measure(observer)) if live is None else "")

    def _measure(self, observer: Any) -> list[tuple[int, MeasuredTrack, float]]:
        """Return (id, track, height above the ground) of each vehicle.

        The ground is the altitude service's. Raise DemoFailed.
        """
        with self._watch.lock:
            seen = [(i, t, t.position_ned) for i, t in sorted(self._watch.tracks.items())]
            total = self._watch.total

        # datagrams per second
        now = time.monotonic()
        if now - self._rate_from[0] > 1.0:
            self._rate = (total - self._rate_from[1]) / (now - self._rate_from[0])
            self._rate_from = (now, total)

        if not seen:
            return []
        positions = np.array([p for _, _, p in seen])
        ground = observer.ground_z_ned(positions[:, :2])
        if ground is None:
            raise DemoFailed("get_terrain_altitudes does not answer: is terrain_node alive?")

        # vehicles on the ground
        heights = (
            ned_to_enu(positions)[:, 2]
            - ned_to_enu(np.column_stack([positions[:, :2], ground]))[:, 2]
        )
        grounded = np.array([i in self._on_ground for i, _, _ in seen])
        worst = int(np.argmax(np.abs(heights * grounded)))
        if abs((heights * grounded)[worst]) > GROUND_TOLERANCE_M:
            raise DemoFailed(
                f"vehicle {seen[worst][0]} is {heights[worst]:+.3f} m off the ground that the "
                "service gives"
            )

        return [(i, t, float(h)) for (i, t, _), h in zip(seen, heights, strict=True)]

    def _status_line(self, rows: list[tuple[int, MeasuredTrack, float]]) -> str:
        """Return the line above the table."""
        driving = [abs(h) for i, _, h in rows if i in self._on_ground]
        worst = max(driving, default=0.0)
        others = ""
        if self._watch.foreign:
            others = f", {self._watch.foreign} of other programs left out"

        return (
            f"{time.monotonic() - self._started:5.1f} s  {self._watch.total:6d} datagrams "
            f"received, {self._rate:5.0f} a second, {self._watch.unknown} unknown{others}; "
            f"{len(driving)} vehicles within {worst * 1000:.1f} mm of the ground"
        )

    def _table(self, rows: list[tuple[int, MeasuredTrack, float]]) -> Table:
        """Return a table of what the datagrams say of the vehicles."""
        packets = ", ".join(sorted({track.packet for _, track, _ in rows}))
        table = Table(
            title=self._status_line(rows),
            caption="off: height above the ground by get_terrain_altitudes; "
            f"packet from which the rows are read: {packets}",
            caption_justify="left",
            title_justify="left",
            box=SIMPLE_HEAD,
            padding=0,
        )
        headers = (
            "id",
            "type",
            "received",
            "east m",
            "north m",
            "up m",
            "off mm",
            "roll°",
            "pitch°",
            "yaw°",
        )

        for header in headers:
            table.add_column(header, justify="right", no_wrap=True)

        for i, track, height in rows:
            east, north, up = ned_to_enu(track.position_ned)
            table.add_row(
                *(str(i), str(track.vehicle_type), str(track.datagrams)),
                *(f"{value:.1f}" for value in (east, north, up)),
                f"{height * 1000:+.1f}",
                *(f"{np.degrees(angle):+.0f}" for angle in track.euler),
            )
        return table

    def _draw(self, observer: Any) -> None:
        """Draw the tracks that the datagrams made."""
        from rfly_bringup.cli.track_plots import draw_convoy

        with self._watch.lock:
            tracks = {
                i: ned_to_enu(np.array(t.history))
                for i, t in sorted(self._watch.tracks.items())
                if t.history
            }
        if observer.terrain is None or not tracks:
            return
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        draw_convoy(observer.terrain, tracks, PICTURE)
        self.console.print(f"picture of the tracks that the datagrams made: {PICTURE}")


def _import_drawing_modules() -> None:
    """Import the modules of the picture, which takes two seconds, while the convoy drives."""
    with contextlib.suppress(ImportError):  # reported when the picture is drawn
        for name in (
            "rfly_bringup.cli.track_plots",
            "matplotlib.backends.backend_agg",
            "scipy.ndimage",
        ):
            importlib.import_module(name)


def _arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m rfly_bringup.demo",
        description="A convoy on real terrain, observed from outside the nodes.",
    )
    parser.add_argument(
        "--map", default="", help="terrain: a name on the search path, or a png or txt"
    )
    parser.add_argument(
        "--fleet",
        default="",
        help="fleet file, or the name of a shipped one (default: a convoy)",
    )
    parser.add_argument(
        "--host",
        default="",
        help=f"also send each datagram to RflySim3D there, port {WINDOW_PORT}",
    )
    until = os.environ.get("DURATION") or None
    parser.add_argument(
        "--duration",
        type=float,
        metavar="SECONDS",
        default=until,
        help="end by itself (or DURATION)",
    )
    return parser.parse_args()


def main() -> None:
    """Run the demo."""
    options = _arguments()

    console = Console(highlight=False, soft_wrap=True)
    try:
        arguments = {
            name: getattr(options, name) for name in ("map", "fleet") if getattr(options, name)
        }
        Demo(console, arguments, options.host).run(options.duration)
    except RflyError as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(2)
    except DemoFailed as error:
        console.print(f"[bold red]demo failed[/bold red]: {error}")
        sys.exit(1)
