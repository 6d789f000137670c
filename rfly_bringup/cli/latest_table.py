# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Table of what RflySim3D would show now: the latest pose of each vehicle."""

from __future__ import annotations

import math
import time
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rfly_bringup.cli.packet_texts import bad_text, packet_text, vehicles_of
from rfly_bringup.terminal import printable
from rfly_ue_bridge.codec.packets import Packet

_MOST_ROWS = 40


class LatestTable:
    """Table of the latest pose of each vehicle, and the latest of each other packet."""

    def __init__(self) -> None:
        self._vehicles: dict[int, _Latest] = {}
        self._others: dict[str, _Latest] = {}
        self._is_full = False

    def add(self, packet: Packet | None, datagram: bytes, reason: str) -> None:
        """Take over what a datagram says; `packet` None: it is unknown for this reason."""
        if packet is None:
            self._count(self._others, f"unknown ({reason})", bad_text(datagram, reason))
        elif "PosE" not in packet.values:
            self._count(self._others, packet.name, packet_text(packet).partition("  ")[2])
        else:
            for vehicle in vehicles_of(packet):
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
