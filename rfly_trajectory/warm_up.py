# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compilation of the motion kernels, or loading from the disk cache, ahead of the first pose."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np


@cache
def warm_up(avoidance: bool = False) -> None:
    """Run every kernel once with the types of argument that a fleet passes.

    Those of `avoidance` are left out unless it is asked for.
    """
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_trajectory.fleet.fleet import Fleet, Vehicle
    from rfly_trajectory.kernels.tables import POLYNOMIAL
    from rfly_trajectory.motion.speed_profile import SpeedProfile
    from rfly_trajectory.paths.path import AltitudeProfile, make_path
    from rfly_trajectory.paths.shapes import Circle

    path = Circle((0.0, 0.0), 0.5).path()
    vehicle = Vehicle("warm_up", 1, 3, path, SpeedProfile(1.0), "repeat", wheelbase=0.2, track=0.1)
    eastwards = make_path([0.0], [POLYNOMIAL], [[0.0, 1.0, *[0.0] * 10]], 0.5, False)
    # made here, as PCHIP would import 40 MB of SciPy
    climb = replace(
        eastwards, altitude=AltitudeProfile(np.zeros(1), np.array([[0.0, 2.0, 0.0, 0.0]]))
    )

    climbing = Vehicle(
        "warm_up_2", 2, 3, climb, SpeedProfile(1.0), "stop", "multirotor", offset=(0.0, 0.1)
    )

    flat = HeightMap(
        np.zeros((2, 2), np.float32), origin_x=-1.0, origin_y=-1.0, step_x=2.0, step_y=2.0
    )
    for terrain in (None, flat):
        fleet = Fleet([vehicle, climbing], terrain)
        fleet.sample(0.0)
        fleet.sample_times([0.0])
        fleet.track(0)

    if avoidance:
        from rfly_trajectory.avoidance.fleet_avoidance import FleetAvoidance

        # objects and a map have the types that none has, too
        FleetAvoidance(Fleet([vehicle, climbing], flat), 0.0).advance(0.05)


def warm_up_avoidance() -> None:
    """Run every kernel, those of `avoidance` included."""
    warm_up(avoidance=True)
