"""A pilot who sees the truth and carries out a mission: drives to way-points, takes off, flies, lands, drives on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rfly_amphibious.chassis_control import HOLD_SPEED
from rfly_amphibious.model import AmphibiousModel, ModelState
from rfly_amphibious.modes import TAKEOFF_SLOPE, Mode, Situation
from rfly_amphibious.pilot import Floats, Order, Pilot
from rfly_amphibious.scenario_mission import DriveLeg, FlyLeg, Leg
from rfly_amphibious.way_points import DrivenWay, FlownWay

DRIVING_PERIOD, FLYING_PERIOD = 0.01, 0.004
"""s between commands"""


class MissionPilot(Pilot):
    """Carries out legs. `done` once all are, `problem` where they can't be, `told` what happened."""

    def __init__(self, model: AmphibiousModel, legs: Sequence[Leg]) -> None:
        super().__init__(model, [], Mode.DRIVE, DRIVING_PERIOD)
        self.done = not legs
        self.problem = ""
        self.told: list[tuple[float, str]] = []
        self.leg = 0
        """index of the present one"""
        self._legs = tuple(legs)
        self._driven: DrivenWay | None = None
        self._flown: FlownWay | None = None

    def _choose(self, state: ModelState, rotation: Floats, now: Situation) -> None:
        mode = self.logic.mode
        self.period = DRIVING_PERIOD if mode is Mode.DRIVE else FLYING_PERIOD
        self._order = Order(state.time)
        if self.leg == len(self._legs) or mode is Mode.ABORT:
            return
        leg = self._legs[self.leg]
        if isinstance(leg, DriveLeg):
            self._drive(leg, state, rotation, now)
        elif mode is Mode.DRIVE and self._flown is not None:  # it has landed
            self._next_leg()
        elif mode is Mode.DRIVE:
            self._take_off(now)
        elif mode is Mode.FLIGHT:
            self._fly_on(leg, state)
        elif mode is Mode.LAND:
            self._order = Order(state.time, yaw=self._heading_after(leg))

    def _next_leg(self) -> None:
        self.leg += 1
        self._driven = self._flown = None
        self.done = self.leg == len(self._legs)

    def _drive(self, leg: DriveLeg, state: ModelState, rotation: Floats, now: Situation) -> None:
        place = state.position[:2]
        if self._driven is None:
            self._driven = DrivenWay(place, leg.points, leg.speeds, self.model.params)
        speed, steering = self._driven.order(
            place, math.atan2(rotation[1, 0], rotation[0, 0]), float(rotation[:, 0] @ state.velocity)
        )
        self._order = Order(state.time, speed=speed, steering=steering)
        if self._driven.stopping and now.speed < HOLD_SPEED:
            self.told.append((state.time, f"stands {self._driven.missed_by(place):.2f} m from the last way-point"))
            self._next_leg()

    def _take_off(self, now: Situation) -> None:
        if now.speed >= HOLD_SPEED:
            return
        if self._failed:
            numbers = ", ".join(str(rotor + 1) for rotor in sorted(self._failed))
            self.problem = f"no take-off: rotor {numbers} failed"
        elif now.slope >= TAKEOFF_SLOPE:
            self.problem = (
                f"no take-off: the slope is {math.degrees(now.slope):.1f}°, "
                f"expected below {math.degrees(TAKEOFF_SLOPE):g}°"
            )
        else:
            self._wanted_mode = Mode.TAKEOFF

    def _fly_on(self, leg: FlyLeg, state: ModelState) -> None:
        if self._flown is None:
            height = self.model.params.origin_height
            points = [np.array((x, y, z + height)) for x, y, z in leg.points]
            # straight up from where it really stands
            points[0][:2] = state.position[:2]
            climb = max(0.0, float(state.velocity[2]))
            self._flown = FlownWay(np.array(state.position), climb, points, leg.speeds)
        target, velocity = self._flown.advance(state.position, self.period)
        x, y, z = target.tolist()
        ahead_x, ahead_y, ahead_z = velocity.tolist()
        self._order = Order(
            state.time, target=(x, y, z), velocity=(ahead_x, ahead_y, ahead_z), yaw=self._flown.course()
        )
        if self._flown.arrived(state.position, state.velocity):
            if leg.lands:
                self._wanted_mode = Mode.LAND
            else:
                self.done = True

    def _heading_after(self, leg: FlyLeg) -> float | None:
        """To the first way-point that is driven to after the landing."""
        following = self._legs[self.leg + 1 : self.leg + 2]
        if not following or not isinstance(following[0], DriveLeg):
            return None
        (x, y), (from_x, from_y, _) = following[0].points[0], leg.points[-1]
        return math.atan2(y - from_y, x - from_x)
