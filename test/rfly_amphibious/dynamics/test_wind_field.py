# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mean wind at a place: profile over height, and the lee of objects."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from amphibious_cases import parameters, plane

from rfly_amphibious import AmphibiousModel, Scenario, SensorParameters, Wind
from rfly_amphibious.dynamics.wind_field import WindField
from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.errors import ConfigError
from rfly_lab import run_scenario
from rfly_terrain.world.solids import ObjectBoxes

WEST_WIND = Wind((8.0, 0.0, 0.5), roughness=0.03)
HOUSE = ObjectBoxes([(0.0, 0.0, 5.0)], [(5.0, 10.0, 5.0)])
"""House of 10 m x 20 m across the wind, 10 m tall."""


def wind_at(place, wind, solids=None, terrain=None):
    model = AmphibiousModel(parameters("scale"), terrain, solids=solids)
    return np.array(wind.mean) + WindField(model, wind).change(np.array(place, float))


def test_the_profile_is_the_logarithm():
    """The profile gives ln(1 + 2/0.03)/ln(1 + 10/0.03) = 4.2146/5.8122."""
    assert wind_at((0, 0, 10), WEST_WIND) == pytest.approx([8.0, 0.0, 0.5])
    assert wind_at((0, 0, 2), WEST_WIND)[0] == pytest.approx(8.0 * 0.72514, rel=1e-4)
    assert wind_at((0, 0, 100), WEST_WIND)[0] == pytest.approx(8.0 * 1.39574, rel=1e-4)
    assert wind_at((0, 0, 500), WEST_WIND)[0] == wind_at((0, 0, 100), WEST_WIND)[0]
    assert wind_at((0, 0, -1), WEST_WIND)[0] == wind_at((0, 0, 0.1), WEST_WIND)[0] > 0.0


def test_height_counts_from_the_ground():
    hill = plane(0.1)
    assert wind_at((100, 0, 12), WEST_WIND, terrain=hill) == pytest.approx(
        wind_at((0, 0, 2), WEST_WIND)
    )


def test_without_roughness_the_wind_is_the_same_everywhere():
    for wind in (Wind((8.0, 0.0, 0.5)), Wind((0.0, 0.0, 0.0), lee=True, roughness=0.1)):
        assert wind_at((30, 0, 1), wind, HOUSE).tolist() == list(wind.mean)


def test_a_wake_behind_a_house():
    """The wake, 50 m behind, has grown by 4.30 m: k = 0.5/ln(1 + 10/0.03) = 0.08603.

    D = 10 · 10 / (14.30 · 14.30) = 0.489.
    """
    wind = Wind((8.0, 0.0, 0.0), lee=True)
    assert wind_at((55, 0, 2), wind, HOUSE)[0] == pytest.approx(8.0 * (1 - 0.489), rel=2e-3)
    assert wind_at((5.5, 0, 2), wind, HOUSE)[0] < 0.1  # still air at the wall
    recovering = [wind_at((x, 0, 2), wind, HOUSE)[0] for x in (20, 50, 100, 300)]
    assert recovering == sorted(recovering)
    for outside in ((-20, 0, 2), (55, 30, 2), (55, 0, 25), (2000, 0, 2)):
        assert wind_at(outside, wind, HOUSE)[0] == pytest.approx(8.0)

    turned = Wind((0.0, -8.0, 0.0), lee=True)
    assert wind_at((0, -60, 2), turned, HOUSE)[1] < wind_at((0, -30, 2), turned, HOUSE)[1] < 0.0
    assert wind_at((0, 30, 2), turned, HOUSE)[1] == pytest.approx(-8.0)


def test_wakes_add_as_squares():
    wind = Wind((8.0, 0.0, 0.0), lee=True)
    twice = ObjectBoxes([(0.0, 0.0, 5.0)] * 2, [(5.0, 10.0, 5.0)] * 2)
    one = 1 - wind_at((105, 0, 2), wind, HOUSE)[0] / 8.0
    both = 1 - wind_at((105, 0, 2), wind, twice)[0] / 8.0
    assert both == pytest.approx(math.sqrt(2.0) * one)


def test_a_scenario_has_the_profile():
    """The recorded wind is that of each height, for the truth and for the sensors."""
    scenario = dataclasses.replace(Scenario.load("hop"), wind=WEST_WIND, end_time=16.0, end="time")
    run = run_scenario(scenario)
    assert run.position[:, 2].max() > 1.5
    z = np.clip(run.position[:-1, 2], 0.1, None)  # the wind is that of the tick before
    expected = 8.0 * np.log1p(z / 0.03) / math.log1p(10 / 0.03)
    assert run.wind[1:, 0] == pytest.approx(expected, rel=0.02)

    simulation = scenario.simulation(
        SensorParameters.load("scale"), noise=False, fail_safe=abort_pilot
    )
    ticks = [simulation.tick() for _ in range(60)]
    seen = next(samples.wind for samples in ticks if samples.wind is not None)
    standing = 8.0 * math.log1p(parameters("scale").origin_height / 0.03) / math.log1p(10 / 0.03)
    assert seen.velocity[-1, 0] == pytest.approx(standing, rel=0.02)


@pytest.mark.parametrize("roughness", [-0.1, 5.0, math.nan])
def test_impossible_roughness(roughness):
    with pytest.raises(ConfigError, match="roughness"):
        Wind((8.0, 0.0, 0.0), roughness=roughness)
