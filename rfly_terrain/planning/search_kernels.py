# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: hybrid A* over a grid, and short cuts of the paths that it finds.

See `kernels` for the arguments.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.interruptible import interruptible
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel
from rfly_common.kernels.vectors import set_vector, vector_at
from rfly_terrain.planning.cost_kernels import (
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
"""Number of heading sectors that the search distinguishes."""
EAGER = 1.05
"""Factor on the search's estimate: a path costs at most this much more than the lattice's best."""

# results of a search
FOUND = 0
UNREACHABLE = 1
GAVE_UP = 2

# results of `expand` besides the number of a node
_NO_PATH = -1
_NO_ROOM = -2


class Costs(NamedTuple):
    """Costs of driving."""

    weight: NDArray[np.float32]
    """Cost of a metre in each cell, (rows, columns); 0 where a vehicle may not be."""
    grid: tuple[float, float, float]
    """Position x, y of the south-west corner, and side of a cell, m."""
    to_go: NDArray[np.float32]
    """Lower bound of the cost to the goal, (rows, columns), cells; see `cost_to_go`."""


class Goal(NamedTuple):
    """Goal of a search."""

    pose: Floats
    """Pose x, y, heading, (3,)."""
    free_heading: bool
    """True if any heading will do."""


class Lattice(NamedTuple):
    """Moves from a pose to others, and cells within which poses count as the same."""

    steering: Steering
    """Steering of the vehicle."""
    length: float
    """Length of a move, an arc and the line after it, m."""
    cell: float
    """Side of a lattice cell, m."""
    across: int
    """Number of cells in a row, at least."""
    words: Floats
    """Words of the moves from a pose, (m, 10): an arc, and the line after it."""
    directions: Floats
    """Directions of these words, (m,): 1 forwards, -1 backwards."""


class Nodes(NamedTuple):
    """Poses of a search, and the heap of open ones."""

    pose: Floats
    """Poses x, y, heading, (n, 3)."""
    made_by: Ints
    """Number of the lattice's word that led to each pose, (n,)."""
    direction: Floats
    """Direction of that word, (n,): 1 forwards, -1 backwards, 0 at the starts."""
    cost: Floats
    """Cost from a start, (n,)."""
    parent: Ints
    """Node before each one, (n,); -1 at the starts."""
    heap_f: Floats
    """Cost and estimate of the open nodes, a binary heap."""
    heap_n: Ints
    """Number of the open nodes, in the order of `heap_f`."""


class Found(NamedTuple):
    """Result of a search."""

    status: int
    """FOUND, UNREACHABLE or GAVE_UP."""
    poses: Floats
    """Poses where pieces begin, and the goal's, (k, 3)."""
    pieces: Floats
    """Length and curvature of the pieces, (k - 1, 2)."""


class _Ways(NamedTuple):
    """Cheapest ways to the poses of a path, one word each."""

    cost: Floats
    """Cost from the start, (n,)."""
    parent: Ints
    """Pose at which the last word begins, (n,)."""
    words: Floats
    """Last word, (n, 10)."""
    first_heading: Floats
    """Heading at the start of the last word, (n,)."""
    direction: Floats
    """Direction of the last piece, (n,)."""


def lattice_of(costs: Costs, steering: Steering) -> Lattice:
    """Return the lattice on a grid for a vehicle."""
    resolution = costs.grid[2]
    radius = steering.radius
    sector = 2.0 * math.pi / HEADINGS
    length = max(1.5 * resolution, 1.01 * sector * radius)
    cell = max(resolution, length / 1.5)

    # straight on, and to either side as far as a move reaches, at most 45° and 90°
    full_turn = length / radius
    eighth = 0.25 * math.pi
    turns = [0.0, min(full_turn, eighth), -min(full_turn, eighth)]
    if full_turn > eighth:
        turns += [min(full_turn, 2 * eighth), -min(full_turn, 2 * eighth)]
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
    """Return a path from one of several poses (s, 3) to the goal, by hybrid A*.

    States are poses, one in each lattice cell of position and heading sector. Moves from a pose are
    a straight line and an arc of the turning radius to either side. An arc that would turn far on
    its way to the next lattice cell is one of 45° or of 90°, followed by a line. A vehicle that
    reverses has the same moves backwards.

    Now and then the shortest path from a pose to the goal is tried, Dubins' or Reeds' and Shepp's.
    If it is free, the goal has that cost, and the search ends when no open pose can be better. The
    estimate is the larger one of `to_go` (see `cost_to_go`) and the length of that path, enlarged
    by EAGER. The search gives up at `most_nodes`, a power of two.

    After D. Dolgov et al., Path planning for autonomous vehicles in unknown semi-structured
    environments, IJRR 29 (2010), sections 2.1-2.3.
    """
    lattice = lattice_of(costs, steering)
    # full size at once: memory that is not written costs nothing
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
    last = interruptible(expand, costs, goal, lattice, len(starts), nodes, word)
    if last < 0:
        status = UNREACHABLE if last == _NO_PATH else GAVE_UP
        return Found(status, np.empty((0, 3)), np.empty((0, 2)))
    return Found(FOUND, *_traced(nodes, last, word, lattice))


@kernel
def expand(
    costs: Costs,
    goal: Goal,
    lattice: Lattice,
    starts: int,
    nodes: Nodes,
    best_word: Any,
    stopped: Any,
) -> int:
    """Return the node from which `best_word` leads to the goal.

    It is -1 if there is none, -2 if the nodes do not suffice. The first `starts` nodes have their
    poses already. Writes `best_word` and the nodes. `stopped` (1,) ends the search once it is True.
    """
    _, grid, to_go = costs
    steering, length, _, _, words, directions = lattice
    pose, made_by, direction, cost, parent, heap_f, heap_n = nodes

    # table of the best node of each lattice cell
    keys = np.zeros(1 << 12, np.int64)
    values = np.empty(1 << 12, np.int32)

    # the starts are open
    for node in range(starts):
        cost[node] = 0.0
        parent[node] = -1
        heap_f[node] = 0.0
        heap_n[node] = node
        direction[node] = 0.0
        key = _key(pose[node], 0.0, grid, lattice)
        slot = _slot(keys, key)
        keys[slot] = key
        values[slot] = node

    # best first
    count = starts
    waiting = starts
    expanded = 0
    next_shot = 0
    best_goal = math.inf
    goal_parent = _NO_PATH
    while waiting > 0 and not stopped[0]:
        node = heap_n[0]
        f = heap_f[0]
        _pop(heap_f, heap_n, waiting)
        waiting -= 1
        if f >= best_goal:
            break
        if node >= starts:
            slot = _slot(keys, _key(pose[node], direction[node], grid, lattice))
            if values[slot] != node:
                continue  # replaced by a cheaper pose

        # straight to the goal
        if expanded >= next_shot or node < starts:
            word = _shot(pose[node], goal.pose, goal.free_heading, steering)
            total = _cost_by_word(costs, steering, nodes, node, word, best_goal)
            if total < best_goal:
                best_goal = total
                goal_parent = node
                for k in range(10):
                    best_word[k] = word[k]
            next_shot = expanded + int(0.05 * (f - cost[node]) / length)

        # on to the neighbours
        expanded += 1
        if 2 * (count + directions.size) > keys.size:
            keys, values = _larger_table(keys, values)
        for move in range(directions.size):
            total = _cost_by_word(costs, steering, nodes, node, words[move], best_goal)
            if total == math.inf:
                continue
            if count == cost.size:
                return _NO_ROOM
            _set_moved(pose, count, pose[node], words[move], steering.radius)

            # only where it is cheaper than the pose in its lattice cell, and leads to the goal
            key = _key(pose[count], directions[move], grid, lattice)
            slot = _slot(keys, key)
            if keys[slot] == key and cost[values[slot]] <= total:
                continue
            f = total + EAGER * _estimate(
                to_go, grid, pose[count], goal.pose, goal.free_heading, steering
            )
            if f >= best_goal:
                continue

            cost[count] = total
            parent[count] = node
            made_by[count] = move
            direction[count] = directions[move]
            keys[slot] = key
            values[slot] = count
            _push(heap_f, heap_n, waiting, f, count)
            waiting += 1
            count += 1
    return goal_parent


@inlined_kernel
def _cost_by_word(
    costs: Costs, steering: Steering, nodes: Nodes, node: int, word: Any, most: float
) -> float:
    """Return the cost from the start to the end of a word that begins at a node.

    It is inf if the word is blocked or costs `most` and more.
    """
    x = nodes.pose[node, 0]
    y = nodes.pose[node, 1]
    heading = nodes.pose[node, 2]
    cusp = _cusp(nodes.direction[node], word_directions(word)[0], steering)
    total = nodes.cost[node] + cusp
    part = word_cost(costs.weight, costs.grid, x, y, heading, word, steering, most - total)
    return math.inf if part == BLOCKED else total + part


@inlined_kernel
def _set_moved(poses: Any, node: int, pose: Any, word: Any, radius: float) -> None:
    """Set the pose of a node to the end of a move: an arc and a line from another pose."""
    x, y, heading = piece_end(pose[0], pose[1], pose[2], word[0], word[5] / radius)
    x, y, heading = piece_end(x, y, heading, word[1], 0.0)
    poses[node, 0] = x
    poses[node, 1] = y
    poses[node, 2] = heading % (2.0 * math.pi)


@inlined_kernel
def _cusp(previous: float, direction: float, steering: Steering) -> float:
    """Return the cost of a change between two directions of driving; 0 if they are the same."""
    return steering.cusp_cost if previous * direction < 0.0 else 0.0


@inner_kernel
def _estimate(
    to_go: Any, grid: Any, pose: Any, goal: Any, free_goal: bool, steering: Steering
) -> float:
    """Return a lower bound of the cost from a pose to the goal, or nearly one."""
    # between the middles of two cells; a pose may be 0.71 cells away from one at both ends
    row = int((pose[1] - grid[1]) / grid[2])
    column = int((pose[0] - grid[0]) / grid[2])
    over_grid = max(to_go[row, column] - 1.5, 0.0) * grid[2]
    if free_goal:
        return over_grid
    if steering.backward_cost < math.inf:
        word = _reverse_word(pose, goal, steering.radius, 1.0, 0.0)
        length = abs(word[0]) + abs(word[1]) + abs(word[2]) + abs(word[3]) + abs(word[4])
        return max(over_grid, length)
    word = shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], steering.radius)
    return max(over_grid, word[0] + word[1] + word[2])


@inner_kernel
def _shot(pose: Any, goal: Any, free_goal: bool, steering: Steering) -> Any:
    """Return the shortest path from a pose to the goal on free ground, as a word.

    With a free heading the path leads forwards only, or backwards only.
    """
    radius = steering.radius
    reverses = steering.backward_cost < math.inf
    if free_goal:
        word = _in_five(shortest_to_point(pose[0], pose[1], pose[2], goal[0], goal[1], radius), 1.0)
        if reverses:
            behind = pose[2] + math.pi
            mirrored = shortest_to_point(pose[0], pose[1], behind, goal[0], goal[1], radius)
            backwards = _in_five(mirrored, -1.0)
            if _price(backwards, steering) < _price(word, steering):
                return backwards
        return word

    if reverses:
        return _reverse_word(pose, goal, radius, steering.backward_cost, steering.cusp_cost)
    word = shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius)
    return _in_five(word, 1.0)


@inner_kernel
def _reverse_word(
    pose: Any, goal: Any, radius: float, backward_cost: float, cusp_cost: float
) -> Any:
    """Return the cheapest of Reeds' and Shepp's words from one pose to another."""
    dx = goal[0] - pose[0]
    dy = goal[1] - pose[1]
    c = math.cos(pose[2])
    s = math.sin(pose[2])
    ahead = c * dx + s * dy
    left = c * dy - s * dx
    return shortest_reeds_shepp(ahead, left, goal[2] - pose[2], radius, backward_cost, cusp_cost)


@inner_kernel
def _in_five(word: Any, direction: float) -> Any:
    """Return a Dubins word as one of five pieces.

    With `direction` -1 it is driven backwards; it was then found for the opposite heading.
    """
    a, b, c, k, m, n = word
    d = direction
    return d * a, d * b, d * c, 0.0, 0.0, d * k, d * m, d * n, 0.0, 0.0


@inner_kernel
def _price(word: Any, steering: Steering) -> float:
    """Return the cost of a word on the best ground."""
    lengths = (word[0], word[1], word[2], word[3], word[4])
    return word_price(lengths, steering.backward_cost, steering.cusp_cost)


@inner_kernel
def _key(pose: Any, direction: float, grid: Any, lattice: Lattice) -> int:
    """Return the key of a pose and of the direction that led there, at least 1.

    It numbers the pose's lattice cell, its heading sector and the direction.
    """
    row = int((pose[1] - grid[1]) / lattice.cell)
    column = int((pose[0] - grid[0]) / lattice.cell)
    sector = int(pose[2] * HEADINGS / (2.0 * math.pi)) % HEADINGS
    number = (row * lattice.across + column) * HEADINGS + sector
    return 1 + 2 * number + (1 if direction < 0.0 else 0)


@inner_kernel
def _slot(keys: Any, key: int) -> int:
    """Return the slot of a key above 0 in an open-addressed table of 2**k slots.

    A key that is not in the table gets an empty slot (key 0).
    """
    mask = keys.size - 1
    slot = ((key * 2654435761) ^ (key >> 15)) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return int(slot)


@inner_kernel
def _larger_table(keys: Any, values: Any) -> tuple[Any, Any]:
    """Return the same entries in four times the slots."""
    more_keys = np.zeros(4 * keys.size, np.int64)
    more_values = np.empty(4 * keys.size, np.int32)
    for old in range(keys.size):
        if keys[old] != 0:
            slot = _slot(more_keys, keys[old])
            more_keys[slot] = keys[old]
            more_values[slot] = values[old]
    return more_keys, more_values


@inner_kernel
def _push(heap_f: Any, heap_n: Any, size: int, f: float, node: int) -> None:
    """Put a node into a binary heap of `size` entries that has room for it."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if heap_f[above] <= f:
            break
        heap_f[place] = heap_f[above]
        heap_n[place] = heap_n[above]
        place = above
    heap_f[place] = f
    heap_n[place] = node


@inner_kernel
def _pop(heap_f: Any, heap_n: Any, size: int) -> None:
    """Take the first entry, the one of the least f, out of a heap of `size` entries."""
    f = heap_f[size - 1]
    node = heap_n[size - 1]
    size -= 1
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and heap_f[below + 1] < heap_f[below]:
            below += 1
        if f <= heap_f[below]:
            break
        heap_f[place] = heap_f[below]
        heap_n[place] = heap_n[below]
        place = below
    heap_f[place] = f
    heap_n[place] = node


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
    """Return poses (k, 3), pieces (k - 1, 2) and cost of a path after short cuts.

    From each pose the shortest paths (see `search`) to those 1, 2, 4, 8 … poses ahead are tried. Of
    these and the pieces themselves the cheapest sequence is taken (dynamic programming). A free
    heading at start or goal is chosen anew.
    """
    count = poses.shape[0]
    last = count - 1
    ways = _Ways(
        np.full(count, np.inf),
        np.full(count, -1, np.int64),
        np.zeros((count, 10)),
        np.full(count, poses[0, 2]),
        np.zeros(count),
    )
    ways.cost[0] = 0.0
    farthest = max(64, 90_000 // count)  # of many poses the near ones first: it is called again
    for i in range(last):
        jump = 1
        while True:
            j = min(i + jump, last)
            # equal costs leave it to the larger jump, which came first: fewer pieces
            most = ways.cost[j] - ways.cost[i] - 1e-9

            # the piece itself
            if j == i + 1:
                turn = pieces[i, 1] * steering.radius
                word = (pieces[i, 0], 0.0, 0.0, 0.0, 0.0, turn, 0.0, 0.0, 0.0, 0.0)
                heading = poses[i, 2]
                most = _try_word(weight, grid, poses, ways, i, j, word, heading, steering, most)

            # a short cut
            free_ends = (i == 0 and free_start, j == last and free_goal)
            word, heading = _short_cut(poses[i], poses[j], free_ends, steering)
            _try_word(weight, grid, poses, ways, i, j, word, heading, steering, most)
            if j == last or jump >= farthest:
                break
            jump *= 2
    path = _nodes_to(ways.parent, last)
    heading = ways.first_heading[path[1]]
    new_poses, new_pieces = _joined_words(ways.words, path, poses[0], heading, steering.radius)
    return new_poses, new_pieces, ways.cost[last]


@inlined_kernel
def _try_word(
    weight: Any,
    grid: Any,
    poses: Any,
    ways: _Ways,
    i: int,
    j: int,
    word: Any,
    heading: float,
    steering: Steering,
    most: float,
) -> float:
    """Store a word as the way from pose i to pose j if it costs no more than `most`.

    Returns the cost from i that another word must not exceed.
    """
    first, last = word_directions(word)
    cusp = _cusp(ways.direction[i], first, steering)
    if _price(word, steering) + cusp > most:  # no ground costs less than 1
        return most
    part = word_cost(weight, grid, poses[i, 0], poses[i, 1], heading, word, steering, most - cusp)
    if part == BLOCKED:
        return most
    ways.cost[j] = ways.cost[i] + cusp + part
    ways.parent[j] = i
    ways.direction[j] = last
    ways.first_heading[j] = heading
    for k in range(10):
        ways.words[j, k] = word[k]
    return cusp + part


@inner_kernel
def _short_cut(start: Any, end: Any, free_ends: Any, steering: Steering) -> tuple[Any, float]:
    """Return (word, heading at its start) of the shortest path between poses.

    Headings of the poses are free or given.
    """
    free_start, free_end = free_ends
    x = start[0]
    y = start[1]
    if free_start and free_end:
        dx = end[0] - x
        dy = end[1] - y
        line = (0.0, math.sqrt(dx * dx + dy * dy), 0.0, 0.0, 0.0, 0.0)
        return _in_five(line, 1.0), math.atan2(dy, dx)
    if free_start:
        # seen backwards the start is a point to reach, and left turns are right turns
        back = shortest_to_point(end[0], end[1], end[2] + math.pi, x, y, steering.radius)
        word = (back[2], back[1], back[0], -back[5], -back[4], -back[3])
        heading = end[2]
        for k in range(3):
            heading -= word[k] * word[3 + k] / steering.radius
        return _in_five(word, 1.0), heading
    return _shot(start, end, free_end, steering), start[2]


@inner_kernel
def _nodes_to(parent: Any, last: int) -> Any:
    """Return the nodes from one without a parent to `last`, both included."""
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
def _traced(nodes: Nodes, last: int, word: Any, lattice: Lattice) -> tuple[Any, Any]:
    """Return poses (k, 3) and pieces (k - 1, 2) from a start through node `last` to the goal.

    The word leads from the node to the goal.
    """
    path = _nodes_to(nodes.parent, last)
    radius = lattice.steering.radius
    poses = np.empty((2 * path.size + 4, 3))
    pieces = np.empty((2 * path.size + 3, 2))
    set_vector(poses, 0, 0, vector_at(nodes.pose, path[0], 0))
    count = 0
    for i in range(1, path.size):
        move = lattice.words[nodes.made_by[path[i]]]
        count = _extended(poses, pieces, count, move[0], move[5] / radius)
        count = _extended(poses, pieces, count, move[1], 0.0)
    for k in range(5):
        count = _extended(poses, pieces, count, word[k], word[5 + k] / radius)
    return poses[: count + 1].copy(), pieces[:count].copy()


@inner_kernel
def _joined_words(
    words: Any, path: Any, start: Any, heading: float, radius: float
) -> tuple[Any, Any]:
    """Return poses (k, 3) and pieces (k - 1, 2) of the words to the nodes of a path.

    The words lead to the nodes after the first, one after the other.
    """
    poses = np.empty((5 * path.size - 4, 3))
    pieces = np.empty((5 * path.size - 5, 2))
    poses[0, 0] = start[0]
    poses[0, 1] = start[1]
    poses[0, 2] = heading
    count = 0
    for i in range(1, path.size):
        word = words[path[i]]
        for k in range(5):
            count = _extended(poses, pieces, count, word[k], word[5 + k] / radius)
    return poses[: count + 1].copy(), pieces[:count].copy()


@inner_kernel
def _extended(poses: Any, pieces: Any, count: int, length: float, curvature: float) -> int:
    """Append a piece to `count` pieces, unless it has no length; return their number."""
    if abs(length) <= 1e-9:
        return count
    pieces[count, 0] = length
    pieces[count, 1] = curvature
    x, y, heading = piece_end(poses[count, 0], poses[count, 1], poses[count, 2], length, curvature)
    poses[count + 1, 0] = x
    poses[count + 1, 1] = y
    poses[count + 1, 2] = heading
    return count + 1
