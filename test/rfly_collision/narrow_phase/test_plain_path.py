# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The kernels as plain Python, in a process of their own, give the same contacts."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from oracles.plain_python import ENVIRONMENT

from rfly_collision import Bodies, Box, Capsule, Contacts, ConvexHull, Scene, Sphere
from rfly_terrain import HeightMap

FIELDS = ("a", "b", "position", "normal", "depth", "time")


def crowd_over_ground() -> Contacts:
    """Return the contacts of 36 moving bodies of four kinds, close to each other and to ground."""
    rng = np.random.default_rng(11)
    n = 36

    corners = rng.normal(size=(9, 3)) * 0.6
    shapes = (
        Sphere(0.6),
        Capsule(0.3, 1.5),
        Box((2, 1, 0.8), (0.2, 0, 0)),
        ConvexHull(corners),
    )
    quat = rng.normal(size=(n, 4))

    bodies = Bodies(
        shapes,
        np.arange(n) % 4,
        np.column_stack([rng.uniform(-3.5, 3.5, (n, 2)), rng.uniform(0, 4, n)]),
        quat / np.linalg.norm(quat, axis=1, keepdims=True),
        rng.normal(0, 5, (n, 3)),
        rng.normal(0, 3, (n, 3)),
        static=np.arange(n) % 11 == 0,
        group=np.arange(n) // 6,
        ignore=[(1, 8), (20, -1)],
    )

    ground = HeightMap(
        rng.normal(0.5, 0.5, (9, 9)), origin_x=-3, origin_y=-3, step_x=0.75, step_y=0.75
    )

    return Scene(ground).contacts(bodies, 0.05)


PROGRAM = """
import sys
import numpy as np
import oracles.plain_python
from test_plain_path import FIELDS, crowd_over_ground
contacts = crowd_over_ground()
np.savez(sys.argv[1], **{name: getattr(contacts, name) for name in FIELDS})
"""


@pytest.mark.exhaustive
def test_the_same_contacts_as_plain_python(tmp_path):
    folder = os.path.dirname(__file__)
    env = {
        **os.environ,
        **ENVIRONMENT,
        "PYTHONPATH": os.pathsep.join([folder, *filter(None, sys.path)]),
    }

    # the same scene without compiled kernels
    target = tmp_path / "plain.npz"
    subprocess.run([sys.executable, "-c", PROGRAM, str(target)], env=env, check=True, timeout=120)

    contacts = crowd_over_ground()
    assert len(contacts) > 30
    assert (contacts.b == -1).sum() > 5

    with np.load(target) as plain:
        for name in FIELDS:
            found = getattr(contacts, name)
            assert plain[name].shape == found.shape
            assert np.allclose(plain[name], found, rtol=0, atol=1e-6), name
