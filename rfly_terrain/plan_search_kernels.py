"""Compiled kernels: hybrid A* over a grid, and short cuts of what it finds. See `plan_kernels` for the arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.accel import kernel_or_plain
from rfly_terrain.plan_kernels import BLOCKED, piece_cost, piece_end, shortest_dubins, shortest_to_point, word_cost

HEADINGS = 72
"""sectors in which the search tells headings apart"""
EAGER = 1.05
"""by which the search's estimate is enlarged: its way costs at most this much more than the best of the lattice"""
FOUND, UNREACHABLE, GAVE_UP = 0, 1, 2
"""how a search ends"""


@kernel_or_plain(nogil=True)
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


@kernel_or_plain(nogil=True)
def _pop(heap_f: Any, heap_n: Any, size: int) -> int:
    """Takes the node of the least f out of a heap of `size` entries."""
    node = heap_n[0]
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
    return int(node)


@kernel_or_plain(nogil=True)
def _slot(keys: Any, key: int) -> int:
    """Where a key lies in an open-addressed table of 2**k slots, or where it would be put (-1 there)."""
    mask = keys.size - 1
    at = ((key * 2654435761) ^ (key >> 15)) & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return int(at)


@kernel_or_plain(nogil=True)
def _longer(array: Any) -> Any:
    """A copy with twice the rows."""
    more = np.empty((2 * array.shape[0], *array.shape[1:]), array.dtype)
    more[: array.shape[0]] = array
    return more


@kernel_or_plain(nogil=True)
def _shot(pose: Any, goal: Any, free_goal: bool, radius: float) -> tuple[float, float, float, float, float, float]:
    """The shortest way from a pose to the goal where nothing is in between."""
    if free_goal:
        return shortest_to_point(pose[0], pose[1], pose[2], goal[0], goal[1], radius)
    return shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius)


@kernel_or_plain(nogil=True)
def _estimate(to_go: Any, grid: Any, pose: Any, goal: Any, free_goal: bool, radius: float) -> float:
    """What the way from a pose to the goal costs at least, or nearly so."""
    row, column = int((pose[1] - grid[1]) / grid[2]), int((pose[0] - grid[0]) / grid[2])
    # from the middle of a cell to that of another one, of which a pose is up to 0.71 cells away at both ends
    over_grid = max(to_go[row, column] - 1.5, 0.0) * grid[2]
    if free_goal:
        return EAGER * over_grid
    word = shortest_dubins(pose[0], pose[1], pose[2], goal[0], goal[1], goal[2], radius)
    return EAGER * max(over_grid, word[0] + word[1] + word[2])


@kernel_or_plain(nogil=True)
def _key(pose: Any, grid: Any, lattice: float, across: int) -> int:
    """Number of the lattice cell and heading sector of a pose."""
    cell = int((pose[1] - grid[1]) / lattice) * across + int((pose[0] - grid[0]) / lattice)
    return cell * HEADINGS + int(pose[2] * HEADINGS / (2.0 * math.pi)) % HEADINGS


@kernel_or_plain(nogil=True)
def search(
    weight: Any, grid: Any, to_go: Any, starts: Any, goal: Any, free_goal: bool, radius: float, most_nodes: int
) -> tuple[int, Any, Any]:
    """Hybrid A*: FOUND, UNREACHABLE or GAVE_UP; the poses (k, 3) where pieces begin, and the goal; the pieces
    (k - 1, 2): length, curvature.

    States are poses, kept once in each lattice cell of position and heading sector; from a pose lead on a straight
    line and to either side an arc of `radius`, which, where it would turn far on its way to the next lattice cell, is
    one of 45° or of 90° and goes on straight. Beside these, Dubins' shortest way to the goal is looked at; where it is
    free the goal has that cost, and the search ends as soon as no open pose can be better. The estimate is the larger
    of `to_go` (see `cost_to_go`; metres) and that way's length. After D. Dolgov et al., Path planning for autonomous
    vehicles in unknown semi-structured environments, IJRR 29 (2010), sections 2.1-2.3.

    starts: (s, 3) poses to choose from. A goal with `free_goal` may be reached with any heading.
    """
    resolution = grid[2]
    sector = 2.0 * math.pi / HEADINGS
    length = max(1.5 * resolution, 1.01 * sector * radius)
    lattice = max(resolution, length / 1.5)
    across = int(weight.shape[1] * resolution / lattice) + 2
    room = 1024
    pose = np.empty((room, 3))
    cost = np.empty(room)
    parent = np.empty(room, np.int64)
    made_by = np.empty((room, 2))  # length of the arc that led to a pose, signed by its turn; of the line after it
    at_most = length / radius
    turns = np.array([0.0, 1.0, -1.0, 2.0, -2.0]) * min(at_most, 0.25 * math.pi)
    if at_most <= 0.25 * math.pi:
        turns = turns[:3]
    elif at_most < 0.5 * math.pi:
        turns[3], turns[4] = at_most, -at_most
    heap_f, heap_n = np.empty(room), np.empty(room, np.int64)
    keys, values = np.full(4 * room, -1, np.int64), np.empty(4 * room, np.int64)
    nodes, waiting = 0, 0
    for i in range(starts.shape[0]):
        pose[nodes] = starts[i]
        pose[nodes, 2] %= 2.0 * math.pi
        cost[nodes], parent[nodes] = 0.0, -1
        key = _key(pose[nodes], grid, lattice, across)
        slot = _slot(keys, key)
        keys[slot], values[slot] = key, nodes
        guess = _estimate(to_go, grid, pose[nodes], goal, free_goal, radius)
        if guess != math.inf:
            _push(heap_f, heap_n, waiting, guess, nodes)
            waiting += 1
            nodes += 1
    best_goal, goal_parent, expanded, next_shot = math.inf, -1, 0, 0
    while waiting > 0:
        node = _pop(heap_f, heap_n, waiting)
        waiting -= 1
        if parent[node] >= 0 and values[_slot(keys, _key(pose[node], grid, lattice, across))] != node:
            continue  # a cheaper pose took its place
        x, y, heading = pose[node, 0], pose[node, 1], pose[node, 2]
        guess = _estimate(to_go, grid, pose[node], goal, free_goal, radius)
        if cost[node] + guess >= best_goal:
            break
        if expanded >= next_shot or parent[node] < 0:
            word = _shot(pose[node], goal, free_goal, radius)
            part = word_cost(weight, grid, x, y, heading, word, radius, best_goal - cost[node])
            if part != BLOCKED and cost[node] + part < best_goal:
                best_goal, goal_parent = cost[node] + part, node
            next_shot = expanded + int(0.05 * guess / length)
        expanded += 1
        for m in range(turns.size):
            arc = radius * abs(turns[m])
            line = max(length - arc, 0.0)
            curvature = 1.0 / radius if turns[m] > 0.0 else -1.0 / radius
            total = cost[node]
            to_x, to_y, to_heading = x, y, heading
            if arc > 0.0:
                part = piece_cost(weight, grid, x, y, heading, arc, curvature, best_goal - total)
                if part == BLOCKED:
                    continue
                total += part
                to_x, to_y, to_heading = piece_end(x, y, heading, arc, curvature)
            if line > 1e-9 * length:
                part = piece_cost(weight, grid, to_x, to_y, to_heading, line, 0.0, best_goal - total)
                if part == BLOCKED:
                    continue
                total += part
                to_x, to_y, to_heading = piece_end(to_x, to_y, to_heading, line, 0.0)
            else:
                line = 0.0
            if nodes == room:
                if nodes >= most_nodes:
                    return GAVE_UP, pose[:0].copy(), made_by[:0].copy()
                room *= 2
                pose, cost, parent, made_by = _longer(pose), _longer(cost), _longer(parent), _longer(made_by)
                heap_f, heap_n = _longer(heap_f), _longer(heap_n)
                old_keys, old_values = keys, values
                keys, values = np.full(4 * room, -1, np.int64), np.empty(4 * room, np.int64)
                for j in range(old_keys.size):
                    if old_keys[j] != -1:
                        into = _slot(keys, old_keys[j])
                        keys[into], values[into] = old_keys[j], old_values[j]
            pose[nodes, 0], pose[nodes, 1], pose[nodes, 2] = to_x, to_y, to_heading % (2.0 * math.pi)
            key = _key(pose[nodes], grid, lattice, across)
            slot = _slot(keys, key)
            if keys[slot] == key and cost[values[slot]] <= total:
                continue
            guess = _estimate(to_go, grid, pose[nodes], goal, free_goal, radius)
            if guess == math.inf or total + guess >= best_goal:
                continue
            cost[nodes], parent[nodes] = total, node
            made_by[nodes, 0], made_by[nodes, 1] = arc * curvature * radius, line
            keys[slot], values[slot] = key, nodes
            _push(heap_f, heap_n, waiting, total + guess, nodes)
            waiting += 1
            nodes += 1
    if goal_parent < 0:
        return UNREACHABLE, pose[:0].copy(), made_by[:0].copy()
    count, node = 0, goal_parent
    while node >= 0:
        count += 1
        node = parent[node]
    way = np.empty(count, np.int64)
    node = goal_parent
    for j in range(count - 1, -1, -1):
        way[j] = node
        node = parent[node]
    poses, pieces = np.empty((2 * count + 3, 3)), np.empty((2 * count + 2, 2))
    x, y, heading = pose[way[0], 0], pose[way[0], 1], pose[way[0], 2]
    poses[0, 0], poses[0, 1], poses[0, 2] = x, y, heading
    n = 0
    for j in range(1, count):
        arc, line = made_by[way[j], 0], made_by[way[j], 1]
        if arc != 0.0:
            pieces[n, 0], pieces[n, 1] = abs(arc), 1.0 / radius if arc > 0.0 else -1.0 / radius
            x, y, heading = piece_end(x, y, heading, pieces[n, 0], pieces[n, 1])
            n += 1
            poses[n, 0], poses[n, 1], poses[n, 2] = x, y, heading
        if line > 0.0:
            pieces[n, 0], pieces[n, 1] = line, 0.0
            x, y, heading = piece_end(x, y, heading, line, 0.0)
            n += 1
            poses[n, 0], poses[n, 1], poses[n, 2] = x, y, heading
    word = _shot(poses[n], goal, free_goal, radius)
    for k in range(3):
        if word[k] > 0.0:
            pieces[n, 0], pieces[n, 1] = word[k], word[3 + k] / radius
            x, y, heading = piece_end(x, y, heading, word[k], word[3 + k] / radius)
            n += 1
            poses[n, 0], poses[n, 1], poses[n, 2] = x, y, heading
    return FOUND, poses[: n + 1].copy(), pieces[:n].copy()


@kernel_or_plain(nogil=True)
def shorten(
    weight: Any, grid: Any, poses: Any, pieces: Any, free_start: bool, free_goal: bool, radius: float
) -> tuple[Any, Any, float]:
    """A way of poses (k, 3) and pieces (k - 1, 2), as short cuts make it: the same two arrays, and its cost.

    From each pose Dubins' ways to those 1, 2, 4, 8 … poses ahead and to the last one are looked at; of these and the
    pieces themselves the cheapest row is taken (dynamic programming). A free heading at start or goal is chosen anew.
    """
    count = poses.shape[0]
    cost, parent = np.full(count, np.inf), np.full(count, -1, np.int64)
    words, first_heading = np.zeros((count, 6)), np.full(count, poses[0, 2])
    cost[0] = 0.0
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
            if j == count - 1:
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
