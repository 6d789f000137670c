"""MissionRunner: a mission from first to last item with path manager, completion monitor, jumps,
fence and vehicle.

Without ROS and without a clock: each step moves everything by dt. NED metres, radians, seconds.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError
from rfly_missions.execution.completion_monitor import (
    TOLERANCE,
    CompletionMonitor,
    CustomDone,
    ItemProgress,
)
from rfly_missions.execution.path_manager import NO_PARAMS, PathManager
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.multirotor import Follower
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.checks import (
    below_home,
    check_fence,
    check_items,
    check_returns,
    tags_of,
)
from rfly_missions.mission.geofence import Geofence
from rfly_missions.mission.items import (
    MissionCommand,
    MissionItem,
    MissionMode,
    MissionParams,
    command_of,
    finite_numbers,
)

BREACH_HOLD = 2.0
"""s of HOLD after leaving the fence, then RTL"""
STANDS_S = 3.0
STANDS_M = 0.2
BELOW_M = 1.0
"""a landing vehicle that comes down by no more in this time, while what leads it is so far below,
has landed
"""

UavType = Literal["multirotor", "fixed-wing", "ground", "land-air"]
"""what flies or drives a mission; the path manager knows the first two, and holds the others like a
multirotor
"""
UAV_TYPES: tuple[str, ...] = get_args(UavType)

_CONDITIONS = range(112, 116)
GROUND_MODES = ("DISARMED", "DRIVE", "SPOOL_DOWN")
"""modes of a land-air vehicle on the ground"""
_WITH_POSITION = (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.LAND)
_logger = logging.getLogger(__name__)


class RunnerState(NamedTuple):
    """What is going on after a step."""

    params: MissionParams
    """what the manager shows"""
    flown: MissionItem
    """the current item as it is flown: above the ground, in the vehicle's limits"""
    item_index: int
    """the item to fly now or to resume, in the whole mission"""
    item_count: int
    items_done: int
    """items carried out since the mission was loaded, those of further passes too"""
    finished: bool
    """the mission is finished: LAND or RTL last, once done; else when the end hold began. Never
    while it repeats
    """
    distance: float
    """m to the flown target, or to the circle of an orbit"""
    breach: str
    """the area of the fence that was left, "" for none"""
    driven: bool = False
    """the current item is driven: its z is the terrain's"""
    item_share: float = 0.0
    """how much of the current item is carried out, 0 … 1"""
    returned: bool = False
    """a commanded return has come home, by the same measure as an item of that kind"""
    problem: str = ""
    """why the mission is not carried on and the vehicle holds, "" where it is; until a command is
    given
    """


class MissionRunner:
    """One vehicle's missions. `load` gives it one, `command` interrupts it, `step` carries it on.

    With a `follower` the vehicle is simulated; without one its pose goes into `step` and guidance
    reads `RunnerState.params`, or goes to where `guide` is: a vehicle that flies ahead, and waits
    where it gets too far. `custom` decides about the user's CUSTOM items (see CompletionMonitor).
    ValueError for an unknown `uav_type`.
    """

    def __init__(
        self,
        uav_type: UavType = "multirotor",
        *,
        follower: Follower | None = None,
        ground: Ground | None = None,
        loiter_radius: float = 25.0,
        hold_turn_direction: int = 0,
        custom: CustomDone | None = None,
        log: Callable[[str], None] = _logger.info,
    ) -> None:
        check_choice("uav_type", uav_type, UAV_TYPES, error=ValueError)
        flies_as: Literal["multirotor", "fixed-wing"] = (
            "fixed-wing" if uav_type == "fixed-wing" else "multirotor"
        )
        self.manager = PathManager(flies_as, loiter_radius, hold_turn_direction)
        self.follower = follower
        self.guide: Follower | None = None
        self._uav_type = uav_type
        self._mode: str | None = None
        self._ground = ground or (follower.ground if follower is not None else Ground())
        self._ground_is_level = self._ground.terrain is None and uav_type != "ground"
        self._level = -math.inf
        self._fixed_wing = uav_type == "fixed-wing"
        self._loiter_radius = loiter_radius
        self._now = 0.0
        self._log = log
        self._progress = ItemProgress()
        self._monitor = CompletionMonitor(
            flies_as, loiter_radius=loiter_radius, custom=custom, clock=lambda: self._now, log=log
        )
        self._command = MissionCommand.DEFAULT
        self._begun = 0.0
        self._begun_at = (0.0, 0.0, 0.0)
        self._arrived: float | None = None
        self._stood = (0.0, 0.0)
        self._rally: tuple[tuple[float, float, float], ...] = ()
        self._line_start = np.zeros(3)
        self._last: RunnerState | None = None
        self._last_given: tuple[MissionItem, MissionItem] | None = None
        self._last_begun = (0, False)
        self._last_position: tuple[float, float] | None = None
        self._load((), (0.0, 0.0, 0.0), Geofence(), (), False)

    @property
    def ground(self) -> Ground:
        """What is flown over; set it when a terrain is known. Until then level ground at home's
        height is assumed, or at the vehicle's where that is lower.
        """
        return self._ground

    @ground.setter
    def ground(self, ground: Ground) -> None:
        self._ground = ground
        self._level = -math.inf
        self._ground_is_level = ground.terrain is None and self._uav_type != "ground"

    def _level_ground(self, down: float) -> None:
        """No terrain is known: level ground at this z, for the vehicle and what flies ahead of it
        too.
        """
        self._level = down
        self._ground = Ground.level(down, self._ground.min_height)
        for mover in (self.follower, self.guide):
            if mover is not None:
                mover.ground = self._ground

    def load(
        self,
        items: Sequence[MissionItem],
        home: ArrayLike = (0.0, 0.0, 0.0),
        *,
        fence: Geofence | None = None,
        numbers: Sequence[int] = (),
        repeat: bool = False,
        start_index: int = 0,
        hold_at_waypoints: bool = False,
        rally: Sequence[ArrayLike] = (),
    ) -> None:
        """Replace the mission; it begins at `start_index` with the next step, and the command is
        DEFAULT (or REPEAT).

        `numbers`: what jumps call the items; 1, 2, … where empty. `hold_at_waypoints`: p3 of a
        waypoint is a time (s) to stay there, as it is in missions from files. `rally`: places (NED
        m) beside home to return to; the nearest to the vehicle when the return begins is taken.
        Raises ConfigError or ValueError that names the item which can't be flown or leaves the
        fence; such a mission changes nothing.
        """
        mission = tuple(items)
        launch = tuple(finite_numbers(home, 3, "home").tolist())
        if abs(launch[2]) > mavlink.MAX_HEIGHT:
            raise ConfigError(
                f"home: z {launch[2]:g}, expected at most {mavlink.MAX_HEIGHT:,.0f} m up or down"
            )
        PathManager().step((0, 0, 0, 0), mission)
        if not 0 <= start_index < max(1, len(mission)):
            raise ConfigError(f"start_index: {start_index}, the mission has {len(mission)} items")
        names = tuple(numbers) or tuple(range(1, len(mission) + 1))
        check_items(mission, names, self._uav_type == "ground")
        area = fence or Geofence()
        check_fence(mission[start_index:], area, launch)
        points = tuple(
            (float(n), float(e), float(d))
            for n, e, d in (finite_numbers(p, 3, "rally") for p in rally)
        )
        check_returns(points, area)
        self._load(mission, launch, area, names, hold_at_waypoints, start_index)
        self._rally = points
        if self._ground_is_level:
            self._level_ground(launch[2])
            note = below_home(mission, launch[2])
            if note:
                self._log(note)
        self._command = MissionCommand.REPEAT if repeat else MissionCommand.DEFAULT

    def _load(
        self,
        mission: tuple[MissionItem, ...],
        home: tuple[float, ...],
        fence: Geofence,
        numbers: tuple[int, ...],
        hold_at_waypoints: bool,
        start_index: int = 0,
    ) -> None:
        self._items = mission
        self._home = home
        self._fence = fence
        self._rally = ()
        self._return_to = home[0], home[1], home[2]
        self._index_of = {number: index for index, number in enumerate(numbers)}
        self._index_of_tag = tags_of(mission)
        self._hold_at_waypoints = hold_at_waypoints
        self._jumps: dict[int, float] = {}
        self._items_done = 0
        self._breach = ""
        self._breached = 0.0
        self._problem = ""
        self._start_at(start_index)

    def _start_at(self, index: int) -> None:
        self._fresh = True  # what is done with the next step belongs to nobody
        self.manager.start_at(index)

    @property
    def command(self) -> MissionCommand:
        """What is asked for."""
        return self._command

    @command.setter
    def command(self, value: int) -> None:
        """ValueError for no command. After a breach a command counts once the vehicle is within the
        fence again.
        """
        self._command = command_of(value)
        self._problem = ""
        if (
            self._breach
            and self._last_position is not None
            and not self._fence.breach(*self._last_position)
        ):
            self._breach = ""

    @property
    def home(self) -> tuple[float, float, float]:
        """NED m, of the mission that is loaded."""
        north, east, down = self._home
        return north, east, down

    @property
    def items(self) -> tuple[MissionItem, ...]:
        """The whole mission."""
        return self._items

    def step(
        self,
        dt: float,
        pose: ArrayLike | None = None,
        is_mode_done: bool | None = None,
        mode: str | None = None,
    ) -> RunnerState:
        """Carry on for dt seconds; the state after it.

        `pose`: x, y, z, course of a vehicle that is not simulated. `is_mode_done`: what somebody
        else says about the item shown last; None: the completion monitor decides. `mode`: that of a
        land-air vehicle which tells it (DRIVE, FLIGHT …): TAKEOFF is then done at FLIGHT and LAND
        at DRIVE, wherever it is, and waypoints before TAKEOFF and after LAND are driven. ValueError
        where a pose is missing or not finite.
        """
        finite_number("dt", dt, "s", above=0.0, error=ValueError)
        if self.follower is not None:
            pose = self.follower.pose if pose is None else pose
            mode = self.follower.mode if mode is None else mode
        self._mode = mode
        if pose is None:
            raise ValueError(
                "pose: missing, expected x, y, z and course of a vehicle without a follower"
            )
        at = tuple(finite_numbers(pose, 4, "pose").tolist())
        self._now += dt
        if self._ground_is_level and self._level < at[2] <= mavlink.MAX_HEIGHT and self._items:
            self._level_ground(at[2])
        self._last_position = at[0], at[1]
        done = self._done(at, is_mode_done)
        command = self._watch_fence(at)
        mission = self.manager.state
        switches = self.manager.state.switches
        params = self._manage(at, done, command)
        if mission.switches != switches:
            self._begin(params, at)
        driven = self._is_driven()
        flown = self._flown(params.current, at, driven)
        self._guide(params, flown, at, driven, dt)
        finished = mission.finished and not (self._command is MissionCommand.REPEAT and self._items)
        distance = _distance(flown, (*at[:2], float(flown.position[2])) if driven else at)
        if mission.kind == "item":
            self._progress.update(
                (mission.repetition, mission.index), flown, distance, self._monitor.turned
            )
        self._last = RunnerState(
            params,
            flown,
            mission.index,
            len(self._items),
            self._items_done,
            finished,
            distance,
            self._breach,
            driven,
            self._progress.share,
            mission.kind == "return" and self._monitor.update(at, flown, self._return_to),
            self._problem,
        )
        return self._last

    def _is_driven(self) -> bool:
        """Whether the way to the item of now leads over the ground.

        A land-air vehicle drives before its TAKEOFF and after its LAND; without either it goes on
        as it does now.
        """
        if self._uav_type == "ground":
            return True
        if self._mode is None:
            return False
        on_ground = self._mode in GROUND_MODES
        if self.manager.state.kind != "item" or not self._items:
            return on_ground
        index = self.manager.index
        switches = (MissionMode.TAKEOFF, MissionMode.LAND)
        if self._items[index].mode in switches:
            return False
        before = [item.mode for item in self._items[:index] if item.mode in switches]
        after = [item.mode for item in self._items[index:] if item.mode in switches]
        if before:
            return before[-1] is MissionMode.LAND
        return after[0] is MissionMode.TAKEOFF if after else on_ground

    def _done(self, at: tuple[float, ...], reported: bool | None) -> bool:
        """Whether the item that was shown last has been carried out; jumps are carried out here."""
        mission = self.manager.state
        if self._last is None or self._fresh or mission.kind != "item" or mission.finished:
            return False
        item = self._last.params.current
        previous = replace(self._last.params.previous, position=self._line_start)
        command = mavlink.mavlink_command(item)
        if command in (mavlink.DO_JUMP, mavlink.DO_JUMP_TAG):
            targets = self._index_of if command == mavlink.DO_JUMP else self._index_of_tag
            return self._jump(mission.index, item, targets[int(item.params[1])])
        if command == mavlink.DO_CHANGE_SPEED:
            return True
        if reported is not None:
            return reported
        if self._mode is not None and item.mode in (MissionMode.TAKEOFF, MissionMode.LAND):
            return self._mode == ("FLIGHT" if item.mode is MissionMode.TAKEOFF else "DRIVE")
        if self._last.driven:  # as seen from above
            at = (*at[:2], float(self._last.flown.position[2]), at[3])
        if command in mavlink.TIMED_COMMANDS:
            return self._timed_done(item, int(command or 0), at)
        watched = self._last.flown
        if item.mode is MissionMode.CUSTOM:
            watched = (
                replace(item, position=watched.position)
                if command == mavlink.CONDITION_CHANGE_ALT
                else item
            )
        if item.mode is MissionMode.LAND and self._stands_on_unknown_ground(at):
            return True
        ahead = self._next_position()
        if not self._monitor.update(
            at, watched, self._return_to, previous=previous, next_position=ahead
        ):
            return False
        holds = self._hold_at_waypoints and not self._fixed_wing
        if holds and item.mode is MissionMode.WAYPOINT and item.params[2] > 0.0:
            self._arrived = self._now if self._arrived is None else self._arrived
            return self._now - self._arrived >= float(item.params[2])
        return True

    def _stands_on_unknown_ground(self, at: tuple[float, ...]) -> bool:
        """Whether a vehicle of somebody else no longer follows down: it has landed above the ground
        assumed here.
        """
        low = self.guide is not None and self.guide.position[2] - at[2] >= BELOW_M
        if not (low and self._ground_is_level) or abs(at[2] - self._stood[1]) > STANDS_M:
            self._stood = self._now, at[2]
        return self._now - self._stood[0] >= STANDS_S

    def _jump(self, index: int, item: MissionItem, target: int) -> bool:
        """Whether the jump is used up; else it is made."""
        left = self._jumps.get(index, float(item.params[2]))
        if not (left > 0.0 or left == -1.0):
            return True
        self._jumps[index] = left if left == -1.0 else left - 1.0
        self._items_done += 1
        self._start_at(target)
        return False

    def _timed_done(self, item: MissionItem, command: int, at: tuple[float, ...]) -> bool:
        if command == mavlink.DELAY:
            return self._now - self._begun >= float(item.params[1])
        assert self._last is not None
        flown = self._last.flown
        reach = (
            max(TOLERANCE, 0.1 * float(flown.params[0]))
            if flown.mode is MissionMode.ORBIT
            else TOLERANCE
        )
        if _distance(flown, at) > reach and self._arrived is None:
            return False
        if command == mavlink.LOITER_TO_ALTITUDE:
            return abs(at[2] - float(flown.position[2])) <= TOLERANCE
        self._arrived = self._now if self._arrived is None else self._arrived
        return self._now - self._arrived >= float(item.params[1])

    def _watch_fence(self, at: tuple[float, ...]) -> MissionCommand:
        """The command that counts: out of the fence HOLD, then RTL, until a command is given within
        it.
        """
        if self._fence and not self._breach:
            self._breach = self._fence.breach(at[0], at[1])
            self._breached = self._now
            if self._breach:
                self._log(f"{self._breach} is breached: holding, then returning")
        if not self._breach:
            return self._command
        return (
            MissionCommand.HOLD if self._now - self._breached < BREACH_HOLD else MissionCommand.RTL
        )

    def _manage(self, at: tuple[float, ...], done: bool, command: MissionCommand) -> MissionParams:
        if done:
            self._items_done += 1
        fresh = self._fresh
        repetition = self.manager.state.repetition
        self._fresh = False
        if self._last is None or self._last.params.current.mode is not MissionMode.RTL:
            self._return_to = self._nearest_return(at)
        params = self.manager.step(at, self._items, done, command, self._return_to)
        if not fresh and self.manager.state.repetition != repetition:
            self._jumps.clear()
        return params

    def _nearest_return(self, at: tuple[float, ...]) -> tuple[float, float, float]:
        """Where a return that begins now leads: home or the nearest rally point, on the ground
        where that is known.
        """
        if self._breach and self._fence.breach_return is not None:
            point = self._fence.breach_return
        else:
            point = min((self.home, *self._rally), key=lambda place: math.dist(place[:2], at[:2]))
        if point == self.home:
            return point
        ground = self.ground.down(*point[:2])
        return (*point[:2], ground if math.isfinite(ground) else self._home[2])

    def _begin(self, params: MissionParams, at: tuple[float, ...]) -> None:
        """Another item has become the current one."""
        self._monitor.reset()
        self._begun = self._now
        self._arrived = None
        self._stood = self._now, at[2]
        self._begun_at = at[0], at[1], at[2]
        before = (
            self._last.params.current if self._last is not None else params.previous
        )  # with its own params
        if not _is_instantaneous(before):
            self._line_start = self._previous_flown(params.previous)
        item = params.current
        if (
            mavlink.mavlink_command(item) == mavlink.DO_CHANGE_SPEED
            and self.manager.state.kind == "item"
        ):
            kind, speed = item.params[1:3].tolist()
            mover = self.follower or self.guide
            if mover is None or not (math.isfinite(kind) and mover.change_speed(int(kind), speed)):
                self._log(
                    f"speed change {item.params[1:].tolist()} is not carried out here: done at once"
                )

    def _next_position(self) -> np.ndarray | None:
        """Where the next item leads that leads somewhere."""
        for item in self._items[self.manager.index + 1 :]:
            if item.mode in _WITH_POSITION:
                return item.position
            if item.mode is MissionMode.RTL:
                return np.array(self._return_to)
        return None

    def _flown(self, item: MissionItem, at: tuple[float, ...], driven: bool) -> MissionItem:
        """The item above the ground and within the vehicle's limits; a CUSTOM as what is flown for
        it.

        What is driven lies on the ground, or where nobody knows that, as high as the vehicle is.
        """
        if item.mode is MissionMode.CUSTOM:
            item = self._for_custom(item)
        north, east, down = (
            item.position.tolist() if item.mode is not MissionMode.RTL else self._return_to
        )
        if driven and item.mode not in (MissionMode.TAKEOFF, MissionMode.LAND, MissionMode.HOLD):
            ground = self.ground.down(north, east)
            down = ground if math.isfinite(ground) else at[2]
        elif item.mode in (MissionMode.TAKEOFF, MissionMode.WAYPOINT):
            down = self.ground.clear(north, east, down)
        elif item.mode is MissionMode.LAND:
            ground = self.ground.down(north, east)
            down = ground if math.isfinite(ground) else down
        elif item.mode is MissionMode.RTL:
            ground = self.ground.down(north, east)
            down = min(down, ground)
        elif item.mode is MissionMode.ORBIT:
            down = self.ground.clear_circle(north, east, float(item.params[0]), down)
        if item.position.tolist() != [north, east, down]:
            item = replace(item, position=np.array([north, east, down]))
        return item if self.follower is None else self.follower.flown(item)

    def _for_custom(self, item: MissionItem) -> MissionItem:
        command = mavlink.mavlink_command(item) or 0
        if command == mavlink.CONDITION_DISTANCE and (ahead := self._next_position()) is not None:
            return MissionItem.waypoint(ahead, math.nan)
        if command == mavlink.CONDITION_YAW and not self._fixed_wing:
            return MissionItem.waypoint(self._begun_at, math.radians(float(item.params[1])))
        aside = command > mavlink.LAST_NAVIGATION and command != mavlink.CONDITION_CHANGE_ALT
        if aside or command == mavlink.DELAY:
            params = (self._loiter_radius, 0.0, -1.0, -1.0) if self._fixed_wing else NO_PARAMS
            return MissionItem(MissionMode.HOLD, np.array(self._begun_at), np.array(params))
        if not self._fixed_wing:  # stands, where a fixed wing circles
            return MissionItem.waypoint(item.position, math.nan)
        radius_at = {mavlink.LOITER_TIME: 3, mavlink.LOITER_TO_ALTITUDE: 2}.get(command)
        radius = 0.0 if radius_at is None else float(item.params[radius_at])
        radius = radius if math.isfinite(radius) else 0.0
        return MissionItem.orbit(
            item.position, abs(radius) or self._loiter_radius, float(np.sign(radius)), math.inf
        )

    def _guide(
        self,
        params: MissionParams,
        flown: MissionItem,
        at: tuple[float, ...],
        driven: bool,
        dt: float,
    ) -> None:
        """Move the vehicle, or the guide ahead of it; during an instantaneous item it goes on as
        before.
        """
        mover = self.follower or self.guide
        if mover is None:
            return
        before = self._last_given
        if (
            before is not None
            and _is_instantaneous(params.current)
            and before[0].mode is not MissionMode.LAND
        ):
            flown, previous = before
        else:
            previous = replace(params.previous, position=self._line_start)
            switches = self.manager.state.switches
            if self._last_begun != (switches, driven):
                self._last_begun = switches, driven
                mover.begin(flown, previous, driven)
        self._last_given = flown, previous
        position = flown.position if flown.mode is MissionMode.RTL else self._return_to
        north, east, down = (float(value) for value in position)
        if mover is self.guide and math.dist(mover.position, at[:3]) > mover.lead:
            return
        mover.step(flown, previous, (north, east, down), dt)
        if mover.problem:
            self._log(f"{mover.problem}: holding")
            self._command = MissionCommand.HOLD
            self._problem = mover.problem

    def _previous_flown(self, item: MissionItem) -> np.ndarray:
        north, east, down = item.position.tolist()
        if item.mode in (MissionMode.WAYPOINT, MissionMode.TAKEOFF, MissionMode.CUSTOM):
            down = self.ground.clear(north, east, down)
        if not math.isfinite(north):  # a RTL that was never shown
            north, east, down = self._return_to
        return np.array([north, east, down])


def _is_instantaneous(item: MissionItem) -> bool:
    """Done at once, and nothing is flown for it: a camera, a speed, a jump, a place to look at."""
    command = mavlink.mavlink_command(item)
    return command is not None and command > mavlink.LAST_NAVIGATION and command not in _CONDITIONS


def _distance(item: MissionItem, at: Sequence[float]) -> float:
    if item.mode in (MissionMode.HOLD, MissionMode.ARMED):
        return 0.0
    north, east, down = (p - float(c) for p, c in zip(at[:3], item.position, strict=True))
    if item.mode is MissionMode.ORBIT:
        return math.hypot(math.hypot(north, east) - float(item.params[0]), down)
    return math.sqrt(north * north + east * east + down * down)
