"""Compilation of the collision kernels, or loading from the disk cache, ahead of the first contact."""

from __future__ import annotations

import numpy as np


def warm_up() -> None:
    """Runs every kernel once with the types of argument that a scene passes; loads SciPy and the like in any case."""
    from rfly_collision.narrow_phase.bodies import Bodies
    from rfly_collision.shapes.shape import Box, Sphere
    from rfly_collision.world.scene import Scene
    from rfly_terrain.height_map.height_map import HeightMap

    flat = HeightMap(np.zeros((2, 2), np.float32), origin_x=-1.0, origin_y=-1.0, step_x=2.0, step_y=2.0)
    level = np.array([(0.0, 0.0, 0.0, 1.0)] * 2)
    bodies = Bodies((Sphere(1.0), Box((1.0, 1.0, 1.0))), np.arange(2), np.zeros((2, 3)), level)
    Scene(flat).contacts(bodies, 0.1)
