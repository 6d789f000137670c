"""Intermediate results of one evaluation of the equations of motion: a record that kernels use by
name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inner_kernel
from rfly_common.kernels.lanes import LANES

FIELDS: dict[str, tuple[int, ...]] = {
    # reported, see `state_layout`
    "specific_force": (3,),
    "wheel_load": (at.MAX_WHEELS,),
    "tyre_force_x": (at.MAX_WHEELS,),
    "tyre_force_y": (at.MAX_WHEELS,),
    "strut_force": (at.MAX_WHEELS,),
    "tyre_compression": (at.MAX_WHEELS,),
    "thrust": (at.MAX_ROTORS,),
    "rotor_power": (),
    "body_points_down": (),
    "rotor_down_speed": (),
    "rotor_down": (),  # which rotor that is
    "rotor_lost": (),  # which rotor something solid has broken; -1: none
    "clearance": (),
    "wheels_off_map": (),
    # hubs, corners of the body box and rotor hubs: place in the world, height above the ground, m
    "point_x": (at.POINTS,),
    "point_y": (at.POINTS,),
    "point_height": (at.POINTS,),
    # the look-up of their ground: row and column, then the fractions of them; heights around, m
    "row": (at.POINTS,),
    "column": (at.POINTS,),
    "cell": (at.POINTS,),
    "cell_row": (at.POINTS,),
    "cell_column": (at.POINTS,),
    "height_00": (at.POINTS,),
    "height_01": (at.POINTS,),
    "height_10": (at.POINTS,),
    "height_11": (at.POINTS,),
    "heights_around": (8,),  # beside the cell of the point whose normal was looked up last
    # wheels, body axes: hub ρ (m); axle a; heading e_x and left e_y of the contact; ground's normal
    # n_B
    "hub": (at.MAX_WHEELS, 3),
    "axle": (at.MAX_WHEELS, 3),
    "heading": (at.MAX_WHEELS, 3),
    "left": (at.MAX_WHEELS, 3),
    "normal": (at.MAX_WHEELS, 3),
    "hub_distance": (at.MAX_WHEELS,),  # d, hub to contact plane, m
    "rolling_radius": (at.MAX_WHEELS,),  # R_e, m
    "hub_speed": (at.MAX_WHEELS,),  # |V_x|, m/s
    "slip_gain_x": (
        at.MAX_WHEELS,
    ),  # K_x/(σ_κ D_x): dimensionless slip for a metre of tyre deflection
    "slip_gain_y": (at.MAX_WHEELS,),
    # what stands on the ground: ellipsoids of the hull and sides of wheels that touch, rotors whose
    # discs do; of each wheel the nearest part that it may roll on: distance (m), normal (body
    # axes), |gradient| of the distance; by how much its side is pressed in, and how far a part lies
    # below its hub, m
    "hull_contacts": (),
    "rotor_touches": (at.MAX_ROTORS,),
    "part_distance": (at.MAX_WHEELS,),
    "part_normal": (at.MAX_WHEELS, 3),
    "part_slope": (at.MAX_WHEELS,),
    "side_compression": (at.MAX_WHEELS,),
    "part_below": (at.MAX_WHEELS,),
    # what moves, m/s, body axes: the part that is looked at, that nearest part of each wheel, and
    # what it rolls on; s since the begin of the steps, when it was where `Obstacles.parts` says
    "carried": (1, 3),
    "part_velocity": (at.MAX_WHEELS, 3),
    "contact_velocity": (at.MAX_WHEELS, 3),
    "since": (),
    # longitudinal of each wheel, then lateral: ρ; D_x ŝ_x/ρ and D_y ŝ_y/ρ, N; f(ρ)
    "slip": (2 * at.MAX_WHEELS,),
    "force_limit": (2 * at.MAX_WHEELS,),
    "slip_curve": (2 * at.MAX_WHEELS,),
}
SCRATCH = np.dtype([(name, np.float64, shape) for name, shape in FIELDS.items()])
SCRATCH_LANES = np.dtype([(name, np.float64, (*shape, LANES)) for name, shape in FIELDS.items()])
SCRATCH_SIZE = SCRATCH.itemsize // 8
"""numbers"""


@inner_kernel
def new_scratch(count: int) -> Any:
    """`count` records. They live as long as the array, not a record taken from it."""
    return np.zeros(count, SCRATCH)


@inner_kernel
def new_lane_scratch(count: int) -> Any:
    """`count` records for LANES vehicles each."""
    return np.zeros(count, SCRATCH_LANES)
