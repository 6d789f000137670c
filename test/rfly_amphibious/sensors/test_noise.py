# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The common noise model: moments, growth, correlation, ranges, repeatability."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.sensors.noise import NoiseModel, NoiseSource
from rfly_common.errors import ConfigError


def errors(model, period, count, seed=1, name="test"):
    """Return readings (count, channels) of a truth of 0."""
    return NoiseSource(model, period, seed, name).disturb(np.zeros((count, model.channels)))


@pytest.mark.parametrize("period", [0.001, 0.004, 0.1])
def test_a_density_is_divided_by_the_root_of_the_period(period):
    n = 20_000
    got = errors(NoiseModel(3, white_density=(4e-3, 3.4e-4, 0.0)), period, n)
    expected = np.array((4e-3, 3.4e-4, 0.0)) / math.sqrt(period)
    assert (np.abs(got.mean(axis=0)) <= 4.0 * expected / math.sqrt(n)).all()  # four standard errors
    assert got.std(axis=0) == pytest.approx(expected, rel=0.03)
    neighbours = np.corrcoef(got[:-1, 0], got[1:, 0])[0, 1]
    assert abs(neighbours) < 4.0 / math.sqrt(n)
    assert abs(np.corrcoef(got[:, 0], got[:, 1])[0, 1]) < 4.0 / math.sqrt(n)


def test_a_sigma_holds_at_every_rate():
    for period in (0.004, 0.1):
        assert errors(NoiseModel(1, white_sigma=0.3), period, 20_000).std() == pytest.approx(
            0.3, rel=0.03
        )


@pytest.mark.parametrize("period", [0.02, 0.1])
def test_the_bias_grows_with_the_root_of_time(period):
    """The variance of 1000 walks after T seconds is σ_b² T at any rate, within χ² bounds."""
    walks = 1000
    seconds = 5.0
    got = errors(NoiseModel(walks, walk_density=6e-3), period, round(seconds / period) + 1)
    for t in (1.0, seconds):
        at = got[round(t / period)]
        assert at.var() == pytest.approx(6e-3**2 * t, rel=4.0 * math.sqrt(2.0 / walks))
    assert (got[0] == 0.0).all()


def test_a_walk_with_a_correlation_time_does_not_leave_its_bounds():
    """The variance of 2000 walks grows as a walk's at first, and is σ_b² τ_b / 2 in the end."""
    density = 6e-3
    tau = 10.0
    period = 0.1
    got = errors(NoiseModel(2000, walk_density=density, walk_time=tau), period, 801)
    for t in (1.0, 5.0, 80.0):
        wanted = density**2 * 0.5 * tau * (1.0 - math.exp(-2.0 * t / tau))
        assert got[round(t / period)].var() == pytest.approx(
            wanted, rel=4.0 * math.sqrt(2.0 / 2000)
        )


def test_allan_deviation():
    """White noise falls by slope -1/2, N/√τ; the walk rises by slope 1/2, K √(τ/3) (IEEE 952)."""
    period = 0.01
    n = 200_000

    def allan(rates, tau):
        means = rates[: len(rates) // round(tau / period) * round(tau / period)].reshape(
            -1, round(tau / period)
        )
        return math.sqrt(0.5 * np.mean(np.diff(means.mean(axis=1)) ** 2))

    white = errors(NoiseModel(1, white_density=3.4e-4), period, n)[:, 0]
    walk = errors(NoiseModel(1, walk_density=3.9e-5), period, n)[:, 0]
    for tau in (0.1, 1.0, 10.0):
        assert allan(white, tau) == pytest.approx(3.4e-4 / math.sqrt(tau), rel=0.2)
        assert allan(walk, tau) == pytest.approx(3.9e-5 * math.sqrt(tau / 3.0), rel=0.2)


def test_gauss_markov_keeps_variance_and_forgets_exponentially():
    """The variance of 4000 processes is right from the first sample."""
    period = 0.1
    tau = 6.0
    sigma = 1.5
    got = errors(NoiseModel(4000, markov_sigma=sigma, markov_time=tau), period, 121)
    for k in (0, 1, 60, 120):
        assert got[k].std() == pytest.approx(sigma, rel=0.05)
    for lag in (1, 30, 60, 120):
        correlation = np.corrcoef(got[0], got[lag])[0, 1]
        expected = math.exp(-lag * period / tau)
        assert correlation == pytest.approx(expected, abs=4.0 / math.sqrt(4000))


def test_turn_on_bias_is_drawn_once():
    first = errors(NoiseModel(4000, bias=2.0, turn_on_bias=0.5), 0.02, 50)
    assert (first == first[0]).all()
    assert first[0].mean() == pytest.approx(2.0, abs=0.04)
    assert first[0].std() == pytest.approx(0.5, rel=0.05)


def test_scale_and_range():
    model = NoiseModel(2, scale_error=(0.1, 0.0), bias=(0.0, -1.0), low=-20.0, high=20.0)
    got = NoiseSource(model, 0.004, 0, "gyro").disturb(
        np.array(((10.0, 10.0), (19.0, -19.5), (-500.0, 500.0)))
    )
    expected = np.array(((11.0, 9.0), (20.0, -20.0), (-20.0, 20.0)))
    assert got == pytest.approx(expected, abs=1e-12)


ALL = NoiseModel(
    2,
    bias=0.1,
    turn_on_bias=1.0,
    white_density=0.1,
    white_sigma=0.2,
    walk_density=0.3,
    markov_sigma=1.0,
    markov_time=5.0,
)


def test_noise_off_is_exact():
    truth = np.random.default_rng(3).normal(0.0, 1e3, (50, 2))
    assert (NoiseSource(ALL.silent(), 0.01, 1, "x").disturb(truth) == truth).all()


def test_same_seed_same_errors_however_grouped():
    whole = errors(ALL, 0.01, 60, seed=(4, 2))
    source = NoiseSource(ALL, 0.01, (4, 2), "test")
    pieces = [source.disturb(np.zeros((k, 2))) for k in (1, 7, 2, 50)]
    assert (np.concatenate(pieces) == whole).all()
    for other in (
        errors(ALL, 0.01, 60, seed=(4, 3)),
        errors(ALL, 0.01, 60, seed=(4, 2), name="other"),
    ):
        assert abs(np.corrcoef(np.diff(whole[:, 0]), np.diff(other[:, 0]))[0, 1]) < 0.5


def test_one_kind_of_error_does_not_change_another():
    both = errors(NoiseModel(1, white_sigma=1.0, walk_density=5.0), 0.01, 100)
    white = errors(NoiseModel(1, white_sigma=1.0), 0.01, 100)
    walk = errors(NoiseModel(1, walk_density=5.0), 0.01, 100)
    assert both == pytest.approx(white + walk, abs=1e-12)


def test_variance_for_messages():
    got = errors(
        NoiseModel(20_000, turn_on_bias=1.0, white_density=0.1, white_sigma=0.2, markov_sigma=0.5),
        0.01,
        1,
    )
    model = NoiseModel(1, turn_on_bias=1.0, white_density=0.1, white_sigma=0.2, markov_sigma=0.5)
    assert model.variance(0.01) == pytest.approx([1.0 + 1.0 + 0.04 + 0.25])
    assert got.var() == pytest.approx(2.29, rel=0.05)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"white_sigma": -1.0}, "white_sigma is .* expected ≥ 0"),
        ({"walk_time": 0.0}, "walk_time is .* more than 0"),
        ({"walk_density": math.nan}, "walk_density is .* finite"),
        ({"markov_time": 0.0}, "markov_time is .* more than 0"),
        ({"bias": (1.0, 2.0, 3.0)}, "bias does not fit 2 channels"),
    ],
)
def test_wrong_models_are_refused(values, told):
    with pytest.raises(ConfigError, match=told):
        NoiseModel(2, **values)


def test_a_wrong_period_is_refused():
    with pytest.raises(ConfigError, match=r"gps: the period between samples: 0\.0 s"):
        NoiseSource(ALL, 0.0, 1, "gps")
