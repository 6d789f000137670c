# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""State machine over mission items that hands guidance the current item and the previous one.

It has no clock and no dynamics: the caller reports when the current item is done.

Theory of operation: a mission is a list of items, and exactly one thing is current at any time: an
item of the list, a hold or a return. `MissionState` has two independent values: whether the mission
is finished, and the phase, which follows from that and from the command. A step does three things,
in this order:

1. Progress: begin the mission if it is new or has changed. Otherwise go on, or finish, if the
   vehicle reports its item as done. Only an item that is flown can be done: in the other phases the
   report is ignored.
2. Repetition: begin once more, if the mission is finished and the command is REPEAT.
3. The command: HOLD and RTL interrupt the mission as long as they are present; when they end, it
   goes on with the interrupted item.

A finished mission keeps its last item current if that is LAND or RTL; otherwise the vehicle holds.

It follows the Path Manager block and the `uavPathManager` System object of UAV Toolbox (reference
pages pathmanager and uavpathmanager-system-object). Where those pages are silent: an interruption
is resumed at the interrupted item; a hold keeps the position at which it began; home is read at
every step; an equal mission sent again is no change.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_missions.mission.items import (
    BUS_NAME,
    DataType,
    MissionCommand,
    MissionItem,
    MissionMode,
    MissionParams,
    bus_name,
    bus_type,
    check_uav_type,
    command_of,
    finite_numbers,
    in_single,
    item_of,
)

NO_PARAMS = (-1.0, -1.0, -1.0, -1.0)
"""Parameters of an item that the manager makes."""
LINE_RADIUS = 25.0
"""Transition radius that is written into a previous item without one, m."""

_STAYS_CURRENT = (MissionMode.LAND, MissionMode.RTL)


class MissionPhase(Enum):
    """What a vehicle with a mission does; the numbers are those of the message MissionParams."""

    IDLE = 0
    """No mission has been loaded yet."""
    FLYING = 1
    """An item is current."""
    HOLDING = 2
    """The vehicle holds: a command interrupts the mission, or no item is left."""
    RETURNING = 3
    """The vehicle returns: a command interrupts the mission."""
    FINISHED = 4
    """No item is left; MissionRunner reports it, whatever the vehicle does then."""


_INTERRUPTIONS = {
    MissionCommand.HOLD: MissionPhase.HOLDING,
    MissionCommand.RTL: MissionPhase.RETURNING,
}


@dataclass
class MissionState:
    """The state of one vehicle's mission; PathManager writes it, others read it."""

    finished: bool = False
    """True once the last item is done, until REPEAT begins again; true for an empty mission."""
    phase: MissionPhase = MissionPhase.IDLE
    """What the vehicle does by `current`: it flies an item, holds or returns."""
    items: tuple[MissionItem, ...] | None = None
    """The mission of the last step; None: the next step begins it."""
    index: int = 0
    """Index of the item to fly now or to resume; the last one when the mission is finished."""
    current: MissionItem | None = None
    """The item to fly now: of the mission, a hold or a return; None before the first step."""
    previous: MissionItem | None = None
    """The item that was current before the last switch."""
    repetition: int = 0
    """Number of times that the mission has begun."""
    switches: int = 0
    """Number of times that `current` has changed, to the same item of another repetition too."""

    def begin(self, index: int, finished: bool = False) -> None:
        """Begin the mission, once more or for the first time, at an item."""
        self.finished = finished
        self.index = index
        self.repetition += 1


class PathManager:
    """State machine over mission items, for one vehicle; `state` is its memory.

    `uav_type`: "multirotor" hovers on HOLD, "fixed-wing" circles with `loiter_radius` (m) in
    `hold_turn_direction` (1 clockwise, -1 counter-clockwise, 0 the follower chooses). `data_type`:
    the block's Data type; "single" rounds all inputs to single precision, computes in it and
    returns items of float32. `mission_bus_name`: the block's Mission bus name, the name of the bus
    type `bus`. ValueError for anything else.
    """

    def __init__(
        self,
        uav_type: Literal["multirotor", "fixed-wing"] = "multirotor",
        loiter_radius: float = 25.0,
        hold_turn_direction: int = 0,
        *,
        data_type: DataType = "double",
        mission_bus_name: str = BUS_NAME,
    ) -> None:
        check_uav_type(uav_type)
        finite_number("loiter_radius", loiter_radius, "m", above=0.0, error=ValueError)
        if hold_turn_direction not in (-1, 0, 1):
            raise ValueError(f"hold_turn_direction: {hold_turn_direction!r}, expected -1, 0 or 1")
        self.bus = bus_type(data_type, mission_bus_name)
        """Type of the elements of missions and outputs, the block's bus."""
        self.mission_bus_name = mission_bus_name
        self._is_single = data_type == "single"
        fixed_wing = uav_type == "fixed-wing"
        self._hold_params = (
            (loiter_radius, float(hold_turn_direction), -1.0, -1.0) if fixed_wing else NO_PARAMS
        )
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next step is a first step."""
        self.state = MissionState()
        self._start_index = 0
        self._current_key: tuple[MissionPhase, int, int] | None = None

    def forget_hold(self) -> None:
        """Forget the hold of a vehicle that has had no mission: its first item follows ARMED."""
        self.state.current = None
        self._current_key = None

    def start_at(self, index: int) -> None:
        """Begin the mission of the next step at an item, even if the mission is the same."""
        self.state.items = None
        self._start_index = index

    @property
    def is_fresh(self) -> bool:
        """True until the first step of a mission, or of a start at an item."""
        return self.state.items is None

    @property
    def index(self) -> int:
        """Index of the item to fly now or to resume; the last one when the mission is finished."""
        return self.state.index

    @property
    def finished(self) -> bool:
        """True once the last item is done, until REPEAT begins again; true for an empty mission."""
        return self.state.finished

    def step(
        self,
        pose: ArrayLike,
        mission: Sequence[MissionItem] | NDArray[np.void],
        is_mode_done: bool = False,
        command: MissionCommand | int = MissionCommand.DEFAULT,
        home: ArrayLike = (0.0, 0.0, 0.0),
    ) -> MissionParams:
        """Return the item to fly now, and the one that was current before.

        `pose`: x, y, z (NED, m), course angle (rad); it and `home` may be column vectors.
        `mission`: the whole mission, every step; it may be empty, or an array of `bus`, (n,) or
        (n, 1), in single or double, or structures with its fields. `is_mode_done`: the item
        returned by the previous step has been carried out. `home`: launch position (NED, m).
        ValueError names the input that is wrong, such as an array of a bus with another name; such
        a step changes nothing.
        """
        position = finite_numbers(pose, 4, "pose")[:3]
        items = self._checked(mission)
        requested = command_of(command)
        home_position = finite_numbers(home, 3, "home")
        if self._is_single:
            position = position.astype(np.float32)
            home_position = home_position.astype(np.float32)
        if is_mode_done not in (0, 1):
            raise ValueError(f"is_mode_done: {is_mode_done!r}, expected true or false")

        self._advance(items, bool(is_mode_done))
        if requested is MissionCommand.REPEAT and self.finished and items:
            self.state.begin(0)
        self._switch(items, position, requested)

        state = self.state
        assert state.current is not None
        assert state.previous is not None
        if state.current.mode is MissionMode.RTL:
            state.current = self._in_type(replace(state.current, position=home_position))
        line = self._in_type(with_line(state.previous, state.current))
        return MissionParams(state.current, line)

    def _in_type(self, item: MissionItem) -> MissionItem:
        """Return an item in the manager's data type."""
        is_other = self._is_single and item.position.dtype != np.float32
        return in_single(item) if is_other else item

    def _checked(
        self, mission: Sequence[MissionItem] | NDArray[np.void]
    ) -> tuple[MissionItem, ...]:
        if mission is self.state.items:  # only a tuple can be, and those were checked
            return self.state.items

        name = bus_name(mission)
        if name not in ("", self.mission_bus_name):
            raise ValueError(f"mission: an array of {name}, expected {self.mission_bus_name}")
        elements = mission.reshape(-1) if isinstance(mission, np.ndarray) else mission
        items = tuple(
            self._in_type(item_of(value, f"mission item {number}"))
            for number, value in enumerate(elements)
        )
        if isinstance(mission, tuple) and all(map(operator.is_, items, mission)):
            items = mission  # known at the next step by its identity
        for number, item in enumerate(items):
            if item.mode in (MissionMode.ARMED, MissionMode.HOLD):
                mode = f"{item.mode.value} ({item.mode.name})"
                raise ValueError(
                    f"mission item {number}: mode {mode} is the manager's own, expected 1 to 6"
                )
        return items

    def _advance(self, items: tuple[MissionItem, ...], done: bool) -> None:
        """Begin a changed mission; otherwise go on to the next item if the current one is done."""
        state = self.state
        if state.items is not items and state.items != items:
            index = self._start_index if self._start_index < len(items) else 0
            state.begin(index, finished=not items)
            self._start_index = 0
        elif done and state.phase is MissionPhase.FLYING and not state.finished:
            if state.index + 1 < len(items):
                state.index += 1
            else:
                state.finished = True

        state.items = items

    def _switch(
        self, items: tuple[MissionItem, ...], position: Floats, command: MissionCommand
    ) -> None:
        """Make another item current if the phase asks for it; a hold begins at `position`."""
        state = self.state
        rests = state.finished and not (items and items[-1].mode in _STAYS_CURRENT)
        uncommanded = MissionPhase.HOLDING if rests else MissionPhase.FLYING
        phase = _INTERRUPTIONS.get(command, uncommanded)

        key = phase, 0, 0
        if phase is MissionPhase.FLYING:
            key = phase, state.index, state.repetition
        if key == self._current_key:
            return
        self._current_key = key

        armed = MissionItem(MissionMode.ARMED, position, NO_PARAMS)  # type: ignore[arg-type]
        state.previous = state.current or self._in_type(armed)
        if phase is MissionPhase.HOLDING:
            current = MissionItem(MissionMode.HOLD, position, self._hold_params)  # type: ignore[arg-type]
        elif phase is MissionPhase.RETURNING:
            current = MissionItem.return_to_launch(NO_PARAMS)
        else:
            current = items[state.index]
            if current.here:
                place = np.array((*position[:2], current.position[2]))
                current = replace(current, position=place, here=False)
        state.current = self._in_type(current)
        state.phase = phase
        state.switches += 1


def with_line(previous: MissionItem, current: MissionItem) -> MissionItem:
    """Return the previous item as a follower of straight lines needs it.

    If the current item is a WAYPOINT and the previous one is not, the first two params of the
    previous one become the course from it to the current position (rad, 0 for a vertical line) and
    LINE_RADIUS.
    """
    if current.mode is not MissionMode.WAYPOINT or previous.mode is MissionMode.WAYPOINT:
        return previous
    north, east = (current.position - previous.position)[:2]
    course = np.arctan2(east, north)  # in the items' precision
    if north == 0.0 and east == 0.0:  # atan2(0, 0) is 0, atan2(0, -0.0) is not
        course = np.float64(0.0)
    return replace(previous, params=np.array([course, LINE_RADIUS, *previous.params[2:]]))
