# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mode state machine of the controllers: modes, transitions and guards. docs/model, section 9.

Theory of operation. `ModeLogic` holds one `Mode`. It changes in two ways:

- on request (`ModeLogic.request`), if `ALLOWED_FROM` lists the present mode for the wanted one and
  the guards of that transition hold;
- without a request (`ModeLogic.update`): TAKEOFF to FLIGHT, LAND to SPOOL_DOWN, SPOOL_DOWN to
  DRIVE, or back to LAND after a bounce. These depend on several sensors; one that is missing or
  silent is NaN in `ModeInputs` and stands in the way of none of them. `touch_down` has the
  detector of touch-downs.

ROLLING_TAKEOFF, ROLLING_LAND and ROLL_OUT are the same three for a vehicle whose wheels roll.
"""

from __future__ import annotations

import dataclasses
import math

from rfly_amphibious.simulation.commands import Mode
from rfly_autonomy.control.touch_down import (
    LESS_THRUST,
    STALLED_CLIMB,
    STALLED_SPEED,
    TOUCHED_SHARE,
    Cue,
    TouchDown,
)
from rfly_common.arrays import Floats

LOW_PASS = 0.02
"""Time constant of the contact signals, s."""

LIFTED_TIME = 0.2
"""Time without load on any wheel after which a take-off has lifted off, s."""

LIFTED_CLEARANCE = 0.5
"""Clearance of the lowest wheel above which a take-off has lifted off, m."""

WHEEL_DOWN_SHARE = 0.02
"""Share of the weight on a wheel above which it is on the ground: load cells are noisy."""

RAMP_LOAD = 0.3
"""Share of the weight on the wheels above which no vehicle flies, whatever its mode is."""

STANDING_SHARE = 0.97
"""Share of the weight on the wheels above which the vehicle stands."""

STANDING_TIME = 1.5
"""Shortest time of spooling down, s."""

LONGEST_SPOOLING = 4.0
"""Time of spooling down after which it stands, whatever load the wheels seem to have, s."""

SURELY_LIFTED = 1.0
"""Height above the place of the take-off above which one more witness is enough, m.

A sensor that shows too little height, or load where there is none, keeps no take-off climbing.
"""

BOUNCED_CLEARANCE = 0.02
"""Clearance of the lowest wheel above which the vehicle may have bounced, m."""

BOUNCED_SINK = 0.5
"""Sink rate above which a vehicle without sensors of the ground has bounced, m/s."""

BOUNCED_TIME = 0.1
"""Time in the air after which a bounce counts, s: soft springs lift the wheels for a moment."""

TAKEOFF_SPEED = 0.3
"""Speed below which a take-off may begin, m/s."""

LEAST_ROLLING = 1.2
"""Speed forward from which a vehicle may take off and land rolling, m/s."""

KEPT_SHARE = 0.5
"""Share of the speed at its begin below which a rolling take-off ends on the ground."""

MOST_ASIDE = {Mode.ROLLING_TAKEOFF: 0.15, Mode.ROLLING_LAND: 0.3}
"""Largest speed across the wheels at the begin, as a share of that forward.

It decays during a glide.
"""

TAKEOFF_SLOPE = math.radians(10.0)
"""Slope of the ground below which a take-off may begin, rad."""


ALLOWED_FROM: dict[Mode, tuple[Mode, ...]] = {
    Mode.DISARMED: (Mode.DRIVE,),
    Mode.DRIVE: (Mode.ABORT, Mode.DISARMED),
    Mode.TAKEOFF: (Mode.DRIVE,),
    Mode.FLIGHT: (Mode.LAND, Mode.ROLLING_LAND),
    Mode.LAND: (Mode.FLIGHT, Mode.TAKEOFF, Mode.ROLLING_TAKEOFF, Mode.ROLLING_LAND),
    Mode.SPOOL_DOWN: (),
    Mode.ABORT: tuple(mode for mode in Mode if mode not in (Mode.DISARMED, Mode.ABORT)),
    Mode.ROLLING_TAKEOFF: (Mode.DRIVE,),
    Mode.ROLLING_LAND: (Mode.FLIGHT,),
    Mode.ROLL_OUT: (),
}
"""Modes from which each mode can be requested."""

DRIVEN = (Mode.DRIVE, Mode.ROLLING_TAKEOFF, Mode.ROLL_OUT)
"""Modes in which the driving law turns wheels that have load."""

TAKING_OFF = (Mode.TAKEOFF, Mode.ROLLING_TAKEOFF)
"""Modes that lift off."""

LANDING = (Mode.LAND, Mode.ROLLING_LAND)
"""Modes that end by a touch-down."""

FLYING = (*TAKING_OFF, Mode.FLIGHT, Mode.ROLLING_LAND)
"""Modes that end by LAND when estimate or battery no longer allow them."""

AFTER_TOUCH_DOWN = {Mode.LAND: Mode.SPOOL_DOWN, Mode.ROLLING_LAND: Mode.ROLL_OUT}
"""Mode after the touch-down of each landing."""

AFTER_BOUNCE = {down: landing for landing, down in AFTER_TOUCH_DOWN.items()}
"""Mode after a bounce."""


@dataclasses.dataclass(frozen=True)
class ModeInputs:
    """Quantities on which the transitions depend."""

    wheels_down: float
    """Number of wheels with load; NaN if it is unknown."""

    load_share: float
    """Share of the weight that the wheels carry, ΣF_z / (M g); NaN if it is unknown."""

    clearance: float
    """Clearance of the lowest wheel, m."""

    speed: float
    """Speed, m/s."""

    slope: float
    """Slope of the ground, rad."""

    climb: float = 0.0
    """Vertical speed, m/s, positive upwards; NaN if it is unknown."""

    thrust: float = 0.0
    """Thrust as a share of that in hover."""

    clearance_measured: bool = True
    """Whether a sensor measures the clearance; else it is that above the last place on ground."""

    near: float = 0.25
    """Clearance below which the vehicle may stand, m."""

    strut_share: float = math.nan
    """Share of the weight that the wheels carry by the struts; NaN if it is unknown."""

    risen: float = math.nan
    """Height above the place where the vehicle last stood, m; NaN if it is unknown."""

    forward: float = 0.0
    """Speed along the vehicle, m/s."""

    aside: float = 0.0
    """Speed across it, m/s."""

    upward: float = math.nan
    """Speed along its upright axis, m/s; NaN if it is unknown."""


def contact_of(loads: Floats | None, weight: float) -> tuple[float, float]:
    """Return the number of wheels with load, and the share of the weight (N) that they carry.

    Both are NaN for unknown loads.
    """
    if loads is None:
        return math.nan, math.nan
    down = 0.0
    total = 0.0
    for load in loads.tolist():
        down += load > WHEEL_DOWN_SHARE * weight
        total += load
    return down, total / weight


def near_ground(wheelbase: float) -> float:
    """Return the clearance below which a vehicle may stand, m.

    On a slope of 10° the ground below the sensor is lower than that below a wheel.
    """
    return 0.1 + 0.2 * wheelbase


class ContactFilter:
    """Contact signals, low-passed; NaN while they are unknown."""

    def __init__(self) -> None:
        self.load_share = math.nan
        """Share of the weight that the wheels carry, ΣF_z / (M g)."""

        self.wheels_down = math.nan
        """Number of wheels with load."""

    def update(self, wheels_down: float, load_share: float, dt: float) -> None:
        """Advance the signals by dt seconds with these measurements."""
        if math.isnan(self.load_share) or math.isnan(load_share):
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
        self.touch_down = TouchDown()
        """Detector of the touch-down of LAND and ABORT."""

        self.since = 0.0
        """Time in this mode, s."""

        self._least_speed = 0.0
        """Speed below which a rolling take-off ends on the ground, m/s."""

        self._held = 0.0
        """Time for which the condition of the mode's next transition has held, s."""

        self._strut_share = math.nan
        """Share of the weight that the wheels carry by the struts; NaN if it is unknown."""

        self._is_high = False
        """True while clearance and rise show that the vehicle is in the air."""

    @property
    def is_carried(self) -> bool:
        """True if the wheels carry more of the weight than a flight leaves them."""
        return self._carry(RAMP_LOAD)

    def _carry(self, share: float) -> bool:
        """Return whether the wheels carry more than a share of the weight.

        Struts, or clearance and rise, outvote load cells that show load where there is none.
        """
        outvoted = self._strut_share <= share or self._is_high
        return self.contact.load_share > share and not outvoted

    def request(self, wanted: Mode, now: ModeInputs) -> str:
        """Change to a mode of ALLOWED_FROM, if allowed.

        DRIVE arms, FLIGHT goes around. LAND of a flight that already stands stops the rotors.
        Return "" if the mode is the wanted one now, or follows it, else the reason of the refusal.
        """
        if wanted is self.mode:
            return ""

        refusal = self._refusal(wanted, now)
        if not refusal:
            self._least_speed = KEPT_SHARE * now.forward
            stands = wanted is Mode.LAND and self.mode is Mode.FLIGHT and self.is_carried
            self._enter(AFTER_TOUCH_DOWN[wanted] if stands else wanted)
        return refusal

    def update(self, now: ModeInputs, dt: float) -> Mode:
        """Return the mode after dt more seconds in a situation."""
        self.contact.update(now.wheels_down, now.load_share, dt)
        self._strut_share = now.strut_share
        self._is_high = now.clearance > LIFTED_CLEARANCE and not now.risen <= LIFTED_CLEARANCE
        self.since += dt

        if self.mode in TAKING_OFF:
            surely = self._has_surely_lifted(now)
            lifted = self._holds(surely or self._is_off_ground(now), LIFTED_TIME, dt)
            if lifted and (surely or now.clearance > LIFTED_CLEARANCE):
                self._enter(Mode.FLIGHT)
            elif self.mode is Mode.ROLLING_TAKEOFF and self._is_too_slow(now):
                self._enter(Mode.ROLL_OUT)
        elif self.mode in (*LANDING, Mode.ABORT):
            self.touch_down.update(self._cues(now), now.thrust, dt)
            if self.mode in LANDING and self.touch_down.touched:
                self._enter(AFTER_TOUCH_DOWN[self.mode])
        elif self.mode in AFTER_BOUNCE:
            if self._holds(self._bounces(now), BOUNCED_TIME, dt):
                self._enter(AFTER_BOUNCE[self.mode])
            elif self._stands(now, self.since):
                self._enter(Mode.DRIVE)
        return self.mode

    def _is_off_ground(self, now: ModeInputs) -> bool:
        """Return whether no wheel has load, by the load cells or by struts and height together."""
        hangs = now.strut_share <= TOUCHED_SHARE
        high = now.clearance_measured and now.clearance > LIFTED_CLEARANCE
        return not self.contact.wheels_down >= 0.5 or (hangs and high)

    def _has_surely_lifted(self, now: ModeInputs) -> bool:
        """Return whether it is high above its place, by the estimate and one more witness."""
        hangs = not self.contact.wheels_down >= 0.5 or now.strut_share <= TOUCHED_SHARE
        high = now.clearance_measured and now.clearance > SURELY_LIFTED
        return now.risen > SURELY_LIFTED and (hangs or high)

    def _is_too_slow(self, now: ModeInputs) -> bool:
        """Return whether a rolling take-off has lost its speed on the ground."""
        return now.forward < self._least_speed and self.is_carried

    def _cues(self, now: ModeInputs) -> dict[Cue, bool | None]:
        """Return the cues of a touch-down; None: unknown."""
        unknown = math.isnan(now.climb)
        ground = {
            Cue.HEIGHT: now.clearance < now.near if now.clearance_measured else None,
            Cue.LOADS: _above(self.contact.load_share, TOUCHED_SHARE),
            Cue.STRUTS: _above(now.strut_share, TOUCHED_SHARE),
        }
        sink = now.climb
        felt = True in (ground[Cue.LOADS], ground[Cue.STRUTS]) and False not in ground.values()
        if self.mode is Mode.ROLLING_LAND and felt and not math.isnan(now.upward):
            sink = max(sink, now.upward)  # it rolls downhill
        return {
            Cue.SINK: None if unknown else -STALLED_SPEED < sink < STALLED_CLIMB,
            Cue.THRUST: None if unknown else now.thrust <= LESS_THRUST,
            **ground,
        }

    def _bounces(self, now: ModeInputs) -> bool:
        """Return whether all known sensors say that the wheels are off the ground.

        Without any of them it is a bounce if the vehicle sinks.
        """
        on_ground = [
            _above(self.contact.load_share, TOUCHED_SHARE),
            _above(now.strut_share, TOUCHED_SHARE),
            now.clearance <= BOUNCED_CLEARANCE if now.clearance_measured else None,
        ]
        known = [state for state in on_ground if state is not None]
        return not any(known) if known else now.climb < -BOUNCED_SINK

    def _stands(self, now: ModeInputs, seconds: float) -> bool:
        """Return whether a vehicle stands that touched down some seconds ago."""
        share = self.contact.load_share
        if math.isnan(share):
            share = now.strut_share
        carried = math.isnan(share) or share > STANDING_SHARE or seconds >= LONGEST_SPOOLING
        return carried and seconds >= STANDING_TIME

    def _enter(self, mode: Mode) -> None:
        on_ground = self.mode in (Mode.DRIVE, *AFTER_BOUNCE)
        ramps = self.mode in TAKING_OFF and self.is_carried
        self.mode = mode
        self.since = 0.0
        self._held = 0.0
        if mode not in AFTER_BOUNCE:
            self.touch_down = TouchDown()
        if mode is Mode.ABORT and (on_ground or ramps):
            self.touch_down.since = 0.0

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
        if wanted in MOST_ASIDE:
            if now.forward < LEAST_ROLLING:
                return f"it rolls at {now.forward:.2f} m/s, expected {LEAST_ROLLING:g} m/s or more"
            if abs(now.aside) > MOST_ASIDE[wanted] * now.forward:
                return f"it moves aside at {abs(now.aside):.2f} m/s, its wheels roll forward"
        if wanted in TAKING_OFF and now.slope >= TAKEOFF_SLOPE:
            slope = math.degrees(now.slope)
            return f"the slope is {slope:.1f}°, expected below {math.degrees(TAKEOFF_SLOPE):g}°"

        if self.mode is Mode.ABORT and not self._stands_aborted(now):
            return "it does not stand on its wheels yet"

        airborne = self._is_off_ground(now) and now.clearance > LIFTED_CLEARANCE
        if wanted is Mode.FLIGHT and not airborne:
            return f"it is only {now.clearance:.2f} m above the ground, too low to fly on"
        return ""

    def _stands_aborted(self, now: ModeInputs) -> bool:
        """Return whether the vehicle stands on its wheels, by their load or after a touch-down."""
        touch_down = self.touch_down
        by_time = touch_down.touched and self._stands(now, touch_down.since)
        return by_time or self._carry(STANDING_SHARE)


def _above(share: float, least: float) -> bool | None:
    """Return whether a share is above another; None for an unknown one."""
    return None if math.isnan(share) else share > least
