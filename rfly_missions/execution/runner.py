# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions of one vehicle from the first item to the last.

Theory of operation: MissionRunner carries out mission items, for `mission_node`, for MAVLink's
ground stations behind it, and for programs without ROS. It has no clock; each step moves everything
by dt:

1. `ItemCompletion` decides whether the item shown last is done; a jump starts the mission
   elsewhere.
2. `FenceWatch` replaces the user's command after a breach.
3. `PathManager` makes the next item, a hold or a return current (see its theory of operation).
4. `flown_items` raises the current item above the ground and gives CUSTOM items a geometry.
5. The follower, or the guide ahead of an external vehicle, moves. If it cannot go on, the command
   becomes HOLD, and `RunnerState.problem` says why until the next command.

NED metres, radians, seconds.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError
from rfly_missions.execution.completion_monitor import (
    CustomDone,
    ItemCompletion,
    ItemProgress,
    ItemSituation,
)
from rfly_missions.execution.flown_items import (
    RaisedItem,
    TooLow,
    above_ground,
    custom_as_flown,
    distance_to,
    is_instantaneous,
    items_off_map,
    line_start,
    next_position,
    off_map_notes,
    raised_items,
    raised_note,
    reason_to_climb,
    too_low_problem,
)
from rfly_missions.execution.path_manager import MissionPhase, PathManager
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.multirotor import Follower
from rfly_missions.followers.vehicle_kinds import (
    GROUND_MODES,
    UAV_TYPES,
    UavType,
    make_follower,
)
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.checks import (
    ENDLESS,
    below_home,
    check_fence,
    check_items,
    check_returns,
    jump_target,
    tags_of,
)
from rfly_missions.mission.geofence import FenceWatch, Geofence
from rfly_missions.mission.items import (
    MissionCommand,
    MissionItem,
    MissionMode,
    MissionParams,
    Ned,
    command_of,
    finite_numbers,
)
from rfly_missions.mission.mavlink_items import Look, look_of

_logger = logging.getLogger(__name__)


class RunnerState(NamedTuple):
    """The state after a step."""

    params: MissionParams
    """Current and previous item, as the path manager shows them."""
    flown: MissionItem
    """The current item as it is flown: above the ground, within the vehicle's limits."""
    item_index: int
    """Index of the item to fly now or to resume, in the whole mission."""
    item_count: int
    """Number of items of the mission."""
    items_done: int
    """Number of items carried out since the mission was loaded, further passes included."""
    phase: MissionPhase
    """FINISHED once LAND or RTL, if last, is done, or else once the end hold begins.

    Never FINISHED while the mission repeats.
    """
    distance: float
    """Distance to the flown target, or to the circle of an orbit, m."""
    breach: str
    """The area of the fence that was breached; "" for none."""
    driven: bool = False
    """True if the current item is driven: its z is the terrain's."""
    item_share: float = 0.0
    """Share of the current item that is carried out, 0 … 1."""
    returned: bool = False
    """True once a commanded return has come home, by the same measure as an RTL item."""
    problem: str = ""
    """The reason why the vehicle holds instead of going on, until the next command; "" for none."""

    @property
    def finished(self) -> bool:
        """True once the mission is carried out; never while it repeats."""
        return self.phase is MissionPhase.FINISHED


@dataclass(frozen=True)
class LoadedMission:
    """A mission that has been checked, and its surroundings."""

    items: tuple[MissionItem, ...] = ()
    home: Ned = (0.0, 0.0, 0.0)
    """NED, m."""
    numbers: tuple[int, ...] = ()
    """Numbers of the items in jumps."""
    rally: tuple[Ned, ...] = ()
    """Further places to return to, NED, m."""
    hold_at_waypoints: bool = False
    """True if p3 of a way-point is a time to stay there, s."""

    @cached_property
    def index_of_number(self) -> dict[int, int]:
        """Index of the item that carries each number."""
        return {number: index for index, number in enumerate(self.numbers)}

    @cached_property
    def index_of_tag(self) -> dict[float, int]:
        """Index of the item that carries each tag."""
        return tags_of(self.items)


@dataclass
class Passes:
    """Counters of the loaded mission."""

    items_done: int = 0
    """Number of items carried out, further passes included."""
    jumps_left: dict[int, float] = field(default_factory=dict)
    """Number of jumps left in this pass, by index of the jump item; -1: any number."""


@dataclass
class Guidance:
    """The last order to the follower or the guide."""

    line_start: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """Start of the line to the current item, NED, m."""
    given: tuple[MissionItem, MissionItem] | None = None
    """The flown and the previous item; an instantaneous item leaves them as they are."""
    begun: tuple[int, bool] | None = None
    """Count of switches, and driven or flown, when the order began."""


class AssumedGround:
    """The ground, or level ground at the lowest height seen where no terrain is known."""

    def __init__(self, ground: Ground, may_assume: bool) -> None:
        self._may_assume = may_assume
        self.replace(ground)

    def replace(self, ground: Ground) -> None:
        """Take another ground; forget what was assumed."""
        self.ground = ground
        self.is_assumed = self._may_assume and ground.terrain is None
        self._level: float | None = None

    def is_below(self, down: float) -> bool:
        """Return whether the assumed level lies higher than `down` (NED z, m), or has to be set."""
        return self.is_assumed and (self._level is None or down > self._level)

    def assume_level(self, down: float) -> None:
        """Assume level ground at `down` (NED z, m)."""
        self._level = down
        self.ground = Ground.level(down, self.ground.min_height)


class MissionRunner:
    """Missions of one vehicle: `load` one, interrupt it by `command`, carry it on by `step`.

    With a `follower` the vehicle is simulated. Without one, `step` takes the vehicle's pose, and
    its guidance reads `RunnerState.params`, or follows `guide`: a vehicle that flies ahead, and
    waits if it gets too far. `custom` decides about CUSTOM items (see CompletionMonitor).
    `too_low`: items that lie too low over the ground for this vehicle are flown higher, and `log`
    gets the heights ("climb"); or their mission is refused ("refuse"). ValueError for an unknown
    `uav_type` or `too_low`.
    """

    def __init__(
        self,
        uav_type: UavType = "multirotor",
        *,
        follower: Follower | None = None,
        ground: Ground | None = None,
        loiter_radius: float = 25.0,
        hold_turn_direction: int = 0,
        too_low: TooLow = "climb",
        custom: CustomDone | None = None,
        log: Callable[[str], None] = _logger.info,
    ) -> None:
        check_choice("uav_type", uav_type, UAV_TYPES, error=ValueError)
        check_choice("too_low", too_low, get_args(TooLow), error=ValueError)
        self._uav_type = uav_type
        self._fixed_wing = uav_type == "fixed-wing"
        self._loiter_radius = loiter_radius
        self._too_low = too_low
        self._log = log

        flies_as: Literal["multirotor", "fixed-wing"] = (
            "fixed-wing" if self._fixed_wing else "multirotor"
        )
        self.manager = PathManager(flies_as, loiter_radius, hold_turn_direction)
        self.follower = follower
        self.guide: Follower | None = None
        self._terrain = AssumedGround(
            ground or (follower.ground if follower is not None else Ground()),
            may_assume=uav_type != "ground",
        )

        self._completion = ItemCompletion(self._fixed_wing, loiter_radius, custom, log)
        self._progress = ItemProgress()
        self._guidance = Guidance()
        self._fence = FenceWatch(log)
        self._vehicle_mode: str | None = None
        self._command = MissionCommand.DEFAULT
        self._has_flown = False
        self._last: RunnerState | None = None
        self._begin_mission(LoadedMission(), Geofence(), start_index=0)

    # --- settings

    @property
    def ground(self) -> Ground:
        """The ground; set it when a terrain is known.

        Until then level ground at home's height is assumed, or at the vehicle's where that is
        lower.
        """
        return self._terrain.ground

    @ground.setter
    def ground(self, ground: Ground) -> None:
        self._terrain.replace(ground)
        if self.items:
            note = self._raised(self.items, self.manager.index, raised_note)
            if note:
                self._log(note)
            self._log_off_map(self.manager.index)

    @property
    def home(self) -> Ned:
        """Home of the loaded mission, NED, m."""
        return self._mission.home

    @property
    def items(self) -> tuple[MissionItem, ...]:
        """The items of the whole mission."""
        return self._mission.items

    @property
    def command(self) -> MissionCommand:
        """The command that was given last, or HOLD after a problem."""
        return self._command

    @command.setter
    def command(self, value: int) -> None:
        """Give a command; after a breach it counts once the vehicle is within the fence again.

        ValueError for an unknown command.
        """
        self._command = command_of(value)
        self._problem = ""
        self._fence.forgive()

    @property
    def awaits_report(self) -> bool:
        """True while an item is flown that an external report may end."""
        mission = self.manager.state
        return mission.phase is MissionPhase.FLYING and not self.manager.finished

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
        """Replace the mission; the next step begins it at `start_index`.

        The command becomes DEFAULT (or REPEAT). `numbers`: the items' numbers in jumps;
        1, 2, … if empty. `hold_at_waypoints`: p3 of a way-point is a time to stay there (s),
        as it is in missions from files. `rally`: places (NED, m) besides home to return to; the
        nearest to the vehicle when the return begins is taken. Raises ConfigError or ValueError
        that names the item which can't be flown or leaves the fence; such a mission changes
        nothing.
        """
        north, east, down = finite_numbers(home, 3, "home").tolist()
        if abs(down) > mavlink.MAX_HEIGHT:
            raise ConfigError(
                f"home: z {down:g}, expected at most {mavlink.MAX_HEIGHT:,.0f} m up or down"
            )
        launch = north, east, down
        start = launch if self.follower is None else self.follower.position
        mission = mavlink.with_takeoffs_placed(items, start, launch)

        # items
        PathManager().step((0, 0, 0, 0), mission)
        if not 0 <= start_index < max(1, len(mission)):
            raise ConfigError(f"start_index: {start_index}, the mission has {len(mission)} items")
        names = tuple(numbers) or tuple(range(1, len(mission) + 1))
        check_items(mission, names, self._uav_type == "ground")

        # fence and places to return to
        area = fence or Geofence()
        check_fence(mission[start_index:], area, launch)
        points = _rally_points(rally, area)

        # items that are too low
        refuses = self._too_low == "refuse"
        note = self._raised(mission, start_index, too_low_problem if refuses else raised_note)
        if self._terrain.is_assumed:
            note = below_home(mission, down)
        if note and refuses:
            raise ConfigError(note)

        if mission and not self._has_flown:
            self._has_flown = True
            self.manager.forget_hold()
        loaded = LoadedMission(mission, launch, names, points, hold_at_waypoints)
        self._begin_mission(loaded, area, start_index)
        self._command = MissionCommand.REPEAT if repeat else MissionCommand.DEFAULT
        if self._terrain.is_assumed:
            self._assume_level(down)
        if note:
            self._log(note)
        self._log_off_map(start_index)

    def _log_off_map(self, first: int) -> None:
        """Log the items from index `first` on that reach beyond a known terrain."""
        terrain = self.ground.terrain
        if self._terrain.is_assumed or terrain is None:
            return
        radius = self._loiter_radius if self._fixed_wing else None
        off_map = items_off_map(self.items, terrain, radius)
        for note in off_map_notes([item for item in off_map if item.index >= first]):
            self._log(note)

    def _raised(
        self,
        items: Sequence[MissionItem],
        first: int,
        text_of: Callable[[Sequence[RaisedItem], str], str],
    ) -> str:
        """Return the text on the items from index `first` that are too low; "" for none.

        Only a known terrain counts.
        """
        if self._terrain.is_assumed or self._uav_type == "ground":
            return ""
        mover = self.follower or self.guide
        if mover is None:
            mover = make_follower(
                self._uav_type,
                (0.0, 0.0, 0.0),
                ground=self.ground,
                loiter_radius=self._loiter_radius,
            )

        raised = raised_items(
            items,
            self.ground,
            mover.flown,
            loiter_radius=self._loiter_radius if self._fixed_wing else None,
            may_drive=self._uav_type == "land-air",
        )
        ahead = [item for item in raised if item.index >= first]
        reason = reason_to_climb(self._fixed_wing, self.ground.min_height)
        return text_of(ahead, reason) if ahead else ""

    def _begin_mission(self, mission: LoadedMission, fence: Geofence, start_index: int) -> None:
        self._mission = mission
        self._fence.replace(fence)
        self._passes = Passes()
        self._return_to = mission.home
        self._problem = ""
        self.manager.start_at(start_index)
        for mover in (self.follower, self.guide):
            if mover is not None:
                mover.look_at(None)

    def replace_area(self, fence: Geofence, rally: Sequence[ArrayLike] = ()) -> None:
        """Watch another fence from the next step on, and return to other rally points.

        Raises ConfigError for a place to return to that lies out of the fence.
        """
        points = _rally_points(rally, fence)
        self._mission = replace(self._mission, rally=points)
        self._fence.replace(fence)

    # --- a step

    def step(
        self,
        dt: float,
        pose: ArrayLike | None = None,
        is_mode_done: bool | None = None,
        mode: str | None = None,
    ) -> RunnerState:
        """Carry on for dt seconds; return the state after it.

        `pose`: x, y, z, course of a vehicle that is not simulated. `is_mode_done`: an external
        report about the item shown last; None: the completion monitor decides. `mode`: mode of a
        land-air vehicle that reports it (DRIVE, FLIGHT …): TAKEOFF is then done at FLIGHT and LAND
        at DRIVE, wherever it is, and way-points before TAKEOFF and after LAND are driven.
        ValueError where a pose is missing or not finite.
        """
        finite_number("dt", dt, "s", above=0.0, error=ValueError)
        if self.follower is not None:
            pose = self.follower.pose if pose is None else pose
            mode = self.follower.mode if mode is None else mode
        if pose is None:
            raise ValueError(
                "pose: missing, expected x, y, z and course of a vehicle without a follower"
            )
        self._vehicle_mode = mode
        here = tuple(finite_numbers(pose, 4, "pose").tolist())
        self._completion.advance(dt)
        if self.items and here[2] <= mavlink.MAX_HEIGHT and self._terrain.is_below(here[2]):
            self._assume_level(here[2])

        # the current item
        done = self._is_item_done(here, is_mode_done)
        command = self._fence.command(self._command, here[:2], self._completion.now)
        switches = self.manager.state.switches
        params = self._manage(here, done, command)
        if self.manager.state.switches != switches:
            self._begin_item(params, here)

        # the way
        driven = self._is_driven()
        flown = self._flown(params.current, here, driven)
        self._guide(params, flown, here, driven, dt)

        self._last = self._new_state(params, flown, here, driven)
        return self._last

    def _new_state(
        self, params: MissionParams, flown: MissionItem, here: tuple[float, ...], driven: bool
    ) -> RunnerState:
        """Return the state after a step, and update the progress of the item."""
        mission = self.manager.state
        seen = (*here[:2], float(flown.position[2]), here[3]) if driven else here
        distance = distance_to(flown, seen)
        if mission.phase is MissionPhase.FLYING:
            self._progress.update(
                (mission.repetition, mission.index), flown, distance, self._completion.turned
            )

        repeats = self._command is MissionCommand.REPEAT and bool(self.items)
        finished = self.manager.finished and not repeats
        returns = mission.phase is MissionPhase.RETURNING
        return RunnerState(
            params=params,
            flown=flown,
            item_index=mission.index,
            item_count=len(self.items),
            items_done=self._passes.items_done,
            phase=MissionPhase.FINISHED if finished else mission.phase,
            distance=distance,
            breach=self._fence.area,
            driven=driven,
            item_share=self._progress.share,
            returned=returns
            and self._completion.has_returned(seen, flown, self._return_to, self._vehicle_mode),
            problem=self._problem,
        )

    def _assume_level(self, down: float) -> None:
        """Assume level ground at a z, for the vehicle and for the guide ahead of it."""
        self._terrain.assume_level(down)
        for mover in (self.follower, self.guide):
            if mover is not None:
                mover.ground = self.ground

    def _is_driven(self) -> bool:
        """Return whether the way to the current item leads over the ground.

        A land-air vehicle drives before its TAKEOFF and after its LAND; without either it goes on
        as it does now.
        """
        if self._uav_type == "ground":
            return True
        if self._vehicle_mode is None:
            return False
        on_ground = self._vehicle_mode in GROUND_MODES
        if self.manager.state.phase is not MissionPhase.FLYING or not self.items:
            return on_ground

        # the last change before the item, or else the first one after it
        index = self.manager.index
        changes = (MissionMode.TAKEOFF, MissionMode.LAND)
        if self.items[index].mode in changes:
            return False
        before = [item.mode for item in self.items[:index] if item.mode in changes]
        after = [item.mode for item in self.items[index:] if item.mode in changes]
        if before:
            return before[-1] is MissionMode.LAND
        return after[0] is MissionMode.TAKEOFF if after else on_ground

    # --- completion and switches

    def _is_item_done(self, here: tuple[float, ...], reported: bool | None) -> bool:
        """Return whether the item shown last has been carried out; make its jump if it is one."""
        mission = self.manager.state
        flies_item = mission.phase is MissionPhase.FLYING and not self.manager.finished
        if self._last is None or self.manager.is_fresh or not flies_item:
            return False

        item = self._last.params.current
        loaded = self._mission
        target = jump_target(item, loaded.index_of_number, loaded.index_of_tag)
        if target is not None:
            return self._jump(mission.index, item, target)

        lag = None
        if self.guide is not None and self._terrain.is_assumed:
            lag = self.guide.position[2] - here[2]
        situation = ItemSituation(
            pose=here,
            item=item,
            flown=self._last.flown,
            previous=replace(self._last.params.previous, position=self._guidance.line_start),
            next_position=self._next_position(),
            return_to=self._return_to,
            driven=self._last.driven,
            vehicle_mode=self._vehicle_mode,
            lag=lag,
        )
        return self._completion.is_done(situation, reported, self._mission.hold_at_waypoints)

    def _jump(self, index: int, item: MissionItem, target: int) -> bool:
        """Return whether a jump is used up; otherwise make it."""
        left = self._passes.jumps_left.get(index, float(item.params[1]))
        is_endless = left == ENDLESS
        if not (left > 0.0 or is_endless):
            return True
        self._passes.jumps_left[index] = left if is_endless else left - 1.0
        self._passes.items_done += 1
        self.manager.start_at(target)
        return False

    def _manage(
        self, here: tuple[float, ...], done: bool, command: MissionCommand
    ) -> MissionParams:
        if done:
            self._passes.items_done += 1
        if self._last is None or self._last.params.current.mode is not MissionMode.RTL:
            self._return_to = self._nearest_return(here)

        fresh = self.manager.is_fresh
        repetition = self.manager.state.repetition
        params = self.manager.step(here, self.items, done, command, self._return_to)
        if not fresh and self.manager.state.repetition != repetition:
            self._passes.jumps_left.clear()
        return params

    def _nearest_return(self, here: tuple[float, ...]) -> Ned:
        """Return where a return that begins now leads.

        The target is home or the nearest rally point, on the ground where that is known; after a
        breach the fence's own place to return to, if it has one.
        """
        point = self._fence.fence.breach_return if self._fence.breach is not None else None
        if point is None:
            places = (self.home, *self._mission.rally)
            point = min(places, key=lambda place: math.dist(place[:2], here[:2]))
        if point == self.home:
            return self.home
        ground = self.ground.down(*point[:2])
        return (*point[:2], ground if math.isfinite(ground) else self.home[2])

    def _begin_item(self, params: MissionParams, here: tuple[float, ...]) -> None:
        """Prepare for another item, which has become the current one."""
        self._completion.begin((here[0], here[1], here[2]))

        # the line, from the last item that led somewhere, with its own params
        before = self._last.params.current if self._last is not None else params.previous
        if not is_instantaneous(before):
            self._guidance.line_start = line_start(params.previous, self.ground, self._return_to)

        item = params.current
        is_item = self.manager.state.phase is MissionPhase.FLYING
        if is_item and item.command == mavlink.DO_CHANGE_SPEED:
            self._change_speed(item)
        look = look_of(item) if is_item else None
        if look is not None:
            self._look(item, look)

    def _look(self, item: MissionItem, look: Look) -> None:
        mover = self.follower or self.guide
        if mover is None or not mover.look_at(look.target):
            self._log(f"command {item.command}: nothing turns to a place here: done at once")

    def _change_speed(self, item: MissionItem) -> None:
        kind, speed = item.params[:2].tolist()
        mover = self.follower or self.guide
        if mover is None or not (math.isfinite(kind) and mover.change_speed(int(kind), speed)):
            self._log(f"speed change {item.params.tolist()} is not carried out here: done at once")

    # --- guidance

    def _next_position(self) -> np.ndarray | None:
        return next_position(self.items, self.manager.index, self._return_to)

    def _flown(self, item: MissionItem, here: tuple[float, ...], driven: bool) -> MissionItem:
        """Return an item above the ground and within the vehicle's limits."""
        if item.mode is MissionMode.CUSTOM:
            radius = self._loiter_radius if self._fixed_wing else None
            item = custom_as_flown(item, self._completion.begun_at, self._next_position(), radius)
        item = above_ground(item, self.ground, self._return_to, here[2], driven)
        mover = self.follower or self.guide
        return item if mover is None else mover.flown(item)

    def _guide(
        self,
        params: MissionParams,
        flown: MissionItem,
        here: tuple[float, ...],
        driven: bool,
        dt: float,
    ) -> None:
        """Move the vehicle, or the guide ahead of it."""
        mover = self.follower or self.guide
        if mover is None:
            return

        # an instantaneous item leaves the last order as it is
        given = self._guidance.given
        is_landing = given is not None and given[0].mode is MissionMode.LAND
        if given is not None and is_instantaneous(params.current) and not is_landing:
            flown, previous = given
        else:
            previous = replace(params.previous, position=self._guidance.line_start)
            order = self.manager.state.switches, driven
            if self._guidance.begun != order:
                self._guidance.begun = order
                mover.begin(flown, previous, driven)
        self._guidance.given = flown, previous

        # a guide that is too far ahead waits
        if mover is self.guide and math.dist(mover.position, here[:3]) > mover.lead:
            return
        position = flown.position if flown.mode is MissionMode.RTL else self._return_to
        north, east, down = (float(value) for value in position)
        mover.step(flown, previous, (north, east, down), dt)

        if mover.problem:
            self._log(f"{mover.problem}: holding")
            self._command = MissionCommand.HOLD
            self._problem = mover.problem


def _rally_points(rally: Sequence[ArrayLike], fence: Geofence) -> tuple[Ned, ...]:
    """Return rally points within a fence; raise ConfigError for one that lies out of it."""
    points = tuple(
        (float(n), float(e), float(d)) for n, e, d in (finite_numbers(p, 3, "rally") for p in rally)
    )
    check_returns(points, fence)
    return points
