# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dryden's gusts against the spectra of MIL-F-8785C.

They are worked out here in feet as in the specification.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from amphibious_cases import model

from rfly_amphibious import Controls, Wind
from rfly_amphibious.dynamics.records import WORKSPACE
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import ground_of

FOOT = 0.3048
PERIOD = 0.01


@pytest.fixture(scope="module")
def simulated_gusts():
    """Return a function for gusts (steps, 3) at a held height and velocity, over level ground."""
    import numba

    from rfly_amphibious.dynamics.environment import next_turbulence
    from rfly_common.kernels.record_vectors import row, vector

    @numba.njit
    def simulate(work, mean, noise, wind_at_6_m, ground, out):
        x = work[0].x
        memory = work[0].memory
        for n in range(len(noise)):
            next_turbulence(x, memory, vector(mean), row(noise, n), wind_at_6_m, PERIOD, ground)
            out[n] = memory.gust

    def gusts(height, velocity, mean, wind_at_6_m, seconds):
        work = np.zeros(1, WORKSPACE)
        work["x"]["position"][0, 2] = height
        work["x"]["velocity"][0] = velocity
        noise = np.random.default_rng(5).standard_normal((round(seconds / PERIOD), 3))
        out = np.empty_like(noise)
        simulate(work, np.array(mean, float), noise, wind_at_6_m, ground_of(None), out)
        return out

    return gusts


def spectra(height, airspeed, wind_at_6_m, frequency):
    """Return the one-sided spectra along, across and up, (3, n), (m/s)²/Hz.

    They are those of 3.7.1.2 with the lengths and intensities of 3.7.3.4.
    """
    h = min(max(height / FOOT, 10.0), 1000.0)
    length_u = h / (0.177 + 0.000823 * h) ** 1.2
    length_w = h
    sigma_w = 0.1 * wind_at_6_m / FOOT
    sigma_u = sigma_w / (0.177 + 0.000823 * h) ** 0.4
    omega = 2 * math.pi * frequency / (airspeed / FOOT)  # rad/ft

    def across(sigma, length):
        a = (length * omega) ** 2
        return sigma**2 * length / math.pi * (1 + 3 * a) / (1 + a) ** 2

    along = sigma_u**2 * 2 * length_u / math.pi / (1 + (length_u * omega) ** 2)
    # per rad/ft to per Hz, (ft/s)² to (m/s)²
    in_feet = np.stack([along, across(sigma_u, length_u), across(sigma_w, length_w)])
    return in_feet * 2 * math.pi / (airspeed / FOOT) * FOOT**2


@pytest.mark.parametrize(
    ("height", "velocity", "mean"),
    [
        pytest.param(50.0, (15.0, 0.0, 0.0), (0.0, 0.0, 0.0), id="15 m/s at 50 m in calm air"),
        pytest.param(
            *(0.3, (0.0, 0.0, 0.0), (0.0, 8.0, 0.0)),
            marks=pytest.mark.exhaustive,
            id="parked in a wind from the south",
        ),
        pytest.param(
            400.0, (3.0, -20.0, 0.0), (3.0, 4.0, 0.0), id="above 1,000 ft against the wind"
        ),
    ],
)
@pytest.mark.exhaustive
def test_spectra_are_those_of_the_specification(simulated_gusts, height, velocity, mean):
    """Compare Welch's spectra in bands of a third of an octave, within 10 %."""
    from scipy.signal import welch

    gusts = simulated_gusts(height, velocity, mean, 12.0, 20_000.0)
    east = 1.0
    north = 0.0
    if any(mean):
        east = mean[0] / math.hypot(*mean[:2])
        north = mean[1] / math.hypot(*mean[:2])
    along = gusts[:, 0] * east + gusts[:, 1] * north
    across = gusts[:, 1] * east - gusts[:, 0] * north
    turned = np.stack([along, across, gusts[:, 2]])

    frequency, power = welch(turned, 1 / PERIOD, nperseg=16384)
    expected = spectra(height, math.dist(velocity, mean), 12.0, frequency)
    edges = 0.02 * 2 ** np.arange(0.0, 8.7, 1 / 3)  # to 7.4 Hz
    for low, high in itertools.pairwise(edges):
        band = (frequency >= low) & (frequency < high)
        if band.sum() >= 3:
            ratio = power[:, band].mean(axis=1) / expected[:, band].mean(axis=1)
            assert ratio == pytest.approx(np.ones(3), abs=0.1), (low, high)


def test_a_vehicle_feels_them_however_a_run_is_cut():
    """Park a vehicle: the same seed gives the same gusts and states, bit by bit; another seed does
    not.
    """
    wind = Wind((0.0, 6.0, 0.0), seed=3, turbulence=9.0)
    m = model("scale")
    whole = m.step(m.standing(), Controls(brake_torque=5.0), steps=700, wind=wind)

    cut = m.standing()
    for steps in (1, 299, 33, 367):
        cut = m.step(cut, Controls(brake_torque=5.0), steps=steps, wind=wind)
    assert np.array_equal(whole.memory, cut.memory)
    assert np.array_equal(whole.x, cut.x)
    assert np.abs(whole.memory[state_layout.GUST : state_layout.GUST + 3]).min() > 0.0

    other = m.step(
        m.standing(), Controls(), steps=700, wind=Wind((0.0, 6.0, 0.0), seed=4, turbulence=9.0)
    )
    assert not np.array_equal(other.memory, whole.memory)
    with pytest.raises(ConfigError, match="expected one of them"):
        Wind(gust_sigma=(1.0, 1.0, 1.0), turbulence=2.0)
