"""Monitor of the datagrams on RflySim3D's ports, and single console commands.

It serves `rfly send` and `rfly listen`.
"""

from __future__ import annotations

import json
import math
import selectors
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rfly_bringup.terminal import printable
from rfly_common.errors import CommandError, ConfigError, PacketError
from rfly_common.startup import stop_by_signal
from rfly_ue_bridge.codec.addresses import LAN_GROUP
from rfly_ue_bridge.codec.commands import encode_command, encode_command_lan
from rfly_ue_bridge.codec.packets import Packet
from rfly_ue_bridge.codec.to_rflysim3d import (
    ATTACH_ATTITUDE,
    ATTACH_NONE,
    ATTACH_POSITION,
    ATTACH_POSITION_YAW,
    COPTER_MSG,
    TO_RFLYSIM3D,
    UE4_EXT_MSG,
    VEHICLE_ATTATCH_25,
    decode,
)
from rfly_ue_bridge.recording.recorder import listening_socket
from rfly_ue_bridge.sockets.udp_sender import UdpSender

SDK_WINDOWS = 3
"""Windows that window number -1 stands for in RflySim's SDK: ports 20010, 20011 and 20012."""

SUMMARY_S = 5.0

_POLL_S = 0.1
_HEX_BYTES = 24
_FLEET_SHOWN = 3
_MOST_ROWS = 40
_MAX_DATAGRAM = 65536

_ATTACHED = {
    ATTACH_NONE: "on its own",
    ATTACH_POSITION: "position",
    ATTACH_POSITION_YAW: "position and yaw",
    ATTACH_ATTITUDE: "attitude",
}


def send_command(text: str, host: str, port: int, window: int, lan: bool) -> str:
    """Send one console command and return a report of what was sent.

    Raise CommandError, and ConfigError for host, port or window.
    """
    windows = 1
    if lan:
        host, port = LAN_GROUP
        datagram = encode_command_lan(text)
    else:
        datagram = encode_command(text)
        if window == -1:
            windows = SDK_WINDOWS
        else:
            port += window

    sender = UdpSender(host, port, windows)
    try:
        problem = sender.send_to(-1, datagram)
        closed_ports = sender.closed_ports()
    finally:
        sender.close()
    if problem:
        raise CommandError(f"not sent: {problem}")

    ports = f"{port}-{port + windows - 1}" if windows > 1 else f"{port}"
    note = f" (nothing listens on {', '.join(map(str, closed_ports))})" if closed_ports else ""
    return f"sent {len(datagram)} bytes to {host}:{ports}{note}: {text}"


@dataclass(frozen=True)
class PacketFilter:
    """Choice of datagrams by vehicle id, vehicle type and packet; an empty set admits all."""

    ids: frozenset[int] = frozenset()
    types: frozenset[int] = frozenset()
    packets: frozenset[str] = frozenset()
    """Names of packets, such as Ue4CMD0; capitals don't matter."""

    def admits(self, packet: Packet | None) -> bool:
        """Return whether the datagram is shown; `packet` is None for an unknown one.

        A packet of several vehicles is admitted if one of them is.
        """
        if self.packets and (packet is None or packet.name.lower() not in self.packets):
            return False
        if not self.ids and not self.types:
            return True
        return packet is not None and any(
            (not self.ids or vehicle["copterID"] in self.ids)
            and (not self.types or vehicle.get("vehicleType") in self.types)
            for vehicle in _vehicles(packet)
        )


def packet_filter(ids: list[int], types: list[int], packets: list[str]) -> PacketFilter:
    """Return the filter of these options. Raise ConfigError for a packet that does not exist."""
    known = {packet.name.lower(): packet.name for packet in TO_RFLYSIM3D}
    names = frozenset(name.lower() for name in packets)
    for name in packets:
        if name.lower() not in known:
            raise ConfigError(f"--packet: {name!r}, expected one of {', '.join(known.values())}")
    return PacketFilter(frozenset(ids), frozenset(types), names)


def monitor(
    bind: str,
    ports: list[int],
    count: int,
    chosen: PacketFilter = PacketFilter(),
    *,
    as_json: bool = False,
    as_summary: bool = False,
) -> None:
    """Print `count` of the chosen datagrams (0: until Ctrl-C), and a summary at the end.

    `as_summary` shows a table of vehicles and packets that is kept up to date, not each datagram.
    """
    console = Console(stderr=as_json, highlight=False, soft_wrap=not as_summary)
    counters = _Counters()
    hint = ": RflySim3D or another `rfly listen` runs there; try --port"
    sockets = [listening_socket(bind, port, hint) for port in ports]
    latest = _LatestTable() if as_summary else None

    try:
        where = ", ".join(f"{bind}:{port}" for port in ports)
        console.print(f"listening on {where}; Ctrl-C ends", style="dim")
        live = Live(console=console, get_renderable=latest.table) if latest else nullcontext()
        with stop_by_signal() as stopped, live:
            tell_rate = None if as_summary else console
            for port, sender, datagram in _datagrams(sockets, counters, tell_rate, stopped):
                packet, reason = _decode(datagram)
                if not chosen.admits(packet):
                    continue

                counters.count(packet, reason)
                if latest:
                    latest.add(packet, datagram, reason)
                elif as_json:
                    record = _as_json(port, sender, datagram, packet, reason)
                    print(json.dumps(record, ensure_ascii=False), flush=True)
                else:
                    shown = _bad_text(datagram, reason) if packet is None else _packet_text(packet)
                    console.print(f"{port} ← {sender}  ", style="dim", end="")
                    console.print(printable(shown), markup=False)
                if count and counters.total >= count:
                    break
            if stopped():
                console.print()  # after the terminal's ^C
    except BrokenPipeError:  # the reader of a pipe, such as head, has gone
        sys.stderr.close()
        return
    finally:
        for opened in sockets:
            opened.close()
    console.print(counters.text(), markup=False)


class _LatestTable:
    """Table of the latest pose of each vehicle, and the latest of each other packet."""

    def __init__(self) -> None:
        self._vehicles: dict[int, _Latest] = {}
        self._others: dict[str, _Latest] = {}
        self._is_full = False

    def add(self, packet: Packet | None, datagram: bytes, reason: str) -> None:
        """Take over what a datagram says; `packet` None: it is unknown for this reason."""
        if packet is None:
            self._count(self._others, f"unknown ({reason})", _bad_text(datagram, reason))
        elif "PosE" not in packet.values:
            self._count(self._others, packet.name, _packet_text(packet).partition("  ")[2])
        else:
            for vehicle in _vehicles(packet):
                self._count(self._vehicles, vehicle["copterID"], vehicle, packet.name)

    def _count(self, rows: dict[Any, _Latest], key: Any, values: Any, packet: str = "") -> None:
        """Put values in the row of a key, which a full table may lack."""
        if key not in rows and len(rows) >= _MOST_ROWS:
            self._is_full = True
            return
        rows.setdefault(key, _Latest()).add(values, packet)

    def table(self) -> Group:
        """Return the tables of vehicles and of other packets."""
        vehicles = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for heading in ("id", "type", "a second", "north m", "east m", "down m", "yaw°", "m/s"):
            vehicles.add_column(heading, justify="right", no_wrap=True)
        vehicles.add_column("packet", no_wrap=True)
        for vehicle_id, row in sorted(self._vehicles.items()):
            north, east, down = row.values["PosE"]
            velocity = row.values.get("VelE")
            vehicles.add_row(
                str(vehicle_id),
                str(row.values["vehicleType"]),
                f"{row.rate():.0f}",
                f"{north:.2f}",
                f"{east:.2f}",
                f"{down:.2f}",
                f"{math.degrees(row.values['AngEuler'][2]):.0f}",
                "" if velocity is None else f"{math.hypot(*velocity):.1f}",
                row.packet,
            )

        others = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for heading in ("other datagrams", "number", "the latest"):
            others.add_column(heading, overflow="ellipsis", no_wrap=True)
        for name, row in sorted(self._others.items()):
            others.add_row(name, str(row.number), Text(printable(row.values)))

        parts: list[Any] = [table for table in (vehicles, others) if table.row_count]
        if self._is_full:
            parts.append(Text(f"more than {_MOST_ROWS}: --id and --packet choose", style="dim"))
        return Group(*(parts or [Text("nothing yet", style="dim")]))


class _Latest:
    """Latest values under one key, and how often they come."""

    def __init__(self) -> None:
        self.number = 0
        self.values: Any = None
        self.packet = ""
        self._rate = 0.0
        self._since = time.monotonic()
        self._number_then = 0

    def add(self, values: Any, packet: str) -> None:
        """Replace the values and count them."""
        self.number += 1
        self.values = values
        self.packet = packet

    def rate(self) -> float:
        """Return the rate over the last second or more, per second."""
        elapsed = time.monotonic() - self._since
        if elapsed >= 1.0:
            self._rate = (self.number - self._number_then) / elapsed
            self._since += elapsed
            self._number_then = self.number
        return self._rate


def _vehicles(packet: Packet) -> list[dict[str, Any]]:
    """Return the vehicles of a packet, each with the fields of a single one."""
    values = packet.values
    ids = values.get("copterID", ())
    if isinstance(ids, int):
        return [dict(values)]
    return [_slot(values, slot) for slot, vehicle_id in enumerate(ids) if vehicle_id]


class _Counters:
    """Counts by packet name and the ids seen, overall and since the last summary."""

    def __init__(self) -> None:
        self.total = 0
        self._names: Counter[str] = Counter()
        self._ids: set[int] = set()
        self._start = time.monotonic()
        self._last_summary = self._start
        self._total_at_last_summary = 0

    def count(self, packet: Packet | None, reason: str) -> None:
        """Count a datagram; `packet` None: it is unknown for this reason."""
        self.total += 1
        self._names[packet.name if packet else f"unknown ({reason})"] += 1
        if packet is not None and "vehicleType" in packet.values:
            ids = packet["copterID"]
            self._ids.update((ids,) if isinstance(ids, int) else (i for i in ids if i))

    def rate(self) -> str | None:
        """Return a summary line, at most every SUMMARY_S; None in between."""
        now = time.monotonic()
        elapsed = now - self._last_summary
        if elapsed < SUMMARY_S:
            return None

        rate = (self.total - self._total_at_last_summary) / elapsed
        self._last_summary = now
        self._total_at_last_summary = self.total
        if not self.total:
            return "nothing yet"
        return f"{rate:.1f} datagrams/s, {self.total} in all, {len(self._ids)} vehicles"

    def text(self) -> str:
        """Return the summary of the whole run."""
        seconds = time.monotonic() - self._start
        names = ", ".join(f"{name} {number}" for name, number in self._names.most_common())
        vehicles = f"; vehicles {_short_list(sorted(self._ids))}" if self._ids else ""
        return f"{self.total} datagrams in {seconds:.1f} s{': ' if names else ''}{names}{vehicles}"


def _datagrams(
    sockets: list[socket.socket],
    counters: _Counters,
    console: Console | None,
    stopped: Callable[[], bool],
) -> Iterator[tuple[int, str, bytes]]:
    """Yield (port, sender, datagram) as they come, until `stopped`.

    Summaries are printed to the console, if there is one.
    """
    with selectors.DefaultSelector() as selector:
        for listener in sockets:
            selector.register(listener, selectors.EVENT_READ, listener)
        while not stopped():
            for key, _ in selector.select(_POLL_S):
                if stopped():
                    return
                opened: socket.socket = key.data
                try:
                    datagram, address = opened.recvfrom(_MAX_DATAGRAM)
                except OSError:  # an ICMP error, or a bad UDP checksum
                    continue
                yield opened.getsockname()[1], f"{address[0]}:{address[1]}", datagram
            summary = counters.rate()
            if summary is not None and console is not None:
                console.print(f"— {summary}", style="dim")


def _decode(datagram: bytes) -> tuple[Packet | None, str]:
    """Return the packet, or None and the reason."""
    try:
        return decode(datagram), ""
    except PacketError as error:
        return None, error.reason


def _packet_text(packet: Packet) -> str:
    """Return a packet as one line; positions in m NED, angles in degrees."""
    values = packet.values

    if packet.type is COPTER_MSG:
        return f"{packet.name}  {_label_text(values)}"
    if packet.type is VEHICLE_ATTATCH_25:
        return f"{packet.name}  {_attachments_text(values)}"
    if packet.type is UE4_EXT_MSG:
        numbers = " ".join(f"{number:g}" for number in values["ExtToUE4"])
        return f"{packet.name}  id {values['copterID']} at {values['runnedTime']:.3f} s: {numbers}"
    if "text" in values:
        return f"{packet.name}  {values['text']!r}"

    if "PosE" not in values:  # a declared packet without a text of its own
        return f"{packet.name}  " + "  ".join(
            f"{name} {_json_value(values[name])}" for name in list(values) if name != "checksum"
        )

    # vehicles
    ground = " on the ground" if packet.keep_on_ground else ""
    ids = values["copterID"]
    if isinstance(ids, int):
        return f"{packet.name}{ground}  {_vehicle_text(values)}"
    used = [slot for slot, vehicle_id in enumerate(ids) if vehicle_id]
    shown = "; ".join(_vehicle_text(_slot(values, slot)) for slot in used[:_FLEET_SHOWN])
    more = f"; and {len(used) - _FLEET_SHOWN} more" if len(used) > _FLEET_SHOWN else ""
    return f"{packet.name}{ground}  {len(used)} vehicles: {shown}{more}"


def _label_text(values: Any) -> str:
    """Return the text of a label packet."""
    who = f"id {values['copterID']}" if values["copterID"] > 0 else "all ids"
    line = values["dispFlag"]
    seconds = values["dispTime"]
    if seconds < 0:
        return f"{who}: all lines gone" if line < 0 else f"{who}: line {line} gone"

    where = "a further line" if line < 0 else "the id line"
    if line > 0:
        where = f"line {line}"
    how_long = f"for {seconds:g} s" if seconds else "for ever"
    red, green, blue = values["RGB"]
    style = f"size {values['fontSize']:g} RGB {red} {green} {blue}"
    return f"{who}, {where} {how_long}: {values['text']!r}  {style}"


def _attachments_text(values: Any) -> str:
    """Return the text of a packet that attaches vehicles to others."""
    rows = zip(values["CopterIDs"], values["AttatchIDs"], values["AttatchTypes"], strict=True)
    used = [f"{who} to {whom} ({_ATTACHED.get(how, how)})" for who, whom, how in rows if who]
    return ", ".join(used) or "none"


def _slot(values: Any, slot: int) -> dict[str, Any]:
    """Return one vehicle of a fleet packet, with the fields of a single one."""
    return {
        "copterID": values["copterID"][slot],
        "vehicleType": values["vehicleType"][slot],
        "PosE": values["PosE"][3 * slot : 3 * slot + 3],
        "AngEuler": values["AngEuler"][3 * slot : 3 * slot + 3],
        "Scale": [hundredths / 100 for hundredths in values["Scale"][3 * slot : 3 * slot + 3]],
    }


def _vehicle_text(values: Any) -> str:
    """Return the pose of a vehicle as text, and its speed and scale where they say something."""
    x, y, z = values["PosE"]
    roll, pitch, yaw = (math.degrees(angle) for angle in values["AngEuler"])
    text = (
        f"id {values['copterID']} type {values['vehicleType']}  N {x:.3f} E {y:.3f} D {z:.3f} m  "
        f"roll {roll:.2f} pitch {pitch:.2f} yaw {yaw:.2f}°"
    )
    if "VelE" in values:
        text += f"  {math.hypot(*values['VelE']):.2f} m/s"
    scale = tuple(values.get("Scale", (1.0, 1.0, 1.0)))
    if scale != (1.0, 1.0, 1.0):
        text += f"  scale {scale[0]:g} {scale[1]:g} {scale[2]:g}"
    return text


def _bad_text(datagram: bytes, reason: str) -> str:
    """Return the text of a datagram that could not be decoded."""
    dots = " …" if len(datagram) > _HEX_BYTES else ""
    return f"unknown ({reason})  {len(datagram)} bytes: {datagram[:_HEX_BYTES].hex(' ')}{dots}"


def _as_json(
    port: int, sender: str, datagram: bytes, packet: Packet | None, reason: str
) -> dict[str, Any]:
    """Return a datagram as an object for JSON, with every field in the wire's units."""
    head: dict[str, Any] = {
        "time": time.time(),
        "port": port,
        "from": sender,
        "bytes": len(datagram),
    }
    if packet is None:
        return {**head, "packet": None, "reason": reason, "hex": datagram.hex()}
    return {
        **head,
        "packet": packet.name,
        **{name: _json_value(value) for name, value in packet.values.items()},
    }


def _json_value(value: Any) -> Any:
    """Return a field's value for JSON; NaN and infinities, which it lacks, become text."""
    if isinstance(value, tuple):
        return [_json_value(number) for number in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _short_list(ids: list[int]) -> str:
    """Return the first ids as text, and their number."""
    return ", ".join(map(str, ids[:10])) + (f" … ({len(ids)} in all)" if len(ids) > 10 else "")
