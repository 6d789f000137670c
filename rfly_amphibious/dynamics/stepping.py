"""Steps of the vehicle in time, one vehicle after the other. Conventions as in `kernels.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.dynamics.kernels import derivative
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import kernel_or_plain as kernel

RK4 = 0
SEMI_IMPLICIT_EULER = 1

CRASH_ROTOR_SPEED = 0.2
"""of the largest speed: a faster rotor whose hub touches the ground has crashed. Eq. 6.5"""
CRASH_TILT_COSINE = 0.5
CRASH_TILT_TIME = 0.5
FAR_AWAY = 1.0e6
NOT_FINITE = 1
TOO_FAR = 2


@kernel(nogil=True, error_model="numpy")
def brake(x: Any, control: Any, memory: Any, dt: float, p: Any) -> None:
    """Coulomb friction of the brakes, exactly: a held wheel keeps the spin of its axle's carrier. Eq. 5.16."""
    tan_steering = math.tan(x[at.ROTOR_SPEED + p.rotors])
    for i in range(4):
        tangent = p.steering_sign[i] * tan_steering / (1.0 - p.point_y[i] * tan_steering / p.steering_lever)
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        carrier = cosine * (x[at.RATES + 1] - tangent * x[at.RATES])
        free = x[at.WHEEL_SPEED + i] - dt * memory[at.BRAKE_ACTING + i] / p.wheel_inertia - carrier
        torque = min(max(control[at.BRAKE_COMMAND + i], 0.0), p.max_brake_torque)
        slowed = max(0.0, abs(free) - dt * torque / p.wheel_inertia)
        slowed = slowed if free > 0.0 else -slowed
        memory[at.BRAKE_ACTING + i] = p.wheel_inertia * (slowed - free) / dt
        x[at.WHEEL_SPEED + i] = slowed + carrier


@kernel(nogil=True, error_model="numpy")
def project(x: Any, out: Any, p: Any) -> None:
    """What follows each step: unit quaternion, rotors that never turn back, tyres within bounds. Eq. 5.8.

    `out`: contact data of the step's beginning.
    """
    norm = math.sqrt(x[6] * x[6] + x[7] * x[7] + x[8] * x[8] + x[9] * x[9])
    for k in range(at.QUATERNION, at.QUATERNION + 4):
        x[k] = x[k] / norm
    for j in range(p.rotors):
        x[at.ROTOR_SPEED + j] = max(x[at.ROTOR_SPEED + j], 0.0)
    for i in range(4):
        if out[at.WHEEL_LOAD + i] <= 0.0:
            x[at.TYRE_X + i], x[at.TYRE_Y + i] = 0.0, 0.0
            continue
        slip_x, slip_y = out[at.SLIP_GAIN_X + i] * x[at.TYRE_X + i], out[at.SLIP_GAIN_Y + i] * x[at.TYRE_Y + i]
        slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
        share = min(1.0, out[at.SPEED_X + i] / p.low_speed)
        largest = p.peak_slip + (p.max_slip_deflection - p.peak_slip) * share
        if slip > largest:
            x[at.TYRE_X + i] *= largest / slip
            x[at.TYRE_Y + i] *= largest / slip


@kernel(nogil=True, error_model="numpy")
def rk4_step(
    x: Any, control: Any, torques: bool, memory: Any, wind: Any, dt: float, p: Any, ground: Any, work: Any, out: Any
) -> None:
    """One step of the classical Runge–Kutta method, x -> x. Eq. 13.1. `work`: (5, states + outputs)."""
    size = x.size
    k1, k2, k3, k4, stage = work[0], work[1], work[2], work[3], work[4]
    scrap = work[4, size:]
    derivative(x, control, torques, memory, wind, p, ground, k1, out)
    for n in range(size):
        stage[n] = x[n] + 0.5 * dt * k1[n]
    derivative(stage, control, torques, memory, wind, p, ground, k2, scrap)
    for n in range(size):
        stage[n] = x[n] + 0.5 * dt * k2[n]
    derivative(stage, control, torques, memory, wind, p, ground, k3, scrap)
    for n in range(size):
        stage[n] = x[n] + dt * k3[n]
    derivative(stage, control, torques, memory, wind, p, ground, k4, scrap)
    for n in range(size):
        x[n] += dt / 6.0 * (k1[n] + 2.0 * k2[n] + 2.0 * k3[n] + k4[n])
    brake(x, control, memory, dt, p)


@kernel(nogil=True, error_model="numpy")
def euler_step(
    x: Any, control: Any, torques: bool, memory: Any, wind: Any, dt: float, p: Any, ground: Any, work: Any, out: Any
) -> None:
    """One step of the semi-implicit Euler method, x -> x. Eq. 13.2.

    All rates first, then the brake, then places by the new rates; tyre deflections decay implicitly.
    """
    dx = work[0]
    derivative(x, control, torques, memory, wind, p, ground, dx, out)
    qw, qx, qy, qz = x[6], x[7], x[8], x[9]
    for k in range(3):
        x[3 + k] += dt * dx[3 + k]
        x[at.RATES + k] += dt * dx[at.RATES + k]
    for i in range(4):
        x[at.STRUT_RATE + i] += dt * dx[at.STRUT_RATE + i]
        x[at.WHEEL_SPEED + i] += dt * dx[at.WHEEL_SPEED + i]
    for k in range(at.ROTOR_SPEED, at.ROTOR_SPEED + p.rotors + at.AFTER_ROTORS):
        x[k] += dt * dx[k]
    brake(x, control, memory, dt, p)
    wx, wy, wz = x[at.RATES], x[at.RATES + 1], x[at.RATES + 2]
    # velocity of the body in the axes of the step's beginning
    vx, vy, vz = x[3], x[4], x[5]
    s = 2.0 / (qw * qw + qx * qx + qy * qy + qz * qz)
    tx, ty, tz = qz * vy - qy * vz, qx * vz - qz * vx, qy * vx - qx * vy  # v × q
    ux = vx + s * (qw * tx + ty * qz - tz * qy)
    uy = vy + s * (qw * ty + tz * qx - tx * qz)
    uz = vz + s * (qw * tz + tx * qy - ty * qx)
    for i in range(4):
        if out[at.WHEEL_LOAD + i] > 0.0:
            first = 3 * i
            hx, hy, hz = out[at.HUB_X + i], out[at.HUB_X + 4 + i], out[at.HUB_X + 8 + i]
            hub_vx = ux + wy * hz - wz * hy
            hub_vy = uy + wz * hx - wx * hz
            hub_vz = uz + wx * hy - wy * hx + x[at.STRUT_RATE + i]
            below = -out[at.HUB_HEIGHT + i]
            cx, cy, cz = (
                below * out[at.NORMAL + first],
                below * out[at.NORMAL + first + 1],
                below * out[at.NORMAL + first + 2],
            )
            along = (
                hub_vx * out[at.HEADING + first]
                + hub_vy * out[at.HEADING + first + 1]
                + hub_vz * out[at.HEADING + first + 2]
            )
            slide_x = along - out[at.ROLLING_RADIUS + i] * x[at.WHEEL_SPEED + i]
            slide_y = (
                (hub_vx + wy * cz - wz * cy) * out[at.LEFT + first]
                + (hub_vy + wz * cx - wx * cz) * out[at.LEFT + first + 1]
                + (hub_vz + wx * cy - wy * cx) * out[at.LEFT + first + 2]
            )
            x[at.TYRE_X + i] = (x[at.TYRE_X + i] - dt * slide_x) / (1.0 + dt * abs(along) / p.relaxation_x)
            x[at.TYRE_Y + i] = (x[at.TYRE_Y + i] - dt * slide_y) / (1.0 + dt * abs(along) / p.relaxation_y)
        x[at.STRUT + i] += dt * x[at.STRUT_RATE + i]
    x[0], x[1], x[2] = x[0] + dt * vx, x[1] + dt * vy, x[2] + dt * vz
    half = 0.5 * dt
    x[6] = qw - half * (qx * wx + qy * wy + qz * wz)
    x[7] = qx + half * (qw * wx + qy * wz - qz * wy)
    x[8] = qy + half * (qw * wy + qz * wx - qx * wz)
    x[9] = qz + half * (qw * wz + qx * wy - qy * wx)


@kernel(nogil=True, error_model="numpy")
def watch(x: Any, memory: Any, dt: float, out: Any, p: Any) -> int:
    """Latches CRASHED (Eq. 6.5); 0, or what is wrong with the state: NOT_FINITE, TOO_FAR."""
    if out[at.ROTOR_DOWN_SPEED] > CRASH_ROTOR_SPEED * p.max_rotor_speed:
        memory[at.CRASHED] = 1.0
    up = 1.0 - 2.0 * (x[7] * x[7] + x[8] * x[8])
    if up < CRASH_TILT_COSINE and out[at.BODY_POINTS_DOWN] > 0.0:
        memory[at.OVERTURNED] += dt
        if memory[at.OVERTURNED] >= CRASH_TILT_TIME:
            memory[at.CRASHED] = 1.0
    else:
        memory[at.OVERTURNED] = 0.0
    total = 0.0
    for n in range(x.size):
        total += x[n] - x[n]
    if total != 0.0:  # a NaN or an infinite number less itself is NaN
        return NOT_FINITE
    return TOO_FAR if x[0] * x[0] + x[1] * x[1] + x[2] * x[2] > FAR_AWAY * FAR_AWAY else 0


@kernel(nogil=True, error_model="numpy")
def simulate(
    x: Any,
    memory: Any,
    controls: Any,
    torques: bool,
    hold: int,
    wind: Any,
    gust_noise: Any,
    gust_times: Any,
    gust_keep: Any,
    gust_add: Any,
    dt: float,
    method: int,
    p: Any,
    ground: Any,
    every: int,
    states: Any,
    memories: Any,
    outputs: Any,
    status: Any,
) -> None:
    """Vehicles x (n, states) and memory (n, MEMORY), in place, through all steps of `gust_times`, one after the other.

    `controls` (n, rows, …): each row is held for `hold` steps. `wind` (n, 3): mean; `gust_noise` (n, gusts, 3): unit
    normal numbers, a set for each step at which `gust_times` (steps,) is true; `gust_keep`, `gust_add` (3,). Every
    `every` steps the state goes to `states` (n, samples, states), the memory to `memories` (n, samples, MEMORY), and
    what was met at the beginning of that step to `outputs` (n, samples, REPORTED). `status` (n, 2): 0 or what is wrong,
    and the step.
    """
    size = x.shape[1]
    work, out, blown, command = (
        np.zeros((5, size + at.OUTPUTS)),
        np.zeros(at.OUTPUTS),
        np.zeros(3),
        np.zeros(controls.shape[2]),
    )
    for v in range(x.shape[0]):
        gust = 0
        sample = 0
        for step in range(gust_times.size):
            if gust_times[step]:
                for k in range(3):
                    memory[v, at.GUST + k] = (
                        gust_keep[k] * memory[v, at.GUST + k] + gust_add[k] * gust_noise[v, gust, k]
                    )
                gust += 1
            for k in range(3):
                blown[k] = wind[v, k] + memory[v, at.GUST + k]
            row = min(step // hold, controls.shape[1] - 1)
            crashed = memory[v, at.CRASHED] != 0.0
            for k in range(command.size):
                command[k] = 0.0 if crashed else controls[v, row, k]
            if crashed:
                for i in range(4):
                    command[at.BRAKE_COMMAND + i] = p.max_brake_torque
            if method == RK4:
                rk4_step(x[v], command, torques and not crashed, memory[v], blown, dt, p, ground, work, out)
            else:
                euler_step(x[v], command, torques and not crashed, memory[v], blown, dt, p, ground, work, out)
            project(x[v], out, p)
            problem = watch(x[v], memory[v], dt, out, p)
            if problem:
                status[v, 0], status[v, 1] = problem, step
                break
            if (step + 1) % every == 0 and sample < states.shape[1]:
                states[v, sample] = x[v]
                memories[v, sample] = memory[v]
                outputs[v, sample] = out[: at.REPORTED]
                sample += 1


@kernel(nogil=True, error_model="numpy")
def derivatives(
    x: Any, controls: Any, torques: bool, brake_acting: Any, wind: Any, p: Any, ground: Any, dx: Any, outputs: Any
) -> None:
    """`derivative` of n vehicles: x, dx (n, states), controls (n, …), brake_acting (n, 4), wind (n, 3)."""
    out = np.zeros(at.OUTPUTS)
    for v in range(x.shape[0]):
        derivative(x[v], controls[v], torques, brake_acting[v], wind[v], p, ground, dx[v], out)
        outputs[v] = out[: at.REPORTED]
