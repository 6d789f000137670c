# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Route of a mission guide, and the interface of the guide's parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_missions.mission.legs import Leg
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import Solids


@dataclass
class Route:
    """Legs that a guide and its parts follow, with the map and a log."""

    params: VehicleParameters
    """The vehicle."""

    terrain: HeightMap | None = None
    """Map of the ground; None: it is level."""

    solids: Solids | None = None
    """Known objects on the ground; None: none."""

    legs: tuple[Leg, ...] = ()
    """All legs."""

    index: int = 0
    """Index of the present leg; the number of legs at the end."""

    log: list[tuple[float, str]] = field(default_factory=list)
    """Events with their times, s."""

    @property
    def leg(self) -> Leg:
        """Present leg."""
        return self.legs[self.index]

    @property
    def at_end(self) -> bool:
        """True if no leg is left."""
        return self.index == len(self.legs)

    @property
    def following(self) -> Leg | None:
        """Leg after the present one; None if there is none."""
        return next(iter(self.legs[self.index + 1 :]), None)

    def note(self, time: float, text: str) -> None:
        """Log an event at a time, s."""
        self.log.append((time, text))

    def replace(self, legs: Iterable[Leg]) -> None:
        """Put legs in the place of the present one."""
        self.legs = (*self.legs[: self.index], *legs, *self.legs[self.index + 1 :])


class RoutePart(Protocol):
    """Part of a mission guide, which keeps a state of its own while a leg is followed."""

    def begin(self) -> None:
        """Forget everything, because other legs begin."""

    def leave(self, leg: Leg) -> None:
        """Forget the state of a leg that has ended."""
