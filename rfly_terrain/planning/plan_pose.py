# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pose of a plan's start or goal, which messages use without the planner's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rfly_common.config.checks import finite_number
from rfly_common.errors import PlanError


@dataclass(frozen=True)
class PlanPose:
    """A position on the map with a heading; None: any heading.

    Raises PlanError if a number is not finite.
    """

    x: float
    """Position east, m."""
    y: float
    """Position north, m."""
    heading: float | None = None
    """Heading, rad, counter-clockwise from east."""
    z: float | None = None
    """Height, m, up, for aircraft; None: as low as possible."""

    def __post_init__(self) -> None:
        for name in ("x", "y", "heading", "z"):
            value = getattr(self, name)
            if value is not None:
                finite_number(name, value, error=partial(PlanError, "not_finite"))
