"""Flight logic behind MAVLink: arming, modes, mission and set-points for a vehicle of mission_node.

Nothing is flown before the vehicle is armed; a mode that was chosen before begins then. Positions
are NED metres about the map's origin, times seconds of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rfly_common.errors import ConfigError
from rfly_common.geodesy import GeoPoint, ned_to_geodetic
from rfly_missions.followers.vehicle_kinds import GROUND_MODES
from rfly_missions.mavlink.flight_modes import SHOWN_AS, FlightMode
from rfly_missions.mavlink.mission_rows import FlightPlan, Refused, Row, Vector, plan_of, speed_item
from rfly_missions.mavlink.parameter_protocol import Tunables
from rfly_missions.mavlink.pose_tracker import PoseTracker
from rfly_missions.mission.checks import check_items
from rfly_missions.mission.items import MissionCommand, MissionItem, MissionMode
from rfly_missions.mission.mavlink_items import (
    CONDITION_YAW,
    LOITER_TIME,
    ImportSettings,
    TerrainAltitude,
)

SILENCE_S = 2.0
"""of wall time without a pose: then nobody knows where the vehicle is"""
GROUND_HEIGHT = 0.6
GROUND_SPEED = 0.3
"""m above the ground and m/s up or down, below which a vehicle that tells no mode stands"""
SETPOINT_PERIOD_S = 0.2
SETPOINT_STEP_M = 0.05
LEAD_S = 5.0
LEAST_SPEED = 0.05
"""a velocity is flown towards a point so far ahead, in s; a lower one, m/s, is none"""
REQUEST_PERIOD_S = 1.0
DISARMED = "DISARMED"
"""the mode of a vehicle that tells it and rests"""
_MISSING = "Preflight Fail: "
_OWN_SPEED = -2.0
"""DO_CHANGE_SPEED's: back to the default"""


Quaternion = tuple[float, float, float, float]
"""x y z w, body (FRD) -> NED"""


class Pilot(Protocol):
    """Who carries out what is asked for: the interfaces of mission_node for one vehicle."""

    def problem(self) -> str:
        """Why nothing can be asked for now; "" if it can."""

    def fly(self, plan: FlightPlan, home: Vector, start_index: int) -> None:
        """From now on these items; `FlightLogic.progressed` and `ended` tell how it goes."""

    def command(self, command: MissionCommand) -> None:
        """Interrupt what is flown, or go on with it."""

    def request_mode(self, word: str) -> None:
        """`arm` or `disarm` for a vehicle that tells its mode."""

    def takes_attitudes(self) -> bool:
        """Whether somebody flies what `turn` asks for."""

    def turn(self, attitude: Quaternion, thrust: float) -> None:
        """Turn to this attitude, and push by a share (0 … 1) of the largest thrust."""

    def gimbal_pitch(self) -> float | None:
        """Of its joint as it is, against the body, rad, up positive; NaN: nobody knows; None: it
        has no gimbal.
        """

    def point_gimbal(self, pitch: float) -> None:
        """Turn its joint there."""


class Setpoint(NamedTuple):
    """Where it is to go, or how fast: NED m or m/s; or how it is to be turned. One of the three is
    given.
    """

    place: Vector | None
    velocity: Vector | None = None
    yaw: float = math.nan
    attitude: Quaternion | None = None
    thrust: float = 0.0
    """0 … 1, with an attitude"""


class Denied(Exception):
    """Why a wish is not granted; `result` is a MAV_RESULT's name."""

    def __init__(self, text: str, result: str = "MAV_RESULT_TEMPORARILY_REJECTED") -> None:
        super().__init__(text)
        self.result = result


@dataclass
class World:
    """What is known around the vehicle."""

    origin: GeoPoint | None = None
    """of the map"""
    ground: float = math.nan
    """z of the ground below the vehicle, NED; NaN: nobody knows"""
    altitude: TerrainAltitude | None = None
    """of the ground above sea level, at a latitude and a longitude"""
    mode: str = ""
    """DISARMED, DRIVE, FLIGHT …; "": the vehicle tells none"""
    shown: MissionMode = MissionMode.ARMED
    """of the item that it flies, whoever asked for it"""
    silence: float = math.inf
    """s of wall time since the last pose"""


class FlightLogic:
    """One vehicle's. Raises Denied for what cannot be done; then nothing changes. `tell` is told
    what happens.
    """

    def __init__(
        self, uav_type: str, pilot: Pilot, values: Tunables, tell: Callable[[str], None]
    ) -> None:
        self._uav_type = uav_type
        self._pilot = pilot
        self._values = values
        self._tell = tell
        self.pose = PoseTracker()
        self.world = World()
        self.mode = FlightMode.HOLD
        self.armed = self.flying = self.holding = False
        """flying: something that was asked for here is not done yet; holding: it waits"""
        self.home: Vector | None = None
        self.rows: tuple[Row, ...] = ()
        self.seq = 0
        self.finished = False
        """the mission's current row; whether it was flown to its end"""
        self.reached: list[int] = []
        """rows that were carried out, for whoever tells them"""
        self._speed: float | None = None
        self._has_new_speed = False
        """whether it was changed while a mission holds, which does not fly at it yet"""
        self._plan = FlightPlan((), ())
        self._index = 0
        self._time = self._down_since = math.nan
        self._wait = 0.0
        self._requested: tuple[str, float] | None = None
        """what its controller was asked for and does not show yet, and since when"""
        self._target: tuple[float, Setpoint] | None = None
        self._sent: tuple[float, Setpoint] | None = None
        self._at_set_speed = False
        """whether it flies at the speed of a velocity set-point, which is not its own"""
        self._turned = False
        """whether it flies by attitudes: who leads it then waits where it was before"""

    # --- what is so

    @property
    def in_air(self) -> bool:
        """Whether it has left the ground."""
        if self._uav_type == "ground" or not self.pose.known:
            return False
        if self.world.mode:
            return self.world.mode not in GROUND_MODES
        floor = self.world.ground
        if math.isnan(floor):
            floor = self.home[2] if self.home is not None else float(self.pose.position[2])
        height = floor - float(self.pose.position[2])
        return height > GROUND_HEIGHT or abs(float(self.pose.velocity[2])) > GROUND_SPEED

    @property
    def takes_attitudes(self) -> bool:
        """Whether set-points may be attitudes."""
        return self._pilot.takes_attitudes()

    @property
    def shown_mode(self) -> FlightMode:
        """As a ground station shows it: that of whoever flies it."""
        return self.mode if self.flying or not self.armed else SHOWN_AS[self.world.shown]

    @property
    def place(self) -> Vector:
        """Where it is."""
        north, east, down = self.pose.position.tolist()
        return north, east, down

    def preflight_error(self) -> str:
        """Why it cannot be armed; "" if it can."""
        if not self.pose.known or self.world.silence > SILENCE_S:
            return "no position"
        return (
            "no map, so no latitude and longitude"
            if self.world.origin is None
            else self._pilot.problem()
        )

    def home_geodetic(self) -> GeoPoint | None:
        """Latitude, longitude, altitude of home, or of the vehicle where there is none yet; None:
        nobody knows.
        """
        origin = self.world.origin
        if origin is None or not (self.pose.known or self.home is not None):
            return None
        latitude, longitude, altitude = ned_to_geodetic(self.home or self.place, origin).tolist()
        return latitude, longitude, altitude

    # --- arming

    def arm(self) -> None:
        """It obeys from now on; home is where it stands."""
        wrong = self.preflight_error()
        if wrong:
            raise Denied(_MISSING + wrong)
        if self.armed:
            return
        if not self.in_air:
            self.home = self.place
        self.armed = True
        self._down_since = math.nan
        self._tell("Armed")
        self._request("arm")
        if self.mode in (FlightMode.TAKEOFF, FlightMode.MISSION):
            try:
                self._begin(self.mode)
            except (Denied, Refused):
                self._disarm("Disarmed")
                raise

    def disarm(self) -> None:
        """On the ground only, whatever force is asked for: nothing can fall from the sky by a
        message.
        """
        if self.in_air:
            raise Denied("Disarming denied: not landed")
        self._disarm("Disarmed")

    def _disarm(self, why: str) -> None:
        if not self.armed:
            return
        if self.flying:
            self._pilot.command(MissionCommand.HOLD)
        self.armed = self.flying = self.holding = False
        self.mode = FlightMode.HOLD
        self._speed = None
        self._request("disarm")
        self._tell(why)

    def _request(self, word: str) -> None:
        """Of a vehicle that tells its mode; again until it follows."""
        self._requested = word, self._time
        if self.world.mode:
            self._pilot.request_mode(word)

    def _follow_mode(self) -> None:
        """A vehicle that tells its mode is armed where its controller is, whoever armed it."""
        if not self.world.mode:
            return
        rests = self.world.mode == DISARMED
        if self._requested is not None:
            word, since = self._requested
            if rests is (word == "disarm"):
                self._requested = None
            elif not abs(self._time - since) < REQUEST_PERIOD_S:
                self._request(word)
        elif rests:
            self._disarm("Disarmed by its controller")
        elif not self.armed:
            self._found_armed()

    def _found_armed(self) -> None:
        self.armed = True
        self.mode = FlightMode.HOLD
        self.home = self.home or (*self.place[:2], self._floor())

    # --- modes

    def select(self, mode: FlightMode) -> None:
        """Change to a mode; one that moves the vehicle begins once it is armed."""
        if mode is FlightMode.MISSION and not self.rows:
            raise Denied("No mission: upload one first")
        if mode is FlightMode.OFFBOARD and not self._has_setpoint():
            raise Denied("OFFBOARD denied: no set-point for a second")
        if self.armed:
            self._begin(mode)
        elif mode in (FlightMode.RETURN, FlightMode.LAND, FlightMode.OFFBOARD):
            raise Denied(f"{mode.name} denied: disarmed")
        else:
            self.mode = mode

    def _begin(self, mode: FlightMode) -> None:
        if mode is FlightMode.MISSION:
            self._fly_mission()
        elif mode is FlightMode.TAKEOFF:
            self.take_off(math.nan)
        elif mode is FlightMode.LAND:
            self.land()
        elif mode is FlightMode.RETURN:
            self._fly(mode, (MissionItem.return_to_launch(),))
        elif mode is FlightMode.OFFBOARD:
            self.mode = mode
            self._sent = None
            self.flying = True
            self.holding = False
        else:
            self.hold()

    def hold(self) -> None:
        """Stay here; `select(MISSION)` goes on with a mission."""
        if self.armed:
            self._check_pilot()
            self._stop()
        self.holding = self.flying and self.mode is FlightMode.MISSION
        self.mode = FlightMode.HOLD
        self.flying = self.holding

    def _stop(self) -> None:
        if self._turned:
            self._fly(FlightMode.HOLD, _way_to(self.place, math.nan))
        else:
            self._pilot.command(MissionCommand.HOLD)

    # --- single flights

    def take_off(self, down: float) -> None:
        """To this z; NaN: to the height that is the parameter's. Before it is armed it only chooses
        the mode.
        """
        if self._uav_type == "ground":
            raise Denied("Take-off denied: it does not fly", "MAV_RESULT_UNSUPPORTED")
        if not self.armed:
            self.mode = FlightMode.TAKEOFF
            return
        north, east, now = self.place
        if math.isnan(down):
            down = now - self._values.takeoff_altitude
        if self._uav_type == "fixed-wing":  # it climbs on its way ahead
            run = 100.0
            yaw = float(self.pose.euler[2])
            north = north + run * math.cos(yaw)
            east = east + run * math.sin(yaw)
        up = north, east, min(down, now - 0.5)
        self._fly(FlightMode.TAKEOFF, (MissionItem.takeoff(up), _stay(up)))

    def land(self, north: float = math.nan, east: float = math.nan) -> None:
        """There, or where it is."""
        self._check_armed("Landing")
        if not (math.isfinite(north) and math.isfinite(east)):
            north, east, _ = self.place
        self._fly(FlightMode.LAND, (MissionItem.land((north, east, self._floor())),))

    def go_to(self, position: Vector, yaw: float = math.nan) -> None:
        """There, and hold."""
        self._check_armed("Reposition")
        if not self.in_air and self._uav_type in ("multirotor", "fixed-wing"):
            raise Denied("Reposition denied: not in the air")
        self._fly(FlightMode.HOLD, _way_to(position, yaw))

    def orbit(self, center: Vector, radius: float, turns: float) -> None:
        """Around it; a positive radius clockwise."""
        self._check_armed("Orbit")
        if not self.in_air:
            raise Denied("Orbit denied: not in the air")
        size = (
            abs(radius) if math.isfinite(radius) and radius != 0.0 else self._values.loiter_radius
        )
        direction = -1.0 if radius < 0.0 else 1.0
        self._fly(FlightMode.HOLD, (MissionItem.orbit(center, size, direction, turns),))

    def set_speed(self, speed: float) -> None:
        """Over ground, m/s, from now on until it is disarmed."""
        if not 0.0 < speed <= 1000.0:
            raise Denied(f"Speed {speed:g} denied: expected more than 0", "MAV_RESULT_DENIED")
        self._check_armed("Speed")
        self._speed = speed
        self._has_new_speed = self.holding
        if self.flying and not self.holding and self.mode is not FlightMode.OFFBOARD:
            self._fly_on(speed)

    def _fly_on(self, speed: float) -> None:
        """As before, at another speed."""
        self._plan = self._plan.with_item(self._index, speed_item(speed))
        self._pilot.fly(self._plan, self.home or self.place, self._index)

    # --- the mission

    def mission_error(self) -> str:
        """Why no mission may come now; "": it may."""
        flown = self.armed and self.flying and (self.mode is FlightMode.MISSION or self.holding)
        return "Mission refused: one is being flown" if flown else ""

    def take_mission(self, rows: Sequence[Row]) -> None:
        """The mission is this from now on. Raises Refused; then it stays what it was."""
        if rows:
            origin = self.world.origin or (0.0, 0.0, 0.0)
            plan_of(
                rows,
                self.home_geodetic() or origin,
                origin,
                self._import_settings(),
                self._uav_type,
            )
        self.rows = tuple(rows)
        self.seq = 0
        self.finished = False
        if not rows and self.mode is FlightMode.MISSION:
            self.mode = FlightMode.HOLD

    def set_current(self, seq: int) -> None:
        """Go on with this row of the mission, or begin with it."""
        if not 0 <= seq < len(self.rows):
            raise Denied(f"No mission item {seq}", "MAV_RESULT_DENIED")
        self.seq = seq
        self.finished = False
        self.flying = self.flying and not self.holding
        self.holding = False
        if self.armed and self.flying and self.mode is FlightMode.MISSION:
            self._fly_mission()

    def _import_settings(self) -> ImportSettings:
        return ImportSettings(
            self._values.acceptance_radius, self._values.loiter_radius, self.world.altitude
        )

    def _fly_mission(self) -> None:
        self._check_armed("Mission")
        if self.holding:
            self._check_pilot()
            if self._speed and self._has_new_speed:
                self._fly_on(self._speed)
            else:
                self._pilot.command(MissionCommand.DEFAULT)
            self.mode = FlightMode.MISSION
            self.holding = False
            self.flying = True
            self._has_new_speed = False
            return
        if self.finished:
            self.seq = 0
            self.finished = False
        home = self.home_geodetic()
        origin = self.world.origin
        assert home is not None
        assert origin is not None
        plan = plan_of(self.rows, home, origin, self._import_settings(), self._uav_type)
        index = plan.first_of(self.seq)
        if not self.in_air and self._uav_type == "multirotor":
            plan = self._from_the_ground(plan, index)
        self._fly(FlightMode.MISSION, plan.items, plan.seqs, index)

    def _from_the_ground(self, plan: FlightPlan, index: int) -> FlightPlan:
        """With a take-off first, as PX4 does, where the mission has none."""
        placed = [
            item
            for item in plan.items[index:]
            if item.mode in (MissionMode.WAYPOINT, MissionMode.ORBIT)
        ]
        first = next(
            (item for item in plan.items[index:] if item.mode is not MissionMode.CUSTOM), None
        )
        if first is None or first.mode is MissionMode.TAKEOFF or not placed:
            return plan
        north, east, now = self.place
        rise = MissionItem.takeoff((north, east, min(float(placed[0].position[2]), now - 0.5)))
        return plan.with_item(index, rise)

    # --- set-points

    def take_setpoint(self, target: Setpoint) -> None:
        """Where it is to go in OFFBOARD; a velocity is not for what can't fly, or drive, slowly."""
        if target.attitude is not None and not self._pilot.takes_attitudes():
            return
        if target.velocity is None or self._uav_type != "fixed-wing":
            self._target = self._time, target

    def _has_setpoint(self) -> bool:
        return (
            self._target is not None and self._time - self._target[0] <= self._values.offboard_loss
        )

    def _follow_setpoint(self) -> None:
        if not self._has_setpoint():
            self._tell("No set-points: OFFBOARD ends, holding")
            self._stop()
            self.mode = FlightMode.HOLD
            self.flying = False
            return
        assert self._target is not None
        sent = self._sent
        (_, target) = self._target
        if target.attitude is not None:
            self._sent = None
            self._turned = True
            self._pilot.turn(target.attitude, target.thrust)
            return
        if sent is not None and (
            self._time - sent[0] < SETPOINT_PERIOD_S or self._follows(target, *sent)
        ):
            return
        self._sent = self._time, target
        if target.velocity is None:
            assert target.place is not None
            self._fly(FlightMode.OFFBOARD, _way_to(target.place, target.yaw))
            return
        north, east, down = target.velocity
        if math.hypot(north, east, down) < LEAST_SPEED:
            self._fly(FlightMode.OFFBOARD, _way_to(self.place, math.nan))
            return
        ahead = [at + LEAD_S * speed for at, speed in zip(self.place, target.velocity, strict=True)]
        changes = [
            (1, max(math.hypot(north, east), LEAST_SPEED)),
            (3 if down > 0.0 else 2, abs(down)),
        ]
        speeds = [speed_item(speed, kind) for kind, speed in changes if speed > 0.0]
        self._fly(
            FlightMode.OFFBOARD, [*speeds, *_way_to((ahead[0], ahead[1], ahead[2]), math.nan)]
        )
        self._at_set_speed = True

    def _follows(self, target: Setpoint, since: float, sent: Setpoint) -> bool:
        """Whether what was sent last still leads where this set-point wants it."""
        if target.velocity is not None:
            stands = math.hypot(*target.velocity) < LEAST_SPEED
            return target.velocity == sent.velocity and (
                stands or self._time - since < 0.4 * LEAD_S
            )
        if target.place is None or sent.place is None:
            return False
        near = math.dist(sent.place, target.place) < SETPOINT_STEP_M
        return near and (sent.yaw == target.yaw or math.isnan(target.yaw))

    # --- what happens

    def tick(self, time: float) -> None:
        """Simulated time has come this far."""
        if self._time > time:  # it went back: what came before is older than anything
            self._down_since = math.nan
            self._target = self._sent = None
        self._time = time
        self._follow_mode()
        if self.in_air and not self.armed:  # somebody else flies it
            self._found_armed()
        self._disarm_by_itself()
        if self.armed and self.flying and self.mode is FlightMode.OFFBOARD:
            self._follow_setpoint()

    def _floor(self) -> float:
        return self.world.ground if math.isfinite(self.world.ground) else self.place[2]

    def _disarm_by_itself(self) -> None:
        """After a landing, and where it was armed and stays down."""
        if self.in_air:
            self._down_since = math.inf
            return
        stays = self.armed and not (
            self.flying and self.mode in (FlightMode.MISSION, FlightMode.TAKEOFF)
        )
        if not stays or self._uav_type in ("ground", "land-air") or self.world.mode:
            self._down_since = math.inf if self._down_since == math.inf else math.nan
            return
        if self._down_since == math.inf:  # it was in the air
            self._down_since = self._time
            self._wait = self._values.disarm_after_landing
        elif math.isnan(self._down_since):
            self._down_since = self._time
            self._wait = self._values.disarm_before_flight
        elif self._time - self._down_since >= self._wait:
            self._down_since = math.nan
            self._disarm("Disarmed: it stays on the ground")

    def progressed(self, index: int) -> None:
        """The item of the plan that is flown now."""
        self._index = index
        if self.mode is FlightMode.TAKEOFF and index + 1 >= len(self._plan.items):
            self.mode = FlightMode.HOLD
        if self.mode is not FlightMode.MISSION or index >= len(self._plan.seqs):
            return
        seq = self._plan.seqs[index]
        if seq != self.seq:
            self.reached.append(self.seq)
            self.seq = seq

    def ended(self, done: bool, why: str) -> None:
        """What was asked for last is carried out, or given up."""
        if not done:
            self._tell(f"{self.mode.name} ended: {why}")
        elif self.mode is FlightMode.MISSION:
            self.reached.append(self.seq)
            self.finished = True
            self._tell("Mission finished")
        self.flying = self.holding = False
        if self.mode in (FlightMode.TAKEOFF, FlightMode.MISSION, FlightMode.OFFBOARD) or not done:
            self.mode = FlightMode.HOLD

    # --- asking the pilot

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
        """At the speed that was asked for, or the parameter's."""
        self._check_pilot()
        speed = self._speed or self._values.cruise_speed
        plan = FlightPlan(tuple(items), tuple(seqs) or (0,) * len(items))
        if self._at_set_speed:
            for kind in (1, 2, 3):
                plan = plan.with_item(start_index, speed_item(_OWN_SPEED, kind))
        if speed and mode is not FlightMode.LAND:
            plan = plan.with_item(start_index + 3 * self._at_set_speed, speed_item(speed))
        try:
            check_items(plan.items, range(1, len(plan.items) + 1), self._uav_type == "ground")
        except ConfigError as error:
            raise Denied(str(error), "MAV_RESULT_DENIED") from error
        self._plan = plan
        self._index = start_index
        self._at_set_speed = False
        self._turned = False
        self.mode = mode
        self.flying = True
        self.holding = False
        self._pilot.fly(plan, self.home or self.place, start_index)


def _stay(position: Vector) -> MissionItem:
    """Hold there for ever: a mission that ends holds where its last item counted as done, a metre
    beside it.
    """
    return MissionItem.custom(position, (float(LOITER_TIME), math.inf, 0.0, 0.0))


def _way_to(position: Vector, yaw: float) -> list[MissionItem]:
    """To a place, turned to a yaw (NaN: along the way), and hold there."""
    turn = [MissionItem.custom(position, (float(CONDITION_YAW), math.degrees(yaw), 0.0, 0.0))]
    return [
        MissionItem.waypoint(position, yaw),
        *(turn if math.isfinite(yaw) else []),
        _stay(position),
    ]
