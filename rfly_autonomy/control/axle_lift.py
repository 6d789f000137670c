# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rotors of a vehicle that drives with one axle in the air. docs/model, section 10.9.

Theory of operation. `AxleLift` follows the orders of a guide or a driver: it lifts an axle, holds
it, and lowers it. Without orders it lowers the axle by itself; once that stands, the rotors stop.
"""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import EstimatedMotion
from rfly_common.arrays import Bools, Floats

FRONT_UP_PITCH = math.radians(16.0)
"""Largest pitch with the front axle lifted, rad, positive nose up."""

LEAST_FRONT_UP = math.radians(8.0)
"""Least one, to which it is lifted at once, rad."""

SEEK_RATE = math.radians(3.0)
"""Rate at which it is lifted further while the vehicle does not move, rad/s."""

FOLLOWS = math.radians(1.5)
"""Deviation up to which the body has followed the wanted pitch, rad."""

MOVES = 0.05
"""Speed above which it moves, m/s."""

SPEED_TIME = 0.4
"""Time over which this speed is averaged, s: a wheel that strikes a step bounces back."""

REAR_UP_PITCH = math.radians(-6.0)
"""Pitch with the rear axle lifted, rad."""

PITCH_FOR_SPEED = 0.2
"""Pitch, rad, for each m/s above ASSISTED_SPEED with the rear axle lifted.

It keeps the rotors off the foot of a ramp.
"""

FRONT_UP_THRUST = 0.3
"""Thrust with the front axle lifted, as a share of the weight; more where its moment takes more.

It takes friction away, and pushes the vehicle back.
"""

REAR_UP_THRUST = 0.84
"""Thrust with the rear axle lifted, as a share of the weight."""

THRUST_RATE = 0.8
"""Rate at which the thrust rises, weights/s."""

PITCH_RATE = math.radians(15.0)
"""Rate at which the pitch turns to the wanted one, rad/s."""

INTEGRAL_GAIN = 1.5
"""Gain of the integral of the pitch error, 1/s: the ground turns the body, too."""

MOST_INTEGRAL = math.radians(40.0)
"""Largest integral of the pitch error, rad."""

LOWERED = math.radians(4.0)
"""Deviation of the pitch from a turning target at which the lowered axle stands, rad."""

RELEASE_TIME = 0.5
"""Time with which the integral fades while an axle is lowered, s."""

LONGEST_LOWERING = 4.0
"""Time of lowering an axle, at most, s."""

YAW_GAIN = 6.0
"""Gain of the yaw rate's error of a vehicle whose steered wheels hang, 1/s."""

MOST_TURNING = 0.1
"""Largest torque of a motor that turns it so, as a share of its largest one."""

LIFTED_SPEED = 0.3
"""Speed with the front axle lifted, m/s."""

ASSISTED_SPEED = 0.6
"""Speed at which a vehicle with thrust assistance rolls, at most, m/s."""

CLIMBING_SPEED = 1.0
"""Speed with the rear axle lifted, m/s."""

FASTEST_LIFT = 1.5
"""Speed above which no axle is lifted, m/s."""


class Assist(enum.Enum):
    """Order to the rotors of a vehicle that drives; its value is a word of cmd/assist."""

    LIFT_FRONT = "lift_front"
    LIFT_REAR = "lift_rear"
    LOWER_FRONT = "lower_front"
    LOWER_REAR = "lower_rear"

    @property
    def is_front(self) -> bool:
        """True if the wheels of the front axle hang."""
        return self in (Assist.LIFT_FRONT, Assist.LOWER_FRONT)

    @property
    def lifts(self) -> bool:
        """True if the axle is to be in the air."""
        return self in (Assist.LIFT_FRONT, Assist.LIFT_REAR)

    @property
    def lowered(self) -> Assist:
        """Order to lower the same axle."""
        return Assist.LOWER_FRONT if self.is_front else Assist.LOWER_REAR

    @property
    def max_speed(self) -> float:
        """Largest speed while it holds, m/s."""
        rear_holds = self is Assist.LIFT_REAR
        return CLIMBING_SPEED if rear_holds else LIFTED_SPEED

    def grade(self, pitch: float) -> float:
        """Return the slope, rad, on which the weight would pull as the thrust does at a pitch."""
        share = FRONT_UP_THRUST if self.is_front else REAR_UP_THRUST
        return math.asin(share * math.sin(pitch))

    def shares(self, shares: Floats, grip: Floats | float, params: VehicleParameters) -> Floats:
        """Return the shares of their torques that motors and brakes keep, (wheels,).

        The wheels of the other end take over those of all that hang. `shares`: by traction control;
        `grip`: by the loads.
        """
        stands = self._stands(params)
        return np.where(stands, shares * grip * (len(stands) / int(stands.sum())), 0.0)

    def turning(self, wanted: float, yaw_rate: float, params: VehicleParameters) -> Floats:
        """Return the torques of motors, (wheels,), N m, that turn a vehicle whose steering hangs.

        `wanted`, `yaw_rate`: rad/s.
        """
        turns = self._stands(params) & (params.is_driven > 0.0) & (params.steering_sign == 0.0)
        moment = YAW_GAIN * params.total_inertia[2, 2] * (wanted - yaw_rate)
        lever = -params.hub_position[:, 1] * max(int(turns.sum()), 1)
        most = MOST_TURNING * params.max_drive_torque
        torque = np.clip(moment * params.rolling_radius / lever, -most, most)
        return np.where(turns, torque, 0.0)

    def _stands(self, params: VehicleParameters) -> Bools:
        """Return which wheels stand, (wheels,): those of the other end."""
        x = params.hub_position[:, 0]
        return np.isclose(x, x.min() if self.is_front else x.max())


ASSIST_WORDS: dict[str, Assist | None] = {"off": None, **{each.value: each for each in Assist}}
"""Words of cmd/assist."""


class AssistWords:
    """Words of cmd/assist that a guide or a driver publishes."""

    def __init__(self) -> None:
        self._assists = False

    def word(self, assist: Assist | None) -> str:
        """Return the word for an order: "off" once after others, "" for nothing to publish."""
        before = self._assists
        self._assists = assist is not None
        if assist is not None:
            return assist.value
        return "off" if before else ""


class RotorHelp(NamedTuple):
    """What the rotors do while an axle hangs."""

    pitch: float
    """Pitch to turn to, rad, positive nose up."""

    thrust: float
    """Thrust, as a share of the weight."""


def pitch_of(rotation: Floats) -> float:
    """Return the pitch of an attitude, (3, 3), body -> world, rad, positive nose up."""
    return math.asin(min(max(float(rotation[2, 0]), -1.0), 1.0))


class AxleLift:
    """Pitch and thrust of a vehicle that lifts an axle, holds it in the air, and lowers it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Return to a vehicle on all wheels."""
        self._order: Assist | None = None
        """Present order; None: all wheels stand."""

        self._pitch = 0.0
        """Pitch that is wanted now, rad."""

        self._thrust = 0.0
        self._integral = 0.0
        self._speed = 0.0
        """Averaged speed with the front axle lifted, m/s."""

        self._lowers_for = 0.0
        """Time for which the axle has been lowered, s."""

    @property
    def stands(self) -> bool:
        """True if no axle is lifted, or is still in the air."""
        return self._order is None

    @property
    def text(self) -> str:
        """Present order, as a word of cmd/assist."""
        return "off" if self._order is None else self._order.value

    def update(self, order: Assist | None, now: EstimatedMotion, dt: float) -> RotorHelp | None:
        """Return what the rotors do, dt seconds after the last time; None: they stand.

        A vehicle with a command to lower an axle, or without one, lowers the one in the air. So it
        does before it lifts the other one: nose up, the thrust of that would push it back.
        """
        pitch = pitch_of(now.rotation)
        ahead = float(now.rotation[:, 0] @ now.velocity)
        present = self._order
        if present is None:
            if order is None or not order.lifts or ahead > FASTEST_LIFT:
                return None
        elif order is None or not order.lifts or order.is_front is not present.is_front:
            order = present.lowered
        if order is not present:
            self._begin(order, pitch)

        if order.lifts:
            self._hold(ahead, pitch, dt)
        elif self._lower(pitch, dt):
            self.reset()
            return None
        return RotorHelp(self._pitch + self._integral, self._thrust)

    def _begin(self, order: Assist, pitch: float) -> None:
        """Begin an order at the present pitch, rad."""
        self._order = order
        self._pitch = pitch
        self._lowers_for = 0.0
        self._speed = 0.0

    def _hold(self, speed: float, pitch: float, dt: float) -> None:
        """Raise the thrust, and turn to the pitch of the lifted axle at a speed, m/s."""
        rate = PITCH_RATE
        if self._order is Assist.LIFT_FRONT:
            goal, rate = self._front_up(speed, pitch, dt)
            most = FRONT_UP_THRUST
            leaves_ground = pitch < LEAST_FRONT_UP - FOLLOWS
        else:
            goal = REAR_UP_PITCH + PITCH_FOR_SPEED * max(speed - ASSISTED_SPEED, 0.0)
            goal = min(goal, 0.0)
            most = REAR_UP_THRUST
            leaves_ground = False

        self._thrust = min(self._thrust + THRUST_RATE * dt, most)
        turn = rate * dt
        self._pitch += min(max(goal - self._pitch, -turn), turn)
        change = PITCH_RATE if leaves_ground else INTEGRAL_GAIN * (self._pitch - pitch)
        integral = self._integral + change * dt
        self._integral = min(max(integral, -MOST_INTEGRAL), MOST_INTEGRAL)

    def _front_up(self, speed: float, pitch: float, dt: float) -> tuple[float, float]:
        """Return the pitch to turn to with the front axle lifted, rad, and the rate, rad/s.

        Each degree costs friction. So the pitch rises slowly while something stops the vehicle, and
        falls while it slides back.
        """
        self._speed -= math.expm1(-dt / SPEED_TIME) * (speed - self._speed)
        if self._pitch < LEAST_FRONT_UP or self._speed < -MOVES:
            return LEAST_FRONT_UP, PITCH_RATE
        if self._speed > MOVES or pitch < self._pitch - FOLLOWS:
            return self._pitch, PITCH_RATE
        return FRONT_UP_PITCH, SEEK_RATE

    def _lower(self, pitch: float, dt: float) -> bool:
        """Turn the pitch back; return whether the axle stands."""
        direction = 1.0 if self._order is Assist.LOWER_REAR else -1.0
        self._pitch += direction * PITCH_RATE * dt
        self._integral *= math.exp(-dt / RELEASE_TIME)
        self._lowers_for += dt
        return direction * (self._pitch - pitch) > LOWERED or self._lowers_for > LONGEST_LOWERING
