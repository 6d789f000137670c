"""PathManager: state machine over mission items that hands guidance the current and the previous one.

No clock and no dynamics: somebody else says when the current item is done. Follows the Path Manager block and the
`uavPathManager` System object of UAV Toolbox (reference pages pathmanager and uavpathmanager-system-object).
Where those pages are silent: an interruption is resumed at the interrupted item; a hold keeps the position at which it
began; home is read at every step; an equal mission sent again is no change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_trajectory.missions.items import (
    MissionCommand,
    MissionItem,
    MissionMode,
    MissionParams,
    command_of,
    finite_numbers,
)

NO_PARAMS = (-1.0, -1.0, -1.0, -1.0)
LINE_RADIUS = 25.0
"""m, the transition radius that is written into a previous item which has none of its own"""

_STAYS_SHOWN = (MissionMode.LAND, MissionMode.RTL)


class PathManager:
    """State machine over mission items, for one vehicle.

    `uav_type`: "multirotor" hovers on HOLD, "fixed-wing" circles with `loiter_radius` (m) in `hold_turn_direction`
    (1 clockwise, -1 counter-clockwise, 0 the follower chooses). ValueError for anything else.
    """

    def __init__(
        self,
        uav_type: Literal["multirotor", "fixed-wing"] = "multirotor",
        loiter_radius: float = 25.0,
        hold_turn_direction: int = 0,
    ) -> None:
        if uav_type not in ("multirotor", "fixed-wing"):
            raise ValueError(f"uav_type: {uav_type!r}, expected 'multirotor' or 'fixed-wing'")
        if not (math.isfinite(loiter_radius) and loiter_radius > 0):
            raise ValueError(f"loiter_radius: {loiter_radius!r}, expected a positive finite number of metres")
        if hold_turn_direction not in (-1, 0, 1):
            raise ValueError(f"hold_turn_direction: {hold_turn_direction!r}, expected -1, 0 or 1")
        fixed_wing = uav_type == "fixed-wing"
        self._hold_params = (loiter_radius, float(hold_turn_direction), -1.0, -1.0) if fixed_wing else NO_PARAMS
        self.reset()

    def reset(self) -> None:
        """As new: the next step is a first step."""
        self._mission: tuple[MissionItem, ...] | None = None
        self._index = 0
        self._finished = False
        self._pass = 0
        self._shown: tuple[str, int, int] | None = None  # kind, index, pass
        self._current: MissionItem | None = None
        self._previous: MissionItem | None = None
        self._switches = 0

    def start_over(self) -> None:
        """Take the mission of the next step as a changed one, even where it is equal: from its first item on."""
        self._mission = None

    @property
    def switches(self) -> int:
        """How often something else was shown than before: an item, hold or return, or the same item in a new pass."""
        return self._switches

    @property
    def shows_item(self) -> bool:
        """The last step showed an item of the mission, not a hold or a commanded return."""
        return self._shown is not None and self._shown[0] == "item"

    @property
    def index(self) -> int:
        """The item to fly now or to resume; the last one when the mission is finished."""
        return self._index

    @property
    def finished(self) -> bool:
        """The last item has been reported done (and REPEAT has not started over); true for an empty mission."""
        return self._finished

    def step(
        self,
        pose: ArrayLike,
        mission: Sequence[MissionItem],
        is_mode_done: bool = False,
        command: MissionCommand | int = MissionCommand.DEFAULT,
        home: ArrayLike = (0.0, 0.0, 0.0),
    ) -> MissionParams:
        """What to fly now.

        `pose`: x, y, z (NED, m), course angle (rad). `mission`: the whole of it, every step; may be empty.
        `is_mode_done`: the item returned by the previous step has been carried out. `home`: launch position, NED m.
        ValueError names the input that is wrong; such a step changes nothing.
        """
        position = finite_numbers(pose, 4, "pose")[:3]
        items = self._checked(mission)
        wanted = command_of(command)
        launch = finite_numbers(home, 3, "home")
        if is_mode_done not in (0, 1):
            raise ValueError(f"is_mode_done: {is_mode_done!r}, expected true or false")

        self._advance(items, bool(is_mode_done), wanted)
        self._show(self._to_show(items, wanted), items, position)
        assert self._current is not None
        assert self._previous is not None
        if self._current.mode is MissionMode.RTL:
            self._current = replace(self._current, position=launch)
        return MissionParams(self._current, with_line(self._previous, self._current))

    def _checked(self, mission: Sequence[MissionItem]) -> tuple[MissionItem, ...]:
        if mission is self._mission:  # only a tuple can be, and those were checked
            return self._mission
        items = tuple(mission)
        for number, item in enumerate(items):
            if not isinstance(item, MissionItem):
                raise ValueError(f"mission item {number}: {item!r}, expected a MissionItem")
            if item.mode in (MissionMode.ARMED, MissionMode.HOLD):
                raise ValueError(
                    f"mission item {number}: mode {item.mode.value} ({item.mode.name}) is the manager's own, "
                    "expected 1 to 6"
                )
        return items

    def _advance(self, items: tuple[MissionItem, ...], done: bool, command: MissionCommand) -> None:
        if self._mission is not items and self._mission != items:
            self._index, self._finished = 0, not items
            self._pass += 1
        elif done and self._shown is not None and self._shown[0] == "item" and not self._finished:
            if self._index + 1 < len(items):
                self._index += 1
            else:
                self._finished = True
        self._mission = items
        if self._finished and items and command is MissionCommand.REPEAT:
            self._index, self._finished = 0, False
            self._pass += 1

    def _to_show(self, items: tuple[MissionItem, ...], command: MissionCommand) -> tuple[str, int, int]:
        if command is MissionCommand.HOLD:
            return "hold", 0, 0
        if command is MissionCommand.RTL:
            return "return", 0, 0
        if self._finished and not (items and items[-1].mode in _STAYS_SHOWN):
            return "hold", 0, 0
        return "item", self._index, self._pass

    def _show(self, shown: tuple[str, int, int], items: tuple[MissionItem, ...], position: NDArray[np.float64]) -> None:
        if shown == self._shown:
            return
        self._previous = self._current or MissionItem(MissionMode.ARMED, position, NO_PARAMS)  # type: ignore[arg-type]
        if shown[0] == "hold":
            self._current = MissionItem(MissionMode.HOLD, position, self._hold_params)  # type: ignore[arg-type]
        elif shown[0] == "return":
            self._current = MissionItem.return_to_launch(NO_PARAMS)
        else:
            self._current = items[self._index]
        self._shown = shown
        self._switches += 1


def with_line(previous: MissionItem, current: MissionItem) -> MissionItem:
    """`previous` as a follower of straight lines needs it.

    Before a WAYPOINT, params 1 and 2 of anything but another WAYPOINT become the course from it to the current
    position (rad, 0 for a vertical line) and LINE_RADIUS.
    """
    if current.mode is not MissionMode.WAYPOINT or previous.mode is MissionMode.WAYPOINT:
        return previous
    north, east = (current.position - previous.position)[:2].tolist()
    course = math.atan2(east, north)  # atan2(0, 0) is 0, atan2(0, -0.0) is not
    if north == 0.0 and east == 0.0:
        course = 0.0
    return replace(previous, params=np.array([course, LINE_RADIUS, *previous.params[2:]]))
