# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Colours of a camera's hits: grain, sun and shadow, skylight, haze. Eq. 11.8, 11.9."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inner_kernel, kernel
from rfly_sensing.scene_rays import NOTHING

WAVELENGTHS = (27.0, 7.3, 2.1, 0.62, 0.19, 0.055)
"""Wavelengths of the grain's octaves, m, no multiples of each other."""
LONGEST_ON_BODIES = 1.0
"""Longest wavelength of the grain of bodies, m."""
LATTICE = np.random.default_rng(11).uniform(-1.0, 1.0, 4096)
"""Values of lattice points, drawn once, so that the ground is the same in every run."""
CONTRAST = 0.24
"""Share of a colour by which one octave changes it, ±."""


class Seen(NamedTuple):
    """Hits of n rays from one place."""

    eye: Floats
    """Origin of the rays, m, ENU, (3,)."""
    directions: Floats
    """Unit vectors, (n, 3)."""
    ranges: Floats
    """Ranges, m, (n,)."""
    body: Ints
    """Row of `BodyColours`, GROUND or NOTHING, (n,)."""
    sun: Floats
    """Cosine of the sun's incidence, 0 in a shadow, (n,)."""
    pixel: float
    """Angle between two pixels, rad."""
    photo: Floats
    """RGB 0 … 1 of the ground in a picture, NaN where it shows none, (n, 3); (0, 3): no picture."""


class BodyColours(NamedTuple):
    """Colours of b bodies. The grain moves with the body."""

    position: Floats
    """Positions, m, (b, 3)."""
    rotation: Floats
    """Rotations body -> world, (b, 3, 3)."""
    color: Floats
    """RGB 0 … 1, (b, 3)."""


class GroundColours(NamedTuple):
    """Colours of the ground by height."""

    low: float
    """Height of the first tint, m."""
    high: float
    """Height of the last tint, m."""
    tints: Floats
    """RGB 0 … 1, evenly spaced from low to high, (t, 3)."""
    photo_grain: float
    """Longest wavelength of the grain on a picture of the ground, m."""


class SceneLight(NamedTuple):
    """Light on the scene, haze in front of it and sky behind it."""

    skylight: float
    """Light of the sky, 0 … 1."""
    sunlight: float
    """Light of the sun at normal incidence, 0 … 1."""
    extinction: float
    """Extinction of light, 1/m."""
    haze: Floats
    """RGB, (3,)."""
    sky: Floats
    """RGB, (3,)."""


@inner_kernel
def lattice(i: int, j: int, k: int) -> float:
    """Return the value -1 … 1 of a lattice point, independent of its neighbours."""
    return LATTICE[(i * 73856093 ^ j * 19349663 ^ k * 83492791) & (LATTICE.size - 1)]


@inner_kernel
def value_noise(x: float, y: float, z: float) -> float:
    """Return smooth noise -1 … 1 between lattice points, which are 1 apart."""
    x0 = math.floor(x)
    y0 = math.floor(y)
    z0 = math.floor(z)
    i = int(x0)
    j = int(y0)
    k = int(z0)

    # smooth steps
    u = x - x0
    v = y - y0
    w = z - z0
    u = u * u * (3.0 - 2.0 * u)
    v = v * v * (3.0 - 2.0 * v)
    w = w * w * (3.0 - 2.0 * w)

    # bilinear in two layers
    total = 0.0
    for c in range(2 if w > 0.0 else 1):
        near = lattice(i, j, k + c) * (1.0 - u) + lattice(i + 1, j, k + c) * u
        far = lattice(i, j + 1, k + c) * (1.0 - u) + lattice(i + 1, j + 1, k + c) * u
        total += (near * (1.0 - v) + far * v) * (w if c else 1.0 - w)
    return total


@inner_kernel
def grain(x: float, y: float, z: float, size: float, longest: float) -> float:
    """Return the factor on a colour at a place (m) where a pixel covers `size`, m.

    Octaves finer than two pixels fade out.
    """
    factor = 1.0
    for wavelength in WAVELENGTHS:
        if wavelength > longest:
            continue
        share = min(0.5 * wavelength / size - 1.0, 1.0)
        if share <= 0.0:
            break
        apart = 7.7 * wavelength  # so that no two octaves have a lattice point in one place
        noise = value_noise(x / wavelength + apart, y / wavelength + apart, z / wavelength)
        factor += CONTRAST * share * noise
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
    """Find the rays from `eye` whose hits face the sun -> facing (n,). Return their number.

    The cosines of the sun's incidence go into sun (n,). The origins of rays to the sun, `gap` (m)
    above the surface, go into origins (n, 3).
    """
    count = 0
    for n in range(ranges.size):
        cosine = normals[n, 0] * to_sun[0] + normals[n, 1] * to_sun[1] + normals[n, 2] * to_sun[2]
        if cosine > 0.0:  # False for NaN
            facing[count] = n
            sun[n] = cosine
            for c in range(3):
                origins[count, c] = eye[c] + ranges[n] * directions[n, c] + gap * normals[n, c]
            count += 1
    return count


@kernel
def shade(
    seen: Seen, bodies: BodyColours, ground: GroundColours, air: SceneLight, out: Any
) -> None:
    """Compute RGB, 0 … 1, of the hits -> out (n, 3)."""
    eye, directions, ranges, body, sun, pixel, photo = seen
    position, rotation, color = bodies
    low, high, tints, photo_grain = ground
    skylight, sunlight, extinction, haze, sky = air
    last = tints.shape[0] - 1
    for n in range(ranges.size):
        distance = ranges[n]
        b = body[n]
        left = math.exp(-extinction * distance) if extinction > 0.0 else 1.0
        if b == NOTHING:
            for c in range(3):
                out[n, c] = sky[c] * left + haze[c] * (1.0 - left)
            continue

        x = eye[0] + distance * directions[n, 0]
        y = eye[1] + distance * directions[n, 1]
        z = eye[2] + distance * directions[n, 2]
        first = 0
        share = 0.0
        if b >= 0:
            # in the body's axes
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

        is_photo = b < 0 and photo.shape[0] > 0 and not math.isnan(photo[n, 0])
        longest = LONGEST_ON_BODIES if b >= 0 else math.inf
        if is_photo:
            longest = photo_grain
        rough = grain(x, y, z, pixel * distance + 1e-6, longest)
        if b >= 0:
            rough = 0.5 + 0.5 * rough  # bodies are smoother than the ground
        level = rough * (skylight + sunlight * sun[n])
        for c in range(3):
            if b >= 0:
                own = color[b, c]
            elif is_photo:
                own = photo[n, c]
            else:
                own = tints[first, c] + share * (tints[first + 1, c] - tints[first, c])
            out[n, c] = own * level * left + haze[c] * (1.0 - left)
