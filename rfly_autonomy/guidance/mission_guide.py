# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission guidance: setpoints and mode requests along the legs of a mission.

The truth pilot and the nodes that only see sensors use the same guide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.drive_laws import HOLD_SPEED
from rfly_autonomy.control.modes import TAKEOFF_SLOPE
from rfly_autonomy.control.path_following import DrivePathFollower, FlightPathFollower
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.control.stuck import StuckLimits
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.trust import CAREFUL_SPEED, EstimateTrust, Trust, TrustLimits
from rfly_autonomy.guidance.detour_guide import MOST_DETOURS, DetourGuide
from rfly_autonomy.guidance.gauge_watch import GaugeWatch, charge_of_flight
from rfly_autonomy.guidance.rolling_guide import RollingGuide
from rfly_autonomy.guidance.route import Route, RoutePart
from rfly_autonomy.guidance.thrust_assist import AssistGuide
from rfly_common.frames import rotation_matrix
from rfly_missions.mission.legs import DriveLeg, FlyLeg, Leg
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import Solids

SLOW_SPEED = 0.15
"""Speed below which a vehicle may stand, m/s: an estimated speed is never quite 0."""

SLOW_TIME = 1.0
"""Time below SLOW_SPEED after which a vehicle counts as standing, s."""

HOVER_TIME = 8.0
"""Time of hovering near the end of a flight after which the vehicle has arrived, s.

It arrives even if gusts or noise keep it moving.
"""

HOVER_AWAY = 2.0
"""Largest distance of this hovering from the end, m."""

HOVER_SPEED = 1.0
"""Largest speed of this hovering, m/s."""

LOWEST_HOVER = 1.0
"""Height above its place at which a vehicle hovers that has to stop during its take-off, m."""

ASKING_TIME = 10.0
"""Time after which a requested mode that does not come is a problem, s."""

GIVE_UP_TIME = 10.0
"""Time with an estimate that is too uncertain after which the mission does not go on, s."""

_CLIMBS_OR_FLIES = (Mode.TAKEOFF, Mode.FLIGHT, Mode.ROLLING_TAKEOFF)
"""Modes of a flight that does not land yet."""

_TRUST_TEXTS = {
    Trust.GOOD: "it goes on as usual",
    Trust.WARN: "a warning",
    Trust.SLOW: "it goes on slowly",
    Trust.STOP: "it stops, or lands",
    Trust.LOST: "it aborts",
}
"""What follows from each level of trust."""

ABOVE_GROUND = 5.0
"""Height above all ground on the way of a flight that returns home, m."""

LONGEST_STEP = 0.1
"""Time between two estimates beyond which a flight's target waits, s."""


class MissionGuide:
    """Guide along the legs of a mission, one `step` for each estimate.

    Heights of flights count from the ground of the take-off, as the estimate sees it: an estimate
    that is too high or too low by metres does not bring the flight nearer to the ground. Without a
    terrain the ground is level. It rolls along no track on which `solids` are. A vehicle that is
    stuck on the ground backs off and goes round the place, up to `detours` times; then it gives up,
    and stands until other legs are given. Rotors help on legs that allow it.
    """

    def __init__(
        self,
        legs: Sequence[Leg],
        params: VehicleParameters,
        terrain: HeightMap | None = None,
        trust_limits: TrustLimits | None = None,
        stuck_limits: StuckLimits | None = None,
        detours: int = MOST_DETOURS,
        solids: Solids | None = None,
    ) -> None:
        self.params = params
        self.route = Route(params, terrain, solids)
        """Legs, map and log, which the parts share."""

        self._rolling = RollingGuide(self.route)
        self._assist = AssistGuide(self.route)
        self._detour = DetourGuide(self.route, stuck_limits, detours)
        self._parts: tuple[RoutePart, ...] = (self._rolling, self._assist, self._detour)
        self.trust = EstimateTrust(trust_limits)
        """Trust in the estimate."""

        self.no_takeoff = ""
        """Reason not to take off, if there is one."""

        self.was_disarmed = False
        """True if somebody has disarmed the vehicle on its way, and nobody has armed it since."""

        self._come_down = ""
        """Reason to land wherever the vehicle is, if there is one."""

        self._charge = 1.0
        """Last known charge of the battery, 0 … 1."""

        self._gauge = GaugeWatch(params)
        self._flies = False

        self._home: tuple[float, float] | None = None
        """Place of the last take-off, m."""

        self._returns = ""
        """Reason to return home, if there is one."""

        self._lift = 0.0
        """Height of the estimate above the terrain's, since the last take-off, m."""

        self._height = 0.0
        """Height of the wheels above the ground, m; 0 on it."""

        self.follow(legs)

    @property
    def log(self) -> list[tuple[float, str]]:
        """Events with their times, s."""
        return self.route.log

    def watch_battery(self, charge: float) -> None:
        """Take note of the battery's charge, 0 … 1; NaN: unknown, the last one counts on.

        Once the way down takes it, each flight ends by a landing in place, and none begins. While
        the way home takes less, a flight returns home that cannot reach its own landing.
        """
        self._gauge.update(self._time, charge, self._flies)
        if math.isnan(charge):
            return
        self._charge = charge
        if charge <= charge_of_flight(self.params, 0.0, self._height) and not self._come_down:
            self.route.note(self._time, f"lands where it is: {self._battery}")
            self._come_down = self._battery
            self.no_takeoff = self.no_takeoff or self._battery

    @property
    def gauge_fault(self) -> str:
        """What is wrong with the battery's gauge; empty: nothing."""
        return self._gauge.fault.value

    @property
    def _battery(self) -> str:
        return f"the battery is at {100.0 * self._charge:.0f} %"

    def follow(self, legs: Sequence[Leg], arms: bool = True) -> None:
        """Carry out these legs from now on, from wherever the vehicle is.

        `arms`: whether it arms a vehicle that was disarmed on its way.
        """
        self.route.legs = tuple(legs)
        self.route.index = 0
        self.done = not legs
        self.problem = ""
        """Reason why the mission does not go on, if it does not."""

        self._drive_path: DrivePathFollower | None = None
        self._flight_path: FlightPathFollower | None = None
        for part in self._parts:
            part.begin()

        self._lands = False
        self._aborted = False
        self._returns = ""
        self._time = math.nan
        self._slow_since = math.inf
        self._hovers_since = math.inf
        self._was_armed = self.was_disarmed and not arms
        self._requested: Mode | None = None
        self._requested_at = math.inf
        self._stopped_at = math.nan

    def hold(self, now: Estimate, mode: Mode) -> None:
        """Stop immediately: hover at the present place, or stand."""
        x, y, z = now.position.tolist()
        lift = LOWEST_HOVER if mode is Mode.TAKEOFF else 0.0
        z += lift - self.params.origin_height - self._lift
        hover = FlyLeg(((x, y, z),), (1.0,), lands=False)
        self.follow([hover] if mode in (Mode.TAKEOFF, Mode.FLIGHT) else [])

    def step(self, now: Estimate, mode: Mode) -> Setpoint:
        """Return the setpoint from now on.

        It holds speed and steering on the ground, and a moving target in the air. Its `mode`, if
        there is one, has to be requested until the vehicle is in it.
        """
        dt = 0.0
        if not math.isnan(self._time):
            dt = min(max(now.time - self._time, 0.0), LONGEST_STEP)
        self._time = now.time
        self.was_disarmed = self.was_disarmed and mode is Mode.DISARMED

        self._watch_trust(now)
        self._flies = mode in _CLIMBS_OR_FLIES
        self._height = self._height_of(now) if self._flies else 0.0

        # standing, even if an estimated speed is never quite 0
        speed = float(np.linalg.norm(now.velocity))
        self._slow_since = min(self._slow_since, now.time) if speed < SLOW_SPEED else math.inf
        stands = speed < HOLD_SPEED or now.time - self._slow_since >= SLOW_TIME

        # a mode that is requested, and for how long
        setpoint = self._setpoint(now, mode, dt, stands)
        self._was_armed = self._was_armed or mode is not Mode.DISARMED
        if setpoint.mode is not self._requested:
            self._requested = setpoint.mode
            self._requested_at = now.time
        if self._requested is not None and now.time - self._requested_at > ASKING_TIME:
            self.problem = f"asked for {self._requested.value} in vain, it stays in {mode.value}"
        return setpoint

    def _watch_trust(self, now: Estimate) -> None:
        """Log how uncertain the estimate is when the level changes."""
        before = self.trust.level
        level = self.trust.update(now)
        if level is not before:
            what = _TRUST_TEXTS[level]
            self.route.note(now.time, f"the estimate is {self.trust.text}: {what}")

        if level < Trust.STOP:
            self._stopped_at = math.nan
        elif math.isnan(self._stopped_at):
            self._stopped_at = now.time

    def _setpoint(self, now: Estimate, mode: Mode, dt: float, stands: bool) -> Setpoint:
        """Return the setpoint of the present leg."""
        if mode in (Mode.ROLLING_TAKEOFF, Mode.ROLLING_LAND) and not self._rolling.is_planned:
            return Setpoint(now.time, Mode.LAND)  # told to do something else meanwhile
        if self.route.at_end:
            return Setpoint(now.time)
        if mode is Mode.ABORT:
            self._aborted = True
        elif self._aborted:
            self.problem = "the flight was aborted"
        elif mode is Mode.DISARMED and self._was_armed:
            # somebody else's wish: guidance does not undo it
            if self._lands:
                self._next_leg()
            else:
                self.was_disarmed = True
                self.problem = "it was disarmed: it goes on once it is armed"
        elif mode is Mode.DISARMED:
            return Setpoint(now.time, Mode.DRIVE)
        elif self.trust.level >= Trust.STOP:
            # on the ground the vehicle stands, in the air it lands
            if now.time - self._stopped_at >= GIVE_UP_TIME and mode is Mode.DRIVE:
                self.problem = f"the estimate is {self.trust.text}"
        else:
            self.problem = ""
            leg = self.route.leg
            if isinstance(leg, DriveLeg):
                return self._drive(leg, now, mode, dt, stands)
            return self._fly(leg, now, mode, dt, stands)
        return Setpoint(now.time)

    def _next_leg(self) -> None:
        """Go on to the next leg."""
        for part in self._parts:
            part.leave(self.route.leg)
        self.route.index += 1
        self._drive_path = None
        self._flight_path = None
        self._lands = False
        self._hovers_since = math.inf
        self.done = self.route.at_end

    def _drive(self, leg: DriveLeg, now: Estimate, mode: Mode, dt: float, stands: bool) -> Setpoint:
        """Return the setpoint of a driven leg."""
        if mode is not Mode.DRIVE:  # legs that were changed in the air
            return Setpoint(now.time, Mode.LAND if mode in _CLIMBS_OR_FLIES else None)

        if self._detour.problem:
            self.problem = self._detour.problem
            return Setpoint(now.time)

        rotation = rotation_matrix(now.orientation)
        place = now.position[:2]
        if self._drive_path is None:
            self._drive_path = self._drive_path_of(leg, now)

        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        forward = float(rotation[:, 0] @ now.velocity)
        speed, steering = self._drive_path.command(place, heading, forward)
        if self.trust.level is Trust.SLOW:
            speed = min(max(speed, -CAREFUL_SPEED), CAREFUL_SPEED)

        assist = None
        if leg.thrust_assist and not self.no_takeoff:
            speed, assist, aligned = self._assist.step(now, speed, dt)
            steering = steering if aligned is None else aligned
            if assist is not None or speed < 0.0:
                self._detour.wait()

        if self._rolling.takes_off and self._drive_path.on_last_segment and assist is None:
            self._next_leg()
        elif self._drive_path.stopping and stands and assist is None:
            away = self._drive_path.missed_by(place)
            self.route.note(now.time, f"stands {away:.2f} m from the last way-point")
            self._next_leg()
        else:
            instead = self._detour.update(leg, now, speed, self._drive_path)
            if instead:
                self._go_round(instead)
            elif instead is not None:
                self._next_leg()
        return Setpoint(now.time, speed=speed, steering=steering, assist=assist)

    def _go_round(self, legs: Sequence[DriveLeg]) -> None:
        """Put legs in the place of the present one."""
        self.route.replace(legs)
        self._drive_path = None
        self._rolling.begin()

    def _drive_path_of(self, leg: DriveLeg, now: Estimate) -> DrivePathFollower:
        """Return the follower of a driven leg, with the run-up of a rolling take-off after it."""
        points = leg.points
        speeds = leg.speeds
        if not leg.backward and not self.no_takeoff:
            points, speeds = self._rolling.extended(points, speeds, now)
        return DrivePathFollower(now.position[:2], points, speeds, self.params, leg.backward)

    def _fly(self, leg: FlyLeg, now: Estimate, mode: Mode, dt: float, stands: bool) -> Setpoint:
        """Return the setpoint of a flown leg in any mode."""
        if self._come_down and mode in _CLIMBS_OR_FLIES:
            return Setpoint(now.time, Mode.LAND)
        if mode is Mode.FLIGHT:
            return self._fly_on(leg, now, dt)
        if mode is Mode.ROLLING_TAKEOFF:
            return self._rolling.roll_off(now, self._height)
        if mode in (Mode.ROLLING_LAND, Mode.ROLL_OUT):
            return self._rolling.roll_down(now, mode, self._flight_path is not None)
        if mode is Mode.LAND:
            x, y, z = now.position.tolist()
            return Setpoint(now.time, target=(x, y, z), yaw=self._heading_after(leg))
        if mode is not Mode.DRIVE:
            return Setpoint(now.time)

        if self._flight_path is None:
            return self._take_off(now, stands)
        if self._rolling.rolls(stands):
            return self._rolling.roll_down(now, mode, has_flown=True)

        if self._returns:
            self.problem = f"it has returned home: {self._returns}"
        elif self._come_down and not self._lands:
            self.problem = f"it has landed on the way: {self._come_down}"
        elif self._lands:
            self._next_leg()
        else:
            self.problem = "it has landed on the way without a request"
        return Setpoint(now.time)

    def _take_off(self, now: Estimate, stands: bool) -> Setpoint:
        """Request a take-off, if nothing is against it: rolling, or once the vehicle stands."""
        setpoint = None if self.no_takeoff else self._rolling.run_up(now, stands)
        if setpoint is None:
            setpoint = self._take_off_standing(now) if stands else Setpoint(now.time)
        if setpoint.mode is not None:
            self._lift += self._height_of(now)
            self._home = (float(now.position[0]), float(now.position[1]))
        return setpoint

    def _take_off_standing(self, now: Estimate) -> Setpoint:
        """Request a take-off of a vehicle that stands, if nothing is against it."""
        if self.no_takeoff:
            self.problem = f"no take-off: {self.no_takeoff}"
            return Setpoint(now.time)

        upward = float(rotation_matrix(now.orientation)[2, 2])
        slope = math.acos(max(-1.0, min(1.0, upward)))
        if slope >= TAKEOFF_SLOPE:
            self.problem = (
                f"no take-off: the slope is {math.degrees(slope):.1f}°, "
                f"expected below {math.degrees(TAKEOFF_SLOPE):g}°"
            )
            return Setpoint(now.time)

        return Setpoint(now.time, Mode.TAKEOFF)

    def _height_of(self, now: Estimate) -> float:
        """Return the height of the wheels above the ground, m, as flights count it."""
        x, y, z = now.position.tolist()
        terrain = self.route.terrain
        ground = 0.0 if terrain is None else float(terrain.altitude(x, y))
        return float(z - ground - self.params.origin_height - self._lift)

    def _fly_on(self, leg: FlyLeg, now: Estimate, dt: float) -> Setpoint:
        """Return the setpoint of a flown leg in flight."""
        if self._flight_path is None:
            self._flight_path = self._flight_path_of(leg, now)

        if self._has_to_return(leg, now):
            return self._return_home(leg, now, dt)

        if self._rolling.lands and self._flight_path.at_end:
            self._lands = True
            glide = self._rolling.glide(now)
            if glide is not None:
                return glide

        most = CAREFUL_SPEED if self.trust.level is Trust.SLOW else math.inf
        target, velocity = self._flight_path.advance(now.position, dt, most)
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

    def _flight_path_of(self, leg: FlyLeg, now: Estimate) -> FlightPathFollower:
        """Return the follower of a flown leg, to the begin of its glide if it lands rolling."""
        height = self.params.origin_height + self._lift
        high = [np.array((x, y, z + height)) for x, y, z in leg.points]
        points, speeds, begin, end = self._rolling.fit(high, leg.speeds, now)
        return FlightPathFollower(np.array(now.position), begin, points, speeds, end)

    def _has_to_return(self, leg: FlyLeg, now: Estimate) -> bool:
        """Return whether only the way home can still be flown, and no longer than now."""
        if self._home is None or self._returns or self._lands or self._flight_path is None:
            return False
        height = self._height
        away = math.dist(self._home, now.position[:2].tolist())
        home = charge_of_flight(self.params, away / min(leg.speeds), height)
        if self._charge > home or away < HOVER_AWAY:
            return False
        end = height + max(0.0, leg.points[-1][2] - float(now.position[2]))
        on = charge_of_flight(self.params, self._flight_path.time_left(), end)
        return not leg.lands or self._charge <= on

    def _return_home(self, leg: FlyLeg, now: Estimate, dt: float) -> Setpoint:
        """Fly to the place of the take-off, above all ground on the way, and land there."""
        assert self._home is not None
        self.route.note(now.time, f"returns home: {self._battery}")
        home_x, home_y = self._home
        x, y, z = now.position.tolist()
        top = z - self.params.origin_height - self._lift
        terrain = self.route.terrain
        if terrain is not None:
            shares = np.linspace(0.0, 1.0, 100)
            ground = terrain.altitude(x + shares * (home_x - x), y + shares * (home_y - y))
            top = max(top, float(np.max(ground)) + ABOVE_GROUND)
        speed = min(leg.speeds)
        way = FlyLeg(((x, y, top), (home_x, home_y, top)), (speed, speed), lands=True)
        self.follow([way])
        self._returns = self._battery
        self.no_takeoff = self.no_takeoff or self._battery
        return self._fly_on(way, now, dt)

    def _arrived(self, path: FlightPathFollower, now: Estimate) -> bool:
        """Return whether the vehicle is at the end of a flight, or hovers near it for long."""
        if path.arrived(now.position, now.velocity):
            return True
        near = (
            path.missed_by(now.position) < HOVER_AWAY
            and float(np.linalg.norm(now.velocity)) < HOVER_SPEED
        )
        hovers = path.at_end and near
        self._hovers_since = min(self._hovers_since, now.time) if hovers else math.inf
        return now.time - self._hovers_since >= HOVER_TIME

    def _heading_after(self, leg: FlyLeg) -> float | None:
        """Return the heading to the first way-point that is driven to after the landing, rad."""
        following = self.route.following
        if not isinstance(following, DriveLeg):
            return None
        x, y = following.points[0]
        from_x, from_y, _ = leg.points[-1]
        return math.atan2(y - from_y, x - from_x)
