"""Compiled kernels: hybrid A* over a grid, and short cuts of what it finds. See `kernels` for the arguments."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.kernels.jit import kernel
from rfly_terrain.planning.kernels import BLOCKED, piece_cost, piece_end, shortest_dubins, shortest_to_point, word_cost

HEADINGS = 72
"""sectors in which the search tells headings apart"""
EAGER = 1.05
"""by which the search's estimate is enlarged: its way costs at most this much more than the best of the lattice"""
FOUND, UNREACHABLE, GAVE_UP = 0, 1, 2
"""how a search ends"""


@kernel(nogil=True)
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


@kernel(nogil=True)
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


@kernel(nogil=True)
def _slot(keys: Any, key: int) -> int:
    """Where a key above 0 lies in an open-addressed table of 2**k slots, or where it would be put (0 there)."""
    mask = keys.size - 1
    at = ((key * 2654435761) ^ (key >> 15)) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + 1) & mask
    return int(at)


@kernel(nogil=True)
def _shot(pose: Any, goal: Any, free_goal: bool, radius: float) -> tuple[float, float, float, float, float, float]:
    """The shortest way from a pose to the goal where nothing is in between."""
    if free_goal:
        return shortest_to_point(pose[0], pose[1], pose[2], goal[0], goal[1], radius)
    return shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius)


@kernel(nogil=True)
def _estimate(to_go: Any, grid: Any, pose: Any, goal: Any, free_goal: bool, radius: float) -> float:
    """What the way from a pose to the goal costs at least, or nearly so."""
    row, column = int((pose[1] - grid[1]) / grid[2]), int((pose[0] - grid[0]) / grid[2])
    # from the middle of a cell to that of another one, of which a pose is up to 0.71 cells away at both ends
    over_grid = max(to_go[row, column] - 1.5, 0.0) * grid[2]
    if free_goal:
        return over_grid
    word = shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius)
    return max(over_grid, word[0] + word[1] + word[2])


@kernel(nogil=True)
def _key(pose: Any, grid: Any, lattice: float, across: int) -> int:
    """Number, from 1 on, of the lattice cell and heading sector of a pose."""
    cell = int((pose[1] - grid[1]) / lattice) * across + int((pose[0] - grid[0]) / lattice)
    return 1 + cell * HEADINGS + int(pose[2] * HEADINGS / (2.0 * math.pi)) % HEADINGS


class Found(NamedTuple):
    """What a search has found."""

    status: int
    """FOUND, UNREACHABLE or GAVE_UP"""
    poses: NDArray[np.float64]
    """(k, 3) where pieces begin, and the goal"""
    pieces: NDArray[np.float64]
    """(k - 1, 2) length, curvature"""


def search(
    weight: NDArray[np.float32],
    grid: tuple[float, float, float],
    to_go: NDArray[np.float32],
    starts: NDArray[np.float64],
    goal: NDArray[np.float64],
    free_goal: bool,
    radius: float,
    most_nodes: int,
) -> Found:
    """Hybrid A* from one of several poses (s, 3) to a pose (3,), with `free_goal` with any heading there.

    States are poses, kept once in each lattice cell of position and heading sector; from a pose lead on a straight
    line and to either side an arc of `radius`, which, where it would turn far on its way to the next lattice cell, is
    one of 45° or of 90° and goes on straight. Beside these, Dubins' shortest way to the goal is looked at; where it is
    free the goal has that cost, and the search ends as soon as no open pose can be better. The estimate is the larger
    of `to_go` (see `cost_to_go`) and that way's length, enlarged by EAGER. It gives up at `most_nodes`, a power of two.
    After D. Dolgov et al., Path planning for autonomous vehicles in unknown semi-structured environments, IJRR 29
    (2010), sections 2.1-2.3.
    """
    resolution, sector = grid[2], 2.0 * math.pi / HEADINGS
    length = max(1.5 * resolution, 1.01 * sector * radius)
    at_most, eighth = length / radius, 0.25 * math.pi
    turns = [0.0, min(at_most, eighth), -min(at_most, eighth)]
    if at_most > eighth:
        turns += [min(at_most, 2 * eighth), -min(at_most, 2 * eighth)]
    # memory that is not written to costs nothing: it is never grown
    pose, made_by = np.empty((most_nodes, 3)), np.empty((most_nodes, 2))
    cost, parent = np.empty(most_nodes), np.empty(most_nodes, np.int64)
    keys, values = np.zeros(4 * most_nodes, np.int64), np.empty(4 * most_nodes, np.int32)
    heap_f, heap_n = np.empty(most_nodes), np.empty(most_nodes, np.int64)
    lattice = max(resolution, length / 1.5)
    across = int(weight.shape[1] * resolution / lattice) + 2
    for node in range(len(starts)):
        pose[node], cost[node], parent[node] = starts[node], 0.0, -1
        heap_f[node], heap_n[node] = 0.0, node
        key = _key(pose[node], grid, lattice, across)
        slot = _slot(keys, key)
        keys[slot], values[slot] = key, node
    word = np.zeros(6)
    nodes = (pose, made_by, cost, parent, keys, values, heap_f, heap_n)
    last = expand(
        weight, grid, to_go, goal, free_goal, radius, length, lattice, np.array(turns), len(starts), nodes, word
    )
    if last < 0:
        return Found(UNREACHABLE if last == -1 else GAVE_UP, np.empty((0, 3)), np.empty((0, 2)))
    way = [last]
    while parent[way[-1]] >= 0:
        way.append(int(parent[way[-1]]))
    pieces = []
    for node in way[-2::-1]:
        arc, line = made_by[node].tolist()
        pieces += [(abs(arc), math.copysign(1.0 / radius, arc)), (line, 0.0)]
    pieces += [(word[k], word[3 + k] / radius) for k in range(3)]
    pieces = [(float(piece), float(curvature)) for piece, curvature in pieces if piece > 0.0]
    x, y, heading = pose[way[-1]].tolist()
    poses = [(x, y, heading)]
    for piece, curvature in pieces:
        poses.append(piece_end(*poses[-1], piece, curvature))
    return Found(FOUND, np.array(poses), np.array(pieces))


@kernel(nogil=True)
def expand(
    weight: Any,
    grid: Any,
    to_go: Any,
    goal: Any,
    free_goal: bool,
    radius: float,
    length: float,
    lattice: float,
    turns: Any,
    starts: int,
    arrays: Any,
    best_word: Any,
) -> int:
    """The search itself: the node from which `best_word` leads to the goal; -1: there is none, -2: no more room.

    `turns` (m,): angles of the arcs that lead on from a pose, each with a line to a common `length`. `arrays` of nodes,
    the first `starts` of which are there already: pose (n, 3); made_by (n, 2), length of the arc that led there, signed
    by its turn, and of the line after it; cost, parent (n,); keys (0 where free) and values, the table of the best node
    of each lattice cell; heap_f, heap_n (n,).
    """
    pose, made_by, cost, parent, keys, values, heap_f, heap_n = arrays
    across = int(weight.shape[1] * grid[2] / lattice) + 2
    nodes, waiting, expanded, next_shot = starts, starts, 0, 0
    best_goal, goal_parent = math.inf, -1
    while waiting > 0:
        node, f = heap_n[0], heap_f[0]
        _pop(heap_f, heap_n, waiting)
        waiting -= 1
        if f >= best_goal:
            break
        if node >= starts and values[_slot(keys, _key(pose[node], grid, lattice, across))] != node:
            continue  # a cheaper pose took its place
        if expanded >= next_shot or node < starts:
            word = _shot(pose[node], goal, free_goal, radius)
            part = word_cost(
                weight, grid, pose[node, 0], pose[node, 1], pose[node, 2], word, radius, best_goal - cost[node]
            )
            if part != BLOCKED and cost[node] + part < best_goal:
                best_goal, goal_parent = cost[node] + part, node
                for k in range(6):
                    best_word[k] = word[k]
            next_shot = expanded + int(0.05 * (f - cost[node]) / length)
        expanded += 1
        for m in range(turns.size):
            x, y, heading, total = pose[node, 0], pose[node, 1], pose[node, 2], cost[node]
            curvature = 1.0 / radius if turns[m] > 0.0 else -1.0 / radius
            piece = radius * abs(turns[m])
            arc = piece
            for _ in range(2):  # the arc, then the line
                if piece > 1e-9 * length:
                    part = piece_cost(weight, grid, x, y, heading, piece, curvature, best_goal - total)
                    if part == BLOCKED:
                        total = math.inf
                        break
                    total += part
                    x, y, heading = piece_end(x, y, heading, piece, curvature)
                piece, curvature = length - arc, 0.0
            if total == math.inf:
                continue
            if nodes == cost.size:
                return -2
            pose[nodes, 0], pose[nodes, 1], pose[nodes, 2] = x, y, heading % (2.0 * math.pi)
            key = _key(pose[nodes], grid, lattice, across)
            slot = _slot(keys, key)
            if keys[slot] == key and cost[values[slot]] <= total:
                continue
            f = total + EAGER * _estimate(to_go, grid, pose[nodes], goal, free_goal, radius)
            if f == math.inf or f >= best_goal:
                continue
            cost[nodes], parent[nodes] = total, node
            line = length - arc
            made_by[nodes, 0] = arc if turns[m] > 0.0 else -arc
            made_by[nodes, 1] = line if line > 1e-9 * length else 0.0
            keys[slot], values[slot] = key, nodes
            _push(heap_f, heap_n, waiting, f, nodes)
            waiting += 1
            nodes += 1
    return goal_parent


@kernel(nogil=True)
def shorten(
    weight: Any, grid: Any, poses: Any, pieces: Any, free_start: bool, free_goal: bool, radius: float
) -> tuple[Any, Any, float]:
    """A way of poses (k, 3) and pieces (k - 1, 2), as short cuts make it: the same two arrays, and its cost.

    From each pose Dubins' ways to those 1, 2, 4, 8 … poses ahead are looked at; of these and the
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
            if i == 0 and free_start and free_goal and j == count - 1:
                dx, dy = poses[j, 0] - x, poses[j, 1] - y
                word = (0.0, math.sqrt(dx * dx + dy * dy), 0.0, 0.0, 0.0, 0.0)
                heading = math.atan2(dy, dx)
            elif i == 0 and free_start:
                # seen backwards the start is a point to reach, and left turns are right turns
                back = shortest_to_point(poses[j, 0], poses[j, 1], poses[j, 2] + math.pi, x, y, radius)
                word = (back[2], back[1], back[0], -back[5], -back[4], -back[3])
                heading = poses[j, 2]
                for k in range(3):
                    heading -= word[k] * word[3 + k] / radius
            elif free_goal and j == count - 1:
                word = shortest_to_point(x, y, heading, poses[j, 0], poses[j, 1], radius)
            else:
                word = shortest_dubins(x, y, heading, poses[j, 0], poses[j, 1], poses[j, 2], radius)
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
    steps, j = 0, count - 1
    while j > 0:
        steps += 1
        j = parent[j]
    way = np.empty(steps + 1, np.int64)
    j = count - 1
    for i in range(steps, -1, -1):
        way[i] = j
        j = parent[j]
    made, parts = np.empty((3 * steps + 1, 3)), np.empty((3 * steps, 2))
    x, y, heading = poses[0, 0], poses[0, 1], first_heading[way[1]]
    made[0, 0], made[0, 1], made[0, 2] = x, y, heading
    n = 0
    for i in range(1, steps + 1):
        for k in range(3):
            if words[way[i], k] > 1e-9:
                parts[n, 0], parts[n, 1] = words[way[i], k], words[way[i], 3 + k] / radius
                x, y, heading = piece_end(x, y, heading, parts[n, 0], parts[n, 1])
                n += 1
                made[n, 0], made[n, 1], made[n, 2] = x, y, heading
    return made[: n + 1].copy(), parts[:n].copy(), cost[count - 1]
