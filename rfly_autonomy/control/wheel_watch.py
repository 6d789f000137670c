# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over motors and brakes of the wheels, and over the power that they get.

Theory of operation. A tyre slips by the torque that the ground takes, 5 N m by some 4 % under a
wheel's load, and wheels with the same torque slip alike. A torque that the ground does not take
spins the wheel up or down. A wheel that slips forwards while the ground seems to take nothing, or
to push it, is driven without a command; one that slips backwards while the ground seems to take
something drags. On ice hardly any torque lets a wheel slip, the less the more it slides across, so
only a contradiction beyond that counts. A wheel that spins or slides by its own torque is no fault,
whatever the ground. One that slips as most do where it would be driven, or would drag, is sound
again after a while.

A vehicle whose motors all get no power coasts: rolling, air, slope and wind alone change its speed,
whatever the motors' command. What the model does not know of them, above all the wind, is the
disturbance: the command less the observed force. It is learned slowly, so that a loss of power is
no wind, and not at all while the vehicle seems to coast. Motors without power then show as a force
that is gone at once, though the command is not, as a command that grows without an
answer, or as a speed that slope or rolling alone change. On soft ground and in gusts the force
grows with the command, and no gust takes it away so swiftly.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.speed_controller import ForceObserver
from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import all_finite
from rfly_common.physics import GRAVITY

SLIPS = 0.025
"""Slip away from that of most wheels that is a fault."""

MORE_THAN_MOST = 0.7
"""The same as a share of the slip of most wheels: two of four at fault take half of theirs along.
"""

SLIPS_TIME = 0.5
"""Time for which it has to last, s."""

SOUND_SLIP = 0.0125
"""Slip away from that of most wheels up to which a wheel at fault is sound again."""

SOUND_TIME = 2.0
"""Time for which it has to be sound, s: torques of its own hide a fault meanwhile."""

LITTLE_SHARE = 0.1
"""Torque as a share of the largest one below which a wheel slips little by it."""

FAST_ENOUGH = 0.7
"""Speed above which the slip of a wheel is known well enough, m/s."""

UNSEEN_SLIDE = 0.5
"""Speed, m/s, with which a vehicle may slide across unnoticed, on ice of friction 0.06: a steered
wheel seems to slip by it.
"""

GRIPPY = 0.12
"""Share of its load that most wheels' ground takes, from which on it is no ice that lets one slide.

Rolling takes 0.02 of it. Ice of friction 0.12 that pulls with 0.1 holds with 0.06 across.
"""

GROUND_TIME = 0.1
"""Time over which slips and the torque that the ground takes are averaged, s.

These are some readings of encoders, whose noise is 1 % of slip.
"""

MOST_SLIP = 0.5
"""Slip that counts at most, more than one that an unnoticed slide feigns: spins are soon forgotten.
"""

ICE = 0.025
"""Share of its load that the ground takes at least from a wheel that slips: half of the friction of
wet ice, 0.05, as a tyre that spins pulls less than at its peak.
"""

TURN = 2.0 * math.pi
"""Whole turn of a wheel, rad."""

LONGEST_GAP = 0.5
"""Time between two readings of encoders above which the comparison begins anew, s."""

RATE_AGREES = 0.5
"""Difference of a wheel's rate and that of its angle up to which they agree, rad/s."""

TURNS = 2.0
"""Spin below which a wheel may be held by its brake, rad/s."""

LOADED_SHARE = 0.3
"""Share of its load at rest from which on a wheel is judged: less may be none."""

DOUBT = 3.0
"""Error of the estimated speed, in standard deviations, up to which it explains a slip."""

TOLD_PULL = 0.3
"""Acceleration, m/s², that the motors are told at least, in addition to that which rolling takes,
before it is clear that they give none.
"""

POWER_GAIN = 5.0
"""Gain of the observer of the motors' force, 1/s."""

DISTURBANCE_TIME = 1.0
"""Time constant with which the disturbance is learned, s."""

NO_PULL_SHARE = 0.2
"""Share of the force that they are told up to which the motors' force is none, either way."""

LEARNED_SHARE = 0.5
"""The same up to which the disturbance is not learned."""

STEADY = 0.1
"""Acceleration, m/s², up to which the speed is steady."""

GROWTH = 0.5
"""Rate of the command, 1/s, above which the disturbance is not learned either."""

IN_VAIN = 1.6
"""Growth of a command that has no answer."""

ANSWER_SHARE = 0.2
"""Growth of the force as a share of that of the command that is an answer."""

IN_VAIN_TIME = 0.5
"""Time that this takes at least, s."""

LOST_WITHIN = 0.7
"""Time within which a force that is lost falls, s: three times that of the observer."""

LOST_SHARE = 0.8
"""Fall of the force in this time, as a share of the force that the motors are told, by which it is
lost. Gusts of a wind of 14 m/s and beginning slopes take 0.7.
"""

STILL_TOLD = 0.85
"""Share of the earlier command that is told still."""

LOST_TIME = 0.2
"""Time for which it has to be lost, s: one that strikes something loses it for a moment."""

MOVES = 0.5
"""Speed above which the vehicle is sure to roll on, m/s."""

COASTING_TIME = 0.8
"""Time for which it has to be none, s."""

UNBRAKED_TIME = 0.4
"""The same of motors that are told to brake, s: no ground pushes a vehicle on."""


class WheelStates(NamedTuple):
    """Wheels of a vehicle that drives, each (wheels,)."""

    slip: Floats
    """Slips κ; positive drives."""

    along: Floats
    """Speeds of the hubs along the wheels, m/s."""

    across: Floats
    """The same across the wheels."""

    steering: Floats
    """Angles of the wheels, rad."""

    rate: Floats
    """Spins, rad/s."""

    shown: Bools
    """True for spins that the angles of the wheels show, too."""

    torque: Floats
    """Commanded torques of motors and brakes, N m."""

    load: Floats
    """Loads, N."""


class RateCheck:
    """Comparison of the rates of wheels with their angles: encoders may give rates with a bias."""

    def __init__(self, wheels: int) -> None:
        self._time = math.nan
        self._angle = np.full(wheels, math.nan)
        self._rate = np.full(wheels, math.nan)
        self._apart = np.zeros(wheels)
        """Rates of the angles beyond those shown, averaged, (wheels,), rad/s."""

    def agrees(self, angle: Floats, rate: Floats, time: float) -> Bools:
        """Return whether rates, rad/s, agree with angles, rad, at a time, s, all (wheels,).

        A rate may be that at its time, or the mean one since the last time.
        """
        dt = time - self._time
        self._time = time
        turned = angle - self._angle
        low = np.minimum(rate, self._rate) * dt
        high = np.maximum(rate, self._rate) * dt
        beyond = turned - np.clip(turned, low, high)
        beyond -= TURN * np.round(beyond / TURN)  # angles may be wrapped
        self._angle = angle
        self._rate = rate
        if not 0.0 < dt < LONGEST_GAP:
            self._apart = np.zeros(len(angle))
        elif all_finite(beyond):
            share = -math.expm1(-dt / GROUND_TIME)
            self._apart = self._apart + share * (beyond / dt - self._apart)
        return np.abs(self._apart) < RATE_AGREES


class WheelWatch:
    """Watch over the wheels: `faults` are texts by part, such as `drive_fl` and `brake_rr`."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._coasts_for = 0.0
        """Time without a force of the motors, s."""

        self._free_for = 0.0
        """The same while slope or rolling alone change the speed, s."""

        self._first_told = 0.0
        """Force that they were told when this time began, N."""

        self._first_force = 0.0
        """Their force then, N."""

        self._told = 0.0
        """Force that they are told, N, low-passed as the observer is."""

        self._pull = ForceObserver(params.effective_mass, POWER_GAIN)
        """Observer of their force, less the disturbance."""

        self._disturbance = 0.0
        """Force against the vehicle that the model does not know, N."""

        self._past: deque[tuple[float, float, float, float]] = deque()
        """Times, s, commands, forces and disturbances, N, of the last LOST_WITHIN seconds."""

        self._time = 0.0
        self._lost_for = 0.0
        """Time for which the force has been lost, s."""

        self.faults: dict[str, str] = {}
        self.reset()

    def reset(self, keep_battery: bool = False) -> None:
        """Forget what was measured; `keep_battery`: but not that the battery is dead."""
        dead = self.no_power if keep_battery else ""
        self.faults = {"battery": dead} if dead else {}
        self._direction = 1.0
        """1 forwards, -1 backwards."""

        self._disturbance = 0.0
        self.skip_slips()
        self.skip_power()

    @property
    def no_power(self) -> str:
        """Text about a battery that gives the wheels' motors no power; empty: it gives some."""
        return self.faults.get("battery", "")

    def skip_slips(self) -> None:
        """Forget the slips: while rotors carry an axle they show nothing."""
        wheels = len(self._params.wheels)
        self._pushes_for = np.zeros(wheels)
        """Times for which motors have pushed without a command, (wheels,), s."""

        self._drags_for = np.zeros(wheels)
        """The same of brakes that have dragged."""

        self._acting = np.zeros(wheels)
        """Torques of motors and brakes behind their commands, (wheels,), N m."""

        self._mean_torque = np.zeros(wheels)
        """The same, averaged."""

        self._mean_rate = np.full(wheels, math.nan)
        """Averaged spins, (wheels,), rad/s; NaN before the first."""

        self._mean_slip = np.full(wheels, math.nan)
        """Averaged slips up to MOST_SLIP, (wheels,); NaN before the first."""

        self._forget_sound()

    def _forget_sound(self) -> None:
        """Begin anew to look for wheels that are sound again."""
        wheels = len(self._params.wheels)
        self._unpushed_for = np.zeros(wheels)
        """Times for which wheels that a motor would drive have slipped as most, (wheels,), s."""

        self._undragged_for = np.zeros(wheels)
        """The same of wheels that a brake would hold."""

    def update(self, wheels: WheelStates, speed: float, doubt: float, dt: float) -> None:
        """Take in the wheels dt seconds later.

        `speed`: of the vehicle, m/s. `doubt`: standard deviation of its estimated velocity, m/s.
        """
        slip = self._averaged_slip(wheels, dt)
        middle = median(slip.tolist()) if all_finite(slip) else math.nan
        away = slip - middle
        along = np.maximum(np.abs(wheels.along), FAST_ENOUGH)
        fast = along > FAST_ENOUGH

        direction = math.copysign(1.0, speed)
        if direction != self._direction:
            self._direction = direction
            self._forget_sound()

        # what drives a wheel shows where the ground takes less than it does from one that slips
        # forwards, and what holds it where the ground takes more than from one that drags
        taken = self._taken_by_ground(wheels, dt)
        rolling, ice = self._least_taken(wheels)
        judged = fast & wheels.shown & (wheels.load > LOADED_SHARE * self._params.static_load)
        unsure = np.minimum(abs(middle), DOUBT * doubt / along)

        # most wheels slip against their torque only if the speed is wrong
        slips = np.full(len(slip), SLIPS)
        if middle * median(taken.tolist()) < 0.0:
            slips[:] = max(SLIPS, MORE_THAN_MOST * abs(middle))

        # on ice steered wheels, and with them the middle, seem to slip by a slide
        lever = self._params.static_load * self._params.rolling_radius
        if not median((np.abs(taken) / lever).tolist()) > GRIPPY:
            seems = UNSEEN_SLIDE * np.abs(np.sin(wheels.steering)) / along
            slips += np.maximum(seems, median(seems.tolist()))

        driven = judged & (taken < rolling + ice) & (away > slips) & (slip > unsure)
        dragged = judged & (taken > rolling - ice) & (away < -slips) & (slip < -unsure)

        # brakes hold a wheel, and motors turn it
        turns = np.abs(wheels.rate) > TURNS
        pushes = turns & np.where(wheels.rate > 0.0, driven, dragged)
        self._pushes_for = _lasting(self._pushes_for, pushes, dt)
        self._drags_for = _lasting(self._drags_for, (driven | dragged) & ~pushes, dt)

        # it would show if the wheel's own torque were little
        little = LITTLE_SHARE * self._params.max_drive_torque
        forwards = direction * away
        torque = direction * wheels.torque
        self._unpushed_for = _lasting(
            self._unpushed_for, forwards < SOUND_SLIP, dt, where=fast & (torque < little)
        )
        self._undragged_for = _lasting(
            self._undragged_for, forwards > -SOUND_SLIP, dt, where=fast & (torque > -little)
        )
        self._judge("drive", "pushes", self._pushes_for, self._unpushed_for)
        self._judge("brake", "drags", self._drags_for, self._undragged_for)

    def _averaged_slip(self, wheels: WheelStates, dt: float) -> Floats:
        """Return the wheels' slips as the torque that the ground takes is averaged, (wheels,)."""
        slip = np.clip(wheels.slip, -MOST_SLIP, MOST_SLIP)
        if not all_finite(self._mean_slip):
            self._mean_slip = slip
        self._mean_slip = self._mean_slip - math.expm1(-dt / GROUND_TIME) * (slip - self._mean_slip)
        return self._mean_slip

    def _taken_by_ground(self, wheels: WheelStates, dt: float) -> Floats:
        """Return the torque that the ground takes from each wheel, (wheels,), N m, averaged.

        It is what motors and brakes give by their commands beyond that which the wheels' spins take
        up.
        """
        p = self._params
        if not all_finite(self._mean_rate):
            self._mean_rate = wheels.rate
        self._acting = self._acting - math.expm1(-dt / p.drive_lag) * (wheels.torque - self._acting)
        share = -math.expm1(-dt / GROUND_TIME)
        self._mean_torque = self._mean_torque + share * (self._acting - self._mean_torque)
        self._mean_rate = self._mean_rate + share * (wheels.rate - self._mean_rate)
        spin_up = (wheels.rate - self._mean_rate) / GROUND_TIME
        return self._mean_torque - p.wheel_inertia * spin_up

    def _least_taken(self, wheels: WheelStates) -> tuple[Floats, Floats]:
        """Return what rolling takes, and what ice takes at least in addition, (wheels,), N m.

        A steered wheel of a vehicle that slides across may roll backwards. Ice takes it along the
        wheel's slip, which is the sum of those along and across the wheel.
        """
        p = self._params
        lever = wheels.load * p.rolling_radius
        aside = wheels.across / np.maximum(np.abs(wheels.along), p.low_speed)
        across = p.cornering_stiffness_per_rad / p.slip_stiffness * aside
        along = np.abs(wheels.slip) / np.maximum(np.hypot(wheels.slip, across), 1e-9)
        rolling = np.copysign(p.rolling_resistance, wheels.along) * lever
        return rolling, ICE * lever * along

    def _judge(self, part: str, does: str, wrong_for: Floats, sound_for: Floats) -> None:
        """Name the motors or brakes at fault, by the times, (wheels,), s, for which that shows."""
        wrong = wrong_for >= SLIPS_TIME - 1e-9
        sound = sound_for >= SOUND_TIME - 1e-9
        for wheel, name in enumerate(self._params.wheels):
            if wrong[wheel]:
                text = f"the {part} of wheel {name} {does} without a command"
                self.faults[f"{part}_{name}"] = text
            elif sound[wheel]:
                self.faults.pop(f"{part}_{name}", None)

    def watch_power(self, told: float, resistance: float, speed: float, dt: float) -> None:
        """Take in the commanded force of the motors and the resistance of the model, N.

        `speed`: of the vehicle, m/s. dt: since the last time, s. While something else brakes or
        drives the vehicle, call `skip_power` instead.
        """
        # a motor that pushes without a command has power, and drives a vehicle that should brake
        wheels = zip(self._params.wheels, self._pushes_for, strict=True)
        if any(lasts > 0.0 and f"drive_{name}" in self.faults for name, lasts in wheels):
            self.skip_power()
            return

        p = self._params
        self._told -= math.expm1(-POWER_GAIN * dt) * (told - self._told)
        self._pull.update(speed, -resistance, dt)

        # in the direction in which the motors are told to push
        direction = math.copysign(1.0, self._told)
        told_now = direction * told
        told = abs(self._told)
        force = direction * (self._pull.force + self._disturbance)

        # rolling and slope alone push where the motors are told to, or it runs away from them
        gained = direction * (self._pull.force - resistance) / p.effective_mass
        free = gained > STEADY and direction * resistance < 0.0
        brakes = self._told * speed < 0.0
        free |= gained < -STEADY and brakes

        # wind, unless the motors seem to do little
        grows = POWER_GAIN * (told_now - told) > GROWTH * told
        least = p.effective_mass * (p.rolling_resistance * GRAVITY + TOLD_PULL)
        if not (told > least and force < LEARNED_SHARE * told and (grows or free)):
            unknown = self._told - self._pull.force
            share = -math.expm1(-dt / DISTURBANCE_TIME)
            self._disturbance += share * (unknown - self._disturbance)

        if told > least and abs(force) < NO_PULL_SHARE * told and abs(speed) > MOVES:
            self._coasts_for += dt
            self._free_for = self._free_for + dt if free else 0.0
        else:
            self._coasts_for = 0.0
            self._free_for = 0.0
            self._first_told = told
            self._first_force = force

        # the command grows, and the force does not
        answer = force - self._first_force
        in_vain = told > IN_VAIN * self._first_told
        in_vain &= answer < ANSWER_SHARE * (told - self._first_told)
        in_vain &= self._coasts_for >= IN_VAIN_TIME - 1e-9
        due = UNBRAKED_TIME if brakes else COASTING_TIME
        in_vain |= self._is_lost(told, direction, least, speed, dt)
        if in_vain or self._free_for >= due - 1e-9:
            self.faults["battery"] = "the battery gives the wheels' motors no power"

    def _is_lost(
        self, told: float, direction: float, least: float, speed: float, dt: float
    ) -> bool:
        """Return whether the motors' force is gone, though a force in a direction is commanded.

        `least`: of the force, N, that shows anything. dt: since the last time, s.
        """
        self._time += dt
        while self._past and self._past[0][0] < self._time - LOST_WITHIN:
            self._past.popleft()
        pull = self._pull.force
        now = self._time, self._told, pull + self._disturbance, self._disturbance
        self._past.append(now)

        _, told_then, force_then, disturbance_then = self._past[0]
        force = direction * (pull + disturbance_then)
        lost = told > max(least, STILL_TOLD * direction * told_then) and abs(speed) > MOVES
        lost = lost and direction * force_then - force > LOST_SHARE * told
        lost = lost and abs(force) < NO_PULL_SHARE * told and not self._drags_for.any()
        self._lost_for = self._lost_for + dt if lost else 0.0
        return self._lost_for >= LOST_TIME - 1e-9

    def skip_power(self) -> None:
        """Begin to watch the power anew."""
        self._coasts_for = 0.0
        self._free_for = 0.0
        self._first_told = 0.0
        self._first_force = 0.0
        self._told = 0.0
        self._pull = ForceObserver(self._params.effective_mass, POWER_GAIN)
        self._past.clear()
        self._lost_for = 0.0


def _lasting(seconds: Floats, holds: Bools, dt: float, where: Bools | bool = True) -> Floats:
    """Return for how long conditions have held, s, dt seconds later; `where`: else they rest."""
    return np.where(where, np.where(holds, seconds + dt, 0.0), seconds)
