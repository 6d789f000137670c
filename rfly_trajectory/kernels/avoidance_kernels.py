# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""One step of vehicles that keep clear of each other.

Theory of operation. Every vehicle has a *fallback*, a manoeuvre with which it can go on for ever:
it brakes to a stop, or circles. The fallbacks of all vehicles leave room between each other, and
this never changes: in the order of their numbers vehicles look for a step that goes towards their
wish, and take it only if the fallback after that step leaves room to the present fallbacks of all
others. If no such step is found, the vehicle takes a step of its own fallback. So no two of these
vehicles meet, if their fallbacks leave room at first (Bekris et al., Safe distributed motion
coordination for second-order systems with different planning cycles, IJRR 31, 2012).

Among the safe steps the vehicle chooses by *intents*: where each vehicle will be in the next
seconds if it goes on as it has chosen. A wish that meets the intent of another costs more the
earlier that happens (penalty of van den Berg et al., Reciprocal velocity obstacles, ICRA 2008, with
the intents in the place of velocities).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import inner_kernel, kernel
from rfly_terrain.height_map.ground import GroundGrid
from rfly_trajectory.kernels.clear_way_kernels import (
    SLACK,
    WASH_SPREAD,
    body_of,
    room_among_prisms,
    room_beside_stranger,
    room_between,
    room_of_fallbacks,
    room_over_ground,
)
from rfly_trajectory.kernels.manoeuvre_kernels import (
    MAX_OPTIONS,
    STANDSTILL,
    State,
    advanced,
    circle_of,
    fallen_back,
    limited,
    option_cost,
    write_fallback,
    write_intent,
    write_options,
)
from rfly_trajectory.kernels.neighbour_kernels import CellGrid, grid_of, points_around
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, AbilityTable, Prisms, Strangers

# what a vehicle did in a step
FOLLOWED = 0
"""It went for its wish."""
AVOIDED = 1
"""It went for another course or speed."""
FELL_BACK = 2
"""It found nothing better than its fallback."""

INTENT_STEP = 0.3
"""Time between the places of an intent, s."""
INTENT_PLACES = 17
"""Places of an intent: 4.8 s."""
STRANGER_STEPS = 8
"""Steps of an intent that count beside strangers: after 2.4 s they may be almost anywhere."""
SEEN = 12
"""Vehicles whose intents count for a choice: the nearest ones."""
COMFORT = 0.25
"""Room that is kept beside an intent, as a share of both radii."""

CONFLICT_COST = 3.0
"""Cost of meeting an intent at once, in units of losing the whole wished speed."""
WAIT_COST = 0.25
"""Cost of each second of waiting so far."""
LONGEST_WAIT = 8.0
"""Time of waiting that costs more than a shorter one, s."""
STANDS = 0.1
"""Share of the wished speed below which a vehicle waits."""

BACK_OFF = (2.0, 0.7, 5)
"""Time for which a vehicle that begins to back off goes on with it, s: the least one, and steps by
which it differs between vehicles with successive numbers, so that two do not come back together."""
BACK_OFF_ROOM = 0.9
"""Time for which the way behind has to be free for that, s."""


class Surroundings(NamedTuple):
    """All that is not one of the vehicles."""

    ground: GroundGrid
    """Ground."""
    prisms: Prisms
    """Objects that stand still."""
    strangers: Strangers
    """Vehicles that others move."""
    stranger_motion: Floats
    """Their positions and velocities, (k, 6), m, m/s."""


class Plans(NamedTuple):
    """What n vehicles are to do."""

    wish: Floats
    """Course, rad, speed, m/s, climb, m/s, and rate of the course, rad/s, (n, 4)."""
    state: Floats
    """State after the step, (n, 7), where `exact`."""
    exact: Bools
    """True for vehicles that go to a state exactly if that is safe, (n,)."""


class AvoidanceMemory(NamedTuple):
    """What n vehicles keep from step to step."""

    state: Floats
    """States, (n, 7)."""
    choice: Floats
    """Last wishes that they went for, (n, 4), as in `Plans`."""
    waited: Floats
    """Time for which they have been waiting, (n,), s."""
    backing: Floats
    """Time for which they still back off, (n,), s; 0 for those that do not."""


class _Ways(NamedTuple):
    """Ways of n vehicles from now on."""

    fallback: Floats
    """Places of the fallbacks, (n, m, 3), a step apart."""
    last: Ints
    """Numbers of the last places, (n,)."""
    circle: Floats
    """Signed radii of the circles at their ends, (n,), m."""
    intent: Floats
    """Places of the intents, (n, INTENT_PLACES, 3), INTENT_STEP apart."""
    reach: Floats
    """Distance from a vehicle within which its next fallback is, (n,), m."""


Counts = tuple[int, int, int, int]
"""Numbers of near fallbacks, intents, objects and strangers."""


class _Near(NamedTuple):
    """Numbers of what is near one vehicle."""

    fallbacks: Ints
    intents: Ints
    intent_distance: Floats
    intent_room: Floats
    """Room beyond which each of them is no conflict, m."""
    prisms: Ints
    strangers: Ints
    around: Ints
    """All points of the grid's cells."""


@inner_kernel
def state_of(states: Floats, i: int) -> State:
    """Return the state of vehicle i as numbers."""
    return (
        states[i, 0],
        states[i, 1],
        states[i, 2],
        states[i, 3],
        states[i, 4],
        states[i, 5],
        states[i, 6],
    )


@inner_kernel
def fallback_reach(able: AbilityTable, i: int, state: State, dt: float) -> float:
    """Return the distance within which the next fallback of vehicle i is, m."""
    speed = abs(state[4]) + able.gain[i] * dt
    reach = speed * dt + able.radius[i]
    if able.kind[i] == FIXED_WING:
        return reach + 2.0 * speed * speed / able.lateral[i]
    return reach + 0.5 * speed * speed / able.brake[i] + speed * dt


@inner_kernel
def ways_of(
    able: AbilityTable, memory: AvoidanceMemory, scene: Surroundings, dt: float, places: int
) -> _Ways:
    """Return the present fallbacks and intents of all vehicles."""
    n = len(memory.state)
    ways = _Ways(
        np.zeros((n, places, 3)),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros((n, INTENT_PLACES, 3)),
        np.zeros(n),
    )
    for i in range(n):
        state = state_of(memory.state, i)
        ways.last[i] = write_fallback(able, i, state, dt, 0, ways.fallback[i])
        ways.circle[i] = circle_of(able, i, state)
        if able.kind[i] == FIXED_WING:
            # the first step is on the circle too: write it as places, not as the centre
            after = fallen_back(able, i, state, dt)
            ways.last[i] = write_fallback(able, i, after, dt, 1, ways.fallback[i])
        room_over_ground(able, i, scene.ground, ways.fallback[i], 0, ways.last[i], ways.circle[i])

        write_intention(able, i, state, memory.choice[i], ways.intent[i])
        room_over_ground(able, i, scene.ground, ways.intent[i], 0, INTENT_PLACES - 1, 0.0)
        ways.reach[i] = fallback_reach(able, i, state, dt)
    return ways


@inner_kernel
def write_intention(
    able: AbilityTable, i: int, state: State, choice: Floats, intent: Floats
) -> None:
    """Write the intent of a choice (4,) -> intent."""
    wish = (choice[0], choice[1], choice[2])
    write_intent(able, i, state, wish, choice[3], INTENT_STEP, intent)


@inner_kernel
def find_near(
    i: int,
    states: Floats,
    ways: _Ways,
    grid: CellGrid,
    scene: Surroundings,
    able: AbilityTable,
    near: _Near,
) -> Counts:
    """Write what is near vehicle i -> near; return how much that is."""
    x = states[i, 0]
    y = states[i, 1]
    fallbacks = 0
    intents = 0
    speed = abs(states[i, 4])
    horizon = INTENT_STEP * (INTENT_PLACES - 1)
    for place in range(points_around(grid, states, x, y, near.around)):
        j = near.around[place]
        if j == i:
            continue
        distance = math.hypot(states[j, 0] - x, states[j, 1] - y)
        if distance <= ways.reach[i] + ways.reach[j] + able.wash[i] + able.wash[j]:
            near.fallbacks[fallbacks] = j
            fallbacks += 1

        # the nearest intents, by insertion
        closing = (speed + abs(states[j, 4]) + 1.0) * horizon
        if distance > closing + 2.0 * (able.radius[i] + able.radius[j]):
            continue
        if intents == SEEN and distance >= near.intent_distance[SEEN - 1]:
            continue
        slot = intents if intents < SEEN else SEEN - 1
        while slot > 0 and near.intent_distance[slot - 1] > distance:
            near.intent_distance[slot] = near.intent_distance[slot - 1]
            near.intents[slot] = near.intents[slot - 1]
            slot -= 1
        near.intent_distance[slot] = distance
        near.intents[slot] = j
        intents = min(intents + 1, SEEN)

    # static objects
    reach = ways.reach[i] + (speed + 1.0) * horizon
    count = 0
    prisms = scene.prisms
    for p in range(len(prisms.top)):
        if (
            prisms.low[p, 0] <= x + reach
            and prisms.high[p, 0] >= x - reach
            and prisms.low[p, 1] <= y + reach
            and prisms.high[p, 1] >= y - reach
        ):
            near.prisms[count] = p
            count += 1

    # strangers
    strangers = 0
    for k in range(len(scene.stranger_motion)):
        motion = scene.stranger_motion[k]
        late = horizon + scene.strangers.age[k]
        goes = math.hypot(motion[3], motion[4]) * horizon + scene.strangers.most[k] * late
        if math.hypot(motion[0] - x, motion[1] - y) <= reach + goes + scene.strangers.radius[k]:
            near.strangers[strangers] = k
            strangers += 1
    return fallbacks, intents, count, strangers


@inner_kernel
def is_beside(one: Floats, other: Floats, k: int, room: float) -> bool:
    """Return whether two intents are farther than a room apart from k to k + 1, along x or y."""
    for axis in range(2):
        now = one[k, axis] - other[k, axis]
        after = one[k + 1, axis] - other[k + 1, axis]
        if min(now, after) > room or max(now, after) < -room:
            return True
    return False


@inner_kernel
def first_conflict(
    able: AbilityTable,
    i: int,
    intent: Floats,
    ways: _Ways,
    scene: Surroundings,
    near: _Near,
    counts: Counts,
    waited: float,
) -> float:
    """Return the time, s, at which an intent of vehicle i first meets something; inf: never.

    A vehicle that has waited for long needs less room next to intents.
    """
    share = COMFORT * (1.0 - waited / LONGEST_WAIT)
    body = body_of(able, i)
    for number in range(counts[1]):
        j = near.intents[number]
        wash = max(able.wash[i], able.wash[j])
        radii = (1.0 + share) * (able.radius[i] + able.radius[j])
        near.intent_room[number] = radii + WASH_SPREAD * wash + 1e-6
    for k in range(INTENT_PLACES - 1):
        part = intent[k : k + 2]
        conflict = False
        for number in range(counts[1]):
            j = near.intents[number]
            if is_beside(intent, ways.intent[j], k, near.intent_room[number]):
                continue
            other = ways.intent[j, k : k + 2]
            comfort = share * (able.radius[i] + able.radius[j])
            room = room_between(part, 1, body, other, 1, body_of(able, j)) - comfort
            if room < 0.0:
                # those who part are no conflict
                gap = math.hypot(part[0, 0] - other[0, 0], part[0, 1] - other[0, 1])
                gap_after = math.hypot(part[1, 0] - other[1, 0], part[1, 1] - other[1, 1])
                conflict = conflict or gap_after <= gap
        if not conflict and counts[2] > 0:
            conflict = (
                room_among_prisms(part, 0, 1, 0.0, body, scene.prisms, near.prisms, counts[2]) < 0.0
            )
        if not conflict:
            conflict = room_over_ground(able, i, scene.ground, part, 1, 1, 0.0) < 0.0
        # strangers have no intents: the places where they may be grow
        if not conflict and k < STRANGER_STEPS:
            times = (k * INTENT_STEP, INTENT_STEP, 1)
            for number in range(counts[3]):
                m = near.strangers[number]
                motion = scene.stranger_motion[m]
                room = room_beside_stranger(part, 1, 0.0, body, motion, scene.strangers, m, times)
                conflict = conflict or room < 0.0
        if conflict:
            return k * INTENT_STEP

    return math.inf


@inner_kernel
def is_safe(
    able: AbilityTable,
    i: int,
    trial: Floats,
    last: int,
    circle: float,
    ways: _Ways,
    scene: Surroundings,
    near: _Near,
    counts: Counts,
) -> bool:
    """Return whether a fallback leaves room to those of others, to objects and to the ground.

    What has too little room already is to get no less.
    """
    body = body_of(able, i)
    own = ways.fallback[i]
    own_last = ways.last[i]
    own_circle = ways.circle[i]

    room = room_over_ground(able, i, scene.ground, trial, 0, last, circle)
    if room < 0.0:
        had = room_over_ground(able, i, scene.ground, own, 0, own_last, own_circle)
        if room < min(had, 0.0) - 1e-9:
            return False

    for number in range(counts[0]):
        j = near.fallbacks[number]
        other = ways.fallback[j]
        other_body = body_of(able, j)
        room = room_of_fallbacks(
            trial, last, circle, body, other, ways.last[j], ways.circle[j], other_body
        )
        if room < SLACK:
            had = room_of_fallbacks(
                own, own_last, own_circle, body, other, ways.last[j], ways.circle[j], other_body
            )
            if room < min(had, SLACK) - 1e-9:
                return False

    if counts[2] > 0:
        room = room_among_prisms(trial, 0, last, circle, body, scene.prisms, near.prisms, counts[2])
        if room < SLACK:
            had = room_among_prisms(
                own, 0, own_last, own_circle, body, scene.prisms, near.prisms, counts[2]
            )
            return room >= min(had, SLACK) - 1e-9
    return True


@inner_kernel
def room_beside_strangers(
    able: AbilityTable,
    i: int,
    way: Floats,
    last: int,
    circle: float,
    scene: Surroundings,
    near: _Near,
    count: int,
    dt: float,
) -> float:
    """Return the least room between a fallback and strangers, at most 0 if there is enough."""
    least = 0.0
    body = body_of(able, i)
    steps = max(last + 1, int(STRANGER_STEPS * INTENT_STEP / dt))
    for number in range(count):
        k = near.strangers[number]
        motion = scene.stranger_motion[k]
        times = (0.0, dt, steps)
        room = room_beside_stranger(way, last, circle, body, motion, scene.strangers, k, times)
        least = min(least, room)
    return least


@inner_kernel
def cost_beside_intents(cost: float, soonest: float, stands: bool, waited: float) -> float:
    """Return what an option costs that meets something after some seconds; inf: never."""
    horizon = INTENT_STEP * (INTENT_PLACES - 1)
    if soonest < horizon:
        cost += CONFLICT_COST * (1.0 - soonest / horizon)
    # who has waited for long gets out of the way, but does not press on
    if stands or soonest < horizon:
        cost += WAIT_COST * waited
    return cost


@inner_kernel
def write_trial(
    able: AbilityTable,
    i: int,
    states: Floats,
    option: Floats,
    plans: Plans,
    exact: bool,
    dt: float,
    trial: Floats,
) -> tuple[State, int, float]:
    """Write a step and the fallback after it -> trial.

    Return the state after the step, the number of the last place and the circle's radius.
    """
    state = state_of(states, i)
    trial[0, 0] = state[0]
    trial[0, 1] = state[1]
    trial[0, 2] = state[2]
    if exact:
        after = state_of(plans.state, i)
    else:
        after = advanced(able, i, state, (option[0], option[1], option[2]), dt)
    last = write_fallback(able, i, after, dt, 1, trial)
    return after, last, circle_of(able, i, after)


@inner_kernel
def best_option(
    able: AbilityTable,
    i: int,
    memory: AvoidanceMemory,
    plans: Plans,
    ways: _Ways,
    scene: Surroundings,
    near: _Near,
    counts: Counts,
    dt: float,
    soonest: float,
    so_far: tuple[int, float],
    options: Floats,
    costs: Floats,
    known: Bools,
    intent: Floats,
    trial: Floats,
) -> tuple[int, float]:
    """Return the number of the option that vehicle i takes, -1 for none, and its room, m.

    The room is that beside strangers, 0 if there is enough. The own wish meets something after
    `soonest` seconds; `so_far` is what is known of it, as this function returns it.
    """
    best, best_room = so_far
    state = state_of(memory.state, i)
    wish = plans.wish[i]
    waited = memory.waited[i]
    backs = memory.backing[i] > 0.0
    count = write_options(able, i, state, wish, options)
    if backs:
        options[count] = memory.choice[i]
        count += 1

    # each costs at least what it costs without conflicts, which is quickly known
    for number in range(count):
        costs[number] = option_cost(able, i, options[number], wish, memory.choice[i], waited)
        known[number] = False
    if backs:
        # who backs off goes on with it
        write_intention(able, i, state, options[count - 1], intent)
        soonest_other = first_conflict(able, i, intent, ways, scene, near, counts, waited)
        if soonest_other >= BACK_OFF_ROOM:
            costs[count - 1] = -1.0
            known[count - 1] = True

    tried = 0
    while tried < count:
        number = int(np.argmin(costs[:count]))
        if not known[number]:
            known[number] = True
            soonest_other = soonest
            if number > 0:
                write_intention(able, i, state, options[number], intent)
                soonest_other = first_conflict(able, i, intent, ways, scene, near, counts, waited)
            stands = abs(options[number, 1]) <= STANDS * abs(wish[1])
            costs[number] = cost_beside_intents(costs[number], soonest_other, stands, waited)
            continue
        tried += 1
        costs[number] = math.inf
        exact = plans.exact[i] and number == 0
        _, last, circle = write_trial(
            able, i, memory.state, options[number], plans, exact, dt, trial
        )
        if not is_safe(able, i, trial, last, circle, ways, scene, near, counts):
            continue
        room = room_beside_strangers(able, i, trial, last, circle, scene, near, counts[3], dt)
        if room > best_room:
            best = number
            best_room = room
        if room >= 0.0:
            break
    return best, best_room


@inner_kernel
def take_step(
    able: AbilityTable,
    i: int,
    memory: AvoidanceMemory,
    plans: Plans,
    ways: _Ways,
    scene: Surroundings,
    near: _Near,
    counts: Counts,
    dt: float,
    options: Floats,
    costs: Floats,
    known: Bools,
    intent: Floats,
    trial: Floats,
    after: Floats,
) -> int:
    """Choose and take the step of vehicle i -> after[i], ways and memory; return what it did."""
    state = state_of(memory.state, i)
    exact = plans.exact[i]
    best = -1
    best_room = -math.inf

    # its own wish, if that meets nothing
    options[0] = plans.wish[i]
    write_intention(able, i, state, options[0], intent)
    # those who are to stand do not give way
    stays = plans.wish[i, 1] == 0.0 and abs(state[4]) <= STANDSTILL and counts[3] == 0
    soonest = math.inf
    if not stays:
        soonest = first_conflict(able, i, intent, ways, scene, near, counts, memory.waited[i])
    backs = memory.backing[i] > 0.0
    if soonest == math.inf and not backs:
        next_state, last, circle = write_trial(
            able, i, memory.state, options[0], plans, exact, dt, trial
        )
        if is_safe(able, i, trial, last, circle, ways, scene, near, counts):
            best = 0
            best_room = room_beside_strangers(
                able, i, trial, last, circle, scene, near, counts[3], dt
            )

    # all options, the cheapest first
    if best_room < 0.0:
        best, best_room = best_option(
            able,
            i,
            memory,
            plans,
            ways,
            scene,
            near,
            counts,
            dt,
            soonest,
            (best, best_room),
            options,
            costs,
            known,
            intent,
            trial,
        )

    # the step
    did = FOLLOWED if best == 0 else AVOIDED
    if best >= 0:
        next_state, last, circle = write_trial(
            able, i, memory.state, options[best], plans, exact and best == 0, dt, trial
        )
        memory.choice[i] = options[best]
    own_room = room_beside_strangers(
        able, i, ways.fallback[i], ways.last[i], ways.circle[i], scene, near, counts[3], dt
    )
    if best < 0 or best_room < own_room:
        did = FELL_BACK
        next_state = fallen_back(able, i, state, dt)
        memory.choice[i, 0] = state[3]
        memory.choice[i, 1] = able.least[i]
        memory.choice[i, 2] = 0.0
        memory.choice[i, 3] = 0.0
    else:
        room_over_ground(able, i, scene.ground, trial, 0, last, circle)
        ways.fallback[i] = trial
        ways.last[i] = last
        ways.circle[i] = circle

    write_intention(able, i, state, memory.choice[i], ways.intent[i])
    room_over_ground(able, i, scene.ground, ways.intent[i], 0, INTENT_PLACES - 1, 0.0)
    for column in range(7):
        after[i, column] = next_state[column]
    if able.kind[i] == GROUND:
        after[i, 2] = ways.fallback[i, min(1, ways.last[i]), 2]
    return did


@inner_kernel
def order_of_steps(waited: Floats) -> Ints:
    """Return the order in which vehicles choose: those that have waited for longest first.

    Waits count in whole seconds; vehicles with equal ones choose in the order of their numbers.
    """
    return np.argsort(-np.floor(waited), kind="mergesort")


@inner_kernel
def time_to_back_off(i: int, memory: AvoidanceMemory, wished: float, dt: float) -> float:
    """Return the time for which vehicle i goes on backing off after a step, s; 0: not at all."""
    if memory.choice[i, 1] >= 0.0 or wished < 0.0:
        return 0.0
    if memory.backing[i] > 0.0:
        return max(memory.backing[i] - dt, 0.0)
    least, more, kinds = BACK_OFF
    return least + more * (i % kinds)


@kernel
def keep_clear(
    able: AbilityTable,
    memory: AvoidanceMemory,
    plans: Plans,
    scene: Surroundings,
    dt: float,
    places: int,
    did: Ints,
) -> None:
    """Move all vehicles by a step of dt, s -> memory, and what each of them did -> did (n,).

    `places` is the number of places of the longest fallback.
    """
    n = len(memory.state)
    if n == 0:
        return
    ways = ways_of(able, memory, scene, dt, places)

    # neighbours are within a cell
    cell = 1.0
    horizon = INTENT_STEP * (INTENT_PLACES - 1)
    for i in range(n):
        reach = 2.0 * (ways.reach[i] + able.wash[i])
        cell = max(
            cell, reach, 2.0 * ((abs(memory.state[i, 4]) + 1.0) * horizon + 2.0 * able.radius[i])
        )
    grid = grid_of(memory.state, cell)
    near = _Near(
        np.empty(n, np.int64),
        np.empty(SEEN + 1, np.int64),
        np.empty(SEEN + 1),
        np.empty(SEEN + 1),
        np.empty(len(scene.prisms.top), np.int64),
        np.empty(len(scene.stranger_motion), np.int64),
        np.empty(n, np.int64),
    )

    options = np.zeros((MAX_OPTIONS, 4))
    costs = np.zeros(MAX_OPTIONS)
    known = np.zeros(MAX_OPTIONS, np.bool_)
    intent = np.zeros((INTENT_PLACES, 3))
    trial = np.zeros((places, 3))
    after = np.empty_like(memory.state)
    for i in order_of_steps(memory.waited):
        counts = find_near(i, memory.state, ways, grid, scene, able, near)
        did[i] = take_step(
            able,
            i,
            memory,
            plans,
            ways,
            scene,
            near,
            counts,
            dt,
            options,
            costs,
            known,
            intent,
            trial,
            after,
        )

    for i in range(n):
        memory.backing[i] = time_to_back_off(i, memory, plans.wish[i, 1], dt)
        # time without progress
        wished = abs(plans.wish[i, 1])
        progress = after[i, 4] * math.cos(after[i, 3] - plans.wish[i, 0])
        change = -dt if progress >= STANDS * wished else dt
        memory.waited[i] = limited(memory.waited[i] + change, 0.0, LONGEST_WAIT)
        memory.state[i] = after[i]
