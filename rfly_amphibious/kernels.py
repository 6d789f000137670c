"""The vehicle's equations of motion and their integration, one vehicle after the other, compiled where numba is.

Without numba the same functions run as plain Python: the same results, hundreds of times as slow. All of them stay in
this one file, since numba's cache does not notice a change in another. Section numbers are those of the model's
description; `p` is a `vehicle_record`, `ground` a `ground.Ground`, arrays are laid out as in `state_layout`.

No fastmath: a vehicle alone and one of a batch, on any machine, get the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious import state_layout as at
from rfly_common.accel import kernel_or_plain as kernel

RK4 = 0
SEMI_IMPLICIT_EULER = 1

MIN_UPRIGHT = 0.2
"""n_B·ẑ below which a tyre does not act. Section 6.1"""
CRASH_ROTOR_SPEED = 0.2
"""of the largest speed: a faster rotor whose hub touches the ground has crashed. Section 6.1"""
CRASH_TILT_COSINE = 0.5
CRASH_TILT_TIME = 0.5
BODY_SLIDING_SPEED = 0.1
FAR_AWAY = 1.0e6
NOT_FINITE = 1
TOO_FAR = 2


@kernel(nogil=True, error_model="numpy")
def ground_cell(ground: Any, x: float, y: float) -> tuple[int, int, float, float, bool, bool]:
    """Cell and fractions of a point, and whether it is on the map, by each axis. As `HeightMap` has it."""
    rows, columns = ground.heights.shape
    raw_u, raw_v = (x - ground.origin_x) / ground.step_x, (y - ground.origin_y) / ground.step_y
    on_x = (raw_u >= -ground.slack_u) and (raw_u <= rows - 1 + ground.slack_u)
    on_y = (raw_v >= -ground.slack_v) and (raw_v <= columns - 1 + ground.slack_v)
    u = raw_u if raw_u > 0.0 else 0.0  # a NaN too becomes 0: it must not become an index
    v = raw_v if raw_v > 0.0 else 0.0
    u = u if u < rows - 1 else float(rows - 1)
    v = v if v < columns - 1 else float(columns - 1)
    i, j = min(int(u), rows - 2), min(int(v), columns - 2)
    return i, j, u - i, v - j, on_x, on_y


@kernel(nogil=True, error_model="numpy")
def ground_height(ground: Any, x: float, y: float) -> float:
    """The bilinear height, m."""
    heights = ground.heights
    i, j, a, b, _, _ = ground_cell(ground, x, y)
    near = np.float64(heights[i, j]) * (1.0 - b) + np.float64(heights[i, j + 1]) * b
    far = np.float64(heights[i + 1, j]) * (1.0 - b) + np.float64(heights[i + 1, j + 1]) * b
    return near * (1.0 - a) + far * a


@kernel(nogil=True, error_model="numpy")
def vertex_gradient(ground: Any, i: int, j: int) -> tuple[float, float]:
    """(dz/dx, dz/dy) at vertex i, j: central differences, one-sided at the border."""
    heights = ground.heights
    i_low, i_high = max(i - 1, 0), min(i + 1, heights.shape[0] - 1)
    j_low, j_high = max(j - 1, 0), min(j + 1, heights.shape[1] - 1)
    along_x = (np.float64(heights[i_high, j]) - np.float64(heights[i_low, j])) / ((i_high - i_low) * ground.step_x)
    along_y = (np.float64(heights[i, j_high]) - np.float64(heights[i, j_low])) / ((j_high - j_low) * ground.step_y)
    return along_x, along_y


@kernel(nogil=True, error_model="numpy")
def ground_normal(ground: Any, x: float, y: float) -> tuple[float, float, float]:
    """The smooth unit normal, world. Section 3.1."""
    i, j, a, b, on_x, on_y = ground_cell(ground, x, y)
    x00, y00 = vertex_gradient(ground, i, j)
    x01, y01 = vertex_gradient(ground, i, j + 1)
    x10, y10 = vertex_gradient(ground, i + 1, j)
    x11, y11 = vertex_gradient(ground, i + 1, j + 1)
    along_x = (x00 * (1.0 - b) + x01 * b) * (1.0 - a) + (x10 * (1.0 - b) + x11 * b) * a if on_x else 0.0
    along_y = (y00 * (1.0 - b) + y01 * b) * (1.0 - a) + (y10 * (1.0 - b) + y11 * b) * a if on_y else 0.0
    norm = math.sqrt(along_x * along_x + along_y * along_y + 1.0)
    return (0.0 - along_x) / norm, (0.0 - along_y) / norm, 1.0 / norm


@kernel(nogil=True, error_model="numpy")
def magic(slip: float, shape: float, curvature: float) -> float:
    """f(ρ; C, E) of section 5.4: slope 1 at 0, maximum 1."""
    z = slip / shape
    return math.sin(shape * math.atan(z - curvature * (z - math.atan(z))))


@kernel(nogil=True, error_model="numpy")
def density_ratio(p: Any, z: float) -> float:
    """ρ/ρ₀ at height z of the map. Section 3.2."""
    height = z + p.map_altitude
    temperature = 288.15 - 0.0065 * height
    pressure = 101325.0 * (temperature / 288.15) ** 5.25588
    return pressure / (287.053 * temperature) / p.air_density


@kernel(nogil=True, error_model="numpy")
def derivative(
    x: Any, control: Any, torques: bool, brake_acting: Any, wind: Any, p: Any, ground: Any, dx: Any, out: Any
) -> None:
    """Time derivative of the state x -> dx, and what was met on the way -> out. Section 7.

    `torques`: rotor commands are torques, not speeds. `brake_acting` (≥ 4): signed brake torques. `wind` (3), world.
    """
    rotors = p.rotors
    steering, drive = at.ROTOR_SPEED + rotors, at.ROTOR_SPEED + rotors + 1

    # 1: attitude and air
    qw, qx, qy, qz = x[at.QUATERNION], x[at.QUATERNION + 1], x[at.QUATERNION + 2], x[at.QUATERNION + 3]
    s = 2.0 / (qw * qw + qx * qx + qy * qy + qz * qz)
    r00, r11, r22 = 1.0 - s * (qy * qy + qz * qz), 1.0 - s * (qx * qx + qz * qz), 1.0 - s * (qx * qx + qy * qy)
    r01, r10 = s * (qx * qy - qw * qz), s * (qx * qy + qw * qz)
    r02, r20 = s * (qx * qz + qw * qy), s * (qx * qz - qw * qy)
    r12, r21 = s * (qy * qz - qw * qx), s * (qy * qz + qw * qx)
    px, py, pz = x[0], x[1], x[2]
    vx, vy, vz = x[3], x[4], x[5]
    wx, wy, wz = x[at.RATES], x[at.RATES + 1], x[at.RATES + 2]
    ux = r00 * vx + r10 * vy + r20 * vz
    uy = r01 * vx + r11 * vy + r21 * vz
    uz = r02 * vx + r12 * vy + r22 * vz
    ax, ay, az = vx - wind[0], vy - wind[1], vz - wind[2]
    air_x = r00 * ax + r10 * ay + r20 * az
    air_y = r01 * ax + r11 * ay + r21 * az
    air_z = r02 * ax + r12 * ay + r22 * az
    gx, gy, gz = -p.gravity * r20, -p.gravity * r21, -p.gravity * r22
    density = density_ratio(p, pz) if p.standard_atmosphere else 1.0

    # body: weight and drag
    speed = math.sqrt(air_x * air_x + air_y * air_y + air_z * air_z)
    ms, mu = p.mass_sprung, p.mass_unsprung
    fx = ms * gx - (p.linear_drag[0] + density * p.drag_area[0] * speed) * air_x
    fy = ms * gy - (p.linear_drag[1] + density * p.drag_area[1] * speed) * air_y
    fz = ms * gz - (p.linear_drag[2] + density * p.drag_area[2] * speed) * air_z
    mx, my, mz = -p.rotational_drag[0] * wx, -p.rotational_drag[1] * wy, -p.rotational_drag[2] * wz

    # 2, 3, 4: wheels, tyres, suspension
    tan_steering = math.tan(x[steering])
    sum_x = sum_y = sum_z = sum_xx = sum_zz = sum_yy = sum_xz = sum_yz = 0.0
    spin_x = spin_y = spin_z = 0.0
    clearance = np.inf
    off_map = 0
    for i in range(4):
        strut, strut_rate = x[at.STRUT + i], x[at.STRUT_RATE + i]
        hx, hy, hz = p.hub_x[i], p.hub_y[i], p.hub_z[i] + strut
        out[at.HUB_X + i], out[at.HUB_X + 4 + i], out[at.HUB_X + 8 + i] = hx, hy, hz
        tangent = p.steering_sign[i] * tan_steering / (1.0 - hy * tan_steering / p.steering_lever)
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        axle_x, axle_y = -tangent * cosine, cosine
        # the hub: velocity in body axes, place in the world
        hub_vx = ux + wy * hz - wz * hy
        hub_vy = uy + wz * hx - wx * hz
        hub_vz = uz + wx * hy - wy * hx + strut_rate
        at_x = px + r00 * hx + r01 * hy + r02 * hz
        at_y = py + r10 * hx + r11 * hy + r12 * hz
        at_z = pz + r20 * hx + r21 * hy + r22 * hz
        gap = at_z - ground_height(ground, at_x, at_y)
        clearance = min(clearance, gap - p.wheel_radius)
        off_map += (at_x < ground.x_min) or (at_x > ground.x_max) or (at_y < ground.y_min) or (at_y > ground.y_max)
        force_x = force_y = load = compression = 0.0
        tyre_x = tyre_y = tyre_z = 0.0
        couple_x = couple_y = couple_z = 0.0
        rolling = 0.0
        radius = p.wheel_radius
        rate_x = rate_y = 0.0
        if gap * ground.least_normal_z < p.wheel_radius:
            world_nx, world_ny, world_nz = ground_normal(ground, at_x, at_y)
            nx = r00 * world_nx + r10 * world_ny + r20 * world_nz
            ny = r01 * world_nx + r11 * world_ny + r21 * world_nz
            nz = r02 * world_nx + r12 * world_ny + r22 * world_nz
            distance = gap * world_nz
            if distance < p.wheel_radius and nz > MIN_UPRIGHT:
                compression = p.wheel_radius - distance
                approach = hub_vx * nx + hub_vy * ny + hub_vz * nz
                load = max(0.0, p.tyre_stiffness * compression - p.tyre_damping * approach)
        if load > 0.0:
            # e_x = a × n / ‖·‖, e_y = n × e_x
            ex, ey, ez = axle_y * nz, -axle_x * nz, axle_x * ny - axle_y * nx
            norm = math.sqrt(ex * ex + ey * ey + ez * ez)
            ex, ey, ez = ex / norm, ey / norm, ez / norm
            lx, ly, lz = ny * ez - nz * ey, nz * ex - nx * ez, nx * ey - ny * ex
            cx, cy, cz = -distance * nx, -distance * ny, -distance * nz
            radius = p.wheel_radius - compression / 3.0
            speed_x = hub_vx * ex + hub_vy * ey + hub_vz * ez
            slide_y = (
                (hub_vx + wy * cz - wz * cy) * lx
                + (hub_vy + wz * cx - wx * cz) * ly
                + (hub_vz + wx * cy - wy * cx) * lz
            )
            slide_x = speed_x - radius * x[at.WHEEL_SPEED + i]
            fast = abs(speed_x)
            guarded = max(load, 1e-6 * p.nominal_load)
            # stiffness and friction. Section 5.4; sin(2 atan r) = 2 r / (1 + r²)
            ratio = guarded / (p.cornering_load_ratio * p.nominal_load)
            stiffness_x = p.slip_stiffness * guarded
            stiffness_y = p.cornering_stiffness[i] * 2.0 * ratio / (1.0 + ratio * ratio)
            friction = max(0.2, 1.0 - p.friction_load_loss * (guarded - p.nominal_load) / p.nominal_load)
            peak_x, peak_y = p.friction_x * friction * guarded, p.friction_y * friction * guarded
            # slips. Section 5.3
            gain_x, gain_y = stiffness_x / (p.relaxation_x * peak_x), stiffness_y / (p.relaxation_y * peak_y)
            slip_x, slip_y = gain_x * x[at.TYRE_X + i], gain_y * x[at.TYRE_Y + i]
            if fast < p.low_speed:
                damping = (
                    p.low_speed_damping * (load / p.nominal_load) * 0.5 * (1.0 + math.cos(math.pi * fast / p.low_speed))
                )
                slip_x -= damping * slide_x / peak_x
                slip_y -= damping * slide_y / peak_y
            slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
            if slip > 0.0:
                force_x = peak_x * (slip_x / slip) * magic(slip, p.shape_x, p.curvature_x)
                force_y = peak_y * (slip_y / slip) * magic(slip, p.shape_y, p.curvature_y)
            rate_x = -slide_x - fast * x[at.TYRE_X + i] / p.relaxation_x
            rate_y = -slide_y - fast * x[at.TYRE_Y + i] / p.relaxation_y
            tyre_x = force_x * ex + force_y * lx + load * nx
            tyre_y = force_x * ey + force_y * ly + load * ny
            tyre_z = force_x * ez + force_y * lz + load * nz
            couple_x, couple_y, couple_z = (
                cy * tyre_z - cz * tyre_y,
                cz * tyre_x - cx * tyre_z,
                cx * tyre_y - cy * tyre_x,
            )
            about_axle = couple_x * axle_x + couple_y * axle_y
            couple_x, couple_y = couple_x - about_axle * axle_x, couple_y - about_axle * axle_y
            rolling = p.rolling_resistance * load * radius * math.tanh(radius * x[at.WHEEL_SPEED + i] / p.rolling_speed)
            out[at.SPEED_X + i] = fast
            out[at.SLIP_GAIN_X + i], out[at.SLIP_GAIN_Y + i] = gain_x, gain_y
            first = 3 * i
            out[at.HEADING + first], out[at.HEADING + first + 1], out[at.HEADING + first + 2] = ex, ey, ez
            out[at.LEFT + first], out[at.LEFT + first + 1], out[at.LEFT + first + 2] = lx, ly, lz
            out[at.NORMAL + first], out[at.NORMAL + first + 1], out[at.NORMAL + first + 2] = nx, ny, nz
            out[at.HUB_HEIGHT + i], out[at.ROLLING_RADIUS + i] = distance, radius
        # suspension. Section 6
        other = x[at.STRUT + (i ^ 1)]
        force = max(0.0, p.spring_load[i] + p.spring[i] * strut)
        force += (p.bump_damping if strut_rate > 0.0 else p.rebound_damping) * strut_rate
        if strut > p.bump_stop:
            force += max(0.0, p.bump_stop_stiffness * (strut - p.bump_stop) + p.stop_damping * strut_rate)
        elif strut < p.rebound_stop:
            force += min(0.0, p.rebound_stop_stiffness * (strut - p.rebound_stop) + p.stop_damping * strut_rate)
        force += p.anti_roll[i] * (strut - other)
        # what the wheel passes to the body. Section 7.2
        motor = x[drive + i] + brake_acting[at.BRAKE_ACTING + i]
        couple_x -= motor * axle_x
        couple_y -= motor * axle_y
        dot = wx * hx + wy * hy + wz * hz
        square = wx * wx + wy * wy + wz * wz
        bx = wx * dot - hx * square + 2.0 * strut_rate * wy
        by = wy * dot - hy * square - 2.0 * strut_rate * wx
        bz = wz * dot - hz * square
        passed_x, passed_y = tyre_x + mu * (gx - bx), tyre_y + mu * (gy - by)
        fx += passed_x
        fy += passed_y
        fz += force
        mx += hy * force - hz * passed_y + couple_x
        my += hz * passed_x - hx * force + couple_y
        mz += hx * passed_y - hy * passed_x + couple_z
        sum_x, sum_y, sum_z = sum_x + hx, sum_y + hy, sum_z + hz
        sum_xx, sum_yy, sum_zz = sum_xx + hx * hx, sum_yy + hy * hy, sum_zz + hz * hz
        sum_xz, sum_yz = sum_xz + hx * hz, sum_yz + hy * hz
        spin_x += p.wheel_inertia * x[at.WHEEL_SPEED + i] * axle_x
        spin_y += p.wheel_inertia * x[at.WHEEL_SPEED + i] * axle_y
        dx[at.STRUT + i] = strut_rate
        dx[at.STRUT_RATE + i] = gz + (tyre_z - force) / mu - bz  # less what the body does, below
        dx[at.WHEEL_SPEED + i] = (motor - radius * force_x - rolling) / p.wheel_inertia
        dx[at.TYRE_X + i], dx[at.TYRE_Y + i] = rate_x, rate_y
        limit = p.driven[i] * min(p.max_drive_torque, p.drive_power / max(abs(x[at.WHEEL_SPEED + i]), 1e-3))
        dx[drive + i] = (min(max(control[at.DRIVE_COMMAND + i], -limit), limit) - x[drive + i]) / p.drive_lag
        out[at.WHEEL_LOAD + i], out[at.TYRE_COMPRESSION + i], out[at.STRUT_FORCE + i] = load, compression, force
        out[at.TYRE_FORCE_X + i], out[at.TYRE_FORCE_Y + i] = force_x, force_y

    # 5: rotors. Section 4; their hubs may touch the ground
    points_down = 0
    fastest_down = -1.0
    power = 0.0
    for j in range(rotors):
        hx, hy, hz = p.rotor_x[j], p.rotor_y[j], p.rotor_z[j]
        spin, rotation = p.rotor_spin[j], x[at.ROTOR_SPEED + j]
        at_x = px + r00 * hx + r01 * hy + r02 * hz
        at_y = py + r10 * hx + r11 * hy + r12 * hz
        at_z = pz + r20 * hx + r21 * hy + r22 * hz
        gap = at_z - ground_height(ground, at_x, at_y)
        drag = -p.rotor_drag_coefficient * density * rotation
        rotor_fx = drag * (air_x + wy * hz - wz * hy)
        rotor_fy = drag * (air_y + wz * hx - wx * hz)
        static = p.thrust_coefficient * density * rotation * rotation
        inflow = p.inflow_coefficient * density * rotation * (air_z + wx * hy - wy * hx)
        thrust = min(max(static - inflow, 0.0), 1.5 * static)
        if p.ground_effect:
            near = p.rotor_radius / (4.0 * max(gap, 0.5 * p.rotor_radius))
            thrust = thrust / (1.0 - near * near)
        resistance = p.torque_coefficient * density * rotation * abs(rotation)
        command = control[at.ROTOR_COMMAND + j]
        if torques:
            pull = min(max(command, -p.max_rotor_torque), p.max_rotor_torque)
            acceleration = (pull - resistance) / p.rotor_inertia
            if rotation <= 0.0 and acceleration < 0.0:
                acceleration = 0.0
        else:
            acceleration = (min(max(command, 0.0), p.max_rotor_speed) - rotation) / p.rotor_lag
        shaft = resistance + p.rotor_inertia * acceleration
        power += shaft * rotation
        fx, fy, fz = fx + rotor_fx, fy + rotor_fy, fz + thrust
        mx += hy * thrust - hz * rotor_fy
        my += hz * rotor_fx - hx * thrust
        mz += hx * rotor_fy - hy * rotor_fx - spin * shaft
        spin_z += p.rotor_inertia * spin * rotation
        dx[at.ROTOR_SPEED + j] = acceleration
        out[at.THRUST + j] = thrust
        if gap < 0.0:
            points_down += 1
            fastest_down = max(fastest_down, rotation)
    # the body's corners and the rotor hubs that touch. Section 6.1
    half_x, half_y, half_z = 0.5 * p.body_box[0], 0.5 * p.body_box[1], 0.5 * p.body_box[2]
    hubs_down = points_down
    for k in range(8 + rotors):
        if k < 8:
            hx, hy, hz = half_x * (1 - 2 * (k & 1)), half_y * (1 - (k & 2)), half_z * (1 - (k & 4) // 2)
        elif hubs_down > 0:
            hx, hy, hz = p.rotor_x[k - 8], p.rotor_y[k - 8], p.rotor_z[k - 8]
        else:
            break
        at_x = px + r00 * hx + r01 * hy + r02 * hz
        at_y = py + r10 * hx + r11 * hy + r12 * hz
        at_z = pz + r20 * hx + r21 * hy + r22 * hz
        gap = at_z - ground_height(ground, at_x, at_y)
        if gap >= 0.0:
            continue
        points_down += k < 8
        world_nx, world_ny, world_nz = ground_normal(ground, at_x, at_y)
        nx = r00 * world_nx + r10 * world_ny + r20 * world_nz
        ny = r01 * world_nx + r11 * world_ny + r21 * world_nz
        nz = r02 * world_nx + r12 * world_ny + r22 * world_nz
        hub_vx, hub_vy, hub_vz = ux + wy * hz - wz * hy, uy + wz * hx - wx * hz, uz + wx * hy - wy * hx
        approach = hub_vx * nx + hub_vy * ny + hub_vz * nz
        push = max(0.0, -p.body_stiffness * gap * world_nz - p.body_damping * approach)
        hub_vx, hub_vy, hub_vz = hub_vx - approach * nx, hub_vy - approach * ny, hub_vz - approach * nz
        sliding = math.sqrt(hub_vx * hub_vx + hub_vy * hub_vy + hub_vz * hub_vz)
        rub = p.body_friction * push * math.tanh(sliding / BODY_SLIDING_SPEED) / max(sliding, 1e-12)
        tyre_x, tyre_y, tyre_z = push * nx - rub * hub_vx, push * ny - rub * hub_vy, push * nz - rub * hub_vz
        fx, fy, fz = fx + tyre_x, fy + tyre_y, fz + tyre_z
        mx += hy * tyre_z - hz * tyre_y
        my += hz * tyre_x - hx * tyre_z
        mz += hx * tyre_y - hy * tyre_x

    # 6: six by six. Its upper left is diagonal, so three unknowns are eliminated by hand. Section 7.2
    jxx, jyy, jzz, jxy, jxz, jyz = p.inertia[0], p.inertia[1], p.inertia[2], p.inertia[3], p.inertia[4], p.inertia[5]
    lx = jxx * wx + jxy * wy + jxz * wz + spin_x
    ly = jxy * wx + jyy * wy + jyz * wz + spin_y
    lz = jxz * wx + jyz * wy + jzz * wz + spin_z
    mx -= wy * lz - wz * ly
    my -= wz * lx - wx * lz
    mz -= wx * ly - wy * lx
    part = mu / p.mass
    mx += part * sum_z * fy
    my -= part * sum_z * fx
    mz += part * (sum_y * fx - sum_x * fy)
    a00 = jxx + mu * (sum_zz - part * sum_z * sum_z)
    a11 = jyy + mu * (sum_zz - part * sum_z * sum_z)
    a22 = jzz + mu * (sum_xx + sum_yy - part * (sum_x * sum_x + sum_y * sum_y))
    a02 = jxz - mu * (sum_xz - part * sum_x * sum_z)
    a12 = jyz - mu * (sum_yz - part * sum_y * sum_z)
    a01 = jxy
    c00, c01, c02 = a11 * a22 - a12 * a12, a02 * a12 - a01 * a22, a01 * a12 - a02 * a11
    c11, c12, c22 = a00 * a22 - a02 * a02, a01 * a02 - a00 * a12, a00 * a11 - a01 * a01
    determinant = a00 * c00 + a01 * c01 + a02 * c02
    turn_x = (c00 * mx + c01 * my + c02 * mz) / determinant
    turn_y = (c01 * mx + c11 * my + c12 * mz) / determinant
    turn_z = (c02 * mx + c12 * my + c22 * mz) / determinant
    ax = fx / p.mass - part * (sum_z * turn_y - sum_y * turn_z)
    ay = fy / p.mass - part * (sum_x * turn_z - sum_z * turn_x)
    az = fz / ms

    # 7: rates
    dx[0], dx[1], dx[2] = vx, vy, vz
    dx[3] = r00 * ax + r01 * ay + r02 * az
    dx[4] = r10 * ax + r11 * ay + r12 * az
    dx[5] = r20 * ax + r21 * ay + r22 * az
    dx[at.QUATERNION] = -0.5 * (qx * wx + qy * wy + qz * wz)
    dx[at.QUATERNION + 1] = 0.5 * (qw * wx + qy * wz - qz * wy)
    dx[at.QUATERNION + 2] = 0.5 * (qw * wy + qz * wx - qx * wz)
    dx[at.QUATERNION + 3] = 0.5 * (qw * wz + qx * wy - qy * wx)
    dx[at.RATES], dx[at.RATES + 1], dx[at.RATES + 2] = turn_x, turn_y, turn_z
    for i in range(4):
        dx[at.STRUT_RATE + i] -= az + turn_x * out[at.HUB_X + 4 + i] - turn_y * out[at.HUB_X + i]
    wanted = min(max(control[at.STEERING_COMMAND], -p.max_steering), p.max_steering)
    rate = (wanted - x[steering]) / p.steering_lag
    dx[steering] = min(max(rate, -p.max_steering_rate), p.max_steering_rate)

    out[at.SPECIFIC_FORCE], out[at.SPECIFIC_FORCE + 1], out[at.SPECIFIC_FORCE + 2] = ax - gx, ay - gy, az - gz
    out[at.ROTOR_POWER], out[at.BODY_POINTS_DOWN], out[at.ROTOR_DOWN_SPEED] = power, points_down, fastest_down
    out[at.CLEARANCE], out[at.OFF_MAP] = clearance, off_map


@kernel(nogil=True, error_model="numpy")
def brake(x: Any, control: Any, memory: Any, dt: float, p: Any) -> None:
    """Coulomb friction of the brakes, exactly: a held wheel keeps the spin of its axle's carrier. Section 5.6."""
    tan_steering = math.tan(x[at.ROTOR_SPEED + p.rotors])
    for i in range(4):
        tangent = p.steering_sign[i] * tan_steering / (1.0 - p.hub_y[i] * tan_steering / p.steering_lever)
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
    """What follows each step: unit quaternion, rotors that never turn back, tyres within bounds. Section 5.3.

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
    """One step of the classical Runge–Kutta method, x -> x. Section 13. `work`: (5, states + outputs)."""
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
    """One step of the semi-implicit Euler method, x -> x. Section 13.

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
    """Latches CRASHED (section 6.1); 0, or what is wrong with the state: NOT_FINITE, TOO_FAR."""
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
    outputs: Any,
    status: Any,
) -> None:
    """Vehicles x (n, states) and memory (n, MEMORY), in place, through all steps of `gust_times`, one after the other.

    `controls` (n, rows, …): each row is held for `hold` steps. `wind` (n, 3): mean; `gust_noise` (n, gusts, 3): unit
    normal numbers, a set for each step at which `gust_times` (steps,) is true; `gust_keep`, `gust_add` (3,). Every
    `every` steps the state goes to `states` (n, samples, states) and what was met at the beginning of that step to
    `outputs` (n, samples, REPORTED). `status` (n, 2): 0 or what is wrong, and the step.
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
