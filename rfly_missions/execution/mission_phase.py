# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Phases of a mission and the events that change them.

Theory of operation: a mission is a list of items, and exactly one thing is current at any time: an
item of the list, a hold or a return. `MissionPhase` says which, and remembers during an
interruption whether the last item is done. A step of PathManager looks up to three events in
`TRANSITIONS`, in this order:

1. Progress: BEGIN, or BEGIN_EMPTY, if the mission is new or has changed. Otherwise ITEM_DONE or
   LAST_ITEM_DONE, if the vehicle reports its item as done. Only an item that is flown can be done:
   the other phases have no such event, and the report is ignored.
2. Repetition: BEGIN once more, if the mission is finished and the command is REPEAT.
3. The command: CONTINUE, HOLD or RETURN. It acts as long as it is present; when it ends, the
   mission goes on with the interrupted item.

A finished mission keeps its last item current if that is LAND or RTL; otherwise the vehicle holds.
"""

from __future__ import annotations

from enum import Enum, auto

from rfly_missions.mission.items import MissionCommand


class MissionPhase(Enum):
    """The state of one vehicle's mission."""

    IDLE = auto()
    """No step has been made yet."""
    FLYING = auto()
    """An item of the mission is current."""
    HOLDING = auto()
    """HOLD interrupts the mission."""
    RETURNING = auto()
    """RTL interrupts the mission."""
    FINISHED = auto()
    """The last item is done, or the mission is empty."""
    FINISHED_HOLDING = auto()
    """HOLD is commanded, and there is no item to resume."""
    FINISHED_RETURNING = auto()
    """RTL is commanded, and there is no item to resume."""

    @property
    def is_finished(self) -> bool:
        """True if no item is left, whatever the command."""
        return self in _FINISHED


class MissionEvent(Enum):
    """A cause of a transition."""

    BEGIN = auto()
    """A mission with items begins: a new one, a changed one, or a repetition."""
    BEGIN_EMPTY = auto()
    """A mission without items begins."""
    ITEM_DONE = auto()
    """The current item is done, and another one follows."""
    LAST_ITEM_DONE = auto()
    """The current item is done, and no other follows."""
    CONTINUE = auto()
    """The command is DEFAULT or REPEAT."""
    HOLD = auto()
    """The command is HOLD."""
    RETURN = auto()
    """The command is RTL."""


class ShownPhase(Enum):
    """The phase as others see it; the numbers are those of the message MissionParams."""

    IDLE = 0
    """No mission has been loaded yet."""
    FLYING = 1
    """An item is current."""
    HOLDING = 2
    """The vehicle holds: a command interrupts the mission."""
    RETURNING = 3
    """The vehicle returns: a command interrupts the mission."""
    FINISHED = 4
    """No item is left."""


_FINISHED = frozenset(
    {MissionPhase.FINISHED, MissionPhase.FINISHED_HOLDING, MissionPhase.FINISHED_RETURNING}
)

TRANSITIONS: dict[MissionPhase, dict[MissionEvent, MissionPhase]] = {
    MissionPhase.IDLE: {
        MissionEvent.BEGIN: MissionPhase.FLYING,
        MissionEvent.BEGIN_EMPTY: MissionPhase.FINISHED,
    },
    MissionPhase.FLYING: {
        MissionEvent.BEGIN: MissionPhase.FLYING,
        MissionEvent.BEGIN_EMPTY: MissionPhase.FINISHED,
        MissionEvent.ITEM_DONE: MissionPhase.FLYING,
        MissionEvent.LAST_ITEM_DONE: MissionPhase.FINISHED,
        MissionEvent.CONTINUE: MissionPhase.FLYING,
        MissionEvent.HOLD: MissionPhase.HOLDING,
        MissionEvent.RETURN: MissionPhase.RETURNING,
    },
    MissionPhase.HOLDING: {
        MissionEvent.BEGIN: MissionPhase.HOLDING,
        MissionEvent.BEGIN_EMPTY: MissionPhase.FINISHED_HOLDING,
        MissionEvent.CONTINUE: MissionPhase.FLYING,
        MissionEvent.HOLD: MissionPhase.HOLDING,
        MissionEvent.RETURN: MissionPhase.RETURNING,
    },
    MissionPhase.RETURNING: {
        MissionEvent.BEGIN: MissionPhase.RETURNING,
        MissionEvent.BEGIN_EMPTY: MissionPhase.FINISHED_RETURNING,
        MissionEvent.CONTINUE: MissionPhase.FLYING,
        MissionEvent.HOLD: MissionPhase.HOLDING,
        MissionEvent.RETURN: MissionPhase.RETURNING,
    },
    MissionPhase.FINISHED: {
        MissionEvent.BEGIN: MissionPhase.FLYING,
        MissionEvent.BEGIN_EMPTY: MissionPhase.FINISHED,
        MissionEvent.CONTINUE: MissionPhase.FINISHED,
        MissionEvent.HOLD: MissionPhase.FINISHED_HOLDING,
        MissionEvent.RETURN: MissionPhase.FINISHED_RETURNING,
    },
    MissionPhase.FINISHED_HOLDING: {
        MissionEvent.BEGIN: MissionPhase.HOLDING,
        MissionEvent.BEGIN_EMPTY: MissionPhase.FINISHED_HOLDING,
        MissionEvent.CONTINUE: MissionPhase.FINISHED,
        MissionEvent.HOLD: MissionPhase.FINISHED_HOLDING,
        MissionEvent.RETURN: MissionPhase.FINISHED_RETURNING,
    },
    MissionPhase.FINISHED_RETURNING: {
        MissionEvent.BEGIN: MissionPhase.RETURNING,
        MissionEvent.BEGIN_EMPTY: MissionPhase.FINISHED_RETURNING,
        MissionEvent.CONTINUE: MissionPhase.FINISHED,
        MissionEvent.HOLD: MissionPhase.FINISHED_HOLDING,
        MissionEvent.RETURN: MissionPhase.FINISHED_RETURNING,
    },
}
"""The next phase, by phase and event; an event that is missing cannot happen in that phase."""

COMMAND_EVENTS = {
    MissionCommand.DEFAULT: MissionEvent.CONTINUE,
    MissionCommand.REPEAT: MissionEvent.CONTINUE,
    MissionCommand.HOLD: MissionEvent.HOLD,
    MissionCommand.RTL: MissionEvent.RETURN,
}

SHOWN = {
    MissionPhase.IDLE: ShownPhase.IDLE,
    MissionPhase.FLYING: ShownPhase.FLYING,
    MissionPhase.HOLDING: ShownPhase.HOLDING,
    MissionPhase.RETURNING: ShownPhase.RETURNING,
    MissionPhase.FINISHED: ShownPhase.HOLDING,
    MissionPhase.FINISHED_HOLDING: ShownPhase.HOLDING,
    MissionPhase.FINISHED_RETURNING: ShownPhase.RETURNING,
}
"""What the vehicle does, by phase; a final LAND or RTL replaces the hold of FINISHED."""
