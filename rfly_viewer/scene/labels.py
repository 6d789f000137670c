"""Label texts of vehicles: CopterMsg's flags and times, without a clock (the caller passes the time
in).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rfly_viewer.scene.console import SetLabel

MAX_LINES = 5
"""beside the id line, as RflySim3D has them"""
MAX_LABELLED = 500
"""vehicles with a label of their own; more are dropped"""
ALL = 0
"""the key of labels for every vehicle (copterID <= 0)"""


@dataclass(frozen=True)
class LabelLine:
    """One line of a label."""

    text: str
    font_size: float
    rgb: tuple[int, int, int]
    until_s: float
    """inf: for ever"""


@dataclass
class Label:
    """The lines of one vehicle: `id_line` on top, then up to MAX_LINES more."""

    id_line: LabelLine | None = None
    lines: list[LabelLine] = field(default_factory=list)


class Labels:
    """All labels by copterID; those for every vehicle under ALL."""

    def __init__(self) -> None:
        self.by_id: dict[int, Label] = {}

    def apply(self, command: SetLabel, now_s: float) -> None:
        """One CopterMsg.

        flag < 0 appends (seconds < 0: clears all), 0 sets the id line, n replaces line n or, above
        the present lines, appends. seconds 0: for ever; below 0: gone at once.
        """
        key = max(command.vehicle_id, ALL)
        flag = command.flag
        if key not in self.by_id and len(self.by_id) >= MAX_LABELLED:
            return
        label = self.by_id.setdefault(key, Label())
        until_s = now_s + command.seconds if command.seconds > 0 else float("inf")
        new = LabelLine(command.text, command.size, command.rgb, until_s)
        gone = not command.seconds >= 0
        if flag < 0 and gone:
            if key == ALL:
                self.by_id.clear()
            label.id_line = None
            label.lines.clear()
        elif flag == 0:
            label.id_line = None if gone else new
        elif flag < 0 or flag > len(label.lines):
            if not gone:
                label.lines = [*label.lines, new][-MAX_LINES:]
        elif gone:
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
        """What stands over a vehicle, from top to bottom: its own lines and those for all."""
        found: list[LabelLine] = []
        for key in dict.fromkeys((vehicle_id, ALL)):
            label = self.by_id.get(key)
            if label is not None:
                found += [*([label.id_line] if label.id_line else []), *label.lines]
        return found
