# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Items that say where a vehicle looks: MAVLink's regions of interest (ROI)."""

from __future__ import annotations

from typing import NamedTuple

from rfly_missions.mission.items import MissionItem, Ned
from rfly_missions.mission.mavlink_items import DO_SET_ROI, DO_SET_ROI_LOCATION, DO_SET_ROI_NONE

ROI_COMMANDS = frozenset({DO_SET_ROI_LOCATION, DO_SET_ROI_NONE, DO_SET_ROI})
"""Commands that an item carries out at once, and that last until the next one."""
AT_A_PLACE = 3.0
"""MAV_ROI_LOCATION, the only mode of DO_SET_ROI besides none that is carried out."""


class Look(NamedTuple):
    """A change of what the vehicle looks at."""

    target: Ned | None
    """The place; None: nothing, so that the nose turns along the way again."""


def look_of(item: MissionItem) -> Look | None:
    """Return the change that an item makes; None if it makes none."""
    if item.command not in ROI_COMMANDS:
        return None
    is_place = item.command == DO_SET_ROI_LOCATION
    if item.command == DO_SET_ROI:
        is_place = float(item.params[0]) == AT_A_PLACE
    north, east, down = item.position.tolist()
    return Look((north, east, down) if is_place else None)


def look_item(target: Ned | None, here: Ned) -> MissionItem:
    """Return the item that looks at a place; None: at nothing any more."""
    if target is None:
        return MissionItem.mavlink(DO_SET_ROI_NONE, here)
    return MissionItem.mavlink(DO_SET_ROI_LOCATION, target)
