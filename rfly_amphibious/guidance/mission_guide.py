"""Mission guidance: setpoints and mode requests from an estimate, the current mode and the legs of
a mission.

The same for the truth pilot and for nodes that see sensors only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.control.commands import Setpoint
from rfly_amphibious.control.modes import TAKEOFF_SLOPE, Mode
from rfly_amphibious.control.path_following import DrivePathFollower, FlightPathFollower
from rfly_amphibious.control.speed_controller import HOLD_SPEED
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.guidance.legs import DriveLeg, FlyLeg, Leg
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.frames import rotation_matrix
from rfly_terrain.height_map.height_map import HeightMap

Floats = NDArray[np.float64]

SLOW_SPEED = 0.15
SLOW_TIME = 1.0
"""m/s, s: an estimate of the speed is never quite 0, so what has been this slow for so long stands
too
"""
HOVER_TIME = 8.0
HOVER_AWAY = 2.0
HOVER_SPEED = 1.0
"""s, m, m/s: who hovers so long so near to the end of a flight is there, though gusts or noise
leave it no rest
"""
LOWEST_HOVER = 1.0
"""m above where it is, for a vehicle that is told to stop while it takes off"""
ASKING_TIME = 10.0
"""s, after which a mode that does not come is a problem"""
ASK_AGAIN = 1.0
"""s, after which a mode that does not come is to be asked for again"""
WORDS = {Mode.DRIVE: "arm", Mode.TAKEOFF: "takeoff", Mode.LAND: "land"}
"""what the requests of setpoints are called in cmd/mode"""
LONGEST_STEP = 0.1
"""s between two estimates, beyond which a flight's target waits"""


class MissionGuide:
    """Carries out legs, one `step` for each estimate.

    Heights of flights count from the ground on which the vehicle took off, as the estimate sees it:
    an estimate that is too high or too low by metres flies no nearer to the ground for it. Without
    a terrain the ground is level.
    """

    def __init__(
        self, legs: Sequence[Leg], params: VehicleParameters, terrain: HeightMap | None = None
    ) -> None:
        self.params = params
        self.terrain = terrain
        self.log: list[tuple[float, str]] = []
        """what happened, and when"""
        self.no_takeoff = ""
        """why it must not take off, where something speaks against it"""
        self._lift = 0.0
        """m, by which the estimate lies above what the terrain says, since the last take-off"""
        self.follow(legs)

    def follow(self, legs: Sequence[Leg]) -> None:
        """Carry out these legs from now on, from wherever the vehicle is."""
        self.legs = tuple(legs)
        self.leg = 0
        """index of the present one"""
        self.done = not self.legs
        self.problem = ""
        """why it does not go on, where it doesn't"""
        self._drive_path: DrivePathFollower | None = None
        self._flight_path: FlightPathFollower | None = None
        self._lands = self._aborted = False
        self._time = math.nan
        self._slow_since = math.inf
        self._hovers_since = math.inf
        self._asked: Mode | None = None
        self._asked_at = math.inf

    def hold(self, now: Estimate, mode: Mode) -> None:
        """Stop at once: hover here, or stand."""
        x, y, z = now.position.tolist()
        z += (
            (LOWEST_HOVER if mode is Mode.TAKEOFF else 0.0) - self.params.origin_height - self._lift
        )
        hovers = mode in (Mode.TAKEOFF, Mode.FLIGHT)
        self.follow([FlyLeg(((x, y, z),), (1.0,), lands=False)] if hovers else [])

    def step(self, now: Estimate, mode: Mode) -> Setpoint:
        """The setpoint from now on: speed and steering where it drives, a target that moves on
        where it flies.

        Its `mode` is what is to be requested, until the vehicle is in that mode.
        """
        dt = 0.0 if math.isnan(self._time) else min(max(now.time - self._time, 0.0), LONGEST_STEP)
        self._time = now.time
        speed = float(np.linalg.norm(now.velocity))
        self._slow_since = min(self._slow_since, now.time) if speed < SLOW_SPEED else math.inf
        stands = speed < HOLD_SPEED or now.time - self._slow_since >= SLOW_TIME
        setpoint = self._setpoint(now, mode, dt, stands)
        if setpoint.mode is not self._asked:
            self._asked = setpoint.mode
            self._asked_at = now.time
        if self._asked is not None and now.time - self._asked_at > ASKING_TIME:
            self.problem = f"asked for {self._asked.value} in vain, it stays in {mode.value}"
        return setpoint

    def _setpoint(self, now: Estimate, mode: Mode, dt: float, stands: bool) -> Setpoint:
        if self.leg == len(self.legs):
            return Setpoint(now.time)
        if mode is Mode.ABORT:
            self._aborted = True
        elif self._aborted:
            self.problem = "the flight was aborted"
        elif mode is Mode.DISARMED:
            return Setpoint(now.time, Mode.DRIVE)
        else:
            self.problem = ""
            leg = self.legs[self.leg]
            return (
                self._drive(leg, now, mode, stands)
                if isinstance(leg, DriveLeg)
                else self._fly(leg, now, mode, dt, stands)
            )
        return Setpoint(now.time)

    def _next_leg(self) -> None:
        self.leg += 1
        self._drive_path = self._flight_path = None
        self._lands = False
        self._hovers_since = math.inf
        self.done = self.leg == len(self.legs)

    def _drive(self, leg: DriveLeg, now: Estimate, mode: Mode, stands: bool) -> Setpoint:
        if mode is not Mode.DRIVE:  # legs that were changed in the air
            return Setpoint(now.time, Mode.LAND if mode in (Mode.TAKEOFF, Mode.FLIGHT) else None)
        rotation = rotation_matrix(now.orientation)
        place = now.position[:2]
        if self._drive_path is None:
            self._drive_path = DrivePathFollower(
                place, leg.points, leg.speeds, self.params, leg.backward
            )
        speed, steering = self._drive_path.command(
            place, math.atan2(rotation[1, 0], rotation[0, 0]), float(rotation[:, 0] @ now.velocity)
        )
        if self._drive_path.stopping and stands:
            self.log.append(
                (
                    now.time,
                    f"stands {self._drive_path.missed_by(place):.2f} m from the last way-point",
                )
            )
            self._next_leg()
        return Setpoint(now.time, speed=speed, steering=steering)

    def _fly(self, leg: FlyLeg, now: Estimate, mode: Mode, dt: float, stands: bool) -> Setpoint:
        if mode is Mode.FLIGHT:
            return self._fly_on(leg, now, dt)
        if mode is Mode.LAND:
            x, y, z = now.position.tolist()
            return Setpoint(now.time, target=(x, y, z), yaw=self._heading_after(leg))
        if mode is not Mode.DRIVE:
            return Setpoint(now.time)
        if self._flight_path is None:
            return self._take_off(now, stands)
        if self._lands:
            self._next_leg()
        else:
            self.problem = "it has landed on the way, without being told to"
        return Setpoint(now.time)

    def _take_off(self, now: Estimate, stands: bool) -> Setpoint:
        if not stands:
            return Setpoint(now.time)
        slope = math.acos(max(-1.0, min(1.0, float(rotation_matrix(now.orientation)[2, 2]))))
        if self.no_takeoff:
            self.problem = f"no take-off: {self.no_takeoff}"
        elif slope >= TAKEOFF_SLOPE:
            self.problem = f"no take-off: the slope is {math.degrees(slope):.1f}°, expected below {math.degrees(TAKEOFF_SLOPE):g}°"
        else:
            x, y, z = now.position.tolist()
            ground = 0.0 if self.terrain is None else float(self.terrain.altitude(x, y))
            self._lift = z - ground - self.params.origin_height
            return Setpoint(now.time, Mode.TAKEOFF)
        return Setpoint(now.time)

    def _fly_on(self, leg: FlyLeg, now: Estimate, dt: float) -> Setpoint:
        if self._flight_path is None:
            height = self.params.origin_height + self._lift
            points = [np.array((x, y, z + height)) for x, y, z in leg.points]
            # straight up from where it really stands
            points[0][:2] = now.position[:2]
            climb = max(0.0, float(now.velocity[2]))
            self._flight_path = FlightPathFollower(
                np.array(now.position), climb, points, leg.speeds
            )
        target, velocity = self._flight_path.advance(now.position, dt)
        x, y, z = target.tolist()
        ahead_x, ahead_y, ahead_z = velocity.tolist()
        wanted = None
        if self._lands or self._arrived(self._flight_path, now):
            if leg.lands:
                wanted = Mode.LAND
                self._lands = True
            else:
                self.done = True
        return Setpoint(
            now.time,
            wanted,
            target=(x, y, z),
            velocity=(ahead_x, ahead_y, ahead_z),
            yaw=self._flight_path.course(),
        )

    def _arrived(self, path: FlightPathFollower, now: Estimate) -> bool:
        if path.arrived(now.position, now.velocity):
            return True
        near = (
            path.missed_by(now.position) < HOVER_AWAY
            and float(np.linalg.norm(now.velocity)) < HOVER_SPEED
        )
        self._hovers_since = min(self._hovers_since, now.time) if path.at_end and near else math.inf
        return now.time - self._hovers_since >= HOVER_TIME

    def _heading_after(self, leg: FlyLeg) -> float | None:
        """To the first way-point that is driven to after the landing."""
        following = self.legs[self.leg + 1 : self.leg + 2]
        if not following or not isinstance(following[0], DriveLeg):
            return None
        (x, y), (from_x, from_y, _) = following[0].points[0], leg.points[-1]
        return math.atan2(y - from_y, x - from_x)
