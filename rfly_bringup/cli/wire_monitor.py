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
from typing import Any

from rich.console import Console

from rfly_bringup.terminal import printable
from rfly_common.errors import CommandError, PacketError
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


def monitor(bind: str, ports: list[int], count: int, *, as_json: bool) -> None:
    """Print `count` datagrams (0: until Ctrl-C), and a summary at the end."""
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    counters = _Counters()
    hint = ": RflySim3D or another `rfly listen` runs there; try --port"
    sockets = [listening_socket(bind, port, hint) for port in ports]

    try:
        where = ", ".join(f"{bind}:{port}" for port in ports)
        console.print(f"listening on {where}; Ctrl-C ends", style="dim")
        with stop_by_signal() as stopped:
            for port, sender, datagram in _datagrams(sockets, counters, console, stopped):
                packet, reason = _decode(datagram)
                counters.count(packet, reason)
                if as_json:
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
    console: Console,
    stopped: Callable[[], bool],
) -> Iterator[tuple[int, str, bytes]]:
    """Yield (port, sender, datagram) as they come, until `stopped`; print summaries too."""
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
            if summary is not None:
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
