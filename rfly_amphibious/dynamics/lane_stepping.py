# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steps of LANES vehicles at once, side by side in vectors of the processor's.

These are the equations of `stepping`, and the same numbers bit by bit, for vehicles with nothing
but the ground near them. What happens seldom (a hull that touches, a new gust, a sample) is done
for one vehicle after the other: its lane is copied into records of its own and back.
"""

from __future__ import annotations

from typing import Any

from rfly_amphibious.dynamics.arguments import (
    HeldControls,
    Integrator,
    Samples,
    Vehicles,
    WindSeries,
)
from rfly_amphibious.dynamics.records import (
    CONTROL_NUMBERS,
    EVALUATION_NUMBERS,
    MEMORY_NUMBERS,
    STATE_NUMBERS,
    new_lane_workspace,
    new_workspace,
    put_lane,
    read_row,
    take_lane,
    write_row,
)
from rfly_amphibious.dynamics.stepping import (
    accept_controls,
    integrate,
    is_far_away,
    next_gust,
    not_finite,
    project,
    report,
    watch,
)
from rfly_amphibious.vehicle.state_layout import INTACT
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel
from rfly_common.kernels.lanes import LANES, aligned_lane_record, aligned_record, any_lane, where
from rfly_common.kernels.record_vectors import row, set_vector, vector
from rfly_common.kernels.vectors import add


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
    """Do what `stepping.simulate` does, without obstacles, for a multiple of LANES vehicles."""
    shared = new_lane_workspace()
    own = new_workspace()
    for first in range(0, vehicles.x.shape[0], LANES):
        simulate_group(
            first,
            vehicles,
            controls,
            wind,
            integrator,
            records[0],
            ground,
            samples,
            aligned_lane_record(shared[0]),
            aligned_record(own[0]),
        )


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
    work: Any,
    own: Any,
) -> None:
    """Take LANES vehicles, beginning with `first`, through all steps.

    `work` is a workspace of lanes, `own` one for a single vehicle.
    """
    x = work.x
    for lane in range(LANES):
        read_row(vehicles.x[first + lane], p.state_columns, x, lane)
        read_row(vehicles.memory[first + lane], p.memory_columns, work.memory, lane)
    work.memory.watched = 0.0
    gust = 0
    sample = 0
    last_held = -1
    watching = True
    for step in range(wind.gust_begins.size):
        # what acts on the vehicles
        if step == 0 or wind.gust_begins[step]:
            for lane in range(LANES):
                renew_wind(
                    first + lane, lane, gust, wind.gust_begins[step], wind, ground, work, own
                )
        if wind.gust_begins[step]:
            gust += 1
        held = min(step // controls.hold, controls.rows.shape[1] - 1)
        if held != last_held or watching:
            for lane in range(LANES):
                renew_controls(controls.rows[first + lane, held], lane, controls, p, work, own)
            last_held = held

        integrate(x, integrator, p, ground, None, 0.0, work)
        project(x, p, work.first)

        # the few that something may have happened to
        may_have = must_be_watched(x, p, work.first) | (work.memory.watched > 0.0)
        watching = any_lane(may_have)
        if watching:
            work.memory.watched = where(may_have, 1.0, 0.0)
            for lane in range(LANES):
                watch_lane(first + lane, lane, step, vehicles, integrator.dt, p, work, own)
        if (step + 1) % samples.every == 0 and sample < samples.states.shape[1]:
            for lane in range(LANES):
                sample_lane(first + lane, lane, sample, samples, p, work, own)
            sample += 1

    for lane in range(LANES):
        if vehicles.status[first + lane, 0] == 0:  # else the state is that of the failed step
            write_row(x, p.state_columns, vehicles.x[first + lane], lane)
        write_row(work.memory, p.memory_columns, vehicles.memory[first + lane], lane)


@inlined_kernel
def renew_wind(
    v: int, lane: int, gust: int, begins: bool, wind: WindSeries, ground: Any, work: Any, own: Any
) -> None:
    """Set the wind at vehicle v, with the next gust where one begins."""
    take_lane(work.memory, lane, MEMORY_NUMBERS, own.memory)
    take_lane(work.controls, lane, CONTROL_NUMBERS, own.controls)
    if begins:
        take_lane(work.x, lane, STATE_NUMBERS, own.x)
        next_gust(own.x, own.memory, v, gust, wind, ground)
        put_lane(own.memory, MEMORY_NUMBERS, work.memory, lane)
    set_vector(own.controls.wind, add(row(wind.mean, v), vector(own.memory.gust)))
    put_lane(own.controls, CONTROL_NUMBERS, work.controls, lane)


@inlined_kernel
def renew_controls(
    commands: Any, lane: int, controls: HeldControls, p: Any, work: Any, own: Any
) -> None:
    """Set the controls of one vehicle from a row of commands."""
    take_lane(work.memory, lane, MEMORY_NUMBERS, own.memory)
    take_lane(work.controls, lane, CONTROL_NUMBERS, own.controls)
    crashed = own.memory.crashed != INTACT
    accept_controls(commands, controls.torques, crashed, p, own.controls)
    put_lane(own.controls, CONTROL_NUMBERS, work.controls, lane)


@inlined_kernel
def must_be_watched(x: Any, p: Any, results: Any) -> Any:
    """Return where `watch` may find something; nothing has happened to the other vehicles."""
    may_have = results.outputs.body_points_down > 0.0
    for i in range(p.wheels):
        may_have |= results.wheels.compression[i] > p.max_tyre_compression * p.wheel_radius
    return may_have | not_finite(x) | is_far_away(x)


@inlined_kernel
def watch_lane(
    v: int, lane: int, step: int, vehicles: Vehicles, dt: float, p: Any, work: Any, own: Any
) -> None:
    """Call `watch` for vehicle v where it has to be watched and has not failed before."""
    take_lane(work.memory, lane, MEMORY_NUMBERS, own.memory)
    if own.memory.watched == 0.0 or vehicles.status[v, 0] != 0:
        return
    take_lane(work.x, lane, STATE_NUMBERS, own.x)
    take_lane(work.first, lane, EVALUATION_NUMBERS, own.first)
    problem = watch(own.x, own.memory, dt, p, own.first)
    if problem:
        vehicles.status[v, 0] = problem
        vehicles.status[v, 1] = step
        write_row(own.x, p.state_columns, vehicles.x[v])
    own.memory.watched = 1.0 if own.memory.overturned > 0.0 else 0.0
    put_lane(own.memory, MEMORY_NUMBERS, work.memory, lane)


@inlined_kernel
def sample_lane(
    v: int, lane: int, sample: int, samples: Samples, p: Any, work: Any, own: Any
) -> None:
    """Write a sample of vehicle v."""
    write_row(work.x, p.state_columns, samples.states[v, sample], lane)
    write_row(work.memory, p.memory_columns, samples.memories[v, sample], lane)
    take_lane(work.first, lane, EVALUATION_NUMBERS, own.first)
    report(p, own.first, samples.outputs[v, sample])
