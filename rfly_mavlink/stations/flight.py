# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight logic behind MAVLink: arming, modes, mission and set-points for a vehicle of mission_node.

FlightLogic executes no items: it turns each request into a plan of mission items, which the
MissionRunner behind the RemotePilot carries out, and follows its progress. The states and their
transitions are those of `flight_state`. Positions are NED metres about the map's origin, times
seconds of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rfly_common.errors import ConfigError
from rfly_common.geodesy import GeoPoint, ned_to_geodetic
from rfly_mavlink.stations.flight_area import FlightArea
from rfly_mavlink.stations.flight_modes import SHOWN_AS, FlightMode
from rfly_mavlink.stations.flight_state import (
    AutoDisarm,
    CurrentMission,
    FlightEvent,
    FlightState,
    PoseTracker,
    next_state,
)
from rfly_mavlink.stations.mission_rows import (
    LEAST_RISE,
    FlightPlan,
    MissionRow,
    Refused,
    plan_of,
    speed_item,
    with_takeoff,
)
from rfly_mavlink.stations.offboard import (
    LEAST_SPEED,
    FlightSetpoint,
    Offboard,
    TimedSetpoint,
    stay,
    velocity_items,
    way_to,
)
from rfly_mavlink.stations.parameter_protocol import Tunables
from rfly_mavlink.stations.plan_rows import PlanRows, return_way, shown_rows, with_return_ways
from rfly_mavlink.stations.remote_pilot import (
    SILENCE_S,
    AwaitedPhase,
    Denied,
    ModeRequest,
    RemotePilot,
    Situation,
)
from rfly_missions.execution.path_manager import MissionPhase
from rfly_missions.followers.vehicle_kinds import GROUND_MODES
from rfly_missions.mission.checks import check_fence, check_items
from rfly_missions.mission.items import FlownMission, MissionCommand, MissionItem, Ned
from rfly_missions.mission.mavlink_items import (
    MAX_AWAY,
    MAX_HEIGHT,
    ImportSettings,
    look_item,
    look_of,
    with_takeoffs_placed,
)

GROUND_HEIGHT = 0.6
"""Height above ground, m, below which a vehicle that reports no mode stands."""
GROUND_SPEED = 0.3
"""Speed, m/s, below which it stands."""
REQUEST_PERIOD_S = 1.0
"""Time between two requests to a controller that has not followed, s."""
FIXED_WING_RUN = 100.0
"""Distance ahead, m, at which a fixed-wing aircraft reaches its take-off height."""
MAX_SPEED = 1000.0
"""Highest speed that may be requested, m/s."""
MOST_NOTES = 5
"""Number of notes on a mission that are reported."""
ABORT = "ABORT"
"""Mode of a land-air vehicle whose controllers carry out their fail-safe."""
DISARMED = "DISARMED"
"""Mode of a vehicle that reports it and rests."""
_MISSING = "Preflight Fail: "
_UNSUPPORTED = "MAV_RESULT_UNSUPPORTED"
_OWN_SPEED = -2.0
"""Value of DO_CHANGE_SPEED that restores the default."""


@dataclass
class RequestedSpeed:
    """A speed that was requested for all flights until the vehicle is disarmed."""

    value: float | None = None
    """Speed over ground, m/s; None: that of the parameter."""
    is_pending: bool = False
    """True if a held mission has to change to it when it resumes."""


class FlightLogic:
    """One vehicle: raises Denied for requests that cannot be carried out, which change nothing.

    `report` receives sentences about what happens.
    """

    def __init__(
        self, uav_type: str, pilot: RemotePilot, values: Tunables, report: Callable[[str], None]
    ) -> None:
        self._uav_type = uav_type
        self._pilot = pilot
        self.values = values
        self._report = report

        # what is known
        self.pose = PoseTracker()
        self.situation = Situation()
        self.mission = CurrentMission()
        self.area = FlightArea(self._places, pilot.set_area)
        self.home: Ned | None = None
        self._keeps_home = False
        """True if a ground station has set home, so that arming leaves it where it is."""
        self._launch_down = math.nan
        """NED z, m, of the place of arming; NaN before."""

        # what is requested
        self.mode = FlightMode.HOLD
        self._state = FlightState.DISARMED
        self._plan = FlightPlan((), ())
        self._index = 0
        """The item of the plan that is flown."""
        self._takeoff_down = math.nan
        """NED z, m, of a take-off that waits for arming; NaN: by the parameter."""
        self._speed = RequestedSpeed()
        self.roi: Ned | None = None
        """Place to look at until a station, an item or disarming changes it, NED, m."""
        self._offboard = Offboard()
        self._auto_disarm = AutoDisarm(values)
        self._request: ModeRequest | None = None
        self._awaited: AwaitedPhase | None = None
        self.aborted = False
        """True while the vehicle's own controllers carry out their fail-safe."""
        self._time = -math.inf
        """Simulated time of the last tick, s; before the first, earlier than any."""

    # --- state

    @property
    def armed(self) -> bool:
        """True if it obeys."""
        return self._state is not FlightState.DISARMED

    @property
    def flying(self) -> bool:
        """True if a request of a ground station is under way, or paused."""
        return self._state in (FlightState.FLYING, FlightState.PAUSED)

    @property
    def holding(self) -> bool:
        """True if it holds and can resume its mission."""
        return self._state is FlightState.PAUSED

    def _transition(self, event: FlightEvent) -> None:
        self._state = next_state(self._state, event)

    @property
    def in_air(self) -> bool:
        """True if it has left the ground."""
        if self._uav_type == "ground" or not self.pose.known:
            return False
        if self.situation.mode:
            return self.situation.mode not in GROUND_MODES

        # a vehicle that reports no mode
        down = float(self.pose.position[2])
        floor = self.situation.ground
        if math.isnan(floor):
            floor = down if math.isnan(self._launch_down) else self._launch_down
        return floor - down > GROUND_HEIGHT or abs(float(self.pose.velocity[2])) > GROUND_SPEED

    @property
    def takes_attitudes(self) -> bool:
        """True if set-points may be attitudes."""
        return self._pilot.takes_attitudes()

    @property
    def shown_mode(self) -> FlightMode:
        """The mode that a ground station shows: that of the client that flies the vehicle.

        mission_node shows a landing or a return until another item follows; a vehicle that stands
        on the ground has ended it.
        """
        if self.flying or not self.armed:
            return self.mode
        mode = SHOWN_AS[self.situation.shown]
        is_over = mode in (FlightMode.LAND, FlightMode.RETURN) and self._stands
        is_on_wheels = mode is FlightMode.LAND and self.situation.mode in GROUND_MODES
        return FlightMode.HOLD if is_over or is_on_wheels else mode

    @property
    def _stands(self) -> bool:
        """True if it rests on the ground."""
        speed = math.hypot(*self.pose.velocity.tolist())
        return self.pose.known and not self.in_air and speed < GROUND_SPEED

    @property
    def place(self) -> Ned:
        """The vehicle's position, NED, m."""
        north, east, down = self.pose.position.tolist()
        return north, east, down

    def preflight_error(self) -> str:
        """Return why it cannot be armed; "" if it can.

        What a position waits for comes first: without mission_node or a map no pose may come.
        """
        situation = self.situation
        if problem := self._pilot.problem():
            return problem
        if situation.origin is None:
            return "no map, so no latitude and longitude"
        if not self.pose.known:
            return "no position: no pose has come yet"
        if situation.silence > SILENCE_S:
            return f"no position: no pose for {situation.silence:.0f} s"
        return ""

    def home_geodetic(self) -> GeoPoint | None:
        """Return latitude, longitude and altitude of home, or of the vehicle if there is none yet.

        None: unknown.
        """
        origin = self.situation.origin
        if origin is None or not (self.pose.known or self.home is not None):
            return None
        latitude, longitude, altitude = ned_to_geodetic(self.home or self.place, origin).tolist()
        return latitude, longitude, altitude

    def set_home(self, place: Ned | None) -> None:
        """Return to a place from now on (NED, m; NaN z: its ground); None: to the vehicle's.

        A mission or a return that is under way goes on with the new home; a mission that is held
        begins its present item again.
        """
        problem = self.preflight_error()
        if problem:
            raise Denied(f"Home denied: {problem}")
        self._keeps_home = place is not None
        self.home = self.place if place is None else self._on_ground("Home", place)

        moves = self._state is FlightState.FLYING
        if moves and self.mode in (FlightMode.MISSION, FlightMode.RETURN):
            self._begin(self.mode)
        elif self.holding:
            self._transition(FlightEvent.END)

    def _on_ground(self, what: str, place: Ned) -> Ned:
        """Return a place near the map, on its ground if it has no z."""
        north, east, down = place
        origin = self.situation.origin
        altitude = self.situation.altitude
        is_near = max(abs(north), abs(east)) <= MAX_AWAY
        if is_near and math.isnan(down) and origin is not None and altitude is not None:
            latitude, longitude, _ = ned_to_geodetic((north, east, 0.0), origin).tolist()
            down = origin[2] - altitude(latitude, longitude)
        if not (is_near and abs(down) <= MAX_HEIGHT):
            raise Denied(f"{what} denied: expected a place near the map", "MAV_RESULT_DENIED")
        return north, east, down

    def _places(self) -> tuple[GeoPoint, GeoPoint] | None:
        origin = self.situation.origin
        return None if origin is None else (origin, self.home_geodetic() or origin)

    # --- arming

    def arm(self) -> None:
        """Obey requests from now; home is where the vehicle stands."""
        problem = self.preflight_error()
        if problem:
            raise Denied(_MISSING + problem)
        if self.armed:
            return

        if not self.in_air:
            breach = self.area.plan.fence.breach(*self.place[:2])
            if breach:
                raise Denied(f"{_MISSING}the vehicle breaches {breach}")
            self._launch_from(self.place)
        self._transition(FlightEvent.ARM)
        self._auto_disarm.reset()
        self._report("Armed")
        self._request_mode("arm")

        if self.mode in (FlightMode.TAKEOFF, FlightMode.MISSION):
            try:
                self._begin(self.mode)
            except (Denied, Refused):
                self._disarm("Disarmed")
                raise

    def _launch_from(self, place: Ned) -> None:
        """Make the place of arming home, unless a ground station has set another one."""
        self._launch_down = place[2]
        if not self._keeps_home:
            self.home = place

    def disarm(self) -> None:
        """Disarm on the ground only: not even a forced request makes a vehicle fall."""
        if self.in_air:
            raise Denied("Disarming denied: not landed")
        self._disarm("Disarmed")

    def _disarm(self, why: str) -> None:
        if not self.armed:
            return
        if self.flying:
            self._command(MissionCommand.HOLD, MissionPhase.HOLDING)
        self._transition(FlightEvent.DISARM)
        self.mode = FlightMode.HOLD
        self._speed.value = None
        self.roi = None
        self._request_mode("disarm")
        self._report(why)

    def _request_mode(self, word: str) -> None:
        """Request a mode of a vehicle that reports its mode; repeated until it follows."""
        self._request = ModeRequest(word, self._time)
        if self.situation.mode:
            self._pilot.request_mode(word)

    def _follow_mode(self) -> None:
        """Keep the state of a vehicle that reports its mode: it is armed if its controller is."""
        if not self.situation.mode:
            self.aborted = False
            return

        was_aborted = self.aborted
        self.aborted = self.situation.mode == ABORT
        if self.aborted and not was_aborted:
            self._report("ABORT: its controllers gave up; its log and /diagnostics say why")

        rests = self.situation.mode == DISARMED
        if self._request is not None:
            word, since = self._request
            if rests is (word == "disarm"):
                self._request = None
            elif not abs(self._time - since) < REQUEST_PERIOD_S:
                self._request_mode(word)
        elif rests:
            self._disarm("Disarmed by its controller")
        elif not self.armed:
            self._take_over()

    def _take_over(self) -> None:
        """Count a vehicle as armed that another client has armed."""
        self._transition(FlightEvent.ARM)
        self.mode = FlightMode.HOLD
        if self.home is None:
            self._launch_from((*self.place[:2], self._floor()))

    # --- modes

    def select(self, mode: FlightMode) -> None:
        """Change to a mode; one that moves the vehicle begins once it is armed."""
        if mode is FlightMode.MISSION and not (self.mission.rows or self.mission.plan):
            raise Denied("No mission: upload one first")
        if mode is FlightMode.OFFBOARD and not self._has_setpoint():
            raise Denied("OFFBOARD denied: no set-point for a second")

        if self.armed:
            self._takeoff_down = math.nan
            self._begin(mode)
        elif mode in (FlightMode.RETURN, FlightMode.LAND, FlightMode.OFFBOARD):
            raise Denied(f"{mode.name} denied: disarmed")
        else:
            self.mode = mode
            self._takeoff_down = math.nan

    def _begin(self, mode: FlightMode) -> None:
        if mode is FlightMode.MISSION:
            self._fly_mission()
        elif mode is FlightMode.TAKEOFF:
            self.take_off(self._takeoff_down)
        elif mode is FlightMode.LAND:
            self.land()
        elif mode is FlightMode.RETURN:
            self._return()
        elif mode is FlightMode.OFFBOARD:
            self.mode = mode
            self._offboard.flown = None
            self._transition(FlightEvent.START)
        else:
            self.hold()

    def _return(self) -> None:
        """Return at the parameter's height above home, or higher."""
        way: list[MissionItem] = []
        if self.in_air:
            height = self.values.return_altitude
            launch = self.home or self.place
            rally = self.area.plan.rally
            way = return_way(self.place, launch, height, self._uav_type, rally)
        self._fly(FlightMode.RETURN, (*way, MissionItem.return_to_launch()))

    def hold(self) -> None:
        """Stay here; `select(MISSION)` goes on with a mission."""
        if self.armed:
            self._check_pilot()
            self._stop()
        pauses = self._state is FlightState.FLYING and self.mode is FlightMode.MISSION
        self._transition(FlightEvent.PAUSE if pauses or self.holding else FlightEvent.END)
        self.mode = FlightMode.HOLD

    def _stop(self) -> None:
        if self._offboard.sets_attitude:
            self._fly(FlightMode.HOLD, way_to(self.place, math.nan))
        else:
            self._command(MissionCommand.HOLD, MissionPhase.HOLDING)

    def _command(self, command: MissionCommand, phase: MissionPhase) -> None:
        """Give a command that leads to a phase."""
        self._awaited = AwaitedPhase(phase, self._time)
        self._pilot.command(command)

    # --- single flights

    def take_off(self, down: float) -> None:
        """Climb to a z; NaN: to the height of the parameter. Disarmed, choose it for arming.

        A z that is not above the vehicle counts as none, as with PX4.
        """
        if self._uav_type == "ground":
            raise Denied("Take-off denied: it does not fly", "MAV_RESULT_UNSUPPORTED")
        if not self.armed:
            self.mode = FlightMode.TAKEOFF
            self._takeoff_down = down
            return

        north, east, now = self.place
        if down >= now:
            self._report("Take-off altitude is not above the vehicle: MIS_TAKEOFF_ALT counts")
        if not down < now:
            down = now - self.values.takeoff_altitude
        if self._uav_type == "fixed-wing":  # it climbs on its way ahead
            yaw = float(self.pose.euler[2])
            north = north + FIXED_WING_RUN * math.cos(yaw)
            east = east + FIXED_WING_RUN * math.sin(yaw)
        target = north, east, min(down, now - LEAST_RISE)
        self._fly(FlightMode.TAKEOFF, (MissionItem.takeoff(target), stay(target)))

    def land(self, north: float = math.nan, east: float = math.nan) -> None:
        """Land at a place, or here if it is not given."""
        self._check_armed("Landing")
        if not (math.isfinite(north) and math.isfinite(east)):
            north, east, _ = self.place
        self._fly(FlightMode.LAND, (MissionItem.land((north, east, self._floor())),))

    def go_to(self, position: Ned, yaw: float = math.nan) -> None:
        """Go to a place, and hold."""
        self._check_armed("Reposition")
        if not self.in_air and self._uav_type in ("multirotor", "fixed-wing"):
            raise Denied("Reposition denied: not in the air")
        self._fly(FlightMode.HOLD, way_to(position, yaw))

    def orbit(self, center: Ned, radius: float, turns: float) -> None:
        """Fly circles around a place; a positive radius clockwise."""
        self._check_armed("Orbit")
        if not self.in_air:
            raise Denied("Orbit denied: not in the air")
        has_radius = math.isfinite(radius) and radius != 0.0
        size = abs(radius) if has_radius else self.values.loiter_radius
        direction = -1.0 if radius < 0.0 else 1.0
        self._fly(FlightMode.HOLD, (MissionItem.orbit(center, size, direction, turns),))

    def set_speed(self, speed: float) -> None:
        """Fly at a speed over ground, m/s, until the vehicle is disarmed."""
        if not 0.0 < speed <= MAX_SPEED:
            raise Denied(f"Speed {speed:g} denied: expected more than 0", "MAV_RESULT_DENIED")
        self._check_armed("Speed")
        self._speed = RequestedSpeed(speed, is_pending=self.holding)
        if self._state is FlightState.FLYING and self.mode is not FlightMode.OFFBOARD:
            self._fly_on(speed)

    def _fly_on(self, speed: float) -> None:
        """Go on with the plan at another speed."""
        self._plan = self._plan.with_item(self._index, speed_item(speed))
        self._pilot.fly(self._plan, self.home or self.place, self._index)

    def look_at(self, place: Ned | None) -> None:
        """Turn to a place (NED, m; NaN z: its ground) and the gimbal too; None: to none.

        A vehicle that heads where it goes cannot do so.
        """
        if self._uav_type not in ("multirotor", "land-air"):
            raise Denied("Region of interest denied: it heads where it goes", _UNSUPPORTED)
        problem = self.preflight_error()
        if problem:
            raise Denied(f"Region of interest denied: {problem}")
        self.roi = None if place is None else self._on_ground("Region of interest", place)

        is_held = self._state is FlightState.IDLE and self.shown_mode is FlightMode.HOLD
        if self._state is FlightState.FLYING and self.mode is not FlightMode.OFFBOARD:
            item = look_item(self.roi, self.place)
            self._plan = self._plan.with_item(self._index, item)
            self._pilot.fly(self._plan, self.home or self.place, self._index)
        elif self.in_air and (self.holding or is_held):
            self.go_to(self.place)

    # --- the mission

    def take_mission(self, rows: Sequence[MissionRow]) -> None:
        """Replace the mission; raise Refused for rows that are none, which change nothing.

        If a mission is being flown, the new one is flown from its first row on, as by PX4. Without
        rows the vehicle holds.
        """
        if rows:
            origin = self.situation.origin or (0.0, 0.0, 0.0)
            home = self.home_geodetic() or origin
            plan_of(rows, home, origin, self._import_settings(), self._uav_type)

        before = self.mission
        is_flown = self.mode is FlightMode.MISSION and self._state is FlightState.FLYING
        self.mission = CurrentMission(tuple(rows), reached=before.reached)
        try:
            if is_flown and rows:
                self._fly_mission()
            elif is_flown or self.holding:
                # mission_node forgets the mission before
                self._fly(FlightMode.HOLD, way_to(self.place, math.nan))
        except Denied as denial:
            self.mission = before
            raise Refused("MAV_MISSION_DENIED", str(denial)) from denial

        if not rows and self.mode is FlightMode.MISSION:
            self.mode = FlightMode.HOLD

    def set_current(self, seq: int) -> None:
        """Go on with a row of the mission, or begin with it."""
        if not 0 <= seq < len(self.mission.rows):
            raise Denied(f"No mission item {seq}", "MAV_RESULT_DENIED")
        self.mission.begin_at(seq)
        if self.holding:
            self._transition(FlightEvent.END)
        if self.flying and self.mode is FlightMode.MISSION:
            self._fly_mission()

    def _import_settings(self) -> ImportSettings:
        return ImportSettings(
            self.values.acceptance_radius, self.values.loiter_radius, self.situation.altitude
        )

    def _fly_mission(self) -> None:
        self._check_armed("Mission")
        if self.holding:
            self._resume_mission()
            return

        if self.mission.finished:
            self.mission.begin_at(0)
        plan = self.mission.plan or self._plan_of_rows()
        index = plan.first_of(self.mission.seq)
        if not self.in_air and self._uav_type == "multirotor":
            plan = with_takeoff(plan, index, self.place)
        self._fly(FlightMode.MISSION, plan.items, plan.seqs, index)

    def _plan_of_rows(self) -> FlightPlan:
        home = self.home_geodetic()
        origin = self.situation.origin
        assert home is not None
        assert origin is not None
        plan = plan_of(self.mission.rows, home, origin, self._import_settings(), self._uav_type)
        launch = self.home or self.place
        plan = plan._replace(items=with_takeoffs_placed(plan.items, self.place, launch))
        height = self.values.return_altitude
        rally = self.area.plan.rally
        return with_return_ways(plan, self.place, launch, height, self._uav_type, rally)

    def _resume_mission(self) -> None:
        self._check_pilot()
        if self._speed.value and self._speed.is_pending:
            self._fly_on(self._speed.value)
        else:
            self._command(MissionCommand.DEFAULT, MissionPhase.FLYING)
        self._speed.is_pending = False
        self.mode = FlightMode.MISSION
        self._transition(FlightEvent.RESUME)

    # --- other clients of mission_node

    def shown_rows(self, mission: FlownMission) -> PlanRows:
        """Return the rows of another client's mission."""
        origin = self.situation.origin or (0.0, 0.0, 0.0)
        return shown_rows(mission, origin, self.values.loiter_radius, self._uav_type)

    def take_other_mission(self, home: Ned, shown: PlanRows) -> None:
        """Take the mission of another client, which replaces the one here and what is flown."""
        self._transition(FlightEvent.END)
        self._awaited = None
        self.home = home
        self.mission = CurrentMission(shown.rows, shown.plan, is_new=True)
        self._plan = shown.plan
        self._index = 0
        items = shown.plan.seqs[-1] + 1 if shown.plan.seqs else 0
        count = "1 item" if items == 1 else f"{items} items"
        self._report(f"Mission of another client: {count}")
        for note in shown.notes[:MOST_NOTES]:
            self._report(f"Mission: {note}")

    def follow_other(self, index: int, phase: MissionPhase) -> None:
        """Take the progress of the other client's mission: the item to fly now or to resume.

        It does not count once a ground station has uploaded another mission.
        """
        if self.mission.plan is None or self._is_outdated(phase):
            return
        self._index = self._plan.first_of(index)
        is_under_way = phase in (MissionPhase.FLYING, MissionPhase.HOLDING, MissionPhase.RETURNING)
        rests = self.situation.mode == DISARMED
        if phase is MissionPhase.FLYING and not self.armed and not rests:
            self._take_over()
        if is_under_way and self.armed and not self.flying:
            self.mode = FlightMode.MISSION
            self._transition(FlightEvent.START)

        self.mission.follow_to(index)
        self.follow_phase(phase)
        if phase is MissionPhase.FINISHED and self.flying:
            self.ended(True, "")
        self.mission.finished = phase is MissionPhase.FINISHED

    def follow_phase(self, phase: MissionPhase) -> None:
        """Take the phase of what is flown, which other clients interrupt and resume as well."""
        if self._is_outdated(phase):
            return
        self._awaited = None
        interrupted = phase in (MissionPhase.HOLDING, MissionPhase.RETURNING)
        if interrupted and self._state is FlightState.FLYING and self.mode is FlightMode.MISSION:
            self._transition(FlightEvent.PAUSE)
        if self.holding and interrupted:
            returns = phase is MissionPhase.RETURNING
            self.mode = FlightMode.RETURN if returns else FlightMode.HOLD
        elif self.holding and phase is MissionPhase.FLYING:
            self.mode = FlightMode.MISSION
            self._transition(FlightEvent.RESUME)

    def _is_outdated(self, phase: MissionPhase) -> bool:
        """Return whether a phase may be older than the last command."""
        awaited = self._awaited
        if awaited is None or phase is awaited.phase:
            return False
        return abs(self._time - awaited.since) < REQUEST_PERIOD_S

    # --- set-points

    def take_setpoint(self, setpoint: FlightSetpoint) -> None:
        """Take a set-point for OFFBOARD; a fixed-wing aircraft takes no velocities."""
        if setpoint.attitude is not None and not self._pilot.takes_attitudes():
            return
        if setpoint.velocity is None or self._uav_type != "fixed-wing":
            self._offboard.newest = TimedSetpoint(self._time, setpoint)

    def _has_setpoint(self) -> bool:
        return self._offboard.is_fresh(self._time, self.values.offboard_loss)

    def _follow_setpoint(self) -> None:
        if not self._has_setpoint():
            self._report("No set-points: OFFBOARD ends, holding")
            self._stop()
            self.mode = FlightMode.HOLD
            self._transition(FlightEvent.END)
            return

        assert self._offboard.newest is not None
        setpoint = self._offboard.newest.setpoint
        if setpoint.attitude is not None:
            self._offboard.flown = None
            self._offboard.sets_attitude = True
            self._pilot.turn(setpoint.attitude, setpoint.thrust)
            return

        # a place or a velocity: a new plan if the old one does not serve it
        if self._offboard.is_followed(setpoint, self._time):
            return
        self._offboard.flown = TimedSetpoint(self._time, setpoint)
        if setpoint.velocity is None:
            assert setpoint.place is not None
            self._fly(FlightMode.OFFBOARD, way_to(setpoint.place, setpoint.yaw))
        elif math.hypot(*setpoint.velocity) < LEAST_SPEED:
            self._fly(FlightMode.OFFBOARD, way_to(self.place, math.nan))
        else:
            self._fly(FlightMode.OFFBOARD, velocity_items(setpoint.velocity, self.place))
            self._offboard.sets_speed = True

    # --- what happens

    def tick(self, time: float) -> None:
        """Carry on to a simulated time, s."""
        if self._time > time:  # it went back: what came before is older than anything
            self._auto_disarm.reset()
            self._offboard.forget()
        self._time = time

        self._follow_mode()
        if self.in_air and not self.armed:  # another client flies it
            self._take_over()
        if self.pose.known:
            self.area.tick(*self.place[:2], time)
        if self._auto_disarm.is_due(time, self.in_air, self._may_auto_disarm()):
            self._disarm("Disarmed: it stays on the ground")
        if self._state is FlightState.FLYING and self.mode is FlightMode.OFFBOARD:
            self._follow_setpoint()

    def _floor(self) -> float:
        return self.situation.ground if math.isfinite(self.situation.ground) else self.place[2]

    def _may_auto_disarm(self) -> bool:
        """Return whether the vehicle may be disarmed because it stays down."""
        is_starting = self.flying and self.mode in (FlightMode.MISSION, FlightMode.TAKEOFF)
        drives = self._uav_type in ("ground", "land-air") or bool(self.situation.mode)
        return self.armed and not is_starting and not drives

    def progressed(self, index: int) -> None:
        """Take the index of the item of the plan that is flown now."""
        first = min(self._index, index)
        for item in self._plan.items[first : index + 1]:
            look = look_of(item)
            self.roi = self.roi if look is None else look.target
        self._index = index
        if self.mode is FlightMode.TAKEOFF and index + 1 >= len(self._plan.items):
            self.mode = FlightMode.HOLD
        if self.mode is FlightMode.MISSION and index < len(self._plan.seqs):
            self.mission.go_to(self._plan.seqs[index])

    def ended(self, done: bool, why: str) -> None:
        """Take the end of what was requested last: it is carried out, or given up."""
        if not done:
            self._report(f"{self.mode.name} ended: {why}")
        elif self.mode is FlightMode.MISSION:
            self.mission.finish()
            self._report("Mission finished")

        self._transition(FlightEvent.END)
        if self.mode in (FlightMode.TAKEOFF, FlightMode.MISSION, FlightMode.OFFBOARD) or not done:
            self.mode = FlightMode.HOLD

    # --- requests to the pilot

    def _check_armed(self, what: str) -> None:
        if not self.armed:
            raise Denied(f"{what} denied: disarmed")

    def _check_pilot(self) -> None:
        problem = self._pilot.problem()
        if problem:
            raise Denied(problem)

    def _fly(
        self,
        mode: FlightMode,
        items: Sequence[MissionItem],
        seqs: Sequence[int] = (),
        start_index: int = 0,
    ) -> None:
        """Fly items at the requested speed, or at the parameter's."""
        self._check_pilot()
        plan = FlightPlan(tuple(items), tuple(seqs) or (0,) * len(items))

        # changes of speed and of what it looks at come first
        changes = []
        if self._offboard.sets_speed:
            changes = [speed_item(_OWN_SPEED, kind) for kind in (3, 2, 1)]
        speed = self._speed.value or self.values.cruise_speed
        if speed and mode is not FlightMode.LAND:
            changes.append(speed_item(speed))
        if self.roi is not None:
            changes.append(look_item(self.roi, self.place))
        for number, change in enumerate(changes):
            plan = plan.with_item(start_index + number, change)

        home = self.home or self.place
        try:
            check_items(plan.items, range(1, len(plan.items) + 1), self._uav_type == "ground")
            check_fence(plan.items[start_index:], self.area.plan.fence, home)
        except ConfigError as error:
            raise Denied(str(error), "MAV_RESULT_DENIED") from error
        self._plan = plan
        self._index = start_index
        self._offboard.sets_speed = False
        self._offboard.sets_attitude = False
        self.mode = mode
        self._transition(FlightEvent.START)
        self._awaited = None
        self._pilot.fly(plan, home, start_index)
