# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A vehicle's class for the planner: speeds and energy that follow from its parameters.

Powers are those of steady flights, from the battery (Eq. 4.18, 4.21). Take-offs, landings and
changes of speed take the times that the controllers and the guidance give them.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.dynamics.trim import steady_flight
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.flight_modes import (
    CLIMB_SPEED,
    FLARE_BELOW,
    FLARE_SINK,
    RAMP_SHARE,
    RAMP_TIME,
    ROLLING_CLIMB,
    ROLLING_RAMP_TIME,
    ROLLING_SINK,
)
from rfly_autonomy.control.path_following import (
    ARRIVING,
    BRAKING,
    CLIMBING,
    CORNER_STEP,
    FLIGHT_ACCELERATION,
    RISEN,
    SINKING,
    SPEED_LAG,
)
from rfly_autonomy.guidance.rolling import (
    ALIGNING,
    LIFT_OFF_TIME,
    MOST_ROUGHNESS,
    RAMP_HOVER,
    highest_landing,
    highest_take_off,
    roll_out_length,
    stopping_distance,
)
from rfly_autonomy.guidance.rolling_choice import GLIDE_ROOM
from rfly_common.physics import AIR_DENSITY, GRAVITY
from rfly_missions.mission.legs import CHOSEN_LANDING
from rfly_terrain.planning.vehicle_classes import Driving, Flying, Rolling, VehicleClass

LOW = 5.0
"""Height below which a landing sinks slowly, m."""
SLOW_SINKING = 0.5
"""Rate of descent there, m/s."""


def planner_class(params: VehicleParameters, template: VehicleClass) -> VehicleClass:
    """Return `template` with the mass, resistance and energy use of a vehicle.

    Names, radius, speeds and limits remain those of the template, which drives and flies. Raise
    DynamicsError if the vehicle can't fly at its speed.
    """
    drive = template.drive
    fly = template.fly
    if drive is None or fly is None:
        raise ValueError(f"class {template.name!r} does not drive and fly")
    return dataclasses.replace(
        template,
        mass=params.mass,
        drive=_driving(params, drive),
        fly=_flying(params, fly),
        rolling=_rolling(params, min(drive.speed, fly.speed), fly.speed),
    )


def _driving(p: VehicleParameters, drive: Driving) -> Driving:
    """Return the energy use of driving at the template's speed."""
    resistance = p.rolling_resistance * p.mass * GRAVITY + _air(p, drive.speed, drive.speed**2)
    return dataclasses.replace(
        drive,
        rolling_resistance=resistance / (p.mass * GRAVITY),
        efficiency=p.drive_efficiency,
        regeneration=p.regeneration,
        idle_power=p.avionics_power,
        start_energy=_start_energy(p, drive.speed, resistance),
        stopping_distance=stopping_distance(drive.speed),
    )


def _air(p: VehicleParameters, speed: float, square: float) -> float:
    """Return the drag of the air, N, at a speed, m/s, and its square, which may be means."""
    return p.linear_drag[0] * speed + 0.5 * AIR_DENSITY * p.drag_area[0] * square


def _start_energy(p: VehicleParameters, speed: float, resistance: float) -> float:
    """Return the energy of a start and a stop beyond that of the way at `speed`, J.

    While the vehicle slows down, evenly, its kinetic energy does the work against the resistance,
    and the motors give back a share of the rest. `resistance`: at `speed`, N.
    """
    way = stopping_distance(speed)
    longer = speed / BRAKING + SPEED_LAG - way / speed
    slowing = p.rolling_resistance * p.mass * GRAVITY
    slowing += _air(p, 2.0 / 3.0 * speed, 0.5 * speed**2)

    kinetic = 0.5 * p.effective_mass * speed**2
    given_back = p.regeneration * (kinetic - slowing * way)
    driven = (kinetic - resistance * way) / p.drive_efficiency
    return driven - given_back + p.avionics_power * longer


def _power(p: VehicleParameters, speed: float, climb: float) -> float:
    """Return the power from the battery in steady flight, W."""
    model = AmphibiousModel(p, ground_effect=False)
    shafts = steady_flight(model, speed, climb=climb).rotor_power
    return shafts / p.rotor_efficiency + p.avionics_power


def _flying(p: VehicleParameters, fly: Flying) -> Flying:
    """Return the energy use of flying at the template's speed."""
    power = partial(_power, p)
    hover = power(0.0, 0.0)
    sinking = power(0.0, -SINKING)
    lifting = power(0.0, CLIMBING) - hover

    # thrust grows evenly over the ramp, power by its 1.5th power; then a slow climb
    ramp = hover * RAMP_SHARE**1.5 * RAMP_TIME / 2.5
    rising = hover * (RISEN / CLIMB_SPEED - RISEN / CLIMBING)
    settling = (sinking * LOW) * (1.0 / SLOW_SINKING - 1.0 / SINKING)
    return dataclasses.replace(
        fly,
        climb_rate=CLIMBING,
        sink_rate=SINKING,
        power=power(fly.speed, 0.0),
        hover_power=hover,
        sink_power=sinking,
        efficiency=p.mass * GRAVITY * CLIMBING / lifting,
        takeoff_energy=ramp + rising,
        landing_energy=settling + hover * ARRIVING,
        acceleration=FLIGHT_ACCELERATION,
        corner_step=CORNER_STEP,
    )


def _rolling(p: VehicleParameters, speed: float, fly_speed: float) -> Rolling:
    """Return ground and energy of rolling take-offs and landings; at most at `speed`, m/s.

    `fly_speed`: of the flights between them, m/s.
    """
    landing_speed = min(speed, CHOSEN_LANDING)
    sink_power = _power(p, landing_speed, -ROLLING_SINK)
    lift_off = RAMP_HOVER * ROLLING_RAMP_TIME * _power(p, 0.0, 0.0)
    lift_off += (LIFT_OFF_TIME - ROLLING_RAMP_TIME) * _power(p, speed, 0.0)
    flare_time = FLARE_BELOW / FLARE_SINK - FLARE_BELOW / ROLLING_SINK
    return Rolling(
        takeoff_speed=speed,
        climb_rate=ROLLING_CLIMB,
        climb_power=_power(p, speed, ROLLING_CLIMB),
        landing_speed=landing_speed,
        sink_rate=ROLLING_SINK,
        sink_power=sink_power,
        lift_off_energy=lift_off,
        flare_energy=sink_power * flare_time,
        run_up=speed * (ALIGNING + LIFT_OFF_TIME),
        braking=stopping_distance(speed),
        flare=landing_speed * flare_time + GLIDE_ROOM,
        roll_out=roll_out_length(landing_speed),
        track=p.track,
        max_roughness=MOST_ROUGHNESS * float(p.rolling_radius.min()),
        highest_takeoff=highest_take_off(speed, fly_speed),
        highest_landing=highest_landing(landing_speed, fly_speed),
    )
