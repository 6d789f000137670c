# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over motors and brakes of the wheels, and over the power that they get.

Theory of operation. A tyre slips by its torque, 5 N m by some 4 % under a wheel's load, and wheels
with the same torque slip alike. A wheel that slips forwards while its torque is none, or brakes, is
driven without a command; one that slips backwards while its torque is none, or drives, drags. A
wheel that spins or slides by its own torque is no fault, whatever the ground. One that slips as
most do where it would be driven, or would drag, is sound again after a while.

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

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.speed_controller import ForceObserver
from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import all_finite
from rfly_common.physics import GRAVITY

SLIPS = 0.025
"""Slip away from that of most wheels that is a fault."""

SLIPS_TIME = 0.5
"""Time for which it has to last, s."""

SOUND_SLIP = 0.0125
"""Slip away from that of most wheels up to which a wheel at fault is sound again."""

SOUND_TIME = 2.0
"""Time for which it has to be sound, s: torques of its own hide a fault meanwhile."""

LITTLE_SHARE = 0.1
"""Torque as a share of the largest one below which a wheel slips little by it."""

FAST_ENOUGH = 0.7
"""Speed above which the slip is known well enough, m/s."""

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

        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        self.faults: dict[str, str] = {}
        wheels = len(self._params.wheels)
        self._driven_for = np.zeros(wheels)
        self._dragged_for = np.zeros(wheels)
        self._forwards = True
        self._forget_sound()
        self._disturbance = 0.0
        self.skip_power()

    def _forget_sound(self) -> None:
        """Begin anew to look for wheels that are sound again."""
        wheels = len(self._params.wheels)
        self._undriven_for = np.zeros(wheels)
        """Times for which wheels that a motor would drive have slipped as most, (wheels,), s."""

        self._undragged_for = np.zeros(wheels)
        """The same of wheels that a brake would hold."""

    def update(self, slip: Floats, torque: Floats, speed: float, dt: float) -> None:
        """Take in slips and commanded torques, N m, of wheels, (wheels,), dt seconds later.

        `speed`: of the vehicle, m/s.
        """
        middle = median(slip.tolist()) if all_finite(slip) else math.nan
        away = slip - middle
        little = LITTLE_SHARE * self._params.max_drive_torque
        fast = abs(speed) > FAST_ENOUGH

        forwards = speed > 0.0
        if forwards is not self._forwards:
            self._forwards = forwards
            self._forget_sound()

        # what drives a wheel shows without a torque forwards, and what holds it without one back
        shows_drive = fast & (torque < little)
        shows_drag = fast & (torque > -little)
        self._driven_for = _lasting(
            self._driven_for, shows_drive & (away > SLIPS) & (slip > 0.0), dt
        )
        self._dragged_for = _lasting(
            self._dragged_for, shows_drag & (away < -SLIPS) & (slip < 0.0), dt
        )
        self._undriven_for = _lasting(self._undriven_for, away < SOUND_SLIP, dt, where=shows_drive)
        self._undragged_for = _lasting(
            self._undragged_for, away > -SOUND_SLIP, dt, where=shows_drag
        )

        # motors push and brakes hold, whatever the direction
        driven = (self._driven_for, self._undriven_for)
        dragged = (self._dragged_for, self._undragged_for)
        pushed, held = (driven, dragged) if forwards else (dragged, driven)
        for wheel, name in enumerate(self._params.wheels):
            self._judge(wheel, f"drive_{name}", "pushes", pushed)
            self._judge(wheel, f"brake_{name}", "drags", held)

    def _judge(self, wheel: int, part: str, does: str, times: tuple[Floats, Floats]) -> None:
        """Name a wheel's part that is at fault; `times`: for which it and soundness have shown."""
        wrong_for, sound_for = times
        if wrong_for[wheel] >= SLIPS_TIME - 1e-9:
            kind, name = part.split("_", 1)
            self.faults[part] = f"the {kind} of wheel {name} {does} without a command"
        elif sound_for[wheel] >= SOUND_TIME - 1e-9:
            self.faults.pop(part, None)

    def watch_power(self, told: float, resistance: float, speed: float, dt: float) -> None:
        """Take in the commanded force of the motors and the resistance of the model, N.

        `speed`: of the vehicle, m/s. dt: since the last time, s. While something else brakes or
        drives the vehicle, call `skip_power` instead.
        """
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
        lost = lost and abs(force) < NO_PULL_SHARE * told and not self._dragged_for.any()
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
