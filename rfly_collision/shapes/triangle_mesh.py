"""Triangles as rays see them. What collides and is planned around are the convex parts of the same model."""

from __future__ import annotations

from dataclasses import dataclass

from rfly_common.arrays import Floats


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """A surface, seen from both sides; it need not be closed."""

    triangles: Floats
    """(t, 3, 3) corners, m, in body axes"""
