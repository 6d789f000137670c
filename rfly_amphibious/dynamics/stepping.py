# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steps of the vehicle in time, one vehicle after the other: docs/model, section 13.

Conventions as in `equations_of_motion.py`. `work` is a record of `records.new_workspace`.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.arguments import (
    RK4,
    HeldControls,
    Inputs,
    Integrator,
    Samples,
    Vehicles,
    WindSeries,
)
from rfly_amphibious.dynamics.environment import next_turbulence
from rfly_amphibious.dynamics.equations_of_motion import state_derivative
from rfly_amphibious.dynamics.obstacle_contacts import may_touch
from rfly_amphibious.dynamics.records import (
    STATE_NUMBERS,
    new_workspace,
    read_row,
    write_row,
)
from rfly_amphibious.dynamics.tyres import (
    hub_velocity,
    slip_velocities,
    steering_tangent,
    wheel_axle,
)
from rfly_amphibious.vehicle.state_layout import (
    HULL_BROKEN,
    INTACT,
    OVERTURNED_TOO_LONG,
    ROTOR_BROKEN,
    WHEEL_BROKEN,
)
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import (
    aligned_record,
    any_lane,
    borrowed,
    first_vector,
    lanes_of,
    numbers,
    parts_of,
    plain,
    vectors,
    where,
)
from rfly_common.kernels.record_vectors import (
    quaternion,
    quaternion_rate,
    row,
    set_vector,
    turned_back,
    vector,
)
from rfly_common.kernels.vectors import add, dot, scaled

CRASH_TILT_COSINE = 0.5
"""Cosine of the tilt beyond which a vehicle that lies on its body is overturned. Eq. 6.5."""
CRASH_TILT_TIME = 0.5
"""Time for which it has to lie overturned until that is a crash, s. Eq. 6.5."""
FAR_AWAY = 1.0e6
"""Distance from the origin beyond which a state is an error, m."""

NOT_FINITE = 1
"""Status of a vehicle: a number of its state is not finite."""
TOO_FAR = 2
"""Status of a vehicle: it is FAR_AWAY."""


@kernel
def simulate(
    vehicles: Vehicles,
    controls: HeldControls,
    wind: WindSeries,
    integrator: Integrator,
    records: Any,
    ground: Any,
    obstacles: Any,
    samples: Samples,
) -> None:
    """Take each vehicle through all steps of `wind.gust_begins`.

    `records`: `kernel_records` of the vehicles' kind.
    """
    workspace = new_workspace()
    for v in range(vehicles.x.shape[0]):
        simulate_one(
            v,
            vehicles,
            controls,
            wind,
            integrator,
            records[0],
            ground,
            obstacles,
            samples,
            aligned_record(workspace[0]),
        )


@inlined_kernel
def simulate_one(
    v: int,
    vehicles: Vehicles,
    controls: HeldControls,
    wind: WindSeries,
    integrator: Integrator,
    p: Any,
    ground: Any,
    obstacles: Any,
    samples: Samples,
    work: Any,
) -> None:
    """Take vehicle v through all steps."""
    dt = integrator.dt
    x = work.x
    memory = work.memory
    read_row(vehicles.x[v], p.state_columns, x)
    read_row(vehicles.memory[v], p.memory_columns, memory)
    gust = 0
    sample = 0
    last_held = -1
    for step in range(wind.gust_begins.size):
        # what acts on the vehicle
        if wind.gust_begins[step]:
            next_gust(x, memory, v, gust, wind, ground)
            gust += 1
        set_vector(work.controls.wind, add(row(wind.mean, v), vector(memory.gust)))
        held = min(step // controls.hold, controls.rows.shape[1] - 1)
        crashed = memory.crashed != INTACT
        if held != last_held or crashed:
            accept_controls(controls.rows[v, held], controls.torques, crashed, p, work.controls)
            last_held = held

        # the compiled code without obstacles takes two thirds of the time
        since = step * dt
        if obstacles is not None and may_touch(x, dt, p, obstacles):
            integrate(x, integrator, p, ground, obstacles, since, work)
        else:
            integrate(x, integrator, p, ground, None, since, work)
        project(x, p, work.first)

        problem = watch(x, memory, dt, p, work.first)
        if problem:
            vehicles.status[v, 0] = problem
            vehicles.status[v, 1] = step
            break
        if (step + 1) % samples.every == 0 and sample < samples.states.shape[1]:
            write_row(x, p.state_columns, samples.states[v, sample])
            write_row(memory, p.memory_columns, samples.memories[v, sample])
            report(p, work.first, samples.outputs[v, sample])
            sample += 1
    write_row(x, p.state_columns, vehicles.x[v])
    write_row(memory, p.memory_columns, vehicles.memory[v])


@inlined_kernel
def next_gust(x: Any, memory: Any, v: int, gust: int, wind: WindSeries, ground: Any) -> None:
    """Replace the gust in the memory of vehicle v by the one that begins now. Eq. 3.5, 3.6."""
    noise = row(wind.noise[v], gust)
    if wind.turbulence > 0.0:
        mean = row(wind.mean, v)
        next_turbulence(x, memory, mean, noise, wind.turbulence, wind.period, ground)
    else:
        for k in range(3):
            memory.gust[k] = wind.keep[k] * memory.gust[k] + wind.add[k] * noise[k]


@inlined_kernel
def accept_controls(commands: Any, torques: bool, crashed: bool, p: Any, controls: Any) -> None:
    """Set a row of commands in `controls`; after a crash only the brakes, in full. Eq. 6.5."""
    if crashed:
        controls.steering = 0.0
        controls.torques = 0.0
        for i in range(p.wheels):
            controls.steering_trim[i] = 0.0
            controls.drive_torque[i] = 0.0
            controls.brake_torque[i] = p.max_brake_torque
        for j in range(p.rotors):
            controls.rotor[j] = 0.0
    else:
        read_row(commands, p.control_columns, controls)
        controls.torques = 1.0 if torques else 0.0


@kernel
def derivatives(
    x: Any,
    inputs: Inputs,
    records: Any,
    ground: Any,
    obstacles: Any,
    since: Any,
    dx: Any,
    outputs: Any,
) -> None:
    """Compute `state_derivative` of n states.

    x, dx (n, states), outputs (n, outputs); `inputs` have a first axis of n. The obstacles were
    `since` seconds ago, (n,), where they are said to be.
    """
    p = records[0]
    workspace = new_workspace()
    for v in range(x.shape[0]):
        work = aligned_record(workspace[0])
        parts = parts_of(work, work)
        read_row(x[v], p.state_columns, work.x)
        read_row(inputs.controls[v], p.control_columns, work.controls)
        for i in range(p.wheels):
            work.memory.brake_acting[i] = inputs.brake_acting[v, i]
        own = Inputs(parts.controls, inputs.torques, parts.memory.brake_acting, row(inputs.wind, v))
        state_derivative(
            parts.x,
            own,
            parts_of(work, p),
            borrowed(ground),
            obstacles,
            since[v],
            parts.rate,
            parts.first,
        )
        write_row(work.rate, p.state_columns, dx[v])
        report(p, work.first, outputs[v])


@inlined_kernel
def report(p: Any, results: Any, row: Any) -> None:
    """Write what callers see of an evaluation into a row of the outputs."""
    outputs = results.outputs
    for i in range(p.wheels):
        outputs.wheel_load[i] = results.wheels.load[i]
        outputs.slip_ratio[i] = results.wheels.slip_ratio[i]
        outputs.slip_angle[i] = math.atan(results.wheels.slip_tangent[i])
        outputs.tyre_compression[i] = results.wheels.compression[i]
    outputs.clearance = results.points.clearance
    outputs.wheels_off_map = results.points.wheels_off_map
    write_row(outputs, p.output_columns, row)


@inlined_kernel
def integrate(
    x: Any, integrator: Integrator, p: Any, ground: Any, obstacles: Any, since: float, work: Any
) -> None:
    """Take one step with the controls and the memory of `work`, x -> x."""
    p = parts_of(x, p)
    work = parts_of(x, work)
    x = parts_of(x, x)
    ground = borrowed(ground)
    torques = work.controls.torques > 0.0
    wind = vector(work.controls.wind)
    inputs = Inputs(work.controls, torques, work.memory.brake_acting, wind)
    if integrator.method == RK4:
        rk4_step(x, inputs, integrator.dt, p, ground, obstacles, since, work)
    else:
        euler_step(x, inputs, integrator.dt, p, ground, obstacles, since, work)


@inlined_kernel
def rk4_step(
    x: Any, inputs: Inputs, dt: float, p: Any, ground: Any, obstacles: Any, since: float, work: Any
) -> None:
    """Take one step of the classical Runge–Kutta method, x -> x. Eq. 13.1."""
    start = numbers(x)
    point = numbers(work.point)
    rate = numbers(work.rate)
    total = numbers(work.total)
    count = first_vector(x, STATE_NUMBERS)
    for n in range(count):
        if has_number(x, p, n):
            point[n] = start[n]
            total[n] = 0.0

    later = 0.0
    for stage in range(4):
        results = work.first if stage == 0 else work.later
        state_derivative(
            work.point, inputs, p, ground, obstacles, since + later, work.rate, results
        )
        weight = 2.0 if 0 < stage < 3 else 1.0
        later = dt if stage == 2 else 0.5 * dt
        for n in range(count):
            if has_number(x, p, n):
                total[n] += weight * rate[n]
                point[n] = start[n] + later * rate[n]

    for n in range(count):
        if has_number(x, p, n):
            start[n] += dt / 6.0 * total[n]
    brake(x, inputs, dt, p)


@inlined_kernel
def has_number(x: Any, p: Any, n: int) -> bool:
    """Return whether number n of `numbers(x)` is more than room for wheels or rotors in a batch."""
    return lanes_of(x) == 1 or plain(p).state_columns[n] >= 0


@inlined_kernel
def euler_step(
    x: Any, inputs: Inputs, dt: float, p: Any, ground: Any, obstacles: Any, since: float, work: Any
) -> None:
    """Take one step of the semi-implicit Euler method, x -> x. Eq. 13.2.

    All rates first, then the brake, then places by the new rates; tyre deflections decay
    implicitly.
    """
    dx = work.rate
    state_derivative(x, inputs, p, ground, obstacles, since, dx, work.first)
    wheels = work.first.wheels

    # rates and actuators
    set_vector(x.velocity, add(vector(x.velocity), scaled(dt, vector(dx.velocity))))
    set_vector(x.rates, add(vector(x.rates), scaled(dt, vector(dx.rates))))
    x.steering += dt * dx.steering
    for i in range(vectors(x, p.wheels)):
        x.strut_rate[i] += dt * dx.strut_rate[i]
        x.wheel_speed[i] += dt * dx.wheel_speed[i]
        x.drive_torque[i] += dt * dx.drive_torque[i]
        x.steering_trim[i] += dt * dx.steering_trim[i]
    for j in range(vectors(x, p.rotors)):
        x.rotor_speed[j] += dt * dx.rotor_speed[j]
    brake(x, inputs, dt, p)

    # tyres and struts
    attitude = quaternion(x.quaternion)
    rates = vector(x.rates)
    velocity = turned_back(attitude, vector(x.velocity))
    for i in range(vectors(x, p.wheels)):
        pressed = wheels.load[i] > 0.0
        if any_lane(pressed):
            hub = hub_velocity(i, velocity, rates, x.strut_rate[i], wheels)
            along, slide_x, slide_y = slip_velocities(i, hub, rates, x.wheel_speed[i], wheels)
            decay_x = 1.0 + dt * p.per_relaxation_x * abs(along)
            decay_y = 1.0 + dt * p.per_relaxation_y * abs(along)
            x.tyre_x[i] = where(pressed, (x.tyre_x[i] - dt * slide_x) / decay_x, x.tyre_x[i])
            x.tyre_y[i] = where(pressed, (x.tyre_y[i] - dt * slide_y) / decay_y, x.tyre_y[i])
        x.strut[i] += dt * x.strut_rate[i]

    # place and attitude
    set_vector(x.position, add(vector(x.position), scaled(dt, vector(x.velocity))))
    turning = quaternion_rate(attitude, rates)
    for k in range(4):
        x.quaternion[k] = attitude[k] + dt * turning[k]


@inlined_kernel
def brake(x: Any, inputs: Inputs, dt: float, p: Any) -> None:
    """Apply the Coulomb friction of the brakes, exactly. Eq. 5.16.

    A held wheel keeps the spin of its axle's carrier.
    """
    tan_steering = steering_tangent(x)
    rates = vector(x.rates)
    per_torque = dt * p.per_wheel_inertia
    per_change = p.wheel_inertia / dt
    for i in range(vectors(x, p.wheels)):
        carrier = dot(wheel_axle(x, i, tan_steering, p), rates)
        free = x.wheel_speed[i] - per_torque * inputs.brake_acting[i] - carrier
        torque = min(max(inputs.controls.brake_torque[i], 0.0), p.max_brake_torque)
        slowed = max(0.0, abs(free) - per_torque * torque)
        slowed = where(free > 0.0, slowed, -slowed)
        inputs.brake_acting[i] = per_change * (slowed - free)
        x.wheel_speed[i] = slowed + carrier


@inlined_kernel
def project(x: Any, p: Any, results: Any) -> None:
    """Bring a state after a step back into its bounds. Eq. 5.8.

    The quaternion gets unit length, rotors never turn backwards, and tyres keep within their
    largest deflection. `results`: those of the step's beginning.
    """
    p = parts_of(x, p)
    wheels = parts_of(x, results).wheels
    x = parts_of(x, x)
    q = quaternion(x.quaternion)
    per_norm = 1.0 / math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    for k in range(4):
        x.quaternion[k] = q[k] * per_norm
    for j in range(vectors(x, p.rotors)):
        x.rotor_speed[j] = max(x.rotor_speed[j], 0.0)

    for i in range(vectors(x, p.wheels)):
        pressed = wheels.load[i] > 0.0
        if not any_lane(pressed):
            x.tyre_x[i] = 0.0
            x.tyre_y[i] = 0.0
            continue
        slip_x = wheels.slip_gain_x[i] * x.tyre_x[i]
        slip_y = wheels.slip_gain_y[i] * x.tyre_y[i]
        slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
        share = min(1.0, wheels.hub_speed[i] * p.per_low_speed)
        largest = p.peak_slip + (p.max_slip_deflection - p.peak_slip) * share
        shrink = where(slip > largest, largest / slip, 1.0)
        x.tyre_x[i] = where(pressed, x.tyre_x[i] * shrink, 0.0)
        x.tyre_y[i] = where(pressed, x.tyre_y[i] * shrink, 0.0)


@inlined_kernel
def damage(p: Any, results: Any) -> int:
    """Return what has broken by the limits of Eq. 6.5: a cause of `state_layout`, or INTACT."""
    cause = INTACT
    outputs = results.outputs
    if outputs.body_points_down > 0.0:
        force = vector(outputs.specific_force)
        limit = p.max_impact * p.gravity
        if dot(force, force) > limit * limit:
            cause = HULL_BROKEN
    for i in range(p.wheels):
        compression = max(results.wheels.compression[i], results.solids.side_compression[i])
        if compression > p.max_tyre_compression * p.wheel_radius:
            cause = WHEEL_BROKEN + i
    if outputs.rotor_down_speed > p.max_strike_speed * p.max_rotor_speed:
        cause = ROTOR_BROKEN + int(outputs.rotor_down)
    return cause


@inlined_kernel
def watch(x: Any, memory: Any, dt: float, p: Any, results: Any) -> int:
    """Latch a crash (Eq. 6.5); return 0, or the status of a state that is an error.

    A rotor that something solid has broken stops.
    """
    cause = damage(p, results)
    if results.outputs.rotor_lost >= 0.0:
        x.rotor_speed[int(results.outputs.rotor_lost)] = 0.0

    if upright_cosine(x) < CRASH_TILT_COSINE and results.outputs.body_points_down > 0.0:
        memory.overturned += dt
        if memory.overturned >= CRASH_TILT_TIME and cause == INTACT:
            cause = OVERTURNED_TOO_LONG
    else:
        memory.overturned = 0.0
    if memory.crashed == INTACT:
        memory.crashed = cause

    if not_finite(x):
        return NOT_FINITE
    if is_far_away(x):
        return TOO_FAR
    return 0


@inlined_kernel
def upright_cosine(x: Any) -> float:
    """Return the cosine of the angle between body z and the vertical."""
    qx = x.quaternion[1]
    qy = x.quaternion[2]
    return 1.0 - 2.0 * (qx * qx + qy * qy)


@inlined_kernel
def not_finite(x: Any) -> Any:
    """Return whether any number of a state is not finite: less itself it is NaN, not 0."""
    # four sums at once: none waits for the others
    state = numbers(x)
    first = state[0] - state[0]
    second = first
    third = first
    fourth = first
    for n in range(0, STATE_NUMBERS, 4):
        first += state[n] - state[n]
        second += state[n + 1] - state[n + 1]
        third += state[n + 2] - state[n + 2]
        fourth += state[n + 3] - state[n + 3]
    return (first + second) + (third + fourth) != 0.0


@inlined_kernel
def is_far_away(x: Any) -> Any:
    """Return whether a vehicle is FAR_AWAY from the origin."""
    position = vector(x.position)
    return dot(position, position) > FAR_AWAY * FAR_AWAY
