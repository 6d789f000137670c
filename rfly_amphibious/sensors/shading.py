"""Colours of what a camera's rays have met: grain, sun and shadow, skylight, haze. Eq. 11.8, 11.9."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.sensors.scene_rays import NOTHING
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inner_kernel, kernel

WAVELENGTHS = (27.0, 7.3, 2.1, 0.62, 0.19, 0.055)
"""m of the grain's octaves, no multiples of each other"""
LONGEST_ON_BODIES = 1.0
"""m"""
LATTICE = np.random.default_rng(11).uniform(-1.0, 1.0, 4096)
"""drawn once: the same ground in every run"""
CONTRAST = 0.24
"""of an octave: a colour varies by ± so much of itself"""


class Seen(NamedTuple):
    """What n rays from one place have met."""

    eye: Floats
    """(3,) m, ENU"""
    directions: Floats
    """(n, 3) unit vectors"""
    ranges: Floats
    """(n,) m"""
    body: Ints
    """(n,) row of `BodyColours`, GROUND or NOTHING"""
    sun: Floats
    """(n,) cosine of the sun's incidence, 0 in a shadow"""
    pixel: float
    """rad"""


class BodyColours(NamedTuple):
    """b bodies; the grain of each goes with it."""

    position: Floats
    """(b, 3) m"""
    rotation: Floats
    """(b, 3, 3), columns are the body's axes"""
    color: Floats
    """(b, 3) RGB 0 … 1"""


class GroundColours(NamedTuple):
    """Colours by height."""

    low: float
    """m: of the first tint"""
    high: float
    """m: of the last"""
    tints: Floats
    """(t, 3) RGB 0 … 1, evenly from low to high"""


class Air(NamedTuple):
    """What lights the scene, and what is seen in between and behind it."""

    skylight: float
    """0 … 1"""
    sunlight: float
    """0 … 1, what the sun adds where it falls at right angles"""
    extinction: float
    """1/m"""
    haze: Floats
    """(3,) RGB"""
    sky: Floats
    """(3,) RGB"""


@inner_kernel
def lattice(i: int, j: int, k: int) -> float:
    """-1 … 1 of a lattice point, without relation to its neighbours'."""
    return LATTICE[(i * 73856093 ^ j * 19349663 ^ k * 83492791) & (LATTICE.size - 1)]


@inner_kernel
def value_noise(x: float, y: float, z: float) -> float:
    """-1 … 1: smooth between lattice points, 1 apart."""
    x0 = math.floor(x)
    y0 = math.floor(y)
    z0 = math.floor(z)
    i = int(x0)
    j = int(y0)
    k = int(z0)
    u = x - x0
    v = y - y0
    w = z - z0
    u = u * u * (3.0 - 2.0 * u)
    v = v * v * (3.0 - 2.0 * v)
    w = w * w * (3.0 - 2.0 * w)
    total = 0.0
    for c in range(2 if w > 0.0 else 1):
        near = lattice(i, j, k + c) * (1.0 - u) + lattice(i + 1, j, k + c) * u
        far = lattice(i, j + 1, k + c) * (1.0 - u) + lattice(i + 1, j + 1, k + c) * u
        total += (near * (1.0 - v) + far * v) * (w if c else 1.0 - w)
    return total


@inner_kernel
def grain(x: float, y: float, z: float, size: float, longest: float) -> float:
    """Factor on a colour at a place (m) of which a pixel covers `size` (m): octaves finer than two
    pixels fade out.
    """
    factor = 1.0
    for wavelength in WAVELENGTHS:
        if wavelength > longest:
            continue
        share = min(0.5 * wavelength / size - 1.0, 1.0)
        if share <= 0.0:
            break
        apart = 7.7 * wavelength  # so that no two octaves have a lattice point in one place
        factor += (
            CONTRAST
            * share
            * value_noise(x / wavelength + apart, y / wavelength + apart, z / wavelength)
        )
    return max(factor, 0.0)


@kernel
def sunward(
    eye: Any,
    directions: Any,
    ranges: Any,
    normals: Any,
    to_sun: Any,
    gap: float,
    facing: Any,
    sun: Any,
    origins: Any,
) -> int:
    """How many of n rays from `eye` have met what faces the sun: these into facing, the rays'
    cosines of incidence into sun (n,), and where the ways to the sun begin, `gap` (m) above the
    surface, into origins.
    """
    count = 0
    for n in range(ranges.size):
        cosine = normals[n, 0] * to_sun[0] + normals[n, 1] * to_sun[1] + normals[n, 2] * to_sun[2]
        if cosine > 0.0:  # not so where NaN
            facing[count] = n
            sun[n] = cosine
            for c in range(3):
                origins[count, c] = eye[c] + ranges[n] * directions[n, c] + gap * normals[n, c]
            count += 1
    return count


@kernel
def shade(seen: Seen, bodies: BodyColours, ground: GroundColours, air: Air, out: Any) -> None:
    """out (n, 3) <- RGB, 0 … 1."""
    eye, directions, ranges, body, sun, pixel = seen
    position, rotation, color = bodies
    low, high, tints = ground
    skylight, sunlight, extinction, haze, sky = air
    last = tints.shape[0] - 1
    for n in range(ranges.size):
        at = ranges[n]
        b = body[n]
        left = math.exp(-extinction * at) if extinction > 0.0 else 1.0
        if b == NOTHING:
            for c in range(3):
                out[n, c] = sky[c] * left + haze[c] * (1.0 - left)
            continue
        x = eye[0] + at * directions[n, 0]
        y = eye[1] + at * directions[n, 1]
        z = eye[2] + at * directions[n, 2]
        first = 0
        share = 0.0
        if b >= 0:
            dx = x - position[b, 0]
            dy = y - position[b, 1]
            dz = z - position[b, 2]
            x = rotation[b, 0, 0] * dx + rotation[b, 1, 0] * dy + rotation[b, 2, 0] * dz
            y = rotation[b, 0, 1] * dx + rotation[b, 1, 1] * dy + rotation[b, 2, 1] * dz
            z = rotation[b, 0, 2] * dx + rotation[b, 1, 2] * dy + rotation[b, 2, 2] * dz
        else:
            # 2-dimensional grain, at half the price: the ground is seldom steep
            height = min(max((z - low) / (high - low), 0.0), 1.0) * last
            z = 0.0
            first = min(int(height), last - 1)
            share = height - first
        rough = grain(x, y, z, pixel * at + 1e-6, LONGEST_ON_BODIES if b >= 0 else math.inf)
        if b >= 0:
            rough = 0.5 + 0.5 * rough  # they are smoother than the ground
        level = rough * (skylight + sunlight * sun[n])
        for c in range(3):
            own = (
                color[b, c]
                if b >= 0
                else tints[first, c] + share * (tints[first + 1, c] - tints[first, c])
            )
            out[n, c] = own * level * left + haze[c] * (1.0 - left)
