"""Which vehicles, objects and terrain touch: shapes, broad phase, narrow phase, contact events."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rfly_collision.bodies import Bodies, Contacts
    from rfly_collision.scene import Scene
    from rfly_collision.shapes import Box, Capsule, ConvexHull, Shape, Sphere

__all__ = ["Bodies", "Box", "Capsule", "Contacts", "ConvexHull", "Scene", "Shape", "Sphere"]

_HOME = {
    "Bodies": "rfly_collision.bodies",
    "Box": "rfly_collision.shapes",
    "Capsule": "rfly_collision.shapes",
    "Contacts": "rfly_collision.bodies",
    "ConvexHull": "rfly_collision.shapes",
    "Scene": "rfly_collision.scene",
    "Shape": "rfly_collision.shapes",
    "Sphere": "rfly_collision.shapes",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, so that `import rfly_collision` costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
