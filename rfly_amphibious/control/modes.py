"""Mode state machine of the controllers: modes, transitions and their guards. docs/model, section
9.
"""

from __future__ import annotations

import dataclasses
import enum
import math

LOW_PASS = 0.02
"""s, of the contact signals"""
LIFTED_TIME = 0.2
LIFTED_CLEARANCE = 0.5
TOUCHED_SHARE = 0.3
TOUCHED_TIME = 0.05
STANDING_SHARE = 0.97
STANDING_TIME = 1.5
BOUNCED_SHARE = 0.05
BOUNCED_TIME = 0.1
"""a vehicle on soft springs lifts its wheels for a moment without flying again"""
TAKEOFF_SPEED = 0.3
TAKEOFF_SLOPE = math.radians(10.0)


class Mode(enum.Enum):
    """What the controllers do."""

    DISARMED = "DISARMED"
    DRIVE = "DRIVE"
    TAKEOFF = "TAKEOFF"
    FLIGHT = "FLIGHT"
    LAND = "LAND"
    SPOOL_DOWN = "SPOOL_DOWN"
    ABORT = "ABORT"


@dataclasses.dataclass(frozen=True)
class Situation:
    """What the transitions depend on."""

    wheels_down: int
    """wheels with load"""
    load_share: float
    """ΣF_z / (M g)"""
    clearance: float
    """m, of the lowest wheel"""
    speed: float
    """m/s"""
    slope: float
    """rad, of the ground"""


class WheelContact:
    """The contact signals, low-passed: nan before the first update."""

    def __init__(self) -> None:
        self.load_share = math.nan
        """ΣF_z / (M g): share of the weight that the wheels carry"""
        self.wheels_down = math.nan
        """wheels with load, as many as there are"""

    def update(self, wheels_down: float, load_share: float, dt: float) -> None:
        """The signals after dt more seconds with these numbers."""
        if math.isnan(self.load_share):
            self.load_share = load_share
            self.wheels_down = wheels_down
            return
        keep = math.exp(-dt / LOW_PASS)
        self.load_share = keep * self.load_share + (1 - keep) * load_share
        self.wheels_down = keep * self.wheels_down + (1 - keep) * wheels_down


class ModeLogic:
    """The mode, advanced by `update`; requests are refused where the table has no transition."""

    def __init__(self, mode: Mode = Mode.DISARMED) -> None:
        self.mode = mode
        self.contact = WheelContact()
        self.since = 0.0
        """s in this mode"""
        self._lifted = self._touched = 0.0

    def _enter(self, mode: Mode) -> Mode:
        self.mode = mode
        self.since = 0.0
        self._lifted = self._touched = 0.0
        return mode

    def request(self, wanted: Mode, now: Situation) -> str:
        """Ask for DRIVE (that is, to be armed), TAKEOFF, FLIGHT (no landing yet), LAND, ABORT or
        DISARMED.

        "" where it is so from now on, or is so already; else why it cannot be now.
        """
        if wanted is self.mode:
            return ""
        refusal = self._refusal(wanted, now)
        if not refusal:
            self._enter(wanted)
        return refusal

    def _refusal(self, wanted: Mode, now: Situation) -> str:
        if wanted is Mode.ABORT:
            return "it is disarmed, there is nothing to abort" if self.mode is Mode.DISARMED else ""
        starts = {begin for begin, end in _TRANSITIONS if end is wanted}
        if self.mode not in starts:
            listed = " or ".join(sorted(mode.value for mode in starts)) or "by itself"
            return f"it is in {self.mode.value}; {wanted.value} is to be had from {listed}"
        if wanted is Mode.TAKEOFF and now.speed >= TAKEOFF_SPEED:
            return f"its speed is {now.speed:.2f} m/s, expected below {TAKEOFF_SPEED:g} m/s"
        if wanted is Mode.TAKEOFF and now.slope >= TAKEOFF_SLOPE:
            return f"the slope is {math.degrees(now.slope):.1f}°, expected below {math.degrees(TAKEOFF_SLOPE):g}°"
        if self.mode is Mode.ABORT and not self.contact.load_share > STANDING_SHARE:
            return "it does not stand on its wheels yet"
        if wanted is Mode.FLIGHT and not (
            self.contact.wheels_down < 0.5 and now.clearance > LIFTED_CLEARANCE
        ):
            return f"it is {now.clearance:.2f} m above the ground already, too low to fly on"
        return ""

    def update(self, now: Situation, dt: float) -> Mode:
        """The mode after dt more seconds in the situation."""
        self.contact.update(now.wheels_down, now.load_share, dt)
        self.since += dt
        if self.mode is Mode.TAKEOFF:
            self._lifted = self._lifted + dt if self.contact.wheels_down < 0.5 else 0.0
            if self._lifted >= LIFTED_TIME and now.clearance > LIFTED_CLEARANCE:
                return self._enter(Mode.FLIGHT)
        elif self.mode is Mode.LAND:
            self._touched = self._touched + dt if self.contact.load_share > TOUCHED_SHARE else 0.0
            if self._touched >= TOUCHED_TIME:
                return self._enter(Mode.SPOOL_DOWN)
        elif self.mode is Mode.SPOOL_DOWN:
            self._lifted = self._lifted + dt if self.contact.load_share < BOUNCED_SHARE else 0.0
            if self._lifted >= BOUNCED_TIME:
                return self._enter(Mode.LAND)
            if self.contact.load_share > STANDING_SHARE and self.since >= STANDING_TIME:
                return self._enter(Mode.DRIVE)
        return self.mode


_TRANSITIONS = (
    (Mode.DISARMED, Mode.DRIVE),
    (Mode.DRIVE, Mode.DISARMED),
    (Mode.DRIVE, Mode.TAKEOFF),
    (Mode.TAKEOFF, Mode.LAND),
    (Mode.FLIGHT, Mode.LAND),
    (Mode.LAND, Mode.FLIGHT),
    (Mode.ABORT, Mode.DRIVE),
)
"""from and to, on request; ABORT can always be had but when disarmed"""
