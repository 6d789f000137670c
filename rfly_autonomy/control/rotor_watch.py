# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over rotors that do not do what they are told, by their encoders.

Theory of operation. A rotor follows its command with its lag, so its speed lies between the command
and the speed expected by that lag. A rotor

- stands, if it should turn and hardly does;
- is stuck, if it does not move at all for a moment while its command does;
- is off, if it turns, and moves, but at another speed than expected: the flight law makes up for
  it.

Rotors that stand or are stuck have failed. Encoders that repeat all their readings, by which most
rotors jump from reading to reading, or by which most of them fail at once, show nothing of the
rotors: they have failed themselves. But if the accelerometer measures the little thrust that they
show, most rotors do fail at once: the battery gives them no power.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Bools, Floats

WATCHED_SHARE = 0.4
"""Share of the speed in hover that a rotor has to be commanded to stand."""

STANDS_SHARE = 0.3
"""Share of the expected speed below which a rotor stands."""

STANDS_TIME = 0.1
"""Time below that share after which a rotor has failed, s."""

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


class RotorWatch:
    """Watch over a vehicle's rotors: their failures in words."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        rotors = self._params.rotors
        self.failed: dict[int, str] = {}
        """Reasons of the rotors (from 0) that have failed."""

        self.warnings: dict[str, str] = {}
        """Texts about rotors that are off, or encoders that have failed, by the part's name."""

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
    ) -> None:
        """Take in measured speeds, (rotors,), rad/s, at a time, s.

        `expected`: by the lag after their commands `commanded`, (rotors,), rad/s. `force`: measured
        specific force along the body's z axis, m/s²; NaN: unknown.
        """
        period = 0.0
        if not math.isnan(self._time):
            period = min(max(time - self._time, 0.0), STANDS_TIME)
        self._time = time
        repeats = np.array_equal(speeds, self._speeds)
        self._speeds = speeds
        if repeats:
            self._watch_repeats(expected, period)
            return
        self._repeats_for = 0.0

        low = np.minimum(expected, commanded)
        high = np.maximum(expected, commanded)
        hover = self._params.hover_speed
        stands = (low > WATCHED_SHARE * hover) & (speeds < STANDS_SHARE * low)
        sagged = np.minimum(low, SAG_SHARE * self._params.max_rotor_speed)
        is_off = (speeds < sagged - OFF_SHARE * hover) | (speeds > high + OFF_SHARE * hover)
        self._stands_for = np.where(stands, self._stands_for + period, 0.0)
        self._off_for = np.where(is_off, self._off_for + period, 0.0)
        self._watch_jumps(speeds - expected, period)
        self._judge(self._stuck(speeds, expected, period), expected, force)

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

    def _watch_jumps(self, deviations: Floats, period: float) -> None:
        """Average how often most rotors jump from one reading to the next."""
        jumps = np.abs(deviations - self._deviations) > JUMP_SHARE * self._params.hover_speed
        self._deviations = deviations
        most = float(2 * int(jumps.sum()) > len(deviations))
        self._jumps += -math.expm1(-period / NOISY_TIME) * (most - self._jumps)

    def _stuck(self, speeds: Floats, expected: Floats, period: float) -> Bools:
        """Return which rotors have not moved while their commands have, (rotors,).

        A speed that nobody measures, NaN, shows nothing.
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

    def _has_lost_thrust(self, expected: Floats, force: float) -> bool:
        """Return whether a measured force, m/s², is nearer to the rotors' thrust by the encoders.

        The other one is that by their expected speeds.
        """
        share = self._params.thrust_coefficient / self._params.mass
        measured = share * float(np.square(self._speeds).sum())
        due = share * float(np.square(expected).sum())
        return abs(force - measured) < abs(force - due)

    def _judge(self, stuck: Bools, expected: Floats, force: float) -> None:
        """Find what has failed."""
        stands = self._stands_for >= STANDS_TIME - 1e-9
        off = self._off_for >= OFF_TIME - 1e-9
        before = self.warnings
        self.warnings = {}
        if self._jumps > NOISY_SHARE:
            self.warnings["encoders"] = "the encoders are far noisier than they should be"
            return
        if 2 * int((stands | stuck | off).sum()) > len(expected):
            if self._has_lost_thrust(expected, force):
                self.warnings["battery"] = "the battery gives most rotors too little power"
            else:
                self.warnings["encoders"] = "the encoders disagree with the commands of most rotors"
            return

        for rotor, speed in enumerate(self._speeds.tolist()):
            name = f"rotor {rotor + 1}"
            if rotor in self.failed:
                continue
            if stands[rotor]:
                self.failed[rotor] = f"{name} failed"
            elif stuck[rotor]:
                self.failed[rotor] = f"{name} is stuck at {speed:.0f} rad/s"
            elif off[rotor]:
                # a warning keeps its first numbers
                due = expected[rotor]
                text = f"{name} turns at {speed:.0f} rad/s instead of {due:.0f}"
                self.warnings[name] = before.get(name, text)
