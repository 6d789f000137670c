"""Kernels that other kernels are compiled into: numba's cache looks at one file and would go on with the old ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import rfly_collision
from rfly_collision.narrow_phase import pair_kernels, terrain_contact

PAIRS = ("contact_point", "distance_kernels", "polyhedron_kernels", "shape_table")
TERRAIN = ("distance_kernels", "ground_distance", "ground_kernels", "pair_kernels", "shape_table")


def digest(names: tuple[str, ...]) -> str:
    folder = Path(rfly_collision.__file__).parent
    text = b"".join(next(folder.glob(f"*/{name}.py")).read_bytes() for name in names)
    return hashlib.sha256(text).hexdigest()[:16]


def test_pair_kernels_change_with_what_they_are_built_on():
    assert digest(PAIRS) == pair_kernels.BUILT_ON, "write the left-hand side into pair_kernels.py"


def test_terrain_kernels_change_with_what_they_are_built_on():
    assert digest(TERRAIN) == terrain_contact.BUILT_ON, "write the left-hand side into terrain_contact.py"
