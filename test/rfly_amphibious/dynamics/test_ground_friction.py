# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction of the ground: braking distances by hand on areas, layers and across borders."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from amphibious_cases import forward_speed, parameters, plane

from rfly_amphibious import AmphibiousModel, Controls
from rfly_amphibious.dynamics.model import ModelState
from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.ground_friction import FrictionArea, GroundFriction

G = 9.80665
SPEED = 8.0
LOCKED = 0.95
"""Friction coefficient of a locked wheel of `sliding_tyres`, on a ground with the factor 1."""


NOTCHED = ((-9, -9), (60, -9), (60, 9), (-9, 9), (-9, 2), (50, 2), (50, -2), (-9, -2))
"""Corners of an area with a notch from the west."""


@functools.cache
def sliding_tyres():
    """Return a vehicle without drag whose locked tyres have their full friction at any load."""
    return parameters("scale").replace(
        shape_x=1.0,
        curvature_x=0.0,
        friction_x=LOCKED,
        friction_load_loss=0.0,
        linear_drag=(0.0, 0.0, 0.0),
        drag_area=(0.0, 0.0, 0.0),
    )


def area(friction, begin, end):
    return FrictionArea(np.array([(begin, -9.0), (end, -9.0), (end, 9.0), (begin, 9.0)]), friction)


def stopping_distance(friction, terrain=None, params=None):
    p = params or sliding_tyres()
    model = AmphibiousModel(p, terrain, friction=friction)
    held = Controls(brake_torque=p.max_brake_torque)
    end = model.run(model.standing(speed=SPEED), held, 4.0, sample_period=0.1).final
    assert abs(forward_speed(end.x)) < 0.01
    return float(end.position[0])


@pytest.mark.parametrize(
    ("friction", "factor"),
    [
        (GroundFriction(), 1.0),
        (GroundFriction(0.5), 0.5),
        (GroundFriction(1.0, (area(0.3, -9.0, 60.0),)), 0.3),
        # the last one counts
        (GroundFriction(0.2, (area(0.3, -9.0, 60.0), area(0.6, -9.0, 60.0))), 0.6),
        # an area elsewhere
        (GroundFriction(0.8, (area(0.3, 20.0, 60.0), area(0.3, -60.0, -9.0))), 0.8),
        # the notch of a polygon, along which the vehicle drives, is outside
        (
            GroundFriction(
                0.7,
                (
                    FrictionArea(
                        np.array(NOTCHED, float),
                        0.1,
                    ),
                ),
            ),
            0.7,
        ),
    ],
)
def test_braking_distance_on_each_ground(friction, factor):
    by_hand = SPEED**2 / (2.0 * factor * LOCKED * G)
    assert stopping_distance(friction) == pytest.approx(by_hand, rel=0.02)


@pytest.mark.parametrize(("before", "behind"), [(1.0, 0.3), (0.3, 1.0)])
def test_braking_distance_across_a_border(before, behind):
    """The front wheels are on the new ground first, with the load that braking gives them."""
    p = sliding_tyres()
    border = 2.5
    friction = GroundFriction(before, (area(behind, border, 60.0),))
    front = p.front_axle - p.center_x
    rear = p.rear_axle + p.center_x
    mu = LOCKED * np.array((before, behind))

    # deceleration while the axles are on different grounds
    height = p.origin_height
    both = G * (mu[1] * rear + mu[0] * front) / (p.wheelbase - height * (mu[1] - mu[0]))
    square = SPEED**2 - 2.0 * mu[0] * G * (border - front) - 2.0 * both * p.wheelbase
    by_hand = border - front + p.wheelbase + square / (2.0 * mu[1] * G)
    assert stopping_distance(friction) == pytest.approx(by_hand, rel=0.03)


def test_a_layer_has_the_friction_of_the_nearest_sample():
    """Samples lie at multiples of 2 m: the border between those at 2 and at 4 m is at 3 m."""
    at = np.arange(-10.0, 41.0, 2.0)
    terrain = HeightMap(np.zeros((len(at), 4)), origin_x=-10.0, origin_y=-3.0, step_x=2.0, step_y=2)
    layer = np.repeat(np.where(at < 3.0, 0.0, 0.4)[:, None], 4, axis=1).astype(np.float32)
    of_layer = stopping_distance(GroundFriction(0.9, layer=layer), terrain)
    of_areas = stopping_distance(GroundFriction(0.9, (area(0.4, 3.0, 60.0),)), terrain)
    assert of_layer == pytest.approx(of_areas, abs=1e-5)

    with pytest.raises(ConfigError, match=r"ice\.png.*26, 4.*the map has"):
        AmphibiousModel(
            sliding_tyres(), plane(0.0), friction=GroundFriction(layer=layer, layer_file="ice.png")
        )


def test_vehicles_side_by_side_slide_as_each_alone():
    p = sliding_tyres()
    friction = GroundFriction(0.9, (area(0.3, 1.0, 9.0), area(0.6, 2.0, 4.0)))
    model = AmphibiousModel(p, friction=friction)
    begins = [model.standing(x=0.5 * k, y=0.1 * k, speed=2.0) for k in range(8)]
    begin = ModelState(np.array([b.x for b in begins]), np.array([b.memory for b in begins]))
    held = Controls(brake_torque=p.max_brake_torque)
    together = model.step(begin, held, steps=300)
    for k, alone in enumerate(begins):
        assert (model.step(alone, held, steps=300).x == together.x[k]).all()
