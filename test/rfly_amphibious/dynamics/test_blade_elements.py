# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power and drag of rotors in level flight against an integral over their blades.

The blades are rigid and of constant chord and pitch; the inflow is Glauert's, the same on the whole
disc. Air that flows along a blade drags it along. Leishman, Principles of Helicopter Aerodynamics,
chapters 3 and 5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from amphibious_cases import SETS, model, parameters
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, fsolve

from rfly_amphibious import AmphibiousModel
from rfly_amphibious.dynamics.rotors import (
    induced_velocity,
    inverse_root,
    rough_induced_velocity,
)
from rfly_amphibious.dynamics.trim import steady_flight
from rfly_common.kernels.jit import kernel
from rfly_common.kernels.lanes import rough_inverse_root

G = 9.80665
RHO = 1.225
SPEEDS = (0.0, 5.0, 10.0, 15.0, 20.0)
LIFT_SLOPE = 5.7


class Blades(NamedTuple):
    """The blades of a rotor; their drag is c_d = drag + bailey (−0.0216 α + 0.400 α²)."""

    radius: float
    chord: float
    """Chords of all blades together, m."""
    drag: float
    bailey: float


def rotor_loads(blades, omega, thrust, level, climb):
    """Return power, W, and drag in the plane, N, of a rotor that gives `thrust` in this air."""
    disc = np.pi * blades.radius**2

    def momentum(v):
        return 2 * RHO * disc * v * np.hypot(level, climb + v) - thrust

    through = climb + brentq(momentum, 0.0, 100.0, xtol=1e-12)

    # elements of the blades
    radii = (np.arange(60) + 0.5) / 60
    azimuths = (np.arange(48) + 0.5) / 48 * 2 * np.pi
    r, psi = np.meshgrid(radii * blades.radius, azimuths, indexing="ij")
    along_chord = omega * r + level * np.sin(psi)
    along_blade = level * np.cos(psi)
    area = RHO / 2 * blades.chord * blades.radius / 60 / 48

    def lift(pitch):
        angle = pitch - through / along_chord
        return area * LIFT_SLOPE * angle * along_chord**2, angle

    pitch = brentq(lambda pitch: lift(pitch)[0].sum() - thrust, -1.0, 2.0, xtol=1e-12)
    lifted, angle = lift(pitch)
    speed = np.hypot(along_chord, along_blade)
    angle = np.clip(angle, -0.3, 0.4)  # near the hub the blades are stalled, and slow
    dragged = area * speed * (blades.drag + blades.bailey * (-0.0216 * angle + 0.400 * angle**2))

    against_turn = lifted * through / along_chord + dragged * along_chord
    power = omega * (against_turn * r).sum()
    backwards = against_turn * np.sin(psi) + dragged * along_blade * np.cos(psi)
    return power, backwards.sum()


def blades_of(p, kind):
    """Return blades that have the vehicle's power in hover.

    `thrust law`: their lift falls with the inflow as Eq. 4.4 says, their drag is constant.
    `angle`: an angle of attack of 0.1 rad in hover, at three quarters of the radius, and drag that
    grows with it as Bailey's.
    """
    each = p.mass * G / p.rotors
    if kind == "thrust law":
        advance = np.pi * p.thrust_coefficient / (p.zero_thrust_advance_ratio * p.rotor_radius)
        chord = 4 * advance / (RHO * LIFT_SLOPE * p.rotor_radius**2)
        bailey = 0.0
    else:
        chord = 6 * p.thrust_coefficient / (RHO * LIFT_SLOPE * 0.1 * p.rotor_radius**3)
        bailey = 1.0
    ideal = each**1.5 / np.sqrt(2 * RHO * np.pi * p.rotor_radius**2)

    def excess(drag):
        blades = Blades(p.rotor_radius, chord, drag, bailey)
        return rotor_loads(blades, p.hover_speed, each, 0.0, 0.0)[0] - ideal / p.figure_of_merit

    return Blades(p.rotor_radius, chord, brentq(excess, 0.0, 1.0), bailey)


def level_flight(p, blades, speed):
    """Return (power of all rotors, W, drag of a rotor over its speeds) by a balance of forces."""
    weight = p.mass * G
    damping = np.array(p.linear_drag) + RHO / 2 * np.array(p.drag_area) * speed
    loss = np.pi * p.thrust_coefficient / (p.zero_thrust_advance_ratio * p.rotor_radius)

    def balance(unknown):
        tilt, omega = unknown
        level = speed * np.cos(tilt)
        climb = speed * np.sin(tilt)
        thrust = p.thrust_coefficient * omega**2 - loss * omega * climb
        power, drag = rotor_loads(blades, omega, thrust, level, climb)
        forward = weight * np.sin(tilt) - damping[0] * level - p.rotors * drag
        up = p.rotors * thrust - damping[2] * climb - weight * np.cos(tilt)
        return forward / weight, up / weight, power, drag / omega / max(level, 1e-9)

    solution = fsolve(lambda unknown: balance(unknown)[:2], (0.005 * speed, p.hover_speed))
    _, _, power, drag = balance(solution)
    return p.rotors * power, drag


@pytest.mark.parametrize("kind", ["thrust law", "angle"])
@pytest.mark.parametrize("name", SETS)
def test_power_of_level_flight_is_that_of_blade_elements(name, kind):
    p = parameters(name)
    blades = blades_of(p, kind)
    for speed in SPEEDS:
        power, _ = level_flight(p, blades, speed)
        trim = steady_flight(model(name, ground_effect=False), speed)
        assert trim.rotor_power == pytest.approx(power, rel=0.04), speed


@pytest.mark.parametrize("name", SETS)
def test_rotor_drag_is_that_of_blade_elements(name):
    """One coefficient stands for all speeds, although the inflow changes."""
    p = parameters(name)
    blades = blades_of(p, "thrust law")
    drags = [level_flight(p, blades, speed)[1] for speed in SPEEDS[1:]]
    assert drags == pytest.approx([p.rotor_drag_coefficient] * len(drags), rel=0.15)


def test_drag_in_the_plane_is_paid_once():
    """Level flight takes the same power for any drag of the rotors, but for the thrust it takes.

    In level flight the work against the drag is done by the tilted thrust.
    """
    p = parameters("scale")
    power = {}
    for factor in (0.5, 1.5):
        changed = p.replace(rotor_drag_coefficient=factor * p.rotor_drag_coefficient)
        power[factor] = steady_flight(AmphibiousModel(changed, ground_effect=False), 10.0)
    tilts = power[1.5].pitch - power[0.5].pitch
    work = p.mass * G * 10.0 * tilts
    assert work > 70.0
    assert abs(power[1.5].rotor_power - power[0.5].rotor_power) < 0.15 * work


@kernel
def induced(climb, across):
    """Call the part of a kernel from Python."""
    rough = rough_induced_velocity(climb, math.sqrt(across))
    return induced_velocity(rough, climb, across)


@kernel
def root_of(square):
    """Return 1 / √square as kernels do."""
    return inverse_root(square, rough_inverse_root(square))


@given(st.floats(-5.0, 1e5), st.floats(0.0, 2.0) | st.floats(0.0, 1e4))
@example(0.0, 0.0)
@example(1e6, 1e6)
@example(-5.0, 0.8)  # the bound of the descent, where the first value is worst
@settings(max_examples=2_000, deadline=None)
def test_the_induced_velocity_solves_the_momentum_equation(climb, level):
    velocity = induced(climb, level * level)
    assert velocity > 0.0
    assert velocity * math.hypot(level, max(climb, -1.5) + velocity) == pytest.approx(1, rel=2e-13)


@given(st.floats(-1e18, 1e18), st.floats(0.0, 1e18))
@settings(max_examples=200, deadline=None)
def test_any_flow_induces_a_finite_velocity(climb, level):
    assert 0.0 < induced(climb, level * level) < 3.0


@given(st.floats(1e-20, 1e12))
@settings(max_examples=500, deadline=None)
def test_the_inverse_root_is_exact(square):
    assert root_of(square) == pytest.approx(1.0 / math.sqrt(square), rel=4e-16)
