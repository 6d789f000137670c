# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled rays over an occupancy grid: touched cells and first hits.

A cell is touched by a segment if its closed square, widened by SNAP on all sides, meets the
segment. The walk of Amanatides and Woo (Eurographics 1987) would have to look at each step for
crossings that coincide and for grid lines that the segment follows. Here the segment is swept slab
by slab along its longer axis instead: between the two edges of a slab (a column or a row of cells)
the other coordinate fills an interval, and the cells that meet the interval are the touched ones,
corners and edges included, with nothing special about any of them.

Rules that all functions share:
- `segments` are (n, 4) float64 u0, v0, u1, v1, finite cell coordinates.
- a is the longer axis, b the other one. Slabs and cells count from the bottom left.
- No fastmath, which may move a point on an edge into the next cell.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from rfly_common.kernels.jit import kernel, pasted_kernel
from rfly_terrain.occupancy.cell_grid import SNAP

CLEAR = 4.0 * SNAP
"""Distance from a grid line beyond which no rounding matters, cells."""

LEVEL = 1e100
"""|da/db| above which b is taken as constant."""

NEARBY = 1e5
"""Largest coordinates whose rounding errors stay far below SNAP, cells."""

# a pair of int32 row and column, read as one int64, grows by these with each row and column
ONE_ROW = 1 if sys.byteorder == "little" else 1 << 32
ONE_COLUMN = 1 << 32 if sys.byteorder == "little" else 1


class GridLine(NamedTuple):
    """Segment from (a0, b0) to (a1, b1) on a grid of size_a by size_b cells."""

    along_u: bool
    """True if a is u, False if it is v."""
    a0: float
    b0: float
    a1: float
    b1: float
    slope: float
    """Slope db/da."""
    base_a: float
    """a of the end nearer to the grid."""
    base_b: float
    """b of the same end."""
    size_a: int
    size_b: int


@pasted_kernel
def _clamp(value: float, low: float, high: float) -> float:
    """Return the value within low … high; NaN becomes high, as it must not reach int()."""
    value = value if value < high else high
    return value if value > low else low


@kernel
def _oriented(u0: float, v0: float, u1: float, v1: float, rows: int, columns: int) -> GridLine:
    """Return a segment, oriented along its longer axis, on a grid of rows by columns cells."""
    along_u = abs(u1 - u0) >= abs(v1 - v0)
    if along_u:
        a0 = u0
        b0 = v0
        a1 = u1
        b1 = v1
        size_a = columns
        size_b = rows
    else:
        a0 = v0
        b0 = u0
        a1 = v1
        b1 = u1
        size_a = rows
        size_b = columns
    slope = (b1 - b0) / (a1 - a0) if a1 != a0 else 0.0
    if abs(a1) + abs(b1) < abs(a0) + abs(b0):
        return GridLine(along_u, a0, b0, a1, b1, slope, a1, b1, size_a, size_b)
    return GridLine(along_u, a0, b0, a1, b1, slope, a0, b0, size_a, size_b)


@pasted_kernel
def _slabs(a0: float, a1: float, size_a: int) -> tuple[int, int]:
    """Return first and last slab that the segment touches, rising; none: first > last."""
    low, high = (a0, a1) if a0 <= a1 else (a1, a0)
    first = int(np.ceil(_clamp(low - SNAP, 0.0, size_a + 2.0))) - 1
    last = int(np.floor(_clamp(high + SNAP, -2.0, size_a + 1.0)))
    return max(first, 0), min(last, size_a - 1)


@pasted_kernel
def _span(line: GridLine, slab: int) -> tuple[float, float]:
    """Return lowest and highest b of the segment within a slab."""
    a_low, a_high = (line.a0, line.a1) if line.a0 <= line.a1 else (line.a1, line.a0)
    b_low, b_high = (line.b0, line.b1) if line.b0 <= line.b1 else (line.b1, line.b0)
    left = max(a_low, slab - SNAP)
    right = min(a_high, slab + 1.0 + SNAP)
    at_left = _clamp(line.base_b + (left - line.base_a) * line.slope, b_low, b_high)
    at_right = _clamp(line.base_b + (right - line.base_a) * line.slope, b_low, b_high)
    return (at_left, at_right) if at_left <= at_right else (at_right, at_left)


@pasted_kernel
def _cells(low: float, high: float, size_b: int) -> tuple[int, int]:
    """Return the first and the last cell of a slab that the interval touches.

    They are at most one beyond the grid on either side.
    """
    first = int(np.ceil(_clamp(low - SNAP, 0.0, size_b + 1.0))) - 1
    last = int(np.floor(_clamp(high + SNAP, -1.0, size_b + 0.0)))
    return first, last


@pasted_kernel
def _inverse(line: GridLine) -> float:
    """Return |da/db|; 0 where b is taken as constant."""
    inverse = abs((line.a1 - line.a0) / (line.b1 - line.b0)) if line.b1 != line.b0 else 0.0
    return inverse if inverse < LEVEL else 0.0


@pasted_kernel
def _progress(line: GridLine, slab: int, cell: int, inverse: float) -> float:
    """Return the distance along a, cells, from the start to where a touched cell is first met."""
    forward = line.a1 >= line.a0
    if forward:
        enters = slab - line.a0
        leaves = slab + 1.0 - line.a0
    else:
        enters = line.a0 - (slab + 1.0)
        leaves = line.a0 - slab
    to_cell = cell - line.b0 if line.b1 >= line.b0 else line.b0 - (cell + 1.0)
    return max(min(max(enters, to_cell * inverse), leaves, abs(line.a1 - line.a0)), 0.0)


@pasted_kernel
def _between_lines(value: float) -> bool:
    """Return whether a coordinate is clear of all grid lines, by more than any tolerance here."""
    fraction = value - np.floor(value)
    return CLEAR < fraction < 1.0 - CLEAR


@kernel
def _crosses_in(
    line: float, rises: bool, first: int, last: int, base_a: float, base_b: float, slope: float
) -> int:
    """Return the slab of first … last in which b crosses a line; it must cross it there."""
    slab = int(_clamp(base_a + (line - base_b) / slope, first + 0.0, last + 0.0))
    while slab > first and (base_b + (slab - base_a) * slope > line) == rises:
        slab -= 1
    while slab < last and (base_b + (slab + 1.0 - base_a) * slope > line) != rises:
        slab += 1
    return slab


@kernel
def _plain(segment: Any, rows: int, columns: int, check: bool) -> Any:
    """Return (is plain, along u, first and last slab, first and last cell, base a, base b, slope).

    Slabs are in the order of rising a, without those in which b is off the grid. A plain segment
    meets no corner and no line lengthwise and ends on no line, as nearly all do: from one edge of a
    slab to the other b stays in a cell or crosses into the next. Without `check` only its ends are
    looked at.
    """
    along_u, a0, b0, a1, b1, slope, base_a, base_b, size_a, size_b = _oriented(
        segment[0], segment[1], segment[2], segment[3], rows, columns
    )
    plain = _between_lines(a0) and _between_lines(b0) and _between_lines(a1) and _between_lines(b1)

    # b at the first and the last slab, of rising a
    first, last = _slabs(a0, a1, size_a)
    if a1 < a0:
        a0, b0, a1, b1 = a1, b1, a0, b0
    b_first = b0 if a0 >= first else base_b + (first - base_a) * slope
    b_last = b1 if a1 <= last + 1.0 else base_b + (last + 1.0 - base_a) * slope

    plain = plain and first <= last and _between_lines(b_first) and _between_lines(b_last)
    plain = plain and abs(a0) + abs(a1) + abs(b0) + abs(b1) < NEARBY
    if not plain:
        return False, along_u, 0, -1, 0, 0, base_a, base_b, slope
    if max(b_first, b_last) < 0.0 or min(b_first, b_last) > size_b:
        return True, along_u, 0, -1, 0, 0, base_a, base_b, slope

    # without the slabs in which b is off the grid
    first_cell = int(_clamp(b_first, 0.0, size_b - 1.0))
    last_cell = int(_clamp(b_last, 0.0, size_b - 1.0))
    rises = b_last > b_first
    first_edge = first + 1
    last_edge = last
    begin = first
    end = last

    if b_first < 0.0 or b_first > size_b:
        begin = first_edge = _crosses_in(
            0.0 if rises else size_b + 0.0, rises, first, last, base_a, base_b, slope
        )
    if b_last < 0.0 or b_last > size_b:
        end = _crosses_in(size_b + 0.0 if rises else 0.0, rises, first, last, base_a, base_b, slope)
        last_edge = end + 1

    # no edge is crossed near a corner
    if check:
        near = 0
        for edge in range(first_edge, last_edge + 1):
            b = base_b + (edge - base_a) * slope
            fraction = b - np.floor(b)
            near |= (fraction <= CLEAR) | (fraction >= 1.0 - CLEAR)
        plain = near == 0

    return plain, along_u, begin, end, first_cell, last_cell, base_a, base_b, slope


@kernel
def count_touched(segments: Any, rows: int, columns: int, counts: Any, plain: Any) -> None:
    """Write the number of touched cells of each segment -> counts (n,) int64; plain (n,) bool.

    `fill_touched` needs both; see `_plain`.
    """
    for n in range(segments.shape[0]):
        plain[n], _, first_slab, last_slab, first_cell, last_cell, _, _, _ = _plain(
            segments[n], rows, columns, True
        )
        if plain[n]:
            counts[n] = last_slab - first_slab + 1 + abs(last_cell - first_cell)
            continue

        # any other segment: slab by slab
        line = _oriented(
            segments[n, 0], segments[n, 1], segments[n, 2], segments[n, 3], rows, columns
        )
        first_slab, last_slab = _slabs(line.a0, line.a1, line.size_a)
        count = 0
        for slab in range(first_slab, last_slab + 1):
            low, high = _span(line, slab)
            first, last = _cells(low, high, line.size_b)
            count += max(min(last, line.size_b - 1) - max(first, 0) + 1, 0)
        counts[n] = count


@kernel
def _fill_plain(
    segment: Any, rows: int, columns: int, start: int, stop: int, pairs: Any, is_end: Any
) -> None:
    """Do what `fill_touched` does for one plain segment; pairs (k,) int64, each a row and a column.

    Each slab writes its first cell and at once the one next to it. Where b has not crossed a line
    the next slab writes over it. So no branch depends on the slope.
    """
    _, along_u, slab, last_slab, cell, last_cell, base_a, base_b, slope = _plain(
        segment, rows, columns, False
    )

    # the first cell, and the steps to its neighbours in `pairs`
    row, column = (rows - 1 - cell, slab) if along_u else (rows - 1 - slab, cell)
    to_next_slab, to_next_cell = (ONE_COLUMN, -ONE_ROW) if along_u else (-ONE_ROW, ONE_COLUMN)
    if last_cell < cell:
        to_next_cell = -to_next_cell
    forward = segment[2] >= segment[0] if along_u else segment[3] >= segment[1]
    place, step = (start, 1) if forward else (stop - 1, -1)
    pair = row * ONE_ROW + column * ONE_COLUMN
    edge = slab + 1.0 - base_a

    for _ in range(last_slab - slab):
        next_cell = int(base_b + edge * slope)
        crossed = abs(next_cell - cell)
        pairs[np.uint64(place)] = pair
        pairs[np.uint64(place + step)] = pair + to_next_cell
        place += step + step * crossed
        pair += to_next_slab + to_next_cell * crossed
        cell = next_cell
        edge += 1.0
    pairs[np.uint64(place)] = pair
    if cell != last_cell:
        pairs[np.uint64(place + step)] = pair + to_next_cell

    end_u = segment[2]
    end_v = segment[3]
    if 0.0 < end_u < columns and 0.0 < end_v < rows:
        is_end[stop - 1] = True


@kernel
def _fill_any(segment: Any, rows: int, columns: int, cells: Any, is_end: Any) -> None:
    """Do what `fill_touched` does for any one segment."""
    line = _oriented(segment[0], segment[1], segment[2], segment[3], rows, columns)
    first_slab, last_slab = _slabs(line.a0, line.a1, line.size_a)
    inverse = _inverse(line)
    end_u = segment[2]
    end_v = segment[3]
    progress = np.empty(len(is_end))
    count = 0
    for step in range(last_slab - first_slab + 1):
        slab = first_slab + step if line.a1 >= line.a0 else last_slab - step
        low, high = _span(line, slab)
        first, last = _cells(low, high, line.size_b)
        for cell in range(max(first, 0), min(last, line.size_b - 1) + 1):
            row, column = (rows - 1 - cell, slab) if line.along_u else (rows - 1 - slab, cell)
            key = _progress(line, slab, cell, inverse)

            # insertion sort: few predecessors of a cell belong behind it
            place = count
            while place > 0:
                before = progress[place - 1]
                other_row = cells[place - 1, 0]
                other_column = cells[place - 1, 1]
                if before < key - SNAP:
                    break
                if before <= key + SNAP and (
                    other_row < row or (other_row == row and other_column < column)
                ):
                    break
                progress[place] = before
                cells[place, 0] = other_row
                cells[place, 1] = other_column
                place -= 1
            progress[place] = key
            cells[place, 0] = row
            cells[place, 1] = column
            count += 1

    # cells that hold the end
    for place in range(count):
        column = cells[place, 1]
        above = rows - 1 - cells[place, 0]
        is_end[place] = (
            (column <= end_u) & (end_u <= column + 1.0) & (above <= end_v) & (end_v <= above + 1.0)
        )


@kernel
def fill_touched(
    segments: Any, rows: int, columns: int, offsets: Any, plain: Any, cells: Any, is_end: Any
) -> None:
    """Write touched cells -> cells (k, 2) int32 row, column; of segment n from offsets[n] up.

    They are in the order in which the segment first meets them, ties (within SNAP) by row, then
    column. is_end (k,) bool, all False before the call, becomes True where the segment ends in the
    cell, on its edge or on its corner. `plain` comes from `count_touched`.
    """
    pairs = cells.view(np.int64).reshape(cells.shape[0])
    for n in range(segments.shape[0]):
        if plain[n]:
            if offsets[n] < offsets[n + 1]:
                _fill_plain(segments[n], rows, columns, offsets[n], offsets[n + 1], pairs, is_end)
        else:
            mine = slice(offsets[n], offsets[n + 1])
            _fill_any(segments[n], rows, columns, cells[mine], is_end[mine])


@kernel
def free_touched(segments: Any, occupied: Any) -> None:
    """Set every touched cell of occupied (rows, columns) bool to False."""
    rows, columns = occupied.shape
    for n in range(segments.shape[0]):
        line = _oriented(
            segments[n, 0], segments[n, 1], segments[n, 2], segments[n, 3], rows, columns
        )
        first_slab, last_slab = _slabs(line.a0, line.a1, line.size_a)
        for slab in range(first_slab, last_slab + 1):
            low, high = _span(line, slab)
            first, last = _cells(low, high, line.size_b)
            for cell in range(max(first, 0), min(last, line.size_b - 1) + 1):
                if line.along_u:
                    occupied[rows - 1 - cell, slab] = False
                else:
                    occupied[rows - 1 - slab, cell] = False


@kernel
def first_hits(segments: Any, clearance: Any, distances: Any, hits: Any) -> None:
    """Write the first point of each segment on a cell with clearance 0 -> hits (n, 2).

    Its distance from the start goes to distances (n,). Both are in cells. Without a hit the
    distance is infinite and the point NaN. `clearance` is (rows, columns) uint8. All cells whose
    row and column differ from a cell's by less than its clearance must be free, as the sweep leaps
    over them.
    """
    rows, columns = clearance.shape
    flat = clearance.reshape(rows * columns)
    bottom_left = (rows - 1) * columns
    for n in range(segments.shape[0]):
        distances[n] = np.inf
        hits[n, 0] = np.nan
        hits[n, 1] = np.nan
        line = _oriented(
            segments[n, 0], segments[n, 1], segments[n, 2], segments[n, 3], rows, columns
        )

        step_a, step_b = (1, -columns) if line.along_u else (-columns, 1)
        first_slab, last_slab = _slabs(line.a0, line.a1, line.size_a)
        inverse = _inverse(line)
        forward = line.a1 >= line.a0
        rises = (line.slope > 0.0) == forward
        slab = first_slab if forward else last_slab
        remaining = last_slab - first_slab

        while remaining >= 0:
            index = bottom_left + slab * step_a
            middle = line.base_b + (slab + 0.5 - line.base_a) * line.slope

            # a leap over free cells
            if 0.0 <= middle < line.size_b:
                # touched cells of slab + k lie at most k + 1 cells from the middle of this slab
                leap = int(flat[index + int(middle) * step_b]) - 1
                if leap > 0:
                    remaining -= leap
                    slab += leap if forward else -leap
                    continue

            # the cells of this slab
            low, high = _span(line, slab)
            first, last = _cells(low, high, line.size_b)
            left_for_good = first >= line.size_b if rises else last < 0
            if left_for_good:
                break

            # the nearest occupied cell of this slab
            nearest = np.inf
            nearest_cell = 0
            for cell in range(max(first, 0), min(last, line.size_b - 1) + 1):
                if flat[index + cell * step_b] == 0:
                    progress = _progress(line, slab, cell, inverse)
                    if progress < nearest:
                        nearest = progress
                        nearest_cell = cell

            if nearest < np.inf:
                a = line.a0 + nearest if forward else line.a0 - nearest
                a = _clamp(a, slab + 0.0, slab + 1.0)
                b = _clamp(
                    line.b0 + (a - line.a0) * line.slope, nearest_cell + 0.0, nearest_cell + 1.0
                )
                if nearest == 0.0:
                    a = line.a0
                    b = line.b0
                distances[n] = nearest * np.sqrt(1.0 + line.slope * line.slope)
                hits[n, 0], hits[n, 1] = (a, b) if line.along_u else (b, a)
                break
            remaining -= 1
            slab += 1 if forward else -1
