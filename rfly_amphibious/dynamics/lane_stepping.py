"""Steps of LANES vehicles at once, side by side in vectors of the processor's: `stepping` for whole
groups of them.

The same equations, and the same numbers bit by bit. Where nothing but the ground is near; what
happens seldom (a hull that touches, a new gust, a sample) is done for one vehicle after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.arguments import (
    RK4,
    HeldControls,
    Inputs,
    Integrator,
    Samples,
    Vehicles,
    WindSeries,
)
from rfly_amphibious.dynamics.scratch import SCRATCH_SIZE, new_lane_scratch, new_scratch
from rfly_amphibious.dynamics.stepping import (
    FAR_AWAY,
    accepted_command,
    euler_step,
    next_gust,
    project,
    report,
    rk4_step,
    watch,
)
from rfly_amphibious.dynamics.wheel_columns import memory_of
from rfly_amphibious.dynamics.wheels import state_count, wheel_count
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel
from rfly_common.kernels.lanes import LANES, any_lane, flat, lane_record, lane_rows, where


class Workspace(NamedTuple):
    """What LANES vehicles take while they are simulated. Lanes point into it, so a caller has to
    hold it.
    """

    x: Floats
    """(states, LANES)"""
    stages: Floats
    """(3, states, LANES)"""
    command: Floats
    """(controls, LANES)"""
    brake_acting: Floats
    """(wheels, LANES)"""
    wind: Floats
    """(3, LANES)"""
    flags: Floats
    """(2, LANES): 1 where rotors are commanded by torque; where `watch` is to be asked again"""
    scratch: Any
    """two records of lanes"""
    own: Any
    """one record of one vehicle"""
    accepted: Floats
    """(controls,)"""


@kernel
def simulate_lanes(
    vehicles: Vehicles,
    controls: HeldControls,
    wind: WindSeries,
    integrator: Integrator,
    records: Any,
    ground: Any,
    samples: Samples,
) -> None:
    """`stepping.simulate` without obstacles, of a number of vehicles that LANES divides."""
    p = records[0]
    states = vehicles.x.shape[1]
    commands = controls.rows.shape[2]
    workspace = Workspace(
        np.zeros((states, LANES)),
        np.zeros((3, states, LANES)),
        np.zeros((commands, LANES)),
        np.zeros((wheel_count(p), LANES)),
        np.zeros((3, LANES)),
        np.zeros((2, LANES)),
        new_lane_scratch(2),
        new_scratch(1),
        np.zeros(commands),
    )
    for first in range(0, vehicles.x.shape[0], LANES):
        simulate_group(first, vehicles, controls, wind, integrator, p, ground, samples, workspace)


@inner_kernel
def simulate_group(
    first: int,
    vehicles: Vehicles,
    controls: HeldControls,
    wind: WindSeries,
    integrator: Integrator,
    p: Any,
    ground: Any,
    samples: Samples,
    workspace: Workspace,
) -> None:
    """Takes the vehicles from `first` on through all steps."""
    dt = integrator.dt
    flags = workspace.flags
    scratch = workspace.own[0]
    x = lane_rows(workspace.x)
    asked = lane_rows(flags)
    shared = (lane_record(workspace.scratch[0]), lane_record(workspace.scratch[1]))
    stages = (
        lane_rows(workspace.stages[0]),
        lane_rows(workspace.stages[1]),
        lane_rows(workspace.stages[2]),
    )
    give_states(vehicles, first, p, workspace)
    gust = sample = 0
    last_row = -1
    watching = True
    flags[:] = 0.0
    for step in range(wind.gust_begins.size):
        if wind.gust_begins[step]:
            for lane in range(LANES):
                take_state(workspace, lane, vehicles.x[first + lane])
                next_gust(
                    vehicles.x[first + lane],
                    vehicles.memory[first + lane],
                    first + lane,
                    gust,
                    wind,
                    ground,
                )
            gust += 1
        if step == 0 or wind.gust_begins[step]:
            for lane in range(LANES):
                for k in range(3):
                    gusty = vehicles.memory[first + lane, at.GUST + k]
                    workspace.wind[k, lane] = wind.mean[first + lane, k] + gusty
        row = min(step // controls.hold, controls.rows.shape[1] - 1)
        if row != last_row or watching:
            for lane in range(LANES):
                crashed = vehicles.memory[first + lane, at.CRASHED] != 0.0
                accepted_command(controls.rows[first + lane, row], crashed, p, workspace.accepted)
                flags[0, lane] = 1.0 if controls.torques and not crashed else 0.0
                for k in range(workspace.accepted.size):
                    workspace.command[k, lane] = workspace.accepted[k]
            last_row = row
        inputs = Inputs(
            lane_rows(workspace.command),
            asked[0] > 0.0,
            lane_rows(workspace.brake_acting),
            lane_rows(workspace.wind),
        )
        if integrator.method == RK4:
            rk4_step(x, inputs, dt, p, ground, None, stages, shared)
        else:
            euler_step(x, inputs, dt, p, ground, None, stages[0], shared[0])
        project(x, p, shared[0])
        asks = must_be_watched(x, p, shared[0]) | (asked[1] > 0.0)
        watching = any_lane(asks)
        if watching:
            asked[1] = where(asks, 1.0, 0.0)
            for lane in range(LANES):
                v = first + lane
                if flags[1, lane] > 0.0 and vehicles.status[v, 0] == 0:
                    take_state(workspace, lane, vehicles.x[v])
                    take_scratch(shared[0], lane, scratch)
                    problem = watch(vehicles.x[v], vehicles.memory[v], dt, p, scratch)
                    if problem:
                        vehicles.status[v, 0] = problem
                        vehicles.status[v, 1] = step
                    flags[1, lane] = 1.0 if vehicles.memory[v, at.OVERTURNED] > 0.0 else 0.0
        if (step + 1) % samples.every == 0 and sample < samples.states.shape[1]:
            for lane in range(LANES):
                v = first + lane
                take_state(workspace, lane, samples.states[v, sample])
                take_brakes(workspace, lane, vehicles.memory[v])
                samples.memories[v, sample] = vehicles.memory[v]
                take_scratch(shared[0], lane, scratch)
                report(p, scratch, samples.outputs[v, sample])
            sample += 1
    for lane in range(LANES):
        if vehicles.status[first + lane, 0] == 0:  # else it is as it was when that was found
            take_state(workspace, lane, vehicles.x[first + lane])
        take_brakes(workspace, lane, vehicles.memory[first + lane])


@inlined_kernel
def must_be_watched(x: Any, p: Any, scratch: Any) -> Any:
    """Where `watch` may have something to tell: of all others it knows that nothing has happened."""
    asks = scratch.body_points_down > 0.0
    for i in range(wheel_count(p)):
        asks |= scratch.tyre_compression[i] > p.max_tyre_compression * p.wheel_radius
    total = x[0] - x[0]
    for n in range(1, state_count(p)):
        total += x[n] - x[n]
    asks |= total != 0.0
    px = x[at.POSITION]
    py = x[at.POSITION + 1]
    pz = x[at.POSITION + 2]
    return asks | (px * px + py * py + pz * pz > FAR_AWAY * FAR_AWAY)


@inlined_kernel
def give_states(vehicles: Vehicles, first: int, p: Any, workspace: Workspace) -> None:
    """States and brakes of the vehicles from `first` on -> workspace."""
    for lane in range(LANES):
        for n in range(workspace.x.shape[0]):
            workspace.x[n, lane] = vehicles.x[first + lane, n]
        for i in range(wheel_count(p)):
            workspace.brake_acting[i, lane] = vehicles.memory[first + lane, memory_of(i)]


@inlined_kernel
def take_state(workspace: Workspace, lane: int, state: Any) -> None:
    """One vehicle's state -> state."""
    for n in range(state.size):
        state[n] = workspace.x[n, lane]


@inlined_kernel
def take_brakes(workspace: Workspace, lane: int, memory: Any) -> None:
    """The torques of one vehicle's brakes -> memory."""
    for i in range(workspace.brake_acting.shape[0]):
        memory[memory_of(i)] = workspace.brake_acting[i, lane]


@inlined_kernel
def take_scratch(shared: Any, lane: int, own: Any) -> None:
    """One vehicle's numbers of a record of lanes -> its own."""
    source = flat(shared)
    target = flat(own)
    for n in range(SCRATCH_SIZE):
        target[n] = source[n * LANES + lane]
