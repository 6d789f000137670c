"""Compiled kernels of planning on a grid; without numba the same functions run as plain Python, much slower.

- `weight`: (rows, columns) float32, row 0 in the south: what a metre costs in a cell, at least 1; 0 where none may be.
- `grid`: (origin_x, origin_y, resolution) of its south-west corner, m.
- A piece of a path: x, y, heading at its start, length (m), curvature (1/m, left positive).

A pose is looked at with a margin: every path point lies within STEP/2 cells of a sample, and every sample needs all
cells within MARGIN of it, so that no cell that the path crosses, be it by a corner, is missed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common import dubins
from rfly_common.accel import kernel_or_plain

STEP = 0.2
"""cells between two samples of a path"""
MARGIN = 0.11
"""cells around a sample that have to be free; above STEP / 2"""
HEADINGS = 72
"""sectors in which the search tells headings apart"""
BLOCKED = -1.0
"""cost of a piece that leaves the free cells"""

EAGER = 1.05
"""by which the search's estimate is enlarged: its way costs at most this much more than the best of the lattice"""

FOUND, UNREACHABLE, GAVE_UP = 0, 1, 2
"""how a search ends"""

shortest_dubins = kernel_or_plain(nogil=True)(dubins.shortest_dubins)


@kernel_or_plain(nogil=True)
def weight_at(weight: Any, grid: Any, x: float, y: float) -> float:
    """What a metre costs at a point, 0 where a cell within MARGIN is not free or not on the grid."""
    rows, columns = weight.shape
    u, v = (x - grid[0]) / grid[2], (y - grid[1]) / grid[2]
    column, row = math.floor(u), math.floor(v)
    if column < 0 or row < 0 or column >= columns or row >= rows:
        return 0.0
    here = weight[row, column]
    if here == 0.0:
        return 0.0
    side = -1 if u - column < MARGIN else 1 if u - column > 1.0 - MARGIN else 0
    end = -1 if v - row < MARGIN else 1 if v - row > 1.0 - MARGIN else 0
    beside, beyond = column + side, row + end
    if beside < 0 or beyond < 0 or beside >= columns or beyond >= rows:
        return 0.0
    if weight[row, beside] == 0.0 or weight[beyond, column] == 0.0 or weight[beyond, beside] == 0.0:
        return 0.0
    return here


@kernel_or_plain(nogil=True)
def piece_end(x: float, y: float, heading: float, length: float, curvature: float) -> tuple[float, float, float]:
    """The pose at the end of a piece."""
    half = 0.5 * curvature * length
    chord = length if abs(half) < 1e-12 else length * math.sin(half) / half
    return x + chord * math.cos(heading + half), y + chord * math.sin(heading + half), heading + 2.0 * half


@kernel_or_plain(nogil=True)
def piece_cost(
    weight: Any, grid: Any, x: float, y: float, heading: float, length: float, curvature: float, most: float
) -> float:
    """∫ weight ds along a piece, by trapezia; BLOCKED where it leaves the free cells or costs more than `most`."""
    count = max(1, math.ceil(length / (STEP * grid[2])))
    ds = length / count
    half = 0.5 * curvature * ds
    chord = ds if abs(half) < 1e-12 else ds * math.sin(half) / half
    ahead_x, ahead_y = chord * math.cos(heading + half), chord * math.sin(heading + half)
    turn_c, turn_s = math.cos(2.0 * half), math.sin(2.0 * half)
    before = weight_at(weight, grid, x, y)
    if before == 0.0:
        return BLOCKED
    cost = 0.0
    for _ in range(count):
        x += ahead_x
        y += ahead_y
        ahead_x, ahead_y = turn_c * ahead_x - turn_s * ahead_y, turn_s * ahead_x + turn_c * ahead_y
        here = weight_at(weight, grid, x, y)
        if here == 0.0:
            return BLOCKED
        cost += 0.5 * (before + here) * ds
        if cost > most:
            return BLOCKED
        before = here
    return cost


@kernel_or_plain(nogil=True)
def word_cost(
    weight: Any, grid: Any, x: float, y: float, heading: float, word: Any, radius: float, most: float
) -> float:
    """Cost of the three pieces of a Dubins word from a pose; BLOCKED as in `piece_cost`."""
    cost = 0.0
    for k in range(3):
        if word[k] > 0.0:
            curvature = word[3 + k] / radius
            part = piece_cost(weight, grid, x, y, heading, word[k], curvature, most - cost)
            if part == BLOCKED:
                return BLOCKED
            cost += part
            x, y, heading = piece_end(x, y, heading, word[k], curvature)
    return cost


@kernel_or_plain(nogil=True)
def shortest_to_point(
    x: float, y: float, heading: float, to_x: float, to_y: float, radius: float
) -> tuple[float, float, float, float, float, float]:
    """The shortest way to a point, with any heading there, as a Dubins word.

    Outside of both turning circles an arc and its tangent; inside of one it is reached by an arc of the other circle
    and one of the first (X.-N. Bui et al., Shortest path synthesis for Dubins non-holonomic robot, ICRA 1994).
    """
    dx, dy = to_x - x, to_y - y
    c, s = math.cos(heading), math.sin(heading)
    ahead, left = c * dx + s * dy, c * dy - s * dx
    turn = 1.0 if left >= 0.0 else -1.0
    left *= turn  # mirrored so that the point lies to the left
    square = ahead * ahead + (left - radius) * (left - radius)
    if square >= radius * radius * (1.0 - 1e-12):
        straight = math.sqrt(max(square - radius * radius, 0.0))
        # the tangent from the circle about (0, radius): the heading at which it is left
        angle = math.atan2(left - radius, ahead) + math.atan2(radius, straight)
        angle %= 2.0 * math.pi
        if 2.0 * math.pi - angle < 1e-9:
            angle = 0.0
        return radius * angle, straight, 0.0, turn, 0.0, 0.0
    # Inside of the left circle: first to the right about (0, -radius), then to the left about a centre 2 radii from
    # there and one from the point. That centre lies to either side of the line to the point.
    far = math.sqrt(ahead * ahead + (left + radius) * (left + radius))
    at = math.acos(min(max((5.0 * radius * radius - far * far) / (4.0 * radius * radius), -1.0), 1.0))
    side = math.acos(min(max((3.0 * radius * radius + far * far) / (4.0 * radius * far), -1.0), 1.0))
    to_point = 0.5 * math.pi - math.atan2(left + radius, ahead)
    first, second = (to_point - side) % (2.0 * math.pi), at
    other, after = (to_point + side) % (2.0 * math.pi), 2.0 * math.pi - at
    if other + after < first + second:
        first, second = other, after
    return radius * first, radius * second, 0.0, -turn, turn, 0.0


@kernel_or_plain(nogil=True)
def cost_to_go(
    weight: Any, goal_row: int, goal_column: int, highest: float, start_row: int, start_column: int, spare: float
) -> Any:
    """(rows, columns) float32: least cost in cells from each cell's centre to the goal's, inf where no way leads.

    It ends where all cells are known that cost `spare` cells more than the start; those beyond get what they cost at
    least.

    Steps lead to the 8 neighbours and, as a knight moves, to the 8 cells beyond, and cross free cells only; ways over
    them are at most 2.8 % longer than straight ones. Dijkstra with a ring of buckets as wide as the cheapest step, 1
    (R. Dial, Algorithm 360, CACM 12 (1969)): within a bucket the order does not matter then. `highest` is the largest
    weight.
    """
    rows, columns = weight.shape
    wide = columns + 4  # two cells that nobody may enter on every side save the question where the grid ends
    w = np.zeros((rows + 4) * wide, np.float32)
    for row in range(rows):
        w[(row + 2) * wide + 2 : (row + 2) * wide + 2 + columns] = weight[row]
    best = np.full(w.size, np.inf, np.float32)
    ring = math.ceil(2.3 * highest) + 2
    room = 1024
    cells = np.empty((ring, room), np.int32)
    filled = np.zeros(ring, np.int64)
    goal = (goal_row + 2) * wide + goal_column + 2
    start = (start_row + 2) * wide + start_column + 2
    waiting, bucket = 0, 0
    if w[goal] > 0.0:
        best[goal] = 0.0
        cells[0, 0], filled[0], waiting = goal, 1, 1
    # the eight neighbours in order around; the knight's moves of m lie beside neighbour m and the straight one next
    around = np.array([1, 1 + wide, wide, wide - 1, -1, -1 - wide, -wide, 1 - wide], np.int64)
    near = np.empty(8, np.float32)
    while waiting > 0 and not bucket > best[start] + spare:
        slot = bucket % ring
        taken = 0
        while taken < filled[slot]:
            cell = cells[slot, taken]
            taken += 1
            cost = best[cell]
            if int(cost) != bucket:
                continue  # a cheaper way was found since
            here = w[cell]
            for m in range(8):
                near[m] = w[cell + around[m]]
            for m in range(16):
                k = m // 2
                if m % 2 == 0:
                    if near[k] == 0.0:
                        continue
                    to = cell + around[k]
                    if k % 2 == 0:
                        step = np.float32(0.5) * (here + near[k])
                    elif near[k - 1] == 0.0 or near[(k + 1) % 8] == 0.0:
                        continue
                    else:
                        step = np.float32(0.70710678) * (here + near[k])
                else:
                    # from straight neighbour to diagonal one, or back: the cell beyond both
                    j = (k + 1) % 8
                    if near[k] == 0.0 or near[j] == 0.0:
                        continue
                    to = cell + around[k] + around[j]
                    if w[to] == 0.0:
                        continue
                    step = np.float32(0.55901699) * (here + near[k] + near[j] + w[to])
                new = cost + step
                if new < best[to]:
                    best[to] = new
                    into = int(new) % ring
                    if filled[into] == room:
                        more = np.empty((ring, 2 * room), np.int32)
                        more[:, :room] = cells
                        cells, room = more, 2 * room
                    cells[into, filled[into]] = to
                    filled[into] += 1
                    waiting += 1
        waiting -= filled[slot]
        filled[slot] = 0
        bucket += 1
    known = best.reshape(rows + 4, wide)[2:-2, 2:-2].copy()
    if waiting > 0:
        for row in range(rows):
            for column in range(columns):
                known[row, column] = min(known[row, column], np.float32(bucket))
    return known


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

    States are poses, kept once in each lattice cell of position and heading sector; from a pose three pieces lead on:
    straight, and to either side with `radius`. Beside these, Dubins' shortest way to the goal is looked at; where it is
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
    made_by = np.empty((room, 2))
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
        for turn in range(-1, 2):
            curvature = turn / radius
            part = piece_cost(weight, grid, x, y, heading, length, curvature, best_goal - cost[node])
            if part == BLOCKED:
                continue
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
            total = cost[node] + part
            pose[nodes, 0], pose[nodes, 1], end = piece_end(x, y, heading, length, curvature)
            pose[nodes, 2] = end % (2.0 * math.pi)
            key = _key(pose[nodes], grid, lattice, across)
            slot = _slot(keys, key)
            if keys[slot] == key and cost[values[slot]] <= total:
                continue
            guess = _estimate(to_go, grid, pose[nodes], goal, free_goal, radius)
            if guess == math.inf or total + guess >= best_goal:
                continue
            cost[nodes], parent[nodes] = total, node
            made_by[nodes, 0], made_by[nodes, 1] = length, curvature
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
    poses, pieces = np.empty((count + 3, 3)), np.empty((count + 2, 2))
    node = goal_parent
    for j in range(count - 1, -1, -1):
        poses[j] = pose[node]
        if j > 0:
            pieces[j - 1] = made_by[node]
        node = parent[node]
    word = _shot(pose[goal_parent], goal, free_goal, radius)
    x, y, heading = pose[goal_parent, 0], pose[goal_parent, 1], pose[goal_parent, 2]
    for k in range(3):
        if word[k] > 0.0:
            pieces[count - 1, 0], pieces[count - 1, 1] = word[k], word[3 + k] / radius
            x, y, heading = piece_end(x, y, heading, word[k], word[3 + k] / radius)
            poses[count, 0], poses[count, 1], poses[count, 2] = x, y, heading
            count += 1
    return FOUND, poses[:count].copy(), pieces[: count - 1].copy()


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
