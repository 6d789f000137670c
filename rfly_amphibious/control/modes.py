# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mode state machine of the controllers: modes, transitions and guards. docs/model, section 9.

Theory of operation. `ModeLogic` holds one `Mode`. It changes in two ways:

- on request (`ModeLogic.request`), if `ALLOWED_FROM` lists the present mode for the wanted one and
  the guards of that transition hold;
- without a request (`ModeLogic.update`), when a condition on the wheels' contact has held for some
  time: TAKEOFF to FLIGHT, LAND to SPOOL_DOWN, SPOOL_DOWN to DRIVE, or back to LAND after a bounce.
"""

from __future__ import annotations

import dataclasses
import enum
import math

from rfly_common.arrays import Floats

LOW_PASS = 0.02
"""Time constant of the contact signals, s."""

LIFTED_TIME = 0.2
"""Time without load on any wheel after which a take-off has lifted off, s."""

LIFTED_CLEARANCE = 0.5
"""Clearance of the lowest wheel above which a take-off has lifted off, m."""

TOUCHED_SHARE = 0.3
"""Share of the weight on the wheels above which the vehicle touches the ground."""

TOUCHED_TIME = 0.05
"""Time of touching after which the rotors spool down, s."""

STANDING_SHARE = 0.97
"""Share of the weight on the wheels above which the vehicle stands."""

STANDING_TIME = 1.5
"""Shortest time of spooling down, s."""

BOUNCED_SHARE = 0.05
"""Share of the weight on the wheels below which the vehicle has bounced."""

BOUNCED_TIME = 0.1
"""Time in the air after which a bounce counts, s: soft springs lift the wheels for a moment."""

TAKEOFF_SPEED = 0.3
"""Speed below which a take-off may begin, m/s."""

TAKEOFF_SLOPE = math.radians(10.0)
"""Slope of the ground below which a take-off may begin, rad."""


class Mode(enum.Enum):
    """Mode of the controllers."""

    DISARMED = "DISARMED"
    DRIVE = "DRIVE"
    TAKEOFF = "TAKEOFF"
    FLIGHT = "FLIGHT"
    LAND = "LAND"
    SPOOL_DOWN = "SPOOL_DOWN"
    ABORT = "ABORT"


ALLOWED_FROM: dict[Mode, tuple[Mode, ...]] = {
    Mode.DISARMED: (Mode.DRIVE,),
    Mode.DRIVE: (Mode.ABORT, Mode.DISARMED),
    Mode.TAKEOFF: (Mode.DRIVE,),
    Mode.FLIGHT: (Mode.LAND,),
    Mode.LAND: (Mode.FLIGHT, Mode.TAKEOFF),
    Mode.SPOOL_DOWN: (),
    Mode.ABORT: (Mode.DRIVE, Mode.TAKEOFF, Mode.FLIGHT, Mode.LAND, Mode.SPOOL_DOWN),
}
"""Modes from which each mode can be requested."""


@dataclasses.dataclass(frozen=True)
class ModeInputs:
    """Quantities on which the transitions depend."""

    wheels_down: int
    """Number of wheels with load."""

    load_share: float
    """Share of the weight that the wheels carry, ΣF_z / (M g)."""

    clearance: float
    """Clearance of the lowest wheel, m."""

    speed: float
    """Speed, m/s."""

    slope: float
    """Slope of the ground, rad."""


def contact_of(loads: Floats, weight: float) -> tuple[int, float]:
    """Return the number of wheels with load, and the share of the weight (N) that they carry."""
    return int((loads > 0.0).sum()), float(loads.sum()) / weight


class ContactFilter:
    """Contact signals, low-passed; NaN before the first update."""

    def __init__(self) -> None:
        self.load_share = math.nan
        """Share of the weight that the wheels carry, ΣF_z / (M g)."""

        self.wheels_down = math.nan
        """Number of wheels with load."""

    def update(self, wheels_down: float, load_share: float, dt: float) -> None:
        """Advance the signals by dt seconds with these measurements."""
        if math.isnan(self.load_share):
            self.load_share = load_share
            self.wheels_down = wheels_down
            return

        keep = math.exp(-dt / LOW_PASS)
        self.load_share = keep * self.load_share + (1 - keep) * load_share
        self.wheels_down = keep * self.wheels_down + (1 - keep) * wheels_down


class ModeLogic:
    """The mode of a vehicle, changed by `request` and `update`."""

    def __init__(self, mode: Mode = Mode.DISARMED) -> None:
        self.mode = mode
        self.contact = ContactFilter()
        self.since = 0.0
        """Time in this mode, s."""

        self._held = 0.0
        """Time for which the condition of the mode's next transition has held, s."""

    def request(self, wanted: Mode, now: ModeInputs) -> str:
        """Change to DRIVE (arm), TAKEOFF, FLIGHT (go around), LAND, ABORT or DISARMED, if allowed.

        Return "" if the mode is the wanted one now, else the reason of the refusal.
        """
        if wanted is self.mode:
            return ""

        refusal = self._refusal(wanted, now)
        if not refusal:
            self._enter(wanted)
        return refusal

    def update(self, now: ModeInputs, dt: float) -> Mode:
        """Return the mode after dt more seconds in a situation."""
        self.contact.update(now.wheels_down, now.load_share, dt)
        self.since += dt

        if self.mode is Mode.TAKEOFF:
            lifted = self._holds(self.contact.wheels_down < 0.5, LIFTED_TIME, dt)
            if lifted and now.clearance > LIFTED_CLEARANCE:
                self._enter(Mode.FLIGHT)
        elif self.mode is Mode.LAND:
            if self._holds(self.contact.load_share > TOUCHED_SHARE, TOUCHED_TIME, dt):
                self._enter(Mode.SPOOL_DOWN)
        elif self.mode is Mode.SPOOL_DOWN:
            if self._holds(self.contact.load_share < BOUNCED_SHARE, BOUNCED_TIME, dt):
                self._enter(Mode.LAND)
            elif self.contact.load_share > STANDING_SHARE and self.since >= STANDING_TIME:
                self._enter(Mode.DRIVE)
        return self.mode

    def _enter(self, mode: Mode) -> None:
        self.mode = mode
        self.since = 0.0
        self._held = 0.0

    def _holds(self, condition: bool, seconds: float, dt: float) -> bool:
        """Return whether a condition, true or false for dt more seconds, has held for `seconds`."""
        self._held = self._held + dt if condition else 0.0
        return self._held >= seconds

    def _refusal(self, wanted: Mode, now: ModeInputs) -> str:
        """Return the reason why a mode cannot be entered now, or ""."""
        if wanted is Mode.ABORT and self.mode is Mode.DISARMED:
            return "it is disarmed, there is nothing to abort"
        allowed = ALLOWED_FROM[wanted]
        if self.mode not in allowed:
            modes = " or ".join(mode.value for mode in allowed) or "no mode on request"
            return f"cannot go from {self.mode.value} to {wanted.value}; allowed from {modes}"

        if wanted is Mode.TAKEOFF and now.speed >= TAKEOFF_SPEED:
            return f"its speed is {now.speed:.2f} m/s, expected below {TAKEOFF_SPEED:g} m/s"
        if wanted is Mode.TAKEOFF and now.slope >= TAKEOFF_SLOPE:
            slope = math.degrees(now.slope)
            return f"the slope is {slope:.1f}°, expected below {math.degrees(TAKEOFF_SLOPE):g}°"

        if self.mode is Mode.ABORT and not self.contact.load_share > STANDING_SHARE:
            return "it does not stand on its wheels yet"

        airborne = self.contact.wheels_down < 0.5 and now.clearance > LIFTED_CLEARANCE
        if wanted is Mode.FLIGHT and not airborne:
            return f"it is only {now.clearance:.2f} m above the ground, too low to fly on"
        return ""
