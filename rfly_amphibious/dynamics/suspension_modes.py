# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Suspension modes: the patent's seven degrees of freedom (figure 12) as an eigenproblem.

The seven (nine with a middle axle) are heave (m, up), roll and pitch of the body (rad, left side
up, nose down), and the height of each wheel (m). The picture shows each shape as the body's plane
over its wheels, and the poles. docs/model, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY
from rfly_terrain.plots.relief import picture

BODY_FREEDOMS = ("heave", "roll", "pitch")
"""Freedoms of the body in a shape; those of the wheels follow."""


class Matrices(NamedTuple):
    """Matrices of M q̈ + C q̇ + K q = 0, (3 + wheels, 3 + wheels) each."""

    mass: Floats
    """M."""
    damping: Floats
    """C."""
    stiffness: Floats
    """K."""


class SuspensionMode(NamedTuple):
    """One mode of the suspension."""

    name: str
    """Name of the part that moves most: heave, roll, pitch, or hop of the wheels.

    A hop also names the wheels that move against each other.
    """
    frequency: float
    """Frequency without damping, Hz."""
    damped_frequency: float
    """Frequency with damping, Hz; 0 for a mode that creeps back without oscillation."""
    damping_ratio: float
    """Damping relative to the critical one; above 1 the mode creeps."""
    shape: Floats
    """Shape without damping, (3 + wheels,).

    The largest movement of a wheel, or of the body above a wheel, is 1.
    """


def suspension_matrices(p: VehicleParameters) -> Matrices:
    """Return the matrices about rest on level ground, for small angles.

    Wheels are free to slide sideways. Dampers count with the mean of bump and rebound, and the
    tyres with their damping. Eq. 8.1 with the two additions below it.
    """
    # movements of body and wheels at the wheels
    hub = p.hub_position
    wheels = len(p.wheels)
    body = np.column_stack([np.ones(wheels), hub[:, 1], -hub[:, 0], np.zeros((wheels, wheels))])
    wheel = np.hstack([np.zeros((wheels, 3)), np.eye(wheels)])
    pressed = wheel - body

    # springs, tyres and anti-roll bars
    stiffness = pressed.T @ (p.spring[:, None] * pressed) + p.tyre_stiffness * wheel.T @ wheel
    for left in range(0, wheels, 2):
        across = pressed[left] - pressed[left + 1]
        stiffness += p.anti_roll[left] * np.outer(across, across)
    damper = 0.5 * (p.bump_damping + p.rebound_damping)
    damping = damper * pressed.T @ pressed + p.tyre_damping * wheel.T @ wheel

    # the wheels' masses add to the inertia, weight to the tilt
    depth = float(-hub[:, 2].mean())
    mass = np.diag([p.mass_sprung, 0.0, 0.0, *[p.mass_unsprung] * wheels])
    carried = wheels * p.mass_unsprung * p.mass_sprung / p.mass
    mass[1:3, 1:3] = p.inertia_matrix[:2, :2] + np.eye(2) * carried * depth**2
    stiffness[1:3, 1:3] -= np.eye(2) * p.mass_sprung * GRAVITY * depth

    return Matrices(mass, damping, stiffness)


def suspension_modes(p: VehicleParameters) -> list[SuspensionMode]:
    """Return all modes, slowest first."""
    from scipy.linalg import eig, eigh

    mass, damping, stiffness = suspension_matrices(p)
    squares, shapes = eigh(stiffness, mass)
    count = len(squares)

    # poles of the damped motion
    first_order = np.block(
        [
            [np.zeros((count, count)), np.eye(count)],
            [-np.linalg.solve(mass, stiffness), -np.linalg.solve(mass, damping)],
        ]
    )
    poles, vectors = eig(first_order)
    body = np.column_stack([np.ones(len(p.wheels)), p.hub_position[:, 1], -p.hub_position[:, 0]])

    modes = []
    free = list(range(2 * count))
    for square, shape in zip(squares, shapes.T, strict=True):
        pair = _poles_of(mass @ shape, float(square), vectors[:count], poles, free)
        natural = float(np.sqrt(abs(np.prod(pair))))
        ratio = float(-np.sum(pair).real / (2.0 * natural))
        frequency = math.sqrt(max(square, 0.0)) / math.tau
        damped = abs(pair[0].imag) / math.tau

        heights = np.concatenate([body @ shape[:3], shape[3:]])
        largest = heights[np.abs(heights).argmax()]
        name = _name(body, shape)
        modes.append(SuspensionMode(name, frequency, damped, ratio, shape / largest))
    return modes


def _poles_of(
    shape: Floats, square: float, vectors: Floats, poles: Floats, free: list[int]
) -> Floats:
    """Return the two free poles whose motion is most like an undamped shape, and take them.

    `shape` is multiplied by the mass, `square` is the square of its frequency.
    """
    likeness = np.abs(shape @ vectors) / np.linalg.norm(vectors, axis=0)
    first = max(free, key=lambda k: float(likeness[k]))
    free.remove(first)
    if poles[first].imag:
        second = min(free, key=lambda k: float(abs(poles[k] - poles[first].conj())))
    else:
        real = [k for k in free if not poles[k].imag]
        second = min(real, key=lambda k: abs(math.log(abs(poles[k] * poles[first] / square))))
    free.remove(second)
    return poles[[first, second]]


def _name(body: Floats, shape: Floats) -> str:
    """Return the name of a shape; `body` are the movements of the wheels' places with the body."""
    parts = np.abs(shape[:3]) * np.abs(body).max(axis=0)
    if parts.max() >= np.abs(shape[3:]).max():
        return BODY_FREEDOMS[int(parts.argmax())]
    signs = {
        "hop": (1, 1, 1, 1, 1, 1),
        "hop, left–right": (1, -1, 1, -1, 1, -1),
        "hop, front–rear": (1, 1, -1, -1, 0, 0),
        "hop, diagonal": (1, -1, -1, 1, 0, 0),
        "hop, middle": (-1, -1, -1, -1, 2, 2),
        "hop, middle left–right": (-1, 1, -1, 1, 2, -2),
    }

    # the pattern that is most like the wheels' movements
    wheels = shape[3:]
    likeness = {}
    for kind, pattern in list(signs.items())[: wheels.size]:
        sign = np.array(pattern[: wheels.size])
        likeness[kind] = abs(float(sign @ wheels)) / float(np.linalg.norm(sign))
    return max(likeness, key=lambda kind: likeness[kind])


_AROUND = {4: (0, 1, 3, 2, 0), 6: (0, 1, 5, 3, 2, 4, 0)}
"""Indices of the wheels, once around, by the number of wheels."""


def draw_modes(params: VehicleParameters, modes: Sequence[SuspensionMode], path: Path) -> None:
    """Write the picture; the ending of `path` is its format. It needs no display."""
    columns = len(modes) // 2 + 1
    with picture(path, (3.5 * columns, 7.0)) as figure:
        figure.suptitle(
            f"modes of the suspension, {params.name}: red the body, blue the wheels, grey at rest"
        )
        for index, mode in enumerate(modes):
            _draw_shape(figure.add_subplot(2, columns, index + 1, projection="3d"), params, mode)
        _draw_poles(figure.add_subplot(2, columns, 2 * columns), modes)


def _draw_shape(axes: Any, p: VehicleParameters, mode: SuspensionMode) -> None:
    """Draw the planes of body and wheels over their places at rest."""
    x, y, _ = p.hub_position.T
    size = 0.3 * p.wheelbase
    heave, roll, pitch = mode.shape[:3]
    body = heave + roll * y - pitch * x

    # the body above the wheels
    order = list(_AROUND[len(p.wheels)])
    for height, moved, colour in ((2.2, body, "#c8322b"), (0.0, mode.shape[3:], "#2f6db3")):
        rest = np.full(len(p.wheels), height * size)
        axes.plot(x[order], y[order], rest[order], color="0.75", linewidth=1.0)
        points = (x[order], y[order], (rest + size * moved)[order])
        axes.plot(*points, color=colour, linewidth=1.6, marker="o", markersize=4)

    axes.text(x[0], p.track, 0.0, "front", fontsize="x-small", color="0.4")
    axes.set(xticks=(), yticks=(), zticks=(), zlim=(-1.2 * size, 3.4 * size))
    axes.set_box_aspect((p.wheelbase, p.track, 1.1 * p.wheelbase))
    axes.view_init(elev=18, azim=-60)
    title = f"{mode.name}\n{mode.frequency:.3g} Hz, ζ = {mode.damping_ratio:.2f}"
    axes.set_title(title, fontsize="small")


def _draw_poles(axes: Any, modes: Sequence[SuspensionMode]) -> None:
    """Draw the poles with positive imaginary parts."""
    for mode in modes:
        damped = math.tau * mode.damped_frequency
        ratio = mode.damping_ratio
        size = math.tau * mode.frequency
        if damped > 0.0:
            size = damped / math.sqrt(max(1.0 - ratio**2, 1e-12))
        colour = "#2f6db3" if "hop" in mode.name else "#c8322b"
        axes.plot(-ratio * size, damped, "x", color=colour)

    axes.axvline(0.0, color="0.5", linewidth=1.0)
    axes.set_xlabel("real part (1/s)")
    axes.set_ylabel("imaginary part (rad/s)")
    axes.set_title("poles, the upper ones", fontsize="small")
    axes.grid(alpha=0.3)
