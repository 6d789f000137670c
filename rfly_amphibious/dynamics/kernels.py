"""The vehicle's equations of motion, compiled where numba is. `stepping.py` integrates them.

Without numba the same functions run as plain Python: the same results, hundreds of times as slow. Equations are
those of docs/model; `p` is a `vehicle_record`, `ground` a `ground.Ground`, arrays are laid out as in
`state_layout`. No fastmath: a vehicle alone and one of a batch get the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import kernel_or_plain as kernel
from rfly_common.kernels.rotations import rotation_matrix

MIN_UPRIGHT = 0.2
"""n_B·ẑ below which a tyre does not act. Eq. 5.3"""
BODY_SLIDING_SPEED = 0.1


@kernel(nogil=True, error_model="numpy", inline="always")
def clamped(u: float, last: float) -> float:
    """u within 0 … last; a NaN becomes 0: it must not become an index."""
    u = u if u > 0.0 else 0.0
    return u if u < last else last


@kernel(nogil=True, error_model="numpy")
def heights_above_ground(ground: Any, count: int, out: Any) -> None:
    """Turns z of the points in `out` into the height above the bilinear ground, m, as `HeightMap.altitude` has it.

    Three loops, so that the first and the last become vector instructions; unsigned offsets spare a test for negatives.
    """
    last_u, last_v = ground.rows - 1.0, ground.columns - 1.0
    heights, columns = ground.heights, ground.columns
    for k in range(count):
        out[at.POINT_U + k] = clamped((out[at.POINT_X + k] - ground.origin_x) / ground.step_x, last_u)
        out[at.POINT_U + at.POINTS + k] = clamped(
            (out[at.POINT_X + at.POINTS + k] - ground.origin_y) / ground.step_y, last_v
        )
    below = np.uint64(columns)
    for k in range(count):
        u, v = out[at.POINT_U + k], out[at.POINT_U + at.POINTS + k]
        i, j = min(int(u), ground.rows - 2), min(int(v), columns - 2)
        first = np.uint64(i * columns + j)
        out[at.POINT_U + k], out[at.POINT_U + at.POINTS + k] = u - i, v - j
        out[at.POINT_CORNERS + k] = heights[first]
        out[at.POINT_CORNERS + at.POINTS + k] = heights[first + np.uint64(1)]
        out[at.POINT_CORNERS + 2 * at.POINTS + k] = heights[first + below]
        out[at.POINT_CORNERS + 3 * at.POINTS + k] = heights[first + below + np.uint64(1)]
    for k in range(count):
        a, b = out[at.POINT_U + k], out[at.POINT_U + at.POINTS + k]
        near = out[at.POINT_CORNERS + k] * (1.0 - b) + out[at.POINT_CORNERS + at.POINTS + k] * b
        far = out[at.POINT_CORNERS + 2 * at.POINTS + k] * (1.0 - b) + out[at.POINT_CORNERS + 3 * at.POINTS + k] * b
        out[at.POINT_X + 2 * at.POINTS + k] -= near * (1.0 - a) + far * a


@kernel(nogil=True, error_model="numpy", inline="always")
def vertex_gradient(ground: Any, i: int, j: int) -> tuple[float, float]:
    """(dz/dx, dz/dy) at vertex i, j: central differences, one-sided at the border."""
    heights, columns = ground.heights, ground.columns
    i_low, i_high = max(i - 1, 0), min(i + 1, ground.rows - 1)
    j_low, j_high = max(j - 1, 0), min(j + 1, columns - 1)
    east, west = heights[np.uint64(i_high * columns + j)], heights[np.uint64(i_low * columns + j)]
    north, south = heights[np.uint64(i * columns + j_high)], heights[np.uint64(i * columns + j_low)]
    along_x = (np.float64(east) - np.float64(west)) / ((i_high - i_low) * ground.step_x)
    along_y = (np.float64(north) - np.float64(south)) / ((j_high - j_low) * ground.step_y)
    return along_x, along_y


@kernel(nogil=True, error_model="numpy")
def ground_normal(ground: Any, x: float, y: float) -> tuple[float, float, float]:
    """The smooth unit normal, world, as `HeightMap.normal` has it. Eq. 3.2."""
    raw_u, raw_v = (x - ground.origin_x) / ground.step_x, (y - ground.origin_y) / ground.step_y
    on_x = (raw_u >= -ground.slack_u) and (raw_u <= ground.rows - 1 + ground.slack_u)
    on_y = (raw_v >= -ground.slack_v) and (raw_v <= ground.columns - 1 + ground.slack_v)
    u, v = clamped(raw_u, ground.rows - 1.0), clamped(raw_v, ground.columns - 1.0)
    i, j = min(int(u), ground.rows - 2), min(int(v), ground.columns - 2)
    a, b = u - i, v - j
    x00, y00 = vertex_gradient(ground, i, j)
    x01, y01 = vertex_gradient(ground, i, j + 1)
    x10, y10 = vertex_gradient(ground, i + 1, j)
    x11, y11 = vertex_gradient(ground, i + 1, j + 1)
    along_x = (x00 * (1.0 - b) + x01 * b) * (1.0 - a) + (x10 * (1.0 - b) + x11 * b) * a if on_x else 0.0
    along_y = (y00 * (1.0 - b) + y01 * b) * (1.0 - a) + (y10 * (1.0 - b) + y11 * b) * a if on_y else 0.0
    norm = math.sqrt(along_x * along_x + along_y * along_y + 1.0)
    return (0.0 - along_x) / norm, (0.0 - along_y) / norm, 1.0 / norm


@kernel(nogil=True, error_model="numpy", inline="always")
def arc_tangent(x: float) -> float:
    """atan x for x ≥ 0, to a unit in the last place or two; without branches, so that loops become vector instructions.

    Argument reduction and rational approximation of S. Moshier's Cephes library.
    """
    far, middle = x > 2.414213562373095, x > 0.66
    above = -1.0 if far else (x - 1.0 if middle else x)
    below = x if far else (x + 1.0 if middle else 1.0)
    base = 1.5707963267948966 if far else (0.7853981633974483 if middle else 0.0)
    rest = 6.123233995736766e-17 if far else (3.061616997868383e-17 if middle else 0.0)
    t = above / below
    z = t * t
    p = -8.750608600031904122785e-1
    p = p * z - 1.615753718733365076637e1
    p = p * z - 7.500855792314704667340e1
    p = p * z - 1.228866684490136173410e2
    p = p * z - 6.485021904942025371773e1
    q = z + 2.485846490142306297962e1
    q = q * z + 1.650270098316988542046e2
    q = q * z + 4.328810604912902668951e2
    q = q * z + 4.853903996359136964868e2
    q = q * z + 1.945506571482613964425e2
    return base + (t * (z * p / q) + t + rest)


@kernel(nogil=True, error_model="numpy", inline="always")
def sine(x: float) -> float:
    """sin x for 0 ≤ x ≤ π, to about 2e-16: Taylor's series up to the 21st power, mirrored at π/2."""
    mirrored = (3.141592653589793 - x) + 1.2246467991473532e-16
    x = mirrored if x > 1.5707963267948966 else x
    z = x * x
    s = 1.9572941063391263e-20
    s = s * z - 8.2206352466243297e-18
    s = s * z + 2.8114572543455206e-15
    s = s * z - 7.6471637318198165e-13
    s = s * z + 1.6059043836821613e-10
    s = s * z - 2.5052108385441720e-08
    s = s * z + 2.7557319223985893e-06
    s = s * z - 1.9841269841269841e-04
    s = s * z + 8.3333333333333332e-03
    s = s * z - 1.6666666666666666e-01
    return x + x * (z * s)


@kernel(nogil=True, error_model="numpy", inline="always")
def magic(slip: float, shape: float, curvature: float) -> float:
    """f(ρ; C, E) for ρ ≥ 0: slope 1 at 0, maximum 1. Eq. 5.11."""
    z = slip / shape
    return sine(shape * arc_tangent(z - curvature * (z - arc_tangent(z))))


@kernel(nogil=True, error_model="numpy")
def density_ratio(p: Any, z: float) -> float:
    """ρ/ρ₀ at height z of the map. Eq. 3.4."""
    height = z + p.map_altitude
    temperature = 288.15 - 0.0065 * height
    pressure = 101325.0 * (temperature / 288.15) ** 5.25588
    return pressure / (287.053 * temperature) / p.air_density


@kernel(nogil=True, error_model="numpy")
def derivative(
    x: Any, control: Any, torques: bool, brake_acting: Any, wind: Any, p: Any, ground: Any, dx: Any, out: Any
) -> None:
    """Time derivative of the state x -> dx, and what was met on the way -> out. docs/model, section 7.

    `torques`: rotor commands are torques, not speeds. `brake_acting` (≥ 4): signed brake torques. `wind` (3), world.
    """
    rotors = p.rotors
    steering, drive = at.ROTOR_SPEED + rotors, at.ROTOR_SPEED + rotors + 1

    # 1: attitude and air
    qw, qx, qy, qz = x[at.QUATERNION], x[at.QUATERNION + 1], x[at.QUATERNION + 2], x[at.QUATERNION + 3]
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_matrix(qx, qy, qz, qw)
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

    # 2: hubs, corners and rotors above the ground
    for k in range(at.FIRST_ROTOR + rotors):
        hx, hy, hz = p.point_x[k], p.point_y[k], p.point_z[k]
        out[at.POINT_X + k] = px + r00 * hx + r01 * hy + r02 * hz
        out[at.POINT_X + at.POINTS + k] = py + r10 * hx + r11 * hy + r12 * hz
        out[at.POINT_X + 2 * at.POINTS + k] = pz + r20 * hx + r21 * hy + r22 * hz
    for i in range(4):
        strut = x[at.STRUT + i]
        out[at.POINT_X + i] += r02 * strut
        out[at.POINT_X + at.POINTS + i] += r12 * strut
        out[at.POINT_X + 2 * at.POINTS + i] += r22 * strut
    heights_above_ground(ground, at.FIRST_ROTOR + rotors, out)
    clearance = np.inf
    off_map = 0
    touching = False
    for i in range(4):
        gap = out[at.POINT_X + 2 * at.POINTS + i]
        clearance = min(clearance, gap - p.wheel_radius)
        touching = touching or gap * ground.least_normal_z < p.wheel_radius

    # 2, 3: contacts and slips
    tan_steering = math.tan(x[steering])
    for i in range(4):
        strut_rate = x[at.STRUT_RATE + i]
        hx, hy, hz = p.point_x[i], p.point_y[i], p.point_z[i] + x[at.STRUT + i]
        out[at.HUB_X + i], out[at.HUB_X + 4 + i], out[at.HUB_X + 8 + i] = hx, hy, hz
        out[at.WHEEL_LOAD + i], out[at.TYRE_COMPRESSION + i] = 0.0, 0.0
        out[at.SLIP + i], out[at.SLIP + 4 + i] = 0.0, 0.0
        dx[at.TYRE_X + i], dx[at.TYRE_Y + i] = 0.0, 0.0
        if not touching:
            continue
        gap = out[at.POINT_X + 2 * at.POINTS + i]
        world_nx, world_ny, world_nz = ground_normal(ground, out[at.POINT_X + i], out[at.POINT_X + at.POINTS + i])
        nx = r00 * world_nx + r10 * world_ny + r20 * world_nz
        ny = r01 * world_nx + r11 * world_ny + r21 * world_nz
        nz = r02 * world_nx + r12 * world_ny + r22 * world_nz
        distance = gap * world_nz
        if distance >= p.wheel_radius or nz <= MIN_UPRIGHT:
            continue
        hub_vx = ux + wy * hz - wz * hy
        hub_vy = uy + wz * hx - wx * hz
        hub_vz = uz + wx * hy - wy * hx + strut_rate
        compression = p.wheel_radius - distance
        approach = hub_vx * nx + hub_vy * ny + hub_vz * nz
        load = max(0.0, p.tyre_stiffness * compression - p.tyre_damping * approach)
        out[at.WHEEL_LOAD + i], out[at.TYRE_COMPRESSION + i] = load, compression
        if load <= 0.0:
            continue
        tangent = p.steering_sign[i] * tan_steering / (1.0 - hy * tan_steering / p.steering_lever)
        # e_x = a × n / ‖·‖ (the axle a need not be of unit length here), e_y = n × e_x
        ex, ey, ez = nz, tangent * nz, -tangent * ny - nx
        norm = 1.0 / math.sqrt(ex * ex + ey * ey + ez * ez)
        ex, ey, ez = ex * norm, ey * norm, ez * norm
        lx, ly, lz = ny * ez - nz * ey, nz * ex - nx * ez, nx * ey - ny * ex
        cx, cy, cz = -distance * nx, -distance * ny, -distance * nz
        radius = p.wheel_radius - compression / 3.0
        speed_x = hub_vx * ex + hub_vy * ey + hub_vz * ez
        slide_y = (
            (hub_vx + wy * cz - wz * cy) * lx + (hub_vy + wz * cx - wx * cz) * ly + (hub_vz + wx * cy - wy * cx) * lz
        )
        slide_x = speed_x - radius * x[at.WHEEL_SPEED + i]
        fast = abs(speed_x)
        guarded = max(load, 1e-6 * p.nominal_load)
        # stiffness and friction. Eq. 5.9, 5.10; sin(2 atan r) = 2 r / (1 + r²)
        ratio = guarded / (p.cornering_load_ratio * p.nominal_load)
        friction = max(0.2, 1.0 - p.friction_load_loss * (guarded - p.nominal_load) / p.nominal_load) * guarded
        peak_x, peak_y = p.friction_x * friction, p.friction_y * friction
        # slips. Eq. 5.6, 5.7
        gain_x = p.slip_stiffness * guarded / (p.relaxation_x * peak_x)
        gain_y = p.cornering_stiffness[i] * 2.0 * ratio / ((1.0 + ratio * ratio) * (p.relaxation_y * peak_y))
        slip_x, slip_y = gain_x * x[at.TYRE_X + i], gain_y * x[at.TYRE_Y + i]
        if fast < p.low_speed:
            damping = 0.5 * (1.0 + math.cos(math.pi * fast / p.low_speed))
            damping *= p.low_speed_damping * load / p.nominal_load
            slip_x -= damping * slide_x / peak_x
            slip_y -= damping * slide_y / peak_y
        slip = math.sqrt(slip_x * slip_x + slip_y * slip_y)
        share = 1.0 / max(slip, 1e-300)
        out[at.SLIP + i], out[at.SLIP + 4 + i] = slip, slip
        out[at.SLIP_X + i], out[at.SLIP_Y + i] = peak_x * slip_x * share, peak_y * slip_y * share
        dx[at.TYRE_X + i] = -slide_x - fast * x[at.TYRE_X + i] / p.relaxation_x
        dx[at.TYRE_Y + i] = -slide_y - fast * x[at.TYRE_Y + i] / p.relaxation_y
        out[at.SPEED_X + i] = fast
        out[at.SLIP_GAIN_X + i], out[at.SLIP_GAIN_Y + i] = gain_x, gain_y
        first = 3 * i
        out[at.HEADING + first], out[at.HEADING + first + 1], out[at.HEADING + first + 2] = ex, ey, ez
        out[at.LEFT + first], out[at.LEFT + first + 1], out[at.LEFT + first + 2] = lx, ly, lz
        out[at.NORMAL + first], out[at.NORMAL + first + 1], out[at.NORMAL + first + 2] = nx, ny, nz
        out[at.HUB_HEIGHT + i], out[at.ROLLING_RADIUS + i] = distance, radius
    if touching:
        for k in range(p.slips):  # a constant number would be unrolled, which keeps vector instructions away
            out[at.SLIP + k] = magic(out[at.SLIP + k], p.shapes[k], p.curvatures[k])

    # 3, 4: tyre forces, suspension, what both pass to the body
    sum_x = sum_y = sum_z = sum_xx = sum_zz = sum_yy = sum_xz = sum_yz = 0.0
    spin_x = spin_y = spin_z = 0.0
    for i in range(4):
        strut, strut_rate = x[at.STRUT + i], x[at.STRUT_RATE + i]
        hx, hy, hz = out[at.HUB_X + i], out[at.HUB_X + 4 + i], out[at.HUB_X + 8 + i]
        off_map += (
            (out[at.POINT_X + i] < ground.x_min)
            or (out[at.POINT_X + i] > ground.x_max)
            or (out[at.POINT_X + at.POINTS + i] < ground.y_min)
            or (out[at.POINT_X + at.POINTS + i] > ground.y_max)
        )
        tangent = p.steering_sign[i] * tan_steering / (1.0 - hy * tan_steering / p.steering_lever)
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        axle_x, axle_y = -tangent * cosine, cosine
        load = out[at.WHEEL_LOAD + i]
        force_x = force_y = tyre_x = tyre_y = tyre_z = couple_x = couple_y = couple_z = rolling = 0.0
        radius = p.wheel_radius
        if load > 0.0:
            first = 3 * i
            force_x, force_y = out[at.SLIP_X + i] * out[at.SLIP + i], out[at.SLIP_Y + i] * out[at.SLIP + 4 + i]
            nx, ny, nz = out[at.NORMAL + first], out[at.NORMAL + first + 1], out[at.NORMAL + first + 2]
            tyre_x = force_x * out[at.HEADING + first] + force_y * out[at.LEFT + first] + load * nx
            tyre_y = force_x * out[at.HEADING + first + 1] + force_y * out[at.LEFT + first + 1] + load * ny
            tyre_z = force_x * out[at.HEADING + first + 2] + force_y * out[at.LEFT + first + 2] + load * nz
            distance, radius = out[at.HUB_HEIGHT + i], out[at.ROLLING_RADIUS + i]
            cx, cy, cz = -distance * nx, -distance * ny, -distance * nz
            couple_x, couple_y, couple_z = (
                cy * tyre_z - cz * tyre_y,
                cz * tyre_x - cx * tyre_z,
                cx * tyre_y - cy * tyre_x,
            )
            about_axle = couple_x * axle_x + couple_y * axle_y
            couple_x, couple_y = couple_x - about_axle * axle_x, couple_y - about_axle * axle_y
            turning = radius * x[at.WHEEL_SPEED + i] / p.rolling_speed
            if abs(turning) < 20.0:  # beyond it tanh is 1 to the last bit
                turning = math.tanh(turning)
            rolling = p.rolling_resistance * load * radius * min(max(turning, -1.0), 1.0)
        # suspension. Eq. 6.2
        other = x[at.STRUT + (i ^ 1)]
        force = max(0.0, p.spring_load[i] + p.spring[i] * strut)
        force += (p.bump_damping if strut_rate > 0.0 else p.rebound_damping) * strut_rate
        if strut > p.bump_stop:
            force += max(0.0, p.bump_stop_stiffness * (strut - p.bump_stop) + p.stop_damping * strut_rate)
        elif strut < p.rebound_stop:
            force += min(0.0, p.rebound_stop_stiffness * (strut - p.rebound_stop) + p.stop_damping * strut_rate)
        force += p.anti_roll[i] * (strut - other)
        # what the wheel passes to the body. Eq. 7.3, 7.5, 7.6
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
        limit = p.driven[i] * min(p.max_drive_torque, p.drive_power / max(abs(x[at.WHEEL_SPEED + i]), 1e-3))
        dx[drive + i] = (min(max(control[at.DRIVE_COMMAND + i], -limit), limit) - x[drive + i]) / p.drive_lag
        out[at.TYRE_FORCE_X + i], out[at.TYRE_FORCE_Y + i], out[at.STRUT_FORCE + i] = force_x, force_y, force

    # 5: rotors. Eq. 4.2 to 4.11; their hubs may touch the ground
    points_down = 0
    fastest_down = -1.0
    power = 0.0
    for j in range(rotors):
        point = at.FIRST_ROTOR + j
        hx, hy, hz = p.point_x[point], p.point_y[point], p.point_z[point]
        spin, rotation = p.rotor_spin[j], x[at.ROTOR_SPEED + j]
        gap = out[at.POINT_X + 2 * at.POINTS + point]
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
            fastest_down = max(fastest_down, rotation)
    # the body's corners and the rotor hubs that touch. Eq. 6.4
    for k in range(at.FIRST_CORNER, at.FIRST_ROTOR + rotors):
        gap = out[at.POINT_X + 2 * at.POINTS + k]
        if gap >= 0.0:
            continue
        points_down += 1
        hx, hy, hz = p.point_x[k], p.point_y[k], p.point_z[k]
        world_nx, world_ny, world_nz = ground_normal(ground, out[at.POINT_X + k], out[at.POINT_X + at.POINTS + k])
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

    # 6: six by six. Its upper left is diagonal, so three unknowns are eliminated by hand. Eq. 7.7
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
