"""Compiled kernels: hybrid A* over a grid, and short cuts of what it finds. See `kernels` for the arguments."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import kernel
from rfly_terrain.planning.kernels import BLOCKED, piece_cost, piece_end, shortest_dubins, shortest_to_point, word_cost

HEADINGS = 72
"""sectors in which the search tells headings apart"""
EAGER = 1.05
"""by which the search's estimate is enlarged: its path costs at most this much more than the best of the lattice"""
FOUND, UNREACHABLE, GAVE_UP = 0, 1, 2
"""how a search ends"""


@kernel
def _push(heap_f: Any, heap_n: Any, size: int, f: float, node: int) -> None:
    """Puts a node into the binary heap of `size` entries; there is room."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if heap_f[above] <= f:
            break
        heap_f[at], heap_n[at] = heap_f[above], heap_n[above]
        at = above
    heap_f[at], heap_n[at] = f, node


@kernel
def _pop(heap_f: Any, heap_n: Any, size: int) -> None:
    """Takes the first entry, that of the least f, out of a heap of `size` entries."""
    f, last = heap_f[size - 1], heap_n[size - 1]
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
        heap_f[at], heap_n[at] = heap_f[below], heap_n[below]
        at = below
    heap_f[at], heap_n[at] = f, last


@kernel
def _slot(keys: Any, key: int) -> int:
    """Where a key above 0 lies in an open-addressed table of 2**k slots, or where it would be put (0 there)."""
    mask = keys.size - 1
    at = ((key * 2654435761) ^ (key >> 15)) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + 1) & mask
    return int(at)


@kernel
def _larger_table(keys: Any, values: Any) -> tuple[Any, Any]:
    """The same entries in four times the slots."""
    more_keys, more_values = np.zeros(4 * keys.size, np.int64), np.empty(4 * keys.size, np.int32)
    for old in range(keys.size):
        if keys[old] != 0:
            slot = _slot(more_keys, keys[old])
            more_keys[slot], more_values[slot] = keys[old], values[old]
    return more_keys, more_values


@kernel
def _shot(pose: Any, goal: Any, free_goal: bool, radius: float) -> tuple[float, float, float, float, float, float]:
    """The shortest path from a pose to the goal where nothing is in between."""
    if free_goal:
        return shortest_to_point(pose[0], pose[1], pose[2], goal[0], goal[1], radius)
    return shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius)


@kernel
def _estimate(to_go: Any, grid: Any, pose: Any, goal: Any, free_goal: bool, radius: float) -> float:
    """What the path from a pose to the goal costs at least, or nearly so."""
    row, column = int((pose[1] - grid[1]) / grid[2]), int((pose[0] - grid[0]) / grid[2])
    # from the middle of a cell to that of another one, of which a pose is up to 0.71 cells away at both ends
    over_grid = max(to_go[row, column] - 1.5, 0.0) * grid[2]
    if free_goal:
        return over_grid
    word = shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius)
    return max(over_grid, word[0] + word[1] + word[2])


@kernel
def _key(pose: Any, grid: Any, lattice: float, across: int) -> int:
    """Number, from 1 on, of the lattice cell and heading sector of a pose."""
    cell = int((pose[1] - grid[1]) / lattice) * across + int((pose[0] - grid[0]) / lattice)
    return 1 + cell * HEADINGS + int(pose[2] * HEADINGS / (2.0 * math.pi)) % HEADINGS


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

    radius: float
    """of turns, m"""
    length: float
    """of an arc and the line after it, m"""
    cell: float
    """side of a lattice cell, m"""
    across: int
    """cells in a row, at least"""
    turns: Floats
    """(m,) angles of the arcs that lead on from a pose; positive = left"""


class Nodes(NamedTuple):
    """Poses of a search, and the heap of open ones."""

    pose: Floats
    """(n, 3)"""
    made_by: Floats
    """(n, 2) length of the arc that led there, signed by its turn, and of the line after it"""
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


def lattice_of(costs: Costs, radius: float) -> Lattice:
    """The lattice on a grid for turns of a radius (m)."""
    resolution, sector = costs.grid[2], 2.0 * math.pi / HEADINGS
    length = max(1.5 * resolution, 1.01 * sector * radius)
    at_most, eighth = length / radius, 0.25 * math.pi
    turns = [0.0, min(at_most, eighth), -min(at_most, eighth)]
    if at_most > eighth:
        turns += [min(at_most, 2 * eighth), -min(at_most, 2 * eighth)]
    cell = max(resolution, length / 1.5)
    return Lattice(radius, length, cell, int(costs.weight.shape[1] * resolution / cell) + 2, np.array(turns))


def search(costs: Costs, starts: Floats, goal: Goal, radius: float, most_nodes: int) -> Found:
    """Hybrid A* from one of several poses (s, 3) to the goal.

    States are poses, kept once in each lattice cell of position and heading sector; from a pose lead on a straight
    line and to either side an arc of `radius`, which, where it would turn far on its way to the next lattice cell, is
    one of 45° or of 90° and goes on straight. Beside these, Dubins' shortest path to the goal is looked at; where it is
    free the goal has that cost, and the search ends as soon as no open pose can be better. The estimate is the larger
    of `to_go` (see `cost_to_go`) and that path's length, enlarged by EAGER. It gives up at `most_nodes`, a power
    of two. After D. Dolgov et al., Path planning for autonomous vehicles in unknown semi-structured environments,
    IJRR 29 (2010), sections 2.1-2.3.
    """
    lattice = lattice_of(costs, radius)
    # memory that is not written to costs nothing: it is never grown
    nodes = Nodes(
        pose=np.empty((most_nodes, 3)),
        made_by=np.empty((most_nodes, 2)),
        cost=np.empty(most_nodes),
        parent=np.empty(most_nodes, np.int64),
        heap_f=np.empty(most_nodes),
        heap_n=np.empty(most_nodes, np.int64),
    )
    nodes.pose[: len(starts)] = starts
    word = np.zeros(6)
    last = expand(costs, goal, lattice, len(starts), nodes, word)
    if last < 0:
        return Found(UNREACHABLE if last == -1 else GAVE_UP, np.empty((0, 3)), np.empty((0, 2)))
    return Found(FOUND, *_traced(nodes, last, word, radius))


@kernel
def _moved(
    weight: Any, grid: Any, lattice: Lattice, turn: float, pose: Any, cost: float, most: float
) -> tuple[float, float, float, float]:
    """(x, y, heading, cost) where an arc of `turn` and a line lead from a pose that cost `cost`; cost inf: blocked."""
    x, y, heading, total = pose[0], pose[1], pose[2], cost
    curvature = 1.0 / lattice.radius if turn > 0.0 else -1.0 / lattice.radius
    arc = lattice.radius * abs(turn)
    piece = arc
    for _ in range(2):  # the arc, then the line
        if piece > 1e-9 * lattice.length:
            part = piece_cost(weight, grid, x, y, heading, piece, curvature, most - total)
            if part == BLOCKED:
                return x, y, heading, math.inf
            total += part
            x, y, heading = piece_end(x, y, heading, piece, curvature)
        piece, curvature = lattice.length - arc, 0.0
    return x, y, heading, total


@kernel
def expand(costs: Costs, goal: Goal, lattice: Lattice, starts: int, nodes: Nodes, best_word: Any) -> int:
    """The search itself: the node from which `best_word` leads to the goal; -1: there is none, -2: no more room.

    The poses of the first `starts` nodes are there already.
    """
    weight, grid, to_go = costs
    radius, length, cell, across, turns = lattice
    pose, made_by, cost, parent, heap_f, heap_n = nodes
    keys, values = np.zeros(1 << 12, np.int64), np.empty(1 << 12, np.int32)  # the best node of each lattice cell
    for node in range(starts):
        cost[node], parent[node], heap_f[node], heap_n[node] = 0.0, -1, 0.0, node
        slot = _slot(keys, _key(pose[node], grid, cell, across))
        keys[slot], values[slot] = _key(pose[node], grid, cell, across), node
    count, waiting, expanded, next_shot = starts, starts, 0, 0
    best_goal, goal_parent = math.inf, -1
    while waiting > 0:
        node, f = heap_n[0], heap_f[0]
        _pop(heap_f, heap_n, waiting)
        waiting -= 1
        if f >= best_goal:
            break
        if node >= starts and values[_slot(keys, _key(pose[node], grid, cell, across))] != node:
            continue  # a cheaper pose took its place
        if expanded >= next_shot or node < starts:
            word = _shot(pose[node], goal.pose, goal.free_heading, radius)
            part = word_cost(
                weight, grid, pose[node, 0], pose[node, 1], pose[node, 2], word, radius, best_goal - cost[node]
            )
            if part != BLOCKED and cost[node] + part < best_goal:
                best_goal, goal_parent = cost[node] + part, node
                for k in range(6):
                    best_word[k] = word[k]
            next_shot = expanded + int(0.05 * (f - cost[node]) / length)
        expanded += 1
        if 2 * (count + turns.size) > keys.size:
            keys, values = _larger_table(keys, values)
        for m in range(turns.size):
            x, y, heading, total = _moved(weight, grid, lattice, turns[m], pose[node], cost[node], best_goal)
            if total == math.inf:
                continue
            if count == cost.size:
                return -2
            pose[count, 0], pose[count, 1], pose[count, 2] = x, y, heading % (2.0 * math.pi)
            key = _key(pose[count], grid, cell, across)
            slot = _slot(keys, key)
            if keys[slot] == key and cost[values[slot]] <= total:
                continue
            f = total + EAGER * _estimate(to_go, grid, pose[count], goal.pose, goal.free_heading, radius)
            if f == math.inf or f >= best_goal:
                continue
            cost[count], parent[count] = total, node
            arc = radius * abs(turns[m])
            line = length - arc
            made_by[count, 0] = arc if turns[m] > 0.0 else -arc
            made_by[count, 1] = line if line > 1e-9 * length else 0.0
            keys[slot], values[slot] = key, count
            _push(heap_f, heap_n, waiting, f, count)
            waiting += 1
            count += 1
    return goal_parent


@kernel
def shorten(
    weight: Any, grid: Any, poses: Any, pieces: Any, free_start: bool, free_goal: bool, radius: float
) -> tuple[Any, Any, float]:
    """A path of poses (k, 3) and pieces (k - 1, 2), as short cuts make it: the same two arrays, and its cost.

    From each pose Dubins' paths to those 1, 2, 4, 8 … poses ahead are looked at; of these and the
    pieces themselves the cheapest row is taken (dynamic programming). A free heading at start or goal is chosen anew.
    """
    count = poses.shape[0]
    cost, parent = np.full(count, np.inf), np.full(count, -1, np.int64)
    words, first_heading = np.zeros((count, 6)), np.full(count, poses[0, 2])
    cost[0] = 0.0
    farthest = max(64, 90_000 // count)  # of many poses the near ones first: it is called again
    for i in range(count - 1):
        x, y, heading = poses[i, 0], poses[i, 1], poses[i, 2]
        jump = 1
        while True:
            j = min(i + jump, count - 1)
            most = cost[j] - cost[i] - 1e-9  # equal costs leave it to the larger jump, which came first: fewer pieces
            if j == i + 1:
                part = piece_cost(weight, grid, x, y, heading, pieces[i, 0], pieces[i, 1], most)
                if part != BLOCKED:
                    cost[j], parent[j], words[j] = cost[i] + part, i, 0.0
                    words[j, 0], words[j, 3] = pieces[i, 0], pieces[i, 1] * radius
                    first_heading[j] = heading
                    most = part
            word, heading = _short_cut(poses[i], poses[j], i == 0 and free_start, j == count - 1 and free_goal, radius)
            if word[0] + word[1] + word[2] <= most:  # no ground costs less than 1
                part = word_cost(weight, grid, x, y, heading, word, radius, most)
                if part != BLOCKED:
                    cost[j], parent[j] = cost[i] + part, i
                    first_heading[j] = heading  # of use where i is 0
                    for k in range(6):
                        words[j, k] = word[k]
            if j == count - 1 or jump >= farthest:
                break
            jump *= 2
    path = _nodes_to(parent, count - 1)
    made, parts = _joined_words(words, path, poses[0], first_heading[path[1]], radius)
    return made, parts, cost[count - 1]


@kernel
def _short_cut(start: Any, end: Any, free_start: bool, free_end: bool, radius: float) -> tuple[Any, float]:
    """(Dubins word, heading at its start) of the shortest path between poses with free or given headings."""
    x, y, heading = start[0], start[1], start[2]
    if free_start and free_end:
        dx, dy = end[0] - x, end[1] - y
        return (0.0, math.sqrt(dx * dx + dy * dy), 0.0, 0.0, 0.0, 0.0), math.atan2(dy, dx)
    if free_start:
        # seen backwards the start is a point to reach, and left turns are right turns
        back = shortest_to_point(end[0], end[1], end[2] + math.pi, x, y, radius)
        word = (back[2], back[1], back[0], -back[5], -back[4], -back[3])
        heading = end[2]
        for k in range(3):
            heading -= word[k] * word[3 + k] / radius
        return word, heading
    if free_end:
        return shortest_to_point(x, y, heading, end[0], end[1], radius), heading
    return shortest_dubins(x, y, heading, end[0], end[1], end[2], radius), heading


@kernel
def _nodes_to(parent: Any, last: int) -> Any:
    """The nodes that lead to `last` from one without a parent, both included."""
    steps, node = 0, last
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
    """Puts one more piece behind `count` pieces, unless it has no length; returns how many they are then."""
    if length <= 1e-9:
        return count
    pieces[count, 0], pieces[count, 1] = length, curvature
    x, y, heading = piece_end(poses[count, 0], poses[count, 1], poses[count, 2], length, curvature)
    poses[count + 1, 0], poses[count + 1, 1], poses[count + 1, 2] = x, y, heading
    return count + 1


@kernel
def _traced(nodes: Nodes, last: int, word: Any, radius: float) -> tuple[Any, Any]:
    """Poses (k, 3) and pieces (k - 1, 2) from a start to node `last`, and by a Dubins word from there to the goal."""
    path = _nodes_to(nodes.parent, last)
    poses, pieces = np.empty((2 * path.size + 2, 3)), np.empty((2 * path.size + 1, 2))
    poses[0] = nodes.pose[path[0]]
    count = 0
    for i in range(1, path.size):
        arc, line = nodes.made_by[path[i], 0], nodes.made_by[path[i], 1]
        count = _extended(poses, pieces, count, abs(arc), math.copysign(1.0 / radius, arc))
        count = _extended(poses, pieces, count, line, 0.0)
    for k in range(3):
        count = _extended(poses, pieces, count, word[k], word[3 + k] / radius)
    return poses[: count + 1].copy(), pieces[:count].copy()


@kernel
def _joined_words(words: Any, path: Any, start: Any, heading: float, radius: float) -> tuple[Any, Any]:
    """Poses (k, 3) and pieces (k - 1, 2) of the words of the nodes of a path after the first, one after the other."""
    poses, pieces = np.empty((3 * path.size - 2, 3)), np.empty((3 * path.size - 3, 2))
    poses[0, 0], poses[0, 1], poses[0, 2] = start[0], start[1], heading
    count = 0
    for i in range(1, path.size):
        for k in range(3):
            count = _extended(poses, pieces, count, words[path[i], k], words[path[i], 3 + k] / radius)
    return poses[: count + 1].copy(), pieces[:count].copy()
