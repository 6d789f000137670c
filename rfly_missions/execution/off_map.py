# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Items that lie off the map, where the height of its edge stands for the unknown ground."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rfly_missions.execution.flown_items import custom_as_flown
from rfly_missions.mission.items import MissionItem, MissionMode
from rfly_terrain.height_map.height_map import HeightMap

MOST_LISTED = 5
"""Number of items that notes name one by one."""
LEAST_BEYOND = 0.01
"""Distance beyond an edge, m, from which an item counts: degrees in files are rounded."""
_WITH_PLACE = (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.LAND)


@dataclass(frozen=True)
class ItemOffMap:
    """An item that lies, or whose circle reaches, beyond an edge of the map."""

    index: int
    """Index in the mission."""
    mode: MissionMode
    edge: str
    """Edge beyond which it lies farthest: west, east, south or north."""
    distance: float
    """Distance from that edge, m."""


def items_off_map(
    items: Sequence[MissionItem], terrain: HeightMap, loiter_radius: float | None = None
) -> list[ItemOffMap]:
    """Return the items, NED in the map's frame, that lie or circle beyond the map's samples.

    `loiter_radius`: m, of a fixed-wing aircraft; None for a vehicle that can stand still.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    found = []
    for index, item in enumerate(items):
        way = item
        if item.mode is MissionMode.CUSTOM:
            way = custom_as_flown(item, (0.0, 0.0, 0.0), None, loiter_radius)
        if way.mode not in _WITH_PLACE:
            continue

        north, east, _ = way.position.tolist()
        radius = float(way.params[0]) if way.mode is MissionMode.ORBIT else 0.0
        beyond = {
            "west": x_min - east + radius,
            "east": east + radius - x_max,
            "south": y_min - north + radius,
            "north": north + radius - y_max,
        }
        edge = max(beyond, key=beyond.__getitem__)
        if beyond[edge] > LEAST_BEYOND:
            found.append(ItemOffMap(index, item.mode, edge, beyond[edge]))
    return found


def off_map_notes(off_map: Sequence[ItemOffMap]) -> Iterator[str]:
    """Yield a sentence for each of these items, the first few of many."""
    for item in off_map[:MOST_LISTED]:
        yield (
            f"item {item.index} ({item.mode.name}) reaches {item.distance:.1f} m beyond the map's "
            f"{item.edge} edge; the ground there is unknown, and the edge's height stands for it"
        )
    if len(off_map) > MOST_LISTED:
        yield f"{len(off_map) - MOST_LISTED} more items reach beyond the map"
