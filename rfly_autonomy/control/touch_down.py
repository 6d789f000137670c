# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Touch-down detector from several cues. docs/model, section 9.1.

Theory of operation. Each cue is true, false, or None if its sensor is missing or silent; such a cue
counts as fulfilled, as in PX4's land detector. The vehicle has touched down

- if it does not sink, the thrust is below that of hover, and all known cues of the ground (height,
  wheel loads, struts) are true for a moment; without any of them a recent shock takes their place;
- or if it does not sink for longer with half the thrust of hover, whatever sensors say: nothing but
  the ground carries the other half.

The flight law makes the second cue decisive: while the vehicle does not sink as it should, the law
takes thrust away. In the air the vehicle then sinks, and the thrust comes back.
"""

from __future__ import annotations

import dataclasses
import enum
import math

STALLED_SPEED = 0.15
"""Sink rate below which a descent at 0.5 m/s has come to an end, m/s."""

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

SHOCK = 0.3
"""Specific force along the body's z axis beyond that of hover that counts as a shock, g."""

SHOCK_TIME = 1.0
"""Time for which a shock counts, s."""


class Cue(enum.Enum):
    """Cue of a touch-down."""

    SINK = "sink"
    """It does not sink, although it should."""

    THRUST = "thrust"
    """The thrust is below that of hover."""

    HEIGHT = "height"
    """The lowest wheel is near the ground."""

    LOADS = "loads"
    """The wheels have load."""

    STRUTS = "struts"
    """The struts are compressed."""

    SHOCK = "shock"
    """The IMU has felt a shock."""


GROUND_CUES = (Cue.HEIGHT, Cue.LOADS, Cue.STRUTS)
"""Cues of sensors that see or feel the ground."""

Cues = dict[Cue, bool | None]
"""State of each cue; None: unknown."""


@dataclasses.dataclass
class TouchDown:
    """Detector of a touch-down, advanced by `update` during a descent."""

    agreed_for: float = 0.0
    """Time for which all known cues have agreed, s."""

    carried_for: float = 0.0
    """Time for which the vehicle has not sunk with little thrust, s."""

    shock_age: float = math.inf
    """Time since the last shock, s."""

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

    def update(self, cues: Cues, thrust: float, shock: bool, dt: float) -> None:
        """Advance by dt seconds with cues, of which that of the shock is filled in here.

        `thrust`: as a share of that in hover.
        """
        self.shock_age = 0.0 if shock else self.shock_age + dt
        cues[Cue.SHOCK] = self.shock_age < SHOCK_TIME
        self.cues = cues
        if self.touched:
            self.since += dt
            return

        # all known cues agree
        known = [cues[cue] for cue in GROUND_CUES if cues[cue] is not None]
        ground = all(known) if known else cues[Cue.SHOCK]
        agree = cues[Cue.SINK] is not False and cues[Cue.THRUST] is not False and ground
        self.agreed_for = self.agreed_for + dt if agree else 0.0

        # something carries the vehicle
        carried = cues[Cue.SINK] and thrust <= LITTLE_THRUST
        self.carried_for = self.carried_for + dt if carried else 0.0

        margin = 1e-9
        if self.agreed_for >= TOUCHED_TIME - margin or self.carried_for >= CARRIED_TIME - margin:
            self.since = 0.0

    def text(self) -> str:
        """Return the cues in words, for diagnostics."""
        words = {True: "yes", False: "no", None: "unknown"}
        return ", ".join(f"{cue.value} {words[state]}" for cue, state in self.cues.items())
