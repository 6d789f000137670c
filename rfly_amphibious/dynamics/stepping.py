"""Steps of the vehicle in time, one vehicle after the other: docs/model, section 13.

Conventions as in `equations_of_motion.py`.
"""

from __future__ import annotations

import math
from typing import Any

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
from rfly_amphibious.dynamics.equations_of_motion import state_derivative
from rfly_amphibious.dynamics.obstacle_contacts import may_touch, no_contacts
from rfly_amphibious.dynamics.scratch import new_scratch
from rfly_amphibious.dynamics.turbulence import next_turbulence
from rfly_amphibious.dynamics.tyres import hub_velocity, slip_velocities, wheel_axle
from rfly_amphibious.dynamics.wheel_columns import (
    command_of,
    drive_of,
    memory_of,
    output_of,
    state_of,
)
from rfly_amphibious.dynamics.wheels import state_count, wheel_count
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import any_lane, where
from rfly_common.kernels.vectors import Vector, add, cross, dot, scaled

CRASH_TILT_COSINE = 0.5
CRASH_TILT_TIME = 0.5
"""s. Eq. 6.5"""
FAR_AWAY = 1.0e6
"""m"""
NOT_FINITE = 1
TOO_FAR = 2


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
    """Takes each vehicle through all steps of `wind.gust_begins`. `records`: `kernel_records` of
    the vehicles' kind.
    """
    p = records[0]
    dt = integrator.dt
    scratch = new_scratch(2)
    stages = np.zeros((3, vehicles.x.shape[1]))
    wind_now = np.zeros(3)
    command = np.zeros(controls.rows.shape[2])
    brake_acting = np.zeros(wheel_count(p))
    for v in range(vehicles.x.shape[0]):
        x = vehicles.x[v]
        memory = vehicles.memory[v]
        for i in range(wheel_count(p)):
            brake_acting[i] = memory[memory_of(i)]
        gust = sample = 0
        for step in range(wind.gust_begins.size):
            if wind.gust_begins[step]:
                next_gust(x, memory, v, gust, wind, ground)
                gust += 1
            for k in range(3):
                wind_now[k] = wind.mean[v, k] + memory[at.GUST + k]
            row = min(step // controls.hold, controls.rows.shape[1] - 1)
            crashed = memory[at.CRASHED] != 0.0
            accepted_command(controls.rows[v, row], crashed, p, command)
            inputs = Inputs(command, controls.torques and not crashed, brake_acting, wind_now)
            scratch[0].since = step * dt
            if obstacles is not None and may_touch(x, dt, p, obstacles):
                if integrator.method == RK4:
                    rk4_step(x, inputs, dt, p, ground, obstacles, stages, scratch)
                else:
                    euler_step(x, inputs, dt, p, ground, obstacles, stages[0], scratch[0])
            else:  # the compiled code without obstacles takes two thirds of the time
                no_contacts(p, scratch[0])
                no_contacts(p, scratch[1])
                if integrator.method == RK4:
                    rk4_step(x, inputs, dt, p, ground, None, stages, scratch)
                else:
                    euler_step(x, inputs, dt, p, ground, None, stages[0], scratch[0])
            for i in range(wheel_count(p)):
                memory[memory_of(i)] = brake_acting[i]
            project(x, p, scratch[0])
            problem = watch(x, memory, dt, p, scratch[0])
            if problem:
                vehicles.status[v, 0] = problem
                vehicles.status[v, 1] = step
                break
            if (step + 1) % samples.every == 0 and sample < samples.states.shape[1]:
                samples.states[v, sample] = x
                samples.memories[v, sample] = memory
                report(p, scratch[0], samples.outputs[v, sample])
                sample += 1


@inlined_kernel
def next_gust(x: Any, memory: Any, v: int, gust: int, wind: WindSeries, ground: Any) -> None:
    """The gust that begins at vehicle v -> memory. Eq. 3.5, 3.6."""
    if wind.turbulence > 0.0:
        next_turbulence(
            x, memory, wind.mean[v], wind.noise[v, gust], wind.turbulence, wind.period, ground
        )
    for k in range(0 if wind.turbulence > 0.0 else 3):
        memory[at.GUST + k] = (
            wind.keep[k] * memory[at.GUST + k] + wind.add[k] * wind.noise[v, gust, k]
        )


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
    """`state_derivative` of n states: x, dx (n, states), outputs (n, outputs), `inputs` with a
    first axis of n; `since` (n,) s after which each is, when the obstacles were where they are said
    to be.
    """
    p = records[0]
    scratch = new_scratch(1)
    for v in range(x.shape[0]):
        own = Inputs(inputs.command[v], inputs.torques, inputs.brake_acting[v], inputs.wind[v])
        scratch[0].since = since[v]
        state_derivative(x[v], own, p, ground, obstacles, dx[v], scratch[0])
        report(p, scratch[0], outputs[v])


@inlined_kernel
def report(p: Any, scratch: Any, outputs: Any) -> None:
    """What callers see -> outputs, in the order of `state_layout`."""
    for k in range(3):
        outputs[at.SPECIFIC_FORCE + k] = scratch.specific_force[k]
    for i in range(wheel_count(p)):
        outputs[output_of(at.WHEEL_LOAD, i)] = scratch.wheel_load[i]
        outputs[output_of(at.TYRE_FORCE_X, i)] = scratch.tyre_force_x[i]
        outputs[output_of(at.TYRE_FORCE_Y, i)] = scratch.tyre_force_y[i]
        outputs[output_of(at.STRUT_FORCE, i)] = scratch.strut_force[i]
        outputs[output_of(at.TYRE_COMPRESSION, i)] = scratch.tyre_compression[i]
    for j in range(at.MAX_ROTORS):
        outputs[at.THRUST + j] = scratch.thrust[j]
    outputs[at.ROTOR_POWER] = scratch.rotor_power
    outputs[at.BODY_POINTS_DOWN] = scratch.body_points_down
    outputs[at.ROTOR_DOWN_SPEED] = scratch.rotor_down_speed
    outputs[at.CLEARANCE] = scratch.clearance
    outputs[at.OFF_MAP] = scratch.wheels_off_map


@inlined_kernel
def accepted_command(given: Any, crashed: bool, p: Any, command: Any) -> None:
    """The given command, or once crashed that of Eq. 6.5 -> command."""
    for k in range(command.size):
        command[k] = 0.0 if crashed else given[k]
    if crashed:
        for i in range(wheel_count(p)):
            command[command_of(at.BRAKE_COMMAND, i, p.rotors)] = p.max_brake_torque


@inlined_kernel
def rk4_step(
    x: Any,
    inputs: Inputs,
    dt: float,
    p: Any,
    ground: Any,
    obstacles: Any,
    stages: Any,
    scratch: Any,
) -> None:
    """One step of the classical Runge–Kutta method, x -> x. Eq. 13.1. `stages` (3, states),
    `scratch`: two records.
    """
    point = stages[0]
    rate = stages[1]
    total = stages[2]
    for n in range(state_count(p)):
        point[n] = x[n]
        total[n] = 0.0
    for stage in range(4):
        scratch[1].since = scratch[0].since + (dt if stage == 3 else 0.5 * dt)
        state_derivative(point, inputs, p, ground, obstacles, rate, scratch[min(stage, 1)])
        weight = 2.0 if 0 < stage < 3 else 1.0
        ahead = dt if stage == 2 else 0.5 * dt
        for n in range(state_count(p)):
            total[n] += weight * rate[n]
            point[n] = x[n] + ahead * rate[n]
    for n in range(state_count(p)):
        x[n] += dt / 6.0 * total[n]
    brake(x, inputs, dt, p)


@inlined_kernel
def euler_step(
    x: Any, inputs: Inputs, dt: float, p: Any, ground: Any, obstacles: Any, dx: Any, scratch: Any
) -> None:
    """One step of the semi-implicit Euler method, x -> x. Eq. 13.2.

    All rates first, then the brake, then places by the new rates; tyre deflections decay
    implicitly.
    """
    state_derivative(x, inputs, p, ground, obstacles, dx, scratch)
    for k in range(3):
        x[at.VELOCITY + k] += dt * dx[at.VELOCITY + k]
        x[at.RATES + k] += dt * dx[at.RATES + k]
    for i in range(wheel_count(p)):
        moving = state_of(at.STRUT_RATE, i, p.rotors)
        turning = state_of(at.WHEEL_SPEED, i, p.rotors)
        x[moving] += dt * dx[moving]
        x[turning] += dt * dx[turning]
        if i >= at.OUTER_WHEELS:
            x[drive_of(i, p.rotors)] += dt * dx[drive_of(i, p.rotors)]
    for k in range(at.ROTOR_SPEED, at.ROTOR_SPEED + p.rotors + at.AFTER_ROTORS):
        x[k] += dt * dx[k]
    brake(x, inputs, dt, p)
    qw = x[at.QUATERNION]
    qx = x[at.QUATERNION + 1]
    qy = x[at.QUATERNION + 2]
    qz = x[at.QUATERNION + 3]
    rates = (x[at.RATES], x[at.RATES + 1], x[at.RATES + 2])
    velocity = velocity_in_body_axes(x)
    for i in range(wheel_count(p)):
        strut_rate = x[state_of(at.STRUT_RATE, i, p.rotors)]
        pressed = scratch.wheel_load[i] > 0.0
        if any_lane(pressed):
            spin = x[state_of(at.WHEEL_SPEED, i, p.rotors)]
            hub = hub_velocity(i, velocity, rates, strut_rate, scratch)
            along, slide_x, slide_y = slip_velocities(i, hub, rates, spin, scratch)
            tyre_x = state_of(at.TYRE_X, i, p.rotors)
            tyre_y = state_of(at.TYRE_Y, i, p.rotors)
            moved_x = (x[tyre_x] - dt * slide_x) / (1.0 + dt * abs(along) / p.relaxation_x)
            moved_y = (x[tyre_y] - dt * slide_y) / (1.0 + dt * abs(along) / p.relaxation_y)
            x[tyre_x], x[tyre_y] = (
                where(pressed, moved_x, x[tyre_x]),
                where(pressed, moved_y, x[tyre_y]),
            )
        x[state_of(at.STRUT, i, p.rotors)] += dt * strut_rate
    for k in range(3):
        x[at.POSITION + k] += dt * x[at.VELOCITY + k]
    half = 0.5 * dt
    wx, wy, wz = rates
    x[at.QUATERNION] = qw - half * (qx * wx + qy * wy + qz * wz)
    x[at.QUATERNION + 1] = qx + half * (qw * wx + qy * wz - qz * wy)
    x[at.QUATERNION + 2] = qy + half * (qw * wy + qz * wx - qx * wz)
    x[at.QUATERNION + 3] = qz + half * (qw * wz + qx * wy - qy * wx)


@inlined_kernel
def velocity_in_body_axes(x: Any) -> Vector:
    """Rᵀv, m/s, of a state."""
    qw = x[at.QUATERNION]
    qx = x[at.QUATERNION + 1]
    qy = x[at.QUATERNION + 2]
    qz = x[at.QUATERNION + 3]
    v = (x[at.VELOCITY], x[at.VELOCITY + 1], x[at.VELOCITY + 2])
    q = (qx, qy, qz)
    twice = scaled(2.0 / (qw * qw + qx * qx + qy * qy + qz * qz), cross(v, q))
    return add(v, add(scaled(qw, twice), cross(twice, q)))


@inlined_kernel
def brake(x: Any, inputs: Inputs, dt: float, p: Any) -> None:
    """Coulomb friction of the brakes, exactly: a held wheel keeps the spin of its axle's carrier.
    Eq. 5.16.
    """
    tan_steering = math.tan(x[at.ROTOR_SPEED + p.rotors])
    rates = (x[at.RATES], x[at.RATES + 1], x[at.RATES + 2])
    for i in range(wheel_count(p)):
        turning = state_of(at.WHEEL_SPEED, i, p.rotors)
        carrier = dot(wheel_axle(i, tan_steering, p), rates)
        free = x[turning] - dt * inputs.brake_acting[i] / p.wheel_inertia - carrier
        torque = min(
            max(inputs.command[command_of(at.BRAKE_COMMAND, i, p.rotors)], 0.0),
            p.max_brake_torque,
        )
        slowed = max(0.0, abs(free) - dt * torque / p.wheel_inertia)
        slowed = where(free > 0.0, slowed, -slowed)
        inputs.brake_acting[i] = p.wheel_inertia * (slowed - free) / dt
        x[turning] = slowed + carrier


@inlined_kernel
def project(x: Any, p: Any, scratch: Any) -> None:
    """What follows each step: unit quaternion, rotors that never turn back, tyres within bounds.
    Eq. 5.8.

    `scratch`: contact data of the step's beginning.
    """
    norm = 0.0
    for k in range(at.QUATERNION, at.QUATERNION + 4):
        norm += x[k] * x[k]
    norm = math.sqrt(norm)
    for k in range(at.QUATERNION, at.QUATERNION + 4):
        x[k] = x[k] / norm
    for j in range(p.rotors):
        x[at.ROTOR_SPEED + j] = max(x[at.ROTOR_SPEED + j], 0.0)
    for i in range(wheel_count(p)):
        tyre_x = state_of(at.TYRE_X, i, p.rotors)
        tyre_y = state_of(at.TYRE_Y, i, p.rotors)
        pressed = scratch.wheel_load[i] > 0.0
        if not any_lane(pressed):
            x[tyre_x] = 0.0
            x[tyre_y] = 0.0
            continue
        slip_x = scratch.slip_gain_x[i] * x[tyre_x]
        slip_y = scratch.slip_gain_y[i] * x[tyre_y]
        slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
        share = min(1.0, scratch.hub_speed[i] / p.low_speed)
        largest = p.peak_slip + (p.max_slip_deflection - p.peak_slip) * share
        kept = where(slip > largest, largest / slip, 1.0)
        x[tyre_x] = where(pressed, x[tyre_x] * kept, 0.0)
        x[tyre_y] = where(pressed, x[tyre_y] * kept, 0.0)


@inlined_kernel
def damage(p: Any, scratch: Any) -> int:
    """What has broken by the limits of Eq. 6.5: a cause of `state_layout`; INTACT: nothing."""
    cause = at.INTACT
    if scratch.body_points_down > 0.0:
        f = scratch.specific_force
        limit = p.max_impact * p.gravity
        if f[0] * f[0] + f[1] * f[1] + f[2] * f[2] > limit * limit:
            cause = at.HULL_BROKEN
    for i in range(wheel_count(p)):
        if (
            max(scratch.tyre_compression[i], scratch.side_compression[i])
            > p.max_tyre_compression * p.wheel_radius
        ):
            cause = at.WHEEL_BROKEN + i
    if scratch.rotor_down_speed > p.max_strike_speed * p.max_rotor_speed:
        cause = at.ROTOR_BROKEN + int(scratch.rotor_down)
    return cause


@inlined_kernel
def watch(x: Any, memory: Any, dt: float, p: Any, scratch: Any) -> int:
    """Latches CRASHED (Eq. 6.5); 0, or what is wrong with the state: NOT_FINITE, TOO_FAR."""
    cause = damage(p, scratch)
    if scratch.rotor_lost >= 0.0:
        x[at.ROTOR_SPEED + int(scratch.rotor_lost)] = 0.0
    qx = x[at.QUATERNION + 1]
    qy = x[at.QUATERNION + 2]
    if 1.0 - 2.0 * (qx * qx + qy * qy) < CRASH_TILT_COSINE and scratch.body_points_down > 0.0:
        memory[at.OVERTURNED] += dt
        if memory[at.OVERTURNED] >= CRASH_TILT_TIME and cause == at.INTACT:
            cause = at.OVERTURNED_TOO_LONG
    else:
        memory[at.OVERTURNED] = 0.0
    if memory[at.CRASHED] == at.INTACT:
        memory[at.CRASHED] = cause
    total = 0.0
    for n in range(x.size):
        total += x[n] - x[n]
    if total != 0.0:  # a NaN or an infinite number less itself is NaN
        return NOT_FINITE
    px = x[at.POSITION]
    py = x[at.POSITION + 1]
    pz = x[at.POSITION + 2]
    return TOO_FAR if px * px + py * py + pz * pz > FAR_AWAY * FAR_AWAY else 0
