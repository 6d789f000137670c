# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Label texts of vehicles: CopterMsg's flags and times.

There is no clock here: the caller passes the time in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rfly_viewer.scene.scene_commands import SetLabel

MAX_LINES = 5
"""Lines in addition to the id line, as in RflySim3D."""
MAX_LABELLED = 500
"""Vehicles with a label of their own; more are dropped."""
ALL = 0
"""Key of labels for every vehicle (copterID <= 0)."""


@dataclass(frozen=True)
class LabelLine:
    """One line of a label."""

    text: str
    font_size: float
    rgb: tuple[int, int, int]
    until_s: float
    """Time at which the line ends, s; inf: never."""


@dataclass
class Label:
    """Lines of one vehicle: `id_line` on top, then up to MAX_LINES more."""

    id_line: LabelLine | None = None
    lines: list[LabelLine] = field(default_factory=list)


class Labels:
    """Labels by copterID; those for every vehicle under ALL."""

    def __init__(self) -> None:
        self.by_id: dict[int, Label] = {}

    def apply(self, command: SetLabel, now_s: float) -> None:
        """Apply one CopterMsg.

        flag < 0 appends (seconds < 0: clears all), 0 sets the id line, n replaces line n or appends
        if there are fewer lines. seconds 0: for ever; below 0: removed at once.
        """
        key = max(command.vehicle_id, ALL)
        flag = command.flag
        if key not in self.by_id and len(self.by_id) >= MAX_LABELLED:
            return
        label = self.by_id.setdefault(key, Label())
        until_s = now_s + command.seconds if command.seconds > 0 else float("inf")
        new = LabelLine(command.text, command.size, command.rgb, until_s)
        removes = not command.seconds >= 0

        if flag < 0 and removes:
            if key == ALL:
                self.by_id.clear()
            label.id_line = None
            label.lines.clear()
        elif flag == 0:
            label.id_line = None if removes else new
        elif flag < 0 or flag > len(label.lines):
            if not removes:
                label.lines = [*label.lines, new][-MAX_LINES:]
        elif removes:
            del label.lines[flag - 1]
        else:
            label.lines[flag - 1] = new

        if label.id_line is None and not label.lines:
            self.by_id.pop(key, None)

    def expire(self, now_s: float) -> None:
        """Drop the lines whose time is over."""
        for key, label in list(self.by_id.items()):
            label.lines = [line for line in label.lines if line.until_s > now_s]
            if label.id_line is not None and label.id_line.until_s <= now_s:
                label.id_line = None
            if label.id_line is None and not label.lines:
                del self.by_id[key]

    def lines_of(self, vehicle_id: int) -> list[LabelLine]:
        """Return the lines over a vehicle, from top to bottom: its own and those for all."""
        lines: list[LabelLine] = []
        for key in dict.fromkeys((vehicle_id, ALL)):
            label = self.by_id.get(key)
            if label is not None:
                lines += [*([label.id_line] if label.id_line else []), *label.lines]
        return lines
