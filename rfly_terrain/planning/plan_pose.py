"""Pose of a plan's start or goal, which messages use without the planner's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rfly_common.config.checks import finite_number
from rfly_common.errors import PlanError


@dataclass(frozen=True)
class PlanPose:
    """A place on the map, and the heading there; None: any. Raises PlanError for what is not
    finite.
    """

    x: float
    """east, m"""
    y: float
    """north, m"""
    heading: float | None = None
    """rad, counter-clockwise from east"""
    z: float | None = None
    """up, m: for aircraft; None: as low as may be"""

    def __post_init__(self) -> None:
        for name in ("x", "y", "heading", "z"):
            value = getattr(self, name)
            if value is not None:
                finite_number(name, value, error=partial(PlanError, "not_finite"))
