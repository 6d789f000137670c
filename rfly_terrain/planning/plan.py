# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans: poses over the terrain, mode of each segment, length and energy."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import PlanError
from rfly_common.files import write_text


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


# modes of moving: of a request, and DRIVE or FLY of each segment of a plan
DRIVE = 0
"""Mode of a path on the ground."""
FLY = 1
"""Mode of a path in the air."""
MIXED = 2
"""Mode of a request for a path that drives and flies, whichever costs less."""
MODES = {"drive": DRIVE, "fly": FLY, "mixed": MIXED}


@dataclass(frozen=True, eq=False)
class Plan:
    """A path of n poses in ENU; immutable."""

    position: Floats
    """Positions, (n, 3), ENU, m; z of driven poses is the ground's."""
    heading: Floats
    """Headings, (n,), rad, counter-clockwise from east."""
    mode: NDArray[np.uint8]
    """Mode of each segment between two poses, DRIVE or FLY, (n - 1,)."""
    energy: float
    """Energy, J."""
    duration: float
    """Duration at the speeds of the vehicle class, s."""
    notes: tuple[str, ...] = ()
    """Remarks for the user."""

    def __post_init__(self) -> None:
        for array in (self.position, self.heading, self.mode):
            array.flags.writeable = False

    @property
    def steps(self) -> tuple[Floats, Floats]:
        """Distance over ground and climb of each segment, (n - 1,) each, m."""
        return steps_between(self.position)

    @property
    def backward(self) -> Bools:
        """Segments that are driven backwards, (n - 1,): the heading points against them."""
        dx, dy = np.diff(self.position[:, :2], axis=0).T
        middle = self.heading[:-1] + 0.5 * (
            np.mod(np.diff(self.heading) + np.pi, 2 * np.pi) - np.pi
        )
        return np.asarray((self.mode == DRIVE) & (np.cos(middle) * dx + np.sin(middle) * dy < 0.0))

    @property
    def length(self) -> float:
        """Length along the path in space, m."""
        return float(np.hypot(*self.steps).sum())

    @property
    def climb(self) -> float:
        """Sum of all rises of the path, m."""
        return float(np.maximum(self.steps[1], 0.0).sum())

    @property
    def share_climbed(self) -> float:
        """Share of the path's length that rises."""
        pieces = np.hypot(*self.steps)
        return float(pieces[self.steps[1] > 1e-9].sum() / pieces.sum()) if pieces.sum() > 0 else 0.0


def off_the_map(name: str, x: float, y: float, bounds: Sequence[float]) -> PlanError:
    """Return an error: a place (m) lies outside the bounds x_min, x_max, y_min, y_max."""
    x_min, x_max, y_min, y_max = bounds
    limits = f"x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g}"
    return PlanError("outside", f"the {name} ({x:g}, {y:g}) lies off the map: {limits}")


def cell_at(x_min: float, y_min: float, side: float, x: float, y: float) -> tuple[int, int]:
    """Return (row, column) of the cell of a place; cells of a side begin at x_min, y_min, m."""
    return math.floor((y - y_min) / side), math.floor((x - x_min) / side)


def steps_between(position: Floats) -> tuple[Floats, Floats]:
    """Return distance over ground and climb between places (n, 3), (n - 1,) each, m."""
    d = np.diff(position, axis=0)
    return np.hypot(d[:, 0], d[:, 1]), d[:, 2]


def parts_of(counts: Ints) -> tuple[Ints, Floats]:
    """Return (piece, share) of each part where piece k is cut into counts[k] equal parts.

    The parts are in order. They have the number of their piece, and how much of the piece lies
    before them, 0 … 1.
    """
    piece = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    return piece, (np.arange(len(piece)) - first) / counts[piece]


def join_plans(plans: Sequence[Plan]) -> Plan:
    """Return the plans as one; each begins where the one before ends."""
    position = np.concatenate([plans[0].position, *(plan.position[1:] for plan in plans[1:])])
    heading = np.concatenate([plans[0].heading, *(plan.heading[1:] for plan in plans[1:])])
    return Plan(
        position,
        heading,
        np.concatenate([plan.mode for plan in plans]),
        sum(plan.energy for plan in plans),
        sum(plan.duration for plan in plans),
        tuple(note for plan in plans for note in plan.notes),
    )


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write the poses as CSV: x and y first, which a fleet file's `file:` reads as way-points."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["x", "y", "z", "heading_rad", "mode"])

    words = {(DRIVE, False): "drive", (DRIVE, True): "reverse", (FLY, False): "fly"}

    modes = [words[mode] for mode in zip(plan.mode.tolist(), plan.backward.tolist(), strict=True)]

    for (x, y, z), heading, mode in zip(
        plan.position, plan.heading, [*modes, modes[-1]], strict=True
    ):
        writer.writerow([f"{x:.4f}", f"{y:.4f}", f"{z:.4f}", f"{heading:.6f}", mode])
    write_text(path, text.getvalue())
