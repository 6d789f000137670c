# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernels of the environments: episodes that begin, commands, observations and rewards.

Each loops over the vehicles and treats one as if it were alone, so that the size of a batch
changes no bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.dynamics.wind import hashed
from rfly_amphibious.sensors.sensor_kernels import JointGeometry, wheel_turn
from rfly_amphibious.vehicle.state_layout import (
    CLEARANCE,
    CRASHED,
    INTACT,
    POSITION,
    QUATERNION,
    RATES,
    ROTOR_POWER,
    ROTOR_SPEED,
    STEERING_COMMAND,
    VELOCITY,
)
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import callable_in_kernels, inlined_kernel, kernel
from rfly_common.kernels.vectors import Vector, norm, rotated_back, rotation_matrix, subtract
from rfly_lab.learning.actions import Commands, RotorAction, WheelAction
from rfly_lab.learning.clear_places import course_is_clear
from rfly_lab.learning.episodes import (
    BEFORE_ROTORS,
    CHAIN_STEP,
    FASTEST,
    GLIDE,
    HIGHEST,
    HOP_DISTANCE,
    LARGEST_SEEN,
    LOWEST,
    NEAR,
    PLACE_DISTANCE,
    ROOF_DISTANCE,
    ROOF_HEIGHT,
    SCAN_AHEAD,
    SCAN_ASIDE,
    SPOT,
    TRACK_STEP,
    TRACK_TURNS,
    Disturbances,
    EpisodeLayout,
    Episodes,
    Starts,
)
from rfly_lab.learning.tasks import Course, Ending, Task
from rfly_terrain.height_map.bilinear import altitude

callable_in_kernels(hashed)

# enums as numbers, which kernels take
POINT = int(Course.POINT)
CHAIN = int(Course.CHAIN)
TRACK = int(Course.TRACK)
ROOF = int(Course.ROOF)
HOP = int(Course.HOP)
WRENCH = int(RotorAction.WRENCH)
ROTORS = int(RotorAction.ROTORS)
VELOCITIES = int(RotorAction.VELOCITY)
BRAKED = int(WheelAction.BRAKED)
TORQUES = int(WheelAction.TORQUES)
RUNNING = int(Ending.RUNNING)
SUCCESS = int(Ending.SUCCESS)
OUT_OF_TIME = int(Ending.OUT_OF_TIME)
HAS_CRASHED = int(Ending.CRASHED)
ASTRAY = int(Ending.ASTRAY)
FAILED = int(Ending.FAILED)

# episodes that begin

MOST_TRIES = 5_000
"""Courses that are drawn for an episode until one is clear of objects."""
AGAIN = np.uint64(1000)
"""Number of an episode, beyond all others, from which those of its next course are drawn."""


@inlined_kernel
def drawn(key: Any, k: int, low: float, high: float) -> float:
    """Return number k of an episode, which is uniform between two numbers."""
    bits = hashed(key + np.uint64(k)) >> np.uint64(11)
    return low + (high - low) * (np.float64(bits) / 2.0**53)


@kernel
def begin_episodes(
    which: Ints,
    task: Task,
    episodes: Episodes,
    starts: Starts,
    ground: Any,
    obstacles: Any,
    distance: float,
    disturbances: Disturbances,
    states: Floats,
    memories: Floats,
    mean_wind: Floats,
    gust_keys: Any,
    kinds: Ints,
    tries: Ints,
) -> None:
    """Begin an episode in the environments (k,): draw start, targets, vehicle, wind and failures.

    States and memories are written to (k, states) and (k, memory), wind and keys of the gusts to
    rows of (n, 3) and (n,), kinds of vehicles to (n,). Start and targets are drawn again as long as
    one of them is not clear of obstacles by the distance, m; `tries` (k,) counts, and exceeds
    MOST_TRIES where none was clear.
    """
    for k in range(which.shape[0]):
        v = which[k]
        key = hashed(hashed(episodes.seed[v]) + np.uint64(episodes.number[v]))
        targets = episodes.targets[v]
        own = key
        tries[k] = 1
        place_vehicle(v, own, task, starts, ground, states[k], memories[k], targets)
        while tries[k] <= MOST_TRIES and not course_is_clear(
            obstacles, distance, states[k], targets
        ):
            tries[k] += 1
            own = hashed(own + AGAIN)
            place_vehicle(v, own, task, starts, ground, states[k], memories[k], targets)
        episodes.steps[v] = 0
        episodes.target[v] = 0
        episodes.held[v] = 0
        episodes.distance[v] = distance_to(states[k], targets[0], task)
        episodes.way[v] = way_left(episodes.distance[v], 0.0, 1.0, task)

        # wind
        speed = drawn(key, 1, 0.0, disturbances.wind)
        direction = drawn(key, 2, -math.pi, math.pi)
        mean_wind[v, 0] = speed * math.cos(direction)
        mean_wind[v, 1] = speed * math.sin(direction)
        mean_wind[v, 2] = 0.0
        gust_keys[v] = hashed(key)

        # vehicle
        kinds[v] = 0
        if disturbances.variants:
            kinds[v] = 1 + int(drawn(key, 17, 0.0, float(disturbances.variants)))

        # failures
        episodes.failing_step[v] = -1
        if drawn(key, 3, 0.0, 1.0) < disturbances.rotor_failures:
            episodes.failing_step[v] = int(drawn(key, 4, 0.0, float(disturbances.steps)))
            episodes.failing_rotor[v] = int(drawn(key, 5, 0.0, float(disturbances.rotors)))


@kernel
def clear_courses(
    count: int, task: Task, starts: Starts, ground: Any, obstacles: Any, distance: float
) -> int:
    """Return how many of some courses, drawn for environment 0, are clear of obstacles."""
    state = np.empty_like(starts.flying)
    memory = np.empty(starts.standing_memory.shape[1])
    targets = np.empty((task.targets, 3))
    clear = 0
    for k in range(count):
        seed: Any = np.uint64(k)
        place_vehicle(0, hashed(seed), task, starts, ground, state, memory, targets)
        clear += course_is_clear(obstacles, distance, state, targets)
    return clear


@inlined_kernel
def place_vehicle(
    v: int,
    key: Any,
    task: Task,
    starts: Starts,
    ground: Any,
    state: Floats,
    memory: Floats,
    targets: Floats,
) -> None:
    """Draw state and memory of vehicle v at the start of an episode, and its targets."""
    own = min(v, starts.low.shape[0] - 1)
    x = drawn(key, 6, starts.low[own, 0], starts.high[own, 0])
    y = drawn(key, 7, starts.low[own, 1], starts.high[own, 1])
    yaw = drawn(key, 8, -math.pi, math.pi)
    z = altitude(ground, x, y) + drawn(key, 9, LOWEST, HIGHEST)
    if task.course == ROOF:
        roof = starts.roofs[int(drawn(key, 10, 0.0, float(starts.roofs.shape[0])))]
        distance = drawn(key, 11, ROOF_DISTANCE[0], ROOF_DISTANCE[1])
        direction = drawn(key, 12, -math.pi, math.pi)
        x = roof[0] + distance * math.cos(direction)
        y = roof[1] + distance * math.sin(direction)
        z = roof[2] + drawn(key, 13, ROOF_HEIGHT[0], ROOF_HEIGHT[1])
        z = max(z, altitude(ground, x, y) + LOWEST)
        targets[0] = roof

    if task.course in (POINT, CHAIN, ROOF):
        state[:] = starts.flying
        memory[:] = 0.0
        state[POSITION] = x
        state[POSITION + 1] = y
        state[POSITION + 2] = z
        state[QUATERNION] = math.cos(0.5 * yaw)
        state[QUATERNION + 3] = math.sin(0.5 * yaw)
    else:
        own_start = int(drawn(key, 10, 0.0, float(starts.standing.shape[0])))
        state[:] = starts.standing[own_start]
        memory[:] = starts.standing_memory[own_start]
        x = state[POSITION]
        y = state[POSITION + 1]
        yaw = heading(state)

    if task.course == ROOF:
        return
    if task.course == POINT:
        for c in range(3):
            targets[0, c] = state[POSITION + c] + drawn(key, 11 + c, -NEAR, NEAR)
            state[VELOCITY + c] = drawn(key, 14 + c, -FASTEST, FASTEST)
        least = altitude(ground, targets[0, 0], targets[0, 1]) + LOWEST - NEAR
        targets[0, 2] = max(targets[0, 2], least)
        return

    # the others lie one after the other
    curvature = 0.0
    for t in range(targets.shape[0]):
        first = 20 + 4 * t
        if task.course == TRACK:
            length = TRACK_STEP
            if t % TRACK_TURNS == 0:
                curvature = drawn(key, first, -1.0, 1.0) / starts.turn_radius
            yaw += curvature * length
        else:
            step = PLACE_DISTANCE
            if task.course == CHAIN:
                step = CHAIN_STEP
            elif task.course == HOP:
                step = HOP_DISTANCE
            length = drawn(key, first, step[0], step[1])
            yaw = drawn(key, first + 1, -math.pi, math.pi)
        x += length * math.cos(yaw)
        y += length * math.sin(yaw)
        targets[t, 0] = x
        targets[t, 1] = y
        targets[t, 2] = altitude(ground, x, y)
        if task.course == CHAIN:
            targets[t, 2] += drawn(key, first + 2, LOWEST, HIGHEST)


@inlined_kernel
def heading(state: Floats) -> float:
    """Return the direction of body x across the ground, rad from east."""
    w = state[QUATERNION]
    x = state[QUATERNION + 1]
    y = state[QUATERNION + 2]
    z = state[QUATERNION + 3]
    return math.atan2(2.0 * (x * y + w * z), 1.0 - 2.0 * (y * y + z * z))


@inlined_kernel
def distance_to(state: Floats, target: Floats, task: Task) -> float:
    """Return the distance of a vehicle to a target, m, as its task counts it."""
    x = target[0] - state[POSITION]
    y = target[1] - state[POSITION + 1]
    z = 0.0 if task.is_level else target[2] - state[POSITION + 2]
    return math.sqrt(x * x + y * y + z * z)


@inlined_kernel
def way_left(distance: float, clearance: float, carried: float, task: Task) -> float:
    """Return the way left to a target, m, whose decrease is paid.

    With a `cruise` it leads up from the ground, on at that clearance and down by GLIDE, and ends
    when the wheels carry the whole weight there. `carried`: their share of it.
    """
    if task.cruise == 0.0:
        return distance
    height = min(task.cruise, GLIDE * max(distance - SPOT, 0.0))
    settled = (task.cruise - height) * min(carried, 1.0)
    return distance + abs(clearance - height) + task.cruise - settled


@inlined_kernel
def carried_share(outputs: Floats, layout: EpisodeLayout) -> float:
    """Return the share of the weight that the wheels carry."""
    load = 0.0
    weight = 0.0
    for i in range(layout.wheel_load_columns.shape[0]):
        load += outputs[layout.wheel_load_columns[i]]
        weight += layout.static_load[i]
    return load / weight


# commands


@kernel
def write_commands(actions: Any, commands: Commands, episodes: Episodes, rows: Floats) -> None:
    """Write the commands of actions (n, numbers), limited to -1 … 1, to rows (n, controls).

    The rotors of vehicles that fly by velocity, and the wheels of those that drive by velocity,
    have been written.
    """
    c = commands
    rotors = c.rotor_columns.shape[0]
    for v in range(actions.shape[0]):
        row = rows[v]
        if c.wheels == BRAKED:
            for i in range(c.drive_columns.shape[0]):
                row[c.brake_columns[i]] = c.max_brake

        # rotors
        first = 0
        if c.air == WRENCH:
            first = 4
            thrust = c.weight * (1.0 + limited(actions[v, 0]))
            for j in range(rotors):
                square = c.mixing[j, 0] * thrust
                for k in range(3):
                    square += c.mixing[j, 1 + k] * c.moment[k] * limited(actions[v, 1 + k])
                speed = math.sqrt(max(square, 0.0))
                row[c.rotor_columns[j]] = min(speed, c.max_rotor_speed)
        elif c.air == ROTORS:
            first = rotors
            for j in range(rotors):
                share = 0.5 + 0.5 * limited(actions[v, j])
                row[c.rotor_columns[j]] = share * c.max_rotor_speed
        elif c.air == VELOCITIES:
            first = 4
        if 0 <= episodes.failing_step[v] <= episodes.steps[v]:
            row[c.rotor_columns[episodes.failing_rotor[v]]] = 0.0

        # wheels
        if c.wheels == TORQUES:
            row[STEERING_COMMAND] = c.max_steering * limited(actions[v, first])
            for i in range(c.drive_columns.shape[0]):
                row[c.drive_columns[i]] = c.max_drive * limited(actions[v, first + 1])
                row[c.brake_columns[i]] = c.max_brake * max(limited(actions[v, first + 2]), 0.0)


@inlined_kernel
def limited(action: Any) -> float:
    """Return a number of an action, limited to -1 … 1."""
    return min(max(np.float64(action), -1.0), 1.0)


# rewards


@kernel
def judge(
    task: Task,
    period: float,
    states: Floats,
    memories: Floats,
    outputs: Floats,
    has_failed: Bools,
    layout: EpisodeLayout,
    episodes: Episodes,
    rewards: Floats,
    endings: Any,
) -> None:
    """Count a step of all episodes; write its rewards (n,) and how each stands, (n,) `Ending`."""
    for v in range(states.shape[0]):
        x = states[v]
        episodes.steps[v] += 1
        ending = RUNNING
        if has_failed[v]:
            ending = FAILED
        elif memories[v, CRASHED] != INTACT:
            ending = HAS_CRASHED

        # on the way
        reward = 0.0
        if ending != FAILED:
            distance = distance_to(x, episodes.targets[v, episodes.target[v]], task)
            clearance = outputs[v, CLEARANCE]
            carried = carried_share(outputs[v], layout)
            way = way_left(distance, clearance, carried, task)
            reward += task.progress * (episodes.way[v] - way)
            reward += task.near / (1.0 + distance * distance)
            turning = rates_squared(x)
            power = outputs[v, ROTOR_POWER] / layout.hover_power
            reward -= (task.turning * turning + task.power * power) * period
            episodes.distance[v] = distance
            if ending == RUNNING:
                reward += arrive(v, x, outputs[v], task, period, layout, episodes)
            episodes.way[v] = way_left(episodes.distance[v], clearance, carried, task)

        # the end
        if ending == RUNNING and episodes.distance[v] > task.astray:
            ending = ASTRAY
        hold = max(1, int(task.hold / period + 0.5))
        solved = ending == RUNNING and episodes.held[v] >= hold
        if solved and not task.goes_on:
            ending = SUCCESS
            reward += task.success
        if ending == RUNNING and episodes.steps[v] * period > task.duration - 0.5 * period:
            ending = SUCCESS if solved else OUT_OF_TIME
        if ending in (HAS_CRASHED, ASTRAY, FAILED):
            reward -= task.broken
        rewards[v] = reward
        endings[v] = ending


@inlined_kernel
def rates_squared(x: Floats) -> float:
    """Return |ω|², rad²/s²."""
    return x[RATES] * x[RATES] + x[RATES + 1] * x[RATES + 1] + x[RATES + 2] * x[RATES + 2]


@inlined_kernel
def arrive(
    v: int,
    x: Floats,
    outputs: Floats,
    task: Task,
    period: float,
    layout: EpisodeLayout,
    episodes: Episodes,
) -> float:
    """Go on to the next target where this one is reached, or count the stay at the last.

    Return the reward for a target that is reached.
    """
    is_near = episodes.distance[v] <= task.reach
    if episodes.target[v] < episodes.targets.shape[1] - 1:
        if not is_near:
            return 0.0
        episodes.target[v] += 1
        episodes.distance[v] = distance_to(x, episodes.targets[v, episodes.target[v]], task)
        return task.reached

    stays = is_near
    if task.hold > 0.0:
        stays = stays and norm((x[VELOCITY], x[VELOCITY + 1], x[VELOCITY + 2])) <= task.still
    if task.on_wheels:
        for column in layout.wheel_load_columns:
            stays = stays and outputs[column] > 0.0
    episodes.held[v] = episodes.held[v] + 1 if stays else 0
    return 0.0


# observations


@kernel
def observe(
    task: Task,
    states: Floats,
    outputs: Floats,
    wheel_rates: Floats,
    layout: EpisodeLayout,
    ground: Any,
    episodes: Episodes,
    seen: Any,
) -> None:
    """Write the observation of each vehicle to (n, numbers), named by `observation_names`.

    `wheel_rates` (n, wheels): spins against the body, rad/s, as encoders measure them.
    """
    for v in range(states.shape[0]):
        x = states[v]
        w = x[QUATERNION]
        rotation = rotation_matrix(x[QUATERNION + 1], x[QUATERNION + 2], x[QUATERNION + 3], w)
        position = (x[POSITION], x[POSITION + 1], x[POSITION + 2])

        # targets, motion, clearance
        last = episodes.targets.shape[1] - 1
        target = episodes.targets[v, episodes.target[v]]
        after = episodes.targets[v, min(episodes.target[v] + 1, last)]
        put(seen[v], 0, rotated_back(rotation, way_to(target, position, task)))
        put(seen[v], 3, rotated_back(rotation, way_to(after, position, task)))
        put(seen[v], 6, rotated_back(rotation, (x[VELOCITY], x[VELOCITY + 1], x[VELOCITY + 2])))
        put(seen[v], 9, (rotation[6], rotation[7], rotation[8]))
        put(seen[v], 12, (x[RATES], x[RATES + 1], x[RATES + 2]))
        seen[v, 15] = within_limits(outputs[v, CLEARANCE])
        seen[v, 16] = within_limits(x[layout.steering_column])

        # rotors and wheels
        k = BEFORE_ROTORS
        for j in range(layout.rotors):
            seen[v, k] = within_limits(x[ROTOR_SPEED + j] / layout.max_rotor_speed)
            k += 1
        for i in range(layout.rolling_radius.shape[0]):
            seen[v, k] = within_limits(wheel_rates[v, i] * layout.rolling_radius[i])
            k += 1
        for i in range(layout.wheel_load_columns.shape[0]):
            load = outputs[v, layout.wheel_load_columns[i]] / layout.static_load[i]
            seen[v, k] = within_limits(load)
            k += 1

        # the ground around
        if task.sees_ground:
            yaw = heading(x)
            c = math.cos(yaw)
            s = math.sin(yaw)
            for ahead in SCAN_AHEAD:
                for aside in SCAN_ASIDE:
                    px = position[0] + c * ahead - s * aside
                    py = position[1] + s * ahead + c * aside
                    seen[v, k] = within_limits(altitude(ground, px, py) - position[2])
                    k += 1


@kernel
def spin_wheels(states: Floats, steering_column: int, joints: JointGeometry, rates: Floats) -> None:
    """Write the spin of each wheel against the body, rad/s, to (n, wheels). Eq. 11.5."""
    for v in range(states.shape[0]):
        tangent = math.tan(states[v, steering_column])
        for i in range(rates.shape[1]):
            _, rates[v, i] = wheel_turn(i, states[v], tangent, joints)


@inlined_kernel
def way_to(target: Floats, position: Vector, task: Task) -> Vector:
    """Return the way to a target, m, world; across the ground where the task counts it so."""
    x, y, z = subtract(three(target), position)
    return x, y, 0.0 if task.is_level else z


@inlined_kernel
def three(numbers: Floats) -> Vector:
    """Return three numbers of an array as a vector."""
    return numbers[0], numbers[1], numbers[2]


@inlined_kernel
def put(numbers: Any, first: int, values: Vector) -> None:
    """Write a vector into an observation, within its limits."""
    for c in range(3):
        numbers[first + c] = within_limits(values[c])


@inlined_kernel
def within_limits(value: float) -> float:
    """Return a number limited to ±LARGEST_SEEN; 0 for NaN."""
    if value != value:
        return 0.0
    return min(max(value, -LARGEST_SEEN), LARGEST_SEEN)
