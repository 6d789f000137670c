# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Warm-up: afterwards nothing is left to compile.

The first state of a fleet comes as quickly as any other.
"""

from __future__ import annotations

import subprocess
import sys

SAMPLES = """
import numpy as np
from rfly_trajectory.warm_up import warm_up
warm_up()
from rfly_terrain.height_map import altitude_kernels as terrain_kernels
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.kernels import motion_kernels as kernels
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, FigureEight

def compiled():
    modules = vars(kernels) | vars(terrain_kernels)
    return {
        name: len(each.signatures) for name, each in modules.items() if hasattr(each, "signatures")
    }

before = compiled()
assert before["poses"] and before["path_points"] and before["surfaces"]
altitudes = np.random.default_rng(1).uniform(0, 9, (20, 30))
terrain = HeightMap(altitudes, origin_x=-50, origin_y=-50, step_x=5, step_y=5)
paths = Circle((0.0, 0.0), 20.0).path(), FigureEight((0.0, 0.0), 60.0, 30.0).path()
wheels = {"wheelbase": 0.5, "track": 0.3}
sorts = ("ground", {}), ("ground", wheels), ("fixed_wing", {"absolute": True})
for count in (1, 2, 7):
    for kind, more in sorts:
        profile = SpeedProfile(3.0, 1.0)
        vehicles = [
            Vehicle(f"v{i}", i + 1, 3, paths[i % 2], profile, "repeat", kind, height=5.0, **more)
            for i in range(count)
        ]
        for ground in (None, terrain):
            fleet = Fleet(vehicles, ground)
            fleet.sample(1.0)
            fleet.sample_times([1.0, 2.0])
            fleet.track(0)
after = compiled()
print({name: (before[name], after[name]) for name in after if before[name] != after[name]})
"""


def test_after_the_warm_up_no_fleet_makes_numba_compile():
    done = subprocess.run(
        [sys.executable, "-c", SAMPLES],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{}"
