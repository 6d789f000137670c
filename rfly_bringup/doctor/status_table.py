# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes, vehicles by source, and datagrams to RflySim3D as tables for a terminal. No ROS."""

from __future__ import annotations

from typing import Literal

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rfly_bringup.doctor.snapshot import ERROR, OK, STALE, WARN, DiagnosticReport, Snapshot
from rfly_bringup.terminal import printable

_LEVELS = {
    OK: ("ok", "green"),
    WARN: ("warn", "yellow"),
    ERROR: ("error", "red"),
    STALE: ("stale", "magenta"),
}
SILENT_S = 3.0
"""Time without diagnostics after which a node counts as silent, s: it reports once a second."""


def status_tables(snapshot: Snapshot) -> Group:
    """Return all tables."""
    title = (
        f"ROS domain {snapshot.domain_id}, discovery {snapshot.discovery_range}, "
        f"{len(snapshot.nodes)} nodes"
    )
    return Group(
        Text(title, style="bold"), _nodes(snapshot), _sources(snapshot), _bridges(snapshot)
    )


def _table(*columns: str, numbers: int = 0) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    first_number = len(columns) - numbers
    for index, name in enumerate(columns):
        justify: Literal["left", "right"] = "right" if index >= first_number else "left"
        table.add_column(name, justify=justify, overflow="fold")
    return table


def _cell(text: str) -> Text:
    """Return text of others without markup or control characters."""
    return Text(printable(text))


def _nodes(snapshot: Snapshot) -> Table:
    """Return the table of nodes by name, with the map or address that each task serves.

    Nodes without diagnostics have no state.
    """
    table = _table("node", "task", "of", "state", "says", "age s", numbers=1)
    heard = {status.node for status in snapshot.statuses}
    rows = [(status.node, status) for status in snapshot.statuses]
    others = [(name, None) for name in dict.fromkeys(snapshot.nodes) if name not in heard]

    for name, status in sorted(
        [*rows, *others], key=lambda row: (row[0], "" if row[1] is None else row[1].task)
    ):
        if status is None:
            table.add_row(_cell(name), "", "", "–", "", "")
            continue

        word, colour = _LEVELS.get(status.level, ("?", "red"))
        if status.age > SILENT_S:
            word = "silent"
            colour = "red"

        state = Text(word, style=colour)
        says = _cell(status.message)
        table.add_row(
            _cell(name),
            _cell(status.task),
            _cell(status.hardware_id),
            state,
            says,
            f"{status.age:.1f}",
        )
    return table


def _sources(snapshot: Snapshot) -> Table:
    table = _table("vehicles", "ids", "source", "topic", "frame", "Hz", "age s", numbers=2)
    for source in snapshot.sources:
        texts = map(_cell, (source.name, source.topic, source.frame_id))
        ids = _ranges(sorted(source.ids))
        table.add_row(str(len(source.ids)), ids, *texts, f"{source.rate:.1f}", f"{source.age:.1f}")
    return table


def _bridges(snapshot: Snapshot) -> Table:
    table = _table("bridge", "sends to", "dropped", "datagrams", "a second", numbers=2)
    for status in snapshot.statuses:
        if "sent_datagrams" in status.values:
            rate = "–" if status.datagram_rate is None else f"{status.datagram_rate:.1f}"
            sent = status.values["sent_datagrams"]
            of = _cell(status.hardware_id)
            dropped = _cell(_dropped(status))
            table.add_row(_cell(status.node), of, dropped, _cell(sent), rate)
    return table


def _dropped(status: DiagnosticReport) -> str:
    """Return the counters of losses by reason, without those at 0."""
    no_losses = ("sent_datagrams", "fleet_vehicles")
    counters = {
        name: value
        for name, value in status.values.items()
        if name not in no_losses and not name.startswith("subject")
    }
    return ", ".join(
        f"{name} {value}" for name, value in counters.items() if value.isdecimal() and value != "0"
    )


def _ranges(ids: list[int], most: int = 6) -> str:
    """Return ids as text such as "1001-1010, 1020"."""
    runs: list[list[int]] = []
    for vehicle_id in ids:
        if runs and vehicle_id == runs[-1][1] + 1:
            runs[-1][1] = vehicle_id
        else:
            runs.append([vehicle_id, vehicle_id])

    shown = ", ".join(
        f"{first}" if first == last else f"{first}-{last}" for first, last in runs[:most]
    )
    return shown + (" …" if len(runs) > most else "")
