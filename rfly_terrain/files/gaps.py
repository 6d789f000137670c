# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cells of a raster without a height: numbers that stand for none, and filling them.

A number beyond LOWEST … HIGHEST is no height on the Earth. Others are only suspects: the ends of an
integer type, -9999, -999.9 and their like. A suspect stands for no height if nearly every cell that
holds it lies far above or below the cells around it. A real summit of 999 m has neighbours of its
own height.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainFormatError
from rfly_common.files import StrPath

Nodata = float | Literal["none"] | None
"""Number of a file that stands for no height; "none": all are heights; None: judge them."""

LOWEST = -12_000.0
"""No ground on the Earth lies lower, m; the deepest known is at -10,990 m."""
HIGHEST = 9_000.0
"""No ground on the Earth lies higher, m; the highest is at 8,849 m."""
FAR_STEP = 50.0
"""Step from cell to cell, m, above which a number may stand apart from its neighbours."""
FAR_TIMES_USUAL = 10.0
"""The same as a multiple of the raster's median step near that number."""
APART_SHARE = 0.9
"""Share of a number's steps to other heights that are far, at least, if it stands apart."""
MOST_NUMBERS = 20
"""Different numbers beyond the Earth's heights; more are heights in an unknown unit, or damage."""
USUAL_NUMBERS = (
    *(-10_000.0, -9999.0, -9999.9, -9999.99, -9998.0, -9990.0, -8888.0, -1000.0),
    *(-999.0, -999.9, -999.99, -888.0, -99.0, -99.9, -99.99, 999.0, 999.9, 999.99, 8888.0),
)
"""Numbers between LOWEST and HIGHEST that producers write where they know no height."""
_SAMPLE = 65_536
"""Steps of which the median is taken."""
_DIRECT = 1_000_000
"""Unknown cells that are solved for at once (some 10 s, 1.5 GB); more begin with a coarser map."""


@dataclass(frozen=True)
class HeightScale:
    """Relation of a file's numbers to heights in metres."""

    metres: float = 1.0
    """Unit of the scaled numbers, m; negative: they are depths."""
    scale: float = 1.0
    offset: float = 0.0

    def heights(self, numbers: NDArray[Any]) -> NDArray[np.float32]:
        """Return numbers of a file as heights, m; those that float32 cannot hold are infinite."""
        with np.errstate(all="ignore"):
            if self == HeightScale():
                return numbers.astype(np.float32)
            scaled = numbers.astype(np.float64) * self.scale + self.offset
            return (scaled * self.metres).astype(np.float32)

    def number(self, height: float) -> float:
        """Return the number that a file holds for a height."""
        return (height / self.metres - self.offset) / self.scale

    def suspects(self, dtype: np.dtype[Any]) -> NDArray[np.float32]:
        """Return the heights of the numbers of a type that may stand for none.

        Producers write them as they are, or scaled like heights, or in metres.
        """
        scaled = [(number - self.offset) / self.scale for number in USUAL_NUMBERS]
        usual = [*USUAL_NUMBERS, *scaled, *map(self.number, USUAL_NUMBERS)]
        if dtype.kind not in "iu":
            return self.heights(np.array(usual).astype(dtype))

        limits = np.iinfo(dtype)
        numbers = {round(number) for number in usual if abs(number - round(number)) < 1e-6}
        if limits.bits > 8:  # pictures of heights use all 256
            # an unsigned type wraps -9999; its 0 is a height unless there is an offset
            numbers |= {number % 2**limits.bits for number in numbers}
            numbers |= {limits.max, limits.min if limits.min or self.offset else limits.max}
        fitting = [n for n in numbers if limits.min <= n <= limits.max]
        return self.heights(np.array(fitting, dtype))


@dataclass(frozen=True)
class Gaps:
    """Cells of a file that hold no height."""

    cells: int = 0
    """Number of cells that were looked at."""
    missing: int = 0
    """Number of those without a height."""
    voids: dict[float, int] = field(default_factory=dict)
    """Cells for each number, in the file's unit, that stands for no height though none says so."""
    doubtful: dict[float, int] = field(default_factory=dict)
    """The same for the lowest and highest number if they stand apart; they count as heights."""


@dataclass
class _Seen:
    """Cells that hold a number, and the steps from them to other heights."""

    cells: int = 0
    steps: int = 0
    far_steps: int = 0

    def is_apart(self, number: float) -> bool:
        """Return whether the number stands apart from the heights around it.

        If there are none, a number below 0 does: no model has a plain at -9999 m.
        """
        if not self.steps:
            return number < 0.0
        return self.far_steps >= APART_SHARE * self.steps


class GapSearch:
    """Search for the cells of a file that hold no height, block by block.

    suspects: heights of numbers that may stand for none, m; None: every number is a height. Raises
    TerrainFormatError for a file of too many numbers that are no heights on the Earth.
    """

    def __init__(
        self, path: StrPath, scale: HeightScale, suspects: NDArray[np.float32] | None
    ) -> None:
        self._path = path
        self._scale = scale
        self._judges = suspects is not None
        self._suspects = sorted(set([] if suspects is None else suspects.tolist()))
        self._outside: dict[float, int] = {}
        self._seen: dict[float, _Seen] = {}
        self._cells = 0
        self._unknown = 0
        self._low = math.inf
        self._high = -math.inf

    @property
    def voids(self) -> list[float] | None:
        """Heights of suspects that stand for none, m; None: every number is a height."""
        if not self._judges:
            return None
        return [n for n in self._suspects if n in self._seen and self._seen[n].is_apart(n)]

    def add(self, heights: NDArray[np.float32], beside: int = 0) -> None:
        """Look at a block of heights, m, NaN where the file knows none; it may be changed.

        beside: number of its cells that do not count, all of them NaN.
        """
        self._cells += heights.size - beside
        self._unknown += int(np.count_nonzero(np.isnan(heights))) - beside
        if not self._judges:
            return

        low, high = _range(heights)
        if low < LOWEST or high > HIGHEST:
            beyond = (heights < LOWEST) | (heights > HIGHEST)
            numbers, counts = np.unique(heights[beyond], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                self._outside[number] = self._outside.get(number, 0) + count
            heights[beyond] = np.nan
            self._check_numbers()

        # numbers that may stand for none; the others' range is then known
        low, high = _range(heights)
        suspects = [number for number in self._suspects if low <= number <= high]
        apart = [number for number in suspects if self._look_at(number, heights)]
        for number in apart:
            heights[heights == np.float32(number)] = np.nan

        # the ends of that range
        low, high = _range(heights)
        self._low = min(self._low, low)
        self._high = max(self._high, high)
        for number in {low, high}.difference(suspects):
            if high - low > FAR_STEP:
                self._look_at(number, heights)
            elif math.isfinite(number):
                seen = self._seen.setdefault(number, _Seen())
                seen.cells += heights.size
                seen.steps += heights.size if low < high else 0

    def _look_at(self, number: float, heights: NDArray[np.float32]) -> bool:
        """Count a number's cells and steps; return whether it stands apart in this block."""
        here = heights == np.float32(number)
        cells = int(np.count_nonzero(here))
        if cells == 0:
            return False

        # steps across the rims of its cells, and all others
        borders = [np.diff(here, axis=axis) for axis in (0, 1)]
        sizes = [np.abs(np.diff(heights, axis=axis)) for axis in (0, 1)]
        across = _known(np.concatenate([s[b] for s, b in zip(sizes, borders, strict=True)]))
        others = _known(np.concatenate([s[~b] for s, b in zip(sizes, borders, strict=True)]))
        usual = np.median(others[:: others.size // _SAMPLE + 1]) if others.size else 0.0
        is_far = across > max(FAR_STEP, FAR_TIMES_USUAL * usual)

        seen = _Seen(cells, across.size, int(np.count_nonzero(is_far)))
        total = self._seen.setdefault(number, _Seen())
        total.cells += seen.cells
        total.steps += seen.steps
        total.far_steps += seen.far_steps
        return seen.is_apart(number)

    def _check_numbers(self) -> None:
        """Raise TerrainFormatError for too many numbers beyond the Earth's heights."""
        if len(self._outside) > MOST_NUMBERS:
            some = ", ".join(f"{plain(self._scale.number(n))}" for n in list(self._outside)[:3])
            raise TerrainFormatError(
                f"{self._path}: holds {some} and more, which are no heights on the Earth "
                f"({LOWEST:,.0f} … {HIGHEST:,.0f} m); name their unit, such as with --unit cm, or "
                "say --nodata none if they are heights"
            )

    def result(self) -> Gaps:
        """Return the cells without a height, by the file's own numbers."""
        apart = self.voids or []
        voids = {**self._outside, **{n: self._seen[n].cells for n in apart}}
        ends = {n: self._seen[n] for n in (self._low, self._high) if n in self._seen}
        rare = (self._cells - self._unknown) / 2
        doubtful = {
            n: s.cells for n, s in ends.items() if s.steps and s.is_apart(n) and s.cells < rare
        }
        return Gaps(
            self._cells,
            self._unknown + sum(voids.values()),
            {self._scale.number(n): cells for n, cells in voids.items() if cells},
            {self._scale.number(n): cells for n, cells in doubtful.items() if n not in apart},
        )


def plain(number: float) -> str:
    """Return a number of a file as text, to the digits of a float32 unless it is whole."""
    is_whole = abs(number) < 1e10 and number == round(number)
    return f"{number:.0f}" if is_whole else f"{number:.7g}"


def drop_voids(heights: NDArray[np.float32], voids: Iterable[float]) -> None:
    """Make NaN of all heights that are none: beyond the Earth's, and those of `voids`."""
    none = (heights < LOWEST) | (heights > HIGHEST)
    for number in voids:
        none |= heights == np.float32(number)
    heights[none] = np.nan


def holds_number(numbers: NDArray[Any], number: float) -> NDArray[np.bool_]:
    """Return where an array holds a number, to the array's own precision."""
    exact = numbers.dtype.type(number) if numbers.dtype.kind == "f" else number
    return np.asarray(numbers == exact)


def check_gaps(gaps: Gaps, fill: bool, path: StrPath, advice: str) -> None:
    """Raise TerrainFormatError for a file with gaps that are not to be filled, or without heights.

    advice: what else its user can do.
    """
    written = ", ".join(plain(number) for number in gaps.voids)
    undeclared = f" ({written} is written there)" if written else ""
    if gaps.cells and gaps.missing == gaps.cells:
        raise TerrainFormatError(
            f"{path}: no cell has data where the map would be{undeclared}"
            + ("; if it is a height, say --nodata none" if written else "")
        )
    if gaps.missing and not fill:
        raise TerrainFormatError(
            f"{path}: {gaps.missing:,} of {gaps.cells:,} cells hold no data{undeclared}; "
            f"interpolate them with --fill-nodata{advice}"
            + (", or say --nodata none if it is a height" if written else "")
        )


def _range(heights: NDArray[np.float32]) -> tuple[float, float]:
    """Return the lowest and highest number; NaN if none is known."""
    return float(np.fmin.reduce(heights, axis=None)), float(np.fmax.reduce(heights, axis=None))


def _known(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the finite ones of some numbers."""
    return numbers[np.isfinite(numbers)]


def fill_gaps(heights: NDArray[np.float32]) -> None:
    """Fill the cells of (rows, columns) that are not finite, in place, like a membrane.

    The membrane hangs from the rims of the gaps: each filled cell becomes the mean of its four
    neighbours, without those beyond the edge of the map. This is the discrete Laplace equation,
    with the heights around a gap given. At least one cell must be finite. More than a million cells
    are approached to about a thousandth of the heights' differences.
    """
    from scipy import sparse
    from scipy.sparse import linalg

    gap = ~np.isfinite(heights)
    count = int(np.count_nonzero(gap))
    if count == 0:
        return
    number = np.full(heights.shape, -1)
    number[gap] = np.arange(count)

    # the matrix: one row for each filled cell, one entry for each neighbour
    pairs = [(np.s_[1:, :], np.s_[:-1, :]), (np.s_[:, 1:], np.s_[:, :-1])]
    diagonal = np.zeros(count)
    right = np.zeros(count)
    rows = []
    columns = []
    for cells, neighbours in [*pairs, *((b, a) for a, b in pairs)]:
        here = gap[cells]
        own = number[cells][here]
        neighbour = number[neighbours][here]
        known = heights[neighbours][here].astype(float)
        diagonal += np.bincount(own, minlength=count)
        inner = neighbour >= 0
        rows.append(own[inner])
        columns.append(neighbour[inner])
        right += np.bincount(own[~inner], known[~inner], minlength=count)
    row = np.concatenate(rows)
    column = np.concatenate(columns)
    off_diagonal = sparse.csc_matrix((np.full(len(row), -1.0), (row, column)), (count, count))
    matrix = sparse.csc_matrix(off_diagonal + sparse.diags(diagonal))
    if count <= _DIRECT:
        # this order of elimination suits symmetric matrices: a fifth of the default one's time
        heights[gap] = linalg.spsolve(matrix, right, permc_spec="MMD_AT_PLUS_A")
        return

    # about the mean: the residual's tolerance is then relative to the heights' differences
    guess = _coarse_membrane(heights)[gap]
    offset = float(guess.mean())
    rim = matrix @ np.full(count, offset)
    scale = sparse.diags(1.0 / diagonal)
    solution, _ = linalg.cg(
        matrix, right - rim, guess - offset, maxiter=20 * max(heights.shape), M=scale
    )
    heights[gap] = solution + offset


def _coarse_membrane(heights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return a map (rows, columns) whose gaps are filled at half the resolution.

    The coarse heights are means of the known ones among 2 × 2 cells, interpolated linearly.
    """
    from scipy.ndimage import zoom

    # an even number of rows and columns, the last ones repeated
    padding = [(0, size % 2) for size in heights.shape]
    even = np.pad(heights.astype(float), padding, mode="edge")
    rows, columns = even.shape
    blocks = even.reshape(rows // 2, 2, columns // 2, 2)

    # means of what is known
    known = np.isfinite(blocks)
    sums = np.where(known, blocks, 0.0).sum(axis=(1, 3))
    with np.errstate(invalid="ignore"):
        coarse = (sums / known.sum(axis=(1, 3))).astype(np.float32)
    fill_gaps(coarse)

    fine = zoom(coarse.astype(float), 2, order=1, mode="nearest", grid_mode=True)
    return fine[: heights.shape[0], : heights.shape[1]]
