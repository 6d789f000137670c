# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Touch-down detector from several cues. docs/model, section 9.1.

Theory of operation. Each cue is true, false, or None if its sensor is missing or silent; such a cue
counts as fulfilled, as in PX4's land detector. The vehicle has touched down

- if it does not sink, the thrust is below that of hover, and all known cues of the ground (height,
  wheel loads, struts), at least one, are true for a moment;
- or if it neither sinks nor climbs for longer with half the thrust of hover, whatever sensors say:
  nothing but the ground carries the other half. In the air it would fall by half of gravity and
  pass the speeds between STALLED_SPEED down and STALLED_CLIMB up in 0.13 s.

A moment is the time between two updates with the same cues or more: samples that come late or are
lost make a step long, and one long step alone shows nothing.

The flight law makes the second cue decisive: while the vehicle does not sink as it should, the law
takes thrust away. In the air the vehicle then sinks, and the thrust comes back.
"""

from __future__ import annotations

import dataclasses
import enum
import math

STALLED_SPEED = 0.15
"""Sink rate below which a descent at 0.5 m/s has come to an end, m/s."""

STALLED_CLIMB = 0.5
"""Climb rate above which the vehicle is in the air, however little it sinks, m/s."""

LESS_THRUST = 0.9
"""Share of the thrust in hover below which something else carries the vehicle."""

LITTLE_THRUST = 0.5
"""Share of the thrust in hover with which no vehicle stays in the air."""

TOUCHED_SHARE = 0.05
"""Share of the weight on the wheels above which the vehicle touches the ground."""

TOUCHED_TIME = 0.05
"""Time of agreeing cues after which the vehicle has touched down, s."""

CARRIED_TIME = 0.3
"""Time without sinking with little thrust after which the vehicle has touched down, s."""


class Cue(enum.Enum):
    """Cue of a touch-down."""

    SINK = "sink"
    """It neither sinks, although it should, nor climbs."""

    THRUST = "thrust"
    """The thrust is below that of hover."""

    HEIGHT = "height"
    """The lowest wheel is near the ground."""

    LOADS = "loads"
    """The wheels have load."""

    STRUTS = "struts"
    """The struts are compressed."""


GROUND_CUES = (Cue.HEIGHT, Cue.LOADS, Cue.STRUTS)
"""Cues of sensors that see or feel the ground."""

Cues = dict[Cue, bool | None]
"""State of each cue; None: unknown."""


@dataclasses.dataclass
class TouchDown:
    """Detector of a touch-down, advanced by `update` during a descent."""

    agreed_for: float | None = None
    """Time since the first update at which all known cues have agreed, s; None: they do not."""

    carried_for: float | None = None
    """Time since the vehicle does not sink with little thrust, s; None: it does."""

    since: float = math.nan
    """Time since the touch-down, s; NaN before."""

    cues: Cues = dataclasses.field(default_factory=dict)
    """Cues at the last update."""

    @property
    def touched(self) -> bool:
        """True after a touch-down."""
        return not math.isnan(self.since)

    @property
    def stalled(self) -> bool:
        """True if the vehicle does not sink, although it should."""
        return bool(self.cues.get(Cue.SINK))

    def update(self, cues: Cues, thrust: float, dt: float) -> None:
        """Advance by dt seconds with cues; `thrust`: as a share of that in hover."""
        self.cues = cues
        if self.touched:
            self.since += dt
            return

        # all known cues agree
        known = [cues[cue] for cue in GROUND_CUES if cues[cue] is not None]
        ground = bool(known) and all(known)
        agree = cues[Cue.SINK] is not False and cues[Cue.THRUST] is not False and ground
        self.agreed_for = _lasting(self.agreed_for, agree, dt)

        # something carries the vehicle
        carried = self.stalled and thrust <= LITTLE_THRUST
        self.carried_for = _lasting(self.carried_for, carried, dt)

        agreed_long = _is_long(self.agreed_for, TOUCHED_TIME)
        if agreed_long or _is_long(self.carried_for, CARRIED_TIME):
            self.since = 0.0

    def text(self) -> str:
        """Return the cues in words, for diagnostics."""
        words = {True: "yes", False: "no", None: "unknown"}
        return ", ".join(f"{cue.value} {words[state]}" for cue, state in self.cues.items())


def _lasting(seconds: float | None, holds: bool, dt: float) -> float | None:
    """Return for how long a condition has held, s; None if it does not hold.

    `seconds`: the same dt seconds ago.
    """
    if not holds:
        return None
    return 0.0 if seconds is None else seconds + dt


def _is_long(seconds: float | None, least: float) -> bool:
    """Return whether a condition has held for the least time, s."""
    return seconds is not None and seconds >= least - 1e-9
