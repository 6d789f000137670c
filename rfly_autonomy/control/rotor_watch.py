# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over rotors that do not follow their commands, by their encoders.

Theory of operation. A rotor follows its command with its lag, so its speed lies between the command
and the speed expected by that lag. A rotor

- stands, if it should turn and hardly does;
- is weak, if it lacks a good part of the thrust that it should have;
- is stuck, if it does not move at all for a moment while its command does;
- runs away, if it turns much faster than commanded; on the ground the wheels have to show it, too;
- is off, if it turns, and moves, but at another speed than expected: the flight law makes up for
  it.

Rotors that stand, are weak, stuck or run away have failed. Encoders that repeat all their readings,
that show jumps of most rotors, or that show most of them fail at once, prove nothing about the
rotors: they have failed themselves. But if the accelerometer measures the little thrust that they
show, most rotors do fail at once: the battery gives them no power. It gives none either if the
accelerometer measures far less thrust than is due while no encoder shows anything, or no rotor
turns; on the ground, what the wheels carry is no thrust. A weak battery makes all rotors slower at
once, each by so little that it would be sound alone. Its voltage lets none of them turn faster than
one speed: rotors that should turn faster, and all turn at the same highest one, are at fault
neither themselves nor by their encoders.

A single rotor that seems to fail may have an encoder that lies. The body shows it: a rotor that is
slower or faster than expected adds a moment that the flight law's observer finds. If this moment
does not go with the measured speed, the rotor works. An encoder that follows its rotor again is
believed again.

Rotors without an encoder to rely on are watched by the body alone: a rotor whose thrust explains
the moments and the force that all of them leave open has failed. On the ground, where the others
make up for the thrust of a failed rotor lest it tips the vehicle over, the loads of the wheels show
whether it pushes.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import MomentObserver
from rfly_autonomy.control.rotor_evidence import LoadEvidence, MomentEvidence, ThrustByMotion
from rfly_common.arrays import Bools, Floats
from rfly_common.physics import GRAVITY

WATCHED_SHARE = 0.4
"""Share of the speed in hover that a rotor has to be commanded to stand."""

STANDS_SHARE = 0.3
"""Share of the expected speed below which a rotor stands."""

STANDS_TIME = 0.1
"""Time below that share after which a rotor has failed, s."""

WEAK_LACK = 0.16
"""Thrust that a rotor lacks, as a share of the weight, from which it is weak.

The moments of less are learned, and the mission goes on. More is beyond what the flight law's
observer holds, or takes the rotor to its limit.
"""

WEAK_TIME = 0.1
"""Time without that thrust after which a rotor has failed, s: one that starts is late."""

FAST_SHARE = 0.2
"""Excess of a rotor that runs away over command and expected speed, as a share of that in hover."""

OFF_SHARE = 0.08
"""Deviation from the expected speed, as a share of that in hover, of a rotor that is off."""

OFF_TIME = 0.5
"""Time with this deviation after which a rotor is off, s."""

STILL_SHARE = 0.002
"""Range of a speed, as a share of that in hover, within which a rotor does not move."""

MOVED_SHARE = 0.02
"""Range of the expected speed, as a share of that in hover, in which a rotor has to move."""

STUCK_TIME = 0.15
"""Time without moving after which a rotor is stuck, s: a weak one may rest for a moment."""

REPEATS_TIME = 0.3
"""Time of equal readings of all rotors after which the encoders have failed, s."""

JUMP_SHARE = 0.04
"""Jump of the deviation from one reading to the next, as a share of the speed in hover, that no
rotor makes.
"""

NOISY_SHARE = 0.5
"""Share of readings with jumps of most rotors above which the encoders are noisy."""

NOISY_TIME = 0.3
"""Time over which this share is averaged, s."""

SAG_SHARE = 0.8
"""Share of the largest speed that a rotor has on an empty battery."""

POWERLESS_SHARE = 0.5
"""Measured force as a share of that due below which most rotors have no power."""

POWERLESS_TIME = 0.2
"""Time below that share after which the battery is at fault, s."""

SAG_LACK = 0.1
"""Thrust that all rotors together lack, as a share of the weight, by which a battery is weak."""

SAG_AGREES = 0.3
"""Share of the lack that encoders show by which the measured force may differ from theirs."""

SAG_TIME = 0.2
"""Time with this lack after which the battery is at fault, s."""

SAME_SHARE = 0.005
"""Difference of speeds, as a share of that in hover, up to which they are the battery's highest."""

SHORT_SHARE = 0.01
"""Lack of speed, as a share of that in hover, by which a rotor is slower than it should be."""

RISE_TIME = 0.05
"""Time over which the highest speed is averaged, s."""

RISE_SHARE = 0.0075
"""Rise above this mean, as a share of the speed in hover, of rotors that follow late commands."""

CEILING_TIME = 2.0
"""Time for which the highest speed that two rotors have had together is remembered, s."""

NEAR_CEILING = 0.02
"""Distance from this speed, as a share of that in hover, up to which a single rotor is there."""

CAPPED_TIME = 0.3
"""Time for which a rotor that has turned at the battery's highest speed is not judged alone, s."""

CAPPED_LACK = 0.03
"""Thrust that all rotors together lack, as a share of the weight, by which a battery is weak if
half of them turn at its highest speed.
"""

CARRIES_SHARE = 1.02
"""Speed, as a share of that in hover, below which no sound battery is that still carries it."""

STILL_LACKS = 0.25
"""Share of the lack that encoders show that the force has to show for the battery to stay named."""

LONGEST_DOUBT = 1.0
"""Time after which a rotor that seems to fail is named, though the body shows nothing, s.

Its moment is so small then that the flight law makes up for it.
"""

STANDS_BY_MOTION = 0.4
"""Share of the expected speed below which a rotor stands by the body's motion: 0.16 of thrust."""

SOUND_TIME = 2.0
"""Time for which an encoder that lied has to follow its rotor until it is believed, s."""


NO_POWER = "the battery gives most rotors too little power"


class RotorWatch:
    """Watch over a vehicle's rotors: their failures in words."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._body = MomentEvidence(params)
        self._motion = ThrustByMotion(params)
        self._ground = LoadEvidence(params)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        rotors = self._params.rotors
        self.failed: dict[int, str] = {}
        """Reasons of the rotors (from 0) that have failed."""

        self.warnings: dict[str, str] = {}
        """Texts about rotors that are off, or encoders that have failed, by the part's name."""

        self.lying: dict[int, str] = {}
        """Texts about rotors (from 0) that work, though their encoders show that they do not."""

        self.by_motion: dict[int, float] = {}
        """Speeds of failed rotors (from 0) that no encoder shows, rad/s."""

        self.all_lie = False
        """True while no encoder shows anything."""

        self._powerless_for = 0.0
        """Time for which the rotors have given far too little force, s."""

        self._weak_battery_for = 0.0
        """Time for which rotors without power accuse no encoders, s."""

        self._sags_for = 0.0
        """Time for which all rotors have been too slow together, s."""

        self._top_mean = math.nan
        """Highest speed of all, averaged, rad/s; NaN before the first."""

        self._ceiling = 0.0
        """Highest speed that two rotors have had together, rad/s."""

        self._ceiling_for = 0.0
        """Time for which it is remembered still, s."""

        self._capped = np.zeros(rotors, bool)
        """Rotors that turn at the highest speed that the battery allows, (rotors,)."""

        self._capped_for = np.zeros(rotors)
        """Times for which rotors count as such still, (rotors,), s."""

        self._distrusted_for = 0.0
        """Time for which all encoders have to follow until they are believed again, s."""

        self._sound_for = np.zeros(rotors)
        """Times for which encoders have followed their rotors, (rotors,), s."""

        self._body.reset()
        self._motion.reset()
        self._ground.reset()
        self._doubt_for = np.zeros(rotors)
        """Times for which rotors have seemed to fail, (rotors,), s."""

        self._in_doubt = np.zeros(rotors, bool)
        """Rotors, (rotors,), that seem to fail while the body has shown nothing."""

        self._time = math.nan
        self._speeds = np.full(rotors, math.nan)
        self._deviations = np.full(rotors, math.nan)
        """Speeds less those expected at the last reading, (rotors,), rad/s."""

        self._jumps = 0.0
        """Share of readings by which most rotors jump."""

        self._repeats_for = 0.0
        """Time in which all readings were the same, s."""

        self._repeats_since = np.zeros(rotors)
        """Speeds expected when they began to be the same, (rotors,), rad/s."""

        self._stands_for = np.zeros(rotors)
        self._weak_for = np.zeros(rotors)
        self._fast_for = np.zeros(rotors)
        self._off_for = np.zeros(rotors)
        self._place = np.full(rotors, math.inf)
        """Speeds at which the rotors began not to move, (rotors,), rad/s."""

        self._still_for = np.zeros(rotors)
        """Times without moving, (rotors,), s."""

        self._lowest = np.zeros(rotors)
        """Lowest speeds expected since then, (rotors,), rad/s."""

        self._highest = np.zeros(rotors)
        """Highest speeds expected since then, (rotors,), rad/s."""

    def update(
        self,
        time: float,
        speeds: Floats,
        expected: Floats,
        commanded: Floats,
        force: float = math.nan,
        observer: MomentObserver | None = None,
        loads: Floats | None = None,
        possible: Floats | None = None,
        climb: float = 0.0,
    ) -> None:
        """Take in measured speeds, (rotors,), rad/s, at a time, s.

        `expected`: by the lag after their commands `commanded`, (rotors,), rad/s. `force`: measured
        specific force along the body's z axis, m/s²; NaN: unknown. `observer`: of the moments that
        the expected speeds leave open; None: unknown. `loads`: of the wheels, (wheels,), N; None:
        unknown. `possible`: speeds by commands of other ages, (k, rotors), rad/s; None: of none.
        `climb`: speed along that axis, m/s, which takes thrust away.
        """
        period = self._begin(time)
        repeats = np.array_equal(speeds, self._speeds)
        self._speeds = speeds
        if repeats:
            self._watch_repeats(expected, period)
        else:
            self._repeats_for = 0.0
            self.all_lie = False
            inflow = self._params.inflow_coefficient * climb / self._params.mass
            still = force + inflow * float(speeds.sum())
            self._watch_speeds(
                speeds, expected, commanded, still, observer, loads, possible, period
            )
        carried = 0.0 if speeds.any() else self._carried(loads)
        self._watch_power(expected, force - carried, period)
        self._watch_motion(expected, force, observer, period)

    def update_unmeasured(
        self, time: float, expected: Floats, force: float, observer: MomentObserver | None
    ) -> None:
        """Go on to a time, s, while the encoders deliver nothing. Else as `update`."""
        period = self._begin(time)
        self.all_lie = True
        self._body.reset()
        self._watch_power(expected, force, period)
        self._watch_motion(expected, force, observer, period)

    def watch_ground(self, loads: Floats | None, expected: Floats, period: float) -> None:
        """Find failed rotors that rest while the vehicle stands, `period` seconds later.

        `loads`: of the wheels, (wheels,), N; None: they are unknown, or it does not stand.
        `expected`: speeds of the others, (rotors,), rad/s.
        """
        if loads is None or not self.failed:
            self._ground.reset()
            return
        speeds = expected.copy()
        failed = list(self.failed)
        speeds[failed] = np.nan_to_num(self._seeming[failed])
        self._ground.update(loads, speeds, failed, period)

    @property
    def believed(self) -> Floats:
        """Speeds of the rotors, (rotors,), rad/s: the newest measured, or those by the motion.

        Those that the wheels show to rest are 0.
        """
        return np.where(self._ground.rests, 0.0, self._seeming)

    @property
    def shows_delay(self) -> bool:
        """False while a fault of rotors, encoders or battery may look like a late link."""
        lacks_power = self._weak_battery_for > 0.0 or bool(self._capped_for.any())
        return not (self.failed or self.all_lie or lacks_power)

    @property
    def _seeming(self) -> Floats:
        """Speeds of the rotors, (rotors,), rad/s, by encoders or motion."""
        seeming = self._speeds.copy()
        for rotor, speed in self.by_motion.items():
            seeming[rotor] = speed
        return seeming

    def _carried(self, loads: Floats | None) -> float:
        """Return the force of wheels with loads, (wheels,), N, m/s²; 0 if they are unknown."""
        return 0.0 if loads is None else float(np.nan_to_num(loads).sum()) / self._params.mass

    def _begin(self, time: float) -> float:
        """Return the seconds from the last time to this one, s."""
        period = 0.0
        if not math.isnan(self._time):
            period = min(max(time - self._time, 0.0), STANDS_TIME)
        self._time = time
        return period

    def _watch_speeds(
        self,
        speeds: Floats,
        expected: Floats,
        commanded: Floats,
        force: float,
        observer: MomentObserver | None,
        loads: Floats | None,
        possible: Floats | None,
        period: float,
    ) -> None:
        """Compare speeds with their commands, `period` seconds after the last ones."""
        low = np.minimum(expected, commanded)
        high = np.maximum(expected, commanded)
        if possible is not None:
            low = np.minimum(low, possible.min(axis=0))
            high = np.maximum(high, possible.max(axis=0))
        hover = self._params.hover_speed
        stands = (low > WATCHED_SHARE * hover) & (speeds < STANDS_SHARE * low)
        sagged = np.minimum(low, SAG_SHARE * self._params.max_rotor_speed)
        is_off = (speeds < sagged - OFF_SHARE * hover) | (speeds > high + OFF_SHARE * hover)
        fast = speeds > high + FAST_SHARE * hover
        if observer is not None:
            fast &= low > WATCHED_SHARE * hover
        elif fast.any():
            fast &= loads is not None and self._ground.shows(loads, speeds, expected)
        lack = self._params.thrust_coefficient * (np.square(low) - np.square(speeds))
        self._watch_ceiling(low, period)
        self._watch_sag(sagged, low, force, self._carried(loads), period)
        slow = speeds < SAG_SHARE * self._params.max_rotor_speed
        weak = slow & (lack > WEAK_LACK * self._params.mass * GRAVITY)
        self._stands_for = np.where(stands, self._stands_for + period, 0.0)
        self._weak_for = np.where(weak, self._weak_for + period, 0.0)
        self._fast_for = np.where(fast, self._fast_for + period, 0.0)
        self._off_for = np.where(is_off, self._off_for + period, 0.0)
        self._watch_jumps(speeds - expected, period)
        if observer is None:
            self._body.reset()
        else:
            self._body.update(speeds, expected, observer, period)
        stuck = self._stuck(speeds, expected, period)
        self._judge(stuck, expected, force, period, observer is not None)

    def _watch_repeats(self, expected: Floats, period: float) -> None:
        """Note that all readings are those of `period` seconds ago."""
        if self._repeats_for == 0.0:
            self._repeats_since = expected.copy()
        self._repeats_for += period
        moved = (
            np.abs(expected - self._repeats_since).max() > MOVED_SHARE * self._params.hover_speed
        )
        is_off = np.abs(self._speeds - expected) > OFF_SHARE * self._params.hover_speed
        lies = moved or 2 * int(is_off.sum()) > len(expected)
        if self._repeats_for >= REPEATS_TIME - 1e-9 and lies and self._speeds.any():
            self.warnings["encoders"] = "the encoders repeat their readings"
            self.all_lie = True

    def _watch_jumps(self, deviations: Floats, period: float) -> None:
        """Average how often most rotors jump from one reading to the next."""
        jumps = np.abs(deviations - self._deviations) > JUMP_SHARE * self._params.hover_speed
        self._deviations = deviations
        most = float(2 * int(jumps.sum()) > len(deviations))
        self._jumps += -math.expm1(-period / NOISY_TIME) * (most - self._jumps)

    def _stuck(self, speeds: Floats, expected: Floats, period: float) -> Bools:
        """Return which rotors have not moved while their commands have, (rotors,).

        An unmeasured speed, NaN, shows nothing.
        """
        hover = self._params.hover_speed
        moves = np.abs(speeds - self._place) > STILL_SHARE * hover
        self._place = np.where(moves, speeds, self._place)
        self._still_for = np.where(moves, 0.0, self._still_for + period)
        self._lowest = np.where(moves, expected, np.minimum(self._lowest, expected))
        self._highest = np.where(moves, expected, np.maximum(self._highest, expected))
        is_late = self._highest - self._lowest > MOVED_SHARE * hover
        is_still = self._still_for >= STUCK_TIME - 1e-9
        return np.asarray(is_late & is_still & np.isfinite(speeds))

    def _watch_power(self, expected: Floats, force: float, period: float) -> None:
        """Find a battery that gives no power while no encoder shows it, or no rotor turns.

        `force`: of the rotors, m/s².
        """
        is_blind = self.all_lie or not self._speeds.any()
        due = self._params.thrust_coefficient * float(np.square(expected).sum())
        flies = due > POWERLESS_SHARE * self._params.mass * GRAVITY
        is_low = flies and force < POWERLESS_SHARE * due / self._params.mass
        self._powerless_for = self._powerless_for + period if is_low and is_blind else 0.0
        if self._powerless_for >= POWERLESS_TIME - 1e-9:
            self.warnings["battery"] = NO_POWER
        elif is_blind:
            self.warnings.pop("battery", None)

    def _watch_ceiling(self, low: Floats, period: float) -> None:
        """Find the rotors that turn at the highest speed that the battery allows.

        `low`: lowest speeds expected, (rotors,), rad/s.
        """
        hover = self._params.hover_speed
        speeds = self._speeds
        top = float(speeds.max())
        if math.isnan(self._top_mean):
            self._top_mean = top
        rises = top > self._top_mean + RISE_SHARE * hover
        self._top_mean -= math.expm1(-period / RISE_TIME) * (top - self._top_mean)

        # two at once show that speed, and one alone is there
        short = (speeds > top - SAME_SHARE * hover) & (speeds < low - SHORT_SHARE * hover)
        self._ceiling_for -= period
        if int(short.sum()) >= 2 and not rises and top > STANDS_SHARE * hover:
            self._ceiling = top
            self._ceiling_for = CEILING_TIME
        is_there = self._ceiling_for > 0.0 and abs(top - self._ceiling) < NEAR_CEILING * hover
        self._capped = short & is_there
        left = np.maximum(self._capped_for - period, 0.0)
        self._capped_for = np.where(self._capped, CAPPED_TIME, left)

    def _watch_sag(
        self, sagged: Floats, low: Floats, force: float, carried: float, period: float
    ) -> None:
        """Find a battery by which all rotors are too slow together, or which is weak still.

        `sagged`: lowest speeds on an empty battery, and `low`: lowest ones expected, both
        (rotors,), rad/s. `force`: that would be measured without the climb, and `carried`: that of
        the wheels, m/s².
        """
        share = self._params.thrust_coefficient / self._params.mass
        shown = share * float(np.square(self._speeds).sum())
        due = share * float(np.square(low).sum())
        lacks = share * float(np.square(sagged).sum()) - shown > SAG_LACK * GRAVITY
        lacks = lacks and bool((self._speeds < sagged).all())
        agrees = force < shown + SAG_AGREES * (due - shown)
        sags = (lacks and agrees) or self._is_capped(low, force - carried, shown, due)
        sags_for = self._sags_for + (period if sags else -period)
        self._sags_for = min(max(sags_for, 0.0), SAG_TIME)

        starts = self._sags_for >= SAG_TIME - 1e-9 and self._distrusted_for <= 0.0
        lasts = self._weak_battery_for > 0.0 and due - shown > SAG_LACK * GRAVITY
        if starts or (lasts and force < due - STILL_LACKS * (due - shown)):
            self._blame_battery()

    def _blame_battery(self) -> None:
        """Note that the battery is weak: encoders that have just seemed to lie do not."""
        if self._weak_battery_for <= 0.0:
            self.lying.clear()
        self._weak_battery_for = SOUND_TIME

    def _is_capped(self, low: Floats, force: float, shown: float, due: float) -> bool:
        """Return whether half of the rotors lack thrust at a speed lower than any sound battery's.

        `low`: lowest speeds expected, (rotors,), rad/s. `force`: measured, `shown`: by the encoders
        and `due`: by those speeds, m/s². Rotors at one speed lack the differences of encoders with
        a bias show; a force that is much too low shows it as well.
        """
        capped = low[self._capped]
        if 2 * len(capped) < len(low) or due - shown < CAPPED_LACK * GRAVITY:
            return False
        p = self._params
        differs = float(capped.max() - capped.min()) > 2.0 * SAME_SHARE * p.hover_speed
        least = max(SAG_SHARE * p.max_rotor_speed, CARRIES_SHARE * p.hover_speed)
        is_low = float(self._speeds.max()) < least
        if differs:
            return is_low and abs(force - shown) < abs(force - due)
        lacks = due - shown > SAG_LACK * GRAVITY
        return is_low and lacks and force < shown + SAG_AGREES * (due - shown)

    def _has_lost_thrust(self, expected: Floats, force: float) -> bool:
        """Return whether a measured force, m/s², shows the lower thrust that the encoders show.

        The other one is that by the rotors' expected speeds.
        """
        share = self._params.thrust_coefficient / self._params.mass
        measured = share * float(np.square(self._speeds).sum())
        due = share * float(np.square(expected).sum())
        return measured < due and abs(force - measured) < abs(force - due)

    def _judge(
        self, stuck: Bools, expected: Floats, force: float, period: float, has_evidence: bool
    ) -> None:
        """Find what has failed, `period` seconds after the last time."""
        stands = self._stands_for >= STANDS_TIME - 1e-9
        weak = self._weak_for >= WEAK_TIME - 1e-9
        fast = self._fast_for >= STANDS_TIME - 1e-9
        off = self._off_for >= OFF_TIME - 1e-9

        # where most of them are off, they are judged together, once all have been so for long
        together = 2 * int((self._off_for > 0.0).sum()) > len(expected)
        if together and 2 * int((off | fast | weak).sum()) <= len(expected):
            off = np.zeros(len(expected), bool)
            fast = off
            weak = off
        self._weak_battery_for -= period
        before = self.warnings
        self.warnings = {}
        if self._jumps > NOISY_SHARE and self._weak_battery_for <= 0.0:
            self.warnings["encoders"] = "the encoders are far noisier than they should be"
            self.all_lie = True
            return
        capped = self._capped_for > 0.0
        stuck = stuck & ~capped
        wrong = stands | weak | stuck | fast | off
        if 2 * int(wrong.sum()) > len(expected):
            # encoders that lie show nothing of the battery
            if self._distrusted_for <= 0.0 and self._has_lost_thrust(expected, force):
                self._blame_battery()
            if self._weak_battery_for > 0.0:
                self.warnings["battery"] = NO_POWER
                return
            self._distrusted_for = SOUND_TIME
        if self._distrusted_for > 0.0:
            self._distrusted_for -= period
            self.warnings["encoders"] = "the encoders disagree with the commands of most rotors"
            self.all_lie = True
            return
        # rotors are as slow as the battery lets them be
        if self._weak_battery_for > 0.0:
            self.warnings["battery"] = NO_POWER
            wrong = stands | fast
        wrong &= ~capped | stands | fast

        sound = (self._off_for == 0.0) & (self._stands_for == 0.0) & (self._still_for < STUCK_TIME)
        self._sound_for = np.where(sound, self._sound_for + period, 0.0)
        for rotor in np.flatnonzero(self._sound_for >= SOUND_TIME).tolist():
            self.lying.pop(rotor, None)

        self._doubt_for = np.where(wrong, self._doubt_for + period, 0.0)
        if has_evidence:
            self._in_doubt = ~self._body.is_clear
        self._in_doubt = self._in_doubt & wrong
        lies = self._body.lies
        for rotor, speed in enumerate(self._speeds.tolist()):
            name = f"rotor {rotor + 1}"
            if rotor in self.failed or rotor in self.lying or not wrong[rotor]:
                continue
            if self._in_doubt[rotor]:
                if self._doubt_for[rotor] >= LONGEST_DOUBT - 1e-9:
                    text = f"{name} or its encoder is stuck at {speed:.0f} rad/s"
                    self.warnings[name] = before.get(name, text)
            elif lies[rotor]:
                self.lying[rotor] = f"the encoder of {name} shows {speed:.0f} rad/s, but it works"
            elif stands[rotor] or (weak[rotor] and speed < STANDS_SHARE * expected[rotor]):
                self.failed[rotor] = f"{name} failed"
            elif stuck[rotor]:
                self.failed[rotor] = f"{name} is stuck at {speed:.0f} rad/s"
            elif fast[rotor]:
                self.failed[rotor] = f"{name} runs away at {speed:.0f} rad/s"
            else:
                # a warning keeps its first numbers
                text = f"{name} turns at {speed:.0f} rad/s instead of {expected[rotor]:.0f}"
                if weak[rotor]:
                    self.failed[rotor] = text
                else:
                    self.warnings[name] = before.get(name, text)
        if self.lying:
            self.warnings["encoders"] = "; ".join(self.lying.values())

    def _watch_motion(
        self, expected: Floats, force: float, observer: MomentObserver | None, period: float
    ) -> None:
        """Find rotors without an encoder to rely on that fail by the body's motion."""
        motion = self._motion
        is_powerless = self._powerless_for >= POWERLESS_TIME - 1e-9
        if observer is None or math.isnan(force) or is_powerless:
            motion.reset()
            return
        if self._powerless_for > 0.0:  # noise, or the battery
            return
        motion.update(expected, force, observer, period)
        for rotor in self.by_motion:
            if motion.is_known:
                self.by_motion[rotor] = float(motion.speeds[rotor])

        unseen = set(range(len(expected))) if self.all_lie else set(self.lying)
        for rotor in np.flatnonzero(motion.fails).tolist():
            if rotor in self.failed or rotor not in unseen:
                continue
            name = f"rotor {rotor + 1}"
            speed = float(motion.speeds[rotor])
            due = float(expected[rotor])
            if speed < STANDS_BY_MOTION * due:
                self.failed[rotor] = f"{name} failed, by the motion"
            else:
                text = f"{name} turns at {speed:.0f} rad/s instead of {due:.0f}, by the motion"
                self.failed[rotor] = text
            self.by_motion[rotor] = speed
            motion.skip()
