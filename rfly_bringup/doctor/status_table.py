"""What runs, as tables for a terminal: nodes, vehicles by source, what leaves for RflySim3D. No
ROS.
"""

from __future__ import annotations

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
"""without diagnostics: nodes report once a second"""


def status_tables(snapshot: Snapshot) -> Group:
    """All tables of one look."""
    title = f"ROS domain {snapshot.domain_id}, discovery {snapshot.discovery_range}, {len(snapshot.nodes)} nodes"
    return Group(
        Text(title, style="bold"), _nodes(snapshot), _sources(snapshot), _bridges(snapshot)
    )


def _table(*columns: str, numbers: int = 0) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for index, name in enumerate(columns):
        table.add_column(
            name, justify="right" if index >= len(columns) - numbers else "left", overflow="fold"
        )
    return table


def _cell(text: str) -> Text:
    """What others call something: no markup, and nothing that a terminal acts on."""
    return Text(printable(text))


def _nodes(snapshot: Snapshot) -> Table:
    """By name, with the map or address that a task is of. Nodes of others have no diagnostics, and
    no state.
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
    """Counters by reason, without those at 0 and those that count no loss."""
    kept = ("sent_datagrams", "fleet_vehicles")
    return ", ".join(
        f"{name} {value}"
        for name, value in status.values.items()
        if name not in kept
        and not name.startswith("subject")
        and value.isdecimal()
        and value != "0"
    )


def _ranges(ids: list[int], most: int = 6) -> str:
    """1001-1010, 1020 …"""
    runs: list[list[int]] = []
    for each in ids:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    shown = ", ".join(
        f"{first}" if first == last else f"{first}-{last}" for first, last in runs[:most]
    )
    return shown + (" …" if len(runs) > most else "")
