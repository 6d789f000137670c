# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Records that the kernels compute with: state, controls, memory, and what an evaluation finds.

A record has a field for each quantity, so that kernels read `x.strut[i]`. All fields have room for
the largest vehicle: one machine code serves all kinds. Public arrays have rows in the order of
`state_layout`; `read_row` and `write_row` copy between both.

Each record of results belongs to one step of the computation. The function that fills it returns
it, and later steps take it as an argument. The memory comes from `new_workspace`: kernels can't
return records that they make themselves. A record does not keep its memory: numba frees an array
after the last place that names it, so a loop that uses the record takes it from the array anew.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rfly_amphibious.vehicle.state_layout import (
    CONTROLS,
    MEMORY_FIELDS,
    OUTPUTS,
    PARTS,
    POINTS,
    STATE,
    Fields,
    record_sizes,
)
from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.lanes import LANES, flat, lanes_of

Shapes = dict[str, "tuple[int, ...] | Shapes"]
"""Shape of each field of a record; another `Shapes` for a record within it."""


def _shapes(fields: Fields) -> Shapes:
    """Return the shapes of a record of all quantities of a public array."""
    sizes = record_sizes(fields)
    return {name: () if size == 1 else (size,) for name, size in sizes.items()}


_STATE = _shapes(STATE)

_CONTROLS = {
    **_shapes(CONTROLS),
    "torques": (),  # 1 where rotors are commanded by torque, else 0
    "wind": (3,),  # mean and gust, m/s, world
}

_MEMORY = {
    **_shapes(MEMORY_FIELDS),
    "watched": (),  # in lanes: 1 where `watch` must look again, else 0
}

_POINTS: Shapes = {
    # places in the world; height above the ground, m
    "x": (POINTS,),
    "y": (POINTS,),
    "height": (POINTS,),
    # the cell of the ground: its row and column, and the point's fractions of them
    "cell_row": (POINTS,),
    "cell_column": (POINTS,),
    "row": (POINTS,),
    "column": (POINTS,),
    # heights of the cell's corners, m
    "height_00": (POINTS,),
    "height_01": (POINTS,),
    "height_10": (POINTS,),
    "height_11": (POINTS,),
    # of the lowest wheel's lowest point, m; wheels that are not above the map
    "clearance": (),
    "wheels_off_map": (),
}

_SOLID_CONTACTS: Shapes = {
    # ellipsoids of the hull and sides of wheels that touch; 1 for each rotor whose disc touches
    "hull_contacts": (),
    "rotor_touches": (PARTS,),
    # the nearest part that each wheel may roll on: distance (m), normal (body axes), |gradient| of
    # the distance, velocity (m/s, body axes)
    "distance": (PARTS,),
    "normal": (3, PARTS),
    "slope": (PARTS,),
    "velocity": (3, PARTS),
    # force on each wheel's side along its strut, N; compression of that side, and height of its
    # hub above the highest part below, m
    "side_push": (PARTS,),
    "side_compression": (PARTS,),
    "hub_height": (PARTS,),
}

_WHEEL_CONTACTS: Shapes = {
    # hub ρ, m, and axle a, body axes
    "hub": (3, PARTS),
    "axle": (3, PARTS),
    # load, N, and compression, m; 0 without contact
    "load": (PARTS,),
    "compression": (PARTS,),
    # the following hold for wheels with a load. Contact frame, body axes: heading e_x, left e_y,
    # the ground's normal n_B
    "heading": (3, PARTS),
    "left": (3, PARTS),
    "normal": (3, PARTS),
    # velocity of what the wheel rolls on, m/s, body axes
    "ground_velocity": (3, PARTS),
    # d, hub to contact plane, and R_e, m; |V_x|, m/s
    "hub_distance": (PARTS,),
    "rolling_radius": (PARTS,),
    "hub_speed": (PARTS,),
    # K_x/(σ_κ D_x) and K_y/(σ_α D_y): dimensionless slip for a metre of tyre deflection
    "slip_gain_x": (PARTS,),
    "slip_gain_y": (PARTS,),
    # ρ, 0 without contact
    "slip": (PARTS,),
    # longitudinal for each wheel, lateral from PARTS on: D_x ŝ_x/ρ and D_y ŝ_y/ρ, N; f(ρ)
    "force_limit": (2 * PARTS,),
    "slip_curve": (2 * PARTS,),
    # κ' and tan α' of the tyre deflections; 0 without contact
    "slip_ratio": (PARTS,),
    "slip_tangent": (PARTS,),
    # what the wheel passes to the body: force, N, and moment, N m; angular momentum about its axle,
    # N m s; body axes
    "force": (3, PARTS),
    "moment": (3, PARTS),
    "momentum": (3, PARTS),
}

_ROTOR_AIR: Shapes = {
    # velocity relative to the air in the plane of rotation, m/s, body axes
    "velocity_x": (PARTS,),
    "velocity_y": (PARTS,),
    # thrust without the ground's effect, N
    "thrust": (PARTS,),
    # torque relative to that of hover at the same speed
    "torque_ratio": (PARTS,),
    # force and moment on the body, N and N m, angular momentum about the shaft, N m s, body axes;
    # power at the shaft, W
    "force": (3, PARTS),
    "moment": (3, PARTS),
    "momentum": (PARTS,),
    "power": (PARTS,),
}

_OUTPUTS = {
    **_shapes(OUTPUTS),
    "rotor_down": (),  # the rotor of `rotor_down_speed`; -1: none
    "rotor_lost": (),  # the rotor that something solid has broken; -1: none
}

_EVALUATION: Shapes = {
    "points": _POINTS,
    "solids": _SOLID_CONTACTS,
    "wheels": _WHEEL_CONTACTS,
    "rotors": _ROTOR_AIR,
    "outputs": _OUTPUTS,
}

_WORKSPACE: Shapes = {
    "x": _STATE,
    "controls": _CONTROLS,
    "memory": _MEMORY,
    # stages of a step
    "point": _STATE,
    "rate": _STATE,
    "total": _STATE,
    # results at the begin of a step, and at its later stages
    "first": _EVALUATION,
    "later": _EVALUATION,
}


def _record(shapes: Shapes, lanes: tuple[int, ...] = ()) -> DTypeLike:
    """Return the type of a record of floats; each field has a last axis of `lanes`."""
    fields: list[Any] = [
        (name, _record(shape, lanes)) if isinstance(shape, dict) else (name, float, shape + lanes)
        for name, shape in shapes.items()
    ]
    # the next record begins with a full vector
    spare = np.dtype(fields).itemsize // 8 // math.prod(lanes) % PARTS
    if spare:
        fields.append(("to_full_vector", float, (PARTS - spare, *lanes)))
    return np.dtype(fields)


STATE_RECORD = np.dtype(_record(_STATE))
POINTS_RECORD = np.dtype(_record(_POINTS))
EVALUATION_RECORD = np.dtype(_record(_EVALUATION))
WORKSPACE = np.dtype(_record(_WORKSPACE | {"room": (PARTS,)}))
WORKSPACE_LANES = np.dtype(_record(_WORKSPACE | {"room": ()}, (LANES,)))

STATE_NUMBERS = STATE_RECORD.itemsize // 8
"""Numbers in a record of the state."""
CONTROL_NUMBERS = np.dtype(_record(_CONTROLS)).itemsize // 8
"""Numbers in a record of the controls."""
MEMORY_NUMBERS = np.dtype(_record(_MEMORY)).itemsize // 8
"""Numbers in a record of the memory."""
EVALUATION_NUMBERS = EVALUATION_RECORD.itemsize // 8
"""Numbers in a record of an evaluation."""


@inner_kernel
def new_workspace() -> Any:
    """Return one record for `aligned_record`, all 0, in an array; it lives as long as that."""
    return np.zeros(1, WORKSPACE)


@inner_kernel
def new_lane_workspace() -> Any:
    """Return one record for LANES vehicles, all 0, in an array, for `aligned_lane_record`."""
    return np.zeros(1, WORKSPACE_LANES)


@inlined_kernel
def read_row(row: Any, columns: Any, record: Any, lane: int = 0) -> None:
    """Copy a row of a public array into a record, or into one lane of a record of lanes."""
    numbers = flat(record)
    lanes = lanes_of(record)
    for n in range(columns.size):
        if columns[n] >= 0:
            numbers[n * lanes + lane] = row[columns[n]]


@inlined_kernel
def write_row(record: Any, columns: Any, row: Any, lane: int = 0) -> None:
    """Copy a record, or one lane of a record of lanes, into a row of a public array."""
    numbers = flat(record)
    lanes = lanes_of(record)
    for n in range(columns.size):
        if columns[n] >= 0:
            row[columns[n]] = numbers[n * lanes + lane]


@inlined_kernel
def take_lane(lanes: Any, lane: int, count: int, record: Any) -> None:
    """Copy the first `count` numbers of one lane of a record of lanes into a record."""
    source = flat(lanes)
    target = flat(record)
    for n in range(count):
        target[n] = source[n * LANES + lane]


@inlined_kernel
def put_lane(record: Any, count: int, lanes: Any, lane: int) -> None:
    """Copy the first `count` numbers of a record into one lane of a record of lanes."""
    source = flat(record)
    target = flat(lanes)
    for n in range(count):
        target[n * LANES + lane] = source[n]
