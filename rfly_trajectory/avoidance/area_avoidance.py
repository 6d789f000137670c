# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A fleet whose vehicles keep clear of each other, moved by nodes that share it by areas.

Theory of operation. Whose vehicle it is follows from the plan and the stamp, see `area_shards`.
That a vehicle is late or off its track changes nothing about it, so none is lost and none comes
twice, whatever messages are lost. Nodes only have to send each other the places of vehicles that
are not where their plans have them.

Each node moves its own vehicles, and as *ghosts* those of others that are near them. All nodes
choose in the same way from the same states, so a ghost goes the way that its own node chooses, as
long as both know the same. After each step a node tells the states of its vehicles that are late or
off their tracks; all others in its area are on their plans. The others put their ghosts there. A
ghost of which nothing is told goes on by its own choices; a vehicle that is no ghost counts as back
on its track then, as late as it was. A node that gets a vehicle goes on from its ghost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError
from rfly_trajectory.avoidance.avoidance import CLIMB, MEMORY, SPEED, STEP, TURN
from rfly_trajectory.avoidance.fleet_avoidance import FleetAvoidance, Instant, velocity_of
from rfly_trajectory.fleet.area_shards import ShardArea
from rfly_trajectory.fleet.fleet import Fleet

if TYPE_CHECKING:
    from rfly_terrain.world.solids import Solids

MOST_APART = 40
"""Steps by which a report may differ from the present; others are of another run."""
FASTER = 2.0
"""Speeds above this multiple of what a vehicle can do, or its plan has, are impossible."""
SLOWING_DOWN_S = np.arange(0.0, 10.0, 0.25)
"""Ages of plans, s, whose speeds a vehicle off its track may still have."""
LOOK_AROUND = 10
"""Steps after which a node looks again which vehicles are near its own."""


class OffPlan(NamedTuple):
    """Vehicles of an area, at the end of a step, that are not where their plans have them."""

    step: int
    """Steps of STEP since the start of the fleet's time."""
    area: ShardArea
    ids: Ints
    """Ids, (k,)."""
    on_track: Bools
    """True for those that are late only, (k,)."""
    late: Floats
    """Time by which they are behind their plans, (k,), s."""
    state: Floats
    """States, (k, 7), see `avoidance`."""
    memory: Floats
    """`Avoidance.memory`, (k, MEMORY)."""


class AreaAvoidance(FleetAvoidance):
    """A fleet whose vehicles within `area` are moved here.

    `other_areas()` returns the areas of the other nodes.
    """

    def __init__(
        self,
        fleet: Fleet,
        time: float,
        solids: Solids | None,
        area: ShardArea,
        other_areas: Callable[[], Sequence[ShardArea]],
    ) -> None:
        self.area = area
        self._other_areas = other_areas
        self._ids: Ints
        self._told: Instant
        """What others have told last, (n,), at the steps `_heard`."""
        self._told_memory: Floats
        self._heard: Ints
        """Steps of what others have told last, (n,)."""
        self._news: Bools
        """True for vehicles that have not been put there yet, (n,)."""
        super().__init__(fleet, time, solids)

    @property
    def step(self) -> int:
        """Number of steps since the start of the fleet's time."""
        return round(self._time / STEP)

    def use(self, fleet: Fleet, solids: Solids | None, placed: Collection[str] = ()) -> None:
        """Go on with other vehicles, paths, ground or objects, as `FleetAvoidance` does."""
        super().use(fleet, solids, placed)
        self._look_around()

    def off_plan(self) -> OffPlan:
        """Return the vehicles of this area that are not where their plans have them."""
        now = self._now
        rows = np.flatnonzero(self._mine & (~now.on_track | (now.late > 0.0)))
        return OffPlan(
            self.step,
            self.area,
            self._ids[rows],
            now.on_track[rows],
            now.late[rows],
            now.state[rows],
            self._avoidance.memory[self._places_of(rows)],
        )

    def hear(self, told: OffPlan) -> None:
        """Take another node's report; one that is older than its last changes nothing.

        Raises ConfigError for a vehicle that is faster than it can be, and takes nothing then.
        """
        if abs(told.step - self.step) > MOST_APART:
            return
        _, rows, named = np.intersect1d(self._ids, told.ids, return_indices=True)
        self._check_speeds(told, rows, named)
        places = self.fleet.places(told.step * STEP)
        theirs = told.area.holds(places) & ~self.area.holds(places) & (self._heard < told.step)
        self._heard[theirs] = told.step
        self._news |= theirs

        # all of them are on their plans, but for those that are named
        on_plan = self._told.changed(theirs, self._told.state[theirs], 0.0, True)
        named = named[theirs[rows]]
        rows = rows[theirs[rows]]
        self._told = on_plan.changed(
            rows, told.state[named], told.late[named], told.on_track[named]
        )
        self._told_memory[rows] = told.memory[named]

    def _check_speeds(self, told: OffPlan, rows: Ints, named: Ints) -> None:
        """Raise ConfigError for a vehicle off its track that is faster than it can be.

        It leaves its track as fast as its plan has it, which may be faster than it flies else, and
        slows down from that.
        """
        able = np.column_stack([self._able.most[rows], self._able.climb[rows]])
        speeds = np.abs(told.state[named, SPEED : CLIMB + 1])
        is_fast = (speeds > FASTER * able + 1.0).any(axis=1) & ~told.on_track[named]
        able = able[is_fast]
        speeds = speeds[is_fast]
        named = named[is_fast]

        # its plan, in the time in which it slows down
        own = told.step * STEP - told.late[named, None] - SLOWING_DOWN_S
        times = own.ravel()
        planned = self._planned(
            np.repeat(rows[is_fast], len(SLOWING_DOWN_S)), times, np.ones(len(times))
        )
        planned = np.abs(planned[:, SPEED : CLIMB + 1]).reshape(*own.shape, 2).max(axis=1)
        most = FASTER * np.maximum(able, planned) + 1.0
        wrong = np.argwhere(speeds > most)
        if len(wrong):
            row, column = wrong[0]
            raise ConfigError(
                f"vehicle {told.ids[named[row]]} at {speeds[row, column]:g} m/s, "
                f"expected at most {most[row, column]:.3g} m/s",
                key="state",
            )

    def _place_on_tracks(self, time: float) -> None:
        n = len(self.fleet)
        super()._place_on_tracks(STEP * math.floor(time / STEP + 1e-6))  # steps of all nodes
        self._ids = np.array([vehicle.id for vehicle in self.fleet.vehicles], np.int64)
        self._mine = self._held_at(self._time)
        self._rows = np.flatnonzero(self._mine)

        self._told = self._now
        self._told_memory = np.zeros((n, MEMORY))
        self._heard = np.full(n, -MOST_APART)
        self._news = np.zeros(n, bool)

    def _put_on_tracks(self, time: float) -> None:
        super()._put_on_tracks(time)
        self._look_around()

    def _step(self) -> None:
        self._take_news()
        comes = self._held_at(self._time + STEP)
        if self.step % LOOK_AROUND == 0 or (self._places_of(np.flatnonzero(comes)) < 0).any():
            self._look_around()
        super()._step()
        self._time = STEP * round(self._time / STEP)
        self._mine = comes

    def _held_at(self, time: float) -> Bools:
        """Return which vehicles are moved here at a fleet time, s."""
        return self.area.holds(self.fleet.places(time))

    def _take_news(self) -> None:
        """Put the vehicles of others at the places of their reports."""
        rows = np.flatnonzero(self._news & ~self._mine)
        self._news[:] = False
        if not len(rows):
            return
        late = self._told.late[rows]
        on_track = self._told.on_track[rows]

        # from the step that was told to the present one
        state = self._told.state[rows]
        velocity = velocity_of(state)
        lag = STEP * (self.step - self._heard[rows])
        state[:, :3] += lag[:, None] * velocity
        state[on_track] = self._on_track(rows[on_track], late[on_track])
        before = state.copy()
        before[:, :3] -= STEP * velocity
        self._before = self._before.changed(rows, before, late, on_track)
        self._now = self._now.changed(rows, state, late, on_track)

        # ghosts
        places = self._places_of(rows)
        moved = places >= 0
        self._avoidance.state[places[moved]] = state[moved]
        named = moved & (~on_track | (late > 0.0))
        self._avoidance.recall(places[named], self._told_memory[rows[named]])

    def _on_track(self, rows: Ints, late: Floats) -> Floats:
        """Return the states of vehicles that are on their tracks now, (k, 7)."""
        side = np.where(self._now.state[rows, TURN] < 0.0, -1.0, 1.0)
        return self._planned(rows, self._time - late, side)

    def _look_around(self) -> None:
        """Move from now on the own vehicles, those that come soon and those that are near them."""
        time = self._time
        now = self._now
        ahead = (0.0, STEP, LOOK_AROUND * STEP)
        mine = np.logical_or.reduce([self._held_at(time + more) for more in ahead])
        theirs = np.zeros(len(mine), bool)
        planned = self.fleet.places(time)
        for area in self._other_areas():
            theirs |= area.holds(planned)

        # one of which nothing has come for long is back on its track
        unmoved = self._places_of(np.arange(len(mine))) < 0
        silent = self.step - self._heard > MOST_APART
        back = np.flatnonzero(unmoved & silent & ~now.on_track)
        late = now.late[back]
        now = now.changed(back, now.state[back], late, True)
        self._before = self._before.changed(back, now.state[back], late, True)

        # where they are
        rest = np.flatnonzero(now.on_track & unmoved)
        state = now.state.copy()
        state[rest] = self._on_track(rest, now.late[rest])
        self._now = now._replace(state=state)
        near = _near(state[:, :2], mine, self._sight)

        rows = np.flatnonzero(mine | (theirs & near))
        kept = self._places_of(rows)
        self._rows = rows
        self._renew(kept)

    @property
    def _sight(self) -> float:
        """Distance within which vehicles count for each other, m."""
        from rfly_trajectory.kernels.avoidance_kernels import INTENT_PLACES, INTENT_STEP

        able = self._able
        speed = able.most + able.gain * STEP
        bend = np.where(able.least > 0.0, 2.0 * speed**2 / able.lateral, 0.0)
        stop = 2.0 * speed * STEP + np.maximum(0.5 * speed**2 / able.brake, bend)
        meets = (speed + 1.0) * INTENT_STEP * (INTENT_PLACES - 1) + 2.0 * able.radius
        return float(2.0 * np.maximum(stop + able.radius + able.wash, meets).max(initial=0.0))


def _near(places: Floats, mine: Bools, cell: float) -> Bools:
    """Return which places (n, 2) are in the square cell of an own one, or in one next to it."""
    cells = np.floor(places / cell).astype(np.int64)
    numbers = cells[:, 0] * 2**32 + cells[:, 1]
    own = np.unique(numbers[mine])
    steps = (2**32 * i + j for i, j in itertools.product((-1, 0, 1), repeat=2))
    return np.isin(numbers, np.concatenate([own + step for step in steps]))
