"""Collision detection of vehicles, objects and terrain: shapes, broad phase, narrow phase, contact events."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rfly_collision.narrow_phase.bodies import Bodies, Contacts
    from rfly_collision.shapes.shape import Box, Capsule, ConvexHull, Shape, Sphere
    from rfly_collision.world.scene import Scene

__all__ = ["Bodies", "Box", "Capsule", "Contacts", "ConvexHull", "Scene", "Shape", "Sphere"]

_HOME = {
    "Bodies": "rfly_collision.narrow_phase.bodies",
    "Box": "rfly_collision.shapes.shape",
    "Capsule": "rfly_collision.shapes.shape",
    "Contacts": "rfly_collision.narrow_phase.bodies",
    "ConvexHull": "rfly_collision.shapes.shape",
    "Scene": "rfly_collision.world.scene",
    "Shape": "rfly_collision.shapes.shape",
    "Sphere": "rfly_collision.shapes.shape",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, so that `import rfly_collision` costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
