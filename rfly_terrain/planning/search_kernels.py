"""Compiled kernels: hybrid A* over a grid, and short cuts of what it finds. See `kernels` for the
arguments.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import kernel
from rfly_terrain.planning.kernels import (
    BLOCKED,
    Steering,
    piece_end,
    shortest_dubins,
    shortest_to_point,
    word_cost,
    word_directions,
)
from rfly_terrain.planning.reeds_shepp import shortest_reeds_shepp, word_price

HEADINGS = 72
"""sectors in which the search tells headings apart"""
EAGER = 1.05
"""by which the search's estimate is enlarged: its path costs at most this much more than the best
of the lattice
"""
FOUND = 0
UNREACHABLE = 1
GAVE_UP = 2
"""how a search ends"""


@kernel
def _push(heap_f: Any, heap_n: Any, size: int, f: float, node: int) -> None:
    """Puts a node into the binary heap of `size` entries; there is room."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if heap_f[above] <= f:
            break
        heap_f[at] = heap_f[above]
        heap_n[at] = heap_n[above]
        at = above
    heap_f[at] = f
    heap_n[at] = node


@kernel
def _pop(heap_f: Any, heap_n: Any, size: int) -> None:
    """Takes the first entry, that of the least f, out of a heap of `size` entries."""
    f = heap_f[size - 1]
    last = heap_n[size - 1]
    size -= 1
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap_f[below + 1] < heap_f[below]:
            below += 1
        if f <= heap_f[below]:
            break
        heap_f[at] = heap_f[below]
        heap_n[at] = heap_n[below]
        at = below
    heap_f[at] = f
    heap_n[at] = last


@kernel
def _slot(keys: Any, key: int) -> int:
    """Where a key above 0 lies in an open-addressed table of 2**k slots, or where it would be put
    (0 there).
    """
    mask = keys.size - 1
    at = ((key * 2654435761) ^ (key >> 15)) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + 1) & mask
    return int(at)


@kernel
def _larger_table(keys: Any, values: Any) -> tuple[Any, Any]:
    """The same entries in four times the slots."""
    more_keys = np.zeros(4 * keys.size, np.int64)
    more_values = np.empty(4 * keys.size, np.int32)
    for old in range(keys.size):
        if keys[old] != 0:
            slot = _slot(more_keys, keys[old])
            more_keys[slot] = keys[old]
            more_values[slot] = values[old]
    return more_keys, more_values


@kernel
def _in_five(word: Any, direction: float) -> Any:
    """A Dubins word as one of five pieces; `direction` -1: driven backwards, for which it was found
    from behind.
    """
    a, b, c, k, m, n = word
    d = direction
    return d * a, d * b, d * c, 0.0, 0.0, d * k, d * m, d * n, 0.0, 0.0


@kernel
def _price(word: Any, steering: Steering) -> float:
    """What a word costs on the best ground."""
    lengths = (word[0], word[1], word[2], word[3], word[4])
    return word_price(lengths, steering.backward_cost, steering.cusp_cost)


@kernel
def _reverse_word(
    pose: Any, goal: Any, radius: float, backward_cost: float, cusp_cost: float
) -> Any:
    """The cheapest of Reeds' and Shepp's words from a pose to another."""
    dx = goal[0] - pose[0]
    dy = goal[1] - pose[1]
    c = math.cos(pose[2])
    s = math.sin(pose[2])
    return shortest_reeds_shepp(
        c * dx + s * dy, c * dy - s * dx, goal[2] - pose[2], radius, backward_cost, cusp_cost
    )


@kernel
def _shot(pose: Any, goal: Any, free_goal: bool, steering: Steering) -> Any:
    """The shortest path from a pose to the goal where nothing is in between, as a word.

    With a free heading it drives all of the way forwards, or all of it backwards.
    """
    radius = steering.radius
    reverses = steering.backward_cost < math.inf
    if free_goal:
        word = _in_five(shortest_to_point(pose[0], pose[1], pose[2], goal[0], goal[1], radius), 1.0)
        if reverses:
            behind = shortest_to_point(
                pose[0], pose[1], pose[2] + math.pi, goal[0], goal[1], radius
            )
            other = _in_five(behind, -1.0)
            if _price(other, steering) < _price(word, steering):
                return other
        return word
    if reverses:
        return _reverse_word(pose, goal, radius, steering.backward_cost, steering.cusp_cost)
    return _in_five(
        shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius), 1.0
    )


@kernel
def _estimate(
    to_go: Any, grid: Any, pose: Any, goal: Any, free_goal: bool, steering: Steering
) -> float:
    """What the path from a pose to the goal costs at least, or nearly so."""
    row = int((pose[1] - grid[1]) / grid[2])
    column = int((pose[0] - grid[0]) / grid[2])
    # from the middle of a cell to that of another one, of which a pose is up to 0.71 cells away at
    # both ends
    over_grid = max(to_go[row, column] - 1.5, 0.0) * grid[2]
    if free_goal:
        return over_grid
    if steering.backward_cost < math.inf:
        word = _reverse_word(pose, goal, steering.radius, 1.0, 0.0)
        return max(
            over_grid, abs(word[0]) + abs(word[1]) + abs(word[2]) + abs(word[3]) + abs(word[4])
        )
    ahead = shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], steering.radius)
    return max(over_grid, ahead[0] + ahead[1] + ahead[2])


@kernel
def _key(pose: Any, direction: float, grid: Any, lattice: float, across: int) -> int:
    """Number, from 1 on, of the lattice cell and heading sector of a pose, and of the direction
    that led there.
    """
    cell = int((pose[1] - grid[1]) / lattice) * across + int((pose[0] - grid[0]) / lattice)
    sector = int(pose[2] * HEADINGS / (2.0 * math.pi)) % HEADINGS
    return 1 + 2 * (cell * HEADINGS + sector) + (1 if direction < 0.0 else 0)


class Costs(NamedTuple):
    """What driving costs."""

    weight: NDArray[np.float32]
    """(rows, columns) of a metre in each cell, 0 where nobody may be"""
    grid: tuple[float, float, float]
    """x, y of the south-west corner and side of a cell, m"""
    to_go: NDArray[np.float32]
    """(rows, columns) see `cost_to_go`"""


class Goal(NamedTuple):
    """Where a search ends."""

    pose: Floats
    """(3,) x, y, heading"""
    free_heading: bool


class Lattice(NamedTuple):
    """How poses lead to others, and which count as the same."""

    steering: Steering
    length: float
    """of an arc and the line after it, m"""
    cell: float
    """side of a lattice cell, m"""
    across: int
    """cells in a row, at least"""
    words: Floats
    """(m, 10) that lead on from a pose: an arc, and the line after it"""
    directions: Floats
    """(m,) 1 or -1, of these words"""


class Nodes(NamedTuple):
    """Poses of a search, and the heap of open ones."""

    pose: Floats
    """(n, 3)"""
    made_by: Ints
    """(n,) number of the lattice's word that led there"""
    direction: Floats
    """(n,) 1 or -1 of that word; 0 at the starts"""
    cost: Floats
    parent: Ints
    """-1: none"""
    heap_f: Floats
    heap_n: Ints


class Found(NamedTuple):
    """What a search has found."""

    status: int
    """FOUND, UNREACHABLE or GAVE_UP"""
    poses: Floats
    """(k, 3) where pieces begin, and the goal"""
    pieces: Floats
    """(k - 1, 2) length, curvature"""


def lattice_of(costs: Costs, steering: Steering) -> Lattice:
    """The lattice on a grid for a vehicle."""
    resolution = costs.grid[2]
    sector = 2.0 * math.pi / HEADINGS
    radius = steering.radius
    length = max(1.5 * resolution, 1.01 * sector * radius)
    at_most = length / radius
    eighth = 0.25 * math.pi
    turns = [0.0, min(at_most, eighth), -min(at_most, eighth)]
    if at_most > eighth:
        turns += [min(at_most, 2 * eighth), -min(at_most, 2 * eighth)]
    cell = max(resolution, length / 1.5)
    directions = [1.0] if steering.backward_cost == math.inf else [1.0, -1.0]
    words = np.zeros((len(directions), len(turns), 10))
    arcs = radius * np.abs(turns)
    words[:, :, 0] = arcs
    words[:, :, 1] = length - arcs
    words[:, :, 5] = np.sign(turns)
    words[:, :, :2][words[:, :, :2] < 1e-9 * length] = 0.0
    words[:, :, :2] *= np.array(directions)[:, None, None]
    across = int(costs.weight.shape[1] * resolution / cell) + 2
    return Lattice(
        steering, length, cell, across, words.reshape(-1, 10), np.repeat(directions, len(turns))
    )


def search(costs: Costs, starts: Floats, goal: Goal, steering: Steering, most_nodes: int) -> Found:
    """Hybrid A* from one of several poses (s, 3) to the goal.

    States are poses, kept once in each lattice cell of position and heading sector; from a pose
    lead on a straight line and to either side an arc of the radius, which, where it would turn far
    on its way to the next lattice cell, is one of 45° or of 90° and goes on straight; for a vehicle
    that reverses they lead backwards too. Beside these, the shortest path to the goal is looked at,
    Dubins' or Reeds' and Shepp's; where it is free the goal has that cost, and the search ends as
    soon as no open pose can be better. The estimate is the larger of `to_go` (see `cost_to_go`) and
    that path's length, enlarged by EAGER. It gives up at `most_nodes`, a power of two. After D.
    Dolgov et al., Path planning for autonomous vehicles in unknown semi-structured environments,
    IJRR 29 (2010), sections 2.1-2.3.
    """
    lattice = lattice_of(costs, steering)
    # memory that is not written to costs nothing: it is never grown
    nodes = Nodes(
        pose=np.empty((most_nodes, 3)),
        made_by=np.empty(most_nodes, np.int64),
        direction=np.empty(most_nodes),
        cost=np.empty(most_nodes),
        parent=np.empty(most_nodes, np.int64),
        heap_f=np.empty(most_nodes),
        heap_n=np.empty(most_nodes, np.int64),
    )
    nodes.pose[: len(starts)] = starts
    word = np.zeros(10)
    last = expand(costs, goal, lattice, len(starts), nodes, word)
    if last < 0:
        return Found(UNREACHABLE if last == -1 else GAVE_UP, np.empty((0, 3)), np.empty((0, 2)))
    return Found(FOUND, *_traced(nodes, last, word, lattice))


@kernel
def _moved(
    weight: Any, grid: Any, word: Any, steering: Steering, pose: Any, cost: float, most: float
) -> tuple[float, float, float, float]:
    """(x, y, heading, cost) where a word of the lattice leads from a pose that cost `cost`; cost
    inf: blocked.
    """
    x = pose[0]
    y = pose[1]
    heading = pose[2]
    part = word_cost(weight, grid, x, y, heading, word, steering, most - cost)
    if part == BLOCKED:
        return x, y, heading, math.inf
    x, y, heading = piece_end(x, y, heading, word[0], word[5] / steering.radius)
    x, y, heading = piece_end(x, y, heading, word[1], 0.0)
    return x, y, heading, cost + part


@kernel
def _cusp(before: float, direction: float, steering: Steering) -> float:
    """What it costs to go on in a direction after another one; 0: none."""
    return steering.cusp_cost if before * direction < 0.0 else 0.0


@kernel
def expand(
    costs: Costs, goal: Goal, lattice: Lattice, starts: int, nodes: Nodes, best_word: Any
) -> int:
    """The search itself: the node from which `best_word` leads to the goal; -1: there is none, -2:
    no more room.

    The poses of the first `starts` nodes are there already.
    """
    weight, grid, to_go = costs
    steering, length, cell, across, words, directions = lattice
    pose, made_by, direction, cost, parent, heap_f, heap_n = nodes
    # the best node of each lattice cell
    keys = np.zeros(1 << 12, np.int64)
    values = np.empty(1 << 12, np.int32)
    for node in range(starts):
        cost[node] = 0.0
        parent[node] = -1
        heap_f[node] = 0.0
        heap_n[node] = node
        direction[node] = 0.0
        slot = _slot(keys, _key(pose[node], 0.0, grid, cell, across))
        keys[slot] = _key(pose[node], 0.0, grid, cell, across)
        values[slot] = node
    count = starts
    waiting = starts
    expanded = 0
    next_shot = 0
    best_goal = math.inf
    goal_parent = -1
    while waiting > 0:
        node = heap_n[0]
        f = heap_f[0]
        _pop(heap_f, heap_n, waiting)
        waiting -= 1
        if f >= best_goal:
            break
        if (
            node >= starts
            and values[_slot(keys, _key(pose[node], direction[node], grid, cell, across))] != node
        ):
            continue  # a cheaper pose took its place
        if expanded >= next_shot or node < starts:
            word = _shot(pose[node], goal.pose, goal.free_heading, steering)
            total = cost[node] + _cusp(direction[node], word_directions(word)[0], steering)
            x = pose[node, 0]
            y = pose[node, 1]
            heading = pose[node, 2]
            part = word_cost(weight, grid, x, y, heading, word, steering, best_goal - total)
            if part != BLOCKED and total + part < best_goal:
                best_goal = total + part
                goal_parent = node
                for k in range(10):
                    best_word[k] = word[k]
            next_shot = expanded + int(0.05 * (f - cost[node]) / length)
        expanded += 1
        if 2 * (count + directions.size) > keys.size:
            keys, values = _larger_table(keys, values)
        for m in range(directions.size):
            total = cost[node] + _cusp(direction[node], directions[m], steering)
            x, y, heading, total = _moved(
                weight, grid, words[m], steering, pose[node], total, best_goal
            )
            if total == math.inf:
                continue
            if count == cost.size:
                return -2
            pose[count, 0] = x
            pose[count, 1] = y
            pose[count, 2] = heading % (2.0 * math.pi)
            key = _key(pose[count], directions[m], grid, cell, across)
            slot = _slot(keys, key)
            if keys[slot] == key and cost[values[slot]] <= total:
                continue
            f = total + EAGER * _estimate(
                to_go, grid, pose[count], goal.pose, goal.free_heading, steering
            )
            if f == math.inf or f >= best_goal:
                continue
            cost[count] = total
            parent[count] = node
            made_by[count] = m
            direction[count] = directions[m]
            keys[slot] = key
            values[slot] = count
            _push(heap_f, heap_n, waiting, f, count)
            waiting += 1
            count += 1
    return goal_parent


@kernel
def shorten(
    weight: Any,
    grid: Any,
    poses: Any,
    pieces: Any,
    free_start: bool,
    free_goal: bool,
    steering: Steering,
) -> tuple[Any, Any, float]:
    """A path of poses (k, 3) and pieces (k - 1, 2), as short cuts make it: the same two arrays, and
    its cost.

    From each pose the shortest paths (see `search`) to those 1, 2, 4, 8 … poses ahead are looked
    at; of these and the pieces themselves the cheapest row is taken (dynamic programming). A free
    heading at start or goal is chosen anew.
    """
    count = poses.shape[0]
    cost = np.full(count, np.inf)
    parent = np.full(count, -1, np.int64)
    words = np.zeros((count, 10))
    first_heading = np.full(count, poses[0, 2])
    direction = np.zeros(count)
    cost[0] = 0.0
    farthest = max(64, 90_000 // count)  # of many poses the near ones first: it is called again
    for i in range(count - 1):
        x = poses[i, 0]
        y = poses[i, 1]
        heading = poses[i, 2]
        jump = 1
        while True:
            j = min(i + jump, count - 1)
            most = (
                cost[j] - cost[i] - 1e-9
            )  # equal costs leave it to the larger jump, which came first: fewer pieces
            if j == i + 1:
                turn = pieces[i, 1] * steering.radius
                own = (pieces[i, 0], 0.0, 0.0, 0.0, 0.0, turn, 0.0, 0.0, 0.0, 0.0)
                cusp = _cusp(direction[i], pieces[i, 0], steering)
                part = word_cost(weight, grid, x, y, heading, own, steering, most - cusp)
                if part != BLOCKED:
                    cost[j] = cost[i] + cusp + part
                    parent[j] = i
                    words[j] = 0.0
                    words[j, 0] = pieces[i, 0]
                    words[j, 5] = turn
                    first_heading[j] = heading
                    direction[j] = math.copysign(1.0, pieces[i, 0])
                    most = cusp + part
            word, heading = _short_cut(
                poses[i], poses[j], i == 0 and free_start, j == count - 1 and free_goal, steering
            )
            first, last = word_directions(word)
            cusp = _cusp(direction[i], first, steering)
            if _price(word, steering) + cusp <= most:  # no ground costs less than 1
                part = word_cost(weight, grid, x, y, heading, word, steering, most - cusp)
                if part != BLOCKED:
                    cost[j] = cost[i] + cusp + part
                    parent[j] = i
                    direction[j] = last
                    first_heading[j] = heading  # of use where i is 0
                    for k in range(10):
                        words[j, k] = word[k]
            if j == count - 1 or jump >= farthest:
                break
            jump *= 2
    path = _nodes_to(parent, count - 1)
    made, parts = _joined_words(words, path, poses[0], first_heading[path[1]], steering.radius)
    return made, parts, cost[count - 1]


@kernel
def _short_cut(
    start: Any, end: Any, free_start: bool, free_end: bool, steering: Steering
) -> tuple[Any, float]:
    """(word, heading at its start) of the shortest path between poses with free or given headings."""
    x = start[0]
    y = start[1]
    heading = start[2]
    if free_start and free_end:
        dx = end[0] - x
        dy = end[1] - y
        return _in_five((0.0, math.sqrt(dx * dx + dy * dy), 0.0, 0.0, 0.0, 0.0), 1.0), math.atan2(
            dy, dx
        )
    if free_start:
        # seen backwards the start is a point to reach, and left turns are right turns
        back = shortest_to_point(end[0], end[1], end[2] + math.pi, x, y, steering.radius)
        word = (back[2], back[1], back[0], -back[5], -back[4], -back[3])
        heading = end[2]
        for k in range(3):
            heading -= word[k] * word[3 + k] / steering.radius
        return _in_five(word, 1.0), heading
    return _shot(start, end, free_end, steering), heading


@kernel
def _nodes_to(parent: Any, last: int) -> Any:
    """The nodes that lead to `last` from one without a parent, both included."""
    steps = 0
    node = last
    while parent[node] >= 0:
        steps += 1
        node = parent[node]
    path = np.empty(steps + 1, np.int64)
    node = last
    for i in range(steps, -1, -1):
        path[i] = node
        node = parent[node]
    return path


@kernel
def _extended(poses: Any, pieces: Any, count: int, length: float, curvature: float) -> int:
    """Puts one more piece behind `count` pieces, unless it has no length; returns how many they are
    then.
    """
    if abs(length) <= 1e-9:
        return count
    pieces[count, 0] = length
    pieces[count, 1] = curvature
    x, y, heading = piece_end(poses[count, 0], poses[count, 1], poses[count, 2], length, curvature)
    poses[count + 1, 0] = x
    poses[count + 1, 1] = y
    poses[count + 1, 2] = heading
    return count + 1


@kernel
def _traced(nodes: Nodes, last: int, word: Any, lattice: Lattice) -> tuple[Any, Any]:
    """Poses (k, 3) and pieces (k - 1, 2) from a start to node `last`, and by a word from there to
    the goal.
    """
    path = _nodes_to(nodes.parent, last)
    radius = lattice.steering.radius
    poses = np.empty((2 * path.size + 4, 3))
    pieces = np.empty((2 * path.size + 3, 2))
    poses[0] = nodes.pose[path[0]]
    count = 0
    for i in range(1, path.size):
        move = lattice.words[nodes.made_by[path[i]]]
        count = _extended(poses, pieces, count, move[0], move[5] / radius)
        count = _extended(poses, pieces, count, move[1], 0.0)
    for k in range(5):
        count = _extended(poses, pieces, count, word[k], word[5 + k] / radius)
    return poses[: count + 1].copy(), pieces[:count].copy()


@kernel
def _joined_words(
    words: Any, path: Any, start: Any, heading: float, radius: float
) -> tuple[Any, Any]:
    """Poses (k, 3) and pieces (k - 1, 2) of the words of the nodes of a path after the first, one
    after the other.
    """
    poses = np.empty((5 * path.size - 4, 3))
    pieces = np.empty((5 * path.size - 5, 2))
    poses[0, 0] = start[0]
    poses[0, 1] = start[1]
    poses[0, 2] = heading
    count = 0
    for i in range(1, path.size):
        for k in range(5):
            count = _extended(
                poses, pieces, count, words[path[i], k], words[path[i], 5 + k] / radius
            )
    return poses[: count + 1].copy(), pieces[:count].copy()
