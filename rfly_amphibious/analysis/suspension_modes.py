"""Suspension modes: the patent's seven degrees of freedom (figure 12) as an eigenproblem.
docs/model, section 8.

The seven (nine with a middle axle): heave (m, up), roll and pitch of the body (rad, left side up,
nose down), height of each wheel (m). The picture shows each shape as the body's plane over its
wheels, and the poles.
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
"""of the shapes; then come the wheels"""


class Matrices(NamedTuple):
    """M q̈ + C q̇ + K q = 0, (3 + wheels, 3 + wheels) each."""

    mass: Floats
    damping: Floats
    stiffness: Floats


class SuspensionMode(NamedTuple):
    """One of them."""

    name: str
    """after the part that moves most: heave, roll, pitch, or hop of the wheels: all alike, or
    against each other
    """
    frequency: float
    """Hz, without damping"""
    damped_frequency: float
    """Hz; 0 where it creeps back without swinging"""
    damping_ratio: float
    """of the critical one; above 1 it creeps"""
    shape: Floats
    """(3 + wheels,) of the freedoms without damping, its largest movement of a wheel or of the body
    above a wheel 1
    """


def suspension_matrices(p: VehicleParameters) -> Matrices:
    """About rest on level ground, small angles, wheels free to slide sideways. Eq. 8.1 with the two
    additions below it.

    Dampers count with the mean of bump and rebound, and the tyres with their damping.
    """
    hub = p.hub_position
    wheels = len(p.wheels)
    body = np.column_stack([np.ones(wheels), hub[:, 1], -hub[:, 0], np.zeros((wheels, wheels))])
    wheel = np.hstack([np.zeros((wheels, 3)), np.eye(wheels)])
    pressed = wheel - body
    stiffness = pressed.T @ (p.spring[:, None] * pressed) + p.tyre_stiffness * wheel.T @ wheel
    for left in range(0, wheels, 2):
        across = pressed[left] - pressed[left + 1]
        stiffness += p.anti_roll[left] * np.outer(across, across)
    damper = 0.5 * (p.bump_damping + p.rebound_damping)
    damping = damper * pressed.T @ pressed + p.tyre_damping * wheel.T @ wheel
    depth = float(-hub[:, 2].mean())
    mass = np.diag([p.mass_sprung, 0.0, 0.0, *[p.mass_unsprung] * wheels])
    carried = wheels * p.mass_unsprung * p.mass_sprung / p.mass
    mass[1:3, 1:3] = p.inertia_matrix[:2, :2] + np.eye(2) * carried * depth**2
    stiffness[1:3, 1:3] -= np.eye(2) * p.mass_sprung * GRAVITY * depth
    return Matrices(mass, damping, stiffness)


def suspension_modes(p: VehicleParameters) -> list[SuspensionMode]:
    """All modes, slowest first."""
    from scipy.linalg import eig, eigh

    mass, damping, stiffness = suspension_matrices(p)
    squares, shapes = eigh(stiffness, mass)
    count = len(squares)
    first_order = np.block(
        [
            [np.zeros((count, count)), np.eye(count)],
            [-np.linalg.solve(mass, stiffness), -np.linalg.solve(mass, damping)],
        ]
    )
    poles, vectors = eig(first_order)
    body = np.column_stack([np.ones(len(p.wheels)), p.hub_position[:, 1], -p.hub_position[:, 0]])
    made = []
    free = list(range(2 * count))
    for square, shape in zip(squares, shapes.T, strict=True):
        pair = _poles_of(mass @ shape, float(square), vectors[:count], poles, free)
        natural = float(np.sqrt(abs(np.prod(pair))))
        ratio = float(-np.sum(pair).real / (2.0 * natural))
        heights = np.concatenate([body @ shape[:3], shape[3:]])
        largest = heights[np.abs(heights).argmax()]
        frequency = math.sqrt(max(square, 0.0)) / math.tau
        made.append(
            SuspensionMode(
                _name(body, shape), frequency, abs(pair[0].imag) / math.tau, ratio, shape / largest
            )
        )
    return made


def _poles_of(
    shape: Floats, square: float, vectors: Floats, poles: Floats, free: list[int]
) -> Floats:
    """The two poles, of those still free, whose motion is most like an undamped shape (times the
    mass), whose square of the frequency is given.
    """
    alike = np.abs(shape @ vectors) / np.linalg.norm(vectors, axis=0)
    first = max(free, key=lambda k: float(alike[k]))
    free.remove(first)
    if poles[first].imag:
        second = min(free, key=lambda k: float(abs(poles[k] - poles[first].conj())))
    else:
        real = [k for k in free if not poles[k].imag]
        second = min(real, key=lambda k: abs(math.log(abs(poles[k] * poles[first] / square))))
    free.remove(second)
    return poles[[first, second]]


def _name(body: Floats, shape: Floats) -> str:
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
    wheels = shape[3:]
    kinds = {
        kind: np.array(sign[: wheels.size]) for kind, sign in list(signs.items())[: wheels.size]
    }
    return max(
        kinds,
        key=lambda kind: abs(float(kinds[kind] @ wheels)) / float(np.linalg.norm(kinds[kind])),
    )


_AROUND = {4: (0, 1, 3, 2, 0), 6: (0, 1, 5, 3, 2, 4, 0)}
"""the wheels, once around"""


def draw_modes(params: VehicleParameters, modes: Sequence[SuspensionMode], path: Path) -> None:
    """Writes the picture; the ending of `path` is its format. Needs no display."""
    columns = len(modes) // 2 + 1
    with picture(path, (3.5 * columns, 7.0)) as figure:
        figure.suptitle(
            f"modes of the suspension, {params.name}: red the body, blue the wheels, grey at rest"
        )
        for index, mode in enumerate(modes):
            _draw_shape(figure.add_subplot(2, columns, index + 1, projection="3d"), params, mode)
        _draw_poles(figure.add_subplot(2, columns, 2 * columns), modes)


def _draw_shape(axes: Any, p: VehicleParameters, mode: SuspensionMode) -> None:
    x, y, _ = p.hub_position.T
    size = 0.3 * p.wheelbase
    heave, roll, pitch = mode.shape[:3]
    body = heave + roll * y - pitch * x
    order = list(_AROUND[len(p.wheels)])
    for height, moved, colour in ((2.2, body, "#c8322b"), (0.0, mode.shape[3:], "#2f6db3")):
        rest = np.full(len(p.wheels), height * size)
        axes.plot(x[order], y[order], rest[order], color="0.75", linewidth=1.0)
        axes.plot(
            x[order],
            y[order],
            (rest + size * moved)[order],
            color=colour,
            linewidth=1.6,
            marker="o",
            markersize=4,
        )
    axes.text(x[0], p.track, 0.0, "front", fontsize="x-small", color="0.4")
    axes.set(xticks=(), yticks=(), zticks=(), zlim=(-1.2 * size, 3.4 * size))
    axes.set_box_aspect((p.wheelbase, p.track, 1.1 * p.wheelbase))
    axes.view_init(elev=18, azim=-60)
    axes.set_title(
        f"{mode.name}\n{mode.frequency:.3g} Hz, ζ = {mode.damping_ratio:.2f}", fontsize="small"
    )


def _draw_poles(axes: Any, modes: Sequence[SuspensionMode]) -> None:
    for mode in modes:
        damped = math.tau * mode.damped_frequency
        ratio = mode.damping_ratio
        size = (
            math.tau * mode.frequency
            if damped == 0.0
            else damped / math.sqrt(max(1.0 - ratio**2, 1e-12))
        )
        axes.plot(
            -ratio * size, damped, "x", color="#c8322b" if "hop" not in mode.name else "#2f6db3"
        )
    axes.axvline(0.0, color="0.5", linewidth=1.0)
    axes.set_xlabel("real part (1/s)")
    axes.set_ylabel("imaginary part (rad/s)")
    axes.set_title("poles, the upper ones", fontsize="small")
    axes.grid(alpha=0.3)
