"""Modes of the controllers and what leads from one to the next. Section 9 of the model's description."""

from __future__ import annotations

import dataclasses
import enum
import math

LOW_PASS = 0.02
"""s, of the contact signals"""
LIFTED_TIME = 0.2
LIFTED_CLEARANCE = 0.5
TOUCHED_SHARE, TOUCHED_TIME = 0.3, 0.05
STANDING_SHARE, STANDING_TIME = 0.97, 1.5
BOUNCED_SHARE, BOUNCED_TIME = 0.05, 0.1
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


class ModeLogic:
    """The mode, advanced by `update`; requests are refused where the table has no way."""

    def __init__(self, mode: Mode = Mode.DISARMED) -> None:
        self.mode = mode
        self.share, self.wheels = math.nan, math.nan
        """the contact signals, low-passed"""
        self.since = 0.0
        """s in this mode"""
        self._lifted = self._touched = 0.0

    def _enter(self, mode: Mode) -> Mode:
        self.mode, self.since = mode, 0.0
        self._lifted = self._touched = 0.0
        return mode

    def request(self, wanted: Mode, now: Situation) -> bool:
        """Arm (DRIVE), TAKEOFF, LAND, ABORT or DISARMED; False where it cannot be now."""
        allowed = {
            (Mode.DISARMED, Mode.DRIVE): True,
            (Mode.DRIVE, Mode.DISARMED): True,
            (Mode.DRIVE, Mode.TAKEOFF): now.speed < TAKEOFF_SPEED and now.slope < TAKEOFF_SLOPE,
            (Mode.TAKEOFF, Mode.LAND): True,
            (Mode.FLIGHT, Mode.LAND): True,
            (Mode.ABORT, Mode.DRIVE): self.share > STANDING_SHARE,
        }
        if (wanted is Mode.ABORT and self.mode is not Mode.DISARMED) or allowed.get((self.mode, wanted), False):
            self._enter(wanted)
            return True
        return False

    def update(self, now: Situation, dt: float) -> Mode:
        """The mode after dt more seconds in the situation."""
        keep = math.exp(-dt / LOW_PASS)
        self.share = now.load_share if math.isnan(self.share) else keep * self.share + (1 - keep) * now.load_share
        self.wheels = now.wheels_down if math.isnan(self.wheels) else keep * self.wheels + (1 - keep) * now.wheels_down
        self.since += dt
        if self.mode is Mode.TAKEOFF:
            self._lifted = self._lifted + dt if self.wheels < 0.5 else 0.0
            if self._lifted >= LIFTED_TIME and now.clearance > LIFTED_CLEARANCE:
                return self._enter(Mode.FLIGHT)
        elif self.mode is Mode.LAND:
            self._touched = self._touched + dt if self.share > TOUCHED_SHARE else 0.0
            if self._touched >= TOUCHED_TIME:
                return self._enter(Mode.SPOOL_DOWN)
        elif self.mode is Mode.SPOOL_DOWN:
            self._lifted = self._lifted + dt if self.share < BOUNCED_SHARE else 0.0
            if self._lifted >= BOUNCED_TIME:
                return self._enter(Mode.LAND)
            if self.share > STANDING_SHARE and self.since >= STANDING_TIME:
                return self._enter(Mode.DRIVE)
        return self.mode
